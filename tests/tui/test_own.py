"""What a person's own settings say of the inspector, and the page of its keys."""

from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from tui import actions
from tui.views.dialogs import ChoiceScreen, HelpScreen
from tui.widgets.drawing import ANSI


def own(case, text):
    """Write the user's settings."""
    folder = Path(case.configuration, "filestore")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.toml").write_text(text)


def test_keys_and_colours_are_the_users(case):
    """A key of theirs does what its own did, which does nothing; footer and help have it."""
    own(
        case,
        '[inspector]\ntheme = "ansi"\n[inspector.keys]\n"browse.filter" = ["F"]\n'
        '"browse.neighbours" = ["B"]\n',
    )

    async def act(session):
        assert session.app.theme == ANSI
        await session.press("slash")
        assert not isinstance(session.app.focused, Input)
        await session.press("F")
        await session.until(lambda: isinstance(session.app.focused, Input))
        assert "F filter" in session.seen()
        await session.press("escape", "B")
        await session.until(lambda: "[Neighbours]" in session.seen())
        await session.press("t")
        await session.until(lambda: "[Text]" in session.seen())
        assert "B Neighbours" in session.seen()

    case.inspect(act, page="browse", size=(120, 40))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[inspector]\ntheme = "none"\n', "no theme is called none"),
        ('[inspector.keys]\n"browse.none" = ["x"]\n', "no action is called browse.none"),
        ('[inspector]\ncolumns = ["none"]\n', "no column is called none"),
        ("[inspector]\ntheme = 1\n", "inspector.theme"),
    ],
)
def test_what_does_not_fit_is_named(case, text, words):
    """A name that nothing has, a value that is none: a sentence, and the inspector opens."""
    own(case, text)

    async def act(session):
        await session.until(lambda: words in " ".join(session.seen().split()))

    case.inspect(act, page="browse", size=(120, 40), notifications=True)


def test_colours_are_seen_before_they_are_chosen(case):
    """Those under the cursor are shown; escape brings back those before, enter keeps them."""

    async def act(session):
        app, before = session.app, session.app.theme
        await session.press("T")
        await session.until(lambda: type(app.screen) is ChoiceScreen)
        await session.press("j")
        await session.until(lambda: app.theme != before)
        tried = app.theme
        await session.press("escape")
        await session.until(lambda: app.theme == before)
        await session.press("T", "j", "enter")
        await session.until(lambda: app.theme == tried and not app.screen.is_modal)

    case.inspect(act, page="browse", size=(80, 24))


def test_help_is_filtered_and_does_what_is_chosen(case):
    """One line an action; behind a slash words of it are left, and enter does it."""

    async def act(session):
        await session.press("question_mark")
        await session.until(lambda: isinstance(session.app.screen, HelpScreen))
        listed = session.app.screen.query_one(OptionList)
        assert listed.option_count > len(actions.of_place("browse"))
        await session.press("slash", *"colours", "space", *"blind")
        await session.until(lambda: listed.option_count == 1)
        await session.press("enter")
        await session.until(lambda: type(session.app.screen) is ChoiceScreen)

    case.inspect(act, page="browse", size=(80, 24))


def test_columns_and_their_order_are_kept(case):
    """Those of the settings, until others are chosen; these, and the order, outlive the session."""
    own(case, '[inspector]\ncolumns = ["sections", "size"]\n')
    long = case.folder / "a-long.md"
    long.write_text("# Long\n\n" + "One thing after another.\n" * 100)
    case.add(long)

    async def choose(session):
        tree = session.app.view.outline
        assert tree.chosen_columns == ("sections", "size")
        await session.press("comma", "S")
        await session.press("comma", "s")
        await session.until(lambda: tree.order == "size")
        await session.until(lambda: tree._inside[""] == ["notes", "a-long.md"])

    async def find(session):
        tree = session.app.view.outline
        assert (tree.order, tree.chosen_columns) == ("size", ["sections"])

    case.inspect(choose, page="browse", size=(120, 40))
    case.inspect(find, page="browse", size=(120, 40))
