"""Commands that a server answers: the same bytes, the same exit code, and never half of it."""

import contextlib
import fcntl
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import filestore
from filestore.cli.serve import run_words
from filestore.config.layout import copy_example
from filestore.server import wire
from filestore.server.listening import Listener, own_socket
from filestore.server.stores import Access, Stores
from tests.conftest import Finished, Run
from tests.system.server.serving import PACKAGE, TIMEOUT_S, Served, serving

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux tells enough of a socket"
)

OFF = {wire.SWITCH: "off"}
SEARCH = ["search", "renamed files"]
ANSWERED = [
    SEARCH,
    ["search", "renamed", "files", "-k", "2", "--json"],
    ["--json", "search", "what follows a rename?", "--mode", "keyword"],
    ["search", "renamde fiels"],
    ["search", "--mode", "vector", "cats", "--context", "2"],
    ["search", "renamed files", "--format", "oneline"],
    ["search", "renamed files", "-l", "-0"],
    ["search", "rename", "--group", "document", "--source", "source/*.py"],
    ["search", "zzzzqqq", "--syntax", "plain", "--mode", "keyword"],
    ["search", "--", "--store", "--at"],
    ["search", "\udcff\udcfe", "ünïcode 漢字"],
    ["similar", "source/rename_report.py", "-k", "3"],
    ["similar", "source/rename_report.py:2", "--json"],
    ["about", "--depth", "1", "--json"],
    ["about", "renamed files"],
    ["ls"],
    ["ls", "glossary.md", "--json"],
    ["links", "chunked/glossary.md/chunk1.md"],
    ["show", "chunked/glossary.md/chunk1.md"],
]
"""Words that a server answers."""
LEFT_ALONE = [
    ["search", "x", "-k", "0"],
    ["search", "x", "--nothing"],
    ["search"],
    ["search", "--help"],
    ["search", "rename", "--at", "HEAD"],
    ["similar", "no such file", "--json"],
    ["show", "no/such.md"],
    ["--store", "nowhere", "status"],
    ["ls", "--store"],
    ["verify", "--json"],
]
"""Words that a command has to answer itself: mistakes, and what a server does for nobody."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The root of an indexed copy of the example."""
    Path(os.environ["XDG_CONFIG_HOME"]).mkdir(parents=True)
    root = tmp_path / "kb"
    copy_example(str(root))
    with filestore.open(root) as store:
        store.sync()
    return root


@pytest.fixture
def server(place: Path) -> Iterator[Served]:
    """A server of it, with the settings that every command of the test has."""
    with serving(Path(os.environ["XDG_CONFIG_HOME"]), place) as one:
        yield one


@contextlib.contextmanager
def pretending(place: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """Something else that listens in the sidecar, and says what it likes."""
    held = own_socket(str(place / ".sidecar"))
    assert held is not None
    held.listener.setblocking(True)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = held.listener.accept()
                with connection, contextlib.suppress(OSError):
                    answer(connection)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield
    finally:
        # Whoever waits for the next connection is woken by it.
        held.listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        held.close()


def reply(words: Sequence[str], place: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """What the server says to a command that is called in the store; None for nothing."""
    monkeypatch.chdir(place)
    return wire.reply_to(words)


def is_answered(words: Sequence[str], place: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the server answers; a command gives up early where the machine is very busy."""
    until = time.monotonic() + TIMEOUT_S
    while (found := reply(words, place, monkeypatch)) is None and time.monotonic() < until:
        threading.Event().wait(0.05)
    return found is not None


@pytest.mark.usefixtures("server")
def test_commands_say_the_same_with_a_server_and_without(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every byte and the exit code; what has to be answered by the command itself is, too."""

    def both(words: list[str]) -> tuple[Finished, Finished]:
        return run(*words, cwd=place), run(*words, cwd=place, env=OFF)

    with ThreadPoolExecutor(2) as pool:
        for words, (with_server, without) in zip(
            ANSWERED + LEFT_ALONE, pool.map(both, ANSWERED + LEFT_ALONE), strict=True
        ):
            assert with_server == without, words
    assert all(is_answered(words, place, monkeypatch) for words in ANSWERED)
    assert [words for words in LEFT_ALONE if reply(words, place, monkeypatch) is not None] == []


@pytest.mark.usefixtures("server")
def test_every_command_of_an_edited_store_says_the_same(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On both streams, as words and as JSON, whether the tree is as indexed or not."""
    chunk = next((place / "chunked" / "glossary.md").glob("*.md"))
    calls = {
        "search": ["search", "words"],
        "similar": ["similar", "source/rename_report.py"],
        "about": ["about"],
        "status": ["status"],
        "show": ["show", str(chunk.relative_to(place))],
        "links": ["links", str(chunk.relative_to(place))],
        "ls": ["ls"],
    }
    assert set(calls) == wire.ASKED
    for _ in range(2):
        for words in calls.values():
            for asked in (words, [*words, "--json"]):
                assert is_answered(asked, place, monkeypatch)
                assert run(*asked, cwd=place) == run(*asked, cwd=place, env=OFF), asked
        chunk.write_text("Other words.\n")


@pytest.mark.usefixtures("server")
def test_relative_paths_are_meant_from_where_the_command_is_called(
    run: Run, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments, paths that are printed, --store and FILESTORE."""
    (tmp_path / "elsewhere").mkdir()
    calls = [
        (place / "source", ["similar", "rename_report.py"], {}),
        (place / "source", ["ls", "./rename_report.py"], {}),
        (place / "source", ["search", "renamed files", "-l"], {}),
        (place / "chunked" / "glossary.md", ["show", "chunk1.md"], {}),
        (tmp_path, ["search", "renamed files", "--store", "kb", "-l"], {}),
        (tmp_path, ["--store=kb", "ls"], {}),
        (tmp_path / "elsewhere", ["search", "renamed files"], {"FILESTORE": "../kb"}),
    ]
    for folder, words, variables in calls:
        without = run(*words, cwd=folder, env=OFF | variables)
        assert run(*words, cwd=folder, env=variables) == without
        assert without.code == 0, without.stderr
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            assert is_answered(words, folder, patch)


def test_a_folder_of_documents_is_served_the_same(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders and documents are meant from where the command is called."""
    Path(os.environ["XDG_CONFIG_HOME"]).mkdir(parents=True)
    place = tmp_path / "notes"
    (place / "law" / "old").mkdir(parents=True)
    (place / "law" / "old" / "gas.md").write_text("# Gas\n\nGas is read off in March.\n")
    (place / "law" / "lease.md").write_text("# Lease\n\nThe lease, see [rent](../rent.md).\n")
    (place / "rent.md").write_text("# Rent\n\nThe rent is paid in March. #money\n")
    assert run("init", "--in-place", cwd=place).code == 0
    assert run("sync", cwd=place).code == 0
    calls = [
        (place, ["search", "rent", "lease"]),
        (place / "law", ["search", "rent", "lease", "--json"]),
        (place / "law", ["ls", "."]),
        (place / "law", ["ls", "old"]),
        (place / "law", ["ls", "../rent.md"]),
        (place / "law", ["show", "lease.md:3"]),
        (place / "law", ["links", "../rent.md", "--json"]),
        (place / "law", ["similar", "./lease.md"]),
        (place, ["about"]),
    ]
    without = [run(*words, cwd=folder, env=OFF) for folder, words in calls]
    with serving(Path(os.environ["XDG_CONFIG_HOME"]), place):
        assert [run(*words, cwd=folder) for folder, words in calls] == without
        assert [done.code for done in without] == [0] * len(calls)
        assert all(is_answered(words, folder, monkeypatch) for folder, words in calls)


@pytest.mark.usefixtures("server")
def test_a_terminal_gets_the_same(place: Path) -> None:
    """Colours, and lines as wide as the terminal is."""
    for columns in (50, 120):
        with_server = on_terminal(SEARCH, place, columns, {})
        assert with_server == on_terminal(SEARCH, place, columns, OFF)
        assert b"\x1b[1m" in with_server
    plain = on_terminal(SEARCH, place, 80, {"NO_COLOR": "1"})
    assert plain == on_terminal(SEARCH, place, 80, {"NO_COLOR": "1"} | OFF)
    assert b"\x1b" not in plain


STREAMS = [
    "2>&1",
    ">/dev/full",
    "2>/dev/full",
    ">/dev/full 2>&1",
    ">&-",
    "2>&-",
    "<&-",
    "| head -c 9",
]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("streams", STREAMS)
def test_wherever_the_streams_go(
    place: Path, streams: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one place, in their order; closed; full; to one who reads but the beginning."""

    def said(words: list[str], env: dict[str, str]) -> tuple[int, bytes, bytes]:
        done = subprocess.run(
            ["sh", "-c", f'"$@" {streams}', "sh", sys.executable, "-m", "filestore", *words],
            cwd=place,
            env=os.environ | {"PYTHONPATH": PACKAGE} | env,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    calls = [
        ["search", "renamde fiels", "-k", "60"],
        ["about"],
        [*SEARCH, "-l", "-0"],
        [*SEARCH, "--json"],
    ]
    for words in calls:
        assert said(words, {}) == said(words, OFF), words
    assert all(is_answered(words, place, monkeypatch) for words in calls)


def on_terminal(words: list[str], place: Path, columns: int, env: dict[str, str]) -> bytes:
    """What a command writes to a terminal."""
    above, below = pty.openpty()
    fcntl.ioctl(below, termios.TIOCSWINSZ, struct.pack("4H", 40, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-m", "filestore", *words],
        cwd=place,
        env=kept | {"PYTHONPATH": PACKAGE} | env,
        stdout=below,
        stderr=below,
    )
    os.close(below)
    data = b""
    with contextlib.suppress(OSError):
        while piece := os.read(above, 65_536):
            data += piece
    os.close(above)
    assert process.wait(TIMEOUT_S) == 0
    return data


@pytest.mark.usefixtures("server")
def test_twenty_commands_at_once_get_their_own_answers(run: Run, place: Path) -> None:
    """Nobody gets a word of another's."""
    queries = ["renamed files", "glossary", "cats", "migration log"]
    alone = {query: run("search", query, "--json", cwd=place, env=OFF) for query in queries}
    with ThreadPoolExecutor(20) as pool:
        asked = queries * 5
        found = pool.map(lambda query: run("search", query, "--json", cwd=place), asked)
        assert list(found) == [alone[query] for query in asked]


@pytest.mark.usefixtures("server")
def test_what_is_answered_loads_next_to_nothing(place: Path) -> None:
    """No library, and of Python's own not even `typing`."""

    def loaded(*words: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *words],
            cwd=place,
            env=os.environ | {"PYTHONPATH": PACKAGE},
            capture_output=True,
            check=True,
        )
        return {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}

    # An environment may load what it likes at the start.
    its_own = loaded("-m", "filestore", *SEARCH) - loaded("-c", "import runpy")
    assert not its_own & {"typing", "socket", "argparse", "orjson", "filestore.store"}
    assert len([name for name in its_own if name.startswith("filestore.")]) < 10


@pytest.mark.usefixtures("server")
def test_two_hundred_at_once_are_answered_or_left_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And whoever asks after them is answered, also after one with a megabyte of words."""
    whole = reply(SEARCH, place, monkeypatch)
    assert whole is not None
    with ThreadPoolExecutor(200) as pool:
        found = list(pool.map(wire.reply_to, [SEARCH] * 200))
    assert found.count(whole) + found.count(None) == 200
    assert reply(["search", *["word" * 1000] * 300], place, monkeypatch) is None
    assert is_answered(SEARCH, place, monkeypatch)


@pytest.mark.usefixtures("server")
def test_answers_follow_what_others_do_to_the_store(run: Run, place: Path) -> None:
    """A file that was edited, a sync from outside, a model that was changed, an index removed."""

    def compare() -> Finished:
        with_server = run("search", "quetzal", "--json", cwd=place)
        assert with_server == run("search", "quetzal", "--json", cwd=place, env=OFF)
        return with_server

    compare()
    chunk = next((place / "chunked" / "glossary.md").glob("*.md"))
    chunk.write_text(chunk.read_text() + "\nThe quetzal is a bird.\n")
    compare()
    assert run("sync", cwd=place).code == 0
    assert "quetzal" in compare().stdout
    settings = place / "filestore.toml"
    settings.write_text(settings.read_text().replace('"builtin"', '"unknown"'))
    assert "unknown" in compare().stdout + compare().stderr
    settings.write_text(settings.read_text().replace('"unknown"', '"builtin"'))
    subprocess.run(["rm", "-r", str(place / ".sidecar")], check=True)
    assert run("sync", cwd=place).code == 0
    assert "quetzal" in compare().stdout


def test_a_server_that_stops_or_dies_costs_no_word(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped: after a moment the command runs by itself. Killed: at once; its socket is left."""
    without = run(*SEARCH, cwd=place, env=OFF)

    def waited_s(words: Sequence[str]) -> float:
        began_s = time.monotonic()
        assert reply(words, place, monkeypatch) is None
        return time.monotonic() - began_s

    is_quick: list[bool] = []
    with (
        # One that is killed does not end well.
        contextlib.suppress(AssertionError),
        serving(Path(os.environ["XDG_CONFIG_HOME"]), place) as one,
    ):
        one.process.send_signal(signal.SIGSTOP)
        stopped = run(*SEARCH, cwd=place)
        # One of many, since a busy machine has its own moments. It reads no answer, takes no more
        # of a question, and at last no more connections.
        for words in (SEARCH, ["search", *["word" * 1000] * 200]):
            is_quick.append(any(waited_s(words) <= 0.3 for _ in range(40)))
        held = []
        with contextlib.suppress(BlockingIOError):
            while True:
                held.append(socket.socket(socket.AF_UNIX))
                held[-1].setblocking(False)
                held[-1].connect(str(place / ".sidecar" / wire.NAME))
        is_quick.append(any(waited_s(SEARCH) <= 0.3 for _ in range(40)))
        for connection in held:
            connection.close()
        one.process.kill()
        one.process.wait()
    assert (stopped, is_quick) == (without, [True] * 3)
    assert (place / ".sidecar" / wire.NAME).is_socket()
    assert run(*SEARCH, cwd=place) == without
    assert run("verify", cwd=place).code == 0
    with served_here(place) as sidecars:
        assert sidecars == [str(place / ".sidecar")]


@contextlib.contextmanager
def served_here(place: Path) -> Iterator[list[str]]:
    """Served by this process; gives the sidecars in which it listens."""
    with Stores.open([str(place)], Access()) as stores, Listener(stores, run_words) as listener:
        yield listener.sidecars


BROKEN = {
    "nothing": b"",
    "garbage": b"HTTP/1.1 200 OK\r\n\r\nhello",
    "declined": wire.DECLINED,
    "only a sign": wire.ANSWERED,
    "4 GB": wire.ANSWERED + b"\0\xff\xff\xff\xff" + b"x" * 1000,
    "cut": wire.BEAT * 3 + wire.ANSWERED + b"\0\0\0\0\x20t\0\0\0\x1bhalf a word",
    "a part that is too long": wire.ANSWERED + b"\0\0\0\0\x07t\0\0\0\x09ab",
    "no part": wire.ANSWERED + b"\0\0\0\0\x07x\0\0\0\x02ab",
    "no text": wire.ANSWERED + b"\0\0\0\0\x07t\0\0\0\x02\xff\xfe",
    "more than announced": wire.ANSWERED + b"\0\0\0\0\x07t\0\0\0\x02abcd",
    "beats without end": wire.BEAT * 2000,
}


def test_a_broken_answer_is_none(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes that is no whole answer, the command runs as if nobody had been asked."""
    without = run(*SEARCH, cwd=place, env=OFF)
    said = [b""]

    def say(connection: socket.socket) -> None:
        connection.recv(1)
        connection.sendall(said[0])

    with pretending(place, say):
        for name, data in BROKEN.items():
            said[0] = data
            assert reply(SEARCH, place, monkeypatch) is None, name
        said[0] = BROKEN["cut"]
        assert run(*SEARCH, cwd=place) == without


def test_ctrl_c_ends_a_command_that_waits_for_the_server(place: Path) -> None:
    """As it ends one that works by itself."""
    asked, ended = threading.Event(), threading.Event()

    def beat(connection: socket.socket) -> None:
        if connection.recv(1):
            asked.set()
            while not ended.wait(0.05):
                connection.sendall(wire.BEAT)

    with pretending(place, beat):
        process = subprocess.Popen(
            [sys.executable, "-m", "filestore", *SEARCH],
            cwd=place,
            env=os.environ | {"PYTHONPATH": PACKAGE},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT_S)
        ended.set()
    assert process.returncode == 130
    assert errors.startswith("filestore: interrupted")


@pytest.mark.usefixtures("server")
def test_whoever_has_seen_enough_of_an_answer_is_not_complained_to(place: Path) -> None:
    """A pipe that is closed by its reader ends the command well."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "filestore", "ls", "--json"],
        cwd=place,
        env=os.environ | {"PYTHONPATH": PACKAGE},
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_planted_socket_is_not_asked(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that others may use, that is another's, a link to one, or in a folder that is a link."""
    asked = threading.Event()

    def note(connection: socket.socket) -> None:
        if connection.recv(1):
            asked.set()

    sidecar = place / ".sidecar"
    with pretending(place, note):
        sock = sidecar / wire.NAME
        sock.chmod(0o666)
        assert reply(SEARCH, place, monkeypatch) is None
        sock.chmod(0o600)
        if os.geteuid() == 0:
            os.chown(sock, 12_345, 12_345)
            assert reply(SEARCH, place, monkeypatch) is None
            os.chown(sock, 0, 0)
        sock.rename(sidecar / "moved")
        sock.symlink_to("moved")
        assert reply(SEARCH, place, monkeypatch) is None
        sock.unlink()
        (sidecar / "moved").rename(sock)
        sidecar.rename(place / "planted")
        sidecar.symlink_to("planted")
        assert reply(SEARCH, place, monkeypatch) is None
        sidecar.unlink()
        (place / "planted").rename(sidecar)
        assert not asked.is_set()
        assert reply(SEARCH, place, monkeypatch) is None
        assert asked.is_set()


def test_hostile_requests_leave_the_others_answered(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Garbage, huge lengths, cut and silent connections, other versions, answers nobody reads."""
    head = wire.MAGIC
    whole = wire.request(folder=str(place), columns=0, words=SEARCH)
    hostile = [
        b"",
        b"GET / HTTP/1.1\r\n\r\n" * 10,
        head + b"\xff\xff\xff\xff" + b"x" * 100,
        head + b"\0\0\0\0",
        head + b"\0\0\0\x08" + b"\0" * 8,
        whole[: len(whole) // 2],
        head + (9).to_bytes(4, "big") + b"a\0b\0c\0d\0e",
        b"\0" * 100_000,
    ]
    monkeypatch.setenv("FILESTORE_SERVER", "on")
    with served_here(place):
        held = []
        for data in hostile * 5:
            one = socket.socket(socket.AF_UNIX)
            one.connect(str(place / ".sidecar" / wire.NAME))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                one.sendall(data)
            held.append(one)
        unread = socket.socket(socket.AF_UNIX)
        unread.connect(str(place / ".sidecar" / wire.NAME))
        unread.sendall(whole)
        assert is_answered(SEARCH, place, monkeypatch)
        other = whole.replace(filestore.__version__.encode(), b"9.9.9")
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(place / ".sidecar" / wire.NAME))
            one.sendall(other)
            assert one.recv(100).lstrip(wire.BEAT) == wire.DECLINED
        for one in (*held, unread):
            one.close()
        assert is_answered(SEARCH, place, monkeypatch)


def test_other_settings_than_the_servers_are_not_answered(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder of settings, another key, time zone or Python: then its answer may differ."""
    with served_here(place):
        assert is_answered(SEARCH, place, monkeypatch)
    with served_here(place):
        # The server is this process: only what it had when it began to listen is compared.
        for name in ("XDG_CONFIG_HOME", "FILESTORE_API_KEY", "HF_HOME", "PGHOST", "TZ"):
            with monkeypatch.context() as patch:
                patch.setenv(name, str(tmp_path))
                assert reply(SEARCH, place, patch) is None, name
        with monkeypatch.context() as patch:
            patch.setattr(sys, "prefix", str(tmp_path))
            assert reply(SEARCH, place, patch) is None


@pytest.mark.parametrize(
    "text", ['sidecar = "here"', "sidecar = " + "[" * 5000, "sidecar", "= \xff"]
)
def test_settings_that_are_none_are_the_commands_own_to_say(
    run: Run, place: Path, text: str
) -> None:
    """The same words with a server and without, and no traceback."""
    settings = Path(os.environ["XDG_CONFIG_HOME"]) / "filestore" / "settings.toml"
    settings.parent.mkdir(exist_ok=True)
    with served_here(place):
        settings.write_text(text, encoding="latin-1")
        found = run(*SEARCH, cwd=place)
        assert found == run(*SEARCH, cwd=place, env=OFF)
        assert (found.code, found.stderr.count("Traceback")) == (3, 0)


def test_of_two_servers_the_second_takes_over(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves the socket to the first, and has it once that one has ended."""
    with (
        Stores.open([str(place)], Access()) as stores,
        Listener(stores, run_words) as first,
        Listener(stores, run_words) as second,
    ):
        assert first.sidecars
        assert not second.sidecars
        first.close()
        assert is_answered(SEARCH, place, monkeypatch)
        assert second.sidecars
    assert not (place / ".sidecar" / wire.NAME).exists()


def test_a_command_that_runs_is_done_when_the_server_ends(place: Path) -> None:
    """Also one whose client went away: nothing is written once the server's streams are back."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def run_slowly(*_: object) -> None:
        begun.set()
        may_end.wait(TIMEOUT_S)
        ended.set()

    with Stores.open([str(place)], Access()) as stores:
        listener = Listener(stores, run_slowly)
        folder = os.open(listener.sidecars[0], os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"/proc/self/fd/{folder}/{wire.NAME}")
            client.sendall(wire.request(folder=str(place), columns=80, words=SEARCH))
            assert begun.wait(TIMEOUT_S)
        os.close(folder)
        threading.Timer(0.3, may_end.set).start()
        listener.close()
        assert ended.is_set()


def test_a_sidecar_elsewhere_with_a_long_path(
    run: Run, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the user's settings put it, however long that is."""
    sidecar = tmp_path / ("long-" * 20) / ("folder-" * 20)
    sidecar.parent.mkdir()
    settings = Path(os.environ["XDG_CONFIG_HOME"]) / "filestore" / "settings.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[sidecar]\n"{place}" = "{sidecar}"\n')
    assert run("sync", cwd=place).code == 0
    with served_here(place) as sidecars:
        assert sidecars == [str(sidecar)]
        assert is_answered(SEARCH, place, monkeypatch)


def test_settings_with_an_endless_key_are_left_to_the_command(workspace, monkeypatch):
    """No server is asked: the parser takes long over such a key, and the command names its line."""
    own = workspace.folder / "own" / "filestore" / "settings.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[sidecar]\n" + "a." * 3_000 + "a = 1\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own.parents[1]))
    assert wire._sidecars(str(workspace.store)) == []
    said = workspace("status", code=3).stderr
    assert f"{own} cannot be read: nested more than 32 deep (at line 2)" in said
