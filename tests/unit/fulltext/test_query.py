"""The query language and the analysis: what users type, and what becomes of their texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.fulltext import SYNTAXES, Clause, Kind, Need, Syntax, parse_query
from filestore.fulltext._analysis import (
    INSIDE,
    LANGUAGES,
    camel_parts,
    camel_words_of,
    clean,
    grams_of,
    has_spaceless,
    identifiers_of,
    prepare,
    space_pairs,
    space_singles,
)
from filestore.fulltext._languages import language_of
from filestore.fulltext._query import MAX_CLAUSES, most_telling, relax
from filestore.fulltext._stamp import Stamp, parse_stamp, serialize_stamp

PIECES = st.sampled_from(
    [
        "word",
        "AND",
        "OR",
        "NOT",
        '"',
        "+",
        "-",
        "*",
        ":",
        "(",
        ")",
        " ",
        "pre*",
        "数据",
        "“",
        "\ud800",
    ]
)
QUERIES = st.one_of(st.text(), st.lists(PIECES).map("".join), st.lists(PIECES).map(" ".join))


def told(query: str, syntax: Syntax = "operators") -> list[tuple[str, str, str]]:
    return [(c.kind.value, c.need.value, c.text) for c in parse_query(query, syntax).clauses]


def test_words_are_optional():
    """Plain words ask for no more than to be matched."""
    assert told("red fox") == [("word", "optional", "red"), ("word", "optional", "fox")]


def test_signs_require_and_exclude():
    """A sign before a word, a prefix or a phrase decides how much it is needed."""
    assert told('+red -fox +"a b" -"c d" -col*') == [
        ("word", "required", "red"),
        ("word", "excluded", "fox"),
        ("phrase", "required", "a b"),
        ("phrase", "excluded", "c d"),
        ("prefix", "excluded", "col"),
    ]


def test_phrase_is_expected():
    """Quotes of either style make a phrase."""
    assert told('"red fox" “den here”') == [
        ("phrase", "expected", "red fox"),
        ("phrase", "expected", "den here"),
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("conn*", ("prefix", "conn")),
        ("co*", ("prefix", "co")),
        ("c*", ("word", "c*")),
        ("foo_b*", ("prefix", "foo_b")),
        ("数据*", ("prefix", "数据")),
    ],
)
def test_prefix_needs_two_characters(query, expected):
    """A star ends a prefix of at least two characters, and means nothing elsewhere."""
    assert told(query) == [(expected[0], "optional", expected[1])]


@pytest.mark.parametrize(
    "query", ["--no-embed", "std::vector", "C++", "os.path.join", "a-b", "x:y"]
)
def test_identifiers_are_words(query):
    """What looks like an operator inside an identifier is part of it."""
    assert told(query) == [("word", "optional", query)]


@pytest.mark.parametrize(
    ("query", "needs"),
    [
        ("a AND b", ["required", "required"]),
        ("a OR b", ["optional", "optional"]),
        ("a NOT b", ["optional", "excluded"]),
        ("a AND NOT b", ["required", "excluded"]),
        ('"a b" OR c', ["optional", "optional"]),
        ("a and b", ["optional"] * 3),
        ("AND a", ["optional"] * 2),
        ("a OR", ["optional"] * 2),
        ("NOT", ["optional"]),
        ("a AND AND b", ["optional", "required", "required"]),
        ("-a AND b", ["excluded", "required"]),
    ],
)
def test_operators_stand_between_words(query, needs):
    """AND, OR and NOT work between two clauses and are words anywhere else."""
    assert [need for _, need, _ in told(query)] == needs


@pytest.mark.parametrize("query", ["", "   ", "?!", '""', '"', "+ - *", "** :: ()", "—", "\ud800"])
def test_nothing_typed_asks_for_nothing(query):
    """Without a letter or digit there is nothing to look for."""
    assert parse_query(query).clauses == ()


def test_unbalanced_quote_is_dropped():
    """A lone quotation mark leaves the words around it as words."""
    assert told('say "hello there') == [
        ("word", "optional", "say"),
        ("word", "optional", "hello"),
        ("word", "optional", "there"),
    ]


WORDS = [
    "C++",
    "C# or F#",
    "-O2",
    "gcc -O2 -Wall",
    "--force",
    "git push --force -verbose",
    "x -y",
    "ls -la folder",
    "tar -xzf backup",
    "java -jar tool",
    "find notes -name old",
    "return -1",
    "temperature -12",
    'the "foo" function',
    "the “foo” function",
    'say "hello there',
    '5" disk and 3" tape',
    "don't panic",
    "'don't'",
    "a-b well-known",
    "Stadtplanung und -entwicklung",
    "- list item",
    "-item of a list",
    "-fox",
    "-fox -dog",
    "first\n-second",
    "*",
    "a * b",
    "*.py files",
    "char *name",
    "*bold* text",
    "cats NOT dogs",
    "does NOT compile",
    "you MUST NOT fail",
    "SELECT name WHERE old AND rich",
    "NOT",
    "AND OR NOT",
    "AND",
    "field:value",
    "std::vector",
    "(boat OR ship) AND -anchor",
    "x^2 -value",
    "~/notes -draft",
    "C:\\notes -draft",
    "什么是「连接池」？",
    "「数据」",
    '"word\ud800"',
    "what does git -C do",
    "what does git -exec do",
    "how does -verbose work",
    "does a boat need an anchor -really?",
    "The boat has no -anchor.",
    "if x == -one: return",
    "return -abs(x)",
    "def run(self) -> None",
    "grep -v foo | sort -rev",
    "find . -name notes",
    "gcc main.c -Wall",
    "java app.jar -verbose",
    "one two three four five six seven -eight",
    'is "the red fox" here?',
]


@pytest.mark.parametrize("query", WORDS)
def test_what_may_be_meant_otherwise_is_a_word(query):
    """Flags, numbers, code, lists, questions and sentences keep every word."""
    assert {(kind, need) for kind, need, _ in told(query, "auto")} <= {("word", "optional")}


OPERATORS = {
    "boat -anchor": ["boat", "excluded anchor"],
    "boat -anchor -sail": ["boat", "excluded anchor", "excluded sail"],
    "C++ -java": ["C++", "excluded java"],
    "jaguar speed -Auto": ["jaguar", "speed", "excluded Auto"],
    "数据 -连接": ["数据", "excluded 连接"],
    "+boat anchor": ["required boat", "anchor"],
    "+boat -anchor": ["required boat", "excluded anchor"],
    "boat -anchor +sail": ["boat", "excluded anchor", "required sail"],
    "boat AND anchor": ["required boat", "required anchor"],
    "boat AND NOT anchor": ["required boat", "excluded anchor"],
    "boat OR ship": ["boat", "ship"],
    "anch*": ["prefix anch"],
    "foo_b* code": ["prefix foo_b", "code"],
    '"red fox" den': ["expected phrase red fox", "den"],
    "„rote Füchse“ Bau": ["expected phrase rote Füchse", "Bau"],
    "«renard roux»": ["expected phrase renard roux"],
    "「重用连接」 池": ["expected phrase 重用连接", "池"],
    'fox -"red fox"': ["fox", "excluded phrase red fox"],
    'fox +"den"': ["fox", "required phrase den"],
    '"fatal: not a git repository (or any of the parent directories)"': [
        "expected phrase fatal: not a git repository (or any of the parent directories)"
    ],
}


@pytest.mark.parametrize(("query", "clauses"), OPERATORS.items())
def test_what_can_only_be_an_operator_is_one(query, clauses):
    """In a few words a sign before a word, two words in quotes and a star at the end act."""
    plain = {"word", "optional"}
    found = [
        " ".join([*(one for one in (need, kind) if one not in plain), text])
        for kind, need, text in told(query, "auto")
    ]
    assert found == clauses


@pytest.mark.parametrize("query", [*WORDS, *OPERATORS])
def test_plain_keeps_every_word(query):
    """Without operators every word typed is a word."""
    assert {(kind, need) for kind, need, _ in told(query, "plain")} <= {("word", "optional")}


def test_a_query_tells_what_was_understood():
    """Each clause is told by what it is, and what models read is free of what is excluded."""
    seen = parse_query('boat sail* +"two masts" -anchor').understood()
    assert seen.words == ("boat",)
    assert seen.prefixes == ("sail",)
    assert seen.required == ('"two masts"',)
    assert seen.excluded == ("anchor",)
    assert seen.text == "boat sail two masts"
    assert parse_query("return -1").understood().text == "return -1"


def test_long_queries_are_cut():
    """Five thousand words become no more clauses than the limit."""
    assert len(parse_query("word " * 5_000).clauses) <= MAX_CLAUSES


def test_of_very_many_words_those_that_tell_the_most_are_kept():
    """Wherever they stand; words that no text has tell nothing, operators stay."""
    rare = {"kestrel": 0.9, "count": 0.3}
    pasted = " ".join(f"frame{number}" for number in range(600)) + "\ncolumn:kestrel_count! count"

    def rarity(words):
        return [rare.get(word, 1.0 if word.startswith("frame5") else 0.1) for word in words]

    found = most_telling(parse_query(f'{pasted} "as one" -lamp', "operators"), rarity)
    texts = [clause.text for clause in found.clauses]
    assert len(texts) == MAX_CLAUSES
    assert {"column:kestrel_count!", "count", "as one", "lamp"} <= set(texts)
    assert not [text for text in texts if text.startswith("frame5")]
    assert found.left_out == 604 - MAX_CLAUSES
    assert most_telling(parse_query("a few words"), rarity) == parse_query("a few words")


def test_a_very_long_text_is_read_from_both_ends():
    """What a log ends with is what it was pasted for."""
    found = parse_query("word " * 60_000 + "kestrel", "plain")
    assert found.clauses[-1].text == "kestrel"


def test_only_exclusions_want_nothing():
    """A query that only excludes wants nothing."""
    assert parse_query("-a -b", "operators").wanted() == ()


def test_relaxing_turns_expected_phrases_into_words():
    """Beside words, a phrase can be given up; alone, or demanded with a plus, it cannot."""
    relaxed = relax(parse_query('luther "sola fide"', "operators"))
    assert relaxed is not None
    assert relaxed.clauses[1] == Clause(kind=Kind.WORD, need=Need.OPTIONAL, text="sola fide")
    assert relax(parse_query('"sola fide"', "operators")) is None
    assert relax(parse_query('luther +"sola fide"', "operators")) is None


@given(QUERIES, st.sampled_from(SYNTAXES))
def test_any_text_parses(query, syntax):
    """Whatever is typed, each clause has something to look for."""
    for clause in parse_query(query, syntax).clauses:
        assert any(map(str.isalnum, clause.text))


@given(QUERIES)
def test_no_word_is_lost_but_to_an_exclusion(query):
    """What is typed is searched for in any case, unless it is said to be left out."""
    parsed = parse_query(query)
    kept = "".join(filter(str.isalnum, "".join(clause.text for clause in parsed.clauses)))
    operators = [word for word in ("AND", "OR", "NOT") if word in query]
    if not operators and len(query) < 200:
        assert kept == "".join(filter(str.isalnum, query))
    assert parsed.wanted() or not any(map(str.isalnum, query))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use `foo_bar` here", ("foo_bar",)),
        ("self.foo_bar(x)", ("self.foo_bar", "foo_bar")),
        ("a std::vector<int> and os.path.join()", ("std::vector", "os.path.join")),
        ("run it --no-embed, or not", ("--no-embed",)),
        ("C++ or C# or Go", ("c++", "c#")),
        ("__init__ and _private", ("__init__", "_private")),
        ("größe_max", ("größe_max",)),
        ("one. Two: three - four -- five", ()),
        ("word--another, well-known, word...next and ____ and note#", ()),
        ("Python 3.11, v3.12 (4.2.1).", ("3.11", "v3.12", "3.12", "4.2.1")),
        (
            "CVE-2021-44228; PROJ-12, #123, org/name#7",
            ("cve-2021-44228", "proj-12", "#123", "org/name#7", "#7"),
        ),
        (
            "10.0.0.1:80 2001:db8::1 00:1A:2b:3c:4d:5e",
            ("10.0.0.1:80", "10.0.0.1", "2001:db8::1", "00:1a:2b:3c:4d:5e"),
        ),
        (
            "ann@example.org <https://example.org/a.md>",
            (
                "ann@example.org",
                "example.org",
                "https://example.org/a.md",
                "a.md",
                "example.org/a.md",
            ),
        ),
        (
            "2024-05-01T12:30, 01.05.2024",
            ("2024-05-01t12:30", "2024-05-01t12", "2024-05-01", "01.05.2024"),
        ),
        (
            "/etc/passwd docs/a.md C:\\x ./run",
            ("/etc/passwd", "docs/a.md", "a.md", "c:\\x", "./run"),
        ),
        ("A/B, R&D, .NET, F#, 1,234,567", ("a/b", "r&d", ".net", "f#", "1,234,567")),
        ("#lang/rust \U0001f680 \u2705\ufe0f", ("#lang/rust", "#lang", "\U0001f680", "\u2705")),
        (
            "\U0001f469\U0001f3fd\u200d\U0001f4bb",
            ("\U0001f469\U0001f4bb", "\U0001f469", "\U0001f4bb"),
        ),
        ("e3" * 32 + " " + "0" * 64, ("e3" * 32,)),
        ("caf&#233; </div> <br/>", ()),
        ("使用" + " foo_bar ", ("foo_bar",)),
    ],
)
def test_identifiers_are_found_whole(text, expected):
    """Identifiers are kept as written but for case; prose has none."""
    found = dict.fromkeys(word.removeprefix(INSIDE) for word in identifiers_of(text))
    assert tuple(found) == expected


def test_camel_case_is_taken_apart():
    """The parts of a camelCase word are words of their own."""
    words = camel_words_of("The parseXMLFile of HttpServer and plain Words, USA")
    assert words == ["parseXMLFile", "HttpServer"]
    assert camel_parts(words) == "parse XML File Http Server"


def test_scripts_without_spaces_become_pairs_and_singles():
    """A run of such a script is split, an alphabet in threes; what is around it is left alone."""
    assert space_pairs("A数据库b").split() == ["A", "数据", "据库", "b"]
    assert space_singles("A数据库b").split() == ["A", "数", "据", "库", "b"]
    assert space_pairs("字").split() == ["字"]
    assert space_pairs("กขคง数据库b").split() == ["กขค", "ขคง", "数据", "据库", "b"]
    assert space_singles("กขคง数据").split() == ["กขค", "ขคง", "数", "据"]
    assert prepare("กขคง กข")[0].split() == [
        "กขค",
        "ขคง",
        "กข",
        "0" * 64,
        "ข",
        "0" * 64,
        "คง",
        "0" * 64,
        "ง",
    ]


def test_compatibility_forms_are_the_same_text():
    """Ligatures, decomposed accents, full width and soft hyphens make no difference."""
    assert clean("ﬁle") == "file"
    assert clean("cafe\u0301") == "café"
    assert clean("ＡＢＣ") == "ABC"
    assert clean("data\u00adbase") == "database"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("هٰذَا كِتَابٌ جَدِيدٌ", "هذا كتاب جديد"),
        ("أحمد إلى آخر كتـــاب مستشفى", "احمد الى اخر كتاب مستشفي"),
        ("Пётр ещё за\u0301мок", "Петр еще замок"),
        ("İstanbul i\u0307zmir", "Istanbul izmir"),
        ("שָׁלוֹם", "שלום"),
        ("Άνθρωπος ὁδὸς", "Ανθρωποσ οδοσ"),
    ],
)
def test_marks_beyond_latin_make_no_difference(text, same):
    """Vowel signs, alefs, ё, İ, points, accents of Greek and its final sigma."""
    assert clean(text) == clean(same)


def test_what_is_a_letter_of_its_own_stays():
    """No accent is taken off й, nor off a letter of Latin, which a stemmer wants to see."""
    assert clean("йод größer น้ำ") != clean("иод größer นำ")
    assert clean("größer") == "größer"


def test_grams_cover_long_words():
    """Long words are covered by five-letter pieces, short ones have none."""
    assert grams_of("Hauptstadt am Rhein", shortest=8) == [
        "haupt", "aupts", "uptst", "ptsta", "tstad", "stadt",
    ]  # fmt: skip


@given(st.text())
def test_any_text_can_be_prepared(text):
    """Every text yields valid UTF-8, a known language, and nothing beyond its characters."""
    cleaned = clean(text)
    exact, stem = prepare(cleaned)
    assert (exact + stem).encode("utf-8") is not None
    assert language_of(cleaned) in LANGUAGES
    assert clean(cleaned) == cleaned


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "Zs"])))
def test_quick_look_never_misses_a_script(text):
    """Where the quick look sees no script without spaces, there is none."""
    if not has_spaceless(text):
        assert space_pairs(text + "字").startswith(text)


NUMBERS = st.integers(min_value=0, max_value=2**62)
NAMES = st.text(alphabet="abcdef0123456789.", min_size=3).filter(lambda name: set(name) != {"."})
STAMPS = st.builds(
    Stamp,
    generation=NUMBERS,
    catalog=st.text(),
    documents=NUMBERS,
    deleted=NUMBERS,
    files=st.lists(
        st.tuples(NAMES.map("part-x/{}".format), NUMBERS, st.text(alphabet="abcdef")), min_size=1
    ).map(tuple),
    analysis=st.text(alphabet="abc-1"),
)


@given(STAMPS)
def test_stamp_round_trips(stamp):
    """A stamp is read back as it was written."""
    assert parse_stamp(serialize_stamp(stamp)) == stamp


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"generation":1,"catalog":"c","documents":1,"analysis":"x","files":[]}',
        b'{"generation":1,"catalog":"c","documents":1,"analysis":"x","files":[["../x",1,"a"]]}',
        b'{"generation":1,"catalog":"c","documents":1,"analysis":"x","files":[["a/b/c",1,"a"]]}',
        b'{"generation":"1","catalog":"c","documents":1,"analysis":"x","files":[["a/b",1,"a"]]}',
    ],
)
def test_what_is_no_stamp_is_none(data):
    """Anything but a whole stamp, and any path out of the folder, counts as no stamp."""
    assert parse_stamp(data) is None


@given(st.binary())
def test_any_bytes_are_a_stamp_or_none(data):
    """Damaged bytes never raise."""
    assert parse_stamp(data) is None
