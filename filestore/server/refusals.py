"""Errors as clients get them: a status of HTTP, and the object that `--json` prints for errors."""

from typing import Any, Final

from filestore.catalog import CatalogMissingError
from filestore.config.discovery import NoStoreError
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.schema import make
from filestore.fs.lock import LockedError
from filestore.server.stores import BusyError, ReadOnlyError

_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (ReadOnlyError, 403),
    (BusyError, 503),
    (LockedError, 503),
    (NoStoreError, 503),
    (CatalogMissingError, 503),
    (RefusedError, 409),
    (UsageError, 400),
    (LookupError, 404),
    (FileNotFoundError, 404),
)
"""The first that fits; what fits none cannot be done as asked."""
UNUSABLE: Final = 422


def status_of(error: FilestoreError) -> int:
    """The status of HTTP for an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), UNUSABLE)


def body_of(error: FilestoreError) -> dict[str, Any]:
    """What a client is told of an error."""
    fields = {"error": error.message, "detail": error.detail, "remedy": error.remedy}
    return make("error", fields)
