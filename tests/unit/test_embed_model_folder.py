"""The fingerprint of a vector space: what changes it, and what does not."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from filestore.embed._model_folder import ModelFolder, fingerprint

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
    return fingerprint(folder, dimension=folder.dimension, pooling=folder.pooling, **given_)


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
