"""Findings and their codes: what each means, how bad it is, what helps. Pure values, no checks.

One table for every front end: severity and repair stand here and nowhere else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["E", "W", "I"]


@dataclass(frozen=True, slots=True)
class Code:
    """What is said about every finding of one code."""

    severity: Severity
    """E: answers may be wrong or knowledge is hidden. W: out of date. I: worth knowing."""
    repair: str
    safe: bool
    """Whether the repair touches only the sidecar, so that `sync` applies it."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Finding:
    """One drift or damage."""

    code: str
    path: str
    """Relative to the store root; the damaged file or folder where no chunk file is meant."""
    detail: str = ""
    other: str = ""
    """The second path of a finding about two: where a moved file was."""

    @property
    def severity(self) -> Severity:
        """See `Code`."""
        return CODES[self.code].severity

    @property
    def repair(self) -> str:
        """See `Code`."""
        return CODES[self.code].repair

    @property
    def safe(self) -> bool:
        """See `Code`."""
        return CODES[self.code].safe


_WITHHELD: Final = "mend the file; until then it is left out of answers"
_FULL: Final = "'filestore sync --full' "

CODES: Final[dict[str, Code]] = {
    "format-newer": Code("E", "upgrade filestore; nothing is read or written before", False),
    "unsafe-sidecar": Code(
        "E", "mend its owner and mode, or delete it and run 'filestore sync'", False
    ),
    "modified": Code("E", "index the file again", True),
    "metadata-modified": Code("W", "update its record, nothing to embed", True),
    "untracked": Code("W", "index the file", True),
    "missing": Code("E", "forget it; 'filestore repair --truth' brings it back instead", True),
    "moved": Code("W", "follow it to its new name, nothing to embed", True),
    "mass-missing": Code(
        "E",
        "bring the files back, or, if they are meant to be gone, 'filestore sync --forget-missing'",
        False,
    ),
    "unreadable": Code("E", "make it readable, then 'filestore sync'", False),
    "malformed-frontmatter": Code("E", _WITHHELD, False),
    "invalid-metadata": Code("E", _WITHHELD, False),
    "record-invalid": Code(
        "E", "mend it, or 'filestore repair --truth' makes it again from its source", False
    ),
    "conflict-markers": Code("E", "resolve the conflict; until then it is left out", False),
    "bad-encoding": Code("E", "save the file as UTF-8; until then it is left out", False),
    "empty": Code("W", "write something in it, or delete it", False),
    "oversized": Code("W", "cut it into smaller files; until then it is left out", False),
    "special-file": Code("W", "remove it; it is never opened", False),
    "symlink": Code("W", "replace it by the file itself; links are not followed", False),
    "name-collision": Code("W", "rename one: some file systems hold only one of them", False),
    "unportable-name": Code("W", "rename it: some file systems cannot hold this name", False),
    "litter": Code("I", "nothing: it is not a chunk file", False),
    "leftovers": Code("I", "collected by the next writer", True),
    "duplicate": Code("I", "nothing: one vector serves all files with this text", False),
    "source-modified": Code(
        "W", "'filestore add' it, or 'filestore repair --truth': hand edits are merged", False
    ),
    "source-missing": Code(
        "W",
        "bring it back, accept it, or 'filestore repair --only source-missing --truth' removes"
        " what was made from it",
        False,
    ),
    "source-untracked": Code("I", "'filestore add' it", False),
    "hand-edited": Code("I", "nothing: it is merged, not overwritten, at the next add", False),
    "ingest-conflict": Code(
        "W",
        "'filestore repair --ours PATH' keeps the edit, '--theirs PATH' takes the new text, or"
        " deletes the file where its text is gone",
        False,
    ),
    "link-dangling": Code(
        "W", "mend the link; 'filestore repair --truth' does where the file has moved", False
    ),
    "catalog-missing": Code("E", "index all files; known texts are not embedded again", True),
    "catalog-damaged": Code("E", "put it aside and index all files again", True),
    "embeddings-damaged": Code("W", _FULL + "keeps the sound rows, embeds the rest", True),
    "index-missing": Code("W", "write the FAISS file again from the embeddings", True),
    "index-damaged": Code("E", "write the FAISS file again from the embeddings", True),
    "index-behind": Code("W", "write the FAISS file again from the embeddings", True),
    "index-foreign": Code("I", "not opened, since made elsewhere; written again", True),
    "vector-missing": Code("E", "embed the text", True),
    "vector-orphan": Code("E", _FULL + "writes the FAISS file again", True),
    "vector-invalid": Code("E", _FULL + "embeds the text again", True),
    "vector-mismatch": Code("E", _FULL + "writes the FAISS file again", True),
    "map-mismatch": Code("E", _FULL + "indexes all files again", True),
    "fulltext-missing": Code("W", "build the full-text index again", True),
    "fulltext-damaged": Code("E", "build the full-text index again", True),
    "fulltext-behind": Code("W", "replay what it has not seen", True),
    "fulltext-mismatch": Code("E", "build the full-text index again", True),
    "bit-rot": Code(
        "E",
        "'filestore repair --level full --truth' restores it; it is not indexed as it is",
        False,
    ),
    "model-changed": Code(
        "E", "name the old model again, or 'filestore embedder set NAME' to embed all anew", False
    ),
    "model-missing": Code(
        "W",
        "install the model, or 'filestore trust' its service; until then keywords alone answer",
        False,
    ),
    "model-drift": Code(
        "E", "restore the model's old version, or 'filestore embedder set' to embed all anew", False
    ),
    "chunker-changed": Code(
        "W", "'filestore repair --only chunker-changed --truth' cuts it again", False
    ),
    "metric-mismatch": Code("E", "write the FAISS file again for the metric of the settings", True),
    "git-operation": Code("I", "finish it: until then no chunk file is written", False),
    "locked": Code("I", "wait: another command is writing", False),
}
"""Every code that can be found; the order is the order of print.

`summary-stale` comes with summaries."""

CODE_ORDER: Final = {code: number for number, code in enumerate(CODES)}


def worst_first(findings: list[Finding]) -> list[Finding]:
    """Findings ordered for a person: errors first, then by code, then by path."""
    return sorted(
        findings,
        key=lambda found: ("EWI".index(found.severity), CODE_ORDER[found.code], found.path),
    )


def is_clean(
    findings: Sequence[Finding], accepted: Mapping[str, tuple[str, ...]] | None = None
) -> bool:
    """Whether nothing is found beyond notes and accepted warnings."""
    return all(
        found.severity == "I"
        or (found.severity == "W" and found.path in (accepted or {}).get(found.code, ()))
        for found in findings
    )
