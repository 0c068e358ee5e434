"""What a collection may be called: one folder name that is the same on every machine."""

import unicodedata
from collections.abc import Iterable
from typing import Final

from filestore.config.layout import folded_path
from filestore.core.errors import RefusedError, UsageError
from filestore.core.safe_text import brief
from filestore.fs.staged_tree import LONGEST_NAME_BYTES

_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Controls, marks of direction, halves of characters, ends of lines and paragraphs."""


def check_name(name: object) -> str:
    """The name, where it can be a folder of the collections.

    Raises:
        UsageError: It cannot.
    """
    if not isinstance(name, str):
        raise UsageError("the name of a collection is a text", remedy='send "rag_name": "NAME"')
    reason = _wrong(name)
    if reason:
        raise UsageError(
            f"{brief(name)} cannot name a collection: {reason}", remedy="choose another name"
        )
    return name


def _wrong(name: str) -> str:
    if not name.strip():
        return "it is empty"
    if name != name.strip():
        return "it begins or ends with a blank"
    if name[0] in ".-":
        return f"it begins with {name[0]!r}"
    if "/" in name or "\\" in name:
        return "it is one folder name, without a slash"
    if any(unicodedata.category(one) in _UNSEEN for one in name):
        return "it has a character that is not seen"
    if len(name.encode()) > LONGEST_NAME_BYTES:
        return f"it has more than {LONGEST_NAME_BYTES} bytes"
    return ""


def check_alike(name: str, others: Iterable[str]) -> None:
    """Refuse a name that some file systems could not tell from another one.

    Raises:
        RefusedError: There is such a one.
    """
    folded = folded_path(name)
    for other in others:
        if other != name and folded_path(other) == folded:
            raise RefusedError(
                f"{brief(name)} differs only by case or composition from {brief(other)}",
                remedy="use that name, or choose another one",
            )
