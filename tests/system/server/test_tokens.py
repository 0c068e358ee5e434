"""A token for each client: what it opens, until when, and where it is never seen."""

import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from filestore.config import user_config
from filestore.server.http.app import AppParts, make_app
from filestore.server.stores import Stores
from tests.system.conftest import Workspace
from tests.system.server.serving import TIMEOUT_S, serving

ODD = ["", " ", "a\nb", "a\rb", "a\x1b[31m", "\u202eb", "a" * 81, " a", "a\tb"]


def made(run: Any, folder: Path, *words: str) -> str:
    """The token of a client, as it is printed."""
    return str(run("token", "add", *words, env={"XDG_CONFIG_HOME": str(folder)}).stdout.strip())


def test_each_client_has_its_own(
    place: Path, tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made and revoked while the server runs; it reads or writes, and is in no log and argument."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    collections = tmp_path / "collections"
    collections.mkdir()
    with serving(tmp_path, place, "--write", "--collections", collections) as server:
        given = {
            name: workspace("token", "add", name, *words).stdout.strip()
            for name, words in {"reader": (), "writer": ("--write",)}.items()
        }
        with httpx.Client(base_url=server.url, trust_env=False, timeout=TIMEOUT_S) as client:

            def status(name: str, path: str, body: Any) -> int:
                headers = {"Authorization": f"Bearer {given[name]}"}
                return client.post(path, json=body, headers=headers).status_code

            for name in given:
                assert status(name, "/search", {"query": "rent"}) == 200
                stores = client.get("/stores", headers={"Authorization": f"Bearer {given[name]}"})
                assert stores.json()["stores"][0]["writes"] == (name == "writer")
                asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
                accept = {"Accept": "application/json, text/event-stream"}
                tools = client.post(
                    "/mcp", json=asked, headers=dict(stores.request.headers) | accept
                )
                named = [one["name"] for one in tools.json()["result"]["tools"]]
                assert ("add_note" in named) == (name == "writer")
            for name in given:
                assert status(name, "/sync", {}) == 200
            for path in ("/undo", "/rag/index", "/rag/a/index/reload"):
                assert status("reader", path, {}) == 403, path
            headers = {"Authorization": f"Bearer {given['reader']}"}
            assert client.delete("/rag/a", headers=headers).status_code == 403
            for name in given:
                for path in (f"/search?token={given[name]}", f"/{given[name]}"):
                    assert client.post(path, json={}).status_code == 401
            for name in given:
                assert f"revoked the token of {name}" in workspace("token", "revoke", name).stdout
                assert status(name, "/search", {"query": "rent"}) == 401
        arguments = Path(f"/proc/{server.process.pid}/cmdline")
        shown = arguments.read_bytes() if arguments.exists() else b""
    printed = "".join(server.errors)
    for token in given.values():
        assert token not in printed
        assert token.encode() not in shown
        for file in tmp_path.rglob("*"):
            if file.is_file():
                assert token.encode() not in file.read_bytes(), file


def test_only_a_hash_is_kept_and_only_the_user_reads_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where the file was there before; a second token of one name is refused."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    kept = tmp_path / "filestore" / "machine.json"
    token = workspace("token", "add", "phone", "--person").stdout.strip()
    assert len(token) >= 32
    assert token not in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.chmod(0o644)
    assert "already has a token" in workspace("token", "add", "phone", code=4).stderr
    workspace("token", "add", "b")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    items = workspace.json("token", "list")["items"]
    assert items == [
        {"name": "b", "writes": False, "person": False},
        {"name": "phone", "writes": False, "person": True},
    ]
    workspace("token", "revoke", "none", code=3)
    for name in ODD:
        for action in ("add", "revoke"):
            said = workspace("token", action, name, code=2).stderr
            assert "is not a client name" in said
            assert "\x1b" not in said


def test_a_broken_file_opens_nothing(tmp_path: Path) -> None:
    """Nor does one that another program wrote; the server goes on."""
    token = user_config.add_token(str(tmp_path), "a", writes=True, person=True)
    kept = tmp_path / "filestore" / "machine.json"
    sound = kept.read_bytes()
    with Stores({}) as stores:
        parts = AppParts(stores=stores, token="a" * 32, is_local=False, configuration=str(tmp_path))
        with TestClient(make_app(parts)) as client:
            headers = {"Authorization": f"Bearer {token}"}
            assert client.get("/stores", headers=headers).is_success
            hash_alone = {"Authorization": f"Bearer {user_config.token_hash(token or '')}"}
            assert client.get("/stores", headers=hash_alone).status_code == 401
            for broken in (b"", b"{", b'{"tokens": {"a": {}}}', b'{"tokens": []}', b"\xff"):
                kept.write_bytes(broken)
                assert client.get("/stores", headers=headers).status_code == 401, broken
            kept.unlink()
            assert client.get("/stores", headers=headers).status_code == 401
            kept.write_bytes(sound)
            assert client.get("/stores", headers=headers).is_success
