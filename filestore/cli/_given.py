"""What a person names on the command line to be read: a file, or "-" for standard input."""

import re
import sys
from typing import TYPE_CHECKING, Annotated

from filestore.core.errors import FilestoreError, UsageError
from filestore.core.limits import LIMITED, OPTION, USUAL, Limits
from filestore.fs import disk
from filestore.search.metrics import parse_queries
from filestore.server.operations import CommonOptions, option

if TYPE_CHECKING:
    from filestore.search.metrics import Question

STDIN = "standard input"
_USUAL = " ".join(f"{name}={getattr(USUAL, name)}" for name in LIMITED)


class Limited(CommonOptions, frozen=True, kw_only=True):
    """What a command takes that reads what a stranger wrote."""

    limit: Annotated[
        list[str],
        option("KEY=N", many=True, one_of=[_USUAL]),
    ] = []
    """take more than"""

    @property
    def limits(self) -> Limits:
        """The limits, some of them others.

        Raises:
            UsageError: There is no such limit, or it is no number of things.
        """
        found: dict[str, int] = {}
        for word in self.limit:
            name, _, number = word.partition("=")
            if name not in LIMITED or not re.fullmatch(r"0*[1-9][0-9]{0,17}", number):
                raise UsageError(
                    f"{OPTION} {word!r}: expected a number after {'=, '.join(LIMITED)}=",
                    remedy=f"{OPTION} rows=1000000",
                )
            found[name] = int(number)
        return Limits(**found)


def read_questions(path: str, *, known: bool = True) -> "list[Question]":
    """The questions of a file; see `disk.open_given` for what is not waited for.

    Args:
        path: As it was named; "-" for standard input.
        known: Whether each must say what answers it.

    Raises:
        FilestoreError: It is no file, too large, cannot be read, or holds something else.
    """
    name = STDIN if path == "-" else path
    try:
        if path == "-":
            data = disk.read_given(sys.stdin.buffer, name)
        else:
            with open(disk.open_given(path), "rb") as file:
                data = disk.read_given(file, name)
    except FilestoreError:
        raise
    except OSError as error:
        raise FilestoreError(
            f"cannot read {path}: {error.strerror or error}",
            remedy="name a file of JSON lines, or - for standard input",
        ) from error
    return parse_queries(data, name=name, known=known)
