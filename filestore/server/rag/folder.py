"""What lies in the folder of a collection: a store with a record beside it, or the old layout.

One rule: what this door did not make it neither replaces nor deletes.
"""

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, Literal

import orjson
from msgspec import Struct, field
from msgspec.structs import asdict

from filestore.config.layout import SETTINGS, folded_path
from filestore.core.decoding import converted, json_of
from filestore.core.errors import RefusedError, UsageError
from filestore.core.hashing import content_hash
from filestore.core.safe_text import brief
from filestore.exchange.vector_files import faiss_folder
from filestore.fs import disk
from filestore.fs.staged_folder import LONGEST_NAME_BYTES
from filestore.verify.names import why_no_name

Kind = Literal["collection", "store", "faiss-json", ""]
RECORD: Final = "collection.json"
OLD_FILES: Final = frozenset(faiss_folder.FILES)
SETTLED: Final = (SETTINGS, ".gitignore", ".gitattributes")
"""What stays where all documents are replaced."""
_OURS: Final = OLD_FILES | {*SETTLED, RECORD, ".sidecar", ".undo", "chunked"}
_FORMAT: Final = 1
_MOST_RECORD_BYTES: Final = 64 * 1024 * 1024


class Record(Struct, frozen=True, kw_only=True):
    """What is known of a collection beside its documents."""

    created_at: str
    updated_at: str
    digest: str = ""
    """Of the documents as they were written; "" where nobody knows."""
    dataset_info: dict[str, Any] = field(default_factory=dict)

    @property
    def written(self) -> bytes:
        """As it stands in its file."""
        return orjson.dumps({"format": _FORMAT, **asdict(self)}, option=orjson.OPT_INDENT_2)


def kind_of(path: str) -> Kind:
    """What a folder is; "" for what is none of these, a link among them."""
    if os.path.islink(path):
        return ""
    try:
        names = set(os.listdir(path))
    except OSError:
        return ""
    if SETTINGS in names:
        return "collection" if RECORD in names else "store"
    return "faiss-json" if faiss_folder.INDEX in names else ""


def strange(path: str) -> list[str]:
    """What in the root of a collection neither this door nor a store put there."""
    return sorted(set(os.listdir(path)) - _OURS)


def record_of(path: str) -> Record:
    """The record; where it cannot be used, what the files tell."""
    try:
        data = disk.read_path(os.path.join(path, RECORD), limit=_MOST_RECORD_BYTES)
        found = converted(json_of(data), Record)
        for one in (found.created_at, found.updated_at):
            datetime.fromisoformat(one)
        return found
    except (OSError, ValueError):
        stamp = _stamp(path)
        return Record(created_at=stamp, updated_at=stamp)


def _stamp(path: str) -> str:
    try:
        seconds = os.stat(path).st_mtime
        return written_time(datetime.fromtimestamp(seconds, UTC))
    except (OSError, ValueError, OverflowError):
        return written_time(datetime.fromtimestamp(0, UTC))


def written_time(moment: datetime) -> str:
    """A time as the layout has it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def digest_of(path: str) -> str:
    """Tells whether a document was changed, whoever did it.

    Raises:
        OSError: One cannot be read.
    """
    lines = []
    top = os.path.join(path, "chunked")
    for place in sorted(_files(top, strict=True)):
        name = os.fsencode(os.path.relpath(place, top))
        lines.append(content_hash(name) + content_hash(disk.read_path(place)))
    return content_hash(b"".join(lines)).hex()


def size_bytes(path: str) -> int:
    """What all files of a folder have together."""
    total = 0
    for place in _files(path, strict=False):
        try:
            total += os.lstat(place).st_size
        except OSError:
            continue  # It went just now.
    return total


def _files(top: str, *, strict: bool) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        if strict:
            raise error

    for folder, _, names in os.walk(top, onerror=refuse):
        for name in names:
            yield os.path.join(folder, name)


def check_name(name: object) -> str:
    """The name, where it can be a folder of the collections.

    Raises:
        UsageError: It cannot.
    """
    if not isinstance(name, str):
        raise UsageError("the name of a collection is a text", remedy='send "rag_name": "NAME"')
    reason = _wrong(name)
    if reason:
        raise UsageError(
            f"{brief(name)} cannot name a collection: {reason}", remedy="choose another name"
        )
    return name


def _wrong(name: str) -> str:
    if not name.strip():
        return "it is empty"
    if name != name.strip():
        return "it begins or ends with a blank"
    if name[0] == "-":
        return "it begins with a hyphen"
    if "\\" in name:
        return "it has a backslash"
    if reason := why_no_name(name):
        return reason
    if len(name.encode()) > LONGEST_NAME_BYTES:
        return f"it has more than {LONGEST_NAME_BYTES} bytes"
    return ""


def check_alike(name: str, others: Iterable[str]) -> None:
    """Refuse a name that some file systems could not tell from another one.

    Raises:
        RefusedError: There is such a one.
    """
    folded = folded_path(name)
    for other in others:
        if other != name and folded_path(other) == folded:
            raise RefusedError(
                f"{brief(name)} differs only by case or composition from {brief(other)}",
                remedy="use that name, or choose another one",
            )
