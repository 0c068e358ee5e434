"""What a filter leaves, and the order in which files are listed; no disk."""

import re
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filestore import UsageError
from filestore.browse import NameFilter
from filestore.browse.name_filter import FEW, MOST, names_of
from filestore.chunks import chunk_file, reading_order

PLAIN = st.builds(
    "{}{}.md".format,
    st.sampled_from(["chunk", "summary"]),
    st.integers(0, 5) | st.integers(0, 10**19),
)
ODD = st.sampled_from(
    (
        *("chunk.md", "chunk01.md", "chunk-5.md", "chunk1,2.md", "chunk-0.md", "summary-1.md"),
        *("chunk3-k7q2.md", "sub/chunk1.md", "notes.md", "chunk1.txt", "chunk2.md.md"),
        *("r/chunk4.md", "chunk5", "summary0.md", "x\udcff.md", "chunk+6.md", "chunk1e3.md"),
    )
)
WORDS = st.text(alphabet="abÀéßſ-/.İ1", max_size=6)


def as_packed(prefix: str, names: list[str]) -> tuple[bytes, bytes]:
    """Ids from 1 and paths, as the catalog hands them over."""
    ids = ",".join(str(number) for number in range(1, len(names) + 1))
    paths = "\0".join(prefix + name for name in names)
    return ids.encode(), paths.encode("utf-8", "surrogateescape")


def listed(ordered: reading_order.Ordered) -> list[tuple[int, str]]:
    """Id and path of every file, as they stand."""
    paths = [path for block in ordered.blocks for path in ordered.paths(block).split("\0")]
    return list(zip(ordered.ids(), paths, strict=True))


def in_order(rows: list[tuple[int, str | None, str]]) -> list[tuple[int, str]]:
    """Id and path of every file, as sort keys say."""
    rows = sorted(rows, key=lambda row: chunk_file.sort_key(row[1], row[2]))
    return [(number, path) for number, _, path in rows]


@given(st.lists(PLAIN | ODD, min_size=1, max_size=30, unique=True))
def test_the_quick_order_is_the_order_of_sort_keys(names: list[str]) -> None:
    """Files put in order by their numbers stand as their sort keys say, or are not taken at all."""
    found = reading_order.by_number("r/", *as_packed("r/", names))
    rows = [(number, None, f"r/{name}") for number, name in enumerate(names, start=1)]
    assert found is None or listed(found) == in_order(rows)
    assert listed(reading_order.by_key(rows)) == in_order(rows)


@given(st.lists(PLAIN, min_size=1, max_size=30, unique=True))
def test_plain_names_are_put_in_order_quickly(names: list[str]) -> None:
    """Numbered chunks and summaries need no second way, up to 18 digits; `summary0` is odd."""
    is_plain = all(len(re.sub(r"\D", "", name)) <= 18 and name != "summary0.md" for name in names)
    found = reading_order.by_number("a b/", *as_packed("a b/", names))
    assert (found is not None) == is_plain
    if found is not None:
        rows = [(number, None, f"a b/{name}") for number, name in enumerate(names, start=1)]
        assert listed(found) == in_order(rows)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 50), max_size=200))
def test_order_of_many_is_the_order_of_few(keys: list[int]) -> None:
    """Sorting a block at a time gives what sorting at once gives, equal keys in their order."""
    many = keys * (reading_order.BLOCK // 100)
    assert reading_order.order_of(many) == sorted(range(len(many)), key=many.__getitem__)


def test_a_large_resource_is_in_order_over_all_blocks() -> None:
    """Ten thousand chunks stand by number, however many blocks they fill."""
    names = sorted(f"chunk{number}.md" for number in range(1, 10_001))
    found = reading_order.by_number("r/", *as_packed("r/", names))
    assert found is not None
    assert len(found.blocks) == 3
    paths = [path for _, path in listed(found)]
    assert paths == [f"r/chunk{number}.md" for number in range(1, 10_001)]
    assert [names[one - 1] for one in found.ids()[:3]] == ["chunk1.md", "chunk2.md", "chunk3.md"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [0, 1, 2, 3]),
        ("!", [0, 1, 2, 3]),
        ("DRAFT", [1]),
        ("!draft", [0, 2, 3]),
        ("guide/", [0, 1]),
        ("e/c", [0, 2]),
        ("über", [3]),
        ("u\u0308ber", [3]),
        ("strasse", [2]),
        ("~^guide.*1\\.md$", [0]),
        ("!~chunk", [1]),
        ("nowhere", []),
        ("!nowhere", [0, 1, 2, 3]),
        ("a.b", []),
    ],
)
def test_a_filter_leaves_what_fits(text: str, expected: list[int]) -> None:
    """Words fit anywhere in a path, whatever their case or composition; ! turns, ~ is a regex."""
    paths = ["guide/chunk1.md", "Guide/Draft-2.md", "Straße/chunk1.md", "ÜBER/chunk7.md"]
    assert list(NameFilter.parse(text).places("\0".join(paths))) == expected


@given(WORDS, st.lists(st.text(alphabet="abÀéßſ-/.İ1", min_size=1, max_size=8), min_size=1))
def test_a_path_fits_alone_as_it_does_among_others(text: str, paths: list[str]) -> None:
    """What is beside a path does not count, and a filter and its inverse share out everything."""
    joined = "\0".join(paths)
    for parsed in (NameFilter(text=text), NameFilter(text=re.escape(text), regex=True)):
        alone = [place for place, path in enumerate(paths) if list(parsed.places(path))]
        assert list(parsed.places(joined)) == alone
        if text:
            inverse = NameFilter(text=parsed.text, regex=parsed.regex, inverse=True)
            every = sorted([*alone, *inverse.places(joined)])
            assert every == list(range(len(paths)))
    folded = unicodedata.normalize("NFC", text).casefold()
    if text.isascii() and joined.isascii():
        assert list(NameFilter(text=text).places(joined)) == [
            place for place, path in enumerate(paths) if folded in path.casefold()
        ]


@pytest.mark.parametrize("text", ["~(", "!~[", "~a{99999999999999999999}", "~*"])
def test_what_is_no_regular_expression_is_told(text: str) -> None:
    """Half a regular expression is wrong usage, with what is wrong and a way out."""
    with pytest.raises(UsageError) as caught:
        NameFilter.parse(text)
    assert text.lstrip("!~") in caught.value.message
    assert "without the ~" in caught.value.message


def test_a_regular_expression_that_python_doubts_is_taken() -> None:
    """What may mean another thing in a later Python is no error now."""
    assert list(NameFilter.parse("~[[a]").places("a\0b")) == [0]


def ranked(text: str, *names: str) -> list[str]:
    """The names that pass, best first."""
    ranks: dict[int, int] = {}
    for key, rank in NameFilter.parse(text).ranked(
        names_of([(range(len(names)), "\0".join(names))])
    ):
        ranks[key] = max(rank, ranks.get(key, 0))
        assert 1 <= rank <= 255
    return [names[key] for key in sorted(ranks, key=ranks.__getitem__, reverse=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # In the name itself before a folder, and where a word begins before inside one.
        ("view", ["view.md", "graph-view.md", "view/a.md", "review.md", "v/i/e/w.md"]),
        ("!view", ["view.md", "graph-view.md", "view/a.md", "review.md"]),
        ("grph vw", ["graph-view.md"]),
        ("grv", ["graph-view.md"]),
        ("rvw", ["review.md"]),
        ("view graph", ["graph-view.md"]),
        ("eviw", []),
        ("gv", []),
        ("~^view", ["view/a.md", "view.md"]),
    ],
)
def test_the_best_name_is_first(text: str, expected: list[str]) -> None:
    """A word as it was typed, then its letters in order from the start of a word.

    Two letters are not scattered, nor is a regular expression.
    """
    names = ("review.md", "view/a.md", "graph-view.md", "v/i/e/w.md", "view.md", "nothing")
    assert ranked(text, *names) == expected


def test_the_case_that_was_typed_comes_first() -> None:
    """Cases are the same, and where they are as typed that counts a little."""
    assert ranked("Reed", "reed.md", "Reed.md") == ["Reed.md", "reed.md"]
    assert ranked("reed", "Reed.md", "reed.md") == ["reed.md", "Reed.md"]


def test_letters_are_not_scattered_where_enough_has_the_word() -> None:
    """The letters of a word are looked for only where few names have it."""
    names = [f"view-{number}" for number in range(FEW - 1)]
    assert "vielleicht-wo" in ranked("view", *names, "vielleicht-wo")
    assert "vielleicht-wo" not in ranked("view", *names, "view", "vielleicht-wo")
    every = ["vielleicht-wo"] * (MOST + 9_000)
    assert MOST <= len(ranked("view", *every)) < len(every)


@given(WORDS, st.lists(st.text(alphabet="abÀéßſ-/.İ1", min_size=1, max_size=8), min_size=1))
def test_what_passes_as_it_is_passes_ranked(text: str, names: list[str]) -> None:
    """Ranks leave out no name that has the text, and what has only its letters is behind all."""
    parsed = NameFilter(text=text or "a")
    as_is = {names[place] for place in parsed.places("\0".join(names))}
    found = ranked(parsed.text, *names)
    assert as_is <= set(found)
    assert all(name in as_is for name in found[: sum(name in as_is for name in names)])


@pytest.mark.parametrize(
    "text", ["aab", "aaaaaaaaaaaaaaaaaaac", "a-a-a-a-a-b", "ab ba abab", "[^\\]*"]
)
@pytest.mark.parametrize("name", ["a" * 100_000, "ab" * 50_000, "a-" * 50_000, "[^\\]*" * 20_000])
def test_a_long_name_costs_its_length(text: str, name: str) -> None:
    """A long name is looked through once for each letter, not for every way to scatter them."""
    begin = time.process_time()
    ranked(text, name)
    assert time.process_time() - begin < 5.0


@pytest.mark.parametrize(
    "name", ["مرحبا-بالعالم", "日本語のノート", "👩‍👩‍👧‍👦-family", "a\x1b[31mb\tc\u202ed"]
)
def test_any_name_is_found_by_its_own_letters(name: str) -> None:
    """Scripts without cases or blanks, joiners and escapes are letters as others are."""
    assert ranked(name, "other", name) == [name]
    assert ranked(name[:2], "other", name) == [name]
