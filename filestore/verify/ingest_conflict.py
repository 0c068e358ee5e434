"""What a person's choice in an ingest conflict makes of the chunk file. Pure.

One rule: what the person wrote goes only where they said so.
"""

from typing import Literal, TypeAlias

from filestore.catalog import Conflict
from filestore.chunks import chunk_file, frontmatter
from filestore.git.merge import with_line_ends

Choice: TypeAlias = Literal["ours", "theirs"]


def is_of_source(conflict: Conflict, found: str | None) -> bool:
    """Whether the new text of a conflict is still the one of its source.

    Args:
        conflict: As the catalog has it.
        found: The hash of its source document as it is now, "" where it is gone; None where it
            can tell, and the conflict is believed.
    """
    return found is None or found == conflict.document


def is_of_file(conflict: Conflict, chunk: chunk_file.Chunk | None) -> bool:
    """Whether a conflict is about a file as it is: edited, and made from what it was made from.

    Args:
        conflict: As the catalog has it.
        chunk: None for a file that cannot be read, which keeps its conflict.
    """
    if chunk is None:
        return True
    if (chunk.origin or "") != conflict.base:
        return False
    # Where the text went from the source, keys and questions of a person's are at stake, too.
    mine = conflict.theirs is None and (chunk.user or chunk_file.own_questions(chunk))
    return bool(chunk_file.hand_edited(chunk) or mine)


def still_open(conflict: Conflict, chunk: chunk_file.Chunk | None, found: str | None) -> bool:
    """Whether a conflict is about a file and a source as they are; a choice in any other loses."""
    return is_of_source(conflict, found) and is_of_file(conflict, chunk)


def resolve(data: bytes, conflict: Conflict, choice: Choice) -> bytes | None:
    """The file after a choice; adding its source again then finds nothing left to choose.

    Args:
        data: The file as it is, which may have been edited since the conflict was found.
        conflict: As the catalog has it.
        choice: ``ours`` keeps the body as it is, also one that was merged by hand; where the source
            has no text any more the file becomes the person's own. ``theirs`` takes the new text.

    Returns:
        Its bytes; None where it is to be deleted.

    Raises:
        MalformedFrontmatter: The frontmatter cannot be read or not be edited in place.
    """
    if choice == "ours":
        return chunk_file.update(data, origin=conflict.origin)
    if conflict.theirs is None:
        return None
    made = chunk_file.update(
        data, headings=conflict.headings, pages=conflict.pages, origin=conflict.origin
    )
    parts = frontmatter.split(made)
    return parts.head + with_line_ends(conflict.theirs, parts.body.decode(), parts.head).encode()
