"""What a command and the process that answers it say to each other.

A request is MAGIC, four bytes of length, and fields that end with NUL. An answer is any number of
BEAT, while the command runs; then DECLINED, or ANSWERED with an exit code, four bytes of length and
that many bytes of what the command wrote. Only what the standard library has loaded anyway is
imported here: a command pays for it each time.
"""

from __future__ import annotations

import os
import sys

from filestore._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `typing` takes longer to load than all that a command asks of a server.
    from typing import Final

NAME: Final = "server.sock"
"""In the sidecar of the store that is served."""
MAGIC: Final = b"filestore socket 1\n"
MOST_REQUEST_BYTES: Final = 1 << 20
MOST_ANSWER_BYTES: Final = 1 << 26
LENGTH_BYTES: Final = 4

BEAT: Final = b"."
DECLINED: Final = b"-"
ANSWERED: Final = b"+"

TEXT, BYTES, ERRORS = b"t", b"b", b"e"
"""Kinds of what is written: text on standard output, bytes on it, text on standard error."""

_PASSED_ON: Final = frozenset(("FILESTORE_SERVER", "FILESTORE_TOKEN"))
_NAMES: Final = frozenset(
    (
        *("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "OPENAI_API_KEY", "TZ"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
        *("all_proxy", "http_proxy", "https_proxy", "no_proxy"),
    )
)
_PREFIXES: Final = (
    "FILESTORE_",
    "HF_",
    "HUGGINGFACE_",
    "TRANSFORMERS_",
    "SENTENCE_TRANSFORMERS_",
    "QDRANT_",
    "PG",
)


def surroundings() -> bytes:
    """What an answer depends on besides the words, the folder and the terminal.

    Both sides have to have the same: the code, Python with its packages, and the variables that
    say where settings, caches, keys and services are, and which time it is.
    """
    code = os.stat(os.path.join(os.path.dirname(__file__), "..", "..", "_version.py"))
    variables = sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if name in _NAMES or (name.startswith(_PREFIXES) and name not in _PASSED_ON)
    )
    parts = (
        __version__,
        f"{sys.hexversion:x} {sys.getfilesystemencoding()} {sys.prefix}",
        f"{code.st_dev} {code.st_ino} {code.st_mtime_ns}",
        *variables,
    )
    return b"\x01".join(map(os.fsencode, parts))


def request(*, folder: str, columns: int, words: list[str]) -> bytes:
    """A request, whole.

    Args:
        folder: The working folder, absolute.
        columns: Of the terminal; 0 where standard output is none.
        words: Of the command line.
    """
    fields = [
        surroundings(),
        os.fsencode(folder),
        str(columns).encode(),
        os.fsencode(os.environ.get("FILESTORE", "")),
        os.fsencode(os.environ.get("NO_COLOR", "")),
        *map(os.fsencode, words),
    ]
    data = b"\0".join(fields)
    return MAGIC + len(data).to_bytes(LENGTH_BYTES, "big") + data


def written(parts: list[tuple[bytes, bytes]]) -> bytes:
    """What a command wrote, in its order, as bytes of an answer."""
    return b"".join(kind + len(data).to_bytes(LENGTH_BYTES, "big") + data for kind, data in parts)


def parts_of(data: bytes) -> list[tuple[bytes, bytes]]:
    """The reverse of `written`.

    Raises:
        ValueError: It is no such thing.
    """
    parts = []
    position = 0
    while position < len(data):
        start = position + 1 + LENGTH_BYTES
        kind = data[position : position + 1]
        position = start + int.from_bytes(data[position + 1 : start], "big")
        if kind not in (TEXT, BYTES, ERRORS) or position > len(data):
            raise ValueError("no part of an answer")
        parts.append((kind, data[start:position]))
    return parts
