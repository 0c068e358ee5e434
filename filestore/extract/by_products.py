"""What tools and editors leave in a folder of documents, told by names.

One rule: nothing here is a document that a person wrote, so it is passed over in silence.
"""

import re
from collections.abc import Collection
from typing import Final

from filestore.fs import disk

LITTER_STARTS: Final = (
    *(".", "~$", "#", "genindex", "search", "py-modindex"),
    *("objects.inv", "Thumbs.db", "desktop.ini"),
)
"""Every name of a file that is litter begins with one of these, or ends with one of those."""
LITTER_ENDS: Final = ("~", ".swp", ".swo")
TOOL_MARKS: Final = ("pyvenv.cfg", "CACHEDIR.TAG")
"""Files by which a folder may say that tools made it."""

_PYTHON_ENVIRONMENT, _CACHE_TAG = TOOL_MARKS
_FOLDERS: Final = frozenset(
    {"__pycache__", "node_modules", "_static", "_images", "_sources", "_downloads", "_modules"}
)
_FILES: Final = re.compile(
    r"\..*|.*~|~\$.*|#.*#|.*\.sw[op]|genindex(-.*)?\.html?|search\.html?|searchindex\.js"
    r"|py-modindex\.html?|objects\.inv|Thumbs\.db|desktop\.ini",
    re.DOTALL,
)
_CACHE_SIGNATURE: Final = b"Signature: 8a477f597d28d172789f06886806bc55"
"""How the file begins that marks a folder as somebody's cache."""


def is_litter(name: str, *, is_folder: bool) -> bool:
    """Whether a name is hidden, an editor's own, or one that a tool gives to what it makes."""
    if is_folder:
        return name in _FOLDERS or name.startswith(".") or name.endswith(".egg-info")
    return _FILES.fullmatch(name) is not None


def is_made_by_tools(handle: int, names: Collection[str]) -> bool:
    """Whether a folder is a cache that says so, or a Python environment.

    Args:
        handle: Its directory handle.
        names: What is in it; others than `TOOL_MARKS` do not matter.
    """
    if _PYTHON_ENVIRONMENT in names:
        return True
    if _CACHE_TAG not in names:
        return False
    try:
        data, _ = disk.read_at(handle, _CACHE_TAG, limit=len(_CACHE_SIGNATURE))
    except OSError as error:
        disk.pass_limits(error)
        return False
    return data == _CACHE_SIGNATURE
