"""What misspelt words cost, and what they find: ``python tests/bench/misspelt.py DATA_DIR``.

DATA_DIR holds question sets in SQuAD format (``xquad.<language>.json``), asked by keyword as in
``keyword_quality``: as they are, and with one mistake in one word each, the same ones every time.
The yardstick is the same search without respelling. Questions without a mistake must not lose.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import measure
from keyword_quality import DEPTH, Questions, Search, load, ndcg

from filestore.fulltext import Entry, Reader, Writer, parse_query, respelled

LANGUAGES = ("en", "de")
MOST_LOST = 0.002
SEED = 5
SHORTEST = 5
"""Letters of the words that get a mistake."""
WORDS = 1_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def main() -> int:
    """Print the table; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", metavar="DATA_DIR", type=Path)
    parser.add_argument("--languages", nargs="+", default=LANGUAGES, metavar="L")
    given = parser.parse_args()
    rows = [row for language in given.languages for row in _rows(given.data, language)]
    print(measure.table(f"Misspelt questions, nDCG@{DEPTH} by keyword", rows))
    return 1 if any(row.met is False for row in rows) else 0


def _rows(data: Path, language: str) -> list[measure.Row]:
    paragraphs, questions = load(data / f"xquad.{language}.json")
    chosen = random.Random(SEED)
    wrong = [(misspelt(question, chosen), answer) for question, answer in questions]
    with tempfile.TemporaryDirectory() as folder:
        with Writer.open(folder) as writer:
            texts = enumerate(paragraphs)
            writer.add(Entry(id=place, title="", text=text) for place, text in texts)
            stamp = writer.commit(1, "bench")
        with Reader.open(folder, stamp) as reader:
            return [
                _row(f"{language}, as they are", reader, questions, -MOST_LOST),
                _row(f"{language}, one mistake each", reader, wrong, None),
                _time(language, reader, wrong),
                _first_letters(language, reader, paragraphs),
            ]


def misspelt(question: str, chosen: random.Random) -> str:
    """A question with a letter dropped, swapped, replaced or added within one of its words."""
    words = question.split()
    places = [n for n, word in enumerate(words) if _is_word(word)]
    if not places:
        return question
    at = chosen.choice(places)
    word = words[at]
    place = chosen.randrange(1, len(word) - 1)
    letter = chosen.choice(LETTERS)
    words[at] = chosen.choice(
        (
            word[:place] + word[place + 1 :],
            word[:place] + word[place + 1] + word[place] + word[place + 2 :],
            word[:place] + letter + word[place + 1 :],
            word[:place] + letter + word[place:],
        )
    )
    return " ".join(words)


def _plain(reader: Reader) -> Search:
    return lambda question: [found for found, _ in reader.search(parse_query(question), DEPTH)]


def _ours(reader: Reader) -> Search:
    def search(question: str) -> list[int]:
        query = parse_query(question)
        return [found for found, _ in reader.search(respelled(query, reader.respell(query)), DEPTH)]

    return search


def _row(figure: str, reader: Reader, questions: Questions, least: float | None) -> measure.Row:
    ours, theirs = ndcg(_ours(reader), questions), ndcg(_plain(reader), questions)
    return measure.Row(
        figure=figure,
        ours=f"{ours:.4f}",
        yardstick=f"as typed {theirs:.4f}",
        compared=f"{ours - theirs:+.4f}",
        goal="–" if least is None else f"≥ {least:+.3f}",
        met=None if least is None else ours - theirs >= least,
    )


def _first_letters(language: str, reader: Reader, paragraphs: Sequence[str]) -> measure.Row:
    """Words of the texts with a wrong first letter: for how many the right one is found.

    Without those that have accents, which are found without.
    """
    chosen = random.Random(SEED)
    every = {word for text in paragraphs for word in text.lower().split() if word.isascii()}
    words = sorted(filter(_is_word, every))
    right = wrong = 0
    for word in chosen.choices(words, k=WORDS):
        found = reader.respell(parse_query(_wrong_at_first(word, chosen)))
        right += bool(found) and word in found[0].similar
        wrong += bool(found) and word not in found[0].similar
    return measure.Row(
        figure=f"{language}, a word with a wrong first letter",
        ours=f"right {right / WORDS:.1%}",
        yardstick="as typed 0 %",
        compared=f"wrong {wrong / WORDS:.1%}",
        goal="–",
        met=None,
    )


def _is_word(word: str) -> bool:
    return len(word) >= SHORTEST and word.isalpha()


def _wrong_at_first(word: str, chosen: random.Random) -> str:
    letter = chosen.choice(LETTERS)
    return chosen.choice((word[1:], word[1] + word[0] + word[2:], letter + word[1:], letter + word))


def _time(language: str, reader: Reader, questions: Questions) -> measure.Row:
    spent: dict[str, list[float]] = {"ours": [], "theirs": []}
    for question, _ in questions:
        for name, search in (("theirs", _plain(reader)), ("ours", _ours(reader))):
            start = time.perf_counter()
            search(question)
            spent[name].append(time.perf_counter() - start)
    ours, theirs = (statistics.median(spent[name]) for name in ("ours", "theirs"))
    return measure.over(f"{language}, a question", ours, "as typed", theirs, 0.005)


if __name__ == "__main__":
    sys.exit(main())
