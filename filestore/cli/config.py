"""What a person wants in every store: each value with where it comes from."""

import os

from msgspec import Struct

from filestore.cli import _context, _output
from filestore.config import defaults, layout, settings
from filestore.core.schema import JsonObject
from filestore.server.operations import CommonOptions


class Preference(JsonObject, Struct, frozen=True):
    """One default of a person."""

    name: str
    """`limit`, `mode`, `color`, `pager`, `editor` or `links`."""
    value: str
    """As it holds; empty for none."""
    origin: str
    """A variable, the path of the user's settings, or empty for what was not chosen."""


class Preferences(JsonObject, Struct, frozen=True):
    """What `config` prints."""

    file: str
    """Where the user's settings lie, or would; their table `defaults` has these names."""
    defaults: tuple[Preference, ...]
    """Each default."""


class Config(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""


def run_config(options: Config) -> int:
    """List what you want in every store, with its origin: a variable, your settings, or neither.

    Write `limit`, `mode`, `color`, `pager`, `editor` and `links` in the table `[defaults]` of your
    `settings.toml`; `limit` and `mode` hold on a terminal alone. No store can set them.

    Example: filestore config
    """
    if isinstance(options.store, str):
        # It holds in every store; an empty name is a mistake all the same.
        layout.require_named(options.store)
    folder = layout.configuration_folder()
    file, unknown = os.path.join(folder, settings.USERS), settings.users(folder)[1]
    own = defaults.own_defaults(folder)
    rows = tuple(
        Preference(one.name, one.value, one.origin)
        for one in (defaults.default(name, own, folder) for name in defaults.USUAL)
    )
    _context.tell_unknown(unknown)
    if options.json:
        _output.write_json(Preferences(file, rows).to_dict())
        return 0
    for row in rows:
        origin = f"  ({row.origin})" if row.origin else ""
        _output.line(f"{row.name:8}{_output.one_line(row.value) or 'none'}{origin}")
    _output.note(f"your settings: {file}")
    return 0
