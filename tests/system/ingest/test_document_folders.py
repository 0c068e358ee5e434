"""A folder of documents has a folder a document; what it is called was chosen once and stays."""

import os

import pytest


def chunk_paths(root):
    """Every chunk file, with its bytes."""
    return {
        str(one.relative_to(root / "chunked")): one
        for one in root.rglob("chunked/**/chunk*.md")
        if one.is_file()
    }


def written(folder, **texts):
    """Documents of Markdown."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return folder


@pytest.fixture
def store(run, tmp_path):
    """A store with a folder of two documents."""
    docs = written(tmp_path / "docs", a="# Rent\n\nPay it.\n", b="# Renewal of the lease\n\nAsk.\n")
    assert run("init", "store", cwd=tmp_path).code == 0
    assert run("add", docs, cwd=tmp_path / "store").code == 0
    return tmp_path / "store"


def test_each_document_has_its_folder(store, run):
    """Numbers go on, words of the heading follow; the text is that of all documents."""
    assert set(chunk_paths(store)) == {
        "docs/a.md/chunk1-rent.md",
        "docs/b.md/chunk2-renewal-of-the-lease.md",
    }
    assert run("verify", "--level", "full", cwd=store).code == 0
    done = run("reconstruct", "docs", cwd=store)
    assert done.stdout == "# Rent\n\nPay it.\n# Renewal of the lease\n\nAsk.\n"


def test_a_heading_that_changes_renames_nothing(store, run):
    """The name is what it was when the chunk was first written."""
    docs = store.parent / "docs"
    before = set(chunk_paths(store))
    written(docs, b="# Renewing the lease\n\nAsk.\n")
    assert run("update", cwd=store).code == 0
    assert set(chunk_paths(store)) == before
    assert "Renewing" in run("reconstruct", "docs", cwd=store).stdout


def test_a_renamed_document_keeps_its_folder(store, run):
    """And what is new in it goes there, too."""
    docs = store.parent / "docs"
    os.rename(docs / "b.md", docs / "c.md")
    assert run("update", cwd=store).code == 0
    text = "# Renewal of the lease\n\nAsk.\n\n# Another chapter\n\nOf other words.\n"
    written(docs, c=text)
    assert run("update", cwd=store).code == 0
    names = {path.rpartition("/")[2].split("-")[-1] for path in chunk_paths(store)}
    assert {path.rpartition("/")[0] for path in chunk_paths(store)} == {"docs/a.md", "docs/b.md"}
    assert names == {"rent.md", "lease.md", "chapter.md"}


def test_documents_of_a_store_of_before_stay_where_they_are(store, run):
    """Chunks that lie in the folder of the resource go on there."""
    docs, folder = store.parent / "docs", store / "chunked" / "docs"
    for number, path in enumerate(sorted(chunk_paths(store).values()), 1):
        os.rename(path, folder / f"chunk{number}.md")
        os.rmdir(path.parent)
    assert run("sync", cwd=store).code == 0
    written(
        docs, b="# Renewal of the lease\n\nAsk.\n\n# Another\n\nOther words.\n", c="# New\n\nIt.\n"
    )
    assert run("update", cwd=store).code in (0, 1)
    assert run("add", docs, cwd=store).code == 0
    found = set(chunk_paths(store))
    assert {"docs/chunk1.md", "docs/chunk2.md"} < found
    assert [path for path in found if "another" in path] == [
        path for path in found if path.startswith("docs/chunk2-")
    ]
    assert [path for path in found if path.startswith("docs/c.md/")]
    assert run("verify", "--level", "full", cwd=store).code == 0


@pytest.mark.parametrize("name", ["con.md", "a:b.md", "meta.json.md", "é.md", "x" * 250 + ".md"])
def test_any_name_of_a_document_gives_a_folder(run, tmp_path, name):
    """One that some system refuses is replaced; nothing is reported of the store."""
    docs = written(tmp_path / "docs", a="# A\n\nText.\n")
    (docs / name).write_text("# Odd\n\nOther text.\n")
    assert run("init", "store", cwd=tmp_path).code == 0
    assert run("add", docs, cwd=tmp_path / "store").code == 0
    assert len(chunk_paths(tmp_path / "store")) == 2
    verified = run("verify", "--level", "full", "--json", cwd=tmp_path / "store")
    assert [one for one in verified.json["findings"] if one["path"].startswith("chunked")] == []


def test_a_file_in_the_way_is_left_alone(store, run):
    """What a person put where a folder would be stays, and the chunks go elsewhere."""
    own = store / "chunked" / "docs" / "c.md"
    own.write_text("My own words.\n")
    written(store.parent / "docs", c="# New\n\nIt.\n")
    assert run("add", store.parent / "docs", cwd=store).code == 0
    assert own.read_text() == "My own words.\n"
    assert "# New" in run("reconstruct", "docs", cwd=store).stdout
    assert run("verify", "--level", "full", cwd=store).code == 0


def test_what_goes_leaves_no_folder(store, run):
    """A document that goes takes its folder along, and a resource all of them."""
    docs = store.parent / "docs"
    os.remove(docs / "a.md")
    assert run("update", "--remove-gone", cwd=store).code == 0
    assert [one.name for one in (store / "chunked/docs").iterdir() if one.is_dir()] == ["b.md"]
    assert run("rm", "docs", cwd=store).code == 0
    assert list((store / "chunked").iterdir()) == []
