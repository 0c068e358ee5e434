"""Ask a question: words, "phrases", prefix*, -excluded, +required. Every hit is checked on disk.

In a few words -word leaves texts out, +word and AND require, "two words" must stand together, wild*
is any word that begins so. A question, a sentence, a line of code or flags are searched as typed.

A word that no document has is searched for as the nearest words that some have, and a note says so;
not in quotes, not after +, and not where it is code.
"""

import argparse
import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _diagnostics, _hits, _output
from filestore.core.caller import absolute
from filestore.core.errors import UsageError
from filestore.core.safe_text import timestamp
from filestore.fulltext import SYNTAXES
from filestore.search.query import MODES

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from filestore.core.progress import OnProgress
    from filestore.search.searchable import Searchable
    from filestore.store import Store

EXAMPLE = 'filestore search "renamed files" -k 5 --where tags=git'
_PRESETS = {"oneline": _hits.ONELINE}


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
    _configure_ways(parser)
    _configure_output(parser)


def _configure_ways(parser: argparse.ArgumentParser) -> None:
    """Say what is asked besides the plain way."""
    parser.add_argument(
        "--beside",
        action="store_true",
        help="search with the model that stands beside the store's own, see 'filestore embedder "
        "set --beside'",
    )
    parser.add_argument(
        "--rerank",
        metavar="R",
        help="let a model that reads question and text together order the results: cross-encoder, "
        "or cross-encoder:MODEL with a hub name or a folder",
    )
    parser.add_argument(
        "--tree",
        action="store_true",
        help="go from the summaries at the top down to the chunks, best branches first; what no "
        "summary hints at is not found",
    )
    parser.add_argument(
        "--rewrite",
        type=int,
        default=0,
        metavar="N",
        help="also ask up to N queries that the store's generator makes of it, and say which",
    )


def _configure_output(parser: argparse.ArgumentParser) -> None:
    """Say how hits are printed."""
    parser.add_argument(
        "--group",
        choices=("document",),
        help="only the best hit of each document, with the number of the others; -k counts these",
    )
    parser.add_argument(
        "--context", type=int, default=0, metavar="N", help="also N lines before and after"
    )
    parser.add_argument(
        "--format",
        metavar="F",
        help=f"one record a hit: oneline (document:line: excerpt), or a template with "
        f"{', '.join(f'{{{field}}}' for field in _hits.FIELDS)}",
    )
    parser.add_argument(
        "-l", dest="documents", action="store_true", help="only the documents, each once"
    )
    parser.add_argument(
        "--at",
        metavar="REV",
        help="search the store as a commit had it: HEAD~3, a tag, a branch, a hash",
    )
    parser.add_argument(
        "--embed", action="store_true", help="with --at: embed the texts that never were"
    )
    parser.add_argument(
        "-0",
        dest="nul",
        action="store_true",
        help="records of -l and --format end with NUL, and paths are the bytes on disk",
    )
    # Else argparse would take every negative number for an option: `-k -3`, `return -1`.
    parser._has_negative_number_optionals.clear()


def run(options: Any) -> int:
    """Search; 1 where nothing is found that is still there."""
    template = _template(options)
    where = _where(options.where)
    if options.embed and options.at is None:
        raise UsageError("--embed is for --at", remedy="filestore sync")
    if options.beside and options.at is not None:
        raise UsageError("--at answers by the model of that commit", remedy="leave --beside out")
    with (
        _context.open_store(options) as store,
        _diagnostics.ProgressBar() as on_progress,
        _asked(store, options, on_progress) as asked,
    ):
        answer = asked.search(
            " ".join(options.query),
            k=options.k,
            mode=options.mode,
            where=where,
            source=options.source,
            kind=options.kind,
            syntax=options.syntax,
            rerank=_reranker(options.rerank),
            group=options.group,
            context=options.context,
            tree=options.tree,
            rewrite=options.rewrite,
            model="beside" if options.beside else "own",
        )
    if options.json:
        _output.write_json(answer.to_dict())
    else:
        if answer.at is not None:
            made = timestamp(answer.at.committed)
            _diagnostics.say(f"commit {answer.at.commit[:12]} of {made}")
        for note in answer.notes:
            _diagnostics.say(note)
        if template is None:
            _hits.print_words(answer)
        else:
            _hits.print_by(template, answer, ends_with_nul=options.nul, once=options.documents)
    return 0 if any(hit.freshness != "gone" for hit in answer.hits) else 1


def _asked(
    store: "Store", options: Any, on_progress: "OnProgress"
) -> "AbstractContextManager[Searchable]":
    """The store, or what it was."""
    if options.at is None:
        return contextlib.nullcontext(store)
    return store.at(options.at, embed=options.embed, on_progress=on_progress)


def _template(options: Any) -> _hits.Template | None:
    """What a record of the output is; None for words, and for JSON."""
    wanted = {
        "--json": options.json,
        "--format": options.format is not None,
        "-l": options.documents,
    }
    given = [name for name, is_given in wanted.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other", remedy="choose one")
    if options.format == "":
        raise UsageError("--format is empty", remedy="--format '{document}:{line}: {excerpt}'")
    if options.documents:
        template = _hits.Template(_hits.DOCUMENTS)
    elif options.format is not None:
        template = _hits.Template(_PRESETS.get(options.format, options.format))
    elif options.nul:
        raise UsageError("-0 ends the records of -l or --format", remedy="add one of them")
    else:
        return None
    if options.context and not template.names("before", "after"):
        raise UsageError(
            "the lines of --context have no place in these records",
            remedy="--format '{before} {excerpt} {after}'",
        )
    return template


def _where(given: Sequence[str]) -> dict[str, list[str]]:
    where: dict[str, list[str]] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError(f"--where takes KEY=VALUE, found {text!r}", remedy="--where tags=git")
        where.setdefault(key, []).append(value)
    return where


def _reranker(word: str | None) -> str | None:
    """A folder is meant from where the user is, which only this place knows."""
    kind, colon, model = (word or "").partition(":")
    return f"{kind}:{absolute(model)}" if colon and os.path.isdir(model) else word
