"""What the catalog holds of its files, proved from the catalog alone."""

import contextlib
import sqlite3

import pytest

from filestore.catalog import Catalog
from filestore.sidecar.snapshot import Sample
from filestore.verify._rows import Ids, checked, unsound

DAMAGE = {
    "file hash": "UPDATE files SET file_hash = zeroblob(16) WHERE path = :path",
    "text key": "UPDATE files SET text_key = zeroblob(16) WHERE path = :path",
    "path type": "UPDATE files SET path = CAST(path AS TEXT) WHERE path = :path",
    "edited": "UPDATE files SET edited = 1 WHERE path = :path",
    "source": "UPDATE files SET source = 'other.md' WHERE path = :path",
    "last seen text": "UPDATE contents SET data = CAST(data || x'20' AS BLOB) WHERE file = :file",
    "no last seen text": "DELETE FROM contents WHERE file = :file",
    "last seen text type": "UPDATE contents SET data = 7 WHERE file = :file",
    "part number": "UPDATE parts SET part = part + 1 WHERE file = :file",
    "part lost": "DELETE FROM parts WHERE file = :file",
    "vector of another": (
        "UPDATE parts SET vector = (SELECT vector FROM parts WHERE file <> :file)"
        " WHERE file = :file"
    ),
    "key": (
        "UPDATE vectors SET key = zeroblob(32)"
        " WHERE id IN (SELECT vector FROM parts WHERE file = :file)"
    ),
    "key lost": "DELETE FROM vectors WHERE id IN (SELECT vector FROM parts WHERE file = :file)",
}


@pytest.fixture
def catalog_path(workspace):
    """The catalog of a store with three notes."""
    for name in ("a", "b", "c"):
        workspace.write(f"file_index/chunked/{name}.md", f"The note {name}.\n")
    workspace.write("file_index/chunked/q.md", '---\nquestions: ["Why?", "How?"]\n---\nA note.\n')
    workspace("sync")
    return str(workspace.sidecar / "catalog.sqlite")


def damage(path, statement):
    """Change rows of one file behind the catalog's back."""
    connection = sqlite3.connect(path)
    with connection:
        ((file,),) = connection.execute("SELECT id FROM files WHERE path = CAST('b.md' AS BLOB)")
        values = {"path": b"b.md", "file": file}
        used = {name: value for name, value in values.items() if f":{name}" in statement}
        assert connection.execute(statement, used).rowcount >= 1
    connection.close()


def found(path, *, apart=False, sample=Sample()):  # noqa: B008
    """The paths whose rows do not belong together."""
    catalog = Catalog.open(path)
    try:
        with catalog.snapshot(), checked(catalog, path, sample, apart=apart) as judged:
            assert judged.page_problem() == ""
            return [name for name, _ in judged.unsound()]
    finally:
        catalog.close()


@pytest.mark.parametrize("apart", [False, True])
def test_rows_as_written_are_sound(catalog_path, apart):
    """A fresh catalog has nothing to complain of, here or asked in a process of its own."""
    assert found(catalog_path, apart=apart) == []


def test_what_is_kept_of_documents_is_no_damage(new_workspace):
    """In place it is not their bytes: a fault of ours over such a catalog was called damage."""
    made = new_workspace(init=False)
    made.write("b.md", "# B\n\nA note.\n")
    made("init", "--in-place", "--embedder", "builtin")
    path = str(made.folder / ".filestore" / "catalog.sqlite")
    with contextlib.closing(Catalog.open(path)) as catalog:
        assert catalog.problem() == ""
    damage(path, "UPDATE contents SET data = CAST(data || 'x' AS BLOB) WHERE file = :file")
    with contextlib.closing(Catalog.open(path)) as catalog:
        assert "fail their hash" in catalog.problem()


@pytest.mark.parametrize("kind", DAMAGE)
def test_every_kind_of_damage_names_its_file(catalog_path, kind):
    """Whatever part of a file's rows is changed, that file is named and no other."""
    damage(catalog_path, DAMAGE[kind])
    assert found(catalog_path) == ["b.md"]


def test_damage_is_found_by_the_other_process_too(catalog_path):
    """A process of its own does not say clean over a damaged catalog."""
    damage(catalog_path, DAMAGE["last seen text"])
    assert found(catalog_path, apart=True) == ["b.md"]


def test_a_catalog_that_moved_on_is_checked_here(catalog_path):
    """Another generation than ours proves nothing, so the rows of ours are looked at."""
    catalog = Catalog.open(catalog_path)
    with catalog.snapshot():
        damage(catalog_path, "UPDATE meta SET value = value + 1 WHERE key = 'generation' AND :file")
        with checked(catalog, catalog_path, Sample(), apart=True) as judged:
            assert judged.page_problem() == ""
            assert judged.unsound() == []
            assert judged.loose_ends() == []
    catalog.close()


def test_slices_together_check_every_file_once(catalog_path):
    """Damage is found in exactly one slice of several."""
    damage(catalog_path, DAMAGE["source"])
    slices = [found(catalog_path, sample=Sample(number=one, of=3)) for one in (1, 2, 3)]
    assert sorted(map(len, slices)) == [0, 0, 1]


def test_a_sound_row_is_not_named_beside_a_damaged_one(catalog_path):
    """The reason is told with the path."""
    damage(catalog_path, DAMAGE["last seen text"])
    catalog = Catalog.open(catalog_path)
    assert list(unsound(catalog, Ids.of(catalog), Sample())) == [
        ("b.md", "its last seen text is not what the file holds")
    ]
    catalog.close()


LOOSE_ENDS = {
    "passages belong to no file": "INSERT INTO parts SELECT 999, 0, vector FROM parts LIMIT 1",
    "passages have no vector id that is known": "UPDATE parts SET vector = 7 WHERE file = :file",
    "vector ids belong to no passage": "INSERT INTO vectors VALUES (7, zeroblob(32), 1)",
    "vector ids are not those of their keys": "UPDATE vectors SET key = zeroblob(32) WHERE :file",
}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("words", LOOSE_ENDS)
def test_ids_that_lead_nowhere_are_told(catalog_path, words, apart):
    """Whichever end of an id hangs loose is said, by whichever process looked."""
    damage(catalog_path, LOOSE_ENDS[words])
    catalog = Catalog.open(catalog_path)
    with catalog.snapshot(), checked(catalog, catalog_path, Sample(), apart=apart) as judged:
        judged.page_problem()
        judged.unsound()
        assert any(words in detail for detail in judged.loose_ends())
    catalog.close()


@pytest.mark.parametrize("apart", [False, True])
def test_an_index_that_lost_its_pages_is_told(catalog_path, apart):
    """An index that stands on other pages than its own is damage, whoever looks."""
    connection = sqlite3.connect(catalog_path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("CREATE TABLE other AS SELECT vector, file, part FROM parts LIMIT 0")
    connection.execute("CREATE INDEX other_index ON other (vector, file, part)")
    ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'other_index'")
    connection.execute(
        "UPDATE sqlite_master SET rootpage = ? WHERE name = 'parts_by_vector'", (root,)
    )
    connection.execute("DELETE FROM sqlite_master WHERE name IN ('other', 'other_index')")
    connection.close()
    catalog = Catalog.open(catalog_path)
    with catalog.snapshot(), checked(catalog, catalog_path, Sample(), apart=apart) as judged:
        assert judged.page_problem()
    catalog.close()


def test_a_commit_while_a_catalog_is_opened_is_no_damage(workspace, catalog_path):
    """What is held against each other is of one generation, whenever a writer commits."""
    catalog = Catalog.open(catalog_path)
    before = catalog.generation
    commits = []

    def commit_first(statement):
        if "sqlite_sequence" in statement and not commits:
            commits.append(statement)
            workspace.write("file_index/chunked/d.md", "One more note.\n")
            workspace("sync")

    catalog.connection.set_trace_callback(commit_first)
    try:
        catalog.require_sound_memory()
        catalog.connection.set_trace_callback(None)
        assert commits
        assert catalog.generation > before
    finally:
        catalog.close()
