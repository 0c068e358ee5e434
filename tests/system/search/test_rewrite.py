"""Asking a query in other words, too: in which, what comes of it, and where there are none."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.chat_server import ChatServer, cut_json, data_of, writes
from tests.system.embedding_server import Behaviour, status

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


# A service


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A chat service on loopback."""
    with ChatServer() as running:
        yield running


def served(yard: Any, server: ChatServer, *, trusted: bool = True) -> None:
    """Have the service make the queries."""
    settings = yard.store / "filestore.toml"
    service = f'\n[generator]\nname = "openai:small"\nendpoint = "{server.endpoint}"\n'
    settings.write_text(settings.read_text() + service)
    if trusted:
        yard("trust", "--yes")


def test_a_service_is_asked_once(yard: Any, server: ChatServer) -> None:
    """However many hits it takes, a query is paid for once, and what it took is told."""
    served(yard, server)
    done = yard.json("search", "oak keel", "--rewrite", "2", "--group", "document", "-k", "3")
    assert len(done["rewrites"]) == 2
    assert done["tokens"] == 120
    assert len(server.requests) == 1
    texts = data_of(server.requests[0])["texts"]
    assert texts[0] == "oak keel"
    assert texts[1].startswith("A keel of oak")


def test_a_service_that_is_not_trusted(yard: Any, server: ChatServer) -> None:
    """Nothing goes out; the plain answer says what would allow it."""
    served(yard, server, trusted=False)
    plain = names(yard.json("search", "oak keel"))
    done = yard.json("search", "oak keel", "--rewrite", "2")
    assert names(done) == plain
    assert "filestore trust" in done["notes"][-1]
    assert server.requests == []


@pytest.mark.parametrize(
    "fails", [status(401), writes("I'm sorry, but I can't help with that."), cut_json, writes("")]
)
def test_a_service_that_fails(yard: Any, server: ChatServer, fails: Behaviour) -> None:
    """The plain answer is given, and says what went wrong."""
    served(yard, server)
    server.behave(fails)
    plain = names(yard.json("search", "oak keel"))
    done = yard.json("search", "oak keel", "--rewrite", "2")
    assert names(done) == plain
    assert "rewrites" not in done
    assert done["notes"][-1].startswith("asked as it was typed only: ")


def test_what_a_service_takes_is_compared(yard: Any, server: ChatServer) -> None:
    """The tokens of a query stand beside its time."""
    served(yard, server)
    path = yard.write("q.jsonl", '{"query": "oak keel", "relevant": ["chunked/yard/keel.md"]}\n')
    done = yard.json("evaluate", path, "--compare", "--rerank", "", "--rewrite", "1")
    tokens = {one["name"]: one["tokens"] for one in done["compared"]}
    assert tokens == {"plain": 0, "questions": 0, "summaries": 0, "both": 0, "rewrite": 120}
    assert len(server.requests) == 1
