"""What a folder without a store holds, and how long it takes to index: asked before one is made.

The times are of one core per figure below, rounded: they tell seconds from hours, not more.
"""

import os
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from filestore.core.errors import FilestoreError
from filestore.extract.folder import documents

LOOKS_S: Final = 3.0
"""How long a folder is walked; what is found by then is shown as a part."""
_START_S: Final = 1.0
_READ_S: Final = 1.8e-6
"""A byte read, cut and indexed by words: 5.2 MB of Markdown in 9.5 s, 0.6 MB of PDF in 1.0 s."""
_FILE_S: Final = 1e-3
"""A file of one line: 4,000 in 5 s."""
_PASSAGE_BYTES: Final = 870
_PASSAGE_S: Final = 0.11
"""A passage of that length, embedded by MiniLM on one core: 400 in 45 s."""
_KINDS: Final = 4
"""Kinds of documents that are named; the rest is counted."""


class FolderLook(Struct, frozen=True, kw_only=True):
    """What was seen."""

    kinds: Sequence[tuple[str, int]]
    """Suffix, without its dot, and how many documents have it; most first."""
    size_bytes: int
    """Of all documents."""
    is_whole: bool = True
    """Whether all of it was seen in time."""

    @property
    def documents(self) -> int:
        """How many there are."""
        return sum(number for _, number in self.kinds)

    @property
    def searchable_s(self) -> float:
        """How long it takes until words are found."""
        return _START_S + self.documents * _FILE_S + self.size_bytes * _READ_S

    @property
    def meaning_s(self) -> float:
        """How long until meaning is, with the model that comes along."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        passages = max(self.documents, self.size_bytes / _PASSAGE_BYTES)
        return self.searchable_s + passages * _PASSAGE_S / cores

    def words(self, *, meaning: bool = True) -> str:
        """All of it in a sentence; without the time of meaning where no model finds it."""
        if not self.documents:
            return "no documents here" if self.is_whole else "no documents found so far"
        named = [f"{number:,} {kind or 'without a suffix'}" for kind, number in self.kinds[:_KINDS]]
        if rest := sum(number for _, number in self.kinds[_KINDS:]):
            named.append(f"{rest:,} more")
        least = "" if self.is_whole else "at least "
        counted = f"{least}{self.documents:,} document{'s' * (self.documents > 1)}"
        small = self.size_bytes < 1e6
        size = f"{self.size_bytes / 1e3:,.0f} kB" if small else f"{self.size_bytes / 1e6:,.1f} MB"
        found = f"{counted} ({', '.join(named)}; {size}): searchable in about "
        later = f", by meaning in {_duration(self.meaning_s)}" if meaning else ""
        return f"{found}{_duration(self.searchable_s)}{later}"


def look_at_folder(folder: str, *, within_s: float = LOOKS_S) -> FolderLook:
    """Count the documents that a store in place would index; opens none of them.

    Args:
        folder: The folder.
        within_s: When to stop.

    Returns:
        What was seen until then.

    Raises:
        FilestoreError: Its ignore rules cannot be followed, or it cannot be listed.
    """
    deadline, is_whole = time.monotonic() + within_s, True

    def is_late(_: str) -> bool:
        nonlocal is_whole
        is_whole = is_whole and time.monotonic() < deadline
        return not is_whole

    try:
        paths = documents(folder, leave_out=is_late, any_name=True).paths
    except OSError as error:
        raise FilestoreError(f"{folder} cannot be listed: {error.strerror or error}") from error
    kinds: Counter[str] = Counter()
    size = 0
    for path in paths:
        try:
            size += os.stat(os.path.join(folder, path), follow_symlinks=False).st_size
        except OSError:
            continue
        kinds[os.path.splitext(path)[1][1:].lower()] += 1
    return FolderLook(kinds=tuple(kinds.most_common()), size_bytes=size, is_whole=is_whole)


def _duration(seconds: float) -> str:
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {name}"
    return f"{max(seconds, 1):.0f} s"
