"""Reported drift against a simple oracle, whatever a person, git or a crash did to the files.

The oracle knows two sets of bytes: the files as they were when the store last followed them, and
the files as they are. It pairs, names and counts by plain comparison; what `status` and `verify`
say has to be the same. Then the store is repaired: nothing is left but what needs a person,
repairing again does nothing, and the sidecar is what one made from scratch would be: ids, hits and
scores.

``pytest -m long`` runs some 150 histories, ``FILESTORE_EXAMPLES=20000 pytest -m ""
tests/system/test_drift_oracle.py`` as many as it says.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from filestore.catalog import Catalog
from filestore.chunks import chunk_file
from filestore.core.errors import FilestoreError
from filestore.repair.plan import Policy
from filestore.store import Store

EXAMPLES = int(os.environ.get("FILESTORE_EXAMPLES", "20"))
ANCHOR = "anchor.md"
"""A file that nobody touches, so that the tree is never empty."""
NAMES = ["a.md", "B.md", "b.md", "stones/a.md", "stones/c.md", "stones/deep/d é.md", "more/e.md"]
TEXTS = ["Amber is old resin.\n", "Basalt is dark.\n", "Copper is red.\n", "Zinc is blue.\n"]
MALFORMED = b"---\n[\nmood: good\n---\nWords.\n"
BROKEN = {
    MALFORMED: "malformed-frontmatter",
    b"---\n[\n---\nWords.\n": "malformed-frontmatter",
    b"---\noverlap: many\n---\nWords.\n": "invalid-metadata",
    b"caf\xe9\n": "bad-encoding",
    b" \n": "empty",
    b'---\norigin: "sha256:'
    + b"0" * 64
    + b'"\n---\nOne.\n<<<<<<< ours\nTwo.\n=======\nThree.\n>>>>>>> theirs\n': "conflict-markers",
}
TREE_CODES = {
    "modified", "metadata-modified", "untracked", "missing", "moved", "left-out", *BROKEN.values(),
}  # fmt: skip
BROKEN_IN_PLACE = {
    bytes(range(256)): "bad-encoding",
    b" \n": "empty",
    b"One.\n<<<<<<< ours\nTwo.\n=======\nThree.\n>>>>>>> theirs\n": "conflict-markers",
}
OURS_IN_PLACE = (".filestore", "filestore.toml", ".git", ".filestoreignore")
SIDECAR = {
    "catalog": ("catalog.sqlite*", "catalog-missing"),
    "documents": ("documents.sqlite", ""),
    "vectors": ("vectors-*.faiss", "index-missing"),
    "full text": ("fulltext", "fulltext-missing"),
}
QUERIES = ("amber resin", "basalt is", "what is copper", "blue zinc", "note")
Drift = set[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What bytes mean in a layout, as plainly as it can be said."""

    broken: dict[bytes, str]
    """Contents that are excluded from search, and the code that says so."""
    texts: Callable[[bytes], object]
    """What is embedded of a sound file."""
    told_late: str = ""
    """A code that is told only once somebody reads the document: of one that was found by its
    words until now that is at once, of another one when it is indexed."""

    def code(self, before: bytes | None, now: bytes) -> str:
        """Why a file is excluded, as far as that is known; "" where it is not."""
        code = self.broken.get(now, "")
        is_read = before is not None and (before == now or before not in self.broken)
        return "" if code == self.told_late and not is_read else code


def expected_drift(
    recorded: dict[str, bytes], truth: dict[str, bytes], hidden: set[str], meaning: Meaning
) -> Drift:
    """What differs between two sets of files, by plain comparison.

    Args:
        recorded: The files as they were.
        truth: The files as they are.
        hidden: Files that are there, and that a rule leaves out.
        meaning: What their bytes mean.
    """
    gone = {path: data for path, data in recorded.items() if path not in truth}
    new = {path: data for path, data in truth.items() if path not in recorded}
    moves = paired(gone, new)
    drift = {("moved", path) for path in moves.values()}
    drift |= {
        ("left-out" if path in hidden else "missing", path) for path in gone if path not in moves
    }
    for path, data in truth.items():
        if code := meaning.code(recorded.get(path), data):
            drift.add((code, path))
        elif path in new:
            drift |= {("untracked", path)} - {("untracked", new) for new in moves.values()}
        elif data != recorded[path]:
            drift.add((how_changed(recorded[path], data, meaning), path))
    return drift


def how_changed(before: bytes, now: bytes, meaning: Meaning) -> str:
    """Whether an embedded text differs."""
    alike = before not in meaning.broken and meaning.texts(before) == meaning.texts(now)
    return "metadata-modified" if alike else "modified"


def texts_of_chunk(data: bytes) -> tuple[str, ...]:
    """What is embedded of a sound chunk file."""
    return tuple(chunk_file.texts(chunk_file.parse(data)))


def text_of_note(data: bytes) -> bytes:
    """A note without its frontmatter; where that is malformed it is text like the rest."""
    return re.sub(rb"\A---\n(\w+: \w+\n)*---\n", b"", data)


CHUNKS = Meaning(broken=BROKEN, texts=texts_of_chunk)
NOTES = Meaning(broken=BROKEN_IN_PLACE, texts=text_of_note, told_late="bad-encoding")


def paired(gone: dict[str, bytes], new: dict[str, bytes]) -> dict[str, str]:
    """Old to new path of the same bytes where only one of each will do, equal names first."""
    pairs: dict[str, str] = {}
    for key in (lambda path, data: (data, path.rpartition("/")[2]), lambda path, data: data):
        old = Counter(key(path, data) for path, data in gone.items() if path not in pairs)
        fresh = Counter(key(path, data) for path, data in new.items() if path not in pairs.values())
        for path, data in gone.items():
            mark = key(path, data)
            if path in pairs or old[mark] != 1 or fresh[mark] != 1:
                continue
            (target,) = (
                other
                for other, content in new.items()
                if other not in pairs.values() and key(other, content) == mark
            )
            pairs[path] = target
    return pairs


class Oracle(RuleBasedStateMachine):
    """Files as a person, git and crashes change them, beside what was followed last."""

    layout = "tree"
    meaning = CHUNKS
    below = "file_index"
    sidecar = ".sidecar"

    @initialize()
    def make(self) -> None:
        """A store in a git work tree, followed once."""
        self.folder = Path(tempfile.mkdtemp(prefix="filestore-oracle-"))
        self.tree = self.folder / "tree"
        shutil.copytree(template(self.layout), self.tree, symlinks=True)
        self.root = self.tree / self.below
        self.chunked = self.root / "chunked"
        self.lost: set[str] = set()
        with self.open() as store:
            store.sync()
        self.recorded = self.truth()
        self.number = 0

    def open(self, root: Path | None = None) -> Store:
        return Store(str(root or self.root), configuration=str(self.folder / "configuration"))

    def truth(self) -> dict[str, bytes]:
        files = (path for path in self.chunked.rglob("*") if path.is_file())
        return {path.relative_to(self.chunked).as_posix(): path.read_bytes() for path in files}

    def hidden(self) -> set[str]:
        """Files that a rule leaves out: there is none."""
        return set()

    def path_of(self, path: str) -> str:
        """A path that git or a finding names, below the tree."""
        return path.removeprefix("file_index/").removeprefix("chunked/")

    def files(self) -> list[str]:
        return sorted(path for path in self.truth() if path != ANCHOR)

    def some(self, data: st.DataObject) -> Path:
        return self.chunked / data.draw(st.sampled_from(self.files()))

    def settle(self, path: Path) -> None:
        """Make the folders that a path needs."""
        path.parent.mkdir(parents=True, exist_ok=True)

    @rule(name=st.sampled_from(NAMES), text=st.sampled_from(TEXTS), tag=st.booleans())
    def write(self, name: str, text: str, tag: bool) -> None:
        """A person writes a file, over another or not."""
        self.settle(self.chunked / name)
        (self.chunked / name).write_text(f"---\nmood: good\n---\n{text}" if tag else text)

    @rule(data=st.data(), text=st.sampled_from(TEXTS))
    @precondition(lambda self: self.files())
    def edit(self, data: st.DataObject, text: str) -> None:
        """A body gets another sentence."""
        path = self.some(data)
        if path.read_bytes() not in self.meaning.broken:
            path.write_bytes(path.read_bytes() + text.encode())

    @rule(data=st.data())
    @precondition(lambda self: self.files())
    def tag(self, data: st.DataObject) -> None:
        """A key of the user is added; no embedded text differs."""
        path, self.number = self.some(data), self.number + 1
        content = path.read_bytes()
        if content not in self.meaning.broken:
            rest = content[4:] if content.startswith(b"---\n") else b"---\n" + content
            path.write_bytes(b"---\nkey%d: value\n" % self.number + rest)

    @rule(data=st.data())
    @precondition(lambda self: self.files())
    def touch(self, data: st.DataObject) -> None:
        """A file is written again as it is."""
        path = self.some(data)
        path.write_bytes(path.read_bytes())

    @rule(data=st.data())
    @precondition(lambda self: self.files())
    def same_size(self, data: st.DataObject) -> None:
        """An edit that keeps size and mtime."""
        path = self.some(data)
        status, content = path.stat(), path.read_bytes()
        if content not in self.meaning.broken:
            path.write_bytes(content[:-2] + (b"!" if content[-2:-1] == b"." else b".") + b"\n")
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    @rule(data=st.data(), name=st.sampled_from(NAMES))
    @precondition(lambda self: self.files())
    def copy(self, data: st.DataObject, name: str) -> None:
        """A file is copied, over another or not."""
        path, target = self.some(data), self.chunked / name
        if path != target:
            self.settle(target)
            shutil.copy2(path, target)

    @rule(data=st.data(), name=st.sampled_from(NAMES), text=st.none() | st.sampled_from(TEXTS))
    @precondition(lambda self: self.files())
    def move(self, data: st.DataObject, name: str, text: str | None) -> None:
        """A file is renamed, over another or not, and perhaps edited."""
        path, target = self.some(data), self.chunked / name
        self.settle(target)
        path.replace(target)
        if text is not None and target.read_bytes() not in self.meaning.broken:
            target.write_bytes(target.read_bytes() + text.encode())

    @rule(data=st.data())
    @precondition(lambda self: self.files())
    def change_case(self, data: st.DataObject) -> None:
        """A file is renamed by the case of its letters only."""
        path = self.some(data)
        path.replace(path.with_name(path.name[:1].swapcase() + path.name[1:]))

    @rule(data=st.data())
    @precondition(lambda self: self.files())
    def delete(self, data: st.DataObject) -> None:
        """A file goes."""
        self.some(data).unlink()

    @rule(old=st.sampled_from(["stones", "more"]), new=st.sampled_from(["stones", "more", "moved"]))
    def move_folder(self, old: str, new: str) -> None:
        """A folder is renamed where nothing is in the way."""
        if (self.chunked / old).is_dir() and not (self.chunked / new).exists():
            (self.chunked / old).rename(self.chunked / new)

    @rule(name=st.sampled_from(NAMES), data=st.data())
    def damage(self, name: str, data: st.DataObject) -> None:
        """A file is broken; writing over it mends it."""
        self.settle(self.chunked / name)
        content = data.draw(st.sampled_from(sorted({*self.meaning.broken, MALFORMED})))
        (self.chunked / name).write_bytes(content)

    @rule(branch=st.sampled_from(["main", "other"]))
    def checkout(self, branch: str) -> None:
        """What there is is committed, and another branch checked out."""
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-qm", "All", "--allow-empty")
        git(self.tree, "checkout", "-q", branch)

    @rule()
    def merge(self) -> None:
        """The other branch is merged, and where that conflicts, taken back after a look."""
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-qm", "All", "--allow-empty")
        done = git(self.tree, "merge", "-q", "-m", "Merge", "other", check=False)
        if done.returncode != 0:
            before = self.truth()
            with self.open() as store:
                store.sync(forget_missing=True)
                unmerged = git(self.tree, "diff", "--name-only", "--diff-filter=U", "-z").stdout
                conflicted = {self.path_of(path) for path in unmerged.decode().split("\0") if path}
                there = conflicted & set(before)
                found = {self.path_of(finding.path) for finding in store.status().findings}
                assert there <= found
                for path in self.hits(store, "amber basalt copper zinc"):
                    assert self.path_of(path) not in conflicted
            assert self.truth() == before
            git(self.tree, "merge", "--abort")
            self.recorded = before
            with self.open() as store:
                store.sync(forget_missing=True)
            self.recorded, self.lost = self.truth(), set()

    @rule(part=st.sampled_from(sorted(SIDECAR)))
    def corrupt(self, part: str) -> None:
        """A part of the sidecar is lost."""
        for path in (self.root / self.sidecar).glob(SIDECAR[part][0]):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            self.lost.add(part)

    @rule(delay_s=st.floats(0.0, 0.06))
    def kill(self, delay_s: float) -> None:
        """A sync is killed; the next one completes it, so the oracle follows."""
        child = os.fork()
        if child == 0:
            try:
                with self.open() as store:
                    store.sync(forget_missing=True)
            finally:
                os._exit(0)
        time.sleep(delay_s)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with self.open() as store:
            store.status()
            store.sync(forget_missing=True)
        self.recorded, self.lost = self.truth(), set()

    @rule()
    def check(self) -> None:
        """Reported drift is the oracle's; repair ends it, at once and for good."""
        truth = self.truth()
        broken = self.meaning.broken
        withheld = {(broken[data], path) for path, data in truth.items() if data in broken}
        with self.open() as store:
            self.compare(store, truth)
            assert self.truth() == truth
            report = store.apply(store.plan(Policy()))
            assert self.truth() == truth
            assert told(report.remaining) == withheld
            assert told(store.status().findings) == withheld
            assert store.plan(Policy()).doable == ()
            # What was only touched is read once more, and that is remembered.
            generation = store.sync().generation
            again = store.sync()
            assert (again.applied, again.generation) == ((), generation)
            assert told(store.verify(level="full").findings) == withheld
        self.recorded, self.lost = truth, set()

    def compare(self, store: Store, truth: dict[str, bytes]) -> None:
        """What status and verify report, against what the oracle knows."""
        parts = {SIDECAR[part][1] for part in self.lost} - {""}
        if "catalog" in self.lost:
            assert "catalog-missing" in {finding.code for finding in store.status().findings}
            return
        wanted = expected_drift(self.recorded, truth, self.hidden(), self.meaning)
        for findings in (store.status().findings, store.verify().findings):
            assert told(findings) == wanted
            codes = {finding.code for finding in findings}
            assert {code for code in codes if code.startswith(("index-", "fulltext-"))} <= parts | {
                "fulltext-behind"
            }
            assert parts <= codes or not self.recorded

    def hits(self, store: Store, query: str) -> list[str]:
        answer = store.search(query, k=50, mode="keyword")
        fresh = [hit for hit in answer.hits if hit.freshness == "fresh"]
        return [path for hit in fresh for path in (hit.path, *hit.copies)]

    def assert_as_from_scratch(self) -> None:
        """Ids, hits and scores are those of a sidecar that is made anew."""
        other = self.folder / "scratch"
        derived = shutil.ignore_patterns(self.sidecar, ".undo", ".git")
        shutil.copytree(self.root, other, ignore=derived)
        with self.open(other) as scratch:
            scratch.sync()
            with self.open() as store:
                assert ids(store) == ids(scratch)
                assert answers(store) == answers(scratch)

    def teardown(self) -> None:
        """A last look, and a comparison with a store made anew."""
        if hasattr(self, "folder"):
            try:
                if hasattr(self, "number"):
                    self.check()
                    self.assert_as_from_scratch()
            finally:
                shutil.rmtree(self.folder, ignore_errors=True)


def told(findings: Any) -> Drift:
    """Code and path of findings about chunk files."""
    return {
        (finding.code, finding.path.removeprefix("chunked/"))
        for finding in findings
        if finding.code in TREE_CODES
    }


def ids(store: Store) -> list[tuple[int, list[str]]]:
    """Every vector id with the files that have its text."""
    catalog = Catalog.open(store.places.catalog)
    try:
        owners = catalog.files_of_vectors([vector for vector, _ in catalog.vector_keys()])
        rows = catalog.files_by_id([file for files in owners.values() for file, _ in files])
        return [
            (vector, sorted(rows[file].path for file, _ in files))
            for vector, files in sorted(owners.items())
        ]
    finally:
        catalog.close()


def answers(store: Store) -> list[list[tuple[str, tuple[str, ...], int | None, float]]]:
    """Hits, their copies, lines and scores of some questions in every mode."""
    found = []
    for query in QUERIES:
        for mode in ("keyword", "vector", "hybrid"):
            try:
                answer = store.search(query, k=20, mode=mode)
            except FilestoreError as error:
                found.append([(error.message, (), None, 0.0)])
            else:
                hits = answer.hits
                found.append([(h.path, h.copies, h.line, round(h.score, 5)) for h in hits])
    return found


def git(folder: Path, *words: str, check: bool = True) -> "subprocess.CompletedProcess[bytes]":
    """Run git."""
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "gc.auto=0"]
    return subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, check=check)


_TEMPLATES: dict[str, Path] = {}


def template(layout: str) -> Path:
    """A work tree with two branches, made once."""
    if layout not in _TEMPLATES:
        made = Path(tempfile.mkdtemp(prefix="filestore-oracle-template-"))
        in_place, folder = layout == "in-place", made / "tree"
        root = folder if in_place else folder / "file_index"
        Store.create(
            str(root), layout=layout, embedder="builtin", configuration=str(made / "unused")
        ).close()
        chunked = root if in_place else root / "chunked"
        (chunked / "stones").mkdir(parents=True)
        (chunked / ANCHOR).write_text("An anchor holds.\n")
        for name, text in zip(NAMES[3:5], TEXTS, strict=False):
            (chunked / name).write_text(text)
        git(folder, "init", "-q", "-b", "main")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "First")
        git(folder, "branch", "other")
        _TEMPLATES[layout] = folder
    return _TEMPLATES[layout]


class FlatOracle(Oracle):
    """The same in the other layout."""

    layout = "flat"


class OracleInPlace(Oracle):
    """The same in a folder of notes, in which a rule may leave some out."""

    layout = "in-place"
    meaning = NOTES
    below = "."
    sidecar = ".filestore"

    @initialize()
    def make(self) -> None:
        """A work tree of notes, followed once."""
        super().make()
        self.chunked = self.root

    def everything(self) -> dict[str, bytes]:
        """All that a person has there."""
        files = ((path, path.relative_to(self.root)) for path in self.root.rglob("*"))
        return {
            name.as_posix(): path.read_bytes()
            for path, name in files
            if path.is_file() and name.parts[0] not in OURS_IN_PLACE
        }

    def hidden(self) -> set[str]:
        """Files that a rule leaves out."""
        ruled = (self.root / ".filestoreignore").exists()
        return {path for path in self.everything() if ruled and path.startswith("stones/deep/")}

    def truth(self) -> dict[str, bytes]:
        hidden = self.hidden()
        return {path: data for path, data in self.everything().items() if path not in hidden}

    @rule()
    def rules(self) -> None:
        """A rule leaves a folder out, or no longer does."""
        path = self.root / ".filestoreignore"
        if path.exists():
            path.unlink()
        else:
            path.write_text("stones/deep/\n")

    @rule()
    def check(self) -> None:
        """As for chunk files; and of a note whose frontmatter cannot be read that is said."""
        before = self.everything()
        super().check()
        assert self.everything() == before
        ignored = {path for path, data in before.items() if text_of_note(data)[:4] == b"---\n"}
        with self.open() as store:
            found = store.status().findings
        told = {one.path for one in found if one.code == "frontmatter-ignored"}
        assert told == ignored - self.hidden()


def histories(count: int) -> settings:
    """How many histories are tried in each layout, and how long they are."""
    return settings(
        max_examples=count,
        stateful_step_count=10,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


TestOracle = Oracle.TestCase
TestFlatOracle = FlatOracle.TestCase
TestOracleInPlace = OracleInPlace.TestCase


@pytest.mark.exhaustive
class TestLongOracle(Oracle.TestCase):
    """More histories."""


@pytest.mark.exhaustive
class TestLongFlatOracle(FlatOracle.TestCase):
    """More histories in the other layout."""


@pytest.mark.exhaustive
class TestLongOracleInPlace(OracleInPlace.TestCase):
    """More histories of notes."""


for _case, _count in (
    (TestOracle, EXAMPLES // 2),
    (TestFlatOracle, EXAMPLES // 2),
    (TestOracleInPlace, EXAMPLES // 2),
    (TestLongOracle, 40),
    (TestLongFlatOracle, 40),
    (TestLongOracleInPlace, 40),
):
    _case.settings = histories(_count)
    _case.runTest.__doc__ = "Reported drift is the oracle's, and repair ends it for good."
# What stays here is collected: one of them would run twice.
del _case
