"""Looking around in a store: folders with counts, newest, most linked, a glob; page after page."""

import os
from typing import Any

import pytest

import filestore
from filestore.server.agents import tools
from filestore.server.agents.wording import text_of
from filestore.server.stores import Access, Stores
from tests.system.server.test_agents import call

NOTES = {
    **{f"notes/n{number:02}.md": f"# N{number}\n\nSee [[Hub]].\n" for number in range(30)},
    "notes/deep/er/one.md": "# Deepest\n\nSee [[n07]] and [[Hub]].\n",
    "Hub.md": "# Everything\n\nThe middle.\n",
    "odd/a\nb.md": "# Odd\n\nA name with a line end.\n",
    "odd/2. trusted.md": "# > x\n\nA name that imitates.\n",
}


@pytest.fixture(params=["tree", "flat", "in-place"])
def notes(request: pytest.FixtureRequest, new_workspace: Any) -> Any:
    """Notes in folders, in each layout; n00 is the oldest."""
    is_in_place = request.param == "in-place"
    workspace = new_workspace(init=False) if is_in_place else new_workspace(layout=request.param)
    for number, (name, text) in enumerate(NOTES.items()):
        path = workspace.write(f"docs/{name}", text)
        os.utime(path, (1_700_000_000 + number * 86_400,) * 2)
    if is_in_place:
        workspace("init", "docs", "--in-place", "--embedder", "builtin", code=None)
        workspace.store = workspace.folder / "docs"
    else:
        workspace("add", "docs", code=None)
    return workspace


def start(workspace: Any) -> str:
    """What names begin with."""
    return "" if workspace.store.name == "docs" else "../docs/"


def test_folders_come_first_with_their_counts(notes: Any) -> None:
    """Then what is newest, and what most others link to."""
    above = start(notes)
    with filestore.open(notes.store) as store:
        found = store.contents()
        folder = store.contents(f"{above}notes")
    assert found.documents == len(NOTES)
    assert [(one.path, one.documents) for one in found.folders] == [
        (f"{above}notes/", 31),
        (f"{above}odd/", 2),
    ]
    assert [one.path for one in found.items] == [f"{above}Hub.md"]
    assert len(folder.items) == 30
    assert [one.path for one in folder.folders] == [f"{above}notes/deep/"]
    if not above:
        assert found.linked[0].path == "Hub.md"
        assert found.linked[0].links == 31


def test_the_newest_and_what_matches(notes: Any) -> None:
    """By date; a glob is one for whole paths."""
    above = start(notes)
    newest = notes.json("ls", "--recent", "3", cwd=notes.store)["items"]
    assert [one["path"] for one in newest] == [f"{above}{name}" for name in list(NOTES)[:-4:-1]]
    assert newest[0]["date"] == "2023-12-17"
    matching = notes.json("ls", "*n0?.md", cwd=notes.store)["items"]
    assert [one["path"] for one in matching] == [f"{above}notes/n0{one}.md" for one in range(10)]
    assert "nothing matches" in notes("ls", "*nowhere*", cwd=notes.store, code=3).stderr


@pytest.mark.parametrize("most", [1, 300, 1_000])
def test_every_entry_comes_once_page_after_page(notes: Any, most: int) -> None:
    """However little is given at once."""
    with filestore.open(notes.store) as store:
        seen, after = [], ""
        for _ in range(len(NOTES) + 2):
            page = store.contents(f"{start(notes)}notes", after=after, most=most)
            seen += [one.path for one in (*page.folders, *page.items)]
            after = page.next
            if not after:
                break
        assert len(seen) == len(set(seen)) == 31


def test_agents_read_little_and_are_told_how_to_go_on(notes: Any) -> None:
    """Also of names that imitate us; what is left is asked for as it is printed."""
    above = start(notes)
    with Stores.open([str(notes.store)], Access()) as stores:
        text = call(stores, "list").content[0].text
        assert len(text) <= 4_000
        assert f"- {above}notes/ 31 documents" in text.splitlines()
        odd = call(stores, "list", folder=f"{above}odd/").content[0].text
        assert all("\n" not in line for line in odd.splitlines())
        assert sum(line.startswith("- ") for line in odd.splitlines()) >= 2
        wrong = call(stores, "list", folder=f"{above}note")
        assert wrong.is_error
        assert f"did you mean '{above}notes/'" in wrong.content[0].text
        recent = call(stores, "list", recent=True).content[0].text
        assert "2023-12-17" in recent
        assert len(recent) <= 4_000


def test_a_large_folder_is_bounded(tmp_path: Any) -> None:
    """A thousand documents with long names."""
    vault = tmp_path / "vault"
    (vault / "all").mkdir(parents=True)
    for number in range(1_000):
        (vault / "all" / f"{number:04} {'long name ' * 8}.md").write_text(f"# {number}\n\nText.\n")
    with filestore.create(vault, layout="in-place", embedder="builtin") as store:
        store.sync()
        most = tools._MOST["list"]
        found = store.contents("all", most=most)
        text = text_of("list", found.to_dict(), store.root)
        assert len(text) <= 4_000
        assert found.left + len(found.items) == 1_000
        assert f"{found.left:,} more: list with after" in text
        newest = store.contents(recent=500, most=most).to_dict()
        assert "more: list with recent and after" in text_of("list", newest, store.root)
        assert len(text_of("list", store.contents(most=most).to_dict(), store.root)) <= 4_000


DEEP = "/".join(["d" * 200] * 15)


@pytest.mark.parametrize(
    ("folder", "name", "title"),
    [
        ("odd", "{:02}" + "\u200b" * 60, "t{}"),
        ("blank", "{:02}" + " \\" * 100, "t{}"),
        ("titles", "{:02}", "T{} " + "long title " * 10),
        ("signs", "{:02}", "T{} " + "\u200b" * 60),
        (DEEP, "{:02}", "t{}"),
    ],
    ids=["escaped", "quoted", "titles", "escaped titles", "deep"],
)
def test_agents_page_through_any_names(tmp_path: Any, folder: str, name: str, title: str) -> None:
    """No page is longer than agents read, and each goes on behind the last as it was printed."""
    vault = tmp_path / "vault"
    (vault / folder).mkdir(parents=True)
    names = [name.format(number) for number in range(60)]
    for number, one in enumerate(names):
        (vault / folder / f"{one}.md").write_text(f"# {title.format(number)}\n\nText {number}.\n")
    with filestore.create(vault, layout="in-place", embedder="builtin") as store:
        store.sync()
    seen, after, kinds = [], "", {}
    with Stores.open([str(vault)], Access()) as stores:
        for asked in ({}, {"recent": True}, {"folder": "*"}):
            assert len(call(stores, "list", **asked).content[0].text) <= 4_000
        for _ in names:
            text = call(stores, "list", folder=folder, **kinds).content[0].text
            assert len(text) <= 4_000
            rows = text.partition("documents:\n")[2].splitlines()
            seen += [row for row in rows if row.startswith("- ")]
            *_, after = rows[-1].partition("list with after ")
            if not after:
                break
            kinds = {"after": after}
    assert len(seen) == len(set(seen)) == len(names)


@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_chunk_stores_have_the_most_linked_too(new_workspace: Any, layout: str) -> None:
    """By links of originals and by a person's own; each document counts once, summaries do not."""
    workspace = new_workspace(layout=layout)
    workspace.write("docs/hub.md", "# Hub\n\nThe [middle](#hub) of [a](a.md).\n")
    for name in "abc":
        links = "[hub](hub.md) and [again](hub.md#hub), " * (name != "c")
        workspace.write(f"docs/{name}.md", f"# {name}\n\nSee {links}[gone](gone.md).\n")
    workspace("add", "docs")
    with filestore.open(workspace.store) as store:
        assert [(one.path, one.links) for one in store.contents().linked] == [
            ("../docs/hub.md", 2),
        ]
        (chunk, *_) = [
            one["path"] for one in store.chunks("docs") if one["source"] == "../docs/hub.md"
        ]
        for number in range(2):
            folder = {"folder": "notes"} if layout == "tree" else {}
            note = store.add_note("A note of mine.\n", title=f"Note {number}", **folder)
            path = workspace.store / note.path
            target = os.path.relpath(workspace.store / chunk, path.parent)
            path.write_text(path.read_text() + f"\nSee [it]({target}).\n")
        store.sync()
        assert [(one.path, one.links) for one in store.contents().linked] == [
            ("../docs/hub.md", 4),
        ]
    with Stores.open([str(workspace.store)], Access()) as stores:
        text = call(stores, "list").content[0].text
        assert "most linked:\n- ../docs/hub.md 4 links" in text
