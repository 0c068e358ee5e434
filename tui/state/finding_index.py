"""Findings with everything that is counted of them, each once.

One rule: an index can be built in any thread; only its owner changes it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from filestore import CODES, Finding
from filestore.browse import CHUNKS, ChunkPath, StorePath, Tree

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
        """Folder to the counts that a finding about a file in it belongs to."""

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
        below = (one.path for old, one in self._moved_from.items() if old.startswith(path))
        return next(below, "").rpartition("/")[0]

    def of_resource(self, resource: str) -> dict[str, int]:
        """How many of E, W and I below the folder of a resource, or about its record.

        Of a store in place: of a document, or below a folder, whose name ends with "/".
        """
        below = self._of_resource.get(resource.removesuffix("/"), {})
        counts = {"E": 0, "W": 0, "I": 0, **below}
        # In the flat layout the record is all that has the name of its resource.
        if resource.endswith(".json") or not self._tree.folder:
            for finding in self.of_row(self._tree.store_path(ChunkPath(resource))):
                counts[finding.severity] += 1
        return counts

    def known_below(self, paths: Iterable[str]) -> set[str]:
        """The paths among these that have findings; a folder stands for what is in it."""
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
        for counts in {id(one): one for path in places for one in self._above_file(path)}.values():
            counts[severity] += by

    def _above_file(self, path: str) -> tuple[dict[str, int], ...]:
        folder = path.rpartition("/")[0]
        above = self._above.get(folder)
        if above is None:
            above = self._above[folder] = self._counts_above(folder)
        return above

    def _counts_above(self, folder: str) -> tuple[dict[str, int], ...]:
        if not self._tree.holds(f"{folder}/"):
            return ()
        parts = self._tree.chunk_path(StorePath(folder)).split("/")
        # What lies in no folder belongs to the resource without a name, and to no other.
        names = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
        return tuple(self._of_resource.setdefault(name, {"E": 0, "W": 0, "I": 0}) for name in names)


class StatsFindings(Struct, frozen=True, kw_only=True):
    """Findings by stats of the whole store, with those that only a verification can make."""

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
        if finding.meaning.shown_by != "stat" or finding.severity == "I":
            is_harmless = is_harmless and (
                finding.severity == "I" or key_of(finding) in index.known
            )
            index.add(finding)
    return StatsFindings(index=index, is_kept_harmless=is_harmless)
