"""The bytes of files with new questions or a new summary. Pure.

One rule: only our keys change. A body that a person wrote or edited is left as it is; a question
that they wrote or changed stays, and one that they deleted stays away.
"""

from collections.abc import Sequence

from msgspec import Struct

from filestore.chunks import chunk_file, frontmatter
from filestore.chunks.chunk_file import (
    Child,
    Chunk,
    HasQuestions,
    QuestionsOrigin,
    own_questions,
    text_mark,
)
from filestore.core.hashing import ORIGIN_PREFIX, embedding_key, origin_hash
from filestore.core.paths import ChunkPath
from filestore.enrich.material import ChunkFile
from filestore.generate import Made
from filestore.git.merge import with_line_ends


class Questions(Struct, frozen=True, kw_only=True):
    """What a file is to have."""

    questions: tuple[str, ...]
    origin: QuestionsOrigin


def are_stale(chunk: HasQuestions, text: str) -> bool:
    """Whether questions were made for it, and from another text than it has now."""
    origin = chunk.questions_origin
    return origin is not None and bool(origin.made) and origin.text != text_mark(text)


def count_made(chunk: HasQuestions) -> int:
    """How many questions were made for it, those that a person took out included."""
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
        file: The one that is there, whose text nobody edited; None for a new one.
        made: Its title, text and questions.
        children: What it was made from, in reading order.
        level: One more than the highest child's.
        label: The generator, for the file.
        source: The document, where the layout needs its name.
        asked: Whether questions were asked for; else those that are there stay.

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
