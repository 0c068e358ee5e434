"""The power goes while a command writes: every state of the disk that may be left is opened.

``python tests/system/power_cuts.py [--only sync] [--model weak] [--states 40] [--seconds 600]``
records each command with ``strace``, byte for byte, and makes the disks that ``disk_model`` allows:
before each sync, when most can be lost, and at the end. On each it is checked that

- every file of truth is old or new as a whole, new once the command had ended, and that what was
  changed can be undone from a batch that is there as a whole;
- ``status`` by stat says what it says when it reads every byte, names exactly the files that
  differ from the catalog, and is not clean where a full verification is not;
- ``sync`` and then ``verify --level full`` find nothing, the command can be completed, and the
  store then answers as one that was never disturbed.

Prints a table, and exits with 1 where a check failed. Needs ``strace``.
"""

import argparse
import contextlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import crashes
import disk_model
from crashes import LEFT_OPEN, Laboratory, Scenario, apart, home, must, opened, truth

CALLS = (
    f"{crashes.CALLS},openat,open,creat,lseek,sendfile,truncate,symlink,symlinkat,link,pwritev2,"
    "sync,syncfs,sync_file_range,splice,msync,io_uring_enter,chmod,fchmodat"
)
LONGEST_WRITE = "16777216"
TREE_CODES = {"modified", "metadata-modified", "untracked", "missing", "moved"}


def documents(folder: Path) -> None:
    """Before the first commands: what is to be added."""
    folder.mkdir()
    (folder / "stones.md").write_text(crashes.document(random.Random(7)))
    (folder / "lease.md").write_text("# Lease\n\nThe lease renewal is due in May.\n")


def damaged(folder: Path) -> None:
    """Before a sync that puts the catalog aside and makes another."""
    crashes.new_tree(folder)
    with open(folder / "file_index" / ".sidecar" / "catalog.sqlite", "r+b") as file:
        file.write(b"no database")


def undone(folder: Path) -> None:
    """Before a redo."""
    crashes.repaired(folder)
    must(folder, "undo")


SCENARIOS = {
    # Where damage is part of the beginning, it is found after a cut as well.
    **{name: one for name, one in crashes.SCENARIOS.items() if not one.is_damaged},
    "first add": Scenario(
        name="first add",
        make=documents,
        first=("init", "--embedder", "builtin"),
        words=("add", "stones.md", "lease.md"),
        again=("add", "stones.md", "lease.md"),
    ),
    "rebuild": Scenario(name="rebuild", make=damaged, words=("sync",), again=("sync",)),
    "rm": Scenario(
        name="rm",
        make=crashes.new_tree,
        words=("rm", "stones.md"),
        again=("rm", "stones.md"),
        nothing_left="no document",
    ),
    "redo": Scenario(
        name="redo",
        make=undone,
        words=("redo",),
        again=("redo", "{batch}"),
        nothing_left="filestore undo",
    ),
}


# Recordings


@dataclass(slots=True)
class Recorded:
    """What a scenario's commands did to a disk."""

    laboratory: Laboratory
    recording: disk_model.Recording
    after: dict[str, bytes]
    """The truth when they had ended: names of new files are not the same in each run."""


def record(laboratory: Laboratory) -> Recorded:
    """Run a scenario's commands under strace, and follow what they do to the disk."""
    scenario = laboratory.scenario
    with laboratory.copy() as folder:
        recording = disk_model.Recording(str(folder))
        for words in filter(None, (scenario.first, scenario.words)):
            ended, lines = crashes.watched(
                folder, words, "-s", LONGEST_WRITE, "-e", f"trace={CALLS}"
            )
            if ended.code not in (0, 1):
                raise SystemExit(f"{words} ended with {ended.code}: {ended.err}")
            recording.follow(disk_model.parse_calls(lines))
        recording.note_stamps()
        _compare(recording, folder)
        return Recorded(laboratory, recording, truth(folder))


def _compare(recording: disk_model.Recording, folder: Path) -> None:
    """Fail unless what was followed is what is on the real disk."""
    end = recording.end
    modelled = {
        os.fsdecode(path): data
        for path, (_, data) in recording.tree(recording.whole(end), end).items()
        if not path.endswith(b"-shm")
    }
    real = {
        path.relative_to(folder).as_posix(): b"" if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
        if not path.name.endswith("-shm")
    }
    if modelled != real:
        paths = {p for p in modelled.keys() | real.keys() if modelled.get(p) != real.get(p)}
        raise SystemExit(f"what strace told is not what happened: {sorted(paths)}")


# Judging


def judge(recorded: Recorded, tree: Any, ended: bool) -> list[str]:
    """What is wrong with a disk."""
    laboratory = recorded.laboratory
    with _made(tree) as (folder, stamps):
        wrong = _truth_is_whole(recorded, folder, ended)
        if (home(folder) / "filestore.toml").exists():
            wrong += apart(lambda: undo_is_whole(laboratory.before, folder))
            wrong += apart(lambda: status_is_true(folder, stamps))
            wrong += [f"after sync: {one}" for one in apart(lambda: crashes.settled(folder))]
        elif ended:
            return [*wrong, "the store is gone"]
        elif laboratory.scenario.first:
            # What makes the store can be repeated, what follows has not begun.
            return wrong
    with _made(tree) as (folder, _):
        return wrong + laboratory.judge(folder)


@contextlib.contextmanager
def _made(tree: Any) -> Iterator[tuple[Path, dict[int, tuple[int, ...]]]]:
    with tempfile.TemporaryDirectory(prefix="filestore-power-") as folder:
        yield Path(folder), disk_model.put(tree, folder)


def _truth_is_whole(recorded: Recorded, folder: Path, ended: bool) -> list[str]:
    now = truth(folder)
    wrong = [f"truth: {path} is neither old nor new" for path in recorded.laboratory.strange(now)]
    if ended and now != recorded.after:
        paths = {
            p for p in now.keys() | recorded.after.keys() if now.get(p) != recorded.after.get(p)
        }
        wrong.append(f"an ended command is not on the disk: {sorted(paths)}")
    return wrong


def undo_is_whole(before: dict[str, bytes], folder: Path) -> list[str]:
    """Every batch can be read, and each file that is not as before is kept in one."""
    from filestore.core.errors import FilestoreError
    from filestore.core.hashing import content_hash
    from filestore.history.backup_store import Originals, list_batches

    undo = folder / "file_index" / ".undo"
    batches = list_batches(str(undo))
    wrong = [f"batch {one.identifier}: {one.problem}" for one in batches if one.problem]
    kept = set()
    for batch in batches:
        for number, entry in enumerate(batch.entries):
            for side, version in (("before", entry.before), ("after", entry.after)):
                if version is None or version.mode is None:
                    continue
                kept.add((entry.path, version.digest))
                try:
                    with Originals.open(str(undo)) as originals:
                        originals.blob(batch.identifier, f"{number}.{side}", version.digest)
                except FilestoreError as error:
                    wrong.append(f"batch {batch.identifier}: {error.message}")
    now = truth(folder)
    return wrong + [
        f"{path} was changed and is kept nowhere"
        for path, data in before.items()
        if now.get(path) != data and (path, content_hash(data)) not in kept
    ]


def status_is_true(folder: Path, stamps: dict[int, tuple[int, ...]]) -> list[str]:
    """What `status` says by stat is what it says by content, and what a comparison says."""
    with opened(folder) as store:
        by_content = store.status()
        full = store.verify(level="full")
        expected = _differing(folder)
    with _stats_as_recorded(stamps), opened(folder) as store:
        by_stat = store.status()
    wrong = []
    said, read = ({(one.code, one.path) for one in s.findings} for s in (by_stat, by_content))
    if said != read:
        wrong.append(f"status by stat says {sorted(said - read)}, by content {sorted(read - said)}")
    found = {
        path
        for one in by_stat.findings
        if one.code in TREE_CODES
        for path in (one.path, one.other)
        if path
    }
    if expected is not None and found != expected:
        wrong.append(f"status names {sorted(found)}, different are {sorted(expected)}")
    unsaid = {one.code for one in full.findings if one.severity != "I"} - LEFT_OPEN
    if by_stat.clean and unsaid:
        wrong.append(f"status is clean, a full verification finds {sorted(unsaid)}")
    return wrong


def _differing(folder: Path) -> set[str] | None:
    """The files that are not as the catalog has them; None where there is no sound catalog."""
    from filestore.catalog import Catalog, CatalogDamagedError, CatalogMissingError
    from filestore.core.hashing import content_hash

    with opened(folder) as store:
        places = store.places
    try:
        catalog = Catalog.open(places.catalog)
    except (CatalogMissingError, CatalogDamagedError):
        return None
    try:
        known = {places.tree.store_path(row.path): row.file_hash for row in catalog.all_files()}
    finally:
        catalog.close()
    now = {
        path: content_hash((home(folder) / path).read_bytes())
        for path in truth(folder)
        if path.startswith("chunked/") or (places.tree.has_sections and path != ".filestoreignore")
    }
    return {path for path in known.keys() | now.keys() if known.get(path) != now.get(path)}


@contextlib.contextmanager
def _stats_as_recorded(stamps: dict[int, tuple[int, ...]]) -> Iterator[None]:
    """Let the files of a disk that was made again have the stamps and numbers they had."""
    import filestore.fs.disk
    import filestore.fs.scan

    real = filestore.fs.disk.stat_values

    def recorded(status: os.stat_result) -> tuple[int, int, int, int, int]:
        size, mtime_ns, ctime_ns, inode, mode = real(status)
        known = stamps.get(inode)
        if known is None or known[0] != ctime_ns:
            return size, mtime_ns, ctime_ns, inode, mode
        return size, known[1], known[2], known[3], mode

    modules = [one for name, one in sys.modules.items() if name.startswith("filestore")]
    users = [one for one in modules if getattr(one, "stat_values", None) is real]
    bulk = filestore.fs.scan.open_bulk_stat
    for one in users:
        one.stat_values = recorded  # type: ignore[attr-defined]
    filestore.fs.scan.open_bulk_stat = lambda _: None
    try:
        yield
    finally:
        for one in users:
            one.stat_values = real  # type: ignore[attr-defined]
        filestore.fs.scan.open_bulk_stat = bulk


# Experiment


@dataclass(slots=True)
class Tally:
    """What came of one command under one model."""

    name: str
    model: str
    points: int
    states: int = 0
    """Different ones."""
    tried: int = 0
    failures: list[str] = field(default_factory=list)

    def row(self) -> str:
        """One line of the table."""
        numbers = (self.points, self.states, self.tried, len(self.failures))
        return f"| {self.name} | {self.model} | " + " | ".join(f"{n:,}" for n in numbers) + " |"


@dataclass(frozen=True, slots=True)
class Cut:
    """A state of the disk, and where it came from."""

    model: disk_model.Model
    point: int
    state: disk_model.State
    ended: bool


def cuts(
    recorded: Recorded,
    points: Sequence[int],
    models: Sequence[disk_model.Model],
    seed: int,
    most: int,
) -> dict[disk_model.Model, dict[tuple[bytes, bool], Cut]]:
    """The different states of the disk, by model; what two allow counts for the first."""
    recording = recorded.recording
    seen: set[tuple[bytes, bool]] = set()
    found: dict[disk_model.Model, dict[tuple[bytes, bool], Cut]] = {}
    for model in models:
        mine: dict[tuple[bytes, bool], Cut] = found.setdefault(model, {})
        chance = random.Random(f"{seed} {model}")
        for point in points:
            ended = point == recording.end
            for state in disk_model.crash_states(recording, model, point, chance, most):
                tree = recording.tree(state, point)
                key = disk_model.fingerprint(tree), ended
                if key not in seen:
                    seen.add(key)
                    mine[key] = Cut(model, point, state, ended)
    return found


def experiment(
    names: Sequence[str],
    models: Sequence[disk_model.Model],
    *,
    seed: int,
    most: int,
    step: int,
    sample: int | None,
    seconds: float,
) -> int:
    """Cut the power of each command; the exit code."""
    tallies = []
    for name in names:
        began = time.monotonic()
        with _laboratory(name) as laboratory:
            recorded = record(laboratory)
            # The last one, at the end of the command, is always among them.
            points = sorted(set(recorded.recording.points))[::-1][::step]
            by_model = cuts(recorded, points, models, seed, most)
            for number, (model, found) in enumerate(by_model.items()):
                tally = Tally(name, model, len(points), len(found))
                tallies.append(tally)
                chosen = list(found.values())
                random.Random(seed).shuffle(chosen)
                # What an ended command promised counts most.
                chosen.sort(key=lambda cut: not cut.ended)
                # What a command has left of its time is shared by its models.
                left = (seconds - (time.monotonic() - began)) / (len(by_model) - number)
                _try_all(recorded, chosen[:sample], time.monotonic() + left, tally)
                print(tally.row(), flush=True)
    return report(tallies)


@contextlib.contextmanager
def _laboratory(name: str) -> Iterator[Laboratory]:
    with tempfile.TemporaryDirectory(prefix="filestore-power-") as work:
        yield Laboratory(SCENARIOS[name], Path(work) / "base")


def _try_all(recorded: Recorded, chosen: Sequence[Cut], until: float, tally: Tally) -> None:
    def part(number: int) -> dict[str, Any]:
        failures, tried = [], 0
        for cut in chosen[number :: crashes.WORKERS]:
            if time.monotonic() > until:
                break
            tree = recorded.recording.tree(cut.state, cut.point)
            wrong = judge(recorded, tree, cut.ended)
            failures += [f"at {_described(recorded, cut)}: {one}" for one in wrong]
            tried += 1
        return {"tried": tried, "failures": failures}

    parts = [crashes.started(lambda n=n: part(n)) for n in range(crashes.WORKERS)]  # type: ignore[misc]
    for found in [crashes.awaited(*one) for one in parts]:
        if isinstance(found, list):
            tally.failures += found
            continue
        tally.tried += found["tried"]
        tally.failures += found["failures"]


def _described(recorded: Recorded, cut: Cut) -> str:
    """What is not on the disk."""
    recording = recorded.recording
    paths = recording.paths()
    lost = {paths.get(number, "?") for _, number, _ in cut.state.picks}
    names = [
        os.fsdecode(name)
        for place, one in enumerate(recording.namings)
        if one.moment < cut.point and place not in cut.state.names
        for _, name in one.names
    ]
    return f"{cut.point}, not there: names {names}, bytes of {sorted(lost)}"


def report(tallies: Sequence[Tally]) -> int:
    """Print the table and what went wrong; the exit code."""
    print(
        "\n| command | model | points | states | tried | failures |\n|---|---|---:|---:|---:|---:|"
    )
    for tally in tallies:
        print(tally.row())
    for tally in tallies:
        for failure in tally.failures[:20]:
            print(f"  {tally.name}, {tally.model}: {failure}")
    return 1 if any(tally.failures or not tally.tried for tally in tallies) else 0


def main() -> int:
    """Run the experiment; 1 where it failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=tuple(SCENARIOS), action="append", help="one command")
    parser.add_argument("--model", choices=disk_model.MODELS, action="append", help="one model")
    parser.add_argument(
        "--states", type=int, default=40, help="so many of a point, if there are more (default: 40)"
    )
    parser.add_argument("--step", type=int, default=1, help="only every n-th point (default: 1)")
    parser.add_argument("--sample", type=int, help="try so many of each command and model")
    parser.add_argument(
        "--seconds", type=float, default=150, help="so long for each command (default: 150)"
    )
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    given = parser.parse_args()
    if shutil.which("strace") is None:
        print("strace is not installed", file=sys.stderr)
        return 2
    if os.access("/dev/shm", os.W_OK):
        tempfile.tempdir = "/dev/shm"
    os.environ["OMP_NUM_THREADS"] = "1"
    crashes.warm()
    return experiment(
        given.only or list(SCENARIOS),
        given.model or disk_model.MODELS,
        seed=given.seed,
        most=given.states,
        step=given.step,
        sample=given.sample,
        seconds=given.seconds,
    )


if __name__ == "__main__":
    sys.exit(main())
