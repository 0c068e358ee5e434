"""Pages where there is no room for two parts: one is seen, and it is the one with the keys."""

import pytest

PAGES = ("browse", "verify", "repair")
NARROW = ((60, 20), (80, 24))
EDGES = {"browse": "\u2503", "verify": "\u2588", "repair": "\u2588"}
"""What the edge of a text with the keys is drawn with, by page."""
WIDE = (120, 40)


@pytest.fixture
def case(case):
    """A store in which one file was edited."""
    case.chunks()[0].write_text(case.chunks()[0].read_text() + "One more line.\n")
    return case


def look(case, act, *, page, size):
    """Do something on a page that has something to read beside its list."""

    async def begin(session):
        if page == "repair":
            await session.plan("p")
        await session.press("down")
        await act(session)

    case.inspect(begin, page=page, size=size)


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


def test_without_a_plan_the_page_says_what_to_do(case):
    """Where only one part is seen, too; after a repair, what was done."""

    async def act(session):
        await session.read("nothing is planned")
        await session.plan("p")
        assert "nothing is planned" not in session.seen()
        await session.press("A", "y")
        await session.read("verified again")
        assert has_keys(session)

    case.inspect(act, page="repair", size=NARROW[1])


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
