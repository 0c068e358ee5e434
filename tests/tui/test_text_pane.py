"""Text as somebody at the keyboard reads it: wrapping, place, matches, links."""

import asyncio

from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App
from textual.color import Color

from tui.formatting import ROLES, Span, line, plain
from tui.widgets.drawing import TAB, Palette, Wrapping, cells
from tui.widgets.text import TextPane

HEIGHT = 6
WIDTH = 21
"""Of the screen; a column of it is the scroll bar's."""


class ShowingApp(App):
    """One widget, and what it told."""

    CSS = "Screen { layout: vertical; } #shown { height: 1fr; }"

    def __init__(self, shown):
        super().__init__()
        self.shown = shown
        self.told = []

    def compose(self):
        yield self.shown

    def on_mount(self):
        self.shown.focus()

    def on_text_pane_followed(self, event):
        self.told.append(event.leads_to)

    def key_n(self):
        self.told.append("n")

    def key_enter(self):
        self.told.append("enter")


def showing(act, make=lambda: TextPane(id="shown")):
    """Show a widget and do something with it."""

    async def session():
        app = ShowingApp(make())
        async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
            await pilot.pause()
            await act(app, app.shown, pilot)

    asyncio.run(session())


def screen(shown):
    """The lines in sight as text; each is exactly as wide as it should be."""
    strips = shown.render_lines(shown.size.region)
    assert all(strip.cell_length == shown.size.width for strip in strips)
    return [strip.text.rstrip() for strip in strips]


def styles_of(shown, row, text):
    """The styles of the parts of a row that are exactly this text."""
    strip = shown.render_lines(shown.size.region)[row]
    return [part.style for part in strip if part.text == text]


def numbered(total):
    """Lines that say their number."""
    return [line(f"line {number}") for number in range(total)]


async def settled(pilot, pane):
    """Wait until a text is wrapped to its end."""
    async with asyncio.timeout(30):
        while not pane._wrapping.is_done:
            await pilot.pause(0.01)


TEXTS = st.text(
    st.one_of(st.sampled_from("ab  \t汉é\u0301🙂\ufe0f"), st.characters(exclude_categories=["C"])),
    max_size=80,
)


@given(st.lists(st.lists(TEXTS, max_size=3), max_size=4), st.integers(4, 30))
def test_wrapping_keeps_every_character_within_the_width(parts, width):
    """Rows together are the text, none is wider than the width but for a space at its end, and
    every character is found on the row that shows it."""
    lines = [tuple(Span(part) for part in line) for line in parts]
    wrapping = Wrapping(lines, width)
    while not wrapping.is_done:
        wrapping.advance(1)
    texts = ["" for _ in lines]
    for row in range(len(wrapping)):
        number, start = wrapping.begins(row)
        words = wrapping.row(row)
        assert start == len(texts[number])
        texts[number] += plain([words])
        assert cells(words) <= width or cell_len(plain([words]).replace("\t", TAB)[:-1]) <= width
        for character in range(start, wrapping.ends(row)):
            assert wrapping.row_of(number, character) == row
    assert texts == ["".join(line) for line in parts]


def test_the_rest_of_a_line_stands_beside_its_label_or_sign():
    """What goes on below a label, or below the sign of a difference, is indented; text is not."""

    async def act(app, pane, pilot):
        pane.show(
            [
                (Span("note "), Span("first words and more")),
                (Span("+", "added"), Span("added words and more of", "added")),
                line("plain words and more of"),
            ]
        )
        assert screen(pane) == [
            "note first words and",
            "     more",
            "+added words and",
            " more of",
            "plain words and more",
            "of",
        ]
        assert pane.find(["more of"]) == 2

    showing(act)


def test_words_are_kept_whole_where_they_fit():
    """A break stands after a space, and inside a word only where the row has no space."""

    async def act(app, pane, pilot):
        pane.show([line("a word and another of them"), line("x" * 25), line("汉" * 11)])
        assert screen(pane) == [
            "a word and another",
            "of them",
            "x" * 20,
            "x" * 5,
            "汉" * 10,
            "汉",
        ]

    showing(act)


def test_keys_scroll_at_once():
    """Every key of reading shows the line it says first."""

    async def act(app, pane, pilot):
        pane.show(numbered(100))
        steps = [
            ("down", 1), ("j", 2), ("k", 1), ("up", 0), ("up", 0), ("pagedown", 6), ("ctrl+d", 9),
            ("ctrl+u", 6), ("pageup", 0), ("end", 94), ("home", 0), ("G", 94), ("g", 0),
        ]  # fmt: skip
        for key, first in steps:
            await pilot.press(key)
            assert screen(pane)[0] == f"line {first}", key

    showing(act)


def test_place_is_kept_for_the_same_text_only():
    """Shown again under the same key a text stays where it is; another one begins at its top."""

    async def act(app, pane, pilot):
        pane.show(numbered(50), key="a")
        await pilot.press("pagedown")
        pane.show(numbered(60), key="a")
        assert screen(pane)[0] == "line 6"
        pane.show(numbered(60), key="b")
        assert screen(pane)[0] == "line 0"

    showing(act)


def test_resizing_keeps_the_character_that_is_read():
    """At another width the text is wrapped anew around the words that were at the top; back at
    the first width the screen is what it was."""

    async def act(app, pane, pilot):
        pane.show([line(f"{number} " + "some words " * 5) for number in range(50)])
        await pilot.press("pagedown", "pagedown", "down")
        before = screen(pane)
        top = pane._wrapping.begins(pane.scroll_offset.y)
        for width, height in ((60, 9), (13, 4), (35, 20), (WIDTH, HEIGHT)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            row = pane.scroll_offset.y
            assert pane._wrapping.row_of(*top) == row
        assert screen(pane) == before

    showing(act)


def test_a_long_text_begins_at_once_and_is_all_there():
    """The first screen of a megabyte needs little of it wrapped; the end is reached by a key
    that is pressed long before, and by scrolling."""
    text = [line("words " * 20_000), *numbered(40_000), line("the very end")]

    async def act(app, pane, pilot):
        pane.show(text)
        assert len(pane._wrapping) < 100
        assert screen(pane)[0] == "words words words"
        await pilot.press("end")
        await settled(pilot, pane)
        assert screen(pane)[-1] == "the very end"
        await pilot.press("home")
        assert screen(pane)[0] == "words words words"

    showing(act)


def test_matches_are_shown_counted_and_gone_through():
    """Matches are found without regard to case, `n` and `N` go through them around the end, and
    the one gone to looks different from the others."""

    async def act(app, pane, pilot):
        pane.show([*numbered(40), line("Needle, needle"), *numbered(40), line("NEEDLE")])
        assert pane.find(["needle"]) == 3
        assert "Needle, needle" in screen(pane)
        assert pane.match == (1, 3)
        row = screen(pane).index("Needle, needle")
        (first,), (second,) = styles_of(pane, row, "Needle"), styles_of(pane, row, "needle")
        assert first != second
        assert second == second + pane.style_of("match")
        await pilot.press("n", "n")
        assert pane.match == (3, 3)
        assert "NEEDLE" in screen(pane)
        await pilot.press("n", "N", "N")
        assert pane.match == (2, 3)
        assert "Needle, needle" in screen(pane)

    showing(act)


def test_what_is_not_sought_lets_its_key_go_on():
    """Without a match `n` is for whoever else wants it; nothing is marked."""

    async def act(app, pane, pilot):
        pane.show(numbered(3))
        assert pane.find(["["]) == 0
        await pilot.press("n")
        assert pane.find([]) == 0
        assert app.told == ["n"]
        assert screen(pane)[:3] == ["line 0", "line 1", "line 2"]

    showing(act)


@example(["", "", "", "", "a a a a a\t\t\t", "aa"], "aa")
@settings(max_examples=10)
@given(st.lists(st.text("ab \t", max_size=60), min_size=1, max_size=6), st.text("ab", min_size=1))
def test_highlighting_changes_no_character(texts, sought):
    """With matches shown, also across rows, the screen says what it said without."""

    async def act(app, pane, pilot):
        pane.show([(Span(text[:9], "title"), Span(text[9:])) for text in texts])
        before = screen(pane)
        pane.find([sought])
        pane.scroll_to(y=0, force=True)
        assert screen(pane) == before

    showing(act)


def test_the_line_with_the_most_words_is_gone_to():
    """All words are marked; the text begins with the line that has most of them."""

    async def act(app, pane, pilot):
        pane.show([line("red"), *numbered(40), line("a green boat, a red boat"), line("green")])
        assert pane.find(["red", "boat", "green"]) == 6
        assert pane.match == (2, 6)
        assert any("green boat" in row for row in screen(pane))

    showing(act)


def test_a_short_word_is_marked_as_a_whole():
    """Where longer ones are sought, too; alone it is what is being typed."""

    async def act(app, pane, pilot):
        pane.show([line("Moving a file that has a hash, or is shared, in it")])
        assert pane.find(["moving", "a", "file", "in"]) == 5
        assert pane.find(["a"]) == 6
        assert pane.find(["文", "file"]) == 1

    showing(act)


def test_a_match_stays_the_one_gone_to():
    """The same text shown again, as after a sync, keeps its matches and the one gone to."""

    async def act(app, pane, pilot):
        pane.show(numbered(40), key="a")
        pane.find(["line 3"])
        await pilot.press("n")
        pane.show(numbered(40), key="a")
        pane.find(["line 3"])
        assert pane.match == (2, 11)

    showing(act)


LINKED = [
    (Span("see "), Span("one", "link", 3, "one.md"), Span(" or "), Span("two", "link", 3, "b")),
    *numbered(40),
    (Span("far", "link", 44, ("c", 7)),),
]


def test_a_link_is_followed_with_enter_a_letter_or_a_click():
    """Enter follows the only link in sight; of several it shows a letter for each; another key
    leaves them as they are. Without any the key goes on."""

    async def act(app, pane, pilot):
        pane.show(LINKED, key="a")
        await pilot.press("enter")
        assert screen(pane)[0] == "see ane or swo"
        await pilot.press("s")
        assert screen(pane)[0] == "see one or two"
        await pilot.press("enter", "escape", "a")
        await pilot.click(pane, offset=(5, 0))
        await pilot.click(pane, offset=(1, 0))
        await pilot.press("end", "enter", "home", "down", "enter")
        assert app.told == ["b", "one.md", ("c", 7), "enter"]

    showing(act)


def test_a_click_below_a_short_text_follows_nothing():
    """Also where its first line has a link."""

    async def act(app, pane, pilot):
        pane.show([(Span("see "), Span("one", "link", leads_to="one.md"))], key="a")
        await pilot.click(pane, offset=(5, 3))
        assert app.told == []
        await pilot.click(pane, offset=(5, 0))
        assert app.told == ["one.md"]

    showing(act)


def test_a_place_names_the_line_of_the_file():
    """Of the words at the place, else of what follows."""

    async def act(app, pane, pilot):
        pane.show(
            [(Span("", line=4), Span("a "), Span("b", line=5)), line("x"), (Span("c", line=9),)]
        )
        assert [pane.line_of_file(place) for place in ((0, 0), (0, 2), (1, 0), (2, 0))] == [
            4,
            5,
            9,
            9,
        ]

    showing(act)


def test_text_is_selected_with_the_mouse():
    """What was dragged over is drawn so and copied, rows of one line as one."""

    async def act(app, pane, pilot):
        pane.show([line("the quick brown fox jumps over"), line("the lazy dog")])
        await pilot.mouse_down(pane, offset=(4, 0))
        await pilot.hover(pane, offset=(7, 2))
        await pilot.mouse_up(pane, offset=(7, 2))
        assert app.screen.get_selected_text() == "quick brown fox jumps over\nthe lazy"
        assert styles_of(pane, 0, "quick brown fox ")

    showing(act)


def test_text_shown_before_there_is_a_screen_is_there():
    """A text given to a pane that has no size yet is shown when it has one."""

    def early():
        pane = TextPane(id="shown")
        pane.show([line("early")], key="a")
        return pane

    async def act(app, pane, pilot):
        assert screen(pane)[0] == "early"

    showing(act, early)


def shapes(palette):
    """The attributes that words of each severity have, colours left out."""
    return [palette.of(role).without_color for role in ("error", "warning", "note", "text")]


def test_severities_differ_in_shape_without_colours():
    """Without colours every severity still looks unlike the others, and the cursor is seen."""
    palette = Palette({}, Color.parse("#000000"), no_color=True)
    assert len(set(shapes(palette))) == 4
    assert palette.cursor.reverse
    assert palette.resting.underline


def test_every_theme_has_a_style_for_every_role():
    """In every theme, in the terminal's own colours too, words can be told from what is behind
    them; a theme may choose the colour of a role itself."""
    app = App()
    for name in app.available_themes:
        app.theme = name
        variables = app.get_css_variables()
        background = Color.parse(variables["background"])
        palette = Palette(variables, background, no_color=False)
        for role in ROLES:
            style = palette.of(role)
            assert style.color is not None
            behind = style.bgcolor or background.rich_color
            # The terminal's default is one colour before and another behind.
            assert style.color != behind or style.color.is_default, (name, role)
    chosen = Palette({"role-error": "#123456"}, Color.parse("#000000"), no_color=False)
    assert chosen.of("error").color.get_truecolor() == (0x12, 0x34, 0x56)
