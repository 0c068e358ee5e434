"""The file of questions for a document in place: read strictly, written as it was read."""

import pytest

from filestore.chunks import chunk_file, questions_file
from filestore.chunks.chunk_file import InvalidMetadata, text_mark
from filestore.chunks.questions_file import Block
from filestore.core.hashing import embedding_key

KEY = embedding_key("A text.")
HEAD = '---\nkind: "questions"\n---\n'
BLOCK = Block(
    heading="## Home > Heating",
    key=KEY,
    made=(text_mark("What?"), text_mark("Why?")),
    questions=("What?", "Mine?"),
)


def test_it_is_read_as_it_was_written() -> None:
    """Each question is a text of its own; what it was made from is told by a hash."""
    other = Block(heading="", key=embedding_key("Other."), made=(), questions=("Ärger\xa0?",))
    data = questions_file.written([BLOCK, other], None)
    assert data.decode().startswith(HEAD)
    chunk = questions_file.read(data)
    assert chunk_file.texts(chunk) == ("What?", "Mine?", "Ärger\xa0?")
    assert questions_file.blocks_of(chunk.body) == [BLOCK, other]
    assert questions_file.keys_of(chunk.body) == [KEY, KEY, other.key]
    lines = data.decode().split("\n")
    assert [lines[one.line - 1] for one in chunk.sections[:2]] == ["- What?", "- Mine?"]
    assert chunk_file.own_questions(BLOCK) == ("Mine?",)


def test_a_file_without_questions_has_no_texts() -> None:
    """Those that a person deleted are still known as made."""
    data = questions_file.written([Block(heading="", key=KEY, made=BLOCK.made)], None)
    chunk = questions_file.read(data)
    assert chunk_file.texts(chunk) == ()
    assert questions_file.blocks_of(chunk.body)[0].made == BLOCK.made


def test_line_ends_and_keys_of_others_stay_out_of_the_questions() -> None:
    """CRLF, spaces, and a key of a person's own."""
    text = questions_file.written([BLOCK], None).decode().replace("\n", "\r\n")
    text = text.replace("kind:", "mine: 1\r\nkind:", 1).replace("- What?", "-   What?  ")
    chunk = questions_file.read(text.encode())
    assert chunk_file.texts(chunk) == ("What?", "Mine?")
    assert questions_file.written([BLOCK], text.encode()).startswith(b"---\r\nmine: 1\r\n")


@pytest.mark.parametrize(
    "line",
    ["plain words", "- a question above all", "<!-- sha256:abc; made: -->", "* What?", "> - What?"],
)
def test_any_other_line_is_told(line: str) -> None:
    """With where it stands: a list of questions is no place for notes."""
    data = f"{HEAD}{line}\n".encode() + questions_file.written([BLOCK], None)[len(HEAD) :]
    with pytest.raises(InvalidMetadata, match="line 4") as told:
        questions_file.read(data)
    assert told.value.line == 4


def test_two_blocks_of_one_text_are_one() -> None:
    """A merge may leave both."""
    theirs = Block(
        heading="## Old", key=KEY, made=(text_mark("Who?"),), questions=("Who?", "What?")
    )
    joined = questions_file.joined([BLOCK, theirs])[KEY]
    assert joined.questions == ("What?", "Mine?", "Who?")
    assert joined.made == (*BLOCK.made, *theirs.made)
    assert joined.heading == BLOCK.heading
