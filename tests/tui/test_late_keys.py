"""What must hold of keys that come before the screen has followed the ones before them."""

import asyncio

import pytest

from filestore import Store
from tui.app.frame import Options
from tui.app.inspector import Inspector
from tui.views.modals.choosing import ChoiceScreen
from tui.views.modals.prompt import PromptScreen


@pytest.fixture
def root(tmp_path):
    """An empty store."""
    root = str(tmp_path / "file_index")
    Store.create(root, layout="tree", embedder="builtin", configuration=root).close()
    return root


def session(root, act):
    """Open the inspector and do something with it."""

    async def run():
        inspector = Inspector(Options(store=root, configuration=root, environment={}))
        async with inspector.run_test(size=(100, 30)) as pilot:
            for _ in range(200):
                await pilot.pause(0.02)
                if inspector.views and inspector.view.is_mounted:
                    break
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
        for _ in range(100):
            await pilot.pause(0.02)
            if isinstance(inspector.screen, PromptScreen) and inspector.focused is not None:
                break
        await pilot.pause(0.1)
        assert inspector.screen.query_one("Input").value == "help"

    session(root, act)


def test_a_key_that_is_typed_ahead_of_its_page_is_not_lost(root):
    """The key for the menu of levels, right behind the one for Verify, opens the menu there."""

    async def act(inspector, pilot):
        inspector.simulate_key("2")
        inspector.simulate_key("V")
        for _ in range(200):
            await pilot.pause(0.02)
            if isinstance(inspector.screen, ChoiceScreen):
                break
        assert inspector.page == "verify"
        assert isinstance(inspector.screen, ChoiceScreen)

    session(root, act)
