"""Undo a change of chunk files: all of its files, byte for byte, or none of them."""

import time
from typing import TYPE_CHECKING

from msgspec import Struct

from filestore.cli import _context, _diagnostics, _output
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.server import requests

if TYPE_CHECKING:
    from filestore.history.batch import Group

EXAMPLE = "filestore undo --list"


class Batches(JsonObject, Struct, frozen=True):
    """What `undo --list` prints."""

    batches: "list[Group]"
    """Changes that can be undone or redone, newest first."""


class Options(requests.Undo, frozen=True, kw_only=True):
    """What the command takes."""

    list: bool = False
    """list the changes that can be undone or redone"""


def run(options: Options) -> int:
    """Undo; 1 where there is nothing to undo, 4 where files were edited since."""
    with _context.open_store(options) as store:
        if options.list:
            return _list(store.batches(), as_json=options.json)
        with _diagnostics.ProgressBar() as on_progress:
            done = store.undo(options.id, on_progress=on_progress)
    _output.turned(done, word="undone", as_json=options.json)
    if done is not None and not options.json:
        _output.line("to redo it: filestore redo")
    return _diagnostics.left_without(done.problem) if done else 1


def _list(batches: "list[Group]", *, as_json: bool) -> int:
    """List, newest first; 1 where there is none."""
    if as_json:
        _output.write_json(Batches(batches[::-1]).to_dict())
        return 0 if batches else 1
    for group in reversed(batches):
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(group.batches[0].made_s))
        size = f"{group.bytes:,} bytes"
        files = _output.count(group.files, "file")
        head = f"{group.id}  {when}  {group.state:<10}  {files}, {size}"
        _output.line(head)
        _output.line(f"    {shown_path(group.problem or group.what)}")
    if not batches:
        _output.line("nothing to undo")
    return 0 if batches else 1
