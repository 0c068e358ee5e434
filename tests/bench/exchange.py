"""``filestore export FORM`` and ``import FORM`` beside reading and writing the same bytes.

Forms are named first; without any, all that can be written here are measured. A store with a vector
for each text goes out, and into an empty store. The yardsticks are processes that do nothing else:
for an export one that reads the chunk files and the embeddings, and writes and syncs the bytes of
the form; for an import one that reads these bytes and writes the chunk files, each under another
name, synced and renamed, 16 at a time, and the bytes of the sidecar, synced. The second row of an
import compares it with the same and a `filestore sync` in place of the sidecar's bytes, the vectors
being there: what indexing costs, whoever wrote the files.
"""

import os
import shutil
import sys
from pathlib import Path

import measure

PEAK_BYTES = 1024 * measure.MIB
LIMIT = 2.0
_OUT = """
import os, sys
root, form, copy = sys.argv[1:]
for folder, _, names in os.walk(os.path.join(root, "chunked")):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            file.read()
with open(os.path.join(root, ".sidecar", "embeddings.sqlite"), "rb") as file:
    while file.read(1 << 20):
        pass
def copied(source, target):
    with open(source, "rb") as one, open(target, "wb") as other:
        while data := one.read(1 << 20):
            other.write(data)
        other.flush()
        os.fsync(other.fileno())
if os.path.isdir(form):
    for folder, _, names in os.walk(form):
        place = os.path.join(copy, os.path.relpath(folder, form))
        os.makedirs(place, exist_ok=True)
        for name in names:
            copied(os.path.join(folder, name), os.path.join(place, name))
else:
    copied(form, copy)
"""
_IN = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
form, made, copy, with_sidecar = sys.argv[1:]
def blocks(path):
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            yield data
if os.path.isdir(form):
    for folder, _, names in os.walk(form):
        for name in names:
            for _ in blocks(os.path.join(folder, name)):
                pass
else:
    for _ in blocks(form):
        pass
def written(pair):
    source, target = pair
    with open(target + "~", "wb") as file:
        for data in blocks(source):
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(target + "~", target)
def tree(name):
    pairs, folders = [], []
    for folder, _, names in os.walk(os.path.join(made, name)):
        place = os.path.join(copy, os.path.relpath(folder, made))
        os.makedirs(place, exist_ok=True)
        folders.append(place)
        pairs += [(os.path.join(folder, one), os.path.join(place, one)) for one in names]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(written, pairs))
    for folder in folders:
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
tree("chunked")
if with_sidecar == "1":
    tree(".sidecar")
"""


def main() -> None:
    """Measure and print a table for each form."""
    from filestore.exchange.base import READ

    named = []
    while len(sys.argv) > 1 and sys.argv[1] in READ:
        named.append(sys.argv.pop(1))
    with measure.options(__doc__ or "", files=100_000, folders=1_000, runs=3) as options:
        root = measure.indexed_store(options.work, options.files, options.folders)
        for form in named or READ:
            title = f"{form}: {options.files:,} chunks with vectors, median of {options.runs}"
            print(measure.table(title, _rows(options, root, form)), flush=True)


def _rows(options: measure.Options, root: str, form: str) -> list[measure.Row]:
    target, copy = (os.path.join(options.work, f"{name}.{form}") for name in ("made", "copied"))
    _remove(target)
    measure.run(measure.filestore("export", form, target), folder=root)
    exported, plain_out = measure.alternate(
        options.runs,
        lambda: measure.run(measure.filestore("export", form, target), folder=root),
        lambda: _without(copy, [sys.executable, "-c", _OUT, root, target, copy]),
    )
    made = _empty(options.work, "made-store")
    imported, plain_in, then_synced = measure.alternate(
        options.runs,
        lambda: _imported(made, form, target),
        lambda: _written(options.work, target, made, "1"),
        lambda: _written_and_synced(options.work, target, made),
    )
    read, wrote = _size(target), _size(made)
    return [
        _row("export", exported, plain_out, f"{read / measure.MIB:,.0f} MiB"),
        _row("import", imported, plain_in, f"{wrote / measure.MIB:,.0f} MiB of files and sidecar"),
        _row("import", imported, then_synced, "files, then filestore sync"),
        measure.peak("peak memory of the export", exported, PEAK_BYTES),
        measure.peak("peak memory of the import", imported, PEAK_BYTES),
    ]


def _row(
    figure: str, ours: list[measure.Run], theirs: list[measure.Run], bytes_: str
) -> measure.Row:
    ours_s, theirs_s = measure.median_s(ours), measure.median_s(theirs)
    ratio = ours_s / theirs_s
    return measure.Row(
        figure=figure,
        ours=f"{ours_s:.2f} s",
        yardstick=f"read and write {theirs_s:.2f} s ({bytes_})",
        compared=f"× {ratio:.1f}",
        goal=f"× {LIMIT:g}",
        met=ratio <= LIMIT,
    )


def _imported(root: str, form: str, source: str) -> measure.Run:
    _empty(os.path.dirname(root), os.path.basename(root))
    return measure.run(measure.filestore("import", form, source), folder=root)


def _written(work: str, form: str, made: str, with_sidecar: str) -> measure.Run:
    copy = os.path.join(work, "written")
    return _without(copy, [sys.executable, "-c", _IN, form, made, copy, with_sidecar])


def _written_and_synced(work: str, form: str, made: str) -> measure.Run:
    """The time of both together."""
    copy = _empty(work, "written")
    sidecar = Path(copy, ".sidecar")
    sidecar.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(os.path.join(made, ".sidecar", "embeddings.sqlite"), sidecar)
    first = measure.run([sys.executable, "-c", _IN, form, made, copy, "0"])
    # Records name originals that are not there.
    second = measure.run(measure.filestore("sync"), folder=copy, expected=measure.FOUND)
    return measure.Run(
        wall_s=first.wall_s + second.wall_s,
        cpu_s=first.cpu_s + second.cpu_s,
        peak_bytes=max(first.peak_bytes, second.peak_bytes),
        exit_code=0,
        output=b"",
    )


def _without(path: str, command: list[str]) -> measure.Run:
    """Run a command that makes a path, which is not there before."""
    _remove(path)
    return measure.run(command)


def _empty(work: str, name: str) -> str:
    """A store without files."""
    root = os.path.abspath(os.path.join(work, name))
    _remove(root)
    measure.run(measure.filestore("init", root, "--embedder", "builtin"))
    return root


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.unlink(path)


def _size(path: str) -> int:
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(one.stat().st_size for one in Path(path).rglob("*") if one.is_file())


if __name__ == "__main__":
    main()
