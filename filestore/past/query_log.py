"""When the answer to a question changed, and by which commit.

Each commit of the first parents that touched the store is asked, newest first, and held against the
one before it: what a merge brought counts as the merge's. One rule: a commit that left the store as
it was is never looked at.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from filestore.config.layout import SETTINGS
from filestore.core.errors import UsageError
from filestore.core.paths import StorePath
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.git import revisions
from filestore.git.revisions import Commit
from filestore.past.events import AnswerChange, Log, LogEntry, OnEntry, pass_over
from filestore.past.moment import Moment, at_commit, pairs_of, today
from filestore.past.pairs import Matched, matched
from filestore.search.answer import Mode
from filestore.sidecar.session import Parts

SHALLOW: Final = "this clone has only the newest commits: git fetch --unshallow"
MOST: Final = 50
"""Fewer than the views that are kept, so that a second question finds the views of the first."""
_SHOWN_NOTES: Final = 10


def log_of_query(
    home: Parts,
    query: str,
    *,
    most: int = MOST,
    count: int = 10,
    mode: Mode = "hybrid",
    embed: bool = False,
    on_progress: OnProgress = ignore,
    on_entry: OnEntry = pass_over,
) -> Log:
    """The commits after which a question is answered otherwise, newest first.

    Args:
        home: The store's own parts.
        query: What is asked.
        most: So many commits are looked at.
        count: How many places are looked at.
        mode: ``hybrid``, ``vector`` or ``keyword``.
        embed: Whether texts that were never embedded are embedded now.
        on_progress: Called with the progress.
        on_entry: Called with each entry as it is found.

    Raises:
        UsageError: A number is not positive.
        NoAnswerError: There is no git, or no repository.
    """
    if count < 1:
        raise UsageError(f"-k must be at least 1, found {count}")
    root = home.places.root
    revisions.resolve(root, "HEAD")
    paths = (home.places.tree.pathspec, SETTINGS)
    words = ("--first-parent", f"--max-count={most + 1}", "HEAD", "--", *paths)
    commits = list(revisions.log(root, *words))
    walk = _Walk(home, query, count, mode, embed=embed)
    entries = []
    for done, entry in enumerate(walk.entries(commits, most)):
        on_progress(Progress(stage="asking each commit", done=done, total=min(most, len(commits))))
        if entry is not None:
            entries.append(entry)
            on_entry(entry)
    return Log(asked=query, about="query", entries=tuple(entries), notes=tuple(walk.told()))


class _Walk:
    """One question, asked at one commit after the other."""

    def __init__(self, home: Parts, query: str, count: int, mode: Mode, *, embed: bool) -> None:
        self._notes: dict[str, None] = {}
        self._lacking = 0
        """So many commits have texts without vectors."""
        self._home = home
        self._query, self._count, self._mode = query, count, mode
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
                yield self._held_against(earlier, before, later, answers)
                later_stack.close()
                later_stack, later, answers = earlier_stack, earlier, before
            if len(commits) > most:
                self._notes[f"{most:,} commits were looked at: --max goes further back"] = None
            elif revisions.is_shallow(self._home.places.root):
                self._notes[SHALLOW] = None
            elif later.commit is not None and answers:
                yield LogEntry(
                    commit=later.commit,
                    gained=tuple(_gained(answers)),
                    first=answers[0],
                    begins=True,
                )

    def told(self) -> Iterator[str]:
        """What is to be known of its entries."""
        yield from self._notes
        if self._lacking:
            commits = "1 commit has" if self._lacking == 1 else f"{self._lacking:,} commits have"
            yield (
                f"{commits} texts that were never embedded, and are found by keyword only:"
                " --embed embeds what is missing"
            )

    def _ask(self, moment: Moment) -> list[StorePath]:
        found = [hit.path for hit in moment.hits(self._query, k=self._count, mode=self._mode)]
        self._lacking += moment.not_embedded > 0 and self._mode != "keyword"
        for note in moment.notes:
            if len(self._notes) < _SHOWN_NOTES:
                self._notes[note] = None
        return found

    def _held_against(
        self,
        earlier: Moment,
        before: Sequence[StorePath],
        later: Moment,
        after: Sequence[StorePath],
    ) -> LogEntry | None:
        """What another answer the later commit gives; None where it is the same."""
        if before == after and earlier.texts_of(before) == later.texts_of(after):
            return None
        pairs = pairs_of(self._home, earlier, later)
        found = matched(before, after, pairs, earlier.texts, later.texts)
        gained = tuple(_change(one, one.new) for one in found if one.old is None and one.new)
        lost = tuple(_change(one, one.old) for one in found if one.new is None and one.old)
        edited = tuple(_change(one, one.new) for one in found if one.old and one.new and one.edited)
        is_first = any(one.new == 1 and one.old != 1 for one in found)
        if not (gained or lost or edited or is_first):
            return None
        return LogEntry(
            commit=later.commit,
            gained=gained,
            lost=lost,
            edited=edited,
            first=after[0] if is_first else None,
        )


def _change(one: Matched, rank: int | None) -> AnswerChange:
    return AnswerChange(path=one.path, rank=rank or 0, was=one.was)


def _gained(answers: Sequence[StorePath]) -> Iterator[AnswerChange]:
    for rank, path in enumerate(answers, start=1):
        yield AnswerChange(path=path, rank=rank)
