"""When the text of a file, or of one of its sections, changed, and by which commit.

Reads; changes nothing but what is kept of documents that were read. One rule: a commit is told of a
section only if its text is another, wherever in the file it went.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore import extract
from filestore.chunks.chunk_file import Chunk
from filestore.chunks.observation import INDEXED, Observation
from filestore.config.layout import MAX_SOURCE_BYTES
from filestore.core.errors import UsageError
from filestore.core.hashing import content_hash, normalize_text
from filestore.core.paths import ChunkPath, StorePath
from filestore.core.progress import OnProgress, Progress, ignore
from filestore.core.safe_text import brief
from filestore.extract.markdown_spans import without_code
from filestore.fs import disk
from filestore.git.lineage import Step, Version, lineage, renamed_to
from filestore.git.process import Blobs, NoAnswerError
from filestore.git.repository import blob_name
from filestore.git.revisions import Commit, changed_since, files_at
from filestore.past import sections
from filestore.past.events import FileChange, LogEntry, What
from filestore.past.sections import Span
from filestore.past.views import place_of
from filestore.sidecar.chunker import IN_PLACE, Chunker
from filestore.sidecar.documents import InPlace
from filestore.sidecar.session import Parts

_KEPT: Final = 8
"""So many versions are held: a file may be large, and its history long."""
_TODAY: Final = ""
"""Stands for the files of today where commits have their names."""


class _Said(Struct, frozen=True, kw_only=True):
    """What a version of a file says."""

    data: bytes
    chunk: Chunk | None
    """None for what cannot be read."""

    @property
    def text(self) -> str | None:
        """Its text, without what is said about it."""
        return normalize_text(self.chunk.body) if self.chunk else None

    @property
    def lines(self) -> list[str]:
        """Those of its text."""
        return self.chunk.body.replace("\r\n", "\n").split("\n") if self.chunk else []


_NOTHING: Final = _Said(data=b"", chunk=None)


class FileLog:
    """The history of files of one store. A context manager."""

    def __init__(self, home: Parts, top: str, on_progress: OnProgress = ignore) -> None:
        """Prepare.

        Args:
            home: The store's own parts.
            top: Of the work tree, real.
            on_progress: Called with the number of versions that were read.
        """
        self._on_progress = on_progress
        self._home = home
        self._top = top
        self._root = os.path.realpath(home.places.root)
        self._closing = contextlib.ExitStack()
        self._blobs: Blobs | None = None
        self._said: dict[tuple[str, str], _Said] = {}
        self._now = (("", ""), _NOTHING)
        """The file as it is on the disk, which git need not have."""
        self._layout = home.layout
        if isinstance(home.layout, InPlace):
            # What is kept of old versions is none of the store's own documents.
            place = place_of(home, self._closing)
            apart = replace(home.places, sidecar=place.path)
            self._layout = InPlace(apart, self._chunker, processes=1)

    def _chunker(self) -> Chunker:
        return Chunker.of(self._home.settings.budget, self._home.model.embedder, way=IN_PLACE)

    def __enter__(self) -> "FileLog":
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def entries(self, path: str, line: int | None = None) -> Iterator[LogEntry]:
        """The commits that changed a file, or the section of it at a line, newest first.

        Args:
            path: Relative to the top of the work tree.
            line: Of the file as it is today, or as it was last; None for all of it.

        Raises:
            UsageError: There is no such line.
            NoAnswerError: Git does not answer.
        """
        steps = list(lineage(self._top, path))
        now = self._today(path, steps)
        if not steps and now.blob is not None:
            was = self._renamed_today()
            steps = list(lineage(self._top, was)) if was is not None else []
        last = steps[0].after if steps else Version(path=path, blob=None)
        uncommitted = Step(
            commit=_NO_COMMIT,
            after=now,
            before=(last,),
            parents=(steps[0].commit.commit,) if steps else (),
        )
        seen = self._seen([uncommitted, *steps])
        if line is None:
            yield from filter(None, map(self._of_file, seen))
        else:
            yield from self._of_section(seen, line)

    def _seen(self, steps: Sequence[Step]) -> Iterator[Step]:
        for done, step in enumerate(steps):
            self._on_progress(Progress(stage="reading versions", done=done, total=len(steps)))
            yield step

    # Today

    def _today(self, path: str, steps: Sequence[Step]) -> Version:
        """The file as it is on the disk; that of HEAD where it says the same."""
        place = os.path.join(self._top, path)
        last = steps[0].after if steps else Version(path=path, blob=None)
        if last.blob is not None and not changed_since(self._top, "HEAD", [path]):
            # Also what a filter or a sparse checkout has otherwise, or not at all.
            return last
        try:
            if os.path.islink(place):
                return last
            data = disk.read_path(place, limit=MAX_SOURCE_BYTES)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return Version(path=path, blob=None)
        like = last.blob or next((one.after.blob for one in steps if one.after.blob), "")
        name = blob_name(data, like)
        if last.blob is not None and name != last.blob:
            # Git may have it with other line ends.
            kept = self._data(last.blob)
            if kept.replace(b"\r\n", b"\n") == data.replace(b"\r\n", b"\n"):
                return last
        version = Version(path=path, blob=name)
        self._now = ((path, name), self._read(version, data))
        return version

    def _renamed_today(self) -> str | None:
        """What a file that no commit has was called in HEAD, if it only got another name."""
        found = files_at(self._top, "HEAD")
        files = found.files if found else {}
        name = blob_name(self._now[1].data, next(iter(files.values()), ""))
        for path, blob in files.items():
            if blob == name and not os.path.lexists(os.path.join(self._top, path)):
                return path
        return None

    # What a version says

    def _data(self, blob: str) -> bytes:
        if self._blobs is None:
            self._blobs = self._closing.enter_context(Blobs(self._top))
        size, data = self._blobs.read(blob, MAX_SOURCE_BYTES)
        if len(data) != size:
            raise NoAnswerError(f"{blob} has {size:,} bytes: too large", remedy="git show")
        return data

    def _say(self, version: Version) -> _Said:
        if version.blob is None:
            return _NOTHING
        key = (version.path, version.blob)
        if key == self._now[0]:
            return self._now[1]
        if key not in self._said:
            if len(self._said) >= _KEPT:
                del self._said[next(iter(self._said))]
            self._said[key] = self._read(version, self._data(version.blob))
        return self._said[key]

    def _read(self, version: Version, data: bytes) -> _Said:
        path = self._home.places.tree.chunk_path(self._store_path(version.path))
        seen = Observation(
            path=path,
            values=(len(data), 0, 0, 0, 0),
            state=INDEXED,
            file_hash=content_hash(data),
            data=data,
        )
        layout = self._layout.of(ChunkPath(path))
        layout.interpret(seen, os.path.basename(path))
        layout.complete([seen])
        return _Said(data=data, chunk=seen.chunk)

    def _store_path(self, path: str) -> StorePath:
        return StorePath(os.path.relpath(os.path.join(self._top, path), self._root))

    # A whole file

    def _of_file(self, step: Step) -> LogEntry | None:
        """What a commit did; None where a side had it so."""
        if any(one == step.after for one in step.before):
            return None
        before = next((one for one in step.before if one.blob), None)
        if before is None and step.after.blob is None:
            return None
        after = step.after
        if after.blob is None and step.commit.commit:
            # Whoever asks for its old name is told the new one.
            after = renamed_to(self._top, step.commit.commit, after.path) or after
        what = self._what(before, after)
        return _entry(step.commit, self._change(what, before, after))

    def _what(self, before: Version | None, after: Version) -> What:
        if before is None:
            return "added"
        if after.blob is None:
            return "removed"
        if before.blob == after.blob:
            return "renamed"
        old, new = self._say(before).text, self._say(after).text
        return "metadata" if old is not None and old == new else "edited"

    def _change(self, what: What, before: Version | None, after: Version) -> FileChange:
        was = before.path if before is not None and before.path != after.path else None
        return FileChange(
            path=self._store_path(after.path),
            what=what,
            was=self._store_path(was) if was is not None else None,
        )

    # A section

    def _of_section(self, steps: Iterable[Step], line: int) -> Iterator[LogEntry]:
        """As `entries`, of one section."""
        spans: dict[str, Span | None] = {}
        for step in steps:
            name = step.commit.commit
            if not spans and step.after.blob is not None:
                spans[name] = self._span_at(step.after, line)
            span = spans.get(name)
            if span is None:
                if not spans and (entry := self._of_file(step)):
                    yield entry
                continue
            sides = [(one, *self._before(one, step.after, span)) for one in step.before]
            for parent, (_, found, _) in zip(step.parents, sides, strict=False):
                spans.setdefault(parent, found)
            if not any(is_same for _, _, is_same in sides):
                known = next((one for one, found, _ in sides if found), None)
                what: What = "edited" if known else "added"
                yield _entry(step.commit, self._change(what, known, step.after))

    def _before(self, before: Version, after: Version, span: Span) -> tuple[Span | None, bool]:
        """Where a section was before, and whether it said the same."""
        if before.blob is None:
            return None, False
        if before.blob == after.blob:
            return span, True
        return sections.before(self._say(before).lines, self._say(after).lines, span)

    def _span_at(self, version: Version, line: int) -> Span:
        """The lines of a text that the section with a line of the file is."""
        chunk = self._say(version).chunk
        name = brief(self._store_path(version.path))
        if chunk is None:
            raise UsageError(f"{name} cannot be read", remedy="leave the line out")
        if not chunk.sections:
            return Span(start=0, end=chunk.body.count("\n") + 1)
        last = max(one.end_line for one in chunk.sections)
        if not last:
            raise UsageError(f"{name} has no lines", remedy="leave the line out")
        if not 1 <= line <= last:
            raise UsageError(f"{name} has no line {line:,}: it has {last:,}", remedy=f"{name}:1")
        section = [one for one in chunk.sections if one.line <= line or one is chunk.sections[0]][
            -1
        ]
        body = chunk.body
        start = body.count("\n", 0, section.start)
        end = body.count("\n", 0, section.end) + (not body[: section.end].endswith("\n"))
        span = Span(start=start, end=end)
        extractor = extract.for_name(os.path.basename(version.path))
        if extractor is None or not extractor.label.startswith("markdown"):
            return span
        lines = without_code(body).split("\n")
        return sections.below_heading(lines, span, start + line - section.line)


_NO_COMMIT: Final = Commit(commit=_TODAY, committed=0, author="", subject="")


def _entry(commit: Commit, change: FileChange) -> LogEntry:
    return LogEntry(commit=commit if commit.commit else None, files=(change,))


def merged(logs: Sequence[Sequence[LogEntry]], order: Mapping[str, int]) -> list[LogEntry]:
    """The entries of several files, those of one commit as one.

    Args:
        logs: Of each file.
        order: Which commit comes first, by name.
    """
    found: dict[str, LogEntry] = {}
    for entry in (one for log in logs for one in log):
        name = entry.commit.commit if entry.commit else _TODAY
        known = found.get(name)
        files = (*known.files, *entry.files) if known else entry.files
        found[name] = replace(entry, files=files)
    return [found[name] for name in sorted(found, key=lambda one: order.get(one, -1))]
