"""The links of notes that lie in place, each led to the file that its name means.

Nothing of this is kept: which file a name means changes with the names of all files. One rule: the
texts are those that were indexed; whether a file is still so is for others to ask.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from filestore.catalog import Catalog, FileRow, decode_path, queries
from filestore.chunks import document
from filestore.chunks.link_targets import Names, link_key, path_keys
from filestore.core.paths import ChunkPath
from filestore.extract import for_name
from filestore.extract.about import About, about
from filestore.extract.base import Document
from filestore.extract.links import Link

_LETTERS: Final = re.compile(rb"[A-Za-z0-9]+")
_MARKS: Final = (b"[[", b"](", b"]:")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLink:
    """One link of a note."""

    path: ChunkPath
    """The note."""
    line: int | None
    """In its file, 1-based; None in its metadata, and where its text has no lines of the file."""
    target: ChunkPath | None
    """The file that is meant; None where there is none."""
    written: str
    """The target as the note has it."""


def of_note(catalog: Catalog, row: FileRow, line: int | None) -> list[NoteLink]:
    """The links of one note, in order; of a line, those that stand in it.

    What leads nowhere and would be no document, such as a picture, is left out.
    """
    names = _names(catalog)
    found = _resolved(row.path, catalog.content(row.id) or b"", names)
    return [
        one
        for one in found
        if line in (None, one.line) and (one.target is not None or for_name(one.written))
    ]


def to_note(catalog: Catalog, path: ChunkPath) -> list[NoteLink]:
    """The links of other notes to a file, by path."""
    aliases: list[tuple[str, ChunkPath]] = list(_aliases(catalog))
    names = Names(_paths(catalog), aliases)
    own = [alias for alias, one in aliases if one == path]
    keys = path_keys(path, own)
    looked_for = [_words(name) for name in (path.rpartition("/")[2], *own)]
    found = []
    for linking, data in queries.indexed_contents(catalog):
        if _may_link(data, looked_for):
            note = decode_path(linking)
            found += [
                one
                for one in _resolved(note, data, names, keys)
                if one.target == path and note != path
            ]
    return found


def _may_link(data: bytes, looked_for: Iterable[list[bytes]]) -> bool:
    """Whether a document may have a link to one of some names, told without reading it.

    In whatever case a name is written, its words of ASCII letters are there, unless some of them
    are written as percent signs or entities.
    """
    if not any(mark in data for mark in _MARKS):
        return False
    lowered = data.lower()
    return (
        b"%" in data
        or b"&#" in data
        or any(all(word in lowered for word in words) for words in looked_for)
    )


def _words(name: str) -> list[bytes]:
    """None of a name without any, which then may be in every document."""
    stem = name.rpartition(".")[0] or name
    return [word.lower() for word in _LETTERS.findall(stem.encode("utf-8", "surrogateescape"))]


def _resolved(
    path: ChunkPath, data: bytes, names: Names, keys: frozenset[str] | None = None
) -> Iterator[NoteLink]:
    """The links of a document to other files; where keys are given, those that may have one."""
    kept = document.decode(data) if document.is_document(data) else None
    if kept is None:
        return
    first = kept.sections[0].line if kept.sections else 0
    for link in _about(path, kept).links:
        if link.target and (keys is None or link_key(link) in keys):
            line = first + link.line - 1 if first and link.line else None
            yield NoteLink(
                path=path, line=line, target=names.resolve(link, path), written=_written(link)
            )


def _written(link: Link) -> str:
    return f"{link.target}#{link.heading}" if link.heading else link.target


def _about(path: ChunkPath, kept: document.Extracted) -> About:
    read = Document(
        text=kept.text, syntax=kept.syntax, metadata=kept.metadata, extractor=kept.extractor
    )
    return about(read, name=path)


def _names(catalog: Catalog) -> Names:
    return Names(_paths(catalog), _aliases(catalog))


def _paths(catalog: Catalog) -> Iterator[ChunkPath]:
    return (row.path for row in catalog.all_files())


def _aliases(catalog: Catalog) -> Iterator[tuple[str, ChunkPath]]:
    """The other names of all notes, each with its note."""
    for path, data in queries.indexed_contents(catalog):
        if b"alias" in data.lower() and document.is_document(data):
            note = decode_path(path)
            kept = document.decode(data)
            if any(key.casefold() in ("alias", "aliases") for key in kept.metadata):
                yield from ((alias, note) for alias in _about(note, kept).aliases)
