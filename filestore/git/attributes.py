"""Line-ending rules in `.gitattributes`: the store's own, and others that override them. Pure.

One rule: git changes line ends in what we write as text, and in nothing else.
"""

import fnmatch
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.paths import StorePath
from filestore.git import process

NAME: Final = StorePath(".gitattributes")
LINES: Final = (
    b"chunked/** -text",
    b"chunked/**/*.md text eol=lf",
    b"chunked/**/*.json text eol=lf",
)
"""Of the tree. The last one that matches counts."""
FILE: Final = b"\n".join([b"*.toml text eol=lf", *LINES, b"source/** -text", b""])
"""The whole file of a new store."""
OLD: Final = b"chunked/** text eol=lf"
"""What stood there before: git took the CRs out of pictures and archives, too."""

_NO_TEXT: Final = tuple(
    f"{folder}/{name}"
    for folder in ("chunked", "chunked/a", "source", "source/a/b")
    for name in ("b.png", "c.jpg", "d.pdf", "E.PDF", "f.docx", "g.zip", "no-suffix")
)
"""Examples of all files that are no text; whatever a line of any person may single out is one."""
_LONGEST_LINE: Final = 2048
"""Git leaves out longer ones."""
_MACRO: Final = "[attr]"
_MOST_MACROS: Final = 50
"""One line names no more of them: they may lead to each other."""
_CONVERTING: Final = ("text", "crlf", "eol")
_SIGNATURES: Final = (
    b"\x89PNG\r\n\x1a\n",
    b"\x8aMNG\r\n\x1a\n",
    b"\x8bJNG\r\n\x1a\n",
    b"\0\0\0\x0cjP  \r\n\x87\n",
    b"\0\0\0\x0cJXL \r\n\x87\n",
    b"\xabKTX 11\xbb\r\n\x1a\n",
    b"\xabKTX 20\xbb\r\n\x1a\n",
)
"""First bytes of formats that have a line end there, so that its loss shows."""


class AttributesFile(Struct, frozen=True, kw_only=True):
    """One file that tells git of line ends."""

    folder: str
    """From where it lies to the store root; "" for the store's own."""
    data: bytes


class Culprit(Struct, frozen=True, kw_only=True):
    """The line by which git takes for text what is none."""

    folder: str
    """See `AttributesFile`."""
    number: int
    """From 1."""
    line: str
    path: str
    """A name for which it does so, relative to the store root."""


def culprit(files: Sequence[AttributesFile]) -> Culprit | None:
    """The line by which git would change what is no text; None where no line does.

    Args:
        files: The files that count, from the outermost in; git takes macros from that one alone.
    """
    macros: dict[str, Sequence[str]] = {"binary": ("-diff", "-merge", "-text")}
    for _, _, pattern, words in _words(files[0].data if files else b""):
        if pattern.startswith(_MACRO):
            macros[pattern.removeprefix(_MACRO)] = words
    rules: list[_Rule] = []
    for file in files:
        for number, line, pattern, words in _words(file.data):
            values: dict[str, bool | str | None] = {}
            for word in words:
                _set(values, word, macros, set())
            if values and not pattern.startswith(_MACRO):
                where = Culprit(folder=file.folder, number=number, line=line, path="")
                rules.append(_Rule(culprit=where, pattern=pattern, values=values))
    return next((found for path in _NO_TEXT if (found := _decisive(path, rules))), None)


def old_line(data: bytes) -> int:
    """The first line, from 1, that is our old one; 0 for none."""
    return next((at for at, line in enumerate(data.split(b"\n"), 1) if _is_old(line)), 0)


def corrected(data: bytes) -> bytes:
    """The file with our lines where the old one stood, or else last, so that they win.

    All others stay byte for byte.
    """
    lines: list[bytes] = []
    for line in data.split(b"\n"):
        end = b"\r" if line.endswith(b"\r") else b""
        lines += [one + end for one in LINES] if _is_old(line) else [line]
    made = b"\n".join(lines)
    # It has all our lines, and no file above it can make text of what is none.
    has_ours = {line.strip() for line in made.split(b"\n")} >= set(FILE.splitlines())
    if has_ours and not culprit([AttributesFile(folder="", data=b"* text\n" + made)]):
        return made
    return made + (b"" if made.endswith(b"\n") or not made else b"\n") + FILE


def _is_old(line: bytes) -> bool:
    return line.split() == OLD.split()


# What lines do


class _Rule(Struct, frozen=True, kw_only=True):
    """One line that may have a say on line ends."""

    culprit: Culprit
    pattern: str
    values: Mapping[str, bool | str | None]
    """Attribute to its value; None where it is left to git again."""


def _words(data: bytes) -> Iterator[tuple[int, str, str, list[str]]]:
    """Number, text, pattern and attributes of each line that git reads."""
    # The patterns are held against names of ASCII; other bytes need only stay apart.
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip(" \t\r")
        if len(line) > _LONGEST_LINE or line.startswith(("#", "!")) or not line:
            continue
        if line.startswith('"'):
            pattern, _, rest = line[1:].partition('"')
            yield number, line, pattern, rest.split()
        else:
            pattern, *words = line.split()
            yield number, line, pattern, words


def _set(
    values: dict[str, bool | str | None],
    word: str,
    macros: Mapping[str, Sequence[str]],
    within: set[str],
) -> None:
    """Set one attribute, and what it is a macro for."""
    name, is_valued, value = word.lstrip("-!").partition("=")
    if name in _CONVERTING:
        is_set: bool | str | None = value if is_valued else True
        values[name] = {"-": False, "!": None}.get(word[0], is_set)
    if word in macros and word not in within and len(within) < _MOST_MACROS:
        within.add(word)
        for inner in macros[word]:
            _set(values, inner, macros, within)


def _decisive(path: str, rules: Sequence[_Rule]) -> Culprit | None:
    """The line by which git takes a file for text; as in git, the last one that matches counts."""
    found: dict[str, tuple[bool | str | None, Culprit]] = {}
    for rule in rules:
        if _matches(rule.pattern, path, rule.culprit.folder):
            found |= {name: (value, rule.culprit) for name, value in rule.values.items()}
    for name, deciding in (
        ("text", (True, False, "auto", "input")),
        # Of old, what "text" is now.
        ("crlf", (True, False, "auto", "input")),
        ("eol", ("lf", "crlf")),
    ):
        value, where = found.get(name, (None, None))
        if value in deciding:
            return replace(where, path=path) if where is not None and value is not False else None
    return None


def _matches(pattern: str, path: str, folder: str) -> bool:
    """Whether a pattern of a file some folders above the store root matches a path below that."""
    above = folder.encode("utf-8", "surrogateescape").decode("latin-1")
    names = [*filter(None, above.split("/")), *path.split("/")]
    if "/" not in pattern:
        return fnmatch.fnmatchcase(names[-1], _as_python(pattern))
    parts = pattern.removeprefix("/").split("/")
    ends = {0}
    """After how many of the names the pattern may have come so far."""
    for number, part in enumerate(parts, 1):
        if part == "**" and ends:
            # At the end it matches what is in a folder, elsewhere no folder, too.
            ends = set(range(min(ends) + (number == len(parts)), len(names) + 1))
        else:
            ends = {
                end + 1
                for end in ends
                if end < len(names) and fnmatch.fnmatchcase(names[end], _as_python(part))
            }
    return len(names) in ends


def _as_python(pattern: str) -> str:
    return pattern.replace("[^", "[!")


# What git made of files


def is_text(path: str) -> bool:
    """Whether git may change line ends in a file below `chunked/`."""
    return path.endswith((".md", ".json"))


def stripped(data: bytes) -> bytes:
    """What git made of a file by the old line."""
    return data.replace(b"\r\n", b"\n")


def lost_its_line_ends(data: bytes) -> bool:
    """Whether the first bytes show that a file of a known format was changed so."""
    return data.startswith(tuple(stripped(one) for one in _SIGNATURES))


_MOST_BYTES: Final = 1 << 16


def attributes_in(folder: str) -> bytes | None:
    """What one folder tells git; None where it is no file, or larger than anybody writes it."""
    path = os.path.join(folder, NAME)
    if os.path.islink(path) or not os.path.isfile(path):
        return None
    data = process.read_start(path, _MOST_BYTES + 1)
    return data if len(data) <= _MOST_BYTES else None
