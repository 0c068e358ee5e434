"""Documents that were read once are kept, and whatever is wrong with the cache costs time alone."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from filestore.sidecar.cutting import DocumentCache, key_of

KEYS = [key_of(bytes([number]) * 16, "markdown/1 .md") for number in range(4)]


def kept(path: Path, *documents: bytes) -> None:
    """A cache with some documents, one after another."""
    with closing(DocumentCache.open(str(path))) as cache:
        for key, data in zip(KEYS, documents, strict=False):
            cache.put({key: data})


def found(path: Path) -> dict[bytes, bytes]:
    """What a reader gets."""
    with closing(DocumentCache.open(str(path))) as cache:
        return cache.get(KEYS)


def test_what_was_put_is_found(tmp_path: Path) -> None:
    """By every later process, each under its own key; the newest counts."""
    path = tmp_path / "documents.sqlite"
    assert found(path) == {}
    kept(path, b"one", b"two")
    kept(path, b"three")
    assert found(path) == {KEYS[0]: b"three", KEYS[1]: b"two"}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"no database at all" * 100, id="text"),
        pytest.param(b"SQLite format 3\0" + b"\xff" * 5000, id="damaged"),
    ],
)
def test_a_damaged_cache_is_made_anew(tmp_path: Path, data: bytes) -> None:
    """Reading finds nothing in it, writing begins again."""
    path = tmp_path / "documents.sqlite"
    path.write_bytes(data)
    assert found(path) == {}
    kept(path, b"one")
    assert found(path) == {KEYS[0]: b"one"}


def test_an_index_that_leads_to_another_document(tmp_path: Path) -> None:
    """A document is found under the key in its own row: a flipped bit serves nobody another one."""
    path = tmp_path / "documents.sqlite"
    kept(path, b"one", b"two", b"three", b"four")
    data = path.read_bytes()
    assert data.count(KEYS[2] + b"\x03") == 1
    path.write_bytes(data.replace(KEYS[2] + b"\x03", KEYS[2] + b"\x02"))
    assert found(path) == {KEYS[0]: b"one", KEYS[1]: b"two", KEYS[3]: b"four"}


def test_a_damaged_page_is_not_kept_for_ever(tmp_path: Path) -> None:
    """What is put after one was met is found by the next: nothing is extracted twice again."""
    path = tmp_path / "documents.sqlite"
    kept(path, b"one")
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * len(data[4096:])
    path.write_bytes(data)
    with closing(DocumentCache.open(str(path))) as cache:
        assert cache.get(KEYS) == {}
        cache.put({KEYS[1]: b"two"})
    assert found(path) == {KEYS[1]: b"two"}
    path.write_bytes(data)
    kept(path, b"three")
    assert found(path) == {KEYS[0]: b"three"}


def test_a_number_where_a_document_was(tmp_path: Path) -> None:
    """A value of another type is no document."""
    path = tmp_path / "documents.sqlite"
    kept(path, b"one", b"two")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE documents SET data = 7 WHERE id = 1")
    assert found(path) == {KEYS[1]: b"two"}


def test_tables_of_a_stranger_are_not_read(tmp_path: Path) -> None:
    """A view that stands where the table is expected is no cache."""
    path = tmp_path / "documents.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE VIEW documents AS SELECT 1 AS id, x'00' AS key, x'00' AS data;"
            "PRAGMA application_id = 1718838373"
        )
    assert found(path) == {}
    kept(path, b"one")
    assert found(path) == {KEYS[0]: b"one"}


@pytest.mark.parametrize("suffix", ["", "-journal", "-wal"])
def test_a_folder_in_its_place(tmp_path: Path, suffix: str) -> None:
    """A folder where the cache or its journal belongs makes way: it is all derived."""
    path = tmp_path / "documents.sqlite"
    (tmp_path / f"documents.sqlite{suffix}" / "deep").mkdir(parents=True)
    kept(path, b"one")
    assert found(path) == {KEYS[0]: b"one"}


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    """What a link points to is neither read nor written, nor removed."""
    other = tmp_path / "other.sqlite"
    kept(other, b"theirs")
    before = other.read_bytes()
    path = tmp_path / "documents.sqlite"
    path.symlink_to(other)
    assert found(path) == {}
    kept(path, b"one")
    assert found(path) == {KEYS[0]: b"one"}
    assert other.read_bytes() == before
    assert not os.path.islink(path)


def test_the_oldest_of_what_is_unused_goes(tmp_path: Path) -> None:
    """What files are stays whatever it takes; of the rest the newest."""
    path = tmp_path / "documents.sqlite"
    kept(path, b"a" * 10, b"b" * 10, b"c" * 10, b"d" * 10)
    with closing(DocumentCache.open(str(path))) as cache:
        cache.drop_unused({KEYS[0]}, 20)
    assert set(found(path)) == {KEYS[0], KEYS[2], KEYS[3]}
