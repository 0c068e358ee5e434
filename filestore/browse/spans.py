"""Places in a file, as every door prints and takes them, and the part of its text that one names.

``PATH:10`` is the passage that holds line 10, ``PATH:10-40`` and ``PATH:10-`` are lines,
``PATH:p2`` and ``PATH:p2-4`` pages, ``PATH#Heading`` is a section with all below it. What was cut
within a line goes on as ``PATH:10+900-``, behind 900 characters of line 10. Pure. One rule: a file
whose whole name is typed is that file, whatever the name looks like.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.errors import FilestoreError, UsageError
from filestore.core.safe_text import safe_text
from filestore.core.schema import JsonObject

_NUMBER: Final = "([0-9]{1,40})"
_PLACE: Final = re.compile(
    rf":(?:{_NUMBER}(?:\+{_NUMBER})?(-{_NUMBER}?)?|p{_NUMBER}(?:-p?{_NUMBER})?)(?=:|\s|\Z)"
)
_FORMS: Final = "10-40 and 10- are lines, 10 the passage with that line, p2 and p2-4 pages"
_MOST_SIGNS: Final = 10
"""Signs `#` of one text behind which a heading is looked for."""


class NoLineError(FilestoreError, LookupError):
    """A file has no such line, page or heading, or nothing that it belongs to."""


class Range(Struct, frozen=True, kw_only=True):
    """What of a file is named."""

    unit: Literal["passage", "lines", "pages", "section"]
    first: int = 1
    """Line or page, from 1."""
    last: int | None = None
    """Included; None for the end."""
    skip: int = 0
    """Characters of the first line that are left out."""
    heading: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """What is behind the colon of a place, or ``#Heading``.

        Raises:
            UsageError: It is no place.
        """
        if text.startswith("#") and text[1:].strip():
            return cls(unit="section", heading=text[1:])
        match = _PLACE.fullmatch(f":{text.strip()}")
        if match is None:
            raise UsageError(f"lines: found {text[:80]!r}", remedy=_FORMS)
        return cls._of(match)

    @classmethod
    def _of(cls, match: re.Match[str]) -> Self:
        line, skip, to, end, page, last_page = match.groups()
        if page is not None:
            return cls(unit="pages", first=int(page), last=int(last_page or page))
        last = int(end) if end else None
        unit: Literal["passage", "lines"] = "passage" if to is None and not skip else "lines"
        return cls(unit=unit, first=int(line), last=last, skip=int(skip or 0))

    def __str__(self) -> str:
        """As it is behind a path."""
        if self.unit == "section":
            return f"#{self.heading}"
        if self.unit == "pages":
            return f":p{self.first}" if self.last == self.first else f":p{self.first}-{self.last}"
        last = "" if self.last is None else self.last
        to = "" if self.unit == "passage" else f"-{last}"
        return f":{self.first}{f'+{self.skip}' if self.skip else ''}{to}"

    def checked(self) -> Self:
        """The same.

        Raises:
            UsageError: It begins with 0, or ends before it begins.
        """
        what = "pages" if self.unit == "pages" else "lines"
        if self.first < 1:
            raise UsageError(f"{what} are counted from 1, found 0", remedy=_FORMS)
        if self.last is not None and self.last < self.first:
            turned = str(replace(self, first=self.last, last=self.first))[1:]
            raise UsageError(
                f"{what} {self.first}-{self.last} end before they begin", remedy=f"{turned}"
            )
        return self


def readings(text: str, *, of_output: bool = False) -> Iterator[tuple[str, Range | None]]:
    """The files, and the parts of them, that a text may name, best first.

    Args:
        text: As it was typed.
        of_output: Whether more may be behind the place, as in a line that search prints.
    """
    yield text, None
    for match in _PLACE.finditer(text):
        if of_output or match.end() == len(text):
            yield text[: match.start()], Range._of(match)
    signs = [at for at, sign in enumerate(text) if sign == "#" and 0 < at < len(text) - 1]
    for at in signs[:_MOST_SIGNS]:
        yield text[:at], Range(unit="section", heading=text[at + 1 :])


class Rest(JsonObject, Struct, frozen=True, kw_only=True):
    """What is not shown of a file."""

    before: int
    """Lines above what is shown."""
    after: int
    """Lines below it; one that is shown in part counts."""
    next: str | None
    """Names what follows, to be shown next; None where nothing does."""


Given = tuple[tuple[int, int], tuple[int, int] | None, Rest | None]
"""Start and end of what is given of a text, its first and last line, and what is left."""


class FileText(Struct, frozen=True, kw_only=True):
    """The text of a file, of which parts are named."""

    text: str
    """In which lines are counted."""
    start: int = 0
    """Of the body, behind the frontmatter."""
    pages: Sequence[tuple[int, int]] = ()
    """Start and number of each page."""
    passages: Sequence[tuple[int, int]] = ()
    """Start and end of each; none where it is one passage as a whole."""
    name: str = "it"
    """Of the file, as places name it."""

    @property
    def body(self) -> str:
        """Without the frontmatter."""
        return self.text[self.start :]

    def line_at(self, place: int) -> int:
        """The line, from 1, of a place."""
        return self.text.count("\n", 0, place) + 1

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return self.text.count("\n") + (not self.text.endswith("\n") and bool(self.text))

    def span(self, wanted: Range | None) -> tuple[int, int]:
        """Start and end of what is named; of None the body.

        Raises:
            UsageError: It is no range.
            NoLineError: There is no such line, page or section.
        """
        if wanted is None:
            return self.start, len(self.text)
        wanted.checked()
        if wanted.unit == "section":
            return self._section(wanted.heading)
        if wanted.unit == "pages":
            return self._pages(wanted)
        starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        count = self.line_count
        if wanted.first > count:
            which = "the indexed file" if wanted.unit == "passage" else self.name
            raise NoLineError(
                f"there is no line {wanted.first:,}: {which} has {count:,}; leave it out"
            )
        start = starts[wanted.first - 1]
        if wanted.unit == "passage":
            return self._passage(start)
        last = count if wanted.last is None else min(wanted.last, count)
        end = starts[last] if last < len(starts) else len(self.text)
        return min(start + wanted.skip, end), end

    def _passage(self, place: int) -> tuple[int, int]:
        """The passage that holds a place, or the last one above it; all where there are none."""
        begun = [one for one in self.passages if one[0] <= max(place, self.passages[0][0])]
        return begun[-1] if begun else (self.start, len(self.text))

    def _pages(self, wanted: Range) -> tuple[int, int]:
        if not self.pages:
            raise NoLineError(
                f"{self.name} has no pages: name lines of it: PATH:10-40, or all: PATH"
            )
        last = wanted.first if wanted.last is None else wanted.last
        ends = [start for start, _ in self.pages[1:]] + [len(self.text)]
        inside = [
            (start, end)
            for (start, number), end in zip(self.pages, ends, strict=True)
            if wanted.first <= number <= last
        ]
        if not inside:
            raise NoLineError(
                f"there is no page {wanted.first:,} with text: {self.name} has"
                f" {self.pages[0][1]:,} to {self.pages[-1][1]:,}"
                f"; a page of these, such as p{self.pages[0][1]}",
            )
        return inside[0][0], inside[-1][1]

    def _section(self, heading: str) -> tuple[int, int]:
        from filestore.chunking.blocks import section_named

        found = section_named(self.body, heading)
        if found is None:
            raise NoLineError(
                f"{self.name} has no heading {heading[:80]!r}"
                ": name the file alone to see its headings",
            )
        return self.start + found[0], self.start + found[1]

    def shown(self, wanted: Range | None, most: int | None) -> Given:
        """What is given of what is named.

        Args:
            wanted: What is named; None for the body.
            most: Characters, at most; None for all.

        Raises:
            UsageError, NoLineError: As of `span`.
        """
        start, end = self.span(wanted)
        at = end if most is None else self._cut(start, end, most)
        if at <= start:
            return (start, at), None, None
        lines = self.line_at(start), self.line_at(at - 1)
        rest = self.text[at:].strip()
        following = self._following(wanted, end, at) if rest else None
        before = max(0, lines[0] - self.line_at(self.start))
        after = self.line_count - lines[1] + (rest != "" and self.text[at - 1] != "\n")
        left = Rest(
            before=before,
            after=after if rest else 0,
            next=None if following is None else f"{self.name}{following}",
        )
        return (start, at), lines, left if before or rest else None

    def _cut(self, start: int, end: int, most: int) -> int:
        """Where to end a part that is given at once, so that an agent reads at most N characters.

        At the end of a page or a line; within a line only where not even one fits.
        """
        used, at = 0, start
        while at < end:
            after = self.text.find("\n", at, end) + 1 or end
            # A sign that is escaped takes several, and a mark of a quoted line two.
            used += len(safe_text(self.text[at : min(after, at + most)])) + 3
            if used > most or after - at > most:
                break
            at = after
        if at == start < end:
            return self._within_line(start, end, most)
        pages = [one for one, _ in self.pages if start < one <= at < end]
        return pages[-1] if pages else at

    def _within_line(self, start: int, end: int, most: int) -> int:
        last = min(end, start + max(1, most - 3))
        while last - start > 1 and len(safe_text(self.text[start:last])) > most:
            last = start + (last - start) // 2
        blank = self.text.rfind(" ", start + 1, last)
        return blank + 1 if blank > start + (last - start) // 2 else last

    def _following(self, wanted: Range | None, end: int, shown: int) -> Range:
        """What is to be named next.

        Args:
            wanted: What was named.
            end: Of that.
            shown: The end of what was given of it.
        """
        is_cut = shown < end
        page = next((number for start, number in self.pages if start == shown), None)
        if page is not None and (wanted is None or wanted.unit == "pages"):
            last = wanted.last if wanted is not None and is_cut else page
            return Range(unit="pages", first=page, last=last or page)
        line = self.line_at(shown)
        begun = self.text.rfind("\n", 0, shown) + 1
        last = self.line_at(end - 1) if is_cut and wanted is not None else None
        return Range(unit="lines", first=line, last=last, skip=shown - begun)
