"""A sentence-transformers model run by torch. One rule: nothing in its folder is run as code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filestore.embed._local import LocalEmbedder, require
from filestore.embed._model_folder import (
    ModelFolder,
    fingerprint,
    read_folder,
    unusable,
    weight_files,
)
from filestore.embed._weights import weights_digest
from filestore.embed.base import Choice, Embedder
from filestore.embed.models import find_model
from filestore.embed.quiet import quiet_libraries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

    from filestore.embed._local import Forward

PRECISION: Final = "float32"
_RAISED: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What the libraries end with where a model's files contradict each other."""


class SentenceTransformersEmbedder(LocalEmbedder):
    """Runs on the device that the library picks."""

    def _load(self) -> Forward:
        import torch

        model = load_library_model(self._folder)
        typed = takes_token_types(model)
        folder = self._folder

        def forward(
            tokens: NDArray[np.int64], mask: NDArray[np.int64], prompt: int
        ) -> NDArray[np.float32]:
            given = torch.from_numpy(tokens).to(model.device)
            features: dict[str, Any] = {
                "input_ids": given,
                "attention_mask": torch.from_numpy(mask).to(model.device),
            }
            if typed:
                features["token_type_ids"] = torch.zeros_like(given)
            if prompt:
                features["prompt_length"] = prompt
            try:
                with torch.inference_mode():
                    found = model(features)["sentence_embedding"]
                vectors: NDArray[np.float32] = found.float().cpu().numpy()
            except _RAISED as error:
                raise unusable(folder.path, "cannot be run", detail=str(error)) from error
            return vectors

        return forward


def open_choice(choice: Choice) -> Embedder:
    """Open a model by what its folder says; nothing is loaded yet."""
    require(
        ("sentence_transformers", "tokenizers"),
        what="a sentence-transformers model",
    )
    folder = read_folder(find_model(choice), choice.options)
    return SentenceTransformersEmbedder(
        choice,
        folder,
        fingerprint=fingerprint(
            folder,
            weights=weights_digest(folder.path, weight_files(folder), choice.machine.cache),
            dimension=folder.dimension,
            pooling=folder.pooling,
            precision=PRECISION,
        ),
        dimension=folder.dimension,
    )


def load_library_model(folder: ModelFolder, *, device: str | None = None) -> SentenceTransformer:
    """Load a model from its folder, without a network, quietly.

    Args:
        folder: What was read of it; only known modules are in it.
        device: Where it is to run; None leaves it to the library.

    Raises:
        ModelUnusable: The library cannot load it.
    """
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    try:
        with quiet_libraries():
            model = SentenceTransformer(
                folder.path, device=device, local_files_only=True, trust_remote_code=False
            )
    except (SafetensorError, *_RAISED) as error:
        raise unusable(folder.path, "cannot be loaded", detail=str(error)) from error
    # Some versions keep the precision that the weights were stored in.
    return model.float().eval()


def takes_token_types(model: SentenceTransformer) -> bool:
    """Whether its tokens are of several types, as in BERT."""
    transformer: Any = model[0]
    return bool(getattr(transformer.auto_model.config, "type_vocab_size", 0))
