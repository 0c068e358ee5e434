"""The files of a commit, held against what our writer leaves, before tantivy parses or lists any.

A stranger's stamp and files agree with each other. tantivy deletes what `.managed.json` lists,
takes room for as many documents as `meta.json` claims, and panics where a schema is another one.
One rule: nothing here opens a file that is not a plain one of the folder.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from filestore.fs import disk, part

META: Final = "meta.json"
MANAGED: Final = ".managed.json"
_MOST_JSON: Final = 4 * 1024 * 1024
"""Our own are a few kilobytes: a segment takes a hundred bytes."""
_NAME: Final = re.compile(
    r"\.managed\.json|meta\.json|[0-9a-f]{32}\.(?:fast|fieldnorm|idx|pos|store|term|\d+\.del)",
    re.ASCII,
)
_SEGMENT: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_FIELDS: Final = (
    ("id", "u64", None),
    ("exact", "text", "exact"),
    ("stem", "text", "english"),
    ("gram", "text", "gram"),
    ("language", "text", "raw"),
)
"""Name, type and tokenizer of each field of `build_schema`."""


def problems(folder: str, names: tuple[str, ...], documents: int) -> Iterator[str]:
    """What is wrong with the folder of a commit, whose files have the size and hash of the stamp.

    Args:
        folder: The folder of the commit.
        names: The names of its files, without the folder.
        documents: How many documents it is said to have.

    Raises:
        OSError: The disk does not give one at the moment.
    """
    try:
        part.check(folder, "folder")
    except part.NotAFileError:
        yield "it is no folder of its own"
        return
    if strange := sorted(name for name in names if not _NAME.fullmatch(name)):
        yield f"{strange[0]!r} is no file of an index"
        return
    for entry in os.scandir(folder):
        if not entry.is_file(follow_symlinks=False):
            yield f"{entry.name!r} is no regular file"
            return
    try:
        meta = _read(folder, META)
        managed = _read(folder, MANAGED) if MANAGED in names else []
        wrong = _wrong_meta(meta, folder, set(names), documents)
    except (ValueError, TypeError, KeyError, AttributeError, disk.FileTooLargeError) as error:
        yield f"its settings cannot be used ({error})"
        return
    if wrong:
        yield wrong
    if not isinstance(managed, list) or not all(
        (isinstance(name, str) and _NAME.fullmatch(name) is not None) for name in managed
    ):
        yield "it lists files that are none of its own"


def deleted_documents(folder: str) -> int:
    """How many documents of a commit are deleted and still in one of its segments."""
    deletes = (segment["deletes"] for segment in _read(folder, META)["segments"])
    return sum(one["num_deleted_docs"] for one in deletes if one)


def managed(names: tuple[str, ...]) -> bytes:
    """The list of files that tantivy may delete: the plain ones that a commit has."""
    return orjson.dumps([name for name in names if name != MANAGED])


def _read(folder: str, name: str) -> Any:
    return orjson.loads(disk.read_path(os.path.join(folder, name), limit=_MOST_JSON))


def _wrong_meta(meta: Any, folder: str, names: set[str], documents: int) -> str:
    fields = tuple(
        (
            field["name"],
            field["type"],
            (field["options"].get("indexing") or {}).get("tokenizer")
            if field["type"] == "text"
            else None,
        )
        for field in meta["schema"]
    )
    if fields != _FIELDS:
        return "its fields are not those that are searched"
    held = 0
    for segment in meta["segments"]:
        identifier, most, deletes = segment["segment_id"], segment["max_doc"], segment["deletes"]
        if not _SEGMENT.fullmatch(identifier):
            return "it has a segment of no name"
        lengths = f"{identifier.replace('-', '')}.fieldnorm"
        # There is a byte a document in it for each field.
        room = os.lstat(os.path.join(folder, lengths)).st_size if lengths in names else -1
        gone = deletes["num_deleted_docs"] if deletes else 0
        if not (type(most) is type(gone) is int and 0 <= gone <= most <= room):
            return "it claims more documents than its files have room for"
        held += most - gone
    return "" if held == documents else f"it claims {held:,} documents, its stamp {documents:,}"
