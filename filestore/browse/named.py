"""What a person names: PATH, PATH:LINE, a name, a line of a search's output; and the editor for it.

Two rules: a line of an original is found by the texts of its chunks, never by a record of lines,
because there is none; a text that a search printed is found again, whatever the names of files are.
"""

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import (
    Catalog,
    CatalogDamagedError,
    CatalogMissingError,
    FileRow,
    UnknownResourceError,
)
from filestore.chunks import chunk_file, frontmatter
from filestore.chunks.observation import INDEXED, MAX_CHUNK_BYTES
from filestore.config.layout import Places
from filestore.core.caller import absolute, leads, working_folder
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.paths import TOP, ChunkPath, StorePath, is_below
from filestore.core.spelling import did_you_mean
from filestore.fs import disk
from filestore.fs.path_names import composed, name_among, on_disk, typed_paths
from filestore.fs.programs import find_program
from filestore.sidecar import originals
from filestore.sidecar.door import is_shut, is_shut_text
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from filestore.search.place import Place

_WITH_LINE: Final = re.compile(r"(.+):([0-9]{1,9})", re.S)
_LIST: Final = "'filestore ls RESOURCE' lists the chunks of a resource"
_REMEDY: Final = "'filestore ls' lists what is there, 'filestore ls RESOURCE' its chunks"
_DOCUMENTS_REMEDY: Final = "'filestore ls' lists the documents; 'filestore sync' takes new ones in"


class UnknownPathError(FilestoreError, KeyError):
    """No file of the store has this path."""

    def __str__(self) -> str:
        return self.message


class NoLineError(FilestoreError, LookupError):
    """There is no such line, or no chunk that it belongs to."""


class NamedFiles(Struct, frozen=True, kw_only=True):
    """The indexed files that a person named."""

    rows: tuple[FileRow, ...]
    """In reading order; never none."""
    source: str | None = None
    """The original that was named, as records have it; None where a chunk file was."""
    line: int | None = None
    part: int | None = None
    """The section of a document in place that holds the line."""

    @property
    def paths(self) -> list[ChunkPath]:
        """Where they lie."""
        return [row.path for row in self.rows]


def files_named(places: Places, catalog: Catalog, text: str) -> NamedFiles:
    """The chunk files that a person means.

    Args:
        places: The store's.
        catalog: Inside a snapshot.
        text: A chunk file, relative to the store root, to `chunked/` or to the working folder; or
            an original, as records name it or relative to the working folder. Behind a colon,
            a line, 1-based.

    Raises:
        UnknownPathError: It is neither, or the file is not indexed.
        NoLineError: There is no such line, or it is not known whose it is.
    """
    found = _named(places, catalog, text)
    if found is not None:
        return found
    split = _WITH_LINE.fullmatch(text)
    found = _named(places, catalog, split[1]) if split else None
    if found is None or split is None:
        if places.tree.has_sections:
            raise unknown_path(places, text)
        raise UnknownPathError(f"no chunk file and no original {text!r}", remedy=_REMEDY)
    line = int(split[2])
    if line < 1:
        raise UsageError("lines are counted from 1, found 0", remedy=f"{split[1]}:1")
    if found.source is None:
        return NamedFiles(rows=found.rows, line=line, part=_part_at(catalog, found.rows[0], line))
    row = _row_at(places, catalog, found, line)
    return NamedFiles(rows=(row,), source=found.source, line=line)


def _named(places: Places, catalog: Catalog, text: str) -> NamedFiles | None:
    path = _chunk_path(places, catalog, text)
    if path is not None:
        row = catalog.files([path]).get(path)
        if row is None or row.state != INDEXED:
            state = "not indexed" if row is None else f"left out of the index ({row.state})"
            raise UnknownPathError(
                f"{text} is {state}",
                remedy="filestore sync; 'filestore status' says why a file is left out",
            )
        return NamedFiles(rows=(row,))
    source = _source(places, catalog, text)
    if source is None:
        return None
    rows = rows_of(catalog, source)
    if not rows:
        raise UnknownPathError(
            f"no chunk of {text} is indexed", remedy="filestore sync; then 'filestore status'"
        )
    return NamedFiles(rows=tuple(rows), source=source)


def _chunk_path(places: Places, catalog: Catalog, text: str) -> ChunkPath | None:
    """A file that is there, or that the catalog knows."""
    try:
        path = below_chunked(places, text)
    except UnknownPathError:
        starts = (places.root, places.chunked, working_folder())
        for place in typed_paths(text, starts):
            relative = os.path.relpath(absolute(place), places.chunked)
            gone = ChunkPath(relative)
            if not relative.startswith("..") and gone in catalog.files([gone]):
                return gone
        return None
    is_folder = os.path.isdir(os.path.join(places.chunked, path))
    return None if is_folder or catalog.closes(path) else path


def _source(places: Places, catalog: Catalog, text: str) -> str | None:
    """The document that a person named, as records have it."""
    known = {source for _, _, source, _ in catalog.documents()}
    if (name := name_among(text, known)) in known:
        return name
    if "\0" in text:
        # No path has one, and the system takes none.
        return None
    here = {on_disk(absolute(text)), on_disk(leads(text))}
    lying = {reference: path for reference, path in catalog.originals().items() if path in here}
    for source in sorted(known):
        place = os.path.normpath(os.path.join(places.root, source))
        if place in here or source in lying:
            return source
    return None


def rows_of(catalog: Catalog, source: str) -> list[FileRow]:
    """The indexed chunk files made from a document, in reading order."""
    resources = {resource for _, resource, one, _ in catalog.documents() if one == source}
    rows = {row.id: row for row in catalog.files_from([source])}
    for resource in resources - {""}:
        rows |= {
            row.id: row
            for row in catalog.files_of(resource)
            if row.source is None and row.origin and catalog.source_of(row) == source
        }
    found = [row for row in rows.values() if row.state == INDEXED]
    return sorted(found, key=lambda row: chunk_file.sort_key(row.position, row.path))


def _part_at(catalog: Catalog, row: FileRow, line: int) -> int | None:
    """The section that holds a line, or the last one above it; None for a chunk file."""
    from filestore.chunks import kept

    data = catalog.content(row.id) or b""
    is_document = kept.is_document(data)
    sections = kept.decode(data).sections if is_document else ()
    # None of a document that is no text.
    ends = (section.end_line for section in sections)
    count = max(ends, default=0) if is_document else len(data.splitlines())
    if line > count:
        raise NoLineError(
            f"there is no line {line:,}: as indexed the file has {count:,}",
            remedy="leave the line out, or 'filestore sync' after an edit",
        )
    if not is_document:
        return None
    begun = [n for n, one in enumerate(sections) if one.line <= line]
    return begun[-1] if begun else 0


def _row_at(places: Places, catalog: Catalog, found: NamedFiles, line: int) -> FileRow:
    """The chunk of an original that holds one of its lines."""
    source = found.source or ""
    path = originals.of_places(places).followed(catalog.originals().get(source) or source)
    if path is None:
        raise NoLineError(f"{source} is not looked at", remedy="filestore trust --list")
    try:
        text = disk.read_path(path).decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError as error:
        raise NoLineError(
            f"cannot read {source}: {error.strerror or error}",
            remedy="name one of its chunks: 'filestore ls' leads to them",
        ) from error
    count = text.count("\n") + (not text.endswith("\n"))
    if line > count:
        raise NoLineError(f"{source} has no line {line:,}: it has {count:,}", remedy=f"{source}:1")
    from filestore.chunks import kept

    bodies = []
    for row in found.rows:
        if row.edited:
            bodies.append((catalog.generated(row.origin or "") or b"").decode())
        else:
            data = catalog.content(row.id)
            bodies.append(kept.read(data).body if data is not None else "")
    place = row_at(text, bodies, line)
    if place is None:
        raise NoLineError(
            f"line {line:,} of {source} is in no chunk: the file changed since it was added, or its"
            " text was converted",
            remedy=f"filestore add {source}, or name one of its chunks",
        )
    return found.rows[place]


def row_at(text: str, bodies: Sequence[str], line: int) -> int | None:
    """Which of some texts, in their order in a document, holds a line of it; pure.

    A line between two belongs to the first, where both are found and nothing lies between them.

    Args:
        text: The document.
        bodies: The texts; texts that are not in it are passed over.
        line: 1-based.
    """
    start, end, last, missed = 0, 0, None, False
    for place, body in enumerate(bodies):
        words = body.replace("\r\n", "\n").strip()
        at = text.find(words, end) if words else -1
        if at < 0 and words:
            # A chunk may repeat the end of the one before.
            at = text.find(words, start)
        if at < 0:
            missed = True
            continue
        first = text.count("\n", 0, at) + 1
        if first > line:
            # What was passed over may have been just here.
            return None if missed and last is not None else (place if last is None else last)
        if line <= first + words.count("\n"):
            return place
        start, end, last, missed = at + 1, at + len(words), place, False
    return None if missed else last


# Paths and names that need not be indexed


def below_chunked(places: Places, path: str) -> ChunkPath:
    """A path as given by a person, relative to `chunked/`.

    Raises:
        UnknownPathError: It leads out of it.
    """
    starts = (places.root, places.chunked, working_folder())
    for place, whole_of in product(typed_paths(path, starts), (absolute, leads)):
        whole = whole_of(place)
        if whole == places.chunked or not is_below(whole, places.chunked):
            continue
        try:
            os.lstat(whole)
        except PermissionError:
            pass  # something may be there
        except (OSError, ValueError):
            continue
        found = ChunkPath(os.path.relpath(whole, places.chunked))
        if not is_shut(places, found):
            return found
    raise unknown_path(places, path)


def require_open(places: Places, catalog: Catalog, path: ChunkPath, name: str) -> None:
    """Pass over a file that is closed to who asks, as if it were not there.

    Raises:
        UnknownPathError: It is.
    """
    if catalog.closes(path):
        raise unknown_path(places, name)


def require_open_text(places: Places, chunk: chunk_file.Chunk, path: ChunkPath, name: str) -> None:
    """The same of what a file says now, which the catalog may not know yet.

    Raises:
        UnknownPathError: It is closed.
    """
    if is_shut_text(places, chunk, path):
        raise unknown_path(places, name)


def chunk_paths(
    places: Places, paths: Sequence[str], *, missing_ok: bool = False
) -> list[ChunkPath]:
    """Paths as given by a person, relative to `chunked/`, each once.

    Raises:
        UnknownPathError: One leads out of it, or is not there where it has to be.
    """
    found: dict[ChunkPath, None] = {}
    for path in paths:
        try:
            found[below_chunked(places, path)] = None
        except UnknownPathError:
            if not missing_ok:
                raise
    return list(found)


def unknown_path(places: Places, path: str) -> UnknownPathError:
    if places.tree.has_sections:
        return UnknownPathError(f"no document {path!r}", remedy=_DOCUMENTS_REMEDY)
    return UnknownPathError(f"no chunk file {path!r}", remedy=_LIST)


def resource_named(catalog: Catalog, name: str, places: Places) -> str:
    """The resource of a name: its own, its name without suffix, or its source.

    Raises:
        UnknownResourceError: None or several fit.
    """
    known = catalog.resources()
    names = [resource for resource, _, _ in known]
    wanted = name_among(os.path.normpath(name) if name else name, names)
    if wanted in names:
        return wanted
    there = {on_disk(absolute(wanted)), on_disk(leads(wanted))}
    fitting = sorted(
        resource
        for resource, source, _ in known
        if resource
        and (
            composed(os.path.splitext(resource)[0]) == composed(wanted)
            or (source and composed(source) == composed(wanted))
            or (source and os.path.normpath(os.path.join(places.root, source)) in there)
            or os.path.join(places.chunked, resource) in there
        )
    )
    if len(fitting) == 1:
        return fitting[0]
    detail = f"; it could be {', '.join(fitting)}" if fitting else did_you_mean(wanted, names)
    raise UnknownResourceError(
        f"no resource {name!r}{detail}", remedy="'filestore ls' lists what is there"
    )


def folder_named(places: Places, name: str) -> ChunkPath | None:
    """The folder that a person means, relative to the root or to the working folder, if any."""
    # What begins with a dot is relative to the working folder.
    starts = (working_folder(),) if name.startswith(".") else (places.root, working_folder())
    for place in typed_paths(name, starts):
        path = leads(place)
        relative = os.path.relpath(path, places.root)
        if os.path.isdir(path) and relative.partition("/")[0] != "..":
            folder = TOP if relative == "." else ChunkPath(relative)
            return None if folder and is_shut(places, folder) else folder
    return None


# What a search printed, and the editor that opens it


_PLACE: Final = re.compile(r":(?:(\d{1,9})|p(\d{1,9}))(?:-\d+)?(?=:|\s|$)")


class NoSuchDocumentError(FilestoreError, FileNotFoundError):
    """Nothing that a search could have printed is there."""


class Spot(Struct, frozen=True, kw_only=True):
    """A file, and where in it."""

    path: str
    """Absolute."""
    line: int | None = None
    page: int | None = None


def spot_of(hit: str, places: Places) -> Spot:
    """The file that a person means, and where in it: ``PATH``, ``PATH:LINE``, or a line of output.

    Args:
        hit: Relative to the working folder, to the store root or to `chunked/`.
        places: Where the store lies.

    Raises:
        NoSuchDocumentError: There is none.
    """
    shown = hit.removesuffix("\n")
    # The shortest path with a place comes last of all.
    readings: list[tuple[str, int | None, int | None]] = [(shown, None, None)]
    for match in _PLACE.finditer(shown):
        line, page = (int(number) if number else None for number in match.groups())
        readings.append((shown[: match.start()], line, page))
    for name, line, page in readings:
        for place in typed_paths(name, (working_folder(), places.root, places.chunked)):
            path = absolute(place)
            if name and "\0" not in name and os.path.isfile(path):
                return Spot(path=path, line=line, page=page)
    raise NoSuchDocumentError(
        f"no such file: {hit!r}",
        remedy="name one as 'filestore search' prints it: PATH or PATH:LINE",
    )


def located(parts: Parts, spot: Spot, *, chunk: bool) -> "Place":
    """The document that a file leads to: of a chunk file the one it was made from.

    Args:
        parts: Of the store.
        spot: The file, and the line in it.
        chunk: Whether a chunk file is opened itself.
    """
    from filestore.search.place import Place

    places = parts.places
    root, real = os.path.realpath(places.root), os.path.realpath(spot.path)
    name = os.path.relpath(spot.path, root)
    own = Place(document=StorePath(name), line=spot.line, page=spot.page)
    path = ChunkPath(os.path.relpath(real, os.path.realpath(places.chunked)))
    if chunk or path.startswith("../") or not path.endswith(".md"):
        return own
    with suppress(CatalogMissingError, CatalogDamagedError), parts.reading() as catalog:
        return _document_of(real, path, spot.line, catalog, parts) or own
    return own


def _document_of(
    real: str, path: ChunkPath, line: int | None, catalog: Catalog, parts_of: Parts
) -> "Place | None":
    """Where the line of a chunk file is in its document; None where it is in none."""
    from filestore.extract.markdown_read import Markdown
    from filestore.search import passage
    from filestore.search.place import Chunk, Locator

    row = catalog.files([path]).get(path)
    source = None if row is None else catalog.source_of(row)
    if row is None or source is None:
        return None
    data = disk.read_path(real, limit=MAX_CHUNK_BYTES)
    parts = frontmatter.split(data)
    body = parts.body.decode("utf-8", "replace")
    headings, pages = row.headings_and_pages()
    chunk = Chunk(
        path=parts_of.places.tree.store_path(path),
        body=body,
        body_line=parts.head.count(b"\n") + 1,
        source=source,
        resource=row.resource,
        headings=headings,
        pages=pages,
        edited=row.edited,
    )
    lines = body.split("\n")
    at = 0 if line is None else line - chunk.body_line
    if line is None or not 0 <= at < len(lines) or not lines[at].strip():
        first = passage.opening(Markdown(body))
        span = first.start, first.end
    else:
        text = lines[at].strip()
        start = sum(len(one) + 1 for one in lines[:at]) + lines[at].index(text)
        span = start, start + len(text)
    locator = Locator(parts_of.reachable, catalog, [source])
    found = locator.place(chunk, span)
    return None if found.document == chunk.path else found


VARIABLES: Final = ("VISUAL", "EDITOR")
OTHERWISE: Final = ("vi", "nano")
"""Where none is named, the first of these that is there."""
_WAIT: Final = {
    **dict.fromkeys(("code", "code-insiders", "codium", "cursor", "zed"), ("--wait", "-w")),
    "subl": ("--wait", "-w"),
    "gvim": ("-f", "--nofork"),
    "mate": ("--wait", "-w"),
    "kate": ("--block", "-b"),
}
"""Editors that come back before the person is done, and what makes them wait."""
_PLUS: Final = (
    "vi vim nvim view gvim mvim vimx nano pico emacs emacsclient micro kak joe jed mg gedit"
)
_GOTO: Final = "code code-insiders codium vscodium cursor windsurf"
_AT_LINE: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_PLUS.split(), ("+{line}", "{path}")),
    **dict.fromkeys(_GOTO.split(), ("--goto", "{path}:{line}")),
    **dict.fromkeys(("subl", "hx", "helix", "zed", "zeditor"), ("{path}:{line}",)),
    **dict.fromkeys(("kate", "mate"), ("-l", "{line}", "{path}")),
}
"""The option of each editor for the line to begin at."""


class EditorCommand(Struct, frozen=True, kw_only=True):
    """An editor, or why there is none."""

    words: tuple[str, ...] = ()
    """What the path of the file is put behind."""
    problem: str = ""
    """Why there is none, and what to do."""
    warning: str = ""
    """Why it may not do what is expected, and what to do."""


def editor_command(
    environment: Mapping[str, str], which: Callable[[str], str | None] = find_program
) -> EditorCommand:
    """The editor of ``$VISUAL``, of ``$EDITOR``, or one that is there.

    Args:
        environment: The variables.
        which: Finds a program.
    """
    for variable in VARIABLES:
        value = environment.get(variable, "")
        if value.strip():
            break
    else:
        for name in OTHERWISE:
            if which(name):
                return EditorCommand(words=(name,))
        return EditorCommand(problem="no editor found: set $EDITOR, or install vi or nano")
    try:
        words = tuple(shlex.split(value))
    except ValueError as error:
        return EditorCommand(problem=f"${variable} cannot be read, {error}: {value}")
    if not words:
        return EditorCommand(problem=f"${variable} names no program: {value}")
    if not which(words[0]):
        return EditorCommand(
            problem=f"${variable} names {words[0]}, which is not installed: change it"
        )
    name = os.path.basename(words[0])
    waiting = _WAIT.get(name, ())
    if not waiting or any(word in waiting for word in words[1:]):
        return EditorCommand(words=words)
    warning = f'{name} does not wait: set {variable}="{shlex.join(words)} {waiting[0]}"'
    return EditorCommand(words=words, warning=warning)


def opened_at(words: Sequence[str], path: str, line: int | None) -> tuple[str, ...] | None:
    """The command that opens a file at a line; None where it is not known how to say the line.

    Args:
        words: Of an editor, as `editor_command` gave them.
        path: Absolute, so that no editor takes it for an option.
        line: From 1; None for none.
    """
    if line is None:
        return *words, path
    name = os.path.basename(words[0])
    # Distributions have several builds of one: vim.basic, emacs-nox, nvim-0.10.
    known = _AT_LINE.get(name) or _AT_LINE.get(re.split(r"[-.\d]", name)[0])
    if known is None:
        return None
    return *words, *(word.replace("{line}", str(line)).replace("{path}", path) for word in known)
