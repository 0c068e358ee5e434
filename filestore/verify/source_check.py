"""Originals in a verification: what `status` says of them, and what only looking around finds.

What their records expect and where the store may look is `source_drift`.
"""

from filestore.config.layout import CATALOG
from filestore.core.findings import Finding
from filestore.sidecar import originals
from filestore.sidecar.originals import SourceDrift
from filestore.sidecar.reachable import Reachable
from filestore.sidecar.snapshot import Level, StoreSnapshot, VerificationReport
from filestore.verify import source_drift


def reachable(snapshot: StoreSnapshot) -> Reachable:
    """Where this store may look."""
    return Reachable(snapshot.places, everywhere=snapshot.may_reach_sources)


def status(snapshot: StoreSnapshot) -> list[Finding]:
    """Source documents that changed or are gone, by stat; nothing where there are no records."""
    if not snapshot.catalog.count("documents"):
        return []
    drift = originals.look(snapshot.catalog, reachable(snapshot))
    return source_drift.findings(snapshot.catalog, drift)


def check(snapshot: StoreSnapshot, level: Level, report: VerificationReport) -> None:
    """Add what is to be said of originals, and which of them were not looked at."""
    places, catalog = snapshot.places, snapshot.catalog
    if not catalog.count("documents"):
        return
    where = reachable(snapshot)
    drift = originals.look(catalog, where)
    new, problems = source_drift.untracked(places, catalog, where, snapshot.settings.ignore)
    found = source_drift.findings(catalog, drift)
    report.add(source_drift.with_places(found, new, catalog, where))
    report.add(source_drift.untracked_findings(new))
    report.checked.append("names and stats of originals")
    report.not_checked += [*_outside(drift), *problems]
    if level != "fast":
        report.add(source_drift.originals_findings(catalog))
        report.add(map(_mismatch, originals.misremembered(catalog, where, drift)))
    elif source_drift.originals(catalog):
        report.not_checked.append("whether originals that were copied have changed")


def _mismatch(source: str) -> Finding:
    detail = f"{source} does not have the hash that is recorded for its stat"
    return Finding(code="map-mismatch", path=CATALOG, detail=detail)


def _outside(drift: SourceDrift) -> list[str]:
    if not drift.outside:
        return []
    number = len(drift.outside)
    which = f"{number:,} originals" if number > 1 else f"the original {drift.outside[0]}"
    return [f"{which} outside the work tree: 'filestore trust' allows to read what records name"]
