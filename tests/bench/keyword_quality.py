"""Print how well keyword search ranks: ``python tests/bench/keyword_quality.py DATA_DIR``.

DATA_DIR holds question sets in SQuAD format (``xquad.<language>.json``). Every paragraph is one
document, and the paragraph of a question its one right answer. The score is nDCG@10; tantivy's own
analyses in the same run are the yardsticks.
"""

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import tantivy

from filestore.fulltext import Entry, Reader, Writer, parse_query

DEPTH = 10
Questions = list[tuple[str, int]]
Search = Callable[[str], list[int]]


def articles(path: Path) -> Iterator[list[tuple[str, list[str]]]]:
    """The paragraphs of each article, each with its questions."""
    for article in json.loads(path.read_text("utf-8"))["data"]:
        yield [
            (paragraph["context"], [entry["question"] for entry in paragraph["qas"]])
            for paragraph in article["paragraphs"]
        ]


def load(path: Path) -> tuple[list[str], Questions]:
    """The paragraphs, and each question with the place of its paragraph."""
    paragraphs: list[str] = []
    questions: Questions = []
    for article in articles(path):
        for text, asked in article:
            questions += [(question, len(paragraphs)) for question in asked]
            paragraphs.append(text)
    return paragraphs, questions


def ndcg(search: Search, questions: Questions) -> float:
    """Mean nDCG@10 where each question has one right answer: 1 / log2(rank + 1)."""
    gains = 0.0
    for question, answer in questions:
        found = search(question)
        if answer in found:
            gains += 1 / math.log2(found.index(answer) + 2)
    return gains / len(questions)


def open_ours(folder: str, paragraphs: list[str]) -> Search:
    """Search through the full-text index of this project."""
    with Writer.open(folder) as writer:
        writer.add(Entry(id=place, title="", text=text) for place, text in enumerate(paragraphs))
        stamp = writer.commit(1, "bench")
    reader = Reader.open(folder, stamp)
    return lambda question: [file_id for file_id, _ in reader.search(parse_query(question), DEPTH)]


def open_plain(tokenizer: str, paragraphs: list[str]) -> Search:
    """Search through a single field of tantivy, every word optional."""
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("id", indexed=True, fast=True)
    builder.add_text_field("text", tokenizer_name=tokenizer)
    index = tantivy.Index(builder.build())
    writer = index.writer(num_threads=1)
    for place, text in enumerate(paragraphs):
        document = tantivy.Document(text=text)
        document.add_unsigned("id", place)
        writer.add_document(document)
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(question: str) -> list[int]:
        query, _ = index.parse_query_lenient(question, ["text"])
        addresses = [address for _, address in searcher.search(query, DEPTH).hits]
        places = searcher.fast_field_values("id", addresses)
        return [place for place in places if isinstance(place, int)]

    return search


def rows(data: Path) -> Iterator[tuple[str, float, float, float]]:
    """Language and the scores of ours, tantivy's default and its English stemming."""
    for path in sorted(data.glob("xquad.*.json")):
        paragraphs, questions = load(path)
        with tempfile.TemporaryDirectory() as folder:
            ours = ndcg(open_ours(folder, paragraphs), questions)
        plain = [ndcg(open_plain(name, paragraphs), questions) for name in ("default", "en_stem")]
        yield path.name.split(".")[1], ours, plain[0], plain[1]


def main() -> None:
    """Print one line a language."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", metavar="DATA_DIR", type=Path)
    given = parser.parse_args()
    print(f"{'language':10}{'filestore':>10}{'default':>10}{'en_stem':>10}   nDCG@{DEPTH}")
    for language, *scores in rows(given.data):
        print(f"{language:10}" + "".join(f"{score:>10.4f}" for score in scores))


if __name__ == "__main__":
    main()
