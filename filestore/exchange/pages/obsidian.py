"""A vault for Obsidian: a note a document, what it says of itself as properties, wikilinks."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from filestore.chunks import frontmatter
from filestore.core.errors import FilestoreError
from filestore.exchange.pages.folder import PageFolder, Placed
from filestore.exchange.pages.page import Style, metadata_of

_MADE: Final = ("source", "up")
"""Properties that are made, and not taken back."""


class Obsidian(PageFolder):
    """The form `obsidian`."""

    name: ClassVar[str] = "obsidian"
    style: ClassVar[Style] = Style(before="%% ", after=" %%")
    unsafe: ClassVar[re.Pattern[str]] = re.compile(
        r'[\x00-\x1f\x7f-\x9f<>:"|?*\\/\[\]#^\u200b-\u200f\u2028-\u202e\ufeff]+'
    )
    """Also what a wikilink cannot name."""

    def head(self, placed: Placed, summaries: str) -> str:
        """The properties of a note; see `PageFolder.head`."""
        page = placed.page
        own = dict(metadata_of(placed.resource.record, page.source))
        known = {key.casefold() for key in own}
        above = {key: value for key, value in own.items() if key.casefold() == "title"}
        above = above or {"title": page.title}
        below: dict[str, Any] = {}
        stem = placed.path.rpartition("/")[2][:-3]
        if page.title.casefold() != stem.casefold() and known.isdisjoint(("alias", "aliases")):
            below["aliases"] = [page.title]
        if page.source and "source" not in known:
            below["source"] = page.source
        if summaries and "up" not in known:
            below["up"] = f"[[{summaries[:-3]}]]"
        return _properties(above | own | below)

    def around(self, placed: Placed, place: int, pages: Mapping[str, str]) -> tuple[str, str]:
        """The title of a summary, and wikilinks to its notes; see `PageFolder.around`."""
        title = placed.heading(place).replace("%%", "% %")
        links = [f"[[{page[:-3]}]]" for page in placed.children(place, pages)]
        before = f"## {title}\n\n" if title else ""
        return before, f"\nMade from: {', '.join(links)}\n\n" if links else "\n"

    def read_head(self, head: str) -> tuple[dict[str, Any] | None, str]:
        """The properties of a note, and what stands below them; see `PageFolder.read_head`."""
        try:
            values, rest = frontmatter.parse(head.encode("utf-8", "surrogatepass"))
        except FilestoreError:
            return None, ""
        found = {key: value for key, value in values.items() if key not in _MADE}
        return found, rest.decode("utf-8", "surrogatepass")


def _properties(wanted: Mapping[str, Any]) -> str:
    """A block of properties, without what it cannot hold."""
    values: dict[str, Any] = {}
    block = b""
    for key, value in wanted.items():
        try:
            block = frontmatter.serialize(values | {key: value}, b"")
        except ValueError:
            continue
        values[key] = value
    return block.decode()
