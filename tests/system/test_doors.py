"""What comes from outside, through every door that takes JSON or TOML: a value, or one sentence.

Nesting, types, numbers, equal keys and unknown keys are tried in each; none ends in a traceback.
Every place of the code that reads JSON, TOML, YAML or pickles stands in one of three tables.
"""

import ast
import asyncio
import base64
import contextlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from filestore.chunks import frontmatter, resource_record
from filestore.config import user_config
from filestore.config.settings import ModelOptions
from filestore.config.settings import parse as parse_settings
from filestore.core.errors import FilestoreError, UsageError
from filestore.embed._model_folder import (
    SHARDS,
    TOKENIZER,
    read_folder,
    read_record,
    weight_files,
)
from filestore.exchange import document_map, markdown, parquet, rows
from filestore.exchange.base import LeftOut
from filestore.exchange.vector_store import USE
from filestore.extract._marked import MarkedExtractor
from filestore.extract.markdown import NotebookExtractor, read_frontmatter
from filestore.generate import Task
from filestore.generate._checked import read_answer
from filestore.history import batch
from filestore.remote.service import Asked, ServiceAnswer, fields_of, message_of
from filestore.search.metrics import parse_queries
from filestore.server.agents import install, server, tools
from filestore.server.collection import RECORD as RECORD_NAME
from filestore.server.collection import record_of
from filestore.server.http import app
from filestore.server.operations import ROUTES
from tests.conftest import CHECKOUT
from tui.workers import session_file

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
FILTER: Final = {"tags": ["a"], "n": 1}
ROW: Final = {
    "text": "Words.",
    "resource": "a",
    "vector": [0.5],
    "question_vectors": [[0.5]],
    "metadata": {"n": 1, "of": {"a": 2}},
}
QUESTION: Final = {"query": "rent?", "relevant": {"a.md": 1}, "id": 1, "note": {"a": 1}}
MAP: Final = {
    "a": {
        "id": "a",
        "full_text": "Words.",
        "content": {"n": 1},
        "chunks": {"1": {"faiss_id": 0, "i_start": 0, "i_end": 6}},
    }
}
MODEL: Final = {
    "type": "Transformer",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "pooling_mode": ["mean"],
    "prompts": {"query": "q: "},
    "weight_map": {"a": "a.safetensors"},
    "pooling": ["mean"],
}
NOTEBOOK: Final = {
    "metadata": {"language_info": {"name": "python"}},
    "cells": [
        {"cell_type": "markdown", "source": ["# A\n", "words"]},
        {"cell_type": "code", "source": "x = 1", "outputs": [{"text": ["1"]}]},
    ],
}
TASK: Final = Task(kind="questions", texts=("It is a text.",), count=1)
ASKED: Final = Asked(use=USE, address="https://example.org", model="a", key="")
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


def _map(data: bytes, _: Path) -> None:
    found = document_map.read_json(bytearray(data), "map")
    document_map.check_map([{"faiss_id": 0, "document_id": "a", "chunk_key": "1"}], found, 1)


def _model(data: bytes, folder: Path) -> None:
    """Each file of a model in turn, beside sound ones."""
    names = ("config.json", "modules.json", "sentence_bert_config.json", "tokenizer_config.json")
    names += ("config_sentence_transformers.json", SHARDS)
    (folder / "placed").mkdir(exist_ok=True)
    (folder / "placed" / TOKENIZER).write_text("{}")
    for name in names:
        for other in names:
            (folder / "placed" / other).unlink(missing_ok=True)
        (folder / "placed" / "config.json").write_text('{"hidden_size": 8}')
        place = _placed(b"[%b]" % data if name == "modules.json" else data, folder, name)
        with contextlib.suppress(FilestoreError):
            told(lambda place=place: read_folder(place, ModelOptions()))
            weight_files(read_folder(place, ModelOptions()))


def _placed(data: bytes, folder: Path, name: str) -> str:
    """The path of a folder in which a file of that name holds it."""
    place = folder / "placed" / name
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(data)
    return str(place.parent)


def _lines(data: bytes, _: Path) -> None:
    left_out = LeftOut()
    found = list(rows.lines_of(io.BytesIO(data), left_out))
    reader = rows.RowReader(name="a", ours=False, dimension=0, left_out=left_out)
    list(reader.resources((one.where, one.value) for one in found))
    for said in left_out:
        raise _Refused(said)


def _column(data: bytes, _: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    text = data.decode("utf-8", "replace")
    convert = parquet._conversion("metadata", pyarrow.string())
    assert convert is not None
    said = parquet._converted("metadata", pyarrow.scalar(text), convert)[2]
    if said:
        raise _Refused(said)


def _value_in_address(data: bytes, _: Path) -> Any:
    return ROUTES["search"].checked({"query": "a", "where": data.decode("utf-8", "replace")})


def _configuration(data: bytes, folder: Path) -> None:
    place = os.path.join(_placed(data, folder, "mcp.json"), "mcp.json")
    entry = {"command": "run"}
    install.install(
        install.Installation(
            program="cursor", file=place, key="mcpServers", name="kb", server=entry
        ),
        "json",
        str(folder / "settings"),
    )


DOORS: Final[dict[str, tuple[Any, Callable[[bytes, Path], Any]]]] = {
    "chunks/resource_record.parse": (RECORD, lambda data, _: resource_record.parse(data)),
    "history/batch.parse": (BATCH, lambda data, _: batch.parse(data, identifier="000001")),
    "config/user_config._read": (MACHINE, _machine),
    "server/agents/entries.parsed": (CONFIGURATION, _configuration),
    "server/agents/server.refusals": (MESSAGE, _message),
    "server/http/answers.json_object": (REQUEST, _request),
    "server/operations.parsed": (FILTER, _value_in_address),
    "chunks/frontmatter._json_value": (YAML, lambda data, _: frontmatter.parse(_between(data))),
    "exchange/rows.parsed_line": (ROW, _lines),
    "exchange/parquet._conversion": (FILTER, _column),
    "exchange/document_map.read_json": (MAP, _map),
    "search/metrics._question": (QUESTION, lambda data, _: parse_queries(data, name="q")),
}
"""Each place that reads what others give: what is sound there, and what reads it."""
TAKEN_AS_IS: Final[dict[str, tuple[Any, Callable[[bytes, Path], Any]]]] = {
    "core/frontmatter_yaml._bounded_events": DOORS["chunks/frontmatter._json_value"],
    "embed/_model_folder._json_in": (MODEL, _model),
    "embed/_model_folder.parse_record": (
        MODEL,
        lambda data, folder: read_record(_placed(data, folder, "filestore.json")),
    ),
    "exchange/markdown._written_before": (
        {"format": 1, "pages": {"a.md": HASH}},
        lambda data, folder: markdown._refuse_others(_placed(data, folder, markdown.MANIFEST)),
    ),
    "extract/markdown._notebook": (
        NOTEBOOK,
        lambda data, _: NotebookExtractor().extract(data, name="a.ipynb"),
    ),
    "extract/markdown._parse": (
        YAML,
        lambda data, _: read_frontmatter(
            '{\n"a": ' + data.decode("utf-8", "replace") + "\n}\nA.\n"
        ),
    ),
    "generate/_checked": (
        {"questions": ["What is it?"]},
        lambda data, _: read_answer(data.decode("utf-8", "replace"), TASK),
    ),
    "extract/_marked/rows.read_records": (
        {"a": 1},
        lambda data, _: MarkedExtractor().extract(data, name="a.jsonl"),
    ),
    "remote/service.parsed": (
        {"data": [{"embedding": [0.5]}], "error": {"message": "no"}},
        lambda data, _: (fields_of(data, "data", ASKED), message_of(_answer(data))),
    ),
    "search/metrics.parse_queries": (
        ["rent?"],
        lambda data, _: parse_queries(data, name="q", known=False),
    ),
    "server/agents/tools._cursor_position": (
        ["kb", "a.md"],
        lambda data, _: tools._cursor_position(base64.urlsafe_b64encode(data).decode()),
    ),
    "server/agents/server._sound": (1, lambda data, _: server._sound(data)),
    "server/agents/tools._unquoted": (
        "a.md",
        lambda data, _: tools._cleaned("show", {"path": data.decode("utf-8", "replace")}),
    ),
    "server/collection.record_of": (
        {"created_at": "2026-01-01", "updated_at": "2026-01-01", "dataset_info": {"a": {"b": 1}}},
        lambda data, folder: record_of(_placed(data, folder, RECORD_NAME)).written,
    ),
    "tui/workers/session_file.parse": (
        {"format": 1, "page": "browse", "views": {"browse": {"a": 1}}, "prompts": ["ls"]},
        lambda data, _: session_file.parse(data),
    ),
}
"""Others, which take what can be taken: of equal keys the last."""
OURS: Final = {
    "what the rest goes through": "core/schema.json_of core/schema.refuse_twice",
    "settings, tried below": "config/settings._table",
    "settings that were read before": "config/written._edited server/wire._sidecars",
    "any error of it is told": "index/_qdrant/folder._loaded"
    " index/_qdrant/folder._PointReader index/_qdrant/server._message",
    "a text that was judged before": "server/agents/entries.at"
    " server/agents/entries.without_entry"
    " server/agents/server._asked server/agents/server.__call__",
    "a record that was read before": "exchange/from_store._take exchange/into_store._is_same"
    " verify/recorded_state.changed_chunker verify/source_drift._value",
    "the sidecar": "browse/listing.rows_below browse/listing._names browse/listing._of_documents"
    " catalog/_reading._conflict catalog/ages.read catalog/_remembered._parsed"
    " catalog/_remembered._counts catalog/_rows.headings_and_pages catalog/_writing._resolved"
    " chunks/kept.decode chunks/reading_order.by_number chunks/reading_order._numbers"
    " fs/lock.holder fulltext/_stamp.parse_stamp fulltext/_writer.commit generate/cache.get"
    " index/_file_rows._checked index/__init__.parse",
    "a cache": "embed/models._remembered past/commits.load_submodules past/view.notes",
    "a process of ours": "exchange/parquet._messages extract/pool.extract"
    " server/agents/proof.ask fs/programs.results tui/workers/tasks.unpack verify/_rows.main",
    "a file of the package": "cli/_help._read embed/_minilm.read_tensors embed/vocabulary._words"
    " core/errors.extra_line"
    " server/operations.definitions",
}
"""Places that read what this program wrote, or that are tried elsewhere."""


def _answer(data: bytes) -> ServiceAnswer:
    return ServiceAnswer(status=200, body=data, wait_s=None, location="")


def _between(data: bytes) -> bytes:
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
    *("null", "true", '""', '"text"', "[]", "{}", "[[1]]", '{"a": {"b": 1}}', "-1", "-0", "0.5"),
    *(HUGE, f"-{HUGE}", "1e400", str(2**70), '"\\ud800"', '"' + "x" * 5_000 + '"'),
    *("NaN", "Infinity", "-Infinity", "", "\ufeff{}", '"\udcff"', "\udcff", '"\\u0000"'),
    *("[" * depth + "]" * depth for depth in (200, 500, 980, 1_000, 3_000, 100_000)),
    *('{"a":' * depth + "1" + "}" * depth for depth in (980, 1_000, 3_000, 100_000)),
)
"""What may stand in the place of anything; signs of half a pair are bytes that are no UTF-8."""


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


@pytest.mark.parametrize("door", DOORS | TAKEN_AS_IS)
def test_what_does_not_fit_is_told_in_one_sentence(door: str, folder: Path) -> None:
    """Whatever stands in whichever place, it is a value or a refusal."""
    sound, read = (DOORS | TAKEN_AS_IS)[door]
    for at, wrong in product(places(sound), WRONG):
        data = written(sound, at, wrong).encode("utf-8", "surrogateescape")
        told(lambda data=data: read(data, folder))


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


_READS: Final = re.compile(
    r"(?:orjson|json|tomllib|pickle|marshal)\.(?:loads?|JSONDecoder|Unpickler)|yaml\.(?!\w*Error)\w*"
    r"(?:parse|load\w*)|tomlkit\.(?:parse|loads?)|msgspec\.\w+\.(?:decode|Decoder)"
    r"|JSONHandler\(\)\.load|\S*\.validate_json|json_of|refuse_twice"
)


def places_that_read(node: ast.AST, name: str) -> Iterator[str]:
    """The function, or the module, around each word that reads JSON, TOML, YAML or pickles."""
    module = name.partition(".")[0]
    for inner in ast.iter_child_nodes(node):
        is_named = isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        around = f"{module}.{inner.name}" if is_named else name
        is_word = isinstance(inner, ast.Attribute | ast.Name)
        if is_word and _READS.fullmatch(ast.unparse(inner)):
            yield around
        yield from places_that_read(inner, around)


def test_every_place_that_reads_is_a_door_or_reads_what_is_ours() -> None:
    """A new one is tried above, or named as one that reads what this program wrote."""
    files = [*(CHECKOUT / "filestore").rglob("*.py"), *(CHECKOUT / "tui").rglob("*.py")]
    found = {
        place
        for path in files
        for place in places_that_read(
            ast.parse(path.read_text()),
            path.relative_to(CHECKOUT).with_suffix("").as_posix().removeprefix("filestore/"),
        )
    }
    assert found == {*DOORS, *TAKEN_AS_IS, *" ".join(OURS.values()).split()}


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
