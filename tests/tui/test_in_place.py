"""The inspector over a folder of notes that is a store: as somebody at the keyboard sees it."""

import re
import shutil

import pytest

from filestore import Store
from tests.tui.looks import Onlooker, check_textual, look, seen, stamp
from tui import actions

SIZES = ((60, 20), (80, 24), (120, 40))
BEANS = """# Beans

They climb, so they need poles. #vegetables

## Sowing

In May, not before: the soil has to be warm, see [[May]].

## Harvest

From July on, every second day, or they grow tough.
"""
NOTES = {
    "Home.md": "---\naliases: [Start]\n---\n# Where all begins\n\nThe [[Beans]], and the list.\n",
    "garden/Beans.md": BEANS,
    "garden/2026/May.md": "# In May\n\nThe soil is warm: sow the beans now.\n",
    "garden/list.txt": "Poles, twine, a watering can.\n",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Notes, indexed, and then one of them changed."""
    folder = tmp_path_factory.mktemp("made")
    root = folder / "example_index"
    for name, text in NOTES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    stamp(root)
    configuration = str(folder / "configuration")
    Store.create(
        str(root), layout="in-place", embedder="builtin", configuration=configuration
    ).close()
    settings = root / "filestore.toml"
    settings.write_text(settings.read_text().replace("budget = 240", "budget = 32"))
    with Store(str(root), configuration=configuration) as store:
        store.sync()
    (root / "garden" / "list.txt").write_text("Poles, twine, two watering cans.\n")
    (root / "new.md").write_text("# New\n\nNot indexed yet.\n")
    stamp(root)
    return folder


@pytest.fixture
def folder(tmp_path, made):
    """A copy of them."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


async def to_beans(onlooker: Onlooker) -> None:
    """Go to the note on beans, its sections below it."""
    await onlooker.press("enter", words="Beans.md")
    await onlooker.press("j", "j", "enter", words="Harvest")


def test_folders_documents_and_sections(folder):
    """Folders open to documents, these to sections; what is under the cursor is read."""
    check_textual()

    async def act(onlooker):
        onlooker.check("notes")
        await to_beans(onlooker)
        await onlooker.press("j", "j", words="passage 2 of 3")
        for columns, rows in SIZES:
            await onlooker.resize(columns, rows)
            onlooker.check(f"notes-section-{columns}x{rows}")

    look(folder, act)


def test_what_is_known_of_a_document(folder):
    """Its metadata, its tags, where its links lead and what links to it."""
    check_textual()

    async def act(onlooker):
        await to_beans(onlooker)
        await onlooker.press("f", words="Linked from")
        onlooker.check("notes-facts")

    look(folder, act, size=(100, 40))


def test_a_search_leads_to_the_section(folder):
    """What is read of a hit is its section alone; enter leads to its place in the tree."""
    check_textual()

    async def act(onlooker):
        await onlooker.press("s", *"every second day", "enter", words="passage 3 of 3")
        onlooker.check("notes-search")
        assert onlooker.app.view.line_to_edit() == 11
        await onlooker.press("enter", words="▾ garden/")

    look(folder, act, size=(120, 30))


def test_the_editor_begins_at_the_section(folder):
    """And at its top where the whole document is shown."""

    async def act(onlooker):
        await to_beans(onlooker)
        assert onlooker.app.view.line_to_edit() == 0
        for line in (1, 5, 9):
            await onlooker.press("j", words=f"lines {line}-")
            assert onlooker.app.view.line_to_edit() == line

    look(folder, act)


def test_a_folder_tells_its_drift_after_a_verification_too(folder):
    """What a verification finds of a document counts in the folders that it lies in."""

    async def act(onlooker):
        findings = onlooker.app.findings
        await onlooker.until(lambda: findings.index.of_resource("garden/")["E"])
        await onlooker.press("2", "r")
        await onlooker.until(lambda: findings.coverage.level == "fast")
        await onlooker.until(lambda: not findings.coverage.is_running)
        assert findings.index.of_resource("garden/")["E"] == 1

    look(folder, act)


def test_the_filter_shows_sections_below_a_heading_that_fits(folder):
    """A document that fits itself is shown without them, under its whole path, the best first."""

    async def act(onlooker):
        await onlooker.press("slash", *"harvest", words="1 passage of 1 document")
        assert "1 of 3" in seen(onlooker.app)
        await onlooker.press(*["backspace"] * 7, *"beans", words="passages of 2 documents")
        assert "garden/Beans.md" in seen(onlooker.app)
        assert " of 3" not in seen(onlooker.app)
        await onlooker.press("escape", words="4 documents")

    look(folder, act)


OVER_TWO = """---
kind: summary
headings: [Growing]
children:
- {path: garden/Beans.md, hash: "sha256:ZEROS"}
- {path: garden/2026/May.md, hash: "sha256:ZEROS"}
---
Beans are sown in May.
""".replace("ZEROS", "0" * 64)


def test_summaries_are_rows_and_the_filter_finds_them(folder):
    """One of several documents is the first row of their folder; escape leads there."""
    root = folder / "example_index"
    over = ".filestore-summaries/garden/summary1.md"
    (root / over).parent.mkdir(parents=True)
    (root / over).write_text(OVER_TWO)
    with Store(str(root), configuration=str(folder / "configuration")) as store:
        store.enrich("garden/Beans.md")
        store.sync()

    async def act(onlooker):
        tree = onlooker.app.view.outline
        await onlooker.press("slash", *"growing", "enter", words="summary  Growing")
        await onlooker.press("j", words="Beans are sown in May.")
        assert tree.path == over
        await onlooker.press("escape", words="! stale  L1 Growing")
        await onlooker.until(lambda: tree.path == over)
        assert [type(one).__name__ for one in tree.key] == ["str", "Node"]
        (own,) = (root / ".filestore-summaries" / "garden" / "Beans.md").glob("summary*.md")
        onlooker.app.open_path(str(own.relative_to(root)))
        await onlooker.until(lambda: tree.path.endswith(f"Beans.md/{own.name}"))
        await onlooker.press("ctrl+r")
        await onlooker.told("looked again")
        await onlooker.press("h", "h", "j", words="L1 Growing")
        assert not onlooker.app.errors

    look(folder, act)


def test_the_keys_walk_from_section_to_section(folder):
    """Down to the last one of the document, which is told."""

    async def act(onlooker):
        await to_beans(onlooker)
        for number in (1, 2, 3):
            await onlooker.press("]", words=f"passage {number} of 3")
        await onlooker.press("]")
        await onlooker.told("this is the last passage")
        await onlooker.press("[", words="passage 2 of 3")

    look(folder, act)


def test_a_command_line_leads_to_the_section_of_a_line(folder):
    """At the start and typed later; a file that is not there is told as a document."""

    async def act(onlooker):
        await onlooker.read("passage 3 of 3")
        await onlooker.press(":", *"show garden/Beans.md:6", "enter", words="passage 2 of 3")
        await onlooker.press(":", *"show garden/Peas.md", "enter", words="no document")
        await onlooker.press(":", *"show new.md", "enter", words="Not indexed yet.")

    look(folder, act, select="garden/Beans.md:11")


def test_a_neighbour_leads_to_its_section(folder):
    """Sections are compared with sections, and enter goes to the one that is near."""

    async def act(onlooker):
        await onlooker.press("enter", "j", "enter", words="May.md")
        await onlooker.press("j", "b", words="Sowing  In May")
        await onlooker.press("enter", words="passage 2 of 3")
        assert "Sowing" in seen(onlooker.app)

    look(folder, act, size=(160, 30))


def test_what_is_read_stays_when_the_store_changed(folder):
    """Also where the text has the whole screen, and the list behind it is read again unseen."""

    async def act(onlooker):
        app = onlooker.app
        await onlooker.press("t", words="the soil has to be warm")
        app.view.store_changed()
        await onlooker.calm()
        assert "the soil has to be warm" in seen(app)
        assert app.action_context().path == "garden/Beans.md"

    look(folder, act, size=(80, 24), select="garden/Beans.md")


def test_only_links_are_written_in_documents(folder):
    """Steps that write them are offered with their diff, applied and undone; nothing is added."""
    root = folder / "example_index"

    async def act(onlooker):
        (root / "garden" / "Beans.md").rename(root / "Runner.md")
        await onlooker.press("3", words="no plan")
        assert "t files" in seen(onlooker.app).splitlines()[-1]
        await onlooker.press("p", words="update links in")
        await onlooker.press("t", words="t leaves files alone")
        await onlooker.press("g", "j", words="+The [[Runner]], and the list.")
        await onlooker.press("A", words="1 file written")
        await onlooker.press("y", words="applied")
        await onlooker.until(lambda: "[[Runner]]" in (root / "Home.md").read_text())
        await onlooker.press("u", words="undo 000001")
        await onlooker.press("y")
        await onlooker.until(lambda: "[[Beans]]" in (root / "Home.md").read_text())
        await onlooker.press(":", *"add x", "enter", words="'add' has nothing to add")

    look(folder, act, size=(160, 40))


def test_a_side_of_a_conflict_in_a_document_is_taken(folder):
    """As of a chunk: both sides, a plan with its diff, a question."""
    home = folder / "example_index" / "Home.md"

    async def act(onlooker):
        before = home.read_text()
        home.write_text(f"{before}<<<<<<< HEAD\nOurs.\n=======\nTheirs.\n>>>>>>> branch\n")
        await onlooker.press("ctrl+r", "2", words="conflict-markers")
        await onlooker.press("G", "k", "k", words="at         line")
        await onlooker.press("t", words="edit it by hand")
        await onlooker.press("2", words="-Ours.")
        await onlooker.press("A", words="1 file written")
        await onlooker.press("y", words="applied")
        await onlooker.until(lambda: home.read_text() == f"{before}Theirs.\n")

    look(folder, act, size=(160, 40))


def test_a_note_is_moved_with_its_links_and_back(folder):
    """A key asks for the path, shows the diff, and moves once that is confirmed; undo as ever."""
    root = folder / "example_index"
    before = (root / "Home.md").read_text()

    async def act(onlooker):
        app = onlooker.app
        await to_beans(onlooker)
        await onlooker.press("r", words="move garden/Beans.md to")
        await onlooker.press(*"Home.md", "enter", words="Home.md is there already")
        await onlooker.press("escape")
        await onlooker.press("r", words="move garden/Beans.md to")
        await onlooker.press(*"beds/Runner.md", "enter", words="+The [[Runner]], and the list.")
        assert (root / "garden" / "Beans.md").exists()
        await onlooker.press("y")
        await onlooker.until(lambda: (root / "beds" / "Runner.md").exists())
        await onlooker.read("to undo it: filestore undo 000001")
        await onlooker.press("escape")
        assert app.commands_done[-1][1] == "filestore mv garden/Beans.md beds/Runner.md"
        assert "[[Runner]]" in (root / "Home.md").read_text()
        await onlooker.press("u", words="undo 000001")
        await onlooker.press(*"yes", "enter")
        await onlooker.until(lambda: (root / "garden" / "Beans.md").exists())
        await onlooker.until(lambda: (root / "Home.md").read_text() == before)
        assert not (root / "beds").exists()

    look(folder, act, size=(160, 40))


def test_a_command_line_names_what_is_under_the_cursor(folder):
    """The line of a section, or the folder, as the program takes it."""

    async def act(onlooker):
        def line(name):
            return actions.command_line(actions.find("browse", name), onlooker.app.action_context())

        assert line("open") == "filestore ls garden/"
        await to_beans(onlooker)
        assert line("open") == "filestore show garden/Beans.md"
        await onlooker.press("j", "j", words="passage 2 of 3")
        assert line("open") == "filestore show garden/Beans.md:5"
        await onlooker.press("b", "at", words="filestore similar garden/Beans.md:5")

    look(folder, act)


def test_no_key_is_silent(folder):
    """A look that finds what was known says so, and so does going through no matches."""

    async def act(onlooker):
        for key, words in (("ctrl+r", "looked again: 1 error"), ("n", "no match in this text")):
            for page in "123":
                await onlooker.press(page, key)
                await onlooker.told(words)
                onlooker.app.clear_notifications()

    look(folder, act)

    look(folder, act, size=(120, 30))


def test_a_hit_whose_file_changes_is_marked(folder):
    """Also once the index has the change: the answer is from before, until it is asked again."""

    async def act(onlooker):
        await onlooker.press("s", *"every second day", "enter", words="passage 3 of 3")
        assert "changed since" not in seen(onlooker.app)
        path = folder / "example_index" / "garden" / "Beans.md"
        path.write_text(f"{BEANS}\nAnd every second day.\n")
        await onlooker.read("changed since this answer")
        await onlooker.press("i")
        await onlooker.told("synced")
        assert "changed since this answer" in seen(onlooker.app)
        await onlooker.press("s", "enter")
        await onlooker.until(lambda: "changed since" not in seen(onlooker.app))

    look(folder, act, size=(160, 30))


def test_a_file_that_moved_or_went_is_marked_where_it_was(folder):
    """What moved says where it is now, and is read there; both are planned for."""
    garden = folder / "example_index" / "garden"
    (garden / "2026" / "May.md").rename(garden / "June.md")
    (garden / "Beans.md").unlink()

    async def act(onlooker):
        await onlooker.read("2 warnings")
        await onlooker.press("equals_sign", words="W ! moved")
        assert re.search(r"May\.md .* W ! moved", seen(onlooker.app))
        assert re.search(r"Beans\.md .* E x missing", seen(onlooker.app))
        await onlooker.press("j", "j", words="it is garden/June.md now")
        await onlooker.read("sow the beans now")
        # As after the editor: it is still known to have been moved.
        checked = []
        onlooker.app.check(["garden/June.md"], checked.extend)
        await onlooker.until(lambda: bool(checked))
        assert [one.code for one in checked] == ["moved"]
        await onlooker.press("p", words="update the path of garden/June.md")

    look(folder, act, size=(120, 30))


def test_findings_lead_to_their_documents(folder):
    """A finding is shown in its folder, in Verify, and at the document in Browse."""

    async def act(onlooker):
        await onlooker.read("E1")
        await onlooker.press("2", words="modified")
        view = onlooker.app.view
        await onlooker.until(lambda: view.action_context().path.endswith("list.txt"))
        await onlooker.press("o", words="two watering cans")
        assert re.search(r"list\.txt .* E x modified", seen(onlooker.app))

    look(folder, act, size=(120, 30))


def test_a_folder_is_summarised_as_a_folder(folder):
    """The key on its row asks for what lies below it, not for all, and writes no other."""

    async def act(onlooker):
        await onlooker.press("M", words="filestore enrich garden/")
        await onlooker.press("y")
        await onlooker.until(lambda: any(made(folder)))
        tasks = onlooker.app.task_manager.tasks
        await onlooker.until(lambda: all(one.is_over for one in tasks))

    def made(folder):
        return [*(folder / "example_index" / ".filestore-summaries").rglob("*.md")]

    look(folder, act)
    with Store(str(folder / "example_index"), configuration=str(folder / "configuration")) as store:
        names = {str(path.relative_to(folder / "example_index")) for path in made(folder)}
        assert names
        assert all("garden" in name for name in names), names
        assert store.about("garden/").about == "folder"


def test_a_second_passage_of_a_heading_says_its_own_words(folder):
    """Its heading stands once above them, as far as they are listed one after the other."""
    words = "\n\n".join(f"{one} is what this part is about, {'and more ' * 9}." for one in "ABC")
    root = folder / "example_index"
    (root / "Long.md").write_text(f"# Long\n\n## Watering\n\n{words}\n")
    with Store(str(root), configuration=str(folder / "configuration")) as store:
        store.sync()

    async def act(onlooker):
        onlooker.app.open_path("Long.md")
        await onlooker.until(lambda: onlooker.app.view.outline.path == "Long.md")
        await onlooker.press("h", "l", words="B is")
        rows = [one.partition("│")[0] for one in seen(onlooker.app).splitlines()]
        assert sum("Watering" in one for one in rows) == 1
        assert all(any(f"{one} is" in row for row in rows) for one in "ABC")

    look(folder, act, size=(120, 30))
