"""What a source that is added again does to the chunk files of its resource. Pure.

One rule: a file whose text did not change stays byte for byte, and in a file a person edited
nothing of theirs is overwritten: both changes are merged, or the file stays and both are kept.
"""

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field

from filestore.chunks import chunk_file, frontmatter, order_key
from filestore.chunks.layout import Layout
from filestore.core.hashing import embedding_key, origin_hash
from filestore.core.paths import TOP, ChunkPath, folded_path, folder_of
from filestore.git.merge import Merged, Overlap, with_line_ends
from filestore.ingest import align
from filestore.verify.names import why_no_name, why_unportable

_TAG_DIGITS: Final = 5
_MOST_FOLDERS: Final = 48
"""So deep a document has a folder of its own; below `chunked/` a walk goes 64 deep."""
_NO_BASE: Final = (
    "edited by hand, its source text changed too, and the text it was made from is not kept"
)
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class NewChunk(Struct, frozen=True, kw_only=True):
    """One piece of an extracted document."""

    body: str
    headings: tuple[str, ...]
    pages: tuple[int, ...] = ()
    repeats: tuple[int, int] = (0, 0)
    """Characters at its start and end that are elsewhere."""


class NewDocument(Struct, frozen=True, kw_only=True):
    """One document of a resource, as extracted now."""

    source: str
    """Relative to the store root."""
    chunks: tuple[NewChunk, ...] | None
    """None leaves the document's files as they are: it did not change, or could not be read."""


class Existing(Struct, frozen=True, kw_only=True):
    """A chunk file that is there."""

    path: ChunkPath
    """It may have been moved out of the folder of its resource."""
    data: bytes
    chunk: chunk_file.Chunk
    name: str = ""
    """What it was called before a person renamed it, which tells its place; empty if they did not.
    """
    excluded: str = ""
    """Why it cannot be written, such as conflict markers; `chunk` is what it last was."""


class Past(Protocol):
    """What is known of what hand-edited files were made from."""

    def body(self, file: Existing) -> str | None:
        """The text as it was generated, its hash being the file's origin; None if unknown."""
        ...

    def headings(self, file: Existing) -> tuple[str, ...] | None:
        """The headings as they were generated; None if unknown."""
        ...


class OpenConflict(Struct, frozen=True, kw_only=True):
    """A file that stays as it is although its source changed, until a person chooses."""

    detail: str
    base: str
    """Origin of the text it was made from."""
    theirs: str | None = None
    """The new text; None where the source has none any more."""
    origin: str | None = None
    """Its hash."""
    headings: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()
    source: str = ""
    """The document, relative to the store root."""


class Lost(Struct, frozen=True, kw_only=True):
    """A chunk file that a person deleted, while the record still describes its text."""

    path: ChunkPath
    origin: str
    source: str | None
    """The document that it named; None where the record tells it."""


Merge: TypeAlias = Callable[[str, str, str], Merged | Overlap]


class Regeneration(Struct, kw_only=True):
    """The file changes that bring a resource up to date."""

    writes: dict[ChunkPath, bytes] = field(default_factory=dict)
    deletions: list[ChunkPath] = field(default_factory=list)
    merged: list[ChunkPath] = field(default_factory=list)
    """Those of `writes` in which a hand edit and a new source text come together."""
    kept: dict[ChunkPath, OpenConflict] = field(default_factory=dict)
    """Files in which the two cannot; nothing of them is written."""
    generated: dict[str, str] = field(default_factory=dict)
    """Origin to body of texts that were generated for hand-edited files."""
    pending: set[str] = field(default_factory=set)
    """Sources of documents whose new text is not all in chunk files, because files were kept."""
    deleted: dict[ChunkPath, Lost] = field(default_factory=dict)
    """Files that a person deleted, by path; their text did not change and is not made again."""
    chunks: int = 0
    """How many chunk files of the resource come from its source, afterwards."""


class Regenerating:
    """Plans the changes of one resource."""

    def __init__(
        self,
        existing: Sequence[Existing],
        *,
        layout: Layout,
        name_sources: bool,
        merge: Merge,
        past: Past,
        folder: ChunkPath = TOP,
        taken: Iterable[str] = (),
        lost: Sequence[Lost] = (),
        source: str = "",
    ) -> None:
        """Plan nothing yet.

        Args:
            existing: The resource's chunk files in any order; those without an origin are a
                person's own and are left alone.
            layout: How files are named.
            name_sources: Whether each chunk names its document, because the resource has several.
            merge: Brings a hand edit and a new text together over the text before them.
            past: What hand-edited files were made from.
            folder: Where new files go, below `chunked/`.
            taken: Paths in that folder that are in use besides those of `existing`; of folders
                with a slash at the end.
            lost: What a person deleted. It stays deleted while its text is the same and the
                resource has other files; a text that changed comes in as a new one.
            source: The folder of documents that has a folder for each of them; "" for one document.
        """
        self._source = source
        self._merge, self._past, self._lost = merge, past, lost
        self._result = Regeneration()
        self._layout = layout
        self._name_sources = name_sources or layout.shares_folder
        self._start = f"{folder}/" if folder else ""
        inside = (file.path for file in existing if file.path.startswith(self._start))
        files = {*taken, *(path.removeprefix(self._start) for path in inside)}
        self._taken = {path.rstrip("/") for path in files}
        ordered = sorted(
            existing, key=lambda file: chunk_file.sort_key(file.chunk.order, _name(file))
        )
        self._ours = [file for file in ordered if file.chunk.origin is not None]
        self._folders: dict[str, str] = {}
        """Of each document, below the resource's."""
        self._places = {folded_path(path): "" for path in files if not path.endswith("/")}
        """Folded paths: of folders with how each is written, of files with nothing."""
        for file in self._ours:
            if file.chunk.source and file.path.startswith(self._start):
                own = folder_of(ChunkPath(file.path.removeprefix(self._start)))
                self._folders.setdefault(file.chunk.source, own)
                self._places |= _folders_to(own)
        self._keys = sorted({key for file in ordered if (key := _effective_key(file))})
        self._first = not self._ours
        self._number = 0
        self._anchor: Existing | None = None
        self._end: str | None = None

    def planned(self, documents: Sequence[NewDocument]) -> Regeneration:
        """The changes, given every document of the resource in reading order."""
        for document in documents:
            self._take(document)
        sources = {document.source for document in documents}
        gone = [file for file in self._ours if file.chunk.source not in sources]
        # Files of documents that are no longer part of the resource.
        for file in gone if self._name_sources else ():
            source = file.chunk.source
            self._drop(file, source or "")
            if file.path in self._result.kept and source is not None:
                self._result.pending.add(source)
        return self._result

    def _take(self, document: NewDocument) -> None:
        """Bring one document's files up to date."""
        old = self._ours
        if self._name_sources:
            old = [file for file in old if file.chunk.source == document.source]
        kept = len(self._result.kept)
        if document.chunks is None:
            self._result.chunks += len(old)
            self._pass(old)
        elif self._first:
            for chunk in document.chunks:
                self._number += 1
                order = order_key.number_key(self._number) if self._layout.shares_folder else None
                self._write(self._number, document, chunk, order)
        else:
            self._align(document, old, self._without_lost(document, old, document.chunks))
        if len(self._result.kept) > kept:
            self._result.pending.add(document.source)

    def _without_lost(
        self, document: NewDocument, old: Sequence[Existing], new: Sequence[NewChunk]
    ) -> Sequence[NewChunk]:
        """The pieces that are to have a file: not those whose file a person deleted."""
        lost = [one for one in self._lost if one.source in (None, document.source)]
        if not lost:
            return new
        pieces: dict[str, list[int]] = {}
        for number, chunk in enumerate(new):
            pieces.setdefault(origin_hash(chunk.body), []).append(number)
        for file in old:
            # Of equal pieces the first are the ones that have their files.
            pieces.get(file.chunk.origin or "", [])[:1] = []
        left_out = set()
        for one in lost:
            if pieces.get(one.origin):
                left_out.add(pieces[one.origin].pop())
                self._result.deleted[one.path] = one
        return [chunk for number, chunk in enumerate(new) if number not in left_out]

    def _pass(self, old: Sequence[Existing]) -> None:
        """Remember where the document ends, so that what follows is put after all of it."""
        if old:
            self._anchor = old[-1]
        for file in old:
            self._extend(_effective_key(file))

    def _extend(self, key: str | None) -> None:
        if key is not None and (self._end is None or key > self._end):
            self._end = key

    def _write(
        self, number: int, document: NewDocument, chunk: NewChunk, order: str | None
    ) -> None:
        """Plan a new file: the n-th, or the one inserted after that."""
        name = ""
        if self._layout.shares_folder:
            name = chunk_file.flat_name(document.source, chunk.body, self._taken)
        else:
            folder = self._folder_of(document.source)
            heading = chunk.headings[-1] if self._source and chunk.headings else ""
            if self._first:
                name = folder + chunk_file.chunk_name(number, heading)
            if not name or name in self._taken:
                name = chunk_file.inserted_name(
                    number, chunk.body, self._taken, folder=folder, heading=heading
                )
        self._taken.add(name)
        self._result.writes[ChunkPath(self._start + name)] = chunk_file.generate(
            body=chunk.body,
            headings=chunk.headings,
            pages=chunk.pages,
            repeats=chunk.repeats,
            source=document.source if self._name_sources else None,
            order=order,
        )
        self._result.chunks += 1

    def _folder_of(self, source: str) -> str:
        """Where the new files of a document go, with a slash: where it has others, or its own."""
        if not self._source:
            return ""
        if source not in self._folders:
            own = source.removeprefix(f"{self._source}/")
            parts, above = own.split("/"), _folders_to(own)
            if (
                len(parts) > _MOST_FOLDERS
                or any(why_no_name(one) or why_unportable(one) for one in parts)
                or any(map(self._layout.is_record, map(folded_path, parts)))
                or folded_path(own) in self._places
                or any(self._places.get(folded, one) != one for folded, one in above.items())
            ):
                own = chunk_file.record_stem(source)
                above = {own: own}
            self._folders[source] = own
            self._places |= above
        return f"{self._folders[source]}/" if self._folders[source] else ""

    def _align(
        self, document: NewDocument, old: Sequence[Existing], new: Sequence[NewChunk]
    ) -> None:
        matches = align.align(
            [
                align.KeyedText(
                    key=file.chunk.origin or "",
                    text=file.chunk.body,
                    edited=chunk_file.hand_edited(file.chunk),
                )
                for file in old
            ],
            [align.KeyedText(key=origin_hash(c.body), text=c.body) for c in new],
        )
        moved = _moved(matches, [file.chunk.origin for file in old], new)
        moved |= self._followed(matches, moved, old, new)
        # Neighbouring insertions after one old piece are one run.
        runs: dict[int | None, list[int]] = {}
        for match in matches:
            if isinstance(match, align.Keep):
                self._keep(old[match.old], new[match.new])
            elif isinstance(match, align.Replace):
                self._replace(document, old[match.old], new[match.new])
            elif isinstance(match, align.Insert):
                runs.setdefault(match.after, []).append(match.new)
            elif match.old not in moved.values():
                self._drop(old[match.old], document.source)
        before, end = self._anchor, self._end
        for after, run in runs.items():
            anchor = before if after is None else old[after]
            low = end if after is None else _effective_key(old[after])
            files = [old[moved[index]] if index in moved else None for index in run]
            self._insert(document, anchor, low, [new[index] for index in run], files)
        self._pass(old)

    def _followed(
        self,
        matches: Sequence[align.Match],
        moved: Mapping[int, int],
        old: Sequence[Existing],
        new: Sequence[NewChunk],
    ) -> dict[int, int]:
        """New piece to the dropped file of a person's that it is a moved and changed version of."""
        dropped = {
            match.old: old[match.old]
            for match in matches
            if isinstance(match, align.Drop) and match.old not in moved.values()
        }
        # A person did something to it, if only giving it another name or place.
        wanted = {
            number
            for number, file in dropped.items()
            if _is_a_persons(file)
            or not file.path.startswith(self._start)
            or not (self._layout.shares_folder or chunk_file.number_of_name(file.path) is not None)
        }
        if not wanted:
            return {}
        generated = {}
        for number, file in dropped.items():
            base = self._past.body(file) if chunk_file.hand_edited(file.chunk) else None
            generated[number] = file.chunk.body if base is None else base
        found = align.follow(
            generated,
            {
                match.new: new[match.new].body
                for match in matches
                if isinstance(match, align.Insert) and match.new not in moved
            },
        )
        return {at: number for at, number in found.items() if number in wanted}

    def _keep(self, file: Existing, chunk: NewChunk) -> None:
        self._result.chunks += 1
        changes: chunk_file.OurKeys = {}
        if file.chunk.headings != chunk.headings and not chunk_file.hand_edited(file.chunk):
            changes["headings"] = chunk.headings
        if file.chunk.pages != chunk.pages:
            changes["pages"] = chunk.pages
        if file.chunk.repeats != chunk.repeats:
            changes["repeats"] = chunk.repeats
        if key := _lost_key(file):
            changes["order"] = key
        if changes and not file.excluded:
            self._result.writes[file.path] = chunk_file.update(file.data, **changes)

    def _replace(
        self, document: NewDocument, file: Existing, chunk: NewChunk, *, order: str | None = None
    ) -> None:
        """Put the new text into a file, together with what a person did to it."""
        self._result.chunks += 1
        changes: chunk_file.OurKeys = {
            "pages": chunk.pages,
            "repeats": chunk.repeats,
            "origin": origin_hash(chunk.body),
        }
        if key := order or _lost_key(file):
            changes["order"] = key
        if not self._name_sources and not file.path.startswith(self._start):
            # Away from its record the file itself says where it comes from.
            changes["source"] = document.source
        if file.excluded:
            detail = f"its source text changed, but {file.excluded}"
            self._leave_to_person(document, file, chunk, detail)
        elif chunk_file.hand_edited(file.chunk):
            self._merge_into(document, file, chunk, changes)
        else:
            changes["headings"] = chunk.headings
            head = frontmatter.split(chunk_file.update(file.data, **changes)).head
            body = with_line_ends(chunk.body, file.chunk.body, head)
            self._result.writes[file.path] = head + body.encode()

    def _merge_into(
        self, document: NewDocument, file: Existing, chunk: NewChunk, changes: chunk_file.OurKeys
    ) -> None:
        base = self._past.body(file)
        if base is None:
            self._leave_to_person(document, file, chunk, _NO_BASE)
            return
        found = self._merge(base, file.chunk.body, chunk.body)
        if isinstance(found, Overlap):
            where = ""
            if found.line:
                # Lines of the whole file.
                above = frontmatter.split(file.data).head.count(b"\n")
                first, last = found.line + above, found.last_line + above
                where = f" in line {first}" if first == last else f" in lines {first}-{last}"
            detail = f"your edit and the new source text overlap{where}: {found.detail}"
            self._leave_to_person(document, file, chunk, detail)
            return
        headings = file.chunk.headings
        if headings != chunk.headings and self._past.headings(file) == headings:
            changes["headings"] = chunk.headings
        data = chunk_file.update(file.data, **changes)
        self._result.writes[file.path] = frontmatter.split(data).head + found.text.encode()
        self._result.merged.append(file.path)
        self._result.generated[origin_hash(chunk.body)] = chunk.body

    def _leave_to_person(
        self, document: NewDocument, file: Existing, chunk: NewChunk, detail: str
    ) -> None:
        origin = origin_hash(chunk.body)
        self._result.generated[origin] = chunk.body
        self._result.kept[file.path] = OpenConflict(
            detail=detail,
            base=file.chunk.origin or "",
            theirs=chunk.body,
            origin=origin,
            headings=chunk.headings,
            pages=chunk.pages,
            source=document.source,
        )

    def _drop(self, file: Existing, source: str) -> None:
        if not _is_a_persons(file):
            self._result.deletions.append(file.path)
            return
        self._result.chunks += 1
        edited = chunk_file.hand_edited(file.chunk)
        what = file.excluded or (
            "edited by hand" if edited else "it has keys or questions of yours"
        )
        self._result.kept[file.path] = OpenConflict(
            detail=f"{what}, and its source text is gone",
            base=file.chunk.origin or "",
            source=source,
        )

    def _insert(
        self,
        document: NewDocument,
        anchor: Existing | None,
        low: str | None,
        run: Sequence[NewChunk],
        moved: Sequence[Existing | None],
    ) -> None:
        """Put a run after a file: files that moved here keep their names, the rest is new."""
        place = 0 if low is None else bisect.bisect_right(self._keys, low)
        high = self._keys[place] if place < len(self._keys) else None
        # A short tag of the text over the alphabet of order keys.
        rest = int.from_bytes(embedding_key(run[0].body)[:8], "big")
        tag = ""
        for _ in range(_TAG_DIGITS):
            rest, digit = divmod(rest, len(_ALPHABET))
            tag += _ALPHABET[digit]
        orders = order_key.between(low, high, tag=tag, count=len(run))
        number = chunk_file.number_of_name(_name(anchor)) if anchor else 0
        for chunk, order, file in zip(run, orders, moved, strict=True):
            if file is not None and file.chunk.origin == origin_hash(chunk.body):
                # The same text elsewhere in its document: only our keys change.
                self._result.chunks += 1
                headings = (
                    file.chunk.headings if chunk_file.hand_edited(file.chunk) else chunk.headings
                )
                if not file.excluded:
                    self._result.writes[file.path] = chunk_file.update(
                        file.data,
                        order=order,
                        headings=headings,
                        pages=chunk.pages,
                        repeats=chunk.repeats,
                    )
                continue
            if file is not None:
                self._replace(document, file, chunk, order=order)
                continue
            self._write(number or 0, document, chunk, order)
        for order in orders:
            bisect.insort(self._keys, order)
            self._extend(order)


def _is_a_persons(file: Existing) -> bool:
    """Whether a file holds something that no source has."""
    chunk = file.chunk
    mine = chunk_file.hand_edited(chunk) or chunk.user or chunk_file.own_questions(chunk)
    return bool(mine or file.excluded)


def _name(file: Existing) -> str:
    return file.name or file.path


def _lost_key(file: Existing) -> str | None:
    """The order key that a renamed file needs, because its name tells its place no more."""
    key = _effective_key(file)
    if file.chunk.order is not None or key is None:
        return None
    number = chunk_file.number_of_name(file.path)
    return key if number is None or order_key.number_key(number) != key else None


def _effective_key(file: Existing) -> str | None:
    order = file.chunk.order
    if order is not None and order_key.valid(order):
        return order
    number = chunk_file.number_of_name(_name(file))
    return None if number is None else order_key.number_key(number)


def _moved(
    matches: Sequence[align.Match], origins: Sequence[str | None], new: Sequence[NewChunk]
) -> dict[int, int]:
    """New piece to the dropped old piece that has its very text: it moved within the document."""
    dropped: dict[str, list[int]] = {}
    for match in matches:
        if isinstance(match, align.Drop):
            dropped.setdefault(origins[match.old] or "", []).append(match.old)
    found: dict[int, int] = {}
    for match in matches:
        if isinstance(match, align.Insert):
            candidates = dropped.get(origin_hash(new[match.new].body))
            if candidates:
                found[match.new] = candidates.pop(0)
    return found


def in_order(files: Mapping[str, str | None]) -> list[str]:
    """File names with their order keys, in reading order."""
    return sorted(files, key=lambda name: chunk_file.sort_key(files[name], name))


def _folders_to(folder: str) -> dict[str, str]:
    """A folder and those above it, by how a file system that ignores case sees them."""
    parts = folder.split("/") if folder else []
    above = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return {folded_path(one): one for one in above}
