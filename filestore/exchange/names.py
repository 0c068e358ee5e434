"""What files are called in a store, or written for a person, whatever a stranger called them. Pure.

One rule: a name from outside never becomes a path before every part of it was judged, and what some
file system could not hold, or tell from another name, is not used.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from filestore.chunks import chunk_file, order_key
from filestore.chunks.layout import Layout
from filestore.config.layout import RECORD_NAME, folded_path
from filestore.core.paths import CHUNKS, ChunkPath, around, inside
from filestore.exchange.base import Chunk, Resource
from filestore.fs.scan import MAX_DEPTH
from filestore.history.batch import is_truth
from filestore.verify.names import DECEIVING, why_no_name, why_unportable

_MOST_BYTES: Final = 200
"""Of a name that is made up of a stranger's: room is left for a tag."""
_MOST_PATH_BYTES: Final = 1_000
_UNSAFE: Final = re.compile(rf'[<>:"|?*\\/{DECEIVING}]+')
_CHANGED: Final = "-"


def is_usable(path: str) -> bool:
    """Whether a path below `chunked/` may be written: each part a name that all systems hold."""
    parts = path.split("/")
    return (
        len(parts) <= MAX_DEPTH
        and len(path.encode("utf-8", "replace")) <= _MOST_PATH_BYTES
        and not any(why_no_name(part) or why_unportable(part) for part in parts)
        and is_truth(CHUNKS.store_path(ChunkPath(path)))
    )


def folder_name(name: str) -> str:
    """A name that a resource may have, as near to a stranger's as can be."""
    text = name.encode("utf-8", "replace").decode()
    if _is_folder(text):
        return text
    made = _shortened(_UNSAFE.sub(_CHANGED, text).strip(" -").lstrip(".").strip(" .-"))
    # What is left may be the name of a device, or the short name of something hidden.
    return made if _is_folder(made) else f"resource-{tag_of(name, 8)}"


def _shortened(name: str) -> str:
    return name.encode()[:_MOST_BYTES].decode("utf-8", "ignore").rstrip(" .-")


def _is_folder(name: str) -> bool:
    return "/" not in name and is_usable(f"{name}/{RECORD_NAME}")


def tag_of(name: str, length: int) -> str:
    """Some base-32 characters that tell a name from others."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode()[:length].lower()


class _Paths(Struct, kw_only=True):
    """The paths in use in one place, as a file system that ignores case sees them."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    """On the way to these: none of them can be a file as well."""

    def are_free(self, path: str) -> bool:
        """Whether nothing stands at a path, nor on the way to it."""
        folded = folded_path(path)
        return folded not in self.folders and self.files.isdisjoint(around(folded))

    def take(self, path: str) -> None:
        """Let nothing else have it."""
        folded, *folders = around(folded_path(path))
        self.files.add(folded)
        self.folders.update(folders)


class Names(Struct):
    """The names of one import: two resources never share one."""

    layout: Layout
    _by_name: dict[str, "ResourceNames"] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    """What resources are called, as a file system that ignores case sees it."""
    _top: _Paths = field(default_factory=_Paths)
    """Of what lies in no folder: all of the flat layout, in a tree the chunks of no resource."""

    def __post_init__(self) -> None:
        if self.layout.has_folders:
            # There they lie beside the folders of the resources.
            self._top.folders = self._used

    def of(self, resource: Resource) -> "ResourceNames":
        """The names of a resource, the same for each of its parts."""
        known = self._by_name.get(resource.name)
        if known is None:
            folder = self._folder(resource.name)
            is_top = self.layout.shares_folder or not folder
            paths = self._top if is_top else _Paths(files={folded_path(f"{folder}/{RECORD_NAME}")})
            known = ResourceNames(layout=self.layout, own=resource.name, name=folder, paths=paths)
            self._by_name[resource.name] = known
        known.see(resource)
        return known

    def _folder(self, name: str) -> str:
        """What a resource is called; "" for chunks of none."""
        if not name:
            return ""
        beside = set[str]() if self.layout.shares_folder else self._top.files
        made = folder_name(name)
        start, tries = _shortened(made), 0
        while (folded := folded_path(made)) in self._used or folded in beside:
            made = f"{start}-{tag_of(name + '~' * tries, 6)}"
            tries += 1
        self._used.add(folded)
        return made


class ResourceNames(Struct, kw_only=True):
    """The names of one resource."""

    layout: Layout
    own: str
    """What it was called."""
    name: str
    """What it is called in the store; "" for chunks of none."""
    paths: _Paths
    _number: int = 0
    _next: int = 0
    """A number from which on no name was made up yet."""
    _source: str = ""

    def see(self, resource: Resource) -> None:
        """Take notice of what a record says."""
        source = resource.record.get("source") if resource.record is not None else None
        if isinstance(source, str):
            self._source = source

    @property
    def record_path(self) -> ChunkPath:
        """Where its record belongs."""
        if self.layout.shares_folder:
            return ChunkPath(f"{chunk_file.record_stem(self._source or self.name)}.json")
        return inside(ChunkPath(self.name), RECORD_NAME)

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Its record as this layout has it."""
        rest = {key: value for key, value in record.items() if key != "resource"}
        if self.layout.has_folders:
            return rest
        first = {key: value for key, value in rest.items() if key == "format"}
        return first | {"resource": self.name} | rest

    def place(self, chunk: Chunk) -> tuple[ChunkPath, dict[str, Any]]:
        """Where a chunk belongs, and its frontmatter there."""
        self._number += 1
        frontmatter = dict(chunk.frontmatter)
        path = self._own_path(chunk.path)
        if path is None:
            path = self._made_up(chunk, frontmatter)
        self.paths.take(path)
        return path, frontmatter

    def _own_path(self, path: str) -> ChunkPath | None:
        """The path that a chunk had, in the folder that its resource has now; None to make one."""
        if not path.endswith(".md"):
            return None
        if self.layout.shares_folder or not self.name:
            moved = path if "/" not in path else ""
        else:
            start = f"{self.own}/"
            moved = f"{self.name}/{path.removeprefix(start)}" if path.startswith(start) else ""
        if not moved or not is_usable(moved) or not self.paths.are_free(moved):
            return None
        return ChunkPath(moved)

    def _made_up(self, chunk: Chunk, frontmatter: dict[str, Any]) -> ChunkPath:
        if self.layout.shares_folder:
            if not isinstance(frontmatter.get("source"), str):
                frontmatter["source"] = self._source or self.own
            if not isinstance(frontmatter.get("order"), str):
                frontmatter["order"] = order_key.number_key(self._number)
            source = frontmatter["source"]
            name = chunk_file.flat_name(source, chunk.text, ())
            taken = self.paths.files
            if name in taken:
                # A text that comes again is told by its place: not by trying name after name.
                name = chunk_file.flat_name(f"{source}\0{self._number}", chunk.text, taken)
            return ChunkPath(name)
        kind = "summary" if frontmatter.get("kind") == "summary" else "chunk"
        number = max(self._number, self._next)
        while True:
            path = inside(ChunkPath(self.name), f"{kind}{number}.md")
            number += 1
            if self.paths.are_free(path):
                self._next = number
                return path


_UNSAFE_ANYWHERE: Final = re.compile(
    r'[\x00-\x1f\x7f-\x9f<>:"|?*\\/\u200b-\u200f\u2028-\u202e\ufeff]+'
)


class FileNames(Struct):
    """The names of one folder."""

    _taken: set[str] = field(default_factory=set)
    _folders: dict[str, str] = field(default_factory=dict)

    def folder(self, name: str) -> str:
        """The name of a folder: the same for the same."""
        if name not in self._folders:
            self._folders[name] = self.take(name, "")
        return self._folders[name]

    def take(self, name: str, ending: str) -> str:
        """A name as near to what it was called as can be, with an ending."""
        text = name.encode("utf-8", "replace").decode()
        # Parts that lead up or stay are dropped.
        parts = [part for part in re.split(r"[/\\]+", text) if part.strip(" .")]
        stem = _UNSAFE_ANYWHERE.sub("-", "-".join(parts)).strip(" -").lstrip(".")
        stem = stem.encode()[:_MOST_BYTES].decode("utf-8", "ignore").rstrip(" .") or "unnamed"
        if why_unportable(stem + ending):  # a device, mostly
            stem = f"_{stem}"
        found, number = stem + ending, 1
        while folded_path(found) in self._taken:
            number += 1
            found = f"{stem} ({number}){ending}"
        self._taken.add(folded_path(found))
        return found
