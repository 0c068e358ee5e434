"""What on this machine keeps filestore from working: one line a check, and what to run first.

Each check is one that another command makes, too; documents are for `status` and `verify`. One
rule: it writes nothing, asks no network, and prints no text of a document and no token.
"""

import contextlib
import os
import platform
import re
import sqlite3
import sys
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from filestore._version import __version__
from filestore.browse.editor import editor_command
from filestore.cli import _context, _output, _terminal
from filestore.config import layout, settings, user_config
from filestore.core import caller, errors
from filestore.core.errors import FilestoreError, missing_packages
from filestore.core.safe_text import listed, shown_path
from filestore.core.schema import JsonObject
from filestore.embed import EndpointUnasked
from filestore.fs import lock, part, programs
from filestore.git import hooks, process
from filestore.server import listening, wire
from filestore.server.agents import install
from filestore.server.operations import CommonOptions
from filestore.sidecar import fulltext_file, model, session
from filestore.store.watch import UnwatchableError, require_watchable

Result = Literal["ok", "note", "warning", "error"]
Seen = tuple[Result, str, str]
"""What a check found: in words, and what to do, or empty."""
_STYLES: Final = {"ok": "", "note": "2", "warning": "33", "error": "31"}
_RUN: Final = re.compile("run `((?:pip|filestore) [^`]+)`")
_NOTHING: Final = "nothing to do here; 'filestore status' looks at the documents"
_NEEDS: Final = {"index": ("store", "settings")} | dict.fromkeys(
    ("model", "watches", "server", "file_system"), ("index",)
)
"""What has to be looked at before."""


class Check(JsonObject, Struct, frozen=True):
    """One thing that was looked at."""

    check: str
    """What: `store`, `model`, `file system` …"""
    result: Result
    """`ok`, `note`, `warning` or `error`."""
    about: str
    """What was found; the home folder is `~`."""
    remedy: str
    """What to do, or empty."""


class Diagnosis(JsonObject, Struct, frozen=True):
    """What `doctor` prints."""

    clean: bool
    """Whether there is neither an error nor a warning."""
    checks: list[Check]
    """Each check."""
    first: str
    """The command to run first, or what else to do; empty where there is nothing to do."""


def run_doctor(options: CommonOptions) -> int:
    """Check this machine: store, settings, index, model, packages, git, server, terminal, agents.

    Documents are for 'filestore status' and 'verify'. It changes nothing and asks no network. The
    answer has no text of yours and no token, and your home folder is '~', so you can pass it on.

    Example: filestore doctor
    """
    checks = list(_Machine(options).checks())
    bad = [one for result in ("error", "warning") for one in checks if one.result == result]
    cures = [_command(one.remedy) or one.remedy for one in bad if one.remedy]
    # A sentence without a remedy says itself what to do.
    first = next(iter(cures or [one.about for one in bad]), "")
    if _context.printed_json(options, Diagnosis(not bad, checks, first)):
        return 1 if bad else 0
    for one in checks:
        indent, text = min(21, _terminal.room() // 2), f"{one.result:8}{one.check:12} {one.about}"
        for line in _output.folded(text, indent=indent):
            _output.line(line, style=_STYLES[one.result])
        if one.remedy:
            cure = f"try: {command}" if (command := _command(one.remedy)) else one.remedy
            _output.line(" " * indent + cure)
    _output.line(f"first: {first}" if first else _NOTHING)
    return 1 if bad else 0


class _Machine:
    """The checks, in the order in which one needs another."""

    _settings: settings.Settings
    _parts: session.Parts
    _recorded: str | None = None
    _root = ""
    _folders = 0

    def __init__(self, options: CommonOptions) -> None:
        self._options = options
        self._configuration = layout.configuration_folder()
        self._done: set[str] = set()

    def checks(self) -> Iterator[Check]:
        about_store = (self.store, self.settings, self.index, self.model, self.extras, self.git)
        others = (self.watches, self.server, self.file_system, self.terminal, self.agents)
        for look in (self.version, *about_store, *others):
            if not self._done.issuperset(_NEEDS.get(name := look.__name__, ())):
                continue
            try:
                seen = look()
                self._done.add(name)
            except errors.UsageError:
                raise
            except (FilestoreError, OSError, sqlite3.Error) as error:
                seen = "error", getattr(error, "message", str(error)), getattr(error, "remedy", "")
            result, about, remedy = seen
            yield Check(name.replace("_", " "), result, _shown(about), _shown(remedy))

    def version(self) -> Seen:
        python = f"Python {platform.python_version()}"
        return "ok", f"filestore {__version__}, {python}, {platform.platform()}", ""

    def store(self) -> Seen:
        named = "" if self._options.store else caller.named_store()
        why = "named by --store" if self._options.store else "in or around the working folder"
        why = f"named by FILESTORE={named}" if named else why
        try:
            self._root = _context.root_of(self._options)
        except FilestoreError as error:
            if not named:
                raise
            raise FilestoreError(f"{why}: {error.message}", remedy="unset FILESTORE") from error
        path = os.path.join(self._root, layout.SETTINGS)
        self._settings = settings.parse(settings.read(path), name=path)
        return "ok", f"{self._root}, {why}", ""

    def settings(self) -> Seen:
        path = os.path.join(self._configuration, settings.USERS)
        unknown = settings.users(self._configuration)[1]
        unknown += self._settings.unknown if "store" in self._done else ()
        settings.user_inspector(self._configuration)
        settings.user_agents(self._configuration)
        user_config.read_machine(self._configuration, os.environ)
        if unknown:
            return "warning", listed(unknown), "remove the key, or spell it as the manual does"
        return "ok", path if os.path.exists(path) else f"none of yours in {path}", ""

    def index(self) -> Seen:
        self._parts = parts = session.Parts(self._root, configuration=self._configuration)
        places = parts.places
        self._done.add("index")
        with contextlib.closing(parts), parts.comparing() as catalog:
            self._recorded, self._folders = catalog.meta("fingerprint"), len(catalog.folders())
            found = fulltext_file.findings(places, catalog, hashes=False)
            if self._settings.has_own_vectors:
                found += parts.home.findings(catalog, hashes=False)
        for one in found:
            if one.code.endswith("-foreign"):
                return "warning", f"{one.path} is another user's: {one.detail}", "filestore sync"
        if (refused := part.unwritable(places.sidecar)) is not None:
            place, reason, remedy = part.explained(places.lock, refused)
            return "warning", f"read-only, so no sync updates it: {place}: {reason}", remedy
        return "ok", f"{places.sidecar}, yours", ""

    def model(self) -> Seen:
        name, opened = self._settings.embedder, self._parts.model.tried()
        if opened.embedder is None:
            why = opened.why_not
            result: Result = "note" if isinstance(why, EndpointUnasked) else "warning"
            return result, f"{why.message}; until then words are searched, not meaning", why.remedy
        own = opened.embedder.fingerprint
        if self._recorded not in (None, own):
            wrong = model.ModelChanged(name)
            return "error", f"{wrong.message}: {self._recorded}, expected {own}", wrong.remedy
        return "ok", f"{name}, {opened.embedder.dimension} numbers a passage", ""

    def extras(self) -> Seen:
        lacking = {one: found for one in errors.PACKAGES if (found := missing_packages(one))}
        kind = self._settings.vectors_in if "store" in self._done else ""
        if kind in lacking:
            about = f"the store's backend {kind} needs {' and '.join(lacking[kind])}, not installed"
            return "error", about, errors.install_line(kind)
        ready = [one for one in errors.PACKAGES if one not in lacking]
        return "ok", f"{', '.join(ready)}; not installed: {', '.join(lacking) or 'none'}", ""

    def git(self) -> Seen:
        if programs.find_program("git") is None:
            return "warning", "there is no git in PATH", "install git, or add its folder to PATH"
        if not self._root or process.work_tree(self._root) is None:
            return "ok", "installed; no work tree around the store", ""
        place = hooks.repository(self._root)
        found, old = hooks.status(place), ", ".join(hooks.outdated(place))
        lacking = [one.name for one in found if not one.serves]
        if len(lacking) == len(found):
            return "note", "no hooks, so no checkout updates the index", "filestore git install"
        if lacking or old:
            about = f"hooks missing: {', '.join(lacking) or 'none'}; outdated: {old or 'none'}"
            return "warning", about, "filestore git install"
        return "ok", f"hooks: {', '.join(one.name for one in found)}", ""

    def watches(self) -> Seen:
        try:
            require_watchable(self._parts.places.chunked, folders=self._folders)
        except UnwatchableError as error:
            return "warning" if error.remedy else "note", error.message, error.remedy
        return "ok", f"the system reports changes in {_output.count(self._folders, 'folder')}", ""

    def server(self) -> Seen:
        path = os.path.join(self._parts.places.sidecar, wire.NAME)
        if listening.is_served(self._parts.places.sidecar):
            return "ok", "one answers the commands of this store", ""
        if os.path.lexists(path):
            return "warning", f"{path} is left of a dead server", "filestore serve"
        return "ok", "none runs for this store", ""

    def file_system(self) -> Seen:
        lock.require_locks(self._parts.places.lock)
        return "ok", "locks files", ""

    def terminal(self) -> Seen:
        programs.require_utf8()
        if (editor := editor_command(os.environ)).problem:
            return "warning", editor.problem, ""
        shown = f"{width} columns" if (width := _terminal.columns()) else "standard output is none"
        colours = "colours" if _terminal.colours() else "no colours"
        return "ok", f"{shown}, {colours}, {sys.stdout.encoding}, editor {editor.words[0]}", ""

    def agents(self) -> Seen:
        titles = set()
        for word, program in install.PROGRAMS.items():
            for command in install.commands_in(program):
                titles.add(program.title)
                if programs.find_program(command) is None:
                    about = f"{program.title} starts {command}, which is gone"
                    return "warning", about, f"filestore mcp --install {word} --yes"
        if titles and missing_packages("mcp"):
            about = f"{', '.join(sorted(titles))}: MCP is not installed"
            return "error", about, errors.extra_line("server")
        return "ok", f"started by {', '.join(sorted(titles)) or 'no program'}", ""


def _command(remedy: str) -> str:
    """The command with which a remedy begins, if any."""
    return found[1] if (found := _RUN.match(remedy)) else errors.way_out(remedy)[0]


def _shown(text: str) -> str:
    """A text on one line, with `~` for the home folder, also at the start of a quoted path."""
    home = os.path.expanduser("~")
    for folder in {home, os.path.realpath(home)} - {"/", "~"}:
        place = rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])"
        text = re.sub(place, "~", re.sub(f"'{place}/", "~/'", text))
    return shown_path(text)
