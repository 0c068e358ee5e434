"""A conflict as somebody at the keyboard sees it: both sides, a choice, a plan, no surprise."""

import subprocess

import pytest

from filestore import Finding
from tui.formatting import plain
from tui.formatting.findings import facing
from tui.views.dialogs import ConfirmScreen
from tui.views.verify_panes import SidesScreen, columns, half_of
from tui.widgets.drawing import cells

MARKED = """Before the conflict.
<<<<<<< HEAD
Our word for it.
=======
Their word for it.
>>>>>>> branch
After the conflict.
"""


def conflict(case):
    """Edit a chunk and its source differently; returns the chunk."""
    chunk = case.chunks()[0]
    chunk.write_text(chunk.read_text().replace("All about", "My words about"))
    source = case.folder / "notes" / "hills.md"
    source.write_text("# Hills\n\nTheir new words about hills.\n")
    case.add(case.folder / "notes")
    return chunk


async def open_sides(session, code):
    """Show both sides of a finding as the Verify page asks for it."""
    found = [one for one in session.app.findings if one.code == code]
    assert found, list(session.app.findings)
    session.app.choose_side(found[0])
    await session.until(lambda: isinstance(session.app.screen, SidesScreen))
    await session.read("edit it by hand")
    await session.idle()
    return found[0]


def test_both_sides_of_an_ingest_conflict_stand_beside_each_other(case):
    """Lines that differ are marked; to take a side shows its plan, and writes nothing by itself."""
    chunk = conflict(case)
    before = chunk.read_text()

    async def act(session):
        await open_sides(session, "ingest-conflict")
        line = next(line for line in session.seen().splitlines() if "My words" in line)
        assert "|" in line
        assert "Their new words" in line
        await session.press("2")
        await session.read("take the new text into")
        await session.idle()
        assert "-My words about hills." in session.seen()
        assert "+Their new words about hills." in session.seen()
        assert session.view.command().endswith(f" repair --theirs {chunk.relative_to(case.root)}")
        assert isinstance(session.app.screen, ConfirmScreen)
        assert chunk.read_text() == before
        await session.press("y")
        await session.read("applied")

    case.inspect(act, size=(140, 40))
    assert "Their new words" in chunk.read_text()
    assert case.codes() == []


def test_keeping_the_edit_is_the_other_side(case):
    """1 keeps what the person wrote; afterwards nothing waits for a choice."""
    chunk = conflict(case)

    async def act(session):
        await open_sides(session, "ingest-conflict")
        await session.press("left")
        await session.read("keep the edit of")
        await session.idle()
        await session.press("y")
        await session.read("applied")

    case.inspect(act)
    assert "My words" in chunk.read_text()
    assert case.codes() == []


def test_the_text_that_both_began_with_is_shown_and_the_file_is_opened(case, monkeypatch):
    """`b` shows the common text and hides it; `e` opens this file, whatever the cursor is on."""
    chunk = conflict(case)
    opened = []

    async def act(session):
        monkeypatch.setattr(type(session.app), "edit", lambda _, path, *, line: opened.append(path))
        await open_sides(session, "ingest-conflict")
        assert "b  show the common ancestor" in session.seen()
        await session.press("b")
        await session.read("the common ancestor; b shows both sides again")
        assert "All about hills." in session.seen()
        assert "Their new words" not in session.seen()
        await session.press("b")
        await session.read("Their new words")
        await session.press("e")
        await session.until(lambda: bool(opened))
        assert not isinstance(session.app.screen, SidesScreen)

    case.inspect(act)
    assert opened == [str(chunk.relative_to(case.root))]


def test_of_two_copies_the_left_one_stays_with_1(case):
    """Each choice names the file that stays and the one that goes, and does just that."""
    first, second = case.chunks()[:2]
    second.write_bytes(first.read_bytes())

    async def act(session):
        left, right = (str(path.relative_to(case.root)) for path in (first, second))
        duplicate = Finding(code="duplicate", path=left, other=right)
        session.app.choose_side(duplicate)
        await session.read("edit it by hand")
        await session.read(f"1  keep {left}, remove {right}")
        await session.read(f"2  keep {right}, remove {left}")
        await session.press("1")
        await session.until(lambda: session.view._rows is not None)
        assert [step.path for step in session.view._rows.plan.steps] == [right]

    case.inspect(act, size=(160, 40))


def test_leaving_a_conflict_changes_nothing(case):
    """Escape goes back to the page; no plan is made and no file is written."""
    conflict(case)
    before = case.tree()

    async def act(session):
        await open_sides(session, "ingest-conflict")
        await session.press("escape")
        assert not isinstance(session.app.screen, SidesScreen)
        assert session.view._rows is None

    case.inspect(act)
    assert case.tree() == before


def test_a_side_of_marked_text_is_taken(case):
    """The marks go and our text stays, after its diff was seen; undo brings the marks back."""
    chunk = case.chunks()[1]
    chunk.write_text(MARKED)

    async def act(session):
        await open_sides(session, "conflict-markers")
        assert "HEAD" in session.seen()
        await session.press("1")
        await session.read("-Their word for it.")
        await session.press("y")
        await session.read("applied")
        assert chunk.read_text() == "Before the conflict.\nOur word for it.\nAfter the conflict.\n"
        await session.press("u")
        await session.read("changes 1 file back")
        await session.press("y")
        await session.read("undone")

    case.inspect(act)
    assert chunk.read_text() == MARKED


def test_one_of_two_equal_files_is_removed_after_a_typed_yes(case):
    """To take a side of a duplicate removes the other file, and only after yes was typed."""
    first = case.chunks()[0]
    copy = first.with_name("copy.md")
    copy.write_bytes(first.read_bytes())
    with case.store() as store:
        store.sync()
        found = [one for one in store.verify(level="fast").findings if one.code == "duplicate"]
    before = case.tree()
    assert found

    async def act(session):
        session.app.findings.add(found)
        shown = await open_sides(session, "duplicate")
        await session.press("1")
        await session.read("remove the copy")
        await session.idle()
        await session.press("y", "enter")
        assert case.tree() == before
        await session.press("escape", "A", *"yes", "enter")
        await session.read("applied")
        assert before.keys() - case.tree().keys() == {shown.other}

    case.inspect(act)


def test_on_a_narrow_screen_the_sides_stand_below_each_other(case):
    """Below 90 columns each change has its left lines above its right ones, with their marks."""
    conflict(case)

    async def act(session):
        await open_sides(session, "ingest-conflict")
        lines = [line.strip(" │") for line in session.seen().splitlines()]
        mine = next(number for number, line in enumerate(lines) if line.startswith("< My words"))
        assert lines[mine + 1].startswith("> Their new words")

    case.inspect(act, size=(60, 20))


def test_each_conflict_of_a_file_is_chosen(case):
    """Three keys for three conflicts, the lines around each shown; then a plan as of any choice."""
    chunk = case.chunks()[1]
    hunk = "<<<<<<< HEAD\nOur {0}.\n=======\nTheir {0}.\n>>>>>>> branch\n"
    words = ("ash", "elm", "yew")
    chunk.write_text("".join(f"Before {word}.\n{hunk.format(word)}" for word in words) + "End.\n")
    before = chunk.read_text()

    async def act(session):
        await open_sides(session, "conflict-markers")
        await session.read("conflict 1 of 3, lines 2-6")
        assert "Before ash." in session.seen()
        assert "Our elm." not in session.seen()
        await session.press("2")
        await session.read("conflict 2 of 3, lines 8-12")
        assert "Their elm." in session.seen()
        assert "edit it by hand, without the sides chosen so far" in session.seen()
        await session.press("3")
        await session.read("conflict 3 of 3")
        await session.press("less_than_sign")
        await session.read("-Our ash.")
        command = f" repair --hunks theirs,both,ours:{chunk.relative_to(case.root)}"
        assert session.view.command().endswith(command)
        assert chunk.read_text() == before
        await session.press("y")
        await session.read("applied")
        assert chunk.read_text() == (
            "Before ash.\nTheir ash.\nBefore elm.\nOur elm.\nTheir elm.\n"
            "Before yew.\nOur yew.\nEnd.\n"
        )

    case.inspect(act)


def test_what_has_no_sides_is_told(case):
    """A conflict that is over by now says so, and the page is back."""

    async def act(session):
        session.app.choose_side(Finding(code="ingest-conflict", path="chunked/notes/x.md"))
        await session.told("no choice waits there any more")
        await session.until(lambda: not isinstance(session.app.screen, SidesScreen))

    case.inspect(act)


def test_a_conflict_that_ends_in_a_shell_is_gone(case, monkeypatch):
    """Although no file changes: what `git add` writes is git's own."""
    monkeypatch.setattr("tui.app.inspector.PASSING_S", 0.05)
    chunk = case.chunks()[1]
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]

    def git(*words, check=True):
        subprocess.run(
            ["git", *identity, *words], cwd=case.folder, check=check, capture_output=True
        )

    git("init", "-q")
    git("add", "--all")
    git("commit", "-qm", "base")
    for branch, base in (("one", "HEAD"), ("two", "HEAD~1")):
        git("checkout", "-q", "-b", branch, base)
        chunk.write_text(f"Of {branch}.\n")
        git("commit", "-qam", branch)
    git("merge", "one", check=False)
    chunk.write_text("Of both.\n")

    def codes(session):
        return {one.code for one in session.app.findings}

    async def act(session):
        await session.until(lambda: {"conflict-markers", "git-operation"} <= codes(session))
        await session.idle()
        git("add", "--all")
        await session.until(lambda: "conflict-markers" not in codes(session))
        assert "git-operation" in codes(session)
        await session.idle()
        git("commit", "-qm", "merged")
        await session.until(lambda: "git-operation" not in codes(session))

    case.inspect(act)


@pytest.mark.parametrize("width", [9, 20, 41, 120])
def test_columns_are_as_wide_as_the_screen(width):
    """Long lines and wide characters wrap within their half, and nothing is lost."""
    ours = "same\n" + "漢字かな" * 20 + "\nmine only, " + "long " * 30
    theirs = "same\ntheirs\t漢 " + "x" * 70
    lines = columns(facing(ours, theirs), width)
    assert {cells(line) for line in lines} == {2 * half_of(width) + 3}
    text = plain(lines).replace("\n", "").replace(" ", "").replace("|", "")
    assert text.count("漢") == 20 + 1
    assert width <= 20 or text.count("long") == 30
