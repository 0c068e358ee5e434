"""The findings that the inspector knows, for every view, each once, with the marked ones.

One rule: nothing here costs more than what changed, since there may be hundreds of thousands.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore import CODES, Finding
from filestore.browse import CHUNKS, ChunkPath, StorePath, Tree
from tui.formatting.findings import Coverage

FindingKey = tuple[str, str, str, str]
"""Code, path, other path and detail: the identity of a finding. Without the detail, two dead links
of one file would be one."""

SEVERITIES: Final = {code: about.severity for code, about in CODES.items()}
"""Code to its severity."""


def key_of(finding: Finding) -> FindingKey:
    """The identity of a finding."""
    return finding.code, finding.path, finding.other, finding.detail


class FindingIndex:
    """Findings by key and by path, and how many there are of what."""

    def __init__(self, tree: Tree = CHUNKS) -> None:
        self._tree = tree
        self.known: dict[FindingKey, Finding] = {}
        self.severities = {"E": 0, "W": 0, "I": 0}
        self.codes: dict[str, int] = {}
        self._of_path: dict[str, list[Finding]] = {}
        self._moved_from: dict[str, Finding] = {}
        self._of_resource: dict[str, dict[str, int]] = {}
        self._above: dict[str, tuple[dict[str, int], ...]] = {}
        self.sources: set[str] = set()
        """The originals of chunks that something is found of, or folders of them."""
        self.originals: Mapping[str, Sequence[str]] = {}
        """Those of them that a resource, or a folder of some, was made from; by its name."""

    @classmethod
    def of(cls, found: Iterable[Finding], tree: Tree = CHUNKS) -> "FindingIndex":
        """All of these, in their order."""
        index = cls(tree)
        for finding in found:
            index.add(finding)
        return index

    def add(self, finding: Finding) -> None:
        """Take one more, unless it is known."""
        key = key_of(finding)
        if key not in self.known:
            self.known[key] = finding
            self._of_path.setdefault(finding.path, []).append(finding)
            if finding.code.startswith("source-"):
                self.sources.add(finding.path)
            self._count(finding, 1)
            if finding.code == "moved":
                self._moved_from[finding.other] = finding

    def drop(self, key: FindingKey) -> None:
        """Take one away."""
        finding = self.known.pop(key)
        of_path = self._of_path[finding.path]
        of_path.remove(finding)
        if not of_path:
            del self._of_path[finding.path]
            self.sources.discard(finding.path)
        self._count(finding, -1)
        if finding.code == "moved":
            self._moved_from.pop(finding.other, None)

    def of_path(self, path: str) -> Sequence[Finding]:
        """What is known of a file."""
        return self._of_path.get(path, ())

    def of_row(self, path: str) -> Sequence[Finding]:
        """What is known of a file that the catalog has; also that it was moved elsewhere."""
        moved = self._moved_from.get(path)
        return (*self.of_path(path), moved) if moved is not None else self.of_path(path)

    def moved_to(self, path: str) -> str:
        """Where a file that was moved is now, or the first of a folder's; "" for none."""
        if not path.endswith("/"):
            moved = self._moved_from.get(path)
            return moved.path if moved is not None else ""
        below = (
            one.path
            for old, one in self._moved_from.items()
            if old.startswith(path) and not one.path.startswith(path)
        )
        return next(below, "").rpartition("/")[0]

    def of_resource(self, resource: str) -> dict[str, int]:
        """How many of E, W and I below the folder of a resource, or about its record or originals.

        Of a store in place: of a document, or below a folder, whose name ends with "/".
        """
        below = self._of_resource.get(resource.removesuffix("/"), {})
        counts = {"E": 0, "W": 0, "I": 0, **below}
        # In the flat layout the record is all that has the name of its resource.
        if resource.endswith(".json") or self._tree.has_sections:
            for finding in self.of_row(self._tree.store_path(ChunkPath(resource))):
                counts[finding.severity] += 1
        originals = self.originals.get(resource.removesuffix("/"), ())
        for finding in chain.from_iterable(map(self.of_path, originals)):
            counts[finding.severity] += 1
        return counts

    def inside(self, folder: str) -> Sequence[Finding]:
        """What is known of a folder and of files in it; also of what was moved away."""
        start = f"{folder}/"
        return [
            one
            for one in self.known.values()
            if folder in (one.path, one.other)
            or one.path.startswith(start)
            or one.other.startswith(start)
        ]

    def known_below(self, paths: Iterable[str]) -> set[str]:
        """The paths among these that have findings; a folder means what is in it."""
        asked = set(paths)
        folders = tuple(f"{path.rstrip('/')}/" for path in asked if path not in self._of_path)
        known = asked & self._of_path.keys()
        if folders:
            known |= {path for path in self._of_path if path.startswith(folders)}
        return known

    def _count(self, finding: Finding, by: int) -> None:
        severity = SEVERITIES[finding.code]
        self.severities[severity] += by
        self.codes[finding.code] = self.codes.get(finding.code, 0) + by
        # A moved file counts where it is, and once where the catalog has it.
        places = (finding.path, finding.other) if finding.code == "moved" else (finding.path,)
        folders = {path.rpartition("/")[0] for path in places}
        for counts in {id(one): one for path in folders for one in self._counts(path)}.values():
            counts[severity] += by

    def _counts(self, folder: str) -> tuple[dict[str, int], ...]:
        """The counts that a finding about a file in a folder belongs to."""
        if folder not in self._above:
            names = []
            if self._tree.holds(f"{folder}/"):
                parts = self._tree.chunk_path(StorePath(folder)).split("/")
                # What lies in no folder belongs to the resource without a name, and to no other.
                names = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
            zero = {"E": 0, "W": 0, "I": 0}
            self._above[folder] = tuple(
                self._of_resource.setdefault(name, dict(zero)) for name in names
            )
        return self._above[folder]


class StatsFindings(Struct, frozen=True, kw_only=True):
    """Findings by stats of the whole store, with the ones that only a verification can make."""

    index: FindingIndex
    is_kept_harmless: bool
    """Whether all that was kept is only worth knowing."""


def by_stats(
    known: Iterable[Finding], found: Iterable[Finding], tree: Tree = CHUNKS
) -> StatsFindings:
    """Merge findings by stats with earlier ones that stats cannot make.

    Args:
        known: The earlier findings.
        found: All findings by stats.
        tree: Of the store.
    """
    index = FindingIndex.of(found, tree)
    is_harmless = True
    for finding in known:
        about, is_note = finding.meaning, finding.severity == "I"
        # What goes on just now every look at stats tells anew.
        is_lasting = is_note and not (about.passing or about.of_git)
        if about.shown_by != "stat" or is_lasting:
            is_harmless = is_harmless and (is_note or key_of(finding) in index.known)
            index.add(finding)
    return StatsFindings(index=index, is_kept_harmless=is_harmless)


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
        self.index = FindingIndex()
        """All that is known, by path and by resource."""
        self._from_before: set[FindingKey] = set()

    def take_tree(self, tree: Tree) -> None:
        """Learn where the truth of the store lies."""
        self.tree = tree
        self.index = FindingIndex.of(self, tree)
        self._reshape()

    def __len__(self) -> int:
        return len(self.index.known)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.index.known.values())

    def __contains__(self, key: object) -> bool:
        return key in self.index.known

    def begin(self, level: str) -> None:
        """A verification begins: findings stay until they are found again, or until it ends."""
        self.coverage = Coverage(level=level, is_running=True)
        self._from_before = set(self.index.known)
        self.version += 1

    def is_from_before(self, key: FindingKey) -> bool:
        """Whether the running verification has not reported this finding, or not yet."""
        return key in self._from_before

    def add(self, found: Iterable[Finding]) -> None:
        """Take findings as they come."""
        for finding in found:
            self._from_before.discard(key_of(finding))
            self.index.add(finding)
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
        """Replace all findings; marks of findings that stay are kept.

        Args:
            found: All of them; very many are made into a `FindingIndex` in another thread.
            coverage: When and how thoroughly the store was checked.
            clean: Whether the store is clean; None where not all of it was checked.
        """
        originals = self.index.originals
        self.index = found if isinstance(found, FindingIndex) else FindingIndex.of(found, self.tree)
        self.index.originals = originals
        known = self.index.known
        self.marked.difference_update([key for key in self.marked if key not in known])
        self._from_before = set()
        self.coverage, self.clean = coverage, clean
        self._reshape()

    def replace_by_stats(self, found: StatsFindings, coverage: Coverage, *, clean: bool) -> None:
        """Replace the findings that stats of the whole store make; those of a verification stay.

        Valid while the catalog has the generation that was verified.
        """
        if self.coverage.level in ("full", "deep"):
            # Only what the stats show was looked at anew.
            coverage = replace(self.coverage, again=coverage.at)
        elif self.coverage.level != "status":
            coverage = replace(self.coverage, at=coverage.at, again="")
        is_clean = None if self.coverage.was_stopped else clean and found.is_kept_harmless
        self.replace(found.index, coverage, clean=is_clean)

    def replace_of(self, paths: Iterable[str], found: Iterable[Finding], *, at: str = "") -> None:
        """Replace the findings of some files, after these alone were checked again.

        Findings that only a verification of the whole store makes stay.

        Args:
            paths: The files; a folder means everything below it.
            found: All that is found of them now.
            at: The time of day.
        """
        wanted = {key_of(finding): finding for finding in found}
        for path in self.index.known_below(paths):
            for finding in tuple(self.index.of_path(path)):
                key = key_of(finding)
                if key not in wanted and finding.meaning.shown_by != "verify":
                    self.index.drop(key)
                    self._from_before.discard(key)
                    self.marked.discard(key)
        for key, finding in wanted.items():
            self._from_before.discard(key)
            self.index.add(finding)
        # A clean store stays clean if nothing was found; otherwise it is not known.
        if not self.clean or any(finding.severity != "I" for finding in wanted.values()):
            self.clean = None
        if self.coverage.at:
            self.coverage = replace(self.coverage, again=at)
        self._reshape()

    def by_code(self) -> dict[str, int]:
        """How many of each code that is found at all."""
        return {code: number for code, number in self.index.codes.items() if number}

    def marked_findings(self) -> list[Finding]:
        """The marked ones, worst first."""
        known = self.index.known
        keys = [key for key in self.marked if key in known]
        keys.sort(key=lambda key: ("EWI".index(SEVERITIES[key[0]]), key))
        return [known[key] for key in keys]

    def _reshape(self) -> None:
        self.version += 1
        self.reshaped += 1
