"""What is in a store: documents, one file, links, files that are alike, what drifted."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta
from msgspec.structs import replace

from filestore.chunks.observation import DOCUMENT
from filestore.cli import _context, _output, _progress
from filestore.core.safe_text import shell_word, shown_path
from filestore.server import requests
from filestore.server.operations import option

if TYPE_CHECKING:
    from filestore.browse import alike
    from filestore.browse.contents import Contents, Listed
    from filestore.browse.links import Link
    from filestore.browse.overview import OverviewNode
    from filestore.browse.shown import Shown
    from filestore.store import Store


class Ls(requests.Ls, frozen=True, kw_only=True):
    """What the command takes."""

    recent: Annotated[Annotated[int, Meta(ge=0)], option("N", local=True)] = 0
    """the N documents that changed last, newest first"""


def _passage(store: "Store") -> str:
    """What a person calls a piece of a document: a chunk where it is a file of its own."""
    return "passage" if store.places.tree.has_sections else "chunk"


def run_ls(options: Ls) -> int:
    """List the documents of the store, or the chunks of one in reading order.

    In place: the folders with counts and the documents, those of a folder, or the passages of a
    document with their lines. A glob, such as 'notes/*plan*', lists the documents that match.

    Example: filestore ls handbook
    """
    from filestore.browse.file import Resources

    with _context.open_store(options) as store:
        passage = _passage(store)
        first = "sync" if store.places.tree.has_sections else "add PATH…"
        if options.recent:
            return _ls_contents(options, store.contents(options.resource, recent=options.recent))
        try:
            found = options.answer(store)
        except LookupError:
            if not any(sign in options.resource for sign in "*?["):
                raise
            return _ls_contents(options, store.contents(options.resource))
        around = None
        if isinstance(found, Resources) and found.items and store.places.tree.has_sections:
            around = store.contents(options.resource)
    if _context.printed_json(options, found):
        return 0
    direct = set[str]()
    if around is not None:
        direct = {one.path for one in around.items}
        for folder in around.folders:
            documents = _output.count(folder.documents, "document")
            _output.line(f"{shown_path(folder.path)}  {documents}")
    for item in found.items if isinstance(found, Resources) else ():
        if around is None or item["resource"] in direct:
            name = shown_path(item["resource"]) or "(no document)"
            source = f"  from {shown_path(item['source'])}" if item["source"] else ""
            _output.line(f"{name}  {_output.count(item['chunks'], passage)}{source}")
    if around is not None and around.documents > _MANY:
        _print_listed("newest", around.newest)
        _print_listed("most linked", around.linked)
    for item in () if isinstance(found, Resources) else found.items:
        notes = [word for word in ("edited" if item["edited"] else "", item["withheld"]) if word]
        line = f":{item['line']}" if item.get("line") else ""
        page = f"  p. {item['page']}" if item.get("page") else ""
        trail = " > ".join(item.get("headings", ()))
        place = f"{shown_path(item['path'])}{line}{page}" + (f"  {trail}" if trail else "")
        _output.line(place + (f"  [{', '.join(notes)}]" if notes else ""))
    if not found.items:
        _output.line(f"nothing yet: filestore {first}")
    return 0


_MANY: Final = 20
"""Documents, of which a person wants to see the newest."""


def _ls_contents(options: Ls, found: "Contents") -> int:
    if not _context.printed_json(options, found):
        for one in found.items:
            _output.line(f"{one.date}  {shown_path(one.path)}".strip())
    return 0


def _print_listed(head: str, found: "Sequence[Listed]") -> None:
    if found:
        _output.line(f"{head}:", style="2")
    for one in found:
        more = _output.count(one.links, "link") if one.links else one.date
        _output.line(f"   {shown_path(one.path)}  {more}", style="2")


_LISTS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "sections": lambda item: (
        (
            f"line {item['line']}  "
            if item["line"]
            else f"page {item['page']}  "
            if item["page"]
            else ""
        )
        + " > ".join(item["headings"])
    ).rstrip(),
    "links": lambda item: (
        (f"line {item['line']} -> " if item["line"] else "-> ") + shown_path(item["target"])
    ),
    "backlinks": lambda item: (
        shown_path(item["path"]) + (f":{item['line']}" if item["line"] else "")
    ),
}
"""What a document in place has many of, a line each."""


class Show(requests.Show, frozen=True, kw_only=True):
    """What the command takes."""

    record: Annotated[bool, option(local=True)] = False
    """also print what the store knows of the file: frontmatter, tags, passages, links, vectors"""


def run_show(options: Show) -> int:
    """Show one file: its text, all or a part of it.

    PATH:10 is the passage that holds line 10, PATH:10-40 and PATH:10- are lines, PATH:p2 and
    PATH:p2-4 pages, PATH#Heading is a section. What search prints, it takes: a chunk file, a
    document, an original of a chunk store.

    Examples:
        filestore show handbook/lease.md
        filestore show handbook/lease.md:3
        filestore show chunked/notes.md/chunk1.md --record
    """
    with _context.open_store(options) as store:
        shown = options.answer(store)
    if _context.printed_json(options, shown):
        return 0
    with _output.paged():
        _output.line(shown.body.rstrip("\n"))
        if options.record:
            _print_record(shown)
    freshness = shown.record.get("freshness", "fresh" if shown.record["indexed"] else "not indexed")
    if freshness != "fresh":
        _output.say(f"{shown_path(shown.path)} is {freshness}")
    if shown.left is not None and shown.left.after:
        more = _output.count(shown.left.after, "more line")
        following = _output.command(f"show {shell_word(shown.left.next or '')}")
        _output.note(f"… {more}: {following}")
    return 0


def _print_record(shown: "Shown") -> None:
    from filestore.chunks.frontmatter import value_text

    _output.line()
    _output.line(shown_path(shown.path), style="1")
    record: dict[str, Any] = {**shown.record}
    known = {key: value for key, value in record.items() if key not in _LISTS}
    for key, value in {**shown.frontmatter, "revision": shown.revision, **known}.items():
        if value not in (None, [], {}):
            _output.line(f"{key}: {value_text(value)}", style="2")
    for key, tell in _LISTS.items():
        for item in record.get(key, ()):
            _output.line(f"{key.removesuffix('s')}: {tell(item)}", style="2")


_INDENT = "   "
_LISTED = 20


def run_about(options: requests.About) -> int:
    """What is this about, what is in here: of the store, a folder, a document, or a question.

    Summaries from the top down, topics, folders and documents, and the headings of one. Where there
    are no summaries, titles and headings tell.

    Example: filestore about handbook --depth 3
    """
    with _context.open_store(options) as store:
        found = options.answer(store)
        passage = _passage(store)
    is_anything = any((found.nodes, found.documents, found.outline, found.folders))
    if not _context.printed_json(options, found):
        if found.about != "query":
            counts = [_output.count(found.chunks, passage)]
            if found.about in ("store", "folder"):
                counts.insert(0, _output.count(found.resources, "document"))
            if found.summaries:
                stale = f" ({found.stale:,} outdated)" if found.stale else ""
                made = "1 summary" if found.summaries == 1 else f"{found.summaries:,} summaries"
                counts.append(f"{made}{stale}")
            name = shown_path(found.name) or "this store"
            _output.line(f"{name}: {', '.join(counts)}", style="1")
        for topic in found.topics:
            documents = _output.count(topic.documents, "document")
            _output.line(f"{_output.one_line(', '.join(topic.terms))}  {documents}", style="1")
            _output.line(f"{_INDENT}{', '.join(map(shown_path, topic.paths))}", style="2")
        for folder in found.folders:
            _output.line(
                f"{shown_path(folder.path)}  {_output.count(folder.documents, 'document')}"
            )
        hint = ": name a document; --json has all"
        _nodes(_output.first(found.nodes, _LISTED, indent="", rest=hint), 0)
        if found.about != "resource":
            for one in found.documents:
                title = f"  {_output.one_line(one.title)}" if one.title else ""
                name = shown_path(one.resource) or "(no document)"
                _output.line(f"{name}{title}  {_output.count(one.chunks, passage)}")
        if found.left and found.about in ("store", "folder"):
            all_of_it = _output.command("ls")
            _output.line(f"… {found.left:,} more: '{all_of_it}' lists all", style="2")
            _print_listed("newest", found.newest)
            _print_listed("most linked", found.linked)
        for entry in _output.first(found.outline, _LISTED, indent="", rest=": --json has all"):
            _output.line(f"{_INDENT * entry.depth}{_output.one_line(entry.title)}", style="2")
        if not is_anything:
            _output.line("nothing found" if found.about == "query" else "nothing yet")
    return 0 if is_anything else 1


def _nodes(nodes: "Iterable[OverviewNode]", depth: int) -> None:
    for node in nodes:
        state = "" if node.freshness == "fresh" else f"  [{node.freshness}]"
        children = f"  ({_output.count(node.children, 'passage')})" if node.children else ""
        _output.line(f"{_INDENT * depth}{_output.one_line(node.title)}{state}{children}", style="1")
        if node.text:
            _output.line(f"{_INDENT * (depth + 1)}{_output.one_line(node.text)}")
        _output.line(f"{_INDENT * (depth + 1)}{shown_path(node.path)}", style="2")
        _nodes(node.below, depth + 1)


def run_links(options: requests.Links) -> int:
    """The links of a chunk file or an original, and those to it, each with its line.

    A link of yours from one chunk file to another is marked where it leads nowhere; a link that
    came with an original leads to another original, and is marked where that was never added.

    Example: filestore links handbook/lease.md
    """
    with _context.open_store(options) as store:
        found = options.answer(store)
        is_written = store.places.tree.is_written
    if not _context.printed_json(options, found):
        _list("links from", options.path, found.outgoing)
        _list("links to", options.path, found.incoming)
        if found.broken and is_written:
            _output.note("'filestore repair --plan' shows which of them can be repaired")
    return 1 if found.broken else 0


def _list(head: str, path: str, found: "Sequence[Link]") -> None:
    _output.line(f"{head} {shown_path(path)} ({len(found):,})", style="1")
    for link in found:
        edited = "" if link.freshness == "fresh" else f"  [{link.freshness}]"
        state = "" if link.state == "there" else f"  [{link.state}]"
        if link.moved_to is not None:
            state = f"  [moved to {shown_path(link.moved_to)}]"
        line = "" if link.line is None else f":{link.line}"
        place = f"{shown_path(link.path)}{line}{edited}"
        _output.line(f"   {place} -> {shown_path(link.target)}{state}")


def run_status(options: requests.Status) -> int:
    """Show what drifted between files and index, as fast as git status.

    Examples:
        filestore status
        filestore status --json
        filestore status --store file_index
    """
    with _context.open_store(options) as store:
        # A server's command says what its own process would: how a server knows, HTTP tells.
        status = replace(options.answer(store), watched=None)
    if options.json:
        _output.write_json(status.to_dict())
    else:
        _output.findings(status.findings)
        if status.clean:
            _output.line(f"clean: {_output.count(status.files, 'file')} as indexed")
        for words in status.not_checked:
            _output.say(f"not looked at: {words}")
        if status.deleted_texts:
            texts = _output.count(status.deleted_texts, "deleted passage")
            _output.note(f"keyword scores still count {texts}: run 'filestore sync --full'")
        _output.next_command(status.findings, store.places)
    return 0 if status.clean else 1


_SIMILAR_LINES: Final = 2


def run_similar(options: requests.Similar) -> int:
    """The files most similar to a chunk file, to an original, or to the chunk that holds its line.

    In place: to a document, or to the passage of it that holds a line.

    By the vectors that are stored, so no model is needed; every file is checked on disk.

    Example: filestore similar handbook/lease.md:3 -n 5
    """
    _context.calculate_in_one_thread()
    with _context.open_store(options) as store:
        found = options.answer(store)
    if not _context.printed_json(options, found):
        for number, hit in enumerate(found.hits, start=1):
            line = f":{hit.line}" if hit.line else ""
            mark = "" if hit.freshness == "fresh" else f"  [{hit.freshness}]"
            _output.line(f"{number}. {shown_path(hit.path)}{line}{mark}", style="1")
            end = f"{_output.pages(hit.pages)}  (cosine {hit.score:.2f})"
            origin = shown_path(hit.source) if hit.source else "no source"
            place = " > ".join(hit.headings) or origin
            _output.cut_line(place, end=end, indent=3, style="2")
            lines = [line.strip() for line in hit.text.splitlines()]
            body = [line for line in lines if line and not line.startswith(("#", "```"))]
            for line in body[:_SIMILAR_LINES]:
                _output.cut_line(line, indent=3)
        if not found.hits:
            _output.line("nothing similar found")
    return 1 if found.hits and all(hit.freshness == "gone" for hit in found.hits) else 0


_SHOWN: Final = 10
"""Files printed of one group."""
_DUPLICATES_LINES: Final = 20
"""Lines printed of one diff."""


class Duplicates(requests.ReadingOptions, frozen=True, kw_only=True):
    """What the command takes."""

    above: Annotated[float, option("C")] = 0.95
    """the least cosine, above 0 and at most 1"""


def run_duplicates(options: Duplicates) -> int:
    """Files with the same text, or nearly, in groups, each file with its diff to the first.

    Near are passages whose vectors have a cosine of --above or more; what is near to any file of a
    group belongs to it. In a chunk store the passages are chunk files. Short ones are near to
    many others, and so are headers, footers and forms.

    Example: filestore duplicates --above 0.98
    """
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        found = store.duplicates(above=options.above, on_progress=on_progress)
    if not _context.printed_json(options, found):
        for number, group in enumerate(found.groups, start=1):
            _group(number, group)
        if found.groups:
            files = sum(len(group.files) for group in found.groups)
            same = sum(group.same for group in found.groups)
            groups = _output.count(len(found.groups), "group")
            counted = f"{_output.count(files, _kind(found.groups[0]))} in {groups}"
            _output.line(f"{counted}: {same:,} the same, {len(found.groups) - same:,} nearly")
        else:
            _output.line("no duplicates found")
    return 0 if found.groups else 1


def _kind(group: "alike.DuplicateGroup") -> str:
    return "section" if group.files[0].kind == DOCUMENT else "file"


def _group(number: int, group: "alike.DuplicateGroup") -> None:
    what = "the same text" if group.same else "nearly the same text"
    counted = _output.count(len(group.files), _kind(group))
    _output.line(f"{number}. {counted} with {what}", style="1")
    for place, file in enumerate(_output.first(group.files, _SHOWN, indent="   ")):
        mark = "" if file.freshness == "fresh" else f"  [{file.freshness}]"
        line = f":{file.line}" if file.line else ""
        near = "" if not place or file.score == 1 else f"  (cosine {file.score:.2f})"
        _output.line(f"   {shown_path(file.path)}{line}{mark}{near}")
        # The head of a diff says which files it compares, and so does the list.
        lines = file.diff.split("\n")[2:]
        for line in lines[:_DUPLICATES_LINES]:
            _output.line(f"      {line}", style="2")
        if len(lines) > _DUPLICATES_LINES or file.cut:
            _output.line("      … --json has more of it", style="2")
