"""Models of a store, as a person meets them: chosen, named, missing, changed, trusted.

The model is a service on loopback: a real one to the program, and quick.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from tests.system.embedding_server import EmbeddingServer, hangs, status, vectors, well

CHECKOUT = Path(__file__).resolve().parents[3]
NOTES = {
    "ferry.md": "# Ferry\n\nThe winter ferry leaves at seven.\n",
    "bees.md": "# Bees\n\nBees are moved at night, when all have come home.\n",
}


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def served(workspace: Any, server: EmbeddingServer) -> Any:
    """A store whose model is the service."""
    shutil.rmtree(workspace.store)
    workspace("init", "--embedder", "openai:small", "--endpoint", server.endpoint)
    for name, text in NOTES.items():
        workspace.write(name, text)
    return workspace


def test_a_service_embeds_once(served: Any, server: EmbeddingServer) -> None:
    """Texts are sent when they are added and never again; a query is one text."""
    assert served.json("add", *NOTES)["embedded"] == 2
    sent = [text for request in server.requests for text in request.texts]
    assert sum("winter ferry" in text for text in sent) == 1
    answer = served.json("search", "winter ferry at seven", "--mode", "vector")
    assert answer["mode"] == "vector"
    assert answer["hits"][0]["path"] == "chunked/ferry.md/chunk1.md"
    before = len(server.requests)
    assert served.json("add", *NOTES)["embedded"] == 0
    assert served.json("status")["clean"] is True
    served.assert_settled()
    assert len(server.requests) == before


@pytest.mark.usefixtures("without_pauses")
def test_a_service_that_is_down_costs_only_the_vectors(
    served: Any, server: EmbeddingServer
) -> None:
    """The documents are added, found by keyword, and embedded by the next sync."""
    served.json("add", "ferry.md")
    server.behave(status(500, {"error": {"message": "out of order"}}))
    done = served("add", "bees.md", code=3)
    assert "added bees.md" in done.stdout
    assert server.endpoint in done.stderr
    assert "found by keyword" in done.stderr
    assert served.found("come home") == ["bees.md/chunk1.md"]
    assert served.drift() == {"vector-pending": [".sidecar/embeddings.sqlite"]}
    failed = served.json("sync", code=3)
    assert [finding["code"] for finding in failed["remaining"]] == ["vector-pending"]
    server.behave(well)
    assert served.json("sync")["embedded"] == 1
    served.assert_settled()


def test_vectors_of_a_drifted_service_are_not_mixed_in(
    served: Any, server: EmbeddingServer
) -> None:
    """A service that answers otherwise than it did is found out before a text is stored."""
    served.json("add", "ferry.md")
    server.behave(vectors(lambda rows: [row[::-1] for row in rows]))
    done = served("add", "bees.md", code=3)
    assert "no longer embeds as it did" in done.stderr
    assert served.drift() == {"vector-pending": [".sidecar/embeddings.sqlite"]}


@pytest.mark.parametrize(
    ("behaviour", "word"),
    [
        (vectors(lambda rows: [row[:-1] for row in rows]), "expected 48"),
        (vectors(lambda rows: [[float("nan"), *row[1:]] for row in rows]), "NaN"),
    ],
    ids=["another dimension", "NaN"],
)
def test_unusable_vectors_are_refused(
    served: Any, server: EmbeddingServer, behaviour: Any, word: str
) -> None:
    """Vectors of another length, or that are no numbers, never reach the store."""
    served.json("add", "ferry.md")
    server.behave(behaviour)
    assert word in served("add", "bees.md", code=3).stderr
    server.behave(well)
    assert served.json("sync")["embedded"] == 1
    served.assert_settled()


def test_a_clone_asks_before_it_reaches_out(
    served: Any, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Settings of somebody else send nothing anywhere until they are trusted."""
    served.json("add", *NOTES)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another person"))
    server.requests.clear()
    answer = served("search", "winter ferry")
    assert "filestore trust" in answer.stderr
    assert "ferry.md" in answer.stdout
    assert served("sync", code=None).code in (0, 1)
    assert server.requests == []
    trusted = served.json("trust")
    assert trusted["reaches"] == [server.endpoint]
    assert served.json("search", "winter ferry")["mode"] == "hybrid"
    assert len(server.requests) == 1
    served("trust", "--revoke")
    assert served.json("search", "winter ferry", code=None)["mode"] == "keyword"
    assert len(server.requests) == 1


def test_a_store_that_reaches_nothing_needs_no_trust(workspace: Any) -> None:
    """`trust` says so and allows nothing."""
    assert workspace.json("trust")["reaches"] == []
    assert "nothing to allow" in workspace("trust").stdout


def test_another_model_is_priced_and_asked_for(served: Any, server: EmbeddingServer) -> None:
    """Nothing changes without a yes; with it every text has its vector from the new model."""
    served.json("add", *NOTES)
    before = served.committed()
    refused = served("embedder", "set", "builtin", code=4)
    assert "2 passages" in refused.stderr
    assert "--yes" in refused.stderr
    assert served.committed() == before
    report = served.json("embedder", "set", "builtin", "--yes")
    assert report == {"embedder": "builtin", "embedded": 2, "reused": 0}
    server.requests.clear()
    assert served.json("search", "winter ferry", "--mode", "vector")["mode"] == "vector"
    served.assert_settled()
    back = served.json(*("embedder", "set", "openai:small", "--endpoint", server.endpoint, "--yes"))
    assert (back["embedded"], back["reused"]) == (0, 2)
    assert not [text for request in server.requests for text in request.texts if "#" in text]
    served.assert_settled()


def test_settings_that_name_another_model_never_mix(served: Any) -> None:
    """A model named by hand is a finding; until it is settled keywords answer."""
    served.json("add", *NOTES)
    path = served.store / "filestore.toml"
    path.write_text(path.read_text().replace('"openai:small"', '"builtin"'))
    assert "model-changed" in served.drift()
    answer = served.json("search", "winter ferry")
    assert answer["mode"] == "keyword"
    assert answer["hits"][0]["path"] == "chunked/ferry.md/chunk1.md"


def test_a_model_that_is_not_here_is_said(workspace: Any) -> None:
    """A store whose model is missing answers by keyword, says so, and names the way out."""
    workspace.write("ferry.md", NOTES["ferry.md"])
    workspace("add", "ferry.md")
    path = workspace.store / "filestore.toml"
    path.write_text(path.read_text().replace('"builtin"', '"onnx:nowhere"'))
    answer = workspace("search", "winter ferry")
    assert "keyword" in answer.stderr
    assert "nowhere" in answer.stderr
    assert "ferry.md" in answer.stdout
    assert "model-missing" in workspace.drift()


def test_a_change_of_model_that_fails_changes_nothing(
    workspace: Any, server: EmbeddingServer
) -> None:
    """The store keeps its model and all its vectors; asking again finishes what was begun."""
    for name, text in NOTES.items():
        workspace.write(name, text)
    workspace("add", *NOTES)
    before = workspace.committed()
    server.behave(well, well, status(400, {"error": {"message": "out of order"}}))
    words = ("embedder", "set", "openai:small", "--endpoint", server.endpoint, "--yes")
    done = workspace(*words, code=3)
    assert "keeps the model it has" in done.stderr
    assert workspace.committed() == before
    assert workspace.json("search", "winter ferry", "--mode", "vector")["mode"] == "vector"
    workspace.assert_settled()
    server.behave(well)
    assert workspace.json(*words)["embedder"] == "openai:small"
    workspace.assert_settled()


def test_a_service_that_was_named_in_vain_is_not_trusted(
    workspace: Any, server: EmbeddingServer
) -> None:
    """What a refused or failed command named is not allowed afterwards."""
    machine = Path(os.environ["XDG_CONFIG_HOME"]) / "filestore" / "machine.json"
    workspace.write("ferry.md", NOTES["ferry.md"])
    workspace("add", "ferry.md")
    workspace("embedder", "set", "openai:small", "--endpoint", server.endpoint, code=4)
    server.behave(status(401))
    other = workspace.folder.parent / "other"
    workspace(*("init", other, "--embedder", "openai:large"), "--endpoint", server.endpoint, code=3)
    assert not machine.exists() or server.endpoint not in machine.read_text()


def test_search_outlives_its_service(served: Any, server: EmbeddingServer) -> None:
    """A question that cannot be embedded is answered by keyword, and the reason is said."""
    served.json("add", *NOTES)
    server.behave(status(400, {"error": {"message": "out of order"}}))
    answer = served("search", "winter ferry")
    assert "ferry.md" in answer.stdout
    assert "out of order" in answer.stderr
    assert "keyword" in answer.stderr


def test_adding_without_the_model_says_what_lacks(workspace: Any) -> None:
    """The document is added and found by keyword; that it has no vectors is said and not hidden."""
    path = workspace.store / "filestore.toml"
    path.write_text(path.read_text().replace('"builtin"', '"onnx:nowhere"'))
    workspace.write("ferry.md", NOTES["ferry.md"])
    done = workspace("add", "ferry.md", code=1)
    assert "added ferry.md" in done.stdout
    assert "found by keyword" in done.stderr
    workspace.write("bees.md", NOTES["bees.md"])
    assert workspace.json("add", "bees.md", code=1)["not_embedded"]["remedy"]
    assert list(workspace.drift()) == ["model-missing"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("telepathy", "known here: builtin"),
        ("telepathy:best", "known here: builtin"),
        ("./no/such/folder", "there is no folder ./no/such/folder"),
    ],
)
def test_unknown_embedders_make_no_store(workspace: Any, name: str, said: str) -> None:
    """A name that means nothing is refused with those that do."""
    folder = workspace.folder.parent / "other"
    done = workspace("init", folder, "--embedder", name, code=3)
    assert said in done.stderr
    assert not folder.exists()


def test_a_new_store_has_the_model_of_the_installation(
    tmp_path: Path, without_packages: Any
) -> None:
    """Whatever else is installed, so that the settings are the same on every machine."""
    without_packages("onnxruntime", "sentence_transformers", "tokenizers")
    with filestore.create(tmp_path / "store") as store:
        assert store.settings.embedder == "minilm"
        assert store.model.problem is None


def test_what_is_here_is_listed(workspace: Any) -> None:
    """Every model is listed, with why it cannot be used where it cannot."""
    items = {item["name"]: item for item in workspace.json("embedder", "list")["items"]}
    assert items["builtin"]["usable"] is True
    assert all(item["usable"] or item["why"] for item in items.values())
    assert workspace("embedder").stdout.startswith("this store: builtin: can be used")
    outside = workspace("embedder", cwd=workspace.folder.parent)
    assert "\nbuiltin " in f"\n{outside.stdout}"


def test_a_folder_without_a_model_is_refused(workspace: Any) -> None:
    """A folder without weights is named, whether what runs models is installed or not."""
    (workspace.folder / "empty").mkdir()
    done = workspace("embedder", "use", "mine", workspace.folder / "empty", code=3)
    assert "empty" in done.stderr
    folder = workspace.folder.parent / "other"
    done = workspace("init", folder, "--embedder", workspace.folder / "empty", code=3)
    assert "empty" in done.stderr
    assert not folder.exists()


def test_an_interrupted_add_continues(served: Any, server: EmbeddingServer) -> None:
    """Ctrl-C while texts are embedded keeps what was made; the same command finishes the rest."""
    served.json("add", "ferry.md")
    server.behave(hangs)
    asked = len(server.requests)
    running = subprocess.Popen(
        [sys.executable, "-m", "filestore", "add", "bees.md"],
        cwd=served.folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stderr=subprocess.PIPE,
    )
    try:
        until(lambda: len(server.requests) > asked)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    finally:
        running.kill()
    assert running.returncode == 130
    assert b"interrupted" in said
    assert b"Traceback" not in said
    server.behave(well)
    report = served.json("add", "ferry.md", "bees.md")
    assert [entry["resource"] for entry in report["unchanged"]] == ["ferry.md", "bees.md"]
    assert report["embedded"] == 1
    served.assert_settled()
    assert served.found("come home") == ["bees.md/chunk1.md"]


def until(done: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    for _ in range(600):
        if done():
            return
        time.sleep(0.05)
    pytest.fail("nothing happened within 30 seconds")
