"""What a terminal may send: nothing of it ends the inspector, and keys go on being keys."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.events import Key, Paste
from textual.screen import ModalScreen

from tests.tui.raw_terminal import Screen
from tui.app.frame import Options
from tui.app.inspector import Inspector
from tui.widgets.upstream import Keyboard, MainScreen

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
REPLIES = {
    "a colour": b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\",
    "a colour, ended by a bell": b"\x1b]10;rgb:cdcd/d6d6/f4f4\x07",
    "a colour of the palette": b"\x1b]4;1;rgb:ffff/0000/0000\x1b\\",
    "a colour in eight bits": b"\x9d11;rgb:0/0/0\x9c",
    "a colour in eight bits as UTF-8": "\x9d12;rgb:i/i/i\x9c".encode(),
    "the title": b"\x1b]lmy title\x1b\\",
    "a picture": b"\x1b_Gi=7,p=2;ENOENT:isi\x1b\\",
    "the program": b"\x1bP>|a terminal(300)\x1b\\",
    "a capability": b"\x1bP1+r544e=69\x1b\\",
    "a setting": b"\x1bP1$r0m\x1b\\",
    "a private message": b"\x1b^isi\x1b\\",
    "a start of string": b"\x1bXisi\x1b\\",
    "attributes": b"\x1b[?62;1;2;4;6;9;15;16;17;18;21;22;28;29;42;52c",
    "more attributes": b"\x1b[>41;380;0c\x1b[=1;2;3c",
    "the theme": b"\x1b[?997;1n",
    "that it is there": b"\x1b[0n",
    "flags of its keys": b"\x1b[?31u",
    "a mode that is not known": b"\x1b[?12;0$y\x1b[4;2$y",
    "its size": b"\x1b[8;24;80t\x1b[4;600;800t",
    "a place with its page": b"\x1b[?3;5;1R",
    "a sequence that nobody knows": b"\x1b[<1;2i\x1b[3'~",
}
TYPED = [
    b"j",
    b"i",
    b"\r",
    b"\x1b[B",
    b"\x1bOP",
    "é".encode(),
    b"]",
    b"\x1b[3;5~",
    b"\x1b[97;5u",
    b" ",
]


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


class _Driver:
    """Takes what a terminal sent; its time passes as it is told."""

    _debug = False

    def __init__(self, **environment):
        self.taken = []
        self.now = 0.0
        self.keyboard = Keyboard(self, environment=environment, clock=lambda: self.now)

    def process_message(self, message):
        self.taken.append(message)

    def take(self, *parts, wait_s=0.0):
        """The keys of what comes in these parts, after each of which some time passes."""
        self.taken.clear()
        for part in parts:
            self.keyboard.feed(part)
            self.now += wait_s
            self.keyboard.tick()
        return [event.key for event in self.taken if isinstance(event, Key)]


def _single(sent):
    return [sent[at : at + 1] for at in range(len(sent))]


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_is_no_key(name):
    """Whole, twice, in single bytes and slowly: only the keys around it are keys."""
    reply = REPLIES[name]
    for parts in ([b"j" + reply + b"k"], [reply, b"jk", reply], [b"j", *_single(reply), b"k"]):
        assert _Driver().take(*parts) == ["j", "k"], parts
    # What comes so late behind its escape that this was a key is none all the same.
    late = _Driver().take(reply[:1], reply[1:], b"jk", wait_s=0.5)
    assert late in (["j", "k"], ["escape", "j", "k"])
    # Nor, where its first letter came by itself, what follows: of that, nothing is a page or quits.
    torn = _Driver().take(reply[:1], reply[1:2], reply[2:], b"jk", wait_s=0.5)
    assert len(torn) < 5
    assert torn[-2:] == ["j", "k"]
    assert _Driver().take(reply + reply + b"jk") == ["j", "k"]


@given(
    pieces=st.lists(st.tuples(st.sampled_from([b"", *REPLIES.values()]), st.sampled_from(TYPED))),
    cuts=st.sets(st.integers(0, 400)),
)
def test_replies_cut_anywhere_leave_the_keys_that_were_pressed(pieces, cuts):
    """However the bytes are torn, what a person pressed is all that is taken for keys."""
    sent = b"".join(reply + key for reply, key in pieces)
    places = [0, *sorted(cut for cut in cuts if cut < len(sent)), len(sent)]
    parts = [sent[begin:end] for begin, end in pairwise(places)]
    assert _Driver().take(*parts) == _Driver().take(b"".join(key for _, key in pieces))


@given(sent=st.binary(max_size=60), cut=st.integers(0, 60))
def test_no_bytes_take_the_keys_for_ever(sent, cut):
    """After any bytes, a key that is pressed a moment later is a key; in a paste, behind Escape."""
    driver = _Driver()
    driver.take(sent[:cut], sent[cut:])
    driver.take(b"", wait_s=3.0)
    driver.take(b"\x1b", wait_s=3.0)
    assert driver.take(b"j") == ["j"]


@pytest.mark.parametrize("begun", [b"\x1b]11;rgb:", b"\x1bP", b"\x1b_G", b"\x9d1", b"\x1b[?1;"])
def test_a_reply_that_never_ends_leaves_the_keys_soon(begun):
    """A control or another sequence ends it at once, else its time, which no key prolongs."""
    assert _Driver().take(begun, b"\x03", b"j") == ["ctrl+c", "j"]
    assert _Driver().take(begun, b"\x1b[B", b"j") == ["down", "j"]
    keys = _Driver().take(begun, *[b"1"] * 40, wait_s=0.1)
    assert 15 < len(keys) < 25
    escaped = _Driver()
    assert escaped.take(begun, b"\x1b", wait_s=1.5) == ["escape"]
    assert escaped.take(b"j") == ["j"]


def test_a_paste_that_never_ends_is_left_by_escape():
    """Its end was lost: Escape gives what came as pasted, and keys are keys."""
    driver = _Driver()
    driver.take(PASTE + b"words", b"j", wait_s=3.0)
    assert not driver.taken
    assert driver.take(b"\x1b", wait_s=0.5) == ["escape"]
    assert [event.text for event in driver.taken if isinstance(event, Paste)] == ["wordsj"]
    assert driver.take(b"j") == ["j"]


@pytest.mark.parametrize(
    ("environment", "waits_s"),
    [
        ({}, 0.1),
        ({"SSH_CONNECTION": "a b"}, 0.3),
        ({"SSH_CONNECTION": "a b", "ESCDELAY": "1"}, 0.1),
    ],
)
def test_escape_waits_longer_over_a_network(environment, waits_s):
    """What belongs to it may come late there; a wish of the person's own holds."""
    driver = _Driver(**environment)
    assert not driver.take(b"\x1b", wait_s=waits_s - 0.02)
    assert driver.take(b"", wait_s=0.04) == ["escape"]


@pytest.mark.parametrize("name", SENT)
def test_what_has_no_meaning_is_left_out(name):
    """No key of it holds what no file takes, and the key behind it is read."""
    driver = _Driver()
    driver.take(SENT[name], b"\x1b[B")
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
            async with asyncio.timeout(30):
                while not (app.is_seen and app.findings.coverage.level):
                    await pilot.pause(0.02)
            await act(app, pilot)
        assert not app.fault

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
