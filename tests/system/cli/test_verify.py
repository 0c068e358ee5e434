"""`filestore verify`: what stat cannot see, at two levels, and nothing is changed."""

import sqlite3
from pathlib import Path
from typing import Any

KEYS = {"code", "severity", "path", "detail", "repair", "safe"}


def add_notes(workspace: Any) -> list[Path]:
    """A store with three notes; the paths of their chunk files."""
    for name in ("a.md", "b.md", "c.md"):
        workspace.write(name, f"# {name}\n\nWords of the note {name}.\n")
    workspace("add", "a.md", "b.md", "c.md")
    return [workspace.chunked / workspace.chunks(name)[0] for name in ("a.md", "b.md", "c.md")]


def codes(workspace: Any, level: str) -> list[str]:
    done = workspace.json("verify", "--level", level, code=None)
    assert all(set(finding) == KEYS for finding in done["findings"])
    return [finding["code"] for finding in done["findings"]]


def in_catalog(workspace: Any, statement: str, *values: object) -> None:
    connection = sqlite3.connect(workspace.sidecar / "catalog.sqlite")
    with connection:
        connection.execute(statement, values)
    connection.close()


def test_clean_at_both_levels(either: Any) -> None:
    """A sound store is clean, and both levels say what they looked at and what not."""
    add_notes(either)
    for level in ("fast", "full"):
        done = either.json("verify", "--level", level)
        assert done["clean"] is True
        assert done["level"] == level
        assert done["findings"] == []
        assert done["checked"]
        assert done["not_checked"]
    assert either.json("verify")["level"] == "fast"
    done = either("verify", "--level", "full")
    assert "clean at level full" in done.stdout
    assert "not checked: " in done.stdout


def test_drift_is_among_the_findings(either: Any) -> None:
    """What status shows is found at every level, with severity, repair and whether it is safe."""
    path = add_notes(either)[0]
    path.write_bytes(path.read_bytes() + b"More.\n")
    for level in ("fast", "full"):
        done = either.json("verify", "--level", level, code=1)
        assert done["clean"] is False
        (finding,) = done["findings"]
        assert finding["code"] == "modified"
        assert finding["severity"] == "E"
        assert finding["safe"] is True
        assert either.store / finding["path"] == path


def test_bit_rot(either: Any) -> None:
    """Content that differs under equal stamps is found by full, and sync does not take it up."""
    path = add_notes(either)[0]
    either.rot(path, path.read_bytes().replace(b"Words", b"Wards"))
    assert codes(either, "fast") == []
    done = either.json("verify", "--level", "full", code=1)
    (finding,) = done["findings"]
    assert finding["code"] == "bit-rot"
    assert finding["safe"] is False
    assert either.store / finding["path"] == path
    either.sync()
    assert codes(either, "full") == ["bit-rot"]


def test_a_flipped_byte_in_the_vectors(either: Any) -> None:
    """A FAISS file of the right size with a wrong byte is found by full."""
    add_notes(either)
    (path,) = either.sidecar.glob("vectors-*.faiss")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert codes(either, "fast") == []
    assert "index-damaged" in codes(either, "full")


def test_a_flipped_byte_in_the_full_text(either: Any) -> None:
    """Any file of the full-text index with a wrong byte is found by full."""
    add_notes(either)
    for path in sorted((either.sidecar / "fulltext").rglob("*.store")):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        # Beside and renamed: tantivy may have it mapped, and the system ends who reads what is cut.
        damaged = path.with_suffix(".damaged")
        damaged.write_bytes(data)
        damaged.rename(path)
    assert codes(either, "fast") == []
    assert "fulltext-damaged" in codes(either, "full")


def test_damaged_embedding_rows(either: Any) -> None:
    """An embedding whose bytes changed under SQLite is found by its checksum."""
    add_notes(either)
    path = either.sidecar / "embeddings.sqlite"
    before = path.read_bytes()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(length(vector))")
    connection.close()
    assert path.read_bytes() != before
    assert "embeddings-damaged" in codes(either, "full")


def test_rows_of_the_catalog(either: Any) -> None:
    """A row of the catalog that no longer fits its checksum or its file is found."""
    add_notes(either)
    in_catalog(either, "UPDATE files SET kind = 'summary' WHERE kind = 'chunk'")
    assert "map-mismatch" in codes(either, "full")


def test_names_that_collide(either: Any) -> None:
    """Two names that differ only by case or composition are told, and both stay found."""
    add_notes(either)
    for name in ("Same.md", "same.md", "e\u0301.md", "\u00e9.md"):
        (either.chunked / name).write_text(f"Collision of {name!r}.\n")
    if len(list(either.chunked.glob("?ame.md"))) < 2:
        return
    either.sync(code=1)
    assert codes(either, "fast") == ["name-collision", "name-collision"]
    assert len(either.found("collision")) == 4
    assert either.json("status", code=1)["counts"]["name-collision"] == 2


def test_without_a_catalog(either: Any) -> None:
    """Without a catalog the one finding is that, and what could not be checked is said."""
    add_notes(either)
    (either.sidecar / "catalog.sqlite").unlink()
    done = either.json("verify", "--level", "full", code=1)
    assert [finding["code"] for finding in done["findings"]] == ["catalog-missing"]
    assert "whether each file can be indexed, by its contents" in done["checked"]
    assert any("needs the catalog" in words for words in done["not_checked"])
