"""Choices in one file: a side of git's conflict in it, or that it goes as a copy of another."""

import os
from pathlib import Path
from typing import Any

import pytest

from filestore import FilestoreError, Plan, Policy, Store
from filestore.browse import selected

TEXT = "# amber\n\nAmber is old resin.\n\n{}\n\nIt is found at the sea.\n"
CONFLICT = "<<<<<<< HEAD\nIt is yellow.\n{}=======\nIt is golden.\n>>>>>>> other\n"


def own_file(workspace: Any, name: str, text: str) -> Path:
    """A file that a person wrote into the tree."""
    path: Path = workspace.write(f"file_index/chunked/{name}", text)
    return path


def repair(workspace: Any, *words: object, code: int | None = 0) -> Any:
    return workspace.json("repair", *words, "--yes", code=code)


def kinds(steps: list[dict[str, Any]]) -> list[str]:
    return [step["kind"] for step in steps]


@pytest.fixture
def marked(workspace: Any) -> Path:
    """A file with two conflicts, one with what both sides were made from."""
    conflicts = CONFLICT.format("||||||| 1a2b3c\nIt is brown.\n") + "\n" + CONFLICT.format("")
    path = own_file(workspace, "amber.md", TEXT.format(conflicts))
    own_file(workspace, "basalt.md", "# basalt\n\nBasalt is young.\n")
    workspace.sync(code=None)
    assert workspace.drift() == {"conflict-markers": ["chunked/amber.md"]}
    return path


@pytest.mark.parametrize(
    ("side", "line", "label"),
    [("ours", "It is yellow.", "HEAD"), ("theirs", "It is golden.", "other")],
)
def test_a_side_of_git_s_conflict_is_taken(
    workspace: Any, marked: Path, side: str, line: str, label: str
) -> None:
    """The chosen side of every conflict stays, and answers; what both came from goes with it."""
    before = marked.read_bytes()
    plan = workspace.json("repair", "--plan", f"--{side}", "amber.md", code=1)["plan"]
    (step,) = plan["steps"]
    assert (step["kind"], step["applies"], step["path"]) == (
        f"take-{side}",
        True,
        "chunked/amber.md",
    )
    assert label in step["detail"]
    assert "\n-<<<<<<< HEAD\n" in step["diff"]
    assert "\n-It is brown.\n" in step["diff"]
    assert marked.read_bytes() == before
    done = repair(workspace, f"--{side}", "amber.md")
    assert kinds(done["applied"]) == [f"take-{side}"]
    assert marked.read_text() == TEXT.format(f"{line}\n\n{line}\n")
    assert workspace.found("resin") == ["amber.md"]
    workspace.assert_settled()
    workspace("undo")
    assert marked.read_bytes() == before
    assert workspace.drift() == {"conflict-markers": ["chunked/amber.md"]}
    workspace("redo")
    workspace.assert_settled()


def test_what_is_left_says_how_to_choose(workspace: Any, marked: Path) -> None:
    """Without a choice the file stays as it is, and the commands that choose are told."""
    before = marked.read_bytes()
    plan = workspace.json("repair", "--plan", "--write-files", code=1)["plan"]
    assert plan["steps"] == []
    (left,) = plan["left"]
    assert "--ours PATH" in left["repair"]
    assert "--theirs PATH" in left["repair"]
    assert marked.read_bytes() == before


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (CONFLICT.format("") + "\n<<<<<<< HEAD\nIt is red.\n", "the file ends where"),
        (CONFLICT.format("") + "\n>>>>>>> other\n", "has >>>>>>> where <<<<<<<"),
        (CONFLICT.format("It is\n=======\n"), "has ======= where >>>>>>>"),
        (CONFLICT.format("") + "\n```\n" + CONFLICT.format("") + "```\n", "in a code block"),
    ],
)
def test_marks_that_are_not_whole_are_left(workspace: Any, body: str, reason: str) -> None:
    """Where nobody can tell where a side ends, nothing is written and the reason told."""
    path = own_file(workspace, "amber.md", TEXT.format(body))
    workspace.sync(code=None)
    before = path.read_bytes()
    done = repair(workspace, "--ours", "amber.md", code=1)
    assert done["applied"] == []
    (left,) = done["plan"]["left"]
    assert left["code"] == "conflict-markers"
    assert reason in left["repair"]
    assert "in an editor" in left["repair"]
    assert path.read_bytes() == before


def test_a_side_of_a_merge_is_taken_with_git(workspace: Any) -> None:
    """While git has a file unmerged the choice is git's, and the command for it is told."""
    path = own_file(workspace, "amber.md", TEXT.format("It is brown."))
    for branch, line in (("main", "It is yellow."), ("other", "It is golden.")):
        if branch == "main":
            workspace.git("checkout", "-q", "-b", "main")
            workspace.git("add", "-A")
            workspace.git("commit", "-q", "-m", "Begin")
            workspace.git("branch", "other")
        workspace.git("checkout", "-q", branch)
        path.write_text(TEXT.format(line))
        workspace.git("commit", "-q", "-a", "-m", line)
    with pytest.raises(Exception, match="merge"):
        workspace.git("merge", "-q", "main")
    workspace.sync(code=None)
    before = path.read_bytes()
    assert b"<<<<<<<" in before
    done = repair(workspace, "--ours", "amber.md", code=1)
    assert done["applied"] == []
    (reason,) = {left["repair"] for left in done["plan"]["left"] if left["severity"] != "I"}
    assert "git checkout --ours -- " in reason
    assert "git add -- " in reason
    assert path.read_bytes() == before


def test_a_plan_holds_for_the_marks_it_saw(workspace: Any, marked: Path) -> None:
    """A file that was edited after the plan was made keeps the edit."""
    with _opened(workspace) as store:
        plan = store.plan(Policy(theirs=("chunked/amber.md",)))
        edited = marked.read_bytes().replace(b"golden", b"like gold")
        marked.write_bytes(edited)
        report = store.apply(plan)
    assert report.applied == ()
    assert ["it changed since" in why for _, why in report.skipped] == [True]
    assert marked.read_bytes() == edited


# Copies


@pytest.fixture
def copies(workspace: Any) -> list[Path]:
    """Three files with one text, the second with a key of its own, and another file."""
    own_file(workspace, "basalt.md", "# basalt\n\nBasalt is young.\n")
    text = TEXT.format("It is brown.")
    heads = ("", "---\nmine: kept nowhere else\n---\n", "")
    found = [
        own_file(workspace, f"{name}.md", head + text)
        for name, head in zip("abc", heads, strict=True)
    ]
    workspace.sync()
    workspace.assert_settled()
    return found


def _opened(workspace: Any) -> Store:
    configuration = os.environ["XDG_CONFIG_HOME"]
    return Store(str(workspace.store), configuration=configuration)


def test_a_copy_is_removed(workspace: Any, copies: list[Path]) -> None:
    """The named file goes, also one that the finding does not name first; `undo` brings it back."""
    before = workspace.truth()
    plan = workspace.json("repair", "--plan", "--remove", "b.md", code=1)["plan"]
    (step,) = plan["steps"]
    assert (step["kind"], step["other"]) == ("remove-duplicate", "chunked/a.md")
    assert "\n-mine: kept nowhere else\n" in step["diff"]
    done = repair(workspace, "--remove", "b.md", copies[2])
    assert kinds(done["applied"]) == ["remove-duplicate", "remove-duplicate"]
    assert workspace.truth().keys() == {"a.md", "basalt.md"}
    assert workspace.found("resin") == ["a.md"]
    workspace.assert_settled()
    workspace("undo")
    assert workspace.truth() == before
    (hit,) = workspace.json("search", "resin", "--mode", "keyword")["hits"]
    assert (hit["path"], hit["copies"]) == ("chunked/a.md", ["chunked/b.md", "chunked/c.md"])
    workspace.assert_settled()


def test_the_last_one_stays(workspace: Any, copies: list[Path]) -> None:
    """Where no other file would have the text, or none has it, nothing is removed."""
    before = workspace.truth()
    for chosen in (copies, ["basalt.md"]):
        done = workspace("repair", "--remove", *chosen, "--yes", code=4)
        assert "no other file that stays has the same text" in done.stderr
    workspace("repair", "--remove", "nothing.md", "--yes", code=3)
    workspace("repair", "--remove", "../filestore.toml", "--yes", code=3)
    workspace("repair", "--remove", "a.md", "--theirs", "a.md", "--yes", code=2)
    assert workspace.truth() == before


def test_a_copy_that_is_edited_is_none(workspace: Any, copies: list[Path]) -> None:
    """What either file holds now decides, also after the plan was made."""
    copies[0].write_text(TEXT.format("It is edited."))
    copies[2].write_text(TEXT.format("It is edited, too."))
    workspace("repair", "--remove", "b.md", "--yes", code=4)
    copies[0].write_text(TEXT.format("It is brown."))
    with _opened(workspace) as store:
        plan = store.plan(Policy(remove=("chunked/b.md",)))
        copies[0].write_text(TEXT.format("It is edited."))
        report = store.apply(plan)
    assert report.applied == ()
    assert [why for _, why in report.skipped] == [
        "chunked/a.md: it changed since the plan was made"
    ]
    assert copies[1].exists()


# A part of a plan


def test_a_selection_is_applied_alone(workspace: Any, copies: list[Path]) -> None:
    """Of a plan only what mends the marked findings is done, and the rest is found again."""
    copies[0].write_text("# amber\n\nChanged.\n")
    copies[1].unlink()
    own_file(workspace, "new.md", "# new\n\nNew.\n")
    with _opened(workspace) as store:
        found = {one.path: one for one in store.verify().findings if one.severity != "I"}
        plan = store.plan(Policy(truth=True))
        assert _paths(plan) == ["chunked/a.md", "chunked/b.md", "chunked/new.md"]
        part = selected(plan, [found["chunked/b.md"], found["chunked/new.md"]])
        assert (_paths(part), part.texts) == (["chunked/b.md", "chunked/new.md"], 1)
        report = store.apply(part)
        assert sorted(step.path for step in report.applied) == ["chunked/b.md", "chunked/new.md"]
        left = [one for one in report.remaining if one.severity != "I"]
        assert [(one.code, one.path) for one in left] == [("modified", "chunked/a.md")]
    assert copies[1].exists()


def _paths(plan: Plan) -> list[str]:
    return sorted(step.path for step in plan.steps)


def test_a_choice_in_another_store_s_file_is_refused(workspace: Any, marked: Path) -> None:
    """A path outside the tree is no file to choose in."""
    assert marked.exists()
    with _opened(workspace) as store, pytest.raises(FilestoreError):
        store.plan(Policy(ours=("../outside.md",)))
