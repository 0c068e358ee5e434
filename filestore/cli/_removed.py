"""Commands and options of earlier versions, and what to use instead."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from filestore.core.errors import UsageError

REMOVED: Final = {
    "compare --min-ndcg": "--max-loss bounds the fall; 'filestore evaluate --json' has the mean",
    "compare --workflow": "run 'filestore compare REV --queries FILE --max-loss D' in CI",
    "embedder export": "sentence-transformers[onnx] writes a folder for onnxruntime: "
    'SentenceTransformer(MODEL, backend="onnx").save_pretrained(FOLDER), or '
    "'optimum-cli export onnx --model MODEL FOLDER'",
    "embeddings --model": "'filestore embeddings export --all PACK' writes those of every model",
    "export obsidian": "filestore export markdown TARGET",
    "import markdown": "index the folder where it lies: filestore init --in-place FOLDER",
    "import obsidian": "index the vault where it lies: filestore init --in-place VAULT",
    "log --path": "git log --follow -- FILE",
    "repair --apply": "look with 'filestore repair --plan', then 'filestore repair --yes' with the "
    "same --only and --path",
    "repair --truth": "it is called --write-files",
    "tui --findings": "'filestore tui --page verify' verifies, and 'filestore verify' prints",
    "tui --serve": "'filestore serve' has a page for browsers, behind a token",
}
"""A command, or a command and a word behind it: an option, its value, the name of an action."""


def refuse_removed(command: str, words: Sequence[str]) -> None:
    """Name what a call uses that is gone.

    Raises:
        UsageError: The command, or a word behind it, was removed.
    """
    own = words[: words.index("--")] if "--" in words else words
    # Any other word is a name of something, which may be called so.
    pairs = pairwise(("-", *own))
    some = [word for before, word in pairs if "-" in (before[:1], word[:1])]
    named = [command, *(f"{command} {word}" for word in some)]
    named += [f"{command} {word.partition('=')[0]}" for word in some if word.startswith("--")]
    for key in named:
        if key in REMOVED:
            raise UsageError(f"'{key}' was removed", remedy=REMOVED[key])
