r"""LaTeX as Markdown: sections, lists, listings, tables; formulas as they are written.

Macros are not run: what is in the braces of one that is not known is text. One rule: nothing that a
command names (`\input`, a picture) is opened.
"""

import re
import unicodedata
from typing import Final

from filestore.extract._marked import Line, Written, listing, numbered, table_lines
from filestore.extract.base import names_in
from filestore.extract.markdown import prose

_LEVELS: Final = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")
_LONGEST_LINE: Final = 20_000
_MOST_TITLE_LINES: Final = 6

_COMMENT: Final = re.compile(r"(?<!\\)((?:\\\\)*)%.*")
_HEADING: Final = re.compile(rf"\s*\\({'|'.join(_LEVELS)}|subparagraph)\*?\s*(?:\[[^\[\]]*\])?\{{")
_META: Final = re.compile(r"\\(title|author|date)\s*(?:\[[^\[\]]*\])?\{")
_BEGIN: Final = re.compile(r"\s*\\begin\{(\w+\*?)\}(.*)")
_VERBATIM: Final = names_in("verbatim verbatim* Verbatim lstlisting minted alltt")
_FORMULAS: Final = names_in(
    """
    equation equation* align align* gather gather* multline multline* eqnarray eqnarray*
    displaymath math flalign flalign* alignat alignat*
    """
)
_TABLES: Final = names_in("tabular tabular* tabularx longtable tabulary array")
_RULES: Final = re.compile(
    r"\\(?:[hv]line|toprule|midrule|bottomrule|endhead|(?:cline|cmidrule)(?:\([lr]+\))?\{[^{}]*\})"
)
_LANGUAGE: Final = re.compile(r"language=\{?(\w+)|^\s*(?:\[[^\]]*\])?\{(\w+)\}")
_MATH: Final = re.compile(r"(?<!\\)\$\$?[^$\n]+\$\$?|\\\(.*?\\\)|\\\[.*?\\\]")
_KEPT: Final = re.compile("\ue0f7([0-9]+)\ue0f8")
_BRACED: Final = r"\s*\{([^{}]*)\}"
_OPTION: Final = r"(?:\s*\[[^\[\]]*\])*"
_COMMANDS: Final = tuple(
    (re.compile(rf"\\(?:{names}){_OPTION}{_BRACED}"), written)
    for names, written in (
        (
            "label|index|vspace\\*?|hspace\\*?|includegraphics\\*?|input|include|bibliographystyle",
            "",
        ),
        ("pagestyle|thispagestyle|setlength|setcounter|addcontentsline|usepackage", ""),
        ("textbf|bf", r"**\1**"),
        ("emph|textit|textsl|it", r"*\1*"),
        ("texttt|lstinline|code|path", r"`\1`"),
        ("cite\\w*|ref|eqref|pageref|autoref|cref|Cref", r"[\1]"),
        ("footnote|thanks", r" (\1)"),
        ("url", r"\1"),
    )
)
_HREF: Final = re.compile(rf"\\href{_BRACED}{_BRACED}")
_VERB: Final = re.compile(r"\\verb\*?([^\w\s{])(.*?)\1")
_UNKNOWN: Final = re.compile(rf"\\[a-zA-Z]+\*?{_OPTION}{_BRACED}")
_BARE: Final = re.compile(r"\\(?:item|[a-zA-Z]+)\*? ?(?:\[[^\[\]]*\])?")
_ACCENT: Final = re.compile(
    r"""\\(['`"^~=.]|[cvuHkr](?=[\s{]))\s*(?:\{\\?([a-zA-Z])\}|\\?([a-zA-Z]))"""
)
_ACCENTS: Final = dict(
    zip(
        "'`\"^~=.cvuHkr",
        "\u0301\u0300\u0308\u0302\u0303\u0304\u0307\u0327\u030c\u0306\u030b\u0328\u030a",
        strict=True,
    )
)
_LETTERS: Final = re.compile(r"\\(ss|ae|AE|oe|OE|o|O|aa|AA|l|L|i|j)(?![a-zA-Z])(?:\{\}| )?")
_LETTER: Final = {"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø"} | {
    "aa": "å",
    "AA": "Å",
    "l": "ł",
    "L": "Ł",
    "i": "i",
    "j": "j",
}
_SIGNS: Final = (
    *(("\\\\", "\n"), ("\\%", "%"), ("\\&", "&"), ("\\$", "$"), ("\\#", "#"), ("\\_", "_")),
    *(("\\{", "{"), ("\\}", "}"), ("\\,", " "), ("\\ ", " "), ("\\-", ""), ("~", " ")),
    *(("---", "—"), ("--", "–"), ("``", "“"), ("''", "”")),
)


def read_tex(text: str, out: Written, _name: str) -> None:
    """Write LaTeX as Markdown."""
    lines = numbered(text)
    begin = next((n for n, (_, line) in enumerate(lines) if r"\begin{document}" in line), -1)
    for at in range(begin + 1 if begin >= 0 else len(lines)):
        for found in _META.finditer(_COMMENT.sub(r"\1", lines[at][1])):
            value, _ = _braced(lines, at, found.end())
            out.metadata.setdefault(found[1], " ".join(plain(value).split()))
    if out.metadata.get("date") in ("", r"\today"):
        del out.metadata["date"]
    has_chapters = any(re.match(r"\s*\\(?:chapter|part)\b", line) for _, line in lines)
    at, depth = begin + 1, 0
    while at < len(lines):
        number, line = lines[at][0], _COMMENT.sub(r"\1", lines[at][1])
        opened, heading = _BEGIN.match(line), _HEADING.match(line)
        kind = opened[1] if opened else ""
        if r"\end{document}" in line:
            break
        if heading:
            title, at = _braced(lines, at, heading.end())
            level = [*_LEVELS, "subparagraph"].index(heading[1]) + (1 if has_chapters else -1)
            out.block(number, f"{'#' * min(6, max(1, level))} {' '.join(plain(title).split())}", "")
        elif opened and (end := _end(lines, at, kind)) and kind in _VERBATIM | _FORMULAS | _TABLES:
            _environment(lines[at : end + 1], kind, opened[2], out)
            at = end
        elif opened or re.match(r"\s*\\end\{", line):
            is_list = re.match(r"\s*\\(begin|end)\{(?:itemize|enumerate|description)\}", line)
            if is_list:
                depth = max(0, depth + (1 if is_list[1] == "begin" else -1))
            out.add(number, "")
        elif line.strip() or not lines[at][1].strip():
            _text_line(number, line, depth, out)
        at += 1


def _text_line(number: int, line: str, depth: int, out: Written) -> None:
    item = re.match(r"\s*\\item\b\s*(?:\[([^\[\]]*)\])?(.*)", line)
    if item:
        label = f"**{plain(item[1])}** " if item[1] else ""
        out.add(number, f"{'  ' * max(0, depth - 1)}- {label}{plain(item[2]).strip()}")
    elif written := plain(line).strip():
        out.add(number, prose("  " * depth + written))
    elif not line.strip():
        out.add(number, "")


def _braced(lines: list[Line], at: int, start: int) -> tuple[str, int]:
    """What is in braces that were opened, which may go on for some lines, and its last line."""
    text, depth = "", 1
    for place in range(at, min(len(lines), at + _MOST_TITLE_LINES)):
        line = _COMMENT.sub(r"\1", lines[place][1])
        for sign in line[start if place == at else 0 :][:_LONGEST_LINE]:
            depth += (sign == "{") - (sign == "}")
            if not depth:
                return text, place
            text += sign
        text += " "
    return lines[at][1][start:], at


def _end(lines: list[Line], at: int, kind: str) -> int:
    closing = rf"\end{{{kind}}}"
    return next((n for n in range(at, len(lines)) if closing in lines[n][1]), 0)


def _environment(lines: list[Line], kind: str, argument: str, out: Written) -> None:
    """A listing, a formula or a table, from the line that begins it to the one that ends it."""
    number, inner = lines[0][0], lines[1:-1]
    if kind in _VERBATIM:
        language = _LANGUAGE.search(argument)
        listing(out, number, inner, (language[1] or language[2]).lower() if language else "")
        return
    if kind in _FORMULAS:
        out.block(number, "$$")
        for at, line in inner if len(lines) > 1 else ():
            out.add(at, re.sub(r"\\label\{[^{}]*\}", "", line).strip())
        out.add(lines[-1][0], "$$", "")
        return
    rows, numbers, begun = list[list[str]](), list[int](), ""
    for at, line in inner:
        line = re.sub(
            r"\\(?:[hv]line|toprule|midrule|bottomrule|cline\{[^{}]*\}|endhead)", "", line
        )
        begun += _COMMENT.sub(r"\1", line) + " "
        *full, begun = re.split(r"\\\\(?:\[[^\[\]]*\])?", begun)
        for row in full:
            rows.append([plain(cell) for cell in re.split(r"(?<!\\)&", row)])
            numbers.append(at)
    if begun.strip():
        rows.append([plain(cell) for cell in re.split(r"(?<!\\)&", begun)])
        numbers.append(lines[-1][0])
    for n, written in enumerate(table_lines(rows)):
        (out.add if n else out.block)(numbers[max(0, n - 1)], written)
    out.add(lines[-1][0], "")


def plain(text: str) -> str:
    """Text of LaTeX without its commands; formulas stay."""
    if len(text) > _LONGEST_LINE or not re.search(r"[\\{}$~`'-]", text):
        return text
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(f"`{found[2]}`" if found.re is _VERB else found[0])
        return f"\ue0f7{len(kept) - 1}\ue0f8"

    text = _MATH.sub(keep, _VERB.sub(keep, text))
    text = _ACCENT.sub(_accented, text)
    text = _LETTERS.sub(lambda found: _LETTER[found[1]], text)
    for _ in range(4):  # braces in braces, from the innermost
        before = text
        text = _HREF.sub(r"[\2](\1)", text)
        for pattern, written in _COMMANDS:
            text = pattern.sub(written, text)
        text = _UNKNOWN.sub(r"\1", text)
        if text == before:
            break
    for sign, written in _SIGNS:
        text = text.replace(sign, written)
    text = re.sub(r"(?<!\\)[{}]", "", _BARE.sub("", text))
    return _KEPT.sub(lambda found: kept[int(found[1])] if int(found[1]) < len(kept) else "", text)


def _accented(found: re.Match[str]) -> str:
    return unicodedata.normalize("NFC", (found[2] or found[3]) + _ACCENTS[found[1]])
