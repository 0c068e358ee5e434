"""Originals that changed, went, came or lie elsewhere, as commands tell it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from filestore.core.hashing import source_hash
from tests.system.conftest import files_below


def findings(workspace: Any, code: str, level: str = "fast") -> list[dict[str, Any]]:
    """The findings of one code."""
    done = workspace.json("verify", "--level", level, code=None)
    return [one for one in done["findings"] if one["code"] == code]


def stats(workspace: Any) -> dict[str, tuple[str, bytes]]:
    """What the catalog remembers of originals."""
    connection = sqlite3.connect(workspace.sidecar / "catalog.sqlite")
    rows = connection.execute("SELECT source, hash, stat FROM source_stats").fetchall()
    connection.close()
    return {source: (digest, packed) for source, digest, packed in rows}


def fill(workspace: Any) -> None:
    """A file and a folder as sources."""
    workspace.write("note.md", "# Note\n\nWords of the note.\n")
    workspace.write("docs/one.md", "# One\n\nWords of one.\n")
    workspace.write("docs/two.md", "# Two\n\nWords of two.\n")
    workspace("add", "note.md", "docs")


def test_a_changed_original_is_told_with_both_hashes(either: Any) -> None:
    """Status and verify say which resource is behind, what was expected and what is there."""
    fill(either)
    assert either.drift() == {}
    before = source_hash((either.folder / "note.md").read_bytes())
    path = either.write("note.md", "# Note\n\nOther words.\n")
    after = source_hash(path.read_bytes())
    assert either.drift() == {"source-modified": ["../note.md"]}
    for level in ("fast", "full"):
        (found,) = findings(either, "source-modified", level)
        assert (found["severity"], found["path"], found["safe"]) == ("W", "../note.md", False)
        assert "note.md: expected" in found["detail"]
        for digest in (before, after):
            assert digest.removeprefix("sha256:")[:12] in found["detail"]
    either("add", "note.md")
    either.assert_settled()


def test_a_touched_original_is_as_it_was(either: Any) -> None:
    """Only the stat moved: nothing is told, and after a sync nothing is read again."""
    fill(either)
    os.utime(either.folder / "note.md", ns=(1, 1))
    assert either.drift() == {}
    report = either.sync()
    assert (report["applied"], report["embedded"]) == ([], 0)
    assert set(stats(either)) == {"../note.md", "../docs/one.md", "../docs/two.md"}
    generation = either.json("status")["generation"]
    assert either.sync()["generation"] == generation
    assert either.json("status")["generation"] == generation


def test_what_was_read_once_is_told_by_its_stat(workspace: Any) -> None:
    """A sync remembers the hash of a changed original, so that status need not read it again."""
    fill(workspace)
    path = workspace.write("docs/one.md", "# One\n\nOther words.\n")
    assert [name for name in opened_by(workspace, "status") if name.endswith("one.md")]
    report = workspace.sync(code=1)
    assert [one["code"] for one in report["remaining"]] == ["source-modified"]
    assert stats(workspace)["../docs/one.md"][0] == source_hash(path.read_bytes())
    assert not [name for name in opened_by(workspace, "status") if name.endswith("one.md")]
    assert workspace.drift() == {"source-modified": ["../docs/one.md"]}


def opened_by(workspace: Any, *words: str) -> list[str]:
    """The files, folders left out, that a command opens, as Python's audit hooks see it."""
    program = (
        "import sys; names = []\n"
        "import os\n"
        "def hook(event, found):\n"
        "    if event == 'open' and not found[2] & os.O_DIRECTORY: names.append(str(found[0]))\n"
        "sys.addaudithook(hook)\n"
        f"from filestore.cli import main; main({list(words)!r})\n"
        "sys.stderr.write('\\n'.join(['opened:', *names]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=workspace.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.partition("opened:\n")[2].split("\n")


def test_a_missing_original(either: Any) -> None:
    """What it was is told, what was made from it stays, and bringing it back is all it takes."""
    fill(either)
    truth = either.truth()
    data = (either.folder / "note.md").read_bytes()
    (either.folder / "note.md").unlink()
    assert either.drift() == {"source-missing": ["../note.md"]}
    (found,) = findings(either, "source-missing")
    assert "note.md was made from it" in found["detail"]
    either.sync(code=1)
    assert either.truth() == truth
    either.write("note.md", data)
    assert either.drift() == {}


def test_a_missing_original_that_was_renamed_says_where_it_went(either: Any) -> None:
    """A new file of the same folder that has its content is named, in one finding for both."""
    fill(either)
    either.write("docs/two-too.md", "# Two\n\nWords of XXX.\n")
    (either.folder / "docs/two.md").rename(either.folder / "docs/second.md")
    (found,) = findings(either, "source-missing")
    assert found["path"] == "../docs/two.md"
    assert "its content is now in ../docs/second.md" in found["detail"]
    new = {one["path"] for one in findings(either, "source-untracked")}
    assert new == {"../docs/two-too.md"}
    assert either.drift() == {
        "source-missing": ["../docs/two.md"],
        "source-untracked": ["../docs/two-too.md"],
    }


def test_a_file_that_was_added_by_itself_is_found_under_its_new_name(either: Any) -> None:
    """The folder that it lay in is looked through, although that was never added."""
    fill(either)
    (either.folder / "note.md").rename(either.folder / "memo.md")
    (found,) = findings(either, "source-missing")
    assert "its content is now in ../memo.md" in found["detail"]
    assert either.drift() == {"source-missing": ["../note.md"]}


def test_a_folder_that_was_renamed_is_one_finding(either: Any) -> None:
    """Not one for each of its documents; where one of them is lost they are told one by one."""
    fill(either)
    (either.folder / "docs").rename(either.folder / "papers")
    (found,) = findings(either, "source-missing")
    assert found["path"] == "../docs"
    assert found["detail"] == "renamed: its 2 documents are now in ../papers"
    (either.folder / "papers/two.md").unlink()
    missing = {one["path"]: one["detail"] for one in findings(either, "source-missing")}
    assert missing.keys() == {"../docs/one.md", "../docs/two.md"}
    assert "is now in ../papers/one.md" in missing["../docs/one.md"]
    assert missing["../docs/two.md"].startswith("no file is there")


def test_a_renamed_original_is_told_without_reading(workspace: Any) -> None:
    """Its stat tells that it is the same file; a copy of it is read."""
    fill(workspace)
    (workspace.folder / "docs/two.md").rename(workspace.folder / "docs/second.md")
    assert not [name for name in opened_by(workspace, "status") if name.endswith("second.md")]
    shutil.copy(workspace.folder / "docs/second.md", workspace.folder / "docs/third.md")
    (workspace.folder / "docs/second.md").unlink()
    assert "third.md" in findings(workspace, "source-missing")[0]["detail"]


def test_new_files_of_a_folder_that_is_not_followed(workspace: Any) -> None:
    """They are notes of a verification, and status does not look for them."""
    fill(workspace)
    workspace.write("docs/four.md", "Words of four.\n")
    assert workspace.drift() == {"source-untracked": ["../docs/four.md"]}
    settings = workspace.store / "filestore.toml"
    before = settings.read_text()
    for text in ("follow = false\n", "follow = {docs = false}\n", 'follow = {"*" = false}\n'):
        settings.write_text(text + before)
        assert workspace.drift() == {}
        assert [one["severity"] for one in findings(workspace, "source-untracked")] == ["I"]
        assert workspace.json("verify")["clean"] is True
    settings.write_text('follow = {"*" = false, docs = true}\n' + before)
    assert workspace.drift() == {"source-untracked": ["../docs/four.md"]}
    settings.write_text("follow = 1\n" + before)
    assert "follow must be true or false or a table, found 1" in workspace("status", code=3).stderr


def test_ignore_rules_that_cannot_be_followed(workspace: Any) -> None:
    """Which files are new is not known then, and that is said."""
    fill(workspace)
    (workspace.folder / "docs/.filestoreignore").symlink_to("nowhere")
    assert workspace.drift() == {"unreadable": ["../docs"]}


def test_files_that_were_never_added(workspace: Any) -> None:
    """New documents of a folder source are told by status, and never opened."""
    fill(workspace)
    workspace.write("docs/.gitignore", "drafts/\n")
    workspace.write("docs/drafts/three.md", "Not yet.\n")
    workspace.write("docs/picture.png", b"\x89PNG")
    workspace.write("docs/four.md", "Words of four.\n")
    workspace.write("beside.md", "Not of this folder.\n")
    (found,) = findings(workspace, "source-untracked")
    assert (found["severity"], found["path"]) == ("W", "../docs/four.md")
    assert "docs" in found["detail"]
    assert workspace.json("verify", code=1)["clean"] is False
    assert workspace.drift() == {"source-untracked": ["../docs/four.md"]}
    report = workspace.sync(code=1)
    assert [one["code"] for one in report["remaining"]] == ["source-untracked"]
    assert not [name for name in opened_by(workspace, "verify") if "four.md" in name]


def test_copies_are_compared_and_so_are_their_originals(either: Any) -> None:
    """A copy is held against the record, and so is its original, as long as that is there."""
    elsewhere = either.folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "far.md").write_text("# Far\n\nWords from afar.\n")
    either("add", elsewhere / "far.md")
    assert either.json("verify", "--level", "full")["clean"] is True
    (either.store / "source" / "stray.md").write_text("Nobody's.\n")
    assert [one["path"] for one in findings(either, "source-untracked")] == ["source/stray.md"]
    (elsewhere / "far.md").write_text("# Far\n\nChanged words.\n")
    for level in ("fast", "full"):
        (found,) = findings(either, "source-modified", level)
        assert found["path"] == "source/far.md"
        assert str(elsewhere / "far.md") in found["detail"]
    (elsewhere / "far.md").unlink()
    for level in ("fast", "full"):
        assert findings(either, "source-modified", level) == []
    (either.store / "source" / "far.md").write_text("Changed here.\n")
    assert either.drift() == {"source-modified": ["source/far.md"]}


def test_a_rotten_original_that_is_no_file_any_more(workspace: Any) -> None:
    """A folder or a pipe in its place is not opened; a link inside the work tree is followed."""
    fill(workspace)
    note = workspace.folder / "note.md"
    data = note.read_bytes()
    note.unlink()
    os.mkfifo(note)
    assert workspace.drift() == {"source-missing": ["../note.md"]}
    note.unlink()
    workspace.write("annex/content.md", data)
    note.symlink_to("annex/content.md")
    assert workspace.drift() == {}


@pytest.fixture
def strange(workspace: Any, tmp_path: Path) -> tuple[Any, Path]:
    """A store with records of a stranger that name a file outside the work tree, three ways."""
    fill(workspace)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "diary.md").write_text("# Diary\n\nWords of the note.\n")
    (workspace.folder / "shelf").symlink_to(secret)
    record = (workspace.chunked / "note.md" / "meta.json").read_text()
    for number, source in enumerate(
        [str(secret / "diary.md"), "../../secret/diary.md", "../shelf/diary.md"]
    ):
        folder = workspace.chunked / f"strange{number}"
        folder.mkdir()
        (folder / "chunk1.md").write_text(f"Strange words {number}.\n")
        (folder / "meta.json").write_text(record.replace("../note.md", source))
    workspace.sync()
    return workspace, secret


def test_records_do_not_lead_out_of_the_work_tree(strange: tuple[Any, Path]) -> None:
    """What a stranger's record names elsewhere is no finding but said not to be checked."""
    workspace, secret = strange
    assert workspace.drift() == {}
    done = workspace.json("verify", "--level", "full")
    assert [one for one in done["findings"] if one["code"].startswith("source-")] == []
    assert any("3 originals outside the work tree" in words for words in done["not_checked"])
    (secret / "diary.md").unlink()
    assert workspace.drift() == {}
    assert "secret" not in "".join(stats(workspace))


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("words", [("status",), ("verify", "--level", "full"), ("sync",)])
def test_nothing_outside_is_opened_or_statted(strange: tuple[Any, Path], words: Any) -> None:
    """Not one system call about a file has the path of the stranger's choice in it."""
    workspace, secret = strange
    trace = workspace.folder.parent / "trace"
    traced = ["strace", "-f", "-e", "trace=%file", "-o", str(trace), sys.executable, "-m"]
    done = subprocess.run(
        [*traced, "filestore", *words], cwd=workspace.folder, capture_output=True, check=False
    )
    calls = trace.read_text()
    assert done.returncode == 0, done.stderr
    assert "docs/one.md" in calls
    assert "diary.md" not in calls.replace("shelf/diary.md", "")
    led = [line for line in calls.splitlines() if "shelf/diary.md" in line]
    assert not any("open" in line for line in led), led
    # The link itself lies in the work tree and may be read; where it leads is only compared.
    assert f'"{secret}/diary.md"' not in calls


def test_trust_lets_records_lead_out(strange: tuple[Any, Path]) -> None:
    """With the user's word they are compared like any other; revoking takes that back."""
    workspace, secret = strange
    done = workspace.json("trust")
    assert done["reaches"] == done["folders"] == [str(secret)]
    assert sorted(done["sources"]) == sorted(
        [str(secret / "diary.md"), "../../secret/diary.md", "../shelf/diary.md"]
    )
    assert len(workspace.drift()["source-modified"]) == 3
    assert "for 3 originals outside" in workspace("trust").stdout
    workspace("trust", "--revoke")
    assert workspace.drift() == {}


def test_a_change_that_waits_for_a_choice_says_so(workspace: Any) -> None:
    """As long as a hand edit and the new text overlap, the original counts as not taken in."""
    fill(workspace)
    path = workspace.chunked / workspace.chunks("note.md")[0]
    path.write_bytes(path.read_bytes().replace(b"Words of", b"Edited words of"))
    workspace.write("note.md", "# Note\n\nChanged words of the note.\n")
    assert "conflict" not in findings(workspace, "source-modified")[0]["detail"]
    workspace("add", "note.md", code=1)
    (conflict,) = findings(workspace, "ingest-conflict")
    assert workspace.store / conflict["path"] == path
    (found,) = findings(workspace, "source-modified")
    assert "a conflict with a hand edit waits for a choice" in found["detail"]
    assert {"ingest-conflict", "source-modified"} <= set(workspace.drift())
    path.unlink()
    workspace.sync(code=1)
    assert findings(workspace, "ingest-conflict") == []


def test_stats_of_originals_go_with_their_record(either: Any) -> None:
    """What no record names any more is not remembered either."""
    fill(either)
    either.sync()
    either("rm", "docs")
    assert set(stats(either)) == {"../note.md"}


def test_looking_at_originals_changes_nothing(either: Any) -> None:
    """Neither status nor verify writes to a source, a record or the catalog."""
    fill(either)
    either.write("note.md", "# Note\n\nOther words.\n")
    (either.folder / "docs/one.md").unlink()
    before = files_below(either.folder)
    for words in (("status",), ("verify",), ("verify", "--level", "full")):
        either(*words, code=1)
    after = files_below(either.folder)
    passing = ("-wal", "-shm")
    assert {k: v for k, v in after.items() if not k.endswith(passing)} == {
        k: v for k, v in before.items() if not k.endswith(passing)
    }
