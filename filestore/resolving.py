"""What a person's choice in an ingest conflict makes of the chunk file. Pure.

One rule: what the person wrote goes only where they said so.
"""

from typing import Literal, TypeAlias

from filestore import chunkfile, frontmatter
from filestore.catalog import Conflict

Choice: TypeAlias = Literal["ours", "theirs"]


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
        return chunkfile.update(data, origin=conflict.origin)
    if conflict.theirs is None:
        return None
    made = chunkfile.update(
        data, headings=conflict.headings, pages=conflict.pages, origin=conflict.origin
    )
    return frontmatter.split(made).head + conflict.theirs.encode()
