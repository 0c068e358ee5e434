"""The stores that a server keeps open, by name, each with threads that read and one that writes.

One rule: a job waits for a thread of its own store only, and where too many wait the next is
refused at once, so that no client waits without end.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from shlex import quote
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from filestore.config.layout import NoStoreError, Places, find_root
from filestore.core.caller import absolute, leads, writing_for
from filestore.core.errors import FilestoreError, RefusedError, UsageError, unreadable
from filestore.core.paths import is_below
from filestore.core.safe_text import brief, shown_path
from filestore.core.spelling import did_you_mean
from filestore.fs.disk import Closing
from filestore.fs.watched_tree import WatchedTree
from filestore.server.operations import Caller as Caller
from filestore.server.operations import Operation, parsed
from filestore.server.operations import caller_name as caller_name
from filestore.store import Store
from filestore.store.threads import BusyError, ReadOnlyError, StoreThreads

MOST_WAITING: Final = 256
"""Jobs of one store that wait or are being done; one more is refused."""
_LOG: Final = logging.getLogger(__name__)
_LONGEST_NAME: Final = 255
_TURN_S: Final = 2.0
"""So long a request waits for vectors; the rest is embedded behind it."""
PROGRAM: Final = Caller(name="", writes=False, person=False)
PERSON: Final = Caller(name="", writes=True, person=True)
_USUAL: Final = "file_index"
"""A folder of this name says nothing: the store is named like the one it lies in."""

T = TypeVar("T")


class UnknownStoreError(FilestoreError, LookupError):
    """No store of this name is served."""


class Access(Struct, frozen=True, kw_only=True):
    """What clients may do."""

    writes: bool = False
    """Whether stores may be changed."""
    documents: tuple[str, ...] = ()
    """Folders besides the store's own from which documents may be added, absolute."""


class ServedStore(Struct):
    """One store, asked from the event loop."""

    name: str
    root: str
    places: Places
    unknown: tuple[str, ...]
    """A sentence on each key of its settings that nothing reads."""
    access: Access
    _configuration: str | None
    _readers: StoreThreads
    """For programs."""
    _many: int
    """Threads that read for programs, and for people."""
    _watched: WatchedTree
    _others: dict[str, StoreThreads] = field(default_factory=dict)
    """What writes, and what reads for long; one thread each, once there is something to do. Threads
    of people, who see what is closed to programs, are their own."""
    _turn: "Future[bool] | None" = None
    """The last turn of embedding, which may wait still."""
    listeners: list[Callable[[str, dict[str, Any]], None]] = field(default_factory=list)
    """Called with each operation that changed the store, with its answer; from the event loop."""

    @classmethod
    def open(
        cls, name: str, root: str, access: Access, *, configuration: str | None, readers: int
    ) -> "ServedStore":
        """Open a store; see `Store`, which says what is raised."""
        watched = WatchedTree()
        threads = StoreThreads(
            root, configuration=configuration, most=readers, watched=watched, for_programs=True
        )
        places, unknown = threads.call(lambda store: (store.places, store.settings.unknown))
        found = (name, places.root, places, unknown, access, configuration)
        return cls(*found, threads, readers, watched)

    def warm_up(self) -> None:
        """Have model and index loaded before somebody asks."""
        self._readers.submit(_load).add_done_callback(self._go_on)

    def _go_on(self, done: "Future[bool]") -> None:
        """Embed in another turn, where the last one, or the reader that looked, says so."""
        if not done.cancelled() and done.exception() is None and done.result():
            self._embed_behind()

    def _embed_behind(self) -> None:
        """Embed what waits, behind what is to be written now; one turn waits at a time."""
        # It may have been closed.
        with contextlib.suppress(FilestoreError, OSError):
            if self._turn is None or self._turn.done():
                self._turn = self._opened("writer", PROGRAM).submit(_embed)
                self._turn.add_done_callback(self._go_on)

    def submit(self, job: Callable[[Store], T], caller: Caller = PERSON) -> "Future[T]":
        """Begin what changes nothing, for the person whose machine this is unless for another.

        Raises:
            BusyError: Too many wait.
        """
        return self._submitted(self._opened("reader", caller), job)

    async def read(
        self, job: Callable[[Store], T], caller: Caller = PROGRAM, *, long: bool = False
    ) -> T:
        """What a function that changes nothing makes of the store.

        Args:
            job: The function.
            caller: Who asks: a program is not given what is closed to programs.
            long: Whether it takes long: such run one after the other, and other readers go on.

        Raises:
            BusyError: Too many wait.
        """
        return await self._done(await self._other("long" if long else "reader", caller), job)

    async def write(self, job: Callable[[Store], T], caller: Caller, *, embeds: bool = True) -> T:
        """What a function that changes the store makes of it; one after the other.

        Args:
            job: The function.
            caller: Who asks for it.
            embeds: Whether what waits for its vector after that is embedded.

        Raises:
            ReadOnlyError: It is served to be read.
            BusyError: Too many wait.
        """
        self.require_writes(caller)
        writer = await self._other("writer", caller)

        def short(store: Store) -> T:
            store.embed_for(_TURN_S)
            with writing_for(caller.program):
                return job(store)

        try:
            return await self._done(writer, short)
        finally:
            if embeds:
                self._embed_behind()

    async def ask(self, operation: Operation, given: Any, caller: Caller) -> dict[str, Any]:
        """Check what a client gives for an operation, and answer it.

        Raises:
            FilestoreError: What the library raises.
        """
        operation = operation.of(writes=self.access.writes and caller.writes)
        request = operation.checked(given)
        if operation.writes:
            self.require_writes(caller)
        request = request.allowed(self.require_allowed)

        def job(store: Store) -> dict[str, Any]:
            # What is made when it is read reads the disk: not in the loop, for which others wait.
            try:
                answer: dict[str, Any] = request.answer_to(store, caller).to_dict()
                return store.open_answer(answer)
            except FilestoreError as error:
                if (shown := store.open_error(error, given)) is error:
                    raise
                raise shown from None

        if not operation.writes:
            return await self.read(job, caller, long=operation.slow)
        answer = await self.write(job, caller, embeds=getattr(request, "embed", True))
        self.report_change(operation.route or operation.name, answer)
        return answer

    def report_change(self, operation: str, answer: dict[str, Any]) -> None:
        """Report to every listener that an operation changed the store."""
        for listener in self.listeners:
            listener(operation, answer)

    async def _other(self, kind: str, caller: Caller) -> StoreThreads:
        if kind == "reader" and not caller.person:
            return self._readers
        return await asyncio.to_thread(self._opened, kind, caller)

    def _opened(self, kind: str, caller: Caller) -> StoreThreads:
        """The threads for something; where nothing is closed to read, one kind reads for all."""
        is_own = caller.person and (
            kind == "writer" or self._readers.call(lambda store: store.hides)
        )
        if kind == "reader" and not is_own:
            return self._readers
        name = f"{kind} of people" if is_own else kind
        if name not in self._others:
            opened = StoreThreads(
                self.root,
                configuration=self._configuration,
                most=self._many if kind == "reader" else 1,
                watched=self._watched,
                for_programs=not is_own,
            )
            # Another thread may have been faster.
            if self._others.setdefault(name, opened) is not opened:
                opened.close()
        return self._others[name]

    def require_writes(self, caller: Caller) -> None:
        """Refuse changes of a store that is served to be read, or by who may only read.

        Raises:
            ReadOnlyError: It is served to be read, or the token is.
        """
        if not self.access.writes:
            raise ReadOnlyError(f"{self.name} is served to be read: start the server with --write")
        if not caller.writes:
            raise ReadOnlyError(
                f"the token {caller.name} may read only",
                remedy=f"filestore token revoke {quote(caller.name)} &&"
                f" filestore token add {quote(caller.name)} --write",
            )

    def require_allowed(self, paths: Iterable[str]) -> list[str]:
        """The documents that a client names, where they may be added from.

        Args:
            paths: Absolute, or relative to the root.

        Raises:
            RefusedError: One lies elsewhere or in a hidden folder, or leads there.
        """
        folders = [os.path.realpath(one) for one in (self.root, *self.access.documents)]
        found = []
        for path in paths:
            if "\0" in path:
                raise UsageError("a path has no NUL in it")
            place = os.path.realpath(os.path.join(self.root, path))
            inside = [os.path.relpath(place, one) for one in folders if is_below(place, one)]
            if not inside:
                raise RefusedError(
                    f"{shown_path(path)} lies outside the store"
                    ": upload it, or start the server with --documents FOLDER",
                )
            hidden = [
                any(part.startswith(".") and part != "." for part in one.split(os.sep))
                for one in inside
            ]
            if all(hidden):
                # Such as .git and .env, which hold keys; a walk of a folder leaves them out, too.
                raise RefusedError(
                    f"{shown_path(path)} is hidden, or lies in a hidden folder"
                    ": add it on the command line, or upload it",
                )
            found.append(place)
        return found

    @property
    def waiting(self) -> int:
        """How many jobs wait or are being done."""
        return sum(threads.waiting for threads in (self._readers, *self._others.values()))

    def close(self) -> None:
        """Wait for what is being done, and close every store."""
        for threads in (self._readers, *self._others.values()):
            threads.close()
        self._watched.close()

    async def _done(self, threads: StoreThreads, job: Callable[[Store], T]) -> T:
        try:
            return await asyncio.wrap_future(self._submitted(threads, job))
        except NoStoreError as error:
            # The client did not choose the place, and should make no other store there.
            error.remedy = f"its folder went while it was served: put {self.root} back"
            raise

    def _submitted(self, threads: StoreThreads, job: Callable[[Store], T]) -> "Future[T]":
        if threads.waiting >= MOST_WAITING:
            raise BusyError(f"{self.name} has {threads.waiting} requests waiting: ask again later")
        return threads.submit(job)


def _load(store: Store) -> bool:
    """Have model and index loaded; whether texts wait that a model here embeds."""
    # A service would be paid for the vector; a store that cannot be searched says so when asked.
    with contextlib.suppress(FilestoreError, OSError):
        store.search("a", k=1, mode="keyword" if store.model.reaches else "hybrid")
        return store.model.reaches is None
    return False


def _embed(store: Store) -> bool:
    """Embed for a turn; whether there is more to do."""
    store.embed_for(_TURN_S)
    return store.embed().goes_on


class Stores(Closing):
    """Every store that is served. A context manager."""

    def __init__(self, stores: Mapping[str, ServedStore]) -> None:
        self._stores = dict(stores)

    @classmethod
    def open(
        cls,
        given: Sequence[str],
        access: Access,
        *,
        configuration: str | None = None,
        readers: int | None = None,
    ) -> "Stores":
        """Open stores.

        Args:
            given: Each a path, or ``NAME=PATH``.
            access: What may be done with them.
            configuration: The folder of the user's settings; None for the usual one.
            readers: Threads a store; None for one a processor, two at least.

        Raises:
            NoStoreError: There is none.
            UsageError: Two have one name.
        """
        many = max(2, os.cpu_count() or 1) if readers is None else readers
        opened: dict[str, ServedStore] = {}
        try:
            for name, root in named_roots(given).items():
                opened[name] = ServedStore.open(
                    name, root, access, configuration=configuration, readers=many
                )
        except BaseException:
            cls(opened).close()
            raise
        return cls(opened)

    def __iter__(self) -> Iterator[ServedStore]:
        return iter(self._stores.values())

    def __len__(self) -> int:
        return len(self._stores)

    @property
    def names(self) -> list[str]:
        """Their names, in the order in which they were given."""
        return list(self._stores)

    def named(self, name: str | None) -> ServedStore:
        """The store of a name; without one the only one there is.

        Raises:
            UnknownStoreError: There is none.
            UsageError: There are several, and none was named.
        """
        if not self._stores:
            raise UnknownStoreError(
                "no store is served, only collections: start the server with a store"
            )
        if not name:
            if len(self._stores) == 1:
                return next(iter(self._stores.values()))
            raise UsageError(
                "several stores are served, and none was named"
                f": name one of them: {', '.join(self._stores)}",
            )
        if name not in self._stores:
            raise UnknownStoreError(
                f"no store {brief(name)} is served{did_you_mean(name, self._stores)}"
                f": name one of: {', '.join(self._stores)}",
            )
        return self._stores[name]

    async def search(
        self, names: Iterable[str], operation: Operation, given: Any, caller: Caller
    ) -> dict[str, Any]:
        """What several stores answer to one search; see `merged`."""
        from filestore.search.several import merged

        # One store may be served by two names.
        asked: dict[str, ServedStore] = {}
        for name in names:
            store = self.named(name)
            asked.setdefault(store.root, store)
        query: Any = operation.checked(given)
        found = await asyncio.gather(
            *(one.ask(operation, given, caller) for one in asked.values()), return_exceptions=True
        )
        answers: dict[str, Any] = {}
        failed: dict[str, FilestoreError] = {}
        for store, answer in zip(asked.values(), found, strict=True):
            if isinstance(answer, FilestoreError):
                failed[store.name] = answer
            elif isinstance(answer, Exception):
                failed[store.name] = of_machine(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                answers[store.name] = answer
        return merged(answers, failed, query)

    def close(self) -> None:
        """Close all of them."""
        for store in self._stores.values():
            store.close()


def store_names(value: Any, *, several: bool = False) -> Any:
    """The store that a request names, "" for none; a list of them, where it may name several.

    Raises:
        UsageError: It is no name, and no list of names.
    """
    found = parsed(value) if several else value
    names = found if several and isinstance(found, list) else [value or ""]
    if not all(isinstance(one, str) and len(one) <= _LONGEST_NAME for one in names):
        words = ", or a list of names" if several else " is a text"
        raise UsageError(f"store: the name of a store{words}")
    return (names or "") if names is found else names[0]


def of_machine(error: Exception) -> FilestoreError:
    """What the machine refused, or we did wrong, without saying where on it."""
    if isinstance(error, MemoryError):
        return FilestoreError("there is not enough memory: ask for less")
    if isinstance(error, OSError):
        return unreadable(error)
    _LOG.error("a request failed", exc_info=error)
    return FilestoreError(f"internal error: {type(error).__name__}; see what the server logged")


def named_roots(given: Sequence[str]) -> dict[str, str]:
    """Name to root of each store, absolute.

    Raises:
        NoStoreError: There is none at a path.
        UsageError: Two have one name.
    """
    found: dict[str, str] = {}
    for word in given:
        name, equals, path = word.partition("=")
        is_named = bool(equals) and bool(name) and not os.path.exists(word)
        # A shell leaves the sign of the home folder alone behind "NAME=".
        place = os.path.expanduser(path if is_named else word)
        root = find_root(place, None if os.path.isdir(place) else place)
        # By a link it is called as the link, whatever the folder behind it is called.
        whole = absolute(place)
        links = (whole, os.path.join(whole, _USUAL), root)
        above, last = os.path.split(next(one for one in links if leads(one) == root))
        own = os.path.basename(above) if last == _USUAL else last
        called = name if is_named else own or "store"
        if found.get(called, root) != root:
            raise UsageError(
                f"two stores are called {called}: {found[called]} and {root}",
                remedy=f"filestore serve {called}={found[called]} OTHER={root}",
            )
        found[called] = root
    return found
