"""What was changed, by whom and how, newest first: read from what `.undo/` keeps.

One rule: a diff is of bytes that were kept, or are there still, and says so where it is not.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Struct

from filestore.config.layout import Places
from filestore.core.dates import asked_span
from filestore.core.diff import unified_bytes
from filestore.core.hashing import content_hash
from filestore.core.safe_text import brief, shown_path
from filestore.core.schema import JsonObject
from filestore.fs import disk
from filestore.history.backup_store import BatchMissingError, Originals
from filestore.history.batch import Batch, BatchInvalidError, Group, Version, grouped

PERSON: Final = "you"
"""Who changed what no program did."""
_MOST_PATHS: Final = 100
_MOST_DIFF_BYTES: Final = 100_000
_LARGEST: Final = 1_000_000
"""Bytes of a file that is compared."""
_NONE: Final = "/dev/null"


class Change(JsonObject, Struct, frozen=True, kw_only=True):
    """What one command, or one call of a program, changed."""

    KEYS = "group.id group.what group.by group.when group.files group.bytes group.state "
    KEYS += "group.problem paths diff"
    SPARSE = "diff"

    group: Group
    diff: str | None = None
    """Where it is asked for: what changed, as a unified diff of at most 100,000 bytes."""

    @property
    def paths(self) -> list[str]:
        """Its files, relative to the store root; at most 100."""
        return list(map(shown_path, list(self.group.links())[:_MOST_PATHS]))


class Changes(JsonObject, Struct, frozen=True, kw_only=True):
    """What was changed."""

    changes: tuple[Change, ...]
    """Newest first."""
    left: int = 0
    """How many more there are."""


class Wanted(Struct, frozen=True, kw_only=True):
    """Which changes."""

    id: str | None = None
    """The name of one; None for all."""
    by: str | None = None
    """Only those of this program; ``you`` for those of people."""
    since: str | None = None
    """Only those of this day or later."""
    limit: int | None = None
    """At most N of them."""
    diff: bool = False
    """Whether each has its diff."""
    undoing: bool = False
    """Whether the diff is of what undoing it does, or redoing it where it is undone."""


def list_changes(places: Places, wanted: Wanted, *, is_near: Callable[[str], bool]) -> Changes:
    """The changes that are kept.

    Args:
        places: Where the store lies.
        wanted: Which of them.
        is_near: Whether a file outside of the root may be read.

    Raises:
        BatchMissingError: There is none of the name.
        UsageError: The day is none.
        WriteFailedError: What is kept cannot be read.
    """
    day = wanted.since
    since_s = 0.0 if day is None else asked_span("--since", day)[0].timestamp()
    if not os.path.isdir(places.undo):
        if wanted.id is not None:
            raise _missing(wanted.id)
        return Changes(changes=())
    with (
        Originals.open(places.undo) as originals,
        disk.folder_at(places.root, above=disk.DEEPEST) as root,
    ):
        batches = originals.batches()
        found = [
            group
            for group in reversed(grouped(batches))
            if (wanted.id is None or any(one.identifier == wanted.id for one in group.batches))
            and (wanted.by is None or (group.by or PERSON) == wanted.by)
            and group.batches[0].made_s >= since_s
        ]
        if wanted.id is not None and not found:
            raise _missing(wanted.id)
        some = found[: wanted.limit]
        kept = _Kept(root, originals, batches, is_near) if wanted.diff else None
        return Changes(
            changes=tuple(
                Change(group=group, diff=_diff(group, kept, wanted) if kept else None)
                for group in some
            ),
            left=len(found) - len(some),
        )


def _missing(identifier: str) -> BatchMissingError:
    return BatchMissingError(
        f"no change {brief(identifier)}", remedy="'filestore changes' lists what is there"
    )


class _Kept:
    """What files held, of all that is kept or there still."""

    def __init__(
        self,
        root: int,
        originals: Originals,
        batches: list[Batch],
        is_near: Callable[[str], bool],
    ) -> None:
        self._root = root
        self._is_near = is_near
        self._originals = originals
        self._blobs = {
            version.digest: (batch.identifier, f"{number}.{side}")
            for batch in batches
            for number, entry in enumerate(batch.entries)
            for side, version in (("before", entry.before), ("after", entry.after))
            if version is not None and version.mode is not None
        }

    def content(self, path: str, version: Version | None) -> bytes | None:
        """What a file held; None where that is nowhere, or too large."""
        if version is None:
            return b""
        if not path.startswith("../") or self._is_near(path):
            with suppress(OSError):
                data, _ = disk.read_below(self._root, path, most=_LARGEST)
                if content_hash(data) == version.digest:
                    return data
        if version.digest in self._blobs:
            with suppress(BatchInvalidError):
                batch, blob = self._blobs[version.digest]
                return self._originals.blob(batch, blob, version.digest, most=_LARGEST)
        return None


def _diff(group: Group, kept: _Kept, wanted: Wanted) -> str:
    is_back = wanted.undoing and group.state != "undone"
    found, size, changed = [], 0, group.links()
    for path, links in changed.items():
        versions = links[0].entry.before, links[-1].entry.after
        text = _file_diff(path, versions[::-1] if is_back else versions, kept, size)
        size += len(text.encode()) + 1
        found.append(text)
        if size >= _MOST_DIFF_BYTES:
            break
    more = len(changed) - len(found)
    return "\n".join([*found, f"({more:,} more files)"] if more else found)


def _file_diff(path: str, versions: tuple[Version | None, ...], kept: _Kept, size: int) -> str:
    shown = shown_path(path)
    names = (shown if versions[0] else _NONE, shown if versions[1] else _NONE)
    before, after = (kept.content(path, version) for version in versions)
    head = f"--- {names[0]}\n+++ {names[1]}"
    if before is None or after is None:
        return f"{head}\n(not kept, or too large to compare)"
    if b"\0" in before + after:
        return f"{head}\n(binary: {len(before):,} to {len(after):,} bytes)"
    return unified_bytes(before, after, names=names, most_bytes=_MOST_DIFF_BYTES - size)
