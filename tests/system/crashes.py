"""Writers that die: at random, at every system call that changes the disk, and while recovering.

``python tests/system/crashes.py random [--cycles 2000]`` kills commands after a random time;
``everywhere`` kills a sync, an add, an update, a repair and an undo before each call that changes
the disk; ``pairs [--count 500]`` kills the recovery that follows, too; ``errors`` lets each of
these calls fail with EIO, ENOSPC, EROFS and EACCES. All but the first need ``strace``. Every one
prints a table and exits with 1 where a store did not open, an acknowledged change was lost, a byte
of truth was neither old nor new, or the store was not as if nothing had happened once the command
was repeated.

The commands run in children forked from this process, which has everything loaded, so that what is
hit is their work and not the start of Python.
"""

import argparse
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from filestore.chunks import chunk_file

CALLS = (
    "write,pwrite64,pwritev,writev,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,"
    "mkdir,mkdirat,rmdir,ftruncate,fallocate,link,linkat,fchmod,copy_file_range"
)
ERRORS = ("EIO", "ENOSPC", "EROFS", "EACCES")
KILLED = -signal.SIGKILL
STUCK_S = 60.0
WORKERS = os.cpu_count() or 1
QUERIES = ("amber basalt", "lease renewal", "what is copper for", "zinc")
TOPICS = ("amber", "basalt", "copper", "diorite", "emerald", "flint", "garnet", "zinc")
_ORDER = re.compile(rb"^order: .*\n", re.M)
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")


# Commands in children


def warm() -> None:
    """Load what the commands load, so that no child spends its time on imports."""
    import faiss
    import frontmatter
    import markdown_it
    import numpy
    import semantic_text_splitter
    import tantivy

    import filestore

    assert all((faiss, frontmatter, markdown_it, numpy, semantic_text_splitter, tantivy))
    for module in pkgutil.walk_packages(filestore.__path__, "filestore."):
        # What needs a library that is not installed is loaded by no command here either.
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    # What is there now stays: a child that counts references copies no page of it.
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that ended, or was ended."""

    code: int
    """The exit code; minus the signal that killed it."""
    out: str
    err: str


@functools.cache
def service() -> Any:
    """A service that embeds, for the commands that name one; `close_service` ends it."""
    # It lies beside this program, which is in no package when it runs.
    from embedding_server import EmbeddingServer

    server = EmbeddingServer()
    server.__enter__()
    return server


def close_service() -> None:
    """Let the process end."""
    if service.cache_info().currsize:
        service().__exit__(None)


def spoken(words: Sequence[str]) -> list[str]:
    """The words of a command with the service that they name."""
    return [service().endpoint if word == "{endpoint}" else word for word in words]


class Child:
    """A command in a forked child; `stopped` leaves it waiting to be continued."""

    def __init__(self, folder: Path, words: Sequence[str], *, stopped: bool = False) -> None:
        words = spoken(words)
        self._out, self._err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        self.pid = os.fork()
        if self.pid == 0:
            self._run(folder, words, stopped)
        if stopped:
            os.waitpid(self.pid, os.WUNTRACED)

    def _run(self, folder: Path, words: Sequence[str], stopped: bool) -> None:
        code = 70
        try:
            os.chdir(folder)
            os.dup2(self._out.fileno(), 1)
            os.dup2(self._err.fileno(), 2)
            os.environ["XDG_CONFIG_HOME"] = str(folder / "configuration")
            if stopped:
                os.kill(os.getpid(), signal.SIGSTOP)
            from filestore.cli import main

            code = main(list(words))
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)

    def wait(self, limit_s: float = STUCK_S) -> Ended:
        """Wait for its end; kill it after a time."""
        deadline = time.monotonic() + limit_s
        status: int | None = None
        while status is None and time.monotonic() < deadline:
            ended, found = os.waitpid(self.pid, os.WNOHANG)
            status = found if ended else None
            time.sleep(0.0005)
        if status is None:
            os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
        out, err = map(_read, (self._out, self._err))
        return Ended(code=os.waitstatus_to_exitcode(status), out=out, err=err)


def _read(file: Any) -> str:
    file.seek(0)
    with file:
        return str(file.read().decode("utf-8", "replace"))


def run(folder: Path, *words: str, limit_s: float = STUCK_S) -> Ended:
    """Run one command to its end."""
    return Child(folder, words).wait(limit_s)


@dataclass(frozen=True, slots=True)
class Point:
    """A system call of a command: its name, and which one of that name."""

    name: str
    number: int
    path: str = ""
    """What it was about in the run that was recorded."""


def traced(
    folder: Path, words: Sequence[str], *options: str
) -> tuple[Ended, list[tuple[str, str]]]:
    """Run one command under strace.

    Returns:
        How it ended, and the calls of its thread that made most of each: name and arguments.
    """
    watch = ("-s", "0", "-e", f"trace={CALLS}")
    ended, lines = watched(folder, words, *watch, *options)
    calls: list[tuple[str, str]] = []
    for line in lines:
        if found := _CALL.match(line):
            calls.append((f"{found[1]} {found[2]}", found[3]))
        elif found := _RESUMED.match(line):
            # Another thread was written of in between: what came of the call belongs to its start.
            thread = f"{found[1]} {found[2]}"
            begun = [at for at, (name, _) in enumerate(calls) if name == thread]
            for place in begun[-1:]:
                calls[place] = (thread, calls[place][1] + found[3])
    return ended, calls


def watched(folder: Path, words: Sequence[str], *options: str) -> tuple[Ended, list[str]]:
    """Run one command under strace: how it ended, and what strace wrote."""
    with tempfile.NamedTemporaryFile(prefix="filestore-trace-") as log:
        child = Child(folder, words, stopped=True)
        call = ["strace", "-f", "-qq", "-y", "-o", log.name]
        strace = subprocess.Popen(
            [*call, *options, "-p", str(child.pid)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        _wait_attached(child.pid, strace)
        os.kill(child.pid, signal.SIGCONT)
        ended = child.wait()
        assert strace.stderr is not None
        strace.stderr.close()
        strace.wait(timeout=STUCK_S)
        return ended, log.read().decode("utf-8", "replace").splitlines()


def _wait_attached(pid: int, strace: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + STUCK_S
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status").read_text()
        if "TracerPid:\t0\n" not in status:
            return
        if strace.poll() is not None:
            break
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    assert strace.stderr is not None
    raise SystemExit(f"strace cannot watch a process: {strace.stderr.read().decode()}")


def points_of(calls: Sequence[tuple[str, str]], below: Path) -> list[Point]:
    """The calls that change something below a folder, as strace counts them: each thread its own.

    A kill at number n of a name falls into the thread that comes to it first, so each number that
    some thread comes to is one point.
    """
    counted: Counter[str] = Counter()
    points: dict[tuple[str, int], Point] = {}
    for call, arguments in calls:
        counted[call] += 1
        name = call.split(" ")[1]
        inside = str(below) in arguments
        key = (name, counted[call])
        if inside and key not in points:
            points[key] = Point(name, counted[call], arguments[:120])
    return list(points.values())


# Scenarios


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A command that is hit, and what completes it afterwards."""

    name: str
    make: Callable[[Path], None]
    """Makes a work tree up to the moment before the command."""
    words: tuple[str, ...]
    again: tuple[str, ...]
    first: tuple[str, ...] = ()
    """A command before it that is hit as well."""
    reopens: bool = False
    """Whether the command opens the store several times."""
    nothing_left: str = ""
    """What completing it says where there was nothing to complete."""
    is_damaged: bool = False
    """Whether it begins with damage that a sync by stats does not see."""
    may_stay: bool = False
    """Whether it may also be as if it was never begun: what completes it is another command."""
    is_whole: bool = False
    """Whether the store must answer, right after it was hit, as before or as after."""
    is_taken_back: bool = False
    """Whether undo must lead from where it ended, however often it was begun, to where it began."""
    is_undone: bool = False
    """Whether what completes it takes it back."""


def document(chance: random.Random, sections: int = 6) -> str:
    """A Markdown document of short sections."""
    parts = []
    for topic in chance.sample(TOPICS, sections):
        words = " ".join(chance.choice(TOPICS) for _ in range(60))
        parts.append(f"## {topic.title()}\n\nAbout {topic}: {words}.\n")
    return "# Stones\n\n" + "\n".join(parts)


def new_tree(folder: Path) -> None:
    """A work tree with a store of two resources, everything in step."""
    chance = random.Random(7)
    folder.mkdir(parents=True, exist_ok=True)
    must(folder, "init", "--embedder", "builtin")
    (folder / "stones.md").write_text(document(chance))
    (folder / "lease.md").write_text("# Lease\n\nThe lease renewal is due in May.\n")
    must(folder, "add", "stones.md", "lease.md")


def must(folder: Path, *words: str) -> Ended:
    """Run a command that has to succeed."""
    done = run(folder, *words)
    if done.code != 0:
        raise SystemExit(f"{words} ended with {done.code}\n{done.out}{done.err}")
    return done


def chunked(folder: Path) -> Path:
    """The truth of a work tree's store."""
    return folder / "file_index" / "chunked"


def edited(folder: Path) -> None:
    """Before a sync: an edit, a new file, a rename, a deletion."""
    new_tree(folder)
    edit(folder)


def exported(folder: Path) -> None:
    """Before an import: a store, and a file to which a changed copy of it was exported."""
    new_tree(folder)
    (folder / "stones.md").write_text(document(random.Random(9), sections=8))
    (folder / "town.md").write_text("# Town\n\nThe zinc roofs of the town are old.\n")
    must(folder, "add", "stones.md", "town.md")
    must(folder, "export", "jsonl", "changed.jsonl")
    must(folder, "undo")
    # What came with it is not there already.
    shutil.rmtree(folder / "file_index" / ".sidecar")
    run(folder, "sync")


def many_texts(folder: Path) -> None:
    """More new notes than a commit embeds, half of them indexed, and waiting for their vector."""
    new_tree(folder)
    for number in range(40):
        (chunked(folder) / f"waits{number}.md").write_text(f"A note of basalt, number {number}.\n")
    must(folder, "sync", "--no-embed")
    for number in range(40):
        (chunked(folder) / f"new{number}.md").write_text(f"A note of zinc, number {number}.\n")


def edited_elsewhere(folder: Path) -> None:
    """The same where vectors lie in a backend, which is sent what changed."""
    new_tree(folder)
    must(folder, *LINES)
    edit(folder)


def edit(folder: Path) -> None:
    """Make drift of all kinds."""
    files = sorted(chunked(folder).glob("stones.md/chunk*.md"))
    files[0].write_bytes(files[0].read_bytes() + b"\nA sentence about zinc.\n")
    files[1].rename(files[1].with_name("renamed.md"))
    files[2].unlink()
    (chunked(folder) / "own.md").write_text("My own copper note.\n")


def changed_source(folder: Path) -> None:
    """Before an add: the source changed in some sections, and so did a chunk, by hand."""
    new_tree(folder)
    first = sorted(chunked(folder).glob("stones.md/chunk*.md"))[0]
    first.write_bytes(first.read_bytes() + b"\nBy hand.\n")
    must(folder, "sync")
    text = (folder / "stones.md").read_text().split("\n## ")
    text[2] = text[2].replace("About", "Now about")
    text[3:3] = ["Granite\n\nGranite is new here, and so is basalt beside it.\n"]
    (folder / "stones.md").write_text("\n## ".join(text[:-1]))


def changed_originals(folder: Path) -> None:
    """Before an update: originals were edited, moved, made and removed, and chunks edited by hand.

    One hand edit comes together with what its original says now, the other overlaps with it.
    """
    chance = random.Random(7)
    (folder / "book").mkdir(parents=True)
    must(folder, "init", "--embedder", "builtin")
    stones, lease = folder / "book" / "stones.md", folder / "lease.md"
    for name in ("stones", "moved", "gone"):
        (folder / "book" / f"{name}.md").write_text(document(chance))
    lease.write_text("# Lease\n\nIt is due in May.\n\nIt ends in June.\n")
    must(folder, "add", "book", "lease.md")
    rewrite(next(chunked(folder).glob("lease.md/chunk*.md")), "in June", "in June, at last")
    files = sorted(chunked(folder).glob("book/**/chunk*.md"))
    rewrite(next(one for one in files if "stones.md" in one.read_text()), "About", "By hand about")
    must(folder, "sync")
    rewrite(lease, "in May", "in April")
    rewrite(stones, "About", "Now about")
    (folder / "book" / "moved.md").rename(folder / "book" / "renamed.md")
    (folder / "book" / "gone.md").unlink()
    (folder / "book" / "new.md").write_text(document(chance))


def rewrite(path: Path, old: str, new: str) -> None:
    """Replace words in a file that has them."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def lost(folder: Path) -> None:
    """Before a repair: chunk files are gone, and so is a record."""
    new_tree(folder)
    files = sorted(chunked(folder).glob("stones.md/chunk*.md"))
    for path in (*files[:3], chunked(folder) / "stones.md" / "meta.json"):
        path.unlink()


def repaired(folder: Path) -> None:
    """Before an undo: what was lost came back, and shall go again."""
    lost(folder)
    must(folder, "repair", "--write-files", "--yes")


def chapters(folder: Path) -> None:
    """Before enriching: a resource with enough chunks for two levels, and a person's question."""
    new_tree(folder)
    (folder / "town.md").write_text(document(random.Random(3), sections=8))
    must(folder, "add", "town.md")
    first = chunked(folder) / "town.md" / "chunk1.md"
    first.write_bytes(chunk_file.update(first.read_bytes(), questions=["Whose is it?"]))
    must(folder, "sync")


def enriched(folder: Path) -> None:
    """Before a refresh: an edit, a new text, one that is gone, and what a person changed."""
    chapters(folder)
    must(folder, "enrich")
    files = sorted((chunked(folder) / "town.md").glob("chunk*.md"))
    files[1].write_bytes(files[1].read_bytes() + b"\nA sentence about zinc.\n")
    files[2].unlink()
    (chunked(folder) / "town.md" / "own.md").write_text("My own note of copper wires.\n")
    (folder / "file_index" / ".undo").rename(folder / "kept-undo")
    run(folder, "sync")


def notes(folder: Path) -> None:
    """Documents where they lie: notes, and one that a child process reads."""
    chance = random.Random(7)
    (folder / "sub").mkdir(parents=True, exist_ok=True)
    (folder / ".filestoreignore").write_text("configuration/\n")
    for name in ("stones.md", "sub/more.md", "sub/other.md"):
        (folder / name).write_text(document(chance))
    (folder / "lease.md").write_text("# Lease\n\nThe lease renewal is due in May.\n")
    (folder / "page.html").write_text("<h1>Page</h1><p>What is copper for? For wires.</p>")


def edited_notes(folder: Path) -> None:
    """Before a sync in place: an edit, a new note, a rename, a deletion, a new page."""
    notes(folder)
    must(folder, "init", "--in-place", "--embedder", "builtin")
    must(folder, "sync")
    first = folder / "stones.md"
    first.write_bytes(first.read_bytes() + b"\nA sentence about zinc.\n")
    (folder / "lease.md").rename(folder / "renewal.md")
    (folder / "sub" / "other.md").unlink()
    (folder / "own.md").write_text("My own copper note.\n")
    (folder / "new.html").write_text("<h1>New</h1><p>A page of amber and basalt.</p>")


def linked_notes(folder: Path) -> None:
    """Before a move in place: notes with links to a folder, and in it, and a picture."""
    notes(folder)
    (folder / "sub" / "plan.png").write_bytes(bytes(range(200)))
    (folder / "sub" / "up.md").write_text("# Up\n\n[stones](../stones.md) ![p](plan.png)\n")
    (folder / "home.md").write_text("# Home\n\n[[sub/more]], [up](sub/up.md), [[up]], [[lease]]\n")
    (folder / "list.md").write_text("[more](sub/more.md#zinc)\n\n![p](sub/plan.png)\n")
    must(folder, "init", "--in-place", "--embedder", "builtin")
    must(folder, "sync")


def moved_notes(folder: Path) -> None:
    """Before a repair of links in place: notes were moved without filestore, one of them known."""
    linked_notes(folder)
    (folder / "lease.md").rename(folder / "rent.md")
    # It says that links lead nowhere.
    assert run(folder, "sync").code == 1
    (folder / "deep").mkdir()
    (folder / "sub" / "up.md").rename(folder / "deep" / "down.md")


def linked_originals(folder: Path) -> None:
    """Before a move of an original that others link to, and that links itself."""
    new_tree(folder)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "index.md").write_text("# Index\n\nThe [stones](stones.md), the [lease](lease.md).\n")
    rewrite(folder / "stones.md", "# Stones", "# Stones\n\nSee the [lease](lease.md).")
    must(folder, "add", "stones.md", "index.md")
    # What undo takes back is the move, if it was begun.
    (folder / "file_index" / ".undo").rename(folder / "kept-undo")


def moved_originals(folder: Path) -> None:
    """Before a repair of links in originals, one of which was moved without filestore."""
    linked_originals(folder)
    (folder / "stones.md").rename(folder / "rocks.md")


def lost_catalog(folder: Path) -> None:
    """Before a sync in place that reads every document again, most of them from the cache."""
    edited_notes(folder)
    (folder / ".filestore" / "catalog.sqlite").write_bytes(b"no database")


def damaged_notes(folder: Path) -> None:
    """Before a repair in place: drift, a damaged row, embeddings that rotted, no full text."""
    edited_notes(folder)
    sidecar = folder / ".filestore"
    shutil.rmtree(sidecar / "fulltext")
    for name, harm in (
        ("catalog.sqlite", "UPDATE files SET checksum = x'00' WHERE id = 2"),
        ("embeddings.sqlite", "UPDATE vectors SET checksum = x'00' WHERE id % 4 = 0"),
    ):
        connection = sqlite3.connect(sidecar / name, isolation_level=None)
        assert connection.execute(harm).rowcount > 0
        connection.close()


def enriched_notes(folder: Path) -> None:
    """Before an enrich in place: some notes changed since the last one, one was moved."""
    notes(folder)
    must(folder, "init", "--in-place", "--embedder", "builtin")
    must(folder, "enrich")
    first = folder / "stones.md"
    first.write_bytes(first.read_bytes() + b"\nA sentence about zinc.\n")
    (folder / "sub" / "other.md").rename(folder / "moved.md")
    (folder / "own.md").write_text(document(random.Random(8)))
    # It says that summaries are stale.
    assert run(folder, "sync").code == 1


def two_models(folder: Path) -> None:
    """Before a switch: a second model stands beside the store's own."""
    new_tree(folder)
    must(folder, *BESIDE)


def edited_away(folder: Path) -> None:
    """Before a prune: texts that are gone, and one that only undo has."""
    new_tree(folder)
    for number in range(3):
        (chunked(folder) / "own.md").write_text(f"Edit {number} of my own zinc note.\n")
        must(folder, "sync")
    must(folder, "rm", "lease.md")


def committed(folder: Path) -> None:
    """Before an earlier commit is searched that has texts which were never embedded."""
    new_tree(folder)
    first = sorted(chunked(folder).glob("stones.md/chunk*.md"))[0]
    begun = first.read_bytes()
    for text in (b"\nCopper was here for a day.\n", b"\nZinc stayed.\n"):
        first.write_bytes(begun + text)
        for words in (["init", "-q"], ["add", "-A"], [*AUTHOR, "commit", "-qm", "as it is"]):
            subprocess.run(["git", *words], cwd=folder, check=True)
    must(folder, "sync")


AUTHOR = ("-c", "user.name=A", "-c", "user.email=a@example.org")
LINES = ("backend", "set", "local", "--yes")
THEN = ("search", "--at", "HEAD~1", "--embed", "copper for a day")
HOME = ("backend", "set", "faiss", "--yes")
PRUNE = ("embeddings", "prune", "--yes")
SMALL = ("embedder", "set", "openai:small", "--endpoint", "{endpoint}", "--yes")
BESIDE = (*SMALL, "--beside")
SCENARIOS = {
    one.name: one
    for one in (
        Scenario(
            name="model",
            make=new_tree,
            words=SMALL,
            again=SMALL,
            # To plan, and then to embed in several transactions.
            reopens=True,
            is_whole=True,
        ),
        Scenario(name="beside", make=new_tree, words=BESIDE, again=BESIDE, is_whole=True),
        Scenario(
            name="switch",
            make=two_models,
            words=("embedder", "switch"),
            again=("sync",),
            may_stay=True,
            is_whole=True,
        ),
        Scenario(
            name="drop",
            make=two_models,
            words=("embedder", "drop", "--yes"),
            again=("embedder", "drop", "--yes"),
            nothing_left="the store has no second model",
            is_whole=True,
        ),
        # The rows that nothing needs, the catalog, then the smaller file.
        Scenario(name="prune", make=edited_away, words=PRUNE, again=PRUNE, reopens=True),
        Scenario(name="past", make=committed, words=THEN, again=THEN, is_whole=True, reopens=True),
        Scenario(name="backend", make=new_tree, words=LINES, again=LINES, is_whole=True),
        Scenario(
            name="backend-sync",
            make=edited_elsewhere,
            words=("sync",),
            again=("sync",),
            # The commit before is whole, and SQLite checkpoints it as the file is closed.
            reopens=True,
        ),
        Scenario(name="backend-home", make=edited_elsewhere, words=HOME, again=HOME),
        Scenario(name="notes", make=edited_notes, words=("sync",), again=("sync",)),
        Scenario(name="rebuild-in-place", make=lost_catalog, words=("sync",), again=("sync",)),
        Scenario(
            name="repair-in-place",
            make=damaged_notes,
            words=("repair", "--level", "full", "--yes"),
            again=("repair", "--level", "full", "--yes"),
            is_damaged=True,
        ),
        Scenario(
            name="move-in-place",
            make=linked_notes,
            words=("mv", "sub", "deep/er"),
            again=("undo",),
            is_undone=True,
        ),
        Scenario(
            name="relink-in-place",
            make=moved_notes,
            words=("repair", "--write-files", "--yes"),
            again=("repair", "--write-files", "--yes"),
            is_taken_back=True,
        ),
        Scenario(
            name="move",
            make=linked_originals,
            words=("mv", "stones.md", "docs/rocks.md"),
            again=("undo",),
            is_undone=True,
            reopens=True,
        ),
        Scenario(
            name="relink",
            make=moved_originals,
            words=("repair", "--write-files", "--yes"),
            again=("undo",),
            is_undone=True,
            reopens=True,
        ),
        Scenario(
            name="init-in-place",
            make=notes,
            words=("init", "--in-place", "--embedder", "builtin"),
            again=("init", "--in-place", "--embedder", "builtin"),
            nothing_left="is a store already",
        ),
        Scenario(
            name="enrich", make=chapters, words=("enrich",), again=("enrich",), is_taken_back=True
        ),
        Scenario(
            name="refresh",
            make=enriched,
            words=("enrich", "--refresh"),
            again=("enrich", "--refresh"),
            is_taken_back=True,
        ),
        Scenario(name="enrich-in-place", make=enriched_notes, words=("enrich",), again=("enrich",)),
        # What it indexes before it answers; what is gone is left to the sync.
        Scenario(name="search", make=edited, words=("search", "zinc"), again=("sync",)),
        Scenario(name="sync", make=edited, words=("sync",), again=("sync",)),
        # More texts than a commit embeds: files first, then vectors in turns.
        Scenario(name="embed", make=many_texts, words=("sync",), again=("sync",), reopens=True),
        Scenario(
            name="add", make=changed_source, words=("add", "stones.md"), again=("add", "stones.md")
        ),
        Scenario(
            name="import",
            make=exported,
            words=("import", "jsonl", "changed.jsonl", "--replace"),
            again=("import", "jsonl", "changed.jsonl", "--replace"),
        ),
        Scenario(
            name="update",
            make=changed_originals,
            words=("update", "--remove-gone"),
            again=("update", "--remove-gone"),
            reopens=True,
        ),
        Scenario(
            name="repair",
            make=lost,
            words=("repair", "--write-files", "--yes"),
            again=("repair", "--write-files", "--yes"),
        ),
        Scenario(
            name="undo",
            make=repaired,
            words=("undo",),
            again=("undo", "{batch}"),
            # What was put back before the kill is not put back twice.
            nothing_left="filestore redo",
        ),
    )
}


def truth(folder: Path) -> dict[str, bytes]:
    """Every file below `chunked/` and `source/`, and originals, but the temporary ones of a writer.

    Of documents in place all files that are not ours, and what was made of them; with times and
    modes where no command changes any.
    """
    top = folder / "file_index"
    if is_in_place(folder):
        found = {}
        for path in sorted(folder.rglob("*")):
            name, seen = path.relative_to(folder).as_posix(), path.lstat()
            if path.is_file() and name.startswith(".filestore-summaries/"):
                if not path.name.startswith(".filestore-tmp-"):
                    found[name] = path.read_bytes()
            elif path.is_file() and name.split("/")[0] not in (
                ".filestore",
                "filestore.toml",
                "configuration",
            ):
                stamps = f"{seen.st_mtime_ns} {seen.st_mode} ".encode()
                # Links in these are written.
                stamps = b"" if (folder / "home.md").exists() else stamps
                if not path.name.startswith(".filestore-tmp-"):
                    found[name] = stamps + path.read_bytes()
        return found
    near = [path for path in folder.rglob("*") if path.suffix in (".md", ".json")]
    return {
        os.path.relpath(path, top): path.read_bytes()
        for path in sorted([*near, *(top / "source").rglob("*")])
        if path.is_file()
        and not path.name.startswith(".filestore-tmp-")
        and not path.is_relative_to(folder / "configuration")
        and not path.is_relative_to(top / ".sidecar")
        and not path.is_relative_to(top / ".undo")
        and not path.is_relative_to(folder / "kept-undo")
    }


def answers(folder: Path) -> list[Any]:
    """What the store says to some questions: paths, scores, freshness; and its whole texts."""
    found = []
    with opened(folder) as store:
        for query in QUERIES:
            for mode in ("keyword", "vector", "hybrid"):
                for model in ("own", "beside") if store.beside else ("own",):
                    answer = store.search(query, mode=mode, model=model, update=False)
                    found.append([answer.mode, *map(shown, answer.hits)])
        if any(folder.glob(".git/refs/heads/*")):
            with store.at("HEAD~1", embed=True) as then:
                found += [then.not_embedded, *map(shown, then.search("copper for a day"))]
        if not is_in_place(folder):
            names = [one["resource"] for one in store.resources()]
            found += [store.reconstruct(name).text for name in names]
    return found


def shown(hit: Any) -> list[Any]:
    """What of a hit must be the same."""
    return [hit.path, round(hit.score, 6), hit.freshness]


def opened(folder: Path) -> Any:
    """The store of a work tree."""
    from filestore.store import Store

    return Store(str(home(folder)), configuration=str(folder / "configuration"))


def home(folder: Path) -> Path:
    """Where the store of a work tree lies, or would."""
    return folder if is_in_place(folder) else folder / "file_index"


def is_in_place(folder: Path) -> bool:
    """Whether a scenario is one of `notes`."""
    return (folder / ".filestoreignore").exists()


def apart(work: Callable[[], Any]) -> Any:
    """What a function gives, run in a child; an exception, or the signal that ended it, as text."""
    return awaited(*started(work))


def started(work: Callable[[], Any]) -> tuple[int, int]:
    """Run a function in a child: its process, and the pipe on which it tells what came of it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            try:
                found = {"given": work()}
            except BaseException:
                import traceback

                found = {"failed": traceback.format_exc()}
            with os.fdopen(writer, "w") as pipe:
                json.dump(found, pipe)
        finally:
            os._exit(0)
    os.close(writer)
    return pid, reader


def awaited(pid: int, reader: int) -> Any:
    """What a started child tells."""
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    if not text:
        return [f"ended with {os.waitstatus_to_exitcode(status)}"]
    found = json.loads(text)
    return found["given"] if "given" in found else [found["failed"]]


@dataclass(slots=True)
class Laboratory:
    """A scenario made once, to be copied for each hit, with what it leads to undisturbed."""

    scenario: Scenario
    base: Path
    before: dict[str, bytes] = field(init=False)
    answers_before: list[Any] = field(init=False)
    after: dict[str, bytes] = field(init=False)
    answers: list[Any] = field(init=False)
    batch: str = field(init=False)
    end: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.scenario.make(self.base)
        self.before = truth(self.base)
        self.answers_before = apart(lambda: answers(self.base)) if self.scenario.is_whole else []
        batches = sorted(self.base.glob("file_index/.undo/[0-9]*"))
        self.batch = batches[-1].name if batches else ""
        with self.copy() as folder:
            if self.scenario.first:
                must(folder, *self.scenario.first)
            done = run(folder, *self.scenario.words)
            if "Traceback" in done.err or done.code not in (0, 1):
                raise SystemExit(f"{self.scenario.name} undisturbed: {done.code} {done.err}")
            self.after = truth(folder)
            if wrong := apart(lambda: settled(folder)):
                raise SystemExit(f"{self.scenario.name} undisturbed: {wrong}")
            self.answers = apart(lambda: answers(folder))
        self.end = self.before if self.scenario.is_undone else self.after
        if self.scenario.is_undone:
            self.answers = apart(lambda: answers(self.base))

    def copy(self) -> "Copy":
        """A work tree to try something on."""
        return Copy(self.base)

    def again(self) -> tuple[str, ...]:
        """The words that complete the command."""
        return tuple(word.replace("{batch}", self.batch) for word in self.scenario.again)

    def complete(self, folder: Path) -> Ended:
        """Complete the command in a work tree in which it was hit."""
        if self.scenario.first and not (home(folder) / "filestore.toml").exists():
            must(folder, *self.scenario.first)
        return run(folder, *self.again())

    def judge(self, folder: Path) -> list[str]:
        """What is wrong with a work tree in which the command was hit; it is completed here."""
        wrong = [f"truth: {path} is neither old nor new" for path in self.strange(truth(folder))]
        wrong += apart(lambda: opens(folder))
        whole = (self.answers_before, self.answers)
        if self.scenario.is_whole and apart(lambda: answers(folder)) not in whole:
            wrong.append("it answers neither as before nor as after")
        done = self.complete(folder)
        nothing_left = self.scenario.nothing_left
        complete = bool(nothing_left) and nothing_left in done.err
        if (done.code not in (0, 1) and not complete) or "Traceback" in done.err:
            wrong.append(f"again ended with {done.code}: {done.err}")
        now = truth(folder)
        paths = [
            path
            for path in sorted(now.keys() | self.end.keys())
            if without_order(now.get(path)) != without_order(self.end.get(path))
        ]
        if paths:
            wrong.append(f"truth is not as it should be after all: {paths}")
        wrong += apart(lambda: settled(folder))
        ends = whole if self.scenario.may_stay else whole[1:]
        if not wrong and apart(lambda: answers(folder)) not in ends:
            wrong.append("the answers differ from those of an undisturbed store")
        wrong += paid_twice(folder)
        if self.scenario.is_undone or self.scenario.is_taken_back:
            # The full-text index is cleared by the next commit, and a sync with nothing to do
            # makes none.
            staged = [
                path
                for path in folder.rglob(".filestore-tmp-*")
                if not {".undo", "fulltext"} & {*path.parts}
            ]
            wrong += [f"{path.relative_to(folder)} is left" for path in staged]
        if self.scenario.is_taken_back:
            for _ in range(5):
                if truth(folder) != self.before:
                    run(folder, "undo")
            if truth(folder) != self.before:
                wrong.append("undo does not lead back to where it began")
        return wrong

    def strange(self, now: dict[str, bytes]) -> list[str]:
        """Files that hold neither what they held before nor what they are to hold."""
        return [
            path
            for path in sorted(now.keys() | self.before.keys() | self.after.keys())
            if now.get(path) not in (self.before.get(path), self.after.get(path))
            and without_order(now.get(path)) != without_order(self.after.get(path))
        ]


def paid_twice(folder: Path) -> list[str]:
    """Results that were made more than once."""
    cache = home(folder) / ".sidecar" / "generated.jsonl"
    keys: Counter[str] = Counter()
    for line in cache.read_bytes().splitlines() if cache.exists() else ():
        with contextlib.suppress(ValueError):
            keys[json.loads(line)["key"]] += 1
    twice = [key for key, count in keys.items() if count > 1]
    return [f"{len(twice)} results were made twice"] if twice else []


def without_order(data: bytes | None) -> bytes | None:
    """A file without its order key: a chunk written after a kill stands between those there are."""
    return None if data is None else _ORDER.sub(b"", data)


class Copy:
    """A copy of a work tree, gone at the end."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def __enter__(self) -> Path:
        self._folder = Path(tempfile.mkdtemp(prefix="filestore-crash-"))
        subprocess.run(["cp", "-a", f"{self._base}/.", str(self._folder)], check=True)
        allowed = self._folder / "configuration" / "filestore" / "machine.json"
        if allowed.exists():
            # What a store may reach is allowed to where it lies.
            rewrite(allowed, str(self._base), str(self._folder))
        return self._folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def last_line(text: str) -> str:
    """The end of what a command said."""
    return (text.strip().splitlines() or [""])[-1]


LEFT_OPEN = {
    "source-modified",
    "source-missing",
    "missing",
    "ingest-conflict",
    "hand-edited",
    "link-dangling",
}
"""What a scenario may leave to a person."""


def opens(folder: Path) -> list[str]:
    """Nothing, unless a store that was left by a dead writer cannot be looked at."""
    from filestore.catalog import CatalogDamagedError, CatalogMissingError

    if not (home(folder) / "filestore.toml").exists():
        return []
    with opened(folder) as store:
        store.status()
        store.verify()
        # Without a catalog it says what to run.
        with contextlib.suppress(CatalogMissingError, CatalogDamagedError):
            store.search(QUERIES[0], update=False)
    return []


def settled(folder: Path) -> list[str]:
    """What is wrong with a store in which nothing should be."""
    with opened(folder) as store:
        store.sync()
        checked = store.verify(level="full")
    found = {one.code for one in checked.findings if one.severity != "I"} - LEFT_OPEN
    return [f"verify finds {sorted(found)}"] if found else []


# Experiments


@dataclass(slots=True)
class Tally:
    """What came of the hits of one experiment."""

    name: str
    points: int = 0
    hit: int = 0
    failures: list[str] = field(default_factory=list)

    def row(self) -> str:
        """One line of the table."""
        return f"| {self.name} | {self.points:,} | {self.hit:,} | {len(self.failures):,} |"


def report(title: str, tallies: Sequence[Tally], *, may_miss: bool = False) -> int:
    """Print the table and what went wrong; the exit code.

    Args:
        title: What was tried.
        tallies: What came of it, a command each.
        may_miss: Whether a command may have ended before anything hit it.
    """
    print(f"\n{title}\n\n| command | points | hit | failures |\n|---|---:|---:|---:|")
    for tally in tallies:
        print(tally.row())
    for tally in tallies:
        for failure in tally.failures[:20]:
            print(f"  {tally.name}: {failure}")
    has_hit = (any if may_miss else all)(tally.hit for tally in tallies)
    return 1 if any(tally.failures for tally in tallies) or not has_hit else 0


def recorded(laboratory: Laboratory) -> list[Point]:
    """Every point of a scenario's command, from a run that nobody disturbs."""
    with laboratory.copy() as folder:
        _, calls = traced(folder, laboratory.scenario.words)
        return points_of(calls, folder)


def kill_at(folder: Path, words: Sequence[str], point: Point) -> bool:
    """Run a command and kill it before a call; whether it came that far."""
    injection = f"inject={point.name}:signal=KILL:when={point.number}"
    ended, _ = traced(folder, words, "-e", injection)
    return ended.code == KILLED


Hit = Callable[[Laboratory, Path, Any], tuple[bool, list[str]]]
"""Tries one thing on a work tree: whether it hit, and what is wrong afterwards."""


def shared(laboratory: Laboratory, tries: Sequence[Any], hit: Hit, tally: Tally) -> None:
    """Try many things, in as many processes as there are cores."""

    def part(number: int) -> dict[str, Any]:
        mine = Tally(tally.name)
        for one in tries[number::WORKERS]:
            with laboratory.copy() as folder:
                came, wrong = hit(laboratory, folder, one)
            mine.points += 1
            mine.hit += came
            mine.failures += [f"{one}: {what}" for what in wrong]
        return {"points": mine.points, "hit": mine.hit, "failures": mine.failures}

    parts = [started(partial(part, number)) for number in range(WORKERS)]
    for found in [awaited(*one) for one in parts]:
        if isinstance(found, list):
            tally.failures += found
            continue
        tally.points += found["points"]
        tally.hit += found["hit"]
        tally.failures += found["failures"]
    print(tally.row(), flush=True)


def killed(laboratory: Laboratory, folder: Path, point: Point) -> tuple[bool, list[str]]:
    """Kill the command before a call."""
    came = kill_at(folder, laboratory.scenario.words, point)
    return came, laboratory.judge(folder)


def everywhere(names: Sequence[str], step: int) -> int:
    """Kill each command before each call that changes the disk."""
    tallies = [Tally(name) for name in names]
    for name, tally in zip(names, tallies, strict=True):
        with made(name) as laboratory:
            shared(laboratory, recorded(laboratory)[::step], killed, tally)
    return report("Killed before every call that changes the disk", tallies)


@contextlib.contextmanager
def made(name: str) -> Iterator[Laboratory]:
    """The laboratory of a scenario."""
    with tempfile.TemporaryDirectory(prefix="filestore-crash-") as work:
        yield Laboratory(SCENARIOS[name], Path(work) / "base")


def killed_twice(
    laboratory: Laboratory, folder: Path, points: tuple[Point, Point]
) -> tuple[bool, list[str]]:
    """Kill the command before a call, and what completes it before another."""
    came = kill_at(folder, laboratory.scenario.words, points[0])
    came = kill_at(folder, laboratory.again(), points[1]) and came
    return came, laboratory.judge(folder)


def pairs(names: Sequence[str], count: int, seed: int) -> int:
    """Kill a command at a point, and what completes it at another."""
    chance = random.Random(seed)
    # Once there is a store `init` has nothing to complete: that is the `sync` of `notes`.
    names = [name for name in names if name != "init-in-place"]
    tallies = [Tally(name) for name in names]
    for name, tally in zip(names, tallies, strict=True):
        with made(name) as laboratory:
            points = recorded(laboratory)
            wanted = -(-count // len(names))
            while tally.hit < wanted and tally.points < 4 * wanted:
                few = max(WORKERS, wanted - tally.hit)
                tries = [(chance.choice(points), chance.choice(points)) for _ in range(few)]
                shared(laboratory, tries, killed_twice, tally)
    return report(f"Killed twice, seed {seed}: the recovery, too", tallies)


_DESCRIPTOR = re.compile(r"^\d+<([^>]+)>")


def errors(names: Sequence[str], step: int, kinds: Sequence[str]) -> int:
    """Let each call fail once; the command says so or makes do, and nothing is lost."""
    tallies = []
    for name in names:
        with made(name) as laboratory:
            points = recorded(laboratory)[::step]
            for kind in kinds:
                tallies.append(Tally(f"{name}, {kind}"))
                shared(laboratory, [(point, kind) for point in points], refused, tallies[-1])
    return report("Each call that changes the disk refused once", tallies)


def refused(
    laboratory: Laboratory, folder: Path, what: tuple[Point, str]
) -> tuple[bool, list[str]]:
    """Let a call of the command fail."""
    point, kind = what
    injection = f"inject={point.name}:error={kind}:when={point.number}"
    done, calls = traced(folder, laboratory.scenario.words, "-e", injection)
    places = [place for place, (_, rest) in enumerate(calls) if "(INJECTED)" in rest]
    wrong = []
    if done.code not in (0, 1, 3, 5) or "Traceback" in done.err:
        wrong.append(f"ended with {done.code}: {done.err}")
    inside = any(str(folder) in calls[place][1] for place in places)
    # The same number may fall on a word to the person, who then cannot be told.
    unsaid = any(calls[place][1].startswith(("1<", "2<")) for place in places)
    if done.code == 3 and inside and not unsaid and "\n  " not in done.err:
        wrong.append(f"no next command: {done.err}")
    for place in places:
        file = _DESCRIPTOR.match(calls[place][1])
        if file and laboratory.scenario.reopens and ".sqlite" in file[1]:
            # SQLite begins a checkpoint anew whose sync failed, when the file is opened again.
            continue
        if file and calls[place][0].endswith("sync") and _synced_again(calls[place + 1 :], file[1]):
            wrong.append(f"{file[1]} was synced again")
    return bool(places), wrong + laboratory.judge(folder)


def _synced_again(calls: Sequence[tuple[str, str]], path: str) -> bool:
    """Whether a file whose sync failed is synced again, as if its pages were still there.

    A folder may be: what is made durable there later is another entry.
    """
    found = (_DESCRIPTOR.match(rest) for call, rest in calls if call.endswith("sync"))
    return not os.path.isdir(path) and any(file and file[1] == path for file in found)


def killed_any_time(
    laboratory: Laboratory, folder: Path, what: tuple[float, tuple[float, ...]]
) -> tuple[bool, list[str]]:
    """Kill the command after a time, and what completes it after others."""
    delay_s, again_s = what
    came = Child(folder, laboratory.scenario.words).wait(delay_s).code == KILLED
    for wait_s in again_s:
        Child(folder, laboratory.again()).wait(wait_s)
    return came, laboratory.judge(folder)


def at_random(names: Sequence[str], cycles: int, seed: int) -> int:
    """Kill commands after random times; now and then what completes them, too."""
    chance = random.Random(seed)
    tallies = [Tally(name) for name in names]
    for name, tally in zip(names, tallies, strict=True):
        with made(name) as laboratory:
            longest_s = _lasts_s(laboratory)

            def delay_s(longest_s: float = longest_s) -> float:
                return round(chance.uniform(0, longest_s), 4)

            tries = []
            for _ in range(-(-cycles // len(names))):
                again = tuple(delay_s() for _ in range(2) if chance.random() < 0.3)
                tries.append((delay_s(), again))
            shared(laboratory, tries, killed_any_time, tally)
    return report(f"Killed after a random time, seed {seed}", tallies, may_miss=True)


def _lasts_s(laboratory: Laboratory) -> float:
    with laboratory.copy() as folder:
        started = time.monotonic()
        run(folder, *laboratory.scenario.words)
        return time.monotonic() - started


def main() -> int:
    """Run one experiment; 1 where it failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("experiment", choices=("random", "everywhere", "pairs", "errors"))
    parser.add_argument("--cycles", type=int, default=2000, help="of random (default: 2000)")
    parser.add_argument("--count", type=int, default=500, help="of pairs (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--step", type=int, default=1, help="only every n-th point (default: 1)")
    parser.add_argument("--only", choices=tuple(SCENARIOS), action="append", help="one command")
    parser.add_argument("--error", choices=ERRORS, action="append", help="one error")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    warm()
    try:
        return tried(given)
    finally:
        close_service()


def tried(given: argparse.Namespace) -> int:
    """The experiment that was asked for."""
    names = given.only or list(SCENARIOS)
    if given.experiment == "random":
        return at_random(names, given.cycles, given.seed)
    if shutil.which("strace") is None:
        print("strace is not installed", file=sys.stderr)
        return 2
    if given.experiment == "everywhere":
        return everywhere(names, given.step)
    if given.experiment == "pairs":
        return pairs(names, given.count, given.seed)
    return errors(names, given.step, given.error or ERRORS)


if __name__ == "__main__":
    sys.exit(main())
