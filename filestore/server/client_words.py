"""Messages in the words of a client: options as its parameters, commands as what it may ask.

The library names what a person types. One rule: a command that a client has no other way to is
left as it is, since a person can run it, and so is what is quoted and no command.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from filestore.server.operations import OPERATIONS, Operation, fields_for

_NAMED: Final = re.compile(
    r"(\A|')filestore ([a-z]+)((?: [^\s';,&]+)*)(?(1)'?)(?![\w'])|(?<!['\w-])--[a-z][a-z-]*"
)
"""A command with its options, or an option alone."""
_HELP: Final = "--help"
_INSTEAD: Final = {"ls": "list"}
"""Commands that a client asks by another name, where it has not the same."""


def for_clients(text: str, known: Mapping[str, Operation]) -> str:
    """A message or a remedy as a client is to read it.

    Args:
        text: As the command line has it.
        known: What the client may ask, by name.
    """
    return _NAMED.sub(lambda found: _asked(found, known), text)


def _asked(found: re.Match[str], known: Mapping[str, Operation]) -> str:
    """What asks for the same as a command; the command where nothing does."""
    quote, name = found[1], found[2]
    if name is None:
        return _parameters().get(found[0], found[0])
    words = found[3].split()
    name = name if name in known else _INSTEAD.get(name, "")
    if name not in known:
        return found[0]
    if words == [_HELP]:
        return f"see the parameters of {name}"
    named = _names([known[name]])
    if any(one.startswith("-") and one not in named for one in words):
        return found[0]
    asked = " ".join([name, *(named.get(one, one) for one in words)])
    return f"'{asked}'" if quote else f"call {asked}"


def _names(operations: Iterable[Operation]) -> dict[str, str]:
    """Options to the parameters that they are."""
    fields = (one for operation in operations for one in fields_for(operation.kind).values())
    return {name: field.key for field in fields for name in field.names}


@cache
def _parameters() -> dict[str, str]:
    return _names(one for one in OPERATIONS if one.route or one.tool)
