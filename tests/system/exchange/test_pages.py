"""`export markdown`: what a person finds in the folder, and what of it is never overwritten."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import filestore
from filestore.chunks.frontmatter import parse
from filestore.core.errors import UsageError
from filestore.exchange.markdown import MANIFEST
from tests.advice import all_words


@pytest.fixture
def filled(workspace: Any, manual: Any) -> Any:
    """A store with a folder of two linked documents, and a file with properties."""
    workspace.write("handbook/one.md", "# One\n\nOn lamps. See [two](deep/two.md).\n")
    workspace.write("handbook/deep/two.md", manual(["winches", "ropes"]))
    workspace.write("notes.md", "---\ntags: [cellar, a b]\nowner: Ada\n---\n# Notes\n\nOn sails.\n")
    workspace("add", "handbook", "notes.md")
    return workspace


@pytest.fixture
def exported(filled: Any) -> Path:
    """Where it was exported to."""
    filled("export", "markdown", "out")
    return Path(filled.folder / "out")


def bodies(folder: Path) -> dict[str, str]:
    """The text of each page below its frontmatter."""
    return {
        path.relative_to(folder).as_posix(): parse(path.read_bytes())[1].decode()
        for path in folder.rglob("*.md")
    }


def test_a_page_is_its_document(filled: Any, exported: Path) -> None:
    """Whole, where the document lay, so that links between documents lead to pages."""
    found = bodies(exported)
    for path in ("handbook/one.md", "handbook/deep/two.md"):
        assert found[path] == (filled.folder / path).read_text()
    assert found["notes.md"] == "# Notes\n\nOn sails.\n"
    said, _ = parse((exported / "notes.md").read_bytes())
    assert said == {
        "title": "Notes",
        "tags": ["cellar", "a b"],
        "owner": "Ada",
        "source": "../notes.md",
    }


def test_documents_in_place(new_workspace: Callable[..., Any]) -> None:
    """Are pages as they are, with what they say of themselves."""
    made = new_workspace(init=False)
    text = "# Oil\n\nLamps need oil.\n\n## More\n\nAnd wicks.\n"
    made.write("kb/sub/oil.md", f"---\ntags: [lamp]\n---\n{text}")
    made("init", "--in-place", "kb")
    made("sync", cwd=made.folder / "kb")
    made("export", "markdown", made.folder / "out", cwd=made.folder / "kb")
    assert bodies(made.folder / "out")["sub/oil.md"] == text
    assert parse((made.folder / "out/sub/oil.md").read_bytes())[0]["tags"] == ["lamp"]


def test_every_link_of_the_index_and_of_summaries_leads_to_a_page(filled: Any) -> None:
    """Also to pages whose names a link cannot hold; each page is linked once."""
    filled.write("a [b] (c) é#.md", "# Odd *name*\n\nText.\n")
    filled("add", "a [b] (c) é#.md")
    children = filled.chunks("handbook")
    filled.summarize("handbook/summary1.md", "All of it", "Lamps and winches.", children)
    filled.sync(code=None)
    filled("export", "markdown", "out")
    found = bodies(filled.folder / "out")
    goals = [unquote(goal) for goal in re.findall(r"\]\((.*?)\)\n", found["index.md"])]
    assert sorted(goals) == sorted(found.keys() - {"index.md"})
    summaries = found["handbook/Summaries of handbook.md"]
    assert "## All of it\n\nLamps and winches.\n" in summaries
    assert "[one](one.md)" in summaries
    assert "[two](deep/two.md)" in summaries
    assert found["handbook/deep/two.md"].startswith("[Summaries](../Summaries%20of%20handbook.md)")


def test_source_code_is_shown_as_code(filled: Any) -> None:
    """In one fence that the code does not have."""
    code = "\n\n".join(f'def f{n}():\n    """Says ``` {n}."""\n    return {n}' for n in range(60))
    filled.write("tool.py", code)
    filled("add", "tool.py")
    assert len(filled.chunks("tool.py")) > 1
    filled("export", "markdown", "out")
    assert bodies(filled.folder / "out")["tool.py.md"] == f"````py\n{code}\n````\n"


def test_overlaps_are_not_repeated(workspace: Any) -> None:
    """Chunks that share text are put together as they were cut; what is none is left."""
    text = "# Long\n\n" + " ".join(f"Sentence number {n} on ropes." for n in range(90)) + "\n"
    rows = []
    for start in range(0, len(text), 400):
        shared = min(start, 60)
        metadata = {"source": "long.md"} | ({"overlap": shared} if shared else {})
        cut = text[start - shared : start + 400]
        rows.append({"resource": "long", "text": cut, "metadata": metadata})
    workspace.write("long.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    workspace("import", "jsonl", "long.jsonl")
    workspace("export", "markdown", "out")
    assert bodies(workspace.folder / "out")["long.md"] == text


def test_vectors_are_no_part_of_it(filled: Any) -> None:
    """A store without any is exported, and nothing is said to be missing."""
    filled.sidecar.joinpath("embeddings.sqlite").unlink()
    found = filled.json("export", "markdown", "out")
    assert (found["left_out"], found["vectors"], found["model"]) == ([], 0, "")


def test_again_into_the_same_folder(filled: Any, exported: Path) -> None:
    """What is the store's now, and nothing else; the same store gives the same bytes."""
    filled("rm", "notes.md")
    filled.write("mine.md", "# Another\n\nText.\n")
    filled("add", "mine.md")
    filled("export", "markdown", exported)
    assert bodies(exported).keys() == {
        *("handbook/one.md", "handbook/deep/two.md", "mine.md", "index.md"),
    }
    before = {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()}
    filled("export", "markdown", exported)
    assert before == {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()}


def test_what_a_person_has_there_stays(filled: Any, exported: Path) -> None:
    """An edit, a file of their own, a link, another folder: named, and nothing is changed."""

    def edit() -> None:
        (exported / "notes.md").write_text((exported / "notes.md").read_text() + "Mine.\n")

    def link() -> None:
        (exported / "notes.md").unlink()
        (exported / "notes.md").symlink_to(filled.folder / "notes.md")

    def become_a_file() -> None:
        filled("export", "jsonl", filled.folder / "all.jsonl")
        (filled.folder / "all.jsonl").rename(exported)

    ways: dict[str, Callable[[], object]] = {
        "notes.md was edited": edit,
        "wrote own.md in it": lambda: (exported / "own.md").write_text("Mine."),
        "wrote .hidden/a in it": lambda: filled.write("out/.hidden/a", "Mine."),
        "wrote folder in it": lambda: (exported / "folder").symlink_to(filled.folder),
        "notes.md was edited since": link,
        "not an export of this version": lambda: (exported / MANIFEST).write_text('{"pages": {}}'),
        "is not an export of this version": lambda: (exported / MANIFEST).write_text("{"),
        "it is not a folder": become_a_file,
    }
    for said, change in ways.items():
        subprocess.run(["rm", "-rf", str(exported)], check=True)
        if change is not become_a_file:
            filled("export", "markdown", exported)
        change()
        before = {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()}
        done = filled("export", "markdown", exported, code=4)
        assert said in done.stderr
        assert before == {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()}
        assert not list(filled.folder.glob(".filestore-tmp*"))


def test_it_is_not_read(filled: Any, exported: Path) -> None:
    """The command and the library name what to use; a thing that is called so is none of it."""
    for words in (("import", "markdown"), ("import", "obsidian"), ("export", "obsidian")):
        assert "was removed" in filled(*words, exported, code=2).stderr
    with filestore.open(filled.store) as store, pytest.raises(UsageError) as caught:
        store.import_from("markdown", exported)
    assert "filestore init --in-place" in all_words(caught.value)
    filled.write("obsidian", "# Stone\n\nVolcanic glass.\n")
    filled("add", "obsidian")
    assert filled.json("export", "jsonl", "all.jsonl", "obsidian")["resources"] == 1


def test_killed_at_any_moment(filled: Any, exported: Path) -> None:
    """There is the old export or the new one, whole; the next one leaves nothing behind."""
    filled.write("more.md", "# More\n\nText.\n")
    filled("add", "more.md")
    old = bodies(exported)
    program = (
        "import os, signal, sys\n"
        "from filestore.cli import main\n"
        "left = int(sys.argv[1])\n"
        "sync = os.fsync\n"
        "def counted(*given, **named):\n"
        "    global left\n"
        "    left -= 1\n"
        "    if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return sync(*given, **named)\n"
        "os.fsync = counted\n"
        "sys.exit(main(sys.argv[2:]))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for syncs in range(0, 40, 3):
        words = [sys.executable, "-c", program, str(syncs), "export", "markdown", str(exported)]
        done = subprocess.run(
            words, cwd=filled.folder, env=environment, capture_output=True, check=False
        )
        found = bodies(exported)
        assert found == old or "more.md" in found
        pages = json.loads((exported / MANIFEST).read_text())["pages"]
        assert pages.keys() == found.keys()
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert syncs > 3
    filled("export", "markdown", exported)
    assert "more.md" in bodies(exported)
    assert not list(filled.folder.glob(".filestore-tmp*"))
