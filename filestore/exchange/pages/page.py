"""A document as one page of Markdown, with hidden marks between its chunks; and back. Pure.

One rule: a page is a person's. What stands between two marks is the chunk, as it is now, and a line
that only looks like a mark is text.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from filestore.core.hashing import content_hash
from filestore.exchange.base import Chunk, Resource

_WORD = "chunk"


class Style(Struct, frozen=True, kw_only=True):
    """How a mark is hidden from a reader."""

    before: str
    after: str

    def start(self, word: str, number: int) -> str:
        """The line before a chunk, and an empty one, without which some show a table as text."""
        return f"{self.before}{word} {number}{self.after}\n\n"

    def end(self, word: str) -> str:
        """The line behind a chunk that something else follows."""
        return f"{self.before}/{word}{self.after}\n"

    def word(self, texts: Iterable[str]) -> str:
        """A word for the marks of a page that none of its texts has in one."""
        word, texts = _WORD, list(texts)
        while any(f"{self.before}{sign}{word}" in text for text in texts for sign in ("", "/")):
            word += "~"
        return word


class Page(Struct, frozen=True, kw_only=True):
    """What comes on one page: the chunks of one document, or the summaries of one resource."""

    key: str
    """Tells the pages of a resource apart."""
    source: str
    """The document; "" for none."""
    title: str
    chunks: tuple[int, ...]
    """Places in the resource, in order."""
    is_summaries: bool = False
    language: str = ""
    """Of source code; "" for other documents."""


class Split(Struct, frozen=True, kw_only=True):
    """A page that was read."""

    head: str
    """What stands before the first chunk."""
    texts: Mapping[int, str]
    """By number; with a line end behind what has none."""
    others: tuple[str, ...]
    """What stands behind chunks that end."""


class Content(Struct, frozen=True, kw_only=True):
    """What a page says, as it is now."""

    properties: Mapping[str, Any] | None
    """None where they cannot be read."""
    texts: Mapping[int, str]
    """Of its chunks, by number."""
    others: str
    """What stands behind chunks that end."""

    def is_same(self, other: "Content") -> bool:
        """Whether two pages say the same, whatever the line ends."""

        def plain(texts: Mapping[int, str]) -> dict[int, str]:
            return {n: text.replace("\r\n", "\n").rstrip("\n") for n, text in texts.items()}

        return (self.properties, self.others) == (other.properties, other.others) and plain(
            self.texts
        ) == plain(other.texts)


def pages_of(resource: Resource) -> list[Page]:
    """The pages of a resource: one a document, in order, then one of its summaries."""
    groups: dict[tuple[bool, str], list[int]] = {}
    for place, chunk in enumerate(resource.chunks):
        is_summary = chunk.frontmatter.get("kind") == "summary" or (
            "kind" not in chunk.frontmatter and chunk.path.rpartition("/")[2].startswith("summary")
        )
        # Files of no resource have nothing in common.
        key = "" if is_summary else chunk.source or ("" if resource.name else chunk.path)
        groups.setdefault((is_summary, key), []).append(place)
    known = [str(one.get("source")) for one in _documents(resource.record)]
    found = []
    for (is_summary, key), places in sorted(groups.items(), key=lambda one: one[0][0]):
        source = key if key in known else known[0] if len(known) == 1 and not key else key
        source = "" if is_summary or not resource.name else source
        title = _title(resource, source, resource.chunks[places[0]])
        found.append(
            Page(
                key=key,
                source=source,
                title=f"Summaries of {resource.name or 'all'}" if is_summary else title,
                chunks=tuple(places),
                is_summaries=is_summary,
                language=_language(resource.record, source),
            )
        )
    return found


def metadata_of(record: Mapping[str, object] | None, source: str) -> Mapping[str, object]:
    """What a document says about itself, as the record of its resource has it."""
    for one in _documents(record):
        if one.get("source") == source and isinstance(one.get("metadata"), Mapping):
            return one["metadata"]  # type: ignore[return-value]
    return {}


def _language(record: Mapping[str, object] | None, source: str) -> str:
    """What a reader's program calls the language of source code; "" for other documents."""
    for one in _documents(record):
        if one.get("source") == source and str(one.get("extractor")).startswith("code/"):
            found = re.search(r"\.([A-Za-z0-9+#-]+)$", source)
            return found[1].lower() if found else "text"
    return ""


def _documents(record: Mapping[str, object] | None) -> list[Mapping[str, object]]:
    found = record.get("documents") if record is not None else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _title(resource: Resource, source: str, first: Chunk) -> str:
    """On one line: as the document says, its first heading, or its name."""
    own = next(
        (
            value
            for key, value in metadata_of(resource.record, source).items()
            if key.casefold() == "title" and isinstance(value, str)
        ),
        "",
    )
    headings = first.frontmatter.get("headings")
    heading = headings[0] if isinstance(headings, list) and headings else ""
    name = source or resource.name or first.path
    return " ".join((own or str(heading) or name.rpartition("/")[2]).split()) or "Untitled"


def render(
    style: Style,
    head: str,
    texts: Sequence[str],
    around: Sequence[tuple[str, str]] | None = None,
) -> tuple[str, str]:
    """A page, and the word of its marks.

    Args:
        style: Of the marks.
        head: What stands before the chunks, with a line end.
        texts: Of the chunks.
        around: What stands before and behind each, with line ends; None for nothing.
    """
    word = style.word([*texts, head])
    parts = [head]
    for number, text in enumerate(texts, start=1):
        before, behind = around[number - 1] if around is not None else ("", "")
        parts += [before, style.start(word, number), text]
        if not text.endswith("\n"):
            parts.append("\n")
        if around is not None:
            parts += [style.end(word), behind]
    return "".join(parts), word


def split(page: str, style: Style, word: str, count: int) -> Split:
    """Take a page apart; a mark with a number that is none, or was there before, is text."""
    before, after = re.escape(style.before), re.escape(style.after.rstrip())
    mark = re.compile(
        rf"^{before}(?:{re.escape(word)} (\d{{1,9}}){after}[ \t\r]*(?:\n\r?\n?|\Z)"
        rf"|(/){re.escape(word)}{after}[ \t\r]*(?:\n|\Z))",
        re.MULTILINE,
    )
    texts: dict[int, str] = {}
    others: list[str] = []
    head, number, start = "", 0, 0

    def close(end: int) -> None:
        nonlocal head
        if number:
            texts[number] = page[start:end]
        elif texts:
            others.append(page[start:end])
        else:
            head = page[start:end]

    for found in mark.finditer(page):
        following = 0 if found[2] else int(found[1])
        is_end = bool(found[2]) and number > 0
        if not is_end and (not 0 < following <= count or following in texts or following == number):
            continue
        close(found.start())
        number, start = following, found.end()
    close(len(page))
    return Split(head=head, texts=texts, others=tuple(others))


def content_of(
    page: str,
    entry: Mapping[str, Any],
    style: Style,
    read_head: Callable[[str], tuple[dict[str, Any] | None, str]],
) -> Content:
    """What a page says; the first chunk has what a person wrote above it.

    Args:
        page: As it is now.
        entry: What the manifest says of it.
        style: Of its marks.
        read_head: Takes properties off what stands above the first mark.
    """
    word, count, fence = entry.get("mark"), entry.get("count"), entry.get("fence")
    found = split(page, style, str(word), count if type(count) is int else 0)
    properties, rest = read_head(found.head)
    own = _without(rest.replace("\r\n", "\n"), str(entry.get("above", "")))
    texts = dict(found.texts)
    if isinstance(fence, str):
        texts = {number: unfenced(text, fence) for number, text in texts.items()}
    if own.strip():
        first = min(texts, default=1)
        texts[first] = own + texts.get(first, "")
    return Content(properties=properties, texts=texts, others="".join(found.others))


def _without(text: str, above: str) -> str:
    """What a person wrote above the first mark, without what was written there before."""
    if above in text:
        return text.replace(above, "", 1) if above else text
    made = {line for line in above.split("\n") if line}
    return "".join(line for line in text.splitlines(keepends=True) if line.rstrip("\n") not in made)


def fence_of(texts: Sequence[str], language: str) -> str:
    """The line that opens a block of code, and that no text has."""
    signs = "```"
    while any(signs in text for text in texts):
        signs += "`"
    return f"{signs}{language}"


def fenced(text: str, fence: str) -> str:
    """A text as a block of code."""
    signs = fence[: len(fence) - len(fence.lstrip("`"))]
    return f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{signs}\n"


def unfenced(text: str, fence: str) -> str:
    """The text of a block of code; what is no such block as it is."""
    signs = fence[: len(fence) - len(fence.lstrip("`"))]
    body = text.rstrip()
    if not (text.startswith(f"{fence}\n") and body.endswith(f"\n{signs}")):
        return text
    return body[len(fence) + 1 : -len(signs)]


def text_hash(text: str) -> str:
    """Of a text as it is in the store."""
    return content_hash(text.encode("utf-8", "surrogatepass")).hex()


def as_stored(text: str, digest: str) -> tuple[str, bool]:
    """The text of a chunk on a page, and whether it is as it was when the page was written.

    A program that only writes other line ends edited nothing.
    """
    plain = text.replace("\r\n", "\n")
    for candidate in (text, text.removesuffix("\n"), plain, plain.removesuffix("\n")):
        if text_hash(candidate) == digest:
            return candidate, True
    return text, False
