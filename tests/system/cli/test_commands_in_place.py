"""What the commands say of a folder that is indexed in place."""

import json
import shutil
from pathlib import Path

import pytest

from filestore.core.hashing import revision_of
from tests.system.snapshots import snapshot

_LONG = "These words fill a paragraph until it is long enough to be a section of its own. " * 8
NOTES = {
    "Home.md": (
        "---\ntitle: The front door\naliases: [Entry hall]\ntags: [house/ground]\n---\n\n"
        f"# Home\n\nLinks: [[Cellar note]]. {_LONG}\n\n"
        f"## Keys\n\nThe keys hang here. #brass {_LONG}\n"
    ),
    "low/Cellar note.md": f"# Cellar\n\nOnly wine and apples. {_LONG[::-1]}\n\n## Keys\n\nNone.\n",
    "low/copy.md": f"# Home\n\n## Keys\n\nThe keys hang here. #brass {_LONG}\n",
    "low/code.py": '"""Opens doors."""\n\n\ndef unlock(door):\n    """Turn the handle."""\n',
    "page.html": "<title>Garden</title><body><h1>Garden</h1><p>Roses and thyme.</body>",
    "zwölf – 12.md": "# Twelve\n\nAn odd name.\n",
    "x.ipynb": json.dumps(
        {
            "cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# Sums\n", "algebra"]}],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ),
}


@pytest.fixture
def notes(run, work_tree):
    """A folder of documents that is a store."""
    for name, text in NOTES.items():
        path = work_tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    done = run("init", "--in-place", "--embedder", "builtin", cwd=work_tree)
    assert done.code == 0, done
    assert run("sync", cwd=work_tree).code == 0
    return work_tree


def ask(run, notes: Path, *words, code=0):
    """The JSON of a command."""
    done = run(*words, "--json", cwd=notes)
    assert done.code == code, done
    return json.loads(done.stdout)


def test_ls_names_documents_and_their_sections(run, notes):
    """All of them, those of a folder from wherever it is asked, and the sections with lines."""
    assert {one["resource"] for one in ask(run, notes, "ls")["items"]} == set(NOTES)
    below = ask(run, notes, "ls", "low")["items"]
    assert [one["resource"] for one in below] == [
        "low/Cellar note.md",
        "low/code.py",
        "low/copy.md",
    ]
    assert ask(run, notes / "low", "ls", ".")["items"] == below
    sections = ask(run, notes, "ls", "Home.md")["items"]
    assert [(one["line"], one["headings"]) for one in sections] == [
        (7, ["Home"]),
        (11, ["Home", "Keys"]),
    ]
    assert "Home.md:11  Home > Keys" in run("ls", "Home.md", cwd=notes).stdout
    done = run("ls", "nothing", cwd=notes)
    assert done.code == 3
    assert "no document 'nothing'" in done.stderr


def test_show_tells_what_is_known_of_a_document(run, notes):
    """Title, aliases, tags, sections with lines, links and backlinks."""
    shown = ask(run, notes, "show", "Home.md")
    assert shown["record"]["title"] == "The front door"
    assert shown["record"]["aliases"] == ["Entry hall"]
    assert shown["record"]["tags"] == ["house/ground", "house", "brass"]
    assert [one["line"] for one in shown["record"]["sections"]] == [7, 11]
    assert shown["record"]["links"] == [{"line": 9, "target": "low/Cellar note.md"}]
    back = ask(run, notes, "show", "low/Cellar note.md")["record"]["backlinks"]
    assert back == [{"path": "Home.md", "line": 9}]
    assert ask(run, notes, "show", "Home.md:12")["body"].startswith("## Keys")
    assert "line 9 -> low/Cellar note.md" in run("show", "Home.md", "--record", cwd=notes).stdout
    for name, text in NOTES.items():
        assert ask(run, notes, "show", name)["revision"] == revision_of(name, text.encode())


def test_show_says_what_was_edited_or_is_new(run, notes):
    """The text is that of the file as it is."""
    (notes / "Home.md").write_text("# Home\n\nOther words.\n")
    (notes / "new.md").write_text("# New\n\nNot yet known.\n")
    shown = ask(run, notes, "show", "Home.md", "--no-update")
    assert (shown["record"]["freshness"], shown["body"]) == ("edited", "# Home\n\nOther words.\n")
    shown = ask(run, notes, "show", "new.md", "--no-update")
    assert not shown["record"]["indexed"]
    assert "Not yet known" in shown["body"]


def test_what_helps_where_show_shows_nothing_is_a_command_that_does(run, notes):
    """A folder is listed; of a line that is not there no sync is advised, which changes nothing."""
    done = run("show", "low", cwd=notes)
    assert (done.code, "try: filestore ls low\n" in done.stderr) == (3, True)
    assert "low/code.py" in run("ls", "low", cwd=notes).stdout
    done = run("show", "Home.md:999", cwd=notes)
    assert (done.code, "there is no line 999" in done.stderr) == (3, True)
    assert "try:" not in done.stderr


def test_show_says_why_it_shows_nothing_and_what_helps(run, notes):
    """A sync helps where a file is to be indexed, and nowhere else."""
    (notes / "new.py").write_text("def known():\n    return 1\n")
    done = run("show", "new.py", "--no-update", cwd=notes)
    assert "new.py: it is not indexed yet" in done.stderr
    assert "filestore sync" in done.stderr
    run("sync", cwd=notes)
    assert "def known" in run("show", "new.py", cwd=notes).stdout
    (notes / "data.bin").write_bytes(b"\0\1")
    for name, reason in (("filestore.toml", "not a document"), ("data.bin", "no extractor")):
        done = run("show", name, cwd=notes)
        assert reason in done.stderr
        assert "filestore ls" in done.stderr
        assert "filestore sync" not in done.stderr


def test_similar_and_duplicates_know_sections(run, notes):
    """A line asks for its section alone, and each hit names its own."""
    hits = ask(run, notes, "similar", "Home.md:12", "-k", "1")["hits"]
    assert [(hit["path"], hit["line"]) for hit in hits] == [("low/copy.md", 1)]
    hits = ask(run, notes, "similar", "low/copy.md", "-k", "1")["hits"]
    assert [(hit["path"], hit["line"]) for hit in hits] == [("Home.md", 11)]
    shutil.copy(notes / "low/copy.md", notes / "again.md")
    assert run("sync", cwd=notes).code == 0
    (group,) = ask(run, notes, "duplicates", "--above", "0.99")["groups"]
    assert {(file["path"], file["line"]) for file in group["files"]} >= {
        ("again.md", 1),
        ("low/copy.md", 1),
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Entry hall", "Home.md"),
        ("front door", "Home.md"),
        ("cellar note", "low/Cellar note.md"),
        ("zwölf", "zwölf – 12.md"),
        ("unlock door", "low/code.py"),
        ("roses thyme", "page.html"),
        ("algebra", "x.ipynb"),
    ],
)
def test_titles_aliases_and_file_names_find_their_document(run, notes, query, expected):
    """And words of every format do."""
    hits = ask(run, notes, "search", query, "-k", "3")["hits"]
    assert hits[0]["document"] == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("tags=house", {"Home.md"}),
        ("tags=house/ground", {"Home.md"}),
        ("tags=brass", {"Home.md", "low/copy.md"}),
        ("aliases=Entry hall", {"Home.md"}),
        ("title=The front door", {"Home.md"}),
    ],
)
def test_filters_by_what_documents_say_of_themselves(run, notes, where, expected):
    """Tags of the metadata and in the text, those they lie in, other names."""
    hits = ask(run, notes, "search", "keys", "--where", where)["hits"]
    assert {hit["document"] for hit in hits} == expected


def test_what_a_filter_does_not_know_it_says(run, notes):
    """An unknown key, value, kind and source, each with what there is."""
    for words, said in (
        (("--where", "tgas=x"), "no file has the key 'tgas'; did you mean 'tags'?"),
        (("--where", "tags=bras"), "did you mean 'brass'?"),
        (("--kind", "chunk"), "no file is of kind 'chunk'; kinds there are: 'document'"),
        (("--source", "hom.md"), "no source matches 'hom.md'; did you mean 'Home.md'?"),
    ):
        done = run("search", "keys", *words, cwd=notes)
        assert done.code == 1
        assert said in done.stderr, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("add", "Home.md"),
        ("rm", "Home.md"),
        ("update",),
        ("reconstruct", "Home.md"),
        ("repair", "--write-files"),
        ("undo",),
        ("redo",),
        ("undo", "--list"),
        ("trust",),
        ("git", "status"),
        ("git", "merge-driver", "status"),
        ("embedder", "list"),
        ("embeddings", "export", "some.fspack"),
        ("status",),
        ("verify", "--level", "full"),
        ("sync", "--full"),
        ("open", "Home.md:12"),
    ],
)
def test_no_command_writes_into_the_folder(run, notes, words):
    """Refused in one sentence, or done beside the documents; never a traceback."""
    before = _documents(notes)
    done = run(*words, cwd=notes, env={"EDITOR": "true"})
    assert "Traceback" not in done.stderr
    assert done.code in (0, 1, 2, 3, 4)
    assert _documents(notes) == before
    assert not (notes / ".undo").exists()


def _documents(notes: Path):
    return {
        path: seen
        for path, seen in snapshot(notes).items()
        if path.partition("/")[0] not in (".git", ".filestore")
    }


def test_a_hit_is_never_fresh_once_its_note_changed(run, notes):
    """An edited note says so, with the text that is there now; one that is gone is no hit."""
    (notes / "low/Cellar note.md").write_text("# Cellar\n\nOnly wine and pears.\n")
    (notes / "page.html").unlink()
    (notes / "x.ipynb").rename(notes / "y.ipynb")
    way = ("--mode", "keyword", "--no-update")
    hits = ask(run, notes, "search", "wine apples", *way)["hits"]
    assert hits[0]["freshness"] == "edited"
    assert "apples" not in hits[0]["text"]
    for query in ("roses thyme", "algebra"):
        assert ask(run, notes, "search", query, *way, code=1)["hits"] == []
    (hit,) = ask(run, notes, "search", "algebra", "--mode", "keyword")["hits"]
    assert (hit["document"], hit["freshness"]) == ("y.ipynb", "fresh")


def test_what_notes_are_about(notes, run):
    """The folder is told by the titles of its documents, one of them by its headings."""
    done = ask(run, notes, "about")
    titles = {one["resource"]: one["title"] for one in done["documents"]}
    assert titles.keys() >= {"Home.md", "low/Cellar note.md"}
    assert titles["Home.md"] == "The front door"
    done = ask(run, notes, "about", "low/Cellar note.md")
    assert (done["about"], done["name"]) == ("resource", "low/Cellar note.md")
    assert [(one["depth"], one["title"]) for one in done["outline"]] == [(1, "Cellar"), (2, "Keys")]
    done = ask(run, notes, "about", "wine and apples")
    assert done["documents"][0]["resource"] == "low/Cellar note.md"


def test_a_folder_is_a_folder(notes, run):
    """Told and enriched as one, however it is typed; a question of its name is answered by it."""
    odd = notes / "what is it?"
    odd.mkdir()
    (odd / "a.md").write_text("# An answer\n\nIt is a lamp.\n", "utf-8")
    run("sync", cwd=notes)
    for typed in ("low", "low/", "./low", str(notes / "low")):
        done = ask(run, notes, "about", typed)
        assert (done["about"], done["name"], done["resources"]) == ("folder", "low/", 3)
        assert "low/Cellar note.md" in {one["resource"] for one in done["documents"]}
    assert ask(run, notes, "about", "what is it?")["name"] == "what is it?/"
    assert ask(run, notes, "about", ".")["about"] == "store"
    for number in range(21):
        (notes / "low" / f"{number}.md").write_text(f"Note {number}.\n", "utf-8")
        (odd / f"{number}.md").write_text(f"Thing {number}.\n", "utf-8")
    (notes / "Home.md").unlink()
    run("sync", cwd=notes)
    assert "low/  24 documents" in run("about", cwd=notes).stdout
    assert ask(run, notes, "about", "wine and apples")["about"] == "query"
    way = ("--questions", "1", "--plan")
    below, whole = ask(run, notes, "enrich", "low", *way), ask(run, notes, "enrich", *way)
    assert 0 < below["questions"] < whole["questions"]
    done = run("enrich", "no such folder", cwd=notes)
    assert "no document 'no such folder'" in done.stderr
