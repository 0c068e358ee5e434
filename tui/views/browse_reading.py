"""What the tree of Browse asks of the store, in one go each; called in the reading thread."""

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from filestore.browse import InspectedStore

if TYPE_CHECKING:
    from filestore.browse import ResourceRow


class Renewed(Struct, frozen=True, kw_only=True):
    """Everything of the tree, read in one go."""

    resources: "Sequence[ResourceRow]"
    opened: "Mapping[str, array[int]]"
    place: tuple[str, int] | None
    """Resource and file of the path under the cursor, as they are now."""
    matches: "Mapping[str, array[int]] | None"


class Place(Struct, frozen=True, kw_only=True):
    """Where a file stands in the tree."""

    resource: str
    file: int
    """Its id; of a document in place that of a section, 0 for the document itself."""
    ids: "array[int]"
    """The rows below the resource."""


def place_of(store: InspectedStore, path: str, line: int, section: int) -> Place | None:
    """Where a file stands; None for one that the catalog does not have.

    Args:
        store: Whose.
        path: Relative to the store root.
        line: Of a document in place, the section with this line is meant; 0 for none.
        section: The same by its id; 0 for none.
    """
    listing = store.listing
    found = listing.place_of(path)
    if found is None:
        return None
    resource, file = found
    if store.places.is_in_place:
        file = section or (listing.section_at(path, line) if line else 0)
    return Place(resource=resource, file=file, ids=listing.outline(resource))


def matches(store: InspectedStore, text: str) -> "Mapping[str, array[int]]":
    """What a filter leaves.

    Raises:
        UsageError: It is a regular expression, and an invalid one.
    """
    from filestore.browse import Wanted

    return store.listing.matching(Wanted.parse(text))


def renewed(store: InspectedStore, opened: Sequence[str], path: str, text: str) -> Renewed:
    """Everything of the tree.

    Args:
        store: Whose.
        opened: The resources that show their files.
        path: Of the file under the cursor; "" for none.
        text: The filter; "" for none.
    """
    listing = store.listing
    resources = listing.resources()
    there = {row.resource for row in resources}
    return Renewed(
        resources=resources,
        opened={name: listing.outline(name) for name in opened if name in there},
        place=listing.place_of(path) if path else None,
        matches=matches(store, text) if text else None,
    )
