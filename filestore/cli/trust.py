"""Allow what a store uses outside itself: services, its own prompts, originals elsewhere."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Struct, UnsetType

from filestore.cli import _context, _diagnostics, _output
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.server.options import CommonOptions, option

if TYPE_CHECKING:
    from filestore.verify.trust import Reaches

EXAMPLE = "filestore trust"

_SHOWN = 10
"""Originals that are named; the rest is counted."""


class Trusted(JsonObject, Struct, frozen=True, kw_only=True):
    """What `trust` prints."""

    root: str
    """The store."""
    reaches: Sequence[str]
    """What it names outside itself: services by their whole address, folders,
    `prompts sha256:…`."""
    sources: Sequence[str]
    """Originals outside the work tree."""
    folders: Sequence[str]
    """The folders that these lie in; `/` at the end: with all below."""
    allowed: Sequence[str]
    """Folders in which it may look for originals, given to `add` on this machine or trusted; `/` at
    the end: with all below."""
    closed: Sequence[str]
    """Originals that are hidden or of no known format, and that you did not add: never opened."""
    prompts: Sequence[str]
    """Files of the store that instruct its generator."""
    trusted: bool | UnsetType
    """Whether it is allowed now; not with `--list`."""


class Options(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    list: Annotated[bool, option(group="what")] = False
    """only show what it would allow"""
    revoke: Annotated[bool, option(group="what")] = False
    """revoke what was allowed"""
    yes: bool = False
    """do not ask"""


def run(options: Options) -> int:
    """Say what settings and records name now, ask a person who can answer, and allow it."""
    with _context.open_store(options) as store:
        reaches, root = store.reaches(), store.root
        if not options.json:
            _words(root, reaches, options)
        if options.revoke:
            store.distrust()
        elif not options.list:
            # A script that says 'trust' means it.
            if reaches.names and not options.yes and sys.stdin.isatty():
                if options.json:
                    _told(root, reaches, _diagnostics.say)
                sys.stdout.flush()
                _diagnostics.go_on("allow it?", refused="nothing was allowed")
            store.trust(reaches)
    if options.json:
        prompts = reaches.prompts.files if reaches.prompts is not None else ()
        trusted = Trusted(
            root=root,
            reaches=reaches.names,
            sources=reaches.sources,
            folders=reaches.folders,
            allowed=reaches.allowed,
            closed=reaches.closed,
            prompts=prompts,
            trusted=UNSET if options.list else not options.revoke,
        )
        _output.write_json(trusted.to_dict())
    return 0


def _words(root: str, reaches: "Reaches", options: Options) -> None:
    if options.revoke:
        names = dict.fromkeys([*reaches.names, *reaches.allowed])
        _output.line(f"{', '.join(map(shown_path, names)) or 'nothing'}: not allowed for {root}")
        return
    if reaches.names:
        _told(root, reaches, _output.line)
    else:
        _output.line("nothing to allow: this store uses nothing outside it")
    if options.list and reaches.allowed:
        _output.line(f"{root} looks for originals in these folders, added or trusted:")
        for folder in reaches.allowed:
            _output.line(f"    {shown_path(folder)}")
    if options.list and reaches.closed:
        _output.line("never opened: hidden or of no known format, and you did not add them:")
        for path in reaches.closed[:_SHOWN]:
            _output.line(f"    {shown_path(path)}")
        if len(reaches.closed) > _SHOWN:
            _output.line(f"    … and {len(reaches.closed) - _SHOWN} more")


def _told(root: str, reaches: "Reaches", line: Callable[[str], None]) -> None:
    for service in dict.fromkeys((reaches.service, reaches.beside)):
        if service is not None:
            line(f"the texts of {root} may be sent to {service}")
    if reaches.generator is not None:
        line(f"questions and summaries of the texts of {root} may be made by {reaches.generator}")
    if reaches.backend is not None:
        line(f"texts and vectors of {root} may be kept in {reaches.backend}")
    if reaches.prompts is not None:
        line("the model that makes them may be instructed by, as they are now:")
        for path in reaches.prompts.files:
            line(f"    {path}")
    if reaches.folders:
        number = _output.count(len(reaches.sources), "original")
        line(f"documents in these folders may be read, for {number} outside {root}")
        line("('/' at the end: with all below):")
        for folder in reaches.folders:
            line(f"    {shown_path(folder)}")
