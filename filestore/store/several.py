"""Several stores searched in one call."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from filestore.core.errors import UsageError
from filestore.store import Store
from filestore.store.answering import StrPath

if TYPE_CHECKING:
    from filestore.search import Query
    from filestore.search.answer import Answer
    from filestore.search.several import MergedAnswer


def search_stores(
    stores: Iterable[StrPath],
    query: "Query | str",
    *,
    configuration: StrPath | None = None,
    **options: Any,
) -> "MergedAnswer":
    """The hits of several stores, merged by their rank; each names its store.

    A store that does not answer is named in the notes, where another one does.

    Args:
        stores: Each the path of a store, which is its name in the answer; see `open`.
        query: What is asked, as a text or a `Query`.
        configuration: The folder of the user's settings; None for the usual one.
        options: The fields of a `Query`, such as ``k=5`` or ``mode="keyword"``.

    Raises:
        UsageError: No store is named, or an option has no such value.
        FilestoreError: None answers; the error of the first, with the words of all.
    """
    from filestore.search import Query
    from filestore.search.several import asked_of_each

    asked, names = Query.of(query, options), [os.fsdecode(one) for one in stores]
    if not names:
        raise UsageError("no store is named to be searched: name one by its path")

    def ask(name: str) -> "Answer":
        with Store.open(name, configuration=configuration) as store:
            return store.search(asked).made()

    return asked_of_each(names, ask, asked)
