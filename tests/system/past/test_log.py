"""`filestore log`: when an answer changed, and by which commit."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore.past.moment import LogEntry
from tests.system.conftest import Workspace, git_free
from tests.system.past.histories import History, queries_of

NOTE = """\
# Ropes

All about ropes.

## Knots

A bowline never slips.

## Anchors

An anchor.
"""


class Notes:
    """Documents in place with a history."""

    def __init__(self, made: Workspace) -> None:
        self.made = made
        self.folder = made.folder
        made.write("ropes.md", NOTE)
        made.write("leave.md", "# Leave\n\nParental leave lasts twelve months.\n")
        made("init", "--in-place", ".", "--embedder", "builtin")
        self.commit("begin")

    def commit(self, message: str, **files: str | None) -> None:
        """Write some files, None for one that goes; sync and commit all."""
        for name, text in files.items():
            path = self.folder / f"{name}.md"
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        self.made("sync", "--forget-missing", code=None)
        self.made.git("add", "-A")
        self.made.git("commit", "-q", "--allow-empty", "-m", message)

    def log(self, *words: object, code: int = 0) -> Any:
        """The JSON of a log."""
        return self.made.json("log", *words, code=code)


@pytest.fixture
def notes(new_workspace: Callable[..., Workspace]) -> Notes:
    """Two documents, committed once."""
    return Notes(new_workspace(init=False))


def test_the_answer_to_a_question(notes: Notes) -> None:
    """What a commit gained, lost, edited and put first; others are not told of."""
    notes.commit("mooring", mooring="# Mooring\n\nA bowline, a bowline, and a bowline.\n")
    notes.commit("elsewhere", leave="# Leave\n\nParental leave lasts ten months.\n")
    notes.commit("edit", mooring="# Mooring\n\nA bowline, a bowline, and one more bowline.\n")
    notes.commit("end", ropes=None)
    (notes.folder / "mooring.md").rename(notes.folder / "docking.md")
    notes.commit("rename")
    found = notes.log("bowline", "--mode", "keyword")
    assert found["notes"] == []
    told = [
        {key: value for key, value in entry.items() if key not in ("commit", "committed", "author")}
        for entry in found["entries"]
    ]
    assert told == [
        {"subject": "end", "lost": [{"path": "ropes.md", "rank": 2}]},
        {"subject": "edit", "edited": [{"path": "mooring.md", "rank": 1}]},
        {
            "subject": "mooring",
            "gained": [{"path": "mooring.md", "rank": 1}],
            "first": "mooring.md",
        },
        {
            "subject": "begin",
            "gained": [{"path": "ropes.md", "rank": 1}],
            "first": "ropes.md",
            "begins": True,
        },
    ]
    said = notes.made("log", "bowline", "--mode", "keyword").stdout
    assert "    + mooring.md  #1, first now\n" in said
    assert "    the store begins here\n    + ropes.md  #1, first now\n" in said
    (notes.folder / "new.md").write_text("A bowline.\n")
    notes.made("sync")
    first = notes.log("bowline", "--mode", "keyword", "--max", "2")
    assert first["entries"][0]["commit"] is None
    assert [one["path"] for one in first["entries"][0]["gained"]] == ["new.md"]
    assert [one["subject"] for one in first["entries"]] == [None, "end"]
    assert first["notes"] == ["2 commits were looked at: --max goes further back"]


def test_what_a_merge_brought_is_the_merges(notes: Notes) -> None:
    """The answer is asked at first parents: a branch of many commits is one change."""
    main = notes.made.git("branch", "--show-current").strip()
    notes.made.git("checkout", "-q", "-b", "side")
    for number in range(3):
        notes.commit(f"side {number}", **{f"n{number}": f"# N{number}\n\nA bowline.\n"})
    notes.made.git("checkout", "-q", main)
    notes.made.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    notes.made("sync")
    found = notes.log("bowline", "--mode", "keyword")["entries"]
    assert [one["subject"] for one in found] == ["merge", "begin"]
    assert len(found[0]["gained"]) == 3


def test_a_commit_that_left_the_store_alone_is_not_looked_at(
    new_workspace: Callable[..., Workspace],
) -> None:
    """It takes no view."""
    made = new_workspace()
    made.write("knots.md", "# Knots\n\nA bowline.\n")
    made("add", "knots.md")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "add")
    for number in range(3):
        made.write("elsewhere.txt", f"{number}")
        made.git("add", "-A")
        made.git("commit", "-q", "-m", f"elsewhere {number}")
    assert [one["subject"] for one in made.json("log", "a bowline")["entries"]] == ["add"]
    views = [one for one in (made.sidecar / "past").iterdir() if one.is_dir()]
    assert len(views) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("",), 2, "nothing is asked"),
        (("words", "--max", "0"), 2, "--max must be at least 1"),
        (("words", "-k", "0"), 2, "-k must be at least 1"),
    ],
)
def test_what_cannot_be_told(notes: Notes, words: Any, code: int, said: str) -> None:
    """It is refused in words that name it."""
    assert said in notes.made("log", *words, code=code).stderr


def test_a_file_is_left_to_git(notes: Notes) -> None:
    """There or gone, whole or at a line, from any folder; `--query` asks its name all the same."""
    notes.made.write("deep/my note", "Words.\n")
    for name, command in {
        "ropes.md": "-- ropes.md\n",
        "ropes.md:3": "-- ropes.md\n",
        "gone.md": "-- gone.md\n",
        "deep/my note:1": "-- 'deep/my note'\n",
        "../ropes.md": "-- ../ropes.md\n",
    }.items():
        done = notes.made("log", name, cwd=notes.folder / "deep", code=2)
        assert f"git log --follow {command}" in done.stderr
        assert not done.stdout
    for words in (("bowline",), ("and/or",), ("ropes.md", "--query"), ("in ropes.md",)):
        assert "removed" not in notes.made("log", *words, "--mode", "keyword", code=None).stderr


def test_nothing_committed_and_no_git(new_workspace: Callable[..., Workspace]) -> None:
    """Without a commit there is no log, and without git none either."""
    made = new_workspace()
    assert "nothing is committed yet" in made("log", "words", code=3).stderr
    subprocess.run(["rm", "-rf", str(made.folder / ".git")], check=True)
    assert "lies in no git work tree" in made("log", "words", code=3).stderr


def test_a_shallow_clone(notes: Notes) -> None:
    """What it does not have is not taken for the beginning."""
    notes.commit("edit", ropes=NOTE + "More.\n")
    other = notes.folder.parent / "shallow"
    command = ["git", "clone", "-q", "--depth", "1", f"file://{notes.folder}", str(other)]
    subprocess.run(command, check=True, env=git_free())
    notes.made("sync", "--store", other)
    done = notes.made("log", "bowline", "--store", other, cwd=other, code=None)
    assert "git fetch --unshallow" in done.stderr
    assert "begins here" not in done.stdout


def test_other_heads_and_work_trees(notes: Notes) -> None:
    """A detached HEAD and a linked work tree have the history of their own HEAD."""
    notes.commit("edit", ropes=NOTE + "More.\n")
    other = notes.folder.parent / "linked"
    notes.made.git("worktree", "add", "-q", "--detach", str(other), "HEAD~1")
    notes.made("sync", "--store", other)
    found = notes.made.json("log", "bowline", "--store", other, cwd=other)
    assert [one["subject"] for one in found["entries"]] == ["begin"]
    notes.made.git("checkout", "-q", "--detach", "HEAD")
    assert [one["subject"] for one in notes.log("bowline")["entries"]] == ["edit", "begin"]


def test_a_rewritten_history(notes: Notes) -> None:
    """The commits that HEAD has now are told, and no others."""
    notes.commit("edit", ropes=NOTE + "More.\n")
    notes.made.git("commit", "-q", "--amend", "-m", "amended")
    assert [one["subject"] for one in notes.log("bowline")["entries"]] == ["amended", "begin"]


def test_names_of_a_stranger(notes: Notes) -> None:
    """Authors, subjects and names of files do not steer the terminal; each name is refused."""
    names = [b"-dash.md", b"a\nb.md", b"caf\xe9.md", b"red \x1b[31m.md", b"line:3.md"]
    for name in names:
        with open(os.path.join(os.fsencode(notes.folder), name), "wb") as file:
            file.write(b"# Odd\n\nA bowline in a bight.\n")
    notes.made("sync", code=1)
    notes.made.git("add", "-A")
    who = ("-c", "user.name=\x1b[31mRed\u202e", "-c", "user.email=a@example.org")
    notes.made.git(*who, "commit", "-q", "-m", "subject \x1b]0;title\x07 \u202e")
    for name in names:
        done = notes.made("log", "--", os.fsdecode(name), code=2)
        assert "git log --follow -- " in done.stderr
        assert "\x1b" not in done.stderr
    done = notes.made("log", "bowline", "bight")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout


def test_what_is_known_is_printed_when_one_has_enough(notes: Notes) -> None:
    """Ctrl-C in a long walk prints the entries that were found."""
    for number in range(12):
        notes.commit(f"edit {number}", ropes=NOTE + f"A bowline, {number}.\n")
    command = [sys.executable, "-m", "filestore", "log", "bowline", "--json", "--mode", "keyword"]
    with subprocess.Popen(
        command, cwd=notes.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        past = notes.folder / ".filestore" / "past"
        until = time.monotonic() + 60
        while time.monotonic() < until and process.poll() is None:
            if past.is_dir() and sum(one.is_dir() for one in past.iterdir()) > 4:
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    found = json.loads(out)
    assert b"Traceback" not in err
    assert process.returncode in (0, 130)
    if process.returncode == 130:
        assert found["notes"] == ["interrupted: what was found so far"]
        assert 1 <= len(found["entries"]) < 13


def test_as_a_library(notes: Notes) -> None:
    """Entries come as they are found, with progress; the work tree stays as it is."""
    notes.commit("edit", ropes=NOTE + "A bowline.\n")
    before = {path: path.stat().st_mtime_ns for path in Path(notes.folder).glob("*.md")}
    entries: list[LogEntry] = []
    seen: list[filestore.Progress] = []
    with filestore.open(notes.folder) as store:
        found = store.log("a bowline", on_entry=entries.append, on_progress=seen.append)
        assert store.log("ropes.md", mode="keyword").asked == "ropes.md"
    assert tuple(entries) == found.entries
    assert [one.stage for one in seen][:1] == ["asking each commit"]
    assert {path: path.stat().st_mtime_ns for path in Path(notes.folder).glob("*.md")} == before


@pytest.mark.parametrize("layout", ["in-place", "tree"])
def test_the_log_is_what_each_commit_answers(tmp_path: Path, layout: str) -> None:
    """Each commit whose answers are others than those before has an entry, and no other."""
    history = History(tmp_path / "kb", layout=layout, seed=5)
    history.grow(8)
    for query in queries_of(history.root, 3, seed=5):
        with filestore.open(history.root) as store:
            found = store.log(query, k=4)
            told = {one.commit.commit: one for one in found.entries if one.commit}
            assert None not in [one.commit for one in found.entries]
            before: list[tuple[str, str]] = []
            for commit in history.commits:
                with store.at(commit) as past:
                    answers = [(one.path, one.text) for one in past.search(query, k=4)]
                entry = told.get(commit)
                paths, known = {path for path, _ in answers}, {path for path, _ in before}
                if set(answers) == set(before) and answers[:1] == before[:1]:
                    assert entry is None or not answers
                    continue
                if entry is None:
                    # All that differs is what some of them are called.
                    assert {text for _, text in answers} == {text for _, text in before}
                    assert answers[0][1] == before[0][1]
                    before = answers
                    continue
                new = {one.path for one in entry.gained}
                # What is renamed as it goes has the name that it has by then.
                gone = {one.was or one.path for one in entry.lost}
                assert new <= paths - known
                assert gone <= known - paths
                before = answers


@pytest.mark.parametrize("asked", ["\ud800", "a\0b", "x" * 200_000, "\x1b[31m", "../" * 50 + "a"])
def test_odd_words(notes: Notes, asked: str) -> None:
    """They are asked, whatever they are, and name no file."""
    with filestore.open(notes.folder) as store:
        # As it is searched for: half of a pair is no text.
        assert store.log(asked, mode="keyword").asked == asked.replace("\ud800", "?")
