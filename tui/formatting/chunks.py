"""Lines for what is shown of one file, one resource or one folder. Pure.

One rule: every text of a line is safe for a terminal, whatever the file, name or key it came from.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

# The function, not the module of the same name that the package also has.
from filestore.browse import safe_text, shown_path
from tui.formatting import Line, Role, Span, count, cut, field, line, more_lines, one_line, span
from tui.formatting.findings import SEVERITY, severity_span
from tui.formatting.rows import (
    MOST_PLACE,
    STALE,
    made_from,
    pages_words,
    repeats,
    severity_marks,
    state_spans,
)

if TYPE_CHECKING:
    from filestore import Finding
    from filestore.browse import About, AboutResource, Family, Links, Row

FIRST_PART: Final = 64 * 1024
"""Characters of a text that are shown at first."""
MOST_VALUE: Final = 300
"""Characters of one metadata value."""
MOST_RELATIVES: Final = 40
"""Children of one summary that are listed among its facts; the rest is counted."""
_MOST_LINKS: Final = 200
"""Links of one document that are listed; the rest is counted."""
MOST_LISTED: Final = 40
"""Vectors or sources of one file that are listed; the rest is counted."""
SECTIONS: Final = ("text", "raw", "facts", "neighbours", "family", "map")
"""The views of a chunk, named as their actions are."""
_FRESHNESS: Final[Mapping[str, tuple[str, Role]]] = {
    "fresh": ("fresh: as indexed", "good"),
    "edited": ("edited since it was indexed", "warning"),
    "gone": ("the file is gone", "error"),
    "not indexed": ("not indexed: no search finds it", "warning"),
}
_SHOWN_ELSEWHERE: Final = frozenset(
    {"children", "headings", "kind", "level", "origin", "questions", "questions_origin", "source"}
)
"""Frontmatter keys that are shown under labels of their own."""


def section_labels(section: str, keys: Mapping[str, str]) -> dict[str, Line]:
    """The views of a chunk with their keys, the current one in brackets."""
    found: dict[str, Line] = {}
    for name, key in keys.items():
        if name == section:
            found[name] = (span(f"[{name.capitalize()}]", "title"),)
        else:
            found[name] = (Span(f"{key} ", "key"), span(name.capitalize(), "quiet"))
    return found


def head_lines(about: "About", found: Sequence["Finding"]) -> list[Line]:
    """Above a chunk: its path, its source, its state, its findings."""
    kind = f"  {about.kind}" if about.kind not in ("", "chunk", "document") else ""
    first = (span(shown_path(about.path), "title"), *(line(kind, "note") if kind else ()))
    second: list[Span] = []
    if about.source != about.path:
        source = shown_path(about.source) if about.source else "no source known"
        second.append(span(source, "quiet"))
        second += [span(f"  {pages_words(about.pages)}", "quiet")] if about.pages else []
        second.append(Span("  "))
    second += _state(about)
    if about.tags:
        tags = " ".join(f"#{tag}" for tag in about.tags[:MOST_LISTED])
        second.append(span(f"  {tags}", "note"))
    if about.hand_edited:
        second.append(Span("  edited by hand", "note"))
    third: list[Span] = []
    for one in found:
        mark = severity_span(one.severity, word=False)
        third.append(span(f"{mark.text} {one.code}  ", mark.role))
    return [first, tuple(second), *([tuple(third)] if third else [])]


def _state(about: "About") -> Line:
    if about.withheld:
        return line(f"excluded from search: {about.withheld}", "error")
    return line(*_FRESHNESS.get(about.freshness, (about.freshness, "quiet")))


def problem_lines(about: "About") -> list[Line]:
    """Above the text of a file that is no proper chunk: why."""
    return [line(about.problem, "error"), ()] if about.problem else []


def text_lines(text: str) -> list[Line]:
    """A text as it is, line by line."""
    shown = safe_text(text.replace("\r\n", "\n").expandtabs(4)).removesuffix("\n")
    return [(Span(one, line=number),) for number, one in enumerate(shown.split("\n"), start=1)]


def first_part(text: str) -> str:
    """As much of a text as is shown at first, cut at the end of a line where there is one."""
    if len(text) <= FIRST_PART:
        return text
    end = text.rfind("\n", FIRST_PART // 2, FIRST_PART)
    return text[: end if end > 0 else FIRST_PART]


def hidden_lines(text: str) -> list[Line]:
    """Shown below the first part of a longer text."""
    hidden = len(text) - len(first_part(text))
    if not hidden:
        return []
    return [(), line(f"… {count(hidden, 'character')} more: press o for the whole file", "warning")]


def raw_lines(about: "About") -> list[Line]:
    """The whole file as it is on disk."""
    if about.kind == "document" and not about.raw:
        return [line("This file is not text: t shows what was read of it.", "quiet")]
    lines = text_lines(about.raw)
    if about.raw_cut:
        lines += [(), line("… the file is longer: e opens it in an editor", "warning")]
    return lines


def finding_lines(found: Iterable["Finding"]) -> list[Line]:
    """What is wrong with a file, and what repairs it."""
    lines: list[Line] = []
    for finding in found:
        mark = severity_span(finding.severity)
        message = f"{finding.code}: {finding.detail}" if finding.detail else finding.code
        lines.append((Span(f"{mark.text} ", mark.role), span(message)))
        lines.append((Span(" " * 12), span(f"repair: {finding.repair}", "quiet")))
    return lines


def fact_lines(about: "About", family: "Family | None" = None) -> list[Line]:
    """Everything known of a chunk file but its text, and what is above and below it."""
    own = {key: one for key, one in about.frontmatter.items() if key not in _SHOWN_ELSEWHERE}
    document = about.record.get("document") or {}
    if family is None:
        made_of = [line(f"  {shown_path(one.path)}") for one in about.children[:MOST_RELATIVES]]
        made_of += more_lines(len(about.children), MOST_RELATIVES)
    else:
        made_of = _relatives(family.children)
    parts = (
        ("Document" if about.kind == "document" else "Provenance", _provenance(about)),
        ("Questions and keys", _question_lines(about)),
        ("Frontmatter", [_entry(key, value) for key, value in own.items()]),
        ("Document metadata", [_entry(key, value) for key, value in document.items()]),
        ("Made from", made_of),
        ("Summaries made from it", _relatives(family.above) if family is not None else []),
        ("Vectors", _vectors(about)),
        ("Hashes", _hashes(about)),
    )
    lines = problem_lines(about)
    for title, part in parts:
        if part:
            lines += [line(title, "title"), *part, ()]
    return lines[:-1] if lines and not lines[-1] else lines


def _provenance(about: "About") -> list[Line]:
    if about.kind == "document":
        lines = [field("title", about.headings[0])] if about.headings else []
        if about.tags:
            lines.append(field("tags", " ".join(f"#{tag}" for tag in about.tags)))
        lines.append(field("passages", f"{len(about.sections):,}"))
        lines.append((span(f"{'state':<11}", "quiet"), *_state(about)))
        return lines
    lines = [field("source", shown_path(about.source) if about.source else "none known")]
    if about.pages:
        lines.append(field("pages", pages_words(about.pages)))
    if about.headings:
        lines.append(field("headings", " > ".join(about.headings)))
    lines.append(field("kind", about.kind or "chunk"))
    by_hand = "yes, since it was generated" if about.hand_edited else "no, as it was generated"
    if not about.origin:
        by_hand = "unknown: the file does not record what was generated"
    lines.append(field("by hand", by_hand, "note" if about.hand_edited else "text"))
    lines.append((span(f"{'state':<11}", "quiet"), *_state(about)))
    return lines


def _entry(key: object, value: object) -> Line:
    label = cut(one_line(key), 40)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return (Span(f"{label:<10} ", "quiet"), span(cut(text, MOST_VALUE)))


def _vectors(about: "About") -> list[Line]:
    lines: list[Line] = [field("model", about.model.partition("|")[0] or "unknown")]
    for vector in about.vectors[:MOST_LISTED]:
        what = "body" if vector.part == 0 else f"question {vector.part}"
        if about.kind == "document":
            what = f"passage {vector.part + 1:<2}"
        norm = "not stored" if vector.norm is None else f"norm {vector.norm:.4f}"
        when = vector.when if vector.embedded else "not embedded"
        lines.append(
            field(what, f"{vector.id}  {norm}  {when}", "text" if vector.embedded else "warning")
        )
    lines += more_lines(len(about.vectors), MOST_LISTED)
    if not about.vectors:
        lines.append(field("vectors", "none: nothing of this file is indexed", "warning"))
    return lines


def _hashes(about: "About") -> list[Line]:
    is_same = about.file_hash == about.indexed_hash
    lines: list[Line] = [field("on disk", about.file_hash or "no file")]
    if about.indexed_hash:
        same = " (the same)" if is_same else " (another)" if about.file_hash else ""
        lines.append(field("indexed", about.indexed_hash + same, "text" if is_same else "warning"))
    else:
        lines.append(field("indexed", "never", "warning"))
    if about.origin:
        lines.append(field("generated", about.origin))
    if about.generation:
        lines.append(field("generation", f"{about.generation:,}"))
    return lines


def resource_lines(about: "AboutResource", found: Mapping[str, int]) -> list[Line]:
    """What is known of a resource."""
    lines: list[Line] = [
        line(shown_path(about.resource) or "(no document)", "title"),
        (),
        field("source", shown_path(about.source) if about.source else "none known"),
        field("chunks", f"{about.chunks:,}"),
    ]
    for label, value in (
        ("extractor", about.extractor),
        ("chunker", about.chunker),
        ("record", about.record_path),
    ):
        if value:
            lines.append(field(label, shown_path(str(value))))
    parts = [
        span(f"{severity} {sign} {count(found[severity], word)}  ", role)
        for severity, (sign, word, role) in SEVERITY.items()
        if found.get(severity)
    ]
    lines.append((span(f"{'drift':<11}", "quiet"), *(parts or line("none known", "good"))))
    for source, metadata in about.documents:
        lines += [(), line(shown_path(source) or "(no source)", "title")]
        lines += [_entry(key, value) for key, value in metadata.items()]
    return lines


def resource_head(
    about: "AboutResource", found: Mapping[str, int], what: str, *, moved_to: str = ""
) -> list[Line]:
    """Above a resource, or a folder: how many chunks or documents, what drifted, and where to."""
    source = f"  {shown_path(about.source)}" if about.source else ""
    moved = [line(f"moved to {shown_path(moved_to)}", "warning")] if moved_to else []
    return [
        line(shown_path(about.resource) or "(no document)", "title"),
        (span(count(about.chunks, what)), span(f"{source}  ", "quiet"), *severity_marks(found)),
        *moved,
    ]


def folder_lines(folder: str, inside: Sequence["Row"], documents: int) -> list[Line]:
    """The documents of a folder.

    Args:
        folder: Their folder.
        inside: The first ones.
        documents: How many there are.
    """
    names: list[Line] = []
    for row in inside:
        name = shown_path(row.path.removeprefix(folder))
        title = () if repeats(shown_path(row.title), name) else (span(f"  {row.title}", "quiet"),)
        names.append((span(name), *title))
    hint = line("enter shows them in the list, and hides them", "quiet")
    return [*names, *more_lines(documents, len(names)), (), hint]


def rule_line(path: str, width: int, *, is_gone: bool = False) -> Line:
    """Between the chunks of a text that is read as a whole."""
    name = shown_path(path.rpartition("/")[2]) + (", as it was indexed" if is_gone else "")
    return (Span("", "quiet"), span(f"── {name} {'─' * max(width - len(name) - 4, 0)}", "quiet"))


def left_line(chunks: int) -> Line:
    """Below the first chunks of a longer text."""
    return line(f"… {count(chunks, 'chunk')} more: l opens the list of them", "warning")


def place_line(about: "About", part: int | None) -> Line | None:
    """Which passage is shown, and where it is; None where that is the whole document."""
    section = about.section(part)
    if section is None:
        return None
    number = f"passage {(part or 0) + 1} of {len(about.sections)}"
    if section.line:
        where = f"lines {section.line}-{section.end_line}"
    else:
        where = f"p. {section.page}" if section.page else ""
    headings = cut(" > ".join(section.headings), MOST_PLACE)
    return (
        span(number, "note"),
        *((span(f"  {where}", "quiet"),) if where else ()),
        *((span(f"  {headings}", "title"),) if headings else ()),
    )


def link_lines(found: "Links") -> list[Line]:
    """The links of a document, and the links to it."""
    lines: list[Line] = []
    for title, links in (("Links", found.outgoing), ("Linked from", found.incoming)):
        if not links:
            continue
        lines.append(line(title, "title"))
        for one in links[:_MOST_LINKS]:
            other = one.target if title == "Links" else one.path
            where = f"  :{one.line}" if one.line else ""
            state = () if one.state == "there" else (span(f"  {one.state}", "warning"),)
            # A link to here is gone to at its line, one from here to its file.
            to = (str(other), 0 if title == "Links" else one.line or 0)
            name = Span(one_line(shown_path(other)), leads_to="" if state else to)
            lines.append((Span("  "), name, Span(where, "quiet"), *state))
        lines += [*more_lines(len(links), _MOST_LINKS), ()]
    return lines


def family_lines(family: "Family | None") -> list[Line]:
    """Above the list of what is above and below a file."""
    if family is None:
        return [line("no summary was made from it", "quiet")]
    node = family.node
    what = "a text"
    if node.kind == "summary":
        what = f"level {node.level} · made from {made_from(node.children)}"
    lines: list[Line] = [(Span("Family", "title"), Span(f"  {what}", "quiet"))]
    if node.why:
        lines.append((Span(f"{STALE[0]}: ", STALE[1]), span(node.why)))
    return lines


def _question_lines(about: "About") -> list[Line]:
    """The questions that a file answers, each with who wrote it."""
    own = set(about.own_questions)
    lines: list[Line] = []
    for number, question in enumerate(about.questions, start=1):
        found = [Span(f"{number:>3}. ", "quiet"), span(question)]
        if question in own:
            found.append(Span("  a person's own", "note"))
        elif about.questions_stale:
            found.append(Span(f"  generated, {STALE[0]}: its text changed", "warning"))
        else:
            found.append(Span("  generated", "quiet"))
        lines.append(tuple(found))
    return lines


def _relatives(nodes: "Sequence[Row]") -> list[Line]:
    lines: list[Line] = []
    for node in nodes[:MOST_RELATIVES]:
        title = (span(f"  {cut(node.title, 60)}", "quiet"),) if node.title else ()
        name = Span(one_line(shown_path(node.path)), leads_to=(node.path, 0))
        lines.append((Span("  "), *state_spans(node), name, *title))
    return lines + more_lines(len(nodes), MOST_RELATIVES)


def moved_lines(found: Sequence["Finding"], path: str = "") -> list[Line]:
    """Where a file is now that the catalog has under another path."""
    moved = (one for one in found if one.code == "moved" and one.path != path)
    return [line(f"it is {shown_path(one.path)} now", "warning") for one in moved]


def neighbours_title(state: str) -> Line:
    """Above the neighbours.

    Args:
        state: "asking", "none", "cancelled", or "" where they are listed.
    """
    message = {"asking": "looking …", "": "cosine, nearest first"}.get(state, state)
    return span("Neighbours", "title"), Span(f"  {message}", "quiet")
