"""One store however its folder is named: by links, by a chain of them, by `..` behind one."""

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

import filestore
from filestore import Store, StoreThreads
from filestore.cli import _help
from filestore.config.layout import NoStoreError, find_root
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.server import wire
from filestore.server.operations import COMMANDS
from filestore.server.stores import named_roots
from tests.system.conftest import Workspace

NO_STORE: Final = {"completion", "convert", "demo", "embedder", "help", "init", "mcp", "token"}
"""Commands whose example opens no store that is there, or only one behind the word."""
READING: Final = {
    "about": ["about"],
    "backend": ["backend"],
    "doctor": ["doctor"],
    "config": ["config"],
    "duplicates": ["duplicates"],
    "links": ["links", "{notes}/a.md"],
    "log": ["log", "walrus"],
    "ls": ["ls", "{notes}"],
    "open": ["open", "--print", "{notes}/sub/b.md:3"],
    "search": ["search", "walrus", "--source", "{notes}/a.md"],
    "show": ["show", "{notes}/a.md:3"],
    "similar": ["similar", "{notes}/sub/b.md"],
    "status": ["status", "--json"],
    "trust": ["trust", "--list", "--json"],
    "undo": ["undo", "--list"],
    "verify": ["verify", "--level", "full"],
}
"""Commands that tell of a store, with documents named by the way that the store is named."""


@pytest.fixture
def notes(new_workspace: Callable[..., Workspace]) -> Workspace:
    """Documents in place, in `real/`, indexed by the name of a link to it."""
    made = new_workspace(init=False)
    made.write("real/a.md", "# A\n\nA walrus.\n")
    made.write("real/sub/b.md", "# B\n\nA narwhal.\n")
    for link, target in {
        "link": "real",
        "chain": "link",
        "deep": "real/sub",
        "far": "..",
        "nothing": "gone",
        "circle": "circle",
        "file": "real/a.md",
    }.items():
        (made.folder / link).symlink_to(target)
    (made.folder / "inside").mkdir()
    (made.folder / "inside/link").symlink_to("../chain")
    os.mkfifo(made.folder / "pipe")
    assert (
        "indexed 2 new files" in made("init", "--in-place", "--embedder", "builtin", "link").stdout
    )
    return made


def spellings(notes: Workspace) -> Iterator[str]:
    """Ways to name the store from the folder around it, relative and whole."""
    ways = [
        "real",
        "link",
        "link/",
        "chain",
        "deep/..",
        "inside/link",
        f"far/{notes.folder.name}/link",
    ]
    for way in ways:
        yield way
        yield str(notes.folder / way)


def doors(notes: Workspace, way: str) -> Iterator[tuple[str, str]]:
    """Each way in, with the root that it finds."""
    yield "named", find_root(".", way)
    yield "around", find_root(os.path.join(way, "sub"))
    for name, make in {
        "Store": Store,
        "open": filestore.open,
        "StoreThreads": StoreThreads,
    }.items():
        with make(way) as store:
            yield name, store.root
    yield "served", *named_roots([way]).values()
    yield "served by name", named_roots([f"x={way}"])["x"]
    yield "asked of a server", wire._root(os.getcwd(), way)
    yield "--store", notes.json("--store", way, "trust", "--list")["root"]
    here = Path.cwd()
    yield "working folder", notes.json("trust", "--list", cwd=here / way)["root"]
    os.chdir(here)
    with pytest.raises(RefusedError, match="is a store already") as refused:
        Store.create(way, embedder="builtin", layout="in-place")
    yield "create", refused.value.message.partition(" is a store")[0]
    with pytest.raises(RefusedError, match="is a store already") as refused:
        filestore.create(os.path.join(way, "new"), embedder="builtin")
    yield "create in it", refused.value.message.partition(" is a store")[0]


def test_every_way_in_finds_the_same_root(
    notes: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever folder is named, and to whom."""
    monkeypatch.chdir(notes.folder)
    monkeypatch.setenv("HOME", str(notes.folder))
    root = str(notes.folder / "real")
    for way in spellings(notes):
        for door, found in doors(notes, way):
            assert found == root, (door, way)
    for way in ("~/link", "~/deep/.."):
        assert notes.json("--store", way, "trust", "--list")["root"] == root
        assert notes.json(f"--store={way}", "trust", "--list")["root"] == root
        monkeypatch.setenv("FILESTORE", way)
        assert notes.json("trust", "--list", cwd=Path("/"))["root"] == root
        assert wire.reply_to(["ls"]) is None
        monkeypatch.delenv("FILESTORE")


def test_every_command_tells_the_same(notes: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a store that is named by a link, and of documents that are named through one."""
    monkeypatch.setenv("EDITOR", "vi")
    notes.git("add", "real")
    notes.git("commit", "-qm", "one")
    assert READING.keys() <= {*COMMANDS}
    above = f"{notes.folder}/"
    for words in READING.values():
        expected = None
        for way in spellings(notes):
            done = notes(*("--store", way), *(word.format(notes=way) for word in words), code=None)
            # Words are repeated as they were written.
            named = f"{way.removeprefix(above)}/"
            told = done.code, done.stdout.replace(above, "").replace(named, "").replace("real/", "")
            expected = expected or told
            assert told == expected, (words, way)
            assert done.code in (0, 1), (words, done)


def test_a_folder_may_hold_its_store_by_a_link(notes: Workspace) -> None:
    """`file_index` that is a link is found from around it, from a link to that, and from below."""
    (notes.folder / "project/docs").mkdir(parents=True)
    (notes.folder / "project/file_index").symlink_to("../chain")
    (notes.folder / "other").symlink_to("project")
    root = str(notes.folder / "real")
    for place in ("project", "project/docs", "other", "other/docs"):
        assert notes.json("trust", "--list", cwd=notes.folder / place)["root"] == root
    for place in ("project", "other"):
        assert named_roots([str(notes.folder / place)]) == {place: root}


def test_what_is_written_through_a_link_is_indexed(notes: Workspace) -> None:
    """Edits are seen by whoever names the store otherwise, and one store is trusted once."""
    notes.write("chain/c.md", "# C\n\nA manatee.\n")
    assert notes.json("--store", "link", "sync")["embedded"] == 1
    assert notes.json("--store", "real", "status")["clean"] is True
    notes("--store", "link", "trust", "--yes")
    hits = notes.json("search", "manatee", "--mode", "keyword", cwd=notes.folder / "deep")["hits"]
    assert [hit["path"] for hit in hits] == ["c.md"]


def test_documents_are_added_through_links(workspace: Workspace) -> None:
    """To a store of chunk files behind a link; the same file by two names is one resource."""
    workspace.write("docs/manual.md", "# Manual\n\nPress the button.\n")
    (workspace.folder / "books").symlink_to("docs")
    (workspace.folder / "kb").symlink_to("file_index")
    assert workspace.json("--store", "kb", "add", "books/manual.md")["added"]
    for way in (
        "docs/manual.md",
        "books/manual.md",
        "books/../docs/manual.md",
        "kb/../docs/manual.md",
    ):
        assert workspace.json("--store", "kb", "add", way)["unchanged"], way
        assert workspace.json("ls", way)["items"], way
    assert [one["resource"] for one in workspace.json("ls")["items"]] == ["manual.md"]
    assert workspace.json("rm", str(workspace.folder / "kb/chunked/manual.md"))["removed"]


def test_a_link_that_goes_elsewhere_takes_no_server_along(notes: Workspace) -> None:
    """What was opened by a link stays open where that led; nothing else is read in its name."""
    notes.write("other/z.md", "# Z\n\nA zebra.\n")
    notes("init", "--in-place", "--embedder", "builtin", "other")
    with StoreThreads(notes.folder / "link", most=2) as threads:
        (notes.folder / "link").unlink()
        (notes.folder / "link").symlink_to("other")
        # As many at once as there are threads, so that one is made now.
        roots = [threads.submit(lambda store: store.root) for _ in range(8)]
        assert {one.result() for one in roots} == {str(notes.folder / "real")}
    assert find_root(".", str(notes.folder / "link")) == str(notes.folder / "other")


def test_what_is_no_folder_is_no_store(notes: Workspace) -> None:
    """It is told as what it is, nothing is made behind it, and nobody waits for it."""
    for name, reason in {
        "nothing": "a link to nothing",
        "circle": "a link to nothing",
        "file": "not a folder",
        "pipe": "not a folder",
        "real/a.md": "not a folder",
    }.items():
        assert f"is {reason}" in notes("--store", name, "status", code=3).stderr
        assert f"is {reason}" in notes("init", name, code=2).stderr
        with pytest.raises(NoStoreError, match=f"is {reason}"):
            named_roots([str(notes.folder / name)])
    assert not (notes.folder / "gone").exists()


def test_an_empty_name_is_no_store(notes: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command takes the variable that is not set for the store around the working folder."""
    notes.write("real/new.md", "# New\n\nWords.\n")
    monkeypatch.chdir(notes.folder / "real")
    before = sorted(notes.folder.rglob("*"))
    known = _help.records()
    for command in sorted(COMMANDS.keys() - NO_STORE):
        words = shlex.split(known[command]["examples"][0])[1:]
        done = notes("--store", "", *words, cwd=notes.folder / "real", code=None)
        assert done.code in (2, 3), (command, done)
    assert wire.reply_to(["--store=", "ls"]) is None
    for refused in (named_roots, filestore.open, filestore.create):
        with pytest.raises(UsageError, match="name of the store is empty"):
            refused([""] if refused is named_roots else "")  # type: ignore[operator]
    assert "name of the store is empty" in notes("init", "--in-place", "", code=2).stderr
    assert sorted(notes.folder.rglob("*")) == before


def test_a_server_names_a_store_as_it_was_named(notes: Workspace) -> None:
    """By the link, not by the folder behind it; a folder in the store by the store."""
    notes("init", "inside/file_index", "--embedder", "builtin")
    (notes.folder / "kb").symlink_to("inside")
    found = named_roots([str(notes.folder / name) for name in ("chain", "deep", "kb")])
    assert [*found] == ["chain", "real", "kb"]


def test_the_users_settings_name_a_store_by_a_link(
    notes: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sidecar that lies elsewhere is found, whatever way the store and the settings name it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/filestore").mkdir(parents=True)
    side = tmp_path / "side"
    (tmp_path / "config/filestore/settings.toml").write_text(
        f'[sidecar]\nrelative = "/gone"\n"{notes.folder}/chain" = "{side}"\n'
    )
    for way in ("real", "link"):
        with Store(notes.folder / way) as store:
            assert store.places.sidecar == str(side)
        root = wire._root(str(notes.folder), str(notes.folder / way))
        assert wire._sidecars(root) == [str(side)]


def test_a_linked_tree_stays_closed(workspace: Workspace) -> None:
    """The root may be a link, what lies in it not: `chunked/` is not followed."""
    (workspace.store / "chunked").rename(workspace.folder / "elsewhere")
    (workspace.store / "chunked").symlink_to("../elsewhere")
    (workspace.folder / "elsewhere/a").mkdir()
    (workspace.folder / "elsewhere/a/chunk1.md").write_text("A secret.\n")
    (workspace.folder / "kb").symlink_to("file_index")
    for way in ("file_index", "kb"):
        assert "unreadable" in workspace.json("--store", way, "status", code=1)["drift"]
        with pytest.raises(FilestoreError), Store(workspace.folder / way) as store:
            store.show("chunked/a/chunk1.md")
