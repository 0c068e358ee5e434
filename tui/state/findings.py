"""The findings that the inspector knows, for every view, each once, with those that are marked.

One rule: nothing here costs more than what changed, since there may be hundreds of thousands.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from filestore import Finding
from filestore.browse import CHUNKS, Tree
from tui.state.finding_index import (
    SEVERITIES,
    FindingIndex,
    FindingKey,
    StatsFindings,
    by_stats,
    key_of,
)


class Coverage(Struct, frozen=True, kw_only=True):
    """When and how thoroughly the whole store was checked."""

    level: str = ""
    """"status", "fast", "full" or "deep"; "" for never."""
    at: str = ""
    """The time of day."""
    again: str = ""
    """When some files alone were checked after that; "" for never."""
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    is_running: bool = False
    was_stopped: bool = False
    """Whether it ended before it had checked everything."""


class Findings:
    """Everything found, each once, in the order in which it came; and what is marked."""

    def __init__(self) -> None:
        self.coverage = Coverage()
        self.marked: set[FindingKey] = set()
        self.version = 0
        """Counts every change, so that lists know when to rebuild."""
        self.reshaped = 0
        """Counts the changes other than findings added at the end."""
        self.clean: bool | None = None
        """Whether the store is clean, accepted findings excluded; None while unknown."""
        self.tree = CHUNKS
        """Where the truth of the store lies, as far as that is known yet."""
        self._index = FindingIndex()
        self._from_before: set[FindingKey] = set()

    def take_tree(self, tree: Tree) -> None:
        """Learn where the truth of the store lies."""
        self.tree = tree
        self._index = FindingIndex.of(self, tree)
        self._reshape()

    def __len__(self) -> int:
        return len(self._index.known)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._index.known.values())

    def __contains__(self, key: object) -> bool:
        return key in self._index.known

    def keys(self) -> Collection[FindingKey]:
        """The keys of all, in the order of the findings."""
        return self._index.known.keys()

    def items(self) -> Iterable[tuple[FindingKey, Finding]]:
        """All, with their keys."""
        return self._index.known.items()

    def get(self, key: FindingKey) -> Finding | None:
        """The finding of a key; None where it is not known, or not any more."""
        return self._index.known.get(key)

    def begin(self, level: str) -> None:
        """A verification begins: findings stay until they are found again, or until it ends."""
        self.coverage = Coverage(level=level, is_running=True)
        self._from_before = set(self._index.known)
        self.version += 1

    def is_from_before(self, key: FindingKey) -> bool:
        """Whether the running verification has not reported this finding, or not yet."""
        return key in self._from_before

    def add(self, found: Iterable[Finding]) -> None:
        """Take findings as they come."""
        for finding in found:
            self._from_before.discard(key_of(finding))
            self._index.add(finding)
        self.version += 1

    def stop(self, *, at: str, why: str) -> None:
        """A verification ended too soon: everything stays, marked as incomplete."""
        self.coverage = replace(
            self.coverage, at=at, not_checked=(why,), is_running=False, was_stopped=True
        )
        self.clean = None
        self._reshape()

    def replace(
        self, found: Iterable[Finding] | FindingIndex, coverage: Coverage, *, clean: bool | None
    ) -> None:
        """Replace all findings; marks of those that stay are kept.

        Args:
            found: All of them; very many are made into a `FindingIndex` in another thread.
            coverage: When and how thoroughly the store was checked.
            clean: Whether the store is clean; None where not all of it was checked.
        """
        self._index = (
            found if isinstance(found, FindingIndex) else FindingIndex.of(found, self.tree)
        )
        known = self._index.known
        self.marked.difference_update([key for key in self.marked if key not in known])
        self._from_before = set()
        self.coverage, self.clean = coverage, clean
        self._reshape()

    def replace_by_stats(
        self, found: Sequence[Finding] | StatsFindings, coverage: Coverage, *, clean: bool
    ) -> None:
        """Replace the findings that stats of the whole store make; those of a verification stay.

        Valid while the catalog has the generation that was verified.
        """
        whole = (
            found if isinstance(found, StatsFindings) else by_stats(tuple(self), found, self.tree)
        )
        if self.coverage.level in ("full", "deep"):
            # Only what the stats show was looked at anew.
            coverage = replace(self.coverage, again=coverage.at)
        elif self.coverage.level != "status":
            coverage = replace(self.coverage, at=coverage.at, again="")
        self.replace(
            whole.index,
            coverage,
            clean=None if self.coverage.was_stopped else clean and whole.is_kept_harmless,
        )

    def replace_of(self, paths: Iterable[str], found: Iterable[Finding], *, at: str = "") -> None:
        """Replace the findings of some files, after these alone were checked again.

        Those that only a verification of the whole store makes stay.

        Args:
            paths: The files; a folder stands for everything below it.
            found: All that is found of them now.
            at: The time of day.
        """
        wanted = {key_of(finding): finding for finding in found}
        for path in self._index.known_below(paths):
            for finding in tuple(self._index.of_path(path)):
                key = key_of(finding)
                if key not in wanted and finding.meaning.shown_by != "verify":
                    self._index.drop(key)
                    self._from_before.discard(key)
                    self.marked.discard(key)
        for key, finding in wanted.items():
            self._from_before.discard(key)
            self._index.add(finding)
        # A clean store stays clean if nothing was found; otherwise it is not known.
        if not self.clean or any(finding.severity != "I" for finding in wanted.values()):
            self.clean = None
        if self.coverage.at:
            self.coverage = replace(self.coverage, again=at)
        self._reshape()

    def of_path(self, path: str) -> Sequence[Finding]:
        """What is known of a file."""
        return self._index.of_path(path)

    def of_row(self, path: str) -> Sequence[Finding]:
        """What is known of a file that the catalog has; also that it was moved elsewhere."""
        return self._index.of_row(path)

    def moved_to(self, path: str) -> str:
        """Where a file that was moved is now, or the first of a folder's; "" for none."""
        return self._index.moved_to(path)

    def by_severity(self) -> dict[str, int]:
        """How many of E, W and I."""
        return dict(self._index.severities)

    def by_code(self) -> dict[str, int]:
        """How many of each code that is found at all."""
        return {code: number for code, number in self._index.codes.items() if number}

    def of_resource(self, resource: str) -> dict[str, int]:
        """How many of E, W and I below the folder of a resource, or about its record."""
        return self._index.of_resource(resource)

    def marked_findings(self) -> list[Finding]:
        """Those that are marked, worst first."""
        known = self._index.known
        keys = [key for key in self.marked if key in known]
        keys.sort(key=lambda key: ("EWI".index(SEVERITIES[key[0]]), key))
        return [known[key] for key in keys]

    def _reshape(self) -> None:
        self.version += 1
        self.reshaped += 1
