"""Originals: what truth files held before a command changed them, kept under `.undo/`.

One numbered folder, a batch, for each change: what each file held before, by bytes, and what it
became, by hash; once the change was taken back, that by bytes too. Written before a file changes.
One rule: a folder without a record is no batch, so that a batch is there whole or not at all.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

import orjson

from filestore import fileio, replacing
from filestore.errors import FilestoreError
from filestore.hashing import content_hash
from filestore.replacing import Content
from filestore.safe_text import shown_path

BATCH_NAME: Final = "batch.json"
BATCH_FORMAT: Final = 2
KEPT_S: Final = 90 * 24 * 3600
KEPT_BYTES: Final = 1 << 30
TRUTH_FOLDERS: Final = frozenset({"chunked", "source"})
"""Where a batch may put files back; its record may come from a stranger."""

_UNDERWAY: Final = "underway"
_NUMBERED: Final = re.compile(r"[0-9]{6,}")
_OURS: Final = re.compile(
    rf"[0-9]+\.(before|after)|{re.escape(BATCH_NAME)}|{_UNDERWAY}"
    rf"|{re.escape(fileio.TEMPORARY_PREFIX)}[0-9a-f]+"
)
_MARK_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_LATEST_S: Final = 1 << 36
_FEW_BATCHES: Final = 128
_LARGE_SHARE: Final = 256

State = Literal["after", "before"]


class BatchInvalidError(FilestoreError, ValueError):
    """A record under `.undo/` cannot be used."""


class BatchMissingError(FilestoreError, LookupError):
    """There is no batch of this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a file held at one time."""

    digest: bytes
    """`content_hash` of its bytes."""
    mode: int | None = None
    """Its permissions; None where its bytes are not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file of a batch; None is no file."""

    path: str
    """Relative to the store root."""
    before: Version | None
    after: Version | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One change of truth files, and where it stands."""

    identifier: str
    what: str
    """The command, for the list."""
    made_s: int
    """When, in seconds since 1970."""
    entries: tuple[Entry, ...]
    """In the order in which they were changed."""
    wanted: State = "after"
    """Which side the files were brought to last."""
    sequence: int = 0
    """Orders what was undone and redone; 0 where neither happened."""
    underway: bool = False
    """Whether the last writer died before it was done."""
    size_bytes: int = 0
    """What it takes under `.undo/`."""
    problem: str = ""
    """Why its record cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A batch as the cap sees it."""

    identifier: str
    used_s: float
    """When it was made, undone or redone last."""
    size_bytes: int


def serialize(batch: Batch) -> bytes:
    """The record of a batch."""
    record = {
        "format": BATCH_FORMAT,
        "what": shown_path(batch.what),
        "made": batch.made_s,
        "wanted": batch.wanted,
        "sequence": batch.sequence,
        "files": [
            {
                "path": _encode_path(entry.path),
                "before": _encode_version(entry.before, f"{number}.before"),
                "after": _encode_version(entry.after, f"{number}.after"),
            }
            for number, entry in enumerate(batch.entries)
        ],
    }
    return orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def parse(data: bytes, *, identifier: str) -> Batch:
    """Read the record of a batch.

    Raises:
        BatchInvalidError: It is damaged, newer, or would put files where no truth is.
    """
    try:
        record = orjson.loads(data)
        found = record["format"]
        if found != BATCH_FORMAT:
            raise _invalid(identifier, f"it has format {found!r}, expected {BATCH_FORMAT}")
        batch = Batch(
            identifier=identifier,
            what=str(record["what"]),
            made_s=min(max(int(record["made"]), 0), _LATEST_S),
            wanted="before" if record["wanted"] == "before" else "after",
            sequence=int(record["sequence"]),
            entries=tuple(_parse_entry(entry) for entry in record["files"]),
        )
    except BatchInvalidError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _invalid(identifier, f"{type(error).__name__}: {error}") from error
    for entry in batch.entries:
        if not is_truth(entry.path):
            raise _invalid(identifier, f"{shown_path(entry.path)} is no place for a truth file")
    return batch


def is_truth(path: str) -> bool:
    """Whether a path relative to the store root is one of a truth file."""
    parts = path.split("/")
    plain = not any(part in ("", ".", "..") or "\0" in part for part in parts)
    return plain and len(parts) > 1 and parts[0] in TRUTH_FOLDERS


def _encode_path(path: str) -> str:
    """A path of any bytes as text that JSON can hold."""
    return path.encode("utf-8", "surrogateescape").decode("latin-1")


def _encode_version(version: Version | None, blob: str) -> dict[str, Any] | None:
    if version is None:
        return None
    kept = version.mode is not None
    return {
        "hash": version.digest.hex(),
        "mode": version.mode,
        "blob": blob if kept else None,
    }


def _parse_entry(entry: Mapping[str, Any]) -> Entry:
    return Entry(
        path=entry["path"].encode("latin-1").decode("utf-8", "surrogateescape"),
        before=_parse_version(entry["before"]),
        after=_parse_version(entry["after"]),
    )


def _parse_version(record: Mapping[str, Any] | None) -> Version | None:
    if record is None:
        return None
    mode = record["mode"]
    # No more than permissions: nothing that makes a file run as somebody else.
    return Version(
        digest=bytes.fromhex(record["hash"]), mode=None if mode is None else int(mode) & 0o777
    )


def _invalid(identifier: str, reason: str) -> BatchInvalidError:
    return BatchInvalidError(
        f".undo/{identifier} cannot be used: {reason}",
        remedy="'filestore undo --list' shows the others",
    )


def list_batches(folder: str) -> list[Batch]:
    """What can be undone or redone, oldest first; none where nothing was kept yet.

    Raises:
        WriteFailedError: The folder cannot be read.
    """
    if not os.path.isdir(folder):
        return []
    with Originals.open(folder) as originals:
        return originals.batches()


def expired(
    kept: Sequence[Kept], *, now_s: float, most_s: float = KEPT_S, most_bytes: int = KEPT_BYTES
) -> list[str]:
    """Which batches are to go: those too old, then the oldest until the rest fits; pure.

    Args:
        kept: Oldest first; the last one always stays.
        now_s: Seconds since 1970.
        most_s: How long a batch is kept after it was used last.
        most_bytes: How much all may take.
    """
    total = sum(one.size_bytes for one in kept)
    gone = []
    for one in kept[:-1]:
        if now_s - one.used_s > most_s or total > most_bytes:
            gone.append(one.identifier)
            total -= one.size_bytes
    return gone


class Originals:
    """The `.undo` folder of a store, open. Only whoever holds the writer's lock writes to it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    @contextlib.contextmanager
    def open(cls, folder: str) -> Iterator[Self]:
        """Open the folder, made where it is missing.

        Raises:
            WriteFailedError: It cannot be made or opened, or is a symbolic link.
        """
        with replacing.told(folder):
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o700)
                fileio.sync_path(os.path.dirname(folder))
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            yield cls(handle)
        finally:
            os.close(handle)

    def keep(
        self, what: str, entries: Sequence[Entry], before: Mapping[str, Content], *, now_s: float
    ) -> Batch:
        """Keep what some files hold, before they change.

        Args:
            what: The command, for the list.
            entries: The files, in the order in which they are to change.
            before: What those that are there hold.
            now_s: Seconds since 1970.

        Raises:
            WriteFailedError: The disk refused; nothing is left of the batch.
        """
        identifier = self._begin()
        batch = Batch(identifier=identifier, what=what, made_s=int(now_s), entries=tuple(entries))
        blobs = {
            f"{number}.before": replace(before[entry.path], mode=0o600)
            for number, entry in enumerate(entries)
            if entry.path in before
        }
        try:
            self._write(batch, blobs)
        except BaseException:
            self.discard(identifier)
            raise
        return batch

    def _begin(self) -> str:
        numbers = [int(name) for name in os.listdir(self._handle) if _NUMBERED.fullmatch(name)]
        identifier = f"{max(numbers, default=0) + 1:06d}"
        with replacing.told(f".undo/{identifier}"):
            os.mkdir(identifier, 0o700, dir_fd=self._handle)
        return identifier

    def turn(self, batch: Batch, wanted: State, blobs: Mapping[str, Content]) -> Batch:
        """Note that a batch is being undone or redone, before its files change.

        Args:
            batch: With what its files hold now.
            wanted: The side they are brought to.
            blobs: Path to what the files hold that are not kept yet.

        Raises:
            WriteFailedError: The disk refused; the batch is as it was.
        """
        numbers = {entry.path: number for number, entry in enumerate(batch.entries)}
        sequence = max((other.sequence for other in self.batches()), default=0) + 1
        turned = replace(batch, wanted=wanted, sequence=sequence, underway=True)
        self._write(
            turned,
            {f"{numbers[path]}.after": replace(one, mode=0o600) for path, one in blobs.items()},
        )
        return turned

    def _write(self, batch: Batch, blobs: Mapping[str, Content]) -> None:
        """Blobs first, then the record, which makes the batch."""
        name = batch.identifier
        replacing.write_all(self._handle, {f"{name}/{blob}": one for blob, one in blobs.items()})
        with replacing.told(f".undo/{name}"), fileio.folder(self._handle, name) as handle:
            os.close(os.open(_UNDERWAY, _MARK_FLAGS, 0o600, dir_fd=handle))
            # The blobs' names must be there before the record that counts on them.
            os.fsync(handle)
            record = replacing.content(serialize(batch), 0o600)
            replacing.write_all(handle, {BATCH_NAME: record})
            os.fsync(handle)
            os.fsync(self._handle)

    def turn_back(self, batch: Batch) -> None:
        """Put the record of a batch back whose files were not changed after all."""
        with contextlib.suppress(fileio.WriteFailedError):
            self._write(batch, {})
        if not batch.underway:
            self.finish(batch.identifier)

    def finish(self, identifier: str) -> None:
        """Note that the files of a batch are all on the side that was wanted."""
        # Not synced: a mark that comes back only has the files looked at once more.
        with contextlib.suppress(OSError), fileio.folder(self._handle, identifier) as handle:
            os.unlink(_UNDERWAY, dir_fd=handle)

    def discard(self, identifier: str) -> None:
        """Remove a batch, its record first; what is not ours in it stays."""
        with contextlib.suppress(OSError), fileio.folder(self._handle, identifier) as handle:
            names = [name for name in os.listdir(handle) if _OURS.fullmatch(name)]
            for name in sorted(names, key=lambda name: name != BATCH_NAME):
                os.unlink(name, dir_fd=handle)
            os.rmdir(identifier, dir_fd=self._handle)

    def batches(self) -> list[Batch]:
        """Every batch, oldest first; one that cannot be used has a `problem`."""
        found = []
        for name in self._names():
            with contextlib.suppress(BatchMissingError):
                try:
                    found.append(self.batch(name))
                except BatchInvalidError as error:
                    found.append(
                        Batch(identifier=name, what="", made_s=0, entries=(), problem=error.message)
                    )
        return found

    def batch(self, identifier: str) -> Batch:
        """One batch.

        Raises:
            BatchMissingError: There is none of this name.
            BatchInvalidError: Its record cannot be used.
        """
        missing = BatchMissingError(
            f"no batch {identifier!r}", remedy="'filestore undo --list' shows what is there"
        )
        if not _NUMBERED.fullmatch(identifier):
            raise missing
        try:
            with fileio.folder(self._handle, identifier) as handle:
                data, _ = fileio.read_at(handle, BATCH_NAME)
                sizes = _sizes(handle)
        except FileNotFoundError as error:
            raise missing from error
        except OSError as error:
            raise _invalid(identifier, error.strerror or str(error)) from error
        batch = parse(data, identifier=identifier)
        return replace(batch, underway=_UNDERWAY in sizes, size_bytes=sum(sizes.values()))

    def blob(self, identifier: str, name: str, digest: bytes) -> bytes:
        """What a file held, as it was kept.

        Raises:
            BatchInvalidError: It is gone or damaged.
        """
        try:
            data, _ = fileio.read_below(self._handle, f"{identifier}/{name}")
        except OSError as error:
            raise _invalid(identifier, f"{name}: {error.strerror or error}") from error
        if content_hash(data) != digest:
            raise _invalid(identifier, f"{name} does not hold what was kept in it")
        return data

    def collect(
        self,
        newest: Batch,
        *,
        now_s: float,
        most_s: float = KEPT_S,
        most_bytes: int = KEPT_BYTES,
    ) -> None:
        """Remove batches beyond the caps, and what dead writers left.

        A look at every batch takes time where there are thousands, so that then only each so many
        changes pay for it, and those that weigh something.
        """
        names = [name for name in os.listdir(self._handle) if _NUMBERED.fullmatch(name)]
        large = newest.size_bytes * _LARGE_SHARE > most_bytes
        if len(names) > _FEW_BATCHES and int(newest.identifier) % _FEW_BATCHES and not large:
            return
        kept, left = [], []
        for name in sorted(names, key=int):
            one = self._kept(name)
            if one is None:
                left.append(name)
            else:
                kept.append(one)
        for name in [*left, *expired(kept, now_s=now_s, most_s=most_s, most_bytes=most_bytes)]:
            self.discard(name)

    def _kept(self, name: str) -> Kept | None:
        """A batch as the cap sees it; None for what a dead writer left."""
        try:
            with fileio.folder(self._handle, name) as handle:
                used_s = os.stat(BATCH_NAME, dir_fd=handle, follow_symlinks=False).st_mtime
                return Kept(identifier=name, used_s=used_s, size_bytes=sum(_sizes(handle).values()))
        except OSError:
            return None

    def _names(self) -> Iterable[str]:
        names = [name for name in os.listdir(self._handle) if _NUMBERED.fullmatch(name)]
        return sorted(names, key=int)


def _sizes(handle: int) -> dict[str, int]:
    """The files of a folder, name to size."""
    with os.scandir(handle) as entries:
        statuses = ((entry.name, entry.stat(follow_symlinks=False)) for entry in entries)
        return {name: one.st_size for name, one in statuses if stat.S_ISREG(one.st_mode)}
