"""What the ordinary run holds, although the dear tests are left to the long one."""

import re
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

from tests.tiers import long_tests

ROOT: Final = Path(__file__).resolve().parent.parent
SYSTEM: Final = "tests/system"
ROOMS: Final = {
    "adapters": "tests/unit/adapters",
    "catalog": f"{SYSTEM}/sidecar",
    "chunking": f"{SYSTEM}/cli/test_add.py",
    "chunks": f"{SYSTEM}/cli/test_show.py",
    "config": f"{SYSTEM}/cli/test_init.py",
    "core": f"{SYSTEM}/cli/test_json.py",
    "remote": f"{SYSTEM}/embed/test_openai.py",
    "rerank": f"{SYSTEM}/cli/test_search.py",
    "store": f"{SYSTEM}/test_library.py",
    "sync": f"{SYSTEM}/cli/test_sync.py",
}
"""Rooms whose tests on a real disk lie elsewhere than in a folder of their name."""
PROMISES: Final = {
    "Search your notes and documents where they lie": f"{SYSTEM}/test_in_place.py",
    "with answers at file and line": f"{SYSTEM}/search/test_place.py",
    "Markdown files that you read, edit and keep in git": f"{SYSTEM}/ingest/test_reingest.py",
    "Edits, renames, merges and checkouts": f"{SYSTEM}/git/test_merges.py",
    "filestore shows the drift": f"{SYSTEM}/cli/test_status.py",
    "one command updates the index": f"{SYSTEM}/cli/test_sync.py",
    "whether its\nfile is still what was indexed": f"{SYSTEM}/search/test_outdated.py",
    "nothing is written into the folder unasked but": f"{SYSTEM}/cli/test_init_in_place.py",
    "`watch` and git hooks (`git install`) do it for you": f"{SYSTEM}/git/test_hooks.py",
    "`update` re-ingests what changed": f"{SYSTEM}/cli/test_update.py",
    "Both read text, Markdown, HTML, PDF, office files, epub and code": f"{SYSTEM}/extract",
    "undo a change, byte for byte": f"{SYSTEM}/repair/test_undo.py",
    "`verify` reports all drift and damage": f"{SYSTEM}/verify/test_levels.py",
    "restores deleted or damaged chunks": f"{SYSTEM}/repair/test_repair.py",
    "write questions into chunk files, and summaries": f"{SYSTEM}/enrich",
    "or as of a commit": f"{SYSTEM}/past",
    "the store as JSON lines, Parquet": f"{SYSTEM}/exchange",
    "carry vectors to a clone": f"{SYSTEM}/cli/test_embeddings.py",
    "answer agents over MCP": f"{SYSTEM}/server/test_agents.py",
    "stores for programs, HTTP with a token": f"{SYSTEM}/server/test_http.py",
    "`filestore tui` opens it": "tests/tui/test_terminal.py",
    "goes only to services you allowed": f"{SYSTEM}/embed/test_key_stays_home.py",
    "Without its model keywords answer": f"{SYSTEM}/embed",
    "## As a library": f"{SYSTEM}/test_library.py",
}
"""Words of the README to the tests that hold them."""


@pytest.fixture
def places(request: pytest.FixtureRequest) -> set[str]:
    """Each file with a test in this run, and the folders around it."""
    names = {item.nodeid.partition("::")[0] for item in request.session.items}
    found = names | {str(parent) for name in names for parent in PurePosixPath(name).parents}
    is_ordinary = request.config.option.markexpr == "not long and not exhaustive"
    if not (is_ordinary and {"tests/contract", SYSTEM, "tests/tui", "tests/unit"} <= found):
        pytest.skip("only a run of all ordinary tests tells")
    return found


def test_every_room_is_tried_from_end_to_end(places: set[str]) -> None:
    """Each room has a test in the ordinary run that uses it as a person would."""
    rooms = [path.parent.name for path in (ROOT / "filestore").glob("*/__init__.py")]
    wanted = {room: ROOMS.get(room, f"{SYSTEM}/{room}") for room in rooms} | {"tui": "tests/tui"}
    assert {room: place for room, place in wanted.items() if place not in places} == {}


def test_every_promise_is_tried_from_end_to_end(places: set[str]) -> None:
    """What the README promises is tried in the ordinary run."""
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [words for words in PROMISES if words not in readme] == []
    assert {words: place for words, place in PROMISES.items() if place not in places} == {}


def test_the_list_names_tests() -> None:
    """A test that is gone, or called otherwise, is not on the list of long ones."""
    for path, names in groupby(sorted(long_tests()), lambda name: name.partition("::")[0]):
        text = (ROOT / path).read_text("utf-8")
        for name in {name.split("::")[1].partition("[")[0] for name in names}:
            assert f"def {name}(" in text or f"\n{name} = " in text, f"{path}::{name}"


def test_commands_that_name_a_file_run_its_long_tests() -> None:
    """A command of the pages, or of a docstring, leaves out nothing of the file that it names."""
    dear = {name.partition("::")[0] for name in long_tests()}
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", ROOT / "tests/FIGURES.md"]
    pages += [one for one in (ROOT / "tests").rglob("*.py") if one != Path(__file__)]
    commands = [
        (page.name, options, file)
        for page in pages
        for options, file in re.findall(
            r"\bpytest\s((?:-\S+\s|\"\"\s|long\s)*)(tests/[\w/]+\.py)", page.read_text("utf-8")
        )
    ]
    assert len(commands) > 6
    assert [one for one in commands if one[2] in dear and "-m " not in one[1]] == []
