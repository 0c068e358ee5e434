"""A store at one time, compared with another, and the commits that changed an answer.

Three rules: what a time cannot answer is reported once, and its answers are no others' then; a file
that was renamed is the same file, so that its new name is no answer gained, and its old one none
lost; and of a log each commit of the first parents that touched the store is asked, newest first,
and compared with the one before it: what a merge brought counts as the merge's, and a commit that
left the store as it was is never looked at.
"""

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from filestore.catalog import queries
from filestore.config.layout import SETTINGS
from filestore.core.errors import UsageError
from filestore.core.paths import StorePath
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.schema import JsonObject
from filestore.git.process import NoAnswerError, work_tree
from filestore.past.commits import Commit, is_shallow, log_commits, renames, resolve
from filestore.past.view import NoStoreThenError, SettingsThenError
from filestore.past.views import PastStore, not_embedded
from filestore.search import Mode, Query
from filestore.search.answer import Hit
from filestore.search.session import SearchSession
from filestore.sidecar.session import Parts
from filestore.verify import run


class Pairs(Struct, frozen=True, kw_only=True):
    """The files of two times that are the same."""

    old: Mapping[StorePath, StorePath]
    """Path of the later time to that of the earlier one."""
    new: Mapping[StorePath, StorePath]
    """The inverse."""


def paired(
    first: Mapping[StorePath, bytes],
    second: Mapping[StorePath, bytes],
    renames: Mapping[StorePath, StorePath],
) -> Pairs:
    """Which files are the same: by path and text, by text, by path, then by what git says.

    Args:
        first: The files of the earlier time, each with a hash of its texts.
        second: Those of the later time.
        renames: New path to old one, of files that are much alike.
    """
    old: dict[StorePath, StorePath] = {}
    new: dict[StorePath, StorePath] = {}

    def take(pairs: Iterator[tuple[StorePath, StorePath]]) -> None:
        for later, earlier in pairs:
            if later in second and earlier in first and later not in old and earlier not in new:
                old[later], new[earlier] = earlier, later

    take((path, path) for path, text in second.items() if first.get(path) == text)
    # The same text under two paths; where several have it, in the order of paths.
    known = set(old)
    by_text: defaultdict[bytes, list[StorePath]] = defaultdict(list)
    for path in sorted(first.keys() - known, reverse=True):
        by_text[first[path]].append(path)
    moved = (path for path in sorted(second.keys() - known) if by_text.get(second[path]))
    take((path, by_text[second[path]].pop()) for path in moved)
    take((path, path) for path in second)
    take(iter(renames.items()))
    return Pairs(old=old, new=new)


class ComparedAnswer(JsonObject, Struct, frozen=True, kw_only=True):
    """One answer to a question, at two times."""

    SPARSE = "was"

    path: StorePath
    """The chunk file, relative to the store; as it is called at the later time, if it is there."""
    was: StorePath | None
    """What it was called at the earlier time, where that is something else."""
    old: int | None
    """Its place at the earlier time, from 1; None where it is none of the first `k`."""
    new: int | None
    """Its place at the later time."""
    edited: bool
    """Whether its text is another."""
    there: bool
    """Whether both times have the file, even where only one of them gives it as an answer."""


def matched(
    old: Sequence[StorePath],
    new: Sequence[StorePath],
    pairs: Pairs,
    first: Mapping[StorePath, bytes],
    second: Mapping[StorePath, bytes],
) -> list[ComparedAnswer]:
    """The answers of two times side by side, the later ones first.

    Args:
        old: The answers of the earlier time, best first.
        new: Those of the later one.
        pairs: Which files are the same.
        first: The files of the earlier time, each with a hash of its texts.
        second: Those of the later one.
    """
    places = {path: place for place, path in enumerate(old, start=1)}
    found = []
    for place, path in enumerate(new, start=1):
        before = pairs.old.get(path)
        found.append(
            ComparedAnswer(
                path=path,
                was=before if before != path else None,
                old=places.pop(before, None) if before is not None else None,
                new=place,
                edited=before is not None and first.get(before) != second.get(path),
                there=before is not None,
            )
        )
    for path, place in places.items():
        after = pairs.new.get(path)
        found.append(
            ComparedAnswer(
                path=after or path,
                was=path if after is not None and after != path else None,
                old=place,
                new=None,
                edited=after is not None and first.get(path) != second.get(after),
                there=after is not None,
            )
        )
    return found


TODAY: Final = "today"
_SHORT: Final = 12
"""Digits of a commit that are shown."""
_NOTES: Final = 20
"""Different notes that are kept: some name what no other query has."""


class Moment(Struct, frozen=True, kw_only=True, dict=True):
    """A store at one time, open."""

    name: str
    """As the caller named it."""
    commit: Commit | None
    """None for today."""
    parts: Parts | None
    """None where the commit has nothing of the store."""
    session: SearchSession | None
    not_embedded: int = 0
    """How many of its texts have no vector."""
    notes: dict[str, None] = field(default_factory=dict)
    """What is to be known of its answers."""
    modes: set[Mode] = field(default_factory=set)
    """What answered so far."""

    @cached_property
    def texts(self) -> Mapping[StorePath, bytes]:
        """The files that can be found, each with a hash of its texts."""
        if self.parts is None:
            return {}
        tree = self.parts.places.tree
        with self.parts.reading() as catalog:
            found = queries.texts_of_paths(catalog)
        return {tree.store_path(path): key for path, key in found.items()}

    def texts_of(self, paths: Sequence[StorePath]) -> list[bytes]:
        """The same hash of some of its files alone."""
        if self.parts is None or not paths:
            return []
        tree = self.parts.places.tree
        with self.parts.reading() as catalog:
            rows = catalog.files([tree.chunk_path(path) for path in paths])
        return [rows[tree.chunk_path(path)].text_key for path in paths]

    def notes_on(self, mode: Mode) -> Iterator[str]:
        """What is to be known of its answers in a mode."""
        yield from self.notes
        if self.not_embedded and mode != "keyword":
            yield f"{self.name}: {not_embedded(self.not_embedded)}"

    def hits(self, query: Query) -> Sequence[Hit]:
        """The files that answer, best first; deleted files are none."""
        if self.session is None:
            return ()
        answer = self.session.search(query)
        self.modes.add(answer.mode)
        for note in answer.notes:
            if note not in answer.on_spelling and len(self.notes) < _NOTES:
                self.notes[f"{self.name}: {note}"] = None
        return [hit for hit in answer.hits if hit.freshness != "gone"]


@contextlib.contextmanager
def at_commit(
    home: Parts,
    revision: str,
    *,
    embed: bool = False,
    on_progress: OnProgress = ignore,
) -> Iterator[Moment]:
    """The store at a commit; one that has nothing of it answers nothing.

    Args:
        home: The store's own parts.
        revision: Names the commit.
        embed: Whether texts of it that were never embedded are embedded now.
        on_progress: Called with the progress.

    Raises:
        NoRevisionError: There is no such commit here.
        FilestoreError: What it has cannot be read.
    """
    commit = resolve(home.places.root, revision)
    name = revision[:_SHORT] if revision == commit.commit else revision
    with contextlib.ExitStack() as stack:
        try:
            past = PastStore(home, commit.commit, embed=embed, on_progress=on_progress)
        except (NoStoreThenError, SettingsThenError) as error:
            reason = {f"{name}: {error.message}: it answers nothing": None}
            yield Moment(name=name, commit=commit, parts=None, session=None, notes=reason)
            return
        stack.enter_context(past)
        found = Moment(
            name=name,
            commit=commit,
            parts=past.parts,
            session=past.session,
            not_embedded=past.not_embedded,
        )
        found.notes.update((f"{name}: {note}", None) for note in past.notes_on_files())
        yield found


@contextlib.contextmanager
def today(home: Parts) -> Iterator[Moment]:
    """The store as it is indexed now."""
    session = SearchSession(lambda: home)
    try:
        found = Moment(name=TODAY, commit=None, parts=home, session=session)
        differing = (one for one in run.status(home).findings if one.severity != "I" and one.safe)
        if count := len({one.path for one in differing if one.meaning.about == "file"}):
            files = "1 file differs" if count == 1 else f"{count:,} files differ"
            found.notes[f"{TODAY}: {files} from the index: run 'filestore sync'"] = None
        yield found
    finally:
        session.close()


def pairs_of(home: Parts, first: Moment, second: Moment) -> Pairs:
    """Which files of two times are the same.

    Raises:
        NoAnswerError: Git does not answer.
    """
    moved: Mapping[StorePath, StorePath] = {}
    if first.commit is not None and first.texts.keys() - second.texts.keys():
        later = second.commit.commit if second.commit else None
        moved = renames(home.places.root, first.commit.commit, later)
    return paired(first.texts, second.texts, moved)


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
        raise UsageError("nothing is asked: write `filestore log QUERY`")
    if most < 1:
        raise UsageError(f"--max must be at least 1, found {most}")
    root = home.places.root
    if work_tree(os.path.realpath(root)) is None:
        raise NoAnswerError(f"{root} lies in no git work tree", remedy="git init")
    resolve(root, "HEAD")
    paths = (home.places.tree.pathspec, SETTINGS)
    words = ("--first-parent", f"--max-count={most + 1}", "HEAD", "--", *paths)
    commits = list(log_commits(root, *words))
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
            elif is_shallow(self._home.places.root):
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
                f"{commits} passages that were never embedded, and are found by keyword only:"
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
