"""How long a folder of notes is without an answer, and until its last text has its vector.

For each model `filestore init --in-place` of 100, 500, 1,000 and 10,000 notes of eight sections of
some 100 tokens: until a keyword search answers, and until it ends. In turns: the model of the
install, and the builtin vectors, which cost next to nothing. ``--interrupted``: of 100 notes, ended
by Ctrl-C at ten moments, and gone on with.
"""

import json
import os
import random
import re
import shutil
import signal
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
MOMENTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """One first index."""

    answer_s: float
    whole_s: float
    cpu_s: float


def main() -> None:
    """Measure and print the table."""
    flags = ("interrupted",)
    with measure.options(__doc__ or "", files=10_000, folders=1, runs=1, flags=flags) as options:
        if options.flags:
            print(interrupted(os.path.join(options.work, "notes")))
            return
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


def clear(folder: str) -> None:
    """Remove the store of a folder."""
    shutil.rmtree(Path(folder, ".filestore"), ignore_errors=True)
    Path(folder, "filestore.toml").unlink(missing_ok=True)


def first_index(folder: str, model: str) -> Times:
    """Index a folder from nothing; its store is removed again."""
    clear(folder)
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


def interrupted(folder: str) -> str:
    """What each moment left, and what the next command made of it."""
    # A shell that starts this behind itself lets its children ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    write_notes(Path(folder), 100)
    whole_s = first_index(folder, MODELS[0]).whole_s
    lines = [
        "| After | Said | Answers | `sync` embeds | Texts | Then |",
        "|--:|---|---|--:|--:|---|",
    ]
    for number in range(1, MOMENTS + 1):
        clear(folder)
        after_s = whole_s * number / (MOMENTS + 1)
        init = measure.filestore("init", folder, "--in-place", "--embedder", MODELS[0])
        process = subprocess.Popen(init, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        said = re.findall(rb"[\d,]+ of [\d,]+ texts", process.communicate()[1]) or [b"-"]
        found = "yes" if answers(folder) else "no"
        begun = os.path.isdir(os.path.join(folder, ".filestore"))
        if not begun:
            measure.run(init)
        synced = json.loads(measure.run(measure.filestore("sync", "--json"), folder=folder).output)
        status = measure.run(measure.filestore("status"), folder=folder, expected=measure.FOUND)
        then = "clean" if status.exit_code == 0 else "not clean"
        embedded = synced["embedded"] if begun else "init again"
        row = (f"{after_s:.1f} s", said[-1].decode(), found, embedded, 100 * SECTIONS, then)
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


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
