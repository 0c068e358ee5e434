"""The links of notes that lie in place, each led to the file that its name means.

The catalog keeps what each link calls its target; which file that means changes with the names of
all files, and is told here. One rule: the texts are those that were indexed; whether a file is
still so is for others to ask.
"""

from collections.abc import Iterator

from msgspec import Struct

from filestore.catalog import Catalog, FileRow, decode_path, in_batches, queries
from filestore.chunks import kept
from filestore.chunks.link_targets import Names, called, link_key, path_keys, written_path
from filestore.core.paths import ChunkPath
from filestore.extract import for_name
from filestore.extract.links import Link


class NoteLink(Struct, frozen=True, kw_only=True):
    """One link of a note."""

    path: ChunkPath
    """The note."""
    line: int | None
    """In its file, 1-based; None in its metadata, and where its text has no lines of the file."""
    target: ChunkPath | None
    """The file that is meant; None where there is none."""
    written: str
    """The target as the note has it."""
    may_be: ChunkPath | None
    """The path that is written, where no indexed file is meant and that could be one's."""


def of_note(catalog: Catalog, row: FileRow, line: int | None) -> list[NoteLink]:
    """The links of one note, in order; of a line, those that stand in it.

    What leads nowhere and would be no document, such as a picture, is left out.
    """
    links = _links(catalog.content(row.id) or b"")
    names = _names(catalog, frozenset(map(link_key, links)))
    return [
        one
        for one in _resolved(row.path, links, names)
        if line in (None, one.line) and (one.target is not None or one.may_be is not None)
    ]


def to_note(catalog: Catalog, path: ChunkPath) -> list[NoteLink]:
    """The links of other notes to a file, by path."""
    keys = path_keys(path, [alias for one, alias in _aliases(catalog) if one == path])
    names = _names(catalog, keys)
    found = []
    for batch in in_batches(sorted(keys)):
        for linking, data in queries.contents_linking(catalog, batch):
            note = decode_path(linking)
            if note != path:
                links = [link for link in _links(data) if link_key(link) in batch]
                found += [one for one in _resolved(note, links, names) if one.target == path]
    return sorted(found, key=lambda one: (one.path, one.line or 0))


def _links(data: bytes) -> list[Link]:
    """The links of a document to other files."""
    if not kept.is_document(data):
        return []
    return [link for link in kept.decode(data).links if link.target]


def _resolved(note: ChunkPath, links: list[Link], names: Names) -> Iterator[NoteLink]:
    for link in links:
        target = names.resolve(link, note)
        yield NoteLink(
            path=note,
            line=link.line or None,
            target=target,
            may_be=None
            if target is not None or not for_name(link.target)
            else written_path(link, note),
            written=f"{link.target}#{link.heading}" if link.heading else link.target,
        )


def _names(catalog: Catalog, keys: frozenset[str]) -> Names:
    """The names of the files that links of some keys may lead to."""
    # Few of very many names are folded: one that is plain begins with the key it is called by.
    starts = tuple(key.encode() for key in keys if key.isascii())
    paths = (
        decode_path(path)
        for path in queries.all_paths(catalog)
        if (name := path[path.rfind(b"/") + 1 :].lower()).startswith((*starts, b"index.md"))
        or not name.isascii()
    )
    aliases = ((alias, path) for path, alias in _aliases(catalog))
    return Names(called(paths, keys), aliases)


def _aliases(catalog: Catalog) -> list[tuple[ChunkPath, str]]:
    """Each note that has another name, with that."""
    return queries.files_with_key(catalog, "aliases")
