"""The backend pgvector against a real PostgreSQL: what servers, strangers and networks do."""

import os
import signal
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from itertools import count
from typing import Any, Final

import numpy as np
import pytest
from msgspec.structs import replace

from filestore.core.errors import FilestoreError
from filestore.index import open_backend
from filestore.index.backend import (
    BackendChoice,
    BackendForeign,
    BackendMissing,
    BackendSettingsWrong,
    BackendUnreachable,
    BackendUnusable,
    EmbedConfig,
    IndexBackend,
    Item,
    WrongDimension,
    digest,
)
from tests.advice import advised, all_words
from tests.postgres_server import PASSWORD, Database, Server, new_database, new_server
from tests.system.index.cutting_proxy import CuttingProxy
from tests.vectors import clustered_rows, unit_rows

EMBED: Final = EmbedConfig(fingerprint="a model/1", dimension=24)
QUERY: Final = unit_rows(1, seed=7)[0]
NUMBERS: Final = count()
SQL_TRICKS: Final = (
    'x"; DROP TABLE filestore_vectors; --',
    "x'; DROP TABLE filestore_vectors; --",
    "x; SELECT pg_sleep(9)",
    "public.x",
    "../x",
    "%s",
    "{}",
    "x\0y",
    "x\u202ey",
    " x",
    "1x",
    "x" * 51,
)


@pytest.fixture
def table() -> str:
    """A name that nobody else uses in this database."""
    return f"s{next(NUMBERS)}"


@pytest.fixture
def killable(postgres_server: Server) -> Iterator[Database]:
    """A database on a server of this test's own."""
    server = new_server(postgres_server.folder.parent, f"own_{os.getpid()}_{next(NUMBERS)}")
    try:
        yield new_database(server, "filestore")
    finally:
        server.stop()


def backend_at(dsn: str, **options: object) -> IndexBackend:
    choice = BackendChoice(
        kind="pgvector", options={"dsn": dsn, **options}, folder="/nowhere", environment={}
    )
    return open_backend(choice)


def opened(dsn: str, **options: object) -> IndexBackend:
    backend = backend_at(dsn, **options)
    backend.load()
    backend.set_embed_config(EMBED)
    return backend


def items(many: int, *, first: int = 1, seed: int = 0, **more: Any) -> list[Item]:
    return [
        Item(id=key, vector=row, doc_id=str(key), content_hash=f"h{key}", **more)
        for key, row in enumerate(unit_rows(many, seed), start=first)
    ]


def filled(dsn: str, many: int = 10, **options: object) -> list[Item]:
    """Items that are held, saved as generation 1."""
    some = items(many)
    with opened(dsn, **options) as backend:
        backend.upsert(some)
        backend.save(owner="me", generation=1)
    return some


def assert_silent(error: BaseException) -> None:
    """Nothing that anybody could print of an error holds the password, and no cause is left."""
    shown = "".join(traceback.format_exception(error)) + repr(error) + str(error.args)
    for part in ("message", "remedy", "detail"):
        shown += getattr(error, part, "")
    assert PASSWORD not in shown
    assert "se\\'cr3t" not in shown
    assert error.__context__ is None
    assert error.__cause__ is None


@contextmanager
def refused(kind: type[FilestoreError], words: str, remedy: str = "") -> Iterator[None]:
    """An error of a kind that says something, what to do, and no password."""
    with pytest.raises(kind, match=words) as caught:
        yield
    assert remedy in all_words(caught.value)
    assert advised(caught.value)
    assert_silent(caught.value)


@contextmanager
def locked(database: Database, table: str) -> Iterator[None]:
    """Somebody has the whole table to himself."""
    with closing(database.server.connect(database.name)) as stranger:
        stranger.execute("BEGIN")
        stranger.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


def waiting_pid(database: Database, thread: threading.Thread) -> int:
    """The server's process behind the statement of a thread that waits for a lock, once it does."""
    while True:
        assert thread.is_alive()
        rows = database.run(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'filestore'"
            " AND wait_event_type = 'Lock'"
        )
        if rows:
            return int(rows[0][0])


def in_thread(action: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """A thread that does it, and what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except FilestoreError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def test_a_killed_server_is_an_error_and_then_is_back(killable: Database) -> None:
    """Killed in the middle of a query: said at once; started again, the same backend answers."""
    dsn = killable.dsn
    filled(dsn)
    with opened(dsn) as backend:
        with locked(killable, "filestore_vectors"):
            thread, raised = in_thread(lambda: backend.query(QUERY, top_k=3))
            waiting_pid(killable, thread)
            killable.server.kill()
            thread.join()
        (error,) = raised
        assert isinstance(error, BackendUnreachable)
        assert isinstance(error, ConnectionError)
        assert f"host=127.0.0.1 port={killable.server.port} dbname=filestore" in str(error)
        assert_silent(error)
        for _ in range(2):
            with refused(BackendUnreachable, "does not answer", "start the server"):
                backend.query(QUERY, top_k=3)
        killable.server.start()
        assert len(backend.query(QUERY, top_k=3)) == 3


def test_a_push_that_a_kill_cuts_leaves_what_was(killable: Database) -> None:
    """Nothing of it is there afterwards, it cannot be finished by accident, and can be repeated."""
    dsn = killable.dsn
    filled(dsn, 5)
    with opened(dsn) as backend:
        backend.delete([1])
        backend.upsert(items(3, first=20))
        killable.server.kill()
        with refused(BackendUnreachable, "broke the connection"):
            backend.upsert(items(1, first=30))
        killable.server.start()
        for attempt in (
            lambda: backend.upsert(items(1, first=40)),
            lambda: backend.delete([2]),
            lambda: backend.save(owner="me", generation=2),
        ):
            with refused(BackendUnusable, "changes before this one"):
                attempt()
        backend.load()
        assert sorted(backend.digests()) == [1, 2, 3, 4, 5]
        assert backend.stamp().generation == 1
        backend.delete([1])
        backend.upsert(items(3, first=20))
        backend.save(owner="me", generation=2)
        assert sorted(backend.digests()) == [2, 3, 4, 5, 20, 21, 22]


def test_a_server_that_hangs_is_not_waited_for(killable: Database) -> None:
    """It keeps the connection and says nothing, not even that it is late: the limit is ours."""
    dsn = killable.dsn
    filled(dsn)
    with opened(dsn, timeout_s=2) as backend:
        with locked(killable, "filestore_vectors"):
            thread, raised = in_thread(lambda: backend.query(QUERY, top_k=3))
            pid = waiting_pid(killable, thread)
            os.kill(pid, signal.SIGSTOP)
            thread.join()
        (error,) = raised
        assert isinstance(error, BackendUnreachable)
        assert "within 2 s" in str(error)
        assert_silent(error)
        os.kill(pid, signal.SIGCONT)
        assert len(backend.query(QUERY, top_k=3)) == 3


def test_a_lock_is_not_waited_for(database: Database, table: str) -> None:
    """Neither by a query nor by a push; afterwards all is well."""
    filled(database.dsn, table=table)
    with opened(database.dsn, table=table, timeout_s=2) as backend:
        with locked(database, table), refused(BackendUnreachable, "locked by another session"):
            backend.query(QUERY, top_k=3)
        with (
            locked(database, f"{table}_stamp"),
            refused(BackendUnreachable, "locked by another session"),
        ):
            backend.delete([1])
        assert len(backend.query(QUERY)) == 10


def test_a_slow_statement_is_ended(database: Database, table: str) -> None:
    """A server that works on and on is told to stop."""
    filled(database.dsn, table=table)
    database.run(
        f"ALTER TABLE {table} RENAME TO {table}_rows;"
        f"CREATE VIEW {table} AS SELECT r.* FROM {table}_rows r, LATERAL"
        " (SELECT pg_sleep(0.5 + r.id * 0)) AS slow"
    )
    with (
        opened(database.dsn, table=table, timeout_s=2) as backend,
        refused(BackendUnreachable, "did not answer within 2 s", "timeout_s"),
    ):
        backend.query(QUERY, top_k=3)


def test_nobody_answers() -> None:
    """A closed port, and one where nobody ever says anything, are named without the password."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        dsn = f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/db"
        address = f"host=127.0.0.1 port={port} dbname=db user=me, table public.filestore_vectors"
        with refused(BackendUnreachable, address):
            backend_at(dsn, timeout_s=2).load()
    with refused(BackendUnreachable, "does not answer", "--mode keyword"):
        backend_at(dsn).load()


def test_a_wrong_password_is_not_shown(postgres_server: Server) -> None:
    """The hint says where one is kept, as DSN in words and as URL."""
    for dsn in (
        postgres_server.dsn(password=f"{PASSWORD}wrong"),
        f"postgresql://postgres:{PASSWORD}wrong@127.0.0.1:{postgres_server.port}/postgres",
    ):
        backend = backend_at(dsn)
        with refused(BackendUnreachable, "refuses the login", "PGPASSWORD"):
            backend.load()
        assert PASSWORD not in repr(backend) + backend.address()


def test_a_password_of_the_environment_is_used_and_not_shown(database: Database) -> None:
    """Where the DSN, which is committed with the settings, has none."""
    dsn = database.server.dsn(database.name, password="")
    for password, words in ((PASSWORD, ""), (f"{PASSWORD}wrong", "refuses the login")):
        choice = BackendChoice(
            kind="pgvector",
            options={"dsn": dsn},
            folder="/nowhere",
            environment={"PGPASSWORD": password},
        )
        with open_backend(choice) as backend:
            assert PASSWORD not in repr(choice) + repr(backend) + backend.address()
            with refused(BackendUnreachable, words) if words else nullcontext():
                backend.load()


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{PASSWORD}%zz@127.0.0.1/db",
        f"postgresql://me:x@{PASSWORD}@127.0.0.1/db",
        f"postgresql://me:{PASSWORD}/y@127.0.0.1/db",
        f"host=127.0.0.1 password={PASSWORD}x y",
        f"postgresql://127.0.0.1/db?password={PASSWORD}&nothing=1",
        f"{PASSWORD}",
        "postgresql://me@127.0.0.1:54x2/db",
    ],
)
def test_a_dsn_that_cannot_be_read_is_not_shown(dsn: str) -> None:
    """Not even in part, for nobody knows which part is the password."""
    with refused(BackendSettingsWrong, "not shown", "postgresql://user@host"):
        backend_at(dsn)


def test_a_read_only_server_is_said(database: Database, table: str) -> None:
    """Queries go on; a push says what is wrong, and changes nothing."""
    filled(database.dsn, table=table)
    read_only = f"{database.dsn} options='-c default_transaction_read_only=on'"
    with opened(read_only, table=table) as backend:
        assert len(backend.query(QUERY)) == 10
        with refused(BackendUnusable, "read-only"):
            backend.delete([1])
    with (
        opened(read_only, table=f"{table}_new") as backend,
        refused(BackendUnusable, "read-only"),
    ):
        backend.upsert(items(1))
    with opened(database.dsn, table=table) as backend:
        assert len(backend.digests()) == 10


@pytest.mark.parametrize(
    ("state", "words"),
    [("53100", "no room left"), ("53200", "no memory left"), ("42501", "does not permit")],
)
def test_what_the_server_lacks_is_said(
    state: str, words: str, database: Database, table: str
) -> None:
    """The server's own code is put into words, and nothing of the push stays."""
    filled(database.dsn, table=table)
    database.run(
        f"CREATE FUNCTION {table}_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" RAISE EXCEPTION USING ERRCODE = '{state}', MESSAGE = 'could not'; END $$;"
        f"CREATE TRIGGER fail BEFORE INSERT ON {table} FOR EACH ROW"
        f" WHEN (NEW.id > 20) EXECUTE FUNCTION {table}_fail()"
    )
    with opened(database.dsn, table=table) as backend:
        backend.delete([1, 2])
        with refused(BackendUnusable, words):
            backend.upsert(items(5, first=18))
    with opened(database.dsn, table=table) as backend:
        assert sorted(backend.digests()) == list(range(1, 11))


def test_a_user_without_rights_is_told(database: Database, table: str) -> None:
    """Reading and writing each, with what the owner of the table has to do."""
    filled(database.dsn, table=table)
    role = f"guest_{os.getpid()}_{table}"
    database.run(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'")
    guest = f"{database.dsn} user={role}"
    with refused(BackendUnusable, "does not permit", "GRANT"):
        backend_at(guest, table=table).load()
    database.run(f"GRANT SELECT ON {table}, {table}_stamp TO {role}")
    with opened(guest, table=table) as backend:
        assert len(backend.query(QUERY)) == 10
        with refused(BackendUnusable, "does not permit", "GRANT"):
            backend.delete([1])
    with (
        opened(guest, table=f"{table}_new") as backend,
        refused(BackendUnusable, "does not permit", "GRANT"),
    ):
        backend.upsert(items(1))


def test_what_a_stranger_did_to_the_rows_shows(database: Database, table: str) -> None:
    """Half of them deleted, one changed, some of his own: found by id and digest."""
    some = filled(database.dsn, 40, table=table)
    database.run(f"DELETE FROM {table} WHERE id % 2 = 0")
    other = "[" + ",".join(map(str, unit_rows(1, seed=9)[0].tolist())) + "]"
    database.run(f"UPDATE {table} SET embedding = %s::vector WHERE id = 7", other)
    database.run(
        f"INSERT INTO {table} SELECT id + 1000, 'his', 'h', '', '{{}}', embedding FROM {table}"
        " WHERE id < 5"
    )
    expected = {one.id: digest(one.vector.reshape(1, -1))[0] for one in some}
    with opened(database.dsn, table=table) as backend:
        found = backend.digests()
        assert expected.keys() - found.keys() == set(range(2, 41, 2))
        assert found.keys() - expected.keys() == {1001, 1003}
        assert {key for key in expected if key in found and found[key] != expected[key]} == {7}
        assert backend.state.docs["his"].chunk_ids == (1001, 1003)
        assert len(backend.query(QUERY)) == 22
        backend.delete([1001, 1003])
        backend.delete([7])
        assert backend.upsert(some) == 21
        backend.save(owner="me", generation=2)
        assert backend.digests() == expected


@pytest.mark.parametrize(
    "shape",
    [
        "CREATE TABLE {} (id bigint PRIMARY KEY, words text)",
        "CREATE TABLE {} (id bigint PRIMARY KEY, doc_id text, content_hash text, body text,"
        " metadata jsonb, embedding vector(24))",
        "CREATE TABLE {} (id integer PRIMARY KEY, doc_id text, content_hash text, body text,"
        " metadata jsonb, embedding real[])",
        "CREATE VIEW {} AS SELECT 1 AS one",
        "CREATE TABLE {}_stamp (single boolean, words text)",
        "CREATE SEQUENCE {}",
    ],
)
def test_a_table_of_another_shape_is_left_alone(shape: str, database: Database, table: str) -> None:
    """What was found and what was expected is named, and the table stays as it is."""
    database.run(shape.format(table))
    before = database.run("SELECT relname, relfilenode FROM pg_class ORDER BY 1")
    backend = backend_at(database.dsn, table=table)
    for attempt in (backend.load, backend.clear):
        with refused(BackendUnusable, r"expected the columns .*; found", "table=NAME"):
            attempt()
    assert database.run("SELECT relname, relfilenode FROM pg_class ORDER BY 1") == before


def test_another_length_is_named(database: Database, table: str) -> None:
    """Both lengths; the table stays."""
    filled(database.dsn, table=table)
    with backend_at(database.dsn, table=table) as backend:
        backend.load()
        with refused(WrongDimension, "24 numbers, found one of 31"):
            backend.set_embed_config(replace(EMBED, dimension=31))
        assert len(backend.digests()) == 10


@pytest.mark.parametrize("name", SQL_TRICKS)
@pytest.mark.parametrize("key", ["table", "schema"])
def test_a_name_that_is_a_trick_is_refused(key: str, name: str) -> None:
    """Before anything is connected, and fit to be shown."""
    says = "holds a NUL" if "\0" in name else f"not a name for a {key}"
    with refused(BackendSettingsWrong, says) as _:
        backend_at("postgresql://127.0.0.1:1/db", **{key: name})


@pytest.mark.parametrize("name", ["Select", "user", "a-b", "x$y", "T" * 50])
def test_a_name_that_sql_knows_is_only_a_name(name: str, database: Database) -> None:
    """It is quoted wherever it stands."""
    some = filled(database.dsn, 3, table=name)
    with opened(database.dsn, table=name) as backend:
        assert len(backend.digests()) == len(some)
        backend.clear()
    assert database.run("SELECT 1 FROM pg_class WHERE relname = %s", name) == []


def test_a_schema_is_used_and_not_made(database: Database, table: str) -> None:
    """Without it the command that makes it is said."""
    schema = f"Own {table}".replace(" ", "-")
    with (
        opened(database.dsn, table=table, schema=schema) as backend,
        refused(BackendUnusable, "no schema", f'CREATE SCHEMA "{schema}"'),
    ):
        backend.upsert(items(1))
    database.run(f'CREATE SCHEMA "{schema}"')
    filled(database.dsn, 3, table=table, schema=schema)
    assert database.run(f'SELECT count(*) FROM "{schema}".{table}') == [(3,)]


def test_values_that_are_sql_are_values(database: Database, table: str) -> None:
    """Texts, keys, hashes, owners and fingerprints come back as they went."""
    for number, trick in enumerate(("'; DROP TABLE x; --", "%s %(a)s {}", '"\\', "\t\n\\N\\.")):
        metadata = {"files": [{trick: [trick]}]}
        one = replace(items(1)[0], id=number, doc_id=trick, content_hash=trick, text=trick)
        with opened(database.dsn, table=table) as backend:
            backend.set_embed_config(replace(EMBED, fingerprint=trick))
            backend.upsert([replace(one, metadata=metadata)])
            backend.save(owner=trick, generation=number)
            (hit,) = backend.query(QUERY, where=((trick, (trick,)),))
            assert (hit.id, hit.text, hit.metadata) == (number, trick, metadata)
            assert backend.state.docs[trick].content_hash == trick
            stamp = backend.stamp()
            assert (stamp.owner, stamp.embed.fingerprint) == (trick, trick)


def test_what_postgresql_takes_in_no_text_is_no_error(database: Database, table: str) -> None:
    """The sign 0 and halves of signs are replaced, in filters, too."""
    odd = replace(
        items(1)[0], text="a\0b\ud800", metadata={"files": [{"a\0": ["\0", "\udfff"]}], "n": None}
    )
    with opened(database.dsn, table=table) as backend:
        assert backend.upsert([odd]) == 1
        assert backend.upsert([odd]) == 0
        (hit,) = backend.query(QUERY, where=(("a\0", ("\0",)),))
        assert hit.text == "a\ufffdb\ufffd"


def test_another_store_cannot_be_written_over(database: Database, table: str) -> None:
    """Whoever took the table since it was looked at keeps it, and nothing of ours is in it."""
    with opened(database.dsn, table=table) as ours, opened(database.dsn, table=table) as theirs:
        theirs.upsert(items(3))
        theirs.save(owner="you", generation=1)
        with refused(BackendUnusable, "refuses|no more"):
            ours.upsert(items(2, first=50))
        ours.load()
        assert ours.stamp().owner == "you"
        theirs.save(owner="they", generation=1)
        with refused(BackendForeign, "another store"):
            ours.upsert(items(2, first=50))
        assert sorted(theirs.digests()) == [1, 2, 3]


def test_a_missing_extension_is_said_with_its_command(postgres_server: Server) -> None:
    """And one that is too old; an extension in a schema of its own is found."""
    name = f"bare_{os.getpid()}"
    bare = new_database(postgres_server, name, extension=False)
    with refused(BackendUnusable, "lacks the extension vector", "CREATE EXTENSION vector"):
        backend_at(bare.dsn).load()
    bare.run('CREATE SCHEMA "Ex"; CREATE EXTENSION vector SCHEMA "Ex"')
    assert len(filled(bare.dsn)) == 10
    with opened(bare.dsn, index="hnsw") as backend:
        backend.save(owner="me", generation=2)
        assert len(backend.query(QUERY, top_k=3)) == 3
    bare.run("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    with refused(BackendUnusable, "version 0.7.4", "ALTER EXTENSION vector UPDATE"):
        backend_at(bare.dsn).load()


def test_a_missing_package_is_said_with_its_command(
    without_packages: Callable[..., None],
) -> None:
    """Before anything is connected."""
    without_packages("psycopg", "psycopg.conninfo")
    with pytest.raises(BackendMissing, match="psycopg") as caught:
        backend_at("postgresql://127.0.0.1/db")
    assert "pip install" in all_words(caught.value)


def test_ten_edits_touch_ten_rows(database: Database, table: str) -> None:
    """All other rows are the same versions as before."""
    some = filled(database.dsn, 200, table=table)
    before = dict(database.run(f"SELECT id, xmin::text FROM {table}"))
    edited = [replace(one, content_hash="new") for one in some[:10]]
    with opened(database.dsn, table=table) as backend:
        assert backend.upsert([*edited, *some[10:]]) == 10
        backend.save(owner="me", generation=2)
    after = dict(database.run(f"SELECT id, xmin::text FROM {table}"))
    assert {key for key in after if after[key] != before[key]} == set(range(1, 11))


@contextmanager
def clusters(dsn: str, **options: object) -> Iterator[tuple[IndexBackend, Any]]:
    """A backend with many vectors around centres, of which each tenth has a rare tag."""
    rows = clustered_rows(3000, dimension=24)
    with opened(dsn, **options) as backend:
        backend.upsert(
            Item(
                id=key,
                vector=row,
                doc_id=str(key),
                content_hash="h",
                metadata={"files": [{"tags": ["rare" if key % 300 == 0 else "usual"]}]},
            )
            for key, row in enumerate(rows)
        )
        backend.save(owner="me", generation=1)
        yield backend, rows


def test_a_graph_finds_nearly_all_and_never_too_few(database: Database, table: str) -> None:
    """With HNSW nearly all of the ten nearest are found; filters leave as many as there are."""
    with clusters(database.dsn, table=table, index="hnsw") as (backend, rows):
        assert database.run("SELECT 1 FROM pg_indexes WHERE indexname = %s", f"{table}_hnsw")
        right = 0
        for query in clustered_rows(50, seed=5, dimension=24):
            nearest = np.argsort(-(rows @ query), kind="stable")[:10]
            hits = backend.query(query, top_k=10)
            assert len(hits) == 10
            assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.id))
            right += len({hit.id for hit in hits} & set(nearest.tolist()))
            rare = backend.query(query, top_k=20, where=(("tags", ("rare",)),))
            assert sorted(hit.id for hit in rare) == list(range(0, 3000, 300))
        assert right >= 0.95 * 500
        few = backend.query(rows[0], top_k=5, allowed=np.array([7, 2999], np.int64))
        assert sorted(hit.id for hit in few) == [7, 2999]
        assert len(backend.query(rows[0])) == 3000
        assert len(backend.query(rows[0], top_k=2500)) == 2500


def test_a_table_may_be_spread_over_partitions(database: Database, table: str) -> None:
    """Whoever made it by hand in our shape gets all of it, the stamp and the digests, too."""
    with opened(database.dsn, table=f"{table}_like") as backend:
        backend.save(owner="me", generation=0)
    database.run(
        f"CREATE TABLE {table} (LIKE {table}_like) PARTITION BY HASH (id);"
        f"CREATE TABLE {table}_stamp (LIKE {table}_like_stamp);"
        + "".join(
            f"CREATE TABLE {table}_{part} PARTITION OF {table}"
            f" FOR VALUES WITH (MODULUS 3, REMAINDER {part});"
            for part in range(3)
        )
    )
    some = filled(database.dsn, 60, table=table)
    with opened(database.dsn, table=table) as backend:
        assert backend.digests() == {one.id: digest(one.vector.reshape(1, -1))[0] for one in some}
        assert backend.upsert([replace(one, content_hash="new") for one in some[:7]]) == 7
        assert backend.delete([1, 2, 99]) == 2
        backend.save(owner="me", generation=2)
        backend.expect("me", 2)
        best = sorted(some[2:], key=lambda one: -float(one.vector @ QUERY))
        hits = backend.query(QUERY, top_k=9)
        assert [hit.id for hit in hits] == [one.id for one in best[:9]]


def test_a_server_that_shares_little_memory_gets_its_graph(database: Database, table: str) -> None:
    """Where several processes cannot build it, one does; what was pushed is there before."""
    database.run(
        f"CREATE FUNCTION {table}_fail() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF current_query() LIKE '%{table}_hnsw%' AND"
        " current_setting('max_parallel_maintenance_workers') <> '0' THEN RAISE EXCEPTION USING"
        " ERRCODE = '53100', MESSAGE = 'could not resize shared memory segment'; END IF; END $$;"
        f"CREATE EVENT TRIGGER {table}_fail ON ddl_command_start WHEN TAG IN ('CREATE INDEX')"
        f" EXECUTE FUNCTION {table}_fail()"
    )
    try:
        filled(database.dsn, 50, table=table, index="hnsw")
    finally:
        database.run(f"DROP EVENT TRIGGER {table}_fail")
    assert database.run("SELECT 1 FROM pg_indexes WHERE indexname = %s", f"{table}_hnsw")
    with opened(database.dsn, table=table, index="hnsw") as backend:
        assert backend.upsert(items(450, first=51)) == 450
        backend.save(owner="me", generation=2)
        assert len(backend.query(QUERY)) == 500


def test_few_vectors_get_no_graph(database: Database, table: str) -> None:
    """Unless it is asked for; what compares all is exact."""
    with clusters(database.dsn, table=table) as (backend, rows):
        assert not database.run("SELECT 1 FROM pg_indexes WHERE indexname = %s", f"{table}_hnsw")
        for query in clustered_rows(10, seed=5, dimension=24):
            best = np.sort(rows @ query)[::-1][:10]
            scores = [hit.score for hit in backend.query(query, top_k=10)]
            assert scores == pytest.approx(best.tolist(), abs=1e-5)


def test_a_graph_takes_no_longer_vectors() -> None:
    """Where HNSW was asked for, its limit is said before anything is made."""
    backend = backend_at("postgresql://127.0.0.1:1/db", index="hnsw")
    with refused(BackendSettingsWrong, "2,000", "index=exact"):
        backend.set_embed_config(replace(EMBED, dimension=3000))
    with refused(BackendSettingsWrong, "auto, exact or hnsw", "index=auto"):
        backend_at("postgresql://127.0.0.1:1/db", index="ivf")


def pushed(dsn: str, generation: int, **options: object) -> None:
    """Bring the table to what this generation holds, and ask it once."""
    with opened(dsn, **options) as backend:
        backend.delete([100 + (generation + 1) % 2])
        backend.upsert([*items(2), *items(1, first=100 + generation % 2)])
        backend.save(owner="me", generation=generation)
        assert len(backend.query(QUERY)) == 3


def assert_whole(dsn: str, table: str, generations: tuple[int, int]) -> int:
    """The table holds one generation and all of it; says which."""
    with opened(dsn, table=table) as backend:
        generation = backend.stamp().generation
        assert generation in generations
        assert sorted(backend.digests()) == [1, 2, 100 + generation % 2]
    return generation


def cut_everywhere(database: Database, table: str, step: int) -> None:
    """Push through a proxy that cuts after each so many bytes."""
    server = database.server
    pushed(database.dsn, 0, table=table)
    with CuttingProxy(server.port) as proxy:
        pushed(server.dsn(database.name, port=proxy.port), 1, table=table)
        most = proxy.passed
    last, failed = 1, 0
    for number, at in enumerate(range(0, most, step), start=2):
        with CuttingProxy(server.port, most=at) as proxy:
            errors: list[BaseException] = []
            try:
                pushed(server.dsn(database.name, port=proxy.port), number, table=table)
            except BackendUnreachable as error:
                errors.append(error)
        for error in errors:
            assert_silent(error)
        failed += len(errors)
        last = assert_whole(database.dsn, table, (last, number))
    assert failed > most // step * 0.9


def test_a_cut_connection_leaves_one_whole_generation(database: Database, table: str) -> None:
    """Wherever it is cut, the error says so, and the table is as before or as after the push."""
    cut_everywhere(database, table, 149)


@pytest.mark.exhaustive
def test_a_connection_may_be_cut_at_any_byte(database: Database, table: str) -> None:
    """As above, at each thirteenth byte."""
    cut_everywhere(database, table, 13)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_connection_that_falls_silent_is_not_waited_for(
    share: float, database: Database, table: str
) -> None:
    """In the login, in the push, and in the answer to its end."""
    server = database.server
    pushed(database.dsn, 0, table=table)
    with CuttingProxy(server.port) as proxy:
        pushed(server.dsn(database.name, port=proxy.port), 1, table=table)
        most = proxy.passed
    with CuttingProxy(server.port, most=int(most * share), silent=True) as proxy:
        dsn = server.dsn(database.name, port=proxy.port)
        with refused(BackendUnreachable, "does not answer|did not answer"):
            pushed(dsn, 2, table=table, timeout_s=2)
    assert_whole(database.dsn, table, (1, 2))
