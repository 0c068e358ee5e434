"""On which lines of a file a stretch of its document's text stands. Pure.

One rule: a line is what an editor counts; of a text that is not the file's own, none is named.
"""

import re
from array import array
from bisect import bisect_left
from typing import Final, Self

from filestore.extract._text import decode
from filestore.extract.base import Document, ExtractionError, document_text

_BREAK: Final = re.compile(r"\r\n|\r|\n")


class Lines:
    """The line breaks of a file, as places in the text of its document."""

    def __init__(self, before: int, breaks: "array[int]") -> None:
        self._before = before
        self._breaks = breaks

    @classmethod
    def of(cls, document: Document, data: bytes, *, name: str) -> "Self | None":
        """The lines of a document whose text is the end of its file; None for any other.

        Args:
            document: As it was taken out of the file.
            data: The bytes of the file.
            name: Its name, for messages.
        """
        try:
            decoded, _ = decode(data, name=name)
            text = document_text(decoded, name=name)
        except ExtractionError:
            return None
        if not text.endswith(document.text):
            return None
        head = len(text) - len(document.text)
        # A lone CR ends a line only where no LF does: editors show it as a sign within one.
        counts_cr = "\n" not in decoded
        start = 1 if decoded.startswith("\ufeff") else 0
        before, breaks, shrunk = 0, array("q"), start
        for match in _BREAK.finditer(decoded):
            place = match.start() - shrunk - head
            shrunk += len(match[0]) - 1
            if match[0] == "\r" and not counts_cr:
                continue
            if place < 0:
                before += 1
            else:
                breaks.append(place)
        return cls(before, breaks)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The first and the last line of a slice of the document's text, from 1."""
        first = bisect_left(self._breaks, start)
        last = bisect_left(self._breaks, max(start, end - 1))
        return self._before + first + 1, self._before + last + 1
