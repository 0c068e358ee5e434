"""The record of a resource: `meta.json`, or `<name>.json` in the flat layout. Pure.

It says what the resource was made from and by what, never when, where or on which machine.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import orjson
from msgspec import Struct, to_builtins

from filestore.chunks.frontmatter import metadata_pairs
from filestore.core.errors import UPGRADE, FilestoreError
from filestore.core.safe_text import brief
from filestore.core.schema import UnfitError, converted, json_of

RECORD_FORMAT: Final = 1


class RecordInvalidError(FilestoreError, ValueError):
    """A record cannot be used."""

    line = 0
    """1-based; 0 where no line is to blame."""
    column = 0


class SourceDocument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One document that chunks were made from."""

    source: str
    """Path of the original, relative to the store root, forward slashes."""
    hash: str
    """``sha256:<64 hex digits>`` of its bytes."""
    extractor: str
    """Name and version, such as ``markdown/1``."""
    metadata: Mapping[str, Any] = {}
    """What the document says about itself; JSON values."""

    def pairs(self) -> Iterator[tuple[str, str]]:
        """What filters match of it, each once: a tag counts as the tags around it, too."""
        from filestore.extract.about import about_pairs

        yield from dict.fromkeys((*metadata_pairs(self.metadata), *about_pairs(self.metadata)))


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a resource is."""

    resource: str | None = None
    """Its name, where the folder does not tell it (flat layout)."""
    source: str
    """Path of the file or folder it was made from, relative to the store root."""
    kind: Literal["file", "folder"]
    each: bool = False
    """Whether its source was added as one of the children of a folder."""
    chunker: str
    """Name, version and token budget, such as ``structure/1:256``."""
    documents: tuple[SourceDocument, ...]
    """In reading order; a file has exactly one."""


def parse(data: bytes) -> Record:
    """Read a record; keys of others are passed over.

    Raises:
        RecordInvalidError: No JSON, a key is missing, there twice or has the wrong type, or a newer
            format.
    """
    try:
        table = json_of(data)
        version = converted(table, dict[str, Any]).get("format")
        if version != RECORD_FORMAT:
            raise RecordInvalidError(
                f"record has format {brief(version)}, expected {RECORD_FORMAT}", remedy=UPGRADE
            )
        return converted(table, Record)
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        invalid = _invalid(f"{where}: no JSON: {error.msg}")
        invalid.line, invalid.column = error.lineno, error.colno
        raise invalid from error
    except UnfitError as error:
        raise _invalid(str(error)) from error


def _invalid(reason: str) -> RecordInvalidError:
    remedy = "restore it from git, or add its source again"
    return RecordInvalidError(f"not a record, {reason}", remedy=remedy)


def serialize(record: Record) -> bytes:
    """The bytes of a record: indented JSON, one final line end, the same on every machine."""
    table = {"format": RECORD_FORMAT} | to_builtins(record)
    return orjson.dumps(table, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
