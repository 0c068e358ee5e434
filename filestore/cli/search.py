"""Ask a question: words, "phrases", prefix*, -excluded, +required. Every hit is checked on disk.

In a few words -word leaves texts out, +word and AND require, "two words" must stand together, wild*
is any word that begins so. A question, a sentence, a line of code or flags are searched as typed.

A word that no document has is searched for as the nearest words that some have, and a note says so;
not in quotes, not after +, and not where it is code.
"""

import contextlib
import os
from typing import TYPE_CHECKING, Annotated

from msgspec.structs import replace

from filestore.cli import _context, _diagnostics, _hits, _output
from filestore.core.caller import absolute
from filestore.core.errors import UsageError
from filestore.core.safe_text import timestamp
from filestore.search.query import Which
from filestore.server.options import option
from filestore.server.searching import Search

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from filestore.core.progress import OnProgress
    from filestore.past.store import PastStore
    from filestore.store import Store

EXAMPLE = 'filestore search "renamed files" -k 5 --where tags=git'
_FIELDS = [f"{{{field}}}" for field in _hits.FIELDS]
_PRESETS = {"oneline": _hits.ONELINE}


class Options(Search, frozen=True, kw_only=True):
    """What the command takes."""

    store: Annotated[str | None, option("DIR", local=True)] = None
    """the store, or a folder with file_index/"""
    json: Annotated[bool, option(local=True)] = False
    """print JSON on standard output"""
    beside: bool = False
    """search with the model that stands beside the store's own, see 'filestore embedder set
    --beside'"""
    format: Annotated[str | None, option("F", one_of=_FIELDS)] = None
    """one record a hit: oneline (document:line: excerpt), or a template with"""
    documents: Annotated[bool, option(None, "-l")] = False
    """only the documents, each once"""
    at: Annotated[str | None, option("REV")] = None
    """search the store as a commit had it: HEAD~3, a tag, a branch, a hash"""
    embed: bool = False
    """with --at: embed the texts that never were"""
    nul: Annotated[bool, option(None, "-0")] = False
    """records of -l and --format end with NUL, and paths are the bytes on disk"""


def run(options: Options) -> int:
    """Search; 1 where nothing is found that is still there."""
    template = _template(options)
    if options.embed and options.at is None:
        raise UsageError("--embed is for --at", remedy="filestore sync")
    if options.beside and options.at is not None:
        raise UsageError("--at answers by the model of that commit", remedy="leave --beside out")
    with (
        _context.open_store(options) as store,
        _diagnostics.ProgressBar() as on_progress,
        _asked(store, options, on_progress) as asked,
    ):
        model: Which = "beside" if options.beside else "own"
        query = replace(options, rerank=_reranker(options.rerank), model=model)
        answer = query.answer(asked)
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
    store: "Store", options: Options, on_progress: "OnProgress"
) -> "AbstractContextManager[Store | PastStore]":
    """The store, or what it was."""
    if options.at is None:
        return contextlib.nullcontext(store)
    return store.at(options.at, embed=options.embed, on_progress=on_progress)


def _template(options: Options) -> _hits.Template | None:
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


def _reranker(word: str | None) -> str | None:
    """A folder is meant from where the user is, which only this place knows."""
    kind, colon, model = (word or "").partition(":")
    return f"{kind}:{absolute(model)}" if colon and os.path.isdir(model) else word
