"""Keeps progress bars, warnings and hints of model libraries off the terminal."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

LOAD_ERRORS: Final = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, OSError),
    *(RuntimeError, TypeError, ValueError),
)
"""What the libraries raise where a model's files contradict each other."""


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Silence the libraries while a model is loaded, then restore their settings."""
    # An untyped module.
    logging: Any = import_module("transformers.utils.logging")
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
