"""A hit names the document to open, and the line or page on which its passage stands."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from filestore.extract import is_text
from tests.system.conftest import Workspace

EXAMPLE = Path(__file__).resolve().parents[3] / "example_index"
NOTE = (
    "---\ntitle: The harbour\n---\n# Harbour\n\nBoats lie at the quay.\n\n"
    "## Winter\n\nIn winter the boats stand ashore.\nA cover keeps the frost out.\n\n"
    "## Summer\n\nThe quay is full of visitors.\n"
)


_MARKUP = re.compile(r"<[^>]*>|&#?\w+;|\]\([^)]*\)")
_LETTERS = re.compile(r"[\W_]+")


def hits(workspace: Workspace, query: str, *words: str, **named: Any) -> list[dict[str, Any]]:
    """The hits of a search, each proved to be where it says."""
    answer = workspace.json("search", query, *words, **named)
    assert Path(answer["root"]) == workspace.store
    found: list[dict[str, Any]] = answer["hits"]
    for hit in found:
        assert_true(Path(answer["root"]), hit)
    return found


def assert_true(root: Path, hit: dict[str, Any]) -> None:
    """The words of the excerpt stand at the line of the document, between its markup."""
    document = root / hit["document"]
    assert document.is_file()
    is_page = document.suffix in (".html", ".htm")
    if hit["line"] is None:
        assert hit["pages"] or is_page or not is_text(document.name)
        return
    lines = document.read_bytes().replace(b"\r\n", b"\n").decode("utf-8-sig").split("\n")
    shown = "\n".join(lines[hit["line"] - 1 : hit["end_line"]])
    shown, excerpt = (_LETTERS.sub("", _MARKUP.sub("", one)) for one in (shown, hit["excerpt"]))
    assert excerpt in shown


def test_an_original_in_the_work_tree_is_named_with_its_line(either: Workspace) -> None:
    """Frontmatter and all: the line is that of the file as a person opens it."""
    either.write("docs/harbour.md", NOTE)
    either("add", "docs/harbour.md")
    hit = hits(either, "frost cover")[0]
    assert hit["document"] == "../docs/harbour.md"
    assert hit["title"] == "The harbour"
    assert (hit["line"], hit["end_line"]) == (11, 11)
    assert hit["excerpt"] == "A cover keeps the frost out."


def test_a_document_of_a_folder_and_a_copy(workspace: Workspace, tmp_path: Path) -> None:
    """Each chunk leads to its own document, also where that was copied into the store."""
    for folder in (workspace.folder / "inside", tmp_path / "outside"):
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "harbour.md").write_text(NOTE.replace("frost", folder.name))
    workspace("add", workspace.folder / "inside", tmp_path / "outside")
    (first,) = hits(workspace, "+inside cover")
    assert (first["document"], first["line"]) == ("../inside/deep/harbour.md", 11)
    (second,) = hits(workspace, "+outside cover")
    assert (second["document"], second["line"]) == ("source/outside/deep/harbour.md", 11)


@pytest.mark.parametrize(
    "data", [NOTE.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + NOTE.encode()]
)
def test_line_ends_and_marks_of_other_systems(workspace: Workspace, data: bytes) -> None:
    """They change no line."""
    workspace.write("harbour.md", data)
    workspace("add", "harbour.md")
    assert hits(workspace, "frost cover")[0]["line"] == 11


def test_the_line_is_that_of_the_original_as_it_is_now(workspace: Workspace) -> None:
    """After an edit above the passage it moved; where the passage was edited, the chunk has it."""
    note = workspace.write("harbour.md", NOTE)
    workspace("add", "harbour.md")
    note.write_text(NOTE.replace("# Harbour\n", "# Harbour\n\nA new line.\n"))
    (hit,) = hits(workspace, "frost cover", "-k", "1")
    assert (hit["document"], hit["line"]) == ("../harbour.md", 13)
    note.write_text(NOTE.replace("A cover keeps the frost out.", "A tent does."))
    (hit,) = hits(workspace, "frost cover", "-k", "1")
    assert hit["document"] == hit["path"]
    note.unlink()
    (hit,) = hits(workspace, "frost cover", "-k", "1")
    assert hit["document"] == hit["path"]


def test_a_chunk_that_was_edited_is_named_itself(workspace: Workspace) -> None:
    """Its original does not say what it says."""
    workspace.write("harbour.md", NOTE)
    workspace("add", "harbour.md")
    (chunk,) = [one for one in workspace.chunked.rglob("chunk*.md") if "frost" in one.read_text()]
    chunk.write_text(chunk.read_text().replace("keeps the frost out", "keeps the frost away"))
    (hit,) = hits(workspace, "frost cover", "-k", "1", "--no-update")
    assert hit["freshness"] == "edited"
    assert hit["document"] == hit["path"]
    workspace.sync()
    (hit,) = hits(workspace, "frost cover", "-k", "1")
    assert hit["document"] == hit["path"]
    # What stands beside the edit is still the original's.
    (hit,) = hits(workspace, "boats ashore", "-k", "1")
    assert hit["document"] in ("../harbour.md", hit["path"])


def test_a_file_written_by_hand_is_its_own_document(workspace: Workspace) -> None:
    """With the line below its frontmatter, and its own title."""
    path = workspace.chunked / "note.md"
    path.write_text("---\ntitle: A thought\n---\nFirst.\n\nThe anchor drags.\n")
    workspace.sync()
    (hit,) = hits(workspace, "anchor")
    assert (hit["document"], hit["line"], hit["title"]) == ("chunked/note.md", 6, "A thought")


def test_what_stands_twice_is_told_apart(workspace: Workspace) -> None:
    """Two sections with the same words: each hit names its own line."""
    same = "The same sentence about ballast stands here.\n"
    filler = "".join(f"Line {n} about something else, and at some length.\n" for n in range(60))
    text = f"# Two\n\n## One\n\n{same}\n{filler}\n## Other\n\n{same}\n{filler}"
    workspace.write("two.md", text)
    workspace("add", "two.md")
    found = hits(workspace, '"sentence about ballast"')
    expected = {n for n, line in enumerate(text.split("\n"), 1) if "ballast" in line}
    assert {hit["line"] for hit in found if "ballast" in hit["excerpt"]} == expected


def test_other_formats(workspace: Workspace) -> None:
    """Code and text lead to their line; a page of the web does where its words stand in one."""
    workspace.write("code.py", "import os\n\n\ndef reef():\n    return 'the mainsail'\n")
    workspace.write("plain.txt", "one\ntwo bollards\n")
    page = "<h1>Knots</h1>\n<p>A bowline <b>never</b> slips on <a href='x'>any\nrope</a>.</p>\n"
    workspace.write("page.html", page)
    twice = "<p>The capstan<br>turns.</p>\n"
    workspace.write("twice.html", f"<h1>Twice</h1>\n{twice}{twice}")
    workspace("add", "code.py", "plain.txt", "page.html", "twice.html")
    assert [(hit["document"], hit["line"]) for hit in hits(workspace, "bollards", "-k", "1")] == [
        ("../plain.txt", 2)
    ]
    assert hits(workspace, "mainsail", "-k", "1")[0]["document"] == "../code.py"
    (knots,) = hits(workspace, "bowline", "-k", "1")
    assert (knots["document"], knots["line"], knots["end_line"]) == ("../page.html", 2, 3)
    (capstan,) = hits(workspace, "capstan", "-k", "1")
    assert (capstan["document"], capstan["line"]) == ("../twice.html", None)
    workspace.write("twice.html", "<p>Another page.</p>\n")
    (capstan,) = hits(workspace, "capstan", "-k", "1")
    assert capstan["document"] == capstan["path"]


@pytest.fixture
def example(new_workspace: Any) -> Workspace:
    """The example store, freshly indexed."""
    made: Workspace = new_workspace("example", init=False)
    shutil.copytree(EXAMPLE, made.store)
    made("sync", "--store", made.store)
    return made


def test_a_page_is_named_as_long_as_it_is_that_of_the_chunk(example: Workspace) -> None:
    """Of a PDF that is another file by now, nobody knows the pages."""
    (hit,) = hits(example, "wet books", "-k", "1")
    assert (hit["document"], hit["page"], hit["line"]) == ("source/paper-archive.pdf", 2, None)
    (spanning,) = hits(example, "destruction", "--source", "*.pdf", "-k", "1")
    assert (spanning["pages"], spanning["page"]) == ([2, 3], None)
    with (example.store / "source" / "paper-archive.pdf").open("ab") as file:
        file.write(b"\n%changed\n")
    (hit,) = hits(example, "wet books", "-k", "1")
    assert (hit["document"], hit["page"]) == (hit["path"], None)


def test_every_place_in_the_example_is_true(example: Workspace) -> None:
    """Over many questions; most hits name an original."""
    total = named = 0
    for query in (
        "letter",
        "paper",
        "index",
        "rename files",
        "the wiki",
        "git",
        "frost sensors",
        "why",
    ):
        for hit in hits(example, query, "-k", "20"):
            total += 1
            named += hit["document"].startswith("source/")
    assert total > 60
    assert named > total * 0.8


def test_nothing_outside_the_work_tree_is_opened(workspace: Workspace, tmp_path: Path) -> None:
    """A record from a stranger may name what it likes; only trust lets the store look there."""
    secret = tmp_path / "secret.md"
    secret.write_text(NOTE)
    workspace.write("harbour.md", NOTE)
    workspace("add", "harbour.md")
    record = workspace.chunked / "harbour.md" / "meta.json"
    record.write_text(record.read_text().replace("../harbour.md", "../../secret.md"))
    workspace.sync(code=None)
    (hit,) = hits(workspace, "frost cover", "-k", "1")
    assert (hit["source"], hit["document"]) == ("../../secret.md", hit["path"])
    workspace("trust", "--yes", code=None)
    (hit,) = hits(workspace, "frost cover", "-k", "1")
    assert hit["document"] == "../../secret.md"


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "large"])
def test_what_stands_in_place_of_an_original(
    workspace: Workspace, tmp_path: Path, kind: str
) -> None:
    """A link that leads out, a pipe, a folder, a huge file: none is read, nothing hangs."""
    note = workspace.write("harbour.md", NOTE)
    workspace("add", "harbour.md")
    note.unlink()
    if kind == "link":
        (tmp_path / "secret.md").write_text(NOTE)
        note.symlink_to(tmp_path / "secret.md")
    elif kind == "pipe":
        os.mkfifo(note)
    elif kind == "folder":
        note.mkdir()
    else:
        with note.open("wb") as file:
            file.write(NOTE.encode())
            file.truncate(300 * 1024 * 1024)
    (hit,) = hits(workspace, "frost cover", "-k", "1")
    assert hit["document"] == hit["path"]


def test_a_link_inside_the_work_tree_is_followed(workspace: Workspace) -> None:
    """It is the document that the person knows."""
    note = workspace.write("harbour.md", NOTE)
    workspace("add", "harbour.md")
    note.rename(workspace.folder / "moved.md")
    note.symlink_to("moved.md")
    (hit,) = hits(workspace, "frost cover", "-k", "1")
    assert (hit["document"], hit["line"]) == ("../harbour.md", 11)


def test_a_file_that_is_gone_has_no_line(workspace: Workspace) -> None:
    """With all of them away its text is shown as it was indexed, in no line."""
    workspace.write("harbour.md", NOTE)
    workspace("add", "harbour.md")
    shutil.rmtree(workspace.chunked / "harbour.md")
    answer = workspace.json("search", "frost cover", code=1)
    assert {(hit["line"], hit["excerpt"], hit["freshness"]) for hit in answer["hits"]} == {
        (None, "A cover keeps the frost out.", "gone")
    }


def test_without_words_in_common_the_nearest_sentence_is_shown(workspace: Workspace) -> None:
    """The sentence with the word that was meant, where none is found as it was typed."""
    filler = "".join(f"Nothing of interest is in line {n} here.\n" for n in range(8))
    workspace.write("a.md", f"# A\n\n{filler}\nThe thermometer hangs outside.\n")
    workspace.write("b.md", "# B\n\nQuite another matter, with other words.\n")
    workspace("add", "a.md", "b.md")
    answer = workspace.json("search", "thermometr", "--mode", "vector", "-k", "1", code=1)
    (hit,) = answer["hits"]
    assert hit["excerpt"] == "The thermometer hangs outside."


@pytest.mark.parametrize(
    ("name", "text", "query", "line"),
    [
        ("page.html", "<html>\n<body>\n<h1>P</h1>\n<p>wheel</p>\n<p>body</p>\n", "body", 5),
        ("head.md", "---\nsummary: kangaroo jumps\n---\n\nkangaroo jumps\n", "kangaroo", 5),
        ("cr.md", "# M\n\n10%\r20%\rdone\n\nmixedcr\n", "mixedcr", 5),
    ],
)
def test_the_line_is_one_of_the_text(
    workspace: Any, name: str, text: str, query: str, line: int
) -> None:
    """Tags, frontmatter and signs within a line are passed over; else no line is named."""
    workspace.write(name, text)
    workspace("add", name)
    (hit,) = workspace.json("search", query, "--mode", "keyword")["hits"]
    assert not hit["document"].endswith(name) or hit["line"] == line


def test_a_part_of_a_word_is_no_place(workspace: Any) -> None:
    """An edited document is searched for the words, not for their letters."""
    workspace.write("n.txt", "legends of old\n\nships\n\nend\n\nmore text\n")
    workspace("add", "n.txt")
    workspace.write("n.txt", "legends of old\n\nships\n\nend\n\nother text\n")
    (hit,) = workspace.json("search", "end", "--mode", "keyword")["hits"]
    assert not hit["document"].endswith("n.txt") or hit["line"] == 5


def test_bytes_that_are_no_text_find_nothing(workspace: Any) -> None:
    """Whatever a terminal sends is a question."""
    workspace.write("n.md", "# Subword\n\nsubword here\n")
    workspace("add", "n.md")
    bad = "tags=\udcff"
    workspace("search", "subword\udcff", code=None)
    assert workspace("search", "subword", "--where", bad, code=1)
    assert workspace("search", "subword", "--kind", "\udcff", code=1)
