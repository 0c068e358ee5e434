"""A person's questions stay, those they deleted stay away, the generated ones follow the text."""

from filestore.chunks import chunk_file
from filestore.enrich.writing import are_stale, count_made, merged


def chunk(body, found=None, questions=None):
    """A chunk file as read, with the questions of a merge, or those a person left of them."""
    data = chunk_file.generate(body=body)
    if found is not None:
        listed = found.questions if questions is None else questions
        data = chunk_file.update(data, questions=listed, questions_origin=found.origin)
    return chunk_file.parse(data)


def test_generated_questions_are_known_as_such() -> None:
    """What was made is in the file with its marks, and is not stale."""
    found = merged(chunk("A text.\n"), "A text.", ["What?", "Why?", "What?"])
    assert found.questions == ("What?", "Why?")
    after = chunk("A text.\n", found)
    assert chunk_file.own_questions(after) == ()
    assert count_made(after) == 2
    assert not are_stale(after, "A text.")
    assert are_stale(after, "Another text.")


def test_a_persons_question_is_never_overwritten() -> None:
    """One that was there before, and one that was changed."""
    mine = chunk_file.parse(
        chunk_file.update(chunk_file.generate(body="A.\n"), questions=["Mine?"])
    )
    found = merged(mine, "A.", ["What?", "Why?"])
    assert found.questions == ("Mine?", "What?", "Why?")
    after = chunk("A.\n", found, ("Mine?", "What exactly?", "Why?"))
    assert chunk_file.own_questions(after) == ("Mine?", "What exactly?")
    again = merged(after, "B.", ["What?", "Where?"])
    assert again.questions == ("Mine?", "What exactly?", "Where?")


def test_a_deleted_question_does_not_come_back() -> None:
    """Neither now nor from a later text."""
    found = merged(chunk("A.\n"), "A.", ["What?", "Why?"])
    after = chunk("A.\n", found, ("What?",))
    again = merged(after, "A.", ["What?", "Why?"])
    assert again.questions == ("What?",)
    later = merged(chunk("B.\n", again), "B.", ["Why?", "Who?"])
    assert later.questions == ("Who?",)


def test_the_same_questions_leave_the_order_as_it_is() -> None:
    """A person may have sorted them."""
    found = merged(chunk("A.\n"), "A.", ["What?", "Why?"])
    after = chunk("A.\n", found, ("Why?", "What?"))
    assert merged(after, "A.", ["What?", "Why?"]).questions == ("Why?", "What?")
