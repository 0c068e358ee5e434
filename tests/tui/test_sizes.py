"""Terminals of odd sizes: the inspector draws what fits, comes to rest, and ends when told to."""

import asyncio
from pathlib import Path

import pytest
from textual.app import App
from textual.events import Resize
from textual.geometry import Size
from textual.widgets import OptionList

from tests.tui.raw_terminal import Screen
from tui.app import frame
from tui.app.frame import Options
from tui.app.inspector import Inspector
from tui.views.dialogs import Choice, ChoiceScreen, SmallScreen
from tui.widgets.upstream import MOST, drawable

STYLE = Path(frame.__file__).with_name("inspector.tcss")
TURNS = 40
RESTLESS = 10
"""Layouts within so many turns; who flickers makes one a turn, who was told one size makes two."""


def inspect(made, act, *, size):
    """Do something in the inspector at a size."""

    async def run():
        options = Options(
            store=str(made / "file_index"),
            configuration=str(made / "configuration"),
            environment={"XDG_STATE_HOME": str(made / "state")},
        )
        app = Inspector(options)
        async with app.run_test(size=size) as pilot:
            await act(app, pilot)

    asyncio.run(run())


async def layouts_within(pilot, screen):
    """How often a screen is laid out in a while in which nothing happens."""
    count = 0

    def laid_out(_):
        nonlocal count
        count += 1

    screen.screen_layout_refresh_signal.subscribe(screen, laid_out, immediate=True)
    for _ in range(TURNS):
        await asyncio.sleep(0.02)
    return count


@pytest.mark.parametrize("where", ["page", "question"])
def test_two_sizes_at_once_come_to_rest(made, where):
    """Of two sizes that are told at the same time the terminal's own stays, on every screen."""

    async def act(app, pilot):
        if where == "question":
            await pilot.press("question_mark")
        await pilot.pause()
        screen = app.screen
        for size in (Size(80, 25), Size(80, 24), Size(80, 25)):
            screen.post_message(Resize(size, size))
        assert await layouts_within(pilot, screen) < RESTLESS
        assert screen.size == app.size == Size(80, 24)

    inspect(made, act, size=(80, 24))


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (1, 50), (59, 16)])
def test_a_screen_without_room_comes_to_rest(made, size):
    """Where hardly a letter fits, the notice is drawn once and not again and again."""

    async def act(app, pilot):
        async with asyncio.timeout(30):
            while not isinstance(app.screen, SmallScreen):
                await pilot.pause(0.02)
        await pilot.pause(0.1)
        assert await layouts_within(pilot, app.screen) < RESTLESS

    inspect(made, act, size=size)


def test_a_size_that_no_memory_holds_is_drawn_in_part(made):
    """What a terminal claims beyond any monitor is left empty."""

    async def act(app, pilot):
        size = Size(65_535, 65_535)
        app.post_message(Resize(size, size))
        while app.screen.size != MOST:
            await pilot.pause(0.02)
        app.post_message(Resize(Size(-3, 0), Size(-3, 0)))
        while app.screen.size != Size(1, 1):
            await pilot.pause(0.02)

    inspect(made, act, size=(100, 30))


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_choices_are_drawn_without_room_for_a_letter(columns):
    """A list of choices does not end the program on a narrow screen."""

    class Narrow(App[None]):
        CSS_PATH = str(STYLE)

        def on_mount(self):
            self.push_screen(ChoiceScreen("Which?", [Choice(name="a", title="The first of them")]))

    async def run():
        app = Narrow()
        async with app.run_test(size=(columns, 10)) as pilot:
            await pilot.pause()
            assert app.screen.query_one(OptionList).size.width > 0

    asyncio.run(run())


def test_sizes_that_can_be_drawn_stay():
    """The limits are far from any terminal."""
    for size in (Size(1, 1), Size(80, 24), Size(640, 180), MOST):
        assert drawable(size) == size


@pytest.mark.parametrize(
    "sizes",
    [
        [(0, 0)],
        [(0, 30)],
        [(1, 1)],
        [(2, 1)],
        [(65_535, 65_535)],
        [(100, 30), (0, 0), (1, 1), (65_535, 2), (100, 30), (0, 0)],
    ],
    ids=str,
)
def test_a_terminal_of_any_size_is_left_with_a_key(made, tmp_path, sizes):
    """Begun at a size and resized to others, the inspector draws, takes a key, and exits with 0."""
    with Screen(str(made), home=tmp_path, size=sizes[0]) as screen:
        screen.until_it_draws()
        for size in sizes[1:]:
            screen.resize(*size)
        # Other keys are dropped until the first page is seen, which so small a screen cannot tell.
        screen.send(b"\x11")
        assert screen.ended() == 0
