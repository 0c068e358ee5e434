"""`.ragmd`: a whole index in one Markdown file, with its documents, for people and programs.

FORMAT.md says what we put where. One rule: what is read comes from strangers, so the file has a
largest size, every count in it is held against what is there, and FAISS never sees its vectors.
`convert` writes it as FAISS + JSON, and back, without a store, checked as for one.
"""

from __future__ import annotations

import binascii
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import orjson
from msgspec import Struct

from filestore.chunks import frontmatter
from filestore.core.caller import absolute
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.frontmatter_yaml import MalformedFrontmatter
from filestore.core.limits import USUAL, Counter, Limits, Size
from filestore.core.safe_text import brief, safe_text, shown_path
from filestore.core.schema import JsonObject
from filestore.exchange import faiss_bytes, faiss_json
from filestore.exchange.base import SourceMissingError, naming, refuse
from filestore.exchange.document_map import (
    MOST_BYTES,
    MOST_JSON_BYTES,
    DocumentMap,
    check_count,
    check_index,
    check_map,
    check_time,
    read_bytes,
    read_json,
    too_large,
)
from filestore.exchange.faiss_json import FaissJson
from filestore.exchange.mapped import MapForm
from filestore.fs import disk, staged
from filestore.fs.staged import HEAD_BYTES, staged_file

VERSION: Final = "1.0"
SUFFIX: Final = ".ragmd"
KEYS: Final = (
    "format_version",
    "model_name",
    "embedding_dim",
    "vector_count",
    "document_count",
    "index_type",
    "created_at",
    "updated_at",
)
_ENCODED_AT_ONCE: Final = 3 * 256 * 1024
"""Bytes; a multiple of three, so that the pieces of Base64 join."""
_HEAD_LETTERS: Final = 4 * faiss_bytes.FLAT_HEAD_BYTES // 3
_LONGEST_TITLE: Final = 200
_MARK: Final = re.compile(rb"^(?:(`{3,}|~{3,})|## )([^\n]*)", re.MULTILINE)
"""A line that opens a fence, or a heading; and the rest of the line."""
_SECTIONS: Final = {b"Chunks": b"json", b"Document Metadata": b"json", b"Vectors": b"base64"}
"""What is read, in its order; the table of documents is for people."""
_LINE_ENDS: Final = {"\x85": b"\\u0085", "\u2028": b"\\u2028", "\u2029": b"\\u2029"}
"""What some readers take for the end of a line, as JSON may also write it."""
_MOST_MARKS: Final = 10_000
"""Headings, blocks, and lines that begin as the end of one; nothing but those takes minutes."""
_BACKTICKS: Final = (b"```", b"\\u0060\\u0060\\u0060")


class RagMd(MapForm):
    """The form `ragmd`."""

    name: ClassVar[str] = "ragmd"
    flat: ClassVar[str] = faiss_bytes.INNER_PRODUCT

    def check_target(self, target: str) -> None:
        """See `MapForm.check_target`."""
        staged.check_target(
            target, lambda head: not head or _is_head(head), found="it is no .ragmd file"
        )

    def write_map(self, target: str, made: DocumentMap) -> tuple[str, ...]:
        """See `MapForm.write_map`."""
        self.check_target(target)
        pieces = serialize(made)
        text = next(pieces)
        if len(text) > MOST_JSON_BYTES or len(text) + 4 * (made.rows.nbytes // 3) > MOST_BYTES:
            raise too_large(target, len(text) + 4 * (made.rows.nbytes // 3))
        with disk.disk_errors(target):
            disk.make_folders(os.path.dirname(target))
        with staged_file(target) as descriptor:
            disk.write_all(descriptor, text)
            for piece in pieces:
                disk.write_all(descriptor, piece)
        return (target,)

    def read_map(self, source: str) -> tuple[DocumentMap, Sequence[str]]:
        """See `MapForm.read_map`."""
        with naming(source):
            return parse(read_bytes(source, follow_links=True)), ()


def is_ragmd(path: str) -> bool:
    """Whether a file has the frontmatter of a `.ragmd`, whatever follows it.

    Raises:
        OSError: It cannot be read.
    """
    with open(disk.open_regular(path, follow_links=True), "rb", buffering=0) as file:
        return _is_head(file.read(HEAD_BYTES))


def _is_head(data: bytes) -> bool:
    try:
        values, _ = frontmatter.parse(data)
    except MalformedFrontmatter:
        return False
    return values.keys() >= {"format_version", "vector_count", "index_type"}


def parse(data: bytes | bytearray) -> DocumentMap:
    """The index in the bytes of a file.

    Raises:
        FormDamaged: They are not of this form, or disagree with themselves.
    """
    values, start = _stated(data)
    blocks = _blocks(data, start)
    chunks = read_json(data, "list of chunks", blocks[b"Chunks"])
    documents = read_json(data, "document metadata", blocks[b"Document Metadata"])
    found = faiss_bytes.parse(*_decoded(data, blocks[b"Vectors"]))
    rows = found.rows
    check_index(values["index_type"], found)
    check_count(values["vector_count"], len(rows), "vector_count", "vectors in the index")
    check_count(values["embedding_dim"], found.dimension, "embedding_dim", "numbers in a vector")
    places = check_map(chunks, documents, len(rows))
    check_count(values["document_count"], len(documents), "document_count", "documents")
    return DocumentMap(
        model=values["model_name"],
        dimension=found.dimension,
        flat=found.flat,
        kind=found.kinds[0],
        created_at=values["created_at"],
        updated_at=values["updated_at"],
        places=places,
        documents=documents,
        rows=rows,
    )


def _stated(data: bytes | bytearray) -> tuple[Mapping[str, Any], int]:
    """The frontmatter, and where it ends."""
    try:
        head = frontmatter.split(bytes(data[:HEAD_BYTES]))
        values = frontmatter.parse_block(head.block, head.block_line)
    except MalformedFrontmatter as error:
        refuse(error.message, error.remedy)
    if not head.head:
        refuse("it does not begin with '---' and frontmatter", "name a .ragmd file")
    lacking = [key for key in KEYS if values.get(key) is None]
    if lacking:
        refuse(f"its frontmatter lacks {', '.join(lacking)}")
    version = values["format_version"]
    # YAML takes 1.0 without quotes for a number.
    if str(version) != VERSION or isinstance(version, list | dict):
        refuse(
            f"it has the format_version {brief(version)}, this version reads {VERSION}",
            f"have it written as format_version {VERSION}",
        )
    if not isinstance(values["model_name"], str) or not values["model_name"].strip():
        refuse(f"model_name must be text, found {brief(values['model_name'])}")
    for key in ("created_at", "updated_at"):
        check_time(values[key], key)
    return values, len(head.head)


def _blocks(data: bytes | bytearray, start: int) -> dict[bytes, tuple[int, int]]:
    """Where the fenced block of each section begins and ends."""
    found: dict[bytes, tuple[int, int]] = {}
    for heading, kind, first, last in _fenced(data, start):
        if _SECTIONS.get(heading) != kind:
            continue
        if heading in found:
            refuse(f"the section '## {heading.decode()}' appears twice")
        expected = list(_SECTIONS)[len(found)]
        if heading != expected:
            refuse(f"the section '## {heading.decode()}' comes before '## {expected.decode()}'")
        found[heading] = first, last
    lacking = next((one for one in _SECTIONS if one not in found), None)
    if lacking is not None:
        kind = _SECTIONS[lacking]
        refuse(f"there is no section '## {lacking.decode()}' with a whole block of {kind.decode()}")
    return found


def _fenced(data: bytes | bytearray, start: int) -> Iterator[tuple[bytes, bytes, int, int]]:
    """Each fenced block: the heading above it, what it is of, its first byte and its end."""
    heading, at, seen = b"", start, 0
    while (mark := _MARK.search(data, at)) is not None:
        seen += 1
        if seen > _MOST_MARKS:
            refuse(f"it has more than {_MOST_MARKS:,} headings and blocks")
        fence, rest = mark.groups()
        at = mark.end() + 1
        if fence is None:
            heading = rest.strip()
        elif fence[:1] not in rest:  # else it is code within a line
            end = _closing(data, fence, mark.end())
            if end is None:
                return
            yield heading, b"".join(rest.split()[:1]).lower(), min(at, end), end
            at = end + 1
            at = data.find(b"\n", at) + 1 or len(data)


def _closing(data: bytes | bytearray, fence: bytes, at: int) -> int | None:
    """Where the line end before the fence is that closes a block; None where there is none."""
    at = data.find(b"\n", at)
    for number in range(_MOST_MARKS):
        if at < 0:
            break
        if data.startswith(fence, at + 1):
            line_end = data.find(b"\n", at + 1)
            line = data[at + 1 : line_end if line_end >= 0 else len(data)]
            if not line.strip().strip(fence[:1]):
                return at
        # A block is one line as we write it: its end is found by the fastest search there is.
        at = data.find(b"\n" + fence if number else b"\n", at + 1)
    return None


def _decoded(data: bytes | bytearray, block: tuple[int, int]) -> tuple[bytes, bytes]:
    """The bytes of some Base64, whatever lines it is broken into: the head, and the rest.

    In two pieces, so that the vectors of a flat index begin where numbers may lie.
    """
    first, last = block
    raw: bytes | memoryview = memoryview(data)[first:last]
    if data.find(b"\n", first, last) >= 0 or bytes(raw[-1:]).isspace():
        raw = bytes(raw).translate(None, b" \t\r\n")
    try:
        start = binascii.a2b_base64(raw[:_HEAD_LETTERS], strict_mode=True)
        rest = binascii.a2b_base64(raw[_HEAD_LETTERS:], strict_mode=True)
    except ValueError as error:
        refuse(f"its vectors are not complete Base64: {error} ({len(raw):,} characters)")
    if len(raw) != 4 * -(-(len(start) + len(rest)) // 3):
        refuse(f"its vectors are not complete Base64: wrong padding ({len(raw):,} characters)")
    return start, rest


def serialize(made: DocumentMap) -> Iterator[bytes]:
    """The bytes of a file: everything up to the vectors, then these, some at a time."""
    stated: dict[str, str | int] = {
        "format_version": VERSION,
        "model_name": made.model,
        "embedding_dim": made.dimension,
        "vector_count": len(made.rows),
        "document_count": len(made.documents),
        "index_type": made.flat,
        "created_at": made.created_at,
        "updated_at": made.updated_at,
    }
    parts = [
        b"---\n" + frontmatter.serialize_block(stated) + b"---\n\n## Documents\n\n",
        b"| Document ID | Source | Chunks | Title |\n|---|---|---|---|\n",
        "".join(_row(name, about) for name, about in made.documents.items()).encode(),
        b"\n## Chunks\n\n```json\n",
        _json(made.chunk_list()),
        b"\n```\n\n## Document Metadata\n\n```json\n",
        _json(made.documents),
        b"\n```\n\n## Vectors\n\n```base64\n",
    ]
    yield b"".join(parts)
    count, dimension = made.rows.shape
    head = faiss_bytes.head(made.flat, count, dimension)
    assert len(head) % 3 == 0, "Base64 of the vectors follows that of the head"
    yield binascii.b2a_base64(head, newline=False)
    data = faiss_bytes.bytes_of(made.rows)
    for start in range(0, len(data), _ENCODED_AT_ONCE):
        yield binascii.b2a_base64(data[start : start + _ENCODED_AT_ONCE], newline=False)
    yield b"\n```\n"


def _row(name: str, document: Mapping[str, Any]) -> str:
    title = (document.get("content") or {}).get("title")
    cells = (
        _cell(name),
        _cell(document.get("source") or ""),
        str(len(document["chunks"])),
        _cell(title[:_LONGEST_TITLE] if isinstance(title, str) else ""),
    )
    return f"| {' | '.join(cells)} |\n"


def _cell(text: str) -> str:
    """A text in a cell of a table: on one line, with its pipes escaped, safe for a terminal."""
    line = " ".join(text.split())
    return safe_text(line.replace("\\", "\\\\").replace("|", "\\|"), keep_newlines=False)


def _json(value: Any) -> bytes:
    r"""JSON without what a simpler reader may take for the end of a line, or of the block."""
    data = orjson.dumps(value)
    for sign, escape in _LINE_ENDS.items():
        data = data.replace(sign.encode(), escape)
    return data.replace(*_BACKTICKS)


# Into FAISS + JSON, and back, without a store: the vectors stay as they are


RAGMD: Final = ".ragmd file"
FOLDER: Final = "FAISS + JSON folder"
PAIR: Final = "FAISS + JSON pair"
_NAMES: Final = {
    RAGMD: "a file KB.ragmd",
    FOLDER: f"a folder with {', '.join(faiss_json.FILES)}",
    PAIR: "a file vectors-NAME.faiss next to metadata-NAME.json",
}
_ANY: Final = f"name {_NAMES[RAGMD]}; {_NAMES[FOLDER]}; or {_NAMES[PAIR]}"
_TARGETS: Final = {
    RAGMD: "a file KB.ragmd",
    FOLDER: "a folder",
    PAIR: "a file vectors-NAME.faiss",
}
_FORM_OF: Final[dict[str, MapForm]] = {RAGMD: RagMd(), FOLDER: FaissJson(), PAIR: FaissJson()}
_PARTS: Final = (".faiss", ".json", ".npy")
"""How a name ends that is more likely a file than a folder."""


class Converted(JsonObject, Struct, frozen=True, kw_only=True, rename={"size_bytes": "bytes"}):
    """What was converted."""

    source: str
    """Absolute path of what was read."""
    read_as: str
    """`.ragmd file`, `FAISS + JSON folder` or `FAISS + JSON pair`."""
    target: str
    """Absolute path that was asked for."""
    written_as: str
    """Another one of these three."""
    model: str
    """What made the vectors, as the source says."""
    documents: int
    """How many documents."""
    vectors: int
    """How many vectors."""
    files: tuple[str, ...]
    """Absolute paths of what was written."""
    size_bytes: int
    """Their size."""
    notes: tuple[str, ...]
    """What is not as it was, a sentence each."""


def convert(source: str, target: str, limits: Limits = USUAL) -> Converted:
    """Write what is in one form in the other one.

    Args:
        source: A `.ragmd` file, a folder of FAISS + JSON, or one of its two files.
        target: Of another kind than the source; an index that is there is replaced.
        limits: How much is taken.

    Raises:
        UsageError: Both are of one kind, or the names do not show which one is wanted.
        SourceMissingError: There is no source.
        LimitExceededError: There is more than is taken.
        FormDamaged: The source is of none of the forms, or disagrees with itself.
        TargetRefused: Something else has its place at the target.
        WriteFailedError: The disk refused; what was there is untouched.
    """
    source, target = absolute(source), absolute(target)
    read_as, written_as = _kind_of_source(source), _kind_of_target(target)
    if read_as == written_as:
        others = " or ".join(name for kind, name in _TARGETS.items() if kind != read_as)
        raise UsageError(
            f"{shown_path(source)} is a {read_as}, and {shown_path(target)} would be one, too"
            f": name {others} as the target",
        )
    form = _FORM_OF[written_as]
    form.check_target(target)
    found, notes = _FORM_OF[read_as].read_map(source)
    Counter(limits, shown_path(source)).add(Size(rows=len(found.rows), bytes=found.rows.nbytes))
    files = form.write_map(target, found)
    return Converted(
        source=source,
        read_as=read_as,
        target=target,
        written_as=written_as,
        model=found.model,
        documents=len(found.documents),
        vectors=len(found.rows),
        files=files,
        size_bytes=sum(os.path.getsize(one) for one in files),
        notes=(*notes, *_lost(found, written_as)),
    )


def _lost(found: DocumentMap, written_as: str) -> list[str]:
    lost = []
    if found.kind != found.flat:
        lost.append(
            f"the {found.kind} was written as {found.flat}: the same vectors, each compared with"
            " the query"
        )
    lacking = sum(one.get("full_text") is None for one in found.documents.values())
    if lacking and written_as == FOLDER:
        lost.append(
            f"{lacking:,} of {len(found.documents):,} documents have no full_text: the texts of"
            f" their rows in {faiss_json.CORPUS} are empty"
        )
    return lost


def _kind_of_source(path: str) -> str:
    if not os.path.lexists(path):
        raise SourceMissingError(f"there is no {shown_path(path)}", remedy=_ANY)
    try:
        if os.path.isdir(path):
            inside = set(os.listdir(path))
            if inside.intersection(faiss_json.FILES):
                return FOLDER
            if any(map(faiss_json.is_pair, inside)):
                return PAIR
            raise UsageError(f"there is no index in the folder {shown_path(path)}", remedy=_ANY)
        if faiss_json.is_pair(path):
            return PAIR
        if path.endswith(SUFFIX) or is_ragmd(path):
            return RAGMD
    except OSError as error:
        disk.pass_limits(error)
        reason = error.strerror or str(error)
        raise FilestoreError(f"cannot read {shown_path(path)}: {reason}", remedy=_ANY) from error
    raise UsageError(
        f"{shown_path(path)} has neither the name nor the frontmatter of a .ragmd file", remedy=_ANY
    )


def _kind_of_target(path: str) -> str:
    if path.endswith((SUFFIX, ".md")):
        return RAGMD
    if faiss_json.is_pair(path):
        return PAIR
    if path.endswith(_PARTS) and not os.path.isdir(path):
        raise UsageError(f"{shown_path(path)} is not a name for an index", remedy=_ANY)
    return FOLDER
