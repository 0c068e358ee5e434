"""Whatever comes in from outside has limits, is counted, and refused with the option that helps."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.cli._parser import command_parser
from filestore.core.limits import OPTION, USUAL
from filestore.exchange.base import READ
from filestore.server.operations import COMMANDS
from tests.system.conftest import files_below

PACKAGE: Final = {"parquet": "pyarrow"}
DOORS: Final = {
    **{form: ("import", form, f"all.{form}") for form in READ},
    "convert": ("convert", "all.ragmd", "converted"),
    "embeddings": ("embeddings", "import", "all.pack", "--unchecked"),
    "folder": ("reconstruct", "chunks", "--from", "folder", "-o", "rebuilt"),
    "lines": ("reconstruct", "chunks.jsonl", "--from", "jsonl", "-o", "rebuilt"),
}
"""What comes in, by every command that takes it."""
COUNTED: Final = {"convert": ("rows", "bytes"), "embeddings": ("rows", "bytes")}
"""Doors whose number of files does not depend on what comes."""


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> str:
    """Each of them; one whose package is missing is skipped."""
    name = str(request.param)
    if name in PACKAGE:
        pytest.importorskip(PACKAGE[name])
    return name


@pytest.fixture
def offered(new_workspace: Any) -> Any:
    """An empty store, beside everything that another one wrote."""
    made = new_workspace(layout="tree")
    for number in range(6):
        made.write(f"n{number}.md", f"# Note {number}\n\nWords of note {number}.\n")
        made.write(f"chunks/part-{number}-of-a.txt", f"words {number}")
    made("add", *(f"n{number}.md" for number in range(6)))
    for form in READ:
        made("export", form, f"all.{form}", code=None)
    made("embeddings", "export", "all.pack")
    rows = [{"text": f"words {number}", "document": f"d{number}"} for number in range(6)]
    made.write("chunks.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    made("rm", *(f"n{number}.md" for number in range(6)))
    return made


def with_limits() -> Iterator[str]:
    """The commands that take the option."""
    for name in COMMANDS:
        parser = command_parser(name)
        inner = next((one for one in parser._actions if isinstance(one.choices, dict)), None)
        for own in [parser, *(inner.choices.values() if inner else ())]:
            found = own._option_string_actions.get(OPTION)
            if found and found.metavar == "KEY=N":
                yield name


def test_every_door_is_tried() -> None:
    """A command that takes limits stands above; so does each form, by its registration."""
    assert set(with_limits()) == {words[0] for words in DOORS.values()}


@pytest.mark.safety
def test_too_much_is_refused_before_anything_is_written(offered: Any, door: str) -> None:
    """With what was found, the limit, and the option; which then lets it in."""
    words = DOORS[door]
    before = files_below(offered.folder)
    for name in COUNTED.get(door, ("rows", "files", "bytes")):
        for plan in ((), ("--plan",)) if words[0] == "import" else ((),):
            done = offered(*words, *plan, OPTION, f"{name}=2", code=4)
            assert f"{name} or more, at most 2 are allowed" in done.stderr
            assert f"{OPTION} {name}=N" in done.stderr
            after = files_below(offered.folder)
            changed = {one for one in after if after[one] != before.get(one)}
            assert not {one for one in changed if ".sidecar" not in one}, changed
    raised = (OPTION, "rows=1000", "files=1000", f"bytes={USUAL.bytes}")
    assert offered(*words, *raised, code=None).code in (0, 5)


def test_a_plan_shows_how_much_it_is(offered: Any) -> None:
    """Rows, bytes and files, with the most of each."""
    plan = offered.json("import", "jsonl", "all.jsonl", "--plan")
    assert plan["rows"] == plan["files"] == 12  # six notes, six records
    assert plan["limits"] == {"rows": USUAL.rows, "files": USUAL.files, "bytes": USUAL.bytes}
    text = offered("import", "jsonl", "all.jsonl", "--plan").stdout
    assert f"it has 12 rows (at most {USUAL.rows:,})" in text
    assert "12 files would be written" in text
    (offered.folder / "one.jsonl").write_text('{"text": "A note.", "resource": "one"}\n')
    text = offered("import", "jsonl", "one.jsonl", "--plan").stdout
    assert "it has 1 row (at most" in text
    assert "1 file would be written" in text


def test_a_limit_that_is_none_is_said(offered: Any) -> None:
    """A misspelt name, no number, or nothing."""
    for word in ("row=5", "rows", "rows=many", "rows=0", "rows=-1"):
        assert OPTION in offered("import", "jsonl", "all.jsonl", OPTION, word, code=2).stderr


@pytest.mark.safety
def test_few_bytes_that_stand_for_many_rows(workspace: Any) -> None:
    """What Parquet says of itself is enough: the rows are not read."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    workspace.sync()
    table = pyarrow.table({"text": pyarrow.array(["the same words"] * 2_000_000)})
    parquet.write_table(table, workspace.folder / "bomb.parquet")
    done = workspace("import", "parquet", "bomb.parquet", "--plan", code=4)
    assert "bomb.parquet has 2,000,000 rows or more, at most" in done.stderr
    assert not workspace.chunked.exists() or not list(Path(workspace.chunked).iterdir())


@pytest.mark.safety
def test_json_made_to_fill_the_memory_is_passed_over(workspace: Any) -> None:
    """Brackets alone take twenty times their size; the line is named, the others are taken."""
    workspace.sync()
    bomb = '{"text": "x", "metadata": {"a": [' + "[]," * 1_000_000 + "[]]}}\n"
    workspace.write("rows.jsonl", bomb + '{"text": "good words"}\n')
    done = workspace("import", "jsonl", "rows.jsonl", code=5)
    assert "line 1: 1,000,00" in done.stderr + done.stdout
    workspace.write("chunks.jsonl", bomb + '{"text": "good words"}\n')
    done = workspace("reconstruct", "chunks.jsonl", "--from", "jsonl", code=5)
    assert "brackets" in done.stderr
