"""A chunk from outside into the bytes of a chunk file, within what such a file can hold. Pure.

One rule: what a file cannot hold of its metadata is named and left out, and the text is taken.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from filestore.chunks import chunk_file
from filestore.chunks.frontmatter import parse, serialize
from filestore.chunks.layout import Layout
from filestore.chunks.observation import INDEXED, MAX_CHUNK_BYTES, Observation, why_excluded
from filestore.core.errors import FilestoreError
from filestore.core.frontmatter_yaml import MAX_BLOCK_BYTES
from filestore.core.hashing import origin_hash
from filestore.core.paths import ChunkPath

_NO_STAT: Final = (0, 0, 0, 0, 0)


class UnusableChunkError(FilestoreError, ValueError):
    """A text cannot be a chunk file."""


def written(
    path: ChunkPath,
    text: str,
    frontmatter: Mapping[str, Any],
    layout: Layout,
    on_left: Callable[[str], None],
) -> Observation:
    """The file of a chunk, as whoever reads the tree will see it.

    Args:
        path: Where it is to be.
        text: Its body.
        frontmatter: Any mapping of texts to JSON values.
        layout: Of the store.
        on_left: Called with what of the frontmatter is left out, and why.

    Raises:
        UnusableChunkError: No file with this text would be searched.
    """
    try:
        body = text.encode()
    except UnicodeEncodeError as error:
        raise UnusableChunkError("the text holds half of a character") from error
    if not text.strip():
        raise UnusableChunkError("the text is empty")
    if len(body) > MAX_CHUNK_BYTES:
        raise UnusableChunkError(
            f"the text has {len(body):,} bytes, at most {MAX_CHUNK_BYTES:,} are read"
        )
    values = dict(frontmatter)
    for _ in range(len(values) + 2):
        data, wrong = _serialized(values, body)
        if data is None:
            for key, reason in wrong.items():
                on_left(f"{key!r:.60}: {reason}")
                del values[key]
            continue
        look = Observation(path=path, values=_NO_STAT, state=INDEXED, data=data)
        layout.interpret(look, path.rpartition("/")[2])
        if look.state == INDEXED:
            return look
        if look.state == "conflict-markers" and "origin" not in values:
            # A text about git, not a merge that somebody has to finish.
            values["origin"] = origin_hash(text)
            continue
        keys, reason = _wrong_keys(data, values, look)
        for key in keys:
            on_left(f"{key!r:.60}: {reason}")
            del values[key]
    raise UnusableChunkError("its metadata cannot be written")


def _serialized(values: Mapping[str, Any], body: bytes) -> tuple[bytes | None, dict[str, str]]:
    """The bytes of a file; None where some keys cannot be written, with the reasons."""
    try:
        return serialize(values, body), {}
    except ValueError as error:
        reason = str(error)
    wrong: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for key, value in values.items():
        try:
            sizes[key] = len(serialize({key: value}, b""))
        except ValueError as error:
            wrong[key] = str(error)
    # Each may be well, and all together too large: the largest go.
    total = sum(sizes.values())
    for key in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if total <= MAX_BLOCK_BYTES and wrong:
            break
        total -= sizes[key]
        wrong[key] = reason
    return None, wrong


def _wrong_keys(data: bytes, values: Mapping[str, Any], look: Observation) -> tuple[list[str], str]:
    """The keys that keep a file from being searched, and why.

    Raises:
        UnusableChunkError: It is none of them.
    """
    try:
        chunk_file.parse(data)
    except chunk_file.InvalidMetadata as error:
        if error.key in values:
            return [error.key], error.message
    except ValueError:
        pass
    if look.state == "invalid-metadata" and "kind" in values:
        return ["kind"], look.detail
    if look.state == "malformed-frontmatter" and values:
        # Written well, and yet of more values than are read: some of the largest go.
        largest = sorted(values, key=lambda key: len(serialize({key: values[key]}, b"")))
        return largest[-max(1, len(values) // 4) :], look.detail
    raise UnusableChunkError(why_excluded(look.state, look.detail))


def has_same_content(data: bytes, wanted: bytes) -> bool:
    """Whether two chunk files say the same, however their frontmatter is written."""
    if data == wanted:
        return True
    try:
        return parse(data) == parse(wanted)
    except ValueError:
        return False
