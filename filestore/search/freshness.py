"""What indexed files are now, looked at as results are given: fresh, edited, gone, or excluded.

Reads the files of hits and decides nothing about ranking. One rule: text is shown only of a file
that was read just now and could be indexed as it is. Which of the fresh ones are outdated is in
`authority`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field

from filestore.catalog import Catalog, FileRow
from filestore.chunks import frontmatter
from filestore.chunks.layout import TREE, Layout
from filestore.chunks.observation import INDEXED, RECORD, Observation
from filestore.core.frontmatter_yaml import Value
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath, StorePath
from filestore.fs import disk
from filestore.fs.disk import pass_limits
from filestore.git import repository

if TYPE_CHECKING:
    from filestore.chunking import Section
    from filestore.chunks.chunk_file import Chunk
    from filestore.sidecar.session import Parts

Freshness = Literal["fresh", "outdated", "edited", "gone"]
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_UNREADABLE: Final = "unreadable"
MISMATCH: Final = "map-mismatch"
"""Of a file whose row in the catalog is damaged: its path may be another file's."""


class KnownFile(Struct, frozen=True, kw_only=True):
    """A file, as any answer names it."""

    path: StorePath
    """The chunk file, relative to the store root."""
    resource: str
    """What it belongs to."""
    source: str | None
    """The document it comes from."""
    freshness: Freshness
    """`fresh`: as indexed; `outdated`: as indexed, but its original, or a source that it names,
    changed or went, or a text that this summary, or one below it, was made from; `edited` since;
    `gone`."""
    notes: tuple[str, ...] = ()
    """What to know before one relies on it, in words: superseded by X, stale since 2026-05-01,
    deprecated, draft, verified 2026-06-01, X changed since."""


class UserKeys(Mapping[str, Value]):
    """The keys of a chunk file that are not ours, parsed when they are asked for."""

    __slots__ = ("_head", "_keys")

    def __init__(self, head: bytes) -> None:
        """Take what is above the body, which was parsed without an error before."""
        self._head = head
        self._keys: Mapping[str, Value] | None = None

    def _parsed(self) -> Mapping[str, Value]:
        if self._keys is None:
            from filestore.chunks import chunk_file

            self._keys = chunk_file.parse(self._head).user
        return self._keys

    def __getitem__(self, key: str) -> Value:
        return self._parsed()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parsed())

    def __len__(self) -> int:
        return len(self._parsed())

    def __repr__(self) -> str:
        return repr(dict(self))


class Look(Struct, frozen=True, kw_only=True):
    """What one file is now."""

    freshness: Freshness | None
    """None for a file that is excluded."""
    body: str = ""
    """What it says, where it is shown."""
    body_line: int = 1
    """The line of the file on which that begins; 0 where the file has no such lines."""
    is_uneven: bool = False
    """Whether it has line ends that are none in the file: a lone CR next to LF is a sign there."""
    headings: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()
    page_starts: tuple[tuple[int, int], ...] = ()
    """Where in the body each of the pages starts, as far as that is known, and its number."""
    code: str = ""
    """Why it is excluded."""
    data: bytes = b""
    """All of a chunk file."""
    document_keys: Mapping[str, Value] = field(default_factory=dict)
    """Of a document in place: its frontmatter."""

    @property
    def metadata(self) -> Mapping[str, Value]:
        """The keys that are not ours."""
        return UserKeys(frontmatter.split(self.data).head) if self.data else self.document_keys

    @property
    def questions(self) -> tuple[str, ...]:
        """The ones that a chunk file has; parsed now, as most hits are not found by them."""
        if b"questions" not in self.data:
            return ()
        from filestore.chunks import chunk_file

        return chunk_file.parse(self.data).questions


def first_line(body: str, line: int) -> int:
    """The line of a file on which the words of a text begin; 0 where it has no such lines.

    Args:
        body: The text; blank lines may be above its words.
        line: The one on which the text begins, 1-based, or 0.
    """
    blank = len(body) - len(body.lstrip())
    return line + body.count("\n", 0, blank) if line else 0


_GONE: Final = Look(freshness="gone")


class Looker:
    """Looks at files of the tree for one answer after another."""

    def __init__(self, parts: "Parts", catalog: Catalog) -> None:
        """Prepare.

        Args:
            parts: Of the store.
            catalog: Inside a snapshot whenever a file is looked at.
        """
        self._places, self._layout, self._catalog = parts.places, parts.layout, catalog
        self._chunked: int | None = None
        self._problem: Look | None = None
        self._shows_gone = False
        self._unmerged: frozenset[ChunkPath] = frozenset()

    def close(self) -> None:
        """Let go of the folder."""
        if self._chunked is not None:
            os.close(self._chunked)
            self._chunked = None

    def begin(self, *, shows_gone: bool = False) -> None:
        """Prepare for one answer: what git has as unmerged is asked while git is busy, not else.

        Args:
            shows_gone: Whether a file that is gone has the text that was indexed.
        """
        self._shows_gone = shows_gone
        busy = repository.is_stopped(self._places.root)
        self._unmerged = frozenset(repository.unmerged(self._places.chunked) if busy else ())
        self.close()
        self._problem = None
        try:
            self._chunked = os.open(self._places.chunked, _FOLDER_FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            self._problem = _GONE
        except OSError as error:
            pass_limits(error)
            self._problem = Look(freshness=None, code=_UNREADABLE)

    @property
    def sees(self) -> bool:
        """Whether there is a tree at all, so that looking at more files may find some."""
        return self._problem is None

    def look(self, row: FileRow, part: int = 0) -> Look:
        """Read a file now: what it says, and whether that is what was indexed.

        Args:
            row: The file's.
            part: Which section of a document.
        """
        look = self._look(row, part)
        if look.freshness == "gone" and self._shows_gone:
            look = self._as_it_was(row, part)
        if look.freshness == "fresh" or self._catalog.row_is_sound(row):
            return look
        # What is not as it was indexed may have a row of another file.
        return Look(freshness=None, code=MISMATCH)

    def _look(self, row: FileRow, part: int) -> Look:
        if self._chunked is None:
            return self._problem or _GONE
        data = self._as_indexed(row)
        if data is not None and row.state not in (INDEXED, RECORD):
            # These very bytes were left out, and would be again.
            return Look(freshness=None, code=row.state)
        if self._layout.of(row.path).has_sections:
            return self._section(row, part, is_fresh=data is not None)
        if data is not None:
            # These bytes were parsed when they were indexed.
            headings, pages = row.headings_and_pages()
            parts = frontmatter.split(data)
            return Look(
                freshness="fresh",
                body=parts.body.decode(),
                body_line=parts.head.count(b"\n") + 1,
                headings=headings,
                pages=pages,
                data=data,
            )
        # What holds chunks ends in .md in either layout, and is no record.
        seen = self._observed(row, TREE)
        if isinstance(seen, Look):
            return seen
        if seen.state != INDEXED or seen.chunk is None:
            return Look(freshness=None, code=seen.state)
        chunk = seen.chunk
        if self._is_shut(chunk, row.path):
            return _GONE
        same = seen.file_hash == row.file_hash
        return Look(
            freshness="fresh" if same else "edited",
            body=chunk.body,
            body_line=frontmatter.split(seen.data).head.count(b"\n") + 1,
            headings=chunk.headings,
            pages=chunk.pages,
            data=seen.data,
        )

    def _is_shut(self, now: "Chunk", path: ChunkPath) -> bool:
        """Whether what a file says now closes it to who asks: it is as if it had gone."""
        if self._places.closed is None:
            return False
        from filestore.sidecar.door import is_shut_text

        return is_shut_text(self._places, now, path)

    def _as_it_was(self, row: FileRow, part: int) -> Look:
        """A file that is gone, with its last text."""
        from filestore.chunks import kept

        try:
            before = kept.read(self._catalog.content(row.id) or b"")
            if before.sections:
                return _look_at_section(before, before.sections[part], "gone")
        except (ValueError, IndexError):
            return _GONE
        return Look(
            freshness="gone", body=before.body, headings=before.headings, pages=before.pages
        )

    def _observed(self, row: FileRow, layout: Layout) -> Observation | Look:
        """A file as it is now, or why it cannot be read."""
        from filestore.chunks.layout import observe

        assert self._chunked is not None
        (seen,) = observe(self._chunked, [row.path], layout=layout, unmerged=self._unmerged)
        if isinstance(seen, Observation):
            return seen
        is_gone = isinstance(seen[1], FileNotFoundError | NotADirectoryError)
        return _GONE if is_gone else Look(freshness=None, code=_UNREADABLE)

    def _section(self, row: FileRow, part: int, *, is_fresh: bool) -> Look:
        """A section of a document: as it was indexed, or what became of it since."""
        if row.state != INDEXED:
            seen = self._observed(row, self._layout)
            if isinstance(seen, Look):
                return seen
            self._layout.settle(seen)
            is_sound = seen.state == INDEXED
            return Look(
                freshness="edited" if is_sound else None, code="" if is_sound else seen.state
            )
        from filestore.chunks import kept

        data = self._catalog.content(row.id) or b""
        try:
            if is_fresh and kept.is_document(data):
                alone = kept.as_chunk(kept.decode(data, part=part))
                return _look_at_section(alone, alone.sections[0], "fresh")
            before = kept.read(data)
            section = before.sections[part]
        except (ValueError, IndexError):
            return Look(freshness=None, code=MISMATCH)
        if is_fresh:
            return _look_at_section(before, section, "fresh")
        seen = self._observed(row, self._layout)
        if isinstance(seen, Look):
            return seen
        self._layout.settle(seen)
        if seen.state != INDEXED:
            return Look(freshness=None, code=seen.state)
        if seen.chunk is None:
            # What it says now takes a process to tell: it is not shown as it was.
            return Look(freshness="edited", headings=section.headings)
        if self._is_shut(seen.chunk, row.path):
            return _GONE
        return _look_at_section(seen.chunk, _same_section(before, part, seen.chunk), "edited")

    def _as_indexed(self, row: FileRow) -> bytes | None:
        """The bytes of a file, read now; None where they are not the ones that were indexed."""
        if self._chunked is None or row.path in self._unmerged:
            return None
        if self._places.fetch is not None:
            self._places.fetch(os.path.join(self._places.chunked, row.path))
        try:
            data, _ = disk.read_below(self._chunked, row.path, limit=self._layout.most_bytes)
        except OSError as error:
            pass_limits(error)
            return None
        return data if content_hash(data) == row.file_hash else None


def _look_at_section(chunk: "Chunk", section: "Section", freshness: Freshness) -> Look:
    body = chunk.body[section.start : section.end]
    starts = chunk.pages_between(section.start, section.end)
    return Look(
        freshness=freshness,
        body=body,
        body_line=section.line,
        is_uneven=section.line > 0 and body.count("\n", 0, -1) != section.end_line - section.line,
        headings=section.headings,
        pages=tuple(page for _, page in starts),
        page_starts=starts,
        document_keys=chunk.frontmatter,
    )


def _same_section(before: "Chunk", part: int, now: "Chunk") -> "Section":
    """The section of an edited document that one became: of the same text, else the same place."""
    was = before.sections[part]
    text = before.body[was.start : was.end].strip()
    for section in now.sections:
        if now.body[section.start : section.end].strip() == text:
            return section
    same_path = (section for section in now.sections if section.headings == was.headings)
    return next(same_path, now.sections[min(part, len(now.sections) - 1)])


def looks(
    parts: "Parts", catalog: Catalog, texts: Sequence[tuple[ChunkPath, int]]
) -> Iterator[tuple[FileRow, int, Look]]:
    """The row of each indexed file, its section, and what it is now, in the order given.

    Args:
        parts: Of the store.
        catalog: Inside a snapshot.
        texts: Files, and which section of a document; others than indexed ones go.
    """
    rows = catalog.files(list(dict.fromkeys(path for path, _ in texts)))
    with closing(Looker(parts, catalog)) as looker:
        looker.begin()
        for path, part in texts:
            if path in rows:
                yield rows[path], part, looker.look(rows[path], part)


def notes(looks: Sequence[Look], *, gone_are: str = "of these results") -> list[str]:
    """Notes on files that would have answered.

    Args:
        looks: What the files are now.
        gone_are: What those are that are gone; "" where that is known already.
    """
    lines = []
    gone = sum(look.freshness == "gone" for look in looks)
    if gone and gone_are:
        lines.append(f"{_files(gone)} {gone_are} {_are(gone)} gone: run 'filestore sync'")
    excluded: dict[str, int] = {}
    for look in looks:
        if look.freshness is None:
            excluded[look.code] = excluded.get(look.code, 0) + 1
    if excluded:
        number = sum(excluded.values())
        why = ", ".join(f"{count:,} {code}" for code, count in sorted(excluded.items()))
        more = "'filestore status' says more"
        if MISMATCH in excluded:
            more = "'filestore sync --full' repairs the catalog"
        lines.append(f"{_files(number)} {_are(number)} excluded ({why}): {more}")
    return lines


def _files(number: int) -> str:
    return f"{number:,} file{'' if number == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
