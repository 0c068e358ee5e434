"""The configuration of programs that start this server: its entry, its file.

One rule: the file is the user's. All else in it stays as it is, what cannot be read is not touched,
and what was written is taken back byte for byte unless the file changed since.
"""

import os
import re
import shlex
import stat
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.config.user_config import Change, changes_of_programs, remember_change
from filestore.core.caller import absolute
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.schema import JsonObject
from filestore.core.spelling import did_you_mean
from filestore.fs import disk
from filestore.fs.programs import find_program
from filestore.server.agents import entries
from filestore.server.agents.entries import Form, UnfitEntryError
from filestore.server.stores import named_roots

_LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a configuration."""
_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class ConfigurationUnreadableError(RefusedError):
    """The configuration of a program is not of its form, or has another shape than it should have.

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
    project: str = ""
    """Where it looks in a folder that is open in it, too."""
    extra: Mapping[str, str] = {}
    """What an entry has besides the command."""
    form: Form = "json"
    moved_by: str = ""
    """The variable that names another folder for it."""


PROGRAMS: Final[Mapping[str, Program]] = {
    "claude-code": Program(
        "Claude Code",
        "mcpServers",
        {"": "~"},
        ".claude.json",
        ".mcp.json",
        {"type": "stdio"},
        moved_by="CLAUDE_CONFIG_DIR",
    ),
    "claude-desktop": Program(
        "Claude Desktop",
        "mcpServers",
        {"darwin": "~/Library/Application Support/Claude", "": "{config}/Claude"},
        "claude_desktop_config.json",
    ),
    "cursor": Program("Cursor", "mcpServers", {"": "~/.cursor"}, "mcp.json", ".cursor/mcp.json"),
    "vscode": Program(
        "VS Code",
        "servers",
        {"darwin": "~/Library/Application Support/Code/User", "": "{config}/Code/User"},
        "mcp.json",
        ".vscode/mcp.json",
        {"type": "stdio"},
        "jsonc",
    ),
    "codex": Program(
        "Codex",
        "mcp_servers",
        {"": "~/.codex"},
        "config.toml",
        ".codex/config.toml",
        form="toml",
        moved_by="CODEX_HOME",
    ),
    "gemini": Program(
        "Gemini CLI",
        "mcpServers",
        {"": "~/.gemini"},
        "settings.json",
        ".gemini/settings.json",
        form="jsonc",
    ),
    "zed": Program(
        "Zed",
        "context_servers",
        {"darwin": "~/.config/zed", "": "{config}/zed"},
        "settings.json",
        ".zed/settings.json",
        form="jsonc",
    ),
}
"""By the word of ``--install``."""
_OLD_WORDS: Final = {"claude": "claude-desktop"}


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
    removed: bool = False
    """Whether the entry was taken out, by `--remove`."""
    restored: bool = False
    """Whether the file then was byte for byte as before the entry was written."""
    question: str = ""
    """What the server was asked before the entry was written."""
    answer: str = ""
    """What it answered."""
    before: Any = None
    """The entry that was replaced."""


def program_of(word: str) -> Program:
    """The program that a word of ``--install`` names.

    Raises:
        UsageError: There is none.
    """
    found = PROGRAMS.get(_OLD_WORDS.get(word, word))
    if found is None:
        raise UsageError(
            f"--install: unknown program {word[:80]!r}{did_you_mean(word[:80], PROGRAMS)}"
            f"; one of: {', '.join(PROGRAMS)}",
        )
    return found


def installation(
    program: Program,
    stores: Sequence[str],
    *,
    write: bool,
    to: str | None = None,
) -> Installation:
    """The entry for some stores in a program's configuration; changes nothing.

    Args:
        program: Whose.
        stores: Each a path, or ``NAME=PATH``.
        write: Whether agents may write.
        to: Another file than the program's own.

    Raises:
        NoStoreError: There is none at a path.
        UsageError: Two have one name.
    """
    roots = named_roots(stores)
    named = [f"{one}={root}" for one, root in roots.items()]
    given = named if len(roots) > 1 else list(roots.values())
    moved = os.environ.get("XDG_CONFIG_HOME")
    found = find_program(os.path.join(os.path.dirname(sys.executable), "filestore"))
    # Without -P a folder called filestore, where the program happens to start, would be run.
    command = [found] if found else [sys.executable, "-P", "-m", "filestore"]
    words = [*command, "mcp", *given, *(["--write"] if write else [])]
    # Programs make the names of tools of it, in few signs.
    plain = re.sub(r"[^A-Za-z0-9]+", "-", next(iter(roots))).strip("-")
    is_named = len(roots) == 1 and plain
    name = f"filestore-{plain}"[:40].rstrip("-") if is_named else "filestore"
    server = {**program.extra, "command": words[0], "args": words[1:]}
    return Installation(
        program=program.title,
        file=absolute(os.path.expanduser(to)) if to else _file_of(program),
        key=program.key,
        name=name,
        server={**server, **({"env": {"XDG_CONFIG_HOME": moved}} if moved else {})},
    )


def _file_of(program: Program) -> str:
    """Its own configuration."""
    folder = program.folders.get(sys.platform, program.folders[""])
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    usual = os.path.expanduser(folder.format(config=config))
    own = os.environ.get(program.moved_by) or usual if program.moved_by else usual
    return os.path.join(own, program.file)


def commands_in(program: Program) -> list[str]:
    """The programs that the entries of a configuration start for this server.

    Raises:
        ConfigurationUnreadableError: It is not of its form.
    """
    path = _file_of(program)
    try:
        data = _read(os.path.realpath(path))
        listed = entries.parsed((data or b"").decode(), program.form).get(program.key)
    except (UnfitEntryError, UnicodeDecodeError) as error:
        reason = error.message if isinstance(error, UnfitEntryError) else "it is not UTF-8"
        raise ConfigurationUnreadableError(f"{path} cannot be read: {reason}") from error
    found = listed.items() if isinstance(listed, dict) else ()
    servers = [one for name, one in found if name.startswith("filestore") and isinstance(one, dict)]
    return [str(one.get("command", "")) for one in servers]


def command_line(wanted: Installation) -> str:
    """What has Claude Code itself remember a server, for all projects of this user."""
    environment = [
        word for pair in wanted.server.get("env", {}).items() for word in ("-e", "=".join(pair))
    ]
    words = [wanted.server["command"], *wanted.server["args"]]
    add = ["claude", "mcp", "add", "--scope", "user", *environment, wanted.name, "--"]
    return shlex.join([*add, *words])


def install(
    wanted: Installation, form: Form, configuration: str, *, plan: bool = False
) -> Installation:
    """Write an entry into the configuration of a program; all else in it is kept.

    Args:
        wanted: The entry.
        form: Of the file.
        configuration: The user's folder of settings, where the change is remembered.
        plan: Only see that it can be written.

    Raises:
        ConfigurationUnreadableError: It is not of its form; nothing was written.
        WriteFailedError: The disk refused; the file is as it was.
    """
    place, before, text, base = _opened(wanted, configuration)
    try:
        had = entries.parsed(text or "", form).get(wanted.key)
        old = had.get(wanted.name) if isinstance(had, dict) else None
        if old == wanted.server:
            return wanted
        after = entries.with_entry(base or "", form, wanted.key, wanted.name, wanted.server)
    except UnfitEntryError as error:
        raise _unreadable(wanted, str(error)) from error
    if plan:
        _require_writable(wanted, place, before)
        return wanted
    _write(wanted, place, before, after)
    remember_change(configuration, place, wanted.name, _change(base, after))
    return replace(wanted, written=True, replaced=old is not None, before=old)


def remove(wanted: Installation, form: Form, configuration: str, *, plan: bool) -> Installation:
    """Take an entry out of the configuration of a program, byte for byte unless the file changed.

    Args:
        wanted: The entry.
        form: Of the file.
        configuration: As for `install`.
        plan: Only say what would be done.

    Raises:
        ConfigurationUnreadableError: It is not of its form; nothing was written.
        WriteFailedError: The disk refused; the file is as it was.
    """
    place, before, text, after = _opened(wanted, configuration)
    is_untouched = after != text
    try:
        if text and not is_untouched:
            after = entries.without_entry(text, form, wanted.key, wanted.name)
    except UnfitEntryError as error:
        raise _unreadable(wanted, str(error)) from error
    is_there = after != text
    if not plan:
        if is_there:
            _write(wanted, place, before, after)
        remember_change(configuration, place, wanted.name, None)
    return replace(
        wanted, written=is_there and not plan, removed=is_there, restored=is_there and is_untouched
    )


def _change(before: str | None, after: str) -> Change:
    """What a text became, by the only part of it that differs."""
    old = before or ""
    place = _shared(old, after)
    end = _shared(old[place:][::-1], after[place:][::-1])
    cut = old[place : len(old) - end]
    return Change(
        after=_hash(after),
        place=place,
        length=len(after) - end - place,
        cut=None if before is None else cut,
    )


def _shared(one: str, other: str) -> int:
    """How many characters two texts have in common from their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _opened(
    wanted: Installation, configuration: str
) -> tuple[str, bytes | None, str | None, str | None]:
    """Where a configuration lies, its bytes, its text, and that as `_undone` has it."""
    # A link stays one: some keep such files elsewhere.
    place = os.path.realpath(wanted.file)
    data = _read(place)
    try:
        text = None if data is None else data.decode()
    except UnicodeDecodeError as error:
        raise _unreadable(wanted, "it is not UTF-8") from error
    known = changes_of_programs(configuration, place).get(wanted.name)
    return place, data, text, _undone(text, known)


def _undone(text: str | None, known: Change | None) -> str | None:
    """A text as it was before a change, None for no file; the same where it changed since."""
    if text is None or known is None or _hash(text) != known["after"]:
        return text
    start, cut = known["place"], known["cut"]
    return None if cut is None else text[:start] + cut + text[start + known["length"] :]


def _require_writable(wanted: Installation, place: str, before: bytes | None) -> None:
    if before is not None and not os.stat(place).st_mode & _WRITABLE:
        # A rename would replace it all the same.
        raise _unreadable(wanted, "it is read-only")


def _write(wanted: Installation, place: str, before: bytes | None, after: str | None) -> None:
    _require_writable(wanted, place, before)
    with disk.disk_errors(place):
        disk.make_folders(os.path.dirname(place), 0o700)
        if _read(place) != before:
            raise _unreadable(wanted, "another program is writing it")
        if after is None:
            os.unlink(place)
        else:
            disk.write_path(place, after.encode())


def _read(place: str) -> bytes | None:
    try:
        return disk.read_path(place, limit=_LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FilestoreError(f"cannot read {place}: {error.strerror or error}") from error


def _unreadable(wanted: Installation, reason: str) -> ConfigurationUnreadableError:
    return ConfigurationUnreadableError(
        f"{wanted.file} was not changed: {reason}"
        f"; add the entry {wanted.name!r} under {wanted.key!r} yourself",
    )
