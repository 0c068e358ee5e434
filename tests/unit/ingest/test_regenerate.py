"""What must hold of adding a changed source again, whatever changed and whoever edited."""

from collections import Counter

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore.chunks import chunk_file
from filestore.chunks.layout import FLAT, TREE, Layout
from filestore.core.hashing import origin_hash
from filestore.git.merge import Merged, Overlap
from filestore.ingest.regenerate import (
    Existing,
    Lost,
    NewChunk,
    NewDocument,
    Regenerating,
    in_order,
)

LAYOUTS = [TREE, FLAT]
WORDS = st.sampled_from(["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "oak", "yew"])
BODIES = st.lists(WORDS, min_size=1, max_size=6).map(lambda words: " ".join(words) + "\n\n")
HEADINGS = st.lists(st.sampled_from(["Trees", "Bushes"]), max_size=2).map(tuple)
CHUNKS = st.builds(NewChunk, body=BODIES, headings=HEADINGS)
VERSIONS = st.lists(CHUNKS, max_size=8)
ASH, ELM, OAK = (NewChunk(body=f"{word}\n\n", headings=()) for word in ("ash", "elm", "oak"))
SOURCES = [f"../{letter}.md" for letter in "abcd"]
RESOURCES = st.dictionaries(st.sampled_from(SOURCES), VERSIONS, max_size=4)

Folder = dict[str, bytes]

FEW = settings(max_examples=40)


def existing_of(folder: Folder) -> list[Existing]:
    """The chunk files of a folder, as the planner takes them."""
    return [
        Existing(path=name, data=data, chunk=chunk_file.parse(data))
        for name, data in folder.items()
    ]


def documents_of(resource) -> list[NewDocument]:
    """Documents in the order of their paths, as a folder gives them."""
    return [
        NewDocument(source=source, chunks=tuple(chunks))
        for source, chunks in sorted(resource.items())
    ]


class Past:
    """Knows the texts that files were made from, by their origin; and no headings."""

    def __init__(self, *bodies: str) -> None:
        self.bodies = {origin_hash(body): body for body in bodies}

    def body(self, file: Existing) -> str | None:
        """The text with the file's origin."""
        return self.bodies.get(file.chunk.origin or "")

    def headings(self, file: Existing) -> tuple[str, ...] | None:
        """Nobody knows."""
        return None


def overlap(base: str, ours: str, theirs: str) -> Merged | Overlap:
    """A merge that always fails."""
    return Overlap(detail="they differ", line=1, last_line=1)


def by_line(base: str, ours: str, theirs: str) -> Merged | Overlap:
    """A merge of texts with equally many lines: of each line the side that changed it."""
    lines = list(zip(*(text.split("\n") for text in (base, ours, theirs)), strict=True))
    if any(len({old, mine, new}) == 3 for old, mine, new in lines):
        return Overlap(detail="they differ", line=1, last_line=1)
    return Merged(text="\n".join(new if mine == old else mine for old, mine, new in lines))


def regenerate(existing, documents, **options):
    """The planned changes for some documents."""
    return Regenerating(existing, **options).planned(documents)


def plan(folder: Folder, resource, layout: Layout, *, several: bool = True, **options):
    """The planned changes for a new version of a resource."""
    return regenerate(
        existing_of(folder),
        documents_of(resource),
        layout=layout,
        name_sources=several,
        **({"merge": overlap, "past": Past(), "source": ".." if several else ""} | options),
    )


def applied(folder: Folder, planned) -> Folder:
    """The folder after the planned changes."""
    kept = {name: data for name, data in folder.items() if name not in planned.deletions}
    return kept | planned.writes


def chunks_of(folder: Folder) -> list[chunk_file.Chunk]:
    """The chunks of a folder in reading order."""
    parsed = {name: chunk_file.parse(data) for name, data in folder.items()}
    return [parsed[name] for name in in_order({n: c.order for n, c in parsed.items()})]


def reading(folder: Folder) -> list[tuple[str, tuple[str, ...]]]:
    """Bodies and headings in reading order."""
    return [(chunk.body, chunk.headings) for chunk in chunks_of(folder)]


def text_of(resource) -> list[tuple[str, tuple[str, ...]]]:
    """What a resource says, in reading order."""
    return [
        (chunk.body, chunk.headings)
        for document in documents_of(resource)
        for chunk in document.chunks or ()
    ]


def single(chunks):
    """A resource of one document."""
    return {SOURCES[0]: chunks}


# One document


@pytest.mark.parametrize("layout", LAYOUTS)
@given(versions=st.lists(VERSIONS, min_size=1, max_size=4))
def test_each_version_reads_as_its_source(layout, versions):
    """After every change of the source the files hold exactly its text, in its order."""
    folder: Folder = {}
    for version in versions:
        planned = plan(folder, single(version), layout, several=False)
        folder = applied(folder, planned)
        assert reading(folder) == text_of(single(version))
        assert planned.chunks == len(version)
        assert planned.kept == {}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(versions=st.lists(VERSIONS, min_size=1, max_size=3))
@FEW
def test_adding_the_same_again_changes_nothing(layout, versions):
    """A source that did not change plans no write and no deletion."""
    folder: Folder = {}
    for version in versions:
        folder = applied(folder, plan(folder, single(version), layout, several=False))
    planned = plan(folder, single(versions[-1]), layout, several=False)
    assert (planned.writes, planned.deletions) == ({}, [])


EDITS = st.lists(
    st.tuples(st.sampled_from(["insert", "delete", "replace"]), st.integers(0, 20), CHUNKS),
    max_size=5,
)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(before=st.lists(CHUNKS, max_size=8, unique_by=lambda chunk: chunk.body), edits=EDITS)
def test_untouched_chunks_keep_name_and_bytes(layout, before, edits):
    """Inserting, deleting and replacing text touches no file whose text stayed."""
    after = list(before)
    for edit, place, chunk in edits:
        at = place % (len(after) + 1)
        if edit == "insert":
            after.insert(at, chunk)
        elif at < len(after):
            after[at : at + 1] = [chunk] if edit == "replace" else []
    assume(len({chunk.body for chunk in after}) == len(after))
    # A text that comes back elsewhere was not left alone, nor is one with other headings.
    was, now = ([chunk.body for chunk in chunks] for chunks in (before, after))
    assume([body for body in now if body in was] == [body for body in was if body in now])
    kept = [chunk for chunk in after if chunk in before]
    folder = applied({}, plan({}, single(before), layout, several=False))
    planned = plan(folder, single(after), layout, several=False)
    touched = planned.writes.keys() | planned.deletions
    bodies = {chunk_file.parse(folder[name]).body for name in touched & folder.keys()}
    assert bodies.isdisjoint(chunk.body for chunk in kept)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(chunks=st.lists(CHUNKS, min_size=2, max_size=8, unique_by=lambda c: c.body), data=st.data())
@FEW
def test_a_moved_chunk_keeps_its_name(layout, chunks, data):
    """Text that moves within its document stays in its file."""
    old, new = (data.draw(st.integers(0, len(chunks) - 1)) for _ in range(2))
    moved = list(chunks)
    moved.insert(new, moved.pop(old))
    folder = applied({}, plan({}, single(chunks), layout, several=False))
    result = applied(folder, plan(folder, single(moved), layout, several=False))
    assert reading(result) == text_of(single(moved))
    assert result.keys() == folder.keys()
    for name in folder:
        assert chunk_file.parse(folder[name]).body == chunk_file.parse(result[name]).body


@pytest.mark.parametrize("layout", LAYOUTS)
@given(version=VERSIONS)
@FEW
def test_the_same_source_gives_the_same_files(layout, version):
    """Names and bytes are a function of the source alone."""
    planned = plan({}, single(version), layout, several=False)
    assert planned.writes == plan({}, single(version), layout, several=False).writes
    if layout is TREE:
        assert list(planned.writes) == [f"chunk{n}.md" for n in range(1, len(version) + 1)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_user_keys_and_formatting_survive_a_changed_text(layout):
    """A file whose source text changed keeps every key and comment that a person added."""
    old = NewChunk(body="one two three four five\n", headings=("A",))
    new = NewChunk(body="one two three four six\n", headings=("B",))
    ((name, data),) = plan({}, single([old]), layout, several=False).writes.items()
    # A key between ours, a comment, odd spacing.
    data = data.replace(b"---\n", b"---\n# mine\nstatus:   'draft'\n", 1)
    planned = plan({name: data}, single([new]), layout, several=False)
    result = applied({name: data}, planned)
    assert reading(result) == text_of(single([new]))
    assert b"# mine\nstatus:   'draft'\n" in result[name]
    assert not chunk_file.hand_edited(chunk_file.parse(result[name]))


# What a person wrote


@st.composite
def edited_folder(draw, layout):
    """A generated folder in which a person edited some files and added some of their own."""
    version = draw(VERSIONS)
    folder = applied({}, plan({}, single(version), layout, several=False))
    edited = {name for name in folder if draw(st.booleans())}
    for name in edited:
        folder[name] += b"by hand\n"
    own = draw(st.sets(st.sampled_from(["own.md", "chunk2.md", "chunk3-note.md", "summary1.md"])))
    for name in own - folder.keys():
        folder[name] = b"---\nmine: true\n---\nwritten by a person\n"
    return version, folder, edited, own - edited


def without_order(data: bytes):
    """What a file holds apart from its place."""
    chunk = chunk_file.parse(data)
    return chunk.body, {key: value for key, value in chunk.frontmatter.items() if key != "order"}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data(), version=VERSIONS)
@FEW
def test_a_hand_edited_file_is_never_overwritten(layout, data, version):
    """Its text and keys stay; at most its place follows where its source text moved to."""
    _, folder, edited, _ = data.draw(edited_folder(layout))
    planned = plan(folder, single(version), layout, several=False)
    assert edited.isdisjoint(planned.deletions)
    for name in edited & planned.writes.keys():
        assert without_order(planned.writes[name]) == without_order(folder[name])
    assert planned.kept.keys() <= edited


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data(), version=VERSIONS)
@FEW
def test_a_persons_own_files_are_left_alone(layout, data, version):
    """A file without an origin is not ours to write or delete, whatever its name."""
    _, folder, edited, _ = data.draw(edited_folder(layout))
    own = {name for name, data in folder.items() if b"mine: true" in data} - edited
    planned = plan(folder, single(version), layout, several=False)
    assert own.isdisjoint(planned.writes.keys() | planned.deletions)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data(), version=VERSIONS)
@FEW
def test_every_text_of_the_source_is_in_a_file_or_behind_an_edited_one(layout, data, version):
    """Nothing of the new source is lost: it is written, or is kept by hash for an edited file."""
    _, folder, _, _ = data.draw(edited_folder(layout))
    planned = plan(folder, single(version), layout, several=False)
    result = [chunk for chunk in chunks_of(applied(folder, planned)) if chunk.origin is not None]
    there = {chunk.origin for chunk in result} | planned.generated.keys()
    assert {origin_hash(chunk.body) for chunk in version} <= there
    assert all(origin_hash(body) == origin for origin, body in planned.generated.items())
    assert planned.chunks == len(result)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data(), version=VERSIONS)
@FEW
def test_adding_again_over_edits_changes_nothing_more(layout, data, version):
    """What is once settled around edited files stays so, while no text stands twice."""
    before, folder, _, _ = data.draw(edited_folder(layout))
    for chunks in (before, version):
        assume(len({chunk.body for chunk in chunks}) == len(chunks))
    settled = applied(folder, plan(folder, single(version), layout, several=False))
    planned = plan(settled, single(version), layout, several=False)
    assert (planned.writes, planned.deletions) == ({}, [])


def test_an_edited_file_whose_source_changed_too_is_kept_and_told():
    """Both texts are there afterwards: the person's in the file, the generated one by hash."""
    old = NewChunk(body="one two three four five\n", headings=())
    new = NewChunk(body="one two three four six\n", headings=())
    folder = plan({}, single([old]), TREE).writes
    folder["a.md/chunk1.md"] = folder["a.md/chunk1.md"].replace(b"five", b"FIVE")
    planned = plan(folder, single([new]), TREE)
    assert (planned.writes, planned.deletions) == ({}, [])
    assert "a.md/chunk1.md" in planned.kept
    assert planned.generated == {origin_hash(new.body): new.body}


def test_an_edited_file_whose_source_text_went_is_kept_and_told():
    """A person's words outlive the text they were made from."""
    chunks = [NewChunk(body=f"{word} alone\n", headings=()) for word in ("ash", "oak")]
    folder = plan({}, single(chunks), TREE).writes
    folder["a.md/chunk2.md"] += b"by hand\n"
    planned = plan(folder, single(chunks[:1]), TREE)
    assert planned.deletions == []
    assert "gone" in planned.kept["a.md/chunk2.md"].detail


LETTERS = st.lists(st.sampled_from("abcdef"), min_size=4, max_size=4)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(old=LETTERS, mine=LETTERS, new=LETTERS)
def test_both_changes_of_a_text_are_in_the_file_or_both_are_kept(layout, old, mine, new):
    """Line by line the file has what either side changed; else it stays and the new text waits."""
    words = "is the letter on this line of one text"
    base, ours, theirs = (
        "".join(f"{letter} {words}\n" for letter in text) for text in (old, mine, new)
    )
    folder = plan({}, single([NewChunk(body=base, headings=())]), layout).writes
    (path,) = folder
    folder[path] = folder[path].replace(base.encode(), ours.encode())
    chunk = NewChunk(body=theirs, headings=())
    planned = plan(folder, single([chunk]), layout, merge=by_line, past=Past(base))
    result = chunk_file.parse(applied(folder, planned)[path])
    if path in planned.kept:
        assert applied(folder, planned) == folder
        assert (planned.kept[path].theirs, planned.pending) == (theirs, {SOURCES[0]})
    elif planned.writes or planned.deletions:
        assert result.origin == origin_hash(theirs)
        lines = zip(*(text.splitlines() for text in (base, ours, theirs, result.body)), strict=True)
        assert all(
            line == (after if by_hand == before else by_hand)
            for before, by_hand, after, line in lines
        )
    assert planned.pending == ({SOURCES[0]} if planned.kept else set())


def test_a_file_whose_base_is_unknown_is_kept():
    """Without the text it was made from nobody can tell what a person changed."""
    old = NewChunk(body="one two three four five\n", headings=())
    new = NewChunk(body="one two three four six\n", headings=())
    folder = plan({}, single([old]), TREE).writes
    folder["a.md/chunk1.md"] += b"by hand\n"
    planned = plan(folder, single([new]), TREE, merge=by_line)
    assert (planned.writes, planned.deletions) == ({}, [])
    assert "not kept" in planned.kept["a.md/chunk1.md"].detail


def test_an_excluded_file_is_never_written():
    """A file that nobody can read keeps its bytes while its text changes, moves or goes."""
    folder = plan({}, single([ASH, ELM, OAK]), TREE).writes
    existing = [
        replace(file, excluded="it is excluded") if file.path == "chunk2.md" else file
        for file in existing_of(folder)
    ]
    changed = NewChunk(body="elm and more\n\n", headings=())
    for chunks in ([ASH, changed, OAK], [ELM, ASH, OAK], [ASH, OAK], [ASH, OAK, ELM]):
        planned = regenerate(
            existing,
            documents_of(single(chunks)),
            layout=TREE,
            name_sources=False,
            merge=by_line,
            past=Past(),
        )
        assert "chunk2.md" not in planned.writes.keys() | planned.deletions


def test_a_file_moved_out_of_its_folder_names_its_source():
    """Away from its record a chunk that is written says what it comes from."""
    (data,) = plan({}, single([ASH]), TREE, several=False).writes.values()
    other = NewChunk(body="ash and more\n\n", headings=())
    planned = regenerate(
        existing_of({"aside/x.md": data}),
        documents_of(single([other])),
        layout=TREE,
        name_sources=False,
        merge=by_line,
        past=Past(),
        folder="book",
    )
    assert planned.writes.keys() == {"aside/x.md"}
    assert chunk_file.parse(planned.writes["aside/x.md"]).source == SOURCES[0]


# Several documents


@pytest.mark.parametrize("layout", LAYOUTS)
@given(first=RESOURCES)
@FEW
def test_a_folder_reads_document_by_document(layout, first):
    """The chunks of a resource of several documents follow their order and name their document."""
    folder = applied({}, plan({}, first, layout))
    assert reading(folder) == text_of(first)
    sources = [chunk.source for chunk in chunks_of(folder)]
    assert sources == sorted(sources, key=SOURCES.index)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(versions=st.lists(RESOURCES, min_size=2, max_size=3))
@example(versions=[{"../a.md": [ASH]}, {"../a.md": [ASH], "../b.md": [ELM], "../c.md": [OAK]}])
def test_each_version_of_a_folder_reads_as_its_documents(layout, versions):
    """Documents come, change and go, and the files hold exactly their text, in their order."""
    folder: Folder = {}
    for version in versions:
        folder = applied(folder, plan(folder, version, layout))
        assert reading(folder) == text_of(version)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(versions=st.lists(RESOURCES, min_size=1, max_size=3))
@example(
    versions=[
        {"../b.md": [ELM]},
        {"../a.md": [ASH], "../b.md": [OAK]},
        {"../a.md": [], "../b.md": [ELM, OAK]},
    ]
)
@FEW
def test_adding_the_same_folder_again_changes_nothing(layout, versions):
    """A folder that did not change plans no write and no deletion."""
    folder: Folder = {}
    for version in versions:
        folder = applied(folder, plan(folder, version, layout))
    planned = plan(folder, versions[-1], layout)
    assert (planned.writes, planned.deletions) == ({}, [])


@pytest.mark.parametrize("layout", LAYOUTS)
@given(first=RESOURCES, changed=st.sampled_from(SOURCES), chunks=VERSIONS)
@FEW
def test_a_changed_document_touches_no_file_of_another(layout, first, changed, chunks):
    """Only files of the document that changed are written or deleted."""
    folder = applied({}, plan({}, first, layout))
    planned = plan(folder, first | {changed: chunks}, layout)
    touched = (planned.writes.keys() | planned.deletions) & folder.keys()
    assert {chunk_file.parse(folder[name]).source for name in touched} <= {changed}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(first=RESOURCES, skipped=st.sets(st.sampled_from(SOURCES)))
@FEW
def test_documents_that_are_not_looked_at_keep_their_files(layout, first, skipped):
    """A document that did not change or cannot be read is neither written nor dropped."""
    folder = applied({}, plan({}, first, layout))
    documents = [
        NewDocument(source=source, chunks=None if source in skipped else tuple(chunks))
        for source, chunks in sorted(first.items())
    ]
    planned = regenerate(
        existing_of(folder),
        documents,
        layout=layout,
        name_sources=True,
        merge=overlap,
        past=Past(),
    )
    assert (planned.writes, planned.deletions) == ({}, [])
    assert planned.chunks == len(folder)


@given(version=VERSIONS)
@FEW
def test_names_in_use_by_others_are_not_taken(version):
    """In one shared folder a resource never writes a name that another one has."""
    first = plan({}, single(version), FLAT)
    again = regenerate(
        [],
        documents_of(single(version)),
        layout=FLAT,
        name_sources=True,
        merge=overlap,
        past=Past(),
        taken=first.writes.keys(),
    )
    assert first.writes.keys().isdisjoint(again.writes)
    assert reading(again.writes) == text_of(single(version))


def test_reading_order_follows_keys_then_numbers_then_names():
    """A key places a file between numbered ones, and the tenth follows the second."""
    files = {"chunk10.md": None, "chunk2.md": None, "own.md": None, "chunk2-abcd.md": "a2i"}
    assert in_order(files) == ["chunk2.md", "chunk2-abcd.md", "chunk10.md", "own.md"]


# Folders of documents


@pytest.mark.parametrize(
    ("sources", "taken", "folders"),
    [
        (["a.md", "sub/b.md"], [], ["a.md", "sub/b.md"]),
        (["A/x.md", "a/y.md"], [], ["A/x.md", None]),
        (["X.md", "x.md"], [], ["X.md", None]),
        (["e\u0301.md", "\xe9.md"], [], ["e\u0301.md", None]),
        (["meta.json", "sub/Meta.json/x.md"], [], [None, None]),
        (["a.md", "b.md/c.md"], ["A.md", "b.md"], [None, None]),
        (["a.md", "chunk1.md"], ["a.md/", "chunk1.md/"], ["a.md", "chunk1.md"]),
        (["con/a.md", ".b/c.md", "d. /e.md", "../f.md"], [], [None] * 4),
        ([f"{'a/' * 48}b.md"], [], [None]),
    ],
)
def test_folders_of_documents_hold_on_every_system(sources, taken, folders):
    """A document has its path for a folder, or 13 characters where another has it or none may."""
    resource = {f"../{source}": [ASH] for source in sources}
    planned = plan({}, resource, TREE, taken=taken)
    found = {
        chunk_file.parse(data).source: path.rpartition("/")[0]
        for path, data in planned.writes.items()
    }
    assert len({path.casefold() for path in planned.writes}) == len(sources)
    for source, folder in zip(sources, folders, strict=True):
        name = found[f"../{source}"]
        assert name == folder or (folder is None and len(name) == 13)


# What a person deleted


@pytest.mark.parametrize("layout", LAYOUTS)
@given(version=VERSIONS, later=VERSIONS, data=st.data())
def test_deleted_files_are_not_made_again_and_nothing_else_is_left_out(
    layout: str, version: list[NewChunk], later: list[NewChunk], data: st.DataObject
) -> None:
    """Each deletion holds back one piece of its very text, and each other piece has its file."""
    folder = applied({}, plan({}, single(version), layout, several=False))
    deleted = data.draw(st.sets(st.sampled_from(sorted(folder)))) if folder else set()
    lost = [
        Lost(path=path, origin=chunk_file.parse(folder[path]).origin or "", source=None)
        for path in sorted(deleted)
    ]
    left = {path: held for path, held in folder.items() if path not in deleted}
    assume(left)
    planned = plan(left, single(later), layout, several=False, lost=lost)
    wanted = Counter(origin_hash(chunk.body) for chunk in later)
    there = Counter(chunk_file.parse(held).origin for held in left.values())
    held_back = Counter(one.origin for one in planned.deleted.values())
    assert held_back == (wanted - there) & Counter(one.origin for one in lost)
    made = Counter(origin_hash(chunk.body) for chunk in chunks_of(applied(left, planned)))
    assert made == wanted - held_back


def test_a_resource_without_files_is_made_again() -> None:
    """Where nothing is left there is no edit to respect: all of it is made."""
    lost = [Lost(path="chunk1.md", origin=origin_hash(ASH.body), source=None)]
    planned = plan({}, single([ASH, ELM]), TREE, several=False, lost=lost)
    assert planned.chunks == 2
    assert planned.deleted == {}
