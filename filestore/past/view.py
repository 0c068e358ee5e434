"""A view: a store of its own in the sidecar that holds what a commit had, made from what is there.

It begins as a copy of the catalog, the full-text index and the vectors; only what differs at the
commit is read from git, and which names git has for what the catalog knows is remembered in a file
that may be lost. Its files are put on the disk as they are looked at. One rule: neither the
work tree nor a file of the store's own parts is written, but the embeddings where a person asked
for it.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

import orjson
from msgspec.structs import replace

from filestore.catalog import (
    CHUNKER,
    Catalog,
    CatalogDamagedError,
    CatalogMissingError,
    CatalogWriter,
    in_batches,
    queries,
)
from filestore.chunks.layout import look_at
from filestore.chunks.observation import RECORD, Observation
from filestore.config import settings
from filestore.config.layout import DOCUMENTS, SETTINGS
from filestore.config.user_config import Originals
from filestore.core.errors import FilestoreError
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.safe_text import brief, safe_text
from filestore.extract.ignore_files import GIT_RULES, OWN_RULES
from filestore.extract.tree_rules import documents_of
from filestore.fs import database, disk, part
from filestore.git.process import NoAnswerError, work_tree
from filestore.git.repository import blob_namer
from filestore.past.commits import (
    GIT,
    NOTE,
    Checkout,
    Commit,
    are_converted,
    blob_at,
    files_at,
    from_work_tree,
    load_submodules,
    log_commits,
    save_submodules,
    stores_at,
    with_submodules,
)
from filestore.sidecar import fulltext_file
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from filestore.embed.cache import EmbeddingCache

_HASH_BYTES: Final = 16
_NAME_BYTES: Final = (20, 32)
_MAGIC: Final = b"filestore blob names 1\n"


class BlobNames:
    """Git's names of what the catalog has hashed, read from a file and kept in it."""

    def __init__(self, folder: int, name: str) -> None:
        """Read the file in an open folder; one that is damaged, or is not there, says nothing."""
        self._folder = folder
        self._name = name
        self.known: dict[bytes, str] = {}
        """By content hash; more are added as they are found out."""
        self._saved = 0
        try:
            data, _ = disk.read_at(folder, name)
        except OSError:
            return
        start = len(_MAGIC) + _HASH_BYTES
        body = data[start + 1 :]
        if not data.startswith(_MAGIC) or data[len(_MAGIC) : start] != content_hash(data[start:]):
            return
        size = data[start]
        if size in _NAME_BYTES and len(body) % (_HASH_BYTES + size) == 0:
            step = _HASH_BYTES + size
            text = body.hex()
            self.known = {
                body[place : place + _HASH_BYTES]: text[
                    2 * (place + _HASH_BYTES) : 2 * (place + step)
                ]
                for place in range(0, len(body), step)
            }
            self._saved = len(self.known)

    def save(self) -> None:
        """Write what was found out."""
        if len(self.known) == self._saved:
            return
        size = len(next(reversed(self.known.values())))
        entries = (key + bytes.fromhex(one) for key, one in self.known.items() if len(one) == size)
        body = bytes([size // 2]) + b"".join(entries)
        disk.write_at(self._folder, self._name, _MAGIC + content_hash(body) + body)


def compared(
    catalog: Catalog,
    wanted: Mapping[ChunkPath, str],
    names: BlobNames,
    read: Callable[[Iterable[str]], Iterator[bytes]],
) -> tuple[set[ChunkPath], dict[ChunkPath, bytes]]:
    """The paths of a catalog whose bytes a commit has there, too, and all others of it.

    The others have the content hash that the catalog knows, or none.

    Args:
        catalog: Inside a snapshot.
        wanted: Path to the name of its blob, at the commit.
        names: Asked, and added to.
        read: Gives the bytes of blobs.

    Raises:
        NoAnswerError: A blob is not here.
    """
    files, known = list(queries.sound_files(catalog)), names.known
    unknown = {file_hash for _, file_hash in files if file_hash not in known}
    if unknown:
        name_of = blob_namer(next(iter(wanted.values()), ""))
        for file_hash, data in queries.kept_bytes(catalog):
            # What is kept may be damaged; then git is asked.
            if file_hash in unknown and content_hash(data) == file_hash:
                known[file_hash] = name_of(data)
    asked = [(key, name) for path, key in files if key not in known and (name := wanted.get(path))]
    for (file_hash, name), data in zip(asked, read(name for _, name in asked), strict=True):
        if content_hash(data) == file_hash:
            known[file_hash] = name
    same: set[ChunkPath] = set()
    others = {path: b"" for path, state, _ in catalog.states() if state != RECORD}
    for path, file_hash in files:
        name = wanted.get(path)
        if name and known.get(file_hash) == name:
            same.add(path)
        else:
            others[path] = file_hash
    return same, others


NOTES: Final = "notes.json"
"""What of the commit is not searched, or not as a checkout has it: a list of sentences."""
TREE: Final = "tree"
"""The folder of a view in place of the top of the work tree."""
_BATCH: Final = 500
_Forked = tuple[set[ChunkPath], dict[ChunkPath, bytes]]
"""The files of today that a commit has, and all others with the hash that the catalog knows."""


class NoStoreThenError(FilestoreError, LookupError):
    """A commit has nothing of the store."""


class SettingsThenError(FilestoreError, ValueError):
    """The settings that a commit has cannot be used, today or ever."""

    def __init__(self, commit: Commit, error: FilestoreError) -> None:
        super().__init__(
            f"the settings of commit {commit.commit[:12]} cannot be used: {error.message}"
            "; ask an earlier or a later commit",
        )


class PastParts(Parts):
    """The parts of a view; its model and its embeddings are those of the store."""

    def __init__(self, home: Parts, folder: str, commit: Commit) -> None:
        """Open a view.

        Args:
            home: The store's own parts.
            folder: The view's, absolute; its settings are there.
            commit: What it holds.
        """
        self._home = home
        self._folder = folder
        top = os.path.normpath(os.path.join(folder, TREE))
        self.checkout = Checkout(home.places.root, commit.commit, top)
        root = root_in(home, top)
        for one in load_submodules(folder):
            if one.is_here:
                place = os.path.join(home.places.chunked, one.path)
                below = os.path.relpath(place, home.places.root)
                self.checkout.add_module(
                    os.path.relpath(os.path.join(root, below), top), place, one.commit
                )
        super().__init__(root, configuration=home.configuration)
        # One model answers, out of a file: what a backend holds is of today.
        self.settings = replace(self.settings, second=None, backend=settings.Backend())
        self.places = replace(self.places, fetch=self.checkout.fetch)
        self.stand_in_for(home.places.root)

    def close(self) -> None:
        """Let go of every file, and of git."""
        self.checkout.close()
        super().close()

    def fingerprints(self) -> list[str]:
        """Those of the store."""
        return self._home.fingerprints()

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What of the commit is not searched, or not as a checkout has it."""
        try:
            return tuple(map(str, orjson.loads(disk.read_path(os.path.join(self._folder, NOTES)))))
        except (OSError, ValueError):
            return ()

    def embeddings(self) -> "EmbeddingCache | None":
        """Those of the store."""
        return self._home.embeddings()

    def originals(self) -> Originals:
        """None: what lies outside the work tree is of today."""
        return Originals()


def root_in(home: Parts, top: str) -> str:
    """Where the root of a store is below another top of its work tree."""
    root = os.path.realpath(home.places.root)
    tree = work_tree(root)
    if tree is None:
        raise NoAnswerError(f"{home.places.root} lies in no git work tree", remedy="git init")
    return os.path.normpath(os.path.join(top, os.path.relpath(root, os.path.realpath(tree))))


def settings_at(home: Parts, commit: Commit) -> tuple[bytes, bool]:
    """The settings of a store at a commit, or those of today; whether the commit has any."""
    root = home.places.root
    name = blob_at(root, f"{commit.commit}:./{SETTINGS}")
    if name is None:
        return settings.read(home.places.settings), False
    with contextlib.closing(Checkout(root, commit.commit, root)) as checkout:
        return checkout.read(name), True


def make(
    home: Parts,
    commit: Commit,
    folder: str,
    *,
    chosen: bytes,
    names: BlobNames,
    on_progress: OnProgress = ignore,
) -> None:
    """Make a view in a new folder, with the embeddings that are there.

    Args:
        home: The store's own parts.
        commit: What it is to hold.
        folder: Empty.
        chosen: The settings that it is read by.
        names: What git calls the bytes that the catalog knows.
        on_progress: Called with the number of files that were read.

    Raises:
        NoStoreThenError: The commit has nothing of the store.
        FilestoreError: What it has cannot be read.
    """
    found = files_at(home.places.root, commit.commit, home.places.tree.folder)
    if found is None:
        raise no_store_then(home, commit)
    held = list(with_submodules(home.places.chunked, found))
    save_submodules(folder, held)
    away = [one for one in held if not one.is_here]
    top = os.path.normpath(os.path.join(folder, TREE))
    root = root_in(home, top)
    os.makedirs(root)
    os.mkdir(os.path.join(top, GIT))
    with open(os.path.join(top, GIT, "HEAD"), "xb"):
        pass  # so much makes it the top of a work tree for us, and none for git
    with open(os.path.join(root, SETTINGS), "xb") as file:
        file.write(chosen)
    with contextlib.closing(PastParts(home, folder, commit)) as parts:
        os.makedirs(parts.places.chunked, exist_ok=True)
        os.makedirs(parts.places.sidecar, mode=0o700)
        wanted = _wanted(parts, top, found.files)
        notes = [f"the submodule {one.path} is not here, and not searched" for one in away]
        tree = os.path.relpath(parts.places.chunked, top)
        below = "" if tree == os.curdir else tree
        is_converted = are_converted(parts.checkout, commit, below, found.files)
        forked = _forked(home, parts, commit, wanted, names, is_converted=is_converted)
        is_changed = _index(home, parts, wanted, forked, on_progress)
        if is_changed and is_converted:
            notes.append(NOTE)
        with open(os.path.join(folder, NOTES), "xb") as file:
            file.write(orjson.dumps([safe_text(note, keep_newlines=False) for note in notes]))


def _wanted(parts: PastParts, top: str, files: Mapping[str, str]) -> Mapping[ChunkPath, str]:
    """The files of the tree, each with the name of its blob."""
    if parts.places.rules is None:
        return {ChunkPath(path): name for path, name in files.items()}
    around = parts.places.root
    while around != top:
        around = os.path.dirname(around)
        for rules in (GIT_RULES, OWN_RULES):
            parts.checkout.fetch(os.path.join(around, rules))
    return documents_of(parts.places, files)


def no_store_then(home: Parts, commit: Commit) -> NoStoreThenError:
    """What to say of a commit that has nothing of a store, or has it in another folder."""
    root = home.places.root
    nothing = f"commit {commit.commit[:12]} has nothing of the store in {root}"
    others = stores_at(root, commit.commit)
    if others:
        return NoStoreThenError(
            f"{nothing}, but one in {brief(others[0])}",
            remedy=f"'git worktree add ../then {commit.commit[:12]}' checks it out: search there",
        )
    first = next(log_commits(root, "--reverse", "HEAD", "--", home.places.tree.pathspec), None)
    since = f"the first that has is {first.commit[:12]}" if first else "git add and commit it first"
    return NoStoreThenError(nothing, remedy=since)


def _index(
    home: Parts,
    parts: PastParts,
    wanted: Mapping[ChunkPath, str],
    forked: _Forked,
    on_progress: OnProgress,
) -> bool:
    """Bring the parts of a view to what a commit has: from a copy of today's, or from nothing.

    Args:
        home: The store's own parts.
        parts: Of the view.
        wanted: The files of the commit, each with the name of its blob.
        forked: What the view begins with.
        on_progress: Called with the number of files that were read.

    Returns:
        Whether anything was read from git.
    """
    same, others = forked
    gone = [path for path in others if path not in same]
    changed = sorted(path for path in wanted if path not in same)
    embeddings = home.embeddings()
    with contextlib.ExitStack() as stack:
        catalog = stack.enter_context(
            contextlib.closing(CatalogWriter.open(parts.places.catalog, create=True))
        )
        if embeddings is None:
            from filestore.embed.cache import EmbeddingCache

            cache = EmbeddingCache.open(parts.places.embeddings)
            embeddings = stack.enter_context(contextlib.closing(cache))
        commit = stack.enter_context(parts.commit(catalog, embeddings, embed=False))
        commit.forget(gone)
        for number, batch in enumerate(in_batches(changed, _BATCH)):
            on_progress(Progress(stage="reading", done=number * _BATCH, total=len(changed)))
            blobs = parts.checkout.read_all([wanted[path] for path in batch])
            for path, data in zip(batch, blobs, strict=True):
                parts.checkout.write(os.path.join(parts.places.chunked, path), data)
            looks = list(look_at(parts.places, batch, parts.layout))
            seen = [one for one in looks if isinstance(one, Observation)]
            for one in looks:
                if not isinstance(one, Observation):
                    raise one[1]
            commit.put(seen, 0)
        commit.finish()
    return bool(changed)


def _forked(
    home: Parts,
    parts: PastParts,
    commit: Commit,
    wanted: Mapping[ChunkPath, str],
    names: BlobNames,
    *,
    is_converted: bool,
) -> _Forked:
    """Begin with what there is today: the files of it that the commit has, and all others."""
    try:
        with home.reading() as catalog:
            if not _is_alike(home, parts, catalog):
                return set(), {}
            same, others = compared(catalog, wanted, names, parts.checkout.read_all)
            asked = [path for path in others if path in wanted]
            # Where half of all differ, git stores other line ends. Else only what changed does, and
            # git need not look at the work tree.
            if is_converted or len(asked) > len(wanted) // 2:
                for path, data in from_work_tree(home.places, commit, asked):
                    if content_hash(data) == others[path]:
                        parts.checkout.write(os.path.join(parts.places.chunked, path), data)
                        same.add(path)
            if not same:
                return set(), {}
            queries.copy(catalog, parts.places.catalog)
            if (index := catalog.index_file()) is not None:
                made = (os.path.join(one.places.sidecar, index.name) for one in (home, parts))
                # Where it is not, the vectors come from the embeddings.
                with contextlib.suppress(OSError):
                    disk.link_or_copy(*made)
    except (CatalogMissingError, CatalogDamagedError):
        return set(), {}
    stamp = fulltext_file.own_stamp(home.places, catalog)
    if stamp is not None and stamp.generation <= catalog.generation:
        try:
            fulltext_file.copy(home.places, stamp, parts.places)
        except OSError:
            # A commit took it away meanwhile: it is made anew.
            database.remove(parts.places.fulltext)
    cache = os.path.join(home.places.sidecar, DOCUMENTS)
    # Where it is damaged, or not ours, documents are read again.
    with contextlib.suppress(OSError, sqlite3.Error, part.UnsafePartError):
        database.copy(cache, os.path.join(parts.places.sidecar, DOCUMENTS))
    return same, others


def _is_alike(home: Parts, parts: PastParts, catalog: Catalog) -> bool:
    """Whether a catalog says of files what the view is to say of the same files."""
    then, now, embedder = parts.settings, home.settings, parts.model.embedder
    if then.layout != now.layout:
        return False
    if embedder is None:
        return (then.embedder, then.model, then.budget) == (now.embedder, now.model, now.budget)
    if catalog.meta("fingerprint") not in (None, embedder.fingerprint):
        return False
    wanted = parts.layout.cuts_as
    return not wanted or str(catalog.meta(CHUNKER)) == wanted
