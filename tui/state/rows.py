"""The rows of a list by number, also below one another, however many; and those marked. Pure.

Only what is opened costs anything: the row that a number means is found by bisection over sums of
what is open. One rule: a row of a tree is known by the way that leads to it from the top, so that a
text below two summaries is two rows; its words, and what is below it, come from the owner.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from operator import add
from typing import Any, Final, Protocol

from msgspec import Struct

from tui.formatting import Line


class Rows(Protocol):
    """Rows by number, of which only those in sight need be there."""

    def __len__(self) -> int:
        """How many there are."""

    def row(self, index: int) -> Line | None:
        """One row, drawn; None while it is not there yet."""

    def columns(self, index: int, room: int) -> Line:
        """What is at the right edge of a row, as wide in every row of a list with this room."""
        del index, room
        return ()

    def key(self, index: int) -> Hashable:
        """The identity of a row, whatever is added or removed; known also for a row not fetched."""

    def index_of(self, key: Hashable) -> int | None:
        """Where a row is now; None where it is not."""

    def want(self, first: int, last: int) -> None:
        """Have the rows from first up to, not including, last fetched where they are not there.

        What fetches them calls `VirtualRows.loaded`. Nothing to do where all are there.
        """
        return


class Listed(Rows):
    """Lines with their keys. Of equal keys the first one is found."""

    def __init__(
        self,
        rows: Sequence[tuple[Hashable, Line]] = (),
        *,
        columns: Callable[[Any, int], Line] = lambda _, __: (),
    ) -> None:
        self._rows = rows
        self._columns = columns
        self._places: dict[Hashable, int] = {}
        for place, (key, _) in enumerate(rows):
            self._places.setdefault(key, place)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._rows)

    def row(self, index: int) -> Line | None:
        """One line."""
        return self._rows[index][1]

    def columns(self, index: int, room: int) -> Line:
        """The owner's words at the right edge."""
        return self._columns(self._rows[index][0], room)

    def key(self, index: int) -> Hashable:
        """Its key."""
        return self._rows[index][0]

    def index_of(self, key: Hashable) -> int | None:
        """Where the line of a key is."""
        return self._places.get(key)


class Marking:
    """Marked keys, in a set that may be shared."""

    def __init__(self) -> None:
        self.keys: set[Any] = set()
        self.begun_at: Hashable | None = None
        """Where the range begins; None while there is none."""
        self._ranged: set[Hashable] = set()
        self._added: list[Any] = []
        self._removed: list[Any] = []

    def changes(self) -> tuple[list[Any], list[Any]]:
        """The keys that were marked, and the unmarked ones, since this was asked last."""
        changes = self._added, self._removed
        self._added, self._removed = [], []
        return changes

    def add(self, keys: Iterable[Hashable]) -> None:
        """Mark keys."""
        added = {key for key in keys if key not in self.keys}
        self.keys.update(added)
        self._added += added

    def remove(self, keys: Iterable[Hashable]) -> None:
        """Unmark keys."""
        removed = {key for key in keys if key in self.keys}
        self.keys.difference_update(removed)
        self._removed += removed

    def toggle(self, keys: Collection[Hashable]) -> None:
        """Unmark keys that are all marked; mark them where one is not."""
        if self.keys.issuperset(keys):
            self.remove(keys)
        else:
            self.add(keys)

    def begin(self, key: Hashable) -> None:
        """Begin a range here."""
        self.end()
        self.begun_at = key

    def extend(self, keys: Collection[Hashable]) -> None:
        """Make the range these keys; what was marked before stays marked."""
        left = self._ranged.difference(keys)
        self.remove(left)
        came = {key for key in keys if key not in self.keys}
        self.add(came)
        self._ranged = (self._ranged - left) | came

    def end(self) -> None:
        """Keep the range."""
        self.begun_at = None
        self._ranged = set()

    def drop(self) -> bool:
        """Clear the range, or without one all marks; whether there was any."""
        if self.begun_at is not None:
            self.remove(self._ranged)
            self.end()
            return True
        if self.keys:
            self.remove(tuple(self.keys))
            return True
        return False


Way = tuple[Any, ...]
"""The keys of all rows above a row, from the top, and its own."""
PAGE: Final = 64
"""Rows whose words are asked for at once."""
_NONE: Final[Mapping[Way, Sequence[Any]]] = {}


class Pending(Struct, frozen=True):
    """The key of a row that is not known yet: its place. It also means the row that came there."""

    place: int


class Document(Struct, frozen=True):
    """The key of a document among several of one resource; its files are always shown below it."""

    first: int
    """The id of its first file."""


class Members(list[Any]):
    """Keys that more are added to at the end alone; their places are worked out when asked for."""

    def __init__(self, keys: Iterable[Any] = ()) -> None:
        super().__init__(keys)
        self._places: dict[Any, int] = {}

    def place(self, key: Hashable) -> int | None:
        """Where a key is."""
        self.number()
        return self._places.get(key)

    def number(self) -> None:
        """Work out where the keys are that were added."""
        start = len(self._places)
        if start < len(self):
            # A generator, in which other threads get their turn.
            added = enumerate(islice(self, start, None), start)
            self._places.update((one, number) for number, one in added)


class Branch:
    """What is below one row, in order; some of it is opened, and has a branch of its own."""

    __slots__ = (
        "_before", "_extents", "_opened_places", "_places", "_starts",
        "above", "keys", "opened", "own", "way",
    )  # fmt: skip

    def __init__(
        self,
        keys: Sequence[Any],
        way: Way = (),
        above: "tuple[Branch, int] | None" = None,
        own: int = 1,
    ) -> None:
        self.own = own
        """Rows of each key itself: 0 where only what is below them is shown, all of it opened."""
        self.keys = keys
        """A range while no more is known than how many there are."""
        self.way = way
        """Of the row above."""
        self.above = above
        """The branch and the place of that row; None at the top."""
        self.opened: dict[int, Branch] = {}
        self._places: dict[Any, int] | None = None
        self._opened_places: list[int] = []
        self._extents: list[int] = []
        """How many rows are below each that is opened."""
        self._before: Sequence[int] = (0,)
        """The sums of these before each, and in all."""
        self._starts: Sequence[int] = ()
        """The row of each that is opened."""

    @property
    def is_known(self) -> bool:
        """Whether the keys are there."""
        return not isinstance(self.keys, range)

    def __len__(self) -> int:
        return self.own * len(self.keys) + self._before[-1]

    def find(self, row: int) -> "tuple[Branch, int]":
        """The branch that a row is in, and its place there.

        Raises:
            IndexError: There is no such row.
        """
        if not 0 <= row < len(self):
            raise IndexError(row)
        branch = self
        while (at := bisect_right(branch._starts, row) - 1) >= 0:
            place = branch._opened_places[at]
            below, row = branch.opened[place], row - branch._starts[at]
            if branch.own and (row == 0 or row > len(below)):
                return branch, place + max(row - len(below), 0)
            branch, row = below, row - branch.own
        return branch, row

    def row_of(self, place: int) -> int:
        """The row of a place, counted from the top."""
        row, above = self._row_here(place), self.above
        while above is not None:
            branch, place = above
            row += branch._row_here(place) + branch.own
            above = branch.above
        return row

    def _row_here(self, place: int) -> int:
        return self.own * place + self._before[bisect_left(self._opened_places, place)]

    def key(self, place: int) -> Any:
        """The key at a place."""
        return self.keys[place] if self.is_known else Pending(place)

    def place(self, key: Hashable) -> int | None:
        """Where a key is."""
        if isinstance(key, Pending):
            return key.place if key.place < len(self.keys) else None
        if isinstance(self.keys, Members):
            return self.keys.place(key)
        if isinstance(self.keys, array):
            try:
                return self.keys.index(key)
            except ValueError:
                return None
        if self._places is None:
            known = self.keys if self.is_known else ()
            self._places = {one: place for place, one in enumerate(known)}
        return self._places.get(key)

    def walk(self) -> "Iterator[Branch]":
        """This and every branch below, those above before those below."""
        waiting = [self]
        while waiting:
            branch = waiting.pop()
            yield branch
            waiting += branch.opened.values()

    def open(self, place: int, below: "Branch") -> None:
        """Show what is below a place, instead of what may be shown there; see `measure`."""
        at = bisect_left(self._opened_places, place)
        if place not in self.opened:
            self._opened_places.insert(at, place)
            self._extents.insert(at, 0)
        self.opened[place] = below
        self._extents[at] = len(below)
        self._add_up()

    def close(self, place: int) -> None:
        """Hide what is below a place."""
        at = bisect_left(self._opened_places, place)
        del self.opened[place], self._opened_places[at], self._extents[at]
        self._add_up()
        self.measure()

    def open_all(self, below: "Mapping[int, Branch]") -> None:
        """Show what is below some places that are closed; see `measure`."""
        if len(below) == 1:
            for place, branch in below.items():
                self.open(place, branch)
            return
        self.opened.update(below)
        self._opened_places = sorted(self.opened)
        self._extents = [len(self.opened[place]) for place in self._opened_places]
        self._add_up()

    def close_all(self) -> None:
        """Hide what is below every place."""
        self.opened.clear()
        self.open_all({})

    def measure(self) -> None:
        """Count above, too, that there are more rows here, or fewer."""
        branch = self
        while branch.above is not None:
            above, place = branch.above
            above._extents[bisect_left(above._opened_places, place)] = len(branch)
            above._add_up()
            branch = above

    def _add_up(self) -> None:
        self._before = list(accumulate(self._extents, initial=0))
        places = self._opened_places if self.own else [0] * len(self._extents)
        self._starts = list(map(add, places, self._before))


class TreeRows(Rows):
    """Rows at the top, and those below what is opened; see `tui.state.rows.Rows`."""

    def __init__(
        self,
        label: Callable[[Way], Line | None],
        below: Callable[[Way], "Sequence[Any] | int"],
        seek: Callable[[Way], None],
        fetch: Callable[[Sequence[Way]], None],
        *,
        can_open: Callable[[Way], bool] = lambda way: len(way) == 1,
        is_heading: Callable[[Way], bool] | None = None,
        keeps: Callable[[Way], bool] = lambda _: False,
        columns: Callable[[Way, int], Line] = lambda _, __: (),
    ) -> None:
        """Nothing is there yet.

        Args:
            label: Gives the words of a row; None while they are not there.
            below: Gives the keys below a row that is opened; while these are not known, how many.
            seek: Receives an opened row whose keys are not known, once what is below it comes in
                sight; answered by `take`.
            fetch: Receives rows that came in sight, at most `PAGE` at a time, each once.
            can_open: Tells whether something is below a row.
            is_heading: Tells whether enter opens a row, which is not read; None for `can_open`.
            keeps: Tells which rows stay open below one that is closed.
            columns: Gives what is at the right edge of a row, for the room of a whole one.
        """
        self._label, self._below, self._seek, self._fetch = label, below, seek, fetch
        self._columns = columns
        self.can_open, self.is_heading, self._keeps = can_open, is_heading or can_open, keeps
        self._whole = Branch(())
        self._filtered: Branch | None = None
        self._matches: Mapping[Any, Sequence[Any]] = {}
        self._coming: dict[Way, set[Any]] = {}
        """What is to be opened once it is there, by the way of the row above."""
        self._asked: set[tuple[Way, int]] = set()

    # What is shown

    @property
    def is_filtered(self) -> bool:
        """Whether only what a filter let through is shown."""
        return self._filtered is not None

    @property
    def _shown(self) -> Branch:
        return self._whole if self._filtered is None else self._filtered

    @property
    def tops(self) -> Sequence[Any]:
        """The keys at the top."""
        return self._shown.keys

    @property
    def opened(self) -> list[Way]:
        """What is opened when nothing is filtered, from the top down."""
        return _opened(self._whole)

    def is_open(self, way: Hashable) -> bool:
        """Whether a row shows what is below it."""
        return self._branch(way) is not None

    def replace(
        self,
        tops: Sequence[Any],
        known: "Mapping[Way, Sequence[Any]] | None" = None,
        *,
        own: int = 1,
    ) -> None:
        """Take other rows at the top; what is open stays so.

        Args:
            tops: Their keys.
            known: What is below opened rows where the owner says only how many that are; None for
                what is there already.
            own: 0 where not these are shown, but only what is below them.
        """
        if known is None:
            known = {one.way: one.keys for one in self._whole.walk() if one.is_known}
        ways = self.opened
        self._whole = Branch(tops, own=own)
        self._asked.clear()
        self._open_each(self._whole, ways, known)

    def filtered(self, matches: "Mapping[Any, Sequence[Any]]", opened: Iterable[Any]) -> None:
        """Show these rows at the top only, with what of each passed; some of them opened."""
        self._matches = matches
        self._filtered = Branch(list(matches))
        self._asked.clear()
        self._open_each(self._filtered, [(key,) for key in opened])

    def unfiltered(self) -> None:
        """Show everything again, opened as it was before the filter."""
        self._filtered, self._matches = None, {}
        self._asked.clear()

    def take(self, way: Way, keys: Sequence[Any]) -> bool:
        """Take what is below an opened row; whether it is one."""
        branch = self._branch(way)
        if branch is None or branch.above is None:
            return False
        above, place = branch.above
        ways = _opened(branch)
        above.open(place, self._grown(keys, way, branch.above))
        above.measure()
        self._open_each(self._shown, ways)
        return True

    # Opening and closing

    def open(self, way: Way) -> bool:
        """Show what is below a row; whether the row is there."""
        self._open_each(self._shown, [way])
        return self.is_open(way)

    def open_each(self, ways: Iterable[Way]) -> None:
        """Show what is below these rows, also of rows that come later."""
        self._open_each(self._shown, ways)

    def close(self, way: Hashable) -> None:
        """Hide what is below a row; once opened again, it is asked about again."""
        branch = self._branch(way)
        if branch is not None and branch.above is not None:
            above, place = branch.above
            kept = list(filter(self._keeps, _opened(branch)))
            above.close(place)
            size = len(branch.way)
            self._asked = {one for one in self._asked if one[0][:size] != branch.way}
            self._coming = {
                one: keys for one, keys in self._coming.items() if one[:size] != branch.way
            }
            self._open_each(self._shown, kept)

    def toggle(self, way: Way) -> None:
        """Open a row, or close it."""
        if self.is_open(way):
            self.close(way)
        elif self.can_open(way):
            self.open(way)

    def close_all(self) -> None:
        """Show the top alone."""
        self._shown.close_all()
        self._asked.clear()
        self._coming.clear()

    def _open_each(
        self, root: Branch, ways: Iterable[Way], known: "Mapping[Way, Sequence[Any]]" = _NONE
    ) -> None:
        for *above, key in ways:
            self._coming.setdefault(tuple(above), set()).add(key)
        there = [one for way in self._coming if (one := _branch_at(root, way)) is not None]
        waiting, grown = list(there), []
        while waiting:
            branch = waiting.pop()
            keys = self._coming.pop(branch.way, set()) if branch.is_known else set()
            opened: dict[int, Branch] = {}
            for key in keys:
                place, way = branch.place(key), (*branch.way, key)
                if place is None:
                    self._coming.setdefault(branch.way, set()).add(key)
                elif place not in branch.opened:
                    below = self._matches[key] if root is self._filtered else self._below(way)
                    if isinstance(below, int):
                        below = known.get(way, range(below))
                    opened[place] = self._grown(below, way, (branch, place))
                    if way in self._coming:
                        waiting.append(opened[place])
            grown += [(branch, opened)] if opened else []
        # Those below first, as what is above counts them.
        for branch, opened in reversed(grown):
            branch.open_all(opened)
        for branch in there:
            branch.measure()

    def _grown(self, keys: Sequence[Any], way: Way, above: tuple[Branch, int]) -> Branch:
        if type(keys) is list:
            documents = {key for key in keys if isinstance(key, Document)}
            if documents:
                self._coming.setdefault(way, set()).update(documents)
        return Branch(keys, way, above)

    def forget(self) -> None:
        """Ask again for what has no words: the answers to earlier questions will not come."""
        self._asked.clear()

    # Rows by number

    def __len__(self) -> int:
        """Rows at the top, and below what is open."""
        return len(self._shown)

    def row(self, index: int) -> Line | None:
        """The owner's words for a row."""
        way = self.key(index)
        return None if isinstance(way[-1], Pending) else self._label(way)

    def columns(self, index: int, room: int) -> Line:
        """The owner's words at the right edge."""
        return self._columns(self.key(index), room)

    def key(self, index: int) -> Way:
        """The way to a row."""
        branch, place = self._shown.find(index)
        return (*branch.way, branch.key(place))

    def index_of(self, key: Hashable) -> int | None:
        """Where a row is; one that was not known when its key was given is found, too."""
        if not isinstance(key, tuple) or not key:
            return None
        branch = self._branch(key[:-1])
        place = branch.place(key[-1]) if branch is not None else None
        return branch.row_of(place) if branch is not None and place is not None else None

    def want(self, first: int, last: int) -> None:
        """Ask the owner for what is in these rows, a page at a time, each once."""
        pages: dict[tuple[Way, int], Branch] = {}
        for index in range(max(first, 0), min(last, len(self))):
            branch, place = self._shown.find(index)
            pages[branch.way, place // PAGE if branch.is_known else -1] = branch
        for (way, page), branch in pages.items():
            if (way, page) in self._asked:
                continue
            self._asked.add((way, page))
            if page < 0:
                self._seek(way)
            else:
                self._fetch([(*way, key) for key in branch.keys[page * PAGE : (page + 1) * PAGE]])

    def rows_below(self, way: Way) -> Sequence[Any]:
        """The keys below an opened row; none of another one."""
        branch = self._branch(way)
        return branch.keys if branch is not None and branch.is_known else ()

    def _branch(self, way: Hashable) -> Branch | None:
        """What is below a row that is opened."""
        return _branch_at(self._shown, way) if isinstance(way, tuple) else None


def _branch_at(root: Branch, way: Way) -> Branch | None:
    branch: Branch | None = root
    for key in way:
        place = branch.place(key) if branch is not None else None
        branch = branch.opened.get(place) if branch is not None and place is not None else None
    return branch


def _opened(branch: Branch) -> list[Way]:
    """The ways of the rows that are opened below, from the top down."""
    found: list[Way] = []
    waiting = [branch]
    while waiting:
        one = waiting.pop()
        if one is not branch:
            found.append(one.way)
        waiting += [one.opened[place] for place in sorted(one.opened, reverse=True)]
    return found
