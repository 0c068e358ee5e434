"""`search` with several stores: one call, hits merged by rank, each with its store."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import filestore
from filestore.core.errors import FilestoreError
from filestore.fs.lock import writer_lock
from filestore.server.operations import COMMANDS
from tests.system.conftest import Workspace

RENT = "# Rent\n\nThe rent is paid on the third day.\n"
LAW = "# Law\n\nThe law that the rent is under.\n\nBees are not in it.\n"


@pytest.fixture
def two(workspace: Workspace) -> Workspace:
    """Two stores in place, `home` and `work`."""
    workspace.write("home/notes/rent.md", RENT)
    workspace.write("work/law.md", LAW)
    for name in ("home", "work"):
        workspace("init", "--in-place", name)
    return workspace


BOTH = ("search", "--store", "home", "--store", "work")


def test_one_call_asks_all_and_each_hit_names_its_store(two: Workspace) -> None:
    """In words, JSON and records; what is printed `show` takes, from any folder."""
    lines = two(*BOTH, "rent").stdout.splitlines()
    heads = [line.split()[0] for line in lines if line.startswith(("home", "work"))]
    assert heads == ["home/notes/rent.md:3", "work/law.md:3"]
    assert [line.partition(";")[0] for line in lines if "(store" in line] == [
        "   (store home",
        "   (store work",
    ]
    for head, store in zip(heads, ("home", "work"), strict=True):
        assert "rent is" in two("--store", store, "show", head).stdout
    found = two.json("--store", "home", "search", "--store", "work", "rent")
    assert [(hit["store"], hit["path"]) for hit in found["hits"]] == [
        ("home", "notes/rent.md"),
        ("work", "law.md"),
    ]
    assert found["stores"]["work"]["root"] == str(two.folder / "work")
    assert found["stores"]["home"]["behind"]["new"] == 0
    above = two(
        *("search", "--store", "../../home", "--store", "../../work", "rent"),
        *("--format", "{store} {document}:{place}"),
        cwd=two.folder / "home" / "notes",
    )
    assert above.stdout == "../../home rent.md:3\n../../work ../../work/law.md:3\n"
    assert two(*BOTH, "rent", "-l", "-0").stdout == "home/notes/rent.md\0work/law.md\0"


def test_one_store_is_asked_as_ever(two: Workspace) -> None:
    """Named once, its answer has no store in it; named in two ways, it answers once."""
    found = two.json("search", "--store", "home", "rent")
    assert "store" not in found["hits"][0]
    twice = two.json("search", "--store", "home", "--store", "./home/", "rent")
    assert [hit["store"] for hit in twice["hits"]] == ["home"]
    assert list(twice["stores"]) == ["home"]


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"search"}))
def test_other_commands_take_one_store(workspace: Workspace, command: str) -> None:
    """Two are refused before anything is done, wherever they are in the line."""
    for words in (
        ("--store", "a", "--store=b", command),
        ("--store", "a", command, "--store", "b"),
        (command, "--store=a", "--store", "b"),
    ):
        done = workspace(*words, code=2)
        assert f"{command} takes one store, found --store 2 times" in done.stderr
    assert list(workspace.folder.glob("[ab]")) == []


def damage(root: Path) -> None:
    (root / ".filestore" / "catalog.sqlite").write_bytes(b"no database" * 1_000)


def newer(root: Path) -> None:
    with sqlite3.connect(root / ".filestore" / "catalog.sqlite") as database:
        database.execute("PRAGMA user_version = 9999")


def no_settings(root: Path) -> None:
    (root / "filestore.toml").write_text("embedder = [")


FAULTS: list[Callable[[Path], object]] = [damage, newer, no_settings, shutil.rmtree]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.__name__)
def test_a_store_that_fails_hides_no_other(two: Workspace, fault: Callable[[Path], object]) -> None:
    """It is named with why, and the exit code says that it failed; alone it is the error."""
    fault(two.folder / "work")
    alone = two("search", "--store", "work", "rent", code=None)
    assert alone.code in (2, 3)
    done = two(*BOTH, "rent", "-l", code=5)
    assert done.stdout == "home/notes/rent.md\n"
    (note,) = [line for line in done.stderr.splitlines() if line.startswith("work did not answer")]
    assert note.removeprefix("work did not answer: ") in alone.stderr
    assert note in two.json(*BOTH, "rent", code=5)["notes"]
    with pytest.raises(FilestoreError):
        filestore.search_stores(["work"], "rent")
    shutil.rmtree(two.folder / "home")
    error = two.json(*BOTH, "rent", code=3)["error"]
    assert "home: no store in home" in error
    assert "work: " in error


def test_a_writer_keeps_no_store_from_answering(two: Workspace) -> None:
    """As one that is asked alone."""
    two.write("work/new.md", "# New\n\nA new rent.\n")
    with writer_lock(str(two.folder / "work" / ".filestore" / "lock"), command="test"):
        found = two.json(*BOTH, "rent")
    assert {hit["store"] for hit in found["hits"]} == {"home", "work"}
    assert any(note.startswith("work: ") for note in found["notes"])


def test_a_wrong_question_is_wrong_once(two: Workspace) -> None:
    """What no store could answer is the error of one; a name that is empty is none."""
    for words in ((" ",), ("rent", "--mode", "best"), ("rent", "--since", "yesterday-ish")):
        error = two(*BOTH, *words, code=2).stderr
        assert "home" not in error
    assert (
        "the name of the store is empty" in two("search", "--store=", *BOTH[1:], "x", code=2).stderr
    )
    assert two(*BOTH, "rent", "--embed", code=2).stderr.startswith("filestore: --embed is for --at")


def test_twenty_stores_answer_one_call(two: Workspace) -> None:
    """The first hits of all, in the order of the stores."""
    names = ["home", *(f"copy{number}" for number in range(19))]
    for name in names[1:]:
        shutil.copytree(two.folder / "home", two.folder / name)
    words = [word for name in names for word in ("--store", name)]
    found = two.json("search", *words, "rent", "-k", "20")
    assert [hit["store"] for hit in found["hits"]] == names
    assert [hit["store"] for hit in two.json("search", *words, "rent", "-k", "3")["hits"]] == names[
        :3
    ]


def test_filters_and_order_hold_over_all(two: Workspace) -> None:
    """Each store is asked the same; by date the newest of all come first."""
    two.write("home/old.md", "---\nupdated: 2020-01-01\n---\n# Old\n\nThe old rent.\n")
    two.write("work/young.md", "---\nupdated: 2031-01-01\n---\n# Young\n\nThe young rent.\n")
    newest = two(*BOTH, "rent", "--sort", "date", "--format", "{document}").stdout.split()
    assert newest[0] == "work/young.md"
    assert newest[-1] == "home/old.md"
    assert len(newest) == 4
    assert two(*BOTH, "rent", "--until", "2020", "-l").stdout == "home/old.md\n"


def test_the_past_of_each_is_searched(two: Workspace) -> None:
    """Each at the commit of that name; a store that has none says so, the others answer."""
    two.git("add", "-A")
    two.git("commit", "-m", "notes")
    two.git("init", str(two.folder / "apart"))
    two.write("apart/rent.md", RENT)
    two("init", "--in-place", "apart")
    two.write("home/notes/rent.md", "# Rent\n\nNothing.\n")
    done = two(*BOTH, "--store", "apart", "rent", "--at", "HEAD", code=5)
    assert "home/notes/rent.md:3" in done.stdout
    assert "home: commit" in done.stderr
    assert "apart did not answer: nothing is committed yet" in done.stderr
    assert "commit" in two.json(*BOTH, "rent", "--at", "HEAD")["stores"]["work"]["at"]


def test_the_library_answers_the_same(two: Workspace) -> None:
    """Its values are what the command prints."""
    printed = two.json(*BOTH, "rent", "-k", "2")
    found = filestore.search_stores(["home", Path("work")], "rent", k=2)
    assert json.loads(json.dumps(found.to_dict())) == printed
    assert found.is_found
    with pytest.raises(filestore.UsageError, match="no store is named"):
        filestore.search_stores([], "rent")
