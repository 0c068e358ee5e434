"""What was changed, by whom and how: listed from what is kept, newest first."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore import FilestoreError, Store, UsageError
from filestore.core.caller import writing_for
from filestore.history import write
from filestore.history.backup_store import BatchMissingError


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """A folder with a document of a person's."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "rent.md").write_text("# Rent\n\nPaid in May.\n")
    with filestore.create(tmp_path / "kb", layout="in-place", embedder="builtin") as made:
        made.sync()
        yield made


def listed(store: Store, **wanted: Any) -> list[tuple[str | None, str]]:
    """Who did what."""
    return [(one.group.by, one.group.what) for one in store.changes(**wanted).changes]


def test_who_changed_what(store: Store) -> None:
    """Newest first; by program, by day, and only so many."""
    with writing_for("claude-code"):
        note = store.add_note("Pipes leak.\n", title="Pipes")
        store.append_note("rent.md", "Not in June.")
    with writing_for("cursor"):
        store.edit_note(note.path, old="leak", new="burst")
    store.append_note("rent.md", "By hand.")
    everything = [
        (None, "append rent.md"),
        ("cursor", "edit notes/Pipes.md"),
        ("claude-code", "append rent.md"),
        ("claude-code", "add_note notes/Pipes.md"),
    ]
    assert listed(store) == everything
    assert listed(store, limit=1) == everything[:1]
    assert store.changes(limit=1).left == 3
    assert listed(store, by="claude-code") == everything[2:]
    assert listed(store, by="you") == everything[:1]
    assert listed(store, by="nobody") == []
    assert listed(store, since="2020") == everything
    assert listed(store, since="9998-12") == []
    assert listed(store, identifier=note.undo) == everything[3:]
    for wrong in ("soon", "2026-13-45", "x" * 10_000, "a\nb"):
        with pytest.raises(UsageError, match="--since takes a date") as refused:
            store.changes(since=wrong)
        assert len(str(refused.value)) < 300
    for name in ("000099", "../x", "a\nb", "x" * 10_000):
        with pytest.raises(BatchMissingError) as missing:
            store.changes(name)
        assert len(str(missing.value)) < 300


def test_how_it_was_changed(store: Store) -> None:
    """As it was then, also once it was changed again and undone; else that it is not kept."""
    first = store.append_note("rent.md", "Not in June.")
    second = store.edit_note("rent.md", old="May", new="July")
    assert diff_of(store, first.undo).splitlines() == [
        "--- rent.md",
        "+++ rent.md",
        "@@ -1,3 +1,5 @@",
        " # Rent",
        " ",
        " Paid in May.",
        "+",
        "+Not in June.",
    ]
    later = diff_of(store, second.undo)
    store.undo(second.undo)
    assert diff_of(store, second.undo) == later
    assert store.changes(second.undo).changes[0].group.state == "undone"
    note = store.add_note("Pipes leak.\n", title="Pipes")
    assert diff_of(store, note.undo).startswith("--- /dev/null\n+++ notes/Pipes.md\n")
    Path(store.root, note.path).write_text("By hand.\n")
    assert "not kept" in diff_of(store, note.undo)
    assert store.changes().changes[0].diff is None


def diff_of(store: Store, identifier: str | None) -> str:
    """That of one change."""
    (change,) = store.changes(identifier, diff=True).changes
    assert change.diff is not None
    return change.diff


def test_a_diff_is_bounded(store: Store) -> None:
    """Of large, binary and many files as well."""
    changes = {f"many/{number}.md": b"x\n" * 300 for number in range(300)}
    identifier = write.change(store.places, changes, before={}, command="many")
    found = diff_of(store, identifier)
    assert len(found) < 110_000
    assert "more files" in found
    assert len(store.changes(identifier).changes[0].to_dict()["paths"]) == 100
    for number, (data, words) in enumerate(
        ((b"\0\1", "binary"), (b"x" * 1_100_000, "too large"), (b"\xff", r"+\xff"))
    ):
        path = f"one/{number}.md"
        identifier = write.change(store.places, {path: data}, before={}, command="one")
        assert words in diff_of(store, identifier)


def test_a_name_of_a_stranger_is_made_plain(store: Store) -> None:
    """Whether it comes from a program or from a record; an old record has none."""
    with writing_for("a\n\x1b[2J\u202e" + "x" * 10_000):
        note = store.add_note("Pipes leak.\n", title="Pipes")
    record = Path(store.places.undo, str(note.undo), "batch.json")
    kept = json.loads(record.read_text())
    assert len(kept["by"]) <= 80
    for by, seen in (
        ("you\n000001  by you", True),
        ("\u202e\x1b]0;x\x07", True),
        ("y" * 100_000, True),
        (7, False),
        (["x"], False),
    ):
        record.write_text(json.dumps({**kept, "by": by}))
        (change,) = store.changes().changes
        name = change.group.by
        assert (name is not None) == seen
        assert name is None or (name.isprintable() and len(name) <= 80)
        assert bool(change.group.problem) != seen
    del kept["by"]
    record.write_text(json.dumps(kept))
    assert listed(store) == [(None, "add_note notes/Pipes.md")]
    store.undo(note.undo)


def test_nothing_was_changed_yet(store: Store) -> None:
    """No folder is made to say so."""
    assert store.changes().changes == ()
    with pytest.raises(FilestoreError):
        store.changes("000001")
    assert not os.path.exists(store.places.undo)


def test_the_command_lists_and_shows(workspace: Any) -> None:
    """Who, when, what; the diff of one, and the command that undoes it."""
    assert "no changes" in workspace("changes", code=1).stdout
    with filestore.open(workspace.store) as store, writing_for("cursor"):
        store.add_note("Pipes leak.\n", title="Pipes")
    with filestore.open(workspace.store) as store:
        store.append_note("chunked/notes/Pipes.md", "By hand.")
    lines = workspace("changes").stdout.splitlines()
    assert lines[0].startswith("000002  ")
    assert "  by you  1 file" in lines[0]
    assert lines[1] == "    append chunked/notes/Pipes.md"
    assert "  by 'cursor'  1 file" in lines[2]
    assert lines[-1] == "to undo one: filestore undo ID"
    assert workspace("undo", "--list").stdout.splitlines() == lines[:-1]
    one = workspace("changes", "000001").stdout
    assert "+Pipes leak." in one
    assert one.endswith("to undo it: filestore undo 000001\n")
    assert "+By hand." in workspace("changes", "--diff", "-n", "1").stdout
    assert "and 1 older change" in workspace("changes", "-n", "1").stdout
    assert workspace.json("changes", "--by", "cursor")["changes"][0]["by"] == "cursor"
    assert workspace.json("changes", "--by", "cursor")["left"] == 0
    assert "no such change" in workspace("changes", "--since", "2999", code=1).stdout
    assert [one["by"] for one in workspace.json("undo", "--list")["batches"]] == [None, "cursor"]
