"""`obsidian` and `markdown`: what a person finds in the folder, edits there, and gets back."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from filestore.exchange.pages.folder import CHUNKS, MANIFEST

MARK = {"obsidian": "%% chunk {} %%\n\n", "markdown": "<!-- chunk {} -->\n\n"}


@pytest.fixture(params=MARK)
def form(request: Any) -> str:
    """Each form of pages."""
    return str(request.param)


@pytest.fixture
def filled(workspace: Any, manual: Any) -> Any:
    """A store with a folder of two linked documents, and a file with properties."""
    workspace.write("handbook/one.md", "# One\n\nOn lamps. See [two](deep/two.md).\n")
    workspace.write("handbook/deep/two.md", manual(["winches", "ropes"]))
    workspace.write("notes.md", "---\ntags: [cellar, a b]\nowner: Ada\n---\n# Notes\n\nOn sails.\n")
    workspace("add", "handbook", "notes.md")
    return workspace


@pytest.fixture
def exported(filled: Any, form: str) -> Path:
    """Where it was exported to."""
    target = filled.folder / "out"
    filled("export", form, target)
    return Path(target)


def taken(new_workspace: Any, form: str, source: Path, **expected: Any) -> tuple[Any, Any]:
    """A new store with what a folder holds, and the report."""
    other = new_workspace("other")
    return other, other.json("import", form, source, **expected)


def bodies(workspace: Any, resource: str) -> list[str]:
    """The texts of a resource, in order."""
    return [workspace.json("show", path)["body"] for path in workspace.chunks(resource)]


def test_a_page_a_document(filled: Any, exported: Path, form: str) -> None:
    """Where the documents lay, so that their links lead to pages; marks are comments."""
    pages = {path.relative_to(exported).as_posix() for path in exported.rglob("*.md")}
    expected = {"handbook/one.md", "handbook/deep/two.md", "notes.md"}
    assert pages == expected | ({"index.md"} if form == "markdown" else set())
    page = (exported / "handbook/one.md").read_text()
    assert page.endswith(MARK[form].format(1) + "# One\n\nOn lamps. See [two](deep/two.md).\n")
    assert (exported / "handbook/deep/two.md").is_file()


def test_the_index_leads_to_every_page(filled: Any, new_workspace: Any) -> None:
    """By relative links that are as a browser wants them."""
    filled.write("a [b] (c) é#.md", "# Odd *name*\n\nText.\n")
    filled("add", "a [b] (c) é#.md")
    filled("export", "markdown", "out")
    index = (filled.folder / "out/index.md").read_text()
    assert "[Odd name](a%20%5Bb%5D%20%28c%29%20%C3%A9%23.md)" in index
    assert "[One](handbook/one.md)" in index
    assert (filled.folder / "out/a [b] (c) é#.md").is_file()


def test_source_code_is_shown_as_code(filled: Any, form: str, new_workspace: Any) -> None:
    """In fences that the code does not have; and it comes back, also where it was edited."""
    code = "\n\n".join(f'def f{n}():\n    """Says ``` {n}."""\n    return {n}' for n in range(60))
    filled.write("tool.py", code)
    filled("add", "tool.py")
    filled("export", form, "out")
    page = filled.folder / "out/tool.py.md"
    text = page.read_text()
    assert text.count("\n````py\n") == text.count("\n````\n") == len(filled.chunks("tool.py")) > 1
    other, report = taken(new_workspace, form, filled.folder / "out")
    assert report["embedded"] == 0
    assert bodies(other, "tool.py") == bodies(filled, "tool.py")
    page.write_text(text.replace("return 7\n", "return 77\n"))
    other("import", form, filled.folder / "out", "--replace")
    assert "".join(bodies(other, "tool.py")).strip() == code.replace("return 7\n", "return 77\n")


def test_properties_of_a_note(filled: Any) -> None:
    """What a document says of itself, its title first; names that wikilinks cannot hold are not."""
    filled.write("a [b] #c.md", "# Odd\n\nText.\n")
    filled("add", "a [b] #c.md")
    filled("export", "obsidian", "vault")
    head = (filled.folder / "vault/notes.md").read_text().split("---\n")[1]
    assert head.splitlines()[0] == 'title: "Notes"'
    assert 'owner: "Ada"' in head
    assert '"cellar"' in head
    assert 'source: "../notes.md"' in head
    assert (filled.folder / "vault/a -b- -c.md").is_file()


def test_summaries_link_to_what_they_sum_up(filled: Any, form: str, new_workspace: Any) -> None:
    """On a page of their own, which is linked from the documents; and they come back."""
    children = filled.chunks("handbook")
    filled.summarize("handbook/summary1.md", "All of it", "Lamps and winches.", children)
    filled.sync(code=None)
    filled("export", form, "out")
    page = (filled.folder / "out/handbook/Summaries of handbook.md").read_text()
    one = (filled.folder / "out/handbook/one.md").read_text()
    assert "## All of it\n" in page
    if form == "obsidian":
        assert "[[handbook/one]]" in page
        assert 'up: "[[handbook/Summaries of handbook]]"' in one
    else:
        assert "[one](one.md)" in page
        assert "(Summaries%20of%20handbook.md)" in one
    other, report = taken(new_workspace, form, filled.folder / "out")
    assert (report["left_out"], report["embedded"]) == ([], 0)
    assert other.truth() == filled.truth()


def test_an_edit_comes_back(filled: Any, exported: Path, form: str, new_workspace: Any) -> None:
    """The text as it is on the page now; its vector is not taken, those of others are."""
    page = exported / "handbook/deep/two.md"
    page.write_text(page.read_text().replace("winches", "anchors"))
    before = filled.json("export", "jsonl", "all.jsonl")["vectors"]
    other, report = taken(new_workspace, form, exported)
    assert report["left_out"] == []
    changed = [
        place
        for place, pair in enumerate(
            zip(bodies(filled, "handbook"), bodies(other, "handbook"), strict=True)
        )
        if pair[0] != pair[1]
    ]
    assert changed
    assert "anchors" in bodies(other, "handbook")[changed[0]]
    assert report["vectors"] == before - len(changed)
    assert report["embedded"] == len(changed)


def test_other_line_ends_are_no_edit(
    filled: Any, exported: Path, form: str, new_workspace: Any
) -> None:
    """As git makes them on some machines: all comes back, and nothing is embedded."""
    for page in exported.rglob("*.md"):
        page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
    other, report = taken(new_workspace, form, exported)
    assert (report["left_out"], report["embedded"]) == ([], 0)
    assert other.truth() == filled.truth()


@pytest.mark.parametrize("place", ["above", "below"])
def test_a_line_outside_of_the_marks_comes_back(
    filled: Any, exported: Path, form: str, new_workspace: Any, place: str
) -> None:
    """Whatever is written at the top or the end of a page is part of a chunk."""
    page = exported / "handbook/one.md"
    text, mark = page.read_text(), MARK[form].format(1)
    changed = (
        text.replace(mark, f"A new line.\n\n{mark}") if place == "above" else f"{text}A new line.\n"
    )
    page.write_text(changed)
    other, _ = taken(new_workspace, form, exported)
    (found,) = [body for body in bodies(other, "handbook") if "A new line.\n" in body]
    assert "# One" in found


def test_a_page_without_its_marks(
    filled: Any, exported: Path, form: str, new_workspace: Any
) -> None:
    """Somebody wrote the page anew: all of it is taken, as one chunk."""
    (exported / "handbook/deep/two.md").write_text("Wholly new.\n")
    other, report = taken(new_workspace, form, exported, code=5)
    assert "Wholly new.\n" in bodies(other, "handbook")
    assert any("was removed from it" in one for one in report["left_out"])


def test_edited_properties_come_back(filled: Any, new_workspace: Any) -> None:
    """Of a note: changed, added and removed ones; what was made up for it is no property."""
    filled("export", "obsidian", "vault")
    page = filled.folder / "vault/notes.md"
    text = page.read_text().replace('owner: "Ada"', "owner: Bob\nreviewed: 2024-03-08")
    page.write_text(text.replace('title: "Notes"\n', ""))
    other, report = taken(new_workspace, "obsidian", filled.folder / "vault")
    assert report["left_out"] == []
    record = json.loads((other.chunked / "notes.md/meta.json").read_text())
    assert record["documents"][0]["metadata"] == {
        "tags": ["cellar", "a b"],
        "owner": "Bob",
        "reviewed": "2024-03-08",
    }
    page.write_text("---\n{: broken\n---\n" + text.split("---\n", 2)[2])
    report = other.json("import", "obsidian", filled.folder / "vault", "--replace", code=5)
    assert any("its properties cannot be read" in one for one in report["left_out"])


def test_a_page_that_is_gone_is_said(exported: Path, form: str, new_workspace: Any) -> None:
    """Its chunks are not taken; nor is a page that somebody added, which is said, too."""
    (exported / "handbook/one.md").unlink()
    (exported / "handbook/mine.md").write_text("Mine.\n")
    _, report = taken(new_workspace, form, exported, code=5)
    said = "\n".join(report["left_out"])
    assert "handbook/one.md: it was removed" in said
    assert "handbook/mine.md: it is no page of this export; 'filestore add'" in said


def test_again_into_the_same_folder(filled: Any, exported: Path, form: str) -> None:
    """What is the store's now; a person's own files, and those of Obsidian, stay."""
    kept = {".obsidian/app.json": "{}", "handbook/mine.md": "Mine.\n", "picture.png": "x"}
    for path, text in kept.items():
        (exported / path).parent.mkdir(exist_ok=True)
        (exported / path).write_text(text)
    filled("rm", "notes.md")
    filled.write("mine.md", "# Another\n\nText.\n")
    filled("add", "mine.md")
    filled("export", form, exported)
    assert not (exported / "notes.md").exists()
    assert {path: (exported / path).read_text() for path in kept} == kept
    assert "# Another" in (exported / "mine.md").read_text()
    before = {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()}
    filled("export", form, exported)
    assert before == {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()}


def test_a_name_that_is_taken(filled: Any, form: str) -> None:
    """In a vault that has notes of its own under `.obsidian/` only, and later others."""
    vault = filled.folder / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    filled("export", form, vault)
    (vault / "Extra.md").write_text("Mine.\n")
    filled.write("extra.md", "# Extra\n\nTheirs.\n")
    filled("add", "extra.md")
    filled("export", form, vault)
    assert (vault / "Extra.md").read_text() == "Mine.\n"
    assert "Theirs." in (vault / "extra (2).md").read_text()


def test_an_edited_page_is_not_overwritten(filled: Any, exported: Path, form: str) -> None:
    """It is named, with what takes the edit; nothing of the folder is changed."""
    page = exported / "notes.md"
    page.write_text(page.read_text() + "Mine.\n")
    filled.write("more.md", "# More\n\nText.\n")
    filled("add", "more.md")
    done = filled("export", form, exported, code=4)
    assert "notes.md was edited" in done.stderr
    assert f"filestore import {form}" in done.stderr
    assert not (exported / "more.md").exists()


def test_an_edit_that_was_taken_is_no_hindrance(filled: Any, exported: Path, form: str) -> None:
    """Out, edited, in, and out again: the way somebody works who writes in the folder."""
    page = exported / "notes.md"
    text = page.read_text().replace('owner: "Ada"', "owner: Bob")
    page.write_text(
        text.replace(MARK[form].format(1), f"Above.\n\n{MARK[form].format(1)}") + "Below."
    )
    filled("import", form, exported, "--replace")
    assert "Above.\n\n# Notes\n\nOn sails.\nBelow." in "".join(bodies(filled, "notes.md"))
    filled("export", form, exported)
    if form == "obsidian":
        assert 'owner: "Bob"' in page.read_text()
    again = filled.json("import", form, exported)
    assert {one["status"] for one in again["resources"]} == {"unchanged"}


@pytest.mark.parametrize("what", ["others", "another form", "file", "broken"])
def test_a_folder_of_others_is_refused(filled: Any, form: str, what: str) -> None:
    """Nothing is written into it."""
    target = filled.folder / "theirs"
    if what == "file":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / "a.md").write_text("mine")
    if what == "another form":
        (target / MANIFEST).write_text('{"format": "filestore-other/1", "pages": {}}')
    if what == "broken":
        (target / MANIFEST).write_text('{"format": ')
    before = sorted(filled.folder.rglob("theirs*"))
    done = filled("export", form, target, code=4)
    assert "try: " in done.stderr
    assert sorted(filled.folder.rglob("theirs*")) == before


def test_what_others_wrote_is_no_export(workspace: Any, form: str) -> None:
    """A vault is taken in by `add`, which says so; nothing is half imported."""
    workspace.write("vault/note.md", "# Note\n")
    done = workspace("import", form, "vault", code=3)
    assert "filestore add" in done.stderr
    assert workspace.truth() == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / CHUNKS).unlink(),
        lambda folder: (folder / CHUNKS).write_text(""),
        lambda folder: (folder / MANIFEST).write_text("[]"),
        lambda folder: (folder / MANIFEST).write_text('{"format": "filestore-x/1"}'),
        lambda folder: _in_manifest(folder, "pages", ["a"]),
        lambda folder: _in_manifest(folder, "pages", {"../../etc/passwd": {}}),
        lambda folder: _in_manifest(folder, "pages", {"/etc/passwd": {}}),
        lambda folder: _in_manifest(folder, "pages", {"a": 5}),
        lambda folder: _in_manifest(folder, "dimension", 2**40),
    ],
)
def test_a_damaged_export_is_refused(
    exported: Path, form: str, new_workspace: Any, change: Any
) -> None:
    """In one line, with what to do."""
    change(exported)
    other = new_workspace("other")
    done = other("import", form, exported, code=3)
    assert "try: " in done.stderr
    assert other.truth() == {}


def _in_manifest(folder: Path, key: str, value: Any) -> None:
    found = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(found | {key: value}))


def test_a_page_that_is_a_link_is_not_followed(
    exported: Path, form: str, new_workspace: Any
) -> None:
    """What lies outside of the folder is not read."""
    secret = exported.parent / "secret.md"
    secret.write_text(MARK[form].format(1) + "secret\n")
    (exported / "handbook/one.md").unlink()
    (exported / "handbook/one.md").symlink_to(secret)
    other, report = taken(new_workspace, form, exported, code=5)
    assert any(one.startswith("handbook/one.md: ") for one in report["left_out"])
    assert not any("secret" in data.decode() for data in other.truth().values())


def test_rows_of_the_wrong_kind(exported: Path, form: str, new_workspace: Any) -> None:
    """Each is named, and the others are taken."""
    rows = (exported / CHUNKS).read_text().splitlines()
    rows += ["{broken", "[]", '{"resource": 5, "page": 7}', '{"page": "nowhere.md", "number": 1}']
    rows.append('{"resource": "x", "page": "notes.md", "number": "1", "hash": []}')
    text = "\n".join(rows) + "\n"
    (exported / CHUNKS).write_text(text)
    _in_manifest(exported, "chunks_bytes", len(text.encode()))
    _, report = taken(new_workspace, form, exported, code=5)
    assert len([one for one in report["left_out"] if one.startswith(CHUNKS)]) == 4
    assert len(report["resources"]) == 2


def test_killed_at_any_moment(filled: Any, exported: Path, form: str) -> None:
    """The next export puts it right, and no page of a person is touched."""
    (exported / "own.md").write_text("Mine.\n")
    filled.write("more.md", "# More\n\nText.\n")
    filled("add", "more.md")
    program = (
        "import os, signal, sys\n"
        "from filestore.cli import main\n"
        "left = int(sys.argv[1])\n"
        "rename = os.rename\n"
        "def counted(*given, **named):\n"
        "    global left\n"
        "    left -= 1\n"
        "    if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return rename(*given, **named)\n"
        "os.rename = counted\n"
        "sys.exit(main(sys.argv[2:]))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for renames in range(30):
        words = [sys.executable, "-c", program, str(renames), "export", form, str(exported)]
        done = subprocess.run(
            words, cwd=filled.folder, env=environment, capture_output=True, check=False
        )
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        filled("export", form, exported)
        assert "Text." in (exported / "more.md").read_text()
        assert (exported / "own.md").read_text() == "Mine.\n"
    assert renames > 4
