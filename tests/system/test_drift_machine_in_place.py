"""A folder of documents that everything happens to: sync follows, pays once, and writes none."""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from filestore.store import Store
from tests.system.snapshots import Seen, snapshot
from tests.system.test_drift_machine import PARTS, TEXTS, drifted

NAMES = st.sampled_from(["a.md", "b.txt", "sub/a.md", "sub/c.html", "sub/deep/d é.md"])
BROKEN = {
    "bad-encoding": bytes(range(256)),
    "empty": b" \n",
    "conflict-markers": b"<<<<<<< a\nb\n=======\nc\n>>>>>>> d\n",
}
OURS = (".filestore", "filestore.toml")


class DriftInPlace(RuleBasedStateMachine):
    """Documents as a person changes them, beside what the index must have paid for so far."""

    @initialize()
    def make(self) -> None:
        """An empty folder with a store."""
        self.folder = Path(tempfile.mkdtemp(prefix="filestore-drift-"))
        self.root = self.folder / "notes"
        self.configuration = str(self.folder / "configuration")
        Store.create(
            str(self.root), layout="in-place", embedder="builtin", configuration=self.configuration
        )
        self.paid: set[bytes] = set()

    def theirs(self) -> Seen:
        """All that is not ours, with stamps and modes."""
        found = snapshot(self.root)
        return {path: seen for path, seen in found.items() if path.split(os.sep)[0] not in OURS}

    def documents(self) -> dict[str, bytes]:
        """What the store is made of, as far as rules do not leave it out."""
        hidden = (self.root / ".gitignore").exists()
        return {
            path: seen[-1]
            for path, seen in self.theirs().items()
            if seen[-1] or not (self.root / path).is_dir()
            if path != ".gitignore" and not (hidden and path.startswith("sub/deep/"))
        }

    def keys(self) -> set[bytes]:
        """What the catalog says is embedded."""
        connection = sqlite3.connect(self.root / ".filestore" / "catalog.sqlite")
        try:
            return {key for (key,) in connection.execute("SELECT key FROM vectors")}
        finally:
            connection.close()

    def paths(self) -> list[str]:
        return sorted(self.documents())

    @rule(name=NAMES, text=TEXTS, tags=st.booleans())
    def write(self, name: str, text: str, tags: bool) -> None:
        """A person writes a document, over another or not."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(("---\ntags: [green]\n---\n" if tags else "") + f"# About\n\n{text}")

    @rule(data=st.data(), text=TEXTS)
    @precondition(lambda self: self.documents())
    def edit(self, data: st.DataObject, text: str) -> None:
        """A document gets another sentence."""
        path = self.root / data.draw(st.sampled_from(self.paths()))
        if path.read_bytes() not in BROKEN.values():
            path.write_bytes(path.read_bytes() + b"\n# More\n\n" + text.encode())

    @rule(data=st.data(), name=NAMES, copy=st.booleans())
    @precondition(lambda self: self.documents())
    def transfer(self, data: st.DataObject, name: str, copy: bool) -> None:
        """A document is renamed or copied, over another or not."""
        path = self.root / data.draw(st.sampled_from(self.paths()))
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path != target and path.suffix == target.suffix:
            (shutil.copy2 if copy else os.replace)(path, target)

    @rule(data=st.data())
    @precondition(lambda self: self.documents())
    def delete(self, data: st.DataObject) -> None:
        """A document goes."""
        (self.root / data.draw(st.sampled_from(self.paths()))).unlink()

    @rule(name=st.sampled_from(["a.md", "sub/a.md"]), kind=st.sampled_from(sorted(BROKEN)))
    def damage(self, name: str, kind: str) -> None:
        """A document is broken; writing over it mends it."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(BROKEN[kind])

    @rule()
    def rules(self) -> None:
        """A rule leaves a folder out, or no longer does."""
        path = self.root / ".gitignore"
        if path.exists():
            path.unlink()
        else:
            path.write_text("sub/deep/\n")

    @rule(part=PARTS | st.just("documents"))
    def lose(self, part: str) -> None:
        """A part of the sidecar is lost, never the embeddings."""
        for path in list((self.root / ".filestore").iterdir()):
            lost = {
                "catalog": path.name.startswith("catalog"),
                "documents": path.name.startswith("documents"),
                "vectors": path.name.startswith("vectors-"),
                "full text": path.name == "fulltext",
                "clock": path.name == "clock",
                "all but embeddings": not path.name.startswith("embeddings"),
            }.get(part, False)
            if lost:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if part == "stamp":
            (self.root / ".filestore" / "fulltext" / "stamp.json").unlink(missing_ok=True)

    @rule()
    def sync(self) -> None:
        """The index follows: paid once, found, and the documents as they were."""
        before = self.theirs()
        with Store(str(self.root), configuration=self.configuration) as store:
            report = store.sync(forget_missing=True)
            keys = self.keys()
            assert report.embedded == len(keys - self.paid)
            self.paid |= keys
            withheld = self.withheld()
            assert drifted(report.remaining) == withheld
            assert drifted(store.status().findings) == withheld
            assert drifted(store.verify(level="full").findings) == withheld
            again = store.sync(forget_missing=True)
            assert (again.applied, again.embedded) == ((), 0)
            self.assert_found(store)
        assert self.theirs() == before

    def withheld(self) -> set[tuple[str, str]]:
        codes = {content: code for code, content in BROKEN.items()}
        return {(codes[data], path) for path, data in self.documents().items() if data in codes}

    def assert_found(self, store: Store) -> None:
        """Every sound document answers to its own words, and no other does."""
        sound = {
            path: data for path, data in self.documents().items() if data not in BROKEN.values()
        }
        for path, data in sound.items():
            query = data.decode().partition("# About")[2].replace("#", " ").split()
            for mode in ("keyword", "vector"):
                hits = store.search(" ".join(query), k=200, mode=mode).hits
                paths = [path for hit in hits for path in (hit.path, *hit.copies)]
                assert path in paths
                assert len(paths) == len(set(paths))
                assert set(paths) <= set(sound)
                assert {hit.freshness for hit in hits} == {"fresh"}

    def teardown(self) -> None:
        """The folder goes, after a last sync."""
        if hasattr(self, "folder"):
            try:
                self.sync()
            finally:
                shutil.rmtree(self.folder, ignore_errors=True)


TestDriftInPlace = DriftInPlace.TestCase


@pytest.mark.exhaustive
class TestLongDriftInPlace(DriftInPlace.TestCase):
    """More histories."""


for _case, _count in ((TestDriftInPlace, 7), (TestLongDriftInPlace, 40)):
    _case.settings = settings(
        max_examples=_count,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    _case.runTest.__doc__ = "Whatever happens between two syncs, the store ends in step, paid once."
# What stays here is collected: one of them would run twice.
del _case
