"""Reranking in a store: what is read again."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from filestore import Store
from filestore.sidecar.model import StoreModel

NOTES = 12


class Latest:
    """A reranker that likes the last note best."""

    def score(self, query: str, texts: Sequence[str]) -> Any:
        """Higher for a later note."""
        return np.array([float(text.split()[1]) for text in texts], np.float32)


def test_more_is_read_again_than_is_shown(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best by the reranker comes first although few hits are wanted and others led."""
    for number in range(NOTES):
        filler = "Slate. " * number
        workspace.write(f"file_index/chunked/{number:02}.md", f"Basalt {number} . {filler}\n")
    workspace.sync()
    monkeypatch.setattr(StoreModel, "reranker", lambda *_: Latest())
    with Store.open(workspace.store) as store:
        plain, again = (
            store.search("basalt", k=1, mode="keyword", rerank=model)
            for model in (None, "cross-encoder")
        )
    assert [one.path for one in again.hits] == [f"chunked/{NOTES - 1:02}.md"]
    assert [one.path for one in plain.hits] != [one.path for one in again.hits]
