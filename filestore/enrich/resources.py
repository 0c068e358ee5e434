"""The resources that are enriched, some at a time, each with the tree that it is to have.

Reads the store, writes nothing. One rule: what is read together is of one generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from filestore.catalog import summaries as summary_rows
from filestore.core.progress import OnProgress, Progress
from filestore.enrich.material import (
    STORE_TREE,
    ChunkFile,
    Material,
    gather,
    gather_across,
    gather_document,
)
from filestore.enrich.plan import Wish
from filestore.enrich.tree import (
    SAMPLE,
    Threshold,
    TreeLimits,
    TreePlan,
    TreePlanning,
    choose_threshold,
    find_root,
)
from filestore.sidecar.snapshot import StoreSnapshot
from filestore.sidecar.summary_tree import SummaryTree

if TYPE_CHECKING:
    from filestore.sidecar.session import Parts

WAVE: Final = 5_000
"""Chunks after which no more resources are taken together."""


class PlannedResource(Struct, eq=False):
    """A resource, and the summaries that it is to have."""

    material: Material
    tree: TreePlan
    files: dict[int, ChunkFile] = field(default_factory=dict)
    """By identity of the wanted summary: as it is, or as it was just made."""
    taken: set[str] = field(default_factory=set)


class Resources:
    """The resources of one run."""

    def __init__(
        self,
        parts: Parts,
        wish: Wish,
        *,
        window: int,
        notes: list[str],
        on_progress: OnProgress,
    ) -> None:
        """Read nothing yet.

        Args:
            parts: Of the store.
            wish: What is asked for.
            window: How many tokens the generator reads at once.
            notes: Takes what a person should know.
            on_progress: Called with the number of chunks that were read.
        """
        self._parts, self._wish, self._window = parts, wish, window
        self._notes, self._on_progress = notes, on_progress
        self.threshold: Threshold | None = None
        self._tree: tuple[int, SummaryTree] | None = None

    def waves(self, flush: Callable[[], None] | None = None) -> Iterator[list[PlannedResource]]:
        """The resources, some at a time, each batch of one generation.

        Args:
            flush: Writes what waits: what resources have on top is read from the index.
        """
        with self._parts.looking(sound=True) as (snapshot, _):
            names = self._names(snapshot)
            chosen = snapshot.settings.generator.threshold
            if chosen is not None:
                self.threshold = Threshold(value=chosen, texts=0, is_set=True)
            elif self._wish.summaries:
                self.threshold = self._choose(snapshot)
            value = self.threshold.value if self.threshold else 1.0
            limits = TreeLimits(threshold=value, window=self._window)
        while names:
            wave: list[PlannedResource] = []
            size = 0
            with self._parts.looking(sound=True) as (snapshot, _):
                tree = self._tree_of(snapshot)
                while names and size < WAVE:
                    take = gather_document if snapshot.layout.has_sections else gather
                    found = take(snapshot, tree, names.pop(0))
                    size += max(len(found.chunks), len(found.leaves))
                    wave.append(self._planned(found, limits))
                    self._on_progress(Progress(stage="reading", done=size, total=None))
            yield wave
        if self._wants_across():
            if flush is not None:
                flush()
            with self._parts.looking(sound=True) as (snapshot, _):
                tree = self._tree_of(snapshot)
                material = gather_across(snapshot, tree)
            yield [self._planned(material, limits)]

    def _tree_of(self, snapshot: StoreSnapshot) -> SummaryTree:
        """The summaries that are there, read once a generation."""
        generation = snapshot.catalog.generation
        if self._tree is None or self._tree[0] != generation:
            self._tree = generation, SummaryTree(summary_rows.all_children(snapshot.catalog))
        return self._tree[1]

    def _wants_across(self) -> bool:
        """Whether a tree over the store is asked for, or is there and may be out of date."""
        if not self._wish.summaries or not self._parts.layout.has_folders:
            return False
        with self._parts.looking(sound=True) as (snapshot, _):
            is_there = bool(snapshot.catalog.files_of(STORE_TREE))
        return self._wish.across or (is_there and not self._wish.resources)

    def _names(self, snapshot: StoreSnapshot) -> list[str]:
        catalog = snapshot.catalog
        names = [name for name, _, n in catalog.resources() if n and name != STORE_TREE]
        if self._wish.resources:
            names = list(self._wish.resources)
        if not self._wish.refresh:
            return names
        tree = self._tree_of(snapshot)
        loose = [path for path, _ in summary_rows.questions_out_of_step(catalog)]
        stale = summary_rows.resources_of(catalog, [*tree.stale_paths(), *loose])
        stale |= summary_rows.with_stale_questions(catalog)
        stale |= summary_rows.texts_in_none(catalog).keys()
        return [name for name in names if name in stale]

    def _choose(self, snapshot: StoreSnapshot) -> Threshold:
        import numpy as np

        keys = summary_rows.sample_of_keys(snapshot.catalog, SAMPLE)
        if snapshot.embedder is None or snapshot.embeddings is None:
            return choose_threshold(np.zeros((0, 1), dtype=np.float32))
        vectors, found = snapshot.embeddings.get(snapshot.embedder.fingerprint, keys)
        return choose_threshold(vectors[found])

    def _planned(self, material: Material, limits: TreeLimits) -> PlannedResource:
        if material.without_vector:
            texts = (
                "1 text" if material.without_vector == 1 else f"{material.without_vector:,} texts"
            )
            self._notes.append(
                f"{material.resource or 'the top folder'}: {texts} without a vector, so its"
                " summaries stay as they are; 'filestore sync' embeds them"
            )
        is_wanted = self._wish.summaries and (material.present or not self._wish.refresh)
        tree = TreePlan()
        # Which texts belong together is known only of all of them.
        if is_wanted and not material.without_vector:
            root = find_root(material.present)
            tree = TreePlanning(
                material.leaves, material.vectors, material.present, limits, root=root
            ).plan()
        return PlannedResource(material, tree)
