"""What must hold of telling conflicts from text about them, and of saying where they are."""

import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.chunks import chunk_file
from filestore.chunks.kept import conflict_lines
from filestore.chunks.layout import TREE, describe_unread
from filestore.chunks.observation import INDEXED, RECORD, Observation

MARKS = b"<<<<<<< ours\nOne.\n=======\nTwo.\n>>>>>>> theirs\n"
LINES = st.lists(
    st.sampled_from(
        [b"<<<<<<< HEAD", b"<<<<<<<", b"=======", b">>>>>>> b", b">>>>>>>", b"text", b" ======="]
    ),
    max_size=12,
)


def seen(data, name="chunk1.md"):
    """What is made of some bytes."""
    look = Observation(path=f"r/{name}", values=(0, 0, 0, 0, 0), state=INDEXED, data=data)
    TREE.interpret(look, name)
    return look.state, look.detail


def first_triple(lines):
    """Whether the three marks stand in a row of lines in their order, by trying all of them."""
    kinds = [line[:7] if line[:1] in b"<=>" else b"" for line in lines]
    return any(
        kinds[a] == b"<<<<<<<" and kinds[b] == b"=======" and kinds[c] == b">>>>>>>"
        for a in range(len(kinds))
        for b in range(a + 1, len(kinds))
        for c in range(b + 1, len(kinds))
    )


@given(LINES, st.sampled_from([b"\n", b"\r\n"]))
def test_a_conflict_is_its_three_marks_in_order(lines, newline):
    """Anchored to their lines, whatever stands between; and the lines told are theirs."""
    found = conflict_lines(newline.join(lines))
    assert (found is not None) is first_triple(lines)
    if found is not None:
        marks = [lines[number - 1][:7] for number in found]
        assert marks == [b"<<<<<<<", b"=======", b">>>>>>>"]
        assert sorted(found) == list(found)


def test_a_generated_text_may_be_about_conflicts():
    """A body that is as it was generated holds what its source said; an edited one does not."""
    data = chunk_file.generate(body=f"Git writes\n\n{MARKS.decode()}")
    assert seen(data)[0] == INDEXED
    state, detail = seen(data + b"More.\n")
    assert state == "conflict-markers"
    assert "lines 6, 8 and 10" in detail


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b"Text.\n\n", b"More.\n"),
        (b"```sh\ngit merge\n```\n", b"```\nOther code.\n```\n"),
        (b"```a``` is code\n", b"```\n"),
        (b"~~~\n```\n~~~\n", b""),
        (b"````\n```\n````\n", b"````\n"),
    ],
)
def test_a_conflict_in_a_note_is_one(before, after):
    """A person's own file that git could not merge is withheld, and its lines are told."""
    data = before + MARKS + after
    state, detail = seen(data)
    assert state == "conflict-markers"
    first, middle, last = conflict_lines(data)
    assert f"lines {first}, {middle} and {last}" in detail


def test_every_conflict_of_a_note_is_counted():
    """A person who resolved the first one knows that there are more, and where."""
    one_detail, detail = seen(MARKS)[1], seen(MARKS + b"Text.\n" + 2 * MARKS)[1]
    after = MARKS.count(b"\n") + 2
    assert detail == f"{one_detail}; then 2 more, from line {after} on"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"```\n", b"```\n"),
        (b"Git writes:\n\n~~~~ diff\n~~~\n", b"~~~~\n"),
        (b"```\nnever closed\n", b""),
        (b"---\ntags: git\n---\n   ```\n", b"```\n"),
    ],
)
def test_a_note_may_be_about_conflicts(before, after):
    """What it shows as code is no conflict of its own; one beside it is."""
    assert seen(before + MARKS + after)[0] == INDEXED
    if after:
        state, detail = seen(before + MARKS + after + b"\n" + MARKS)
        line = (before + MARKS + after).count(b"\n") + 2
        assert (state, f"lines {line}," in detail) == ("conflict-markers", True)


def test_a_conflict_that_spans_code_is_one():
    """A mark outside of the code, or the end of the code between the marks, is no example."""
    cut = b"<<<<<<< ours\n```\nOne.\n=======\n```\nTwo.\n>>>>>>> theirs\n```\n"
    assert seen(cut)[0] == "conflict-markers"
    ended = b"```\n<<<<<<< ours\n```\nOne.\n=======\nTwo.\n>>>>>>> theirs\n"
    assert seen(ended)[0] == "conflict-markers"


@pytest.mark.parametrize(
    ("code", "name", "mode", "words"),
    [
        ("symlink", "a.md", stat.S_IFLNK, r"a symbolic link to ../b\xff.md"),
        ("special-file", "a.md", stat.S_IFIFO, "a named pipe"),
        ("special-file", "a.md", stat.S_IFSOCK, "a socket"),
        ("oversized", "a.md", stat.S_IFREG, "found 17,000,000 bytes, expected 16,777,216"),
        ("litter", "a.txt", stat.S_IFREG, "a file of 17,000,000 bytes"),
        ("litter", ".a.md", stat.S_IFREG, "a hidden file of 17,000,000 bytes"),
        (
            "leftovers",
            ".filestore-tmp-1",
            stat.S_IFREG,
            "17,000,000 bytes left by a filestore process that was killed",
        ),
    ],
)
def test_what_is_not_read_is_described(code, name, mode, words):
    """A person is told what stands there, with its size or target."""
    assert TREE.unread_code(name, mode, 17_000_000) == code
    assert words in describe_unread(code, name, mode, 17_000_000, b"../b\xff.md")


def test_an_empty_file_says_of_what():
    """No bytes at all, or a frontmatter without a text."""
    assert seen(b"") == ("empty", "found 0 bytes, expected a text")
    assert "found 13 bytes" in seen(b"---\na: 1\n---\n")[1]


@pytest.mark.parametrize(
    "data",
    [
        b"---\ntags: green\n" + MARKS + b"---\nText.\n",
        b"---\n<<<<<<< ours\na: 1\n---\nOne.\n=======\n---\nTwo.\n>>>>>>> theirs\n",
        b"<<<<<<< ours\n---\na: 1\n---\nOne.\n=======\nTwo.\n>>>>>>> theirs\n",
        b"---\npages: x\n" + MARKS,
    ],
)
def test_a_conflict_in_the_frontmatter_is_the_reason(data):
    """The file is unreadable because of the conflict, and that is what is said."""
    state, detail = seen(data)
    assert state == "conflict-markers"
    first, middle, last = conflict_lines(data)
    assert f"lines {first}, {middle} and {last}" in detail


def test_a_wrong_frontmatter_above_a_text_about_conflicts_is_wrong_by_itself():
    """The marks in the body did not make it so."""
    state, detail = seen(b"---\npages: x\n---\n" + MARKS)
    assert state == "invalid-metadata"
    assert "line 2, column 1" in detail
    assert seen(b"---\na: [\n---\n" + MARKS)[0] == "malformed-frontmatter"


def test_a_conflict_in_a_record_is_the_reason():
    """A record that git could not merge is no JSON, for that reason."""
    state, detail = seen(b'{\n  "format": 1,\n' + MARKS + b"}\n", "meta.json")
    assert (state, "lines 3, 5 and 7" in detail) == ("conflict-markers", True)
    assert seen(b'{\n  "format" 1\n}\n', "meta.json")[0] == "record-invalid"
    assert RECORD != INDEXED


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'---\na: 1\nb: "open\n---\nText.\n', "line 4, column 1"),
        (b"---\n\xff: 1\n---\nText.\n", "line 2, column 1"),
        (b"---\na: 1\n  \npages: x\n---\nText.\n", "line 4, column 1"),
        (b"---\n'pages': 0\n---\nText.\n", "line 2, column 1"),
        (b"Text.\nna\xefve\n", "line 2, byte 8"),
    ],
)
def test_what_cannot_be_read_says_where(data, words):
    """A person finds the place in an editor."""
    assert words in seen(data)[1]
