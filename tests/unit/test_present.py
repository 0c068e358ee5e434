"""The words of the inspector, without a screen and without a store."""

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore import Answer, FilestoreError, Finding, Hit, Shown, Status
from tui import present

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
NASTY = "a\x1b[31mb\u202ec\x9b2J\nd\udcff"
texts = st.text(st.characters() | st.sampled_from("\x1b\x9b\u202e\udcff\n\r\t"))


def status(*findings, clean=False, files=7):
    return Status(clean=clean, generation=3, files=files, findings=findings)


def shown(body="Text.\n", frontmatter=None, **record):
    known = {"indexed": True, "freshness": "fresh", "kind": "chunk", "source": "../a.md"}
    return Shown(
        path="chunked/a.md/chunk1.md",
        frontmatter=frontmatter or {},
        body=body,
        record=known | record,
    )


def hit(**changes):
    value = Hit(
        path="chunked/a.md/chunk1.md",
        score=1.0,
        kind="chunk",
        resource="a.md",
        source="../a.md",
        freshness="fresh",
        headings=("Top", "Middle", "Low"),
        pages=(),
        text="Text.",
        why={},
    )
    return dataclasses.replace(value, **changes)


def answer(*hits, notes=()):
    return Answer(query="q", mode="hybrid", generation=1, hits=hits, notes=notes)


def words(lines):
    return "\n".join(line.text for line in lines)


def roles(lines):
    return {line.role for line in lines}


@given(texts)
def test_no_text_of_a_file_steers_the_terminal(text):
    """Whatever stands in names, headings, keys, findings and bodies, no line carries a control."""
    found = [Finding(code="modified", path=text, detail=text)]
    item = {"path": text, "resource": text, "chunks": 1, "source": text, "edited": False}
    chunk = shown(
        body=text,
        frontmatter={"headings": [text], "source": text, "tags": [text], text: text},
        source=text,
        kind=text,
        withheld=text,
        document={text: text},
    )
    lines = [
        *present.chunk_lines(chunk, found),
        *present.resource_lines(item),
        *present.drift_lines(status(*found)),
        *present.summary(status(), root=text, checked_at="12:00:00"),
        *present.error_lines(FilestoreError(text, remedy=text), found),
        *present.start_lines(FilestoreError(text), absent=True),
        *present.answer_lines(answer(notes=(text,)), limit=5),
        *present.hit_lines(1, hit(path=text, headings=(text,))),
        *present.hit_lines(1, hit(headings=(), source=text)),
    ]
    labels = [
        present.resource_label(item),
        present.chunk_label(item | {"withheld": text}, text, found),
        present.more_label(3, text),
    ]
    for written in [line.text for line in lines] + labels:
        assert not UNSAFE.search(written)
    assert not any("\n" in label for label in labels)


def test_body_keeps_its_lines_and_fields_stay_on_one():
    """A line feed parts lines of the text, and is made visible in a heading."""
    lines = present.chunk_lines(shown(body="a\r\nb\tc\n", frontmatter={"headings": [NASTY]}), ())
    assert lines[-1].text == "a\nb\tc"
    (headings,) = [line.text for line in lines if line.text.startswith("headings")]
    assert headings == "headings   a\\x1b[31mb\\u202ec\\x9b2J\\x0ad\\xff"


@pytest.mark.parametrize(
    ("record", "said", "role"),
    [
        ({}, "fresh: as it was indexed", "good"),
        ({"freshness": "edited"}, "edited: not what was indexed", "warning"),
        ({"indexed": False}, "not indexed", "warning"),
        ({"indexed": False, "withheld": "empty"}, "left out of answers: empty", "error"),
    ],
)
def test_freshness_is_said_in_words(record, said, role):
    """Fresh, edited, unknown to the index and withheld are told apart."""
    (line,) = [
        line
        for line in present.chunk_lines(shown(**record), ())
        if line.text.startswith("freshness")
    ]
    assert said in line.text
    assert line.role == role


def test_preview_names_headings_source_and_the_users_keys():
    """The preview says where a chunk comes from and what its frontmatter adds."""
    lines = present.chunk_lines(
        shown(
            frontmatter={"headings": ["A", "B"], "origin": "sha256:00", "tags": ["x", "y"]},
            document={"title": "Notes"},
            hand_edited=True,
        ),
        [Finding(code="modified", path="chunked/a.md/chunk1.md")],
    )
    written = words(lines)
    assert "A > B" in written
    assert "../a.md" in written
    assert '["x", "y"]' in written
    assert "title: Notes" in written
    assert "by hand" in written
    assert "modified: index the file again" in written
    assert "sha256" not in written


def test_long_texts_are_cut_and_it_is_said():
    """What the preview leaves out of a long text is counted."""
    body = "x" * (present.MAX_BODY_CHARACTERS + 1234)
    lines = present.chunk_lines(shown(body=body), ())
    assert len(lines[-2].text) == present.MAX_BODY_CHARACTERS
    assert "1,234 characters more" in lines[-1].text


def test_drift_is_grouped_by_code():
    """Each code stands once, with its severity in words, its repair and all its paths."""
    lines = present.drift_lines(
        status(
            Finding(code="modified", path="chunked/a", detail="same"),
            Finding(code="modified", path="chunked/b", detail="same"),
            Finding(code="malformed-frontmatter", path="chunked/c", detail="line 2, column 1"),
            Finding(code="untracked", path="chunked/d"),
        )
    )
    written = words(lines)
    assert written.count("modified") == 1
    assert "error: modified (2)\n  same\n  repair: index the file again\n" in written
    assert "    chunked/a\n    chunked/b\n" in written
    assert "line 2, column 1" in written
    assert "warning: untracked (1)" in written
    assert "'filestore sync' mends 3 of 4." in written


def test_many_paths_are_counted_not_listed():
    """Beyond a screenful of paths the rest is a number, so that nothing is hidden in silence."""
    found = [Finding(code="untracked", path=f"chunked/{n}") for n in range(present.MAX_PATHS + 5)]
    lines = present.drift_lines(status(*found))
    assert "… 5 more" in words(lines)
    assert len(lines) < present.MAX_PATHS + 10


def test_clean_is_said_only_of_what_was_checked():
    """A clean store says what kind of check found it so; one not yet checked says that."""
    assert "by size and time stamps" in words(present.drift_lines(status(clean=True)))
    assert "checking" in words(present.drift_lines(None))
    assert "clean" not in words(present.drift_lines(None))


@pytest.mark.parametrize(
    ("value", "said", "role"),
    [
        (status(clean=True), "clean at 12:00:00", "good"),
        (status(Finding(code="litter", path="x"), clean=True), "clean, with 1 finding", "good"),
        (status(Finding(code="untracked", path="x")), "1 finding at", "warning"),
        (status(*[Finding(code="missing", path=p) for p in "xy"]), "2 findings at", "error"),
        (None, "checking", "quiet"),
    ],
)
def test_summary_says_how_the_store_stands(value, said, role):
    """The top line counts the findings and takes the colour of the worst."""
    (line,) = present.summary(value, root="/store", checked_at="12:00:00")
    assert line.text.endswith("/store")
    assert line.text.startswith(said)
    assert line.role == role


def test_chunks_in_the_tree_are_marked():
    """A chunk's label is its name below its resource, and what is the matter with it."""
    item = {"path": "chunked/a/sub/chunk1.md", "edited": False, "withheld": None}
    assert present.chunk_label(item, "a", ()) == "sub/chunk1.md"
    assert present.chunk_label(item, "", ()) == "a/sub/chunk1.md"
    found = [Finding(code="empty", path=item["path"])]
    marked = present.chunk_label(item | {"edited": True, "withheld": "empty"}, "a", found)
    assert marked == "sub/chunk1.md  [empty, edited by hand]"


def test_hits_that_are_not_fresh_say_so():
    """Edited and gone files are marked; a fresh one is not."""
    assert len(present.hit_lines(1, hit())) == 2
    assert "edited since" in words(present.hit_lines(1, hit(freshness="edited")))
    assert "gone" in words(present.hit_lines(1, hit(freshness="gone")))


def test_answer_says_its_mode_its_notes_and_that_there_may_be_more():
    """A full list is called the best so many; an empty one says that nothing was found."""
    assert "the best 2 files" in words(present.answer_lines(answer(hit(), hit()), limit=2))
    few = present.answer_lines(answer(hit(), notes=("keyword only",)), limit=2)
    assert words(few).startswith("1 file · hybrid")
    assert "keyword only" in words(few)
    assert "warning" in roles(few)
    assert "nothing found" in words(present.answer_lines(answer(), limit=2))


def test_start_screen_says_how_to_make_a_store():
    """Only where there is no store is one asked to make one."""
    error = FilestoreError("no store here", remedy="do something")
    absent = words(present.start_lines(error, absent=True))
    assert "filestore init" in absent
    assert "try: do something" in absent
    assert "filestore init" not in words(present.start_lines(error, absent=False))


def test_help_names_every_key():
    """What the help lists is what the table of keys holds, and that nothing is changed."""
    written = words(present.help_lines())
    for keys, meaning in present.HELP:
        assert keys in written
        assert meaning in written
    assert "changes neither files nor index" in written
