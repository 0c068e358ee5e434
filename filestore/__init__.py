"""A knowledge store of files: chunk files are the truth, a sidecar follows, search answers.

The public names, loaded as they are first used, so that a command pays only for what it needs.
"""

from typing import TYPE_CHECKING, Any

from filestore._version import __version__
from filestore.safe_text import safe_text, shown_path

if TYPE_CHECKING:
    from filestore.adding import AddReport
    from filestore.batches import Group
    from filestore.browsing import About, AboutResource, UnknownPathError, VectorFacts
    from filestore.catalog import CatalogNewerError
    from filestore.errors import FilestoreError, RefusedError, UsageError
    from filestore.evidence import Evidence
    from filestore.example import copy_example
    from filestore.exploring import Explorer, Neighbour, NoVectorError, VectorMap
    from filestore.findings import CODES, Code, Finding, is_clean
    from filestore.inspecting import Status
    from filestore.listing import ChunkRow, Counts, Listing, ResourceRow, Wanted
    from filestore.pictures import Histogram
    from filestore.plans import KINDS, Left, Plan, Policy, Step, selected, without
    from filestore.progress import Progress
    from filestore.rechecking import TooManyPathsError
    from filestore.repair import RepairReport, level_for
    from filestore.roots import NoStoreError, find_root
    from filestore.search import Answer, Filters, Hit
    from filestore.sides import Choice, NoSidesError, Sides
    from filestore.sources import SourcePath, sources_of
    from filestore.store import Shown, Store
    from filestore.syncing import SyncReport
    from filestore.undoing import Turned
    from filestore.verify import Checked

_HOMES = {
    "CODES": "findings",
    "KINDS": "plans",
    "About": "browsing",
    "AboutResource": "browsing",
    "AddReport": "adding",
    "Answer": "search",
    "CatalogNewerError": "catalog",
    "Checked": "verify",
    "Choice": "sides",
    "ChunkRow": "listing",
    "Code": "findings",
    "Counts": "listing",
    "Evidence": "evidence",
    "Explorer": "exploring",
    "FilestoreError": "errors",
    "Filters": "search",
    "Finding": "findings",
    "Group": "batches",
    "Histogram": "pictures",
    "Hit": "search",
    "Left": "plans",
    "Listing": "listing",
    "Neighbour": "exploring",
    "NoSidesError": "sides",
    "NoStoreError": "roots",
    "NoVectorError": "exploring",
    "Plan": "plans",
    "Policy": "plans",
    "Progress": "progress",
    "RefusedError": "errors",
    "RepairReport": "repair",
    "ResourceRow": "listing",
    "Shown": "store",
    "Sides": "sides",
    "SourcePath": "sources",
    "Status": "inspecting",
    "Step": "plans",
    "Store": "store",
    "SyncReport": "syncing",
    "TooManyPathsError": "rechecking",
    "Turned": "undoing",
    "UnknownPathError": "browsing",
    "UsageError": "errors",
    "VectorFacts": "browsing",
    "VectorMap": "exploring",
    "Wanted": "listing",
    "copy_example": "example",
    "find_root": "roots",
    "is_clean": "findings",
    "level_for": "repair",
    "selected": "plans",
    "sources_of": "sources",
    "without": "plans",
}

__all__ = [
    "CODES",
    "KINDS",
    "About",
    "AboutResource",
    "AddReport",
    "Answer",
    "CatalogNewerError",
    "Checked",
    "Choice",
    "ChunkRow",
    "Code",
    "Counts",
    "Evidence",
    "Explorer",
    "FilestoreError",
    "Filters",
    "Finding",
    "Group",
    "Histogram",
    "Hit",
    "Left",
    "Listing",
    "Neighbour",
    "NoSidesError",
    "NoStoreError",
    "NoVectorError",
    "Plan",
    "Policy",
    "Progress",
    "RefusedError",
    "RepairReport",
    "ResourceRow",
    "Shown",
    "Sides",
    "SourcePath",
    "Status",
    "Step",
    "Store",
    "SyncReport",
    "TooManyPathsError",
    "Turned",
    "UnknownPathError",
    "UsageError",
    "VectorFacts",
    "VectorMap",
    "Wanted",
    "__version__",
    "copy_example",
    "find_root",
    "is_clean",
    "level_for",
    "safe_text",
    "selected",
    "shown_path",
    "sources_of",
    "without",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'filestore' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"filestore.{home}"), name)
