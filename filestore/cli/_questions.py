"""A file of questions with known answers, as commands take it."""

import sys
from typing import TYPE_CHECKING

from filestore.fs.disk import FileTooLargeError, read_given
from filestore.search.metrics import QueriesInvalid, parse_queries

if TYPE_CHECKING:
    from filestore.search.metrics import Question


def read_questions(path: str) -> "list[Question]":
    """The questions of a file, or of standard input where it is called "-".

    Raises:
        QueriesInvalid: It cannot be read, or holds something else.
    """
    try:
        if path == "-":
            data = read_given(sys.stdin.buffer, "standard input")
            return parse_queries(data, name="standard input")
        with open(path, "rb") as file:
            return parse_queries(read_given(file, path), name=path)
    except FileTooLargeError:
        raise
    except OSError as error:
        raise QueriesInvalid(
            f"cannot read {path}: {error.strerror or error}",
            remedy="name a file of JSON lines, or - for standard input",
        ) from error
