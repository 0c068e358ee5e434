"""A file of questions, as commands take it."""

import sys
from typing import TYPE_CHECKING

from filestore.fs.disk import FileTooLargeError, read_given
from filestore.search.metrics import QueriesInvalid, parse_queries

if TYPE_CHECKING:
    from filestore.search.metrics import Question


def read_questions(path: str, *, known: bool = True) -> "list[Question]":
    """The questions of a file, or of standard input where it is called "-".

    Args:
        path: Of the file.
        known: Whether each must say what answers it.

    Raises:
        QueriesInvalid: It cannot be read, or holds something else.
    """
    try:
        if path == "-":
            data = read_given(sys.stdin.buffer, "standard input")
            return parse_queries(data, name="standard input", known=known)
        with open(path, "rb") as file:
            return parse_queries(read_given(file, path), name=path, known=known)
    except FileTooLargeError:
        raise
    except OSError as error:
        raise QueriesInvalid(
            f"cannot read {path}: {error.strerror or error}",
            remedy="name a file of JSON lines, or - for standard input",
        ) from error
