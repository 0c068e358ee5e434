"""A folder of pages, read: the rows of its chunks with the texts that the pages have now.

One rule: the folder may be a stranger's, and a person's edit wins over what was recorded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from msgspec import Struct, field

from filestore.core.safe_text import shown_path
from filestore.exchange import json_lines
from filestore.exchange.base import FormDamaged, LeftOut, Resource
from filestore.exchange.pages.page import Content, Style, as_stored, content_of, text_hash
from filestore.exchange.rows import RowReader
from filestore.fs import disk


class PageReading(Struct, kw_only=True):
    """One export on its way in."""

    source: str
    """The folder."""
    pages: Mapping[str, Mapping[str, Any]]
    """What the manifest says of each, by its path."""
    style: Style
    read_head: Callable[[str], tuple[dict[str, Any] | None, str]]
    left_out: LeftOut
    _held: dict[str, Content | None] = field(default_factory=dict)
    """The pages of the resource that is being read."""
    _paths: dict[str, list[str]] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def resources(self, path: str, size: Any, reader: RowReader) -> Iterator[Resource]:
        """The resources, in parts.

        Args:
            path: The file of chunks.
            size: How many bytes it has to have.
            reader: Of its rows.

        Raises:
            FormDamaged: The file of chunks is not the one that belongs to the pages.
        """
        try:
            descriptor = disk.open_regular(path)
        except (FileNotFoundError, disk.NotAFileError) as error:
            raise FormDamaged(f"{shown_path(path)} is missing", remedy="export it again") from error
        with open(descriptor, "rb", buffering=1024 * 1024) as file:
            if os.fstat(descriptor).st_size != size:
                raise FormDamaged(
                    f"{shown_path(path)} is not as it was written: expected {size!r:.20} bytes",
                    remedy="export it again",
                )
            yield from reader.resources(self._rows(file, os.path.basename(path)))
        self._name_others()

    def _rows(self, file: IO[bytes], name: str) -> Iterator[tuple[str, Any]]:
        resource = None
        for where, _, _, row in json_lines.rows(file, self.left_out, name):
            if not isinstance(row, dict):
                self.left_out.add(f"{where}: expected an object")
                continue
            if row.get("resource") != resource:
                resource = row.get("resource")
                self._held.clear()
            if "record" in row:
                self._take_heads(row)
                yield where, row
            elif self._take_text(where, row):
                yield where, row

    def _take_text(self, where: str, row: dict[str, Any]) -> bool:
        """Give a row the text that its page has now."""
        page, number, digest = (row.pop(key, None) for key in ("page", "number", "hash"))
        is_open = row.pop("open", None) is True
        if not isinstance(page, str) or page not in self.pages:
            self.left_out.add(f"{where}: it names no page of this export")
            return False
        found = self._page(page)
        if found is None:
            return False
        text = found.texts.get(number) if type(number) is int else None
        if text is None:
            self.left_out.add(f"{shown_path(page)}: chunk {number!s:.10} was removed from it")
            return False
        row["text"], is_same = as_stored(text, str(digest))
        if not is_same:
            row["text"] = text.removesuffix("\n") if is_open else text
            row.pop("vector", None)  # of another text
        return True

    def _page(self, path: str) -> Content | None:
        """A page as it is now; None where it cannot be read, which is named once."""
        if path in self._held:
            return self._held[path]
        entry, found = self.pages[path], None
        try:
            with disk.folder_at(self.source) as root:
                data, _ = disk.read_below(root, path)
            page = data.decode("utf-8", "surrogatepass")
            found = content_of(page, entry, self.style, self.read_head)
        except FileNotFoundError:
            self._name(path, "it was removed, and its chunks are not taken")
        except UnicodeDecodeError as error:
            self._name(path, f"not UTF-8 at byte {error.start + 1:,}")
        except OSError as error:
            disk.pass_limits(error)
            self._name(path, error.strerror or str(error))
        else:
            if found.properties is None:
                self._name(path, "its properties cannot be read, and are taken as they were")
            if "others" in entry and text_hash(found.others) != entry["others"]:
                self._name(path, "what was changed below its summaries is not taken")
        self._held[path] = found
        return found

    def _name(self, path: str, reason: str) -> None:
        if path not in self._seen:
            self._seen.add(path)
            self.left_out.add(f"{shown_path(path)}: {reason}")

    def _take_heads(self, row: dict[str, Any]) -> None:
        """Give a record what a person wrote as the properties of its documents."""
        record = row["record"]
        documents = record.get("documents") if isinstance(record, dict) else None
        by_source = {
            one.get("source"): one
            for one in (documents if isinstance(documents, list) else ())
            if isinstance(one, dict) and isinstance(one.get("source"), str)
        }
        for path in self._by_resource().get(str(row.get("resource")), ()):
            entry = self.pages[path]
            written, source = entry.get("properties"), entry.get("source")
            page = self._page(path)
            if page is None or not isinstance(written, dict):
                continue
            now, document = page.properties, by_source.get(source)
            if now is None or now == written:
                continue
            if document is None:
                self._name(path, "its properties are not taken: no record says them")
                continue
            document["metadata"] = _merged(document.get("metadata"), written, now)

    def _by_resource(self) -> dict[str, list[str]]:
        """The paths of pages by resource, found out once."""
        if not self._paths:
            for path, entry in self.pages.items():
                self._paths.setdefault(str(entry.get("resource")), []).append(path)
        return self._paths

    def _name_others(self) -> None:
        """Say which pages are there that the export did not write."""
        for folder, folders, names in os.walk(self.source):
            folders[:] = sorted(one for one in folders if not one.startswith("."))
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), self.source).replace(os.sep, "/")
                if name.lower().endswith(".md") and path not in self.pages:
                    self.left_out.add(
                        f"{shown_path(path)}: it is no page of this export; 'filestore add' takes"
                        " it"
                    )


def _merged(metadata: Any, written: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What a document says about itself, with what was changed on its page."""
    found = dict(metadata) if isinstance(metadata, Mapping) else {}
    for key in written.keys() - now.keys():
        found.pop(key, None)
    return found | {key: value for key, value in now.items() if written.get(key, ...) != value}
