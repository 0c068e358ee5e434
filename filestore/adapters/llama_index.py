"""A store for LlamaIndex: `FilestoreVectorStore` and `FilestoreRetriever`.

One rule: the store embeds, with the one model its vectors are from; what another model made of a
node is not looked at.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from filestore import UsageError
from filestore.adapters.folder import EVIDENCE, Accept, ChunkFolder, Mode, Passage, StrPath, missing

try:
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.schema import (
        BaseNode,
        MetadataMode,
        NodeRelationship,
        NodeWithScore,
        QueryBundle,
        RelatedNodeInfo,
        TextNode,
    )
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        FilterCondition,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
    from llama_index.core.vector_stores.utils import build_metadata_filter_fn
except ModuleNotFoundError as error:
    raise missing("llama-index") from error

_MODES: Final[Mapping[VectorStoreQueryMode, Mode]] = {
    VectorStoreQueryMode.DEFAULT: "vector",
    VectorStoreQueryMode.SPARSE: "keyword",
    VectorStoreQueryMode.TEXT_SEARCH: "keyword",
    VectorStoreQueryMode.HYBRID: "hybrid",
    VectorStoreQueryMode.SEMANTIC_HYBRID: "hybrid",
}
_NODE: Final = "llama_index"
"""The key of a chunk file with what LlamaIndex knows of a node apart from its text and metadata."""
_FOR_THE_MODEL: Final = ("path", "line", "page")
"""The place of a passage, as an answer may name it; the rest would only cost tokens."""


class FilestoreVectorStore(BasePydanticVectorStore):
    """A store as a vector store of LlamaIndex, from any thread.

    It searches all of the store, and writes nodes as chunk files of one folder; every change is one
    that `filestore undo` takes back. The id of a chunk that LlamaIndex did not write is its path.
    """

    stores_text: bool = True
    is_embedding_query: bool = False
    path: str
    """The folder that the store is, holds or lies in."""
    into: str = "llama-index"
    """The folder below `chunked/` that nodes are written to."""
    configuration: str | None = None
    """The folder of the user's settings; None for the usual one."""
    _folder: ChunkFolder = PrivateAttr()

    def __init__(self, path: StrPath, **options: Any) -> None:
        """Open the store.

        Raises:
            NoStoreError: There is none.
        """
        super().__init__(path=str(path), **options)
        self._folder = ChunkFolder(path, into=self.into, configuration=self.configuration)

    @classmethod
    def class_name(cls) -> str:
        """As LlamaIndex calls it."""
        return "FilestoreVectorStore"

    @property
    def client(self) -> ChunkFolder:
        """The folder of the store."""
        return self._folder

    def close(self) -> None:
        """Let go of the store."""
        self._folder.close()

    def index(self) -> VectorStoreIndex:
        """An index on the store, in which LlamaIndex embeds nothing itself."""
        return VectorStoreIndex.from_vector_store(self, embed_model=MockEmbedding(embed_dim=1))

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Write nodes as chunk files; the id of each. One of an id that is there is replaced.

        Args:
            nodes: With text.
            kwargs: `replace=True` replaces what a person wrote or edited, too.
        """
        return self._folder.put(
            [node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes],
            [_written(node) for node in nodes],
            [node.node_id for node in nodes],
            replace=bool(kwargs.get("replace")),
        )

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Remove the nodes of a document."""
        del delete_kwargs
        found = self._folder.every(lambda one: _node_of(one).get("source") == ref_doc_id)
        self._folder.delete([one.id for one in found])

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Remove nodes by ids, by filters, or by both."""
        del delete_kwargs
        if node_ids is not None and filters is None:
            self._folder.delete(node_ids)
        elif filters is not None:
            self._folder.delete([node.node_id for node in self.get_nodes(node_ids, filters)])

    def clear(self) -> None:
        """Remove all nodes that were added."""
        self._folder.clear()

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Nodes of some ids, in their order; without ids the added ones."""
        accept = _accept(filters)
        found = self._folder.every() if node_ids is None else self._folder.get(node_ids)
        return [_node(one) for one in found if accept(one)]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The best nodes: by vectors; ``SPARSE`` by keywords, ``HYBRID`` by both.

        Args:
            query: With the question itself: the store embeds it.
            kwargs: `rerank` names the reranker that orders the best.

        Raises:
            UsageError: It has no question, or asks for what a store does not have.
        """
        if not query.query_str:
            raise UsageError(
                "a query has to have its question: the store embeds it with its own model"
                "; give query_str",
            )
        if query.mode not in _MODES or query.alpha is not None:
            what = "alpha" if query.mode in _MODES else f"mode {query.mode.value!r}"
            raise UsageError(
                f"a store has no {what}: modes are: {', '.join(mode.value for mode in _MODES)}",
            )
        mode = _MODES[query.mode]
        of_both = query.hybrid_top_k if mode == "hybrid" else None
        found = self._folder.search(
            query.query_str,
            k=of_both or query.similarity_top_k,
            mode=mode,
            accept=_accept(query.filters, nodes=query.node_ids, documents=query.doc_ids),
            rerank=kwargs.get("rerank"),
        )
        return VectorStoreQueryResult(
            nodes=[_node(one) for one in found],
            similarities=[one.score for one in found],
            ids=[one.id for one in found],
        )

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """As `add`."""
        return await asyncio.to_thread(self.add, nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """As `delete`."""
        await asyncio.to_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """As `delete_nodes`."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aclear(self) -> None:
        """As `clear`."""
        await asyncio.to_thread(self.clear)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """As `get_nodes`."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As `query`."""
        return await asyncio.to_thread(self.query, query, **kwargs)


class FilestoreRetriever(BaseRetriever):
    """Asks a store as `filestore search` does: by vectors and keywords."""

    def __init__(
        self,
        path: StrPath,
        *,
        similarity_top_k: int = 4,
        mode: Mode = "hybrid",
        filters: MetadataFilters | None = None,
        rerank: str | None = None,
        configuration: StrPath | None = None,
        **options: Any,
    ) -> None:
        """Open the store.

        Args:
            path: The folder that the store is, holds or lies in.
            similarity_top_k: How many nodes, at most.
            mode: ``hybrid``, ``vector`` or ``keyword``.
            filters: What their metadata must satisfy.
            rerank: The reranker that orders the best, such as ``cross-encoder``.
            configuration: The folder of the user's settings; None for the usual one.
            options: What LlamaIndex takes for every retriever.

        Raises:
            NoStoreError: There is none.
        """
        super().__init__(**options)
        self._folder = ChunkFolder(path, into="llama-index", configuration=configuration)
        self._similarity_top_k = similarity_top_k
        self._mode: Mode = mode
        self._filters = filters
        self._rerank = rerank

    def close(self) -> None:
        """Let go of the store."""
        self._folder.close()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._folder.search(
            query_bundle.query_str,
            k=self._similarity_top_k,
            mode=self._mode,
            accept=_accept(self._filters),
            rerank=self._rerank,
        )
        return [NodeWithScore(node=_node(one), score=one.score) for one in found]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _written(node: BaseNode) -> dict[str, Any]:
    """The metadata of a node, and what else it knows."""
    # Where one was found that a store gave is not written back.
    found = {key for key in node.excluded_embed_metadata_keys if key in EVIDENCE}
    own = {key: value for key, value in node.metadata.items() if key not in found}
    fields: dict[str, Any] = {
        relation.name.lower(): [one.node_id for one in other]
        if isinstance(other, list)
        else other.node_id
        for relation, other in node.relationships.items()
    }
    for key in ("start_char_idx", "end_char_idx"):
        if getattr(node, key, None) is not None:
            fields[key] = getattr(node, key)
    return {**own, _NODE: fields} if fields else own


def _node_of(passage: Passage) -> Mapping[str, Any]:
    """What LlamaIndex wrote of a node."""
    fields = passage.own.get(_NODE)
    return fields if isinstance(fields, dict) else {}


def _node(passage: Passage) -> TextNode:
    fields = _node_of(passage)
    relationships: dict[NodeRelationship, Any] = {
        relation: [RelatedNodeInfo(node_id=one) for one in other]
        if isinstance(other, list)
        else RelatedNodeInfo(node_id=str(other))
        for relation in NodeRelationship
        if (other := fields.get(relation.name.lower()))
    }
    # A document that was added to the store by itself is its own.
    relationships.setdefault(
        NodeRelationship.SOURCE, RelatedNodeInfo(node_id=str(passage.evidence["path"]))
    )
    return TextNode(
        id_=passage.id,
        text=passage.text,
        metadata={key: value for key, value in passage.metadata.items() if key != _NODE},
        excluded_embed_metadata_keys=list(passage.evidence_keys),
        excluded_llm_metadata_keys=[
            key for key in passage.evidence_keys if key not in _FOR_THE_MODEL
        ],
        relationships=relationships,
        start_char_idx=fields.get("start_char_idx"),
        end_char_idx=fields.get("end_char_idx"),
    )


def _accept(
    filters: MetadataFilters | None,
    *,
    nodes: Sequence[str] | None = None,
    documents: Sequence[str] | None = None,
) -> Accept:
    """Whether a passage satisfies all that is asked; an empty list asks for nothing."""

    def is_wanted(one: Passage) -> bool:
        if nodes and one.id not in nodes:
            return False
        if documents and _node_of(one).get("source") not in documents:
            return False
        return filters is None or _satisfies(one.metadata, filters)

    return is_wanted


def _satisfies(metadata: Mapping[str, Any], filters: MetadataFilters) -> bool:
    """Whether metadata satisfies filters, as LlamaIndex itself judges each; they may be nested."""
    every = [
        _satisfies(metadata, one)
        if isinstance(one, MetadataFilters)
        else build_metadata_filter_fn(lambda _: metadata, MetadataFilters(filters=[one]))("")
        for one in filters.filters
    ]
    joined: Mapping[FilterCondition, Callable[[list[bool]], bool]] = {
        FilterCondition.AND: all,
        FilterCondition.OR: lambda found: any(found) or not found,
        FilterCondition.NOT: lambda found: not any(found),
    }
    return joined[filters.condition or FilterCondition.AND](every)
