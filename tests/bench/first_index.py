"""How long a folder of notes is without an answer, and until its last text has its vector.

For each model `filestore init --in-place` of 100, 500, 1,000 and 10,000 notes of eight sections of some
100 tokens: until a keyword search answers, and until it ends. In turns: the model of the install,
and the builtin vectors, which cost next to nothing.
"""

import os
import random
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import measure

SECTIONS = 8
WORDS = (
    "river stone lake mountain bread winter lamp engine harbor letter music garden cloud paper "
    "signal bridge window market summer forest island doctor teacher kitchen history contract"
)
MODELS = ("minilm", "builtin")
POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """One first index."""

    answer_s: float
    whole_s: float
    cpu_s: float


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=10_000, folders=1, runs=1) as options:
        sizes = [size for size in (100, 500, 1_000, 10_000) if size <= options.files]
        rows = []
        for size in sizes or [options.files]:
            folder = os.path.join(options.work, f"notes-{size}")
            write_notes(Path(folder), size)
            actions = [lambda model=model, at=folder: first_index(at, model) for model in MODELS]
            found = measure.alternate(options.runs, *actions)
            ours, theirs = map(middle, found)
            texts = size * SECTIONS
            rows += [
                measure.times(
                    f"{size:,} notes, first answer", ours.answer_s, "builtin", theirs.answer_s, 1.1
                ),
                measure.Row(
                    figure=f"{size:,} notes, last vector",
                    ours=f"{ours.whole_s:,.1f} s",
                    yardstick=f"builtin {theirs.whole_s:,.1f} s",
                    compared=f"{texts / (ours.whole_s - ours.answer_s):,.0f} texts/s,"
                    f" {ours.cpu_s / texts * 1000:.1f} ms of processor time a text",
                ),
            ]
    print(measure.table(f"First index with {MODELS[0]}, median of {options.runs}", rows))


def middle(runs: list[Times]) -> Times:
    """The medians."""
    return Times(
        answer_s=statistics.median(one.answer_s for one in runs),
        whole_s=statistics.median(one.whole_s for one in runs),
        cpu_s=statistics.median(one.cpu_s for one in runs),
    )


def write_notes(folder: Path, count: int) -> None:
    """Notes of different words."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        chosen = random.Random(number)
        texts = [" ".join(chosen.choices(WORDS.split(), k=95)) for _ in range(SECTIONS)]
        parts = [f"# Part {part} of {number}\n\n{text}.\n" for part, text in enumerate(texts)]
        (folder / f"note{number}.md").write_text("\n".join(parts))


def first_index(folder: str, model: str) -> Times:
    """Index a folder from nothing; its store is removed again."""
    shutil.rmtree(Path(folder, ".filestore"), ignore_errors=True)
    Path(folder, "filestore.toml").unlink(missing_ok=True)
    command = measure.filestore("init", folder, "--in-place", "--embedder", model)
    began_s, answer_s = time.perf_counter(), 0.0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not answer_s and process.poll() is None:
        time.sleep(POLL_S)
        answer_s = time.perf_counter() - began_s if answers(folder) else 0.0
    _, status, usage = os.wait4(process.pid, 0)
    whole_s = time.perf_counter() - began_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} gave {process.returncode}")
    return Times(
        answer_s=answer_s or whole_s, whole_s=whole_s, cpu_s=usage.ru_utime + usage.ru_stime
    )


def answers(folder: str) -> bool:
    """Whether a keyword search finds something by now."""
    from filestore import FilestoreError, Store

    try:
        with Store(folder) as store:
            return bool(store.search("river", k=1, mode="keyword").hits)
    except FilestoreError:
        return False


if __name__ == "__main__":
    main()
