"""A key of the environment goes to a service that the user allowed, and to nobody else.

Real servers record what arrives: the one that settings name, and one that would like to be asked.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.system.embedding_server import EmbeddingServer, status, wants_key, well

KEY: Final = "sk-this-is-the-secret-key-0123456789"
CHUNK: Final = "chunked/note.md/chunk1.md"

COMMANDS: Final = {
    "status": ("status",),
    "verify": ("verify",),
    "verify deep": ("verify", "--level", "deep"),
    "sync": ("sync",),
    "sync deep": ("sync", "--deep"),
    "add": ("add", "other.md"),
    "add again": ("add", "note.md"),
    "search": ("search", "words"),
    "search by meaning": ("search", "words", "--mode", "vector"),
    "repair": ("repair", "--write-files", "--yes"),
    "repair deep": ("repair", "--write-files", "--yes", "--level", "deep"),
    "undo": ("undo",),
    "redo": ("redo",),
    "embedder list": ("embedder", "list"),
    "trust list": ("trust", "--list"),
    "ls": ("ls",),
    "show": ("show", CHUNK),
    "reconstruct": ("reconstruct", "note.md"),
    "evaluate": ("evaluate", "questions.jsonl"),
    "git status": ("git", "status"),
    "rm": ("rm", "note.md"),
}

VARIANTS: Final = {
    "another port": "http://127.0.0.1:{other}/v1",
    "another path": "http://127.0.0.1:{port}/v2",
    "a longer path": "http://127.0.0.1:{port}/v1/more",
    "a path in percent": "http://127.0.0.1:{port}/%761",
    "a path that goes up": "http://127.0.0.1:{port}/v1/../v2",
    "a name for it": "http://localhost:{port}/v1",
    "a name in capitals": "http://LocalHost:{port}/v1",
    "a dot at the end": "http://localhost.:{port}/v1",
    "an address in short": "http://127.1:{port}/v1",
    "an address as number": "http://2130706433:{port}/v1",
    "an address within another": "http://[::ffff:127.0.0.1]:{port}/v1",
    "a user": "http://user@127.0.0.1:{port}/v1",
    "a user and a password": "http://user:word@127.0.0.1:{port}/v1",
    "the trusted one as user": "http://127.0.0.1:{port}@127.0.0.1:{other}/v1",
    "a backslash": "http://127.0.0.1:{other}\\\\@127.0.0.1:{port}/v1",
    "a query": "http://127.0.0.1:{port}/v1?a=b",
    "a fragment": "http://127.0.0.1:{port}/v1#a",
    "a host in percent": "http://127.0.0.%31:{port}/v1",
    "encryption": "https://127.0.0.1:{port}/v1",
}
"""Addresses that are not what was allowed."""


@pytest.fixture
def servers() -> Iterator[tuple[EmbeddingServer, EmbeddingServer]]:
    """The service of the store, and another one."""
    with ExitStack() as stack:
        yield (
            stack.enter_context(EmbeddingServer()),
            stack.enter_context(EmbeddingServer()),
        )


@pytest.fixture
def served(
    new_workspace: Callable[..., Any],
    servers: tuple[EmbeddingServer, EmbeddingServer],
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """A store that its user made with a service, who then sets keys."""
    workspace = new_workspace(init=False)
    workspace("init", "--embedder", "openai:small", "--endpoint", servers[0].endpoint)
    workspace.write("note.md", "# Note\n\nWords of the note.\n")
    workspace.write("other.md", "# Other\n\nWords of another note.\n")
    workspace.write("questions.jsonl", '{"query": "words", "relevant": ["note.md"]}\n')
    workspace("add", "note.md")
    monkeypatch.setenv("FILESTORE_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for server in servers:
        server.requests.clear()
        server.behave(wants_key(KEY))
    return workspace


def port(server: EmbeddingServer) -> str:
    """The port that a server listens on."""
    return server.endpoint.split(":")[2].partition("/")[0]


def point_to(workspace: Any, endpoint: str) -> None:
    """Name another service in the settings, as a pull might."""
    settings = workspace.store / "filestore.toml"
    lines = settings.read_text().splitlines()
    lines = [f'endpoint = "{endpoint}"' if "endpoint" in line else line for line in lines]
    settings.write_text("\n".join(lines) + "\n")


def everything_is_tried(workspace: Any) -> None:
    """Run every command, with texts that want a vector; no output holds the key."""
    (workspace.store / CHUNK).write_text("Other words.\n")
    for words in COMMANDS.values():
        for more in ((), ("--json",)):
            done = workspace(*words, *more, code=None)
            assert KEY not in done.stdout + done.stderr, words


def test_a_clone_sends_nothing(served: Any, servers: Any) -> None:
    """A store that lies elsewhere, with the same settings, asks no service."""
    away = served.folder.parent / "clone"
    shutil.copytree(served.folder, away)
    served.folder, served.store, served.chunked = away, away / "file_index", None
    everything_is_tried(served)
    assert [server.requests for server in servers] == [[], []]


@pytest.mark.parametrize("name", VARIANTS)
def test_another_address_is_not_allowed_with_the_first(
    served: Any, servers: Any, name: str
) -> None:
    """What was allowed is one address: any other gets no text and no key."""
    first, other = servers
    point_to(served, VARIANTS[name].format(port=port(first), other=port(other)))
    shutil.rmtree(Path(os.environ["HOME"]) / ".cache")
    (served.store / CHUNK).write_text("Other words.\n")
    for words in (("sync",), ("search", "words"), ("verify", "--level", "deep"), ("status",)):
        done = served(*words, code=None)
        assert KEY not in done.stdout + done.stderr
        assert "user:word" not in done.stdout + done.stderr
    assert [server.requests for server in servers] == [[], []]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_takes_nothing_along(served: Any, servers: Any, code: int) -> None:
    """Who was allowed to be asked may not send texts and key on, to no host and no other scheme."""
    first, other = servers
    (served.store / CHUNK).write_text("Other words.\n")
    for goal in (other.endpoint, other.endpoint.replace("http:", "https:")):
        first.behave(status(code, Location=f"{goal}/embeddings"))
        done = served("sync", code=None)
        assert KEY not in done.stdout + done.stderr
        assert "redirect" in done.stderr or goal.partition("//")[2] in done.stderr
    assert other.requests == []
    assert first.requests


def test_neither_proxy_nor_netrc_is_asked(
    served: Any, servers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody stands between, and no password is looked up in a file."""
    first, other = servers
    first.behave(well)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, other.endpoint.removesuffix("/v1"))
        monkeypatch.setenv(name.lower(), other.endpoint.removesuffix("/v1"))
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    netrc = Path(os.environ["HOME"]) / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password s3cret\n")
    netrc.chmod(0o600)
    monkeypatch.delenv("FILESTORE_API_KEY")
    (served.store / CHUNK).write_text("Other words.\n")
    served("sync")
    assert first.requests
    assert all("Authorization" not in request.headers for request in first.requests)
    assert other.requests == []
    netrc.unlink()


def test_an_answer_that_repeats_the_key_is_not_repeated(served: Any, servers: Any) -> None:
    """What a service says of a key it refuses is shown without the key, by every command."""
    servers[0].behave(
        lambda handler, request: handler.reply_json(
            {"error": {"message": f"no: {request.headers.get('Authorization')}"}}, 401
        )
    )
    everything_is_tried(served)
    assert {request.headers.get("Authorization") for request in servers[0].requests} == {
        f"Bearer {KEY}"
    }
    assert servers[1].requests == []


def test_what_was_taken_back_is_not_allowed(served: Any, servers: Any) -> None:
    """After `trust --revoke` the service is as strange as any."""
    served("trust", "--revoke")
    everything_is_tried(served)
    assert [server.requests for server in servers] == [[], []]
