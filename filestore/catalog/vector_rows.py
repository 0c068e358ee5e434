"""What the catalog has for a backend: where the vectors were sent, and what stands beside each.

Reads only. One rule: what is given for a vector depends on the files as they are indexed and on
nothing else, so that the same store always sends the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from filestore.catalog._reading import Catalog
from filestore.catalog._remembered import ROWS_AT, ROWS_GENERATION
from filestore.catalog._rows import decode_path, in_batches, placeholders
from filestore.core.paths import ChunkPath

_FILES: Final = (
    "SELECT parts.vector, parts.part, files.id, files.path, files.kind, files.source FROM parts"
    " JOIN files ON files.id = parts.file WHERE parts.vector IN ({})"
    " ORDER BY parts.vector, files.path, parts.part"
)

_NO_TEXT: Final = "\ufffd"
"""In place of what no database takes in a text: a NUL, and half of a character."""

Beside = dict[str, list[str]]
"""Of one file with a text: its path, kind and source, and its metadata, each a list of texts."""


def sent(catalog: Catalog) -> tuple[str, int] | None:
    """Address of the backend that has the vectors, and the generation that it was sent last."""
    address = catalog.meta(ROWS_AT)
    return None if address is None else (str(address), int(catalog.meta(ROWS_GENERATION, 0)))


def unsent(catalog: Catalog) -> int:
    """How many vectors a backend lacks, has too many, or has with other metadata."""
    ((count,),) = catalog.rows(
        "SELECT count(*) FROM index_delta LEFT JOIN vectors ON id = vector"
        " WHERE present = 0 OR embedded <> 0"
    )
    return int(count)


def beside(catalog: Catalog, vectors: Sequence[int]) -> dict[int, list[Beside]]:
    """The files that have the text of each vector, by path, with what may be asked of them."""
    found: dict[int, dict[int, Beside]] = {}
    for batch in in_batches(list(vectors)):
        for vector, _, file, path, kind, source in catalog.rows(
            _FILES.format(placeholders(batch)), batch
        ):
            named = ChunkPath(decode_path(path))
            of_file = {"path": [named], "kind": [kind]} | ({"source": [source]} if source else {})
            found.setdefault(vector, {}).setdefault(file, of_file)
    files = sorted({file for owners in found.values() for file in owners})
    facts: dict[int, Beside] = {}
    for batch in in_batches(files):
        statement = f"SELECT file, key, value FROM facts WHERE file IN ({placeholders(batch)})"
        for file, key, value in catalog.rows(f"{statement} ORDER BY key, value", batch):
            facts.setdefault(file, {}).setdefault(key, []).append(value)
    return {
        vector: [facts.get(file, {}) | of_file for file, of_file in owners.items()]
        for vector, owners in found.items()
    }


def is_of_documents(catalog: Catalog, key: str) -> bool:
    """Whether documents have this key in their metadata, which no vector is sent with."""
    return bool(catalog.rows("SELECT 1 FROM record_facts WHERE key = ? LIMIT 1", (key,)))


def paths_of(catalog: Catalog, vectors: Sequence[int]) -> list[ChunkPath]:
    """The files, ascending by path, that some vectors are of."""
    paths: set[ChunkPath] = set()
    for batch in in_batches(list(vectors)):
        statement = _FILES.format(placeholders(batch))
        paths.update(ChunkPath(decode_path(row[3])) for row in catalog.rows(statement, batch))
    return sorted(paths)


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
