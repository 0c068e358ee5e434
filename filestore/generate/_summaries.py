"""Which sentences of several texts tell best what they are about, and what to call them.

A sentence is central when many others resemble it: LexRank with the weights as they are (Erkan and
Radev 2004, "LexRank: Graph-based Lexical Centrality as Salience in Text Summarization", section
4.3), over cosines of embeddings in place of tf-idf. Which are taken is decided one after the other
by maximal marginal relevance (Carbonell and Goldstein 1998), so that none repeats another; the
texts are cut into as many stretches of equal length as sentences are wanted, and a stretch that
has one already counts less, so that each text has its share. The sentences stand as they were
written, in reading order.

One rule: what decides is rounded first, and ties go to what stands earlier, so that two machines
whose vectors differ in the last bits choose the same sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.generate._keyphrases import (
    Phrase,
    distinct_phrases,
    folded_words,
    key_phrases,
)
from filestore.generate._languages import language_of
from filestore.generate._plain import Prose, one_line
from filestore.generate._questions import clean_heading, says_little
from filestore.generate._sentences import cut, is_whole, leans_back, sentences_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_SENTENCES: Final = 8
_FEWEST_SENTENCES: Final = 3
_EACH: Final = 6
"""Sentences of one text that are looked at: each costs an embedding."""
_MOST_CANDIDATES: Final = 600
_HEAD: Final = 300
"""Characters of a text without a sentence that stand for it."""
_RELEVANCE: Final = 0.7
"""What centrality weighs in marginal relevance; likeness to what is taken weighs the rest."""
_CROWDED: Final = 0.15
"""What a sentence loses by each that its stretch has already."""
_DAMPING: Final = 0.85
_ROUNDS: Final = 60
_DIGITS: Final = 4
_LEANING: Final = 0.6
_FIRST: Final = 1.25
_LONGEST_TITLE: Final = 120
_MARKED: Final = re.compile(r"[#>|=~`]|[-+*_](?:[-+*_ ]|$)|\d+[.)] ")
_TITLE_PHRASES: Final = 3
_MOST_PHRASES: Final = 60


class Candidate(Struct, frozen=True, kw_only=True):
    """A sentence that may stand in a summary."""

    text: str
    child: int
    """Which text it is of."""
    place: float
    """Where in all texts together it begins, from 0 to 1, by characters."""
    weight: float
    """1, or less where it needs its neighbours."""


def candidates_of(children: Sequence[Prose]) -> list[Candidate]:
    """The sentences to choose from, in reading order, none twice; few of each text."""
    each = max(1, min(_EACH, _MOST_CANDIDATES // max(1, len(children))))
    step = max(1, -(-len(children) // _MOST_CANDIDATES))
    lengths = [sum(map(len, prose.paragraphs)) or 1 for prose in children]
    total, before = sum(lengths), 0
    found: list[Candidate] = []
    seen: set[str] = set()
    for number, prose in enumerate(children):
        if number % step == 0:
            for at, text, weight in _best(prose, each):
                if text.casefold() in seen:
                    continue
                seen.add(text.casefold())
                place = (before + min(at, lengths[number] - 1)) / total
                found.append(Candidate(text=text, child=number, place=place, weight=weight))
        before += lengths[number]
    whole = [one for one in found if is_whole(one.text)]
    return whole or found


def _best(prose: Prose, most: int) -> list[tuple[int, str, float]]:
    """The sentences of one text worth an embedding, in reading order: where, what, how good."""
    whole: list[tuple[int, str]] = []
    at = 0
    for paragraph in prose.paragraphs:
        for sentence in sentences_of(paragraph):
            if is_whole(sentence):
                whole.append((at, sentence))
            at += len(sentence)
    if not whole:
        rough = [*prose.paragraphs, *sorted(prose.other, key=lambda line: -line.count(" "))]
        rough = rough or list(prose.headings)
        return [(0, cut(text, _HEAD), _LEANING) for text in rough[:1]]
    counts = Counter(word for _, text in whole for word in set(folded_words(text)))
    scored: list[tuple[float, int]] = []
    for number, (_, text) in enumerate(whole):
        words = set(folded_words(text))
        shared = sum(counts[word] - 1 for word in words if len(word) > 3) / (1 + len(words))
        scored.append((-round((shared + 1) * _weight(text, number), _DIGITS), number))
    chosen = sorted(number for _, number in sorted(scored)[:most])
    return [(*whole[number], _weight(whole[number][1], number)) for number in chosen]


def _weight(sentence: str, number: int) -> float:
    weight = _FIRST if number == 0 else 1.0
    return weight * _LEANING if leans_back(sentence) else weight


def choose(
    candidates: Sequence[Candidate],
    vectors: NDArray[np.float32],
    *,
    most_tokens: int,
    count_tokens: Callable[[str], int],
) -> list[Candidate]:
    """The sentences of a summary, in reading order; at least one where there is one."""
    import numpy as np

    if not candidates:
        return []
    wanted = max(_FEWEST_SENTENCES, min(MOST_SENTENCES, round(len(candidates) ** 0.5) + 1))
    alike = np.round(np.clip(vectors @ vectors.T, 0.0, 1.0).astype(np.float64), _DIGITS)
    central = _centrality(alike) * np.array([one.weight for one in candidates])
    central = np.round(central / (central.max() or 1.0), _DIGITS)
    stretches = [int(one.place * wanted) for one in candidates]
    taken: list[int] = []
    nearest = np.zeros(len(candidates))
    crowded = Counter[int]()
    left = most_tokens
    open_ = set(range(len(candidates)))
    while open_ and len(taken) < wanted:
        score = {
            one: round(
                _RELEVANCE * float(central[one])
                - (1 - _RELEVANCE) * float(nearest[one])
                - _CROWDED * crowded[stretches[one]],
                _DIGITS,
            )
            for one in open_
        }
        best = min(open_, key=lambda one: (-score[one], one))
        open_.discard(best)
        size = count_tokens(candidates[best].text)
        if taken and size > left:
            continue
        taken.append(best)
        left -= size
        crowded[stretches[best]] += 1
        nearest = np.maximum(nearest, alike[best])
    return [candidates[one] for one in sorted(taken)]


def _centrality(alike: NDArray[np.float64]) -> NDArray[np.float64]:
    """How central each row is: the stationary distribution of a walk along the likenesses."""
    import numpy as np

    count = len(alike)
    sums = alike.sum(axis=1, keepdims=True)
    walk = np.divide(alike, sums, out=np.full_like(alike, 1.0 / count), where=sums > 0)
    ranks = np.full(count, 1.0 / count)
    for _ in range(_ROUNDS):
        following = (1 - _DAMPING) / count + _DAMPING * (ranks @ walk)
        settled = float(np.abs(following - ranks).sum()) < 1e-7
        ranks = following
        if settled:
            break
    return ranks


def join(sentences: Sequence[Candidate]) -> str:
    """The text of a summary: one paragraph."""
    text = ""
    for sentence in sentences:
        tight = not text or (text[-1] in "。！？”」』" and not sentence.text[0].isascii())
        text += sentence.text if tight else f" {sentence.text}"
    return as_paragraph(text)


def head_of(texts: Iterable[str]) -> str:
    """What stands for texts that have no sentence: the head of the first with anything in it."""
    return as_paragraph(cut(next(filter(None, map(one_line, texts)), ""), _HEAD))


def as_paragraph(text: str) -> str:
    """A text that Markdown reads as a paragraph: no heading, list, quote, rule or frontmatter."""
    return f"\\{text}" if _MARKED.match(text) else text


def title_of(
    children: Sequence[Prose],
    subjects: Sequence[str],
    *,
    headings: Sequence[str] = (),
    title: str = "",
) -> str:
    """What to call texts: the innermost heading they share, and what most of them are about."""
    shared = [clean_heading(one) for one in (title, *headings)]
    shared = [one for one in dict.fromkeys(shared) if one]
    name = shared[-1] if shared else ""
    if says_little(name) and len(shared) > 1:
        name = f"{shared[-2]}: {name}"
    words = set(folded_words(name))
    new = (one for one in subjects if not set(folded_words(one)) <= words)
    listed = ", ".join(islice(new, _TITLE_PHRASES))
    if not name and not listed:
        own = (clean_heading(one) for prose in children for one in prose.headings)
        return one_line(cut(next(filter(None, own), ""), _LONGEST_TITLE))
    whole = f"{name}: {listed}" if name and listed else name or listed
    return one_line(cut(whole, _LONGEST_TITLE))


def subjects_of(children: Sequence[Prose]) -> tuple[str, list[str]]:
    """The language of texts, and the phrases that most of them have, best first.

    Both are the same in whatever order the texts are given.
    """
    scores: dict[str, float] = {}
    counts = Counter[str]()
    spelled: dict[str, Phrase] = {}
    texts = [
        [one for paragraph in prose.paragraphs for one in sentences_of(paragraph)]
        for prose in children
    ]
    languages = Counter(filter(None, (language_of(" ".join(text)) for text in texts)))
    language = min(languages, key=lambda one: (-languages[one], one), default="")
    for prose, sentences in zip(children, texts, strict=True):
        found = key_phrases(sentences, language, headings=prose.headings)
        best = found[0].score if found else 1.0
        for phrase in found:
            key = " ".join(folded_words(phrase.text))
            scores[key] = scores.get(key, 0.0) + round(phrase.score / best, _DIGITS)
            counts[key] += 1
            kept = spelled.setdefault(key, phrase)
            spelled[key] = min(kept, phrase, key=lambda one: one.text)
    order = sorted(scores, key=lambda key: (-round(scores[key] * counts[key], _DIGITS), key))
    phrases = distinct_phrases([spelled[key] for key in order[:_MOST_PHRASES]])
    return language, [one.text for one in phrases if not one.text[0].isdigit()]
