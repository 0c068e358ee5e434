"""Choices in one file: a side of git's conflict in it, or that it goes as a copy of another."""

import os
from pathlib import Path
from typing import Any

import pytest

from filestore import FilestoreError, Plan, Policy, Store
from filestore.browse import selected
from filestore.git.repository import operation

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
    assert "filestore repair --ours chunked/amber.md" in left["repair"]
    assert "--theirs chunked/amber.md" in left["repair"]
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


def begin(workspace: Any, files: dict[str, bytes | None], *, name: str = "side") -> None:
    """Commit files to a branch of their own."""
    workspace.git("checkout", "-q", "-b", name, "base")
    commit(workspace, files, name)


def commit(workspace: Any, files: dict[str, bytes | None], subject: str) -> None:
    for path, data in files.items():
        place = workspace.store / "chunked" / path
        if data is None:
            workspace.git("rm", "-q", "-f", str(place))
        else:
            place.write_bytes(data)
            workspace.git("add", "-f", str(place))
    workspace.git("commit", "-q", "--allow-empty", "-m", subject)


def text(*lines: str) -> bytes:
    """A document with lines that are far enough from each other to be hunks of their own."""
    return (
        "\n\nA line\n\nbetween the\n\nothers.\n\n".join(["# amber", *lines, "The end."]).encode()
        + b"\n"
    )


BINARY = b"\xff\x00\xfe%d\n"
BASE: dict[str, bytes | None] = {
    "amber.md": text("It is brown.", "It is soft.", "It is old."),
    "gone.md": b"# gone\n\nfirst\n",
    "blob.md": BINARY % 1,
    "away.md": b"# away\n\nA page about leaving.\n",
    "quiet.md": b"# quiet\n\nNothing happens here.\n",
}
OURS: dict[str, bytes | None] = {
    "amber.md": text("It is yellow.", "It is hard.", "It is old."),
    "gone.md": None,
    "blob.md": BINARY % 2,
}
THEIRS: dict[str, bytes | None] = {
    "amber.md": text("It is golden.", "It is brittle.", "It is ancient."),
    "gone.md": b"# gone\n\nsecond\n",
    "blob.md": BINARY % 3,
}
OPERATIONS = ("merge", "rebase", "cherry-pick", "revert", "stash")


@pytest.fixture(params=OPERATIONS)
def busy(workspace: Any, request: pytest.FixtureRequest) -> Any:
    """A store in which git waits for the choice in three files; what it names ours is `OURS`."""
    workspace.git("checkout", "-q", "-b", "base")
    commit(workspace, BASE, "base")
    word = request.param
    if word == "revert":
        # Taking back a commit makes of the files what they were before it.
        begin(workspace, THEIRS, name="theirs")
        commit(workspace, BASE, "again")
        undone = "HEAD"
        commit(workspace, OURS, "ours")
        words = ["revert", "--no-edit", f"{undone}~1"]
    elif word == "stash":
        begin(workspace, OURS, name="ours")
        workspace.git("checkout", "-q", "base")
        for path, data in THEIRS.items():
            (workspace.store / "chunked" / path).write_bytes(data or b"")
        workspace.git("stash", "-q")
        workspace.git("checkout", "-q", "ours")
        words = ["stash", "pop"]
    else:
        begin(workspace, THEIRS, name="theirs")
        begin(workspace, OURS, name="ours")
        if word == "rebase":
            # What is rebased comes onto the other branch, which git then calls ours.
            workspace.git("checkout", "-q", "theirs")
        words = [word, "ours" if word == "rebase" else "theirs"]
    with pytest.raises(Exception, match=word):
        workspace.git(*words)
    workspace.sync(code=None)
    return workspace


def unmerged(workspace: Any) -> str:
    done: str = workspace.git("ls-files", "--unmerged", "--stage")
    return done


@pytest.mark.parametrize("is_added", [False, True])
def test_the_next_command_of_git_is_named(busy: Any, is_added: bool) -> None:
    """Also where the file was added with its markers: what was printed leaves none in git."""
    path = "file_index/chunked/amber.md"
    if is_added:
        busy.git("add", "-f", path)
        busy.sync(code=None)
    (step,) = repair(busy, "--theirs", "amber.md", code=None)["applied"]
    command = step["detail"].rpartition("; then: ")[2]
    assert command == f"git add {path}"
    if is_added:
        assert "<<<<<<<" in busy.git("show", f":{path}")
        # A commit would keep them: as long as that is so, the file is not called resolved.
        assert "chunked/amber.md" in busy.drift()["conflict-markers"]
    busy.git(*command.split()[1:])
    assert "chunked/amber.md" not in busy.drift().get("conflict-markers", ())
    assert "<<<<<<<" not in busy.git("show", f":{path}")


def test_one_file_is_resolved_while_git_waits(busy: Any) -> None:
    """Text, binary and deleted: the named file takes the side, git's index and others stay."""
    chunked, staged = busy.store / "chunked", unmerged(busy)
    quiet, names = chunked / "quiet.md", ("amber.md", "blob.md", "gone.md")
    assert staged
    before = busy.truth()
    # Their side, then undo, one by one; of the deleted file git left theirs.
    for name in names[:2]:
        done = repair(busy, "--theirs", name, code=1)
        assert kinds(done["applied"]) == ["take-theirs"], done["plan"]["left"]
        assert (chunked / name).read_bytes() == THEIRS[name]
        assert unmerged(busy) == staged
        assert {path: data for path, data in busy.truth().items() if path != name} == {
            path: data for path, data in before.items() if path != name
        }
        busy("undo", code=None)
        assert busy.truth() == before
    done = repair(busy, "--theirs", "gone.md", code=1)
    assert "it is as theirs already: 'git add' it" in str(done["plan"]["left"])
    assert "in an editor" not in str(done["plan"]["left"])
    done = repair(busy, "--ours", "gone.md", code=1)
    assert kinds(done["applied"]) == ["take-ours"]
    assert not (chunked / "gone.md").exists()
    # Nothing else is written.
    quiet.unlink()
    done = busy("repair", "--write-files", "--path", "chunked/quiet.md", "--yes", code=None)
    is_stash = not operation(str(busy.store))
    assert bool(done.code == 4) is not is_stash
    assert quiet.exists() is is_stash


@pytest.mark.parametrize("layout", ["chunks", "in place"])
def test_each_hunk_of_a_merge_is_chosen(workspace: Any, tmp_path: Path, layout: str) -> None:
    """One word for each conflict, in both layouts; what a person made of it is left alone."""
    folder, path, call = (
        workspace.store / "chunked",
        workspace.store / "chunked/amber.md",
        workspace,
    )
    words: tuple[object, ...] = ()
    if layout == "in place":
        folder = tmp_path / "vault"
        folder.mkdir()
        path, words = folder / "amber.md", ("--store", folder)
        call("init", "--in-place", folder)
    git = ["-C", str(folder)]
    if layout == "in place":
        workspace.git(*git, "init", "-q")
    for branch, data in (("base", BASE), ("theirs", THEIRS), ("ours", OURS)):
        workspace.git(*git, "checkout", "-q", "-b", branch, *(["base"] if data != BASE else []))
        path.write_bytes(data["amber.md"] or b"")
        workspace.git(*git, "add", "-f", "amber.md")
        workspace.git(*git, "commit", "-q", "-m", branch)
    with pytest.raises(Exception, match="merge"):
        workspace.git(*git, "merge", "theirs")
    before, staged = path.read_bytes(), workspace.git(*git, "ls-files", "--stage")
    assert before.count(b"<<<<<<<") == 2
    call(*words, "repair", "--hunks", "ours:amber.md", "--hunks", "both:amber.md", "--yes", code=2)
    call(*words, "repair", "--hunks", "mine:amber.md", "--yes", code=2)
    done = call.json(*words, "repair", "--hunks", "both,both,ours:amber.md", "--yes", code=1)
    assert "2 conflicts, and 3 choices" in str(done["plan"]["left"])
    done = call.json(*words, "repair", "--hunks", "both,keep:amber.md", "--yes", code=1)
    assert kinds(done["applied"]) == ["take-hunks"]
    assert path.read_bytes().count(b"<<<<<<<") == 1
    assert b"It is yellow.\nIt is golden.\n" in path.read_bytes()
    call(*words, "repair", "--theirs", "amber.md", "--yes", code=1)
    made = text("It is yellow.\nIt is golden.", "It is brittle.", "It is ancient.")
    assert path.read_bytes() == made
    done = call.json(*words, "repair", "--ours", "amber.md", "--yes", code=1)
    assert "no conflict markers any more: 'git add' it" in str(done["plan"]["left"])
    found = call.json(*words, "verify", "--level", "full", code=1)["findings"]
    assert {one["code"] for one in found} == {"conflict-markers", "git-operation"}
    assert path.read_bytes() == made
    call(*words, "undo", code=None)
    call(*words, "undo", code=None)
    assert path.read_bytes() == before
    assert workspace.git(*git, "ls-files", "--stage") == staged


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
