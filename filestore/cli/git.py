"""What git runs, and the hooks by which it does."""

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Struct

from filestore.cli import _output
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.findings import is_clean
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.server.operations import CommonOptions, argument, option

if TYPE_CHECKING:
    from filestore.git.hooks import Hook

# The store is loaded where it is needed: a hook runs at every checkout.
_WAIT_S: Final = 60.0
"""How long a sync in the background waits for the one before it."""
_EMBED_S: Final = 2.0
_STATES: Final = {
    "installed": "installed",
    "updated": "installed",
    "removed": "removed",
    "absent": "not installed",
    "foreign": "not ours, left as it is",
    "called": "not ours, but it calls filestore",
}


class Hooks(JsonObject, Struct, frozen=True):
    """What `git` prints."""

    folder: str
    """Where git looks for hooks."""
    store: str
    """The store, as the hooks name it."""
    note: str
    """What keeps hooks from working, or empty."""
    hooks: "tuple[Hook, ...]"
    """Each hook."""


class Git(CommonOptions, frozen=True, kw_only=True):
    """What the command takes; what hooks call it with is not shown."""

    action: Annotated[
        Literal["install", "remove", "status", "hook", "follow"],
        argument("install|remove|status"),
    ]
    """install or remove the hooks, or show which are installed"""
    stores: Annotated[list[str], option(None, "--in", hidden=True)] = []
    """the stores that a hook serves"""
    arguments: Annotated[list[str], argument("NAME", hidden=True)] = []
    """the hook's name, and what git gives it"""


def run_git(options: Git) -> int:
    """Git hooks that update the index after checkout, merge and rebase, and check staged files.

    Example: filestore git install
    """
    if options.action == "hook":
        return _hook(options)
    if options.arguments:
        raise UsageError(
            f"'git {options.action}' got an unexpected argument {options.arguments[0]!r}",
            remedy="filestore git --help",
        )
    if options.action == "follow":
        return _follow(options)
    from filestore.cli import _context
    from filestore.git.hooks import install, is_shell_script, remove, repository, status

    with _context.open_store(options) as store:
        place = repository(store.root)
    removes = options.action == "remove"
    hooks = {"install": install, "remove": remove, "status": status}[options.action](place)
    found = Hooks(place.hooks, place.store, place.note, hooks)
    if not _context.printed_json(options, found):
        _output.line(f"hooks of {shown_path(place.hooks)}")
        for hook in hooks:
            others = f"; lines of others stay in {shown_path(hook.path)}" if hook.shared else ""
            state = _STATES[hook.state] + (others if hook.state == "removed" else "")
            _output.line(f"    {hook.name}: {state}")
        for hook in hooks:
            path, lines = shown_path(hook.path), hook.line.replace("\n", "\n    ")
            if removes and hook.state == "called":
                _output.say(f"it still calls filestore: take the lines out of {path}:\n    {lines}")
            elif not removes and hook.state == "foreign":
                # There no line before it ends the hook, and the status is that of those behind.
                wanted = f"add this line to {path}, behind its first line"
                if not is_shell_script(hook.path):
                    wanted = f"{path} is not a shell script: have it run this line of shell"
                _output.say(f"{wanted}:\n    {lines}")
        if place.note:
            _output.say(place.note)
    if removes:
        return 1 if any(hook.state == "called" for hook in hooks) else 0
    return 0 if all(hook.serves and hook.state != "foreign" for hook in hooks) else 1


def _hook(options: Git) -> int:
    """What a hook does: git is failed by nothing but findings in what is staged."""
    from filestore.git.hooks import CHECKING, HOOKS, follow

    name = options.arguments[0] if options.arguments else ""
    if name not in HOOKS:
        raise UsageError(f"no hook {name!r}: one of {', '.join(HOOKS)}")
    # A hook speaks to a person; stdout belongs to the reader of git's output.
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        if name == CHECKING:
            return _check(options.stores)
        for done in follow(os.getcwd(), options.stores):
            store = shown_path(done.store)
            if not done.finished:
                message = "still updating in the background; see 'filestore status'"
                _output.say(f"filestore: {store}: {message}")
            for line in done.output.splitlines():
                _output.say(f"filestore: {store}: {line.removeprefix('filestore: ')}")
    except FilestoreError as error:
        _output.report(error, as_json=False)
    return 0


def _check(stores: list[str]) -> int:
    """Check what is staged in every store; tells the hook to stop the commit where it finds.

    What cannot be checked is reported, and stops nothing but where the settings are why: these are
    committed, too, and no clone could use them.
    """
    from filestore.config.settings import SettingsError
    from filestore.git.hooks import EXIT_STOP, served_roots
    from filestore.store import Store

    codes = {0}
    for name, root in served_roots(os.getcwd(), stores):
        try:
            with Store(root) as store:
                checked = store.staged()
        except FilestoreError as error:
            _output.report(error, as_json=False)
            codes.add(EXIT_STOP if isinstance(error, SettingsError) else error.exit_code)
            continue
        if checked.clean:
            continue
        blocked = "commit blocked: " if checked.stops_commit else ""
        _output.say(f"filestore: {blocked}problems in staged files of {shown_path(name)}:")
        _output.findings([finding for finding in checked.findings if finding.severity != "I"])
        if blocked:
            _output.say("  fix and stage it; 'git commit --no-verify' commits it as it is")
            if any(finding.code == "conflict-markers" for finding in checked.findings):
                _output.say("  'filestore status' prints the commands that resolve a conflict")
            codes.add(EXIT_STOP)
    return max(codes)


def _follow(options: Git) -> int:
    """Follow originals and sync; say what concerns a person who uses git."""
    from filestore.cli import _context

    with _context.open_store(options) as store:
        store.embed_for(_EMBED_S)
        # A checkout asks no service.
        embed = store.model.reaches is None
        updated = store.update(followed_only=True, embed=embed, wait_s=_WAIT_S)
        clean = is_clean(updated.remaining)
    lines = [
        f"{one.status} {shown_path(one.resource)} from its original"
        for one in (*updated.added, *updated.updated, *updated.removed)
    ]
    if updated.conflicts:
        files = _output.count(len(updated.conflicts), "file")
        lines.append(f"{files} kept: your edit and the new text overlap; see 'filestore status'")
    lines += [f"failed {shown_path(one.source)}: {one.error}" for one in updated.failed]
    report = updated.synced
    if report.applied:
        lines.append(_output.done(report.applied))
    waiting = [one.detail for one in report.remaining if one.code == "vector-pending"]
    lines += [f"{detail}; 'filestore sync' embeds the rest" for detail in waiting]
    counts = Counter(
        one.code for one in report.remaining if one.severity != "I" and not one.meaning.awaits_model
    )
    if counts:
        left = ", ".join(f"{number:,} {code}" for code, number in counts.items())
        lines.append(f"left for you: {left}; see 'filestore status'")
    for line in lines:
        _output.say(line)
    return 0 if clean else 1
