"""The tree of summaries as a screen opens it: resources, their roots, what each was made from.

Reads the catalog alone. One rule: a node is what the tree says it is, with its level computed and
its way from the top free of circles, whatever the files claim.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from filestore.browse.name_filter import NameFilter
from filestore.browse.rows import Row, opening_words
from filestore.catalog import Catalog, FileRow, queries, summaries
from filestore.catalog.summaries import ChildRow
from filestore.core.paths import ChunkPath, StorePath, Tree
from filestore.sidecar.session import Parts
from filestore.sidecar.summary_tree import ChildState, SummaryTree, in_order
from filestore.verify import recorded_state


class Family(Struct, frozen=True, kw_only=True):
    """What is above a file in the tree, and what is below it."""

    node: Row
    """The file itself."""
    above: tuple[Row, ...]
    """The summaries that it is part of, nearest first."""
    children: tuple[Row, ...]


class Summaries:
    """The tree of a store's catalog, as it is when it is asked for; one thread at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tree = parts.places.tree
        self._of: tuple[str, int] | None = None
        self._known: _Known | None = None

    def resources(self) -> list[Row]:
        """The ones that have summaries, by name."""
        with self._reading() as (_, known):
            return [
                Row(
                    kind="resource",
                    resource=name,
                    children=len(own),
                    stale=sum(path in known.reasons for path in own),
                )
                for name, own in sorted(known.by_resource.items())
            ]

    def roots(self, resource: str) -> list[Row]:
        """The summaries of a resource that no other one of it was made from."""
        with self._reading() as (_, known):
            return [known.node(path) for path in known.roots(resource)]

    def children(self, path: str) -> list[Row]:
        """What a summary was made from, each file once; none for what is no summary."""
        with self._reading() as (_, known):
            return known.children(self._chunk_path(path))

    def titles(self, paths: Sequence[StorePath]) -> dict[StorePath, str]:
        """What some files are called; files that are gone are left out."""
        with self._reading() as (catalog, _):
            return _titles(self._tree, catalog, paths)

    def way_to(self, path: str) -> tuple[str, tuple[StorePath, ...]] | None:
        """The resource and the files that lead from one of its roots to a file, itself the last.

        None for a file that no summary was made from and that is none.
        """
        with self._reading() as (_, known):
            found = known.way_to(self._chunk_path(path))
            if found is None:
                return None
            resource, way = found
            return resource, tuple(map(self._tree.store_path, way))

    def family(self, path: str) -> Family | None:
        """What is above and below a file; None where it is in no tree."""
        below = self._chunk_path(path)
        with self._reading() as (catalog, known):
            if below not in known.tree and below not in known.resource_of:
                return None
            above = known.tree.ancestors(below)
            nodes = [known.node(below), *map(known.node, above), *known.children(below)]
            titles = _titles(self._tree, catalog, [node.path for node in nodes])
            nodes = [replace(node, title=titles.get(node.path, "")) for node in nodes]
            return Family(
                node=nodes[0],
                above=tuple(nodes[1 : 1 + len(above)]),
                children=tuple(nodes[1 + len(above) :]),
            )

    def matching(self, wanted: NameFilter) -> list[Row]:
        """The summaries whose path or title has what is wanted, in natural order."""
        with self._reading() as (catalog, known):
            if known.names is None:
                paths = in_order(known.resource_of)
                rows = catalog.files(paths)
                named = (f"{path} {_heading(rows[path])}" for path in paths)
                known.names = paths, "\0".join(one.replace("\0", " ") for one in named)
            paths, joined = known.names
            return [known.node(paths[place]) for place in wanted.places(joined)] if paths else []

    def _chunk_path(self, path: str) -> ChunkPath:
        return self._tree.chunk_path(StorePath(path))

    @contextmanager
    def _reading(self) -> "Iterator[tuple[Catalog, _Known]]":
        """The catalog in one generation, and the tree of it."""
        with self._parts.reading() as catalog:
            now = (catalog.identity, catalog.generation)
            if self._known is None or now != self._of:
                self._of, self._known = now, _Known(self._tree, catalog)
            yield catalog, self._known


class _Known:
    """The tree of one generation."""

    def __init__(self, tree: Tree, catalog: Catalog) -> None:
        self._shown = tree
        self._rows: dict[ChunkPath, list[ChildRow]] = {}
        for row in summaries.all_children(catalog):
            self._rows.setdefault(row.summary, []).append(row)
        self.tree = SummaryTree(row for rows in self._rows.values() for row in rows)
        self.reasons = recorded_state.why_stale(catalog, self.tree) if self.tree else {}
        self.resource_of = summaries.resources_of_summaries(catalog)
        self.names: tuple[list[ChunkPath], str] | None = None
        """All summaries, and what each is called, separated by NUL; once they were filtered."""
        self._roots: dict[str, list[ChunkPath]] = {}

    @cached_property
    def by_resource(self) -> dict[str, list[ChunkPath]]:
        """The summaries of each resource."""
        found: dict[str, list[ChunkPath]] = {}
        for path, resource in self.resource_of.items():
            found.setdefault(resource, []).append(path)
        return found

    def roots(self, resource: str) -> list[ChunkPath]:
        """Of a circle that nothing else names, one."""
        if resource not in self._roots:
            own = self.by_resource.get(resource, [])
            within = SummaryTree(row for path in own for row in self._rows.get(path, ()))
            alone = [path for path in own if path not in self._rows and path not in within]
            self._roots[resource] = in_order({*within.roots, *alone})
        return self._roots[resource]

    def node(self, path: ChunkPath, state: ChildState = "fresh") -> Row:
        """A file of the tree, in a state."""
        rows = self._rows.get(path, ())
        is_summary = path in self.resource_of
        return Row(
            kind="summary" if is_summary else "chunk",
            path=self._shown.store_path(path),
            level=max(self.tree.level(path), int(is_summary)),
            children=len({row.path for row in rows}),
            state=state,
            why=self.reasons.get(path, ""),
        )

    def children(self, path: ChunkPath) -> list[Row]:
        """What a summary was made from: each child once, in the worst of its states."""
        states: dict[ChunkPath, ChildState] = {}
        for child in self.tree.children(path):
            if states.get(child.path, "fresh") == "fresh":
                states[child.path] = child.state
        return [self.node(child, state) for child, state in states.items()]

    def way_to(self, path: ChunkPath) -> tuple[str, list[ChunkPath]] | None:
        """From the nearest root down; the file itself may be one."""
        step: dict[ChunkPath, ChunkPath] = {}
        queue, seen = [path], {path}
        for one in queue:
            resource = self.resource_of.get(one)
            if resource is not None and one in self.roots(resource):
                way = [one]
                while way[-1] != path:
                    way.append(step[way[-1]])
                return resource, way
            for parent in self.tree.parents(one):
                if parent not in seen:
                    seen.add(parent)
                    step[parent] = one
                    queue.append(parent)
        return None


def _titles(tree: Tree, catalog: Catalog, paths: Sequence[StorePath]) -> dict[StorePath, str]:
    """The innermost heading of summaries, the title or the first words of texts."""
    rows = catalog.files([tree.chunk_path(path) for path in paths])
    found = {path: _heading(row) for path, row in rows.items() if row.kind == "summary"}
    others = [row.id for path, row in rows.items() if not found.get(path)]
    if others:
        titles, openings = queries.titles_of_files(catalog, others), opening_words(catalog, others)
        for path, row in rows.items():
            if not found.get(path):
                found[path] = titles.get(row.id) or openings.get(row.id, (0, ""))[1]
    return {tree.store_path(path): title for path, title in found.items()}


def _heading(row: FileRow) -> str:
    headings = row.headings_and_pages()[0]
    return headings[-1] if headings else ""
