"""Numbers of Word's lists and headings: formats, restarts, overrides, styles."""

import pytest
from lxml import etree

from filestore.extract._office.docx_parts import WORD
from filestore.extract._office.numbering import Numbering


def level(place, text, form="decimal", more=""):
    return (
        f'<w:lvl w:ilvl="{place}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def family(number, *levels, more=""):
    return f'<w:abstractNum w:abstractNumId="{number}">{more}{"".join(levels)}</w:abstractNum>'


def listed(number, of=0, more=""):
    return f'<w:num w:numId="{number}"><w:abstractNumId w:val="{of}"/>{more}</w:num>'


def numbering(*parts, styles=None):
    root = etree.fromstring(f'<w:numbering xmlns:w="{WORD}">{"".join(parts)}</w:numbering>')
    return Numbering(root, styles or {})


def labels(counter, *places):
    """The labels of paragraphs, each a level, or a list and a level."""
    found = []
    for place in places:
        number, at = place if isinstance(place, tuple) else ("1", place)
        label = counter.label(number, str(at), None, ())
        found.append(None if label is None else label.text.rstrip())
    return found


OUTLINE = family(0, level(0, "%1"), level(1, "%1.%2"), level(2, "%1.%2.%3"))


def test_deeper_levels_begin_again_under_each_number():
    assert labels(numbering(OUTLINE, listed(1)), 0, 1, 1, 2, 0, 1, 2, 2) == [
        *("1", "1.1", "1.2", "1.2.1", "2", "2.1", "2.1.1", "2.1.2")
    ]


def test_a_level_above_that_was_never_reached_shows_its_start():
    assert labels(numbering(OUTLINE, listed(1)), 1, 1, 0, 1) == ["1.1", "1.2", "1", "1.1"]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("lowerLetter", ["a", "b", "z", "aa", "bb"]),
        ("upperRoman", ["I", "II", "XXVI", "XXVII", "XXVIII"]),
        ("lowerRoman", ["i", "ii", "xxvi", "xxvii", "xxviii"]),
        ("ordinal", ["1st", "2nd", "26th", "27th", "28th"]),
        ("decimalZero", ["01", "02", "26", "27", "28"]),
        ("chineseCountingThousand", ["一", "二", "二十六", "二十七", "二十八"]),
        ("russianLower", ["а", "б", "ы", "э", "ю"]),
        ("unheardOf", ["1", "2", "26", "27", "28"]),
        ("none", ["", "", "", "", ""]),
    ],
)
def test_forms(form, expected):
    found = labels(numbering(family(0, level(0, "%1", form)), listed(1)), *[0] * 28)
    assert [found[at] for at in (0, 1, 25, 26, 27)] == expected


@pytest.mark.parametrize(
    ("number", "expected"), [(10, "十"), (101, "一百零一"), (110, "一百一十"), (345, "三百四十五")]
)
def test_chinese_numbers(number, expected):
    found = labels(
        numbering(family(0, level(0, "%1", "chineseCounting")), listed(1)), *[0] * number
    )
    assert found[-1] == expected


def test_legal_numbers_are_written_in_digits():
    legal = level(1, "%1.%2", more="<w:isLgl/>")
    found = numbering(family(0, level(0, "Article %1.", "upperRoman"), legal), listed(1))
    assert labels(found, 0, 0, 1) == ["Article I.", "Article II.", "2.1"]


def test_a_level_may_go_on_past_the_ones_above():
    on = level(1, "§ %2", more='<w:lvlRestart w:val="0"/>')
    assert labels(numbering(family(0, level(0, "%1"), on), listed(1)), 0, 1, 1, 0, 1) == [
        *("1", "§ 1", "§ 2", "2", "§ 3")
    ]


def test_a_level_may_begin_again_only_under_a_far_one():
    far = level(2, "(%3)", "lowerLetter", more='<w:lvlRestart w:val="1"/>')
    found = numbering(family(0, level(0, "%1"), level(1, "%1.%2"), far), listed(1))
    assert labels(found, 0, 1, 2, 1, 2, 0, 1, 2) == [
        *("1", "1.1", "(a)", "1.2", "(b)", "2", "2.1", "(a)")
    ]


def test_lists_of_a_family_go_on_unless_one_starts_anew():
    override = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride>'
    found = numbering(OUTLINE, listed(1), listed(2), listed(3, more=override))
    assert labels(found, 0, ("2", 0), ("3", 0), ("3", 0), 0) == ["1", "2", "7", "8", "9"]


def test_an_override_may_write_a_level_otherwise():
    override = f'<w:lvlOverride w:ilvl="0">{level(0, "(%1)", "lowerLetter")}</w:lvlOverride>'
    found = numbering(OUTLINE, listed(1), listed(2, more=override))
    assert labels(found, 0, ("2", 0)) == ["1", "(b)"]


def test_styles_choose_list_and_level():
    """A list that a style defines; and levels that belong to styles of paragraphs."""
    linked = family(5, more='<w:numStyleLink w:val="Legal"/>')
    by_style = family(0, level(0, "%1", more='<w:pStyle w:val="H1"/>'), level(1, "%1.%2"))
    by_style = by_style.replace('%1.%2"/>', '%1.%2"/><w:pStyle w:val="H2"/>')
    found = numbering(linked, by_style, listed(1, of=5), listed(2), styles={"Legal": "2"})
    texts = [found.label("1", None, "0", style).text for style in (["H1"], ["My", "H2"], ["X"])]
    assert texts == ["1 ", "1.1 ", "2 "]


def test_what_is_not_defined_has_no_label():
    found = numbering(OUTLINE, listed(1), listed(2, of=9))
    assert labels(found, ("0", 0), ("2", 0), ("7", 0), 8) == [None] * 4
    assert Numbering(None, {}).label("1", "0", None, ()) is None


def test_plain_numbers_are_told_from_labels():
    """Markdown has numbers with a full stop and with a bracket; everything else is text."""
    forms = (level(0, "%1."), level(1, "%2)"), level(2, "(%3)"), level(3, "•", "bullet"))
    found = numbering(family(0, *forms), listed(1))
    got = [found.label("1", str(at), None, ()) for at in range(4)]
    assert [(one.number, one.closing, one.bullet) for one in got] == [
        (1, ".", False),
        (1, ")", False),
        (None, "", False),
        (None, "", True),
    ]
