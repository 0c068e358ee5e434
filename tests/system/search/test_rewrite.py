"""Asking a query in other words, too: in which, what comes of it, and where there are none."""

from typing import Any

import pytest

YARD = {
    "keel": "A keel of oak is laid on the slipway before the ribs. The shipwright trims the keel.",
    "ribs": "Ribs of oak are steamed, and bent over the slipway by a shipwright.",
    "sails": "Sails of flax are sewn in the loft and tanned brown.",
    "rot": "A keel rots in wet ground.",
    "beans": "Runner beans climb tall poles in the kitchen garden.",
}


@pytest.fixture
def yard(workspace: Any) -> Any:
    """A store of a few chunk files."""
    for name, text in YARD.items():
        workspace.write(f"file_index/chunked/yard/{name}.md", f"{text}\n")
    workspace.sync()
    return workspace


def names(done: Any) -> list[str]:
    """The names of the hits."""
    return [hit["path"].rpartition("/")[2] for hit in done["hits"]]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_other_queries_are_asked_and_named(yard: Any, mode: str) -> None:
    """The answer says which queries were asked besides, and has each file once."""
    done = yard.json("search", "oak keel", "--rewrite", "2", "--mode", mode)
    assert 1 <= len(done["rewrites"]) <= 2
    assert f"also asked: {'; '.join(done['rewrites'])}" in done["notes"]
    assert done["query"] == "oak keel"
    assert names(done)[0] == "keel.md"
    assert len(names(done)) == len(set(names(done)))
    assert any(one.startswith("rewrite ") for hit in done["hits"] for one in hit["why"])


def test_the_same_query_is_made_into_the_same_ones(yard: Any) -> None:
    """Twice asked, the same is asked besides, and the answer is the same."""
    one, two = (yard.json("search", "oak keel", "--rewrite", "3") for _ in range(2))
    assert one == two


def test_words_near_the_query_find_more(yard: Any) -> None:
    """A text that shares no word with what was typed is found by words of those that do."""
    assert names(yard.json("search", "trims", "--mode", "keyword")) == ["keel.md"]
    done = yard.json("search", "trims", "--mode", "keyword", "--rewrite", "5")
    assert names(done)[0] == "keel.md"
    assert "rot.md" in names(done)


def test_without_rewriting_nothing_is_said_of_it(yard: Any) -> None:
    """An ordinary answer has no such key."""
    assert "rewrites" not in yard.json("search", "oak keel")


def test_of_a_query_that_finds_nothing(yard: Any) -> None:
    """It is answered as it was typed, which is said, and nothing breaks."""
    done = yard.json("search", "zzzz", "--mode", "keyword", "--rewrite", "2", code=1)
    assert done["hits"] == []
    assert done["notes"][-1].startswith("asked as it was typed only: ")


def test_a_generator_that_is_unknown(yard: Any) -> None:
    """The plain answer is given, with the reason and what to do."""
    settings = yard.store / "filestore.toml"
    settings.write_text(settings.read_text() + '\n[generator]\nname = "oracle"\n')
    plain = names(yard.json("search", "oak keel"))
    done = yard.json("search", "oak keel", "--rewrite", "2")
    assert names(done) == plain
    assert "unknown generator 'oracle'" in done["notes"][-1]
    assert "rewrites" not in done


@pytest.mark.parametrize("number", ["-1", "21"])
def test_a_number_that_makes_no_sense(yard: Any, number: str) -> None:
    """It is wrong usage, and says what is taken."""
    assert "0 to 20" in yard("search", "oak", "--rewrite", number, code=2).stderr


def test_from_the_top_too(yard: Any) -> None:
    """With --tree the other queries choose branches, too."""
    yard.summarize("yard/summary1.md", "Ships", "Oak is bent.\n", ["yard/keel.md", "yard/ribs.md"])
    yard.sync(code=None)
    done = yard.json("search", "oak keel", "--rewrite", "2", "--tree")
    assert done["rewrites"]
    assert sorted(names(done)) == ["keel.md", "ribs.md"]
    assert done["hits"][0]["via"] == ["chunked/yard/summary1.md"]
