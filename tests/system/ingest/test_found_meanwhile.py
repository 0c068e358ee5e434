"""Findings as they are found: each once, by the thread that asked, and as they come."""

import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from filestore import Finding, Store

MARKS = "<<<<<<< a\nOne.\n=======\nTwo.\n>>>>>>> b\n"


def opened(workspace: Any, processes: int = 1) -> Store:
    configuration = os.environ["XDG_CONFIG_HOME"]
    return Store(str(workspace.store), configuration=configuration, processes=processes)


@pytest.fixture
def drifted(workspace: Any) -> list[Path]:
    """A store with some drift of many kinds."""
    paths = [
        workspace.write(f"file_index/chunked/n{number}.md", f"# {number}\n\nText {number}.\n")
        for number in range(40)
    ]
    workspace.sync()
    paths[0].write_text("Changed.\n")
    paths[1].unlink()
    paths[2].write_text(MARKS)
    paths[3].write_text("---\nbroken: [\n---\nText.\n")
    workspace.write("file_index/chunked/new.md", "New.\n")
    for path in paths[4:30]:
        rot(path)
    return paths


def rot(path: Path) -> None:
    """Flip a byte under old stamps, as far as a program can."""
    stamps, data = os.stat(path), bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stamps.st_atime_ns, stamps.st_mtime_ns))


@pytest.mark.parametrize("level", ["fast", "full", "deep"])
def test_every_finding_is_told_once(workspace: Any, drifted: list[Path], level: Any) -> None:
    """What the result has was told before, nothing twice, and by the thread that asked."""
    assert drifted
    told: list[Finding] = []
    threads: set[int] = set()

    def hear(found: Sequence[Finding]) -> None:
        told.extend(found)
        threads.add(threading.get_ident())

    with opened(workspace) as store:
        checked = store.verify(level=level, on_found=hear)
        assert checked == store.verify(level=level)
    assert len(told) == len(set(told))
    assert set(checked.findings) <= set(told)
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("harm", ["missing", "garbage", "newer"])
def test_a_part_that_cannot_be_opened_is_told(
    workspace: Any, drifted: list[Path], harm: str
) -> None:
    """Also without a catalog each finding is told, and only once."""
    assert drifted
    catalog = workspace.sidecar / "catalog.sqlite"
    if harm == "newer":
        with sqlite3.connect(catalog) as connection:
            connection.execute("PRAGMA user_version = 9999")
        connection.close()
    else:
        for path in workspace.sidecar.glob("catalog.sqlite*"):
            path.unlink()
        if harm == "garbage":
            catalog.write_bytes(b"no database" * 1000)
    told: list[Finding] = []
    with opened(workspace) as store:
        checked = store.verify(level="full", on_found=told.extend)
    assert set(checked.findings) <= set(told)
    assert len(told) == len(set(told))


def test_rot_is_told_while_files_are_read(workspace: Any) -> None:
    """A file that rotted is told before the last one was read."""
    paths = [
        workspace.write(f"file_index/chunked/f{number}/n.md", f"# {number}\n\nText {number}.\n")
        for number in range(300)
    ]
    workspace.sync()
    _rot_unseen(workspace, paths[:2])
    events: list[object] = []
    with opened(workspace) as store:
        checked = store.verify(
            level="full", on_found=events.extend, on_progress=lambda one: events.append(one.done)
        )
    rotten = [one for one in checked.findings if one.code == "bit-rot"]
    assert len(rotten) == 2
    assert [event for event in events if event in rotten] == rotten
    assert max(map(events.index, rotten)) < events.index(
        max(one for one in events if isinstance(one, int))
    )


def _rot_unseen(workspace: Any, paths: list[Path]) -> None:
    """Rot that no stat tells: the catalog takes the new stamps for those it recorded."""
    from filestore.fs.stats import PackedFolder, pack_folder, pack_stat

    with sqlite3.connect(workspace.sidecar / "catalog.sqlite") as connection:
        for path in paths:
            rot(path)
            folder = path.parent.name.encode()
            query = "SELECT names, stats FROM folders WHERE path = ?"
            ((names, stats),) = connection.execute(query, (folder,))
            seen = os.lstat(path)
            values = (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_mode)
            entries = PackedFolder(names, stats).entries() | {path.name: pack_stat(values)}
            packed = pack_folder(entries)
            change = "UPDATE folders SET names = ?, stats = ? WHERE path = ?"
            connection.execute(change, (packed.names, packed.stats, folder))
    connection.close()
