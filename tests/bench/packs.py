"""``filestore embeddings export`` and ``import`` beside copying the file: ``--files`` is vectors.

A small store whose cache has as many vectors as are asked for, of 384 numbers each; all of them go
into a pack, and into a clone that has no cache. The yardstick is a process that copies the pack and
syncs it. Then ten vectors are added: what of the next pack is new is what a delta has to carry.
"""

import json
import os
import random
import shutil
import sys
from pathlib import Path

import measure

STORE_FILES = 40
DIMENSION = 384
PEAK_BYTES = 256 * measure.MIB
ADDED = 10
_COPY = """
import os, shutil, sys
shutil.copyfile(sys.argv[1], sys.argv[2])
descriptor = os.open(sys.argv[2], os.O_RDONLY)
os.fsync(descriptor)
"""
_BLOCK = 20_000


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=100_000, folders=2, runs=3) as options:
        root = measure.indexed_store(options.work, STORE_FILES, options.folders)
        if not os.path.exists(_pack(options.work, "made")):
            _filled(root, options.files)
        rows = _rows(options, root)
        _filled(root, ADDED)
        rows.append(_changed(options, root))
    title = f"Packs of {options.files:,} vectors, median of {options.runs}"
    print(measure.table(title, rows))


def _rows(options: measure.Options, root: str) -> list[measure.Row]:
    pack, copy = _pack(options.work, "made"), _pack(options.work, "copied")
    exported, copied = measure.alternate(
        options.runs,
        lambda: _export(root, pack),
        lambda: measure.run([sys.executable, "-c", _COPY, pack, copy]),
    )
    imported, again = [], []
    for _ in range(options.runs):
        clone = _clone(options.work, root)
        imported.append(_import(clone, pack))
        again.append(_import(clone, pack))
    synced = measure.run(measure.filestore("sync", "--json"), folder=clone)
    copy_s = measure.median_s(copied)
    return [
        _row("export", exported, copy_s),
        _row("import into an empty cache", imported, copy_s),
        _row("import of what is there", again, copy_s),
        measure.peak("peak memory of an export", exported, PEAK_BYTES),
        measure.peak("peak memory of an import", imported, PEAK_BYTES),
        measure.counted("texts embedded after it", json.loads(synced.output)["embedded"], 0),
    ]


def _row(figure: str, runs: list[measure.Run], copy_s: float) -> measure.Row:
    ours_s = measure.median_s(runs)
    return measure.Row(
        figure=figure,
        ours=f"{ours_s:.2f} s",
        yardstick=f"copy {copy_s:.2f} s",
        compared=f"× {ours_s / copy_s:.1f}",
    )


def _changed(options: measure.Options, root: str) -> measure.Row:
    """How many bytes of rows the next pack has that this one has not."""
    pack, later = _pack(options.work, "made"), _pack(options.work, "later")
    _export(root, later)
    grown = os.path.getsize(later) - os.path.getsize(pack)
    before, after = (set(_pieces(path)) for path in (pack, later))
    return measure.Row(
        figure=f"rows of the next pack that are new, after {ADDED} more texts",
        ours=f"{len(after - before):,}",
        yardstick=f"{grown:,} bytes longer",
    )


def _pieces(path: str) -> list[bytes]:
    """The rows of a pack of one model, each by its key and checksum."""
    from filestore.embed.pack import Pack

    with Pack.open(path) as pack, open(path, "rb") as file:
        (model,) = pack.models
        file.seek(model.start)
        return [file.read(model.row_bytes)[:40] for _ in range(model.vectors)]


def _export(root: str, pack: str) -> measure.Run:
    return measure.run(measure.filestore("embeddings", "export", "--all", pack), folder=root)


def _import(root: str, pack: str) -> measure.Run:
    return measure.run(measure.filestore("embeddings", "import", pack), folder=root)


def _clone(work: str, root: str) -> str:
    """The store without anything derived, as git would give it."""
    clone = os.path.join(work, "clone")
    shutil.rmtree(clone, ignore_errors=True)
    shutil.copytree(root, clone, ignore=shutil.ignore_patterns(".sidecar", ".undo"))
    return clone


def _pack(work: str, name: str) -> str:
    return os.path.abspath(os.path.join(work, f"{name}.fspack"))


def _filled(root: str, count: int) -> None:
    """Have a process of its own fill the cache, so that this one stays small."""
    measure.run([sys.executable, __file__, "fill", root, str(count)])


def fill(root: str, count: int) -> None:
    """Put vectors of texts that nobody has into the cache of a store; others for each count."""
    import numpy

    from filestore.embed.cache import EmbeddingCache

    chance, generator = random.Random(count), numpy.random.default_rng(count)
    with EmbeddingCache.open(str(Path(root, ".sidecar", "embeddings.sqlite"))) as cache:
        (fingerprint,) = cache.fingerprints()
        for start in range(0, count, _BLOCK):
            size = min(_BLOCK, count - start)
            vectors = generator.standard_normal((size, DIMENSION)).astype(numpy.float32)
            vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
            cache.put(fingerprint, [chance.randbytes(32) for _ in range(size)], vectors)


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        fill(sys.argv[2], int(sys.argv[3]))
    else:
        main()
