"""What the catalog and the settings alone tell: equal texts, hand edits, links, choices that wait.

Reads no file of the tree. One rule: nothing here depends on what was just walked, so that it can be
said at every level and again after a commit.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import orjson

from filestore import portable_names
from filestore.catalog import Catalog
from filestore.drift import root_path
from filestore.findings import Finding
from filestore.settings import SETTINGS_NAME, Settings
from filestore.subject import Said, Subject

if TYPE_CHECKING:
    from filestore.embed.base import Embedder

METRIC: Final = "metric"
"""The key under which the catalog remembers what its vectors are compared by."""
_NAMED: Final = 3


def open_matters(catalog: Catalog) -> list[Finding]:
    """What waits for a person, cheap enough for `status`."""
    return [*ingest_conflicts(catalog), *dangling_links(catalog)]


def check(subject: Subject, said: Said) -> None:
    """Add what is told in a verification alone: names, remarks, how texts were cut."""
    catalog = subject.catalog
    folders = catalog.folders()
    said.add(portable_names.unportable(folders))
    said.add(portable_names.collisions(folders))
    if "model-changed" not in said.codes():
        # Another model counts otherwise, which is no second finding.
        said.add(changed_chunker(catalog, subject.settings, subject.embedder))
    said.add(remarks(catalog))


def ingest_conflicts(catalog: Catalog) -> Iterator[Finding]:
    """Hand edits that new source text overlaps with; not those whose file is gone."""
    waiting = catalog.conflicts()
    there = catalog.files([conflict.path for conflict in waiting]) if waiting else {}
    for conflict in waiting:
        if conflict.path in there:
            detail = conflict.detail or "edited by hand, and its source text changed too"
            yield Finding(code="ingest-conflict", path=root_path(conflict.path), detail=detail)


def dangling_links(catalog: Catalog) -> Iterator[Finding]:
    """A person's links to files that are not there."""
    for link in catalog.dangling_links():
        detail = f"links to {root_path(link.target)}, which is not there"
        if link.moved_to is not None:
            detail += f"; it moved to {root_path(link.moved_to)}"
        yield Finding(
            code="link-dangling",
            path=root_path(link.path),
            detail=detail,
            other=root_path(link.moved_to) if link.moved_to is not None else "",
        )


def metric_mismatch(catalog: Catalog, settings: Settings) -> Iterator[Finding]:
    """Whether vectors were indexed for another comparison than the settings name."""
    recorded = catalog.meta(METRIC, settings.metric)
    if recorded != settings.metric:
        detail = f"indexed for {recorded}, the settings ask for {settings.metric}"
        yield Finding(code="metric-mismatch", path=SETTINGS_NAME, detail=detail)


def remarks(catalog: Catalog) -> Iterator[Finding]:
    """What is worth knowing, and nobody need mend."""
    for path in catalog.hand_edited_paths():
        detail = "its body is not the one that was generated"
        yield Finding(code="hand-edited", path=root_path(path), detail=detail)
    # A vector without a second text is the rule, and counting is cheaper than comparing.
    if catalog.count("parts") > catalog.count("vectors"):
        for first, *others in catalog.duplicates():
            named = ", ".join(map(root_path, others[:_NAMED]))
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            yield Finding(
                code="duplicate",
                path=root_path(first),
                detail=f"has a text in common with {named}{more}",
                other=root_path(others[0]),
            )


def changed_chunker(
    catalog: Catalog, settings: Settings, embedder: "Embedder | None"
) -> Iterator[Finding]:
    """Records of resources that would be cut otherwise today; not told without the model.

    Another tokenizer counts a little otherwise, which is no reason to cut everything again: what
    is longer than a model's window is embedded in parts.
    """
    if embedder is None or not catalog.count("records"):
        return
    from filestore.chunking import label

    wanted = label(settings.budget, most=embedder.max_tokens, counter=embedder.tokenizer)
    for path, data in catalog.rows("SELECT path, data FROM records ORDER BY path"):
        found = str(orjson.loads(data).get("chunker"))
        if found.rpartition(":")[0] != wanted.rpartition(":")[0]:
            yield Finding(
                code="chunker-changed",
                path=root_path(path.decode("utf-8", "surrogateescape")),
                detail=f"cut by {found}, today it would be {wanted}",
            )
