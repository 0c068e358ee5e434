"""The forms by name. One rule: a form is imported only when it is opened.

A new one is a module beside these, and one entry in `FORMS`.
"""

from importlib import import_module
from typing import Final

from filestore.core.errors import UsageError
from filestore.core.spelling import did_you_mean
from filestore.exchange.base import Form

FORMS: Final = {
    "faiss-json": "vector_files.faiss_json:FaissJson",
    "jsonl": "tables.jsonl:JsonLines",
    "markdown": "markdown:Markdown",
    "parquet": "tables.parquet:ParquetForm",
    "ragmd": "vector_files.ragmd:RagMd",
}
"""Name to module and class."""
READ: Final = tuple(name for name in FORMS if name != "markdown")
"""Those that are read, too."""


class UnknownFormError(UsageError):
    """There is no such form."""


def open_form(name: str) -> Form:
    """The form of a name.

    Raises:
        UnknownFormError: There is none.
    """
    if name not in FORMS:
        raise UnknownFormError(
            f"no form {name!r}{did_you_mean(name, FORMS)}",
            remedy=f"name one of these: {', '.join(FORMS)}",
        )
    module, _, kind = FORMS[name].partition(":")
    made = getattr(import_module(f"filestore.exchange.{module}"), kind)()
    assert isinstance(made, Form)
    return made
