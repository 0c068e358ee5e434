"""What the tools answer in words, for agents, which pay for every word.

One rule: what a store holds cannot pass for our words. A line of ours is one line whatever it
holds, each line of a passage begins with ``> ``, the text of a file is between two fences that are
not in it, and a name with blanks in it is quoted.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from filestore.core.errors import FilestoreError
from filestore.core.safe_text import listed, safe_text

Answer = Mapping[str, Any]


class Passage(str):
    """Words of the store, shown in lines that are marked as such."""

    __slots__ = ()


class Whole(Passage):
    """The text of a file, shown as it is, between fences: an edit names passages of it."""

    __slots__ = ()


_MOST_PATHS: Final = 20
"""Files of one code that are named; the rest is counted."""
_MOST_TEXT: Final = 50_000
"""Characters of one text; the JSON has all of it."""
_FENCE: Final = "```"
_PLAIN_NAME: Final = re.compile(r"[^\s\"'`()\[\]<>,:]+(?::[^\s\"'`()\[\]<>,:]+)*")
"""A name that ends where the next word of ours begins."""


_WORDED: Final[dict[str, Callable[[Answer], Iterator[str]]]] = {}
"""By the name of the operation."""


def _words_of(*names: str) -> Callable[[Callable[[Answer], Iterator[str]]], object]:
    """Register how some operations' answers are put into words."""
    return lambda put: _WORDED.update(dict.fromkeys(names, put))


def text_of(name: str, answer: Answer, root: str) -> str:
    """What an operation answered, in few words.

    Args:
        name: Of the operation.
        answer: As `--json` has it.
        root: Of the store.
    """
    pieces = [*_WORDED[name](answer)]
    if undo := answer.get("undo"):
        # The person who undoes it may be in another store.
        pieces.append(f"a person undoes it by: filestore --store {shlex.quote(root)} undo {undo}")
    return "\n".join(_written(pieces))


def _written(pieces: Iterable[str]) -> Iterator[str]:
    """Pieces as lines: ours one each, those of the store marked, and not too many of them."""
    left = _MOST_TEXT
    for piece in pieces:
        if left <= 0:
            yield "… (cut)"
            return
        shown = piece[:left]
        left -= len(shown)
        if not isinstance(piece, Passage):
            yield safe_text(shown, keep_newlines=False)
            continue
        text = safe_text(shown.replace("\r\n", "\n"))
        if isinstance(piece, Whole):
            longest = max(map(len, re.findall("`+", text)), default=0)
            fence = "`" * max(len(_FENCE), longest + 1)
            yield f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"
        else:
            yield "\n".join(f"> {line}" for line in text.split("\n"))
        if len(shown) < len(piece):
            yield "… (cut)"
            return


def text_of_error(error: FilestoreError) -> str:
    """What was not done, why, and what helps."""
    remedy = f"Try: {' '.join(error.remedy.split())}" if error.remedy else ""
    pieces = [error.message, Passage(error.detail), remedy]
    return "\n".join(_written(filter(None, pieces)))


def _shown_name(name: str) -> str:
    """A path or a name, so that it is seen where it ends."""
    return name if _PLAIN_NAME.fullmatch(name) else orjson.dumps(name).decode()


@_words_of("search")
def _search(answer: Answer) -> Iterator[str]:
    if respelt := answer.get("respelt"):
        yield f"nothing for {_shown_name(answer['query'])}; for {_shown_name(respelt)}:"
    elif answer["nearest"]:
        yield "nothing close; nearest:"
    for number, hit in enumerate(answer["hits"] or answer["nearest"], start=1):
        # The document of a hit, and the passage's place in it.
        line, end = hit["line"], hit["end_line"]
        origin = f" p. {hit['page']}" if hit["page"] and not line else ""
        if hit["document"] != hit["path"]:
            lines = f":{line}-{end}" if line and end != line else f":{line}" if line else ""
            origin = f" ({_shown_name(hit['document'])}{lines}{origin})"
        yield _head(number, hit, origin, hit["section"])
        copies = len(hit["copies"])
        more = f"+{copies} {'copy' if copies == 1 else 'copies'}" if copies else ""
        if why := "; ".join(filter(None, (hit["reason"], more))):
            yield Passage(f"({why})")
        yield Passage(hit["excerpt"])
    yield from _closing(answer)


@_words_of("similar")
def _similar(answer: Answer) -> Iterator[str]:
    for number, hit in enumerate(answer["hits"], start=1):
        source = hit["source"] if hit["source"] != hit["path"] else None
        yield _head(number, hit, f" ({_shown_name(source)})" if source else "", hit["headings"])
        yield Passage(_brief(hit["text"]))
    yield from _closing(answer)


def _closing(answer: Answer) -> Iterator[str]:
    if not answer["hits"] and not answer.get("nearest"):
        yield "nothing found"
    yield from (f"Note: {note}" for note in answer["notes"])


@_words_of("show")
def _show(answer: Answer) -> Iterator[str]:
    record = answer["record"]
    about = [] if record["indexed"] else ["not indexed"]
    about += [record["freshness"]] if record.get("freshness", "fresh") != "fresh" else []
    source = record.get("source")
    about += [f"from {_shown_name(source)}"] if source and source != answer["path"] else []
    path = _shown_name(answer["path"])
    yield f"{path} [{', '.join(about)}]" if about else path
    yield f"revision: {answer['revision']}"
    keys = answer["frontmatter"]
    for key, sign in _SHOWN:
        if key in keys:
            value = keys[key]
            yield f"{key}: {sign.join(map(str, value)) if isinstance(value, list) else value}"
    yield Whole(answer["body"])


_SHOWN: Final = (("title", ", "), ("tags", ", "), ("headings", " > "), ("pages", ", "))


@_words_of("about")
def _about(answer: Answer) -> Iterator[str]:
    counts = [counted(answer["resources"], "document"), counted(answer["chunks"], "chunk")]
    yield f"{', '.join(counts)} in {_shown_name(answer['name']) if answer['name'] else 'the store'}"
    yield from _nodes(answer["nodes"], "")
    if not answer["nodes"]:
        yield from (f"{'  ' * one['depth']}- {one['title']}" for one in answer["outline"])
    for one in answer["documents"]:
        name = _shown_name(one["resource"])
        yield f"- {one['title']} ({name})" if one["title"] else f"- {name}"
    yield from (f"Note: {note}" for note in answer["notes"])


def _nodes(nodes: Iterable[Answer], indent: str) -> Iterator[str]:
    for node in nodes:
        path = _shown_name(node["path"])
        yield f"{indent}- {node['title'] or path}{_fresh(node)} ({path})"
        if node["text"]:
            yield Passage(_brief(node["text"]))
        yield from _nodes(node["below"], indent + "  ")


@_words_of("status")
def _status(answer: Answer) -> Iterator[str]:
    counts = ", ".join(f"{count} {what}" for what, count in answer["counts"].items())
    yield f"{'clean' if answer['clean'] else 'not clean'}, generation {answer['generation']}"
    yield counts
    for code, paths in answer["drift"].items():
        yield f"{code}: {listed(map(_shown_name, paths), _MOST_PATHS)}"
    if answer["drift"]:
        yield "sync updates the index; until then edited files say so where they are found"
    if problem := answer["embedder"]["problem"]:
        yield f"model: {problem}"


@_words_of("sync")
def _sync(answer: Answer) -> Iterator[str]:
    applied, left = len(answer["applied"]), answer["remaining"]
    if applied or answer["embedded"]:
        yield f"repaired {applied}, embedded {answer['embedded']} ({answer['reused']} from cache)"
    elif not left:
        yield "nothing to do: the index is up to date"
    for finding in left[:_MOST_PATHS]:
        yield f"left: {finding['code']} {_shown_name(finding['path'])} {finding['detail']}"
    if len(left) > _MOST_PATHS:
        yield f"and {len(left) - _MOST_PATHS} more"


@_words_of("add_note", "append", "edit")
def _note(answer: Answer) -> Iterator[str]:
    diff = answer.get("diff")
    done = "would change" if diff else "wrote" if answer["undo"] else "nothing changes in"
    yield f"{done} {_shown_name(answer['path'])}"
    if answer["revision"]:
        yield f"revision: {answer['revision']}"
    if diff:
        yield Whole(diff)
    if alike := answer["alike"]:
        yield f"Note: nearly the same name: {', '.join(map(_shown_name, alike))}"
    if problem := answer.get("not_embedded"):
        yield f"not embedded: {problem['error']}"


def counted(count: int, what: str) -> str:
    """A number of things."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _head(number: int, hit: Answer, origin: str, section: Iterable[str]) -> str:
    """The line of a hit: first its path, as the tools take it, then where that comes from."""
    heading = " > ".join(section)
    path, line = _shown_name(hit["path"]), hit.get("line")
    if line and hit.get("document", hit["path"]) == hit["path"]:
        # In place the line selects the section.
        path += f":{line}" if hit["kind"] == "document" else f" line {line}"
    head = f"{number}. {path}{origin}{_fresh(hit)} {hit['score']:.2f}"
    return f"{head} {heading}" if heading else head


def _fresh(one: Answer) -> str:
    return "" if one["freshness"] in ("fresh", "") else f" [{one['freshness']}]"


def _brief(text: str) -> str:
    """The first words of a text, on one line."""
    words = " ".join(text[:400].split())
    return words if len(words) <= 200 else f"{words[:200]}…"
