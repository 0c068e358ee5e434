"""The fingerprint of a vector space, and the record of an exported model."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore.embed._model_folder import (
    LARGEST,
    POOLINGS,
    ModelFolder,
    Record,
    clipped,
    fingerprint,
    own_record,
    parse_record,
)

FOLDER = ModelFolder(
    path="/models/one",
    base="",
    dimension=384,
    pooling=("mean",),
    pools_prompt=True,
    dense=(),
    length=256,
    limit=None,
    lower_case=False,
    padding=0,
    query_prefix="",
    document_prefix="",
)


def of(folder: ModelFolder, **changed: str) -> str:
    """The fingerprint of a folder."""
    given_ = {"weights": "ab12", "precision": "float32", **changed}
    return fingerprint(folder, own_record(folder, given_["weights"], given_["precision"]))


def test_whatever_moves_vectors_is_in_the_fingerprint() -> None:
    """Weights, dimension, pooling, precision, windows and prefixes each give another space."""
    found = [
        of(FOLDER),
        of(FOLDER, weights="cd34"),
        of(FOLDER, precision="int8"),
        of(replace(FOLDER, dimension=128)),
        of(replace(FOLDER, pooling=("cls",))),
        of(replace(FOLDER, length=512)),
        of(replace(FOLDER, limit=100)),
        of(replace(FOLDER, query_prefix="query: ")),
        of(replace(FOLDER, document_prefix="query: ")),
    ]
    assert len(set(found)) == len(found)


def test_whatever_does_not_move_vectors_is_not() -> None:
    """Where a model lies, and a limit above its own, change nothing."""
    assert of(replace(FOLDER, path="/elsewhere", base="0_Transformer")) == of(FOLDER)
    assert of(replace(FOLDER, limit=1000)) == of(FOLDER)


@given(one=st.tuples(st.text(), st.text()), other=st.tuples(st.text(), st.text()))
def test_prefixes_are_not_mixed_up(one: tuple[str, str], other: tuple[str, str]) -> None:
    """No pair of prefixes has the fingerprint of another pair, whatever characters they hold."""
    first, second = (
        of(replace(FOLDER, query_prefix=query, document_prefix=document))
        for query, document in (one, other)
    )
    assert (first == second) is (one == other)
    assert "\n" not in first


RECORD = {
    "graph": "a1" * 32,
    "weights": "53" * 32,
    "dimension": 384,
    "pooling": ["mean"],
    "precision": "float32",
}


@given(
    digests=st.tuples(*[st.binary(min_size=32, max_size=32)] * 2),
    dimension=st.integers(1, LARGEST),
    pooling=st.lists(st.sampled_from(POOLINGS), min_size=1, unique=True),
    precision=st.sampled_from(["float32", "int8"]),
)
def test_a_record_is_read_as_it_was_written(
    digests: tuple[bytes, bytes], dimension: int, pooling: list[str], precision: str
) -> None:
    """Every record survives being written and read."""
    record = Record(
        graph=digests[0].hex(),
        weights=digests[1].hex(),
        dimension=dimension,
        pooling=tuple(pooling),
        precision=precision,
    )
    assert parse_record(msgspec.json.encode(record)) == record


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dimension", -5),
        ("dimension", 0),
        ("dimension", LARGEST + 1),
        ("dimension", 10**9),
        ("dimension", 1e300),
        ("dimension", True),
        ("dimension", "384"),
        ("dimension", None),
        ("graph", 5),
        ("graph", "a1"),
        ("weights", "5" * 64 + "/384"),
        ("weights", None),
        ("pooling", "mean"),
        ("pooling", []),
        ("pooling", ["magic"]),
        ("pooling", [["mean"]]),
        ("pooling", ["mean"] * 1000),
        ("precision", "float32/unit"),
        ("precision", ["float32"]),
    ],
)
def test_a_record_of_anything_unlikely_is_none(key: str, value: Any) -> None:
    """A number out of bounds, or anything that is not written so, makes the whole record void."""
    assert parse_record(msgspec.json.encode(RECORD)) is not None
    assert parse_record(msgspec.json.encode({**RECORD, key: value})) is None
    lacking = {name: one for name, one in RECORD.items() if name != key}
    assert parse_record(msgspec.json.encode(lacking)) is None


@pytest.mark.parametrize("said", [None, 5, "text", [], [RECORD], {}])
def test_what_is_no_record_is_none(said: Any) -> None:
    """JSON of another shape is no record."""
    assert parse_record(msgspec.json.encode(said)) is None


@given(st.text())
def test_a_text_in_a_message_is_short(text: str) -> None:
    """A message shows at most 60 characters of a text, and short ones whole."""
    shown = clipped(text)
    assert len(shown) <= 60
    assert shown == text or (len(text) > 60 and shown[-1] == "…" and text.startswith(shown[:-1]))
