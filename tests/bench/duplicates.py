"""``filestore duplicates`` beside FAISS alone: ``python tests/bench/duplicates.py [--files N]``.

Both find all pairs of bodies above the same cosine, in whole processes and in turns. FAISS gets the
vectors as an array and does nothing but its range search.
"""

import os
import sys

import measure

from filestore.browse.vectors import Explorer
from filestore.store import Store

ABOVE = 0.95
RATIO = 3.0
PEAK_BYTES = 600 * measure.MIB
_FAISS = """
import sys, faiss, numpy
vectors = numpy.load(sys.argv[1])
index = faiss.IndexFlatIP(vectors.shape[1])
index.add(vectors)
limits, _, _ = index.range_search(vectors, float(sys.argv[2]))
print(limits[-1])
"""


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=20_000, folders=200, runs=3) as options:
        root = measure.indexed_store(options.work, options.files, options.folders)
        saved = os.path.join(options.work, "vectors.npy")
        count = _save(root, saved)
        ours, faiss = measure.alternate(
            options.runs + 1,
            lambda: measure.run(
                measure.filestore("duplicates", "--above", str(ABOVE)),
                folder=root,
                expected=measure.FOUND,
            ),
            lambda: measure.run([sys.executable, "-c", _FAISS, saved, str(ABOVE)]),
        )
        rows = [
            measure.times(
                "`duplicates`",
                measure.median_s(ours[1:]),
                "FAISS",
                measure.median_s(faiss[1:]),
                RATIO,
            ),
            measure.peak("peak memory", ours, PEAK_BYTES),
        ]
    title = f"Duplicates among {count:,} vectors"
    print(measure.table(f"{title}, median of {options.runs}", rows))


def _save(root: str, path: str) -> int:
    """Write the vectors of all bodies to a file; how many there are."""
    import numpy

    with Store(root, configuration=os.environ["XDG_CONFIG_HOME"]) as store:
        _, vectors = Explorer(store._parts).bodies()
    numpy.save(path, vectors)
    return len(vectors)


if __name__ == "__main__":
    main()
