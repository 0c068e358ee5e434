"""What a catalog knew and the tree lacks is still missing after the catalog was made again.

Outside of git nothing else knows of it: a catalog of an earlier version, or one that is damaged, is
put aside with the only copy of those files.
"""

import shutil
import sqlite3
from collections.abc import Callable
from typing import Any, Final

import pytest

from filestore.catalog import decode_path
from filestore.core.hashing import content_hash


def run_in(workspace: Any, *statements: str) -> list[Any]:
    connection = sqlite3.connect(workspace.sidecar / "catalog.sqlite", isolation_level=None)
    try:
        return [connection.execute(statement).fetchall() for statement in statements][-1]
    finally:
        connection.close()


def make_second_schema(workspace: Any) -> None:
    """As the version before wrote it: no place, another checksum, nothing remembered of rows."""
    connection = sqlite3.connect(workspace.sidecar / "catalog.sqlite", isolation_level=None)
    connection.execute("ALTER TABLE files DROP COLUMN place")
    for row in connection.execute("SELECT * FROM files").fetchall():
        number, path, *rest, edited, generation, _ = row
        values = (number, decode_path(path), *rest, bool(edited), generation)
        made = content_hash(repr(values).encode("utf-8", "surrogatepass"))
        connection.execute("UPDATE files SET checksum = ? WHERE id = ?", (made, number))
    connection.execute("DELETE FROM meta WHERE key IN ('checksum', 'rows', 'last_file', 'let_go')")
    connection.execute("PRAGMA user_version = 2")
    connection.close()


def damage_memory(workspace: Any) -> None:
    run_in(workspace, "UPDATE meta SET value = 7 WHERE key = 'generation'")


def lose_rows(workspace: Any) -> None:
    run_in(workspace, "DELETE FROM parts")


CATALOGS: Final[dict[str, Callable[[Any], None]]] = {
    "outdated": make_second_schema,
    "damaged": damage_memory,
    "without rows": lose_rows,
}


def empty(workspace: Any) -> None:
    for path in list(workspace.chunked.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def filled(either: Any) -> Any:
    """Three resources and a note, outside of git."""
    shutil.rmtree(either.folder / ".git", ignore_errors=True)
    for name in ("one.md", "two.md", "three.md"):
        either.write(name, f"# {name}\n\nWords of {name}.\n")
        either("add", name)
    (either.chunked / "own.md").write_text("Words of a person.\n")
    either.sync()
    return either


@pytest.mark.parametrize("catalog", CATALOGS)
def test_an_emptied_tree_is_told_and_comes_back(filled: Any, catalog: str) -> None:
    """Sync refuses, status and verify say so, and a repair restores every file and record."""
    truth = filled.truth()
    CATALOGS[catalog](filled)
    empty(filled)
    for _ in range(2):
        remaining = filled.json("sync", code=4)["remaining"]
        assert [one["code"] for one in remaining] == ["mass-missing"]
        assert filled.drift() == {"mass-missing": ["chunked"]}
    found = filled.json("verify", "--level", "full", code=1)["findings"]
    assert [one["code"] for one in found] == ["mass-missing"]
    filled.json("repair", "--write-files", "--yes")
    assert filled.truth() == truth
    filled.assert_settled()
    assert filled.found("person") == ["own.md"]


@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_repair_alone_brings_it_back(filled: Any, catalog: str) -> None:
    """The damaged catalog and what went with it are mended by one command."""
    truth = filled.truth()
    CATALOGS[catalog](filled)
    empty(filled)
    filled("repair", "--write-files", "--yes", code=None)
    filled("repair", "--write-files", "--yes", code=None)
    assert filled.truth() == truth
    filled.assert_settled()


@pytest.mark.parametrize("catalog", CATALOGS)
def test_one_file_is_missing_once_and_forgotten(filled: Any, catalog: str) -> None:
    """As with a sound catalog, a sync says that a single file is gone, and keeps its bytes."""
    CATALOGS[catalog](filled)
    (filled.chunked / "own.md").unlink()
    applied = filled.sync()["applied"]
    assert [one["path"] for one in applied if one["code"] == "missing"] == ["chunked/own.md"]
    filled.assert_settled()
    kept = dict(run_in(filled, "SELECT path, data FROM forgotten"))
    assert kept == {b"own.md": b"Words of a person.\n"}


@pytest.mark.parametrize("catalog", CATALOGS)
def test_what_was_forgotten_before_is_no_loss(filled: Any, catalog: str) -> None:
    """Files that a person let go are not asked for again, one of them nor all."""
    (filled.chunked / "own.md").unlink()
    filled.sync()
    CATALOGS[catalog](filled)
    applied = filled.sync()["applied"]
    assert "missing" not in {one["code"] for one in applied}
    empty(filled)
    filled.json("sync", "--forget-missing")
    CATALOGS[catalog](filled)
    filled.sync()
    filled.assert_settled()


@pytest.mark.parametrize("catalog", CATALOGS)
def test_what_was_forgotten_is_no_loss_of_git(filled: Any, catalog: str) -> None:
    """A file that the catalog had let go is not asked for because HEAD still has it."""
    filled.git("init", "-q")
    filled.git("add", "--all")
    filled.git("commit", "-qm", "all")
    (filled.chunked / "own.md").unlink()
    filled.sync()
    CATALOGS[catalog](filled)
    applied = filled.sync()["applied"]
    assert "missing" not in {one["code"] for one in applied}
    filled.assert_settled()


@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_file_that_was_moved_is_no_loss(filled: Any, catalog: str) -> None:
    """The same bytes under another name are the same file."""
    CATALOGS[catalog](filled)
    (filled.chunked / "own.md").rename(filled.chunked / "mine.md")
    applied = filled.sync()["applied"]
    assert "missing" not in {one["code"] for one in applied}
    filled.assert_settled()


def test_a_row_that_proves_nothing_is_no_loss(filled: Any) -> None:
    """A file that a damaged row made up is never asked for."""
    run_in(filled, "UPDATE files SET path = CAST('made/up.md' AS BLOB) WHERE path = 'own.md'")
    run_in(
        filled,
        "UPDATE files SET path = CAST('made/up.md' AS BLOB) WHERE kind = 'chunk'"
        " AND id = (SELECT max(id) FROM files)",
    )
    damage_memory(filled)
    applied = filled.sync()["applied"]
    assert "missing" not in {one["code"] for one in applied}
    filled.assert_settled()


def test_an_old_catalog_is_believed_once(filled: Any) -> None:
    """What was put aside long ago says nothing of a catalog that somebody deletes later."""
    damage_memory(filled)
    filled.sync()
    filled("rm", "two.md")
    (filled.sidecar / "catalog.sqlite").unlink()
    applied = filled.sync()["applied"]
    assert "missing" not in {one["code"] for one in applied}
    filled.assert_settled()


def test_git_and_the_old_catalog_together(filled: Any) -> None:
    """Of a file whose row is damaged git tells, of one that was never committed the catalog."""
    truth = filled.truth()
    filled.git("init", "-q")
    filled.git("add", "--all")
    filled.git("reset", "-q", "--", "file_index/chunked/own.md")
    filled.git("commit", "-qm", "all")
    run_in(filled, "UPDATE files SET detail = 'x' WHERE state = 'record'")
    damage_memory(filled)
    empty(filled)
    filled.sync(code=4)
    assert filled.drift() == {"mass-missing": ["chunked"]}
    filled.json("repair", "--write-files", "--yes")
    assert filled.truth() == truth
