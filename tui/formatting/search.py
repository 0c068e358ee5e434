"""Lines for a search: what was typed, the answer, the row of a hit, all that is known of one. Pure.

One rule: a hit is named by its document and the place in it, as the command line prints it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from filestore.browse import shown_path
from tui.formatting import Line, Role, Span, count, cut, end_of, line, span

if TYPE_CHECKING:
    from filestore import Answer, Hit

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
_MOST_DOCUMENT: Final = 30
"""Characters of a document in a row; the end of a path tells most."""
_MOST_TITLE: Final = 34
_ROOM: Final = 90
"""Columns of a row from which it has the document, too."""
_MOST_PASSAGE: Final = 200
_BEFORE: Final = 12
"""Characters of a passage before the first of its words."""
_BLANKS: Final = re.compile(r"\s+")
_FRESHNESS: Final[dict[str, tuple[str, Role]]] = {
    "outdated": ("its original changed or went", "warning"),
    "edited": ("edited since it was indexed", "warning"),
    "gone": ("the file is gone", "error"),
}


# What was typed


def parse_query(text: str, mode: str) -> tuple[str, str]:
    """The query and its mode: `v:`, `k:` or `h:` decides, else the mode set."""
    asked = text.strip()
    chosen = _PREFIXES.get(asked[:2].lower())
    return (asked[2:].strip(), chosen) if chosen else (asked, mode)


def query_words(query: str) -> list[str]:
    """The parts of a query to mark in a text: its phrases, and every other word."""
    parts = query.split('"') if query.count('"') > 1 else [query]
    words = [
        word.strip('"*+()')
        for part in parts[::2]
        for word in f" {part}".split(" ")
        if not word.startswith("-")
    ]
    return list(dict.fromkeys(filter(None, [*parts[1::2], *words])))


def is_source(word: str) -> bool:
    """Whether a word of a query is a glob over sources."""
    return word.startswith("in:") and len(word) > len("in:")


def parse_named(text: str, is_named: Callable[[str], bool]) -> tuple[str, str]:
    """The words of a query without some of them, and what the last of these names."""
    words = text.split(" ")
    named = [word for word in words if is_named(word)]
    kept = " ".join(word for word in words if word not in named).strip()
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
    return next(prefix for prefix, name in _PREFIXES.items() if name == next_mode(mode)) + asked


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


# Hits


def hit_row(number: int, hit: "Hit", *, is_changed: bool = False) -> Line:
    """One hit: its title and heading, whether it is fresh, and what answers.

    Args:
        number: Its rank.
        hit: As it was found.
        is_changed: Whether its file was found to have changed, or gone, since.
    """
    parts: list[Span] = [Span(f"{number:>3} ", "quiet"), span(_title(hit), "title")]
    if is_changed:
        parts.append(Span("  changed since this answer", "warning"))
    elif hit.freshness in _FRESHNESS:
        words, role = _FRESHNESS[hit.freshness]
        parts.append(span(f"  {words}", role))
    return (*parts, Span("  "), *_passage(hit))


def hit_columns(hit: "Hit", room: int) -> Line:
    """The document of a hit and the place in it, where a row has room for that."""
    if room < _ROOM:
        return ()
    name = f"{end_of(shown_path(hit.document or hit.path), _MOST_DOCUMENT)}{_place(hit)}"
    return (span(f"  {name:>{_MOST_DOCUMENT + 6}}", "quiet"),)


def _title(hit: "Hit") -> str:
    """Of the document, and the heading; this alone where there is no room for both."""
    above = hit.section or hit.headings
    title = hit.title or end_of(shown_path(hit.document or hit.path), _MOST_DOCUMENT)
    both = f"{title} > {above[-1]}" if above and above[-1] != title else title
    name = both if len(both) <= _MOST_TITLE else above[-1] if above else title
    return name if len(name) <= _MOST_TITLE else f"{name[: _MOST_TITLE - 1].rstrip()}…"


def _place(hit: "Hit") -> str:
    if hit.line is not None:
        return f":{hit.line}"
    pages = (hit.page,) if hit.page is not None else hit.pages
    return f" p. {pages[0]}" if pages else ""


def _passage(hit: "Hit") -> Iterator[Span]:
    """What answers, on one line, the words that were searched for as such."""
    text = hit.excerpt or hit.text[:_MOST_PASSAGE]
    first = max(hit.marks[0][0] - _BEFORE, 0) if hit.marks else 0
    # From a whole word on.
    at = first and text.find(" ", first, first + _BEFORE) + 1
    last = at + _MOST_PASSAGE
    if at:
        yield Span("… ", "quiet")
    for start, end in hit.marks:
        if at <= start < end <= last:
            yield _words(text[at:start], "quiet")
            yield _words(text[start:end], "match")
            at = end
    yield _words(text[at:last], "quiet")


def _words(text: str, role: Role) -> Span:
    return span(_BLANKS.sub(" ", text), role)


def hit_lines(hit: "Hit | None") -> list[Line]:
    """Below the hits: where the one under the cursor is, and what its score is made of."""
    if hit is None:
        return []
    name = f"{shown_path(hit.document or hit.path)}{_place(hit)}"
    lines: list[Line] = [line(name, "title")]
    above = hit.section or hit.headings
    if above:
        lines.append(line(cut(" > ".join(above), 200), "quiet"))
    parts = []
    for retriever, why in hit.why.items():
        points = f" {why['points']:.2f}" if "points" in why else ""
        rank = f"#{why['rank']:.0f}" if "rank" in why else ""
        score = f" {why['score']:.2f}" if "score" in why else ""
        parts.append(f"{retriever}{points} ({rank}{score})")
    if hit.reason:
        lines.append(line(cut(hit.reason, 200), "quiet"))
    if hit.notes:
        lines.append(line(cut("; ".join(hit.notes), 200), "warning"))
    if hit.copies:
        copies = ", ".join(map(shown_path, hit.copies))
        number = "1 copy" if len(hit.copies) == 1 else f"{len(hit.copies)} copies"
        lines.append(line(cut(f"{number}: {copies}", 200), "quiet"))
    sums = span(f"  {' + '.join(parts)}" if parts else "", "quiet")
    return [*lines, (Span(f"score {hit.score:.2f}", "note"), sums)]
