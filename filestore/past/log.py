"""When the answer to a question changed, and by which commit.

Each commit of the first parents that touched the store is asked, newest first, and held against the
one before it: what a merge brought counts as the merge's. One rule: a commit that left the store as
it was is never looked at.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from filestore.config.layout import SETTINGS
from filestore.core.errors import UsageError
from filestore.core.paths import StorePath
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.schema import JsonObject
from filestore.git import revisions
from filestore.git.process import NoAnswerError
from filestore.git.repository import git_work_tree
from filestore.git.revisions import Commit
from filestore.past.moment import ComparedAnswer, Moment, Pairs, at_commit, matched, pairs_of, today
from filestore.search.query import Query
from filestore.sidecar.session import Parts

MOST: Final = 50
"""Fewer than the views that are kept, so that a second question finds the views of the first."""
_SHALLOW: Final = "this clone has only the newest commits: git fetch --unshallow"
_SHOWN_NOTES: Final = 10


class AnswerChange(JsonObject, Struct, frozen=True, kw_only=True):
    """What a commit did to one answer."""

    SPARSE = "was"

    path: StorePath
    """The chunk file, relative to the store."""
    rank: int | None
    """Its place after the commit, from 1; of a lost one before it."""
    was: StorePath | None
    """What it was called before, where that is something else."""


class LogEntry(JsonObject, Struct, frozen=True, kw_only=True):
    """One commit, or the store as it is indexed today, and which answers it changed."""

    KEYS = (
        "commit.commit commit.committed commit.author commit.subject gained lost edited first "
        "begins"
    )
    SPARSE = "gained lost edited first begins"

    commit: Commit | None
    """None for today, as indexed."""
    gained: Sequence[AnswerChange] = ()
    """Answers that there were not before."""
    lost: Sequence[AnswerChange] = ()
    """Answers that there were before."""
    edited: Sequence[AnswerChange] = ()
    """Answers that stayed, with another text."""
    first: StorePath | None = None
    """The path of the best answer, where that is another one than before."""
    begins: bool = False
    """True where the store begins."""


class Log(JsonObject, Struct, frozen=True, kw_only=True):
    """When the answer to a question changed, and by which commit."""

    asked: str
    """The question."""
    entries: tuple[LogEntry, ...]
    """The commits that changed its answer, newest first."""
    notes: tuple[str, ...]
    """What to know about this log."""


def log(
    home: Parts,
    query: Query,
    *,
    most: int = MOST,
    embed: bool = False,
    on_progress: OnProgress = ignore,
    on_entry: Callable[[LogEntry], object] | None = None,
) -> Log:
    """The commits after which a question is answered otherwise, newest first.

    Args:
        home: The store's own parts.
        query: What is asked.
        most: Commits that are looked at, at most.
        embed: Whether texts that were never embedded are embedded now.
        on_progress: Called with the progress.
        on_entry: Called with each entry as it is found.

    Raises:
        UsageError: Nothing is asked, or no commit is wanted.
        NoRevisionError: Nothing is committed yet.
        NoAnswerError: There is no git, or no repository.
    """
    if not query.text.strip():
        raise UsageError("nothing is asked", remedy="filestore log QUERY")
    if most < 1:
        raise UsageError(f"--max must be at least 1, found {most}")
    root = home.places.root
    if git_work_tree(os.path.realpath(root)) is None:
        raise NoAnswerError(f"{root} lies in no git work tree", remedy="git init")
    revisions.resolve(root, "HEAD")
    paths = (home.places.tree.pathspec, SETTINGS)
    words = ("--first-parent", f"--max-count={most + 1}", "HEAD", "--", *paths)
    commits = list(revisions.log(root, *words))
    walk = _Walk(home, query, embed=embed)
    entries = []
    for done, entry in enumerate(walk.entries(commits, most)):
        on_progress(Progress(stage="asking each commit", done=done, total=min(most, len(commits))))
        if entry is None:
            continue
        entries.append(entry)
        if on_entry is not None:
            on_entry(entry)
    return Log(asked=query.text, entries=tuple(entries), notes=tuple(walk.notes()))


class _Walk:
    """One question, asked at one commit after the other."""

    def __init__(self, home: Parts, query: Query, *, embed: bool) -> None:
        self._notes: dict[str, None] = {}
        self._lacking = 0
        """Commits that have texts without vectors."""
        self._home = home
        self._query = query
        self._embed = embed

    def entries(self, commits: Sequence[Commit], most: int) -> Iterator[LogEntry | None]:
        """What each commit changed, first what is not committed; None for nothing."""
        with contextlib.ExitStack() as stack:
            later_stack = stack.enter_context(contextlib.ExitStack())
            later = later_stack.enter_context(today(self._home))
            answers = self._ask(later)
            for commit in commits:
                earlier_stack = stack.enter_context(contextlib.ExitStack())
                opened = at_commit(self._home, commit.commit, embed=self._embed)
                earlier = earlier_stack.enter_context(opened)
                before = self._ask(earlier)
                if before == answers and earlier.texts_of(before) == later.texts_of(answers):
                    yield None
                else:
                    pairs = pairs_of(self._home, earlier, later)
                    found = matched(before, answers, pairs, earlier.texts, later.texts)
                    yield _entry(later.commit, found)
                later_stack.close()
                later_stack, later, answers = earlier_stack, earlier, before
            if len(commits) > most:
                self._notes[f"{most:,} commits were looked at: --max goes further back"] = None
            elif revisions.is_shallow(self._home.places.root):
                self._notes[_SHALLOW] = None
            elif later.commit is not None and answers:
                found = matched([], answers, Pairs(old={}, new={}), {}, {})
                yield _entry(later.commit, found, begins=True)

    def notes(self) -> Iterator[str]:
        """What is to be known of its entries."""
        yield from self._notes
        if self._lacking:
            commits = "1 commit has" if self._lacking == 1 else f"{self._lacking:,} commits have"
            yield (
                f"{commits} texts that were never embedded, and are found by keyword only:"
                " --embed embeds what is missing"
            )

    def _ask(self, moment: Moment) -> list[StorePath]:
        found = [hit.path for hit in moment.hits(self._query)]
        self._lacking += moment.not_embedded > 0 and self._query.mode != "keyword"
        for note in moment.notes:
            if len(self._notes) < _SHOWN_NOTES:
                self._notes[note] = None
        return found


def _entry(
    commit: Commit | None, found: Sequence[ComparedAnswer], *, begins: bool = False
) -> LogEntry | None:
    """What another answer a commit gives than the one before; None where it is the same."""

    def those(is_one: Callable[[ComparedAnswer], object]) -> list[AnswerChange]:
        return [
            AnswerChange(path=one.path, rank=one.new or one.old, was=one.was)
            for one in found
            if is_one(one)
        ]

    entry = LogEntry(
        commit=commit,
        gained=those(lambda one: one.old is None),
        lost=those(lambda one: one.new is None),
        edited=those(lambda one: one.old and one.new and one.edited),
        first=next((one.path for one in found if one.new == 1 and one.old != 1), None),
        begins=begins,
    )
    return entry if entry.gained or entry.lost or entry.edited or entry.first else None
