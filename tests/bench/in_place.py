"""A folder of notes indexed in place, beside the same notes added to a store of chunk files.

Whole processes in turns, in wall and in processor time: first index (``init --in-place`` against
``init`` and ``add``), ``status`` (and ``git status`` of the notes), ``sync`` after edits, a search.
What lies on disk is counted; the folder of notes holds nothing more than its settings.
"""

import contextlib
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import measure
from stores import TextMaker, commit_tree

FIRST_INDEX = 1.3
STATUS = 1.1
"""``status`` and what it is held against are one program: what differs is the layout."""
BESIDE_GIT = 2.0
MANY = 50_000
"""From so many notes on it is held against git: before, the start of Python is what counts."""
SECTIONS = 3
"""Of a note, each of its own heading."""
WORDS = 110
QUERY = "people mithing other"
EDITS = (1, 10)


def main() -> None:
    """Measure and print the table."""
    with measure.options(__doc__ or "", files=20_000, folders=200, runs=5) as options:
        notes = os.path.join(options.work, f"life-{options.files}-{options.folders}")
        if not os.path.isdir(notes):
            make_notes(notes, options.files, options.folders)
            commit_tree(notes)
        chunks = os.path.join(options.work, f"chunks-of-{options.files}-{options.folders}")
        rows = _first_index(notes, chunks)
        rows += _sizes(notes, chunks, options.files)
        rows += _status(notes, chunks, options.files, options.runs)
        rows += [row for count in EDITS for row in _edits(notes, chunks, count, options.runs)]
        rows += _searches(notes, chunks, options.runs)
    title = f"In place and as chunk files: {options.files:,} notes of {SECTIONS} sections"
    print(measure.table(f"{title}, median of {options.runs}", rows))


def make_notes(root: str, files: int, folders: int, seed: int = 7) -> None:
    """Notes with frontmatter, headings, tags and links."""
    maker = TextMaker(seed)
    for folder in range(folders):
        path = os.path.join(root, f"area-{folder:04d}")
        os.makedirs(path)
        for number in range(files // folders):
            name = f"{maker.word()} {number:05d}"
            parts = [f"---\naliases: [{maker.word()} {maker.word()}]\n---\n# {maker.word()}\n"]
            parts += [
                f"## {maker.word()} {maker.word()}\n\n{maker.text(WORDS)}" for _ in range(SECTIONS)
            ]
            parts.append(f"#{maker.word()} see [[{maker.word()} {number // 2:05d}]]\n")
            Path(path, f"{name}.md").write_text("\n".join(parts), "utf-8")


def _first_index(notes: str, chunks: str) -> list[measure.Row]:
    """Both made anew; another pair before them compiles modules."""

    def in_place(folder: str) -> measure.Run:
        shutil.rmtree(Path(folder, ".filestore"), ignore_errors=True)
        Path(folder, "filestore.toml").unlink(missing_ok=True)
        words = ("init", "--in-place", "--embedder", "builtin")
        return measure.run(measure.filestore(*words), folder=folder)

    def as_chunks(store: str, folder: str) -> measure.Run:
        shutil.rmtree(store, ignore_errors=True)
        made = measure.run(measure.filestore("init", store, "--embedder", "builtin"))
        added = measure.run(measure.filestore("--store", store, "add", "--no-copy", folder))
        return _together(made, added)

    with contextlib.ExitStack() as stack:
        small = f"{notes}-warm"
        stack.callback(shutil.rmtree, small, ignore_errors=True)
        stack.callback(shutil.rmtree, f"{chunks}-warm", ignore_errors=True)
        make_notes(small, 4, 1)
        as_chunks(f"{chunks}-warm", small)
        in_place(small)
    # Without the settings of the store in place, which a folder that is added shall not have.
    theirs = _without_store(notes, lambda: as_chunks(chunks, notes))
    ours = in_place(notes)
    return [
        *_compared("first index", [ours], [theirs], FIRST_INDEX),
        measure.peak("first index in place: peak memory", [ours]),
        measure.peak("as chunks: peak memory", [theirs]),
    ]


def _without_store(notes: str, action: Callable[[], measure.Run]) -> measure.Run:
    shutil.rmtree(Path(notes, ".filestore"), ignore_errors=True)
    Path(notes, "filestore.toml").unlink(missing_ok=True)
    return action()


def _together(first: measure.Run, second: measure.Run) -> measure.Run:
    """Two processes after another, as one."""
    return measure.Run(
        wall_s=first.wall_s + second.wall_s,
        cpu_s=first.cpu_s + second.cpu_s,
        peak_bytes=max(first.peak_bytes, second.peak_bytes),
        exit_code=second.exit_code,
        output=second.output,
    )


def _compared(
    figure: str, ours: list[measure.Run], theirs: list[measure.Run], limit: float
) -> list[measure.Row]:
    """Wall time, and the processor time that the goal is about where a machine is busy."""
    rows = []
    for kind, median in (("", measure.median_s), (", processor time", measure.median_cpu_s)):
        rows.append(measure.times(f"{figure}{kind}", median(ours), "chunks", median(theirs), limit))
    return rows


def _sizes(notes: str, chunks: str, files: int) -> list[measure.Row]:
    theirs = _bytes_below(chunks)
    ours = _bytes_below(os.path.join(notes, ".filestore"))
    said = _bytes_below(notes) - ours - _bytes_below(os.path.join(notes, ".git"))
    found = sum(len(names) for _, _, names in _walk(notes)) - 1
    return [
        measure.Row(
            figure="on disk beside the notes",
            ours=f"{ours / measure.MIB:.1f} MB",
            yardstick=f"chunks {theirs / measure.MIB:.1f} MB",
            compared=f"× {ours / theirs:.2f}, notes {said / measure.MIB:.1f} MB",
        ),
        measure.counted("files in the folder, without settings", found, files),
    ]


def _walk(root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", ".filestore")]
        yield folder, folders, names


def _bytes_below(root: str) -> int:
    return sum(
        os.lstat(os.path.join(folder, name)).st_blocks * 512
        for folder, _, names in os.walk(root)
        for name in names
    )


def _status(notes: str, chunks: str, files: int, runs: int) -> list[measure.Row]:
    command = measure.filestore("status")
    ours, theirs, git = measure.alternate(
        runs + 1,
        lambda: measure.run(command, folder=notes, expected=measure.FOUND),
        lambda: measure.run(command, folder=chunks, expected=measure.FOUND),
        lambda: measure.run(["git", "status"], folder=notes),
    )
    # The first of each warms the cache.
    rows = _compared("`status`", ours[1:], theirs[1:], STATUS)
    ours_s, git_s = measure.median_s(ours[1:]), measure.median_s(git[1:])
    rows.append(
        measure.times("`status`", ours_s, "`git status`", git_s, BESIDE_GIT)
        if files >= MANY
        else measure.Row(
            figure="`status`",
            ours=measure.milliseconds(ours_s),
            yardstick=f"`git status` {measure.milliseconds(git_s)}",
            compared=f"{(ours_s - git_s) * 1000:+,.0f} ms",
        )
    )
    rows.append(measure.peak("`status` in place: peak memory", ours))
    rows.append(
        measure.counted(
            "documents opened by `status`", measure.chunk_files_opened(command, notes), 0
        )
    )
    return rows


def _edits(notes: str, chunks: str, count: int, runs: int) -> list[measure.Row]:
    """A line at the end of some files, never seen before; afterwards all is as before."""
    chance = random.Random(count)
    ours: list[measure.Run] = []
    theirs: list[measure.Run] = []
    for root, tree, found in ((notes, notes, ours), (chunks, f"{chunks}/chunked", theirs)):
        found_files = (one for one in Path(tree).rglob("*.md") if one.is_file())
        paths = sorted(str(one) for one in found_files if ".filestore" not in one.parts)
        for _ in range(runs):
            with _edited(root, chance.sample(paths, count)):
                found.append(
                    measure.run(measure.filestore("sync"), folder=root, expected=measure.FOUND)
                )
    name = f"`sync` after {count} edit{'s' if count > 1 else ''}"
    return _compared(name, ours, theirs, FIRST_INDEX)


@contextlib.contextmanager
def _edited(root: str, paths: list[str]) -> Iterator[None]:
    before = {path: Path(path).read_bytes() for path in paths}
    line = f"\nEdited just now, at {time.time_ns()}\n".encode()
    try:
        for path, data in before.items():
            Path(path).write_bytes(data + line + os.path.basename(path).encode())
        yield
    finally:
        for path, data in before.items():
            Path(path).write_bytes(data)
        measure.run(measure.filestore("sync"), folder=root, expected=measure.FOUND)


def _searches(notes: str, chunks: str, runs: int) -> list[measure.Row]:
    """Whole processes, and the same question again in an open store."""
    command = measure.filestore("search", QUERY)
    ours, theirs = measure.alternate(
        runs + 1,
        lambda: measure.run(command, folder=notes, expected=measure.FOUND),
        lambda: measure.run(command, folder=chunks, expected=measure.FOUND),
    )
    rows = _compared("cold `search`", ours[1:], theirs[1:], FIRST_INDEX)
    warm, theirs_warm = _warm_s(notes, runs), _warm_s(chunks, runs)
    return [*rows, measure.times("warm search", warm, "chunks", theirs_warm, FIRST_INDEX)]


def _warm_s(root: str, runs: int) -> float:
    from filestore.store import Store

    with contextlib.closing(Store(root)) as store:
        maker = TextMaker(3)
        queries = [f"{maker.word()} {maker.word()}" for _ in range(4 * runs)]
        store.search(QUERY)
        started = time.process_time()
        for query in queries:
            store.search(query)
        return (time.process_time() - started) / len(queries)


if __name__ == "__main__":
    main()
