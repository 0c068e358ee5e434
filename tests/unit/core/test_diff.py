"""Two texts as a unified diff: whole, in place, and bounded."""

import re

from hypothesis import given
from hypothesis import strategies as st

from filestore.core.diff import MOST_BYTES, unified, unified_bytes

NAMES = ("then", "now")
_HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")

LINES = st.lists(st.sampled_from(["", "a", "b", "-c", "+d", " e", "\\f", "\rg", "@@"]), max_size=30)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def patched(before: str, diff: str) -> str:
    """What a diff makes of a text, as its format says."""
    old = before.splitlines(keepends=True) if "\r" not in before else _split(before)
    made, at = [], 0
    lines = diff.split("\n")[2:]
    for number, line in enumerate(lines):
        hunk = _HUNK.fullmatch(line)
        ended = "" if lines[number + 1 : number + 2] == [r"\ No newline at end of file"] else "\n"
        if hunk and lines[number - 1 : number] != [""] and not line.startswith(("+", "-", " ")):
            start = int(hunk[1]) - (int(hunk[2]) > 0)
            made += old[at:start]
            at = start
        elif line.startswith("\\"):
            continue
        elif line.startswith("-"):
            assert old[at] == line[1:] + ended
            at += 1
        elif line.startswith("+"):
            made.append(line[1:] + ended)
        else:
            assert line.startswith(" ")
            assert old[at] == line[1:] + ended
            made.append(old[at])
            at += 1
    return "".join([*made, *old[at:]])


def _split(text: str) -> list[str]:
    parts = text.split("\n")
    return [*(f"{part}\n" for part in parts[:-1]), *([parts[-1]] if parts[-1] else [])]


@given(TEXTS, TEXTS)
def test_applied_it_gives_the_new_text(before: str, after: str) -> None:
    """Whoever applies the diff to the old text has the new one, final line ends included."""
    found = unified(before, after, names=NAMES)
    assert not found.cut
    assert (found.text == "") == (before == after)
    if found.text:
        assert found.text.split("\n")[:2] == ["--- then", "+++ now"]
        assert patched(before, found.text) == after


def test_applied_it_gives_the_new_text_where_much_differs() -> None:
    """Texts too different to be laid beside each other are one change, which still applies."""
    same = "".join(f"same {number}\n" for number in range(10))
    before = same + "".join(f"old {number}\n" for number in range(4_000)) + same
    after = same + "".join(f"new {number}\n" for number in range(4_000)) + same
    found = unified(before, after, names=NAMES)
    assert found.text.count("\n@@") == 1
    assert found.line == 11
    assert patched(before, found.text) == after


@given(TEXTS, TEXTS)
def test_it_says_where_the_first_difference_is(before: str, after: str) -> None:
    """The line named is the first of the new text that is not the old one's; 0 for equal texts."""
    old, new = _split(before), _split(after)
    line = unified(before, after, names=NAMES).line
    if before == after:
        assert line == 0
    else:
        assert 1 <= line <= max(1, len(new))
        assert old[: line - 1] == new[: line - 1]
        assert line == max(1, len(new)) or old[line - 1 : line] != new[line - 1 : line]


@given(TEXTS, TEXTS, st.integers(0, 120))
def test_a_long_one_is_cut_and_said_to_be(before: str, after: str, most: int) -> None:
    """No more is given than was asked for, and what is given is how the whole begins."""
    whole = unified(before, after, names=NAMES)
    part = unified(before, after, names=NAMES, most_bytes=most)
    assert len(part.text.encode()) <= most
    assert whole.text.startswith(part.text)
    assert part.cut == (part.text != whole.text)
    assert part.line == whole.line


def test_a_line_longer_than_the_limit_is_cut_in_itself() -> None:
    """Of one endless line the beginning is shown, not nothing."""
    found = unified("short\n", "x" * 1_000_000, names=NAMES)
    assert found.cut
    assert len(found.text) <= MOST_BYTES
    assert "+xxxx" in found.text


@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(0, 120))
def test_bytes_say_in_a_last_line_that_they_are_cut(before: bytes, after: bytes, most: int) -> None:
    """Whatever bytes they are; what is whole has no such line."""
    whole = unified_bytes(before, after, names=NAMES, most_bytes=MOST_BYTES)
    part = unified_bytes(before, after, names=NAMES, most_bytes=most)
    is_cut = len(whole.encode()) > most
    assert part.endswith("\n(cut)") == is_cut
    assert len(part.removesuffix("\n(cut)").encode()) <= most
    assert part == whole or is_cut


def test_a_change_of_bytes_that_are_no_text_is_shown() -> None:
    """As in a file of an old encoding, of which every letter may be such a byte."""
    found = unified_bytes(b"gr\xfcn\n", b"gr\xf6n\n", names=NAMES, most_bytes=MOST_BYTES)
    assert found.split("\n")[3:] == [r"-gr\xfcn", r"+gr\xf6n"]
