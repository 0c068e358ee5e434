"""Documents in place as the inspector lists and shows them."""

import os
from pathlib import Path

import pytest

from filestore.browse import InspectedStore, NameFilter

NOTES = {
    "Home.md": "---\naliases: [Start page]\n---\n# Where all begins\n\nText of it. #house\n",
    "garden/Beans.md": (
        "# Beans\n\nThey climb.\n\n## Sowing\n\nIn May, not before, the soil is warm enough.\n\n"
        "## Harvest\n\nFrom July on, every second day, or they grow tough.\n"
    ),
    "garden/2026/May.md": "# In May\n\nThe soil is warm enough to sow beans now.\n",
    "garden.txt": "A plain list of what to buy.\n",
}


@pytest.fixture
def notes(tmp_path):
    """A folder of notes that is a store, indexed, its sections small."""
    folder = tmp_path / "notes"
    for name, text in NOTES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    configuration = str(tmp_path / "configuration")
    InspectedStore.create(
        str(folder), layout="in-place", embedder="builtin", configuration=configuration
    ).close()
    settings = folder / "filestore.toml"
    settings.write_text(settings.read_text().replace("budget = 240", "budget = 24"))
    with InspectedStore(str(folder), configuration=configuration) as store:
        store.sync()
        yield store


def outline(store, name):
    ids = store.listing.rows_below(name)
    rows = store.listing.sections(ids)
    return [rows[one] for one in ids]


def test_folders_and_documents_are_listed_as_a_tree(notes):
    """Folders first, each with what is in it right behind, and how many documents these are."""
    rows = notes.listing.resources()
    assert [(row.resource, row.kind == "document") for row in rows] == [
        ("garden/", False),
        ("garden/2026/", False),
        ("garden/2026/May.md", True),
        ("garden/Beans.md", True),
        ("garden.txt", True),
        ("Home.md", True),
    ]
    assert [row.children for row in rows if row.kind == "folder"] == [2, 1]
    top = notes.listing.resources(limit=64)
    assert [(row.resource, row.children) for row in top] == [
        (row.resource, row.children) for row in rows if "/" not in row.resource.rstrip("/")
    ]
    assert notes.listing.counts().resources == 4


@pytest.mark.parametrize("leaps", [0, 1, 2, 1_000])
def test_the_first_rows_are_the_topmost_of_all(notes, monkeypatch, leaps):
    """However many folders are leapt over; names that sort next to a folder's are there, too."""
    names = ["garden!.md", "garden0", "garden0/a.md", "garden/b/c.md", "a/b.md", "Ä/b.md", "z.md"]
    for name in names:
        path = Path(notes.places.root, f"{name}.md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Words about {name}.\n", encoding="utf-8")
    notes.sync()
    assert notes.enrich().summaries > 0
    monkeypatch.setattr("filestore.catalog._pages._LEAPS", leaps)
    tops = [row for row in notes.listing.resources() if "/" not in row.resource.rstrip("/")]
    assert len(tops) == 9
    assert notes.listing.resources(limit=64) == tops


def test_a_document_says_its_title_and_its_size(notes):
    """The title of one without any is its first words; an unknown id is left out."""
    ids = [row.id for row in notes.listing.resources() if row.id]
    found = notes.listing.documents([*ids, 9_999])
    size = os.path.getsize
    root = notes.places.root
    assert [(found[one].path, found[one].title, found[one].size_bytes) for one in ids] == [
        (name, title, size(os.path.join(root, name)))
        for name, title in (
            ("garden/2026/May.md", "In May"),
            ("garden/Beans.md", "Beans"),
            ("garden.txt", "A plain list of what to buy."),
            ("Home.md", "Where all begins"),
        )
    ]


def test_a_section_says_its_headings_its_line_and_its_words(notes):
    """Without the title of the document, which stands above."""
    found = [(row.headings, row.line, row.title) for row in outline(notes, "garden/Beans.md")]
    assert found == [
        ((), 1, "They climb."),
        (("Sowing",), 5, "In May, not before, the soil is warm enough."),
        (("Harvest",), 9, "From July on, every second day, or they grow tough."),
    ]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("beans.MD", {"garden/Beans.md": 3}),
        ("start page", {"Home.md": 1}),
        ("in may", {"garden/2026/May.md": 1}),
        ("sowing", {"garden/Beans.md": 1}),
        ("!garden", {"Home.md": 1}),
        ("!sowing", {"Home.md": 1, "garden.txt": 1, "garden/2026/May.md": 1, "garden/Beans.md": 2}),
        ("~^garden/[^/]+$", {"garden/Beans.md": 3}),
        ("no such thing", {}),
    ],
)
def test_the_filter_finds_names_titles_aliases_and_headings(notes, text, left):
    """All sections of a document that fits itself, else those below a heading that does."""
    found = notes.listing.matching(NameFilter.parse(text))
    assert {name: len(ids) for name, ids in found.items()} == left


def test_the_filter_finds_a_heading_that_was_changed(notes):
    """What was read once is read again when the document was indexed again."""
    assert notes.listing.matching(NameFilter.parse("harvest"))
    path = os.path.join(notes.places.root, "garden/Beans.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write(NOTES["garden/Beans.md"].replace("Harvest", "Picking"))
    notes.sync()
    assert not notes.listing.matching(NameFilter.parse("harvest"))
    assert notes.listing.matching(NameFilter.parse("picking"))


OVER_TWO = """---
kind: summary
headings: [{heading}]
children:
- {{path: garden/Beans.md, hash: "sha256:{zeros}"}}
- {{path: garden/2026/May.md, hash: "sha256:{zeros}"}}
---
Beans are sown in May.
"""


def over_two(notes, folder, heading):
    """Write a summary of two documents by hand."""
    path = os.path.join(notes.places.root, ".filestore-summaries", folder, "summary1.md")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(OVER_TWO.format(heading=heading, zeros="0" * 64))


def test_a_summary_of_several_documents_lies_in_their_folder(notes):
    """Also in the outermost; that of one document is below this, and no folder has it."""
    notes.enrich("garden/Beans.md")
    assert notes.summaries.of_folders() == {}
    over_two(notes, "garden", "Growing")
    over_two(notes, "", "Everything")
    notes.sync()
    found = notes.summaries.of_folders()
    titles = {folder: [row.title for row in rows] for folder, rows in found.items()}
    assert titles == {"garden/": ["Growing"], "": ["Everything"]}
    assert [row.children for rows in found.values() for row in rows] == [2, 2]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("growing", {"garden/": ["Growing"]}),
        ("evthing", {"": ["Everything"]}),
        ("~^Everything|^Growing", {"garden/": ["Growing"], "": ["Everything"]}),
        ("sown in may", {}),
    ],
)
def test_the_filter_finds_what_summaries_are_headed_with(notes, text, left):
    """Not their text, and not their names, which are numbers."""
    over_two(notes, "garden", "Growing")
    over_two(notes, "", "Everything")
    notes.sync()
    found = notes.listing.matching(NameFilter.parse(text))
    rows = {name: notes.listing.sections(ids) for name, ids in found.items()}
    shown = {name: [row.title for row in rows.values()] for name, rows in rows.items()}
    assert shown == left
    assert all(row.kind == "summary" for of in rows.values() for row in of.values())
    assert not any(
        name in ("", "garden/") for name in notes.listing.matching(NameFilter.parse("!growing"))
    )


def test_a_document_is_shown_with_its_sections_and_tags(notes):
    """A line leads to the section that holds it."""
    found = notes.about_file("garden/Beans.md")
    part = found.part_at(7, "")
    assert part == 1
    section = found.section(part)
    assert found.body[section.start : section.end].startswith("## Sowing")
    assert found.part_at(99, "") is None
    assert notes.about_file("Home.md").tags == ("house",)


def test_a_section_of_a_long_line_is_the_one_with_the_text(notes):
    """A line that is cut into many sections does not say which."""
    words = " ".join(f"word{number}" for number in range(2_000))
    Path(notes.places.root, "long.md").write_text(f"# Long\n\n{words}\n")
    notes.sync()
    found = notes.about_file("long.md")
    last = found.sections[-1]
    assert len(found.sections) > 2
    assert found.sections[0].end_line == last.end_line
    part = found.part_at(last.line, found.body[last.start : last.end])
    assert part == len(found.sections) - 1
    assert found.part_at(last.line, "") == 0


def test_neighbours_of_a_section_are_sections(notes):
    """Each file by the nearest of its sections, with the line where that begins."""
    near = notes.explorer.neighbours("garden/2026/May.md", part=0)
    assert (near[0].path, near[0].line, near[0].headings) == (
        "garden/Beans.md",
        5,
        ("Beans", "Sowing"),
    )
    back = notes.explorer.neighbours("garden/Beans.md", part=1)
    assert back[0].path == "garden/2026/May.md"
    assert back[0].cosine == pytest.approx(near[0].cosine)


def test_the_documents_of_a_folder_are_meant_by_it(notes):
    """As they are when its row is marked."""
    ids = notes.listing.chunk_ids("garden/")
    assert [notes.listing.file_of(one)[0] for one in ids] == [
        "garden/2026/May.md",
        "garden/Beans.md",
    ]
    assert notes.about_resource("garden/").chunks == 2


def test_the_document_of_a_section_is_meant_by_it(notes):
    """Whichever of its sections is marked, and once where several are."""
    sections = notes.listing.rows_below("garden/Beans.md")
    assert (
        notes.listing.paths(sections) == notes.listing.paths(sections[-1:]) == ["garden/Beans.md"]
    )
    assert notes.listing.paths([2**40 - 1]) == []


def test_the_evidence_of_a_note_is_what_it_said_and_says(notes):
    """With the line in the file, frontmatter counted; of a deleted note all that it said."""
    root = notes.places.root
    with open(os.path.join(root, "Home.md"), "a", encoding="utf-8") as file:
        file.write("A cellar.\n")
    os.remove(os.path.join(root, "garden.txt"))
    found = {one.code: notes.evidence(one) for one in notes.status().findings}
    edited, gone = found["modified"], found["missing"]
    assert edited.diff.splitlines()[-1] == "+A cellar."
    assert edited.diff.startswith("--- indexed/Home.md\n+++ on disk/Home.md\n")
    assert edited.line == 7
    assert edited.excerpt[-1] == (7, "A cellar.")
    assert gone.diff.splitlines()[-1] == "-A plain list of what to buy."
    assert "the catalog keeps its last good text: 29 bytes" in gone.notes
    assert not any("not the one that was recorded" in note for note in edited.notes)


def test_what_was_made_of_documents_is_not_listed_among_them(notes):
    """Summaries and questions lie beside them; a document is its sections, as it was."""
    listing, counts = notes.listing, notes.listing.counts()
    before = listing.resources(), outline(notes, "garden/Beans.md")
    assert notes.enrich().summaries > 0
    assert (listing.resources(), outline(notes, "garden/Beans.md")) == before
    after = listing.counts()
    assert (after.resources, after.chunks) == (counts.resources, counts.chunks)
    assert not listing.matching(NameFilter(text="summary"))
