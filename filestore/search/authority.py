"""What is to be known of a hit before one relies on it: its date, and what its document says.

A document that another one supersedes never ranks above that. One rule: how old something is
changes no order unless it is asked for.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import Catalog, ages, queries
from filestore.catalog.ages import Aged, Statements
from filestore.config.layout import Places
from filestore.config.settings import KeyNames
from filestore.core.paths import StorePath
from filestore.core.safe_text import safe_text

if TYPE_CHECKING:
    from filestore.search.answer import Found, Hit
    from filestore.sidecar.standing import Successors

_MARKED: Final = frozenset(("deprecated", "draft"))
"""What a status warns of."""
_SHOWN: Final = 100


class Known(Struct, frozen=True, kw_only=True):
    """What is to be known of one file."""

    created: str | None
    """The day, or what is known of it; None where nothing tells."""
    updated: str | None
    status: str
    notes: tuple[str, ...]


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

    def behind_successors(self, hits: "Sequence[Hit]") -> "list[Hit]":
        """The same hits, each behind those of the documents that take its place."""
        successors = self._known_successors()
        if successors is None:
            return list(hits)
        documents = [hit.source or str(hit.path) for hit in hits]
        there = set(documents)
        waits = [successors.behind(document) & there - {document} for document in documents]
        placed: list[Hit] = []
        seen: set[str] = set()
        left = list(range(len(hits)))
        while left:
            # The best that waits for none, which puts what waited for it right behind it.
            ready = next((at for at in left if waits[at] <= seen), left[0])
            left.remove(ready)
            placed.append(hits[ready])
            seen.add(documents[ready])
        return placed

    def annotated(
        self, hits: "Sequence[Hit]", found: "Mapping[StorePath, Found]", today: date
    ) -> "list[Hit]":
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
        known = self.known(list(files.values()), today)
        dated = ((hit, known[files[hit.path].file]) for hit in hits)
        return [
            replace(hit, date=one.updated, status=one.status, notes=(*one.notes, *hit.notes))
            for hit, one in dated
        ]

    def known(self, files: Sequence[Aged], today: date) -> dict[int, Known]:
        """What is to be known of files, by their ids."""
        says = ages.statements(self._catalog, files, self._names)
        dates = ages.ages(self._catalog, self._places.tree, files, says)
        found = {}
        for one in files:
            own, age = says.get(one.file, {}), dates[one.file]
            status = next(iter(own.get("status", ())), "")
            found[one.file] = Known(
                created=age.created.day if age.created else None,
                updated=age.updated.day if age.updated else None,
                status=safe_text(status[:_SHOWN], keep_newlines=False),
                notes=tuple(self._notes(one, own, today)),
            )
        return found

    def _notes(self, one: Aged, own: Statements, today: date) -> list[str]:
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
        if self._successors is None and queries.has_key(self._catalog, self._names.superseded_by):
            from filestore.sidecar.standing import Successors

            self._successors = Successors(self._places, self._catalog, self._names)
        return self._successors
