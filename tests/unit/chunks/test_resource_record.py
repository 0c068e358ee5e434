"""What must hold of records: they come back as written, and a broken one is refused with advice."""

from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.chunks.resource_record import (
    Record,
    RecordInvalidError,
    SourceDocument,
    parse,
    serialize,
)
from tests.advice import advised, all_words

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXTS
METADATA = st.dictionaries(
    TEXTS,
    st.recursive(
        SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXTS, v, max_size=3)
    ),
    max_size=4,
)
DOCUMENTS = st.builds(SourceDocument, source=TEXTS, hash=TEXTS, extractor=TEXTS, metadata=METADATA)
RECORDS = st.builds(
    Record,
    resource=st.none() | TEXTS,
    source=TEXTS,
    kind=st.sampled_from(["file", "folder"]),
    chunker=TEXTS,
    documents=st.lists(DOCUMENTS, max_size=4).map(tuple),
)
SOUND = {
    "format": 1,
    "source": "source/a.md",
    "kind": "file",
    "chunker": "structure/1:256",
    "documents": [{"source": "source/a.md", "hash": "sha256:0", "extractor": "markdown/1"}],
}


def without(key):
    """A sound record but for one key."""
    return {name: value for name, value in SOUND.items() if name != key}


def with_document(**changes):
    """A sound record with other values in its document."""
    return SOUND | {"documents": [SOUND["documents"][0] | changes]}


@given(RECORDS)
def test_a_record_comes_back_as_written(record):
    """Parsing is the inverse of serialising, and serialising again gives the same bytes."""
    data = serialize(record)
    assert parse(data) == record
    assert serialize(parse(data)) == data


@given(RECORDS)
def test_a_record_is_readable_text_with_one_final_line_end(record):
    """A diff of a record shows whole lines."""
    data = serialize(record)
    assert data.endswith(b"}\n")
    assert not data.endswith(b"\n\n")
    assert orjson.loads(data)["format"] == 1


def test_keys_that_say_nothing_are_left_out():
    """A record in the tree layout names no resource, and a document without metadata has none."""
    record = parse(orjson.dumps(SOUND))
    table = orjson.loads(serialize(record))
    assert table == SOUND
    assert "resource" not in table


def test_unknown_keys_are_passed_over():
    """A key that a later version adds does not make a record unusable."""
    data = orjson.dumps(SOUND | {"later": [1]})
    assert parse(data) == parse(orjson.dumps(SOUND))


@pytest.mark.parametrize("key", SOUND)
def test_a_missing_key_is_refused(key):
    """A record that lacks a key is refused and the key is named."""
    with pytest.raises(RecordInvalidError, match=key) as caught:
        parse(orjson.dumps(without(key)))
    assert advised(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        SOUND | {"source": 1},
        SOUND | {"source": None},
        SOUND | {"kind": "stream"},
        SOUND | {"kind": ["file"]},
        SOUND | {"chunker": {}},
        SOUND | {"resource": 5},
        SOUND | {"documents": None},
        SOUND | {"documents": 3},
        SOUND | {"documents": ["a"]},
        SOUND | {"documents": [None]},
        with_document(source=1),
        with_document(hash=None),
        with_document(extractor=[]),
        with_document(metadata=None),
        with_document(metadata=[1]),
        [],
        None,
        "text",
        7,
    ],
)
def test_wrong_types_are_refused(table):
    """A value of the wrong type is refused, never passed on."""
    with pytest.raises(RecordInvalidError):
        parse(orjson.dumps(table))


@pytest.mark.parametrize("metadata", ["ab", [["a", "b"]], ["ab"], ""])
def test_metadata_that_is_no_mapping_is_refused(metadata):
    """Metadata must be a mapping, not what could be made into one."""
    with pytest.raises(RecordInvalidError):
        parse(orjson.dumps(with_document(metadata=metadata)))


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 5000, b'{"format": 1e999}', b"nan"])
def test_what_is_no_json_is_refused(data):
    """Half a file, binary bytes and hostile nesting are refused with advice."""
    with pytest.raises(RecordInvalidError) as caught:
        parse(data)
    assert "git" in all_words(caught.value) or "upgrade" in all_words(caught.value)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_format_is_refused_and_says_so(version):
    """A record of a newer format is not read as if it were ours."""
    with pytest.raises(RecordInvalidError, match="format") as caught:
        parse(orjson.dumps(SOUND | {"format": version}))
    assert "upgrade" in all_words(caught.value)


@given(st.binary(max_size=200) | RECORDS.map(serialize), st.data())
def test_damage_is_refused_or_harmless(data, draw):
    """A record with bytes cut out is a record or a refusal, nothing else."""
    start = draw.draw(st.integers(0, len(data)))
    end = draw.draw(st.integers(start, len(data)))
    with suppress(RecordInvalidError):
        serialize(parse(data[:start] + data[end:]))
