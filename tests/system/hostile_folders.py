"""Fills folders with whatever Python or a search for programs could run there, and works in them.

The folders hold a file of the name of every module that the standard library and our dependencies
have, start-up files of Python, and programs; PATH looks there first. Each of them leaves a mark
when it runs. Every command is run there, every git hook by git itself, a server over HTTP, one for
agents, and the inspector: with the documents in place, and with chunk files. Nothing may leave a
mark, and every document has to be indexed.

    python -m tests.system.hostile_folders --together  all kinds of files in one folder
    python -m tests.system.hostile_folders             each in a folder of its own as well, and the
                                                       installed command instead of forks of one
"""

import argparse
import contextlib
import importlib.metadata
import os
import py_compile
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import httpx
import orjson

from filestore.server.operations import COMMANDS
from tests.tui.raw_terminal import Screen

LIMIT_S: Final = 90.0
OURS: Final = "filestore-index"
DOCUMENTS: Final = ("a.html", "b.pdf", "c.docx", "d.pptx", "e.ipynb", "f.md", "g.py")
_EXAMPLES: Final = Path(__file__).parents[2] / "example_index" / "source"
_PROGRAMS: Final = (
    *("git", "vi", "vim", "nano", "less", "more", "pager", "filestore", "python", "python3", "sh"),
    *("xdg-open", "open", "wl-copy", "xclip", "xsel", "pbcopy", "uname", "ldconfig", "gcc", "cc"),
    *("ld", "objdump", "which", "env", "stty", "tput", "locale", "ip", "ifconfig", "id"),
)


# What lies in wait


def module_names() -> list[str]:
    """What the standard library and the packages that we need, wanted or not, are imported as."""
    needed, waiting = set(), [OURS]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name not in needed:
            needed.add(name)
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                asked = importlib.metadata.requires(name) or []
                waiting += [re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in asked]
    packages = {
        name
        for name, homes in importlib.metadata.packages_distributions().items()
        if needed & {re.sub(r"[-_.]+", "-", home).lower() for home in homes}
    }
    # Those that are optional: where they are not installed, a file here would be all there is.
    absent = {"torch", "transformers", "sentence_transformers", "onnxruntime", "tokenizers", "tqdm"}
    named = packages | absent | {"filestore", "tui", "tests"} | sys.stdlib_module_names
    return sorted(name for name in named if name.isidentifier())


class Trap:
    """Files that leave a mark when they are run, and the folder of those marks."""

    def __init__(self, marks: Path) -> None:
        self._marks = marks
        marks.mkdir(parents=True)

    def module(self, name: str) -> str:
        """Python that imports nothing but what no file can take the place of."""
        mark = f"{str(self._marks / name)!r}, posix.O_WRONLY | posix.O_CREAT, 0o644"
        return f"import posix\nposix.close(posix.open({mark}))\n"

    def program(self, path: Path) -> None:
        """A script that runs nothing but what the shell has."""
        path.parent.mkdir(parents=True, exist_ok=True)
        mark = shlex.quote(str(self._marks / f"program {path.name}"))
        path.write_text(f"#!/bin/sh\n: > {mark}\nexit 1\n")
        path.chmod(0o755)

    def sprung(self) -> list[str]:
        """What left a mark since this was last asked."""
        found = sorted(one.name for one in self._marks.iterdir())
        for name in found:
            (self._marks / name).unlink()
        return found


def _modules(folder: Path, trap: Trap) -> None:
    for name in module_names():
        (folder / f"{name}.py").write_text(trap.module(f"{name}.py"))


def _packages(folder: Path, trap: Trap) -> None:
    for name in module_names():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "__init__.py").write_text(trap.module(f"package {name}"))
    (folder / "filestore" / "__main__.py").write_text(trap.module("filestore.__main__"))


def _compiled(folder: Path, trap: Trap) -> None:
    source = folder.parent / "source.py"
    for name in module_names():
        source.write_text(trap.module(f"{name}.pyc"))
        py_compile.compile(str(source), str(folder / f"{name}.pyc"), doraise=True)


def _archives(folder: Path, trap: Trap) -> None:
    with zipfile.ZipFile(folder / "modules.zip", "w") as archive:
        for name in module_names():
            archive.writestr(f"{name}.py", trap.module(f"{name} in an archive"))
        archive.writestr("__main__.py", trap.module("__main__ in an archive"))
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    for name in (f"python{version}.zip", "json.zip", "filestore.zip", "tempfile.egg"):
        shutil.copy(folder / "modules.zip", folder / name)


def _started_files(folder: Path, trap: Trap) -> None:
    for name in ("sitecustomize", "usercustomize", "conftest", "__main__", "__init__", "setup"):
        (folder / f"{name}.py").write_text(trap.module(name))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    site.mkdir(parents=True)
    line = trap.module("pth").replace("\n", "; ").removesuffix("; ")
    for place in (folder / "x.pth", site / "x.pth"):
        place.write_text(f"{line}\n{folder}\n")
    (site / "sitecustomize.py").write_text(trap.module("sitecustomize of a library"))
    (folder / "pyvenv.cfg").write_text(f"home = {folder}/bin\nversion = 3.11.0\n")
    (folder / f"python{version[6:].replace('.', '')}._pth").write_text("import site\n.\n")


def _programs(folder: Path, trap: Trap) -> None:
    for name in _PROGRAMS:
        for place in (folder, folder / "bin"):
            if not (place / name).exists():
                trap.program(place / name)


KINDS: Final[dict[str, Callable[[Path, Trap], None]]] = {
    "modules": _modules,
    "packages": _packages,
    "compiled": _compiled,
    "archives": _archives,
    "start-up": _started_files,
    "programs": _programs,
}


# What is done there


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A command, as it is typed."""

    words: tuple[str, ...]
    changed: bool = False
    """Whether a document is changed before."""
    how: str = "to its end"
    """Or `watched`, `served`, `for an agent`, `on a screen`."""


def scenes(*, in_place: bool) -> list[Scene]:
    """Every command, in an order in which each has something to do."""
    first = ("f.md",) if in_place else ("f.md/chunk1.md",)
    asked = ("--queries", "../questions.jsonl")
    found: list[tuple[str, ...]] = [
        *([] if in_place else [("rm", "f.md"), ("undo",), ("redo",), ("undo",)]),
        ("status",),
        ("ls",),
        ("show", *first),
        ("verify", "--level", "full"),
        ("verify", "--staged"),
        ("search", "document"),
        ("search", "document", "--at", "HEAD~1"),
        ("about", "document"),
        ("similar", *first),
        ("duplicates",),
        ("links", *first),
        ("open", f"{first[0]}:1"),
        ("open", "b.pdf"),
        ("evaluate", "../questions.jsonl"),
        ("log", "document"),
        ("compare", "HEAD~1", "HEAD", *asked),
        ("embedder",),
        ("backend",),
        ("trust", "--list"),
        ("reconstruct", first[0].partition("/")[0]),
        ("embeddings", "export", "../out.fspack"),
        ("embeddings", "import", "../out.fspack"),
        ("export", "jsonl", "../out.jsonl"),
        ("export", "parquet", "../out.parquet"),
        ("import", "parquet", "../out.parquet"),
        ("export", "ragmd", "../out.ragmd"),
        ("convert", "../out.ragmd", "../out"),
        ("enrich", "--questions", "1"),
        ("redo",),
        ("undo", "--list"),
        ("changes",),
        ("token", "list"),
        ("rm", "nothing.md"),
        ("mv", "f.md", "elsewhere.md"),
        ("mv", "elsewhere.md", "f.md"),
        ("mcp", "--install", "claude", "--yes", "--to", "../agents.json"),
        ("demo",),
        ("doctor",),
        ("config",),
        ("completion", "bash"),
        ("help", "exit-codes"),
        ("git", "status"),
    ]
    return [
        *(Scene(words=words) for words in found),
        Scene(words=("sync",), changed=True),
        Scene(words=("sync", "--full"), changed=True),
        Scene(words=("update",), changed=True),
        Scene(words=("add", *DOCUMENTS), changed=True),
        Scene(words=("repair", "--write-files", "--yes"), changed=True),
        Scene(words=("watch", "--json"), how="watched"),
        Scene(words=("serve", "--write", "--port", "0", "--json"), how="served"),
        Scene(words=("mcp", "--write"), how="for an agent"),
        Scene(words=("tui",), how="on a screen", changed=True),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a command, or of git."""

    name: str
    code: int
    said: str
    sprung: list[str]


@dataclass(kw_only=True)
class Place:
    """A work tree with documents and traps, and who works in it."""

    base: Path
    kinds: Sequence[str]
    in_place: bool
    forked: bool
    played: list[Played] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = self.base / "work"
        self.work.mkdir(parents=True)
        self.trap = Trap(self.base / "marks")
        self.first = "f.md" if self.in_place else "f.md/chunk1.md"
        self._rounds = 0
        self._safe = self.base / "programs"
        self._safe.mkdir()
        for name in ("vim", "xdg-open", "xclip"):
            (self._safe / name).write_text(f"#!/bin/sh\nexport -p > {self.base}/environment\n")
            (self._safe / name).chmod(0o755)

    def environment(self) -> dict[str, str]:
        """Of a person whose PATH looks into the working folder first."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "FILESTORE", "GIT_", "XDG_"))
        }
        home = self.base / "home"
        return kept | {
            "PATH": f":.:bin:./bin:{self._safe}:{os.environ['PATH']}",
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "configuration"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "EDITOR": "vim",
            "DISPLAY": ":0",
            "TERM": "xterm-256color",
            "PWD": str(self.work),
        }

    def play(self) -> None:
        """Do everything."""
        (self.base / "home").mkdir()
        write_documents(self.work)
        self._plant(self.work)
        subprocess.run([_git(), "init", "-q", "-b", "main", self.work], check=True)
        asked = orjson.dumps({"query": "document", "relevant": ["f.md"]})
        (self.base / "questions.jsonl").write_bytes(asked + b"\n")
        if self.in_place:
            self._run(("init", "--in-place", "--embedder", "builtin", "."))
        else:
            self._run(("init", "--embedder", "builtin"))
            self._plant(self.work / "file_index")
            self._run(("add", *DOCUMENTS))
        self._run(("git", "install"))
        self._use_git()
        for scene in scenes(in_place=self.in_place):
            self._play(scene)

    def indexed(self) -> set[str]:
        """The documents of which passages are found, as the store itself says."""
        done = self._finished(("ls", "--json"))
        rows = orjson.loads(done.stdout)["items"]
        names = {os.path.basename(one["source"] or one["resource"]) for one in rows}
        return names & set(DOCUMENTS)

    def _plant(self, folder: Path) -> None:
        for kind in self.kinds:
            KINDS[kind](folder, self.trap)

    def _change(self) -> None:
        self._rounds += 1
        with (self.work / "a.html").open("a") as file:
            file.write(f"<p>The document in round {self._rounds}.</p>\n")

    def _play(self, scene: Scene) -> None:
        if scene.changed:
            self._change()
        ways = {
            "watched": self._watch,
            "served": self._serve,
            "for an agent": self._answer_an_agent,
            "on a screen": self._show,
        }
        if scene.how == "to its end":
            self._run(scene.words)
            return
        try:
            ways[scene.how](scene.words)
            self._note(scene.words[0], 0, "")
        except Exception:
            self._note(scene.words[0], 70, traceback.format_exc())

    def _note(self, name: str, code: int, said: str) -> None:
        sprung = self.trap.sprung()
        self.played.append(Played(name=name, code=code, said=said, sprung=sprung))

    def _run(self, words: tuple[str, ...]) -> None:
        done = self._finished(words)
        said = f"{words}\n{done.stdout.decode(errors='replace')}{done.stderr.decode()}"
        self._note(words[0], done.returncode, said)

    def _finished(self, words: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
        if self.forked:
            return _forked(self.work, words, self.environment())
        return subprocess.run(
            [installed(), *words],
            cwd=self.work,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )

    @contextlib.contextmanager
    def _started(self, words: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                [installed(), *words],
                cwd=self.work,
                env=self.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            ) as process,
        ):
            try:
                yield process
                process.send_signal(signal.SIGINT)
                process.wait(LIMIT_S)
            except BaseException as error:
                errors.seek(0)
                error.add_note(errors.read().decode(errors="replace"))
                raise
            finally:
                process.kill()

    # Git

    def _use_git(self) -> None:
        """Each hook, with a document that differs before and after; then the index has followed."""
        self._commit("first")
        self._git("checkout", "checkout", "-q", "-b", "other")
        self._commit("other")
        self._git("checkout", "checkout", "-q", "main")
        self._commit("main", document="f.md")
        self._git("merge", "merge", "-q", "--no-edit", "other")
        self._git("checkout", "checkout", "-q", "-b", "third", "HEAD~1")
        self._commit("third", document="g.py")
        self._git("rebase", "rebase", "-q", "main")

    def _commit(self, words: str, document: str = "a.html") -> None:
        with (self.work / document).open("a") as file:
            file.write(f"# The {words} document.\n")
        self._run(("sync",) if self.in_place else ("update",))
        added = ["filestore.toml"] if self.in_place else ["file_index/filestore.toml"]
        kept = [] if self.in_place else [f"file_index/chunked/{name}" for name in DOCUMENTS]
        self._git("add", "add", "-f", *DOCUMENTS, *added, *kept)
        self._git("commit", "commit", "-q", "-m", words)

    def _git(self, name: str, *words: str) -> None:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        done = subprocess.run(
            [_git(), *who, *words],
            cwd=self.work,
            env=self.environment() | {"PYTHONPATH": ":."},
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        said = (done.stdout + done.stderr).decode(errors="replace")
        self._note(f"git {name}", done.returncode, f"{words}\n{said}")

    # What goes on until it is ended

    def _watch(self, words: Sequence[str]) -> None:
        with self._started(words) as process:
            lines = _lines(process.stdout)
            self._change()
            for line in lines:
                if b'"synced"' in line or b'"updated"' in line:
                    return

    def _serve(self, words: Sequence[str]) -> None:
        with self._started(words) as process:
            told = orjson.loads(next(_lines(process.stdout)))
            token = Path(told["token_file"]).read_text().strip()
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(
                base_url=told["url"], headers=headers, timeout=LIMIT_S, trust_env=False
            ) as client:
                for name in DOCUMENTS:
                    data = (self.work / name).read_bytes()
                    answer = client.post("/add", files=[("file", (f"up-{name}", data))])
                    assert answer.status_code in ((409, 422, 400) if self.in_place else (200,))
                self._change()
                for operation in ("update", "sync", "status", "about", "ls"):
                    client.post(f"/{operation}", json={})
                found = client.post("/search", json={"query": "document"})
                assert found.json()["hits"], found.text

    def _answer_an_agent(self, words: Sequence[str]) -> None:
        client = {"name": "test", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        with self._started(words) as process:
            self._change()
            answers = _lines(process.stdout)

            def ask(method: str, **params: Any) -> Any:
                assert process.stdin is not None
                asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                process.stdin.write(orjson.dumps(asked) + b"\n")
                process.stdin.flush()
                return next(one for one in map(orjson.loads, answers) if one.get("id") == 1)

            ask("initialize", **hello)
            tools = ask("tools/list")["result"]["tools"]
            assert {"search", "add_note"} <= {one["name"] for one in tools}
            for tool in tools:
                given = dict.fromkeys(tool["inputSchema"].get("required", ()), "document")
                ask("tools/call", name=tool["name"], arguments=given)

    def _show(self, words: Sequence[str]) -> None:
        """The inspector: it looks for drift, syncs, copies, opens the editor, and ends."""
        seen = self.base / "environment"
        seen.unlink(missing_ok=True)
        found = ("search", "zanzibar", "--mode", "keyword")
        with (self.work / ("" if self.in_place else "file_index/chunked") / self.first).open(
            "a"
        ) as file:
            file.write("A word: zanzibar.\n")
        with Screen(
            str(self.work), *words[1:], home=self.base / "home", variables=self.environment()
        ) as screen:
            screen.see(until="documents")
            screen.press("i")
            screen.wait_for(lambda: self._finished(found).returncode == 0)
            screen.command(f"show {self.first}")
            screen.press("y", "enter")
            screen.wait_for(seen.exists)
            seen.unlink()
            screen.press("e")
            screen.wait_for(seen.exists)
            assert screen.end() == 0


def _lines(stream: IO[bytes] | None) -> Iterator[bytes]:
    """The lines of a program, each within the limit."""
    assert stream is not None
    while select.select([stream], [], [], LIMIT_S)[0]:
        line = stream.readline()
        if not line:
            return
        yield line
    raise TimeoutError("no line in time")


def _forked(
    folder: Path, words: Sequence[str], environment: dict[str, str]
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command in a copy of this process, which has loaded what most of them need."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            _become_command(folder, words, environment, (output.fileno(), errors.fileno()))
        _, status = os.waitpid(child, 0)
        output.seek(0)
        errors.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess(words, code, output.read(), errors.read())


def _become_command(
    folder: Path, words: Sequence[str], environment: dict[str, str], streams: tuple[int, int]
) -> None:
    """Be the command line from here on; never returns."""
    code = 70
    try:
        for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), *streams)):
            os.dup2(stream, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        from filestore.cli import main

        sys.argv = ["filestore", *words]
        code = main(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 71
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def installed() -> str:
    """The command of the Python in use."""
    found = shutil.which("filestore", path=os.path.dirname(sys.executable))
    assert found is not None, "pip install ."
    return found


def _git() -> str:
    found = shutil.which("git")
    assert found is not None
    return found


def write_documents(folder: Path) -> None:
    """One of each kind that is read, and those that a child process reads."""
    copied = {
        "a.html": "migration-log.html",
        "b.pdf": "paper-archive.pdf",
        "c.docx": "handover.docx",
        "d.pptx": "workshop.pptx",
        "f.md": "glossary.md",
        "g.py": "rename_report.py",
    }
    for name, example in copied.items():
        shutil.copy(_EXAMPLES / example, folder / name)
    cell = {"cell_type": "markdown", "metadata": {}, "source": ["# A document in cells"]}
    with (folder / "f.md").open("a") as file:
        file.write("\nSee [the log](a.html).\n")
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "e.ipynb").write_bytes(orjson.dumps(notebook))


# The table


def check(place: Place) -> list[str]:
    """Work in a place; what went wrong."""
    place.play()
    name = f"{'in place' if place.in_place else 'chunk files'}, {', '.join(place.kinds)}"
    wrong = [
        f"{name}: {one.name} ran {', '.join(one.sprung[:5])} …\n{one.said}"
        for one in place.played
        if one.sprung
    ]
    wrong += [
        f"{name}: {one.name} ended with {one.code}: {one.said}"
        for one in place.played
        if one.code >= 70 or one.code < 0 or "crashed" in one.said or "Traceback" in one.said
    ]
    if left := set(DOCUMENTS) - place.indexed():
        wrong.append(f"{name}: {', '.join(sorted(left))} not indexed")
    missing = sorted(set(COMMANDS) - {one.name for one in place.played})
    return wrong + [f"{name}: {command} is not tried" for command in missing]


def main() -> int:
    """Try everything; print a table, then what failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--together", action="store_true", help="all kinds at once, forked")
    together = parser.parse_args().together
    groups = [tuple(KINDS)] if together else [*((kind,) for kind in KINDS), tuple(KINDS)]
    failed: list[str] = []
    table: dict[str, list[Played]] = {}
    with tempfile.TemporaryDirectory(prefix="filestore-hostile-") as folder:
        for number, kinds in enumerate(groups):
            for in_place in (True, False):
                base = Path(os.path.realpath(folder), f"{number}-{in_place}")
                forked = together or len(kinds) == 1
                place = Place(base=base, kinds=kinds, in_place=in_place, forked=forked)
                failed += check(place)
                for one in place.played:
                    table.setdefault(one.name, []).append(one)
                shutil.rmtree(base)
    print(f"{len(module_names())} names of modules, {len(_PROGRAMS)} of programs")
    print(f"kinds of files: {', '.join(KINDS)}; in place and with chunk files\n")
    print("| Command | Runs | Ended well | Files run |\n|---|--:|--:|--:|")
    for name, runs in sorted(table.items()):
        well = sum(one.code == 0 for one in runs)
        print(f"| {name} | {len(runs)} | {well} | {sum(len(one.sprung) for one in runs)} |")
        if not well:
            failed.append(f"{name} never ended well: {runs[-1].said}")
    print("\n".join(["", *failed]) if failed else "\nnothing was run")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
