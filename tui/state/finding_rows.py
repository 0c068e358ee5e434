"""The list of findings as rows: grouped or flat, filtered, sorted, and growing while one looks.

One rule: while a verification runs, what comes is put at the end of its group, so that nothing is
sorted twice and no row moves without need; what was found is sorted when the run ends.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Final, Literal

from msgspec import Struct

from filestore import CODES, Finding
from filestore.browse import NameFilter
from tui.formatting.findings import finding_line, group_line
from tui.formatting.lines import Line
from tui.state.findings import FindingKey, Findings
from tui.state.rows import Members, TreeRows, Way

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


def _group_name(code: str, order: Order) -> str:
    if order == "code":
        return code
    return CODES[code].severity if order == "severity" else ""


_Shape = tuple[int, Order, Filter]
"""What rows are made from: `Findings.reshaped`, how they are ordered, what of them is shown."""


class FindingGroups(Struct, frozen=True, kw_only=True):
    """The groups of rows, as they were worked out."""

    shape: _Shape
    groups: dict[str, Members]
    shown: int
    taken: int
    """How many findings were looked at."""


class Draft(Struct, frozen=True, kw_only=True):
    """What rows are to be made from, as it was at one moment: any thread can work it out."""

    shape: _Shape
    keys: Sequence[FindingKey]
    findings: Sequence[Finding]

    def worked_out(self) -> FindingGroups:
        """The groups, sorted and numbered."""
        groups: dict[str, Members] = {}
        shown = _put(zip(self.keys, self.findings, strict=True), groups, self.shape)
        for name, group in groups.items():
            # Sorted in steps: other threads wait while a list is sorted.
            by = None if self.shape[1] == "code" else _BY_PATH
            runs = [sorted(group[at : at + _SLICE], key=by) for at in range(0, len(group), _SLICE)]
            while len(runs) > 1:
                # Two runs in order are merged in as many steps as they are long, or fewer.
                runs = [sorted(chain(*runs[at : at + 2]), key=by) for at in range(0, len(runs), 2)]
            groups[name] = Members(runs[0])
            groups[name].number()
        return FindingGroups(shape=self.shape, groups=groups, shown=shown, taken=len(self.keys))


def _put(
    found: Iterable[tuple[FindingKey, Finding]], groups: dict[str, Members], shape: _Shape
) -> int:
    """Put findings at the end of their groups; returns how many of them are shown."""
    shown = 0
    for key in _fitting(found, shape[2]):
        groups.setdefault(_group_name(key[0], shape[1]), Members()).append(key)
        shown += 1
    return shown


def _fitting(found: Iterable[tuple[FindingKey, Finding]], shown: Filter) -> Iterable[FindingKey]:
    """What a filter leaves."""
    if shown.is_all:
        return (key for key, _ in found)
    named = (
        (key, f"{one.code} {one.path} {one.other} {one.detail}")
        for key, one in found
        if one.severity in shown.severities and shown.code in ("", one.code)
    )
    return NameFilter.parse(shown.text).keys(named)


class FindingRows(TreeRows):
    """Rows over `Findings`. `refresh` takes in what changed there; in between nothing moves.

    Where that `is_much`, it is worked out elsewhere: `take_groups(draft().worked_out())` is the
    same. Below the row of a code its findings, each by its own key; in another order these alone.
    """

    def __init__(self, findings: Findings) -> None:
        super().__init__(
            self._line, lambda way: self._groups[way[0]], lambda _: None, lambda _: None
        )
        self.order: Order = "code"
        self.filter = Filter()
        self.held = ""
        """The code whose group the cursor is in: it is not closed by itself."""
        self.ascii_only = False
        self._findings = findings
        self._groups: dict[str, Members] = {}
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
            self.take_groups(self.draft().worked_out())
            return
        added = islice(self._findings.index.known.items(), self._taken, None)
        self.shown += _put(added, self._groups, self._shape)
        self._taken = len(self._findings)
        self._begin_open(is_rebuilt=False)
        self._lay_out()

    def draft(self) -> Draft:
        """What the rows are to be made from."""
        return Draft(
            shape=self._shape,
            keys=tuple(self._findings.index.known.keys()),
            findings=tuple(self._findings),
        )

    def take_groups(self, grouped: FindingGroups) -> None:
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
        is_grouped = self._is_grouped
        names = sorted(self._groups, key=_RANK.__getitem__ if is_grouped else "EWI".index)
        self.close_all()
        self.replace(names, {}, own=int(is_grouped))
        self.open_each(
            (name,) for name in names if not is_grouped or self._chosen.get(name, self._begun[name])
        )

    @property
    def _laid_out_by(self) -> Order:
        """Not yet the order that is wanted, while that is still worked out."""
        return self.order if self._made is None else self._made[1]

    @property
    def _is_grouped(self) -> bool:
        return self._laid_out_by == "code"

    # As rows

    def key(self, index: int) -> RowKey:
        """The finding, or the code, of a row."""
        way = super().key(index)
        return way[-1] if len(way) > 1 else way

    def index_of(self, key: Hashable) -> int | None:
        """Where a finding or a code is; None where it is not shown."""
        if not isinstance(key, tuple) or key[0] not in _RANK:
            return None
        if len(key) == 1:
            return super().index_of(key) if self._is_grouped else None
        return super().index_of((_group_name(key[0], self._laid_out_by), key))

    def above(self, way: Way) -> Way:
        """The code of a finding."""
        return way[:1]

    def _line(self, key: RowKey) -> Line | None:
        known = self._findings.index.known
        if len(key) == 1:
            code, members = key[0], self._groups[key[0]]
            first = known.get(members[0])
            if first is None:
                return ()
            return group_line(
                first,
                len(members),
                is_open=self.is_open(key),
                marked=self._marked[code],
                ascii_only=self.ascii_only,
            )
        finding = known.get(key)
        if finding is None:
            return ()
        return finding_line(
            finding,
            in_group=self._is_grouped,
            from_before=self._findings.is_from_before(key),
            tree=self._findings.tree,
        )

    # Groups

    def open(self, way: Way) -> bool:
        """Show the findings of a code."""
        self._chosen[way[0]] = True
        return super().open(way)

    def close(self, way: Hashable) -> None:
        """Show a code alone."""
        if isinstance(way, tuple) and self._is_grouped:
            self._chosen[way[0]] = False
            super().close(way)

    def members(self, key: Hashable) -> Sequence[FindingKey]:
        """The findings that a row stands for, as far as they are shown at all."""
        if not isinstance(key, tuple):
            return ()
        if len(key) > 1:
            return (key,)
        return self._groups.get(key[0], ())

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
