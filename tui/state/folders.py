"""Folders of documents in place, some of them opened: which of all rows are shown. Pure.

One rule: the rows come with what is in a folder right behind it, and stay in that order.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar


class Named(Protocol):
    """A folder or a document."""

    @property
    def resource(self) -> str:
        """Its path; that of a folder ends with "/"."""


Row = TypeVar("Row", bound=Named)


def is_folder(name: str) -> bool:
    """Whether a name is that of a folder."""
    return name.endswith("/")


def folder_above(name: str) -> str:
    """The folder that something lies in, "" for none."""
    above = name.removesuffix("/").rpartition("/")[0]
    return f"{above}/" if above else ""


def folders_above(name: str) -> Iterator[str]:
    """All folders that something lies in, from the innermost."""
    while name := folder_above(name):
        yield name


def depth(name: str) -> int:
    """In how many folders something lies."""
    return name.removesuffix("/").count("/")


def own_name(name: str) -> str:
    """A name without the folders above; that of a folder keeps its "/"."""
    last = name.removesuffix("/").rpartition("/")[2]
    return f"{last}/" if is_folder(name) else last


def in_sight(rows: Sequence[Row], opened: set[str]) -> list[Row]:
    """The rows all of whose folders are opened."""
    found: list[Row] = []
    hidden = ""
    for row in rows:
        if hidden and row.resource.startswith(hidden):
            continue
        found.append(row)
        hidden = row.resource if is_folder(row.resource) and row.resource not in opened else ""
    return found
