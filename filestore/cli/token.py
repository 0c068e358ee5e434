"""Tokens of clients: one each, so that each can be revoked, and is known by its name."""

import shlex
from typing import Annotated, Literal

from msgspec import Struct

from filestore.cli import _context, _output
from filestore.config import layout, user_config
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.safe_text import brief, safe_text
from filestore.core.schema import JsonObject
from filestore.server.operations import LONGEST_NAME, CommonOptions, argument, caller_name


class Client(JsonObject, Struct, frozen=True):
    """A client that has a token."""

    name: str
    """The name that it was given."""
    writes: bool
    """Whether it may change stores that are served with `--write`."""
    person: bool
    """Whether it is a person's, who sees what is closed to programs."""


class Clients(JsonObject, Struct, frozen=True):
    """What `token list` prints."""

    items: list[Client]
    """Each client, by name."""


class ClientToken(JsonObject, Struct, frozen=True):
    """What `token add` and `token revoke` print."""

    SPARSE = "token"

    name: str
    """The client's name."""
    token: str | None = None
    """The token, shown only this once."""


class Token(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    action: Annotated[Literal["add", "list", "revoke"], argument("add|list|revoke")]
    """make and print a client's token, list the clients, or revoke a token"""
    name: Annotated[str, argument("NAME")] = ""
    """the client's name, under which 'filestore changes' lists what it changes"""
    write: bool = False
    """with add: let it change stores that are served with --write"""
    person: bool = False
    """with add: for a person, who sees what is closed to programs"""


class UnknownClientError(FilestoreError, LookupError):
    """No client of this name has a token."""


def run_token(options: Token) -> int:
    """Give each client of `serve` a token of its own, list them, and revoke one.

    A token is printed once; only its hash is kept, with your settings. A running server follows the
    change at once. The list leaves out the token of the page, which 'serve' makes.

    Example: filestore token add phone --person
    """
    configuration = layout.configuration_folder()
    if options.action == "list":
        known = sorted(user_config.tokens(configuration).items())
        found = Clients([Client(name, one["writes"], one["person"]) for name, one in known])
        if not _context.printed_json(options, found):
            for one in found.items:
                kinds = ["reads and writes" if one.writes else "reads"]
                kinds += ["a person's"] if one.person else []
                _output.line(f"{safe_text(one.name)}  {', '.join(kinds)}")
        return 0
    name = options.name
    if not name or caller_name(name) != name:
        raise UsageError(
            f"{brief(name)} is not a client name: use one line of 1 to {LONGEST_NAME} characters",
            remedy=f"filestore token {options.action} phone",
        )
    if options.action == "revoke":
        if not user_config.revoke_token(configuration, name):
            raise UnknownClientError(f"no client {name} has a token", remedy="filestore token list")
        if not _context.printed_json(options, ClientToken(name)):
            _output.line(f"revoked the token of {name}")
        return 0
    token = user_config.add_token(configuration, name, writes=options.write, person=options.person)
    if token is None:
        raise RefusedError(
            f"{name} already has a token", remedy=f"filestore token revoke {shlex.quote(name)}"
        )
    if not _context.printed_json(options, ClientToken(name, token)):
        _output.say(
            f"the token of {name}, shown only once; send it as 'Authorization: Bearer TOKEN'"
        )
        _output.line(token)
    return 0
