"""What must hold of `status` where the tree is watched: the same answer, and how it came."""

import asyncio
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

import filestore
from filestore.fs.watched_tree import WatchedTree
from filestore.server.operations import ROUTES
from filestore.server.stores import Access, Stores
from tests.system.fs.test_watched_tree import KeptWalk, limits
from tests.system.server.conftest import GAS, PERSON, RENT

pytest.importorskip("inotify_simple")

LAYOUTS = ("tree", "flat", "in-place")


def status(stores: Stores) -> dict[str, Any]:
    """What the server answers."""
    return asyncio.run(stores.named(None).ask(ROUTES["status"], {}, PERSON))


def test_the_second_answer_looks_only_at_what_changed(stores: Stores, place: Path) -> None:
    """And says so; what changed is in it."""
    assert not status(stores)["watched"]["used"]
    assert status(stores)["clean"]
    (place / "chunked" / "notes" / "rent.md").write_text(GAS)
    found = status(stores)
    assert found["watched"] == {"used": True, "reason": ""}
    assert found["drift"] == {"modified": ["chunked/notes/rent.md"]}


def test_readers_and_writers_share_one_watch(stores: Stores, place: Path) -> None:
    """What one of the server's threads changed is no surprise to the others."""
    status(stores)
    (place / "chunked" / "notes" / "rent.md").write_text(GAS)
    asyncio.run(stores.named(None).ask(ROUTES["sync"], {}, PERSON))
    found = status(stores)
    assert found["clean"]
    assert found["watched"]["used"]


def test_settings_that_change_are_followed(tmp_path: Path) -> None:
    """Rules of another store: everything is looked at again, by them."""
    with filestore.create(tmp_path / "kb", layout="in-place", embedder="builtin") as store:
        for name in ("rent", "gas"):
            (tmp_path / "kb" / f"{name}.md").write_text(RENT)
        store.sync()
    with Stores.open([str(tmp_path / "kb")], Access()) as stores:
        assert status(stores)["clean"]
        settings = tmp_path / "kb" / "filestore.toml"
        settings.write_text('ignore = ["gas.md"]\n' + settings.read_text())
        found = status(stores)
        assert found["drift"] == {"left-out": ["gas.md"]}
        assert not found["watched"]["used"]
        assert status(stores)["watched"]["used"]


def test_many_may_ask_while_others_write(stores: Stores, place: Path) -> None:
    """Every answer has what was written before it was asked for."""
    late = []
    served = stores.named(None)

    def write(number: int) -> None:
        for turn in range(15):
            path = place / "chunked" / f"w{number}" / f"{turn}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"number {turn} of {number}")
            found = asyncio.run(served.read(lambda store: store.status()))
            if f"chunked/w{number}/{turn}.md" not in found.drift["untracked"]:
                late.append(path)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not late


class WatchedStatus(KeptWalk):
    """A store that everything happens to, asked with a watch and without."""

    layout = "tree"

    @initialize()
    def make(self) -> None:
        """A store with a few files."""
        self.folder = Path(tempfile.mkdtemp(prefix="filestore-watched-"))
        place, self.beside = self.folder / "kb", self.folder / "beside"
        filestore.create(place, layout=self.layout, embedder="builtin").close()
        self.root = place if self.is_in_place() else place / "chunked"
        self.fill(self.root)
        self.fill(self.beside)
        self.watched, self.store, self.plain = WatchedTree(), *map(filestore.open, (place, place))
        self.store.watch_tree(self.watched)

    def is_in_place(self) -> bool:
        """Whether rules leave some of it out."""
        return self.layout == "in-place"

    @rule()
    def sync(self) -> None:
        """The index is brought up to date."""
        self.plain.sync()

    @invariant()
    def is_a_walk(self) -> None:
        """Both give the same answer."""
        if hasattr(self, "store"):
            found = self.store.status().to_dict()
            found.pop("watched", None)
            assert found == self.plain.status().to_dict()

    def teardown(self) -> None:
        """Leave nothing behind."""
        if hasattr(self, "store"):
            for opened in (self.store, self.plain, self.watched):
                opened.close()
            shutil.rmtree(self.folder)


def machine(layout: str) -> type[WatchedStatus]:
    """The machine for stores of one layout."""
    return type(f"Watched{layout.title()}", (WatchedStatus,), {"layout": layout})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_answer_is_that_of_a_walk(layout: str) -> None:
    """Whatever is done to the tree."""
    run_state_machine_as_test(machine(layout), settings=limits(6, 15))


@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_answer_stays_that_of_a_walk_for_long(layout: str) -> None:
    """The same, with many more trees."""
    run_state_machine_as_test(machine(layout), settings=limits(25, 40))
