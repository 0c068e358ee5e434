"""The tree of summaries as rows by number, of which only what is opened is there. Pure.

A row is known by the way that leads to it, so that a text below two summaries is two rows. One
rule: nothing is opened below itself, so circles end where they close.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final

from tui.formatting.lines import Line, line
from tui.state.rows import Rows

if TYPE_CHECKING:
    from filestore.browse import StorePath, TreeNode

Way = tuple[str, ...]
"""What leads to a row: "r" and a resource, or "f" for what a filter found; then paths, from the
top down. A row that is not known yet ends with "", which no path is."""
PAGE: Final = 64
"""Titles that are asked for at once."""
MOST_ROWS: Final = 50_000
"""Rows that `open_all` goes on to open."""
_TOP: Final = 2
"""So much of a way names a resource."""


class SummaryRows(Rows):
    """Resources, their roots, what these were made from; see `tui.state.rows.Rows`."""

    def __init__(
        self,
        label: Callable[[Way], Line | None],
        seek: Callable[[Way], None],
        fetch: "Callable[[Sequence[StorePath]], None]",
    ) -> None:
        """Nothing is there yet.

        Args:
            label: Gives the words of a row, None while they are not there.
            seek: Receives an opened row whose children are not known; answered by `take`.
            fetch: Receives paths in sight without words, at most `PAGE` at a time.
        """
        self._label, self._seek, self._fetch = label, seek, fetch
        self._tops: Sequence[Way] = ()
        self._nodes: dict[Way, TreeNode] = {}
        self._below: dict[Way, Sequence[Way]] = {}
        """What is known below a row."""
        self._opened: set[Way] = set()
        self._rows: list[Way] = []
        self._places: dict[Way, int] | None = None
        self._asked: set[object] = set()

    # What is shown

    def replace(self, tops: "Sequence[tuple[Way, TreeNode | None]]") -> None:
        """Take other top rows; what is open stays so, and is asked for again."""
        self._tops = [way for way, _ in tops]
        self._nodes = {way: node for way, node in tops if node is not None}
        self._below.clear()
        self._asked.clear()
        self._lay()

    def take(self, way: Way, nodes: "Sequence[TreeNode]") -> None:
        """Take what stands below a row."""
        ways = [(*way, node.path) for node in nodes]
        self._below[way] = ways
        self._nodes.update(zip(ways, nodes, strict=True))
        self._lay()

    def node(self, way: Hashable) -> "TreeNode | None":
        """What is known of a row; None for a resource."""
        return self._nodes.get(way) if isinstance(way, tuple) else None

    def is_circle(self, way: Way) -> bool:
        """Whether a row names what stands above it."""
        return len(way) > _TOP and way[-1] in way[_TOP - (way[0] == "f") : -1]

    def can_open(self, way: Hashable) -> bool:
        """Whether there is something below a row."""
        if not isinstance(way, tuple):
            return False
        if way[0] == "r" and len(way) == _TOP:
            return True
        node = self._nodes.get(way)
        return node is not None and node.children > 0 and not self.is_circle(way)

    def is_open(self, way: Hashable) -> bool:
        """Whether what is below a row is shown."""
        return way in self._opened

    def has_children_of(self, way: Way) -> bool:
        """Whether it is known what stands below a row."""
        return way in self._below

    @property
    def top_count(self) -> int:
        """How many rows there are at the top."""
        return len(self._tops)

    @property
    def opened(self) -> list[Way]:
        """Every row that is open and shown, from the top down."""
        return [way for way in self._rows if way in self._opened]

    def open(self, way: Way) -> bool:
        """Show what is below a row; False where that is nothing, or is shown."""
        if way in self._opened or not self.can_open(way):
            return False
        self._opened.add(way)
        self._lay()
        return True

    def open_each(self, ways: Sequence[Way]) -> None:
        """Show what is below these rows, also where they are yet to come."""
        self._opened.update(ways)
        self._lay()

    def close(self, way: Hashable) -> None:
        """Hide what is below a row; what was open there is closed, too."""
        if isinstance(way, tuple):
            self._opened = {one for one in self._opened if one[: len(way)] != way}
            self._lay()

    def close_all(self) -> None:
        """Show the top alone."""
        self._opened.clear()
        self._lay()

    def open_all(self) -> None:
        """Open one level more of what is shown."""
        for way in self._rows[:MOST_ROWS]:
            if self.can_open(way):
                self._opened.add(way)
        self._lay()

    def parent_of(self, way: Hashable) -> Way | None:
        """The row above; None at the top."""
        return way[:-1] if isinstance(way, tuple) and len(way) > _TOP else None

    def forget_words(self) -> None:
        """Ask again for what has no words."""
        self._asked.clear()

    def _lay(self) -> None:
        """Put down what is open, from the top."""
        rows: list[Way] = []
        left = list(reversed(self._tops))
        while left:
            way = left.pop()
            rows.append(way)
            if way in self._opened and (way[-1] != "" or len(way) == _TOP):
                below = self._below.get(way)
                left += reversed(below) if below is not None else [(*way, "")]
        self._rows, self._places = rows, None

    # Rows by number

    def __len__(self) -> int:
        """Rows at the top, and of what is open."""
        return len(self._rows)

    def row(self, index: int) -> Line | None:
        """The owner's words."""
        way = self._rows[index]
        if way[-1] == "" and len(way) > _TOP:
            return line(f"{'  ' * (len(way) - 1)}…", "quiet")
        return self._label(way)

    def key(self, index: int) -> Way:
        """The way to a row."""
        return self._rows[index]

    def index_of(self, key: Hashable) -> int | None:
        """Where a row is; of what was to come, the first that came."""
        if self._places is None:
            self._places = {way: place for place, way in enumerate(self._rows)}
        if not isinstance(key, tuple):
            return None
        if key not in self._places and len(key) > _TOP and key[-1] == "":
            below = self._below.get(key[:-1])
            return self._places.get(below[0] if below else key[:-1])
        return self._places.get(key)

    def want(self, first: int, last: int) -> None:
        """Ask for what is not there of these rows, each once."""
        paths: list[StorePath] = []
        for way in self._rows[max(first, 0) : last]:
            if way in self._opened and way not in self._below and way not in self._asked:
                self._asked.add(way)
                self._seek(way)
            node = self._nodes.get(way)
            if node is not None and node.path not in self._asked:
                self._asked.add(node.path)
                paths.append(node.path)
        for at in range(0, len(paths), PAGE):
            self._fetch(paths[at : at + PAGE])
