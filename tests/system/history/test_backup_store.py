"""What must hold of originals: every byte that a command changes can be put back."""

import os
import tempfile
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.core.hashing import content_hash
from filestore.fs.disk import WriteFailedError
from filestore.fs.transaction import content
from filestore.history.backup_store import BatchMissingError, Originals, list_batches
from filestore.history.batch import BatchInvalidError, ChangedFile, Version, is_truth
from tests.advice import advised

NAMES = (
    st.binary(min_size=1, max_size=12)
    .filter(lambda name: b"\0" not in name and b"/" not in name and name not in (b".", b".."))
    .map(lambda name: "chunked/" + name.decode("utf-8", "surrogateescape"))
    .filter(is_truth)
)
HELD = st.dictionaries(NAMES, st.none() | st.binary(max_size=50), max_size=12)


def keep(folder, held, *, now_s=1_000_000.0, finish=True):
    """Keep what some files hold as a batch; its id."""
    entries = [
        ChangedFile(
            path=path,
            before=None if data is None else Version(digest=content_hash(data), mode=0o640),
            after=Version(digest=content_hash(b"new")),
        )
        for path, data in held.items()
    ]
    before = {path: content(data) for path, data in held.items() if data is not None}
    with Originals.open(str(folder)) as originals:
        batch = originals.keep("add", entries, before, now_s=now_s)
        if finish:
            originals.finish(batch.identifier)
    return batch.identifier


def collect(folder, identifier, **caps):
    """Let the writer of a batch collect what is beyond the caps."""
    with Originals.open(str(folder)) as originals:
        originals.collect(originals.batch(identifier), now_s=time.time(), **caps)


@settings(max_examples=40)
@given(held=HELD)
def test_what_was_there_comes_back_byte_for_byte(held):
    """A batch holds for each file what it was, whatever its name."""
    with tempfile.TemporaryDirectory() as folder:
        identifier = keep(f"{folder}/.undo", held)
        (batch,) = list_batches(f"{folder}/.undo")
        assert (batch.identifier, batch.what, batch.made_s) == (identifier, "add", 1_000_000)
        assert [entry.path for entry in batch.entries] == list(held)
        with Originals.open(f"{folder}/.undo") as originals:
            for number, entry in enumerate(batch.entries):
                data = held[entry.path]
                assert (entry.before is None) == (data is None)
                if entry.before is not None:
                    blob = originals.blob(identifier, f"{number}.before", entry.before.digest)
                    assert (blob, entry.before.mode) == (data, 0o640)


def test_a_damaged_blob_is_never_handed_out(tmp_path):
    """Bytes that rotted under `.undo/` are refused, and not put in place of a file."""
    undo = tmp_path / ".undo"
    identifier = keep(undo, {"chunked/a.md": b"as it was"})
    (undo / identifier / "0.before").write_bytes(b"as it wos")
    with Originals.open(str(undo)) as originals, pytest.raises(BatchInvalidError) as caught:
        originals.blob(identifier, "0.before", content_hash(b"as it was"))
    assert identifier in caught.value.message


def test_batches_are_numbered_in_their_order(tmp_path):
    """The latest batch has the highest number, also after old ones were collected."""
    undo = tmp_path / ".undo"
    made = [keep(undo, {"chunked/a.md": b"x"}) for _ in range(3)]
    assert made == sorted(set(made))
    with Originals.open(str(undo)) as originals:
        originals.discard(made[0])
    assert [batch.identifier for batch in list_batches(str(undo))] == made[1:]
    assert keep(undo, {"chunked/a.md": b"x"}) > made[2]


def test_kept_originals_are_private(tmp_path):
    """A text that was removed is not left for others to read."""
    undo = tmp_path / ".undo"
    identifier = keep(undo, {"chunked/a.md": b"secret"})
    assert undo.stat().st_mode & 0o077 == 0
    assert (undo / identifier).stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (undo / identifier).iterdir())


def test_what_a_dead_writer_left_is_no_batch(tmp_path):
    """A folder without its record is not listed, and the next writer takes it away."""
    undo = tmp_path / ".undo"
    dead = keep(undo, {"chunked/a.md": b"x"})
    (undo / dead / "batch.json").unlink()
    assert list_batches(str(undo)) == []
    with Originals.open(str(undo)) as originals, pytest.raises(BatchMissingError):
        originals.batch(dead)
    made = keep(undo, {"chunked/a.md": b"x"})
    assert made != dead
    collect(undo, made)
    assert os.listdir(undo) == [made]


def test_strange_entries_in_the_folder_do_not_hurt(tmp_path):
    """Files of a person's own beside the batches and in them are passed over, and stay."""
    undo = tmp_path / ".undo"
    first = keep(undo, {"chunked/a.md": b"x"})
    (undo / "note.txt").write_text("mine")
    (undo / first / "note.txt").write_text("mine")
    (undo / "2024").mkdir()
    made = keep(undo, {"chunked/a.md": b"x"})
    collect(undo, made, most_s=-1)
    assert {path.relative_to(undo).as_posix() for path in undo.rglob("note.txt")} == {
        "note.txt",
        f"{first}/note.txt",
    }
    assert (undo / "2024").is_dir()
    assert [batch.identifier for batch in list_batches(str(undo))] == [made]


def test_old_batches_go(tmp_path):
    """What was not used for longer than the cap goes, but never the newest."""
    undo = tmp_path / ".undo"
    made = [keep(undo, {"chunked/a.md": b"x"}) for _ in range(3)]
    for identifier in (made[0], made[2]):
        long_ago = time.time() - 91 * 24 * 3600
        os.utime(undo / identifier / "batch.json", (long_ago, long_ago))
    collect(undo, made[2])
    assert sorted(os.listdir(undo)) == made[1:]


def test_large_batches_go_oldest_first(tmp_path):
    """Beyond so many bytes the oldest batches go until the rest fits."""
    undo = tmp_path / ".undo"
    made = [keep(undo, {"chunked/a.md": bytes(10_000)}) for _ in range(5)]
    collect(undo, made[4], most_bytes=25_000)
    assert sorted(os.listdir(undo)) == made[3:]
    collect(undo, made[4], most_bytes=10)
    assert sorted(os.listdir(undo)) == made[4:]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    """Without a place for originals the command fails with advice, before it changed anything."""
    (tmp_path / ".undo").write_text("a file in the way")
    with pytest.raises(WriteFailedError) as caught:
        keep(tmp_path / ".undo", {"chunked/a.md": b"x"})
    assert advised(caught.value)
    assert (tmp_path / ".undo").read_text() == "a file in the way"


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path):
    """A planted link does not have originals written elsewhere, nor batches read from there."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / ".undo").symlink_to(elsewhere)
    with pytest.raises(WriteFailedError):
        keep(tmp_path / ".undo", {"chunked/a.md": b"x"})
    with pytest.raises(WriteFailedError):
        list_batches(str(tmp_path / ".undo"))
    assert list(elsewhere.iterdir()) == []
