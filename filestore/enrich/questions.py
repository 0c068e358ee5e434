"""Generated questions beside a person's own in one chunk file. Pure.

One rule: a question that a person wrote or changed stays, and one that they deleted stays away.
"""

from collections.abc import Sequence

from msgspec import Struct

from filestore.chunks.chunk_file import HasQuestions, QuestionsOrigin, own_questions, text_mark


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
