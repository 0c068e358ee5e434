"""Whatever happened to a store: a repair does what it planned, no more, and undo takes it back."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.chunks import chunk_file
from filestore.fs.stats import PackedFolder, pack_folder, pack_stat
from filestore.repair.plan import Plan, Policy
from filestore.store import Store

NOTES = 7
KINDS = ("edit", "tag", "delete", "move", "copy", "rot", "break", "own", "record", "touch")


@dataclass(frozen=True, slots=True)
class Drift:
    """One thing that happens to a tree."""

    kind: str
    number: int
    text: str

    def happen(self, root: Path) -> None:
        """Do it, where there is something to do it to."""
        chunked = root / "chunked"
        notes = sorted(path for path in chunked.rglob("*.md") if path.is_file())
        if self.kind == "own" or not notes:
            (chunked / f"own{self.number}.md").write_text(f"Words of my own: {self.text}.\n")
            return
        path = notes[self.number % len(notes)]
        data = path.read_bytes()
        if self.kind == "edit":
            path.write_bytes(data + f"More {self.text}.\n".encode())
        elif self.kind == "tag":
            if not data.startswith(b"---\n["):
                path.write_bytes(chunk_file.update(data, questions=[f"Which {self.text}?"]))
        elif self.kind == "delete":
            path.unlink()
        elif self.kind == "move":
            path.rename(path.with_name(f"moved-{self.number}-{path.name[-9:]}"))
        elif self.kind == "copy":
            path.with_name(f"copy-{self.number}.md").write_bytes(data)
        elif self.kind == "rot":
            rot(root, path)
        elif self.kind == "break":
            path.write_bytes(b"---\n[" + self.text.encode() + b"\n---\nWords.\n")
        elif self.kind == "record":
            records = sorted(chunked.rglob("*.json"))
            records[self.number % len(records)].write_text("{ " + self.text)
        else:
            os.utime(path, ns=(self.number * 10**9, self.number * 10**9))


def rot(root: Path, path: Path) -> None:
    """Change a catalogued file under stamps that the catalog takes for the recorded ones."""
    folder, name = path.relative_to(root / "chunked").parent.as_posix(), path.name
    folder = "" if folder == "." else folder
    connection = sqlite3.connect(root / ".sidecar" / "catalog.sqlite")
    try:
        found = connection.execute(
            "SELECT names, stats FROM folders WHERE path = ?", (folder.encode(),)
        ).fetchone()
        entries = PackedFolder(*found).entries() if found else {}
        if name not in entries:
            return
        path.write_bytes(path.read_bytes()[:-1] + b"\x00")
        seen = os.lstat(path)
        entries[name] = pack_stat(
            (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_mode)
        )
        with connection:
            connection.execute(
                "UPDATE folders SET stats = ? WHERE path = ?",
                (pack_folder(entries).stats, folder.encode()),
            )
    finally:
        connection.close()


DRIFTS = st.lists(
    st.builds(
        Drift,
        st.sampled_from(KINDS),
        st.integers(0, 9),
        st.sampled_from(["amber", "basalt", "Ünïcode"]),
    ),
    min_size=1,
    max_size=5,
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of some notes, to be copied."""
    folder = tmp_path_factory.mktemp("template")
    notes = folder / "notes"
    notes.mkdir()
    sources = []
    for number in range(NOTES):
        path = notes / f"note{number}.md"
        path.write_text(f"# Note {number}\n\nWords of note {number} and no other.\n")
        sources.append(path)
    with opened(folder, init=True) as store:
        store.add(*sources)
    return folder


def opened(folder: Path, *, init: bool = False) -> Store:
    root, configuration = str(folder / "file_index"), str(folder / "configuration")
    if init:
        return Store.create(root, layout="tree", embedder="builtin", configuration=configuration)
    return Store(root, configuration=configuration)


@pytest.fixture(scope="module")
def copies(template: Path) -> Iterator["Copies"]:
    """Copies of the store, one an example."""
    with tempfile.TemporaryDirectory() as folder:
        yield Copies(template, Path(folder))


@dataclass(slots=True)
class Copies:
    """Makes copies of a store."""

    template: Path
    folder: Path
    number: int = 0

    def make(self) -> Path:
        """One more, in step with its new stamps."""
        self.number += 1
        target = self.folder / str(self.number)
        shutil.copytree(self.template, target)
        with opened(target) as store:
            store.sync()
        return target


def truth(folder: Path) -> dict[str, bytes]:
    chunked = folder / "file_index" / "chunked"
    return {
        path.relative_to(chunked).as_posix(): path.read_bytes()
        for path in chunked.rglob("*")
        if path.is_file()
    }


def problems(plan: Plan) -> set[tuple[str, str]]:
    """What a plan does not mend: what is left, and what needs a word from a person."""
    left = {(one.finding.code, one.finding.path) for one in plan.left}
    waiting = [step for step in plan.steps if not plan.allows(step)]
    return left | {(code, step.path) for step in waiting for code in step.codes}


FEW = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FEW
@given(drifts=DRIFTS, writes=st.booleans())
def test_a_repair_does_what_it_planned(copies: Copies, drifts: list[Drift], writes: bool) -> None:
    """What was planned is gone, the next has no work, files stay unless allowed, undo is exact.

    What was brought back is told again once that is undone, and nothing else is.
    """
    folder = copies.make()
    for drift in drifts:
        drift.happen(folder / "file_index")
    before = truth(folder)
    policy = Policy(truth=writes)
    with opened(folder) as store:
        plan = store.plan(policy, level="full")
        assert truth(folder) == before
        report = store.apply(plan)
        assert report.skipped == ()
        assert {step.key for step in report.applied} == {step.key for step in plan.doable}
        remaining = {(one.code, one.path) for one in report.remaining if one.severity != "I"}
        assert remaining <= problems(plan)
        if not writes:
            assert truth(folder) == before
            assert report.undo == ""
        generation = store.status().generation
        again = store.apply(store.plan(policy, level="full"))
        assert again.applied == ()
        assert again.skipped == ()
        assert store.status().generation == generation
        for identifier in filter(None, [report.undo]):
            store.undo(identifier)
        assert truth(folder) == before
        restored = {step.path for step in report.applied if step.kind == "restore"}
        told = {step.path for step in store.plan(Policy()).doable}
        assert told == restored


@FEW
@given(drifts=DRIFTS, meanwhile=DRIFTS, writes=st.booleans())
def test_what_moved_on_is_left_alone(
    copies: Copies, drifts: list[Drift], meanwhile: list[Drift], writes: bool
) -> None:
    """A plan applied after the tree moved on touches no file that did; the rest has a reason."""
    folder = copies.make()
    for drift in drifts:
        drift.happen(folder / "file_index")
    planned_on = truth(folder)
    with opened(folder) as store:
        plan = store.plan(Policy(truth=writes), level="full")
        for drift in meanwhile:
            drift.happen(folder / "file_index")
        before = truth(folder)
        report = store.apply(plan)
        after = truth(folder)
        touched = {
            path
            for path in planned_on.keys() | before.keys()
            if planned_on.get(path) != before.get(path)
        }
        assert {path: after.get(path) for path in touched} == {
            path: before.get(path) for path in touched
        }
        done = {step.key for step in report.applied}
        skipped = {step.key for step, reason in report.skipped if reason}
        assert done | skipped == {step.key for step in plan.doable}
        assert not done & skipped
        changed = {
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        }
        assert changed <= {step.path.removeprefix("chunked/") for step in report.applied}
        for identifier in filter(None, [report.undo]):
            store.undo(identifier)
        assert truth(folder) == before
