"""A table of vectors spread over three real PostgreSQL servers, as tests/bench/SCALE.md sets it up.

Skipped where no PostgreSQL with the extensions postgres_fdw and vector is installed.
"""

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from filestore.index import open_backend
from filestore.index.backend import (
    BackendChoice,
    BackendUnreachable,
    EmbedConfig,
    IndexBackend,
    Item,
    digest,
)
from tests.bench import servers
from tests.vectors import unit_rows

EMBED = EmbedConfig(fingerprint="a model/1", dimension=384)
QUERY = unit_rows(1, seed=7, dimension=384)[0]
LOST = 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[servers.Server]]:
    """A server in front, and the three behind it."""
    programs = servers.programs(None)
    if programs is None:
        pytest.skip(servers.MISSING)
    names = ("front", *servers.NAMES)
    settings = {name: {"shared_buffers": "16MB", "fsync": "off"} for name in names}
    # Not below pytest's own folder, which nobody else may enter.
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.running(names, folder, programs, settings) as started,
    ):
        servers.set_up(started[0], started[1:])
        for one in started[1:]:
            with one.connect() as connection:
                connection.execute(servers.statements()["index"])
        yield started


@pytest.fixture
def front(cluster: list[servers.Server], monkeypatch: pytest.MonkeyPatch) -> servers.Server:
    """The one in front, and an empty table."""
    monkeypatch.setenv("PGPASSWORD", cluster[0].password)
    for one in cluster:
        one.start()
    with opened(cluster[0]) as backend:
        backend.clear()
    return cluster[0]


def opened(front: servers.Server, **options: object) -> IndexBackend:
    dsn = f"postgresql://{servers.USER}@127.0.0.1:{front.port}/{servers.DATABASE}"
    choice = BackendChoice(
        kind="pgvector", options={"dsn": dsn, **options}, folder="/nowhere", environment={}
    )
    backend = open_backend(choice)
    backend.load()
    backend.set_embed_config(EMBED)
    return backend


def items(many: int, *, text: str = "") -> list[Item]:
    """A third is of another kind."""
    return [
        Item(
            id=key * 7_919 - 2**62,
            vector=row,
            doc_id=str(key),
            content_hash=f"h{key}{text}",
            text=text,
            metadata={"files": [{"kind": ["html" if key % 3 else "markdown"]}]},
        )
        for key, row in enumerate(unit_rows(many, dimension=384))
    ]


def filled(front: servers.Server, many: int = 400) -> list[Item]:
    some = items(many)
    with opened(front) as backend:
        assert backend.upsert(some) == many
        backend.save(owner="me", generation=1)
    return some


def nearest(some: list[Item], count: int | None = None) -> list[int]:
    return [one.id for one in sorted(some, key=lambda one: -float(one.vector @ QUERY))][:count]


def found(backend: IndexBackend, count: int | None = 10, **more: Any) -> list[int]:
    return [hit.id for hit in backend.query(QUERY, top_k=count, **more)]


def held_by(server: servers.Server) -> set[int]:
    with server.connect() as connection:
        return {row[0] for row in connection.execute("SELECT id FROM filestore_vectors")}


def test_answers_are_those_of_one_table(
    front: servers.Server, cluster: list[servers.Server]
) -> None:
    """All servers hold some, and together they answer as one: all, the best, filtered, allowed."""
    some = filled(front)
    assert all(held_by(one) for one in cluster[1:])
    with opened(front) as backend:
        backend.expect("me", 1)
        assert found(backend, None) == nearest(some)
        assert found(backend) == nearest(some, 10)
        of_kind = [one for one in some if one.metadata["files"][0]["kind"] == ["markdown"]]
        assert found(backend, where=(("kind", ("markdown",)),)) == nearest(of_kind, 10)
        allowed = some[100:140]
        bound = np.array([one.id for one in allowed], dtype=np.int64)
        assert found(backend, allowed=bound) == nearest(allowed, 10)
        expected = digest(np.array([one.vector for one in some]))
        assert backend.digests() == dict(zip([one.id for one in some], expected, strict=True))
        assert len(backend.state.docs) == len(some)
        assert backend.lacking == ""


def test_a_change_touches_its_rows(front: servers.Server) -> None:
    """Rows that are sent again, or deleted, change; all others stay."""
    some = filled(front, 60)
    new = items(10, text="new")
    with opened(front) as backend:
        assert backend.upsert(some) == 0
        assert backend.upsert(new) == 10
        assert backend.delete([some[20].id, some[30].id, 5]) == 2
        backend.save(owner="me", generation=2)
        left = {one.id for one in some} - {some[20].id, some[30].id}
        assert set(found(backend, None)) == left
        assert {hit.id for hit in backend.query(QUERY) if hit.text == "new"} == {
            one.id for one in new
        }


def test_a_lost_server_is_named(front: servers.Server, cluster: list[servers.Server]) -> None:
    """Without it nothing answers as if all were there; once it is back, all is there."""
    some = filled(front)
    lost = cluster[1 + LOST]
    with opened(front) as backend:
        backend.expect("me", 1)
        lost.kill()
        for ask in (
            lambda: found(backend),
            lambda: found(backend, None),
            backend.digests,
            lambda: backend.state,
            lambda: backend.delete([one.id for one in some]),
        ):
            with pytest.raises(BackendUnreachable, match=lost.name) as caught:
                ask()
            assert front.password not in str(caught.value) + caught.value.detail
            assert lost.password not in str(caught.value) + caught.value.detail
        lost.start()
    with opened(front) as backend:
        assert found(backend, None) == nearest(some)


def test_a_part_of_an_answer_says_so(front: servers.Server, cluster: list[servers.Server]) -> None:
    """Where the settings allow it the others answer, and what is missing is named."""
    some = filled(front)
    lost = cluster[1 + LOST]
    gone = held_by(lost)
    left = [one for one in some if one.id not in gone]
    with opened(front, partial=True, timeout_s=3) as backend:
        backend.expect("me", 1)
        assert found(backend) == nearest(some, 10)
        assert backend.lacking == ""
        lost.kill()
        assert found(backend) == nearest(left, 10)
        assert lost.name in backend.lacking
        with pytest.raises(BackendUnreachable, match=lost.name):
            backend.digests()
        lost.start()
        assert found(backend) == nearest(some, 10)
        assert backend.lacking == ""
        with lost.frozen():
            assert found(backend) == nearest(left, 10)
            assert lost.name in backend.lacking


def test_an_emptied_table_stays_spread(
    front: servers.Server, cluster: list[servers.Server]
) -> None:
    """What a person set up is not dropped."""
    filled(front, 30)
    with opened(front) as backend:
        backend.clear()
        assert found(backend, None) == []
        assert backend.stamp() is None
    assert [held_by(one) for one in cluster[1:]] == [set(), set(), set()]
    assert len(filled(front, 30)) == sum(len(held_by(one)) for one in cluster[1:])


def test_a_store_says_what_its_answers_are_without(
    workspace: Any, front: servers.Server, cluster: list[servers.Server]
) -> None:
    """Hits are those of the store's own index; one server lost, they are fewer and a note says so;
    what is written meanwhile waits, and is sent when the server is there again. Without `partial`
    only words are searched."""
    for number in range(40):
        body = f"# Note {number}\n\nThe harbour has {number} lanterns.\n"
        workspace.write(f"file_index/chunked/note{number}.md", body)
    workspace("sync")

    def search(*more: str) -> Any:
        return workspace.json("search", "harbour", "-k", "40", *more, code=None)

    def paths(done: Any) -> list[str]:
        return sorted(hit["path"] for hit in done["hits"])

    alone = paths(search("--mode", "vector"))
    dsn = f"dsn=postgresql://{servers.USER}@127.0.0.1:{front.port}/{servers.DATABASE}"
    workspace("backend", "set", "pgvector", dsn, "partial=true", "--yes")
    whole = search("--mode", "vector")
    assert paths(whole) == alone
    assert "without" not in " ".join(whole["notes"])

    lost = cluster[1 + LOST]
    lost.kill()
    part = search("--mode", "vector")
    assert 0 < len(part["hits"]) < len(alone)
    assert lost.name in " ".join(part["notes"])
    for number in range(10):
        body = f"# New {number}\n\nThe glacier has {number} lanterns.\n"
        workspace.write(f"file_index/chunked/new{number}.md", body)
    assert lost.name in workspace("sync", code=None).stdout
    assert any("new" in path for path in paths(search("--mode", "vector")))
    lost.start()
    workspace("sync")
    assert sum(len(held_by(one)) for one in cluster[1:]) == 50
    assert "without" not in " ".join(search("--mode", "vector")["notes"])

    workspace("backend", "set", "pgvector", dsn, "--yes")
    lost.kill()
    words = search()
    assert words["mode"] == "keyword"
    assert words["hits"]
    assert lost.name in " ".join(words["notes"])
