"""Queries of one room each: raw rows to be verified or salvaged, counts, what a backend is sent.

Changes nothing, and judges nothing: rows come as SQLite has them. One rule: whatever reads the
catalog's tables is in this package. What is sent for a vector depends on the files as they are
indexed alone, so that the same store always sends the same.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from filestore.catalog._remembered import LET_GO, ROWS_AT, ROWS_GENERATION
from filestore.catalog._rows import (
    BODY,
    FILE_COLUMNS,
    MADE,
    VARIABLES,
    decode_path,
    encode_path,
    in_batches,
    placeholders,
    text_id,
)
from filestore.catalog._schema import CHUNKER
from filestore.chunks.observation import DOCUMENT
from filestore.core.paths import ChunkPath
from filestore.fs import disk
from filestore.fs.database import connect

if TYPE_CHECKING:
    from filestore.catalog._reading import Catalog

_ORIGINAL: Final = "original:"
_QUESTIONS: Final = "questions"
"""The kind of a file of questions for a document in place: each is a text, as a section is."""
_FILES: Final = (
    f"SELECT {FILE_COLUMNS}, checksum, data FROM files"
    " LEFT JOIN contents ON contents.file = files.id ORDER BY id"
)
# An id is the beginning of a hash: the smallest ones are a fair choice, the same each time, and
# hardly another one after a few texts came or went (E. Cohen, H. Kaplan, "Summarizing data using
# bottom-k sketches", 2007). Their embeddings lie side by side, too.
_BODIES: Final = (
    "SELECT parts.vector, vectors.key, files.path, files.resource FROM parts"
    " JOIN vectors ON vectors.id = parts.vector JOIN files ON files.id = parts.file"
    f" WHERE {BODY} AND (part = 0 OR ?) AND embedded <> 0 AND state = ''"
    " ORDER BY parts.vector, files.path LIMIT ?"
)
# A resource may be a folder of documents, and then every chunk names its own. Shorter names come
# first: chunk2 before chunk10.
_WAITING: Final = (
    "WITH waiting AS (SELECT vectors.id AS id, files.path AS path, row_number() OVER ("
    " PARTITION BY resource, source"
    " ORDER BY kind = 'summary', part, length(files.path), files.path"
    ") AS place FROM vectors JOIN parts ON parts.vector = vectors.id"
    " JOIN files ON files.id = parts.file WHERE vectors.embedded = 0)"
    " SELECT id FROM waiting GROUP BY id ORDER BY min(place), min(path)"
)
_FOUND: Final = (
    "SELECT id, path, kind, resource, source, (SELECT count(*) FROM parts WHERE file = files.id)"
    " FROM files WHERE state = '' AND id IN ({})"
)
_CHUNKS: Final = (
    "SELECT resource, source, count(*) FROM files WHERE state = '' AND kind <> 'summary'"
    " AND resource IN ({}) GROUP BY resource, source"
)
SALVAGED: Final = {
    "generated": "SELECT origin, body FROM generated ORDER BY origin {order}",
    "originals": (
        f"SELECT key, value FROM meta WHERE key GLOB '{_ORIGINAL}*' ORDER BY key {{order}}"
    ),
    "forgotten": ("SELECT path, file_hash, data, mtime_ns FROM forgotten ORDER BY path {order}"),
    "contents": (
        "SELECT path, file_hash, data, 0 FROM contents JOIN files ON id = file"
        " ORDER BY file {order}"
    ),
    "records": (
        "SELECT path, file_hash, data, 0 FROM records JOIN files USING (path) ORDER BY path {order}"
    ),
    "files": "SELECT * FROM files ORDER BY id {order}",
    "let-go": f"SELECT key, value FROM meta WHERE key = '{LET_GO}' ORDER BY key {{order}}",
}
"""What is read of a damaged catalog, from both ends of a table."""


def file_rows(catalog: "Catalog") -> Iterator[tuple[Any, ...]]:
    """The columns of every file, its checksum and its last seen bytes, by id."""
    return catalog.connection.execute(_FILES)


def part_rows(catalog: "Catalog") -> list[tuple[int, int, int]]:
    """File, part and vector id of every text, in this order."""
    return catalog.rows("SELECT file, part, vector FROM parts ORDER BY file, part")


def has_embedded(catalog: "Catalog") -> bool:
    """Whether the catalog counts on any embedding."""
    return bool(catalog.rows("SELECT 1 FROM vectors WHERE embedded <> 0 LIMIT 1"))


def some_paths(catalog: "Catalog", most: int) -> list[ChunkPath]:
    """The paths of a few files, whichever."""
    return [
        decode_path(path) for (path,) in catalog.rows("SELECT path FROM files LIMIT ?", (most,))
    ]


def waiting_vectors(catalog: "Catalog") -> list[int]:
    """The vector ids of texts without vector, the first passage of each document before others."""
    return [one for (one,) in catalog.rows(_WAITING)]


def text_keys(catalog: "Catalog") -> Iterator[bytes]:
    """The embedding key of every text, ascending, and never all in memory."""
    for (key,) in catalog.connection.execute("SELECT key FROM vectors ORDER BY key"):
        yield key


def records_without(catalog: "Catalog", text: bytes) -> list[tuple[bytes, bytes]]:
    """Path and bytes of the records that do not contain a text."""
    statement = "SELECT path, data FROM records WHERE instr(data, ?) = 0 ORDER BY path"
    return catalog.rows(statement, [text])


def records(catalog: "Catalog") -> list[tuple[str, str, bytes]]:
    """Resource, source and bytes of every record."""
    return catalog.rows("SELECT resource, source, data FROM records")


def documents_from(
    catalog: "Catalog", sources: Sequence[str]
) -> list[tuple[ChunkPath, str, str, str]]:
    """Record path, resource, source and hash of some documents.

    No index leads to them: who asks once has them looked through, who asks again remembers all.
    """
    known: list[dict[str, list[tuple[ChunkPath, str, str, str]]]] = catalog.once("by source", list)
    if not known:
        known.append({})
        named = "SELECT record, resource, source, hash FROM documents WHERE source IN ({})"
        found = catalog.rows_among(named, sources)
        return [(decode_path(record), *rest) for record, *rest in found]
    if not known[0]:
        for one in catalog.documents():
            known[0].setdefault(one[2], []).append(one)
    return [one for source in sources for one in known[0].get(source, ())]


def count_excluded(catalog: "Catalog", code: str) -> int:
    """How many files are excluded from search for one reason."""
    return int(catalog.rows("SELECT count(*) FROM files WHERE state = ?", (code,))[0][0])


def source_stats_of(catalog: "Catalog", sources: Sequence[str]) -> dict[str, tuple[str, bytes]]:
    """What `Catalog.source_stats` gives of some documents."""
    named = "SELECT source, hash, stat FROM source_stats WHERE source IN ({})"
    return {source: (digest, at) for source, digest, at in catalog.rows_among(named, sources)}


def folder_stats(catalog: "Catalog", folder: bytes) -> list[tuple[bytes, bytes]]:
    """The packed names and stats of one folder of the stat cache."""
    return catalog.rows("SELECT names, stats FROM folders WHERE path = ?", (folder,))


def generated_count(catalog: "Catalog", resource: str) -> int:
    """How many files of a resource were made from a source."""
    statement = (
        "SELECT count(*) FROM files WHERE resource = ? AND origin IS NOT NULL AND kind <> 'summary'"
    )
    return int(catalog.rows(statement, (resource,))[0][0])


def embedded_bodies(
    catalog: "Catalog", most: int, *, sections: bool = False
) -> list[tuple[int, bytes, bytes, str]]:
    """Vector id, key, path and resource of bodies that have a vector, by vector id.

    Args:
        catalog: Inside a snapshot.
        most: Up to how many.
        sections: Whether each section of a document counts, not the first alone.
    """
    return catalog.rows(_BODIES, (sections, most))


def bodies(catalog: "Catalog") -> list[tuple[int, bytes, int]]:
    """Vector id, path and part of the body of every indexed file, embedded or not, in this order.

    A document has a body for each of its sections.
    """
    return catalog.rows(
        "SELECT parts.vector, files.path, part FROM parts JOIN files ON files.id = parts.file"
        f" WHERE {BODY} AND state = '' ORDER BY 1, 2, 3"
    )


def files_with_links(catalog: "Catalog") -> Iterator[tuple[bytes, str | None, str, bytes]]:
    """Path, source, resource and last good bytes of indexed files made from a source, with links.

    By path; what only looks like a link is among them.
    """
    return catalog.connection.execute(
        "SELECT path, source, resource, data FROM files JOIN contents ON file = id"
        " WHERE state = '' AND origin IS NOT NULL"
        " AND (instr(data, CAST('](' AS BLOB)) OR instr(data, CAST(']:' AS BLOB)))"
        " ORDER BY path"
    )


def documents_with_sections(
    catalog: "Catalog", after: bytes = b"", limit: int | None = None
) -> list[tuple[bytes, int]]:
    """Path of every indexed document, by path, and of how many sections it is.

    Args:
        catalog: Inside a snapshot.
        after: Only those behind this path.
        limit: At most n; None for all.
    """
    return catalog.rows(
        "SELECT path, (SELECT count(*) FROM parts WHERE file = files.id) FROM files"
        " WHERE path > ? AND state = '' AND kind = ? ORDER BY path LIMIT ?",
        (after, DOCUMENT, -1 if limit is None else limit),
    )


def documents_of_chunks(catalog: "Catalog") -> list[tuple[ChunkPath, str | None]]:
    """A chunk file of each original, with that; and every one that was made from none."""
    found = catalog.rows(
        "SELECT min(path), coalesce(files.source, CASE WHEN origin IS NULL THEN NULL ELSE"
        " (SELECT source FROM records WHERE records.resource = files.resource) END) AS of"
        " FROM files WHERE state = '' AND kind <> 'summary'"
        " GROUP BY coalesce(of, path) ORDER BY 1"
    )
    return [(decode_path(path), source) for path, source in found]


def counts_of_link_keys(catalog: "Catalog") -> dict[str, int]:
    """How many documents have links of each of the keys that most have."""
    found = catalog.rows(
        "SELECT target, count(*) FROM links GROUP BY target ORDER BY 2 DESC LIMIT 1000"
    )
    return {decode_path(target): count for target, count in found}


def documents_of(
    catalog: "Catalog", ids: Sequence[int]
) -> dict[int, tuple[ChunkPath, tuple[str, str | None], int]]:
    """The paths of those file ids that are searchable, what they are of, and how many texts it has.

    A summary is of nothing, and its document has 0.
    """
    rows = list(catalog.rows_among(_FOUND, ids))
    chunks: dict[str, dict[str | None, int]] = catalog.once("chunks of documents", dict)
    of_chunks = {resource for _, _, kind, resource, _, _ in rows if kind != "document"}
    new = [resource for resource in of_chunks if resource not in chunks]
    for resource, source, count in catalog.rows_among(_CHUNKS, new):
        chunks.setdefault(resource, {})[source] = count
    found = {}
    for file, path, kind, resource, source, parts in rows:
        of = 0 if kind == "summary" else chunks.get(resource, {}).get(source, 0)
        found[file] = decode_path(path), (resource, source), parts if kind == "document" else of
    return found


def first_vectors(catalog: "Catalog", count: int, *, embedded: bool) -> list[int]:
    """The smallest vector ids; of vectors that are known to have their embedding, or of all."""
    which = "WHERE embedded <> 0" if embedded else ""
    found = catalog.rows(f"SELECT id FROM vectors {which} ORDER BY id LIMIT ?", (count,))
    return [identifier for (identifier,) in found]


def vectors_of_texts(
    catalog: "Catalog", texts: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], int]:
    """File and part to vector id; others than known texts are left out."""
    found: dict[tuple[int, int], int] = {}
    for batch in in_batches(texts, VARIABLES // 2):
        rows = ", ".join(["(?, ?)"] * len(batch))
        statement = f"SELECT file, part, vector FROM parts WHERE (file, part) IN (VALUES {rows})"
        for file, part, vector in catalog.rows(statement, [one for pair in batch for one in pair]):
            found[file, part] = vector
    return found


def has_copies(catalog: "Catalog") -> bool:
    """Whether two texts are the same; counted once a generation."""
    return catalog.once("copies", lambda: catalog.count("parts") > catalog.count("vectors"))


def made_files(catalog: "Catalog") -> list[ChunkPath]:
    """Every indexed file that was made of a document in place, by path."""
    found = catalog.rows(
        "SELECT path FROM files WHERE path BETWEEN ? AND ? AND state = '' ORDER BY path", MADE
    )
    return [decode_path(path) for (path,) in found]


def count_of_made(catalog: "Catalog") -> tuple[int, int]:
    """How many files were made of documents in place, and how many texts they are."""
    ((files, texts),) = catalog.rows(
        "SELECT count(DISTINCT id), count(part) FROM files LEFT JOIN parts ON file = id"
        " WHERE path BETWEEN ? AND ?",
        MADE,
    )
    return int(files), int(texts)


def contents_linking(catalog: "Catalog", keys: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Path and last good bytes of documents with links of some keys, at most `VARIABLES`; by path.

    A key is what a link calls its target, so what they lead to may be another file of that name.
    """
    return catalog.rows(
        "SELECT path, data FROM files JOIN contents ON contents.file = files.id"
        f" WHERE files.id IN (SELECT file FROM links WHERE target IN ({placeholders(keys)}))"
        " AND state = '' ORDER BY path",
        [encode_path(ChunkPath(key)) for key in keys],
    )


def contents_with_links(catalog: "Catalog") -> Iterator[tuple[bytes, bytes]]:
    """Path and last good bytes of every searchable file that has links, by id."""
    return catalog.connection.execute(
        "SELECT path, data FROM files JOIN contents ON contents.file = files.id"
        " WHERE files.id IN (SELECT file FROM links) AND state = ''"
    )


def all_paths(catalog: "Catalog") -> Iterator[bytes]:
    """The path of every file."""
    return (path for (path,) in catalog.connection.execute("SELECT path FROM files"))


def links_to(catalog: "Catalog", target: bytes) -> list[tuple[bytes, bytes]]:
    """Path and target of a person's own links to a file, also to names that it had before."""
    return catalog.rows(
        "SELECT files.path, target FROM links CROSS JOIN files ON files.id = links.file"
        " WHERE target = ? OR target IN (SELECT old FROM renamed WHERE new = ?) ORDER BY 1, 2",
        (target, target),
    )


def renamed_to(catalog: "Catalog", old: bytes) -> bytes | None:
    """Where a file that moved is now; None where that was not seen, or it went again."""
    found = catalog.rows(
        "SELECT new FROM renamed JOIN files ON files.path = renamed.new WHERE old = ?", (old,)
    )
    return found[0][0] if found else None


def titles_of_documents(catalog: "Catalog", sources: Sequence[str]) -> dict[tuple[str, str], str]:
    """Resource and source of documents whose record has their title, to that."""
    statement = "SELECT resource, source, value FROM record_facts WHERE key = 'title'"
    found = catalog.rows_among(f"{statement} AND source IN ({{}})", sources)
    return {(resource, source): title for resource, source, title in found}


def sources_of_records(
    catalog: "Catalog", paths: Iterable[ChunkPath]
) -> dict[ChunkPath, tuple[str, str]]:
    """Resource and source of those records that are there."""
    statement = "SELECT path, resource, source FROM records WHERE path IN ({})"
    found = catalog.rows_among(statement, [encode_path(path) for path in paths])
    return {decode_path(path): (resource, source) for path, resource, source in found}


def metadata_of_documents(
    catalog: "Catalog", sources: Iterable[str]
) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Source and resource of some documents to the keys and values of their metadata, in order."""
    found: dict[str, dict[str, list[tuple[str, str]]]] = {}
    statement = "SELECT source, resource, key, value FROM record_facts WHERE source IN ({})"
    for source, resource, *pair in catalog.rows_among(statement, sorted(sources)):
        found.setdefault(source, {}).setdefault(resource, []).append((pair[0], pair[1]))
    for of_source in found.values():
        for pairs in of_source.values():
            pairs.sort()
    return found


def titles_of_files(catalog: "Catalog", files: Sequence[int]) -> dict[int, str]:
    """File ids to the title in their own frontmatter."""
    # The plus keeps SQLite from going through the titles of all files.
    statement = "SELECT file, value FROM facts WHERE +key = 'title' AND file IN ({})"
    return dict(catalog.rows_among(statement, files))


def known_of_documents(
    catalog: "Catalog", sources: Sequence[str]
) -> dict[tuple[str, str], list[tuple[str, str | None, bytes | None]]]:
    """The hash that records have of documents, the one their files had, and under which stat.

    Args:
        catalog: Inside a snapshot.
        sources: At most `VARIABLES`.
    """
    found: dict[tuple[str, str], list[tuple[str, str | None, bytes | None]]] = {}
    for resource, source, *known in catalog.rows(
        "SELECT documents.resource, documents.source, documents.hash, source_stats.hash,"
        " source_stats.stat FROM files JOIN documents ON documents.record = files.path"
        " LEFT JOIN source_stats ON source_stats.source = documents.source"
        f" WHERE documents.source IN ({placeholders(sources)}) AND files.state = 'record'",
        sources,
    ):
        found.setdefault((resource, source), []).append((known[0], known[1], known[2]))
    return found


def kinds(catalog: "Catalog") -> list[str]:
    """The kinds that some searchable file is of, in order."""
    found = catalog.rows("SELECT DISTINCT kind FROM files WHERE state = '' ORDER BY kind")
    return [kind for (kind,) in found]


def metadata_keys(catalog: "Catalog") -> list[str]:
    """The keys that some file or document has, in order."""
    statement = "SELECT key FROM facts UNION SELECT key FROM record_facts ORDER BY key"
    return [key for (key,) in catalog.rows(statement)]


def metadata_values(catalog: "Catalog", key: str) -> list[str]:
    """The values that a key has somewhere, in order."""
    statement = (
        "SELECT value FROM facts WHERE key = ?1 UNION SELECT value FROM record_facts"
        " WHERE key = ?1 ORDER BY value"
    )
    return [value for (value,) in catalog.rows(statement, (key,))]


def texts_of_files(catalog: "Catalog", files: Sequence[int]) -> list[int]:
    """The full-text ids that some files may have: every part of a document has one of its own."""
    further = "SELECT file, part FROM parts WHERE part > 0 AND file IN ({})"
    parts = catalog.rows_among(further, files)
    return sorted({*files, *(text_id(file, part) for file, part in parts)})


def text_ids(catalog: "Catalog") -> list[int]:
    """The full-text ids of all searchable texts, ascending; a chunk file is one text."""
    if catalog.meta(CHUNKER) is None:
        return sorted(catalog.indexed_ids())
    parts = catalog.rows(
        "SELECT file, part FROM parts JOIN files ON files.id = file"
        " WHERE state = '' AND (part = 0 OR kind IN (?, ?))",
        (DOCUMENT, _QUESTIONS),
    )
    return sorted(text_id(file, part) for file, part in parts)


def count_of_texts(catalog: "Catalog", files: int) -> int:
    """How many texts searchable files are: in place sections and questions, else the files."""
    if catalog.meta(CHUNKER) is None:
        # No document was ever cut for it.
        return files
    ((others,),) = catalog.rows(
        "SELECT count(*) FROM files JOIN parts ON parts.file = files.id"
        " WHERE path BETWEEN ? AND ? AND part > 0 AND kind <> ?",
        (*MADE, _QUESTIONS),
    )
    return catalog.count("parts") - int(others)


def files_with_key(catalog: "Catalog", key: str) -> list[tuple[ChunkPath, str]]:
    """Path and value of every searchable file whose own metadata has a key, by path."""
    found = catalog.rows(
        "SELECT path, value FROM facts JOIN files ON files.id = file"
        " WHERE key = ? AND state = '' ORDER BY path",
        (key,),
    )
    return [(decode_path(path), str(value)) for path, value in found]


def has_key(catalog: "Catalog", keys: Iterable[str]) -> bool:
    """Whether any file or document has one of some keys; a look at a row each."""
    return any(
        catalog.rows(f"SELECT 1 FROM {table} WHERE key = ? LIMIT 1", (key,))
        for key in keys
        for table in ("facts", "record_facts")
    )


def files_with_keys(catalog: "Catalog", keys: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """File id, key and value of every searchable file that has some keys, or whose document has."""
    for key in keys:
        yield from catalog.rows("SELECT file, key, value FROM facts WHERE key = ?", (key,))
        yield from catalog.rows(
            "SELECT files.id, key, value FROM record_facts JOIN files USING (resource)"
            " LEFT JOIN records ON records.resource = files.resource WHERE key = ?"
            " AND record_facts.source = coalesce(files.source, records.source) AND state = ''",
            (key,),
        )


def files_below(catalog: "Catalog", folder: str) -> list[int]:
    """The ids of the searchable files below a folder of the tree, which ends with a slash."""
    start = encode_path(ChunkPath(folder))
    behind = start[:-1] + b"0" if start else b"\xff"
    statement = "SELECT id FROM files WHERE state = '' AND path >= ? AND path < ?"
    return [file for (file,) in catalog.rows(statement, (start, behind))]


def sound_files(catalog: "Catalog") -> Iterator[tuple[ChunkPath, bytes]]:
    """Path and content hash of every chunk file, record and document that is as it should be."""
    statement = "SELECT path, file_hash FROM files WHERE state IN ('', 'record')"
    for path, file_hash in catalog.connection.execute(statement):
        yield decode_path(path), file_hash


def texts_of_paths(catalog: "Catalog") -> dict[ChunkPath, bytes]:
    """Every file that can be found to one hash over its texts."""
    statement = "SELECT path, text_key FROM files WHERE state = ''"
    return {decode_path(path): key for path, key in catalog.connection.execute(statement)}


def kept_bytes(catalog: "Catalog") -> Iterator[tuple[bytes, bytes]]:
    """Content hash and bytes of every chunk file and record that is kept as it lies on the disk."""
    chunks = (
        f"SELECT file_hash, data FROM contents JOIN files ON id = file WHERE kind <> '{DOCUMENT}'"
    )
    records = "SELECT file_hash, data FROM records JOIN files USING (path)"
    yield from catalog.connection.execute(chunks)
    yield from catalog.connection.execute(records)


def copy(catalog: "Catalog", path: str) -> None:
    """Write a copy of a catalog, as its snapshot has it, into a new file."""
    with disk.disk_errors(path), contextlib.closing(connect(path, "mode=rwc")) as target:
        catalog.connection.backup(target)


_FILES_OF_VECTORS: Final = (
    "SELECT parts.vector, parts.part, files.id, files.path, files.kind, files.source FROM parts"
    " JOIN files ON files.id = parts.file WHERE parts.vector IN ({})"
    " ORDER BY parts.vector, files.path, parts.part"
)

_NO_TEXT: Final = "\ufffd"
"""In place of what no database takes in a text: a NUL, and half of a character."""

SentFile = dict[str, list[str]]
"""Of one file with a text: its path, kind and source, and its metadata, each a list of texts."""


def sent_rows(catalog: "Catalog") -> tuple[str, int] | None:
    """Where the vectors were sent, as it is remembered, and of which generation last."""
    address = catalog.meta(ROWS_AT)
    return None if address is None else (str(address), int(catalog.meta(ROWS_GENERATION, 0)))


def unsent_vectors(catalog: "Catalog") -> int:
    """How many vectors an index lacks, has too many, or has with other metadata."""
    ((count,),) = catalog.rows(
        "SELECT count(*) FROM index_delta LEFT JOIN vectors ON id = vector"
        " WHERE present = 0 OR embedded <> 0"
    )
    return int(count)


def files_sent_with(catalog: "Catalog", vectors: Sequence[int]) -> dict[int, list[SentFile]]:
    """The files that have the text of each vector, by path, with what may be asked of them."""
    found: dict[int, dict[int, SentFile]] = {}
    for vector, _, file, path, kind, source in catalog.rows_among(_FILES_OF_VECTORS, vectors):
        named = decode_path(path)
        of_file = {"path": [named], "kind": [kind]} | ({"source": [source]} if source else {})
        found.setdefault(vector, {}).setdefault(file, of_file)
    files = sorted({file for owners in found.values() for file in owners})
    facts: dict[int, SentFile] = {}
    statement = "SELECT file, key, value FROM facts WHERE file IN ({}) ORDER BY key, value"
    for file, key, value in catalog.rows_among(statement, files):
        facts.setdefault(file, {}).setdefault(key, []).append(value)
    return {
        vector: [facts.get(file, {}) | of_file for file, of_file in owners.items()]
        for vector, owners in found.items()
    }


def is_of_documents(catalog: "Catalog", key: str) -> bool:
    """Whether documents have this key in their metadata, which no vector is sent with."""
    return bool(catalog.rows("SELECT 1 FROM record_facts WHERE key = ? LIMIT 1", (key,)))


def paths_of_vectors(catalog: "Catalog", vectors: Sequence[int]) -> list[ChunkPath]:
    """The files, ascending by path, that some vectors are of."""
    return sorted({decode_path(row[3]) for row in catalog.rows_among(_FILES_OF_VECTORS, vectors)})


def sendable(value: Any) -> Any:
    """A value with texts that every database takes."""
    if isinstance(value, str):
        whole = value.encode("utf-8", "replace") if not value.isascii() else b""
        plain = whole.decode() if whole else value
        return plain.replace("\0", _NO_TEXT)
    if isinstance(value, Mapping):
        return {sendable(key): sendable(one) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [sendable(one) for one in value]
    return value
