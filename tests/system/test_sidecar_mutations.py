"""Some of the sidecar mutations; `sidecar_mutations.py` tries 20,000 of them, or 200,000."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("sidecar_mutations.py")


@pytest.mark.parametrize("count", [24, pytest.param(80, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    "more", [(), ("--in-place",), ("--fitted",)], ids=["tree", "in-place", "fitted"]
)
def test_damage_is_found_or_harmless_and_mended(
    tmp_path: Path, count: int, more: tuple[str, ...]
) -> None:
    """However a sidecar is damaged, it is detected or does no harm, and a sync mends it."""
    command = [sys.executable, "-W", "ignore", PROGRAM, "--count", f"{count}", "--workers", "2"]
    command += more
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| all | {count} |" in done.stdout


def test_a_text_in_the_catalog_that_is_no_unicode(workspace: Any) -> None:
    """A catalog whose texts are no UTF-8 is damaged, and made again without embedding anything."""
    _damage_catalog(workspace, "UPDATE documents SET hash = CAST(x'73ff5a' AS TEXT)")


def test_a_number_where_a_path_was(workspace: Any) -> None:
    """A value of another type in the catalog is damage, never an error of ours."""
    _damage_catalog(workspace, "UPDATE files SET path = id")


def test_a_stat_cache_with_fewer_stats_than_names(workspace: Any) -> None:
    """A folder of the stat cache that was cut is damage, never an error of ours."""
    _damage_catalog(workspace, "UPDATE folders SET stats = x'00'")


def test_a_record_that_is_no_json(workspace: Any) -> None:
    """Bytes of a record that fail their hash are damage, never an error of ours."""
    _damage_catalog(workspace, "UPDATE records SET data = CAST('{]' AS BLOB)")


def test_a_table_of_another_shape(workspace: Any) -> None:
    """A table that has not the columns it was made with is damage."""
    _damage_catalog(workspace, "ALTER TABLE parts RENAME COLUMN vector TO sector")


def test_a_fact_that_no_record_says(workspace: Any) -> None:
    """What the catalog took from a record, and the record does not say, is found."""
    _damage_catalog(
        workspace,
        "DELETE FROM record_facts",
        "INSERT INTO record_facts VALUES ('colour', 'blue', 'a.md', '../a.md')",
    )


def test_what_a_catalog_remembers_is_checked(workspace: Any) -> None:
    """A value that the catalog remembers and nobody wrote is found by a full look."""
    _damage_catalog(workspace, "UPDATE meta SET value = 'another/1' WHERE key = 'fingerprint'")


def _damage_catalog(workspace: Any, *statements: str) -> None:
    for name in ("a.md", "b.md"):
        workspace.write(name, f"---\ncolour: red\n---\n# {name}\n\nWords of the note {name}.\n")
    workspace("add", "a.md", "b.md")
    connection = sqlite3.connect(workspace.sidecar / "catalog.sqlite", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    done = workspace("verify", "--level", "full", "--json", code=1)
    codes = {finding["code"] for finding in json.loads(done.stdout)["findings"]}
    assert codes & {"catalog-damaged", "map-mismatch"}, codes
    for words in (["status"], ["search", "words"], ["ls"]):
        assert workspace(*words, code=None).code in (0, 1, 3)
    report = workspace.json("sync", "--full")
    assert report["embedded"] == 0
    workspace.assert_settled()
    assert len(workspace.found("words")) == 2


def test_an_old_catalog_beside_a_newer_full_text_index(workspace: Any) -> None:
    """A full-text index ahead of its catalog is built again: its ids mean other files by now."""
    workspace.write("a.md", "First words.\n")
    workspace("add", "a.md")
    old = (workspace.sidecar / "catalog.sqlite").read_bytes()
    workspace.write("b.md", "Second words.\n")
    workspace("add", "b.md")
    (workspace.sidecar / "catalog.sqlite").write_bytes(old)
    workspace.sync()
    workspace.assert_settled()
    assert len(workspace.found("words")) == 2


def test_lost_embeddings_beside_others(workspace: Any) -> None:
    """An embedding that is gone is missed also where there are others that nobody needs."""
    workspace.write("a.md", "First words.\n")
    workspace("add", "a.md")
    workspace.write("a.md", "Other words.\n")
    workspace("add", "a.md")
    path = workspace.sidecar / "embeddings.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    newest = "SELECT max(id) FROM vectors"
    connection.execute(f"UPDATE vectors SET checksum = x'00' WHERE id = ({newest})")
    connection.close()
    report = workspace.json("sync", "--full")
    assert report["embedded"] == 1
    workspace.assert_settled()


@pytest.mark.parametrize("words", [("sync", "--full"), ("repair", "--level", "full", "--yes")])
def test_damaged_embeddings_without_a_catalog(workspace: Any, words: tuple[str, ...]) -> None:
    """Rows that rotted are found without a catalog, and one repair mends them with it."""
    workspace.write("a.md", "First words.\n")
    workspace("add", "a.md")
    workspace.write("a.md", "Other words.\n")
    workspace("add", "a.md")
    connection = sqlite3.connect(workspace.sidecar / "embeddings.sqlite", isolation_level=None)
    connection.execute("UPDATE vectors SET checksum = x'00'")
    connection.close()
    (workspace.sidecar / "catalog.sqlite").unlink()
    done = workspace.json("verify", "--level", "full", code=1)
    codes = {finding["code"] for finding in done["findings"]}
    assert codes == {"catalog-missing", "embeddings-damaged"}
    workspace(*words)
    workspace.assert_settled()


@pytest.mark.parametrize("name", ["catalog.sqlite", "embeddings.sqlite"])
def test_a_file_format_that_never_was(workspace: Any, name: str) -> None:
    """A database whose header names an unknown format is damage, and made again."""
    workspace.write("note.md", "# Note\n\nSome words.\n")
    workspace("add", "note.md")
    path = workspace.sidecar / name
    data = bytearray(path.read_bytes())
    data[44:48] = (200).to_bytes(4, "big")
    path.write_bytes(data)
    codes = {one["code"] for one in workspace.json("verify", "--level", "full", code=1)["findings"]}
    assert codes & {"catalog-damaged", "embeddings-damaged"}
    workspace("sync", "--full")
    workspace.assert_settled()
