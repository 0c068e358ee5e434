"""A folder of collections: what fails, what happens at once, what is killed, what is not ours."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import filestore
from filestore import FilestoreError, RefusedError, UsageError
from filestore.config.settings import Backend, ModelOptions
from filestore.search import Mode
from filestore.server.collection import (
    NotIndexedError,
    SentDocument,
    UnknownCollectionError,
    documents_in,
)
from filestore.server.collections import MOST_OPEN, Collections, NoSpaceError
from filestore.store.threads import ReadOnlyError
from tests.system.embedding_server import DIMENSION, EmbeddingServer, status, well

TREES = ["The oak stands by the gate.", "The elm was cut down.", "The ash is ill."]
STONES = ["Basalt is dark.", "Granite is hard."]
EACH = "oak elm ash basalt granite text"
"""A word of each document."""


@pytest.fixture
def collections(tmp_path: Path) -> Iterator[Collections]:
    """A folder with one collection."""
    with Collections(str(tmp_path / "rags"), writes=True, embedder="builtin") as opened:
        opened.index("trees", documents_in(TREES), dataset_info={"by": "me"})
        yield opened


def texts(collections: Collections, name: str, mode: Mode = "vector") -> list[str]:
    """What all documents of a collection say, sorted."""
    return sorted(one["text"] for one in collections.query(name, EACH, k=50, mode=mode)["results"])


def only(collections: Collections) -> list[str]:
    """What lies in the folder."""
    return sorted(os.listdir(collections.path))


def test_answers_come_best_first(collections: Collections) -> None:
    """With where each stands, and how fresh it is."""
    results = collections.query("trees", "oak gate", k=2)["results"]
    assert results[0]["text"] == TREES[0]
    assert results[0]["freshness"] == "fresh"
    assert (Path(collections.path, "trees") / results[0]["path"]).read_text().endswith(TREES[0])
    assert [one["score"] for one in results] == sorted(one["score"] for one in results)[::-1]


def test_a_collection_is_an_ordinary_store(collections: Collections) -> None:
    """It is asked, verified and edited as any other, and `reload` takes up what was edited."""
    root = Path(collections.path, "trees")
    with filestore.open(root) as store:
        assert store.verify(level="full").clean
        assert store.search("elm", k=1).hits[0].text == TREES[1]
    edited = root / "chunked" / "documents" / "document2.md"
    edited.write_text(edited.read_text().replace("cut down", "planted"))
    assert not collections.status("trees")["clean"]
    (hit, *_) = collections.query("trees", "elm")["results"]
    assert (hit["text"], hit["freshness"]) == ("The elm was planted.", "fresh")
    (root / "chunked" / "documents" / "by hand.md").write_text("The yew is old.\n")
    told = collections.reload("trees")
    assert told["applied"] == {"untracked": 1}
    assert (told["document_count"], told["clean"]) == (4, True)
    assert told["updated_at"] > told["created_at"]
    (hit, *_) = collections.query("trees", "yew")["results"]
    assert (hit["id"], hit["freshness"]) == ("chunked/documents/by hand.md", "fresh")


def test_what_a_person_changed_is_replaced_only_where_that_is_said(
    collections: Collections,
) -> None:
    """An edit, also one that was indexed; and files that somebody put beside it."""
    edited = Path(collections.path, "trees", "chunked", "documents", "document2.md")
    edited.write_text(edited.read_text() + "Or not.\n")
    with pytest.raises(RefusedError, match="changed since"):
        collections.index("trees", documents_in(STONES))
    assert "Or not." in collections.query("trees", "elm")["results"][0]["text"]
    with pytest.raises(RefusedError, match="changed since"):
        collections.index("trees", documents_in(STONES))
    collections.reload("trees")
    with pytest.raises(RefusedError, match="changed since"):
        collections.index("trees", documents_in(STONES))
    assert collections.index("trees", documents_in(STONES), overwrite=True)["document_count"] == 2
    Path(collections.path, "trees", "notes.txt").write_text("mine")
    with pytest.raises(RefusedError, match=r"notes\.txt"):
        collections.index("trees", documents_in(TREES))


def test_times_tell_when_it_was_made_and_written(tmp_path: Path) -> None:
    """By the clock that it was given, whatever it shows."""
    moments = [datetime(2030, 1, 1, tzinfo=UTC) + timedelta(days=-day) for day in range(9)]
    ticking = iter(moments)
    with Collections(
        str(tmp_path), writes=True, embedder="builtin", clock=lambda: next(ticking)
    ) as opened:
        first = opened.index("a", documents_in(TREES))
        second = opened.index("a", documents_in(STONES))
    assert first["created_at"] == first["updated_at"] == "2030-01-01T00:00:00.000000Z"
    assert second["created_at"] == first["created_at"]
    assert second["updated_at"] == "2029-12-31T00:00:00.000000Z"


def test_a_disk_without_room_is_told_before_it_is_written(tmp_path: Path) -> None:
    """With both figures and what to do; what is there goes on."""
    room = [10**9]
    with Collections(
        str(tmp_path), writes=True, embedder="builtin", available=lambda _: room[0]
    ) as opened:
        opened.index("a", documents_in(TREES))
        room[0] = 50_000_000
        with pytest.raises(NoSpaceError) as caught:
            opened.index("a", documents_in([f"{number} {'x' * 5000}" for number in range(4348)]))
        assert caught.value.remedy == ("required 101 MB, available 50 MB; free space and try again")
        assert texts(opened, "a") == sorted(TREES)
        assert only(opened) == ["a"]


def test_a_disk_that_refuses_leaves_the_running_index(tmp_path: Path) -> None:
    """In the middle of the work: it answers on, nothing is left, and the next try succeeds."""
    program = """
        import resource, signal, sys
        from filestore import FilestoreError
        from filestore.server.collections import Collections
        from filestore.server.collection import documents_in
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        many = documents_in([f"pebble {number}" for number in range(300)])
        with Collections(sys.argv[1], writes=True, embedder="builtin") as opened:
            opened.index("a", documents_in(["granite"]))
            opened.query("a", "granite")
            usual = resource.getrlimit(resource.RLIMIT_FSIZE)
            for most in (100, 3_000, 70_000, 200_000, 300_000):
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, usual[1]))
                try:
                    opened.index("a", many)
                    print("done")
                except FilestoreError as error:
                    print("refused")
                resource.setrlimit(resource.RLIMIT_FSIZE, usual)
                print([one["text"] for one in opened.query("a", "granite")["results"]])
            opened.index("a", many)
            print(opened.status("a")["document_count"])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    *before, last = ran.stdout.splitlines()
    assert before == ["refused", "['granite']"] * 5, ran.stderr
    assert last == "300"
    assert os.listdir(tmp_path) == ["a"]


def test_a_full_disk_can_be_made_room_on(collections: Collections) -> None:
    """Whoever deletes a collection needs no room to say who holds its lock."""
    program = """
        import resource, signal, sys
        from filestore import FilestoreError
        from filestore.server.collections import Collections
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with Collections(sys.argv[1], writes=True) as opened:
            opened.query("trees", "oak")
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            try:
                opened.delete("trees")
            except FilestoreError as error:
                sys.exit(error.message)
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), collections.path], check=True, timeout=60
    )
    assert only(collections) == []


def test_a_kill_in_the_middle_leaves_the_running_index(collections: Collections) -> None:
    """What it left is collected when the folder is served again."""
    program = """
        import sys
        from filestore.server.collections import Collections
        from filestore.server.collection import documents_in
        many = documents_in([f"pebble {number}" for number in range(20_000)])
        with Collections(sys.argv[1], writes=True, embedder="builtin") as opened:
            opened.index("trees", many)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), collections.path]
    child = subprocess.Popen(command)
    place = Path(collections.path)
    while not list(place.glob(".filestore-tmp-tree-*/chunked/documents/*")):
        assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert len(only(collections)) == 2
    assert texts(collections, "trees") == sorted(TREES)
    with Collections(collections.path, writes=True) as again:
        assert only(again) == ["trees"]
        assert texts(again, "trees") == sorted(TREES)


def test_answers_are_of_one_generation(collections: Collections) -> None:
    """While a collection is replaced again and again, from two sides, and asked from four."""
    first, second = documents_in(TREES), documents_in(STONES)
    allowed = (sorted(TREES), sorted(STONES))
    done = threading.Event()

    def ask() -> int:
        asked = 0
        while not done.is_set():
            assert texts(collections, "trees") in allowed
            status = collections.status("trees")
            assert (status["document_count"] in (2, 3), status["clean"]) == (True, True), status
            asked += 1
        return asked

    def replace(documents: list[SentDocument]) -> None:
        for _ in range(6):
            collections.index("trees", documents)

    with ThreadPoolExecutor(6) as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        writing = [pool.submit(replace, first), pool.submit(replace, second)]
        try:
            for one in writing:
                one.result()
        finally:
            done.set()
        assert all(one.result() for one in asking)
    assert only(collections) == ["trees"]


def test_a_collection_is_deleted_while_it_is_asked(collections: Collections) -> None:
    """Each answer is whole, or says that there is none."""
    outcomes = []
    gone = threading.Event()

    def ask() -> None:
        while True:
            was_gone = gone.is_set()
            try:
                outcomes.append(texts(collections, "trees") == sorted(TREES))
            except UnknownCollectionError:
                return
            assert not was_gone

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        while len(outcomes) < 8:
            assert not any(one.done() for one in asking)
        collections.delete("trees")
        gone.set()
        for one in asking:
            one.result()
    assert all(outcomes)
    assert only(collections) == []


def test_two_processes_may_index_one_name(collections: Collections) -> None:
    """The last one counts; nobody sees a mixture."""
    with Collections(collections.path, writes=True, embedder="builtin") as other:
        collections.index("trees", documents_in(STONES))
        assert texts(other, "trees") == sorted(STONES)
        other.index("trees", documents_in(TREES))
        assert texts(collections, "trees") == sorted(TREES)
        other.delete("trees")
        with pytest.raises(UnknownCollectionError):
            texts(collections, "trees")


def test_more_collections_than_are_kept_open(tmp_path: Path) -> None:
    """Each answers; the threads of those that were not asked for longest end."""
    with Collections(str(tmp_path), writes=True, embedder="builtin", readers=1) as opened:
        for number in range(MOST_OPEN + 4):
            opened.index(f"c{number}", documents_in([f"text {number}"]))
        for _ in range(2):
            for number in range(MOST_OPEN + 4):
                assert texts(opened, f"c{number}") == [f"text {number}"]
        running = [one for one in threading.enumerate() if one.name == "filestore"]
        assert len(running) <= MOST_OPEN
        assert len(opened.listed()["rags"]) == MOST_OPEN + 4


def test_what_was_not_made_here_is_asked_but_not_replaced(collections: Collections) -> None:
    """A store that a person made, or the documents of one; a folder that is none; a link."""
    place = Path(collections.path)
    with filestore.create(place / "mine", embedder="builtin") as store:
        store.put(STONES, into="stones")
    (place / "papers").mkdir()
    (place / "papers" / "a.txt").write_text("a")
    (place / "link").symlink_to(place / "trees")
    assert [one["rag_name"] for one in collections.listed()["rags"]] == ["mine", "trees"]
    assert texts(collections, "mine") == sorted(STONES)
    assert collections.reload("mine")["document_count"] == 2
    for name in ("mine", "papers", "link"):
        with pytest.raises(RefusedError, match="neither replaced nor deleted"):
            collections.index(name, documents_in(TREES), overwrite=True)
    with pytest.raises(RefusedError):
        collections.delete("mine")
    for name in ("papers", "link"):
        with pytest.raises(UnknownCollectionError):
            collections.delete(name)
    assert (place / "papers" / "a.txt").read_text() == "a"
    assert texts(collections, "trees") == sorted(TREES)


def test_a_folder_of_faiss_and_json_becomes_a_store(collections: Collections) -> None:
    """Where that is asked for; its files stay in it, and it is replaced and deleted like others."""
    place = Path(collections.path, "old")
    with filestore.open(Path(collections.path, "trees")) as store:
        store.export("faiss-json", place)
    files = {one.name: one.read_bytes() for one in place.iterdir()}
    status = collections.status("old")
    assert not status["has_index"]
    assert "index/reload makes it one" in status["action"]
    with pytest.raises(NotIndexedError):
        texts(collections, "old")
    told = collections.reload("old")
    assert (told["has_index"], told["document_count"]) == (True, 3)
    assert texts(collections, "old") == sorted(TREES)
    assert {name: (place / name).read_bytes() for name in files} == files
    assert collections.index("old", documents_in(STONES))["document_count"] == 2
    collections.delete("old")
    assert only(collections) == ["trees"]


def test_a_damaged_collection_is_indexed_again(collections: Collections) -> None:
    """Whatever of it is damaged."""
    collections.close()
    Path(collections.path, "trees", "filestore.toml").write_bytes(b"\xff\0")
    Path(collections.path, "trees", "collection.json").write_bytes(b"[")
    assert "error" in collections.status("trees")
    assert collections.index("trees", documents_in(STONES), overwrite=True)["has_index"]
    shutil.rmtree(Path(collections.path, "trees", ".sidecar"))
    assert not collections.status("trees")["has_index"]
    assert collections.reload("trees")["has_index"]
    assert texts(collections, "trees") == sorted(STONES)


def test_nothing_is_written_where_nobody_may(collections: Collections) -> None:
    """But asked, and opened anew."""
    with Collections(collections.path) as readable:
        assert texts(readable, "trees") == sorted(TREES)
        assert readable.reload("trees")["synced"] is False
        for change in (
            lambda: readable.index("new", documents_in(TREES)),
            lambda: readable.delete("trees"),
        ):
            with pytest.raises(ReadOnlyError, match="to be read"):
                change()


def test_a_folder_in_a_store_is_refused(collections: Collections) -> None:
    """A store inside a store is not followed."""
    with pytest.raises(UsageError, match="lies in the store"):
        Collections(os.path.join(collections.path, "trees", "deeper"), writes=True)
    with pytest.raises(UsageError, match="is not a folder"):
        Collections(os.path.join(collections.path, "none"))


def test_names_that_differ_by_case_are_refused(collections: Collections) -> None:
    """So that both can lie on any disk."""
    with pytest.raises(RefusedError, match="differs only by case"):
        collections.index("Trees", documents_in(STONES))
    with pytest.raises(FilestoreError):
        collections.status("TREES")


def test_a_service_that_was_allowed_is_allowed_for_what_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents of a collection with a model at an address are replaced as any; no text is sent
    twice, and where the service fails what was there stays."""
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    settings = str(tmp_path / "settings")
    with EmbeddingServer() as service, Collections(
        str(tmp_path / "rags"), writes=True, embedder="builtin", configuration=settings
    ) as opened:  # fmt: skip
        opened.index("trees", documents_in(TREES))
        root = Path(opened.path, "trees")
        with filestore.Store(root, configuration=settings) as store:
            store.change_model(
                store.plan_model("openai:small", ModelOptions(endpoint=service.endpoint))
            )
        opened.reload("trees")
        again = opened.index("trees", documents_in([*TREES[:2], *STONES]))
        assert (again["embedded"], again["reused"]) == (2, 2)
        assert again["embedding_dimension"] == DIMENSION
        assert texts(opened, "trees", "hybrid") == sorted([*TREES[:2], *STONES])
        service.behave(status(401))
        with pytest.raises(FilestoreError):
            opened.index("trees", documents_in(["Slate splits."]))
        service.behave(well)
        assert texts(opened, "trees", "hybrid") == sorted([*TREES[:2], *STONES])
        assert opened.status("trees")["clean"]


@pytest.mark.parametrize("options", [{}, {"path": "lines.jsonl"}])
def test_vectors_in_files_of_their_own_are_replaced_with_the_rest(
    collections: Collections, options: dict[str, str]
) -> None:
    """In the sidecar they go with it; the status says what keeps them."""
    with filestore.Store(Path(collections.path, "trees")) as store:
        store.change_backend(store.plan_backend(Backend(kind="local", options=options)))
    again = collections.index("trees", documents_in(STONES))
    assert (again["index_type"], again["clean"]) == ("local", True)
    assert texts(collections, "trees") == sorted(STONES)
    assert collections.delete("trees")["deleted"]
    assert only(collections) == []


def test_vectors_that_lie_elsewhere_are_neither_replaced_nor_left_behind(
    collections: Collections, tmp_path: Path
) -> None:
    """They could not be exchanged in one step, nor would they go with the folder."""
    elsewhere = tmp_path / "lines.jsonl"
    with filestore.Store(Path(collections.path, "trees")) as store:
        backend = Backend(kind="local", options={"path": str(elsewhere)})
        change = store.plan_backend(backend)
        store.change_backend(change)
    for act in (
        lambda: collections.index("trees", documents_in(STONES)),
        lambda: collections.delete("trees"),
    ):
        with pytest.raises(RefusedError, match="outside its folder") as refused:
            act()
        assert "backend set faiss" in refused.value.remedy
    assert texts(collections, "trees") == sorted(TREES)
    assert elsewhere.exists()


def test_no_text_is_embedded_twice(tmp_path: Path) -> None:
    """Where a collection is replaced, vectors of texts that stay come from the old one."""
    with Collections(str(tmp_path), writes=True, embedder="minilm") as opened:
        first = opened.index("trees", documents_in(TREES))
        assert (first["embedded"], first["reused"]) == (3, 0)
        second = opened.index("trees", documents_in([*TREES[:2], *STONES]))
        assert (second["embedded"], second["reused"]) == (2, 2)
        assert opened.status("trees")["clean"]
