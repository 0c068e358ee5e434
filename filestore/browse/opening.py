"""From what a search printed to the document, and the line in it.

One rule: a text that a search printed is found again, whatever the names of files are.
"""

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from filestore.catalog import Catalog, CatalogDamagedError, CatalogMissingError
from filestore.chunks import frontmatter
from filestore.chunks.observation import MAX_CHUNK_BYTES
from filestore.config.layout import Places
from filestore.core.caller import absolute, working_folder
from filestore.core.errors import FilestoreError
from filestore.core.paths import ChunkPath, StorePath
from filestore.extract.markdown_read import Markdown
from filestore.fs import disk
from filestore.fs.path_names import typed_paths
from filestore.fs.programs import find_program
from filestore.search import passage
from filestore.search.place import Chunk, Locator, Place, Span
from filestore.sidecar.session import Parts

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
    for name, line, page in _readings(hit.removesuffix("\n")):
        for place in typed_paths(name, (working_folder(), places.root, places.chunked)):
            path = absolute(place)
            if name and "\0" not in name and os.path.isfile(path):
                return Spot(path=path, line=line, page=page)
    raise NoSuchDocumentError(
        f"no such file: {hit!r}",
        remedy="name one as 'filestore search' prints it: PATH or PATH:LINE",
    )


def _readings(hit: str) -> Iterator[tuple[str, int | None, int | None]]:
    """What may be path, line and page in a text; the shortest path with a place last of all."""
    yield hit, None, None
    for match in _PLACE.finditer(hit):
        line, page = match[1], match[2]
        yield hit[: match.start()], int(line) if line else None, int(page) if page else None


def located(parts: Parts, spot: Spot, *, chunk: bool) -> Place:
    """The document that a file leads to: of a chunk file the one it was made from.

    Args:
        parts: Of the store.
        spot: The file, and the line in it.
        chunk: Whether a chunk file is opened itself.
    """
    places = parts.places
    root, real = os.path.realpath(places.root), os.path.realpath(spot.path)
    name = os.path.relpath(spot.path, root)
    own = Place(document=StorePath(name), line=spot.line, page=spot.page)
    path = ChunkPath(os.path.relpath(real, os.path.realpath(places.chunked)))
    if chunk or path.startswith("../") or not path.endswith(".md"):
        return own
    with contextlib.suppress(CatalogMissingError, CatalogDamagedError), parts.reading() as catalog:
        return _document_of(real, path, spot.line, catalog, parts) or own
    return own


def _document_of(
    real: str, path: ChunkPath, line: int | None, catalog: Catalog, parts_of: Parts
) -> Place | None:
    """Where the line of a chunk file is in its document; None where it does not."""
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
    locator = Locator(parts_of.reachable, catalog, [source])
    found = locator.place(chunk, _passage_at(chunk, line))
    return None if found.document == chunk.path else found


def _passage_at(chunk: Chunk, line: int | None) -> Span:
    """The line of a chunk file as a passage; its beginning for none, or one above the body."""
    lines = chunk.body.split("\n")
    at = 0 if line is None else line - chunk.body_line
    if line is None or not 0 <= at < len(lines) or not lines[at].strip():
        found = passage.opening(Markdown(chunk.body))
        return found.start, found.end
    start = sum(len(one) + 1 for one in lines[:at])
    text = lines[at].strip()
    start += lines[at].index(text)
    return start, start + len(text)


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
        if environment.get(variable, "").strip():
            return _named(variable, environment[variable], which)
    for name in OTHERWISE:
        if which(name):
            return EditorCommand(words=(name,))
    return EditorCommand(problem="no editor found: set $EDITOR, or install vi or nano")


def _named(variable: str, value: str, which: Callable[[str], str | None]) -> EditorCommand:
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
