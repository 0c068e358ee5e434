"""The codes of findings: one table says everything about a code. Pure values, no checks.

A new code is a row here, the check that raises it, and its row in the test of every code: whoever
needs to know which codes share a trait asks `codes_where`.
"""

from functools import cache
from typing import Final, Literal

from msgspec import Struct

from filestore.core.packages import UPGRADE

Severity = Literal["E", "W", "I"]
Subject = Literal[
    "store",
    "file",
    "source",
    "catalog",
    "embeddings",
    "index",
    "vectors",
    "fulltext",
    "model",
    "process",
]
Part = Literal["", "catalog", "embeddings", "index", "fulltext"]


class Code(Struct, frozen=True, kw_only=True):
    """What holds for every finding of one code."""

    severity: Severity
    """E: results may be wrong or knowledge is hidden. W: out of date. I: worth knowing."""
    repair: str
    """What a person can do, as a sentence."""
    repair_of_documents: str = ""
    """The same for documents, which no command writes, if it is not the same."""
    about: Subject
    """What is drifted or damaged."""
    safe_for_documents: bool = False
    """Whether it is safe where the files are documents, and there alone."""
    step: str = ""
    """The kind of step that repairs it; "" where only a person can."""
    level: Literal["fast", "full", "deep"] = "fast"
    """The level that finds every form of it; a lower one may find some."""
    repaired_after: Literal["fast", "full"] = "fast"
    """The level of the verification that a repair needs before: what `sync` finds by itself is
    fast, what takes `sync --full` or `repair --level full` is full."""
    excluded: Literal["", "file", "body"] = ""
    """Whether the file is excluded from search, for what it is or for what its body is."""
    only_named: bool = False
    """Whether it is repaired only where its code is named: costly, or a loss."""
    discards: Part = ""
    """The derived part that cannot be kept as it is."""
    unopened: bool = False
    """Whether the part that it is about is not opened."""
    refused: bool = False
    """Whether no command opens the store."""
    remark: bool = False
    """Whether it says nothing about the bytes of its file: these still have to be checked."""
    awaits_model: bool = False
    """Whether a sync that does not embed leaves it on purpose."""
    stops_commit: bool = False
    """Whether a commit of it is stopped although it is a warning: others cannot check it out."""
    passing: bool = False
    """Whether it passes by itself when another process is done."""
    edited: bool = False
    """Whether the file is as indexed, but not as it was generated."""
    vector_in_doubt: bool = False
    """Whether vectors may be wrong although the text is the same."""
    shown_by: Literal["stat", "read", "verify"] = "stat"
    """What tells whether it is gone: a stat, reading its file, or a verification of the store."""
    self_evident: bool = False
    """Whether the detail says no more than the code."""
    other: str = "with"
    """What the second path of a finding is called."""
    sides: str = ""
    """What the two versions are that a person can choose between; "" where there are none."""

    @property
    def safe(self) -> bool:
        """Whether the repair touches only the sidecar, so that `sync` applies it."""
        return bool(self.step) and self.step not in _WRITES_FILES


_WRITES_FILES: Final = frozenset(
    {"reingest", "relink", "remove", "resolve-ours", "restore", "rewrite-attributes", "take-ours"}
)
"""Kinds of steps that write files of the tree; every other writes only the sidecar."""
_FIX: Final = "fix the file; until then it is excluded from search"
_FULL: Final = "'filestore sync --full' "
_REBUILD_INDEX: Final = "rebuild the vector index from the embeddings"
_REBUILD_FULLTEXT: Final = "rebuild the full-text index"

CODES: Final[dict[str, Code]] = {
    "format-newer": Code(
        severity="E",
        repair=f"{UPGRADE}; nothing is read or written before",
        about="store",
        refused=True,
    ),
    "unsafe-sidecar": Code(
        severity="E",
        repair="fix its owner and mode, or delete it and run 'filestore sync'",
        about="store",
        refused=True,
    ),
    "modified": Code(
        severity="E",
        repair="index the file again",
        about="file",
        step="reindex",
        self_evident=True,
    ),
    "metadata-modified": Code(
        severity="W",
        repair="update its record; nothing is re-embedded",
        about="file",
        step="update-record",
        self_evident=True,
    ),
    "untracked": Code(
        severity="W",
        repair="index the file",
        about="file",
        step="index",
        self_evident=True,
    ),
    "missing": Code(
        severity="E",
        repair="'filestore sync' removes it from the index; to restore it:"
        " 'filestore repair --write-files'",
        repair_of_documents="'filestore sync' removes it from the index; git or your backup has it",
        about="file",
        step="forget",
        self_evident=True,
    ),
    "left-out": Code(
        severity="W",
        repair="'filestore sync' removes it from the index; to keep it, change the rules",
        about="file",
        step="forget",
        self_evident=True,
    ),
    "moved": Code(
        severity="W",
        repair="'filestore sync' updates the index; nothing is re-embedded",
        about="file",
        step="repoint",
        other="was at",
    ),
    "mass-missing": Code(
        severity="E",
        repair="'filestore repair --write-files' brings back what is kept; if they are meant to be"
        " gone, 'filestore sync --forget-missing'",
        repair_of_documents="bring them back from git or your backup; if they are meant to be gone,"
        " 'filestore sync --forget-missing'",
        about="file",
        step="restore",
    ),
    "unreadable": Code(
        severity="E", repair="make it readable, then 'filestore sync'", about="file"
    ),
    "malformed-frontmatter": Code(severity="E", repair=_FIX, about="file", excluded="file"),
    "invalid-metadata": Code(severity="E", repair=_FIX, about="file", excluded="file"),
    "record-invalid": Code(
        severity="E",
        repair="fix it, or 'filestore repair --write-files' regenerates it from its source",
        about="file",
        step="restore",
        excluded="file",
    ),
    "conflict-markers": Code(
        severity="E",
        repair="resolve the conflict; until then the file is excluded from search",
        about="file",
        step="take-ours",
        level="full",
        excluded="body",
        sides="both sides of git's conflict",
    ),
    "bad-encoding": Code(
        severity="E",
        repair="save the file as UTF-8; until then it is excluded from search",
        about="file",
        excluded="file",
    ),
    "extraction-failed": Code(
        severity="W",
        repair="convert it to text or Markdown, or name it in .filestoreignore",
        about="file",
        excluded="file",
    ),
    "frontmatter-ignored": Code(
        severity="W",
        repair="correct the frontmatter: what cannot be read counts as text",
        about="file",
        remark=True,
    ),
    "empty": Code(
        severity="W", repair="write something in it, or delete it", about="file", excluded="body"
    ),
    "oversized": Code(
        severity="W",
        repair="split it into smaller files; until then it is excluded from search",
        about="file",
        excluded="file",
    ),
    "special-file": Code(
        severity="W", repair="remove it; it is never opened", about="file", excluded="file"
    ),
    "symlink": Code(
        severity="W",
        repair="replace it with the file itself; links are not followed",
        about="file",
        excluded="file",
    ),
    "name-collision": Code(
        severity="W",
        repair="rename one: some file systems hold only one of them",
        about="file",
        remark=True,
        stops_commit=True,
        shown_by="verify",
    ),
    "unportable-name": Code(
        severity="W",
        repair="rename it: some file systems cannot hold this name",
        about="file",
        remark=True,
        stops_commit=True,
    ),
    "unsafe-attributes": Code(
        severity="W",
        repair="'filestore repair --write-files' writes our lines into it; commit it",
        about="store",
        step="rewrite-attributes",
    ),
    "litter": Code(
        severity="I",
        repair="nothing: it is not a chunk file",
        repair_of_documents="nothing: it is not searched",
        about="file",
        excluded="file",
    ),
    "leftovers": Code(
        severity="I",
        repair="removed by the next writer",
        about="file",
        step="collect",
    ),
    "duplicate": Code(
        severity="I",
        repair="nothing: one vector serves all files with this text",
        about="file",
        remark=True,
        shown_by="verify",
        other="same text",
        sides="the same text in two files",
    ),
    "source-modified": Code(
        severity="W",
        repair="'filestore update' re-ingests it: hand edits are merged",
        about="source",
        step="reingest",
    ),
    "source-missing": Code(
        severity="W",
        repair="'filestore update' follows it where it was renamed; else bring it back, accept it,"
        " or 'filestore update --remove-gone' removes what was made from it",
        about="source",
        step="remove",
        only_named=True,
    ),
    "source-untracked": Code(
        severity="W",
        repair="'filestore update' adds it, or name it in .filestoreignore",
        about="source",
    ),
    "hand-edited": Code(
        severity="I",
        repair="nothing: it is merged, not overwritten, at the next add",
        about="file",
        remark=True,
        edited=True,
    ),
    "ingest-conflict": Code(
        severity="W",
        repair="'filestore repair --ours PATH' keeps the edit, '--theirs PATH' takes the new text,"
        " or deletes the file where its text is gone",
        about="file",
        step="resolve-ours",
        remark=True,
        edited=True,
        sides="your edit and the new text of its source",
    ),
    "summary-stale": Code(
        severity="W",
        repair="'filestore enrich --refresh' makes it again",
        about="file",
        remark=True,
    ),
    "link-dangling": Code(
        severity="W",
        repair="fix the link; 'filestore repair --write-files' does where the file has moved",
        repair_of_documents="fix the link in the document, then 'filestore sync'",
        about="file",
        step="relink",
        remark=True,
        other="now at",
    ),
    "catalog-missing": Code(
        severity="E",
        repair="index all files; known texts are not re-embedded",
        about="catalog",
        step="rebuild-catalog",
        unopened=True,
    ),
    "catalog-damaged": Code(
        severity="E",
        repair="put it aside and index all files again",
        about="catalog",
        step="rebuild-catalog",
        level="full",
        discards="catalog",
        unopened=True,
    ),
    "embeddings-damaged": Code(
        severity="W",
        repair=_FULL + "keeps the sound rows, embeds the rest",
        about="embeddings",
        step="salvage",
        level="full",
        repaired_after="full",
        discards="embeddings",
        shown_by="read",
    ),
    "index-missing": Code(
        severity="W",
        repair=_REBUILD_INDEX,
        about="index",
        step="rebuild-index",
        unopened=True,
    ),
    "index-damaged": Code(
        severity="E",
        repair=_REBUILD_INDEX,
        about="index",
        step="rebuild-index",
        level="full",
        discards="index",
        unopened=True,
    ),
    "index-behind": Code(severity="W", repair=_REBUILD_INDEX, about="index", step="rebuild-index"),
    "index-away": Code(
        severity="E",
        repair="start the backend, or make it reachable; until then answers come by keyword",
        about="index",
        level="full",
        unopened=True,
        shown_by="verify",
    ),
    "index-lost": Code(
        severity="W",
        repair=_FULL + "sends its vectors again from the embeddings",
        about="index",
        step="rebuild-index",
        level="full",
        repaired_after="full",
        unopened=True,
        shown_by="verify",
    ),
    "index-taken": Code(
        severity="E",
        repair="name another place, or 'filestore backend set … --take-over'",
        about="index",
        level="full",
        unopened=True,
        shown_by="verify",
    ),
    "index-foreign": Code(
        severity="I",
        repair="not opened, because it was made elsewhere; the next sync rebuilds it",
        about="index",
        step="rebuild-index",
        unopened=True,
    ),
    "vector-pending": Code(
        severity="I",
        repair="'filestore sync' embeds the texts that wait",
        about="vectors",
        step="embed",
        remark=True,
        awaits_model=True,
    ),
    "vector-missing": Code(
        severity="E",
        repair=_FULL + "rebuilds the vector index",
        about="vectors",
        step="rebuild-index",
        level="full",
        repaired_after="full",
        discards="index",
        remark=True,
        vector_in_doubt=True,
        shown_by="verify",
    ),
    "vector-orphan": Code(
        severity="E",
        repair=_FULL + "rebuilds the vector index",
        about="vectors",
        step="rebuild-index",
        level="full",
        repaired_after="full",
        discards="index",
        vector_in_doubt=True,
        shown_by="verify",
    ),
    "vector-invalid": Code(
        severity="E",
        repair=_FULL + "re-embeds the text",
        about="vectors",
        step="embed",
        level="full",
        repaired_after="full",
        discards="index",
        vector_in_doubt=True,
        shown_by="verify",
    ),
    "vector-mismatch": Code(
        severity="E",
        repair=_FULL + "rebuilds the vector index",
        about="vectors",
        step="rebuild-index",
        level="full",
        repaired_after="full",
        discards="index",
        vector_in_doubt=True,
        shown_by="verify",
    ),
    "map-mismatch": Code(
        severity="E",
        repair=_FULL + "indexes all files again",
        about="vectors",
        step="rebuild-catalog",
        level="full",
        repaired_after="full",
        discards="catalog",
        vector_in_doubt=True,
        shown_by="verify",
    ),
    "fulltext-missing": Code(
        severity="W",
        repair=_REBUILD_FULLTEXT,
        about="fulltext",
        step="rebuild-fulltext",
        unopened=True,
        shown_by="verify",
    ),
    "fulltext-damaged": Code(
        severity="E",
        repair=_REBUILD_FULLTEXT,
        about="fulltext",
        step="rebuild-fulltext",
        level="full",
        discards="fulltext",
        unopened=True,
        shown_by="verify",
    ),
    "fulltext-foreign": Code(
        severity="I",
        repair="not opened, as another user or an earlier filestore made it; a sync rebuilds it",
        about="fulltext",
        step="rebuild-fulltext",
        unopened=True,
    ),
    "fulltext-behind": Code(
        severity="W",
        repair="add the changes it lacks",
        about="fulltext",
        step="rebuild-fulltext",
        unopened=True,
        passing=True,
        shown_by="verify",
    ),
    "fulltext-mismatch": Code(
        severity="E",
        repair=_REBUILD_FULLTEXT,
        about="fulltext",
        step="rebuild-fulltext",
        level="full",
        discards="fulltext",
        shown_by="verify",
    ),
    "bit-rot": Code(
        severity="E",
        repair="'filestore repair --level full --write-files' restores it; it is not indexed",
        repair_of_documents="restore it from git or your backup; saved anew, 'filestore sync' takes"
        " it as it is",
        about="file",
        step="restore",
        level="full",
        repaired_after="full",
        vector_in_doubt=True,
        shown_by="read",
    ),
    "model-changed": Code(
        severity="E",
        repair="name the old model again, or 'filestore embedder set NAME' to re-embed everything",
        about="model",
    ),
    "model-missing": Code(
        severity="W",
        repair="install the model, or 'filestore trust' its service; until then only keyword"
        " search works",
        about="model",
        awaits_model=True,
    ),
    "model-drift": Code(
        severity="E",
        repair="restore the model's old version, or re-embed all: 'filestore embedder set'",
        about="model",
        level="deep",
        vector_in_doubt=True,
        shown_by="read",
    ),
    "beside-behind": Code(
        severity="W",
        repair="embed the texts with the model beside",
        about="vectors",
        step="embed",
        awaits_model=True,
        shown_by="verify",
    ),
    "beside-unusable": Code(
        severity="I",
        repair="install the model, or 'filestore trust' its service; or 'filestore embedder drop'",
        about="embeddings",
        awaits_model=True,
    ),
    "chunker-changed": Code(
        severity="W",
        repair="'filestore repair --only chunker-changed --write-files' re-chunks it",
        repair_of_documents="'filestore sync' cuts all again; known texts are not re-embedded",
        safe_for_documents=True,
        about="source",
        step="reingest",
        only_named=True,
        remark=True,
        shown_by="verify",
    ),
    "metric-mismatch": Code(
        severity="E",
        repair="rebuild the vector index for the metric of the settings",
        about="index",
        step="rebuild-index",
    ),
    "git-operation": Code(
        severity="I",
        repair="finish it: until then no chunk file is written",
        repair_of_documents="finish it, then 'filestore sync'",
        about="process",
    ),
    "locked": Code(
        severity="I", repair="wait: another command is writing", about="process", passing=True
    ),
}
"""Every code that can be found; the order is the order of print."""

CODE_ORDER: Final = {code: number for number, code in enumerate(CODES)}


@cache
def codes_where(**traits: object) -> frozenset[str]:
    """The codes whose rows have these values; True stands for any that is not empty.

    Args:
        traits: Fields of `Code` and their values.
    """
    return frozenset(
        code
        for code, row in CODES.items()
        if all(
            bool(getattr(row, name)) if value is True else getattr(row, name) == value
            for name, value in traits.items()
        )
    )
