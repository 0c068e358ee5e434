"""What a sync has to do, as a value: compared before anything is written. Changes nothing.

One rule: files that differ are named here, and read by whoever applies the plan, in batches.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import AWAITED
from filestore.config.layout import EMBEDDINGS
from filestore.core.findings import Finding
from filestore.core.paths import StorePath
from filestore.sidecar.commit import lost_vectors
from filestore.sidecar.snapshot import StoreSnapshot
from filestore.verify import drift, recorded_state, verify

if TYPE_CHECKING:
    from filestore.embed.base import Embedder


class PartRepairs(Struct, frozen=True, kw_only=True):
    """What the derived parts need."""

    steps: Mapping[str, tuple[Finding, ...]]
    """Kind of step to the findings that it repairs."""
    left: tuple[Finding, ...] = ()
    """What no step repairs here: it needs the model, or a person."""
    lost_vectors: tuple[int, ...] = ()
    """Vector ids whose embedding is gone, though the catalog counts on it."""
    is_fulltext_sound: bool = False
    """Whether the full-text index was read, and nothing is wrong with it."""

    def only(self, kinds: Collection[str]) -> Self:
        """What these kinds of steps repair; with any of them, lost vectors too."""
        chosen = {*kinds, "salvage"} if kinds and self.lost_vectors else {*kinds}
        steps = {kind: found for kind, found in self.steps.items() if kind in chosen}
        return replace(self, steps=steps, left=())


class SyncPlan(Struct, frozen=True, kw_only=True):
    """What is to be done to the sidecar."""

    drift: drift.Drift
    parts: PartRepairs
    leftovers: tuple[Finding, ...] = ()
    """Temporary files of dead writers, to be removed."""
    left: tuple[Finding, ...] = ()
    """What needs a person."""
    cut_again: tuple[Finding, ...] = ()
    """Why all documents in place are to be cut again."""
    is_rest_settled: bool = False
    """Whether a mass of missing files is back, or was forgotten."""
    is_whole: bool = False
    """Whether it is about all of the store: then originals and conflicts are looked at, too."""
    is_full: bool = False
    """Whether what deleted texts left in the full-text index goes, too."""


def plan(
    snapshot: StoreSnapshot,
    *,
    embedder: "Embedder | None",
    embeds: bool,
    forget_missing: bool = False,
    forget: Collection[StorePath] | None = None,
) -> SyncPlan:
    """Compare the tree and the derived parts with the catalog.

    Args:
        snapshot: The store, its catalog inside a transaction.
        embedder: The one that the catalog's vectors are from; None where it is not here.
        embeds: Whether texts without embedding are to be embedded.
        forget_missing: Whether a mass of missing files is meant to be gone.
        forget: Missing files of which no text is to be kept; None for all.
    """
    catalog = snapshot.catalog
    seen = detected(snapshot, forget_missing=forget_missing)
    moved = [old for old, _ in (*seen.moves, *seen.edited_moves)]
    standing = drift.standing_findings(
        snapshot.places.tree, catalog, {*seen.to_read, *seen.gone, *seen.left_out, *moved}
    )
    missing, kept = drift.missing_findings(seen), list[Finding]()
    if forget is not None and not seen.mass_missing:
        kept = [one for one in missing if one.code == "missing" and one.path not in forget]
        chosen = map(snapshot.places.tree.chunk_path, forget)
        seen = replace(seen, gone=tuple(sorted(set(chosen).intersection(seen.gone))))
    return SyncPlan(
        drift=seen,
        parts=plan_parts(snapshot, embedder=embedder, embeds=embeds),
        leftovers=tuple(one for one in standing if one.code == "leftovers"),
        left=(
            *seen.findings,
            *kept,
            *(one for one in standing if one.code != "leftovers"),
            *(one for one in missing if not one.safe),
            *drift.excluded_moves(seen),
        ),
        is_rest_settled=not seen.mass_missing and bool(catalog.meta(AWAITED)),
        cut_again=tuple(recorded_state.documents_cut_otherwise(snapshot)),
        is_whole=True,
    )


def plan_parts(
    snapshot: StoreSnapshot, *, embedder: "Embedder | None", embeds: bool
) -> PartRepairs:
    """Look at the derived parts; see `plan`."""
    found = verify.sidecar_findings(snapshot, hashes=True)
    is_fulltext_sound = not any(finding.meaning.about == "fulltext" for finding in found)
    lost = lost_vectors(snapshot.catalog, snapshot.embeddings)
    if lost:
        detail = "embeddings were gone"
        found.append(
            Finding(code="embeddings-damaged", path=snapshot.places.part(EMBEDDINGS), detail=detail)
        )
    can = {"rebuild-index": embedder is not None, "embed": embeds}
    steps: dict[str, tuple[Finding, ...]] = {}
    left: list[Finding] = []
    for finding in found:
        kind = finding.meaning.step
        if finding.code != "vector-pending" and can.get(kind, finding.safe):
            steps[kind] = (*steps.get(kind, ()), finding)
        else:
            left.append(finding)
    return PartRepairs(
        steps=steps,
        left=tuple(left),
        lost_vectors=tuple(lost),
        is_fulltext_sound=is_fulltext_sound,
    )


def detected(snapshot: StoreSnapshot, *, forget_missing: bool = False) -> drift.Drift:
    """What differs between the tree and the catalog."""
    return drift.detect(
        snapshot.places,
        snapshot.catalog,
        layout=snapshot.layout,
        deleted=snapshot.deleted,
        mass_allowed=forget_missing,
        processes=snapshot.processes,
        unmerged=snapshot.unmerged,
        lost=snapshot.lost,
        tree=snapshot.tree,
    )
