"""Browse as somebody at the keyboard sees it, on a store on disk, without a terminal."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

import tui
from filestore import FilestoreError, Finding
from filestore.browse import InspectedStore
from tui.app.frame import Frame, Options
from tui.formatting.findings import Coverage
from tui.state.rows import Document
from tui.views.browse import BrowseView
from tui.views.browse_rows import located
from tui.views.context import Target
from tui.workers.session_file import Saved
from tui.workers.task_manager import TaskManager
from tui.workers.tasks import Opening

from .processes import children

PATIENCE_S = 90
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
FILLER = " ".join(f"Sentence {number} only fills the page." for number in range(30))
GUIDE = f"""# Guide

## Renames

A renamed file keeps its vectors, because an identifier is made of text.

{FILLER}

## Escapes

Colour \x1b[31mred\x1b[0m, an entity &#x9b;31m and &#x202e;, [bold]markup[/bold], \u202eturned.

{FILLER.replace("page", "book")}

## Last words

A renamed file has the same text, and the text is all that is embedded.

{FILLER.replace("page", "shelf")}
"""
LONG = "long/chunk1.md"


class Page(Frame):
    """The frame with this page alone."""

    CSS_PATH = os.path.join(os.path.dirname(tui.app.__file__), "inspector.tcss")

    def on_mount(self) -> None:
        self.root = self.options.store
        self.task_manager = TaskManager(
            Opening(root=self.root, configuration=self.options.configuration),
            post=self.post,
            failed=self.fail,
            changed=self.work_changed,
        )
        self.go("browse")

    def make_page(self, place: str) -> BrowseView:
        assert place == BrowseView.place
        return BrowseView(self)

    def on_unmount(self) -> None:
        self.task_manager.end()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store of three resources, one of which has a long chunk that was written by hand."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "guide.md").write_text(GUIDE)
    (folder / "list.txt").write_text("Milk and bread.\n")
    root = str(folder / "file_index")
    with InspectedStore.create(
        root, layout="tree", embedder="builtin", configuration=root
    ) as store:
        for name in ("guide.md", "list.txt"):
            store.add(folder / name)
        os.mkdir(os.path.join(root, "chunked", "long"))
        write(root, LONG, "".join(f"Line {number} of it.\n" for number in range(10_000)))
        store.sync()
    return root


@pytest.fixture
def root(made, tmp_path):
    """A copy of it."""
    return shutil.copytree(made, str(tmp_path / "file_index"))


def write(root, path, text):
    """Write a file below `chunked/`."""
    with open(os.path.join(root, "chunked", path), "w", encoding="utf-8") as file:
        file.write(text)


def browse(
    root: str,
    act: Callable[[Page, Pilot], Awaitable[None]],
    size: tuple[int, int] = (110, 30),
    saved: dict[str, object] | None = None,
    **options: object,
) -> None:
    """Open the page and do something with it."""

    async def session() -> None:
        page = Page(Options(store=root, configuration=root, environment={}, **options))
        page.saved = Saved(views={"browse": saved or {}})
        async with page.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: is_there(page))
            # As for the first key.
            await page.complete()
            await act(page, pilot)
            assert not page.errors
            assert not UNSAFE.search(seen(page).replace("\n", ""))

    asyncio.run(session())


def is_there(page):
    """Whether the page shows what the store has, or why that cannot be known."""
    said = seen(page)
    return " documents · " in said or "from its files" in said or "-reading" in classes(page)


def classes(page):
    """Of the page."""
    return page.view.classes


def seen(page):
    """Everything on the screen, line by line."""
    lines = page.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in one) for one in lines)


def listed(page):
    """The rows of the list."""
    return "\n".join(line.partition("│")[0] for line in seen(page).splitlines())


async def until(pilot, reached):
    """Let the page go on until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, seen(pilot.app)
        await pilot.pause(0.01)


async def shows(pilot, *words):
    """Wait until all these words are on the screen."""
    await until(pilot, lambda: all(one in seen(pilot.app) for one in words))


async def press(pilot, *keys):
    """Press keys, one after the other."""
    for key in keys:
        await pilot.press(key)


def chunk(root, containing):
    """The path of the chunk file with this text, relative to the store root."""
    for folder, _, names in os.walk(os.path.join(root, "chunked")):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                if name.endswith(".md") and containing in file.read():
                    return os.path.relpath(path, root)
    raise AssertionError(f"no chunk with {containing!r}")


def test_resources_open_and_close(root):
    """Enter shows the files of a resource in reading order, h goes up to it and closes it."""

    async def act(page, pilot):
        assert "chunk1.md" not in listed(page)
        await press(pilot, "enter")
        await shows(pilot, "chunk1.md", "chunk3.md")
        with InspectedStore(root, configuration=root) as store:
            expected = [os.path.basename(one["path"]) for one in store.chunks("guide.md")]
        assert re.findall(r"chunk\d+\.md", listed(page)) == expected
        await press(pilot, "down", "down", "h")
        assert page.view.outline.key == ("guide.md",)
        await press(pilot, "h")
        await until(pilot, lambda: "chunk1.md" not in listed(page))
        await press(pilot, "equals_sign")
        await shows(pilot, "chunk3.md", "▾ list.txt", "▾ long")
        await press(pilot, "minus")
        await until(pilot, lambda: "chunk1.md" not in listed(page))

    browse(root, act)


def test_text_is_shown_with_its_escapes_made_visible(root):
    """The chunk under the cursor is shown; controls are spelt out, also those from entities."""
    path = chunk(root, "Colour")

    async def act(page, pilot):
        page.open_path = page.view.open_path
        page.open_path(path)
        await shows(pilot, "Colour \\x1b[31mred", "[bold]markup[/bold]", "\\u202eturned")
        await press(pilot, "o")
        await shows(pilot, "## Escapes", "&#x9b;31m", "\\u202eturned")
        await press(pilot, "o")
        await until(pilot, lambda: "&#x9b;31m" not in seen(page))

    browse(root, act)


def test_facts_tell_what_the_catalog_knows(root):
    """Metadata, source, vectors and hashes of the chunk under the cursor are one key away."""
    path = chunk(root, "## Renames")

    async def act(page, pilot):
        page.view.open_path(path)
        await press(pilot, "f")
        with InspectedStore(root, configuration=root) as store:
            known = store.about_file(path)
        await shows(pilot, f"body       {known.vectors[0].id}", known.file_hash, "Hashes")
        await shows(pilot, "guide.md", "by hand    no")

    browse(root, act)


def test_the_filter_keeps_what_matches(root):
    """Words, their opposite and expressions leave their files; escape shows all again."""

    async def typed(page, pilot, text):
        await press(pilot, "slash")
        page.focused.value = text
        await until(pilot, lambda: "esc: all" in seen(page))
        shown = set(page.view.outline.model.tops)
        await press(pilot, "escape")
        await shows(pilot, "3 documents")
        return shown

    async def act(page, pilot):
        assert await typed(page, pilot, "GUIDE") == {"guide.md"}
        assert await typed(page, pilot, "gde rnm") == {"guide.md"}
        assert await typed(page, pilot, "!guide") == {"list.txt", "long"}
        assert await typed(page, pilot, "~^l.*1") == {"list.txt", "long"}
        await press(pilot, "slash")
        page.focused.value = "~("
        await shows(pilot, "invalid regular expression")
        await press(pilot, "escape")
        await shows(pilot, "3 documents")

    browse(root, act)


def test_escape_from_the_filter_returns_to_where_the_cursor_was(root):
    """After a filter that left nothing, or something else, the cursor is on its chunk again."""
    path = chunk(root, "Last words")

    async def act(page, pilot):
        page.view.open_path(path)
        await until(pilot, lambda: page.view.outline.path == path)
        for text, said in (("nowhere", "0 chunks of 0 documents"), ("list", "1 chunk of")):
            await press(pilot, "slash", *text)
            await shows(pilot, said)
            await press(pilot, "escape")
            await shows(pilot, "3 documents")
            assert page.view.outline.path == path
            await until(pilot, lambda: page.view.detail.path == path)
        await press(pilot, "slash", *"list", "enter")
        await shows(pilot, "1 chunk of")
        await press(pilot, "G", "escape")
        await shows(pilot, "3 documents", "chunk1.md")
        await until(pilot, lambda: page.view.outline.path == chunk(root, "Milk and bread"))

    browse(root, act)


def test_a_filter_that_takes_long_says_so(root):
    """While it is not known what a filter leaves, that is said."""

    async def act(page, pilot):
        gate = threading.Event()
        page.task_manager.read(lambda _: gate.wait(9 * PATIENCE_S), print_nothing, group="")
        await press(pilot, "slash", *"long")
        await shows(pilot, "filtering … long")
        gate.set()
        await shows(pilot, "1 chunk of 1 document")
        assert "filtering" not in seen(page)

    browse(root, act)


def test_a_search_takes_the_place_of_the_tree(root):
    """Hits of the whole store are gone through like the tree, until escape brings it back."""

    async def act(page, pilot):
        await press(pilot, "s")
        page.focused.value = "bread"
        await press(pilot, "enter")
        await shows(pilot, "list.txt", "Milk and bread.", "hybrid")
        assert page.action_context().query == "bread"
        await press(pilot, "l")
        assert page.focused is page.view.detail.reader
        assert page.view.detail.reader.match[1] == 1
        await press(pilot, "escape")
        assert page.focused is page.view.search.hits
        # The list leads through the matches of the text, too.
        await press(pilot, "N")
        assert "no match in this text" not in seen(page)
        await press(pilot, "ctrl+t", "ctrl+t")
        await shows(pilot, "file · keyword")
        await press(pilot, "escape")
        await shows(pilot, "3 documents", "guide.md  ")
        assert page.focused is page.view.outline.rows
        await press(pilot, "s")
        page.focused.value = "v:milk"
        await press(pilot, "enter")
        await shows(pilot, "· vector", "by meaning")

    browse(root, act)


def test_enter_on_a_hit_leads_to_its_place(root):
    """The tree has the cursor on it, its words are marked, and the way back leads to the hits."""

    async def act(page, pilot):
        path = chunk(root, "the same text")
        await press(pilot, "s", *"embedded shelf", "enter")
        await until(pilot, lambda: page.view.search.path == path)
        await press(pilot, "enter")
        await until(pilot, lambda: page.view.outline.path == path)
        assert page.focused is page.view.detail.reader
        await shows(pilot, "3 documents")
        await until(pilot, lambda: page.view.detail.reader.match[1] > 1)
        await press(pilot, "escape")
        assert page.focused is page.view.outline.rows
        assert page.view.outline.path == path
        await press(pilot, "k")
        await until(pilot, lambda: page.view.detail.path not in ("", path))
        assert not page.view.detail.reader.match[1]
        await press(pilot, "ctrl+o")
        await until(pilot, lambda: page.view.search.display)
        assert page.view.search.path == path

    browse(root, act)


def test_what_is_typed_is_searched_once_an_answer_came(root):
    """Before that enter searches; then every key does, the end of a word left open."""

    async def act(page, pilot):
        search = page.view.search
        await press(pilot, "s", *"bread")
        assert not search.is_asking
        await press(pilot, "enter")
        await until(pilot, lambda: search.path == chunk(root, "Milk and bread"))
        await press(pilot, "s", *"renam")
        assert search.input.is_typing
        await until(pilot, lambda: search.hit is not None and "guide.md" in search.path)
        assert not any("renam" in one for one in search.input.earlier)
        await press(pilot, "backspace", "backspace", "backspace", "backspace")
        await until(pilot, lambda: search.query_words == "re" and not search.is_asking)
        assert search.input.is_typing
        await press(pilot, "down")
        assert page.focused is search.hits

    browse(root, act)


def test_queries_of_before_come_back(root):
    """Up takes the last one, then those before; down what is newer, and then the list."""

    async def act(page, pilot):
        search = page.view.search
        for text in ("bread", "milk", "bread"):
            page.view.search_for(text)
            await until(pilot, lambda: not search.is_asking)
        await press(pilot, "s")
        assert search.input.value == "bread"
        search.input.value = ""
        await press(pilot, "up")
        assert search.input.value == "bread"
        await press(pilot, "up", "up", "up")
        assert search.input.value == "milk"
        await press(pilot, "down")
        assert search.input.value == "bread"
        await press(pilot, "down", "down")
        assert page.focused is search.hits
        assert page.view.saved()["queries"] == ["milk", "bread"]
        page.view.restore({"queries": ["salt", 7]})
        assert search.input.earlier == ["salt"]

    browse(root, act)


def test_a_tree_that_is_renewed_behind_a_search_changes_nothing(root):
    """A sync, or a file that changed, renews the hidden tree: the file that is read stays."""

    async def act(page, pilot):
        await press(pilot, "l", "j")
        await shows(pilot, "guide.md/")
        read = page.view.detail.about.path
        await press(pilot, "s", "x")
        page.view.store_changed()
        for _ in range(30):
            await pilot.pause(0.02)
            assert page.view.detail.about is not None
            assert page.view.detail.about.path == read

    browse(root, act)


def test_keys_behind_enter_are_not_part_of_the_question(root):
    """Enter ends the query and the filter at once: keys that come with it go to the list."""

    async def act(page, pilot):
        await press(pilot, "s")
        for key in ("g", "u", "i", "d", "e", "enter", "j", "j"):
            page.simulate_key(key)
        await until(pilot, lambda: page.view.search.query_words == "guide")
        await until(pilot, lambda: page.view.search.hits.cursor_key is not None)
        await until(pilot, lambda: page.focused is page.view.search.hits)
        assert page.view.search.input.value == "guide"
        await press(pilot, "slash")
        for key in ("l", "o", "n", "g", "enter", "j", "j"):
            page.simulate_key(key)
        await shows(pilot, "of 1 document")
        await until(pilot, lambda: page.focused is page.view.outline.rows)
        assert page.view.outline.input.value == "long"

    browse(root, act)


def test_a_question_that_takes_long_can_be_given_up(root):
    """How long it takes is said, the list has the keys, and escape or x ends the waiting."""

    async def asked(page, pilot, text):
        await press(pilot, "s")
        page.focused.value = text
        await press(pilot, "enter")
        assert page.focused is page.view.search.hits

    async def act(page, pilot):
        before = set(children(os.getpid()))
        await asked(page, pilot, "salt")
        await until(pilot, lambda: not page.view.search.is_asking)
        for child in set(children(os.getpid())) - before:
            os.kill(child, signal.SIGSTOP)
        await asked(page, pilot, "bread")
        await shows(pilot, "searching for bread", "asking …", "escape cancels")
        await press(pilot, "escape")
        await shows(pilot, "cancelled: bread")
        assert page.task_manager.stoppable is None
        await asked(page, pilot, "milk")
        await shows(pilot, "searching for milk", "asking …")
        await press(pilot, "x")
        await shows(pilot, "cancelled: milk")
        await press(pilot, "escape")
        await shows(pilot, "3 documents")
        for child in set(children(os.getpid())) - before:
            os.kill(child, signal.SIGCONT)

    browse(root, act)


def test_a_mode_before_the_words_holds_for_them_alone(root):
    """A prefix is for one query; ^t changes it where there is one, else what holds without."""

    async def asked(page, pilot, text):
        await press(pilot, "s")
        page.focused.value = text
        await press(pilot, "enter")
        await until(pilot, lambda: page.view.search.query_words == text[-4:])
        await until(pilot, lambda: not page.view.search.is_asking)

    async def act(page, pilot):
        await asked(page, pilot, "k:milk")
        await shows(pilot, "file · keyword", "by words (k:), this time")
        assert page.action_context().mode == "keyword"
        await press(pilot, "ctrl+t")
        await shows(pilot, "h:milk", "· hybrid")
        await asked(page, pilot, "k:milk")
        await asked(page, pilot, "milk")
        await shows(pilot, "· hybrid", "by meaning and by words  ^t")
        assert page.action_context().mode == "hybrid"
        await press(pilot, "ctrl+t")
        await asked(page, pilot, "milk")
        await shows(pilot, "· vector", "by meaning (v:)  ^t")

    browse(root, act, size=(120, 30))


def test_enter_goes_to_a_neighbour(root):
    """Neighbours are listed with their cosine; enter shows one, and puts the tree on it."""
    path, other = chunk(root, "keeps its vectors"), chunk(root, "the same text")

    async def act(page, pilot):
        page.view.open_path(path)
        await shows(pilot, "keeps its vectors")
        await press(pilot, "b")
        await shows(pilot, "cosine, nearest first")
        neighbours = page.view.detail.neighbours
        await until(pilot, lambda: neighbours.cursor_key is not None)
        assert re.search(r" [01]\.\d\d  ?\w", seen(page))
        assert neighbours.move_to((other, 0))
        await press(pilot, "enter")
        await until(pilot, lambda: page.view.outline.path == other)
        await press(pilot, "t")
        await shows(pilot, "has the same text")

    browse(root, act)


def test_neighbours_that_failed_are_asked_for_again(root):
    """After an error, the same key on the same file asks again."""
    path = chunk(root, "keeps its vectors")

    async def act(page, pilot):
        asked = []

        def ask(job, handlers, **_):
            asked.append(job.name)
            handlers.failed(FilestoreError("the model is not there"))

        page.view.open_path(path)
        await shows(pilot, "keeps its vectors")
        page.task_manager.ask = ask
        await press(pilot, "b")
        await shows(pilot, "the model is not there")
        before = len(asked)
        await press(pilot, "b")
        await until(pilot, lambda: len(asked) > before)

    browse(root, act)


def test_a_wide_screen_has_neighbours_beside_the_text(root):
    """From 140 columns neighbours come by themselves, and the text stays."""
    path = chunk(root, "keeps its vectors")

    async def act(page, pilot):
        page.view.open_path(path)
        await shows(pilot, "keeps its vectors", "cosine, nearest first", "guide.md/chunk")

    browse(root, act, size=(150, 30))


def test_a_narrow_screen_has_one_side_at_a_time(root):
    """Under 90 columns tab and enter lead to the text, tab and escape back to the list."""

    async def act(page, pilot):
        await press(pilot, "enter", "down")
        await until(pilot, lambda: page.view.outline.path != "")
        assert "[Text]" not in seen(page)
        await press(pilot, "tab")
        await shows(pilot, "[Text]", "Guide")
        assert "list.txt" not in seen(page)
        await press(pilot, "tab")
        await shows(pilot, "list.txt")
        await press(pilot, "enter")
        await shows(pilot, "[Text]")
        await press(pilot, "escape")
        await shows(pilot, "list.txt")
        await press(pilot, "f")
        await shows(pilot, "[Facts]", "Vectors")

    browse(root, act, size=(60, 20))


def test_the_map_marks_what_is_selected_and_leads_to_the_next_point(root):
    """Cursor, marked rows and a whole resource are marked; arrows go on, enter opens, m closes."""
    path = chunk(root, "keeps its vectors")

    async def act(page, pilot):
        page.view.open_path(path)
        await shows(pilot, "keeps its vectors")
        await press(pilot, "m")
        total = sum(row.children for row in page.view.outline.resources.values())
        await shows(pilot, f"all {total} passages", "@", "a guide.md", "[Map]")
        drawn = page.view.detail.map
        assert signs(drawn) == 1
        page.view.outline.rows.focus()
        await press(pilot, "space", "j", "space")
        await until(pilot, lambda: signs(drawn) == 3)
        await press(pilot, "escape", "h")
        guide = {
            cell
            for cell, name in zip(drawn._plotted.cells, drawn._found.resources, strict=True)
            if name == "guide.md"
        }
        await until(pilot, lambda: signs(drawn) == len(guide))
        drawn.focus()
        places = set()
        for key in (*["up", "left"] * 9, *["down", "right"] * 9):
            await press(pilot, key)
            places.add(drawn.point)
            x, y = drawn.point
            assert y * drawn._plotted.width + x in drawn._plotted.members
        assert len(places) > 2
        # Every point is reached, in both directions.
        cells = set(drawn._plotted.members)
        for key in ("n", "N"):
            reached = set()
            for _ in cells:
                await press(pilot, key)
                x, y = drawn.point
                reached.add(y * drawn._plotted.width + x)
            assert reached == cells
        target = drawn._found.paths[drawn._at]
        await press(pilot, "enter")
        await until(pilot, lambda: page.view.outline.path == target)
        other = next(number for number, one in enumerate(drawn._found.paths) if one != target)
        row, column = divmod(drawn._plotted.cells[other], drawn._plotted.width)
        place = column + drawn.gutter.left, row + drawn._top
        await pilot.click(drawn, offset=place, times=2)
        await until(pilot, lambda: page.view.outline.path == drawn._found.paths[drawn._at])
        assert drawn.point == (column, row)
        found(page, Finding(code="modified", path=path))
        await shows(pilot, "X")
        await press(pilot, "m")
        await shows(pilot, "[Text]")

    browse(root, act)


def signs(drawn):
    """How many cells of the map are marked."""
    picture = drawn._lines[drawn._top :][: drawn._plotted.height]
    return sum(part.text.count("@") for one in picture for part in one)


def found(page, *findings):
    """Have these findings known."""
    page.findings.replace(findings, Coverage(level="status"), clean=False)
    page.findings_changed()


def test_findings_mark_their_rows(root):
    """Findings stand beside their file, their resource and in the head of the detail."""
    path = chunk(root, "Milk and bread")

    async def act(page, pilot):
        page.view.open_path(path)
        await shows(pilot, "Milk and bread")
        found(page, Finding(code="modified", path=path, detail="its text differs"))
        await shows(pilot, "E x modified", "E1")
        assert page.action_context().codes == ("modified",)
        await press(pilot, "f")
        await shows(pilot, "its text differs", "repair: changed since it was indexed")
        found(page)
        await until(pilot, lambda: "modified" not in seen(page))

    browse(root, act)


def test_a_file_that_is_gone_is_read_as_it_was_indexed(root):
    """A deleted chunk shows its last text, alone and in the whole document; its row is marked."""
    path = chunk(root, "keeps its vectors")
    os.remove(os.path.join(root, path))

    async def act(page, pilot):
        found(page, Finding(code="missing", path=path, detail="the file is gone"))
        page.view.detail.show(Target(resource="guide.md"))
        await shows(pilot, "keeps its vectors", f"{os.path.basename(path)}, as it was indexed")
        assert "chunk more" not in seen(page)
        page.view.open_path(path)
        await shows(pilot, "E x missing", "the file is gone", "the file is not there")
        await shows(pilot, "keeps its vectors")
        await press(pilot, "f")
        await shows(pilot, "on disk    no file")

    browse(root, act)


def test_brackets_go_through_the_chunks(root):
    """`]` and `[` show the chunk after and before, and say where there is none."""

    async def act(page, pilot):
        with InspectedStore(root, configuration=root) as store:
            paths = [one["path"] for one in store.chunks("guide.md")]
        page.view.open_path(paths[0])
        await until(pilot, lambda: page.view.outline.path == paths[0])
        await press(pilot, *["right_square_bracket"] * (len(paths) - 1))
        await until(pilot, lambda: page.view.outline.path == paths[-1])
        for expected in reversed(paths[:-1]):
            await press(pilot, "left_square_bracket")
            await until(pilot, lambda expected=expected: page.action_context().path == expected)
        await until(pilot, lambda: page.view.outline.path == paths[0])
        await press(pilot, "left_square_bracket")
        await shows(pilot, "this is the first chunk")

    browse(root, act)


def test_a_file_that_was_asked_for_stays_while_the_cursor_is_on_its_way(root):
    """Where the cursor is still coming from an earlier file, brackets count from the later one."""

    async def act(page, pilot):
        with InspectedStore(root, configuration=root) as store:
            paths = [one["path"] for one in store.chunks("guide.md")]
        page.view.open_path(paths[0])
        await until(pilot, lambda: page.view.outline.path == paths[0])
        await until(pilot, lambda: page.view.detail.path == paths[0])
        gate = threading.Event()
        page.task_manager.read(
            lambda _: gate.wait(9 * PATIENCE_S), print_nothing, group="", urgent=True
        )
        page.view.open_path(paths[2])
        await press(pilot, "down")
        assert page.view.outline.path == paths[1]
        assert page.action_context().path == paths[2]
        gate.set()
        await until(pilot, lambda: page.view.outline.path == paths[2])
        await until(pilot, lambda: page.action_context().path == paths[2])

    browse(root, act)


def print_nothing(_):
    """Take an answer that nobody needs."""


def test_ways_to_look_are_pressed_with_the_mouse(root):
    """A click on the name of a way to look chooses it; so does one on the name of a page."""

    async def act(page, pilot):
        await press(pilot, "enter", "down")
        await shows(pilot, "[Text]", "o Raw")
        sections = page.view.detail.query_one("#browse-sections")
        for words, name in (("Facts", "facts"), ("Raw", "raw"), ("Text", "text")):
            column = sections.render_line(0).text.index(words)
            await pilot.click(sections, offset=(column, 0))
            await until(pilot, lambda name=name: page.view.detail.section == name)
        head = page.query_one("#head")
        await press(pilot, "f")
        await pilot.click(head, offset=(head.render_line(0).text.index("1 Browse"), 0))
        assert page.page == "browse"

    browse(root, act)


def test_a_file_that_the_catalog_does_not_know_is_shown(root):
    """A new or broken file is shown in the detail with its problem; the cursor stays."""

    async def act(page, pilot):
        write(root, "list.txt/new.md", '---\n"open: [\n---\nNever indexed.\n')
        page.view.open_path("chunked/list.txt/new.md")
        await shows(pilot, "Never indexed.", "not indexed")
        assert page.view.outline.key == ("guide.md",)
        assert page.action_context().path == "chunked/list.txt/new.md"
        await press(pilot, "down")
        await until(pilot, lambda: "Never indexed." not in seen(page))

    browse(root, act)


def test_a_key_before_an_unknown_file_was_looked_for_is_followed(root):
    """Where the cursor was moved before it is known that no catalog has a file, it is followed."""

    async def act(page, pilot):
        await until(pilot, lambda: page.view.outline.key == ("guide.md",))
        write(root, "list.txt/new.md", "Never indexed.\n")
        gate = threading.Event()
        page.task_manager.read(
            lambda _: gate.wait(9 * PATIENCE_S), print_nothing, group="", urgent=True
        )
        page.view.open_path("chunked/list.txt/new.md")
        await press(pilot, "down")
        assert page.view.outline.key == ("list.txt",)
        gate.set()
        await until(pilot, lambda: page.action_context().path == "")
        assert page.action_context().resource == "list.txt"
        await until(pilot, lambda: "Never indexed." not in seen(page))

    browse(root, act)


def test_an_absent_file_is_told(root):
    """A file that is not there is an answer with its remedy, not an error of the screen."""

    async def act(page, pilot):
        page.view.open_path("chunked/none.md")
        await shows(pilot, "none.md", "try: ")

    browse(root, act)


def test_a_long_text_begins_with_its_first_part(root):
    """Of a long chunk the first part is there, with the key for the whole file."""

    async def act(page, pilot):
        page.view.open_path(f"chunked/{LONG}")
        await shows(pilot, "Line 0 of it.")
        page.view.detail.take_focus()
        await press(pilot, "G")
        await shows(pilot, "press o for the whole file")
        await press(pilot, "o", "G")
        await shows(pilot, "Line 9999 of it.")

    browse(root, act)


def test_a_store_made_anew_keeps_the_place(root):
    """Where the catalog numbers files anew, the cursor stays on its file and what is open open."""
    path = chunk(root, "Milk and bread")

    async def act(page, pilot):
        await press(pilot, "enter")
        page.view.open_path(path)
        await until(pilot, lambda: page.view.outline.path == path)
        before = page.view.outline.key
        shutil.rmtree(os.path.join(root, ".sidecar"))
        write(root, "list.txt/chunk0.md", "A file before it.\n")
        os.mkdir(os.path.join(root, "chunked", "aaa"))
        write(root, "aaa/first.md", "A resource before it.\n")
        with InspectedStore(root, configuration=root) as store:
            store.sync()
        page.task_manager.reopen()
        page.view.store_changed()
        await shows(pilot, "chunk0.md", "▸ aaa")
        await until(pilot, lambda: page.view.outline.path == path)
        assert page.view.outline.key != before
        assert {"guide.md", "list.txt"} == {way[0] for way in page.view.outline.model.opened}
        await shows(pilot, "Milk and bread")

    browse(root, act)


def test_the_place_is_found_again_the_next_time(root):
    """What was open, the cursor, the filter and the way to look are there in the next session."""
    path = chunk(root, "Milk and bread")
    kept = {}

    async def first(page, pilot):
        page.view.open_path(path)
        await until(pilot, lambda: page.view.outline.path == path)
        await press(pilot, "f")
        kept.update(page.view.saved())

    async def second(page, pilot):
        await until(pilot, lambda: page.view.outline.path == path)
        await shows(pilot, "[Facts]", "Hashes")

    browse(root, first)
    browse(root, second, saved=kept)


def test_odd_memories_are_left(root):
    """A saved state of other types is no reason not to open."""
    saved = {"opened": 7, "path": ["x"], "filter": None, "section": ["none"]}

    async def act(page, pilot):
        await shows(pilot, "guide.md", "[Text]")

    browse(root, act, saved=saved)


def test_hostile_names_are_spelt_out(root):
    """Names with escapes, markup and line ends are listed, opened and read like others."""
    name = "[red]x\x1b]0;t\x07\u202e\n"
    os.mkdir(os.path.join(root, "chunked", name))
    write(
        root, f"{name}/[b]\x9b2J.md", '---\n"k\\u007f[b]": "[i]\\u001b[2J"\n---\n[@click=a]x[/]\n'
    )
    with InspectedStore(root, configuration=root) as store:
        store.sync()

    async def act(page, pilot):
        await shows(pilot, "[red]x\\x1b]0;t\\x07\\u202e")
        await press(pilot, "equals_sign")
        await shows(pilot, "[b]\\x9b2J.md")
        path = f"chunked/{name}/[b]\x9b2J.md"
        page.view.open_path(path)
        await shows(pilot, "[@click=a]x[/]")
        await press(pilot, "f")
        await shows(pilot, "[i]\\x1b[2J")
        assert not UNSAFE.search(seen(page).replace("\n", ""))

    browse(root, act)


def age(path):
    """Have a catalog be one of an older program."""
    with contextlib.closing(sqlite3.connect(path)) as catalog:
        catalog.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (os.remove, "This store has no index yet"),
        (lambda path: os.truncate(path, 5_000), "the catalog is damaged"),
        (age, "the catalog has schema"),
    ],
)
def test_a_store_without_an_index_says_how_it_gets_one(root, spoil, said):
    """Without a catalog that can be read the key is named, and after it everything is there."""
    spoil(os.path.join(root, ".sidecar", "catalog.sqlite"))

    async def act(page, pilot):
        await until(pilot, lambda: seen(page).count(said) == 2)
        await shows(pilot, "from its files")
        assert "Nothing in this store" not in seen(page)
        page.view.open_path(chunk(root, "Milk and bread"))
        await shows(pilot, "try: filestore")
        with InspectedStore(root, configuration=root) as store:
            store.sync()
        page.view.store_changed()
        await shows(pilot, "3 documents", "Milk and bread", "guide.md")
        assert "from its files" not in seen(page)

    browse(root, act)


def test_a_file_opened_while_the_index_is_made_stays_open(root, monkeypatch):
    """The catalog has its place before the list has its row: the cursor goes there all the same."""
    is_synced = threading.Event()

    def late(*asked):
        is_synced.wait(PATIENCE_S)
        return located(*asked)

    monkeypatch.setattr("tui.views.browse_tree.located", late)
    os.remove(os.path.join(root, ".sidecar", "catalog.sqlite"))

    async def act(page, pilot):
        await shows(pilot, "from its files")
        page.view.open_path(chunk(root, "Milk and bread"))
        with InspectedStore(root, configuration=root) as store:
            store.sync()
        is_synced.set()
        page.view.store_changed()
        await shows(pilot, "3 documents", "Milk and bread", ">     chunk1")

    browse(root, act)


def test_files_that_are_not_indexed_are_told_with_the_key(tmp_path):
    """In a store whose files are not indexed yet, Browse says how many and what indexes them."""
    root = str(tmp_path / "file_index")
    InspectedStore.create(root, layout="tree", embedder="builtin", configuration=root).close()
    os.mkdir(os.path.join(root, "chunked", "a"))

    async def act(page, pilot):
        await shows(pilot, "looking for files")
        found(page, *(Finding(code="untracked", path=f"chunked/a/{n}.md") for n in range(2000)))
        await shows(pilot, "2,000 files are not indexed yet", "i indexes them")
        write(root, "a/first.md", "Only one.\n")
        with InspectedStore(root, configuration=root) as store:
            store.sync()
        found(page)
        page.view.store_changed()
        await shows(pilot, "1 document", "▸ a")
        assert "not indexed" not in seen(page)

    browse(root, act)


def test_an_empty_store_says_what_to_do(tmp_path):
    """A store with nothing in it names the command that changes that."""
    root = str(tmp_path / "file_index")
    InspectedStore.create(root, layout="tree", embedder="builtin", configuration=root).close()

    async def act(page, pilot):
        await shows(pilot, "looking for files")
        found(page)
        await shows(pilot, "Nothing in this store yet", "filestore add")

    browse(root, act)


def test_marked_files_are_copied_and_planned_for_together(root):
    """Space, v and a mark rows: files, or all files of a resource; esc clears the marks."""
    paths = [f"chunked/guide.md/chunk{number}.md" for number in range(1, 7)]

    async def act(page, pilot):
        copied: list[tuple[str, str]] = []
        planned: list[list[Finding]] = []
        page.copy_text = lambda text, *, what: copied.append((text, what))
        page.plan = planned.append
        await press(pilot, "enter", "down")
        await shows(pilot, "chunk3.md")
        await press(pilot, "space", "space")
        await shows(pilot, "2 marked  y copies, p plans")
        page.view.copy_marked()
        await until(pilot, lambda: copied)
        assert copied.pop() == ("\n".join(paths[:2]), "2 paths")
        await press(pilot, "escape")
        await until(pilot, lambda: " marked" not in seen(page))
        # The whole resource, and a file of it, are each file once.
        await press(pilot, "g", "v", "down", "v")
        await shows(pilot, "2 marked")
        page.view.copy_marked()
        await until(pilot, lambda: copied)
        assert sorted(copied.pop()[0].splitlines()) == paths
        found = [Finding(code="modified", path=path) for path in (paths[2], "chunked/x.md")]
        page.findings.replace(found, Coverage(level="full"), clean=False)
        page.findings_changed()
        await press(pilot, "p")
        await until(pilot, lambda: planned)
        assert planned.pop() == found[:1]
        await press(pilot, "escape", "a")
        await shows(pilot, "9 marked")

    browse(root, act)


def test_a_resource_with_drift_is_planned_for_without_a_mark(root):
    """On its row, p plans what is found below it, also of a file that left; nothing else."""

    async def act(page, pilot):
        planned: list[list[Finding]] = []
        page.plan = planned.append
        await press(pilot, "g")
        await until(pilot, lambda: page.action_context().resource == "guide.md")
        await press(pilot, "p")
        assert not planned  # a clean one is refused
        folder = "chunked/guide.md/"
        found = [
            Finding(code="modified", path=f"{folder}chunk3.md"),
            Finding(code="moved", path="chunked/away.md", other=f"{folder}chunk1.md"),
            Finding(code="modified", path="chunked/guide.md2/chunk1.md"),
        ]
        page.findings.replace(found, Coverage(level="full"), clean=False)
        page.findings_changed()
        assert page.action_context().paths == ("chunked/guide.md",)
        await press(pilot, "p")
        await until(pilot, lambda: planned)
        assert planned.pop() == found[:2]

    browse(root, act)


def test_a_key_of_marks_is_never_silent(root):
    """Where nothing can be marked, the page says where it can."""

    async def act(page, pilot):
        await press(pilot, "l", "down", "l")
        await until(pilot, lambda: not page.view._is_on_the_left)
        for key in ("space", "v", "a"):
            page.clear_notifications()
            await pilot.pause()
            await press(pilot, key)
            await until(pilot, lambda: bool(list(page._notifications)))
        assert not page.view.outline.rows.marks

    browse(root, act)


def test_hits_are_marked_like_files(root):
    """Marks of hits give their paths, and a new question begins without any."""

    async def act(page, pilot):
        copied = []
        page.copy_text = lambda text, *, what: copied.append(text)
        await press(pilot, "s", *"renamed", "enter")
        await shows(pilot, "1 ")
        await until(pilot, lambda: len(page.view.search.hits.rows) > 1)
        await press(pilot, "a")
        await shows(pilot, " marked  y copies")
        page.view.copy_marked()
        await until(pilot, lambda: copied)
        assert all(path.startswith("chunked/") for path in copied[0].splitlines())
        assert len(copied[0].splitlines()) == len(page.view.search.hits.rows)
        page.view.search_for("bread")
        await until(pilot, lambda: not page.view.search.hits.marks)

    browse(root, act)


def test_the_filter_finds_a_heading(root):
    """Its file is shown below its resource, however it is called; the help says so."""

    async def act(page, pilot):
        await press(pilot, "slash", *"escapes", "enter")
        await shows(pilot, "2 chunks of 1 document", "Escapes", "2 of 6")
        assert "checklist" not in seen(page)

    browse(root, act)


def test_documents_of_a_folder_stand_above_their_chunks(root):
    """A folder of several documents has a row for each: h goes up to it, space marks its files."""
    folder = os.path.join(os.path.dirname(root), "notes")
    os.mkdir(folder)
    for name in ("lakes", "rivers"):
        with open(os.path.join(folder, f"{name}.md"), "w", encoding="utf-8") as file:
            file.write(f"# Of {name}\n\nAll about {name}.\n")
    with InspectedStore(root, configuration=root) as store:
        store.add(folder)

    async def act(page, pilot):
        await press(pilot, "G", "enter")
        await shows(pilot, "lakes.md", "Of lakes", "rivers.md", "Of rivers")
        seen_rows = [row.split("│")[0].split() for row in seen(page).splitlines()]
        names = [row[-1 if row[-1].endswith(".md") else 0] for row in seen_rows if row]
        places = [names.index(name) for name in ("lakes.md", "rivers.md")]
        assert places[1] == places[0] + 2
        await press(pilot, "G")
        file = page.view.outline.key[-1]
        await press(pilot, "h")
        assert page.view.outline.key == ("notes", Document(file))
        await press(pilot, "space")
        assert page.view.outline.rows.marks == {file}
        await press(pilot, "h", "h")
        assert page.view.outline.key == ("notes",)

    browse(root, act)
