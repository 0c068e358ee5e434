"""The links of a Markdown document once files were moved, itself perhaps among them.

Pure. Two rules: only where a link says where it leads is anything written, every other byte stays;
and what is made is read again, so that each link that led to a file leads to the same one.
"""

import posixpath
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from filestore.chunks.links import Names, destination, written_path
from filestore.core.errors import FilestoreError
from filestore.core.paths import NOTES, ChunkPath, folder_of
from filestore.extract.links import Link, WrittenLink, is_external, written_links
from filestore.extract.markdown import read_frontmatter
from filestore.extract.markdown_read import percent_decoded

_UNLINKABLE: Final = re.compile(r"[\[\]|#^\x00-\x1f\x7f\ud800-\udfff]|://")
"""What no name between double brackets can have."""
_NAME: Final = re.compile(r"\[\[[^\[\]\n]+\]\]")
_BASE: Final = "/" + "_/" * 64
"""Lies as deep as any path can lead out."""


class UnlinkableError(FilestoreError, ValueError):
    """A link cannot be written so that it leads to the file that it led to."""


class Relinked(Struct, frozen=True, kw_only=True):
    """A document with its links changed."""

    data: bytes
    links: int = 0
    """How many were changed."""


class Moves:
    """Which files are moved, and which file a link means before and after."""

    def __init__(
        self,
        files: Mapping[ChunkPath, ChunkPath],
        *,
        documents: Iterable[ChunkPath],
        folders: Mapping[ChunkPath, ChunkPath] | None = None,
        others: Iterable[ChunkPath] = (),
        aliases: Iterable[tuple[str, ChunkPath]] = (),
        exists: Callable[[ChunkPath], bool] = lambda _: False,
    ) -> None:
        """Takes the names of all files.

        Args:
            files: Old path to new path of each file that is moved.
            documents: Every document before the move.
            folders: Old path to new path of each folder that is moved.
            others: Every other file that a link may lead to.
            aliases: Other names of documents, each with its document.
            exists: Whether anything is at a path before the move.
        """
        self._new = {**files, **(folders or {})}
        named, rest, known = list(documents), list(others), list(aliases)
        self._before = Names(named, known), Names(rest)
        self._after = (
            Names(map(self.new, named), [(alias, self.new(path)) for alias, path in known]),
            Names(map(self.new, rest)),
        )
        self._exists = exists

    def new(self, path: ChunkPath) -> ChunkPath:
        """Where a file or a folder is after the move."""
        return self._new.get(path, path)

    def before(self, link: Link, note: ChunkPath) -> ChunkPath | None:
        """What a link leads to before the move; outside of the tree whether or not it is there."""
        found = _among(self._before, link, note)
        if found is None and (path := _by_words(link, note)) is not None:
            found = path if path.startswith("../") or self._exists(path) else None
        return found

    def leads(self, link: Link, note: ChunkPath, target: ChunkPath) -> bool:
        """Whether a link leads to a path after the move."""
        found = _among(self._after, link, note)
        return found == target if found else _by_words(link, note) == target

    def stays(self, link: Link, note: ChunkPath, before: ChunkPath) -> bool:
        """Whether a link leads to where it led for programs that choose otherwise, too.

        Of several files of a name Obsidian takes the shortest path, first below the note's folder.

        Args:
            link: As it is written.
            note: The file in which it is, before the move.
            before: What it leads to before the move.
        """
        if link.kind != "wiki":
            return True
        chosen = _shortest(self._before, link.target, note)
        now = _shortest(self._after, link.target, self.new(note))
        return chosen != before or now == self.new(before)

    def is_clear(self, name: str, note: ChunkPath, target: ChunkPath) -> bool:
        """Whether such programs, too, take a name for that of a file after the move."""
        return _shortest(self._after, name, note) in (None, target)


class Followed(Moves):
    """Which file a link means that leads nowhere, once files were moved without the links to them.

    Links are judged where they are now, and where their file was before. Every other link stays.
    """

    def __init__(
        self,
        went: Mapping[ChunkPath, ChunkPath],
        *,
        documents: Iterable[ChunkPath],
        others: Iterable[ChunkPath] = (),
        aliases: Iterable[tuple[str, ChunkPath]] = (),
        exists: Callable[[ChunkPath], bool],
        places: Iterable[tuple[ChunkPath, ChunkPath]] = (),
        by_name: bool = True,
    ) -> None:
        """Takes the names of all files.

        Args:
            went: Old path to new path of each file that is known to have moved; nothing is at the
                old one now.
            places: The same of every file that moved, whatever is at the old path.
            by_name: Whether a link may also mean the one file of its name.
            documents: Every document as it is now.
            others: Every other file that a link may lead to.
            aliases: Other names of documents, each with its document.
            exists: Whether anything is at a path now.
        """
        super().__init__(went, documents=documents, others=others, aliases=aliases, exists=exists)
        self._by_name = by_name
        self._were = Names(went)
        self._places: dict[ChunkPath, list[ChunkPath]] = {}
        for old, new in places:
            self._places.setdefault(new, []).append(old)

    def before(self, link: Link, note: ChunkPath) -> ChunkPath | None:
        """What a link leads to, or led to before its target was moved; see `Moves.before`."""
        found = super().before(link, note)
        if found is None or (found.startswith("../") and note in self._places):
            led = self.candidates(link, note)
            return next(iter(led.values())) if len(led) == 1 else found
        return found

    def is_lost(self, link: Link, note: ChunkPath) -> bool:
        """Whether a link leads to no file of the tree."""
        path = written_path(link, note) if link.kind == "markdown" else None
        return not (_among(self._before, link, note) or (path and self._exists(path)))

    def led(self, link: Link, note: ChunkPath) -> dict[ChunkPath, ChunkPath]:
        """Where a link led, by the moves that are known: where that is now, and where it was."""
        if not link.target or (link.kind == "markdown" and is_external(link.target)):
            return {}
        found: dict[ChunkPath, ChunkPath] = {}
        for place in (note, *self._places.get(note, ())):
            found |= {self.new(old): old for old in self._called(link, place)}
            there = super().before(link, place) if place != note else None
            # What came by a move was not there when the link was written.
            found |= {there: there} if there and there not in self._places else {}
        return found

    def candidates(self, link: Link, note: ChunkPath) -> dict[ChunkPath, ChunkPath]:
        """The same; where no move tells, every file with the name that a path ends with."""
        path = _by_words(link, note)
        found = self.led(link, note)
        is_named = self._by_name and path is not None and not path.startswith("../")
        if found or path is None or not is_named or link.target.endswith("/"):
            return found
        name = posixpath.basename(path)
        return {one: one for names in self._after for one in names.ending_with(name)}

    def _called(self, link: Link, note: ChunkPath) -> Iterable[ChunkPath]:
        """The files that a link named by where they were."""
        if link.kind == "wiki" and (found := self._were.ending_with(link.target)):
            return found
        return filter(None, (self._were.resolve(link, note),))


def _shortest(names: Iterable[Names], name: str, note: ChunkPath) -> ChunkPath | None:
    """The file that Obsidian takes for the one of a name."""
    start = f"{folder_of(note)}/" if folder_of(note) else ""
    found = [path for one in names for path in one.ending_with(name)]
    return min(
        found,
        key=lambda path: (
            path.removesuffix(".md").casefold() != name.removesuffix(".md").casefold(),
            not path.startswith(start),
            len(path),
            path,
        ),
        default=None,
    )


def _among(names: Iterable[Names], link: Link, note: ChunkPath) -> ChunkPath | None:
    return next(filter(None, (one.resolve(link, note) for one in names)), None)


def _by_words(link: Link, note: ChunkPath) -> ChunkPath | None:
    """The path that a Markdown link has as it is written, wherever it leads; None for none."""
    if link.kind != "markdown" or is_external(link.target):
        return None
    decoded = percent_decoded(link.target)
    if not decoded:
        return None
    start = "" if decoded.startswith("/") else folder_of(note)
    return ChunkPath(posixpath.normpath(posixpath.join(start, decoded.lstrip("/"))))


def relinked(data: bytes, note: ChunkPath, moves: Moves) -> Relinked:
    """A document whose links lead to where they led; else byte for byte as it was.

    Args:
        data: The file before the move.
        note: Where it lies before the move.
        moves: What is moved.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
        UnlinkableError: A link cannot be written so.
    """
    raw = data.decode()
    if "[" not in raw:
        return Relinked(data=data)
    now = moves.new(note)
    found = _links(raw)
    defined = {_folded(raw[slice(*one.inner)]) for one in found if one.link.kind == "markdown"}
    edits: dict[tuple[int, int], str] = {}
    wanted: list[tuple[Link, ChunkPath | None]] = []
    count = 0
    for one in found:
        before = moves.before(one.link, note)
        target = None if before is None else moves.new(before)
        wanted.append((one.link, target))
        if before is None or target is None:
            continue
        if moves.leads(one.link, now, target) and moves.stays(one.link, note, before):
            continue
        place = one.start, one.end
        if one.link.kind == "wiki":
            edits[place] = _wiki(one.link, now, before, target, moves)
            label = f"{raw[one.inner[0] : one.start]}{edits[place]}{raw[one.end : one.inner[1]]}"
            if _folded(label) not in defined:
                edits |= dict.fromkeys(one.defined, label)
        else:
            edits[place] = _markdown(one.link, raw[slice(*place)], now, before, target, moves)
        count += 1
    if not count:
        return Relinked(data=data)
    pieces, end = [], 0
    for (start, stop), made in sorted(edits.items()):
        pieces += [raw[end:start], made]
        end = stop
    text = "".join([*pieces, raw[end:]])
    _check(text, now, wanted, moves)
    return Relinked(data=text.encode(), links=count)


def _folded(label: str) -> str:
    """A label as references are compared."""
    return " ".join(label.casefold().split())


def _check(
    text: str,
    note: ChunkPath,
    wanted: list[tuple[Link, ChunkPath | None]],
    moves: Moves,
) -> None:
    """Read what was made: the same links in the same places, each to the file that is wanted.

    Raises:
        UnlinkableError: It is read otherwise.
    """
    made = [one.link for one in _links(text)]
    for (before, target), now in zip(wanted, made, strict=False):
        is_as_before = (now.kind, now.heading) == (before.kind, before.heading)
        if not is_as_before or (target is not None and not moves.leads(now, note, target)):
            raise UnlinkableError(f"the link to {before.target} cannot be written otherwise")
    if len(made) != len(wanted):
        raise UnlinkableError("with other links the text is read otherwise")


def _links(raw: str) -> list[WrittenLink]:
    """Where a note says where its links lead, in characters of the file as it is."""
    text = raw.replace("\r\n", "\n").replace("\r", "\n")
    mark = len(text) - len(text := text.removeprefix("\ufeff"))
    # Each CR LF is one character shorter where links are looked for.
    breaks = [at.start() - number - mark for number, at in enumerate(re.finditer("\r\n", raw))]

    def place(at: int, by: int) -> int:
        return at + by + mark + bisect_left(breaks, at + by)

    def moved(one: WrittenLink, by: int) -> WrittenLink:
        first, last = one.inner
        return WrittenLink(
            start=place(one.start, by),
            end=place(one.end, by),
            link=one.link,
            inner=(place(first, by), place(last, by)),
            defined=tuple((place(start, by), place(end, by)) for start, end in one.defined),
        )

    metadata, start = read_frontmatter(text)
    named = set(_names_in(metadata.values())) if start else set()
    head = [
        moved(one, match.start())
        for match in (_NAME.finditer(text, 0, start) if named else ())
        for one in written_links(match[0])
        if (one.link.target, one.link.heading) in named
    ]
    return [*head, *(moved(one, start) for one in written_links(text[start:]))]


def _names_in(values: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Name and heading of the links that metadata hold."""
    for value in values:
        if isinstance(value, str):
            links = (one.link for one in written_links(value))
            yield from ((one.target, one.heading) for one in links if one.kind == "wiki")
        elif isinstance(value, Mapping):
            yield from _names_in(value.values())
        elif isinstance(value, list):
            yield from _names_in(value)


def _wiki(link: Link, note: ChunkPath, before: ChunkPath, target: ChunkPath, moves: Moves) -> str:
    """The name of a file between double brackets, in the style of the one that is there.

    Raises:
        UnlinkableError: No name that can be written there leads to it.
    """
    for name in _names_of(link.target, note, before, target):
        if name and name == name.strip() and not _UNLINKABLE.search(name):
            made = Link(kind="wiki", target=name, heading="", label="", line=0)
            if moves.leads(made, note, target) and moves.is_clear(name, note, target):
                return name
    raise UnlinkableError(
        f"[[{link.target}]] in {note} cannot name {target}"
        ": choose a name without any of [ ] | # ^, and without blanks at its ends",
    )


def _names_of(written: str, note: ChunkPath, before: ChunkPath, target: ChunkPath) -> Iterator[str]:
    """What a file can be called between double brackets, what is nearest to a name first."""
    whole = str(target)
    if _is_folder(written, before, target):
        whole = folder_of(target)
    elif not written.casefold().endswith(posixpath.splitext(before)[1].casefold()):
        whole = whole.removesuffix(".md")
    if written.startswith(("./", "../")):
        near = relative(ChunkPath(whole), folder_of(note))
        yield near if near.startswith("../") else f"./{near}"
    if written.startswith("/"):
        yield f"/{whole}"
    parts = whole.split("/")
    is_whole = posixpath.normpath(written).casefold() in (
        before.casefold(),
        before.removesuffix(".md").casefold(),
    )
    if not (is_whole and "/" in written):
        yield "/".join(parts[-len(posixpath.normpath(written).split("/")) :])
    yield whole
    yield target
    yield f"/{target}"


def _markdown(
    link: Link, written: str, note: ChunkPath, before: ChunkPath, target: ChunkPath, moves: Moves
) -> str:
    """The destination of a Markdown link, in the style of the one that is there.

    Raises:
        UnlinkableError: No path that can be written there leads to it.
    """
    for path in _paths_of(link.target, before, target):
        is_from_top = link.target.startswith("/")
        name = f"/{path}" if is_from_top else relative(path, folder_of(note))
        if link.target.endswith("/") and not name.endswith("/"):
            name += "/"
        made = destination(written, name)
        (found,) = written_links(f"[x]({made})") or (None,)
        if found is not None and moves.leads(found.link, note, target):
            return made
    raise UnlinkableError(
        f"the link to {link.target} in {note} cannot name {target}: choose another name"
    )


def _paths_of(written: str, before: ChunkPath, target: ChunkPath) -> Iterator[ChunkPath]:
    """How much of a path a link can have, what is nearest to its own first."""
    if _is_folder(percent_decoded(written) or "", before, target):
        yield folder_of(target) or ChunkPath(".")
    ends = (percent_decoded(written) or "").casefold()
    if before.endswith(NOTES) and not ends.endswith(posixpath.splitext(before)[1].casefold()):
        yield ChunkPath(target.removesuffix(".md"))
    yield target


def _is_folder(written: str, before: ChunkPath, target: ChunkPath) -> bool:
    """Whether a link names the folder of the note that it leads to, which still is that of one."""
    is_note = all(path.rpartition("/")[2] == "index.md" for path in (before, target))
    return is_note and posixpath.basename(written.rstrip("/")).casefold() not in (
        "index",
        "index.md",
    )


def relative(path: ChunkPath, folder: str) -> str:
    """A path as it is written in a file of a folder, whatever the working folder is."""
    return posixpath.relpath(posixpath.normpath(_BASE + path), _BASE + folder)
