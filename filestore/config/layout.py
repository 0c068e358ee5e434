"""Where the parts of a store lie, from its root and its sidecar folder. Touches no disk."""

import os
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.core.paths import CHUNKS, StorePath, Tree
from filestore.core.paths import SETTINGS as SETTINGS

if TYPE_CHECKING:
    from filestore.fs.part import Kind
    from filestore.fs.scan import TopRules

RECORD_NAME: Final = "meta.json"
CATALOG: Final = "catalog.sqlite"
EMBEDDINGS: Final = "embeddings.sqlite"
DOCUMENTS: Final = "documents.sqlite"
GENERATED: Final = "generated.jsonl"
ENRICH_LOCK: Final = "enrich.lock"
LINES: Final = "index.jsonl"
FULLTEXT: Final = "fulltext"
PAST: Final = "past"
QUARANTINE: Final = "quarantine"
UNDO: Final = "undo"
"""Parts of a sidecar; as findings name them: `Places.part`."""
_DATABASES: Final = (CATALOG, EMBEDDINGS, DOCUMENTS)


class Part(Struct, frozen=True, kw_only=True):
    """What lies in a sidecar under a name, and what has to stand there: see `fs.part`."""

    name: str
    """Relative to the sidecar; `*` stands for what is counted or hashed."""
    kind: "Kind" = "file"
    is_replaced: bool = False
    """Whether a writer moves away what else stands there before it writes: nothing opens it by
    itself. Each database is judged as it is opened, what lies deeper by whoever has its folder."""


PARTS: Final = (
    *(
        Part(name=name + suffix)
        for name in _DATABASES
        for suffix in ("", "-wal", "-shm", "-journal")
    ),
    Part(name="lock"),
    Part(name="clock", is_replaced=True),
    Part(name=".gitignore"),
    Part(name=GENERATED, is_replaced=True),
    Part(name=ENRICH_LOCK, is_replaced=True),
    Part(name="server.sock", kind="socket"),
    Part(name=LINES),
    Part(name="vectors-*.faiss", kind="shared"),
    Part(name=FULLTEXT, kind="folder"),
    Part(name=f"{FULLTEXT}/stamp.json", kind="shared"),
    Part(name=f"{FULLTEXT}/part-*", kind="folder"),
    Part(name=f"{FULLTEXT}/part-*/*", kind="shared"),
    Part(name=QUARANTINE, kind="folder"),
    Part(name=f"{QUARANTINE}/*"),
    Part(name=UNDO, kind="folder"),
    Part(name=f"{UNDO}/*", kind="folder"),
    Part(name=f"{UNDO}/*/*"),
    Part(name=PAST, kind="folder"),
    Part(name=f"{PAST}/lock"),
    Part(name=f"{PAST}/blob-names"),
    Part(name=f"{PAST}/building", kind="folder"),
    Part(name=f"{PAST}/*", kind="folder"),
    Part(name=f"{PAST}/*/used"),
    Part(name=f"{PAST}/*/notes.json"),
    Part(name=f"{PAST}/*/submodules.json"),
    Part(name=f"{PAST}/*/tree", kind="folder"),
)
"""Every part of a sidecar. Below `tree` lies a store of its own, with such a sidecar. A backend
that keeps files has another place where the settings name one."""


class Places(Struct, frozen=True, kw_only=True):
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
        if self.tree.is_written:
            return os.path.join(self.root, ".undo")
        return os.path.join(self.sidecar, UNDO)

    @property
    def undo_name(self) -> StorePath:
        """The same as findings name it, wherever it lies."""
        return StorePath(".undo") if self.tree.is_written else self.part(UNDO)

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
        return os.path.join(self.sidecar, QUARANTINE)


def folded_path(path: str) -> str:
    """A path as a file system that ignores case and composition sees it."""
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


MAX_SOURCE_BYTES: Final = 256 * 1024 * 1024
