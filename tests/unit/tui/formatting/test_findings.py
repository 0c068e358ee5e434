"""The words for findings and evidence: true, whole, and safe for a terminal."""

from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore import CODES, FilestoreError, Finding
from filestore.browse import Evidence, Neighbour
from tui.formatting import error_lines, plain
from tui.formatting import findings as words

FINDING = Finding(code="modified", path="chunked/guide/chunk1.md", detail="its text differs")
NOTHING = Evidence(
    finding=FINDING,
    diff="",
    diff_cut=False,
    indexed_hash="",
    disk_hash="",
    origin="",
    line=0,
    column=0,
    excerpt=(),
    notes=(),
)
DIFF = "--- indexed/a\n+++ on disk/a\n@@ -1 +1 @@\n-Milk.\n+Bread.\n"
hostile = st.text(
    st.one_of(st.sampled_from("\x1b\x07\x9b\u202e\n\r\t\ud800[]{}"), st.characters()), max_size=20
)


def evidence(**values):
    """Evidence with some of its parts."""
    return Evidence(**{name: getattr(NOTHING, name) for name in NOTHING.__slots__} | values)


def near(path, cosine):
    """A neighbour."""
    return Neighbour(path=path, resource="guide", cosine=cosine, headings=(), pages=())


def is_safe(lines):
    """Whether no character of any line moves or turns a terminal."""
    texts = [span.text for line in lines for span in line]
    unsafe = ("Cc", "Cs", "Zl", "Zp")
    return not any(category(one) in unsafe or one in "\u202e\u2066" for one in "".join(texts))


def is_shown(text):
    """The words of lines, on one line."""
    return " ".join(plain(text).split())


@pytest.mark.parametrize("code", CODES)
def test_severity_is_a_letter_a_sign_and_a_word(code):
    """How bad a finding is can be told without colour: every code by letter, sign and word."""
    finding = Finding(code=code, path="chunked/a.md")
    said = {"E": "E x error", "W": "W ! warning", "I": "I i note"}[finding.severity]
    flat = words.finding_line(finding, in_group=False, from_before=False)
    assert said in plain([flat])
    assert code in plain([flat])
    assert said in plain([words.counts_line({finding.severity: 3}, marked=0)])
    assert said[:3] in plain([words.group_line(finding, 3, is_open=True, marked=0)])
    assert finding.repair in is_shown(words.finding_lines(finding))


def test_the_row_of_a_group_says_how_many_and_what_helps():
    """A group shows its number, what mends it, how many are marked, and whether it is open."""
    closed = plain([words.group_line(FINDING, 1200, is_open=False, marked=7)])
    opened = plain([words.group_line(FINDING, 1200, is_open=True, marked=0)])
    assert "1,200" in closed
    assert "7 marked" in closed
    assert "changed since it was indexed" in closed
    assert "marked" not in opened
    assert closed[0] != opened[0]


def test_a_finding_without_a_path_is_about_the_whole_store():
    """Where no file is meant, the row says so in words."""
    finding = Finding(code="locked", path="")
    assert "the whole store" in plain(
        [words.finding_line(finding, in_group=True, from_before=False)]
    )


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("", "not verified yet"),
        ("status", "compared by size and time stamp at 14:03: 2 findings"),
        ("fast", "verified fast at 14:03: 2 findings"),
        ("full", "verified in full at 14:03: 2 findings"),
        ("deep", "verified deep at 14:03: 2 findings"),
    ],
)
def test_the_head_says_how_thoroughly_and_when(level, said):
    """What was looked at last stands there with its time and what came of it."""
    looked = words.Coverage(level=level, at="14:03")
    assert plain([words.looked_line(looked, found=2, clean=False)]).startswith(said)


def test_a_stopped_verification_is_not_called_clean():
    """Stopped without a finding, the head does not say clean but that this is not all."""
    stopped = words.Coverage(level="full", at="1:00", was_stopped=True)
    said = plain([words.looked_line(stopped, found=0, clean=True)])
    assert "stopped" in said
    assert "incomplete" in said
    assert "clean" not in said
    assert "verified in full" not in said


def test_files_that_were_looked_at_later_have_their_time() -> None:
    """What was found after the whole was looked at is not passed off as found by then."""
    again = words.Coverage(level="full", at="1:00", again="2:00")
    said = plain([words.looked_line(again, found=1, clean=None)])
    assert said.startswith("verified in full at 1:00, changed files at 2:00: 1 finding")


def test_clean_is_said_with_what_was_accepted():
    """A store without findings is clean; with accepted ones it is clean, and they are counted."""
    full = words.Coverage(level="full")
    assert "clean" in plain([words.looked_line(full, found=0, clean=True)])
    said = plain([words.looked_line(full, found=3, clean=True)])
    assert "clean, with 3 findings accepted" in said


def test_what_was_not_checked_is_said():
    """Whatever a level left out stands there; nothing is passed off as checked."""
    assert "vectors; the model" in plain([words.not_checked_line("fast", ("vectors", "the model"))])
    assert "not checked: anything" in plain([words.not_checked_line("", ())])
    assert plain([words.not_checked_line("status", ("an original",))]).startswith(
        "not checked: contents of files with unchanged stats; rows of the embeddings; vectors"
    )
    assert plain([words.not_checked_line("status", ("an original",))]).endswith("; an original")
    assert plain([words.not_checked_line("deep", ())]) == "everything was checked"


def test_a_difference_keeps_its_signs_and_roles():
    """Lines that came or went are told by their sign and by the part they play."""
    lines = words.evidence_lines(evidence(diff=DIFF, diff_cut=True))
    roles = {span.text: span.role for line in lines for span in line}
    assert roles["-"] == roles["Milk."] == "removed"
    assert roles["+"] == roles["Bread."] == "added"
    assert roles["@@ -1 +1 @@"] == "hunk"
    assert "not shown" in plain(lines)


def test_hashes_are_shown_side_by_side():
    """Of indexed and present bytes as much of the hash is shown as a person compares."""
    said = plain(words.evidence_lines(evidence(indexed_hash="a" * 32, disk_hash="")))
    assert "indexed    aaaaaaaaaaaaaaaa" in said
    assert "on disk    no file" in said


@pytest.mark.parametrize("before", ["foo: ", "日本: ", "e\u0301: ", "\t"])
def test_a_pointer_stands_below_the_character_that_is_meant(before):
    """Below the line of a malformed file a mark stands in the cell of the column."""
    text = f"{before}}}"
    lines = words.evidence_lines(
        evidence(line=3, column=len(before) + 1, excerpt=((2, "---"), (3, text), (4, "---")))
    )
    assert f"line 3, column {len(before) + 1}" in plain(lines)
    shown = plain(lines).splitlines()
    place = next(number for number, line in enumerate(shown) if "3 | " in line)
    wide = shown[place].replace("日", "xx").replace("本", "xx").replace("\u0301", "")
    assert shown[place + 1].index("^") == wide.index("}")


def test_neighbours_are_compared():
    """Each neighbour stands once with both cosines; what came, went or moved has a sign."""
    then = (near("chunked/a.md", 0.9), near("chunked/b.md", 0.8), near("chunked/c.md", 0.7))
    now = (near("chunked/a.md", 0.9), near("chunked/b.md", 0.5), near("chunked/d.md", 0.4))
    lines = [plain([line]).split() for line in words.neighbour_lines(then, now, compared=True)]
    assert ["0.900", "0.900", "a.md"] in lines
    assert ["~", "0.800", "0.500", "b.md"] in lines
    assert ["-", "0.700", "-", "c.md"] in lines
    assert ["+", "-", "0.400", "d.md"] in lines
    one_side = [plain([line]).split() for line in words.neighbour_lines(then, None, compared=False)]
    assert ["0.700", "c.md"] in one_side


def test_no_neighbour_is_called_new_before_both_sides_are_known():
    """While only one side is there, nothing is said to have come or gone."""
    said = plain(words.neighbour_lines((near("chunked/a.md", 0.9),), None, compared=True))
    assert "+" not in said
    assert "~" not in said


def test_a_problem_is_said_with_its_remedy():
    """What could not be shown is said in words, with what to do about it."""
    said = plain(error_lines(FilestoreError("no model", remedy="install it"), "warning"))
    assert "no model" in said
    assert "install it" in said


def test_every_level_says_what_it_reads_and_costs():
    """The menu of levels has all three, the least thorough first, each with its price."""
    assert list(words.LEVELS) == ["fast", "full", "deep"]
    assert all("; " in about for about in words.LEVELS.values())


@given(hostile, hostile, hostile, st.sampled_from(("missing", "duplicate", "moved")))
def test_nothing_in_a_finding_reaches_a_terminal_raw(path, detail, other, code):
    """Whatever stands in paths, details, differences or excerpts, every line is safe."""
    finding = Finding(code=code, path=path, detail=detail, other=other)
    whole = evidence(
        finding=finding,
        diff=f"@@ {path}\n+{detail}\n-{other}\n",
        line=1,
        column=min(len(detail), 3),
        excerpt=((1, detail), (2, other)),
        notes=(path, detail),
        origin=other,
        indexed_hash=path,
    )
    lines = [
        *words.evidence_lines(whole),
        *words.neighbour_lines((near(path, 0.5),), (near(other, 0.4),), compared=True),
        *words.group_evidence_lines(finding, 2),
        words.finding_line(finding, in_group=False, from_before=True),
        words.group_line(finding, 2, is_open=True, marked=1),
        words.filters_line(detail, "E", code, shown=1),
        words.not_checked_line("full", (detail, path)),
    ]
    assert is_safe(lines)


def test_the_evidence_of_a_conflict_names_the_key_that_shows_both_sides():
    """Whichever key that is; of a finding without sides there is none."""
    with_key = plain(words.evidence_lines(NOTHING, side="t"))
    assert "t          shows both sides" in with_key
    assert "both sides" not in plain(words.evidence_lines(NOTHING))
