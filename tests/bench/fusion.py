"""Whether asking words and meaning together loses: ``python tests/bench/fusion.py --xquad DIR``.

Every question of the sets in ``fusion_sets`` is asked of the full-text index and of the vectors;
both answers are merged as a store merges them, and by plain reciprocal rank fusion, the yardstick.
The score is nDCG@10. What counts is the difference to the better of the two rankings, with the
interval of a paired bootstrap: its lower end below 0 alone is noise, its upper end below 0 is a
loss.
"""

import argparse
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fusion_sets import QuestionSet, build

from filestore.embed import Choice, Embedder, open_embedder
from filestore.fulltext import Entry, Reader, Writer, parse_query
from filestore.search.metrics import Difference, ndcg, paired_difference
from filestore.search.ranking import DEPTH, LEXICAL_FLOOR, Retrieved, fuse_rankings

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

PLACES: Final = 10
RANK_CONSTANT: Final = 60
RETRIEVERS: Final = ("keyword", "vector")
METHODS: Final = (*RETRIEVERS, "rank fusion", "filestore")
HEAD: Final = (
    "| set | documents | questions | keyword | vector | rank fusion | filestore"
    " | over the better retriever | 95 % |"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One set of questions, measured."""

    asked: QuestionSet
    scores: dict[str, list[float]]
    """Method to nDCG@10 of each question."""

    def mean(self, method: str) -> float:
        """Over all questions."""
        return sum(self.scores[method]) / len(self.scores[method])

    def over_better_retriever(self, method: str) -> Difference:
        """How much a fusion gained over the ranking that is better in this set."""
        better = max(RETRIEVERS, key=self.mean)
        return paired_difference(self.scores[method], self.scores[better])


def main() -> int:
    """Measure and print the table."""
    given = _options()
    embedder = open_embedder(Choice(name=_name(given.model)))
    sets = build(given.xquad)
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        chosen = (one for one in sets if not given.only or one.name in given.only)
        results = [_measure(one, embedder, work) for one in chosen]
    if not results:
        print("no set of questions could be built", file=sys.stderr)
        return 1
    print("\n".join(_table(results, embedder.name)))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--xquad", type=Path, default=Path("xquad"), help="folder of xquad.*.json")
    parser.add_argument("--model", default="builtin", help="a folder, or a name as in the settings")
    parser.add_argument("--work", type=Path, help="keep the embeddings here, and use them again")
    parser.add_argument("--only", nargs="*", metavar="SET", help="names as in the table")
    return parser.parse_args()


def _name(model: str) -> str:
    if not os.path.isdir(model):
        return model
    kind = "onnx" if os.path.exists(os.path.join(model, "model.onnx")) else "sentence-transformers"
    return f"{kind}:{os.path.abspath(model)}"


def _measure(asked: QuestionSet, embedder: Embedder, work: Path) -> Result:
    vector = _vector_rankings(asked, embedder, work)
    scores: dict[str, list[float]] = {method: [] for method in METHODS}
    keyword = _keyword_rankings(asked)
    for place, ((by_keyword, known), by_vector) in enumerate(zip(keyword, vector, strict=True)):
        rankings = {"keyword": by_keyword, "vector": by_vector}
        fluency = embedder.fluency(asked.questions[place])
        fused = fuse_rankings(rankings, lexical=embedder.lexical, known=known, fluency=fluency)
        found = {
            "keyword": _items(by_keyword),
            "vector": _items(by_vector),
            "rank fusion": _rank_fusion(rankings),
            "filestore": [one.item for one in fused],
        }
        grades = dict.fromkeys(asked.relevant[place], 1.0)
        for method, ranking in found.items():
            scores[method].append(ndcg(_groups(asked, ranking), grades, PLACES))
    return Result(asked=asked, scores=scores)


def _key(place: int) -> str:
    return f"{place:06}"


def _items(ranking: Retrieved) -> list[str]:
    return [item for item, _ in ranking]


def _groups(asked: QuestionSet, ranking: Sequence[str]) -> list[int]:
    """The places of documents, or of what they are part of, each once."""
    places = map(int, ranking)
    return list(dict.fromkeys(asked.groups[p] if asked.groups else p for p in places))


def _keyword_rankings(asked: QuestionSet) -> Iterator[tuple[Retrieved, float]]:
    """What keywords find, and how much of each question they know."""
    with tempfile.TemporaryDirectory() as folder:
        with Writer.open(folder) as writer:
            writer.add(Entry(id=n, title="", text=text) for n, text in enumerate(asked.documents))
            stamp = writer.commit(1, "bench")
        with Reader.open(folder, stamp) as reader:
            for question in asked.questions:
                query = parse_query(question)
                ranking = [(_key(place), score) for place, score in reader.search(query, DEPTH)]
                yield ranking, reader.known_share(query)


def _vector_rankings(asked: QuestionSet, embedder: Embedder, work: Path) -> Iterator[Retrieved]:
    documents = _embedded(asked.documents, "documents", embedder, embedder.embed_documents, work)
    questions = _embedded(
        asked.questions, "questions", embedder, lambda texts: _each(texts, embedder), work
    )
    floor = LEXICAL_FLOOR if embedder.lexical else -1.0
    for row in questions @ documents.T:
        best = sorted(enumerate(row.tolist()), key=lambda pair: (-pair[1], pair[0]))[:DEPTH]
        yield [(_key(place), score) for place, score in best if score >= floor]


def _each(texts: Sequence[str], embedder: Embedder) -> "NDArray[float32]":
    import numpy

    return numpy.stack([embedder.embed_query(text) for text in texts])


def _embedded(
    texts: Sequence[str],
    kind: str,
    embedder: Embedder,
    embed: "Callable[[Sequence[str]], NDArray[float32]]",
    work: Path,
) -> "NDArray[float32]":
    """The vectors of texts, from the work folder where they are there."""
    import numpy

    told_apart = "\0".join([embedder.fingerprint, kind, *texts]).encode("utf-8", "replace")
    path = work / f"{hashlib.sha256(told_apart).hexdigest()[:32]}.npy"
    if not path.exists():
        numpy.save(path, embed(texts), allow_pickle=False)
    vectors: NDArray[float32] = numpy.load(path, allow_pickle=False)
    return vectors


def _rank_fusion(rankings: dict[str, Retrieved]) -> list[str]:
    """Cormack, Clarke and Büttcher (2009), every ranking with the same say."""
    scores: dict[str, float] = {}
    for ranking in rankings.values():
        for rank, (item, _) in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores, key=lambda item: (-scores[item], item))


def _table(results: Sequence[Result], model: str) -> Iterator[str]:
    yield f"### Words and meaning together, nDCG@{PLACES}, vectors of {model}\n"
    yield HEAD
    yield "|---|" + "--:|" * 8
    for one in results:
        gained = one.over_better_retriever("filestore")
        counts = f"{len(one.asked.documents):,} | {len(one.asked.questions):,}"
        scores = " | ".join(f"{one.mean(method):.3f}" for method in METHODS)
        interval = f"{gained.low:+.3f} to {gained.high:+.3f}"
        yield f"| {one.asked.name} | {counts} | {scores} | {gained.mean:+.3f} | {interval} |"
    for method in METHODS[len(RETRIEVERS) :]:
        gains = [one.over_better_retriever(method).mean for one in results]
        worst, average = min(gains), sum(gains) / len(gains)
        yield f"\n{method} over the better retriever: worst {worst:+.3f}, mean {average:+.3f}"


if __name__ == "__main__":
    sys.exit(main())
