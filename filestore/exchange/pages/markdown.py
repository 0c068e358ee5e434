"""A static folder of Markdown: a page a document, an index, links that any git host follows."""

import os
import re
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote

from filestore.exchange.pages.folder import PageFolder, Placed
from filestore.exchange.pages.page import Style


class Markdown(PageFolder):
    """The form `markdown`."""

    name: ClassVar[str] = "markdown"
    style: ClassVar[Style] = Style(before="<!-- ", after=" -->")
    index: ClassVar[str] = "index.md"

    def head(self, placed: Placed, summaries: str) -> str:
        """A title, where the text begins without one; see `PageFolder.head`."""
        chunks = placed.page.chunks
        first = placed.resource.chunks[chunks[0]].text if chunks else ""
        lines = []
        if placed.page.is_summaries or not re.match(r"\s{0,3}#", first):
            lines.append(f"# {_escaped(placed.page.title)}\n")
        if summaries:
            lines.append(f"[Summaries]({_link(placed.path, summaries)})\n")
        return "".join(f"{line}\n" for line in lines)

    def around(self, placed: Placed, place: int, pages: Mapping[str, str]) -> tuple[str, str]:
        """The title of a summary, and links to what it was made from; see `PageFolder.around`."""
        title = placed.heading(place)
        before = f"## {_escaped(title)}\n\n" if title else ""
        links = [
            f"[{_escaped(os.path.basename(page)[:-3])}]({_link(placed.path, page)})"
            for page in placed.children(place, pages)
        ]
        return before, f"\nMade from: {', '.join(links)}\n\n" if links else "\n"

    def index_page(self, listed: list[Placed]) -> str:
        """All pages by resource; see `PageFolder.index_page`."""
        lines, name = ["# Contents\n"], None
        for placed in listed:
            if placed.resource.name != name:
                name = placed.resource.name
                lines.append(f"\n## {_escaped(name) if name else 'Other'}\n\n")
            link = _link(self.index, placed.path)
            lines.append(f"- [{_escaped(placed.page.title)}]({link})\n")
        return "".join(lines)


def _link(page: str, goal: str) -> str:
    """The relative link from one page to another."""
    return quote(os.path.relpath(goal, os.path.dirname(page)), errors="replace")


def _escaped(text: str) -> str:
    """A text on one line that Markdown shows as it is."""
    return re.sub(r"([\\\[\]*_`<>#|])", r"\\\1", " ".join(text.split()))
