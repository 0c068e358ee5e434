"""Sidecars that no crash makes: emptied tables, values out of range, rows that say another's.

A stranger's sidecar, and one that somebody's tool has been at, pass every checksum of SQLite.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from filestore.catalog import (
    CatalogDamagedError,
    CatalogWriter,
    Conflict,
    Deleted,
    FileRow,
    Forgotten,
    _remembered,
)
from filestore.catalog._schema import TABLES as TABLE_STATEMENTS
from filestore.chunks.chunk_file import Child, generate
from filestore.core.hashing import content_hash, origin_hash, source_hash
from filestore.core.paths import ChunkPath
from filestore.store import Store

RUN = """
import json, sys
from filestore.cli import main

_, root, *commands = sys.argv
print(json.dumps([main(["--store", root, *words.split()]) for words in commands]))
"""
CHECKOUT = Path(__file__).resolve().parents[3]
TABLES = [*sorted(_remembered.COUNTED), "contents"]
META = {
    "generation": [-1, 2**53 + 1, 2**62, 1.5, "x", b"\0", None],
    "files": [-1, 2**60, "many"],
    "indexed": [-1, 99, "x"],
    "embeddings": [-1, "x", 2.5],
    "last_file": [-1, 0, 2**60, "x"],
    "rows": ["{}", "[", '{"meta; DROP TABLE files": 1}', 7],
    "index_name": ["../../filestore.toml", "/etc/passwd", "", ".", "a\0b", 7, None],
    "index_size": [-1, "x", 2**60],
    "index_hash": ["", "zz", 7, "A" * 32, None],
    "index_generation": [-1, "x", 2**60],
    "index_description": [
        *("[", "7", 7, "{}", '{"kind": "exact"}', '{"kind": "\\u001b", "vectors": 1}'),
        *('{"kind": "exact", "vectors": 1, "x": 2}', '{"kind": "exact", "vectors": "1"}'),
    ],
    "fingerprint": [7, b"x", None],
    "index_fingerprint": [7, None],
    "metric": [7, None],
    "identity": ["", "\x1b[31m", 7, None],
    "checksum": ["", 7, None],
}


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Laboratory:
    """A store with rows in every table, and a copy of its sidecar."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work" / "file_index"
        self.sidecar = self.root / ".sidecar"
        self.catalog = self.sidecar / "catalog.sqlite"
        self.configuration = str(folder / "configuration")
        self._copy = folder / "copy"
        self._make()
        shutil.copytree(self.sidecar, self._copy)

    def _make(self) -> None:

        self.root.parent.mkdir(parents=True)
        Store.create(str(self.root), layout="tree", embedder="builtin", configuration="")
        for name in ("one.md", "two.md"):
            document = self.root.parent / name
            document.write_text(f"---\ncolour: {name}\n---\n# {name}\n\nWords of {name}.\n")
            with self.open() as store:
                store.add(document)
        notes = self.root / "chunked" / "notes"
        notes.mkdir()
        for number in range(6):
            text = f"---\ntags: [t{number}]\n---\nNote {number}, see [it](n{number - 1}.md).\n"
            (notes / f"n{number}.md").write_text(text)
        (notes / "n0.md").write_text("The first note.\n")
        leaves = self.root / "chunked" / "z"
        leaves.mkdir()
        for name in ("ash", "elm"):
            (leaves / f"{name}.md").write_text(f"Leaves of {name}.\n")
        children = [
            Child(path=ChunkPath(f"z/{name}.md"), hash=source_hash(f"Leaves of {name}.".encode()))
            for name in ("ash", "elm")
        ]
        summary = generate(body="Leaves.\n", kind="summary", level=1, children=children)
        (leaves / "summary1.md").write_bytes(summary)
        self.sync()
        self._remember()
        for number in (4, 5):
            (notes / f"n{number}.md").unlink()
        self.sync()

    def _remember(self) -> None:
        """What only a long history leaves behind."""
        catalog = CatalogWriter.open(str(self.catalog))
        catalog.begin()
        catalog.note_moves([("a.md", "b.md"), ("c.md", "d.md")])
        catalog.note_committed({b"one.md": (1, 2), b"two.md": (1, 2)}, (), is_whole=True)
        for name in ("e.md", "f.md"):
            catalog.put_conflict(Conflict(path=name, base="x", theirs=None, origin=None))
            catalog.note_deleted(b"v", [Deleted(path=name, origin="x", source=None)])
            catalog.keep_generated(name, b"text")
            kept = Forgotten(
                path=name, file_hash=content_hash(b"x"), data=b"x", mtime_ns=1, generation=1
            )
            catalog.remember_forgotten([kept])
        catalog.commit()
        catalog.close()

    def open(self) -> Store:
        """The store."""
        return Store(str(self.root), configuration=self.configuration)

    def sync(self, *, full: bool = False) -> Any:
        """Sync; its report."""
        with self.open() as store:
            return store.sync(full=full)

    def codes(self, level: str) -> set[str]:
        """What is found but for remarks; "status" is a level, too."""
        with self.open() as store:
            seen = store.status() if level == "status" else store.verify(level=level)
        return {finding.code for finding in seen.findings if finding.severity != "I"}

    def restore(self) -> None:
        """Put the untouched sidecar back."""
        shutil.rmtree(self.sidecar)
        shutil.copytree(self._copy, self.sidecar)
        os.chmod(self.sidecar, 0o700)

    def execute(self, *statements: str, values: Any = ()) -> None:
        """Change the catalog behind the store's back."""
        connection = sqlite3.connect(self.catalog, isolation_level=None)
        for statement in statements:
            connection.execute(statement, values)
        connection.close()

    def seal(self) -> None:
        """Put the checksum that a stranger would put."""
        connection = sqlite3.connect(self.catalog, isolation_level=None)
        made = _remembered.checksum(connection)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'checksum'", (made,))
        connection.close()

    def codes_of(self, *commands: str) -> list[int]:
        """Run commands in a process of their own, which must end; the exit code of each."""
        place = {"XDG_CONFIG_HOME": self.configuration, "PYTHONPATH": str(CHECKOUT)}
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(self.root), *commands],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, **place},
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        assert "panicked" not in done.stderr, done.stderr
        codes: list[int] = json.loads(done.stdout.splitlines()[-1])
        return codes

    def assert_mended(self, *, full: bool = False) -> None:
        """A sync embeds nothing and leaves a store that is as it was."""
        assert self.sync(full=full).embedded == 0
        assert self.codes("full") == set()
        again = self.sync()
        assert (again.applied, again.remaining) == ((), ())
        with self.open() as store:
            found = store.search("note", k=9, mode="keyword")
            assert len(found.hits) == 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    """One store for all tests of this module."""
    return Laboratory(tmp_path_factory.mktemp("crafted"))


@pytest.fixture
def laboratory(made: Laboratory) -> Laboratory:
    """The store with its sidecar untouched."""
    made.restore()
    return made


def test_the_untouched_store_has_rows_in_every_table(laboratory: Laboratory) -> None:
    """The tests below take rows out of tables that have some, of a store that is sound."""
    assert laboratory.codes("full") == set()
    connection = sqlite3.connect(laboratory.catalog)
    for table in TABLES:
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] >= 2, table
    connection.close()


@pytest.mark.parametrize("share", ["", "WHERE {key} IN (SELECT {key} FROM {table} LIMIT 1)"])
@pytest.mark.parametrize("table", TABLES)
def test_rows_that_are_gone(laboratory: Laboratory, table: str, share: str) -> None:
    """A table that lost all of its rows, or some, is told at once and made again by a sync."""
    keys = {"parts": "file", "facts": "value", "documents": "record", "deleted": "path"}
    connection = sqlite3.connect(laboratory.catalog)
    first = connection.execute(f"PRAGMA table_info({table})").fetchone()[1]
    connection.close()
    where = share.format(key=keys.get(table, first), table=table)
    laboratory.execute(f"DELETE FROM {table} {where}")
    assert laboratory.codes("status") == {"catalog-damaged"}
    assert laboratory.codes("fast") == {"catalog-damaged"}
    laboratory.assert_mended()


@pytest.mark.parametrize(("key", "value"), [(key, value) for key in META for value in META[key]])
@pytest.mark.parametrize("sealed", [False, True])
def test_a_value_that_was_never_written(
    laboratory: Laboratory, key: str, value: Any, sealed: bool
) -> None:
    """What a commit counts on is refused where it cannot be, whether or not its checksum holds."""
    laboratory.execute(f"UPDATE meta SET value = ? WHERE key = '{key}'", values=(value,))
    if sealed and key != "checksum":
        laboratory.seal()
    assert laboratory.codes("status") == {"catalog-damaged"}
    laboratory.assert_mended()


def test_a_generation_of_the_future_under_a_sound_checksum(laboratory: Laboratory) -> None:
    """A full-text index ahead of its catalog is built again, never believed for good; one behind a
    catalog in which no text changed since has all of them."""
    for number, codes in ((1, {"fulltext-behind"}), (2**53 - 5, set())):
        laboratory.restore()
        laboratory.execute("UPDATE meta SET value = ? WHERE key = 'generation'", values=(number,))
        laboratory.seal()
        assert laboratory.codes("status") == codes
        laboratory.assert_mended(full=True)


@pytest.mark.parametrize("number", [0, 3, 2**62])
def test_a_counter_of_file_ids_that_went_back_or_ahead(laboratory: Laboratory, number: int) -> None:
    """A file id stands for one text for good, so its counter is not believed as it is found."""
    laboratory.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'files'", values=(number,))
    assert laboratory.codes("status") == {"catalog-damaged"}
    laboratory.assert_mended()


def test_a_catalog_from_before_rows_were_counted(laboratory: Laboratory) -> None:
    """A catalog of an earlier version is sound, and counted from its next commit on."""
    laboratory.execute("DELETE FROM meta WHERE key IN ('rows', 'last_file')")
    laboratory.seal()
    assert laboratory.codes("full") == set()
    note = laboratory.root / "chunked" / "notes" / "n0.md"
    note.write_text("Another first note.\n")
    laboratory.sync()
    laboratory.execute("DELETE FROM facts")
    assert laboratory.codes("status") == {"catalog-damaged"}
    note.write_text("The first note.\n")
    laboratory.sync()


EMPTIED = {
    "all": "DELETE FROM meta",
    "but identity": "DELETE FROM meta WHERE key <> 'identity'",
    "but originals": "DELETE FROM meta WHERE key <> 'identity' AND key NOT GLOB 'original:*'",
    "identity": "DELETE FROM meta WHERE key = 'identity'",
}


@pytest.mark.parametrize("how", EMPTIED)
def test_a_catalog_that_remembers_nothing(laboratory: Laboratory, how: str) -> None:
    """Rows without anything remembered of them are not a new catalog, and are made again."""
    laboratory.execute(EMPTIED[how])
    assert laboratory.codes("status") == {"catalog-damaged"}
    assert laboratory.codes("fast") == {"catalog-damaged"}
    laboratory.assert_mended()


@pytest.mark.parametrize("table", TABLES)
def test_a_new_catalog_has_no_row(laboratory: Laboratory, table: str) -> None:
    """One table that holds something is enough to tell that a catalog is not new."""
    others = set(TABLES) - {table}
    laboratory.execute(
        *(f"DELETE FROM {other}" for other in others),
        "DELETE FROM sqlite_sequence",
        "DELETE FROM meta WHERE key <> 'identity'",
    )
    assert laboratory.codes("status") == {"catalog-damaged"}
    laboratory.assert_mended()


def test_a_catalog_that_once_had_files_is_not_new(laboratory: Laboratory) -> None:
    """The counter of file ids outlives the files: the full-text index may still hold some."""
    laboratory.execute(
        *(f"DELETE FROM {table}" for table in TABLES),
        "DELETE FROM meta WHERE key <> 'identity'",
    )
    assert laboratory.codes("status") == {"catalog-damaged"}
    laboratory.assert_mended()


PATHS = {
    "number": "12",
    "text": "'notes/n1.md'",
    "empty": "x''",
    "nul": "x'00'",
    "absolute": "CAST('/etc/passwd' AS BLOB)",
    "out": "CAST('../../../../etc/passwd' AS BLOB)",
    "here": "CAST('./notes/n1.md' AS BLOB)",
    "folder": "CAST('..' AS BLOB)",
    "inside": "CAST('notes/../../../out.md' AS BLOB)",
    "other": "CAST('notes/other.md' AS BLOB)",
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_no_file_was_seen_under(laboratory: Laboratory, path: str) -> None:
    """A row that leads elsewhere is told at every level, and one plain sync mends it."""
    laboratory.execute(
        f"UPDATE files SET path = {PATHS[path]} WHERE path = CAST('notes/n1.md' AS BLOB)"
    )
    assert laboratory.codes("status") == {"catalog-damaged"}
    assert laboratory.codes("fast") == {"catalog-damaged"}
    assert "catalog-damaged" in laboratory.codes("full")
    laboratory.assert_mended()


def test_names_that_no_file_has(laboratory: Laboratory) -> None:
    """The stat cache says what was seen of files; a name of none hides a new file."""
    laboratory.execute("UPDATE folders SET names = replace(names, 'n1.md', 'm1.md')")
    laboratory.execute("UPDATE folders SET names = CAST(names AS BLOB)")
    assert laboratory.codes("status") == {"catalog-damaged"}
    laboratory.assert_mended()


def test_paths_that_changed_places(laboratory: Laboratory) -> None:
    """Two files under each other's name: a search leaves them out, and says what mends it."""
    swap = "UPDATE files SET path = CAST('notes/{}' AS BLOB) WHERE path = CAST('notes/{}' AS BLOB)"
    laboratory.execute(*(swap.format(*two) for two in (("x", "n1.md"), ("n1.md", "n2.md"))))
    laboratory.execute(swap.format("n2.md", "x"))
    with laboratory.open() as store:
        found = store.search("note", k=9, mode="keyword")
    assert found.notes == (
        "2 files are excluded (2 map-mismatch): 'filestore sync --full' repairs the catalog",
    )
    assert "map-mismatch" in laboratory.codes("full")
    laboratory.assert_mended(full=True)


@pytest.mark.parametrize("column", ["kind", "resource", "source", "place", "generation"])
def test_what_a_search_names_as_remedy_mends_it(
    laboratory: Laboratory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    column: str,
) -> None:
    """A value of another type, met only where it is shown, is damage; its remedy is the right one.

    Where nothing that is shown depends on it, nothing is said.
    """
    from filestore.cli import main

    monkeypatch.setenv("XDG_CONFIG_HOME", laboratory.configuration)
    laboratory.execute(f"UPDATE files SET {column} = x'ff' WHERE state = ''")
    words = ["--store", str(laboratory.root), "search", "note", "--mode", "keyword"]
    if main(words):
        told = capsys.readouterr().err
        assert f"try: filestore --store {laboratory.root} sync --full\n" in told
    assert main(["--store", str(laboratory.root), "sync", "--full"]) == 0
    assert main(words) == 0
    laboratory.assert_mended()


SWAPPED = {
    "files": ["path", "state", "file_hash", "text_key", "generation"],
    "contents": ["data"],
    "parts": ["vector"],
    "vectors": ["key"],
    "facts": ["value"],
    "links": ["target"],
    "records": ["data", "source", "resource"],
    "documents": ["hash"],
    "record_facts": ["value"],
}


@pytest.mark.parametrize(("table", "column"), [(t, c) for t, cs in SWAPPED.items() for c in cs])
def test_values_of_two_rows_that_changed_places(
    laboratory: Laboratory, table: str, column: str
) -> None:
    """A row that says what another should is found by a full look, and made again by a sync."""
    connection = sqlite3.connect(laboratory.catalog, isolation_level=None)
    found = connection.execute(f"SELECT * FROM {table} ORDER BY {column}").fetchall()
    names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    at = names.index(column)
    first = found[0]
    second = next((row for row in found if row[at] != first[at]), (*first[:at], b"x", *first[at:]))
    connection.execute(f"DELETE FROM {table}")
    for row in found:
        values = list(row)
        if row in (first, second):
            values[at] = (second if row == first else first)[at]
        connection.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", values)
    connection.close()
    assert laboratory.codes("full") & {"map-mismatch", "catalog-damaged"}
    laboratory.assert_mended(full=True)


def test_a_generated_text_that_is_another(laboratory: Laboratory) -> None:
    """A merge never starts from a text that its own hash does not prove."""
    catalog = CatalogWriter.open(str(laboratory.catalog))
    catalog.begin()
    catalog.keep_generated(origin_hash("right"), b"wrong")
    catalog.keep_generated(origin_hash("sound"), b"sound")
    assert catalog.generated(origin_hash("right")) is None
    assert catalog.generated(origin_hash("sound")) == b"sound"
    catalog.rollback()
    catalog.close()


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT"
CATALOGS = {
    "endless origins": f"CREATE VIEW generated AS {ENDLESS} 'o' || x AS origin, 'b' AS body FROM c",
    "endless values": f"CREATE VIEW meta AS {ENDLESS} 'original:' || x AS key, 'v' AS value FROM c",
    "endless losses": (
        f"CREATE VIEW forgotten AS {ENDLESS} CAST(x AS BLOB) AS path, x'00' AS file_hash,"
        " zeroblob(100000000) AS data, 0 AS mtime_ns, 0 AS generation FROM c"
    ),
    "endless texts": f"CREATE VIEW contents AS {ENDLESS} x AS file, x'00' AS data FROM c",
    "computed texts": (
        "CREATE TABLE generated (origin TEXT PRIMARY KEY,"
        " body BLOB AS (zeroblob(900000000)) VIRTUAL)"
    ),
    "a virtual table": "CREATE VIRTUAL TABLE generated USING fts5(origin, body)",
    "a trigger": (
        "CREATE TRIGGER sqlitextra AFTER INSERT ON files BEGIN"
        " DELETE FROM files; INSERT INTO facts VALUES ('a', 'b', 1); END"
    ),
    "an index that computes": "CREATE INDEX more ON generated (hex(zeroblob(1000000)))",
}
EMBEDDINGS = {
    "endless vectors": (
        f"CREATE VIEW vectors AS {ENDLESS} x AS id, 1 AS model, x'00' AS key, x'00' AS checksum,"
        " x'00' AS vector FROM c"
    ),
    "endless models": (
        f"CREATE VIEW models AS {ENDLESS} x AS id, 'm' || x AS fingerprint, 1 AS dimension,"
        " x'00' AS checksum FROM c"
    ),
    "a trigger": "CREATE TRIGGER more AFTER INSERT ON vectors BEGIN DELETE FROM vectors; END",
    "a vector of any length": (
        "CREATE TABLE vectors (id INTEGER PRIMARY KEY, model INTEGER, key BLOB, checksum BLOB,"
        " vector BLOB AS (zeroblob(id * 900000000)) VIRTUAL)"
    ),
}


def _replace(path: Path, statement: str) -> None:
    """Put something else in the place of a table."""
    connection = sqlite3.connect(path, isolation_level=None)
    words = statement.split()
    name = words[words.index("TABLE" if "TABLE" in words[:3] else words[1]) + 1].strip("(")
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("name", CATALOGS)
def test_a_catalog_that_computes(laboratory: Laboratory, name: str) -> None:
    """Of a catalog that was put aside only stored rows are read: no sync runs on for ever."""
    _replace(laboratory.catalog, CATALOGS[name])
    assert laboratory.codes_of("status", "sync") == [1, 0]
    laboratory.assert_mended()


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings_that_compute(laboratory: Laboratory, name: str) -> None:
    """The same of embeddings: what is computed as it is read is none of ours."""
    _replace(laboratory.sidecar / "embeddings.sqlite", EMBEDDINGS[name])
    assert laboratory.codes_of("verify", "sync") == [1, 0]
    laboratory.assert_mended()


ESCAPES = "\x1b]0;owned\x07\x9b31m"
HOSTILE = {"TEXT": ESCAPES, "BLOB": ESCAPES.encode() + b"\xff", "INTEGER": 2**62}
COMMANDS = (
    ["status"],
    ["verify"],
    ["verify", "--level", "full"],
    ["search", "note words"],
    ["search", "note", "--mode", "keyword", "--where", "tags=t1"],
    ["ls"],
    ["ls", "notes"],
    ["show", "notes/n1.md"],
    ["reconstruct", "one.md"],
    ["similar", "notes/n1.md"],
    ["duplicates", "--above", "0.1"],
    ["links", "notes/n1.md"],
    ["links", "one.md"],
    ["repair", "--plan", "--write-files"],
)


def _columns() -> list[tuple[str, str, str]]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLE_STATEMENTS)
    return [
        (table, column, declared)
        for table in TABLES
        for _, column, declared, *_ in connection.execute(f"PRAGMA table_info({table})")
        if column != "checksum"
    ]


def _plant(laboratory: Laboratory, table: str, column: str, value: object) -> None:
    """Put a value in one row, with the checksum that a stranger would put."""
    connection = sqlite3.connect(laboratory.catalog, isolation_level=None)
    names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    row = dict(zip(names, connection.execute(f"SELECT * FROM {table}").fetchone(), strict=True))
    where = " AND ".join(f"{name} IS ?" for name in names)
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *row.values()))
    if table == "files":
        row[column] = value
        catalog = CatalogWriter(connection)
        planted = [one for one in connection.execute("SELECT * FROM files") if one[0] == row["id"]]
        _, path, *rest = planted[0][:-1]
        rest[9] = bool(rest[9])
        made = FileRow(row["id"], os.fsdecode(path), *rest).checksum()
        catalog.connection.execute("UPDATE files SET checksum = ? WHERE id = ?", (made, row["id"]))
    connection.close()


@pytest.mark.parametrize(("table", "column", "declared"), _columns())
def test_a_value_of_a_stranger(
    laboratory: Laboratory,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: "pytest.CaptureFixture[bytes]",
    table: str,
    column: str,
    declared: str,
) -> None:
    """Whatever a row says, no command fails with a traceback, nor puts it raw on a terminal."""
    from filestore.cli import main

    monkeypatch.setenv("XDG_CONFIG_HOME", laboratory.configuration)
    _plant(laboratory, table, column, HOSTILE[declared])
    for words in COMMANDS:
        code = main(["--store", str(laboratory.root), *words])
        out, err = capfdbinary.readouterr()
        assert code in (0, 1, 3), (words, err)
        assert not set(b"\x1b\x07") & set(out + err), words
        assert b"Traceback" not in err
    assert main(["--store", str(laboratory.root), "sync", "--full"]) == 0
    laboratory.assert_mended()


@pytest.mark.parametrize("data", [b"[1]", b"no record", b'{"kind": 7}', b"\xff"])
@pytest.mark.parametrize("table", ["records", "contents"])
def test_forged_bytes_under_a_sound_checksum(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, table: str, data: bytes
) -> None:
    """Bytes that the catalog kept and no file ever had are read by no command with a traceback."""
    from filestore.cli import main

    monkeypatch.setenv("XDG_CONFIG_HOME", laboratory.configuration)
    name = "one.md/meta.json" if table == "records" else "one.md/chunk1.md"
    (laboratory.root / "chunked" / name).touch()
    connection = sqlite3.connect(laboratory.catalog)
    ((number,),) = connection.execute(
        "SELECT id FROM files WHERE path = CAST(? AS BLOB)", (name,)
    ).fetchall()
    connection.close()
    if table == "records":
        laboratory.execute(
            "UPDATE records SET data = ? WHERE path = CAST('one.md/meta.json' AS BLOB)",
            values=(data,),
        )
    else:
        laboratory.execute(f"UPDATE contents SET data = ? WHERE file = {number}", values=(data,))
    _forge_hash(laboratory, number, data)
    for words in COMMANDS:
        assert main(["--store", str(laboratory.root), *words]) in (0, 1, 3), words
    assert main(["--store", str(laboratory.root), "sync"]) in (0, 1, 3)
    assert main(["--store", str(laboratory.root), "sync", "--full"]) == 0
    laboratory.assert_mended()


def _forge_hash(laboratory: Laboratory, number: int, data: bytes) -> None:
    """Give a row the hash of bytes, and the checksum that goes with it."""
    catalog = CatalogWriter.open(str(laboratory.catalog))
    row = replace(catalog.files_by_id([number])[number], file_hash=content_hash(data))
    catalog.connection.execute(
        "UPDATE files SET file_hash = ?, checksum = ? WHERE id = ?",
        (row.file_hash, row.checksum(), number),
    )
    catalog.close()


@pytest.mark.parametrize("value", ["[7]", '[["b"]]', '[["b", {}]]', '[["b", {"path": 7}]]'])
def test_resolved_conflicts_that_are_none(laboratory: Laboratory, value: str) -> None:
    """What was never written is damage when it is read, whatever checksum it has."""
    laboratory.execute("INSERT OR REPLACE INTO meta VALUES ('resolved', ?)", values=(value,))
    laboratory.seal()
    catalog = CatalogWriter.open(str(laboratory.catalog))
    catalog.begin()
    with pytest.raises(CatalogDamagedError):
        catalog.reopen_conflicts({"b"})
    catalog.rollback()
    catalog.close()


class Fulltext:
    """The full-text index of a stranger: whatever its files are, its stamp agrees with them."""

    def __init__(self, laboratory: Laboratory) -> None:
        self.folder = laboratory.sidecar / "fulltext"
        stamp = json.loads((self.folder / "stamp.json").read_bytes())
        self.part = self.folder / stamp["files"][0][0].partition("/")[0]
        self._stamp = stamp

    def settings(self, **changed: Any) -> None:
        """Change what ``meta.json`` says."""
        path = self.part / "meta.json"
        path.write_text(json.dumps({**json.loads(path.read_bytes()), **changed}))

    def segments(self, **changed: Any) -> None:
        """Change what ``meta.json`` says of every segment."""
        known = json.loads((self.part / "meta.json").read_bytes())["segments"]
        self.settings(segments=[{**segment, **changed} for segment in known])

    def manage(self, *names: str) -> None:
        """List other files for tantivy to delete."""
        path = self.part / ".managed.json"
        path.write_text(json.dumps([*json.loads(path.read_bytes()), *names]))

    def stamp(self, **changed: Any) -> None:
        """Make the stamp agree with the files that are there."""
        files = [
            (
                f"{self.part.name}/{path.name}",
                path.stat().st_size,
                content_hash(path.read_bytes()).hex(),
            )
            for path in sorted(self.part.iterdir())
            if path.is_file() and not path.name.endswith(".lock")
        ]
        made = {**self._stamp, "files": files, **changed}
        (self.folder / "stamp.json").write_text(json.dumps(made))

    def overwrite(self, suffix: str, data: bytes) -> None:
        """Put bytes over the middle of a file."""
        path = next(path for path in self.part.iterdir() if path.name.endswith(suffix))
        whole = bytearray(path.read_bytes())
        middle = len(whole) // 2
        whole[middle : middle + len(data)] = data
        self.replace(suffix, lambda path: path.write_bytes(whole))

    def replace(self, suffix: str, make: Callable[[Path], object]) -> None:
        """Put something else in the place of a file, of the size that the stamp names."""
        path = next(path for path in self.part.iterdir() if path.name.endswith(suffix))
        path.unlink()
        make(path)


def _link_away(fulltext: Fulltext) -> None:
    target = fulltext.folder.parent.parent / "chunked"
    shutil.rmtree(fulltext.folder)
    fulltext.folder.symlink_to(target)


def _link_part_away(fulltext: Fulltext) -> None:
    away = fulltext.folder.parent.parent / "chunked" / "part-of-a-machine"
    shutil.move(fulltext.part, fulltext.folder / "kept")
    fulltext.part.symlink_to(away)


def _lock_folder(fulltext: Fulltext) -> None:
    for name in (".tantivy-meta.lock", ".tantivy-writer.lock"):
        (fulltext.part / name).unlink(missing_ok=True)
        (fulltext.part / name).mkdir()


NESTED = "[" * 100_000
INDEXES: dict[str, Callable[[Fulltext], object]] = {
    "files to delete": lambda it: it.manage("../../../chunked/notes/n1.md", "/etc/hostname"),
    "a list of no names": lambda it: (it.part / ".managed.json").write_text('{"a": 1}'),
    "a list that is garbage": lambda it: (it.part / ".managed.json").write_bytes(b"\xff[{"),
    "nested settings": lambda it: (it.part / "meta.json").write_text(NESTED),
    "large settings": lambda it: (it.part / "meta.json").write_bytes(b" " * 50_000_000 + b"{}"),
    "no settings": lambda it: (it.part / "meta.json").write_text("{}"),
    "billions of documents": lambda it: it.segments(max_doc=4_000_000_000),
    "fewer than none": lambda it: it.segments(deletes={"num_deleted_docs": 9, "opstamp": 1}),
    "a segment elsewhere": lambda it: it.segments(segment_id="../../../chunked/notes/n1"),
    "a segment of no files": lambda it: it.segments(
        segment_id="00000000-0000-0000-0000-000000000000"
    ),
    "no fields": lambda it: it.settings(schema=[]),
    "numbers for words": lambda it: it.settings(
        schema=[{"name": "exact", "type": "u64", "options": {"indexed": True}}]
    ),
    "settings of another kind": lambda it: it.settings(segments=7, schema="x"),
    "numbers without end": lambda it: it.overwrite(".fast", b"\xff" * 8),
    "cut postings": lambda it: it.replace(".idx", lambda path: path.write_bytes(b"")),
    "random terms": lambda it: it.replace(".term", lambda path: path.write_bytes(b"\xff" * 900)),
    "random lengths": lambda it: it.replace(".fieldnorm", lambda path: path.write_bytes(b"x" * 99)),
    "a pipe": lambda it: it.replace(".pos", os.mkfifo),
    "a link": lambda it: it.replace(".store", lambda path: path.symlink_to("/etc/hostname")),
    "a folder": lambda it: it.replace(".fast", lambda path: path.mkdir()),
    "locks that are folders": _lock_folder,
    "a link for the whole": _link_away,
    "a link for a commit": _link_part_away,
}


@pytest.mark.parametrize("name", INDEXES)
def test_a_full_text_index_of_a_stranger(laboratory: Laboratory, name: str) -> None:
    """No full-text index makes a command crash or hang, or touch a file outside of it."""
    chunked = laboratory.root / "chunked"
    mine = chunked / "part-of-a-machine"
    mine.mkdir()
    try:
        (mine / "chunk1.md").write_text("A note on a part of a machine.\n")
        laboratory.sync()
        fulltext = Fulltext(laboratory)
        before = files_below(chunked)
        INDEXES[name](fulltext)
        if fulltext.folder.is_dir() and not fulltext.folder.is_symlink():
            fulltext.stamp()
        own = chunked / "notes" / "n0.md"
        own.write_text("The first note, changed.\n")
        looks = ("search note --mode keyword", "search note", "similar notes/n1.md")
        codes = laboratory.codes_of(*looks, "status", "verify --level full", "sync", "sync --full")
        assert set(codes[:3]) <= {0, 1}
        # Where the index can be read, a search has taken up the edit.
        assert codes[3:] in ([1, 1, 0, 0], [0, 0, 0, 0])
        own.write_text("The first note.\n")
        assert files_below(chunked) == before
        # `sync --full` removed the embedding of a text that was nowhere then.
        assert laboratory.sync().embedded == 1
        assert laboratory.codes("full") == set()
        with laboratory.open() as store:
            found = store.search("note", k=9, mode="keyword")
        assert len(found.hits) == 5
    finally:
        shutil.rmtree(mine)
        laboratory.sync()


def test_a_quarantine_that_is_a_link(laboratory: Laboratory) -> None:
    """What is put aside makes room for itself in our own folder only."""
    chunked = laboratory.root / "chunked"
    names = [f"{number}-note.md" for number in range(1, 7)]
    for name in names:
        (chunked / name).write_text("Another text.\n")
    try:
        (laboratory.sidecar / "quarantine").symlink_to(chunked)
        laboratory.catalog.write_bytes(b"garbage" * 1000)
        laboratory.sync()
        assert {path.name for path in chunked.iterdir()} >= set(names)
        assert not (laboratory.sidecar / "quarantine").is_symlink()
    finally:
        for name in names:
            (chunked / name).unlink()


@pytest.mark.parametrize("make", [lambda path, away: path.symlink_to(away), None])
@pytest.mark.parametrize("name", ["catalog.sqlite", "embeddings.sqlite"])
def test_a_database_that_is_no_file(
    laboratory: Laboratory, tmp_path: Path, name: str, make: Callable[[Path, Path], None] | None
) -> None:
    """Through a link no file elsewhere is written, and a pipe is not waited for."""
    away = tmp_path / "away"
    away.write_bytes(b"")
    path = laboratory.sidecar / name
    path.unlink()
    if make is None:
        os.mkfifo(path)
    else:
        make(path, away)
    assert laboratory.codes_of("verify", "sync") == [1, 0]
    assert away.read_bytes() == b""
    laboratory.assert_mended()


@pytest.mark.parametrize("name", ["catalog.sqlite", "embeddings.sqlite"])
def test_a_table_whose_name_is_no_text(laboratory: Laboratory, name: str) -> None:
    """SQLite quotes such a name in what it says, and Python cannot read that."""
    connection = sqlite3.connect(laboratory.sidecar / name, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_master SET name = CAST(x'61ff62' AS TEXT), sql = 'CREATE TABLE ('"
        " WHERE name = (SELECT max(name) FROM sqlite_master WHERE type = 'table')"
    )
    connection.close()
    assert laboratory.codes_of("verify", "sync") == [1, 0]
    laboratory.assert_mended()
