"""The tree of summaries as a screen opens it: the roots of a resource, what each was made from.

Reads the catalog alone. Two rules: a node is what the tree says it is, with its level computed and
its way from the top free of circles, whatever the files claim; and a resource takes as long as what
is below its own summaries, however large the store is.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from filestore.browse.rows import Row, opening_words
from filestore.catalog import Catalog, FileRow, queries, summaries
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
        """Identity and generation of the catalog that `_known` was read from."""
        self._known: dict[str, _Known] = {}

    def roots(self, resource: str) -> list[Row]:
        """The summaries of a resource that no other one of it was made from; often none."""
        with self._reading() as catalog:
            known = self._of_resource(catalog, resource)
            return known.nodes(catalog, dict.fromkeys(known.roots, "fresh"))

    def of_folders(self) -> dict[str, list[Row]]:
        """Of a store in place the roots that cover several documents, by folder: "docs/", or ""."""
        with self._reading() as catalog:
            return {
                f"{name}/" if name else "": self.roots(name)
                for name in summaries.folders_with_summaries(catalog)
            }

    def children(self, path: str) -> list[Row]:
        """What a summary was made from, each file once; none for what is no summary."""
        with self._reading() as catalog:
            known = self._with(catalog, self._chunk_path(path))
            return known.children(catalog, self._chunk_path(path)) if known else []

    def way_to(self, path: str) -> tuple[StorePath, ...]:
        """What leads from a root of its resource to a summary, itself the last; () for others."""
        below = self._chunk_path(path)
        with self._reading() as catalog:
            known = self._with(catalog, below)
            way = known.way_to(below) if known and below in known.own else ()
            return tuple(map(self._tree.store_path, way))

    def family(self, path: str) -> Family | None:
        """What is above and below a file; None where it is in no tree."""
        below = self._chunk_path(path)
        with self._reading() as catalog:
            known = self._with(catalog, below)
            above = summaries.Ancestors(catalog).of([below]).get(below, set())
            if known is None or not (above or below in known.own):
                return None
            nearest = known.tree.ancestors(below)
            (node,) = known.nodes(catalog, {below: "fresh"})
            nodes = known.nodes(catalog, dict.fromkeys(nearest, "fresh"))
            # Those of other resources, each with what its own tree says of it.
            for one in in_order(above.difference(nearest)):
                other = self._with(catalog, one)
                nodes += other.nodes(catalog, {one: "fresh"}) if other else []
            children = tuple(known.children(catalog, below))
            return Family(node=node, above=tuple(nodes), children=children)

    def _chunk_path(self, path: str) -> ChunkPath:
        return self._tree.chunk_path(StorePath(path))

    def _with(self, catalog: Catalog, path: ChunkPath) -> "_Known | None":
        """The tree of the resource that a file is of."""
        row = catalog.files([path]).get(path)
        return None if row is None else self._of_resource(catalog, row.resource)

    def _of_resource(self, catalog: Catalog, resource: str) -> "_Known":
        if resource not in self._known:
            self._known[resource] = _Known(self._tree, catalog, resource)
        return self._known[resource]

    @contextmanager
    def _reading(self) -> Iterator[Catalog]:
        """The catalog in one generation; what was kept of another one is dropped."""
        with self._parts.reading() as catalog:
            now = (catalog.identity, catalog.generation)
            if now != self._of:
                self._of, self._known = now, {}
            yield catalog


class _Known:
    """The tree of one resource, in one generation."""

    def __init__(self, tree: Tree, catalog: Catalog, resource: str) -> None:
        self._shown = tree
        self.own = summaries.summaries_of(catalog, resource)
        """Its summaries."""
        rows = summaries.children_below(catalog, self.own)
        self.tree = SummaryTree(rows)
        self._reasons = recorded_state.why_stale(catalog, self.tree, resource) if rows else {}
        within = SummaryTree(row for row in rows if row.summary in self.own)
        alone = [path for path in self.own if path not in within]
        self.roots = in_order({*within.roots, *alone})
        """Of a circle that nothing else names, one."""

    def nodes(self, catalog: Catalog, states: "dict[ChunkPath, ChildState]") -> list[Row]:
        """Files of the tree, each in a state, in this order."""
        rows = catalog.files(list(states))
        titles = _titles(catalog, rows.values())
        found = []
        for path, state in states.items():
            row = rows.get(path)
            is_summary = self.tree.is_summary(path) or (row is not None and row.kind == "summary")
            one = Row(
                kind="summary" if is_summary else "chunk",
                path=self._shown.store_path(path),
                title=titles.get(path, ""),
                level=max(self.tree.level(path), int(is_summary)),
                children=len({child.path for child in self.tree.children(path)}),
                edited=row is not None and row.edited,
                state=state,
                why=self._reasons.get(path, ""),
            )
            found.append(one)
        return found

    def children(self, catalog: Catalog, path: ChunkPath) -> list[Row]:
        """What a summary was made from: each child once, in the worst of its states."""
        states: dict[ChunkPath, ChildState] = {}
        for child in self.tree.children(path):
            if states.get(child.path, "fresh") == "fresh":
                states[child.path] = child.state
        return self.nodes(catalog, states)

    def way_to(self, path: ChunkPath) -> list[ChunkPath]:
        """From the nearest root down; the file itself may be one."""
        step: dict[ChunkPath, ChunkPath] = {}
        queue, seen = [path], {path}
        for one in queue:
            if one in self.roots:
                way = [one]
                while way[-1] != path:
                    way.append(step[way[-1]])
                return way
            for parent in self.tree.parents(one):
                if parent not in seen:
                    seen.add(parent)
                    step[parent] = one
                    queue.append(parent)
        return []


def _titles(catalog: Catalog, rows: Iterable[FileRow]) -> dict[ChunkPath, str]:
    """The innermost heading of summaries, the title or the first words of texts."""
    found = {row.path: _heading(row) for row in rows if row.kind == "summary"}
    others = {row.id: row.path for row in rows if not found.get(row.path)}
    if others:
        ids = list(others)
        titles, openings = queries.titles_of_files(catalog, ids), opening_words(catalog, ids)
        for one, path in others.items():
            found[path] = titles.get(one) or openings.get(one, (0, ""))[1]
    return found


def _heading(row: FileRow) -> str:
    headings = row.headings_and_pages()[0]
    return headings[-1] if headings else ""
