"""What people and programs read of this program: ``python tests/wording.py > strings.txt``.

A line each: where it stands, a tab, the text. Values that are put into a text are `{}`. What Python
writes are its literals of two words and more, without docstrings and SQL; what the page writes, its
literals and its text.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
NOT_SAID: Final = {
    r"t(ak|ook)\w* in(?!to)\b": "add",
    r"br(ing|ought)\w* (it |them )?(back|in step)\b": "restore, sync",
    r"put\w* aside\b": "quarantine",
    r"mend(s|ed|ing)?\b": "repair",
    r"(is|are|be|was|were) (told|said|meant)\b": "reported",
    r"withheld\b": "excluded",
    r"as (it|they) (stands?|are:)": "as is",
    r"so many\b": "n",
    r"those that\b": "the …",
    r"whoever\b": "anyone",
    r"nobody\b": "no one, or who does what",
    r"by now\b": "already",
}
"""What reads badly, and what to write for it."""
_SQL: Final = re.compile(r"\b(SELECT|INSERT|WHERE|CREATE|DELETE FROM|GROUP BY|PRAGMA)\b")
_PAGE: Final = re.compile(r'"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"|`[^`]* [^`]*`|>[^<>]* [^<>]*<')


class Said(NamedTuple):
    """A text, and where it stands."""

    place: str
    text: str


def python_strings(path: Path) -> Iterator[tuple[ast.expr, str]]:
    """The literals of a module with the text of each."""
    tree = ast.parse(path.read_bytes())
    inner = {
        id(part)
        for node in ast.walk(tree)
        for part in (
            node.values if isinstance(node, ast.JoinedStr)
            else [node.value] if isinstance(node, ast.Expr)
            else ()
        )
    }  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in inner:
            text = text_of(node)
            if text is not None:
                yield node, text


def text_of(node: ast.expr) -> str | None:
    """The text of a literal; None for any other expression."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def said() -> Iterator[Said]:
    """All of it."""
    for package in ("filestore", "tui"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT)
            for node, text in python_strings(path):
                if " " in text.strip() and not _SQL.search(text):
                    yield Said(f"{name}:{node.lineno}", text)
    for path in sorted((ROOT / "filestore/server/page/files").glob("*.[jh][st]*")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for found in _PAGE.finditer(line):
                yield Said(f"{path.relative_to(ROOT)}:{number}", found[0][1:-1])


def remedies() -> Iterator[Said]:
    """Those of errors and codes, as they stand in the code."""
    for package in ("filestore", "tui"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.keyword) and node.arg in {"remedy", "repair_of_documents"}:
                    for text in _of_branches(node.value):
                        yield Said(f"{path.relative_to(ROOT)}:{node.value.lineno}", text)


def _of_branches(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from _of_branches(node.body)
        yield from _of_branches(node.orelse)
    elif text := text_of(node):
        yield text


if __name__ == "__main__":
    for one in said():
        text = one.text.replace("\n", "\\n")
        sys.stdout.write(f"{one.place}\t{text}\n")
