"""Lines for resources, chunk files, hits, neighbours. Pure.

One rule: every text of a line is safe for a terminal, whatever the file, name or key it came from.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

# The function, not the module of the same name that the package also has.
from filestore.browse import CHUNKS, CatalogNewerError, StorePath, Tree, safe_text, shown_path
from tui.formatting.findings import SEVERITY, drift_bar, place_of
from tui.formatting.lines import Line, Role, Span, arrow, count, cut, field, line, one_line, span
from tui.formatting.summaries import question_lines, relations

if TYPE_CHECKING:
    from filestore import Answer, FilestoreError, Finding
    from filestore.browse import About, AboutResource, ChunkRow, Family, Neighbour, ResourceRow

FIRST_PART: Final = 64 * 1024
"""Characters of a text that are shown at first."""
MOST_TITLE: Final = 40
"""Characters of a title in a row."""
MOST_PLACE: Final = 60
"""Characters of the headings above a chunk in its row."""
MOST_VALUE: Final = 300
"""Characters of one metadata value."""
MOST_LISTED: Final = 40
"""Vectors or sources of one file that are listed; the rest is counted."""
SECTIONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("text", "t", "Text"),
    ("raw", "o", "Raw"),
    ("facts", "f", "Facts"),
    ("neighbours", "b", "Neighbours"),
    ("family", "c", "Tree"),
    ("map", "m", "Map"),
)
"""Name, key and title of each view of a chunk."""
MODES: Final = ("hybrid", "vector", "keyword")
_PREFIXES: Final[Mapping[str, str]] = {"h:": "hybrid", "v:": "vector", "k:": "keyword"}
"""The prefix of a query that chooses the search mode."""
KINDS: Final = ("kind:summary", "kind:chunk")
"""Words of a query that keep to one kind of file."""
SYNTAXES: Final = ("syntax:auto", "syntax:plain", "syntax:operators")
_MODE_WORDS: Final = {
    "hybrid": "by meaning and by words",
    "vector": "by meaning (v:)",
    "keyword": "by words (k:)",
}
_MARKS: Final[Mapping[str, tuple[str, str, Role]]] = {
    severity: (f"{severity} {sign}", word, role)
    for severity, (sign, word, role) in SEVERITY.items()
}
"""Letter and glyph, word and role of a severity."""
_FRESHNESS: Final[Mapping[str, tuple[str, Role]]] = {
    "fresh": ("fresh: as indexed", "good"),
    "edited": ("edited since it was indexed", "warning"),
    "gone": ("the file is gone", "error"),
    "not indexed": ("not indexed: no search finds it", "warning"),
}
_NOTHING: Final[Mapping[str, str]] = {
    "filter": "Nothing matches the filter; escape clears it.",
    "search": "No results; escape returns to the tree.",
    "looking": "Nothing is indexed; looking for files …",
}
"""Why there is nothing to show."""
_SHOWN_ELSEWHERE: Final = frozenset(
    {"children", "headings", "kind", "level", "origin", "questions", "questions_origin", "source"}
)
"""Frontmatter keys that are shown under labels of their own."""


# Rows of the tree


def resource_row(
    row: "ResourceRow",
    found: Mapping[str, int],
    *,
    is_open: bool,
    shown: int | None = None,
    ascii_only: bool = False,
) -> Line:
    """A resource in the tree.

    Args:
        row: What the catalog lists of it.
        found: Its findings by severity.
        is_open: Whether its chunks stand below it.
        shown: How many of them pass the filter; None without one.
        ascii_only: Whether the screen shows no more than ASCII.
    """
    chunks = f"{row.chunks:,}" if shown is None else f"{shown:,} of {row.chunks:,}"
    drift = drift_bar(found, row.chunks, ascii_only=ascii_only)
    return (
        Span(arrow(is_open=is_open, ascii_only=ascii_only), "quiet"),
        span(shown_path(row.resource) or "(no resource)", "title"),
        Span(f"  {chunks}", "quiet"),
        *((Span(" "), *drift) if drift else ()),
        *severity_marks(found),
        *((span(f"  {cut(row.title, MOST_TITLE)}", "quiet"),) if row.title else ()),
    )


def chunk_row(row: "ChunkRow", resource: str, found: Sequence["Finding"]) -> Line:
    """A chunk file in the tree, under its resource: what it is, its worst findings first."""
    parts = [
        Span("    "),
        span(chunk_name(row.path, resource)),
        *finding_marks(found, row.withheld),
    ]
    if row.edited:
        parts.append(Span("  edited by hand", "note"))
    if row.title:
        parts.append(span(f"  {cut(row.title, MOST_TITLE)}", "title"))
    if row.size_bytes is not None:
        parts.append(Span(f"  {size(row.size_bytes)}", "quiet"))
    above = row.headings[:-1] if row.headings[-1:] == (row.title,) else row.headings
    if above:
        parts.append(span(f"  {cut(' > '.join(above), MOST_PLACE)}", "quiet"))
    return tuple(parts)


def severity_marks(found: Mapping[str, int]) -> list[Span]:
    """How much is found of something, worst first."""
    return [
        Span(f" {_MARKS[severity][0][0]}{found[severity]:,}", _MARKS[severity][2])
        for severity in "EWI"
        if found.get(severity)
    ]


def finding_marks(found: Sequence["Finding"], withheld: str) -> list[Span]:
    """What is found of one file, worst first, and what keeps it out of answers."""
    parts: list[Span] = []
    for finding in sorted(found, key=lambda one: "EWI".index(one.severity)):
        mark, _, role = _MARKS[finding.severity]
        parts.append(span(f"  {mark} {finding.code}", role))
    if withheld and all(finding.code != withheld for finding in found):
        parts.append(span(f"  excluded: {withheld}", "error"))
    return parts


def size(size_bytes: int) -> str:
    """A number of bytes in few characters."""
    amount = float(size_bytes)
    for unit in ("B", "KB", "MB"):
        if amount < 1_000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1_000
    return f"{amount:,.1f} GB"


def document_row(row: "ChunkRow", about: "ResourceRow") -> Line:
    """A document in the tree, above its chunks: its name below the source of its resource."""
    none = "(summaries)" if row.kind == "summary" else "(no document)"
    name = row.source.removeprefix(f"{about.source}/") if row.source else none
    return (Span("  "), span(shown_path(StorePath(name)), "title"))


def chunk_name(path: str, resource: str) -> str:
    """A path as it stands below its resource."""
    below = CHUNKS.chunk_path(StorePath(path))
    return shown_path(below.removeprefix(f"{resource}/") if resource else below)


def count_line(
    *, shown: int, resources: int, chunks: int | None, filtered: str, in_place: bool
) -> Line:
    """Below the tree: what there is of it, and what the filter leaves."""
    above, below = ("document", "section") if in_place else ("resource", "chunk")
    message = count(resources, above)
    if filtered:
        return (
            span(f"{count(shown, below)} of {message} for ", "quiet"),
            span(cut(filtered, 40), "match"),
            Span("  escape shows all", "quiet"),
        )
    return line(message if chunks is None else f"{message} · {count(chunks, below)}", "quiet")


def filtering_line(filtered: str) -> Line:
    """Below the tree, while it is not known what a filter leaves."""
    return (Span("filtering … ", "note"), span(cut(filtered, 40), "match"))


def absence_lines(error: "FilestoreError") -> list[Line]:
    """Shown where the index cannot be read, with the key that rebuilds it."""
    if isinstance(error, FileNotFoundError):
        return [
            line("This store has no index yet:", "title"),
            (Span("i", "key"), Span(" builds it from its files", "text")),
        ]
    lines = [line(shown_path(error.message), "error")]
    if isinstance(error, CatalogNewerError) or "sync" not in error.remedy:
        return [*lines, (Span("try: ", "quiet"), span(error.remedy))] if error.remedy else lines
    return [*lines, (Span("i", "key"), Span(" rebuilds the index from its files", "text"))]


def unindexed_lines(files: int, *, is_short: bool = False) -> list[Line]:
    """Shown for files that no search finds, with the key that changes it.

    Args:
        files: How many.
        is_short: Whether there is little room for it.
    """
    if not files:
        return []
    if is_short:
        return [(span(f"{files:,} not indexed: ", "warning"), Span("i", "key"), Span(" indexes"))]
    verb, them = ("is", "it") if files == 1 else ("are", "them")
    return [
        line(f"{count(files, 'file')} {verb} not indexed yet:", "warning"),
        (Span("i", "key"), Span(f" indexes {them}")),
    ]


def nothing_lines(*, why: str, index: Sequence[Line] = (), in_place: bool = False) -> list[Line]:
    """The detail where there is nothing under the cursor.

    Args:
        why: "filter", "search", "asking", "looking" while the files are not known yet, or
            "empty" for a store with nothing in it.
        index: Lines about the index.
        in_place: Whether the documents of the store are its files.
    """
    if why in _NOTHING:
        return [line(_NOTHING[why], "quiet")]
    if index:
        return list(index)
    if in_place:
        return [
            line("No documents in this folder yet.", "title"),
            (),
            line("Put some there; then i indexes them.", "quiet"),
        ]
    return [
        line("Nothing in this store yet.", "title"),
        (),
        line("filestore add PATH…", "key"),
        line("adds documents; ':' takes that command here.", "quiet"),
    ]


# One chunk file


def section_labels(section: str) -> dict[str, Line]:
    """The views of a chunk, the current one in brackets."""
    found: dict[str, Line] = {}
    for name, key, title in SECTIONS:
        if name == section:
            found[name] = (span(f"[{title}]", "title"),)
        else:
            found[name] = (Span(f"{key} ", "key"), span(title, "quiet"))
    return found


def head_lines(about: "About", found: Sequence["Finding"]) -> list[Line]:
    """Above a chunk: its path, its source, its state, its findings."""
    kind = f"  {about.kind}" if about.kind not in ("", "chunk", "document") else ""
    first = (span(shown_path(about.path), "title"), *(line(kind, "note") if kind else ()))
    second = [] if about.source == about.path else [*_source(about), Span("  ")]
    second += _state(about)
    if about.tags:
        second.append(span(f"  {' '.join(f'#{tag}' for tag in about.tags[:MOST_LISTED])}", "note"))
    if about.hand_edited:
        second.append(Span("  edited by hand", "note"))
    third = [
        span(f"{_MARKS[one.severity][0]} {one.code}  ", _MARKS[one.severity][2]) for one in found
    ]
    return [first, tuple(second), *([tuple(third)] if third else [])]


def _source(about: "About") -> list[Span]:
    found = [span(shown_path(about.source) if about.source else "no source known", "quiet")]
    if about.pages:
        found.append(span(f"  {_pages(about.pages)}", "quiet"))
    return found


def _state(about: "About") -> Line:
    if about.withheld:
        return (span(f"excluded from search: {about.withheld}", "error"),)
    words, role = _FRESHNESS.get(about.freshness, (about.freshness, "quiet"))
    return (span(words, role),)


def _pages(pages: Sequence[int]) -> str:
    numbers = ", ".join(str(page) for page in pages[:12]) + (" …" if len(pages) > 12 else "")
    return f"{'p.' if len(pages) == 1 else 'pp.'} {numbers}"


def problem_lines(about: "About") -> list[Line]:
    """Above the text of a file that is no proper chunk: why."""
    return [line(about.problem, "error"), ()] if about.problem else []


def text_lines(text: str, *, whole: bool = False) -> list[Line]:
    """A text as it is, line by line; of a long one the first part, unless the whole is wanted."""
    shown = text if whole else first_part(text)
    shown = safe_text(shown.replace("\r\n", "\n").expandtabs(4))
    lines: list[Line] = [(Span(one),) for one in shown.removesuffix("\n").split("\n")]
    return lines if whole else lines + more_lines(text)


def first_part(text: str) -> str:
    """As much of a text as is shown at first, cut at the end of a line where there is one."""
    if len(text) <= FIRST_PART:
        return text
    end = text.rfind("\n", FIRST_PART // 2, FIRST_PART)
    return text[: end if end > 0 else FIRST_PART]


def more_lines(text: str) -> list[Line]:
    """Shown below the first part of a longer text."""
    hidden = len(text) - len(first_part(text))
    if not hidden:
        return []
    more = f"… {count(hidden, 'character')} more: press o for the whole file"
    return [(), line(more, "warning")]


def raw_lines(about: "About") -> list[Line]:
    """The whole file as it is on disk."""
    if about.kind == "document" and not about.raw:
        return [line("This file is no text: t shows what was read of it.", "quiet")]
    lines = text_lines(about.raw, whole=True)
    if about.raw_cut:
        lines += [(), line("… the file is longer: e opens it in an editor", "warning")]
    return lines


def finding_lines(found: Iterable["Finding"]) -> list[Line]:
    """What is wrong with a file, and what repairs it."""
    lines: list[Line] = []
    for finding in found:
        mark, word, role = _MARKS[finding.severity]
        message = f"{finding.code}: {finding.detail}" if finding.detail else finding.code
        lines.append((span(f"{mark} {word:<8}", role), span(message)))
        lines.append((Span(" " * 12), span(f"repair: {finding.repair}", "quiet")))
    return lines


def fact_lines(about: "About", family: "Family | None" = None) -> list[Line]:
    """Everything known of a chunk file but its text, and what is above and below it."""
    own = {key: one for key, one in about.frontmatter.items() if key not in _SHOWN_ELSEWHERE}
    document = about.record.get("document") or {}
    parts = (
        ("Document" if about.kind == "document" else "Provenance", _provenance(about)),
        ("Questions and keys", question_lines(about)),
        ("Frontmatter", [_entry(key, value) for key, value in own.items()]),
        ("Document metadata", [_entry(key, value) for key, value in document.items()]),
        *relations(about, family),
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
        lines.append(field("sections", f"{len(about.sections):,}"))
        lines.append((span(f"{'state':<11}", "quiet"), *_state(about)))
        return lines
    known = shown_path(about.source) if about.source else "none known"
    lines = [field("source", known)]
    if about.pages:
        lines.append(field("pages", _pages(about.pages)))
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
    lines: list[Line] = [field("model", about.model or "unknown")]
    for vector in about.vectors[:MOST_LISTED]:
        what = "body" if vector.part == 0 else f"question {vector.part}"
        if about.kind == "document":
            what = f"section {vector.part + 1:<2}"
        norm = "not stored" if vector.norm is None else f"norm {vector.norm:.4f}"
        when = vector.when if vector.embedded else "not embedded"
        lines.append(
            field(what, f"{vector.id}  {norm}  {when}", "text" if vector.embedded else "warning")
        )
    if len(about.vectors) > MOST_LISTED:
        lines.append(field("", f"… {len(about.vectors) - MOST_LISTED:,} more", "quiet"))
    if not about.vectors:
        lines.append(field("vectors", "none: nothing of this file is indexed", "warning"))
    return lines


def _hashes(about: "About") -> list[Line]:
    is_same = about.file_hash == about.indexed_hash
    lines: list[Line] = [field("on disk", about.file_hash or "no file")]
    if about.indexed_hash:
        same = " (the same)" if is_same else " (another)"
        lines.append(field("indexed", about.indexed_hash + same, "text" if is_same else "warning"))
    else:
        lines.append(field("indexed", "never", "warning"))
    if about.origin:
        lines.append(field("generated", about.origin))
    if about.generation:
        lines.append(field("generation", f"{about.generation:,}"))
    return lines


def resource_lines(
    about: "AboutResource", found: Mapping[str, int], *, moved_to: str = ""
) -> list[Line]:
    """What is known of a resource."""
    lines: list[Line] = [
        line(shown_path(about.resource) or "(no resource)", "title"),
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
    parts: list[Span] = []
    for severity, (mark, word, role) in _MARKS.items():
        if found.get(severity):
            parts.append(span(f"{mark} {count(found[severity], word)}  ", role))
    lines.append((span(f"{'drift':<11}", "quiet"), *(tuple(parts) or line("none known", "good"))))
    if moved_to:
        lines.append(field("moved to", shown_path(moved_to), "warning"))
    for source, metadata in about.documents:
        lines += [(), line(shown_path(source) or "(no source)", "title")]
        lines += [_entry(key, value) for key, value in metadata.items()]
    return lines


def moved_lines(found: Sequence["Finding"], path: str = "") -> list[Line]:
    """Where a file is now that the catalog has under another path."""
    moved = (one for one in found if one.code == "moved" and one.path != path)
    return [line(f"it is {shown_path(one.path)} now", "warning") for one in moved]


def error_lines(error: "FilestoreError", found: Sequence["Finding"] = ()) -> list[Line]:
    """What went wrong, and what to do about it."""
    lines = [line(shown_path(error.message), "error")]
    if error.remedy:
        lines.append((Span("try: ", "quiet"), span(error.remedy)))
    lines += moved_lines(found)
    return [*lines, (), *finding_lines(found)] if found else lines


# Searching, neighbours


def parse_query(text: str, mode: str) -> tuple[str, str]:
    """The query and its mode: `v:`, `k:` or `h:` decides, else the mode set."""
    asked = text.strip()
    chosen = _PREFIXES.get(asked[:2].lower())
    return (asked[2:].strip(), chosen) if chosen else (asked, mode)


def longest_word(query: str) -> str:
    """The part of a query to highlight in a text: its first phrase, else its longest word."""
    phrase = query.split('"')[1:2] if query.count('"') > 1 else []
    wanted = [word.strip('"*+()') for word in query.split() if not word.startswith("-")]
    return (phrase or sorted(wanted, key=len, reverse=True) or [""])[0]


def parse_source(text: str) -> tuple[str, str | None]:
    """The words of a query without its `in:GLOB`, and that glob over sources."""
    words = text.split(" ")
    globs = [word for word in words if word.startswith("in:") and len(word) > 3]
    kept = " ".join(word for word in words if word not in globs).strip()
    return kept, globs[-1][3:] if globs else None


def parse_named(text: str, among: Collection[str]) -> tuple[str, str]:
    """The words of a query without those of `KINDS` or `SYNTAXES`, and what the last one names."""
    words = text.split(" ")
    named = [word for word in words if word in among]
    kept = " ".join(word for word in words if word not in among).strip()
    return kept, named[-1].partition(":")[2] if named else ""


def next_mode(mode: str) -> str:
    """The mode after this one."""
    return MODES[(MODES.index(mode) + 1) % len(MODES)]


def has_mode(text: str) -> bool:
    """Whether a query has a mode prefix."""
    return text.strip()[:2].lower() in _PREFIXES


def other_mode(text: str) -> str:
    """A query with the next mode prefix in place of its own; "" for one without."""
    if not has_mode(text):
        return ""
    asked, mode = parse_query(text, MODES[0])
    wanted = next_mode(mode)
    return next(prefix for prefix, name in _PREFIXES.items() if name == wanted) + asked


def mode_lines(mode: str, *, is_typed: bool = False) -> list[Line]:
    """Below the search box: the mode, what changes it, other options.

    Args:
        mode: The search mode.
        is_typed: Whether the query has a prefix of its own.
    """
    how = f"{_MODE_WORDS[mode]}, this time" if is_typed else _MODE_WORDS[mode]
    return [
        (span(how, "note"), Span("  ^t changes it", "quiet")),
        line("in:GLOB and kind:summary keep to those", "quiet"),
    ]


def asking_lines(query: str, seconds: float, *, shown_after_s: float = 0.0) -> list[Line]:
    """While an answer is awaited: the query, and after a moment how long it takes."""
    asking: Line = (Span("searching for ", "quiet"), span(cut(query, 60), "match"))
    if seconds < shown_after_s:
        return [asking]
    return [asking, line(f"asking … {seconds:.1f} s, escape cancels", "quiet")]


def cancelled_line(query: str) -> Line:
    """In place of an answer that was cancelled."""
    return (Span("cancelled: ", "quiet"), span(cut(query, 60), "match"))


def answer_lines(answer: "Answer", *, limit: int) -> list[Line]:
    """Above the hits: how many there are, by which mode, and the notes of the search.

    Args:
        answer: What the store found.
        limit: How many files it was asked for; there may be more.
    """
    found = count(len(answer.hits), "file") if answer.hits else "nothing found"
    if answer.respelt:
        found = f"nothing for {cut(answer.query, 60)}; for {cut(answer.respelt, 60)}: {found}"
    elif answer.nearest:
        found = f"nothing close; the nearest {count(len(answer.nearest), 'file')}"
    elif len(answer.hits) >= limit:
        found = f"the best {found}"
    lines = [line(f"{found} · {answer.mode} · escape returns", "quiet")]
    return lines + [line(note, "warning") for note in answer.notes]


def neighbour_row(neighbour: "Neighbour", tree: Tree = CHUNKS) -> Line:
    """One of the nearest texts: how near, which file, where in its document."""
    parts = [
        Span(f"{neighbour.cosine:>5.2f} ", "note"),
        span(place_of(neighbour.path, tree)),
        *((Span(f":{neighbour.line}", "quiet"),) if neighbour.line else ()),
    ]
    if neighbour.pages:
        parts.append(span(f"  {_pages(neighbour.pages)}", "quiet"))
    if neighbour.headings:
        parts.append(span(f"  {' > '.join(neighbour.headings[-2:])}", "quiet"))
    return tuple(parts)


def neighbours_title(state: str) -> Line:
    """Above the neighbours.

    Args:
        state: "asking", "none", "cancelled", or "" where they are listed.
    """
    message = {"asking": "looking …", "": "cosine, nearest first"}.get(state, state)
    return span("Neighbours", "title"), Span(f"  {message}", "quiet")
