"""What must hold of the records under `.undo/`: nothing is lost in them, nothing slips through."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.paths import DOCUMENTS
from filestore.history.batch import (
    Batch,
    BatchInvalidError,
    ChangedFile,
    KeptBatch,
    Version,
    expired,
    is_truth,
    parse,
    serialize,
)
from tests.advice import advised

NAMES = (
    st.binary(min_size=1, max_size=12)
    .filter(lambda name: b"\0" not in name and b"/" not in name and name not in (b".", b".."))
    .map(lambda name: name.decode("utf-8", "surrogateescape"))
    .filter(lambda name: is_truth(f"chunked/{name}"))
)
PATHS = st.builds(
    lambda top, names: "/".join([top, *names]),
    st.sampled_from(["chunked", "source"]),
    st.lists(NAMES, min_size=1, max_size=3),
)
VERSIONS = st.none() | st.builds(
    Version,
    digest=st.binary(min_size=16, max_size=16),
    mode=st.none() | st.sampled_from([0, 0o400, 0o600, 0o644, 0o666]),
    indexed=st.booleans(),
)
BATCHES = st.builds(
    Batch,
    identifier=st.just("000001"),
    what=st.text("abc é", max_size=9),
    made_s=st.integers(0, 1 << 36),
    entries=st.lists(
        st.builds(ChangedFile, path=PATHS, before=VERSIONS, after=VERSIONS),
        max_size=4,
        unique_by=lambda entry: entry.path,
    ).map(tuple),
    wanted=st.sampled_from(["before", "after"]),
    sequence=st.integers(0, 1 << 40),
)


@given(batch=BATCHES)
def test_a_record_comes_back_as_it_was(batch):
    """Whatever the names of the files, reading a record gives what was written."""
    assert parse(serialize(batch), identifier="000001") == batch


@pytest.mark.parametrize(
    "path",
    [
        "",
        "chunked",
        "/etc/passwd",
        "../outside.py",
        "../../.x/outside.md",
        "../a/../outside.md",
        "chunked/../../outside.md",
        "chunked/./a.md",
        "chunked//a.md",
        "chunked/a\0.md",
        ".git/hooks/pre-commit",
        ".sidecar/catalog.sqlite",
        "filestore.toml",
        "Chunked/a.md",
        "chunked/.git/hooks/pre-commit",
        "chunked/a/.GIT/config",
        "chunked/.sidecar/catalog.sqlite",
        "chunked/.x/y.md",
        "source/.gitattributes",
        "source/\u200c.git/config",
        "source/.g\u200dit/config",
        "source/\ufeff\u202e.GIT/config",
        "source/\u200c",
        "source/git~1/hooks/pre-commit",
        "source/GIT~27/config",
    ],
)
def test_a_record_reaches_truth_files_only(path):
    """A planted record cannot have files put elsewhere than among the truth."""
    assert not is_truth(path)
    record = json.loads(serialize(Batch(identifier="000001", what="x", made_s=0, entries=())))
    record["files"] = [{"path": path, "before": None, "after": None}]
    with pytest.raises(BatchInvalidError) as caught:
        parse(json.dumps(record).encode(), identifier="000001")
    assert ".undo/000001" in caught.value.message
    assert advised(caught.value)


@pytest.mark.parametrize(
    ("path", "belongs"),
    [
        ("note.md", True),
        ("notes/Rent of May.md", True),
        ("README", False),
        ("filestore.toml", False),
        (".obsidian/x.md", False),
        ("a/.git/x.md", False),
        ("a/GIT~1/x.md", False),
        ("../x.py", False),
        ("/etc/x.md", False),
        ("a//x.md", False),
        ("run.py", False),
    ],
)
def test_in_place_a_record_reaches_visible_notes_as_well(path, belongs):
    """And in a tree not even those: there they are no truth."""
    record = json.loads(serialize(Batch(identifier="000001", what="x", made_s=0, entries=())))
    record["files"] = [{"path": path, "before": None, "after": None}]
    data = json.dumps(record).encode()
    with pytest.raises(BatchInvalidError):
        parse(data, identifier="000001")
    if belongs:
        assert parse(data, identifier="000001", tree=DOCUMENTS).entries[0].path == path
    else:
        with pytest.raises(BatchInvalidError):
            parse(data, identifier="000001", tree=DOCUMENTS)


@pytest.mark.parametrize("folders", [None, (), ("notes", "notes/a b", "x/\udcff\xe9 日本")])
def test_the_folders_of_a_record_are_read_as_they_were_written(folders):
    """Of any bytes; older records have none."""
    batch = Batch(identifier="000001", what="x", made_s=0, entries=(), folders=folders)
    assert parse(serialize(batch), identifier="000001").folders == folders
    assert ("folders" in json.loads(serialize(batch))) == (folders is not None)


@pytest.mark.parametrize("planted", [3, True, [1], [None], [["a"]], ["\u4e00"]])
def test_folders_that_are_none_are_refused(planted):
    """With the record that names them."""
    record = json.loads(serialize(Batch(identifier="000001", what="x", made_s=0, entries=())))
    record["folders"] = planted
    with pytest.raises(BatchInvalidError):
        parse(json.dumps(record).encode(), identifier="000001")


def test_a_record_gives_no_more_than_permissions():
    """A planted record cannot make a file that runs as somebody else."""
    version = Version(digest=bytes(16), mode=0o4755)
    entry = ChangedFile(path="chunked/a.md", before=version, after=None)
    batch = Batch(identifier="000001", what="x", made_s=0, entries=(entry,))
    (found,) = parse(serialize(batch), identifier="000001").entries
    assert found.before is not None
    assert found.before.mode == 0o644


@given(batch=BATCHES, where=st.integers(0, 10_000), what=st.integers(0, 255))
def test_a_damaged_record_is_said_to_be_damaged(batch, where, what):
    """A flipped byte gives another record or the error of the module, never another exception."""
    data = bytearray(serialize(batch))
    data[where % len(data)] = what
    try:
        found = parse(bytes(data), identifier="000001")
    except BatchInvalidError:
        return
    assert all(is_truth(entry.path) for entry in found.entries)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"null", b'{"format": 3}', b'{"format": 2}'])
def test_what_is_no_record_is_refused(data):
    """Other JSON, and the format of another version, is refused with advice."""
    with pytest.raises(BatchInvalidError) as caught:
        parse(data, identifier="000004")
    assert "000004" in caught.value.message


KEPT = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100)), min_size=1, max_size=12).map(
    lambda rows: [
        KeptBatch(identifier=f"{number:06d}", used_s=used_s, size_bytes=size)
        for number, (used_s, size) in enumerate(rows, 1)
    ]
)


@given(kept=KEPT, most_s=st.integers(0, 1000), most_bytes=st.integers(0, 500))
def test_the_caps_hold_and_the_newest_stays(kept, most_s, most_bytes):
    """What stays is young and fits, but for the newest, and no more went than had to."""
    gone = expired(kept, now_s=1000, most_s=most_s, most_bytes=most_bytes)
    stay = [one for one in kept if one.identifier not in gone]
    assert stay[-1] == kept[-1]
    assert all(1000 - one.used_s <= most_s for one in stay[:-1])
    assert len(stay) == 1 or sum(one.size_bytes for one in stay) <= most_bytes
    for one in kept:
        if one.identifier in gone and 1000 - one.used_s <= most_s:
            from_it_on = [other for other in kept if other.identifier >= one.identifier]
            assert sum(other.size_bytes for other in from_it_on) > most_bytes
