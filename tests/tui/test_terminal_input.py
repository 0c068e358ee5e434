"""What a terminal may send: nothing of it ends the inspector, and keys go on being keys."""

import asyncio

import pytest
from textual.screen import ModalScreen

from tests.tui.raw_terminal import Screen
from tests.tui.repairing import Case
from tui.app.frame import Options
from tui.app.inspector import Inspector
from tui.widgets.steady import MainScreen
from tui.workers.terminal_input import Keyboard

PASTE, END = b"\x1b[200~", b"\x1b[201~"
SENT = {
    "no UTF-8": b"\xff\xc3(\x80\xf0\x9f",
    "letters with Alt as one byte": b"\xe1\xe8\xec",
    "half of a character": b"\xed\xa0\x80",
    "a key beyond all characters": b"\x1b[1114112;1u",
    "a key that is half of one": b"\x1b[55296;1u",
    "a text that is half of one": b"\x1b[97;1;55357u",
    "a key with others beside it": b"\x1b[97:65;2u",
    "a modifier with an event": b"\x1b[97;1:3u",
    "a key of a huge number": b"\x1b[99999999999999999999u",
    "a screen of no cells, then the mouse": b"\x1b[48;0;0;0;0t\x1b[<0;1;1M",
    "a screen without pixels, then the mouse": b"\x1b[48;30;100;0;0t\x1b[<0;5;5M",
    "a screen that no memory holds": b"\x1b[48;999999;999999;9;9t",
    "a size below nothing": b"\x1b[48;-1;-1;-1;-1t",
    "a mouse that is far off": b"\x1b[<0;999999999999999999;9M",
    "a mouse left of the screen": b"\x1b[<0;-5;-5M",
    "a mouse of the old kind": b"\x1b[M\xff\xff\xff",
    "a wheel of many buttons": b"\x1b[<9999;3;3M",
    "where the cursor is": b"\x1b[9999;9999R",
    "a report of a mode": b"\x1b[?2048;2$y\x1b[?2026;9$y",
    "a command of the system": b"\x1b]52;c;!!\x07\x1b]0;x\x1b\\",
    "an end of a paste": END,
    "a paste with an escape": PASTE + b"a\x1b[31mb\xff" + END,
    "digits of another script": "\x1b[٣;٩u".encode(),
}
QUIT = b"q\x11\x03"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small store, to be looked at only."""
    folder = tmp_path_factory.mktemp("made")
    Case.make(folder)
    return folder


def test_nothing_that_is_sent_ends_it(made, tmp_path):
    """After all of these a key does what it does; at the end the inspector exits with 0."""
    with Screen(str(made), "--read-only", home=tmp_path, size=(100, 30)) as screen:
        screen.see(until="Browse")
        for name, sent in SENT.items():
            assert not set(sent) & set(QUIT), name
            screen.send(sent)
            screen.send(b"\x1b[48;30;100;600;1000t")
            screen.see()
            assert screen.process.poll() is None, name
        screen.calm()
        screen.press("?", until="esc closes")
        screen.send(PASTE + b"half of a paste \x1b[")
        screen.send(b"\xe6")
        screen.send(END)
        screen.calm()
        assert screen.end() == 0
    assert not list((tmp_path / "state").rglob("filestore-crash-*"))


class _Driver:
    """Takes what a terminal sent."""

    _debug = False

    def __init__(self):
        self.taken = []

    def process_message(self, message):
        self.taken.append(message)


@pytest.mark.parametrize("name", SENT)
def test_what_has_no_meaning_is_left_out(name):
    """No key of it holds what no file takes, and the key behind it is read."""
    driver = _Driver()
    keyboard = Keyboard(driver)
    keyboard.feed(SENT[name])
    keyboard.feed(b"\x1b[B")
    for event in driver.taken:
        (getattr(event, "character", None) or "").encode()
    assert driver.taken[-1].key == "down"


def inspect(made, act):
    """Do something in the inspector."""

    async def run():
        options = Options(
            store=str(made / "file_index"),
            configuration=str(made / "configuration"),
            environment={"XDG_STATE_HOME": str(made / "state")},
        )
        app = Inspector(options)
        async with app.run_test(size=(100, 30)) as pilot:
            while not (app.views and app.view.is_mounted and app.findings.coverage.level):
                await pilot.pause(0.02)
            await act(app, pilot)
        assert app.reports.failure is None

    asyncio.run(run())


def test_an_answer_is_taken_once(made):
    """Who presses the key of an answer three times at once has answered once."""

    async def act(app, pilot):
        await pilot.press("2")
        for opening in ("question_mark", "c", "V", "colon", "ctrl+p", "w", "y"):
            for key in ("enter", "escape", "q"):
                await pilot.press(opening)
                for _ in range(3):
                    app.simulate_key(key)
                await pilot.pause()
                await pilot.press("escape", "escape")
                assert isinstance(app.screen, MainScreen), (opening, key)

    inspect(made, act)


def test_a_screen_below_another_one_is_not_left(made):
    """An answer that comes after another screen was laid over it leaves neither."""

    async def act(app, pilot):
        await pilot.press("question_mark")
        panel, above = app.screen, ModalScreen()
        await app.push_screen(above)
        panel.dismiss(None)
        await pilot.pause()
        assert app.screen_stack[1:] == [panel, above]

    inspect(made, act)


def test_leaving_a_page_that_is_not_there_yet_is_kept_until_it_is(made):
    """Escape right behind the key of a page that was never seen ends nothing."""

    async def act(app, pilot):
        app.simulate_key("2")
        app.go("verify")
        app.do_back()
        await pilot.pause()
        assert app.page == "verify"

    inspect(made, act)
