"""JSON as `--json` prints it and `to_dict()` gives it: the fields of a value are its keys.

One rule: the sentence of a key is the docstring of its field. `tests/reference.py` makes JSON.md
and the schema that servers give out of them.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from msgspec import UNSET, Struct

from filestore.core.errors import FilestoreError


class JsonObject:
    """What `--json` can show."""

    __slots__ = ()
    KEYS: ClassVar[str] = ""
    """The attributes that are keys, in order; without any all fields are. A dot leads into a value,
    whose attribute names the key. What JSON has in place of an attribute is ``json_NAME``."""
    SPARSE: ClassVar[str] = ""
    """Keys that are left out where there is nothing to say; of others only what is `UNSET` is."""

    def to_dict(self) -> dict[str, Any]:
        """The values that `--json` prints; see JSON.md."""
        kind: Any = type(self)
        made, sparse = {}, self.SPARSE.split()
        for key, path in keys(kind).items():
            value: Any = self
            for name in path:
                value = None if value is None else getattr(value, name)
            is_empty = key in sparse and not value and value != ""
            if not is_empty and value is not UNSET:
                made[key] = plain(value)
        return made


class Problem(JsonObject, Struct, frozen=True):
    """Why something was not done."""

    error: str
    """What happened."""
    remedy: str
    """What to do next."""


class Failure(JsonObject, Struct, frozen=True):
    """What a command prints that fails."""

    error: str
    """What happened."""
    detail: str
    """Technical detail, or empty."""
    remedy: str
    """What to do next, or empty."""

    @classmethod
    def of(cls, error: FilestoreError) -> "Failure":
        """What it prints of an error."""
        return cls(error.message, error.detail, error.remedy)


@cache
def keys(kind: Any) -> Mapping[str, tuple[str, ...]]:
    """The keys of an object in order, with the attributes that lead to their values."""
    fields: tuple[str, ...] = getattr(kind, "__struct_fields__", ())
    named = dict(zip(fields, getattr(kind, "__struct_encode_fields__", ()), strict=True))
    found = {}
    for word in kind.KEYS.split() or fields:
        path = tuple(word.split("."))
        key = named.get(word, path[-1])
        found[key] = (f"json_{key}",) if hasattr(kind, f"json_{key}") else path
    return found


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, JsonObject):
        return value.to_dict()
    if isinstance(value, FilestoreError):
        return Problem(value.message, value.remedy).to_dict()
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [plain(item) for item in (sorted(value) if isinstance(value, frozenset) else value)]
    return value


def text(value: str) -> str:
    r"""A text that JSON can hold: bytes that are not UTF-8 as ``\xNN``."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value
