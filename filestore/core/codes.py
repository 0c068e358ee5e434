"""The codes of findings: one table says everything about a code. Pure values, no checks.

A new code is a row here, the check that raises it, and its row in the test of every code. To
know which codes share a trait, ask `codes_where`.
"""

from functools import cache
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.errors import UPGRADE

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
SEVERITY_WORDS: Final = {"E": "error", "W": "warning", "I": "note"}
"""What a person reads for each."""
Part = Literal["", "catalog", "embeddings", "index", "fulltext"]


class Code(Struct, frozen=True):
    """What holds for every finding of one code."""

    severity: Severity
    """E: results may be wrong or knowledge is hidden. W: out of date. I: worth knowing."""
    about: Subject
    """What is drifted or damaged."""
    repair: str
    """What a person can do, as a sentence."""
    repair_of_documents: str = ""
    """The same for documents, which no command writes, if it is not the same."""
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
    of_its_words: bool = False
    """Whether it repeats what the document itself says of another one."""
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
    of_git: bool = False
    """Whether git waits for a person, and its commands lead out."""
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
_FIX: Final = "fix the file: it is not searched until then"
_FULL: Final = "'filestore sync --full' "
_REBUILD_INDEX: Final = "'filestore sync' rebuilds the vector index (nothing is re-embedded)"
_REBUILD_FULLTEXT: Final = "'filestore sync' rebuilds the full-text index"
_WRONG_VECTOR: Final = Code(
    "E",
    "vectors",
    _FULL + "rebuilds the vector index",
    step="rebuild-index",
    level="full",
    repaired_after="full",
    discards="index",
    vector_in_doubt=True,
    shown_by="verify",
)

CODES: Final[dict[str, Code]] = {
    "format-newer": Code(
        "E", "store", f"{UPGRADE}; until then nothing is read or written", refused=True
    ),
    "unsafe-sidecar": Code(
        "E", "store", "fix its owner and mode, or delete it and run 'filestore sync'", refused=True
    ),
    "modified": Code(
        "E",
        "file",
        "changed since it was indexed; run 'filestore sync'",
        step="reindex",
        self_evident=True,
    ),
    "metadata-modified": Code(
        "W",
        "file",
        "its metadata changed; run 'filestore sync' (nothing is re-embedded)",
        step="update-record",
        self_evident=True,
    ),
    "untracked": Code(
        "W", "file", "not indexed yet; run 'filestore sync'", step="index", self_evident=True
    ),
    "missing": Code(
        "E",
        "file",
        "'filestore sync' removes it from the index; to restore it:"
        " 'filestore repair --write-files'",
        repair_of_documents="'filestore sync' removes it from the index; git or your backup has it",
        step="forget",
        self_evident=True,
    ),
    "left-out": Code(
        "W",
        "file",
        "'filestore sync' removes it from the index; to keep it, change the rules",
        step="forget",
        self_evident=True,
    ),
    "moved": Code(
        "W",
        "file",
        "'filestore sync' updates the index; nothing is re-embedded",
        step="repoint",
        other="was at",
    ),
    "mass-missing": Code(
        "E",
        "file",
        "'filestore repair --write-files' restores them; if you deleted them:"
        " 'filestore sync --forget-missing'",
        repair_of_documents="restore them from git or your backup; if you deleted them:"
        " 'filestore sync --forget-missing'",
        step="restore",
    ),
    "unreadable": Code("E", "file", "make it readable, then 'filestore sync'"),
    "malformed-frontmatter": Code("E", "file", _FIX, excluded="file"),
    "invalid-metadata": Code("E", "file", _FIX, excluded="file"),
    "record-invalid": Code(
        "E",
        "file",
        "fix it, or 'filestore repair --write-files' regenerates it from its source",
        step="restore",
        excluded="file",
    ),
    "conflict-markers": Code(
        "E",
        "file",
        "unresolved merge conflict (not searched): edit the file, then 'git add' it",
        of_git=True,
        step="take-ours",
        level="full",
        excluded="body",
        sides="both sides of git's conflict",
    ),
    "bad-encoding": Code(
        "E",
        "file",
        "save the file as UTF-8: it is not searched until then",
        excluded="file",
    ),
    "extraction-failed": Code(
        "W",
        "file",
        "repair it, convert it to text or Markdown, or name it in .filestoreignore",
        excluded="file",
    ),
    "frontmatter-ignored": Code(
        "W", "file", "correct the frontmatter: unreadable lines count as text", remark=True
    ),
    "empty": Code("W", "file", "write something in it, or delete it", excluded="body"),
    "oversized": Code(
        "W",
        "file",
        "split it into smaller files: it is not searched until then",
        excluded="file",
    ),
    "special-file": Code("W", "file", "remove it; it is never opened", excluded="file"),
    "symlink": Code(
        "W", "file", "replace it with the file itself; links are not followed", excluded="file"
    ),
    "name-collision": Code(
        "W",
        "file",
        "rename one: some file systems hold only one of them",
        remark=True,
        stops_commit=True,
        shown_by="verify",
    ),
    "unportable-name": Code(
        "W",
        "file",
        "rename it: some file systems cannot hold this name",
        remark=True,
        stops_commit=True,
    ),
    "unsafe-attributes": Code(
        "W",
        "store",
        "'filestore repair --write-files' writes the missing lines into it; commit it",
        step="rewrite-attributes",
    ),
    "litter": Code(
        "I",
        "file",
        "it is not a chunk file: nothing to do",
        repair_of_documents="it is not searched: nothing to do",
        excluded="file",
    ),
    "not-read": Code(
        "I",
        "file",
        "convert it to a format that filestore reads, or leave it",
        excluded="file",
    ),
    "page-whole": Code(
        "I",
        "file",
        "install the extra 'web': it drops menus and footers from pages",
        remark=True,
        shown_by="verify",
        self_evident=True,
    ),
    "leftovers": Code(
        "I",
        "file",
        "files of an interrupted command: 'filestore sync' removes them",
        step="collect",
    ),
    "duplicate": Code(
        "I",
        "file",
        "several files have this text: nothing to do",
        remark=True,
        shown_by="verify",
        other="same text",
        sides="the same text in two files",
    ),
    "source-modified": Code(
        "W",
        "source",
        "the source file changed; run 'filestore update' (your edits are kept)",
        step="reingest",
    ),
    "source-missing": Code(
        "W",
        "source",
        "the source file is gone. Renamed: 'filestore update'. Deleted:"
        " 'filestore update --remove-gone'. Else restore it",
        step="remove",
        only_named=True,
    ),
    "source-untracked": Code(
        "W", "source", "'filestore update' adds it, or name it in .filestoreignore"
    ),
    "hand-edited": Code(
        "I",
        "file",
        "edited by hand: the next update merges your edit",
        remark=True,
        edited=True,
    ),
    "ingest-conflict": Code(
        "W",
        "file",
        "conflict with the new source text: 'filestore repair --ours PATH' keeps yours,"
        " '--theirs PATH' takes the source's",
        step="resolve-ours",
        remark=True,
        edited=True,
        sides="your edit and the new text of its source",
    ),
    "summary-stale": Code("W", "file", "'filestore enrich --refresh' makes it again", remark=True),
    "past-date": Code(
        "I", "file", "check the document, then set a new date or name its successor", remark=True
    ),
    "superseded": Code(
        "I",
        "file",
        "its successor ranks above it in search: nothing to do",
        remark=True,
        of_its_words=True,
        other="by",
    ),
    "successor-missing": Code(
        "W",
        "file",
        "name an existing document as the successor, or remove the line",
        remark=True,
        of_its_words=True,
    ),
    "link-dangling": Code(
        "W",
        "file",
        "fix the link; if the file moved: 'filestore repair --write-files'",
        repair_of_documents="fix the link, then 'filestore sync'; moved:"
        " 'filestore repair --level full --write-files'",
        step="relink",
        remark=True,
        other="now at",
    ),
    "catalog-missing": Code(
        "E",
        "catalog",
        "there is no catalog: 'filestore sync' rebuilds it (nothing is re-embedded)",
        step="rebuild-catalog",
        unopened=True,
    ),
    "catalog-damaged": Code(
        "E",
        "catalog",
        "the catalog is damaged: 'filestore sync' rebuilds it (the old one is kept)",
        step="rebuild-catalog",
        level="full",
        discards="catalog",
        unopened=True,
    ),
    "embeddings-damaged": Code(
        "W",
        "embeddings",
        _FULL + "keeps the sound rows and embeds the rest",
        step="salvage",
        level="full",
        repaired_after="full",
        discards="embeddings",
        shown_by="read",
    ),
    "index-missing": Code("W", "index", _REBUILD_INDEX, step="rebuild-index", unopened=True),
    "index-damaged": Code(
        "E",
        "index",
        _REBUILD_INDEX,
        step="rebuild-index",
        level="full",
        discards="index",
        unopened=True,
    ),
    "index-behind": Code("W", "index", _REBUILD_INDEX, step="rebuild-index"),
    "index-away": Code(
        "E",
        "index",
        "start the vector backend or make it reachable (keyword search only until then)",
        level="full",
        unopened=True,
        shown_by="verify",
    ),
    "index-lost": Code(
        "W",
        "index",
        _FULL + "sends its vectors again from the embeddings",
        step="rebuild-index",
        level="full",
        repaired_after="full",
        unopened=True,
        shown_by="verify",
    ),
    "index-taken": Code(
        "E",
        "index",
        "name another place, or take it over: 'filestore backend set … --take-over'",
        level="full",
        unopened=True,
        shown_by="verify",
    ),
    "index-foreign": Code(
        "I",
        "index",
        "made on another machine or by another user: 'filestore sync' rebuilds it",
        step="rebuild-index",
        unopened=True,
    ),
    "vector-pending": Code(
        "I",
        "vectors",
        "'filestore sync' embeds the waiting passages",
        step="embed",
        remark=True,
        awaits_model=True,
    ),
    "vector-missing": replace(_WRONG_VECTOR, remark=True),
    "vector-orphan": _WRONG_VECTOR,
    "vector-invalid": replace(_WRONG_VECTOR, repair=_FULL + "re-embeds the text", step="embed"),
    "vector-mismatch": _WRONG_VECTOR,
    "map-mismatch": replace(
        _WRONG_VECTOR,
        repair=_FULL + "indexes all files again",
        step="rebuild-catalog",
        discards="catalog",
    ),
    "fulltext-missing": Code(
        "W",
        "fulltext",
        _REBUILD_FULLTEXT,
        step="rebuild-fulltext",
        unopened=True,
        shown_by="verify",
    ),
    "fulltext-damaged": Code(
        "E",
        "fulltext",
        _REBUILD_FULLTEXT,
        step="rebuild-fulltext",
        level="full",
        discards="fulltext",
        unopened=True,
        shown_by="verify",
    ),
    "fulltext-foreign": Code(
        "I",
        "fulltext",
        "made by another user or an earlier version: 'filestore sync' rebuilds it",
        step="rebuild-fulltext",
        unopened=True,
    ),
    "fulltext-behind": Code(
        "W",
        "fulltext",
        "'filestore sync' adds the missing changes",
        step="rebuild-fulltext",
        unopened=True,
        passing=True,
        shown_by="verify",
    ),
    "fulltext-mismatch": Code(
        "E",
        "fulltext",
        _REBUILD_FULLTEXT,
        step="rebuild-fulltext",
        level="full",
        discards="fulltext",
        shown_by="verify",
    ),
    "bit-rot": Code(
        "E",
        "file",
        "'filestore repair --level full --write-files' restores it; it is not indexed",
        repair_of_documents="restore it from git or your backup; to keep it as is, save it and run"
        " 'filestore sync'",
        step="restore",
        level="full",
        repaired_after="full",
        vector_in_doubt=True,
        shown_by="read",
    ),
    "model-changed": Code(
        "E",
        "model",
        "name the old model again, or re-embed everything: 'filestore embedder set NAME'",
    ),
    "model-missing": Code(
        "W",
        "model",
        "install the model, or allow its service with 'filestore trust' (keyword search only)",
        awaits_model=True,
    ),
    "model-drift": Code(
        "E",
        "model",
        "restore the model's old version, or re-embed: 'filestore embedder set NAME'",
        level="deep",
        vector_in_doubt=True,
        shown_by="read",
    ),
    "beside-behind": Code(
        "W",
        "vectors",
        "'filestore sync' embeds the missing passages with the second model",
        step="embed",
        awaits_model=True,
        shown_by="verify",
    ),
    "beside-unusable": Code(
        "I",
        "embeddings",
        "install the second model, 'filestore trust' its service, or 'filestore embedder drop'",
        awaits_model=True,
    ),
    "chunker-changed": Code(
        "W",
        "source",
        "'filestore repair --only chunker-changed --write-files' re-chunks it",
        repair_of_documents="'filestore sync' splits it by the current settings",
        safe_for_documents=True,
        step="reingest",
        only_named=True,
        remark=True,
        shown_by="verify",
    ),
    "metric-mismatch": Code(
        "E",
        "index",
        "the settings name another metric: 'filestore sync' rebuilds the vector index",
        step="rebuild-index",
    ),
    "git-operation": Code(
        "I",
        "process",
        "finish git's operation: files are not changed until it ends",
        repair_of_documents="'git status' shows it; finish it, then 'filestore sync'",
        of_git=True,
    ),
    "locked": Code("I", "process", "another command is writing: wait until it ends", passing=True),
}
"""Every code that can be found; the order is the order of print."""

CODE_ORDER: Final = {code: number for number, code in enumerate(CODES)}


@cache
def codes_where(**traits: object) -> frozenset[str]:
    """The codes whose rows have these values; True matches any that is not empty.

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
