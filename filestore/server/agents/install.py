"""The configuration of programs that start this server: its entry, its file.

One rule: the file is the user's. All else in it stays as it is, in its order, and what cannot be
read as plain JSON is not touched.
"""

import json
import math
import os
import re
import shlex
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.caller import absolute
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.schema import JsonObject, each_once
from filestore.fs import disk
from filestore.fs.programs import find_program
from filestore.server.stores import named_roots

_LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a configuration."""
_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class ConfigurationUnreadableError(RefusedError):
    """The configuration of a program is not plain JSON of the shape that it should have.

    Or it is not to be written.
    """


class Program(Struct, frozen=True):
    """One that starts servers."""

    title: str
    key: str
    """Under which its configuration lists them."""
    folders: Mapping[str, str]
    """Where that lies, by system; "" for any other."""
    file: str
    project: str
    """Where it looks in a folder that is open in it, too."""
    extra: Mapping[str, str] = {}
    """What an entry has besides the command."""


PROGRAMS: Final[Mapping[str, Program]] = {
    "claude": Program(
        "Claude Desktop",
        "mcpServers",
        {"darwin": "~/Library/Application Support/Claude", "": "{config}/Claude"},
        "claude_desktop_config.json",
        ".mcp.json (Claude Code)",
    ),
    "cursor": Program("Cursor", "mcpServers", {"": "~/.cursor"}, "mcp.json", ".cursor/mcp.json"),
    "vscode": Program(
        "VS Code",
        "servers",
        {"darwin": "~/Library/Application Support/Code/User", "": "{config}/Code/User"},
        "mcp.json",
        ".vscode/mcp.json",
        {"type": "stdio"},
    ),
}
"""By the word of ``--install``."""


class Installation(JsonObject, Struct, frozen=True, kw_only=True):
    """The entry of this server in a program's configuration."""

    SPARSE = "before"

    program: str
    """Its title."""
    file: str
    """Its configuration."""
    key: str
    """Under which that lists servers."""
    name: str
    """Of this one there."""
    server: Mapping[str, Any]
    """What it is to hold: the command, its arguments."""
    written: bool = False
    """Whether the file was changed, which `--yes` allows."""
    replaced: bool = False
    """Whether the file had another entry of this name."""
    before: Any = None
    """That entry."""

    @property
    def lines(self) -> str:
        """The configuration with this server alone."""
        return json.dumps({self.key: {self.name: self.server}}, ensure_ascii=False, indent=2)

    @property
    def command_line(self) -> str:
        """What has Claude Code remember it for all projects of this user."""
        environment = [
            word for pair in self.server.get("env", {}).items() for word in ("-e", "=".join(pair))
        ]
        words = [self.server["command"], *self.server["args"]]
        add = ["claude", "mcp", "add", "--scope", "user", *environment, self.name, "--"]
        return shlex.join([*add, *words])


def installation(
    word: str,
    stores: Sequence[str],
    *,
    write: bool,
    to: str | None = None,
) -> Installation:
    """The entry for some stores in a program's configuration; changes nothing.

    Args:
        word: The program, of `PROGRAMS`.
        stores: Each a path, or ``NAME=PATH``.
        write: Whether agents may write.
        to: Another file than the program's own.

    Raises:
        NoStoreError: There is none at a path.
        UsageError: Two have one name.
    """
    program = PROGRAMS[word]
    roots = named_roots(stores)
    named = [f"{one}={root}" for one, root in roots.items()]
    given = named if len(roots) > 1 else list(roots.values())
    moved = os.environ.get("XDG_CONFIG_HOME")
    found = find_program(os.path.join(os.path.dirname(sys.executable), "filestore"))
    # Without -P a folder called filestore, where the program happens to start, would be run.
    command = [found] if found else [sys.executable, "-P", "-m", "filestore"]
    words = [*command, "mcp", *given, *(["--write"] if write else [])]
    folder = program.folders.get(sys.platform, program.folders[""])
    own = os.path.expanduser(folder.format(config=moved or "~/.config"))
    # Programs make the names of tools of it, in few signs.
    plain = re.sub(r"[^A-Za-z0-9]+", "-", next(iter(roots))).strip("-")
    is_named = len(roots) == 1 and plain
    name = f"filestore-{plain}"[:40].rstrip("-") if is_named else "filestore"
    server = {**program.extra, "command": words[0], "args": words[1:]}
    return Installation(
        program=program.title,
        file=absolute(os.path.expanduser(to)) if to else os.path.join(own, program.file),
        key=program.key,
        name=name,
        server={**server, **({"env": {"XDG_CONFIG_HOME": moved}} if moved else {})},
    )


def install(wanted: Installation) -> Installation:
    """Write an entry into the configuration of a program; all else in it is kept.

    Raises:
        ConfigurationUnreadableError: It is not plain JSON; nothing was written.
        WriteFailedError: The disk refused; the file is as it was.
    """
    # A link stays one: some keep such files elsewhere.
    place = os.path.realpath(wanted.file)
    before = _read(place)
    values = _parsed(before, wanted) if before and before.strip() else {}
    if before is not None and not os.stat(place).st_mode & _WRITABLE:
        # A rename would replace it all the same.
        raise _unreadable(wanted, "it is read-only")
    servers = values.setdefault(wanted.key, {})
    if not isinstance(servers, dict):
        raise _unreadable(wanted, f"its {wanted.key!r} is no object")
    had = servers.get(wanted.name)
    servers[wanted.name] = dict(wanted.server)
    is_other = had != servers[wanted.name]
    if is_other:
        # As the file is indented; two blanks where nothing says.
        found = re.search(rb"\n([ \t]+)\S", before or b"")
        blanks = found[1].decode() if found else "  "
        indent = blanks if "\t" in blanks else len(blanks)
        data = json.dumps(values, ensure_ascii=False, indent=indent) + "\n"
        with disk.disk_errors(place):
            disk.make_folders(os.path.dirname(place), 0o700)
            if _read(place) != before:
                raise _unreadable(wanted, "another program is writing it")
            disk.write_path(place, data.encode("utf-8", "surrogatepass"))
    is_replaced = had is not None and is_other
    return replace(
        wanted, written=is_other, replaced=is_replaced, before=had if is_replaced else None
    )


def _read(place: str) -> bytes | None:
    try:
        return disk.read_path(place, limit=_LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FilestoreError(f"cannot read {place}: {error.strerror or error}") from error


def _parsed(data: bytes, wanted: Installation) -> dict[str, Any]:
    try:
        values = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=each_once,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except (ValueError, RecursionError) as error:
        raise _unreadable(wanted, "it is not plain JSON, or has comments") from error
    if not isinstance(values, dict):
        raise _unreadable(wanted, "it is no JSON object")
    return values


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


def _unreadable(wanted: Installation, reason: str) -> ConfigurationUnreadableError:
    return ConfigurationUnreadableError(
        f"{wanted.file} was not changed: {reason}",
        remedy=f"add the entry {wanted.name!r} under {wanted.key!r} yourself",
    )
