"""The files of the full-text index against its stamp and the catalog; loads no tantivy."""

import os
import shutil

from msgspec.structs import replace

from filestore.catalog import Catalog
from filestore.config import user_config
from filestore.config.layout import FULLTEXT, Places
from filestore.core.findings import Finding
from filestore.core.safe_text import listed
from filestore.fs import disk
from filestore.fulltext import (
    ANALYSIS,
    STAMP_NAME,
    FulltextUnreadable,
    Stamp,
    check_files,
    read_stamp,
    write_stamp,
)


def found_stamp(places: Places, catalog: Catalog) -> Stamp | None:
    """The stamp of an index of this catalog and of our analysis, whoever wrote it."""
    stamp = read_stamp(places.fulltext)
    if stamp is None or stamp.analysis != ANALYSIS or stamp.catalog != catalog.identity:
        return None
    return stamp


def own_stamp(places: Places, catalog: Catalog) -> Stamp | None:
    """The same, of an index that this user wrote: tantivy parses no other."""
    stamp = found_stamp(places, catalog)
    return stamp if stamp is not None and _is_ours(places, stamp) else None


def _is_ours(places: Places, stamp: Stamp) -> bool:
    return user_config.is_sealed(places.configuration, stamp.claims(), stamp.seal)


def sealed(places: Places, stamp: Stamp) -> Stamp:
    """A stamp with this user's keyed hash, where there is a place for the secret behind it."""
    mark = user_config.seal(places.configuration, stamp.claims(), make=True)
    return replace(stamp, seal=mark or "")


def deleted_texts(places: Places, catalog: Catalog) -> int:
    """How many texts that are gone the scores of the index still count."""
    try:
        stamp = own_stamp(places, catalog)
    except FulltextUnreadable:
        return 0
    return stamp.deleted if stamp else 0


def copy(places: Places, stamp: Stamp, copied: Places) -> None:
    """Have the index of a stamp in another sidecar, too; files that never change are shared.

    Raises:
        OSError: A file of it is gone, or there is no room for a copy.
    """
    for name, _, _ in stamp.files:
        source, target = os.path.join(places.fulltext, name), os.path.join(copied.fulltext, name)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        if name.endswith(".json"):
            shutil.copyfile(source, target)
        else:
            disk.link_or_copy(source, target)
    write_stamp(copied.fulltext, sealed(copied, stamp))


def _is_garbled(places: Places) -> bool:
    """Whether a stamp is there that says nothing; one of another catalog is as good as none."""
    there = os.path.lexists(os.path.join(places.fulltext, STAMP_NAME))
    return there and read_stamp(places.fulltext) is None


def findings(places: Places, catalog: Catalog, *, hashes: bool) -> list[Finding]:
    """What is wrong with the full-text index, without parsing it."""
    try:
        return _findings(places, catalog, hashes=hashes)
    except FulltextUnreadable as error:
        path = places.part(FULLTEXT)
        return [Finding(code="unreadable", path=path, detail=error.message)]


def _findings(places: Places, catalog: Catalog, *, hashes: bool) -> list[Finding]:
    path, stamp = places.part(FULLTEXT), found_stamp(places, catalog)
    if stamp is None:
        if _is_garbled(places):
            detail = f"{STAMP_NAME} is there and cannot be read as a stamp"
            return [Finding(code="fulltext-damaged", path=path, detail=detail)]
        if catalog.count("vectors") == 0 and catalog.generation == 0:
            return []
        return [Finding(code="fulltext-missing", path=path, detail="no usable stamp")]
    if problems := check_files(places.fulltext, stamp, hashes=hashes):
        return [
            Finding(code="fulltext-damaged", path=path, detail=listed(problems, separator="; "))
        ]
    if not _is_ours(places, stamp) and user_config.can_seal(places.configuration):
        detail = "its stamp does not carry this user's keyed hash"
        return [Finding(code="fulltext-foreign", path=path, detail=detail)]
    if stamp.generation != catalog.generation:
        detail = (
            f"it reflects generation {stamp.generation}, the catalog is at {catalog.generation}"
        )
        return [Finding(code="fulltext-behind", path=path, detail=detail)]
    if stamp.documents != catalog.text_count():
        detail = f"it holds {stamp.documents} texts, the catalog {catalog.text_count()}"
        return [Finding(code="fulltext-mismatch", path=path, detail=detail)]
    return []
