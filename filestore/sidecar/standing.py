"""What documents say of others: which one takes their place, and from which files they were made.

Asks the catalog; of sources that git does not know it looks at the stat. One rule: only what the
store may look at anyway is looked at, and what cannot be judged is reported, not guessed.
"""

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import Catalog, ages, decode_path, queries
from filestore.catalog.ages import Aged
from filestore.chunks import kept, resource_record
from filestore.chunks.links import Names, called, link_key
from filestore.config.layout import Places
from filestore.config.settings import KeyNames
from filestore.core.hashing import ORIGIN_PREFIX
from filestore.core.paths import ChunkPath, StorePath, Tree
from filestore.core.safe_text import brief, listed, shown_path
from filestore.extract.links import Link, is_external, links
from filestore.git import repository
from filestore.sidecar import originals
from filestore.sidecar.originals import Reachable

_NOTHING: Final = frozenset(("", "null", "false", "none", "~"))
_SHOWN: Final = 200
_MOST_SOURCES: Final = 100
_MOST_STEPS: Final = 32
"""Of a chain of successors more are not followed."""
_HASH: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)


def names_called(catalog: Catalog, keys: frozenset[str]) -> Names:
    """The names of the files that links of some keys may lead to."""
    aliases = ((alias, path) for path, alias in queries.files_with_key(catalog, "aliases"))
    return Names(paths_called(catalog, keys), aliases)


def paths_called(catalog: Catalog, keys: frozenset[str]) -> Iterator[ChunkPath]:
    """The files that links of some keys may lead to by their path."""
    # Few of very many names are folded: one that is plain begins with the key it is called by.
    starts = tuple(key.encode() for key in keys if key.isascii())
    paths = (
        decode_path(path)
        for path in queries.all_paths(catalog)
        if (name := path[path.rfind(b"/") + 1 :].lower()).startswith((*starts, b"index.md"))
        or not name.isascii()
    )
    return called(paths, keys)


class Successor(Struct, frozen=True, kw_only=True):
    """What a document names as taking its place."""

    written: str
    """As it is named."""
    document: str = ""
    """The document that this is, relative to the store root; "" for none that is here."""
    in_circle: bool = False
    """Whether that leads back to the document itself."""

    @property
    def is_address(self) -> bool:
        """Whether it is one of the network, of which nothing is known."""
        return not self.document and is_external(self.written)

    @property
    def words(self) -> str:
        """What is to be known of the document that names it."""
        if self.document:
            circle = ", in a circle" if self.in_circle else ""
            return f"superseded by {shown_path(self.document)}{circle}"
        if self.is_address:
            return f"superseded by {shown_path(self.written[:_SHOWN])}"
        return f"superseded by {brief(self.written)}, which is not here"


class Successors:
    """Which documents take the place of which others."""

    def __init__(self, places: Places, catalog: Catalog, names: KeyNames) -> None:
        """Prepare; the catalog is asked when something is sought."""
        self._places, self._catalog = places, catalog
        self._named: dict[str, list[str]] = {}
        for key in names.superseded_by:
            for document, value in ages.with_key(catalog, places.tree, key):
                if value.strip().lower() not in _NOTHING:
                    self._named.setdefault(document, []).append(value.strip())
        self._found: dict[str, tuple[Successor, ...]] = {}

    @property
    def documents(self) -> list[str]:
        """Documents that name one, by path."""
        return sorted(self._named)

    def of(self, document: str) -> tuple[Successor, ...]:
        """What takes the place of a document, as it says."""
        if document not in self._found:
            direct = [self._successor(document, one) for one in self._named.get(document, ())]
            self._found[document] = tuple(
                replace(one, in_circle=bool(one.document) and document in self._ways(one.document))
                for one in direct
            )
        return self._found[document]

    def behind(self, document: str) -> set[str]:
        """The documents that take its place, and the ones after them; none in a circle."""
        ways = {
            way for one in self.of(document) if one.document for way in self._ways(one.document)
        }
        return set() if document in ways else ways

    def _ways(self, document: str) -> set[str]:
        """A document, and all that successors lead to from it."""
        found, fresh = {document}, [document]
        while fresh and len(found) <= _MOST_STEPS:
            named = self._named.get(here := fresh.pop(), ())
            further = {self._successor(here, one).document for one in named} - found - {""}
            found |= further
            fresh += further
        return found

    def _successor(self, document: str, written: str) -> Successor:
        key = document, written
        if key not in self._resolved:
            found = "" if is_external(written) else self._document(document, written)
            self._resolved[key] = Successor(written=written, document=found)
        return self._resolved[key]

    @cached_property
    def _resolved(self) -> dict[tuple[str, str], Successor]:
        return {}

    def _document(self, document: str, written: str) -> str:
        names, sources = self._names
        note = ChunkPath(self._plain(document))
        for link in _as_links(written):
            if (found := names.resolve(link, note)) is not None:
                named = sources.get(found, str(found))
                # A chunk is of its document.
                tree = self._places.tree
                path = tree.chunk_path(StorePath(named)) if tree.is_written else None
                row = self._catalog.files([path]).get(path) if path is not None else None
                return (self._catalog.source_of(row) if row else None) or named
        return self._by_title.get(written.casefold(), "")

    @cached_property
    def _by_title(self) -> dict[str, str]:
        """The documents by their titles, where one alone is called so."""
        found: dict[str, str] = {}
        for document, title in ages.with_key(self._catalog, self._places.tree, "title"):
            found[title.casefold()] = "" if title.casefold() in found else document
        return found

    @cached_property
    def _names(self) -> tuple[Names, dict[ChunkPath, str]]:
        """What resolves names, and the document at a path that it gives, if that is another."""
        written = {one for values in self._named.values() for one in values}
        keys = frozenset(link_key(link) for one in written for link in _as_links(one))
        if self._places.tree.has_sections:
            return names_called(self._catalog, keys), {}
        own = {source for _, _, source, _ in self._catalog.documents()}
        paths = map(decode_path, queries.all_paths(self._catalog))
        own |= {str(self._places.tree.store_path(path)) for path in paths}
        documents = {ChunkPath(self._plain(one)): one for one in own}
        return Names(called(documents, keys)), documents

    def _plain(self, document: str) -> str:
        """A document relative to the work tree, where originals lie outside the store root."""
        if self._places.tree.has_sections:
            return document
        return posixpath.normpath(f"{self._prefix}/{document}")

    @cached_property
    def _prefix(self) -> str:
        root = os.path.realpath(self._places.root)
        return os.path.relpath(root, repository.work_tree(root))


def _as_links(written: str) -> tuple[Link, ...]:
    """What a text may mean that is a link, a path or a name."""
    if found := links(written):
        return found
    both: tuple[Literal["markdown", "wiki"], ...] = ("markdown", "wiki")
    return tuple(Link(kind=kind, target=written, heading="", label="", line=0) for kind in both)


class Source(Struct, frozen=True, kw_only=True):
    """A file that a document says it was made from."""

    path: str
    """As it is named."""
    digest: str = ""
    """The hash that it is to have, as `source_hash` gives it; "" where none is named."""


class Judged(Struct, frozen=True, kw_only=True):
    """What became of the sources of a document."""

    changed: tuple[str, ...] = ()
    """Sources that changed since."""
    gone: tuple[str, ...] = ()
    """Sources that are not there any more."""
    unknown: tuple[str, ...] = ()
    """Why others cannot be judged, each in words."""

    @property
    def words(self) -> tuple[str, ...]:
        """What is to be known of the document that names them."""
        changed = f"{listed(self.changed)} changed since" if self.changed else ""
        are = "is" if len(self.gone) == 1 else "are"
        return tuple(filter(None, (changed, f"{listed(self.gone)} {are} gone" * bool(self.gone))))


class Sources:
    """Judges the sources of documents, in one snapshot of the catalog."""

    def __init__(
        self, catalog: Catalog, reachable: Callable[[], Reachable], names: KeyNames
    ) -> None:
        """Prepare; `reachable` says where the store may look."""
        self._catalog, self._where, self._keys = catalog, reachable, names.sources
        self._known = ages.history(catalog)

    @cached_property
    def _reachable(self) -> Reachable:
        return self._where()

    def judged(self, one: Aged) -> Judged:
        """What became of the sources of a file, or of its document."""
        changed: list[str] = []
        gone: list[str] = []
        unknown: list[str] = []
        named = self.named(one)
        document = one.source or str(one.path)
        places = {
            source: [posixpath.normpath(f"{folder}/{source.path}") for folder in folders]
            for source in named
            for folders in [dict.fromkeys((posixpath.dirname(document) or ".", "."))]
        }
        keys = {self._known.path(path) for two in places.values() for path in [*two, document]}
        at = ages.committed(self._catalog, keys) if self._known.head else {}
        noted_s = ages.last_commit(one, self._known, at)
        for source, two in places.items():
            if any(self._catalog.closes(ChunkPath(path)) or path in self._closed for path in two):
                unknown.append(f"{shown_path(source.path[:_SHOWN])}: it is not looked at")
                continue
            commits = (at.get(self._known.path(path)) for path in two)
            first, last_s, is_edited = next(filter(None, commits), (0, 0, True))
            if noted_s and first and not is_edited:
                # Both are as they were committed.
                changed += [shown_path(source.path[:_SHOWN])] if last_s > noted_s else []
                continue
            became, why_not = self._by_hash(source, two)
            shown = shown_path(source.path[:_SHOWN])
            changed += [shown] if became == "changed" else []
            gone += [shown] if became == "gone" else []
            unknown += [f"{shown}: {why_not}"] if why_not else []
        return Judged(changed=tuple(changed), gone=tuple(gone), unknown=tuple(unknown))

    @cached_property
    def _closed(self) -> set[str]:
        return self._catalog.closed()

    def naming(self, tree: Tree) -> list[Aged]:
        """One file of each document that names sources."""
        keys = (*self._keys, *(f"{key}.path" for key in self._keys))
        if not queries.has_key(self._catalog, keys):
            return []
        files = ages.all_aged(self._catalog, tree)
        says = ages.statements(self._catalog, files, KeyNames(sources=keys), only=("sources",))
        found = {one.source or str(one.path): one for one in files if one.file in says}
        return list(found.values())

    def hashed(self, tree: Tree) -> list[originals.RecordedDocument]:
        """The sources of which documents name a hash, as `originals.look` takes them."""
        found = {}
        for one in self.naming(tree):
            document = one.source or str(one.path)
            for source in self.named(one):
                for folder in (posixpath.dirname(document) or ".", ".") if source.digest else ():
                    path = posixpath.normpath(f"{folder}/{source.path}")
                    found[path] = (ChunkPath(""), "", path, source.digest)
        return list(found.values())

    def named(self, one: Aged) -> list[Source]:
        """The sources that a file, or its document, names."""
        found: dict[Source, None] = {}
        for metadata in self._metadata(one):
            for key in self._keys:
                value = metadata.get(key)
                for each in value if isinstance(value, list) else [value]:
                    if (source := _source(each)) is not None:
                        found[source] = None
        return list(found)[:_MOST_SOURCES]

    def _metadata(self, one: Aged) -> Iterator[Mapping[str, Any]]:
        """What a file and its document have above their text."""
        data = self._catalog.content(one.file) or b""
        if kept.is_document(data):
            yield kept.decode(data, part=0).metadata
            return
        yield kept.read(data).user if data else {}
        for record in self._catalog.records_of(one.resource):
            for document in resource_record.parse(record).documents:
                if document.source == one.source:
                    yield document.metadata

    def _by_hash(self, source: Source, paths: Sequence[str]) -> tuple[str, str]:
        """Whether a source `changed` or is `gone`, or neither; and why that is not known."""
        if is_external(source.path) or "\0" in source.path:
            return "", "it is not a file of the store"
        near = [path for path in paths if self._reachable.path(path) is not None]
        there = [path for path in near if os.path.lexists(self._reachable.path(path) or "")]
        if not near:
            return "", "it is not looked at"
        if not there:
            return "gone", ""
        if not source.digest:
            return "", "it is not committed, and no sha256 of it is named"
        asked = [(ChunkPath(""), "", there[0], source.digest)]
        seen = originals.look(self._catalog, self._reachable, documents=asked).seen.get(there[0])
        if seen is None or seen.found == source.digest:
            return "", ""
        if seen.found and not seen.found.startswith(ORIGIN_PREFIX):
            return "", f"it has {seen.found}"
        return "" if seen.reason else "changed", seen.reason


def _source(named: Any) -> Source | None:
    """A source as a document names it: a path, or `path` and `sha256`."""
    if isinstance(named, str):
        return Source(path=named.strip()) if named.strip() else None
    if not isinstance(named, Mapping) or not isinstance(path := named.get("path"), str):
        return None
    digest = _HASH.fullmatch(str(named.get("sha256", "")))
    return Source(path=path, digest=f"{ORIGIN_PREFIX}{digest[1].lower()}" if digest else "")
