"""The tree of resources and their chunk files as rows by number, however many there are. Pure.

Only opened resources cost anything: the row a number means is found by bisection over sums of what
is open. One rule: a row's words and the files behind a resource come from the owner, when asked.
Folders of documents in place come with what is in them right behind, and stay in that order.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from operator import add
from typing import Final, Literal, Protocol, TypeVar

from tui.formatting.lines import Line
from tui.state.rows import Rows

Kind = Literal["r", "c"]
"""A resource, or a chunk file."""
ResourceKey = tuple[Literal["r"], str]
PlaceholderKey = tuple[Literal["p"], str, int]
"""Of a file of an opened resource whose files are not known yet: its name and place."""
Label = Callable[[Kind, str | int], Line | None]
"""The words of a resource, by name, or of a file, by id; None while they are not there."""
PAGE: Final = 64
"""Files whose words are asked for at once."""
REMEMBERED: Final = 4_096
"""Files whose resource is known without looking for it."""
HEADER: Final = -1
"""The place below a resource of the resource's own row."""


class TreeRows(Rows):
    """Resources, those that are opened with their files below them; see `tui.state.rows.Rows`.

    The key of a resource is ``("r", name)``, of a file its id, of a document the id of its first
    file, below 0, and of a file that is not known yet
    ``("p", name, place)``, which is understood also once it is known.
    """

    def __init__(
        self,
        label: Label,
        fetch: Callable[[Sequence[int]], None],
        seek: Callable[[str], None] | None = None,
        sight: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        """Nothing is there yet.

        Args:
            label: Gives the words of rows.
            fetch: Receives the ids of files in sight without a label, at most `PAGE` at a time.
            seek: Receives an opened resource in sight without ids; answered by `open`.
            sight: Receives the resources that came in sight, each once.
        """
        self._label = label
        self._fetch = fetch
        self._seek = seek
        self._sight = sight
        self._seen: set[str] = set()
        self._whole = _Outline({})
        self._filtered: _Outline | None = None
        self._matches: Mapping[str, array[int]] = {}
        self._asked: set[tuple[str, int]] = set()
        self._homes: dict[int, str] = {}

    @property
    def is_filtered(self) -> bool:
        """Whether only what a filter let through is shown."""
        return self._filtered is not None

    @property
    def opened(self) -> tuple[str, ...]:
        """The resources that are opened when nothing is filtered, in their order."""
        return tuple(sorted(self._whole.opened, key=self._whole.position.__getitem__))

    def is_open(self, name: str) -> bool:
        """Whether a resource shows its files."""
        return name in self._shown.opened

    def count(self, name: str) -> int:
        """How many files a resource has, or shows when filtered; 0 for one that is not there."""
        return self._shown.counts.get(name, 0)

    @property
    def resources(self) -> Sequence[str]:
        """The names of the resources that are shown, in order."""
        return self._shown.names

    # What is shown

    def replace(self, resources: Sequence[tuple[str, int]]) -> None:
        """Take the resources with their numbers of files; what is open stays so.

        Ids that are there stay, too, until `open` brings others.
        """
        opened, counts = self._whole.opened, dict(resources)
        self._whole = _Outline(counts)
        self._whole.open_each({name: ids for name, ids in opened.items() if name in counts})

    def renew(self, known: "Mapping[str, array[int]]") -> None:
        """Take these ids for opened resources; those of all others come later."""
        self._seen.clear()
        self._whole.open_each({name: known.get(name) for name in self._whole.opened})
        self._asked.clear()

    def open(self, name: str, ids: "array[int] | None" = None) -> bool:
        """Show the files of a resource; those that match where a filter is on.

        Args:
            name: The resource.
            ids: Its files in reading order, for good; None where they come later.

        Returns:
            Whether the resource is there.
        """
        if ids is not None:
            # Only with other ids can a file have come from one resource to another.
            self._homes.clear()
        if self._filtered is None:
            return self._whole.open(name, ids)
        if ids is not None and name in self._whole.opened:
            self._whole.open(name, ids)
        return self._filtered.open(name, self._matches.get(name))

    def close(self, name: str) -> None:
        """Show a resource without its files; once opened again, it is asked about again."""
        self._shown.close(name)
        self._asked = {asked for asked in self._asked if asked[0] != name}

    def open_all(self) -> None:
        """Show the files of every resource, also of those whose ids are yet to come."""
        self._asked.clear()
        if self._filtered is None:
            known = self._whole.opened
            self._whole.open_each({name: known.get(name) for name in self._whole.names})
        else:
            self._filtered.open_each(dict(self._matches))

    def close_all(self) -> None:
        """Show resources only."""
        self._shown.open_each({})
        self._asked.clear()

    def filtered(
        self, matches: "Mapping[str, array[int]]", opened: Collection[str] | None = None
    ) -> None:
        """Show these files of these resources only, in the order of the mapping.

        Args:
            matches: The files.
            opened: The resources that are shown with them; None for all.
        """
        self._matches = matches
        self._filtered = _Outline({name: len(ids) for name, ids in matches.items()})
        self._filtered.open_each(
            {name: ids for name, ids in matches.items() if opened is None or name in opened}
        )
        self._asked.clear()

    def unfiltered(self) -> None:
        """Show everything again, opened as it was before the filter."""
        self._filtered = None
        self._matches = {}
        self._asked.clear()

    def forget(self) -> None:
        """Ask again for what has no words: the answers to earlier questions will not come."""
        self._asked.clear()
        self._seen.clear()

    # Rows by number

    def __len__(self) -> int:
        """Rows of resources, and of the files of those that are opened."""
        return len(self._shown)

    def row(self, index: int) -> Line | None:
        """The owner's words for a row."""
        key = self.key(index)
        if isinstance(key, int):
            return self._label("c", key)
        return self._label("r", key[1]) if key[0] == "r" else None

    def key(self, index: int) -> ResourceKey | PlaceholderKey | int:
        """The identity of a row."""
        name, place = self._shown.find(index)
        if place == HEADER:
            return ("r", name)
        ids = self._shown.opened[name]
        if ids is None:
            return ("p", name, place)
        self._remember(ids[place], name)
        return ids[place]

    def index_of(self, key: Hashable) -> int | None:
        """Where a row is; a file that was not known when its key was given is found, too."""
        if isinstance(key, int):
            home = self._homes.get(key)
            if home is not None:
                return self.index_below(home, key)
            for name in self._shown.opened:
                index = self.index_below(name, key)
                if index is not None:
                    self._remember(key, name)
                    return index
            return None
        match key:
            case ("r", str(name)):
                return self._shown.row_of(name)
            case ("p", str(name), int(place)):
                return self._shown.row_below(name, place)
        return None

    def want(self, first: int, last: int) -> None:
        """Ask the owner for what is not there of these rows, a page at a time, each once."""
        self._want_resources(first, last)
        for name, place in self._pages(first, last):
            ids = self._shown.opened.get(name)
            if (name, place) in self._asked:
                continue
            self._asked.add((name, place))
            if ids is None:
                if self._seek is not None:
                    self._seek(name)
                continue
            page = ids[place * PAGE : (place + 1) * PAGE]
            wanted = [one for one in page if self._label("c", one) is None]
            if wanted:
                self._fetch(wanted)

    def _want_resources(self, first: int, last: int) -> None:
        if self._sight is None:
            return
        rows = range(max(first, 0), min(last, len(self)))
        places = (self._shown.find(index) for index in rows)
        names = [name for name, place in places if place == HEADER and name not in self._seen]
        if names:
            self._seen.update(names)
            self._sight(names)

    # What is where

    def resource_of(self, index: int) -> str:
        """The resource that a row is of, or below."""
        return self._shown.find(index)[0]

    def parent_of(self, key: Hashable) -> ResourceKey | int | None:
        """The row above all its sisters; None for a resource, and for what is not shown."""
        index = self.index_of(key)
        if index is None:
            return None
        name, place = self._shown.find(index)
        ids = self._shown.opened.get(name) if place != HEADER else None
        if ids is not None and ids[place] > 0:
            for one in reversed(ids[:place]):
                if one < 0:
                    return int(one)
        return None if place == HEADER else ("r", name)

    def files_of(self, key: Hashable) -> "Sequence[int]":
        """The files of a document, by the key of its row; of a file, the file itself."""
        index = self.index_of(key)
        if not isinstance(key, int) or key > 0 or index is None:
            return (key,) if isinstance(key, int) and key > 0 else ()
        name, place = self._shown.find(index)
        ids = self._shown.opened[name] or ()
        return tuple(takewhile(lambda one: one > 0, ids[place + 1 :]))

    def index_below(self, name: str, file: int) -> int | None:
        """Where a file of an opened resource is, without looking through the others."""
        ids = self._shown.opened.get(name)
        if ids is None:
            return None
        try:
            return self._shown.row_below(name, ids.index(file))
        except ValueError:
            return None

    @property
    def _shown(self) -> "_Outline":
        return self._whole if self._filtered is None else self._filtered

    def _remember(self, file: int, name: str) -> None:
        """Keep the resource of a file: the same files are asked for again and again."""
        if len(self._homes) >= REMEMBERED:
            self._homes.clear()
        self._homes[file] = name

    def _pages(self, first: int, last: int) -> dict[tuple[str, int], None]:
        """The pages of these rows, in order; an opened resource without ids is one page."""
        pages: dict[tuple[str, int], None] = {}
        for index in range(max(first, 0), min(last, len(self))):
            name, place = self._shown.find(index)
            if place != HEADER:
                unknown = self._shown.opened[name] is None
                pages[name, -1 if unknown else place // PAGE] = None
        return pages


class _Outline:
    """Names in order, some of them opened, each with so many rows below it."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = counts
        self.names: list[str] = list(counts)
        self.opened: dict[str, array[int] | None] = {}
        self.position = {name: position for position, name in enumerate(self.names)}
        self._positions: list[int] = []
        self._extents: list[int] = []
        self._sum()

    def __len__(self) -> int:
        return len(self.names) + self._before[-1]

    def open(self, name: str, ids: "array[int] | None") -> bool:
        position = self.position.get(name)
        if position is None:
            return False
        at = bisect_left(self._positions, position)
        if name not in self.opened:
            self._positions.insert(at, position)
            self._extents.insert(at, 0)
        is_new = name not in self.opened
        self.opened[name] = ids
        extent = self._extent(name)
        # Ids that come later are mostly as many as counted.
        if is_new or extent != self._extents[at]:
            self._extents[at] = extent
            self._sum()
        return True

    def close(self, name: str) -> None:
        if name not in self.opened:
            return
        at = bisect_left(self._positions, self.position[name])
        del self.opened[name], self._positions[at], self._extents[at]
        self._sum()

    def open_each(self, opened: "dict[str, array[int] | None]") -> None:
        """Open these and no others."""
        self.opened = opened
        self._positions = sorted(self.position[name] for name in opened)
        self._extents = [self._extent(self.names[position]) for position in self._positions]
        self._sum()

    def find(self, row: int) -> tuple[str, int]:
        """The name that a row is of, and its place below it; `HEADER` for the name's own row.

        Raises:
            IndexError: There is no such row.
        """
        if not 0 <= row < len(self):
            raise IndexError(row)
        at = bisect_right(self._starts, row) - 1
        if at < 0:
            return self.names[row], HEADER
        below = row - self._starts[at]
        extent = self._extents[at]
        if below <= extent:
            return self.names[self._positions[at]], below - 1
        return self.names[self._positions[at] + below - extent], HEADER

    def row_of(self, name: str) -> int | None:
        position = self.position.get(name)
        if position is None:
            return None
        return position + self._before[bisect_left(self._positions, position)]

    def row_below(self, name: str, place: int) -> int | None:
        start = self.row_of(name)
        if start is None or name not in self.opened or not 0 <= place < self._extent(name):
            return None
        return start + 1 + place

    def _extent(self, name: str) -> int:
        ids = self.opened[name]
        return self.counts[name] if ids is None else len(ids)

    def _sum(self) -> None:
        """Add up what is open before each opened name, and in all."""
        self._before = list(accumulate(self._extents, initial=0))
        self._starts = list(map(add, self._positions, self._before))


class Named(Protocol):
    """A folder or a document."""

    @property
    def resource(self) -> str:
        """Its path; that of a folder ends with "/"."""


Row = TypeVar("Row", bound=Named)


def is_folder(name: str) -> bool:
    """Whether a name is that of a folder."""
    return name.endswith("/")


def folder_above(name: str) -> str:
    """The folder that something lies in, "" for none."""
    above = name.removesuffix("/").rpartition("/")[0]
    return f"{above}/" if above else ""


def folders_above(name: str) -> Iterator[str]:
    """All folders that something lies in, from the innermost."""
    while name := folder_above(name):
        yield name


def depth(name: str) -> int:
    """In how many folders something lies."""
    return name.removesuffix("/").count("/")


def own_name(name: str) -> str:
    """A name without the folders above; that of a folder keeps its "/"."""
    last = name.removesuffix("/").rpartition("/")[2]
    return f"{last}/" if is_folder(name) else last


def in_sight(rows: Sequence[Row], opened: set[str]) -> list[Row]:
    """The rows all of whose folders are opened."""
    found: list[Row] = []
    hidden = ""
    for row in rows:
        if hidden and row.resource.startswith(hidden):
            continue
        found.append(row)
        hidden = row.resource if is_folder(row.resource) and row.resource not in opened else ""
    return found
