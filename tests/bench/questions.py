"""Whether keys in chunk files cost search anything: ``python tests/bench/questions.py``.

The sets of ``fusion_sets``, asked of the documents alone, and of the same documents with the
keys that the offline generator makes: behind the text in the full-text index, and as vectors
of their own that count as a store counts them. The score is nDCG@10 of hybrid search; what counts
is the difference for each question, with the interval of a paired bootstrap.
"""

import argparse
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import fusion
import measure
from fusion_sets import QuestionSet, build

from filestore.embed import Choice, Embedder, open_embedder
from filestore.fulltext import Entry, Reader, Writer, parse_query
from filestore.generate import Generator, GeneratorChoice, Task, open_generator
from filestore.search.metrics import ndcg, paired_difference
from filestore.search.ranking import DEPTH, LEXICAL_FLOOR, Retrieved, fuse_rankings, with_question

PLACES: Final = 10
LOSS: Final = 0.003
Made = Sequence[Sequence[str]]
"""For each document its keys."""


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--xquad", type=Path, default=Path("xquad"), help="folder of xquad.*.json")
    parser.add_argument("--embedder", metavar="SPEC", default="builtin")
    parser.add_argument("--count", type=int, default=3, help="for each text (default: %(default)s)")
    parser.add_argument("--only", nargs="*", metavar="SET", help="names as in the table")
    given = parser.parse_args()
    embedder = open_embedder(Choice(name=given.embedder))
    generator = open_generator(GeneratorChoice(name="extractive"))
    sets = build(given.xquad)
    chosen = (one for one in sets if not given.only or one.name in given.only)
    rows = [_row(one, _made(one, generator, given.count), embedder) for one in chosen]
    if not rows:
        print("no set of questions could be built", file=sys.stderr)
        return 1
    print(measure.table(f"Keys in chunk files, nDCG@{PLACES}, {embedder.name}", rows))
    return 0


def _made(asked: QuestionSet, generator: Generator, count: int) -> Made:
    tasks = [Task(kind="questions", texts=(text,), count=count) for text in asked.documents]
    results = sorted(generator.make(tasks, stop=threading.Event()), key=lambda one: one.place)
    return [one.made.lines if one.made else () for one in results]


def _row(asked: QuestionSet, made: Made, embedder: Embedder) -> measure.Row:
    plain = _scores(asked, [()] * len(asked.documents), embedder)
    ours = _scores(asked, made, embedder)
    found = paired_difference(ours, plain)
    each = sum(map(len, made)) / len(made)
    return measure.Row(
        figure=f"{asked.name}, {each:.1f} keys a text",
        ours=f"{sum(ours) / len(ours):.3f}",
        yardstick=f"texts alone {sum(plain) / len(plain):.3f}",
        compared=f"{found.mean:+.4f} (95 %: {found.low:+.4f} to {found.high:+.4f})",
        goal=f"≥ −{LOSS}",
        met=found.mean >= -LOSS,
    )


def _scores(asked: QuestionSet, made: Made, embedder: Embedder) -> list[float]:
    by_vector = _by_vector(asked, made, embedder)
    scores: list[float] = []
    for place, (keyword, known) in enumerate(_by_keyword(asked, made)):
        rankings = {"keyword": keyword, "vector": next(by_vector)}
        fused = fuse_rankings(
            rankings,
            lexical=embedder.lexical,
            known=known,
            fluency=embedder.fluency(asked.questions[place]),
        )
        found = fusion._groups(asked, [one.item for one in fused])
        scores.append(ndcg(found, dict.fromkeys(asked.relevant[place], 1.0), PLACES))
    return scores


def _by_keyword(asked: QuestionSet, made: Made) -> Iterator[tuple[Retrieved, float]]:
    texts = (
        "\n\n".join(parts) for parts in zip(asked.documents, map("\n\n".join, made), strict=True)
    )
    with tempfile.TemporaryDirectory() as folder:
        with Writer.open(folder) as writer:
            writer.add(Entry(id=place, title="", text=text) for place, text in enumerate(texts))
            stamp = writer.commit(1, "bench")
        with Reader.open(folder, stamp) as reader:
            for question in asked.questions:
                query = parse_query(question)
                found = [
                    (fusion._key(place), score) for place, score in reader.search(query, DEPTH)
                ]
                yield found, reader.known_share(query)


def _by_vector(asked: QuestionSet, made: Made, embedder: Embedder) -> Iterator[Retrieved]:
    import numpy as np

    texts = embedder.embed_documents(asked.documents)
    flat = [question for questions in made for question in questions]
    owners = [place for place, questions in enumerate(made) for _ in questions]
    vectors = embedder.embed_documents(flat) if flat else np.empty((0, texts.shape[1]))
    floor = LEXICAL_FLOOR if embedder.lexical else -1.0
    for question in asked.questions:
        vector = embedder.embed_query(question)
        scores = (texts @ vector).tolist()
        nearest = dict[int, float]()
        for place, score in zip(owners, (vectors @ vector).tolist(), strict=True):
            nearest[place] = max(score, nearest.get(place, score))
        for place, score in nearest.items():
            scores[place] = with_question(scores[place], score)
        best = sorted(enumerate(scores), key=lambda pair: (-pair[1], pair[0]))[:DEPTH]
        yield [(fusion._key(place), score) for place, score in best if score >= floor]


if __name__ == "__main__":
    sys.exit(main())
