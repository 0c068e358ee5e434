"""A store at two times over the same questions: which answers are others, and how good both are.

Reads; changes nothing but the sidecar. One rule: both times are asked the same in the same way, and
where one of them cannot be, the notes say so. What answers a question is named as it is called at
one of the times: what has no such name at a time is not found there, and is no error.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.core.errors import UsageError
from filestore.core.paths import CHUNKS, StorePath
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.safe_text import brief, listed
from filestore.core.schema import JsonObject
from filestore.past.commits import Commit
from filestore.past.moment import ComparedAnswer, Moment, Pairs, at_commit, matched, pairs_of, today
from filestore.search import Mode, Query
from filestore.search.metrics import (
    Chunk,
    Difference,
    Goal,
    Key,
    Names,
    Question,
    Scores,
    chunks_of,
    goal_of,
    judge,
    keys_of,
    mean,
    paired_difference,
    problem_of,
    unknown,
)
from filestore.sidecar.session import Parts

_SHOWN: Final = 5


class Goals(Struct, frozen=True, kw_only=True):
    """Questions with what answers each, at one time."""

    first: Sequence[Goal]
    second: Sequence[Goal]
    notes: Sequence[str]
    """Which answers there are not, and when."""


class _KnownNames(Struct, frozen=True, kw_only=True):
    """What there is at one time."""

    names: Names
    by_path: Mapping[StorePath, Chunk]
    of: Mapping[Key, Sequence[StorePath]]
    """What each chunk is, and is of: the chunks."""
    lacking: dict[str, None] = field(default_factory=dict)


def goals_of(first: Moment, second: Moment, pairs: Pairs, questions: Sequence[Question]) -> Goals:
    """What answers some questions at two times.

    Raises:
        UnknownRelevantError: A name means several things.
    """
    earlier, later = _then(first), _then(second)
    problems: list[str] = []
    found: tuple[list[Goal], list[Goal]] = ([], [])
    for question in questions:
        grades: tuple[dict[Key, float], dict[Key, float]] = ({}, {})
        for entry, grade in question.relevant.items():
            old, new = earlier.names.called(entry), later.names.called(entry)
            if len(old) != 1 and len(new) != 1 and (old or new):
                problems.append(problem_of(question, entry, new or old))
                continue
            one = old[0] if len(old) == 1 else _called(new, later, earlier, pairs.old)
            other = new[0] if len(new) == 1 else _called(old, earlier, later, pairs.new)
            kind = (one or other or ("path", ""))[0]
            for key, there, into in ((one, earlier, grades[0]), (other, later, grades[1])):
                if key is None:
                    there.lacking[entry] = None
                # No file has a name with a NUL in it.
                key = key or (kind, f"\0{entry}")
                into[key] = max(grade, into.get(key, 0.0))
        for goal, some in zip(found, grades, strict=True):
            goal.append(goal_of(question.query, some))
    if problems:
        raise unknown(problems)
    both = earlier.lacking.keys() & later.lacking.keys()
    lacking = {
        f"{first.name} and {second.name} lack": [one for one in earlier.lacking if one in both]
    }
    for moment, then in ((first, earlier), (second, later)):
        lacking[f"{moment.name} lacks"] = [one for one in then.lacking if one not in both]
    notes = [
        f"not there, so not found: {who} {listed(map(brief, names), _SHOWN)}"
        for who, names in lacking.items()
        if names
    ]
    return Goals(first=found[0], second=found[1], notes=notes)


def _then(moment: Moment) -> _KnownNames:
    if moment.parts is None:
        return _KnownNames(names=Names(CHUNKS, (), {}), by_path={}, of={})
    tree = moment.parts.places.tree
    with moment.parts.reading() as catalog:
        chunks = chunks_of(tree, catalog)
        names = Names(tree, chunks, catalog.sources_of_resources())
    of: dict[Key, list[StorePath]] = {}
    for chunk in chunks:
        for key in keys_of(chunk).values():
            of.setdefault(key, []).append(chunk.path)
    return _KnownNames(names=names, by_path={chunk.path: chunk for chunk in chunks}, of=of)


def _called(
    found: Sequence[Key],
    known: _KnownNames,
    wanted: _KnownNames,
    other: Mapping[StorePath, StorePath],
) -> Key | None:
    """What something is called at another time: where its chunks are there, if it is one thing.

    Args:
        found: What it is at the time that knows its name; not one thing where that is in doubt.
        known: That time.
        wanted: The other one.
        other: A path of the former to that of the latter.
    """
    if len(found) != 1:
        return None
    kind = found[0][0]
    paths = (other.get(path) for path in known.of[found[0]])
    there = {keys_of(wanted.by_path[path])[kind] for path in paths if path is not None}
    return there.pop() if len(there) == 1 else None


_TINY: Final = 1e-9
"""Sums of fractions differ by less where they are equal."""


class Gate(Struct, frozen=True, kw_only=True):
    """What a comparison must not fall below; None for what does not matter."""

    max_loss: float | None = None
    """How far the mean nDCG may fall."""
    min_overlap: float | None = None
    """The share of answers that both times give, on average."""

    def require_sound(self, *, known: bool) -> None:
        """Refuse what nothing could be held against.

        Args:
            known: Whether it is known what answers any of the questions.

        Raises:
            UsageError: A bound is no share, or takes answers that are not known.
        """
        for name, bound in {"--max-loss": self.max_loss, "--min-overlap": self.min_overlap}.items():
            if bound is not None and not 0 <= bound <= 1:
                raise UsageError(f"{name} must be from 0 to 1, found {bound}")
        if self.max_loss is not None and not known:
            raise UsageError(
                "--max-loss takes questions of which it is known what answers them",
                remedy='write {"query": "…", "relevant": ["handbook/leave.md"]}, a line each;'
                " or use --min-overlap",
            )


class ComparedQuery(JsonObject, Struct, frozen=True, kw_only=True):
    """A question whose answers are not the same."""

    KEYS = "question.id question.line question.query overlap answers old new"
    SPARSE = "old new"

    question: Question
    overlap: float
    """The share of the answers that both times give, 0 to 1."""
    answers: tuple[ComparedAnswer, ...]
    """Those of the later time as they rank, then the lost ones."""
    scores: tuple[Scores, Scores] | None
    """Of both times; None where no answer is known."""

    @property
    def old(self) -> Scores | None:
        """How good the earlier answers are, where it is known what answers the query."""
        return self.scores[0] if self.scores else None

    @property
    def new(self) -> Scores | None:
        """How good the later ones are."""
        return self.scores[1] if self.scores else None


class ComparedTime(JsonObject, Struct, frozen=True, kw_only=True):
    """One of the two times."""

    KEYS = "name commit.commit commit.committed files not_embedded scores"

    name: str
    """The revision as it was given, or `today`."""
    commit: Commit | None
    files: int
    """How many files can be found."""
    not_embedded: int
    """How many of its texts have no vector: keywords alone find them."""
    scores: Scores | None
    """Means over the questions of which it is known what answers them."""


class StoreComparison(JsonObject, Struct, frozen=True, kw_only=True, rename={"count": "k"}):
    """What a store makes of the same questions at two times."""

    KEYS = (
        "queries count mode questions old new gained lost overlap difference "
        "against_old.interval_95 changed failed notes"
    )

    count: int
    """How many places were looked at."""
    mode: Mode
    """`hybrid`, `vector` or `keyword`."""
    queries: int
    """How many were asked."""
    questions: int
    """Those of which it is known what answers them."""
    old: ComparedTime
    """The store at REV1."""
    new: ComparedTime
    """The store at REV2, or today."""
    changed: tuple[ComparedQuery, ...]
    """The queries that are answered otherwise, most different first."""
    overlap: float
    """The share of the answers that both times give, 0 to 1: the mean over all queries."""
    against_old: Difference | None
    """Of the later time, by nDCG."""
    failed: tuple[str, ...]
    """The bounds that it falls below; the exit code is then 1."""
    notes: tuple[str, ...]
    """What to know about these figures."""

    @property
    def gained(self) -> int:
        """Answers, over all queries, that only the later time gives."""
        return sum(one.old is None for each in self.changed for one in each.answers)

    @property
    def lost(self) -> int:
        """Answers that only the earlier time gives."""
        return sum(one.new is None for each in self.changed for one in each.answers)

    @property
    def difference(self) -> float | None:
        """Of the later time from the earlier one, by nDCG; None where the answers are not known."""
        return self.against_old.mean if self.against_old else None


def compare(
    home: Parts,
    questions: Sequence[Question],
    first: str,
    second: str | None,
    way: Query,
    *,
    gate: Gate | None = None,
    embed: bool = False,
    on_progress: OnProgress = ignore,
) -> StoreComparison:
    """Ask a store the same at two times.

    Args:
        home: The store's own parts.
        questions: At least one; `relevant` is empty where no answer is known.
        first: Names the earlier commit.
        second: Names the later one; None for the files of today, as they are indexed.
        way: How each is asked, but for its text; `k` places are looked at.
        gate: What the later time must not fall below.
        embed: Whether texts that were never embedded are embedded now.
        on_progress: Called with the progress.

    Raises:
        UsageError: A bound cannot be held.
        NoRevisionError: There is no such commit here.
        UnknownRelevantError: The name of an answer means several things.
    """
    gate = gate or Gate()
    gate.require_sound(known=any(one.relevant for one in questions))
    with contextlib.ExitStack() as stack:
        opened = partial(at_commit, home, embed=embed, on_progress=on_progress)
        old = stack.enter_context(opened(first))
        new = stack.enter_context(today(home) if second is None else opened(second))
        asked = _BothTimes(home, old, new, questions, way)
        results = []
        for done, one in enumerate(asked.results(), start=1):
            results.append(one)
            on_progress(Progress(stage="asking both times", done=done, total=len(questions)))
        return _summed(asked, results, gate)


class _BothTimes:
    """Two times that are asked the same."""

    def __init__(
        self, home: Parts, old: Moment, new: Moment, questions: Sequence[Question], way: Query
    ) -> None:
        self.old, self.new = old, new
        self.way = way
        self._questions = questions
        self._pairs: Pairs = pairs_of(home, old, new)
        known = [one for one in questions if one.relevant]
        found = goals_of(old, new, self._pairs, known) if known else None
        self.notes = found.notes if found else ()
        both = zip(found.first, found.second, strict=True) if found else ()
        self._goals = {one.line: goals for one, goals in zip(known, both, strict=True)}

    def results(self) -> Iterator[ComparedQuery]:
        """Every query in its turn."""
        for question in self._questions:
            goals = self._goals.get(question.line, (None, None))
            query = replace(self.way, text=question.query)
            before = after = judge(self.old.hits, query, goals[0])
            if self.old.commit is None or self.old.commit != self.new.commit:
                after = judge(self.new.hits, query, goals[1])
            answers = matched(
                [hit.path for hit in before.hits],
                [hit.path for hit in after.hits],
                self._pairs,
                self.old.texts,
                self.new.texts,
            )
            shared = sum(one.old is not None and one.new is not None for one in answers)
            most = max(len(before.hits), len(after.hits))
            yield ComparedQuery(
                question=question,
                overlap=shared / most if most else 1.0,
                answers=tuple(answers),
                scores=(before.scores, after.scores) if before.scores and after.scores else None,
            )


def _summed(asked: _BothTimes, results: Sequence[ComparedQuery], gate: Gate) -> StoreComparison:
    scored = [one.scores for one in results if one.scores is not None]
    before, after = [old for old, _ in scored], [new for _, new in scored]
    difference = None
    if scored:
        difference = paired_difference([one.ndcg for one in after], [one.ndcg for one in before])
    overlap = sum(one.overlap for one in results) / len(results)
    failed = list(_asked_unlike(asked) if gate != Gate() else ())
    if gate.min_overlap is not None and overlap < gate.min_overlap - _TINY:
        failed.insert(0, f"overlap is {overlap:.4f}, less than {gate.min_overlap:g}")
    if gate.max_loss is not None and difference and -difference.mean > gate.max_loss + _TINY:
        failed.insert(0, f"nDCG fell by {-difference.mean:.4f}, more than {gate.max_loss:g}")
    times = tuple(
        ComparedTime(
            name=moment.name,
            commit=moment.commit,
            files=len(moment.texts),
            not_embedded=moment.not_embedded,
            scores=mean(scores) if scores else None,
        )
        for moment, scores in ((asked.old, before), (asked.new, after))
    )
    notes: list[str] = []
    for moment in (asked.old, asked.new):
        notes += moment.notes_on(asked.way.mode)
        if moment.parts is not None and not moment.texts:
            notes.append(f"{moment.name}: no file that can be found: it answers nothing")
    # Its name is no part of what an answer says.
    changed = [
        each for each in results if any(one.old != one.new or one.edited for one in each.answers)
    ]
    return StoreComparison(
        count=asked.way.k,
        mode=asked.way.mode,
        queries=len(results),
        questions=len(scored),
        old=times[0],
        new=times[1],
        changed=tuple(sorted(changed, key=lambda one: one.overlap)),
        overlap=overlap,
        against_old=difference,
        failed=tuple(failed),
        notes=(*notes, *asked.notes, *_asked_unlike(asked)),
    )


def _asked_unlike(asked: _BothTimes) -> Iterator[str]:
    """Why no bound can be judged: what answers at one time does not at the other."""
    old, new = asked.old, asked.new
    if old.modes and new.modes and old.modes != new.modes:
        by = [" and ".join(sorted(one.modes)) for one in (old, new)]
        yield (
            f"not asked alike: {old.name} answers by {by[0]}, {new.name} by {by[1]};"
            " --mode keyword asks both the same"
        )
