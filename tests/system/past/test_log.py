"""`filestore log`: when a file, a section or an answer changed, and by which commit."""

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
from filestore.past.events import LogEntry
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

    def told(self, *words: object) -> list[tuple[str | None, str, str | None]]:
        """Subject, what was done and the old name, of each entry of a file."""
        return [
            (entry["subject"], change["what"], change.get("was"))
            for entry in self.log(*words)["entries"]
            for change in entry["files"]
        ]


@pytest.fixture
def notes(new_workspace: Callable[..., Workspace]) -> Notes:
    """Two documents, committed once."""
    return Notes(new_workspace(init=False))


def test_what_commits_did_to_a_file(notes: Notes) -> None:
    """Text, what is said about it, a new name, its end: each is told apart, newest first."""
    notes.commit("edit", ropes=NOTE + "It holds the boat.\n")
    notes.commit("tag", ropes="---\ntags: [sea]\n---\n" + NOTE + "It holds the boat.\n")
    notes.commit("other", leave="# Leave\n\nParental leave lasts ten months.\n")
    (notes.folder / "ropes.md").rename(notes.folder / "rigging.md")
    notes.commit("move")
    expected = [
        ("move", "renamed", "ropes.md"),
        ("tag", "metadata", None),
        ("edit", "edited", None),
        ("begin", "added", None),
    ]
    assert notes.told("rigging.md") == expected
    assert notes.told("ropes.md") == expected
    notes.commit("end", rigging=None)
    assert notes.told("rigging.md") == [("end", "removed", None), *expected]
    said = notes.made("log", "rigging.md").stdout.split("\n")
    assert said[1] == "    removed"
    assert said[3] == "    renamed from ropes.md to rigging.md"
    assert said[5] == "    metadata only"
    assert said[6].endswith(" A  edit")


def test_a_section_is_followed_through_its_file(notes: Notes) -> None:
    """Only commits after which its own text is another are told, wherever it stands."""
    text = NOTE.replace("All about ropes.", "All about ropes,\nlines\nand sheets.")
    notes.commit("above", ropes=text)
    text = text.replace("never slips", "hardly ever slips")
    notes.commit("knots", ropes=text)
    text = "---\ntitle: Rigging\n---\n" + text + "\nIt holds.\n"
    notes.commit("below", ropes=text)
    notes.commit("move", ropes=None, rigging=text)
    text = text.replace("## Anchors", "## Splices\n\nAn eye.\n\n## Anchors")
    notes.commit("splices", rigging=text)
    line = text.split("\n").index("## Knots") + 1
    assert notes.told(f"rigging.md:{line}") == [("knots", "edited", None), ("begin", "added", None)]
    assert notes.told(f"rigging.md:{line + 2}") == notes.told(f"rigging.md:{line}")
    line = text.split("\n").index("## Splices") + 1
    assert notes.told(f"rigging.md:{line}") == [("splices", "added", None)]
    line = text.split("\n").index("## Anchors") + 1
    told = notes.log(f"rigging.md:{line}")
    assert told["about"] == "section"
    assert [one["subject"] for one in told["entries"]] == ["below", "begin"]


def test_a_section_of_a_file_that_is_gone(notes: Notes) -> None:
    """Its line is one of the file as it was last."""
    notes.commit("knots", ropes=NOTE.replace("never", "hardly ever"))
    notes.commit("end", ropes=None)
    line = NOTE.split("\n").index("## Knots") + 1
    assert [one[:2] for one in notes.told(f"ropes.md:{line}")] == [
        ("end", "removed"),
        ("knots", "edited"),
        ("begin", "added"),
    ]


def test_a_section_that_is_edited_now(notes: Notes) -> None:
    """The edit that is not committed comes first, under a new name, too."""
    text = NOTE.replace("# Ropes\n", "# Ropes\n\nA line above.\n").replace("never", "hardly")
    line = text.split("\n").index("## Knots") + 1
    (notes.folder / "ropes.md").write_text(text)
    assert notes.told(f"ropes.md:{line}") == [(None, "edited", None), ("begin", "added", None)]
    assert notes.told("ropes.md:1")[0] == (None, "edited", None)
    assert notes.told(f"ropes.md:{line + 4}") == [("begin", "added", None)]


def test_a_section_through_a_merge(notes: Notes) -> None:
    """What a branch did is the branch's commit, not the merge's."""
    main = notes.made.git("branch", "--show-current").strip()
    notes.made.git("checkout", "-q", "-b", "side")
    notes.commit("side", ropes=NOTE.replace("never", "hardly ever"))
    notes.made.git("checkout", "-q", main)
    notes.commit("main", ropes=NOTE.replace("An anchor.", "An anchor holds."))
    notes.made.git("merge", "-q", "-m", "merge", "side")
    notes.made("sync")
    line = NOTE.split("\n").index("## Knots") + 1
    assert [one[0] for one in notes.told(f"ropes.md:{line}")] == ["side", "begin"]
    assert [one[0] for one in notes.told("ropes.md")] == ["merge", "main", "side", "begin"]


def test_what_is_not_committed_comes_first(notes: Notes) -> None:
    """An edit, a new file, a new name, a file that was deleted; line ends alone are nothing."""
    (notes.folder / "ropes.md").write_bytes(NOTE.replace("\n", "\r\n").encode())
    assert notes.told("ropes.md") == [("begin", "added", None)]
    (notes.folder / "ropes.md").write_text(NOTE + "More.\n")
    assert notes.told("ropes.md") == [(None, "edited", None), ("begin", "added", None)]
    assert notes.made("log", "ropes.md").stdout.startswith("not committed\n    edited\n")
    (notes.folder / "new.md").write_text("# New\n\nNew.\n")
    assert notes.told("new.md") == [(None, "added", None)]
    (notes.folder / "leave.md").rename(notes.folder / "absence.md")
    assert notes.told("absence.md") == [(None, "renamed", "leave.md"), ("begin", "added", None)]
    assert notes.told("leave.md") == [(None, "removed", None), ("begin", "added", None)]


def test_chunks(new_workspace: Callable[..., Workspace], manual: Callable[..., str]) -> None:
    """A chunk file, the chunk of an original's line, and an original with all its chunks."""
    made = new_workspace()
    made.write("manual.md", manual(["anchors", "knots", "sails"]))
    made("add", "manual.md")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "add")
    first, second, third, *_ = made.chunks("manual.md")
    path = made.chunked / second
    path.write_text(path.read_text() + "By hand.\n")
    made("sync")
    made.git("commit", "-qam", "edit by hand")
    head = path.read_text().replace("\nsource:", "\nmine: yes\nsource:", 1)
    path.write_text(head if "mine" in head else "---\nmine: yes\n" + head.removeprefix("---\n"))
    made("sync")
    made.git("commit", "-qam", "a key of mine")

    def told(*words: str) -> list[tuple[str, list[tuple[str, str]]]]:
        return [
            (entry["subject"], [(one["path"], one["what"]) for one in entry["files"]])
            for entry in made.json("log", *words)["entries"]
        ]

    name = f"chunked/{second}"
    expected = [
        ("a key of mine", [(name, "metadata")]),
        ("edit by hand", [(name, "edited")]),
        ("add", [(name, "added")]),
    ]
    assert told(name) == told(second) == expected
    assert told(f"{name}:3") == expected[1:]
    whole = told("manual.md")
    assert whole[:2] == expected[:2]
    assert {path for path, _ in whole[2][1]} == {f"chunked/{one}" for one in (first, second, third)}
    assert told("manual.md:4") == [("add", [(f"chunked/{first}", "added")])]


def test_the_answer_to_a_question(notes: Notes) -> None:
    """What a commit gained, lost, edited and put first; others are not told of."""
    notes.commit("mooring", mooring="# Mooring\n\nA bowline, a bowline, and a bowline.\n")
    notes.commit("elsewhere", leave="# Leave\n\nParental leave lasts ten months.\n")
    notes.commit("edit", mooring="# Mooring\n\nA bowline, a bowline, and one more bowline.\n")
    notes.commit("end", ropes=None)
    (notes.folder / "mooring.md").rename(notes.folder / "docking.md")
    notes.commit("rename")
    found = notes.log("bowline", "--mode", "keyword")
    assert (found["about"], found["notes"]) == ("query", [])
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


def test_path_or_question(notes: Notes) -> None:
    """A word that is a file is a file, and all others are asked, unless one says which."""
    notes.made.write("bowline/a.md", "# A\n\nA bowline.\n")
    notes.commit("folder")
    assert notes.log("ropes.md")["about"] == "file"
    assert notes.log("ropes.md", "--query", "--mode", "keyword")["about"] == "query"
    assert notes.log("bowline")["about"] == "query"
    for name in ("bowline", "nothing.md", "filestore.toml", "../elsewhere.md"):
        done = notes.made("log", name, "--path", code=3)
        assert f"no file of the store is, or was, called '{name}'" in done.stderr
    done = notes.made("log", "ropes.md", "--path", "--query", code=2)
    assert "exclude each other" in done.stderr


def test_what_looks_like_a_path_and_is_none(notes: Notes) -> None:
    """It is asked, and said to be: a name may be misspelt."""
    done = notes.made("log", "handbook/nothing.md", "--mode", "keyword", code=1)
    assert "no file of the store is, or was, called 'handbook/nothing.md'" in done.stderr
    assert done.stdout == "nothing found\n"


def test_an_original_that_was_renamed(new_workspace: Callable[..., Workspace]) -> None:
    """By its old name its chunks are found, too."""
    made = new_workspace()
    made.write("handbook/knots.md", NOTE)
    made("add", "handbook")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "add")
    made.git("mv", "handbook/knots.md", "handbook/ropes.md")
    made("update")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "rename")
    found = made.json("log", "handbook/knots.md")
    assert found["entries"] == made.json("log", "handbook/ropes.md")["entries"]
    assert found["entries"][-1]["subject"] == "add"


def test_a_document_of_a_submodule(notes: Notes) -> None:
    """It has the history of the submodule."""
    other = notes.folder.parent / "inner"
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    (other).mkdir()
    (other / "a.md").write_text("# A\n\nWords.\n")
    for words in (
        ("init", "-q"),
        ("add", "-A"),
        (*who, "commit", "-q", "-m", "in the submodule"),
    ):
        subprocess.run(["git", *words], cwd=other, check=True, env=git_free())
    allowed = ("-c", "protocol.file.allow=always")
    notes.made.git(*allowed, "submodule", "--quiet", "add", str(other), "inner")
    notes.commit("take it in")
    assert notes.told("inner/a.md") == [("in the submodule", "added", None)]


def test_from_other_folders(notes: Notes) -> None:
    """A path is meant from where one stands, or from the root of the store."""
    notes.made.write("deep/er/note.md", "# Deep\n\nWords.\n")
    notes.commit("deep")
    for folder, name in (
        ("deep", "er/note.md"),
        ("deep/er", "note.md"),
        ("deep", "deep/er/note.md"),
        ("deep/er", "../../ropes.md"),
        (".", str(notes.folder / "ropes.md")),
    ):
        found = notes.made.json("log", name, "--path", cwd=notes.folder / folder)
        assert found["entries"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("",), 2, "nothing is asked"),
        (("ropes.md", "--max", "0"), 2, "--max must be at least 1"),
        (("words", "-k", "0"), 2, "-k must be at least 1"),
        (("ropes.md:99",), 2, "has no line 99: it has 11"),
        (("ropes.md:0",), 2, "has no line 0"),
    ],
)
def test_what_cannot_be_told(notes: Notes, words: Any, code: int, said: str) -> None:
    """It is refused in words that name it."""
    assert said in notes.made("log", *words, code=code).stderr


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
    for words in (("bowline",), ("ropes.md",)):
        done = notes.made("log", *words, "--store", other, cwd=other, code=None)
        assert "git fetch --unshallow" in done.stderr
        assert "begins here" not in done.stdout
        assert "added" not in done.stdout


def test_other_heads_and_work_trees(notes: Notes) -> None:
    """A detached HEAD and a linked work tree have the history of their own HEAD."""
    notes.commit("edit", ropes=NOTE + "More.\n")
    other = notes.folder.parent / "linked"
    notes.made.git("worktree", "add", "-q", "--detach", str(other), "HEAD~1")
    notes.made("sync", "--store", other)
    found = notes.made.json("log", "ropes.md", "--store", other, cwd=other)
    assert [one["subject"] for one in found["entries"]] == ["begin"]
    notes.made.git("checkout", "-q", "--detach", "HEAD")
    assert [one[0] for one in notes.told("ropes.md")] == ["edit", "begin"]


def test_a_rewritten_history(notes: Notes) -> None:
    """The commits that HEAD has now are told, and no others."""
    notes.commit("edit", ropes=NOTE + "More.\n")
    notes.made.git("commit", "-q", "--amend", "-m", "amended")
    assert [one[0] for one in notes.told("ropes.md")] == ["amended", "begin"]
    assert [one["subject"] for one in notes.log("bowline")["entries"]] == ["amended", "begin"]


def test_names_of_a_stranger(notes: Notes) -> None:
    """Authors, subjects and names of files do not steer the terminal; any name can be asked for."""
    names = [b"-dash.md", b"a\nb.md", b"caf\xe9.md", b"red \x1b[31m.md", b"line:3.md"]
    for name in names:
        with open(os.path.join(os.fsencode(notes.folder), name), "wb") as file:
            file.write(b"# Odd\n\nA bowline in a bight.\n")
    notes.made("sync", code=1)
    notes.made.git("add", "-A")
    who = ("-c", "user.name=\x1b[31mRed\u202e", "-c", "user.email=a@example.org")
    notes.made.git(*who, "commit", "-q", "-m", "subject \x1b]0;title\x07 \u202e")
    for name in names:
        done = notes.made("log", "--path", "--", os.fsdecode(name))
        assert done.stdout.endswith("    added\n")
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout
    done = notes.made("log", "bowline", "bight")
    assert "\x1b" not in done.stdout + done.stderr


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
        assert store.log("ropes.md", meant_as="query", mode="keyword").about == "query"
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
                assert entry is not None
                new = {one.path for one in entry.gained}
                gone = {one.path for one in entry.lost}
                renamed = {one.was for one in (*entry.edited, *entry.lost) if one.was}
                assert new <= paths - known
                assert gone - renamed <= (known - paths) | renamed
                before = answers


@pytest.mark.parametrize("asked", ["\ud800", "a\0b", "x" * 200_000, "\x1b[31m", "../" * 50 + "a"])
def test_odd_words(notes: Notes, asked: str) -> None:
    """They are asked, whatever they are, and name no file."""
    with filestore.open(notes.folder) as store:
        assert store.log(asked, mode="keyword").about == "query"
