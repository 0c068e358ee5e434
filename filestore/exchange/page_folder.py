"""A folder with a page of Markdown a document, and two files beside the pages for the rest.

`filestore-export.json` says what was written, `filestore-chunks.jsonl` what no page shows: paths,
metadata, records, vectors. FORMAT.md has their keys. One rule: what a person wrote wins and stays;
a file that an export did not write is neither replaced nor removed, nor one that was edited since.
"""

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any, ClassVar, Final

import orjson

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
from filestore.exchange.page_reading import PageReading
from filestore.exchange.pages import (
    Page,
    Style,
    fence_of,
    fenced,
    pages_of,
    render,
    split,
    text_hash,
)
from filestore.exchange.rows import LARGEST_DIMENSION, Counted, RowReader, encoded, rows_of
from filestore.fs import disk
from filestore.fs.staged_file import staged
from filestore.fs.transaction import collect_staged, content, stage_all

MANIFEST: Final = "filestore-export.json"
CHUNKS: Final = "filestore-chunks.jsonl"
VERSION: Final = 1
_MOST_MANIFEST: Final = 256 * 1024 * 1024
_AT_ONCE: Final = 256
_BYTES_AT_ONCE: Final = 32 * 1024 * 1024
"""Pages are written together, because a disk syncs several in the time of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
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


@dataclass(slots=True)
class _Plan:
    """What an export has written, and where it may write."""

    root: int
    names: dict[str, FileNames] = field(default_factory=dict)
    staged: dict[str, str] = field(default_factory=dict)
    """Pages to the temporary names they have until all is there."""
    pending: dict[str, bytes] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    """Folders, outermost first."""
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of the pages, as the manifest has them."""
    size_bytes: int = 0


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
        before = self._check_target(target)
        counted = Counted()
        with disk.disk_errors(target):
            disk.make_folders(target)
        with disk.disk_errors(target), disk.folder_at(target) as root:
            plan = _Plan(root)
            foreign = self._names_there(target, before)
            try:
                with (
                    staged(os.path.join(target, CHUNKS)) as descriptor,
                    open(descriptor, "wb", buffering=1024 * 1024, closefd=False) as file,
                ):
                    self._write_all(collection, plan, counted, file, foreign)
                    file.flush()
                    size = os.fstat(descriptor).st_size
                    # What a killed export leaves is known by this, and written over.
                    self._write_manifest(target, {"pages": _either(plan.entries, before)})
                    _install(plan, before)
            except BaseException:
                _take_back(plan)
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

    def _check_target(self, target: str) -> dict[str, frozenset[str]]:
        """The pages of an earlier export to the hashes they may have; empty where there is none.

        Raises:
            TargetRefused: What is there is no such export, or was edited since.
        """
        if not os.path.lexists(target):
            return {}
        if not os.path.isdir(target):
            raise TargetRefused(
                f"{shown_path(target)} is not overwritten: it is no folder",
                remedy="name a folder that is not there yet, or an earlier export",
            )
        try:
            manifest = self._manifest(target)
        except FileNotFoundError:
            if all(name.startswith(".") for name in os.listdir(target)):
                return {}
            raise TargetRefused(
                f"{shown_path(target)} is not written: it has files, and is no export of ours",
                remedy="name a folder that is not there yet, or an earlier export",
            ) from None
        except FormDamaged as error:
            raise TargetRefused(
                f"{shown_path(target)} is not written: {error.message}",
                remedy="name another folder",
            ) from error
        pages = {
            path: frozenset(str(entry.get(key)) for key in ("hash", "was"))
            for path, entry in manifest["pages"].items()
        }
        with disk.folder_at(target) as root:
            for path, digests in pages.items():
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    if content_hash(disk.read_below(root, path)[0]).hex() not in digests:
                        raise TargetRefused(
                            f"{shown_path(os.path.join(target, path))} was edited since it was"
                            " exported",
                            remedy=f"'filestore import {self.name}' takes the edit; or name another"
                            " folder",
                        )
        return pages

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
        plan: _Plan,
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
            self._put(plan, self.index, self.index_page(listed), {})
        _stage(plan)

    def index_page(self, listed: list[Placed]) -> str:
        """The page that lists the others."""
        raise NotImplementedError

    def _names_in(self, plan: _Plan, folder: str) -> FileNames:
        if folder not in plan.names:
            plan.names[folder] = (
                FileNames() if self.unsafe is None else FileNames(unsafe=self.unsafe)
            )
        return plan.names[folder]

    def _placed(self, resource: Resource, plan: _Plan) -> list[Placed]:
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

    def _folders(self, parts: list[str], plan: _Plan) -> list[str]:
        """Folders by what the documents called them."""
        found: list[str] = []
        for part in parts[:8]:
            around = "/".join(found)
            found.append(self._names_in(plan, around).folder(part))
        return found

    def _write_pages(
        self, resource: Resource, placed: list[Placed], plan: _Plan
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
        self, placed: Placed, summaries: str, paths: Mapping[str, str], plan: _Plan
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
        self._put(plan, placed.path, text, entry)

    def _put(self, plan: _Plan, path: str, text: str, entry: dict[str, Any]) -> None:
        data = text.encode("utf-8", "surrogatepass")
        plan.size_bytes += len(data)
        plan.entries[path] = {"hash": content_hash(data).hex()} | entry
        plan.pending[path] = data
        total = sum(map(len, plan.pending.values())) if len(plan.pending) % 16 == 0 else 0
        if len(plan.pending) >= _AT_ONCE or total >= _BYTES_AT_ONCE:
            _stage(plan)

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


def _either(
    entries: Mapping[str, Mapping[str, Any]], before: Mapping[str, frozenset[str]]
) -> dict[str, dict[str, str]]:
    """The pages while they are being replaced: what each was, and what it is to be."""
    found: dict[str, dict[str, str]] = {}
    for path in [*entries, *(before.keys() - entries.keys())]:
        new = {"hash": str(entries[path]["hash"])} if path in entries else {}
        was = [one for one in sorted(before.get(path, ())) if one != "None"]
        found[path] = new | ({"was": was[-1]} if was else {})
    return found


def _stage(plan: _Plan) -> None:
    """Write what is pending under temporary names, and sync it."""
    for folder in sorted({path.rpartition("/")[0] for path in plan.pending}):
        _make(plan, folder)
    plan.staged |= stage_all(
        plan.root, {path: content(data) for path, data in plan.pending.items()}
    )
    plan.pending.clear()


def _make(plan: _Plan, folder: str) -> None:
    parts = folder.split("/") if folder else []
    for count in range(1, len(parts) + 1):
        with (
            contextlib.suppress(FileExistsError),
            disk.folder(plan.root, "/".join(parts[: count - 1])) as handle,
        ):
            os.mkdir(parts[count - 1], dir_fd=handle)
            plan.made.append("/".join(parts[:count]))


def _install(plan: _Plan, before: Mapping[str, frozenset[str]]) -> None:
    """Give the pages their names, and remove those of the earlier export that are none now."""
    for path, temporary in list(plan.staged.items()):
        folder, _, name = path.rpartition("/")
        with disk.folder(plan.root, folder) as handle:
            os.rename(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
        del plan.staged[path]
    for folder in {path.rpartition("/")[0] for path in plan.entries} - {""}:
        collect_staged(plan.root, folder)  # of a writer that was killed
    gone = before.keys() - plan.entries.keys()
    for path in gone:
        folder, _, name = path.rpartition("/")
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            disk.folder(plan.root, folder) as handle,
        ):
            os.unlink(name, dir_fd=handle)
    _remove_empty(plan.root, {path.rpartition("/")[0] for path in gone})
    disk.sync_folders(plan.root, {path.rpartition("/")[0] for path in plan.entries} | {""})


def _remove_empty(root: int, folders: set[str]) -> None:
    """Remove folders that nothing is in any more, and those around them."""
    for folder in sorted(folders, key=len, reverse=True):
        while folder:
            parent, _, name = folder.rpartition("/")
            try:
                with disk.folder(root, parent) as handle:
                    os.rmdir(name, dir_fd=handle)
            except OSError:
                break
            folder = parent


def _take_back(plan: _Plan) -> None:
    """Remove what has only its temporary name, and the folders that were made for it."""
    for path, temporary in plan.staged.items():
        with (
            contextlib.suppress(OSError),
            disk.folder(plan.root, path.rpartition("/")[0]) as handle,
        ):
            os.unlink(temporary, dir_fd=handle)
    _remove_empty(plan.root, set(plan.made))
