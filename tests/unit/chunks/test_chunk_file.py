"""What must hold of chunk files: our keys, the texts they yield, their names and their order."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from filestore.chunks import chunk_file, order_key
from filestore.chunks.chunk_file import (
    BadEncoding,
    Child,
    InvalidMetadata,
    chunk_name,
    embed_text,
    flat_name,
    generate,
    hand_edited,
    inserted_name,
    kind_of_name,
    number_of_name,
    parse,
    record_stem,
    sort_key,
    texts,
    update,
)
from filestore.core import hashing
from filestore.core.frontmatter_yaml import MalformedFrontmatter

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# A final CR and the LF added to it would be one line end.
WHOLE_LINES = TEXTS.filter(lambda text: not text.endswith("\r"))
SEVERAL = st.lists(TEXTS, max_size=5).map(tuple)
OURS = st.fixed_dictionaries(
    {},
    optional={
        "source": st.none() | TEXTS,
        "kind": st.sampled_from([None, "chunk", "summary"]),
        "order": st.none() | TEXTS,
        "overlap": st.integers(0, 1000),
        "headings": SEVERAL,
        "pages": st.lists(st.integers(1, 5000), max_size=5).map(tuple),
        "questions": SEVERAL,
        "level": st.none() | st.integers(0, 9),
        "children": st.lists(st.builds(Child, path=TEXTS, hash=TEXTS), max_size=5).map(tuple),
    },
)
BODIES = TEXTS | st.sampled_from(
    ["", "\n", "---\n", "\ufefftext", "a\r\nb\r\n", "---\na: 1\n---\n"]
)


@given(OURS, BODIES)
def test_a_generated_chunk_is_read_back(ours, body):
    """What a chunk was generated from is what its file says, and it is not hand-edited."""
    data = generate(body=body, **ours)
    chunk = parse(data)
    assert {key: getattr(chunk, key) for key in ours} == ours
    assert (chunk.body, dict(chunk.user)) == (body, {})
    assert chunk.origin == hashing.origin_hash(body)
    assert not hand_edited(chunk)
    assert generate(body=body, **ours) == data


def test_the_form_of_a_generated_chunk():
    """Our keys stand in one order and defaults are left out, so that diffs stay small."""
    data = generate(body="Body.\n", questions=["Why?"], source="a.md", overlap=0, headings=["A"])
    origin = hashing.origin_hash("Body.\n")
    assert data.decode().splitlines() == [
        "---",
        'source: "a.md"',
        'headings: ["A"]',
        f'origin: "{origin}"',
        'questions: ["Why?"]',
        "---",
        "Body.",
    ]


def test_a_file_without_frontmatter_is_a_chunk():
    """Plain text is a chunk with nothing but a body."""
    chunk = parse(b"\xef\xbb\xbfJust text.\n")
    assert (chunk.body, chunk.source, chunk.kind, chunk.order) == ("Just text.\n", None, None, None)
    assert (chunk.overlap, chunk.headings, chunk.pages, chunk.questions) == (0, (), (), ())
    assert (chunk.level, chunk.children, chunk.origin, chunk.frontmatter) == (None, (), None, {})


def test_keys_that_are_not_ours_belong_to_the_user():
    """Every other key is kept as it was read; a null of ours is as good as absent."""
    chunk = parse(b"---\ntitle: Soup\nsource:\npages: 3\nrating: 4.5\n---\nBoil.\n")
    assert dict(chunk.user) == {"title": "Soup", "rating": 4.5}
    assert chunk.frontmatter == {"title": "Soup", "source": None, "pages": 3, "rating": 4.5}
    assert (chunk.source, chunk.pages) == (None, (3,))


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ("source: 3", "source", "must be text, found the value 3"),
        ("kind: page", "kind", "found text 'page'"),
        ("order: [a]", "order", "must be text, found a list"),
        ("overlap: -1", "overlap", "integer from 0"),
        ("overlap: true", "overlap", "found the value True"),
        ("headings: Intro", "headings", "a list of texts, found text 'Intro'"),
        ("questions: [1]", "questions", "a list of texts, found the value 1"),
        ("pages: [0]", "pages", "found the value 0"),
        ("pages: [1.5]", "pages", "found the value 1.5"),
        ("level: one", "level", "integer from 0"),
        ("origin: {}", "origin", "found a mapping"),
        ("children: x", "children", "path"),
        ("children: [x]", "children", "path"),
        ('"children": [{"path": "x"}]', "children", "path"),
    ],
)
def test_a_wrong_type_is_named_with_its_line(line, key, message):
    """A bad value of ours is reported with key, expectation, finding and line."""
    with pytest.raises(InvalidMetadata, match=message) as caught:
        parse(f"---\ntitle: x\n{line}\n---\nbody\n".encode())
    assert (caught.value.key, caught.value.line) == (key, 3)


def test_a_body_that_is_not_utf_8_is_located():
    """The message says on which line and at which byte the text breaks off."""
    with pytest.raises(BadEncoding) as caught:
        parse(b"---\na: 1\n---\none\ntw\xe9\n")
    assert (caught.value.line, caught.value.offset) == (5, 19)


def test_malformed_frontmatter_is_passed_on():
    """A chunk whose frontmatter cannot be read is refused with the line."""
    with pytest.raises(MalformedFrontmatter) as caught:
        parse(b"---\na: 1\na: 2\n---\n")
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Text.", False),
        ("Text.\n\n", False),
        ("Text!\n", True),
        ("", True),
    ],
)
def test_an_edited_body_shows(body, expected):
    """Only a change that counts makes a chunk hand-edited; final line ends do not."""
    data = generate(body="Text.\n").replace(b"Text.\n", body.encode())
    assert hand_edited(parse(data)) is expected


def test_a_hand_written_file_is_not_hand_edited():
    """Without an origin there is nothing the body could differ from."""
    assert not hand_edited(parse(b"Text.\n"))


def test_texts_are_body_and_questions():
    """Part 0 is the headings with the body, part n the n-th question."""
    chunk = parse(generate(body="Body.\n", headings=["A", "B"], questions=["One?", "Two?"]))
    assert texts(chunk) == ("A > B\n\nBody.\n", "One?", "Two?")
    assert embed_text((), "Body.\n") == "Body.\n"


@given(SEVERAL, BODIES)
def test_a_byte_order_mark_and_line_ends_change_no_embedding(headings, body):
    """The text that is embedded has the same key however an editor saved the body."""
    assume("\r" not in body and not body.startswith("\ufeff"))
    saved = "\ufeff" + body.replace("\n", "\r\n") + "\r\n"
    keys = {hashing.embedding_key(embed_text(headings, text)) for text in (body, saved)}
    assert len(keys) == 1


@given(OURS, OURS, BODIES)
def test_an_update_changes_our_keys_and_no_other_byte(ours, changes, body):
    """The user's lines and the body survive an update byte for byte."""
    mine = b"# mine\ntitle: 'x'   # quoted\nlist:\n  - a\n"
    data = generate(body=body, **ours).replace(b"---\n", b"---\n" + mine, 1)
    updated = update(data, **changes)
    before, after = parse(data), parse(updated)
    for key in ours.keys() | changes.keys():
        assert getattr(after, key) == changes.get(key, getattr(before, key))
    assert mine in updated
    assert after.body == body
    assert after.user == before.user


@pytest.mark.parametrize("changes", [{"title": "x"}, {"overlap": -1}, {"headings": ("a", 1)}])
def test_an_update_with_a_wrong_key_or_type_is_refused(changes):
    """A key of the user's and a value we could not read are refused."""
    with pytest.raises(ValueError, match=r"title|overlap|headings"):
        update(b"text", **changes)


# Names


def test_names_by_number():
    """Numbered names say their kind and number, wherever they stand."""
    assert chunk_name(12) == "chunk12.md"
    assert number_of_name("guide/chunk12-k7q2.md") == 12
    assert kind_of_name("guide/chunk12.md") == "chunk"
    assert (kind_of_name("summary3.md"), number_of_name("summary3.md")) == ("summary", 3)


@pytest.mark.parametrize(
    "name",
    ["notes.md", "chunk.md", "chunk1.txt", "mychunk1.md", "chunk1/notes.md", "chunk1.md.bak"],
)
def test_names_without_a_number(name):
    """Other names say neither kind nor number."""
    assert kind_of_name(name) is None
    assert number_of_name(name) is None


@given(WHOLE_LINES, TEXTS, st.integers(1, 10**6))
def test_an_inserted_name_tells_contents_apart(body, other, number):
    """The same text gets the same name anywhere; a name that is taken is made longer."""
    name = inserted_name(number, body, ())
    assert name == inserted_name(number, body + "\n", ())
    assert number_of_name(name) == number
    longer = inserted_name(number, other, {name})
    assert longer != name
    assert longer.startswith(f"chunk{number}-")


def test_an_inserted_name_runs_out():
    """If every name for a text is taken, that is an error and not an endless search."""

    class Everything:
        def __contains__(self, name: object) -> bool:
            return True

    with pytest.raises(ValueError, match="taken"):
        inserted_name(1, "text", Everything())


@given(TEXTS, WHOLE_LINES)
def test_flat_names_come_from_source_and_content(source, body):
    """A flat name is a function of source and text, and steps aside for those that are taken."""
    first = flat_name(source, body, ())
    assert len(first) == 16
    assert first == flat_name(source, body + "\n", ())
    second = flat_name(source, body, {first})
    third = flat_name(source, body, {first, second})
    assert len({first, second, third, flat_name(source + "x", body, ())}) == 4
    assert set(record_stem(source)) <= set("abcdefghijklmnopqrstuvwxyz234567")
    assert len(record_stem(source)) == 13


def test_a_source_whose_name_is_not_utf_8_has_a_record():
    """A name as the operating system gave it, whatever its bytes, has its own stem."""
    assert record_stem("caf\udce9.md") != record_stem("café.md")


def test_files_sort_by_key_number_and_path():
    """Keys come first, implied by the number where absent; files with neither come last."""
    (inserted,) = order_key.between("a2", "a3", tag="k7q2", count=1)
    expected = [
        (None, "r/chunk1.md"),
        (None, "r/chunk2.md"),
        (inserted, "r/chunk2-k7q2.md"),
        (None, "r/chunk3.md"),
        (None, "r/chunk10.md"),
        (None, "r/chunk36.md"),
        ("c", "r/a.md"),
        ("c", "r/b.md"),
        ("c", "r/chunk1-x.md"),
        (None, "r/appendix.md"),
        (None, "r/notes.md"),
    ]
    shuffled = sorted(expected, key=lambda item: item[1][::-1])
    assert shuffled != expected
    assert sorted(shuffled, key=lambda item: sort_key(*item)) == expected


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_numbered_files_sort_by_number(one, other):
    """Without any key, files sort by their numbers and not as texts."""
    assert (one < other) == (sort_key(None, chunk_name(one)) < sort_key(None, chunk_name(other)))


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("", "chunk3.md"),
        ("Renewal of the Lease", "chunk3-renewal-of-the-lease.md"),
        ("§ 4.1: Größe — U\u0308ber/unter", "chunk3-4-1-größe-über-unter.md"),
        ("契約の更新", "chunk3-契約の更新.md"),
        ("नवीकरण नियम", "chunk3-नवीकरण-नियम.md"),
        ("../../etc \x1b[31m\u202e", "chunk3-etc-31m.md"),
        ("!?", "chunk3.md"),
        ("word " * 30, f"chunk3-{'-'.join(['word'] * 8)}.md"),
        ("x" * 300, f"chunk3-{'x' * 40}.md"),
    ],
)
def test_a_name_has_words_of_a_heading(heading, name):
    """Of any script, on a length that every file system holds, and the number is what it was."""
    assert chunk_file.chunk_name(3, heading) == name
    assert chunk_file.number_of_name(name) == 3
    inserted = chunk_file.inserted_name(3, "Body.", {name}, folder="a/", heading=heading)
    assert inserted.startswith("a/chunk3-")
    assert chunk_file.number_of_name(inserted) == 3
