"""Texts of documents: the one among others that answer stands before the one that is alone."""

from collections.abc import Callable
from typing import Any

import pytest

ASKED = "limpets on kelp"
TEXT = "Limpets graze on kelp below the tide line."
OTHERS = {
    "zone": [
        "Kelp holds fast to rock where the swell runs hard, and limpets follow it down the shore.",
        "Where kelp is torn away by the storms of a long winter, limpets starve before the spring.",
    ],
    "atlas": ["Ships are caulked with oakum.", "Bread is baked twice for a voyage."],
}
"""What else each document says; the wrong one comes first where all else is equal."""

MARK = {"zone": "Seaward", "atlas": "Leeward", "only": "Ashore"}
"""What tells the texts apart: equal ones are one hit."""


def evidence(hit: Any) -> float:
    """How far it stands out by keyword."""
    found: float = hit["why"]["keyword"]["evidence"]
    return found


@pytest.mark.parametrize("place", ["{name}/", "all/{name}-"])
def test_chunks_of_a_document(workspace: Any, place: str) -> None:
    """They are of one source; a chunk that is all of its document has nothing beside it."""
    for name, others in (*OTHERS.items(), ("only", [])):
        for number, text in enumerate([f"{TEXT} {MARK[name]}.", *others], start=1):
            path = f"file_index/chunked/{place.format(name=name)}chunk{number}.md"
            workspace.write(path, f"---\nsource: {name}.md\n---\n{text}\n")
    workspace.sync()
    hits = {hit["path"]: hit for hit in workspace.json("search", ASKED)["hits"]}
    only, zone, atlas = (
        hits[f"chunked/{place.format(name=name)}chunk1.md"] for name in ("only", "zone", "atlas")
    )
    assert only["score"] > zone["score"] > atlas["score"]
    assert evidence(only) > evidence(zone) > evidence(atlas)


def test_sections_of_a_document(new_workspace: Callable[..., Any]) -> None:
    """They are of one file."""
    notes = new_workspace(init=False)
    for name, others in OTHERS.items():
        notes.write(
            f"{name}.md",
            "".join(f"## Part\n\n{text}\n\n" for text in [f"{TEXT} {MARK[name]}.", *others]),
        )
    notes("init", "--in-place", "--embedder", "builtin")
    first, second = notes.json("search", ASKED)["hits"]
    assert (first["path"], second["path"]) == ("zone.md", "atlas.md")
    assert first["score"] > second["score"]
