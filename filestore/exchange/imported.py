"""What an import is asked to do, and what became of it. Values alone."""

from msgspec import Struct

from filestore.core.errors import FilestoreError
from filestore.core.limits import USUAL, Limits
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

    resource: str
    """As the store has it; "" for chunks of none."""
    status: str = ""
    """``added``, ``replaced``, ``unchanged``, or ``refused``."""
    files: int = 0
    """How many were written or removed."""
    reason: str = ""
    """Why it was refused."""


class Imported(JsonObject, Struct, frozen=True, kw_only=True):
    """What was taken."""

    resources: tuple[ImportedResource, ...]
    planned: bool
    """Whether nothing was written."""
    files: int
    """How many were written or removed."""
    rows: int
    """How many came: records and chunks."""
    size_bytes: int
    """Of what came, in memory."""
    limits: Limits
    """How much of each would have been taken."""
    renamed: int
    """How many chunk files have another path than they had."""
    vectors: int
    """How many were taken."""
    compared: int
    """Texts that were embedded again to check them."""
    no_vectors: str
    """Why vectors that were there were not taken; "" where they were, or where there were none."""
    left_out: tuple[str, ...]
    more_left_out: int
    """Beyond those that are listed."""
    embedded: int
    reused: int
    not_embedded: FilestoreError | None
    undo: str | None
    """What `Store.undo` takes to undo it."""

    def of_status(self, status: str) -> list[ImportedResource]:
        """The resources of which this became."""
        return [one for one in self.resources if one.status == status]
