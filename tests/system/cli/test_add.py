"""`filestore add`: documents become chunk files, the same everywhere, and follow their source."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from filestore.chunks import chunk_file

TOPICS = ("preface", "apples", "pears", "plums", "cherries", "figs")


def body(data: bytes) -> str:
    return chunk_file.parse(data).body


def chunk_files(workspace: Any) -> dict[str, bytes]:
    truth: dict[str, bytes] = workspace.truth()
    return {path: data for path, data in truth.items() if path.endswith(".md")}


def about(workspace: Any, topic: str) -> str:
    """The one chunk file that holds the section about a topic."""
    heading = f"## About {topic}\n"
    (path,) = [path for path, data in chunk_files(workspace).items() if heading in body(data)]
    return path


def test_what_is_reported(either: Any) -> None:
    """The report lists each source with its resource and chunks, and how much was embedded."""
    either.write("notes/one.md", "# One\n\nFirst words.\n")
    either.write("two.txt", "Second words.\n")
    report = either.json("add", "notes/one.md", "two.txt")
    assert report["added"] == [
        {"source": "../notes/one.md", "resource": "one.md", "chunks": 1},
        {"source": "../two.txt", "resource": "two.txt", "chunks": 1},
    ]
    assert report["updated"] == report["unchanged"] == report["failed"] == []
    assert report["embedded"] == 2
    again = either.json("add", "notes/one.md", "two.txt")
    assert [entry["resource"] for entry in again["unchanged"]] == ["one.md", "two.txt"]
    assert again["added"] == again["updated"] == []
    assert again["embedded"] == 0
    either.assert_settled()


def test_in_words(workspace: Any) -> None:
    """A person reads what was added and how many texts were embedded."""
    workspace.write("one.md", "# One\n\nFirst words.\n")
    done = workspace("add", "one.md")
    assert "added one.md (1 chunk)" in done.stdout
    assert "embedded 1 passage" in done.stdout


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", "Grüße aus Köln, mit Umlauten — und Gedankenstrich.\n"),
        ("utf-8-sig", "Grüße mit einer Marke am Anfang.\n"),
        ("utf-16", "Breite Zeichen: Grüße, Straße, 東京.\n"),
        ("cp1252", "Les élèves étudient la forêt près du château, où l’été dure.\n"),
        ("koi8_r", "Это обычный русский текст о погоде и дороге в старом городе.\n"),
        ("shift_jis", "これは日本語のテストです。東京は大きな都市です。\n"),
        ("gb18030", "这是一个中文测试。我们在这里学习数据库的知识。\n"),
    ],
)
def test_text_in_whatever_encoding(workspace: Any, encoding: str, text: str) -> None:
    """A text is stored as its characters, whatever bytes they came in."""
    workspace.write("text.txt", text.encode(encoding))
    workspace("add", "text.txt")
    assert body(workspace.truth()["text.txt/chunk1.md"]) == text
    assert workspace("reconstruct", "text.txt").stdout == text


def test_a_guessed_encoding_is_said(workspace: Any) -> None:
    """What nothing in a file says is called a guess, by `add` and in the record."""
    workspace.write("boats.txt", "Лодки у пристани, паром уходит утром.\n".encode("cp866"))
    workspace.write("plain.txt", "Лодки у пристани.\n")
    said = workspace("add", "boats.txt", "plain.txt").stdout
    assert "../boats.txt: read as cp866, which is a guess" in said
    assert "plain.txt: " not in said
    (document,) = json.loads(workspace.truth()["boats.txt/meta.json"])["documents"]
    assert document["metadata"] == {"encoding": "cp866 (guessed)"}


def test_markdown_with_frontmatter(either: Any) -> None:
    """A document's own frontmatter is its metadata: kept, and a filter for every chunk of it."""
    either.write(
        "rule.md",
        "---\ntitle: House rule\nauthor: Ada\ntags: [shoes, doors]\nyear: 1843\n---\n"
        "# Shoes\n\nLeave them at the door.\n",
    )
    either.write("other.md", "# Shoes\n\nLeave them anywhere.\n")
    either("add", "rule.md", "other.md")
    (rule,) = either.chunks("rule.md")
    assert "House rule" not in body(either.truth()[rule])
    for condition in ("author=Ada", "title=House rule", "tags=doors", "year=1843"):
        assert either.found("leave", "--where", condition) == [rule]
    assert either.found("leave", "--where", "author=Bob") == []
    assert either.json("show", f"chunked/{rule}")["record"]["document"] == {
        "title": "House rule",
        "author": "Ada",
        "tags": ["shoes", "doors"],
        "year": 1843,
    }


def test_html_page(either: Any) -> None:
    """A page gives its text under its headings, without scripts and tags."""
    either.write(
        "page.html",
        "<html><head><title>Ships</title><style>p{color:red}</style></head><body>"
        "<nav><a href='x'>Home</a></nav><main><h1>Ships</h1><p>A <b>brig</b> has two masts.</p>"
        "<pre>reef the sails</pre><script>alert('no')</script></main></body></html>",
    )
    either("add", "page.html")
    (path,) = either.found("brig")
    text = body(either.truth()[path])
    assert "# Ships" in text
    assert "two masts" in text
    assert "reef the sails" in text
    assert "alert" not in text
    assert "color" not in text
    assert either.json("show", path)["record"]["document"]["title"] == "Ships"


def test_documentation_folder(either: Any) -> None:
    """A whole documentation folder is one resource of its pages; what only serves them is not."""
    page = "<html><body><h1>{0}</h1><p>The page about {0}.</p></body></html>"
    either.write("manual/index.html", page.format("welcome"))
    either.write("manual/api/reef.html", page.format("reefing"))
    either.write("manual/_static/note.txt", "not a page")
    either.write("manual/_sources/index.rst.txt", "not a page either")
    either.write("manual/_static/doctools.js", "var notapage;")
    either.write("manual/genindex.html", page.format("notapage"))
    either.write("manual/searchindex.js", "notapage")
    either.write("manual/objects.inv", b"\x00\x01")
    report = either.json("add", "manual")
    assert [entry["resource"] for entry in report["added"]] == ["manual"]
    assert either.json("ls")["items"] == [
        {"resource": "manual", "source": "../manual", "chunks": 2}
    ]
    sources = [item["source"] for item in either.json("ls", "manual")["items"]]
    assert sources == ["../manual/index.html", "../manual/api/reef.html"]
    assert either.found("page", "--source", "*/reef.html") == [either.chunks("manual")[1]]
    assert either.found("notapage") == []
    either.assert_settled()


def test_nested_folder_is_one_resource(either: Any) -> None:
    """Index pages come first, the rest by name, and only what changed is made again."""
    either.write("guide/b/deep/end.md", "# End\n\nThe end.\n")
    either.write("guide/a.md", "# A\n\nThe beginning.\n")
    either.write("guide/README.md", "# Guide\n\nWelcome.\n")
    either.write("guide/picture.png", b"\x89PNG\r\n\x1a\n")
    report = either.json("add", "guide")
    assert report["added"][0]["chunks"] == 3
    text = either("reconstruct", "guide").stdout
    assert text == "# Guide\n\nWelcome.\n# A\n\nThe beginning.\n# End\n\nThe end.\n"
    before = chunk_files(either)
    either.write("guide/a.md", "# A\n\nThe new beginning.\n")
    report = either.json("add", "guide")
    assert report["updated"][0]["chunks"] == 3
    assert report["embedded"] == 1
    after = chunk_files(either)
    assert len([path for path in before if after.get(path) != before[path]]) == 1
    (either.folder / "guide/b/deep/end.md").unlink()
    either.json("add", "guide")
    assert either("reconstruct", "guide").stdout == (
        "# Guide\n\nWelcome.\n# A\n\nThe new beginning.\n"
    )
    either.assert_settled()


def test_each_child_of_a_folder(either: Any) -> None:
    """With --each every file and folder in a folder is a resource of its own."""
    either.write("shelf/one.md", "One.\n")
    either.write("shelf/two.txt", "Two.\n")
    either.write("shelf/three/page.md", "Three.\n")
    either.write("shelf/.hidden", "Not this.\n")
    report = either.json("add", "shelf", "--each")
    names = [entry["resource"] for entry in report["added"]]
    assert names == ["one.md", "three", "two.txt"]
    either.assert_settled()


def test_into_a_name(either: Any) -> None:
    """--into names the resource, and names only one."""
    either.write("draft.md", "Some words.\n")
    either.write("other.md", "Some words.\n")
    report = either.json("add", "draft.md", "--into", "final words")
    assert report["added"][0]["resource"] == "final words"
    assert either("reconstruct", "final words").stdout == "Some words.\n"
    assert "--into" in either("add", "draft.md", "other.md", "--into", "x", code=2).stderr
    assert "--into" in either("add", ".", "--each", "--into", "x", code=2).stderr


@pytest.mark.parametrize(
    "name",
    [
        "with space.md",
        "grüße 東京 🐟.md",
        "e\u0301 decomposed.md",
        "-dash [brackets] 'quotes' $HOME;.md",
        "n" * 252 + ".md",
        "ü" * 126 + ".md",
    ],
)
def test_unusual_names(either: Any, name: str) -> None:
    """Spaces, Unicode, shell characters and 255 bytes are names like any other."""
    either.write(name, f"# Title\n\nUnusual words.\n\n{name}\n")
    either("add", f"./{name}")
    assert [item["resource"] for item in either.json("ls")["items"]] == [name]
    assert len(either.found("unusual")) == 1
    assert either("reconstruct", "--", name).stdout.endswith(f"{name}\n")
    either.assert_settled()
    either("rm", "--", name)
    assert either.truth() == {}


def test_originals_from_elsewhere_are_copied(either: Any) -> None:
    """A source outside the work tree is copied to source/; one inside is referenced in place."""
    outside = either.folder.parent / "outside" / "far"
    (outside / "inner").mkdir(parents=True)
    (outside / "page.md").write_bytes(b"From afar.\r\n")
    (outside / "inner" / "deep.txt").write_bytes(b"Deep down.\n")
    either.write("near.md", "From here.\n")
    report = either.json("add", outside, "near.md")
    assert [entry["source"] for entry in report["added"]] == ["source/far", "../near.md"]
    assert (either.store / "source/far/page.md").read_bytes() == b"From afar.\r\n"
    assert (either.store / "source/far/inner/deep.txt").read_bytes() == b"Deep down.\n"
    assert not (either.store / "source/near.md").exists()
    (outside / "page.md").write_bytes(b"From further.\n")
    assert either.json("add", outside)["updated"][0]["source"] == "source/far"
    assert (either.store / "source/far/page.md").read_bytes() == b"From further.\n"
    assert either.json("add", either.store / "source" / "far")["failed"] == []


def test_same_input_same_bytes(run: Any, tmp_path: Path, manual: Any, layout: str) -> None:
    """Two people who ingest the same documents in different places write the same files."""
    seen = []
    for place, seed in (("one", "1"), ("far/away from/two", "2")):
        folder = tmp_path / place
        (folder / ".git").mkdir(parents=True)
        (folder / "guide").mkdir()
        (folder / "guide" / "b.md").write_text(manual(TOPICS))
        (folder / "guide" / "a.html").write_text("<h1>A</h1><p>Words of a page.</p>")
        (folder / "note ü.md").write_text("---\nb: 1\na: [x, y]\n---\nA note.\n")
        outside = tmp_path / f"outside {seed}" / "copied.txt"
        outside.parent.mkdir()
        outside.write_text("Copied words.\n")
        variables = {"PYTHONHASHSEED": seed, "TZ": f"UTC-{seed}"}
        for words in (["init", "--layout", layout], ["add", "guide", "note ü.md", str(outside)]):
            done = run(*words, cwd=folder, env=variables)
            assert done.code == 0, done.stderr
        root = folder / "file_index"
        paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
        relative = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
        derived = (".sidecar/", ".undo/")
        seen.append({p: d for p, d in relative.items() if not p.startswith(derived)})
    assert seen[0].keys() == seen[1].keys()
    assert seen[0] == seen[1]
    assert len(seen[0]) > 10
    assert all(str(tmp_path).encode() not in data for data in seen[0].values())


def test_order_of_adding_does_not_matter(new_workspace: Any, manual: Any, layout: str) -> None:
    """The truth is the same whether documents come together, one by one, or the other way round."""
    truths = []
    for name, calls in (
        ("together", [["a.md", "b.md"]]),
        ("singly", [["a.md"], ["b.md"]]),
        ("reversed", [["b.md"], ["a.md"]]),
    ):
        workspace = new_workspace(name, layout=layout)
        workspace.write("a.md", manual(TOPICS[:3]))
        workspace.write("b.md", manual(TOPICS[3:]))
        for paths in calls:
            workspace("add", *paths)
        truths.append(workspace.truth())
    assert truths[0] == truths[1] == truths[2]


Change = Callable[[list[str]], list[str]]


@pytest.mark.parametrize(
    ("change", "new", "written"),
    [
        pytest.param(lambda t: [*t[:3], "quinces", *t[3:]], 1, {"quinces"}, id="inserted"),
        pytest.param(lambda t: [*t, "quinces", "sloes"], 2, {"quinces", "sloes"}, id="appended"),
        pytest.param(lambda t: [t[0], *t[2:]], 0, set(), id="removed"),
        pytest.param(lambda t: [t[0], t[2], t[3], t[1], *t[4:]], 0, {"apples"}, id="moved"),
        pytest.param(
            lambda t: [t[0], "sloes", t[1], t[2], *t[4:], "quinces"],
            2,
            {"sloes", "quinces"},
            id="mixed",
        ),
    ],
)
def test_changed_source_keeps_untouched_chunks(
    either: Any, manual: Any, change: Change, new: int, written: set[str]
) -> None:
    """Sections may come, go and move: every other chunk file keeps its name and its bytes."""
    either.write("manual.md", manual(TOPICS))
    either("add", "manual.md")
    before = chunk_files(either)
    names = {topic: about(either, topic) for topic in TOPICS}
    topics = change(list(TOPICS))
    either.write("manual.md", manual(topics))
    report = either.json("add", "manual.md")
    assert report["updated"][0]["chunks"] == len(topics)
    assert report["embedded"] == new
    after = chunk_files(either)
    assert len(after) == len(topics)
    for topic in topics:
        if topic in TOPICS:
            assert about(either, topic) == names[topic]
            if topic not in written:
                assert after[names[topic]] == before[names[topic]]
    assert either("reconstruct", "manual.md").stdout == manual(topics)
    assert either.chunks("manual.md") == [about(either, topic) for topic in topics]
    either.assert_settled()


def test_changed_section_changes_its_file_only(either: Any, manual: Any) -> None:
    """A new wording is written into the file of its section, under the name it had."""
    either.write("manual.md", manual(TOPICS))
    either("add", "manual.md")
    before = chunk_files(either)
    pears = about(either, "pears")
    changed = manual(TOPICS).replace("pears needs care in step 3", "pears rests in step 3")
    either.write("manual.md", changed)
    report = either.json("add", "manual.md")
    assert report["embedded"] == 1
    after = chunk_files(either)
    assert {path for path in after if after[path] != before.get(path)} == {pears}
    assert either("reconstruct", "manual.md").stdout == changed
    either.assert_settled()


def test_what_a_person_added_to_a_file_stays(either: Any, manual: Any) -> None:
    """Keys and comments of the user in the frontmatter survive a new wording of the source."""
    either.write("manual.md", manual(TOPICS))
    either("add", "manual.md")
    path = either.chunked / about(either, "pears")
    mine = b"# checked by me\nreviewed:   'yes'\n"
    path.write_bytes(path.read_bytes().replace(b"---\n", b"---\n" + mine, 1))
    either.sync()
    either.write("manual.md", manual(TOPICS).replace("pears needs care", "pears needs rest"))
    either("add", "manual.md")
    assert mine in path.read_bytes()
    assert b"pears needs rest" in path.read_bytes()
    assert b"pears needs care" not in path.read_bytes()
    either.assert_settled()


def test_hand_edited_file_is_never_overwritten(either: Any, manual: Any) -> None:
    """An edit by hand is kept and reported when its source changes; the rest follows the source."""
    either.write("manual.md", manual(TOPICS))
    either("add", "manual.md")
    edited = about(either, "pears")
    path = either.chunked / edited
    path.write_bytes(path.read_bytes() + b"My own remark about quality.\n")
    mine = path.read_bytes()
    either.sync()
    changed = manual(TOPICS).replace("pears needs care", "pears needs rest")
    either.write("manual.md", changed.replace("figs needs care", "figs needs sun"))
    report = either.json("add", "manual.md", code=1)
    assert list(report["updated"][0]["kept"]) == [f"chunked/{edited}"]
    assert [conflict["path"] for conflict in report["conflicts"]] == [f"chunked/{edited}"]
    assert path.read_bytes() == mine
    assert b"figs needs sun" in either.truth()[about(either, "figs")]
    either.write("manual.md", manual([topic for topic in TOPICS if topic != "pears"]))
    done = either("add", "manual.md", code=1)
    assert f"kept chunked/{edited}" in done.stdout
    assert "hand edits are kept" in done.stderr
    assert path.read_bytes() == mine
    items = either.json("ls", "manual.md")["items"]
    assert [item["path"] for item in items if item["edited"]] == [f"chunked/{edited}"]


def test_hand_edit_that_was_never_synced_is_kept_too(either: Any, manual: Any) -> None:
    """The edit is told by the file itself, not by what the index happens to know."""
    either.write("manual.md", manual(TOPICS))
    either("add", "manual.md")
    path = either.chunked / about(either, "pears")
    path.write_bytes(path.read_bytes().replace(b"step 5", b"step five"))
    mine = path.read_bytes()
    either.write("manual.md", manual(TOPICS).replace("pears needs care", "pears needs rest"))
    report = either.json("add", "manual.md", code=1)
    assert len(report["conflicts"]) == 1
    assert path.read_bytes() == mine


def test_name_in_use_by_another_source(either: Any) -> None:
    """The same name from another place is refused, with both ways out, and nothing changes."""
    either.write("a/notes.md", "First notes.\n")
    either.write("b/notes.md", "Other notes.\n")
    either.write("c/more.md", "More notes.\n")
    either("add", "a/notes.md")
    before = either.truth()
    done = either("add", "b/notes.md", "c/more.md", code=5)
    assert "in use" in done.stderr
    assert "--into" in done.stderr
    assert "added more.md" in done.stdout
    after = either.truth()
    assert {path: after[path] for path in before} == before
    failed = either.json("add", "b/notes.md", code=4)["failed"]
    assert [entry["resource"] for entry in failed] == ["notes.md"]
    assert "in use" in failed[0]["error"]
    assert either.json("add", "b/notes.md", "--into", "b notes")["added"] != []
    either.assert_settled()


def test_equal_texts_are_embedded_once(either: Any) -> None:
    """Two files with the same text share one embedding, and are one hit that names both."""
    for name in ("one.txt", "two.txt"):
        either.write(name, "The very same words.\n")
    assert either.json("add", "one.txt", "two.txt")["embedded"] == 1
    (hit,) = either.json("search", "same")["hits"]
    assert len(hit["copies"]) == 1
    either.assert_settled()


def test_unchanged_source_writes_nothing(either: Any, manual: Any) -> None:
    """Adding what did not change leaves every file's bytes and times alone."""
    either.write("manual.md", manual(TOPICS))
    either("add", "manual.md")
    stamps = {path: path.stat().st_mtime_ns for path in sorted(either.store.rglob("*.md"))}
    os.utime(either.folder / "manual.md", (1, 1))
    assert either.json("add", "manual.md")["unchanged"][0]["chunks"] == len(TOPICS)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_two_documents_from_elsewhere_with_one_name(run: Any, tmp_path: Path) -> None:
    """The second of two originals outside the work tree has a name of its own, and keeps it."""
    for folder, word in (("x", "apples"), ("y", "bananas")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.md").write_text(f"# {word}\n\nAbout {word}.\n")
    work = tmp_path / "s"
    (work / "deeper").mkdir(parents=True)
    assert run("init", cwd=work / "deeper").code == 0
    done = run("add", "../../x/notes.md", "../../y/notes.md", "--json", cwd=work / "deeper")
    assert [entry["resource"] for entry in done.json["added"]] == ["notes.md", "y-notes.md"]
    for path in ("../../y/notes.md", "../../x/notes.md"):
        assert run("add", path, "--json", cwd=work / "deeper").json["unchanged"]


def test_a_renamed_resource_is_still_its_source(run: Any, store_folder: Path) -> None:
    """A source whose folder was renamed updates that folder and makes no second resource."""
    (store_folder.parent / "a.md").write_text("# One\n\nWords.\n")
    run("add", "a.md", cwd=store_folder.parent)
    (store_folder / "chunked" / "a.md").rename(store_folder / "chunked" / "book")
    run("sync", cwd=store_folder.parent)
    (store_folder.parent / "a.md").write_text("# One\n\nOther words.\n")
    (entry,) = run("add", "a.md", "--json", cwd=store_folder.parent).json["updated"]
    assert entry["resource"] == "book"
    assert [item["resource"] for item in run("ls", "--json", cwd=store_folder).json["items"]] == [
        "book"
    ]


def test_chunks_in_a_sub_folder_are_still_followed(run: Any, store_folder: Path) -> None:
    """Chunk files moved into a folder of their resource are aligned, not made a second time."""
    text = "".join(f"# Part {n}\n\n{'words ' * 120}\n\n" for n in range(6))
    (store_folder.parent / "a.md").write_text(text)
    run("add", "a.md", cwd=store_folder.parent)
    resource = store_folder / "chunked" / "a.md"
    (resource / "later").mkdir()
    for number in (4, 5):
        (resource / f"chunk{number}.md").rename(resource / "later" / f"chunk{number}.md")
    run("sync", cwd=store_folder)
    (store_folder.parent / "a.md").write_text(f"{text}# Tail\n\nEnd.\n")
    assert run("add", "a.md", cwd=store_folder.parent).code == 0
    done = run("reconstruct", "a.md", "--json", cwd=store_folder)
    assert done.json["text"] == f"{text}# Tail\n\nEnd.\n"


def test_a_file_with_own_keys_outlives_its_source_text(run: Any, store_folder: Path) -> None:
    """A chunk that a person gave keys or questions is kept and reported when its text goes."""
    parts = [f"# Part {n}\n\n{'words ' * 120}\n\n" for n in range(4)]
    (store_folder.parent / "a.md").write_text("".join(parts))
    run("add", "a.md", cwd=store_folder.parent)
    path = store_folder / "chunked" / "a.md" / "chunk3.md"
    mine = path.read_text().replace("---\n", '---\ntags: ["mine"]\n', 1)
    path.write_text(mine)
    run("sync", cwd=store_folder)
    (store_folder.parent / "a.md").write_text("".join(parts[:2]))
    done = run("add", "a.md", "--json", cwd=store_folder.parent)
    assert done.code == 1
    assert [conflict["path"] for conflict in done.json["conflicts"]] == ["chunked/a.md/chunk3.md"]
    assert path.read_text() == mine


def test_a_clone_without_chunked(run: Any, store_folder: Path) -> None:
    """Git keeps no empty folder: adding to the clone of an empty store makes it again."""
    (store_folder / "chunked").rmdir()
    (store_folder.parent / "a.md").write_text("Words.\n")
    assert run("add", "a.md", cwd=store_folder.parent).code == 0


def test_an_empty_path_is_wrong_usage(run: Any, store_folder: Path) -> None:
    """An unset variable does not add the whole folder."""
    assert run("add", "", cwd=store_folder).code == 2


def test_a_new_text_behind_a_hand_edit_is_not_lost(either: Any) -> None:
    """While an edit keeps a text out its source counts as changed; without it the text comes."""
    either.write("n.md", "# N\n\nOne.\n")
    either("add", "n.md")
    (path,) = either.chunks("n.md")
    chunk = either.chunked / path
    generated = chunk.read_bytes()
    chunk.write_bytes(generated + b"Hand.\n")
    either.write("n.md", "# N\n\nOne.\n\nTwo.\n")
    for _ in range(2):
        report = either.json("add", "n.md", code=1)
        (entry,) = report["updated"] + report["unchanged"]
        assert list(entry["kept"]) == [f"chunked/{path}"]
    chunk.write_bytes(generated)
    either("add", "n.md")
    assert b"Two." in chunk.read_bytes()
    assert either.found("Two") == [path]
    either.assert_settled()


@pytest.mark.parametrize("words", [(), ("--each",), ("--plan",)])
def test_what_fails_is_called_as_it_was_typed(either: Any, tmp_path: Path, words: Any) -> None:
    """Once, also where its copy would have another name; JSON has that of the record."""
    (tmp_path / "far" / "in").mkdir(parents=True)
    for name in ("far/image.bin", "far/in/empty.md", "far/in/good.md"):
        (tmp_path / name).write_bytes(b"\0\1" if name.endswith("bin") else b"")
    (tmp_path / "far/in/good.md").write_text("Words.\n")
    far = os.path.relpath(tmp_path / "far", either.folder)
    reason = "no extractor reads this kind of file"
    if not words or words == ("--plan",):
        done = either("add", f"{far}/image.bin", *words, code=3)
        assert done.stderr.splitlines()[0] == f"failed {far}/image.bin: {reason}"
    done = either("add", f"{far}/in", f"{far}/none.md", *words, code=5)
    failed = [line for line in done.stderr.splitlines() if line.startswith("failed ")]
    assert f"failed {far}/none.md: no such file or folder; check the path" in failed
    if words != ("--plan",):
        assert any(line.startswith(f"failed {far}/in/empty.md: ") for line in failed)
        assert all(line.count("empty.md") < 2 for line in failed)
        report = either.json("add", f"{far}/in", *words, code=5)
        assert [one["source"].rpartition("/")[2] for one in report["failed"]] == ["empty.md"]


def test_a_name_that_is_no_text_is_said_once(either: Any) -> None:
    """As the path before the message spells it, and so does a name that was chosen."""
    either.write(os.fsdecode(b"no\xff.md"), "Words.\n")
    done = either("add", os.fsdecode(b"no\xff.md"), code=3)
    said = done.stderr.splitlines()[0]
    assert said == r"failed no\xff.md: its name cannot name a document: it is not valid UTF-8"
    either.write("yes.md", "Words.\n")
    done = either("add", "yes.md", "--into", os.fsdecode(b"no\xff"), code=3)
    assert r"'no\xff' cannot name a document" in done.stderr


def test_a_partial_success_has_its_own_sentence_and_code(either: Any) -> None:
    """Some added and some failed is 5 with counts and grouped reasons; nothing added stays 3."""
    for number in range(3):
        either.write(f"shelf/{number}.md", f"Words of document {number}.\n")
    for number in range(12):
        either.write(f"shelf/empty{number}.md", b"")
        either.write(f"shelf/fake {number}.pdf", f"page {number}\n")
    either.write("refused/one/note.md", "One.\n")
    done = either("add", "shelf", "nowhere.md", code=5)
    assert done.stderr.splitlines()[-4:] == [
        "added 3, failed 25:",
        "    12 × empty: expected text",
        "    12 × not a PDF: expected %PDF- at its start",
        "    1 × no such file or folder",
    ]
    assert "failed 25" not in done.stdout
    report = either.json("add", "shelf", "nowhere.md", code=5)
    assert len(report["failed"]) == 25
    assert either.json("add", "nowhere.md", code=3)["failed"]
    assert "failed 1:" not in either("add", "nowhere.md", code=3).stderr
    either.write("apart1.md", b"")
    either.write("apart2.md", b"")
    either("add", "apart1.md", "apart2.md", code=3)
    either("add", "refused/one/note.md")
    either("add", "shelf/0.md", "refused/one/note.md", code=5)


def test_reasons_that_only_differ_in_numbers_and_names_are_one(workspace: Any) -> None:
    """Pages that lead elsewhere are one reason, files that are no text are another."""
    workspace.write("shelf/good.md", "Words.\n")
    for number in range(1, 4):
        head = f'<meta http-equiv="refresh" content="0; url=https://example.org/{number}">'
        workspace.write(f"shelf/{number}.html", f"<html><head>{head}</head><body>x</body></html>")
        binary = bytes(range(1, 9)) * 100 * number
        workspace.write(f"shelf/{number}.md", binary)
    done = workspace("add", "shelf", code=5)
    said = done.stderr.splitlines()
    reasons = said[said.index("added 1, failed 6:") + 1 :]
    assert [line.split(" × ")[0] for line in reasons if " × " in line] == ["    3", "    3"], said


def test_a_reason_shows_no_raw_bytes_of_a_name(workspace: Any) -> None:
    """Names that could steer a terminal stay out of the sentence about a partial success."""
    workspace.write("good.md", "Words.\n")
    workspace.write("shelf/\x1b[2Jbad\n.md", b"")
    workspace.write("shelf/(a+)+$.md", b"")
    done = workspace("add", "good.md", "shelf", code=None)
    assert "\x1b" not in done.stderr
