"""Every operation that writes, of the table: kept with who asked, undone, and planned."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore import FilestoreError, RefusedError, Store
from filestore.core.hashing import revision_of
from filestore.server.operations import OPERATIONS
from filestore.server.stores import Access, Caller, ServedStore, Stores, caller_name
from tests.system.server.conftest import AGENT, PERSON

TEXT = "# Rent\n\nPaid in May.\n"
WRITERS = {
    one.route or one.name: one for one in OPERATIONS if one.writes and (one.route or one.tool)
}
GIVEN: dict[str, dict[str, Any]] = {
    "add": {"paths": ["source/new.md"]},
    "update": {},
    "remove": {"resources": ["house.md"]},
    "sync": {},
    "undo": {"id": "AGENT"},
    "add_note": {"text": "Pipes leak.\n", "title": "Pipes"},
    "append": {"text": "Not in June."},
    "edit": {"old": "May", "new": "July"},
    "move": {"path": "First.md", "to": "Second.md"},
}
"""Of each operation what is asked; a path and a revision are added."""
ONLY_IN_TREE = ("add", "update", "remove")


@pytest.fixture(params=["tree", "flat", "in-place"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """A store of each layout, with a document of a person's and a note of an agent's."""
    root = tmp_path / "kb"
    layout = request.param
    root.mkdir()
    if layout == "in-place":
        (root / "house.md").write_text(TEXT)
    with filestore.create(root, layout=layout, embedder="builtin") as store:
        if layout != "in-place":
            (root / "source").mkdir()
            (root / "source" / "house.md").write_text(TEXT)
            (root / "source" / "new.md").write_text("# New\n\nLamps burn.\n")
            store.add(root / "source" / "house.md")
        store.sync()
    with Stores.open([str(root)], Access(writes=True)) as opened:
        ask(opened, "add_note", text="A first note.\n", title="First")
        yield opened


def ask(stores: Stores, name: str, caller: Caller = AGENT, **given: Any) -> dict[str, Any]:
    """What a store answers."""
    return asyncio.run(served(stores).ask(WRITERS[name], given, caller))


def served(stores: Stores) -> ServedStore:
    """The only one."""
    return stores.named(None)


def everything(root: str) -> dict[str, bytes]:
    """Every file, apart from those that readers of the catalog open beside it, empty or shared."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            place = Path(folder, name)
            if not name.endswith(("-shm", "-wal")) and place.is_file():
                found[place.relative_to(root).as_posix()] = place.read_bytes()
    return found


def truth(root: str) -> dict[str, bytes]:
    """Every file but what is derived or kept."""
    derived = (".sidecar/", ".undo/", ".filestore/")
    return {path: data for path, data in everything(root).items() if not path.startswith(derived)}


def asked(store: Store, name: str) -> dict[str, Any]:
    """What is asked of an operation, of the document that is there."""
    given = dict(GIVEN[name])
    properties = WRITERS[name].schema["properties"]
    if name == "move":
        (old,) = (hit.path.partition(":")[0] for hit in store.search("a first note", k=1))
        given = {one: old.replace(given["path"], path) for one, path in given.items()}
    elif "revision" in properties:
        path = next(hit.path for hit in store.search("paid May", k=1)).partition(":")[0]
        given |= {"path": path, "revision": store.show(path).revision}
    if given.get("id"):
        given["id"] = store.batches()[-1].id
    return given


@pytest.mark.parametrize("name", list(WRITERS))
def test_what_is_written_is_kept_with_who_asked_and_undone(stores: Stores, name: str) -> None:
    """Byte for byte; where there is a plan it writes nothing at all, neither file nor index."""
    root = served(stores).root
    with filestore.open(root) as store:
        if not store.places.tree.is_written and name in ONLY_IN_TREE:
            return
        if name == "update":
            Path(root, "source", "house.md").write_text(f"{TEXT}\nAnd in June.\n")
        given = asked(store, name)
        before, kept = truth(root), len(store.batches())
    if "plan" in WRITERS[name].schema["properties"]:
        found = everything(root)
        planned = ask(stores, name, **given, plan=True)
        assert planned["undo"] is None
        assert everything(root) == found
    ask(stores, name, **given)
    after = truth(root)
    with filestore.open(root) as store:
        if name == "sync":
            assert after == before
            return
        assert after != before
        newest = store.batches()[-1]
        assert newest.by == AGENT.name
        if name == "undo":
            store.redo(newest.id)
        else:
            assert len(store.batches()) == kept + 1
            store.undo(newest.id)
        assert truth(root) == before


def test_each_operation_that_writes_is_tried() -> None:
    """One that is new needs what is asked of it."""
    assert GIVEN.keys() == WRITERS.keys()


def test_a_person_is_no_program(stores: Stores) -> None:
    """What is asked with a person's token is the person's own; no name is needed of a program."""
    ask(stores, "add_note", PERSON, text="Mine.\n")
    ask(stores, "add_note", Caller("", True, False), text="Of a program.\n")
    with filestore.open(served(stores).root) as store:
        assert [one.group.by for one in store.changes(limit=2).changes] == ["a program", None]


def test_a_program_undoes_its_own_alone(stores: Stores) -> None:
    """By name; a person undoes whatever it is."""
    other = Caller("other", True, False)
    mine = ask(stores, "add_note", PERSON, text="Mine.\n")["undo"]
    its = ask(stores, "add_note", other, text="Another's.\n")["undo"]
    before = truth(served(stores).root)
    for given in ({"id": mine}, {"id": its}, {}, {"id": "999999"}):
        with pytest.raises(FilestoreError):
            ask(stores, "undo", **given)
    with pytest.raises(RefusedError):
        ask(stores, "undo", Caller("", True, False), id=mine)
    assert truth(served(stores).root) == before
    assert ask(stores, "undo", other, id=its)["undone"]
    assert ask(stores, "undo", PERSON)["undone"]


def test_a_program_sees_its_own_changes_alone(stores: Stores) -> None:
    """Those of others may be of files that are closed to it."""
    ask(stores, "add_note", PERSON, text="Mine.\n", title="Mine")
    (changes,) = (one for one in OPERATIONS if one.route == "changes")

    def seen(caller: Caller, **given: Any) -> list[Any]:
        answer = asyncio.run(served(stores).ask(changes, given, caller))
        return [one["by"] for one in answer["changes"]]

    assert seen(AGENT) == seen(AGENT, by="you") == ["agent"]
    assert seen(Caller("other", True, False)) == seen(Caller("", False, False)) == []
    assert seen(PERSON, diff=True)[:2] == [None, "agent"]
    assert seen(PERSON, by="agent") == ["agent"]


STRANGE = [
    *("a\nb", "a\r\nb", "\x1b[2Jx", "\u202egnp.exe", "a\u2028b", "..", "../../x", "/etc/x", ".git"),
    *("a\0b", "\ud800", "con", "x" * 10_000, "---\na: b\n---", "000001  by you", "`", "> x", "# x"),
]
BOMB = "---\na: &a [x, x, x]\n" + "".join(
    f"{one}: &{one} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, one in zip("abcdefgh", "bcdefghi", strict=True)
)


def tried(stores: Stores, name: str, caller: Caller = AGENT, **given: Any) -> str:
    """The path that was written; "" where it was refused, with nothing changed."""
    root = served(stores).root
    before = truth(root)
    try:
        path = str(ask(stores, name, caller, **given)["path"])
    except FilestoreError:
        assert truth(root) == before, given
        return ""
    assert {one for one, data in truth(root).items() if before.get(one) != data} == {path}
    return path


@pytest.mark.parametrize("stores", ["tree", "in-place"], indirect=True)
def test_titles_and_names_of_programs_are_plain(stores: Stores) -> None:
    """Whatever is in them: a file of a plain name in its folder, one heading, one line."""
    root = served(stores).root
    for one in STRANGE:
        caller = Caller(caller_name(one), True, False)
        path = tried(stores, "add_note", caller, text="Words.\n", title=one)
        if path:
            assert path.isprintable()
            assert len(path) < 120
            assert path.rpartition("/")[0] in ("chunked/notes", "notes", "chunked")
            lines = Path(root, path).read_text().rpartition("---\n")[2].split("\n")
            assert [line.isprintable() for line in lines] == [True] * len(lines)
            with filestore.open(root) as store:
                by = store.changes(limit=1).changes[0].group.by
            assert by is not None
            assert by.isprintable()
            assert len(by) <= 80
    with filestore.open(root) as store:
        assert store.status().clean


@pytest.mark.parametrize("stores", ["in-place"], indirect=True)
def test_texts_that_are_too_much_are_refused_or_found(stores: Stores) -> None:
    """Bombs of frontmatter, a million characters, none; each quickly, and nothing half."""
    for text in (BOMB, f"{BOMB}---\nx\n", "---\n" * 100_000, "a: " * 300_000, "\ud800", "\n" * 99):
        path = tried(stores, "add_note", text=text, title="Strange")
        if path:
            ask(stores, "undo", id=undo_of(stores))
    for given in ({"text": "x" * 1_000_001}, {"text": ""}, {"text": "x", "title": "x" * 1_001}):
        assert tried(stores, "add_note", **given) == ""


def undo_of(stores: Stores) -> str:
    """The newest change."""
    with filestore.open(served(stores).root) as store:
        return store.batches()[-1].id


def test_nothing_is_written_through_a_link_or_elsewhere(stores: Stores) -> None:
    """By whatever path; a revision that fits does not help."""
    root = Path(served(stores).root)
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("Paid in May.\n")
    with filestore.open(root) as store:
        tree = Path(store.places.chunked)
    (tree / "link.md").symlink_to(outside / "x.md")
    (tree / "folder").symlink_to(outside)
    paths = ["link.md", "folder/x.md", "../outside/x.md", str(outside / "x.md"), *STRANGE]
    paths += [f"chunked/{path}" for path in paths] + ["filestore.toml", ".filestore/catalog.sqlite"]
    for path in paths:
        name = path.encode("utf-8", "replace").decode()
        for revision in (revision_of(name, b"Paid in May.\n"), ""):
            given = {"path": path, "revision": revision}
            assert tried(stores, "append", **given, text="x") == ""
            assert tried(stores, "edit", **given, old="May", new="x") == ""
    assert (outside / "x.md").read_text() == "Paid in May.\n"
