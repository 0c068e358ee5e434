"""A file that goes, shrinks or becomes a folder while it is read: said as it is, and no fall.

What happens between a stat and an open, or an open and a read, is made to happen there.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

COMMANDS: Final = (
    ("status",),
    ("verify", "--level", "full"),
    ("search", "pump", "--mode", "keyword"),
    ("show", "chunked/manual.md/chunk1.md"),
    ("reconstruct", "manual.md"),
    ("similar", "manual.md"),
    ("duplicates", "--above", "0.1"),
    ("links", "manual.md"),
    ("sync",),
    ("add", "manual.md"),
    ("repair", "--plan"),
)


def _remove(path: Path) -> None:
    path.unlink()


def _truncate(path: Path) -> None:
    os.truncate(path, 3)


def _become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("moment", ["before-open", "before-read"])
@pytest.mark.parametrize("change", [_remove, _truncate, _become_folder])
@pytest.mark.parametrize("name", ["file_index/chunked/manual.md/chunk1.md", "manual.md"])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_file_that_changes_while_it_is_read(
    workspace: Any,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    change: Callable[[Path], None],
    moment: str,
    words: tuple[str, ...],
) -> None:
    """Whatever it was, the command ends, the next one tells the truth, and a sync settles it."""
    original = workspace.write("manual.md", "# Manual\n\nThe pump needs care.\n")
    workspace("add", "manual.md")
    path = workspace.folder / name
    # Another stat, so that it is read at all.
    os.utime(path, ns=(1, 1))
    changed: list[int] = []
    opened: dict[int, bool] = {}
    real_open, real_read = os.open, os.read

    def opening(what: Any, flags: int, *rest: Any, **named: Any) -> int:
        is_it = os.path.basename(os.fsdecode(what)) == path.name
        if is_it and moment == "before-open" and not changed:
            changed.append(1)
            change(path)
        handle = real_open(what, flags, *rest, **named)
        opened[handle] = is_it
        return handle

    def reading(handle: int, size: int) -> bytes:
        if opened.get(handle) and moment == "before-read" and not changed:
            changed.append(1)
            change(path)
        return real_read(handle, size)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opening)
        patch.setattr(os, "read", reading)
        done = workspace(*words, code=None)
    assert done.code in (0, 1, 3, 4), done
    if path.is_dir():
        path.rmdir()
    if not original.is_file():
        workspace.write("manual.md", "# Manual\n\nThe pump needs care.\n")
    workspace("sync", code=None)
    workspace("add", "manual.md", code=None)
    assert workspace("verify", "--level", "full", code=None).code in (0, 1)
    # Three bytes of a chunk file are a frontmatter without an end.
    told = {"malformed-frontmatter", "missing", "source-modified"}
    assert set(workspace.drift()) <= told


def _edit(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"And a new line.\n")


@pytest.mark.parametrize("change", [_remove, _edit, _become_folder])
@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_moved_file_that_changes_before_it_is_followed(
    workspace: Any,
    monkeypatch: pytest.MonkeyPatch,
    in_place: bool,
    is_edited: bool,
    change: Callable[[Path], None],
) -> None:
    """It is found as moved, and is another by then: the sync after that one settles it."""
    workspace.write("notes/manual.md", "# Manual\n\nThe pump needs care.\n")
    workspace.write("notes/other.md", "# Other\n\nThe valve needs care.\n")
    if in_place:
        workspace("init", "--in-place", "notes")
        path = workspace.folder / "notes" / "manual.md"
        store = ("--store", "notes")
    else:
        workspace("add", "notes/manual.md", "notes/other.md")
        path = workspace.folder / "file_index/chunked/manual.md/chunk1.md"
        store = ()
    moved = path.with_name("moved.md")
    path.rename(moved)
    if is_edited:
        moved.write_bytes(moved.read_bytes() + b"One more line.\n")
    openings: list[int] = []
    real_open = os.open

    def opening(what: Any, *rest: Any, **named: Any) -> int:
        if os.path.basename(os.fsdecode(what)) == moved.name:
            openings.append(1)
            if len(openings) == 2:
                change(moved)
        return real_open(what, *rest, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opening)
        assert workspace(*store, "sync", code=None).code in (0, 1)
    assert len(openings) > 1 or (in_place and is_edited)
    if moved.is_dir():
        moved.rmdir()
    workspace(*store, "sync", code=None)
    found = workspace(*store, "search", "pump", "--mode", "keyword", "--json", code=None).json
    assert [hit["freshness"] for hit in found["hits"]] == ["fresh"] * moved.exists()
    told = workspace(*store, "verify", "--level", "full", "--json", code=None).json["findings"]
    assert {one["code"] for one in told} <= {"source-modified", "hand-edited"}
