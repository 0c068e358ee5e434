"""Words for what a store holds: resources, chunk files, hits, neighbours. Pure.

One rule: every text of a line is safe for a terminal, whatever the file, name or key it came from.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

# The function, not the module of the same name that the package also has.
from filestore import CatalogNewerError, safe_text, shown_path
from tui.words.findings import SEVERITY
from tui.words.lines import Line, Role, Span, count, cut, field, line, one_line, span
from tui.words.pictures import drift_bar

if TYPE_CHECKING:
    from filestore import (
        About,
        AboutResource,
        Answer,
        ChunkRow,
        FilestoreError,
        Finding,
        Hit,
        Neighbour,
        ResourceRow,
    )

FIRST_PART: Final = 64 * 1024
"""Characters of a text that are shown at first: a screen is no place for a megabyte."""
MOST_VALUE: Final = 300
"""Characters of one metadata value."""
MOST_VECTORS: Final = 40
"""Vectors of one file that are listed; the rest is counted."""
SECTIONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("text", "t", "Text"),
    ("raw", "o", "Raw"),
    ("facts", "f", "Facts"),
    ("neighbours", "b", "Neighbours"),
    ("picture", "m", "Picture"),
)
"""Name, key and title of each way to look at a chunk."""
MODES: Final = ("hybrid", "vector", "keyword")
_PREFIXES: Final[Mapping[str, str]] = {"h:": "hybrid", "v:": "vector", "k:": "keyword"}
"""What says before a query how is searched."""
_MODE_WORDS: Final = {
    "hybrid": "by meaning and words",
    "vector": "by meaning (v:)",
    "keyword": "by words (k:)",
}
_MARKS: Final[Mapping[str, tuple[str, str, Role]]] = {
    severity: (f"{severity} {sign}", word, role)
    for severity, (sign, word, role) in SEVERITY.items()
}
"""Letter and glyph, word and role of a severity."""
_FRESHNESS: Final[Mapping[str, tuple[str, Role]]] = {
    "fresh": ("fresh: as it was indexed", "good"),
    "edited": ("edited: not what was indexed", "warning"),
    "gone": ("the file is gone", "error"),
    "not indexed": ("not indexed: no search finds it", "warning"),
}
_NOTHING: Final[Mapping[str, str]] = {
    "filter": "Nothing is left by the filter; escape shows everything.",
    "search": "Nothing was found; escape returns to the tree.",
    "looking": "Nothing is indexed; looking for files …",
}
"""Why there is nothing to be shown, in words."""
_SAID_ELSEWHERE: Final = frozenset({"headings", "kind", "origin", "questions", "source"})
"""Keys of the frontmatter that the facts say in words of their own."""


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
    arrow = ("- " if is_open else "+ ") if ascii_only else ("▾ " if is_open else "▸ ")
    chunks = f"{row.chunks:,}" if shown is None else f"{shown:,} of {row.chunks:,}"
    marks = [
        Span(f" {_MARKS[severity][0][0]}{found[severity]:,}", _MARKS[severity][2])
        for severity in "EWI"
        if found.get(severity)
    ]
    drift = drift_bar(found, row.chunks, ascii_only=ascii_only)
    return (
        Span(arrow, "quiet"),
        span(shown_path(row.resource) or "(no resource)", "title"),
        Span(f"  {chunks}", "quiet"),
        *((Span(" "), *drift) if drift else ()),
        *marks,
    )


def chunk_row(row: "ChunkRow", resource: str, found: Sequence["Finding"]) -> Line:
    """A chunk file in the tree, under its resource; its worst findings first."""
    parts: list[Span] = [Span("    "), span(chunk_name(row.path, resource))]
    for finding in sorted(found, key=lambda one: "EWI".index(one.severity)):
        mark, _, role = _MARKS[finding.severity]
        parts.append(span(f"  {mark} {finding.code}", role))
    if row.withheld and all(finding.code != row.withheld for finding in found):
        parts.append(span(f"  left out: {row.withheld}", "error"))
    if row.edited:
        parts.append(Span("  edited by hand", "note"))
    return tuple(parts)


def chunk_name(path: str, resource: str) -> str:
    """A path as it stands below its resource."""
    below = path.removeprefix("chunked/")
    return shown_path(below.removeprefix(f"{resource}/") if resource else below)


def count_line(*, shown: int, resources: int, chunks: int | None, filtered: str) -> Line:
    """Below the tree: what there is of it, and what the filter leaves."""
    if filtered:
        return (
            span(f"{count(shown, 'chunk')} of {count(resources, 'resource')} for ", "quiet"),
            span(cut(filtered, 40), "match"),
            Span("  escape shows all", "quiet"),
        )
    said = count(resources, "resource")
    return line(said if chunks is None else f"{said} · {count(chunks, 'chunk')}", "quiet")


def problem_line(problem: str) -> Line:
    """What is wrong with what was typed."""
    return line(problem, "error")


def filtering_line(filtered: str) -> Line:
    """Below the tree, while it is not known what a filter leaves."""
    return (Span("filtering … ", "note"), span(cut(filtered, 40), "match"))


def absence_lines(error: "FilestoreError") -> list[Line]:
    """What is said where the index cannot be read, with the key that makes it."""
    if isinstance(error, FileNotFoundError):
        return [
            line("This store has no index yet:", "title"),
            (Span("i", "key"), Span(" makes it from its files", "text")),
        ]
    lines = [line(error.message, "error")]
    if isinstance(error, CatalogNewerError) or "sync" not in error.remedy:
        return [*lines, (Span("try: ", "quiet"), span(error.remedy))] if error.remedy else lines
    return [*lines, (Span("i", "key"), Span(" makes the index again from its files", "text"))]


def unindexed_lines(files: int, *, is_short: bool = False) -> list[Line]:
    """What is said of files that no search finds, with the key that changes it.

    Args:
        files: How many.
        is_short: Whether there is little room for it.
    """
    if not files:
        return []
    if is_short:
        return [
            (
                span(f"{files:,} not indexed: ", "warning"),
                Span("i", "key"),
                Span(" indexes", "text"),
            )
        ]
    verb, them = ("is", "it") if files == 1 else ("are", "them")
    return [
        line(f"{count(files, 'file')} {verb} not indexed yet:", "warning"),
        (Span("i", "key"), Span(f" indexes {them}", "text")),
    ]


def nothing_lines(*, why: str, index: Sequence[Line] = ()) -> list[Line]:
    """The detail where there is nothing under the cursor.

    Args:
        why: "filter", "search", "asking", "looking" while nobody knows what files there are, or
            "empty" for a store with nothing in it.
        index: What is to be said of the index.
    """
    if why in _NOTHING:
        return [line(_NOTHING[why], "quiet")]
    if index:
        return list(index)
    return [
        line("Nothing in this store yet.", "title"),
        (),
        line("filestore add PATH…", "key"),
        line("puts documents in it; ':' takes that command here.", "quiet"),
    ]


# One chunk file


def section_words(section: str, *, picture: str = "") -> dict[str, Line]:
    """The ways to look at a chunk by name, the present one marked by brackets too."""
    found: dict[str, Line] = {}
    for name, key, title in SECTIONS:
        shown = f"{title}: {picture}" if name == "picture" and picture else title
        if name == section:
            found[name] = (span(f"[{shown}]", "title"),)
        else:
            found[name] = (Span(f"{key} ", "key"), span(shown, "quiet"))
    return found


def head_lines(about: "About", found: Sequence["Finding"]) -> list[Line]:
    """Above a chunk: its path, where it comes from, how it stands."""
    first: list[Span] = [span(shown_path(about.path), "title")]
    if about.kind and about.kind != "chunk":
        first.append(span(f"  {about.kind}", "note"))
    where = shown_path(about.source) if about.source else "no source known"
    second = [span(where, "quiet")]
    if about.pages:
        second.append(span(f"  {_pages(about.pages)}", "quiet"))
    second += [Span("  "), *_state(about)]
    if about.hand_edited:
        second.append(Span("  edited by hand", "note"))
    third = [
        span(f"{_MARKS[one.severity][0]} {one.code}  ", _MARKS[one.severity][2]) for one in found
    ]
    lines: list[Line] = [tuple(first), tuple(second)]
    return [*lines, tuple(third)] if third else lines


def _state(about: "About") -> Line:
    if about.withheld:
        return (span(f"left out of answers: {about.withheld}", "error"),)
    words, role = _FRESHNESS.get(about.freshness, (about.freshness, "quiet"))
    return (span(words, role),)


def _pages(pages: Sequence[int]) -> str:
    numbers = ", ".join(str(page) for page in pages[:12]) + (" …" if len(pages) > 12 else "")
    return f"{'p.' if len(pages) == 1 else 'pp.'} {numbers}"


def problem_lines(about: "About") -> list[Line]:
    """Above the text of a file that is no proper chunk: why."""
    if not about.problem:
        return []
    return [line(about.problem, "error"), ()]


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
    """What is said below the first part of a longer text."""
    hidden = len(text) - len(first_part(text))
    if not hidden:
        return []
    more = f"… {count(hidden, 'character')} more: press o for the whole file"
    return [(), line(more, "warning")]


def raw_lines(about: "About") -> list[Line]:
    """The whole file as it is on disk."""
    lines = text_lines(about.raw, whole=True)
    if about.raw_cut:
        lines += [(), line("… the file is longer: e opens it in an editor", "warning")]
    return lines


def finding_lines(found: Iterable["Finding"]) -> list[Line]:
    """What is wrong with a file, and what mends it."""
    lines: list[Line] = []
    for finding in found:
        mark, word, role = _MARKS[finding.severity]
        said = f"{finding.code}: {finding.detail}" if finding.detail else finding.code
        lines.append((span(f"{mark} {word:<8}", role), span(said)))
        lines.append((Span(" " * 12), span(f"repair: {finding.repair}", "quiet")))
    return lines


def fact_lines(about: "About") -> list[Line]:
    """Everything known of a chunk file but its text."""
    lines = [
        *problem_lines(about),
        *_provenance(about),
        *_questions(about.questions),
        *_metadata("frontmatter", _own_keys(about.frontmatter)),
        *_metadata("document", about.record.get("document") or {}),
        *_children([child.path for child in about.children]),
        *_vectors(about),
        *_hashes(about),
    ]
    return lines[:-1] if lines and not lines[-1] else lines


def _part(title: str, lines: Sequence[Line]) -> list[Line]:
    return [line(title, "title"), *lines, ()] if lines else []


def _provenance(about: "About") -> list[Line]:
    known = shown_path(about.source) if about.source else "none known"
    lines: list[Line] = [field("source", known)]
    if about.pages:
        lines.append(field("pages", _pages(about.pages)))
    if about.headings:
        lines.append(field("headings", " > ".join(about.headings)))
    lines.append(field("kind", about.kind or "chunk"))
    by_hand = "yes, since it was generated" if about.hand_edited else "no, as it was generated"
    if not about.origin:
        by_hand = "unknown: the file does not say what was generated"
    lines.append(field("by hand", by_hand, "note" if about.hand_edited else "text"))
    lines.append((span(f"{'state':<11}", "quiet"), *_state(about)))
    return _part("Where it comes from", lines)


def _questions(questions: Sequence[str]) -> list[Line]:
    lines = [
        (Span(f"{number:>3}. ", "quiet"), span(question))
        for number, question in enumerate(questions, start=1)
    ]
    return _part("Questions it answers", lines)


def _own_keys(frontmatter: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in frontmatter.items() if key not in _SAID_ELSEWHERE}


def _metadata(title: str, values: Mapping[str, Any]) -> list[Line]:
    titles = {"frontmatter": "Frontmatter", "document": "The document says of itself"}
    lines = [_entry(key, value) for key, value in values.items()]
    return _part(titles[title], lines)


def _entry(key: object, value: object) -> Line:
    label = cut(one_line(key), 40)
    return (Span(f"{label:<10} ", "quiet"), span(_value(value)))


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return cut(text, MOST_VALUE)


def _children(children: Sequence[str]) -> list[Line]:
    lines = [line(f"  {shown_path(child)}") for child in children[:MOST_VECTORS]]
    if len(children) > MOST_VECTORS:
        lines.append(line(f"  … {len(children) - MOST_VECTORS:,} more", "quiet"))
    return _part("Made from", lines)


def _vectors(about: "About") -> list[Line]:
    lines: list[Line] = [field("model", about.model or "unknown")]
    for facts in about.vectors[:MOST_VECTORS]:
        what = "body" if facts.part == 0 else f"question {facts.part}"
        norm = "not stored" if facts.norm is None else f"norm {facts.norm:.4f}"
        when = facts.when if facts.embedded else "not embedded"
        lines.append(
            field(what, f"{facts.id}  {norm}  {when}", "text" if facts.embedded else "warning")
        )
    if len(about.vectors) > MOST_VECTORS:
        lines.append(field("", f"… {len(about.vectors) - MOST_VECTORS:,} more", "quiet"))
    if not about.vectors:
        lines.append(field("vectors", "none: nothing of this file is indexed", "warning"))
    return _part("Vectors", lines)


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
    return _part("Hashes", lines)


def resource_lines(about: "AboutResource", found: Mapping[str, int]) -> list[Line]:
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
    lines.append((span(f"{'drift':<11}", "quiet"), *_drift(found)))
    for source, metadata in about.documents:
        lines += [(), line(shown_path(source) or "(no source)", "title")]
        lines += [_entry(key, value) for key, value in metadata.items()]
    return lines


def _drift(found: Mapping[str, int]) -> Line:
    parts: list[Span] = []
    for severity, (mark, word, role) in _MARKS.items():
        if found.get(severity):
            parts.append(span(f"{mark} {count(found[severity], word)}  ", role))
    return tuple(parts) or line("none known", "good")


def error_lines(error: "FilestoreError", found: Sequence["Finding"] = ()) -> list[Line]:
    """What went wrong, and what to do about it."""
    lines = [line(error.message, "error")]
    if error.remedy:
        lines.append((Span("try: ", "quiet"), span(error.remedy)))
    return [*lines, (), *finding_lines(found)] if found else lines


# Searching, neighbours


def parse_query(text: str, mode: str) -> tuple[str, str]:
    """What is asked, and how: `v:`, `k:` or `h:` before the words decide, else the mode set."""
    asked = text.strip()
    chosen = _PREFIXES.get(asked[:2].lower())
    return (asked[2:].strip(), chosen) if chosen else (asked, mode)


def longest_word(query: str) -> str:
    """What of a query is worth finding in a text: its first phrase, else its longest word."""
    phrase = query.split('"')[1:2] if query.count('"') > 1 else []
    wanted = [word.strip('"*+()') for word in query.split() if not word.startswith("-")]
    return (phrase or sorted(wanted, key=len, reverse=True) or [""])[0]


def parse_source(text: str) -> tuple[str, str | None]:
    """The words of a query without its `in:GLOB`, and that glob over sources."""
    words = text.split(" ")
    globs = [word[3:] for word in words if word.startswith("in:") and len(word) > 3]
    kept = [word for word in words if not (word.startswith("in:") and len(word) > 3)]
    return " ".join(kept).strip(), globs[-1] if globs else None


def next_mode(mode: str) -> str:
    """The mode after this one."""
    return MODES[(MODES.index(mode) + 1) % len(MODES)]


def has_mode(text: str) -> bool:
    """Whether a query says itself how is searched."""
    return text.strip()[:2].lower() in _PREFIXES


def other_mode(text: str) -> str:
    """A query that says how is searched, with the next way instead; "" for one that does not."""
    if not has_mode(text):
        return ""
    asked, mode = parse_query(text, MODES[0])
    wanted = next_mode(mode)
    return next(prefix for prefix, name in _PREFIXES.items() if name == wanted) + asked


def mode_lines(mode: str, *, is_typed: bool = False) -> list[Line]:
    """Below the search box: how is searched, what changes it, what else can be said.

    Args:
        mode: How.
        is_typed: Whether the query says so itself, and so for this time only.
    """
    how = f"{_MODE_WORDS[mode]}, this time" if is_typed else _MODE_WORDS[mode]
    return [
        (span(how, "note"), Span("  ^t changes it", "quiet")),
        line("in:GLOB keeps to some sources", "quiet"),
    ]


def search_title(query: str) -> str:
    """What a search is called among the tasks."""
    return f"search for {cut(query, 40)}"


def asking_lines(query: str, seconds: float, *, shown_after_s: float = 0.0) -> list[Line]:
    """While an answer is awaited: to what, and how long already, once anybody wonders."""
    asking: Line = (Span("searching for ", "quiet"), span(cut(query, 60), "match"))
    if seconds < shown_after_s:
        return [asking]
    return [asking, line(f"asking … {seconds:.1f} s, escape gives it up", "quiet")]


def given_up_line(query: str) -> Line:
    """Where an answer would stand that nobody waited for."""
    return (Span("given up: ", "quiet"), span(cut(query, 60), "match"))


def answer_lines(answer: "Answer", *, limit: int) -> list[Line]:
    """Above the hits: how many there are, by which mode, and what to know about them.

    Args:
        answer: What the store found.
        limit: How many files it was asked for; there may be more.
    """
    found = count(len(answer.hits), "file") if answer.hits else "nothing found"
    if len(answer.hits) >= limit:
        found = f"the best {found}"
    lines = [line(f"{found} · {answer.mode} · escape returns", "quiet")]
    return lines + [line(note, "warning") for note in answer.notes]


def hit_row(number: int, hit: "Hit") -> Line:
    """One hit: its path, whether it can be relied on, and where in its document it stands."""
    parts: list[Span] = [
        Span(f"{number:>3} ", "quiet"),
        span(shown_path(hit.path.removeprefix("chunked/"))),
    ]
    if hit.freshness != "fresh":
        words = {"edited": "edited since it was indexed", "gone": "the file is gone"}
        role: Role = "error" if hit.freshness == "gone" else "warning"
        parts.append(span(f"  {words[hit.freshness]}", role))
    # The innermost headings tell hits of one document apart, and there is little room.
    about = " > ".join(hit.headings[-2:]) or " ".join(hit.text.split())[:120]
    parts.append(span(f"  {about}", "quiet"))
    return tuple(parts)


def neighbour_row(neighbour: "Neighbour") -> Line:
    """One of the nearest texts: how near, which file, where in its document."""
    parts = [
        Span(f"{neighbour.cosine:>5.2f} ", "note"),
        span(shown_path(neighbour.path.removeprefix("chunked/"))),
    ]
    if neighbour.pages:
        parts.append(span(f"  {_pages(neighbour.pages)}", "quiet"))
    if neighbour.headings:
        parts.append(span(f"  {' > '.join(neighbour.headings[-2:])}", "quiet"))
    return tuple(parts)


def neighbours_task(path: str) -> str:
    """What the question for neighbours is called among the tasks."""
    return f"neighbours of {cut(shown_path(path.removeprefix('chunked/')), 40)}"


def neighbours_title(state: str) -> Line:
    """Above the neighbours.

    Args:
        state: "asking", "none", "given up", or "" where they are listed.
    """
    said = {
        "asking": "  looking …",
        "none": "  none",
        "given up": "  given up",
        "": "  cosine, nearest first",
    }
    return span("Neighbours", "title"), Span(said[state], "quiet")
