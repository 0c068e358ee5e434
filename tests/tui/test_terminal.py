"""The installed inspector on a real terminal: typed at, resized, killed, and left."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from filestore.fs.lock import writer_lock
from tests.advice import advised

from .planted import Work
from .processes import children
from .terminal import Terminal, installed

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux")

STEPS: Final = 300
_STYLE: Final = re.compile(r"\x1b\[([0-9;:]*)m")


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """A folder with a clean store."""
    return Work(tmp_path / "work")


# Reading and editing


def test_reads_searches_edits_and_syncs(work: Work) -> None:
    """A chunk is read, found and edited; its drift is told at once, and one key brings the index
    in step."""
    editors = {"VISUAL": work.editor("visual"), "EDITOR": work.editor("editor")}
    with work.inspector(environment=editors) as terminal:
        terminal.until("rivers.md", "clean")
        terminal.press("l", "chunk1.md")
        terminal.press("j", "hills.md/chunk1.md", "hills of the order 1,")
        terminal.press("s", "a phrase")
        terminal.write("rivers order 4")
        terminal.press("Enter", "notes/rivers.md:15", "rivers of the order 4,")
        terminal.press("Escape", "18 chunks", "hills of the order 1,", gone="notes/rivers.md:15")
        terminal.press("e", "EDITING BY visual")
        terminal.write("a word by hand")
        terminal.press("Enter", "1 error", "Verify(1)", "a word by hand", "modified")
        assert (work.resource("hills") / "chunk1.md").read_text().endswith("a word by hand\n")
        terminal.press("i", "clean", "fresh", gone="Verify(1)")
        terminal.type("q")
        assert terminal.ended() == 0
    with work.store() as store:
        assert store.status().clean


def test_the_editor_opens_at_the_line(work: Work) -> None:
    """e goes to the line of the hit; while a text is read, to the line in sight."""
    chunk = work.resource("rivers") / "chunk4.md"
    lines = [f"Paragraph {number} is about stones.\n\n" for number in range(1, 41)]
    chunk.write_text(f"---\nsource: x.md\n---\n{''.join(lines)}The word basalt.\n")
    with work.store() as store:
        store.sync()
    vim, told = work.folder / ".editors" / "vim", work.folder / ".editors" / "told"
    vim.parent.mkdir()
    vim.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(told))}\n')
    vim.chmod(0o755)
    with work.inspector(environment={"EDITOR": shlex.quote(str(vim))}) as terminal:
        terminal.until("rivers.md", "clean")
        terminal.press("s", "a phrase")
        terminal.write("k:basalt")
        terminal.press("Enter", "chunk4.md:84", "is about stones")
        terminal.press("e", "has not changed")
        terminal.press("l", "Paragraph 40 ")
        terminal.press("g", "Paragraph 1 ", "Paragraph 2 ")
        terminal.type("j", "j")
        terminal.until("Paragraph 2 ", gone="Paragraph 1 ")
        terminal.type("e")
        deadline = time.monotonic() + 30
        while told.read_text().count("\n") < 2:
            assert time.monotonic() < deadline, told.read_text()
            time.sleep(0.05)
        # A key that comes with the editor is for the editor.
        terminal.until("Paragraph 2 ", gone="has not changed")
        terminal.type("q")
        assert terminal.ended() == 0
    assert told.read_text().splitlines() == [f"+84 {chunk}", f"+6 {chunk}"]


def test_editor_that_fails_is_told(work: Work) -> None:
    """Without $VISUAL it is $EDITOR; one that ends with an error is told, and nothing drifted."""
    before = work.truth()
    with work.inspector(environment={"EDITOR": work.editor("editor")}) as terminal:
        terminal.until("rivers.md", "clean")
        terminal.press("l", "chunk1.md")
        terminal.press("j", "hills.md/chunk1.md", "hills of the order 1,")
        terminal.press("e", "EDITING BY editor")
        terminal.write("fail")
        terminal.press("Enter", "ended with 1")
        terminal.until("hills of the order 1,", "clean")
        terminal.type("C-c")
        assert terminal.ended() == 0
        assert terminal.has_left()
    assert work.truth() == before


PATIENT: Final = """#!/bin/sh
trap 'echo TAKEN' INT
trap 'echo THE OTHER' QUIT
for file; do :; done
echo EDITING
until read words; do :; done
echo "$words" >> "$file"
"""


@pytest.mark.parametrize("is_inspector", [True, False], ids=["inspector", "open"])
def test_the_keys_of_an_interrupt_are_the_editors(work: Work, is_inspector: bool) -> None:
    r"""Ctrl-C and Ctrl-\\ in an editor lose no word, and end nothing but what it lets them end."""
    editor = work.folder / "patient"
    editor.write_text(PATIENT)
    editor.chmod(0o755)
    chunk = work.resource("hills") / "chunk1.md"
    variables = {"VISUAL": "", "EDITOR": shlex.quote(str(editor))}
    opening = [installed(), "open", "--chunk", "file_index/chunked/hills.md/chunk1.md"]
    with (
        work.inspector("--select", str(chunk), environment=variables)
        if is_inspector
        else Terminal(opening, str(work.folder), environment=variables)
    ) as terminal:
        if is_inspector:
            terminal.until("clean", "hills of the order 1,")
            terminal.type("e")
        terminal.until("EDITING")
        terminal.press("C-c", "TAKEN")
        terminal.press("C-\\", "THE OTHER")
        terminal.write("a word by hand")
        terminal.type("Enter")
        if is_inspector:
            terminal.until("Verify(1)", "a word by hand")
            terminal.type("q")
        assert terminal.ended() == 0
    assert chunk.read_text().endswith("a word by hand\n")


def test_keys_right_behind_that_of_the_editor_are_not_ours(work: Work) -> None:
    """They were meant for the editor, which was not there yet: they do nothing when it ends."""
    variables = {"EDITOR": work.editor("editor")}
    with work.inspector("--select", "hills.md/chunk1.md", environment=variables) as terminal:
        terminal.until("clean", "hills of the order 1,")
        terminal.write("ei3")
        terminal.until("EDITING BY editor")
        terminal.write("a word by hand")
        terminal.press("Enter", "Verify(1)", "a word by hand")
        terminal.press("w", "Tasks", gone="done     sync")
        terminal.press("Escape", gone="esc closes")
        terminal.type("q")
        assert terminal.ended() == 0
    assert {code for code, _ in work.findings()} == {"modified"}


def test_a_moved_resource_is_marked_and_opens_where_it_is(work: Work) -> None:
    """Its row has the drift; what is below it is read, and edited, in its new folder."""
    before, after = work.resource("hills"), work.chunked / "uplands.md"
    before.rename(after)
    with work.inspector(environment={"EDITOR": work.editor("editor")}) as terminal:
        terminal.until("hills.md", "W7", "moved to", "chunked/uplands.md")
        terminal.press("l", "chunk1.md  hills 1", "W !")
        terminal.press("j", "hills of the order 1,", "it is chunked/uplands.md/chunk1.md now")
        terminal.press("o", "[Raw]", "headings:")
        terminal.press("e", "EDITING BY editor")
        terminal.write("a word by hand")
        terminal.press("Enter", "a word by hand", "edited since it was indexed")
        terminal.type("q")
        assert terminal.ended() == 0
    assert (after / "chunk1.md").read_text().endswith("a word by hand\n")


def test_a_signal_waits_for_the_editor(work: Work) -> None:
    """Who ends the inspector while an editor has the terminal breaks into nobody's words."""
    variables = {"EDITOR": work.editor("editor")}
    with work.inspector("--select", "hills.md/chunk1.md", environment=variables) as terminal:
        terminal.until("clean", "hills of the order 1,")
        terminal.press("e", "EDITING BY editor")
        (inspector,) = children(terminal.pid())
        os.kill(inspector, signal.SIGTERM)
        terminal.write("a word by hand")
        terminal.type("Enter")
        assert terminal.ended() == 128 + signal.SIGTERM
        assert terminal.has_left()
    assert (work.resource("hills") / "chunk1.md").read_text().endswith("a word by hand\n")


def test_changes_from_outside_keep_the_place(work: Work) -> None:
    """Files that others write, rename and remove are noticed without a key; the cursor stays on
    its row, also when rows above it go."""
    with work.inspector() as terminal:
        terminal.until("rivers.md", "clean")
        terminal.press("=", "▾ rivers.md", "chunk6.md")
        terminal.type(*["j"] * 10)
        line, row = terminal.cursor("lakes.md/chunk3.md", "lakes of the order 3,")[0], "chunk3.md"
        hills, rivers = work.resource("hills"), work.resource("rivers")
        with open(hills / "chunk1.md", "a") as file:
            file.write("more\n")
        (rivers / "chunk2.md").rename(rivers / "chunk2b.md")
        (hills / "chunk2.md").unlink()
        told = "2 errors, 1 warning", "Verify(3)", "lakes of the order 3,"
        # Rows that are being read are a sign meanwhile.
        assert terminal.cursor(*told, row=row)[0] == line
        terminal.press("i", "1 file deleted", "hills.md/chunk2.md", "keep them")
        terminal.press("Enter", "1 error", gone="Verify(3)")
        terminal.press("i", "1 file deleted")
        terminal.type("Down")
        terminal.press("Enter", "clean", "17 chunks", gone="Verify(1)")
        terminal.cursor("lakes.md/chunk3.md", "lakes of the order 3,", row=row)
        terminal.type("q")
        assert terminal.ended() == 0


# Repair


def test_repair_and_undo_give_the_tree_back(work: Work) -> None:
    """What full verification finds is marked, planned and applied; undo gives back every byte of
    the files, and redo does it again."""
    whole = work.truth()
    (work.resource("lakes") / "chunk2.md").unlink()
    broken = work.truth()
    with work.inspector("--page", "verify") as terminal:
        terminal.until("missing  1")
        terminal.press("V", "enter chooses")
        terminal.type("Down")
        terminal.press("Enter", "verified in full", "chunk2.md  the file is gone")
        terminal.press("j", "the file is gone", "chunked/lakes.md/chunk2.md")
        terminal.press("Space", "1 marked")
        terminal.press("p", "plan for 1 finding  1 step")
        assert work.truth() == broken
        terminal.press("t", "restore", "--write-files")
        terminal.press("A", "esc cancels")
        assert work.truth() == broken
        terminal.press("y", "applied 1 step", "clean")
        assert work.truth() == whole
        terminal.press("u", "type yes")
        terminal.type("y")
        assert work.truth() == whole
        terminal.write("es")
        terminal.press("Enter", "1 file removed", "U redoes it")
        assert work.truth() == broken
        terminal.press("U", "esc cancels")
        terminal.press("y", "clean", gone="U redoes it")
        assert work.truth() == whole
        terminal.type("q")
        assert terminal.ended() == 0


@pytest.mark.parametrize("restored", [0, 1, STEPS // 2, STEPS - 1])
def test_killed_apply_can_be_undone(tmp_path: Path, restored: int) -> None:
    """Whatever is killed with the screen in the middle of an apply: undo gives back every byte,
    and after that the store has no finding that it did not have before."""
    work = Work(tmp_path / "work", sections=STEPS // 2)
    for name in ("hills", "lakes"):
        for path in work.resource(name).rglob("chunk*.md"):
            path.unlink()
    before, batches, found = work.truth(), work.batches(), work.findings()
    assert found == {("mass-missing", "chunked")}
    with work.inspector("--page", "repair") as terminal:
        terminal.until("error")
        terminal.press("p", "plan for everything")
        terminal.press("t", "--write-files", f"{STEPS} of {STEPS}")
        terminal.press("A", "esc cancels")
        terminal.type("y")
        _wait_for(work, restored)
        _kill_all(terminal.pid())
    assert len(work.truth()) >= len(before) + restored
    if work.batches() != batches:
        undone = work.run("undo")
        assert undone.returncode == 0, undone.stderr
        assert work.truth() == before
    assert work.truth(leftovers=False) == before
    assert work.run("sync").returncode in (0, 4)  # 4: so much is gone that it asks
    assert work.truth() == before
    assert work.findings() <= found


def _wait_for(work: Work, restored: int) -> None:
    """Wait until so many files are there again."""
    deadline = time.monotonic() + 60
    lost = [work.resource("hills"), work.resource("lakes")]
    while time.monotonic() < deadline:
        there = sum(entry.name.endswith(".md") for path in lost for entry in os.scandir(path))
        if there >= restored:
            return
    raise AssertionError("nothing was applied")


def _kill_all(pid: int) -> None:
    """Kill a process and all below it, at once: nobody has time for a last word."""
    found = [pid]
    for one in found:
        found += children(one)
    for one in reversed(found):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


# The screen


def test_resizing_keeps_the_place(work: Work) -> None:
    """Twenty sizes in a second leave the cursor on its row, in sight; a screen too small for
    anything says so and comes back."""
    with work.inspector(columns=120, rows=30) as terminal:
        terminal.until("rivers.md", "clean")
        terminal.press("=", "chunk6.md")
        terminal.type(*["j"] * 10)
        before = terminal.cursor("lakes.md/chunk3.md", "lakes of the order 3,")
        for at in range(20):
            terminal.resize(60 + 7 * at if at % 2 else 200 - 7 * at, 20 + 2 * at)
            time.sleep(0.03)
        terminal.resize(120, 30)
        seen = "lakes of the order 3,", "? help", "18 chunks"
        assert terminal.cursor(*seen, row=before[1]) == before
        terminal.resize(60, 20)
        terminal.until(">     chunk3.md", gone="lakes of the order 3,")
        terminal.resize(40, 10)
        terminal.until("too small")
        terminal.resize(9, 4)
        time.sleep(0.3)
        terminal.resize(200, 60)
        terminal.until(">     chunk3.md", "lakes of the order 3,", "18 chunks", "? help")
        terminal.type("q")
        assert terminal.ended() == 0
        assert terminal.has_left()


def test_place_is_found_again(work: Work) -> None:
    """Page, open resources and cursor are as they were left; what is kept of them may be damaged,
    which is told and costs nothing else."""
    with work.inspector() as terminal:
        terminal.until("rivers.md", "clean")
        terminal.press("j", "> ▸ lakes.md")
        terminal.press("l", "chunk1.md")
        terminal.type("j", "j")
        # The text of the whole resource has these words, too.
        left = terminal.cursor("lakes.md/chunk2.md", "lakes of the order 2,")
        terminal.type("q")
        assert terminal.ended() == 0
    (kept,) = (work.folder / ".state" / "filestore").glob("*.json")
    with work.inspector() as terminal:
        assert terminal.cursor("lakes of the order 2,", "clean", row=left[1]) == left
        terminal.press("2", "[2 Verify]")
        terminal.type("q")
        assert terminal.ended() == 0
    with work.inspector() as terminal:
        terminal.until("[2 Verify]")
        terminal.type("q")
        assert terminal.ended() == 0
    kept.write_bytes(kept.read_bytes()[:-9])
    with work.inspector() as terminal:
        terminal.until("damaged", "[1 Browse]", "rivers.md")
        terminal.type("q")
        assert terminal.ended() == 0


REVERSED = r"\x1b\[(\d+;)*7m[^\x1b]*\w"
"""Words in front of what is behind them."""


def test_no_color_is_readable(work: Work) -> None:
    """With NO_COLOR no colour is drawn, and rows under a cursor are told by their shape."""
    (work.resource("hills") / "chunk1.md").unlink()
    with work.inspector(environment={"NO_COLOR": "1"}) as terminal:
        terminal.until("rivers.md", "1 error")
        terminal.press("l", "chunk1.md")
        _check_bare(terminal.painted())
        terminal.press("2", "missing")
        _check_bare(terminal.painted())
        terminal.press("j", "the file is gone")
        _check_bare(terminal.painted())
        for key, title in (("?", "Keys"), ("T", "Colours")):
            terminal.press(key, title, "esc c")
            _check_bare(terminal.painted())
            rows = terminal.painted().partition(title)[2].partition("esc c")[0].splitlines()
            assert sum(bool(re.search(REVERSED, row)) for row in rows) == 1
            terminal.type("Escape")
            terminal.until("missing", gone="esc c")
        terminal.press("T", "filestore-light")
        terminal.type("Escape")
        terminal.press("3", "no plan")
        terminal.press("p", "remove from the index")
        _check_bare(terminal.painted())
        terminal.type("q")
        assert terminal.ended() == 0


def _check_bare(painted: str) -> None:
    """Have no colour set: the terminal's own are what it shows."""
    for codes in _STYLE.findall(painted):
        for code in map(int, filter(None, re.split("[;:]", codes))):
            assert code in (39, 49) or not (30 <= code <= 49 or 90 <= code <= 107), codes


# Stores that cannot be opened


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("TERM=dumb {}", "TERM is 'dumb'"),
        ("mkdir gone; cd gone; rmdir ../gone; {}", "the folder that this runs in is gone"),
    ],
)
def test_where_nothing_can_be_shown_a_sentence_says_why(
    tmp_path: Path, line: str, words: str
) -> None:
    """A terminal without a cursor, a working folder that is gone: one sentence, and a remedy."""
    shell = ["sh", "-c", line.format(shlex.join([installed(), "tui"]))]
    with Terminal(shell, str(tmp_path)) as terminal:
        seen = terminal.until("ENDED")
        assert words in seen
        assert advised(seen)


def _inspect(folder: Path, *options: str) -> Terminal:
    return Terminal([installed(), "tui", *options], str(folder))


@pytest.mark.parametrize(
    ("key", "words"), [("Enter", "0 chunks"), ("n", "0 chunks"), ("x", "[1 Browse]")]
)
def test_without_a_store_one_is_made(tmp_path: Path, key: str, words: str) -> None:
    """Where no store is, one key makes one and another opens a copy of the example."""
    with _inspect(tmp_path) as terminal:
        terminal.until("n  make a chunk store here", "no documents here", "enter chooses")
        assert not any(path.is_dir() for path in tmp_path.glob("*_index"))
        terminal.press(key, words, "clean", gone="make a chunk store here")
        terminal.type("q")
        assert terminal.ended() == 0
    (made,) = tmp_path.glob("*_index")
    assert (made / "filestore.toml").is_file()


def test_a_folder_of_notes_is_indexed_where_it_lies(tmp_path: Path) -> None:
    """Enter takes the first of what is offered; the next time the store is among the recent."""
    notes, other = tmp_path / "notes", tmp_path / "other"
    notes.mkdir()
    other.mkdir()
    (notes / "roof.md").write_text("# Roof\n\nChecked after the storm.\n")
    (notes / "lease.txt").write_text("The lease ends in June.\n")
    home = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "own")}
    (tmp_path / "own" / "filestore").mkdir(parents=True)
    command = [installed(), "tui"]
    with Terminal(command, str(notes), environment=home) as terminal:
        terminal.until("i  index this folder where it is", "1 txt", "enter chooses")
        terminal.press("Enter", "roof.md", "clean", gone="index this folder")
        terminal.type("q")
        assert terminal.ended() == 0
    assert sorted(path.name for path in notes.iterdir() if path.name[0] != ".") == [
        "filestore.toml",
        "lease.txt",
        "roof.md",
    ]
    with Terminal(command, str(other), environment=home) as terminal:
        terminal.until("open", "notes", "enter chooses")
        terminal.press("Up")
        terminal.press("k")
        terminal.press("Enter", "roof.md", "clean")
        notes.rename(tmp_path / "moved")
        terminal.press("C-r", "is gone", "r  try again", "enter chooses")
        assert "make a chunk store" not in terminal.picture()
        (tmp_path / "moved").rename(notes)
        terminal.press("r", "roof.md", "clean", gone="is gone")
        terminal.type("q")
        assert terminal.ended() == 0


def test_another_store_is_opened_in_its_place(tmp_path: Path) -> None:
    """Of those opened before one is chosen; each keeps its place, and a signal still ends it."""
    home = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "own")}
    for name in ("roof", "lease"):
        folder = tmp_path / name
        folder.mkdir()
        for number in (1, 2):
            (folder / f"{name}{number}.md").write_text(f"# {name}\n\nNumber {number}.\n")
        words = [installed(), "init", "--in-place", "--embedder", "builtin", str(folder)]
        subprocess.run(words, check=True, capture_output=True, env={**os.environ, **home})
    command = [installed(), "tui"]
    with Terminal(command, str(tmp_path / "roof"), environment=home) as terminal:
        terminal.until("roof2.md", "clean")
        terminal.press("C-s", "another one")
        terminal.press("Enter", "the folder of a store")
        terminal.write(str(tmp_path))
        terminal.press("Enter", "no store in")
        terminal.press("j", "> ▸ roof2.md")
        terminal.press("C-s", "another one")
        terminal.press("Enter", "the folder of a store")
        terminal.write("../lease")
        terminal.press("Enter", "lease2.md", "clean", gone="roof2.md")
        terminal.type("q")
        assert terminal.ended() == 0
    with Terminal(command, str(tmp_path / "lease"), environment=home) as terminal:
        terminal.until("lease2.md", "clean")
        terminal.press("C-s", "Stores", "open roof")
        terminal.press("Escape", gone="Stores")
        terminal.press("C-s", "Stores", "open roof")
        terminal.press("Enter", "> ▸ roof2.md", "clean", gone="lease2.md")
        terminal.press(":", "a command")
        terminal.write("stores")
        terminal.press("Enter", "Stores", "open lease")
        terminal.press("Enter", "lease2.md", "clean", gone="roof2.md")
        (inspector,) = children(terminal.pid())
        os.kill(inspector, signal.SIGTERM)
        assert terminal.ended() == 128 + signal.SIGTERM
        assert terminal.has_left()


def test_without_a_store_it_can_be_left(tmp_path: Path) -> None:
    """Leaving where no store is makes none, and the exit code says that there was none."""
    with _inspect(tmp_path) as terminal:
        terminal.until("n  make a chunk store here", "enter chooses")
        terminal.type("q")
        code = terminal.ended()
        assert terminal.has_left()
    listed = subprocess.run([installed(), "ls"], cwd=tmp_path, capture_output=True, check=False)
    assert code == listed.returncode != 0
    assert not list(tmp_path.glob("*_index"))


def _make_newer(work: Work) -> None:
    import sqlite3

    with contextlib.closing(sqlite3.connect(work.root / ".sidecar" / "catalog.sqlite")) as catalog:
        catalog.execute("PRAGMA user_version=99")
        catalog.commit()


def _break_settings(work: Work) -> None:
    with open(work.root / "filestore.toml", "a") as file:
        file.write("= nonsense [\n")


def _open_to_all(work: Work) -> None:
    (work.root / ".sidecar").chmod(0o777)


def _replace_sidecar(work: Work) -> None:
    shutil.rmtree(work.root / ".sidecar")
    (work.root / ".sidecar").write_text("not a folder")


BREAKING: Final = {
    "newer": (_make_newer, "has schema 99"),
    "settings": (_break_settings, "fix "),
    "open to all": (_open_to_all, "everyone may write to it"),
    "no folder": (_replace_sidecar, "it is not a folder"),
}


@pytest.mark.parametrize("name", BREAKING)
def test_store_that_cannot_be_opened_says_what_to_do(work: Work, name: str) -> None:
    """A store that is refused is a screen with the reason and the remedy, and the exit code is the
    one that every command has for it."""
    break_it, words = BREAKING[name]
    break_it(work)
    code = work.run("search", "hills").returncode
    assert code != 0
    with work.inspector() as terminal:
        seen = terminal.until(words, "r  try again", "q quits")
        assert "make a store here" not in seen
        terminal.type("q")
        assert terminal.ended() == code


def test_store_that_was_mended_meanwhile_is_opened(work: Work) -> None:
    """Once the remedy was followed, one key goes on with the store."""
    settings = work.root / "filestore.toml"
    whole = settings.read_bytes()
    _break_settings(work)
    with work.inspector() as terminal:
        terminal.until("fix ", "r  try again", "enter chooses")
        settings.write_bytes(whole)
        terminal.press("r", "rivers.md", "clean", gone="try again")
        terminal.type("q")
        assert terminal.ended() == 0


@pytest.mark.long  # it waits as long as a writer waits for another one
def test_locked_store_is_browsed_and_says_who_holds_it(work: Work) -> None:
    """While another writer holds the store everything can be read; what would write says whom it
    waits for, and the screen stays alive."""
    with open(work.resource("hills") / "chunk1.md", "a") as file:
        file.write("more\n")
    lock = str(work.root / ".sidecar" / "lock")
    assert os.path.exists(lock)
    with writer_lock(lock, command="a slow one"), work.inspector() as terminal:
        terminal.until("rivers.md", "1 error")
        terminal.type("i")
        terminal.press("l", "chunk2.md")
        terminal.press("q", "sync is running")
        terminal.press("Escape", "chunk2.md", gone="sync is running")
        terminal.until("another writer holds the store", "a slow one")
        terminal.press("E", "Errors", "a slow one")
        terminal.press("Escape", "1 error", gone="esc closes")
        terminal.type("q")
        assert terminal.ended() == 0


# Nothing is written


def _visit(terminal: Terminal) -> None:
    """Go through every page and every panel; search, verify, mark and plan."""
    terminal.until("rivers.md", "1 error")
    terminal.press("l", "chunk2.md")
    terminal.press("j", "hills.md/chunk1.md", "hills of the order 1,")
    for key, words in (
        ("o", "[Raw]"),
        ("f", "[Facts]"),
        ("b", "[Neighbours]"),
        ("m", "map of the vectors"),
        ("t", "[Text]"),
        ("?", "esc closes"),
    ):
        terminal.press(key, words)
    terminal.press("Escape", "[Text]", gone="esc closes")
    terminal.type("Escape")
    terminal.press("s", "a phrase")
    terminal.write("wide lakes")
    terminal.press("Enter", "notes/lakes.md:7")
    terminal.press("Escape", "18 chunks")
    terminal.press("/", "!not")
    terminal.write("rivers")
    terminal.until("rivers.md", gone="lakes.md")
    terminal.press("Escape", "lakes.md")
    terminal.press("2", "modified  1")
    terminal.press("V", "enter chooses")
    terminal.type("Down")
    terminal.press("Enter", "verified in full")
    terminal.press("a", "1 marked")
    terminal.press("p", "plan for 1 finding  1 step")
    terminal.press("t", "leaves files alone")
    terminal.press("b", "changes: u undoes")
    for key in ("@", "E", "w", "Y", "T", ":"):
        terminal.type(key)
        time.sleep(0.2)
        terminal.type("Escape")
        time.sleep(0.2)
    terminal.until("changes: u undoes")


def test_nothing_is_written_by_looking(work: Work) -> None:
    """A session that sees everything, verifies and plans leaves every file as it was, and no
    file more."""
    with open(work.resource("rivers") / "chunk1.md", "a") as file:
        file.write("more\n")
    # Else a search indexes the edit.
    settings = work.root / "filestore.toml"
    settings.write_text(settings.read_text() + "\n[search]\nupdate = false\n")
    before = work.everything()
    with work.inspector() as terminal:
        _visit(terminal)
        terminal.press("b", "plan for 1 finding")
        terminal.press("A", "esc cancels")
        terminal.press("Escape", "plan for 1 finding", gone="esc cancels")
        terminal.type("q")
        assert terminal.ended() == 0
    assert work.everything() == before


def test_read_only_refuses_with_the_reason(work: Work) -> None:
    """Started read-only, whatever would write is refused and says why; nothing is written."""
    with open(work.resource("rivers") / "chunk1.md", "a") as file:
        file.write("more\n")
    before = work.everything()
    with work.inspector("--read-only", environment={"EDITOR": work.editor("editor")}) as terminal:
        terminal.until("rivers.md", "1 error")
        terminal.press("l", "chunk2.md")
        terminal.press("j", "hills.md/chunk1.md", "hills of the order 1,")
        terminal.press("i", "started with --read-only")
        terminal.type("e", "u")
        # An editor would have the screen, and no line to type in would come.
        terminal.press(":", "a command, a vector id")
        terminal.write("sync")
        terminal.until(":sync")
        # A key that comes as the line goes away reaches it still.
        terminal.press("Enter", "? help", gone=":sync")
        terminal.press("3", "no plan")
        terminal.press("p", "1 step")
        terminal.until("1 step", gone="started with --read-only")
        terminal.press("A", "started with --read-only")
        terminal.type("q")
        assert terminal.ended() == 0
    assert work.everything() == before
