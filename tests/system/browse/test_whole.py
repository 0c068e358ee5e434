"""A whole document in its parts: in every layout, as it is now, and never without bounds."""

from pathlib import Path

import pytest

import filestore
from filestore import FilestoreError
from filestore.browse.documents import DocumentPart
from tests.system.extract.test_pdf import Pdf

GUIDE = "".join(
    f"# Part {number}\n\n" + f"What stands in part {number}, {'and more of it, ' * 30}.\n\n"
    for number in range(1, 13)
)


def made(folder: Path, layout: str) -> filestore.Store:
    """A store of one document and a note, in a layout."""
    if layout == "in-place":
        folder.mkdir()
        (folder / "guide.md").write_text(GUIDE)
        store = filestore.create(folder, layout=layout, embedder="builtin")
        store.sync()
        return store
    original = folder.parent / "guide.md"
    original.write_text(GUIDE)
    store = filestore.create(folder, layout=layout, embedder="builtin")
    store.add(original)
    return store


@pytest.mark.parametrize("layout", ["tree", "flat", "in-place"])
def test_a_hit_leads_to_its_document(tmp_path: Path, layout: str) -> None:
    """Every part in reading order, with its lines, and the one of the hit among them."""
    with made(tmp_path / "kb", layout) as store:
        (hit,) = store.search("part 7", k=1, mode="keyword")
        found = store.document(hit.path, line=hit.line or 0)
        assert found.path == hit.document
        assert found.title == hit.title
        assert found.total == len(found.parts) >= 12
        assert hit.excerpt.strip("…") in found.parts[found.at].text
        lines = GUIDE.split("\n")
        for part in found.parts:
            assert part.freshness == "fresh"
            assert part.line is not None
            assert part.text.lstrip().startswith(lines[part.line - 1])
        assert "".join(part.text for part in found.parts).split() == GUIDE.split()
        assert store.document(found.path).parts == found.parts


@pytest.mark.parametrize("layout", ["tree", "in-place"])
def test_what_is_given_is_bounded(tmp_path: Path, layout: str) -> None:
    """Around the part that was asked for; the rest is had by its number, without a gap."""
    with made(tmp_path / "kb", layout) as store:
        whole = store.document(store.search("part 1", k=1).hits[0].document)
        (hit,) = store.search("part 9", k=1, mode="keyword")
        some = store.document(hit.path, line=hit.line or 0, most=2000)
        assert 1 <= len(some.parts) < some.total == whole.total
        assert some.first <= some.at < some.first + len(some.parts)
        assert sum(len(part.text) for part in some.parts) <= 2000
        read: list[DocumentPart] = []
        while len(read) < whole.total:
            following = store.document(hit.path, first=len(read), most=2000)
            assert following.first == len(read)
            read += following.parts
        assert tuple(read) == whole.parts
        assert len(store.document(hit.path, first=10**9, most=1).parts) == 1


def test_parts_are_as_they_are_now(tmp_path: Path) -> None:
    """One that was edited, one that is gone, one that cannot be read: each says so."""
    with made(tmp_path / "kb", "tree") as store:
        chunks = [tmp_path / "kb" / item["path"] for item in store.chunks("guide.md")]
        chunks[0].write_text(chunks[0].read_text() + "One line more.\n")
        chunks[1].unlink()
        chunks[2].write_bytes(b"---\nkind: [\n---\nbody\n")
        store.looks = False
        found = store.document(str(chunks[3].relative_to(store.root)))
        edited, gone, broken, fresh = found.parts[:4]
        assert (edited.freshness, edited.line) == ("edited", None)
        assert edited.text.endswith("One line more.\n")
        assert (gone.freshness, gone.text, bool(gone.problem)) == ("gone", "", True)
        assert (broken.text, bool(broken.problem)) == ("", True)
        assert (fresh.freshness, fresh.problem) == ("fresh", None)


@pytest.mark.parametrize("change", ["edited", "gone"])
def test_parts_whose_original_changed_are_outdated(tmp_path: Path, change: str) -> None:
    """As in hits: no text of an older original is given for what is there now."""
    with filestore.create(tmp_path / "kb", embedder="builtin") as store:
        original = tmp_path / "kb" / "guide.md"
        original.write_text(GUIDE)
        store.add(original)
        chunks = [tmp_path / "kb" / item["path"] for item in store.chunks("guide.md")]
        if change == "edited":
            original.write_text(GUIDE.replace("part 12", "part twelve"))
        else:
            original.unlink()
        chunks[0].write_text(chunks[0].read_text() + "One line more.\n")
        store.looks = False
        (hit,) = store.search("part 7", k=1, mode="keyword")
        first, *others = store.document(hit.path).parts
        assert hit.freshness == "outdated"
        assert first.freshness == "edited"
        assert {one.freshness for one in others} == {"outdated"}
        assert store.show(first.path).record["freshness"] == "edited"
        assert store.show(hit.path).record["freshness"] == "outdated"


def test_a_text_without_a_document_stands_alone(tmp_path: Path) -> None:
    """It is its own document, with what is marked in it and its title."""
    with filestore.create(tmp_path / "kb", embedder="builtin") as store:
        text = "---\ntitle: The rent\n---\nThe rent is paid in March.\n"
        store.put(["x"], into="notes", names=["other"])
        (tmp_path / "kb/chunked/notes/rent.md").write_text(text)
        store.sync()
        (hit,) = store.search("rent", k=1, mode="keyword")
        assert [hit.excerpt[start:end] for start, end in hit.to_dict()["marks"]] == ["rent"]
        found = store.document("chunked/notes/rent.md")
        assert (found.path, found.title, found.total) == ("chunked/notes/rent.md", "The rent", 1)


@pytest.mark.parametrize("layout", ["tree", "in-place"])
@pytest.mark.parametrize("path", ["", "/etc/passwd", "../../etc/passwd", "none.md", "a\0b", "/"])
def test_nothing_outside_is_a_document(tmp_path: Path, layout: str, path: str) -> None:
    """Nor is what is not there."""
    with made(tmp_path / "kb", layout) as store, pytest.raises(FilestoreError):
        store.document(path)


def test_a_map_says_what_it_leaves_out(tmp_path: Path) -> None:
    """Each point has its file, its resource and its heading."""
    with made(tmp_path / "kb", "tree") as store:
        every, some = store.vector_map(), store.vector_map(most=3)
        assert (len(every.paths), every.left_out) == (every.total, 0)
        assert (len(some.paths), some.left_out) == (3, every.total - 3)
        points = every.to_dict()["points"]
        assert {point["resource"] for point in points} == {"guide.md"}
        assert {point["title"] for point in points} >= {f"Part {number}" for number in range(1, 13)}


LINKED = (
    "# Linked\n\nSee **the** [other](notes/other.md#two), [[other]] and `code`.\n\n"
    "```\n" + "a line of code\n" * 200 + "```\n\n> - Said [here](https://example.org).\n"
)
OTHER = "---\ntags: [a]\n---\n# Other\n\nBefore.\n\n## Two\n\nAfter.\n"


@pytest.mark.parametrize("layout", ["tree", "in-place"])
def test_a_document_is_given_as_it_is_read(tmp_path: Path, layout: str) -> None:
    """In blocks that know their lines and targets, also where a listing is cut in parts."""
    folder = tmp_path / "kb"
    documents = folder if layout == "in-place" else tmp_path
    (documents / "notes").mkdir(parents=True)
    (documents / "linked.md").write_text(LINKED)
    (documents / "notes" / "other.md").write_text(OTHER)
    (documents / "rows.py").write_text("# Not a heading\nprint()\n" * 9)
    with filestore.create(folder, layout=layout, embedder="builtin") as store:
        if layout == "in-place":
            store.sync()
        else:
            store.add(*(documents / name for name in ("linked.md", "notes", "rows.py")))
        path = store.search("other", source=["linked.md"], k=1).hits[0].document
        assert not any(part.blocks for part in store.document(path).parts)
        found = store.document(path, rendered=True)
        blocks = [block for part in found.parts for block in part.blocks]
        assert {block.kind for block in blocks} == {"heading", "prose", "code"}
        if layout == "in-place":
            # As one text: the listing goes on in the next part, and is still one.
            assert found.total > 1
            assert sum(block.kind == "code" for block in blocks) == 1
        words = [run for block in blocks for line in block.lines for run in line]
        assert ("the", "strong") in [(run.text, run.style) for run in words]
        lines = LINKED.split("\n")
        # A chunk file repeats the fence that it is in.
        first = [run for block in found.parts[0].blocks for line in block.lines for run in line]
        counted = [run for run in (words if layout == "in-place" else first) if run.text.strip()]
        assert all(run.text.strip() in lines[run.line - 1] for run in counted)
        targets = [run.target for run in words if run.target]
        assert targets == ["notes/other.md#two", "[[other]]", "https://example.org"]
        holder = found.parts[0].path
        for link, line in (("notes/other.md#two", 8), ("[[other#Two]]", 8), ("[[other]]", 0)):
            led = store.document(holder, link=link, rendered=True)
            assert led.path.endswith("notes/other.md")
            assert led.line == line
        assert store.document(holder, link="[[other#None]]", rendered=True).line == 0
        for link in ("https://example.org", "none.md", "../../etc/passwd", "javascript:alert(1)"):
            with pytest.raises(FilestoreError):
                store.document(holder, link=link)
        code = store.search("print", source=["rows.py"], k=1).hits[0].document
        assert not any(part.blocks for part in store.document(code, rendered=True).parts)


def test_a_document_without_lines_begins_at_its_beginning(tmp_path: Path) -> None:
    """Unless a page of it is named."""
    folder = tmp_path / "notes"
    folder.mkdir()
    parts = (f"<h2>Part {number}</h2><p>{'Words of it. ' * 60}</p>" for number in range(9))
    (folder / "guide.html").write_text(f"<html><body>{''.join(parts)}</body></html>")
    moor = Pdf()
    for number in range(1, 5):
        moor.page(
            *((72, 760 - 12 * row, 10, f"Row {row}: {number} is told of.") for row in range(50))
        )
    (folder / "moor.pdf").write_bytes(moor.data())
    with filestore.create(folder, layout="in-place", embedder="builtin") as store:
        store.sync()
        guide = store.document("guide.html")
        assert guide.total > 1
        assert guide.at == guide.first == 0
        assert store.document("moor.pdf").at == 0
        last = store.document("moor.pdf:p4")
        assert "4 is told of" in last.parts[last.at].text
        assert last.at > 0
