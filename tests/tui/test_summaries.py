"""The tree of summaries as somebody at the keyboard browses it, on the example store."""

import shutil

import pytest

from filestore import Store
from filestore.config.layout import copy_example
from tests.tui.looks import look, seen
from tui import actions

CHECKLIST = "chunked/checklist.txt"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The example store, enriched."""
    folder = tmp_path_factory.mktemp("made")
    root = folder / "example_index"
    copy_example(str(root))
    with Store(str(root), configuration=str(folder / "configuration")) as store:
        store.sync()
        store.enrich("checklist.txt", "glossary.md")
    return folder


@pytest.fixture
def folder(tmp_path, made):
    """A copy of it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def change(folder, name="checklist.txt/chunk1.md"):
    """Add a sentence to a chunk, and have it indexed."""
    with (folder / "example_index" / "chunked" / name).open("a") as file:
        file.write("\nOne more thing is to be done before all others.\n")
    root = str(folder / "example_index")
    with Store(root, configuration=str(folder / "configuration")) as store:
        store.sync()


def left_side(app):
    """The rows of the tree of summaries in sight."""
    return [one.split("│")[0].rstrip() for one in seen(app).splitlines()[1:-2]]


def test_the_tree_is_browsed_from_a_resource(folder):
    """S shows the summaries of the resource under the cursor, l opens them, S leads back."""

    async def act(onlooker):
        await onlooker.press("S", words="▾ checklist.txt")
        assert any("L1" in one for one in left_side(onlooker.app)), seen(onlooker.app)
        await onlooker.press("j", "l", "j", words="chunked/checklist.txt/chunk")
        path = onlooker.app.view.summaries.path
        assert path.startswith(f"{CHECKLIST}/chunk")
        await onlooker.press("h")
        assert onlooker.app.view.summaries.path == f"{CHECKLIST}/summary1.md"
        await onlooker.press("h", "l", "j", "S", words="chunk1.md")
        assert onlooker.app.view.outline.path == path

    look(folder, act)


def test_from_a_chunk_to_the_summary_above_it(folder):
    """In the files S goes to the place of the chunk in the tree, with all above it opened."""

    async def act(onlooker):
        onlooker.app.open_path("chunked/glossary.md/chunk4.md")
        await onlooker.until(
            lambda: onlooker.app.view.outline.path == "chunked/glossary.md/chunk4.md"
        )
        await onlooker.press("S")
        await onlooker.until(
            lambda: onlooker.app.view.summaries.path == "chunked/glossary.md/chunk4.md"
        )

    look(folder, act)


def test_stale_branches_say_so_and_why(folder):
    """A changed text, all above it, the resource and the counts: a sign and a word for each."""
    change(folder)

    async def act(onlooker):
        await onlooker.press("S", words="! 1 stale")
        await onlooker.press("j", "l", words="~ changed")
        assert any("! stale  L1" in one for one in left_side(onlooker.app))
        await onlooker.press("c", words="! stale: 1 text that it was made from changed")
        await onlooker.press("f", words="Made from")
        assert f"~ changed  {CHECKLIST}/chunk1.md" in seen(onlooker.app)
        await onlooker.press("j", words="Summaries made from it")
        assert "generated, ! stale" in seen(onlooker.app)

    look(folder, act, size=(140, 50))


def test_summaries_are_searched(folder):
    """From the tree s keeps to summaries, and says so where it can be taken out."""

    async def act(onlooker):
        await onlooker.press("S", "s", words="kind:summary")
        await onlooker.press(*"review", "space", *"dates", "enter", words="hybrid · escape returns")
        found = onlooker.app.view.search
        assert found.hit is not None
        assert {hit.kind for hit in found._found.values()} == {"summary"}
        same = actions.command_line(actions.find("browse", "search"), onlooker.app.action_context())
        assert same == "filestore search --kind summary 'review dates'"
        await onlooker.press("escape", "escape", words="of 2 resources")

    look(folder, act)


def test_the_family_of_a_file_leads_to_its_members(folder):
    """c lists what is above and below; enter goes there, and the tree follows."""

    async def act(onlooker):
        await onlooker.press("S", "j", "c", words="made from 2 children")
        await onlooker.press("tab", "j", "enter", words="chunk1.md")
        await onlooker.until(lambda: onlooker.app.view.summaries.path == f"{CHECKLIST}/chunk1.md")
        await onlooker.press("g", "enter")
        await onlooker.until(lambda: onlooker.app.view.summaries.path == f"{CHECKLIST}/summary1.md")
        assert not onlooker.app.errors

    look(folder, act, size=(120, 30))


def test_the_filter_finds_summaries(folder):
    """Words of titles and paths leave their summaries, which open as ever; escape shows all."""

    async def act(onlooker):
        await onlooker.press("S", "slash", *"glossary", words="for glossary")
        rows = [one for one in left_side(onlooker.app) if "L" in one]
        assert rows
        assert not any("checklist" in one for one in left_side(onlooker.app))
        await onlooker.press("enter", "l", words="▾")
        await onlooker.press("escape", words="of 2 resources")
        await onlooker.press("slash", *"~(", words="invalid regular expression")
        await onlooker.press("escape", words="of 2 resources")

    look(folder, act)


def test_a_store_without_summaries_says_how_they_are_made(folder):
    """In place of an empty tree stands the key that makes one."""
    for path in (folder / "example_index" / "chunked").rglob("summary*.md"):
        path.unlink()
    with Store(str(folder / "example_index"), configuration=str(folder / "configuration")) as store:
        store.sync()

    async def act(onlooker):
        await onlooker.press("S", words="No summaries yet.")
        await onlooker.press("S", words="checklist.txt")

    look(folder, act)


def enriched(folder, name):
    """The summaries of a resource on disk."""
    return sorted((folder / "example_index" / "chunked" / name).glob("summary*.md"))


def test_a_resource_is_enriched_and_that_is_undone(folder):
    """M says first that it costs nothing; y makes it, the log has its command, u takes it back."""

    async def act(onlooker):
        app = onlooker.app
        await onlooker.press("j", "j", "j", "M", words="runs here: costs nothing")
        assert "filestore enrich handover.docx" in seen(app)
        assert "keys for 6 texts" in seen(app)
        await onlooker.press("enter")
        assert not enriched(folder, "handover.docx")
        await onlooker.press("M", words="runs here: costs nothing")
        await onlooker.press("y", words="5 summaries written")
        await onlooker.read("done")
        assert enriched(folder, "handover.docx")
        await onlooker.press("escape")
        await onlooker.until(lambda: app.next_undo_redo[0] != "")
        assert app.commands_done[-1][1] == "filestore enrich --yes handover.docx"
        await onlooker.press("S", words="▾ handover.docx")
        await onlooker.press("u", words="type yes")
        await onlooker.press(*"yes", "enter")
        await onlooker.until(lambda: not enriched(folder, "handover.docx"))
        assert not app.errors

    look(folder, act)


def test_what_is_stale_is_refreshed(folder):
    """R makes again what a changed text has made stale, and nothing else."""
    change(folder)

    async def act(onlooker):
        await onlooker.press("S", words="! 1 stale")
        await onlooker.press("R", words="filestore enrich --refresh checklist.txt")
        assert "keys for 1 text" in seen(onlooker.app)
        await onlooker.press("y", words="1 summary written")
        await onlooker.press("escape")
        await onlooker.until(lambda: "stale" not in seen(onlooker.app))
        await onlooker.press("R", words="keys for 0 texts")
        assert "0 summaries" in seen(onlooker.app)
        await onlooker.press("escape")
        assert "filestore enrich --yes --refresh checklist.txt" in {
            words for _, words in onlooker.app.commands_done
        }

    look(folder, act)


def test_no_enriching_says_why(folder):
    """During a merge and read-only the keys are greyed, and say what is in the way."""
    git = folder / "example_index" / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "MERGE_HEAD").write_text("0" * 40)

    async def merging(onlooker):
        await onlooker.until(lambda: bool(onlooker.app.no_enrich))
        await onlooker.press("M")
        await onlooker.told("a git merge is under way")

    look(folder, merging)
    shutil.rmtree(git)

    async def reading(onlooker):
        await onlooker.press("R")
        await onlooker.told("only looked at")

    look(folder, reading, read_only="only looked at")


def test_a_run_is_stopped_and_what_was_made_is_kept(folder):
    """x ends it as Ctrl-C does: the task says so, no file is torn, and the same key goes on."""

    async def act(onlooker):
        app = onlooker.app
        await onlooker.press("j", "M", words="filestore enrich field-guide")
        await onlooker.pilot.press("y")
        await onlooker.until(lambda: app.task_manager.stoppable is not None)
        await onlooker.until(
            lambda: any(one.title == "enrich --yes field-guide" for one in tasks(app))
        )
        await onlooker.pilot.press("x")
        await onlooker.until(lambda: all(one.is_over for one in tasks(app)))
        (task,) = (one for one in tasks(app) if one.title == "enrich --yes field-guide")
        assert task.state in ("stopped", "done")
        await onlooker.press("escape")
        await onlooker.press("M", words="y confirms")
        await onlooker.press("y")
        # Where the key came late, there was nothing left to make.
        await onlooker.until(lambda: all(one.is_over for one in tasks(app)))
        await onlooker.until(lambda: enriched(folder, "field-guide"))

    def tasks(app):
        return list(app.task_manager.tasks)

    look(folder, act)
