"""What there is to see of one finding: then and now, where exactly, where the last good text lies.

Reads; changes nothing. One rule: whatever is in a file's place, there is an answer.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.browse import evidence_notes
from filestore.browse.evidence_notes import Present, moment
from filestore.browse.rows import stats_of
from filestore.catalog import Catalog, FileRow
from filestore.chunks import frontmatter, kept, links
from filestore.chunks.observation import (
    INDEXED,
    MAX_CHUNK_BYTES,
    RECORD,
    Observation,
    kept_hash,
)
from filestore.core.diff import Difference, unified
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath
from filestore.core.safe_text import shown_path
from filestore.git import process, repository
from filestore.sidecar.session import Parts
from filestore.verify import recorded_state

if TYPE_CHECKING:
    from filestore.embed.cache import EmbeddingCache

_AROUND: Final = 3
"""Lines of an excerpt on each side."""
_LINE_CHARACTERS: Final = 400
_NAMED: Final = 8


class Evidence(Struct, frozen=True, kw_only=True):
    """What there is to see of one finding."""

    finding: Finding
    diff: str = ""
    """Unified, from what was indexed to what is on disk; for a file that a person edited, from
    what was generated. Empty where there are no two texts that differ."""
    diff_cut: bool = False
    indexed_hash: str = ""
    """xxh3_128 of the bytes that were indexed, hexadecimal; "" where there are none."""
    disk_hash: str = ""
    """Of the bytes on disk; "" for no file, or one that is not read."""
    origin: str = ""
    """The hash of the body as generated; "" where nothing was."""
    line: int = 0
    """1-based, in the file on disk: where it is wrong, else where it differs; 0 if unknown."""
    column: int = 0
    excerpt: tuple[tuple[int, str], ...] = ()
    """Numbers and texts of the lines around that one."""
    notes: tuple[str, ...]


def evidence(parts: Parts, finding: Finding) -> Evidence:
    """Gather what there is to see of a finding; never raises for what is gone or damaged."""
    try:
        with parts.reading() as catalog:
            return _gathered(parts, finding, catalog)
    except (FilestoreError, sqlite3.Error):
        return _gathered(parts, finding, None)


def _gathered(parts: Parts, finding: Finding, catalog: Catalog | None) -> Evidence:
    if parts.places.tree.holds(finding.path):
        return _File(parts, finding, catalog).evidence()
    # Of a part of the sidecar, an original, the settings, or a whole folder.
    if finding.path.split("/")[0] == parts.places.sidecar_name:
        embeddings = _embeddings(parts)
        notes = evidence_notes.of_sidecar(finding.path, parts.places, catalog, embeddings)
    elif finding.code == "git-operation":
        notes = iter(("'git status' says what git waits for",))
    else:
        from filestore.config.user_config import Originals

        try:
            allowed = parts.originals()
        except FilestoreError:
            allowed = Originals()
        notes = evidence_notes.of_original(finding.path, parts.places, catalog, allowed)
    named = catalog.index_file() if catalog is not None else None
    is_index = named is not None and finding.path == parts.places.part(named.name)
    return Evidence(
        finding=finding,
        indexed_hash=named.hash if named is not None and is_index else "",
        notes=tuple(notes),
    )


def _embeddings(parts: Parts) -> "EmbeddingCache | None":
    try:
        return parts.embeddings()
    except (FilestoreError, sqlite3.Error):
        return None


class _File:
    """One finding about a file of the tree, with what is known of it."""

    def __init__(self, parts: Parts, finding: Finding, catalog: Catalog | None) -> None:
        self._parts = parts
        self._finding = finding
        self._tree = parts.places.tree
        self._catalog = catalog
        self._path = self._tree.chunk_path(finding.path)
        self._now = evidence_notes.look(parts.places.chunked, self._path)
        self._was = self._path
        """Where the catalog has it: a moved file is still there under its old name."""
        self._row = self._known(self._was)
        if self._row is None and self._tree.holds(finding.other):
            self._was = self._tree.chunk_path(finding.other)
            self._row = self._known(self._was)

    def evidence(self) -> Evidence:
        """See `Evidence`."""
        difference = self._difference
        line, column = self._place()
        return Evidence(
            finding=self._finding,
            diff=difference.text,
            diff_cut=difference.cut,
            indexed_hash=self._indexed_hash,
            disk_hash=self._disk_hash,
            origin=self._origin,
            line=line,
            column=column,
            excerpt=excerpt(self._now.text, line) if self._now.is_text else (),
            notes=tuple(self._notes()),
        )

    def _known(self, path: ChunkPath) -> FileRow | None:
        return self._catalog.files([path]).get(path) if self._catalog else None

    @cached_property
    def _kept(self) -> bytes | None:
        """The last good bytes that the catalog keeps."""
        if self._catalog is None:
            return None
        if self._row is not None:
            return self._catalog.record_data(self._was) or self._catalog.content(self._row.id)
        gone = self._catalog.forgotten(self._was)
        return gone.data if gone is not None else None

    @property
    def _indexed_hash(self) -> str:
        if self._row is not None and self._row.state in (INDEXED, RECORD):
            return self._row.file_hash.hex()
        return kept_hash(self._kept).hex() if self._kept is not None else ""

    @property
    def _disk_hash(self) -> str:
        return content_hash(self._now.data).hex() if self._now.data is not None else ""

    @cached_property
    def _seen(self) -> Observation | None:
        """What the bytes on disk mean."""
        return self._observed()

    def _observed(self) -> Observation | None:
        if self._now.data is None:
            return None
        seen = Observation(
            path=self._path, values=(0, 0, 0, 0, 0), state=INDEXED, data=self._now.data
        )
        name = self._path.rpartition("/")[2]
        self._parts.layout.interpret(seen, name)
        return seen

    @property
    def _origin(self) -> str:
        if self._seen is not None and self._seen.chunk is not None:
            return self._seen.chunk.origin or ""
        return (self._row.origin if self._row is not None else None) or ""

    @property
    def _text_kept(self) -> str | None:
        """Of a document in place, as it was indexed."""
        try:
            return kept.read(self._kept).body if self._kept is not None else None
        except ValueError:
            return None

    @cached_property
    def _difference(self) -> Difference:
        if self._parts.places.tree.has_sections:
            # Between what was read of a document and what is read of it now, without frontmatter.
            before, seen = self._text_kept, None if self._now.is_gone else self._observed()
            if seen is not None:
                seen.file_hash = content_hash(seen.data)
                self._parts.layout.settle(seen)
            text = seen.chunk.body if seen is not None and seen.chunk is not None else None
            after = "" if self._now.is_gone else text  # None where it takes a process to tell
            if before is None or after is None:
                return Difference()
            path = shown_path(self._finding.path)
            found = unified(before, after, names=(f"indexed/{path}", f"on disk/{path}"))
            whole = self._now.text if self._now.is_text else ""
            above = whole.count("\n") - after.count("\n") if whole.endswith(after) else None
            is_there = found.line > 0 and above is not None and not self._now.is_gone
            return replace(found, line=found.line + (above or 0) if is_there else 0)
        before, label = self._before()
        if before is None or not (self._now.is_text or self._now.is_gone):
            return Difference()
        path = shown_path(self._finding.path)
        return unified(before, self._now.text, names=(f"{label}/{path}", f"on disk/{path}"))

    def _before(self) -> tuple[str | None, str]:
        """The text that what is on disk is held against, and what it is called."""
        if self._finding.meaning.edited and self._catalog and self._origin:
            # The file on disk with the body that was generated, where that was kept.
            body = self._catalog.generated(self._origin)
            if body is not None and self._now.data is not None:
                with suppress(FilestoreError):
                    head = frontmatter.split(self._now.data).head
                    return Present(data=head + body).text, "as generated"
        if self._kept is None or not Present(data=self._kept).is_text:
            return None, ""
        return Present(data=self._kept).text, "indexed"

    def _place(self) -> tuple[int, int]:
        """Line and column on disk: of what is wrong with the file, else of what differs."""
        seen = self._seen
        if seen is None:
            return 0, 0
        if self._finding.code == "link-dangling":
            dangling = self._catalog.dangling_links() if self._catalog else []
            for link in dangling:
                if recorded_state.dangling_link(self._tree, link) == self._finding and seen.chunk:
                    at = links.offset_of(link.path, seen.chunk.body, link.target)
                    if at is not None:
                        body = seen.data.decode("utf-8", "replace")
                        at += len(body) - len(seen.chunk.body)
                        return body.count("\n", 0, at) + 1, at - body.rfind("\n", 0, at)
            return 0, 0
        if seen.state not in (INDEXED, RECORD):
            return seen.line, seen.column
        return self._difference.line, 0

    def _notes(self) -> Iterator[str]:
        now = self._now
        stamp = f", written {moment(now.mtime_ns)}" if now.mtime_ns else ""
        if now.is_gone:
            yield "on disk: there is no file"
        elif now.data is None:
            yield f"on disk: {now.problem}{stamp}"
        else:
            yield f"on disk: {now.size_bytes:,} bytes{stamp}"
        yield from self._notes_of_catalog()
        yield self._note_of_answers()
        yield from self._notes_of_git()
        if self._row is None or self._catalog is None:
            return
        if self._finding.meaning.about == "vectors":
            embeddings = _embeddings(self._parts)
            yield from evidence_notes.of_vectors(self._row, self._catalog, embeddings)
        if self._finding.code == "duplicate":
            groups = [one for one in self._catalog.duplicates() if self._row.path in one]
            paths = sorted({path for one in groups for path in one} - {self._row.path})
            for path in paths[:_NAMED]:
                yield f"a text in common: {shown_path(self._tree.store_path(path))}"
            if len(paths) > _NAMED:
                yield f"and {len(paths) - _NAMED:,} more"

    def _notes_of_catalog(self) -> Iterator[str]:
        if self._catalog is None:
            yield "the catalog cannot be read: what was indexed is not known"
            return
        row = self._row
        if row is None and self._kept is None:
            yield "the catalog does not know this file"
            return
        if row is not None:
            name = (
                f" as {shown_path(self._tree.store_path(row.path))}"
                if row.path != self._path
                else ""
            )
            size, stamp = dict(stats_of(self._catalog, [row.path])).get(row.path, (0, 0))[:2]
            recorded = f": {size:,} bytes, written {moment(stamp)}" if stamp else ""
            verb = "indexed" if row.state in (INDEXED, RECORD) else f"left out as {row.state}"
            yield f"{verb}{name} at generation {row.generation}{recorded}"
        if self._kept is None:
            yield "the catalog keeps no text of it"
        elif kept_hash(self._kept).hex() != self._indexed_hash:
            yield "the text that the catalog keeps of it is not the one that was recorded"
        else:
            size_bytes = len(self._kept)
            if self._parts.places.tree.has_sections:
                size_bytes = len((self._text_kept or "").encode("utf-8", "surrogateescape"))
            yield f"the catalog keeps its last good text: {size_bytes:,} bytes"

    def _note_of_answers(self) -> str:
        if self._seen is not None and self._seen.state == RECORD:
            return "a record is not an answer; it says what a document was made from"
        if self._row is None or self._row.state != INDEXED:
            return "search does not find it"
        if self._now.is_gone:
            return "search still finds it, and reports it as gone"
        # One without markers, too, while git has it as unmerged.
        is_unmerged = self._finding.code == "conflict-markers"
        if self._seen is None or self._seen.state != INDEXED or is_unmerged:
            return "search excludes it in this state"
        if self._indexed_hash == self._disk_hash:
            return "search shows it as it was indexed"
        return "search finds it by its indexed text, and marks the text on disk as edited"

    def _notes_of_git(self) -> Iterator[str]:
        root = self._parts.places.root
        large = self._now.size_bytes > MAX_CHUNK_BYTES
        if large or process.work_tree(root) is None:
            return
        committed = repository.last_commit(root, self._tree.store_path(self._was))
        if committed is None:
            yield "git's HEAD does not have it"
            return
        seconds, data = committed
        digest = content_hash(data).hex()
        if digest == self._disk_hash:
            what = "what is on disk"
        else:
            what = "what was indexed" if digest == self._indexed_hash else "another version"
        when = moment(seconds * 1_000_000_000)
        yield f"git's HEAD has {what}: {len(data):,} bytes, committed {when}"


def excerpt(text: str, line: int) -> tuple[tuple[int, str], ...]:
    """The lines around one, with their numbers, long ones cut; none where there is no such line."""
    lines = text.removesuffix("\n").split("\n")
    if not 1 <= line <= len(lines):
        return ()
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    found = []
    for number in range(first, last + 1):
        text = lines[number - 1].removesuffix("\r")
        is_long = len(text) > _LINE_CHARACTERS
        found.append((number, f"{text[: _LINE_CHARACTERS - 1]}…" if is_long else text))
    return tuple(found)
