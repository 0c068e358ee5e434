"""What a store, a folder, a resource or a question is about: summaries, contents, headings.

Two rules: nothing is made up here (where there is no summary, folders, titles and headings are
shown, with a note, and a summary of text that changed since says so); and however many documents
there are, what is given is bounded, and what is left is counted.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from functools import cached_property
from typing import Final, Literal

from msgspec import Struct

from filestore.browse.contents import Contents, Folder, Listed, Wanted, contents, documents_of
from filestore.browse.named import file_in_tree, resource_named, resources_below
from filestore.browse.topics import MOST_DOCUMENTS, Topic, topics
from filestore.catalog import (
    Catalog,
    CatalogPages,
    FileRow,
    UnknownResourceError,
    decode_path,
    queries,
    summaries,
)
from filestore.chunks import chunk_file, kept
from filestore.chunks.layout import shown_name
from filestore.chunks.observation import DOCUMENT, INDEXED
from filestore.core.errors import UsageError
from filestore.core.findings import FromIndex
from filestore.core.paths import ChunkPath, StorePath
from filestore.core.schema import JsonObject
from filestore.extract import is_code
from filestore.extract.markdown_read import Markdown
from filestore.search import Query, freshness
from filestore.search.freshness import Freshness, Look
from filestore.search.passage import trails, units_of
from filestore.search.session import SearchSession
from filestore.sidecar.session import Parts
from filestore.sidecar.summary_tree import SummaryTree, in_order
from filestore.verify.recorded_state import why_stale

DEEPEST: Final = 50
MOST_NODES: Final = 40
"""More are not read for one overview; which were left out is reported."""
_ANSWERS: Final = 10
_LISTED: Final = 20
"""Documents; of more only the ones in the folder itself are."""
_HEADINGS: Final = 60
_ROOM: Final = 2_000
"""Characters of the folders and the documents that lie in one."""
_SHARE: Final = 0.5
"""A summary with less than so much of the best one's score answers something else."""
_LONGEST: Final = 300
_NO_SUMMARIES: Final = (
    "no summaries are here: 'filestore enrich --summaries' makes them;"
    " what is shown are titles and headings"
)


class OverviewNode(JsonObject, Struct, frozen=True, kw_only=True):
    """A summary, or what it was made from."""

    path: StorePath
    """The file."""
    kind: str
    """`chunk` or `summary`."""
    level: int
    """Its level above the chunks, as the children say."""
    title: str
    """Its innermost heading, else its name."""
    text: str
    """How it begins: a sentence or two, or a line; empty where a text above or before it says the
    same."""
    freshness: Freshness
    """As of a hit."""
    children: int
    """Texts that it was made from."""
    below: "tuple[OverviewNode, ...]" = ()
    """Those of them that are shown."""


class OverviewDocument(JsonObject, Struct, frozen=True, kw_only=True):
    """A resource; in place, a document."""

    resource: str
    """Its name; in place, the document."""
    title: str
    """Of the document; empty where it has none, or several."""
    source: str | None
    """Its original."""
    chunks: int
    """Indexed files; in place, sections."""


class OutlineEntry(JsonObject, Struct, frozen=True, kw_only=True):
    """A heading, where it comes first."""

    title: str
    """A heading."""
    depth: int
    """1 for the outermost."""
    path: StorePath
    """The file in which it comes first."""


class Overview(FromIndex, frozen=True, kw_only=True):
    """What something is about."""

    about: str
    """What was asked about: `store`, `folder`, `resource`, `file` or `query`."""
    name: str
    """Its name, path, or words; empty for the store."""
    generation: int
    """Of the index that answered."""
    resources: int
    """Documents of the store or the folder."""
    chunks: int
    """Chunks of the document, the folder, or the store."""
    summaries: int
    """Summaries of the document, the folder, or the store."""
    stale: int
    """How many of the summaries are of text that changed since."""
    nodes: tuple[OverviewNode, ...]
    """The highest summaries."""
    documents: tuple[OverviewDocument, ...] = ()
    """What there is: all of a few, else the ones in the folder itself; of a question that
    no summary answers, what has the answer, best first."""
    outline: tuple[OutlineEntry, ...] = ()
    """The first headings of a document."""
    folders: tuple[Folder, ...] = ()
    """Of the store or the folder, with counts."""
    newest: tuple[Listed, ...] = ()
    """The documents that changed last, newest first."""
    linked: tuple[Listed, ...] = ()
    """The ones that most others link to."""
    topics: tuple[Topic, ...] = ()
    """Of the store or the folder, where there are enough documents."""
    left: int = 0
    """Folders, documents and headings that are not given."""
    notes: tuple[str, ...] = ()
    """What to know about this answer."""


def overview(parts: Parts, session: SearchSession, asked: str, depth: int) -> Overview:
    """What a store, a folder, a resource, a file or a question is about.

    Args:
        parts: The store's.
        session: Answers questions.
        asked: A document, a path, a folder, or a question; "" for the whole store.
        depth: How many levels of the tree are shown, from the top.

    Raises:
        UsageError: The depth is none.
        CatalogMissingError: There is no catalog yet.
    """
    if not 1 <= depth <= DEEPEST:
        raise UsageError(f"--depth takes 1 to {DEEPEST}, found {depth}")
    with parts.reading() as catalog:
        teller = _Teller(parts, catalog, depth)
        if not asked:
            return teller.of_store()
        resource = None
        if not parts.places.tree.has_sections:
            with suppress(UnknownResourceError):
                resource = resource_named(catalog, asked, parts.places)
        if resource is not None:
            return teller.of_resource(resource)
        found = file_in_tree(parts.places, asked)
        if found is not None and found[0] in catalog.files([found[0]]):
            return teller.of_file(found[0])
        if below := resources_below(catalog, asked, parts.places):
            return teller.of_folder(asked, below)
        return teller.of_query(asked, session)


def _brief(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class _Teller:
    """Tells what parts of one generation are about."""

    def __init__(self, parts: Parts, catalog: Catalog, depth: int) -> None:
        self._parts = parts
        self._catalog = catalog
        self._depth = depth
        self._tree = SummaryTree(summaries.all_children(catalog))
        self._stale = why_stale(catalog, self._tree) if self._tree else {}
        self._looks: dict[ChunkPath, Look] = {}
        self._rows: dict[ChunkPath, FileRow] = {}
        self._notes: list[str] = []
        self._given: set[str] = set()

    def of_store(self) -> Overview:
        """The whole: its roots, its resources."""
        if not self._tree:
            self._notes.append(_NO_SUMMARIES)
        found = contents(self._parts, self._catalog, Wanted(most=_ROOM))
        return self._made("store", "", self._nodes(self._tree.roots), around=found)

    def of_folder(self, asked: str, below: Sequence[str]) -> Overview:
        """A folder: the trees of its documents, and what it holds."""
        found = contents(self._parts, self._catalog, Wanted(folder=asked, most=_ROOM))
        names = set(below)
        of = summaries.resources_of_summaries(self._catalog) if self._tree else {}
        own = {path for path, resource in of.items() if resource in names}
        return self._made(
            "folder" if found.folder else "store",
            found.folder,
            self._nodes(self._roots(own)),
            documents=[one for one in self._documents if one.resource in names],
            around=found,
            own=own,
        )

    def of_resource(self, name: str) -> Overview:
        """One resource: its tree and its outline."""
        return self._of_rows(name, self._catalog.files_of(name))

    def _of_rows(self, name: str, files: Iterable[FileRow]) -> Overview:
        rows = list({row.path: row for row in files if row.state == INDEXED}.values())
        own = {row.path for row in rows if row.kind == "summary"} & {*self._tree.summaries}
        return self._made(
            "resource",
            name,
            self._nodes(self._roots(own)),
            documents=[one for one in self._documents if one.resource == name],
            outline=self._outline(rows),
            own={row.path for row in rows if row.kind == "summary"},
        )

    def _roots(self, own: Set[ChunkPath]) -> list[ChunkPath]:
        """The highest of some summaries; that there are none is noted."""
        roots = [path for path in in_order({*own}) if own.isdisjoint(self._above(path))]
        if not roots:
            self._notes.append(_NO_SUMMARIES)
        return roots

    def _above(self, path: ChunkPath) -> list[ChunkPath]:
        # Of a cycle the first counts as the top.
        below = set(self._tree.descendants(path))
        return [one for one in self._tree.ancestors(path) if one not in below or one < path]

    def of_file(self, path: ChunkPath) -> Overview:
        """One file: what is below it; a document in place is a resource."""
        (row,) = self._catalog.files([path]).values()
        if row.kind == DOCUMENT:
            return self._of_rows(shown_name(path), [row, *self._catalog.files_of(shown_name(path))])
        nodes = self._nodes([path])
        return self._made("file", self._shown(path), nodes, outline=self._outline([row]))

    def of_query(self, query: str, session: SearchSession) -> Overview:
        """A question: the highest summaries that answer it, and what is below them."""
        fitting: list[ChunkPath] = []
        if self._tree:
            # The summaries that answer about as well as the best one.
            answer = session.search(Query(text=query, k=_ANSWERS, kind=("summary",)))
            best = max((hit.score for hit in answer.hits), default=0.0)
            fitting = [
                self._parts.places.tree.chunk_path(hit.path)
                for hit in answer.hits
                if hit.freshness != "gone" and hit.score >= _SHARE * best
            ]
        highest = [path for path in fitting if {*fitting}.isdisjoint(self._above(path))]
        if not self._tree:
            self._notes.append(_NO_SUMMARIES)
        if not highest:
            answer = session.search(Query(text=query, k=_ANSWERS))
            self._notes += answer.notes
            # In place a document is its own resource.
            names = dict.fromkeys(hit.resource or hit.path for hit in answer.hits)
            known = {one.resource: one for one in self._documents}
            found = [known[name] for name in names if name in known]
            return self._made("query", query, [], documents=found)
        return self._made("query", query, self._nodes(highest))

    # Nodes

    def _nodes(self, tops: Sequence[ChunkPath]) -> list[OverviewNode]:
        """Some files and what is below them, level by level, to the depth asked for."""
        ways: dict[ChunkPath, list[ChunkPath]] = {}
        level, seen = list(dict.fromkeys(tops)), set(tops)
        left = MOST_NODES - len(level)
        self._look(level[:MOST_NODES])
        for _ in range(self._depth - 1):
            following = []
            for path in level[:MOST_NODES]:
                children = (child for child in self._tree.children(path) if child.state != "gone")
                new = [one for one in dict.fromkeys(c.path for c in children) if one not in seen]
                ways[path] = new[: max(0, left)]
                left -= len(new)
                seen.update(ways[path])
                following += ways[path]
            self._look(following)
            level = following
        if left < 0:
            self._notes.append(
                f"{-left:,} more are not shown: name a document, or one of the files"
            )
        return [node for path in tops[:MOST_NODES] for node in self._node(path, ways)]

    def _look(self, paths: Sequence[ChunkPath]) -> None:
        texts = [(path, 0) for path in paths]
        for row, _, look in freshness.looks(self._parts, self._catalog, texts):
            self._rows[row.path], self._looks[row.path] = row, look

    def _node(
        self, path: ChunkPath, ways: Mapping[ChunkPath, Sequence[ChunkPath]]
    ) -> Iterable[OverviewNode]:
        """The node of a file that is shown, with those below; none of one that is excluded."""
        look = self._looks.get(path)
        if look is None or look.freshness is None:
            return
        is_stale = look.freshness == "fresh" and path in self._stale
        body = Markdown(look.body)
        texts = (
            " ".join(body.read(one.start, one.end).text.split())
            for one in units_of(body)
            if not one.is_heading
        )
        text = next((one for one in texts if one not in self._given), "")
        self._given.add(text)
        yield OverviewNode(
            path=self._shown(path),
            kind=self._rows[path].kind,
            level=self._tree.level(path),
            title=_brief((look.headings[-1] if look.headings else "") or path.rpartition("/")[2]),
            text=_brief(text),
            freshness="outdated" if is_stale else look.freshness,
            children=len(self._tree.children(path)),
            below=tuple(node for one in ways.get(path, ()) for node in self._node(one, ways)),
        )

    def _shown(self, path: ChunkPath) -> StorePath:
        return self._parts.places.tree.store_path(path)

    # Documents and headings

    @cached_property
    def _documents(self) -> list[OverviewDocument]:
        if not self._parts.places.tree.has_sections:
            titles = CatalogPages(self._catalog).document_titles()
            return [
                OverviewDocument(
                    resource=name,
                    title=_brief(titles.get(name, "")),
                    source=source or None,
                    chunks=chunks,
                )
                for name, source, chunks in self._catalog.resources()
            ]
        counts = {
            decode_path(path): sections
            for path, sections in queries.documents_with_sections(self._catalog)
        }
        rows = self._catalog.files(list(counts))
        title_of = queries.titles_of_files(self._catalog, [row.id for row in rows.values()])
        return [
            OverviewDocument(
                resource=self._shown(path),
                title=_brief(title_of.get(rows[path].id, "")) if path in rows else "",
                source=None,
                chunks=sections,
            )
            for path, sections in counts.items()
        ]

    def _outline(self, rows: Sequence[FileRow]) -> list[OutlineEntry]:
        """The headings of files in reading order, each once where it comes first."""
        found: dict[tuple[str, ...], OutlineEntry] = {}
        for path, headings in self._trails(rows):
            for depth in range(1, len(headings) + 1):
                found.setdefault(
                    headings[:depth],
                    OutlineEntry(
                        title=_brief(headings[depth - 1]), depth=depth, path=self._shown(path)
                    ),
                )
        return list(found.values())

    def _trails(self, rows: Sequence[FileRow]) -> Iterable[tuple[ChunkPath, tuple[str, ...]]]:
        """The headings above each text, and the ones in it, as it was indexed."""
        for row in sorted(rows, key=lambda row: chunk_file.sort_key(row.position, row.path)):
            data = self._catalog.content(row.id)
            if not data or row.kind == "summary":
                # A catalog that was rebuilt has none; 'verify' says so.
                continue
            if self._parts.places.tree.has_sections:
                chunk = kept.read(data)
                texts = [(one.headings, chunk.body[one.start : one.end]) for one in chunk.sections]
            else:
                texts = [(row.headings_and_pages()[0], chunk_file.parse(data).body)]
            is_plain = is_code(self._catalog.source_of(row) or row.path)
            for headings, body in texts:
                yield row.path, headings
                if not is_plain:
                    yield from ((row.path, trail) for trail in trails(body, headings))

    def _topics(self, folder: str) -> list[Topic]:
        known = documents_of(self._parts, self._catalog)
        below = {name: path for name, path in known.items() if name.startswith(folder)}
        if len(below) > MOST_DOCUMENTS:
            self._notes.append(f"topics are of {MOST_DOCUMENTS:,} of {len(below):,} documents")
        return topics(self._parts, self._catalog, below)

    def _made(
        self,
        about: Literal["store", "folder", "resource", "file", "query"],
        name: str,
        nodes: Sequence[OverviewNode],
        *,
        documents: Sequence[OverviewDocument] = (),
        outline: Sequence[OutlineEntry] = (),
        around: Contents | None = None,
        own: Set[ChunkPath] | None = None,
    ) -> Overview:
        """The overview, with counts of these documents and summaries, or of the whole store."""
        if own is None:
            made = len(self._catalog.files_of_kind("summary"))
            counted, stale = self._documents, len(self._stale)
        else:
            made, stale = len(own), sum(path in self._stale for path in own)
            counted = list(documents)
        found: list[Topic] = []
        if around is not None:
            found = self._topics("" if own is None else around.folder)
        shown, left = documents, max(0, len(outline) - _HEADINGS)
        if around is not None:
            lying = {one.path for one in around.items}
            few = len(counted) <= _LISTED
            fit = [one for one in counted if few or (one.source or one.resource) in lying]
            shown = fit[:_LISTED]
            left += len(counted) - len(shown)
        # A resource counts its summaries, a document in place does not.
        chunks = sum(one.chunks for one in counted)
        chunks -= 0 if self._parts.places.tree.has_sections else made
        if stale:
            are = "summary is" if stale == 1 else "summaries are"
            self._notes.append(f"{stale:,} {are} out of date: run 'filestore enrich --refresh'")
        looks = list(self._looks.values())
        self._notes += freshness.notes(looks)
        return Overview(
            about=about,
            name=name,
            generation=self._catalog.generation,
            resources=len(counted if about == "folder" else self._documents),
            chunks=chunks,
            summaries=made,
            stale=stale,
            nodes=tuple(nodes),
            documents=tuple(shown),
            outline=tuple(outline[:_HEADINGS]),
            folders=around.folders if around is not None else (),
            newest=around.newest if around is not None else (),
            linked=around.linked if around is not None else (),
            topics=tuple(found),
            left=left,
            notes=tuple(dict.fromkeys(self._notes)),
        )
