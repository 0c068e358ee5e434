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
    "makes a folder of notes and documents searchable": f"{SYSTEM}/test_in_place.py",
    "answered at file and line": f"{SYSTEM}/search/test_place.py",
    "Markdown files that you read, edit and keep in git": f"{SYSTEM}/ingest/test_reingest.py",
    "edits, renames, merges, checkouts": f"{SYSTEM}/git/test_merges.py",
    "filestore shows the drift": f"{SYSTEM}/cli/test_status.py",
    "brings the index up to date once": f"{SYSTEM}/cli/test_sync.py",
    "whether its file is still what was indexed": f"{SYSTEM}/search/test_outdated.py",
    "Into the folder it writes": f"{SYSTEM}/cli/test_init_in_place.py",
    "does it after a checkout, merge or rebase": f"{SYSTEM}/git/test_hooks.py",
    "`update` reads the sources again": f"{SYSTEM}/cli/test_update.py",
    "It reads Markdown, PDF, HTML, office files, epub, mail and code": f"{SYSTEM}/extract",
    "are undone byte for byte": f"{SYSTEM}/repair/test_undo.py",
    "every file, row and index entry against the others": f"{SYSTEM}/verify/test_levels.py",
    "restores deleted or damaged chunk files": f"{SYSTEM}/repair/test_repair.py",
    "writes questions that a chunk answers, and summaries": f"{SYSTEM}/enrich",
    "answers as of a commit": f"{SYSTEM}/past",
    "JSON lines, a row a chunk": f"{SYSTEM}/exchange",
    "vectors can be carried along": f"{SYSTEM}/cli/test_embeddings.py",
    "Claude, Cursor, VS Code and others ask over MCP": f"{SYSTEM}/server/test_agents.py",
    "answers programs, agents and browsers: HTTP with JSON": f"{SYSTEM}/server/test_http.py",
    "`filestore tui` opens a screen over the store": "tests/tui/test_terminal.py",
    "is sent to allowed services alone": f"{SYSTEM}/embed/test_key_stays_home.py",
    "When the model is missing, keywords answer": f"{SYSTEM}/embed",
    "from Python, as a library": f"{SYSTEM}/test_library.py",
}
"""Words of the README and the pages to the tests that hold them."""


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
    """What the README and the pages promise is tried in the ordinary run."""
    paths = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    pages = " ".join(" ".join(path.read_text("utf-8").split()) for path in paths)
    assert [words for words in PROMISES if words not in pages] == []
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
