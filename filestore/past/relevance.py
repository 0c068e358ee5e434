"""What answers a question at two times, where its author named it as it is called at one of them.

One rule: what has no such name at a time is not found there; it is never an error that a file came
later, or went.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from filestore.core.paths import CHUNKS, StorePath
from filestore.core.safe_text import brief, listed
from filestore.past.moment import Moment
from filestore.past.pairs import Pairs
from filestore.search.goals import (
    Chunk,
    Goal,
    Key,
    Names,
    chunks_of,
    goal_of,
    keys_of,
    problem_of,
    unknown,
)
from filestore.search.metrics import Question

_SHOWN: Final = 5


class Goals(Struct, frozen=True, kw_only=True):
    """Questions with what answers each, at one time."""

    first: Sequence[Goal]
    second: Sequence[Goal]
    notes: Sequence[str]
    """Which answers there are not, and when."""


class _Then(Struct, frozen=True, kw_only=True):
    """What there is at one time."""

    names: Names
    by_path: Mapping[StorePath, Chunk]
    of: Mapping[Key, Sequence[StorePath]]
    """What each chunk is, and is of: the chunks."""
    lacking: dict[str, None] = field(default_factory=dict)


def goals(first: Moment, second: Moment, pairs: Pairs, questions: Sequence[Question]) -> Goals:
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
            old, new = earlier.names.meant_by(entry), later.names.meant_by(entry)
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
    return Goals(first=found[0], second=found[1], notes=_notes(first, earlier, second, later))


def _then(moment: Moment) -> _Then:
    if moment.parts is None:
        return _Then(names=Names(CHUNKS, (), {}), by_path={}, of={})
    tree = moment.parts.places.tree
    with moment.reading() as catalog:
        chunks = chunks_of(tree, catalog)
        names = Names(tree, chunks, catalog.sources_of_resources())
    of: dict[Key, list[StorePath]] = {}
    for chunk in chunks:
        for key in keys_of(chunk).values():
            of.setdefault(key, []).append(chunk.path)
    return _Then(names=names, by_path={chunk.path: chunk for chunk in chunks}, of=of)


def _called(
    meant: Sequence[Key],
    known: _Then,
    wanted: _Then,
    other: Mapping[StorePath, StorePath],
) -> Key | None:
    """What something is called at another time: where its chunks are there, if it is one thing.

    Args:
        meant: What it is at the time that knows its name; not one thing where that is in doubt.
        known: That time.
        wanted: The other one.
        other: A path of the former to that of the latter.
    """
    if len(meant) != 1:
        return None
    kind = meant[0][0]
    paths = (other.get(path) for path in known.of[meant[0]])
    there = {keys_of(wanted.by_path[path])[kind] for path in paths if path is not None}
    return there.pop() if len(there) == 1 else None


def _notes(first: Moment, earlier: _Then, second: Moment, later: _Then) -> list[str]:
    both = earlier.lacking.keys() & later.lacking.keys()
    found = [
        (f"{first.name} and {second.name} lack", list(filter(both.__contains__, earlier.lacking)))
    ]
    for moment, then in ((first, earlier), (second, later)):
        found.append((f"{moment.name} lacks", [one for one in then.lacking if one not in both]))
    return [
        f"not there, so not found: {who} {listed(map(brief, names), _SHOWN)}"
        for who, names in found
        if names
    ]
