"""Which hosts and origins are this machine's own."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.server.http.limits import Gate, is_of_this_machine

OWN = ["localhost", "LocalHost", "127.0.0.1", "127.9.8.7", "[::1]", "[0:0:0:0:0:0:0:1]"]
PORTS = ["", ":0", ":80", ":65535"]
AROUND = ["x", ".", "..", ".x.example", "%00", "%2e", "%1", "@", "/", "\\", "#", "?", " ", "\t"]
AROUND += [":", ":x", ":80:80", ":65536", ":100000", ":-1", ":٣", "[", "]", ",127.0.0.1", "é"]
OTHERS = ["", "[]", "::1", "[::1%lo]", "[::1%25lo]", "[127.0.0.1]", "[localhost]", "[v1.x]"]
OTHERS += ["[::2]", "0.0.0.0", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "1270.0.1"]


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize("host", OWN)
def test_own_names_are_known_and_nothing_that_holds_them(host: str, port: str) -> None:
    """With any port; whatever stands before or behind makes it another name."""
    assert is_of_this_machine(f"{host}{port}".encode())
    for more in AROUND:
        for wrong in (f"{host}{port}{more}", f"{more}{host}{port}", f"{host}{more}{port}"):
            assert not is_of_this_machine(wrong.encode()), wrong


@pytest.mark.parametrize("host", OTHERS)
def test_what_only_looks_like_them_is_another(host: str) -> None:
    """Zones, short and strange ways to write an address, brackets where none belong."""
    assert not is_of_this_machine(host.encode())
    assert not is_of_this_machine(f"{host}:80".encode())


@given(st.binary(max_size=30))
def test_any_bytes_are_judged(host: bytes) -> None:
    """Without an error."""
    assert is_of_this_machine(host) in (True, False)


def status_of(
    *headers: tuple[bytes, bytes],
    is_local: bool = True,
    names: Sequence[str] = (),
    http: str = "1.1",
) -> int:
    """What a guarded application answers; 200 where it is asked at all."""
    said: list[int] = []

    async def answered(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            said.append(message["status"])

    scope = {"type": "http", "method": "POST", "path": "/search", "headers": list(headers)}
    gate = Gate(answered, token=None, is_local=is_local, names=names)
    asyncio.run(gate(scope | {"http_version": http}, receive, send))
    return said[0]


@pytest.mark.parametrize("is_local", [True, False])
def test_an_origin_is_the_host_that_was_asked(is_local: bool) -> None:
    """Letter for letter but for case, each of them, on one host that is named once."""
    host, own = (b"host", b"localhost:8000"), (b"origin", b"http://LOCALHOST:8000")
    assert status_of(host, is_local=is_local) == 200
    assert status_of(host, own, is_local=is_local) == 200
    assert status_of(host, host, is_local=is_local) == 421
    assert status_of(is_local=is_local) == 421
    wrong = [b"", b"null", b"localhost:8000", b"file://localhost:8000", b"http://localhost"]
    wrong += [b"http://" + one + b"localhost:8000" for one in (b"x@", b"x.", b"/", b"%")]
    wrong += [b"http://localhost:8000" + one for one in (b"/", b".", b"0", b":80", b"@x", b" ")]
    for origin in wrong:
        assert status_of(host, (b"origin", origin), is_local=is_local) == 403, origin
        assert status_of(host, own, (b"origin", origin), is_local=is_local) == 403, origin


NAME = "notes.example.org"
PROXIED = [NAME, "Notes.Example.ORG", f"{NAME}:443", f"{NAME}:8765"]


@pytest.mark.parametrize("place", PROXIED)
def test_a_name_that_was_given_is_its_own(place: str) -> None:
    """As the Host that a proxy keeps, and as the Origin where it sends our address."""
    there, page = (b"host", place.encode()), (b"origin", f"https://{place}".encode())
    here = (b"host", b"127.0.0.1:8765")
    for own in ([there], [there, page], [here, page]):
        assert status_of(*own, names=[NAME]) == 200
        assert status_of(*own) in (421, 403)
    assert status_of(there, (b"origin", b"https://evil.example"), names=[NAME]) == 403
    assert status_of(there, there, names=[NAME]) == 421


@pytest.mark.parametrize("around", AROUND)
def test_what_holds_a_given_name_is_another(around: str) -> None:
    """Before, behind and in front of a port."""
    for wrong in (f"{NAME}{around}", f"{around}{NAME}", f"{NAME}{around}:80"):
        if wrong not in PROXIED:
            assert status_of((b"host", wrong.encode()), names=[NAME]) == 421, wrong
            given = [(b"host", b"localhost"), (b"origin", f"https://{wrong}".encode())]
            assert status_of(*given, names=[NAME]) == 403, wrong


def test_checks_of_health_need_no_host() -> None:
    """HTTP/1.0 has none, and no browser speaks that; with a wrong one it is refused as ever."""
    assert status_of(http="1.0") == 200
    assert status_of((b"host", b"evil.example"), http="1.0") == 421
    assert status_of((b"origin", b"http://evil.example"), http="1.0") == 403
