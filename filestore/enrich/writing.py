"""Files with new questions or a new summary: their bytes, written and indexed some at a time.

One rule: only our keys change, and only in a file that holds what was indexed; what a person
changed since is left, and reported. A body that they wrote or edited is left as it is; a question
that they wrote or changed stays, and one that they deleted stays away. All of a run is undone
together.

What was made of a document in place that lies elsewhere now goes along with it: where at least half
of its texts are in one document, for which nothing was made yet; else it stays, and is stale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.catalog import queries, summaries
from filestore.chunks import chunk_file, frontmatter, questions_file
from filestore.chunks.chunk_file import (
    Child,
    Chunk,
    HasQuestions,
    QuestionsOrigin,
    own_questions,
    text_mark,
)
from filestore.chunks.observation import DOCUMENT
from filestore.chunks.questions_file import Block
from filestore.core.hashing import ORIGIN_PREFIX, embedding_key, origin_hash, vector_id
from filestore.core.paths import SUMMARIES, ChunkPath, inside, made_of
from filestore.core.progress import OnProgress
from filestore.core.safe_text import shown_path
from filestore.enrich.material import ChunkFile, Material, Text, heading_of, of_sections
from filestore.fs import disk
from filestore.generate import Made
from filestore.git import repository
from filestore.git.merge import with_line_ends
from filestore.history import write as truth
from filestore.history.batch import is_truth
from filestore.sync.actions import put_settled

if TYPE_CHECKING:
    from filestore.catalog import Catalog
    from filestore.core.errors import FilestoreError
    from filestore.sidecar.session import Parts


class Questions(Struct, frozen=True, kw_only=True):
    """What a file is to have."""

    questions: tuple[str, ...]
    origin: QuestionsOrigin


def are_stale(chunk: HasQuestions, text: str) -> bool:
    """Whether questions were made for it, and from another text than it has now."""
    origin = chunk.questions_origin
    return origin is not None and bool(origin.made) and origin.text != text_mark(text)


def count_made(chunk: HasQuestions) -> int:
    """How many questions were made for it, removed ones included."""
    return len(chunk.questions_origin.made) if chunk.questions_origin else 0


def merged(chunk: HasQuestions | None, text: str, made: Sequence[str]) -> Questions:
    """A file's questions once some were generated for it.

    Args:
        chunk: The file as it is; None for a new one.
        text: What they were made from.
        made: The generated ones, which replace those generated before.
    """
    origin = chunk.questions_origin if chunk else None
    there = chunk.questions if chunk else ()
    own = own_questions(chunk) if chunk else ()
    marks = set(map(text_mark, there))
    taken_out = [mark for mark in (origin.made if origin else ()) if mark not in marks]
    fresh = [one for one in dict.fromkeys(made) if one not in own]
    kept = [one for one in fresh if text_mark(one) not in taken_out]
    is_same = {*own, *kept} == set(there)
    questions = tuple(there) if is_same else (*own, *kept)
    all_made = dict.fromkeys([*taken_out, *map(text_mark, kept)])
    return Questions(
        questions=questions,
        origin=QuestionsOrigin(text=text_mark(text), made=tuple(all_made)),
    )


def child_of(path: ChunkPath, text: str) -> Child:
    """A child as a summary names it, with the text that was read."""
    return Child(path=path, hash=ORIGIN_PREFIX + embedding_key(text).hex())


def is_made_from(file: ChunkFile, texts: Sequence[Text]) -> bool:
    """Whether a summary was made from exactly these texts."""
    wanted = {(one.path, child_of(one.path, one.text).key) for one in texts}
    return {(child.path, child.key) for child in file.chunk.children} == wanted


def is_a_persons(chunk: Chunk) -> bool:
    """Whether the text of a summary was written or edited by hand."""
    return chunk.origin is None or chunk_file.hand_edited(chunk)


def with_questions(file: ChunkFile, made: Sequence[str]) -> bytes:
    """A file with questions that were generated for it.

    Raises:
        MalformedFrontmatter: Its frontmatter cannot be edited in place.
        ValueError: It would be larger than frontmatter may be.
    """
    found = merged(file.chunk, file.text, made)
    if found.questions == file.chunk.questions and found.origin == file.chunk.questions_origin:
        return file.data
    return chunk_file.update(file.data, questions=found.questions, questions_origin=found.origin)


def with_document_questions(
    material: Material, answered: Mapping[bytes, Sequence[str]]
) -> tuple[bytes | None, bool]:
    """The file of a document's questions with new ones.

    Args:
        material: With a file that can be read.
        answered: What was generated, by the key of the section.

    Returns:
        Its bytes, None for no file; and whether it has a person's for a text that is gone.
    """
    questions = material.questions
    assert questions is not None
    blocks = of_sections(material.sections, questions)
    found: list[Block] = []
    for section in material.sections:
        block = blocks.get(section.key)
        made = answered.get(section.key)
        if made is not None:
            new = merged(block, section.text, made)
            block = Block(
                heading=heading_of(section.chunk),
                key=section.key,
                made=new.origin.made,
                questions=new.questions,
            )
        elif block is not None and not block.made:
            # Nothing that is there was made from a text: it goes where the text went.
            block = replace(block, key=section.key)
        if block is not None:
            found.append(block)
    taken = {block.key for block in blocks.values()}
    orphans = [block for key, block in questions.blocks.items() if key not in taken]
    own = [block for block in orphans if chunk_file.own_questions(block)]
    found += [replace(block, questions=chunk_file.own_questions(block)) for block in own]
    if found == list(questions.blocks.values()):
        return questions.data, bool(own)
    return questions_file.written(found, questions.data) if found else None, bool(own)


def summary(
    file: ChunkFile | None,
    made: Made,
    children: Sequence[Child],
    *,
    level: int,
    label: str,
    source: str | None,
    asked: bool,
) -> bytes:
    """A summary file.

    Args:
        file: The one that is there, whose text was not edited; None for a new one.
        made: Its title, text and questions.
        children: What it was made from, in reading order.
        level: One more than the highest child's.
        label: The generator, for the file.
        source: The document, where the layout needs its name.
        asked: Whether questions were asked for; else the ones that are there stay.

    Raises:
        MalformedFrontmatter: The frontmatter that is there cannot be edited in place.
        ValueError: It would be larger than frontmatter may be.
    """
    headings = (made.title,) if made.title else ()
    body = made.text.strip("\n") + "\n"
    text = chunk_file.embed_text(headings, body)
    found = merged(file.chunk if file else None, text, made.lines) if asked else None
    if file is None:
        return chunk_file.generate(
            body=body,
            source=source,
            kind="summary",
            level=level,
            headings=headings,
            children=children,
            made_by=label,
            questions=found.questions if found else (),
            questions_origin=found.origin if found else None,
        )
    changes: chunk_file.OurKeys = {
        "kind": "summary",
        "level": level,
        "headings": headings,
        "children": children,
        "made_by": label,
        "origin": origin_hash(body),
    }
    if found is not None:
        changes |= {"questions": found.questions, "questions_origin": found.origin}
    head = frontmatter.split(chunk_file.update(file.data, **changes)).head
    return head + with_line_ends(body, file.chunk.body, head).encode()


COMMAND: Final = "enrich"
_AT_ONCE: Final = 1_000
_CHANGED: Final = "it was changed meanwhile; run the command again"


class Writer(Struct, kw_only=True, dict=True):
    """Writes what one run makes."""

    _parts: Parts
    _on_progress: OnProgress
    _changes: dict[ChunkPath, bytes | None] = field(default_factory=dict)
    _before: dict[ChunkPath, bytes | None] = field(default_factory=dict)
    group: str = ""
    """Under which name all originals are kept; "" while nothing was written."""
    left: list[tuple[ChunkPath, str]] = field(default_factory=list)
    """Files that could not be written, and why."""
    done: set[ChunkPath] = field(default_factory=set)
    """Files that were written."""
    embedded: int = 0
    reused: int = 0
    problem: FilestoreError | None = None

    def __post_init__(self) -> None:
        self._clock = self._parts.clock()

    def leave(self, path: ChunkPath, reason: str) -> None:
        """Note a file that is not written."""
        self.left.append((path, reason))

    def put(self, path: ChunkPath, data: bytes | None, before: bytes | None) -> None:
        """Take a file to be written, together with others.

        Args:
            path: Below the folder of the tree.
            data: Its bytes; None removes the file.
            before: What was indexed; None where there was no file.

        Raises:
            As `flush`.
        """
        self._before.setdefault(path, before)
        self._changes[path] = data
        if len(self._changes) >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write and index what waits.

        Raises:
            GitBusyError: A merge, rebase or the like is under way.
            LockedError: Another writer holds the store.
            WriteFailedError: The disk refused; what was written before stays.
        """
        changes, before = self._changes, self._before
        self._changes, self._before = {}, {}
        if not changes:
            return
        places = self._parts.places
        repository.refuse_during_operation(places.root)
        with self._parts.writing(COMMAND) as (catalog, embeddings, _):
            chosen = self._unchanged(changes, before)
            if not chosen:
                return
            truth.collect_leftovers(places)
            tree = places.tree
            batch = truth.change(
                places,
                {tree.store_path(path): changes[path] for path in chosen},
                before={tree.store_path(path): before.get(path) for path in chosen},
                command=COMMAND,
                group=self.group,
                collects=not self.group,
            )
            self.group = self.group or batch or ""
            snapshot = self._parts.snapshot(catalog, embeddings)
            with self._parts.commit(catalog, embeddings, embed=True) as commit:
                commit.forget([path for path in chosen if changes[path] is None])
                there = [path for path in chosen if changes[path] is not None]
                put_settled(snapshot, commit, there, self._clock, self._on_progress)
                done = commit.finish()
            self.embedded += done.embedded
            self.reused += done.reused
            self.problem = self.problem or done.problem
            self.done.update(chosen)

    def _unchanged(
        self,
        changes: Mapping[ChunkPath, bytes | None],
        before: Mapping[ChunkPath, bytes | None],
    ) -> list[ChunkPath]:
        """The files that hold what was indexed, and that git has no two sides of."""
        held = repository.unmerged(self._parts.places.chunked)
        chosen: list[ChunkPath] = []
        with disk.folder_at(self._parts.places.chunked) as handle:
            for path in changes:
                if path in held:
                    self.leave(path, "git has it as unmerged: resolve the conflict first")
                elif not is_truth(self._parts.places.tree.store_path(path)):
                    self.leave(path, "of a name with signs that some systems do not see")
                elif _read(handle, path) == before.get(path):
                    chosen.append(path)
                else:
                    self.leave(path, _CHANGED)
        return chosen


def _read(handle: int, path: ChunkPath) -> bytes | None:
    try:
        return disk.read_below(handle, path)[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        disk.pass_limits(error)
        return f"unreadable: {shown_path(path)}".encode()


class Move(Struct, frozen=True, kw_only=True):
    """A document that has another name, and what follows from that."""

    old: ChunkPath
    new: ChunkPath
    changes: Mapping[ChunkPath, bytes | None]
    """Path of a file that was made of it, to its bytes; None for what is gone."""
    before: Mapping[ChunkPath, bytes | None]


def moves(catalog: Catalog) -> list[Move]:
    """The documents that lie elsewhere now."""
    made: dict[ChunkPath, list[ChunkPath]] = {}
    for path in queries.made_files(catalog):
        made.setdefault(made_of(path), []).append(path)
    there = catalog.files(list(made))
    found: list[Move] = []
    taken = set(made)
    for old in made:
        if old in there and there[old].kind == DOCUMENT:
            continue
        new = _new_place(catalog, made[old])
        if new is not None and new not in taken:
            taken.add(new)
            folder = f"{SUMMARIES}/{old}/"
            before: dict[ChunkPath, bytes | None] = {}
            after: dict[ChunkPath, bytes | None] = {}
            for path, row in catalog.files(made[old]).items():
                data = catalog.content(row.id) or b""
                target = _moved_path(path, folder, new)
                before |= {path: data, target: None}
                after |= {path: None, target: _renamed(data, old, new)}
            found.append(Move(old=old, new=new, changes=after, before=before))
    return found


def _new_place(catalog: Catalog, paths: Iterable[ChunkPath]) -> ChunkPath | None:
    """The document that has most of the texts that some files were made from."""
    keys = summaries.keys_read(catalog, list(paths))
    owners = catalog.files_of_vectors([vector_id(key) for key in keys])
    counts = Counter(
        file for found in owners.values() for file in dict.fromkeys(file for file, _ in found)
    )
    rows = catalog.files_by_id(list(counts))
    best = [
        (-counts[file], row.path)
        for file, row in rows.items()
        if row.kind == DOCUMENT and 2 * counts[file] >= len(keys)
    ]
    return min(best)[1] if best else None


def _moved_path(path: ChunkPath, folder: str, new: ChunkPath) -> ChunkPath:
    return inside(inside(ChunkPath(SUMMARIES), new), path.removeprefix(folder))


def _renamed(data: bytes, old: ChunkPath, new: ChunkPath) -> bytes:
    """A file with its children under their new names."""
    chunk = questions_file.read(data)
    if chunk.kind == questions_file.KIND or not chunk.children:
        return data
    folder = f"{SUMMARIES}/{old}/"
    children = [
        replace(child, path=new)
        if child.path == old
        else replace(child, path=_moved_path(child.path, folder, new))
        if child.path.startswith(folder)
        else child
        for child in chunk.children
    ]
    return chunk_file.update(data, children=children)
