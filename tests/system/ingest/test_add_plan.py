"""`add --plan`: how documents would be cut, and nothing written."""

import pytest


@pytest.fixture
def store(run, tmp_path):
    """A store, and a folder of two documents and one that cannot be read."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "rent.md").write_text(
        "# Rent\n\n" + "Pay it by the third. " * 200 + "\n\n## Late\n\nAsk.\n"
    )
    (docs / "attic.md").write_text("The attic is dry.\n")
    (docs / "empty.md").write_text(" \n")
    assert run("init", "store", cwd=tmp_path).code == 0
    return tmp_path / "store"


def files(root):
    """Every file of the truth and the originals, with its bytes."""
    found = [*root.glob("chunked/**/*"), *root.glob("source/**/*")]
    return {one: one.read_bytes() for one in found if one.is_file()}


def test_the_plan_is_what_add_writes(store, run):
    """Headings, sizes and first words are those of the chunk files that follow."""
    before = files(store)
    planned = run("add", "../docs", "--plan", "--json", cwd=store)
    assert planned.code == 5
    plan = planned.json["plan"]
    assert files(store) == before
    assert [one["source"] for one in plan["failed"]] == ["../docs/empty.md"]
    run("add", "../docs", cwd=store)
    cuts = {one["source"]: one["chunks"] for one in plan["documents"]}
    shown = [
        run("show", path, "--json", cwd=store).json
        for path in sorted(files(store))
        if path.name.startswith("chunk")
    ]
    for source, chunks in cuts.items():
        made = [one for one in shown if one["path"].split("/")[-2] == source.rpartition("/")[2]]
        made.sort(
            key=lambda one: int(one["path"].rpartition("/chunk")[2].split("-")[0].split(".")[0])
        )
        assert [one["characters"] for one in chunks] == [len(one["body"]) for one in made]
        assert [one["headings"] for one in chunks] == [
            one["frontmatter"].get("headings", []) for one in made
        ]
        for chunk, one in zip(chunks, made, strict=True):
            assert " ".join(one["body"].split()).startswith(chunk["words"])


def test_words_name_each_chunk(store, run):
    """A person sees number, headings, size and first words; what was added is told apart."""
    told = run("add", "../docs/rent.md", "--plan", cwd=store).stdout.splitlines()
    assert told[0].startswith("../docs/rent.md (")
    assert told[1].startswith("    1  Rent, ")
    assert told[1].endswith(" tokens")
    assert told[2].startswith("       # Rent Pay it by the third.")
    run("add", "../docs/rent.md", cwd=store)
    assert ", as it was added)" in run("add", "../docs/rent.md", "--plan", cwd=store).stdout


def test_a_plan_needs_a_document(store, run):
    """Without one there is nothing to cut."""
    assert run("add", "--plan", cwd=store).code == 2
    assert run("add", "--plan", "../nowhere", cwd=store).code == 3
