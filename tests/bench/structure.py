"""How the code is built: ``python tests/bench/structure.py [CHECKOUT ...]``.

A column a checkout, this one where none is named. Nothing of another checkout is changed: one new
file is synced into a store in a temporary folder, in a process that loads that checkout.
"""

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

PACKAGES: Final = ("filestore", "tui")
_HERE: Final = Path(__file__).resolve().parents[2]
_CODES: Final = "import filestore, json; print(json.dumps(sorted(filestore.CODES)))"
_TRACE: Final = """
import contextlib, io, json, os, sys, threading
from filestore.cli import main
quiet = lambda: contextlib.redirect_stdout(io.StringIO())
with quiet():
    main(["init"])
    with open("file_index/chunked/first.md", "w") as file:
        file.write("Words of basalt.\\n")
    main(["sync"])
    with open("file_index/chunked/new.md", "w") as file:
        file.write("Words of gneiss.\\n")
entered = set()
def enter(frame, event, _):
    if event == "call" and frame.f_code.co_name != "<module>":
        entered.add(frame.f_globals.get("__name__", ""))
threading.setprofile(enter)
sys.setprofile(enter)
with quiet():
    main(["sync"])
sys.setprofile(None)
ours = [one for one in entered if one.startswith("filestore.")]
print(json.dumps(sorted(one for one in ours if not one.startswith("filestore.cli"))))
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One file of Python."""

    name: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """What it lies in, directly below the package."""
        return ".".join(self.name.split(".")[:2])

    def code_lines(self) -> int:
        """Lines that are neither blank, nor comment, nor docstring."""
        layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in layout and token.type != tokenize.ENDMARKER:
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(self.tree):
            match node:
                case ast.Expr(value=ast.Constant(value=str())):
                    lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
        return len(lines)

    def functions(self) -> list[Function]:
        """Every function and method."""
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]


class Checkout:
    """The product's code in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: dict[str, Module] = {}
        for package in PACKAGES:
            for path in sorted((folder / package).rglob("*.py")):
                parts = path.relative_to(folder).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                text = path.read_text("utf-8")
                self.modules[name] = Module(name=name, text=text, tree=ast.parse(text))

    def rooms(self) -> dict[str, tuple[int, int]]:
        """Lines and code lines of each room of the library."""
        found: dict[str, tuple[int, int]] = {}
        for one in self.modules.values():
            lines, code = found.get(one.room, (0, 0))
            found[one.room] = (lines + one.text.count("\n"), code + one.code_lines())
        return found

    def rows(self) -> int:
        """Of the contract that orders the whole library."""
        tools = tomllib.loads((self.folder / "pyproject.toml").read_text("utf-8"))["tool"]
        return max(
            len(one["layers"])
            for one in tools["importlinter"]["contracts"]
            if one.get("containers") == ["filestore"] and one.get("exhaustive")
        )

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Module to modules, also where a function imports; not what only types need."""
        return {name: set(self._imported(one)) - {name} for name, one in self.modules.items()}

    def _imported(self, module: Module) -> Iterator[str]:
        for_types = {
            inner
            for node in ast.walk(module.tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(module.tree):
            if node in for_types:
                continue
            if isinstance(node, ast.Import):
                yield from (one.name for one in node.names if one.name in self.modules)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for one in node.names:
                    whole = f"{node.module}.{one.name}"
                    if whole in self.modules or node.module in self.modules:
                        yield whole if whole in self.modules else node.module

    def longest_chain(self) -> list[str]:
        """The longest row of library modules of which each imports the next, none twice."""
        best: dict[str, list[str]] = {}
        under_way: set[str] = set()

        def chain(name: str) -> list[str]:
            if name not in best:
                under_way.add(name)
                further = [chain(one) for one in self.imports[name] if one not in under_way]
                under_way.remove(name)
                best[name] = [name, *max(further, key=len, default=[])]
            return best[name]

        return max((chain(one) for one in self.modules if one.startswith("filestore")), key=len)

    def collections_of_codes(self) -> tuple[int, int]:
        """Collections that hold two or more codes of findings, and the modules they are in."""
        codes = set(self._python(_CODES))
        found = [
            name
            for name, one in self.modules.items()
            for node in ast.walk(one.tree)
            if isinstance(node, ast.Dict | ast.Set | ast.List | ast.Tuple)
            and len(codes & set(_strings(node))) > 1
        ]
        return len(found), len(set(found))

    def private_used_once(self) -> tuple[int, int]:
        """Private functions that their module names once; and of those, of three lines or fewer."""
        once = short = 0
        for module in self.modules.values():
            used = Counter(
                node.id if isinstance(node, ast.Name) else node.attr
                for node in ast.walk(module.tree)
                if isinstance(node, ast.Name | ast.Attribute)
            )
            for one in module.functions():
                if one.name.startswith("_") and not one.name.endswith("__") and used[one.name] == 1:
                    once += 1
                    short += _body_lines(one) <= 3
        return once, short

    def longest_function(self) -> tuple[int, str]:
        """Its lines and name."""
        return max(
            ((one.end_lineno or 0) - one.lineno + 1, f"{module.name}.{one.name}")
            for module in self.modules.values()
            for one in module.functions()
        )

    def longest_module(self) -> tuple[int, str]:
        """Its lines and name."""
        return max((one.text.count("\n"), one.name) for one in self.modules.values())

    def crossed_by_sync(self) -> list[str]:
        """Library modules that a sync of one new file enters, but those of the command line."""
        return self._python(_TRACE)

    def _python(self, program: str) -> list[str]:
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", program],
                cwd=folder,
                env=kept | {"PYTHONPATH": str(self.folder), "XDG_CONFIG_HOME": folder},
                capture_output=True,
                check=True,
            )
        found: list[str] = json.loads(done.stdout)
        return found


def _strings(node: ast.Dict | ast.Set | ast.List | ast.Tuple) -> Iterator[str]:
    for one in node.keys if isinstance(node, ast.Dict) else node.elts:
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def _body_lines(function: Function) -> int:
    """Lines below the signature, without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkouts", nargs="*", type=Path, default=[_HERE], metavar="CHECKOUT")
    checkouts = [Checkout(path.resolve()) for path in parser.parse_args().checkouts]
    _print_table("figure", checkouts, [_figures(one) for one in checkouts])
    print()
    rooms = [
        {name: f"{lines:,} ({code:,})" for name, (lines, code) in one.rooms().items()}
        for one in checkouts
    ]
    _print_table("room: lines (code lines)", checkouts, rooms)
    return 0


def _figures(checkout: Checkout) -> dict[str, str]:
    rooms = checkout.rooms()
    cells = {}
    for package in PACKAGES:
        sizes = [size for name, size in rooms.items() if name.partition(".")[0] == package]
        modules = sum(name.partition(".")[0] == package for name in checkout.modules)
        lines, code = (sum(size[at] for size in sizes) for at in (0, 1))
        cells[f"`{package}`: modules, lines (code lines)"] = f"{modules}, {lines:,} ({code:,})"
    collections, modules = checkout.collections_of_codes()
    once, short = checkout.private_used_once()
    lines, longest = checkout.longest_function()
    module_lines, largest = checkout.longest_module()
    return cells | {
        "names directly in `filestore`": str(sum(name.startswith("filestore.") for name in rooms)),
        "rows of imports": str(checkout.rows()),
        "longest chain of imports, modules": str(len(checkout.longest_chain())),
        "collections that know codes (modules)": f"{collections} ({modules})",
        "private functions used once (of 3 lines or fewer)": f"{once:,} ({short:,})",
        "longest function, lines": f"{lines} `{longest}`",
        "longest module, lines": f"{module_lines} `{largest}`",
        "modules a new file crosses in `sync`": str(len(checkout.crossed_by_sync())),
    }


def _print_table(
    title: str, checkouts: Sequence[Checkout], columns: Sequence[dict[str, str]]
) -> None:
    names = dict.fromkeys(name for column in columns for name in column)
    print(f"| {title} | {' | '.join(one.folder.name for one in checkouts)} |")
    print(f"|---|{'--:|' * len(checkouts)}")
    for name in names:
        print(f"| {name} | {' | '.join(column.get(name, '') for column in columns)} |")


if __name__ == "__main__":
    sys.exit(main())
