"""A store with what only the inspector asks of it: pages, all of one file, evidence, vectors.

Hands over, as `Store` does; `filestore.browse` names it.
"""

import os
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from filestore.core.findings import Behind, marked
from filestore.core.progress import OnProgress, ignore
from filestore.store import Store

if TYPE_CHECKING:
    from filestore.browse.evidence import Evidence
    from filestore.browse.file import About, AboutResource
    from filestore.browse.joined import Piece
    from filestore.browse.listing import Listing
    from filestore.browse.summary_tree import Summaries
    from filestore.browse.vectors import Explorer
    from filestore.core.findings import Finding
    from filestore.core.paths import StorePath
    from filestore.repair.plan import Policy
    from filestore.repair.request import Sides
    from filestore.search import Mode
    from filestore.search.answer import Answer
    from filestore.sync.apply import SyncReport

T = TypeVar("T")


class InspectedStore(Store):
    """An open store, and whatever a screen shows of it."""

    def close(self) -> None:
        """Let go of every file."""
        if "explorer" in vars(self):
            self.explorer.close()
        super().close()

    def after_look(self, ask: Callable[[Behind], T], *, update: bool = False) -> T:
        """Answer as things are indexed unless a look is asked for.

        A screen shows what drifted, and moving about on it takes nothing of that up.
        """
        return super().after_look(ask, update=update)

    def search_typed(self, query: str, *, mode: "Mode", **given: Any) -> "Answer":
        """Search for a query that is still typed: no service reads it, nothing is indexed.

        Args:
            query: As far as it is typed.
            mode: Where a service embeds queries, "keyword" in any case.
            given: As for `search`.
        """
        from filestore.embed import is_service

        kind = self._parts.settings.embedder.partition(":")[0]
        mode = "keyword" if is_service(kind) else mode
        return self.search(query, mode=mode, update=False, **given)

    @cached_property
    def listing(self) -> "Listing":
        """The catalog page by page, for a screen."""
        from filestore.browse.listing import listing_of

        return listing_of(self._parts)

    @cached_property
    def summaries(self) -> "Summaries":
        """The tree of summaries, node by node, for a screen."""
        from filestore.browse.summary_tree import Summaries

        return Summaries(self._parts)

    def why_not_enriched(self) -> str:
        """Why nothing can be enriched as things are, and what to do; "" where it can."""
        from filestore.core.errors import FilestoreError
        from filestore.git import repository

        try:
            repository.refuse_during_operation(self.places.root)
            self.model.generator()
        except FilestoreError as error:
            return f"{error.message}: {error.remedy}" if error.remedy else error.message
        return ""

    def git_stamp(self) -> int:
        """When git last wrote its state, in ns; 0 without git."""
        from filestore.git import repository

        state = repository.git_folder(self.places.root)
        return os.stat(state).st_mtime_ns if state is not None else 0

    def sync_but(
        self, *, forget: "Collection[StorePath]", on_progress: OnProgress = ignore
    ) -> "SyncReport":
        """Sync, but keep the texts of missing files, but forget the given ones.

        Raises:
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused; the old generation stays.
        """
        from filestore.sync.apply import SyncRequest, catch_up

        self.close()
        report = catch_up(self._parts, SyncRequest(forget=forget), on_progress)
        return replace(report, remaining=marked(report.remaining, self.settings.accepted))

    def about_file(self, path: str, *, indexed_as: str = "") -> "About":
        """Everything known of one file, whatever state it is in, gone too; see `file.about`."""
        from filestore.browse import file

        with self._parts.reading() as catalog:
            return file.about(self._parts, catalog, path, indexed_as=indexed_as, last=True)

    def named(self, text: str) -> tuple["StorePath", int]:
        """The file that a person names, and of a document in place the line, 0 for none.

        Raises:
            FilestoreError: It is not indexed, or has no such line; see `files_named`.
        """
        from filestore.browse.named import files_named

        with self._parts.reading() as catalog:
            found = files_named(self.places, catalog, text)
        line = found.line if self.places.tree.has_sections else None
        return self.places.tree.store_path(found.paths[0]), line or 0

    def about_resource(self, name: str) -> "AboutResource":
        """What is known of one resource; see `file.about_resource`."""
        from filestore.browse import file

        with self._parts.reading() as catalog:
            return file.about_resource(self.places, catalog, name)

    def pieces(self, name: str, most: int) -> "tuple[list[Piece], int]":
        """The texts of a resource, to be read as one; see `joined.pieces`."""
        from filestore.browse import joined

        with self._parts.reading() as catalog:
            return joined.pieces(self.places, catalog, name, self._parts.layout, most)

    def followed(self, path: str, written: str) -> tuple["StorePath", str]:
        """The file, and the heading, that a link leads to; see `links.followed`."""
        from filestore.browse import links

        return links.followed(self._parts, path, written)

    def evidence(self, finding: "Finding") -> "Evidence":
        """What there is to see of a finding; see `evidence.evidence`."""
        from filestore.browse import evidence

        return evidence.evidence(self._parts, finding)

    def sides(self, finding: "Finding") -> "Sides":
        """The two versions to choose between; see `request.sides` for what is raised."""
        from filestore.repair import request

        return request.sides(self._parts, finding)

    def policy(self, *, truth: bool, only: Sequence[str], **paths: Sequence[str]) -> "Policy":
        """What a person typed for a repair; see `request.policy_of`, with what is raised."""
        from filestore.repair import request

        return request.policy_of(self.places, truth=truth, only=only, **paths)

    def check(self, paths: Sequence[str]) -> "list[Finding]":
        """The findings of just these files, by reading them; see `paths.check`."""
        from filestore.verify import paths as rechecking

        return rechecking.check(self._parts, paths)

    @cached_property
    def explorer(self) -> "Explorer":
        """Neighbours and a map: questions to the vectors; closed with the store."""
        from filestore.browse.vectors import Explorer

        return Explorer(self._parts)

    def diff_of_undo(self, identifier: str) -> str:
        """What undoing a change does, or redoing it where it is undone, as a unified diff."""
        from filestore.history.changes import Wanted, list_changes

        wanted = Wanted(id=identifier, diff=True, undoing=True)
        found = list_changes(self.places, wanted, is_near=self._parts.reachable().may_hold)
        return found.changes[0].diff or ""

    def next_undo_redo(self) -> tuple[str, str]:
        """The changes that `undo` and `redo` would take; "" for none."""
        from filestore.repair.undo import next_undo_redo

        return next_undo_redo(batch for group in self.batches() for batch in group.batches)
