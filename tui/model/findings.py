"""The findings that the inspector knows, for every view, each once, with those that are marked.

One rule: nothing here costs more than what changed, since there may be hundreds of thousands.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from filestore import Finding
from tui.model.told import (
    SEVERITIES,
    ByStats,
    FindingKey,
    Told,
    by_stats,
    is_only_verified,
    key_of,
)

__all__ = ["ByStats", "FindingKey", "Findings", "Looked", "Told", "by_stats", "key_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """When and how thoroughly the whole store was looked at."""

    level: str = ""
    """"status", "fast", "full" or "deep"; "" for never."""
    at: str = ""
    """The time of day."""
    again: str = ""
    """When some files alone were looked at after that; "" for not at all."""
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    is_running: bool = False
    was_stopped: bool = False
    """Whether it ended before it had looked at everything."""


class Findings:
    """Everything found, each once, in the order in which it came; and what is marked."""

    def __init__(self) -> None:
        self.looked = Looked()
        self.marked: set[FindingKey] = set()
        self.version = 0
        """Counts every change, so that lists know when to be made anew."""
        self.reshaped = 0
        """Counts the changes after which more is different than some findings at the end."""
        self.clean: bool | None = None
        """What the store says of itself, accepted findings left out; None while unknown."""
        self._told = Told()
        self._from_before: set[FindingKey] = set()

    def __len__(self) -> int:
        return len(self._told.known)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._told.known.values())

    def __contains__(self, key: object) -> bool:
        return key in self._told.known

    def keys(self) -> Collection[FindingKey]:
        """The keys of all, in the order of the findings."""
        return self._told.known.keys()

    def items(self) -> Iterable[tuple[FindingKey, Finding]]:
        """All, with their keys."""
        return self._told.known.items()

    def get(self, key: FindingKey) -> Finding | None:
        """The finding of a key; None where it is not known, or not any more."""
        return self._told.known.get(key)

    def begin(self, level: str) -> None:
        """A verification begins: what is known stays until it is told anew, or the end comes."""
        self.looked = Looked(level=level, is_running=True)
        self._from_before = set(self._told.known)
        self.version += 1

    def is_from_before(self, key: FindingKey) -> bool:
        """Whether a finding is one that the verification under way has not told, not yet."""
        return key in self._from_before

    def add(self, found: Iterable[Finding]) -> None:
        """Take findings as they come."""
        for finding in found:
            self._from_before.discard(key_of(finding))
            self._told.add(finding)
        self.version += 1

    def stop(self, *, at: str, why: str) -> None:
        """A verification ended too soon: everything stays, and it is said that this is not all."""
        self.looked = replace(
            self.looked, at=at, not_checked=(why,), is_running=False, was_stopped=True
        )
        self.clean = None
        self._reshape()

    def replace(
        self, found: Iterable[Finding] | Told, looked: Looked, *, clean: bool | None
    ) -> None:
        """Take the whole truth: what is not among it is gone; marks of what stays are kept.

        Args:
            found: All of it; of very many, made into `Told` in another thread.
            looked: When and how.
            clean: What the store says of itself; None where not all of it was looked at.
        """
        self._told = found if isinstance(found, Told) else Told.of(found)
        known = self._told.known
        self.marked.difference_update([key for key in self.marked if key not in known])
        self._from_before = set()
        self.looked, self.clean = looked, clean
        self._reshape()

    def replace_by_stats(
        self, found: Sequence[Finding] | ByStats, looked: Looked, *, clean: bool
    ) -> None:
        """Take what stats tell of the whole store; what only a verification told stays.

        That is for as long as the catalog has the generation that was verified.
        """
        whole = found if isinstance(found, ByStats) else by_stats(tuple(self), found)
        is_verified = self.looked.level != "status"
        self.replace(
            whole.told,
            replace(self.looked, at=looked.at, again="") if is_verified else looked,
            clean=None if self.looked.was_stopped else clean and whole.is_kept_harmless,
        )

    def replace_of(self, paths: Iterable[str], found: Iterable[Finding], *, at: str = "") -> None:
        """Take the truth about some files, after these alone were looked at again.

        What only a verification of the whole tells of them stays.

        Args:
            paths: The files; a folder stands for everything below it.
            found: All that is found of them now.
            at: The time of day.
        """
        wanted = {key_of(finding): finding for finding in found}
        for path in self._told.known_below(paths):
            for finding in tuple(self._told.of_path(path)):
                key = key_of(finding)
                if key not in wanted and not is_only_verified(finding):
                    self._drop(key)
        for key, finding in wanted.items():
            self._from_before.discard(key)
            self._told.add(finding)
        # What was clean stays so where nothing was found; whether the rest is, was not looked at.
        if not self.clean or any(finding.severity != "I" for finding in wanted.values()):
            self.clean = None
        if self.looked.at:
            self.looked = replace(self.looked, again=at)
        self._reshape()

    def of_path(self, path: str) -> Sequence[Finding]:
        """What is known of a file."""
        return self._told.of_path(path)

    def by_severity(self) -> dict[str, int]:
        """How many of E, W and I."""
        return dict(self._told.severities)

    def by_code(self) -> dict[str, int]:
        """How many of each code that is found at all."""
        return {code: number for code, number in self._told.codes.items() if number}

    def of_resource(self, resource: str) -> dict[str, int]:
        """How many of E, W and I below the folder of a resource, or about its record."""
        return self._told.of_resource(resource)

    def marked_findings(self) -> list[Finding]:
        """Those that are marked, worst first."""
        known = self._told.known
        keys = [key for key in self.marked if key in known]
        keys.sort(key=lambda key: ("EWI".index(SEVERITIES[key[0]]), key))
        return [known[key] for key in keys]

    def _drop(self, key: FindingKey) -> None:
        self._told.drop(key)
        self._from_before.discard(key)
        self.marked.discard(key)

    def _reshape(self) -> None:
        self.version += 1
        self.reshaped += 1
