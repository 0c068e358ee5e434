"""Answers as short texts for agents, which pay for every word; the whole is the JSON beside them.

One rule: what is not fresh says so where it is named. Pure.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from filestore.core.safe_text import safe_text

Answer = Mapping[str, Any]

_MOST_PATHS: Final = 20
"""So many files of one code are named; the rest is counted."""
_MOST_TEXT: Final = 50_000
"""Characters of one text; the JSON has all of it."""


def text_of(name: str, answer: Answer, root: str) -> str:
    """What an operation answered, in few words.

    Args:
        name: Of the operation.
        answer: As `--json` has it.
        root: Of the store.
    """
    lines = [*_WORDED[name](answer)]
    if undo := answer.get("undo"):
        # Whoever undoes it may sit in another store.
        lines.append(f"a person undoes it by: filestore --store {shlex.quote(root)} undo {undo}")
    whole = safe_text("\n".join(lines).replace("\r\n", "\n"))
    return whole if len(whole) <= _MOST_TEXT else f"{whole[:_MOST_TEXT]}\n… (cut)"


def text_of_error(error: Answer) -> str:
    """What was not done, why, and what helps."""
    said = [error["error"], error["detail"], error["remedy"] and f"Try: {error['remedy']}"]
    return safe_text("\n".join(filter(None, said)))


def _search(answer: Answer) -> Iterator[str]:
    for number, hit in enumerate(answer["hits"], start=1):
        yield _head(number, hit, _origin(hit), hit["section"])
        yield hit["excerpt"]
    yield from _closing(answer)


def _similar(answer: Answer) -> Iterator[str]:
    for number, hit in enumerate(answer["hits"], start=1):
        source = hit["source"] if hit["source"] != hit["path"] else None
        yield _head(number, hit, f" ({source})" if source else "", hit["headings"])
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
    keys = answer["frontmatter"]
    yield from (f"{key}: {_listed(keys[key], sign)}" for key, sign in _SHOWN if key in keys)
    yield answer["body"]


_SHOWN: Final = (("title", ", "), ("tags", ", "), ("headings", " > "), ("pages", ", "))


def _listed(value: Any, sign: str) -> str:
    return sign.join(map(str, value)) if isinstance(value, list) else str(value)


def _about(answer: Answer) -> Iterator[str]:
    counts = [counted(answer["resources"], "document"), counted(answer["chunks"], "chunk")]
    yield f"{answer['name'] or 'the store'}: {', '.join(counts)}"
    yield from _nodes(answer["nodes"], "")
    if not answer["nodes"]:
        yield from (f"{'  ' * one['depth']}{one['title']}" for one in answer["outline"])
    for one in answer["documents"]:
        yield f"- {one['title']} ({one['resource']})" if one["title"] else f"- {one['resource']}"
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
    if answer["drift"]:
        yield "sync updates the index; until then edited files say so where they are found"
    if problem := answer["embedder"]["problem"]:
        yield f"model: {problem}"


def _sync(answer: Answer) -> Iterator[str]:
    applied, left = len(answer["applied"]), answer["remaining"]
    if applied or answer["embedded"]:
        yield f"repaired {applied}, embedded {answer['embedded']} ({answer['reused']} from cache)"
    elif not left:
        yield "nothing to do: the index is up to date"
    for finding in left[:_MOST_PATHS]:
        yield f"left: {finding['code']} {finding['path']} {finding['detail']}"
    if len(left) > _MOST_PATHS:
        yield f"and {len(left) - _MOST_PATHS} more"


def _note(answer: Answer) -> Iterator[str]:
    yield f"wrote {answer['path']}"
    if alike := answer["alike"]:
        yield f"Note: nearly the same name: {', '.join(alike)}"
    if problem := answer.get("not_embedded"):
        yield f"not embedded: {problem['error']}"


def counted(count: int, what: str) -> str:
    """A number of things."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _head(number: int, hit: Answer, origin: str, section: Iterable[str]) -> str:
    """The line of a hit: first its path, as the tools take it, then where that comes from."""
    heading = " > ".join(section)
    said = f"{number}. {_place(hit)}{origin}{_fresh(hit)} {hit['score']:.2f}"
    return f"{said} {heading}" if heading else said


def _place(hit: Answer) -> str:
    """The path of a hit with the line in that file."""
    path, line = hit["path"], hit.get("line")
    if not line or hit.get("document", path) != path:
        return path
    # In place the line tells which section is meant.
    return f"{path}:{line}" if hit["kind"] == "document" else f"{path} line {line}"


def _origin(hit: Answer) -> str:
    """The document of a hit, and where in it the passage stands."""
    line, end, page = hit["line"], hit["end_line"], hit["page"]
    if hit["document"] == hit["path"]:
        return f" p. {page}" if page and not line else ""
    lines = f":{line}-{end}" if line and end != line else f":{line}" if line else ""
    return f" ({hit['document']}{lines}{f' p. {page}' if page and not line else ''})"


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
