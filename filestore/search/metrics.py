"""How good rankings are: questions with known answers, their measures, what a difference is worth.

What answers a question is what its author calls right, found among the things of a store. One
rule: the measures are those of trec_eval, cut off at a place, so that figures can be compared with
published ones.
"""

import contextlib
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

import orjson
from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import Catalog
from filestore.chunks.observation import INDEXED
from filestore.core.errors import FilestoreError
from filestore.core.paths import StorePath, Tree
from filestore.core.safe_text import brief, listed
from filestore.core.schema import JsonObject, UnfitError, json_of
from filestore.fs.path_names import name_among

if TYPE_CHECKING:
    from filestore.search import Query

SAMPLES: Final = 10_000
"""How many times a bootstrap draws."""
_DRAWN_AT_ONCE: Final = 1_000_000
_SEED: Final = 1979


class QueriesInvalid(FilestoreError, ValueError):
    """A file of questions cannot be used."""


class Question(Struct, frozen=True, kw_only=True):
    """A question and what answers it."""

    id: str
    """As the file says, else the number of its line."""
    line: int
    """Where it is in the file, from 1."""
    query: str
    """What was asked."""
    relevant: Mapping[str, float]
    """What answers it, as the file names it, to a grade: how well. At least one is above 0; empty
    where that is not known."""
    unwanted: tuple[str, ...] = ()
    """What must not be among the first, as the file names it."""


class Scores(JsonObject, Struct, frozen=True, kw_only=True):
    """One ranking, or the mean of several, each from 0 to 1."""

    ndcg: float
    """At the first k places."""
    recall: float
    """At the first k places."""
    mrr: float
    """Of one ranking the reciprocal of the place of its first right answer."""


class Difference(Struct, frozen=True, kw_only=True):
    """How far two means are apart, over the same questions."""

    mean: float
    low: float
    high: float

    @property
    def interval_95(self) -> tuple[float, float]:
        """In 95 of 100 samples of as many questions the difference lies between the two."""
        return self.low, self.high


def parse_queries(data: bytes, *, name: str, known: bool = True) -> list[Question]:
    """The questions of a JSON-lines file; empty lines are passed over.

    Args:
        data: One object a line: ``query``, ``relevant`` (a list of names, or an object of name to
            grade) and, if wanted, ``id`` and ``not`` (a list of names). Other keys are left alone.
        name: What to call the file in errors.
        known: Whether each must say what answers it. If not, ``relevant`` may be left out, and a
            file that does not begin with ``{`` holds a question a line as it is typed.

    Raises:
        QueriesInvalid: A line is no such object, or there is none.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    is_typed = not known and not data.lstrip().startswith(b"{")
    if is_typed and data.lstrip().startswith(b"["):
        with contextlib.suppress(orjson.JSONDecodeError):
            orjson.loads(data)
            raise _invalid(f"{name} is one JSON list")
    read = _typed if is_typed else partial(_question, known=known)
    found = [
        read(line, number, f"{name}, line {number}")
        for number, line in enumerate(data.split(b"\n"), start=1)
        if line.strip()
    ]
    if not found:
        raise _invalid(f"{name} holds no question")
    return found


def _typed(line: bytes, number: int, where: str) -> Question:
    try:
        query = line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise _invalid(f"{where}: not UTF-8") from error
    if "\0" in query:
        raise _invalid(f"{where}: no text")
    return Question(id=str(number), line=number, query=query, relevant={})


def _question(line: bytes, number: int, where: str, *, known: bool) -> Question:
    try:
        values = json_of(line)
    except UnfitError as error:
        raise _invalid(f"{where}: {error.message}") from error
    except orjson.JSONDecodeError as error:
        raise _invalid(f"{where}: not JSON: {error}") from error
    if not isinstance(values, dict):
        raise _invalid(f"{where}: expected an object, found {_shown(values)}")
    query = values.get("query")
    if not isinstance(query, str) or not query.strip():
        raise _invalid(f"{where}: 'query' must be a text, found {_shown(query)}")
    identifier = values.get("id", number)
    if not isinstance(identifier, str | int) or isinstance(identifier, bool):
        raise _invalid(f"{where}: 'id' must be a text or a number, found {_shown(identifier)}")
    answers = values.get("relevant")
    relevant = _relevant(answers, where) if known or answers else {}
    unwanted = values.get("not", [])
    if not _is_texts(unwanted) or not all(map(str.strip, unwanted)):
        raise _invalid(
            f"{where}: 'not' must be a list of paths or sources, found {_shown(unwanted)}"
        )
    return Question(
        id=str(identifier),
        line=number,
        query=query,
        relevant=relevant,
        unwanted=tuple(dict.fromkeys(unwanted)),
    )


def _relevant(value: Any, where: str) -> dict[str, float]:
    grades = dict.fromkeys(value, 1.0) if _is_texts(value) else value
    if not isinstance(grades, dict) or not grades:
        raise _invalid(
            f"{where}: 'relevant' must be a list of paths or sources, or an object of them to"
            f" grades; found {_shown(value)}"
        )
    for name, grade in grades.items():
        if not name.strip():
            raise _invalid(f"{where}: 'relevant' has a path without a name")
        is_number = isinstance(grade, int | float) and not isinstance(grade, bool)
        if not is_number or grade < 0:
            raise _invalid(
                f"{where}: the grade of {brief(name)} must be a number from 0,"
                f" found {_shown(grade)}"
            )
    if not any(grades.values()):
        raise _invalid(f"{where}: nothing in 'relevant' has a grade above 0")
    return {name: float(grade) for name, grade in grades.items()}


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _shown(value: Any) -> str:
    return "nothing" if value is None else brief(value)


def _invalid(message: str) -> QueriesInvalid:
    return QueriesInvalid(
        f'{message}; write one object a line: {{"query": "…", "relevant": ["handbook/leave.md"]}}'
    )


def ndcg(ranking: Sequence[Hashable], grades: Mapping[Any, float], count: int) -> float:
    """Normalised discounted cumulative gain of the first places of a ranking.

    The gain is the grade itself and the discount log2(place + 1), as in trec_eval's ``ndcg_cut``,
    after Järvelin and Kekäläinen (2002); the exponential gain 2^grade − 1 is the same where grades
    are 0 and 1.

    Args:
        ranking: Best first, nothing twice.
        grades: What answers the question, to how well; what is not in it has 0.
        count: How many places are looked at.
    """
    best = sorted(grades.values(), reverse=True)
    return _gain([grades.get(item, 0.0) for item in ranking[:count]]) / _gain(best[:count])


def _gain(grades: Sequence[float]) -> float:
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, start=1))


def recall(ranking: Sequence[Hashable], grades: Mapping[Any, float], count: int) -> float:
    """The share of all right answers that is among the first places."""
    right = {item for item, grade in grades.items() if grade > 0}
    return len(right.intersection(ranking[:count])) / len(right)


def reciprocal_rank(ranking: Sequence[Hashable], grades: Mapping[Any, float], count: int) -> float:
    """One divided by the place of the first right answer; 0 where there is none."""
    for place, item in enumerate(ranking[:count], start=1):
        if grades.get(item, 0.0) > 0:
            return 1 / place
    return 0.0


def score(ranking: Sequence[Hashable], grades: Mapping[Any, float], count: int) -> Scores:
    """All measures of one ranking."""
    return Scores(
        ndcg=ndcg(ranking, grades, count),
        recall=recall(ranking, grades, count),
        mrr=reciprocal_rank(ranking, grades, count),
    )


def mean(scores: Sequence[Scores]) -> Scores:
    """The mean of each measure; every question counts the same."""
    return Scores(
        ndcg=math.fsum(one.ndcg for one in scores) / len(scores),
        recall=math.fsum(one.recall for one in scores) / len(scores),
        mrr=math.fsum(one.mrr for one in scores) / len(scores),
    )


def paired_difference(ours: Sequence[float], theirs: Sequence[float]) -> Difference:
    """How much better one ranking is than another over the same questions.

    The interval is a paired bootstrap's, by percentiles (Efron 1979): questions are drawn again and
    again, as many as there are. The draws are the same each time.

    Args:
        ours: A measure for each question.
        theirs: The same measure of the other ranking, question by question.
    """
    import numpy as np

    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    random = np.random.default_rng(_SEED)
    step = max(1, _DRAWN_AT_ONCE // len(differences))
    means = [
        differences[
            random.integers(len(differences), size=(min(step, SAMPLES - start), len(differences)))
        ].mean(axis=1)
        for start in range(0, SAMPLES, step)
    ]
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return Difference(mean=float(differences.mean()), low=float(low), high=float(high))


_SHOWN: Final = 5
Kind = Literal["path", "source", "resource"]
Key = tuple[Kind, str]


class UnknownRelevantError(FilestoreError, KeyError):
    """The named answer of a question is not in the store."""

    def __str__(self) -> str:
        return self.message


class Located(Protocol):
    """A chunk file, as a hit or as the catalog tells it."""

    @property
    def path(self) -> str:
        """Relative to the store root."""

    @property
    def resource(self) -> str:
        """Its document."""

    @property
    def source(self) -> str | None:
        """Its document, as recorded."""


Found = TypeVar("Found", bound=Located)


class Chunk(Struct, frozen=True, kw_only=True):
    """A chunk that can be found."""

    path: StorePath
    resource: str
    source: str | None


class Goal(Struct, frozen=True):
    """A question with its answers found in the store."""

    query: str
    grades: Mapping[Key, float]
    unit: Kind
    """What is ranked besides the right answers: the widest that these name."""
    unwanted: Mapping[Key, str] = {}
    """What must not come, to what the question calls it."""

    def ranking(self, found: Iterable[Located]) -> list[Key]:
        """Chunks, best first, as the things that are ranked: each where it is first."""
        return list(dict.fromkeys(self._key(one) for one in found))

    def came(self, found: Iterable[Located], count: int) -> tuple[str, ...]:
        """What must not come and is of the first things, as the question calls it."""
        first = dict[Key, None]()
        came = dict[str, None]()
        for one in found if self.unwanted else ():
            key = self._key(one)
            first.setdefault(key)
            if len(first) > count:
                break
            if key not in self.grades:
                names = (self.unwanted.get(each) for each in keys_of(one).values())
                came |= {name: None for name in names if name is not None}
        return tuple(came)

    def _key(self, one: Located) -> Key:
        keys = keys_of(one)
        right = (key for key in keys.values() if key in self.grades)
        return next(right, keys[self.unit])


class Judged(Struct, Generic[Found], frozen=True, kw_only=True):
    """What anything that can be searched answered to one query."""

    hits: Sequence[Found]
    """The first, best first, as many as are looked at."""
    scores: Scores | None = None
    """None where it is not known what answers the query."""
    unwanted: tuple[str, ...] = ()
    """What of its `not` came first."""


def judge(
    hits: "Callable[[Query], Sequence[Found]]", query: "Query", goal: Goal | None
) -> Judged[Found]:
    """Ask for as many unique things as are looked at, or for all there are, and score them.

    Args:
        hits: Answers: a store, one of its models, or the store at a commit.
        query: What is asked; `k` places are looked at.
        goal: What answers it; None where that is not known.
    """
    wanted = query.k
    first = found = hits(query)
    if goal is None:
        return Judged(hits=first)
    while len(ranking := goal.ranking(found)) < query.k and len(found) >= wanted:
        wanted *= 4
        found = hits(replace(query, k=wanted))
    return Judged(
        hits=first,
        scores=score(ranking, goal.grades, query.k),
        unwanted=goal.came(found, query.k),
    )


def keys_of(one: Located) -> dict[Kind, Key]:
    """What a chunk is, and what it is of."""
    source = one.source or one.path
    return {
        "path": ("path", one.path),
        "source": ("source", source),
        "resource": ("resource", one.resource or source),
    }


def goal_of(
    query: str, grades: Mapping[Key, float], unwanted: Mapping[Key, str] | None = None
) -> Goal:
    """A question whose answers were found."""
    kinds = {kind for kind, _ in grades}
    unit: Kind = "resource" if "resource" in kinds else "path"
    return Goal(query, grades, "source" if "source" in kinds else unit, unwanted or {})


def chunks_of(tree: Tree, catalog: Catalog) -> list[Chunk]:
    """Every chunk that can be found, by path."""
    sources = {resource: source for source, resource in catalog.sources_of_resources().items()}
    return [
        Chunk(
            path=tree.store_path(row.path),
            resource=row.resource,
            source=row.source or sources.get(row.resource),
        )
        for row in catalog.all_files()
        if row.state == INDEXED
    ]


def goals_of(
    tree: Tree, chunks: Sequence[Chunk], owners: Mapping[str, str], questions: Sequence[Question]
) -> list[Goal]:
    """Questions with their answers found. What is not in the store cannot come, nor be unwanted.

    Raises:
        UnknownRelevantError: One names nothing, or several things.
    """
    names = Names(tree, chunks, owners)
    goals: list[Goal] = []
    problems: list[str] = []
    for question in questions:
        grades: dict[Key, float] = {}
        for entry, grade in question.relevant.items():
            matches = names.called(entry)
            if len(matches) == 1:
                grades[matches[0]] = max(grade, grades.get(matches[0], 0.0))
                continue
            problems.append(problem_of(question, entry, matches))
        unwanted = {key: name for name in question.unwanted for key in names.called(name)}
        problems += [
            f"line {question.line}: {unwanted[key]!r} is in 'relevant' and in 'not'"
            for key in unwanted.keys() & grades.keys()
        ]
        goals.append(goal_of(question.query, grades, unwanted))
    if problems:
        raise unknown(problems)
    return goals


def problem_of(question: Question, entry: str, matches: Sequence[Key]) -> str:
    """What is wrong with the name of an answer that means not just one thing."""
    fitting = f"it could be {listed((value for _, value in matches), _SHOWN)}"
    reason = fitting if matches else "nothing in the store has this name"
    return f"line {question.line}: {entry!r}: {reason}"


def unknown(problems: Sequence[str]) -> UnknownRelevantError:
    """What to raise of names that mean not just one thing."""
    entries = "one entry names" if len(problems) == 1 else f"{len(problems):,} entries name"
    return UnknownRelevantError(
        f"{entries} nothing, or several things: {listed(problems, _SHOWN, separator='; ')}",
        remedy="'filestore ls --json' lists what can be named: chunks, sources, documents",
        detail="\n".join(problems),
    )


class Names:
    """What a person may call the things of a store."""

    def __init__(self, tree: Tree, chunks: Iterable[Chunk], owners: Mapping[str, str]) -> None:
        self._exact: dict[str, Key] = {}
        self._ends: dict[str, set[Key]] = {}
        for chunk in chunks:
            self._exact.setdefault(chunk.path, ("path", chunk.path))
            self._exact.setdefault(tree.chunk_path(chunk.path), ("path", chunk.path))
            if chunk.resource:
                self._exact.setdefault(chunk.resource, ("resource", chunk.resource))
            if chunk.source is not None and chunk.source not in self._exact:
                self._add(chunk.source, ("source", chunk.source))
        for source, resource in owners.items():
            # A folder that is one resource has sources below it, and is none itself.
            if source not in self._exact and resource in self._exact:
                self._add(source, ("resource", resource))

    def _add(self, name: str, key: Key) -> None:
        self._exact[name] = key
        parts = name.split("/")
        for start in range(len(parts)):
            self._ends.setdefault("/".join(parts[start:]), set()).add(key)

    def called(self, entry: str) -> list[Key]:
        """What has this name, or, where nothing has, what ends with it."""
        name = name_among(os.path.normpath(entry.strip()), (*self._exact, *self._ends))
        if name in self._exact:
            return [self._exact[name]]
        return sorted(self._ends.get(name, ()))
