"""The files most similar to one, as search shows its hits: by stored vectors, so without a model.

One rule: of an original its own chunks are no answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from filestore.browse.named import files_named
from filestore.browse.vectors import Explorer
from filestore.catalog import Catalog, FileRow, decode_path, queries
from filestore.chunks.observation import DOCUMENT
from filestore.core import diff
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.findings import FromIndex
from filestore.core.paths import ChunkPath, StorePath
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.search import authority, freshness
from filestore.search.answer import FoundFile, beginning, stem, titles_of
from filestore.search.freshness import Look
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

    from filestore.index import VectorIndex

_SPARE = 8


class SimilarHit(JsonObject, FoundFile, frozen=True, kw_only=True):
    """One file that is similar; its score is the cosine of the nearest two texts, -1 to 1."""

    KEYS = "path score line title kind resource source freshness headings pages excerpt text"
    SPARSE = "line"

    line: int
    """Of the file, on which its nearest text begins, 1-based; 0 for none."""
    text: str
    """The body as it is now; empty for a file that is gone."""
    title: str = ""
    """Of the document; the name of its file where it has none."""

    @property
    def excerpt(self) -> str:
        """How `text` begins below its headings, as it is read: links by their text."""
        return beginning(self.text, self.source)


class Similar(FromIndex, frozen=True, kw_only=True):
    """The files most similar to some."""

    to: tuple[StorePath, ...]
    """The chunk files that were named."""
    source: str | None
    """The original that was named; None where a chunk file was."""
    line: int | None
    """The line that was named."""
    generation: int
    """Of the index that answered."""
    hits: tuple[SimilarHit, ...]
    """Best first; files that are gone come behind the others, where there is room."""
    notes: tuple[str, ...]
    """What to know about this answer."""


def similar(parts: Parts, path: str, count: int) -> Similar:
    """The files whose texts are nearest to those of a chunk file, of an original, or of its line.

    Args:
        parts: The store's.
        path: PATH or PATH:LINE; see `files_named`.
        count: At most this many.

    Raises:
        UsageError: The count is not positive.
        UnknownPathError, NoLineError: There is no such file, or line.
        NoVectorError: There is no vector to start from.
        CatalogMissingError: There is no catalog yet.
    """
    if count < 1:
        raise UsageError(f"-k must be at least 1, found {count}")
    with parts.reading() as catalog:
        asked = files_named(parts.places, catalog, path)
        explorer = Explorer(parts)
        wanted = count + _SPARE
        while True:
            near = explorer.nearest(asked.paths, wanted, part=asked.part)
            scores = {path: score for path, score, _ in near}
            texts = [(path, part) for path, _, part in near]
            looks = [(row, look) for row, _, look in freshness.looks(parts, catalog, texts)]
            hits = [
                SimilarHit(
                    **_facts(parts, catalog, row, look),
                    score=scores[row.path],
                    line=freshness.first_line(look.body, look.body_line) if look.body else 0,
                    text=look.body,
                )
                for row, look in looks
                # What is excluded from search is seen, and no hit.
                if look.freshness is not None
            ]
            there = [hit for hit in hits if hit.freshness != "gone"]
            if len(there) >= count or len(near) < wanted:
                break
            wanted *= 4
        gone = [hit for hit in hits if hit.freshness == "gone"]
        tree = parts.places.tree
        shown, stale_notes = authority.outdated([*there, *gone][:count], parts, catalog)
        ids = {tree.store_path(row.path): row.id for row, _ in looks}
        titles = titles_of(shown, ids, catalog)
        paths = {tree.chunk_path(hit.path) for hit in shown}
        seen = [look for row, look in looks if look.freshness is None or row.path in paths]
        return Similar(
            to=tuple(map(tree.store_path, asked.paths)),
            source=asked.source,
            line=asked.line,
            generation=catalog.generation,
            hits=tuple(
                replace(hit, title=titles[hit.path] or stem(hit.source or hit.path))
                for hit in shown
            ),
            notes=(*_vector_notes(parts, catalog), *freshness.notes(seen), *stale_notes),
        )


def _facts(parts: Parts, catalog: Catalog, row: FileRow, look: Look) -> dict[str, Any]:
    """What every answer says of a file, but for its score."""
    return {
        "path": parts.places.tree.store_path(row.path),
        "kind": row.kind,
        "resource": row.resource,
        "source": catalog.source_of(row),
        "freshness": look.freshness,
        "headings": look.headings,
        "pages": look.pages,
    }


def _vector_notes(parts: Parts, catalog: Catalog) -> list[str]:
    """What is to be known of answers that rest on stored vectors."""
    found = []
    lacking = len(catalog.vector_keys(embedded=False))
    if lacking:
        texts = "1 passage has" if lacking == 1 else f"{lacking:,} passages have"
        found.append(f"{texts} no vector yet and cannot be found: run 'filestore sync'")
    embedder = parts.same_model(catalog)
    if embedder is None:
        found.append(f"{parts.model.why_not.message}: compared by the vectors that are stored")
    elif embedder.lexical:
        found.append("the builtin embedder compares words, not meaning")
    return found


MOST_DIFFED: Final = 10
"""This many files of a group have a diff: a group of hundreds is boilerplate."""
MOST_DIFF_BYTES: Final = 20_000
COMPARED_WITH_ALL: Final = 100_000
"""Up to this many bodies each is compared with each; of more, with the ones the index finds, where
it has lists: that many searches of all vectors would take longer than comparing them in blocks."""
_BLOCK: Final = 2_048
_NEAREST: Final = 32
_MOST_NEAREST: Final = 2_048
_ROUNDING: Final = 1e-6


class DuplicateFile(JsonObject, FoundFile, frozen=True, kw_only=True):
    """One file of a group; its score is the cosine to the first of them, 1 for the same text."""

    KEYS = "path score line kind resource source freshness headings pages diff cut"
    SPARSE = "line cut"

    line: int
    """Of a document in place, on which the section begins, 1-based; 0 for none."""
    diff: str
    """A unified diff from the body of the first file to its own, as both are now; empty where they
    are equal."""
    cut: bool
    """Whether the diff goes on, or was left out: behind the first ten files of a group it is."""


class DuplicateGroup(JsonObject, Struct, frozen=True, kw_only=True):
    """Files that are the same, or near to each other; two or more, by path."""

    same: bool
    """Whether all were indexed with one text; else each is near to another of the group."""
    files: tuple[DuplicateFile, ...]
    """Two or more, by path; in place one for each section."""


class Duplicates(FromIndex, frozen=True, kw_only=True):
    """All groups of a store."""

    above: float
    """The least cosine of texts that count as nearly the same."""
    generation: int
    """Of the index that answered."""
    groups: tuple[DuplicateGroup, ...]
    """By the path of their first file."""
    notes: tuple[str, ...]
    """What to know about this answer."""

    def __iter__(self) -> Iterator[DuplicateGroup]:
        return iter(self.groups)


_Near: TypeAlias = "Mapping[int, tuple[int, NDArray[float32]]]"
"""Vector id of each body that is near to another: its group, and its vector."""
Pairs: TypeAlias = "Iterator[tuple[int, NDArray[int64]]]"
"""A place, and places that it is near to."""
Text = tuple[ChunkPath, int]
"""A file, and which section of a document in place."""
Member = tuple[Text, int, float]
"""A text, the vector id of its body, and the cosine to that of the first of its group."""


def duplicates(parts: Parts, above: float, on_progress: OnProgress = ignore) -> Duplicates:
    """Find the files whose bodies are the same or nearly; questions are not compared.

    Args:
        parts: The store's.
        above: The least cosine of texts that count as nearly the same, 0 to 1.
        on_progress: Called with the progress.

    Raises:
        UsageError: `above` is no such number.
        CatalogMissingError: There is no catalog yet.
    """
    if not 0 < above <= 1:
        raise UsageError(f"--above must be above 0 and at most 1, found {above}")
    with parts.reading() as catalog:
        owners: dict[int, list[Text]] = {}
        for identifier, path, part in queries.bodies(catalog):
            owners.setdefault(identifier, []).append((decode_path(path), part))
        found_notes: list[str] = []
        try:
            near = _near(Explorer(parts), above, on_progress)
            found_notes += _vector_notes(parts, catalog)
        except FilestoreError as error:
            near = {}
            found_notes.append(f"{error.in_one_line}: only equal passages are compared")
        groups, seen = [], []
        for members in _groups(owners, near):
            group, looked = _group(parts, catalog, members)
            seen += looked
            if len(group.files) > 1:
                groups.append(group)
        large = sum(len(group.files) > MOST_DIFFED for group in groups)
        if large:
            number = "1 group has" if large == 1 else f"{large:,} groups have"
            found_notes.append(
                f"{number} more than {MOST_DIFFED} files, as headers, footers and forms do;"
                f" of each only the first {MOST_DIFFED} have a diff"
            )
        return Duplicates(
            above=above,
            generation=catalog.generation,
            groups=tuple(groups),
            notes=(*found_notes, *freshness.notes(seen)),
        )


def _near(explorer: Explorer, above: float, on_progress: OnProgress) -> _Near:
    import numpy

    rows, vectors = explorer.bodies()
    first = [n for n, row in enumerate(rows) if not n or row[0] != rows[n - 1][0]]
    ids = numpy.array([rows[n][0] for n in first], numpy.int64)
    vectors = vectors[first]
    index = explorer.searcher() if len(ids) > COMPARED_WITH_ALL else None
    if index is not None and index.has_lists:
        pairs = _found_pairs(index, ids, vectors, above, on_progress)
    else:
        pairs = near_pairs(vectors, above, on_progress)
    labels = joined(len(ids), pairs)
    counts = numpy.bincount(labels, minlength=len(ids))
    kept = numpy.flatnonzero(counts[labels] > 1).tolist()
    return {int(ids[place]): (int(labels[place]), vectors[place]) for place in kept}


def near_pairs(
    vectors: "NDArray[float32]", above: float, on_progress: OnProgress = ignore
) -> Pairs:
    """Each place with the places behind it whose vectors are near: block by block, nothing missed.

    Args:
        vectors: (n, dimension) float32, rows of length 1.
        above: The least cosine.
        on_progress: Called with the progress, in vectors.
    """
    import numpy

    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        for other in range(start, len(vectors), _BLOCK):
            near = block @ vectors[other : other + _BLOCK].T >= above - _ROUNDING
            if other == start:
                near = numpy.triu(near, 1)
            for row in numpy.flatnonzero(near.any(axis=1)).tolist():
                yield start + row, other + numpy.flatnonzero(near[row])
        done = min(start + _BLOCK, len(vectors))
        on_progress(Progress(stage="compare", done=done, total=len(vectors)))


def _found_pairs(
    index: "VectorIndex",
    ids: "NDArray[int64]",
    vectors: "NDArray[float32]",
    above: float,
    on_progress: OnProgress,
) -> Pairs:
    """The same by the vector index, which may miss one pair in a hundred."""
    import numpy

    for place, vector in enumerate(vectors):
        count = _NEAREST
        while True:
            found = index.search(vector, count)
            near = [one for one, score in found if score >= above - _ROUNDING]
            if len(near) < len(found) or len(found) < count or count >= _MOST_NEAREST:
                break
            count *= 4
        places = numpy.searchsorted(ids, near)
        places = places[places < len(ids)]
        yield place, places[numpy.isin(ids[places], near)]
        if place % _BLOCK == 0:
            on_progress(Progress(stage="compare", done=place, total=len(ids)))


def joined(count: int, pairs: Pairs) -> "NDArray[int64]":
    """Which places hang together, by pairs: (count,) int64, the same number for such places."""
    import numpy

    parents = numpy.arange(count)

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = int(parents[place])
        return place

    for place, others in pairs:
        own = root(place)
        # Most of a large group hang together already.
        for other in others[parents[others] != own].tolist():
            found = root(other)
            own, high = min(own, found), max(own, found)
            parents[high] = parents[other] = own
        parents[place] = own
    return numpy.array([root(place) for place in range(count)], numpy.int64)


def _groups(owners: dict[int, list[Text]], near: _Near) -> list[list[Member]]:
    """The files of each group, by path, and each with its cosine to the first."""
    together: dict[int, list[int]] = {}
    for identifier, (label, _) in near.items():
        together.setdefault(label, []).append(identifier)
    sets = [*together.values(), *([one] for one in owners if one not in near)]
    groups = []
    for identifiers in sets:
        texts = sorted((text, one) for one in identifiers for text in owners.get(one, ()))
        if len(texts) > 1:
            first = texts[0][1]
            groups.append(
                [
                    (text, one, 1.0 if one == first else float(near[first][1] @ near[one][1]))
                    for text, one in texts
                ]
            )
    return sorted(groups)


def _group(
    parts: Parts, catalog: Catalog, members: Sequence[Member]
) -> tuple[DuplicateGroup, list[Look]]:
    """The files of a group that are there, with diffs; and what all of them are now."""
    scores = {text: score for text, _, score in members}
    identifiers = {text: identifier for text, identifier, _ in members}
    files: list[DuplicateFile] = []
    seen, same = [], set()
    before = first = ""
    for row, part, look in freshness.looks(parts, catalog, list(scores)):
        text = row.path, part
        seen.append(look)
        if look.freshness in (None, "gone"):
            continue
        same.add(identifiers[text])
        path, difference = shown_path(parts.places.tree.store_path(row.path)), diff.Difference()
        if not files:
            before, first = look.body, path
        elif len(files) > MOST_DIFFED:
            difference = diff.Difference(cut=look.body != before)
        else:
            names = first, path
            difference = diff.unified(before, look.body, names=names, most_bytes=MOST_DIFF_BYTES)
        made = DuplicateFile(
            **_facts(parts, catalog, row, look),
            score=scores[text],
            line=freshness.first_line(look.body, look.body_line) if row.kind == DOCUMENT else 0,
            diff=difference.text,
            cut=difference.cut,
        )
        files.append(made)
    # The notes would name results; each file says what it is.
    marked, _ = authority.outdated(files, parts, catalog)
    return DuplicateGroup(same=len(same) == 1, files=tuple(marked)), seen
