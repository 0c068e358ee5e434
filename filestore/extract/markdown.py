"""Markdown files, and notebooks as Markdown: the body, the frontmatter of other tools as metadata.

Holds no knowledge of the store's own frontmatter. Two rules: a frontmatter that cannot be read, or
that tries to do harm, is no reason to lose the document: it stays in the text, and is reported. A
cell of a notebook is never cut in two by its own contents, whatever fences it holds; what it
printed is left out.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from filestore.chunking.blocks import NO_MARKUP, markdown_blocks, markdown_parser
from filestore.core.frontmatter_yaml import (
    MAX_BLOCK_BYTES,
    MalformedFrontmatter,
    Value,
    number,
    read_yaml,
)
from filestore.core.safe_text import listed
from filestore.extract import FRONTMATTER_ERROR
from filestore.extract.base import (
    DepthError,
    Document,
    ExtractionError,
    Extractor,
    decode,
    document_text,
    empty_error,
    encoding_metadata,
    json_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from markdown_it.token import Token

_TITLE_WINDOW: Final = 65_536  # characters; a title further down names a part, not the document
_TITLE_LIMIT: Final = 500
_MAX_NESTING: Final = 20
_LINE_ENDS: Final = re.compile(r"\r\n?")
_FIRST_HEADING: Final = re.compile(r"\n*#[ \t]([^\n#]*)(?:\n|\Z)")
"""Above all text a heading of the first level is one, whatever follows."""


class MarkdownExtractor(Extractor):
    """Markdown in any dialect, with YAML, TOML or JSON frontmatter."""

    name = "markdown"
    version = 3
    typed = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Takes the frontmatter off; see `Extractor.extract`."""
        decoded, encoding = decode(data, name=name)
        text = document_text(decoded, name=name)
        metadata, start = read_frontmatter(text)
        body = text[start:]
        if not body or body.isspace():
            raise empty_error(name, "found only frontmatter")
        title = metadata.get("title") or first_title(body)
        if title:
            metadata["title"] = str(title) if isinstance(title, int | float) else title
        return Document(
            text=document_text(body, name=name),
            syntax="markdown",
            metadata=metadata | encoding_metadata(encoding),
            extractor=self.label,
        )


def first_title(body: str) -> str:
    """The first heading of level 1, as plain text on one line; empty without one."""
    if "#" not in body[:_TITLE_WINDOW] and "=" not in body[:_TITLE_WINDOW]:
        return ""
    text = _LINE_ENDS.sub("\n", body[:_TITLE_WINDOW])
    first = _FIRST_HEADING.match(text)
    title = plain_text(first[1].strip()) if first else ""
    if title:
        return title
    parser = markdown_parser(_MAX_NESTING)
    tokens: list[Token] = []
    # Blocks alone: the rest is read where it is a heading.
    parser.block.parse(text, parser, {}, tokens)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.tag == "h1":
            title = plain_text(inline.content)
            if title:
                return title
    return ""


def plain_text(inline: str) -> str:
    """The words of a line of Markdown, without its markup."""
    inline = inline[:_TITLE_LIMIT]
    if NO_MARKUP.fullmatch(inline):
        return " ".join(inline.split())
    tokens = markdown_parser(_MAX_NESTING).parseInline(inline)
    return " ".join("".join(_words(tokens)).split())


def _words(tokens: "Iterable[Token]") -> "Iterator[str]":
    for token in tokens:
        if token.type in {"text", "code_inline"}:
            yield token.content
        elif token.type in {"inline", "image"}:
            yield from _words(token.children or ())
        elif token.type in {"softbreak", "hardbreak"}:
            yield " "


_MOST_LINES: Final = 500
"""Of a block with one that cannot be read: each key, or item, is then read on its own."""
_MOST_TEXT: Final = 1_000
"""Characters of a value that is taken as text because it cannot be read."""
_MOST_NAMED: Final = 5
"""Lines that a message names."""

_DOTTED: Final = re.compile(r"(?:[^\s=.]{1,100}\s*\.\s*){20}")
"""Keys such as a.b.c without end, which cost the TOML reader quadratic time."""

_FENCES: Final = {
    "yaml": (re.compile(r"---[ \t]*\n"), re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.M)),
    "toml": (re.compile(r"\+\+\+[ \t]*\n"), re.compile(r"^\+\+\+[ \t]*(?:\n|\Z)", re.M)),
    "json": (re.compile(r"\{[ \t]*\n"), re.compile(r"^\}[ \t]*(?:\n|\Z)", re.M)),
}
_KEY: Final = re.compile(
    r"^(?![\s#\]},]|-\s)(?P<key>[^\n]{0,1000}?):(?:[ \t]+(?P<value>[^\n]*))?$", re.M
)
"""The line of a key at the outermost level."""
_ITEM: Final = re.compile(r"[ \t]*-[ \t]+(?P<value>[^\n]*)")
_NO_VALUE: Final = re.compile(r"[ \t]*(?:#.*)?")


def read_frontmatter(text: str) -> tuple[dict[str, Any], int]:
    """The frontmatter of a text, and where its body starts.

    Args:
        text: With LF line ends.

    Returns:
        Metadata as JSON values, and the offset of the body in characters: 0 where there is no
        frontmatter, or some of it can only be text. Metadata says which lines cannot be read.
    """
    for syntax, (opening, closing) in _FENCES.items():
        opened = opening.match(text)
        closed = opened and closing.search(text, opened.end())
        if opened and closed:
            inner = text[opened.end() : closed.start()]
            try:
                read = _read(syntax, inner)
            except _UnreadableError as error:
                return {FRONTMATTER_ERROR: str(error)}, 0
            return read.metadata(), 0 if read.is_left else closed.end()
    return {}, 0


class _UnreadableError(ValueError):
    """The frontmatter cannot be read; the message is short enough to be kept."""


class _Read(Struct, kw_only=True):
    """What a block says, and which of its lines cannot be read."""

    values: dict[str, Any] = field(default_factory=dict)
    as_text: list[int] = field(default_factory=list)
    """Lines of the file whose value is taken as it is written."""
    left_out: list[int] = field(default_factory=list)
    """Lines of the file that are in no value."""
    is_left: bool = False
    """Whether the block belongs to the text."""

    def metadata(self) -> dict[str, Any]:
        """The values, with the words about what cannot be read."""
        problems = [
            f"line{'s' if len(lines) > 1 else ''} {listed(lines, _MOST_NAMED)} {what}"
            for lines, what in ((self.as_text, "read as text"), (self.left_out, "left out"))
            if lines
        ]
        error = {FRONTMATTER_ERROR: "not valid YAML: " + "; ".join(problems)} if problems else {}
        return self.values | error


def _read(syntax: str, inner: str) -> _Read:
    if len(inner.encode()) > MAX_BLOCK_BYTES:
        raise _UnreadableError(f"larger than {MAX_BLOCK_BYTES // 1024} KiB")
    if syntax == "yaml":
        try:
            return _Read(values=read_yaml(inner.encode(), 2).values)
        except MalformedFrontmatter:
            keys = [match.start() for match in _KEY.finditer(inner)]
        if inner.count("\n") > _MOST_LINES:
            raise _UnreadableError(f"not valid YAML, and more than {_MOST_LINES:,} lines")
        if not keys:
            return _Read(is_left=True)  # prose between two rules
        read = _Read()
        _leave_out(read, inner[: keys[0]], 2)
        for start, end in zip(keys, [*keys[1:], len(inner)], strict=True):
            _read_entry(read, inner[start:end], 2 + inner.count("\n", 0, start))
        read.is_left = bool(read.left_out)
        return read
    try:
        values = _parse(syntax, inner)
        return _Read(values=json_value(values))
    except (DepthError, RecursionError) as error:
        raise _UnreadableError(str(DepthError())) from error
    except (ValueError, TypeError, OverflowError) as error:
        # the library's own words are left out: they change with its version, metadata must not
        raise _UnreadableError(f"not valid {syntax.upper()}") from error


def _parse(syntax: str, inner: str) -> object:
    if syntax == "toml":
        if _DOTTED.search(inner):
            raise DepthError
        return tomllib.loads(inner, parse_float=number)
    from frontmatter.default_handlers import JSONHandler

    return JSONHandler().load("{" + inner + "}", parse_float=number)


# ---- YAML, where some line cannot be read --------------------------------------------------------


def _read_entry(read: _Read, entry: str, line: int) -> None:
    """Add one key with its value, or as much of it as can be read."""
    try:
        values = read_yaml(entry.encode(), line).values
    except MalformedFrontmatter:
        values = None
    if values is not None and not values.keys() & read.values.keys():
        read.values |= values
        return
    head, _, rest = entry.partition("\n")
    match = _KEY.match(head)
    key = _key(match["key"]) if match else None
    value = (match["value"] or "").strip() if match else ""
    if values is not None or key is None or key in read.values or len(value) > _MOST_TEXT:
        _leave_out(read, entry, line)
    elif _NO_VALUE.fullmatch(value):
        items: list[Value] = []
        # A list of which one item cannot be read: each is read on its own.
        for at, written in enumerate(rest.split("\n"), line + 1):
            item = _ITEM.fullmatch(written)
            if item is None or len(item["value"]) > _MOST_TEXT:
                _leave_out(read, written, at)
            else:
                items.append(_value(read, item["value"].strip(), at))
        if items:
            read.values[key] = items
    else:
        read.values[key] = _value(read, value, line)
        _leave_out(read, rest, line + 1)


def _key(written: str) -> str | None:
    """The key that a line begins with; None where it is none."""
    try:
        return next(iter(read_yaml(f"{written}:".encode(), 1).values))
    except MalformedFrontmatter:
        return None


def _value(read: _Read, written: str, line: int) -> Value:
    """What is on one line: a value, else text."""
    try:
        return read_yaml(f"value: {written}".encode(), line).values["value"]
    except MalformedFrontmatter:
        read.as_text.append(line)
        return written


def _leave_out(read: _Read, lines: str, line: int) -> None:
    """Note every line that is not blank or a comment."""
    written = enumerate(lines.split("\n"), line)
    read.left_out += [at for at, text in written if not _NO_VALUE.fullmatch(text)]


# ---- texts that become Markdown ------------------------------------------------------------------

_DEEPEST_HEADING: Final = 6
_CODE_FENCE: Final = re.compile(r"^[ ]{0,3}(`{3,})", re.MULTILINE)
_BLOCK_MARK: Final = re.compile(
    r"^( {0,3})(?=#{1,6}(?:[ \t]|$)|(?:=+|-+)[ \t]*$|`{3,}|~{3,})", re.M
)


def prose(text: str) -> str:
    """A plain text as Markdown: no line of it is a heading or begins a listing."""
    return _BLOCK_MARK.sub(r"\1\\", text.replace("\r\n", "\n").replace("\r", "\n"))


def fenced(text: str, language: str = "") -> str:
    """A text as a listing that nothing in it ends."""
    fence = max(("```", *(found + "`" for found in _CODE_FENCE.findall(text))), key=len)
    return f"{fence}{language}\n{text}\n{fence}"


def deepened(text: str, levels: int) -> str:
    """Markdown with its headings further down, its first level below a number of levels."""
    pieces, done = list[str](), 0
    headings = [
        block
        for block in markdown_blocks(text)
        if block.kind == "heading" and text.startswith("#", block.start)
    ]
    levels -= min((block.level for block in headings), default=1) - 1
    for block in headings:
        more = min(levels, _DEEPEST_HEADING - block.level)
        pieces += text[done : block.start], "#" * more
        done = block.start
    return "".join((*pieces, text[done:]))


# ---- notebooks -----------------------------------------------------------------------------------

_MOST_BYTES: Final = 64_000_000
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,40}")


class NotebookExtractor(Extractor):
    """Jupyter notebooks of version 3 and 4."""

    name = "notebook"
    version = 3
    isolated = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Reads the cells; see `Extractor.extract`."""
        if len(data) > _MOST_BYTES:
            raise ExtractionError(
                f"{name}: larger than {_MOST_BYTES // 1_000_000} MB"
                "; clear the outputs of the notebook, or leave it out",
            )
        decoded, encoding = decode(data, name=name)
        notebook = _notebook(document_text(decoded, name=name), name)
        details, language = notebook.get("metadata"), ""
        for key, of in (("language_info", "name"), ("kernelspec", "language")):
            info = details.get(key) if isinstance(details, dict) else None
            found = info.get(of) if isinstance(info, dict) else None
            if not language and isinstance(found, str) and _LANGUAGE.fullmatch(found):
                language = found.lower()
        text = "\n\n".join(_cells(notebook, language))
        if not text.strip():
            raise empty_error(name, "found only empty cells")
        text = document_text(text + "\n", name=name)
        title = first_title(text)
        metadata = {"language": language} if language else {}
        if title:
            metadata["title"] = title
        return Document(
            text=text,
            syntax="markdown",
            metadata=metadata | encoding_metadata(encoding),
            extractor=self.label,
            title=title or " ".join(name.rpartition("/")[2].split()),
        )


def _notebook(text: str, name: str) -> Mapping[str, Any]:
    found, cause = "other JSON", None
    try:
        notebook = json.loads(text)
        if isinstance(notebook, dict):
            return notebook
    except (ValueError, RecursionError) as error:
        found, cause = "something that is not JSON", error
    raise ExtractionError(
        f"{name}: expected a Jupyter notebook, found {found}"
        "; open and save it with Jupyter, or leave it out",
    ) from cause


def _cells(notebook: Mapping[str, Any], language: str) -> Iterator[str]:
    sheets = notebook.get("worksheets")  # where the cells lay before version 4
    parts = [notebook, *(sheets if isinstance(sheets, list) else ())]
    lists = [part.get("cells") for part in parts if isinstance(part, dict)]
    for cell in chain.from_iterable(cells for cells in lists if isinstance(cells, list)):
        if not isinstance(cell, dict):
            continue
        source = cell.get("source", cell.get("input", ""))
        lines = source if isinstance(source, list) else [source]
        source = "".join(line for line in lines if isinstance(line, str))
        # NUL and halves of characters can be written in JSON, and belong in no text.
        source = source.replace("\0", "\ufffd").encode(errors="replace").decode()
        source = source.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        if not source.strip():
            continue
        kind = cell.get("cell_type")
        if kind == "code":
            yield fenced(source, language)
        elif kind in ("markdown", "heading"):
            level = cell.get("level") if kind == "heading" else None
            yield f"{'#' * level} {source}" if level in (1, 2, 3, 4, 5, 6) else source
