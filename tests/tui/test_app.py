"""The inspector as somebody at the keyboard sees it, on a store on disk, without a terminal."""

import asyncio
import os
import pty
import subprocess
import sys

import pytest
from textual.widgets import ContentSwitcher, OptionList, Static, TabbedContent, Tree

from filestore import Store, sources_of
from tui.app import HelpScreen, Inspector, StartScreen
from tui.present import HELP

GUIDE = """# Guide

## Renames

A renamed file keeps its vectors, because an identifier is made of text.

## Escapes

Colour \x1b[31mred\x1b[0m and [bold]markup[/bold] and \u202eturned.
"""


@pytest.fixture
def store_root(tmp_path):
    """A store of two resources."""
    (tmp_path / "guide.md").write_text(GUIDE)
    (tmp_path / "list.txt").write_text("Milk and bread.\n")
    root = str(tmp_path / "file_index")
    configuration = str(tmp_path / "configuration")
    with Store.init(root, layout="tree", embedder="builtin", configuration=configuration) as store:
        for name in ("guide.md", "list.txt"):
            store.add(sources_of(str(tmp_path / name), into=None, each=False))
    return root


def inspect(folder, act):
    """Run the inspector and do something with it."""

    async def session():
        inspector = Inspector(store=str(folder), configuration=str(folder) + "-configuration")
        async with inspector.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await act(inspector, pilot)

    asyncio.run(session())


async def settle(pilot):
    """Wait until every question is answered and every answer shown."""
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


async def press(pilot, *keys):
    """Press keys, and wait for what they bring about."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


def said(inspector, place):
    """The text of a part of the screen."""
    return str(inspector.query_one(f"#{place}", Static).content)


def resources(inspector):
    """The nodes of the resources."""
    return inspector.query_one("#resources", Tree).root.children


def labels(nodes):
    """What the tree shows for these nodes."""
    return [node.label.plain for node in nodes]


def hits(inspector):
    """What the list of hits shows."""
    listed = inspector.query_one("#hits", OptionList)
    return [str(option.prompt) for option in listed.options]


def chunk_file(root, containing):
    """The path of the chunk file with this text."""
    for folder, _, names in os.walk(os.path.join(root, "chunked")):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                if name.endswith(".md") and containing in file.read():
                    return path
    raise AssertionError(f"no chunk with {containing!r}")


def test_resources_are_listed_and_open(store_root):
    """The tree lists every resource; its chunks are read when it is opened, in reading order."""

    async def act(inspector, pilot):
        assert [label.split()[0] for label in labels(resources(inspector))] == [
            "guide.md",
            "list.txt",
        ]
        guide = resources(inspector)[0]
        assert not guide.children
        await press(pilot, "enter")
        with Store(store_root, configuration=store_root + "-configuration") as store:
            expected = [os.path.basename(item["path"]) for item in store.chunks("guide.md")]
        assert labels(guide.children) == expected
        assert "clean" in said(inspector, "summary")

    inspect(store_root, act)


def test_preview_shows_text_with_escapes_made_visible(store_root):
    """The chunk under the cursor is shown as it is, its controls spelt out and its markup inert."""

    async def act(inspector, pilot):
        await press(pilot, "enter")
        guide = resources(inspector)[0]
        shown = []
        for _ in guide.children:
            await press(pilot, "down")
            shown.append(said(inspector, "chunk"))
        written = "\n".join(shown)
        assert "A renamed file keeps its vectors" in written
        assert "Guide" in shown[0]
        assert "../guide.md" in shown[0]
        assert "fresh: as it was indexed" in shown[0]
        assert "\\x1b[31mred\\x1b[0m and [bold]markup[/bold] and \\u202eturned" in written
        assert "\x1b" not in inspector.export_screenshot()

    inspect(store_root, act)


def test_names_are_shown_safely(store_root):
    """A file name with an escape and markup in it reaches the screen spelt out."""
    name = "chunk9-\x1b]0;x[red].md"
    with open(os.path.join(store_root, "chunked", "guide.md", name), "w") as file:
        file.write("Named badly.\n")
    with Store(store_root, configuration=store_root + "-configuration") as store:
        store.sync()

    async def act(inspector, pilot):
        await press(pilot, "enter")
        shown = "chunk9-\\x1b]0;x[red].md  [unportable-name]"
        assert shown in labels(resources(inspector)[0].children)

    inspect(store_root, act)


def test_drift_is_shown(store_root):
    """An edited chunk stands under its code, is marked in the tree, and is called edited."""
    path = chunk_file(store_root, "renamed file")
    with open(path, "a", encoding="utf-8") as file:
        file.write("One more sentence.\n")

    async def act(inspector, pilot):
        await press(pilot, "enter", "d")
        assert inspector.query_one("#right", TabbedContent).active == "drift-tab"
        drift = said(inspector, "drift")
        assert "error: modified (1)" in drift
        assert os.path.relpath(path, store_root) in drift
        assert "index the file again" in drift
        assert "2 findings" in said(inspector, "summary")
        marked = [label for label in labels(resources(inspector)[0].children) if "[" in label]
        assert marked == [f"{os.path.basename(path)}  [modified]"]
        await press(pilot, "d")
        assert inspector.query_one("#right", TabbedContent).active == "chunk-tab"
        for _ in resources(inspector)[0].children:
            await press(pilot, "down")
            if os.path.basename(path) in said(inspector, "chunk"):
                break
        assert "edited: not what was indexed" in said(inspector, "chunk")
        assert "One more sentence." in said(inspector, "chunk")

    inspect(store_root, act)


def test_refresh_sees_what_changed_meanwhile(store_root):
    """After r the drift, the tree and the preview are those of now, and the place is kept."""

    async def act(inspector, pilot):
        await press(pilot, "enter", "down")
        title = said(inspector, "chunk").splitlines()[0]
        with open(os.path.join(store_root, title), "a", encoding="utf-8") as file:
            file.write("Written meanwhile.\n")
        await press(pilot, "r")
        assert "modified (1)" in said(inspector, "drift")
        assert said(inspector, "chunk").splitlines()[0] == title
        assert "Written meanwhile." in said(inspector, "chunk")
        with Store(store_root, configuration=store_root + "-configuration") as store:
            store.sync()
            store.remove("list.txt")
        await press(pilot, "r")
        assert "clean" in said(inspector, "drift")
        assert len(resources(inspector)) == 1
        assert labels(resources(inspector)[0].children)

    inspect(store_root, act)


def test_a_file_that_is_gone_is_said_to_be_gone(store_root):
    """A chunk whose file was deleted shows an error and the finding about it, never a traceback."""
    os.remove(chunk_file(store_root, "Milk"))

    async def act(inspector, pilot):
        await press(pilot, "down", "enter", "down")
        assert "no chunk file" in said(inspector, "chunk")
        assert "missing: " in said(inspector, "chunk")

    inspect(store_root, act)


def test_search_shows_hits_and_escape_returns(store_root):
    """Hits replace the tree, the first one is previewed, and escape brings the tree back."""

    async def act(inspector, pilot):
        await press(pilot, "enter", "slash", *"bread", "enter")
        lists = inspector.query_one("#lists", ContentSwitcher)
        assert lists.current == "found"
        assert "list.txt/chunk1.md" in hits(inspector)[0]
        assert "hybrid" in said(inspector, "answer")
        assert "Milk and bread." in said(inspector, "chunk")
        await press(pilot, "escape")
        assert lists.current == "resources"
        assert resources(inspector)[0].is_expanded
        assert inspector.focused is inspector.query_one("#resources", Tree)
        assert "guide.md" in said(inspector, "chunk")

    inspect(store_root, act)


def test_search_by_keyword_and_for_nothing(store_root):
    """ctrl+t asks again by keyword only; a question without an answer says so."""

    async def act(inspector, pilot):
        await press(pilot, "slash", *"bread", "enter", "ctrl+t")
        assert "1 file · keyword" in said(inspector, "answer")
        await press(pilot, "escape", "slash", *"zebra", "enter")
        assert "nothing found" in said(inspector, "answer")
        assert hits(inspector) == []

    inspect(store_root, act)


def test_help_opens_and_closes(store_root):
    """? lists every key, and escape closes it."""

    async def act(inspector, pilot):
        await press(pilot, "question_mark")
        assert isinstance(inspector.screen, HelpScreen)
        shown = str(inspector.screen.query_one("#help", Static).content)
        assert all(meaning in shown for _, meaning in HELP)
        await press(pilot, "escape")
        assert not isinstance(inspector.screen, HelpScreen)

    inspect(store_root, act)


def test_without_a_store_it_says_how_to_make_one(tmp_path):
    """Where there is no store a screen says how to make one; r finds the one made meanwhile."""

    async def act(inspector, pilot):
        assert isinstance(inspector.screen, StartScreen)
        shown = str(inspector.screen.query_one("#start", Static).content)
        assert "no store in" in shown
        assert "filestore init" in shown
        await press(pilot, "slash", "d", "r")
        assert isinstance(inspector.screen, StartScreen)
        assert len(inspector.screen_stack) == 2
        root = str(tmp_path / "file_index")
        Store.init(
            root, layout="tree", embedder="builtin", configuration=root + "-configuration"
        ).close()
        await press(pilot, "r")
        assert not isinstance(inspector.screen, StartScreen)
        assert "clean" in said(inspector, "summary")
        assert "nothing in this store yet" in said(inspector, "chunk")

    inspect(tmp_path, act)


def test_a_store_without_catalog_says_what_to_do(store_root):
    """Without its catalog the store shows the finding and the remedy, and search says the same."""
    sidecar = os.path.join(store_root, ".sidecar")
    for name in os.listdir(sidecar):
        if name.startswith("catalog.sqlite"):
            os.remove(os.path.join(sidecar, name))

    async def act(inspector, pilot):
        assert "catalog-missing" in said(inspector, "drift")
        assert "filestore sync" in said(inspector, "message")
        await press(pilot, "slash", *"bread", "enter")
        assert "filestore sync" in said(inspector, "message")

    inspect(store_root, act)


def test_unusable_settings_are_an_error_on_screen(store_root):
    """A settings file that cannot be read is named with its remedy, and no store is asked for."""
    with open(os.path.join(store_root, "filestore.toml"), "w") as file:
        file.write("layout = [")

    async def act(inspector, pilot):
        shown = str(inspector.screen.query_one("#start", Static).content)
        assert "filestore.toml cannot be read" in shown
        assert "restore it from git" in shown
        assert "filestore init" not in shown
        await press(pilot, "q")
        assert inspector.return_code == 3

    inspect(store_root, act)


def test_it_changes_nothing(store_root):
    """Looking around leaves every file of the tree and the store's generation as they were."""

    def files():
        found = {}
        for folder, names, leaves in os.walk(store_root):
            if ".sidecar" in names:
                names.remove(".sidecar")
            for leaf in leaves:
                path = os.path.join(folder, leaf)
                with open(path, "rb") as file:
                    found[path] = (file.read(), os.stat(path).st_mtime_ns)
        with Store(store_root, configuration=store_root + "-configuration") as store:
            return found, store.status().generation

    before = files()

    async def act(inspector, pilot):
        await press(pilot, "enter", "down", "d", "r", "slash", *"bread", "enter", "escape")

        await press(pilot, "q")
        assert inspector.return_code == 0

    inspect(store_root, act)
    assert files() == before


def run_command(folder, **streams):
    """Run `filestore tui` with given streams."""
    environment = os.environ | {"PYTHONPATH": os.getcwd(), "XDG_CONFIG_HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "filestore", "tui"],
        cwd=folder,
        env=environment,
        text=True,
        timeout=60,
        check=False,
        **streams,
    )


def test_command_refuses_without_a_terminal(tmp_path):
    """Where the output goes to a file or pipe, the command says so and exits as wrong usage."""
    controller, terminal = pty.openpty()
    try:
        done = run_command(tmp_path, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        os.close(controller)
        os.close(terminal)
    assert done.returncode == 2
    assert "needs a terminal, and standard output is none" in done.stderr
    assert done.stdout == ""


def test_command_loads_no_screen_before_it_is_needed():
    """Other commands do not pay for the inspector: its command module loads no Textual."""
    code = "import sys, filestore.cli.tui, tui; print('textual' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"
