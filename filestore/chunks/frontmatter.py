"""Frontmatter: the bytes before a chunk's body, the mapping they hold, the pairs filters match.

Two readers give the same values. Blocks of ``key: <JSON value>`` lines, which is what we write, are
read line by line; whatever that reader is not sure about goes to the one of YAML events, in
`core.frontmatter_yaml`. Which keys mean something is not known here. One rule: a byte that
need not change does not change.
"""

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
from msgspec import Struct

from filestore.core.frontmatter_yaml import (
    INTEGERS,
    MAX_BLOCK_BYTES,
    MAX_DEPTH,
    MAX_EVENTS,
    NOT_RAW,
    MalformedFrontmatter,
    Value,
    number_text,
    read_yaml,
    refuse,
)
from filestore.core.schema import refuse_twice

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_OPENING: Final = re.compile(rb"---[ \t]*(?:\r?\n|\Z)")
_CLOSING: Final = re.compile(rb"\n---[ \t]*(?:\r?\n|\Z)")

_SURELY_FEW_BYTES: Final = MAX_EVENTS - 100
"""An event takes at least one byte, so a block this small keeps the limit on events unread."""
_MAX_KEY: Final = 1_000
"""Characters of a key as written; YAML looks no further than 1,024 for the colon."""
_MAX_INLINE: Final = 88
_MAX_INLINE_ITEMS: Final = 3

_SIMPLE_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
_SIMPLE_KEY_BYTES: Final = re.compile(_SIMPLE_KEY.pattern.encode())
_NOT_TEXT_IN_YAML: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_VALUE_STARTS: Final = frozenset(b"%c" % start for start in b"[{-0123456789tfn")
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")

_NOT_RAW_BYTES: Final = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef(?:\xbb\xbf|\xbf[\xbe\xbf])"
)
"""`NOT_RAW` in UTF-8, but for what JSON refuses as well."""
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_COLON: Final = re.compile(r"[ \t]*:")


class Split(Struct, frozen=True, kw_only=True):
    """A file cut in two: ``head + body`` are its bytes."""

    head: bytes
    """Everything before the body: a byte-order mark, the fences, the block; empty if none."""
    block: bytes
    """What is between the fences, with its last line end."""
    block_line: int
    """The line of the file on which the block starts; 0 without frontmatter."""
    body: bytes


def split(data: bytes) -> Split:
    """Cut a file into frontmatter and body.

    Frontmatter starts with a ``---`` line at the very start (after a byte-order mark) and ends
    with the next ``---`` line; spaces and tabs after a fence are allowed. The body is every byte
    after the closing fence and one line end.

    Raises:
        MalformedFrontmatter: There is no closing fence, or it comes after more than 64 KiB.
    """
    mark = len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0
    opening = _OPENING.match(data, mark)
    if opening is None:
        return Split(head=data[:mark], block=b"", block_line=0, body=data[mark:])
    start = opening.end()
    # The line end of the opening fence may also be the one before the closing fence.
    closing = _CLOSING.search(data, start - 1)
    if closing is None:
        raise MalformedFrontmatter("no closing '---' line for the one above", line=1, column=1)
    block = data[start : closing.start() + 1]
    if len(block) > MAX_BLOCK_BYTES:
        message = f"the closing '---' comes after {len(block):,} bytes, at most {MAX_BLOCK_BYTES:,}"
        raise MalformedFrontmatter(message, line=1, column=1)
    end = closing.end()
    return Split(head=data[:end], block=block, block_line=2, body=data[end:])


def parse(data: bytes) -> tuple[dict[str, Value], bytes]:
    """The frontmatter of a file as a mapping, and its body.

    Raises:
        MalformedFrontmatter: The frontmatter cannot be read within the limits.
    """
    parts = split(data)
    return parse_block(parts.block, parts.block_line), parts.body


def parse_block(block: bytes, first_line: int) -> dict[str, Value]:
    """The mapping a frontmatter block holds.

    Args:
        block: The bytes between the fences.
        first_line: The line of the file on which they start, for messages.

    Raises:
        MalformedFrontmatter: It cannot be read within the limits.
    """
    values = _read_lines(block)
    return read_yaml(block, first_line).values if values is None else values


def serialize(mapping: Mapping[str, Value], body: bytes) -> bytes:
    """The file that `parse` reads as this mapping and this body.

    Raises:
        ValueError: A value cannot be written, see `serialize_block`.
    """
    if not mapping and not body.startswith(_BYTE_ORDER_MARK) and not _OPENING.match(body):
        return body
    return b"---\n" + serialize_block(mapping) + b"---\n" + body


def serialize_block(mapping: Mapping[str, Value]) -> bytes:
    """``key: <JSON value>`` lines, which any YAML reader understands; long lists an item a line.

    Raises:
        ValueError: A value is no JSON value, an integer beyond 64 bits, not finite, nested deeper
            than the limit or text with a lone surrogate, or the whole is larger than 64 KiB.
    """
    block = "".join(_written(key, value, "\n") for key, value in mapping.items()).encode()
    _check_size(block)
    return block


def with_keys(data: bytes, changes: Mapping[str, Value]) -> bytes:
    """A file with some top-level keys set or removed, and every other byte as it was.

    A value that stood on one line leaves the comment after it in place; comments inside a value
    of several lines go with it. New keys come at the end of the block. The result is read back
    before it is returned.

    Args:
        data: The file.
        changes: New values by key; None removes the key.

    Raises:
        MalformedFrontmatter: The frontmatter cannot be read, or a key to change is written in a
            form that cannot be edited in place (``? key``, an outermost ``{…}``).
        ValueError: A value cannot be written, see `serialize_block`.
    """
    parts = split(data)
    values = parse_block(parts.block, parts.block_line)
    wanted = {key: value for key, value in changes.items() if value is not None or key in values}
    if not wanted:
        return data
    if parts.block_line == 0:
        newline = _newline(parts.body)
        block = serialize_block(wanted).replace(b"\n", newline)
        fence = b"---" + newline
        return b"".join((parts.head, fence, block, fence, parts.body))
    opening = parts.head[: parts.head.index(b"\n") + 1]
    ending = parts.head[len(opening) + len(parts.block) :]
    newline = _newline(parts.block or opening)
    block = _edited(parts, wanted, newline.decode())
    # Refuse an edit that would not be read back as intended, whatever the reason.
    _check_size(block)
    written = {key: value for key, value in wanted.items() if value is not None}
    kept = {key: value for key, value in values.items() if key not in wanted}
    if parse_block(block, parts.block_line) != kept | parse_block(serialize_block(written), 1):
        message = "this frontmatter cannot be edited in place; write 'key: value' lines"
        raise MalformedFrontmatter(message, line=parts.block_line, column=1)
    return b"".join((opening, block, ending, parts.body))


# The line reader


def _read_lines(block: bytes) -> dict[str, Value] | None:
    """The values of a block in the form we write; None where YAML might see anything else."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    # JSON and YAML agree on every character and escape, and the block is small enough.
    if (
        b"\t" in block
        or b"\r" in block
        or (len(block) > _SURELY_FEW_BYTES and _most_events(block) > MAX_EVENTS)
        or (b"\x7f" in block if block.isascii() else _NOT_RAW_BYTES.search(block) is not None)
        or (b"\\u" in block and _SURROGATE_ESCAPE.search(block) is not None)
    ):
        return None
    values: dict[str, Value] = {}
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    items: list[Value] | None = None
    try:
        for line in lines:
            if line.startswith(b"- "):
                if items is None:
                    return None
                items.append(_json_value(line[2:], MAX_DEPTH - 2))
                continue
            if items is not None and not items:
                return None
            name, separator, text = line.partition(b": ")
            items = None if separator else []
            key = _simple_key(name if separator else name.removesuffix(b":"))
            if key in values or not (separator or name.endswith(b":")):
                return None
            values[key] = _json_value(text, MAX_DEPTH - 1) if items is None else items
    except ValueError:
        return None
    return None if items is not None and not items else values


def _most_events(block: bytes) -> int:
    """At least as many events as YAML could see: every value follows one of these, and lists end.

    Counting what is inside strings as well only sends a few more blocks to the other reader.
    """
    opened = block.count(b"[") + block.count(b"{")
    return 8 + 3 * opened + block.count(b",") + block.count(b":") + 2 * block.count(b"\n")


@lru_cache(maxsize=1024)
def _simple_key(name: bytes) -> str:
    if _SIMPLE_KEY_BYTES.fullmatch(name) is None:
        raise ValueError("not a simple key")
    return name.decode("ascii")


def _json_value(text: bytes, depth: int) -> Value:
    """A JSON value that YAML reads the same way.

    Raises:
        ValueError: It is none, or it is not certain.
    """
    start = text[:1]
    value: Value
    if start == b'"':
        value = orjson.loads(text)
        return value
    if start not in _VALUE_STARTS:
        raise ValueError("not the start of a JSON value")
    value = orjson.loads(text)
    # Counting brackets inside strings as well only sends a few more blocks to the other reader.
    if _LONG_NUMBER.search(text) or text.count(b"[") + text.count(b"{") > depth:
        raise ValueError("a long number, or deeply nested")
    if b"{" in text:
        # Refuse what orjson takes and YAML does not: a repeated member, or a very long one.
        if len(text) > _MAX_KEY:
            raise ValueError("members too long to be sure")
        refuse_twice(text)
    if b"." in text or b"e" in text or b"E" in text:
        _check_numbers(value, text)
    return value


def _check_numbers(value: Value, text: bytes) -> None:
    """Refuse a number that may be written otherwise than it would be written by us."""
    if isinstance(value, float) and number_text(value).encode() != text:
        raise ValueError("a number in another form than ours")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_numbers(item, b"")


# Writing


def _written(key: str, value: Value, newline: str, indent: str = "") -> str:
    """The lines of one top-level key."""
    name = key if _SIMPLE_KEY.fullmatch(key) and key.lower() not in _NOT_TEXT_IN_YAML else None
    inline, items = _rendered(value)
    return _entry_text(indent + (name or _json_key(key)) + ":", inline, newline, items, indent)


def _entry_text(head: str, inline: str, tail: str, items: list[str], indent: str) -> str:
    newline = "\r\n" if tail.endswith("\r\n") else "\n"
    first = f"{head} {inline}{tail}" if inline else head + tail
    return first + "".join(f"{indent}- {item}{newline}" for item in items)


def _rendered(value: Value) -> tuple[str, list[str]]:
    """A value as JSON on one line, or else a long list as one JSON text for each item."""
    inline = _json(value, 1)
    is_long = len(inline) > _MAX_INLINE
    if isinstance(value, list | tuple) and value and (is_long or len(value) > _MAX_INLINE_ITEMS):
        return "", [_json(item, 2) for item in value]
    return inline, []


def _json(value: Value, depth: int) -> str:
    """JSON that YAML reads the same way, with a space after each comma and colon.

    Raises:
        ValueError: There is no such text.
    """
    if isinstance(value, str):
        return _json_text(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int | float):
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError(f"frontmatter cannot hold the number {value}")
            return number_text(value)
        if value not in INTEGERS:
            raise ValueError(f"frontmatter cannot hold the integer {value}: more than 64 bits")
        return str(value)
    if depth >= MAX_DEPTH:
        raise ValueError(f"frontmatter is nested at most {MAX_DEPTH} deep")
    if isinstance(value, Mapping):
        members = (f"{_json_key(key)}: {_json(item, depth + 1)}" for key, item in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_json(item, depth + 1) for item in value) + "]"
    raise ValueError(f"frontmatter cannot hold a {type(value).__name__}")


def _json_text(text: str) -> str:
    try:
        quoted = orjson.dumps(text).decode()
    except TypeError as error:
        raise ValueError(f"frontmatter cannot hold {text!r}: {error}") from error
    return NOT_RAW.sub(lambda raw: f"\\u{ord(raw[0]):04x}", quoted)


def _json_key(key: str) -> str:
    if not isinstance(key, str):
        raise ValueError(f"a key in frontmatter is text, not {type(key).__name__}")
    quoted = _json_text(key)
    if len(quoted) > _MAX_KEY:
        raise ValueError(f"a key of {len(quoted):,} characters, at most {_MAX_KEY:,} are read")
    return quoted


def _check_size(block: bytes) -> None:
    if len(block) > MAX_BLOCK_BYTES:
        size = f"{len(block):,} bytes"
        raise ValueError(f"frontmatter of {size}, at most {MAX_BLOCK_BYTES:,} are read")


# Editing in place


def _newline(data: bytes) -> bytes:
    """The line end a text uses, judged by its first line."""
    return b"\r\n" if data.partition(b"\n")[0].endswith(b"\r") else b"\n"


def _edited(parts: Split, wanted: Mapping[str, Value], newline: str) -> bytes:
    text = parts.block.decode()
    document = read_yaml(parts.block, parts.block_line)
    if document.is_flow:
        message = "keys between braces cannot be edited in place; write 'key: value' lines"
        refuse(text, 0, parts.block_line, message)
    indent = " " * document.indent
    # From the last to the first, so that the places of those before stay right.
    for key, entry in reversed(document.entries.items()):
        if key not in wanted:
            continue
        start = text.rfind("\n", 0, entry.key_start) + 1
        margin = text[start : entry.key_start]
        colon = _COLON.match(text, entry.key_end)
        if colon is None or margin.strip(" "):
            message = "this key cannot be edited in place"
            refuse(text, entry.key_start, parts.block_line, message)
        # A block scalar ends after its last line end, everything else before it.
        end = max(text.find("\n", max(entry.value_end - 1, colon.end())) + 1, entry.value_end)
        entry_text = ""
        if wanted[key] is not None:
            on_one_line = "\n" not in text[start : entry.value_end]
            tail = text[max(entry.value_end, colon.end()) : end] if on_one_line else newline
            inline, items = _rendered(wanted[key])
            entry_text = _entry_text(text[start : colon.end()], inline, tail, items, margin)
        text = text[:start] + entry_text + text[end:]
    for key, value in wanted.items():
        if key not in document.entries:
            text += _written(key, value, newline, indent)
    return text.encode()


MAX_VALUE: Final = 512
"""Longer values are text, not metadata."""
METADATA_DEPTH: Final = 4
QUESTIONS_FROM: Final = "questions_origin.text"
"""Which text the questions of a file were made from: it tells which are out of date."""
UNFILTERED: Final = frozenset(
    {"origin", "order", "overlap", "questions", "questions_origin", "children"}
)
"""Our own keys, which no filter uses."""


def metadata_pairs(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every pair of some metadata, each once, in order."""
    yield from dict.fromkeys(_nested("", values, 0))


def _nested(prefix: str, values: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if depth == 0 and key in UNFILTERED:
            continue
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, Mapping):
                if depth < METADATA_DEPTH:
                    yield from _nested(f"{name}.", item, depth + 1)
            elif not isinstance(item, list):
                written = value_text(item)
                if len(written) <= MAX_VALUE:
                    yield name, written


def value_text(value: Any) -> str:
    """A scalar as it is compared: text as it is, the rest as JSON writes it."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
