"""Embeddings that nothing needs go by a person's word alone, and what is needed stays.

Needed is what a text here, a batch of undo or redo, or a view of a commit has.
"""

import contextlib
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore import FilestoreError
from filestore.embed.cache import EmbeddingCache
from filestore.server.operations import ROUTES
from tests.system.conftest import prose
from tests.system.embedding_server import EmbeddingServer

WORDS = ("amber", "basalt", "copper", "diorite", "emerald", "flint", "garnet", "zinc")
SEEDS = int(os.environ.get("PRUNE_EXAMPLES", "1"))
STEPS = 14
LAYOUTS = ("tree", pytest.param("flat", marks=pytest.mark.long), "in-place")


def rows(store: Any) -> int:
    """How many embeddings a store keeps."""
    with EmbeddingCache.open(store.places.embeddings, read_only=True) as cache:
        return sum(map(cache.count, cache.fingerprints()))


def made(folder: Path, layout: str) -> Any:
    """A store outside git, with some documents."""
    folder.mkdir()
    for name in WORDS[:4]:
        (folder / f"{name}.md").write_text(f"# {name}\n\nAll about {name}.\n")
    if layout == "in-place":
        store = filestore.create(folder, layout=layout, embedder="builtin")
        store.sync()
        return store
    store = filestore.create(folder / "kb", layout=layout, embedder="builtin")
    store.add(*(folder / f"{name}.md" for name in WORDS[:4]))
    return store


class History:
    """A store, and what happens to it."""

    def __init__(self, store: Any, chance: random.Random) -> None:
        self.store = store
        self.chance = chance
        self.tree = Path(store.places.chunked)
        self.count = 0

    def text(self) -> str:
        self.count += 1
        return f"# Note {self.count}\n\n{' '.join(self.chance.sample(WORDS, 3))} {self.count}.\n"

    def file(self) -> Path:
        found = sorted(
            path
            for path in self.tree.rglob("*.md")
            if path.is_file() and ".filestore" not in path.parts
        )
        return self.chance.choice(found) if found else self.tree / "new.md"

    def edit(self) -> None:
        self.file().write_text(self.text())
        self.store.sync(forget_missing=True)

    def write(self) -> None:
        (self.tree / f"n{self.count}.md").write_text(self.text())
        self.store.sync(forget_missing=True)

    def write_unseen(self) -> None:
        """A file with a text that was embedded before: no sync has seen it yet."""
        old = self.file()
        if old.exists():
            (self.tree / f"m{self.count}.md").write_bytes(old.read_bytes())

    def delete(self) -> None:
        self.file().unlink(missing_ok=True)
        self.store.sync(forget_missing=True)

    def note(self) -> None:
        self.store.add_note(
            self.text(), folder=None if self.store.places.tree.has_sections else "notes"
        )

    def edit_note(self) -> None:
        path = self.file()
        if path.exists():
            (old,) = path.read_text().splitlines()[-1:]
            self.store.edit_note(
                str(path.relative_to(self.store.root)), old=old, new=self.text().splitlines()[-1]
            )

    def undo(self) -> None:
        self.store.undo()

    def redo(self) -> None:
        self.store.redo()

    def prune(self) -> None:
        self.store.prune_embeddings()

    def step(self) -> None:
        with contextlib.suppress(FilestoreError):
            self.chance.choice((
                self.edit, self.write, self.write_unseen, self.delete, self.note, self.note,
                self.edit_note, self.edit_note, self.undo, self.undo, self.redo, self.prune,
            ))()  # fmt: skip


def everything_turned(store: Any, turn: str) -> Iterator[int]:
    """What each undo, or redo, embeds until there is none left that can be done."""
    groups = store.batches()
    for group in groups[::-1] if turn == "undo" else groups:
        with contextlib.suppress(FilestoreError):
            done = getattr(store, turn)(group.id)
            yield done.embedded if done else 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_after_a_prune_nothing_is_embedded_again(tmp_path: Path, layout: str) -> None:
    """Random histories: undo and redo of everything, and all texts here, cost nothing."""
    for seed in range(SEEDS):
        with made(tmp_path / str(seed), layout) as store:
            history = History(store, random.Random(seed))
            for _ in range(STEPS):
                history.step()
            found = store.prune_embeddings()
            assert (rows(store), found.is_done) == (found.kept, True)
            assert store.plan_prune().embeddings == 0
            assert store.sync(full=True).embedded == 0
            for turn in ("undo", "redo", "undo"):
                assert sum(everything_turned(store, turn)) == 0, (seed, turn)
            store.close()
            Path(store.places.catalog).unlink()
            assert store.sync(forget_missing=True).embedded == 0, seed
            assert store.sync(full=True).remaining == ()


@pytest.fixture
def edited(new_workspace: Callable[..., Any]) -> Any:
    """A store outside git, three of whose texts are gone, and one only undo has."""
    work = new_workspace()
    shutil.rmtree(work.folder / ".git")
    work.write("amber.md", f"# Amber\n\n{prose('amber')}")
    work("add", "amber.md")
    for number in range(4):
        work.write("file_index/chunked/note/n.md", f"Edit {number} of a note.\n")
        work.sync()
    work.write("zinc.md", "# Zinc\n\nWords of zinc.\n")
    work("add", "zinc.md")
    work("rm", "zinc.md")
    return work


def count(work: Any) -> int:
    with contextlib.closing(sqlite3.connect(work.sidecar / "embeddings.sqlite")) as cache:
        return int(cache.execute("SELECT count(*) FROM vectors").fetchone()[0])


def test_sync_full_that_a_person_typed_removes_them(edited: Any) -> None:
    """It says how many, and once; the file has no room for them any more."""
    before, size = count(edited), (edited.sidecar / "embeddings.sqlite").stat().st_size
    assert (
        "removed 3 embeddings that no passage here and no undo has"
        in edited("sync", "--full").stdout
    )
    assert count(edited) == before - 3
    assert (edited.sidecar / "embeddings.sqlite").stat().st_size <= size
    assert "pruned" not in edited.json("sync", "--full")
    assert edited.json("undo")["embedded"] == 0
    edited.assert_settled()


def test_nothing_else_removes_any(edited: Any) -> None:
    """Neither a plain sync nor a repair, a verification, the library, a server's sync or a hook."""
    before = count(edited)
    for words in (["sync"], ["sync", "--no-embed"], ["repair", "--yes"], ["verify"], ["update"]):
        edited(*words)
    with filestore.open(edited.store) as store:
        store.sync(full=True)
        store.sync(deep=True)
        served = ROUTES["sync"]
        served.checked({"full": True}).answer(store)
    assert count(edited) == before


@pytest.mark.parametrize("nested", [False, True])
def test_in_a_git_work_tree_only_prune_removes_them(edited: Any, nested: bool) -> None:
    """Another branch may bring texts back; also where a folder of the tree is one of its own."""
    before = count(edited)
    edited.git("init", "-q", *(["file_index/chunked/note"] if nested else []))
    assert "removed" not in edited("sync", "--full", code=None).stdout
    assert count(edited) == before
    assert "add --yes" in edited("embeddings", "prune", code=4).stderr
    planned = edited.json("embeddings", "prune", "--plan")
    assert (planned["embeddings"], planned["removed"], count(edited)) == (3, False, before)
    done = edited.json("embeddings", "prune", "--yes")
    assert done == planned | {"removed": True}
    assert count(edited) == before - 3 == done["kept"]
    assert edited.json("undo")["embedded"] == 0


def test_a_branch_there_and_back_embeds_nothing(workspace: Any) -> None:
    """Without a prune; and what a view of a commit has stays with one."""
    workspace.write("file_index/chunked/a/n.md", "Words of the first branch.\n")
    workspace.sync()
    workspace.git("add", "-A")
    workspace.git("commit", "-qm", "first")
    workspace.git("checkout", "-qb", "other")
    workspace.write("file_index/chunked/a/n.md", "Other words.\n")
    workspace.sync()
    workspace.git("commit", "-qam", "other")
    for branch in ("-", "-"):
        workspace.git("checkout", "-q", branch)
        assert workspace.sync("--full")["embedded"] == 0
    assert workspace.json("embeddings", "prune", "--plan")["embeddings"] == 1
    workspace("search", "words", "--at", "HEAD~1")
    assert workspace.json("embeddings", "prune", "--yes")["embeddings"] == 0


@pytest.mark.parametrize("beside", [False, True])
def test_every_model_keeps_what_it_needs(edited: Any, beside: bool) -> None:
    """What is gone goes of each, and a change there and back costs nothing."""
    with EmbeddingServer() as server:
        other = ("openai:small", "--endpoint", server.endpoint, "--yes")
        edited("embedder", "set", *other, *(["--beside"] if beside else []))
        edited.write("file_index/chunked/note/n.md", "The last edit of a note.\n")
        edited.sync()
        assert edited.json("sync", "--full")["pruned"] == 5
        edited.assert_settled()
        for name in (("builtin", "--yes"), other):
            words = ["switch"] if beside else ["set", *name]
            assert edited.json("embedder", *words).get("embedded", 0) <= 1 - beside
            assert edited.sync()["embedded"] == 0
