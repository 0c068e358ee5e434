"""What indexed files are now, looked at as results are given: fresh, edited, gone, or excluded.

Which of the fresh ones are outdated, their original being another, `outdated` tells.

Reads the files of hits and decides nothing about ranking. One rule: text is shown only of a file
that was read just now and could be indexed as it is.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from filestore.catalog import FileRow
from filestore.chunks import frontmatter
from filestore.chunks.layout import TREE
from filestore.chunks.observation import INDEXED, Observation
from filestore.chunks.observe import MAX_CHUNK_BYTES, observe
from filestore.config.layout import Places
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath
from filestore.fs import disk
from filestore.fs.disk import pass_limits
from filestore.git import repository

Freshness = Literal["fresh", "outdated", "edited", "gone"]
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_UNREADABLE: Final = "unreadable"
MISMATCH: Final = "map-mismatch"
"""Of a file whose row in the catalog is damaged: its path may be another file's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one file is now."""

    freshness: Freshness | None
    """None for a file that is excluded."""
    body: str = ""
    """What it says, where it is shown."""
    body_line: int = 1
    """The line of the file on which that begins."""
    headings: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()
    code: str = ""
    """Why it is excluded."""


_GONE: Final = Look(freshness="gone")


class Looker:
    """Looks at files below `chunked/` for one answer after another."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._chunked: int | None = None
        self._problem: Look | None = None
        self._unmerged: frozenset[ChunkPath] = frozenset()

    def close(self) -> None:
        """Let go of the folder."""
        if self._chunked is not None:
            os.close(self._chunked)
            self._chunked = None

    def begin(self) -> None:
        """Prepare for one answer: what git has as unmerged is asked while git is busy, not else."""
        busy = repository.operation(self._places.root)
        self._unmerged = frozenset(repository.unmerged(self._places.chunked) if busy else ())
        self.close()
        self._problem = None
        try:
            self._chunked = os.open(self._places.chunked, _FOLDER_FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            self._problem = _GONE
        except OSError as error:
            pass_limits(error)
            self._problem = Look(freshness=None, code=_UNREADABLE)

    @property
    def sees(self) -> bool:
        """Whether there is a tree at all, so that looking at more files may find some."""
        return self._problem is None

    def look(self, row: FileRow) -> Look:
        """Read a file now: what it says, and whether that is what was indexed."""
        if self._chunked is None:
            return self._problem or _GONE
        data = self._as_indexed(row)
        if data is not None:
            # These bytes were parsed when they were indexed.
            headings, pages = row.headings_and_pages()
            parts = frontmatter.split(data)
            return Look(
                freshness="fresh",
                body=parts.body.decode(),
                body_line=parts.head.count(b"\n") + 1,
                headings=headings,
                pages=pages,
            )
        # What holds chunks ends in .md in either layout, and is no record.
        (seen,) = observe(self._chunked, [row.path], layout=TREE, unmerged=self._unmerged)
        if not isinstance(seen, Observation):
            _, error = seen
            is_gone = isinstance(error, FileNotFoundError | NotADirectoryError)
            return _GONE if is_gone else Look(freshness=None, code=_UNREADABLE)
        if seen.state != INDEXED or seen.chunk is None:
            return Look(freshness=None, code=seen.state)
        chunk = seen.chunk
        same = seen.file_hash == row.file_hash
        return Look(
            freshness="fresh" if same else "edited",
            body=chunk.body,
            body_line=frontmatter.split(seen.data).head.count(b"\n") + 1,
            headings=chunk.headings,
            pages=chunk.pages,
        )

    def _as_indexed(self, row: FileRow) -> bytes | None:
        """The bytes of a file, read now; None where they are not those that were indexed."""
        if self._chunked is None or row.path in self._unmerged:
            return None
        try:
            data, _ = disk.read_below(self._chunked, row.path, limit=MAX_CHUNK_BYTES)
        except OSError as error:
            pass_limits(error)
            return None
        return data if content_hash(data) == row.file_hash else None


def notes(looks: Sequence[Look]) -> list[str]:
    """What is to be said of files that would have answered; pure."""
    said = []
    gone = sum(look.freshness == "gone" for look in looks)
    if gone:
        said.append(f"{_files(gone)} of these results {_are(gone)} gone: run 'filestore sync'")
    excluded: dict[str, int] = {}
    for look in looks:
        if look.freshness is None:
            excluded[look.code] = excluded.get(look.code, 0) + 1
    if excluded:
        number = sum(excluded.values())
        why = ", ".join(f"{count:,} {code}" for code, count in sorted(excluded.items()))
        more = "'filestore status' says more"
        if MISMATCH in excluded:
            more = "'filestore sync --full' repairs the catalog"
        said.append(f"{_files(number)} {_are(number)} excluded ({why}): {more}")
    return said


def _files(number: int) -> str:
    return f"{number:,} file{'' if number == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
