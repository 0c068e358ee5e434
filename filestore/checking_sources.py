"""Originals in a verification: what `status` says of them, and what only looking around finds.

What their records expect and where the store may look is `source_drift`.
"""

from filestore import source_drift
from filestore.findings import Finding
from filestore.source_drift import Reachable, SourceDrift
from filestore.subject import Level, Said, Subject


def reachable(subject: Subject) -> Reachable:
    """Where this store may look."""
    return Reachable(subject.places, everywhere=subject.may_reach_sources)


def status(subject: Subject) -> list[Finding]:
    """Originals that changed or went, told by stat; nothing where there are no records."""
    if not subject.catalog.count("documents"):
        return []
    drift = source_drift.look(subject.catalog, reachable(subject))
    return source_drift.findings(subject.catalog, drift)


def check(subject: Subject, level: Level, said: Said) -> None:
    """Add what is to be said of originals, and which of them were not looked at."""
    places, catalog = subject.places, subject.catalog
    if not catalog.count("documents"):
        return
    where = reachable(subject)
    drift = source_drift.look(catalog, where)
    new, problems = source_drift.untracked(places, catalog, where, subject.settings.ignore)
    found = source_drift.findings(catalog, drift)
    said.add(source_drift.with_places(found, new, catalog, where))
    said.add(source_drift.untracked_findings(new))
    said.checked.append("names and stats of originals")
    said.not_checked += [*_outside(drift), *problems]
    if level != "fast":
        said.add(source_drift.originals_findings(catalog))
    elif source_drift.originals(catalog):
        said.not_checked.append("whether originals that were copied have changed")


def _outside(drift: SourceDrift) -> list[str]:
    if not drift.outside:
        return []
    number = len(drift.outside)
    which = f"{number:,} originals" if number > 1 else f"the original {drift.outside[0]}"
    return [f"{which} outside the work tree: 'filestore trust' allows to read what records name"]
