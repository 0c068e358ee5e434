"""What all answers of a store share: the look at its files, and what is closed to programs.

Reports are without what is closed to who asks. One rule: for a person that changes nothing.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.findings import Behind, FromIndex, is_clean, marked
from filestore.fs.disk import Closing

if TYPE_CHECKING:
    from filestore.config.layout import Places
    from filestore.config.settings import Settings
    from filestore.core.findings import Finding
    from filestore.core.paths import ChunkPath
    from filestore.history.changes import Changes
    from filestore.search.session import SearchSession
    from filestore.sidecar.model import StoreModel
    from filestore.sidecar.session import Parts
    from filestore.store.look import TreeLook
    from filestore.sync.apply import SyncReport
    from filestore.verify.run import Checked, Status

T = TypeVar("T")
P = ParamSpec("P")
A = TypeVar("A", bound=FromIndex)
S = TypeVar("S", bound="AnsweringStore")
StrPath = str | os.PathLike[str]


class AnsweringStore(Closing):
    """A store that looks at its files before it answers, and hides what is closed to who asks."""

    looks = True
    """Whether it looks."""

    if TYPE_CHECKING:

        @property
        def _parts(self) -> Parts: ...
        @property
        def places(self) -> Places: ...
        @property
        def settings(self) -> Settings: ...
        @property
        def model(self) -> StoreModel: ...

    @cached_property
    def _search_session(self) -> "SearchSession":
        from filestore.search.session import SearchSession

        return SearchSession(lambda: self._parts)

    @cached_property
    def _look(self) -> "TreeLook":
        from filestore.store.look import TreeLook

        return TreeLook()

    def share_look(self, look: "TreeLook") -> None:
        """Use a look at the files that several stores of this root share, in any threads."""
        vars(self)["_look"] = look

    def after_look(self, ask: Callable[[Behind], T], *, update: bool = True) -> T:
        """What is answered once the files were looked at, with what the index lacks."""

        def asked(behind: Behind) -> T:
            if "_search_session" in vars(self):
                self._search_session.behind = behind
            return ask(behind)

        return self._look.before(asked, self._parts, self.close, update=update and self.looks)

    @property
    def hides(self) -> bool:
        """Whether anything is closed to who asks."""
        return self.places.closed is not None

    def conventions(self) -> str:
        """How notes are written here, as the user allowed programs to read; "" for nothing."""
        from filestore.sidecar.door import trusted_conventions

        configuration = self._parts.configuration
        return trusted_conventions(self.settings.agents, self.places.root, configuration)

    def shown(self, findings: "Iterable[Finding]") -> "tuple[Finding, ...]":
        """Findings as the store shows them: the ones that the settings accept are marked.

        A program sees none that names what is closed to it.
        """
        if self.hides:
            from filestore.verify.opened import open_findings

            with self._parts.reading() as catalog:
                findings = open_findings(self._parts, catalog, findings)
        return marked(findings, self.settings.accepted)

    def open_answer(self, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer as JSON without entries of lists that name what is closed to who asks."""
        if not self.hides:
            return answer
        from filestore.verify.opened import open_answer

        with self._parts.reading() as catalog:
            return open_answer(self._parts, catalog, answer)

    def open_error(self, error: FilestoreError, given: Any) -> FilestoreError:
        """An error, or one that says no more where it names what is closed to who asks.

        Args:
            error: What was raised.
            given: What was asked, whose own words it may have.
        """
        if not self.hides:
            return error
        asked, words = str(given), f"{error.message} {error.remedy} {error.detail}"
        with contextlib.suppress(FilestoreError), self._parts.reading() as catalog:
            if not any(one in words and one not in asked for one in catalog.closed() if one):
                return error
        return RefusedError("this concerns what is closed to programs: ask for less")

    def _shown_status(self, found: "Status") -> "Status":
        if not self.hides:
            return found
        with self._parts.reading() as catalog:
            files = catalog.file_count() if found.generation else 0
        from filestore.verify.opened import without_counts

        return replace(
            found,
            files=files,
            index=None,
            not_checked=without_counts(found.not_checked),
            clean=is_clean(found.findings),
            deleted_texts=0,
        )

    def _shown_checked(self, found: "Checked") -> "Checked":
        found = replace(found, findings=self.shown(found.findings))
        if not self.hides:
            return found
        from filestore.verify.opened import without_counts

        checked, not_checked = map(without_counts, (found.checked, found.not_checked))
        return replace(found, checked=checked, not_checked=not_checked)

    def _shown_sync(self, done: "SyncReport") -> "SyncReport":
        applied, remaining = self.shown(done.applied), self.shown(done.remaining)
        return replace(done, applied=applied, remaining=remaining)

    def _require_seen(self, path: "ChunkPath", name: str) -> None:
        """Pass over a file that is closed to who asks, by the catalog or by what it says now.

        Raises:
            UnknownPathError: It is.
        """
        if not self.hides:
            return
        from filestore.browse.named import require_open
        from filestore.chunks.layout import look_at
        from filestore.chunks.observation import Observation

        parts = self._parts
        with parts.reading() as catalog:
            require_open(parts.places, catalog, path, name)
            for seen in look_at(parts.places, [path], parts.layout):
                if isinstance(seen, Observation):
                    parts.layout.settle(seen)
                    require_open(parts.places, catalog, path, name, seen.chunk)

    def _seen_resources(self, names: Sequence[str]) -> tuple[str, ...]:
        """Resources that a program names, looked for among what it sees.

        Raises:
            UnknownResourceError: It sees none of a name.
        """
        from filestore.browse.named import resource_named

        with self._parts.reading() as catalog:
            return tuple(resource_named(catalog, one, self.places) for one in names)

    def _closed_patterns(self, names: Sequence[str], into: str | None) -> tuple[str, ...]:
        """What a program leaves out of folders that it adds.

        Raises:
            RefusedError: It may not add what it names.
        """
        if (door := self.places.door) is None:
            return ()
        from filestore.verify.opened import require_open_originals

        require_open_originals(self._parts, names, into)
        return door.closed.patterns

    def _open_changes(self, found: "Changes") -> "Changes":
        """Changes without those of what is closed to who asks."""
        if not self.hides:
            return found
        from filestore.verify.opened import open_changes

        with self._parts.reading() as catalog:
            return replace(found, changes=open_changes(self._parts, catalog, found.changes))

    def _require_open_batch(self, identifier: str | None) -> None:
        """Let a program undo a change; see `require_open_batch`, which says what is raised."""
        if self.hides:
            from filestore.history import backup_store
            from filestore.verify.opened import require_open_batch

            groups = backup_store.list_groups(self.places.undo)
            with self._parts.reading() as catalog:
                require_open_batch(self._parts, catalog, groups, identifier)


def from_index(answer: Callable[Concatenate[S, P], A]) -> Callable[Concatenate[S, P], A]:
    """Have the files looked at before the index answers, and what it lacks in the answer."""

    @wraps(answer)
    def looked(store: S, /, *args: P.args, **options: P.kwargs) -> A:
        return store.after_look(
            lambda behind: replace(answer(store, *args, **options), behind=behind)
        )

    return looked
