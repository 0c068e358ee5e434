"""Haystack's own tests of document stores, and its retriever on a store with documents."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
pytest.importorskip("haystack", reason="haystack-ai is not installed")

from haystack import Document, Pipeline
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.testing.document_store import (
    CountDocumentsTest,
    DeleteAllTest,
    DeleteDocumentsTest,
    FilterDocumentsTest,
    WriteDocumentsTest,
)

from filestore.adapters.haystack import FilestoreDocumentStore, FilestoreRetriever


@pytest.fixture
def document_store(tmp_path: Path) -> Iterator[FilestoreDocumentStore]:
    """A document store on an empty store."""
    filestore.create(tmp_path / "store", embedder="builtin").close()
    made = FilestoreDocumentStore(tmp_path / "store")
    yield made
    made.close()


class TestStandard(
    CountDocumentsTest, DeleteAllTest, DeleteDocumentsTest, FilterDocumentsTest, WriteDocumentsTest
):
    """Haystack's suite. The store embeds by itself and has an order of its own."""

    @staticmethod
    def assert_documents_are_equal(received: list[Any], expected: list[Any]) -> None:
        def known(documents: list[Any]) -> list[Any]:
            return sorted((one.id, one.content, sorted(one.meta.items())) for one in documents)

        assert known(received) == known(expected)

    def test_write_documents(self, document_store: FilestoreDocumentStore) -> None:
        """By default a document that is there is an error."""
        given = [Document(content="rent", meta={"source": "a.md", "kind": "letter"})]
        assert document_store.write_documents(given) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents(given, policy=DuplicatePolicy.NONE)
        assert document_store.filter_documents() == given


def test_a_pipeline_finds_documents_and_says_where_they_stand(
    document_store: FilestoreDocumentStore,
) -> None:
    """Also those that were added to the store by other ways; a pipeline is kept and read back."""
    document_store.write_documents([Document(id="1", content="Gas is read in March.")])
    with filestore.open(document_store.folder.root) as store:
        store.put(["The rent is paid."], into="notes", names=["rent"], metadata=[{"year": 2024}])
    pipeline = Pipeline()
    pipeline.add_component("find", FilestoreRetriever(document_store, top_k=3))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["filestore.adapters.haystack"])
    filters = {"field": "meta.year", "operator": ">=", "value": 2024}
    for one in (pipeline, again):
        (hit,) = one.run({"find": {"query": "rent"}})["find"]["documents"]
        assert (hit.id, hit.meta["path"]) == ("chunked/notes/rent.md", "chunked/notes/rent.md")
        assert (hit.meta["line"], hit.meta["freshness"], hit.meta["year"]) == (5, "fresh", 2024)
        (hit,) = one.run({"find": {"query": "gas", "top_k": 1}})["find"]["documents"]
        assert hit.id == "1"
        found = one.run({"find": {"query": "gas", "filters": filters}})["find"]["documents"]
        assert [one.id for one in found] == []
    again.get_component("find").document_store.close()
