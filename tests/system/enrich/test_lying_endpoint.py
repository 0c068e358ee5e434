"""Enriching with a service that lies: failures are named, the rest is done, nothing is paid twice.

A real server on loopback counts the requests. What one answer may do to one task is tried in
`generate/test_openai`; here is what comes of it in a store.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore.fs.disk import TEMPORARY_PREFIX
from filestore.remote import EndpointUnusable
from tests.system import chat_server as service
from tests.system.chat_server import ChatServer, by_text, once, slow, well, writes, written
from tests.system.embedding_server import Behaviour, Handler, Request, hangs_up, status

WRONG_LANGUAGE = (
    '{"questions": ["Wer hat das Amt in der Stadt, und was ist mit dem Wasser?",'
    ' "Warum wird die Sorge um den Schritt nicht mit dem Satz erklärt?"]}'
)
FAILING: dict[str, tuple[Behaviour, str]] = {
    "amber": (service.cut_json, "no JSON"),
    "basalt": (written(lambda text: text[:-9]), "cut or broken JSON"),
    "cobalt": (writes("A fine text on stones!"), "without the JSON"),
    "dolomite": (writes(WRONG_LANGUAGE), "in German"),
    "emerald": (writes("stone " * 17_000), "more than 20,000"),
    "feldspar": (writes("I'm sorry, but I can't help with that."), "refuses"),
    "garnet": (writes(""), "an empty answer"),
    "hematite": (status(500), "no luck"),
    "iolite": (hangs_up, "cannot be reached"),
}
FINE: dict[str, Behaviour] = {
    "jasper": once(status(429, Retry_After="0")),
    "kyanite": written(lambda text: f"Here you are:\n{text}\nIs there more?"),
    "lazulite": slow,
    "malachite": once(status(500)),
    "nephrite": once(writes("no")),
    "obsidian": well,
    "pyrite": well,
}
TOPICS = (*FAILING, *FINE)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def store(
    tmp_path: Path, server: ChatServer, manual: Callable[[Iterable[str]], str]
) -> Iterator[filestore.Store]:
    """A store with a chunk for every topic, whose generator is the server."""
    (tmp_path / "manual.md").write_text(manual(TOPICS))
    root = tmp_path / "file_index"
    filestore.create(str(root), embedder="builtin").close()
    with open(root / "filestore.toml", "a") as file:
        file.write(f'\n[generator]\nname = "openai:small"\nendpoint = "{server.endpoint}"\n')
    with filestore.open(str(root)) as opened:
        opened.add(str(tmp_path / "manual.md"))
        opened.trust()
        yield opened


def files(store: filestore.Store) -> dict[str, bytes]:
    """Every file of the tree, by path."""
    found = Path(store.root, "chunked").rglob("*")
    return {
        os.path.relpath(path, store.root): path.read_bytes() for path in found if path.is_file()
    }


def topic_of(data: bytes) -> str:
    """The topic of a chunk."""
    (found,) = [topic for topic in TOPICS if f"Sentence 1 about {topic} ".encode() in data]
    return found


def requests_for(server: ChatServer, key: str) -> list[Request]:
    """The requests for questions, or for summaries."""
    wanted = key == "summary"
    return [one for one in server.requests if ('{"title"' in service.system_of(one)) is wanted]


def assert_whole(store: filestore.Store) -> None:
    """Nothing is half written, and the store is in step."""
    found = store.verify(level="full")
    assert [one for one in found if one.severity != "I" or one.code == "leftovers"] == []
    below = [name for _, _, names in os.walk(store.root) for name in names]
    assert [name for name in below if name.startswith(TEMPORARY_PREFIX)] == []


@pytest.mark.usefixtures("without_pauses")
def test_what_fails_is_named_and_the_rest_is_done(
    store: filestore.Store, server: ChatServer
) -> None:
    """Each failure names its chunk and keeps no other; the next run asks for those alone."""
    before = files(store)
    server.behave(by_text({topic: bad for topic, (bad, _) in FAILING.items()} | FINE))
    report = store.enrich(questions=2, summaries=False)
    failed = {topic_of(before[one["path"]]): one["error"] for one in report.failed}
    assert failed.keys() == FAILING.keys()
    for topic, (_, said) in FAILING.items():
        assert said in failed[topic]
    after = files(store)
    assert after.keys() == before.keys()
    for path, data in before.items():
        if path.endswith(".md"):
            assert (after[path] == data) is (topic_of(data) in FAILING)
            assert (b"\nquestions:" in after[path]) is (topic_of(data) in FINE)
    assert_whole(store)

    asked = len(server.requests)
    server.behave(well)
    assert store.enrich(questions=2, summaries=False).failed == []
    assert len(server.requests) - asked == len(FAILING)
    done = files(store)
    assert {path for path in done if done[path] != after[path]} == {
        path for path in after if path.endswith(".md") and topic_of(after[path]) in FAILING
    }
    store.enrich(questions=2, summaries=False)
    assert len(server.requests) - asked == len(FAILING)
    assert_whole(store)


def test_a_spent_quota_is_gone_on_from(store: filestore.Store, server: ChatServer) -> None:
    """What was answered before the quota was spent is kept; each text is paid for once."""
    quota = status(429, {"error": {"message": "You exceeded your current quota"}})
    server.behave(*[well] * 5, quota)
    report = store.enrich(questions=2, summaries=False)
    assert isinstance(report.problem, EndpointUnusable)
    assert "current quota" in report.problem.message
    assert_whole(store)
    server.behave(well)
    refused = len(server.requests) - 5
    assert store.enrich(questions=2, summaries=False).problem is None
    assert len(server.requests) == len(TOPICS) + refused
    assert all(b"\nquestions:" in data for path, data in files(store).items() if path[-3:] == ".md")


def test_what_was_paid_for_outlives_its_files(store: filestore.Store, server: ChatServer) -> None:
    """Taken back, and with the catalog lost, the same questions cost nothing."""
    report = store.enrich(questions=2, summaries=False)
    asked = len(server.requests)
    made = files(store)
    store.undo(report.undo)
    store.close()
    for path in Path(store.root, ".sidecar").glob("catalog.sqlite*"):
        path.unlink()
    store.sync()
    store.enrich(questions=2, summaries=False)
    assert len(server.requests) == asked
    assert files(store) == made


@pytest.mark.parametrize(
    "text",
    [
        "---\nkind: chunk\n---\nText.",
        "One.\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n",
        "word " * 2_000,
        ["a", "list"],
        "",
    ],
)
def test_a_bad_summary_is_no_file(store: filestore.Store, server: ChatServer, text: Any) -> None:
    """Of summaries that would do harm none is written; questions are made as ever, and once."""

    def lie(handler: Handler, request: Request) -> None:
        bad = writes(json.dumps({"title": "T", "summary": text, "questions": []}))
        (bad if '{"title"' in service.system_of(request) else well)(handler, request)

    server.behave(lie)
    report = store.enrich(questions=2)
    assert {one["kind"] for one in report.failed} == {"summary"}
    assert [path for path in files(store) if "summary" in path] == []
    assert all(b"\nquestions:" in data for path, data in files(store).items() if path[-3:] == ".md")
    assert_whole(store)
    asked = len(requests_for(server, "questions"))
    server.behave(well)
    assert store.enrich(questions=2).failed == []
    assert [path for path in files(store) if "summary" in path]
    assert len(requests_for(server, "questions")) == asked


def test_a_key_that_is_refused_changes_nothing(
    store: filestore.Store, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is as before, and the key is in no message and no file."""
    key = "sk-this-is-the-secret-key-0123456789"
    monkeypatch.setenv("FILESTORE_API_KEY", key)
    before = files(store)
    server.behave(status(401, {"error": {"message": f"Incorrect API key: {key}"}}))
    report = store.enrich(questions=2)
    assert report.problem is not None
    assert "refused the key" in report.problem.message
    assert key not in repr(report.to_dict())
    assert files(store) == before
    assert len(server.requests) <= 4


def test_no_text_leaves_before_it_is_allowed(store: filestore.Store, server: ChatServer) -> None:
    """Without the user's word for this service nothing is asked."""
    store.distrust()
    with pytest.raises(filestore.FilestoreError, match="not allowed"):
        store.enrich(questions=2)
    assert server.requests == []


def test_answers_for_nothing_are_counted(store: filestore.Store, server: ChatServer) -> None:
    """What a service takes for answers that cannot be used stands in the report, too."""
    server.behave(writes("A fine text!"))
    report = store.enrich(questions=2, summaries=False)
    assert len(report.failed) == len(TOPICS)
    assert report.tokens == 120 * len(server.requests)
