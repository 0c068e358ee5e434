"""A few files checked alone, against the status of the whole store, on a real disk."""

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore import CODES, Finding
from filestore.browse import InspectedStore, TooManyPathsError
from filestore.fs import disk
from filestore.verify import paths
from tests.advice import all_words

Manual = Callable[[Iterable[str]], str]

TREE_WIDE = {"name-collision", "mass-missing"}
"""What only the whole tree tells."""


@pytest.fixture
def filled(either: Any, manual: Manual) -> Any:
    """A store of two manuals of four chunks each, and a note."""
    either.write("manual.md", manual(["valves", "pumps", "filters", "hoses"]))
    either.write("other.md", manual(["cables", "lamps", "switches", "fuses"]))
    either.write("note.md", "# Note\n\nWords of the note.\n")
    either("add", "manual.md", "other.md", "note.md")
    return either


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[[Any], InspectedStore]]:
    """Opens a store until the test ends."""
    with ExitStack() as stack:

        def opened(work: Any) -> InspectedStore:
            configuration = os.fspath(tmp_path / "user")
            return stack.enter_context(
                InspectedStore(os.fspath(work.store), configuration=configuration)
            )

        yield opened


@pytest.fixture
def store(filled: Any, open_store: Callable[[Any], InspectedStore]) -> InspectedStore:
    """The store, opened."""
    return open_store(filled)


def files_of(store: InspectedStore, resource: str) -> list[str]:
    """The chunk files of a resource, in reading order, relative to the store root."""
    return [str(item["path"]) for item in store.chunks(resource)]


def of_chunked(store: InspectedStore) -> list[Finding]:
    """What the status of the whole store says of chunk files and records."""
    return [
        found
        for found in store.status().findings
        if found.path.startswith("chunked/") and found.code not in TREE_WIDE
    ]


def break_head(path: Path) -> None:
    """Frontmatter that nothing can read."""
    path.write_text("---\na: [\n---\nWords.\n")


def edit_body(path: Path) -> None:
    """Another text."""
    path.write_bytes(path.read_bytes() + b"More words.\n")


def edit_head(path: Path) -> None:
    """A key of the user's."""
    path.write_bytes(path.read_bytes().replace(b"---\n", b"---\nowner: me\n", 1))


def add_beside(path: Path) -> None:
    """Another file in the folder."""
    (path.parent / "beside.md").write_text("Words beside.\n")


def move_away(path: Path) -> None:
    """The same file under another name."""
    path.rename(path.parent / f"moved-{path.name}")


def move_and_edit(path: Path) -> None:
    """The same file under another name, with other words."""
    edit_body(path)
    path.rename(path.parent / f"changed-{path.name}")


def put_folder(path: Path) -> None:
    """A folder where the file was, with a file in it."""
    path.unlink()
    path.mkdir()
    (path / "inside.md").write_text("Words inside.\n")


def put_link(path: Path) -> None:
    """A link where the file was."""
    path.unlink()
    path.symlink_to("/etc/passwd")


def put_conflict(path: Path) -> None:
    """What git leaves of a merge."""
    body = path.read_text()
    path.write_text(f"{body}<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n")


def put_litter(path: Path) -> None:
    """Files that are no chunk files."""
    (path.parent / "notes.txt").write_text("no chunk\n")
    (path.parent / ".hidden.md").write_text("no chunk\n")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "edited": (edit_body, "modified"),
    "key added": (edit_head, "metadata-modified"),
    "added": (add_beside, "untracked"),
    "deleted": (Path.unlink, "missing"),
    "moved": (move_away, "moved"),
    "moved and edited": (move_and_edit, "moved"),
    "malformed": (break_head, "malformed-frontmatter"),
    "emptied": (lambda path: path.write_bytes(b""), "empty"),
    "not text": (lambda path: path.write_bytes(b"Caf\xe9\n"), "bad-encoding"),
    "folder": (put_folder, "missing"),
    "link": (put_link, "symlink"),
    "pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "special-file"),
    "conflict": (put_conflict, "conflict-markers"),
    "litter": (put_litter, "litter"),
}


def test_a_clean_store_has_nothing_to_tell(store: InspectedStore) -> None:
    """Nothing is found in files that are as they were indexed, alone or by their folder."""
    assert store.check(files_of(store, "manual.md")) == []
    assert store.check(["chunked"]) == []
    assert store.check(["chunked/none.md", "filestore.toml", "source", "..", ""]) == []


def test_every_change_is_told_as_status_tells_it(filled: Any, store: InspectedStore) -> None:
    """Whatever happens to a file, checking it alone finds what checking everything finds."""
    path = files_of(store, "manual.md")[1]
    file = filled.store / path
    folder = file.parent
    for name, (change, code) in CHANGES.items():
        before = {entry: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}
        change(file)
        expected = of_chunked(store)
        assert code in {found.code for found in expected}, name
        there = {f"chunked/{entry.relative_to(filled.chunked)}" for entry in folder.rglob("*")}
        assert store.check(sorted(there | {path})) == expected, name
        assert store.check([f"chunked/{folder.relative_to(filled.chunked)}"]) == expected, name
        shutil.rmtree(folder)
        folder.mkdir()
        for entry, data in before.items():
            entry.write_bytes(data)
        assert store.check(["chunked"]) == [], name


def test_originals_are_told_as_status_tells_them(
    either: Any, open_store: Callable[[Any], InspectedStore]
) -> None:
    """A copy that changed or went is told of just the files and folders that are named."""
    outside = either.folder.parent / "elsewhere"
    outside.mkdir()
    for name in ("one.md", "two.md", "three.md"):
        (outside / name).write_text(f"# {name}\n\nWords of {name}.\n")
        either("add", outside / name)
    copies = sorted((either.store / "source").rglob("*.md"))
    changed, gone, _ = copies
    changed.write_text("# Other\n\nOther words.\n")
    gone.unlink()
    store = open_store(either)
    shown = [path.relative_to(either.store).as_posix() for path in copies]
    told = [(one.code, one.path) for one in store.check(shown[:1])]
    assert told == [("source-modified", shown[0])]
    assert [one.code for one in store.check(shown[1:])] == ["source-missing"]
    expected = [one for one in store.status().findings if one.path.startswith("source/")]
    assert store.check(["source"]) == expected
    assert len(expected) == 2
    assert store.check([shown[2], "source/never.md", "nowhere", "chunked"]) == []


def test_files_that_are_left_out_stay_told_after_a_sync(filled: Any, store: InspectedStore) -> None:
    """A withheld file, a hand edit and a link to nothing are told from what is known of them."""
    first, second, third, _ = files_of(store, "manual.md")
    break_head(filled.store / first)
    edit_body(filled.store / second)
    path = filled.store / third
    path.write_bytes(path.read_bytes() + b"See [that](nowhere.md).\n")
    filled.sync(code=1)
    codes = [(found.code, found.path) for found in store.check([first, second, third])]
    assert codes == [
        ("malformed-frontmatter", first),
        ("link-dangling", third),
        ("hand-edited", min(second, third)),
        ("hand-edited", max(second, third)),
    ]
    verified = {found for found in store.verify().findings if found.path.startswith("chunked/")}
    assert set(store.check(["chunked"])) == verified
    assert store.check(files_of(store, "other.md")) == []


def test_a_folder_that_went_is_told_file_by_file(filled: Any, store: InspectedStore) -> None:
    """Of a folder that is gone every file is missing that was known below it."""
    if store.settings.layout == "flat":
        return
    files = files_of(store, "other.md")
    shutil.rmtree(filled.chunked / "other.md")
    found = store.check(["chunked/other.md/"])
    assert [one.code for one in found] == ["missing"] * (len(files) + 1)
    assert {one.path for one in found} == {*files, "chunked/other.md/meta.json"}
    (filled.chunked / "other.md").symlink_to(filled.chunked / "manual.md")
    again = store.check(["chunked/other.md"])
    assert [one for one in again if one.code == "missing"] == found
    assert [one.path for one in again if one.code == "symlink"] == ["chunked/other.md"]


def test_too_many_files_are_refused(
    filled: Any, store: InspectedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit nothing is read, and the way out is named."""
    monkeypatch.setattr(paths, "MOST_PATHS", 10)
    with pytest.raises(TooManyPathsError, match="10 files") as caught:
        store.check(["chunked"])
    assert "status" in all_words(caught.value)
    assert store.check(files_of(store, "manual.md")) == []
    assert set(CODES) > TREE_WIDE


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from(sorted({*CHANGES} - {"litter", "folder"}))),
        min_size=1,
        max_size=5,
        unique_by=lambda pair: pair[0],
    )
)
def test_many_changes_at_once_are_told_as_status_tells_them(
    new_workspace: Any, manual: Manual, changes: list[tuple[int, str]]
) -> None:
    """Any changes together: checking all of `chunked/` gives what status gives of it."""
    import tempfile

    name = os.path.basename(tempfile.mktemp(prefix="work"))
    work = new_workspace(name)
    work.write("one.md", manual(["valves", "pumps", "filters", "hoses"]))
    work.write("two.md", manual(["cables", "lamps", "switches", "fuses"]))
    work("add", "one.md", "two.md")
    with InspectedStore(
        os.fspath(work.store), configuration=os.fspath(work.folder / "user")
    ) as store:
        files = [*files_of(store, "one.md"), *files_of(store, "two.md")]
        for place, change in changes:
            CHANGES[change][0](work.store / files[place])
        expected = of_chunked(store)
        assert store.check(["chunked"]) == expected
        assert expected


def test_a_file_that_cannot_be_read_is_told(
    filled: Any, store: InspectedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its finding stays as long as it holds: what is shown of a file is what its check gave."""
    (name, *_) = files_of(store, "manual.md")
    (filled.store / name).write_text("Other words.\n")
    read_at = disk.read_at

    def refused(handle: int, one: str, *more: Any, **named: Any) -> Any:
        if one == os.path.basename(name):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return read_at(handle, one, *more, **named)

    monkeypatch.setattr(disk, "read_at", refused)
    assert [(one.code, one.path) for one in store.check([name])] == [("unreadable", name)]
