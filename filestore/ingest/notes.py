"""Notes that programs write into a store for a person: a new file, or a change of one.

In a tree a note is a chunk file of a folder of its own, in the flat layout one among the others,
in place a new Markdown document. One rule: nothing that a person wrote is lost unseen: a new note
has a name that no other has, and a change names the passage that it replaces, which must be there
exactly once.
"""

import os
import re
import unicodedata
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import CatalogPages
from filestore.chunking.blocks import markdown_blocks
from filestore.chunks import chunk_file, frontmatter
from filestore.chunks.observation import MAX_CHUNK_BYTES
from filestore.config.layout import RECORD_NAME, folded_path
from filestore.core.errors import FilestoreError, RefusedError, UsageError
from filestore.core.frontmatter_yaml import MalformedFrontmatter
from filestore.core.hashing import content_hash, origin_hash
from filestore.core.paths import CHUNKS, TOP, ChunkPath, StorePath, folder_of, inside
from filestore.core.progress import ignore
from filestore.core.safe_text import brief, shown_path
from filestore.core.schema import JsonObject
from filestore.extract.markdown import read_frontmatter
from filestore.fs import disk
from filestore.fs.scan import MAX_DEPTH
from filestore.fs.transaction import collect_staged
from filestore.git.repository import refuse_during_operation
from filestore.history import write
from filestore.history.backup_store import list_batches
from filestore.history.batch import is_note, is_truth
from filestore.ingest import put
from filestore.ingest.put import refuse_unmerged
from filestore.sync.actions import put_settled
from filestore.verify.names import why_unportable

if TYPE_CHECKING:
    from filestore.fs.scan import TreeRules
    from filestore.sidecar.snapshot import Writing

FOLDER: Final = "notes"
"""Where a note lies that is to lie nowhere else, but in the flat layout."""
_WRITTEN_BY: Final = ("add_note ", "edit_note ", "put ")
"""How the changes begin that programs made."""
_KEY: Final = re.compile(rb"^[^\s#][^\n]*:", re.M)
"""Without one, what is between two lines of hyphens is text."""
_MOST_ALIKE: Final = 3
_MOST_LOOKED_AT: Final = 100_000
_LONGEST: Final = 80
"""Characters of a name."""
_LONGEST_BYTES: Final = 200
_MOST_PATH_BYTES: Final = 1_000
_ANOTHER: Final = "choose another folder"
_NO_NAME: Final = frozenset('/\\:*?"<>|#^[]%')
"""Signs that some file systems, links or shells read as something else."""


class NotedElsewhere(RefusedError):
    """What was to be changed is not as it was named."""


class Note(JsonObject, Struct, frozen=True, kw_only=True, rename={"problem": "not_embedded"}):
    """A note that was written."""

    SPARSE = "not_embedded"

    path: StorePath
    """The file that was written."""
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


class Edit(Struct, frozen=True, kw_only=True):
    """A change of one file: a passage, or all of its text."""

    old: str = ""
    """The passage; "" where all is replaced."""
    new: str = ""


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
        UsageError: It is empty, no UTF-8, or its frontmatter cannot be read.
    """
    (checked,) = put.new_chunks(written.removeprefix("\ufeff"), None, metadata)
    head, body, own = _own_frontmatter(checked.text)
    heading = " ".join(title.split())
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
        name=_stem(heading or str(own.get("title", ""))) or _stem(first) or "note",
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
                f"the note has a {error.message}",
                remedy="write it as 'key: value' lines between two lines '---'",
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

    store: "Writing"

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
        if not self.store.snapshot.places.tree.is_written:
            path = inside(inner, f"{name}.md")
            self._require_document(path)
            try:
                data = frontmatter.with_keys(f"{note.head}{note.body}".encode(), note.metadata)
            except ValueError as error:
                raise UsageError(f"the metadata cannot be written: {error}") from error
            return replace(self._written(path, data, None, "add_note"), alike=alike)
        own, _ = frontmatter.parse(note.head.encode())
        renamed = put.NewChunk(
            text=note.body.lstrip("\r\n"), name=name, metadata={**own, **note.metadata}
        )
        done = put.put(self.store, [renamed], folder, replace=False, on_progress=ignore)
        return Note(
            path=done.paths[0],
            alike=alike,
            embedded=done.embedded,
            reused=done.reused,
            problem=done.problem,
            undo=done.undo,
        )

    def _alike(self, name: str) -> tuple[StorePath, ...]:
        """The files whose name or title has the same letters and digits in the same order."""
        wanted = _letters(name)
        if not wanted:
            return ()
        catalog = CatalogPages(self.store.snapshot.catalog)
        titled = [file for file, title in catalog.aliases_of_files() if _letters(title) == wanted]
        named = (
            path
            for path in catalog.paths_below(TOP, _MOST_LOOKED_AT)
            if _letters(os.path.splitext(os.path.basename(path))[0]) == wanted
        )
        paths = dict.fromkeys([*named, *self.store.snapshot.catalog.indexed_paths(titled).values()])
        return tuple(map(self.store.snapshot.places.tree.store_path, list(paths)[:_MOST_ALIKE]))

    def _folder(self, wanted: str | None) -> str:
        """The folder of a new note; "" where it lies in the folder of the tree itself."""
        layout = self.store.snapshot.layout
        if layout.has_folders:
            return wanted or FOLDER
        if not layout.shares_folder:
            return FOLDER if wanted is None else wanted
        if wanted:
            raise UsageError(
                "the flat layout has no folders: a note lies beside the other files",
                remedy="name no folder",
            )
        return ""

    def edit(self, path: ChunkPath, edit: Edit) -> Note:
        """Change a file, and index it.

        Args:
            path: The file.
            edit: What is to change in its text; in a chunk file that is what follows the
                frontmatter.

        Raises:
            NotedElsewhere: The passage is not there exactly once, or a person edited the file.
            RefusedError: It is no Markdown, or made from others.
            GitBusyError: A merge, rebase or the like is under way, or it is unmerged.
            ChangedMeanwhile: It was edited at this moment; nothing was written.
        """
        places = self.store.snapshot.places
        has_chunks = places.tree.is_written
        shown = shown_path(places.tree.store_path(path))
        may_edit = is_truth(CHUNKS.store_path(path)) if has_chunks else is_note(path)
        if not path.endswith(".md") or not may_edit:
            raise RefusedError(f"{shown} is no Markdown file that may be changed")
        with disk.folder_at(places.chunked) as handle:
            try:
                data, _ = disk.read_below(handle, path, most=MAX_CHUNK_BYTES)
            except OSError as error:
                raise RefusedError(f"cannot read {shown}: {error.strerror or error}") from error
        head = frontmatter.split(data).head if has_chunks else b""
        try:
            before = data[len(head) :].decode()
        except UnicodeDecodeError as error:
            raise RefusedError(f"{shown} is not UTF-8") from error
        if not edit.old and not self._is_ours(path, data):
            raise NotedElsewhere(
                f"a person wrote or edited {shown}: it is not replaced as a whole",
                remedy="read it again, and replace a passage of it",
            )
        if has_chunks and not edit.old:
            # The file gets the keys that a whole new text has above it.
            _, text, own = _own_frontmatter(edit.new.removeprefix("\ufeff"))
            put.check_keys(own)
            try:
                head, edit = frontmatter.with_keys(head, own), Edit(new=text.lstrip("\r\n"))
            except ValueError as error:
                raise UsageError(f"the frontmatter cannot be written: {error}") from error
        after = _replaced(before, edit, shown)
        if not after.strip():
            raise UsageError(f"{shown} would be empty: nothing could find it")
        if len(after) > MAX_CHUNK_BYTES:
            raise UsageError(f"{shown} would have more than {MAX_CHUNK_BYTES:,} bytes")
        made = head + after.encode()
        if has_chunks:
            made = self._with_origin(path, data, made, after)
        return self._written(path, made, data, "edit_note")

    def _with_origin(self, path: ChunkPath, data: bytes, changed: bytes, text: str) -> bytes:
        """A chunk file with another text; what no person wrote stays so."""
        chunk = chunk_file.parse(data)
        record = os.path.join(self.store.snapshot.places.chunked, folder_of(path), RECORD_NAME)
        is_of_source = chunk.source is not None or os.path.lexists(record)
        if chunk.origin is None or chunk_file.hand_edited(chunk) or is_of_source:
            return changed
        return chunk_file.update(changed, origin=origin_hash(text))

    def _is_ours(self, path: ChunkPath, data: bytes) -> bool:
        """Whether a program wrote a file as it is, so that no word of a person is in it."""
        places = self.store.snapshot.places
        wanted = places.tree.store_path(path)
        held = content_hash(data)
        for batch in reversed(list_batches(places.undo)):
            entry = next((one for one in batch.entries if one.path == wanted), None)
            if entry is None or batch.wanted == "before":
                continue
            if entry.after is None or entry.after.digest != held:
                return False
            if not batch.what.startswith(_WRITTEN_BY):
                return False
            if entry.before is None:
                return True
            held = entry.before.digest
        return False

    def _written(self, path: ChunkPath, data: bytes, before: bytes | None, command: str) -> Note:
        places = self.store.snapshot.places
        refuse_during_operation(places.root)
        refuse_unmerged(places, [path])
        name = places.tree.store_path(path)
        write.collect_leftovers(places)
        with disk.folder_at(places.root) as root:
            if os.path.isdir(os.path.dirname(os.path.join(places.root, name))):
                collect_staged(root, os.path.dirname(name))
        undo = write.change(
            places, {name: data}, before={name: before}, command=f"{command} {name}"
        )
        with self.store.open_commit() as commit:
            put_settled(self.store.snapshot, commit, [path], self.store.clock, ignore)
            done = commit.finish()
        return Note(
            path=name,
            embedded=done.embedded,
            reused=done.reused,
            problem=done.problem,
            undo=undo,
        )

    def _free_name(self, folder: ChunkPath, wanted: str) -> str:
        """A name that no file of a folder has, also not in other letters."""
        try:
            there = os.listdir(os.path.join(self.store.snapshot.places.chunked, folder))
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
        places = self.store.snapshot.places
        folder = folder_of(path)
        inner = TOP
        for part in folder.split("/") if folder else ():
            put.check_folder(places.tree, places.root, inner, part, remedy=_ANOTHER)
            inner = inside(inner, part)
        is_long = path.count("/") > MAX_DEPTH or len(path.encode()) > _MOST_PATH_BYTES
        if is_long or "\\" in path or not is_note(path) or not places.tree.holds(path):
            raise UsageError(
                f"no note can lie in {brief(folder)}: expected at most {MAX_DEPTH} folders of"
                f" {_MOST_PATH_BYTES:,} bytes together, none of them hidden",
                remedy=_ANOTHER,
            )
        if self._is_left_out(path):
            raise RefusedError(
                f"{shown_path(path)} would be left out of the index by the rules of its folder",
                remedy="choose another folder, or change .gitignore or the ignore list",
            )

    def _is_left_out(self, path: ChunkPath) -> bool:
        around: TreeRules | None = self.store.snapshot.places.rules
        if around is None:
            return False
        folder = ChunkPath("")
        for part in path.split("/"):
            try:
                with (
                    disk.folder_at(self.store.snapshot.places.root) as root,
                    disk.folder(root, folder) if folder else nullcontext(root) as handle,
                ):
                    names = sorted({*os.listdir(handle), part})
                    rules = around.enter(handle, folder, names)
            except FileNotFoundError:
                return False
            is_last = inside(folder, part) == path
            if isinstance(rules, str) or rules.choose([part], [] if is_last else [0]).left_out:
                return True
            around, folder = rules, inside(folder, part)
        return False


def _replaced(before: str, edit: Edit, shown: str) -> str:
    """A text after an edit; a passage is found as well where lines end in CR LF."""
    old, new = edit.old, edit.new
    ends_in_crlf = "\r\n" in before
    if ends_in_crlf and "\r" not in old + new:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if not old:
        return new
    found = before.count(old)
    if found != 1:
        raise NotedElsewhere(
            f"the passage is {f'{found} times' if found else 'not'} in {shown}: nothing was done",
            remedy="read it again, and give a passage that is in it exactly once",
        )
    return before.replace(old, new)
