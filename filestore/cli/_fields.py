"""The keys that `--json=FIELDS` asks for: known before a command runs, picked from what it prints.

JSON.md says what a command prints; its tables are made of the values themselves.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from filestore.core.errors import UsageError
from filestore.core.spelling import did_you_mean
from filestore.server.operations import definitions

_PAGE: Final = os.path.join(
    os.path.dirname(os.path.dirname(__file__)), "docs", "reference", "JSON.md"
)
_SECTION: Final = re.compile(r"^### (.*)\n\n<!-- (\w+) -->$", re.MULTILINE)
Tree = dict[str, Any]
"""A key to the keys that are wanted of its value; none: all of it."""


def wanted(fields: str, command: Sequence[str]) -> Tree:
    """The keys that are asked for, such as ``query,hits.path,hits.line``.

    Args:
        fields: As typed.
        command: Its name, and the action where one is named.

    Raises:
        UsageError: The command prints no such key.
    """
    found: Tree = {}
    asked = [field.strip() for field in fields.split(",")]
    for field in asked:
        at, shapes = found, list(_printed(command))
        for key in field.split("."):
            known = dict.fromkeys(name for shape in shapes for name in shape["properties"])
            if key not in known:
                raise UsageError(
                    f"{' '.join(command)} prints no field {field!r}{did_you_mean(key, known)}",
                    remedy=f"known are {', '.join(known)}" if known else "name what holds it",
                )
            values = [shape["properties"].get(key, {}) for shape in shapes]
            shapes = [inner for value in values for inner in _inside(value)]
            at = at.setdefault(key, {})
    for field in asked:
        # Who asks for a whole value and a part of it gets the whole.
        at = found
        for key in field.split("."):
            at = at.get(key, {})
        at.clear()
    return found


def picked(value: Any, tree: Mapping[str, Any]) -> Any:
    """What is wanted of a value, in the order of asking; of a list, of each that it holds."""
    if isinstance(value, list):
        return [picked(one, tree) for one in value]
    if not tree or not isinstance(value, dict):
        return value
    return {key: picked(value[key], inner) for key, inner in tree.items() if key in value}


def _printed(command: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The shapes that a command prints; those of its actions, too, where none is named."""
    with open(_PAGE, encoding="utf-8") as page:
        for heads, shape in _SECTION.findall(page.read()):
            for head in heads.split(", "):
                if head.split()[: len(command)] == [*command]:
                    yield definitions()[shape]


def _inside(one: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The shapes of the objects that a value is, or holds."""
    if "$ref" in one:
        yield definitions()[one["$ref"].rpartition("/")[2]]
    for part in one.get("anyOf", ()):
        yield from _inside(part)
    if one.get("type") == "array":
        yield from _inside(one["items"])
