"""Documents as clients send them, and as chunk files have them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore import UsageError
from filestore.server.collection import (
    IndexRequest,
    SentDocument,
    checked_info,
    documents_in,
    id_and_metadata,
)
from filestore.server.operations import decoded
from tests.advice import advised

KEYS = st.sampled_from(["source", "document_id", "document_metadata", "order", "a"]) | st.text()
VALUES = st.none() | st.integers() | st.text() | st.lists(st.booleans())


@given(st.text(min_size=1), st.dictionaries(KEYS, VALUES))
def test_id_and_metadata_come_back(identifier: str, metadata: dict[str, Any]) -> None:
    """Whatever they are called: names that the store needs for itself, too."""
    document = SentDocument(id=identifier, text="a", metadata=metadata)
    assert id_and_metadata(document.frontmatter, "a.md") == (identifier, metadata)


def test_a_file_that_a_person_wrote_has_its_path_as_id() -> None:
    """And its keys as metadata."""
    assert id_and_metadata({"tags": ["a"]}, "chunked/a.md") == ("chunked/a.md", {"tags": ["a"]})


def sent(documents: object = "a", dataset_info: object = None) -> dict[str, Any]:
    """What is kept beside the documents of a request, whose documents are checked."""
    request = {"name": "a", "documents": documents, "dataset_info": dataset_info}
    index = decoded(IndexRequest, request, "index")
    documents_in(index.documents)
    return checked_info(index.dataset_info)


def test_documents_without_id_are_counted() -> None:
    """From 0, as rows of an index are."""
    found = documents_in(["a", {"content": "b"}, {"text": "c", "id": 7}, {"text": "d", "id": "x"}])
    assert [(one.id, one.text) for one in found] == [("0", "a"), ("1", "b"), ("7", "c"), ("x", "d")]


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        {},
        [3],
        [None],
        [""],
        [" \n"],
        [{}],
        [{"text": 3}],
        [{"text": "a", "content": "b"}],
        [{"text": "a", "id": ""}],
        [{"text": "a", "id": True}],
        [{"text": "a", "id": "x" * 1001}],
        [{"text": "a", "metadata": []}],
        [{"text": "a", "more": 1}],
        [{"text": "a", "id": "1"}, "b"],
    ],
)
def test_what_is_no_document_is_refused(given: object) -> None:
    """With what to do about it, or what was expected."""
    with pytest.raises(UsageError) as caught:
        sent(documents=given)
    assert advised(caught.value) or "expected" in caught.value.message or "its" in str(caught.value)


def test_what_is_kept_beside_documents_is_small() -> None:
    """It is part of each answer about the collection."""
    assert sent(dataset_info=None) == {}
    assert sent(dataset_info={"license": "CC0"}) == {"license": "CC0"}
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"a": deep}
    for wrong in ([], "text", {"a": "x" * 70_000}, deep):
        with pytest.raises(UsageError):
            sent(dataset_info=wrong)
