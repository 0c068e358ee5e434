"""Phrases and identifiers bind whatever ranks the hits."""

from typing import Any

import pytest

NOTES = {
    "blue": "The boiler\npump is blue.",
    "red": "The boiler valve is red, the pump is not.",
    "kiln": "A kiln is fired twice, and cools for a day.",
    "versions": "Take 3.11 for the kiln.",
    "later": "The 3rd of 12 kilns, 11 years later.",
}
MODES = ("hybrid", "vector", "keyword")


@pytest.fixture(params=["tree", "in-place"])
def notes(request: Any, new_workspace: Any) -> Any:
    """A store of the notes, in both layouts."""
    work = new_workspace(init=request.param == "tree")
    for name, text in NOTES.items():
        work.write(f"notes/{name}.md", f"# {name.title()}\n\n{text}\n")
    work(*(["add", "notes"] if request.param == "tree" else ["init", "--in-place", "notes"]))
    work.root = work.folder / ("" if request.param == "tree" else "notes")
    return work


def found(notes: Any, query: str, *options: str) -> tuple[set[str], list[str]]:
    """The names of the notes that are found, and what is noted."""
    answer = notes.json("search", query, *options, cwd=notes.root, code=None)
    sources = [hit["document"] or hit["source"] or hit["path"] for hit in answer["hits"]]
    return {source.rpartition("/")[2].removesuffix(".md") for source in sources}, answer["notes"]


@pytest.mark.parametrize("mode", MODES)
def test_a_phrase_binds(notes: Any, mode: str) -> None:
    """Alone, across lines, and beside words; one that is nowhere finds nothing."""
    for query, names in {
        '"boiler pump"': {"blue"},
        '"BOILER, Pump"': {"blue"},
        '"pump boiler"': set[str](),
        'red "boiler pump"': {"blue"},
        '"3.11"': {"versions"},
        "3.12": set[str](),
        '"kiln 3.11"': set[str](),
    }.items():
        assert found(notes, query, "--mode", mode)[0] == names, query


@pytest.mark.parametrize("mode", MODES)
def test_a_phrase_beside_words_is_given_up_with_a_note(notes: Any, mode: str) -> None:
    """Where nothing holds it, its words are searched for."""
    names, noted = found(notes, 'kiln "pump boiler"', "--mode", mode)
    assert {"kiln", "blue"} <= names
    assert '"pump boiler" is nowhere: searched for its words' in noted
    assert not [note for note in found(notes, 'kiln "fired twice"')[1] if "holds" in note]


def test_a_phrase_binds_what_is_asked_besides(notes: Any) -> None:
    """Other words for a question leave the phrase as it is."""
    assert found(notes, 'pump "boiler valve"', "--rewrite", "5")[0] == {"red"}
