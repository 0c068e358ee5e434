"""What a collection may be called: one folder name that is the same on every machine."""

from collections.abc import Iterable

from filestore.config.layout import folded_path
from filestore.core.errors import RefusedError, UsageError
from filestore.core.safe_text import brief
from filestore.fs.staged_folder import LONGEST_NAME_BYTES
from filestore.verify.names import why_no_name


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
    if name[0] == "-":
        return "it begins with a hyphen"
    if "\\" in name:
        return "it has a backslash"
    if reason := why_no_name(name):
        return reason
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
