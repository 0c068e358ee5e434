"""What people and programs read of this program: ``python tests/wording.py > strings.txt``.

With ``--count`` it prints how many remedies are a command to paste, and how many texts are long.

A line each: where it stands, a tab, the text. Values that are put into a text are `{}`. What Python
writes are its literals of two words and more, without SQL, and the docstrings that are help; what
the page writes, its literals and its text.
"""

import ast
import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from filestore.core.errors import way_out

ROOT: Final = Path(__file__).resolve().parents[1]
NOT_SAID: Final = {
    r"t(ak|ook)\w* in(?!to)\b": "add",
    r"br(ing|ought)\w* (it |them )?(back|in step)\b": "restore, sync",
    r"put\w* aside\b": "quarantine",
    r"mend(s|ed|ing)?\b": "repair",
    r"(is|are|be|was|were) (told|said|meant)\b": "reported",
    r"withheld\b": "excluded",
    r"told\b": "shown, given",
    r"brought\b": "added, updated",
    r"in step\b": "up to date",
    r"(?<!-)beside\b": "next to, besides",
    r"as (it|they) (stands?|are:)": "as is",
    r"so many\b": "n",
    r"those that\b": "the …",
    r"whoever\b": "anyone",
    r"nobody\b": "no one, or who does what",
    r"by now\b": "already",
    r"(?i:resources?)\b": "document",
}
"""What reads badly, and what to write for it."""
HELP: Final = ("filestore/cli/", "filestore/server/requests.py", "filestore/server/searching.py")
"""Where the docstrings of classes, of their fields and of commands are help."""
_SQL: Final = re.compile(
    r"\b(SELECT|INSERT|WHERE|CREATE|DELETE FROM|GROUP BY|PRAGMA|AND [a-z]+ IN)\b|\?1?$"
)
_NAMES: Final = re.compile(r"KEYS|SPARSE|COLUMNS|columns")
"""What holds names of keys and columns."""
_PAGE: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|>[^<>]*<')

_VALUE: Final = re.compile(r"\$\{[^}]*\}")


_COMMAND: Final = re.compile(r"command$|(install|fetch)_line\(")
"""How the code calls a command that is put into a remedy."""
_ERROR: Final = re.compile(r"(Error|Refused|Missing|Damaged|Unusable|Unreachable|Invalid)$")
"""How a class of errors is called."""
LONG: Final = 100
"""Letters that a message has room for."""


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
            # Names, no sentences.
            else [node.value] if isinstance(node, ast.Assign | ast.AnnAssign) and any(
                isinstance(one, ast.Name) and _NAMES.search(one.id)
                for one in (node.targets if isinstance(node, ast.Assign) else [node.target])
            )
            else [node.annotation] if isinstance(node, ast.AnnAssign | ast.arg)
            else [node.returns] if isinstance(node, ast.FunctionDef)
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


def help_strings(path: Path) -> Iterator[tuple[ast.expr, str]]:
    """The docstrings of a module that are printed: of commands, their options and requests."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ClassDef) or (
            isinstance(node, ast.FunctionDef)
            and ast.get_docstring(node)
            and "options" in [one.arg for one in node.args.args]
        ):
            for one in node.body if isinstance(node, ast.ClassDef) else node.body[:1]:
                if isinstance(one, ast.Expr) and (text := text_of(one.value)):
                    yield one.value, " ".join(text.split())


def said() -> Iterator[Said]:
    """All of it."""
    for package in ("filestore", "tui"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT)
            found = python_strings(path)
            if str(name).startswith(HELP):
                found = chain(found, help_strings(path))
            for node, text in found:
                if " " in text.strip() and not _SQL.search(text):
                    yield Said(f"{name}:{node.lineno}", text)
    for path in sorted((ROOT / "filestore/server/page/files").glob("*.[jh][st]*")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for found in _PAGE.finditer(line):
                text = _VALUE.sub("{}", found[0][1:-1])
                if " " in text.strip():
                    yield Said(f"{path.relative_to(ROOT)}:{number}", text)


def remedies() -> Iterator[Said]:
    """Those of errors and codes, as they stand in the code."""
    for package in ("filestore", "tui"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.keyword) and node.arg in {"remedy", "repair_of_documents"}:
                    for text in _of_branches(node.value):
                        place = f"{path.relative_to(ROOT)}:{node.value.lineno}"
                        yield Said(place, _with_command(node.value, text))


def _with_command(node: ast.expr, text: str) -> str:
    """A remedy that begins with a value that is a command; another value is left as it is."""
    if not text.startswith(("{}", "'{}'")):
        return text
    values = getattr(node, "values", ())
    first = next((one for one in values if isinstance(one, ast.FormattedValue)), None)
    if first is None or not _COMMAND.match(ast.unparse(first.value)):
        return text
    is_ours = "install_line" not in ast.unparse(first.value)
    return text.replace("{}", "filestore status" if is_ours else "pip install x", 1)


def messages() -> Iterator[Said]:
    """What errors say, and their remedies."""
    yield from remedies()
    for package in ("filestore", "tui"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if (
                    isinstance(node, ast.Call)
                    and node.args
                    and _ERROR.search(ast.unparse(node.func))
                ):
                    for text in _of_branches(node.args[0]):
                        yield Said(f"{path.relative_to(ROOT)}:{node.lineno}", text)


def _of_branches(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from _of_branches(node.body)
        yield from _of_branches(node.orelse)
    elif text := text_of(node):
        yield text


def counted() -> str:
    """How many remedies begin with a command that can be pasted, and how long texts are."""
    known = [one.text for one in remedies()]
    # Where a value is put in, some word stands for it.
    pasted = sum(bool(way_out(text.replace("{}", "1"))[0]) for text in known)
    sentences = [one.text for one in said() if one.place.startswith(("filestore/", "tui/"))]
    long = sum(len(text) > LONG for text in sentences)
    return (
        f"remedies: {len(known):,}, of them commands: {pasted:,} ({pasted / len(known):.0%})\n"
        f"texts: {len(sentences):,}, of them longer than {LONG}: {long:,}\n"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--count"]:
        sys.stdout.write(counted())
        sys.exit()
    for one in said():
        text = one.text.replace("\n", "\\n")
        sys.stdout.write(f"{one.place}\t{text}\n")
