"""Source code: the file itself, with where its functions and classes start.

Holds no grammar. One rule: whatever a parser makes of a file, its text comes out unchanged.
"""

import re
from typing import Final

from filestore.chunking import Section
from filestore.core.encoded_data import without_data
from filestore.extract import language_of
from filestore.extract._code_outline import parsed_outline
from filestore.extract._text import decode, encoding_metadata
from filestore.extract.base import Document, ExtractionError, Extractor, document_text

_LONG_LINE: Final = 5_000  # characters; a file mostly of such lines was not written by a person
_SUMMARY_LIMIT: Final = 300

_CPP: Final = re.compile(r"^[ \t]*(?:class|namespace|template)\b|^\s*(?:public|private):", re.M)
_DOCSTRING: Final = re.compile(r"(?:\s|#.*\n)*[rRuU]?(?:\"\"\"|''')\s*([^\n]*)")
_MARKED: Final = {
    "toml": r"\[\[?(?P<name>[^\[\]\n]+)\]",
    "ini": r"\[(?P<name>[^\[\]\n]+)\]",
    "sql": r"(?i:create)\s+(?:\w+\s+){0,4}?"
    r"(?i:table|view|function|procedure|trigger|index|type|schema)\s+(?i:if\s+not\s+exists\s+)?(?P<name>[\w.\"`\[\]]+)",
    "protobuf": r"(?:message|service|enum)\s+(?P<name>\w+)",
    "graphql": r"(?:extend\s+)?(?:type|interface|input|enum|union|scalar|query|mutation|fragment)"
    r"\s+(?P<name>\w+)",
    "hcl": r"(?P<name>(?:resource|data|module|variable|output|provider)(?:\s+\"[^\"\n]+\"){1,2})",
    "dockerfile": r"(?i:from)\s+(?P<name>[^\n]+)",
    "make": r"(?P<name>[\w./%-]+(?:[ \t]+[\w./%-]+){0,4})[ \t]*::?(?!=)",
    "kotlin": r"(?:[a-z]+\s+){0,4}?(?:class|interface|object|fun)\s+(?:<[^>\n]*>\s*)?"
    r"(?P<name>[\w.]+)",
    "swift": r"(?:[a-z]+\s+){0,4}?(?:class|struct|enum|protocol|extension|actor|func)\s+"
    r"(?P<name>[\w.]+)",
    "scala": r"(?:[a-z]+\s+){0,4}?(?:class|object|trait|enum|def)\s+(?P<name>\w+)",
    "lua": r"(?:local\s+)?function\s+(?P<name>[\w.:]+)",
    "perl": r"(?:sub|package)\s+(?P<name>[\w:]+)",
    "r": r"(?P<name>[\w.]+)\s*(?:<-|=)\s*function\b",
    "julia": r"(?:function|(?:mutable\s+)?struct|module|macro)\s+(?P<name>[\w.!]+)",
    "elixir": r"(?:defmodule|defprotocol|defimpl)\s+(?P<name>[\w.]+)",
    "powershell": r"(?i:function|class)\s+(?P<name>[\w:-]+)",
    "dart": r"(?:abstract\s+)?(?:class|mixin|enum|extension)\s+(?P<name>\w+)",
    "clojure": r"\((?:defn-?|defmacro|defprotocol|defrecord|deftype|defmulti)\s+(?P<name>[^\s()]+)",
    "yaml": r"(?P<name>[\w.-]+)[ \t]*:(?=[ \t]*(?:\n|$))",
}
"""What starts a part of a language without a grammar, at the start of a line."""

_LEAD: Final = re.compile(r"(?:#|//|--|;|/\*|\*|@)")
"""A line above a part that belongs to it: a comment or an attribute."""


class CodeExtractor(Extractor):
    """Source code and configuration in whatever language."""

    name = "code"
    version = 1
    isolated = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Decodes the file and asks a parser for its outline; see `Extractor.extract`."""
        decoded, encoding = decode(data, name=name)
        text = document_text(decoded, name=name)
        written = without_data(text).split("\n")
        long = sum(len(line) for line in written if len(line) > _LONG_LINE)
        if long * 2 > len(text):
            raise ExtractionError(
                f"{name}: expected source code, found mostly lines of more than {_LONG_LINE:,} "
                "characters, as a minifier or generator writes them",
                remedy="add the source it was made from, or leave it out",
            )
        language = language_of(name) or "text"
        if language == "c" and name.lower().endswith(".h") and _CPP.search(text):
            language = "cpp"
        metadata = {"language": "typescript" if language == "tsx" else language}
        docstring = _DOCSTRING.match(text) if language == "python" else None
        if docstring and (summary := docstring[1].strip(" \t\"'")):
            metadata["summary"] = summary[:_SUMMARY_LIMIT]
        return Document(
            text=text,
            syntax="code",
            metadata=metadata | encoding_metadata(encoding),
            extractor=self.label,
            title=" ".join(name.rpartition("/")[2].split()),
            outline=parsed_outline(text, language) or _marked_outline(text, language),
        )


def _marked_outline(text: str, language: str) -> tuple[Section, ...]:
    """The parts of a language without a grammar, as far as the starts of lines tell them."""
    if language not in _MARKED:
        return ()
    found: list[Section] = []
    floor = 0
    for mark in re.finditer(f"^{_MARKED[language]}", text, re.MULTILINE):
        start = mark.start()
        # The comment lines right above belong to the part.
        while start > floor:
            line_end = text.rfind("\n", floor, start - 1)
            line = line_end + 1
            if (line_end < 0 and floor) or not _LEAD.match(text, line, start):
                break
            start = line
        title = " ".join(mark["name"].split()).replace('"', "").strip("`[] ")
        found.append(Section(start=start, level=1, title=title))
        floor = mark.end()
    return tuple(found)
