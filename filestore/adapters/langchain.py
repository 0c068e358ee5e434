"""A store for LangChain: `FilestoreVectorStore` and `FilestoreRetriever`.

One rule: the store embeds, with the one model its vectors are from; no other model's vectors come
near them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import filestore
from filestore import NoStoreError, Store, UsageError
from filestore.adapters.folder import ChunkFolder, Mode, Passage, StrPath, missing

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from pydantic import PrivateAttr
except ModuleNotFoundError as error:
    raise missing("langchain") from error

Filter = Mapping[str, Any] | Callable[[Document], bool]


class FilestoreDocument(Document):
    """A document of a store; where it was found is in its metadata, with its own.

    Two documents are equal where id, text and own metadata are: where one lies and how fresh it is
    is no part of that, and is not written back where it is added again.
    """

    _own: dict[str, Any] = PrivateAttr(default_factory=dict)

    @classmethod
    def of(cls, passage: Passage) -> "FilestoreDocument":
        """A passage as a document."""
        made = cls(id=passage.id, page_content=passage.text, metadata=passage.metadata)
        made._own = dict(passage.own)
        return made

    @property
    def own_metadata(self) -> dict[str, Any]:
        """What was given with it, or is in its frontmatter."""
        return self._own

    @classmethod
    def lc_id(cls) -> list[str]:
        """As which class it is read back: as any document."""
        return Document.lc_id()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Document):
            return NotImplemented
        ours = (self.id, self.page_content, _own(self))
        return ours == (other.id, other.page_content, _own(other))

    __hash__ = None  # type: ignore[assignment]


class FilestoreEmbeddings(Embeddings):
    """The model of a store, as LangChain asks a model."""

    def __init__(self, folder: ChunkFolder) -> None:
        self._folder = folder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts, of length 1."""
        found: list[list[float]] = self._folder.call(
            lambda store: _model(store).embed_documents(texts).tolist()
        )
        return found

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        found: list[float] = self._folder.call(
            lambda store: _model(store).embed_query(text).tolist()
        )
        return found


class FilestoreVectorStore(VectorStore):
    """A store as a vector store of LangChain, from any thread. A context manager.

    It searches all of the store, and writes documents as chunk files of one folder; every change is
    one that `filestore undo` takes back. The id of what was added is given, or made of text and
    metadata; that of any other chunk is its path.
    """

    def __init__(
        self,
        path: StrPath,
        *,
        into: str = "langchain",
        mode: Mode = "vector",
        embedding: Embeddings | None = None,
        configuration: StrPath | None = None,
    ) -> None:
        """Open the store that a folder is, holds or lies in.

        Args:
            path: The folder.
            into: The folder below `chunked/` that documents are written to.
            mode: How it searches: ``vector`` gives the nearest `k`, ``hybrid`` the best of vectors
                and keywords, and nothing that has nothing to do with the question.
            embedding: None: the store has its own model; see docs/adapters.md.
            configuration: The folder of the user's settings; None for the usual one.

        Raises:
            NoStoreError: There is none.
            UsageError: Another model is given.
        """
        _refuse_other_model(embedding)
        self.mode = mode
        self.folder = ChunkFolder(path, into=into, configuration=configuration)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: StrPath = "",
        **kwargs: Any,
    ) -> "FilestoreVectorStore":
        """A vector store with some texts; the store is made where there is none.

        Args:
            texts: What they say.
            embedding: None: the store has its own model.
            metadatas: Of each.
            ids: Of each.
            path: The folder of the store.
            kwargs: `embedder` for a store that is made, and what the constructor takes.
        """
        if not path:
            raise UsageError('a store is a folder: name it; path="knowledge"')
        embedder = kwargs.pop("embedder", None)
        _refuse_other_model(embedding)
        try:
            made = cls(path, **kwargs)
        except NoStoreError:
            own = {key: kwargs[key] for key in ("configuration",) if key in kwargs}
            filestore.create(path, embedder=embedder, **own).close()
            made = cls(path, **kwargs)
        made.add_texts(texts, metadatas, ids=ids)
        return made

    @property
    def embeddings(self) -> FilestoreEmbeddings:
        """The model of the store."""
        return FilestoreEmbeddings(self.folder)

    def close(self) -> None:
        """Let go of the store."""
        self.folder.close()

    def __enter__(self) -> "FilestoreVectorStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Write texts as chunk files; the id of each. One of an id that is there is replaced.

        Args:
            texts: What they say.
            metadatas: Of each.
            ids: Of each; None for one that is made of text and metadata.
            kwargs: `replace=True` replaces what a person wrote or edited, too.
        """
        given = list(texts)
        _check_count("metadatas", metadatas, given)
        _check_count("ids", ids, given)
        return self.folder.put(
            given,
            metadatas or [{} for _ in given],
            ids or [None for _ in given],
            replace=bool(kwargs.get("replace")),
        )

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Write documents as chunk files; the id of each. See `add_texts`."""
        given = kwargs.pop("ids", None)
        ids = [one.id for one in documents] if given is None else given
        texts = [one.page_content for one in documents]
        return self.add_texts(texts, [_own(one) for one in documents], ids=ids, **kwargs)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Remove chunk files; all that were added where no ids are given."""
        if ids is None:
            self.folder.clear()
        else:
            self.folder.delete(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """What there is of some ids, in their order."""
        return [FilestoreDocument.of(one) for one in self.folder.get(ids)]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The best `k` documents; see `similarity_search_with_score`."""
        return [one for one, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Filter | None = None,
        *,
        mode: Mode | None = None,
        rerank: str | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """The best `k` documents, each with its score: with ``mode="vector"`` the cosine.

        Args:
            query: What is asked.
            k: How many, at most.
            filter: Values that the metadata must have, or a function of a document.
            mode: Another one than that of this object.
            rerank: The reranker that orders the best, such as ``cross-encoder``.
            kwargs: Nothing else is taken.
        """
        _refuse(kwargs)
        accept = (lambda one: filter(FilestoreDocument.of(one))) if callable(filter) else None
        found = self.folder.search(
            query,
            k=k,
            mode=mode or self.mode,
            where=None if callable(filter) else filter,
            accept=accept,
            rerank=rerank,
        )
        return [(FilestoreDocument.of(one), one.score) for one in found]

    def max_marginal_relevance_search(self, query: str, *args: Any, **kwargs: Any) -> Any:
        """Refused: it takes the vectors of hits, which a store keeps to itself.

        Raises:
            UsageError: Always.
        """
        raise UsageError(
            "a store has no search by marginal relevance (mmr)",
            remedy='search_type="similarity", with rerank= in search_kwargs for a better order',
        )

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        if self.mode != "vector":
            raise UsageError(
                f"the scores of mode {self.mode!r} compare the hits of one answer, and lie on no "
                "scale from 0 to 1",
                remedy='give mode="vector" to the vector store',
            )
        return lambda cosine: min(1.0, max(0.0, cosine))


class FilestoreRetriever(BaseRetriever):
    """Asks a store as `filestore search` does: by vectors and keywords."""

    path: StrPath
    """The folder that the store is, holds or lies in."""
    k: int = 4
    mode: Mode = "hybrid"
    filter: Any = None
    """Values that the metadata must have, or a function of a document."""
    rerank: str | None = None
    """The reranker that orders the best, such as ``cross-encoder``."""
    configuration: StrPath | None = None
    """The folder of the user's settings; None for the usual one."""
    _store: FilestoreVectorStore = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Open the store.

        Raises:
            NoStoreError: There is none.
        """
        super().model_post_init(context)
        self._store = FilestoreVectorStore(self.path, configuration=self.configuration)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        given = {"k": self.k, "mode": self.mode, "filter": self.filter, "rerank": self.rerank}
        return self._store.similarity_search(query, **{**given, **kwargs})


def _model(store: Store) -> Any:
    """The model of a store.

    Raises:
        FilestoreError: It cannot be used here.
    """
    if store.embedder is None:
        raise store.model.why_not
    return store.embedder


def _own(document: Document) -> dict[str, Any]:
    """The metadata of a document without where it was found."""
    is_found = isinstance(document, FilestoreDocument)
    return document.own_metadata if is_found else document.metadata


def _check_count(what: str, given: Sequence[Any] | None, texts: Sequence[str]) -> None:
    if given and len(given) != len(texts):
        raise ValueError(f"{len(texts)} texts with {len(given)} {what}: give one for each text")


def _refuse(options: Mapping[str, Any]) -> None:
    if options:
        raise TypeError(f"unknown option of a search: {', '.join(sorted(options))}")


def _refuse_other_model(embedding: Embeddings | None) -> None:
    """Let no other model in: its vectors could not be compared with those of the store.

    Raises:
        UsageError: One is given.
    """
    if embedding is None or isinstance(embedding, FilestoreEmbeddings):
        return
    raise UsageError(
        f"a store embeds with its own model, and {type(embedding).__name__} is another one: their "
        "vectors cannot be compared",
        remedy="leave it out, or give the store another model with `filestore embedder set`",
    )
