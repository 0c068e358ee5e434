"""The address of a service, and whether a store may reach it, with which key.

Opens no connection. One rule: what a person is shown, what is remembered as allowed and what is
connected to are one value, and no message ever holds a key or a password.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.config.user_config import Machine
from filestore.core.errors import FilestoreError
from filestore.core.safe_text import safe_text
from filestore.remote import EndpointError, EndpointUntrusted

DEFAULT_ENDPOINT: Final = "https://api.openai.com/v1"
KEY_VARIABLE: Final = "FILESTORE_API_KEY"
OFFICIAL_KEY_VARIABLE: Final = "OPENAI_API_KEY"
_OFFICIAL_HOST: Final = "api.openai.com"
_SHOWN_LENGTH: Final = 200
_HIGHEST_PORT: Final = 65_535
_PORTS: Final = {"http": 80, "https": 443}

# One grammar for checking and for connecting, so that no two parsers can disagree on the host. To
# some clients an empty part of a path begins another host, and `..` leads to another path.
_ADDRESS: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9_.-]+|\[[0-9a-f:.]+\])(:(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(/(?!\.{1,2}(?:/|$))[a-z0-9._~%:@+-]+)*)/*",
    re.IGNORECASE | re.ASCII,
)


class Use(Struct, frozen=True, kw_only=True):
    """What a service is asked for, in the words that messages about it need."""

    path: str
    """Where it is asked, below its address: ``/embeddings``."""
    table: str
    """The table of the settings that says how: ``model``."""
    model_key: str
    """The key of the settings that names the model."""
    too_long: str
    """What to do about a text that is too long for it."""
    kept: str
    """What an error does not undo: "what was embedded is kept"."""
    without: str
    """What works without the service."""
    option: str = ""
    """The option of the command line that names the address, where no settings do."""
    port: int | None = None
    """Where no port is named; None for the scheme's own."""

    @property
    def settings(self) -> str:
        """Where the settings are, behind a key."""
        if self.option:
            return f"in the option {self.option}"
        return f"under [{self.table}] in filestore.toml"


class Address(Struct, frozen=True, kw_only=True):
    """Where a service is."""

    scheme: str
    """``http`` or ``https``."""
    host: str
    """In lower case; an IPv6 address in brackets."""
    port: int
    path: str
    """Without a slash at its end."""

    def __str__(self) -> str:
        """As it is shown and remembered: a port that the scheme means anyway is left out."""
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}{self.path}"

    @property
    def url(self) -> str:
        """With its port, whatever the scheme means."""
        return f"{self.scheme}://{self.host}:{self.port}{self.path}"

    @property
    def is_official(self) -> bool:
        """Whether it is OpenAI's own service."""
        return self.host == _OFFICIAL_HOST

    @property
    def keeps_secrets(self) -> bool:
        """Whether the connection is encrypted, or does not leave this machine."""
        import ipaddress

        if self.scheme == "https" or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


def check_trusted(
    address: object,
    *,
    machine: Machine,
    root: str,
    would: str,
    error: type[FilestoreError] = EndpointUntrusted,
) -> None:
    """Let a store reach an address only where its user allowed the whole of it.

    Args:
        address: A value whose text has every part that decides what is connected to.
        machine: What the user allowed.
        root: The store's.
        would: What the store would do there: "send its texts to".
        error: What is raised.

    Raises:
        FilestoreError: The user did not allow it.
    """
    # Earlier versions remembered endpoints as they were written.
    if any(str(address) in (one, str(_plain(one))) for one in machine.trusted.get(root, ())):
        return
    raise error(
        f"this store would {would} {address}, which you have not allowed",
        remedy="'filestore trust' allows it, if you know it; then run this again",
    )


def trusted_address(endpoint: str, use: Use, *, machine: Machine, root: str) -> Address:
    """The address of a service that a store may reach.

    Raises:
        EndpointError: It is no address that can be used.
        EndpointUntrusted: The user did not allow this store to reach it.
    """
    address = parse_address(endpoint, use)
    check_trusted(address, machine=machine, root=root, would="send its texts to")
    return address


def parse_address(endpoint: str, use: Use) -> Address:
    """Take an address apart.

    Raises:
        EndpointError: It is no plain http or https address; a user name, a password, a query or a
            fragment in it is refused, since settings are shared and those may hold keys.
    """
    address = _plain(endpoint, port=use.port)
    if address is None:
        # It may hold a secret anywhere.
        shown = "…@…" if "@" in endpoint else re.split("[?#]", endpoint, maxsplit=1)[0]
        shown = safe_text(shown, keep_newlines=False)[:_SHOWN_LENGTH]
        raise EndpointError(
            f"the endpoint {shown!r} is not an address of the form "
            f"http://host:port/v1, without user, password or query",
            remedy=f"fix `endpoint` {use.settings}; "
            f"a key belongs in the environment variable {KEY_VARIABLE}",
        )
    return replace(address, path=address.path.removesuffix(use.path))


def _plain(endpoint: str, *, port: int | None = None) -> Address | None:
    """An address as it is written, whatever is asked there; None where it is none."""
    match = _ADDRESS.fullmatch(endpoint)
    if match is None or "@" in endpoint:
        return None
    scheme = match["scheme"].lower()
    number = int(match["port"]) if match["port"] else port or _PORTS[scheme]
    if not 0 < number <= _HIGHEST_PORT:
        return None
    return Address(scheme=scheme, host=match["host"].lower(), port=number, path=match["path"])


def key_for(address: Address, environment: Mapping[str, str]) -> str:
    """The key to send to a service, or "" for none.

    Raises:
        EndpointError: There is a key and the way there can be overheard, the key is none, or
            OpenAI's own service would be asked without one.
    """
    variable = KEY_VARIABLE
    if not environment.get(variable) and address.is_official:
        variable = OFFICIAL_KEY_VARIABLE
    key = environment.get(variable, "").strip()
    if not key:
        if address.is_official:
            raise EndpointError(
                f"{address} wants a key, and {KEY_VARIABLE} is not set"
                f"; set {KEY_VARIABLE} or {OFFICIAL_KEY_VARIABLE} in the environment",
            )
        return ""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EndpointError(f"{variable} holds a character that no key has: set {variable} again")
    if not address.keeps_secrets:
        raise EndpointError(
            f"{variable} is not sent to {address}: over plain http anybody on the way can read it",
            remedy=f"use https in `endpoint`, or unset {variable} if that service wants no key",
        )
    return key
