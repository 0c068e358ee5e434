"""What a command and the process that answers it say to each other, and how a command asks.

A request is MAGIC, four bytes of length, and fields that end with NUL. An answer is any number of
BEAT, while the command runs; then DECLINED, or ANSWERED with an exit code, four bytes of length and
that many bytes of what the command wrote. Only what the standard library has loaded anyway is
imported here: a command pays for it each time.

One rule: nothing is written before the whole answer is there, so whatever goes wrong leaves the
command as if it had not asked.
"""

from __future__ import annotations

import os
import stat
import sys

from filestore._version import __version__
from filestore.core.colors import wanted_colors

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `typing` takes longer to load than all that a command asks of a server.
    from collections.abc import Sequence
    from typing import Any, Final

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

ASKED: Final = frozenset(("search", "similar", "about", "status", "show", "links", "ls"))
"""Commands that read, and whose time is mostly spent on opening the store."""
SWITCH: Final = "FILESTORE_SERVER"
"""The variable that keeps commands from asking: ``off``."""
_OWN: Final = ("--at", "--rerank", "--rewrite", "--help", "-h")
"""Options of what a server leaves to the command itself."""
SILENT_S: Final = 0.25
"""A server that is alive says so twenty times a second; one that is not costs no more than this."""
_MOST_BEATS: Final = 1200
_MOST_DOTS: Final = 2_000
"""A key of many parts takes the parser of TOML minutes: the command itself says so."""
_CHUNK_BYTES: Final = 1 << 18
_MOST_SETTINGS_BYTES: Final = 1 << 20

Reply = tuple[int, list[tuple[bytes, bytes]]]


def surroundings() -> bytes:
    """What an answer depends on besides the words, the folder and the terminal.

    Both sides have to have the same: the code, Python with its packages, and the variables that
    say where settings, caches, keys and services are, and which time it is.
    """
    code = os.stat(os.path.join(os.path.dirname(__file__), "..", "_version.py"))
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
        wanted_colors().encode(),
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


def reply_to(words: Sequence[str]) -> Reply | None:
    """What a server answers to a command; None where the command has to run by itself."""
    if not sys.platform.startswith("linux") or os.environ.get(SWITCH) == "off":
        return None
    asked = _asked(words)
    if asked is None or any("\0" in word for word in words):
        return None
    try:
        here = os.getcwd()
        root = _root(here, os.path.expanduser(asked or os.environ.get("FILESTORE", "")))
        for sidecar in _sidecars(root) if root else ():
            if reply := _ask(sidecar, here, list(words)):
                return reply
    except Exception:
        # Settings that are none, a word that is no path: the command itself says what is wrong.
        return None
    return None


def write_reply(reply: Reply) -> int:
    """Write what a command wrote, and return its exit code."""
    code, parts = reply
    for kind, data in parts:
        if kind == TEXT:
            sys.stdout.write(data.decode("utf-8", "surrogatepass"))
        elif kind == BYTES:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            try:
                sys.stderr.write(data.decode("utf-8", "surrogatepass"))
            except OSError:
                # The exit code has to do.
                continue
    return code


def _asked(words: Sequence[str]) -> str | None:
    """The store that is named, "" for none; None for a command that is not asked for."""
    store, command = "", ""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if word == "--" or name in _OWN:
            break
        if name == "--store":
            if store:
                # Several are searched: none of their servers has them all.
                return None
            store = value if equals else next(rest, "")
            if not store:
                return None
        elif not command and not word.startswith("-"):
            command = word
            if command not in ASKED:
                return None
    else:
        return store if command else None
    # Behind -- are words; commands with own options are not asked.
    return store if command and word == "--" else None


def _root(here: str, explicit: str) -> str:
    """The store of a command, as `config.discovery.find_root` finds it; "" for none."""
    folders = [explicit or here]
    while not explicit and (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    for folder in folders:
        for root in (folder, f"{folder}/file_index"):
            try:
                if stat.S_ISREG(os.stat(f"{root}/filestore.toml").st_mode):
                    return os.path.realpath(root)
            except OSError:
                continue
    return ""


def _sidecars(root: str) -> list[str]:
    """Where the sidecar may be; the user's settings may put it elsewhere."""
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    try:
        data = _settings(f"{folder}/filestore/settings.toml")
    except (FileNotFoundError, NotADirectoryError):
        data = b""
    if data.count(b".") > _MOST_DOTS:
        return []
    if b"sidecar" in data:
        import tomllib

        for named, elsewhere in tomllib.loads(data.decode()).get("sidecar", {}).items():
            if os.path.isabs(named) and os.path.realpath(named) == root:
                return [os.path.expanduser(elsewhere)]
    return [f"{root}/.sidecar", f"{root}/.filestore"]


def _settings(path: str) -> bytes:
    """What a small file holds; anything else there is reported by the command itself."""
    # Without waiting: it may be a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode) or seen.st_size > _MOST_SETTINGS_BYTES:
            raise OSError(path)
        return os.read(descriptor, _MOST_SETTINGS_BYTES)
    finally:
        os.close(descriptor)


def _ask(sidecar: str, here: str, words: list[str]) -> Reply | None:
    """Ask the server of a sidecar."""
    try:
        folder = os.open(sidecar, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        seen = os.stat(NAME, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISSOCK(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o077:
            return None
        import _socket  # what `socket` adds takes as long as all the rest

        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            connection.settimeout(SILENT_S)
            connection.connect(f"/proc/self/fd/{folder}/{NAME}")
            peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
            if int.from_bytes(peer[4:8], sys.byteorder) != os.geteuid():
                return None
            connection.sendall(request(folder=here, columns=columns(), words=words))
            return _received(connection)
        finally:
            connection.close()
    except FileNotFoundError:
        return None
    finally:
        os.close(folder)


def columns() -> int:
    """The width of the terminal in columns; 0 where standard output is none.

    One that does not know its width, as some serial lines, has that of the variable COLUMNS, else
    80.
    """
    if not sys.stdout.isatty():
        return 0
    try:
        found = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        found = 0
    return found or named_columns() or 80


def named_columns() -> int:
    """The width that the variable COLUMNS names; 0 where it names none."""
    named = os.environ.get("COLUMNS", "")
    return int(named) if named.isdecimal() and len(named) < 6 else 0


def _received(connection: Any) -> Reply | None:
    """The whole answer; None where there is none."""
    data = bytearray()
    beats = 0
    while not data:
        chunk = connection.recv(_CHUNK_BYTES)
        data += chunk.lstrip(BEAT)
        beats += len(chunk) - len(data)
        if not chunk or beats > _MOST_BEATS:
            return None
    head = 2 + LENGTH_BYTES
    while len(data) < head or len(data) < head + (size := int.from_bytes(data[2:head], "big")):
        if data[:1] != ANSWERED or (len(data) >= head and size > MOST_ANSWER_BYTES):
            return None
        chunk = connection.recv(_CHUNK_BYTES)
        if not chunk:
            return None
        data += chunk
    if data[:1] != ANSWERED or len(data) != head + size:
        return None
    parts = parts_of(bytes(data[head:]))
    for kind, text in parts:
        if kind != BYTES:
            text.decode("utf-8", "surrogatepass")
    return data[1], parts
