"""The contract of a backend: where the vectors of a store live, and what may be next to them.

A store's files are the truth and its embeddings are kept in the sidecar; a backend holds what a
search compares, and can be made again from both at any time. One rule: what a backend cannot do is
declared, never guessed, and an answer that may be another store's is an error.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct, field

from filestore.core.findings import Finding
from filestore.core.safe_text import Unshown, brief
from filestore.core.schema import JsonObject
from filestore.core.spelling import did_you_mean
from filestore.fs.disk import Closing
from filestore.index import BackendError, VectorIndex, Where

if TYPE_CHECKING:
    from numpy import bool_, float32, int64
    from numpy.typing import NDArray

WITHOUT: Final = "`filestore search --mode keyword` works without it"
"""What a store can do while its backend is away."""

_TYPES: Final = {str: "a text", int: "a whole number", bool: "true or false", list: "a list"}


class BackendKeysMissing(BackendError, ValueError):
    """The settings lack keys that a backend needs; all of them are named."""


class BackendSettingsWrong(BackendError, ValueError):
    """A key of the settings has a value that a backend cannot use, or one that it does not know."""


class WrongDimension(BackendError, ValueError):
    """Vectors of another length than the index holds."""


class BackendUnreachable(BackendError, ConnectionError):
    """The service does not answer, or stopped in the middle; with its address and no password."""


class BackendUnusable(BackendError):
    """The service answers and cannot be used: another shape, read-only, full, too old."""


class BackendForeign(BackendError):
    """What is there was written by another store, or by this one's catalog before it was lost."""


class NotSent(BackendForeign):
    """What is there is not what was sent: nothing, or what was sent earlier."""


class BackendMissing(BackendError, ImportError):
    """The package that talks to a backend is not installed."""


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a backend can do."""

    approximate: bool = False
    """A search may miss some of the nearest."""
    filters: bool = False
    """It filters by metadata itself; ids that are allowed are taken by every backend."""
    compares: bool = False
    """It computes digests of its vectors where they lie: verification transfers none."""
    atomic: bool = False
    """A change is seen whole or not at all."""
    batch: int = 1_000
    """How many items it takes at a time."""


class EmbedConfig(Struct, frozen=True, kw_only=True):
    """Whose vectors an index holds."""

    fingerprint: str
    """Of the model; vectors of two models never mix."""
    dimension: int


class Stamp(Struct, frozen=True, kw_only=True):
    """What an index says of itself; written last, so that it vouches for all before it."""

    owner: str
    """Which catalog it was written for."""
    generation: int
    """Of that catalog, when it was written."""
    embed: EmbedConfig


class Sent(Struct, frozen=True, kw_only=True):
    """What sending vectors did, or would do."""

    written: int
    """Vectors that it lacked, or had otherwise."""
    deleted: int = 0
    kept: int = 0
    """Vectors that were there as they should be, where all were compared."""


class Inspected(Struct, frozen=True, kw_only=True):
    """The index of a store, opened to be verified."""

    index: VectorIndex | None = None
    """To be closed; None where it is not opened."""
    findings: Collection[Finding] = ()
    stale: list[int] = field(default_factory=list)
    """Vectors whose metadata there is not what their files say."""
    unread: str = ""
    """What could not be looked at, and why, where it is not opened."""


class ShownHome(JsonObject, Struct, frozen=True, kw_only=True):
    """Where the vectors of a store are, and whether that works."""

    kind: str
    """As `backend list` names it."""
    address: str
    """Where the vectors are, without a password; empty where the backend cannot be opened."""
    vectors: int
    """Vectors of the store."""
    waiting: int
    """Vectors that the backend lacks, or has otherwise."""
    approximate: bool | None = None
    """Whether a search may miss some of the nearest; None where it cannot be asked."""
    filters: bool = False
    """Whether it filters by metadata itself."""
    compares: bool = False
    """Whether `verify` compares vectors without transferring them."""
    problem: str | None = None
    """Why it cannot be asked."""


class Item(Struct, frozen=True, kw_only=True):
    """One vector and what is next to it."""

    id: int
    """64 bits with sign; the same for the same text."""
    vector: "NDArray[float32]"
    """(dimension,) of length 1."""
    doc_id: str
    """The document that it is a chunk of."""
    content_hash: str
    """Of that document as it was indexed."""
    text: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON. ``files``: a list of objects, for each file that has the text, of lists of texts by
    key; what `Where` asks of. The whitelist, where there is one, limits the keys of these."""


class Hit(Struct, frozen=True, kw_only=True):
    """One vector that was found."""

    id: int
    score: float
    """Inner product with the query."""
    text: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class DocState(Struct, frozen=True, kw_only=True):
    """A document as an index has it."""

    content_hash: str
    chunk_ids: tuple[int, ...]
    """Ascending."""


class State(Struct, frozen=True, kw_only=True):
    """What an index holds."""

    stamp: Stamp | None
    """None where it was never finished."""
    docs: Mapping[str, DocState]


class Plan(Struct, frozen=True, kw_only=True):
    """How an index is updated: deletes first, then upserts, then its stamp."""

    delete: tuple[int, ...]
    upsert: tuple[str, ...]
    """Documents whose chunks are sent."""
    kept: int
    """Documents that stay as they are."""


def plan(state: Mapping[str, DocState], wanted: Mapping[str, str]) -> Plan:
    """What to change, once for every backend.

    A document that is gone loses its chunks, and so does one whose content is another now.

    Args:
        state: What the index holds.
        wanted: The content hash of each document that it should hold.
    """
    gone = [
        identifier
        for name, doc in state.items()
        if wanted.get(name) != doc.content_hash
        for identifier in doc.chunk_ids
    ]
    new = [
        name
        for name, content in wanted.items()
        if name not in state or state[name].content_hash != content
    ]
    kept = len(wanted) - len(new)
    return Plan(delete=tuple(sorted(gone)), upsert=tuple(sorted(new)), kept=kept)


class IndexBackend(Closing, VectorIndex):
    """Vectors by id, kept where the settings say.

    Opened by `filestore.index.open_backend`; closed by its user. Methods raise
    `BackendUnreachable` where a service does not answer within its time limit, and
    `BackendUnusable` where it refuses.
    """

    kind: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    _expected: tuple[str, int] | None = None

    @abstractmethod
    def load(self) -> None:
        """Connect and look what is there; make what is needed where nothing is.

        Raises:
            BackendUnreachable: No one answers.
            BackendUnusable: What is there has another shape.
            WrongDimension: It holds vectors of another length.
        """

    @abstractmethod
    def save(self, *, owner: str, generation: int) -> None:
        """Make what was changed last, and stamp it."""

    @abstractmethod
    def set_embed_config(self, embed: EmbedConfig) -> None:
        """Say whose vectors are held; before the first upsert.

        Raises:
            WrongDimension: It holds vectors of another length.
        """

    @property
    @abstractmethod
    def dim(self) -> int | None:
        """The length of its vectors; None while not known."""

    @abstractmethod
    def stamp(self) -> Stamp | None:
        """What it says of itself now; None where it was never finished."""

    @property
    @abstractmethod
    def state(self) -> State:
        """All documents it holds, asked now."""

    @abstractmethod
    def upsert(self, items: Iterable[Item], *, skip_existing: bool = True) -> int:
        """Hold items; returns how many were written.

        Args:
            items: With distinct ids.
            skip_existing: Leave an id alone that is there with the same content hash.

        Raises:
            WrongDimension: A vector has another length.
        """

    @abstractmethod
    def delete(self, ids: Collection[int]) -> int:
        """Let go of ids; unknown ones are passed over. Returns how many were held."""

    @abstractmethod
    def query(
        self,
        vector: "NDArray[float32]",
        *,
        top_k: int | None = None,
        where: Where = (),
        allowed: "NDArray[int64] | None" = None,
    ) -> list[Hit]:
        """The nearest, by score descending, then by id ascending.

        Args:
            vector: (dimension,) float32 of length 1.
            top_k: At most this many; None for all.
            where: What a hit must satisfy; only of a backend that filters, and of keys that it
                was given.
            allowed: Only these ids; None allows all.

        Raises:
            WrongDimension: The vector has another length.
            BackendSettingsWrong: `where` asks of a key that the whitelist keeps back.
            BackendForeign: Its stamp is not the expected one.
        """

    @abstractmethod
    def digests(self, ids: "NDArray[int64] | None" = None) -> Mapping[int, bytes]:
        """`digest` of the vector that lies there now, by id; of all where no ids are given."""

    @abstractmethod
    def clear(self) -> None:
        """Delete all that is held for this store, and its stamp: at once, and for good."""

    @abstractmethod
    def address(self) -> str:
        """Where it is, for people; without a password."""

    def expect(self, owner: str, generation: int) -> None:
        """Answer only as long as its stamp names this owner, and this generation or a later one.

        `query` then raises `BackendForeign` where another store wrote since, or an older backup was
        put back; a backend that cannot ask along with the query leaves it to anyone who opened it.
        """
        self._expected = owner, generation

    @property
    def takes_conditions(self) -> bool:
        """See `VectorIndex`."""
        return self.capabilities.filters

    @cached_property
    def _digests(self) -> Mapping[int, bytes]:
        """As they were when they were first asked for by who compares an index."""
        return self.digests()

    def __len__(self) -> int:
        return len(self._digests)

    def ids(self) -> "NDArray[int64]":
        """See `VectorIndex`."""
        import numpy

        return numpy.array(sorted(self._digests), dtype=numpy.int64)

    def holds(self, ids: "NDArray[int64]", vectors: "NDArray[float32]") -> "NDArray[bool_]":
        """See `VectorIndex`; compared are digests, so that vectors stay where they are."""
        import numpy

        pairs = zip(ids.tolist(), digest(vectors), strict=True)
        same = [self._digests.get(identifier) == expected for identifier, expected in pairs]
        return numpy.array(same, dtype=numpy.bool_)

    def search(
        self,
        vector: "NDArray[float32]",
        count: int,
        *,
        allowed: "NDArray[int64] | None" = None,
        where: Where = (),
    ) -> list[tuple[int, float]]:
        """See `VectorIndex`.

        Raises:
            BackendError: It does not answer, or somebody else wrote to it.
        """
        if count < 1 or (allowed is not None and not len(allowed)):
            return []
        hits = self.query(vector, top_k=count, where=where, allowed=allowed)
        return [(hit.id, hit.score) for hit in hits]


class BackendChoice(Unshown, Struct, frozen=True, kw_only=True):
    """A backend as the settings name it, and what it may use."""

    kind: str
    options: Mapping[str, object]
    """The table ``[backend_config]``; it may hold a password."""
    folder: str
    """Of the sidecar, against which relative paths are."""
    environment: Mapping[str, str]
    """Of the process: where secrets are."""


def checked_options(
    choice: BackendChoice, *, needed: Sequence[str], known: Mapping[str, type]
) -> dict[str, Any]:
    """The options of a backend, each of the type that it has.

    Raises:
        BackendKeysMissing: Some are missing; all of them are named.
        BackendSettingsWrong: One is unknown, or has another type.
    """
    missing = [key for key in needed if not choice.options.get(key)]
    if missing:
        names = " and ".join(missing)
        raise BackendKeysMissing(
            f"the backend {choice.kind} needs {names}",
            remedy=f"filestore backend set {choice.kind} "
            + " ".join(f"{key}=…" for key in missing),
        )
    for key, value in choice.options.items():
        if key not in known:
            raise BackendSettingsWrong(
                f"the backend {choice.kind} has no key {brief(key)}{did_you_mean(key, known)}"
                f": its keys are {', '.join(known)}",
            )
        if not isinstance(value, known[key]) or (known[key] is int and isinstance(value, bool)):
            raise BackendSettingsWrong(
                f"`{key}` of the backend {choice.kind} must be {_TYPES[known[key]]}"
                ": correct it: `filestore backend set`, or [backend_config] in filestore.toml",
            )
        if isinstance(value, str) and "\0" in value:
            raise BackendSettingsWrong(
                f"`{key}` of the backend {choice.kind} holds a NUL"
                ": change it under [backend_config] in filestore.toml",
            )
    return dict(choice.options)


def digest(vectors: "NDArray[float32]") -> list[bytes]:
    """The digest of each vector: MD5 of its numbers as big-endian float32.

    MD5, since PostgreSQL computes it everywhere without an extension; no one is kept out by it, it
    tells damage.

    Args:
        vectors: (n, dimension) float32.
    """
    import hashlib

    rows = vectors.astype(">f4", copy=False)
    return [hashlib.md5(row.tobytes(), usedforsecurity=False).digest() for row in rows]


def whitelisted(metadata: Mapping[str, Any], whitelist: Sequence[str]) -> Mapping[str, Any]:
    """Metadata with the keys of its files that may leave; an empty whitelist lets all of them."""
    if not whitelist or "files" not in metadata:
        return metadata
    names = set(whitelist)
    files = [{key: one[key] for key in one if key in names} for one in metadata["files"]]
    return {**metadata, "files": files}


def check_where(where: Where, whitelist: Sequence[str]) -> None:
    """Refuse a filter by what was never handed over: it would find nothing, and say so.

    Raises:
        BackendSettingsWrong: A key is not on the whitelist, and there is one.
    """
    kept_back = [key for key, _ in where if whitelist and key not in whitelist]
    if kept_back:
        raise BackendSettingsWrong(
            f"the backend cannot filter by {brief(kept_back[0])}: metadata_whitelist keeps it back",
            remedy="add it to metadata_whitelist under [backend_config] in filestore.toml",
        )


def docs_of(rows: Iterable[tuple[int, str, str]]) -> dict[str, DocState]:
    """Documents out of rows of id, document and content hash, whatever their order.

    Where chunks of one document tell different hashes, the document has none: it is sent again.
    """
    ids: dict[str, list[int]] = {}
    hashes: dict[str, str] = {}
    for identifier, name, content in rows:
        ids.setdefault(name, []).append(identifier)
        hashes[name] = content if hashes.get(name, content) == content else ""
    return {
        name: DocState(content_hash=hashes[name], chunk_ids=tuple(sorted(some)))
        for name, some in ids.items()
    }


def check_stamp(stamp: Stamp | None, expected: tuple[str, int] | None, address: str) -> None:
    """Refuse what another store wrote, and what this one wrote earlier than it remembers.

    Raises:
        BackendForeign: The owner is another than expected.
        NotSent: It is gone, or the generation an older one.
    """
    if expected is None:
        return
    owner, generation = expected
    if stamp is not None and stamp.owner != owner:
        raise BackendForeign(
            f"{address} holds the vectors of another store, or of a catalog of this one that was"
            " lost",
            remedy="name another place, or run `filestore backend set … --take-over`",
        )
    if stamp is None:
        what = "has lost the vectors that were sent to it"
        raise NotSent(f"{address} {what}", remedy="filestore sync --full")
    if stamp.generation < generation:
        raise older(address)


def older(address: str) -> NotSent:
    """What says that a backend lacks what was sent last."""
    what = "has older vectors than were sent to it"
    return NotSent(f"{address} {what}", remedy="filestore sync --full")


def check_length(found: int, expected: int | None, address: str) -> None:
    """Refuse vectors of another length.

    Raises:
        WrongDimension: They have it, or it is not known which it should be.
    """
    if expected is None:
        raise not_announced(address)
    if found != expected:
        raise WrongDimension(
            f"{address} holds vectors of {expected} numbers, found one of {found}",
            remedy="'filestore sync' rebuilds the index for the model in the settings",
        )


def not_announced(address: str) -> WrongDimension:
    """Say that `set_embed_config` was left out."""
    return WrongDimension(f"{address} holds no vectors, and their length is not known")


def satisfies(metadata: Mapping[str, Any], where: Where) -> bool:
    """Whether one file satisfies every condition; the judge of the filters of servers."""
    return not where or any(
        all(set(file.get(key, ())).intersection(values) for key, values in where)
        for file in metadata.get("files", ())
    )
