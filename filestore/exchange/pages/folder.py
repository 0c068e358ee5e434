"""A folder with a page of Markdown a document, and two files beside the pages for the rest.

`filestore-export.json` says what was written, `filestore-chunks.jsonl` what no page shows: paths,
metadata, records, vectors. FORMAT.md has their keys. One rule: what a person wrote wins and stays;
a file that an export did not write is neither replaced nor removed, nor one that was edited since.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import IO, Any, ClassVar, Final

import orjson
from msgspec import Struct

from filestore.core.hashing import content_hash
from filestore.core.packages import UPGRADE
from filestore.core.paths import has_plain_names
from filestore.core.safe_text import shown_path
from filestore.exchange.base import (
    Collection,
    Form,
    FormDamaged,
    LeftOut,
    Resource,
    TargetRefused,
    Written,
)
from filestore.exchange.file_names import FileNames
from filestore.exchange.pages.files import PagePlan, either, install, put, stage, take_back
from filestore.exchange.pages.page import (
    Content,
    Page,
    Style,
    content_of,
    fence_of,
    fenced,
    pages_of,
    render,
    split,
    text_hash,
)
from filestore.exchange.pages.reading import PageReading
from filestore.exchange.rows import LARGEST_DIMENSION, Counted, RowReader, encoded, rows_of
from filestore.fs import disk
from filestore.fs.staged_file import staged

MANIFEST: Final = "filestore-export.json"
CHUNKS: Final = "filestore-chunks.jsonl"
VERSION: Final = 1
_MOST_MANIFEST: Final = 256 * 1024 * 1024


class Placed(Struct, frozen=True, kw_only=True):
    """A page, and where it lies."""

    page: Page
    path: str
    """Below the folder."""
    resource: Resource

    def children(self, place: int, pages: Mapping[str, str]) -> list[str]:
        """The pages that a summary was made from, each once.

        Args:
            place: Of the summary, in its resource.
            pages: Paths of chunk files to those of their pages.
        """
        children = self.resource.chunks[place].frontmatter.get("children")
        paths = [
            child.get("path") if isinstance(child, Mapping) else child
            for child in (children if isinstance(children, list) else ())
        ]
        found = (pages.get(path) for path in paths if isinstance(path, str))
        return list(dict.fromkeys(page for page in found if page))

    def heading(self, place: int) -> str:
        """What a summary is called; "" for nothing."""
        headings = self.resource.chunks[place].frontmatter.get("headings")
        last = headings[-1] if isinstance(headings, list) and headings else ""
        return " ".join(str(last).split())


class PageFolder(Form):
    """What the forms of pages have in common."""

    style: ClassVar[Style]
    index: ClassVar[str] = ""
    """The page that lists the others; "" for none."""
    unsafe: ClassVar[Any] = None
    """What no name of a page holds; None for what no file system takes."""

    @abstractmethod
    def head(self, placed: Placed, summaries: str) -> str:
        """What stands above the first chunk, with a line end.

        Args:
            placed: The page.
            summaries: The path of the page with the summaries of its resource; "" for none.
        """

    @abstractmethod
    def around(self, placed: Placed, place: int, pages: Mapping[str, str]) -> tuple[str, str]:
        """What stands before and behind a summary.

        Args:
            placed: The page of summaries.
            place: Of the chunk, in its resource.
            pages: Paths of chunk files to those of their pages.
        """

    def read_head(self, head: str) -> tuple[dict[str, Any] | None, str]:
        """What a page says above its first chunk: properties, None if unreadable; and the rest."""
        return {}, head

    # Writing

    def write(self, target: str, collection: Collection) -> Written:
        """See `Form.write`."""
        before, edited = self._there(target)
        counted = Counted()
        with disk.disk_errors(target):
            disk.make_folders(target)
        with disk.disk_errors(target), disk.folder_at(target) as root:
            plan = PagePlan(root, edited=edited)
            foreign = self._names_there(target, before)
            try:
                with (
                    staged(os.path.join(target, CHUNKS)) as descriptor,
                    open(descriptor, "wb", buffering=1024 * 1024, closefd=False) as file,
                ):
                    self._write_all(collection, plan, counted, file, foreign)
                    file.flush()
                    size = os.fstat(descriptor).st_size
                    self._refuse_edited(target, plan)
                    # What a killed export leaves is known by this, and written over.
                    self._write_manifest(target, {"pages": either(plan.entries, before)})
                    install(plan, before)
            except BaseException:
                take_back(plan)
                raise
            about = {"model": collection.model, "dimension": collection.dimension}
            size_of_manifest = self._write_manifest(
                target,
                (about if collection.model else {}) | {"chunks_bytes": size, "pages": plan.entries},
            )
        return Written(
            files=(target,),
            size_bytes=plan.size_bytes + size + size_of_manifest,
            resources=counted.resources,
            chunks=counted.chunks,
            vectors=counted.vectors,
        )

    def _there(self, target: str) -> tuple[dict[str, frozenset[str]], dict[str, Content]]:
        """The pages of an earlier export, with the hashes they may have; and what edited ones say.

        Raises:
            TargetRefused: What is there is no such export.
        """
        if not os.path.lexists(target):
            return {}, {}
        if not os.path.isdir(target):
            raise TargetRefused(
                f"{shown_path(target)} is not overwritten: it is no folder",
                remedy="name a folder that is not there yet, or an earlier export",
            )
        try:
            manifest = self._manifest(target)
        except FileNotFoundError:
            if all(name.startswith(".") for name in os.listdir(target)):
                return {}, {}
            raise TargetRefused(
                f"{shown_path(target)} is not written: it has files, and is no export of ours",
                remedy="name a folder that is not there yet, or an earlier export",
            ) from None
        except FormDamaged as error:
            raise TargetRefused(
                f"{shown_path(target)} is not written: {error.message}",
                remedy="name another folder",
            ) from error
        pages = manifest["pages"]
        hashes = {
            path: frozenset(str(entry.get(key)) for key in ("hash", "was"))
            for path, entry in pages.items()
        }
        edited: dict[str, Content] = {}
        with disk.folder_at(target) as root:
            for path, digests in hashes.items():
                data = _page_there(root, path)
                if data is not None and content_hash(data).hex() not in digests:
                    text = data.decode("utf-8", "surrogateescape")
                    edited[path] = content_of(text, pages[path], self.style, self.read_head)
        return hashes, edited

    def _refuse_edited(self, target: str, plan: PagePlan) -> None:
        """Overwrite no edit that the store does not know."""
        for path in plan.edited:
            raise TargetRefused(
                f"{shown_path(os.path.join(target, path))} was edited since it was exported",
                remedy=f"'filestore import {self.name} {shown_path(target)} --replace' takes the"
                " edit; or delete the page, or name another folder",
            )

    def _write_manifest(self, target: str, fields: Mapping[str, Any]) -> int:
        """Say what is in the folder; how many bytes that takes."""
        data = orjson.dumps(
            {"format": f"filestore-{self.name}/{VERSION}", **fields},
            option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
        )
        disk.write_path(os.path.join(target, MANIFEST), data)
        return len(data)

    def _names_there(
        self, target: str, before: Mapping[str, frozenset[str]]
    ) -> dict[str, list[str]]:
        """What is in the folder and no page of an earlier export: names by folder."""
        found: dict[str, list[str]] = {}
        ours = {
            path.rsplit("/", count)[0] for path in before for count in range(1, path.count("/") + 1)
        }
        for folder, folders, names in os.walk(target):
            below = os.path.relpath(folder, target).replace(os.sep, "/").removeprefix(".")
            folders[:] = [one for one in folders if not one.startswith(".")]
            prefix = f"{below}/" if below else ""
            inner = [one for one in folders if f"{prefix}{one}" not in ours]
            found[below] = [*inner, *(one for one in names if f"{prefix}{one}" not in before)]
        return found

    def _write_all(
        self,
        collection: Collection,
        plan: PagePlan,
        counted: Counted,
        file: IO[bytes],
        foreign: Mapping[str, list[str]],
    ) -> None:
        """The rows of all chunks, and their pages under temporary names."""
        for folder, names in foreign.items():
            for name in names:
                self._names_in(plan, folder).take(name, "")
        top = self._names_in(plan, "")
        for name in (MANIFEST, CHUNKS, *([self.index] if self.index else [])):
            top.take(name, "")
        listed: list[Placed] = []
        for resource in collection:
            placed = self._placed(resource, plan)
            listed += placed
            places = iter(self._write_pages(resource, placed, plan))
            for row in rows_of(Collection(resources=[resource]), counted):
                if "text" in row:
                    row["page"], row["number"] = next(places)
                    text = row.pop("text")
                    row["hash"] = text_hash(text)
                    if not text.endswith("\n"):
                        row["open"] = True
                if "vector" in row:
                    row["vector"] = encoded(row["vector"])
                if "question_vectors" in row:
                    row["question_vectors"] = [
                        None if one is None else encoded(one) for one in row["question_vectors"]
                    ]
                file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        if self.index:
            put(plan, self.index, self.index_page(listed), {})
            plan.edited.pop(self.index, None)  # it is made of the other pages alone
        stage(plan)

    def index_page(self, listed: list[Placed]) -> str:
        """The page that lists the others."""
        raise NotImplementedError

    def _names_in(self, plan: PagePlan, folder: str) -> FileNames:
        if folder not in plan.names:
            plan.names[folder] = (
                FileNames() if self.unsafe is None else FileNames(unsafe=self.unsafe)
            )
        return plan.names[folder]

    def _placed(self, resource: Resource, plan: PagePlan) -> list[Placed]:
        """The pages of a resource, each at a path that no other has.

        A page lies where its document lay, so that links between documents lead to pages.
        """
        found: list[Placed] = []
        for page in pages_of(resource):
            if page.is_summaries:
                # Beside the outermost of the pages.
                around = os.path.commonpath([os.path.dirname(one.path) for one in found] or [""])
                folders = [part for part in around.split("/") if part]
                parts = [page.title]
            else:
                parts = [
                    part
                    for part in (page.source or page.key or resource.name).split("/")
                    if part not in ("", ".", "..")
                ] or [resource.name or "page"]
                folders = self._folders(parts[:-1], plan)
            name = parts[-1]
            stem = name[:-3] if name.lower().endswith(".md") else name
            folder = "/".join(folders)
            path = "/".join([*folders, self._names_in(plan, folder).take(stem, ".md")])
            found.append(Placed(page=page, path=path, resource=resource))
        return found

    def _folders(self, parts: list[str], plan: PagePlan) -> list[str]:
        """Folders by what the documents called them."""
        found: list[str] = []
        for part in parts[:8]:
            around = "/".join(found)
            found.append(self._names_in(plan, around).folder(part))
        return found

    def _write_pages(
        self, resource: Resource, placed: list[Placed], plan: PagePlan
    ) -> list[tuple[str, int]]:
        """Write the pages of a resource; on which page each of its chunks stands, and where."""
        where = [("", 0)] * len(resource.chunks)
        paths: dict[str, str] = {}
        for one in placed:
            for number, place in enumerate(one.page.chunks, start=1):
                where[place] = one.path, number
                paths[resource.chunks[place].path] = one.path
        summaries = next((one.path for one in placed if one.page.is_summaries), "")
        for one in placed:
            self._write_page(one, "" if one.page.is_summaries else summaries, paths, plan)
        return where

    def _write_page(
        self, placed: Placed, summaries: str, paths: Mapping[str, str], plan: PagePlan
    ) -> None:
        page, chunks = placed.page, placed.resource.chunks
        around = (
            [self.around(placed, place, paths) for place in page.chunks]
            if page.is_summaries
            else None
        )
        head = self.head(placed, summaries)
        texts = [chunks[place].text for place in page.chunks]
        entry: dict[str, Any] = {"count": len(texts), "resource": placed.resource.name}
        if page.source:
            entry["source"] = page.source
        if page.language:
            entry["fence"] = fence_of(texts, page.language)
            texts = [fenced(text, entry["fence"]) for text in texts]
        text, entry["mark"] = render(self.style, head, texts, around)
        values, above = self.read_head(head)
        if values:
            entry["properties"] = values
        if around:
            # What stands before the first mark, and behind each.
            above += around[0][0]
            others = split(text, self.style, entry["mark"], len(texts)).others
            entry["others"] = text_hash("".join(others))
        if above:
            entry["above"] = above
        said = plan.edited.get(placed.path)
        now = content_of(text, entry, self.style, self.read_head) if said is not None else None
        if said is not None and now is not None and said.is_same(now):
            del plan.edited[placed.path]
        put(plan, placed.path, text, entry)

    # Reading

    def read(self, source: str) -> Collection:
        """See `Form.read`."""
        if not os.path.isdir(source):
            if os.path.lexists(source):
                raise FormDamaged(f"{shown_path(source)} is no folder", remedy="name a folder")
            raise FileNotFoundError(source)
        try:
            manifest = self._manifest(source)
        except FileNotFoundError as error:
            raise FormDamaged(
                f"{shown_path(source)} has no {MANIFEST}, so no store wrote it",
                remedy=f"take in what others wrote with 'filestore add {shown_path(source)}'",
            ) from error
        model, dimension = manifest.get("model"), manifest.get("dimension")
        if not (isinstance(model, str) and model and type(dimension) is int):
            model, dimension = "", 0
        if not 0 <= dimension <= LARGEST_DIMENSION:
            raise FormDamaged(
                f"{shown_path(source)}: a dimension of {dimension:,}", remedy="export it again"
            )
        left_out = LeftOut()
        reading = PageReading(
            source=source,
            pages=manifest["pages"],
            style=self.style,
            read_head=self.read_head,
            left_out=left_out,
        )
        reader = RowReader(name="", ours=True, dimension=dimension, left_out=left_out)
        size = manifest.get("chunks_bytes")
        return Collection(
            resources=reading.resources(os.path.join(source, CHUNKS), size, reader),
            model=model,
            dimension=dimension,
            left_out=left_out,
        )

    def _manifest(self, folder: str) -> dict[str, Any]:
        """What an export says of itself.

        Raises:
            FormDamaged: It is of another form or version, or none at all.
            FileNotFoundError: There is none.
        """
        try:
            data = disk.read_path(os.path.join(folder, MANIFEST), limit=_MOST_MANIFEST)
            found = orjson.loads(data)
        except (disk.NotAFileError, disk.FileTooLargeError, orjson.JSONDecodeError) as error:
            raise FormDamaged(
                f"{MANIFEST} cannot be read: {error}", remedy="export it again"
            ) from error
        stamp = found.get("format") if isinstance(found, dict) else None
        if stamp != f"filestore-{self.name}/{VERSION}":
            raise FormDamaged(
                f"{MANIFEST} says format {str(stamp)!r:.60}, expected"
                f" 'filestore-{self.name}/{VERSION}'",
                remedy=f"name the form it was exported in, or {UPGRADE}",
            )
        pages = found.get("pages")
        if not isinstance(pages, dict) or not all(
            isinstance(entry, dict) and has_plain_names(path) for path, entry in pages.items()
        ):
            raise FormDamaged(f"{MANIFEST} lists no pages as they can be", remedy="export it again")
        return dict(found)


def _page_there(root: int, path: str) -> bytes | None:
    """What is at the path of a page; None where nothing is."""
    try:
        return disk.read_below(root, path)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        disk.pass_limits(error)
        return b"\0"  # a link or a folder: what nobody exported
