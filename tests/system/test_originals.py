"""What must hold of originals: every byte that a command changes can be put back."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.fileio import WriteFailedError
from filestore.hashing import content_hash
from filestore.originals import BATCH_NAME, keep_originals

PATHS = (
    st.binary(min_size=1, max_size=12)
    .filter(lambda path: b"\0" not in path)
    .map(lambda path: path.decode("utf-8", "surrogateescape"))
)
BYTES = st.none() | st.binary(max_size=50)
CHANGES = st.dictionaries(PATHS, st.tuples(BYTES, BYTES), max_size=5)


def batch_of(folder, identifier):
    """What a batch kept: the command, and path to bytes before and hash after."""
    batch = folder / identifier
    record = json.loads((batch / BATCH_NAME).read_bytes())
    files = {}
    for entry in record["files"]:
        path = entry["path"].encode("latin-1").decode("utf-8", "surrogateescape")
        before = entry["before"]
        kept = None if before is None else (batch / before).read_bytes()
        files[path] = (kept, entry["after"])
    return record["what"], files


@given(changes=CHANGES)
def test_what_was_there_comes_back_byte_for_byte(changes, tmp_path_factory):
    """A batch holds for each file what it was, and by hash what it became, whatever its name."""
    folder = tmp_path_factory.mktemp("store") / ".undo"
    identifier = keep_originals(str(folder), "add", changes)
    if all(before is None for before, _ in changes.values()):
        assert identifier is None
        assert not folder.exists()
        return
    what, files = batch_of(folder, identifier)
    assert what == "add"
    assert files == {
        path: (before, None if after is None else content_hash(after).hex())
        for path, (before, after) in changes.items()
    }


def test_new_files_alone_keep_nothing(tmp_path):
    """Where nothing was there before, there is nothing to put back and no batch."""
    assert keep_originals(str(tmp_path / ".undo"), "add", {"a.md": (None, b"new")}) is None
    assert os.listdir(tmp_path) == []


def test_batches_are_numbered_in_their_order(tmp_path):
    """The latest batch has the highest number, also after old ones were collected."""
    undo = str(tmp_path / ".undo")
    made = [keep_originals(undo, "rm", {"a.md": (b"x", None)}) for _ in range(3)]
    assert made == sorted(set(made))
    for name in os.listdir(os.path.join(undo, made[0])):
        os.unlink(os.path.join(undo, made[0], name))
    os.rmdir(os.path.join(undo, made[0]))
    assert keep_originals(undo, "rm", {"a.md": (b"x", None)}) > made[2]


def test_kept_originals_are_private(tmp_path):
    """A text that was removed is not left for others to read."""
    undo = tmp_path / ".undo"
    identifier = keep_originals(str(undo), "rm", {"a.md": (b"secret", None)})
    assert undo.stat().st_mode & 0o077 == 0
    assert (undo / identifier).stat().st_mode & 0o077 == 0


def test_strange_entries_in_the_folder_do_not_hurt(tmp_path):
    """A file of a person's own beside the batches is passed over."""
    undo = tmp_path / ".undo"
    undo.mkdir()
    (undo / "note.txt").write_text("mine")
    (undo / "000007").mkdir()
    assert keep_originals(str(undo), "rm", {"a.md": (b"x", None)}) == "000008"
    assert (undo / "note.txt").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    """Without a place for originals the command fails with advice, before it changed anything."""
    (tmp_path / ".undo").write_text("a file in the way")
    with pytest.raises(WriteFailedError) as caught:
        keep_originals(str(tmp_path / ".undo"), "rm", {"a.md": (b"x", None)})
    assert caught.value.remedy
    assert (tmp_path / ".undo").read_text() == "a file in the way"
