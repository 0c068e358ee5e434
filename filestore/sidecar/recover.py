"""Open a store's parts for writing: damaged ones go to quarantine, what is sound is kept.

What proves itself in a catalog in quarantine is carried over into the new one: texts carry the hash
they are known by, and rows of files their checksum, so they can be trusted whatever else is
damaged. One rule: garbage yields nothing and is no error.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from filestore.catalog import (
    BEFORE,
    LET_GO,
    CatalogDamagedError,
    CatalogMissingError,
    CatalogOutdatedError,
    CatalogWriter,
    Forgotten,
    decode_path,
    queries,
)
from filestore.chunks.layout import Layout
from filestore.chunks.observation import GONE, MAX_CHUNK_BYTES, kept_hash
from filestore.config.layout import CATALOG, EMBEDDINGS, MAX_SOURCE_BYTES, PARTS, QUARANTINE, Places
from filestore.core.errors import FilestoreError, on_error
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash, origin_hash, short_origin
from filestore.core.paths import ChunkPath, has_plain_names
from filestore.embed import Embedder
from filestore.embed.cache import EmbeddingCache, EmbeddingsDamaged
from filestore.fs import disk, part
from filestore.fs.database import UNREADABLE, is_plain_table, open_untrusted, remove, size_bytes
from filestore.fs.part import NAME_SIDECAR
from filestore.fulltext import STAMP_NAME
from filestore.git.process import read_start
from filestore.history.backup_store import remove_leftovers
from filestore.sidecar import losses, vector_file
from filestore.sidecar.losses import Loss, knows_nothing, vanished, walk
from filestore.sidecar.models import Models
from filestore.sidecar.refusals import check_sidecar

MAX_QUARANTINED = 4
_CARRIED: Final = "-carried"
"""The suffix of the file that marks a catalog in quarantine as salvaged."""
_IGNORED: Final = b"*\n"


def make_sidecar(places: Places) -> None:
    """Make the sidecar folder, for its owner only.

    Among documents it is for no commit either, and says so itself: their rules are not ours.

    Raises:
        WriteFailedError: The disk refused.
    """
    check_sidecar(places)
    try:
        disk.make_folders(places.sidecar, 0o700)
        if not places.tree.is_written:
            # Whatever became of the file that says so.
            path, found = os.path.join(places.sidecar, ".gitignore"), b""
            with contextlib.suppress(OSError):
                found = disk.read_path(path, limit=len(_IGNORED))
            if found != _IGNORED:
                remove(path)
                disk.write_path(path, _IGNORED)
    except part.UnsafePartError:
        raise
    except OSError as error:
        failed = disk.write_failed(places.sidecar, error)
        if not places.tree.is_written and error.errno in disk.PERMISSION_ERRORS:
            failed.remedy = f"make it writable, or {NAME_SIDECAR}"
        raise failed from error


def open_parts(
    places: Places, models: Models
) -> tuple[CatalogWriter, EmbeddingCache, tuple[Finding, ...]]:
    """Open catalog and embeddings, making them where they are missing. The lock is held.

    Returns:
        Both, and the findings that were repaired on the way.
    """
    repaired: list[Finding] = []
    with disk.disk_errors(places.sidecar):
        # What lies in place of a derived file that is written without being opened.
        paths = [os.path.join(places.sidecar, one.name) for one in PARTS if one.is_replaced]
        if disk.is_folder(places.fulltext):
            paths.append(os.path.join(places.fulltext, STAMP_NAME))
        for path in paths:
            try:
                part.check(path)
            except part.NotAFileError:
                quarantine(places, path)
        try:
            embeddings = EmbeddingCache.open(places.embeddings)
        except EmbeddingsDamaged as error:
            embeddings, finding = _salvage(places, models, error.message)
            repaired.append(finding)
        catalog = _open_catalog(places, repaired)
        # Temporary files of a writer that died: the lock says that none is alive.
        with part.folder_of(places.sidecar) as sidecar:
            for name in os.listdir(sidecar):
                if name.startswith(disk.TEMPORARY_PREFIX):
                    with contextlib.suppress(OSError):
                        part.remove(sidecar, name)
        repaired += remove_leftovers(places)
    return catalog, embeddings, tuple(repaired)


def _open_catalog(places: Places, repaired: list[Finding]) -> CatalogWriter:
    missing = not os.path.lexists(places.catalog)
    try:
        catalog = CatalogWriter.open(places.catalog, create=True)
        with on_error(catalog.close):
            catalog.require_rows()
            catalog.require_paths()
    except CatalogDamagedError as error:
        quarantine(places, places.catalog)
        repaired.append(part_finding(places, error))
        catalog = CatalogWriter.open(places.catalog, create=True)
    else:
        if missing:
            with contextlib.suppress(OSError), os.scandir(places.chunked) as entries:
                if any(True for _ in entries):
                    path, detail = places.part(CATALOG), "there was no catalog"
                    repaired.append(Finding(code="catalog-missing", path=path, detail=detail))
    base = os.path.basename(places.catalog)
    names = [name for number, name in _quarantined(places) if name == f"{number}-{base}"]
    aside = os.path.join(places.quarantine, names[-1]) if names else None
    if catalog.generation == 0 and aside is not None:
        # Asked of the generation, not of what just happened: a kill in between loses nothing.
        salvaged_mark = aside + _CARRIED
        is_latest = not os.path.lexists(salvaged_mark)
        carry_over(aside, catalog, places, is_latest=is_latest)
        if is_latest:
            with part.own_folder(places.quarantine) as held:
                disk.write_at(held, os.path.basename(salvaged_mark), b"")
                os.fsync(held)
    return catalog


def note_lost(places: Places, layout: Layout, catalog: CatalogWriter) -> None:
    """Tell a catalog that knows no file which ones git has and the tree lacks.

    So that they are missing, not never heard of; what an earlier catalog had forgotten went on
    purpose. The lock is held.
    """
    if not knows_nothing(catalog):
        if catalog.generation != 1 or not catalog.file_count() or catalog.indexed_count():
            return
        if any(state != GONE for _, state, _ in catalog.states()):
            return
        # All that it knows was carried over from the one before it.
    known = {path for path, _, _ in catalog.states()}.union(catalog.forgotten_before())
    found = losses.lost_of_git(places, layout, walk(places, processes=1))
    gone = [path for path in found.gone if path not in known]
    if not gone:
        return
    catalog.begin()
    with on_error(catalog.rollback):
        git = "git's HEAD has it"
        losses.note(
            catalog, [Loss(path=one, detail=git, resource=layout.resource(one)) for one in gone]
        )
        catalog.commit()


def _salvage(places: Places, models: Models, reason: str) -> tuple[EmbeddingCache, Finding]:
    """Quarantine damaged embeddings and keep every row whose checksum holds."""
    quarantined = quarantine(places, places.embeddings)
    embeddings = EmbeddingCache.open(places.embeddings)
    known = [embedder.fingerprint for embedder in models.embedders]
    kept = embeddings.salvage(quarantined, fingerprints=known)
    detail = f"{reason}; {kept} rows kept"
    path = places.part(EMBEDDINGS)
    return embeddings, Finding(code="embeddings-damaged", path=path, detail=detail)


def discard_damaged(
    places: Places,
    models: Models,
    found: Iterable[Finding],
    unsound: Iterable[bytes] = (),
) -> list[Finding]:
    """Quarantine the parts that findings of a verification condemn. The lock is held.

    Args:
        places: Where the store lies.
        models: Its models; without its own no vector of that is given up, since none could be
            made again.
        found: What was found.
        unsound: Embedding keys whose vector is stored whole, and wrong.

    Returns:
        The findings that the next opening and sync then repair for good.
    """
    embedder = models.own.embedder
    repaired = condemned(places, found, embedder)
    discarded = {finding.meaning.discards for finding in repaired}
    if "catalog" in discarded:
        quarantine(places, places.catalog)
    if "embeddings" in discarded and os.path.lexists(places.embeddings):
        reason = next(one.detail for one in repaired if one.meaning.discards == "embeddings")
        embeddings, _ = _salvage(places, models, reason)
        embeddings.close()
    is_invalid = any(finding.code == "vector-invalid" for finding in repaired)
    for one in models.embedders if unsound or is_invalid else ():
        wrong = unsound if one is embedder else ()
        if wrong or is_invalid:
            # Their texts are embedded again.
            with EmbeddingCache.open(places.embeddings) as embeddings:
                invalid = vector_file.invalid_keys(embeddings, one.fingerprint)
                embeddings.discard(one.fingerprint, {*wrong, *invalid})
    if "index" in discarded:
        for name in os.listdir(places.sidecar):
            if name.startswith(vector_file.PREFIX):
                remove(os.path.join(places.sidecar, name))
    if "fulltext" in discarded:
        remove(os.path.join(places.fulltext, STAMP_NAME))
    return repaired


def condemned(places: Places, found: Iterable[Finding], embedder: Embedder | None) -> list[Finding]:
    """The findings that say that a part cannot be kept as it is."""
    return [
        finding
        for finding in found
        if finding.meaning.discards
        # Of a text that was never embedded the FAISS file is not to blame.
        and (
            finding.meaning.discards != "index"
            or (embedder is not None and finding.other.startswith(f"{places.sidecar_name}/"))
        )
    ]


def quarantine(places: Places, path: str) -> str:
    """Quarantine a damaged SQLite file and its log, the oldest making room; returns its path."""
    parent, base = os.path.split(path)
    with (
        part.folder_of(parent) as folder,
        part.folder_of(places.sidecar) as sidecar,
        part.own_folder(QUARANTINE, folder=sidecar, make=True, replace=True) as aside,
    ):
        held = _quarantined(places)
        numbers = sorted({number for number, _ in held})
        for number, name in held:
            if number in numbers[: len(numbers) - MAX_QUARANTINED + 1]:
                part.remove(aside, name)
        name = f"{max(numbers, default=0) + 1}-{base}"
        for suffix in part.DATABASE_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                os.rename(base + suffix, name + suffix, src_dir_fd=folder, dst_dir_fd=aside)
        # Shared memory is of no use to another process.
        part.remove(aside, f"{name}-shm")
        # A log that comes back would be replayed into the file that takes this one's place.
        for changed in (aside, folder):
            os.fsync(changed)
    return os.path.join(places.quarantine, name)


def _quarantined(places: Places) -> list[tuple[int, str]]:
    """Number and name of everything in quarantine; what else lies there is not ours."""
    if not disk.is_folder(places.quarantine):
        return []
    with contextlib.suppress(FileNotFoundError):
        names = os.listdir(places.quarantine)
        numbered = [(name.partition("-")[0], name) for name in names]
        return sorted((int(number), name) for number, name in numbered if number.isdecimal())
    return []


def part_finding(places: Places, error: FilestoreError) -> Finding:
    """The finding for a catalog that cannot be opened, or damage that showed as it was used.

    Of the embeddings, too. An outdated catalog is as good as none.
    """
    if isinstance(error, EmbeddingsDamaged):
        path = places.part(EMBEDDINGS)
        return Finding(code="embeddings-damaged", path=path, detail=error.detail)
    is_missing = isinstance(error, CatalogMissingError | CatalogOutdatedError)
    code = "catalog-missing" if is_missing else "catalog-damaged"
    return Finding(code=code, path=places.part(CATALOG), detail=error.message)


_LEFTOVERS: Final = "leftovers"
"""The state of a temporary file of a dead writer: no loss."""
_TABLES: Final = re.compile(r"(?:FROM|JOIN) (\w+)")


def carry_over(path: str, catalog: CatalogWriter, places: Places, *, is_latest: bool) -> int:
    """Take what can be proved from a catalog in quarantine, as one commit. The lock is held.

    Args:
        path: The old catalog, with its write-ahead log next to it where there is one.
        catalog: The new one, without a commit.
        places: Says which files are there still: their own bytes are the newer ones.
        is_latest: Whether no catalog came after it: then what it knows and the tree lacks is lost.

    Returns:
        How many texts, remarks and losses were kept.
    """
    kept = 0
    catalog.begin()
    with on_error(catalog.rollback):
        for origin, body in _proved(
            path,
            "generated",
            lambda row: origin_hash(row[1].decode("utf-8")) == short_origin(row[0]),
        ):
            catalog.keep_generated(short_origin(origin), bytes(body))
            kept += 1
        # Paths that a person named: not proved, and only ever looked at to be compared by hash.
        for key, value in _proved(
            path,
            "originals",
            lambda row: all(isinstance(value, str) and "\0" not in value for value in row),
        ):
            catalog.set_meta(key, value)
            kept += 1
        lost = _lost(path, places) if is_latest else {}
        ids = losses.note(catalog, list(lost.values()))
        if is_latest and not ids and any(_proved(path, "let-go", (LET_GO, 1).__eq__)):
            catalog.set_meta(LET_GO, 1)
        gone = _gone(path, places, catalog.next_generation)
        forgotten = []
        for one in gone:
            if one.path in lost and lost[one.path].file_hash == one.file_hash:
                catalog.put_content(ids[one.path], one.data)
            else:
                forgotten.append(one)
        catalog.remember_forgotten(forgotten)
        kept += len(ids) + catalog.count("forgotten")
        catalog.commit()
    return kept


def _lost(path: str, places: Places) -> dict[ChunkPath, Loss]:
    """The files that were known and neither went on purpose nor are there, under whatever name."""
    rows = {decode_path(row[1]): row for row in _proved(path, "files", _is_file)}

    def contents(added: list[ChunkPath]) -> dict[ChunkPath, bytes]:
        """The hashes of new files."""
        most = MAX_SOURCE_BYTES if not places.tree.is_written else MAX_CHUNK_BYTES
        paths = {one: os.path.join(places.chunked, one) for one in added}
        return {one: content_hash(read_start(path, most)) for one, path in paths.items()}

    hashes = {below: row[4] for below, row in rows.items()}
    gone = vanished(hashes, walk(places, processes=1), contents)
    if places.rules is not None:
        # What is there and no part of the tree is left out by its rules.
        root = places.chunked
        gone = {
            one: name for one, name in gone.items() if not os.path.lexists(os.path.join(root, one))
        }
    return {
        below: Loss(path=below, detail=_KNOWN, resource=rows[below][7], file_hash=file_hash)
        for below, file_hash in gone.items()
    }


def _gone(path: str, places: Places, generation: int) -> Iterator[Forgotten]:
    """The last good bytes of files that are not there any more, those forgotten long ago first."""
    for what, at in (("forgotten", BEFORE), ("contents", generation), ("records", generation)):
        for name, file_hash, data, mtime_ns in _proved(path, what, _is_content):
            below = decode_path(name)
            if has_plain_names(below) and not os.path.lexists(os.path.join(places.chunked, below)):
                yield Forgotten(
                    path=below, file_hash=file_hash, data=data, mtime_ns=mtime_ns, generation=at
                )


_KNOWN: Final = "the catalog in quarantine has it"


def _is_file(row: tuple[Any, ...]) -> bool:
    """Whether a row, of this schema or the one before, is what was written, by its checksum."""
    number, path, *middle, edited, generation = row[:13]
    below = decode_path(path)
    values = (number, below, *middle, bool(edited), generation, *row[13:-1])
    is_written = content_hash(repr(values).encode("utf-8", "surrogatepass")) == row[-1]
    _, state, _, file_hash, *_, resource = row[1:8]
    typed = isinstance(file_hash, bytes) and isinstance(resource, str)
    return is_written and typed and has_plain_names(below) and state != _LEFTOVERS


def _is_content(row: tuple[Any, ...]) -> bool:
    path, file_hash, data, mtime_ns = row
    typed = isinstance(path, bytes) and isinstance(data, bytes) and isinstance(mtime_ns, int)
    return typed and kept_hash(data) == file_hash


def _proved(
    path: str, what: str, holds: Callable[[tuple[Any, ...]], bool]
) -> Iterator[tuple[Any, ...]]:
    """Rows that prove themselves, from both ends of their table up to what cannot be read."""
    statement = queries.SALVAGED[what]
    seen: set[Any] = set()
    left = size_bytes(path)
    for order in ("ASC", "DESC"):
        with (
            contextlib.suppress(*UNREADABLE),
            contextlib.closing(open_untrusted(path)) as connection,
        ):
            tables = _TABLES.findall(statement)
            if not all(is_plain_table(connection, table) for table in tables):
                return
            rows = connection.execute(statement.format(order=order))
            while left >= 0:
                row = rows.fetchone()
                if row is None:
                    return
                left -= sum(len(value) for value in row if isinstance(value, str | bytes))
                # Values of a damaged row may be of any type.
                with contextlib.suppress(ValueError, TypeError, AttributeError):
                    if row[0] not in seen and holds(row):
                        seen.add(row[0])
                        yield row
