"""Pages where there is no room for two parts: one is seen, and it is the one with the keys."""

import asyncio

import pytest

from tests.tui.repairing import Case, Session
from tui.app.frame import Options
from tui.app.inspector import Inspector

PAGES = ("browse", "verify", "repair")
NARROW = ((60, 20), (80, 24))
EDGES = {"browse": "\u2503", "verify": "\u2588", "repair": "\u2588"}
"""What the edge of a text with the keys is drawn with, by page."""
WIDE = (120, 40)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store of four chunk files, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    Case.make(folder)
    return folder


@pytest.fixture
def case(tmp_path, made):
    """A store in which one file was edited."""
    case = Case(tmp_path, made)
    case.chunks()[0].write_text(case.chunks()[0].read_text() + "One more line.\n")
    return case


def look(case, act, *, page, size):
    """Do something on a page that has something to read beside its list."""

    async def run():
        options = Options(
            store=str(case.root),
            configuration=case.configuration,
            page=page,
            environment={"XDG_STATE_HOME": str(case.folder / "state")},
        )
        app = Inspector(options)
        async with app.run_test(size=size) as pilot:
            session = Session(app, pilot)
            await session.until(lambda: bool(app.findings.coverage.level))
            await session.idle()
            if page == "repair":
                await session.plan("p")
            await session.press("down")
            await act(session)

    asyncio.run(run())


def has_keys(session):
    """What has the keys is seen: inside the screen, and with room."""
    focused = session.app.focused
    return focused is not None and focused.is_on_screen and bool(focused.size.area)


@pytest.mark.parametrize("size", NARROW)
@pytest.mark.parametrize("page", PAGES)
def test_tab_reaches_every_part_and_what_has_the_keys_is_seen(case, page, size):
    """Tab, or shift+tab, leads to the part that is not seen, and back; it has the keys then."""

    async def act(session):
        for key in ("tab", "shift+tab"):
            assert has_keys(session)
            begun = session.app.focused
            await session.press(key)
            await session.until(lambda begun=begun: session.app.focused is not begun)
            assert has_keys(session)
            assert not begun.is_on_screen
            for _ in range(4):
                if session.app.focused is not begun:
                    await session.press(key)
            assert session.app.focused is begun
            assert has_keys(session)

    look(case, act, page=page, size=size)


@pytest.mark.parametrize("page", PAGES)
def test_the_part_with_the_keys_stays_when_the_screen_gets_narrow(case, page):
    """Whichever part has the keys is the one that is left where the room for two goes."""

    async def act(session):
        for _ in range(2):
            await session.press("tab")
            for size in (*NARROW, WIDE):
                focused = session.app.focused
                await session.pilot.resize_terminal(*size)
                await session.idle()
                assert session.app.focused is focused, (size, session.seen())
                assert has_keys(session)

    look(case, act, page=page, size=WIDE)


@pytest.mark.parametrize("page", PAGES)
def test_a_text_with_the_keys_is_told_by_its_edge(case, page):
    """Beside a list, a text shows by the shape of its edge whether it has the keys."""

    async def act(session):
        before = session.seen()
        await session.press("tab")
        await session.until(lambda: EDGES[page] in session.seen())
        assert EDGES[page] not in before
        await session.press("shift+tab")
        await session.until(lambda: EDGES[page] not in session.seen())

    look(case, act, page=page, size=WIDE)
