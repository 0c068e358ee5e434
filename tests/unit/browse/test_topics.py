"""What many documents are about: groups, their names, and texts that have none."""

import numpy
import pytest

from filestore.browse.topic_words import words_of
from filestore.browse.topics import Topic, grouped, groups

SUBJECTS = {
    "bees": "The beekeeper opens the hive; honeycombs and a queen. Beekeepers wear veils.",
    "boats": "A keel of oak is laid, the hull is caulked, the mast stepped. Hulls want tar.",
    "bread": "Sourdough rises overnight; the dough is kneaded and the oven hot. Doughs rest.",
}


def _documents(*, each: int = 6) -> list[Topic]:
    made = []
    for number in range(each):
        for name, text in SUBJECTS.items():
            own = f"Singular{name}{number}. Hello and welcome! `snippet` it's what's there."
            made.append(words_of(f"{name}/{number}.md", f"Singular{name}{number}", f"{text} {own}"))
    return grouped(made)


def test_groups_are_named_by_what_others_lack() -> None:
    """One topic a subject, typical paths, no word of one document, no code, no greeting."""
    found = _documents()
    assert found == _documents()
    subjects = [{path.partition("/")[0] for path in one.paths} for one in found]
    assert all(len(one) == 1 for one in subjects)
    assert set.union(*subjects) == SUBJECTS.keys()
    assert sum(one.documents for one in found) == 18
    terms = [term.casefold() for one in found for term in one.terms]
    assert len(terms) == len({term[:5] for term in terms})
    said = " ".join(terms)
    assert not any(word in said for word in ("singular", "hello", "welcome", "snippet", "'s"))


@pytest.mark.parametrize("subjects", [3, 5])
def test_a_few_documents_have_topics_as_well(subjects: int) -> None:
    """From six on, each of two at least, with a name that both have and no other."""
    texts = [
        *SUBJECTS.values(),
        "A glacier calves into the fjord; icebergs drift. Glaciers carve moraines.",
        "The violin is tuned, the bow rosined; a luthier varnishes violins of spruce.",
    ]
    made = [
        words_of(f"{name}/{number}.md", f"Singular{name}{number}", text)
        for number in range(2)
        for name, text in enumerate(texts[:subjects])
    ]
    found = grouped(made)
    assert [one.documents for one in found] == [2] * subjects
    assert all(len({path.partition("/")[0] for path in one.paths}) == 1 for one in found)
    assert not any("singular" in term.casefold() for one in found for term in one.terms)


@pytest.mark.parametrize(
    "texts",
    [
        [""] * 1_000,
        ["12 34 … --- 🐳"] * 20,
        ["one document"],
        [],
        ["x" * 10_000] * 20,
        ["[[" * 5_000, "](" * 5_000, "{" * 8_000] * 5,
    ],
)
def test_texts_without_words_have_no_topic(texts: list[str]) -> None:
    """Empty ones, signs, one, none, one word that is none, nothing but brackets."""
    assert grouped([words_of(f"{number}.md", "", text) for number, text in enumerate(texts)]) == []


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (("蜜蜂在花园", "木船停港口"), ("蜜蜂", "木船")),
        (("النحل يجمع العسل", "السفينة الميناء القديم"), ("النحل", "السفينة")),
    ],
)
def test_other_scripts(texts: tuple[str, str], named: tuple[str, str]) -> None:
    """Chinese, which has no blanks, and Arabic."""
    found = grouped([words_of(f"{row}.md", texts[row % 2], "") for row in range(14)])
    assert [one.documents for one in found] == [7, 7]
    assert {*named} <= {term for one in found for term in one.terms}


def test_meaning_parts_what_words_do_not() -> None:
    """Documents with the same words are parted by their vectors."""
    made = [words_of(f"{row}.md", "", "The lantern shines.") for row in range(12)]
    assert [*groups(made, None)] == []
    vectors = numpy.zeros((12, 2), numpy.float32)
    vectors[:, 0] = [1 - 2 * (row % 2) for row in range(12)]
    found = {frozenset(one) for one in groups(made, vectors) if one}
    assert found == {frozenset(range(0, 12, 2)), frozenset(range(1, 12, 2))}
