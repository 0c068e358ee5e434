"""What a person names on the command line to be read: a file, or "-" for standard input."""

import sys
from typing import TYPE_CHECKING

from filestore.core.errors import FilestoreError
from filestore.fs import disk
from filestore.search.metrics import QueriesInvalid, parse_queries

if TYPE_CHECKING:
    from filestore.search.metrics import Question

STDIN = "standard input"


def read_given(path: str) -> bytes:
    """What is in it; see `disk.open_given` for what is not waited for.

    Raises:
        FilestoreError: It is no file, or too large.
        OSError: It cannot be read.
    """
    if path == "-":
        return disk.read_given(sys.stdin.buffer, STDIN)
    with open(disk.open_given(path), "rb") as file:
        return disk.read_given(file, path)


def read_questions(path: str, *, known: bool = True) -> "list[Question]":
    """The questions of a file.

    Args:
        path: As it was named.
        known: Whether each must say what answers it.

    Raises:
        QueriesInvalid: It cannot be read, or holds something else.
    """
    try:
        return parse_queries(read_given(path), name=STDIN if path == "-" else path, known=known)
    except FilestoreError:
        raise
    except OSError as error:
        raise QueriesInvalid(
            f"cannot read {path}: {error.strerror or error}",
            remedy="name a file of JSON lines, or - for standard input",
        ) from error
