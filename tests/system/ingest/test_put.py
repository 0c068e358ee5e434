"""Single texts put into a folder of a store, and taken out again."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore import RefusedError, Store, UsageError
from filestore.core.findings import Finding
from tests.advice import advised
from tests.system.embedding_server import EmbeddingServer, status, well

RENT = "The rent is paid on the third working day.\n"
GAS = "Gas is read off in March.\n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with filestore.create(tmp_path / "kb", embedder="builtin") as made:
        yield made


def file(store: Store, path: str) -> Path:
    """A file of the store."""
    return Path(store.root, path)


def findings(store: Store) -> list[Finding]:
    """Everything that a thorough look finds."""
    return [*store.status().findings, *store.verify(level="full").findings]


def everything(store: Store) -> dict[str, bytes]:
    """Each file of the tree."""
    tree = Path(store.root, "chunked")
    return {
        str(one.relative_to(tree)): one.read_bytes() for one in tree.rglob("*.md") if one.is_file()
    }


def test_texts_are_files_that_are_found_with_their_metadata(store: Store) -> None:
    """What was put is read in the file, found by the search, and nothing is wrong with it."""
    done = store.put(
        [RENT, GAS], into="notes", names=["rent", None], metadata=[{"by": "Ada", "n": 1}, None]
    )
    assert done.paths[0] == "chunked/notes/rent.md"
    assert file(store, done.paths[0]).read_text().endswith(f"---\n{RENT}")
    (hit,) = store.search("working day", where={"by": "Ada"}).hits
    assert (hit.path, hit.text, hit.freshness) == (done.paths[0], RENT, "fresh")
    assert hit.metadata == {"by": "Ada", "n": 1} == store.show(hit.path).metadata
    assert store.search("gas", k=1).hits[0].path == done.paths[1]
    assert (done.written, done.kept, done.embedded) == (done.paths, (), 2)
    assert findings(store) == []


@pytest.mark.parametrize("by", ["put", "add"])
def test_full_text_that_a_kill_left_behind(store: Store, tmp_path: Path, by: str) -> None:
    """What is there as it was given is not written again; the index is whole after the call."""
    document = tmp_path / "gas.md"
    document.write_text(GAS)

    def give() -> None:
        store.put(RENT, into="notes") if by == "put" else store.add(document)

    give()
    file(store, ".sidecar/fulltext/stamp.json").unlink()
    assert [one.code for one in store.status().findings] == ["fulltext-missing"]
    give()
    assert findings(store) == []


def test_one_text_is_put_as_it_is_typed(store: Store) -> None:
    """A str is one text, and not as many as it has letters."""
    done = store.put(RENT, into="notes", names="rent", metadata={"by": "Ada"})
    assert done.paths == ("chunked/notes/rent.md",)
    assert store.show("notes/rent.md").metadata == {"by": "Ada"}


def test_what_is_no_folder_is_not_written_to(store: Store, tmp_path: Path) -> None:
    """Neither a file of that name, nor wherever a link leads."""
    (tmp_path / "elsewhere").mkdir()
    Path(store.root, "chunked").mkdir(exist_ok=True)
    Path(store.root, "chunked", "file").write_text("")
    Path(store.root, "chunked", "link").symlink_to(tmp_path / "elsewhere")
    for folder in ("file", "link"):
        with pytest.raises(RefusedError, match="exists, and is not a folder"):
            store.put(RENT, into=folder)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_same_texts_again_change_nothing(store: Store) -> None:
    """A text without a name has one made of text and metadata: the second time it is there."""
    first = store.put([RENT, GAS, RENT], into="notes", metadata=[{}, {}, {"page": 2}])
    again = store.put([RENT, GAS, RENT], into="notes", metadata=[{}, {}, {"page": 2}])
    assert len(set(first.paths)) == 3
    assert again.paths == first.paths
    assert (again.written, again.embedded, again.undo) == ((), 0, None)
    assert len(store.batches()) == 1


def test_a_text_takes_the_place_of_the_one_of_its_name(store: Store) -> None:
    """Text and metadata are as given; the questions that somebody asked of the file stay."""
    (path,) = store.put([RENT], into="notes", names=["1"], metadata=[{"a": 1, "b": 2}]).paths
    data = file(store, path).read_text()
    file(store, path).write_text(data.replace("a: 1", 'questions: ["When?"]\na: 1'))
    store.sync()
    store.put([GAS], into="notes", names=["1"], metadata=[{"b": 3}])
    shown = store.show(path)
    assert (shown.body, shown.metadata) == (GAS, {"b": 3})
    assert shown.frontmatter["questions"] == ["When?"]
    assert [hit.text for hit in store.search("gas").hits] == [GAS]
    assert findings(store) == []


def test_one_undo_takes_back_all_that_was_put_at_once(store: Store) -> None:
    """The files go, with their entries in the index, and come back with redo."""
    done = store.put([RENT, GAS], into="notes")
    before = everything(store)
    store.undo()
    assert everything(store) == {}
    assert store.search("gas").hits == ()
    store.redo(done.undo)
    assert everything(store) == before
    assert [hit.text for hit in store.search("gas").hits] == [GAS]
    assert findings(store) == []


def test_an_edit_by_hand_outlives_the_same_text(store: Store) -> None:
    """Whoever puts what was put before does not undo a person's correction, and is told."""
    (path,) = store.put([RENT], into="notes", names=["rent"]).paths
    edited = file(store, path).read_text().replace("third", "fifth")
    file(store, path).write_text(edited)
    done = store.put([RENT, GAS], into="notes", names=["rent", "gas"])
    assert (done.kept, done.written) == ((path,), ("chunked/notes/gas.md",))
    assert file(store, path).read_text() == edited
    assert store.search("fifth working day", k=1).hits[0].freshness == "fresh"


@pytest.mark.parametrize("theirs", ["edited", "wrote", "broke"])
def test_what_a_person_wrote_is_replaced_only_where_that_is_said(store: Store, theirs: str) -> None:
    """Another text for such a file is refused, with all that was to be put beside it."""
    (path,) = store.put([RENT], into="notes", names=["rent"]).paths
    data = {
        "edited": file(store, path).read_text().replace("third", "fifth"),
        "wrote": "Ask about the rent.\n",
        "broke": "---\nquestions: 7\n---\nAsk about the rent.\n",
    }[theirs]
    file(store, path).write_text(data)
    store.sync()
    before = everything(store)
    with pytest.raises(RefusedError, match=r"a person (edited|wrote) chunked/notes/rent\.md"):
        store.put([GAS, GAS], into="notes", names=["gas", "rent"])
    assert everything(store) == before
    store.put([GAS], into="notes", names=["rent"], replace=True)
    assert store.show(path).body == GAS
    store.undo()
    assert everything(store) == before


@pytest.mark.parametrize(
    "name", ["../rent", "a/b", ".rent", "x" * 253, "a\0b", "\udcff", "\u200c.git"]
)
def test_a_name_stays_in_its_folder(store: Store, name: str) -> None:
    """What is no name of a file is refused, and nothing is written anywhere."""
    before = {one for one in Path(store.root).parent.rglob("*") if ".sidecar" not in str(one)}
    with pytest.raises(UsageError, match="cannot name a chunk file"):
        store.put([GAS, RENT], into="notes", names=["gas", name])
    after = {one for one in Path(store.root).parent.rglob("*") if ".sidecar" not in str(one)}
    assert {one.name for one in after - before} <= {"chunked"}


@pytest.mark.parametrize("folder", ["..", "a/b", ".git", "", "x" * 256])
def test_a_folder_is_one_below_chunked(store: Store, folder: str) -> None:
    """What is no name of a folder is refused."""
    with pytest.raises(filestore.FilestoreError, match="cannot name a document"):
        store.put([RENT], into=folder)


def test_names_that_some_systems_cannot_tell_apart_are_refused(store: Store) -> None:
    """Neither beside a file that is there, nor in one call, nor as folders."""
    store.put([RENT], into="notes", names=["Rent"])
    for names in (["rent"], ["gas", "GAS"]):
        with pytest.raises(RefusedError, match="differs only by case"):
            store.put([GAS] * len(names), into="notes", names=names)
    with pytest.raises(RefusedError, match="differs only by case"):
        store.put([GAS], into="Notes")
    assert list(everything(store)) == ["notes/Rent.md"]


@pytest.mark.parametrize(
    ("texts", "given", "match"),
    [
        ([RENT], {"metadata": [{"source": "a.pdf"}]}, "metadata cannot have source"),
        ([RENT], {"metadata": [{"when": object()}]}, "cannot hold a object"),
        ([RENT], {"metadata": [{"much": "x" * 70_000}]}, "cannot be written"),
        (["\udcff"], {}, "text 1 of 1 is not valid UTF-8"),
        (["x" * 17_000_000], {}, "a chunk file has at most"),
        ([" \n"], {}, "text 1 of 1 is empty"),
        ([RENT], {"names": ["a", "b"]}, "1 texts with 2 names"),
        ([RENT], {"metadata": []}, "1 texts with 0 metadata"),
        ([RENT, GAS], {"metadata": {"a": 1}}, "2 texts with 1 metadata"),
        ([RENT, b"gas"], {}, "text 2 of 2: its text is to be a str, not bytes"),
        ([RENT], {"names": [3]}, "its name is to be a str, not int"),
        ([RENT], {"metadata": ["a"]}, "its metadata is to be a mapping of names, not str"),
        ([RENT], {"metadata": [{3: 1}]}, "its metadata is to be a mapping of names, not dict"),
    ],
)
def test_what_cannot_be_a_chunk_file_is_refused(
    store: Store, texts: list[str], given: dict[str, Any], match: str
) -> None:
    """Before anything is written."""
    with pytest.raises(UsageError, match=match):
        store.put(texts, into="notes", **given)
    assert everything(store) == {}


def test_chunks_of_a_source_are_not_mixed_with_texts(store: Store, tmp_path: Path) -> None:
    """The next update of the source would take them for its own."""
    (tmp_path / "lease.md").write_text(RENT)
    store.add(tmp_path / "lease.md")
    with pytest.raises(RefusedError, match="made from its source"):
        store.put([GAS], into="lease.md")


@pytest.mark.parametrize("layout", ["flat", "in-place"])
def test_layouts_without_folders_of_chunks_refuse(tmp_path: Path, layout: str) -> None:
    """With what can be done instead."""
    with filestore.create(tmp_path / "kb", embedder="builtin", layout=layout) as store:
        with pytest.raises(filestore.FilestoreError) as caught:
            store.put([RENT], into="notes")
        assert advised(caught.value)


def test_a_text_called_summary_is_a_chunk(store: Store) -> None:
    """The name of a file that a program chose says nothing of its kind."""
    store.put([RENT], into="notes", names=["summary1"])
    assert store.search("rent").hits[0].kind == "chunk"


def test_what_a_killed_put_left_is_indexed_by_the_next(store: Store, tmp_path: Path) -> None:
    """A file that is there as it was to be, and that the index does not know."""
    store.put([RENT], into="notes", names=["rent"])
    with filestore.create(tmp_path / "other", embedder="builtin") as other:
        shutil.copytree(
            Path(store.root, "chunked"), Path(other.root, "chunked"), dirs_exist_ok=True
        )
        assert other.search("rent", update=False).hits == ()
        assert other.put([RENT], into="notes", names=["rent"]).written == ()
        assert [hit.text for hit in other.search("rent").hits] == [RENT]


@pytest.mark.usefixtures("without_pauses")
def test_what_its_model_was_away_for_is_embedded_by_the_next(tmp_path: Path) -> None:
    """The text is there and found by keywords, the reason is told, and the same call mends it."""
    with EmbeddingServer() as server:
        options = {"embedder": "openai:small", "endpoint": server.endpoint}
        with filestore.create(tmp_path / "served", **options) as store:
            store.put(RENT, into="notes")
            server.behave(status(500, {"error": {"message": "out of order"}}))
            for _ in range(2):
                done = store.put(GAS, into="notes")
                assert done.problem is not None
                assert server.endpoint in done.problem.message
            assert store.search("gas", mode="keyword").hits[0].path == done.paths[0]
            server.behave(well)
            done = store.put(GAS, into="notes")
            assert (done.problem, done.embedded, done.written) == (None, 1, ())
            assert findings(store) == []


def test_single_chunks_are_removed_and_come_back(store: Store) -> None:
    """From the tree and the index at once, and with one undo."""
    done = store.put([RENT, GAS], into="notes")
    removed = store.remove_chunks(*done.paths)
    assert removed.paths == done.paths
    assert (everything(store), store.search("gas").hits) == ({}, ())
    store.undo(removed.undo)
    assert [hit.text for hit in store.search("gas").hits] == [GAS]
    assert findings(store) == []


def test_what_is_no_chunk_file_is_not_removed(store: Store, tmp_path: Path) -> None:
    """A missing one only where that is said; a record or a path that leads out never."""
    (tmp_path / "lease.md").write_text(RENT)
    store.add(tmp_path / "lease.md")
    for path in ("chunked/lease.md/meta.json", "filestore.toml", "../lease.md", "chunked/no.md"):
        with pytest.raises(filestore.FilestoreError):
            store.remove_chunks("chunked/lease.md/chunk1.md", path)
    assert store.remove_chunks("chunked/no.md", missing_ok=True).paths == ()
    assert "lease.md/chunk1.md" in everything(store)


def test_a_chunk_of_a_source_that_was_removed_stays_away(store: Store, tmp_path: Path) -> None:
    """As one that a person deleted: the same source does not bring it back."""
    (tmp_path / "lease.md").write_text(f"# A\n\n{RENT * 40}\n# B\n\n{GAS * 40}")
    store.add(tmp_path / "lease.md")
    first, *others = sorted(everything(store))
    assert others
    store.remove_chunks(f"chunked/{first}")
    store.add(tmp_path / "lease.md")
    assert sorted(everything(store)) == others
    assert findings(store) == []


def test_hits_in_place_have_the_metadata_of_their_document(tmp_path: Path) -> None:
    """All of its keys, also such as are ours in a chunk file."""
    (tmp_path / "lease.md").write_text(f"---\nby: Ada\nsource: a book\n---\n{RENT}")
    with filestore.create(tmp_path, embedder="builtin", layout="in-place") as store:
        store.sync()
        (hit,) = store.search("rent").hits
        assert hit.metadata == {"by": "Ada", "source": "a book"}
        assert store.show(hit.path).metadata == hit.metadata
