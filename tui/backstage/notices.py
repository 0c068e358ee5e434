"""What the watching process is told, and what it tells. Values alone."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is watched; both absolute."""

    root: str
    catalog: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """From now on nothing is missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """The system does not tell of changes; it is looked for them from time to time."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesChanged:
    """Files or folders were written, made, moved or removed."""

    paths: frozenset[str] | None
    """Relative to the store root; None for any of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChanged:
    """The catalog has other content."""


Notice = Ready | Blind | FilesChanged | StoreChanged
