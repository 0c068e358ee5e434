"""Answers as short texts for agents, which pay for every word; the whole is the JSON beside them.

One rule: what is not fresh says so where it is named. Pure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from filestore.core.safe_text import safe_text

Answer = Mapping[str, Any]

_MOST_PATHS: Final = 20
"""So many files of one code are named; the rest is counted."""
_MOST_TEXT: Final = 50_000
"""Characters of one text; the JSON has all of it."""


def text_of(name: str, answer: Answer) -> str:
    """What an operation answered, in few words."""
    lines = _WORDED[name](answer)
    whole = safe_text("\n".join(lines).replace("\r\n", "\n"))
    return whole if len(whole) <= _MOST_TEXT else f"{whole[:_MOST_TEXT]}\n… (cut)"


def text_of_error(error: Answer) -> str:
    """What was not done, why, and what helps."""
    said = [error["error"], error["detail"], error["remedy"] and f"Try: {error['remedy']}"]
    return safe_text("\n".join(filter(None, said)))


def _search(answer: Answer) -> Iterator[str]:
    for number, hit in enumerate(answer["hits"], start=1):
        place = _place(hit["document"], hit["line"], hit["end_line"], hit["page"])
        chunk = "" if hit["path"] == hit["document"] else f" ({hit['path']})"
        section = f" {' > '.join(hit['section'])}" if hit["section"] else ""
        yield f"{number}. {place}{chunk}{_fresh(hit)} {hit['score']:.2f}{section}"
        yield hit["excerpt"]
    yield from _closing(answer)


def _similar(answer: Answer) -> Iterator[str]:
    for number, hit in enumerate(answer["hits"], start=1):
        place = _place(hit["path"], hit.get("line"), None, None)
        section = f" {' > '.join(hit['headings'])}" if hit["headings"] else ""
        yield f"{number}. {place}{_fresh(hit)} {hit['score']:.2f}{section}"
        yield _brief(hit["text"])
    yield from _closing(answer)


def _closing(answer: Answer) -> Iterator[str]:
    if not answer["hits"]:
        yield "nothing found"
    yield from (f"Note: {note}" for note in answer["notes"])


def _show(answer: Answer) -> Iterator[str]:
    record = answer["record"]
    about = [] if record["indexed"] else ["not indexed"]
    about += [record["freshness"]] if record.get("freshness", "fresh") != "fresh" else []
    source = record.get("source")
    about += [f"from {source}"] if source and source != answer["path"] else []
    yield f"{answer['path']} [{', '.join(about)}]" if about else answer["path"]
    yield from (f"{key}: {value}" for key, value in answer["frontmatter"].items() if key in _SHOWN)
    yield answer["body"]


_SHOWN: Final = ("title", "tags", "headings", "pages")


def _about(answer: Answer) -> Iterator[str]:
    counts = f"{answer['resources']} documents, {answer['chunks']} chunks"
    yield f"{answer['name'] or 'the store'}: {counts}"
    yield from _nodes(answer["nodes"], "")
    if not answer["nodes"]:
        yield from (f"{'  ' * one['depth']}{one['title']}" for one in answer["outline"])
    yield from (f"- {one['title']} ({one['resource']})" for one in answer["documents"])
    yield from (f"Note: {note}" for note in answer["notes"])


def _nodes(nodes: Iterable[Answer], indent: str) -> Iterator[str]:
    for node in nodes:
        yield f"{indent}{node['title'] or node['path']}{_fresh(node)} ({node['path']})"
        if node["text"]:
            yield f"{indent}{_brief(node['text'])}"
        yield from _nodes(node["below"], indent + "  ")


def _status(answer: Answer) -> Iterator[str]:
    counts = ", ".join(f"{count} {what}" for what, count in answer["counts"].items())
    yield f"{'clean' if answer['clean'] else 'not clean'}, generation {answer['generation']}"
    yield counts
    for code, paths in answer["drift"].items():
        more = len(paths) - _MOST_PATHS
        yield f"{code}: {', '.join(paths[:_MOST_PATHS])}{f' and {more} more' if more > 0 else ''}"
    if problem := answer["embedder"]["problem"]:
        yield f"model: {problem}"


def _sync(answer: Answer) -> Iterator[str]:
    applied, left = len(answer["applied"]), answer["remaining"]
    yield f"repaired {applied}, embedded {answer['embedded']} ({answer['reused']} from cache)"
    for finding in left[:_MOST_PATHS]:
        yield f"left: {finding['code']} {finding['path']} {finding['detail']}"
    if len(left) > _MOST_PATHS:
        yield f"and {len(left) - _MOST_PATHS} more"


def _note(answer: Answer) -> Iterator[str]:
    yield f"wrote {answer['path']}"
    if answer["undo"]:
        yield f"to undo it: filestore undo {answer['undo']}"
    if problem := answer.get("not_embedded"):
        yield f"not embedded: {problem['error']}"


def _place(path: str, line: int | None, end: int | None, page: int | None) -> str:
    if line:
        return f"{path}:{line}-{end}" if end and end != line else f"{path}:{line}"
    return f"{path} p. {page}" if page else path


def _fresh(one: Answer) -> str:
    return "" if one["freshness"] in ("fresh", "") else f" [{one['freshness']}]"


def _brief(text: str) -> str:
    """The first words of a text, on one line."""
    words = " ".join(text[:400].split())
    return words if len(words) <= 200 else f"{words[:200]}…"


_WORDED: Final[dict[str, Callable[[Answer], Iterator[str]]]] = {
    "about": _about,
    "add_note": _note,
    "edit_note": _note,
    "search": _search,
    "show": _show,
    "similar": _similar,
    "status": _status,
    "sync": _sync,
}
