"""``.ragmd`` beside FAISS + JSON: 1,000 documents of 10 chunks, vectors of 768 numbers.

``--files`` is documents, ``--folders`` chunks of each. A process of its own saves or loads once and
says how long that took, imports left out. The yardstick is what a program does by hand with the
same data: ``faiss.write_index``, ``numpy.save`` and ``json.dump``, each file synced, and the way
back. MB are 1,048,576 bytes. A chunk has a text of 60 characters; what a text of 600 costs is told.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import measure

DIMENSION: Final = 768
TEXT: Final = 60
LONG: Final = 600
SAVE_S: Final = 0.2
LOAD_S: Final = 0.26
SIZE_BYTES: Final = 42 * measure.MIB


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=1_000, folders=10, runs=5) as options:
        rows = _compared(options) + _longer(options)
    title = f"{options.files:,} documents × {options.folders} chunks × {DIMENSION} numbers"
    print(measure.table(f"{title}, median of {options.runs}", rows))


def _run(options: measure.Options, kind: str, what: str, text: int = TEXT) -> measure.Run:
    place = os.path.join(options.work, f"{kind}-{text}")
    size = [str(options.files), str(options.folders), str(text)]
    return measure.run([sys.executable, os.path.abspath(__file__), kind, what, place, *size])


def _seconds(runs: list[measure.Run]) -> float:
    """The median of what the processes measured themselves."""
    found = sorted(json.loads(one.output)["seconds"] for one in runs)
    return float(found[len(found) // 2])


def _compared(options: measure.Options) -> list[measure.Row]:
    """Each form and the yardstick in turns, saved and loaded."""
    rows = []
    for what, limit_s in (("save", SAVE_S), ("load", LOAD_S)):
        ragmd, ours, by_hand = measure.alternate(
            options.runs,
            lambda what=what: _run(options, "ragmd", what),
            lambda what=what: _run(options, "faiss-json", what),
            lambda what=what: _run(options, "by-hand", what),
        )
        yardstick_s = _seconds(by_hand)
        for name, runs, limit in (("ragmd", ragmd, limit_s), ("faiss-json", ours, None)):
            rows.append(_row(f"{what} {name}", _seconds(runs), yardstick_s, limit))
        rows.append(measure.peak(f"peak memory of {what} ragmd", ragmd))
    sizes = [
        sum(json.loads(runs[0].output)["sizes"]) / measure.MIB for runs in (ragmd, ours, by_hand)
    ]
    rows.append(
        measure.Row(
            figure="size of ragmd",
            ours=f"{sizes[0]:.1f} MB",
            yardstick=f"by hand {sizes[2]:.1f} MB",
            compared=f"× {sizes[0] / sizes[2]:.2f}",
            goal=f"≤ {SIZE_BYTES / measure.MIB:.0f} MB",
            met=sizes[0] * measure.MIB <= SIZE_BYTES,
        )
    )
    rows.append(measure.Row(figure="size of faiss-json", ours=f"{sizes[1]:.1f} MB"))
    return rows


def _row(figure: str, ours_s: float, by_hand_s: float, limit_s: float | None) -> measure.Row:
    return measure.Row(
        figure=figure,
        ours=measure.milliseconds(ours_s),
        yardstick=f"by hand {measure.milliseconds(by_hand_s)}",
        compared=f"× {ours_s / by_hand_s:.2f}",
        goal="–" if limit_s is None else f"≤ {measure.milliseconds(limit_s)}",
        met=None if limit_s is None else ours_s <= limit_s,
    )


def _longer(options: measure.Options) -> list[measure.Row]:
    rows = []
    for what in ("save", "load"):
        runs = [_run(options, "ragmd", what, LONG) for _ in range(options.runs)]
        size = sum(json.loads(runs[0].output)["sizes"]) / measure.MIB
        seconds = measure.milliseconds(_seconds(runs))
        rows.append(
            measure.Row(figure=f"{what} ragmd with texts of {LONG}: {size:.1f} MB", ours=seconds)
        )
    return rows


# What a child does


def child(kind: str, what: str, place: str, documents: int, chunks: int, text: int) -> None:
    """Save or load once, and say how long it took."""
    act = (_saving if what == "save" else _loading)(kind, place, documents, chunks, text)
    started = time.perf_counter()
    act()
    seconds = time.perf_counter() - started
    paths = [place]
    if os.path.isdir(place):
        paths = [os.path.join(place, name) for name in sorted(os.listdir(place))]
    sizes = [os.path.getsize(path) for path in paths]
    print(json.dumps({"seconds": seconds, "sizes": sizes}))


def _texts(documents: int, chunks: int, text: int) -> Iterator[tuple[str, list[str]]]:
    for document in range(documents):
        name = f"document-{document:04}"
        yield name, [f"{name}, chunk {chunk}. ".ljust(text, "x") for chunk in range(chunks)]


def _vectors(documents: int, chunks: int) -> Any:
    import numpy

    rows = numpy.random.default_rng(0).standard_normal((documents * chunks, DIMENSION))
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(numpy.float32)


def _saving(kind: str, place: str, documents: int, chunks: int, text: int) -> Callable[[], object]:
    rows = _vectors(documents, chunks)
    if kind == "by-hand":
        texts = [one for _, some in _texts(documents, chunks, text) for one in some]
        return lambda: _save_by_hand(place, rows, texts)
    from filestore.exchange.base import Chunk, Collection, Resource

    form = _form(kind)
    resources = [
        Resource(
            name=name,
            chunks=tuple(
                Chunk(
                    path=f"{name}/chunk{at + 1}.md",
                    text=one,
                    vectors={0: rows[number * chunks + at]},
                )
                for at, one in enumerate(some)
            ),
        )
        for number, (name, some) in enumerate(_texts(documents, chunks, text))
    ]
    made = Collection(resources=resources, model="bench/1:768", dimension=DIMENSION)
    return lambda: form.write(place, made)


def _form(kind: str) -> Any:
    """A form that is loaded, with all that it imports when it is first used."""
    from filestore.exchange import document_map, mapped  # noqa: F401
    from filestore.exchange.base import open_form

    _vectors(1, 1)
    return open_form(kind)


def _loading(kind: str, place: str, documents: int, chunks: int, text: int) -> Callable[[], object]:
    del documents, chunks, text
    if kind == "by-hand":
        import faiss  # noqa: F401

        return lambda: _load_by_hand(place)
    form = _form(kind)
    return lambda: [list(resource.chunks) for resource in form.read(place)]


def _save_by_hand(place: str, rows: Any, texts: list[str]) -> None:
    import faiss
    import numpy

    os.makedirs(place, exist_ok=True)
    index = faiss.IndexFlatL2(DIMENSION)
    index.add(rows)
    faiss.write_index(index, os.path.join(place, "index.faiss"))
    numpy.save(os.path.join(place, "embeddings.npy"), rows)
    with open(os.path.join(place, "corpus.json"), "w", encoding="utf-8") as file:
        json.dump({"documents": texts, "count": len(texts)}, file)
    for name in os.listdir(place):
        descriptor = os.open(os.path.join(place, name), os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _load_by_hand(place: str) -> tuple[Any, Any, Any]:
    import faiss
    import numpy

    with open(os.path.join(place, "corpus.json"), encoding="utf-8") as file:
        corpus = json.load(file)
    rows = numpy.load(os.path.join(place, "embeddings.npy"))
    return faiss.read_index(os.path.join(place, "index.faiss")), rows, corpus


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ("ragmd", "faiss-json", "by-hand"):
        child(sys.argv[1], sys.argv[2], sys.argv[3], *map(int, sys.argv[4:7]))
    else:
        main()
