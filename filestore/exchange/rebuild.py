"""Documents of a foreign collection, put together from their chunks and written to a folder.

One rule: a document that cannot be read is named, and the others are written.
"""

import os
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from filestore.core.errors import FilestoreError
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.core.spelling import did_you_mean
from filestore.exchange.base import LeftOut
from filestore.exchange.foreign_chunks import ENDING, Document
from filestore.exchange.joining import (
    EXACT,
    NONE,
    NORMALIZED,
    Joined,
    Overlap,
    Strategy,
    calibrate,
    count,
    join,
)
from filestore.exchange.names import FileNames
from filestore.fs import disk
from filestore.remote import EndpointUnusable


class RebuiltFile(JsonObject, Struct, frozen=True, kw_only=True, rename={"size_bytes": "bytes"}):
    """One document that was put together."""

    KEYS = "name path chunks size_bytes exact normalized none overlaps warnings"

    name: str
    """Of the document; its id where no name is known."""
    path: str
    """The file that was written."""
    size_bytes: int
    """Of the text in UTF-8."""
    chunks: int
    """How many were joined, those without a text included."""
    overlaps: tuple[Overlap, ...]
    """Of each chunk with the one before; chunks without a text have none."""
    warnings: tuple[str, ...]
    """What may be missing or doubled."""

    @property
    def exact(self) -> int:
        """Neighbours that repeat each other."""
        return count(self.overlaps, EXACT)

    @property
    def normalized(self) -> int:
        """Pairs whose overlap differs in white space."""
        return count(self.overlaps, NORMALIZED)

    @property
    def none(self) -> int:
        """Neighbours that share nothing: joined with a newline."""
        return count(self.overlaps, NONE)


class Rebuilt(JsonObject, Struct, frozen=True, kw_only=True):
    """What was put together."""

    KEYS = "folder overlap files chunks bytes failed warnings"

    folder: str
    """Where the texts were written."""
    overlap: str
    """What neighbours were found to repeat, and how it was known; empty where nothing was
    joined."""
    files: tuple[RebuiltFile, ...]
    """A document each."""
    failed: tuple[str, ...]
    """Documents that could not be had, and names of `--only` that none has."""
    warnings: tuple[str, ...]
    """What was left out, of single documents too."""

    @property
    def chunks(self) -> int:
        """Of all."""
        return sum(one.chunks for one in self.files)

    @property
    def size_bytes(self) -> int:
        """Of all."""
        return sum(one.size_bytes for one in self.files)

    @property
    def json_bytes(self) -> int:
        """Of all."""
        return self.size_bytes


def rebuild(
    documents: Iterable[Document],
    folder: str,
    *,
    only: Sequence[str] = (),
    strategy: Strategy | None = None,
    left_out: LeftOut,
    on_progress: OnProgress = ignore,
) -> Rebuilt:
    """Put documents together and write each to ``{folder}/{name}.reconstructed.md``.

    Args:
        documents: Passed through once.
        folder: Made where it is missing; files of these names are replaced.
        only: Names or identifiers of documents; none for all.
        strategy: How much the chunks repeat; None to find out.
        left_out: Where the source of the documents says what it left out.
        on_progress: Called after each document.

    Raises:
        EndpointError: The service that has them is gone; what was written stays.
        WriteFailedError: The disk refused.
    """
    work = _Rebuilding(folder=folder, strategy=strategy)
    wanted, seen = dict.fromkeys(only), list[str]()
    for number, document in enumerate(documents, start=1):
        seen.append(document.name)
        asked = {document.name, document.identifier} & wanted.keys()
        if asked or not wanted:
            wanted |= dict.fromkeys(asked, "found")
            work.take(document)
        on_progress(Progress(stage="reconstructing", done=number, total=None))
    missing = [name for name, found in wanted.items() if found is None]
    work.failed += [f"no document {name!r}{did_you_mean(name, seen)}" for name in missing]
    notes = [*left_out, *([f"and {left_out.more:,} more"] if left_out.more else [])]
    return Rebuilt(
        folder=folder,
        overlap=work.label,
        files=tuple(work.files),
        failed=tuple(work.failed),
        warnings=tuple(notes),
    )


class _Rebuilding(Struct, kw_only=True):
    folder: str
    strategy: Strategy | None
    label: str = ""
    files: list[RebuiltFile] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    names: FileNames = field(default_factory=FileNames)

    def take(self, document: Document) -> None:
        """Put one together and write it."""
        try:
            found = document.read()
        except EndpointUnusable:
            raise
        except FilestoreError as error:
            disk.pass_limits(error)
            self.failed.append(f"{shown_path(document.name)}: {error.message}")
            return
        joined = found if isinstance(found, Joined) else join(found, self._of(document, found))
        data = joined.text.encode("utf-8", "surrogatepass")
        path = os.path.join(self.folder, self.names.take(document.name, ENDING))
        with disk.disk_errors(path):
            disk.make_folders(self.folder)
            disk.write_path(path, data)
        warnings = list(joined.warnings)
        if lacking := count(joined.overlaps, NONE):
            pairs = len(joined.overlaps)
            warnings.append(
                f"{lacking:,} of {pairs:,} pairs of neighbours share no text: joined with a newline"
            )
        self.files.append(
            RebuiltFile(
                name=document.name,
                path=path,
                size_bytes=len(data),
                chunks=joined.chunks,
                overlaps=joined.overlaps,
                warnings=tuple(f"{shown_path(document.name)}: {one}" for one in warnings),
            )
        )

    def _of(self, document: Document, texts: Sequence[str]) -> Strategy:
        """What its chunks repeat: as was told, else as the first that has several shows."""
        if self.strategy is not None:
            found = self.strategy
        elif document.strategy is not None:
            found = document.strategy
        else:
            found = calibrate(texts)
            if found.pairs:
                self.strategy = found
        if not self.label and sum(map(bool, texts)) > 1:
            self.label = f"{found.label} ({found.method})"
        return found
