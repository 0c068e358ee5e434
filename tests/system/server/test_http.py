"""A server as a process: who may ask, what is answered, how it begins and ends."""

import asyncio
import gzip
import json
import os
import re
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

import filestore
from tests.advice import advised
from tests.conftest import CHECKOUT
from tests.system.server.conftest import GAS
from tests.system.server.serving import TIMEOUT_S, Served, serving


def refused(folder: Path, *words: "str | Path", **environment: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the error of a server that does not start."""
    done = subprocess.run(
        [sys.executable, "-m", "filestore", "serve", *map(str, words), "--json"],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(CHECKOUT), "XDG_CONFIG_HOME": str(folder)}
        | environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_answers_are_those_of_the_command_line(place: Path, tmp_path: Path, run: Any) -> None:
    """The same JSON, by POST and by GET."""
    with serving(tmp_path, place) as server, server.client() as client:
        asked = {"query": "rent", "k": 1, "where": {}}
        by_post = client.post("/search", json=asked)
        by_get = client.get("/search", params={"query": "rent", "k": 1})
        assert by_post.json() == by_get.json()
        assert by_post.headers["content-type"] == "application/json"
        assert by_post.headers["cache-control"] == "no-store"
        printed = run("search", "rent", "-k", "1", "--json", cwd=place)
        assert by_post.json() == printed.json
        for path in ("/search?query=rent&k=1", "/status", "/health", "/events"):
            head = client.head(path)
            assert (head.status_code, head.content) == (200, b""), path
        assert client.get("/status").json()["clean"]
        assert client.get("/stores").json() == {"stores": [{"name": "kb", "writes": False}]}
    assert server.errors == []


def test_only_who_knows_the_token_learns_anything(place: Path, tmp_path: Path) -> None:
    """Of another name, from a page of another site, or with a wrong token: nothing."""
    with serving(tmp_path, place) as server:
        good = server.headers
        bad: list[dict[str, str]] = [
            {},
            {"Authorization": "Bearer"},
            {"Authorization": f"Bearer {server.token}x"},
            {"Authorization": f"Bearer {server.token[:-1]}"},
            {"Authorization": f"Basic {server.token}"},
            {"Authorization": "Bearer " + "a" * 20_000},
            {"X-Token": server.token},
        ]
        wrong_place = [
            good | {"Host": "evil.example"},
            good | {"Host": "127.0.0.1.evil.example:80"},
            good | {"Host": ""},
            good | {"Host": "evil.example@127.0.0.1"},
            good | {"Host": "127.0.0.1/.evil.example"},
            good | {"Host": "[::1]evil"},
            good | {"Origin": "http://evil.example"},
            good | {"Origin": "null"},
            good | {"Origin": f"http://127.0.0.1:{server.port + 1}"},
        ]
        with httpx.Client(base_url=server.url, trust_env=False, timeout=TIMEOUT_S) as client:
            for headers in [*bad, *wrong_place]:
                for path in ("/search", "/mcp"):
                    found = client.post(path, json={"query": "rent"}, headers=headers)
                    assert found.status_code in (401, 403, 421), headers
                    assert "rent is paid" not in found.text
                    assert server.token not in found.text
            assert client.post(f"/search?token={server.token}", json={}).status_code == 401
            own = {"Origin": server.url.rstrip("/")}
            assert client.post("/search", json={"query": "rent"}, headers=good | own).is_success
            assert client.get("/health").json()["status"] == "ok"
    assert server.errors == []


def test_behind_a_proxy(place: Path, tmp_path: Path) -> None:
    """By the name that was given; without it both refusals say how that is."""
    page = "https://notes.example.org"
    ways = ({"Host": "notes.example.org", "Origin": page}, {"Origin": page})
    asked = {"query": "rent"}
    with serving(tmp_path, place) as server, server.client() as client:
        for headers, status in zip(ways, (421, 403), strict=True):
            found = client.post("/search", json=asked, headers=headers)
            assert found.status_code == status
            assert "--name" in found.json()["remedy"]
    with serving(tmp_path, place, "--name", "a.example", "--name", "notes.example.org") as server:
        with server.client() as client:
            for headers in ways:
                assert client.post("/search", json=asked, headers=headers).is_success
            evil = {"Host": "notes.example.org", "Origin": "https://evil.example"}
            assert client.post("/search", json=asked, headers=evil).status_code == 403
        with httpx.Client(
            base_url=server.url, headers=ways[0], trust_env=False, timeout=TIMEOUT_S
        ) as nobody:
            assert nobody.post("/search", json=asked).status_code == 401
    assert server.errors == []


def test_habits_of_clients(place: Path, tmp_path: Path) -> None:
    """The scheme of the token in any case, a slash behind /mcp, a mark in front of a body."""
    with serving(tmp_path, place, FILESTORE_TOKEN="") as server, server.client() as client:
        for scheme in ("bearer", "BEARER"):
            headers = {"Authorization": f"{scheme} {server.token}"}
            assert client.get("/stores", headers=headers).is_success
        other = {"Authorization": f"Bearer {server.token.swapcase()}"}
        assert client.get("/stores", headers=other).status_code == 401
        marked = b'\xef\xbb\xbf{"query": "rent"}'
        kind = {"Content-Type": "application/json"}
        assert client.post("/search", content=marked, headers=kind).is_success
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accept = {"Accept": "application/json, text/event-stream"}
        for path in ("/mcp", "/mcp/"):
            assert client.post(path, json=ping, headers=accept).json()["id"] == 1
        for path in ("/search/", "/stores/", "/docs/"):
            found = client.get(path)
            assert (found.status_code, found.headers.get("location")) == (404, None)
        with server.raw() as old:
            old.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            assert b" 200 " in old.recv(65536)
    assert server.errors == []


def test_the_token_is_the_users_alone_and_stays(place: Path, tmp_path: Path) -> None:
    """It is made once, in a file that nobody else reads; it is on no screen that is a log."""
    with serving(tmp_path, place) as first:
        path = tmp_path / "filestore" / "server-token"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(first.token) >= 32
    with serving(tmp_path, place) as second:
        assert second.token == first.token
    path.chmod(0o644)
    with serving(tmp_path, place) as third:
        assert third.token != first.token
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    given = "a-token-of-my-own-choice"
    with serving(tmp_path, place, FILESTORE_TOKEN=given) as fourth:
        assert fourth.token == given
        fourth.ask("status")
    assert [*first.errors, *second.errors, *third.errors, *fourth.errors] == []


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["--host", "0.0.0.0"], 4, "others could reach"),
        (["--host", "::"], 4, "others could reach"),
        (["--no-token"], 4, "without a token"),
        (["--token", "short"], 2, "at least 16"),
        (["--token", "böse-böse-böse-böse"], 2, "ASCII"),
        (["--token", "with blanks in between"], 2, "blanks"),
        (["--token", "a" * 32, "--no-token"], 2, "exclude"),
        (["--read-only", "--write"], 2, "exclude"),
        (["--port", "70000"], 3, "cannot be used"),
        (["--port", "-1"], 3, "cannot be used"),
        (["--host", "no.such.host.invalid", "--insecure"], 3, "cannot be used"),
        (["--name", "https://notes.example.org"], 2, "not a host name"),
        (["--name", "a\nb"], 2, "not a host name"),
    ],
)
def test_what_is_not_meant_does_not_start(
    place: Path, tmp_path: Path, words: list[str], code: int, error: str
) -> None:
    """What others could reach is said twice, what makes no sense is said back."""
    found, said = refused(tmp_path, place, *words)
    assert found == code
    assert error in said["error"]
    assert said["remedy"] or advised(said["error"])


def test_the_first_who_asks_does_not_wait_for_what_is_loaded(place: Path, tmp_path: Path) -> None:
    """What reads the indexes is in memory before."""
    with serving(tmp_path, place) as server:
        loaded, deadline = Path(f"/proc/{server.process.pid}/maps"), time.monotonic() + TIMEOUT_S
        while "tantivy" not in loaded.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert server.errors == []


def test_a_port_in_use_is_said(place: Path, tmp_path: Path) -> None:
    """With what to do; the one that has it goes on."""
    with serving(tmp_path, place) as server:
        code, said = refused(tmp_path, place, "--port", server.port)
        assert (code, "use" in said["error"]) == (3, True)
        assert "--port" in said["remedy"]
        server.ask("status")


def test_an_address_of_six(place: Path, tmp_path: Path) -> None:
    """The loopback device of IPv6 is this machine, too."""
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with serving(tmp_path, place, "--host", "[::1]") as server:
        assert server.url.startswith("http://[::1]:")
        assert server.ask("search", query="rent")["hits"]


def test_what_was_asked_last_is_answered_at_the_end(place: Path, tmp_path: Path) -> None:
    """SIGTERM ends it as Ctrl-C does."""
    with serving(tmp_path, place) as server, server.client() as client:
        assert client.get("/status").is_success
        server.process.terminate()
        assert server.process.wait(TIMEOUT_S) == 0
    assert server.errors == []


def test_who_only_listens_does_not_keep_it_from_ending(place: Path, tmp_path: Path) -> None:
    """An open page, or an agent: their streams end, and well."""
    accepted = {"Accept": "text/event-stream"}
    with serving(tmp_path, place) as server, server.client() as client:  # noqa: SIM117
        with client.stream("GET", "/events", headers=accepted) as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": listening"
            server.process.terminate()
            # To its end: a stream that is cut off, as once requests are given up, is an error here.
            assert all(line.startswith((":", "data:")) or not line for line in lines)
            assert server.process.wait(TIMEOUT_S) == 0
    assert server.errors == []


def test_a_request_has_one_length(place: Path, tmp_path: Path) -> None:
    """One with two is refused, and what stands behind it is no second request."""
    second = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with serving(tmp_path, place) as server:
        head = f"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}"
        for lengths in (
            b"Transfer-Encoding: chunked\r\nContent-Length: 4",
            b"Content-Length: 4\r\nTransfer-Encoding: chunked",
            b"Content-Length: 4\r\nContent-Length: 5",
            b"Content-Length: +4",
            b"Transfer-Encoding: chunked, identity",
            b"Transfer-Encoding : chunked",
        ):
            with server.raw() as connection:
                connection.sendall(
                    head.encode() + b"\r\n" + lengths + b"\r\n\r\n0\r\n\r\n" + second
                )
                said = b"".join(iter(lambda one=connection: one.recv(65_536), b""))
            assert said.startswith(b"HTTP/1.1 400"), said
            assert said.count(b"HTTP/1.1") == 1, said
    assert server.errors == []


def test_no_body_is_unpacked(place: Path, tmp_path: Path) -> None:
    """A small one that becomes a huge one is not even begun; the client is told why."""
    bomb = gzip.compress(b'{"query": "' + b" " * 1_000_000 + b'"}')
    words = ("--write", "--collections", tmp_path / "rags")
    with serving(tmp_path, place, *words) as server, server.client() as client:
        for path in ("/search", "/add", "/rag/index", "/mcp"):
            for coding in ("gzip", "br", "deflate, gzip"):
                headers = {
                    "Content-Encoding": coding,
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                }
                found = client.post(path, content=bomb, headers=headers)
                assert (found.status_code, "compressed" in found.text) == (415, True), path
        plain = client.post(
            "/search", json={"query": "rent"}, headers={"Content-Encoding": "identity"}
        )
        assert plain.is_success
    assert server.errors == []


def test_documents_are_uploaded(place: Path, tmp_path: Path) -> None:
    """Alone, several as one resource, again, over another one; what fails leaves nothing."""
    with serving(tmp_path, place, "--write") as server, server.client() as client:
        files = [("file", ("Größe.md", b"# Sizes\n\nHerrings are small.\n"))]
        first = client.post("/add", files=files).json()
        assert [one["resource"] for one in first["added"]] == ["Größe.md"]
        assert server.ask("search", query="herrings", k=1)["hits"][0]["source"] == "source/Größe.md"
        assert client.post("/add", files=files).json()["unchanged"]
        other = [("file", ("Größe.md", b"# Sizes\n\nWhales are large.\n"))]
        refused = client.post("/add", files=other)
        assert (refused.status_code, "is there already" in refused.json()["error"]) == (409, True)
        assert client.post("/add", files=other, data={"replace": "true"}).json()["updated"]
        several = [("file", (f"{n}.txt", f"Page {n} of lamps.".encode())) for n in range(3)]
        made = client.post("/add", files=several, data={"into": "lamps"}).json()["added"]
        assert [one["resource"] for one in made] == ["lamps"]
        before = sorted(path.name for path in (place / "source").iterdir())
        broken = client.post("/add", files=[("file", ("broken.pdf", b"%PDF-1.4 nothing"))])
        assert (broken.status_code, len(broken.json()["failed"])) == (422, 1)
        assert sorted(path.name for path in (place / "source").iterdir()) == before
        assert client.get("/status").json()["clean"]
    assert server.errors == []


@pytest.mark.parametrize(
    "name",
    ["../up.md", "..", "/etc/cron.d/x", ".hidden", "a/b.md", "a\x00b", "x" * 300, "a\nb.md"],
)
def test_names_of_documents_stay_in_their_folder(place: Path, tmp_path: Path, name: str) -> None:
    """Whatever a client calls them, and the folder they go to."""

    def everything() -> set[Path]:
        return {path for path in tmp_path.rglob("*") if ".sidecar" not in path.parts}

    with serving(tmp_path, place, "--write") as server, server.client() as client:
        (place / "source").mkdir()
        before = everything()
        boundary = "b0und"
        body = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            f"\r\ntext\r\n--{boundary}--\r\n"
        ).encode()
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        found = client.post("/add", content=body, headers=kind)
        assert found.status_code in (200, 400, 422)
        if found.is_success:
            # The client's folder is cut off its name.
            assert [one["source"] for one in found.json()["added"]] in (
                ["source/up.md"],
                ["source/b.md"],
                ["source/x"],
            )
        else:
            assert everything() == before
        into = client.post("/add", files=[("file", ("a.md", b"text"))], data={"into": name})
        assert into.status_code in (400, 422)


def test_nothing_that_a_client_says_is_passed_over(place: Path, tmp_path: Path) -> None:
    """Words that no route heeds are refused, in the address as in a form; nothing is added."""
    named = [("file", ("lamp.md", b"# Lamp"))]
    with serving(tmp_path, place, "--write") as server, server.client() as client:
        before = client.get("/ls").json()
        for path, said in (
            ("/search?store=other", {"json": {"query": "rent"}}),
            ("/sync?embed=false", {"json": {}}),
            ("/add?into=lamps", {"files": named}),
            ("/add", {"files": named, "data": {"resource": "lamps"}}),
            ("/add", {"files": named, "data": {"replace": "yes"}}),
            ("/add", {"files": {"other": ("lamp.md", b"# Lamp")}}),
            ("/add", {"files": named, "data": {"file": "a text"}}),
            ("/search", {"json": {"query": "rent", "limit": 1}}),
        ):
            refused = client.post(path, **said)  # type: ignore[arg-type]
            assert refused.status_code == 400, (path, said, refused.text)
        assert client.get("/ls").json() == before
    assert server.errors == []


def test_no_upload_leaves_what_other_systems_cannot_have(place: Path, tmp_path: Path) -> None:
    """A name of a device, or one that Windows cuts: a store is for every machine."""
    with serving(tmp_path, place, "--write") as server, server.client() as client:
        for name in ("CON", "nul.txt", "a:b.md", "a.", "a.md ", "a\u202eb.md", "a\u200bb.md"):
            files = [("file", (name, b"text"))]
            for into in ({}, {"into": name}):
                named = files if not into else [("file", ("a.md", b"text"))]
                found = client.post("/add", files=named, data=into)
                assert found.status_code == 400, name
                assert found.json()["error"].endswith("rename it"), name
        assert client.get("/status").json()["clean"]
    assert not (place / "source").exists()
    assert server.errors == []


def test_a_document_takes_no_place_of_something_else(place: Path, tmp_path: Path) -> None:
    """A file where several are to lie, a folder or a link where one is to."""
    source = place / "source"
    (source / "folder.md").mkdir(parents=True)
    (source / "link.md").symlink_to(place / "filestore.toml")
    (source / "dangling.md").symlink_to(tmp_path / "nothing")
    with serving(tmp_path, place, "--write") as server, server.client() as client:

        def added(name: str, **data: str) -> httpx.Response:
            return client.post("/add", files=[("file", (name, b"text"))], data=data)

        assert added("alone.md").is_success
        before = {path: path.lstat() for path in place.rglob("*") if ".sidecar" not in path.parts}
        for found in (
            added("a.md", into="alone.md"),
            added("folder.md"),
            added("folder.md", replace="true"),
            added("link.md", replace="true"),
            added("dangling.md"),
        ):
            assert (found.status_code, "is" in found.json()["error"]) == (409, True)
            assert re.search(r"(choose|upload it under) another name", found.json()["error"])
        assert added("b.md", into="folder.md").is_success
        after = {path: path.lstat() for path in before}
        assert [path for path in before if before[path].st_ino != after[path].st_ino] == []
    assert not (tmp_path / "nothing").exists()
    assert server.errors == []


def test_a_link_leads_no_upload_out(place: Path, tmp_path: Path) -> None:
    """A folder of originals that is somewhere else."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (place / "source").mkdir()
    (place / "source" / "lamps").symlink_to(outside)
    with serving(tmp_path, place, "--write") as server, server.client() as client:
        found = client.post("/add", files=[("file", ("a.md", b"text"))], data={"into": "lamps"})
        assert found.status_code == 409
    assert list(outside.iterdir()) == []


def test_who_may_only_read(place: Path, tmp_path: Path) -> None:
    """Is told so, before anything is read of what was sent."""
    with serving(tmp_path, place) as server, server.client() as client:
        found = client.post("/add", files=[("file", ("a.md", b"text"))])
        assert found.status_code == 403
        assert found.json()["error"].endswith("start the server with --write")
        assert client.post("/remove", json={"resources": ["notes"]}).status_code == 403
        assert client.get("/remove").status_code == 405
        assert not (place / "source").exists()


def test_a_store_that_vanishes_and_comes_back(place: Path, tmp_path: Path) -> None:
    """While it is away that is said; the other goes on, and once it is back it answers again."""
    other = tmp_path / "other"
    with filestore.create(other, embedder="builtin") as store:
        store.put([GAS], into="notes")
    with serving(tmp_path, place, other) as server, server.client() as client:
        asked = {"query": "rent", "store": "kb"}
        assert client.post("/search", json=asked).json()["hits"]
        away = place.rename(tmp_path / "away")
        gone = client.post("/search", json=asked)
        assert (gone.status_code, "no store" in gone.json()["error"]) == (503, True)
        assert client.post("/search", json={"query": "gas", "store": "other"}).json()["hits"]
        away.rename(place)
        assert client.post("/search", json=asked).json()["hits"]
    assert server.errors == []


def test_a_sync_from_outside_is_seen_at_once(place: Path, tmp_path: Path) -> None:
    """The next answer is of the next generation, and whole."""
    with serving(tmp_path, place) as server:
        first = server.ask("search", query="lamps")
        with filestore.open(place) as store:
            store.put(["Lamps are lit at six."], into="notes", names=["lamps"])
        second = server.ask("search", query="lamps", k=1)
        assert second["generation"] > first["generation"]
        assert second["hits"][0]["path"] == "chunked/notes/lamps.md"
        (place / "chunked" / "notes" / "lamps.md").write_text("Nothing.\n")
        (edited,) = [
            one
            for one in server.ask("search", query="lamps")["hits"]
            if one["path"].endswith("lamps.md")
        ]
        assert edited["freshness"] == "edited"


def test_two_servers_on_one_store(place: Path, tmp_path: Path) -> None:
    """Both answer; what one writes the other has."""
    with serving(tmp_path, place, "--write") as one, serving(tmp_path, place, "--write") as two:
        with one.client() as client:
            client.post("/add", files=[("file", ("lamps.md", b"Lamps are lit at six.\n"))])
        assert two.ask("search", query="lamps", k=1)["hits"][0]["text"] == "Lamps are lit at six.\n"
        two.ask("remove", resources=["lamps.md"])
        assert all(
            hit["resource"] != "lamps.md" for hit in one.ask("search", query="lamps")["hits"]
        )


def test_events_tell_what_changes(place: Path, tmp_path: Path) -> None:
    """Files, and the catalog; to each who listens."""
    with serving(tmp_path, place) as server, server.client() as client:  # noqa: SIM117
        with client.stream("GET", "/events") as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data: "))
            events = (json.loads(line.removeprefix("data: ")) for line in lines)
            assert next(events) == {"event": "ready"}
            (place / "chunked" / "notes" / "new.md").write_text("New.\n")
            assert next(events)["paths"] == ["chunked/notes/new.md"]
            with filestore.open(place) as store:
                store.sync()
            assert next(one for one in events if one["event"] == "catalog")
    assert server.errors == []


def test_events_tell_what_the_server_does(place: Path, tmp_path: Path, run: Any) -> None:
    """As `watch --json` tells it: reports, whoever asked for what is reported."""
    lamps = place / "chunked" / "notes" / "lamps.md"
    with serving(tmp_path, place, "--write") as server, server.client() as client:  # noqa: SIM117
        with client.stream("GET", "/events") as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data: "))
            events = (json.loads(line.removeprefix("data: ")) for line in lines)
            assert next(events) == {"event": "ready"}
            done = (one for one in events if one["event"] in ("synced", "updated"))
            lamps.write_text("Lamps are lit at six.\n")
            report = server.ask("sync")
            synced = next(done)
            assert (synced["event"], synced["applied"]["untracked"]) == ("synced", 1)
            assert (synced["remaining"], synced["generation"]) == ({}, report["generation"])
            with server.client() as other:
                other.post("/add", files=[("file", ("gas.md", b"Gas is cheap.\n"))])
            nothing = {"event": "updated", "updated": [], "conflicts": [], "failed": []}
            assert next(done) == nothing | {"updated": ["gas.md"]}
            (place / "source" / "gas.md").write_text("Gas is dear.\n")
            server.ask("update")
            assert next(done) == nothing | {"updated": ["gas.md"]}
            assert next(done)["event"] == "synced"
            server.ask("remove", resources=["gas.md"])
            assert next(done) == nothing | {"updated": ["gas.md"]}
    assert server.errors == []


def test_figures_name_nothing_of_a_store(place: Path, tmp_path: Path) -> None:
    """Routes and counts; no query, no path, no token."""
    with serving(tmp_path, place) as server, server.client() as client:
        client.post("/search", json={"query": "a secret question"})
        client.get("/a/secret/path")
        found = client.get("/metrics").text
        assert 'filestore_requests_total{route="/search",status="200"} 1.0' in found
        assert 'filestore_waiting{store="kb"} 0.0' in found
        assert {one.name for one in text_string_to_metric_families(found)} >= {
            "filestore_requests",
            "filestore_request_seconds",
            "filestore_waiting",
        }
        assert "secret" not in found
        assert server.token not in found


def test_the_description_is_true(place: Path, tmp_path: Path) -> None:
    """OpenAPI names every route; the page for people has no script and needs no network."""
    (tmp_path / "rags").mkdir()
    words = (place, "--collections", tmp_path / "rags")
    with serving(tmp_path, *words) as server, server.client() as client:
        described = client.get("/openapi.json").json()
        assert described["openapi"] == "3.1.0"
        for path, methods in described["paths"].items():
            for method in methods:
                # A collection that is named there is none.
                is_asked = path != "/events" and "{" not in path
                found = client.request(method, path) if is_asked else None
                assert found is None or found.status_code not in (404, 405), path
        page = client.get("/docs")
        assert "<script" not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]


def test_slow_clients_are_let_go(place: Path, tmp_path: Path) -> None:
    """Half a request, a byte now and then, no request: the connection ends; others are served."""
    with serving(tmp_path, place) as server:
        half = server.raw()
        half.sendall(b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        silent = server.raw()
        kept = server.raw()
        kept.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"200" in kept.recv(65536)
        kept.sendall(b"GET /hea")
        idle = server.raw()
        idle.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b" 200 " in b"".join(iter(lambda: idle.recv(1), b"}"))
        dripping, deadline = server.raw(), time.monotonic() + TIMEOUT_S
        ended = False
        while time.monotonic() < deadline and not ended:
            server.ask("status")
            try:
                dripping.sendall(b"X")
                dripping.settimeout(0.5)
                ended = dripping.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True
        assert ended
        for one in (half, silent, kept):
            while one.recv(65536):
                pass
            one.close()
        dripping.close()
        # Between requests a client may be silent for longer: others have gone meanwhile.
        idle.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b" 200 " in b"".join(iter(lambda: idle.recv(1), b"}"))
        idle.close()
    assert server.errors == []


def test_agents_ask_the_same_server(place: Path, tmp_path: Path) -> None:
    """At /mcp, with the token; writing tools only where the server may write."""
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async def asked(server: Served, tool: str, **given: Any) -> Any:
        async with (
            httpx2.AsyncClient(headers=server.headers) as carrier,
            Client(streamable_http_client(f"{server.url}mcp", http_client=carrier)) as client,
        ):
            return await client.call_tool(tool, given)

    with serving(tmp_path, place) as server:
        found = asyncio.run(asked(server, "search", query="rent", k=1))
        assert found.content[0].text.startswith("1. chunked/notes/rent.md:")
        assert asyncio.run(asked(server, "add_note", path="a.md", text="A.")).is_error
        with httpx.Client(base_url=server.url, trust_env=False, timeout=TIMEOUT_S) as nobody:
            assert nobody.post("/mcp", json={}).status_code == 401
    assert server.errors == []


def test_collections_beside_the_stores(place: Path, tmp_path: Path) -> None:
    """Behind the same token; without a folder for them the routes say how to have one."""
    asked = {"rag_name": "lamps", "documents": ["Lamps are lit at six.", "Gas is cheap."]}
    with serving(tmp_path, place) as server, server.client() as client:
        told = client.get("/rag/list")
        assert (told.status_code, set(told.json())) == (404, {"error", "details", "action"})
    folder = tmp_path / "collections"
    with serving(tmp_path, place, "--write", "--collections", folder) as server:
        with server.client() as client:
            assert client.post("/rag/index", json=asked).json()["document_count"] == 2
            found = client.post("/rag/lamps/query", json={"query": "when are lamps lit", "k": 1})
            assert found.json()["results"][0]["text"] == "Lamps are lit at six."
            assert client.get("/stores").json()["stores"] == [{"name": "kb", "writes": True}]
        with httpx.Client(base_url=server.url, trust_env=False, timeout=TIMEOUT_S) as nobody:
            assert nobody.get("/rag/list").status_code == 401
    with serving(tmp_path, place, "--collections", folder) as server, server.client() as client:
        assert client.post("/rag/lamps/query", json={"query": "lamps"}).json()["results"]
        assert client.delete("/rag/lamps").status_code == 403
    assert server.errors == []
