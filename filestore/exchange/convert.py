"""`.ragmd` into FAISS + JSON, and back, without a store: the vectors stay as they are.

Finds out which form a path is of, and names what the other cannot hold. One rule: what is read is
checked as for a store, so that what is written is sound.
"""

import os
from typing import Final

from msgspec import Struct

from filestore.core.caller import absolute
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.limits import USUAL, Counter, Limits, Size
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.exchange import faiss_json, ragmd
from filestore.exchange.document_map import DocumentMap
from filestore.exchange.faiss_json import FaissJson
from filestore.exchange.mapped import MapForm
from filestore.exchange.ragmd import RagMd
from filestore.fs import disk

RAGMD: Final = ".ragmd file"
FOLDER: Final = "FAISS + JSON folder"
PAIR: Final = "FAISS + JSON pair"
_NAMES: Final = {
    RAGMD: "a file KB.ragmd",
    FOLDER: f"a folder with {', '.join(faiss_json.FILES)}",
    PAIR: "a file vectors-NAME.faiss, beside which metadata-NAME.json stands",
}
_ANY: Final = f"name {_NAMES[RAGMD]}; {_NAMES[FOLDER]}; or {_NAMES[PAIR]}"
_TARGETS: Final = {
    RAGMD: "a file KB.ragmd",
    FOLDER: "a folder",
    PAIR: "a file vectors-NAME.faiss",
}
_FORM_OF: Final[dict[str, MapForm]] = {RAGMD: RagMd(), FOLDER: FaissJson(), PAIR: FaissJson()}
_PARTS: Final = (".faiss", ".json", ".npy")
"""How a name ends that is more likely a file than a folder."""


class Converted(JsonObject, Struct, frozen=True, kw_only=True, rename={"size_bytes": "bytes"}):
    """What was converted."""

    source: str
    """Absolute path of what was read."""
    read_as: str
    """`.ragmd file`, `FAISS + JSON folder` or `FAISS + JSON pair`."""
    target: str
    """Absolute path that was asked for."""
    written_as: str
    """Another one of these three."""
    model: str
    """What made the vectors, as the source says."""
    documents: int
    """How many documents."""
    vectors: int
    """How many vectors."""
    files: tuple[str, ...]
    """Absolute paths of what was written."""
    size_bytes: int
    """Their size."""
    notes: tuple[str, ...]
    """What is not as it was, a sentence each."""


class NothingThere(FilestoreError, FileNotFoundError):
    """There is nothing to be converted."""


def convert(source: str, target: str, limits: Limits = USUAL) -> Converted:
    """Write what is in one form in the other one.

    Args:
        source: A `.ragmd` file, a folder of FAISS + JSON, or one of its two files.
        target: Of another kind than the source; an index that is there is replaced.
        limits: How much is taken.

    Raises:
        UsageError: Both are of one kind, or the names do not show which one is wanted.
        NothingThere: There is no source.
        LimitExceededError: There is more than is taken.
        FormDamaged: The source is of none of the forms, or disagrees with itself.
        TargetRefused: Something else has its place at the target.
        WriteFailedError: The disk refused; what was there is untouched.
    """
    source, target = absolute(source), absolute(target)
    read_as, written_as = _kind_of_source(source), _kind_of_target(target)
    if read_as == written_as:
        others = " or ".join(name for kind, name in _TARGETS.items() if kind != read_as)
        raise UsageError(
            f"{shown_path(source)} is a {read_as}, and {shown_path(target)} would be one, too",
            remedy=f"name {others} as the target",
        )
    form = _FORM_OF[written_as]
    form.check_target(target)
    found, notes = _FORM_OF[read_as].read_map(source)
    Counter(limits, shown_path(source)).add(Size(rows=len(found.rows), bytes=found.rows.nbytes))
    files = form.write_map(target, found)
    return Converted(
        source=source,
        read_as=read_as,
        target=target,
        written_as=written_as,
        model=found.model,
        documents=len(found.documents),
        vectors=len(found.rows),
        files=files,
        size_bytes=sum(os.path.getsize(one) for one in files),
        notes=(*notes, *_lost(found, written_as)),
    )


def _lost(found: DocumentMap, written_as: str) -> list[str]:
    lost = []
    if found.kind != found.flat:
        lost.append(
            f"the {found.kind} was written as {found.flat}: the same vectors, each compared with"
            " the query"
        )
    lacking = sum(one.get("full_text") is None for one in found.documents.values())
    if lacking and written_as == FOLDER:
        lost.append(
            f"{lacking:,} of {len(found.documents):,} documents have no full_text: the texts of"
            f" their rows in {faiss_json.CORPUS} are empty"
        )
    return lost


def _kind_of_source(path: str) -> str:
    if not os.path.lexists(path):
        raise NothingThere(f"there is no {shown_path(path)}", remedy=_ANY)
    try:
        if os.path.isdir(path):
            inside = set(os.listdir(path))
            if inside.intersection(faiss_json.FILES):
                return FOLDER
            if any(map(faiss_json.is_pair, inside)):
                return PAIR
            raise UsageError(f"there is no index in the folder {shown_path(path)}", remedy=_ANY)
        if faiss_json.is_pair(path):
            return PAIR
        if path.endswith(ragmd.SUFFIX) or ragmd.is_ragmd(path):
            return RAGMD
    except OSError as error:
        disk.pass_limits(error)
        reason = error.strerror or str(error)
        raise FilestoreError(f"cannot read {shown_path(path)}: {reason}", remedy=_ANY) from error
    raise UsageError(
        f"{shown_path(path)} has neither the name nor the frontmatter of a .ragmd file", remedy=_ANY
    )


def _kind_of_target(path: str) -> str:
    if path.endswith((ragmd.SUFFIX, ".md")):
        return RAGMD
    if faiss_json.is_pair(path):
        return PAIR
    if path.endswith(_PARTS) and not os.path.isdir(path):
        raise UsageError(f"{shown_path(path)} is no name for an index", remedy=_ANY)
    return FOLDER
