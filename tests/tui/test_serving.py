"""The inspector in a browser: who may speak to it, what it may do there, and what it leaves."""

import asyncio
import contextlib
import re
import shutil
import socket
import time

import aiohttp
import pytest

from filestore import Store
from tests.tui.browsing_by_socket import WAIT_S, page_of, served
from tests.tui.looks import make_store
from tests.tui.processes import children, is_running
from tui.app.page_rules import MOST_PAGES, is_own_page, page_message
from tui.app.serving import ServerMissingError, serve


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store that was changed behind its back, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    make_store(folder)
    return folder


@pytest.fixture(scope="module")
def attacked(tmp_path_factory, made):
    """A server of a store of its own, which outlives whatever is done to it."""
    folder = tmp_path_factory.mktemp("attacked")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    (folder / "example_index" / "secret.txt").write_text(SECRET)
    with served(folder) as server:
        yield server
        assert server.end() == 0
        said = (folder / "server.log").read_text()
        assert "Traceback" not in said, said


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
        ("https://localhost:8000", "localhost:8000", True),
        ("ftp://localhost:8000", "localhost:8000", False),
        ("http://localhost:8000/", "localhost:8000", False),
        ("http://LOCALHOST:8000", "localhost:8000", False),
        (None, "LOCALHOST:8000", False),
        (None, "localhost.:8000", False),
        (None, "evil@127.0.0.1:8000", False),
        (None, "127.0.0.1:8000; script-src *", False),
        (None, "127.0.0.1:8000, example.org", False),
        (None, "127.0.0.1:", False),
        (None, "127.0.0.1:99999999", False),
        (None, "[::1]:8000", False),
        (None, "0.0.0.0:8000", False),
        (None, "127.1:8000", False),
        (None, "2130706433:8000", False),
        (None, "127.0.0.1.nip.io:8000", False),
    ],
)
def test_who_may_speak_to_the_server(origin, host, own):
    """Pages of this very address, and what is no page; never a name that merely leads here."""
    assert is_own_page(origin, host) is own


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('["stdin", "q"]', ("stdin", b"q")),
        ('["stdin", "\\ud800"]', ("stdin", b"?")),
        ('["resize", {"width": 80, "height": 24}]', ("resize", (80, 24))),
        ('["ping", 5]', ("ping", 5)),
        ('["blur"]', ("blur", None)),
        ('["what a later page says", {}]', ("what a later page says", None)),
    ],
)
def test_what_a_page_says(text, said):
    """Keys, sizes and signs of life are taken as they are; what is not known is left."""
    assert page_message(text) == said


MALFORMED = [
    "",
    "{",
    "null",
    "[]",
    "[5]",
    "{}",
    '"stdin"',
    '["stdin"]',
    '["stdin", 5]',
    '["stdin", {}]',
    '["resize"]',
    '["resize", {}]',
    '["resize", {"width": "80", "height": 24}]',
    '["resize", {"width": 1e999, "height": 24}]',
    '["resize", [80, 24]]',
    "[" * 100_000,
]


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: text[:40])
def test_what_no_page_says_is_refused(text):
    """Anything malformed is an error of one kind, however deep it is nested."""
    with pytest.raises(ValueError, match=r"\w"):
        page_message(text)


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
            await page.press("p", "remove from the index")
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
            await page.press("p", "remove from the index")
            await page.press("t", "1 file written")
            await page.press("A", "esc cancels")
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


def test_a_missing_server_is_told(without_packages):
    """Where textual-serve is not installed, the error names what to install."""
    without_packages("textual_serve", "textual_serve.server")
    with pytest.raises(ServerMissingError, match="textual-serve is not installed") as caught:
        serve([], port=8000, title="filestore")
    assert caught.value.remedy == "pip install textual-serve"


# Attacks: nothing is read or written that a page may not, and the server goes on

SECRET = "the words of a secret"
PLAIN = "GET / HTTP/1.1"
SOCKET = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)


def asked(server, *lines, host=True, body=b""):
    """Send lines as they stand; the status that is answered and all that comes with it."""
    own = [f"Host: 127.0.0.1:{server.port}"] if host else []
    first, *rest = (line.replace("PORT", str(server.port)) for line in lines)
    sent = "\r\n".join([first, *own, *rest, "Connection: close", "", ""])
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as connection:
        connection.sendall(sent.encode("latin-1") + body)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(1 << 16):
                answer += part
    status = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(status[1]) if status else 0, answer


def is_alive(server):
    """Whether a page is answered as ever."""
    return server.process.poll() is None and asked(server, PLAIN)[0] == 200


STRANGERS = {
    "another origin": (PLAIN, "Origin: http://example.org"),
    "no origin that is one": (PLAIN, "Origin: null"),
    "an empty origin": (PLAIN, "Origin:"),
    "an origin on another port": (PLAIN, "Origin: http://127.0.0.1:1"),
    "the same machine by another name": (PLAIN, "Origin: http://localhost:PORT"),
    "two origins": (PLAIN, "Origin: http://127.0.0.1:PORT", "Origin: http://example.org"),
    "two origins in one": (PLAIN, "Origin: http://127.0.0.1:PORT, http://example.org"),
    "a socket of another page": ("GET /ws HTTP/1.1", *SOCKET, "Origin: http://example.org"),
    "a socket of a page of no origin": ("GET /ws HTTP/1.1", *SOCKET, "Origin: null"),
    "a file for another page": ("GET /static/js/textual.js HTTP/1.1", "Origin: http://example.org"),
    "a download for another page": ("GET /download/x HTTP/1.1", "Origin: http://example.org"),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_stranger_is_refused(attacked, name):
    """Whatever names an origin that is not this page gets 403, and no socket."""
    status, answer = asked(attacked, *STRANGERS[name])
    assert status == 403
    assert b"only pages of this server" in answer
    assert is_alive(attacked)


REBOUND = [
    "example.org:PORT",
    "127.0.0.1.nip.io:PORT",
    "localhost.example.org:PORT",
    "0.0.0.0:PORT",
    "[::1]:PORT",
    "evil@127.0.0.1:PORT",
    "",
]


@pytest.mark.parametrize("host", REBOUND)
@pytest.mark.parametrize("target", ["/", "/ws", "/static/js/textual.js"])
def test_a_name_that_was_rebound_is_refused(attacked, host, target):
    """A name that leads here gets nothing, whatever else it says of where it came from."""
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", *SOCKET]
    said = f"X-Forwarded-Host: 127.0.0.1:{attacked.port}"
    for more in ([], [said], [f"Origin: http://{host}"]):
        status, answer = asked(attacked, *lines, *more, host=False)
        assert status in (400, 403), answer
        assert b"101 Switching" not in answer


def test_a_request_that_says_its_host_twice_is_refused(attacked):
    """Which of two hosts is meant is not guessed; nor is one that is not said."""
    for more, host in ((["Host: example.org"], True), ([], False)):
        assert asked(attacked, PLAIN, *more, host=host)[0] in (400, 403)
    assert is_alive(attacked)


OUTSIDE = [
    "/static/../../etc/passwd",
    "/static/../serving.py",
    "/static/..%2f..%2f..%2fetc%2fpasswd",
    "/static/%2e%2e/%2e%2e/server.py",
    "/static/%252e%252e%252fserver.py",
    "/static/..%5c..%5cserver.py",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "/static/js/textual.js%00.html",
    "/static/%00",
    "/static/../server.py",
    "/static/....//server.py",
    "/../secret.txt",
    "/secret.txt",
    "/chunked/",
    "/download/../../secret.txt",
    "/download/%2e%2e%2fsecret.txt",
    "/static/" + "a/" * 3000,
    "http://example.org/static/../server.py",
]


@pytest.mark.parametrize("target", OUTSIDE, ids=lambda target: target[:40])
def test_nothing_outside_is_read(attacked, target):
    """No way of writing a path leads out of the files of the page."""
    status, answer = asked(attacked, f"GET {target} HTTP/1.1")
    assert 400 <= status < 500, answer[:500]
    for words in (SECRET.encode(), b"root:", b"import ", b"Traceback"):
        assert words not in answer
    assert is_alive(attacked)


ODD = {
    "a body in chunks": (
        ("POST / HTTP/1.1", "Transfer-Encoding: chunked"),
        b"5\r\nhello\r\n0\r\n\r\n",
    ),
    "chunks that are none": (("POST / HTTP/1.1", "Transfer-Encoding: chunked"), b"zz\r\n"),
    "two lengths": (("POST / HTTP/1.1", "Content-Length: 1", "Content-Length: 9"), b"x"),
    "a length and chunks": (
        ("POST / HTTP/1.1", "Content-Length: 4", "Transfer-Encoding: chunked"),
        b"0\r\n\r\n",
    ),
    "a length below nothing": (("GET / HTTP/1.1", "Content-Length: -1"), b""),
    "a header of 64 KB": ((PLAIN, "X-Long: " + "a" * 65_536), b""),
    "a method that is none": (("STEAL / HTTP/1.1",), b""),
    "a method that writes": (("PUT /static/js/textual.js HTTP/1.1", "Content-Length: 1"), b"x"),
    "a method that echoes": (("TRACE / HTTP/1.1",), b""),
    "another protocol": (("GET / GOPHER/9",), b""),
    "no request": (("\x16\x03\x01\x02",), b"\x00" * 50),
    "a socket without a key": (("GET /ws HTTP/1.1", "Upgrade: websocket"), b""),
    "a socket of another version": (
        ("GET /ws HTTP/1.1", *SOCKET[:2], "Sec-WebSocket-Version: 0", SOCKET[3]),
        b"",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_requests_are_refused_without_a_trace(attacked, name):
    """They get an error of theirs, no traceback, and the server goes on."""
    lines, body = ODD[name]
    status, answer = asked(attacked, *lines, body=body)
    assert 400 <= status < 500, answer[:500]
    assert b"Traceback" not in answer
    assert b".py" not in answer
    assert is_alive(attacked)


def test_an_absolute_request_is_for_this_server(attacked):
    """A target that names another server is answered with our page, never fetched."""
    status, answer = asked(attacked, "GET http://example.org/ HTTP/1.1")
    assert status == 200
    assert b"textual.js" in answer
    assert b"example.org" not in answer


def test_a_forwarded_host_is_not_believed(attacked):
    """What a header says of another host comes up nowhere in the answer."""
    status, answer = asked(attacked, PLAIN, "X-Forwarded-Host: example.org", "Forwarded: host=evil")
    assert status == 200
    assert b"example.org" not in answer
    assert b"evil" not in answer


FRAMES = {
    "bytes": b"\x00\xff" * 100,
    "not JSON": "{",
    "no list": '{"stdin": "q"}',
    "no word": "[5]",
    "keys that are none": '["stdin", {"a": 1}]',
    "a size that is none": '["resize", {"width": "wide", "height": null}]',
    "nested without an end": "[" * 100_000,
    "larger than any paste": "a" * (5 << 20),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_page_that_says_what_none_says_is_closed(attacked, name):
    """Its socket is closed, the reason without a trace; its processes go, the server stays."""
    sent = FRAMES[name]

    async def act():
        async with page_of(attacked.address) as page:
            await page.until("field-guide")
            send = page.socket.send_bytes if isinstance(sent, bytes) else page.socket.send_str
            # Who sends too much may be cut off while it sends.
            with contextlib.suppress(ConnectionError):
                await send(sent)
            async with asyncio.timeout(WAIT_S):
                async for message in page.socket:
                    assert b"Traceback" not in message.data
            assert page.socket.close_code in (1006, 1008, 1009)

    asyncio.run(act())
    assert is_alive(attacked)
    assert all_gone(family(attacked.process.pid)[1:])


def test_a_page_outlives_odd_sizes_and_words(attacked):
    """What is well-formed and merely odd is taken: sizes of any number, words nobody knows."""

    async def act():
        async with page_of(attacked.address) as page:
            await page.until("field-guide")
            for said in (["wonder", 5], ["resize", {"width": 10**9, "height": -7}], ["blur"]):
                await page.socket.send_json(said)
            await page.until("too small")
            page.drawn = ""
            await page.socket.send_json(["resize", {"width": 100, "height": 30}])
            await page.until("field-guide")
            await page.press("?", "Keys")

    asyncio.run(act())


def test_pages_are_not_opened_without_an_end(folder):
    """Each is a process; beyond so many another one is refused."""

    async def act(server):
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(MOST_PAGES):
                await stack.enter_async_context(page_of(server.address))
            with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
                await stack.enter_async_context(page_of(server.address))

    # They need not draw: what is counted is the sockets.
    with served(folder, "--store", "no-such-store") as server:
        asyncio.run(act(server))
