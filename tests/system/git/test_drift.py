"""What git does to chunk files, and what people do by renaming them, as commands tell it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.system.conftest import git_free


def told(workspace: Any, code: str, *words: str) -> dict[str, str]:
    """Path to detail of the findings of one code."""
    done = workspace.json("verify", *words, code=None)
    return {one["path"]: one["detail"] for one in done["findings"] if one["code"] == code}


def codes(found: list[dict[str, Any]]) -> list[str]:
    """Their codes, in order of names."""
    return sorted(one["code"] for one in found)


def commit(workspace: Any, message: str) -> None:
    """Commit everything in the work tree."""
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", message)


def git_fails(workspace: Any, *words: str) -> None:
    """Run a git command that stops over a conflict."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", *identity, *words],
        cwd=workspace.folder,
        env=git_free() | {"GIT_EDITOR": "true"},
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0


def own(workspace: Any, text: str, name: str = "own.md") -> Path:
    """Write a chunk file of a person's own."""
    path: Path = workspace.chunked / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def branches(
    workspace: Any, base: str, ours: str | None, theirs: str, name: str = "own.md"
) -> Path:
    """One file on two branches; `main` is checked out and indexed. None deletes it there."""
    path = own(workspace, base, name)
    own(workspace, "A text beside it.\n", "beside.md")
    workspace.git("checkout", "-q", "-B", "main")
    commit(workspace, "base")
    workspace.git("checkout", "-q", "-b", "other")
    own(workspace, theirs, name)
    commit(workspace, "theirs")
    workspace.git("checkout", "-q", "main")
    path.unlink()
    if ours is not None:
        own(workspace, ours, name)
    commit(workspace, "ours")
    workspace.sync()
    return path


def test_a_file_in_a_conflict_without_marks_is_withheld(workspace: Any) -> None:
    """One side deleted what the other edited: until that is decided it is in no answer."""
    path = branches(workspace, "Words of amber.\n", None, "Words of amber and basalt.\n")
    git_fails(workspace, "merge", "other")
    assert path.exists()
    assert workspace.drift() == {
        "conflict-markers": ["chunked/own.md"],
        "git-operation": ["../.git"],
    }
    assert "unmerged" in told(workspace, "conflict-markers")["chunked/own.md"]
    report = workspace.sync(code=1)
    assert "conflict-markers" in codes(report["remaining"])
    answer = workspace.json("search", "anything", "--mode", "keyword", code=None)
    note = "1 file is not searched while a merge conflict is open: 'filestore status' names them"
    assert note in answer["notes"]
    assert workspace.found("basalt") == []
    workspace.git("add", "file_index/chunked/own.md")
    workspace.git("commit", "-qm", "both")
    assert workspace.drift() == {"modified": ["chunked/own.md"]}
    assert codes(workspace.sync()["applied"]) == ["modified"]
    assert workspace.found("basalt") == ["own.md"]
    workspace.assert_settled()


def test_a_file_that_git_left_as_it_was_is_withheld_all_the_same(workspace: Any) -> None:
    """Its stat did not move when it came into the conflict, nor when it was resolved."""
    workspace.write(".gitattributes", "*.md -merge\n")
    path = branches(workspace, "Amber.\n", "Amber and basalt.\n", "Amber and cobalt.\n")
    before = path.stat()
    git_fails(workspace, "merge", "other")
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert workspace.drift()["conflict-markers"] == ["chunked/own.md"]
    workspace.sync(code=1)
    assert workspace.found("basalt") == []
    again = workspace.sync(code=1)
    assert (again["applied"], again["embedded"]) == ([], 0)
    assert workspace.drift()["conflict-markers"] == ["chunked/own.md"]
    workspace.git("checkout", "--ours", "file_index/chunked/own.md")
    commit(workspace, "ours")
    report = workspace.sync()
    assert (codes(report["applied"]), report["embedded"]) == (["modified"], 0)
    assert workspace.found("basalt") == ["own.md"]
    workspace.assert_settled()


@pytest.mark.parametrize("level", ["fast", "full"])
def test_unmerged_without_an_operation_is_found(workspace: Any, level: str) -> None:
    """A stash that does not apply is no operation; git keeps what it made of the files."""
    workspace.write(".gitattributes", "*.md -merge\n")
    path = own(workspace, "Amber.\n")
    commit(workspace, "base")
    path.write_text("Amber and basalt.\n")
    workspace.git("stash", "-q")
    path.write_text("Amber and cobalt.\n")
    commit(workspace, "ours")
    workspace.sync()
    git_fails(workspace, "stash", "pop")
    assert told(workspace, "git-operation") == {}
    assert set(told(workspace, "conflict-markers", "--level", level)) == {"chunked/own.md"}


@pytest.mark.parametrize(
    ("name", "base", "ours", "theirs"),
    [
        (
            "own.md",
            "---\ntag: a\n---\nText.\n",
            "---\ntag: b\n---\nText.\n",
            "---\ntag: c\n---\nText.\n",
        ),
        ("own.md", "Text.\n", "---\ntag: b\n---\nText.\n", "---\ntag: c\n---\nText.\n"),
        ("r/meta.json", '{"a": 1}\n', '{"a": 2}\n', '{"a": 3}\n'),
    ],
)
def test_marks_outside_the_body_are_a_conflict_with_its_lines(
    workspace: Any, name: str, base: str, ours: str, theirs: str
) -> None:
    """Frontmatter and records that git could not merge are told as that, and by their lines."""
    path = own(workspace, base, name)
    workspace.git("checkout", "-q", "-B", "main")
    commit(workspace, "base")
    workspace.git("checkout", "-q", "-b", "other")
    own(workspace, theirs, name)
    commit(workspace, "theirs")
    workspace.git("checkout", "-q", "main")
    own(workspace, ours, name)
    commit(workspace, "ours")
    git_fails(workspace, "merge", "other")
    lines = path.read_text().splitlines()
    marks = [n for n, line in enumerate(lines, 1) if line[:7] in ("<" * 7, "=" * 7, ">" * 7)]
    first, middle, last = marks
    detail = told(workspace, "conflict-markers")[f"chunked/{name}"]
    assert f"lines {first}, {middle} and {last}" in detail
    assert ("either side will do: 'filestore update'" in detail) == name.endswith(".json")


@pytest.mark.parametrize("word", ["merge", "rebase", "cherry-pick", "revert", "bisect"])
def test_what_git_is_in_the_middle_of_is_named(workspace: Any, word: str) -> None:
    """Status and verify say so as long as it lasts, and it does not spoil clean."""
    branches(workspace, "Amber.\n", "Amber and basalt.\n", "Amber and cobalt.\n")
    if word == "bisect":
        workspace.git("bisect", "start")
    elif word == "revert":
        own(workspace, "Amber, basalt and dolomite.\n")
        commit(workspace, "more")
        git_fails(workspace, "revert", "HEAD~1")
    else:
        git_fails(workspace, word, "other")
    assert told(workspace, "git-operation") == {"../.git": f"a git {word} is under way"}
    assert workspace.drift()["git-operation"] == ["../.git"]
    workspace.git(*(["bisect", "reset"] if word == "bisect" else [word, "--abort"]))
    assert told(workspace, "git-operation") == {}
    workspace.sync()
    assert workspace.json("verify")["clean"] is True


# Renames


def filled(workspace: Any) -> list[str]:
    """A document with a chunk for each topic; their paths."""
    sections = [
        f"## About {topic}\n\n" + "\n".join(f"Line {n} is about {topic}." for n in range(40))
        for topic in ("amber", "basalt", "cobalt")
    ]
    workspace.write("manual.md", "# Manual\n\n" + "\n\n".join(sections) + "\n")
    workspace("add", "manual.md")
    paths: list[str] = workspace.chunks("manual.md")
    assert len(paths) > 2
    return paths


def test_a_file_that_was_moved_and_edited_is_followed(either: Any) -> None:
    """It is told as both, before and after the sync, and only the new text is embedded."""
    first = filled(either)[0]
    path = either.chunked / first
    new = either.chunked / "elsewhere" / "renamed.md"
    new.parent.mkdir()
    path.rename(new)
    new.write_bytes(new.read_bytes() + b"And an edit about dolomite.\n")
    shown = ["chunked/elsewhere/renamed.md"]
    assert either.drift() == {"moved": shown, "modified": shown}
    done = either.json("verify", code=1)
    (moved,) = [one for one in done["findings"] if one["code"] == "moved"]
    assert f"chunked/{first}" in moved["detail"]
    report = either.sync()
    assert codes(report["applied"]) == ["modified", "moved"]
    assert report["embedded"] == 1
    assert either.found("dolomite") == ["elsewhere/renamed.md"]
    assert first not in either.found("amber")
    either.assert_settled()


def test_a_file_that_was_moved_and_tagged_is_followed_for_nothing(either: Any) -> None:
    """Frontmatter alone costs no embedding, moved or not."""
    path = either.chunked / filled(either)[0]
    new = path.with_name("zz-renamed.md")
    path.rename(new)
    new.write_bytes(new.read_bytes().replace(b"---\n", b"---\ntags: green\n", 1))
    report = either.sync()
    assert codes(report["applied"]) == ["metadata-modified", "moved"]
    assert report["embedded"] == 0
    assert either.found("amber", "--where", "tags=green") == [
        new.relative_to(either.chunked).as_posix()
    ]
    either.assert_settled()


def test_a_doubtful_move_with_an_edit_is_none(workspace: Any) -> None:
    """Two files of one origin that are both new are two new files."""
    path = workspace.chunked / filled(workspace)[0]
    data = path.read_bytes()
    path.unlink()
    for name in ("one.md", "two.md"):
        path.with_name(name).write_bytes(data + name.encode() + b"\n")
    found = workspace.drift()
    assert set(found) == {"missing", "untracked"}
    assert len(found["untracked"]) == 2


def test_a_hand_edit_stays_mergeable_after_a_move(workspace: Any) -> None:
    """The text that a moved and edited file was made from is kept, as for any other edit."""
    path = workspace.chunked / filled(workspace)[0]
    new = path.with_name("renamed.md")
    path.rename(new)
    new.write_bytes(new.read_bytes() + b"An edit.\n")
    workspace.sync()
    assert set(told(workspace, "hand-edited")) == {f"chunked/{new.relative_to(workspace.chunked)}"}


def test_a_name_that_changes_only_its_case(either: Any) -> None:
    """A file and a folder are followed, nothing is embedded, and search has the new name."""
    own(either, "Words of amber.\n", "folder/note.md")
    own(either, "Words of basalt.\n", "plain.md")
    either.sync()
    (either.chunked / "plain.md").rename(either.chunked / "Plain.md")
    (either.chunked / "folder").rename(either.chunked / "Folder")
    report = either.sync()
    assert (codes(report["applied"]), report["embedded"]) == (["moved", "moved"], 0)
    assert either.found("amber") == ["Folder/note.md"]
    assert either.found("basalt") == ["Plain.md"]
    either.assert_settled()


# Links


def test_a_link_dangles_until_its_target_is_back(either: Any) -> None:
    """Whether the target was never there, went away, or moved and came home again."""
    own(either, "See [later](later.md) and [there](sub/there.md).\n")
    target = own(either, "A text.\n", "sub/there.md")
    report = either.sync(code=1)
    assert codes(report["remaining"]) == ["link-dangling"]
    assert "chunked/later.md" in told(either, "link-dangling")["chunked/own.md"]
    own(either, "Now it is.\n", "later.md")
    either.sync()
    either.assert_settled()
    target.rename(either.chunked / "moved.md")
    either.sync(code=1)
    detail = told(either, "link-dangling")["chunked/own.md"]
    assert detail.endswith("it moved to chunked/moved.md")
    (either.chunked / "moved.md").rename(target)
    either.sync()
    either.assert_settled()


def test_only_a_persons_own_links_count(workspace: Any) -> None:
    """What the source said is not held against the tree of chunk files; an edit's link is."""
    workspace.write("note.md", "# Note\n\nSee [the other](other.md).\n")
    workspace("add", "note.md")
    assert workspace.json("verify")["clean"] is True
    path = workspace.chunked / workspace.chunks("note.md")[0]
    path.write_bytes(path.read_bytes() + b"And [mine](mine.md).\n")
    workspace.sync(code=1)
    assert told(workspace, "link-dangling") == {
        "chunked/note.md/chunk1.md": "links to chunked/note.md/mine.md, which is not there"
    }


def test_links_of_a_moved_file_are_read_from_where_it_is(workspace: Any) -> None:
    """A relative link goes with its folder, and dangles where the file alone moved."""
    own(workspace, "See [b](b.md).\n", "old/a.md")
    own(workspace, "A text.\n", "old/b.md")
    workspace.sync()
    (workspace.chunked / "old").rename(workspace.chunked / "new")
    workspace.sync()
    workspace.assert_settled()
    (workspace.chunked / "new/a.md").rename(workspace.chunked / "a.md")
    workspace.sync(code=1)
    assert told(workspace, "link-dangling") == {
        "chunked/a.md": "links to chunked/b.md, which is not there"
    }


# Settings


def test_another_metric_writes_the_index_again(either: Any) -> None:
    """What is derived is made again; no text is embedded for it."""
    own(either, "Words of amber.\n")
    either.sync()
    either.in_catalog("UPDATE meta SET value = 'dot' WHERE key = 'metric'")
    assert either.drift() == {"metric-mismatch": ["filestore.toml"]}
    before = {path.name for path in either.sidecar.glob("vectors-*.faiss")}
    report = either.sync()
    assert (codes(report["applied"]), report["embedded"]) == (["metric-mismatch"], 0)
    assert {path.name for path in either.sidecar.glob("vectors-*.faiss")} != before
    either.assert_settled()


def test_both_sides_of_a_record_lead_to_the_same_store(workspace: Any) -> None:
    """Two people add documents to one folder: whichever record stays, nothing doubles or goes."""
    workspace.write("notes/one.md", "# One\n\nAmber.\n")
    workspace("add", "notes")
    workspace.git("checkout", "-q", "-B", "main")
    commit(workspace, "base")
    for branch, name in (("other", "theirs"), ("main", "ours")):
        workspace.git("checkout", "-q", *([] if branch == "main" else ["-b"]), branch)
        workspace("sync", code=None)
        workspace.write(f"notes/{name}.md", f"# {name}\n\nWords of {name}.\n")
        workspace("update")
        commit(workspace, name)
    for side in ("--ours", "--theirs"):
        git_fails(workspace, "merge", "other")
        workspace.git("checkout", side, "file_index")
        commit(workspace, "merged")
        workspace("update")
        workspace.assert_settled()
        assert len(workspace.chunks("notes")) == 3
        assert len(workspace.found("words")) == 2
        workspace.git("reset", "-q", "--hard", "HEAD~1")
