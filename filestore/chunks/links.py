"""Links between files of a tree: which file one leads to, and a person's own as files move.

Pure. Own links are inline links and images and reference definitions, as far as they
name a `.md` file of the tree by a relative path; what came with a source is not ours to judge.
Which file a link means depends on the names of all files, so nothing keeps that. One rule: only
the destination of a link is ever written, every other byte stays.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from filestore.chunks import chunk_file
from filestore.chunks.frontmatter import split
from filestore.core.paths import NOTES, ChunkPath, folder_of
from filestore.extract.links import Link, is_external
from filestore.extract.markdown_read import (
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


def relinked(
    data: bytes,
    path: ChunkPath,
    targets: Mapping[ChunkPath, ChunkPath],
    now: ChunkPath | None = None,
) -> bytes:
    """A chunk file whose links lead to where their targets went; else byte for byte as it was.

    Args:
        data: The file.
        path: Where it lies below `chunked/`.
        targets: Where each file that moved was, and where it is, both below `chunked/`.
        now: Where it is to lie, if it is moved itself.

    Raises:
        FilestoreError: It is no chunk file that can be read.
    """
    chunk = chunk_file.parse(data)
    if any(child.path in targets for child in chunk.children):
        moved = [replace(one, path=targets.get(one.path, one.path)) for one in chunk.children]
        data = chunk_file.update(data, children=moved)
    pieces = []
    end, there = 0, path if now is None else now
    for start, stop in destinations(chunk.body):
        written = chunk.body[start:stop]
        target = target_of(path, written)
        new = None if target is None else targets.get(target)
        if new is not None and target_of(there, written) != new:
            name = posixpath.relpath(new, posixpath.dirname(there) or ".")
            made = destination(written, name)
            pieces += [chunk.body[end:start], (made if target_of(there, made) == new else written)]
            end = stop
    if not pieces:
        return data
    body = "".join([*pieces, chunk.body[end:]])
    return split(data).head + body.encode()


def destination(written: str, name: str) -> str:
    """A destination that names another file, in the style of the one that is there.

    Args:
        written: The one that is there, in angle brackets or bare; what follows its path stays.
        name: A relative path.
    """
    bracketed = written.startswith("<")
    bare = without_brackets(written)
    rest = _SUFFIXES.search(bare)
    forbidden = _NOT_BRACKETED if bracketed else _NOT_BARE
    if forbidden.search(name):
        # Loading it takes long, and only few links ask for it.
        from urllib.parse import quote_from_bytes

        name = forbidden.sub(
            lambda sign: quote_from_bytes(sign[0].encode("utf-8", "surrogateescape"), ""), name
        )
    if bare.startswith("./") or SCHEME.match(name):
        name = name if name.startswith("../") else f"./{name}"
    made = f"{name}{bare[rest.start() :] if rest else ''}"
    return f"<{made}>" if bracketed else made


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
    """Where the first link to a file is, in characters of a body; None where there is none.

    Args:
        path: Of the file with the link, below `chunked/`.
        body: Its body.
        target: The file that it leads to, below `chunked/`.
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


_FOLDER_NOTE: Final = "index.md"
"""What is taken for its folder, as site generators have it."""


class Names:
    """The names of all files of a store, by which links are resolved."""

    __slots__ = ("_aliases", "_named", "_paths")

    def __init__(
        self, paths: Iterable[ChunkPath], aliases: Iterable[tuple[str, ChunkPath]] = ()
    ) -> None:
        """Takes the files in.

        Args:
            paths: All files, below the folder of the tree.
            aliases: Other names of files, each with its file.
        """
        self._paths: dict[str, list[ChunkPath]] = {}
        self._named: dict[str, list[ChunkPath]] = {}
        self._aliases: dict[str, list[ChunkPath]] = {}
        for path in paths:
            folded = _folded(path)
            self._paths.setdefault(folded, []).append(path)
            self._named.setdefault(_last_name(folded), []).append(path)
        for alias, path in aliases:
            self._aliases.setdefault(_folded(alias.strip()), []).append(path)

    def resolve(self, link: Link, note: ChunkPath) -> ChunkPath | None:
        """The file that a link leads to; None where there is none of this name.

        Args:
            link: As it is written.
            note: The file in which it is.
        """
        if not link.target:
            return note
        return self.wiki(link.target, note) if link.kind == "wiki" else self.path(link.target, note)

    def path(self, target: str, note: ChunkPath) -> ChunkPath | None:
        """The file that a path means: from the folder of the note, or with `/` from the root.

        Args:
            target: As in `[label](target)`, with its percent signs.
            note: The file in which it is.
        """
        decoded = None if is_external(target) else percent_decoded(target)
        if decoded is None:
            return None
        path = _joined(folder_of(note), decoded)
        found = None if path is None else self._written_so(path)
        if found is None and path is not None and not _is_whole(path):
            found = self._written_so(path + _SUFFIX)
        return found or self._of_folder(folder_of(note), decoded)

    def wiki(self, target: str, note: ChunkPath) -> ChunkPath | None:
        """The file that a name means, in whatever case.

        A path from the root comes first, then one from the note; then a name, or the end of a
        path, in any folder: of several the nearest, then the one with the shortest path; then an
        alias; then the note of a folder.

        Args:
            target: As in `[[target]]`, without heading and label.
            note: The file in which it is.
        """
        found = self._named_so(target, note)
        folders = (folder_of(note),) if target.startswith(("./", "../")) else ("", folder_of(note))
        return found or next(filter(None, (self._of_folder(one, target) for one in folders)), None)

    def _named_so(self, target: str, note: ChunkPath) -> ChunkPath | None:
        """The file that a name means by itself."""
        own = folder_of(note)
        is_relative = target.startswith(("./", "../"))
        for folder in (own,) if is_relative else ("", own):
            path = _joined(folder, target)
            found = None if path is None else self._in_any_case(path, note)
            if found is not None or path is None:
                return found
        if is_relative or target.startswith("/"):
            return None
        return _nearest(self.ending_with(target) or self._aliases.get(_folded(target), ()), own)

    def ending_with(self, target: str) -> list[ChunkPath]:
        """The files whose path ends with a name or a path, in whatever case."""
        end = _folded(posixpath.normpath(target))
        return [one for one in self._named.get(_last_name(end), ()) if _ends_with(one, end)]

    def _of_folder(self, folder: str, target: str) -> ChunkPath | None:
        """The note of the folder that a path from another one names."""
        path = _joined(folder, f"{target}/{_FOLDER_NOTE}")
        return None if path is None else self._written_so(path)

    def _written_so(self, path: str) -> ChunkPath | None:
        """The file at a path; how its letters are composed is all that may differ."""
        same = self._paths.get(_folded(path), ())
        composed = unicodedata.normalize("NFC", path)
        alike = [one for one in same if unicodedata.normalize("NFC", one) == composed]
        return ChunkPath(path) if path in alike else min(alike, default=None)

    def _in_any_case(self, path: str, note: ChunkPath) -> ChunkPath | None:
        """The note at a path without its suffix, or the file at it."""
        for written in (path,) if _is_whole(path) else (path + _SUFFIX, path):
            exact = self._written_so(written)
            found = exact or _nearest(self._paths.get(_folded(written), ()), folder_of(note))
            if found is not None:
                return found
        return None


def link_key(link: Link) -> str:
    """A text that is among the `path_keys` of the file that a link leads to; empty for its own.

    So the links to one file are found without resolving those to all others.
    """
    target = link.target if link.kind == "wiki" else percent_decoded(link.target) or ""
    return _last_name(_folded(target.rstrip("/")))


def path_keys(path: ChunkPath, aliases: Iterable[str] = ()) -> frozenset[str]:
    """What the `link_key` of every link to a file is one of.

    Args:
        path: Of the file.
        aliases: Its other names.
    """
    names = [path, *map(str.strip, aliases)]
    if path.rpartition("/")[2] == _FOLDER_NOTE:
        names += [folder_of(path), "", ".", ".."]
    return frozenset(_last_name(_folded(name)) for name in names)


def called(paths: Iterable[ChunkPath], keys: frozenset[str]) -> Iterator[ChunkPath]:
    """Those of some files to whose names links of some keys may lead; their aliases aside."""
    return (path for path in paths if not keys.isdisjoint(path_keys(path)))


def _folded(name: str) -> str:
    """A name without what differs between two writings of it: case, composed letters."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _last_name(folded: str) -> str:
    """The name of a file by which a link may call it: without folder, and suffix if a note."""
    name = folded.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return stem if stem and f"{dot}{suffix}" in NOTES else name


def _is_whole(path: str) -> bool:
    """Whether a path has the suffix of a note, so that no other is left out."""
    return path.casefold().endswith(NOTES)


def _joined(folder: str, target: str) -> str | None:
    """A path from a folder, or with `/` from the root; None for what leads out, or to a folder."""
    path = posixpath.join("" if target.startswith("/") else folder, target.lstrip("/"))
    if target.rpartition("/")[2] in ("", ".", "..") or "\0" in target:
        return None
    path = posixpath.normpath(path)
    return None if path.startswith("../") else path


def written_path(link: Link, note: ChunkPath) -> ChunkPath:
    """The path that a link has as it is written, whether or not a file is there; "" outside."""
    target = link.target if link.kind == "wiki" else percent_decoded(link.target) or ""
    return ChunkPath(_joined(folder_of(note), target) or "")


def _ends_with(path: ChunkPath, end: str) -> bool:
    """Whether a path is, or ends with, the folded path that a link has, with its suffix or not."""
    folded = _folded(path)
    if _last_name(end) == end.rpartition("/")[2]:
        folded = folded[: len(folded) - len(folded.rpartition("/")[2])] + _last_name(folded)
    return folded == end or folded.endswith(f"/{end}")


def _nearest(paths: Iterable[ChunkPath], folder: str) -> ChunkPath | None:
    """The path with the fewest steps from a folder; of several the shortest, then by name."""
    return min(
        paths, key=lambda path: (_steps(folder, folder_of(path)), len(path), path), default=None
    )


def _steps(start: str, end: str) -> int:
    """How many folders one leaves and enters between two."""
    here, there = start.split("/") if start else [], end.split("/") if end else []
    common = 0
    for one, other in zip(here, there, strict=False):
        if one != other:
            break
        common += 1
    return len(here) + len(there) - 2 * common
