"""The environment of a store: other writers, dead ones, git at work, line-ending rules and copies.

Changes nothing. One rule: a committed copy that shows no loss of line ends is not called whole.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from filestore.config.layout import Places, ancestors
from filestore.core.findings import Finding
from filestore.core.paths import StorePath, is_below
from filestore.core.safe_text import brief, listed
from filestore.fs import disk, lock, transaction
from filestore.fs.disk import WriteFailedError
from filestore.git import process, repository
from filestore.git.attributes import (
    NAME,
    OLD,
    AttributesFile,
    attributes_in,
    culprit,
    is_text,
    lost_its_line_ends,
    old_line,
    stripped,
)
from filestore.history import backup_store
from filestore.history.batch import Group


def findings(places: Places) -> list[Finding]:
    """What is under way while the store is looked at."""
    if lock.held(places.lock):
        # A living writer is in the middle of something, too.
        detail = f"held by {lock.holder(places.lock)}"
        found = [Finding(code="locked", path=places.part("lock"), detail=detail)]
    else:
        found = [*_broken_off(places), *backup_store.leftovers(places)]
    word, tree = repository.operation(places.root), process.work_tree(places.root)
    if word and tree is not None:
        path = StorePath(os.path.relpath(os.path.join(tree, ".git"), places.root))
        found.append(Finding(code="git-operation", path=path, detail=f"a git {word} is under way"))
    return [*found, *attributes(places)]


def _broken_off(places: Places) -> Iterator[Finding]:
    """Changes of truth files whose writer died half-way; not the completed ones."""
    for group in backup_store.broken_off(places.undo):
        if not _is_half(places.root, group):
            continue
        command = f"filestore undo {group.id}"
        if group.sequence:
            wanted = next(one.wanted for one in group.batches if one.sequence == group.sequence)
            word = "undo" if wanted == "before" else "redo"
            way_out = f"its {word} was broken off: 'filestore {word} {group.id}' goes on"
        else:
            way_out = f"it was broken off: '{command}' takes it back, or run it again"
        yield Finding(
            code="leftovers",
            path=StorePath(f"{places.undo_name}/{group.id}"),
            detail=f"{group.what}: {way_out}",
        )


def _is_half(root: str, group: Group) -> bool:
    """Whether files of a change are neither all as before nor all as after it."""
    held: dict[str, bytes | None] = {}
    with disk.folder_at(root) as handle:
        for path in group.links():
            try:
                seen = transaction.look(handle, path)
                held[path] = seen.digest if seen else None
            except (transaction.ChangedMeanwhile, WriteFailedError):
                held[path] = b""
    sides = (
        {path: links[0].entry.before for path, links in group.links().items()},
        {path: links[-1].entry.after for path, links in group.links().items()},
    )
    return not any(
        all(held[path] == (version.digest if version else None) for path, version in side.items())
        for side in sides
    )


def attributes(places: Places) -> Iterator[Finding]:
    """What has git change line ends in more than text of the store, where a line does.

    Among documents nothing is written that git reads, so nothing of it is ours to judge.
    """
    if not places.tree.is_written:
        return
    root = places.root
    tree = process.work_tree(root)
    line = old_line(attributes_in(root) or b"")
    found = None
    if tree is not None:
        # The files that git reads for what lies in the store, outermost first.
        folders = [folder for folder in ancestors(root) if is_below(folder, tree)]
        found = culprit(
            [
                AttributesFile(
                    folder="" if folder == root else os.path.relpath(root, folder),
                    data=attributes_in(folder) or b"",
                )
                for folder in reversed(folders)
            ]
        )
    if found is None and not line:
        return
    where, text = f"line {line}", OLD.decode()
    if found is not None and (found.folder or not line):
        up = "/".join(".." for name in found.folder.split("/") if name)
        above = f" of {up}/{NAME}" if up else ""
        where, text = f"line {found.number}{above}", found.line
    detail = (
        f"{where}, {brief(text)}, has git take the CRs out of pictures, PDFs and archives"
        " below chunked/ or source/"
    )
    yield Finding(code="unsafe-attributes", path=StorePath(NAME), detail=detail)


MOST_BYTES: Final = 64 * 1024 * 1024
"""Larger copies are not looked into."""
_NAMED: Final = 5

Loss = Literal["in git", "here too", ""]


class Copy(Struct, frozen=True, kw_only=True):
    """One committed file that is no text."""

    path: StorePath
    loss: Loss
    """`in git`: the file here is whole. `here too`: it is not. Empty: none can be seen."""


def committed_copies(places: Places) -> list[Copy]:
    """Every file that HEAD has below `chunked/` and that is no text, by path."""
    if not places.tree.is_written:
        # No rule of ours ever had git change line ends there.
        return []
    names = {
        path: name
        for path, name in sorted(repository.blob_names(places.root).items())
        if places.tree.holds(path) and not is_text(path)
    }
    if not names:
        return []
    found = []
    with (
        disk.folder_at(places.root) as handle,
        contextlib.suppress(process.NoAnswerError),
        process.Blobs(places.root) as blobs,
    ):
        for path, name in names.items():
            held, committed = b"", b""
            with contextlib.suppress(OSError, WriteFailedError):
                held = disk.read_below(handle, path)[0]
            with contextlib.suppress(process.NoAnswerError):
                committed = blobs.read(name, MOST_BYTES)[1]
            loss: Loss = ""
            if held != committed and stripped(held) == committed:
                loss = "in git"
            elif lost_its_line_ends(committed):
                loss = "here too" if held in (b"", committed) else "in git"
            found.append(Copy(path=path, loss=loss))
    return found


def losses(found: Sequence[Copy]) -> str:
    """What the copies have lost, as a sentence; pure."""
    in_git = [one.path for one in found if one.loss == "in git"]
    here = [one.path for one in found if one.loss == "here too"]
    rest = len(found) - len(in_git) - len(here)
    parts = []
    if in_git:
        parts.append(
            f"git's copy of {listed(in_git, _NAMED)} lost line ends, the file here did not: once"
            " this is repaired, 'git add --renormalize .' and a commit make it whole"
        )
    if here:
        parts.append(f"{listed(here, _NAMED)} lost line ends here, too: restore it from elsewhere")
    if rest:
        files = "1 committed file" if rest == 1 else f"{rest:,} committed files"
        parts.append(f"{files} that git took for text: a loss is neither seen nor ruled out")
    return "; ".join(parts)
