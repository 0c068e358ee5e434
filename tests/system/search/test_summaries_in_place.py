"""Searching documents in place that have summaries and questions beside them."""

from collections.abc import Callable
from typing import Any

import pytest

from filestore.chunks import chunk_file

TOPICS = ("beans", "leeks", "marrows")
FOLDER = ".filestore-summaries/Garden.md"


def top(notes: Any) -> str:
    """The path of the highest summary of the document."""
    found = (notes.folder / FOLDER).glob("summary*.md")
    levels = {path.name: chunk_file.parse(path.read_bytes()).level or 0 for path in found}
    return f"{FOLDER}/{max(levels, key=lambda name: levels[name])}"


@pytest.fixture
def notes(new_workspace: Callable[..., Any], manual: Callable[[Any], str]) -> Any:
    """A document of three sections, with a summary of them that has a question, and another."""
    made = new_workspace(init=False)
    made.write("Garden.md", manual(TOPICS))
    made.write("Stub.md", "# Stub\n\nA walrus.\n")
    made("init", "--in-place", "--embedder", "builtin")
    made("enrich", "--summaries")
    path = made.folder / top(made)
    head, fence, body = path.read_text().partition("\n---\n")
    path.write_text(f'{head}\nquestions: ["Who tends vegetables?"]{fence}{body}')
    made("sync")
    return made


def asked(notes: Any, *words: str) -> dict[str, Any]:
    """Hits by their paths, in order."""
    return {hit["path"]: hit for hit in notes.json("search", *words)["hits"]}


def test_a_section_is_answered_by_its_document(notes: Any) -> None:
    """The summary of the document takes no place, whatever it says."""
    for words, mode in (("leeks needs care in step 3", "hybrid"), ("who tends leeks", "vector")):
        found = asked(notes, words, "--mode", mode)
        kinds = [hit["kind"] for hit in found.values()]
        assert (kinds[0], kinds) == ("document", sorted(kinds))
        assert top(notes) not in found


def test_a_summary_is_found_by_its_question(notes: Any) -> None:
    """The question that matched is shown; without questions nothing is lost but that."""
    words = ("who tends vegetables", "--mode", "vector", "--kind", "summary")
    hit = asked(notes, *words)[top(notes)]
    assert (hit["kind"], hit["question"]) == ("summary", "Who tends vegetables?")


def test_from_the_top(notes: Any) -> None:
    """The summary leads to the sections of its document, and to no other."""
    found = asked(notes, "marrows", "--tree")
    assert list(found) == ["Garden.md"]
    assert found["Garden.md"]["via"][0] == top(notes)


def test_what_a_document_is_about(notes: Any) -> None:
    """Its summary stands at the top, with its counts and its outline."""
    done = notes.json("about", "Garden.md")
    assert (done["about"], done["name"], done["stale"]) == ("resource", "Garden.md", 0)
    assert [one["path"] for one in done["nodes"]] == [top(notes)]
    assert done["chunks"] == len(notes.json("ls", "Garden.md")["items"])
    assert [one["title"] for one in done["outline"]][-1] == "About marrows"
    assert [one["path"] for one in notes.json("about")["nodes"]] == [top(notes)]


def test_a_section_that_changed_or_came(notes: Any, manual: Any) -> None:
    """The summary is outdated, in hits and in what the document is about."""
    notes.write("Garden.md", manual([*TOPICS, "pumpkins"]))
    notes("sync", code=None)
    words = ("who tends vegetables", "--mode", "vector", "--kind", "summary")
    hit = asked(notes, *words)[top(notes)]
    assert hit["freshness"] == "outdated"
    assert notes.json("about", "Garden.md")["stale"] == 1
    assert notes.json("status", code=None)["drift"].keys() == {"summary-stale"}
