"""`similar`, `duplicates` and `links` on a real store."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from filestore import Store

LEASE = """\
---
tags: [rent]
---
# Lease

The lease of the flat is renewed in writing two months before it ends.

# Deposit

The deposit of the flat is paid back within six weeks after the last day.

# Keys

Every key is returned on the last day, see [the cellar](cellar.md) and [more](more.md).
"""
CELLAR = "# Cellar\n\nThe cellar key hangs beside the door. Back to [the lease](lease.md#keys).\n"


@pytest.fixture
def house(workspace: Any) -> Any:
    """A store with a folder of two documents and two files that a person wrote."""
    workspace.write("filler.md", "# Filler\n\nNothing.\n")
    workspace.write("house/lease.md", LEASE)
    workspace.write("house/cellar.md", CELLAR)
    settings = workspace.store / "filestore.toml"
    settings.write_text(settings.read_text().replace("budget = 240", "budget = 40"))
    workspace("add", "house", "filler.md")
    own = "# Note\n\n[one](b.md) and [two](nowhere.md)\n"
    workspace.write("file_index/chunked/own/a.md", own)
    text = "The deposit of the flat is paid back in six weeks after the last day.\n"
    workspace.write("file_index/chunked/own/b.md", text)
    workspace("sync", code=None)
    return workspace


def chunk_with(house: Any, words: str) -> str:
    """The path of the one chunk of the folder that has some words, as the commands print it."""
    (found,) = [
        path.relative_to(house.store).as_posix()
        for path in sorted((house.chunked / "house").rglob("chunk*.md"))
        if words in path.read_text()
    ]
    return found


def paths(found: Any) -> list[str]:
    """Of hits."""
    return [hit["path"] for hit in found["hits"]]


def test_similar_to_a_chunk(house: Any) -> None:
    """The nearest comes first, without the file itself, with the keys of a hit of search."""
    deposit = chunk_with(house, "The deposit")
    found = house.json("similar", deposit, "-k", "2")
    assert found["to"] == [deposit]
    assert paths(found)[0] == "chunked/own/b.md"
    assert deposit not in paths(found)
    assert len(found["hits"]) == 2
    hit = found["hits"][0]
    assert 0.5 < hit["score"] < 1
    assert (hit["freshness"], hit["text"]) == (
        "fresh",
        (house.chunked / "own/b.md").read_text(),
    )
    assert hit.keys() <= house.json("search", "deposit")["hits"][0].keys()
    done = house("similar", deposit, "-k", "1")
    assert done.stdout.startswith("1. chunked/own/b.md:1\n   no source  (cosine 0.")
    assert "compares words, not meaning" in done.stderr


def test_an_excerpt_is_as_it_is_read(house: Any) -> None:
    """Without its heading, links by their text, under the title of its document."""
    keys = chunk_with(house, "Every key")
    found = house.json("similar", chunk_with(house, "The cellar key"), "-k", "9")["hits"]
    (hit,) = [one for one in found if one["path"] == keys]
    assert "[the cellar](cellar.md)" in hit["text"]
    assert hit["excerpt"] == "Every key is returned on the last day, see the cellar and more."
    assert hit["title"] == "Lease"


@pytest.mark.parametrize("name", ["house/lease.md", "../house/lease.md", "{folder}/house/lease.md"])
def test_similar_to_a_line_of_an_original(house: Any, name: str) -> None:
    """A line leads to the chunk that holds it; frontmatter to the first, from any folder."""
    name = name.format(folder=house.folder)
    deposit = chunk_with(house, "The deposit")
    found = house.json("similar", f"{name}:10")
    assert (found["to"], found["source"], found["line"]) == ([deposit], "../house/lease.md", 10)
    assert paths(found)[0] == "chunked/own/b.md"
    assert house.json("similar", f"{name}:2")["to"] == [chunk_with(house, "# Lease")]
    assert f"{name}:99" not in house("similar", f"{name}:99", code=3).stdout
    assert "has no line 99: it has 14" in house("similar", f"{name}:99", code=3).stderr
    house("similar", f"{name}:0", code=2)


def test_similar_to_an_original(house: Any) -> None:
    """Of a whole original all its chunks are asked for, and none of them is an answer."""
    found = house.json("similar", "house/lease.md", "-k", "20")
    assert len(found["to"]) == 3
    assert set(paths(found)).isdisjoint(found["to"])
    assert paths(found)[0] == "chunked/own/b.md"


def test_a_line_that_changed_since_is_nobodys(house: Any) -> None:
    """A line that no chunk has is refused with the way out, not given to a neighbour."""
    house.write("house/lease.md", LEASE.replace("deposit of the flat", "caution money"))
    done = house("similar", "house/lease.md:10", code=3)
    assert "is in no chunk" in done.stderr
    assert "filestore add" in done.stderr
    assert house.json("similar", "house/lease.md:6")["to"] == [chunk_with(house, "# Lease")]


def test_a_hand_edited_chunk_keeps_its_lines(house: Any) -> None:
    """The lines of an original lead to its chunk also where a person edited that."""
    deposit = chunk_with(house, "The deposit")
    path = house.store / deposit
    path.write_text(path.read_text().replace("six weeks", "a fortnight"))
    house.sync(code=None)
    assert house.json("similar", "house/lease.md:10")["to"] == [deposit]


def test_a_colon_may_belong_to_the_name(house: Any) -> None:
    """A file whose own name ends like a line is that file."""
    house.write("file_index/chunked/own/b.md:3.md", "The deposit of the flat, again.\n")
    house.write("odd:7", "The deposit of the flat in a file with a colon.\n")
    house("add", "odd:7")
    house.sync(code=None)
    assert house.json("similar", "odd:7")["line"] is None
    assert house.json("similar", "odd:7:1")["line"] == 1
    assert house.json("similar", "own/b.md:3.md")["to"] == ["chunked/own/b.md:3.md"]


def test_freshness_is_told_as_search_tells_it(house: Any) -> None:
    """What was edited says so; what is gone comes last, and a note says what to do."""
    deposit = chunk_with(house, "The deposit")
    (house.chunked / "own/b.md").write_text("Something else altogether.\n")
    found = house.json("similar", deposit, "-k", "20", "--no-update")
    assert found["hits"][0]["freshness"] == "edited"
    assert found["hits"][0]["text"] == "Something else altogether.\n"
    assert "[edited]" in house("similar", deposit, "--no-update").stdout
    (house.chunked / "own/b.md").unlink()
    found = house.json("similar", deposit, "-k", "20", "--no-update")
    assert (paths(found)[-1], found["hits"][-1]["freshness"]) == ("chunked/own/b.md", "gone")
    assert "run 'filestore sync'" in found["notes"][-1]
    assert "chunked/own/b.md" not in paths(house.json("similar", deposit, "-k", "2", "--no-update"))
    gone = house.json("similar", "chunked/own/b.md", "-k", "1", "--no-update")
    assert paths(gone) == [deposit]
    (house.chunked / "own/a.md").write_bytes(b"\xff\xfe no text")
    found = house.json("similar", deposit, "-k", "20", "--no-update")
    assert "chunked/own/a.md" not in paths(found)
    assert "excluded" in " ".join(found["notes"])


@pytest.mark.parametrize("command", ["similar", "links"])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere.md", "no chunk file and no original"),
        ("house", "no chunk file and no original"),
        ("nowhere.md:3", "no chunk file and no original"),
        ("chunked/own/new.md", "is not indexed"),
        ("/etc/passwd", "no chunk file and no original"),
        ("bad\udcff.md", "no chunk file and no original"),
    ],
)
def test_a_file_that_cannot_be_meant(house: Any, command: str, name: str, says: str) -> None:
    """What the store does not know is named, with what to do, and ends with 3."""
    (house.chunked / "own/new.md").write_text("New words.\n")
    done = house(command, name, "--no-update", code=3)
    assert says in done.stderr
    assert "filestore" in done.stderr.splitlines()[-1]
    assert house.json(command, name, "--no-update", code=3)["remedy"]


def test_without_vectors(workspace: Any) -> None:
    """Where nothing is embedded, `similar` says so; equal texts are still duplicates."""
    workspace("duplicates", code=1)
    workspace("similar", "a.md", code=3)
    for name in "ab":
        workspace.write(f"file_index/chunked/{name}.md", "The same words.\n")
    workspace("sync", "--no-embed")
    assert "nothing of this store is embedded" in workspace("similar", "a.md", code=3).stderr
    found = workspace.json("duplicates")
    assert [file["path"] for file in found["groups"][0]["files"]] == [
        "chunked/a.md",
        "chunked/b.md",
    ]
    assert found["groups"][0]["same"]
    assert "2 passages" not in " ".join(found["notes"])
    assert "1 passage has no vector yet" in " ".join(found["notes"])


def test_another_model(house: Any) -> None:
    """Where the settings name a model that is not here, stored vectors answer, and that is said."""
    settings = house.store / "filestore.toml"
    settings.write_text(settings.read_text().replace('"builtin"', '"onnx:nowhere"'))
    for words in (("similar", "own/b.md", "-k", "1"), ("duplicates", "--above", "0.5")):
        done = house(*words)
        assert "compared by the vectors that are stored" in done.stderr
        assert "nowhere" in done.stderr


def test_no_catalog(workspace: Any) -> None:
    """Without a catalog all three end with 3 and name `sync`."""
    (workspace.sidecar / "catalog.sqlite").unlink()
    for words in (("similar", "a.md"), ("duplicates",), ("links", "a.md")):
        assert "filestore sync" in workspace(*words, code=3).stderr


def test_damaged_embeddings_leave_equal_texts(house: Any) -> None:
    """Embeddings that cannot be read are named; equal texts are found all the same."""
    house.write("file_index/chunked/own/c.md", (house.chunked / "own/b.md").read_text())
    house.sync(code=None)
    (house.sidecar / "embeddings.sqlite").write_bytes(b"no database" * 100)
    found = house.json("duplicates")
    assert [group["same"] for group in found["groups"]] == [True]
    assert "only equal passages are compared" in " ".join(found["notes"])
    house("similar", "own/b.md", code=3)


def test_duplicates(house: Any) -> None:
    """Equal and near files form groups, each with its diff to the first; 1 where there is none."""
    assert "no duplicates found" in house("duplicates", "--above", "1", code=1).stdout
    house.write("file_index/chunked/own/c.md", (house.chunked / "own/b.md").read_text())
    house.write(
        "file_index/chunked/own/d.md", "The deposit of the flat is paid back in six weeks.\n"
    )
    house.sync(code=None)
    (same,) = house.json("duplicates", "--above", "1")["groups"]
    assert same["same"]
    assert [file["path"] for file in same["files"]] == ["chunked/own/b.md", "chunked/own/c.md"]
    assert [(file["score"], file["diff"]) for file in same["files"]] == [(1, ""), (1, "")]
    found = house.json("duplicates", "--above", "0.75")
    (near,) = [group for group in found["groups"] if "chunked/own/d.md" in str(group)]
    assert not near["same"]
    last = near["files"][-1]
    assert last["path"] == "chunked/own/d.md"
    assert last["diff"].startswith(f"--- {near['files'][0]['path']}\n+++ chunked/own/d.md\n@@ ")
    assert "\n+The deposit of the flat is paid back in six weeks." in last["diff"]
    done = house("duplicates", "--above", "0.75").stdout
    assert "(cosine 0." in done
    assert "      +The deposit of the flat is paid back in six weeks." in done
    assert done.splitlines()[-1].endswith("0 the same, 1 nearly")


def test_duplicates_as_they_are_now(house: Any) -> None:
    """An edited copy says so and has a diff; one that is gone is none."""
    for name in "cd":
        house.write(f"file_index/chunked/own/{name}.md", (house.chunked / "own/b.md").read_text())
    house.sync(code=None)
    (house.chunked / "own/c.md").write_text("Changed.\n")
    (house.chunked / "own/d.md").unlink()
    found = house.json("duplicates", "--above", "1", "--no-update")
    (group,) = found["groups"]
    assert [(file["path"], file["freshness"]) for file in group["files"]] == [
        ("chunked/own/b.md", "fresh"),
        ("chunked/own/c.md", "edited"),
    ]
    assert "+Changed." in group["files"][1]["diff"]
    assert "gone" in found["notes"][-1]
    (house.chunked / "own/c.md").unlink()
    house("duplicates", "--above", "1", "--no-update", code=1)


def test_a_question_in_common_makes_no_duplicate(workspace: Any) -> None:
    """Nothing could be done about it: only files that say the same themselves are named."""
    asked = '---\nquestions: ["Who has the key?"]\n---\n'
    same = "The cellar is below the stairs.\n"
    for name, text in (("a", asked + same), ("b", f"{asked}The lease ends in May.\n"), ("c", same)):
        workspace.write(f"file_index/chunked/{name}.md", text)
    workspace("sync")
    (remark,) = workspace.json("verify")["findings"]
    assert remark["code"] == "duplicate"
    assert remark["path"] == "chunked/a.md"
    assert remark["detail"] == "has a text in common with chunked/c.md"
    (group,) = workspace.json("duplicates", "--above", "1")["groups"]
    assert [file["path"] for file in group["files"]] == ["chunked/a.md", "chunked/c.md"]


def test_boilerplate_is_one_group_with_few_diffs(workspace: Any) -> None:
    """A footer on thirty pages is one group, ten of it printed, and a note says why."""
    for number in range(30):
        text = f"Printed by the town hall, all rights reserved, page {number}\n"
        workspace.write(f"file_index/chunked/page{number:02}.md", text)
    workspace.sync()
    found = workspace.json("duplicates", "--above", "0.7")
    (group,) = found["groups"]
    assert len(group["files"]) == 30
    assert sum(bool(file["diff"]) for file in group["files"]) == 10
    assert [file.get("cut", False) for file in group["files"]] == [False] * 11 + [True] * 19
    assert "headers, footers and forms" in " ".join(found["notes"])
    done = workspace("duplicates", "--above", "0.7")
    assert "… and 20 more" in done.stdout


@pytest.mark.parametrize("value", ["0", "-1", "1.1", "nan", "inf", "many"])
def test_a_cosine_that_is_none(workspace: Any, value: str) -> None:
    """What is no cosine is wrong usage."""
    workspace("duplicates", f"--above={value}", code=2)


def many_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the vector index, as in a store of more bodies than are compared with each other."""
    from filestore.browse import alike
    from filestore.index import VectorIndex

    monkeypatch.setattr(VectorIndex, "has_lists", True)
    monkeypatch.setattr(alike, "COMPARED_WITH_ALL", 0)
    monkeypatch.setattr(alike, "_NEAREST", 2)


@pytest.mark.parametrize("above", ["0.3", "0.6", "0.75", "1"])
def test_the_index_finds_what_comparing_all_finds(
    house: Any, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    """A large store gives the same groups, by its vector index."""
    house.write("file_index/chunked/own/c.md", (house.chunked / "own/b.md").read_text())
    house.write(
        "file_index/chunked/own/d.md", "The deposit of the flat is paid back in six weeks.\n"
    )
    house.sync(code=None)
    compared = house.json("duplicates", "--above", above)
    many_found(monkeypatch)
    assert house.json("duplicates", "--above", above) == compared


def test_links_of_a_persons_file(house: Any) -> None:
    """Own links are listed with their lines; those to nothing are marked and end with 1."""
    found = house.json("links", "own/a.md", code=1)
    assert [(link["line"], link["target"], link["state"]) for link in found["outgoing"]] == [
        (3, "chunked/own/b.md", "there"),
        (3, "chunked/own/nowhere.md", "dangling"),
    ]
    done = house("links", "own/a.md", code=1)
    assert "   chunked/own/a.md:3 -> chunked/own/nowhere.md  [dangling]\n" in done.stdout
    back = house.json("links", "chunked/own/b.md")
    assert back["outgoing"] == []
    assert [(link["path"], link["line"]) for link in back["incoming"]] == [("chunked/own/a.md", 3)]
    assert "(0)" in house("links", "chunked/filler.md/chunk1.md").stdout


def test_links_of_an_original(house: Any) -> None:
    """Links that came with an original lead to originals; one that was never added is marked."""
    keys = chunk_with(house, "# Keys")
    found = house.json("links", "house/lease.md")
    told = [(link["path"], link["target"], link["state"]) for link in found["outgoing"]]
    assert told == [
        (keys, "../house/cellar.md", "there"),
        (keys, "../house/more.md", "not added"),
    ]
    lines = (house.store / keys).read_text().splitlines()
    assert "[the cellar](cellar.md)" in lines[found["outgoing"][0]["line"] - 1]
    (incoming,) = found["incoming"]
    assert incoming["path"] == chunk_with(house, "# Cellar")
    assert incoming["target"] == "../house/lease.md"
    assert house.json("links", chunk_with(house, "# Lease"))["incoming"] == [incoming]


def edit(path: Path) -> None:
    """Change a file."""
    path.write_text(path.read_text() + "\nMore.\n")


@pytest.mark.parametrize(
    ("change", "name", "freshness", "state"),
    [
        (edit, "own/a.md", "edited", "there"),
        (Path.unlink, "own/a.md", "gone", "there"),
        (Path.unlink, "own/b.md", "fresh", "gone"),
    ],
)
def test_links_as_the_files_are_now(
    house: Any, change: Callable[[Path], None], name: str, freshness: str, state: str
) -> None:
    """A link says whether its file is as it was, and whether what it leads to is still there."""
    change(house.chunked / name)
    found = house.json("links", "own/a.md", "--no-update", code=1)["outgoing"][0]
    assert (found["freshness"], found["state"]) == (freshness, state)


def test_a_link_to_a_file_that_moved(house: Any) -> None:
    """A link to the old name of a file says where it is now, from either end."""
    (house.chunked / "own/b.md").rename(house.chunked / "own/new name.md")
    house.sync(code=None)
    (link, _) = house.json("links", "own/a.md", code=1)["outgoing"]
    assert (link["state"], link["moved_to"]) == ("moved", "chunked/own/new name.md")
    (back,) = house.json("links", "own/new name.md")["incoming"]
    assert back == link
    assert "[moved to chunked/own/new name.md]" in house("links", "own/a.md", code=1).stdout


def test_children_of_a_summary_are_links(house: Any) -> None:
    """What a summary was made from is linked, without a line."""
    digest = "sha256:" + "0" * 64
    children = f'[{{"path": "own/b.md", "hash": "{digest}"}}]'
    head = f'---\nkind: "summary"\nlevel: 1\nchildren: {children}\n---\n'
    house.write("file_index/chunked/own/summary1.md", f"{head}In short.\n")
    house.sync(code=None)
    (link,) = house.json("links", "own/summary1.md")["outgoing"]
    assert (link["line"], link["target"]) == (None, "chunked/own/b.md")


def test_names_that_could_steer_a_terminal(house: Any) -> None:
    """Escapes in names, headings, texts and links are shown, never sent."""
    name = "own/\x1b[2Jodd\n.md"
    text = "# \x1b]0;title\x07\n\nThe deposit of the flat \x9b31m is paid back. [l](<\x1b[2J.md>)\n"
    house.write(f"file_index/chunked/{name}", text)
    house.write("file_index/chunked/own/z.md", text)
    house.sync(code=None)
    for words in (("similar", name), ("duplicates", "--above", "0.3"), ("links", name)):
        for more in ((), ("--json",)):
            done = house(*words, *more, code=None)
            assert done.code in (0, 1)
            assert not set("\x1b\x07\x9b") & set(done.stdout + done.stderr)


def test_the_library_gives_what_json_prints(house: Any) -> None:
    """Each result is a value with `to_dict()`, and iterates where it lists."""
    import filestore

    with filestore.open(house.store) as store:
        for found, words in (
            (store.similar("own/b.md", k=3), ("similar", "own/b.md", "-k", "3")),
            (store.duplicates(above=0.6), ("duplicates", "--above", "0.6")),
            (store.links("own/a.md"), ("links", "own/a.md")),
        ):
            assert found.to_dict() == house.json(*words, code=None)


def test_a_document_of_very_many_chunks_is_compared_at_once(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is the one that its chunks give one by one."""
    from filestore.browse import vectors

    paragraphs = (
        f"## Part {number}\n\n{'moor heath bog ' * (40 + number)}\n" for number in range(90)
    )
    workspace.write("long.md", "\n".join(paragraphs))
    workspace.write("near.md", "# Moor\n\nA moor, a heath, a bog.\n")
    workspace.write("far.md", "# Sea\n\nA harbour with ships.\n")
    workspace("add", "long.md", "near.md", "far.md")
    many = workspace.json("similar", "long.md", "-k", "2")
    assert len(many["to"]) > vectors._FEW_ASKED
    assert [hit["resource"] for hit in many["hits"]] == ["near.md", "far.md"]
    monkeypatch.setattr(vectors, "_FEW_ASKED", len(many["to"]))
    with Store(workspace.store) as store:
        apart = store.similar(workspace.folder / "long.md", k=2)
    assert [hit.path for hit in apart.hits] == [hit["path"] for hit in many["hits"]]
    assert [hit.score for hit in apart.hits] == pytest.approx(
        [hit["score"] for hit in many["hits"]], abs=1e-5
    )


def test_a_file_without_relations_is_no_failure(house: Any) -> None:
    """What was asked about is there, and the answer is that there is nothing."""
    shutil.rmtree(house.chunked)
    house.write("file_index/chunked/own/only.md", "A pangolin.\n")
    house("sync", "--forget-missing")
    assert house("similar", "chunked/own/only.md").stdout == "nothing similar found\n"
    assert house("links", "chunked/own/only.md").stdout.count("(0)") == 2
