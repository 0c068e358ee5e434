"""What must hold of reranking: another order, and nothing else said differently."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore.fulltext import Understood
from filestore.rerank import Reranker
from filestore.search.answer import Answer, Hit
from filestore.search.session import rerank


class ByVowels(Reranker):
    """A reranker that likes texts with as many of the question's letters as possible."""

    name = "vowels"

    def score(self, query, texts):
        letters = set(query)
        scores = [sum(letter in letters for letter in text) for text in texts]
        return np.array(scores, dtype=np.float32)


def hit(path, text):
    return Hit(
        path=path,
        score=0.5,
        kind="chunk",
        resource="r",
        source=None,
        freshness="fresh" if text else "gone",
        headings=(),
        pages=(),
        text=text,
        why={"keyword": {"rank": 1, "score": 2.0}},
    )


def answer(hits):
    return Answer(
        query="aeiou -xyz",
        understood=Understood(text="aeiou"),
        mode="hybrid",
        generation=3,
        hits=tuple(hits),
        notes=("a note",),
    )


TEXTS = st.lists(st.text(alphabet="abcde", max_size=8), min_size=1, max_size=12)


def test_a_summary_stays_behind_texts():
    """Also where the reranker likes it best."""
    hits = [hit("text.md", "b"), replace(hit("summary.md", "aaaa"), kind="summary")]
    assert [one.path for one in rerank(answer(hits), ByVowels(), count=2).hits] == [
        "text.md",
        "summary.md",
    ]


@given(TEXTS, st.integers(1, 12))
def test_the_best_by_its_score_come_first(texts, count):
    """Hits with a text are ordered by score, then path; those without come last."""
    hits = [hit(f"chunked/{number:02}.md", text) for number, text in enumerate(texts)]
    found = rerank(answer(hits), ByVowels(), count=count)
    expected = sorted(
        (one for one in hits if one.text),
        key=lambda one: (-sum(letter in "aeiou" for letter in one.text), one.path),
    )
    gone = [one.path for one in hits if not one.text]
    assert [one.path for one in found.hits] == [*(one.path for one in expected), *gone][:count]


def test_a_hit_says_where_both_put_it():
    """The legs' word stays beside the reranker's, and so does everything else."""
    first, second = hit("chunked/a.md", "bcd"), hit("chunked/b.md", "aa")
    found = rerank(answer([first, second]), ByVowels(), count=2)
    assert found.hits[0].why == {
        "keyword": {"rank": 1, "score": 2.0},
        "rerank": {"rank": 1, "score": 2.0},
    }
    assert found.hits[0].text == "aa"
    assert (found.query, found.mode, found.generation) == ("aeiou -xyz", "hybrid", 3)
    assert found.notes == ("a note",)
