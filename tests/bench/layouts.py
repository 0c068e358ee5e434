"""How well both layouts rank documents: ``python tests/bench/layouts.py DATA_DIR``.

DATA_DIR holds question sets in SQuAD format (``xquad.<language>.json``). Twice the same Markdown
files are searched: each of one paragraph, then each of all paragraphs of an article, with headings
between them; in place, and added to a store of chunk files. What is scored is which document is
named, with ``group="document"``; the names of the files say nothing.
"""

import argparse
import contextlib
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure
from keyword_quality import DEPTH, articles

from filestore.store import Store

LANGUAGES = ("en", "de", "zh")
MODES: tuple[Any, ...] = ("keyword", "vector", "hybrid")
NOISE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Documents by file name, and questions with the name of the right one."""

    name: str
    texts: dict[str, str]
    questions: list[tuple[str, str]]


def main() -> int:
    """Measure and print the table; 1 where the layouts differ by more than noise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", metavar="DATA_DIR", type=Path)
    parser.add_argument("--embedder", metavar="SPEC", default="builtin")
    parser.add_argument("--languages", nargs="+", default=LANGUAGES, metavar="L")
    given = parser.parse_args()
    rows = [
        row
        for language in given.languages
        for corpus in _corpora(given.data, language)
        for row in _rows(corpus, given.embedder)
    ]
    print(measure.table(f"Documents found in both layouts, nDCG@{DEPTH}, {given.embedder}", rows))
    return 1 if any(row.met is False for row in rows) else 0


def _corpora(data: Path, language: str) -> Iterator[Corpus]:
    paragraphs: dict[str, str] = {}
    whole: dict[str, str] = {}
    of_paragraph: list[tuple[str, str]] = []
    of_article: list[tuple[str, str]] = []
    for number, article in enumerate(articles(data / f"xquad.{language}.json")):
        sections = []
        for place, (text, questions) in enumerate(article):
            paragraph = f"{number:03d}-{place:03d}.md"
            paragraphs[paragraph] = f"{text}\n"
            sections.append(f"## {place + 1}\n\n{text}\n")
            of_paragraph += [(question, paragraph) for question in questions]
            of_article += [(question, f"{number:03d}.md") for question in questions]
        whole[f"{number:03d}.md"] = "\n".join(sections)
    yield Corpus(name=f"{language}, paragraphs", texts=paragraphs, questions=of_paragraph)
    yield Corpus(name=f"{language}, articles", texts=whole, questions=of_article)


def _rows(corpus: Corpus, embedder: str) -> Iterator[measure.Row]:
    with tempfile.TemporaryDirectory() as folder:
        # Where a model lies is remembered on the user's side, which is none of a benchmark's.
        os.environ["XDG_CONFIG_HOME"] = folder
        notes, chunks = os.path.join(folder, "notes"), os.path.join(folder, "chunks")
        os.mkdir(notes)
        for name, text in corpus.texts.items():
            Path(notes, name).write_text(text, "utf-8")
        measure.run(measure.filestore("init", chunks, "--embedder", embedder))
        measure.run(measure.filestore("--store", chunks, "add", "--each", "--no-copy", notes))
        measure.run(measure.filestore("init", "--in-place", "--embedder", embedder), folder=notes)
        with (
            contextlib.closing(Store(notes, configuration=folder)) as in_place,
            contextlib.closing(Store(chunks, configuration=folder)) as as_chunks,
        ):
            for mode in MODES:
                ours, theirs = (_gain(one, mode, corpus) for one in (in_place, as_chunks))
                yield measure.Row(
                    figure=f"{corpus.name}, {mode}",
                    ours=f"{ours:.4f}",
                    yardstick=f"chunks {theirs:.4f}",
                    compared=f"{ours - theirs:+.4f}",
                    goal=f"± {NOISE}",
                    met=abs(ours - theirs) <= NOISE,
                )


def _gain(store: Store, mode: Any, corpus: Corpus) -> float:
    gains = 0.0
    for question, right in corpus.questions:
        answer = store.search(question, k=DEPTH, mode=mode, syntax="plain", group="document")
        found = [os.path.basename(hit.document or hit.path) for hit in answer.hits]
        if right in found:
            gains += 1 / math.log2(found.index(right) + 2)
    return gains / len(corpus.questions)


if __name__ == "__main__":
    sys.exit(main())
