"""Ask a question: words, "phrases", prefix*, -excluded, +required. Every hit is checked on disk.

In a few words -word leaves texts out, +word and AND require, "two words" must stand together, wild*
is any word that begins so. A question, a sentence, a line of code or flags are searched as typed.
"""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _diagnostics, _output
from filestore.core.errors import UsageError
from filestore.core.safe_text import shown_path
from filestore.fulltext import SYNTAXES
from filestore.search.answer import MODES

if TYPE_CHECKING:
    from filestore.search.answer import Answer

EXAMPLE = 'filestore search "renamed files" -k 5 --where tags=git'
_WIDTH = 96
"""Columns of an excerpt where no terminal says how many it has."""
_LINES = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "query",
        metavar="QUERY",
        nargs="+",
        help="several words need no quotes; put -- before words that begin with a sign",
    )
    parser.add_argument(
        "-k", type=int, default=10, metavar="N", help="at most N files (default: 10)"
    )
    parser.add_argument("--mode", choices=MODES, default="hybrid", help="default: hybrid")
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="K=V",
        help="only chunks whose frontmatter or document says so; repeated: all of it",
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="GLOB",
        help="only chunks of these files or folders; repeated: of any of them",
    )
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="K",
        help="only this kind: chunk or summary; repeated: any of them",
    )
    parser.add_argument(
        "--syntax",
        choices=SYNTAXES,
        default="auto",
        help="signs that are operators: those that can mean nothing else (auto, the default), "
        'none (plain), or all (operators: also -1, NOT, "word", and in long queries)',
    )
    parser.add_argument(
        "--rerank",
        metavar="R",
        help="let a model that reads question and text together order the results: cross-encoder, "
        "or cross-encoder:MODEL with a hub name or a folder",
    )


def run(options: Any) -> int:
    """Search; 1 where nothing is found that is still there."""
    where: dict[str, list[str]] = {}
    for text in options.where:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError(f"--where takes KEY=VALUE, found {text!r}", remedy="--where tags=git")
        where.setdefault(key, []).append(value)
    with _context.open_store(options) as store:
        answer = store.search(
            " ".join(options.query),
            k=options.k,
            mode=options.mode,
            where=where,
            source=options.source,
            kind=options.kind,
            syntax=options.syntax,
            rerank=_reranker(options.rerank),
        )
    if options.json:
        _output.write_json(answer.to_dict())
    else:
        _words(answer)
    return 0 if any(hit.freshness != "gone" for hit in answer.hits) else 1


def _reranker(word: str | None) -> str | None:
    """A folder is meant from where the user is, which only this place knows."""
    kind, colon, model = (word or "").partition(":")
    return f"{kind}:{os.path.abspath(model)}" if colon and os.path.isdir(model) else word


def _words(answer: "Answer") -> None:
    for note in answer.notes:
        _diagnostics.say(note)
    for number, hit in enumerate(answer.hits, start=1):
        mark = "" if hit.freshness == "fresh" else f"  [{hit.freshness}]"
        _output.line(f"{number}. {shown_path(hit.path)}{mark}", style="1")
        ranks = [f"{ranking} #{int(why['rank'])}" for ranking, why in hit.why.items()]
        origin = shown_path(hit.source) if hit.source else "no source"
        end = "".join([*_pages(hit.pages), f"  ({', '.join(ranks)})"])
        place = _clipped(hit.headings or (origin,), _columns() - len(end))
        _output.line(f"   {place}{end}", style="2")
        for text in _excerpt(hit.text, _columns()):
            _output.line(f"   {text}")
    if not answer.hits:
        _output.line("nothing found")


def _clipped(path: tuple[str, ...], width: int) -> str:
    """A heading path, its outer ones left out where it is long: the inner ones say most."""
    text = " > ".join(path)
    for first in range(1, len(path)):
        if len(text) > width:
            text = " > ".join(["…", *path[first:]])
    return text if len(text) <= width else f"{text[: max(1, width - 1)]}…"


def _pages(pages: tuple[int, ...]) -> list[str]:
    """Where to look in the source, in a word."""
    if not pages:
        return []
    return [f", page {pages[0]}" if len(pages) == 1 else f", pages {pages[0]} to {pages[-1]}"]


def _columns() -> int:
    try:
        return max(20, os.get_terminal_size(sys.stdout.fileno()).columns - 4)
    except OSError:
        return _WIDTH


def _excerpt(text: str, width: int) -> list[str]:
    stripped = (line.strip() for line in text.splitlines())
    lines = [line for line in stripped if line and not line.startswith("```")]
    shown = [line for line in lines if not line.startswith("#")] or lines
    return [line if len(line) <= width else line[: width - 1] + "…" for line in shown[:_LINES]]
