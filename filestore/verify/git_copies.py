"""What git has of the files below `chunked/` that are no text: which copies lost line ends.

Reads git and the tree; changes nothing. One rule: a copy that shows no loss is not called
whole.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from filestore.config.layout import Places
from filestore.core.paths import StorePath
from filestore.core.safe_text import listed
from filestore.fs import disk
from filestore.fs.disk import WriteFailedError
from filestore.git import attributes, process, repository

MOST_BYTES: Final = 64 * 1024 * 1024
"""Larger copies are not looked into."""
_NAMED: Final = 5

Loss = Literal["in git", "here too", ""]


class Copy(Struct, frozen=True, kw_only=True):
    """One committed file that is no text."""

    path: StorePath
    loss: Loss
    """`in git`: the file here is whole. `here too`: it is not. Empty: none can be seen."""


def copies(places: Places) -> list[Copy]:
    """Every file that HEAD has below `chunked/` and that is no text, by path."""
    if places.is_in_place:
        # No rule of ours ever had git change line ends there.
        return []
    names = {
        path: name
        for path, name in sorted(repository.blob_names(places.root).items())
        if places.tree.holds(path) and not attributes.is_text(path)
    }
    return list(_compared(places.root, names)) if names else []


def _compared(root: str, names: dict[StorePath, str]) -> Iterator[Copy]:
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with process.Blobs(root) as blobs:
            for path, name in names.items():
                yield Copy(path=path, loss=_loss(_held(handle, path), _committed(blobs, name)))
    except process.NoAnswerError:
        return
    finally:
        os.close(handle)


def _loss(held: bytes, committed: bytes) -> Loss:
    if held != committed and attributes.stripped(held) == committed:
        return "in git"
    if attributes.lost_its_line_ends(committed):
        return "here too" if held in (b"", committed) else "in git"
    return ""


def _committed(blobs: process.Blobs, name: str) -> bytes:
    try:
        return blobs.read(name, MOST_BYTES)[1]
    except process.NoAnswerError:
        return b""


def _held(root: int, path: StorePath) -> bytes:
    """What a file holds now; nothing where it cannot be read."""
    try:
        return disk.read_below(root, path)[0]
    except (OSError, WriteFailedError):
        return b""


def summary(found: Sequence[Copy]) -> str:
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
