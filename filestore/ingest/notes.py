"""Notes that programs write into a store for a person: a new file, or a change of one.

In a tree a note is a chunk file of a folder of its own, in the flat layout one among the others,
in place a new Markdown document. One rule: nothing that a person wrote is lost unseen: a new note
has a name that no other has, and a change names the revision that was read, and the passage or the
section that it replaces, which must be there exactly once.
"""

import os
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import CatalogPages
from filestore.chunking.blocks import markdown_blocks
from filestore.chunks import chunk_file, frontmatter
from filestore.chunks.observation import MAX_CHUNK_BYTES
from filestore.config.layout import RECORD_NAME, folded_path
from filestore.core.caller import writing_program
from filestore.core.diff import unified_bytes
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.frontmatter_yaml import MalformedFrontmatter
from filestore.core.hashing import origin_hash, revision_of
from filestore.core.paths import TOP, ChunkPath, StorePath, folder_of, inside
from filestore.core.progress import ignore
from filestore.core.safe_text import brief, safe_text, shown_path
from filestore.core.schema import JsonObject
from filestore.extract.markdown import read_frontmatter
from filestore.extract.tree_rules import left_out
from filestore.fs import disk
from filestore.fs.scan import MAX_DEPTH
from filestore.fs.transaction import collect_staged
from filestore.git.repository import refuse_during_operation
from filestore.history import write
from filestore.history.batch import is_note, is_truth
from filestore.history.permission import require_name
from filestore.ingest import put
from filestore.ingest.edits import Edit, changed, check_revision
from filestore.sync.actions import put_settled
from filestore.verify.names import why_misleading, why_unportable

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import StoreSnapshot, Writing

FOLDER: Final = "notes"
"""Where a note lies that is to lie nowhere else, but in the flat layout."""
_KEY: Final = re.compile(rb"^[^\s#][^\n]*:", re.M)
"""Without one, what is between two lines of hyphens is text."""
_MOST_ALIKE: Final = 3
_MOST_LOOKED_AT: Final = 100_000
_LONGEST: Final = 80
"""Characters of a name."""
_LONGEST_BYTES: Final = 200
_MOST_PATH_BYTES: Final = 1_000
_ANOTHER: Final = "choose another folder"
_LONGEST_TITLE: Final = 1_000
_MOST_DIFF_BYTES: Final = 8_000
_WRITABLE: Final = 0o222
_NO_NAME: Final = frozenset('/\\:*?"<>|#^[]%')
"""Signs that some file systems, links or shells read as something else."""


class Note(JsonObject, Struct, frozen=True, kw_only=True, rename={"problem": "not_embedded"}):
    """A note that was written, or what would be."""

    SPARSE = "not_embedded diff"

    path: StorePath
    """The file."""
    revision: str = ""
    """Of the file as it is now, which its next change names; empty where there is none yet."""
    diff: str | None = None
    """Of a plan, which writes nothing: what would change, as a unified diff of at most 8,000
    bytes."""
    alike: tuple[StorePath, ...] = ()
    """Other files of nearly the same name or title, where the note is new; at most three."""
    embedded: int = 0
    """Texts sent to the model."""
    reused: int = 0
    """Texts that were embedded before."""
    problem: FilestoreError | None = None
    """Why its text was left without embedding; keywords find it."""
    undo: str | None = None
    """The name that `undo` takes; None where nothing changed."""


class NewNote(Struct, frozen=True, kw_only=True):
    """A text as it is to be written; `head` and `body` are all of it."""

    head: str
    """Its own frontmatter, fences and all; "" for none."""
    body: str
    """With its title as the first heading."""
    name: str
    """Of the file that is wanted, without `.md`."""
    metadata: Mapping[str, Any]
    """Keys for the frontmatter, in addition to its own."""


def new_note(written: str, title: str, metadata: Mapping[str, Any] | None) -> NewNote:
    """A text under a name that is made of its title, or of its first words.

    Raises:
        UsageError: It is empty, no UTF-8, its title is too long, or its frontmatter cannot be read.
    """
    if len(title) > _LONGEST_TITLE:
        raise UsageError(
            f"the title has {len(title):,} characters, expected at most {_LONGEST_TITLE:,}"
            ": shorten it",
        )
    for key in metadata or ():
        if reason := why_misleading(str(key)):
            raise UsageError(f"{brief(str(key))} is not a metadata key: {reason}")
    (checked,) = put.new_chunks(written.removeprefix("\ufeff"), None, metadata)
    head, body, own = _own_frontmatter(checked.text)
    heading = safe_text(" ".join(title.split()), keep_newlines=False)
    newline = "\r\n" if "\r\n" in checked.text else "\n"
    if heading and heading != own.get("title"):
        has_title = any(
            one.kind == "heading" and one.level == 1 and (not number or one.title == heading)
            for number, one in enumerate(markdown_blocks(body))
        )
        if not has_title:
            above = newline if head else ""
            body = f"{above}# {heading}{newline * 2}" + body.lstrip("\r\n")
    if not body.strip():
        raise UsageError("the note is empty below its frontmatter: nothing could find it")
    first = next(line for line in body.splitlines() if line.strip())
    return NewNote(
        head=head,
        body=body if body.endswith("\n") else f"{body}{newline}",
        name=_stem(title or str(own.get("title", ""))) or _stem(first) or "note",
        metadata=checked.metadata if head else {**own, **checked.metadata},
    )


def _own_frontmatter(text: str) -> tuple[str, str, Mapping[str, Any]]:
    """The frontmatter of a text as it is there, its body, and the values.

    TOML and JSON are no frontmatter of chunk files: there is no head then, only values.

    Raises:
        UsageError: It cannot be read.
    """
    data = text.encode()
    try:
        parts = frontmatter.split(data)
    except MalformedFrontmatter:
        return "", text, {}
    if parts.block_line and (_KEY.search(parts.block) or not parts.block.strip()):
        try:
            own = frontmatter.parse_block(parts.block, parts.block_line)
        except MalformedFrontmatter as error:
            raise UsageError(
                f"the note has a {error.message}"
                ": write it as 'key: value' lines between two lines '---'",
            ) from error
        return parts.head.decode(), parts.body.decode(), own
    lines = text.replace("\r\n", "\n")
    values, start = read_frontmatter(lines)
    return ("", lines[start:], values) if start else ("", text, {})


def _letters(name: str) -> str:
    """The letters and digits of a name, whatever case, accents and signs it is written with."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(filter(str.isalnum, plain))


def _stem(title: str) -> str:
    """A title as the name of a file."""
    plain = "".join(
        " " if sign in _NO_NAME or unicodedata.category(sign)[0] in "CZ" else sign
        for sign in unicodedata.normalize("NFC", title)
    )
    words = " ".join(plain.split())[:_LONGEST].encode()[:_LONGEST_BYTES].decode(errors="ignore")
    stem = words.strip(" .-_~")
    # The name of a device is one with a suffix, too.
    return f"note {stem}" if stem and why_unportable(f"{stem}.md") else stem


class NoteWriter(Struct, frozen=True):
    """Writes notes into a store: as chunk files, or as documents where these are indexed in place.

    Of a document a note is the whole, its frontmatter included.
    """

    snapshot: "StoreSnapshot"
    writing: "Writing | None" = None
    """What holds the writer's lock; None where a change is planned, and nothing written."""

    def add(self, note: NewNote, wanted: str | None) -> Note:
        """Write a new note, and index it.

        Args:
            note: As `new_note` makes it.
            wanted: The folder in which it is to lie: in the tree one name, in place a path of
                folders; the flat layout has none.

        Raises:
            UsageError: The folder or a key of the metadata cannot be used.
            RefusedError: Its files belong to a source, or are no documents of the store.
            GitBusyError: A merge, rebase or the like is under way.
            WriteFailedError: The disk refused.
        """
        folder = self._folder(wanted)
        alike = self._alike(note.name)
        inner = ChunkPath(folder.rstrip("/"))
        name = self._free_name(inner, note.name)
        if self.snapshot.places.tree.is_written:
            put.check_texts_folder(self.snapshot, folder)
            own, _ = frontmatter.parse(note.head.encode())
            chunk = put.NewChunk(
                text=note.body.lstrip("\r\n"), name=name, metadata={**own, **note.metadata}
            )
            path, data = put.chunk_path(folder, chunk), put.chunk_bytes(chunk, None)
        else:
            path = inside(inner, f"{name}.md")
            self._require_document(path)
            try:
                data = frontmatter.with_keys(f"{note.head}{note.body}".encode(), note.metadata)
            except ValueError as error:
                raise UsageError(f"the metadata cannot be written: {error}") from error
        return replace(self._written(path, data, None, "add_note"), alike=alike)

    def _alike(self, name: str) -> tuple[StorePath, ...]:
        """The files whose name or title has the same letters and digits in the same order."""
        wanted = _letters(name)
        if not wanted:
            return ()
        catalog = CatalogPages(self.snapshot.catalog)
        titled = [file for file, title in catalog.aliases_of_files() if _letters(title) == wanted]
        named = (
            path
            for path in catalog.paths_below(TOP, _MOST_LOOKED_AT)
            if _letters(os.path.splitext(os.path.basename(path))[0]) == wanted
        )
        paths = dict.fromkeys([*named, *self.snapshot.catalog.indexed_paths(titled).values()])
        return tuple(map(self.snapshot.places.tree.store_path, list(paths)[:_MOST_ALIKE]))

    def _folder(self, wanted: str | None) -> str:
        """The folder of a new note; "" where it lies in the folder of the tree itself."""
        layout = self.snapshot.layout
        if layout.has_folders:
            return wanted or FOLDER
        if not layout.shares_folder:
            return FOLDER if wanted is None else wanted
        if wanted:
            raise UsageError(
                "the flat layout has no folders: leave the folder out",
            )
        return ""

    def edit(self, path: ChunkPath, edit: Edit, revision: str | None, command: str) -> Note:
        """Change a file, and index it.

        Args:
            path: The file.
            edit: What is to change in its text; in a chunk file that is what follows the
                frontmatter.
            revision: Of the file as it was read; None where it may be any.
            command: For the list of what can be undone.

        Raises:
            OtherRevisionError: The file has another revision.
            NotedElsewhere: The passage or the heading is not there exactly once.
            RefusedError: It is no Markdown, read-only, or left out of the index.
            GitBusyError: A merge, rebase or the like is under way, or it is unmerged.
            ChangedMeanwhile: It was edited at this moment; nothing was written.
        """
        places = self.snapshot.places
        has_chunks = places.tree.is_written
        name = places.tree.store_path(path)
        shown = shown_path(name)
        may_edit = is_truth(name) if has_chunks else is_note(path) and not left_out(places, [path])
        if not path.endswith(".md") or not may_edit:
            raise RefusedError(f"{shown} is no Markdown file that may be changed")
        data = self._read(path, shown)
        check_revision(name, data, revision)
        head = frontmatter.split(data).head if has_chunks else b""
        try:
            before = data[len(head) :].decode()
        except UnicodeDecodeError as error:
            raise RefusedError(f"{shown} is not UTF-8") from error
        after = changed(before, edit, shown=shown, above=head.count(b"\n"))
        if not after.strip("\ufeff \t\r\n"):
            raise UsageError(f"{shown} would be empty: nothing could find it")
        made = head + after.encode()
        if len(made) > MAX_CHUNK_BYTES:
            raise UsageError(f"{shown} would have more than {MAX_CHUNK_BYTES:,} bytes")
        if has_chunks:
            made = self._with_origin(path, data, made, after)
        else:
            _check_frontmatter(before, after, shown)
        try:
            return self._written(path, made, data, command)
        except write.ChangedMeanwhile:
            if revision is not None:
                check_revision(name, self._read(path, shown), revision)
            raise

    def _read(self, path: ChunkPath, shown: str) -> bytes:
        with disk.folder_at(self.snapshot.places.chunked) as handle:
            try:
                data, status = disk.read_below(handle, path, most=MAX_CHUNK_BYTES)
            except OSError as error:
                raise RefusedError(f"cannot read {shown}: {error.strerror or error}") from error
        if not status.st_mode & _WRITABLE:
            # A rename would replace it all the same.
            raise RefusedError(f"{shown} is read-only: leave it as it is")
        return data

    def _with_origin(self, path: ChunkPath, data: bytes, changed: bytes, text: str) -> bytes:
        """A chunk file with another text; what no person wrote stays so."""
        chunk = chunk_file.parse(data)
        record = os.path.join(self.snapshot.places.chunked, folder_of(path), RECORD_NAME)
        is_of_source = chunk.source is not None or os.path.lexists(record)
        if chunk.origin is None or chunk_file.hand_edited(chunk) or is_of_source:
            return changed
        return chunk_file.update(changed, origin=origin_hash(text))

    def _written(self, path: ChunkPath, data: bytes, before: bytes | None, command: str) -> Note:
        places = self.snapshot.places
        refuse_during_operation(places.root)
        put.refuse_unmerged(places, [path])
        name = places.tree.store_path(path)
        program = writing_program()
        if program is not None and self.snapshot.settings.agents.sign and data != before:
            data = _signed(data, program)
        if self.writing is None:
            if places.door is not None:
                require_name(places, places.door, name)
            names = shown_path(name), shown_path(name)
            return Note(
                path=name,
                revision="" if before is None else revision_of(name, before),
                diff=unified_bytes(before or b"", data, names=names, most_bytes=_MOST_DIFF_BYTES),
            )
        write.collect_leftovers(places)
        with disk.folder_at(places.root) as root:
            if os.path.isdir(os.path.dirname(os.path.join(places.root, name))):
                collect_staged(root, os.path.dirname(name))
        undo = write.change(
            places, {name: data}, before={name: before}, command=f"{command} {name}"
        )
        with self.writing.open_commit() as commit:
            put_settled(self.snapshot, commit, [path], self.writing.clock, ignore)
            done = commit.finish()
        return Note(
            path=name,
            revision=revision_of(name, data),
            embedded=done.embedded,
            reused=done.reused,
            problem=done.problem,
            undo=undo,
        )

    def _free_name(self, folder: ChunkPath, wanted: str) -> str:
        """A name that no file of a folder has, also not in other letters."""
        try:
            there = os.listdir(os.path.join(self.snapshot.places.chunked, folder))
        except (OSError, ValueError):
            return wanted
        taken = {os.path.splitext(folded_path(name))[0] for name in there}
        number, name = 1, wanted
        while folded_path(name) in taken:
            number += 1
            name = f"{wanted} {number}"
        return name

    def _require_document(self, path: ChunkPath) -> None:
        """Refuse a path where no document of the store can lie.

        Raises:
            RefusedError: Something else is there, or the rules of the folder leave it out.
        """
        places = self.snapshot.places
        folder = folder_of(path)
        parts = folder.split("/") if folder else ()
        put.check_folders(places.tree, places.root, parts, remedy=_ANOTHER)
        is_long = path.count("/") > MAX_DEPTH or len(path.encode()) > _MOST_PATH_BYTES
        if is_long or "\\" in path or not is_note(path) or not places.tree.holds(path):
            raise UsageError(
                f"no note can lie in {brief(folder)}: expected at most {MAX_DEPTH} folders of"
                f" {_MOST_PATH_BYTES:,} bytes together, none of them hidden",
                remedy=_ANOTHER,
            )
        put.refuse_left_out(places, [path])


def _signed(data: bytes, program: str) -> bytes:
    """A file with a program among its authors; as it is where its frontmatter is not YAML."""
    try:
        parts = frontmatter.split(data)
        text = parts.body.decode("utf-8", "replace").replace("\r\n", "\n")
        if not parts.block_line and read_frontmatter(text)[1]:
            return data
        had = frontmatter.parse_block(parts.block, parts.block_line).get("author")
        if had not in (None, "") and not isinstance(had, str | list):
            return data
        authors = had if isinstance(had, list) else [had] if had else []
        if program in authors:
            return data
        return frontmatter.with_keys(data, {"author": [*authors, program] if authors else program})
    except ValueError:
        return data


def _check_frontmatter(before: str, after: str, shown: str) -> None:
    """Refuse to make a frontmatter unreadable."""
    try:
        frontmatter.parse(after.encode())
    except MalformedFrontmatter as error:
        with suppress(MalformedFrontmatter):
            frontmatter.parse(before.encode())
            raise UsageError(
                f"{shown} would have a {error.message}: nothing was written"
                "; leave 'key: value' lines between two lines '---' at its top",
            ) from error
