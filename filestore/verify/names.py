"""Names that some file systems cannot hold or tell apart, among those in the catalog.

Opens and stats nothing. One rule: a tree of plain names costs one search a folder, whatever its
size; single names are looked at only where something in the folder is not plain.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from filestore.config.layout import folded_path
from filestore.core.findings import Finding
from filestore.core.paths import ChunkPath, Tree, folder_of, inside
from filestore.fs.stats import PackedFolder, unpack_names

MAX_UNITS: Final = 255
"""Of a name: bytes of UTF-8 on most file systems, UTF-16 units, which are never more, on others."""

_FOLDERS: Final = 300
_FORBIDDEN: Final = re.compile(r'[<>:"|?*\\]')
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?")
DECEIVING: Final = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f"
)
"""Controls, ends of lines, and signs that turn or hide their neighbours."""
_PLAIN: Final = bytes(set(range(32, 127)) - set(b'<>:"|?*\\')) + b"\0"
_LETTERS: Final = bytes(set(b"conprnauxnulcomlpt" + b"CONPRNAUXNULCOMLPT"))
_ALIKE: Final = bytes.maketrans(_LETTERS + b" ", b"x" * len(_LETTERS) + b".")
_ALIKE_DEVICE: Final = re.compile(rb"\0xxx(?:[0-9]?[.\0]|[^\0]*\$)")
"""Every letter of a device's name becomes x, so that one search finds what may be one; `notes.md`,
which only begins with such letters, is none."""
_DEVICE: Final = re.compile(rb"\0(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9])[.\0]", re.I)
"""Slower than the search before it, and exact: `rom 1.md` is none."""


def why_no_name(name: str) -> str:
    """Why nothing may be given a name, "" for one that may be; pure.

    Args:
        name: Of a folder or a file, as a person or a program thought of it.
    """
    return why_impossible(name) or why_misleading(name)


def why_misleading(name: str) -> str:
    """Why a name is not seen as it is, "" for one that is; pure."""
    found = re.search(f"[{DECEIVING}]", name)
    return f"it holds U+{ord(found[0]):04X}, which hides or misleads" if found else ""


def why_impossible(name: str) -> str:
    """Why nothing in a store can have a name, "" for one that a file may have; pure."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        return "it is not one name"
    if name.startswith("."):
        return "a name that starts with a dot is hidden from the walk"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "it is not valid UTF-8"
    return f"a name has at most {MAX_UNITS} bytes" if size > MAX_UNITS else ""


def why_unportable(name: str) -> str:
    """Why some file system cannot hold a name, "" for one that all can; pure.

    Args:
        name: One component of a path; bytes that are not UTF-8 are surrogates.
    """
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return "its bytes are not UTF-8"
    if not name.isprintable():
        for sign in name:
            if unicodedata.category(sign) == "Cc":
                return f"it holds the control character U+{ord(sign):04X}"
    forbidden = _FORBIDDEN.search(name)
    if forbidden:
        return f"Windows allows no {forbidden[0]} in a name"
    if _RESERVED.fullmatch(name.casefold()):
        return f"{name.partition('.')[0]} is the name of a device on Windows"
    if name.endswith((".", " ")):
        return f"Windows drops the {'dot' if name.endswith('.') else 'space'} at its end"
    if len(encoded) > MAX_UNITS:
        return f"it has {len(encoded)} bytes, at most {MAX_UNITS} are safe"
    return ""


def check(tree: Tree, folders: Mapping[ChunkPath, PackedFolder]) -> list[Finding]:
    """What names cannot be kept or distinguished everywhere; see `unportable`, `collisions`."""
    return [*unportable(tree, folders), *collisions(tree, folders)]


def unportable(tree: Tree, folders: Mapping[ChunkPath, PackedFolder]) -> Iterator[Finding]:
    """Chunk files, records and folders whose name some file system cannot hold.

    Args:
        tree: Where they lie.
        folders: As the catalog has them: folder below `chunked/` to its entries.
    """
    on_the_way: set[ChunkPath] = set()
    joined = "\0".join(folders)
    is_short = joined.isascii() and max(map(len, joined.split("\0"))) <= MAX_UNITS
    are_plain = is_short and is_plain(joined.replace("/", "\0").encode())
    for path in () if are_plain else folders:
        while path and path not in on_the_way:
            on_the_way.add(path)
            path = folder_of(path)
    for path in sorted(on_the_way):
        reason = why_unportable(path.rpartition("/")[2])
        if reason:
            yield _finding(tree, "unportable-name", path, f"the folder's name: {reason}")
    if all(map(is_plain, _blocks(folders))):
        return
    for folder, packed in folders.items():
        if is_plain(packed.names):
            continue
        for name in unpack_names(packed.names):
            reason = why_unportable(name) if is_ours(tree, name) else ""
            if reason:
                yield _finding(tree, "unportable-name", inside(folder, name), reason)


def is_ours(tree: Tree, name: str) -> bool:
    """Whether a name is that of a chunk file, a record or a document; others are litter."""
    return not tree.is_written or (name.endswith((".md", ".json")) and not name.startswith("."))


def _blocks(folders: Mapping[ChunkPath, PackedFolder]) -> Iterator[bytes]:
    """All names, those of some hundred folders at a time: more would not stay in a processor."""
    names = iter([packed.names for packed in folders.values()])
    while some := list(islice(names, _FOLDERS)):
        yield b"\0".join(some)


def is_plain(names: bytes) -> bool:
    """Whether none of the names between NULs can be one to look at."""
    if names.translate(None, _PLAIN):
        return False
    start = 0
    while start + MAX_UNITS < len(names):
        # The last name that begins in reach: those before it are no longer than that.
        start = names.rfind(b"\0", start, start + MAX_UNITS + 1) + 1
        if not start:
            return False
    alike = b"\0%b\0" % names.translate(_ALIKE)
    if b".\0" in alike:
        return False
    return _ALIKE_DEVICE.search(alike) is None or _DEVICE.search(b"\0%b\0" % names) is None


def collisions(tree: Tree, folders: Mapping[ChunkPath, PackedFolder]) -> Iterator[Finding]:
    """Paths that differ from another one only by case or composition.

    Args:
        tree: Where they lie.
        folders: As the catalog has them: folder below `chunked/` to its entries.
    """
    paths = "\0".join(folders).encode("utf-8", "surrogateescape")
    if _all_folded(paths) and all(map(_all_folded, _blocks(folders))):
        return
    alike: dict[str, list[ChunkPath]] = {}
    for folder in folders:
        alike.setdefault(folded_path(folder), []).append(folder)
    for group in alike.values():
        names = folders[group[0]].names
        folded = names.lower()
        if (
            len(group) > 1
            or not names.isascii()
            or (folded != names and len(set(folded.split(b"\0"))) <= names.count(b"\0"))
        ):
            by_folded: dict[str, list[ChunkPath]] = {}
            for folder in sorted(group):
                for name in unpack_names(folders[folder].names):
                    path = inside(folder, name)
                    by_folded.setdefault(folded_path(path), []).append(path)
            for first, *others in by_folded.values():
                other = tree.store_path(first)
                detail = f"differs from {other} only by case or composition"
                for shown in map(tree.store_path, others):
                    yield Finding(code="name-collision", path=shown, detail=detail, other=other)


def _all_folded(names: bytes) -> bool:
    """Whether names are as a file system that ignores case sees them, so that none are alike."""
    return names.isascii() and names == names.lower()


def _finding(tree: Tree, code: str, path: ChunkPath, detail: str) -> Finding:
    return Finding(code=code, path=tree.store_path(path), detail=detail)
