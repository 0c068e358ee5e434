"""The tree of summaries as somebody at the keyboard browses it, on the example store."""

import shutil

import pytest

from filestore import Store
from filestore.browse import InspectedStore
from filestore.catalog import summaries
from filestore.config.layout import copy_example
from tests.tui.looks import look, seen

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
    """The rows of the tree in sight."""
    return [one.split("│")[0].rstrip() for one in seen(app).splitlines()[1:-2]]


def test_summaries_are_rows_of_the_resource(folder):
    """First in their resource; l opens each into what it was made from, h goes back up."""

    async def act(onlooker):
        await onlooker.press("l", words="▸ L1")
        first = left_side(onlooker.app)
        assert first[0].startswith("> ▾ checklist.txt")
        assert "L1 " in first[1]
        assert "chunk1.md" in first[2]
        assert not any("summary" in one for one in first)
        await onlooker.press("j", "l", words="▾ L1")
        tree = onlooker.app.view.outline
        assert tree.path == f"{CHECKLIST}/summary1.md"
        await onlooker.press("j", words=f"{CHECKLIST}/chunk")
        assert len(tree.key) == 3
        assert tree.path.startswith(f"{CHECKLIST}/chunk")
        assert len(left_side(onlooker.app)) == len(first)
        await onlooker.press("h")
        assert tree.path == f"{CHECKLIST}/summary1.md"
        await onlooker.press("h", "h")
        assert tree.key == ("checklist.txt",)

    look(folder, act)


def test_a_summary_that_is_asked_for_is_shown_in_its_place(folder):
    """What leads to it is opened, in its resource, however deep it lies."""
    chunked = folder / "example_index" / "chunked" / "field-guide"
    (chunked / "summary90.md").write_text("---\nkind: summary\n---\nBy hand, of nothing.\n")
    root = str(folder / "example_index")
    with Store(root, configuration=str(folder / "configuration")) as store:
        store.enrich("glossary.md", "field-guide")
        store.sync()
    with InspectedStore(root, configuration=str(folder / "configuration")) as store:
        (top, *_) = store.summaries.roots("field-guide")
        deep = next(one for one in store.summaries.children(top.path) if one.kind == "summary")

    async def act(onlooker):
        tree = onlooker.app.view.outline
        for path, ways in ((deep.path, 3), ("chunked/field-guide/summary90.md", 2)):
            onlooker.app.open_path(path)
            await onlooker.until(lambda path=path: tree.path == path)
            assert len(tree.key) == ways
        await onlooker.press("ctrl+r")
        await onlooker.told("looked again")
        assert tree.path == "chunked/field-guide/summary90.md"
        assert not onlooker.app.errors

    look(folder, act)


def test_stale_branches_say_so_and_why(folder):
    """A changed text and all above it: a sign and a word for each."""
    change(folder)

    async def act(onlooker):
        await onlooker.press("l", words="! stale  L1")
        await onlooker.press("j", "l", words="~ changed")
        await onlooker.press("c", words="! stale: 1 passage changed")
        await onlooker.press("f", words="Made from")
        assert f"~ changed  {CHECKLIST}/chunk1.md" in seen(onlooker.app)
        await onlooker.press("j", words="Summaries made from it")
        assert "generated, ! stale" in seen(onlooker.app)

    look(folder, act, size=(140, 50))


def test_an_opened_resource_asks_of_no_other(folder, monkeypatch):
    """What is stale of the whole store is never worked out for the rows of one resource."""
    asked = []
    below = summaries.children_below

    def noted(catalog, paths):
        asked.append(sorted({path.partition("/")[0] for path in paths}))
        return below(catalog, paths)

    def refuse(_):
        raise AssertionError

    monkeypatch.setattr(summaries, "children_below", noted)
    monkeypatch.setattr(summaries, "all_children", refuse)

    async def act(onlooker):
        await onlooker.press("l", words="▸ L1")
        await onlooker.press("j", "l", words="▾ L1")
        assert asked == [["checklist.txt"]]
        assert not onlooker.app.errors

    look(folder, act)


def test_the_family_of_a_file_leads_to_its_members(folder):
    """c lists what is above and below; enter goes there, and the tree follows."""

    async def act(onlooker):
        await onlooker.press("l", words="▸ L1")
        await onlooker.press("j", "c", words="made from 2 children")
        await onlooker.press("tab", "j", "enter", words="chunk1.md")
        await onlooker.until(lambda: onlooker.app.view.outline.path == f"{CHECKLIST}/chunk1.md")
        await onlooker.press("g", "enter")
        await onlooker.until(lambda: onlooker.app.view.outline.path == f"{CHECKLIST}/summary1.md")
        assert not onlooker.app.errors

    look(folder, act, size=(120, 30))


def test_the_filter_finds_summaries(folder):
    """By their titles and paths, among the other files; escape goes back to their place."""

    async def act(onlooker):
        await onlooker.press("slash", *"summary1", words="esc: all")
        await onlooker.press("enter", "j")
        path = onlooker.app.view.outline.path
        assert path.endswith("/summary1.md")
        await onlooker.press("escape", words="documents")
        await onlooker.until(lambda: onlooker.app.view.outline.path == path)
        assert len(onlooker.app.view.outline.key) == 2

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
        assert "keys for 6 passages" in seen(app)
        await onlooker.press("enter")
        assert not enriched(folder, "handover.docx")
        await onlooker.press("M", words="runs here: costs nothing")
        await onlooker.press("y", words="5 summaries written")
        await onlooker.read("done")
        assert enriched(folder, "handover.docx")
        await onlooker.press("escape")
        await onlooker.until(lambda: app.next_undo_redo[0] != "")
        assert app.commands_done[-1][1] == "filestore enrich --yes handover.docx"
        await onlooker.press("l", words="▸ L4")
        await onlooker.press("u", words="type yes")
        await onlooker.press(*"yes", "enter")
        await onlooker.until(lambda: not enriched(folder, "handover.docx"))
        assert not app.errors

    look(folder, act)


def test_what_is_stale_is_refreshed(folder):
    """R makes again what a changed text has made stale, and nothing else."""
    change(folder)

    async def act(onlooker):
        await onlooker.press("l", words="! stale  L1")
        await onlooker.press("R", words="filestore enrich --refresh checklist.txt")
        assert "keys for 1 passage" in seen(onlooker.app)
        await onlooker.press("y", words="1 summary written")
        await onlooker.press("escape")
        await onlooker.until(lambda: "stale" not in seen(onlooker.app))
        await onlooker.press("R")
        await onlooker.told("nothing to do")
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
        await onlooker.told("a git merge is in progress")

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
