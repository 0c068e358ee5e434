"""A store that everything happens to: sync follows, embeds no text twice, and writes no truth."""

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from filestore.chunks import chunk_file
from filestore.core.findings import Finding
from filestore.core.hashing import embedding_key
from filestore.store import Store

NAMES = st.sampled_from(["a.md", "b.md", "sub/a.md", "sub/c.md", "sub/deep/d é.md"])
WORDS = st.sampled_from(["amber", "basalt", "copper", "diorite", "emerald", "flint"])
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(lambda words: " ".join(words) + ".\n")
BROKEN = {
    "malformed-frontmatter": b"---\n[\n---\nWords.\n",
    "invalid-metadata": b"---\noverlap: many\n---\nWords.\n",
    "bad-encoding": b"caf\xe9\n",
    "empty": b" \n",
}
PARTS = st.sampled_from(["catalog", "vectors", "full text", "stamp", "clock", "all but embeddings"])


WAITING = {"hand-edited", "duplicate", "name-collision", "ingest-conflict", "source-modified"}
"""What a person's edits may leave behind in a store that is in step."""


def drifted(found: Iterable[Finding]) -> set[tuple[str, str]]:
    """Code and path of what is not as it should be."""
    return {(one.code, one.path) for one in found if one.code not in WAITING}


class Drift(RuleBasedStateMachine):
    """Truth as a person changes it, beside what the index must have paid for so far."""

    @initialize(layout=st.sampled_from(["tree", "flat"]))
    def make(self, layout: str) -> None:
        """An empty store."""
        self.folder = Path(tempfile.mkdtemp(prefix="filestore-drift-"))
        self.root = self.folder / "store"
        self.chunked = self.root / "chunked"
        Store.create(
            str(self.root),
            layout=layout,
            embedder="builtin",
            configuration=str(self.folder / "configuration"),
        )
        self.paid: set[bytes] = set()
        self.number = 0

    def open(self) -> Store:
        return Store(str(self.root), configuration=str(self.folder / "configuration"))

    def truth(self) -> dict[str, bytes]:
        files = (path for path in self.chunked.rglob("*") if path.is_file())
        return {path.relative_to(self.chunked).as_posix(): path.read_bytes() for path in files}

    def chunks(self) -> list[Path]:
        return sorted(path for path in self.chunked.rglob("*.md") if path.is_file())

    def sound(self) -> dict[str, chunk_file.Chunk]:
        """Every chunk file that is to be found, parsed."""
        found = {}
        for path, data in self.truth().items():
            if path.endswith(".md") and data not in BROKEN.values():
                found[path] = chunk_file.parse(data)
        return found

    def keys(self) -> set[bytes]:
        chunks = self.sound().values()
        return {embedding_key(text) for chunk in chunks for text in chunk_file.texts(chunk)}

    @rule(name=NAMES, text=TEXTS, question=st.none() | WORDS)
    def write(self, name: str, text: str, question: str | None) -> None:
        """A person writes a file, over another or not."""
        path = self.chunked / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"---\nmood: good\nquestions:\n- What is {question}?\n---\n" if question else ""
        path.write_text(head + text)

    @rule(data=st.data(), text=TEXTS)
    @precondition(lambda self: self.chunks())
    def edit(self, data: st.DataObject, text: str) -> None:
        """A body gets another sentence."""
        path = data.draw(st.sampled_from(self.chunks()))
        if path.read_bytes() not in BROKEN.values():
            path.write_bytes(path.read_bytes() + text.encode())

    @rule(data=st.data(), mood=WORDS)
    @precondition(lambda self: self.chunks())
    def annotate(self, data: st.DataObject, mood: str) -> None:
        """A key of the user is added in front of a file."""
        path = data.draw(st.sampled_from(self.chunks()))
        content = path.read_bytes()
        if content not in BROKEN.values() and b"noted:" not in content:
            head, rest = (b"", content[4:]) if content.startswith(b"---\n") else (b"---\n", content)
            path.write_bytes(b"---\nnoted: " + mood.encode() + b"\n" + head + rest)

    @rule(data=st.data(), name=NAMES, copy=st.booleans())
    @precondition(lambda self: self.chunks())
    def transfer(self, data: st.DataObject, name: str, copy: bool) -> None:
        """A file is renamed or copied, over another or not."""
        path, target = data.draw(st.sampled_from(self.chunks())), self.chunked / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path != target:
            (shutil.copy2 if copy else os.replace)(path, target)

    @rule(data=st.data())
    @precondition(lambda self: self.chunks())
    def delete(self, data: st.DataObject) -> None:
        """A file goes, and its folder with it if it was the last."""
        path = data.draw(st.sampled_from(self.chunks()))
        path.unlink()
        if path.parent != self.chunked and not any(path.parent.iterdir()):
            path.parent.rmdir()

    @rule(name=NAMES, kind=st.sampled_from(sorted(BROKEN)))
    def damage(self, name: str, kind: str) -> None:
        """A file is broken; writing over it mends it."""
        path = self.chunked / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(BROKEN[kind])

    @rule(data=st.data())
    @precondition(lambda self: self.chunks())
    def touch(self, data: st.DataObject) -> None:
        """A file is written again as it is."""
        path = data.draw(st.sampled_from(self.chunks()))
        path.write_bytes(path.read_bytes())

    @rule(name=st.sampled_from(["one.txt", "two.md"]), sentences=st.lists(TEXTS, min_size=1))
    def add(self, name: str, sentences: list[str]) -> None:
        """A source is added, for the first time or changed."""
        source = self.folder / name
        source.write_text("# Title\n\n" + "\n".join(sentences))
        with self.open() as store:
            store.sync(forget_missing=True)
            self.paid |= self.keys()
            report = store.add(source)
        keys = self.keys()
        if report.outcomes[0].error is None:
            assert report.embedded == len(keys - self.paid)
        self.paid |= keys

    @rule(part=PARTS)
    def lose(self, part: str) -> None:
        """A part of the sidecar is lost, never the embeddings."""
        sidecar = self.root / ".sidecar"
        for path in list(sidecar.iterdir()):
            lost = {
                "catalog": path.name.startswith("catalog"),
                "vectors": path.name.startswith("vectors-"),
                "full text": path.name == "fulltext",
                "stamp": False,
                "clock": path.name == "clock",
                "all but embeddings": not path.name.startswith("embeddings"),
            }[part]
            if lost:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if part == "stamp":
            (sidecar / "fulltext" / "stamp.json").unlink(missing_ok=True)

    @rule()
    def sync(self) -> None:
        """The index follows: paid once, found, and truth as it was."""
        before = self.truth()
        keys = self.keys()
        with self.open() as store:
            report = store.sync(forget_missing=True)
            assert self.truth() == before
            assert report.embedded == len(keys - self.paid)
            self.paid |= keys
            withheld = self.withheld(before)
            assert drifted(report.remaining) == withheld
            assert drifted(store.status().findings) == withheld
            assert drifted(store.verify(level="full").findings) == withheld
            again = store.sync(forget_missing=True)
            assert again.applied == ()
            assert again.embedded == 0
            self.assert_found(store)

    def withheld(self, truth: dict[str, bytes]) -> set[tuple[str, str]]:
        codes = {content: code for code, content in BROKEN.items()}
        return {(codes[data], f"chunked/{path}") for path, data in truth.items() if data in codes}

    def assert_found(self, store: Store) -> None:
        """Every sound file answers to its own words, by word and by vector, and no other does."""
        waiting = {"ingest-conflict", "source-modified"} & {
            finding.code for finding in store.status().findings
        }
        # A hand edit in the way of a new text keeps the chunks of the old one.
        now = {"fresh", "outdated"} if waiting else {"fresh"}
        for path, chunk in self.sound().items():
            for mode in ("keyword", "vector"):
                query = " ".join(chunk.body.split())
                answer = store.search(query, k=200, mode=mode)
                paths = [path for hit in answer.hits for path in (hit.path, *hit.copies)]
                assert f"chunked/{path}" in paths
                assert len(paths) == len(set(paths))
                assert {hit.freshness for hit in answer.hits} <= now
                assert {path.removeprefix("chunked/") for path in paths} <= set(self.sound())

    def teardown(self) -> None:
        """The folder goes, after a last sync."""
        if hasattr(self, "folder"):
            try:
                self.sync()
            finally:
                shutil.rmtree(self.folder, ignore_errors=True)


TestDrift = Drift.TestCase


@pytest.mark.exhaustive
class TestLongDrift(Drift.TestCase):
    """More histories."""


for _case, _count in ((TestDrift, 7), (TestLongDrift, 40)):
    _case.settings = settings(
        max_examples=_count,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    _case.runTest.__doc__ = (
        "Whatever happens between two syncs, the store ends in step, at least cost."
    )
# What stays here is collected: one of them would run twice.
del _case
