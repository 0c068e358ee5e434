"""What comes from outside, through every door that takes JSON or TOML: a value, or one sentence.

Nesting, types, numbers, equal keys and unknown keys are tried in each; none ends in a traceback.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from filestore.chunks import frontmatter, resource_record
from filestore.config import user_config
from filestore.config.settings import parse as parse_settings
from filestore.core.errors import FilestoreError, UsageError
from filestore.history import batch
from filestore.server.agents import install, server
from filestore.server.http import app
from filestore.server.operations import ROUTES
from tests.conftest import CHECKOUT

HASH: Final = "ab" * 16
RECORD: Final = {
    "format": 1,
    "source": "source/a.md",
    "kind": "file",
    "chunker": "structure/1:256",
    "documents": [
        {
            "source": "source/a.md",
            "hash": "sha256:1",
            "extractor": "markdown/1",
            "metadata": {"n": 1},
        }
    ],
}
BATCH: Final = {
    "format": batch.BATCH_FORMAT,
    "what": "add",
    "made": 1_700_000_000,
    "wanted": "after",
    "sequence": 1,
    "folders": ["chunked/a.md"],
    "files": [
        {
            "path": "chunked/a.md/chunk1.md",
            "before": {"hash": HASH, "mode": 0o644, "blob": "0.before"},
            "after": None,
        }
    ],
}
MACHINE: Final = {
    "models": {"small": "/models/small"},
    "trusted": {"/kb": ["https://example.org"]},
    "originals": {"/kb": {"given": ["/notes"]}},
}
MESSAGE: Final = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": {"b": 1}}}
REQUEST: Final = {"query": "rent", "k": 3, "where": {"tags": ["a"]}}
CONFIGURATION: Final = {"mcpServers": {"other": {"command": "run", "args": ["a"]}}}
YAML: Final = {"title": "A", "numbers": {"n": 1, "of": [1, {"a": 2}]}}
SETTINGS: Final = {
    "format": 1,
    "layout": "tree",
    "ignore": ["*.tmp"],
    "follow": {"notes": True},
    "chunker": {"budget": 99},
    "generator": {"price_in": 1.5, "threshold": 0.5},
    "beside": {"embedder": "builtin", "max_tokens": 100},
    "backend_config": {"path": "a"},
    "accepted": {"empty": ["a.md"]},
}


class _Refused(FilestoreError):
    """An answer of MCP that refuses a message."""


def _message(data: bytes, _: Path) -> None:
    for said in server.refusals(data):
        raise _Refused(json.loads(said)["error"]["message"])


def _request(data: bytes, _: Path) -> Any:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data, "more_body": False}

    scope = {
        "type": "http",
        "method": "POST",
        "headers": [],
        "query_string": b"",
        "path": "/search",
    }
    return asyncio.run(app.given_in(Request(scope, receive), ROUTES["search"]))


def _machine(data: bytes, folder: Path) -> None:
    place = folder / user_config.NAME
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    user_config.read_machine(str(folder), {})


def _configuration(data: bytes, _: Path) -> Any:
    wanted = install.Installation(
        program="cursor", file="/mcp.json", key="mcpServers", name="kb", server={}
    )
    return install._parsed(data, wanted)


DOORS: Final[dict[str, tuple[Any, Callable[[bytes, Path], Any]]]] = {
    "chunks/resource_record": (RECORD, lambda data, _: resource_record.parse(data)),
    "history/batch": (BATCH, lambda data, _: batch.parse(data, identifier="000001")),
    "config/user_config": (MACHINE, _machine),
    "server/agents/install": (CONFIGURATION, _configuration),
    "server/agents/server": (MESSAGE, _message),
    "server/decoding": (REQUEST, _request),
    "chunks/frontmatter": (YAML, lambda data, _: frontmatter.parse(_as_frontmatter(data))),
}
"""Each module that reads JSON of others: what is sound there, and what reads it."""


def _as_frontmatter(data: bytes) -> bytes:
    return b"---\nvalue: " + data + b"\n---\nA text.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for those that read files."""
    return tmp_path_factory.mktemp("doors")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value."""
    yield path
    inner = enumerate(value) if isinstance(value, list) else ()
    for key, one in value.items() if isinstance(value, dict) else inner:
        yield from places(one, (*path, key))


HUGE: Final = "9" * 5_000
WRONG: Final = (
    *("null", "true", '""', '"text"', "[]", "{}", "[[1]]", '{"a": {"b": 1}}', "-1", "0.5"),
    *(HUGE, f"-{HUGE}", "1e400", str(2**70), '"\\ud800"', '"' + "x" * 5_000 + '"', "NaN"),
    *("[" * 500 + "]" * 500, "[" * 3_000 + "]" * 3_000, '{"a":' * 3_000 + "1" + "}" * 3_000),
)


def written(value: Any, at: tuple[Any, ...], text: str) -> str:
    """The JSON of a value with some text in one place."""
    if not at:
        return text
    if isinstance(value, dict):
        members = (
            f"{json.dumps(key)}: {written(one, at[1:], text) if key == at[0] else json.dumps(one)}"
            for key, one in value.items()
        )
        return "{" + ", ".join(members) + "}"
    items = (
        written(one, at[1:], text) if key == at[0] else json.dumps(one)
        for key, one in enumerate(value)
    )
    return "[" + ", ".join(items) + "]"


def told(read: Callable[[], Any]) -> str:
    """The one sentence of a refusal; "" where there is none."""
    said = "."
    try:
        read()
    except FilestoreError as error:
        said = error.message
    assert said
    assert "\n" not in said
    assert len(said) < 600
    return said.removeprefix(".")


@pytest.mark.parametrize("door", DOORS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_does_not_fit_is_told_in_one_sentence(
    door: str, data: st.DataObject, folder: Path
) -> None:
    """Whatever stands in whichever place, it is a value or a refusal."""
    sound, read = DOORS[door]
    at = data.draw(st.sampled_from(list(places(sound))))
    text = written(sound, at, data.draw(st.sampled_from(WRONG)))
    told(lambda: read(text.encode(), folder))


@pytest.mark.parametrize("door", DOORS)
def test_a_key_that_is_there_twice_is_refused(door: str, folder: Path) -> None:
    """In every object of it; what is sound is read, also with a key that nothing knows."""
    sound, read = DOORS[door]
    assert told(lambda: read(json.dumps(sound).encode(), folder)) == ""
    objects = [at for at in places(sound) if isinstance(value_at(sound, at), dict)]
    for at in objects:
        members = json.dumps(value_at(sound, at))[1:-1]
        twice = written(sound, at, f"{{{members}, {members}}}").encode()
        assert told(lambda data=twice: read(data, folder)), (door, at)


def value_at(value: Any, at: tuple[Any, ...]) -> Any:
    """What stands in a place."""
    for key in at:
        value = value[key]
    return value


def test_every_module_that_reads_what_is_others_is_a_door() -> None:
    """Whoever asks for equal keys to be refused is tried here."""
    asks = re.compile(r"\b(json_of|refuse_twice)\(|=each_once\b")
    package = CHECKOUT / "filestore"
    found = {
        str(path.relative_to(package).with_suffix(""))
        for path in package.rglob("*.py")
        if asks.search(path.read_text()) and path != package / "core" / "decoding.py"
    }
    assert found == DOORS.keys()


TOML: Final = (
    *("true", '""', "[]", "{}", "[[1]]", "{a = {b = 1}}", "-1", "0.5", "nan", "inf", "07:32:00"),
    *("2026-01-01", HUGE, "0x" + "f" * 5_000, "1e400", '"' + "x" * 5_000 + '"'),
    *("[" * 500 + "]" * 500, "{a = " * 500 + "1" + "}" * 500),
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_settings_are_told_in_one_sentence_too(data: st.DataObject) -> None:
    """A table, a key or a value that is something else; and equal keys, which are no TOML."""
    lines = []
    for key, value in SETTINGS.items():
        wrong = data.draw(st.sampled_from((None, None, None, None, *TOML)))
        lines.append(f"{key} = {wrong or inline(value)}")
    told(lambda: parse_settings("\n".join(lines).encode()))
    sound = "\n".join(f"{key} = {inline(value)}" for key, value in SETTINGS.items())
    assert parse_settings(sound.encode()).unknown == ()
    assert "cannot be read" in told(lambda: parse_settings(f"{sound}\nformat = 1".encode()))


def inline(value: Any) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


def test_a_name_twice_in_an_address_is_refused() -> None:
    """The query of a GET has each value once, but for lists."""
    scope = {"type": "http", "method": "GET", "headers": [], "path": "/search"}
    for query, is_sound in ((b"k=1&k=2", False), (b"source=a&source=b", True)):
        request = Request(scope | {"query_string": query})
        if is_sound:
            assert asyncio.run(app.given_in(request, ROUTES["search"]))
            continue
        with pytest.raises(UsageError, match="twice"):
            asyncio.run(app.given_in(request, ROUTES["search"]))
