"""Documents that are uploaded: written into the store's folder of originals, then added.

One rule: what could not be added leaves nothing behind, and a document that is there is replaced
only where that is asked for.
"""

import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from filestore.core.errors import RefusedError, UsageError, on_error
from filestore.core.paths import is_below
from filestore.core.safe_text import brief, shown_path
from filestore.fs import disk
from filestore.fs.database import remove
from filestore.sidecar.refusals import refuse_useless
from filestore.verify.names import why_no_name, why_unportable

if TYPE_CHECKING:
    from filestore.store import Store

MOST_FILES: Final = 1_000
"""In one request."""


class Upload(Struct, frozen=True, kw_only=True):
    """One document as it came."""

    name: str
    data: bytes


class DocumentThereError(RefusedError):
    """A document of this name is there, and holds something else."""


def take(store: "Store", uploads: Sequence[Upload], *, into: str, replace: bool) -> dict[str, Any]:
    """Write documents and add them: each a resource, or all of them one.

    Args:
        store: Open, to be written.
        uploads: The documents.
        into: The name of the one resource that they are; "" for one each.
        replace: Whether documents of the same names go.

    Raises:
        UsageError: A name cannot be used, or two documents have the same.
        DocumentThereError: One is there, and holds something else.
        FilestoreError: What `Store.add` raises.
    """
    refuse_useless(store.places, "add")
    names = [one.name for one in uploads]
    for name in (*names, *([into] if into else [])):
        if reason := why_no_name(name) or why_unportable(name):
            raise UsageError(
                f"{brief(name)} is no name for a document: {reason}", remedy="rename it"
            )
    folded = {name.casefold() for name in names}
    if len(folded) < len(names):
        raise UsageError("two documents have the same name", remedy="rename one of them")
    folder = os.path.join(store.places.source, into) if into else store.places.source
    if not is_below(os.path.realpath(folder), os.path.realpath(store.root)):
        raise RefusedError(
            "the folder of originals leads out of the store", remedy="have it inside the store"
        )
    _require_room(folder, names)
    written = _Written(folder, uploads, replace=replace)
    with on_error(written.put_back, names):
        written.write()
        paths = [folder] if into else [os.path.join(folder, name) for name in names]
        report = store.add(*paths, into=into or None)
    failed = {os.path.basename(one.source) for one in report.failed}
    written.put_back([name for name in names if name in failed or (into and into in failed)])
    return report.to_dict()


def _require_room(folder: str, names: Sequence[str]) -> None:
    """Refuse names that something else has: a file where a folder is to be, or the other way.

    Raises:
        DocumentThereError: One is taken.
    """
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise DocumentThereError(
            f"{shown_path(os.path.basename(folder))} is a document, and no folder of several",
            remedy="choose another name with into",
        )
    for name in names:
        path = os.path.join(folder, name)
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
            raise DocumentThereError(
                f"{shown_path(name)} is there already, and is no plain file",
                remedy="upload it under another name",
            )


class _Written:
    """Documents in the folder of originals, and what was there before."""

    def __init__(self, folder: str, uploads: Sequence[Upload], *, replace: bool) -> None:
        self._folder = folder
        self._uploads = {one.name: one.data for one in uploads}
        self._replace = replace
        self._before: dict[str, bytes | None] = {}

    def write(self) -> None:
        """Write all of them.

        Raises:
            DocumentThereError: One is there, and holds something else.
            WriteFailedError: The disk refused.
        """
        there = {name: _read(os.path.join(self._folder, name)) for name in self._uploads}
        others = [name for name, data in there.items() if data not in (None, self._uploads[name])]
        if others and not self._replace:
            raise DocumentThereError(
                f"{shown_path(others[0])} is there already, with another content",
                remedy="upload it under another name, or send replace=true",
            )
        try:
            disk.make_folders(self._folder)
            for name, data in self._uploads.items():
                if there[name] != data:
                    self._before[name] = there[name]
                    disk.write_path(os.path.join(self._folder, name), data)
        except OSError as error:
            raise disk.write_failed(self._folder, error) from error

    def put_back(self, names: Sequence[str]) -> None:
        """Have it as it was, of documents that could not be added."""
        for name in names:
            if name not in self._before:
                continue
            path, before = os.path.join(self._folder, name), self._before.pop(name)
            if before is None:
                remove(path)
            else:
                disk.write_path(path, before)
        with contextlib.suppress(OSError):
            # A folder that was made for them; one that holds others stays.
            os.rmdir(self._folder)


def _read(path: str) -> bytes | None:
    try:
        return disk.read_path(path)
    except FileNotFoundError:
        return None
