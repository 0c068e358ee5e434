"""What a document in place has: its sections with their vectors, its summaries and questions.

As `material` for chunk files: it reads the catalog alone. One rule: nothing is written into a
document; what is made of it lies in a folder of its own below `.filestore-summaries/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from filestore.catalog import FileRow, summaries
from filestore.chunks import chunk_file, kept, questions_file
from filestore.chunks.observation import DOCUMENT, INDEXED
from filestore.chunks.questions_file import Block
from filestore.core.paths import SUMMARIES, ChunkPath, inside
from filestore.enrich.material import (
    Material,
    QuestionsFile,
    SectionText,
    Text,
    excluded_of,
    read_file,
    shared_of,
)
from filestore.enrich.writing import merged

if TYPE_CHECKING:
    from filestore.chunks.chunk_file import Chunk
    from filestore.sidecar.snapshot import StoreSnapshot
    from filestore.sidecar.summary_tree import SummaryTree

_HEADING_SEPARATOR = " > "


def gather(snapshot: StoreSnapshot, tree: SummaryTree, resource: str) -> Material:
    """Read one document from the catalog."""
    rows = snapshot.catalog.files_of(resource)
    indexed = {row.path: row for row in rows if row.state == INDEXED}
    document = next((row for row in indexed.values() if row.kind == DOCUMENT), None)
    made = {
        path: read_file(snapshot, row) for path, row in indexed.items() if row.kind == "summary"
    }
    folder = inside(ChunkPath(SUMMARIES), document.path if document else ChunkPath(resource))
    path = inside(folder, questions_file.NAME)
    excluded = excluded_of(rows)
    unread = (path,) if path in excluded or ChunkPath(resource) in excluded else ()
    questions = None
    if not unread:
        row = indexed.get(path)
        data = snapshot.catalog.content(row.id) if row is not None else None
        blocks = questions_file.blocks_of(kept.read(data).body) if data is not None else ()
        questions = QuestionsFile(path=path, data=data, blocks=questions_file.joined(blocks))
    sections = _sections(snapshot, document, questions) if document else []
    texts = {one.key: Text(path=document.path, text=one.text) for one in sections if document}
    headings = document.headings_and_pages()[0] if document else ()
    return Material(
        resource=resource,
        folder=folder,
        title=headings[0] if headings else resource,
        excluded=excluded,
        sections=() if unread else sections,
        questions=questions,
        unread=unread,
        **shared_of(snapshot, tree, texts, made),
    )


def _sections(
    snapshot: StoreSnapshot, row: FileRow, questions: QuestionsFile | None
) -> list[SectionText]:
    """The sections of a document, each text once, with the questions that are theirs."""
    chunk = kept.read(snapshot.catalog.content(row.id) or b"")
    keys = summaries.section_keys(snapshot.catalog, row.id)
    found: dict[bytes, SectionText] = {}
    for key, section in zip(keys, chunk.sections, strict=True):
        body = chunk.body[section.start : section.end]
        one = replace(chunk, headings=section.headings, body=body, sections=())
        path = questions.path if questions is not None else row.path
        found.setdefault(key, SectionText(path=path, data=b"", chunk=one, key=key))
    blocks = of_sections(list(found.values()), questions)
    for key, block in blocks.items():
        found[key].chunk = replace(
            found[key].chunk,
            questions=block.questions,
            questions_origin=block.questions_origin,
        )
    return list(found.values())


def of_sections(
    sections: Sequence[SectionText], questions: QuestionsFile | None
) -> dict[bytes, Block]:
    """The block of each section, by the section's key.

    Where a text changed, it is the one that stood under the same headings.
    """
    blocks = questions.blocks if questions is not None else {}
    own = {one.key: blocks[one.key] for one in sections if one.key in blocks}
    left: dict[str, list[Block]] = {}
    for block in blocks.values():
        if block.key not in own and block.heading:
            left.setdefault(block.heading, []).append(block)
    for one in sections:
        same = left.get(_heading(one.chunk)) if one.key not in own else None
        if same:
            own[one.key] = same.pop(0)
    return own


def with_questions(
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
                heading=_heading(section.chunk),
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


def _heading(chunk: Chunk) -> str:
    """What stands above the questions of a section."""
    return f"## {_HEADING_SEPARATOR.join(chunk.headings)}".rstrip()
