"""Files that say nearly the same."""

from typing import TYPE_CHECKING, Annotated, Final

from filestore.chunks.observation import DOCUMENT
from filestore.cli import _context, _diagnostics, _output
from filestore.core.safe_text import shown_path
from filestore.server import requests
from filestore.server.operations import CommonOptions, option

if TYPE_CHECKING:
    from filestore.browse import duplicates

_SIMILAR_LINES: Final = 2


def run_similar(options: requests.Similar) -> int:
    """The files most similar to a chunk file, to an original, or to the chunk that holds its line.

    In place: to a document, or to the section of it that holds a line.

    By the vectors that are stored, so no model is needed; every file is checked on disk.

    Example: filestore similar handbook/lease.md:42 -k 5
    """
    _context.calculate_in_one_thread()
    with _context.open_store(options) as store:
        found = options.answer(store)
    if not _context.told(options, found):
        for number, hit in enumerate(found.hits, start=1):
            line = f":{hit.line}" if hit.line else ""
            mark = "" if hit.freshness == "fresh" else f"  [{hit.freshness}]"
            _output.line(f"{number}. {shown_path(hit.path)}{line}{mark}", style="1")
            end = f"{_output.pages(hit.pages)}  (cosine {hit.score:.2f})"
            origin = shown_path(hit.source) if hit.source else "no source"
            place = " > ".join(hit.headings) or origin
            _output.line(
                f"   {_output.clipped(place, _output.WIDTH - 3 - len(end))}{end}", style="2"
            )
            lines = [line.strip() for line in hit.text.splitlines()]
            told = [line for line in lines if line and not line.startswith(("#", "```"))]
            for line in told[:_SIMILAR_LINES]:
                _output.line(f"   {_output.clipped(line, _output.WIDTH - 3)}")
        if not found.hits:
            _output.line("nothing similar found")
    return 1 if found.hits and all(hit.freshness == "gone" for hit in found.hits) else 0


_SHOWN: Final = 10
"""Files printed of one group."""
_DUPLICATES_LINES: Final = 20
"""Lines printed of one diff."""


class Duplicates(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    above: Annotated[float, option("C")] = 0.95
    """the least cosine, above 0 and at most 1"""


def run_duplicates(options: Duplicates) -> int:
    """Files with the same text, or nearly, in groups, each file with its diff to the first.

    Near are texts whose vectors have a cosine of --above or more; what is near to any file of a
    group belongs to it. In place the texts are the sections of documents. Short texts are near to
    many others, and so are headers, footers and forms.

    Example: filestore duplicates --above 0.98
    """
    with _context.open_store(options) as store, _diagnostics.progress_bar() as on_progress:
        found = store.duplicates(above=options.above, on_progress=on_progress)
    if not _context.told(options, found):
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


def _kind(group: "duplicates.DuplicateGroup") -> str:
    return "section" if group.files[0].kind == DOCUMENT else "file"


def _group(number: int, group: "duplicates.DuplicateGroup") -> None:
    what = "the same text" if group.same else "nearly the same text"
    counted = _output.count(len(group.files), _kind(group))
    _output.line(f"{number}. {counted} with {what}", style="1")
    for place, file in enumerate(group.files[:_SHOWN]):
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
    _output.say_rest(group.files, _SHOWN, indent="   ")
