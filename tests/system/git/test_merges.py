"""Two people, one document, real git: no chunk is lost, none is interleaved, nothing is guessed."""

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from filestore.server.operations import COMMANDS

BASE = ("amber", "basalt", "copper", "diorite")
OURS = ("emerald", "flint", "granite")
THEIRS = ("hematite", "iolite", "jasper")
WITHHELD = {"conflict-markers", "malformed-frontmatter", "record-invalid"}
WRITING = (["add", "manual.md"], ["rm", "manual.md"], ["undo"], ["redo"])
LOOKING = (
    ["sync", "--no-embed"],
    ["repair", "--write-files", "--yes"],
    ["status"],
    ["verify", "--level", "full"],
)
"""What writes no chunk file then, whether it finds something to do or not."""
Manual = Callable[[Iterable[str]], str]


def merge(workspace: Any, *words: str, code: int = 0) -> str:
    """Let git change the tree without asking; what it says."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "core.editor=true"]
    done = subprocess.run(
        ["git", *identity, *words],
        cwd=workspace.folder,
        env=os.environ | {"GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, (words, done)
    return done.stdout


def commit(workspace: Any, message: str = "change") -> None:
    """Commit everything."""
    merge(workspace, "add", "--all")
    merge(workspace, "commit", "--quiet", "--allow-empty", "-m", message)


def ingest(workspace: Any, text: str) -> None:
    """A person writes the document, adds it, and commits."""
    workspace.write("manual.md", text)
    workspace("add", "manual.md")
    commit(workspace)


def branches(workspace: Any, base: str, ours: str, theirs: str) -> None:
    """Two branches that ingested two versions of a document; `main`, ours, is checked out."""
    merge(workspace, "checkout", "--quiet", "-b", "main")
    ingest(workspace, base)
    merge(workspace, "checkout", "--quiet", "-b", "theirs")
    ingest(workspace, theirs)
    merge(workspace, "checkout", "--quiet", "main")
    workspace.sync()
    ingest(workspace, ours)


def topics(text: str) -> list[str]:
    """The topics of a text in reading order, each once for every section on it."""
    known = (*BASE, *OURS, *THEIRS)
    heads = [line.split()[-1] for line in text.splitlines() if line.startswith("## About ")]
    assert set(heads) <= set(known)
    return heads


def reconstructed(workspace: Any) -> str:
    """The text of the document from its chunk files."""
    target = workspace.folder / "out.md"
    workspace("reconstruct", "manual.md", "-o", target)
    text: str = target.read_text()
    target.unlink()
    return text


def unbroken(order: list[str], *runs: tuple[str, ...]) -> None:
    """Every run stands in the order in one piece."""
    for run in runs:
        at = order.index(run[0])
        assert order[at : at + len(run)] == list(run), order


def resolve_record(workspace: Any) -> None:
    """A person takes one side of the document's record, and of the document."""
    for path in ("file_index/chunked/manual.md/meta.json", "manual.md"):
        merge(workspace, "checkout", "--ours", "--", path)


def assert_nothing_writes_truth(workspace: Any) -> None:
    """While git is in the middle of it, what would write chunk files is refused, all else works."""
    before = workspace.committed()
    for words in (words for words in WRITING if words[0] in COMMANDS):
        done = workspace(*words, code=4)
        assert "files are not changed until it ends" in done.stderr, words
    for words in (words for words in LOOKING if words[0] in COMMANDS):
        workspace(*words, code=None)
    assert workspace.committed() == before


@pytest.fixture
def text(manual: Manual) -> Callable[..., str]:
    """Writes a document from topics."""
    return lambda *names: manual(names)


def test_the_same_version_on_both_branches(workspace: Any, text: Callable[..., str]) -> None:
    """Two people who ingest the same version have the same files: nothing to merge."""
    new = text("amber", *OURS, "basalt", "copper", "diorite")
    branches(workspace, text(*BASE), new, new)
    merge(workspace, "merge", "theirs")
    assert workspace.sync()["embedded"] == 0
    workspace.assert_settled()
    assert reconstructed(workspace) == new


def test_changes_at_different_places(workspace: Any, text: Callable[..., str]) -> None:
    """Changes at different places merge by themselves; only the record needs a person."""
    base, theirs = text(*BASE), text(*BASE, "jasper")
    ours = text("emerald", *BASE).replace("step 5.", "step 5, as we say.")
    branches(workspace, base, ours, theirs)
    merge(workspace, "merge", "theirs", code=1)
    unmerged = set(merge(workspace, "diff", "--name-only", "--diff-filter=U").split())
    assert unmerged <= {"file_index/chunked/manual.md/meta.json", "manual.md"}
    report = workspace.sync("--no-embed", code=1)
    assert {found["code"] for found in report["remaining"]} & WITHHELD
    assert_nothing_writes_truth(workspace)
    resolve_record(workspace)
    workspace.write("manual.md", ours + theirs.removeprefix(base))
    commit(workspace)
    assert reconstructed(workspace) == ours + theirs.removeprefix(base)
    report = workspace.sync(code=None)
    assert {found["code"] for found in report["remaining"]} <= {"source-modified"}
    before = workspace.truth()
    workspace("add", "manual.md")
    workspace.assert_settled()
    changed = {path for path, data in workspace.truth().items() if before.get(path) != data}
    assert changed == {"manual.md/meta.json"}


def test_insertions_at_the_same_place(either: Any, text: Callable[..., str]) -> None:
    """Two runs inserted at one place are both kept, each in one piece."""
    ours, theirs = (text("amber", *run, "basalt", "copper", "diorite") for run in (OURS, THEIRS))
    branches(either, text(*BASE), ours, theirs)
    merge(either, "merge", "theirs", code=1)
    unmerged = merge(either, "diff", "--name-only", "--diff-filter=U").split()
    assert [path for path in unmerged if "chunked" in path and path.endswith(".md")] == []
    for path in unmerged:
        merge(either, "checkout", "--ours", "--", path)
    commit(either)
    assert either.sync()["embedded"] == 0
    either.assert_settled()
    order = topics(reconstructed(either))
    assert sorted(order) == sorted((*BASE, *OURS, *THEIRS))
    assert [topic for topic in order if topic in BASE] == list(BASE)
    unbroken(order, OURS, THEIRS)
    either.write("manual.md", text(*order))
    either("add", "manual.md")
    either.assert_settled()
    assert topics(reconstructed(either)) == order


@pytest.mark.parametrize("count", [(1, 1), (3, 2), (40, 30)])
def test_appended_at_the_end(
    workspace: Any, text: Callable[..., str], count: tuple[int, int]
) -> None:
    """What both append to the same document stays in two runs, short or long."""
    runs = [
        tuple(f"{name}{number}" for number in range(size))
        for name, size in zip(("ours", "theirs"), count, strict=True)
    ]
    ours, theirs = (text("amber", *run) for run in runs)
    branches(workspace, text("amber"), ours, theirs)
    merge(workspace, "merge", "theirs", code=1)
    resolve_record(workspace)
    commit(workspace)
    assert workspace.sync()["embedded"] == 0
    found = reconstructed(workspace)
    order = [line.split()[-1] for line in found.splitlines() if line.startswith("## ")]
    assert sorted(order) == sorted(("amber", *runs[0], *runs[1]))
    unbroken(order, *runs)


def conflicted(workspace: Any, text: Callable[..., str]) -> Path:
    """Both edit the same line of the same chunk by hand; the conflict is in the tree."""
    merge(workspace, "checkout", "--quiet", "-b", "main")
    ingest(workspace, text(*BASE))
    path: Path = workspace.chunked / workspace.chunks("manual.md")[1]
    for branch, word in (("theirs", "hematite"), ("main", "emerald")):
        if branch == "theirs":
            merge(workspace, "checkout", "--quiet", "-b", "theirs")
        else:
            merge(workspace, "checkout", "--quiet", "main")
        path.write_text(path.read_text().replace("step 3.", f"step 3, with {word}."))
        workspace.sync()
        commit(workspace)
    merge(workspace, "merge", "theirs", code=1)
    return path


def test_changes_of_the_same_chunk(workspace: Any, text: Callable[..., str]) -> None:
    """A conflicted chunk is left out and never written; resolved, all is as if it never was."""
    path = conflicted(workspace, text)
    name = f"chunked/{path.relative_to(workspace.chunked)}"
    assert workspace.drift()["conflict-markers"] == [name]
    left = workspace.sync(code=1)["remaining"]
    assert [found["path"] for found in left if found["severity"] != "I"] == [name]
    assert workspace.found("emerald") == []
    assert workspace.found("hematite") == []
    assert name.removeprefix("chunked/") not in workspace.found("basalt")
    assert workspace.found("amber") != []
    assert_nothing_writes_truth(workspace)
    marks = (b"<<<<<<<", b"=======", b">>>>>>>")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if not line.startswith(marks)))
    commit(workspace)
    assert workspace.sync()["embedded"] == 1
    workspace.assert_settled()
    assert workspace.found("emerald") == workspace.found("hematite") == [name[8:]]


def test_an_aborted_merge_costs_nothing(workspace: Any, text: Callable[..., str]) -> None:
    """The vectors of a conflicted chunk are kept: taken back, it is embedded by nobody."""
    path = conflicted(workspace, text)
    workspace.sync(code=1)
    merge(workspace, "merge", "--abort")
    assert workspace.sync()["embedded"] == 0
    workspace.assert_settled()
    assert workspace.found("emerald") == [path.relative_to(workspace.chunked).as_posix()]


def test_a_chunk_regenerated_on_both_sides(workspace: Any, text: Callable[..., str]) -> None:
    """A section that both changed in the document is one conflict; no other chunk is touched."""
    new = [text(*BASE).replace("about copper says", f"of {word} says") for word in ("us", "them")]
    branches(workspace, text(*BASE), *new)
    merge(workspace, "merge", "theirs", code=1)
    report = workspace.sync(code=1)
    withheld = {found["path"] for found in report["remaining"] if found["code"] in WITHHELD}
    conflicts = merge(workspace, "diff", "--name-only", "--diff-filter=U").split()
    assert {path.removeprefix("file_index/") for path in conflicts} - {"manual.md"} == withheld
    assert_nothing_writes_truth(workspace)
    merge(workspace, "checkout", "--theirs", "--", ".")
    commit(workspace)
    assert workspace.sync()["embedded"] == 0
    workspace("add", "manual.md")
    workspace.assert_settled()
    assert reconstructed(workspace) == new[1]


def test_the_rest_of_git_embeds_nothing(workspace: Any, text: Callable[..., str]) -> None:
    """Rebase, cherry-pick, stash and checkout there and back: what was embedded is known."""
    ours = text(*BASE, "jasper")
    branches(workspace, text(*BASE), text(*BASE), ours)
    workspace.write("other.md", text("granite"))
    workspace("add", "other.md")
    commit(workspace, "other")
    for words in (
        ["checkout", "--quiet", "theirs"],
        ["rebase", "--quiet", "main"],
        ["checkout", "--quiet", "main"],
        ["cherry-pick", "theirs"],
        ["reset", "--quiet", "--hard", "HEAD~1"],
        ["checkout", "--quiet", "theirs~1"],
        ["checkout", "--quiet", "main"],
    ):
        merge(workspace, *words)
        assert workspace.sync()["embedded"] == 0, words
    path = workspace.chunked / workspace.chunks("manual.md")[0]
    path.write_text(path.read_text() + "Flint.\n")
    assert workspace.sync()["embedded"] == 1
    for words in (["stash"], ["stash", "pop"]):
        merge(workspace, *words)
        assert workspace.sync()["embedded"] == 0, words
    assert workspace.found("flint") == [path.relative_to(workspace.chunked).as_posix()]
