"""What indexed files are now, looked at as an answer is given: fresh, edited, gone, or withheld.

Reads the files of hits and decides nothing about ranking. One rule: text is shown only of a file
that was read just now and could be indexed as it is.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from filestore import worktree
from filestore.catalog import FileRow
from filestore.chunkfile import Chunk
from filestore.observation import INDEXED, Observation
from filestore.observe import observe
from filestore.places import Places

Freshness = Literal["fresh", "edited", "gone"]
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_UNREADABLE: Final = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one file is now."""

    freshness: Freshness | None
    """None for a file that is withheld."""
    chunk: Chunk | None = None
    """What it says, where it is shown."""
    code: str = ""
    """Why it is withheld."""


_GONE: Final = Look(freshness="gone")


class Looker:
    """Looks at files below `chunked/` for one answer after another."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._chunked: int | None = None
        self._problem: Look | None = None
        self._unmerged: frozenset[str] = frozenset()

    def close(self) -> None:
        """Let go of the folder."""
        if self._chunked is not None:
            os.close(self._chunked)
            self._chunked = None

    def begin(self) -> None:
        """Prepare for one answer: what git has as unmerged is asked while git is busy, not else."""
        busy = worktree.operation(self._places.root)
        self._unmerged = frozenset(worktree.unmerged(self._places.chunked) if busy else ())
        self.close()
        self._problem = None
        try:
            self._chunked = os.open(self._places.chunked, _FOLDER_FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            self._problem = _GONE
        except OSError:
            self._problem = Look(freshness=None, code=_UNREADABLE)

    @property
    def sees(self) -> bool:
        """Whether there is a tree at all, so that looking at more files may find some."""
        return self._problem is None

    def look(self, row: FileRow) -> Look:
        """Read a file now: what it says, and whether that is what was indexed."""
        if self._chunked is None:
            return self._problem or _GONE
        # What holds chunks ends in .md in either layout, and is no record.
        (seen,) = observe(self._chunked, [row.path], layout="tree", unmerged=self._unmerged)
        if not isinstance(seen, Observation):
            _, error = seen
            is_gone = isinstance(error, FileNotFoundError | NotADirectoryError)
            return _GONE if is_gone else Look(freshness=None, code=_UNREADABLE)
        if seen.state != INDEXED:
            return Look(freshness=None, code=seen.state)
        same = seen.file_hash == row.file_hash
        return Look(freshness="fresh" if same else "edited", chunk=seen.chunk)


def notes(looks: Sequence[Look]) -> list[str]:
    """What is to be said of files that would have answered; pure."""
    said = []
    gone = sum(look.freshness == "gone" for look in looks)
    if gone:
        said.append(f"{_files(gone)} of this answer {_are(gone)} gone: run 'filestore sync'")
    withheld: dict[str, int] = {}
    for look in looks:
        if look.freshness is None:
            withheld[look.code] = withheld.get(look.code, 0) + 1
    if withheld:
        said.append(_withheld(withheld))
    return said


def _withheld(codes: Mapping[str, int]) -> str:
    number = sum(codes.values())
    why = ", ".join(f"{count:,} {code}" for code, count in sorted(codes.items()))
    return f"{_files(number)} {_are(number)} left out ({why}): 'filestore status' says more"


def _files(number: int) -> str:
    return f"{number:,} file{'' if number == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
