"""What must hold of the library: a newcomer guesses its arguments, and is told when wrong."""

import os
import threading
from pathlib import Path

import pytest

import filestore
from filestore.store.reading import OtherThreadError

TEXT = "---\ntags: [contract, rent]\nyear: 2024\n---\n# The lease\n\nThe renewal is in writing.\n"


@pytest.fixture
def store(tmp_path):
    """A store made with every default, and one document in it."""
    (tmp_path / "lease.md").write_text(TEXT)
    with filestore.create(tmp_path / "kb", embedder="builtin") as made:
        made.add(tmp_path / "lease.md")
        yield made


def test_public_names_are_few_and_are_listed_once():
    """The names that `dir`, `*` and the stub show are the same, and about twenty-five."""
    names = {}
    exec("from filestore import *", names)
    assert set(names) - {"__builtins__"} == set(dir(filestore))
    assert len(dir(filestore)) <= 28
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = filestore.Nothing


@pytest.mark.parametrize("as_path", [str, os.fspath, lambda path: path])
def test_a_store_is_found_from_the_folders_in_and_around_it(store, tmp_path, as_path):
    """`open` takes the store itself, a folder in it, and text or path."""
    for place in (tmp_path / "kb", tmp_path / "kb" / "chunked"):
        with filestore.open(as_path(place)) as found:
            assert found.root == str(tmp_path / "kb")


def test_the_store_around_the_working_folder_is_the_default(store, tmp_path, monkeypatch):
    """Without an argument the store is the one that the command line would use."""
    monkeypatch.chdir(tmp_path / "kb" / "chunked")
    with filestore.open() as found:
        assert found.root == str(tmp_path / "kb")


def test_a_folder_that_is_not_there_is_no_store_around_it(store, tmp_path):
    """A misspelt folder inside a store does not open that store."""
    with pytest.raises(filestore.NoStoreError, match="no store in"):
        filestore.open(tmp_path / "kb" / "typo")


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"tags": "contract"}, 1),
        ({"tags": ["contract", "rent"]}, 1),
        ({"tags": ["contract", "sale"]}, 0),
        ({"year": 2024}, 1),
        ({"year": 2025}, 0),
    ],
)
def test_filters_take_values_as_a_person_writes_them(store, where, found):
    """A number is compared as it stands in the file; of a list every value must hold."""
    assert len(store.search("renewal", where=where)) == found


def test_one_glob_is_one_glob(store):
    """A text is not taken apart into letters where a list may stand."""
    assert [hit.path for hit in store.search("renewal", source="*.md", kind="chunk")]
    assert not list(store.search("renewal", source="*.txt"))


def test_what_cannot_be_added_is_in_the_report(store, tmp_path):
    """One path that is not there keeps no other from being added."""
    (tmp_path / "more.md").write_text("# More\n\nWords.\n")
    report = store.add("nowhere.md", tmp_path / "more.md")
    assert [outcome.status for outcome in report] == ["added"]
    assert [path for path, _ in report.unusable] == ["nowhere.md"]


def test_a_repair_is_taken_back_by_what_its_report_says(store):
    """`undo` of a report undoes that repair, and nothing where nothing was written."""
    before = {path: path.read_bytes() for path in _chunks(store)}
    (path,) = before
    idle = store.apply(store.plan(truth=True))
    assert store.undo(idle.undo) is None
    assert set(_chunks(store)) == set(before)
    path.unlink()
    report = store.apply(store.plan(truth=True))
    assert {path: path.read_bytes() for path in _chunks(store)} == before
    assert store.undo(report.undo) is not None
    assert not list(_chunks(store))


def _chunks(store):
    return sorted(Path(store.root, "chunked").rglob("chunk*.md"))


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.search("renewal"),
        lambda store: store.status(),
        lambda store: store.sync(),
        lambda store: store.close(),
    ],
)
def test_another_thread_is_told_to_open_its_own(store, use):
    """A store used from a second thread raises an error of ours and stays usable in the first."""
    store.search("renewal")
    caught = []

    def other():
        try:
            use(store)
        except filestore.FilestoreError as error:
            caught.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert [type(error) for error in caught] == [OtherThreadError]
    assert "filestore.open" in caught[0].message
    assert len(store.search("renewal")) == 1


def test_threads_with_a_store_each_read_and_write_together(store, tmp_path):
    """Stores of one root in several threads take turns at writing, and all are answered."""
    problems = []

    def work(number):
        try:
            with filestore.open(tmp_path / "kb") as own:
                path = tmp_path / f"note{number}.md"
                path.write_text(f"# Note {number}\n\nRenewal number {number}.\n")
                own.add(path)
                assert own.search("renewal")
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(store.search("renewal", mode="keyword")) == 5
