"""The shape of the code, as CONTRIBUTING.md promises it; import-linter holds the layers."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

import filestore
from filestore.errors import FilestoreError

ROOT: Final = Path(__file__).resolve().parent.parent
FILES: Final = sorted(path for name in ("filestore", "tui") for path in (ROOT / name).rglob("*.py"))
MODULES: Final = [path.relative_to(ROOT).with_suffix("").as_posix() for path in FILES]
TREES: Final = {
    module: ast.parse(path.read_bytes()) for module, path in zip(MODULES, FILES, strict=True)
}

LONGEST_FUNCTION: Final = 60
LONGEST_MODULE: Final = 600
LONGEST_STORE_METHOD: Final = 25
MEANINGLESS: Final = frozenset({"utils", "util", "helpers", "helper", "common", "misc"})
HEAVY: Final = (
    "bs4",
    "charset_normalizer",
    "faiss",
    "frontmatter",
    "markdown_it",
    "markdownify",
    "numpy",
    "lxml",
    "mammoth",
    "onnxruntime",
    "pptx",
    "pypdfium2",
    "rich",
    "selectolax",
    "semantic_text_splitter",
    "sentence_transformers",
    "tantivy",
    "textual",
    "tokenizers",
    "torch",
    "transformers",
    "tree_sitter",
    "tui",
    "urllib3",
    "yaml",
)
"""What costs time to load and most commands do not need."""

REACHED_INTO: Final[set[tuple[str, str]]] = set()
"""Private modules that one module outside their package uses."""

SPEAKING: Final = ("filestore/cli/", "filestore/children", "tui/")
"""What runs as a program, to a person or to the process that started it."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A function or class, and where it stands."""

    module: str
    name: str
    """With the classes and functions around it."""
    node: Function | ast.ClassDef

    @property
    def is_public(self) -> bool:
        """Whether neither it, nor what is around it, nor its module starts with an underscore."""
        parts = [self.module.rpartition("/")[2].removeprefix("__"), *self.name.split(".")]
        return not any(part.startswith("_") for part in parts)

    def __str__(self) -> str:
        return f"{self.module}.py:{self.node.lineno} {self.name}"


def definitions(module: str) -> Iterator[Definition]:
    """Every function and class of a module, however deep."""
    waiting: list[tuple[str, ast.AST]] = [("", TREES[module])]
    while waiting:
        prefix, parent = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.ClassDef | Function):
                yield Definition(module=module, name=f"{prefix}{node.name}", node=node)
                waiting.append((f"{prefix}{node.name}.", node))
            else:
                waiting.append((prefix, node))


DEFINITIONS: Final = [found for module in MODULES for found in definitions(module)]


def length(node: Function) -> int:
    """Lines from the signature to the end, decorators left out."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def body_length(node: Function) -> int:
    """Lines of the body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def imports(node: ast.AST) -> Iterator[str]:
    """The modules named in the import statements of a tree."""
    for statement in ast.walk(node):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            yield statement.module
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


def error_classes() -> list[Any]:
    """Every public exception that filestore defines."""
    found: dict[str, type[BaseException]] = {}
    for module in all_modules():
        for name, value in vars(importlib.import_module(module)).items():
            is_error = inspect.isclass(value) and issubclass(value, BaseException)
            if is_error and value.__module__.startswith("filestore") and not name.startswith("_"):
                found[f"{value.__module__}.{value.__name__}"] = value
    return [pytest.param(value, id=value.__name__) for _, value in sorted(found.items())]


def all_modules() -> list[str]:
    """The names of filestore's modules, as they are imported."""
    walked = pkgutil.walk_packages(filestore.__path__, "filestore.")
    return sorted(module.name for module in walked if not module.name.endswith("__main__"))


def test_modules_have_telling_names() -> None:
    """No module is a drawer for what fits nowhere."""
    assert [module for module in MODULES if MEANINGLESS & set(re.split("[/_]", module))] == []


@pytest.mark.parametrize("module", MODULES)
def test_module_is_short(module: str) -> None:
    """A module has at most 600 lines."""
    lines = (ROOT / f"{module}.py").read_bytes().count(b"\n")
    assert lines <= LONGEST_MODULE, f"{module}.py has {lines} lines: split it along a seam"


def test_functions_are_short() -> None:
    """No function has more than 60 lines."""
    long = [
        f"{found}: {length(found.node)} lines"
        for found in DEFINITIONS
        if not isinstance(found.node, ast.ClassDef) and length(found.node) > LONGEST_FUNCTION
    ]
    assert long == []


def test_store_hands_over() -> None:
    """A method of the façade has at most 25 lines beside its docstring."""
    methods = [
        found
        for found in DEFINITIONS
        if found.module == "filestore/store" and found.name.startswith("Store.")
    ]
    assert methods
    long = [
        f"{found}: {body_length(found.node)} lines"
        for found in methods
        if not isinstance(found.node, ast.ClassDef)
        and body_length(found.node) > LONGEST_STORE_METHOD
    ]
    assert long == []


@pytest.mark.parametrize("module", MODULES)
def test_everything_public_says_what_it_does(module: str) -> None:
    """Every module, and every public function, method and class, has a docstring."""
    tree = TREES[module]
    assert module.endswith("__main__") or ast.get_docstring(tree), f"{module}.py has no docstring"
    silent = [
        str(found)
        for found in definitions(module)
        if found.is_public and ast.get_docstring(found.node) is None
    ]
    assert silent == []


@pytest.mark.parametrize("error", error_classes())
def test_every_error_can_be_caught_as_one(error: type[FilestoreError]) -> None:
    """Whoever catches FilestoreError has caught every public error, with its remedy."""
    assert issubclass(error, FilestoreError)
    assert error.exit_code in (2, 3, 4)


def test_private_modules_stay_private() -> None:
    """A module whose name starts with an underscore is imported only inside its own package."""
    reached: set[tuple[str, str]] = set()
    known = set(all_modules())
    for module in MODULES:
        own = module.rpartition("/")[0].replace("/", ".")
        for name in imports(TREES[module]):
            package, _, last = name.rpartition(".")
            is_private = last.startswith("_") and name in known and name != "filestore._version"
            if is_private and package != own:
                reached.add((module, name))
    assert reached == REACHED_INTO


def test_nothing_heavy_is_loaded_at_import() -> None:
    """Importing all of filestore loads no library that takes long to load."""
    program = (
        "import importlib, sys\n"
        f"for name in {all_modules()!r}: importlib.import_module(name)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.stdout.strip() == "[]"


def test_library_never_prints() -> None:
    """Nothing but the command line, the inspector and the embedding process uses a stream."""
    loud = [
        f"{module}.py:{node.lineno}"
        for module in MODULES
        if not module.startswith(SPEAKING)
        for node in ast.walk(TREES[module])
        if (isinstance(node, ast.Name) and node.id == "print")
        or (isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout", "sys.stderr"))
    ]
    assert loud == []


def test_public_names_are_what_their_modules_define() -> None:
    """A public name is the same value whichever modules were loaded before it was asked for."""
    for module in all_modules():
        importlib.import_module(module)
    hidden = [name for name in filestore.__all__ if inspect.ismodule(getattr(filestore, name))]
    assert hidden == []
