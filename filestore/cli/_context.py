"""What a person names: the store of a command, and files with questions."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from filestore.cli import _output, _terminal
from filestore.config.layout import find_root
from filestore.core.caller import named_store, other_caller, working_folder
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.findings import FromIndex
from filestore.core.safe_text import listed
from filestore.fs import disk
from filestore.store import Store

if TYPE_CHECKING:
    from typing import Protocol

    from filestore.search.metrics import Question

    class Common(Protocol):
        """What every command takes."""

        @property
        def store(self) -> str | Sequence[str] | None: ...

        @property
        def json(self) -> bool: ...


_SERVED: ContextVar[Store | None] = ContextVar("served", default=None)


@contextlib.contextmanager
def served(store: Store) -> Iterator[None]:
    """Until the block ends commands of this thread use a store that is open already."""
    before = _SERVED.set(store)
    try:
        yield
    finally:
        _SERVED.reset(before)


def open_store(options: "Common") -> AbstractContextManager[Store]:
    """Open the store of --store, of FILESTORE, or the nearest one around the working folder."""
    if open_already := _SERVED.get():
        explicit = named(options)
        here = working_folder()
        if find_root(here, explicit and os.path.join(here, explicit)) != open_already.root:
            raise UsageError("the command names another store")
        _tell_of(open_already, options)
        open_already.looks = getattr(options, "update", True)
        return contextlib.nullcontext(open_already)
    with _output.timed("open"):
        return _opened(root_of(options), options)


def open_one(name: str, options: "Common") -> Store:
    """Open one of several stores that --store names."""
    if _SERVED.get():
        raise UsageError("the command names several stores")
    return _opened(find_root(working_folder(), os.path.expanduser(name)), options)


def _opened(root: str, options: "Common") -> Store:
    # Two processes walk a large tree: this one has no threads yet, so it may fork.
    store = Store(
        root,
        processes=os.cpu_count() or 1,
        on_wait=lambda holder: _output.note(f"filestore: waiting for {holder}, which is writing"),
    )
    _tell_of(store, options)
    store.looks = getattr(options, "update", True)
    return store


def _tell_of(store: Store, options: "Common") -> None:
    """Name the unknown keys of a store's settings, and say why it is this store and this model."""
    tell_unknown(store.settings.unknown)
    if _terminal.wishes().verbose:
        found_by = "is the nearest around the working folder"
        if options.store or named_store():
            found_by = "is named by --store" if options.store else "is named by FILESTORE"
        _output.say(f"store: {store.root} {found_by}")
        second = store.settings.second
        beside = f", second model {second.embedder}" if second is not None else ""
        _output.say(f"model: {store.settings.embedder}{beside}, by {store.places.settings}")
        _output.say(f"vectors: {store.settings.vectors_in}")


def calculate_in_one_thread() -> None:
    """Have numpy, which loads later, start no threads: they take more time than one question."""
    # What another process asks is answered in one that has numpy, and children of its own.
    if other_caller() is None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def tell_unknown(unknown: Iterable[str]) -> None:
    """Name the keys of the settings that nothing reads: one may be spelled wrong, or gone."""
    if found := dict.fromkeys(unknown):
        _output.say("filestore: " + listed(found, 20, separator="\nfilestore: "))


def named(options: "Common") -> str | None:
    """The folder that --store, or FILESTORE, names; None where neither does."""
    given = options.store
    word = given if isinstance(given, str) else next(iter(given or ()), named_store() or None)
    # No shell replaces the sign in '--store=~/notes', nor in the settings of a program.
    return word and os.path.expanduser(word)


def root_of(options: "Common") -> str:
    """The root of the store that a command works on."""
    explicit = named(options)
    try:
        here = os.getcwd()
    except FileNotFoundError:
        # The working folder was removed; a store that is named by its whole path is there.
        if explicit is None or not os.path.isabs(explicit):
            raise
        here = explicit
    return find_root(here, explicit)


def printed_json(options: "Common", found: Any) -> bool:
    """Print a result as JSON where --json asks for it, else its notes; whether it was JSON."""
    if options.json:
        _output.write_json(found.to_dict())
        return True
    behind = found.behind.notes if isinstance(found, FromIndex) else ()
    for note in dict.fromkeys((*behind, *getattr(found, "notes", ()))):
        _output.note(note)
    return False


def end_politely() -> threading.Event:
    """Let the system's polite end interrupt as Ctrl-C does; the event tells which it was."""
    import signal

    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    return ended


STDIN = "standard input"


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
            f"cannot read {path}: {error.strerror or error}"
            "; name a file of JSON lines, or - for standard input",
        ) from error
    from filestore.search.metrics import parse_queries

    return parse_queries(data, name=name, known=known)
