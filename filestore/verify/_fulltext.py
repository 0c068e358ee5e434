"""The full-text index: its bytes against its stamp, its ids, and whether files answer their words.

One rule: nothing of it is parsed before every byte matched the stamp.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from filestore.catalog import Catalog, file_of_text, part_of_text, queries
from filestore.chunks import kept
from filestore.config.layout import FULLTEXT
from filestore.core.findings import Finding
from filestore.core.paths import Tree
from filestore.core.safe_text import listed
from filestore.sidecar import fulltext_file
from filestore.sidecar.names import entries, named_by
from filestore.sidecar.snapshot import Level, Sample, StoreSnapshot, VerificationReport

if TYPE_CHECKING:
    from filestore.fulltext import Reader

MOST_FILES: Final = 100
"""So many files are looked up by their words below the deepest level."""
_NAMED: Final = 10


def check(
    snapshot: StoreSnapshot, level: Level, sample: Sample, report: VerificationReport
) -> None:
    """Read the index and hold it against the catalog's files."""
    from filestore.fulltext import FulltextDamaged, FulltextMissing, Reader

    # What sizes have shown is not reported again by hashes.
    found = fulltext_file.findings(snapshot.places, snapshot.catalog, hashes=True)
    report.add(finding for finding in found if finding.code not in report.codes())
    path = snapshot.places.part(FULLTEXT)
    reported = {one.code for one in report.findings if one.path == path}
    stamp = None if reported else fulltext_file.own_stamp(snapshot.places, snapshot.catalog)
    if stamp is None:
        if reported:
            report.not_checked.append(f"full-text entries ({', '.join(reported)})")
        return
    try:
        with Reader.open(snapshot.places.fulltext, stamp) as reader:
            _check_entries(snapshot, reader, level, sample, report)
    except (FulltextDamaged, FulltextMissing) as error:
        detail = f"{error.message} ({error.detail})" if error.detail else error.message
        report.add([Finding(code="fulltext-damaged", path=path, detail=detail)])
        report.not_checked.append("full-text entries, since the index cannot be read")


def _check_entries(
    snapshot: StoreSnapshot,
    reader: "Reader",
    level: Level,
    sample: Sample,
    report: VerificationReport,
) -> None:
    catalog, tree = snapshot.catalog, snapshot.places.tree
    ids, held = queries.text_ids(catalog), reader.ids()
    if lacking := [one for one in ids if one not in held]:
        report.add(_told(tree, catalog, lacking, "it is not in the index"))
    if foreign := held.difference(ids):
        detail = f"{len(foreign):,} of its ids are no file's, first {min(foreign)}"
        report.add([Finding(code="fulltext-mismatch", path=tree.part(FULLTEXT), detail=detail)])
    report.checked.append("every full-text id")
    looked_up = [one for one in ids if one in held]
    if not sample.is_all:
        paths = catalog.indexed_paths([file_of_text(one) for one in looked_up])
        looked_up = [one for one in looked_up if sample.has_path(paths[file_of_text(one)])]
    if level != "deep":
        looked_up = looked_up[:: -(-len(looked_up) // MOST_FILES) or 1]
    silent = [one for one in looked_up if not _answers(catalog, reader, one)]
    report.add(_told(tree, catalog, silent, "its own words do not find it"))
    kind = "sections" if snapshot.layout.has_sections else "files"
    number, among = len(looked_up), f"{len(ids):,} {kind} in the full-text index"
    report.checked.append(f"the words of {number:,} of {among}")
    if number < len(ids):
        report.not_checked.append(f"the words of {len(ids) - number:,} of {among}")


def _answers(catalog: Catalog, reader: "Reader", text: int) -> bool:
    """Whether the index holds a text under its own words; damaged words are reported."""
    file = file_of_text(text)
    data, row = catalog.content(file), catalog.files_by_id([file])[file]
    (named,) = named_by(catalog, [row])
    try:
        made = list(entries(file, row.path, kept.read(data or b""), named))[part_of_text(text)]
    except (ValueError, IndexError):
        return True
    return reader.holds(made.id, (made.title, made.text, made.said))


def _told(tree: Tree, catalog: Catalog, files: Sequence[int], detail: str) -> Iterator[Finding]:
    paths = sorted(catalog.indexed_paths([file_of_text(one) for one in files]).values())
    if len(paths) > _NAMED:
        counted = f"{len(paths):,} files ({listed(map(tree.store_path, paths))}): {detail}"
        yield Finding(code="fulltext-mismatch", path=tree.part(FULLTEXT), detail=counted)
        return
    for path in map(tree.store_path, paths):
        yield Finding(code="fulltext-mismatch", path=path, other=tree.part(FULLTEXT), detail=detail)
