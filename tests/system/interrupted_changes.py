"""Interrupts changes of truth files at every call that touches a name on the disk, and looks.

In place there are none, and so nothing to take back: there a sync is interrupted.

A program, because an audit hook cannot be taken away again:

    python tests/system/interrupted_changes.py --operation undo --how kill
    python tests/system/interrupted_changes.py --operation add-note --layout flat --how kill

It makes a store, then for each point of an operation a copy of it, and lets a child process carry
the operation out that is killed there (`kill`), interrupted by Ctrl-C (`interrupt`), told of an I/O
error there (`fail`), or there and ever after (`fail-on`). Then the files, what can be undone, and
the sidecar are looked at. It prints one JSON object: how many points there were, what was wrong;
where something was it exits 1.
"""

import argparse
import errno
import importlib
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from functools import partial
from pathlib import Path

from filestore.core.errors import FilestoreError
from filestore.fs.disk import TEMPORARY_PREFIX
from filestore.history import write
from filestore.store import Store

LOADED = {"filestore", "numpy", "orjson", "tantivy", "xxhash", "sqlite3", "concurrent"}
CALLS = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "open"})
FIRST = {
    "chunked/a.md/chunk1.md": b"One.\n",
    "chunked/a.md/chunk2.md": b"Two.\n",
    "chunked/a.md/summary1.md": b"Sum.\n",
    "source/a.md": b"One.\n\nTwo.\n",
}
SECOND = {
    "chunked/a.md/chunk1.md": b"One, changed.\n",
    "chunked/a.md/chunk2.md": None,
    "chunked/a.md/chunk3.md": b"Three.\n",
    "chunked/new/deep/chunk1.md": b"New.\n",
    "chunked/a.md/summary1.md": b"Sum, changed.\n",
    "source/a.md": b"One, changed.\n\nThree.\n",
}


class Interruption:
    """An audit hook that lets one call of this process fail, or the process die there."""

    def __init__(self) -> None:
        self.count = 0
        self.at = 0
        self.how = ""
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if not self.how or event not in CALLS:
            return
        if event == "open" and not (arguments[2] or 0) & os.O_CREAT:
            return
        self.count += 1
        if self.count == self.at and self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.count == self.at and self.how == "interrupt":
            raise KeyboardInterrupt
        if self.count == self.at or (self.count > self.at and self.how == "fail-on"):
            raise OSError(errno.EIO, "Input/output error")


def files(root):
    """Every truth file with its permissions; temporary files and empty folders are no truth.

    In place all that is not ours, whoever put it there.
    """
    if (root / ".filestore").is_dir():
        paths = ((path, path.relative_to(root)) for path in root.rglob("*"))
        return {
            name.as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777)
            for path, name in paths
            if path.is_file()
            and name.parts[0] not in (".filestore", "filestore.toml")
            and not name.name.startswith(TEMPORARY_PREFIX)
        }
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777)
        for top in ("chunked", "source")
        for path in (root / top).rglob("*")
        if path.is_file() and not path.name.startswith(TEMPORARY_PREFIX)
    }


def open_store(root):
    """The store at a root, with settings of its own."""
    return Store(str(root), configuration=str(root.parent / "configuration"))


def change(root):
    """The change that is interrupted, undone and redone."""
    with open_store(root) as store:
        before = {path: data for path, data in FIRST.items() if path in SECOND}
        last = ["chunked/a.md/summary1.md"]
        write.change(store.places, SECOND, before=before, command="change", last=last)


def parted(root):
    """The same change by one command in two parts, of which the second goes on from the first."""
    first, second = dict(list(SECOND.items())[:3]), dict(list(SECOND.items())[3:])
    first["chunked/a.md/summary1.md"] = b"Sum, in between.\n"
    with open_store(root) as store:
        held = dict(FIRST)
        group = write.change(store.places, first, before=held, command="change")
        held |= first
        write.change(store.places, second, before=held, command="more", group=group)


def undo(root):
    """Undo what is newest."""
    with open_store(root) as store:
        store.undo()


def redo(root):
    """Redo what was undone last."""
    with open_store(root) as store:
        store.redo()


def sync(root):
    """Follow what changed."""
    with open_store(root) as store:
        store.sync()


def add_note(root):
    """Write a note, as a program does."""
    with open_store(root) as store:
        store.add_note("A lamp burns.\n", title="Lamp")


def edit_note(root):
    """Change a passage of a file that a person wrote."""
    with open_store(root) as store:
        store.edit_note(OWN, old="Gas is cheap.", new="A lamp burns.")


def append_note(root):
    """Add a text to a file that a person wrote."""
    with open_store(root) as store:
        revision = store.show(OWN).revision
        store.append_note(OWN, "A lamp burns.", revision=revision)


def put(root, contents):
    """Write files as a person does; None removes one."""
    for name, data in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink() if data is None else path.write_bytes(data)


OPERATIONS = {
    "sync-in-place": ([], sync),
    "change": ([], change),
    "undo": ([change], undo),
    "redo": ([change, undo], redo),
    "undo-parted": ([parted], undo),
    "redo-parted": ([parted, undo], redo),
}


OWN = "chunked/own.md"
NOTES = {
    "add-note": ([], add_note),
    "append-note": ([], append_note),
    "edit-note": ([], edit_note),
    "undo-note": ([add_note], undo),
    "redo-note": ([add_note, undo], redo),
}
"""What programs write, in each layout."""
LAYOUTS = ("tree", "flat", "in-place")


def prepare_notes(root, layout, steps, operation):
    """A store with a file of a person's, and some steps more; what it holds, and what it will."""
    configuration = str(root.parent / "configuration")
    with Store.create(
        str(root), layout=layout, embedder="builtin", configuration=configuration
    ) as store:
        put(
            root, {OWN: b"---\ntags: [own]\n---\n# Own\n\nGas is cheap.\n", "chunked/b.md": b"B.\n"}
        )
        store.sync()
    for step in steps:
        step(root)
    before = files(root)
    trial = root.parent / "trial"
    shutil.copytree(root, trial)
    operation(trial)
    after = files(trial)
    shutil.rmtree(trial)
    return before, after


def prepare_in_place(root):
    """A folder of notes that was followed, and has changed since; what it holds."""
    configuration = str(root.parent / "configuration")
    with Store.create(
        str(root), layout="in-place", embedder="builtin", configuration=configuration
    ) as store:
        put(root, FIRST | {"gone.html": b"<p>A page that goes.</p>"})
        store.sync()
    put(root, SECOND | {"page.html": b"<h1>Page</h1><p>New words.</p>", "gone.html": None})
    return files(root), files(root)


def prepare(root, steps):
    """A store with a first change, indexed, and some steps more; its two states."""
    configuration = str(root.parent / "configuration")
    with Store.create(str(root), layout="tree", embedder="builtin", configuration=configuration):
        pass
    with open_store(root) as store:
        write.change(store.places, FIRST, before={}, command="first")
        os.chmod(root / "chunked/a.md/chunk1.md", 0o600)
        first = files(root)
        change(root)
        second = files(root)
        store.undo()
    shutil.rmtree(root / ".undo")
    for step in steps:
        step(root)
    with open_store(root) as store:
        store.sync()
    return first, second


def in_child(call):
    """What a call gives in a child process; None where the child died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            os.write(writing, json.dumps(call()).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None
    return json.loads(answer) if answer else "crashed"


def load(names):
    """Load what the first child had to load, so that those to come need not."""
    for name in names:
        if name.partition(".")[0] in LOADED:
            importlib.import_module(name)


def interrupted(root, operation, hook, at, how):
    """Carry an operation out that is interrupted; whether it came that far, and its error."""
    hook.at, hook.how = at, how
    error = ""
    try:
        operation(root)
    except (FilestoreError, OSError, KeyboardInterrupt) as caught:
        error = f"{type(caught).__name__}: {caught}"
    hook.how = ""
    return {"reached": hook.count >= at, "error": error, "how": how}


def left_behind(root):
    """What a writer that died left: temporary files, originals without a record."""
    temporary = {*root.rglob(f"{TEMPORARY_PREFIX}*")}
    temporary -= {*(root / ".sidecar").rglob("*")}
    kept = [*root.glob(".undo/0*"), *root.glob(".filestore/undo/0*")]
    temporary -= {*(root / ".filestore").rglob("*")} - {*(root / ".filestore/undo").rglob("*")}
    unrecorded = {path for path in kept if not (path / "batch.json").exists()}
    # Who tells of a folder tells of what is in it.
    temporary -= {path for path in temporary if path.parent in unrecorded}
    return {path.relative_to(root).as_posix() for path in temporary | unrecorded}


def aftermath_in_place(root, before):
    """What is wrong after a sync of notes was interrupted; empty where all is well."""
    with open_store(root) as store:
        store.status()
        report = store.sync()
        found = [one for one in store.verify(level="full").findings if one.severity != "I"]
        hits = {hit.path for hit in store.search("new words page", mode="keyword").hits}
    if files(root) != before:
        return "a file changed"
    if report.remaining or found:
        return f"not in step after the next sync: {report.remaining} {found}"
    return "" if "page.html" in hits else f"only {hits} are found"


def aftermath_note(root, name, states):
    """What is wrong after a note was interrupted; empty where all is well."""
    there = files(root)
    if there not in states:
        return f"neither the one nor the other: {sorted(there)}"
    goal = states[0] if name in ("add-note", "append-note", "edit-note") else states[1]
    with open_store(root) as store:
        told = {one.path for one in store.status().findings if one.code == "leftovers"}
        if left_behind(root) - told:
            return f"nobody tells of {sorted(left_behind(root) - told)}"
        report = store.sync()
        if report.remaining or left_behind(root) or files(root) != there:
            return f"a sync did not complete it: {report.remaining} {left_behind(root)}"
        if problem := not_in_step(store, there):
            return problem
        batches = store.batches()
        if there != goal or (batches and batches[-1].underway):
            store.redo() if name == "redo-note" else store.undo()
        if files(root) != goal:
            return "calling it again did not put everything right"
        return not_in_step(store, goal)


def not_in_step(store, there):
    """What a whole look finds, and a search that does not find what is there."""
    found = [one for one in store.verify(level="full").findings if one.severity != "I"]
    hits = {hit.path for hit in store.search("lamp burns", mode="keyword").hits}
    is_there = any(b"lamp" in data for data, _ in there.values())
    return f"not in step: {found} {hits}" if found or bool(hits) != is_there else ""


def aftermath(root, name, states, outcome):
    """What is wrong after an interruption; empty where all is well."""
    first, second = states
    back = name.startswith("undo")
    before, after = (second, first) if back else states
    there = files(root)
    strange = {
        path for path, held in there.items() if held not in (first.get(path), second.get(path))
    }
    missing = (first.keys() & second.keys()) - there.keys()
    if strange or missing:
        return f"neither the one nor the other: {sorted(strange | missing)}"
    # Only a disk that refuses from then on may keep what was done from being taken back.
    half = outcome is not None and outcome["how"] == "fail-on"
    half = half and "HalfReplacedError" in outcome["error"]
    if outcome is not None and not half and there not in (before, after):
        return "a failure that was told left half of it"
    with open_store(root) as store:
        told = {one.path for one in store.status().findings if one.code == "leftovers"}
        if left_behind(root) - told:
            return f"nobody tells of {sorted(left_behind(root) - told)}"
        batches = store.batches()
        unfinished = bool(batches) and batches[-1].underway
        if there != after or unfinished:
            # An undo or redo that is called again completes; a change is taken back.
            again, goal = (store.undo, first) if back or name == "change" else (store.redo, after)
            if name != "change" or there != first or unfinished:
                again()
            if files(root) != goal:
                return "calling it again did not put everything right"
        elif name == "change":
            store.undo()
            if files(root) != first:
                return "it could not be undone"
        if name != "change" and not store.status().clean:
            return f"the sidecar is not in step: {store.status().findings}"
        report = store.sync()
        left = left_behind(root)
        if left or report.remaining:
            return f"left behind: {left} {report.remaining}"
    return ""


def main():
    """Go through the points of one operation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operation", choices=[*OPERATIONS, *NOTES], required=True)
    parser.add_argument("--how", choices=["kill", "fail", "fail-on", "interrupt"], required=True)
    parser.add_argument("--layout", choices=LAYOUTS, default="tree", help="of notes")
    parser.add_argument("--every", type=int, default=1, help="only each so many of the points")
    parser.add_argument("--start", type=int, default=1)
    options = parser.parse_args()
    points, wrong = go_through(options)
    print(json.dumps({"points": points, "wrong": wrong}))
    sys.exit(1 if wrong else 0)


def go_through(options):
    """Interrupt an operation at one point after the other: how many there were, what was wrong."""
    steps, operation = (OPERATIONS | NOTES)[options.operation]
    hook = Interruption()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        base, root = Path(folder) / "base", Path(folder) / "store"
        in_place = options.operation == "sync-in-place"
        made = partial(prepare_in_place, base) if in_place else partial(prepare, base, steps)
        if options.operation in NOTES:
            made = partial(prepare_notes, base, options.layout, steps, operation)
        *states, loaded = in_child(lambda: [*map(_plain, made()), [*sys.modules]])
        states = [_bytes(state) for state in states]
        load(loaded)
        for points, at in enumerate(itertools.count(options.start, options.every)):
            shutil.copytree(base, root)
            outcome = in_child(partial(interrupted, root, operation, hook, at, options.how))
            if outcome == "crashed" or (outcome is not None and not outcome["reached"]):
                return points, wrong + ([[at, outcome]] if outcome == "crashed" else [])
            look = partial(aftermath, root, options.operation, states, outcome)
            if options.operation in NOTES:
                look = partial(aftermath_note, root, options.operation, states)
            said = in_child(partial(aftermath_in_place, root, states[0]) if in_place else look)
            if said != "":
                wrong.append([at, outcome, said])
            shutil.rmtree(root)
    raise AssertionError("the count of points never ends")


def _plain(state):
    return {path: [data.decode(), mode] for path, (data, mode) in state.items()}


def _bytes(state):
    return {path: (data.encode(), mode) for path, (data, mode) in state.items()}


if __name__ == "__main__":
    main()
