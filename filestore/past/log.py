"""When what a person names changed: a file, one of its sections, or the answer to a question.

One rule: what is, or was, a file of the store is meant as one; all else is asked.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore import extract
from filestore.browse.file import UnknownPathError
from filestore.browse.meant import meant
from filestore.catalog import CatalogDamagedError, CatalogMissingError
from filestore.core.errors import UsageError
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.safe_text import brief
from filestore.fs.typed_names import typed_paths
from filestore.git import revisions
from filestore.git.lineage import lineage, relative_to_top, renamed_to
from filestore.git.process import NoAnswerError
from filestore.git.repository import git_work_tree
from filestore.past.events import Log, LogEntry, OnEntry, pass_over
from filestore.past.file_log import FileLog, merged
from filestore.past.query_log import MOST, SHALLOW, log_of_query
from filestore.search.answer import Mode
from filestore.sidecar.session import Parts

Meant = Literal["either", "path", "query"]
_WITH_LINE: Final = re.compile(r"(.+):([0-9]{1,9})", re.S)
_LONGEST: Final = 4096
"""No path is longer."""
_Named = tuple[str, int | None]
"""A file, relative to the top of the work tree, and a line of it."""


class _Target(Struct, frozen=True, kw_only=True):
    """A file whose history is meant."""

    top: str
    """Of the work tree that has it."""
    path: str
    """Relative to that."""
    line: int | None


def log(
    home: Parts,
    asked: str,
    *,
    meant_as: Meant = "either",
    most: int = MOST,
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
    top = _top(home)
    named = [] if meant_as == "query" else list(dict.fromkeys(_named(top, home, asked)))
    targets = _targets(home, top, asked, named)
    if targets:
        return _of_files(home, asked, targets, most, on_progress)
    if meant_as == "path":
        raise UnknownPathError(
            f"no file of the store is, or was, called {brief(asked)}",
            remedy="'filestore ls' lists what is there; without --path it is asked as a question",
        )
    found = log_of_query(
        home,
        asked,
        most=most,
        count=count,
        mode=mode,
        embed=embed,
        on_progress=on_progress,
        on_entry=on_entry,
    )
    if meant_as == "either" and _looks_like_a_path(asked):
        told = f"no file of the store is, or was, called {brief(asked)}: it was asked as a question"
        return replace(found, notes=(told, *found.notes))
    return found


def _top(home: Parts) -> str:
    """The top of the work tree around a store that has a commit."""
    top = git_work_tree(os.path.realpath(home.places.root))
    if top is None:
        raise NoAnswerError(f"{home.places.root} lies in no git work tree", remedy="git init")
    revisions.resolve(top, "HEAD")
    return top


def _looks_like_a_path(asked: str) -> bool:
    words = asked.split()
    return len(words) == 1 and ("/" in asked or extract.is_known(os.path.basename(asked)))


def _of_files(
    home: Parts,
    asked: str,
    targets: Sequence[_Target],
    most: int,
    on_progress: OnProgress,
) -> Log:
    logs: list[list[LogEntry]] = []
    # Of several files each has few versions.
    each = on_progress if len(targets) == 1 else ignore
    top = targets[0].top
    with FileLog(home, top, each) as files:
        for done, target in enumerate(targets):
            if len(targets) > 1:
                on_progress(Progress(stage="reading histories", done=done, total=len(targets)))
            logs.append(list(files.entries(target.path, target.line)))
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
    is_section = home.places.is_in_place and targets[0].line is not None
    return Log(
        asked=asked,
        about="section" if is_section else "file",
        entries=tuple(entries[:most]),
        notes=tuple(notes),
    )


def _targets(home: Parts, top: str, asked: str, named: Sequence[_Named]) -> list[_Target]:
    """The files that are meant: one that is there, the chunks of an original, one that was."""
    if not named:
        return []
    inside = [one for one in named if _is_of_tree(home, top, one[0])]
    for path, line in inside:
        place = os.path.join(top, path)
        if os.path.lexists(place):
            return [_target(place, top, line)]
    chunks = _chunks_of(home, top, asked)
    if chunks:
        return chunks
    for path, line in named:
        if not _was_there(top, path):
            continue
        if (path, line) in inside:
            return [_Target(top=top, path=path, line=line)]
        # An original that was renamed has its chunks by its new name.
        suffix = f":{line}" if line is not None else ""
        chunks = _chunks_of(home, top, os.path.join(top, _name_now(top, path)) + suffix)
        if chunks:
            return chunks
    return []


def _target(place: str, top: str, line: int | None) -> _Target:
    """A file that is there: in a submodule it has the history of that."""
    folder, name = os.path.split(place)
    own = git_work_tree(os.path.realpath(folder)) or top
    path = os.path.relpath(os.path.join(os.path.realpath(folder), name), own)
    return _Target(top=own, path=path, line=line)


def _was_there(top: str, path: str) -> bool:
    """Whether any commit of HEAD had a file of that name; what git has under it may be a folder."""
    words = ("--full-history", "--max-count=1", "HEAD", "--", path)
    return any(revisions.log(top, *words)) and any(lineage(top, path))


def _name_now(top: str, path: str) -> str:
    """What a file that was is called now, as far as git followed it."""
    seen = set()
    while path not in seen:
        seen.add(path)
        last = next(lineage(top, path), None)
        if last is None or last.after.blob is not None:
            break
        new = renamed_to(top, last.commit.commit, path)
        path = new.path if new is not None else path
    return path


def _named(top: str, home: Parts, asked: str) -> Iterator[_Named]:
    """The files of the work tree that a text may name; folders are left out."""
    split = _WITH_LINE.fullmatch(asked)
    readings = [(asked, None), *([(split[1], int(split[2]))] if split else [])]
    starts = [home.places.root, home.places.chunked]
    if os.path.isabs(asked) or os.path.isdir("."):
        starts.insert(0, os.path.abspath("."))
    for name, line in readings:
        for path in typed_paths(name, starts):
            if not _may_be_path(path) or os.path.isdir(path):
                continue
            found = relative_to_top(top, path)
            if found is not None:
                yield found, line


def _may_be_path(text: str) -> bool:
    try:
        return "\0" not in text and len(os.fsencode(text)) <= _LONGEST
    except UnicodeEncodeError:
        return False


def _is_of_tree(home: Parts, top: str, path: str) -> bool:
    root = os.path.realpath(home.places.root)
    inside = os.path.relpath(os.path.join(top, path), root)
    return home.places.tree.holds(inside) and inside.split("/")[0] != ".."


def _chunks_of(home: Parts, top: str, asked: str) -> list[_Target]:
    """The chunk files of an original, or the one that holds a line of it."""
    try:
        catalog = home.catalog()
        with catalog.snapshot():
            rows = meant(home.places, catalog, asked).rows
    except (UnknownPathError, CatalogMissingError, CatalogDamagedError):
        return []
    root = os.path.realpath(home.places.root)
    places = (os.path.join(root, home.places.tree.store_path(row.path)) for row in rows)
    return [_Target(top=top, path=os.path.relpath(place, top), line=None) for place in places]
