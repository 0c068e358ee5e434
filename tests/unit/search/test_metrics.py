"""What must hold of the measures, the files of questions and the bootstrap."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.search.evaluate import Grep
from filestore.search.metrics import (
    QueriesInvalid,
    Scores,
    mean,
    ndcg,
    paired_difference,
    parse_queries,
    recall,
    reciprocal_rank,
    score,
)

ITEMS = st.sampled_from("abcdefghij")
RANKINGS = st.lists(ITEMS, unique=True)
GRADES = st.dictionaries(ITEMS, st.integers(0, 3).map(float), min_size=1).filter(
    lambda grades: any(grades.values())
)
COUNTS = st.integers(1, 12)
TEXTS = st.text(min_size=1).filter(lambda text: bool(text.strip()))


def test_ndcg_is_the_published_one() -> None:
    """Grades are gained as they are and discounted by the logarithm of place + 1 to base 2."""
    grades = {"a": 3.0, "b": 2.0, "c": 1.0}
    best = 3 + 2 / math.log2(3) + 1 / 2
    found = 1 + 3 / math.log2(3) + 2 / math.log2(5)
    assert ndcg(["c", "a", "x", "b"], grades, 10) == pytest.approx(found / best)
    assert ndcg(["x", "a"], {"a": 1.0}, 10) == pytest.approx(1 / math.log2(3))
    assert ndcg(["x", "a"], {"a": 1.0}, 1) == 0


def test_recall_counts_all_right_answers() -> None:
    """Recall is the share of all right answers, also of those no list of this length could hold."""
    grades = {"a": 1.0, "b": 1.0, "c": 2.0, "wrong": 0.0}
    assert recall(["wrong", "a", "x", "c"], grades, 10) == pytest.approx(2 / 3)
    assert recall(["a", "b", "c"], grades, 1) == pytest.approx(1 / 3)


def test_the_reciprocal_rank_is_that_of_the_first_right_answer() -> None:
    """Only the first right answer counts, and only among the places that are looked at."""
    assert reciprocal_rank(["x", "y", "b", "a"], {"a": 2.0, "b": 1.0}, 10) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x", "y", "b"], {"b": 1.0}, 2) == 0
    assert reciprocal_rank(["wrong", "b"], {"b": 1.0, "wrong": 0.0}, 10) == 0.5


@given(RANKINGS, GRADES, COUNTS)
def test_measures_are_shares(ranking: list[str], grades: dict[str, float], count: int) -> None:
    """Every measure is from 0 to 1, and 1 for the best ranking there can be."""
    found = score(ranking, grades, count)
    assert all(0 <= value <= 1 + 1e-12 for value in (found.ndcg, found.recall, found.mrr))
    best = score(sorted(grades, key=lambda item: -grades[item]), grades, len(grades))
    assert best == Scores(ndcg=pytest.approx(1), recall=1, mrr=1)


@given(RANKINGS, GRADES, COUNTS)
def test_a_better_place_never_costs(
    ranking: list[str], grades: dict[str, float], count: int
) -> None:
    """Taking a wrong item out of the top lowers no measure."""
    right = [item for item in ranking if grades.get(item)]
    before, after = score(ranking, grades, count), score(right, grades, count)
    assert after.ndcg >= before.ndcg - 1e-12
    assert after.recall >= before.recall
    assert after.mrr >= before.mrr


def test_the_mean_weighs_questions_alike() -> None:
    """The mean is taken measure by measure."""
    one, other = Scores(ndcg=1, recall=0.5, mrr=0), Scores(ndcg=0, recall=0.5, mrr=0.5)
    assert mean([one, other]) == Scores(ndcg=0.5, recall=0.5, mrr=0.25)


@given(
    st.lists(
        st.tuples(TEXTS, st.dictionaries(TEXTS, st.integers(1, 3), min_size=1)),
        min_size=1,
        max_size=5,
    )
)
def test_questions_survive_their_file(questions: list[tuple[str, dict[str, int]]]) -> None:
    """What was written one object a line is read back, with the number of its line."""
    lines = [json.dumps({"query": query, "relevant": grades}) for query, grades in questions]
    found = parse_queries("\n\n".join(lines).encode(), name="q")
    assert [(one.query, one.relevant) for one in found] == questions
    assert [one.line for one in found] == [2 * place + 1 for place in range(len(questions))]


def test_a_list_of_answers_has_equal_grades() -> None:
    """Names in a list count 1 each; an id is kept, other keys are left alone."""
    line = b'{"id": 7, "query": "q", "relevant": ["a", "b"], "note": "?"}\r\n'
    (found,) = parse_queries(b"\xef\xbb\xbf" + line, name="q")
    assert (found.id, found.line, dict(found.relevant)) == ("7", 1, {"a": 1.0, "b": 1.0})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "object"),
        ('{"relevant": ["a"]}', "'query'"),
        ('{"query": " ", "relevant": ["a"]}', "'query'"),
        ('{"query": "q"}', "'relevant'"),
        ('{"query": "q", "relevant": "a"}', "'relevant'"),
        ('{"query": "q", "relevant": []}', "'relevant'"),
        ('{"query": "q", "relevant": [1]}', "'relevant'"),
        ('{"query": "q", "relevant": [" "]}', "a path without a name"),
        ('{"query": "q", "relevant": {"a": -1}}', "grade of 'a'"),
        ('{"query": "q", "relevant": {"a": true}}', "grade of 'a'"),
        ('{"query": "q", "relevant": {"a": 0}}', "above 0"),
        ('{"query": "q", "relevant": ["a"], "id": [1]}', "'id'"),
        ('{"query": "q", "relevant": ["a"], "not": "b"}', "'not'"),
        ('{"query": "q", "relevant": ["a"], "not": {"b": 1}}', "'not'"),
        ('{"query": "q", "relevant": ["a"], "not": [" "]}', "'not'"),
        ('{"query": "\udcff", "relevant": ["a"]}', "not JSON"),
    ],
)
def test_a_line_that_is_no_question_is_named(line: str, said: str) -> None:
    """The error says which line, what was expected and what was found."""
    data = b'{"query": "q", "relevant": ["a"]}\n' + line.encode("utf-8", "surrogateescape")
    with pytest.raises(QueriesInvalid, match=f"questions, line 2: .*{said}"):
        parse_queries(data, name="questions")


def test_a_file_without_questions_is_an_error() -> None:
    """Nothing asked is no measurement."""
    with pytest.raises(QueriesInvalid, match="no question"):
        parse_queries(b"\n \n", name="q")


def test_a_clear_difference_is_told_from_chance() -> None:
    """The interval leaves out 0 where nearly every question is better, and holds it for a toss."""
    clear = paired_difference([1.0] * 40, [0.0] * 10 + [0.9] * 30)
    assert clear.mean == pytest.approx(0.325)
    assert 0 < clear.low < clear.mean < clear.high
    toss = paired_difference([1.0, 0.0] * 20, [0.0, 1.0] * 20)
    assert toss.mean == 0
    assert toss.low < 0 < toss.high


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8))
def test_the_bootstrap_is_the_same_each_time(pairs: list[tuple[float, float]]) -> None:
    """The same measures give the same interval, and turned around its mirror image."""
    ours, theirs = [one for one, _ in pairs], [other for _, other in pairs]
    found = paired_difference(ours, theirs)
    assert found == paired_difference(ours, theirs)
    assert found.low <= found.high
    turned = paired_difference(theirs, ours)
    assert (turned.mean, turned.low, turned.high) == pytest.approx(
        (-found.mean, -found.high, -found.low), abs=1e-9
    )


def test_grep_ranks_by_words_then_by_times_then_by_path() -> None:
    """More of the words go first, then more often, then the path; case does not matter."""
    texts = {
        "d": "leave leave leave leave",
        "c": "Parental LEAVE",
        "b": "parental leave, leave",
        "a": "leave leave leave leave",
        "e": "nothing of it",
    }
    assert Grep(texts).search("parental Leave?") == ["b", "c", "a", "d"]


def test_grep_finds_words_within_words() -> None:
    """As grep does, a word is found where it is part of another; signs are no words."""
    assert Grep({"a": "unleaving", "b": "live"}).search("leav!") == ["a"]
    assert Grep({"a": "text"}).search("?!") == []


def test_grep_leaves_short_words_out_where_there_are_longer() -> None:
    """Words like "the" are not looked for beside others; a question of short words is asked."""
    assert Grep({"a": "the the", "b": "anchor"}).search("the anchor") == ["b"]
    assert Grep({"a": "git rm", "b": "git"}).search("git rm") == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "queries"),
    [
        (b"how long is leave?\n\n  anchors \r\n", ["how long is leave?", "anchors"]),
        (b'{"query": "one"}\n{"query": "two", "relevant": ["a.md"]}\n', ["one", "two"]),
        (b'\xef\xbb\xbf\n{"query": "one", "relevant": []}', ["one"]),
        (b"[link] in brackets\n", ["[link] in brackets"]),
        ("grün\n".encode(), ["grün"]),
    ],
)
def test_questions_whose_answers_nobody_knows(data, queries):
    """They are typed a line each, or are JSON lines that leave the answers out."""
    assert [one.query for one in parse_queries(data, name="q", known=False)] == queries


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "holds no question"),
        (b"\n \n", "holds no question"),
        (b'["one", "two"]', "is one JSON list"),
        (b"caf\xe9\n", "line 1: not UTF-8"),
        (b"one\nt\0wo\n", "line 2: no text"),
        (b'{"query": "one"}\ntwo\n', "line 2: not JSON"),
        (b'{"query": "one", "relevant": "a.md"}\n', "'relevant' must be a list"),
    ],
)
def test_what_is_no_file_of_questions(data, said):
    """It is refused with the line that is wrong."""
    with pytest.raises(QueriesInvalid, match=said):
        parse_queries(data, name="q", known=False)
