"""What is said where the library of a framework is not installed."""

from filestore import FilestoreError
from filestore.core.packages import install_line


class LibraryMissing(FilestoreError, ModuleNotFoundError):
    """An adapter is imported without the library of its framework."""


def missing(framework: str) -> LibraryMissing:
    """The error of an adapter without its library."""
    module = framework.replace("-", "_")
    return LibraryMissing(
        f"filestore.adapters.{module} needs a library that is not installed",
        remedy=install_line(framework),
    )
