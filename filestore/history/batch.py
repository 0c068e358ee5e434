"""What is kept of a change of truth files, as values: its record, its cap, what belongs together.

Pure; `originals` holds the bytes. One rule: a record may come from a stranger, and reaches truth
files only.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal

import orjson
from msgspec import Meta, Struct

from filestore.core.errors import FilestoreError
from filestore.core.hashing import DIGEST_BYTES
from filestore.core.paths import CHUNKS, NOTES, SETTINGS, SUMMARIES, Tree
from filestore.core.safe_text import brief, listed, safe_text, shown_path
from filestore.core.schema import JsonObject, UnfitError, converted, json_of

BATCH_NAME: Final = "batch.json"
BATCH_FORMAT: Final = 2
KEPT_S: Final = 90 * 24 * 3600
KEPT_BYTES: Final = 1 << 30
TRUTH_FOLDERS: Final = frozenset({"chunked", "source", SUMMARIES})
"""Where a batch may put files back; its record may come from a stranger."""
TRUTH_FILES: Final = frozenset({".gitattributes"})
"""Which files of the root itself it may."""
NUMBERED: Final = re.compile(r"[0-9]{6,18}")
"""What a batch is called."""

_LATEST_S: Final = 1 << 36
_LAST_SEQUENCE: Final = 1 << 53
_MODES: Final = 0o7777
_PERMISSIONS: Final = 0o666
_WHAT_LENGTH: Final = 1_000
_NAME_LENGTH: Final = 80
_UNSEEN: Final = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
"""Code points that some file systems drop from names, so that a dot behind one still leads."""
_SHORT_NAME: Final = re.compile(r"git~[0-9]+", re.IGNORECASE | re.ASCII)
"""What some file systems call `.git`, too."""
_NAMED: Final = 3
"""The commands of one group that are named; the rest is counted."""

State = Literal["after", "before"]


class BatchInvalidError(FilestoreError, ValueError):
    """A record under `.undo/` cannot be used."""


class Version(Struct, frozen=True, kw_only=True):
    """What a file held at one time."""

    digest: bytes
    """`content_hash` of its bytes."""
    mode: int | None = None
    """Its permissions; None where its bytes are not kept."""
    indexed: bool = True
    """Whether the catalog knew these bytes when they were taken away."""


class ChangedFile(Struct, frozen=True, kw_only=True):
    """One file of a batch; None is no file."""

    path: str
    """Relative to the store root."""
    before: Version | None
    after: Version | None


class Batch(Struct, frozen=True, kw_only=True):
    """One change of truth files, and its state."""

    identifier: str
    what: str
    """The command, for the list."""
    made_s: int
    """When, in seconds since 1970."""
    entries: tuple[ChangedFile, ...]
    """In the order in which they were changed."""
    wanted: State = "after"
    """The side that the files hold since the last undo or redo."""
    sequence: int = 0
    """Orders what was undone and redone; 0 where neither happened."""
    by: str | None = None
    """The program that made it; None for a person."""
    group: str = ""
    """The first batch of the command, where this is a later one of it."""
    folders: tuple[str, ...] | None = None
    """The folders that were made for its files, relative to the store root; None where that was not
    recorded."""
    underway: bool = False
    """Whether the last writer died before it was done."""
    size_bytes: int = 0
    """What it takes under `.undo/`."""
    problem: str = ""
    """Why its record cannot be used."""


class KeptBatch(Struct, frozen=True, kw_only=True):
    """A batch as the cap sees it."""

    identifier: str
    used_s: float
    """When it was made, undone or redone last."""
    size_bytes: int
    group: str = ""
    """The first batch of its command; "" where it is that itself."""


class _Side(Struct, frozen=True, kw_only=True):
    """What a file held, as a record has it."""

    hash: Annotated[str, Meta(pattern=f"^[0-9a-f]{{{2 * DIGEST_BYTES}}}\\Z")]
    mode: Annotated[int, Meta(ge=0, le=_MODES)] | None
    indexed: bool = True


class _File(Struct, frozen=True, kw_only=True):
    """A file of a record."""

    path: str
    before: _Side | None
    after: _Side | None


class _Record(Struct, frozen=True, kw_only=True):
    """A record, which may come from a stranger."""

    what: str
    made: Annotated[int, Meta(ge=0, le=_LATEST_S)]
    wanted: State
    sequence: Annotated[int, Meta(ge=0, le=_LAST_SEQUENCE)]
    by: str | None = None
    group: Annotated[str, Meta(pattern=f"^({NUMBERED.pattern})?\\Z")] = ""
    folders: tuple[str, ...] | None = None
    files: tuple[_File, ...]


def serialize(batch: Batch) -> bytes:
    """The record of a batch."""
    record = {
        "format": BATCH_FORMAT,
        "what": shown_path(batch.what),
        "made": batch.made_s,
        "wanted": batch.wanted,
        "sequence": batch.sequence,
        **({} if batch.by is None else {"by": _name(batch.by)}),
        **({"group": batch.group} if batch.group else {}),
        **({} if batch.folders is None else {"folders": list(map(_encode_path, batch.folders))}),
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


def parse(data: bytes, *, identifier: str, tree: Tree = CHUNKS) -> Batch:
    """Read the record of a batch.

    Args:
        data: The record.
        identifier: What the batch is called.
        tree: Of the store, which tells where its files may lie.

    Raises:
        BatchInvalidError: It is damaged, newer, or would put files where no truth is.
    """
    try:
        table = json_of(data)
        found = converted(table, dict[str, Any]).get("format")
        if found != BATCH_FORMAT:
            raise invalid(identifier, f"it has format {brief(found)}, expected {BATCH_FORMAT}")
        record = converted(table, _Record)
        batch = Batch(
            identifier=identifier,
            what=record.what[:_WHAT_LENGTH],
            made_s=record.made,
            wanted=record.wanted,
            sequence=record.sequence,
            by=None if record.by is None else _name(record.by),
            group=record.group,
            folders=None if record.folders is None else tuple(map(_decode_path, record.folders)),
            entries=tuple(
                ChangedFile(
                    path=_decode_path(one.path),
                    before=_version(one.before),
                    after=_version(one.after),
                )
                for one in record.files
            ),
        )
    except orjson.JSONDecodeError as error:
        raise invalid(identifier, f"{BATCH_NAME} is no JSON: {error}") from error
    except UnfitError as error:
        raise invalid(identifier, f"in {BATCH_NAME} {error}") from error
    except UnicodeError as error:
        raise invalid(identifier, f"{BATCH_NAME} names a file as no change does") from error
    wrong = misplaced(batch.entries, tree)
    if wrong is not None:
        raise invalid(identifier, f"{brief(shown_path(wrong))} is not a place for such a file")
    if len({entry.path for entry in batch.entries}) < len(batch.entries):
        raise invalid(identifier, "it names a file twice")
    return batch


def _name(by: str) -> str:
    return safe_text(by[:_NAME_LENGTH], keep_newlines=False)[:_NAME_LENGTH]


def is_truth(path: str) -> bool:
    """Whether a path relative to the store root is one of a truth file.

    Nothing else that is hidden is: what lies behind a dot belongs to git, to the sidecar, to other
    programs.
    """
    parts = path.split("/")
    if path in TRUTH_FILES:
        return True
    return len(parts) > 1 and parts[0] in TRUTH_FOLDERS and all(map(is_plain, parts[1:]))


def may_change(path: str, tree: Tree) -> bool:
    """Whether commands may change a path: that of a truth file, or of a note among documents.

    Documents are those in place, or the originals around a store of chunk files.
    """
    return is_truth(path) or (is_note(_within(path)) and _is_around(path, tree))


def misplaced(entries: Sequence[ChangedFile], tree: Tree) -> str | None:
    """The first file that no change may reach; None where there is none.

    Other documents than notes are only given another name: as many files of the same bytes and
    suffix go as come, so that a record brings no file that was not there.
    """
    others = [entry for entry in entries if not may_change(entry.path, tree)]
    balance = Counter[tuple[bytes, str]]()
    for entry in others:
        sides = [one for one in (entry.before, entry.after) if one is not None]
        is_visible = all(map(is_plain, _within(entry.path).split("/")))
        if len(sides) != 1 or not (is_visible and _is_around(entry.path, tree)):
            return entry.path
        suffix = os.path.splitext(entry.path)[1].casefold()
        balance[sides[0].digest, suffix] += 1 if entry.before is None else -1
    return others[0].path if any(balance.values()) else None


def _is_around(path: str, tree: Tree) -> bool:
    """Whether a path can be one of a document, by its beginning."""
    if tree.is_written:
        return path.startswith("../")
    return path.partition("/")[0].casefold() not in ("..", SETTINGS)


def _within(path: str) -> str:
    """A path without the steps out of the root that it begins with."""
    while path.startswith("../"):
        path = path[3:]
    return path


def is_note(path: str) -> bool:
    """Whether a note may lie at a path among documents, relative to the root: visible Markdown."""
    return path.casefold().endswith(NOTES) and all(map(is_plain, path.split("/")))


def is_plain(name: str) -> bool:
    """Whether a name is one of a visible file or folder, however it is written."""
    seen = name.translate(_UNSEEN)
    hidden = seen.startswith(".") or _SHORT_NAME.fullmatch(seen) is not None
    return bool(seen) and not hidden and "\0" not in name


def _encode_path(path: str) -> str:
    """A path of any bytes as text that JSON can hold."""
    return path.encode("utf-8", "surrogateescape").decode("latin-1")


def _decode_path(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "surrogateescape")


def _encode_version(version: Version | None, blob: str) -> dict[str, Any] | None:
    if version is None:
        return None
    kept = version.mode is not None
    return {
        "hash": version.digest.hex(),
        "mode": version.mode,
        "blob": blob if kept else None,
        **({} if version.indexed else {"indexed": False}),
    }


def _version(side: _Side | None) -> Version | None:
    if side is None:
        return None
    # No more than reading and writing: nothing that runs, nor as somebody else.
    mode = None if side.mode is None else side.mode & _PERMISSIONS
    return Version(digest=bytes.fromhex(side.hash), mode=mode, indexed=side.indexed)


def invalid(identifier: str, reason: str) -> BatchInvalidError:
    """The error that says why a batch cannot be used."""
    return BatchInvalidError(
        f".undo/{identifier} cannot be used: {reason}",
        remedy="'filestore undo --list' shows the others",
    )


def expired(
    kept: Sequence[KeptBatch], *, now_s: float, most_s: float = KEPT_S, most_bytes: int = KEPT_BYTES
) -> list[str]:
    """Which batches are to go: those too old, then the oldest until the rest fits; pure.

    Those of one command go together, as they are undone together.

    Args:
        kept: Oldest first; what the last one belongs to always stays.
        now_s: Seconds since 1970.
        most_s: How long a batch is kept after it was used last.
        most_bytes: How much all may take.
    """
    commands: dict[str, list[KeptBatch]] = {}
    for one in kept:
        commands.setdefault(one.group or one.identifier, []).append(one)
    total = sum(one.size_bytes for one in kept)
    gone: list[str] = []
    for members in commands.values():
        used_s = max(one.used_s for one in members)
        if kept[-1] not in members and (now_s - used_s > most_s or total > most_bytes):
            gone += [one.identifier for one in members]
            total -= sum(one.size_bytes for one in members)
    return gone


class FileChange(Struct, frozen=True, kw_only=True):
    """One change of a file, and the batch that keeps both sides of it."""

    batch: str
    number: int
    """Of its entry."""
    entry: ChangedFile


class Group(JsonObject, Struct, frozen=True, kw_only=True):
    """What one command changed: its batches, oldest first, undone and redone together."""

    KEYS = "id what by when files bytes state problem"

    batches: tuple[Batch, ...]

    @property
    def id(self) -> str:
        """Its name."""
        return self.batches[0].identifier

    @property
    def what(self) -> str:
        """The commands, for the list."""
        return listed(dict.fromkeys(batch.what for batch in self.batches), _NAMED)

    @property
    def by(self) -> str | None:
        """The program that made it; null for a person."""
        return self.batches[0].by

    @property
    def problem(self) -> str:
        """Why it cannot be used; "" where it can."""
        return self.batches[0].problem

    @property
    def underway(self) -> bool:
        """Whether its last writer died before it was done."""
        return any(batch.underway for batch in self.batches)

    @property
    def sequence(self) -> int:
        """Orders what was undone and redone."""
        return max(batch.sequence for batch in self.batches)

    @property
    def bytes(self) -> int:
        """What it takes under `.undo/`."""
        return sum(batch.size_bytes for batch in self.batches)

    @property
    def when(self) -> str:
        """When it began, in UTC."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.batches[0].made_s))

    @property
    def files(self) -> int:
        """How many files it changed."""
        return len(self.links())

    @property
    def state(self) -> str:
        """`done`, `undone`, `broken off` or `damaged`."""
        if self.problem:
            return "damaged"
        if self.underway or not (self.is_all("before") or self.is_all("after")):
            return "broken off"
        return "undone" if self.is_all("before") else "done"

    def is_all(self, side: State) -> bool:
        """Whether all of its files hold one side."""
        return all(batch.wanted == side for batch in self.batches)

    def links(self) -> dict[str, tuple[FileChange, ...]]:
        """The changes of each file, oldest first; files in the order of their last change."""
        found: dict[str, tuple[FileChange, ...]] = {}
        for batch in self.batches:
            for number, entry in enumerate(batch.entries):
                earlier = found.pop(entry.path, ())
                link = FileChange(batch=batch.identifier, number=number, entry=entry)
                found[entry.path] = (*earlier, link)
        return found


def grouped(batches: Iterable[Batch]) -> list[Group]:
    """Batches by the command that made them, oldest first; pure.

    Where a file was changed by somebody else between two batches of a command a group of its own
    begins: to take back both at once would lose that change.
    """
    found: list[list[Batch]] = []
    last: dict[str, tuple[list[Batch], dict[str, bytes | None]]] = {}
    for batch in batches:
        name = batch.group or batch.identifier
        members, ends = last.get(name, ([], {}))
        if not members or any(
            ends.get(entry.path, _digest(entry.before)) != _digest(entry.before)
            for entry in batch.entries
        ):
            members, ends = [], {}
            found.append(members)
            last[name] = members, ends
        members.append(batch)
        ends.update((entry.path, _digest(entry.after)) for entry in batch.entries)
    return sorted((Group(batches=tuple(members)) for members in found), key=lambda one: int(one.id))


def _digest(version: Version | None) -> bytes | None:
    return version.digest if version else None
