"""Values made to hurt a parser, in every file that one is given to: an answer, never a fall.

Depth, length, numbers that Python does not take, NUL, lone surrogates, bytes that steer a terminal.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

DEEP: Final = b"[" * 5000 + b"]" * 5000
NESTED: Final = b"[" * 900 + b"]" * 900
LARGE: Final = b'{"format": 1, "x": "' + b"x" * 20_000_000 + b'"}'
JSON: Final = {
    "deep": DEEP,
    "nested": b'{"format": ' + NESTED + b', "plan": {"format": ' + NESTED + b"}}",
    "nested-list": NESTED,
    "nested-values": b'{"format": 1, "source": %b, "kind": %b, "documents": %b, "files": %b,'
    b' "what": "x", "made": 1, "wanted": "after", "sequence": %b, "models": %b, "trusted": %b,'
    b' "chunker": "", "query": %b, "relevant": %b}' % ((NESTED,) * 9),
    "number": b'{"format": ' + b"9" * 6000 + b"}",
    "infinite": b'{"format": 1e999, "made": 1e308, "sequence": 1e308, "files": [],'
    b' "what": "x", "wanted": "after"}',
    "not-a-number": b'{"format": NaN}',
    "twice": b'{"format": 1, "format": 2}',
    "surrogate": b'{"format": 1, "source": "\\ud800", "kind": "file", "documents": []}',
    "nul": b'{"format": 1, "source": "a\\u0000b", "kind": "file", "chunker": "structure/1:256",'
    b' "documents": [{"source": "a\\u0000b", "hash": "sha256:00", "extractor": "x/1"}],'
    b' "models": {"x": "a\\u0000b"}, "trusted": {}}',
    "escapes": b'{"format": "\\u001b]0;x\\u0007\\u009b31m"}',
    "large": LARGE,
    "text": b"\xff\xfe\x00",
    "empty": b"",
}
TOML: Final = {
    "deep": b"x = " + DEEP,
    "tables": b"\n\nx = " + b"{a=" * 5000 + b"1" + b"}" * 5000,
    "dotted": b"a." * 200_000 + b"b = 1",
    "number": b"\nx = " + b"9" * 6000,
    "hexadecimal": b"format = 0x" + b"f" * 6000,
    "budget": b"[chunker]\nbudget = 0x" + b"f" * 6000,
    "large": b'x = "' + b"x" * 20_000_000 + b'"',
    "escapes": b'layout = "\\u001b]0;x\\u0007\\u009b31m"',
    "nul-layout": b'layout = "\\u0000"',
    "text": b"\xff\xfe\x00",
    "unclosed": b'x = """' + b"\\" * 100_000,
}
LOOKING: Final = (
    ("status",),
    ("verify", "--level", "full"),
    ("ls",),
    ("search", "pump", "--mode", "keyword"),
    ("reconstruct", "manual.md"),
    ("undo", "--list"),
    ("repair", "--plan"),
    ("sync",),
)


@pytest.fixture
def kept(workspace: Any) -> Any:
    """A store with a resource, and something that can be undone."""
    workspace.write("manual.md", "# Manual\n\nThe pump needs care.\n")
    workspace("add", "manual.md")
    workspace.write("manual.md", "# Manual\n\nThe pump needs more care.\n")
    workspace("add", "manual.md")
    return workspace


def _look(workspace: Any, commands: tuple[tuple[str, ...], ...] = LOOKING) -> str:
    said = ""
    for words in commands:
        done = workspace(*words, code=None)
        assert done.code in (0, 1, 3, 4), (words, done)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x9b" not in done.stdout + done.stderr
        assert len(done.stderr) < 5000
        said += done.stdout + done.stderr
    return said


@pytest.mark.parametrize("name", JSON)
def test_a_crafted_record_is_a_finding(kept: Any, name: str) -> None:
    """Of `meta.json` whatever it holds: the finding that it cannot be used, and all else works."""
    (kept.chunked / "manual.md" / "meta.json").write_bytes(JSON[name])
    _look(kept)
    if name != "nul":  # A source that no file can have, and else a record like any other.
        assert ("oversized" if name == "large" else "record-invalid") in kept.drift()


@pytest.mark.parametrize("name", JSON)
def test_a_crafted_batch_is_named_and_not_undone(kept: Any, name: str) -> None:
    """Of what `.undo` keeps: the list says so, and undo refuses it."""
    (kept.store / ".undo" / "000002" / "batch.json").write_bytes(JSON[name])
    before = kept.truth()
    _look(kept, (("undo", "--list"), ("undo", "000002"), ("status",)))
    assert kept("undo", "000002", code=None).code in (3, 4)
    assert kept.truth() == before


@pytest.mark.parametrize("name", TOML)
def test_crafted_settings_are_refused_with_their_line(kept: Any, name: str) -> None:
    """Of `filestore.toml`: exit 3, what is wrong with it and where."""
    (kept.store / "filestore.toml").write_bytes(TOML[name])
    for words in (("status",), ("search", "pump"), ("sync",)):
        done = kept(*words, code=3)
        assert "filestore.toml" in done.stderr
        assert len(done.stderr) < 1000
        assert "\x1b" not in done.stderr
    if name in ("tables", "number"):
        assert f"line {3 if name == 'tables' else 2}" in done.stderr


@pytest.mark.parametrize("value", ['"onnx:a\\u0000b"', '"\\u0000"', '"openai:\\u001b[31m"'])
def test_a_model_whose_name_no_file_can_have(kept: Any, value: str) -> None:
    """A NUL or an escape in the model's name: the model is missing, the files are searched."""
    text = (kept.store / "filestore.toml").read_text()
    text = text.replace('embedder = "builtin"', f"embedder = {value}")
    (kept.store / "filestore.toml").write_text(text)
    _look(kept)


@pytest.mark.parametrize("name", JSON)
def test_a_crafted_machine_file_is_refused(kept: Any, name: str, configuration: Path) -> None:
    """Of the user's own `machine.json`: whatever is wrong with it, said with its name."""
    (configuration / "machine.json").write_bytes(JSON[name])
    _look(kept)


@pytest.mark.parametrize("name", [*TOML, "nul"])
def test_crafted_settings_of_the_user(kept: Any, name: str, configuration: Path) -> None:
    """Of the user's own `settings.toml`, a folder that cannot be among them."""
    nul = b'[sidecar]\n"%b" = "/tmp/a\\u0000b"\n' % bytes(kept.store)
    (configuration / "settings.toml").write_bytes((TOML | {"nul": nul})[name])
    said = _look(kept)
    if name in ("deep", "number", "nul"):
        assert "settings.toml" in said


@pytest.fixture
def configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The user's configuration of filestore."""
    folder = tmp_path / "configuration" / "filestore"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.parent))
    return folder


@pytest.mark.parametrize("name", JSON)
def test_a_crafted_file_that_a_person_names(kept: Any, name: str) -> None:
    """Questions from somebody else: refused as what they are not."""
    path = kept.write("named.json", JSON[name])
    done = kept("evaluate", path, code=None)
    assert done.code in (2, 3, 4)
    assert len(done.stderr) < 1000
    assert "\x1b" not in done.stderr


def test_questions_may_come_through_a_pipe(kept: Any, new_pipe: Callable[[bytes], str]) -> None:
    """A shell hands over what a command writes as the path of a descriptor."""
    found = kept("evaluate", new_pipe(b'{"query": "pump", "relevant": ["manual.md"]}\n'))
    assert found.code == 0


@pytest.fixture
def new_pipe() -> Iterator[Callable[[bytes], str]]:
    """Makes what ``<(…)`` makes."""
    with ExitStack() as stack:

        def make(data: bytes) -> str:
            readable, writable = os.pipe()
            stack.callback(os.close, readable)
            os.write(writable, data)
            os.close(writable)
            return f"/dev/fd/{readable}"

        yield make
