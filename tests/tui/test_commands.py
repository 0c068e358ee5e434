"""Commands of the program, typed in the inspector or begun by a key: run, confirmed, undone."""

import shutil
from types import SimpleNamespace

import pytest

from filestore import Store
from filestore.config.layout import copy_example
from tests.tui.looks import look, seen
from tui.formatting import progress_line
from tui.workers.task_manager import TaskManager


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The example store."""
    folder = tmp_path_factory.mktemp("made")
    copy_example(str(folder / "example_index"))
    with Store(str(folder / "example_index"), configuration=str(folder / "configuration")) as store:
        store.sync()
    return folder


@pytest.fixture
def folder(tmp_path, made):
    """A copy of it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def resources(folder):
    """The names of what is in the store."""
    root, configuration = folder / "example_index", str(folder / "configuration")
    with Store(str(root), configuration=configuration) as store:
        return sorted(one["resource"] for one in store.resources())


async def type_command(onlooker, text):
    """Type a command line."""
    await onlooker.press("colon", *(" " if one == " " else one for one in text), "enter")


def test_a_command_that_only_looks_runs_at_once(folder):
    """Its output is shown, and its command line is logged; the screen stays usable."""

    async def act(onlooker):
        await type_command(onlooker, "links glossary.md")
        await onlooker.read("filestore links glossary.md")
        await onlooker.until(lambda: "done" in seen(onlooker.app) or "exit" in seen(onlooker.app))
        await onlooker.press("escape")
        assert "filestore links glossary.md" in [one for _, one in onlooker.app.commands_done]

    look(folder, act)


def test_an_error_of_a_command_is_shown(folder):
    """The sentence and the way out are those of the command line, with the exit code."""

    async def act(onlooker):
        await type_command(onlooker, "links no-such-file.md")
        await onlooker.read("exit code 3")
        assert "no-such-file.md" in seen(onlooker.app)

    look(folder, act)


def test_unknown_and_endless_commands_get_a_sentence(folder):
    """Nothing is run: one is not there, the other needs a terminal of its own."""

    async def act(onlooker):
        await type_command(onlooker, "duplicats")
        await onlooker.told("did you mean 'duplicates'?")
        await type_command(onlooker, "serve")
        await onlooker.told("serve runs until it is stopped")
        tasks = onlooker.app.task_manager.tasks
        assert all(one.title == "status" for one in tasks if not one.is_question)

    look(folder, act)


def test_marked_resources_are_removed_and_come_back(folder):
    """Mark two, d, y: gone; u, yes: there again. Cancelled, nothing is done."""
    before = resources(folder)

    async def act(onlooker):
        await onlooker.press("space", "space", "d", words="filestore rm checklist.txt field-guide")
        await onlooker.press("escape")
        await onlooker.told("nothing was written")
        await onlooker.press("d", words="y confirms")
        await onlooker.press("y", words="removed field-guide (51 files")
        await onlooker.press("escape", words="6 documents")
        await onlooker.press("u", words="undo")
        await onlooker.press("y")
        await onlooker.read("undone: 000001")

    look(folder, act)
    assert resources(folder) == before


def test_a_file_is_left_to_the_shell(folder):
    """Of a chunk file d copies the command, and removes nothing."""
    before = resources(folder)

    async def act(onlooker):
        await onlooker.press("l", "j", words="chunk1.md")
        await onlooker.press("d")
        await onlooker.told("nothing is removed, a file is yours; to remove it, rm -- chunked/")
        assert "filestore rm" not in seen(onlooker.app)

    look(folder, act)
    assert resources(folder) == before


def test_what_is_marked_is_exported(folder):
    """The form and the target are typed; the marked resource alone is in it."""

    async def act(onlooker):
        await onlooker.press("space", "X", words="export 1 document as")
        await onlooker.press(*"out", "enter", words="1 document")
        await onlooker.read("done")

    look(folder, act)
    named = [path.name for path in (folder / "example_index" / "out").rglob("*") if path.is_file()]
    assert any("checklist" in name for name in named), named
    assert not any("glossary" in name for name in named), named


def test_keys_of_a_file_take_the_chunk_that_is_read_of_a_document(folder, monkeypatch):
    """At first the first one; y takes all of its paths, and r nothing."""

    async def act(onlooker):
        app, copied, edited = onlooker.app, [], []
        monkeypatch.setattr(app, "copy_text", lambda text, *, what: copied.append(text))
        monkeypatch.setattr(app, "edit", lambda path, *, line: edited.append((path, line)))
        first = "chunked/field-guide/index.md/chunk1-a-field-guide-to-keeping-a-knowledge.md"
        await onlooker.press("j")
        await onlooker.until(lambda: app.action_context().piece == first)
        await onlooker.press("y")
        await onlooker.until(lambda: bool(copied))
        paths = copied[0].splitlines()
        assert paths[0] == first
        assert len(paths) == len(set(paths)) > 40
        await onlooker.press("e", "O")
        await onlooker.until(lambda: len(edited) == 2)
        assert edited[0][0] == first
        assert edited[0][1] > 1
        assert edited[1][0] == "source/field-guide/index.md"
        await onlooker.press("o", words="[Raw]")
        await onlooker.read("source: ")
        await onlooker.press("ctrl+o", words="── chunk1-")
        near = app.view.detail.neighbours
        for facts in ((), ("f",)):
            await onlooker.press(*facts, "b")
            await onlooker.until(lambda: near.cursor_key is not None)
            await onlooker.press("escape", "c", words="no summary was made from it")
        await onlooker.press("r")
        await onlooker.told("no file under the cursor")

    look(folder, act)


def test_views_of_a_document_can_be_asked_for_before_it_is_read(folder):
    """A key right after the cursor moved is no key lost; the next document is seen in that way."""

    async def act(onlooker):
        await onlooker.press("j", "b", words="cosine, nearest first")
        await onlooker.press("escape", "j", "o", words='headings: ["Glossary"]')
        await onlooker.press("escape", "j", words='headings: ["Handing over')
        await onlooker.until(lambda: onlooker.app.action_context().piece.endswith("/chunk1.md"))

    look(folder, act)


def test_source_code_is_read_line_by_line(folder):
    """Of a document of code no line joins another, in all of it and in one chunk."""

    async def act(onlooker):
        await onlooker.press("G", "k", words="── chunk1.md")
        await onlooker.read("  from collections import defaultdict\n")
        await onlooker.press("l", "j", "j", words="rename_report.py/chunk2.md")
        await onlooker.read("  class Report:\n")

    look(folder, act)


def test_the_facts_of_a_chunk_list_its_links(folder):
    """Each leads to the first chunk of the original that it names."""
    chunk = "chunked/field-guide/index.md/chunk2-what-is-in-it.md"

    async def act(onlooker):
        onlooker.app.open_path(chunk)
        await onlooker.press("f", words="source/field-guide/writing/naming-notes.md")
        assert "Links" in seen(onlooker.app)
        await onlooker.press("tab", "enter", "a", words="chunk38-naming-notes.md")

    look(folder, act, size=(120, 30))


def test_progress_is_shown_once_and_leaves_the_names(folder, monkeypatch):
    """In the head, behind the names of program and store, but not above a panel that shows it."""

    def progress(width=24, title=""):
        stage = f"{title} making questions and summaries of one document after the other"
        return progress_line(stage, done=3, total=10, elapsed_s=9, width=width)

    async def act(onlooker):
        task = SimpleNamespace(title="enrich --yes docs/", is_question=False, progress=progress)
        with monkeypatch.context() as patch:
            patch.setattr(TaskManager, "busy", property(lambda _: task))
            await onlooker.read("[###")
            head = seen(onlooker.app).splitlines()[0]
            assert head.startswith("filestore  example_index"), head
            # Not `press`: it waits until nothing runs.
            await onlooker.pilot.press("w")
            await onlooker.read("Tasks")
            await onlooker.until(lambda: "[###" not in seen(onlooker.app).splitlines()[0])

    look(folder, act, size=(120, 30))
