"""What an import is asked to do, and what became of it. Values alone."""

from msgspec import Struct

from filestore.core.decoding import USUAL, Limits
from filestore.core.errors import FilestoreError
from filestore.core.schema import JsonObject


class SourceMissingError(FilestoreError, FileNotFoundError):
    """There is nothing to import at a path."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What an import is asked to do."""

    replace: bool = False
    """Whether resources that are there and differ are replaced."""
    unchecked: bool = False
    """Whether vectors are taken that cannot be checked here, because the model is not."""
    embed: bool = True
    """Whether texts without a vector are embedded now."""
    plan: bool = False
    """Whether nothing is written, only said."""
    limits: Limits = USUAL
    """How much is taken."""


class ImportedResource(JsonObject, Struct, kw_only=True):
    """What became of one resource."""

    SPARSE = "reason"

    resource: str
    """Its name in the store; "" for chunks of none."""
    status: str = ""
    """`added`, `replaced`, `unchanged`, `refused`."""
    files: int = 0
    """How many files were written or removed."""
    reason: str = ""
    """Why it was refused."""


class Imported(JsonObject, Struct, frozen=True, kw_only=True, rename={"size_bytes": "bytes"}):
    """What was taken."""

    SPARSE = "no_vectors not_embedded"

    resources: tuple[ImportedResource, ...]
    """Every resource that came; all refused: exit code 4, some of them or something left out: 5,
    none at all: 1."""
    planned: bool
    """Whether nothing was written, with `--plan`."""
    files: int
    """How many files were written or removed."""
    rows: int
    """Records and chunks that came."""
    size_bytes: int
    """Of their texts, metadata and vectors."""
    limits: Limits
    """How much is taken, unless `--limit` says more."""
    renamed: int
    """How many chunk files have another path than they had: one that no store has, or in the other
    layout."""
    vectors: int
    """How many vectors were taken."""
    compared: int
    """Texts that were embedded again, to check the vectors."""
    no_vectors: str
    """Why vectors that were there were not taken; "" where they were, or where there were none."""
    left_out: tuple[str, ...]
    """What was not taken, and why, a sentence each, at most 1,000."""
    more_left_out: int
    """How many more there are."""
    embedded: int
    """Texts that were sent to the model."""
    reused: int
    """Texts whose vector was there, or came along."""
    not_embedded: FilestoreError | None
    """Why texts were left without vectors."""
    undo: str | None
    """What `undo` takes; None where no file changed."""

    def of_status(self, status: str) -> list[ImportedResource]:
        """The resources of which this became."""
        return [one for one in self.resources if one.status == status]
