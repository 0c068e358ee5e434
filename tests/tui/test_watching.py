"""What changes below a store is told, and nothing else; on the one thread that asked."""

import gc
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from filestore import FilestoreError, Store
from filestore.core.paths import CHUNKS, DOCUMENTS, Tree
from filestore.store.watch import (
    MOST_PATHS,
    CatalogChanged,
    Changed,
    Notice,
    Ready,
    Unavailable,
    changes,
)
from tui.workers.file_watcher import FileWatcher

from .processes import children, is_running, start

PATIENCE_S: Final = 90


class Watch:
    """A watch over a store, and what it told, each time on this thread."""

    def __init__(self, root: Path, tree: Tree = CHUNKS) -> None:
        self.root = root
        catalog = root / tree.sidecar / "catalog.sqlite"
        self.posted: queue.Queue[Callable[[], None]] = queue.Queue()
        self.paths: set[str] = set()
        self.everything = 0
        self.stores = 0
        self.is_ready = False
        self.threads: set[threading.Thread] = set()
        self.watching = FileWatcher(
            str(root),
            catalog=str(catalog),
            tree=tree,
            post=self.posted.put,
            notify=self._take,
        )
        self.until(lambda: self.is_ready)

    def _take(self, notice: Notice | FilestoreError) -> None:
        match notice:
            case Changed(paths=paths):
                self.threads.add(threading.current_thread())
                self.paths |= paths or frozenset()
                self.everything += paths is None
            case CatalogChanged():
                self.stores += 1
            case Ready():
                self.is_ready = True

    def until(self, reached: Callable[[], bool]) -> None:
        """Take what is told until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            assert time.monotonic() < deadline, (self.paths, self.everything, self.stores)
            try:
                self.posted.get(timeout=0.1)()
            except queue.Empty:
                continue

    def write(self, path: str, text: str = "text") -> None:
        """Write a file below the store."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store that holds one file."""
    folder = tmp_path / "store"
    configuration = str(tmp_path / "configuration")
    with Store.create(
        str(folder), layout="tree", embedder="builtin", configuration=configuration
    ) as store:
        (folder / "chunked" / "first.md").write_text("The first text.\n")
        store.sync()
    return folder


@pytest.fixture
def watch(root: Path) -> Iterator[Watch]:
    """A watch over the store, ready."""
    found = Watch(root)
    yield found
    found.watching.end()


def test_changes_are_told_by_their_paths(watch: Watch, root: Path) -> None:
    """Files that are written, moved or removed are named; what is not the store's is not."""
    watch.write(".git/index", "git")
    watch.write("elsewhere.txt", "of no concern")
    watch.write("chunked/.filestore-tmp-1", "half a file")
    watch.write("chunked/new.md")
    os.rename(root / "chunked/first.md", root / "chunked/second.md")
    watch.write("source/a.txt")
    with open(root / "filestore.toml", "a", encoding="utf-8") as settings:
        settings.write("\n")
    watch.write("chunked/last.md")
    expected = {
        "chunked/new.md",
        "chunked/first.md",
        "chunked/second.md",
        "chunked/last.md",
        "source",
        "filestore.toml",
    }
    watch.until(lambda: expected <= watch.paths)
    assert watch.paths - expected <= {"source/a.txt", "chunked"}
    assert watch.threads == {threading.current_thread()}


def test_changes_of_documents_in_place_are_told(tmp_path: Path) -> None:
    """A note anywhere in the folder, and what keeps notes out; neither git's files nor our own."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "Home.md").write_text("Where all begins.\n")
    # What is written into a folder as it is made may be told of the folder alone.
    (folder / "chunked" / "sub").mkdir(parents=True)
    configuration = str(tmp_path / "configuration")
    with Store.create(
        str(folder), layout="in-place", embedder="builtin", configuration=configuration
    ) as store:
        store.sync()
    watch = Watch(folder, DOCUMENTS)
    watch.write(".git/index", "git")
    watch.write(".obsidian/workspace.md", "of an editor")
    watch.write("chunked/sub/new.md")
    with Store(str(folder), configuration=configuration) as store:
        store.sync()
    watch.write(".gitignore", "*.pdf\n")
    os.rename(folder / "Home.md", folder / "Start.md")
    expected = {"chunked/sub/new.md", ".gitignore", "Home.md", "Start.md"}
    watch.until(lambda: expected <= watch.paths and watch.stores > 0)
    assert watch.paths - expected <= {"chunked", "chunked/sub"}
    watch.watching.end()


def test_catalog_that_is_written_is_told_and_reading_it_is_not(watch: Watch, root: Path) -> None:
    """A sync by somebody else is noticed; looking at the store tells nothing."""
    watch.write("chunked/new.md", "Another text.\n")
    with Store(str(root), configuration=str(root)) as store:
        store.sync()
    watch.until(lambda: watch.stores > 0)
    watch.write("chunked/mark.md")
    watch.until(lambda: "chunked/mark.md" in watch.paths)
    told = watch.stores
    with Store(str(root), configuration=str(root)) as store:
        assert store.status().files == 2
        assert [one["chunks"] for one in store.resources()] != []
    watch.write("chunked/mark2.md")
    watch.until(lambda: "chunked/mark2.md" in watch.paths)
    assert watch.stores == told


def scripted(
    root: Path, monkeypatch: pytest.MonkeyPatch, *batches: Exception | set[tuple[int, str]]
) -> tuple[list[Notice], list[bool | None]]:
    """What is reported where the system reports batches of events, and whether each was polled."""
    polls: list[bool | None] = []
    coming = iter(batches)
    stop = threading.Event()

    def watch(*_: str, force_polling: bool | None, **__: object) -> Iterator[set[tuple[int, str]]]:
        for batch in coming:
            polls.append(force_polling)
            if isinstance(batch, Exception):
                raise batch
            yield batch
        stop.set()

    monkeypatch.setattr("watchfiles.watch", watch)
    monkeypatch.setattr("filestore.store.watch._TICK_S", 0.0)
    found = [notice for notice in changes(str(root), stop=stop) if notice is not None]
    return found, polls


def test_too_many_paths_are_everything(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond some thousand paths none is named."""
    few = {(1, f"{root}/chunked/{number}.md") for number in range(MOST_PATHS)}
    found, _ = scripted(root, monkeypatch, few, few | {(1, f"{root}/chunked/one.md")})
    named = frozenset(f"chunked/{number}.md" for number in range(MOST_PATHS))
    assert found == [Ready(), Changed(paths=named), Changed(paths=None)]


def test_tree_is_polled_where_the_system_reports_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for watches it says so once, polls, and misses nothing that came between."""
    found, polls = scripted(root, monkeypatch, OSError(28, "no space"), set())
    assert found == [Unavailable(reason="[Errno 28] no space"), Ready(), Changed(paths=None)]
    assert polls == [None, True]
    found, polls = scripted(root, monkeypatch, FileNotFoundError("gone"), ValueError("name"), set())
    assert found == [Unavailable(reason="gone"), Ready(), Changed(paths=None)]
    assert polls == [None, None, None]


def test_store_that_is_replaced_is_watched_again(watch: Watch, root: Path) -> None:
    """Where the root becomes another folder, everything may have changed, and it is watched."""
    os.rename(root, root.with_name("old"))
    (root / "chunked").mkdir(parents=True)
    watch.until(lambda: watch.everything > 0)
    watch.write("chunked/after.md")
    watch.until(lambda: "chunked/after.md" in watch.paths)


def test_end_leaves_nothing(root: Path) -> None:
    """No process, thread or file is left, also where it ends before it really began."""
    # What earlier tests left behind in this process may go at any moment: only more is an error.
    gc.collect()
    handles = set(os.listdir("/proc/self/fd"))
    threads = set(threading.enumerate())
    others = set(children())
    for waits in (True, False):
        if waits:
            Watch(root).watching.end()
        else:
            FileWatcher(
                str(root),
                catalog=str(root / ".sidecar" / "catalog.sqlite"),
                post=lambda _: None,
                notify=lambda _: None,
            ).end()
        assert set(threading.enumerate()) <= threads
        assert set(os.listdir("/proc/self/fd")) <= handles
        assert set(children()) <= others


def test_watcher_ends_with_the_screen(root: Path) -> None:
    """When the screen is killed, so that it can say nothing, the watching process is gone, too."""
    program = (
        "import queue, sys, time\n"
        "from tui.workers.file_watcher import FileWatcher\n"
        "posted = queue.Queue()\n"
        "root = sys.argv[1]\n"
        "catalog = root + '/.sidecar/catalog.sqlite'\n"
        "watching = FileWatcher(root, catalog=catalog, post=posted.put, notify=print)\n"
        "posted.get()\n"
        "print(watching._child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    screen = start(program, str(root))
    assert screen.stdout is not None
    pid = int(screen.stdout.readline())
    os.kill(screen.pid, signal.SIGKILL)
    screen.wait()
    screen.stdout.close()
    deadline = time.monotonic() + PATIENCE_S
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)
