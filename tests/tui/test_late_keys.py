"""What must hold of keys that come before the screen has followed the ones before them."""

import ast
import asyncio
import inspect
from pathlib import Path

import pytest
from textual.app import App
from textual.events import Key, MouseDown, MouseUp, Paste
from textual.widgets import Input, OptionList

from filestore import NoStoreError, Store
from tui.app.frame import Options
from tui.app.inspector import Inspector
from tui.views.dialogs import (
    Choice,
    ChoiceScreen,
    ConfirmScreen,
    Panel,
    PromptScreen,
    SmallScreen,
    StartScreen,
)


@pytest.fixture
def root(tmp_path):
    """An empty store."""
    root = str(tmp_path / "file_index")
    Store.create(root, layout="tree", embedder="builtin", configuration=root).close()
    return root


def session(root, act, *, at_once=False):
    """Open the inspector and do something with it, once its first page is there or at once."""

    async def run():
        inspector = Inspector(Options(store=root, configuration=root, environment={}))
        async with inspector.run_test(size=(100, 30)) as pilot:
            if not at_once:
                await until(pilot, lambda: inspector.is_seen)
            await act(inspector, pilot)

    asyncio.run(run())


def test_a_key_for_a_page_that_was_left_does_nothing(root):
    """An action of Repair that arrives on Browse is dropped; the inspector goes on."""

    async def act(inspector, pilot):
        inspector.action_do("repair", "truth")
        await pilot.pause()
        assert inspector.page == "browse"
        assert inspector.return_code in (None, 0)
        assert not inspector.errors

    session(root, act)


def test_what_is_typed_before_the_command_line_is_there_is_not_lost(root):
    """Letters that follow the colon at once are on the line."""

    async def act(inspector, pilot):
        inspector.do_prompt()
        for letter in "help":
            inspector.simulate_key(letter)
        await until(pilot, lambda: isinstance(inspector.screen, PromptScreen))
        await until(pilot, lambda: inspector.screen.query_one("Input").value == "help")

    session(root, act)


def test_a_key_that_is_typed_ahead_of_its_page_is_not_lost(root):
    """The key for the menu of levels, right behind the one for Verify, opens the menu there."""

    async def act(inspector, pilot):
        inspector.simulate_key("2")
        inspector.simulate_key("V")
        for _ in range(200):
            await pilot.pause(0.02)
            screen = inspector.screen
            # Whole: else the inspector would end while the menu is being made.
            if isinstance(screen, ChoiceScreen) and screen.query(OptionList):
                break
        assert inspector.page == "verify"
        assert isinstance(inspector.screen, ChoiceScreen)

    session(root, act)


KEYS = {"/": "slash", ":": "colon", "\r": "enter", "-": "minus"}


def send(inspector, keys):
    """Have keys arrive together, before the screen has followed the first of them."""
    for sign in keys:
        inspector.post_message(Key(KEYS.get(sign, sign), sign))


async def until(pilot, holds):
    """Wait until something holds."""
    for _ in range(500):
        await pilot.pause(0.02)
        if holds():
            return
    raise AssertionError("it never came to this")


@pytest.mark.parametrize(
    ("first", "keys", "field"),
    [
        ("", "/missing", "#browse-filter"),
        ("", "sindices", "#browse-query"),
        ("2", "/missing", "#finding-filter"),
        ("", "2/missing", "#finding-filter"),
        ("2", "1/missing", "#browse-filter"),
        ("", "3:missing", "PromptScreen Input"),
        ("3", "1sindices", "#browse-query"),
    ],
)
def test_letters_right_behind_the_key_of_a_field_are_typed_into_it(root, first, keys, field):
    """All letters reach the field, whatever they would do as keys: an `i` would sync the store."""

    async def act(inspector, pilot):
        send(inspector, first)
        await until(pilot, lambda: not first or inspector.view.is_mounted)
        await pilot.pause(0.3)
        send(inspector, keys)
        word = keys.lstrip("123").lstrip("/:s") if "/" in keys or ":" in keys else "indices"

        def value():
            found = inspector.screen.query(field)
            return found.first(Input).value if found else ""

        await until(pilot, lambda: value() == word)
        titles = [task.title for task in inspector.task_manager.tasks]
        assert not [title for title in titles if title not in ("status", "options")]
        assert not [command for _, command in inspector.commands_done if "sync" in command]

    session(root, act)


def test_what_is_typed_behind_a_filter_goes_to_the_list(root):
    """Enter ends the filter; a key right behind it is one of the page again."""

    async def act(inspector, pilot):
        send(inspector, "2/missing\rV")
        await until(pilot, lambda: isinstance(inspector.screen, ChoiceScreen))
        assert inspector.view._rows.filter.text == "missing"

    session(root, act)


def test_a_key_behind_one_that_closed_a_question_is_not_lost(root):
    """The widget that had the first key is gone, and with it whatever follows the key."""

    async def act(inspector, pilot):
        send(inspector, "T")
        await until(pilot, lambda: isinstance(inspector.screen, ChoiceScreen))
        inspector.post_message(Key("escape", "\x1b"))
        send(inspector, "2/word")
        await until(pilot, lambda: inspector.page == "verify" and inspector.view.is_mounted)
        await until(pilot, lambda: inspector.view._rows.filter.text == "word")

    session(root, act)


def test_what_is_typed_before_the_first_page_is_for_it(root):
    """A word that was meant for a search is one, however early it began; no letter is a key."""

    async def act(inspector, pilot):
        assert not inspector.is_seen
        for kind in (MouseDown, MouseUp):
            event = kind(None, 25, 0, 0, 0, 1, False, False, False, screen_x=25, screen_y=0)
            inspector.post_message(event)
        send(inspector, "smiss")
        inspector.post_message(Paste("ing"))

        def query():
            found = inspector.screen.query("#browse-query")
            return found.first(Input).value if found else ""

        await until(pilot, lambda: query() == "missing")
        # The first page asks for it, and so does the watcher once it sees the tree.
        assert {task.title for task in inspector.task_manager.tasks} <= {"status"}
        assert inspector.page == "browse"
        assert len(inspector.screen_stack) == 1

    session(root, act, at_once=True)


def test_what_is_typed_before_a_store_is_found_missing_is_dropped(tmp_path):
    """The screen that says so was not seen by who typed: no letter chooses on it."""

    async def run():
        named = str(tmp_path / "none")
        inspector = Inspector(Options(store=named, configuration=named, environment={}))
        async with inspector.run_test(size=(100, 30)) as pilot:
            send(inspector, "nxq\r")
            await until(pilot, lambda: isinstance(inspector.screen, StartScreen))
            await pilot.pause(0.3)
            assert isinstance(inspector.screen, StartScreen)
        assert not list(tmp_path.iterdir())

    asyncio.run(run())


def test_the_key_that_quits_works_before_there_is_a_page(root):
    """What hangs while it opens a store can be left."""

    async def act(inspector, pilot):
        inspector.post_message(Key("ctrl+c", None))
        await until(pilot, lambda: inspector.return_value == 0)

    session(root, act, at_once=True)


def test_keys_that_were_meant_for_a_page_make_no_store(root):
    """The store goes away while somebody types: the screen that says so takes none of it."""

    async def act(inspector, pilot):
        inspector.fail(NoStoreError("it is gone"))
        send(inspector, "xnr")
        await pilot.pause(0.3)
        assert isinstance(inspector.screen, StartScreen)
        await pilot.press("r")
        await until(pilot, lambda: not isinstance(inspector.screen, StartScreen))

    session(root, act)


def test_a_question_is_answered_only_once_it_is_seen(root):
    """One that comes by itself, as the price of enriching does, takes no y that meant to copy."""

    async def act(inspector, pilot):
        answers = []
        inspector.push_screen(ConfirmScreen("Sure?", []), answers.append)
        send(inspector, "y\r")
        await pilot.pause(0.6)
        assert not answers
        await pilot.press("y")
        await until(pilot, lambda: answers == [True])

    session(root, act)


QUESTIONS = {
    "choice": lambda: ChoiceScreen("Which?", [Choice(name="one", title="one")]),
    "prompt": lambda: PromptScreen(":"),
    "removal": lambda: ConfirmScreen("Sure?", [], removes=3),
    "panel": lambda: Panel("title", list, live=True),
    "start": lambda: StartScreen(NoStoreError("no store"), ()),
    "size": SmallScreen,
}


@pytest.mark.parametrize("ends", ["exit", "shutdown", "dismissed"])
@pytest.mark.parametrize("make", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_that_opens_as_the_inspector_ends_does_nothing(make, ends):
    """At whichever step: Textual leaves out the widgets that are not made then."""

    async def run(steps):
        app, screen = App(), make()
        async with app.run_test(size=(40, 10)):
            app.push_screen(screen)
            for _ in range(steps):
                await asyncio.sleep(0)
            is_whole = screen.is_mounted
            if ends == "exit":
                app.exit()
                screen.post_message(Key("j", "j"))
            elif ends == "dismissed":
                screen.dismiss()
        return is_whole

    steps = 0
    while not asyncio.run(run(steps)):
        steps += 1
    assert steps > 1


CALLED_LATER = ("call_after_refresh", "call_later", "set_interval", "set_timer")


def called_later():
    """The methods of the inspector that it has called at another time, by name."""
    for path in sorted((Path(__file__).parents[2] / "tui").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if name[5:] in CALLED_LATER or name.endswith(".begin"):
                given = map(ast.unparse, node.args)
                yield from (one[5:] for one in given if one.startswith("self."))


def test_what_is_called_behind_the_end_does_nothing(root):
    """A timer that runs out as the inspector ends finds no screen, and is no fault."""
    names = {name for name in called_later() if hasattr(Inspector, name)}
    assert {"_check", "_clear_expired", "_hand_on", "_now_seen", "draw"} <= names

    async def run():
        inspector = Inspector(Options(store=root, configuration=root, environment={}))
        async with inspector.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: inspector.is_seen)
        with inspector._context():
            for name in sorted(names - {"open_store"}):  # asked for once, at the beginning
                found = getattr(inspector, name)()
                if inspect.isawaitable(found):
                    await found

    asyncio.run(run())


def test_keys_behind_the_end_do_nothing(root):
    """A key that is held back as the inspector ends is dropped with its screens."""

    async def run():
        inspector = Inspector(Options(store=root, configuration=root, environment={}))
        async with inspector.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: inspector.is_seen)
        assert not inspector.screen_stack
        await inspector.on_event(Key("j", "j"))

    asyncio.run(run())
