"""A store behind LlamaIndex: its indexes, filters, modes and retrievers on real files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore import UsageError

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import MetadataMode, NodeRelationship, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from filestore.adapters.llama_index import FilestoreRetriever, FilestoreVectorStore

LEASE = "The rent is paid on the third working day of the month. " * 40
NODES = [
    TextNode(
        id_=str(year),
        text=f"The rent of the year {year}.",
        metadata={"year": year, "kind": "odd" if year % 2 else "even", "tags": ["rent"]},
    )
    for year in range(2000, 2010)
]


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[FilestoreVectorStore]:
    """A vector store on an empty store."""
    filestore.create(tmp_path / "store", embedder="builtin").close()
    made = FilestoreVectorStore(tmp_path / "store")
    yield made
    made.close()


def asked(question: str, **options: Any) -> VectorStoreQuery:
    """A query of LlamaIndex."""
    return VectorStoreQuery(query_str=question, **{"similarity_top_k": 3, **options})


def test_an_index_keeps_what_it_knows_of_nodes(vectors: FilestoreVectorStore) -> None:
    """Documents that LlamaIndex cuts are found with their document, neighbours and place."""
    documents = [
        Document(doc_id="lease", text=LEASE, metadata={"file_path": "lease.md", "source": "x"}),
        Document(doc_id="gas", text="Gas is read in March."),
    ]
    nodes = SentenceSplitter(chunk_size=128, chunk_overlap=10).get_nodes_from_documents(documents)
    index = vectors.index()
    index.insert_nodes(nodes)
    (hit,) = index.as_retriever(similarity_top_k=1).retrieve("gas")
    assert (hit.node.ref_doc_id, hit.text, hit.node.metadata["freshness"]) == (
        "gas",
        "Gas is read in March.",
        "fresh",
    )
    first, second = vectors.get_nodes([nodes[0].node_id, nodes[1].node_id])
    assert (first.text, first.start_char_idx) == (nodes[0].text, 0)
    assert first.next_node.node_id == second.node_id
    assert second.prev_node.node_id == first.node_id
    assert (first.metadata["file_path"], first.metadata["source"]) == ("lease.md", "x")
    index.delete_ref_doc("lease")
    assert [node.ref_doc_id for node in vectors.get_nodes()] == ["gas"]
    with filestore.open(vectors.path) as store:
        store.undo()
    assert len(vectors.get_nodes()) == len(nodes)


def test_a_hit_says_where_it_stands(vectors: FilestoreVectorStore, tmp_path: Path) -> None:
    """Path, line and freshness of the document; of these, a language model is shown the place."""
    (tmp_path / "lease.md").write_text("# The lease\n\nThe rent is paid in time.\n")
    with filestore.open(vectors.path) as store:
        store.add(tmp_path / "lease.md", copy=False)
    retriever = FilestoreRetriever(vectors.path, similarity_top_k=1)
    (hit,) = retriever.retrieve("rent")
    metadata = hit.node.metadata
    assert (metadata["path"], metadata["line"], metadata["freshness"]) == (
        "../lease.md",
        3,
        "fresh",
    )
    shown = hit.node.get_content(metadata_mode=MetadataMode.LLM)
    assert "path: ../lease.md\nline: 3" in shown
    assert "freshness" not in shown
    assert hit.node.node_id == "chunked/lease.md/chunk1.md"
    retriever.close()


async def test_a_retriever_asks_without_holding_up_the_loop(vectors: FilestoreVectorStore) -> None:
    """Its asynchronous calls run beside it."""
    await vectors.async_add(NODES)
    retriever = FilestoreRetriever(vectors.path, similarity_top_k=2)
    assert len(await retriever.aretrieve("rent")) == 2
    assert len((await vectors.aquery(asked("rent"))).ids) == 3
    await vectors.adelete_nodes(["2000"])
    assert [one.node_id for one in await vectors.aget_nodes(["2000", "2001"])] == ["2001"]
    await vectors.aclear()
    assert await vectors.aget_nodes() == []
    retriever.close()


@pytest.mark.parametrize(
    ("filters", "years"),
    [
        ([("year", "==", 2003)], [2003]),
        ([("year", ">", 2006), ("kind", "==", "odd")], [2007, 2009]),
        ([("year", "in", [2001, 2002])], [2001, 2002]),
        ([("tags", "contains", "gas")], []),
        ([("more", "is_empty", None), ("year", "<=", 2000)], [2000]),
    ],
)
def test_filters_are_judged_as_llama_index_judges_them(
    vectors: FilestoreVectorStore, filters: list[tuple[str, str, Any]], years: list[int]
) -> None:
    """In queries and in lists of nodes."""
    vectors.add(NODES)
    wanted = MetadataFilters(
        filters=[
            MetadataFilter(key=key, operator=FilterOperator(sign), value=value)
            for key, sign, value in filters
        ]
    )
    found = vectors.query(asked("rent", similarity_top_k=10, filters=wanted))
    assert sorted(map(int, found.ids)) == years
    assert sorted(int(one.node_id) for one in vectors.get_nodes(filters=wanted)) == years
    vectors.delete_nodes(filters=wanted)
    assert len(vectors.get_nodes()) == len(NODES) - len(years)


def test_filters_may_be_nested(vectors: FilestoreVectorStore) -> None:
    """One of some, and none of others."""
    vectors.add(NODES)
    years = [MetadataFilter(key="year", value=year) for year in (2001, 2002, 2003)]
    some = MetadataFilters(filters=years, condition=FilterCondition.OR)
    none = MetadataFilters(filters=years[:1], condition=FilterCondition.NOT)
    nodes = vectors.get_nodes(filters=MetadataFilters(filters=[some, none]))
    assert sorted(one.node_id for one in nodes) == ["2002", "2003"]


def test_modes_are_vectors_keywords_or_both(vectors: FilestoreVectorStore) -> None:
    """What a store cannot do is refused, and not done otherwise."""
    vectors.add([*NODES, TextNode(id_="gas", text="Gas is read in March.")])
    for mode, number in (("default", 11), ("sparse", 1), ("hybrid", 1)):
        query = asked("gas", similarity_top_k=11, mode=VectorStoreQueryMode(mode))
        found = vectors.query(query)
        assert (found.ids[0], len(found.ids)) == ("gas", number)
        assert found.similarities == sorted(found.similarities, reverse=True)
    with pytest.raises(UsageError, match="no mode 'svm'"):
        vectors.query(asked("gas", mode=VectorStoreQueryMode.SVM))
    with pytest.raises(UsageError, match="no alpha"):
        vectors.query(asked("gas", mode=VectorStoreQueryMode.HYBRID, alpha=0.3))
    with pytest.raises(UsageError, match="has to have its question"):
        vectors.query(VectorStoreQuery(query_embedding=[0.1]))


def test_a_query_may_ask_some_nodes_or_documents_alone(vectors: FilestoreVectorStore) -> None:
    """By the ids that LlamaIndex gave them."""
    index = vectors.index()
    index.insert(Document(doc_id="lease", text="The rent is paid."))
    index.insert(Document(doc_id="gas", text="Gas is paid."))
    vectors.add(NODES)
    assert vectors.query(asked("paid", node_ids=["2001", "2002"])).ids is not None
    assert sorted(vectors.query(asked("paid", node_ids=["2001", "2002"])).ids) == ["2001", "2002"]
    (node,) = vectors.query(asked("paid", doc_ids=["gas"])).nodes
    assert (node.ref_doc_id, node.text) == ("gas", "Gas is paid.")


def test_what_was_found_can_be_added_again(vectors: FilestoreVectorStore) -> None:
    """Where it was found is not written into its file."""
    vectors.add([TextNode(id_="1", text="Gas.", metadata={"source": "a", "title": "b", "x": 1})])
    before = Path(vectors.path, "chunked", "llama-index", "1.md").read_bytes()
    (node,) = vectors.query(asked("gas")).nodes
    node.relationships.pop(NodeRelationship.SOURCE)
    vectors.add([node])
    assert Path(vectors.path, "chunked", "llama-index", "1.md").read_bytes() == before
