"""Links of documents in place that lead nowhere, and where each of them led.

Compares; changes nothing. One rule: the file that a link led to is named only where it is known:
by a move that was seen, or because no other file has its name.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from filestore.catalog import decode_path, in_batches, queries
from filestore.chunks import kept
from filestore.chunks.links import link_key, path_keys, written_path
from filestore.chunks.relinking import Followed, Relinked, UnlinkableError, relinked
from filestore.config.layout import MAX_SOURCE_BYTES
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding
from filestore.core.paths import NO_PATH, NOTES, TOP, ChunkPath, StorePath, inside, is_below
from filestore.core.safe_text import listed
from filestore.extract.links import Link
from filestore.fs import disk
from filestore.git import repository
from filestore.sidecar.originals import Reachable
from filestore.sidecar.snapshot import StoreSnapshot
from filestore.sidecar.standing import paths_called


class LostLinks:
    """Those of one store."""

    def __init__(
        self, snapshot: StoreSnapshot, moves: Iterable[tuple[ChunkPath, ChunkPath]] = ()
    ) -> None:
        """Prepare.

        Args:
            snapshot: The store; its catalog inside a snapshot.
            moves: Old path and new path of files that moved and are not indexed there yet.
        """
        self._snapshot = snapshot
        self._catalog = snapshot.catalog
        self._top = snapshot.places.chunked
        self.moves = dict(moves)
        self._old = {new: old for old, new in self.moves.items()}
        went = self._catalog.renamed_from(TOP)
        went = {old: self.moves.get(new, new) for old, new in went.items()} | self.moves
        known = self._catalog.files([*went, *went.values()])
        self._places = [(old, new) for old, new in went.items() if new in self._old or new in known]
        self._went = {
            old: new for old, new in self._places if old in self.moves or old not in known
        }

    @cached_property
    def followed(self) -> Followed:
        """What every link of the store means."""
        paths = set(map(decode_path, queries.all_paths(self._catalog)))
        others = (one for one in visible_files(self._top) if not self._catalog.closes(one))
        return self._among(paths, set(others).difference(paths, self._old))

    def _among(self, documents: Iterable[ChunkPath], others: Iterable[ChunkPath] = ()) -> Followed:
        gone = self.moves.keys()
        return Followed(
            self._went,
            documents={one for one in documents if one not in gone}.union(self._old),
            others=others,
            aliases=(
                (alias, self.moves.get(path, path))
                for path, alias in queries.files_with_key(self._catalog, "aliases")
            ),
            exists=self._exists,
            places=self._places,
        )

    def _exists(self, path: ChunkPath) -> bool:
        is_there = bool(path) and os.path.lexists(os.path.join(self._top, path))
        return is_there and not self._catalog.closes(path)

    def old(self, path: ChunkPath) -> ChunkPath | None:
        """Where the index has a file that moved; None for every other."""
        return self._old.get(path)

    def of_moved(self) -> Iterator[Finding]:
        """Those to files that moved, and in them, as far as that was seen; none is quick to say."""
        if not self._places:
            return
        places = {new for _, new in self._places}
        keys = sorted({key for path in self._went for key in path_keys(path)})
        batches = (queries.contents_linking(self._catalog, batch) for batch in in_batches(keys))
        found = {decode_path(path): data for batch in batches for path, data in batch}
        rows = self._catalog.files([self._old.get(one, one) for one in places])
        found |= {path: self._catalog.content(row.id) or b"" for path, row in rows.items()}
        alone = self._among(())
        links = [
            (note, link)
            for path, data in sorted(found.items())
            for note in [self.moves.get(path, path)]
            for link in _links(data)
            if alone.is_lost(link, note)
            and self._exists(note)
            and (alone.led(link, note) or (note in places and link.target.startswith(".")))
        ]
        if links:
            # Only now the names of all files are looked at.
            keys_of = frozenset(link_key(link) for _, link in links)
            moves = self._among(paths_called(self._catalog, keys_of))
            for note, link in links:
                if moves.is_lost(link, note) and (led := moves.led(link, note)):
                    yield self._finding(link, note, led, is_known=True)

    def every(self) -> Iterator[Finding]:
        """All of them; of names between double brackets those to files that moved."""
        moves = self.followed
        for path, data in queries.contents_with_links(self._catalog):
            note = decode_path(path)
            note = self.moves.get(note, note)
            for link in _links(data):
                if moves.is_lost(link, note) and self._exists(note):
                    led = moves.candidates(link, note)
                    if led or link.kind == "markdown":
                        yield self._finding(link, note, led, is_known=bool(moves.led(link, note)))

    def _finding(
        self, link: Link, note: ChunkPath, led: Mapping[ChunkPath, ChunkPath], *, is_known: bool
    ) -> Finding:
        tree = self._snapshot.places.tree
        line = f" in line {link.line}" if link.line else ""
        written = written_path(link, note) if link.kind == "markdown" else ""
        detail = f"links{line} to {written or link.target}, which is not there"
        found = [tree.store_path(one) for one in sorted(led)]
        if len(found) > 1:
            detail += f"; it may be {listed(found, separator=' or ')}"
        elif found and is_known:
            is_moved = found[0] != tree.store_path(led[tree.chunk_path(found[0])])
            word = "it moved" if is_moved else "before its file moved it led"
            detail += f"; {word} to {found[0]}"
        elif found:
            detail += f"; the only file of that name is {found[0]}"
        return Finding(
            code="link-dangling",
            path=tree.store_path(note),
            detail=detail,
            other=found[0] if len(found) == 1 else NO_PATH,
        )


class LostSources:
    """Links of originals, in the work tree around a store, that other originals were moved from."""

    def __init__(self, snapshot: StoreSnapshot, renamed: Iterable[tuple[str, str]]) -> None:
        """Prepare.

        Args:
            snapshot: The store; its catalog inside a snapshot.
            renamed: Originals and folders, as recorded, that were moved, and where they are now.
        """
        self._root = snapshot.places.root
        self._top = os.path.realpath(repository.work_tree(self._root))
        self._reachable = Reachable(snapshot.places, snapshot.originals)
        self.resources = {source: name for _, name, source, _ in snapshot.catalog.documents()}
        self.moved = {
            source: f"{new}{source[len(old) :]}"
            for old, new in renamed
            for source in self.resources
            if is_below(source, old) and self._reachable.is_near(f"{new}{source[len(old) :]}")
        }
        """Each original that was moved, and where it is."""
        there = (self.moved.get(one, one) for one in self.resources)
        self._there = {self._own(one): one for one in there if self._reachable.is_near(one)}
        went = {self._own(old): self._own(new) for old, new in self.moved.items()}
        self._followed = Followed(
            went,
            documents=self._there,
            exists=lambda path: os.path.lexists(os.path.join(self._top, path)),
            places=went.items(),
            by_name=False,
        )

    def _own(self, source: str) -> ChunkPath:
        return ChunkPath(os.path.relpath(os.path.join(self._root, source), self._top))

    def relinked(self, source: str, data: bytes) -> Relinked:
        """An original whose links lead to where others are; see `relinking.relinked`."""
        return relinked(data, self._own(source), self._followed)

    def findings(self) -> Iterator[Finding]:
        """The originals that have such links."""
        for path, source in sorted(self._there.items() if self.moved else ()):
            place = self._reachable.path(source) if path.casefold().endswith(NOTES) else None
            detail = ""
            try:
                made = relinked(_original(place), path, self._followed) if place else None
            except UnlinkableError as error:
                detail = error.message
            except (FilestoreError, OSError, UnicodeDecodeError):
                continue
            else:
                if made is not None and made.links:
                    links = "1 link leads" if made.links == 1 else f"{made.links:,} links lead"
                    detail = f"{links} to where originals were before they moved"
            if detail:
                yield Finding(code="link-dangling", path=StorePath(source), detail=detail)


def _original(place: str) -> bytes:
    return disk.read_path(place, limit=MAX_SOURCE_BYTES, follow_links=True)


def renamed_sources(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Originals and folders that were moved, and where they are now, by what was found."""
    return [(one.path, one.other) for one in findings if one.code == "source-missing" and one.other]


def _links(data: bytes) -> Iterator[Link]:
    """The links of a document to other files."""
    try:
        found = kept.decode(data).links if kept.is_document(data) else ()
    except kept.DocumentDamagedError:
        # Damaged rows are reported elsewhere.
        return iter(())
    return (link for link in found if link.target)


def visible_files(top: str) -> Iterator[ChunkPath]:
    """Every visible file below a folder."""
    for folder, names, files in os.walk(top):
        names[:] = [name for name in names if not name.startswith(".")]
        inner = ChunkPath("" if folder == top else os.path.relpath(folder, top))
        yield from (inside(inner, name) for name in files if not name.startswith("."))
