"""What moving documents in place takes: which files, where to, and what becomes of links to them.

Reads; changes nothing but the index of what was moved. One rule: a plan holds every byte that is to
be written, so that what is done is what was planned, or nothing.
"""

import os
import posixpath
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.catalog import decode_path, in_batches, queries
from filestore.chunks import kept
from filestore.chunks.links import path_keys
from filestore.chunks.relinking import Moves, UnlinkableError, relinked
from filestore.config.layout import folded_path
from filestore.core.diff import unified_bytes
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.hashing import content_hash
from filestore.core.paths import (
    NOTES,
    SUMMARIES,
    ChunkPath,
    StorePath,
    folder_of,
    inside,
    is_below,
)
from filestore.core.progress import OnProgress
from filestore.core.safe_text import brief, shown_path
from filestore.core.schema import JsonObject
from filestore.extract.tree_rules import left_out
from filestore.fs import disk
from filestore.fs.scan import MAX_DEPTH
from filestore.fs.transaction import Content, content
from filestore.history.batch import KEPT_BYTES, is_note
from filestore.ingest import put
from filestore.ingest.edits import check_revision
from filestore.sync.actions import put_settled
from filestore.verify import drift
from filestore.verify.lost_links import visible_files
from filestore.verify.names import why_no_name, why_unportable

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import StoreSnapshot, Writing

ANOTHER: Final = "choose another path"
"""What helps where nothing can lie at a path."""
_MOST_DIFF_BYTES: Final = 4_000
"""Of one file; a link that is written otherwise takes a few lines."""
_MOST_PATH_BYTES: Final = 1_000
_WRITABLE: Final = 0o222


class MovedFile(JsonObject, Struct, frozen=True):
    """A file under its new path."""

    path: StorePath
    """Where it was."""
    to: StorePath
    """Where it is to be."""


class RelinkedFile(JsonObject, Struct, frozen=True):
    """A file whose links are written otherwise."""

    path: StorePath
    """Where it was."""
    links: int
    """How many of them."""
    diff: str
    """What is written."""


class LeftFile(JsonObject, Struct, frozen=True):
    """A file that stays as it is."""

    path: StorePath
    """Where it is."""
    reason: str
    """Why it stays, and what that means for its links."""


class Move(JsonObject, Struct, frozen=True, kw_only=True, rename={"problem": "not_embedded"}):
    """What a move does, or did."""

    SPARSE = "not_embedded"

    path: StorePath
    """What is moved: a file, or a folder."""
    to: StorePath
    """Where it is to be."""
    moved: tuple[MovedFile, ...]
    """Each file."""
    relinked: tuple[RelinkedFile, ...] = ()
    """Files in which links are written otherwise, by path; the moved ones among them."""
    left: tuple[LeftFile, ...] = ()
    """What stays although one might expect else, by path."""
    done: bool = False
    """Whether it was done; else it is a plan."""
    embedded: int = 0
    """Texts sent to the model."""
    reused: int = 0
    """Texts that were embedded before."""
    problem: FilestoreError | None = None
    """Why texts were left without embedding; keywords find them."""
    undo: str | None = None
    """The name that `undo` takes."""

    @property
    def links(self) -> int:
        """How many links are written otherwise."""
        return sum(one.links for one in self.relinked)

    def is_as(self, shown: "Move") -> bool:
        """Whether it would do what a plan says."""
        mine, its = ((one.path, one.to, one.moved, one.relinked) for one in (self, shown))
        return mine == its


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be moved, and where; relative to the store root."""

    path: StorePath
    to: StorePath
    revision: str | None = None
    """Of the file as its mover has read it; None where that does not matter."""


class MoveWork(Struct, kw_only=True):
    """A plan with the bytes that it takes."""

    plan: Move
    before: dict[StorePath, bytes | Content | None] = field(default_factory=dict)
    after: dict[StorePath, bytes | Content | None] = field(default_factory=dict)


Relinking = tuple[ChunkPath, bytes, bytes, int]
"""A file, what it holds, what it is to hold, and how many of its links differ."""


class Documents:
    """What moving documents in place takes, the root being the folder of all."""

    above = 0
    """How many folders around the root hold what is moved."""

    def __init__(self, snapshot: "StoreSnapshot", wanted: Wanted) -> None:
        self.snapshot, self.wanted = snapshot, wanted
        self.places = snapshot.places
        self.top = self.places.chunked
        self.files: dict[ChunkPath, ChunkPath] = {}
        """Old path to new path, below the top."""
        self.folders: dict[ChunkPath, ChunkPath] = {}
        self.left: dict[ChunkPath, str] = {}

    def own(self, path: StorePath) -> ChunkPath:
        """A path below the top.

        Raises:
            UsageError: It lies elsewhere.
        """
        if not self.places.tree.holds(path):
            raise UsageError(
                f"{brief(shown_path(path))} lies outside of the documents of the store"
                ": name a path in its folder",
            )
        return self.places.tree.chunk_path(path)

    def store_path(self, path: ChunkPath) -> StorePath:
        """The inverse."""
        return self.places.tree.store_path(path)

    def work(self) -> MoveWork:
        """The plan; see `plan` for what is raised."""
        old, new = self.own(self.wanted.path), self.own(self.wanted.to)
        self._list(old, new)
        self._check_target(old, new)
        self.check()
        modes, held = {}, dict[ChunkPath, Content]()
        changed = {path: (data, made, count) for path, data, made, count in self.relinked()}
        for path in {*self.files, *changed}:
            place = os.path.join(self.top, path)
            status = os.lstat(place)
            modes[path] = stat.S_IMODE(status.st_mode)
            if path in changed:
                held[path] = content(changed[path][0], modes[path])
                if not modes[path] & _WRITABLE:
                    raise RefusedError(
                        f"{shown_path(path)} is read-only, and has links that would have to be"
                        " written otherwise: nothing was moved",
                        remedy=f"chmod u+w {shlex.quote(shown_path(place))}",
                    )
            else:
                data = self.read(path)
                # There may be many and large ones: they are read again one by one.
                read = partial(disk.read_path, place)
                held[path] = Content(
                    digest=content_hash(data),
                    read=read,
                    mode=modes[path],
                    mtime_ns=status.st_mtime_ns,
                )
        if self.wanted.revision is not None:
            if old not in self.files:
                raise UsageError("a folder has no revision: leave the revision out")
            check_revision(self.wanted.path, self.read(old), self.wanted.revision)
        work = MoveWork(plan=self._plan(changed))
        for path, before in sorted(held.items()):
            now = self.files.get(path, path)
            if now != path:
                work.before[self.store_path(now)] = work.after[self.store_path(path)] = None
            work.before[self.store_path(path)] = before
            made = content(changed[path][1], modes[path]) if path in changed else before
            work.after[self.store_path(now)] = made
        return work

    def _plan(self, changed: Mapping[ChunkPath, tuple[bytes, bytes, int]]) -> Move:
        shown = self.store_path
        return Move(
            path=self.wanted.path,
            to=self.wanted.to,
            moved=tuple(
                MovedFile(path=shown(old), to=shown(new)) for old, new in sorted(self.files.items())
            ),
            relinked=tuple(
                RelinkedFile(
                    path=(name := shown(path)),
                    links=count,
                    diff=unified_bytes(
                        data,
                        made,
                        names=(f"now/{shown_path(name)}", f"then/{shown_path(name)}"),
                        most_bytes=_MOST_DIFF_BYTES,
                    ),
                )
                for path, (data, made, count) in sorted(changed.items())
            ),
            left=tuple(
                LeftFile(path=shown(path), reason=why) for path, why in sorted(self.left.items())
            ),
        )

    def read(self, path: ChunkPath) -> bytes:
        """What a file below the top holds.

        Raises:
            RefusedError: It cannot be read.
        """
        try:
            with disk.folder_at(self.top) as top:
                return disk.read_below(top, path)[0]
        except OSError as error:
            raise RefusedError(
                f"cannot read {shown_path(path)}, so nothing was moved: {error.strerror or error}"
            ) from error

    def _list(self, old: ChunkPath, new: ChunkPath) -> None:
        """Note every file that moves, and what stays."""
        place = os.path.join(self.top, old)
        if is_below(new, old) and new != old:
            raise UsageError(f"{shown_path(old)} cannot be moved into itself")
        if not os.path.isdir(place) or os.path.islink(place):
            self._note(old, new)
        else:
            for folder, names, files in os.walk(place):
                inner = ChunkPath(os.path.relpath(folder, self.top))
                self.folders[inner] = ChunkPath(f"{new}{inner[len(old) :]}")
                hidden = [name for name in names if name.startswith(".")]
                names[:] = [name for name in names if name not in hidden]
                linked = [name for name in names if os.path.islink(os.path.join(folder, name))]
                for name in sorted([*hidden, *linked, *files]):
                    path = inside(inner, name)
                    self._note(path, inside(self.folders[inner], name))
        if not self.files:
            raise RefusedError(f"{shown_path(old)} holds no file that can be moved")
        if sum(os.lstat(os.path.join(self.top, one)).st_size for one in self.files) > KEPT_BYTES:
            raise RefusedError(
                f"{shown_path(old)} has more than {KEPT_BYTES:,} bytes, which undo cannot keep"
                ": move its folders one by one",
            )

    def _note(self, path: ChunkPath, to: ChunkPath) -> None:
        mode = os.lstat(os.path.join(self.top, path)).st_mode
        why = "it is hidden" if path.rpartition("/")[2].startswith(".") else ""
        why = why or ("" if stat.S_ISREG(mode) else "it is not a regular file")
        if not why:
            self.files[path] = to
        elif self.folders:
            self.left[path] = f"{why}: it stays where it is"
        else:
            raise RefusedError(f"{shown_path(path)} cannot be moved: {why}")

    def _check_target(self, old: ChunkPath, new: ChunkPath) -> None:
        """Refuse a place where nothing can lie, or something does.

        Raises:
            UsageError: Its name is none.
            RefusedError: Something is there, or what some file systems cannot tell from it.
        """
        parts = folder_of(new).split("/") if folder_of(new) else ()
        put.check_folders(self.places.tree, self.top, parts, remedy=ANOTHER)
        name = new.rpartition("/")[2]
        if reason := why_no_name(name) or why_unportable(name):
            raise UsageError(f"{brief(name)} cannot be a name: {reason}", remedy=ANOTHER)
        longest = max(self.files.values(), key=lambda path: len(os.fsencode(path)))
        deepest = max(path.count("/") for path in self.files.values())
        if len(os.fsencode(longest)) > _MOST_PATH_BYTES or deepest > MAX_DEPTH:
            raise UsageError(
                f"{brief(longest)} is too long: expected at most {MAX_DEPTH} folders and"
                f" {_MOST_PATH_BYTES:,} bytes",
                remedy=ANOTHER,
            )
        suffixes = [os.path.splitext(one)[1].casefold() for one in (old, new)]
        if old in self.files and suffixes[0] != suffixes[1]:
            raise UsageError(
                f"{shown_path(new)} would be another kind of file than {shown_path(old)}"
                f": name it {brief(posixpath.splitext(new)[0] + posixpath.splitext(old)[1])}",
            )
        folder = os.path.join(self.top, folder_of(new))
        there = os.listdir(folder) if os.path.isdir(folder) else []
        alike = [one for one in there if folded_path(one) == folded_path(name)]
        for other in alike:
            if other == name:
                raise RefusedError(f"{shown_path(new)} is there already", remedy=ANOTHER)
            if inside(folder_of(new), other) != old:
                raise RefusedError(
                    f"{brief(name)} differs only by case or composition from {brief(other)}",
                    remedy=ANOTHER,
                )
            if os.path.lexists(os.path.join(folder, name)):
                raise RefusedError(
                    f"this file system cannot tell {brief(name)} from {brief(other)}"
                    ": move it to another name first, then to this one",
                )

    def check(self) -> None:
        """Refuse what cannot be moved for what it is."""
        rows = self.snapshot.catalog.files(list(self.files))
        put.refuse_left_out(self.places, [self.files[path] for path in rows])
        for path in [*self.files]:
            # What was made of a document lies under its name.
            made = ChunkPath(f"{SUMMARIES}/{path}")
            for folder, _, names in os.walk(os.path.join(self.top, made)):
                inner = ChunkPath(os.path.relpath(folder, self.top))
                target = f"{SUMMARIES}/{self.files[path]}{inner[len(made) :]}"
                for name in names:
                    self.files[inside(inner, name)] = inside(ChunkPath(target), name)

    def relinked(self) -> Iterator[Relinking]:
        """The files in which links are written otherwise.

        Raises:
            RefusedError: A link cannot be written so that it leads to the same file.
        """
        catalog = self.snapshot.catalog
        there = set(visible_files(self.top))
        known = [path for one in queries.all_paths(catalog) if (path := decode_path(one)) in there]
        aliases = queries.files_with_key(catalog, "aliases")
        moves = Moves(
            self.files,
            documents=known,
            folders=self.folders,
            others=there.difference(known),
            aliases=((alias, path) for path, alias in aliases),
            exists=lambda path: os.path.lexists(os.path.join(self.top, path)),
        )
        named: dict[ChunkPath, list[str]] = {}
        for path, alias in aliases:
            named.setdefault(path, []).append(alias)
        keys = set[str]()
        for old, new in self.files.items():
            names = named.get(old, [])
            keys |= path_keys(old, names) | path_keys(new, names)
        linking = {
            decode_path(path)
            for batch in in_batches(sorted(keys))
            for path, _ in queries.contents_linking(catalog, batch)
        }
        edited = drift.detect(self.snapshot, mass_allowed=True).to_read
        yield from self._of_notes(sorted(there & {*linking, *edited, *self.files}), moves)

    def _of_notes(self, paths: Iterable[ChunkPath], moves: Moves) -> Iterator[Relinking]:
        for path in paths:
            why = "its links are not those of Markdown"
            if path.casefold().endswith(NOTES):
                data = self.read(path)
                try:
                    made = relinked(data, path, moves)
                except UnlinkableError as error:
                    raise RefusedError(
                        f"nothing was moved: {error.message}", remedy=error.remedy
                    ) from error
                except UnicodeDecodeError:
                    why = "it is not UTF-8"
                else:
                    if made.links:
                        yield path, data, made.data, made.links
                    continue
            if broken := self._broken(path, moves):
                self.left[path] = f"{why}: {broken} of them lead nowhere, or elsewhere, afterwards"

    def _broken(self, path: ChunkPath, moves: Moves) -> int:
        """How many links of a file, as it was indexed, would no longer lead where they led."""
        rows = self.snapshot.catalog.files([path])
        data = self.snapshot.catalog.content(rows[path].id) if path in rows else None
        if not data or not kept.is_document(data):
            return 0
        found = [(one, moves.before(one, path)) for one in kept.decode(data).links if one.target]
        return sum(
            before is not None and not moves.leads(link, moves.new(path), moves.new(before))
            for link, before in found
        )

    def indexed(self, store: "Writing", done: Move, on_progress: OnProgress) -> Move:
        """What was done, with what updating the index took."""
        snapshot, own = store.snapshot, self.places.tree.chunk_path
        rows = snapshot.catalog.files(list(self.files))
        changed = [own(one.path) for one in done.relinked]
        written = {self.files.get(path, path) for path in (*rows, *changed)}
        # What was not indexed is where rules do not leave it out.
        fresh = [new for old, new in self.files.items() if old not in rows and is_note(new)]
        written |= set(fresh) - left_out(self.places, fresh)
        with store.open_commit() as commit:
            stale = snapshot.catalog.files([self.files[path] for path in rows])
            commit.forget(list(stale))
            commit.repoint([(path, self.files[path]) for path in rows])
            put_settled(snapshot, commit, sorted(written), store.clock, on_progress)
            report = commit.finish()
        return replace(done, embedded=report.embedded, reused=report.reused, problem=report.problem)
