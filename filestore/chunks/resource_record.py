"""The record of a resource: `meta.json`, or `<name>.json` in the flat layout. Pure.

It says what the resource was made from and by what, never when, where or on which machine.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson
from msgspec import Struct

from filestore.core.errors import FilestoreError
from filestore.core.packages import UPGRADE
from filestore.core.safe_text import brief

RECORD_FORMAT: Final = 1


class RecordInvalidError(FilestoreError, ValueError):
    """A record cannot be used."""

    line = 0
    """1-based; 0 where no line is to blame."""
    column = 0


class SourceDocument(Struct, frozen=True, kw_only=True):
    """One document that chunks were made from."""

    source: str
    """Path of the original, relative to the store root, forward slashes."""
    hash: str
    """``sha256:<64 hex digits>`` of its bytes."""
    extractor: str
    """Name and version, such as ``markdown/1``."""
    metadata: Mapping[str, Any]
    """What the document says about itself; JSON values."""


class Record(Struct, frozen=True, kw_only=True):
    """What a resource is."""

    resource: str | None
    """Its name, where the folder does not tell it (flat layout)."""
    source: str
    """Path of the file or folder it was made from, relative to the store root."""
    kind: Literal["file", "folder"]
    chunker: str
    """Name, version and token budget, such as ``structure/1:256``."""
    documents: tuple[SourceDocument, ...]
    """In reading order; a file has exactly one."""
    each: bool = False
    """Whether its source was added as one of the children of a folder."""


def parse(data: bytes) -> Record:
    """Read a record.

    Raises:
        RecordInvalidError: No JSON, a key is missing or has the wrong type, or a newer format.
    """
    try:
        table = _mapping(orjson.loads(data))
        if table["format"] != RECORD_FORMAT:
            raise RecordInvalidError(
                f"record has format {brief(table['format'])}, expected {RECORD_FORMAT}",
                remedy=UPGRADE,
            )
        return _build(table)
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        invalid = _invalid(f"{where}: no JSON: {error.msg}")
        invalid.line, invalid.column = error.lineno, error.colno
        raise invalid from error
    except KeyError as error:
        raise _invalid(f"the key {error} is missing") from error
    except (TypeError, AttributeError) as error:
        raise _invalid(str(error)) from error


def _invalid(reason: str) -> RecordInvalidError:
    remedy = "restore it from git, or add its source again"
    return RecordInvalidError(f"not a record, {reason}", remedy=remedy)


def _build(table: Any) -> Record:
    kind = table["kind"]
    if kind not in ("file", "folder"):
        raise TypeError(f"expected kind file or folder, found {brief(kind)}")
    documents = tuple(
        SourceDocument(
            source=_text(item["source"]),
            hash=_text(item["hash"]),
            extractor=_text(item["extractor"]),
            metadata=_mapping(item.get("metadata", {})),
        )
        for item in _list(table["documents"])
    )
    resource = table.get("resource")
    return Record(
        resource=None if resource is None else _text(resource),
        source=_text(table["source"]),
        kind=kind,
        chunker=_text(table["chunker"]),
        documents=documents,
        each=table.get("each") is True,
    )


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected a mapping, found {brief(value)}")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {brief(value)}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {brief(value)}")
    return value


def serialize(record: Record) -> bytes:
    """The bytes of a record: indented JSON, one final line end, the same on every machine."""
    table: dict[str, Any] = {"format": RECORD_FORMAT}
    if record.resource is not None:
        table["resource"] = record.resource
    table |= {
        "source": record.source,
        "kind": record.kind,
        **({"each": True} if record.each else {}),
        "chunker": record.chunker,
        "documents": [_document(document) for document in record.documents],
    }
    return orjson.dumps(table, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _document(document: SourceDocument) -> dict[str, Any]:
    table: dict[str, Any] = {
        "source": document.source,
        "hash": document.hash,
        "extractor": document.extractor,
    }
    if document.metadata:
        table["metadata"] = dict(document.metadata)
    return table
