"""Random histories of originals and of chunk files, each followed by updates: nothing is lost."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.chunks import chunk_file
from filestore.store import Store
from tests.system.conftest import files_below, prose

TOPICS: Final = ("apples", "pears", "plums", "cherries", "figs", "quinces")
NAMES: Final = ("Home.md", "Yard.md", "sub/Attic.md", "sub/Cellar.md", "Loft.md")
DEEDS: Final = (
    "word",
    "section",
    "cut",
    "new",
    "rename",
    "copy",
    "delete",
    "edit",
    "title",
    "move",
)
EXAMPLES: Final = int(os.environ.get("UPDATE_EXAMPLES", "6"))
"""Random histories in each layout; ``UPDATE_EXAMPLES=500`` tries more."""

Deed = tuple[str, int, int]
"""What is done, and two numbers that choose to what."""


def section(topic: str) -> str:
    """A section that fills a chunk, in words that no other has."""
    return f"## About {topic}\n\n{prose(topic)}\n"


@dataclass
class History:
    """A work tree with a store, the folder `wiki` added to it, and what people did since."""

    folder: Path
    layout: str
    marks: list[str] = field(default_factory=list)
    """Words that a person wrote into chunk files."""
    touched: set[str] = field(default_factory=set)
    """Texts of chunk files in which somebody did something, by their first line."""

    @property
    def wiki(self) -> Path:
        """The originals."""
        return self.folder / "wiki"

    @property
    def root(self) -> Path:
        """The store."""
        return self.folder / "file_index"

    def truth(self) -> dict[str, bytes]:
        """Every file that a person commits."""
        found = files_below(self.root)
        return {k: v for k, v in found.items() if not k.startswith((".sidecar/", ".undo/"))}

    def originals(self) -> list[Path]:
        """The originals that are there."""
        return sorted(path for path in self.wiki.rglob("*.md") if path.is_file())

    def chunks(self) -> list[Path]:
        """The chunk files that are there."""
        found = (self.root / "chunked").rglob("*.md")
        return sorted(path for path in found if path.is_file())

    def do(self, deed: Deed) -> None:
        """Do one thing; what cannot be done is left."""
        what, which, how = deed
        if what in ("edit", "title", "move"):
            files = self.chunks()
            if files:
                self._to_chunk(what, files[which % len(files)], how)
            return
        if what == "new":
            self._write(self.wiki / NAMES[which % len(NAMES)], [TOPICS[how % len(TOPICS)]])
            return
        files = self.originals()
        if files:
            self._to_original(what, files[which % len(files)], how)

    def _write(self, path: Path, topics: Sequence[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        body = "\n".join(section(f"{topic} of {path.stem}") for topic in topics)
        path.write_text(f"# {path.stem}\n\n{body}")

    def _to_original(self, what: str, path: Path, how: int) -> None:
        text = path.read_text()
        if what == "word":
            path.write_text(text.replace(f"step {how % 11 + 1}.", f"step {how} again."))
        elif what == "section":
            path.write_text(text + "\n" + section(f"{TOPICS[how % len(TOPICS)]} {how}"))
        elif what == "cut":
            parts = text.split("\n## ")
            del parts[how % len(parts)]
            path.write_text("\n## ".join(parts) or "Nothing.\n")
        elif what == "delete":
            path.unlink()
        else:
            target = path.with_name(f"Page{how}.md")
            if not target.exists():
                path.rename(target) if what == "rename" else target.write_text(text)

    def _to_chunk(self, what: str, path: Path, how: int) -> None:
        chunk = chunk_file.parse(path.read_bytes())
        self.touched.add(chunk.source or "")
        if what == "move":
            target = path.with_name(f"mine {how}.md")
            if not target.exists():
                path.rename(target)
            return
        mark = f"MINE{len(self.marks)}"
        self.marks.append(mark)
        if what == "edit":
            path.write_bytes(path.read_bytes() + f"\n{mark}\n".encode())
        else:
            path.write_bytes(
                path.read_bytes().replace(
                    b"---\n", f"---\nmine{len(self.marks)}: {mark}\n".encode(), 1
                )
            )

    def sources(self) -> set[str]:
        """The originals that a person's chunk files name."""
        found = set()
        for path in self.chunks():
            if b"MINE" in path.read_bytes() or path.name.startswith("mine "):
                found.add(chunk_file.parse(path.read_bytes()).source or "")
        return found


def made_of(root: Path) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """The chunks of each original in reading order: text and headings."""
    found: dict[str, list[tuple[str, str, str, tuple[str, ...]]]] = {}
    for path in sorted((root / "chunked").rglob("*.md")):
        if path.is_file():
            chunk = chunk_file.parse(path.read_bytes())
            key = chunk_file.sort_key(chunk.order, path.name)
            found.setdefault(chunk.source or "", []).append((key, chunk.body, chunk.headings))
    return {
        source: [(body.rstrip("\n"), headings) for _, body, headings in sorted(chunks)]
        for source, chunks in found.items()
    }


def check_as_added_afresh(history: History, *, removed: bool) -> None:
    """What nobody edited is what a store gives that adds the originals now."""
    with tempfile.TemporaryDirectory(dir=history.folder) as other:
        root = Path(other) / "file_index"
        with Store.create(root, embedder="builtin", layout=history.layout) as store:
            if history.originals():
                store.add(history.wiki)
        expected = {
            "../wiki/" + source.partition("wiki/")[2]: chunks
            for source, chunks in made_of(root).items()
        }
    found = made_of(history.root)
    theirs = history.sources() | history.touched
    assert {s: c for s, c in expected.items() if s not in theirs} == {
        s: c for s, c in found.items() if s in expected and s not in theirs
    }
    if removed and history.originals():
        assert found.keys() - theirs <= expected.keys()


def check_marks(history: History, before: dict[str, bytes]) -> None:
    """Whatever a person wrote is there as often as it was."""
    now = b"".join(path.read_bytes() for path in history.chunks())
    for mark in history.marks:
        word = f"{mark}\n".encode()
        assert now.count(word) == b"".join(before.values()).count(word), mark


def update(history: History, store: Store, *, remove_gone: bool) -> None:
    """Update, and hold everything that an update promises."""
    before = history.truth()
    report = store.update(remove_gone=remove_gone)
    assert [str(one.error) for one in report.failed] == []
    after = history.truth()
    check_marks(history, before)
    again = store.update(remove_gone=remove_gone)
    assert (again.undo, history.truth()) == (None, after)
    assert (report.undo is None) == (before == after)
    if report.undo:
        store.undo(report.undo)
        assert history.truth() == before
        store.redo(report.undo)
        assert history.truth() == after
    check_as_added_afresh(history, removed=remove_gone)


def run(layout: str, rounds: Sequence[tuple[list[Deed], bool]]) -> None:
    """One history."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".git").mkdir()
        history = History(Path(folder), layout)
        for number, name in enumerate(NAMES[:3]):
            history._write(history.wiki / name, TOPICS[number : number + 3])
        with Store.create(history.root, embedder="builtin", layout=layout) as store:
            store.add(history.wiki)
            for deeds, remove_gone in rounds:
                for deed in deeds:
                    history.do(deed)
                update(history, store, remove_gone=remove_gone)


ROUNDS = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.sampled_from(DEEDS), st.integers(0, 9), st.integers(0, 30)),
            min_size=1,
            max_size=6,
        ),
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("layout", ["tree", "flat"])
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rounds=ROUNDS)
def test_random_histories(layout: str, rounds: list[tuple[list[Deed], bool]]) -> None:
    """Hand edits stay, the rest is as added afresh, twice is once, undo takes it all back."""
    run(layout, rounds)
