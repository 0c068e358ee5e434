"""What every reranker must keep, over a tiny cross-encoder that is made here."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from filestore.config.user_config import Machine
from filestore.core.errors import missing_packages
from filestore.embed import ModelMissing, ModelUnusable
from filestore.rerank import Reranker, UnknownReranker, open_reranker
from tests.advice import advised, all_words

pytestmark = pytest.mark.model

WORDS = "who what holds the lock file writer a banana ripens lighthouse granite 1882 until ends"
TEXTS = [
    "a writer holds the lock file until the writer ends",
    "a banana ripens",
    "the lighthouse granite 1882",
]
AWKWARD = ["", " \n\t", "?!… — .,;", "\x00\x1b", "\ud800", "🙂", "目录", "lock " * 3_000]


def made_model(folder: Path, *, labels: int = 1) -> Path:
    """A BERT with random weights and a few words, saved as cross-encoders are."""
    if missing := missing_packages("cross-encoder"):
        pytest.skip(f"not installed: {', '.join(missing)}")
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *dict.fromkeys(WORDS.split()), *"abcdefghijklmnopqrstuvwxyz"]
    pieces += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        mask_token="[MASK]",
        model_max_length=64,
    ).save_pretrained(folder)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=labels,
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_model(tmp_path_factory.mktemp("model"))


def opened(kind: str, folder: Path) -> Reranker:
    return open_reranker(f"{kind}:{folder}", machine=Machine(), root="/a/store")


@pytest.fixture(scope="module", params=["cross-encoder"])
def reranker(request: pytest.FixtureRequest, model_folder: Path) -> Reranker:
    return opened(request.param, model_folder)


@pytest.fixture
def damaged(model_folder: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of the model in which files are replaced, or with None removed."""

    def copy(**files: bytes | None) -> Path:
        folder = Path(shutil.copytree(model_folder, tmp_path / "damaged"))
        for name, data in files.items():
            path = folder / name.replace("__", ".")
            if data is None:
                path.unlink()
            else:
                path.write_bytes(data)
        return folder

    return copy


def test_the_name_opens_it_again(reranker: Reranker) -> None:
    """The name is the one it was opened with, and leads to the same scores."""
    again = open_reranker(reranker.name, machine=Machine(), root="/a/store")
    assert again.name == reranker.name
    np.testing.assert_array_equal(
        again.score("who holds the lock?", TEXTS), reranker.score("who holds the lock?", TEXTS)
    )


def test_every_text_has_one_finite_score(reranker: Reranker) -> None:
    """Scores are finite float32, one a text, whatever the texts and the question are."""
    for query in ("who holds the lock?", *AWKWARD):
        scores = reranker.score(query, [*TEXTS, *AWKWARD])
        assert scores.shape == (len(TEXTS) + len(AWKWARD),)
        assert scores.dtype == np.float32
        assert np.isfinite(scores).all()


def test_no_texts_have_no_scores(reranker: Reranker) -> None:
    """An empty list is no error."""
    assert reranker.score("anything", []).shape == (0,)


def test_other_texts_do_not_matter(reranker: Reranker) -> None:
    """A text has the same score alone, among others, and in another order."""
    texts = [*TEXTS, *(f"{text} {more}" for text in TEXTS for more in WORDS.split())]
    together = reranker.score("what ripens", texts)
    alone = np.concatenate([reranker.score("what ripens", [text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-4)
    backwards = reranker.score("what ripens", texts[::-1])[::-1]
    np.testing.assert_allclose(together, backwards, atol=1e-4)


def test_question_and_text_both_count(reranker: Reranker) -> None:
    """Another text, or another question, gives another score."""
    scores = reranker.score("who holds the lock file", TEXTS)
    assert len({round(float(score), 4) for score in scores}) == len(TEXTS)
    others = reranker.score("a banana", TEXTS)
    assert not np.allclose(scores, others, atol=1e-4)


def test_it_agrees_with_the_library(model_folder: Path) -> None:
    """Scores are the library's own, without an activation."""
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    model = CrossEncoder(str(model_folder), activation_fn=Identity(), local_files_only=True)
    expected = model.predict([("a banana", text) for text in TEXTS], show_progress_bar=False)
    found = opened("cross-encoder", model_folder).score("a banana", TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_is_found_by_the_name_the_machine_knows(model_folder: Path) -> None:
    """A name that stands for a folder here opens that folder, the default one included."""
    for name, key in (
        ("cross-encoder:mine", "cross-encoder:mine"),
        ("cross-encoder", "cross-encoder:cross-encoder/ms-marco-MiniLM-L6-v2"),
    ):
        machine = Machine(models={key: str(model_folder)})
        found = open_reranker(name, machine=machine, root="/a/store")
        assert found.name == name
        assert found.score("a banana", TEXTS).shape == (3,)


def test_a_model_that_is_not_here_is_missing(tmp_path: Path) -> None:
    """Nothing is downloaded: the error names the model and what to do."""
    machine = Machine(environment={"HF_HOME": str(tmp_path)})
    with pytest.raises(ModelMissing) as caught:
        open_reranker("cross-encoder:nobody/nothing", machine=machine, root=str(tmp_path))
    assert advised(caught.value)
    assert caught.value.exit_code == 3


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no weights": ({"model__safetensors": None}, "no weights"),
    "a pickle": ({"model__safetensors": None, "pytorch_model__bin": b"\x80\x04."}, "no weights"),
    "no configuration": ({"config__json": None}, "no config.json"),
    "garbage": ({"config__json": b"{"}, "cannot be read"),
    "a list": ({"config__json": b"[]"}, "no JSON object"),
    "damaged weights": ({"model__safetensors": b"\xff" * 100}, "cannot be loaded"),
    "foreign code": (
        {"modules__json": json.dumps([{"type": "os.path", "path": ""}]).encode()},
        "not supported",
    ),
    "no modules": ({"modules__json": b"[1]"}, "not a list of modules"),
}


@pytest.mark.parametrize(("files", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_a_folder_that_is_no_model_is_a_clear_error(
    damaged: Callable[..., Path], files: dict[str, Any], said: str
) -> None:
    """The error names the folder, what is wrong with it, and what to do."""
    folder = damaged(**files)
    with pytest.raises(ModelUnusable, match=said) as caught:
        opened("cross-encoder", folder).score("a banana", TEXTS)
    assert str(folder) in caught.value.message
    assert advised(caught.value)


def test_code_in_a_folder_is_not_run(damaged: Callable[..., Path], model_folder: Path) -> None:
    """A configuration that names code of its own is refused."""
    config = json.loads((model_folder / "config.json").read_bytes())
    config["auto_map"] = {"AutoModelForSequenceClassification": "evil.Model"}
    folder = damaged(config__json=json.dumps(config).encode(), evil__py=b"raise SystemExit(9)")
    with pytest.raises(ModelUnusable, match="code of its own"):
        opened("cross-encoder", folder)


def test_a_classifier_is_no_reranker(tmp_path: Path) -> None:
    """A model with several numbers for a text is refused before it is loaded."""
    with pytest.raises(ModelUnusable, match="gives 3 numbers"):
        opened("cross-encoder", made_model(tmp_path / "classifier", labels=3))


def test_an_unknown_reranker_is_named_with_the_known_ones() -> None:
    """A kind that is not there is refused, saying what was asked and what there is."""
    with pytest.raises(UnknownReranker, match="telepathy") as caught:
        open_reranker("telepathy:x", machine=Machine(), root="/a/store")
    assert "cross-encoder" in caught.value.message
    assert "cross-encoder" in all_words(caught.value)
    assert caught.value.exit_code == 3


def test_opening_imports_nothing_heavy(model_folder: Path) -> None:
    """Opening a reranker loads neither numpy nor the library that runs it."""
    program = (
        "import sys\n"
        "from filestore.config.user_config import Machine\n"
        "from filestore.rerank import open_reranker\n"
        "open_reranker(sys.argv[1], machine=Machine(), root='/a/store')\n"
        "heavy = {'numpy', 'torch', 'transformers', 'sentence_transformers'}\n"
        "sys.exit(bool(heavy & sys.modules.keys()))\n"
    )
    command = [sys.executable, "-c", program, f"cross-encoder:{model_folder}"]
    assert subprocess.run(command, check=False).returncode == 0
