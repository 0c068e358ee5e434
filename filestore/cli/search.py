"""A query, and its hits as words or records."""

import contextlib
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Final

from msgspec.structs import replace

from filestore.cli import EXIT_PARTIAL, _context, _output, _progress, _terminal
from filestore.core.caller import absolute, working_folder
from filestore.core.errors import UsageError
from filestore.core.safe_text import shown_path, timestamp
from filestore.server import searching
from filestore.server.operations import Request, option

if TYPE_CHECKING:
    from filestore.search.answer import Answer, Hit
    from filestore.search.several import MergedAnswer
    from filestore.store import Store

    Found = Answer | MergedAnswer

_PRESETS: Final = {"oneline": "{document}:{place}: {excerpt}"}
_DOCUMENTS: Final = "{document}"
_INDENT: Final = "   "
_WRAPPED: Final = 40
"""A shorter line was ended on purpose."""
_BOLD, _DIM, _MATCH = "1", "2", "31"
_LISTED: Final = re.compile(r"\s|[-*+|>#]|\d+[.)]\s")
Template = list[tuple[str, str]]
"""A line of output: literal texts, and fields of a hit between them."""


def _place(hit: "Hit") -> str:
    """Line or page, as printed after a document."""
    if hit.line is not None:
        return str(hit.line)
    first, last = (hit.pages[0], hit.pages[-1]) if hit.pages else (None, None)
    if hit.freshness == "gone" or first is None:
        return ""
    return f"p{hit.page or first}" if hit.page or first == last else f"p{first}-{last}"


def _in_one_line(lines: Sequence[str]) -> str:
    return " ".join(" ".join(lines).split())


FIELDS: Final[dict[str, Callable[["Hit"], object]]] = {
    "document": lambda hit: hit.document,
    "place": _place,
    "line": lambda hit: hit.line,
    "end_line": lambda hit: hit.end_line,
    "page": lambda hit: hit.page,
    # Of a document whose text is not to be had, how it is called says most.
    "excerpt": lambda hit: _in_one_line([hit.excerpt or " > ".join(hit.section) or hit.title]),
    "before": lambda hit: _in_one_line(hit.before),
    "after": lambda hit: _in_one_line(hit.after),
    "title": lambda hit: hit.title,
    "section": lambda hit: " > ".join(hit.section),
    "path": lambda hit: hit.path,
    "resource": lambda hit: hit.resource,
    "source": lambda hit: hit.source,
    "kind": lambda hit: hit.kind,
    "freshness": lambda hit: hit.freshness,
    "date": lambda hit: hit.date,
    "status": lambda hit: hit.status,
    "notes": lambda hit: "; ".join(hit.notes),
    "score": lambda hit: f"{hit.score:.4f}",
    "others": lambda hit: hit.others,
    "question": lambda hit: hit.question,
    "store": lambda hit: hit.store,
}
"""What a template may name: field to its value; "place" is the line, or ``p`` and the page."""
_PATHS: Final = frozenset({"document", "path"})
_TEMPLATE: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|\\[nt\\]|[{}]")
_WRITTEN: Final = {"{{": "{", "}}": "}", r"\n": "\n", r"\t": "\t", r"\\": "\\"}


class Search(Request, searching.SearchOptions, frozen=True, kw_only=True):
    """What the command takes."""

    store: Annotated[Sequence[str], option("DIR", local=True)] = ()
    """the store, or a folder with file_index/; of several each hit names its own"""
    json: Annotated[bool, option(local=True)] = False
    """print JSON on standard output"""
    beside: bool = False
    """search with the second model, see 'filestore embedder set
    --beside'"""
    format: Annotated[str | None, option("F", one_of=[f"{{{field}}}" for field in FIELDS])] = None
    """one record a hit: oneline (document:line: excerpt), or a template with"""
    documents: Annotated[bool, option(None, "-l")] = False
    """only the documents, each once"""
    at: Annotated[str | None, option("REV")] = None
    """search the store as a commit had it: HEAD~3, a tag, a branch, a hash"""
    embed: bool = False
    """with --at: embed passages that never were"""
    nul: Annotated[bool, option(None, "-0")] = False
    """records of -l and --format end with NUL, and paths are the bytes on disk"""


def run_search(options: Search) -> int:
    """Ask a question: words, "phrases", prefix*, -excluded, +required.

    Every hit is checked on disk.

    In a few words -word excludes, +word and AND require, "two words" must be adjacent,
    wild* is any word that begins so. A question, a sentence, a line of code or flags are searched
    as typed.

    Where nothing is found, unknown words are also tried with the closest spelling ("nothing for X;
    for Y:", exit code 1); quote a word to prevent that. Where nothing is close in meaning, the
    nearest passages are shown all the same.

    Examples:
        filestore search when does the lease end
        filestore search "renewal of the lease" -n 5 --where tags=rent
        filestore search boiler pressure --in handbook --format oneline
    """
    template = _template(options)
    if options.embed and options.at is None:
        raise UsageError("--embed is for --at", remedy="filestore sync")
    if options.beside and options.at is not None:
        raise UsageError("--at answers by the model of that commit: leave --beside out")
    if options.rerank is None:
        _context.calculate_in_one_thread()
    # A folder is relative to where the user is, which only the command knows.
    kind, colon, place = (options.rerank or "").partition(":")
    is_folder = colon and os.path.isdir(place)
    rerank = f"{kind}:{absolute(place)}" if is_folder else options.rerank
    query = replace(options, rerank=rerank, model="beside" if options.beside else "own")
    answer: Found
    if len(options.store) > 1:
        from filestore.search.several import asked_of_each

        answer = asked_of_each(
            options.store, lambda name: _answer(_context.open_one(name, query), query).made(), query
        )
    else:
        answer = _answer(_context.open_store(options), query)
    if options.json:
        _output.write_json(answer.to_dict())
    else:
        _print(answer, template, options)
    found = 0 if answer.is_found else 1
    return EXIT_PARTIAL if getattr(answer, "failed", None) else found


def _answer(opened: "AbstractContextManager[Store]", options: Search) -> "Answer":
    """What one store answers."""
    with (
        opened as store,
        _progress.progress_bar() as on_progress,
        contextlib.nullcontext(store)
        if options.at is None
        else store.at(options.at, embed=options.embed, on_progress=on_progress) as asked,
    ):
        with _output.timed("search"):
            found: Answer = asked.search(options)
        return found


def _print(answer: "Found", template: Template | None, options: Search) -> None:
    for name, one in answer.by_store.items():
        if one.at is not None:
            made, which = timestamp(one.at.committed), f"{name}: " if name else ""
            _output.note(f"{which}commit {one.at.commit[:12]} of {made}")
    for note in answer.notes:
        _output.note(note)
    if template is None:
        print_words(answer)
    else:
        if (heading := heading_of(answer)) and not answer.is_found:
            _output.say(heading.rstrip(":"))
        print_by(template, answer, ends_with_nul=options.nul, once=options.documents)


def _template(options: Search) -> Template | None:
    """What a record of the output is; None for words, and for JSON."""
    wanted = {
        "--json": options.json,
        "--format": options.format is not None,
        "-l": options.documents,
    }
    given = [name for name, is_given in wanted.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other: choose one")
    if options.format == "":
        raise UsageError("--format is empty: write --format '{document}:{line}: {excerpt}'")
    if options.documents:
        template = parse_template(_DOCUMENTS)
    elif options.format is not None:
        template = parse_template(_PRESETS.get(options.format, options.format))
    elif options.nul:
        raise UsageError("-0 ends the records of -l or --format: add one of them")
    else:
        return None
    if options.context and not any(field in ("before", "after") for _, field in template):
        raise UsageError(
            "the lines of --context have no place in these records"
            ": add --format '{before} {excerpt} {after}'",
        )
    return template


def parse_template(text: str) -> Template:
    r"""Read a template: ``{field}``, ``{{`` and ``}}`` for braces, ``\t``, ``\n``, ``\\``.

    Raises:
        UsageError: It names a field that there is not.
    """
    parts = []
    position = 0
    for match in _TEMPLATE.finditer(text):
        parts.append((text[position : match.start()], ""))
        position = match.end()
        if match[0] in _WRITTEN:
            parts.append((_WRITTEN[match[0]], ""))
        elif match[1] in FIELDS:
            parts.append(("", match[1]))
        else:
            what = (
                f"unknown field {match[1]!r}"
                if match[1] is not None
                else f"a {match[0]} that belongs to no field"
            )
            raise UsageError(
                f"{what} in --format {text!r}; fields are {', '.join(FIELDS)};"
                " {{ and }} are braces"
            )
    return [*parts, (text[position:], "")]


def print_by(template: Template, answer: "Found", *, ends_with_nul: bool, once: bool) -> None:
    """Print one record a hit that is there.

    Args:
        template: Of a record.
        answer: Its hits.
        ends_with_nul: Whether records end with NUL; paths are then the bytes on disk, unless a
            terminal would get them.
        once: Whether a record that was printed is left out.
    """
    relative = _relative_to_here(answer)
    is_raw = ends_with_nul and not sys.stdout.isatty()
    records = []
    for hit in answer.hits:
        if hit.freshness == "gone":
            continue
        written = []
        for literal, field in template:
            value = FIELDS[field](hit) if field else None
            if not field:
                written.append(literal)
            elif field == "place" and not value and written:
                # Nothing is left of "document:" that has no line.
                written[-1] = written[-1].removesuffix(":")
            elif value is not None:
                path = relative(hit, str(value)) if field in _PATHS else ""
                shown = path if is_raw else shown_path(path)
                written.append(shown if path else _output.one_line(str(value)))
        records.append("".join(written))
    end = "\0" if ends_with_nul else "\n"
    data = "".join(record + end for record in (dict.fromkeys(records) if once else records))
    sys.stdout.flush()
    sys.stdout.buffer.write(data.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def _relative_to_here(answer: "Found") -> "Callable[[Hit, str], str]":
    """Makes paths of hits relative to the working folder; absolute where there is none."""
    folders = {name: os.path.realpath(one.root) for name, one in answer.by_store.items()}
    try:
        here = working_folder()
    except FileNotFoundError:
        return lambda hit, path: os.path.normpath(os.path.join(folders[hit.store], path))
    return lambda hit, path: os.path.relpath(os.path.join(folders[hit.store], path), here)


def print_words(answer: "Found") -> None:
    """Print hits for a person: document and place, where in it, and the passage, matches marked."""
    relative = _relative_to_here(answer)
    columns = _terminal.room()
    if heading := heading_of(answer):
        _output.line(heading)
    for number, hit in enumerate(answer.hits or answer.nearest):
        if number and (hit.before or hit.after):
            _output.line()
        place, document = _place(hit), shown_path(relative(hit, hit.document))
        head = f"{document}:{place}" if place else document
        is_stale = hit.kind == "summary" and hit.freshness == "outdated"
        state = "outdated summary" if is_stale else hit.freshness
        tail = "" if state == "fresh" else f"  [{state}]"
        tail += f"  (+{hit.others} more)" if hit.others else ""
        copies = len(hit.copies)
        tail += f"  (+{copies} {'copy' if copies == 1 else 'copies'})" if copies else ""
        link = _terminal.link(absolute(relative(hit, hit.document)), hit.line)
        # On a narrow terminal as much is shown as on most, in more lines.
        room = max(columns, _terminal.USUAL) - len(head) - len(tail) - 2
        innermost = hit.section if len(hit.section) < 2 else ("…", hit.section[-1])
        if len(_output.one_line(" > ".join(innermost))) > max(0, room):
            # Not even the innermost heading fits on the line of the document.
            _output.styled([(head, _BOLD), (tail, _BOLD)], link=link)
            where = _clipped(hit.section, max(columns, _terminal.USUAL) - len(_INDENT))
            _print_lines([where], columns, style="")
        else:
            where = f"  {_clipped(hit.section, room)}" if hit.section else ""
            if len(head + where + tail) <= columns:
                _output.styled([(head, _BOLD), (where, ""), (tail, _BOLD)], link=link)
            else:
                _output.line(head + where + tail, style=_BOLD)
        store = hit.store and f"store {hit.store}"
        if details := "; ".join(one for one in (store, hit.date, hit.reason) if one):
            _print_lines([f"({details})"], columns)
        if hit.notes:
            _print_lines(["; ".join(hit.notes)], columns)
        if hit.question:
            _print_lines([f"question: {hit.question}"], columns)
        _print_passage(hit, columns)


def _print_passage(hit: "Hit", columns: int) -> None:
    """Print an excerpt, between lines of its document where these are asked for.

    Then each line begins with its number, with a colon where it is of the excerpt, as grep has it.
    """
    first, last = hit.line or 0, hit.end_line or 0
    width = len(str(last + len(hit.after))) if hit.line else 0

    def head(line: int, sign: str) -> str:
        number = line if hit.line and line else ""
        return f"{number:>{width}}{sign} " if hit.before or hit.after else ""

    for at, line in enumerate(hit.before, first - len(hit.before)):
        _print_lines([line], columns, head(at, "-"))
    for at, pieces in enumerate(_wrapped(_marked(hit), columns - len(_INDENT + head(0, ":")))):
        _output.styled([(_INDENT, ""), (head(0 if at else first, ":"), _DIM), *pieces])
    for at, line in enumerate(hit.after, last + 1):
        _print_lines([line], columns, head(at, "-"))


def heading_of(answer: "Found") -> str:
    """The line above hits that are not what was asked for; "" where they are."""
    if answer.respelt:
        asked = answer.understood.text or answer.query
        return _output.one_line(f"nothing for {asked}; for {answer.respelt}:")
    if answer.hits:
        return ""
    return "nothing close; nearest:" if answer.nearest else "nothing found"


def _clipped(path: tuple[str, ...], width: int) -> str:
    """A heading path, its outer ones left out where it is long: the inner ones say most."""
    text = _output.one_line(" > ".join(path))
    for first in range(1, len(path)):
        if len(text) > width:
            text = _output.one_line(" > ".join(["…", *path[first:]]))
    return text if len(text) <= width else f"{text[: max(1, width - 1)]}…"


def _print_lines(lines: Iterable[str], columns: int, head: str = "", *, style: str = _DIM) -> None:
    """Lines around a passage: each on one, but on a terminal that is narrower than most."""
    most = max(columns, _terminal.USUAL) - len(_INDENT + head)
    for line in lines:
        shown = _output.clipped(line.rstrip().expandtabs(4), most)
        signs = [[(sign, False) for sign in shown]]
        wrapped = [*_wrapped(signs, columns - len(_INDENT + head))] or [[("", "")]]
        for at, pieces in enumerate(wrapped):
            text = "".join(text for text, _ in pieces)
            _output.line(f"{_INDENT}{' ' * len(head) if at else head}{text}".rstrip(), style=style)


_Sign = tuple[str, bool]
"""A character as it is shown, and whether it matches."""


def _marked(hit: "Hit") -> list[list[_Sign]]:
    """The lines of an excerpt, sign by sign; lines of wrapped prose run on."""
    inside = {at for start, end in hit.marks for at in range(start, end)}
    lines: list[list[_Sign]] = [[]]
    position, before = 0, ""
    for line in hit.excerpt.split("\n"):
        is_prose = len(before) >= _WRAPPED and before[0] != "#" and " | " not in before
        runs_on = is_prose and line.strip() and _LISTED.match(line) is None
        if position and not runs_on:
            lines.append([])
        elif position:
            lines[-1].append((" ", position - 1 in inside))
        is_safe = line.isprintable() and line.isascii()
        for at, sign in enumerate(line, position):
            shown = sign if is_safe else " " if sign.isspace() else _output.one_line(sign)
            lines[-1].append((shown, at in inside))
        position += len(line) + 1
        before = line
    return lines


def _wrapped(lines: Iterable[list[_Sign]], width: int) -> Iterable[list[tuple[str, str]]]:
    """Lines cut at blanks so that each fits, as pieces of text with their style."""
    for line in lines:
        rest = line
        while rest:
            fitting = _fitting(rest, width)
            pieces: list[tuple[str, str]] = []
            for sign, matches in rest[:fitting]:
                style = _MATCH if matches else ""
                if pieces and pieces[-1][1] == style:
                    pieces[-1] = pieces[-1][0] + sign, style
                else:
                    pieces.append((sign, style))
            yield pieces
            rest = rest[fitting:]
            while rest and rest[0][0] == " ":
                rest = rest[1:]


def _fitting(signs: Sequence[_Sign], width: int) -> int:
    """How many signs fit on a line, at least one; the last blank is the best place to end it."""
    used, blank = 0, 0
    for at, (sign, _) in enumerate(signs):
        if sign.isascii() and len(sign) == 1:
            used += 1
        else:
            used += sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in sign)
        if used > width:
            return blank or max(1, at)
        if sign == " " and at:
            blank = at
    return len(signs)
