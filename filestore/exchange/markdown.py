"""A folder of Markdown for people and static sites: a page a document, links, an index.

Written, and never read: Markdown that a person writes is indexed where it lies. One rule: an
earlier export is replaced whole, and only while all that it holds is as it was written.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final
from urllib.parse import quote

import orjson
from msgspec import Struct, field

from filestore.chunks import chunk_file, frontmatter
from filestore.chunks.reading_order import Written, own_texts
from filestore.config.layout import folded_path
from filestore.core.errors import UsageError
from filestore.core.hashing import content_hash
from filestore.core.safe_text import shown_path
from filestore.exchange.base import Chunk, Collection, Form, Resource, TargetRefused
from filestore.fs import disk, staged
from filestore.verify.names import why_unportable

MANIFEST: Final = "filestore-export.json"
_FORMAT: Final = "filestore-markdown/2"
_INDEX: Final = "index.md"
_ENDING: Final = ".md"
_MOST_FOLDERS: Final = 8
"""Folders in one another, at most."""

_MOST_NAME_BYTES: Final = 200
_UNSAFE_ANYWHERE: Final = re.compile(
    r'[\x00-\x1f\x7f-\x9f<>:"|?*\\/\u200b-\u200f\u2028-\u202e\ufeff]+'
)


class FileNames(Struct):
    """Names for the files of one folder, written for a person, whatever a stranger called them."""

    _taken: set[str] = field(default_factory=set)
    _folders: dict[str, str] = field(default_factory=dict)

    def folder(self, name: str) -> str:
        """The name of a folder: the same for the same."""
        if name not in self._folders:
            self._folders[name] = self.take(name, "")
        return self._folders[name]

    def take(self, name: str, ending: str) -> str:
        """A name as near to what it was called as can be, with an ending."""
        text = name.encode("utf-8", "replace").decode()
        # Parts that lead up or stay are dropped.
        parts = [part for part in re.split(r"[/\\]+", text) if part.strip(" .")]
        stem = _UNSAFE_ANYWHERE.sub("-", "-".join(parts)).strip(" -").lstrip(".")
        stem = stem.encode()[:_MOST_NAME_BYTES].decode("utf-8", "ignore").rstrip(" .") or "unnamed"
        if why_unportable(stem + ending):  # a device, mostly
            stem = f"_{stem}"
        found, number = stem + ending, 1
        while folded_path(found) in self._taken:
            number += 1
            found = f"{stem} ({number}){ending}"
        self._taken.add(folded_path(found))
        return found


class Markdown(Form):
    """The form `markdown`."""

    name: ClassVar[str] = "markdown"
    takes_vectors: ClassVar[bool] = False

    def write(self, target: str, collection: Collection) -> tuple[str, ...]:
        """See `Form.write`."""
        _refuse_others(target)
        with disk.disk_errors(target):
            staged.collect_folders(os.path.dirname(target))
        with staged.staged_folder(target, swap=lambda: _unchanged(target)) as folder:
            site = _Site(folder)
            for resource in collection:
                site.add(resource)
            site.finish()
        return (target,)

    def read(self, source: str) -> Collection:
        """Refuse: what a person writes has no need of another copy."""
        raise UsageError(
            "the form 'markdown' is only written",
            remedy=f"'filestore init --in-place {source}' indexes the folder where it is",
        )


@contextmanager
def _unchanged(target: str) -> Iterator[None]:
    _refuse_others(target)
    yield


def _refuse_others(target: str) -> None:
    """Let only a folder be replaced that is empty, or an unchanged export.

    Raises:
        TargetRefused: It holds something of a person's.
    """
    if not os.path.lexists(target):
        return
    reason = "" if disk.is_folder(target) else "it is not a folder"
    there: set[str] = set()
    for folder, folders, names in os.walk(target):
        links = [one for one in folders if os.path.islink(os.path.join(folder, one))]
        there |= {os.path.relpath(os.path.join(folder, one), target) for one in (*names, *links)}
    if not reason and there:
        hashes = _written_before(target)
        if hashes is None:
            reason = "it has files, and is not an export of this version"
        elif others := there - hashes.keys() - {MANIFEST}:
            reason = f"no export wrote {shown_path(min(others))} in it"
        elif edited := [path for path in there & hashes.keys() if not _is_as(target, path, hashes)]:
            reason = f"{shown_path(min(edited))} was edited since it was exported"
    if reason:
        raise TargetRefused(
            f"{shown_path(target)} is not overwritten: {reason}"
            "; name a folder that is not there yet",
        )


def _written_before(target: str) -> Mapping[str, Any] | None:
    """The hash of each page of an export; None for what is none."""
    try:
        found = orjson.loads(disk.read_path(os.path.join(target, MANIFEST)))
    except (OSError, ValueError) as error:
        disk.pass_limits(error)
        return None
    is_ours = isinstance(found, dict) and found.get("format") == _FORMAT
    pages = found.get("pages") if is_ours else None
    return pages if isinstance(pages, dict) else None


def _is_as(target: str, path: str, hashes: Mapping[str, Any]) -> bool:
    try:
        data = disk.read_path(os.path.join(target, path))
    except OSError as error:
        disk.pass_limits(error)
        return False
    return bool(content_hash(data).hex() == hashes[path])


class _Page(Struct, frozen=True):
    """What comes on one page: a document, chunks of none, or the summaries of a resource."""

    path: str
    """Below the folder."""
    title: str
    source: str
    """The document; "" for none."""
    chunks: list[Chunk]
    is_summaries: bool


class _Site(Struct):
    """An export on its way into a new folder."""

    folder: str
    hashes: dict[str, str] = field(default_factory=dict)
    _names: dict[str, FileNames] = field(default_factory=dict)
    _listed: list[str] = field(default_factory=lambda: ["# Contents\n"])
    """The lines of the index."""

    def __post_init__(self) -> None:
        for name in (MANIFEST, _INDEX):
            self._names_in("").take(name, "")

    def add(self, resource: Resource) -> None:
        """Write the pages of a resource."""
        pages = self._pages(resource)
        paths = {chunk.path: page.path for page in pages for chunk in page.chunks}
        summaries = next((page.path for page in pages if page.is_summaries), "")
        if pages:
            self._listed.append(f"\n## {_escaped(resource.name or 'Other')}\n\n")
        for page in pages:
            self._listed.append(f"- [{_escaped(page.title)}]({_link(_INDEX, page.path)})\n")
            own = _about(resource, page.source).get("metadata")
            text = _properties(page, own if isinstance(own, Mapping) else {})
            if page.is_summaries:
                text += f"# {_escaped(page.title)}\n\n"
                text += "\n".join(_summary(page, chunk, paths) for chunk in page.chunks)
            else:
                text += f"[Summaries]({_link(page.path, summaries)})\n\n" if summaries else ""
                text += _document(page, str(_about(resource, page.source).get("extractor")))
            self._write(page.path, text)

    def finish(self) -> None:
        """Write what tells of the pages."""
        self._write(_INDEX, "".join(self._listed))
        manifest = {"format": _FORMAT, "pages": self.hashes}
        data = orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        disk.write_path(os.path.join(self.folder, MANIFEST), data)

    def _write(self, path: str, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        place = os.path.join(self.folder, path)
        disk.make_folders(os.path.dirname(place))
        disk.write_path(place, data)
        self.hashes[path] = content_hash(data).hex()

    def _pages(self, resource: Resource) -> list[_Page]:
        """The pages of a resource: one a document, in order, then one of its summaries.

        A page lies where its document lay, so that links between documents lead to pages.
        """
        groups: dict[tuple[bool, str], list[Chunk]] = {}
        for chunk in resource.chunks:
            kind = chunk.frontmatter.get("kind") or chunk_file.kind_of_name(chunk.path)
            is_summary = kind == "summary"
            # Files of no resource have nothing in common.
            key = "" if is_summary else chunk.source or ("" if resource.name else chunk.path)
            groups.setdefault((is_summary, key), []).append(chunk)
        known = [str(one.get("source")) for one in resource.documents]
        found: list[_Page] = []
        for (is_summary, key), chunks in sorted(groups.items(), key=lambda one: one[0][0]):
            if is_summary:
                title, source = f"Summaries of {resource.name or 'all'}", ""
                # In the folder of the outermost pages.
                around = os.path.commonpath([os.path.dirname(one.path) for one in found] or [""])
                parts = [*around.split("/"), title]
            else:
                source = known[0] if len(known) == 1 and not key else key if resource.name else ""
                title = _title(resource, source, chunks[0])
                parts = (source or key or resource.name).split("/")
            found.append(_Page(self._place(parts), title, source, chunks, is_summary))
        return found

    def _place(self, parts: list[str]) -> str:
        """A path that no other page has, without what leads out."""
        *folders, name = [one for one in parts if one not in ("", ".", "..")] or ["page"]
        around = ""
        for folder in folders[:_MOST_FOLDERS]:
            around = os.path.join(around, self._names_in(around).folder(folder))
        stem = name[: -len(_ENDING)] if name.lower().endswith(_ENDING) else name
        return os.path.join(around, self._names_in(around).take(stem, _ENDING))

    def _names_in(self, folder: str) -> FileNames:
        return self._names.setdefault(folder, FileNames())


def _about(resource: Resource, source: str) -> Mapping[str, Any]:
    """What the record of a resource says of one document."""
    return next((one for one in resource.documents if one.get("source") == source), {})


def _title(resource: Resource, source: str, first: Chunk) -> str:
    """On one line: as the document says, its first heading, or its name."""
    own = _about(resource, source).get("metadata")
    items = own.items() if isinstance(own, Mapping) else ()
    titles = (one for key, one in items if key.casefold() == "title" and isinstance(one, str))
    headings = first.frontmatter.get("headings")
    heading = headings[0] if isinstance(headings, list) and headings else ""
    name = (source or resource.name or first.path).rpartition("/")[2]
    return " ".join((next(titles, "") or str(heading) or name).split()) or "Untitled"


def _properties(page: _Page, own: Mapping[str, Any]) -> str:
    """The frontmatter of a page: what the document says of itself, without what none can hold."""
    named = {key.casefold() for key in own}
    wanted = {} if "title" in named else {"title": page.title}
    wanted |= own
    if page.source and "source" not in named:
        wanted["source"] = page.source
    values: dict[str, Any] = {}
    block = b""
    for key, value in wanted.items():
        try:
            block = frontmatter.serialize(values | {key: value}, b"")
        except ValueError:
            continue
        values[key] = value
    return block.decode()


def _document(page: _Page, extractor: str) -> str:
    """The text that chunks were cut from; of source code in a fence that it does not have."""
    if not page.source:
        return "\n".join(f"{chunk.text.rstrip()}\n" for chunk in page.chunks)
    text = "".join(
        own_texts(
            Written(page.source, chunk.text, *map(chunk.frontmatter.get, ("overlap", "repeats")))
            for chunk in page.chunks
        )
    )
    if not text.endswith("\n"):
        text += "\n"
    if not extractor.startswith("code/"):
        return text
    language = re.search(r"\.([A-Za-z0-9+#-]+)$", page.source)
    signs = "```"
    while signs in text:
        signs += "`"
    return f"{signs}{language[1].lower() if language else 'text'}\n{text}{signs}\n"


def _summary(page: _Page, chunk: Chunk, paths: Mapping[str, str]) -> str:
    """A summary below its title, with links to the pages that it was made from."""
    headings = chunk.frontmatter.get("headings")
    title = _escaped(str(headings[-1])) if isinstance(headings, list) and headings else ""
    children = chunk.frontmatter.get("children")
    named = [
        child.get("path") if isinstance(child, Mapping) else child
        for child in (children if isinstance(children, list) else ())
    ]
    pages = dict.fromkeys(paths[one] for one in named if isinstance(one, str) and one in paths)
    links = [
        f"[{_escaped(os.path.basename(one).removesuffix(_ENDING))}]({_link(page.path, one)})"
        for one in pages
    ]
    above = f"## {title}\n\n" if title else ""
    below = f"\nMade from: {', '.join(links)}\n" if links else ""
    return f"{above}{chunk.text.rstrip()}\n{below}"


def _link(page: str, goal: str) -> str:
    """The relative link from one page to another."""
    return quote(os.path.relpath(goal, os.path.dirname(page)), errors="replace")


def _escaped(text: str) -> str:
    """A text on one line that Markdown shows as it is."""
    return re.sub(r"([\\\[\]*_`<>#|])", r"\\\1", " ".join(text.split()))
