"""What every page and panel looks like, at every size: see `looks.py`."""

import shutil

import pytest

from tests.tui import looks
from tests.tui.looks import Onlooker, look, make_store, seen
from tui.views.dialogs import SmallScreen

SIZES = ((60, 20), (80, 24), (120, 40), (200, 60))


@pytest.fixture(autouse=True)
def _pinned():
    looks.check_textual()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store that was changed behind its back, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    make_store(folder)
    return folder


@pytest.fixture
def folder(tmp_path, made):
    """A store that was changed behind its back."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


async def check_sizes(onlooker: Onlooker, name: str) -> None:
    """Compare a page at every size."""
    for columns, rows in SIZES:
        await onlooker.resize(columns, rows)
        onlooker.check(f"{name}-{columns}x{rows}")


def test_browse_at_every_size(folder):
    """The list, and beside it the text where there is room, and its neighbours where more is."""

    async def act(onlooker):
        await onlooker.press(*"jjlj", words="Fifteen words")
        await onlooker.resize(200, 60)
        await onlooker.read("0.3")
        await check_sizes(onlooker, "browse")

    look(folder, act)


def test_verify_at_every_size(folder):
    """Findings by code, worst first, and the evidence of the one under the cursor."""

    async def act(onlooker):
        await onlooker.press("j", words="A note in passing")
        await onlooker.resize(200, 60)
        await onlooker.read("now   cosine")
        await check_sizes(onlooker, "verify")

    look(folder, act, page="verify")


def test_repair_at_every_size(folder):
    """The steps of a plan, its sums and its command, and the diff of the step under the cursor."""

    async def act(onlooker):
        await onlooker.press("p", words="filestore repair")
        await onlooker.press("t", words="restore")
        await onlooker.press("g", "j", words="+++")
        await check_sizes(onlooker, "repair")

    look(folder, act, page="repair")


def test_what_is_known_of_a_chunk(folder):
    """Facts, the raw file, neighbours, the map; on a narrow screen, the text alone."""

    async def act(onlooker):
        await onlooker.press(*"jjlj", words="Fifteen words")
        for key, name, words in (
            ("f", "facts", "Hashes"),
            ("o", "raw", "origin:"),
            ("b", "neighbours", "cosine"),
            ("m", "map", "drifted  ● field-guide"),
        ):
            await onlooker.press(key, words=words)
            onlooker.check(name)
        await onlooker.resize(60, 20)
        await onlooker.press("t", words="Fifteen words")
        onlooker.check("text-60x20")

    look(folder, act)


def test_the_legend_of_the_map_goes_by_its_width(folder):
    """As kept, also where the screen was narrower when the map came."""

    async def act(onlooker):
        await onlooker.press(*"jjlj", words="Fifteen words")
        await onlooker.press("b", words="cosine")
        columns, rows = onlooker.app.size
        await onlooker.resize(70, rows)
        await onlooker.press("m", words="● field-guide")
        await onlooker.resize(columns, rows)
        await onlooker.read("drifted  ● field-guide")
        await onlooker.calm()
        onlooker.check("map")

    look(folder, act)


def test_search(folder):
    """The query, how it is searched, and the hits with what was found in the first."""

    async def act(onlooker):
        await onlooker.press("s", *"notebook", "enter", words="hybrid")
        onlooker.check("search")

    look(folder, act)


def test_panels(folder):
    """Help, tasks, the log, what can be copied, the palette, the command line."""

    async def act(onlooker):
        for key, name in (
            ("?", "help"), ("w", "tasks"), ("at", "log"), ("Y", "copy"), ("ctrl+p", "palette"),
            (":", "command"),
        ):  # fmt: skip
            await onlooker.press(key)
            onlooker.check(name)
            await onlooker.press("escape")

    look(folder, act, size=(80, 24))


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
def test_both_sides_of_a_conflict(folder, size):
    """Below each other on a narrow screen, beside each other on a wide one."""

    async def act(onlooker):
        (found,) = (one for one in onlooker.app.findings if one.code == "conflict-markers")
        onlooker.app.choose_side(found)
        await onlooker.read("edit it by hand")
        await onlooker.calm()
        onlooker.check(f"sides-{size[0]}x{size[1]}")

    look(folder, act, size=size)


def test_what_stands_where_no_store_is(tmp_path):
    """The message, its remedy, and the ways on."""

    async def act(onlooker):
        onlooker.check("start")

    look(tmp_path, act, size=(80, 24), store="nowhere")


def test_a_screen_that_is_too_small_is_told(folder):
    """A notice in place of everything; keys do nothing; with the room all is back as it was."""

    async def act(onlooker):
        await onlooker.press(*"jjlj", words="Fifteen words")
        before = seen(onlooker.app)
        focused = onlooker.app.focused
        for size in ((59, 30), (60, 15), (1, 1)):
            await onlooker.resize(*size)
            assert isinstance(onlooker.app.screen, SmallScreen), size
            assert "Browse" not in seen(onlooker.app)
        await onlooker.resize(50, 12)
        onlooker.check("small")
        await onlooker.press("j", "3", "?")
        await onlooker.resize(100, 30)
        assert seen(onlooker.app) == before
        assert onlooker.app.focused is focused

    look(folder, act)


def test_a_screen_that_is_too_small_under_a_panel(folder):
    """The panel is there again with the room, and the page below has the new size."""

    async def act(onlooker):
        await onlooker.press("?", words="Keys")
        await onlooker.resize(40, 10)
        assert "Keys" not in seen(onlooker.app)
        await onlooker.resize(80, 24)
        assert "Keys" in seen(onlooker.app)
        await onlooker.press("escape")
        assert onlooker.app.screen.has_class("-narrow")

    look(folder, act, size=(120, 40))


def test_a_look_that_is_another_is_told(monkeypatch):
    """A picture that differs from the kept one fails, and says where."""
    monkeypatch.delenv("UPDATE_LOOKS", raising=False)
    with pytest.raises(AssertionError, match="looks otherwise") as caught:
        looks.check_look("small", "something else\n")
    assert "+something else" in str(caught.value)
