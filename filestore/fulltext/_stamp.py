"""The stamp of an index: which generation it holds and which bytes it is made of.

Every commit makes a folder of its own next to the one before, and renaming the stamp is the switch
between them: a reader sees one commit or the other, whole. No tantivy here.
"""

import errno
import os
import re
from collections.abc import Callable
from typing import Final

import orjson
from msgspec import Struct
from msgspec.structs import asdict, replace

from filestore.core.errors import FilestoreError
from filestore.core.paths import has_plain_names
from filestore.core.schema import converted
from filestore.fs import disk, part

ANALYSIS: Final = "filestore-2"
"""The analysis chain: an index made by another one is rebuilt, because its words differ."""
STAMP_NAME: Final = "stamp.json"
_MOST_STAMP_BYTES: Final = 1024 * 1024
_SYSTEM_ERROR: Final = re.compile(r"\bOs \{ code: (\d+)|\(os error (\d+)\)")
"""What Rust says of a call that the system refused, to a programmer and to a person."""
_STOPPED: Final = "index writer was killed"
"""What tantivy says once one of its threads was refused something; it does not tell what."""
_REMEDY: Final = "'filestore sync' rebuilds the full-text index"


class FulltextDamaged(FilestoreError):
    """The full-text index is not what its stamp says; it must not be parsed."""

    def __init__(self, folder: str, detail: str) -> None:
        super().__init__(
            f"the full-text index in {folder} is damaged", remedy=_REMEDY, detail=detail
        )


class FulltextMissing(FilestoreError):
    """There is no full-text index that can be used."""

    def __init__(self, folder: str, detail: str) -> None:
        super().__init__(f"no usable full-text index in {folder}", remedy=_REMEDY, detail=detail)


class FulltextUnreadable(FilestoreError):
    """The full-text index cannot be read at the moment; what it holds may well be sound."""

    def __init__(self, folder: str, reason: OSError) -> None:
        place, problem, remedy = part.explained(folder, reason)
        super().__init__(f"the full-text index cannot be read: {place}: {problem}", remedy=remedy)


class TantivyGuard:
    """Turns what tantivy raises in a ``with`` block into damage, panics included.

    A panic is a BaseException of a class that cannot be imported, hence the test by name.
    """

    __slots__ = ("_folder",)

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if kind is None or error is None or issubclass(kind, FilestoreError):
            return
        if (reason := _system_error(error)) is not None:
            disk.pass_limits(reason)
            raise FulltextUnreadable(self._folder, reason) from error
        if issubclass(kind, ValueError) or kind.__name__ == "PanicException":
            raise FulltextDamaged(self._folder, f"{kind.__name__}: {error}") from error


class WritingGuard(TantivyGuard):
    """The same for a writer: a disk that refuses is no damage."""

    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        reason = _system_error(error)
        if reason is None and isinstance(error, ValueError) and _STOPPED in str(error):
            disk.pass_hidden_limits(error)
            reason = part.tried(self._folder) or OSError("the threads that write it stopped")
        if reason is not None:
            raise disk.write_failed(self._folder, reason) from error
        super().__exit__(kind, error, trace)


def _system_error(error: BaseException | None) -> OSError | None:
    """The error of the system where tantivy could not read or write; None for anything else."""
    if isinstance(error, OSError):
        return None if _is_gone(error) else error
    refused = _SYSTEM_ERROR.search(str(error)) if isinstance(error, ValueError) else None
    if refused is None:
        return None
    number = int(refused[1] or refused[2])
    reason = OSError(number, os.strerror(number))
    return None if _is_gone(reason) else reason


def _is_gone(error: OSError) -> bool:
    """Whether there is no such file, or something else in its place."""
    if isinstance(error, disk.NotAFileError | disk.FileTooLargeError):
        return True
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)


class Stamp(Struct, frozen=True, kw_only=True):
    """What an index reflects, written last, so that a stamp never promises too much."""

    generation: int
    catalog: str
    """The identity of the catalog whose file ids these are."""
    documents: int
    deleted: int = 0
    """Texts that are no longer among them and still count in the scores."""
    languages: tuple[tuple[str, int], ...] = ()
    """How many texts are surely in each language, by its name; the one of most is that of short
    texts that do not tell theirs."""
    files: tuple[tuple[str, int, str], ...]
    """Name below the folder, size in bytes, xxh3_128 in hexadecimal; sorted by name."""
    analysis: str = ANALYSIS
    seal: str = ""
    """The keyed hash of its writer, of `claims`; "" where they had no secret."""

    def claims(self) -> bytes:
        """All that it says of an index: what is sealed."""
        return serialize_stamp(replace(self, seal=""))

    def part(self) -> str:
        """The name of the folder that holds the files of this commit."""
        return self.files[0][0].partition("/")[0]

    def names(self) -> tuple[str, ...]:
        """The names of the files in that folder."""
        return tuple(name.partition("/")[2] for name, _, _ in self.files)


Seal = Callable[[Stamp], Stamp]
"""Marks a stamp as its writer's."""


def serialize_stamp(stamp: Stamp) -> bytes:
    """The stamp as JSON."""
    return orjson.dumps(asdict(stamp), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def parse_stamp(data: bytes) -> Stamp | None:
    """The stamp in some bytes, None where they are not one."""
    try:
        record = orjson.loads(data)
        stamp = converted(record, Stamp)
    except ValueError:
        return None
    # All names are ``part/name`` with one part: no path leads out of the folder.
    names = [name for name, _, _ in stamp.files]
    pairs = [name.split("/") for name in names]
    is_sound = all(len(pair) == 2 for pair in pairs) and all(map(has_plain_names, names))
    is_inside = is_sound and len({pair[0] for pair in pairs}) == 1
    return stamp if "analysis" in record and is_inside else None


def read_stamp(folder: str) -> Stamp | None:
    """The stamp of an index folder, None where it is missing or unreadable.

    It may be a stranger's: anyone who has tantivy parse what it names asks first whose seal it has.
    """
    try:
        with part.own_folder(folder) as handle:
            part.check(STAMP_NAME, "shared", folder=handle)
            data, _ = disk.read_at(handle, STAMP_NAME, most=_MOST_STAMP_BYTES)
        return parse_stamp(data)
    except OSError as error:
        if not _is_gone(error):
            raise _unreadable(folder, error) from error
        return None


def _unreadable(folder: str, error: OSError) -> FulltextUnreadable:
    disk.pass_limits(error)
    return FulltextUnreadable(folder, error)


def write_stamp(folder: str, stamp: Stamp) -> None:
    """Put a stamp in place, whole or not at all, and durably."""
    with part.own_folder(folder) as handle:
        disk.write_at(handle, STAMP_NAME, serialize_stamp(stamp))
        os.fsync(handle)


def check_files(folder: str, stamp: Stamp, *, hashes: bool) -> list[str]:
    """Compare the files of an index with its stamp.

    Args:
        folder: The index folder.
        stamp: What the files should be.
        hashes: Whether to read every byte, rather than only the sizes.

    Returns:
        One line for each file that is missing, or differs in size or content.

    Raises:
        FulltextUnreadable: The disk does not give one at the moment.
    """
    problems = []
    for name, size_bytes, digest in stamp.files:
        try:
            problem = _check_file(os.path.join(folder, name), size_bytes, digest if hashes else "")
        except OSError as error:
            raise _unreadable(folder, error) from error
        if problem:
            problems.append(f"{name}: {problem}")
    return problems


def _check_file(path: str, size_bytes: int, digest: str) -> str:
    try:
        part.check(path, "shared")
        found = os.stat(path).st_size
        if found != size_bytes:
            return f"{found} bytes where {size_bytes} were written"
        if digest and disk.file_hash(path).hex() != digest:
            return "content differs from what was written"
    except OSError as error:
        if not _is_gone(error):
            raise
        return f"cannot be read ({error.strerror})"
    return ""


def require_files(folder: str, stamp: Stamp) -> None:
    """Check every byte before anything is parsed.

    Args:
        folder: The index folder.
        stamp: Of this user: tantivy panics, or goes on for ever, in files that are made for that.

    Raises:
        FulltextMissing: The index was made by another analysis, or is no longer there.
        FulltextDamaged: A file is missing or differs from the stamp, or is none of its own.
    """
    if stamp.analysis != ANALYSIS:
        raise FulltextMissing(folder, f"analysis {stamp.analysis}, expected {ANALYSIS}")
    path = os.path.join(folder, stamp.part())
    if not os.path.lexists(path):
        raise FulltextMissing(folder, f"{stamp.part()} is gone")
    if problems := check_files(folder, stamp, hashes=True):
        raise FulltextDamaged(folder, "; ".join(problems))
    try:
        problem = _strange(path)
    except OSError as error:
        raise _unreadable(folder, error) from error
    if problem:
        raise FulltextDamaged(folder, problem)


def _strange(path: str) -> str:
    """What a stranger put into the folder of a commit; tantivy opens its locks by their names."""
    try:
        part.check(path, "folder")
    except part.NotAFileError:
        return "it is not a folder of its own"
    found = (one.name for one in os.scandir(path) if not one.is_file(follow_symlinks=False))
    return next((f"{name!r} is not a regular file" for name in found), "")


def describe_files(
    folder: str, part: str, known: dict[str, tuple[int, str]]
) -> tuple[tuple[str, int, str], ...]:
    """Name, size and hash of every file of a commit.

    Args:
        folder: The index folder.
        part: The folder of the commit in it.
        known: Size and hash by file name of files that are certain to be unchanged.

    Returns:
        The value of `Stamp.files`.
    """
    names = sorted(os.listdir(os.path.join(folder, part)))
    return tuple(
        (
            f"{part}/{name}",
            *(known.get(name) or (os.stat(path).st_size, disk.file_hash(path).hex())),
        )
        for name, path in ((name, os.path.join(folder, part, name)) for name in names)
        if not name.endswith(".lock")
    )
