"""A store asked from any thread: who opens it, who closes it, and what is told to whom."""

import gc
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import filestore
from filestore import Store, StoreThreads, UsageError
from tests.conftest import Run
from tests.system.embedding_server import EmbeddingServer

TEXTS = [f"The rent of flat {number}." for number in range(8)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with some texts."""
    with filestore.create(tmp_path / "kb", embedder="builtin") as store:
        store.put(TEXTS, into="notes")
    return tmp_path / "kb"


def running() -> list[threading.Thread]:
    """The threads that hold stores."""
    return [one for one in threading.enumerate() if one.name == "filestore"]


def best(store: Store, query: str) -> str:
    """The text of the best hit."""
    return store.search(query, k=1).hits[0].text


def test_one_caller_after_the_other_is_served_by_one_thread(place: Path) -> None:
    """So that the index is in memory once."""
    with StoreThreads(place) as threads:
        seen = {threads.call(lambda store: (id(store), threading.get_ident())) for _ in range(9)}
        assert len(seen) == 1
        assert len(running()) == 1
    assert running() == []


def test_callers_at_once_are_served_at_once(place: Path) -> None:
    """Each by a store of its own, as many as may be, and no more."""
    together = Barrier(3)

    def meet(store: Store) -> int:
        together.wait(timeout=60)
        return id(store)

    with StoreThreads(place, most=3) as threads, ThreadPoolExecutor(9) as callers:
        stores = list(callers.map(lambda _: threads.call(meet), range(9)))
        assert len(set(stores)) == 3
        found = list(callers.map(lambda text: threads.call(lambda it: best(it, text)), TEXTS))
        assert found == TEXTS
        assert len(running()) == 3


def test_an_error_is_its_callers(place: Path) -> None:
    """And the thread goes on."""
    with StoreThreads(place, most=1) as threads:
        with pytest.raises(KeyError):
            threads.call(lambda store: store.show("chunked/no.md"))
        with pytest.raises(SystemExit):
            threads.call(lambda _: sys.exit(3))
        assert threads.call(lambda store: best(store, TEXTS[3])) == TEXTS[3]


def test_where_there_is_no_store_nothing_stays_behind(tmp_path: Path) -> None:
    """The error comes at once, and no thread waits for calls."""
    with pytest.raises(filestore.NoStoreError):
        StoreThreads(tmp_path)
    gc.collect()
    assert running() == []


def test_whoever_forgets_to_close_leaves_nothing_open(place: Path) -> None:
    """The stores are closed with the object, and with the program, which ends without delay."""
    threads = StoreThreads(place)
    threads.call(lambda store: best(store, "rent"))
    del threads
    gc.collect()
    assert running() == []
    program = (
        "from filestore import StoreThreads\n"
        f"kept = StoreThreads({str(place)!r})\n"
        "print(len(kept.call(lambda store: store.search('rent', k=3))))\n"
    )
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_what_was_closed_says_so(place: Path) -> None:
    """Instead of opening it again unseen."""
    threads = StoreThreads(place)
    threads.close()
    threads.close()
    with pytest.raises(UsageError, match="was closed"):
        threads.call(lambda store: store.root)


def test_the_store_is_opened_again_where_it_is_another_one(place: Path) -> None:
    """Settings that changed, an index that was made anew, a store that went and came back."""
    with StoreThreads(place, most=1) as threads:
        first = threads.call(lambda store: (id(store), best(store, TEXTS[0])))
        assert threads.call(lambda store: (id(store), best(store, TEXTS[0]))) == first
        settings = place / "filestore.toml"
        settings.write_text(settings.read_text().replace("budget = ", "budget = 1", 1))
        changed = threads.call(lambda store: store.settings.budget)
        assert changed > 1000
        with filestore.open(place) as other:
            (place / "chunked" / "notes" / "new.md").write_text("Nobody knew of herrings.\n")
            (place / ".sidecar" / "catalog.sqlite").unlink()
            other.sync()
        assert threads.call(lambda store: best(store, "herrings")) == "Nobody knew of herrings.\n"
        away = place.rename(place.with_name("away"))
        with pytest.raises(filestore.NoStoreError):
            threads.call(lambda store: best(store, "herrings"))
        away.rename(place)
        assert threads.call(lambda store: best(store, "herrings")) == "Nobody knew of herrings.\n"


def test_threads_share_one_model(place: Path) -> None:
    """It is in memory once, and one thread at a time asks it."""
    with StoreThreads(place, most=3) as threads, ThreadPoolExecutor(3) as callers:
        together = Barrier(3)

        def model(store: Store) -> int:
            together.wait(timeout=60)
            assert store.search(TEXTS[0], mode="vector").hits
            return id(store.embedder)

        models = set(callers.map(lambda _: threads.call(model), range(3)))
        assert len(models) == 1


def test_a_call_that_nobody_waits_for_is_not_made(place: Path) -> None:
    """What was cancelled before a thread came to it."""
    made = []
    with StoreThreads(place, most=1) as threads:
        begun, go_on = Barrier(2), Barrier(2)

        def slow(_: Store) -> None:
            begun.wait(timeout=60)
            go_on.wait(timeout=60)

        first = threads.submit(slow)
        begun.wait(timeout=60)
        second = threads.submit(lambda _: made.append(1))
        assert second.cancel()
        assert threads.waiting == 2
        go_on.wait(timeout=60)
        first.result(timeout=60)
        threads.call(lambda _: None)
        assert (made, threads.waiting) == ([], 0)


def test_a_relative_path_means_the_folder_of_then(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the working folder is when another thread opens it."""
    monkeypatch.chdir(place.parent)
    with StoreThreads("kb") as threads:
        monkeypatch.chdir("/")
        together = Barrier(2)

        def root(store: Store) -> str:
            together.wait(timeout=60)
            return store.root

        with ThreadPoolExecutor(2) as callers:
            roots = set(callers.map(lambda _: threads.call(root), range(2)))
        assert roots == {str(place)}


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_opens_its_own(place: Path) -> None:
    """Threads do not come along; servers fork after they loaded a program."""
    with StoreThreads(place) as threads:
        assert threads.call(lambda store: best(store, TEXTS[1])) == TEXTS[1]
        context = multiprocessing.get_context("fork")
        answers = context.SimpleQueue()

        def child() -> None:
            answers.put((os.getpid(), threads.call(lambda store: best(store, TEXTS[2]))))
            threads.close()

        process = context.Process(target=child)
        process.start()
        process.join(timeout=60)
        assert process.exitcode == 0
        assert answers.get() == (process.pid, TEXTS[2])
        assert threads.call(lambda store: best(store, TEXTS[1])) == TEXTS[1]


def test_what_the_user_allows_no_more_is_not_reached(tmp_path: Path, run: Run) -> None:
    """A store that stays open follows the user's own file, as one that is opened now does."""
    words = ["winter ferry timetable\n", "summer hats\n"]
    with EmbeddingServer() as server:
        with filestore.create(
            tmp_path / "kb", embedder="openai:small", endpoint=server.endpoint
        ) as store:
            store.put(words, into="notes")
        with StoreThreads(tmp_path / "kb") as threads:
            assert threads.call(lambda store: store.search("ferry")).mode == "hybrid"
            assert run("trust", "--revoke", cwd=tmp_path / "kb").code == 0
            asked = len(server.requests)
            assert threads.call(lambda store: store.search("ferry")).mode == "keyword"
            assert len(server.requests) == asked
            assert run("trust", "--yes", cwd=tmp_path / "kb").code == 0
            assert threads.call(lambda store: store.search("ferry")).mode == "hybrid"


def test_what_changes_while_a_store_is_opened_is_seen(place: Path) -> None:
    """Also settings that are written in as many bytes, with their time of before."""
    settings = place / "filestore.toml"
    with StoreThreads(place, most=1) as threads:
        for budget in (501, 502, 503):
            before = settings.stat()
            settings.write_text(re.sub(r"budget = \d+", f"budget = {budget}", settings.read_text()))
            os.utime(settings, ns=(before.st_atime_ns, before.st_mtime_ns))
            assert threads.call(lambda store: store.settings.budget) == budget


def test_a_model_that_comes_later_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service is asked by the first sync, which another process may do."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with EmbeddingServer() as server:
        filestore.create(tmp_path / "kb", embedder="openai:small", endpoint=server.endpoint).close()
        # How long its vectors are is known nowhere here.
        shutil.rmtree(tmp_path / "cache")
        (tmp_path / "kb" / "chunked" / "notes.md").write_text("winter ferry timetable\n")
        with StoreThreads(tmp_path / "kb", most=1) as threads:
            assert threads.call(lambda store: store.model.problem) is not None
            with filestore.open(tmp_path / "kb") as other:
                other.sync()
            assert threads.call(lambda store: store.search("ferry")).mode == "hybrid"
            assert threads.call(lambda store: store.model.problem) is None
