"""Originals in a verification: what `status` says of them, and what only looking around finds.

What their records expect and where the store may look is `source_drift`.
"""

from collections.abc import Sequence

from filestore.config.layout import CATALOG
from filestore.core.findings import Finding
from filestore.core.paths import StorePath
from filestore.sidecar import originals
from filestore.sidecar.originals import Reachable, SourceDrift
from filestore.sidecar.snapshot import Level, StoreSnapshot, VerificationReport
from filestore.verify import source_drift


def reachable(snapshot: StoreSnapshot) -> Reachable:
    """Where this store may look."""
    return Reachable(snapshot.places, snapshot.originals)


def status(
    snapshot: StoreSnapshot, report: VerificationReport, drift: SourceDrift | None = None
) -> None:
    """Report source documents that changed, went or came, by stat.

    Args:
        snapshot: The store.
        report: Added to.
        drift: What a look at the recorded ones found; None to look now.
    """
    catalog = snapshot.catalog
    if not catalog.count("documents"):
        return
    where = reachable(snapshot)
    drift = drift or originals.look(catalog, where)
    new = source_drift.untracked(snapshot, where, followed_only=True)
    found = source_drift.findings(catalog, drift)
    report.add(source_drift.with_moves(found, new, catalog, where))
    report.add(problem for problem, _ in new.problems)
    report.not_checked += not_looked_at(drift.outside, where)


def check(snapshot: StoreSnapshot, level: Level, report: VerificationReport) -> None:
    """Add what is to be said of originals, and which of them were not looked at."""
    catalog = snapshot.catalog
    if not catalog.count("documents"):
        return
    where = reachable(snapshot)
    drift = originals.look(catalog, where)
    new = source_drift.untracked(snapshot, where)
    found = source_drift.findings(catalog, drift)
    report.add(source_drift.with_moves(found, new, catalog, where))
    report.add(problem for problem, is_followed in new.problems if is_followed)
    report.checked.append("names and stats of originals")
    report.not_checked += not_looked_at(drift.outside, where)
    report.not_checked += [
        f"{problem.path}: {problem.detail}"
        for problem, is_followed in new.problems
        if not is_followed
    ]
    if level != "fast":
        path = snapshot.places.part(CATALOG)
        wrong = originals.misremembered(catalog, where, drift)
        report.add(_mismatch(path, source) for source in wrong)


def _mismatch(path: StorePath, source: str) -> Finding:
    detail = f"{source} does not have the hash that is recorded for its stat"
    return Finding(code="map-mismatch", path=path, detail=detail)


def not_looked_at(sources: Sequence[str], where: Reachable) -> list[str]:
    """In words: originals that a look left out, and what has them looked at."""
    closed = {source for source in sources if not where.is_document(source)}
    outside = [source for source in sources if source not in closed]
    said = (
        (outside, " outside the work tree: allow it with 'filestore trust'"),
        ([*closed], ", hidden or of no known format: add it yourself, 'filestore add PATH'"),
    )
    return [f"{_many(sources)}{why}" for sources, why in said if sources]


def _many(sources: Sequence[str]) -> str:
    return f"{len(sources):,} originals" if len(sources) > 1 else f"the original {sources[0]}"
