"""A store page by page, and everything known of one file, on a real disk in both layouts."""

import math
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from filestore.browse import DocumentFiles, InspectedStore, NameFilter, UnknownPathError
from filestore.chunks.chunk_file import generate, update
from filestore.chunks.observation import MAX_CHUNK_BYTES

Manual = Callable[[Iterable[str]], str]


@pytest.fixture
def filled(either: Any, manual: Manual) -> Any:
    """A store of three resources: a manual of six chunks, a note, and a folder of two files."""
    either.write("manual.md", manual(["valves", "pumps", "filters", "hoses", "seals", "gauges"]))
    either.write("note.md", "# Note\n\nWords of the note.\n")
    either.write("docs/one.md", "# One\n\nWords of one.\n")
    either.write("docs/two.md", "# Two\n\nWords of two.\n")
    either("add", "manual.md", "note.md", "docs")
    return either


@pytest.fixture
def store(filled: Any, tmp_path: Path) -> Iterator[InspectedStore]:
    """The store, opened."""
    with InspectedStore(
        os.fspath(filled.store), configuration=os.fspath(tmp_path / "user")
    ) as opened:
        yield opened


def paths_of(store: InspectedStore, resource: str) -> list[str]:
    """The paths of a resource's chunks, as its pages have them."""
    ids = store.listing.chunk_ids(resource)
    rows = store.listing.chunks(ids)
    return [rows[one].path for one in ids]


def matched(store: InspectedStore, text: str) -> dict[str, list[str]]:
    """The paths that a filter leaves."""
    found = store.listing.matching(NameFilter.parse(text))
    rows = {name: store.listing.chunks(ids) for name, ids in found.items()}
    return {name: [rows[name][one].path for one in ids] for name, ids in found.items()}


def test_pages_hold_what_ls_lists(filled: Any, store: InspectedStore) -> None:
    """Resources and their chunks are those of the command line, in its order."""
    listed = filled.json("ls")["items"]
    rows = store.listing.resources()
    assert [(row.resource, row.source, row.children) for row in rows] == [
        (item["resource"], item["source"], item["chunks"]) for item in listed
    ]
    for item in listed:
        chunks = filled.json("ls", item["resource"])["items"]
        assert paths_of(store, item["resource"]) == [chunk["path"] for chunk in chunks]
    assert store.listing.counts().chunks == sum(item["chunks"] for item in listed)
    assert store.listing.counts().files == sum(item["chunks"] for item in listed) + 3


def test_resources_come_a_page_at_a_time(store: InspectedStore) -> None:
    """Pages of one, each behind the last, are the whole list; none comes after the last."""
    listing, after, found = store.listing, None, []
    while page := listing.resources(after=after, limit=1):
        found += page
        after = page[-1].resource
    assert found == listing.resources()
    assert len(found) == 3


def test_an_inserted_chunk_stands_where_it_is_read(filled: Any, store: InspectedStore) -> None:
    """A chunk with an order key comes between its neighbours, before and after a filter."""
    before = paths_of(store, "manual.md")
    first = filled.store / before[0]
    if store.settings.layout == "tree":
        key = "a1i"
    else:
        key = f"{store.show(before[0]).frontmatter['order']}i"
    data = update(generate(body="Inserted words.\n"), order=key, source="../manual.md")
    (first.parent / "chunk1-zzzz.md").write_bytes(data)
    filled.sync()
    inserted = f"{os.path.dirname(before[0])}/chunk1-zzzz.md"
    expected = [before[0], inserted, *before[1:]]
    assert paths_of(store, "manual.md") == expected
    assert matched(store, "")["manual.md"] == expected
    assert paths_of(store, "manual.md") == expected
    walk = store.listing.walk
    assert [walk(inserted, None, by) for by in (-1, 1)] == [(before[0], 0), (before[1], 0)]
    assert [walk(before[0], None, by) for by in (-1, 1)] == [(before[0], 0), (inserted, 0)]
    assert [walk(before[-1], None, by) for by in (-2, 9)] == [(before[-3], 0), (before[-1], 0)]
    assert walk("chunked/none.md", None, 1) == ("chunked/none.md", 0)


def test_an_order_key_counts_more_than_a_number(filled: Any, store: InspectedStore) -> None:
    """A chunk of a plain name that was given an order key stands where the key says."""
    *before, last = paths_of(store, "manual.md")
    (filled.store / last).write_bytes(update((filled.store / last).read_bytes(), order="a0i"))
    filled.sync()
    assert paths_of(store, "manual.md") == [last, *before]
    assert matched(store, "~md$")["manual.md"] == [last, *before]


def test_a_filter_sees_what_was_synced_meanwhile(filled: Any, store: InspectedStore) -> None:
    """Files that another process indexed fit from then on, in the listing at hand."""
    listing, generation = store.listing, store.listing.generation
    assert matched(store, "fresh") == {}
    folder = (filled.store / paths_of(store, "note.md")[0]).parent
    data = generate(body="Fresh words.\n", source="../note.md")
    (folder / "fresh.md").write_bytes(data)
    filled.sync()
    assert list(matched(store, "FRESH")) == ["note.md"]
    assert listing.generation == generation + 1
    every = sum(map(len, matched(store, "").values()))
    assert every == listing.counts().chunks
    assert sum(map(len, matched(store, "!fresh").values())) == every - 1


def test_a_withheld_chunk_stays_in_the_list(filled: Any, store: InspectedStore) -> None:
    """A file that cannot be used is listed with the code that says why."""
    (path,) = paths_of(store, "note.md")
    (filled.store / path).write_text("---\nsource: [\n---\nWords.\n")
    filled.sync(code=1)
    listing = store.listing
    place = listing.place_of(path)
    assert place is not None
    row = listing.chunks([place[1]])[place[1]]
    assert (row.path, row.excluded) == (path, "malformed-frontmatter")
    assert place[0] == "note.md"
    (note,) = [one for one in listing.resources() if one.resource == "note.md"]
    assert note.children == 1
    assert paths_of(store, "note.md") == [path]


def test_a_vector_leads_to_its_file(store: InspectedStore) -> None:
    """The id of a vector leads back to the file; an unknown one to nothing."""
    path = paths_of(store, "manual.md")[2]
    (vector,) = store.about_file(path).vectors
    assert store.listing.path_of_vector(vector.id) == path
    assert store.listing.path_of_vector(1) is None
    assert store.listing.place_of("chunked/none.md") is None
    assert store.listing.place_of("filestore.toml") is None
    assert list(store.listing.chunk_ids("none")) == []
    assert store.listing.chunks([10**9]) == {}


def test_about_a_chunk_tells_everything(filled: Any, store: InspectedStore) -> None:
    """What `show` has, and beyond it the raw file, its vectors, questions and hashes."""
    path = paths_of(store, "manual.md")[1]
    file = filled.store / path
    file.write_bytes(update(file.read_bytes(), questions=["Why?", "How?"]))
    filled.sync()
    about, shown = store.about_file(path), store.show(path)
    assert (about.path, about.body) == (path, shown.body)
    aged = ("created", "updated", "status", "notes", "not_checked")
    assert dict(about.record) == {k: v for k, v in shown.record.items() if k not in aged}
    assert dict(about.frontmatter) == shown.frontmatter
    assert about.raw.encode() == file.read_bytes()
    assert (about.source, about.kind, about.problem) == ("../manual.md", "chunk", "")
    assert (about.freshness, about.hand_edited, about.withheld) == ("fresh", False, "")
    assert about.questions == ("Why?", "How?")
    assert about.headings[-1].startswith("About ")
    assert [fact.part for fact in about.vectors] == [0, 1, 2]
    assert all(fact.embedded and fact.norm is not None for fact in about.vectors)
    assert all(math.isclose(fact.norm or 0, 1, abs_tol=1e-3) for fact in about.vectors)
    assert about.file_hash == about.indexed_hash == shown.record["file_hash"]
    assert about.vectors[0].when == "generation 2"
    assert all(abs(time.time() - minute_of(fact.when)) < 3600 for fact in about.vectors[1:])
    assert about.model
    assert re.fullmatch("[0-9a-f]{16}", about.origin)
    assert about.generation == 2


def minute_of(when: str) -> float:
    """The minute that a vector fact names, in seconds."""
    return time.mktime(time.strptime(when, "%Y-%m-%d %H:%M"))


def test_when_a_text_was_embedded_is_not_made_up(filled: Any, store: InspectedStore) -> None:
    """It stays while other files change, and is not known where the catalog was made again."""
    path = paths_of(store, "manual.md")[0]
    set_time(filled, 86_400 * 365)
    before = store.about_file(path).vectors
    assert before[0].when.startswith("1971-01-0") or before[0].when.startswith("1970-12-31")
    note = filled.store / paths_of(store, "note.md")[0]
    note.write_bytes(note.read_bytes() + b"More.\n")
    filled.sync()
    filled.sync("--full")
    assert store.about_file(path).vectors == before
    store.close()
    (filled.sidecar / "catalog.sqlite").unlink()
    filled.sync()
    again = store.about_file(path).vectors
    assert [(fact.id, fact.embedded, fact.when) for fact in again] == [
        (before[0].id, True, "generation 1")
    ]
    filled.assert_settled()


def set_time(workspace: Any, seconds: int) -> None:
    """Have all texts embedded at one time."""
    connection = sqlite3.connect(workspace.sidecar / "catalog.sqlite")
    with connection:
        connection.execute("UPDATE vectors SET embedded = ?", (seconds,))
    connection.close()


def test_about_follows_an_edit(filled: Any, store: InspectedStore) -> None:
    """Edited, it is another file than was indexed, by hand; never indexed, it says so."""
    path = paths_of(store, "note.md")[0]
    file = filled.store / path
    file.write_bytes(file.read_bytes() + b"More.\n")
    about = store.about_file(path)
    assert (about.freshness, about.hand_edited) == ("edited", True)
    assert about.file_hash != about.indexed_hash != ""
    new = file.parent / "new.md"
    new.write_text("New words.\n")
    about = store.about_file(os.fspath(new))
    assert (about.freshness, about.indexed_hash, about.vectors) == ("not indexed", "", ())
    assert (about.body, about.generation, dict(about.frontmatter)) == ("New words.\n", 0, {})


def make_symlink(path: Path) -> None:
    """A link that leads out of the store."""
    path.symlink_to("/etc/passwd")


def make_oversized(path: Path) -> None:
    """A file larger than a chunk may be, without its bytes on the disk."""
    with path.open("wb") as file:
        file.write(b"Head of a large file.\n")
        file.truncate(MAX_CHUNK_BYTES + 1)


BROKEN: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "malformed": (lambda path: path.write_text("---\na: [\n---\nBody\n"), "line", "a: ["),
    "metadata": (lambda path: path.write_text("---\npages: x\n---\nBody\n"), "pages", "pages: x"),
    "encoding": (lambda path: path.write_bytes(b"Caf\xe9\n"), "UTF-8", "Caf\ufffd\n"),
    "no text": (lambda path: path.write_bytes(b""), "0 bytes", ""),
    "conflict": (
        lambda path: path.write_text("<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n"),
        "merge conflict",
        "=======",
    ),
    "link": (make_symlink, "symbolic link", ""),
    "pipe": (os.mkfifo, "named pipe", ""),
    "large": (make_oversized, "bytes", "Head of a large file."),
}


def test_about_a_broken_file_says_what_is_wrong(filled: Any, store: InspectedStore) -> None:
    """No file is too broken to be looked at: why it cannot be used is told with what it holds."""
    path = paths_of(store, "note.md")[0]
    for name, (make, problem, held) in BROKEN.items():
        (filled.store / path).unlink()
        make(filled.store / path)
        about = store.about_file(path)
        assert problem in about.problem, name
        assert held in about.raw, name
        assert about.raw_cut == (name == "large")
        assert len(about.raw) <= 1024 * 1024
        assert "root:" not in about.raw
        assert about.body == about.raw
        assert len(about.vectors) == 1
        assert about.indexed_hash


def test_about_an_absent_file_is_an_error(filled: Any, store: InspectedStore) -> None:
    """What is not there, or lies elsewhere, is no file of the store."""
    for path in ("chunked/none.md", "filestore.toml", "../note.md", "chunked/../filestore.toml"):
        with pytest.raises(UnknownPathError):
            store.about_file(path)


def test_about_a_record_shows_it(filled: Any, store: InspectedStore) -> None:
    """A record is shown as it stands, and is nothing broken."""
    path = store.about_resource("note.md").record_path
    about = store.about_file(path)
    assert (about.kind, about.problem, about.freshness) == ("record", "", "fresh")
    assert about.raw.encode() == (filled.store / path).read_bytes()


def test_about_a_resource_tells_where_it_comes_from(store: InspectedStore) -> None:
    """Its source, its documents and what read and cut them, by any name that fits."""
    about = store.about_resource("docs")
    assert about.source == "../docs"
    assert [source for source, _ in about.documents] == ["../docs/one.md", "../docs/two.md"]
    assert about.chunks == len(paths_of(store, "docs")) == 2
    assert about.extractor.startswith("markdown/")
    assert about.chunker
    assert store.about_resource("../docs") == about


def test_reading_pages_loads_nothing_heavy(filled: Any, tmp_path: Path) -> None:
    """A process that lists, filters and shows loads neither numpy nor an index."""
    import subprocess
    import sys

    program = (
        "import sys; from filestore.browse import InspectedStore, NameFilter\n"
        "with InspectedStore(sys.argv[1], configuration=sys.argv[2]) as store:\n"
        "    found = store.listing.matching(NameFilter.parse('md'))\n"
        "    ids = [one for some in found.values() for one in some]\n"
        "    paths = [row.path for row in store.listing.chunks(ids).values()]\n"
        "    assert [store.about_file(path).vectors[0].norm for path in paths]\n"
        "    assert store.check(paths) == []\n"
        "print([name for name in ('numpy', 'faiss', 'tantivy') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", program, str(filled.store), str(tmp_path / "user")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_row_says_what_its_file_is(tmp_path):
    """Title or first words, headings and size come with a page of rows; no file is read for it."""
    root = str(tmp_path / "file_index")
    with InspectedStore.create(
        root, layout="tree", embedder="builtin", configuration=root
    ) as store:
        (tmp_path / "guide.md").write_text(
            f"# Guide\n\n{'Words. ' * 300}\n\n## Renames\n\n{'A renamed file. ' * 200}\n"
        )
        store.add(tmp_path / "guide.md")
        own = tmp_path / "file_index" / "chunked" / "own"
        own.mkdir()
        (own / "chunk1.md").write_text("---\ntitle: A title\n---\nSome words.\n")
        (own / "chunk2.md").write_text("Some *other* words.\n")
        store.sync()
        sizes = {f"chunked/own/chunk{n}.md": (own / f"chunk{n}.md").stat().st_size for n in (1, 2)}
        for path in tmp_path.rglob("chunk*.md"):
            path.write_text("Changed since.\n")
        listing = store.listing
        rows = listing.chunks(listing.chunk_ids("own")).values()
        assert {row.path: row.size_bytes for row in rows} == sizes
        assert [row.title for row in rows] == ["A title", "Some *other* words."]
        generated = list(listing.chunks(listing.chunk_ids("guide.md")).values())
        assert generated[0].title == "Guide"
        assert ("Guide", "Renames") in [row.headings for row in generated]
        titles = {row.resource: row.title for row in listing.resources()}
        assert titles == {"guide.md": "Guide", "own": ""}
        assert listing.resources(limit=5) == listing.resources()


def test_the_filter_finds_titles_and_headings(tmp_path):
    """Also those of documents and of files written by hand; pages and brackets are no words."""
    root = str(tmp_path / "file_index")
    with InspectedStore.create(
        root, layout="tree", embedder="builtin", configuration=root
    ) as store:
        (tmp_path / "guide.md").write_text(
            f'# The Handbook\n\n{"Words. " * 300}\n\n## Élan "quoted" 7\n\n{"Reeds. " * 300}\n'
        )
        store.add(tmp_path / "guide.md")
        own = tmp_path / "file_index" / "chunked" / "own"
        own.mkdir()
        (own / "chunk1.md").write_text("---\ntitle: Of basalt\n---\nSome words.\n")
        (own / "chunk2.md").write_text("---\nheadings: [Basalt]\npages: [41]\n---\nOther.\n")
        (own / "chunk3.md").write_text("No title.\n")
        store.sync()
        listing = store.listing
        every = sorted(row.path for row in store.listing.chunks(range(1, 99)).values())

        def found(text):
            matches = listing.matching(NameFilter.parse(text))
            ids = [one for some in matches.values() for one in some]
            return sorted(row.path for row in listing.chunks(ids).values())

        own_paths = [f"chunked/own/chunk{number}.md" for number in (1, 2, 3)]
        assert found("basalt") == own_paths[:2]
        assert found("~^Bas") == own_paths[1:2]
        guide = [path for path in every if "guide.md" in path and path.endswith(".md")]
        assert len(guide) > 2
        assert found("the handbook") == guide
        elan = found('élan "quoted" 7')
        assert elan
        assert set(elan) < set(guide)
        assert found("~handbook > é.*7$") == elan
        assert found("41") == found('",') == found("[[") == []
        assert set(found("!basalt")) == {*guide, own_paths[2]}
        assert found("!handbook") == own_paths
        assert found("chunk3") == [path for path in every if "chunk3" in path]


def test_the_filter_finds_documents_of_a_folder_and_headings_inside_files(either: Any) -> None:
    """By title, other name or name; headings that a file has below its first one, until it is
    edited; no comment in a block of code, and not the folder that all of them lie in."""
    note = "---\ntitle: Of basalt\naliases: [Lava]\n---\n# Rock\n\nHard.\n\n## Gneiss\n\nOld.\n"
    either.write("stones/hard/one.md", note)
    either.write("stones/two.md", "# Soft\n\n```sh\n# Granite\n```\n")
    either("add", "stones")
    own = either.store / "chunked" / "own" / "mine.md"
    own.parent.mkdir()
    own.write_text("# Mine\n\nText.\n\n### Marble\n\nWhite.\n")
    either("sync")
    with InspectedStore(os.fspath(either.store)) as store:
        one, two = paths_of(store, "stones")
        for text in ("basalt", "LAVA", "gneiss", "hard/one", "~^one|hard/"):
            assert matched(store, text) == {"stones": [one]}, text
        assert matched(store, "!lava")["stones"] == [two]
        assert "stones" not in matched(store, "granite")
        assert [*matched(store, "marble").values()] == [["chunked/own/mine.md"]]
        assert not matched(store, "../stones")
        own.write_text("# Mine\n\nText.\n\n### Slate\n\nGrey.\n")
        store.sync()
        assert [*matched(store, "slate").values()] == [["chunked/own/mine.md"]]
        assert not matched(store, "marble")


def test_the_best_match_is_listed_first(filled: Any, store: InspectedStore) -> None:
    """Resources and their files by how well they match, equal ones in reading order."""
    for name, title in (("aaa", "A denoted thing"), ("zzz", "Note")):
        filled.write(f"{name}.md", f"# {title}\n\nWords.\n")
        filled("add", f"{name}.md")
    assert list(matched(store, "note")) == ["note.md", "zzz.md", "aaa.md"]
    assert list(matched(store, "dntd thng")) == ["aaa.md"]
    assert matched(store, "manual")["manual.md"] == paths_of(store, "manual.md")


def test_files_are_listed_below_each_document_of_several(store: InspectedStore) -> None:
    """Each document of several holds its files; one document alone needs no row."""
    listing = store.listing
    assert listing.rows_below("manual.md") == listing.chunk_ids("manual.md")
    found = [list(one.ids) for one in listing.rows_below("docs") if isinstance(one, DocumentFiles)]
    first, second = listing.chunk_ids("docs")
    assert found == [[first], [second]]
    rows = listing.chunks([first, second])
    assert [rows[one].source.rpartition("/")[2] for one in (first, second)] == ["one.md", "two.md"]
    assert not listing.rows_below("no such resource")


def test_a_query_that_is_still_typed_goes_to_no_service(
    store: InspectedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a service embeds queries, words alone are searched; a model here is asked as ever."""
    assert store.search_typed("valves", mode="hybrid", k=3).mode == "hybrid"
    monkeypatch.setattr("filestore.embed.is_service", "builtin".__eq__)
    answer = store.search_typed("val*", mode="vector", k=3)
    assert answer.mode == "keyword"
    assert answer.hits
