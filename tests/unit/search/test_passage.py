"""The passage of a text that is shown of a hit."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.extract.markdown_read import Markdown
from filestore.fulltext import Marker, parse_query
from filestore.search import passage
from filestore.search.passage import MOST_CHARACTERS, Passage, units_of

NOTE = """# File explorer

The explorer lists every note of a vault, folder by folder, as they lie on the disk.

## Rename a note

Press F2 on a note to rename it. Links to the note are updated at once.
The old name stays in the history.

```
mv old.md new.md
```

1. Open the menu.
2. Choose a colour for the folder.
"""


def best(query: str, text: str) -> Passage:
    marker = Marker(parse_query(query))
    found = passage.best(Markdown(text), marker.marks(text), marker.weights)
    assert found is not None
    return found


def marked(found: Passage) -> list[str]:
    return [found.text[start:end] for start, end in found.marks]


def test_the_lines_that_match_are_shown_not_the_beginning() -> None:
    """What was asked for stands in the passage, and is marked in it."""
    found = best("renaming links", NOTE)
    assert found.text.startswith("Press F2 on a note to rename it. Links")
    assert marked(found) == ["rename", "Links"]
    assert best("colour of folders", NOTE).text == "2. Choose a colour for the folder."


def test_a_heading_is_shown_only_where_nothing_below_it_matches() -> None:
    """It stands beside the passage as it is, so the text below it is worth more."""
    assert best("rename", NOTE).text.startswith("Press F2")
    assert best("explorer", NOTE).text.startswith("The explorer lists")
    alone = best("overview", "## Overview\n\nNothing else is said of it.\n")
    assert alone.text == "Overview\n\nNothing else is said of it."


def test_a_link_is_shown_only_where_nothing_else_matches_as_well() -> None:
    """A text that says it stands before the list that leads to it."""
    links = "- [Renewal of the lease](a.md)\n- [[Ferns]]\n"
    text = f"{links}\nWe spoke about much.\n\nThe lease ends; its renewal is in June.\n"
    assert best("lease renewal", text).text == "The lease ends; its renewal is in June."
    assert best("ferns", text).text.startswith("- Ferns")


def test_words_that_tell_little_decide_nothing_and_are_not_marked() -> None:
    """Of a question it is the words of meaning that count."""
    text = "It is what it is, and it is in the way of the thing.\n\nFrost damages sensors.\n"
    found = best("what is it that damages the sensors in frost", text)
    assert found.text == "Frost damages sensors."
    assert marked(found) == ["Frost", "damages", "sensors"]


def test_a_phrase_is_found_as_one() -> None:
    """Its words elsewhere are not what was asked for."""
    text = "The house has a boat.\n\nThe boat house is red.\n"
    found = best('"boat house"', text)
    assert (found.text, marked(found)) == ("The boat house is red.", ["boat house"])


def test_scripts_without_spaces() -> None:
    """Their sentences end without a blank, and pairs of characters match."""
    text = "春が来た。" * 30 + "東京は日本の首都です。" + "夏が来た。" * 30
    found = best("首都", text)
    assert found.text.startswith("東京は日本の首都です。")
    assert marked(found) == ["首都"]


def test_the_beginning_of_a_text_leaves_its_headings_out() -> None:
    """Where nothing matches, the first sentences are shown."""
    assert passage.opening(Markdown(NOTE)).text.startswith("The explorer lists")
    assert passage.opening(Markdown("# Only\n")).text == "Only"
    assert passage.opening(Markdown(" \n\n")).text == ""


def test_a_line_without_end_is_cut() -> None:
    """Minified text shows what surrounds the match, and no more than a passage holds."""
    text = "x" * 5_000 + " needle " + "y" * 5_000
    found = best("needle", text)
    assert "needle" in found.text
    assert len(found.text) <= MOST_CHARACTERS


SENTENCES = st.sampled_from(
    [
        "The boat lies at the quay.",
        "Ask Dr. Sail, e.g. on p. 7 of vol. 2, about version 3.14 of the boat!",
        'See [the log](https://example.org/a(b).c "Log. Of it") and [[Harbour#Quay|the quay]].',
        "Does **every** boat need `a sail. B`?",
        "Häuser am Wasser, z. B. in Kiel, haben Boote.",
        "Лодка стоит у причала, см. рис. 4, и ждёт.",
        "![The boat](boat.png) is [![red](r.svg)](red.md), [as said][1].",
        "東京の船は港にあります。",
        "Where a sail is torn, " + "and torn again, " * 20 + "sew it.",
    ]
)
PARAGRAPHS = st.one_of(
    st.lists(SENTENCES, min_size=1, max_size=5).map(" ".join),
    st.lists(SENTENCES, min_size=1, max_size=4).map(lambda all: "- " + "\n- ".join(all)),
    st.sampled_from(["# Boats", "## The _sail_ ##", "| boat | sail |\n|---|---|\n| red | torn |"]),
    st.sampled_from(
        ["```sh\nboat --sail [x](y)\n```", "[1]: http://example.org", "---", "![](a.png)"]
    ),
)
NOTES = st.lists(PARAGRAPHS, max_size=6).map("\n\n".join)
SIGNS = (
    "boat Häuser 東京都 sail. # ` e\u0301 [ ]( ) ![ [[ ]] * __ ~~ \\ &amp; <br> <!-- --> | 1. - >"
    " ไม่มีช่องว่าง ```"
)
ODD = st.lists(
    st.sampled_from([*SIGNS.split(), " ", "\n", "\n\n", "\t", "x" * 300, " | ", "---\n", "```\n"]),
    max_size=40,
).map("".join)
QUERIES = st.sampled_from(["boat sail", "東京", '"boat sail"', "Haus hä*", "quay", "лодка", "torn"])


def shown(query: str, text: str) -> Passage:
    """The passage of a text, as a hit has it."""
    marker = Marker(parse_query(query))
    read = Markdown(text)
    return passage.best(read, marker.marks(text), marker.weights) or passage.opening(read)


@given(st.one_of(NOTES, ODD), QUERIES)
def test_a_passage_is_read_in_its_text(text: str, query: str) -> None:
    """Its words stand in the text, in order; it is short, and empty for a blank text alone."""
    found = shown(query, text)
    assert len(found.text) <= MOST_CHARACTERS
    assert found.text == found.text.strip()
    assert bool(found.text) == bool(text.strip())
    # What markup parts is read as one word, so that letters are looked for, not words.
    at = found.start
    for letter in re.findall(r"\w", found.text):
        at = text.index(letter, at) + 1
    assert at <= found.end
    if found.text[:1] != "…":
        assert text[found.start : found.end].find(re.split(r"\W", found.text)[0]) >= 0


@given(st.one_of(NOTES, ODD), QUERIES)
def test_what_is_marked_is_what_was_asked(text: str, query: str) -> None:
    """Marks are in order, and what they cover matches by itself."""
    found = shown(query, text)
    ends = [0, *(place for span in found.marks for place in span), len(found.text)]
    assert ends == sorted(ends)
    marker = Marker(parse_query(query.replace('"', "")))
    assert all(marker.marks(word) for word in marked(found))


@given(NOTES, QUERIES)
def test_sentences_are_whole(text: str, query: str) -> None:
    """A passage begins and ends where sentences, items and lines do, or says that it goes on."""
    found = shown(query, text)
    units = units_of(Markdown(text))
    assert all(one.end <= other.start for one, other in pairwise(units))
    if not units or not text.strip():
        return
    assert found.text[0] == "…" or text[: found.start].rstrip(" >")[-1:] in ("", "\n", *".!?。")
    assert (
        found.text[-1] == "…"
        or text[found.end - 1] in ".!?。"
        or text[found.end :][:1] in ("", "\n")
    )
    cut = found.text.strip("…")
    assert cut == found.text or len(cut) > MOST_CHARACTERS // 4


READ = {
    "See [the boat](a/b.md) of [[Log|the log]].": "See the boat of the log.",
    "[Boat [and mast](x)][ref], ![flag](f.png)\n\n[ref]: y": "Boat and mast, flag",
    "**Bold** _boat_ snake_case 2 * 3 * 4, ~~gone~~.": "Bold boat snake_case 2 * 3 * 4, gone.",
    "| a | b |\n|---|:-:|\n| sail | boat |": "sail | boat",
    "| `a b`, `c` | boat | `d|` |": "`a b`, `c` | boat | `d|`",
    "# `a` boat `b`": "`a` boat `b`",
    "> `a` boat.": "`a` boat.",
    "> Quoted boat.\n> And a sail.": "Quoted boat.\nAnd a sail.",
    "1. Open it.\n2. Choose a boat.\n   Or none.": "2. Choose a boat.\n   Or none.",
    "He met Dr. No in the U.S. in spring. A boat left.": None,
    "<b>The</b> boat<br>sails &amp; rows<!-- not today -->.": "The boat sails & rows.",
    "<!-- no boat\n\nno boat -->\n\nThe boat.": "The boat.",
    "A boat[^1] of <https://example.org> \\*now\\*.": "A boat of https://example.org *now*.",
    "```c\nboat[0][1] = *x;\n```": "boat[0][1] = *x;",
    "List<String> boat = x[0][1];": None,
    "**`--sail`** moves the boat, *`-x`* no _`y`_.": "`--sail` moves the boat, `-x` no `y`.",
    "Boat\n----\nIt lies here.": "Boat\nIt lies here.",
    "Boat\n=======\nIt lies here.": "Boat\nIt lies here.",
    "  > The boat.": "The boat.",
    "  ## The boat ##": "The boat",
    "| boat | x |\r\n|---|---|\r\n| sail | y |\r\n": "boat | x\nsail | y",
    "```js title=boat.js {1,3}\nlet boat = 1;\n```": "let boat = 1;",
    "The [Boat] lies here.\n\n[boat]: y": "The Boat lies here.",
    "<tr><td>The</td><td>boat</td></tr>": "The boat",
}
"""Texts, and what is read there; None where that is what is written."""


@pytest.mark.parametrize("text", READ)
def test_markup_that_says_nothing_is_left_out(text: str) -> None:
    """Links are their text, pictures what stands for them; what matched is marked in that."""
    found = shown("boat", text)
    assert found.text == (READ[text] or text)
    assert [word.lower() for word in marked(found)] == ["boat"]


@given(st.one_of(NOTES, ODD))
def test_a_sentence_is_read_as_in_its_paragraph(text: str) -> None:
    """Whatever of it was read before; a link or bold words may go over several sentences."""
    read = Markdown(text)
    for unit in units_of(read):
        alone = Markdown(text).read(unit.start, unit.end)
        assert alone == read.read(unit.start, unit.end)


def test_what_goes_over_the_end_of_a_sentence() -> None:
    """No mark of a link or of bold words is left in any of its sentences."""
    begins = (
        "So much is said here of the quay that all is cut into what it says, one after the other."
    )
    text = f"{begins} [The mast is long. It sails far](a.md). **All is calm. They** rest."
    units = units_of(Markdown(text))
    assert [Markdown(text).read(unit.start, unit.end).text for unit in units] == [
        begins,
        "The mast is long.",
        "It sails far.",
        "All is calm.",
        "They rest.",
    ]


@pytest.mark.parametrize("said", ["`ls A. B`", '[this](a.md "A. B")', '<a title="A. B">this</a>'])
def test_no_sentence_ends_in_code_or_in_a_link(said: str) -> None:
    """Nor in a tag: the point in it is none of the sentence."""
    text = f"{'So much is said of the quay. ' * 5}Use {said} for it."
    last = units_of(Markdown(text))[-1]
    assert text[last.start :] == f"Use {said} for it."


@pytest.mark.parametrize(
    "text",
    [
        "Click on the menu. 4. Choose the boat there. " * 8,
        "Wir fahren z. B. nach Kiel, d. h. ans Meer, ca. 3.5 km. Das boat wartet. " * 6,
        "Use it, e.g. for a boat of approx. 3.5 m, i.e. a small one. Then rest. " * 6,
        "Она стоит у причала, т. е. рядом, см. рис. 4 о boat и далее. Потом ушла. " * 6,
    ],
)
def test_points_that_end_no_sentence(text: str) -> None:
    """Shortened words, numbers and counts stay with what they belong to."""
    ends = {text[unit.end - 8 : unit.end].strip() for unit in units_of(Markdown(text.strip()))}
    last = text.strip()
    assert len(ends) == 2, ends
    assert last[-8:].strip() in ends


@pytest.mark.parametrize(
    "sign", [". ", "! ", "؟ ", "۔ ", "։ ", "। ", "། ", "။ ", "។ ", "። ", "。", "！"]
)
def test_sentences_end_in_every_script(sign: str) -> None:
    """So that a long paragraph is not cut within one."""
    found = shown("boat", f"Boat boat boat{sign}" * 60)
    assert found.text.count(sign.strip()) > 10
    assert found.text[-1] == sign[0]


@pytest.mark.parametrize("sign", ["เรือจอดอยู่ที่ท่าเรือ", "船在码头停泊着，", "boat,", "boat "])
def test_a_sentence_without_end_is_cut_between_words(sign: str) -> None:
    """Where there are words to be seen, and "…" tells that it goes on."""
    text = sign * 60 + " needle " + sign * 60
    found = shown("needle", text)
    assert "needle" in marked(found)
    assert found.text[0] == found.text[-1] == "…"
    assert MOST_CHARACTERS // 3 < len(found.text) <= MOST_CHARACTERS


SECTIONS = "# A\n\nin a\n\n## B\n\nin b\n\n```\n# no heading\n```\n\nstill b\n\n## C ##\n\nin c\n"


def test_the_headings_above_a_passage() -> None:
    """Those of the chunk, and those inside it; what is code is none."""

    def section(wanted: str, *headings: str, text: str = SECTIONS) -> tuple[str, ...]:
        return passage.section_at(text, text.index(wanted), headings)

    assert section("in a", "A") == ("A",)
    assert section("still b", "A") == ("A", "B")
    assert section("in c", "Book", "A") == ("Book", "A", "C")
    assert section("## B", "A") == ("A", "B")
    # A chunk that begins in one section and goes on in the next.
    assert section("rest", "T", "A", text="rest\n\n## B\n\nnext\n") == ("T", "A")
    assert section("next", "T", "A", text="rest\n\n## B\n\nnext\n") == ("T", "B")
    assert section("x", text="x") == ()


def test_words_of_grammar_alone_are_no_match() -> None:
    """A text that was found for its meaning begins where it begins, not where it says "the"."""
    text = "Frost came early.\n\nIt was in the north, on the quay.\n"
    marker = Marker(parse_query("where is the harbour"))
    assert passage.best(Markdown(text), marker.marks(text), marker.weights) is None
    only = Marker(parse_query("in the"))
    assert passage.best(Markdown(text), only.marks(text), only.weights) is not None


@pytest.mark.parametrize(
    "text",
    [
        "|" + "-" * 150_000 + "needle",
        "[" * 150_000 + "needle",
        "[a](" * 40_000 + "needle",
        "**a " * 40_000 + "needle",
        "<b <!-- " * 20_000 + "needle",
        "![[" * 50_000 + "needle",
        "# a" + "#" * 150_000 + "b needle\n",
        "# a" + " " * 150_000 + "needle",
        ">" * 150_000 + " needle",
        "word " * 30 + "needle. " + "_" * 150_000,
        "word " * 30 + 'needle [a](b "' + "A. " * 50_000 + '").',
        "# needle\n\n" * 15_000,
        "needle.)))" * 15_000,
        "." + " " * 150_000 + "needle",
        "needle\n\n" * 15_000,
        "aB" * 70_000 + " needle",
        "```" + "a" * 150_000 + " needle",
        "é" + "\u0301" * 150_000 + " needle",
    ],
)
def test_texts_made_to_take_long(text: str) -> None:
    """A passage of them is found like that of any other."""
    found = best("needle", text)
    assert "needle" in found.text
    passage.section_at(text, found.start, ("A",))
