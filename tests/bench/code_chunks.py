"""What the grammars give to code: ``python tests/bench/code_chunks.py [--files N]``.

Python sources of this checkout and of the standard library, cut three ways: by the outline that a
grammar finds, by lines and indentation alone, and as plain text. Docstrings are taken out of the
sources first and become the questions; the answer is the chunk that holds most of the function.
Beside the quality stands what the packages of the grammars take on the disk.
"""

import argparse
import ast
import os
import random
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from statistics import fmean
from typing import Final

from filestore.chunking import Section, Symbol, count_tokens
from filestore.chunking.blocks import split
from filestore.embed._builtin import BuiltinEmbedder
from filestore.extract._code import parsed_outline
from filestore.fulltext import Entry, Reader, Writer, parse_query
from filestore.search.metrics import ndcg

WAYS: Final = ("grammar", "lines", "plain text")
BUDGET: Final = 256
PLACES: Final = 10
_SEED: Final = 7
_OWN: Final = Path(__file__).parents[2] / "filestore"
Lines = tuple[int, int]
"""First and last line, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A module without its docstrings."""

    name: str
    text: str
    definitions: tuple[Lines, ...]
    questions: tuple[tuple[str, Lines], ...]
    """What was said about a function, and where that is now."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of one way to cut."""

    documents: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    starts: list[bool] = field(default_factory=list)
    """Of each chunk but the first of a file: whether it begins where a definition does."""
    whole: list[bool] = field(default_factory=list)
    """Of each definition that fits: whether one chunk holds all of it."""
    asked: list[tuple[str, int]] = field(default_factory=list)


def main() -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=150, help="of the standard library")
    given = parser.parse_args()
    _print_sizes()
    library = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    chosen = random.Random(_SEED).sample(library, min(given.files, len(library)))
    print(
        "\n| sources | cut by | chunks | begin at a definition | definitions kept whole | ", end=""
    )
    print(f"questions | keyword nDCG@{PLACES} | vectors nDCG@{PLACES} |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for name, paths in (("this checkout", sorted(_OWN.rglob("*.py"))), ("stdlib", chosen)):
        sources = [source for path in paths if (source := _source(path)) is not None]
        for way in WAYS:
            print(_row(name, way, _cut(sources, way)), flush=True)
    return 0


def _print_sizes() -> None:
    print("| package | on disk, MiB |\n|---|--:|")
    total, everything = 0, 0
    for one in sorted(distributions(), key=lambda one: one.name):
        size = sum(
            os.path.getsize(path)
            for file in one.files or ()
            if os.path.isfile(path := one.locate_file(file))
        )
        everything += size
        if one.name.startswith("tree-sitter"):
            total += size
            print(f"| {one.name} | {size / 2**20:.1f} |")
    print(f"| all of these | {total / 2**20:.1f} |\n| all that is installed | ", end="")
    print(f"{everything / 2**20:.1f} |")


# The sources


def _source(path: Path) -> Source | None:
    text = path.read_text("utf-8", errors="replace").replace("\r\n", "\n")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    said = {node: docstring for node in _defined(tree) if (docstring := _docstring(node))}
    dropped = {line for span in said.values() for line in range(span[0], span[1] + 1)}
    kept = [line for at, line in enumerate(text.split("\n"), 1) if at not in dropped]
    places = {}
    for at in range(1, text.count("\n") + 2):
        places[at] = at - sum(line < at for line in dropped)
    found = {node: (places[_first(node)], places[node.end_lineno or 1]) for node in _defined(tree)}
    return Source(
        name=path.name,
        text="\n".join(kept),
        definitions=tuple(found.values()),
        questions=tuple(
            (" ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split()), found[node])
            for node in said
            if not isinstance(node, ast.ClassDef) and found[node][1] - found[node][0] > 1
        ),
    )


def _defined(
    tree: ast.Module,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node


def _first(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Lines | None:
    """The lines of a docstring that has a sentence and stands on lines of its own."""
    if ast.get_docstring(node) is None or len(node.body) < 2:
        return None
    first, second = node.body[0], node.body[1]
    end = first.end_lineno or first.lineno
    is_apart = node.lineno < first.lineno and end < _at(second)
    return (first.lineno, end) if is_apart else None


def _at(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


# Cutting


def _cut(sources: Sequence[Source], way: str) -> Tally:
    tally = Tally()
    for source in sources:
        outline: tuple[Symbol, ...] = ()
        if way == "grammar":
            outline = parsed_outline(source.text, "python")
        pieces = split(
            source.text,
            syntax="text" if way == "plain text" else "code",
            budget=BUDGET,
            title=source.name,
            outline=outline,
        )
        _judge(source, pieces, tally)
    return tally


def _judge(source: Source, pieces: Sequence[Section], tally: Tally) -> None:
    spans = [_lines(source.text, piece) for piece in pieces]
    lines = source.text.split("\n")
    beginnings = {_lead(lines, first) for first, _ in source.definitions}
    tally.starts += [first in beginnings for first, _ in spans[1:]]
    for first, last in source.definitions:
        if count_tokens("\n".join(lines[first - 1 : last])) <= BUDGET:
            tally.whole.append(any(one <= first and last <= other for one, other in spans))
    for question, (first, last) in source.questions:
        shares = [min(last, other) - max(first, one) for one, other in spans]
        tally.asked.append((question, len(tally.documents) + shares.index(max(shares))))
    tally.documents += [source.text[piece.start : piece.end] for piece in pieces]
    tally.titles += [" > ".join(piece.headings) for piece in pieces]


def _lines(text: str, piece: Section) -> Lines:
    """The lines of a piece that are not blank at its ends."""
    whole = text[piece.start : piece.end]
    start = piece.start + len(whole) - len(whole.lstrip())
    end = piece.start + len(whole.rstrip())
    return text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1


def _lead(lines: Sequence[str], first: int) -> int:
    """The first of the comment lines right above a definition."""
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first


# Asking


def _row(name: str, way: str, tally: Tally) -> str:
    cells = (
        name,
        way,
        f"{len(tally.documents):,}",
        f"{fmean(tally.starts):.1%}",
        f"{fmean(tally.whole):.1%}",
        f"{len(tally.asked):,}",
        f"{_by_keyword(tally):.4f}",
        f"{_by_vector(tally):.4f}",
    )
    return f"| {' | '.join(cells)} |"


def _by_keyword(tally: Tally) -> float:
    with tempfile.TemporaryDirectory() as folder:
        with Writer.open(folder) as writer:
            both = zip(tally.titles, tally.documents, strict=True)
            writer.add(Entry(id=n, title=title, text=text) for n, (title, text) in enumerate(both))
            stamp = writer.commit(1, "bench")
        with Reader.open(folder, stamp) as reader:
            return fmean(
                ndcg(
                    [place for place, _ in reader.search(parse_query(query, "plain"), PLACES)],
                    {answer: 1.0},
                    PLACES,
                )
                for query, answer in tally.asked
            )


def _by_vector(tally: Tally) -> float:
    embedder = BuiltinEmbedder()
    both = zip(tally.titles, tally.documents, strict=True)
    rows = embedder.embed_documents([f"{title}\n\n{text}" for title, text in both])
    scores = []
    for query, answer in tally.asked:
        found = (-(rows @ embedder.embed_query(query))).argsort(kind="stable")[:PLACES]
        scores.append(ndcg([int(one) for one in found], {answer: 1.0}, PLACES))
    return fmean(scores)


if __name__ == "__main__":
    sys.exit(main())
