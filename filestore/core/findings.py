"""Findings: one drift or damage each. Pure values, no checks; `codes` says what a code means."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.codes import CODE_ORDER, CODES, Code, Severity
from filestore.core.paths import CHUNKS, NO_PATH, StorePath, Tree
from filestore.core.schema import JsonObject

LEFT_BY_STATS: Final = (
    "contents of files with unchanged stats",
    "rows of the embeddings",
    "vectors",
    "full-text entries",
    "the model",
)
"""What a check by stats leaves out, in words."""


class Finding(JsonObject, Struct, frozen=True, kw_only=True, eq=False):
    """One drift or damage; equal to another, and sorted, by what was found and where."""

    KEYS = "accepted code severity path detail repair safe"
    SPARSE = "accepted"

    code: str
    """What was found."""
    path: StorePath
    """The chunk file, or the damaged file or folder."""
    detail: str = ""
    """What exactly."""
    other: StorePath = NO_PATH
    """The second path of a finding about two: where a moved file was."""
    is_note: bool = False
    """Whether it is only worth knowing here, whatever its code says."""
    accepted: bool = False
    """Whether the settings accept this warning for its path."""
    tree: Tree = CHUNKS
    """That of its store, which tells what repairs it."""

    @property
    def _what(self) -> tuple[str, StorePath, str, StorePath]:
        return self.code, self.path, self.detail, self.other

    def __eq__(self, other: object) -> bool:
        """Whether it is the same, accepted or not."""
        return isinstance(other, Finding) and self._what == other._what

    def __hash__(self) -> int:
        """See `__eq__`."""
        return hash(self._what)

    def __lt__(self, other: "Finding") -> bool:
        """By code, then by path."""
        return self._what < other._what

    @property
    def meaning(self) -> Code:
        """What holds for every finding of its code."""
        return CODES[self.code]

    @property
    def severity(self) -> Severity:
        """`E` error, `W` warning, `I` note."""
        return "I" if self.is_note else CODES[self.code].severity

    @property
    def repair(self) -> str:
        """What repairs it."""
        code = CODES[self.code]
        return code.repair if self.tree.is_written else code.repair_of_documents or code.repair

    @property
    def safe(self) -> bool:
        """Whether `sync` repairs it."""
        code = CODES[self.code]
        return code.safe or (code.safe_for_documents and not self.tree.is_written)


class Behind(JsonObject, Struct, frozen=True, kw_only=True):
    """What the index lacked when an answer was made; None where no one looked at the files."""

    KEYS = "new edited gone unembedded"

    new: int | None = None
    """Files that it does not have, moved ones among them."""
    edited: int | None = None
    """Files that changed since they were indexed."""
    gone: int | None = None
    """Files that it has and that are deleted; they are no hits."""
    unembedded: int = 0
    """Texts without vector: keywords alone find them."""
    notes: tuple[str, ...] = ()
    """The same in words, but for texts without vector."""
    shows_gone: bool = False
    """Whether so much is gone that deleted files are hits, with their text as it was indexed."""


class FromIndex(JsonObject, Struct, frozen=True, kw_only=True):
    """What the index answered."""

    behind: Behind = Behind()
    """What the index lacks of the files as they are."""


def worst_first(findings: list[Finding]) -> list[Finding]:
    """Findings ordered for a person: errors first, then by code, then by path."""
    return sorted(
        findings,
        key=lambda found: ("EWI".index(found.severity), CODE_ORDER[found.code], found.path),
    )


def marked(
    findings: Iterable[Finding], accepted: Mapping[str, tuple[str, ...]]
) -> tuple[Finding, ...]:
    """Findings, with those marked that the settings accept."""
    return tuple(
        replace(one, accepted=True) if one.severity != "I" and is_clean([one], accepted) else one
        for one in findings
    )


def with_tree(findings: Iterable[Finding], tree: Tree) -> tuple[Finding, ...]:
    """Findings of a store with a tree, which tells what a person can do about them."""
    return tuple(replace(one, tree=tree) for one in findings)


NOTHING: Final = "nothing to do"
"""How a plan without steps begins."""


def not_checked_words(left_out: Sequence[str]) -> str:
    """What a check left out, as one sentence; "" where that is nothing."""
    return f"not checked: {'; '.join(left_out)}" if left_out else ""


def is_clean(
    findings: Sequence[Finding], accepted: Mapping[str, tuple[str, ...]] | None = None
) -> bool:
    """Whether nothing is found beyond notes and accepted warnings."""
    return all(
        found.severity == "I"
        or found.accepted
        or (found.severity == "W" and found.path in (accepted or {}).get(found.code, ()))
        for found in findings
    )
