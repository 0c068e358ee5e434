"""What is to be known of a hit before one relies on it: its date, what it says, what it is made of.

A document that another one supersedes never ranks above that. An original is looked at by stat, by
hash where that moved; texts that a summary was made from are compared in the catalog; what the
store may not look at is left as it is. One rule: how old something is changes no order unless it
is asked for.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import Catalog, ages, queries, summaries
from filestore.catalog.ages import Aged, Statements
from filestore.catalog.summaries import Stale
from filestore.config.layout import Places
from filestore.config.settings import KeyNames
from filestore.core.paths import StorePath
from filestore.core.safe_text import safe_text
from filestore.search.freshness import KnownFile

if TYPE_CHECKING:
    from filestore.search.answer import Found, Hit
    from filestore.sidecar.session import Parts
    from filestore.sidecar.standing import Successors

_MARKED: Final = frozenset(("deprecated", "draft"))
"""What a status warns of."""
_SHOWN: Final = 100
AnyFound = TypeVar("AnyFound", bound=KnownFile)


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


def outdated(
    found: Sequence[AnyFound],
    parts: "Parts",
    catalog: Catalog,
    stale: Stale | None = None,
) -> tuple[list[AnyFound], list[str]]:
    """Files that say where their original changed or went, and what is to be known of them.

    Args:
        found: What was found; only what is as indexed is looked at.
        parts: Of the store, which may look at originals only where it is allowed.
        catalog: Inside a snapshot.
        stale: Knows which summaries are out of date.
    """
    hits, notes = _by_original(found, parts, catalog)
    hits, of_sources = _by_sources(hits, parts, catalog)
    notes += of_sources
    if not summaries.has_summaries(catalog):
        return hits, notes
    tree = parts.places.tree
    same = [tree.chunk_path(hit.path) for hit in hits if hit.freshness in ("fresh", "outdated")]
    old = (stale or Stale(catalog)).among(same)
    is_stale = [
        hit.freshness in ("fresh", "outdated") and tree.chunk_path(hit.path) in old for hit in hits
    ]
    hits = [
        replace(hit, freshness="outdated") if of_changed else hit
        for hit, of_changed in zip(hits, is_stale, strict=True)
    ]
    if number := sum(is_stale):
        are = "is a summary" if number == 1 else "are summaries"
        say = (
            f"{_results(number)} {are} of text that changed since: run 'filestore enrich --refresh'"
        )
        notes = [*notes, say]
    return hits, notes


def _by_original(
    found: Sequence[AnyFound], parts: "Parts", catalog: Catalog
) -> tuple[list[AnyFound], list[str]]:
    tree = parts.places.tree
    fresh = {
        tree.chunk_path(hit.path): hit for hit in found if hit.freshness == "fresh" and hit.source
    }
    rows = catalog.files(list(fresh))
    made = {row.path: fresh[row.path].source or "" for row in rows.values() if row.origin}
    if not made:
        return list(found), []
    from filestore.sidecar import originals

    documents = queries.documents_from(catalog, sorted(set(made.values())))
    drift = originals.look(catalog, parts.reachable(), documents=documents)
    seen = drift.seen
    gone, changed = 0, 0
    hits = []
    for hit in found:
        path = tree.chunk_path(hit.path)
        source = made.get(path, "")
        now = seen.get(source)
        # The hashes of the document when the chunks were made; a chunk that was moved elsewhere
        # belongs to whichever record names its source.
        named = {name: digest for _, name, one, digest in documents if one == source}
        recorded = {named[hit.resource]} if hit.resource in named else set(named.values())
        if now and not now.reason and now.found not in recorded:
            changed += bool(now.found)
            gone += not now.found
            hit = replace(hit, freshness="outdated")
        elif source in drift.elsewhere:
            changed += 1
            hit = replace(hit, freshness="outdated")
        hits.append(hit)
    lines = []
    if changed:
        verb = "was" if changed == 1 else "were"
        lines.append(
            f"{_results(changed)} {verb} made from an older version of the original:"
            " run 'filestore update'"
        )
    if gone:
        verb = "was" if gone == 1 else "were"
        lines.append(
            f"{_results(gone)} {verb} made from an original that is gone:"
            " 'filestore update --plan' shows what can be done"
        )
    return hits, lines


def _by_sources(
    found: list[AnyFound], parts: "Parts", catalog: Catalog
) -> tuple[list[AnyFound], list[str]]:
    """The same, where a source that a document names changed since, or went."""
    names = parts.settings.keys
    keys = (*names.sources, *(f"{key}.path" for key in names.sources))
    if not found or not queries.has_key(catalog, keys):
        return found, []
    tree = parts.places.tree
    rows = catalog.files([tree.chunk_path(one.path) for one in found if one.freshness == "fresh"])
    files = {path: ages.aged(row, tree, catalog.source_of(row)) for path, row in rows.items()}
    says = ages.statements(
        catalog, list(files.values()), replace(names, sources=keys), only=("sources",)
    )
    if not says:
        return found, []
    from filestore.sidecar.standing import Sources

    sources = Sources(catalog, parts.reachable, names)
    hits, number = [], 0
    for hit in found:
        one = files.get(tree.chunk_path(hit.path))
        words = sources.judged(one).words if one is not None and one.file in says else ()
        if words:
            number += 1
            hit = replace(hit, freshness="outdated", notes=(*hit.notes, *words))
        hits.append(hit)
    verb = "names a source" if number == 1 else "name sources"
    return hits, [f"{_results(number)} {verb} that changed since, or went"] if number else []


def _results(number: int) -> str:
    return f"{number:,} of these results"
