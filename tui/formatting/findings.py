"""Lines for findings, their evidence, diffs, and both sides of a conflict. Pure.

One rule: severity is shown as a letter, a sign and a word, never as colour alone.
"""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Final, Literal
from unicodedata import combining, east_asian_width

from msgspec import Struct

from filestore import CODES
from filestore.browse import CHUNKS, LEFT_BY_STATS, StorePath, Tree, not_checked_words, shown_path
from tui.formatting import (
    LABEL_WIDTH,
    Line,
    Role,
    Span,
    arrow,
    count,
    cut,
    field,
    line,
    one_line,
    span,
)  # fmt: skip

if TYPE_CHECKING:
    from filestore import Finding
    from filestore.browse import Evidence, Neighbour, Side, SideChoice, Sides

SEVERITY: Final[Mapping[str, tuple[str, str, Role]]] = {
    "E": ("x", "error", "error"),
    "W": ("!", "warning", "warning"),
    "I": ("i", "note", "note"),
}
"""Letter to sign, word and part."""

LEVELS: Final[Mapping[str, str]] = {
    "fast": "names, sizes and time stamps of everything; about as quick as 'git status'; no file "
    "of a clean store is opened",
    "full": "every byte of files, catalog, vectors and full text, compared with each other; reads "
    "the whole store once, embeds nothing",
    "deep": "everything full reads, and a fresh embedding of every passage; "
    "slow, and paid for where the model is a service",
}
"""What each level of verification reads and costs, the least thorough first."""
_LEVEL_WORDS: Final[Mapping[str, str]] = {
    "status": "compared by size and time stamp",
    "fast": "verified fast",
    "full": "verified in full",
    "deep": "verified deep",
}
_MOST_DETAIL: Final = 400
_SAME: Final[tuple[str, Role]] = (" ", "text")
_HASH_LENGTH: Final = 16
"""As much of a hash as a person compares."""
_SAME_COSINE: Final = 0.0005
"""Smaller differences do not show in three digits."""


def severity_span(severity: str, *, word: bool = True) -> Span:
    """How bad something is, as letter and sign, and as a word where there is room."""
    sign, name, role = SEVERITY[severity]
    return Span(f"{severity} {sign} {name:<7}" if word else f"{severity} {sign}", role)


def place_of(path: str, tree: Tree = CHUNKS) -> str:
    """What a finding is about, as a list shows it: chunk files without what all of them share."""
    below = tree.chunk_path(StorePath(path)) if tree.holds(path) else path
    return shown_path(below) or "the whole store"


# Rows


def finding_line(
    finding: "Finding", *, in_group: bool, from_before: bool, tree: Tree = CHUNKS
) -> Line:
    """A finding in the list.

    Args:
        finding: The finding.
        in_group: Whether it is below its code, which then is not repeated, nor is the severity.
        from_before: Whether the running verification has not reported it.
        tree: Of the store.
    """
    about = [span(place_of(finding.path, tree), keeps_end=True)]
    if finding.detail:
        about += [Span("  "), span(cut(shown_path(finding.detail), _MOST_DETAIL), "quiet")]
    if from_before:
        about = [Span(one.text, "quiet") for one in about] + [Span("  (from before)", "quiet")]
    if in_group:
        return (Span("    "), *about)
    return (severity_span(finding.severity), span(f" {finding.code}  ", "key"), *about)


def group_line(first: "Finding", members: int, *, is_open: bool, marked: int) -> Line:
    """All findings of a code, as one row.

    Args:
        first: One of them.
        members: How many there are.
        is_open: Whether they are listed below.
        marked: How many of them are marked.
    """
    message = [
        Span(arrow(is_open=is_open), "key"),
        severity_span(first.severity, word=False),
        span(f" {first.code}", "title"),
        Span(f"  {members:,} "),
    ]
    if marked:
        message.append(Span(f" {marked:,} marked ", "mark"))
    return (*message, span(f" {first.repair}", "quiet"))


# The head


class Coverage(Struct, frozen=True, kw_only=True):
    """When and how thoroughly the whole store was checked."""

    level: str = ""
    """"status", "fast", "full" or "deep"; "" for never."""
    at: str = ""
    """The time of day."""
    again: str = ""
    """When some files alone were checked after that; "" for never."""
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    is_running: bool = False
    was_stopped: bool = False
    """Whether it ended before it had checked everything."""


def counts_line(by_severity: Mapping[str, int], *, marked: int) -> Line:
    """How many there are of each severity."""
    message: list[Span] = []
    for severity, (sign, name, role) in SEVERITY.items():
        number = by_severity.get(severity, 0)
        message.append(Span(f"{severity} {sign} {name} {number:,}", role if number else "quiet"))
        message.append(Span("   "))
    if marked:
        message.append(Span(f"{marked:,} marked   ", "mark"))
    return tuple(message)


def looked_line(coverage: Coverage, *, found: int, clean: bool | None, notes: int = 0) -> Line:
    """The last check: when, how thorough, with what result.

    Args:
        coverage: The check.
        found: How many findings there are.
        clean: Whether the store is clean, accepted findings excluded; None while unknown.
        notes: How many of them are notes, which the number of the page leaves out, too.
    """
    level = coverage.level
    if not level:
        return line("not verified yet: r verifies fast, V offers full and deep", "quiet")
    when = f" at {coverage.at}" if coverage.at else ""
    when += f", changed files at {coverage.again}" if coverage.again else ""
    if coverage.was_stopped:
        words = f"a {level} verification was stopped{when}"
        so_far = count(found, "finding") if found else "nothing found"
        return line(f"{words}: {so_far} so far, incomplete", "warning")
    parts = [count(found - notes, "finding")] if found > notes else []
    parts += [count(notes, "note")] if notes else []
    outcome = Span(", ".join(parts), "warning")
    if not found:
        outcome = Span("clean", "good")
    elif clean:
        outcome = Span(f"clean, with {count(found, 'finding')} accepted or informational", "good")
    return (span(f"{_LEVEL_WORDS.get(level, level)}{when}: "), outcome)


def not_checked_line(level: str, not_checked: Sequence[str]) -> Line:
    """What was not checked."""
    left = [*(LEFT_BY_STATS if level == "status" else ()), *not_checked]
    words = not_checked_words(left or ([] if level else ["anything"]))
    return line(words or "everything was checked", "quiet")


def filters_line(text: str, severities: str, code: str, *, shown: int) -> Line:
    """What the list leaves out."""
    message = []
    if text:
        message.append(span(f"/{text}", "match"))
    if severities != "EWI":
        message.append(span(" and ".join(SEVERITY[one][1] + "s" for one in severities), "match"))
    if code:
        message.append(span(code, "match"))
    spaced = [part for one in message for part in (one, Span("  "))]
    return (*spaced, Span(f"{shown:,} shown, esc: all", "quiet"))


def empty_lines(*, is_filtered: bool, is_known: bool) -> list[Line]:
    """Shown in place of evidence where there is no finding.

    Args:
        is_filtered: Whether there are findings, which the filter leaves out.
        is_known: Whether the check was complete.
    """
    if is_filtered:
        return [line("no finding matches the filter", "quiet")]
    if is_known:
        return [line("clean", "good"), line("V verifies more thoroughly", "quiet")]
    return [line("nothing found so far", "quiet")]


# Evidence


def group_evidence_lines(first: "Finding", members: int) -> list[Line]:
    """Lines for all findings of a code."""
    return [
        (severity_span(first.severity), span(f" {first.code}", "title")),
        field("findings", f"{members:,}"),
        field("repair", first.repair),
        field("sync", "repairs them" if first.safe else "does not repair them", "quiet"),
        (),
        line("enter opens and closes the group, space marks it, p plans its repair", "quiet"),
    ]


def finding_lines(finding: "Finding", *, side: str = "") -> list[Line]:
    """A finding's own text, before its evidence is loaded.

    Args:
        finding: The finding.
        side: The key that shows both sides; "" where there is none.
    """
    lines = [
        (severity_span(finding.severity), span(f" {finding.code}", "title")),
        field("file", shown_path(finding.path) or "the whole store"),
    ]
    if finding.other:
        lines.append(field(finding.meaning.other, shown_path(finding.other)))
    if finding.detail:
        lines.append(field("found", shown_path(finding.detail)))
    lines.append(field("repair", finding.repair))
    if side:
        lines.append(
            (span(f"{side:<{LABEL_WIDTH}}", "key"), span("shows both sides, to choose one"))
        )
    return lines


def evidence_lines(evidence: "Evidence", *, side: str = "") -> list[Line]:
    """What shows a finding to be true: hashes, place, notes, and what changed."""
    lines = [*finding_lines(evidence.finding, side=side), *_excerpt_lines(evidence)]
    if evidence.diff:
        lines += [(), *diff_lines(evidence.diff)]
        if evidence.diff_cut:
            lines.append(line("… the rest of the diff is not shown", "warning"))
    indexed, disk, about = evidence.indexed_hash, evidence.disk_hash, []
    if indexed or disk:
        differs: Role = "text" if indexed == disk else "warning"
        about = [
            field("indexed", indexed[:_HASH_LENGTH] or "not indexed", differs),
            field("on disk", disk[:_HASH_LENGTH] or "no file", differs),
        ]
    if evidence.origin:
        kind, _, digest = evidence.origin.rpartition(":")
        about.append(field("generated", f"{digest[:_HASH_LENGTH]} {kind}".rstrip(), "quiet"))
    about += [field("note", note) for note in evidence.notes]
    return [*lines, (), *about] if about else lines


def _excerpt_lines(evidence: "Evidence") -> list[Line]:
    if not evidence.line:
        return []
    where = f"line {evidence.line:,}"
    if evidence.column:
        where += f", column {evidence.column:,}"
    lines: list[Line] = [field("at", where, "warning")]
    if evidence.diff and not evidence.column:
        # The difference shows the same lines, and what they were.
        return lines
    lines.append(())
    for number, text in evidence.excerpt:
        is_named = number == evidence.line
        number_span = f"{'>' if is_named else ' '}{number:>5} | "
        lines.append((Span(number_span, "error" if is_named else "quiet"), span(text)))
        if is_named and evidence.column:
            # How many cells of a terminal a text takes.
            before = " " * sum(
                0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1
                for one in one_line(text[: evidence.column - 1])
            )
            lines.append((Span("       | ", "quiet"), Span(f"{before}^", "error")))
    return lines


def neighbour_lines(
    then: "Sequence[Neighbour] | None",
    now: "Sequence[Neighbour] | None",
    *,
    compared: bool,
    tree: Tree = CHUNKS,
) -> list[Line]:
    """The nearest texts by the stored vector, and by the text as it is now.

    Args:
        then: By the stored vector; None while unknown, or where there is none.
        now: By the present text, embedded again; None likewise.
        compared: Whether the text, or its vector, may be another one now.
        tree: Of the store.
    """
    columns = "   then    now" if compared else ""
    lines: list[Line] = [(), (Span("Neighbours", "title"), Span(f"{columns}   cosine", "quiet"))]
    before = {one.path: one.cosine for one in then or ()}
    after = {one.path: one.cosine for one in now or ()}
    both = None not in (then, now)
    for path in sorted(
        before | after, key=lambda path: (-after.get(path, -1.0), -before.get(path, -1.0), path)
    ):
        was, became = before.get(path), after.get(path)
        sign, role = _SAME
        if both and (was is None or became is None):
            sign, role = ("+", "added") if was is None else ("-", "removed")
        elif was is not None and became is not None and abs(was - became) >= _SAME_COSINE:
            sign, role = "~", "note"
        message = f"{sign} {_cosine(was)}" + (f"  {_cosine(became)}" if compared else "")
        lines.append((Span(f"{message:>24}  ", role), span(place_of(path, tree), role)))
    if both and not before and not after:
        lines.append(line("no other passage is near", "quiet"))
    return lines


def _cosine(value: float | None) -> str:
    return f"{value:5.3f}" if value is not None else "  -  "


Mark = Literal["", "<", ">", "|"]

MOST_ALIGNED: Final = 4_000
"""Lines of both sides together; comparing more would keep a key waiting."""
TAB: Final = 4

_ROLES: Final[dict[str, Role]] = {"+": "added", "-": "removed"}
_HEADS: Final = ("--- ", "+++ ")


def diff_lines(diff: str) -> list[Line]:
    """A unified diff; what was added or removed keeps its sign, whatever the colours."""
    found: list[Line] = []
    is_head = True
    for text, following in pairwise([*diff.splitlines(), ""]):
        # Several files stand in one diff. A removed line may look like a head, but not two.
        is_next = text.startswith("--- ") and following.startswith("+++ ")
        is_head = is_next or (is_head and not text.startswith("@@"))
        if is_head and text.startswith(_HEADS):
            found.append(line(text, "title"))
        elif text.startswith("@@"):
            found.append(line(text, "hunk"))
        else:
            role = _ROLES.get(text[:1], "text")
            # The sign by itself, so that the rest of a long line comes next to it, not below it.
            found.append((span(text[:1], role), span(text[1:].expandtabs(TAB), role)))
    return found


class Facing(Struct, frozen=True, kw_only=True):
    """One line of both sides."""

    mark: Mark
    """``<`` only on the left, ``>`` only on the right, ``|`` differs, "" the same."""
    left: str
    right: str


def facing(ours: str, theirs: str) -> list[Facing]:
    """Both sides line by line, equal lines at the same height."""
    left, right = ours.splitlines(), theirs.splitlines()
    if len(left) + len(right) > MOST_ALIGNED:
        return [_faced(one, other) for one, other in zip_longest(left, right)]
    found: list[Facing] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for _, first, last, start, stop in matcher.get_opcodes():
        pairs = zip_longest(left[first:last], right[start:stop])
        found += [_faced(one, other) for one, other in pairs]
    return found


def _faced(left: str | None, right: str | None) -> Facing:
    mark: Mark = "" if left == right else "|"
    if left is None:
        mark = ">"
    elif right is None:
        mark = "<"
    return Facing(mark=mark, left=left or "", right=right or "")


def stacked_lines(rows: Sequence[Facing]) -> list[Line]:
    """Both sides below each other, for narrow screens: changes come together."""
    found: list[Line] = []
    right: list[Line] = []
    for row in rows:
        if row.mark == "":
            found += [*right, (span("  "), span(row.left.expandtabs(TAB)))]
            right = []
            continue
        if row.mark in "<|":
            found.append((span("< ", "removed"), span(row.left.expandtabs(TAB), "removed")))
        if row.mark in ">|":
            right.append((span("> ", "added"), span(row.right.expandtabs(TAB), "added")))
    return found + right


SIDES: Final = {
    "left": ("ours", "remove-other"),
    "right": ("theirs", "remove-this"),
    "both": ("keep-both", "both"),
}
"""What a side means: of two copies, to take one is to remove the other."""
BASE_TITLE: Final = "the common ancestor; b shows both sides again"
HUNKS: Final[dict[str, "Side"]] = {
    "left": "ours",
    "right": "theirs",
    "both": "both",
    "keep": "keep",
}
"""What a key chooses in one conflict of several."""
KEYS: Final = {"left": "1", "right": "2", "both": "3"}


def sides_title(sides: "Sides", hunk: int = 0) -> Line:
    """What there is to choose from: both versions of a file, or one conflict of several."""
    if 1 < len(sides.hunks) > hunk:
        first, last = sides.hunks[hunk].lines
        return (
            span(f"conflict {hunk + 1} of {len(sides.hunks)}, lines {first}-{last}  ", "title"),
            span(shown_path(sides.path), "quiet"),
        )
    and_other = f" and {shown_path(sides.other)}" if sides.other else ""
    return (
        span(f"{CODES[sides.code].sides}  ", "title"),
        span(f"{shown_path(sides.path)}{and_other}", "quiet"),
    )


def wanted_side(sides: "Sides", side: str) -> "SideChoice | None":
    """The choice of a side; None where it is none."""
    return next((one for one in sides.choices if one.name in SIDES.get(side, ())), None)


def _key_line(*pairs: tuple[str, str]) -> Line:
    return tuple(one for key, words in pairs for one in (span(key, "key"), span(words)))


def choice_lines(sides: "Sides", width: int, *, chosen: int = 0) -> list[Line]:
    """The keys, what each does, and the command that does the same where it has room.

    Args:
        sides: What there is to choose from.
        width: In cells.
        chosen: Of how many conflicts of the file a side was chosen before.
    """
    found: list[Line] = []
    is_many = len(sides.hunks) > 1
    if is_many:
        words = ("1  ", "our side"), ("  2  ", "their side"), ("  3  ", "both, ours first")
        found.append(_key_line(*words, ("  4  ", "leave it")))
        found.append(_key_line(("<  ", "our side of all that are left"), ("  >  ", "theirs")))
    for side, key in KEYS.items():
        choice = None if is_many else wanted_side(sides, side)
        if choice is not None:
            label = choice.label
            if sides.code == "duplicate" and side != "both":
                # Of two copies, which one stays and which one goes.
                both = shown_path(sides.path), shown_path(sides.other)
                stays, goes = both if side == "left" else reversed(both)
                label = f"keep {stays}, remove {goes}"
            shown: Line = (span(f"{key}  ", "key"), span(label))
            command = span(f"  {choice.command or ''}", "quiet")
            has_room = sum(len(one.text) for one in (*shown, command)) <= width
            found.append((*shown, command) if has_room else shown)
    if sides.base is not None:
        found.append(_key_line(("b  ", "show the common ancestor")))
    dropped = ", without the sides chosen so far" if chosen else ""
    found.append(_key_line(("e  ", f"edit it by hand{dropped}")))
    leave = "leave it as it is; nothing is written before you confirm"
    return [*found, _key_line(("esc  ", leave))]
