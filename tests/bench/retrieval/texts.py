"""Plain text out of man pages, HTML, POD and dictionaries: to be searched, not to be printed.

Pure. The product's own readers are not used here: what they make of a page changes with them, and a
set must stay the same.
"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final

_ROFF_CHARACTERS: Final = {
    "aq": "'", "bu": "•", "co": "©", "cq": "’", "dq": '"', "em": "—", "en": "–", "ha": "^",
    "lq": "“", "oq": "‘", "rq": "”", "rs": "\\", "ti": "~",
}  # fmt: skip
_ROFF_ESCAPE: Final = re.compile(
    r"\\(?:f(?:\[\w*\]|\(..|.)|s[-+]?\d|[&%/,:^|]|m\[\w*\]|\((..)|\[(\w+)\]|(.))"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[^\s\da-zа-яё])|(?<=[。！？])")
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS: Final = frozenset({
    "blockquote", "br", "dd", "div", "dl", "dt", "li", "ol", "p", "pre", "section", "table", "tr",
    "ul",
})  # fmt: skip
_SILENT: Final = frozenset({"script", "style", "head", "nav"})


def squeezed(text: str) -> str:
    """One line."""
    return " ".join(text.split())


def first_sentence(text: str) -> tuple[str, str]:
    """The first sentence in one line, and what follows it."""
    first, *rest = _SENTENCE.split(text.strip(), maxsplit=1)
    return squeezed(first), rest[0].strip() if rest else ""


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Heading and text below it, of Markdown."""
    parts = re.split(r"^#+ +(.+)$", text, flags=re.MULTILINE)
    yield from zip(map(str.strip, parts[1::2]), map(str.strip, parts[2::2]), strict=True)


def man_page(source: str) -> tuple[str, str] | None:
    """What a page is for, in a line, and the page as Markdown without that line.

    None for a page that only names another one, says no such line, or has macros of mdoc.
    """
    if re.search(r"^\.(so|Dd) ", source, re.MULTILINE):
        return None
    lines: list[str] = []
    for line in source.splitlines():
        lines += _roff_line(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    parts = re.split(r"^## .+$", text, maxsplit=2, flags=re.MULTILINE)
    named = re.search(r"\s[-–—]+\s(.+)", squeezed(parts[1]) if len(parts) > 2 else "")
    if not named:
        return None
    body = text[text.index(parts[1]) + len(parts[1]) :]
    return named.group(1).rstrip("."), body.strip()


def _roff_line(line: str) -> Iterator[str]:
    if re.match(r"['.]+\\?[\"']|\.\\|'", line):
        return
    if not line.startswith("."):
        yield _roff_text(line)
        return
    macro, _, rest = line[1:].strip().partition(" ")
    words = [a or b for a, b in re.findall(r'"((?:[^"]|"")*)"|(\S+)', rest)]
    if macro in {"SH", "SS"}:
        yield f"\n{'##' if macro == 'SH' else '###'} {_roff_text(' '.join(words))}\n"
    elif macro in {"BR", "RB", "IR", "RI", "BI", "IB"}:
        yield _roff_text("".join(words))
    elif macro in {"B", "I", "SM", "SB", "CW"}:
        yield _roff_text(" ".join(words))
    elif macro in {"PP", "P", "LP", "TP", "TQ", "sp", "HP", "EE", "EX"}:
        yield ""
    elif macro == "IP":
        yield f"\n{_roff_text(words[0])}" if words else ""


def _roff_text(line: str) -> str:
    line = re.sub(r"\\\".*", "", line)

    def plain(found: re.Match[str]) -> str:
        two, name, one = found.groups()
        if two or name:
            return _ROFF_CHARACTERS.get(two or name, "")
        return {"e": "\\", "~": " ", " ": " ", "-": "-", "(": "("}.get(one or "", "")

    return _ROFF_ESCAPE.sub(plain, line)


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0
        self._heading = False
        self._verbatim = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in _HEADINGS:
            self.parts.append(f"\n\n{_HEADINGS[tag]} ")
            self._heading = True
        elif tag in _BLOCKS:
            self.parts.append(" " if self._heading else "\n\n" if tag != "br" else "\n")
            self._verbatim = self._verbatim or tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent -= 1
        elif tag in _HEADINGS or tag in _BLOCKS:
            self.parts.append("\n\n")
            self._heading = self._heading and tag not in _HEADINGS
            self._verbatim = self._verbatim and tag != "pre"

    def handle_data(self, data: str) -> None:
        if not self._silent:
            kept = data if self._verbatim else re.sub(r"\s+", " ", data)
            self.parts.append(kept.replace("¶", ""))


def of_html(source: str) -> str:
    """A page as Markdown of headings and paragraphs."""
    reader = _Html()
    reader.feed(source)
    text = re.sub(r"[ \t]*\n[ \t]*\n\s*", "\n\n", "".join(reader.parts))
    return re.sub(r"^(#+ .*?)\s*$", r"\1", text, flags=re.MULTILINE).strip()


def of_pod(source: str) -> str:
    """Perl's documentation as Markdown; ``=item`` becomes a heading, too."""
    text = re.sub(r"^=(?:begin|for)\b.*?(?=^=(?:end|head|item|over|back|cut))", "", source,
                  flags=re.MULTILINE | re.DOTALL)  # fmt: skip
    for _ in range(3):
        text = re.sub(r"X<[^<>]*>|Z<>", "", text)
        text = re.sub(r"L<(?:([^<>|]*)\|)?([^<>]*)>", lambda m: m[1] or m[2], text)
        text = re.sub(
            r"E<(lt|gt|sol|verbar)>", lambda m: {"lt": "‹", "gt": "›"}.get(m[1], "/"), text
        )
        text = re.sub(r"[BCIFS]<<+ (.*?) >>+|[BCIFS]<([^<>]*)>", lambda m: m[1] or m[2], text)
    text = re.sub(r"^=head(\d) ", lambda m: "#" * int(m[1]) + " ", text, flags=re.MULTILINE)
    text = re.sub(r"^=item +(?![*\d])", "##### ", text, flags=re.MULTILINE)
    return re.sub(r"^=\w+.*\n", "", text, flags=re.MULTILINE).strip()


def entries(dictionary: str) -> Iterator[tuple[str, str]]:
    """Headword and definition, of a dictionary whose headwords alone begin a line."""
    for found in re.finditer(
        r"^(\S.*)\n(?:\S.*\n)*\s*\n?((?:[ \t].*\n|\n)+)", dictionary, re.MULTILINE
    ):
        yield found.group(1).strip(), re.sub(r"^ +", "", found.group(2), flags=re.MULTILINE).strip()
