"""`filestore undo` and `redo`: a change of files goes back whole, byte for byte, or not at all.

`interrupted_changes.py` carries out what is killed; here every few of its points run, and all of
them with `python tests/system/interrupted_changes.py --operation … --how …`.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.history import write
from filestore.store import Store

PROGRAM = Path(__file__).parents[1] / "interrupted_changes.py"


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every truth file with its permissions, and every folder."""
    return {
        os.fsdecode(os.fsencode(path.relative_to(root))): (
            b"" if path.is_dir() else path.read_bytes(),
            path.stat().st_mode,
        )
        for top in ("chunked", "source")
        for path in (root / top).rglob("*")
    }


def test_an_add_is_undone_and_redone(either: Any) -> None:
    """Chunks, record, copy and hits of a new source go, and come back byte for byte."""
    either.write("keep.md", "# Keep\n\nStays here.\n")
    either("add", "keep.md")
    before = either.committed()
    outside = either.folder.parent / "outside.md"
    outside.write_text("# New\n\nComes from elsewhere.\n")
    either("add", outside)
    after = either.committed()
    assert after.keys() > before.keys()
    assert any(path.startswith("source/") for path in after)

    done = either.json("undo")
    assert set(done["undone"]) == after.keys() - before.keys()
    assert either.committed() == before
    assert either.found("elsewhere") == []
    either.assert_settled()

    again = either.json("redo")
    assert (again["redone"], again["id"]) == (done["undone"], done["id"])
    assert again["embedded"] == 0
    assert either.committed() == after
    assert len(either.found("elsewhere")) == 1
    either.assert_settled()


def test_an_update_is_undone(workspace: Any, manual: Any) -> None:
    """After a source changed, undo brings back every chunk, deleted ones too, and the record."""
    workspace.write("manual.md", manual(["apples", "pears", "plums"]))
    workspace("add", "manual.md")
    before = workspace.committed()
    workspace.write("manual.md", manual(["apples", "quinces"]))
    workspace("add", "manual.md")
    after = workspace.committed()
    assert before != after
    workspace("undo")
    assert workspace.committed() == before
    assert workspace.found("plums")
    assert workspace.found("quinces") == []
    workspace("redo")
    assert workspace.committed() == after


def test_a_removal_is_undone(either: Any) -> None:
    """What `rm` took comes back with hand edits and permissions, and is found again for free."""
    either.write("gone.md", "# Gone\n\nSome words.\n")
    either("add", "gone.md")
    (chunk,) = either.chunks("gone.md")
    path = either.chunked / chunk
    path.write_bytes(path.read_bytes() + b"And mine.\n")
    path.chmod(0o600)
    either("sync")
    before = snapshot(either.store)
    either("rm", "gone.md")
    done = either.json("undo")
    assert done["what"] == "rm gone.md"
    assert done["embedded"] == 0
    assert snapshot(either.store) == before
    assert either.found("mine") == [chunk]
    assert either.json("status")["clean"] is True
    assert either.sync()["applied"] == []


def test_undo_goes_back_step_by_step(workspace: Any) -> None:
    """Each undo takes the newest change that is left, each redo what was undone last."""
    states = [workspace.committed()]
    for name in ("a.md", "b.md", "c.md"):
        workspace.write(name, f"The words of {name}.\n")
        workspace("add", name)
        states.append(workspace.committed())
    for state in reversed(states[:-1]):
        workspace("undo")
        assert workspace.committed() == state
    assert "nothing to undo" in workspace("undo", code=1).stdout
    assert workspace.json("undo", code=1)["undone"] == []
    for state in states[1:]:
        workspace("redo")
        assert workspace.committed() == state
    assert "nothing to redo" in workspace("redo", code=1).stdout
    assert workspace.json("redo", code=1)["redone"] == []
    workspace.assert_settled()


def test_the_list_says_what_can_be_undone(workspace: Any) -> None:
    """Each change is listed with command, time, size and state, newest first, on narrow lines."""
    assert "nothing to undo" in workspace("undo", "--list", code=1).stdout
    assert workspace.json("undo", "--list", code=1) == {"batches": []}
    workspace.write("a.md", "Some words.\n")
    workspace("add", "a.md")
    workspace("rm", "a.md")
    workspace("undo")
    newest, oldest = workspace.json("undo", "--list")["batches"]
    assert (newest["what"], newest["state"]) == ("rm a.md", "undone")
    assert (oldest["what"], oldest["state"]) == ("add a.md", "done")
    assert newest["id"] > oldest["id"]
    assert newest["files"] == oldest["files"] == 2
    assert newest["bytes"] > oldest["bytes"] > 0
    assert newest["when"].endswith("Z")
    words = workspace("undo", "--list").stdout
    assert all(len(line) <= 80 for line in words.splitlines())
    assert words.index("rm a.md") < words.index("add a.md")
    assert newest["id"] in words


def test_files_edited_since_are_refused(either: Any) -> None:
    """Where one file was edited since, no file is touched, and each edited one is named."""
    either.write("a.md", "Some words.\n")
    either("add", "a.md")
    (chunk,) = either.chunks("a.md")
    (either.chunked / chunk).write_bytes(b"My own words.\n")
    before = snapshot(either.store)
    done = either("undo", code=4)
    assert f"chunked/{chunk}" in done.stderr
    assert f"rm chunked/{chunk}" in done.stderr
    assert snapshot(either.store) == before
    answer = either.json("undo", code=4)
    assert f"chunked/{chunk}" in answer["error"]
    assert answer["remedy"]


def test_the_way_out_of_a_refusal_works(either: Any) -> None:
    """What is told about an edited file brings back what it held, and then undo goes through."""
    source = either.write("a.md", "Some words.\n")
    either("add", "a.md")
    before = snapshot(either.store)
    source.write_text("Some other words.\n")
    either("add", "a.md")
    (chunk,) = either.chunks("a.md")
    (either.chunked / chunk).write_bytes(b"My own words.\n")
    remedy = either.json("undo", code=4)["remedy"]
    put_back, again = remedy.rpartition(": ")[2].split(" && ")
    subprocess.run(put_back, shell=True, cwd=either.store, check=True)
    either(*again.split()[1:])
    assert snapshot(either.store) == before


def test_what_one_command_added_is_one_undo(either: Any) -> None:
    """`add` of several sources is listed, undone and redone as one."""
    for name in ("a.md", "b.md", "c.md"):
        either.write(name, f"The words of {name}.\n")
    either("add", "a.md", "b.md", "c.md")
    after = either.truth()
    (batch,) = either.json("undo", "--list")["batches"]
    assert (batch["what"], batch["files"]) == ("add a.md, add b.md, add c.md", 6)
    assert len(either.json("undo")["undone"]) == 6
    assert either.truth() == {}
    (batch,) = either.json("undo", "--list")["batches"]
    assert batch["state"] == "undone"
    either("redo", batch["id"])
    assert either.truth() == after
    either.assert_settled()


def test_a_repair_of_several_kinds_is_one_undo(workspace: Any) -> None:
    """What it brought back, relinked and re-ingested goes back together; a sync makes no change."""
    for name in ("lost.md", "kept.md", "new.md"):
        workspace.write(name, f"The words of {name}.\n")
    workspace("add", "lost.md", "kept.md", "new.md")
    (workspace.chunked / "own.md").write_bytes(b"See [the other](there.md).\n")
    (workspace.chunked / "there.md").write_bytes(b"A text to link to.\n")
    workspace.sync()
    (workspace.chunked / "there.md").rename(workspace.chunked / "elsewhere.md")
    workspace.sync(code=1)
    assert len(workspace.json("undo", "--list")["batches"]) == 1
    (workspace.chunked / workspace.chunks("lost.md")[0]).unlink()
    workspace.write("new.md", "Other words.\n")
    before = snapshot(workspace.store)
    done = workspace.json("repair", "--write-files", "--yes", code=None)
    assert {step["kind"] for step in done["applied"]} == {"restore", "relink", "reingest"}
    after = snapshot(workspace.store)
    newest, _ = workspace.json("undo", "--list")["batches"]
    assert done["undo"] == [newest["id"]]
    workspace("undo")
    assert snapshot(workspace.store) == before
    workspace("redo")
    assert snapshot(workspace.store) == after


def test_an_edit_in_one_file_keeps_all_of_a_command(workspace: Any) -> None:
    """Undo of several steps touches nothing where one file of one step was edited."""
    for name in ("a.md", "b.md"):
        workspace.write(name, f"The words of {name}.\n")
    workspace("add", "a.md", "b.md")
    (chunk,) = workspace.chunks("a.md")
    (workspace.chunked / chunk).write_bytes(b"My own words.\n")
    before = snapshot(workspace.store)
    workspace("undo", code=4)
    assert snapshot(workspace.store) == before


def test_a_change_that_broke_off_is_told(workspace: Any) -> None:
    """`verify` and `status` name what died half-way and the command for it, and nothing else."""
    workspace.write("a.md", "Some words.\n")
    workspace.write("b.md", "Other words.\n")
    workspace("add", "a.md", "b.md")
    (workspace.store / ".undo/000001/underway").touch()
    assert workspace.drift() == {}
    (chunk,) = workspace.chunks("a.md")
    (workspace.chunked / chunk).unlink()
    workspace.sync(code=None)
    (path,) = workspace.drift()["leftovers"]
    assert path == ".undo/000001"
    (found,) = [one for one in workspace.json("verify")["findings"] if one["code"] == "leftovers"]
    assert (found["severity"], found["path"]) == ("I", path)
    assert "'filestore undo 000001'" in found["detail"]
    assert workspace.json("repair", "--plan")["plan"]["steps"] == []
    workspace("undo", "000001")
    assert workspace.drift() == {}
    assert workspace.truth() == {}


def test_a_later_change_of_the_same_files_goes_first(workspace: Any) -> None:
    """An older change that a newer one builds on is refused with the newer one's name."""
    workspace.write("a.md", "Some words.\n")
    workspace("add", "a.md")
    workspace.write("a.md", "Other words.\n")
    workspace("add", "a.md")
    newer, older = (one["id"] for one in workspace.json("undo", "--list")["batches"])
    done = workspace("undo", older, code=4)
    assert f"filestore undo {newer}" in done.stderr
    workspace("undo", newer)
    workspace("undo", older)
    assert workspace.truth() == {}


def test_a_name_is_undone_out_of_order(workspace: Any) -> None:
    """A change that no later one touched is undone by its name, and once only."""
    for name in ("a.md", "b.md"):
        workspace.write(name, f"The words of {name}.\n")
        workspace("add", name)
    oldest = workspace.json("undo", "--list")["batches"][-1]["id"]
    workspace("undo", oldest)
    assert [item["resource"] for item in workspace.json("ls")["items"]] == ["b.md"]
    done = workspace("undo", oldest, code=4)
    assert f"filestore redo {oldest}" in done.stderr
    assert "--list" in workspace("undo", "000099", code=3).stderr
    assert "--list" in workspace("undo", "../a", code=3).stderr


def test_a_link_in_the_way_is_refused(workspace: Any) -> None:
    """A link that took a file's place is not followed, and what it leads to stays."""
    mine = workspace.write("mine.md", "Not the store's.\n")
    workspace.write("a.md", "Some words.\n")
    workspace("add", "a.md")
    (chunk,) = workspace.chunks("a.md")
    (workspace.chunked / chunk).unlink()
    (workspace.chunked / chunk).symlink_to(mine)
    workspace("undo", code=4)
    assert mine.read_text() == "Not the store's.\n"
    assert (workspace.chunked / chunk).is_symlink()


def test_damaged_originals_are_refused(workspace: Any) -> None:
    """Where what was kept rotted nothing is put back, and it is said."""
    workspace.write("a.md", "Some words.\n")
    workspace("add", "a.md")
    workspace("rm", "a.md")
    (batch,) = workspace.store.glob(".undo/*2")
    blob = batch / "0.before"
    blob.write_bytes(blob.read_bytes()[:-2] + b"!\n")
    done = workspace("undo", code=3)
    assert batch.name in done.stderr
    assert workspace.truth() == {}


def test_during_a_merge_nothing_is_put_back(workspace: Any) -> None:
    """As long as git decides what the files are to be, undo, redo and rm wait."""
    workspace.write("a.md", "Some words.\n")
    workspace("add", "a.md")
    before = snapshot(workspace.store)
    (workspace.folder / ".git/MERGE_HEAD").write_text("0" * 40 + "\n")
    for words in (["undo"], ["redo"], ["rm", "a.md"]):
        assert "merge" in workspace(*words, code=4).stderr
    assert snapshot(workspace.store) == before
    (workspace.folder / ".git/MERGE_HEAD").unlink()
    workspace("undo")
    assert workspace.truth() == {}


def test_undo_works_after_the_sidecar_is_gone(workspace: Any) -> None:
    """Originals do not hang on derived data."""
    workspace.write("a.md", "Some words.\n")
    workspace("add", "a.md")
    before = workspace.truth()
    workspace("rm", "a.md")
    shutil.rmtree(workspace.sidecar)
    workspace("undo")
    assert workspace.truth() == before
    workspace.sync(code=None)
    assert workspace.found("words")


PATHS = st.builds(
    "/".join,
    st.tuples(
        st.sampled_from(["chunked", "source"]),
        st.sampled_from(["x", "é", "x/y"]),
        st.binary(min_size=1, max_size=8)
        .filter(lambda name: not set(name) & {0, 10, 47} and name.strip(b"."))
        .map(lambda name: os.fsdecode(b"n" + name + b".md")),
    ),
)
CHANGES = st.dictionaries(PATHS, st.none() | st.binary(max_size=40), max_size=5)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """A store that all examples share, so that each starts from what the last one left."""
    configuration = str(tmp_path / "configuration")
    with Store.create(
        str(tmp_path / "store"), layout="tree", embedder="builtin", configuration=configuration
    ) as made:
        yield made


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES, modes=st.lists(st.sampled_from([0o600, 0o644, 0o664])), edit=st.booleans())
def test_any_change_goes_back_and_forth(store, changes, modes, edit):
    """Undo gives every byte, name and permission of before, redo every one of after."""
    root = Path(store.root)
    there = [path for path in sorted(root.glob("*/**/*")) if path.is_file()]
    there = [path for path in there if path.relative_to(root).parts[0] in ("chunked", "source")]
    for path, mode in zip(there, modes, strict=False):
        path.chmod(mode)
    ours = {os.fsdecode(os.fsencode(path.relative_to(root))): path.read_bytes() for path in there}
    if edit:
        changes = changes | {path: data + b"!" for path, data in list(ours.items())[:2]}
    before = snapshot(root)
    made = write.change(store.places, changes, before=ours, command="test")
    after = snapshot(root)
    if made is None:
        assert before == after
        return
    done = store.undo()
    assert done.identifier == made
    assert files(snapshot(root)) == files(before)
    assert store.redo().paths == done.paths
    assert snapshot(root) == after
    differing = {path for path in changes if files(before).get(path) != files(after).get(path)}
    assert set(done.paths) == differing


def files(state: dict[str, tuple[bytes, int]]) -> dict[str, tuple[bytes, int]]:
    """The files alone: a folder that somebody else left empty may go."""
    return {path: held for path, held in state.items() if held[1] & 0o170000 == 0o100000}


@pytest.mark.parametrize(
    ("operation", "how", "start", "every"),
    [
        ("change", "kill", 1, 4),
        ("change", "fail", 2, 7),
        ("change", "fail-on", 4, 7),
        ("change", "interrupt", 9, 7),
        ("undo", "kill", 6, 5),
        ("redo", "kill", 6, 6),
        ("undo-parted", "kill", 2, 9),
        ("redo-parted", "fail", 4, 11),
        ("sync-in-place", "kill", 1, 2),
        ("sync-in-place", "interrupt", 2, 2),
        ("sync-in-place", "fail-on", 1, 2),
    ],
)
def test_an_interruption_anywhere_loses_nothing(operation, how, start, every):
    """Killed or failing at a call: each file is whole, and calling it again sets all right."""
    command = [sys.executable, PROGRAM, "--operation", operation, "--how", how]
    command += ["--start", str(start), "--every", str(every)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert report["wrong"] == []
    assert report["points"] >= 3


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("nth", [1, 4, 8])
def test_a_failing_sync_is_told_and_not_asked_again(tmp_path, nth):
    """Where the disk fails to confirm a write the change is taken back, with the reason."""
    script = (
        "import sys\n"
        "from filestore.history import write as truth\n"
        "from filestore.config.layout import Places\n"
        "root = sys.argv[1]\n"
        "places = Places(root=root, sidecar=root + '/.sidecar')\n"
        "old = {'chunked/a.md': b'old', 'chunked/b.md': b'old'}\n"
        "new = {'chunked/a.md': b'new', 'chunked/b.md': None, 'chunked/c.md': b'new'}\n"
        "try:\n"
        "    truth.change(places, new, before=old, command='test')\n"
        "except OSError as error:\n"
        "    print(error.message)\n"
    )
    chunked = tmp_path / "chunked"
    chunked.mkdir()
    for name in ("a.md", "b.md"):
        (chunked / name).write_bytes(b"old")
    inject = f"inject=fsync:error=EIO:when={nth}"
    command = [
        "strace",
        "-f",
        "-qq",
        "-o",
        str(tmp_path / "log"),
        "-e",
        "trace=fsync",
        "-e",
        inject,
    ]
    done = subprocess.run(
        [*command, sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in done.stderr:
        pytest.skip("processes may not be traced here")
    assert "Input/output error" in done.stdout, (done.stdout, done.stderr)
    found = {path.name: path.read_bytes() for path in chunked.iterdir()}
    assert found == {"a.md": b"old", "b.md": b"old"}
