"""How the code is built: ``python tests/bench/structure.py [CHECKOUT ...]``.

A column a checkout, this one where none is named. Nothing of another checkout is changed: commands
run on a store in a temporary folder, in a process that loads that checkout.

``--check`` compares this checkout with `tests/structure.toml`: no count may be above the one there.
``--write`` lowers the counts there to what is found, and raises one only with ``--reason``.
"""

import argparse
import ast
import builtins
import io
import json
import os
import re
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
from typing import Any, Final

PACKAGES: Final = ("filestore", "tui")
_HERE: Final = Path(__file__).resolve().parents[2]
_CODES: Final = "import filestore, json; print(json.dumps(sorted(filestore.CODES)))"
_STORE: Final = """
import contextlib, gc, inspect, io, json, sys, threading
from filestore.cli import main
def run(*words):
    with contextlib.redirect_stdout(io.StringIO()):
        main(list(words))
def write(name):
    with open("file_index/chunked/" + name, "w") as file:
        file.write("Words of basalt.\\n")
"""
_MADE: Final = """
run("init", "--embedder", "builtin")
write("first.md")
run("sync")
"""
_LOADED: Final = """
run(*{words})
gc.collect()
classes, found = [object], set()
while classes:
    for one in type.__subclasses__(classes.pop()):
        if one not in found:
            found.add(one)
            classes.append(one)
print(json.dumps([
    sum(name.partition(".")[0] == "filestore" for name in sys.modules),
    len(ours := [one for one in found if one.__module__.partition(".")[0] == "filestore"]),
    sum(hasattr(one, "__dataclass_fields__") or hasattr(one, "__struct_fields__") for one in ours),
]))
"""
_RUN: Final = """
write({name!r})
entered = set()
def enter(frame, event, _):
    # The body of a class is no function, and has no fast locals.
    is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
    if event == "call" and is_function and not frame.f_code.co_name.startswith("<"):
        module = frame.f_globals.get("__name__", "")
        if module.startswith("filestore."):
            entered.add((module, frame.f_code.co_qualname))
threading.setprofile(enter)
sys.setprofile(enter)
run("sync")
sys.setprofile(None)
print(json.dumps([len({{module for module, _ in entered}}), len(entered)]))
"""
RATCHET: Final = _HERE / "tests" / "structure.toml"
# What the code is not to be written in, and a pattern for it. Another word is in CONTRIBUTING.md.
WORDS: Final = {
    word: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    for word, pattern in {
        "stands": "stands?",
        "beside": "beside",
        "said": "said",
        "meant": "meant",
        "told": "told",
        "those that": "those that",
        "so many": "so many",
        "whoever": "whoever",
        "nobody": "nobody",
        "take in": "(?:takes?|taking|taken|took) in",
        "bring back": "(?:brings?|bringing|brought) back",
        "bring in step": "in step",
        "put aside": "(?:puts?|putting) aside",
        "mend": "mend(?:s|ed|ing)?",
        "withheld": "withheld",
        "by now": "by now",
        "heed": "heed(?:s|ed|ing)?",
    }.items()
}
_CAMEL_CASE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
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

    def prose(self) -> str:
        """Its names as words, its comments and docstrings; not what it prints."""
        found = [
            token.string.strip("# ")
            if token.type == tokenize.COMMENT
            else _CAMEL_CASE.sub(" ", token.string)
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline)
            if token.type in {tokenize.NAME, tokenize.COMMENT}
        ]
        for node in ast.walk(self.tree):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found += text.split()
        return " ".join(found)

    @cached_property
    def names(self) -> Counter[str]:
        """How often each name is used, also as an attribute."""
        return Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )

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

    def commit(self) -> str:
        """What is checked out."""
        words = ["git", "-C", str(self.folder), "describe", "--always", "--exclude=*"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

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
                further = [chain(one) for one in sorted(self.imports[name]) if one not in under_way]
                under_way.remove(name)
                best[name] = [name, *max(further, key=len, default=[])]
            return best[name]

        return max((chain(one) for one in self.modules if one.startswith("filestore")), key=len)

    def collections_of_codes(self) -> tuple[int, int]:
        """Collections that hold two or more codes of findings, and the modules they are in."""
        codes = set(self._python(_CODES, os.path.dirname(sys.executable)))
        found = [
            name
            for name, one in self.modules.items()
            for node in ast.walk(one.tree)
            if isinstance(node, ast.Dict | ast.Set | ast.List | ast.Tuple)
            and len(codes & set(_strings(node))) > 1
        ]
        return len(found), len(set(found))

    def private_used_once(self) -> list[Function]:
        """Private functions that their module names once."""
        return [
            one
            for module in self.modules.values()
            for one in module.functions()
            if _is_private(one.name) and module.names[one.name] == 1
        ]

    def public_used_once(self) -> list[Function]:
        """Other functions that all modules together name once, imports left out."""
        names = sum((one.names for one in self.modules.values()), Counter[str]())
        return [
            one
            for module in self.modules.values()
            for one in module.functions()
            if not one.name.startswith("_") and names[one.name] == 1
        ]

    def words(self) -> dict[str, int]:
        """How often names, comments and docstrings use each word that is not to be used."""
        prose = "\n".join(one.prose() for one in self.modules.values())
        return {word: len(pattern.findall(prose)) for word, pattern in WORDS.items()}

    def exceptions(self) -> int:
        """Classes that derive from an exception, by their own bases or those of a base."""
        bases = {
            node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            for module in self.modules.values()
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ClassDef)
        }
        known = {"Exception", "BaseException"} | {
            name
            for name, one in vars(builtins).items()
            if isinstance(one, type) and issubclass(one, BaseException)
        }
        while more := {name for name, found in bases.items() if found & known} - known:
            known |= more
        return len(known & bases.keys())

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

    def loaded(self, *words: str) -> list[int]:
        """Modules that one command loads, classes that they make, and values among these."""
        return self._counted(_LOADED.format(words=words))

    def run_by_sync(self, name: str) -> list[int]:
        """Modules and functions that a sync runs after one file was written."""
        return self._counted(_RUN.format(name=name))

    def _counted(self, program: str) -> list[int]:
        with tempfile.TemporaryDirectory() as folder:
            self._python(_STORE + _MADE + "print(0)", folder)
            return [int(one) for one in self._python(_STORE + program, folder)]

    def counts(self) -> dict[str, int]:
        """What may fall and not rise."""
        code = {name: lines for name, (_, lines) in self.rooms().items()}
        found = {f"code lines, {name}": lines for name, lines in sorted(code.items())}
        once, public = self.private_used_once(), self.public_used_once()
        search, status = self.loaded("search", "basalt"), self.loaded("status")
        edited = self.run_by_sync("first.md")
        words = {f"word `{word}`": count for word, count in self.words().items()}
        return (
            found
            | words
            | {
                "code lines": sum(code.values()),
                "modules": len(self.modules),
                "longest chain of imports, modules": len(self.longest_chain()),
                "private functions used once": len(once),
                "private functions used once, % of all code": self._share(once, sum(code.values())),
                "other functions used once": len(public),
                "exceptions": self.exceptions(),
                "modules loaded by `search`": search[0],
                "classes made by `search`": search[1],
                "values among those of `search`": search[2],
                "modules loaded by `status`": status[0],
                "classes made by `status`": status[1],
                "values among those of `status`": status[2],
                "modules that `sync` of an edited file runs": edited[0],
                "functions that `sync` of an edited file runs": edited[1],
            }
        )

    @staticmethod
    def _share(functions: Sequence[Function], code: int) -> int:
        lines = sum((one.end_lineno or 0) - one.lineno + 1 for one in functions)
        return round(100 * lines / code)

    def tests(self) -> int:
        """Code lines of the tests."""
        texts = [path.read_text("utf-8") for path in (self.folder / "tests").rglob("*.py")]
        return sum(Module(name="", text=one, tree=ast.parse(one)).code_lines() for one in texts)

    def _python(self, program: str, folder: str) -> Any:
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=folder,
            env=kept | {"PYTHONPATH": str(self.folder), "XDG_CONFIG_HOME": folder},
            stdout=subprocess.PIPE,
            check=True,
        )
        return json.loads(done.stdout)


def _strings(node: ast.Dict | ast.Set | ast.List | ast.Tuple) -> Iterator[str]:
    for one in node.keys if isinstance(node, ast.Dict) else node.elts:
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def main() -> int:
    """Print the tables, or compare; 1 where a count rose."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkouts", nargs="*", type=Path, default=[_HERE], metavar="CHECKOUT")
    parser.add_argument("--check", action="store_true", help="fail where a count rose")
    parser.add_argument("--write", action="store_true", help="record the counts of this checkout")
    parser.add_argument("--reason", default="", help="why a count may rise")
    given = parser.parse_args()
    if given.check or given.write:
        return _ratchet(given)
    checkouts = [Checkout(path.resolve()) for path in given.checkouts]
    _print_table("figure", checkouts, [_figures(one) for one in checkouts])
    return 0


def _ratchet(given: argparse.Namespace) -> int:
    recorded = tomllib.loads(RATCHET.read_text("utf-8"))
    before, raised = recorded["counts"], recorded.get("raised", [])
    now = Checkout(_HERE).counts()
    risen = {name: count - before.get(name, 0) for name, count in now.items()}
    risen = {name: more for name, more in risen.items() if more > 0}
    for name, more in risen.items():
        print(f"{name}: {before.get(name, 0):,} -> {now[name]:,} (+{more:,})", file=sys.stderr)
    if given.write and (given.reason or not risen):
        if risen:
            figures = ", ".join(f"{name} +{more:,}" for name, more in risen.items())
            raised = [*raised, {"reason": given.reason, "figures": figures}]
        lines = ["# Counts that may fall and not rise. `python tests/bench/structure.py --write`"]
        lines += ["# lowers them; with `--reason` it also raises them.", "", "[counts]"]
        lines += [f'"{name}" = {count}' for name, count in now.items()]
        for one in raised:
            lines += ["", "[[raised]]", *(f"{key} = {json.dumps(one[key])}" for key in one)]
        RATCHET.write_text("\n".join(lines) + "\n", "utf-8")
        return 0
    if risen:
        print("make it lighter, or: --write --reason 'what is worth it'", file=sys.stderr)
    return 1 if risen else 0


def _figures(checkout: Checkout) -> dict[str, str]:
    collections, modules = checkout.collections_of_codes()
    lines, longest = checkout.longest_function()
    module_lines, largest = checkout.longest_module()
    return {name: f"{count:,}" for name, count in checkout.counts().items()} | {
        "code lines of tests": f"{checkout.tests():,}",
        "rows of imports": str(checkout.rows()),
        "collections that know codes (modules)": f"{collections} ({modules})",
        "longest function, lines": f"{lines} `{longest}`",
        "longest module, lines": f"{module_lines} `{largest}`",
        "modules that `sync` of a new file runs": str(checkout.run_by_sync("new.md")[0]),
    }


def _print_table(
    title: str, checkouts: Sequence[Checkout], columns: Sequence[dict[str, str]]
) -> None:
    names = dict.fromkeys(name for column in columns for name in column)
    print(f"| {title} | {' | '.join(one.commit() for one in checkouts)} |")
    print(f"|---|{'--:|' * len(checkouts)}")
    for name in names:
        print(f"| {name} | {' | '.join(column.get(name, '') for column in columns)} |")


if __name__ == "__main__":
    sys.exit(main())
