"""Which store a command is for, and where its parts lie, from its root and its sidecar folder."""

import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.core.caller import leads
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.paths import CHUNKS, DOCUMENTS_SIDECAR, SIDECAR, StorePath, Tree
from filestore.core.paths import SETTINGS as SETTINGS
from filestore.core.paths import folded_path as folded_path
from filestore.core.safe_text import inner_word

if TYPE_CHECKING:
    from filestore.config.door import Door, Rules
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
    """What lies in a sidecar under a name, and what it has to be: see `fs.part`."""

    name: str
    """Relative to the sidecar; `*` is a number or a hash."""
    kind: "Kind" = "file"
    is_replaced: bool = False
    """Whether a writer moves away anything else of that name before it writes: nothing opens it by
    itself. Each database is judged as it is opened, and what lies deeper with its folder."""


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
    door: "Door | None" = None
    """What programs may see, where one asks; None for a person."""
    fetch: Callable[[str], None] | None = None
    """Puts a file of an earlier commit where it is looked for; None where files lie as they are."""

    @property
    def closed(self) -> "Rules | None":
        """What is closed to who asks; None where nothing is."""
        return self.door.closed if self.door is not None and self.door.closed.patterns else None

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
        """Copies of originals from elsewhere; a store in place has none."""
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


MAX_SOURCE_BYTES: Final = 256 * 1024 * 1024


DEFAULT_FOLDER: Final = "file_index"


class NoStoreError(FilestoreError, FileNotFoundError):
    """There is no store where one was expected."""


class UnreadableStoreError(FilestoreError, PermissionError):
    """Whether there is a store cannot be seen."""


def configuration_folder() -> str:
    """The folder of the user's settings."""
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def find_root(start: str, explicit: str | None = None) -> str:
    """The root of a store, without links: however it is named, it is one store.

    Args:
        start: A folder in or around which to look.
        explicit: A folder named by the user, which is then the only one looked at.

    Raises:
        NoStoreError: There is none.
        UnreadableStoreError: The folder that was named cannot be looked into.
        UsageError: The name is empty, as that of a variable which is not set.
    """
    if explicit is not None:
        require_named(explicit)
    folders = [explicit] if explicit is not None else list(ancestors(leads(start)))
    for folder in folders:
        for root in (folder, os.path.join(folder, DEFAULT_FOLDER)):
            if _is_store(root, named=explicit is not None):
                return leads(root)
    for folder in folders:
        if os.path.isfile(os.path.join(folder, DOCUMENTS_SIDECAR, CATALOG)):
            # The commands are pasted where the person is, which may be another folder.
            place = inner_word(folder)
            raise NoStoreError(
                f"{folder} has an index but no {SETTINGS}: without it, it is no store",
                remedy=f"'filestore init --in-place {place}' makes it again; or 'git -C {place}"
                f" checkout BRANCH -- {SETTINGS}' if git has it",
            )
    where = f"in {start} or above"
    if explicit is not None:
        reason = why_no_folder(explicit)
        where = f"in {explicit}{reason and f': it {reason}'}"
        named = "'filestore init' makes one; --store names another"
        if not reason and _has_documents(explicit):
            named = f"'filestore init --in-place {inner_word(explicit)}' indexes its documents"
        raise NoStoreError(f"no store {where}", remedy=named)
    command, does = "filestore init", "makes a store here"
    if _has_documents(start):
        command, does = "filestore init --in-place", "indexes the documents here"
    raise NoStoreError(
        f"no store {where}", remedy=f"'{command}' {does}; --store names one elsewhere"
    )


def _has_documents(folder: str) -> bool:
    """Whether what lies in a folder, without looking far, is likely somebody's documents."""
    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [entry.name for entry in islice(entries, _LOOKED_AT)]
    except OSError:
        return False
    return any(name.lower().endswith(_DOCUMENTS) for name in names)


_LOOKED_AT: Final = 1000
_DOCUMENTS: Final = (".md", ".markdown", ".txt", ".pdf", ".docx", ".odt", ".html", ".org", ".rst")


def require_named(path: str) -> None:
    """Refuse what a variable that is not set leaves in the place of a folder.

    Raises:
        UsageError: The text is empty.
    """
    if not path:
        raise UsageError("the name of the store is empty: name its folder; '.' is this one")


def why_no_folder(path: str) -> str:
    """Why a path is no folder; "" where it is one, or nothing is there."""
    if os.path.isdir(path) or not os.path.lexists(path):
        return ""
    return "is not a folder" if os.path.exists(path) else "is a link to nothing"


def _is_store(root: str, *, named: bool) -> bool:
    path = os.path.join(root, SETTINGS)
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except PermissionError as error:
        if not named:
            return False
        raise UnreadableStoreError(
            f"cannot read {root}: {error.strerror}"
            f"; make it readable, or run the command as its owner",
        ) from error
    except (OSError, ValueError):
        return False


def ancestors(folder: str) -> Iterator[str]:
    """A folder and every folder around it, from the inside out."""
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


EXAMPLE_FOLDER: Final = "example_index"


def example_folder() -> str:
    """The example store, next to the package.

    Raises:
        FilestoreError: It was not installed.
    """
    package = os.path.dirname(os.path.dirname(__file__))
    folder = os.path.join(os.path.dirname(package), EXAMPLE_FOLDER)
    if os.path.isfile(os.path.join(folder, SETTINGS)):
        return folder
    raise FilestoreError("the example store was not installed: install filestore again")


def copy_example(target: str) -> None:
    """Copy the files of the example store, not its index, into a new folder.

    Raises:
        RefusedError: There is something of that name already.
        FilestoreError: It was not installed, or cannot be written there.
    """
    import shutil

    if os.path.lexists(target):
        raise RefusedError(f"{target} already exists: run the command in another folder")
    derived = shutil.ignore_patterns(SIDECAR, ".undo", "__pycache__")
    try:
        shutil.copytree(example_folder(), target, ignore=derived)
    except (OSError, shutil.Error) as error:
        raise FilestoreError(
            f"cannot copy the example to {target}: {error}"
            "; go to a writable folder with enough space",
        ) from error
