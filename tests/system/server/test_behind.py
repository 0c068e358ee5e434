"""What the index lacks is in every answer, whichever operation gave it; readers may sync."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore.cli import main as command
from filestore.server.agents import tools, wording
from filestore.server.operations import COMMANDS, OPERATIONS, ROUTES, Operation
from filestore.server.stores import Access, Caller, Stores
from filestore.sidecar.model import StoreModel
from filestore.sync import little

OTHERS = {"status", "verify", "changes"}
"""What tells the drift itself, or reads the journal."""
READER = Caller(name="reader", writes=False, person=False)
READING = [one for one in OPERATIONS if one.route and not one.writes and one.name not in OTHERS]
NOTE = "notes/rent.md"
GIVEN: dict[str, dict[str, Any]] = {
    "search": {"query": "rent"},
    "similar": {"path": NOTE},
    "show": {"path": NOTE},
    "document": {"path": NOTE},
    "links": {"path": NOTE},
    "evaluate": {"questions": [{"query": "rent", "relevant": [NOTE]}]},
}


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A store in place in which more is new than a look takes up."""
    root = tmp_path / "kb"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "rent.md").write_text("# Rent\n\nThe rent is paid on the third day.\n")
    with filestore.create(root, embedder="builtin", layout="in-place") as store:
        store.sync()
    for number in range(little.MOST_FILES + 1):
        (root / "notes" / f"new{number}.md").write_text(f"# New {number}\n\nBees make honey.\n")
    return root


@pytest.fixture
def opened(many: Path) -> Iterator[Stores]:
    """It alone, to be read."""
    with Stores.open([str(many)], Access(writes=False)) as stores:
        yield stores


def ask(stores: Stores, operation: Operation, caller: Caller = READER) -> dict[str, Any]:
    """What a store answers to an operation."""
    given = GIVEN.get(operation.name, {})
    return asyncio.run(stores.named(None).ask(operation, given, caller))


@pytest.mark.parametrize("operation", READING, ids=lambda one: one.name)
def test_every_answer_says_what_the_index_lacks(opened: Stores, operation: Operation) -> None:
    """In numbers, and to agents in one line."""
    answer = ask(opened, operation)
    new = little.MOST_FILES + 1
    assert answer["behind"] == {"new": new, "edited": 0, "gone": 0, "unembedded": 0}
    if operation.tool:
        text = wording.text_of(operation.name, answer, "")
        assert len([line for line in text.split("\n") if "not indexed" in line]) == 1


@pytest.mark.parametrize(
    "name", [one.name for one in READING if one.name in COMMANDS and one.name != "evaluate"]
)
def test_commands_say_it_once(
    many: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error; without a look they say nothing."""
    monkeypatch.chdir(many)
    words = [value for value in GIVEN.get(name, {}).values() if isinstance(value, str)]
    command([name, *words])
    assert capsys.readouterr().err.count("51 new files are not indexed") == 1
    command([name, "--no-update", *words])
    assert "not indexed" not in capsys.readouterr().err


NOT_LOOKED = "the files were not looked at: what is new or edited is not found"


def test_a_search_that_finds_nothing_says_that_it_did_not_look(
    many: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every door, also where the settings say so; not where something is found."""
    monkeypatch.chdir(many)
    given = {"query": "honeycomb", "mode": "keyword"}
    words = ["search", "honeycomb", "--mode", "keyword"]

    def told(*more: str) -> tuple[str, list[str]]:
        command([*words, *more])
        error = capsys.readouterr().err
        command([*words, *more, "--json"])
        return error, json.loads(capsys.readouterr().out)["notes"]

    error, notes = told("--no-update")
    assert error.count(NOT_LOOKED) == 1
    assert [note.startswith(NOT_LOOKED) for note in notes] == [True]
    with Stores.open([str(many)], Access(writes=False)) as stores:
        answer = asyncio.run(
            stores.named(None).ask(ROUTES["search"], given | {"update": False}, READER)
        )
        assert answer["notes"] == notes
        assert notes[0].replace("filestore ", "") in wording.text_of("search", answer, "")
    with filestore.open(many) as store:
        assert store.search("honeycomb", mode="keyword", update=False).notes == tuple(notes)
        assert store.search("rent", mode="keyword", update=False).notes == ()
    (many / "filestore.toml").write_text(
        (many / "filestore.toml").read_text() + "\n[search]\nupdate = false\n"
    )
    assert told()[1] == notes


SYNC = next(one for one in OPERATIONS if one.name == "sync")


def test_a_reader_syncs_whatever_is_new(opened: Stores, many: Path) -> None:
    """However many files that is, with their vectors; what is gone is kept, and no file written."""
    (many / NOTE).unlink()
    before = sorted(many.rglob("*.md"))
    assert "sync" in {one.name for one in tools.offered(opened, READER)}
    report = ask(opened, SYNC)
    assert report["behind"] == {"new": 0, "edited": 0, "gone": 1, "unembedded": 0}
    assert len(report["applied"]) == little.MOST_FILES + 1
    assert report["embedded"] > 0
    assert sorted(many.rglob("*.md")) == before
    assert ask(opened, SYNC)["applied"] == []
    with filestore.open(many) as store:
        assert len(store.search("honey", k=100, group="document").hits) == little.MOST_FILES + 1
        assert not store.status().clean, "the file that is gone is not forgotten"


def test_a_sync_that_has_no_time_left_goes_on(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done is kept, and the answer says how much is left."""
    left = []
    with filestore.open(many) as store:
        take_up = little.take_up

        def last(*given: Any) -> Any:
            taken = take_up(*given)
            monkeypatch.setattr("filestore.store.look.time.monotonic", lambda: 1e12)
            return taken

        monkeypatch.setattr(little, "take_up", last)
        report = store.take_up()
        left.append(report.behind.new)
        assert report.behind.notes == ("1 new file is not indexed (60 s are over): sync goes on",)
    monkeypatch.undo()
    with filestore.open(many) as store:
        left.append(store.take_up().behind.new)
    assert left == [1, 0]


@pytest.mark.parametrize("given", [{"full": True}, {"forget_missing": True}])
def test_a_reader_gets_no_option_of_the_writer(opened: Stores, given: dict[str, Any]) -> None:
    """Neither over HTTP nor as a tool."""
    with pytest.raises(filestore.UsageError, match="unknown parameter"):
        asyncio.run(opened.named(None).ask(SYNC, given, READER))


def test_a_writer_syncs_as_before(many: Path) -> None:
    """It forgets what is gone; and a caller that may only read does not, of the same store."""
    (many / NOTE).unlink()
    with Stores.open([str(many)], Access(writes=True)) as stores:
        assert ask(stores, SYNC)["behind"]["gone"] == 1
        writer = Caller(name="writer", writes=True, person=False)
        assert ask(stores, SYNC, writer)["behind"]["gone"] == 0


def test_a_reader_pays_no_service(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts wait for the vectors of a service until a person syncs; keywords find them."""
    monkeypatch.setattr(StoreModel, "reaches", "https://models.example.org")
    with filestore.open(many) as store:
        report = store.take_up()
        assert report.embedded == 0
        assert report.behind.new == 0
        assert report.behind.unembedded > 0
