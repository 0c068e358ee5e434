"""Where the parts of a store lie, from its root and its sidecar folder. Touches no disk."""

import os
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filestore.core.paths import CHUNKS, StorePath, Tree
from filestore.core.paths import SETTINGS as SETTINGS

if TYPE_CHECKING:
    from filestore.fs.scan import TopRules

RECORD_NAME: Final = "meta.json"
CATALOG: Final = "catalog.sqlite"
EMBEDDINGS: Final = "embeddings.sqlite"
FULLTEXT: Final = "fulltext"
IN_PLACE_UNDO: Final = "undo"
"""Parts of a sidecar; as findings name them: `Places.part`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The paths of one store."""

    root: str
    """Absolute path of the folder with `filestore.toml`."""
    sidecar: str
    """Absolute path of the derived data: in the root unless the user says else."""
    configuration: str = ""
    """The user's configuration folder, which no store brings along; "" for none."""
    tree: Tree = CHUNKS
    """Where the truth lies below the root."""
    rules: "TopRules | None" = None
    """What of a folder of documents belongs to the tree; None where all of it does."""
    fetch: Callable[[str], None] | None = None
    """Puts a file of an earlier commit where it is looked for; None where files lie as they are."""

    @property
    def settings(self) -> str:
        """The settings file."""
        return os.path.join(self.root, SETTINGS)

    @property
    def chunked(self) -> str:
        """The truth."""
        return os.path.join(self.root, self.tree.folder) if self.tree.folder else self.root

    @property
    def is_in_place(self) -> bool:
        """Whether the root holds the documents themselves: nothing is ever written into it."""
        return not self.tree.folder

    @property
    def sidecar_name(self) -> StorePath:
        """The folder of the derived data as findings name it, wherever it lies."""
        return self.tree.sidecar

    def part(self, name: str) -> StorePath:
        """A derived part, or "" for the folder of all, as findings name it."""
        return self.tree.part(name)

    @property
    def source(self) -> str:
        """Copies of originals from elsewhere; beside documents there are none."""
        return os.path.join(self.root, "source")

    @property
    def undo(self) -> str:
        """Originals kept before a truth file is changed."""
        if self.is_in_place:
            return os.path.join(self.sidecar, IN_PLACE_UNDO)
        return os.path.join(self.root, ".undo")

    @property
    def undo_name(self) -> StorePath:
        """The same as findings name it, wherever it lies."""
        return self.part(IN_PLACE_UNDO) if self.is_in_place else StorePath(".undo")

    @property
    def catalog(self) -> str:
        """The SQLite catalog."""
        return os.path.join(self.sidecar, CATALOG)

    @property
    def embeddings(self) -> str:
        """The SQLite file of embeddings."""
        return os.path.join(self.sidecar, EMBEDDINGS)

    @property
    def fulltext(self) -> str:
        """The folder of the tantivy index."""
        return os.path.join(self.sidecar, FULLTEXT)

    @property
    def lock(self) -> str:
        """The writer's lock file."""
        return os.path.join(self.sidecar, "lock")

    @property
    def clock(self) -> str:
        """The probe that reads the file system's clock."""
        return os.path.join(self.sidecar, "clock")

    @property
    def quarantine(self) -> str:
        """Damaged parts, moved out of the way."""
        return os.path.join(self.sidecar, "quarantine")


def folded_path(path: str) -> str:
    """A path as a file system that ignores case and composition sees it."""
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


MAX_SOURCE_BYTES: Final = 256 * 1024 * 1024
