"""Links of documents in place to files that are not there.

A `[[name]]` that no note has is ordinary among notes: it waits to be written. One rule: only a path
that is written out, as Markdown has it, can be wrong; and a file that is on disk is there, whether
or not it is indexed.
"""

import os
from collections.abc import Iterator

from filestore.catalog import decode_path, queries
from filestore.chunks import document
from filestore.chunks.link_targets import Names, written_path
from filestore.core.findings import Finding
from filestore.core.paths import ChunkPath
from filestore.extract.links import Link
from filestore.sidecar.snapshot import StoreSnapshot, VerificationReport


def check(snapshot: StoreSnapshot, report: VerificationReport) -> None:
    """Hold the links of documents as they were indexed against the files that are there."""
    if not snapshot.layout.is_in_place:
        return
    report.add(_dangling(snapshot))
    report.checked.append("the paths that links of documents have")


def _dangling(snapshot: StoreSnapshot) -> Iterator[Finding]:
    catalog, places = snapshot.catalog, snapshot.places
    names = Names(map(decode_path, queries.all_paths(catalog)))
    for path, data in queries.contents_with_links(catalog):
        note = decode_path(path)
        for link, where in _written_out(data, note):
            if names.resolve(link, note) is not None:
                continue
            if where and os.path.lexists(os.path.join(places.chunked, where)):
                continue
            line = f" in line {link.line}" if link.line else ""
            target = where or link.target
            yield Finding(
                code="link-dangling",
                path=places.tree.store_path(note),
                detail=f"links{line} to {target}, which is not there",
            )


def _written_out(data: bytes, note: ChunkPath) -> Iterator[tuple[Link, ChunkPath]]:
    """The links of a document that are paths, each with the path from the root, "" outside it."""
    if not document.is_document(data):
        return
    try:
        links = document.decode(data).links
    except document.DocumentDamagedError:
        # Of damaged rows others tell.
        return
    for link in links:
        if link.kind == "markdown" and link.target:
            yield link, written_path(link, note)
