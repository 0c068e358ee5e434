"""A sentence-transformers model run by torch. One rule: nothing in its folder is run as code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from filestore.embed import Choice, Embedder
from filestore.embed._local import LocalEmbedder, Window, padded
from filestore.embed._model_folder import (
    own_record,
    read_folder,
    unusable,
    weight_files,
)
from filestore.embed.models import (
    BUNDLED_INSTEAD,
    LOAD_ERRORS,
    installed_model,
    quiet_libraries,
    weights_digest,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from filestore.embed._local import Forward

_PRECISION: Final = "float32"


class SentenceTransformersEmbedder(LocalEmbedder):
    """Runs on the device that the library picks."""

    def _load(self) -> Forward:
        import torch

        folder = self._folder
        # Load a model from its folder, in which only known modules are; without a network, quietly.
        from safetensors import SafetensorError
        from sentence_transformers import SentenceTransformer

        try:
            with quiet_libraries():
                model = SentenceTransformer(
                    folder.path, local_files_only=True, trust_remote_code=False
                )
        except (SafetensorError, *LOAD_ERRORS) as error:
            raise unusable(folder.path, "cannot be loaded", detail=str(error)) from error
        # Some versions keep the precision that the weights were stored in.
        model = model.float().eval()
        transformer: Any = model[0]
        typed = getattr(transformer.auto_model.config, "type_vocab_size", 0)

        def forward(batch: Sequence[Window]) -> NDArray[np.float32]:
            tokens, mask = padded(batch, folder.padding)
            given = torch.from_numpy(tokens).to(model.device)
            features: dict[str, Any] = {
                "input_ids": given,
                "attention_mask": torch.from_numpy(mask).to(model.device),
            }
            if typed:
                features["token_type_ids"] = torch.zeros_like(given)
            if batch[0].prompt:
                features["prompt_length"] = batch[0].prompt
            try:
                with torch.inference_mode():
                    found = model(features)["sentence_embedding"]
                vectors: NDArray[np.float32] = found.float().cpu().numpy()
            except LOAD_ERRORS as error:
                raise unusable(folder.path, "cannot be run", detail=str(error)) from error
            return vectors

        return forward


def open_choice(choice: Choice) -> Embedder:
    """Open a model by what its folder says; nothing is loaded yet."""
    path = installed_model(choice, feature="sentence-transformers", otherwise=BUNDLED_INSTEAD)
    folder = read_folder(path, choice.options)
    weights = weights_digest(folder.path, weight_files(folder), choice.machine.cache)
    return SentenceTransformersEmbedder(choice, folder, own_record(folder, weights, _PRECISION))
