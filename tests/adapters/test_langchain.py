"""LangChain's own standard tests of vector stores and retrievers, and what is ours beside."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore import RefusedError, UsageError

pytest.importorskip("langchain_core", reason="langchain-core is not installed")
pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.load import dumps
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

from filestore.adapters.langchain import (
    FilestoreEmbeddings,
    FilestoreRetriever,
    FilestoreVectorStore,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty store."""
    filestore.create(tmp_path / "store", embedder="builtin").close()
    return tmp_path / "store"


@pytest.fixture
def vectors(place: Path) -> Iterator[FilestoreVectorStore]:
    """A vector store on it."""
    with FilestoreVectorStore(place) as made:
        yield made


class TestStandardVectorStore(VectorStoreIntegrationTests):
    """LangChain's suite, sync and async."""

    @pytest.fixture
    def vectorstore(self, vectors: FilestoreVectorStore) -> Any:
        return vectors


class TestStandardRetriever(RetrieversIntegrationTests):
    """LangChain's suite, sync and async."""

    @pytest.fixture(autouse=True)
    def _store(self, place: Path) -> None:
        with filestore.open(place) as store:
            store.put([f"The {one} is paid." for one in ("rent", "deposit", "gas")], into="notes")
        self.place = place

    @property
    def retriever_constructor(self) -> Any:
        return FilestoreRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"path": self.place}

    @property
    def retriever_query_example(self) -> str:
        return "what is paid"


HANDBOOK = "# The lease\n\nThe rent is paid on the third working day.\n"


def test_a_hit_says_where_it_stands(place: Path, vectors: FilestoreVectorStore) -> None:
    """Path, line and freshness of the document that a person opens, whoever added it."""
    Path(place, "lease.md").write_text(HANDBOOK)
    with filestore.open(place) as store:
        store.add(place / "lease.md")
    vectors.add_texts(["Gas is read in March."], [{"source": "https://example.org/gas"}])
    retriever = FilestoreRetriever(path=place, k=1)
    (lease,) = retriever.invoke("rent")
    assert lease.metadata["path"] == lease.metadata["source"] == "lease.md"
    assert (lease.metadata["line"], lease.metadata["freshness"]) == (3, "fresh")
    assert lease.id == lease.metadata["chunk"] == "chunked/lease.md/chunk1.md"
    (gas,) = retriever.invoke("gas")
    assert gas.metadata["source"] == "https://example.org/gas"
    assert gas.metadata["path"] == f"chunked/langchain/{gas.id}.md"
    assert vectors.get_by_ids([lease.id or "", gas.id or ""]) == [lease, gas]
    retriever.close()


def test_a_hit_that_was_edited_has_its_text_of_now(
    place: Path, vectors: FilestoreVectorStore
) -> None:
    """A person who corrects a chunk file is believed at once, and one who deletes it."""
    gas, rent = vectors.add_texts(["Gas is read in March.", "Rent is due."], ids=["gas", "rent"])
    file = place / "chunked" / "langchain" / f"{gas}.md"
    file.write_text(file.read_text().replace("March", "May"))
    (hit,) = vectors.similarity_search("gas", k=1)
    assert (hit.page_content, hit.metadata["freshness"]) == ("Gas is read in May.", "fresh")
    file.unlink()
    assert [one.id for one in vectors.similarity_search("gas", k=2)] == [rent]


def test_a_persons_correction_is_not_overwritten(
    place: Path, vectors: FilestoreVectorStore
) -> None:
    """The same documents again leave it; another text is refused until that is asked for."""
    vectors.add_texts(["Gas is read in March."], ids=["gas"])
    file = place / "chunked" / "langchain" / "gas.md"
    file.write_text(file.read_text().replace("March", "May"))
    vectors.add_texts(["Gas is read in March."], ids=["gas"])
    assert "May" in file.read_text()
    with pytest.raises(RefusedError, match="a person edited"):
        vectors.add_texts(["Gas is read in June."], ids=["gas"])
    vectors.add_texts(["Gas is read in June."], ids=["gas"], replace=True)
    assert "June" in file.read_text()


def test_one_undo_takes_back_what_was_added_at_once(
    place: Path, vectors: FilestoreVectorStore
) -> None:
    """Whoever wrote it."""
    vectors.add_texts(["Gas is read in March.", "Rent is due."])
    with filestore.open(place) as store:
        store.undo()
    assert vectors.similarity_search("gas") == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"source": "a.pdf", "kind": "letter", "questions": 7, "page": "12", "title": "Gas"},
        {"path": "/etc/passwd", "line": "x", "freshness": 0, "metadata": {"a": 1}},
        {"metadata": 3, "nested": {"a": [1, 2.5, None, True]}, "ä key: #": "ü\n---\nx"},
        {"origin": None, "path": None},
    ],
)
def test_metadata_of_any_name_comes_back(
    vectors: FilestoreVectorStore, metadata: dict[str, Any]
) -> None:
    """Also such as a store has a meaning for; what was found can be added again as it was."""
    given = Document(id="1", page_content="Gas is read in March.", metadata=metadata)
    vectors.add_documents([given])
    (hit,) = vectors.similarity_search("gas")
    assert hit == given
    assert given == hit
    assert hit.metadata["path"] == "chunked/langchain/1.md"
    vectors.add_documents([hit])
    assert vectors.get_by_ids(["1"]) == [given]
    plain = {"page_content": hit.page_content, "id": "1"}
    assert hit != Document(metadata={**metadata, "more": 1}, **plain)
    # It is kept, and read back, as any document.
    assert json.loads(dumps(hit))["id"] == json.loads(dumps(given))["id"]


@pytest.mark.parametrize(
    "identifier",
    ["a/b", "../../etc/passwd", ".hidden", "a%2Fb", "doc:1#3?x=y&z", "ü日本", "summary1", "git~1"],
)
def test_an_id_of_any_form_is_kept(
    place: Path, vectors: FilestoreVectorStore, identifier: str
) -> None:
    """And leads to a file in the folder, and nowhere else."""
    assert vectors.add_texts(["Gas is read in March."], ids=[identifier]) == [identifier]
    assert [one.id for one in vectors.get_by_ids([identifier])] == [identifier]
    (file,) = (one for one in place.rglob("*.md") if one.is_file())
    assert file.parent == place / "chunked" / "langchain"
    vectors.delete([identifier])
    assert not file.exists()


def test_an_id_of_another_file_is_not_written_to(
    place: Path, vectors: FilestoreVectorStore
) -> None:
    """What belongs to somebody else is edited in its file."""
    with filestore.open(place) as store:
        store.put(["Rent is due."], into="notes", names=["rent"])
    with pytest.raises(UsageError, match="another file"):
        vectors.add_texts(["Gas"], ids=["chunked/notes/rent.md"])
    assert vectors.delete()
    assert len(vectors.get_by_ids(["chunked/notes/rent.md"])) == 1


def test_only_what_was_put_is_cleared(place: Path) -> None:
    """Not the chunks of a document, in whichever folder somebody lets a framework write."""
    Path(place, "lease.md").write_text(HANDBOOK)
    with filestore.open(place) as store:
        store.add(place / "lease.md")
    with FilestoreVectorStore(place, into="lease.md") as vectors:
        for change in (vectors.delete, lambda: vectors.add_texts(["Gas."])):
            with pytest.raises(RefusedError, match="made from"):
                change()
        assert len(vectors.similarity_search("rent")) == 1


def test_filters_narrow_by_values_or_by_a_function(vectors: FilestoreVectorStore) -> None:
    """Also by keys that a store has a meaning for; as many are found as are wanted."""
    texts = [f"Rent of year {year}." for year in range(2000, 2030)]
    metadata = [
        {"year": year, "kind": "odd" if year % 2 else "even", "tags": ["rent", str(year)]}
        for year in range(2000, 2030)
    ]
    vectors.add_texts(texts, metadata)

    def years(**options: Any) -> list[int]:
        return sorted(one.metadata["year"] for one in vectors.similarity_search("rent", **options))

    assert years(filter={"year": 2004}) == [2004]
    assert years(filter={"tags": ["rent", "2005"]}) == [2005]
    assert years(filter={"kind": "odd", "year": 2006}) == []
    assert years(k=30, filter={"kind": "odd"}) == list(range(2001, 2030, 2))
    assert years(k=3, filter=lambda one: one.metadata["year"] > 2026) == [2027, 2028, 2029]
    retriever = vectors.as_retriever(search_kwargs={"k": 1, "filter": {"year": 2007}})
    assert [one.metadata["year"] for one in retriever.invoke("rent")] == [2007]
    with pytest.raises(TypeError, match="unknown option"):
        vectors.similarity_search("rent", filters={"year": 1})
    with pytest.raises(UsageError, match="no search by marginal relevance"):
        vectors.as_retriever(search_type="mmr").invoke("rent")


def test_scores_are_cosines_and_may_have_a_threshold(vectors: FilestoreVectorStore) -> None:
    """With vectors; the scores of both rankings together lie on no scale."""
    vectors.add_texts(["Gas is read in March.", "Rent is due."])
    (first, best), (_, other) = vectors.similarity_search_with_score("Gas is read in March.", k=2)
    assert (first.page_content, round(best, 3)) == ("Gas is read in March.", 1.0)
    assert other < best
    found = vectors.similarity_search_with_relevance_scores("gas", k=2, score_threshold=0.2)
    assert [one.page_content for one, _ in found] == ["Gas is read in March."]
    vectors.mode = "hybrid"
    assert len(vectors.similarity_search("gas", k=2)) == 1
    with pytest.raises(UsageError, match="no scale"):
        vectors.similarity_search_with_relevance_scores("gas")


def test_another_model_is_refused(place: Path, vectors: FilestoreVectorStore) -> None:
    """Its vectors could not be compared with those that are there; the store's own is given."""
    with pytest.raises(UsageError, match="is another one"):
        FilestoreVectorStore(place, embedding=DeterministicFakeEmbedding(size=6))
    with pytest.raises(UsageError, match="is another one"):
        FilestoreVectorStore.from_texts(["a"], DeterministicFakeEmbedding(size=6), path=place)
    model = vectors.embeddings
    assert isinstance(model, FilestoreEmbeddings)
    with filestore.open(place) as store:
        assert store.embedder is not None
        assert len(model.embed_query("gas")) == store.embedder.dimension
    assert model.embed_documents(["gas"]) == [model.embed_query("gas")]


def test_from_texts_makes_a_store_where_there_is_none(tmp_path: Path) -> None:
    """And opens it where there is one."""
    for texts in (["Gas is read in March."], ["Rent is due."]):
        made = FilestoreVectorStore.from_texts(texts, path=tmp_path / "kb", embedder="builtin")
        made.close()
    with FilestoreVectorStore(tmp_path / "kb") as found:
        assert len(found.similarity_search("gas")) == 2
    with pytest.raises(UsageError, match="was closed"):
        found.similarity_search("gas")


async def test_many_calls_at_once_are_answered(vectors: FilestoreVectorStore) -> None:
    """From whichever threads the event loop gives them; writers wait for each other."""
    await asyncio.gather(*(vectors.aadd_texts([f"Rent {n}"], ids=[str(n)]) for n in range(12)))
    found = await asyncio.gather(*(vectors.asimilarity_search(f"Rent {n}", k=1) for n in range(12)))
    assert [hit.id for (hit,) in found] == [str(n) for n in range(12)]


def test_a_store_in_place_is_searched_and_never_written(tmp_path: Path) -> None:
    """A section is found by path and line, and by them it is had again."""
    (tmp_path / "lease.md").write_text(f"---\nyear: 2024\n---\n{HANDBOOK}")
    with filestore.create(tmp_path, embedder="builtin", layout="in-place") as store:
        store.sync()
    with FilestoreVectorStore(tmp_path) as vectors:
        (hit,) = vectors.similarity_search("rent", filter={"year": 2024})
        assert (hit.id, hit.metadata["path"]) == ("lease.md:4", "lease.md")
        assert (hit.metadata["line"], hit.metadata["year"]) == (6, 2024)
        assert vectors.get_by_ids([hit.id or ""]) == [hit]
        for change in (vectors.delete, lambda: vectors.add_texts(["Gas."])):
            with pytest.raises(filestore.FilestoreError, match="indexes the folder itself"):
                change()
