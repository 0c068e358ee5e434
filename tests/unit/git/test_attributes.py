"""What git is told of line ends: our lines win, a person's stay, and text alone is text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.git import attributes

LINES = st.lists(
    st.sampled_from(
        [
            b"",
            b"# chunked/** text eol=lf",
            b"*.png -text",
            b"chunked/** text eol=crlf",
            b"chunked/** text",
            b"chunked/** text eol=lf merge=union",
            b"source/** -text",
            b"\xff\xfe\r",
            b"chunked/** -text",
        ]
    ),
    max_size=6,
)
OURS = st.sampled_from(
    [b"chunked/** text eol=lf", b"chunked/**  text\teol=lf ", b"chunked/** text eol=lf\r"]
)


APPENDED = attributes.FILE.split(b"\n")[:-1]


@given(before=LINES, ours=OURS, after=LINES)
def test_every_other_line_stays_byte_for_byte(
    before: list[bytes], ours: bytes, after: list[bytes]
) -> None:
    """Whatever a person wrote above and below, it is there as it was, in its order."""
    end = b"\r" if ours.endswith(b"\r") else b""
    mine = [line + end for line in attributes.LINES]
    replaced = b"\n".join([*before, *mine, *after])
    added = attributes.corrected(b"\n".join([*before, ours, *after])).removeprefix(replaced)
    assert added in (b"", attributes.FILE, b"\n" + attributes.FILE)


@given(lines=LINES)
def test_where_our_old_line_is_not_ours_come_last(lines: list[bytes]) -> None:
    """Lines that only look like ours are a person's, and stay."""
    data = b"\n".join(lines)
    assert attributes.old_line(data) == 0
    made = attributes.corrected(data)
    assert made.startswith(data)
    assert made.endswith(attributes.FILE)


@given(lines=LINES, ours=st.one_of(st.just(b"# nothing"), OURS), above=LINES)
def test_it_is_mended_once(lines: list[bytes], ours: bytes, above: list[bytes]) -> None:
    """What is mended has no old line, is safe whatever stands above it, and stays as it is."""
    data = b"\n".join([*lines, ours, *lines])
    made = attributes.corrected(data)
    assert attributes.old_line(made) == 0
    assert attributes.corrected(made) == made
    assert told(*above, b"* text", own=made.split(b"\n")) is None


def told(*above: bytes, own: list[bytes]) -> attributes.Culprit | None:
    """What takes pictures for text, with lines above the store and lines of its own."""
    return attributes.culprit(
        [
            attributes.AttributesFile(folder="deep/index", data=b"\n".join(above)),
            attributes.AttributesFile(folder="", data=b"\n".join(own)),
        ]
    )


HARMFUL = [
    b"* text=auto eol=lf",
    b"* eol=crlf",
    b"/chunked/** text eol=lf",
    b"chunked/** eol=lf text",
    b"chunked/** text",
    b"chunked/**/*.p?g text",
    b"[a-c].png crlf=input",
    b'"*.pdf" text',
    b"**/a/*.docx text",
    b"source/a/b/* text",
    b"* binary text",
    b"* -crlf text",
]
HARMLESS = [
    b"",
    b"# * text",
    b"!* text",
    b"*.md text",
    b"chunked/ text",
    b"chunked text",
    b"chunked/*/*/b.png text",
    b"a/b.png text",
    b"* text -text",
    b"* text\n* binary",
    b"* eol=lf\n* -text",
    b"* -crlf eol=lf",
    b"* text=auto\n* !text",
    b"*.png diff=exif",
    b"* text " + b"x" * 3000,
]


@pytest.mark.parametrize("line", HARMFUL)
def test_a_line_counts_by_what_it_does(line: bytes) -> None:
    """Any spelling by which git takes a picture for text is found; ours after it make it safe."""
    found = told(own=[line])
    assert found is not None
    assert (found.folder, found.number) == ("", 1)
    assert told(own=[b"\xef\xbb\xbf" + line]) is not None
    assert told(own=[line, *APPENDED]) is None
    # Ours say that it is no text, so that a line end alone changes nothing.
    assert (told(own=[*APPENDED, line]) is None) == (b"text" not in line)


@pytest.mark.parametrize("line", HARMLESS)
def test_what_does_nothing_to_a_picture_is_no_finding(line: bytes) -> None:
    """Comments, other files, what is taken back: git leaves what is no text alone."""
    assert told(own=[line]) is None


def test_a_line_above_the_store_counts_where_none_of_its_own_does() -> None:
    """It is named by the folder that it stands in; a store's own line wins."""
    found = told(b"*.gif text", b"*.zip text", own=[b"*.png -text"])
    assert found is not None
    assert (found.folder, found.number) == ("deep/index", 2)
    assert told(b"deep/index/chunked/*.png text", own=[]) is not None
    assert told(b"index/chunked/*.png text", own=[]) is None
    assert told(b"* text", own=[b"* -text"]) is None


def test_macros_that_lead_on_and_on_are_given_up() -> None:
    """A file of a stranger cannot make the search for their end fail."""
    chain = [b"[attr]m%d m%d" % (number, number + 1) for number in range(3000)]
    assert told(*chain, b"* m0", own=[]) is None
    circle = [b"[attr]one two", b"[attr]two one text"]
    assert told(*circle, b"* one", own=[]) is not None
    assert told(b"[attr]words text", own=[b"* words"]) is not None
    # Git takes none from a file deeper down.
    assert told(own=[b"[attr]words text", b"* words"]) is None


def test_a_new_store_has_no_old_line() -> None:
    """What is written into a new store needs no repair."""
    assert attributes.old_line(attributes.FILE) == 0


@given(rest=st.binary(max_size=40))
def test_a_picture_that_lost_its_line_end_shows_it(rest: bytes) -> None:
    """The signature of a PNG tells whether git took the CR out of it."""
    whole = b"\x89PNG\r\n\x1a\n" + rest
    assert not attributes.lost_its_line_ends(whole)
    assert attributes.lost_its_line_ends(attributes.stripped(whole))
