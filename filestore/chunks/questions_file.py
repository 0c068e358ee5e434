"""The file of the questions for one document in place: Markdown that a person edits, git merges.

A block for each section: its heading, what its questions were made from and which were made, as a
comment, and the questions as a list. One rule: a line is one of these, or the file is not read.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.chunking import Section
from filestore.chunks import chunk_file
from filestore.chunks.chunk_file import Child, Chunk, InvalidMetadata, QuestionsOrigin
from filestore.chunks.frontmatter import serialize, split
from filestore.core.hashing import ORIGIN_PREFIX
from filestore.core.paths import TOP

KIND: Final = "questions"
_COMMENT: Final = re.compile(r"<!-- sha256:([0-9a-f]{64}); made:((?: [0-9a-f]{12})*) -->")
_EXPECTED: Final = 'a heading, "<!-- sha256:HASH; made: … -->", or "- " and a question'


class Block(Struct, frozen=True, kw_only=True):
    """The questions for one section."""

    heading: str
    """The line above; "" for none."""
    key: bytes
    """The embedding key of the section's text that they were made from."""
    made: tuple[str, ...]
    """See `QuestionsOrigin.made`."""
    questions: tuple[str, ...] = ()

    @property
    def questions_origin(self) -> QuestionsOrigin:
        """The same, as a chunk file has it."""
        mark = self.key.hex()[: chunk_file.MARK_DIGITS]
        return QuestionsOrigin(text=mark, made=self.made)


def read(data: bytes) -> Chunk:
    """A chunk file; one of questions has each as a section.

    Raises:
        As `chunk_file.parse`.
    """
    chunk = chunk_file.parse(data)
    if chunk.kind != KIND:
        return chunk
    first = data.count(b"\n", 0, len(data) - len(chunk.body.encode())) + 1
    blocks, places = _parsed(chunk.body, first)
    children = (Child(path=TOP, hash=ORIGIN_PREFIX + block.key.hex()) for block in blocks)
    return replace(chunk, sections=tuple(places), children=tuple(children))


def blocks_of(body: str) -> list[Block]:
    """What is in the body of a file that was read."""
    return _parsed(body, 1)[0]


def keys_of(body: str) -> list[bytes]:
    """What each question was made from, in the order of the sections."""
    return [block.key for block in blocks_of(body) for _ in block.questions]


def written(blocks: Iterable[Block], before: bytes | None) -> bytes:
    """The bytes of a file.

    Args:
        blocks: In the order of the sections.
        before: The file that is there; what is in its frontmatter stays.
    """
    body = "\n".join(_block(block) for block in blocks)
    if before is None:
        return serialize({"kind": KIND}, body.encode())
    return split(before).head + body.encode()


def _block(block: Block) -> str:
    heading = f"{block.heading}\n" if block.heading else ""
    made = "".join(f" {mark}" for mark in block.made)
    listed = "".join(f"- {question}\n" for question in block.questions)
    comment = f"<!-- {ORIGIN_PREFIX}{block.key.hex()}; made:{made} -->\n"
    return f"{heading}{comment}\n{listed}"


def _parsed(body: str, first_line: int) -> tuple[list[Block], list[Section]]:
    blocks: list[Block] = []
    questions: list[list[str]] = []
    places: list[Section] = []
    heading, at = "", 0
    for number, line in enumerate(body.split("\n"), first_line):
        start, at = at, at + len(line) + 1
        text = line.strip()
        if match := _COMMENT.fullmatch(text):
            made = tuple(match[2].split())
            blocks.append(Block(heading=heading, key=bytes.fromhex(match[1]), made=made))
            questions.append([])
            heading = ""
        elif text.startswith("- ") and blocks and not heading:
            question = text[2:].strip()
            questions[-1].append(question)
            begun = start + line.index(question)
            end = begun + len(question)
            places.append(
                Section(start=begun, end=end, headings=(), line=number, end_line=number, page=0)
            )
        elif text.startswith("#"):
            heading = text
        elif text:
            raise InvalidMetadata(
                KIND, expected=_EXPECTED, found=f"{text!r:.60}", line=number, column=1
            )
    return [
        replace(block, questions=tuple(listed))
        for block, listed in zip(blocks, questions, strict=True)
    ], places


def joined(blocks: Sequence[Block]) -> dict[bytes, Block]:
    """Blocks by what they were made from; two of one text, as a merge may leave them, are one."""
    found: dict[bytes, Block] = {}
    for block in blocks:
        if (one := found.get(block.key)) is not None:
            block = replace(
                one,
                made=tuple(dict.fromkeys((*one.made, *block.made))),
                questions=tuple(dict.fromkeys((*one.questions, *block.questions))),
            )
        found[block.key] = block
    return found
