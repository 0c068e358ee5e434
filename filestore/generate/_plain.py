"""What of a text is prose: paragraphs without the furniture of Markdown, and the headings.

Pure, and in linear time whatever the text. One rule: nothing is put into other words; what is left
of a paragraph stands in the text, but for marks of emphasis, links and line ends.
"""

import re
from typing import Final

from msgspec import Struct

LONGEST_PARAGRAPH: Final = 20_000
"""Characters of one paragraph that are looked at: a longer one is data."""
_LONGEST_LINE: Final = 400
"""Of code or a table."""
_LONGEST_CODE: Final = 160
_MOST_TEXT: Final = 400_000

_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]"
)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_FENCE: Final = re.compile(r"\s{0,12}(?:>\s?)?(`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$")
_UNDERLINE: Final = re.compile(r" {0,3}(={3,}|-{3,}|~{3,}|\^{3,})[ \t]*$")
_RULE: Final = re.compile(r"[\s*_=~^+#\-]*$")
_MARK: Final = re.compile(
    r"(?:>[ \t]?|[-*+•‣◦][ \t]+(?:\[[ xX]\][ \t]+)?|\d{1,4}[.)][ \t]+|:[ \t]+)"
)
_DEFINITION: Final = re.compile(r"\[[^\]\n]{1,200}\]:[ \t]*\S|\.\.(?:[ \t]|$)|:[\w-]{1,30}:[ \t]")
_IMAGE: Final = re.compile(r"!\[[^\]\n]{0,400}\](?:\([^()\n]{0,800}\)|\[[^\]\n]{0,200}\])")
_LINK: Final = re.compile(r"\[([^\[\]\n]{1,400})\](?:\([^()\n]{0,800}\)|\[[^\]\n]{0,200}\])")
_WIKI: Final = re.compile(r"!?\[\[(?:[^\[\]|\n]{1,200}\|)?([^\[\]|\n]{1,200})\]\]")
_NOTE: Final = re.compile(r"\[\^[^\]\s]{1,60}\]|\[\d{1,4}\](?!\()")
_TAG: Final = re.compile(r"<!--.{0,2000}?-->|</?[A-Za-z][^<>\n]{0,400}>", re.DOTALL)
_EMPHASIS: Final = re.compile(
    r"(?<![\w*\\])(\*{1,3}|_{1,3})(?=\S)([^*_`\n]{1,300}?)(?<=\S)\1(?![\w*])"
)
_CODE_LINE: Final = re.compile(
    r"[;{}]\s*$|\w\(.{0,200}\)\s*:?\s*$|^\s*[\])}]+[,;:]?\s*$|\w\s?[-+*/|&:]?=(?:\s?[\w\[({\"'&]|\s*$)"
    r"|^\s*(?:def|class|return|import|from \S+ import|if|elif|else|for|while|try|except|raise|with"
    r"|yield|pass|break|function|const|let|var|public|private|static|void|func|fn|struct|package"
    r"|end|@\w+)\b.{0,200}(?:[:;({]|return|pass|break|\))\s*$"
    r"|^\s*(?:return|import|else:|try:|pass|break|continue|#include|//|/\*|\*/)|->|=>|::"
)
_BLANKS: Final = re.compile(r"[ \t\u00a0]+")
_UNSPACED: Final = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60]")
_LETTERS: Final = re.compile(r"[^\W\d_]")


class Prose(Struct, frozen=True, kw_only=True):
    """A text, taken apart."""

    headings: tuple[str, ...]
    """Those in the text, in order."""
    paragraphs: tuple[str, ...]
    """Each on one line; an item of a list is one of its own."""
    other: tuple[str, ...]
    """Lines of code and of tables that have a letter, without their marks."""


def prose_of(text: str) -> Prose:
    """Take a text apart."""
    text = printable(text[:_MOST_TEXT])
    reader = _Reader()
    if _is_code(text):
        for line in text.split("\n"):
            reader.keep(line)
    else:
        reader.read(text)
    return Prose(
        headings=tuple(reader.headings),
        paragraphs=tuple(reader.paragraphs),
        other=tuple(reader.other),
    )


class _Reader:
    """Goes through a text line by line."""

    def __init__(self) -> None:
        self.headings: list[str] = []
        self.paragraphs: list[str] = []
        self.other: list[str] = []
        self._current: list[str] = []
        """The lines of a paragraph that goes on."""

    def read(self, text: str) -> None:
        fence = ""
        for line in text.split("\n"):
            opened = _FENCE.match(line)
            if fence:
                if opened and opened[1].startswith(fence):
                    fence = ""
                else:
                    self.keep(line)
            elif opened:
                self._end()
                fence = opened[1]
            else:
                self._read_line(line)
        self._end()

    def _read_line(self, line: str) -> None:
        if heading := _HEADING.match(line):
            self._end()
            self._add_heading(heading[1])
        elif self._current and _UNDERLINE.match(line):
            # The last line alone: what stands above it is a paragraph that ran on.
            title = self._current.pop()
            self._end()
            self._add_heading(title)
        elif _RULE.match(line):
            self._end()
        elif _is_table(line):
            self._end()
            self.keep(line)
        else:
            self._read_prose(line.strip())

    def _read_prose(self, line: str) -> None:
        """A line begins an item of a list, or goes on with what stands above."""
        if _DEFINITION.match(line):
            self._end()
            return
        while mark := _MARK.match(line):
            if not mark[0].startswith(">"):
                self._end()
            line = line[mark.end() :].lstrip()
        if line:
            self._current.append(line)

    def _end(self) -> None:
        if self._current:
            joined = inline(_joined(self._current))
            if joined:
                self.paragraphs.append(joined)
            self._current.clear()

    def _add_heading(self, heading: str) -> None:
        if _LETTERS.search(heading):
            self.headings.append(inline(heading))

    def keep(self, line: str) -> None:
        """A line of code or of a table, if it says anything."""
        cells = [cell.strip() for cell in line.split("|")] if "|" in line else [line]
        words = " ".join(cell for cell in cells if _LETTERS.search(cell))
        bare = one_line(words).lstrip("#/*;-!<>=+ '\"")
        if _LETTERS.search(bare):
            self.other.append(bare[:_LONGEST_LINE])


def printable(text: str) -> str:
    """A text that can be written to a file and drawn: no control characters, no lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii() and text.isprintable():
        return text
    return _SURROGATES.sub("\ufffd", _UNPRINTABLE.sub(" ", text))


def one_line(text: str) -> str:
    """A text on one line, printable."""
    return " ".join(printable(text).split())


def inline(text: str) -> str:
    """A line without images, links, tags, notes and emphasis; their words stay."""
    if "[" in text:
        text = _NOTE.sub("", _IMAGE.sub("", _WIKI.sub(r"\1", text)))
        text = _LINK.sub(r"\1", text)
    if "<" in text:
        text = _TAG.sub("", text)
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub(r"\2", text)
    return _BLANKS.sub(" ", text).strip()


def letters_share(text: str) -> float:
    """How much of a text, blanks aside, are letters."""
    visible = len(text) - text.count(" ")
    return len(_LETTERS.findall(text)) / visible if visible else 0.0


def _joined(lines: list[str]) -> str:
    """The lines of a paragraph as one; nothing between two signs of a script without spaces."""
    joined = lines[0]
    for line in lines[1:]:
        if len(joined) > LONGEST_PARAGRAPH:
            break
        tight = _UNSPACED.match(joined[-1]) and _UNSPACED.match(line[0])
        joined += line if tight else f" {line}"
    return joined[:LONGEST_PARAGRAPH]


def _is_table(line: str) -> bool:
    bare = line.strip()
    return bare.startswith(("|", "+-", "+=")) or bare.count(" | ") >= 2 or bare.count("\t") >= 3


def _is_code(text: str) -> bool:
    """Whether most lines of a text that is in no fence are code."""
    if "```" in text or "~~~" in text:
        return False
    lines = [line for line in text.split("\n") if line and not line.isspace()]
    code = (len(line) <= _LONGEST_CODE and _CODE_LINE.search(line) for line in lines)
    return sum(map(bool, code)) * 2 > len(lines)
