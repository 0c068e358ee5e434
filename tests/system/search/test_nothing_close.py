"""Nothing found is an answer: no letters in common, no chance of vectors; copies are one hit."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest

NOTES = {
    "refunds.md": "# Refunds\n\nWe pay the amount back within fourteen days after a return.\n",
    "zoo.md": "# Monkey house\n\nThe monkey steals bananas from visitors.\n",
    "settings.md": "# Settings\n\nSet telemetry to off before the first start.\n",
    "boat.md": "# Boats\n\nAn anchor holds the boat where the seabed is soft.\n",
    "bread.md": "# Bread\n\nThe dough rests for an hour in a warm place.\n",
}
ABSENT = ["flibbertigibbet", "quantum chromodynamics", "xylophonists", "zzyzx", "Grundgesetz"]
SIGNS = ["zzzqqq", "qwxz vbnm", "fhqwhgads"]
"""No word of any language: to a model they are a few signs, near to whatever has some like them."""


@pytest.fixture(params=["builtin", "minilm"])
def notes(new_workspace: Callable[..., Any], request: pytest.FixtureRequest) -> Any:
    """Notes in place, by each of the models that are always here."""
    workspace = new_workspace(init=False)
    for name, text in NOTES.items():
        workspace.write(name, text)
    workspace("init", "--in-place", "--embedder", request.param)
    workspace("sync")
    workspace.embedder = request.param
    return workspace


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_absent_words_bring_no_hits(notes: Any, mode: str) -> None:
    """In no mode; what is nearest in meaning stands apart, and it is no success."""
    for word in ABSENT:
        answer = notes("search", word, "--mode", mode, "--json", code=1).json
        assert answer["hits"] == []
        has_nearest = mode != "keyword" and notes.embedder == "minilm"
        assert len(answer["nearest"]) == (3 if has_nearest else 0)
    shown = notes("search", ABSENT[0], "--mode", mode, code=1).stdout
    assert shown.startswith("nothing close; nearest:\n" if has_nearest else "nothing found\n")
    listed = notes("search", ABSENT[0], "--mode", mode, "-l", code=1)
    assert listed.stdout == ""


def test_signs_that_are_no_words_bring_no_hits(new_workspace: Callable[..., Any]) -> None:
    """In a store of a few notes, where the nearest is near to anything."""
    notes = new_workspace(init=False)
    notes.write(
        "Zanzibar trip.md", "We fly in May and come back in June.\n\n## Costs\n\n900 each.\n"
    )
    notes.write("Other note.md", "Plans, see [[Zanzibar trip]]. Zanzibar is warm.\n")
    notes.write("Bread.md", "# Bread\n\nFlour, water, salt and yeast.\n")
    notes("init", "--in-place", "--embedder", "minilm")
    for signs in SIGNS:
        answer = notes.json("search", signs, code=1)
        assert (answer["hits"], len(answer["nearest"])) == ([], 3), signs
    for words in ("vacation", "Reise nach Afrika"):
        assert notes.json("search", words)["hits"], words


def test_a_word_is_a_hit_however_far_its_text_is_in_meaning(notes: Any) -> None:
    """And without it, meaning alone finds what is near."""
    assert notes.json("search", "dough quantum chromodynamics")["hits"][0]["path"] == "bread.md"
    if notes.embedder == "minilm":
        answer = notes.json("search", "get my money refunded")
        assert answer["hits"][0]["path"] == "refunds.md"
        assert 0.3 < answer["hits"][0]["meaning"] < 1


def test_each_hit_says_why(notes: Any) -> None:
    """Words and where they are; meaning where the model knows any, comparable between queries."""
    (first, *_) = notes.json("search", "monkey bananas")["hits"]
    assert first["reason"].startswith("'monkey' in the title; 'bananas' in the text")
    assert ("meaning" in first["reason"]) == (notes.embedder == "minilm")
    (shown, reason, *_) = notes("search", "monkey bananas").stdout.splitlines()
    assert shown.startswith("zoo.md:3")
    assert reason.strip() == f"({first['date']}; {first['reason']})"
    same = notes.json("search", "Monkey house. The monkey steals bananas from visitors.")["hits"][0]
    assert first["meaning"] < same["meaning"] <= 1
    for hit in notes.json("search", "monkey bananas", "--mode", "keyword")["hits"]:
        assert hit["meaning"] is None


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_copies_are_one_hit(notes: Any, mode: str) -> None:
    """However few hits are wanted; a copy that is gone or was edited is none."""
    for name in ("a.md", "b.md", "c.md"):
        shutil.copyfile(notes.folder / "boat.md", notes.folder / name)
    notes.write("lake.md", "# Lake\n\nThe boat on the lake has an anchor.\n")
    notes("sync")
    for count in ("1", "10"):
        hits = notes.json("search", "soft anchor", "--mode", mode, "-k", count)["hits"]
        (one,) = [hit for hit in hits if hit["copies"]] if count == "10" else [hits[0]]
        assert {one["path"], *one["copies"]} >= {"a.md", "b.md", "c.md", "boat.md"} or count == "1"
    assert [hit["path"] for hit in hits].count("lake.md") == 1
    assert (one["path"], one["copies"]) == ("a.md", ["b.md", "boat.md", "c.md"])
    assert "(+3 copies)" in notes("search", "soft anchor", "--mode", mode).stdout
    (only,) = notes.json("search", "soft anchor", "--source", "b*.md", "-k", "1")["hits"]
    assert (only["path"], only["copies"]) == ("b.md", ["boat.md"])
    (notes.folder / "b.md").unlink()
    (notes.folder / "c.md").write_text("# Boats\n\nAnother anchor of a boat altogether.\n")
    hits = notes.json("search", "soft anchor", "--mode", mode, "--no-update")["hits"]
    assert [hit["copies"] for hit in hits if hit["path"] == "a.md"] == [["boat.md"]]


def test_copies_in_chunk_files(either: Any) -> None:
    """In the layouts of chunk files too: whole copies of a document."""
    for name in ("one", "two"):
        either.write(f"docs/{name}.md", NOTES["boat.md"])
    either.write("docs/lake.md", "# Lake\n\nThe boat on the lake has an anchor.\n")
    either("add", "docs", "--each")
    for mode in ("hybrid", "keyword"):
        hits = either.json("search", "anchor seabed", "--mode", mode, "-k", "2")["hits"]
        assert [hit["resource"] for hit in hits] == ["one.md", "lake.md"]
        assert len(hits[0]["copies"]) == 1
