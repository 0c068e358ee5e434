"""What an open catalog makes once, and makes again after a commit, whoever's it was."""

import sqlite3
from contextlib import closing

import pytest

from filestore.catalog import Catalog
from filestore.store import Store


@pytest.fixture
def root(workspace):
    """A store with one note."""
    workspace.write("file_index/chunked/a.md", "A note.\n")
    workspace("sync")
    return workspace.store


def made(catalog):
    """How many times something was made until now."""
    counted = []
    with catalog.snapshot():
        catalog.once("counted", lambda: counted.append(1))
        catalog.once("counted", lambda: counted.append(1))
    return len(counted)


def test_it_is_made_once_until_somebody_commits(root):
    path = str(root / ".sidecar/catalog.sqlite")
    with closing(Catalog.open(path)) as catalog:
        assert [made(catalog), made(catalog)] == [1, 0]
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("UPDATE files SET edited = NOT edited")
        assert [made(catalog), made(catalog)] == [1, 0]
        catalog.connection.execute("UPDATE files SET edited = NOT edited")
        assert [made(catalog), made(catalog)] == [1, 0]


def test_outside_of_a_snapshot_it_is_made_each_time(root):
    counted = []
    with closing(Catalog.open(str(root / ".sidecar/catalog.sqlite"))) as catalog:
        for _ in range(2):
            catalog.once("counted", lambda: counted.append(1))
    assert len(counted) == 2


def test_an_open_store_tells_names_that_another_process_took_in(workspace, root):
    with Store(str(root)) as store:
        assert store.status().drift == {}
        workspace.write("file_index/chunked/aux.md", "A device on Windows.\n")
        workspace("sync", code=1)
        assert store.status().drift["unportable-name"]
        assert store.status().drift["unportable-name"]
        (root / "chunked/aux.md").unlink()
        workspace("sync")
        assert store.status().drift == {}
