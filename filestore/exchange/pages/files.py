"""Pages on their way into a folder: under temporary names until all are there, then in place.

One rule: no page takes its name before every page was written, and nothing is removed that an
earlier export did not write.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from filestore.core.hashing import content_hash
from filestore.exchange.file_names import FileNames
from filestore.exchange.pages.page import Content
from filestore.fs import disk
from filestore.fs.transaction import collect_staged, content, stage_all

_AT_ONCE: Final = 256
_BYTES_AT_ONCE: Final = 32 * 1024 * 1024
"""Pages are written together, because a disk syncs several in the time of one."""


class PagePlan(Struct):
    """What an export has written, and where it may write."""

    root: int
    names: dict[str, FileNames] = field(default_factory=dict)
    staged: dict[str, str] = field(default_factory=dict)
    """Pages to the temporary names they have until all is there."""
    pending: dict[str, bytes] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    """Folders, outermost first."""
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of the pages, as the manifest has them."""
    edited: dict[str, Content] = field(default_factory=dict)
    """What pages of an earlier export say that were edited since, unless the new ones say it."""
    size_bytes: int = 0


def put(plan: PagePlan, path: str, text: str, entry: Mapping[str, Any]) -> None:
    """Let a page be written, with others."""
    data = text.encode("utf-8", "surrogatepass")
    plan.size_bytes += len(data)
    plan.entries[path] = {"hash": content_hash(data).hex(), **entry}
    plan.pending[path] = data
    total = sum(map(len, plan.pending.values())) if len(plan.pending) % 16 == 0 else 0
    if len(plan.pending) >= _AT_ONCE or total >= _BYTES_AT_ONCE:
        stage(plan)


def either(
    entries: Mapping[str, Mapping[str, Any]], before: Mapping[str, frozenset[str]]
) -> dict[str, dict[str, str]]:
    """The pages while they are being replaced: what each was, and what it is to be."""
    found: dict[str, dict[str, str]] = {}
    for path in [*entries, *(before.keys() - entries.keys())]:
        new = {"hash": str(entries[path]["hash"])} if path in entries else {}
        was = [one for one in sorted(before.get(path, ())) if one != "None"]
        found[path] = new | ({"was": was[-1]} if was else {})
    return found


def stage(plan: PagePlan) -> None:
    """Write what is pending under temporary names, and sync it."""
    for folder in sorted({path.rpartition("/")[0] for path in plan.pending}):
        _make(plan, folder)
    plan.staged |= stage_all(
        plan.root, {path: content(data) for path, data in plan.pending.items()}
    )
    plan.pending.clear()


def _make(plan: PagePlan, folder: str) -> None:
    parts = folder.split("/") if folder else []
    for count in range(1, len(parts) + 1):
        with (
            contextlib.suppress(FileExistsError),
            disk.folder(plan.root, "/".join(parts[: count - 1])) as handle,
        ):
            os.mkdir(parts[count - 1], dir_fd=handle)
            plan.made.append("/".join(parts[:count]))


def install(plan: PagePlan, before: Mapping[str, frozenset[str]]) -> None:
    """Give the pages their names, and remove those of the earlier export that are none now."""
    for path, temporary in list(plan.staged.items()):
        folder, _, name = path.rpartition("/")
        with disk.folder(plan.root, folder) as handle:
            os.rename(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
        del plan.staged[path]
    for folder in {path.rpartition("/")[0] for path in plan.entries} - {""}:
        collect_staged(plan.root, folder)  # of a writer that was killed
    gone = before.keys() - plan.entries.keys()
    for path in gone:
        folder, _, name = path.rpartition("/")
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            disk.folder(plan.root, folder) as handle,
        ):
            os.unlink(name, dir_fd=handle)
    _remove_empty(plan.root, {path.rpartition("/")[0] for path in gone})
    disk.sync_folders(plan.root, {path.rpartition("/")[0] for path in plan.entries} | {""})


def _remove_empty(root: int, folders: set[str]) -> None:
    """Remove folders that nothing is in any more, and those around them."""
    for folder in sorted(folders, key=len, reverse=True):
        while folder:
            parent, _, name = folder.rpartition("/")
            try:
                with disk.folder(root, parent) as handle:
                    os.rmdir(name, dir_fd=handle)
            except OSError:
                break
            folder = parent


def take_back(plan: PagePlan) -> None:
    """Remove what has only its temporary name, and the folders that were made for it."""
    for path, temporary in plan.staged.items():
        with (
            contextlib.suppress(OSError),
            disk.folder(plan.root, path.rpartition("/")[0]) as handle,
        ):
            os.unlink(temporary, dir_fd=handle)
    _remove_empty(plan.root, set(plan.made))
