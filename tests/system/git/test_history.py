"""What a file held in earlier commits: what `git log --follow` finds, read by plumbing alone."""

import random
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.git import process, repository

WORDS: Final = ("amber", "basalt", "copper", "diorite", "emerald", "flint", "garnet", "zinc")


def _git(tree: Path, *words: str, given: str = "") -> str:
    command = ["git", *words]
    done = subprocess.run(
        command, cwd=tree, input=given.encode(), check=True, capture_output=True, timeout=60
    )
    return done.stdout.decode()


class _History:
    """Commits made up one after another, as `git fast-import` reads them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._stream: list[str] = []
        self._commits = 0
        self.branches: dict[str, tuple[int, dict[str, list[str]]]] = {"main": (0, {})}
        """Each to its last commit and the lines of its files."""

    def commit(self, branch: str, files: dict[str, list[str]], merged: int = 0) -> None:
        """A commit of these files and no others."""
        parent, _ = self.branches.get(branch, (0, {}))
        self._commits += 1
        # A second each, so that the order of commits is one.
        author = f"committer A <a@example.org> {1_000_000_000 + self._commits} +0000"
        lines = [f"commit refs/heads/{branch}", f"mark :{self._commits}", author, "data 0"]
        lines += [f"from :{parent}"] if parent else []
        lines += [f"merge :{merged}"] if merged else []
        lines.append("deleteall")
        for path, text in files.items():
            data = "".join(f"{line}\n" for line in text)
            lines += [f"M 100644 inline {path}", f"data {len(data)}", data]
        self._stream.append("\n".join(lines) + "\n")
        self.branches[branch] = self._commits, files

    def fork(self, branch: str, new: str) -> None:
        """A branch that begins where another one stands."""
        self.branches[new] = self.branches[branch]

    def text(self) -> list[str]:
        """Lines that no other file has."""
        return [f"{self._chance.choice(WORDS)} {self._chance.random()}" for _ in range(12)]

    def changed(self, files: dict[str, list[str]]) -> dict[str, list[str]]:
        """The files with one change: edited, renamed, both, deleted, or one more."""
        files = dict(files)
        path = self._chance.choice(sorted(files))
        new = f"notes/{self._chance.choice('abcdef')}{self._chance.choice('12')}.md"
        what = self._chance.choice(("edit", "edit", "move", "move", "both", "add", "delete"))
        if what == "add" or (what == "delete" and path == "notes/a1.md"):
            files.setdefault(new, self.text())
            return files
        if what == "delete":
            del files[path]
            return files or {new: self.text()}
        text = list(files[path])
        if what in ("edit", "both"):
            text[self._chance.randrange(len(text))] = f"edited {self._chance.random()}"
        if what in ("move", "both") and new not in files:
            del files[path]
            path = new
        files[path] = text
        return files

    def write(self, tree: Path) -> None:
        """Make it a repository."""
        _git(tree, "init", "-q", "--initial-branch=main")
        _git(tree, "fast-import", "--quiet", given="".join(self._stream))
        _git(tree, "reset", "-q", "--hard")


def _as_git_follows(tree: Path, path: str) -> list[str]:
    """What `git log --follow` has of a path: the contents of its commits, newest first, once."""
    # So much alike must a file be to be another one renamed; a copy is none, so all are unlike.
    words = ("log", "--follow", "--format=", "--raw", "--no-abbrev", "--", path)
    fields = [line.split() for line in _git(tree, *words).splitlines()]
    names = [name for found in fields if found for name in (found[3], found[2]) if name.strip("0")]
    return [_git(tree, "cat-file", "blob", name) for name in dict.fromkeys(names)]


def _as_we_follow(tree: Path, path: str) -> list[str]:
    folder, name = path.split("/")
    return [data.decode() for data in repository.history(str(tree / folder), name)]


def _linear(chance: random.Random) -> _History:
    history = _History(chance)
    files = {f"notes/{name}1.md": history.text() for name in "abc"}
    for _ in range(20):
        history.commit("main", files)
        files = history.changed(files)
    return history


@pytest.mark.parametrize("seed", range(12))
def test_a_file_is_followed_as_git_does(tmp_path: Path, seed: int) -> None:
    """Through edits, renames, both at once, deletions and names that are used again."""
    history = _linear(random.Random(seed))
    history.write(tmp_path)
    _, files = history.branches["main"]
    for path in files:
        assert _as_we_follow(tmp_path, path) == _as_git_follows(tmp_path, path)


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_missed_where_branches_met(tmp_path: Path, seed: int) -> None:
    """With merges in between: what git's own walk finds, or more."""
    chance = random.Random(seed)
    history = _linear(chance)
    for _ in range(4):
        history.fork("main", "side")
        for branch in ("main", "side", "main"):
            history.commit(branch, history.changed(history.branches[branch][1]))
        (_, ours), (theirs_at, theirs) = history.branches["main"], history.branches["side"]
        history.commit("main", ours | theirs, merged=theirs_at)
    history.write(tmp_path)
    for path in history.branches["main"][1]:
        assert set(_as_git_follows(tmp_path, path)) <= set(_as_we_follow(tmp_path, path))


def test_what_a_merge_settled_is_found(tmp_path: Path) -> None:
    """A text that stands in no commit but the merge that resolved a conflict is one of the past."""
    history = _History(random.Random(1))
    text = history.text()
    history.commit("main", {"notes/a.md": text})
    history.fork("main", "side")
    history.commit("main", {"notes/a.md": [*text, "ours"]})
    history.commit("side", {"notes/a.md": [*text, "theirs"]})
    history.commit("main", {"notes/a.md": [*text, "both"]}, merged=3)
    history.commit("main", {"notes/a.md": [*text, "later"]})
    history.write(tmp_path)
    last = [data.splitlines()[-1] for data in _as_we_follow(tmp_path, "notes/a.md")]
    assert last[:2] == ["later", "both"]
    assert set(last) == {"later", "both", "ours", "theirs", text[-1]}


def test_no_more_commits_are_looked_at_than_were_asked_for(tmp_path: Path) -> None:
    """As many of the newest as the caller wants, counted through a rename."""
    history = _History(random.Random(1))
    text = history.text()
    for number in range(6):
        history.commit("main", {f"notes/{'ab'[number > 3]}.md": [*text, str(number)]})
    history.write(tmp_path)
    found = list(repository.history(str(tmp_path / "notes"), "b.md", 3))
    assert [data.split()[-1] for data in found] == [b"5", b"4", b"3", b"2"]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of git that were started."""
    found: list[str] = []
    real = process._started

    def start(command: Any, *rest: Any) -> Any:
        found.append(next(word for word in command[1:] if not word.startswith("-")))
        return real(command, *rest)

    monkeypatch.setattr(process, "_started", start)
    return found


def test_a_long_history_takes_few_processes(tmp_path: Path, started: list[str]) -> None:
    """Git is not started for each commit, nor for each version."""
    history = _History(random.Random(1))
    text = history.text()
    for number in range(40):
        history.commit("main", {"notes/a.md": [*text, str(number)]})
    history.write(tmp_path)
    assert len(_as_we_follow(tmp_path, "notes/a.md")) == 40
    assert sorted(started) == ["cat-file", "diff-tree", "diff-tree", "rev-list"]
