"""What a filter leaves of some names: words, no words, a regular expression. Pure."""

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Self

from msgspec import Struct

from filestore.config.layout import folded_path
from filestore.core.errors import UsageError


class Wanted(Struct, frozen=True, kw_only=True):
    """What the path of a file below its folder, its title or headings must, or must not, have."""

    text: str
    """Upper and lower case are the same; "" is in every path."""
    inverse: bool = False
    regex: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """What ``words``, ``!words``, ``~regular expression`` and ``!~…`` mean.

        Raises:
            UsageError: The regular expression is none.
        """
        rest = text.removeprefix("!")
        wanted = cls(text=rest.removeprefix("~"), inverse=rest != text, regex=rest.startswith("~"))
        wanted._search()
        return wanted

    def places(self, joined: str) -> Sequence[int]:
        """Which of some paths, separated by NUL, are wanted; counted from 0. Pure."""
        every = range(joined.count("\0") + 1)
        if not self.text:
            return every
        if self.regex:
            search = self._search()
            return [
                place
                for place, path in enumerate(joined.split("\0"))
                if (search(path) is None) == self.inverse
            ]
        needle, folded = folded_path(self.text), folded_path(joined)
        if needle not in folded:
            return every if self.inverse else ()
        return [
            place
            for place, path in enumerate(folded.split("\0"))
            if (needle in path) != self.inverse
        ]

    def _search(self) -> Callable[[str], re.Match[str] | None]:
        try:
            with warnings.catch_warnings():
                # What Python may read otherwise some day is no concern of who is still typing.
                warnings.simplefilter("ignore")
                return re.compile(self.text if self.regex else "", re.IGNORECASE).search
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(
                f"invalid regular expression: {self.text}: {error}",
                remedy="without the ~ it is looked for as it stands",
            ) from error
