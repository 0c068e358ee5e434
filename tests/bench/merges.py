"""Forty merges with conflicts, each solved by nothing but the commands that are printed.

``python tests/bench/merges.py [--only WORD] [--verbose]``. Each is made by real git in a folder of
its own. A person runs `filestore status` there; from then on only printed commands are run, as they
are printed: the side they want, then what comes next. It is solved where git waits for nothing,
each file holds that side, and `filestore verify --level full` finds nothing. A command that is
refused, or more than three, is a failure.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

STYLES = ("merge", "diff3", "zdiff3")
OPERATIONS = ("merge", "rebase", "cherry-pick", "revert", "stash")
MOST = 3
Files = Mapping[str, bytes | None]
"""Path to what a file holds; None where it is gone."""


class Case(Struct, frozen=True, kw_only=True):
    """One conflict."""

    name: str
    operation: str
    style: str = "merge"
    added: bool = False
    """Whether everything was added to git's index before anybody looked."""
    in_place: bool = True
    side: str = "theirs"
    """The one that is wanted."""
    base: Files
    ours: Files
    theirs: Files
    wanted: Files
    """What is there in the end."""


class Outcome(Struct, frozen=True, kw_only=True):
    """How one was solved."""

    commands: tuple[str, ...]
    problem: str = ""


def text(line: bytes, ending: bytes = b"\n", head: bytes = b"") -> bytes:
    """A document of some lines, one of which differs."""
    lines = [
        b"# Amber",
        b"",
        b"Amber is old resin.",
        b"",
        line,
        b"",
        b"It is found at the sea.",
        b"",
    ]
    return head + ending.join(lines)


def forty() -> Iterator[Case]:
    """The cases that count."""
    files = [text(line) for line in (b"It is brown.", b"It is yellow.", b"It is golden.")]
    number = 0
    for operation in OPERATIONS:
        for style in STYLES:
            for added in (False, True):
                number += 1
                path = "my notes/amber.md" if number % 3 else "amber.md"
                one = edited(
                    f"{operation} {style}{' added' if added else ''}", operation, path, *files
                )
                side = "ours" if number % 2 else "theirs"
                one = chosen(replace(one, style=style, added=added), side)
                yield replace(one, in_place=number % 4 < 2)
    returns = [
        text(line, b"\r\n") for line in (b"It is brown.", b"It is yellow.", b"It is golden.")
    ]
    head = b"---\ntitle: %s\n---\n"
    heads = [text(b"It is.", head=head % name) for name in (b"Amber", b"Resin", b"Gold")]
    binary = [b"\xff\x00\xfe%d\n" % one for one in range(3)]
    long = [text(b"It is %s." % word) + b"A line that stays.\n" * 9 for word in (b"a", b"b", b"c")]
    yield chosen(edited("CRLF", "merge", "amber.md", *returns), "theirs")
    yield chosen(replace(edited("CRLF added", "rebase", "amber.md", *returns), added=True), "ours")
    yield chosen(edited("frontmatter", "cherry-pick", "amber.md", *heads), "theirs")
    frontmatter = edited("frontmatter added, chunks", "merge", "amber.md", *heads)
    yield chosen(replace(frontmatter, added=True, in_place=False), "ours")
    gone = edited("deleted here", "merge", "my notes/gone.md", files[0], None, files[2])
    yield chosen(gone, "ours")
    gone = edited("deleted there, chunks", "cherry-pick", "gone.md", files[0], files[1], None)
    yield chosen(replace(gone, in_place=False), "theirs")
    yield Case(
        name="renamed here, edited there",
        operation="merge",
        base={"a.md": long[0]},
        ours={"a.md": None, "b c.md": long[1]},
        theirs={"a.md": long[2]},
        wanted={"a.md": None, "b c.md": long[2]},
    )
    yield Case(
        name="renamed to two names",
        operation="rebase",
        base={"a.md": long[0]},
        ours={"a.md": None, "b.md": long[0]},
        theirs={"a.md": None, "c.md": long[0]},
        wanted={"a.md": None, "b.md": None, "c.md": long[0]},
    )
    yield chosen(edited("binary", "stash", "my notes/scan.md", *binary), "theirs")
    blob = edited("binary added, chunks", "merge", "scan.md", *binary)
    yield chosen(replace(blob, added=True, in_place=False), "ours")


def edited(
    name: str, operation: str, path: str, base: bytes, ours: bytes | None, theirs: bytes | None
) -> Case:
    """One file that both sides changed."""
    return Case(
        name=name,
        operation=operation,
        base={path: base},
        ours={path: ours},
        theirs={path: theirs},
        wanted={},
    )


def chosen(case: Case, side: str) -> Case:
    """The same with the side that is wanted."""
    return replace(case, side=side, wanted=case.ours if side == "ours" else case.theirs)


class World:
    """A work tree with a store in it, in which git stopped at a conflict."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.case = case
        self.tree = folder / "work"
        self.tree.mkdir()
        for name in ("home", "configuration"):
            (folder / name).mkdir()
        kept = {name: one for name, one in os.environ.items() if not name.startswith("GIT_")}
        self.environment = kept | {
            "HOME": str(folder / "home"),
            "XDG_CONFIG_HOME": str(folder / "configuration"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_EDITOR": "true",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        for key, value in {
            "user.name": "A",
            "user.email": "a@example.org",
            "init.defaultBranch": "main",
            "merge.conflictStyle": case.style,
        }.items():
            self.git("config", "--global", key, value)
        self.git("init", "-q")
        self.filestore("init", *(("--in-place", ".") if case.in_place else ("--chunks",)))
        self.documents = (
            self.tree if case.in_place else self.tree / "file_index" / "chunked" / "own"
        )
        self.documents.mkdir(exist_ok=True, parents=True)

    def git(self, *words: str, code: int | None = 0) -> str:
        """Run git as a person does."""
        return self._run(["git", *words], code)

    def filestore(self, *words: str, code: int | None = 0) -> str:
        """Run the program as a person does."""
        return self._run([sys.executable, "-m", "filestore", *words], code)

    def _run(self, words: list[str], code: int | None) -> str:
        done = subprocess.run(
            words,
            cwd=self.tree,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="backslashreplace",
            check=False,
        )
        if code is not None and done.returncode != code:
            raise RuntimeError(f"{words} ended with {done.returncode}: {done.stdout}")
        return done.stdout

    def commit(self, files: Files, subject: str) -> None:
        """Write files and commit them, with no hook looking on."""
        self.write(files)
        self.git("add", "-A")
        self.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", subject)

    def write(self, files: Files) -> None:
        """Write files; None removes one."""
        for path, data in files.items():
            place = self.documents / path
            if data is None:
                place.unlink()
            else:
                place.parent.mkdir(exist_ok=True, parents=True)
                place.write_bytes(data)

    def stop(self) -> None:
        """Have git stop at the conflict."""
        case = self.case
        self.commit({"quiet.md": b"# Quiet\n\nNothing happens here.\n", **case.base}, "base")
        self.git("checkout", "-q", "-b", "theirs")
        if case.operation == "stash":
            self.git("checkout", "-q", "main")
            self.write(case.theirs)
            self.git("stash", "-q", "-u")
            self.commit(case.ours, "ours")
            words = ["stash", "pop"]
        elif case.operation == "revert":
            # Taking back a commit makes of the files what they were before it.
            self.commit(case.theirs, "theirs")
            gone = {path: None for path in case.theirs if path not in case.base}
            self.commit({**case.base, **gone}, "again")
            self.commit(case.ours, "ours")
            words = ["revert", "--no-edit", "HEAD~1"]
        else:
            self.commit({**case.theirs, "more.md": b"# More\n\nNew there.\n"}, "theirs")
            self.git("checkout", "-q", "main")
            self.commit(case.ours, "ours")
            words = [case.operation, "theirs"]
            if case.operation == "rebase":
                # What is rebased comes onto the other branch, which git then calls ours.
                self.git("checkout", "-q", "theirs")
                words = ["rebase", "main"]
        self.filestore("sync", code=None)
        self.filestore("git", "install")
        self.git(*words, code=1)
        if case.added:
            self.git("add", "-A")

    def solve(self) -> Outcome:
        """Follow what is printed."""
        said, commands = self.filestore("status", code=None), list[str]()
        while len(commands) <= 2 * MOST:
            wanted = printed(said, self.case.side)
            if not wanted:
                return Outcome(commands=tuple(commands), problem=f"no command in: {said}")
            for command in wanted:
                commands.append(command)
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=self.tree,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                # Findings that are left are an answer, all else is a refusal.
                if done.returncode > (1 if command.startswith("filestore") else 0):
                    problem = f"{command}: {done.stdout}{done.stderr}"
                    return Outcome(commands=tuple(commands), problem=problem)
                said = done.stdout
            if self.is_over() and not printed(said, self.case.side):
                return Outcome(commands=tuple(commands), problem=self.problem(len(commands)))
        return Outcome(commands=tuple(commands), problem="no end")

    def is_over(self) -> bool:
        """Whether git waits for nothing."""
        state = self.tree / ".git"
        busy = [*state.glob("*_HEAD"), *state.glob("rebase-*")]
        busy = [one for one in busy if one.name not in ("ORIG_HEAD", "FETCH_HEAD", "REBASE_HEAD")]
        return not busy and not self.git("ls-files", "--unmerged")

    def problem(self, count: int) -> str:
        """What is not as it should be in the end."""
        if count > MOST:
            return f"{count} commands"
        for path, data in self.case.wanted.items():
            place = self.documents / path
            if (place.read_bytes() if place.exists() else None) != data:
                return f"{path} is not as wanted"
        checked = json.loads(self.filestore("verify", "--level", "full", "--json", code=None))
        codes = {one["code"] for one in checked["findings"] if one["severity"] != "I"}
        # What is no text is reported as such, with or without a merge.
        return ", ".join(sorted(codes - {"bad-encoding"}))


def printed(said: str, side: str) -> list[str]:
    """The commands of an output that a person who wants a side runs now."""
    lines = said.split("\n")
    coming = lines[lines.index("next:") + 1 :] if "next:" in lines else []
    found = []
    for line in coming:
        if not line.startswith("    "):
            break
        found.append(line.strip())
    takes = (line.strip() for line in lines if line.startswith(f"    filestore repair --{side} "))
    return found or [*takes][:1]


def solved(folder: Path, case: Case) -> Outcome:
    """Make a case in an empty folder, and solve it."""
    world = World(folder, case)
    world.stop()
    return world.solve()


def main() -> int:
    """Solve them all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name has this word")
    parser.add_argument("--verbose", action="store_true", help="print the commands")
    options = parser.parse_args()
    outcomes = []
    print("| Merge | Store | Side | Commands | |\n|---|---|---|--:|---|")
    for case in forty():
        if options.only not in case.name:
            continue
        folder = Path(tempfile.mkdtemp(prefix="filestore-merge-"))
        try:
            outcome = solved(folder, case)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        outcomes.append(outcome)
        layout = "in place" if case.in_place else "chunks"
        words = outcome.problem.replace("\n", " ") or "solved"
        number = len(outcome.commands)
        print(f"| {case.name} | {layout} | {case.side} | {number} | {words} |", flush=True)
        if options.verbose:
            print("".join(f"    $ {one}\n" for one in outcome.commands), end="", flush=True)
    failed = sum(bool(one.problem) for one in outcomes)
    most = max((len(one.commands) for one in outcomes), default=0)
    print(f"\n{len(outcomes) - failed} of {len(outcomes)} solved, with at most {most} commands")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
