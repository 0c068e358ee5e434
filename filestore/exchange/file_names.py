"""Names of the files that are written for a person, whatever a stranger called what is in them.

Pure. One rule: a name is one name in one folder, no file system confuses it with another of the
same folder, and it leads nowhere else.
"""

import re
from typing import Final

from msgspec import Struct, field

from filestore.config.layout import folded_path
from filestore.verify.names import why_unportable

_MOST_BYTES: Final = 200
"""Of a name without its ending."""
_UNSAFE: Final = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*\\/\u200b-\u200f\u2028-\u202e\ufeff]+')
_NAMELESS: Final = "unnamed"


class FileNames(Struct):
    """The names of one folder."""

    unsafe: re.Pattern[str] = _UNSAFE
    """What no name holds."""
    _taken: set[str] = field(default_factory=set)
    _folders: dict[str, str] = field(default_factory=dict)

    def folder(self, name: str) -> str:
        """The name of a folder: the same for the same."""
        if name not in self._folders:
            self._folders[name] = self.take(name, "")
        return self._folders[name]

    def take(self, name: str, ending: str) -> str:
        """A name as near to what it was called as can be, with an ending."""
        stem = cleaned(name, self.unsafe)
        if why_unportable(stem + ending):  # a device, mostly
            stem = f"_{stem}"
        found, number = stem + ending, 1
        while folded_path(found) in self._taken:
            number += 1
            found = f"{stem} ({number}){ending}"
        self._taken.add(folded_path(found))
        return found


def cleaned(name: str, unsafe: re.Pattern[str] = _UNSAFE) -> str:
    """A name without what could not stand in one: parts that lead up or stay are dropped."""
    text = name.encode("utf-8", "replace").decode()
    parts = [part for part in re.split(r"[/\\]+", text) if part.strip(" .")]
    made = unsafe.sub("-", "-".join(parts)).strip(" -").lstrip(".")
    made = made.encode()[:_MOST_BYTES].decode("utf-8", "ignore").rstrip(" .")
    return made or _NAMELESS
