"""Searching a store with summaries and questions: which of them are shown, and what they say."""

from collections.abc import Sequence
from typing import Any

import pytest

PLANTS = {
    "beans": "Runner beans climb tall poles in the kitchen garden.",
    "marrows": "Marrows swell on the compost heap through August.",
    "leeks": "Leeks stand in trenches until the frost.",
}
BOATS = {
    "keel": "A keel of oak is laid before the ribs.",
    "sails": "Sails are cut from flax and tanned brown.",
}


@pytest.fixture
def shelf(workspace: Any) -> Any:
    """Two documents of a few chunk files each, a summary of each, and one of both."""
    for resource, chunks in (("plants", PLANTS), ("boats", BOATS)):
        for number, text in enumerate(chunks.values(), start=1):
            workspace.write(f"file_index/chunked/{resource}/chunk{number}.md", f"{text}\n")
    workspace.summarize(
        "plants/summary1.md",
        "Growing vegetables",
        "Vegetables of the year: beans, marrows and leeks, from sowing to harvest.\n",
        [f"plants/chunk{number}.md" for number in (1, 2, 3)],
        questions=["Which vegetables are grown over the year?"],
    )
    workspace.summarize(
        "boats/summary1.md",
        "Building a boat",
        "Shipwrights build in wood: keel, then sails.\n",
        ["boats/chunk1.md", "boats/chunk2.md"],
    )
    workspace.summarize(
        "summaries/summary1.md",
        "Crafts",
        "Crafts of the countryside: vegetables and wooden ships.\n",
        ["plants/summary1.md", "boats/summary1.md"],
        level=2,
    )
    workspace.sync()
    return workspace


def asked(workspace: Any, query: str, *words: str, code: int = 0) -> dict[str, Any]:
    """The hits of an answer by their paths below `chunked/`, in order."""
    done = workspace.json("search", query, *words, code=code)
    return {hit["path"].removeprefix("chunked/"): hit for hit in done["hits"]}


MODES = pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])


def kinds(found: dict[str, Any]) -> str:
    """The first letters of the kinds of some hits, in order."""
    return "".join(hit["kind"][0] for hit in found.values())


@MODES
def test_no_summary_stands_above_a_text(shelf: Any, mode: str) -> None:
    """Also where it says just what is asked, and what is below it is found far down."""
    query = "shipwrights build in wood, crafts of the countryside"
    found = asked(shelf, query, "--mode", mode)
    assert kinds(found) == "".join(sorted(kinds(found)))
    query = "vegetables of the kitchen garden, shipwrights and sails"
    few = asked(shelf, query, "--mode", "vector", "-k", "2")
    assert kinds(few) == "cc"


def test_a_part_is_answered_by_its_chunk(shelf: Any) -> None:
    """A chunk that answers is not pushed down by the summaries above it, which take no place."""
    found = asked(shelf, "marrows swell on the compost heap", "--mode", "keyword")
    assert next(iter(found)) == "plants/chunk2.md"
    assert "plants/summary1.md" not in found
    assert "summaries/summary1.md" not in found


@MODES
def test_what_no_text_says_is_found_in_a_summary(shelf: Any, mode: str) -> None:
    """In a summary, or by it in the best of its texts; filters hold for both."""
    found = asked(shelf, "shipwrights", "--mode", mode)
    assert "boats" in next(iter(found))
    assert not asked(shelf, "shipwrights", "--mode", mode, "--source", "no such*", code=1)


def test_a_chunk_in_the_place_of_its_summary_says_so(shelf: Any) -> None:
    """Where the summary matched better, the best chunk below it stands in its place."""
    found = asked(shelf, "beans vegetables poles year", "--mode", "keyword")
    first = next(iter(found.values()))
    assert first["kind"] == "chunk"
    assert first["via"] == ["chunked/plants/summary1.md"]
    assert first["why"]["summary"]["rank"] == 1


def test_kinds_are_as_asked(shelf: Any) -> None:
    """With --kind there are all of this kind that answer, and no other."""
    found = asked(shelf, "vegetables", "--kind", "summary")
    assert {"plants/summary1.md", "summaries/summary1.md"} <= found.keys()
    assert {hit["kind"] for hit in found.values()} == {"summary"}
    found = asked(shelf, "vegetables beans", "--kind", "chunk")
    assert {hit["kind"] for hit in found.values()} == {"chunk"}


def test_files_are_unique_and_filled_up(shelf: Any) -> None:
    """As many files as were asked for are given where there are so many that answer."""
    done = shelf.json("search", "the", "-k", "4", "--mode", "vector")
    paths = [hit["path"] for hit in done["hits"]]
    assert len(paths) == len(set(paths)) == 4


# Staleness


def test_a_summary_of_changed_text_says_so(shelf: Any) -> None:
    """The summary is as indexed and outdated; so is the one above it, and no other."""
    shelf.write("file_index/chunked/plants/chunk3.md", "Leeks are pulled in March.\n")
    shelf.sync(code=None)
    done = shelf.json("search", "vegetables", "--kind", "summary", code=None)
    states = {hit["path"]: hit["freshness"] for hit in done["hits"]}
    assert states["chunked/plants/summary1.md"] == "outdated"
    assert states["chunked/summaries/summary1.md"] == "outdated"
    assert states.get("chunked/boats/summary1.md", "fresh") == "fresh"
    assert done["notes"] == [
        "2 of these results are summaries of text that changed since: run"
        " 'filestore enrich --refresh'"
    ]
    words = shelf("search", "vegetables", "--kind", "summary")
    assert words.stdout.count("[outdated summary]") == 2


def test_a_summary_whose_child_is_gone(shelf: Any) -> None:
    """A deleted text makes the summary outdated, and the chunks beside it stay fresh."""
    (shelf.chunked / "boats/chunk2.md").unlink()
    shelf.sync(code=None)
    found = asked(shelf, "shipwrights build in wood", "--kind", "summary")
    assert found["boats/summary1.md"]["freshness"] == "outdated"
    assert asked(shelf, "keel of oak laid")["boats/chunk1.md"]["freshness"] == "fresh"


def test_a_text_that_is_in_no_summary(shelf: Any) -> None:
    """The summary that stands for all of a resource is outdated once there is another text."""
    shelf.write("file_index/chunked/other/chunk1.md", "Bees in spring.\n")
    shelf.summarize("other/summary1.md", "The beekeeper", "Bees all year.\n", ["other/chunk1.md"])
    shelf.sync()
    assert asked(shelf, "beekeeper all year")["other/summary1.md"]["freshness"] == "fresh"
    shelf.write("file_index/chunked/other/chunk2.md", "Honey in July.\n")
    shelf.sync(code=None)
    assert asked(shelf, "beekeeper all year")["other/summary1.md"]["freshness"] == "outdated"


def test_an_edited_summary_is_edited(shelf: Any) -> None:
    """What a person changed since is told first, as of any other file."""
    path = shelf.chunked / "boats/summary1.md"
    path.write_text(path.read_text() + "And oars.\n")
    shelf.write("file_index/chunked/boats/chunk2.md", "Sails are white.\n")
    found = asked(shelf, "shipwrights build in wood", "--no-update")
    assert found["boats/summary1.md"]["freshness"] == "edited"


# Questions


def test_a_question_that_matched_is_shown(shelf: Any) -> None:
    """The hit says which of its questions it was found through, in words and in JSON."""
    words = ("which vegetables are grown over the year", "--mode", "vector", "--kind", "summary")
    found = asked(shelf, *words)
    hit = found["plants/summary1.md"]
    assert hit["question"] == "Which vegetables are grown over the year?"
    assert hit["why"]["vector"]["question"] == 1
    shown = shelf("search", *words).stdout
    assert "question: Which vegetables are grown over the year?" in shown


def test_a_question_with_the_words_that_were_asked(shelf: Any) -> None:
    """By keyword, too: where the body has none of the words, the question that has is shown."""
    found = asked(shelf, "which grown", "--mode", "keyword")
    assert found["plants/summary1.md"]["question"] == "Which vegetables are grown over the year?"


def test_a_hit_by_its_body_names_no_question(shelf: Any) -> None:
    """A question that did not match is not shown."""
    found = asked(shelf, "from sowing to harvest of the year", "--kind", "summary")
    hit = found["plants/summary1.md"]
    assert "question" not in hit


def test_a_question_that_was_removed_since(shelf: Any) -> None:
    """A file that lost its question since it was indexed is a hit all the same."""
    path = shelf.chunked / "plants/summary1.md"
    lines = [line for line in path.read_text().splitlines(True) if "Which" not in line]
    path.write_text("".join(lines))
    words = ("which vegetables are grown over the year", "--mode", "vector", "--kind", "summary")
    found = asked(shelf, *words, "--no-update")
    assert found["plants/summary1.md"]["freshness"] == "edited"
    assert "question" not in found["plants/summary1.md"]


# From the top


def led(workspace: Any, query: str, *words: str) -> dict[str, Sequence[str]]:
    """Hits of a search from the top, with the summaries that led to each."""
    found = asked(workspace, query, "--tree", *words)
    assert all(hit["kind"] == "chunk" for hit in found.values())
    return {path: hit["via"] for path, hit in found.items()}


@MODES
def test_from_the_top_to_the_chunks(shelf: Any, mode: str) -> None:
    """Each hit is a chunk, and names the summaries that led to it, from the top."""
    found = led(shelf, "flax sails tanned", "--mode", mode)
    assert next(iter(found)) == "boats/chunk2.md"
    assert found["boats/chunk2.md"] == [
        "chunked/summaries/summary1.md",
        "chunked/boats/summary1.md",
    ]


def test_what_is_in_no_summary_is_said(shelf: Any) -> None:
    """Files that no summary leads to are not found from the top, and their number is told."""
    shelf.write("file_index/chunked/other/chunk1.md", "Flax sails of another yard.\n")
    shelf.sync()
    assert "other/chunk1.md" in asked(shelf, "flax sails")
    done = shelf.json("search", "flax sails", "--tree")
    assert done["hits"][0]["path"] == "chunked/boats/chunk2.md"
    assert "1 file is in no summary, so --tree does not search them" in done["notes"]


def test_from_the_top_of_a_store_without_summaries(workspace: Any) -> None:
    """It is answered as without the option, and the answer says why."""
    workspace.write("file_index/chunked/boats/chunk1.md", "A keel of oak.\n")
    workspace.sync()
    done = workspace.json("search", "keel", "--tree")
    assert [hit["path"] for hit in done["hits"]] == ["chunked/boats/chunk1.md"]
    assert "no summaries" in done["notes"][0]
    assert "via" not in done["hits"][0]


def test_filters_hold_from_the_top(shelf: Any) -> None:
    """A source, or metadata, that is asked for is asked of the chunks that are reached."""
    shelf.write(
        "file_index/chunked/boats/chunk2.md", "---\nyard: north\n---\n" + BOATS["sails"] + "\n"
    )
    shelf.sync(code=None)
    assert list(led(shelf, "keel sails", "--where", "yard=north")) == ["boats/chunk2.md"]


def test_summaries_that_lead_in_circles(shelf: Any) -> None:
    """Summaries that name each other, themselves and what is gone lead to chunks all the same."""
    from filestore.chunks import chunk_file

    top = shelf.chunked / "summaries/summary1.md"
    plants = shelf.chunked / "plants/summary1.md"
    children = [*chunk_file.parse(plants.read_bytes()).children]
    lies = [
        *children,
        *chunk_file.parse(top.read_bytes()).children,
        chunk_file.Child(path=children[0].path, hash="no hash"),
        chunk_file.Child(path=type(children[0].path)("gone.md"), hash=children[0].hash),
        chunk_file.Child(path=type(children[0].path)("summaries/summary1.md"), hash="x"),
    ]
    plants.write_bytes(chunk_file.update(plants.read_bytes(), children=lies, level=0))
    shelf.sync(code=None)
    assert next(iter(led(shelf, "marrows compost"))) == "plants/chunk2.md"
    assert next(iter(asked(shelf, "marrows swell compost heap"))) == "plants/chunk2.md"
    assert asked(shelf, "vegetables", "--kind", "summary")
