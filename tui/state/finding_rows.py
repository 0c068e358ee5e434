"""The list of findings as rows: grouped or flat, filtered, sorted, and growing while one looks.

One rule: while a verification runs, what comes is put at the end of its group, so that nothing is
sorted twice and no row moves without need; what was found is sorted when the run ends.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Final, Literal

from msgspec import Struct, field

from filestore import CODES, Finding, UsageError
from tui.formatting.findings import finding_line, group_line
from tui.formatting.lines import Line
from tui.state.findings import FindingKey, Findings
from tui.state.rows import Rows

Order = Literal["code", "path", "severity"]
GroupKey = tuple[str]
"""A code: the row above its findings."""
RowKey = FindingKey | GroupKey

ORDERS: Final[tuple[Order, ...]] = ("code", "path", "severity")
SEVERITIES: Final = ("EWI", "E", "EW", "W", "I")
"""The choices of severities to be shown, in the order in which a key goes through them."""
MOST_OPEN: Final = 200
"""Findings up to which all groups are open at first."""
AT_ONCE: Final = 20_000
"""Findings up to which rows are made while a key waits for them."""

_SLICE: Final = 4_096

_RANK: Final = {
    code: ("EWI".index(about.severity), number)
    for number, (code, about) in enumerate(CODES.items())
}
"""Code to its place in the list: worst first."""
_BY_PATH: Final = itemgetter(1, 0, 2, 3)


class Filter(Struct, frozen=True, kw_only=True):
    """Which findings are shown."""

    text: str = ""
    """As it was typed: words; after ``!`` what is left out; after ``~`` a regular expression."""
    severities: str = "EWI"
    code: str = ""
    """"" for all."""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self == Filter()


def worst_first(codes: Iterable[str]) -> list[str]:
    """Codes in the order in which their groups stand."""
    return sorted(codes, key=_RANK.__getitem__)


def _wanted(shown: Filter) -> Callable[[Finding], bool] | None:
    """The test whether a finding is shown; None where all are."""
    if shown.is_all:
        return None
    matches = matcher(shown.text)
    codes = CODES if not shown.code else {shown.code}
    return lambda finding: (
        finding.severity in shown.severities and finding.code in codes and matches(finding)
    )


def matcher(text: str) -> Callable[[Finding], bool]:
    """The test of a typed filter: of a finding's code, its paths and its detail.

    Raises:
        UsageError: It is no regular expression.
    """
    is_inverse = text.startswith("!")
    rest = text.removeprefix("!")
    if not rest:
        return lambda _: True
    if not rest.startswith("~"):
        wanted = rest.casefold()
        return lambda finding: (wanted in _words(finding).casefold()) != is_inverse
    try:
        pattern = re.compile(rest[1:], re.IGNORECASE)
    except re.error as error:
        raise UsageError(f"invalid regular expression '{rest[1:]}': {error}") from error
    return lambda finding: (pattern.search(_words(finding)) is not None) != is_inverse


def _words(finding: Finding) -> str:
    return f"{finding.code} {finding.path} {finding.other} {finding.detail}"


def _group_name(code: str, order: Order) -> str:
    if order == "code":
        return code
    return CODES[code].severity if order == "severity" else ""


class _Group(Struct):
    """Findings that stand together."""

    members: list[FindingKey] = field(default_factory=list)
    _places: dict[FindingKey, int] = field(default_factory=dict)
    """As far as they were asked for; members are only ever added at the end."""

    def place(self, key: FindingKey) -> int | None:
        """Where a member is."""
        self.number()
        return self._places.get(key)

    def number(self) -> None:
        """Take note of where the members are that were added."""
        start = len(self._places)
        if start < len(self.members):
            # A generator, in which other threads get their turn.
            added = islice(self.members, start, None)
            self._places.update((one, start + number) for number, one in enumerate(added))


_Shape = tuple[int, Order, Filter]
"""What rows are made from: `Findings.reshaped`, how they are ordered, what of them is shown."""


class FindingGroups(Struct, frozen=True, kw_only=True):
    """The groups of rows, as they were worked out."""

    shape: _Shape
    groups: dict[str, _Group]
    shown: int
    taken: int
    """How many findings were looked at."""


class Draft(Struct, frozen=True, kw_only=True):
    """What rows are to be made from, as it was at one moment: any thread can work it out."""

    shape: _Shape
    keys: Sequence[FindingKey]
    findings: Sequence[Finding]
    wanted: Callable[[Finding], bool] | None

    def worked_out(self) -> FindingGroups:
        """The groups, sorted and numbered."""
        groups: dict[str, _Group] = {}
        shown = _put(zip(self.keys, self.findings, strict=True), groups, self.shape, self.wanted)
        for group in groups.values():
            # Sorted in steps: other threads wait while a list is sorted.
            by = None if self.shape[1] == "code" else _BY_PATH
            runs = [
                sorted(group.members[at : at + _SLICE], key=by)
                for at in range(0, len(group.members), _SLICE)
            ]
            while len(runs) > 1:
                # Two runs in order are merged in as many steps as they are long, or fewer.
                runs = [sorted(chain(*runs[at : at + 2]), key=by) for at in range(0, len(runs), 2)]
            group.members = runs[0] if runs else []
            group.number()
        return FindingGroups(shape=self.shape, groups=groups, shown=shown, taken=len(self.keys))


def _put(
    found: Iterable[tuple[FindingKey, Finding]],
    groups: dict[str, _Group],
    shape: _Shape,
    wanted: Callable[[Finding], bool] | None,
) -> int:
    """Put findings at the end of their groups; returns how many of them are shown."""
    shown = 0
    for key, finding in found:
        if wanted is None or wanted(finding):
            name = _group_name(key[0], shape[1])
            group = groups.get(name)
            if group is None:
                group = groups[name] = _Group()
            group.members.append(key)
            shown += 1
    return shown


class FindingRows(Rows):
    """Rows over `Findings`. `refresh` takes in what changed there; in between nothing moves.

    Where that `is_much`, it is worked out elsewhere: `take(draft().worked_out())` is the same.
    """

    def __init__(self, findings: Findings) -> None:
        self.order: Order = "code"
        self.filter = Filter()
        self.held = ""
        """The code whose group the cursor is in: it is not closed by itself."""
        self.ascii_only = False
        self._findings = findings
        self._groups: dict[str, _Group] = {}
        self._starts: list[tuple[int, str]] = []
        """Row of the beginning, and name, of every group in its order."""
        self._length = 0
        self.shown = 0
        """How many findings the filter lets through."""
        self._chosen: dict[str, bool] = {}
        """Code to whether its group was opened or closed by hand."""
        self._begun: dict[str, bool] = {}
        """Name to whether its group was open at first."""
        self._marked: Counter[str] = Counter()
        self._made: _Shape | None = None
        self._taken = 0
        if not self.is_much:
            self.refresh()

    @property
    def is_much(self) -> bool:
        """Whether a refresh would keep a key waiting."""
        return self._made != self._shape and len(self._findings) > AT_ONCE

    @property
    def _shape(self) -> _Shape:
        return self._findings.reshaped, self.order, self.filter

    def refresh(self) -> None:
        """Take in what changed in the findings, the filter and the order.

        Raises:
            UsageError: The filter is no regular expression.
        """
        if self._made != self._shape:
            self.take(self.draft().worked_out())
            return
        added = islice(self._findings.index.known.items(), self._taken, None)
        self.shown += _put(added, self._groups, self._shape, _wanted(self.filter))
        self._taken = len(self._findings)
        self._begin_open(is_rebuilt=False)
        self._lay_out()

    def draft(self) -> Draft:
        """What the rows are to be made from.

        Raises:
            UsageError: The filter is no regular expression.
        """
        return Draft(
            shape=self._shape,
            keys=tuple(self._findings.index.known.keys()),
            findings=tuple(self._findings),
            wanted=_wanted(self.filter),
        )

    def take(self, grouped: FindingGroups) -> None:
        """Show what was worked out, unless it is of another filter or order than is wanted now."""
        if grouped.shape[1:] != self._shape[1:]:
            return
        self._groups, self.shown = grouped.groups, grouped.shown
        self._made, self._taken = grouped.shape, grouped.taken
        self.recount()
        self._begin_open(is_rebuilt=True)
        self._lay_out()

    def _begin_open(self, *, is_rebuilt: bool) -> None:
        """Have groups begin open or closed; those that were there stay as they are."""
        if is_rebuilt:
            self._begun = {}
            if self.shown > MOST_OPEN and self.held:
                # The others close now; what is being read stays.
                self._chosen.setdefault(self.held, True)
        for name in self._groups.keys() - self._begun.keys():
            self._begun[name] = self.shown <= MOST_OPEN

    def _lay_out(self) -> None:
        rank = _RANK.__getitem__ if self._header else "EWI".index
        self._starts, at = [], 0
        for name in sorted(self._groups, key=rank):
            self._starts.append((at, name))
            at += self._header + (len(self._groups[name].members) if self.is_open(name) else 0)
        self._length = at

    @property
    def _laid_out_by(self) -> Order:
        """Not yet the order that is wanted, while that is still worked out."""
        return self.order if self._made is None else self._made[1]

    @property
    def _header(self) -> int:
        return 1 if self._laid_out_by == "code" else 0

    # As rows

    def __len__(self) -> int:
        return self._length

    def key(self, index: int) -> RowKey:
        """The finding, or the code, of a row."""
        if not 0 <= index < self._length:
            raise IndexError(index)
        start, name = next(group for group in reversed(self._starts) if group[0] <= index)
        if index < start + self._header:
            return (name,)
        return self._groups[name].members[index - start - self._header]

    def index_of(self, key: Hashable) -> int | None:
        """Where a finding or a code is; None where it is not shown."""
        if not isinstance(key, tuple) or key[0] not in _RANK:
            return None
        name = _group_name(key[0], self._laid_out_by)
        start = next((start for start, one in self._starts if one == name), None)
        if start is None or (len(key) == 1 and self._header):
            return start
        place = self._groups[name].place(key) if self.is_open(name) else None
        return None if place is None else start + self._header + place

    def row(self, index: int) -> Line | None:
        """A row as a line."""
        key = self.key(index)
        if len(key) == 1:
            code, members = key[0], self._groups[key[0]].members
            first = self._findings.index.known.get(members[0])
            if first is None:
                return ()
            return group_line(
                first,
                len(members),
                is_open=self.is_open(code),
                marked=self._marked[code],
                ascii_only=self.ascii_only,
            )
        finding = self._findings.index.known.get(key)
        if finding is None:
            return ()
        from_before = self._findings.is_from_before(key)
        return finding_line(
            finding, in_group=bool(self._header), from_before=from_before, tree=self._findings.tree
        )

    # Groups

    def is_open(self, name: str) -> bool:
        """Whether the findings of a group are rows, too."""
        if not self._header:
            return True
        return self._chosen.get(name, self._begun[name])

    def set_open(self, code: str, *, to: bool) -> None:
        """Open or close the group of a code."""
        self._chosen[code] = to
        self._lay_out()

    def members(self, key: Hashable) -> Sequence[FindingKey]:
        """The findings that a row stands for, as far as they are shown at all."""
        if not isinstance(key, tuple):
            return ()
        if len(key) > 1:
            return (key,)
        group = self._groups.get(key[0])
        return group.members if group is not None else ()

    def finding(self, key: RowKey | None) -> Finding | None:
        """The finding of a row; the first of its group where the row is a code."""
        if key is None:
            return None
        members = self.members(key)
        return self._findings.index.known.get(members[0]) if members else None

    # Marks

    def recount(self) -> None:
        """Count the marked findings again."""
        self._marked = Counter(key[0] for key in self._findings.marked)

    def marked_codes(self) -> tuple[str, ...]:
        """The codes of what is marked."""
        return tuple(worst_first(self._marked))
