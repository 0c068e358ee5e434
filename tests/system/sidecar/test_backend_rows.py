"""Rows of a real PostgreSQL behind a store's back: what is lost, wrong or a stranger's is found.

Nothing is believed because it is there: verification compares ids, content hashes and digests, and
transfers no vector; what it names is mended from the embeddings, row by row.
"""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore import Store
from filestore.config.settings import Backend
from tests.postgres_server import PASSWORD, Database, new_database

NOTES: Final = 24
WORDS: Final = ("harbour", "lantern", "orchard", "granite", "violin", "glacier", "saddle")
TABLE: Final = "filestore_vectors"
TAGS: Final = ("a", "b", "ä ö", "it's", 'x"y', "100%", "_")


@pytest.fixture
def knowledge(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database of this test's own."""
    server = request.getfixturevalue("postgres_server")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    name = re.sub(r"\W", "_", request.node.name)[:50]
    return new_database(server, f"{name}_{id(monkeypatch)}")


def options(database: Database, *more: str) -> tuple[str, ...]:
    dsn = f"postgresql://postgres@127.0.0.1:{database.server.port}/{database.name}"
    return ("backend", "set", "pgvector", f"dsn={dsn}", *more, "--yes")


@pytest.fixture
def store(workspace: Any, knowledge: Database) -> Any:
    """Some notes, whose vectors are in PostgreSQL."""
    for number in range(NOTES):
        tags = ", ".join(repr(TAGS[place]) for place in {number % 7, number * 3 % 7})
        head = f"---\ntags: [{tags}]\nrating: {number % 4}\n---\n"
        head = head.replace('"', "").replace("x\\y", "xy")
        words = f"{WORDS[number % 7]} {WORDS[number * 2 % 7]} {number}"
        workspace.write(f"file_index/chunked/note{number}.md", f"{head}The {words}.\n")
    workspace("sync")
    workspace(*options(knowledge))
    return workspace


def found(store: Any, level: str = "full") -> dict[str, list[str]]:
    done = store.json("verify", "--level", level, code=None)
    codes: dict[str, list[str]] = {}
    for one in done["findings"]:
        codes.setdefault(one["code"], []).append(one["detail"])
    return codes


def written(database: Database, action: Any) -> list[str]:
    """The statements that changed rows while something was done."""
    before = len(database.server.log)
    action()
    log = database.server.log[before:]
    return [line for line in log.splitlines() if TABLE in line and "statement" in line]


def test_rows_that_went_are_named_and_sent_again(store: Any, knowledge: Database) -> None:
    """Half of them deleted by a stranger: each is told, search says what it lacks only then."""
    knowledge.run(f"DELETE FROM {TABLE} WHERE id IN (SELECT id FROM {TABLE} ORDER BY id LIMIT 12)")
    told = found(store)
    assert set(told) == {"vector-missing"}
    assert "12 vectors" in told["vector-missing"][0]
    done = store.json("sync", "--full", code=None)
    assert done["embedded"] == 0
    assert knowledge.run(f"SELECT count(*) FROM {TABLE}") == [(NOTES,)]
    assert found(store) == {}


def test_rows_of_strangers_go_and_are_never_hits(store: Any, knowledge: Database) -> None:
    """A row that belongs to no text is no answer, is named, and is deleted by a repair."""
    knowledge.run(
        f"INSERT INTO {TABLE} SELECT id + 1, 'mine', 'x', 'a text of mine', metadata, embedding"
        f" FROM {TABLE}"
    )
    with Store.open(store.store) as opened:
        hits = opened.search("harbour lantern", mode="vector", k=30, without=["cut"]).hits
    assert len({hit.path for hit in hits}) == len(hits) == NOTES
    assert "mine" not in str(hits)
    assert set(found(store)) == {"vector-orphan"}
    store("repair", "--level", "full", "--yes", code=None)
    assert knowledge.run(f"SELECT count(*) FROM {TABLE}") == [(NOTES,)]
    assert found(store) == {}


def test_vectors_that_changed_there_are_found_by_digest(store: Any, knowledge: Database) -> None:
    """One row gets another's vector: the row is named with its file, and it alone is sent."""
    ((one,), (other,)) = knowledge.run(f"SELECT id FROM {TABLE} ORDER BY id LIMIT 2")
    knowledge.run(
        f"UPDATE {TABLE} SET embedding = (SELECT embedding FROM {TABLE} WHERE id = %s)"
        " WHERE id = %s",
        *(other, one),
    )
    assert set(found(store)) == {"vector-mismatch"}
    store("sync", "--full", code=None)
    assert found(store) == {}


def test_what_stands_beside_a_vector_is_compared_too(store: Any, knowledge: Database) -> None:
    """Metadata that filters ask: a row that claims another content is named and mended."""
    knowledge.run(
        f"UPDATE {TABLE} SET content_hash = 'of something else', metadata = '{{}}'"
        f" WHERE id = (SELECT min(id) FROM {TABLE})"
    )
    assert set(found(store)) == {"vector-mismatch"}
    store("sync", "--full", code=None)
    assert found(store) == {}
    assert knowledge.run(f"SELECT count(*) FROM {TABLE} WHERE metadata = '{{}}'") == [(0,)]


def test_a_table_that_is_gone_is_told_and_made_again(store: Any, knowledge: Database) -> None:
    """Search answers by keyword meanwhile, and says so."""
    knowledge.run(f"DROP TABLE {TABLE}")
    notes = " ".join(store.json("search", "harbour", code=None)["notes"])
    assert "keyword only" in notes
    assert set(found(store)) <= {"index-lost", "index-away"}
    store("sync", "--full", code=None)
    assert found(store) == {}


def test_an_older_backup_is_not_answered_from(store: Any, knowledge: Database) -> None:
    """The stamp tells it: vectors and metadata of yesterday are no answer of today."""
    knowledge.run(f"CREATE TABLE backup AS SELECT * FROM {TABLE}")
    stamps = knowledge.run("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    (stamp,) = {name for (name,) in stamps} - {TABLE, "backup"}
    knowledge.run(f"CREATE TABLE old_stamp AS SELECT * FROM {stamp}")
    store.write("file_index/chunked/note0.md", "The marble of the quarry.\n")
    store("sync")
    knowledge.run(f"DELETE FROM {TABLE}")
    knowledge.run(f"INSERT INTO {TABLE} SELECT * FROM backup")
    knowledge.run(f"DELETE FROM {stamp}")
    knowledge.run(f"INSERT INTO {stamp} SELECT * FROM old_stamp")
    done = store.json("search", "marble quarry")
    assert "older" in " ".join(done["notes"])
    assert done["hits"][0]["path"] == "chunked/note0.md"
    store("sync", "--full", code=None)
    assert found(store) == {}
    assert store.json("search", "marble quarry", "--mode", "vector")["mode"] == "vector"


def test_ten_edits_write_ten_rows(store: Any, knowledge: Database) -> None:
    """As the server itself counts them: ten new texts in, the ten that went out."""
    before = knowledge.run(
        "SELECT sum(n_tup_ins + n_tup_upd), sum(n_tup_del) FROM pg_stat_user_tables"
    )
    assert before
    for number in range(10):
        store.write(f"file_index/chunked/note{number}.md", f"An edited text {number}.\n")
    rows = set(knowledge.run(f"SELECT id, content_hash, xmin::text FROM {TABLE}"))
    store("sync", code=None)
    after = set(knowledge.run(f"SELECT id, content_hash, xmin::text FROM {TABLE}"))
    assert (len(after - rows), len(rows - after)) == (10, 10)
    again = set(knowledge.run(f"SELECT id, content_hash, xmin::text FROM {TABLE}"))
    store("sync", code=None)
    assert again == after


def test_how_it_is_asked_sends_nothing(store: Any, knowledge: Database) -> None:
    """Another time limit in the settings is no other place."""
    path = store.store / "filestore.toml"
    path.write_text(path.read_text().rstrip() + "\ntimeout_s = 7\n")
    assert store.json("backend", "show")["waiting"] == 0
    assert "sent" not in " ".join(store.json("search", "harbour")["notes"])
    assert found(store) == {}


def test_only_what_the_whitelist_names_leaves(workspace: Any, knowledge: Database) -> None:
    """Other metadata is not in the table, and a filter by it is answered all the same."""
    note = "---\ntags: [red]\nsalary: '123'\n---\nThe harbour.\n"
    workspace.write("file_index/chunked/a.md", note)
    workspace.write("file_index/chunked/b.md", note.replace("123", "456"))
    workspace("sync")
    workspace(*options(knowledge, "metadata_whitelist=tags,path"))
    (row, _) = knowledge.run(f"SELECT metadata::text FROM {TABLE} ORDER BY id LIMIT 2") * 2
    assert "red" in row[0]
    assert "salary" not in row[0]
    for salary, path in (("123", "a.md"), ("456", "b.md")):
        done = workspace.json(
            *("search", "harbour", "--mode", "vector", "--where", f"salary={salary}")
        )
        assert [hit["path"] for hit in done["hits"]] == [f"chunked/{path}"]
        assert done["mode"] == "vector"


def test_another_whitelist_has_everything_sent_again(workspace: Any, knowledge: Database) -> None:
    """What may no longer be there goes, and what came to be allowed is there to be asked."""
    for number in range(3):
        note = f"---\ntags: [red]\nsalary: '{number}'\n---\nThe harbour {number}.\n"
        workspace.write(f"file_index/chunked/{number}.md", note)
    workspace("sync")
    for names, count in (("", 3), ("tags", 0), ("tags,salary", 3)):
        chosen = (f"metadata_whitelist={names}",) if names else ()
        done = workspace.json(*options(knowledge, *chosen))
        assert (done["sent"], done["kept"], done["embedded"]) == (3, 0, 0)
        assert knowledge.run(f"SELECT count(*) FROM {TABLE} WHERE metadata::text ~ 'salary'") == [
            (count,)
        ]
        asked = ("search", "harbour", "--mode", "vector", "--where", "salary=1")
        assert [hit["path"] for hit in workspace.json(*asked)["hits"]] == ["chunked/1.md"]
        assert found(workspace) == {}


def test_filters_give_the_same_whoever_applies_them(
    store: Any, knowledge: Database, tmp_path: Path
) -> None:
    """Random filters over tags, numbers and kinds: what the server tells is what we tell."""
    (settings_file := store.store / "filestore.toml").read_text()
    pushed = Store.open(store.store)
    plain = Store.open(store.store)
    plain._parts.settings = replace(plain.settings, backend=Backend())
    pairs = st.lists(
        st.one_of(
            st.tuples(st.just("tags"), st.sampled_from([*TAGS, "A", "#a", "none"])),
            st.tuples(st.just("rating"), st.integers(0, 4)),
            st.tuples(st.just("kind"), st.sampled_from(["chunk", "summary"])),
        ),
        max_size=3,
    )

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(pairs, st.sampled_from(["", "chunk"]), st.sampled_from(WORDS), st.integers(1, 30))
    def same(where: list[tuple[str, Any]], kind: str, word: str, k: int) -> None:
        wanted: dict[str, list[Any]] = {}
        for key, value in where:
            wanted.setdefault(key, []).append(value)
        asked: Any = {"k": k, "mode": "vector", "where": wanted, "kind": kind or ()}
        one, other = pushed.search(word, **asked), plain.search(word, **asked)
        assert one.mode == other.mode == "vector"
        shown = [[(hit.path, round(hit.score, 4)) for hit in each.hits] for each in (one, other)]
        assert shown[0] == shown[1]

    try:
        same()
    finally:
        pushed.close()
        plain.close()
    assert settings_file.exists()


def test_without_its_package_the_store_works_by_keyword(store: Any, without_packages: Any) -> None:
    """What is missing is said everywhere, and nothing that needs no backend fails."""
    without_packages("psycopg")
    assert "psycopg" in " ".join(store.json("search", "harbour")["notes"])
    shown = store.json("backend", code=1)
    assert (shown["address"], shown["kind"]) == ("", "pgvector")
    assert "pip install" in shown["problem"]
    assert set(found(store)) == {"index-away"}
    store("status")
    store("sync")
