"""A store as it was at a commit, open to be searched."""

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from filestore.core.progress import OnProgress, ignore
from filestore.fs.disk import Closing
from filestore.git.revisions import Commit, resolve
from filestore.past.views import open_view
from filestore.search.answer import At
from filestore.search.query import Query
from filestore.search.session import SearchSession
from filestore.sidecar.session import Parts

if TYPE_CHECKING:
    from filestore.search.answer import Answer


class PastStore(Closing):
    """A store as a commit had it, for the thread that opened it. A context manager.

    It is read by the settings of that commit, or where that has none by those of today, and answers
    from the embeddings that are here.
    """

    def __init__(
        self,
        parts: Parts,
        revision: str,
        *,
        embed: bool = False,
        on_progress: OnProgress = ignore,
    ) -> None:
        """Open it; see `views.open_view` for what is raised.

        Args:
            parts: The store's own.
            revision: Names the commit.
            embed: Whether texts of it that were never embedded are embedded now.
            on_progress: Called with the progress.
        """
        self._root = parts.places.root
        self.commit: Commit = resolve(self._root, revision)
        self._view = open_view(parts, self.commit, embed=embed, on_progress=on_progress)
        self._session = SearchSession(lambda: self.parts)
        lacking = self.parts.catalog().vector_keys(embedded=False)
        self.not_embedded = len(lacking)
        """How many of its texts have no vector here."""

    def close(self) -> None:
        """Let go of every file."""
        self._session.close()
        self._view.close()

    @property
    def parts(self) -> Parts:
        """The parts of its view."""
        return self._view.parts

    def search(self, query: Query | str, **options: Any) -> "Answer":
        """See `Store.search`; an answer names the commit."""
        answer = self._session.answer(Query.of(query, options))
        of = f" of commit {self.commit.commit[:12]}"
        lacking = (not_embedded(self.not_embedded, of),) if self.not_embedded else ()
        at = At(
            commit=self.commit.commit,
            committed=self.commit.committed,
            not_embedded=self.not_embedded,
        )
        return replace(
            answer,
            root=self._root,
            at=at,
            notes=(*self.notes_on_files(), *lacking, *answer.notes),
        ).made()

    def notes_on_files(self) -> tuple[str, ...]:
        """What of the commit is not searched, or not as a checkout has it."""
        return self._view.parts.notes


def not_embedded(count: int, of: str = "") -> str:
    """What to say of texts that have no vector."""
    texts = f"1 text{of} was" if count == 1 else f"{count:,} texts{of} were"
    return f"{texts} never embedded, and found by keyword only: --embed embeds what is missing"
