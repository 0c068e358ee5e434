"""The words of the inspector: values of the store into lines of text. Pure; knows no Textual.

One rule: every text of a line is safe for a terminal, whatever the file, name or key it came from.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

# The function, not the module of the same name that the package also has.
from filestore import safe_text, shown_path

if TYPE_CHECKING:
    from filestore import Answer, FilestoreError, Finding, Hit, Shown, Status

Role = Literal["text", "title", "quiet", "good", "warning", "error"]

MAX_BODY_CHARACTERS: Final = 50_000
"""Longer texts are cut in the preview: a screen is no place for a megabyte."""
MAX_PATHS: Final = 200
"""Paths listed under one code; the rest is counted."""
_MAX_VALUE_CHARACTERS: Final = 300
_LABEL_WIDTH: Final = 11
_OWN_KEYS: Final = frozenset({"headings", "origin", "source", "kind"})
"""Keys of the frontmatter that are shown in words of their own, or mean nothing to a reader."""

_SEVERITY: Final[Mapping[str, tuple[str, Role]]] = {
    "E": ("error", "error"),
    "W": ("warning", "warning"),
    "I": ("note", "quiet"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line, or for the body of a chunk one block of lines, with its part in the picture."""

    text: str
    role: Role = "text"


def one_line(text: object) -> str:
    """Any value as one line that is safe for a terminal."""
    return safe_text(str(text), keep_newlines=False)


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def summary(status: "Status | None", *, root: str, checked_at: str) -> list[Line]:
    """The line at the top: which store, how it stands, and when that was found out.

    Args:
        status: None while it is being found out.
        root: The folder of the store.
        checked_at: The time of day at which `status` was found out.
    """
    if status is None:
        return [Line(text=f"checking … · {shown_path(root)}", role="quiet")]
    state, role = _state(status)
    # The state first: a narrow screen cuts what comes last.
    parts = [
        f"{state} at {checked_at}",
        count(status.files, "file"),
        f"generation {status.generation:,}",
        shown_path(root),
    ]
    return [Line(text=" · ".join(parts), role=role)]


def _state(status: "Status") -> tuple[str, Role]:
    if not status.findings:
        return "clean", "good"
    found = count(len(status.findings), "finding")
    if status.clean:
        return f"clean, with {found} accepted or only worth knowing", "good"
    worst = min("EWI".index(finding.severity) for finding in status.findings)
    return found, _SEVERITY["EWI"[worst]][1]


def resource_label(item: Mapping[str, Any]) -> str:
    """A resource in the tree."""
    return f"{shown_path(item['resource']) or '(no resource)'}  {item['chunks']:,}"


def resource_lines(item: Mapping[str, Any]) -> list[Line]:
    """What the preview says of a resource."""
    lines = [Line(text=shown_path(item["resource"]) or "(no resource)", role="title")]
    lines.append(_field("source", shown_path(item["source"]) if item["source"] else "none known"))
    lines.append(_field("chunks", f"{item['chunks']:,}"))
    return lines


def chunk_label(item: Mapping[str, Any], resource: str, found: Sequence["Finding"]) -> str:
    """A chunk file in the tree, under its resource.

    Args:
        item: What the store lists of it.
        resource: The resource it stands under.
        found: The findings about this file.
    """
    path = item["path"].removeprefix("chunked/")
    name = path.removeprefix(f"{resource}/") if resource else path
    marks = [finding.code for finding in found]
    if item["withheld"] and item["withheld"] not in marks:
        marks.append(item["withheld"])
    if item["edited"]:
        marks.append("edited by hand")
    return shown_path(name) + (f"  [{one_line(', '.join(marks))}]" if marks else "")


def more_label(hidden: int, resource: str) -> str:
    """What stands in the tree for the chunks that it does not list."""
    return f"… {hidden:,} more: filestore ls {shown_path(resource)}"


def chunk_lines(shown: "Shown", found: Sequence["Finding"]) -> list[Line]:
    """The preview of a chunk file: what is known of it, then its text."""
    record = shown.record
    lines = [Line(text=shown_path(shown.path), role="title")]
    headings = shown.frontmatter.get("headings")
    if isinstance(headings, list | tuple) and headings:
        lines.append(_field("headings", " > ".join(str(heading) for heading in headings)))
    source = record.get("source") or shown.frontmatter.get("source")
    lines.append(_field("source", shown_path(str(source)) if source else "none known"))
    lines.append(_freshness(record))
    kind = record.get("kind") or shown.frontmatter.get("kind")
    if kind and kind != "chunk":
        lines.append(_field("kind", kind))
    if record.get("hand_edited"):
        lines.append(_field("edited", "by hand, since it was generated"))
    for key, value in shown.frontmatter.items():
        if key not in _OWN_KEYS:
            lines.append(_field(one_line(key), _value(value)))
    for key, value in (record.get("document") or {}).items():
        lines.append(_field("document", f"{key}: {_value(value)}"))
    lines += _finding_lines(found)
    return [*lines, Line(text=""), *_body(shown.body)]


def _field(label: str, value: object, role: Role = "quiet") -> Line:
    return Line(text=f"{label:<{_LABEL_WIDTH}}{one_line(value)}", role=role)


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _cut(text, _MAX_VALUE_CHARACTERS)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _freshness(record: Mapping[str, Any]) -> Line:
    if record.get("withheld"):
        return _field("freshness", f"left out of answers: {record['withheld']}", "error")
    if not record.get("indexed"):
        return _field("freshness", "not indexed: no search finds it", "warning")
    if record.get("freshness") == "fresh":
        return _field("freshness", "fresh: as it was indexed", "good")
    return _field("freshness", "edited: not what was indexed", "warning")


def _finding_lines(found: Iterable["Finding"]) -> list[Line]:
    lines = []
    for finding in found:
        word, role = _SEVERITY[finding.severity]
        lines.append(_field(word, f"{finding.code}: {finding.repair}", role))
    return lines


def _body(body: str) -> list[Line]:
    text = body.rstrip("\n")
    lines = [Line(text=safe_text(text[:MAX_BODY_CHARACTERS].replace("\r\n", "\n")))]
    hidden = len(text) - MAX_BODY_CHARACTERS
    if hidden > 0:
        lines.append(
            Line(text=f"… {count(hidden, 'character')} more: filestore show", role="warning")
        )
    return lines


def drift_lines(status: "Status | None") -> list[Line]:
    """The drift: every code once, with how bad it is, what helps, and its paths."""
    if status is None:
        return [Line(text="checking …", role="quiet")]
    if not status.findings:
        return [
            Line(text="clean", role="good"),
            Line(text=f"{count(status.files, 'file')} as indexed, by size and time stamps."),
            Line(text="'filestore verify --level full' reads every byte.", role="quiet"),
        ]
    groups: dict[str, list[Finding]] = {}
    for finding in status.findings:
        groups.setdefault(finding.code, []).append(finding)
    lines: list[Line] = []
    for members in groups.values():
        lines += [*_group(members), Line(text="")]
    safe = sum(finding.safe for finding in status.findings)
    lines.append(Line(text=f"'filestore sync' mends {safe:,} of {len(status.findings):,}."))
    return lines


def _group(members: Sequence["Finding"]) -> list[Line]:
    first = members[0]
    word, role = _SEVERITY[first.severity]
    lines = [
        Line(text=f"{word}: {first.code} ({len(members):,})", role=role),
        Line(text=f"  repair: {one_line(first.repair)}", role="quiet"),
    ]
    details = {finding.detail for finding in members}
    if len(details) == 1 and first.detail:
        lines.insert(1, Line(text=f"  {one_line(first.detail)}", role="quiet"))
    for finding in members[:MAX_PATHS]:
        detail = f"  {one_line(finding.detail)}" if len(details) > 1 else ""
        lines.append(Line(text=f"    {shown_path(finding.path) or 'the whole store'}{detail}"))
    if len(members) > MAX_PATHS:
        lines.append(
            Line(text=f"  … {len(members) - MAX_PATHS:,} more: filestore status --json", role=role)
        )
    return lines


def error_lines(error: "FilestoreError", found: Sequence["Finding"] = ()) -> list[Line]:
    """What went wrong and what to do about it."""
    lines = [Line(text=one_line(error.message), role="error")]
    if error.remedy:
        lines.append(Line(text=f"try: {one_line(error.remedy)}"))
    return lines + _finding_lines(found)


def start_lines(error: "FilestoreError", *, absent: bool) -> list[Line]:
    """The screen that stands where no store can be opened.

    Args:
        error: Why it cannot be opened.
        absent: Whether there is no store at all, so that one has to be made.
    """
    lines = error_lines(error)
    if absent:
        lines += [
            Line(text=""),
            Line(text="To make a store and put documents in it:"),
            Line(text="  filestore init", role="title"),
            Line(text="  filestore add PATH…", role="title"),
            Line(text="  filestore tui", role="title"),
        ]
    return [*lines, Line(text=""), Line(text="r tries again, q quits", role="quiet")]


def mode_line(mode: str) -> list[Line]:
    """Under the search box: the mode, and the key that changes it."""
    other = "keyword" if mode == "hybrid" else "hybrid"
    return [Line(text=f"{mode} search (ctrl+t: {other})", role="quiet")]


def answer_lines(answer: "Answer", *, limit: int) -> list[Line]:
    """Above the hits: how many there are, by which mode, and what to know about them.

    Args:
        answer: What the store found.
        limit: How many files it was asked for; there may be more.
    """
    found = count(len(answer.hits), "file") if answer.hits else "nothing found"
    if len(answer.hits) >= limit:
        found = f"the best {found}"
    lines = [Line(text=f"{found} · {one_line(answer.mode)} · esc returns")]
    return lines + [Line(text=one_line(note), role="warning") for note in answer.notes]


def hit_lines(number: int, hit: "Hit") -> list[Line]:
    """One hit: its path, whether it can be relied on, and where in its document it stands."""
    path = shown_path(hit.path.removeprefix("chunked/"))
    lines = [Line(text=f"{number}. {path}", role="title")]
    if hit.freshness != "fresh":
        words = {"edited": "edited since it was indexed", "gone": "the file is gone"}
        lines.append(Line(text=f"   {words[hit.freshness]}", role="warning"))
    # The innermost headings tell hits of one document apart, and there is little room.
    about = " > ".join(hit.headings[-2:]) or hit.source or "no source"
    lines.append(Line(text=f"   {one_line(about)}", role="quiet"))
    return lines


HELP: Final = (
    ("up, down", "move through resources, chunks and hits"),
    ("enter", "open or close a resource; show the chunk"),
    ("tab", "go on to the next part of the screen, to scroll it"),
    ("/", "search; enter asks, escape returns to the resources"),
    ("ctrl+t", "search by hybrid or by keyword only"),
    ("d", "drift, and back to the chunk"),
    ("r", "look at the store again"),
    ("?", "this help"),
    ("q", "quit"),
)


def help_lines() -> list[Line]:
    """The keys, and what this inspector does not do."""
    lines = [Line(text="Keys", role="title")]
    lines += [Line(text=f"  {keys:<10}{meaning}") for keys, meaning in HELP]
    return [
        *lines,
        Line(text=""),
        Line(text="The inspector only looks: it changes neither files nor index."),
        Line(text="Drift is told by size and time stamps, as of the time shown at the top."),
        Line(text="'filestore sync' brings the index in step, 'filestore verify' checks all."),
    ]
