"""What a framework needs of a store, for adapters that are written elsewhere.

One rule: `filestore.Store` is such a store, which mypy and a test hold.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from filestore import Store


class Passage(Protocol):
    """One hit."""

    @property
    def path(self) -> str:
        """Of the chunk file, relative to the root."""

    @property
    def text(self) -> str:
        """What the file says now; empty where it is gone."""

    @property
    def score(self) -> float:
        """Comparable within one answer; with ``mode="vector"`` the cosine."""

    @property
    def freshness(self) -> str:
        """``fresh``, ``outdated``, ``edited`` or ``gone``."""

    @property
    def document(self) -> str:
        """What a person opens, relative to the root: the original, or the chunk file."""

    @property
    def line(self) -> int | None:
        """Of the document, from 1; None in one that has pages."""

    @property
    def page(self) -> int | None:
        """Of the document."""

    @property
    def title(self) -> str:
        """Of the document."""

    @property
    def source(self) -> str | None:
        """The original, where it has one."""

    @property
    def kind(self) -> str:
        """``chunk``, ``summary``, or ``document`` of a store in place."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The keys of its frontmatter that are the user's own."""


class Answer(Protocol):
    """Hits, best first."""

    def __iter__(self) -> Iterator[Passage]:
        """The hits."""

    def __len__(self) -> int:
        """How many there are."""

    @property
    def mode(self) -> str:
        """Which answered: ``keyword`` where vectors cannot."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about this answer."""


class Written(Protocol):
    """What became of texts that were put."""

    @property
    def paths(self) -> Sequence[str]:
        """Of the chunk file of each text, in their order."""

    @property
    def problem(self) -> Exception | None:
        """Why texts have no vector yet; keywords find them, and `Store.sync` embeds them."""


class Gone(Protocol):
    """What was removed."""

    @property
    def paths(self) -> Sequence[str]:
        """Of the chunk files."""


class File(Protocol):
    """One chunk file."""

    @property
    def path(self) -> str:
        """Relative to the root."""

    @property
    def body(self) -> str:
        """What it says."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The keys of its frontmatter that are the user's own."""

    @property
    def record(self) -> Mapping[str, Any]:
        """What the store knows of it, ``freshness`` for one."""


@runtime_checkable
class KnowledgeStore(Protocol):
    """A store, for the thread that opened it."""

    @property
    def root(self) -> str:
        """Its folder, absolute."""

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The keys of a chunk file that are the store's own, which metadata cannot have."""

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        mode: Literal["hybrid", "vector", "keyword"] = "hybrid",
        where: Mapping[str, object] | None = None,
        rerank: str | None = None,
    ) -> Answer:
        """At most `k` files, best first."""

    def put(
        self,
        texts: Sequence[str],
        *,
        into: str,
        names: Sequence[str | None] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        replace: bool = False,
    ) -> Written:
        """Write texts as chunk files of one folder, as one change that can be undone."""

    def remove_chunks(self, *paths: str, missing_ok: bool = False) -> Gone:
        """Remove chunk files, as one change that can be undone."""

    def show(self, path: str) -> File:
        """One chunk file; raises a `KeyError` where there is none."""

    def resources(self) -> Sequence[Mapping[str, Any]]:
        """Each folder of chunk files, as ``resource``."""

    def chunks(self, resource: str) -> Sequence[Mapping[str, Any]]:
        """The files of one, as ``path``, in reading order."""

    def close(self) -> None:
        """Let go of every file."""


if TYPE_CHECKING:

    def _is_one(store: Store) -> KnowledgeStore:
        return store
