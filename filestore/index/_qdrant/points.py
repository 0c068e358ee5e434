"""What is asked of Qdrant, whichever way it is reached: a few operations on one collection.

Ids are Qdrant's own here: whole numbers without a sign, or the text of a UUID.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from filestore.core.safe_text import safe_text
from filestore.index.backend import WITHOUT, BackendUnusable, Where

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

FILES: Final = "metadata.files"
"""Where a payload has its list of files."""
_SAID_LENGTH: Final = 300
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


class FolderDamaged(BackendUnusable):
    """The engine does not open a folder, or gives up on it."""


class Point(Struct, frozen=True, kw_only=True):
    """A point, as far as it was asked for."""

    id: int | str
    score: float = 0.0
    payload: Mapping[str, Any] = field(default_factory=dict)
    vector: Any = None
    """(dimension,) numbers."""

    def has_vector(self, dimension: int | None) -> bool:
        """Whether it came with a vector of this length; from a damaged folder it may not."""
        return isinstance(self.vector, list) and len(self.vector) == dimension


class Question(Struct, frozen=True, kw_only=True):
    """What is looked for."""

    vector: "NDArray[float32]"
    limit: int
    where: Where = ()
    allowed: tuple[int, ...] | None = None
    """Only these ids; None for all."""
    exact: bool = False
    """Compare all that may be found, whatever graph there is."""


class Points(ABC):
    """One collection. Ids that are not there are passed over."""

    address: str
    """For messages."""

    @abstractmethod
    def open(self) -> None:
        """Connect, or take the folder."""

    @abstractmethod
    def dimension(self) -> int | None:
        """The length of its vectors; None where there is no collection.

        Raises:
            BackendUnusable: It has another shape.
        """

    @abstractmethod
    def create(self, dimension: int) -> None:
        """Make an empty one."""

    @abstractmethod
    def drop(self) -> None:
        """Delete it, if it is there."""

    @abstractmethod
    def upsert(self, points: Sequence[Point]) -> None:
        """Hold points; returns when they are held."""

    @abstractmethod
    def delete(self, ids: Sequence[int]) -> None:
        """Let go of points; returns when they are gone."""

    @abstractmethod
    def retrieve(
        self, ids: Sequence[int | str], fields: Sequence[str] = (), *, vectors: bool = False
    ) -> list[Point]:
        """Some points, with these fields of their payload."""

    @abstractmethod
    def scroll(
        self, start: int | str | None, limit: int, fields: Sequence[str], *, vectors: bool
    ) -> tuple[list[Point], int | str | None]:
        """The next points by id, and where those after them start; None at the end."""

    @abstractmethod
    def count(self) -> int:
        """How many there are."""

    @abstractmethod
    def query(self, question: Question, fields: Sequence[str]) -> list[Point]:
        """The nearest, best first."""

    def query_beside(
        self, question: Question, fields: Sequence[str], beside: str, beside_field: str
    ) -> tuple[list[Point], list[Point]]:
        """The nearest, and one point by its id: in one request, where there are requests."""
        return self.query(question, fields), self.retrieve([beside], [beside_field])

    @abstractmethod
    def index_fields(self, paths: Sequence[str]) -> None:
        """Make filters by these fast, as far as that is not done."""

    @abstractmethod
    def flush(self) -> None:
        """See to it that what was written survives."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""


def path_of(key: str) -> str | None:
    """A key as Qdrant's paths have it; None for one that they cannot say."""
    if _PLAIN.fullmatch(key):
        return key
    return None if '"' in key or "\\" in key else f'"{key}"'


def pushed_down(where: Where) -> list[tuple[str, tuple[str, ...]]]:
    """The conditions that Qdrant can test; the others are tested on what it finds."""
    return [(path, values) for key, values in where if (path := path_of(key)) is not None]


def said(text: object) -> str:
    """What an engine or a service says, fit for a message: on one line, and bounded."""
    line = safe_text(" ".join(str(text).split()), keep_newlines=False)
    return line[:_SAID_LENGTH] + "…" * (len(line) > _SAID_LENGTH)


def other_shape(address: str, expected: str, found: str) -> BackendUnusable:
    """Say that what is there was made for something else."""
    return BackendUnusable(
        f"{address} has another shape: expected {expected}, found {found}",
        remedy="name another `collection` under [backend_config] in filestore.toml",
    )


def damaged(address: str, error: BaseException) -> FolderDamaged:
    """Say that a folder cannot be used, and what is lost with it: nothing."""
    text = said(error)
    remedy = "if its files are damaged, delete that folder and run `filestore sync`"
    if "No space left" in text or "disk is full" in text:
        remedy = "free space on that disk, then run `filestore sync`"
    elif "Permission denied" in text or "Read-only" in text or "readonly" in text:
        remedy = "make that folder writable: the engine writes there as it opens it"
    return FolderDamaged(
        f"{address} cannot be used: {text or type(error).__name__}",
        remedy=f"{remedy}; the embeddings are in the sidecar. {WITHOUT}",
        detail=type(error).__name__,
    )
