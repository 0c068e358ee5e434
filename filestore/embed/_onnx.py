"""A model run by onnxruntime, without torch. Its folder has ``model.onnx`` and a tokenizer.

A graph that an earlier version exported gives the very vectors of the weights it was made from, and
has their fingerprint as long as it is the file that was written. Any other graph is named by its
own hash, with the files of weights that it names.

Which these are is read from the graph without the library that runs it: a protobuf message (ONNX's
``onnx.proto3``), of which only what may hold tensors is gone into. One rule: what is not understood
is refused, since weights that go unseen would give two models one fingerprint.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final

from filestore.embed import Choice, Embedder, ModelUnusable
from filestore.embed._local import LocalEmbedder, Window, cores, padded
from filestore.embed._model_folder import (
    ModelFolder,
    Record,
    clipped,
    own_record,
    read_folder,
    read_record,
    unusable,
)
from filestore.embed.models import BUNDLED_INSTEAD, installed_model, weights_digest
from filestore.fs import disk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from filestore.embed._local import Forward

_GRAPH: Final = "model.onnx"
_POOLED: Final = "sentence_embedding"
_GRAPHS: Final = (_GRAPH, os.path.join("onnx", _GRAPH))
_TOKENS: Final = ("last_hidden_state", "token_embeddings")
_OWN_PRECISION: Final = "graph"
_WRITES_ONE: Final = (
    'sentence-transformers[onnx] writes one: SentenceTransformer(FOLDER, backend="onnx")'
    ".save_pretrained(NEW_FOLDER)"
)
_FATAL_ONLY: Final = 4
_RAISED: Final = (
    "EPFail",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoModel",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
)

_PARTS: Final = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
"""What may hold a tensor's entries, by the numbers of its fields."""
_KEY: Final = 1
_VALUE: Final = 2
_LOCATION: Final = b"location"
_FIXED_BYTES: Final = {1: 8, 5: 4}
"""How long a field is, by its kind."""
_PLAIN: Final = 0
_SIZED: Final = 2
_LARGEST_FIELD: Final = (1 << 32) - 1
"""Readers drop the bits above, and would see another field."""
_LONGEST_NUMBER: Final = 10
_MOST_FIELDS: Final = 4_000_000
"""Large graphs have some hundred thousand; a file of nothing but tiny ones takes minutes."""


class OnnxEmbedder(LocalEmbedder):
    """Uses every core it is given."""

    def __init__(self, choice: Choice, folder: ModelFolder, record: Record, graph: str) -> None:
        super().__init__(choice, folder, record)
        self._graph = graph

    def _load(self) -> Forward:
        import numpy as np

        session, raised = self._session()
        inputs = session.get_inputs()
        types = {one.name: "int32" if "int32" in one.type else "int64" for one in inputs}
        unknown = types.keys() - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown:
            raise unusable(
                self._folder.path, f"has a graph that asks for {clipped(str(sorted(unknown)))}"
            )
        given_by_graph = [one.name for one in session.get_outputs()]
        output = next((name for name in (_POOLED, *_TOKENS) if name in given_by_graph), None)
        folder = self._folder
        if output is None:
            found_names = clipped(str(given_by_graph))
            raise unusable(
                folder.path, f"has a graph that gives {found_names}, no {_POOLED} or {_TOKENS[0]}"
            )
        if folder.dense and output != _POOLED:
            # What is pooled is the whole model's, by the custom of all who write graphs.
            raise ModelUnusable(
                f"the model folder {folder.path} has a dense layer that its {self._graph} lacks"
                f": name it as sentence-transformers:{folder.path}",
            )

        def forward(batch: Sequence[Window]) -> NDArray[np.float32]:
            tokens, mask = padded(batch, folder.padding)
            given = {"input_ids": tokens, "attention_mask": mask}
            if "token_type_ids" in types:
                given["token_type_ids"] = np.zeros_like(tokens)
            fed = {name: given[name].astype(kind, copy=False) for name, kind in types.items()}
            try:
                (found,) = session.run([output], fed)
            except raised as error:
                raise unusable(folder.path, "cannot be run", detail=str(error)) from error
            if not isinstance(found, np.ndarray):
                raise unusable(folder.path, "has a graph that gives something else than an array")
            if found.ndim == len(("text", "token", "number")):
                if found.shape[:2] != tokens.shape:
                    raise unusable(folder.path, "has a graph that gives other tokens than it got")
                skipped = 0 if folder.pools_prompt else batch[0].prompt
                return pool(found, mask, folder.pooling, skipped)
            vectors: NDArray[np.float32] = found
            return vectors

        return forward

    def _session(self) -> tuple[Any, tuple[type[Exception], ...]]:
        """The graph, ready to run, and what the library raises."""
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        known = [getattr(state, name) for name in _RAISED if hasattr(state, name)]
        raised = (*known, ValueError, RuntimeError)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = cores()
        options.log_severity_level = _FATAL_ONLY
        # Waiting threads that spin gain a tenth, and take the time of whatever else wants a core.
        spins = True
        with suppress(OSError):
            spins = os.getloadavg()[0] <= cores()
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spins)))
        path = os.path.join(self._folder.path, self._graph)
        try:
            session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
        except raised as error:
            raise unusable(
                self._folder.path, f"has a {self._graph} that cannot be loaded", detail=str(error)
            ) from error
        return session, raised


def open_choice(choice: Choice) -> Embedder:
    """Open a model by what its folder says; nothing is loaded yet."""
    path = installed_model(choice, feature="onnx", otherwise=BUNDLED_INSTEAD)
    folder = read_folder(path, choice.options)
    graph = next((one for one in _GRAPHS if os.path.isfile(os.path.join(folder.path, one))), None)
    if graph is None:
        raise ModelUnusable(
            f"the model folder {folder.path} has no {_GRAPH}",
            remedy=_WRITES_ONE,
        )
    # With the files it names: other weights in one of them are another model.
    files = [graph, *external_files(folder.path, graph)]
    weights = weights_digest(folder.path, files, choice.machine.cache)
    record = read_record(folder.path)
    if record is None or graph != _GRAPH or record.graph != weights:
        record = own_record(folder, weights, _OWN_PRECISION)
    return OnnxEmbedder(choice, folder, record, graph)


def pool(
    hidden: NDArray[np.float32], mask: NDArray[np.int64], modes: Sequence[str], prompt: int
) -> NDArray[np.float32]:
    """Tokens into one vector.

    Args:
        hidden: (n, length, size), one vector a token.
        mask: (n, length), 1 where there is a token; tokens come first.
        modes: Names of poolings, as in `POOLINGS`; several are put side by side.
        prompt: Tokens at the start that do not count.

    Returns:
        (n, size times poolings) float32, of any length.
    """
    import numpy as np

    counted = mask.copy()
    counted[:, :prompt] = 0
    return np.concatenate([_pool(hidden, counted, mode) for mode in modes], axis=1)


def _pool(hidden: NDArray[np.float32], mask: NDArray[np.int64], mode: str) -> NDArray[np.float32]:
    import numpy as np

    rows = np.arange(len(hidden))
    if mode == "cls":
        return np.asarray(hidden[rows, mask.argmax(axis=1)], dtype=np.float32)
    if mode == "lasttoken":
        last = mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
        return np.asarray(hidden[rows, last], dtype=np.float32)
    if mode == "max":
        shown = np.where(mask[:, :, None] > 0, hidden, np.float32(-np.inf))
        return np.asarray(shown.max(axis=1), dtype=np.float32)
    weights = mask.astype(np.float32)
    if mode == "weightedmean":
        weights = weights * np.arange(1, mask.shape[1] + 1, dtype=np.float32)
    sums = np.einsum("nls,nl->ns", hidden, weights)
    total = np.maximum(weights.sum(axis=1, keepdims=True), np.float32(1e-9))
    return np.asarray(
        sums / (np.sqrt(total) if mode == "mean_sqrt_len_tokens" else total), dtype=np.float32
    )


def external_files(folder: str, graph: str) -> list[str]:
    """The files with weights that a graph names, relative to the folder, sorted.

    Args:
        folder: The model's.
        graph: The path of the graph relative to it.

    Raises:
        ModelUnusable: The graph is damaged, or names what is no file next to it.
    """
    try:
        handle = disk.open_regular(os.path.join(folder, graph), follow_links=True)
        with (
            open(handle, "rb") as file,
            closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as data,
        ):
            found = locations(data)
    except (OSError, ValueError) as error:
        raise unusable(folder, f"has a {graph} that cannot be loaded", detail=str(error)) from error
    names = sorted(os.fsdecode(location) for location in found)
    for name in names:
        # Only a plain name: other paths lead out of the folder, or mean something to the library.
        if name in ("", ".", "..") or any(mark in name for mark in "/\\:\0"):
            raise unusable(
                folder,
                f"has a {graph} with weights in {clipped(name)!r}, expected the name of a file"
                " next to it",
            )
        if not os.path.isfile(os.path.join(folder, os.path.dirname(graph), name)):
            raise unusable(folder, f"lacks {clipped(name)!r}, the weights of its {graph}")
    return [os.path.join(os.path.dirname(graph), name) for name in names]


def locations(data: bytes | mmap.mmap) -> set[bytes]:
    """Every place outside the graph that one of its tensors names, whether it is used or not.

    Raises:
        ValueError: It is no protobuf message, or one of far too many parts.
    """
    found: set[bytes] = set()
    waiting = [("model", 0, len(data))]
    left = _MOST_FIELDS
    while waiting:
        kind, start, end = waiting.pop()
        if kind == "entry":
            fields = [
                (number, data[first:last]) for number, first, last in _fields(data, start, end)
            ]
            if (_KEY, _LOCATION) in fields:
                found |= {value for number, value in fields if number == _VALUE} or {b""}
            continue
        for number, first, last in _fields(data, start, end):
            left -= 1
            if left < 0:
                raise ValueError(f"a graph of more than {_MOST_FIELDS} parts")
            if number in _PARTS[kind]:
                waiting.append((_PARTS[kind][number], first, last))
    return found


def _fields(data: bytes | mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each field of a message; for a plain number both are its end."""
    while start < end:
        key, first = _number(data, start)
        if key > _LARGEST_FIELD:
            raise ValueError(f"no field at byte {start}")
        kind = key & 7
        if kind == _SIZED:
            length, first = _number(data, first)
            start = first + length
        elif kind == _PLAIN:
            first = start = _number(data, first)[1]
        elif kind in _FIXED_BYTES:
            first = start = first + _FIXED_BYTES[kind]
        else:
            raise ValueError(f"a field of kind {kind} at byte {start}")
        if start > end:
            raise ValueError(f"cut off at byte {end}")
        yield key >> 3, first, start


def _number(data: bytes | mmap.mmap, place: int) -> tuple[int, int]:
    """A number of 7 bits a byte, the lowest first, and where it ends."""
    if place < len(data) and data[place] < 0x80:
        return data[place], place + 1
    value = 0
    for step, byte in enumerate(data[place : place + _LONGEST_NUMBER]):
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, place + step + 1
    raise ValueError(f"no number at byte {place}")
