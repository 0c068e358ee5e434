"""When what a person names changed: a file, one of its sections, or the answer to a question.

One rule: what is, or was, a file of the store is meant as one; all else is asked.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, Literal

from filestore.browse.file import UnknownPathError
from filestore.browse.meant import meant
from filestore.catalog import CatalogDamagedError, CatalogMissingError
from filestore.core.errors import UsageError
from filestore.core.paths import StorePath
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.safe_text import brief, paths_shown_so
from filestore.git import revisions
from filestore.git.lineage import relative_to_top
from filestore.git.process import NoAnswerError
from filestore.git.repository import git_work_tree
from filestore.past.events import Log, LogEntry, OnEntry, pass_over
from filestore.past.file_log import FileLog, merged
from filestore.past.query_log import SHALLOW, log_of_query
from filestore.search.answer import Mode
from filestore.sidecar.session import Parts

Meant = Literal["either", "path", "query"]
_WITH_LINE: Final = re.compile(r"(.+):([0-9]{1,9})", re.S)
_LONGEST: Final = 4096
"""No path is longer."""
_Target = tuple[str, int | None]
"""A file, relative to the top of the work tree, and a line of it."""


def log(
    home: Parts,
    asked: str,
    *,
    meant_as: Meant = "either",
    most: int = 100,
    count: int = 10,
    mode: Mode = "hybrid",
    embed: bool = False,
    on_progress: OnProgress = ignore,
    on_entry: OnEntry = pass_over,
) -> Log:
    """When something changed, and by which commit, newest first.

    Args:
        home: The store's own parts.
        asked: A file of the store as it is or was called, an original, either with ``:LINE``; or a
            question.
        meant_as: Whether it can be either.
        most: Of a file so many changes are given, of a question so many commits are looked at.
        count: Of a question: how many places are looked at.
        mode: Of a question: ``hybrid``, ``vector`` or ``keyword``.
        embed: Of a question: whether texts that were never embedded are embedded now.
        on_progress: Called with the progress.
        on_entry: Called with each entry of a question as it is found.

    Raises:
        UsageError: Nothing is asked, or a number is not positive.
        UnknownPathError: No file is, or was, called so.
        NoRevisionError: Nothing is committed yet.
        NoAnswerError: There is no git, or no repository.
    """
    if not asked.strip():
        raise UsageError("nothing is asked", remedy="filestore log PATH, or a question")
    if most < 1:
        raise UsageError(f"--max must be at least 1, found {most}")
    top = git_work_tree(os.path.realpath(home.places.root))
    if top is None:
        raise NoAnswerError(f"{home.places.root} lies in no git work tree", remedy="git init")
    revisions.resolve(top, "HEAD")
    targets = [] if meant_as == "query" else _targets(home, top, asked)
    if targets:
        return _of_files(home, top, asked, targets, most, on_progress)
    if meant_as == "path":
        raise UnknownPathError(
            f"no file of the store is, or was, called {brief(asked)}",
            remedy="'filestore ls' lists what is there; without --path it is asked as a question",
        )
    return log_of_query(
        home,
        asked,
        most=most,
        count=count,
        mode=mode,
        embed=embed,
        on_progress=on_progress,
        on_entry=on_entry,
    )


def _of_files(
    home: Parts,
    top: str,
    asked: str,
    targets: Sequence[_Target],
    most: int,
    on_progress: OnProgress,
) -> Log:
    logs: list[list[LogEntry]] = []
    # Of several files each has few versions.
    each = on_progress if len(targets) == 1 else ignore
    with FileLog(home, top, each) as files:
        for done, (path, line) in enumerate(targets):
            if len(targets) > 1:
                on_progress(Progress(stage="reading histories", done=done, total=len(targets)))
            logs.append(list(files.entries(path, line)))
    entries = logs[0]
    if len(logs) > 1:
        commits = revisions.log(top, "--date-order", "HEAD")
        entries = merged(logs, {one.commit: place for place, one in enumerate(commits)})
    notes = []
    if revisions.is_shallow(top):
        notes.append(SHALLOW)
        # What the oldest commits of such a clone have was there before.
        oldest = {one.commit for one in revisions.log(top, "--max-parents=0", "HEAD")}
        entries = [one for one in entries if one.commit is None or one.commit.commit not in oldest]
    if len(entries) > most:
        notes.append(f"{most:,} of {len(entries):,} changes: --max gives more")
    is_section = home.places.is_in_place and any(line is not None for _, line in targets)
    return Log(
        asked=asked,
        about="section" if is_section else "file",
        entries=tuple(entries[:most]),
        notes=tuple(notes),
    )


def _targets(home: Parts, top: str, asked: str) -> list[_Target]:
    """The files that are meant: one that is there, the chunks of an original, one that was."""
    named = list(dict.fromkeys(_named(home, top, asked)))
    for path, line in named:
        if os.path.lexists(os.path.join(top, path)):
            return [(path, line)]
    found = _chunks_of(home, top, asked)
    if not found:
        names = [path for path, _ in named]
        words = ("--full-history", "--max-count=1", "HEAD", "--")
        if names and any(revisions.log(top, *words, *names)):
            with FileLog(home, top) as files:
                # What git has under a name may be a folder.
                found = [one for one in named if any(files.entries(one[0]))][:1]
    return found


def _named(home: Parts, top: str, asked: str) -> Iterator[_Target]:
    """What of the tree of the store a text may name; folders are left out."""
    split = _WITH_LINE.fullmatch(asked)
    readings = [(asked, None), *([(split[1], int(split[2]))] if split else [])]
    root = os.path.realpath(home.places.root)
    starts = [home.places.root, home.places.chunked]
    if os.path.isabs(asked) or os.path.isdir("."):
        starts.insert(0, os.path.abspath("."))
    for name, line in readings:
        for one, start in product(paths_shown_so(name), starts):
            path = os.path.join(start, one)
            if "\0" in one or len(os.fsencode(path)) > _LONGEST or os.path.isdir(path):
                continue
            found = relative_to_top(top, path)
            inside = os.path.relpath(os.path.join(top, found), root) if found else ".."
            if found and home.places.tree.holds(inside) and inside.split("/")[0] != "..":
                yield found, line


def _chunks_of(home: Parts, top: str, asked: str) -> list[_Target]:
    """The chunk files of an original, or the one that holds a line of it."""
    try:
        catalog = home.catalog()
        with catalog.snapshot():
            rows = meant(home.places, catalog, asked).rows
    except (UnknownPathError, CatalogMissingError, CatalogDamagedError):
        return []
    paths = (home.places.tree.store_path(row.path) for row in rows)
    return [(_from_top(home, top, path), None) for path in paths]


def _from_top(home: Parts, top: str, path: StorePath) -> str:
    return os.path.relpath(os.path.join(os.path.realpath(home.places.root), path), top)
