"""What resources and chunk files are called in a store, whatever a stranger called them. Pure.

One rule: a name from outside never becomes a path before every part of it was judged, and what some
file system could not hold, or tell from another name, is not used.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from filestore.chunks import chunk_file, order_key
from filestore.config.layout import RECORD_NAME, folded_path
from filestore.config.settings import LayoutName
from filestore.core.errors import FilestoreError
from filestore.core.paths import CHUNKS, ChunkPath, inside
from filestore.exchange.base import Chunk, Resource
from filestore.fs.scan import MAX_DEPTH
from filestore.history.batch import is_truth
from filestore.ingest.sources import check_name
from filestore.verify.names import why_unportable

_MOST_BYTES: Final = 200
"""Of a name that is made up of a stranger's: room is left for a tag."""
_MOST_PATH_BYTES: Final = 1_000
_TURNING: Final = "\u202a-\u202e\u2066-\u2069"
"""Signs that turn the direction of writing: a name with them looks like another."""
_TURNS: Final = re.compile(f"[{_TURNING}]")
_UNSAFE: Final = re.compile(rf'[\x00-\x1f\x7f-\x9f<>:"|?*\\/\u2028\u2029\ufeff{_TURNING}]+')
_CHANGED: Final = "-"


def is_usable(path: str) -> bool:
    """Whether a path below `chunked/` may be written: each part a name that all systems hold."""
    parts = path.split("/")
    return (
        len(parts) <= MAX_DEPTH
        and len(path.encode("utf-8", "replace")) <= _MOST_PATH_BYTES
        and not _TURNS.search(path)
        and not any(part.startswith(".") or why_unportable(part) for part in parts)
        and is_truth(CHUNKS.store_path(ChunkPath(path)))
    )


def folder_name(name: str) -> str:
    """A name that a resource may have, as near to a stranger's as can be."""
    text = name.encode("utf-8", "replace").decode()
    if _is_folder(text):
        return text
    made = _UNSAFE.sub(_CHANGED, text).strip(" -").lstrip(".").strip(" .-")
    made = made.encode()[:_MOST_BYTES].decode("utf-8", "ignore").rstrip(" .-")
    # What is left may be the name of a device, or the short name of something hidden.
    return made if _is_folder(made) else f"resource-{tag_of(name, 8)}"


def _is_folder(name: str) -> bool:
    try:
        check_name(name)
    except FilestoreError:
        return False
    return is_usable(f"{name}/{RECORD_NAME}")


def tag_of(name: str, length: int) -> str:
    """Some base-32 characters that tell a name from others."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode()[:length].lower()


@dataclass(slots=True)
class Names:
    """The names of one import: two resources never share one."""

    layout: LayoutName
    _by_name: dict[str, "ResourceNames"] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _flat: set[str] = field(default_factory=set)
    """Names of chunk files in the flat layout, where all lie in one folder."""

    def of(self, resource: Resource) -> "ResourceNames":
        """The names of a resource, the same for each of its parts."""
        known = self._by_name.get(resource.name)
        if known is None:
            folder = folder_name(resource.name) if resource.name else ""
            if folder and folded_path(folder) in self._taken:
                folder = f"{folder}-{tag_of(resource.name, 6)}"
            self._taken.add(folded_path(folder))
            taken = self._flat if self.layout == "flat" else set[str]()
            known = ResourceNames(layout=self.layout, own=resource.name, name=folder, taken=taken)
            self._by_name[resource.name] = known
        known.see(resource)
        return known


@dataclass(slots=True, kw_only=True)
class ResourceNames:
    """The names of one resource."""

    layout: LayoutName
    own: str
    """What it was called."""
    name: str
    """What it is called in the store; "" for chunks of none."""
    taken: set[str]
    """What a file system that ignores case makes of the paths in use."""
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
        if self.layout == "flat":
            return ChunkPath(f"{chunk_file.record_stem(self._source or self.name)}.json")
        return inside(ChunkPath(self.name), RECORD_NAME)

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Its record as this layout has it."""
        rest = {key: value for key, value in record.items() if key != "resource"}
        if self.layout == "tree":
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
        self.taken.add(folded_path(path))
        return path, frontmatter

    def _own_path(self, path: str) -> ChunkPath | None:
        """The path that a chunk had, in the folder that its resource has now; None to make one."""
        if not path.endswith(".md"):
            return None
        if self.layout == "flat" or not self.name:
            moved = path if "/" not in path else ""
        else:
            start = f"{self.own}/"
            moved = f"{self.name}/{path.removeprefix(start)}" if path.startswith(start) else ""
        if not moved or not is_usable(moved) or folded_path(moved) in self.taken:
            return None
        return ChunkPath(moved)

    def _made_up(self, chunk: Chunk, frontmatter: dict[str, Any]) -> ChunkPath:
        if self.layout == "flat":
            if not isinstance(frontmatter.get("source"), str):
                frontmatter["source"] = self._source or self.own
            if not isinstance(frontmatter.get("order"), str):
                frontmatter["order"] = order_key.number_key(self._number)
            source = frontmatter["source"]
            name = chunk_file.flat_name(source, chunk.text, ())
            if name in self.taken:
                # A text that comes again is told by its place: not by trying name after name.
                name = chunk_file.flat_name(f"{source}\0{self._number}", chunk.text, self.taken)
            return ChunkPath(name)
        kind = "summary" if frontmatter.get("kind") == "summary" else "chunk"
        number = max(self._number, self._next)
        while True:
            path = inside(ChunkPath(self.name), f"{kind}{number}.md")
            number += 1
            if folded_path(path) not in self.taken:
                self._next = number
                return path
