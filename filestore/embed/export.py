"""Writes an ONNX folder from a sentence-transformers model: what the onnx embedder runs best.

Pooling, dense layers and normalising go into the graph. One rule: a folder is there only when it
was compared with the model it was made from, and whole.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from filestore.config.settings import ModelOptions
from filestore.core.caller import absolute
from filestore.core.errors import RefusedError
from filestore.core.packages import install_line, missing_packages
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.embed._graph_files import external_files
from filestore.embed._model_folder import (
    RECORD,
    TOKENIZER,
    ModelFolder,
    own_record,
    read_folder,
    serialize_record,
    unusable,
    weight_files,
)
from filestore.embed._onnx import GRAPH, POOLED
from filestore.embed._onnx import open_choice as open_onnx
from filestore.embed._sentence_transformers import PRECISION, load_library_model, takes_token_types
from filestore.embed._sentence_transformers import open_choice as open_original
from filestore.embed._weights import weights_digest
from filestore.embed.base import Choice, ModelMissing, ModelUnusable
from filestore.fs import disk

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_INT8: Final = "int8"
_OPSET: Final = 17
_NEAR: Final = {PRECISION: 0.9999, _INT8: 0.9}
"""The least cosine between a text's vector by the graph and by the model it was made from."""
_STAGES: Final = ("loading the model", "writing the graph", "making it smaller", "comparing")
_STAGING_PREFIX: Final = ".filestore-export-"
_BESIDE: Final = (
    "config.json",
    TOKENIZER,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "sentence_bert_config.json",
)
"""What the graph does not hold; of the transformer."""
_PROMPTS: Final = "config_sentence_transformers.json"
_PROBES: Final = (
    "",
    "A lighthouse keeper writes down when the fog came.",
    "Die Karte liegt neben dem Kompass.",
    "灯塔看守人记下雾来的时间。",
    " ".join(["The writer holds the lock until the last page is on disk."] * 40),
)


class TargetNotEmpty(RefusedError):
    """There is something where the exported model should go."""


def export_model(
    source: str, target: str, *, int8: bool = False, on_progress: OnProgress = ignore
) -> str:
    """Write an ONNX folder from a model.

    Args:
        source: The folder of a sentence-transformers model.
        target: A folder that is new or empty.
        int8: Keep weights as whole numbers of 8 bits: a quarter of the size, twice the speed, and
            vectors of a space of its own.
        on_progress: Called before each step.

    Returns:
        The target, absolute.

    Raises:
        TargetNotEmpty: The target is there and not an empty folder.
        ModelMissing: A library that exporting needs is not installed.
        ModelUnusable: The source is no model, or the graph gives other vectors than it.
        WriteFailedError: The disk refused.
    """
    target = absolute(target)
    try:
        is_free = not os.listdir(target)
    except FileNotFoundError:
        is_free = not os.path.islink(target)
    except OSError:
        is_free = False
    if not is_free:
        raise TargetNotEmpty(
            f"{target} is not an empty folder", remedy="name a new folder for the exported model"
        )
    packages = missing_packages("embedder export")
    if packages:
        raise ModelMissing(
            f"exporting the model {source} needs {', '.join(packages)}, not installed here",
            remedy=f"run `{install_line('embedder export')}`",
        )
    folder = read_folder(absolute(source), ModelOptions())
    if not folder.pools_prompt:
        raise unusable(folder.path, "leaves prompts out when it pools, which no graph can do")
    weights = weights_digest(folder.path, weight_files(folder), "")
    with _staging(target) as staging:
        _write_graph(folder, staging, int8=int8, on_progress=on_progress)
        _write_beside(folder, staging, weights, _INT8 if int8 else PRECISION)
        _report(on_progress, 3)
        _compare(folder.path, staging, _NEAR[_INT8 if int8 else PRECISION])
        _put_in_place(staging, target)
    return target


@contextmanager
def _staging(target: str) -> Iterator[str]:
    """A folder beside the target that is gone afterwards, unless it took the target's place."""
    parent = os.path.dirname(target)
    with disk.disk_errors(target):
        disk.make_folders(parent)
        staging = tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=parent)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _put_in_place(staging: str, target: str) -> None:
    with disk.disk_errors(target):
        for name in os.listdir(staging):
            path = os.path.join(staging, name)
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        disk.sync_path(staging)
        os.chmod(staging, 0o755)
        with suppress(FileNotFoundError):
            os.rmdir(target)
        os.rename(staging, target)
        disk.sync_path(os.path.dirname(target))


def _report(on_progress: OnProgress, step: int) -> None:
    on_progress(Progress(stage=_STAGES[step], done=step, total=len(_STAGES)))


def _write_graph(folder: ModelFolder, staging: str, *, int8: bool, on_progress: OnProgress) -> None:
    path = os.path.join(staging, GRAPH)
    _report(on_progress, 0)
    model = load_library_model(folder, device="cpu")
    _report(on_progress, 1)
    with disk.disk_errors(path), _hushed():
        _trace(model, path)
        if int8:
            _report(on_progress, 2)
            # Keep weights as 8-bit numbers, scaled for each channel: for each tensor is far too
            # coarse.
            from onnxruntime.quantization import QuantType, quantize_dynamic

            smaller = f"{path}.int8"
            quantize_dynamic(path, smaller, per_channel=True, weight_type=QuantType.QInt8)
            os.replace(smaller, path)


def _trace(model: SentenceTransformer, path: str) -> None:
    """Follow one batch through the model and write down what is computed."""
    import torch

    names = ["input_ids", "attention_mask"]
    names += ["token_type_ids"] if takes_token_types(model) else []

    class Pooled(torch.nn.Module):
        """The whole pipeline, from tokens to one vector of length 1."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            found = self.model(dict(zip(names, given, strict=True)))[POOLED]
            return torch.nn.functional.normalize(found, dim=1)

    # Two texts of different length, so that the mask is not taken for a constant.
    tokens = torch.tensor([[1, 2, 3, 4], [1, 2, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    axes: dict[str, dict[int, str]] = {name: {0: "texts", 1: "tokens"} for name in names}
    with torch.inference_mode():
        torch.onnx.export(
            Pooled().eval(),
            (tokens, mask, torch.zeros_like(tokens))[: len(names)],
            path,
            input_names=names,
            output_names=[POOLED],
            dynamic_axes=axes | {POOLED: {0: "texts"}},
            opset_version=_OPSET,
            dynamo=False,
        )


@contextmanager
def _hushed() -> Iterator[None]:
    """Keep what the exporters say to their developers off the terminal."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _write_beside(folder: ModelFolder, staging: str, weights: str, precision: str) -> None:
    with disk.disk_errors(staging):
        places = [(folder.file(name), name) for name in _BESIDE]
        for place, name in [*places, (os.path.join(folder.path, _PROMPTS), _PROMPTS)]:
            with suppress(FileNotFoundError):
                shutil.copyfile(place, os.path.join(staging, name))
        graph = weights_digest(staging, [GRAPH, *external_files(staging, GRAPH)], "")
        record = own_record(folder, weights, precision, graph=graph)
        disk.write_path(os.path.join(staging, RECORD), serialize_record(record))


def _compare(source: str, staging: str, near: float) -> None:
    """Embed some texts both ways.

    Raises:
        ModelUnusable: Their vectors differ.
    """
    made: Any = open_onnx(Choice(name=f"onnx:{staging}")).embed_documents(_PROBES)
    expected = open_original(Choice(name=f"sentence-transformers:{source}"))
    least = float((made * expected.embed_documents(_PROBES)).sum(axis=1).min())
    if not least >= near:
        raise ModelUnusable(
            f"the graph made from {source} gives other vectors: cosine {least:.4f}, expected at"
            f" least {near}",
            remedy="use the model with sentence-transformers",
        )
