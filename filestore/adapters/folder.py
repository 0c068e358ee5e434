"""The chunk files of one folder of a store, by id, and a search of all of the store.

What every framework's adapter uses; knows none of them. One rule: an id leads to one path and
a path to one id, so that nothing has to be looked up, and what a person wrote has an id, too.
"""

import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, time
from typing import Any, Final, Literal
from urllib.parse import unquote
from uuid import UUID

from msgspec import Struct, field

from filestore import FilestoreError, Hit, RefusedError, Store, StoreThreads, UsageError
from filestore.core.errors import install_line

Mode = Literal["hybrid", "vector", "keyword"]
Where = Mapping[str, Any]
Accept = Callable[["Passage"], bool]
StrPath = str | os.PathLike[str]

EVIDENCE: Final = ("path", "line", "page", "title", "freshness", "chunk", "source")
"""Where a hit is, in its metadata, with the document's own."""
_LOG: Final = logging.getLogger(__name__)
_FOLDED: Final = ("copies", "cut")
_WAIT_S: Final = 60.0
"""How long a writer waits for another: no person waits, and several threads write."""
_NESTED: Final = "metadata"
"""The key of a chunk file for keys with names of ours."""
_OWN_TO_NAME: Final = frozenset(("page", "source", "title"))
"""Of the evidence: what a document may say of itself."""
_QUOTED: Final = re.compile(r'^\.|[%/\\:*?"<>|~\x00-\x1f\x7f]')
_SUFFIX: Final = ".md"


class Passage(Struct, frozen=True, kw_only=True):
    """One chunk file, or one section of a document in place, as a framework gets it."""

    id: str
    text: str
    own: Mapping[str, Any]
    """Its own metadata."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Where it is, and how fresh: keys of `EVIDENCE`."""
    score: float = 0.0

    @property
    def evidence_keys(self) -> tuple[str, ...]:
        """The keys of `metadata` that are evidence."""
        return tuple(key for key in self.evidence if key not in _OWN_TO_NAME.intersection(self.own))

    @property
    def metadata(self) -> dict[str, Any]:
        """Both in one; a key of its own never hides its place, but goes one level deeper."""
        own = dict(self.own)
        hidden = {key: own.pop(key) for key in self.evidence_keys if key in own}
        table = own.get(_NESTED)
        nested = (
            {_NESTED: {**(table if isinstance(table, dict) else {}), **hidden}} if hidden else {}
        )
        return {**self.evidence, **own, **nested}


class ChunkFolder:
    """A folder of a store that a framework writes to, and the store that it searches.

    It may be used from any thread.
    """

    def __init__(
        self,
        path: StrPath,
        *,
        into: str,
        configuration: StrPath | None = None,
        threads: int = StoreThreads.MOST,
    ) -> None:
        """Open the store that a folder is, holds or lies in.

        Args:
            path: The folder.
            into: The folder below `chunked/` that is written to; it is made with the first text.
            configuration: The folder of the user's settings; None for the usual one.
            threads: How many calls are answered at once.

        Raises:
            NoStoreError: There is none.
        """
        self._threads = StoreThreads(path, configuration=configuration, most=threads)
        self.into = into
        self._tree = self._threads.call(lambda store: store.places.tree)
        own_keys = self._threads.call(lambda store: store.own_keys)
        self._taken = frozenset((*own_keys, _NESTED))
        # Refused where it is written to; what is below has to be a path of this folder.
        self._prefix = f"{self._tree.folder}/{into}/"

    @property
    def root(self) -> str:
        """The folder with `filestore.toml`."""
        return self._threads.root

    def close(self) -> None:
        """Let go of the store."""
        self._threads.close()

    def call(self, job: Callable[[Store], Any]) -> Any:
        """What a function makes of the store, in a thread that has it open."""
        return self._threads.call(job)

    def put(
        self,
        texts: Sequence[str],
        metadata: Sequence[Mapping[str, Any]],
        ids: Sequence[str | None],
        *,
        replace: bool = False,
    ) -> list[str]:
        """Write texts as chunk files; the id of each. One of an id that is there is replaced.

        Args:
            texts: What they say.
            metadata: Of each.
            ids: Of each; None for one that is made of text and metadata.
            replace: Whether what a person wrote or edited may be replaced.

        Raises:
            UsageError: An id is that of a file elsewhere in the store, or cannot be a name.
            FilestoreError: Why a text has no vector, or nothing was written.
        """
        names = [None if one is None else self._own_name(one) for one in ids]
        keys = [written(one, self._taken) for one in metadata]

        def job(store: Store) -> list[str]:
            done = store.put(
                texts,
                into=self.into,
                names=names,
                metadata=keys,
                replace=replace,
                wait_s=_WAIT_S,
            )
            for path in done.kept:
                _LOG.info("%s: %s was edited by hand, and stays", store.root, path)
            if done.problem is not None:
                # The files are there: the same call again, or a sync, embeds them.
                raise done.problem
            return [self.id_of(path) for path in done.paths]

        return self._threads.call(job) if texts else []

    def delete(self, ids: Iterable[str]) -> int:
        """Remove chunk files; how many there were. What is not there is passed over."""
        paths = [self.path_of(one) for one in ids]

        def job(store: Store) -> int:
            return len(store.remove_chunks(*paths, missing_ok=True, wait_s=_WAIT_S).paths)

        return self._threads.call(job) if paths else 0

    def get(self, ids: Iterable[str]) -> list[Passage]:
        """What there is of some ids, in their order."""
        wanted = list(ids)

        def job(store: Store) -> list[Passage]:
            found = (self._shown(store, self.path_of(one)) for one in wanted)
            return [one for one in found if one is not None]

        return self._threads.call(job)

    def every(self, accept: Accept = lambda _: True) -> list[Passage]:
        """All chunks of this folder in reading order, or the accepted ones."""

        def job(store: Store) -> list[Passage]:
            found = (self._shown(store, path) for path in self._paths(store))
            return [one for one in found if one is not None and accept(one)]

        return self._threads.call(job)

    def count(self) -> int:
        """How many chunks this folder has."""
        return self._threads.call(lambda store: len(self._paths(store)))

    def clear(self) -> int:
        """Remove all chunks of this folder, in one change that can be undone; how many.

        Raises:
            RefusedError: They were made from a source that was added.
        """

        def job(store: Store) -> int:
            made = [one for one in store.resources() if one["resource"] == self.into]
            if any(one["source"] for one in made):
                raise RefusedError(
                    f"the chunk files of {self.into!r} are made from {made[0]['source']}",
                    remedy=f"'filestore rm {self.into}' removes them with their record",
                )
            paths = self._paths(store)
            return len(store.remove_chunks(*paths, missing_ok=True, wait_s=_WAIT_S).paths)

        return self._threads.call(job)

    def search(
        self,
        query: str,
        *,
        k: int,
        mode: Mode,
        where: Where | None = None,
        accept: Accept | None = None,
        rerank: str | None = None,
    ) -> list[Passage]:
        """The best `k` passages of all of the store that satisfy what is asked.

        Args:
            query: What is asked.
            k: How many, at most.
            mode: ``hybrid``, ``vector`` or ``keyword``.
            where: Values that the metadata must have.
            accept: Judges each passage; as many more are looked at as it takes.
            rerank: The reranker that orders the best; None for none.
        """
        # What the store itself filters by, and what is judged of its hits.
        judged, where = self._taken.union(EVIDENCE), where or {}
        others = {key: value for key, value in where.items() if key in judged}
        plain = {key: _plain(value) for key, value in where.items() if key not in judged}

        def is_wanted(one: Passage) -> bool:
            found = one.metadata
            return all(_has(found.get(key), value) for key, value in others.items()) and (
                accept is None or accept(one)
            )

        # A framework expects the nearest, however far, and each of its documents.
        options: Any = {"mode": mode, "where": plain, "rerank": rerank, "without": _FOLDED}

        def job(store: Store) -> list[Passage]:
            asked = k
            while True:
                answer = store.search(query, k=asked, **options)
                there = [self._found(store, hit) for hit in answer if hit.freshness != "gone"]
                found = [one for one in there if is_wanted(one)]
                if len(found) >= k or len(answer) < asked:
                    level = logging.INFO if answer.mode == mode else logging.WARNING
                    for note in answer.notes:
                        _LOG.log(level, "%s: %s", store.root, note)
                    return found[:k]
                asked *= 4

        return self._threads.call(job) if k > 0 else []

    def path_of(self, identifier: str) -> str:
        """The path of an id, relative to the root of the store."""
        if not self._tree.is_written or self._is_path(identifier):
            return identifier
        return f"{self._prefix}{_quoted(identifier)}{_SUFFIX}"

    def id_of(self, path: str) -> str:
        """The id of a path: the name of a file that was put here, else the path itself."""
        stem = path.removeprefix(self._prefix).removesuffix(_SUFFIX)
        identifier = unquote(stem)
        is_own = path.startswith(self._prefix) and _quoted(identifier) == stem
        return identifier if is_own and not self._is_path(identifier) else path

    def _own_name(self, identifier: str) -> str:
        """The name of the file of an id, without suffix."""
        if not identifier or (self._is_path(identifier) and self.id_of(identifier) == identifier):
            raise UsageError(
                f"{identifier!r} cannot be the id: another file has it; edit that file, or"
                " give the text an id of its own",
            )
        return _quoted(self.id_of(identifier))

    def _is_path(self, identifier: str) -> bool:
        """Whether an id is a path of the store, which a name is not."""
        return self._tree.holds(identifier) and identifier.endswith(_SUFFIX)

    def _paths(self, store: Store) -> list[str]:
        if not any(one["resource"] == self.into for one in store.resources()):
            return []
        return [one["path"] for one in store.chunks(self.into)]

    def _shown(self, store: Store, path: str) -> Passage | None:
        try:
            shown = store.show(path)
        except KeyError:
            return None
        return Passage(
            id=self.id_of(path),
            text=shown.body,
            own=read(shown.metadata, self._taken),
            evidence={
                "path": shown.path,
                "freshness": shown.record.get("freshness", "edited"),
                "chunk": shown.path,
            },
        )

    def _found(self, store: Store, hit: Hit) -> Passage:
        place = {"path": hit.document or hit.path, "line": hit.line, "page": hit.page}
        known = {key: value for key, value in place.items() if value is not None}
        identifier = self.id_of(hit.path) if self._tree.is_written else hit.path
        # Of a section it is where that begins; the line of a hit is that of its passage.
        for one in () if self._tree.is_written else store.chunks(hit.path):
            first, last = one.get("line"), one.get("end_line")
            if first and last and hit.line and first <= hit.line <= last:
                identifier = f"{hit.path}:{first}"
                break
        return Passage(
            id=identifier,
            text=hit.text,
            own=read(hit.metadata, self._taken),
            evidence=known
            | {
                "title": hit.title,
                "freshness": hit.freshness,
                "chunk": hit.path,
                "source": hit.source or hit.document,
            },
            score=hit.score,
        )


def written(metadata: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """Metadata as keys of a chunk file: those of names that are taken one level deeper."""
    plain = {str(key): _plain(value) for key, value in metadata.items()}
    deeper = {key: value for key, value in plain.items() if key in taken}
    own = {key: value for key, value in plain.items() if key not in taken}
    return {**own, _NESTED: deeper} if deeper else own


def read(keys: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """The inverse of `written`."""
    deeper = keys.get(_NESTED)
    others = {key: value for key, value in keys.items() if key != _NESTED}
    if not deeper or not isinstance(deeper, dict) or not all(key in taken for key in deeper):
        return dict(keys)
    # A document in place may have such keys next to it, which `written` never leaves.
    return dict(keys) if any(key in taken for key in others) else others | deeper


def _plain(value: Any) -> Any:
    """A value as JSON has it; what is none stays, and is refused when it is written."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=str)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID | os.PathLike):
        return str(value)
    # What numpy and its like have for a number.
    return value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value


def _has(found: Any, value: Any) -> bool:
    """Whether metadata has a value: itself, or in a list; of a list each."""
    if isinstance(value, list | tuple):
        return all(_has(found, one) for one in value)
    return bool(found == value or (isinstance(found, list) and value in found))


def _quoted(identifier: str) -> str:
    """An id as a name of a file that every system takes."""
    return _QUOTED.sub(lambda sign: f"%{ord(sign[0]):02X}", identifier)


class LibraryMissing(FilestoreError, ModuleNotFoundError):
    """An adapter is imported without the library of its framework."""


def missing(framework: str) -> LibraryMissing:
    """The error of an adapter without its library."""
    module = framework.replace("-", "_")
    return LibraryMissing(
        f"filestore.adapters.{module} needs a library that is not installed",
        remedy=install_line(framework),
    )
