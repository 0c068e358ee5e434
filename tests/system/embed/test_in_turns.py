"""Files are found by keyword at once, and get their vectors in turns that anything may end."""

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore.catalog import Catalog
from filestore.core.progress import Progress
from filestore.server import stores
from filestore.server.operations import ROUTES
from filestore.store import Store, watch
from filestore.sync import apply
from tests.system.embedding_server import Behaviour, EmbeddingServer, status, well
from tests.system.server.conftest import PERSON

CHECKOUT = Path(__file__).resolve().parents[3]
NOTES, SECTIONS = 12, 10
TEXTS = NOTES * SECTIONS


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture(params=["in-place", "tree"])
def store(request: Any, workspace: Any, server: EmbeddingServer, tmp_path: Path) -> Any:
    """A store with documents that are not indexed yet, and a service that embeds them."""
    root = tmp_path / "notes"
    layout = "in-place" if request.param == "in-place" else "tree"
    command = ("init", root, "--layout", layout, "--embedder", "openai:small")
    workspace(*command, "--endpoint", server.endpoint)
    for number in range(NOTES):
        if request.param == "in-place":
            parts = [text_of(number, part) for part in range(SECTIONS)]
            (root / f"note{number}.md").write_text("\n".join(parts))
            continue
        is_folder = request.param == "folder"
        begin = "all/note{}-" if is_folder else "note{}.md/"
        source = f"---\nsource: note{number}.md\n---\n" if is_folder else ""
        for part in range(SECTIONS):
            path = root / "chunked" / f"{begin.format(number)}chunk{part + 1}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source + text_of(number, part))
    return Commands(workspace, root)


def text_of(number: int, part: int) -> str:
    """A section that is long enough to be a text of its own."""
    words = " ".join(f"word{number}x{part}y{one}" for one in range(25))
    return f"# Heading {number} {part}\n\nunique{number}of{part} {words}\n"


class Commands:
    """The store, by the command line."""

    def __init__(self, workspace: Any, root: Path) -> None:
        self.workspace, self.root = workspace, root

    def __call__(self, *words: str, code: int | None = 0) -> Any:
        return self.workspace("--store", self.root, *words, code=code)

    def json(self, *words: str, code: int | None = 0) -> Any:
        return self(*words, "--json", code=code).json

    def begun(self, *words: str, **options: Any) -> "subprocess.Popen[str]":
        """A command in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "filestore", "--store", str(self.root), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            **options,
        )

    def waiting(self) -> str:
        """What `status` says of the vectors; the store is clean all the time."""
        found = self.json("status")
        assert found["clean"] is True
        assert set(found["drift"]) <= {"vector-pending", "locked"}
        said = self("status").stdout
        return said.partition("vectors: ")[2].partition("\n")[0]

    def settled(self) -> None:
        """See that nothing waits, and that every text is found by its vector."""
        assert self.waiting() == ""
        assert self.json("verify", "--level", "full")["clean"] is True
        answer = self.json("search", text_of(3, 4), "--mode", "vector", "-k", "1")
        assert "note3" in answer["hits"][0]["path"]


def slow(text_s: float) -> Behaviour:
    """A service that takes its time for each text."""

    def behave(handler: Any, request: Any) -> None:
        time.sleep(text_s * len(request.texts))
        well(handler, request)

    return behave


def sent(server: EmbeddingServer) -> list[str]:
    """The texts of the store that the service was sent, in their order."""
    texts = [text for request in server.requests for text in request.texts]
    return [text for text in texts if "unique" in text]


def until(seen: Any, process: "subprocess.Popen[str]") -> None:
    """Wait for something while a command runs."""
    deadline = time.monotonic() + 180
    while not seen():
        assert process.poll() is None, process.communicate()
        if time.monotonic() > deadline:
            process.kill()
            raise AssertionError(process.communicate())
        time.sleep(0.02)


@pytest.mark.parametrize("store", ["in-place", "tree", "folder"], indirect=True)
def test_keywords_find_what_waits(store: Any, server: EmbeddingServer) -> None:
    """While texts are embedded the store is searched, and is clean; the broad view comes first."""
    server.behave(slow(0.03))
    process = store.begun("sync")
    until(lambda: len(server.requests) > 2, process)
    assert store.json("search", "unique7of9", "--mode", "keyword")["hits"]
    notes = store.json("search", "x", code=None)["notes"]
    assert any("no vector of openai:small yet" in one for one in notes)
    has, _, of = store.waiting().partition(" of ")
    assert process.poll() is None
    assert int(has) < int(of) == TEXTS
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    texts = sent(server)
    assert sorted(Counter(texts).values()) == [1] * TEXTS
    # Later requests are sent several at once.
    first = {text.partition("unique")[2].partition(" ")[0] for text in texts[:8]}
    assert len(first) == 8
    assert first <= {f"{number}of0" for number in range(NOTES)}
    store.settled()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_and_gone_on_with(store: Any, server: EmbeddingServer, how: int) -> None:
    """Whatever ends it, the store is clean, and no more is embedded again than a batch."""
    server.behave(slow(0.03))
    has = 0
    for requests in (1, 3, 3):
        before = len(server.requests)
        process = store.begun("sync")
        until(lambda: len(server.requests) >= before + requests, process)  # noqa: B023
        process.send_signal(how)
        _, said = process.communicate(timeout=60)
        assert "Traceback" not in said
        if how == signal.SIGINT:
            assert process.returncode == 130, said
            now = int(store.waiting().partition(" of ")[0] or 0)
            assert now >= has + (8 if requests > 1 else 0)
            has = now
    server.behave(well)
    store("sync")
    again = sum(times - 1 for times in Counter(sent(server)).values())
    assert again <= 3 * 40
    assert len(set(sent(server))) == TEXTS
    store.settled()


def test_two_embed_no_text_twice(store: Any, server: EmbeddingServer) -> None:
    """Two processes take turns."""
    server.behave(slow(0.03))
    processes = [store.begun("sync") for _ in range(2)]
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert sorted(Counter(sent(server)).values()) == [1] * TEXTS
    store.settled()


def test_others_write_meanwhile(store: Any, server: EmbeddingServer) -> None:
    """A new note is found by keyword before the texts of before have their vectors."""
    server.behave(slow(0.1))
    process = store.begun("sync")
    until(lambda: len(server.requests) > 1, process)
    inside = store.root / "chunked" if (store.root / "chunked").exists() else store.root
    (inside / "fresh.md").write_text("# Fresh\n\nA remark about zeppelins.\n")
    store("sync", "--no-embed")
    assert process.poll() is None
    assert store.json("search", "zeppelins", "--mode", "keyword")["hits"]
    server.behave(well)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert store.waiting() == ""


def test_the_index_lacks_nothing_that_waits(store: Any, server: EmbeddingServer) -> None:
    """A text without a vector is none that the vector index should have."""
    server.behave(well, well, status(401))
    store("sync", code=3)
    assert store.waiting() == f"8 of {TEXTS}"
    assert store.json("backend", "show")["waiting"] == 0


def test_no_room_for_vectors(store: Any) -> None:
    """What was embedded before the disk was full is kept; keywords find everything."""
    settings = store.root / "filestore.toml"
    long = settings.read_text().replace("endpoint =", "dimension = 1024\nendpoint =")
    settings.write_text(long)
    store("sync", "--no-embed")
    sizes = [path.stat().st_size for path in store.root.rglob("catalog.sqlite*")]
    limit = max(sizes) + (64 << 10)
    process = store.begun(
        "sync", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    )
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "ulimit -f" in said
    assert store.json("search", "unique7of9", "--mode", "keyword")["hits"]
    assert 0 < store.json("sync")["embedded"] < TEXTS
    store.settled()


def test_a_request_waits_for_one_turn_at_most(
    store: Any, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a server was written to while texts wait, which all get their vectors."""
    store("sync", "--no-embed")
    server.behave(slow(0.005))
    monkeypatch.setattr(stores, "_TURN_S", 0.0)
    access = stores.Access(writes=True)
    with contextlib.closing(
        stores.ServedStore.open("notes", str(store.root), access, configuration=None, readers=1)
    ) as served:
        asyncio.run(served.ask(ROUTES["sync"], {"embed": False}, PERSON))
        assert (served.waiting, sent(server)) == (0, [])
        for _ in range(4):
            asyncio.run(served.write(lambda _: None, PERSON))
            assert served.waiting <= 1
        while served.waiting:
            asyncio.run(served.read(lambda _: None))
    store.settled()


@pytest.mark.parametrize("store", ["tree"], indirect=True)
def test_one_update_has_one_time_to_embed(store: Any, server: EmbeddingServer) -> None:
    """It syncs before and after it reads originals; what the first left, the second leaves, too."""
    original = store.root / "guide.md"
    original.write_text(text_of(NOTES, 0))
    server.behave(status(401))
    store("add", original, code=None)
    original.write_text(text_of(NOTES, 1))
    server.requests.clear()
    server.behave(slow(0.02))
    with filestore.open(store.root) as opened:
        opened.embed_for(0.0)
        updated = opened.update()
        assert updated.updated
    # One batch of what waits, and the text that is new.
    assert updated.embedded == len(sent(server)) < 20
    server.behave(well)
    store("sync")
    store.settled()


TICKS = 6


@pytest.fixture
def watched(store: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What `watch` says of a store in a few ticks without any change."""

    def events() -> Iterator[Any]:
        monkeypatch.setattr(watch, "changes", lambda *_, **__: (None for _ in range(TICKS)))
        monkeypatch.setattr(watch, "_EMBED_S", 0.0)
        opened = filestore.open(store.root)
        return watch.watch(lambda: opened, opened.places, embed=True, stop=threading.Event())

    return events


def test_watch_reports_what_keeps_it_from_going_on(
    store: Any, server: EmbeddingServer, watched: Any
) -> None:
    """Once, and it does not ask again at every tick."""
    store("sync", "--no-embed")
    server.behave(well, well, well, status(401))
    failed = [one for one in watched() if isinstance(one, watch.Failed)]
    assert ["401" in one.error.message for one in failed] == [True]
    assert len(server.requests) <= 3 + 2 * 4


def test_watch_does_not_try_what_it_cannot_embed(
    store: Any, watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where texts wait for a model that the settings no longer name, a sync embeds none."""
    store("sync", "--no-embed")
    settings = store.root / "filestore.toml"
    settings.write_text(settings.read_text().replace("openai:small", "builtin"))
    syncs: list[Any] = []
    update = Store.update
    monkeypatch.setattr(
        Store, "update", lambda *one, **how: syncs.append(one) or update(*one, **how)
    )
    assert [type(one) for one in watched()] == [watch.Synced]
    assert len(syncs) == 1


# The model of the installation, in programs that go on by themselves


@pytest.fixture
def waiting(workspace: Any, tmp_path: Path) -> Any:
    """A store in place whose texts wait for the vectors of the bundled model."""

    def made(notes: int) -> Commands:
        root = tmp_path / "notes"
        root.mkdir()
        for number in range(notes):
            parts = [text_of(number, part) for part in range(SECTIONS)]
            (root / f"note{number}.md").write_text("\n".join(parts))
        (root / "filestore.toml").write_text(
            'format = 1\nlayout = "in-place"\nembedder = "minilm"\n'
        )
        store = Commands(workspace, root)
        store("sync", "--no-embed")
        return store

    return made


@pytest.mark.parametrize(
    "words", [("watch",), ("serve", "--port", "0")], ids=lambda words: words[0]
)
def test_a_program_that_stays_goes_on(waiting: Any, words: tuple[str, ...]) -> None:
    """What waits as it starts is embedded in its own process, without being asked."""
    store = waiting(4)
    process = store.begun(*words)
    until(lambda: not store.waiting(), process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said
    store.settled()


def test_a_hook_embeds_for_a_moment(waiting: Any) -> None:
    """It begins, and leaves to others what takes long."""
    store = waiting(150)
    done = store("git", "follow")
    has, _, of = store.waiting().partition(" of ")
    assert 0 < int(has.replace(",", "")) < int(of.replace(",", ""))
    assert "sync' embeds the rest" in done.stderr


@pytest.mark.parametrize("is_search", [False, True], ids=["sync", "search"])
def test_a_file_of_many_passages_is_read_once_to_embed_them(
    workspace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_search: bool
) -> None:
    """However many batches they take: else a document of 5 MB takes minutes."""
    root = tmp_path / "notes"
    workspace("init", "--in-place", root, "--embedder", "builtin")
    (root / "long.md").write_text("\n".join(text_of(0, part) for part in range(1_000)))
    for number in range(1, 41):
        (root / f"note{number}.md").write_text(text_of(number, 0))
    read: Counter[int] = Counter()
    content = Catalog.content

    def counted(catalog: Catalog, file: int) -> bytes | None:
        read[file] += 1
        return content(catalog, file)

    monkeypatch.setattr(Catalog, "content", counted)
    # A turn may be shorter than it takes to read it, and then ends with each batch.
    monkeypatch.setattr(apply, "TURN_S", 0.0)
    turns = Counter[str]()

    def count(progress: Progress) -> None:
        turns[progress.stage] += 1
        assert turns["embedding"] < 200

    with Store.open(root) as store:
        if is_search:
            monkeypatch.setattr(apply, "TURN_S", 60.0)
            assert store.search("long")
        else:
            assert store.sync(on_progress=count).embedded >= 1_000
    assert max(read.values()) <= 2
