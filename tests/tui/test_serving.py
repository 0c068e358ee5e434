"""The inspector in a browser: who may speak to it, what it may do there, and what it leaves."""

import asyncio
import re
import shutil
import socket
import sys
import time

import aiohttp
import pytest

from filestore import Store
from tests.tui.browsing_by_socket import WAIT_S, page_of, served
from tests.tui.looks import make_store
from tests.tui.processes import children, is_running
from tui.serving import ServerMissingError, is_own_page, serve


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store that was changed behind its back, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    make_store(folder)
    return folder


@pytest.fixture
def folder(tmp_path, made):
    """A store that was changed behind its back."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def store_of(folder):
    """The store, apart from the inspector."""
    return Store(str(folder / "example_index"), configuration=str(folder / "configuration"))


def truth(folder):
    """Every chunk file and its bytes."""
    files = (folder / "example_index" / "chunked").rglob("*")
    return {str(path): path.read_bytes() for path in files if path.is_file()}


def family(pid):
    """A process and all that it started, and that these started."""
    return [pid, *(one for child in children(pid) for one in family(child))]


def all_gone(pids):
    """Whether every process ends within some time."""
    until_s = time.monotonic() + WAIT_S
    while any(map(is_running, pids)):
        if time.monotonic() > until_s:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        (None, "127.0.0.1:8000", True),
        (None, "localhost:8000", True),
        ("http://127.0.0.1:8000", "127.0.0.1:8000", True),
        ("http://localhost:9000", "localhost:9000", True),
        ("http://127.0.0.1:8001", "127.0.0.1:8000", False),
        ("http://localhost:8000", "127.0.0.1:8000", False),
        ("http://example.org", "127.0.0.1:8000", False),
        ("http://127.0.0.1:8000.example.org", "127.0.0.1:8000", False),
        ("http://127.0.0.1:8000@example.org", "127.0.0.1:8000", False),
        ("null", "127.0.0.1:8000", False),
        ("", "127.0.0.1:8000", False),
        ("http://[", "127.0.0.1:8000", False),
        ("http://example.org", "example.org", False),
        (None, "example.org:8000", False),
        (None, "127.0.0.1.example.org", False),
        (None, "[", False),
        (None, "", False),
        (None, None, False),
    ],
)
def test_who_may_speak_to_the_server(origin, host, own):
    """Pages of this very address, and what is no page; never a name that merely leads here."""
    assert is_own_page(origin, host) is own


async def statuses(address, requests):
    """What is answered to requests with these headers, in the order asked."""
    async with aiohttp.ClientSession() as session:
        found = []
        for path, headers in requests:
            async with session.get(address + path, headers=headers) as answer:
                found.append(answer.status)
        return found


def test_other_pages_are_kept_out(folder):
    """Another page, or another name for this machine, gets nothing: no page, no file, no socket."""

    async def act(served):
        other = {"Origin": "http://example.org"}
        name = {"Host": f"example.org:{served.port}"}
        refused = [(path, one) for path in ("/", "/static/js/textual.js") for one in (other, name)]
        assert await statuses(served.address, refused) == [403] * len(refused)
        assert await statuses(served.address, [("/", {})]) == [200]
        for one in (other, name):
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                async with page_of(served.address, origin=None, headers=one):
                    pass
        assert children(served.process.pid) == []

    with served(folder) as server:
        asyncio.run(act(server))


def test_the_page_needs_nothing_from_elsewhere(folder):
    """Every address in it is its own and answers, and the browser is told to ask nobody else."""

    async def act(server):
        async with aiohttp.ClientSession() as session, session.get(server.address) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert answer.headers["X-Frame-Options"] == "DENY"
            page = await answer.text()
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert set(re.findall(r"\w+://[^ ;]*", policy)) == {
            f"ws://127.0.0.1:{server.port}",
            f"wss://127.0.0.1:{server.port}",
        }
        named = re.findall(r"""(?:href|src)="([^"]*)"|url\("([^"]*)"\)""", page)
        addresses = {first or second for first, second in named} - {"/", "data:,"}
        assert all(re.match(r"/static/\w", address) for address in addresses), addresses
        assert {address.rpartition(".")[2] for address in addresses} == {"css", "js", "ttf"}
        asked = [(address, {}) for address in sorted(addresses)]
        assert set(await statuses(server.address, asked)) == {200}

    with served(folder) as server:
        asyncio.run(act(server))


def test_a_page_can_only_read(folder):
    """It browses; an editor and changes are refused with their reasons; nothing is written."""
    before = truth(folder)

    async def act(server):
        async with page_of(server.address) as page:
            await page.until("field-guide")
            await page.until("3 errors")
            await page.press("e", "browser")
            await page.press("i", "--serve --write")
            await page.press("3", "nothing is planned")
            # By now it takes the keys of its page at once.
            await page.type("3")
            await page.press("p", "forget")
            await page.press("A", "--serve --write")
            await page.press("?", "Keys")

    with served(folder) as server:
        asyncio.run(act(server))
    assert truth(folder) == before
    with store_of(folder) as store:
        assert len([one for one in store.status().findings if one.severity != "I"]) == 5


def test_a_page_that_may_write_repairs(folder):
    """With --write the plan is applied after a yes; the editor stays refused."""

    async def act(server):
        async with page_of(server.address) as page:
            await page.until("3 errors")
            await page.press("e", "browser")
            await page.press("3", "nothing is planned")
            # By now it takes the keys of its page at once.
            await page.type("3")
            await page.press("p", "forget")
            await page.press("t", "1 file written")
            await page.press("A", "esc leaves")
            await page.press("y", "1 error")

    with served(folder, "--write") as server:
        asyncio.run(act(server))
    with store_of(folder) as store:
        found = [one.code for one in store.status().findings if one.severity != "I"]
    assert found == ["conflict-markers"]
    assert (folder / "example_index" / "chunked" / "checklist.txt" / "chunk1.md").exists()


@pytest.mark.parametrize("how", ["page closed", "server interrupted", "server killed"])
def test_nothing_stays_behind(folder, how):
    """However it ends, the inspector of a page and the processes that it started are gone."""

    async def act(server):
        async with page_of(server.address) as page:
            await page.until("3 errors")
            started = family(server.process.pid)[1:]
            # The inspector, what looks at the store, what watches it.
            assert len(started) >= 3
            if how == "server killed":
                server.process.kill()
                server.process.wait(WAIT_S)
            elif how == "server interrupted":
                ending = asyncio.create_task(asyncio.to_thread(server.end))
                async for _ in page.socket:
                    pass
                assert await ending == 0
        return started

    with served(folder) as server:
        started = asyncio.run(act(server))
        assert all_gone(started)
        if how == "page closed":
            assert server.process.poll() is None
            assert server.end() == 0


def test_a_port_that_is_taken_is_told(run, folder):
    """An error that names the port and the option, exit code 3."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run("tui", "--serve", "--port", port, cwd=folder / "example_index")
    assert done.code == 3
    assert f"port {port} cannot be used" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_none_is_told(run, folder):
    """A number that no port has is an error of the same kind."""
    done = run("tui", "--serve", "--port", "70000", cwd=folder / "example_index")
    assert done.code == 3
    assert "port 70000 cannot be used" in done.stderr


def test_a_missing_server_is_told(monkeypatch):
    """Where textual-serve is not installed, the error names what to install."""
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    with pytest.raises(ServerMissingError) as caught:
        serve([], port=8000, title="filestore")
    assert "filestore[serve]" in caught.value.remedy
