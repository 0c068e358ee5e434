"""What a person wants in every store: variables, then `settings.toml` of the user, then the usual.

One rule: no store has a say. A clone chooses no program that is run, and no address that is shown.
"""

import os
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from filestore.config import settings
from filestore.config.settings import UserDefaults
from filestore.core.colors import wanted_colors


class Default(Struct, frozen=True):
    """A value, and where it comes from."""

    name: str
    value: str
    origin: str


_FIRST: Final = {"pager": ("FILESTORE_PAGER",), "links": ("FILESTORE_EDITOR_URI",)}
_COLORS: Final = ("NO_COLOR", "FORCE_COLOR", "TERM")
_LAST: Final = {"pager": ("PAGER",), "editor": ("VISUAL", "EDITOR")}
"""Variables before and after the user's settings: those of filestore, and those of any program."""
USUAL: Final = {
    "limit": "10",
    "mode": "hybrid",
    "color": "auto",
    "pager": "less",
    "editor": "vi or nano",
    "links": "",
}


def own_defaults(configuration: str) -> UserDefaults:
    """What the user's settings say.

    Raises:
        SettingsError: They cannot be read.
    """
    return settings.user_table(configuration, "defaults", UserDefaults)


def default(
    name: str,
    own: UserDefaults,
    configuration: str,
    environment: Mapping[str, str] = os.environ,
) -> Default:
    """One value.

    Args:
        name: Of a field of `UserDefaults`.
        own: What the user's settings say.
        configuration: The user's configuration folder, which has them.
        environment: The variables of the process.
    """
    if name == "color" and (wanted := wanted_colors()) != "auto":
        before = (one for one in _COLORS if environment.get(one, "") not in ("", "0"))
        return Default(name, wanted, next(before, "TERM"))
    for variable in _FIRST.get(name, ()):
        if variable in environment:
            return Default(name, environment[variable], variable)
    if (chosen := getattr(own, name)) is not None:
        return Default(name, str(chosen), os.path.join(configuration, settings.USERS))
    for variable in _LAST.get(name, ()):
        if environment.get(variable, "").strip() or (name == "pager" and variable in environment):
            return Default(name, environment[variable], variable)
    return Default(name, USUAL[name], "")
