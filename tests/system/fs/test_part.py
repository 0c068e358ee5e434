"""Parts of a sidecar that others hold by another name, too."""

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from filestore.fs import part
from filestore.fs.database import connect


def test_a_database_with_a_second_name_is_read_and_not_written(tmp_path: Path) -> None:
    """A copy made of hard links answers; a write would change the other one."""
    path = tmp_path / "catalog.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE t(v)")
    os.link(path, tmp_path / "copy")
    with contextlib.closing(connect(str(path), "mode=ro&immutable=1")) as read:
        assert read.execute("SELECT count(*) FROM t").fetchone() == (0,)
    with pytest.raises(part.NotAFileError, match="a second name"):
        connect(str(path), "mode=rw")


def test_a_folder_on_another_device_is_a_mount_only_if_the_system_says_so(tmp_path: Path) -> None:
    """Nothing is mounted below an ordinary folder, and below the root of all something is."""
    part.check_mounts(str(tmp_path))
    if os.path.exists("/proc/self/mountinfo"):
        with pytest.raises(part.UnsafePartError, match="is a mount point in /, expected"):
            part.check_mounts("/")
