"""The truth files on disk: looked at, and changed as a whole or not at all.

Knows nothing of what they say. One rule: before a file changes, its bytes are kept in `.undo/`.
"""

import contextlib
import os
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial

from filestore.chunks.layout import Layout, look_at
from filestore.chunks.observation import Observation
from filestore.config.layout import Places
from filestore.core.caller import writing_program
from filestore.core.errors import RefusedError
from filestore.core.paths import CHUNKED, ChunkPath, StorePath, Tree
from filestore.fs import disk
from filestore.fs.disk import stat_values
from filestore.fs.stats import pack_stat
from filestore.fs.transaction import ChangedMeanwhile as ChangedMeanwhile
from filestore.fs.transaction import (
    Content,
    HalfReplacedError,
    Replacement,
    Replacing,
    Seen,
    collect_staged,
    content,
)
from filestore.history.backup_store import Originals
from filestore.history.batch import ChangedFile, Version, misplaced


class NoTruthPathError(RefusedError, ValueError):
    """A truth file was to be written where none belongs."""


def chunk_files(folder: str) -> Iterator[str]:
    """Markdown files below a folder, at any depth, relative to it."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(".md") and not name.startswith("."):
                yield os.path.relpath(os.path.join(path, name), folder)


def is_gone(places: Places, path: ChunkPath) -> bool:
    """Whether there is certainly no file of this name below `chunked/`."""
    try:
        os.lstat(os.path.join(places.chunked, path))
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass
    return False


def is_clean(places: Places, path: ChunkPath, entry: bytes | None) -> bool:
    """Whether a file below `chunked/` has the stat of an entry of the stat cache."""
    try:
        values = stat_values(os.lstat(os.path.join(places.chunked, path)))
    except OSError:
        return False
    return entry == pack_stat(values)


def collect_leftovers(places: Places) -> None:
    """Remove what a dead writer left in `chunked/` itself; folders in it when they are changed.

    Only for the holder of the writer's lock.
    """
    if not places.tree.is_written:
        return
    with disk.folder_at(places.root) as root:
        collect_staged(root, CHUNKED)


def look_at_existing(
    places: Places, paths: Sequence[ChunkPath], layout: Layout
) -> list[Observation]:
    """Observations of the files that are there.

    Raises:
        OSError: One is there and cannot be read.
    """
    if not os.path.isdir(places.chunked):
        return []
    found = []
    for look in look_at(places, paths, layout):
        if isinstance(look, Observation):
            found.append(look)
        elif not isinstance(look[1], FileNotFoundError):
            raise look[1]
    return found


def change(
    places: Places,
    changes: Mapping[StorePath, bytes | Content | None],
    *,
    before: Mapping[StorePath, bytes | Content | None],
    command: str,
    last: Sequence[StorePath] = (),
    group: str = "",
    unknown: Container[StorePath] = (),
    collects: bool = True,
    above: int = 0,
) -> str | None:
    """Keep the originals, write all files whole or none, then remove what is to go.

    Only for the holder of the writer's lock. A file is replaced by a new one, so that a second
    hard link to it keeps what it had; its permissions stay.

    Args:
        places: Where the store lies.
        changes: Path to its bytes; None removes the file.
        before: What the files hold that are there.
        command: What is being done, for the list of what can be undone.
        last: Those of the paths that are changed after all others: a record says all of it is done.
        group: What an earlier change of the same command returned: both are undone together.
        unknown: Those of the paths that hold what the catalog does not know.
        collects: Whether what was kept too long goes, if it can: once a command is enough.
        above: How many folders around the root hold files that may be changed.

    Returns:
        Under which name the originals are kept; None where nothing changes.

    Raises:
        ChangedMeanwhile: A file does not hold what was expected; nothing was touched.
        NoTruthPathError: A path is none of a truth file.
        HalfReplacedError: The disk refused in the middle and refused to take it back.
        WriteFailedError: The disk refused; all is as it was.
    """
    replacements = _replacements(changes, before, last, places.tree, above)
    if not replacements:
        return None
    with disk.folder_at(places.root, above=above) as root, Replacing(root, replacements) as swap:
        seen = swap.check()
        # Recorded first: who died while it staged files is known by where they were to lie.
        with Originals.open(places.undo) as originals:
            batch = originals.keep(
                command,
                [_entry(one, seen[one.path], one.path not in unknown) for one in replacements],
                {one.path: one.before for one in replacements if one.before},
                now_s=time.time(),
                by=writing_program(),
                group=group,
                folders=swap.lacking(),
            )
            undo = partial(originals.discard, batch.identifier)
            carry_out(places, swap, command=f"filestore undo {batch.identifier}", take_back=undo)
            originals.finish(batch.identifier)
            if collects:
                with contextlib.suppress(OSError):
                    originals.collect(batch, now_s=time.time())
            return batch.identifier


def _replacements(
    changes: Mapping[StorePath, bytes | Content | None],
    before: Mapping[StorePath, bytes | Content | None],
    last: Sequence[StorePath],
    tree: Tree,
    above: int,
) -> list[Replacement]:
    """What differs, in the order in which it is made; see `change` for what is raised."""
    final = set(last)
    order = [path for path in changes if path not in final]
    order += [path for path in dict.fromkeys(last) if path in changes]

    def whole(data: bytes | Content | None) -> Content | None:
        return content(data) if isinstance(data, bytes) else data

    found = [
        Replacement(
            path=path,
            before=whole(before.get(path)),
            after=whole(changes[path]),
            last=path in final,
        )
        for path in order
    ]
    found = [one for one in found if _digest(one.before) != _digest(one.after)]
    wrong = misplaced([_entry(one) for one in found], tree)
    wrong = wrong or next((one.path for one in found if one.path.count("../") > above), None)
    if wrong is not None:
        raise NoTruthPathError(f"{wrong} is not a place for such a file")
    return found


def _digest(held: Content | None) -> bytes | None:
    return held.digest if held else None


def _entry(one: Replacement, seen: Seen | None = None, is_indexed: bool = True) -> ChangedFile:
    mode, before, after = seen.mode if seen else None, _digest(one.before), _digest(one.after)
    return ChangedFile(
        path=one.path,
        before=Version(digest=before, mode=mode, indexed=is_indexed) if before else None,
        after=Version(digest=after) if after else None,
    )


def carry_out(
    places: Places,
    swap: Replacing,
    *,
    command: str,
    take_back: Callable[[], None],
    record: Callable[[], None] = lambda: None,
) -> None:
    """Replace the files of a change that is recorded.

    Args:
        places: Where the store lies, and who asks: a program changes nothing that is closed to it.
        swap: What is replaced; it was checked.
        command: What a person types to go on, where the disk refused in the middle.
        take_back: Takes the record back, where no file was touched after all.
        record: Records it, where that is still to be done.

    Raises:
        RefusedError: A program may not change one of them; nothing was touched.
    """
    try:
        if places.door is not None:
            from filestore.history.permission import require_permitted

            require_permitted(places, places.door, swap.replacements)
        record()
        swap.stage()
        swap.apply()
    except BaseException as error:
        if not swap.touched:
            take_back()
        elif isinstance(error, HalfReplacedError):
            error.remedy = f"{error.remedy or 'check the disk'}: {command}"
        raise
