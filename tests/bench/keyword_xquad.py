"""How well a store ranks: ``python tests/bench/keyword_xquad.py DATA_DIR [LANGUAGE…]``.

DATA_DIR holds question sets in SQuAD format (``xquad.<language>.json``). Every paragraph becomes a
text file, all of them go through ``filestore add --each``; every question is asked in each mode.
Hits are taken as the source they come from, each source where it stands first. The score is nDCG@10
with the question's own paragraph as the one right answer. Plain tantivy over whole paragraphs, with
English stemming, is the yardstick.
"""

import os
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

import measure
from keyword_quality import DEPTH, load, ndcg, open_plain

from filestore.search import MODES, Filters, Mode
from filestore.store import Store

GOALS = {"en": 0.955, "de": 0.915, "zh": 0.5}
"""For keyword search."""


def main() -> int:
    """Measure and print the table."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    data = Path(sys.argv[1])
    rows = [row for language in sys.argv[2:] or GOALS for row in _rows(data, language)]
    print(measure.table(f"Ranking of XQuAD, nDCG@{DEPTH}", rows))
    return 0


def _rows(data: Path, language: str) -> list[measure.Row]:
    paragraphs, questions = load(data / f"xquad.{language}.json")
    plain = ndcg(open_plain("en_stem", paragraphs), questions)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        root = make_store(folder, paragraphs)
        with closing(Store(root, configuration=folder)) as store:
            for mode in MODES:
                score = ndcg(partial(_places, store, mode), questions)
                rows.append(_row(language, mode, score, plain))
    return rows


def make_store(folder: str, paragraphs: list[str]) -> str:
    """The root of a store to which every paragraph was added as a file of its own."""
    texts, root = os.path.join(folder, "texts"), os.path.join(folder, "store")
    os.mkdir(texts)
    for place, text in enumerate(paragraphs):
        Path(texts, f"{place}.txt").write_text(text + "\n", "utf-8")
    measure.run(measure.filestore("init", root))
    measure.run(measure.filestore("--store", root, "add", "--each", texts))
    return root


def _places(store: Store, mode: Mode, question: str) -> list[int]:
    """The paragraphs of the hits, best first, each once."""
    answer = store.search(question, count=DEPTH, mode=mode, filters=Filters())
    names = [os.path.basename(hit.source or "") for hit in answer.hits]
    return [int(name.removesuffix(".txt")) for name in dict.fromkeys(names)]


def _row(language: str, mode: Mode, score: float, plain: float) -> measure.Row:
    goal = GOALS.get(language) if mode == "keyword" else None
    return measure.Row(
        figure=f"{language}, {mode}",
        ours=f"{score:.4f}",
        yardstick=f"tantivy `en_stem` {plain:.4f}",
        compared=f"{score - plain:+.4f}",
        goal="–" if goal is None else f"≥ {goal}",
        met=None if goal is None else score >= goal,
    )


if __name__ == "__main__":
    sys.exit(main())
