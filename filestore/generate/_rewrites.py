"""New queries out of the words of the texts that are nearest to one.

Offline: a phrase that near texts have and the query has not is what a person would have added
(pseudo-relevance feedback, Rocchio 1971; Lavrenko and Croft 2001). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from filestore.generate._keyphrases import folded_words, key_phrases
from filestore.generate._languages import language_of, stop_words
from filestore.generate._plain import one_line, prose_of
from filestore.generate._sentences import cut, sentences_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_PHRASES: Final = 24
"""Each costs an embedding."""
_LONGEST: Final = 300
_DIGITS: Final = 4
_WORD: Final = re.compile(r"[^\W_][\w.'’+#-]*")


def phrases_near(query: str, texts: Sequence[str]) -> list[str]:
    """The phrases of the nearest texts that a query does not have, best first by counting."""
    asked = set(folded_words(query))
    # All as one text: a phrase that several of them have counts as often, an early one for more.
    sentences = [
        one
        for text in texts
        for paragraph in prose_of(text).paragraphs
        for one in sentences_of(paragraph)
    ]
    language = language_of(" ".join(sentences[:20])) or language_of(query)
    found = (phrase.text for phrase in key_phrases(sentences, language))
    new = (text for text in found if text not in query and not set(folded_words(text)) <= asked)
    return list(islice(new, MOST_PHRASES))


def queries_of(
    query: str,
    phrases: Sequence[str],
    nearness: NDArray[np.float32],
    count: int,
) -> tuple[str, ...]:
    """At most `count` new queries, none equal to the query.

    Args:
        query: As it was asked.
        phrases: As `phrases_near` gave them.
        nearness: How near each is to the query.
        count: The most that are wanted.
    """
    asked = one_line(query)
    order = sorted(
        range(len(phrases)),
        key=lambda place: (-round(float(nearness[place]), _DIGITS), place),
    )
    kept: list[str] = []
    seen = {_folded(asked), ""}
    for line in _lines(asked, [phrases[place] for place in order]):
        line = cut(line, _LONGEST)
        if len(kept) < count and _folded(line) not in seen:
            seen.add(_folded(line))
            kept.append(line)
    return tuple(kept)


def _lines(asked: str, phrases: Sequence[str]) -> Iterator[str]:
    words = telling_words(asked)
    bare = asked.rstrip("?？.!。！ ")
    for phrase in phrases[:1]:
        yield f"{bare} {phrase}"
    yield words
    for phrase in phrases[1:3]:
        yield f"{words} {phrase}".strip()
    if len(phrases) > 1:
        yield f"{phrases[0]} {phrases[1]}"
    for phrase in phrases[3:]:
        yield f"{words} {phrase}".strip()


def telling_words(query: str) -> str:
    """A query without the words that say little alone; "" where nothing is left."""
    stop = stop_words(language_of(query))
    return " ".join(word for word in _WORD.findall(query) if word.lower() not in stop)


def _folded(line: str) -> str:
    return " ".join(re.findall(r"\w+", line.casefold()))
