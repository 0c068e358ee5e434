"""A second model beside the store's own: built, searched, compared, switched, dropped.

The second one is a service on loopback: a real one to the program, and quick.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from filestore.embed._builtin import BuiltinEmbedder
from filestore.store import Store
from tests.advice import advised
from tests.system.cli.test_embedder import CHECKOUT, until
from tests.system.embedding_server import EmbeddingServer, hangs, status, vector_of, well

NOTES = {
    # Each has a word of the other: the builtin model answers with no text that has none.
    "ferry.md": "# Ferry\n\nThe winter ferry takes bees at seven.\n",
    "bees.md": "# Bees\n\nBees cross by ferry at night, when all have come home.\n",
}
QUERY = "winter ferry"
FERRY = "chunked/ferry.md/chunk1.md"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def filled(workspace: Any) -> Any:
    """A store with two notes, whose model is the builtin one."""
    for name, text in NOTES.items():
        workspace.write(name, text)
    workspace("add", *NOTES)
    return workspace


@pytest.fixture
def tried(filled: Any, server: EmbeddingServer) -> Any:
    """The same with the service beside."""
    filled(*build(server))
    server.requests.clear()
    return filled


def build(server: EmbeddingServer, name: str = "openai:small") -> tuple[str, ...]:
    """The command that builds a model of the service beside."""
    return ("embedder", "set", name, "--endpoint", server.endpoint, "--beside", "--yes")


def sent(server: EmbeddingServer) -> list[str]:
    """The texts of the store that the service was sent."""
    texts = [text for request in server.requests for text in request.texts]
    return [text for text in texts if "#" in text]


def cosine_by(model: str, query: str, text: str) -> float:
    """What one of the two models makes of a query and a text, without the store."""
    if model == "builtin":
        one, other = BuiltinEmbedder().embed_documents([query, text])
    else:
        one, other = (numpy.array(vector_of(words), "float32") for words in (query, text))
    return float(one @ other / numpy.linalg.norm(one) / numpy.linalg.norm(other))


def assert_answers(workspace: Any, *words: str, model: str) -> None:
    """A search answers with the vectors of a model, and its own vector of the query."""
    answer = workspace.json("search", QUERY, "--mode", "vector", *words)
    assert answer["mode"] == "vector"
    assert len(answer["hits"]) == len(NOTES)
    for hit in answer["hits"]:
        headings = " > ".join(hit["headings"])
        text = f"{headings}\n\n{hit['text']}" if headings else hit["text"]
        assert hit["score"] == pytest.approx(cosine_by(model, QUERY, text.rstrip("\n")), abs=1e-4)


def test_both_models_answer_each_with_its_own_vectors(filled: Any, server: EmbeddingServer) -> None:
    """The second is priced, built and searched; the first answers as before."""
    before = filled.json("search", QUERY)["hits"]
    refused = filled(*build(server)[:-1], code=4)
    assert "has to embed 2 passages" in refused.stderr
    assert "[beside]" not in (filled.store / "filestore.toml").read_text()
    assert filled.json(*build(server)) == {
        "embedder": "openai:small",
        "beside": True,
        "embedded": 2,
        "reused": 0,
    }
    assert filled.json("search", QUERY)["hits"] == before
    assert_answers(filled, model="builtin")
    assert_answers(filled, "--beside", model="openai:small")
    told = filled.json("status")
    assert (told["clean"], told["beside"]["name"]) == (True, "openai:small")
    assert filled.json("embedder")["beside"]["usable"] is True
    filled.assert_settled()


def test_new_texts_are_embedded_with_both(tried: Any, server: EmbeddingServer) -> None:
    """As long as it stands beside, what is added is sent to the second model too, once."""
    tried.write("cat.md", "# Cat\n\nA cat sleeps through the winter.\n")
    assert tried.json("add", "cat.md")["embedded"] == 2
    assert len(sent(server)) == 1
    hits = tried.json("search", "a cat sleeps", "--beside", "--mode", "vector")["hits"]
    assert hits[0]["path"] == "chunked/cat.md/chunk1.md"
    assert tried.json("sync")["embedded"] == 0
    tried.assert_settled()


def test_a_switch_embeds_nothing_and_is_taken_back_by_another(
    tried: Any, server: EmbeddingServer
) -> None:
    """After one the second is the store's own; after two every committed byte is as it was."""
    before = tried.committed()
    assert tried.json("embedder", "switch") == {"embedder": "openai:small", "beside": "builtin"}
    assert_answers(tried, model="openai:small")
    assert_answers(tried, "--beside", model="builtin")
    tried.assert_settled()
    tried("embedder", "switch")
    assert tried.committed() == before
    assert_answers(tried, model="builtin")
    assert_answers(tried, "--beside", model="openai:small")
    assert sent(server) == []
    tried.assert_settled()


def test_what_is_dropped_is_named_before(tried: Any, server: EmbeddingServer) -> None:
    """Dropping says what it costs to have the model again; then its embeddings are gone."""
    refused = tried("embedder", "drop", code=4)
    assert "costs 2 passages" in refused.stderr
    assert_answers(tried, "--beside", model="openai:small")
    assert tried.json("embedder", "drop", "--yes")["texts"] == 2
    assert "beside" not in (tried.store / "filestore.toml").read_text()
    assert rows(tried) == {"builtin/1:384": 2}
    assert "the store has no second model" in tried("search", QUERY, "--beside", code=3).stderr
    assert "the store has no second model" in tried("embedder", "switch", code=3).stderr
    assert "the store has no second model" in tried("embedder", "drop", "--yes", code=3).stderr
    tried.assert_settled()
    tried(*build(server))
    assert len(sent(server)) == 2


def test_after_a_switch_the_old_model_can_be_dropped(tried: Any) -> None:
    """Switched and dropped, only the new model is left, and answers."""
    tried("embedder", "switch")
    tried("embedder", "drop", "--yes")
    assert set(rows(tried)) == {"openai/1:small:48"}
    assert_answers(tried, model="openai:small")
    tried.assert_settled()


def rows(workspace: Any) -> dict[str, int]:
    """How many embeddings each model has, without its canaries."""
    connection = sqlite3.connect(workspace.sidecar / "embeddings.sqlite")
    found = dict(
        connection.execute(
            "SELECT fingerprint, count(vectors.id) FROM models JOIN vectors"
            " ON vectors.model = models.id GROUP BY fingerprint"
        ).fetchall()
    )
    connection.close()
    return {name: count - 3 * name.startswith("openai") for name, count in found.items()}


def test_a_service_that_fails_leaves_the_store_as_it_was(
    filled: Any, server: EmbeddingServer
) -> None:
    """What was embedded is kept, nothing is named; asking again pays only for the rest."""
    before = filled.committed()
    server.behave(well, well, status(400, {"error": {"message": "out of order"}}))
    done = filled(*build(server), code=3)
    assert "out of order" in done.stderr
    assert filled.committed() == before
    filled.assert_settled()
    server.behave(well)
    filled(*build(server))
    assert_answers(filled, "--beside", model="openai:small")


def test_an_interrupted_build_goes_on(filled: Any, server: EmbeddingServer) -> None:
    """Ctrl-C while texts are embedded leaves the store whole; the same command finishes."""
    server.behave(well, well, hangs)
    running = subprocess.Popen(
        [sys.executable, "-m", "filestore", *build(server)],
        cwd=filled.folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stderr=subprocess.PIPE,
    )
    try:
        until(lambda: len(server.requests) >= 3)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    finally:
        running.kill()
    assert running.returncode == 130
    assert b"interrupted" in said
    filled.assert_settled()
    server.behave(well)
    filled(*build(server))
    assert_answers(filled, "--beside", model="openai:small")


@pytest.mark.usefixtures("without_pauses")
def test_a_service_that_is_down_costs_only_its_own_vectors(
    tried: Any, server: EmbeddingServer
) -> None:
    """What is added has its vector of the first model; the second is said to be behind."""
    server.behave(status(500, {"error": {"message": "out of order"}}))
    tried.write("cat.md", "# Cat\n\nA cat sleeps through the winter.\n")
    done = tried("add", "cat.md", code=3)
    assert "with openai:small, the second model" in done.stderr
    assert "found by the store's own model" in done.stderr
    assert tried.drift() == {"beside-behind": ["filestore.toml"]}
    assert len(tried.json("search", QUERY, "--mode", "vector")["hits"]) == 3
    told = tried("embedder", "switch", code=3)
    assert "1 passage has no vector of openai:small" in told.stderr
    assert "filestore sync" in told.stderr
    server.behave(well)
    assert tried.json("sync")["embedded"] == 1
    tried.assert_settled()


def test_without_embedding_it_is_behind(tried: Any) -> None:
    """A sync that embeds nothing says that both models lack the new text."""
    tried.write("file_index/chunked/own.md", "My own note of a cat.\n")
    tried.sync("--no-embed", code=1)
    assert set(tried.drift()) == {"vector-pending", "beside-behind"}
    answer = tried.json("search", QUERY, "--beside")
    assert "1 passage has no vector of openai:small yet: run 'filestore sync'" in answer["notes"]
    assert tried.json("sync")["embedded"] == 2
    tried.assert_settled()


def test_a_repair_embeds_what_the_second_model_lacks(tried: Any) -> None:
    """A plan names it, and the repair makes it whole without touching a file."""
    tried.write("file_index/chunked/own.md", "My own note of a cat.\n")
    tried.sync("--no-embed", code=1)
    truth = tried.truth()
    plan = tried.json("repair", "--plan", "--only", "beside-behind", code=1)["plan"]
    assert {code for step in plan["steps"] for code in step["codes"]} == {"beside-behind"}
    tried("repair", "--yes")
    assert tried.truth() == truth
    tried.assert_settled()
    assert len(tried.json("search", QUERY, "--beside", "--mode", "vector")["hits"]) == 3


def test_a_clone_knows_of_both_and_asks_before_it_reaches_out(
    tried: Any, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Somebody else's settings send nothing; once trusted, one sync makes both models whole."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another person"))
    for path in sorted(tried.sidecar.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    tried.sync()
    assert tried.drift() == {"beside-unusable": ["filestore.toml"]}
    assert tried.json("status")["clean"] is True
    said = tried("search", QUERY, "--beside").stderr
    assert "the second model" in said
    assert "filestore trust" in said
    assert server.requests == []
    assert tried.json("trust", "--yes")["reaches"] == [server.endpoint]
    assert tried.json("sync")["embedded"] == 2
    assert_answers(tried, "--beside", model="openai:small")
    tried.assert_settled()


def test_a_model_that_is_gone_keeps_the_first_one_working(tried: Any) -> None:
    """Search with it names what is missing; the store's own answers and is clean."""
    path = tried.store / "filestore.toml"
    path.write_text(path.read_text().replace("openai:small", "onnx:nowhere"))
    answer = tried("search", QUERY, "--beside")
    assert "nowhere" in answer.stderr
    assert "answered by keyword only" in answer.stderr
    assert_answers(tried, model="builtin")
    assert tried.drift() == {"beside-unusable": ["filestore.toml"]}
    assert "nowhere" in tried("embedder", "switch", code=3).stderr
    assert "nowhere" in tried("embedder", "compare", code=3).stderr
    tried("embedder", "drop", "--yes")
    tried.assert_settled()


def test_a_switch_that_git_made_is_followed(tried: Any, server: EmbeddingServer) -> None:
    """Settings pulled with the models switched: answers at once, and a sync embeds nothing."""
    path = tried.store / "filestore.toml"
    before = path.read_bytes()
    tried("embedder", "switch")
    switched = path.read_bytes()
    for settings, own, other in (
        (before, "builtin", "openai:small"),
        (switched, "openai:small", "builtin"),
    ):
        path.write_bytes(settings)
        assert "index-behind" in tried.drift()
        assert_answers(tried, model=own)
        assert_answers(tried, "--beside", model=other)
        assert tried.json("sync", code=None)["embedded"] == 0
        assert_answers(tried, model=own)
        tried.assert_settled()
    assert sent(server) == []


def test_a_store_that_is_open_follows_a_switch(tried: Any) -> None:
    """A process with the settings of before does not take the switch back when it writes."""
    with Store(tried.store, configuration=os.environ["XDG_CONFIG_HOME"]) as store:
        store.search(QUERY)
        tried("embedder", "switch")
        (tried.chunked / "own.md").write_text("My own note.\n")
        assert store.sync().embedded == 2
        assert store.settings.embedder == "openai:small"
    ((fingerprint,),) = tried.in_catalog("SELECT value FROM meta WHERE key = 'fingerprint'")
    assert fingerprint == "openai/1:small:48"
    tried.assert_settled()


def test_only_one_model_stands_beside_and_it_is_another(
    tried: Any, server: EmbeddingServer
) -> None:
    """The store's own, a third one, and the way around a switch are refused with what to do."""
    before = tried.committed()
    own = tried("embedder", "set", "builtin", "--beside", "--yes", code=4)
    assert "same vectors as the store's own" in own.stderr
    third = tried(*build(server, "openai:large"), code=4)
    assert "there is a second model already, openai:small" in third.stderr
    assert "embedder drop" in third.stderr
    words = ("embedder", "set", "openai:small", "--endpoint", server.endpoint, "--yes")
    assert "embedder switch" in tried(*words, code=4).stderr
    unknown = tried("embedder", "set", "telepathy", "--beside", "--yes", code=3)
    assert "builtin" in unknown.stderr
    assert tried.committed() == before
    tried(*build(server))
    assert sent(server) == []


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("beside = 3", "beside must be a table, found 3"),
        ("[beside]", "beside lacks 'embedder'"),
        ("[beside]\nembedder = []", "beside.embedder must be a text"),
        ('[beside]\nembedder = "a"\ndimension = 0', "beside.dimension must be a whole number >= 1"),
        (
            '<<<<<<< HEAD\n[beside]\nembedder = "a"\n=======\n[beside]\nembedder = "b"\n>>>>>>> x',
            "it has an unresolved merge conflict (at line",
        ),
    ],
    ids=["no table", "no name", "no text", "no length", "merge"],
)
def test_nonsense_by_hand_is_named(filled: Any, table: str, says: str) -> None:
    """A table that means nothing is refused by its key, and a conflict is called one."""
    path = filled.store / "filestore.toml"
    head, chunker, rest = path.read_text().partition("[chunker]")
    path.write_text(f"{head}{table}\n{chunker}{rest}")
    done = filled("status", code=3)
    assert says in done.stderr
    assert advised(done.stderr)


def test_the_same_model_beside_by_hand_is_told(filled: Any) -> None:
    """Nothing is embedded for it, and the store stays clean."""
    path = filled.store / "filestore.toml"
    path.write_text(path.read_text() + '\n[beside]\nembedder = "builtin"\n')
    assert filled.drift() == {"beside-unusable": ["filestore.toml"]}
    assert filled.json("sync")["embedded"] == 0
    assert filled.json("status")["clean"] is True
    filled("embedder", "drop", "--yes")
    assert rows(filled) == {"builtin/1:384": 2}


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        ("UPDATE vectors SET checksum = x'00'", "embeddings-damaged"),
        ("DELETE FROM vectors", "beside-behind"),
    ],
)
def test_damage_is_found_and_mended(
    tried: Any, server: EmbeddingServer, harm: str, code: str
) -> None:
    """A vector of the second model that rotted or went is told of, and embedded again."""
    connection = sqlite3.connect(tried.sidecar / "embeddings.sqlite", isolation_level=None)
    model = "(SELECT id FROM models WHERE fingerprint = 'openai/1:small:48')"
    (key,) = tried.in_catalog("SELECT key FROM vectors ORDER BY id LIMIT 1")[0]
    where = f"WHERE model = {model} AND key = ?"
    assert connection.execute(f"{harm} {where}", (key,)).rowcount == 1
    connection.close()
    found = tried.json("verify", "--level", "full", code=1)
    assert code in {one["code"] for one in found["findings"]}
    assert "every vector of the second model" in found["checked"]
    assert_answers(tried, model="builtin")
    assert tried.json("sync", "--full")["embedded"] == 1
    assert len(sent(server)) == 1
    tried.assert_settled()
    assert_answers(tried, "--beside", model="openai:small")


def test_a_lost_catalog_costs_nothing(tried: Any, server: EmbeddingServer) -> None:
    """Both models are whole again after a rebuild, from their embeddings."""
    (tried.sidecar / "catalog.sqlite").unlink()
    assert tried.json("sync")["embedded"] == 0
    assert sent(server) == []
    assert_answers(tried, "--beside", model="openai:small")
    tried.assert_settled()


def test_lost_embeddings_are_made_by_both(tried: Any, server: EmbeddingServer) -> None:
    """Where the embeddings are gone each model makes its own again."""
    for path in tried.sidecar.glob("embeddings.sqlite*"):
        path.unlink()
    assert tried.json("sync")["embedded"] == 4
    assert len(sent(server)) == 2
    assert_answers(tried, model="builtin")
    assert_answers(tried, "--beside", model="openai:small")
    tried.assert_settled()


def test_both_are_measured_on_questions(tried: Any) -> None:
    """With known answers each has its measures, and the difference its interval."""
    asked = [{"query": QUERY, "relevant": ["ferry.md"]}, {"query": "bees", "relevant": [*NOTES]}]
    tried.write("questions.jsonl", "\n".join(map(json.dumps, asked)))
    found = tried.json("embedder", "compare", "questions.jsonl", "-k", "1")
    assert [one["name"] for one in found["models"]] == ["builtin", "openai:small"]
    assert all(0 < one["scores"]["ndcg"] <= 1 for one in found["models"])
    low, high = found["interval_95"]
    assert low <= found["difference"] <= high
    assert (found["queries"], found["asked"]) == (2, "file")
    words = tried("embedder", "compare", "questions.jsonl").stdout
    assert "second model against own, nDCG:" in words


def test_without_questions_the_overlap_is_told(tried: Any) -> None:
    """Queries come from the store; those on which the models differ most stand first."""
    found = tried.json("embedder", "compare", "-k", "1", "--per-query")
    assert (found["queries"], found["asked"]) == (2, "store")
    assert found["difference"] is None
    overlaps = [one["overlap"] for one in found["per_query"]]
    assert overlaps == sorted(overlaps)
    assert found["overlap"] == pytest.approx(sum(overlaps) / 2)
    for one in found["worst"]:
        both = set(one["own"]) & set(one["beside"])
        assert one["overlap"] == len(both)
    assert "overlap@10: 1.0000 over 2 queries" in tried("embedder", "compare").stdout


def test_a_backend_follows_a_switch(tried: Any, server: EmbeddingServer) -> None:
    """Where the vectors lie elsewhere, a switch sends those of the other model, and embeds none."""
    tried("backend", "set", "local", "path=rows.jsonl", "--yes")
    for own, other in (("openai:small", "builtin"), ("builtin", "openai:small")):
        tried("embedder", "switch")
        assert_answers(tried, model=own)
        assert_answers(tried, "--beside", model=other)
        tried.assert_settled()
    path = tried.store / "filestore.toml"
    before = path.read_bytes()
    tried("embedder", "switch")
    path.write_bytes(before)
    assert_answers(tried, model="builtin")
    tried.sync()
    assert_answers(tried, model="builtin")
    tried.assert_settled()
    assert sent(server) == []
