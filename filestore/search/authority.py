"""What is to be known of a hit before one relies on it: its date, and what its document says.

A document that another one supersedes never ranks above that. One rule: how old something is
changes no order unless it is asked for.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.catalog import Catalog, ages
from filestore.catalog.ages import Aged, Said
from filestore.config.key_names import KeyNames
from filestore.config.layout import Places
from filestore.core.paths import StorePath
from filestore.core.safe_text import safe_text
from filestore.search.answer import Found, Hit

if TYPE_CHECKING:
    from filestore.sidecar.standing import Successors

_MARKED: Final = frozenset(("deprecated", "draft"))
"""What a status warns of."""
_SHOWN: Final = 100


class Authority:
    """What documents say of themselves, in one generation of the catalog."""

    def __init__(self, places: Places, catalog: Catalog, names: KeyNames) -> None:
        """Prepare.

        Args:
            places: Of the store.
            catalog: Inside a snapshot whenever something is asked.
            names: Which keys say it.
        """
        self._places, self._catalog, self._names = places, catalog, names
        self._successors: Successors | None = None

    def behind_successors(self, hits: Sequence[Hit]) -> list[Hit]:
        """The same hits, each behind those of the documents that take its place."""
        successors = self._known_successors()
        if successors is None:
            return list(hits)
        documents = [hit.source or str(hit.path) for hit in hits]
        there = set(documents)
        waits = [successors.behind(document) & there - {document} for document in documents]
        placed, seen = list[Hit](), set[str]()
        left = list(range(len(hits)))
        while left:
            # The best that waits for none, which puts what waited for it right behind it.
            ready = next((at for at in left if waits[at] <= seen), left[0])
            left.remove(ready)
            placed.append(hits[ready])
            seen.add(documents[ready])
        return placed

    def told(self, hits: Sequence[Hit], found: Mapping[StorePath, Found], today: date) -> list[Hit]:
        """The same with date, status and what else to know.

        Args:
            hits: Of an answer.
            found: The file of each.
            today: On which day what is stale after a date is judged.
        """
        if not hits:
            return []
        tree = self._places.tree
        files = {hit.path: ages.aged(found[hit.path].row, tree, hit.source) for hit in hits}
        says = ages.said(self._catalog, list(files.values()), self._names)
        known = ages.ages(self._catalog, tree, list(files.values()), says)
        made = []
        for hit in hits:
            one = files[hit.path]
            own, updated = says.get(one.file, {}), known[one.file].updated
            status = next(iter(own.get("status", ())), "")
            made.append(
                replace(
                    hit,
                    date=updated.day if updated else None,
                    status=safe_text(status[:_SHOWN], keep_newlines=False),
                    notes=(*self._notes(one, own, today), *hit.notes),
                )
            )
        return made

    def _notes(self, one: Aged, own: Said, today: date) -> list[str]:
        if not own:
            return []
        notes = []
        if own.get("superseded_by") and (successors := self._known_successors()) is not None:
            document = one.source or str(one.path)
            notes += [by.words for by in successors.of(document)]
        if day := ages.stale_since(own, today):
            notes.append(f"stale since {day}")
        notes += [status.lower() for status in own.get("status", ()) if status.lower() in _MARKED]
        if day := ages.last_day(own.get("verified", ())):
            notes.append(f"verified {day}")
        return notes

    def _known_successors(self) -> "Successors | None":
        """What takes the place of what; None where no document says so."""
        if self._successors is None and ages.has_key(self._catalog, self._names.superseded_by):
            from filestore.sidecar.standing import Successors

            self._successors = Successors(self._places, self._catalog, self._names)
        return self._successors
