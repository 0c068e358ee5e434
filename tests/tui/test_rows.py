"""Lists of rows as somebody at the keyboard sees them: place, marks, drawing; without a store."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events
from textual.app import App

from tui.formatting import Span, arrow, line
from tui.state.rows import Rows
from tui.widgets.drawing import fitted, in_ascii
from tui.widgets.rows import MOST_MARKED, VirtualRows

HEIGHT = 10
WIDTH = 20


class Named(Rows):
    """Rows that are their keys, in a list that may change."""

    def __init__(self, names):
        self.names = list(names)
        self.absent = set()
        self.wanted = []
        self.drawn = 0

    def __len__(self):
        return len(self.names)

    def row(self, index):
        self.drawn += 1
        name = self.names[index]
        return None if name in self.absent else line(name)

    def key(self, index):
        return self.names[index]

    def index_of(self, key):
        return self.names.index(key) if key in self.names else None

    def want(self, first, last):
        self.wanted.append((first, last))


class Counted(Named):
    """A million rows or more, none of which is anywhere."""

    def __init__(self, total):
        super().__init__(())
        self.total = total
        self.asked = 0

    def __len__(self):
        return self.total

    def row(self, index):
        self.asked += 1
        return line(f"row {index}")

    def key(self, index):
        self.asked += 1
        return index

    def index_of(self, key):
        return key if isinstance(key, int) and 0 <= key < self.total else None


class ListApp(App):
    """One list, and what it told."""

    CSS = "Screen { layout: vertical; } VirtualRows { height: 1fr; }"

    def __init__(self, rows, **options):
        super().__init__()
        self.list = VirtualRows(**options)
        self.given = rows
        self.told = []
        self.escaped = 0

    def compose(self):
        yield self.list

    def on_mount(self):
        if self.list.rows is not self.given:
            self.list.show(self.given)
        self.list.focus()

    def on_virtual_rows_highlighted(self):
        self.told.append(("at", self.list.cursor_key))

    def on_virtual_rows_chosen(self, event):
        self.told.append(("chosen", event.key))

    def on_virtual_rows_marked(self):
        self.told.append(("marked", len(self.list.marks)))

    def key_escape(self):
        self.escaped += 1


def listing(rows, act, *, size=(WIDTH, HEIGHT), **options):
    """Show rows and do something with them."""

    async def session():
        app = ListApp(rows, **options)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await act(app, app.list, pilot)

    asyncio.run(session())


def screen(rows):
    """The lines that a list shows, as text; each is exactly as wide as the list."""
    strips = rows.render_lines(rows.size.region)
    assert all(strip.cell_length == rows.size.width for strip in strips)
    return [strip.text.rstrip() for strip in strips]


def names(total):
    """Rows 0 to one less than the total."""
    return [f"row {number}" for number in range(total)]


def test_keys_move_the_cursor_and_the_view():
    """Every key of moving puts the cursor where it says, in sight, and tells the new row."""

    async def act(app, rows, pilot):
        steps = [
            ("down", 1), ("j", 2), ("k", 1), ("up", 0), ("up", 0),
            ("pagedown", 10), ("ctrl+d", 15), ("ctrl+u", 10), ("pageup", 0),
            ("end", 99), ("home", 0), ("G", 99), ("g", 0),
        ]  # fmt: skip
        for key, expected in steps:
            await pilot.press(key)
            assert rows.cursor_key == f"row {expected}", key
            assert f"> row {expected}" in screen(rows), key
        assert app.told[-1] == ("at", "row 0")

    listing(Named(names(100)), act)


def test_page_keeps_the_cursor_on_its_line():
    """A page down moves what is seen, not the place of the cursor on the screen."""

    async def act(app, rows, pilot):
        await pilot.press("down", "down", "pagedown")
        assert screen(rows)[2] == "> row 12"

    listing(Named(names(100)), act)


@settings(max_examples=25)
@given(st.data())
def test_changes_keep_cursor_and_line(data):
    """Whatever rows come and go, the cursor stays on its row and the row on its line; where it
    went, the nearest row after it has its place, else the nearest before."""
    start = data.draw(st.integers(1, 60))
    changes = data.draw(
        st.lists(
            st.tuples(
                st.integers(0, 60),
                st.lists(st.integers(0, 80), max_size=6),
                st.lists(st.integers(0, 80), max_size=6),
                st.booleans(),
            ),
            min_size=1,
            max_size=5,
        )
    )

    async def act(app, rows, pilot):
        model, fresh = app.given, iter(range(1000))
        for cursor, removed, added, also_cursor in changes:
            rows.move_to(model.names[min(cursor, len(model.names) - 1)])
            before, key = list(model.names), rows.cursor_key
            at, line_before = before.index(key), before.index(key) - rows.scroll_offset.y
            gone = {before[one % len(before)] for one in removed}
            gone = gone | {key} if also_cursor else gone - {key}
            model.names = [name for name in before if name not in gone]
            for place in added:
                model.names.insert(place % (len(model.names) + 1), f"new {next(fresh)}")
            if not model.names:
                model.names.append("the last one")
            rows.changed()
            left = [*before[at:], *reversed(before[:at])]
            expected = next((name for name in left if name in model.names), None)
            if expected is not None:
                assert rows.cursor_key == expected
            now = model.names.index(rows.cursor_key)
            most = max(len(model.names) - HEIGHT, 0)
            assert rows.scroll_offset.y == min(max(now - line_before, 0), most)
            assert screen(rows)[now - rows.scroll_offset.y].startswith(">")

    listing(Named(names(start)), act)


def test_new_rows_never_move_the_cursor():
    """Rows that come above and below leave the screen around the cursor as it is."""

    async def act(app, rows, pilot):
        await pilot.press(*["down"] * 15)
        before = screen(rows)
        for number in range(30):
            app.given.names.insert(0, f"above {number}")
            app.given.names.append(f"below {number}")
            rows.changed()
        await pilot.pause()
        assert screen(rows) == before
        assert app.told.count(("at", "row 15")) == 1

    listing(Named(names(40)), act)


def test_resizes_leave_cursor_and_top_row():
    """After many resizes back to the first size the screen is what it was."""

    async def act(app, rows, pilot):
        await pilot.press(*["down"] * 20)
        before = screen(rows)
        for number in range(20):
            await pilot.resize_terminal(WIDTH + number % 3, (4, 25, 7, HEIGHT)[number % 4])
            assert any(drawn.startswith("> row 20") for drawn in screen(rows))
        await pilot.resize_terminal(WIDTH, HEIGHT)
        await pilot.pause()
        assert screen(rows) == before

    listing(Named(names(100)), act)


def test_a_million_rows_cost_what_is_in_sight():
    """No key asks for more than some rows around the cursor, however many there are."""

    async def act(app, rows, pilot):
        for key in ("end", "pageup", "home", "pagedown", "down", "space", "G"):
            app.given.asked = 0
            await pilot.press(key)
            assert app.given.asked < 400, key
        app.given.asked = 0
        app.given.total += 500_000
        rows.changed()
        assert rows.cursor_key == 999_999
        assert app.given.asked < 400

    listing(Counted(1_000_000), act)


def test_rows_in_sight_are_wanted_with_a_page_each_side():
    """What is in sight is asked for with a page each side, and only when that is other rows."""

    async def act(app, rows, pilot):
        assert app.given.wanted == [(0, 20)]
        await pilot.press("down")
        assert app.given.wanted == [(0, 20)]
        await pilot.press("pagedown", "pagedown")
        assert app.given.wanted[-1] == (10, 40)
        await pilot.press("end")
        assert app.given.wanted[-1] == (80, 100)

    listing(Named(names(100)), act)


def test_rows_that_are_not_there_yet_are_drawn_when_they_come():
    """A row without words is three dots, until it is told that they came."""

    async def act(app, rows, pilot):
        assert screen(rows)[:2] == ["> …", "  row 1"]
        app.given.absent.clear()
        rows.loaded(0, 1)
        await pilot.pause()
        assert screen(rows)[0] == "> row 0"

    model = Named(names(3))
    model.absent = {"row 0"}
    listing(model, act)


def test_space_marks_and_steps_down():
    """Space marks a row with a sign and goes on; on a marked row it takes the mark back."""

    async def act(app, rows, pilot):
        await pilot.press("space", "space")
        assert rows.marks == {"row 0", "row 1"}
        assert screen(rows)[:3] == [" *row 0", " *row 1", "> row 2"]
        await pilot.press("up", "space")
        assert rows.marks == {"row 0"}
        assert app.told[-2:] == [("marked", 1), ("at", "row 2")]

    listing(Named(names(5)), act)


def test_range_follows_the_cursor_both_ways():
    """A range holds the rows between its start and the cursor, and leaves older marks alone."""

    async def act(app, rows, pilot):
        rows.move_to("row 3")
        await pilot.press("space", "v", "down", "down")
        assert rows.marks == {"row 3", "row 4", "row 5", "row 6"}
        await pilot.press("up", "up", "up", "up")
        assert rows.marks == {"row 2", "row 3", "row 4"}
        await pilot.press("v", "home")
        assert rows.marks == {"row 2", "row 3", "row 4"}
        await pilot.press("shift+down", "shift+down", "escape")
        assert rows.marks == {"row 2", "row 3", "row 4"}
        assert app.escaped == 0
        await pilot.press("escape")
        assert rows.marks == set()
        await pilot.press("escape")
        assert app.escaped == 1

    listing(Named(names(20)), act)


def test_all_rows_are_marked_up_to_a_limit():
    """One key marks all that is shown; too many are refused with the reason."""

    async def act(app, rows, pilot):
        await pilot.press("a")
        assert rows.marks == set(names(30))

    async def refused(app, rows, pilot):
        await pilot.press("a")
        assert rows.marks == set()
        await pilot.press("v", "end")
        assert rows.marks == {0}
        said = [notice.message for notice in app._notifications]
        assert len(said) == 2
        assert all(f"{MOST_MARKED:,}" in message for message in said)

    listing(Named(names(30)), act)
    listing(Counted(MOST_MARKED + 1), refused)


def test_a_heading_marks_what_it_stands_for():
    """A row may mark others instead of itself, and shows a mark once they all are."""

    def marked_with(key):
        return ("row 1", "row 2") if key == "row 0" else (key,)

    async def act(app, rows, pilot):
        await pilot.press("space")
        assert rows.marks == {"row 1", "row 2"}
        assert screen(rows)[:4] == [" *row 0", ">*row 1", " *row 2", "  row 3"]
        await pilot.press("space")
        assert screen(rows)[:3] == ["  row 0", "  row 1", ">*row 2"]

    listing(Named(names(4)), act, marked_with=marked_with)


def test_a_list_without_marks_lets_their_keys_go_on():
    """Where nothing can be marked there is no column for it, and no key does it."""

    async def act(app, rows, pilot):
        await pilot.press("space", "a", "v", "escape")
        assert rows.marks == set()
        assert app.escaped == 1
        assert screen(rows)[:2] == [">row 0", " row 1"]

    listing(Named(names(2)), act, marking=False)


def test_marks_may_be_a_set_of_the_owner():
    """Marks put into the owner's set are shown, and keys change that very set."""

    async def act(app, rows, pilot):
        shared = {"row 1"}
        rows.marks = shared
        await pilot.press("space")
        assert shared == {"row 0", "row 1"}
        assert screen(rows)[1] == ">*row 1"

    listing(Named(names(3)), act)


def test_mouse_moves_chooses_and_scrolls():
    """A click moves the cursor, a double click chooses, the wheel leaves the cursor alone."""

    async def act(app, rows, pilot):
        await pilot.click(rows, offset=(3, 4))
        assert rows.cursor_key == "row 4"
        await pilot.click(rows, offset=(3, 2), times=2)
        assert app.told[-1] == ("chosen", "row 2")
        for _ in range(5):
            await pilot._post_mouse_events([events.MouseScrollDown], rows)
        await pilot.pause()
        assert rows.cursor_key == "row 2"
        await pilot.press("down")
        assert "> row 3" in screen(rows)

    listing(Named(names(100)), act)


def test_enter_chooses_and_an_empty_list_does_nothing():
    """Enter tells the row under the cursor; an empty list lets every key pass."""

    async def act(app, rows, pilot):
        await pilot.press("down", "enter")
        assert app.told[-1] == ("chosen", "row 1")
        app.given.names.clear()
        rows.changed()
        assert rows.cursor_key is None
        await pilot.press("down", "end", "space", "a", "v", "enter", "pagedown")
        assert app.told[-1] == ("at", None)
        assert screen(rows) == [""] * HEIGHT

    listing(Named(names(3)), act)


def test_rows_shown_before_there_is_a_screen_are_there():
    """Rows given to a list that has no size yet are shown when it has one, at their key."""

    async def session():
        app = ListApp(Named(names(50)))
        app.list.show(app.given, at="row 30")
        async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
            await pilot.pause()
            assert "> row 30" in screen(app.list)
            assert app.told == [("at", "row 30")]

    asyncio.run(session())


def test_a_row_is_found_again_by_its_key():
    """Rows shown anew begin at a key, in sight; an unknown one gives the first row."""

    async def act(app, rows, pilot):
        rows.show(app.given, at="row 77")
        await pilot.pause()
        assert "> row 77" in screen(rows)
        assert not rows.move_to("nowhere")
        rows.show(app.given, at="nowhere")
        await pilot.pause()
        assert screen(rows)[0] == "> row 0"

    listing(Named(names(100)), act)


@settings(max_examples=20)
@given(st.lists(st.lists(st.text(max_size=40), max_size=3), min_size=1, max_size=8))
def test_every_line_is_as_wide_as_the_list(texts):
    """Wide, combining and joined characters are cut by cells, whatever they are."""

    class Texts(Named):
        def row(self, index):
            return tuple(Span(part.replace("\n", " ")) for part in texts[index])

    async def act(app, rows, pilot):
        for drawn in rows.render_lines(rows.size.region):
            assert sum(cell_len(part.text) for part in drawn) == WIDTH

    listing(Texts(range(len(texts))), act)


def test_cut_rows_say_so_also_in_ascii():
    """A row that does not fit ends in an ellipsis, of dots where there is only ASCII."""

    async def act(app, rows, pilot):
        assert screen(rows)[0] == "> wwwwwwwwwwwwwwwww…"
        assert screen(rows)[1] == "  汉汉汉汉汉汉汉汉 …"
        app.ascii = True
        rows.show(app.given)
        assert screen(rows)[0] == "> wwwwwwwwwwwwwww..."

    listing(Named(["w" * 40, "汉" * 40]), act)


@pytest.mark.parametrize(("is_open", "sign"), [(True, "- "), (False, "+ ")])
def test_the_sign_of_a_row_that_opens_is_told_in_ascii(is_open, sign):
    """An opened row has another sign than a closed one, also where there is only ASCII."""
    (drawn,) = in_ascii((Span(arrow(is_open=is_open), "quiet"),))
    assert drawn.text == sign


@pytest.mark.parametrize("width", range(20, 40))
def test_a_path_that_is_too_long_keeps_its_end(width):
    """What tells it from others in its folder; what follows it goes, and it is never too wide."""
    path = Span("field-guide/finding/asking-good-questions/\u4e2d\u6587-chunk12.md", keeps_end=True)
    found = fitted((Span("  0.28 "), path, Span("  Headings", "quiet")), width, "…")
    shown = "".join(one.text for one in found)
    assert shown.startswith("  0.28 …")
    assert shown.endswith("12.md")
    assert cell_len(shown) <= width


def test_a_path_is_cut_at_its_end_where_there_is_no_room_for_it():
    """A few letters of its end say less than its beginning."""
    path = Span("field-guide/chunk12.md", keeps_end=True)
    assert "".join(one.text for one in fitted((path,), 8, "…")) == "field-g…"
    assert fitted((path,), 22, "…") == (Span("field-guide/chunk12.md"),)
