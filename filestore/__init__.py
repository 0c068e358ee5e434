"""A knowledge store of files: chunk files are the truth, a sidecar follows, search answers.

The public names, loaded as they are first used, so that a command pays only for what it needs.
"""

from typing import TYPE_CHECKING, Any

from filestore._version import __version__
from filestore.safe_text import safe_text, shown_path

if TYPE_CHECKING:
    from filestore.errors import FilestoreError, RefusedError, UsageError
    from filestore.findings import Finding
    from filestore.inspecting import Status
    from filestore.progress import Progress
    from filestore.roots import NoStoreError, find_root
    from filestore.search import Answer, Filters, Hit
    from filestore.sources import SourcePath, sources_of
    from filestore.store import Shown, Store

_HOMES = {
    "Answer": "search",
    "FilestoreError": "errors",
    "Filters": "search",
    "Finding": "findings",
    "Hit": "search",
    "NoStoreError": "roots",
    "Progress": "progress",
    "RefusedError": "errors",
    "Shown": "store",
    "SourcePath": "sources",
    "Status": "inspecting",
    "Store": "store",
    "UsageError": "errors",
    "find_root": "roots",
    "sources_of": "sources",
}

__all__ = [
    "Answer",
    "FilestoreError",
    "Filters",
    "Finding",
    "Hit",
    "NoStoreError",
    "Progress",
    "RefusedError",
    "Shown",
    "SourcePath",
    "Status",
    "Store",
    "UsageError",
    "__version__",
    "find_root",
    "safe_text",
    "shown_path",
    "sources_of",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'filestore' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"filestore.{home}"), name)
