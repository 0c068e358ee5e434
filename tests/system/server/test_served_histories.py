"""What must hold of commands that a server answers, whatever is done to the store meanwhile."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import filestore
from filestore.cli.serve import run_words, streams
from filestore.core.caller import Caller
from filestore.core.errors import FilestoreError
from filestore.server import wire
from filestore.server.listening import Reply, Request
from filestore.server.stores import Access, Stores
from tests.system.fs.test_watched_tree import limits

LAYOUTS = ("tree", "flat", "in-place")
NAMES = ["a.md", "b.md", "c.md"]
FOLDERS = ["", "r1", "r1/deep", "r2"]
PATHS = st.builds(os.path.join, st.sampled_from(FOLDERS), st.sampled_from(NAMES))
TEXTS = ["The rent is paid in March.\n", "The heat is paid in March.\n", "A quetzal is a bird.\n"]
"""The first two are of one length."""
PARTS = ("catalog.sqlite", "embeddings.sqlite", "fulltext", "")
QUESTIONS = (
    ("status", "--json"),
    ("search", "rent", "quetzal", "--json"),
    ("status",),
    ("search", "paid in march", "--mode", "keyword"),
    ("search", "a bird", "--mode", "vector"),
    ("ls",),
    ("about", "--json"),
    ("show", "a.md"),
    ("links", "a.md"),
    ("similar", "a.md"),
)


class ServedHistory(RuleBasedStateMachine):
    """A store that everything happens to, and the server that has had it open all the time."""

    layout = "tree"

    @initialize()
    def make(self) -> None:
        """A store with a few files that is served."""
        self.folder = Path(tempfile.mkdtemp(prefix="filestore-served-"))
        self.place = self.folder / "kb"
        filestore.create(self.place, layout=self.layout, embedder="builtin").close()
        self.tree = self.place if self.layout == "in-place" else self.place / "chunked"
        self.sidecar = self.place / (".filestore" if self.layout == "in-place" else ".sidecar")
        for name, text in zip(("a.md", "r1/b.md", "r1/deep/c.md"), TEXTS, strict=True):
            self.write(name, text)
        self.sync()
        self.stores = Stores.open([str(self.place)], Access())
        self.settings = (self.place / "filestore.toml").read_text()
        shutil.copytree(self.sidecar, self.folder / "saved")
        assert None not in [self.served(words) for words in (*QUESTIONS, ("ls",))[:-4]]

    @rule(path=PATHS, text=st.sampled_from(TEXTS))
    def write(self, path: str, text: str) -> None:
        """A file is written, in folders that may be new."""
        attempt(lambda: (self.tree / path).parent.mkdir(parents=True, exist_ok=True))
        attempt(lambda: (self.tree / path).write_text(text))

    @rule(path=PATHS, text=st.sampled_from(TEXTS))
    def write_secretly(self, path: str, text: str) -> None:
        """A file is written, and has its time of before again."""
        with contextlib.suppress(OSError):
            before = os.stat(self.tree / path)
            (self.tree / path).write_text(text)
            os.utime(self.tree / path, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(path=PATHS, seconds=st.sampled_from([0, 2**31]))
    def set_clock(self, path: str, seconds: int) -> None:
        """A file is from long ago, or from the future."""
        attempt(lambda: os.utime(self.tree / path, (seconds, seconds)))

    @rule(old=st.sampled_from(FOLDERS[1:]), new=st.sampled_from(FOLDERS[1:]))
    def rename(self, old: str, new: str) -> None:
        """A folder gets another name."""
        attempt(lambda: os.rename(self.tree / old, self.tree / new))

    @rule(path=PATHS)
    def remove(self, path: str) -> None:
        """A file goes."""
        attempt((self.tree / path).unlink)

    @rule(path=PATHS, to=PATHS, hard=st.booleans())
    def link(self, path: str, to: str, hard: bool) -> None:
        """A file gets another name, or a symbolic link takes one."""
        make = os.link if hard else os.symlink
        attempt(lambda: make(self.tree / to, self.tree / path))

    @rule()
    def replace_tree(self) -> None:
        """The whole tree is another folder, with the same in it."""
        shutil.copytree(self.tree, self.folder / "copy", symlinks=True)
        os.rename(self.tree, self.folder / "old")
        os.rename(self.folder / "copy", self.tree)
        shutil.rmtree(self.folder / "old")

    @rule()
    def sync(self) -> None:
        """The index is brought up to date."""
        with contextlib.suppress(FilestoreError), filestore.open(self.place) as store:
            store.sync()

    @rule(budget=st.sampled_from([300, 900]), secretly=st.booleans())
    def set(self, budget: int, secretly: bool) -> None:
        """Settings change; also with their time of before, in as many bytes."""
        path = self.place / "filestore.toml"
        before = path.stat()
        text = self.settings.replace("budget = ", f"budget = {budget} # ", 1)
        path.write_text(text)
        if secretly:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(part=st.sampled_from(PARTS))
    def lose(self, part: str) -> None:
        """A derived part goes, or all of them."""
        place = self.sidecar / part
        attempt(lambda: shutil.rmtree(place) if place.is_dir() else place.unlink())

    @rule(part=st.sampled_from(PARTS), in_one_step=st.booleans())
    def restore(self, part: str, in_one_step: bool) -> None:
        """A derived part, or all, are those of the beginning again."""
        target, saved = self.sidecar / part, self.folder / "saved" / part
        if in_one_step or not target.exists():
            copy = self.folder / "new"
            attempt(lambda: (shutil.copytree if saved.is_dir() else shutil.copy2)(saved, copy))
            self.lose(part)
            attempt(lambda: os.rename(copy, target))
        elif saved.is_dir():
            # Over a file that tantivy has mapped, `cp` ends whoever reads it: the system's signal.
            attempt(
                lambda: shutil.copytree(saved, target, copy_function=replaced, dirs_exist_ok=True)
            )
        else:
            attempt(lambda: shutil.copyfile(saved, target))

    def served(self, words: tuple[str, ...]) -> Reply | None:
        """What the server answers; None where it leaves that to the command."""
        return asked(lambda job: self.stores.named(None).submit(job).result(), self.tree, words)

    @rule(words=st.sampled_from(QUESTIONS))
    def ask(self, words: tuple[str, ...]) -> None:
        """What the server answers is what the store says to whoever opens it now."""

        def once(job: Callable[[Any], Any]) -> Any:
            with filestore.open(self.place) as store:
                return job(store)

        # Whoever opens a catalog that was written over may change what the next one sees.
        before = said(asked(once, self.tree, words))
        found = self.served(words)
        assert found is None or said(found) in (before, said(asked(once, self.tree, words))), words

    @invariant()
    def is_not_of_before(self) -> None:
        """That holds at every moment."""
        if hasattr(self, "stores"):
            self.ask(QUESTIONS[0])
            self.ask(QUESTIONS[1])

    def teardown(self) -> None:
        """Leave nothing behind."""
        if hasattr(self, "stores"):
            self.stores.close()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


def replaced(source: str, target: str) -> None:
    """Put a copy in the place of a file, as tar and rsync do."""
    shutil.copy2(source, f"{target}.copy")
    os.replace(f"{target}.copy", target)


def attempt(job: Callable[[], object]) -> None:
    """Do what may be refused as things are."""
    with contextlib.suppress(OSError, shutil.Error):
        job()


def asked(
    call: Callable[[Callable[[Any], Any]], Any], folder: Path, words: tuple[str, ...]
) -> Reply | None:
    """What a command says of a store."""
    request = Request(surroundings=b"", caller=Caller(folder=str(folder)), words=words)
    with contextlib.suppress(FilestoreError, OSError), streams():
        return call(lambda store: run_words(store, request))  # type: ignore[no-any-return]
    return None


def said(reply: Reply | None) -> object:
    """Exit code and standard output, without the way in which a server came to know."""
    if reply is None:
        return None
    text = b"".join(data for kind, data in reply.parts if kind == wire.TEXT)
    if text.startswith(b"{"):
        return reply.code, json.loads(text) | {"watched": None}
    return reply.code, text


def machine(layout: str) -> type[ServedHistory]:
    """The machine for stores of one layout."""
    return type(f"Served{layout.title()}", (ServedHistory,), {"layout": layout})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_answer_is_of_before(layout: str) -> None:
    """Files, settings and parts of the index change, go, and come back."""
    run_state_machine_as_test(machine(layout), settings=limits(5, 15))


def test_no_look_at_the_files_is_of_another_catalog() -> None:
    """One that is made anew counts its commits anew, and may come to the same number."""
    history = machine("flat")()
    try:
        history.make()
        history.remove(path="a.md")
        history.is_not_of_before()
        history.lose(part="catalog.sqlite")
        history.sync()
        history.is_not_of_before()
    finally:
        history.teardown()


@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_answer_is_of_before_for_long(layout: str) -> None:
    """The same, with many more histories."""
    run_state_machine_as_test(machine(layout), settings=limits(8, 30))
