"""A person's own links from chunk file to chunk file: found, and updated where the target moved.

Pure. Markdown's inline links and images and its reference definitions, as far as they name a `.md`
file of the tree by a relative path. What came with a source is not ours to judge: its links
were meant from where it lies. One rule: only the destination of a link is ever written, every other
byte stays.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from filestore.chunks import chunk_file
from filestore.chunks.frontmatter import split
from filestore.core.paths import ChunkPath
from filestore.extract.markdown_spans import (
    SCHEME,
    destinations,
    percent_decoded,
    unescaped,
    without_brackets,
)

_SUFFIX: Final = ".md"
_SUFFIXES: Final = re.compile(r"[?#]")
_NOT_BARE: Final = re.compile(r"[\x00-\x20\x7f()<>%#?\\&\ud800-\udfff]")
_NOT_BRACKETED: Final = re.compile(r"[\x00-\x1f\x7f<>%#?\\&\ud800-\udfff]")


def own_links(path: ChunkPath, body: str, generated: str | None) -> tuple[ChunkPath, ...]:
    """The files that a person's own links lead to, below `chunked/`, in order of their paths.

    Args:
        path: Of the file with the links, below `chunked/`.
        body: Its body.
        generated: The body as generated; what links there is the source's. None for a file that
            a person wrote.
    """
    found = set(_targets(path, body))
    if generated is not None and found:
        found.difference_update(_targets(path, generated))
    return tuple(sorted(found))


def relinked(data: bytes, path: ChunkPath, targets: Mapping[ChunkPath, ChunkPath]) -> bytes:
    """A chunk file whose links lead to where their targets went; else byte for byte as it was.

    Args:
        data: The file.
        path: Where it lies below `chunked/`.
        targets: Where each file that moved was, and where it is, both below `chunked/`.

    Raises:
        FilestoreError: It is no chunk file that can be read.
    """
    chunk = chunk_file.parse(data)
    if any(child.path in targets for child in chunk.children):
        moved = [replace(one, path=targets.get(one.path, one.path)) for one in chunk.children]
        data = chunk_file.update(data, children=moved)
    pieces = []
    end = 0
    for start, stop in destinations(chunk.body):
        written = chunk.body[start:stop]
        target = target_of(path, written)
        new = None if target is None else targets.get(target)
        if new is not None:
            # A destination that names another file, in the style of the one that is there.
            bracketed = written.startswith("<")
            bare = without_brackets(written)
            rest = _SUFFIXES.search(bare)
            name = posixpath.relpath(new, posixpath.dirname(path) or ".")
            forbidden = _NOT_BRACKETED if bracketed else _NOT_BARE
            name = forbidden.sub(lambda match: _percent(match[0]), name)
            if bare.startswith("./") or SCHEME.match(name):
                name = name if name.startswith("../") else f"./{name}"
            made = f"{name}{bare[rest.start() :] if rest else ''}"
            made = f"<{made}>" if bracketed else made
            pieces += [chunk.body[end:start], (made if target_of(path, made) == new else written)]
            end = stop
    if not pieces:
        return data
    body = "".join([*pieces, chunk.body[end:]])
    return split(data).head + body.encode()


def target_of(path: ChunkPath, destination: str) -> ChunkPath | None:
    """The file below `chunked/` that a destination names; None for what is none of ours.

    Args:
        path: Of the file with the link, below `chunked/`.
        destination: As written, in angle brackets or bare.
    """
    decoded = _decoded(destination)
    if decoded is None or not decoded.endswith(_SUFFIX):
        return None
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), decoded))
    return None if found.startswith("../") else ChunkPath(found)


def document_of(source: str, destination: str) -> str | None:
    """The file that a link of a document names, as records name documents; None for none.

    Args:
        source: The document with the link, relative to the store root.
        destination: As written, in angle brackets or bare.
    """
    decoded = _decoded(destination)
    if decoded is None:
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), decoded))


def _decoded(destination: str) -> str | None:
    """The relative path that a destination is; None for one with a scheme, or for none."""
    name = unescaped(without_brackets(destination))
    name = _SUFFIXES.split(name, maxsplit=1)[0]
    if not name or name.startswith(("/", "\\")) or SCHEME.match(name):
        return None
    return percent_decoded(name)


def offset_of(path: ChunkPath, body: str, target: ChunkPath) -> int | None:
    """Where the first link to a file stands, in characters of a body; None where there is none.

    Args:
        path: Of the file with the link, below `chunked/`.
        body: Its body.
        target: The file that is meant, below `chunked/`.
    """
    for start, stop in destinations(body):
        if target_of(path, body[start:stop]) == target:
            return start
    return None


def _targets(path: ChunkPath, body: str) -> Iterator[ChunkPath]:
    if "](" not in body and "]:" not in body:
        return
    for start, stop in destinations(body):
        target = target_of(path, body[start:stop])
        if target is not None:
            yield target


def _percent(text: str) -> str:
    # Loading it takes long, and only few links ask for it.
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(text.encode("utf-8", "surrogateescape"), safe="")
