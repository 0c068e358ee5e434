"""Which file a link of a note means, told by the names of all files, as Obsidian and Markdown do.

Pure. One rule: only names are looked at; whether the file is as it was is for others to ask. A link
may lead elsewhere once a file is added or renamed, so nothing keeps what is told here.
"""

import posixpath
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from filestore.core.paths import ChunkPath, folder_of
from filestore.extract.links import Link, is_external
from filestore.extract.markdown_spans import percent_decoded

_SUFFIX: Final = ".md"
_NOTES: Final = (_SUFFIX, ".markdown", ".mdown", ".mkd", ".qmd", ".rmd", ".mdx")
"""Suffixes that a link by name leaves out."""
_FOLDER_NOTE: Final = "index.md"
"""What stands for its folder, as site generators have it."""


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
            note: The file in which it stands.
        """
        if not link.target:
            return note
        return self.wiki(link.target, note) if link.kind == "wiki" else self.path(link.target, note)

    def path(self, target: str, note: ChunkPath) -> ChunkPath | None:
        """The file that a path means: from the folder of the note, or with `/` from the root.

        Args:
            target: As in `[label](target)`, with its percent signs.
            note: The file in which it stands.
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
        alias; then the note that stands for a folder.

        Args:
            target: As in `[[target]]`, without heading and label.
            note: The file in which it stands.
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
        end = _folded(posixpath.normpath(target))
        named = [one for one in self._named.get(_last_name(end), ()) if _ends_with(one, end)]
        return _nearest(named or self._aliases.get(_folded(target), ()), own)

    def _of_folder(self, folder: str, target: str) -> ChunkPath | None:
        """The note that stands for the folder that a path from another one names."""
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
    return stem if stem and f"{dot}{suffix}" in _NOTES else name


def _is_whole(path: str) -> bool:
    """Whether a path has the suffix of a note, so that no other is left out."""
    return path.casefold().endswith(_NOTES)


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
