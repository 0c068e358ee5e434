"""Notes that programs write: new ones and changes, in every layout, all of it undone.

`interrupted_changes.py` carries out what is killed; here every few of its points run.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import filestore
from filestore import FilestoreError, RefusedError, Store, UsageError
from filestore.core.caller import writing_for
from filestore.history import write
from filestore.ingest.edits import OtherRevisionError
from tests.advice import advised, all_words
from tests.system.conftest import files_below

TEXT = "The rent is paid on the third working day.\nGas is read off in March.\n"


PROGRAM = Path(__file__).parents[1] / "interrupted_changes.py"


@pytest.fixture(params=["tree", "flat", "in-place"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """One of each layout."""
    root = tmp_path / "kb"
    root.mkdir()
    if request.param == "in-place":
        (root / "own.md").write_text("# Own\n\nWritten by a person.\n")
    with filestore.create(root, layout=request.param, embedder="builtin") as made:
        made.sync()
        yield made


def truth(store: Store) -> dict[str, bytes]:
    """What a person has in the folder."""
    derived = (".sidecar/", ".undo/", ".filestore/")
    found = files_below(Path(store.root))
    return {path: data for path, data in found.items() if not path.startswith(derived)}


def test_a_folder_is_one_that_every_system_tells_from_others(store: Store) -> None:
    """In other letters it is refused by name, as is one where a file stands; nothing is written."""
    if store.settings.layout == "flat":
        return
    folder = "r\u00e4ume" if store.settings.layout == "tree" else "r\u00e4ume/inner"
    note = store.add_note(TEXT, folder=folder)
    before = truth(store)
    for other in (folder.title(), "ra\u0308ume"):
        with pytest.raises(
            RefusedError, match="differs only by case or composition from 'r\u00e4ume'"
        ):
            store.add_note(TEXT, folder=other)
    if store.settings.layout == "in-place":
        for other in (note.path, f"{note.path}/below"):
            with pytest.raises(RefusedError, match="exists, and is not a folder"):
                store.add_note(TEXT, folder=other)
    assert truth(store) == before
    store.add_note(TEXT, folder=folder)
    assert store.status().clean


def test_a_note_is_found_and_taken_back(store: Store) -> None:
    """At once, without a sync; after undo the folder is as it was."""
    before = truth(store)
    note = store.add_note(TEXT, title="Rent: 2/3", metadata={"tags": ["house"]})
    (hit,) = store.search("third working day", k=1)
    assert (hit.path.partition(":")[0], hit.freshness) == (note.path, "fresh")
    folder = "chunked" if store.settings.layout == "flat" else "notes"
    assert hit.path.partition(":")[0].endswith(f"{folder}/Rent 2 3.md")
    assert store.status().clean
    assert b"# Rent: 2/3" in truth(store)[note.path]
    assert [one.path for one in store.search("rent", where={"tags": "house"})] != []
    store.undo(note.undo)
    assert truth(store) == before
    assert not list(store.search("third working day", mode="keyword"))
    store.redo(note.undo)
    assert note.path in truth(store)


def test_a_second_note_takes_another_name(store: Store) -> None:
    """Also where the names differ by case alone."""
    paths = [store.add_note(TEXT, title=title).path for title in ("Rent", "Rent", "RENT")]
    assert len({path.casefold() for path in paths}) == 3


def test_a_passage_is_replaced(store: Store) -> None:
    """And nothing else; undone byte for byte."""
    note = store.add_note(TEXT, title="Rent", metadata={"tags": "a"})
    before = truth(store)
    done = store.edit_note(note.path, old="third working day", new="first of May")
    assert truth(store)[note.path] != before[note.path]
    body = before[note.path].split(b"# Rent")[1].replace(b"third working day", b"first of May")
    assert truth(store)[note.path].split(b"# Rent")[1] == body
    assert [one.freshness for one in store.search("first of May", k=1)] == ["fresh"]
    assert store.status().clean
    store.undo(done.undo)
    assert truth(store) == before


@pytest.mark.parametrize("old", ["nowhere", "is"])
def test_a_passage_that_is_not_there_once_changes_nothing(store: Store, old: str) -> None:
    """Whoever read something else is told."""
    note = store.add_note(TEXT, title="Rent")
    before = truth(store)
    with pytest.raises(RefusedError, match="passage"):
        store.edit_note(note.path, old=old, new="x")
    assert truth(store) == before


def test_a_section_is_replaced(store: Store) -> None:
    """All below its heading, whoever wrote it; what stands elsewhere stays byte for byte."""
    note = store.add_note(f"{TEXT}\n## Water\n\nBy the door.\n", title="Rent", metadata={"a": 1})
    place = Path(store.root, note.path)
    place.write_bytes(place.read_bytes() + b"By hand.\n\n# Other\nStays.")
    before = place.read_bytes()
    done = store.edit_note(note.path, section="Water", new="Two pipes.\n")
    assert place.read_bytes() == before.replace(b"By the door.\nBy hand.\n", b"Two pipes.\n")
    store.undo(done.undo)
    assert place.read_bytes() == before
    store.edit_note(note.path, section="Rent", new="x")
    assert place.read_bytes().endswith(b"# Rent\n\nx\n\n# Other\nStays.")


def test_a_text_is_added_at_the_end(store: Store) -> None:
    """A paragraph of its own, also where the file ends within a line; found at once."""
    note = store.add_note(TEXT, title="Rent")
    place = Path(store.root, note.path)
    place.write_bytes(place.read_bytes().rstrip(b"\n"))
    before = place.read_bytes()
    done = store.append_note(note.path, "A lamp burns.", revision=store.show(note.path).revision)
    text = before.rpartition(b"---\n")[2]
    assert place.read_bytes().rpartition(b"---\n")[2] == text + b"\n\nA lamp burns.\n"
    assert [one.freshness for one in store.search("lamp burns", k=1)] == ["fresh"]
    assert done.revision == store.show(note.path).revision
    store.undo(done.undo)
    assert place.read_bytes() == before


def test_a_plan_writes_nothing(store: Store) -> None:
    """Neither a file, nor a folder, nor a part of the sidecar; it shows what would change."""
    note = store.add_note(TEXT, title="Rent")
    before = everything(store)
    folder = None if store.settings.layout == "flat" else "elsewhere"
    planned = store.add_note("A lamp burns.\n", title="Lamp", folder=folder, plan=True)
    assert planned.path.endswith("Lamp.md")
    assert (planned.undo, planned.revision) == (None, "")
    assert "+A lamp burns." in planned.diff.splitlines()
    for change in (
        store.append_note(note.path, "A lamp burns.", plan=True),
        store.edit_note(note.path, old="rent is", new="lamp burns", plan=True),
        store.edit_note(note.path, section="Rent", new="A lamp burns.", plan=True),
    ):
        assert (change.undo, change.revision) == (None, note.revision)
        assert "lamp burns" in change.diff
        assert change.diff.startswith(f"--- {note.path}\n+++ {note.path}\n@@ ")
    long = store.append_note(note.path, "A lamp burns.\n" * 10_000, plan=True).diff
    assert len(long) < 9_000
    assert long.endswith("(cut)")
    assert everything(store) == before
    with pytest.raises(RefusedError):
        store.edit_note(note.path, old="nowhere", new="x", plan=True)
    assert everything(store) == before


def everything(store: Store) -> dict[str, bytes]:
    """Every file of a store and of its sidecar."""
    return files_below(Path(store.root))


def test_another_revision_is_refused(store: Store) -> None:
    """With the one that the file has now, and a way on; nothing is written."""
    note = store.add_note(TEXT, title="Rent")
    other = store.add_note(TEXT, title="Other")
    place = Path(store.root, note.path)
    assert note.revision == store.show(note.path).revision
    place.write_bytes(place.read_bytes() + b"By hand.\n")
    now, before = store.show(note.path).revision, truth(store)
    for read in (note.revision, other.revision, "", "0" * 16, "x\n" * 9):
        for change in (
            partial(store.append_note, note.path, "x"),
            partial(store.edit_note, note.path, old="rent", new="x"),
            partial(store.edit_note, note.path, section="Rent", new="x"),
            partial(store.edit_note, note.path, old="rent", new="x", plan=True),
        ):
            with pytest.raises(OtherRevisionError, match=now) as refused:
                change(revision=read)
            assert "; show " in refused.value.message
    assert truth(store) == before
    store.append_note(note.path, "x", revision=now)


def test_an_edit_between_the_look_and_the_write_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the revision that the other one made; that stays."""
    note = store.add_note(TEXT, title="Rent")
    place = Path(store.root, note.path)
    change = write.change

    def late(*given: Any, **named: Any) -> str | None:
        place.write_bytes(place.read_bytes() + b"By hand.\n")
        return change(*given, **named)

    monkeypatch.setattr(write, "change", late)
    with pytest.raises(OtherRevisionError) as refused:
        store.append_note(note.path, "x", revision=note.revision)
    assert place.read_bytes().endswith(b"By hand.\n")
    assert store.show(note.path).revision in str(refused.value)


def signing(store: Store) -> Store:
    """The same store, which asks for the names of programs."""
    settings = Path(store.root, "filestore.toml")
    settings.write_text(f"{settings.read_text()}\n[agents]\nsign = true\n")
    return Store(store.root)


@pytest.mark.parametrize(
    ("had", "made"),
    [
        ("", 'author: "Claude"\n'),
        ("author: Ada # me\n", 'author: ["Ada", "Claude"] # me\n'),
        ("author: [Ada, Bob]\ntags: [a]\n", 'author: ["Ada", "Bob", "Claude"]\ntags: [a]\n'),
        ("author: Claude\n", "author: Claude\n"),
        ("author: {name: Ada}\n", "author: {name: Ada}\n"),
    ],
)
def test_who_wrote_stands_in_the_frontmatter(store: Store, had: str, made: str) -> None:
    """Where the store asks for it, after whom it names already; all else stays as it was."""
    note = store.add_note(TEXT, title="Rent")
    place = Path(store.root, note.path)
    text = f"{TEXT}\n# Other\n"
    place.write_text(f"---\n{had}---\n{text}" if had else text)
    store.sync()
    with signing(store) as other:
        with writing_for("Claude"):
            planned = other.edit_note(note.path, old="rent is", new="rents are", plan=True)
            other.edit_note(note.path, old="rent is", new="rents are")
        wanted = f"---\n{made}---\n{text.replace('rent is', 'rents are')}"
        assert place.read_text() == wanted
        signs = "+author" in (planned.diff or "")
        assert signs == (made != had)
        other.append_note(note.path, "Of a person.")
        assert place.read_text().startswith(wanted)
        with writing_for("x\ny: \u202e1"):
            signed = other.add_note("Words.\n", title="Two", metadata={"author": "Ada"})
        assert other.show(signed.path).frontmatter["author"] == ["Ada", "x\ny: \u202e1"]
        assert other.status().clean


@pytest.mark.parametrize("head", ['+++\nauthor = "Ada"\n+++\n', '{\n"author": "Ada"\n}\n'])
def test_another_frontmatter_is_not_signed(tmp_path: Path, head: str) -> None:
    """None is put above one that is no YAML."""
    place = tmp_path / "kb" / "a.md"
    place.parent.mkdir()
    place.write_text(f"{head}\n# A\n\nWords.\n")
    with (
        filestore.create(place.parent, layout="in-place", embedder="builtin") as made,
        signing(made) as store,
        writing_for("Claude"),
    ):
        store.sync()
        store.edit_note("a.md", old="Words", new="Others")
    assert place.read_text() == f"{head}\n# A\n\nOthers.\n"


ADDING = """
import sys
from filestore import RefusedError, Store

root, path, name = sys.argv[1:]
with Store(root) as store:
    for number in range(6):
        while True:
            revision = store.show(path).revision
            try:
                store.append_note(path, f"- {name} {number}", revision=revision)
            except RefusedError as error:
                assert "has revision" in str(error), error
            else:
                break
"""


def test_two_processes_on_one_file_lose_nothing(store: Store) -> None:
    """Each adds to the revision that it read, or reads again."""
    note = store.add_note(TEXT, title="Rent")
    words = [sys.executable, "-c", ADDING, store.root, note.path]
    store.close()
    running = [subprocess.Popen([*words, name]) for name in ("one", "two")]
    assert [process.wait() for process in running] == [0, 0]
    text = Path(store.root, note.path).read_text()
    for line in (f"- {name} {number}\n" for name in ("one", "two") for number in range(6)):
        assert text.count(line) == 1
    assert store.status().clean


def test_what_is_read_only_is_left(store: Store) -> None:
    """Though a rename would replace it."""
    note = store.add_note(TEXT, title="Rent")
    place = Path(store.root, note.path)
    place.chmod(0o444)
    with pytest.raises(RefusedError, match="read-only"):
        store.append_note(note.path, "x")
    assert place.stat().st_mode & 0o777 == 0o444


def test_a_frontmatter_is_not_made_unreadable(tmp_path: Path) -> None:
    """By an edit in place; what could not be read before may be edited all the same."""
    place = tmp_path / "kb" / "a.md"
    place.parent.mkdir()
    with filestore.create(place.parent, layout="in-place", embedder="builtin") as store:
        for text in ("---\ntags: [a]\n---\nWords.\n", "---\ntags: [a\n---\nWords.\n"):
            place.write_text(text)
            store.sync()
            assert store.edit_note("a.md", old="Words", new="Others").undo
        place.write_text("---\ntags: [a]\n---\nWords.\n")
        with pytest.raises(UsageError, match="would have a malformed frontmatter"):
            store.edit_note("a.md", old="[a]", new="[a")
        assert store.edit_note("a.md", old="[a]", new="[b]").undo
        assert place.read_text() == "---\ntags: [b]\n---\nWords.\n"


@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_an_edited_chunk_of_a_source_is_kept(
    tmp_path: Path, layout: Literal["tree", "flat"]
) -> None:
    """As if a person had edited it: the next update of the source does not take it away."""
    source = tmp_path / "house.md"
    source.write_text(f"# House\n\n{TEXT}")
    with filestore.create(tmp_path / "kb", layout=layout, embedder="builtin") as store:
        store.add(source)
        (hit,) = store.search("third working day", k=1)
        store.edit_note(hit.path, old="third", new="fourth")
        assert store.show(hit.path).record["hand_edited"]
        store.add(source)
        assert "fourth working day" in store.show(hit.path).body


def test_lines_that_end_in_cr_lf_stay_so(store: Store) -> None:
    """Though whoever edits writes line feeds."""
    note = store.add_note(TEXT, title="Rent")
    place = Path(store.root, note.path)
    place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))
    store.sync()
    store.edit_note(note.path, old="day.\nGas", new="day.\nWater,\nand gas")
    data = place.read_bytes()
    assert data.endswith(b"day.\r\nWater,\r\nand gas is read off in March.\r\n")
    assert data.count(b"\n") == data.count(b"\r\n")


def test_an_edit_since_stops_the_undo(store: Store) -> None:
    """As after every command."""
    note = store.add_note(TEXT, title="Rent")
    place = Path(store.root, note.path)
    place.write_bytes(place.read_bytes() + b"By hand.\n")
    with pytest.raises(FilestoreError):
        store.undo(note.undo)
    assert place.read_bytes().endswith(b"By hand.\n")


def test_undo_takes_away_the_folders_that_were_made_alone(store: Store) -> None:
    """One that a person had made stays, empty as it was; redo and undo again do the same."""
    tree = Path(store.places.chunked)
    is_flat, is_in_place = store.settings.layout == "flat", store.places.tree.has_sections
    own = tree / ("notes" if is_in_place else "mine")
    own.mkdir(parents=True)
    inner = None if is_flat else f"{own.name}/a/b" if is_in_place else own.name
    for _ in range(2):
        notes = [
            store.add_note(TEXT, folder=inner),
            store.add_note(TEXT, title="Two", folder=inner),
        ]
        for note in reversed(notes):
            store.undo(note.undo)
        assert own.is_dir()
        assert not list(own.iterdir())
        store.redo(notes[0].undo)
        assert (Path(store.root) / notes[0].path).is_file()
        store.undo(notes[0].undo)
        assert own.is_dir()
        assert not list(own.iterdir())
    made = None if is_flat else "new"
    note = store.add_note(TEXT, folder=made)
    store.undo(note.undo)
    assert not (tree / "new").exists()
    store.redo(note.undo)
    store.undo(note.undo)
    assert not (tree / "new").exists()
    assert tree.is_dir()


def test_a_folder_is_refused_where_there_are_none(tmp_path: Path) -> None:
    """In the flat layout; the refusal says what to do."""
    with filestore.create(tmp_path / "kb", layout="flat", embedder="builtin") as store:
        with pytest.raises(FilestoreError) as refused:
            store.add_note(TEXT, folder="notes")
        assert refused.value.message.endswith("leave the folder out")
        with pytest.raises(FilestoreError, match="flat layout"):
            store.put(TEXT, into="notes")
        (path,) = store.put(TEXT, into="", names="own").paths
        assert (Path(store.root) / path).read_text().endswith(TEXT)


@pytest.mark.parametrize(
    ("layout", "operation", "how", "every"),
    [
        ("tree", "add-note", "kill", 5),
        ("flat", "add-note", "kill", 5),
        ("in-place", "add-note", "kill", 3),
        ("in-place", "add-note", "fail", 5),
        ("in-place", "edit-note", "kill", 5),
        ("flat", "edit-note", "interrupt", 6),
        ("tree", "append-note", "fail", 6),
        ("in-place", "undo-note", "kill", 8),
        ("tree", "redo-note", "kill", 9),
    ],
)
def test_an_interruption_anywhere_loses_nothing(
    layout: str, operation: str, how: str, every: int
) -> None:
    """Files are whole, the next command completes it or takes it back, nothing is left behind."""
    words = ["--operation", operation, "--how", how, "--layout", layout, "--every", str(every)]
    done = subprocess.run(
        [sys.executable, PROGRAM, *words],
        cwd=PROGRAM.parents[2],
        env=os.environ | {"PYTHONPATH": str(PROGRAM.parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert report["wrong"] == []
    assert report["points"] >= 2


NO_FOLDERS = [
    *("..", "../out", "/etc", ".git", "a/../..", "notes/.hidden", "a\0b", "link", "x\udcff"),
    *("a\nb", "a\x1b[2J", "a\x7fb", "a\u202eb", "a\u2028b", "\u200b.git", "git~1"),
    *("x" * 256, "é" * 128, "notes/" * 200, "notes//a", "./notes", "notes/..", "/".join("a" * 65)),
    *("con", "Aux.old", "a:b", "a\\b", "what?", "ends.", "ends ", "file.md"),
    *("file.md/inner", "link/inner", "What? Now", "pipe"),
]


def test_no_note_leaves_the_store(store: Store) -> None:
    """Whatever folder is named, also one that is a link, hidden, or that some system cannot hold.

    What a person has already made is no new name; and where a note was taken it is found.
    """
    outside = Path(store.root).parent / "outside"
    outside.mkdir()
    tree = Path(store.places.chunked)
    tree.mkdir(exist_ok=True)
    (tree / "link").symlink_to(outside)
    (tree / "file.md").write_text("A file.\n")
    (tree / "what? now").mkdir()
    os.mkfifo(tree / "pipe")
    before = truth(store)
    for folder in NO_FOLDERS:
        with pytest.raises(FilestoreError) as refused:
            store.add_note(TEXT, title="x", folder=folder)
        assert advised(refused.value) or re.search("; (choose a|name no) ", str(refused.value)), (
            folder
        )
        assert "check the disk" not in all_words(refused.value), folder
        assert len(str(refused.value)) < 400
        assert truth(store) == before, folder
    assert not list(outside.iterdir())
    if store.settings.layout != "flat":
        deepest = "/".join("a" * 64) if store.places.tree.has_sections else "a" * 255
        # Where the file system keeps them apart, both are there already.
        (tree / "What? now").mkdir(exist_ok=True)
        for folder in ("what? now", "What? now", "日本語 notes", deepest):
            note = store.add_note(TEXT, title="x", folder=folder)
            assert note.path not in str(store.status().drift)
            assert store.show(note.path).body


def test_a_title_that_is_a_device_is_no_file_name(store: Store) -> None:
    """Windows opens the device instead, whatever suffix the name has."""
    path = store.add_note(TEXT, title="CON").path
    assert path.endswith("note CON.md")
    assert "unportable-name" not in {one.code for one in store.verify().findings}


@pytest.mark.parametrize(
    "path", ["../outside.md", "link.md", "filestore.toml", "gone.md", ".git/x.md"]
)
def test_nothing_else_is_edited(store: Store, path: str) -> None:
    """Neither files outside, nor those that are no notes."""
    outside = Path(store.root).parent / "outside.md"
    outside.write_text("a secret\n")
    tree = Path(store.places.chunked)
    tree.mkdir(exist_ok=True)
    (tree / "link.md").symlink_to(outside)
    (tree / ".git").mkdir()
    (tree / ".git" / "x.md").write_text("a secret\n")
    with pytest.raises(FilestoreError):
        store.edit_note(path, old="secret", new="joke")
    assert outside.read_text() == "a secret\n"


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(title=st.text(max_size=200), text=st.text(min_size=1, max_size=300))
def test_any_title_gives_a_file_that_is_found(store: Store, title: str, text: str) -> None:
    """Or a plain refusal; never a file elsewhere."""
    before = truth(store)
    try:
        note = store.add_note(text, title=title)
    except FilestoreError:
        assert truth(store) == before
        return
    assert truth(store).keys() - before.keys() == {note.path}
    assert store.status().drift.get("untracked", ()) == ()
    store.undo(note.undo)
    assert truth(store) == before


FRONTMATTER = {
    "yaml": "---\nstatus: open # a remark\nnumbers: [1, 2]\n---\n",
    "yaml, CR LF": "---\r\nstatus: open\r\nnumbers: [1, 2]\r\n---\r\n",
    "yaml behind a mark": "\ufeff---\nstatus: open\nnumbers: [1, 2]\n---\n",
    "toml": '+++\nstatus = "open"\nnumbers = [1, 2]\n+++\n',
    "json": '{\n"status": "open", "numbers": [1, 2]\n}\n',
}


@pytest.mark.parametrize("text", FRONTMATTER.values(), ids=FRONTMATTER)
def test_a_note_keeps_its_own_frontmatter(store: Store, text: str) -> None:
    """Its keys are the file's, beside those given with it; the title stands below, once."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for number, title in enumerate(("", f"# Boiler 1{newline * 2}"), start=0):
        note = store.add_note(
            f"{text}{newline}{title}The boiler leaks.{newline}",
            title=f"Boiler {number}",
            metadata={"who": "me", "status": "mended"} if number else {"who": "me"},
        )
        written = truth(store)[note.path].decode()
        assert written.startswith("---")
        assert written.count(f"# Boiler {number}") == 1
        shown = store.show(note.path)
        assert shown.metadata["who"] == "me"
        assert shown.metadata["status"] == ("mended" if number else "open")
        assert shown.metadata["numbers"] == [1, 2]
        assert "status" not in shown.body.partition("Boiler")[2]
    if store.places.tree.has_sections and text.startswith("---"):
        assert text.splitlines(keepends=True)[2] in written
    found = store.search("boiler leaks", where={"status": "open"})
    assert [one.path.partition(":")[0].endswith("Boiler 0.md") for one in found] == [True]
    assert store.status().clean


TITLED = [
    ("#hashtag comes first\n", 1),
    ("```\n# a comment\n```\n", 1),
    ("---\n\nbelow a rule\n", 1),
    ("---\nprose between\n---\nrules\n", 1),
    ("## Part\n\nWords.\n", 1),
    ("# Boiler\n\nWords.\n", 0),
    ("Another title\n====\n\nWords.\n", 0),
    ("An introduction.\n\n# Boiler\n\nWords.\n", 0),
    ("---\ntitle: Boiler\n---\nWords.\n", 0),
]
"""Texts, and how many headings they need."""


def test_a_title_is_added_where_there_is_none(store: Store) -> None:
    """What only looks like a heading is none."""
    for text, headings in TITLED:
        note = store.add_note(text, title="Boiler")
        written = truth(store)[note.path].decode()
        assert written.count("# Boiler") - text.count("# Boiler") == headings, text


def test_a_frontmatter_that_cannot_be_read_is_refused(store: Store) -> None:
    """With the line; nothing is written."""
    before = truth(store)
    with pytest.raises(FilestoreError, match="frontmatter, line 3"):
        store.add_note("---\ntags: [a\n---\nWords.\n", title="Boiler")
    with pytest.raises(FilestoreError, match="empty below"):
        store.add_note("---\ntags: [a]\n---\n")
    assert truth(store) == before


def test_a_note_of_a_name_that_is_nearly_there_tells_of_it(store: Store) -> None:
    """Whatever case, signs and accents it is written with, and wherever it lies; not itself."""
    first = store.add_note(TEXT, title="Café plan 2")
    assert first.alike == ()
    assert store.add_note(TEXT, title="cafe-PLAN-2").alike == (first.path,)
    assert store.add_note(TEXT, title="Café plan 3").alike == ()
    assert store.add_note(TEXT, title="!?").alike == ()
    if store.settings.layout != "flat":
        assert first.path in store.add_note(TEXT, title="Cafe plan 2", folder="other").alike
    if store.places.tree.has_sections:
        Path(store.root, "z.md").write_text("# Boiler room\n\nWords.\n")
        store.sync()
        assert store.add_note(TEXT, title="boiler-room").alike == ("z.md",)
