"""Decisions about the lines of PDF pages: edges, paragraphs, broken words, headings, Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore.extract._pdf import iso_date, to_markdown
from filestore.extract._pdf.directions import logical, runs_left
from filestore.extract._pdf.headings import (
    OutlineEntry,
    evident_title,
    find_headings,
    without_furniture,
)
from filestore.extract._pdf.lines import (
    Line,
    PageLines,
    flowing_on,
    joined_pieces,
    measure,
    page_blocks,
)
from filestore.extract._pdf.words import Words, joined, plain, vocabulary

HEIGHT = 800.0
FULL = "These words fill the line from the left margin to the right one as prose does"


def line(
    text,
    *,
    top,
    page=0,
    left=70.0,
    right=None,
    size=10.0,
    typewriter=False,
    hyphen=False,
    bold=False,
    turn="none",
    tag=(0, 0),
):
    return Line(
        text=text,
        page=page,
        left=left,
        right=left + 5.0 * len(text) * size / 10 if right is None else right,
        bottom=HEIGHT - top,
        size=size,
        typewriter=typewriter,
        hyphen=hyphen,
        bold=bold,
        turn=turn,
        tag=tag,
    )


def paragraph(texts, *, top, page=0, right=455.0, **more):
    """Lines that all reach the right margin but the last."""
    last = len(texts) - 1
    return [
        line(text, top=top + 12 * place, page=page, right=None if place == last else right, **more)
        for place, text in enumerate(texts)
    ]


def pages_of(*pages):
    return [PageLines(height=HEIGHT, lines=tuple(lines)) for lines in pages]


def markdown(*pages, outline=()):
    kept = without_furniture(pages_of(*pages))
    measures = measure(kept)
    headings = find_headings(kept, outline, measures)
    blocks = [
        page_blocks(page.lines, headings.get(number, {}), measures)
        for number, page in enumerate(kept)
    ]
    return to_markdown(flowing_on(blocks), vocabulary(one for page in kept for one in page.lines))


def test_lines_of_a_paragraph_flow_together():
    """Full lines are joined into one; the next paragraph, set apart, is another."""
    text, _ = markdown(
        [*paragraph([FULL, FULL, "and end here."], top=100), *paragraph(["Another."], top=148)]
    )
    assert text == f"{FULL} {FULL} and end here.\n\nAnother.\n"


def test_short_lines_stay_apart():
    """An address keeps its lines, because each next word would have fitted on the line before."""
    address = ["Jane Doe", "12 Mill Lane", "Oldtown"]
    rows = [line(text, top=300 + 12 * row) for row, text in enumerate(address)]
    text, _ = markdown([*paragraph([FULL, FULL, "end."], top=100), *rows])
    assert "Jane Doe\n12 Mill Lane\nOldtown" in text


def test_rows_with_wide_gaps_stay_apart():
    """A table keeps its rows, though they reach from margin to margin."""
    rows = [line(f"Part {n} 2,10{n}", top=300 + 12 * n, right=455) for n in range(3)]
    text, _ = markdown([*paragraph([FULL] * 4, top=100), *rows])
    assert "Part 0 2,100\nPart 1 2,101\nPart 2 2,102" in text


def test_code_is_fenced_with_its_indentation():
    """Lines in a typewriter font become a fence, further right is further in."""
    code = [
        line("if ready:", top=300, right=70 + 9 * 6, typewriter=True),
        line("go()", top=312, left=94, right=94 + 4 * 6, typewriter=True),
    ]
    text, _ = markdown([*paragraph([FULL] * 4, top=100), *code])
    assert text.endswith("```\nif ready:\n    go()\n```\n")


def test_paragraph_flows_over_the_page_end():
    """A paragraph cut by a page end is one again, and the second page starts within it."""
    first = paragraph([FULL, FULL], top=600)
    first = [first[0], line(FULL, top=612, right=455)]
    text, pages = markdown(first, paragraph([f"{FULL.lower()}", "to its end."], top=80, page=1))
    assert text == f"{FULL} {FULL} {FULL.lower()} to its end.\n"
    assert [page.number for page in pages] == [1, 2]
    assert text[pages[1].start :].startswith(FULL.lower())


def test_word_flows_over_the_page_end():
    """A word broken by the page end is joined."""
    cut = line(f"{FULL} contin", top=612, right=455, hyphen=True)
    text, _ = markdown(
        [*paragraph([FULL], top=600), cut], [line("uation of it all.", top=80, page=1)]
    )
    assert "continuation of it all." in text


def test_footnote_does_not_break_the_paragraph_above():
    """A note at the foot of the page goes before the paragraph that flows on to the next page."""
    first = [line(FULL, top=600, right=455), line(FULL, top=612, right=455)]
    note = line("3 A note in small print.", top=700, size=7.0)
    text, _ = markdown([*first, note], [line("and so it ends.", top=80, page=1)])
    assert f"{FULL} and so it ends." in text
    assert text.startswith("3 A note in small print.\n\n")


def test_running_headers_and_page_numbers_go():
    """Alternating headers and page numbers are taken away, the text between them stays."""
    pages = []
    for number in range(8):
        header = "Moor Handbook" if number % 2 else "Chapter 1: Peat"
        pages.append(
            [
                line(f"{header} {number + 1}", top=40, page=number),
                *paragraph([FULL, f"Text of page {'abcdefgh'[number]}."], top=100, page=number),
                line(str(number + 1), top=770, page=number),
            ]
        )
    text, starts = markdown(*pages)
    assert "Handbook" not in text
    assert "Chapter" not in text
    assert [f"Text of page {letter}." in text for letter in "abcdefgh"] == [True] * 8
    assert len(starts) == 8


def test_roman_page_numbers_go():
    """Numbers of front pages are page numbers too."""
    romans = ["i", "ii", "iii", "iv", "v"]
    pages = [
        [*paragraph([FULL, "End."], top=300, page=n), line(roman, top=760, page=n)]
        for n, roman in enumerate(romans)
    ]
    text, _ = markdown(*pages)
    assert not set(text.split()) & set(romans)


def test_text_that_repeats_stays():
    """The same sentence in the middle of every page is text."""
    pages = [
        [*paragraph([FULL, "End."], top=100, page=n), line("Please sign here", top=400, page=n)]
        for n in range(6)
    ]
    text, _ = markdown(*pages)
    assert text.count("Please sign here") == 6


def test_a_page_of_furniture_only_stays():
    """Where nothing but repeated lines is there, they are the text."""
    text, _ = markdown(*([line("Background", top=40, page=n)] for n in range(4)))
    assert text.count("Background") == 4


@pytest.mark.parametrize(
    ("before", "after", "said", "expected"),
    [
        ("an exam", "ple of it", "example", "example"),
        ("a well", "known fact", "well-known facts", "well-known"),
        ("the con", "tain", "", "contain"),
        ("multi", "agent", "multi and multi-modal", "multi-agent"),
        ("the option --vex", "iropt", "", "--vex-iropt"),
        ("in the years 1990", "1995", "", "1990-1995"),
        ("the Anglo", "Saxon", "", "Anglo-Saxon"),
        ("back", "ground", "the back and the ground", "back-ground"),
        ("back", "ground", "the background", "background"),
        ("a well", "known fact", "", "well-known"),
        ("is self", "employed", "", "self-employed"),
        ("a long", "standing rule", "", "long-standing"),
        ("it is self", "ish", "", "selfish"),
        ("the open", "ing", "", "opening"),
        ("it is high", "lighted", "", "highlighted"),
    ],
)
def test_hyphens_at_line_ends(before, after, said, expected):
    """A hyphen goes or stays as the rest of the document and the shape of the word say."""
    words = vocabulary([line(said, top=100)]) if said else Words()
    glue = joined(before, after, hyphen=True, words=words)
    assert f"{before}{glue}{after}".find(expected) >= 0


def test_line_ends_without_hyphen():
    """A line end is a space, but not in Chinese, nor within a web address."""
    assert joined("two", "words", hyphen=False, words=Words()) == " "
    assert joined("泥炭", "沼泽", hyphen=False, words=Words()) == ""
    assert joined("습지", "에서 물이", hyphen=False, words=Words()) == ""
    assert joined("습지", "물이", hyphen=False, words=Words()) == " "
    known = vocabulary([line("물웅덩이 깊다", top=1)])
    assert joined("그 물웅", "덩이", hyphen=False, words=known) == ""
    assert joined("see https://moor.org/", "peat", hyphen=False, words=Words()) == ""


def korean(*rows, spaced=()):
    lines = [line(row, top=n * 14) for n, row in enumerate(rows)]
    return [replace(one, spaced=n in spaced) for n, one in enumerate(lines)]


@pytest.mark.parametrize(
    ("lines", "before", "after", "is_spaced", "glue"),
    [
        (korean("배가 항구", "를 떠난다", "섬으로", spaced=[1]), "배가 항구", "를 떠", False, ""),
        (korean("배가 항구", "를 떠난다", "섬으로", spaced=[1]), "떠난다", "섬으로", True, " "),
        (korean("배가 항구", "를 떠난다"), "저 부둣", "가에서", False, ""),
        (korean("배가 항구", "를 떠난다"), "부두에서", "떠난다", False, " "),
        (korean("배가 떠난다", "항구에서"), "저 부둣", "가에서", False, " "),
        (korean("배가 항구", "를 떠난다"), "떠난다.", "항구", False, " "),
        (korean("배가 항구", "를 떠난다"), "2024", "년에", False, ""),
    ],
)
def test_korean_words_go_on_where_the_document_breaks_them(lines, before, after, is_spaced, glue):
    words = vocabulary(lines)
    assert joined(before, after, hyphen=False, words=words, spaced=is_spaced) == glue


def leftward(right, text):
    """The letters of a word whose first is the rightmost."""
    return [(right - n, sign) for n, sign in enumerate(text)]


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        # Words to the right that the library gives in the wrong order.
        (
            [
                *(*leftward(40, "לפי "), (32, "C"), (33, "o"), (31, " "), (29, "A"), (30, "b")),
                *((28, " "), *leftward(27, "דוח")),
            ],
            "לפי Ab Co דוח",
        ),
        ([*leftward(40, "עלה ב"), (35, "-"), (34, "%"), (32, "1"), (33, "5")], "עלה ב-15%"),
        ([*leftward(40, "אחת )שתיים( שלוש")], "אחת (שתיים) שלוש"),
        ([*leftward(40, "רחוב "), (33, "1"), (34, "2"), (32, " "), (31, "7"), *leftward(30, " א")],
         "רחוב 12 7 א"),
        ([*leftward(40, "هاتف "), (34, "5"), (33, "-"), (32, "8"), *leftward(31, " م")],
         "هاتف 5-8 م"),
        ([*leftward(40, "תאריך "), (31, "1"), (32, "/"), (33, "2"), *leftward(30, " א")],
         "תאריך 1/2 א"),
    ],
)  # fmt: skip
def test_what_runs_to_the_right_in_a_line_to_the_left_is_read_as_it_lies(signs, expected):
    assert logical(signs, is_left=True) == expected


def test_a_line_runs_where_most_of_its_letters_do():
    assert runs_left("استخدم لغة Python")
    assert not runs_left("The word سلام means peace")


def test_broken_words_are_no_evidence():
    """The halves of a broken word are not taken for words of the document."""
    words = vocabulary([line("an exam", top=1, hyphen=True), line("ple again", top=2)])
    assert words.whole == {"an", "again"}


def test_characters_are_made_plain():
    """Ligatures are letters, odd spaces are spaces, and what cannot be seen is gone."""
    assert plain("e\ufb03cient\u00a0\ufb02ow\x00\x07 co\u00adop \uf0b7") == "efficient flow coop •"


def test_outline_becomes_headings():
    """Titles are found with other numbers, cases and line ends; deeper than six is six."""
    lines = [
        line("2.1 The WET", top=100, size=12),
        line("moor", top=115, size=12),
        *paragraph([FULL, "End."], top=140),
        line("De\ufb01nitions".replace("\ufb01", "fi"), top=200, size=12),
        *paragraph([FULL, "End."], top=220),
    ]
    outline = [
        OutlineEntry(title="The wet moor", level=2, page=0),
        OutlineEntry(title="3 De\ufb01nitions", level=9, page=0),
        OutlineEntry(title="Nowhere to be found", level=1, page=0),
        OutlineEntry(title="Beyond the last page", level=1, page=7),
    ]
    text, _ = markdown(lines, outline=outline)
    headings = [row for row in text.splitlines() if row.startswith("#")]
    assert headings == ["## 2.1 The WET moor", "###### Definitions"]


def test_contents_are_no_headings():
    """A line with dots and a page number is not the heading it points to."""
    contents = [line("1 Peat . . . . . . . . . 2", top=100, right=455)]
    chapter = [
        line("1 Peat", top=100, page=1, size=14),
        *paragraph([FULL, "End."], top=130, page=1),
    ]
    text, _ = markdown(contents, chapter, outline=[OutlineEntry(title="Peat", level=1, page=1)])
    assert text.splitlines()[0] == "1 Peat … 2"
    assert [row for row in text.splitlines() if row.startswith("#")] == ["# 1 Peat"]


def test_same_title_twice_on_a_page():
    """Two sections of one name become two headings, in order."""
    lines = [
        line("Examples", top=100, size=12),
        *paragraph([FULL, "First."], top=130),
        line("Examples", top=200, size=12),
        *paragraph([FULL, "Second."], top=230),
    ]
    outline = [OutlineEntry(title="Examples", level=level, page=0) for level in (1, 2)]
    text, _ = markdown(lines, outline=outline)
    headings = [row for row in text.splitlines() if row.startswith("#")]
    assert headings == ["# Examples", "## Examples"]


def test_size_makes_headings_without_an_outline():
    """Larger lines are headings, the largest the highest, and the title is the largest up front."""
    lines = [
        line("A Book of Peat", top=60, size=18),
        line("Beginnings", top=100, size=14),
        *paragraph([FULL] * 8, top=130),
        line("Ends", top=300, size=14),
        *paragraph([FULL] * 8, top=330),
    ]
    text, _ = markdown(lines)
    headings = [row for row in text.splitlines() if row.startswith("#")]
    assert headings == ["# A Book of Peat", "## Beginnings", "## Ends"]
    pages = pages_of(lines)
    assert evident_title(pages, [], measure(pages)) == "A Book of Peat"


def headings_of(text):
    return [row for row in text.splitlines() if row.startswith("#")]


def test_bold_and_numbered_lines_are_headings():
    """Bold lines of the size of the text between its paragraphs, deeper by their number."""
    lines = [
        line("1 Peat", top=100, bold=True),
        *paragraph([FULL, FULL, "End."], top=122),
        line("1.1 Upper moor", top=168, bold=True),
        *paragraph([FULL, FULL, "End."], top=190),
        line("References", top=236, bold=True),
        *paragraph([FULL] * 4, top=258),
    ]
    text, _ = markdown(lines)
    assert headings_of(text) == ["# 1 Peat", "## 1.1 Upper moor", "# References"]


def test_numbers_alone_make_headings_where_they_rise():
    """Lines with rising numbers between paragraphs; one number alone is no proof."""

    def sections(*numbers):
        lines = []
        for place, number in enumerate(numbers):
            lines.append(line(f"{number} Of peat", top=100 + 80 * place))
            lines += paragraph([FULL, FULL, "End."], top=124 + 80 * place)
        return headings_of(markdown(lines)[0])

    assert sections("1", "1.1", "2") == ["# 1 Of peat", "## 1.1 Of peat", "# 2 Of peat"]
    assert sections("12", "3", "1") == []
    assert sections("12") == []


@pytest.mark.parametrize(
    "said", ["Figure 2: A moor", "He waited, then,", "Wet. Then dry as a bone", "and so on", "•"]
)
def test_bold_lines_that_are_no_headings(said):
    """Captions, parts of sentences and signs."""
    lines = [
        *paragraph([FULL, "End."], top=100),
        line(said, top=134, bold=True),
        *paragraph([FULL] * 4, top=156),
    ]
    assert headings_of(markdown(lines)[0]) == []


def test_a_bold_line_within_a_paragraph_is_no_heading():
    """Without space around it, and with a sentence that goes on."""
    lines = paragraph([FULL, FULL, FULL, "end."], top=100)
    lines[1] = replace(lines[1], bold=True)
    assert headings_of(markdown(lines)[0]) == []


def test_tags_come_before_everything_else():
    """Neither size nor outline makes a heading in a tagged file, and two lines may be one."""
    lines = [
        line("Large but a paragraph", top=60, size=20),
        line("A moor and", top=100, tag=(2, 7)),
        line("its water", top=112, tag=(2, 7)),
        line("Peat", top=130, tag=(3, 8)),
        *paragraph([FULL, "End."], top=160),
    ]
    outline = [OutlineEntry(title="Large but a paragraph", level=1, page=0)]
    text, _ = markdown(lines, outline=outline)
    assert headings_of(text) == ["## A moor and its water", "### Peat"]


def test_a_short_page_has_headings():
    """Large lines over one line of text each, however many of all characters they are."""
    lines = []
    for number in range(3):
        lines.append(line(f"Heading {number}", top=60 + 80 * number, size=20))
        lines.append(line("This is some text below it.", top=90 + 80 * number, size=14))
    assert headings_of(markdown(lines)[0]) == [f"# Heading {n}" for n in range(3)]


def test_stamps_are_no_text():
    """Large words across a page, and words up its margin; a small slanted label stays."""
    page = [
        line("DRAFT", top=400, size=60, turn="slanted"),
        line("arXiv:2103.15348", top=800, left=200, turn="quarter", size=14),
        line("axis", top=500, turn="slanted"),
        *paragraph([FULL, "End."], top=100),
    ]
    kept = without_furniture([PageLines(height=HEIGHT, lines=tuple(page), width=600.0)])
    assert [one.text for one in kept[0].lines] == ["axis", FULL, "End."]


def test_ragged_lines_flow():
    """A line that ends in the middle of a sentence flows on, though a word would have fitted."""
    ragged = [
        line(said, top=100 + 12 * n)
        for n, said in enumerate([FULL, FULL[6:-8], f"goes {FULL[12:-14]}", "on to its end."])
    ]
    ragged[1:3] = [replace(one, text=one.text.lower()) for one in ragged[1:3]]
    text, _ = markdown(ragged)
    assert text.count("\n") == 1


def test_items_keep_their_levels():
    """By where they start, whatever their sign; a dash alone at a margin is no sign of a list."""
    rows = [(70, "• Peat"), (90, "– wet"), (110, "▪ deep"), (90, "– dry"), (70, "• Water")]
    lines = [line(said, top=100 + 14 * n, left=left) for n, (left, said) in enumerate(rows)]
    text, _ = markdown(lines)
    assert text == "- Peat\n  - wet\n    - deep\n  - dry\n- Water\n"
    assert markdown([line("– Good day!", top=100)])[0] == "– Good day!\n"


def test_an_empty_line_stays_within_code():
    """A listing goes on after it."""
    code = [line(f"go({n})", top=300 + 12 * n + 12 * (n > 1), typewriter=True) for n in range(3)]
    text, _ = markdown([*paragraph([FULL] * 4, top=100), *code])
    assert text.endswith("```\ngo(0)\ngo(1)\n\ngo(2)\n```\n")


def test_verses_keep_their_lines():
    """Few of them reach the margin, whatever their next line begins with."""
    verse = ["The tide comes in, the tide goes out,", "the boats lie still,", "the bell is heard"]
    rows = [line(said, top=300 + 12 * n) for n, said in enumerate(verse)]
    text, _ = markdown([*paragraph([FULL] * 4, top=100), *rows])
    assert "\n".join(verse) in text


@pytest.mark.parametrize(
    "text", ["# not a heading", "=====", "---", "```", "~~~", "> quote", "<div>", "***"]
)
def test_accidental_markdown_is_escaped(text):
    """Characters that would be Markdown structure at the start of a line are escaped."""
    written, _ = markdown([line("Some text", top=100), line(text, top=112)])
    assert written == f"Some text\n\\{text}\n"


def test_raised_characters_do_not_break_a_row():
    """What stands in one row is one line, with a space where there is one."""
    pieces = [
        line("on many systems1", top=100, right=150),
        line(", there", top=100, left=150, right=180),
        line("is", top=100, left=184, right=190),
    ]
    assert [piece.text for piece in joined_pieces(pieces)] == ["on many systems1, there is"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("D:20240131120000+01'00'", "2024-01-31T12:00:00+01:00"),
        ("D:20240131120000Z", "2024-01-31T12:00:00+00:00"),
        ("D:20240131", "2024-01-31"),
        ("2024", "2024"),
        ("D:20241331", ""),
        ("yesterday", ""),
        ("D:20240131120000+99'99'", ""),
    ],
)
def test_dates(value, expected):
    """Dates of PDF are ISO text; what is none is left out."""
    assert iso_date(value) == expected


ODD_LENGTHS = st.floats(-1e6, 1e6)


@st.composite
def odd_lines(draw):
    count = draw(st.integers(0, 12))
    return [
        Line(
            text=draw(st.text("ab #-.=1•`\n泥>", min_size=1, max_size=12).map(visible)),
            page=0,
            left=draw(ODD_LENGTHS),
            right=draw(ODD_LENGTHS),
            bottom=draw(ODD_LENGTHS),
            size=draw(st.floats(0.6, 1e6)),
            typewriter=draw(st.booleans()),
            hyphen=draw(st.booleans()),
        )
        for _ in range(count)
    ]


def visible(text):
    return " ".join(text.split()) or "x"


@given(pages=st.lists(odd_lines(), min_size=1, max_size=4))
def test_any_lines_give_text_with_pages_in_order(pages):
    """Wherever lines stand, pages start in order within the text, and every character is kept."""
    placed = [[replace(one, page=number) for one in lines] for number, lines in enumerate(pages)]
    text, starts = markdown(*placed)
    offsets = [page.start for page in starts]
    assert offsets == sorted(offsets)
    assert all(0 <= offset < len(text) for offset in offsets)
    assert [page.number for page in starts] == sorted({page.number for page in starts})
