"""What operators in queries gain and cost: ``python tests/bench/query_syntax.py --xquad DIR``.

The same queries are asked of the full-text index under each syntax; the score is nDCG@10, beside it
how many queries find nothing at all. The sets of ``fusion_sets`` hold no operators: whatever is
taken for one there is a mistake. So are the lines and scraps of code, from this project's own
functions. Two sets are made with operators that are meant, so that what they gain shows as well.
"""

import argparse
import ast
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from fusion_sets import QuestionSet, build

from filestore.fulltext import SYNTAXES, Entry, Reader, Syntax, Writer, parse_query
from filestore.search.metrics import ndcg

PLACES: Final = 10
_SEED: Final = 7
_OWN: Final = Path(__file__).parents[2] / "filestore"
_SIGNS: Final = re.compile(r"""["'*]|(?<!\w)[-+]\w""")
_WORD: Final = re.compile(r"[^\W\d_]{4,}")


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--xquad", type=Path, default=Path("xquad"), help="folder of xquad.*.json")
    given = parser.parse_args()
    print(f"### Queries under each syntax, by keyword, nDCG@{PLACES} (queries without an answer)\n")
    print(f"| set | queries | {' | '.join(SYNTAXES)} | auto uses operators in |")
    print("|---|" + "--:|" * (2 + len(SYNTAXES)))
    for asked in _sets(given.xquad):
        if asked.questions:
            print(_row(asked), flush=True)
    return 0


def _sets(folder: Path) -> Iterator[QuestionSet]:
    for asked in build(folder):
        if not asked.groups:
            yield asked
        if asked.name == "XQuAD en":
            yield from _meant(asked)
    yield from _own_code()


def _own_code() -> Iterator[QuestionSet]:
    """Functions of this project: what they do, a line of them, a scrap with signs, a question."""
    found = [_parts(node, text) for node, text in _functions()]
    kept = [(sentence, lines) for sentence, lines in found if sentence and len(lines) > 2]
    documents = tuple("\n".join(lines) for _, lines in kept)
    chosen = random.Random(_SEED)
    worded = [[line.strip() for line in lines[1:] if _WORD.search(line)] for _, lines in kept]
    lines = [chosen.choice(own) if own else "" for own in worded]
    scraps = [(place, scrap) for place, (_, own) in enumerate(kept) for scrap in _scraps(own)]
    yield _asking("own code", documents, list(enumerate(sentence for sentence, _ in kept)))
    yield _asking("own code, a line", documents, list(enumerate(lines)))
    asked = [(place, f"what does {line} do?") for place, line in enumerate(lines)]
    yield _asking("own code, asked", documents, asked)
    yield _asking("own code, scraps", documents, chosen.sample(scraps, min(500, len(scraps))))


def _functions() -> Iterator[tuple[ast.FunctionDef, list[str]]]:
    for path in sorted(_OWN.rglob("*.py")):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                yield node, source.splitlines()


def _parts(node: ast.FunctionDef, source: Sequence[str]) -> tuple[str, list[str]]:
    """The first sentence about a function, and its lines without what is said about it."""
    described = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    until = (node.body[0].end_lineno or 0) if described else node.body[0].lineno - 1
    lines = [*source[node.lineno - 1 : node.body[0].lineno - 1], *source[until : node.end_lineno]]
    return described, [line for line in lines if line.strip()]


def _scraps(lines: Sequence[str]) -> Iterator[str]:
    """Two to four words of a line that have signs in them, as one copies them."""
    for line in lines[1:]:
        words = line.split()
        for start in range(0, len(words) - 1, 3):
            scrap = " ".join(words[start : start + 4])
            if _SIGNS.search(scrap) and _WORD.search(scrap):
                yield scrap


def _meant(asked: QuestionSet) -> Iterator[QuestionSet]:
    """Two rare words without what is not meant, and two words that stand together."""
    words_of = [_WORD.findall(text) for text in asked.documents]
    counts: dict[str, int] = {}
    for words in words_of:
        for word in set(words):
            counts[word] = counts.get(word, 0) + 1
    excluding: list[tuple[int, str]] = []
    together: list[tuple[int, str]] = []
    chosen = random.Random(_SEED)
    for question, relevant in zip(asked.questions, asked.relevant, strict=True):
        (answer,) = relevant
        known = [word for word in _WORD.findall(question) if word in words_of[answer]]
        rare = sorted(dict.fromkeys(known), key=lambda word: (counts[word], word))[:2]
        rivals = [place for place, words in enumerate(words_of) if rare and rare[0] in words]
        own = set(words_of[answer])
        other = sorted({w for place in rivals for w in words_of[place]} - own)
        if len(rare) == 2 and other:
            excluding.append((answer, f"{' '.join(rare)} -{chosen.choice(other)}"))
        pairs = re.findall(r"[^\W\d_]{4,} [^\W\d_]{4,}", asked.documents[answer])
        if rare and pairs:
            together.append((answer, f'{rare[-1]} "{chosen.choice(pairs)}"'))
    yield _asking("meant: words -word", asked.documents, excluding)
    yield _asking('meant: word "two words"', asked.documents, together)


def _asking(name: str, documents: tuple[str, ...], asked: Sequence[tuple[int, str]]) -> QuestionSet:
    return QuestionSet(
        name=name,
        documents=documents,
        questions=tuple(query for _, query in asked),
        relevant=tuple(frozenset({place}) for place, _ in asked),
    )


def _row(asked: QuestionSet) -> str:
    with tempfile.TemporaryDirectory() as folder:
        with Writer.open(folder) as writer:
            writer.add(Entry(id=n, title="", text=text) for n, text in enumerate(asked.documents))
            stamp = writer.commit(1, "bench")
        with Reader.open(folder, stamp) as reader:
            scores = [_scores(asked, reader, syntax) for syntax in SYNTAXES]
    plain = [parse_query(query, "plain") for query in asked.questions]
    auto = [parse_query(query) for query in asked.questions]
    acted = sum(one.clauses != other.clauses for one, other in zip(auto, plain, strict=True))
    return f"| {asked.name} | {len(auto):,} | {' | '.join(scores)} | {acted} |"


def _scores(asked: QuestionSet, reader: Reader, syntax: Syntax) -> str:
    """The mean nDCG under one syntax, and how many queries found nothing."""
    total, unanswered = 0.0, 0
    for query, relevant in zip(asked.questions, asked.relevant, strict=True):
        found = [place for place, _ in reader.search(parse_query(query, syntax), PLACES)]
        total += ndcg(found, dict.fromkeys(relevant, 1.0), PLACES)
        unanswered += not found
    return f"{total / len(asked.questions):.4f} ({unanswered})"


if __name__ == "__main__":
    sys.exit(main())
