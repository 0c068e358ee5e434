"""A store for Haystack: `FilestoreDocumentStore` and `FilestoreRetriever`.

One rule: the store embeds, with the one model its vectors are from; what another model made of a
document is not kept.
"""

from collections.abc import Sequence
from typing import Any

from filestore import UsageError
from filestore.adapters.folder import Accept, ChunkFolder, Mode, Passage, StrPath, missing

try:
    from haystack import component, default_from_dict, default_to_dict
    from haystack.dataclasses import Document
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.errors import FilterError
    from haystack.utils.filters import document_matches_filter
except ModuleNotFoundError as error:
    raise missing("haystack") from error

Filters = dict[str, Any] | None


class FilestoreDocumentStore:
    """A store as a document store of Haystack, from any thread.

    Documents are chunk files of one folder; every change is one that `filestore undo` takes back.
    """

    def __init__(
        self, path: StrPath, *, into: str = "haystack", configuration: StrPath | None = None
    ) -> None:
        """Open the store that a folder is, holds or lies in.

        Args:
            path: The folder.
            into: The folder below `chunked/` that documents are written to.
            configuration: The folder of the user's settings; None for the usual one.

        Raises:
            NoStoreError: There is none.
        """
        self._given = {"path": str(path), "into": into, "configuration": configuration}
        self.folder = ChunkFolder(path, into=into, configuration=configuration)

    def to_dict(self) -> dict[str, Any]:
        """As Haystack keeps it in a pipeline."""
        return dict(default_to_dict(self, **self._given))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "FilestoreDocumentStore":
        """The inverse of `to_dict`."""
        made: FilestoreDocumentStore = default_from_dict(cls, data)
        return made

    def close(self) -> None:
        """Let go of the store."""
        self.folder.close()

    def count_documents(self) -> int:
        """How many documents were written here."""
        return self.folder.count()

    def filter_documents(self, filters: Filters = None) -> list[Document]:
        """The documents that were written here and satisfy filters, as they were written."""
        found = self.folder.every(accepting(filters))
        return [Document(id=one.id, content=one.text, meta=dict(one.own)) for one in found]

    def write_documents(
        self, documents: Sequence[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents as chunk files, all or none; how many.

        Args:
            documents: With content.
            policy: What becomes of one whose id is there; by default it fails.

        Raises:
            DuplicateDocumentError: One is there, or given twice.
        """
        if isinstance(documents, str) or not all(isinstance(one, Document) for one in documents):
            raise UsageError("write_documents takes a list of Haystack's documents")
        wanted = {one.id: one for one in documents}
        there: set[str] = set()
        if policy != DuplicatePolicy.OVERWRITE:
            there = {one.id for one in self.folder.get(wanted)}
            if policy != DuplicatePolicy.SKIP and (there or len(wanted) < len(documents)):
                raise DuplicateDocumentError(f"documents are there already: {sorted(there)[:3]}")
        fresh = [one for one in wanted.values() if one.id not in there]
        self.folder.put(
            [one.content or "" for one in fresh],
            [one.meta for one in fresh],
            [one.id for one in fresh],
        )
        return len(fresh)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Remove documents; what is not there is passed over."""
        self.folder.delete(document_ids)

    def delete_all_documents(self) -> None:
        """Remove all documents that were written here, as one change."""
        self.folder.clear()


@component
class FilestoreRetriever:
    """Asks a store as `filestore search` does: by vectors and keywords."""

    def __init__(
        self,
        document_store: FilestoreDocumentStore,
        filters: Filters = None,
        top_k: int = 10,
        mode: Mode = "hybrid",
        rerank: str | None = None,
    ) -> None:
        """Prepare.

        Args:
            document_store: Of the store that is asked.
            filters: What documents must satisfy.
            top_k: How many, at most.
            mode: ``hybrid``, ``vector`` or ``keyword``.
            rerank: The reranker that orders the best, such as ``cross-encoder``.
        """
        self.document_store = document_store
        self._given: dict[str, Any] = {
            "filters": filters,
            "top_k": top_k,
            "mode": mode,
            "rerank": rerank,
        }

    def to_dict(self) -> dict[str, Any]:
        """As Haystack keeps it in a pipeline."""
        store = self.document_store.to_dict()
        return dict(default_to_dict(self, document_store=store, **self._given))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "FilestoreRetriever":
        """The inverse of `to_dict`."""
        given = dict(data["init_parameters"])
        given["document_store"] = FilestoreDocumentStore.from_dict(given["document_store"])
        made: FilestoreRetriever = default_from_dict(cls, {**data, "init_parameters": given})
        return made

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: Filters = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """The best documents of all of the store.

        Args:
            query: What is asked.
            filters: In place of those of this retriever.
            top_k: In place of that of this retriever.
        """
        found = self.document_store.folder.search(
            query,
            k=self._given["top_k"] if top_k is None else top_k,
            mode=self._given["mode"],
            accept=accepting(filters or self._given["filters"]),
            rerank=self._given["rerank"],
        )
        return {"documents": [_document(one) for one in found]}


def accepting(filters: Filters) -> Accept:
    """Whether a passage satisfies filters, as Haystack itself judges them.

    Raises:
        FilterError: They are none.
    """
    if not filters:
        return lambda _: True
    if "operator" not in filters and "conditions" not in filters:
        raise FilterError("filters have an operator and conditions, or a field")
    wanted = filters

    def is_wanted(one: Passage) -> bool:
        return bool(document_matches_filter(wanted, _document(one)))

    return is_wanted


def _document(passage: Passage) -> Document:
    return Document(id=passage.id, content=passage.text, meta=passage.metadata, score=passage.score)
