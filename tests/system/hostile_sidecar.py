"""Puts what is hostile in the place of every part of a sidecar, and runs every command over it.

The places are those that `filestore.config.layout.PARTS` names, as a store has them that used
everything. In each stands a link, a loop, a pipe, a socket, a device, another user's file or
folder, a file for a folder or the reverse, or a file that has a second name outside. What lies
outside must stay as it is, byte for byte and stat for stat; each command must end, with an exit
code of the contract and without a traceback; then, once what a refusal names is removed, `sync`
must bring the store back.

    python tests/system/hostile_sidecar.py                      everything
    python tests/system/hostile_sidecar.py --layout in-place    one layout
    python tests/system/hostile_sidecar.py --every 9            every ninth case
    python tests/system/hostile_sidecar.py --place past         only parts named so
"""

import argparse
import contextlib
import io
import itertools
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import filestore
from filestore.browse import InspectedStore
from filestore.cli import main
from filestore.config.layout import PARTS, UNDO, Part
from filestore.core.hashing import content_hash

LAYOUTS: Final = ("tree", "flat", "in-place")
LIMIT_S: Final = 60
CODES: Final = (0, 1, 3, 4)
OTHER_USER: Final = 65534
WORD: Final = "zebra"
COMMANDS: Final = (
    ("status",),
    ("verify", "--level", "full"),
    ("search", WORD),
    ("search", "--at", "HEAD", WORD),
    ("log", WORD),
    ("library",),
    ("inspector",),
    ("undo",),
    ("update",),
    ("repair", "--write-files"),
    ("enrich", "--questions", "1"),
    ("sync",),
    ("search", "--at", "HEAD", WORD),
    ("sync", "--full"),
)


def quietly(*words: str) -> tuple[int, str]:
    """Run a command in this process; its exit code, and what it said as it failed."""
    said = io.StringIO()
    signal.alarm(LIMIT_S)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(said):
            code = main(list(words))
    finally:
        signal.alarm(0)
    return code, out.getvalue() + said.getvalue()


def git(folder: Path, *words: str) -> None:
    """Run git as somebody."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


class Home:
    """A work tree whose store has used everything, and a folder outside that is not its own."""

    def __init__(self, folder: Path, layout: str) -> None:
        """Make both."""
        self.layout = layout
        self.work = folder / "work"
        self.root = self.work if layout == "in-place" else self.work / "file_index"
        self.sidecar = self.root / (".filestore" if layout == "in-place" else ".sidecar")
        self.undo = self.sidecar / "undo" if layout == "in-place" else self.root / ".undo"
        self.outside = folder / "outside"
        self._kept = folder / "kept"
        self._make()
        shutil.copytree(self.work, self._kept, symlinks=True)
        shutil.copytree(self.sidecar, self.outside / "sidecar")
        shutil.copytree(self.undo, self.outside / "sidecar" / UNDO, dirs_exist_ok=True)
        self._fill()

    def _make(self) -> None:
        self.work.mkdir(parents=True)
        git(self.work, "init", "-q")
        (self.work / "a.md").write_text(f"# A {WORD}\n\nThe {WORD} has stripes.\n")
        (self.work / "page.html").write_text("<h1>Pumps</h1><p>A pump needs care.")
        if self.layout == "in-place":
            self.run("init", "--in-place", "--embedder", "builtin", str(self.work))
        else:
            self.run("init", "--embedder", "builtin", "--layout", self.layout, str(self.root))
            self.run("add", "a.md", "page.html")
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "-m", "one")
        (self.work / "page.html").write_text("<h1>Pumps</h1><p>A pump needs care in winter.")
        git(self.work, "commit", "-q", "-a", "-m", "two")
        if self.layout != "in-place":
            self.run("update")
        # A catalog that is put aside, and one more commit of the index.
        (self.sidecar / "catalog.sqlite").write_bytes(b"garbage" * 1000)
        self.run("sync")
        self.run("enrich", "--questions", "1")
        self.run("search", "--at", "HEAD", WORD)
        self.run("log", WORD)

    def run(self, *words: str) -> None:
        """Run a command that must succeed."""
        with contextlib.chdir(self.work):
            code, said = quietly(*words)
        assert code == 0, (words, code, said)

    def _fill(self) -> None:
        """What `past` and others would remove or write to, where a link led there."""
        (self.outside / "building").mkdir()
        for name in ("building/x", "lock", "blob-names", "precious.txt", "server.sock"):
            (self.outside / name).write_text(f"precious {name}\n")
        (self.outside / "empty").touch()
        for number in range(70):
            (self.outside / f"v{number:02d}").mkdir()
            (self.outside / f"v{number:02d}" / "used").write_text("precious\n")

    def restore(self) -> None:
        """Have everything as it was made."""
        for entry in os.scandir(self.work):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        shutil.copytree(self._kept, self.work, symlinks=True, dirs_exist_ok=True)

    def places(self) -> Iterator[tuple[Part, Path]]:
        """A place for each part; one that is made up where the store has none of the name."""
        for part in PARTS:
            parent, name = self.sidecar, part.name
            first, _, rest = name.partition("/")
            if first == UNDO:
                parent, name = self.undo.parent, os.path.join(self.undo.name, rest).rstrip("/")
            found = sorted(parent.glob(name))
            right = stat.S_ISDIR if part.kind == "folder" else stat.S_ISREG
            found = [one for one in found if right(one.lstat().st_mode)] or [
                parent / name.replace("*", "1")
            ]
            yield part, found[0]

    def strangers(self) -> list[str]:
        """What lies in the sidecar, and in no part of it that the table names."""
        patterns = [re.escape(part.name).replace(r"\*", "[^/]+") for part in PARTS]
        known = re.compile("|".join([*patterns, r"past/[^/]+/tree/.+"]))
        paths = (path.relative_to(self.sidecar).as_posix() for path in self.sidecar.rglob("*"))
        return [path for path in paths if not known.fullmatch(path)]

    def seen_outside(self, *, stats: bool) -> dict[str, tuple[object, ...]]:
        """Bytes and stats of all that lies outside of the store."""
        seen: dict[str, tuple[object, ...]] = {}
        for path in sorted([self.outside, *self.outside.rglob("*")]):
            status = path.lstat()
            data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            times = (status.st_ctime_ns, status.st_nlink) if stats else ()
            seen[str(path)] = (
                *(status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns),
                *(status.st_ino, content_hash(data), *times),
            )
        return seen


# What stands in a place


def _linked_to(target: Callable[[Home, Path], Path]) -> Callable[[Home, Path], None]:
    return lambda home, path: path.symlink_to(target(home, path))


def _alike(home: Home, path: Path) -> Path:
    """What has the same name in a sidecar outside."""
    below = home.undo if path.is_relative_to(home.undo) else home.sidecar
    start = UNDO if below == home.undo else "."
    return home.outside / "sidecar" / start / path.relative_to(below)


def _loop(_: Home, path: Path) -> None:
    path.symlink_to(path.with_name(f"{path.name}.loop"))
    path.with_name(f"{path.name}.loop").symlink_to(path)


def _socket(_: Home, path: Path) -> None:
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)


def _device(_: Home, path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))


def _another_users_file(home: Home, path: Path) -> None:
    alike = _alike(home, path)
    path.write_bytes(alike.read_bytes() if alike.is_file() else b"")
    os.chown(path, OTHER_USER, OTHER_USER)


def _another_users_folder(home: Home, path: Path) -> None:
    alike = _alike(home, path)
    if alike.is_dir():
        shutil.copytree(alike, path)
    else:
        path.mkdir()
    os.chown(path, OTHER_USER, OTHER_USER)


def _folder(_: Home, path: Path) -> None:
    path.mkdir()
    (path / "x").write_text("x\n")


def _second_name(home: Home, path: Path) -> None:
    alike = _alike(home, path)
    os.link(alike if alike.is_file() else home.outside / "precious.txt", path)


KINDS: Final[dict[str, Callable[[Home, Path], None]]] = {
    "a link to its like": _linked_to(_alike),
    "a link to a folder": _linked_to(lambda home, _: home.outside),
    "a link to a file": _linked_to(lambda home, _: home.outside / "precious.txt"),
    "a link to an empty file": _linked_to(lambda home, _: home.outside / "empty"),
    "a link to nothing": _linked_to(lambda home, _: home.outside / "nothing"),
    "a loop": _loop,
    "a pipe": lambda _, path: os.mkfifo(path),
    "a socket": _socket,
    "a device": _device,
    "another user's file": _another_users_file,
    "another user's folder": _another_users_folder,
    "a folder": _folder,
    "a file": lambda _, path: path.write_text("a file\n"),
    "a second name": _second_name,
    "a second name of an empty file": lambda home, path: os.link(home.outside / "empty", path),
}
NEED_ROOT: Final = ("a device", "another user's file", "another user's folder")


@dataclass(slots=True)
class Tried:
    """What was tried."""

    places: set[str]
    cases: int = 0
    commands: int = 0
    failures: int = 0


def _answers(home: Home) -> str:
    """Why the store does not answer after `sync`; "" where it does."""
    for _ in range(5):
        code, said = quietly("sync")
        if code == 0:
            code, said = quietly("search", WORD)
            return "" if code == 0 and WORD in said else f"no answer: {code} {said[-300:]}"
        # What a refusal tells to remove is removed by the person.
        named = re.search(r"(?:remove|rm -r) (/\S+?)'?(?: and then|$)", said, re.MULTILINE)
        if named is None or not Path(named[1]).is_relative_to(home.work):
            return f"sync ends with {code} and names nothing to remove: {said[-500:]}"
        gone = Path(named[1])
        if gone.is_dir() and not gone.is_symlink():
            shutil.rmtree(gone)
        else:
            gone.unlink()
    return "sync is refused again and again"


def _run(home: Home, words: tuple[str, ...]) -> tuple[int, str]:
    if words == ("library",):
        with filestore.StoreThreads(str(home.root)) as store:
            store.call(lambda one: one.search(WORD))
    elif words == ("inspector",):
        with InspectedStore(str(home.root)) as inspected:
            inspected.status()
            inspected.batches()
    else:
        return quietly(*words)
    return 0, ""


def tried(home: Home, kind: str, path: Path, tally: Tried) -> Iterator[str]:
    """Try one case; gives what was wrong."""
    home.restore()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    KINDS[kind](home, path)
    # A name less outside is a change that no command made.
    stats = "second name" not in kind
    before = home.seen_outside(stats=stats)
    with contextlib.chdir(home.work):
        for words in COMMANDS:
            tally.commands += 1
            try:
                code, said = _run(home, words)
            except filestore.FilestoreError as error:
                code, said = 3, error.message
            except BaseException:
                code, said = -1, traceback.format_exc()
            if code not in CODES or "Traceback" in said:
                yield f"{' '.join(words)}: exit code {code}: {said[-1500:]}"
            after = home.seen_outside(stats=stats)
            if after != before:
                changed = [one for one in {*after, *before} if after.get(one) != before.get(one)]
                yield f"{' '.join(words)}: changed outside: {changed[:4]}"
                before = after
        if problem := _answers(home):
            yield problem
    if home.seen_outside(stats=stats) != before:
        yield "the sync at the end changed what lies outside"


def run_all(layouts: tuple[str, ...], every: int, start: int, named: str) -> Tried:
    """Try all cases, or some; prints what fails, and a table."""
    tally, kinds = Tried(places=set()), Counter[str]()
    for layout in layouts:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            os.environ["XDG_CONFIG_HOME"] = os.path.join(folder, "home")
            home = Home(Path(folder).resolve(), layout)
            places = [(part, path) for part, path in home.places() if named in part.name]
            cases = itertools.product(places, KINDS)
            for (part, path), kind in itertools.islice(cases, start, None, every):
                is_right = kind == {"folder": "a folder", "socket": "a socket"}.get(part.kind)
                if is_right or (part.kind != "folder" and kind == "a file"):
                    continue
                if kind in NEED_ROOT and os.geteuid():
                    continue
                tally.places.add(f"{layout}: {part.name}")
                tally.cases += 1
                kinds[kind] += 1
                for problem in tried(home, kind, path, tally):
                    tally.failures += 1
                    print(f"FAILED {layout}: {part.name}: {kind}: {problem}", flush=True)
    print("| kind | cases |\n|---|--:|")
    for kind, count in kinds.items():
        print(f"| {kind} | {count} |")
    print(
        f"{len(tally.places)} places, {tally.cases} cases, {tally.commands} commands,"
        f" {tally.failures} failures"
    )
    return tally


def _hangs(*_: object) -> None:
    raise TimeoutError("the command hangs")


def program() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layout", choices=LAYOUTS, action="append")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--start", type=int, default=0, metavar="N")
    parser.add_argument("--place", default="", metavar="TEXT")
    options = parser.parse_args()
    os.environ["FILESTORE_SERVER"] = "off"
    signal.signal(signal.SIGALRM, _hangs)
    tally = run_all(tuple(options.layout or LAYOUTS), options.every, options.start, options.place)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(program())
