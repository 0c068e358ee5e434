"""What the tree of Browse asks of the store, in one go each; called in the reading thread."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filestore.browse import InspectedStore

if TYPE_CHECKING:
    from filestore.browse import ResourceRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """Everything of the tree, read in one go."""

    resources: "Sequence[ResourceRow]"
    opened: "Mapping[str, array[int]]"
    place: tuple[str, int] | None
    """Resource and file of the path under the cursor, as they are now."""
    matches: "Mapping[str, array[int]] | None"


def place_of(store: InspectedStore, path: str) -> "tuple[str, int, array[int]] | None":
    """Resource and id of a file, and the rows below the resource; None for no such file."""
    listing = store.listing
    place = listing.place_of(path)
    return None if place is None else (*place, listing.outline(place[0]))


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
