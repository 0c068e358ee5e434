"""The saved session of a store: in the user's state folder, never in the store.

One rule: whatever the file holds, something usable comes of it.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct, ValidationError, convert, field
from msgspec.structs import asdict, fields

FORMAT: Final = 1
MOST_BYTES: Final = 1 << 20
"""A longer text is not ours."""
_PREFIX: Final = "inspector-"
_MOST_READ: Final = 50
_MOST_RECENT: Final = 5
SETTINGS: Final = "filestore.toml"


Page = Literal["browse", "verify", "repair"]


class Saved(Struct, frozen=True, kw_only=True):
    """The state of the screen when it was left."""

    root: str = ""
    """Of the store, as its path was."""
    page: Page = "browse"
    theme: str = ""
    """"" for the one that fits the terminal."""
    views: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each page gave; each looks itself at what it takes up."""
    prompts: tuple[str, ...] = ()
    """Command lines that were typed, oldest first."""


def parse(text: bytes) -> tuple[Saved, str]:
    """The state that was saved, and why not all of it could be used; "" where it could."""
    try:
        found = json.loads(text) if len(text) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return Saved(), "it is damaged"
    if found.get("format") != FORMAT:
        return Saved(), f"its format is not {FORMAT}"
    kept: dict[str, Any] = {}
    for one in fields(Saved):
        # What is missing, or of another type, is as at first.
        with contextlib.suppress(KeyError, ValidationError, UnicodeEncodeError):
            kept[one.name] = convert(found[one.name], one.type)
    return Saved(**kept), ""


def serialize(saved: Saved) -> bytes:
    """The state as text."""
    values = {"format": FORMAT, **asdict(saved)}
    # Names that are not UTF-8 come as lone surrogates: JSON holds them only escaped.
    return json.dumps(values, ensure_ascii=True, indent=1).encode("ascii")


def path_of(root: str, environment: Mapping[str, str]) -> str:
    """The file for a store; its name is a hash of the store's path."""
    name = hashlib.blake2b(os.fsencode(os.path.realpath(root)), digest_size=12).hexdigest()
    return os.path.join(_folder(environment), f"{_PREFIX}{name}.json")


def _folder(environment: Mapping[str, str]) -> str:
    state = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "filestore")


def recent(environment: Mapping[str, str]) -> list[str]:
    """The roots of stores that were looked at and are still there, the last one first."""
    try:
        with os.scandir(_folder(environment)) as entries:
            found = [
                (one.stat().st_mtime_ns, one.path)
                for one in entries
                if one.name.startswith(_PREFIX) and one.is_file(follow_symlinks=False)
            ]
    except OSError:
        return []
    roots = (read(path)[0].root for _, path in sorted(found, reverse=True)[:_MOST_READ])
    there = [root for root in roots if root and os.path.isfile(os.path.join(root, SETTINGS))]
    return there[:_MOST_RECENT]


def read(path: str) -> tuple[Saved, str]:
    """The saved session, and why it cannot be used; "" where it can, or where there is none."""
    try:
        # O_NONBLOCK: the file may have been replaced by a pipe.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            return parse(file.read(MOST_BYTES + 1))
    except FileNotFoundError:
        return Saved(), ""
    except OSError as error:
        return Saved(), error.strerror or str(error)


def write(path: str, saved: Saved) -> str:
    """Write it atomically; returns why it could not be written, or "".

    That is no error for the user: the next session starts with the defaults.
    """
    text = serialize(saved)
    if len(text) > MOST_BYTES:
        text = serialize(Saved(root=saved.root, page=saved.page, theme=saved.theme))
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".inspector-")
        try:
            with open(handle, "wb") as file:
                file.write(text)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        return error.strerror or str(error)
    return ""
