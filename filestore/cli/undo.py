"""Take a change of chunk files back: all of its files, byte for byte, or none of them."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _diagnostics, _output
from filestore.safe_text import shown_path

if TYPE_CHECKING:
    from filestore.batches import Group

EXAMPLE = "filestore undo --list"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="which one; without it the newest that is not undone"
    )
    parser.add_argument("--list", action="store_true", help="list what can be undone and redone")


def run(options: Any) -> int:
    """Undo; 1 where there is nothing to undo, 4 where files were edited since."""
    with _context.open_store(options) as store:
        if options.list:
            return _list(store.batches(), as_json=options.json)
        with _diagnostics.ProgressBar() as on_progress:
            done = store.undo(options.id, on_progress=on_progress)
    _output.turned(done, word="undone", as_json=options.json)
    if done is not None and not options.json:
        _output.line("'filestore redo' makes the change again")
    return _diagnostics.left_without(done.problem) if done else 1


def _list(batches: "list[Group]", *, as_json: bool) -> int:
    """List, newest first; 1 where there is none."""
    if as_json:
        _output.write_json({"batches": [_group_json(group) for group in reversed(batches)]})
        return 0 if batches else 1
    for group in reversed(batches):
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(group.batches[0].made_s))
        size = f"{group.size_bytes:,} bytes"
        files = _output.count(len(group.links()), "file")
        head = f"{group.identifier}  {when}  {_state(group):<10}  {files}, {size}"
        _output.line(head)
        _output.line(f"    {shown_path(group.problem or group.what)}")
    if not batches:
        _output.line("nothing to undo")
    return 0 if batches else 1


def _state(group: "Group") -> str:
    if group.problem:
        return "damaged"
    if group.underway or not (group.is_all("before") or group.is_all("after")):
        return "broken off"
    return "undone" if group.is_all("before") else "done"


def _group_json(group: "Group") -> dict[str, Any]:
    return {
        "id": group.identifier,
        "what": group.what,
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(group.batches[0].made_s)),
        "files": len(group.links()),
        "bytes": group.size_bytes,
        "state": _state(group),
        "problem": group.problem,
    }
