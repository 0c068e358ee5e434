"""Summaries as a tree: what each was made from, what it is part of, which are out of date. Pure.

Files are written by people, too: a summary may name itself, what is gone, or one that names it, one
child may have several parents, and levels may lie. One rule: nothing a file claims of the tree is
believed but which children it names; every answer takes time in proportion to the tree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Literal

from msgspec import Struct

from filestore.catalog.summaries import ChildRow
from filestore.chunks import chunk_file
from filestore.core.paths import ChunkPath

ChildState = Literal["fresh", "changed", "gone"]
"""As it was read, with another text, or no indexed file any more."""

_Edges = Mapping[ChunkPath, Sequence[ChunkPath]]
_NONE: Final[tuple[ChunkPath, ...]] = ()


class TreeChild(Struct, frozen=True, kw_only=True):
    """One text that a summary was made from."""

    path: ChunkPath
    key: bytes
    """The embedding key of the text that was read; empty where the summary names none."""
    state: ChildState
    is_summary: bool
    is_stale: bool
    """Whether it is a summary that is itself out of date."""


class Staleness(Struct, frozen=True, kw_only=True):
    """Why a summary is out of date: its children by what is the matter with them."""

    changed: tuple[ChunkPath, ...]
    gone: tuple[ChunkPath, ...]
    stale: tuple[ChunkPath, ...]
    """Summaries with the text that was read, out of date themselves."""


class SummaryTree:
    """What leads from summaries to their children, and back. Paths come in natural order."""

    def __init__(self, rows: Iterable[ChildRow]) -> None:
        """Take the children of all summaries, or of the ones of interest."""
        self._rows: dict[ChunkPath, list[ChildRow]] = {}
        for row in rows:
            self._rows.setdefault(row.summary, []).append(row)

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __contains__(self, path: ChunkPath) -> bool:
        """Whether this is a summary that names a child, or a child of one."""
        return path in self._rows or path in self._parents

    @property
    def summaries(self) -> list[ChunkPath]:
        """All that name a child."""
        return in_order(self._rows)

    @property
    def files(self) -> set[ChunkPath]:
        """All indexed files that are a part of it."""
        there = {row.path for rows in self._rows.values() for row in rows if row.is_there}
        return there | self._rows.keys()

    def is_summary(self, path: ChunkPath) -> bool:
        """Whether it names a child."""
        return path in self._rows

    def children(self, path: ChunkPath) -> list[TreeChild]:
        """What a summary was made from; of a document in place each section that was."""
        return [
            TreeChild(
                path=row.path,
                key=row.key,
                state="gone" if not row.is_there else "fresh" if row.in_step else "changed",
                is_summary=row.path in self._rows,
                is_stale=row.path in self._stale,
            )
            for row in sorted(self._rows.get(path, ()), key=lambda row: natural_key(row.path))
        ]

    def parents(self, path: ChunkPath) -> list[ChunkPath]:
        """The summaries that were made from it."""
        return in_order(self._parents.get(path, ()))

    def ancestors(self, path: ChunkPath) -> list[ChunkPath]:
        """Its parents, theirs, and so on, nearest first; not itself."""
        return list(_reached(path, self._parents))

    def descendants(self, path: ChunkPath) -> list[ChunkPath]:
        """Its children, theirs, and so on, nearest first; not itself."""
        return list(_reached(path, self._children))

    def level(self, path: ChunkPath) -> int:
        """One more than the highest child's; 0 for what is no summary. Those of a cycle are one."""
        return self._levels.get(path, 0)

    @cached_property
    def roots(self) -> list[ChunkPath]:
        """The summaries that all others hang below; of a cycle that nothing else names, one."""
        found = []
        for members in self._components:
            own = set(members)
            if not any(parent not in own for path in own for parent in self._parents.get(path, ())):
                found.append(min(own, key=natural_key))
        return in_order(found)

    def is_stale(self, path: ChunkPath) -> bool:
        """Whether a child of it is not as it was read, or is a summary that is stale."""
        return path in self._stale

    def stale(self, path: ChunkPath) -> Staleness | None:
        """Why a summary is out of date; None where it is not."""
        if path not in self._stale:
            return None
        children = self.children(path)
        return Staleness(
            changed=_paths(children, lambda child: child.state == "changed"),
            gone=_paths(children, lambda child: child.state == "gone"),
            stale=_paths(
                children,
                lambda child: child.state == "fresh" and child.is_stale and child.path != path,
            ),
        )

    def stale_paths(self) -> list[ChunkPath]:
        """All summaries that are out of date."""
        return in_order(self._stale)

    # Derived once, when it is first asked for

    @cached_property
    def _children(self) -> dict[ChunkPath, list[ChunkPath]]:
        return {
            path: list(dict.fromkeys(row.path for row in rows)) for path, rows in self._rows.items()
        }

    @cached_property
    def _parents(self) -> dict[ChunkPath, list[ChunkPath]]:
        parents: dict[ChunkPath, list[ChunkPath]] = {}
        for summary, children in self._children.items():
            for path in children:
                parents.setdefault(path, []).append(summary)
        return parents

    @cached_property
    def _stale(self) -> set[ChunkPath]:
        first = [
            path
            for path, rows in self._rows.items()
            if not all(row.in_step and row.is_there for row in rows)
        ]
        found = set(first)
        while first:
            for parent in self._parents.get(first.pop(), ()):
                if parent not in found:
                    found.add(parent)
                    first.append(parent)
        return found

    @cached_property
    def _components(self) -> list[list[ChunkPath]]:
        """The summaries, those of a cycle together, each component before those below it."""
        below = {
            path: [child for child in children if child in self._rows]
            for path, children in self._children.items()
        }
        found: list[list[ChunkPath]] = []
        taken: set[ChunkPath] = set()
        for start in reversed(_ended(below)):
            if start in taken:
                continue
            taken.add(start)
            members = [start]
            for path in members:
                new = [parent for parent in self._parents.get(path, ()) if parent not in taken]
                taken.update(new)
                members += new
            found.append(members)
        return found

    @cached_property
    def _levels(self) -> dict[ChunkPath, int]:
        levels: dict[ChunkPath, int] = {}
        for members in reversed(self._components):
            own = set(members)
            below = (
                levels.get(child, 0)
                for path in members
                for child in self._children[path]
                if child not in own
            )
            levels.update(dict.fromkeys(members, 1 + max(below, default=0)))
        return levels


def natural_key(path: ChunkPath) -> tuple[str, bool, str, int, str]:
    """What paths are sorted by: folder, then number in the name."""
    return path.rpartition("/")[0], *chunk_file.sort_key(None, path)


def in_order(paths: Iterable[ChunkPath]) -> list[ChunkPath]:
    """Paths in natural order: ``chunk2.md`` before ``chunk10.md``."""
    return sorted(paths, key=natural_key)


def _paths(
    children: Iterable[TreeChild], wanted: Callable[[TreeChild], bool]
) -> tuple[ChunkPath, ...]:
    return tuple(dict.fromkeys(child.path for child in children if wanted(child)))


def _reached(start: ChunkPath, edges: _Edges) -> Iterator[ChunkPath]:
    """What edges lead to from a path, in steps, those of one step in natural order."""
    seen, step = {start}, [start]
    while step:
        # Each edge is looked at once, however many lead to one path.
        new = dict.fromkeys(to for path in step for to in edges.get(path, _NONE) if to not in seen)
        seen.update(new)
        step = in_order(new)
        yield from step


def _ended(edges: _Edges) -> list[ChunkPath]:
    """All paths in the order in which a walk in depth is done with them (Kosaraju's first half)."""
    done: list[ChunkPath] = []
    seen: set[ChunkPath] = set()
    for start in edges:
        if start in seen:
            continue
        seen.add(start)
        way = [(start, iter(edges[start]))]
        while way:
            path, rest = way[-1]
            for to in rest:
                if to not in seen:
                    seen.add(to)
                    way.append((to, iter(edges[to])))
                    break
            else:
                done.append(path)
                way.pop()
    return done
