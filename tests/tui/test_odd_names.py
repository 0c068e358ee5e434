"""The lists of Browse over names and texts that no list is made for, without a terminal."""

import os

import pytest
from rich.cells import cell_len

from filestore.browse import InspectedStore

from .test_browse import UNSAFE, browse, press, seen, shows, until

SIZES = ((120, 40), (80, 24), (60, 16))
NAMES = {
    "tab\there": "Tabs\tin\ttitles",
    "esc\x1b[31mred": "An escape \x1b[2J and \x9b31m",
    "turned\u202etxt": "Turned \u202e words \u2066 here",
    "日本語の覚書": "全角の見出し、幅は二つ",
    "family👨‍👩‍👧‍👦": "Joined 👩🏽‍💻 signs ⚠️",
    "مرحبا": "عنوان طويل بعض الشيء",
    "e\u0301tude": "Combined e\u0301 letters",
}
LONG = "endless" * 1_429


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A store in which every name is odd, and one title has ten thousand letters."""
    folder = tmp_path_factory.mktemp("odd")
    made = str(folder / "file_index")
    with InspectedStore.create(
        made, layout="tree", embedder="builtin", configuration=made
    ) as store:
        for name, title in {**NAMES, "long": LONG}.items():
            below = os.path.join(made, "chunked", name)
            os.mkdir(below)
            for number in (1, 2, 10):
                with open(os.path.join(below, f"chunk{number}.md"), "w") as file:
                    file.write(f"# {title}\n\nCommon words of {title}, number {number}.\n")
        store.sync()
    return made


def is_whole(page):
    """Every line is as wide as the screen, and holds nothing that a terminal obeys.

    Not that of a field: Textual parts joined signs where its cursor is.
    """
    lines = seen(page).splitlines()
    del lines[1]
    assert all(cell_len(line) == page.size.width for line in lines), lines
    assert not UNSAFE.search("".join(lines))
    return True


@pytest.mark.parametrize("size", SIZES)
def test_odd_names_are_filtered_sorted_and_searched(root, size):
    """Every name is found by its own letters, sorted by every column, and read from a hit."""

    async def act(page, pilot):
        outline, search = page.view.outline, page.view.search
        for column in ("title", "-size", "date", "drift", "-name", ""):
            outline.sort(column)
            await pilot.pause()
            assert is_whole(page)
        for name in (*NAMES, "long"):
            await press(pilot, "slash")
            page.focused.value = "".join(one for one in name if one.isprintable())[:4]
            await until(pilot, lambda name=name: name in outline.model.tops[:1])
            assert is_whole(page)
            await press(pilot, "escape")
        page.view.search_for("common words")
        await until(pilot, lambda: len(search.hits.rows) > len(NAMES))
        for _ in range(len(search.hits.rows)):
            await press(pilot, "j")
            assert is_whole(page)
        path = search.path
        await press(pilot, "enter")
        await until(pilot, lambda: outline.path == path)
        await pilot.pause(0.1)
        assert is_whole(page)

    browse(root, act, size=size)


@pytest.mark.parametrize(
    "text", ["\t", "\x1b[31m", "\u202e", LONG, "~(" * 50, "!" * 9, "👨‍👩‍👧‍👦", "[/b]"]
)
def test_anything_may_be_typed(root, text):
    """A filter and a search of any signs are answered, and everything is there again behind."""

    async def act(page, pilot):
        search = page.view.search
        await press(pilot, "slash")
        page.focused.value = text
        await pilot.pause(0.3)
        assert is_whole(page)
        await press(pilot, "escape")
        await shows(pilot, "8 documents")
        page.view.search_for("common")
        await until(pilot, lambda: bool(search.path))
        await press(pilot, "s")
        page.focused.value = text
        await until(pilot, lambda: not search.is_asking)
        assert is_whole(page)
        await press(pilot, "enter")
        await until(pilot, lambda: not search.is_asking)
        assert is_whole(page)

    browse(root, act)


def test_keys_at_two_hundred_a_second_are_all_taken(root):
    """Moving, and typing in a filter and in a search: the last key leaves what it should."""

    async def act(page, pilot):
        async def hold(keys):
            for key in keys:
                page.simulate_key(key)
                await pilot.pause(0.005)

        rows, search = page.view.outline.rows, page.view.search
        await press(pilot, "equals_sign")
        await until(pilot, lambda: len(rows.rows) == 4 * (len(NAMES) + 1))
        await hold(["j"] * 200 + ["k"] * 200)
        await until(pilot, lambda: rows.cursor_key == rows.rows.key(0))
        await press(pilot, "slash")
        await hold("endless" * 20)
        await until(pilot, lambda: page.focused.value == "endless" * 20)
        await until(pilot, lambda: list(page.view.outline.model.tops) == ["long"])
        await press(pilot, "escape")
        page.view.search_for("common")
        await until(pilot, lambda: bool(search.path))
        await press(pilot, "s")
        await hold("combinedletters" * 10 + "common")
        await until(pilot, lambda: search.input.value.endswith("common"))
        await hold(["backspace"] * 150)
        await until(pilot, lambda: search.input.value == "combin" and not search.is_asking)
        await until(pilot, lambda: search.query_words == "combin" and bool(search.path))

    browse(root, act)
