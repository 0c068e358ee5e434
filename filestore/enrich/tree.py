"""The tree of summaries that a resource is to have, made from the one it has. Pure.

Which texts belong together follows from how alike their vectors are, not by how many there are, nor
by the order in which they came or lie; a summary has the place of its texts, whatever it says. So
the whole tree is known before a word of it is written, and is the same whichever generator writes
it. One rule: a group that is there stays together, while its texts are as they were; what is new
joins one, or makes its own.

Average linkage over the nearest neighbours, merged best first (R. Sokal, C. Michener, "A
statistical method for evaluating systematic relationships", 1958): for rows of length 1 the mean
cosine between two groups is the product of their sums over the product of their sizes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from msgspec import Struct, field

from filestore.core.paths import ChunkPath

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_CHILDREN: Final = 64
"""Names that fit the frontmatter of a summary, and a person's eye."""
SAMPLE: Final = 1_500
"""Texts that show how alike those of a store are."""
_NEIGHBOURS: Final = 32
_ROWS_AT_ONCE: Final = 512
_DIGITS: Final = 5
"""Digits to which cosines are compared: the last bits differ from machine to machine."""
_LEAST: Final = 0.01
_DEFAULT: Final = 0.5
_FEWEST: Final = 3


class Threshold(Struct, frozen=True, kw_only=True):
    """The least mean cosine of texts under one summary, and where it comes from."""

    value: float
    texts: int
    """How many were looked at."""
    is_set: bool = False
    """Whether a person set it."""
    strangers: float = 0.0
    """As alike two texts are by chance: as far above the median of all pairs as the least alike
    hundredth of them is below it. What is above belongs together in some way."""
    nearest: float = 0.0
    """Half of the texts have another one that is more alike."""

    def __str__(self) -> str:
        if self.is_set:
            return f"threshold {self.value:.2f}, as set"
        if self.texts < _FEWEST:
            return f"threshold {self.value:.2f}: too few passages to choose by"
        return f"threshold {self.value:.2f}, chosen from {self.texts:,} passages"


def choose_threshold(vectors: NDArray[np.float32]) -> Threshold:
    """Between what any two texts share and what two neighbours share.

    Args:
        vectors: Of a sample of different texts, ``(n, dim) float32, rows of length 1``.
    """
    import numpy as np

    count = len(vectors)
    if count < _FEWEST:
        return Threshold(value=_DEFAULT, texts=count)
    cosines = vectors @ vectors.T
    pairs = cosines[np.triu_indices(count, 1)]
    median, least = map(float, np.quantile(pairs, (0.5, _LEAST)))
    np.fill_diagonal(cosines, -1.0)
    nearest = max(0.0, float(np.median(cosines.max(axis=1))))
    strangers = min(max(0.0, 2 * median - least), nearest)
    value = round((strangers + nearest) / 2, 2)
    return Threshold(value=value, texts=count, strangers=strangers, nearest=nearest)


class Merging:
    """Texts that belong together: groups that grow, each known by its smallest member."""

    def __init__(
        self, vectors: NDArray[np.float32], sizes: Sequence[int], *, threshold: float, window: int
    ) -> None:
        """Put every text in a group of its own.

        Args:
            vectors: ``(n, dim) float32, rows of length 1``; the same texts in the same order, which
                is not the order of arrival: sort them by their keys.
            sizes: Tokens of each.
            threshold: The least mean cosine between two groups that become one.
            window: The most tokens of a group.
        """
        import numpy as np

        self._sums = np.asarray(vectors, dtype=np.float64).copy()
        self._tokens = list(sizes)
        self._counts = [1] * len(sizes)
        self._parents = list(range(len(sizes)))
        self._is_there = [False] * len(sizes)
        self._vectors, self._threshold, self._window = vectors, threshold, window

    def groups(self, existing: Sequence[Sequence[int]] = ()) -> list[list[int]]:
        """Places in ascending order; what is alone is in none.

        Args:
            existing: Groups that are there already, and stay together.
        """
        for members in existing:
            for member in members[1:]:
                self._join(self._root(members[0]), self._root(member))
            self._is_there[self._root(members[0])] = True
        for first, second in _pairs(self._vectors, self._threshold):
            # Two groups become one where they are alike and small enough.
            one, other = self._root(first), self._root(second)
            count = self._counts[one] + self._counts[other]
            tokens = self._tokens[one] + self._tokens[other]
            if one == other or (self._is_there[one] and self._is_there[other]):
                continue
            if count <= MOST_CHILDREN and tokens <= self._window:
                product = float(self._sums[one] @ self._sums[other])
                mean = round(product / (self._counts[one] * self._counts[other]), _DIGITS)
                if mean >= self._threshold:
                    self._join(one, other)
        found: dict[int, list[int]] = {}
        for place in range(len(self._parents)):
            found.setdefault(self._root(place), []).append(place)
        return [members for members in found.values() if len(members) > 1]

    def _root(self, place: int) -> int:
        while self._parents[place] != place:
            self._parents[place] = self._parents[self._parents[place]]
            place = self._parents[place]
        return place

    def _join(self, one: int, other: int) -> None:
        if one == other:
            return
        one, other = min(one, other), max(one, other)
        self._parents[other] = one
        self._is_there[one] = self._is_there[one] or self._is_there[other]
        self._sums[one] += self._sums[other]
        self._counts[one] += self._counts[other]
        self._tokens[one] += self._tokens[other]


def _pairs(vectors: NDArray[np.float32], threshold: float) -> Iterator[tuple[int, int]]:
    """Pairs of neighbours that are alike enough, the most alike first, ties by place."""
    import numpy as np

    count = len(vectors)
    firsts, seconds, cosines = [], [], []
    for start in range(0, count, _ROWS_AT_ONCE):
        block = np.round(vectors[start : start + _ROWS_AT_ONCE] @ vectors.T, _DIGITS)
        rows = np.arange(len(block))
        block[rows, start + rows] = -2.0
        nearest = min(_NEIGHBOURS, count - 1)
        if nearest < 1:
            break
        # Among equals the first: which of them a partition picks is not defined.
        order = np.argpartition(-block, nearest - 1, axis=1)[:, :nearest]
        found = np.take_along_axis(block, order, axis=1)
        alike = found >= threshold
        firsts.append(np.repeat(rows + start, nearest).reshape(len(block), nearest)[alike])
        seconds.append(order[alike])
        cosines.append(found[alike])
    if not firsts:
        return
    first, second, cosine = map(np.concatenate, (firsts, seconds, cosines))
    low, high = np.minimum(first, second), np.maximum(first, second)
    order = np.lexsort((high, low, -cosine))
    before = (-1, -1)
    for place in order.tolist():
        pair = int(low[place]), int(high[place])
        if pair != before:
            yield pair
        before = pair


DEPTH: Final = 5
"""Levels that are grouped; one summary of all may come on top."""
SUMMARY_TOKENS: Final = 160
"""What a summary is counted as before it is written."""
_LOYALTY: Final = 0.05
"""A text that changed stays in its group though it is so much less alike than the threshold."""


class Leaf(Struct, frozen=True, kw_only=True):
    """A text at the bottom: of a chunk file, or of a section in place."""

    path: ChunkPath
    key: bytes
    """Its embedding key: 32 bytes."""
    tokens: int
    level: ClassVar[int] = 0


class PlannedSummary(Struct, kw_only=True, eq=False):
    """A summary that is to be there."""

    level: int
    members: tuple[Member, ...]
    """In reading order, two at least."""
    place: int
    """The place of its first text in reading order."""
    key: bytes
    """Of what is below it, in any order."""
    path: ChunkPath | None = None
    """Of the file that is there for it; None for a new one."""


Member: TypeAlias = Leaf | PlannedSummary


class Present(Struct, frozen=True, kw_only=True):
    """A summary that is there."""

    path: ChunkPath
    level: int
    children: Mapping[ChunkPath, frozenset[bytes]]
    """Path to the keys of the texts that were read."""


class TreePlan(Struct, kw_only=True):
    """What is to be there, and what is there for nothing."""

    summaries: list[PlannedSummary] = field(default_factory=list)
    """Each behind its members."""
    superfluous: list[ChunkPath] = field(default_factory=list)

    @property
    def root(self) -> PlannedSummary | None:
        """The one over all, which is always the last; None where there is no summary."""
        return self.summaries[-1] if self.summaries else None


class TreeLimits(Struct, frozen=True, kw_only=True):
    """How large a group may be, how alike its texts have to be, how high the tree."""

    threshold: float
    window: int
    """Tokens."""
    depth: int = DEPTH


class _Node:
    """A text or a summary that has no parent yet."""

    __slots__ = ("key", "member", "place", "sum", "tokens")

    def __init__(
        self, member: Member, place: int, key: bytes, total: NDArray[np.float64], tokens: int
    ) -> None:
        self.member, self.place, self.key = member, place, key
        self.sum = total
        self.tokens = tokens


class TreePlanning:
    """Plans the tree over some texts."""

    def __init__(
        self,
        leaves: Sequence[Leaf],
        vectors: NDArray[np.float32],
        present: Sequence[Present],
        limits: TreeLimits,
        *,
        root: ChunkPath | None = None,
    ) -> None:
        """Plan nothing yet.

        Args:
            leaves: In reading order, each text once.
            vectors: Theirs, ``(n, dim) float32, rows of length 1``.
            present: The summaries that are there.
            limits: What a group may be.
            root: Which of `present` is the one over all; it is taken apart and put together anew.
        """
        import numpy as np

        rows = np.asarray(vectors, dtype=np.float64)
        self._limits, self._root = limits, root
        self._present = sorted(present, key=lambda one: one.path)
        self._used: set[ChunkPath] = set()
        self._read = {key for one in present for keys in one.children.values() for key in keys}
        self._nodes = [
            _Node(leaf, place, leaf.key, rows[place], leaf.tokens)
            for place, leaf in enumerate(leaves)
        ]
        self._result = TreePlan()

    def plan(self) -> TreePlan:
        """The tree."""
        limits = self._limits
        for level in range(1, limits.depth + 1):
            if len(self._nodes) < 2 or not self._group(level, limits.threshold, limits.window):
                break
        while len(self._nodes) > MOST_CHILDREN:
            # Nothing is alike any more, and there are too many for one summary. What is read of
            # each is cut to the window.
            self._group(0, -1.0, len(self._nodes) * max(node.tokens for node in self._nodes))
        if len(self._nodes) > 1:
            self._nodes = [self._add(self._nodes, None)]
        top = self._result.root
        if top is not None and top.path is None and self._root not in self._used:
            top.path = self._root
        kept = self._used | ({top.path} if top is not None and top.path else set())
        self._result.superfluous = [one.path for one in self._present if one.path not in kept]
        return self._result

    def _group(self, level: int, threshold: float, window: int) -> bool:
        """Put nodes under summaries of one level; whether there was any group."""
        import numpy as np

        # Sorted by what they say: nothing depends on their places.
        self._nodes.sort(key=lambda node: (node.key, node.place))
        totals = np.array([node.sum for node in self._nodes])
        lengths = np.linalg.norm(totals, axis=1, keepdims=True)
        vectors = (totals / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
        there = self._groups_there(level, vectors) if threshold > -1 else {}
        sizes = [node.tokens for node in self._nodes]
        merging = Merging(vectors, sizes, threshold=threshold, window=window)
        groups = merging.groups(existing=list(there.values()))
        names = {place: path for path, places in there.items() for place in places}
        nodes = self._nodes
        grouped = {place for group in groups for place in group}
        self._nodes = [node for place, node in enumerate(nodes) if place not in grouped]
        for group in sorted(groups, key=lambda group: min(nodes[place].place for place in group)):
            path = next((names[place] for place in group if place in names), None)
            self._nodes.append(self._add([nodes[place] for place in group], path))
        return bool(groups)

    def _add(self, nodes: Sequence[_Node], path: ChunkPath | None) -> _Node:
        nodes = sorted(nodes, key=lambda node: node.place)
        if path is None and self._root is not None and self._root not in self._used:
            # It is the root that shares half with what the summary over all was made from. Where a
            # run was broken off, that is the only one that is there, and none over all.
            children = next(one.children for one in self._present if one.path == self._root)
            both = sum(node.member.path in children for node in nodes)
            if 2 * both >= max(len(nodes), len(children)):
                path = self._root
        wanted = PlannedSummary(
            level=1 + max(node.member.level for node in nodes),
            members=tuple(node.member for node in nodes),
            place=nodes[0].place,
            key=hashlib.sha256(b"".join(sorted(node.key for node in nodes))).digest(),
            path=path,
        )
        if path is not None:
            self._used.add(path)
        self._result.summaries.append(wanted)
        total = sum((node.sum for node in nodes[1:]), nodes[0].sum)
        return _Node(wanted, wanted.place, wanted.key, total, SUMMARY_TOKENS)

    def _groups_there(self, level: int, vectors: NDArray[np.float32]) -> dict[ChunkPath, list[int]]:
        """The summaries of a level to the nodes that still belong to them, two at least."""
        by_path: dict[ChunkPath, list[int]] = {}
        by_key: dict[bytes, int] = {}
        for place, node in enumerate(self._nodes):
            path = node.member.path
            if path is not None:
                by_path.setdefault(path, []).append(place)
            if isinstance(node.member, Leaf):
                by_key.setdefault(node.key, place)
        claimed: set[int] = set()
        found: dict[ChunkPath, list[int]] = {}
        for one in self._present:
            if one.level != level or one.path == self._root or one.path in self._used:
                continue
            places = self._members(one, by_path, by_key, vectors, claimed)
            if len(places) > 1:
                claimed.update(places)
                found[one.path] = places
        return found

    def _members(
        self,
        one: Present,
        by_path: Mapping[ChunkPath, Sequence[int]],
        by_key: Mapping[bytes, int],
        vectors: NDArray[np.float32],
        claimed: set[int],
    ) -> list[int]:
        sure: list[int] = []
        changed: list[int] = []
        for path, keys in one.children.items():
            is_whole = all(key in by_key for key in keys)
            for place in by_path.get(path, ()):
                node = self._nodes[place]
                if isinstance(node.member, PlannedSummary) or node.key in keys:
                    sure.append(place)
                elif node.key not in self._read and not is_whole:
                    # A document in place has many sections. One that another was made from stays
                    # with that, and one too many did not take the place of any.
                    changed.append(place)
            if path not in by_path:
                # A text that was moved to another file is the text it was.
                sure += [by_key[key] for key in keys if key in by_key]
        members = [place for place in dict.fromkeys(sure) if place not in claimed]
        for place in dict.fromkeys(changed):
            others = vectors[members] if members else None
            if place in claimed or others is None or place in members:
                continue
            if float((others @ vectors[place]).mean()) >= self._limits.threshold - _LOYALTY:
                members.append(place)
        return members[:MOST_CHILDREN]


def find_root(present: Iterable[Present]) -> ChunkPath | None:
    """The summary that is over all others, if there is one: no child of another, highest."""
    there = sorted(present, key=lambda one: (-one.level, one.path))
    below = {path for one in there for path in one.children}
    tops = [one for one in there if one.path not in below]
    if not tops or (len(tops) > 1 and tops[0].level == tops[1].level):
        return None
    return tops[0].path
