"""What answers a question: what its author calls right, found among the things of a store. Pure."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from filestore.catalog import Catalog
from filestore.chunks.observation import INDEXED
from filestore.core.errors import FilestoreError
from filestore.core.paths import StorePath, Tree
from filestore.core.safe_text import listed
from filestore.fs.path_names import name_among
from filestore.search.metrics import Question

_SHOWN: Final = 5
Kind = Literal["path", "source", "resource"]
Key = tuple[Kind, str]


class UnknownRelevantError(FilestoreError, KeyError):
    """What is said to answer a question is not in the store."""

    def __str__(self) -> str:
        return self.message


class Located(Protocol):
    """A chunk file, as a hit or as the catalog tells it."""

    @property
    def path(self) -> str:
        """Relative to the store root."""

    @property
    def resource(self) -> str:
        """Its resource."""

    @property
    def source(self) -> str | None:
        """Its document, as recorded."""


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
    """What is ranked beside the right answers: the widest that these name."""
    unwanted: Mapping[Key, str] = {}
    """What must not come, to what the question calls it."""

    def ranking(self, found: Iterable[Located]) -> list[Key]:
        """Chunks, best first, as the things that are ranked: each where it stands first."""
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
            meant = names.meant_by(entry)
            if len(meant) == 1:
                grades[meant[0]] = max(grade, grades.get(meant[0], 0.0))
                continue
            problems.append(problem_of(question, entry, meant))
        unwanted = {key: name for name in question.unwanted for key in names.meant_by(name)}
        problems += [
            f"line {question.line}: {unwanted[key]!r} is in 'relevant' and in 'not'"
            for key in unwanted.keys() & grades.keys()
        ]
        goals.append(goal_of(question.query, grades, unwanted))
    if problems:
        raise unknown(problems)
    return goals


def problem_of(question: Question, entry: str, meant: Sequence[Key]) -> str:
    """What is wrong with the name of an answer that means not just one thing."""
    fitting = f"it could be {listed((value for _, value in meant), _SHOWN)}"
    reason = fitting if meant else "nothing in the store has this name"
    return f"line {question.line}: {entry!r}: {reason}"


def unknown(problems: Sequence[str]) -> UnknownRelevantError:
    """What to raise of names that mean not just one thing."""
    entries = "one entry names" if len(problems) == 1 else f"{len(problems):,} entries name"
    return UnknownRelevantError(
        f"{entries} nothing, or several things: {listed(problems, _SHOWN, separator='; ')}",
        remedy="name a chunk, a source or a resource: 'filestore ls --json' lists them",
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

    def meant_by(self, entry: str) -> list[Key]:
        """What has this name, or, where nothing has, what ends with it."""
        name = name_among(os.path.normpath(entry.strip()), (*self._exact, *self._ends))
        if name in self._exact:
            return [self._exact[name]]
        return sorted(self._ends.get(name, ()))
