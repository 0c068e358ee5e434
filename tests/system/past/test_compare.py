"""`filestore compare`: which answers are others at another commit."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import filestore
from tests.system.conftest import Workspace, git_free

NOTES = {
    "leave.md": "# Leave\n\nParental leave lasts twelve months.\n",
    "anchor.md": "# Anchors\n\nAn anchor holds the boat in soft seabed.\n",
    "knots.md": "# Knots\n\nA bowline never slips.\n",
}


@pytest.fixture
def notes(new_workspace: Callable[..., Workspace]) -> Workspace:
    """Documents in place, committed."""
    made = new_workspace(init=False)
    for name, text in NOTES.items():
        made.write(name, text)
    made("init", "--in-place", ".", "--embedder", "builtin")
    commit(made, "begin")
    return made


def commit(workspace: Workspace, message: str = "more") -> None:
    """Sync and commit all there is."""
    workspace("sync", "--forget-missing", code=None)
    workspace.git("add", "-A")
    workspace.git("commit", "-q", "--allow-empty", "-m", message)


def ask(workspace: Workspace, *queries: str, known: dict[str, str] | None = None) -> Path:
    """A file of questions, outside the work tree."""
    lines = [json.dumps({"query": one}) for one in queries]
    for query, right in (known or {}).items():
        lines.append(json.dumps({"query": query, "relevant": [right]}))
    path = workspace.folder.parent / "questions.jsonl"
    path.write_text("\n".join(lines))
    return path


def compared(
    workspace: Workspace, *words: object, code: int | None = 0, queries: Path | None = None
) -> Any:
    """The JSON of a comparison by keywords."""
    asked = queries or ask(workspace, "anchor seabed", "bowline")
    given = ("--queries", asked, "--mode", "keyword")
    return workspace.json("compare", *words, *given, code=code)


def test_a_commit_against_itself(notes: Workspace) -> None:
    """Nothing is another, whatever name the commit is called by, nor today's files."""
    for words in (("HEAD", "main~0"), ("HEAD",), ("HEAD", "HEAD")):
        if "main~0" in words:
            notes.git("branch", "-f", "main")
        done = compared(notes, *words)
        assert (done["changed"], done["overlap"], done["gained"], done["lost"]) == ([], 1.0, 0, 0)
    said = notes("compare", "HEAD", "--queries", ask(notes, "anchor")).stdout
    assert "1 query: no answer changed" in said


def test_a_renamed_file_is_the_same_answer(notes: Workspace) -> None:
    """Neither a new name loses an answer, nor a new name and a few new words."""
    (notes.folder / "anchor.md").rename(notes.folder / "ground-tackle.md")
    text = (notes.folder / "knots.md").read_text() + "It holds.\n"
    (notes.folder / "knots.md").unlink()
    notes.write("ropes/bowline.md", text)
    commit(notes)
    for later in ((), ("HEAD",)):
        done = compared(notes, "HEAD~1", *later)
        assert (done["gained"], done["lost"], done["overlap"]) == (0, 0, 1.0)
        (query,) = done["changed"]
        (answer,) = query["answers"]
        assert (answer["path"], answer["was"]) == ("ropes/bowline.md", "knots.md")
        assert (answer["edited"], answer["old"], answer["new"]) == (True, 1, 1)


def test_a_file_that_was_renamed_step_by_step(notes: Workspace) -> None:
    """Each step changes little; both ends together have few lines in common."""
    lines = [f"Line {number} about the bowline and its uses aboard.\n" for number in range(12)]
    notes.write("knots.md", "# Knots\n\n" + "".join(lines))
    commit(notes)
    for step in range(4):
        old, new = ("knots.md" if not step else f"knots{step}.md"), f"knots{step + 1}.md"
        lines[step * 3 : step * 3 + 3] = [f"Bowline {step} {place} anew.\n" for place in range(3)]
        (notes.folder / old).unlink()
        notes.write(new, "# Knots\n\n" + "".join(lines))
        commit(notes)
    done = compared(notes, "HEAD~4", "HEAD")
    assert [one["was"] for one in done["changed"][0]["answers"]] == ["knots.md"]


def test_what_was_gained_and_lost(notes: Workspace) -> None:
    """A new file is an answer gained, a deleted one an answer lost, and each says so."""
    notes.write("mooring.md", "# Mooring\n\nA mooring spares the anchor on a hard seabed.\n")
    (notes.folder / "anchor.md").unlink()
    commit(notes)
    done = compared(notes, "HEAD~1", "HEAD")
    assert (done["gained"], done["lost"], done["overlap"]) == (1, 1, 0.5)
    gained, lost = done["changed"][0]["answers"]
    assert (gained["path"], gained["old"], gained["new"], gained["there"]) == (
        *("mooring.md", None, 1, False),
    )
    assert (lost["path"], lost["old"], lost["new"], lost["there"]) == ("anchor.md", 1, None, False)
    words = ("compare", "HEAD~1", "HEAD", "--queries", ask(notes, "anchor"), "--mode", "keyword")
    said = notes(*words).stdout
    assert "  + mooring.md  #1, new file\n  - anchor.md  was #1, file gone\n" in said


def test_the_bounds(notes: Workspace) -> None:
    """The exit code is 1 where the later commit falls below one, and 0 where none is given."""
    known = {"anchor seabed": "anchor.md", "bowline": "knots.md"}
    queries = ask(notes, "leave", known=known)
    (notes.folder / "anchor.md").unlink()
    commit(notes)
    done = compared(notes, "HEAD~1", "HEAD", queries=queries)
    assert (done["questions"], done["queries"], done["difference"]) == (2, 3, -0.5)
    assert done["old"]["scores"]["ndcg"] == 1.0
    assert done["new"]["scores"] == {"ndcg": 0.5, "recall": 0.5, "mrr": 0.5}
    assert done["failed"] == []
    assert "HEAD lacks 'anchor.md'" in done["notes"][-1]
    for words, code in (
        (("--max-loss", "0.4"), 1),
        (("--max-loss", "0.5"), 0),
        (("--min-overlap", "0.9"), 1),
        (("--min-overlap", "0.6"), 0),
        (("--max-loss", "1", "--min-overlap", "1"), 1),
    ):
        done = compared(notes, "HEAD~1", "HEAD", *words, code=code, queries=queries)
        assert len(done["failed"]) == code


def test_an_answer_that_was_renamed_is_found_at_both_times(notes: Workspace) -> None:
    """Whichever of its names the file of questions has."""
    (notes.folder / "anchor.md").rename(notes.folder / "tackle.md")
    commit(notes)
    for name in ("anchor.md", "tackle.md"):
        queries = ask(notes, known={"anchor seabed": name})
        done = compared(notes, "HEAD~1", "HEAD", "--max-loss", "0", queries=queries)
        assert done["old"]["scores"] == done["new"]["scores"]
        assert done["notes"] == []


def test_an_answer_that_never_was(notes: Workspace) -> None:
    """It is no error, but not found at either time, and said once."""
    done = compared(notes, "HEAD", queries=ask(notes, known={"anchor": "achnor.md"}))
    assert done["new"]["scores"]["ndcg"] == 0.0
    assert done["notes"] == ["not there, so not found: HEAD and today lack 'achnor.md'"]


def test_chunks_of_a_source(new_workspace: Callable[..., Workspace]) -> None:
    """Answers may be named by their document in a store of chunk files, as in `evaluate`."""
    made = new_workspace()
    made.write("anchor.md", NOTES["anchor.md"])
    made("add", "anchor.md", "--embedder", "builtin", code=None)
    made("add", "anchor.md")
    commit(made)
    made.write("knots.md", NOTES["knots.md"])
    made("add", "knots.md")
    commit(made)
    queries = ask(made, known={"anchor seabed": "anchor.md", "bowline": "knots.md"})
    done = compared(made, "HEAD~1", "HEAD", "--max-loss", "0", queries=queries)
    assert (done["old"]["scores"]["ndcg"], done["new"]["scores"]["ndcg"]) == (0.5, 1.0)
    assert done["gained"] == 1


@pytest.mark.parametrize("layout", ["in-place", "tree"])
def test_a_commit_from_before_the_store(
    new_workspace: Callable[..., Workspace], notes: Workspace, layout: str
) -> None:
    """It answers nothing, which is said: the change that brings the store passes the check."""
    made = notes
    if layout == "tree":
        made = new_workspace("other")
        made.write("knots.md", NOTES["knots.md"])
        made("add", "knots.md")
        commit(made)
    tree = made.git("hash-object", "-t", "tree", "-w", "/dev/null").strip()
    empty = made.git("commit-tree", tree, "-m", "nothing yet").strip()
    queries = ask(made, known={"bowline": "knots.md"})
    done = compared(made, empty, "HEAD", "--max-loss", "0", queries=queries)
    assert (done["old"]["files"], done["gained"]) == (0, 1)
    assert done["notes"][0].startswith(f"{empty[:12]}: ")
    assert done["notes"][0].endswith("it answers nothing")
    done = compared(made, "HEAD", empty, "--max-loss", "0", code=1, queries=queries)
    assert done["lost"] == 1


def test_files_that_are_not_indexed_yet(notes: Workspace) -> None:
    """Today is what is indexed; that this is not what is there is said."""
    notes.write("knots.md", "# Knots\n\nEdited.\n")
    done = compared(notes, "HEAD")
    assert "today: 1 file differs from the index: run 'filestore sync'" in done["notes"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nowhere", "--queries", "q"), 3, "no commit 'nowhere' in this repository"),
        (("HEAD", "nowhere", "--queries", "q"), 3, "no commit 'nowhere' in this repository"),
        (("--queries", "q", "--", "--all"), 3, "no commit '--all'"),
        (("HEAD", "--queries", "gone"), 3, "cannot read gone"),
        (("HEAD", "--queries", "empty"), 3, "empty holds no question"),
        (("HEAD", "--queries", "q", "-k", "0"), 2, "-k must be at least 1"),
        (("HEAD", "--queries", "q", "--max-loss", "0.1"), 2, "--max-loss takes questions"),
        (("HEAD", "--queries", "q", "--min-overlap", "2"), 2, "must be from 0 to 1, found 2.0"),
        (("HEAD", "--queries", "q", "--min-overlap", "nan"), 2, "must be from 0 to 1, found nan"),
    ],
)
def test_what_cannot_be_compared(notes: Workspace, words: Any, code: int, said: str) -> None:
    """It is refused in words that name it."""
    outside = notes.folder.parent
    (outside / "q").write_text("bowline\n")
    (outside / "empty").write_text("\n")
    words = [outside / one if one in ("q", "empty") else one for one in words]
    done = notes("compare", *words, code=code)
    assert said in done.stderr


def test_no_git(new_workspace: Callable[..., Workspace]) -> None:
    """A store without a history has no other time."""
    made = new_workspace()
    subprocess.run(["rm", "-rf", str(made.folder / ".git")], check=True)
    done = made("compare", "HEAD", "--queries", ask(made, "anchor"), code=3)
    assert "lies in no git work tree" in done.stderr


def test_a_shallow_clone(notes: Workspace) -> None:
    """It says how to get the rest."""
    commit(notes)
    notes.write("new.md", "# New\n")
    commit(notes)
    other = notes.folder.parent / "shallow"
    source = f"file://{notes.folder}"
    command = ["git", "clone", "-q", "--depth", "1", source, str(other)]
    subprocess.run(command, check=True, env=git_free())
    notes("sync", "--store", other)
    words = ("compare", "HEAD~1", "--queries", ask(notes, "anchor"), "--store", other)
    assert "git fetch --unshallow" in notes(*words, code=3).stderr


def test_names_and_subjects_of_a_stranger(notes: Workspace) -> None:
    """Nothing of them steers the terminal, and every file is found again."""
    odd = b"-dash new\nline \x1b[31m caf\xe9.md"
    with open(os.path.join(os.fsencode(notes.folder), odd), "wb") as file:
        file.write(b"# Odd\n\nThe anchor of a stranger.\n")
    commit(notes, "red \x1b[31m subject")
    os.rename(
        os.path.join(os.fsencode(notes.folder), odd),
        os.path.join(os.fsencode(notes.folder), b"2" + odd),
    )
    commit(notes)
    done = compared(notes, "HEAD~1", "HEAD")
    assert done["changed"] == []
    words = ("compare", "HEAD~2", "HEAD", "--queries", ask(notes, "anchor"), "--mode", "keyword")
    said = notes(*words)
    assert "\x1b" not in said.stdout + said.stderr
    assert "2-dash new\\x0aline" in said.stdout


def test_many_queries(notes: Workspace) -> None:
    """Some thousand are asked, with progress, and those alone are told that are others."""
    commit_count = 1_000
    notes.write("mooring.md", "# Mooring\n\nA mooring for word7.\n")
    commit(notes)
    queries = ask(notes, *(f"word{number}" for number in range(commit_count)))
    seen: list[filestore.Progress] = []
    from filestore.search.metrics import parse_queries

    with filestore.open(notes.folder) as store:
        found = store.compare(
            parse_queries(queries.read_bytes(), name="q", known=False),
            "HEAD~1",
            "HEAD",
            mode="keyword",
            on_progress=seen.append,
        )
    assert found.queries == commit_count
    assert "word7" in [one.question.query for one in found.changed]
    assert (seen[-1].done, seen[-1].total) == (commit_count, commit_count)
