"""Stops calls of a store from outside, moment after moment, and looks at what is there then.

A program, because each attempt is a forked child, and only a process without threads forks well:

    python tests/system/stopped_work.py --call apply undo --how SIGINT SIGKILL --moments 50

The signal goes to the child alone, as from a front end that holds it. It prints one JSON object:
how the attempts ended, what the files were then, the longest time to an end, and what was wrong;
where something was it exits 1.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import partial
from pathlib import Path

from interrupted_changes import in_child, load

from filestore import Policy, Store
from filestore.fs.disk import TEMPORARY_PREFIX

FILES = 60
TRUTH = Policy(truth=True)
LONGEST_S = 30.0
"""Far more than a small store needs: whoever is not gone by then hangs."""
ENDED = {0: "done", 1: "stopped", 2: "crashed"}


def opened(root):
    """The store at a root, with settings of its own."""
    return Store(str(root), configuration=str(root.parent / "configuration"), processes=2)


def plan(store):
    """Everything that can be mended, truth files too."""
    return store.plan(TRUTH, level="full")


def begun(store, name):
    """A call, with what goes before it done."""
    if name == "apply":
        return partial(store.apply, plan(store))
    calls = {"plan": partial(plan, store), "verify": partial(store.verify, level="full")}
    return calls.get(name) or getattr(store, name)


def prepare(root, name):
    """A store of which files went, moved and changed, brought to where a call begins."""
    configuration = str(root.parent / "configuration")
    with Store.create(str(root), layout="tree", embedder="builtin", configuration=configuration):
        pass
    chunked = root / "chunked"
    notes = [chunked / f"r{number % 5}" / f"note{number}.md" for number in range(FILES)]
    for number, path in enumerate(notes):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {number}\n\nNote {number}, as [that](../r0/note0.md) has it.\n")
    with opened(root) as store:
        store.sync()
        notes[0].rename(chunked / "r0" / "moved.md")
        store.sync()
        for path in notes[1:16]:
            path.unlink()
        for path in notes[16:20]:
            path.write_text("Another text.\n")
        if name in ("undo", "redo"):
            store.apply(plan(store))
        if name == "redo":
            store.undo()


def tree(root):
    """Every truth file; what a dead writer staged is none."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in (root / "chunked").rglob("*")
        if path.is_file() and not path.name.startswith(TEMPORARY_PREFIX)
    }


def encoded(files):
    """A tree as JSON holds it."""
    return {path: data.decode() for path, data in files.items()}


def stopped(root, name, how, wait_s):
    """Begin a call and stop it after a time: how it ended, how long that took, who is left."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os._exit(carried_out(root, name, writing))
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        pipe.read(1)
    time.sleep(wait_s)
    os.kill(child, how)
    sent_s = time.monotonic()
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() - sent_s > LONGEST_S:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    took_s = time.monotonic() - sent_s
    left = session(child)
    _, status = os.waitpid(child, 0)
    end = "killed" if os.WIFSIGNALED(status) else ENDED[os.waitstatus_to_exitcode(status)]
    return end, took_s, left


def carried_out(root, name, writing):
    """The call, in a child that says when it begins; what it ends with."""
    try:
        with opened(root) as store:
            call = begun(store, name)
            os.write(writing, b"!")
            call()
    except KeyboardInterrupt:
        return 1
    except BaseException:
        traceback.print_exc()
        return 2
    return 0


def session(number):
    """The processes of a session that still run, its first one apart.

    What another one was killed with may take a moment to reach it.
    """
    left = []
    for _ in range(100):
        left = [one for one in map(int, filter(str.isdigit, os.listdir("/proc"))) if one != number]
        left = [one for one in left if is_of(one, number)]
        if not left:
            break
        time.sleep(0.01)
    return left


def is_of(process, number):
    """Whether a process that is no mere zombie is one of a session."""
    try:
        state, _, _, leader = (
            Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:4]
        )
    except OSError:
        return False
    return int(leader) == number and state != "Z"


def aftermath(root, name, end, first, second):
    """What is wrong after a call was stopped; empty where all is well.

    Args:
        root: The store.
        name: The call.
        end: How it ended.
        first: Its truth files before.
        second: What a call that ends makes of them.
    """
    now = encoded(tree(root))
    if end != "killed" and now not in (first, second):
        return "stopped, it left half of a change"
    if any(data not in (first.get(path), second.get(path)) for path, data in now.items()):
        return "a file holds neither the one text nor the other"
    with opened(root) as store:
        # A repair is taken back; an undo or a redo is completed, and then turned the other way.
        goal = first if name == "apply" else second
        if now != goal or any(group.underway for group in store.batches()):
            (store.redo if name == "redo" else store.undo)()
        if encoded(tree(root)) != goal:
            return "calling it again did not put everything right"
        if name in ("undo", "redo"):
            (store.redo if name == "undo" else store.undo)()
            if encoded(tree(root)) != first:
                return "it could not be turned the other way then"
        store.sync()
        found = [one for one in store.verify(level="full").findings if one.severity == "E"]
    left = [*map(str, (root / "chunked").rglob(f"{TEMPORARY_PREFIX}*"))]
    return f"left behind: {found} {left}" if found or left else ""


def finished(root, name):
    """A call that nobody stops: the trees before and after, how long it took, what it loaded."""
    first = encoded(tree(root))
    with opened(root) as store:
        call = begun(store, name)
        began_s = time.monotonic()
        call()
        usual_s = time.monotonic() - began_s
    return first, encoded(tree(root)), usual_s, list(sys.modules)


class Attempts:
    """One call that is stopped again and again, and what was seen."""

    def __init__(self, name, folder):
        self.name = name
        self.base, self.root = folder / "base", folder / "store"
        in_child(partial(prepare, self.base, name))
        shutil.copytree(self.base, self.root)
        call = partial(finished, self.root, name)
        self.first, self.second, _, loaded = in_child(call)
        load(loaded)
        # Once more with all of it loaded, which is how long the attempts take.
        self.reset()
        _, _, self.usual_s, _ = in_child(call)
        self.ends, self.trees, self.wrong = Counter(), Counter(), []
        self.longest_s = 0.0

    def reset(self):
        """Put the store back."""
        shutil.rmtree(self.root)
        shutil.copytree(self.base, self.root)

    def attempt(self, how, share):
        """Stop the call after a share of its usual time, and look."""
        self.reset()
        end, took_s, left = stopped(self.root, self.name, how, self.usual_s * share)
        self.longest_s = max(self.longest_s, took_s)
        self.ends[end] += 1
        now = encoded(tree(self.root))
        self.trees[
            "before" if now == self.first else "after" if now == self.second else "half"
        ] += 1
        said = f"running on: {left}" if left else ""
        said = said or "it crashed" * (end == "crashed") or "it hung" * (took_s > LONGEST_S)
        look = partial(aftermath, self.root, self.name, end, self.first, self.second)
        said = said or in_child(look)
        if said:
            self.wrong.append([how.name, round(share, 3), end, said])


def go_through(name, options):
    """Stop a call at so many moments in each way, and say what was seen."""
    with tempfile.TemporaryDirectory() as folder:
        work = Attempts(name, Path(folder))
        for how in options.how:
            for moment in range(options.moments):
                # A little longer than it takes: the last one may find it done.
                work.attempt(signal.Signals[how], 1.1 * moment / max(options.moments - 1, 1))
    seen = ("ends", "trees", "longest_s", "wrong")
    return {one: getattr(work, one) for one in seen} | {"changes": work.first != work.second}


def main():
    """Go through the moments of one call."""
    parser = argparse.ArgumentParser(description=__doc__)
    calls = ["apply", "undo", "redo", "plan", "verify", "sync"]
    parser.add_argument("--call", choices=calls, nargs="+", required=True)
    parser.add_argument("--how", choices=["SIGINT", "SIGKILL"], nargs="+", required=True)
    parser.add_argument("--moments", type=int, default=12)
    options = parser.parse_args()
    found = {name: go_through(name, options) for name in options.call}
    print(json.dumps(found))
    sys.exit(1 if any(one["wrong"] for one in found.values()) else 0)


if __name__ == "__main__":
    main()
