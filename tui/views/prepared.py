"""What Browse reads of a file or a resource, made ready for the screen in the reading thread."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore import FilestoreError
from filestore.browse import InspectedStore
from tui.formatting import Line
from tui.formatting import chunks as texts
from tui.views.context import Target

if TYPE_CHECKING:
    from filestore.browse import About, AboutResource, Block


MOST_DOCUMENTS: Final = 60
"""Documents of a folder that are listed."""


class Prepared(Struct, frozen=True, kw_only=True):
    """A file, or all of a resource, made ready for the screen."""

    about: "About | None" = None
    resource: "AboutResource | None" = None
    part: int | None = None
    """The section that is shown; None for all of the file."""
    lines: Sequence[Line] = ()
    pieces: tuple[tuple[int, str], ...] = ()
    """Of a resource that is read as a whole: the first line of each chunk, and its path; where its
    facts are read its first chunk."""
    outline: tuple[tuple[int, str, int], ...] = ()
    """Level, words and line of each heading."""
    top: int = 0
    """The line to begin with."""


def prepared_file(
    store: InspectedStore, target: Target, moved_to: Callable[[str], str], section: str, width: int
) -> Prepared:
    """A file as it is now, made ready for the screen; called in the reading thread."""
    path, part = target.path, None
    if not path:
        path, part = store.listing.file_of(target.file)
    now = moved_to(path)
    about = store.about_file(now, indexed_as=path) if now else store.about_file(path)
    if target.line or target.text:
        part = about.part_at(target.line, target.text)
    if section == "raw":
        return Prepared(about=about, part=part, lines=texts.raw_lines(about))
    if section == "facts":
        family = None
        # Without the catalog everything else is still worth telling.
        with suppress(FilestoreError):
            if not store.places.tree.has_sections:
                family = store.summaries.family(about.path)
        return Prepared(about=about, part=part, lines=texts.fact_lines(about, family))
    text, first = text_of(about, part), about.first_line
    if (shown := about.section(part)) is not None:
        first = shown.line
    if about.problem:
        lines = [*texts.problem_lines(about), *texts.text_lines(text)]
        return Prepared(about=about, part=part, lines=lines)
    from filestore.browse import heading_line, read_blocks
    from tui.views.rendered import rendered

    of = about.source if about.kind == "chunk" else about.path
    found = read_blocks(texts.first_part(text), first=first or 1, of=of)
    line = heading_line(found, target.heading) if target.heading else target.top
    lines = rendered(found, width)
    reached = _reached(lines)
    return Prepared(
        about=about,
        part=part,
        lines=[*lines, *texts.hidden_lines(text)],
        outline=_outline(found, reached),
        top=_line_at(reached, line),
    )


def prepared_resource(
    store: InspectedStore, name: str, section: str, width: int, last: str
) -> Prepared:
    """A resource made ready: its chunks one after the other, a rule between; from one of them."""
    about = store.about_resource(name)
    if store.places.tree.has_sections:
        ids = store.listing.chunk_ids(name)[:MOST_DOCUMENTS]
        known = store.listing.documents(ids)
        inside = [known[one] for one in ids if one in known]
        return Prepared(resource=about, lines=texts.folder_lines(name, inside, about.chunks))
    if section != "text":
        first, _ = store.pieces(about.resource, 1)
        return Prepared(resource=about, pieces=tuple((0, one.path) for one in first))
    from filestore.browse import read_blocks
    from tui.views.rendered import rendered

    found, left = store.pieces(about.resource, texts.FIRST_PART)
    lines: list[Line] = []
    begun: list[tuple[int, str]] = []
    outline: list[tuple[int, str, int]] = []
    for piece in found:
        own = read_blocks(piece.text, first=piece.line, of=piece.source)
        drawn = rendered(own, width)
        begun.append((len(lines), piece.path))
        lines.append(texts.rule_line(piece.path, width, is_gone=piece.is_gone))
        headings = _outline(own, _reached(drawn))
        outline += [(level, title, at + len(lines)) for level, title, at in headings]
        lines += [*drawn, ()]
    more = [texts.left_line(left)] if left else []
    return Prepared(
        resource=about,
        lines=[*lines, *more],
        pieces=tuple(begun),
        outline=tuple(outline),
        top=next((first for first, path in begun if path == last), 0),
    )


def _outline(found: Sequence["Block"], reached: Sequence[int]) -> tuple[tuple[int, str, int], ...]:
    headings = [one for one in found if one.kind == "heading"]
    return tuple((one.level, one.title, _line_at(reached, one.line)) for one in headings)


def _reached(lines: Sequence[Line]) -> list[int]:
    """Of each line that is shown the last line of the file that is shown by then."""
    return list(accumulate((max((span.line for span in one), default=0) for one in lines), max))


def _line_at(reached: Sequence[int], wanted: int) -> int:
    """The first line that shows a line of the file, or what follows it; 0 for none."""
    at = bisect_left(reached, wanted)
    return at if at < len(reached) else 0


def text_of(about: "About", part: int | None) -> str:
    """The text that is shown: of a section alone, or of all of the file."""
    section = about.section(part)
    return about.body if section is None else about.body[section.start : section.end]
