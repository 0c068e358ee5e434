"""What is verified, the files of it that were read, and what one part of a verification says."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from datetime import date
from typing import TYPE_CHECKING, Final, Literal, Self

from msgspec import Struct, field

from filestore.catalog import Catalog, encode_path
from filestore.chunks.layout import Layout, look_at
from filestore.chunks.observation import INDEXED, Observation
from filestore.config.layout import Places
from filestore.config.settings import Settings
from filestore.config.user_config import Originals
from filestore.core.errors import UsageError
from filestore.core.findings import Finding
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath
from filestore.fs.disk import FileSystemClock
from filestore.fs.scan import TreeScan
from filestore.sidecar.losses import DeletedPaths, LostFiles, no_losses

if TYPE_CHECKING:
    from filestore.embed import Embedder
    from filestore.embed.cache import EmbeddingCache
    from filestore.sidecar.commit import Commit
    from filestore.sidecar.models import Models
    from filestore.sidecar.vector_home import VectorHome


KEPT_BYTES: Final = 16 * 1024 * 1024
"""So much is kept; what goes beyond is read again by who asks again."""


class SeenFiles:
    """Observations, as long as there is room for their bytes, for the next look at a file.

    One rule: it lives as long as one look at the store. A writer reads a file anew.
    """

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self.keeps = most_bytes > 0
        """Whether anything is kept at all."""
        self._room = most_bytes
        self._kept: dict[ChunkPath, Observation] = {}

    def look_at(
        self,
        places: Places,
        paths: Sequence[ChunkPath],
        layout: Layout,
        *,
        unmerged: Set[ChunkPath] = frozenset(),
    ) -> Iterator[Observation | tuple[ChunkPath, OSError]]:
        """Observe files as `chunks.layout.look_at` does, each path once."""
        unread = dict.fromkeys(path for path in paths if path not in self._kept or path in unmerged)
        fresh = look_at(places, list(unread), layout, unmerged=unmerged)
        for path in dict.fromkeys(paths):
            seen = next(fresh) if path in unread else self._kept[path]
            # What git has as unmerged is excluded only where git was asked.
            is_new = path not in unmerged and path not in self._kept
            if is_new and isinstance(seen, Observation) and 0 < len(seen.data) <= self._room:
                self._room -= len(seen.data)
                self._kept[path] = seen
            yield seen


def texts_now(
    places: Places, layout: Layout, paths: Sequence[ChunkPath]
) -> Iterator[tuple[ChunkPath, bytes, str]]:
    """Path, embedding key and text of all that would be embedded of files as they are now."""
    looks = [one for one in look_at(places, paths, layout) if isinstance(one, Observation)]
    layout.complete(looks)
    for look in looks:
        if look.state == INDEXED:
            pairs = zip(look.keys, look.texts, strict=True)
            yield from ((look.path, key, text) for key, text in pairs)


Level = Literal["fast", "full", "deep"]
LEVELS: Final[tuple[Level, ...]] = ("fast", "full", "deep")

OnFound = Callable[[Sequence[Finding]], None]
"""Called with findings as they are found."""
_AT_ONCE: Final = 64
_PATIENCE_S: Final = 0.05
"""Findings wait for others no longer than until the next one after this time."""


class StoreSnapshot(Struct, frozen=True, kw_only=True):
    """The opened parts of the store under verification."""

    places: Places
    layout: Layout
    catalog: Catalog
    embeddings: "EmbeddingCache | None"
    embedder: "Embedder | None"
    deleted: DeletedPaths
    lost: LostFiles = no_losses
    tree: TreeScan | None = None
    """The tree as it is, where that is known; None has it walked."""
    processes: int = 1
    no_model: str = ""
    """Why there is no embedder; "" also where a service was never asked for its vectors."""
    models: "Models | None" = None
    """All that the settings name; None where none is asked."""
    settings: Settings = field(default_factory=Settings)
    today: date
    """On which day dates are judged."""
    home: "VectorHome"
    """Where its vectors live."""
    unmerged: frozenset[ChunkPath] = frozenset()
    """Paths below `chunked/` that git has as unmerged, as far as it was asked."""
    originals: Originals = field(default_factory=Originals)
    """Where this user lets it look for originals, outside the work tree."""
    seen: SeenFiles = field(default_factory=lambda: SeenFiles(0))
    """Keeps the files that are read, for the plan of a repair."""

    def findings_on_models(self) -> "Iterable[Finding]":
        """What is wrong with other models than the store's own; see `Models.findings`."""
        return self.models.findings(self.catalog, self.embeddings) if self.models else ()


class Writing(Struct, frozen=True, kw_only=True):
    """A store whose writer's lock is held, for what writes files and indexes them."""

    snapshot: StoreSnapshot
    open_commit: "Callable[[], Commit]"
    """Opens a commit that takes what was written."""
    clock: FileSystemClock
    """Of the file system that the store lies on."""


class Sample(Struct, frozen=True, kw_only=True):
    """One of several slices of the files and vectors: all slices together are everything, once.

    What belongs to a slice hangs on hashes alone, so no check has to remember how far it came.
    """

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """The slice that ``2/10`` means.

        Raises:
            UsageError: It is none.
        """
        number, slash, of = text.partition("/")
        if slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
            return cls(number=int(number), of=int(of))
        raise UsageError(
            f"--sample {text}: expected N/T, the N-th of T slices",
            remedy="filestore verify --level full --sample 1/10",
        )

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def is_all(self) -> bool:
        """Whether it leaves nothing out."""
        return self.of == 1

    def has_path(self, path: ChunkPath) -> bool:
        """Whether a file is in this slice."""
        if self.of == 1:
            return True
        digest = content_hash(encode_path(path))
        return int.from_bytes(digest[:8], "big") % self.of == self.number - 1

    def has_vector(self, identifier: int) -> bool:
        """Whether a vector id, itself a hash, is in this slice."""
        return identifier % self.of == self.number - 1


class FindingStream:
    """Hands findings on as they are found, a few at a time and each once.

    One rule: what was sent may turn out to be the consequence of something worse, and is not taken
    back; the result of the verification is what counts.
    """

    def __init__(self, on_found: OnFound | None = None) -> None:
        """Send to a listener, or to none."""
        self._on_found = on_found
        self._sent: set[Finding] = set()

    @property
    def is_heard(self) -> bool:
        """Whether somebody listens."""
        return self._on_found is not None

    def passing(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings, each handed on as it is taken from here."""
        if self._on_found is None:
            yield from findings
            return
        fresh: list[Finding] = []
        since_s = time.monotonic()
        for found in findings:
            if found not in self._sent:
                self._sent.add(found)
                fresh.append(found)
            if len(fresh) >= _AT_ONCE or (fresh and time.monotonic() - since_s > _PATIENCE_S):
                self._on_found(fresh)
                fresh, since_s = [], time.monotonic()
            yield found
        if fresh:
            self._on_found(fresh)

    def tell(self, findings: Iterable[Finding]) -> None:
        """Send findings that have no other consumer."""
        for _ in self.passing(findings):
            pass


NO_LISTENER: Final = FindingStream()
"""Sends to no listener."""


class VerificationReport(Struct, kw_only=True):
    """What a verification found, and what it looked at; its parts add to it one by one."""

    findings: list[Finding] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    """What was looked at, in words."""
    not_checked: list[str] = field(default_factory=list)
    """What was not, and why."""
    unsound: set[bytes] = field(default_factory=set)
    """Embedding keys whose vector is stored whole, and wrong."""
    stream: FindingStream = NO_LISTENER
    """Hands on what is found; what is collected aside is handed on as it is joined."""

    def add(self, findings: Iterable[Finding]) -> None:
        """Take findings, each once."""
        known = set(self.findings)
        taken = dict.fromkeys(self.stream.passing(findings))
        self.findings += [found for found in taken if found not in known]

    def join(self, other: "VerificationReport") -> None:
        """Take all that another report has."""
        self.add(other.findings)
        self.checked += other.checked
        self.not_checked += other.not_checked
        self.unsound |= other.unsound

    def codes(self) -> set[str]:
        """The codes of what was found so far."""
        return {found.code for found in self.findings}
