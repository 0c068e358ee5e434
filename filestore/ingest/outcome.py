"""What became of one source that was added, updated or removed."""

from msgspec import Struct, field

from filestore.core.errors import FilestoreError
from filestore.core.paths import CHUNKS, TOP, ChunkPath, StorePath
from filestore.core.schema import JsonObject
from filestore.ingest.regenerate import Kept, Lost


class Passed(JsonObject, Struct, frozen=True):
    """A file that was left out."""

    path: str
    """As the folder was given."""
    reason: str
    """Why it was left out."""


class Outcome(JsonObject, Struct, kw_only=True):
    """What became of one source."""

    KEYS = (
        "source resource chunks error remedy merged kept deleted ignored other skipped copied_bytes"
    )
    SPARSE = "error remedy merged kept deleted ignored other skipped copied_bytes"

    source: str
    """As recorded: relative to the store root; as given where it never got that far."""
    resource: str
    status: str
    """``added``, ``updated``, ``unchanged``, ``failed``, or ``removed``: nothing of it is left."""
    chunks: int = 0
    """How many it has."""
    error: FilestoreError | None = None
    record_path: ChunkPath = TOP
    written: list[ChunkPath] = field(default_factory=list)
    """What was written, the record included."""
    removed: list[ChunkPath] = field(default_factory=list)
    merged: list[ChunkPath] = field(default_factory=list)
    """Those of the written in which a hand edit and a new source text came together."""
    kept: dict[ChunkPath, Kept] = field(default_factory=dict)
    """Hand-edited files in which they could not: they stay until a person chooses."""
    looked_at: list[ChunkPath] = field(default_factory=list)
    """The resource's chunk files that were there before; what of them is not kept is settled."""
    deleted: dict[ChunkPath, Lost] = field(default_factory=dict)
    """Files that a person deleted and that are not made again, as their text did not change."""
    documents: dict[str, str] = field(default_factory=dict)
    """The hashes of its documents as they are now."""
    generated: dict[str, str] = field(default_factory=dict)
    """Origin to text of what was generated for hand-edited files."""
    ignored: int = 0
    """How many files and folders of a folder ignore rules left out; a folder counts as one."""
    other: int = 0
    """How many files of a folder were passed over for their format."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Documents of a folder that were left out, with the reason."""

    @property
    def json_resource(self) -> str | None:
        """Its resource; None where it never got a name."""
        return self.resource or None

    @property
    def json_error(self) -> str | None:
        """Why it failed."""
        return self.error.message if self.error else None

    @property
    def remedy(self) -> str | None:
        """What to do next."""
        return self.error.remedy if self.error else None

    @property
    def json_merged(self) -> list[StorePath]:
        """Files in which your edit and the new text were merged."""
        return list(map(CHUNKS.store_path, self.merged))

    @property
    def json_kept(self) -> dict[StorePath, str]:
        """Files with overlapping changes, with what overlaps."""
        return {CHUNKS.store_path(path): kept.detail for path, kept in self.kept.items()}

    @property
    def json_deleted(self) -> list[StorePath]:
        """Files you deleted that are not created again."""
        return list(map(CHUNKS.store_path, self.deleted))

    @property
    def json_skipped(self) -> list[Passed]:
        """Files left out although they may be meant."""
        return [Passed(*item) for item in self.skipped]

    failures: list[tuple[str, FilestoreError]] = field(default_factory=list)
    """Documents of a folder that could not be read; what they had before stays."""
    passed_over: set[str] = field(default_factory=set)
    """Documents of a folder at which the store may not look; what they had before stays."""
    original: str | None = None
    """Where the original of a copy lies; remembered in the sidecar, never committed."""
    undo: str | None = None
    copied: tuple[int, ...] = ()
    """The size of each original that was copied from outside the work tree."""

    @property
    def copied_bytes(self) -> int:
        """Size of the originals that were copied from outside the work tree."""
        return sum(self.copied)
