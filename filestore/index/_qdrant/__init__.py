"""Vectors in Qdrant: on a server, or by an engine in the process."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from filestore.core.safe_text import safe_text
from filestore.index.backend import BackendUnusable

_MESSAGE_LENGTH: Final = 300


class Place(ABC):
    """One collection, which need not be there yet.

    Args:
        address: For messages.
        collection: Its name.
        made_with: Settings of a new one for qdrant-client next to its vectors.
    """

    def __init__(self, address: str, collection: str, **made_with: Any) -> None:
        self.address = address
        self.collection = collection
        self._made_with = made_with

    @abstractmethod
    def open(self) -> None:
        """Make a client, if there is anything to ask."""

    @abstractmethod
    def asked(self) -> AbstractContextManager[Any]:
        """The client; what it raises becomes an error of ours."""

    @abstractmethod
    def is_there(self) -> bool:
        """Whether there is such a collection."""

    def dimension(self) -> int | None:
        """The length of its vectors; None where there is no collection.

        Raises:
            BackendUnusable: It has another shape.
        """
        self.open()
        if not self.is_there():
            return None
        with self.asked() as client:
            vectors = client.get_collection(self.collection).config.params.vectors
            distance = str(getattr(getattr(vectors, "distance", None), "value", ""))
            if distance == "Dot" and getattr(vectors, "multivector_config", None) is None:
                return int(vectors.size)
            if isinstance(vectors, dict):
                names = ", ".join(map(str, vectors))
                found = f"vectors named {names}" if names else "no vectors"
            else:
                found = f"distance {distance}" if distance != "Dot" else "several vectors a point"
            raise BackendUnusable(
                f"{self.address} has another shape: expected one vector with distance Dot, "
                f"found {found}",
                remedy="name another `collection` under [backend_config] in filestore.toml",
            )

    def create(self, dimension: int) -> None:
        """Make an empty one."""
        from qdrant_client import models

        self.open()
        params = models.VectorParams(size=dimension, distance=models.Distance.DOT)
        with self.asked() as client:
            client.create_collection(self.collection, vectors_config=params, **self._made_with)

    def drop(self) -> None:
        """Delete it, if it is there."""
        self.open()
        with self.asked() as client:
            client.delete_collection(self.collection)

    @abstractmethod
    def index_fields(self, paths: Sequence[str]) -> None:
        """Make filters by these fast, as far as that is not done."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""


def short_message(text: object) -> str:
    """What a client or a service says, fit for a message: on one line, and bounded."""
    line = safe_text(" ".join(str(text).split()), keep_newlines=False)
    return line[:_MESSAGE_LENGTH] + "…" * (len(line) > _MESSAGE_LENGTH)
