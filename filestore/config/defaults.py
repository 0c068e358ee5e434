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
    environment: Mapping[str, str] | None = os.environ,
) -> Default:
    """One value.

    Args:
        name: Of a field of `UserDefaults`.
        own: What the user's settings say.
        configuration: The user's configuration folder, which has them.
        environment: The variables of the process; None where they are not those of who asks.
    """
    if name == "color" and environment is not None and (wanted := wanted_colors()) != "auto":
        before = (one for one in _COLORS if environment.get(one, "") not in ("", "0"))
        return Default(name, wanted, next(before, "TERM"))
    variables = environment or {}
    for variable in _FIRST.get(name, ()):
        if variable in variables:
            return Default(name, variables[variable], variable)
    if (chosen := getattr(own, name)) is not None:
        return Default(name, str(chosen), os.path.join(configuration, settings.USERS))
    for variable in _LAST.get(name, ()):
        if variables.get(variable, "").strip() or (name == "pager" and variable in variables):
            return Default(name, variables[variable], variable)
    return Default(name, USUAL[name], "")
