"""Summaries and what they were made from, as the catalog has them: a forest, if no file lies.

Rows come as the files say; what is cyclic or hangs in the air is for the caller to see. One rule:
a child is up to date where an indexed file of its path has a text with its key.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog._rows import BODY, MADE, decode_path, encode_path
from filestore.chunks.frontmatter import QUESTIONS_FROM
from filestore.core.paths import ChunkPath

if TYPE_CHECKING:
    from filestore.catalog._reading import Catalog

_IN_STEP: Final = (
    "EXISTS (SELECT 1 FROM files AS child JOIN parts ON parts.file = child.id"
    " JOIN vectors ON vectors.id = parts.vector"
    " WHERE child.path = children.path AND child.state = '' AND vectors.key = children.key)"
)
_ALL_IN_STEP: Final = (
    "(children.path, children.key) IN (SELECT child.path, vectors.key FROM files AS child"
    " JOIN parts ON parts.file = child.id JOIN vectors ON vectors.id = parts.vector"
    " WHERE child.state = '' AND child.path IN (SELECT path FROM children))"
)
"""The same of all children at once: a document in place may have thousands of texts, of which one
by one each would be looked for among all."""
_IS_THERE: Final = (
    "EXISTS (SELECT 1 FROM files AS child WHERE child.path = children.path AND child.state = '')"
)
_OF_SUMMARIES: Final = "children.file = files.id AND files.kind <> 'questions'"
_ALL_CHILDREN: Final = (
    f"SELECT files.path, children.path, children.key, {_ALL_IN_STEP}, {_IS_THERE}"
    f" FROM children CROSS JOIN files ON {_OF_SUMMARIES} WHERE files.state = ''"
)
_STALE: Final = (
    "WITH RECURSIVE below(file) AS (SELECT id FROM files WHERE path = ? UNION SELECT child.id"
    " FROM below CROSS JOIN children ON children.file = below.file"
    " CROSS JOIN files AS child ON child.path = children.path)"
    " SELECT 1 FROM below CROSS JOIN children ON children.file = below.file"
    f" WHERE NOT {_IN_STEP} LIMIT 1"
)
_LACKS_TEXTS: Final = (
    "SELECT 1 FROM files AS top CROSS JOIN files ON files.resource = top.resource"
    " CROSS JOIN parts ON parts.file = files.id"
    " CROSS JOIN vectors ON vectors.id = parts.vector"
    f" WHERE top.path = ? AND files.state = '' AND files.kind <> 'summary' AND {BODY}"
    " AND EXISTS (SELECT 1 FROM children WHERE file = top.id)"
    " AND NOT EXISTS (SELECT 1 FROM children WHERE path = top.path)"
    " AND NOT EXISTS (SELECT 1 FROM children WHERE path = files.path AND key = vectors.key)"
    " AND vectors.key NOT IN (SELECT key FROM children) LIMIT 1"
)
"""A text that moved is in a summary under its key alone, which takes longer to see."""
_CHILDREN_OF: Final = (
    f"SELECT files.path, children.path, children.key FROM files CROSS JOIN children"
    f" ON {_OF_SUMMARIES} WHERE files.state = '' AND files.path IN ({{}})"
)
_KEYS_OF: Final = (
    "SELECT files.path, vectors.key FROM files LEFT JOIN parts ON parts.file = files.id"
    " LEFT JOIN vectors ON vectors.id = parts.vector WHERE state = '' AND files.path IN ({})"
)
_PARENTS: Final = (
    f"SELECT children.path, files.path FROM children CROSS JOIN files ON {_OF_SUMMARIES}"
    " WHERE files.state = '' AND children.path IN ({})"
)


class ChildRow(Struct, frozen=True, kw_only=True):
    """One child of one summary."""

    summary: ChunkPath
    path: ChunkPath
    key: bytes
    """The embedding key of the text that was read; empty where the file names none."""
    in_step: bool
    """Whether that text is there now."""
    is_there: bool
    """Whether there is an indexed file of its path at all."""


def has_summaries(catalog: "Catalog") -> bool:
    """Whether any summary names a child; a look at one row."""
    return bool(catalog.rows("SELECT 1 FROM children LIMIT 1"))


def named_by(catalog: "Catalog", file: int) -> set[tuple[ChunkPath, bytes]]:
    """What a file is recorded to be made from: paths, and the keys that their texts had."""
    found = catalog.rows("SELECT path, key FROM children WHERE file = ?", (file,))
    return {(decode_path(path), key) for path, key in found}


def is_in_step(catalog: "Catalog") -> bool:
    """Whether every child is as it was read; a fifth of what it takes to tell which are not."""
    statement = f"SELECT 1 FROM children WHERE NOT {_ALL_IN_STEP} LIMIT 1"
    return not catalog.rows(statement)


def all_children(catalog: "Catalog") -> Iterator[ChildRow]:
    """The children of all indexed summaries, by summary and path."""
    rows = catalog.connection.execute(f"{_ALL_CHILDREN} ORDER BY 1, 2, 3")
    for summary, path, key, in_step, is_there in rows:
        yield ChildRow(
            summary=decode_path(summary),
            path=decode_path(path),
            key=key,
            in_step=bool(in_step),
            is_there=bool(is_there),
        )


def children_below(catalog: "Catalog", summaries: Iterable[ChunkPath]) -> list[ChildRow]:
    """The children of some summaries, and of those below them, by summary and path.

    Takes time in proportion to these alone.
    """
    new = list(map(encode_path, summaries))
    found: list[tuple[bytes, bytes, bytes]] = []
    seen = set(new)
    while new:
        rows = list(catalog.rows_among(_CHILDREN_OF, new))
        found += rows
        new = list(dict.fromkeys(path for _, path, _ in rows if path not in seen))
        seen.update(new)
    texts = set(catalog.rows_among(_KEYS_OF, dict.fromkeys(path for _, path, _ in found)))
    there = {path for path, _ in texts}
    return [
        ChildRow(
            summary=decode_path(summary),
            path=decode_path(path),
            key=key,
            in_step=(path, key) in texts,
            is_there=path in there,
        )
        for summary, path, key in sorted(found)
    ]


class Ancestors:
    """What is above files, as it is asked for; remembered, so of one generation."""

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog
        self._parents: dict[ChunkPath, set[ChunkPath]] = {}

    def of(self, paths: Sequence[ChunkPath]) -> dict[ChunkPath, set[ChunkPath]]:
        """Of each of some files that are in a summary those above it; nothing else is read."""
        new = paths
        while new := [path for path in new if path not in self._parents]:
            self._parents.update((path, set()) for path in new)
            for path, summary in self._catalog.rows_among(_PARENTS, map(encode_path, new)):
                self._parents[decode_path(path)].add(decode_path(summary))
            new = list({above for path in new for above in self._parents[path]})
        return {path: self._above(path) for path in paths if self._parents[path]}

    def _above(self, path: ChunkPath) -> set[ChunkPath]:
        found: set[ChunkPath] = set()
        rest = [path]
        while rest:
            new = self._parents[rest.pop()] - found
            found |= new
            rest += new
        return found - {path}


def questions_out_of_step(catalog: "Catalog") -> list[tuple[ChunkPath, int]]:
    """The files of questions for documents in place, and for how many texts that are not there."""
    found = catalog.connection.execute(
        "SELECT files.path, count(*) FROM files CROSS JOIN children ON children.file = files.id"
        f" WHERE files.state = '' AND files.kind = 'questions' AND NOT {_IN_STEP}"
        " GROUP BY files.id ORDER BY 1"
    )
    return [(decode_path(path), count) for path, count in found]


def keys_read(catalog: "Catalog", paths: Sequence[ChunkPath]) -> set[bytes]:
    """The embedding keys of the texts that some files name as what they were made from."""
    statement = (
        "SELECT key FROM children JOIN files ON files.id = children.file"
        " WHERE files.path IN ({}) AND key <> x''"
    )
    return {key for (key,) in catalog.rows_among(statement, map(encode_path, paths))}


class Stale:
    """Which summaries are stale, as it is asked for; remembered, so of one generation."""

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog
        self._known: dict[ChunkPath, bool] = {}

    def among(self, paths: Sequence[ChunkPath]) -> set[ChunkPath]:
        """Those of some files that are summaries with a child out of step, or above such a one.

        One that is in no other summary covers all its resource: it is stale, too, where that
        has a text which is in none.
        """
        new = [encode_path(path) for path in paths if path not in self._known]
        statement = "SELECT path FROM files WHERE path IN ({}) AND kind = 'summary'"
        for named in self._catalog.rows_among(statement, new):
            rows = self._catalog.rows
            is_stale = bool(rows(_STALE, named) or rows(_LACKS_TEXTS, named))
            self._known[decode_path(named[0])] = is_stale
        return {path for path in paths if self._known.setdefault(path, False)}


def resources_of_summaries(catalog: "Catalog") -> dict[ChunkPath, str]:
    """The resource of every indexed summary, and of every other file that names children."""
    found = catalog.connection.execute(
        "SELECT path, resource FROM files WHERE state = '' AND kind = 'summary'"
        " UNION SELECT path, resource FROM files WHERE state = '' AND kind <> 'questions'"
        " AND id IN (SELECT file FROM children)"
    )
    return {decode_path(path): resource for path, resource in found}


def summaries_of(catalog: "Catalog", resource: str) -> dict[ChunkPath, int]:
    """The indexed summaries of a resource, and what else of it names children, each with its id."""
    found = catalog.rows(
        "SELECT path, id FROM files WHERE resource = ? AND state = '' AND kind <> 'questions' AND"
        " (kind = 'summary' OR EXISTS (SELECT 1 FROM children WHERE children.file = files.id))",
        (resource,),
    )
    return {decode_path(path): one for path, one in found}


def folders_with_summaries(catalog: "Catalog") -> list[str]:
    """The resources of summaries in place that are no document: folders, "" for the outermost."""
    found = catalog.rows(
        "SELECT DISTINCT resource FROM files WHERE path BETWEEN ? AND ? AND kind = 'summary'"
        " AND state = '' AND NOT EXISTS (SELECT 1 FROM files AS document"
        " WHERE document.path = CAST(files.resource AS BLOB)) ORDER BY 1",
        MADE,
    )
    return [resource for (resource,) in found]


def body_keys(catalog: "Catalog", resource: str) -> dict[int, bytes]:
    """File id to the embedding key of the body of every indexed chunk file of a resource."""
    found = catalog.connection.execute(
        "SELECT files.id, vectors.key FROM files JOIN parts ON parts.file = files.id"
        " JOIN vectors ON vectors.id = parts.vector"
        " WHERE files.resource = ? AND files.state = '' AND parts.part = 0",
        (resource,),
    )
    return dict(found.fetchall())


def section_keys(catalog: "Catalog", document: int) -> list[bytes]:
    """The embedding keys of the sections of a document in place, in order."""
    found = catalog.connection.execute(
        "SELECT vectors.key FROM parts JOIN vectors ON vectors.id = parts.vector"
        " WHERE parts.file = ? ORDER BY part",
        (document,),
    )
    return [key for (key,) in found]


def sample_of_keys(catalog: "Catalog", most: int) -> list[bytes]:
    """Embedding keys of some embedded chunks and sections, by key: the same anywhere.

    A key is a hash: the smallest ones are as good as drawn at random.
    """
    found = catalog.connection.execute(
        "SELECT DISTINCT vectors.key FROM vectors JOIN parts ON parts.vector = vectors.id"
        " JOIN files ON files.id = parts.file"
        f" WHERE embedded <> 0 AND state = '' AND kind <> 'summary' AND {BODY}"
        " ORDER BY vectors.id LIMIT ?",
        (most,),
    )
    return [key for (key,) in found]


def resources_of(catalog: "Catalog", paths: Sequence[ChunkPath]) -> set[str]:
    """The resources of some files."""
    return {row.resource for row in catalog.files(paths).values()}


def with_stale_questions(catalog: "Catalog") -> set[str]:
    """The resources that have questions of a text that is another one now."""
    found = catalog.connection.execute(
        "SELECT DISTINCT files.resource FROM facts JOIN files ON files.id = facts.file"
        " JOIN parts ON parts.file = files.id AND parts.part = 0"
        " JOIN vectors ON vectors.id = parts.vector"
        " WHERE facts.key = ? AND facts.value <> lower(hex(substr(vectors.key, 1, 6)))",
        (QUESTIONS_FROM,),
    )
    return {resource for (resource,) in found}


def texts_in_none(catalog: "Catalog", resource: str | None = None) -> dict[str, int]:
    """How many texts of each resource that has summaries, or of one, are below none, each once."""
    keys = f"SELECT key FROM children JOIN files ON {_OF_SUMMARIES}"
    which, own = f"SELECT files.resource FROM files JOIN children ON {_OF_SUMMARIES}", ""
    values = [] if resource is None else [resource, resource]
    if values:
        # Only a text that none of its own has is looked for in all.
        which, own = "?", f" AND vectors.key NOT IN ({keys} WHERE files.resource = ?)"
    found = catalog.rows(
        "SELECT files.resource, count(DISTINCT vectors.id) FROM files"
        " JOIN parts ON parts.file = files.id"
        " JOIN vectors ON vectors.id = parts.vector"
        f" WHERE files.state = '' AND files.resource IN ({which})"
        f" AND files.kind <> 'summary' AND {BODY}{own}"
        f" AND vectors.key NOT IN ({keys}) GROUP BY files.resource",
        values,
    )
    return dict(found)


def bytes_below(catalog: "Catalog", summaries: Sequence[ChunkPath]) -> dict[ChunkPath, int]:
    """How many bytes the children of some summaries have that are there."""
    statement = (
        "SELECT files.path, sum(length(contents.data)) FROM files"
        " JOIN (SELECT DISTINCT file, path FROM children) AS children"
        " ON children.file = files.id"
        " JOIN files AS child ON child.path = children.path"
        " JOIN contents ON contents.file = child.id"
        " WHERE files.path IN ({}) GROUP BY files.path"
    )
    found = catalog.rows_among(statement, map(encode_path, summaries))
    return {decode_path(path): int(size) for path, size in found}
