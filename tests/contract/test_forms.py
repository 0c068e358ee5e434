"""What every form that is read keeps: what was written is read again, bit for bit."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.exchange.base import (
    READ,
    Chunk,
    Collection,
    FormDamaged,
    Resource,
    TargetRefused,
    UnknownFormError,
    open_form,
)
from tests.vectors import unit_rows

DIMENSION = 24
MODEL = "builtin/1:24"
PACKAGE = {"parquet": "pyarrow"}


@pytest.fixture(params=READ)
def name(request):
    """Each form by its name; one whose package is missing is skipped."""
    if request.param in PACKAGE:
        pytest.importorskip(PACKAGE[request.param])
    return request.param


def written(name, resources, *, folder, model=MODEL, dimension=DIMENSION):
    """Write some resources; the path."""
    target = str(Path(folder) / f"all.{name}")
    collection = Collection(resources=iter(resources), model=model, dimension=dimension)
    files = open_form(name).write(target, collection)
    assert all(Path(one).is_relative_to(target) for one in files)
    return target


def read(name, source):
    """What is read, the parts of a resource joined; nothing of it may be left out."""
    collection = open_form(name).read(source)
    found = {}
    for one in collection:
        chunks, record = found.get(one.name, ((), None))
        found[one.name] = ((*chunks, *one.chunks), record if one.record is None else one.record)
    assert list(collection.left_out) == []
    return collection, found


def plain(resources):
    """Resources as values that can be compared."""
    return {
        one.name: ([plain_chunk(chunk) for chunk in one.chunks], one.record) for one in resources
    }


def plain_chunk(chunk):
    """A chunk as values that can be compared, the bits of its vectors included."""
    vectors = {part: vector.tobytes() for part, vector in chunk.vectors.items()}
    return chunk.path, chunk.text, list(chunk.frontmatter.items()), vectors


LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
HARD = st.sampled_from(
    [
        "```json\n{}\n```", "~~~", "\n## Chunks\n", "\n---\n", "a | b \\| c", "\r\n", "\r",
        "\n\n\n",
        "# Title\n", "[[link]]", "^block-1", "\ufeff", "\u2028",
        "\x85", "\x0b", "🜁", "e\u0301", " ", "\t", "$$", "---\ntitle: x\n---\n",
    ]
)  # fmt: skip
TEXTS = st.lists(st.one_of(HARD, st.text(LETTERS, max_size=20)), min_size=1, max_size=6).map(
    "".join
)
BODIES = TEXTS.filter(str.strip)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
USER_KEYS = st.text(LETTERS, min_size=1, max_size=12).map("my {}".format)


@st.composite
def chunks(draw, resource, number):
    """A chunk file as a store has them."""
    frontmatter = draw(st.dictionaries(USER_KEYS, JSON, max_size=3))
    if draw(st.booleans()):
        frontmatter = {"headings": draw(st.lists(TEXTS, min_size=1, max_size=3))} | frontmatter
    questions = draw(st.lists(TEXTS, max_size=2))
    if questions:
        frontmatter["questions"] = questions
    parts = draw(st.sets(st.integers(0, len(questions))))
    rows = unit_rows(len(questions) + 1, seed=draw(st.integers(0, 99)), dimension=DIMENSION)
    return Chunk(
        path=f"{resource}/chunk{number}.md",
        text=draw(BODIES),
        frontmatter=frontmatter,
        vectors={part: rows[part] for part in sorted(parts)},
    )


RECORD = {
    "format": 1,
    "source": "docs/lease.md",
    "kind": "file",
    "chunker": "structure/2:256",
    "documents": [
        {
            "source": "docs/lease.md",
            "hash": "sha256:" + "0" * 64,
            "extractor": "markdown/1",
            "metadata": {"title": "A | B\n## C", "tags": ["x", "ÿ"], "big": 2**62},
        }
    ],
}


@st.composite
def collections(draw):
    """Some resources, with records or without."""
    names = draw(
        st.lists(
            st.sampled_from(["lease.md", "Handbook", "übung", "a b", "notes-2"]),
            unique=True,
            min_size=1,
            max_size=3,
        )
    )
    return [
        Resource(
            name=name,
            chunks=tuple(
                draw(chunks(name, number)) for number in range(1, draw(st.integers(1, 3)) + 1)
            ),
            record=draw(st.one_of(st.none(), st.just(RECORD))),
        )
        for name in sorted(names)
    ]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(resources=collections())
def test_what_was_written_is_read_again(name, resources):
    """Texts, metadata, records, order, vectors: all are as they were."""
    with tempfile.TemporaryDirectory() as folder:
        collection, found = read(name, written(name, resources, folder=folder))
    assert {
        resource: ([plain_chunk(chunk) for chunk in its], record)
        for resource, (its, record) in found.items()
    } == plain(resources)
    if any(chunk.vectors for one in resources for chunk in one.chunks):
        assert (collection.model, collection.dimension) == (MODEL, DIMENSION)


def test_the_same_gives_the_same_texts_twice(name, tmp_path):
    """A second export replaces the first, and is read as the first was."""
    one = Resource(name="a", chunks=(Chunk(path="a/chunk1.md", text="First.\n"),), record=RECORD)
    other = Resource(name="b", chunks=(Chunk(path="b/chunk1.md", text="Second.\n"),))
    written(name, [one], folder=tmp_path, model="", dimension=0)
    target = written(name, [other], folder=tmp_path, model="", dimension=0)
    _, found = read(name, target)
    assert list(found) == ["b"]
    assert found["b"][0][0].text == "Second.\n"


def test_nothing_of_another_kind_is_overwritten(name, tmp_path):
    """What is there and was not written by the same form stays."""
    target = tmp_path / "mine"
    target.write_text("A person's own.\n")
    collection = Collection(resources=iter(()))
    with pytest.raises(TargetRefused):
        open_form(name).write(str(target), collection)
    assert target.read_text() == "A person's own.\n"


def test_nothing_there_is_said(name, tmp_path):
    """A source that does not exist."""
    with pytest.raises(FileNotFoundError):
        list(open_form(name).read(str(tmp_path / "nowhere")))


def test_a_pipe_is_no_source(name, tmp_path):
    """Nothing hangs on what is no file and no folder."""
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises((FormDamaged, OSError)):
        list(open_form(name).read(str(tmp_path / "pipe")))


def test_vectors_are_float32(name, tmp_path):
    """Whatever a form keeps numbers as."""
    chunk = Chunk(path="a/chunk1.md", text="One.\n", vectors={0: unit_rows(1)[0]})
    _, found = read(name, written(name, [Resource(name="a", chunks=(chunk,))], folder=tmp_path))
    vector = found["a"][0][0].vectors[0]
    assert vector.dtype == np.float32
    assert vector.shape == (DIMENSION,)


def test_an_unknown_form_is_named():
    """With what was meant, and all there are."""
    with pytest.raises(UnknownFormError, match="no form 'josnl'; did you mean 'jsonl'"):
        open_form("josnl")
