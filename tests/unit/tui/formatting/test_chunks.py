"""The words of Browse, without a screen and without a store."""

import re

import msgspec.structs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore import Answer, FilestoreError, Finding, Hit
from filestore.browse import CHUNKS, About, AboutResource, Neighbour, Row, VectorFacts
from filestore.core.paths import DOCUMENTS
from filestore.fulltext import Understood
from filestore.search.answer import Lazily, Shown
from tui.formatting import chunks, error_lines, plain, rows, search

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = st.text(st.characters() | st.sampled_from("\x1b\x9b\u202e\udcff\n\r\t"))
MODIFIED = Finding(code="modified", path="chunked/a.md/chunk1.md", detail="its text differs")
SYMLINK = Finding(code="symlink", path="chunked/a.md/chunk1.md")


def about(**changes):
    value = About(
        path="chunked/a.md/chunk1.md",
        frontmatter={},
        body="Text.\n",
        raw="---\n---\nText.\n",
        raw_cut=False,
        problem="",
        record={},
        source="../a.md",
        pages=(),
        headings=(),
        questions=(),
        children=(),
        kind="chunk",
        hand_edited=False,
        freshness="fresh",
        withheld="",
        vectors=(VectorFacts(part=0, id=17, embedded=True, norm=1.0, when="generation 3"),),
        model="builtin/1:384",
        file_hash="ab",
        indexed_hash="ab",
        origin="sha256:cd",
        generation=3,
    )
    return msgspec.structs.replace(value, **changes)


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
        text="Some  text\nof it.",
        why={},
    )
    shown = {name: changes.pop(name) for name in Shown.__struct_fields__ if name in changes}
    return msgspec.structs.replace(value, shown=Lazily(lambda: Shown(**shown)), **changes)


def roles(lines):
    return {span.role for one in lines for span in one}


@given(TEXTS, TEXTS)
def test_no_word_steers_the_terminal(text, name):
    """Whatever a path, key, value, title or error holds, no line has a control character."""
    found = Finding(code="modified", path=name, detail=text)
    odd = about(
        path=name,
        frontmatter={text: name, "list": [text]},
        body=text,
        raw=text,
        problem=text,
        record={"document": {name: text}},
        source=name,
        headings=(text,),
        questions=(text,),
        kind=text,
        withheld=text,
        model=text,
    )
    row = Row(path=name, kind="chunk", edited=True, excluded=text)
    resource = AboutResource(
        resource=name,
        source=text,
        documents=((name, {text: text}),),
        chunks=1,
        extractor=text,
        chunker=text,
        record_path=name,
    )
    near = Neighbour(path=name, resource=text, cosine=0.5, headings=(text,), pages=(1,))
    answer = Answer(
        query=text,
        understood=Understood(),
        mode="hybrid",
        generation=1,
        hits=(),
        notes=(text,),
    )
    lines = [
        *chunks.head_lines(odd, [found]),
        *chunks.text_lines(text),
        *chunks.raw_lines(odd),
        *chunks.fact_lines(odd),
        *chunks.finding_lines([found]),
        *chunks.resource_lines(resource, {"E": 1}),
        *error_lines(FilestoreError(text, remedy=name, detail=text), is_whole=True),
        *search.answer_lines(answer, limit=5),
        rows.file_row(Row(kind="resource", resource=name, source=text, children=3), rows.Shown()),
        rows.file_row(row, rows.Shown(name=name, findings=[found])),
        search.hit_row(1, hit(path=name, excerpt=text, marks=((0, 3),))),
        search.hit_row(1, hit(path=name, document=text, text=text)),
        *search.hit_lines(hit(path=name, section=(text,))),
        rows.neighbour_row(near),
        rows.neighbour_place(near, CHUNKS, 60),
        *search.asking_lines(text, 1.0),
        search.cancelled_line(text),
        rows.filtering_line(text),
        *rows.absence_lines(FilestoreError(text, remedy=name)),
        *rows.absence_lines(FilestoreError(text, remedy="filestore sync")),
        rows.count_line(shown=1, resources=2, chunks=3, filtered=text, has_sections=False),
    ]
    for one in lines:
        for span in one:
            assert not UNSAFE.search(span.text), span


def drift_of(row, **shown):
    """The column of drift where there is much room."""
    return plain([rows.columns(row, rows.Shown(**shown), None, ["drift"])]).rstrip()


def test_a_resource_row_says_how_much_drifted():
    """A resource is told with its chunks, and the number of each severity."""
    row = Row(kind="resource", resource="guide.md", source="../guide.md", children=1200)
    assert plain([rows.file_row(row, rows.Shown())]) == "▸ guide.md"
    assert plain([rows.columns(row, rows.Shown(), None, ["sections"])]).strip() == "1,200"
    assert drift_of(row) == ""
    assert drift_of(row, severities={"E": 2, "W": 1}) == " E2 W1"
    many = {"E": 1200, "W": 100, "I": 99}
    assert drift_of(row, severities=many) == " E99+ W99+ I99"
    narrow = rows.columns_for(30, ["drift"])
    for severities, said in ((many, " E99+"), ({"E": 1, "W": 1}, " E1")):
        drawn = rows.columns(row, rows.Shown(severities=severities), None, narrow)
        assert plain([drawn]).rstrip() == said
    shown = rows.Shown(is_open=True, matches=7)
    assert plain([rows.file_row(row, shown)]) == "▾ guide.md  7 of 1,200"


def test_a_resource_without_a_name_has_words():
    """Files that lie in no resource are shown under words, not under nothing."""
    row = Row(kind="resource", resource="", children=1)
    assert "(no document)" in plain([rows.file_row(row, rows.Shown())])


def test_a_chunk_row_shows_its_worst_finding_first():
    """Findings are told by letter, sign and code, errors first; else what was edited."""
    row = Row(path="chunked/a.md/chunk1.md", kind="chunk", edited=True)
    assert drift_of(row, findings=[SYMLINK, MODIFIED]).startswith(" E x modified")
    assert drift_of(row, findings=[SYMLINK]).startswith(" W ! symlink")
    assert drift_of(row) == " edited"


def test_what_is_withheld_is_said_once():
    """The reason why a file is left out is said, but not beside the same finding."""
    row = Row(path="chunked/x.md", kind="chunk", excluded="empty")
    assert drift_of(row).startswith(" x empty")
    finding = Finding(code="empty", path="chunked/x.md")
    assert drift_of(row, findings=[finding]) == " W ! empty"


@pytest.mark.parametrize(
    ("changes", "words", "role"),
    [
        ({}, "fresh: as indexed", "good"),
        ({"freshness": "edited"}, "edited since it was indexed", "warning"),
        ({"freshness": "not indexed"}, "not indexed: no search finds it", "warning"),
        ({"withheld": "empty"}, "excluded from search: empty", "error"),
    ],
)
def test_the_head_says_how_a_chunk_stands(changes, words, role):
    """Freshness is told in words, and its role differs with it."""
    lines = chunks.head_lines(about(**changes), [])
    assert words in plain(lines)
    assert role in roles(lines)


def test_the_head_says_where_a_chunk_comes_from():
    """Path, kind, source, pages, edits by hand and findings stand above the text."""
    lines = chunks.head_lines(
        about(kind="summary", pages=(3, 4), hand_edited=True), [MODIFIED, SYMLINK]
    )
    first, second, third = plain(lines).split("\n")
    assert first == "chunked/a.md/chunk1.md  summary"
    assert second.startswith("../a.md  pp. 3, 4")
    assert "edited by hand" in second
    assert third.split("  ")[:2] == ["E x modified", "W ! symlink"]


@given(st.lists(st.text("abcdé ", max_size=20)))
def test_a_text_is_shown_line_by_line(lines):
    """Each line of a short text is a line of the screen, and nothing else is."""
    assert plain(chunks.text_lines("\n".join([*lines, "end\n"]))) == "\n".join([*lines, "end"])


def test_a_long_text_is_cut_at_a_line():
    """Of a long text whole lines of the first part are shown, and how to see the rest."""
    text = "".join(f"line {number}\n" for number in range(20_000))
    shown = chunks.first_part(text)
    assert text.startswith(f"{shown}\n")
    (_, more) = chunks.hidden_lines(text)
    hidden = len(text) - len(shown)
    assert plain([more]) == f"… {hidden:,} characters more: press o for the whole file"
    assert plain(chunks.text_lines(text)).split("\n")[-1] == "line 19999"


def test_a_cut_file_says_so():
    """A file longer than what is read of it does not end as if that were all."""
    assert "the file is longer" in plain(chunks.raw_lines(about(raw_cut=True)))
    assert plain(chunks.raw_lines(about())) == "---\n---\nText."


def test_facts_tell_everything_of_a_chunk():
    """Metadata, questions, provenance, vectors and hashes are all there, in words."""
    said = plain(
        chunks.fact_lines(
            about(
                frontmatter={"status": "draft", "tags": ["a", "b"], "headings": ["Top"]},
                record={"document": {"author": "Ada"}},
                pages=(7,),
                headings=("Top", "Low"),
                questions=("What is it?",),
                vectors=(
                    VectorFacts(part=0, id=17, embedded=True, norm=1.0, when="generation 3"),
                    VectorFacts(part=1, id=18, embedded=False, norm=None, when=""),
                ),
                indexed_hash="cd",
            )
        )
    )
    for expected in (
        "pages      p. 7",
        "headings   Top > Low",
        "  1. What is it?",
        "status     draft",
        'tags       ["a", "b"]',
        "author     Ada",
        "body       17  norm 1.0000  generation 3",
        "question 1 18  norm not stored".replace("norm not stored", "not stored  not embedded"),
        "model      builtin/1:384",
        "on disk    ab",
        "indexed    cd (another)",
        "generated  sha256:cd",
        "by hand    no, as it was generated",
    ):
        assert expected in said, expected
    assert said.count("headings") == 1


def test_facts_of_a_file_that_is_no_chunk_say_why():
    """A file that could not be parsed is shown with the reason, and with no vectors."""
    said = plain(chunks.fact_lines(about(problem="line 3: no end", vectors=(), indexed_hash="")))
    assert said.startswith("line 3: no end")
    assert "nothing of this file is indexed" in said
    assert "indexed    never" in said


def test_an_endless_value_is_cut():
    """One value does not fill the screen."""
    lines = chunks.fact_lines(about(frontmatter={"key": "x" * 10_000}))
    assert max(len(one) for one in plain(lines).split("\n")) < 400


def test_findings_come_with_their_repair():
    """What is wrong is told with what mends it."""
    said = plain(chunks.finding_lines([MODIFIED]))
    assert "E x error" in said
    assert "modified: its text differs" in said
    assert f"repair: {MODIFIED.repair}" in said


def test_a_resource_is_told_with_its_documents():
    """What a resource was made from and by stands there, and how much of it drifted."""
    known = AboutResource(
        resource="guide",
        source="source/guide",
        documents=(("source/guide/a.md", {"title": "A"}),),
        chunks=1234,
        extractor="markdown/1",
        chunker="structure/2",
        record_path="chunked/guide/meta.json",
    )
    said = plain(chunks.resource_lines(known, {"E": 1, "W": 0, "I": 2}))
    for expected in ("source/guide", "1,234", "markdown/1", "meta.json", "title      A"):
        assert expected in said
    assert "E x 1 error" in said
    assert "I i 2 notes" in said
    assert "W !" not in said
    assert "none known" in plain(chunks.resource_lines(known, {}))


@pytest.mark.parametrize(
    ("typed", "query", "mode"),
    [
        ("moved files", "moved files", "hybrid"),
        ("v: moved files", "moved files", "vector"),
        ("K:exact", "exact", "keyword"),
        ("h:both", "both", "hybrid"),
        ("vector: no", "vector: no", "hybrid"),
    ],
)
def test_a_prefix_chooses_the_mode(typed, query, mode):
    """`v:`, `k:` and `h:` say how is searched, for this and the following queries."""
    assert search.parse_query(typed, "hybrid") == (query, mode)


def test_without_a_prefix_the_mode_stays():
    """The mode that was set holds for what says nothing else."""
    assert search.parse_query("words", "keyword") == ("words", "keyword")
    assert search.parse_query("h:words", "keyword") == ("words", "hybrid")


def test_modes_go_round():
    """Three presses lead back to the first mode, each with other words."""
    seen = ["hybrid"]
    for _ in range(3):
        seen.append(search.next_mode(seen[-1]))
    assert seen == ["hybrid", "vector", "keyword", "hybrid"]
    assert len({plain(search.mode_lines(mode)) for mode in seen}) == 3


@given(st.text())
def test_another_mode_asks_the_same_words(text):
    """A query that says how it is searched keeps its words when that is changed, through all."""
    asked, mode = search.parse_query(f"k:{text}", "hybrid")
    seen = {mode}
    other = f"k:{text}"
    for _ in search.MODES[1:]:
        other = search.other_mode(other)
        same, mode = search.parse_query(other, "hybrid")
        assert same == asked
        seen.add(mode)
    assert seen == set(search.MODES)
    assert search.other_mode("words") == ""


def test_how_long_a_question_takes_is_said_once_anybody_wonders():
    """A short question only says what is asked; a longer one also since when, and the way out."""
    assert plain(search.asking_lines("milk", 0.1, shown_after_s=0.3)) == "searching for milk"
    said = plain(search.asking_lines("milk", 2.25, shown_after_s=0.3))
    assert "2.2 s" in said
    assert "escape cancels" in said


def test_what_is_not_indexed_names_its_key():
    """Files that no search finds are counted, with the key that indexes them; none says nothing."""
    assert rows.unindexed_lines(0) == []
    assert "20,000 files are not indexed yet" in plain(rows.unindexed_lines(20_000))
    assert "1 file is not indexed yet" in plain(rows.unindexed_lines(1))
    assert "i indexes" in plain(rows.unindexed_lines(2))


def test_a_query_can_keep_to_sources():
    """`in:GLOB` is taken out of the words and given as a filter."""
    kept, glob = search.parse_named("moved files in:docs/*.md", search.is_source)
    assert (kept, glob) == ("moved files", "docs/*.md")
    assert search.parse_named("in: nothing", search.is_source) == ("in: nothing", "")


def test_a_syntax_can_be_named():
    """`syntax:WORD` is taken out of the words, where the word is a syntax; else it is searched."""
    is_syntax = search.SYNTAXES.__contains__
    found = search.parse_named("boat -anchor syntax:plain", is_syntax)
    assert found == ("boat -anchor", "plain")
    assert search.parse_named("python syntax:error", is_syntax) == ("python syntax:error", "")


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("a moved file", ["a", "moved", "file"]),
        ('see "the same day" now', ["the same day", "see", "now"]),
        ("x -longer pre*", ["x", "pre"]),
    ],
)
def test_every_word_of_a_query_is_marked(query, word):
    """Phrases stay whole; what is excluded is not marked."""
    assert search.query_words(query) == word


@given(TEXTS)
def test_any_query_can_be_looked_for(query):
    """No query, however odd, keeps its answer from being shown."""
    assert all(search.query_words(query))
    words, _ = search.parse_named(search.parse_query(query, "hybrid")[0], search.is_source)
    assert len(words) <= len(query)


def test_a_hit_is_named_by_its_heading_and_its_place_has_a_column():
    """Title and heading, the passage with the words that were asked for; line or page beside it."""
    lined = hit(document="notes/deep.md", line=57, excerpt="Rename\n  a note", marks=((0, 6),))
    assert plain([search.hit_row(1, lined)]) == "  1 notes/deep.md > Low  Rename a note"
    assert ("Rename", "match") in {(span.text, span.role) for span in search.hit_row(1, lined)}
    assert plain([search.hit_columns(lined, 90)]).strip() == "notes/deep.md:57"
    assert search.hit_columns(lined, 89) == ()
    paged = hit(document="report.pdf", page=3, excerpt="What it cost")
    assert plain([search.hit_row(1, paged)]) == "  1 report.pdf > Low  What it cost"
    assert plain([search.hit_columns(paged, 90)]).strip() == "report.pdf p. 3"
    several = hit(document="report.pdf", pages=(3, 4))
    assert plain([search.hit_columns(several, 90)]).strip() == "report.pdf p. 3"
    assert "chunked/a.md/chunk1.md > Low  Some text" in plain([search.hit_row(1, hit())])


def test_of_a_long_path_its_end_is_shown():
    """Whole names where one fits, and what is left of a name that does not."""
    deep = hit(document="projects/garden/2026/spring/seedlings.md", line=3)
    assert " …/2026/spring/seedlings.md > Low " in plain([search.hit_row(1, deep)])
    assert plain([search.hit_columns(deep, 90)]).strip() == "…/2026/spring/seedlings.md:3"
    long = hit(document=f"notes/{'a' * 40}-end.md")
    assert "a-end.md" in plain([search.hit_columns(long, 90)])
    # With no room for both, the heading alone.
    assert plain([search.hit_row(1, long)]) == "  1 Low  Some text of it."


def test_a_hit_says_whether_it_can_be_relied_on():
    """A hit that is not fresh says so; a fresh one takes no words for it."""
    assert "edited since" in plain([search.hit_row(2, hit(freshness="edited"))])
    assert "its original changed" in plain([search.hit_row(2, hit(freshness="outdated"))])
    gone = search.hit_row(3, hit(freshness="gone"))
    assert "the file is gone" in plain([gone])
    assert "error" in roles([gone])


def test_below_the_hits_all_is_told_of_one():
    """Where it stands in full, under which headings, and what its score is made of."""
    one = hit(
        document="projects/garden/2026/spring/seedlings.md",
        line=3,
        section=("Garden", "May"),
        why={"keyword": {"rank": 2, "score": 7.1, "points": 0.4, "evidence": 1.0, "confidence": 1}},
    )
    assert plain(search.hit_lines(one)).split("\n") == [
        "projects/garden/2026/spring/seedlings.md:3",
        "Garden > May",
        "score 1.00  keyword 0.40 (#2 7.10)",
    ]
    assert search.hit_lines(None) == []


def test_an_answer_says_what_to_know_of_it():
    """How much was found, by which mode, and every note stand above the hits."""
    answer = Answer(
        query="q",
        understood=Understood(),
        mode="keyword",
        generation=1,
        hits=(hit(), hit()),
        notes=("no model",),
    )
    said = plain(search.answer_lines(answer, limit=50))
    assert said.startswith("2 files · keyword")
    assert said.endswith("no model")
    assert plain(search.answer_lines(answer, limit=2)).startswith("the best 2 files")
    empty = msgspec.structs.replace(answer, hits=())
    assert plain(search.answer_lines(empty, limit=2)).startswith("nothing found")


def test_a_neighbour_is_told_with_its_cosine():
    """How near, its own heading and first words; beside it which document and page."""
    near = Neighbour(
        path="chunked/b.md/chunk2.md",
        resource="b.md",
        cosine=0.934,
        headings=("A", "H"),
        pages=(3,),
        words="So it is.",
    )
    assert plain([rows.neighbour_row(near)]) == " 0.93 H  So it is."
    assert plain([rows.neighbour_place(near, CHUNKS, 60)]) == "  b.md p. 3"


def test_a_neighbour_keeps_its_place_on_a_narrow_screen():
    """The end of a long path and the line show, in a third of the row."""
    near = Neighbour(
        path="docs/user/getting-started/navigation.md",
        resource="docs/user/getting-started",
        cosine=0.5,
        headings=(),
        pages=(),
        line=142,
    )
    said = plain([rows.neighbour_place(near, DOCUMENTS, 60)])
    assert said == "  …/navigation.md:142"


def test_the_chosen_section_is_told_by_brackets():
    """Which way of looking is chosen shows without colour, the keys of the others beside it."""
    keys = dict.fromkeys(chunks.SECTIONS, "o")
    said = plain([*chunks.section_labels("facts", keys).values()])
    assert "[Facts]" in said
    assert "o Raw" in said
    assert "[Raw]" not in said
    assert "[Map]" in plain([chunks.section_labels("map", keys)["map"]])


def test_the_number_line_names_the_filter():
    """Below the tree stands how much there is, or how much a filter leaves."""
    whole = rows.count_line(shown=0, resources=3, chunks=1500, filtered="", has_sections=False)
    assert plain([whole]) == "3 documents · 1,500 chunks"
    left = rows.count_line(shown=2, resources=1, chunks=1500, filtered="!draft", has_sections=False)
    assert plain([left]) == "2 chunks of 1 document  esc: all"


@pytest.mark.parametrize(
    ("headings", "said"),
    [
        ((), "    chunk1.md  Renames"),
        (("Renames",), "    chunk1.md  Renames"),
        (("Guide", "Renames"), "    chunk1.md  Renames  Guide"),
        (("Guide", "Other"), "    chunk1.md  Renames  Guide > Other"),
    ],
)
def test_a_chunk_row_says_what_it_is(headings, said):
    """Its title and the headings above it, none of them twice."""
    row = Row(
        path="chunked/a.md/chunk1.md",
        kind="chunk",
        title="Renames",
        headings=headings,
        size_bytes=1_234,
    )
    assert plain([rows.file_row(row, rows.Shown(name="a.md"))]) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 KB"), (12_345, "12 KB"), (3 * 10**9, "3.0 GB")],
)
def test_sizes_are_short(number, said):
    """A few characters, with the unit."""
    assert rows.size(number) == said


def test_a_folder_lists_its_documents():
    """Below its own name, with titles that say more; the rest is counted."""
    inside = [
        Row(kind="document", path="garden/Beans.md", title="Beans"),
        Row(kind="document", path="garden/2026/May.md", title="In May"),
    ]
    shown = plain(chunks.folder_lines("garden/", inside, 5)).splitlines()
    assert shown[:3] == ["Beans.md", "2026/May.md  In May", "  … 3 more"]
