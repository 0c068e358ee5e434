"""What many documents are about: groups of alike ones, named by words that are rare elsewhere.

Groups are made by spherical k-means over the words of each document and, where the model knows
meaning, the middle of its vectors. A word names a group by the log-likelihood of its documents
against the others (Dunning 1993), by how rare it is in English (its rank in the bundled model's
vocabulary), and by how often titles and headings have it. One rule: the same documents give the
same topics, no word of a single document is a name, and what any project has (a licence, a code of
conduct) is no topic.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.browse.topic_words import COMMON, Words, rank, words_of
from filestore.catalog import Catalog, decode_path
from filestore.chunks import kept
from filestore.core.errors import FilestoreError
from filestore.core.paths import ChunkPath
from filestore.core.schema import JsonObject
from filestore.extract import is_code
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

FEWEST_DOCUMENTS: Final = 6
"""Of fewer the titles say as much."""
MOST_DOCUMENTS: Final = 1_000
"""Of more a fixed choice is looked at."""
_MOST_TOPICS: Final = 10
_WANTED: Final = 5
"""Topics, where each can have two documents."""
_FEWEST: Final = 2
"""Documents of a topic, and of a word that names one."""
_TERMS: Final = 4
_PATHS: Final = 3
_MOST_WORDS: Final = 2_000
"""Different ones, those of most documents first."""
_MOST_VECTORS: Final = 20_000
_BY_MEANING: Final = 0.6
"""How much the vectors count, the words the rest."""
_USUAL: Final = 0.5
"""Of all documents: a word that more of them have tells them apart from none."""
_SHARE: Final = 0.3
"""Of the documents of a topic: a word that fewer of them have names it not."""
_TURNS: Final = 20
_OF_TEXT: Final = 0.1
"""How much a word counts that no title and no heading has."""
_OF_PAIR: Final = 1.2
_LEAST: Final = 0.15
"""Of the score of the first word of a topic."""
_STEM: Final = 5
"""Letters that words of one stem begin with."""
_PLATES: Final = re.compile(
    r"(?:^|/)(?:licen[cs]e|copying|notice|code[-_ ]?of[-_ ]?conduct|authors|changelog)\b",
    re.IGNORECASE,
)


class Topic(JsonObject, Struct, frozen=True, kw_only=True):
    """What some documents have in common."""

    terms: tuple[str, ...]
    """Words that these documents have and the others do not, the most telling first."""
    documents: int
    """How many they are."""
    paths: tuple[str, ...]
    """Three of them, the most typical first."""


def topics(parts: Parts, catalog: Catalog, known: Mapping[str, ChunkPath]) -> list[Topic]:
    """What documents are about; nothing of a few.

    Args:
        parts: The store's.
        catalog: Inside a snapshot.
        known: The documents by name, with a file of each.
    """
    fit = [name for name in sorted(known) if not (_PLATES.search(name) or is_code(name))]
    if len(fit) < FEWEST_DOCUMENTS:
        return []
    some = [fit[place * len(fit) // MOST_DOCUMENTS] for place in range(MOST_DOCUMENTS)]
    names = fit if len(fit) <= MOST_DOCUMENTS else some
    documents = [*_read(parts, catalog, {name: known[name] for name in names})]
    return grouped(documents, _meanings(parts, documents))


def grouped(documents: Sequence[Words], meanings: "NDArray[float32] | None" = None) -> list[Topic]:
    """Topics of documents, the largest first.

    Args:
        documents: In any order; the same order gives the same topics.
        meanings: A vector for each of them.
    """
    found = []
    parted = [one for one in groups(documents, meanings) if len(one) >= _FEWEST]
    for members, terms in zip(parted, _named(documents, parted), strict=True):
        if terms:
            paths = tuple(documents[row].path for row in members[:_PATHS])
            found.append(Topic(terms=terms, documents=len(members), paths=paths))
    return sorted(found, key=lambda one: (-one.documents, one.paths))


# Documents as their words


def _read(parts: Parts, catalog: Catalog, known: Mapping[str, ChunkPath]) -> Iterator[Words]:
    rows = {row.path: row for row in catalog.files([*known.values()]).values()}
    for name, path in known.items():
        of = [rows[path]] if path in rows else []
        if of and not parts.places.tree.has_sections and of[0].resource:
            source = catalog.source_of(of[0])
            every = catalog.files_of(of[0].resource)
            of = [one for one in every if one.kind == "chunk" and catalog.source_of(one) == source]
        names, text = re.sub("[-_]", " ", os.path.splitext(name)[0]).split("/"), list[str]()
        for row in of[:20]:
            with suppress(ValueError):
                chunk = kept.read(catalog.content(row.id) or b"")
                names += chunk.headings[-1:]
                names += [one for section in chunk.sections for one in section.headings[-1:]]
                text.append(chunk.body)
        yield words_of(name, "\n".join(names), "\n".join(text), tuple(row.path for row in of))


# Groups


def _meanings(parts: Parts, documents: Sequence[Words]) -> "NDArray[float32] | None":
    """The middle of the vectors of each document; None where they compare words only."""
    import numpy

    from filestore.browse.vectors import Explorer

    if parts.settings.embedder == "builtin":
        return None
    try:
        rows, vectors = Explorer(parts).bodies(_MOST_VECTORS)
    except FilestoreError:
        return None
    of = {path: place for place, one in enumerate(documents) for path in one.files}
    middles = numpy.zeros((len(documents), vectors.shape[1]), numpy.float32)
    for (_, _, path, _), vector in zip(rows, vectors, strict=True):
        place = of.get(decode_path(path))
        if place is not None:
            middles[place] += vector
    middles = _unit(middles)
    # What all have in common tells none apart.
    return _unit(middles - middles.mean(axis=0)) if len(middles) else None


def groups(documents: Sequence[Words], meanings: "NDArray[float32] | None") -> Iterator[list[int]]:
    """Rows of alike documents, each the most typical first."""
    import numpy

    total = len(documents)
    frequency = Counter(word for one in documents for word in one.weights if " " not in word)
    fit = [one for one, count in frequency.items() if _FEWEST <= count <= max(3, _USUAL * total)]
    words = sorted(fit, key=lambda word: (-frequency[word], word))[:_MOST_WORDS]
    column = {word: place for place, word in enumerate(words)}
    matrix = numpy.zeros((total, len(words)), numpy.float32)
    for row, one in enumerate(documents):
        for word in one.weights.keys() & column.keys():
            matrix[row, column[word]] = one.weights[word] * math.log(total / frequency[word])
    matrix = _unit(matrix)
    if meanings is not None:
        shares = (1 - _BY_MEANING) ** 0.5, _BY_MEANING**0.5
        matrix = numpy.concatenate([matrix * shares[0], meanings * shares[1]], axis=1)
    matrix = matrix[:, matrix.any(axis=0)]
    if not matrix.size:
        return
    middles = _seeds(matrix, min(_MOST_TOPICS, max(2, min(_WANTED, total // 2), round(total**0.5))))
    of = None
    for _ in range(_TURNS):
        scores = matrix @ middles.T
        new = scores.argmax(axis=1)
        if of is not None and (new == of).all():
            break
        of = new
        middles = _unit(numpy.stack([matrix[of == one].sum(axis=0) for one in range(len(middles))]))
    for place in range(len(middles)):
        own = [row for row in range(total) if new[row] == place and scores[row, place] > 0]
        yield sorted(own, key=lambda row: (-round(float(scores[row, place]), 5), row))


def _seeds(matrix: "NDArray[float32]", most: int) -> "NDArray[float32]":
    """Documents to begin with: in the midst of others, and far from each other."""
    import numpy

    near = matrix @ matrix.T
    numpy.fill_diagonal(near, 0)
    few = min(5, len(matrix))
    density = numpy.partition(near, len(matrix) - few, axis=1)[:, -few:].mean(axis=1)
    chosen = [int(density.argmax())]
    closest = near[chosen[0]].copy()
    while len(chosen) < most:
        closest[chosen] = 1
        chosen.append(int((density * (1 - closest)).argmax()))
        closest = numpy.maximum(closest, near[chosen[-1]])
    return matrix[sorted(set(chosen))]


def _unit(matrix: "NDArray[float32]") -> "NDArray[float32]":
    import numpy

    norms = numpy.linalg.norm(matrix, axis=1, keepdims=True)
    return (matrix / numpy.where(norms, norms, 1)).astype(numpy.float32)


# Names


def _named(documents: Sequence[Words], parted: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
    """The words that tell each group from the others, the most telling first; none for two."""
    every = Counter(word for one in documents for word in one.weights)
    scored = []
    for place, members in enumerate(parted):
        inside = Counter(word for row in members for word in documents[row].weights)
        titled = Counter(word for row in members for word in documents[row].in_names)
        group, rest = len(members), len(documents) - len(members)
        for word, count in inside.items():
            is_usual = every[word] > _USUAL * len(documents)
            if count < max(_FEWEST, _SHARE * group) or is_usual:
                continue
            value = _keyness(count, group, every[word] - count, rest)
            value *= math.log(2 + rank(word) / COMMON) * (_OF_TEXT + titled[word] / count)
            scored.append((-value * (_OF_PAIR if " " in word else 1), word, place))
    best: dict[int, float] = {}
    terms: list[list[str]] = [[] for _ in parted]
    taken: set[str] = set()
    for value, word, place in sorted(scored):
        own = {one[:_STEM] for one in word.split()}
        is_telling = value < 0 and value <= _LEAST * best.setdefault(place, value)
        if is_telling and own.isdisjoint(taken) and len(terms[place]) < _TERMS:
            terms[place].append(word)
            taken |= own
    return [
        tuple(_spelled(documents, members, word) for word in own)
        for members, own in zip(parted, terms, strict=True)
    ]


def _keyness(inside: int, group: int, outside: int, rest: int) -> float:
    """The log-likelihood of a group having a word this often, against the rest."""
    share = (inside + outside) / (group + rest)
    if not rest or inside / group <= outside / rest:
        return 0.0 if rest else float(inside)
    value = 0.0
    for seen, size in ((inside, group), (outside, rest)):
        for part, expected in ((seen, share * size), (size - seen, (1 - share) * size)):
            value += part * math.log(part / expected) if part else 0
    return 2 * value


def _spelled(documents: Sequence[Words], members: Iterable[int], word: str) -> str:
    forms = Counter(
        documents[row].spelled[word] for row in members if word in documents[row].spelled
    )
    return min(forms, key=lambda form: (-forms[form], form))
