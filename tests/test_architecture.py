"""The shape of the code, as CONTRIBUTING.md promises it; import-linter holds the layers."""

import ast
import functools
import importlib
import inspect
import itertools
import pkgutil
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import filestore
from filestore import CODES
from filestore.browse import KINDS
from filestore.config.settings import LAYOUTS
from filestore.core.errors import FilestoreError
from filestore.search import Query

ROOT: Final = Path(__file__).resolve().parent.parent
FILES: Final = sorted(path for name in ("filestore", "tui") for path in (ROOT / name).rglob("*.py"))
MODULES: Final = [path.relative_to(ROOT).with_suffix("").as_posix() for path in FILES]

LONGEST_FUNCTION: Final = 60
LONGEST_MODULE: Final = 600
LONGEST_STORE_METHOD: Final = 25
MEANINGLESS: Final = frozenset({"utils", "util", "helpers", "helper", "common", "misc"})
HEAVY: Final = (
    "bs4",
    "chardet",
    "faiss",
    "frontmatter",
    "markdown_it",
    "markdownify",
    "numpy",
    "liteparse",
    "lxml",
    "anydoc",
    "mammoth",
    "onnxruntime",
    "oxmsg",
    "psycopg",
    "pypdfium2",
    "rich",
    "selectolax",
    "semantic_text_splitter",
    "sentence_transformers",
    "tantivy",
    "textual",
    "tokenizers",
    "trafilatura",
    "tomlkit",
    "torch",
    "transformers",
    "tree_sitter",
    "tui",
    "urllib3",
    "yaml",
)
"""What costs time to load and most commands do not need."""

REACHED_INTO: Final = {("tui/workers/commands", "filestore.cli._parser")}
"""Private modules that one module outside their package uses."""

SPEAKING: Final = (
    "filestore/cli/",
    "filestore/fs/programs",
    "filestore/server/wire",  # what a command does with the answer of a server
    "tui/",
)
"""What runs as a program, to a person or to the process that started it."""

FRAMEWORKS: Final = {
    f"filestore.adapters.{name}" for name in ("haystack", "langchain", "llama_index")
}
"""Modules of classes that derive from those of a library, each imported by itself alone."""

LAYOUT: Final = ("filestore/chunks/layout", "filestore/config/settings")
"""Where a layout is known by its name: what it is, how it is written down, who chooses it."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A function or class, and where it stands."""

    module: str
    name: str
    """As Python qualifies it, with the classes and functions around it."""
    node: Function | ast.ClassDef

    @property
    def is_public(self) -> bool:
        """Whether nothing of its name starts with an underscore, and no function is around it."""
        parts = [self.module.rpartition("/")[2].removeprefix("__"), *self.name.split(".")]
        return not any(part.startswith(("_", "<")) for part in parts)

    def __str__(self) -> str:
        return f"{self.module}.py:{self.node.lineno} {self.name}"


@functools.cache
def parsed(module: str) -> ast.Module:
    """A module's syntax tree; parsed when asked for, as every worker of a run loads this file."""
    return ast.parse((ROOT / f"{module}.py").read_bytes())


@functools.cache
def definitions(module: str) -> list[Definition]:
    """Every function and class of a module, however deep."""
    found = []
    waiting: list[tuple[str, ast.AST]] = [("", parsed(module))]
    while waiting:
        prefix, parent = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.ClassDef | Function):
                found.append(Definition(module=module, name=f"{prefix}{node.name}", node=node))
                inner = "" if isinstance(node, ast.ClassDef) else "<locals>."
                waiting.append((f"{prefix}{node.name}.{inner}", node))
            else:
                waiting.append((prefix, node))
    return found


def length(node: Function) -> int:
    """Lines from the signature to the end, decorators left out."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def body_length(node: Function) -> int:
    """Lines of the body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def parameters(node: Function) -> set[str]:
    """The names of a function's parameters."""
    return {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}


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
    return [value for _, value in sorted(found.items())]


def all_modules() -> list[str]:
    """The names of filestore's modules, as they are imported."""
    walked = pkgutil.walk_packages(filestore.__path__, "filestore.")
    names = {module.name for module in walked if not module.name.endswith("__main__")}
    return sorted(names - FRAMEWORKS)


def test_modules_have_telling_names() -> None:
    """No module is a drawer for what fits nowhere."""
    assert [module for module in MODULES if MEANINGLESS & set(re.split("[/_]", module))] == []


def test_no_list_in_a_message_is_cut_in_silence() -> None:
    """Names after names go through `safe_text.listed`, which says how many are left out."""
    cut = [
        f"{module}.py:{node.lineno}"
        for module in MODULES
        if module.startswith("filestore/") and module != "filestore/core/safe_text"
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Call) and is_cut_list(node)
    ]
    assert cut == []


def is_cut_list(call: ast.Call) -> bool:
    """Whether a call joins the first of some names with a comma or a semicolon."""
    joins = isinstance(call.func, ast.Attribute) and call.func.attr == "join"
    sign = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not joins or not isinstance(sign, ast.Constant) or sign.value not in (", ", "; "):
        return False
    return any(
        isinstance(node, ast.Slice) and node.lower is None and node.upper is not None
        for node in ast.walk(call.args[0])
    )


def test_modules_are_short() -> None:
    """No module has more than 600 lines: it is split along a seam."""
    lines = {path: path.read_bytes().count(b"\n") for path in FILES}
    assert {path: number for path, number in lines.items() if number > LONGEST_MODULE} == {}


def test_functions_are_short() -> None:
    """No function has more than 60 lines."""
    long = [
        f"{found}: {length(found.node)} lines"
        for module in MODULES
        for found in definitions(module)
        if not isinstance(found.node, ast.ClassDef) and length(found.node) > LONGEST_FUNCTION
    ]
    assert long == []


def test_store_hands_over() -> None:
    """A method of the façade has at most 25 lines beside its docstring."""
    methods = [
        found
        for module in ("filestore/store/reading", "filestore/store/__init__")
        for found in definitions(module)
        if "Store." in found.name
    ]
    assert methods
    long = [
        f"{found}: {body_length(found.node)} lines"
        for found in methods
        if not isinstance(found.node, ast.ClassDef)
        and body_length(found.node) > LONGEST_STORE_METHOD
    ]
    assert long == []


def test_public_names_have_docstrings() -> None:
    """Each name that `filestore` exports says what it does, as does each method of it."""
    exported = {name: getattr(filestore, name) for name in dir(filestore) if name[0] != "_"}
    parts = {
        f"{name}.{part}": member
        for name, found in exported.items()
        if isinstance(found, type)
        for owner in found.__mro__
        if owner.__module__.startswith("filestore")
        for part, member in vars(owner).items()
        if part[0] != "_" and (inspect.isfunction(member) or isinstance(member, property))
    }
    callables = {name: found for name, found in exported.items() if callable(found)}
    assert len(callables) > 20
    assert len(parts) > 50
    assert [name for name, found in (callables | parts).items() if not found.__doc__] == []


def test_every_error_can_be_caught_as_one() -> None:
    """Whoever catches FilestoreError has caught every public error, with its remedy."""
    errors = error_classes()
    assert len(errors) > 100
    assert [one for one in errors if not issubclass(one, FilestoreError)] == []
    assert [one for one in errors if one.exit_code not in (2, 3, 4)] == []


def test_private_modules_stay_private() -> None:
    """A module whose name starts with an underscore is imported only inside its own package."""
    reached: set[tuple[str, str]] = set()
    known = set(all_modules())
    for module in MODULES:
        own = module.rpartition("/")[0].replace("/", ".")
        for name in imports(parsed(module)):
            package, _, last = name.rpartition(".")
            is_private = last.startswith("_") and name in known and name != "filestore._version"
            # A module may use the package it lies in.
            if is_private and package != own and not f"{own}.".startswith(f"{name}."):
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


def test_options_of_a_search_are_handed_on_as_one_value() -> None:
    """A new option is a field of `Query` and the place that obeys it, no parameter on the way."""
    options = set(Query.__struct_fields__) - {"text"}
    rooms = tuple(f"filestore/{room}/" for room in ("browse", "fulltext", "past", "search"))
    again = {
        str(one): named
        for module in MODULES
        if module.startswith(rooms)
        for one in definitions(module)
        if isinstance(one.node, Function) and len(named := options & parameters(one.node)) > 1
    }
    assert again == {}


def test_values_are_structs() -> None:
    """A dataclass costs a millisecond at each start; messages of Textual can be no structs."""
    others = [
        str(one)
        for module in MODULES
        for one in definitions(module)
        if isinstance(one.node, ast.ClassDef)
        and any("dataclass" in ast.unparse(mark) for mark in one.node.decorator_list)
        and "Message" not in map(ast.unparse, one.node.bases)
    ]
    assert others == []


def test_a_command_loads_no_other_one() -> None:
    """The table of commands knows neither their modules nor their options until one is asked."""
    program = (
        "import sys\n"
        "from filestore.cli import _parser\n"
        "loaded = lambda: {name for name in sys.modules if name.startswith('filestore.')}\n"
        "others = ('filestore.server.searching', 'filestore.cli.', 'jsonschema')\n"
        "print(sorted(n for n in loaded() if n.startswith(others) and '._' not in n))\n"
        "_parser.parse(['redo'])\n"
        "print(sorted(n for n in loaded() if n.startswith(others) and '._' not in n))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == ["[]", "['filestore.cli.syncing']"], done.stderr


def test_library_never_prints() -> None:
    """Nothing but the command line, the inspector and the embedding process uses a stream."""
    loud = [
        f"{module}.py:{node.lineno}"
        for module in MODULES
        if not module.startswith(SPEAKING)
        for node in ast.walk(parsed(module))
        if (isinstance(node, ast.Name) and node.id == "print")
        or (isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout", "sys.stderr"))
    ]
    assert loud == []


def test_temporary_files_of_a_named_folder_are_made_through_a_handle() -> None:
    """Or a file gets its name in one folder and loses it in another, where a link came between."""
    by_name = [
        f"{module}.py:{node.lineno}"
        for module in MODULES
        if module.startswith("filestore/")
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).startswith("tempfile.")
        and any(
            one.arg == "dir" and "path_of(" not in ast.unparse(one.value) for one in node.keywords
        )
    ]
    assert by_name == []


_MODEL_COMMAND: Final = re.compile(r"filestore embedder (?:use|set|fetch) (?:[\w:-]+ )*[\w:-]*\Z")
_IS_QUOTED: Final = re.compile(r"shlex\.|[A-Z_]+\Z|options\.name\.lower\(\)\Z")
"""For a shell, or a name of the program's own."""


def test_commands_about_models_quote_what_they_name() -> None:
    """A name or a folder may hold a space, or what a stranger wants to have run."""
    bare = []
    for module in MODULES:
        for text in (node for node in ast.walk(parsed(module)) if isinstance(node, ast.JoinedStr)):
            said = ""
            for part in text.values:
                if isinstance(part, ast.Constant):
                    said += str(part.value)
                    continue
                value = ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else ""
                if _MODEL_COMMAND.search(said) and not _IS_QUOTED.match(value):
                    bare.append(f"{module}.py:{text.lineno}: {value}")
                said += "x"
    assert bare == []


def test_public_names_are_what_their_modules_define() -> None:
    """A public name is the same value whichever modules were loaded before it was asked for."""
    for module in all_modules():
        importlib.import_module(module)
    hidden = [name for name in filestore.__all__ if inspect.ismodule(getattr(filestore, name))]
    assert hidden == []


def test_help_of_python_shows_every_public_name() -> None:
    """Every type of a field is there for whoever asks, in modules loaded as a program does."""
    for name in sorted({*filestore.__all__} - {"__version__"}):
        assert pydoc.render_doc(getattr(filestore, name))


STARTING: Final = {
    "filestore/fs/programs": "every program, and copies of this process, which start nothing",
}
"""Every module that starts processes, and which."""
STARTS: Final = re.compile(
    r"subprocess\.(run|Popen|call|check_\w+|get\w+)|shutil\.which|ctypes\.util\..*"
    r"|os\.(system|popen|exec\w+|spawn\w+|posix_spawn\w*|fork\w*|startfile)"
    r"|asyncio\.(create_)?subprocess\w*|.*\bProcessPoolExecutor"
    r"|.*\.(open_process|open_url|run_process|subprocess_\w+)"
)
"""What starts a process, or looks for a program in all of PATH."""
STARTERS: Final = frozenset({"_posixsubprocess", "multiprocessing", "pexpect", "pty", "webbrowser"})
NAMING_PYTHON: Final = {
    "filestore/fs/programs": "starts it",
    "filestore/git/hooks": "writes it into hooks",
    "filestore/server/agents/install": "writes it into the settings of agents",
}


def test_one_module_starts_programs() -> None:
    """One module decides what a child may import and where a program lies, and one about git."""
    starting = set()
    naming_git = set()
    for module in MODULES:
        for node in ast.walk(parsed(module)):
            word = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            if STARTS.fullmatch(word) or any(map(_is_starter, _imported_as(node))):
                starting.add(module)
            if isinstance(node, ast.List | ast.Tuple) and node.elts:
                first = node.elts[0]
                if isinstance(first, ast.Constant) and first.value == "git":
                    naming_git.add(module)
    assert starting == set(STARTING)
    assert naming_git == {"filestore/git/process"}


def _is_starter(imported: tuple[str, str]) -> bool:
    """Whether an import brings what starts processes, or its module under another name."""
    name, called = imported
    hidden = name.rpartition(".")[2] != called and name in ("asyncio", "os", "shutil", "subprocess")
    return name.partition(".")[0] in STARTERS or hidden or STARTS.fullmatch(name) is not None


def _imported_as(node: ast.AST) -> Iterator[tuple[str, str]]:
    """What a statement imports, by its full name, and what it calls that."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            yield f"{module}{alias.name}", alias.asname or alias.name.rpartition(".")[2]


def test_python_is_started_without_the_working_folder() -> None:
    """Whoever names Python's file says -P behind it, in a command as in a line of shell."""
    naming = set()
    for module in MODULES:
        for node in ast.walk(parsed(module)):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable":
                naming.add(module)
            if isinstance(node, ast.List | ast.Tuple):
                words = [ast.unparse(one) for one in node.elts]
                # Anew as the person started it.
                again = words == ["sys.executable", "_IN_UTF8", "*sys.orig_argv[1:]"]
                started = again or words[:2] == ["sys.executable", "'-P'"]
                assert started or "sys.executable" not in words, (module, node.lineno)
    assert naming == set(NAMING_PYTHON)


PLUMBING: Final = frozenset(
    {
        "cat-file",
        "diff-index",
        "diff-tree",
        "for-each-ref",
        "hash-object",
        "ls-files",
        "ls-tree",
        "merge-base",
        "merge-file",
        "rev-list",
        "rev-parse",
    }
)
"""What git is asked: commands whose answers no setting and no later version gives another form."""
WITH_OPTIONS: Final = frozenset({"diff", "log"})
"""Others, asked where options leave settings nothing to decide: `log` follows names in one pass,
`diff` reads a file of which only the stat changed."""


def test_git_is_asked_by_plumbing_only() -> None:
    """Of all commands that git has, only these stand where a command of git is named."""
    listed = subprocess.run(["git", "--list-cmds=main"], capture_output=True, text=True, check=True)
    known = set(listed.stdout.split())
    assert known >= PLUMBING
    named = set()
    for module in MODULES:
        reached = {name for node in ast.walk(parsed(module)) for name in imports(node)}
        if module == "filestore/git/process" or "filestore.git.process" in reached:
            named |= set(_first_words(parsed(module))) & known
    assert named == PLUMBING | WITH_OPTIONS


def _first_words(tree: ast.AST) -> Iterator[str]:
    """The first word, behind options and ``git`` itself, of every call, tuple and list."""
    for node in ast.walk(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call) and not ast.unparse(node.func).endswith("path.join"):
            parts = node.args
        elif isinstance(node, ast.Tuple | ast.List):
            parts = node.elts
        words = [one.value for one in parts if isinstance(one, ast.Constant)]
        commands = (one for one in words if isinstance(one, str) and one[:1] != "-")
        yield from itertools.islice((one for one in commands if one != "git"), 1)


ALLOWED_CODE_SETS: Final = {("filestore/core/codes", "CODES")}
"""Where codes may be listed: the table itself."""


def test_one_table_knows_the_codes() -> None:
    """No other set, list or mapping names two codes of findings: a new code is one row."""
    found = set()
    for module in MODULES:
        for statement in parsed(module).body:
            target = statement.target if isinstance(statement, ast.AnnAssign) else None
            where = (module, ast.unparse(target) if target else f"line {statement.lineno}")
            found |= {where for node in ast.walk(statement) if _names_codes(node)}
    assert found == ALLOWED_CODE_SETS


def _names_codes(node: ast.AST) -> bool:
    """Whether a display holds two codes or more."""
    values = []
    if isinstance(node, ast.Set | ast.List | ast.Tuple):
        values = [node.elts]
    elif isinstance(node, ast.Dict):
        values = [node.keys, node.values]
    return any(
        sum(isinstance(one, ast.Constant) and one.value in CODES for one in displayed) > 1
        for displayed in values
    )


def test_every_safe_code_has_its_step() -> None:
    """A safe code names the step that repairs it, and every named step is one."""
    assert {row.step for row in CODES.values() if row.step} <= KINDS.keys()
    for code, row in CODES.items():
        assert not row.safe or (row.step and not KINDS[row.step].truth), code


WITH_SQL: Final = (
    "filestore/catalog/",
    "filestore/embed/",
    "filestore/index/_pgvector/",
    "filestore/sidecar/cutting",  # the cache of what was extracted
)
"""Where statements of SQL stand; `fs/database` asks a stranger's file about its schema alone."""


def test_sql_stands_with_its_tables() -> None:
    """No module outside the catalog, the embeddings and one backend holds a statement of SQL."""
    statement = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH RECURSIVE) ")
    found = {
        module
        for module in MODULES
        if not module.startswith(WITH_SQL)
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and statement.match(node.value)
    }
    assert found == {"filestore/fs/database"}


def test_one_module_converts_paths() -> None:
    """Nothing but a `Tree` puts its folder before a path, takes it off, or asks for it."""
    found = {
        module for module in MODULES for node in ast.walk(parsed(module)) if _names_the_folder(node)
    }
    assert not found
    names = {one.name.rpartition(".")[2] for module in MODULES for one in definitions(module)}
    assert names.isdisjoint({"below", "_below"})


def _names_the_folder(node: ast.AST) -> bool:
    """Whether a text is `chunked/`, or is put together of it and something else."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return ast.unparse(node.values[0]).strip("'").startswith(("chunked/", "{CHUNKED}"))
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.path.join":
        return any(isinstance(one, ast.Name) and one.id == "CHUNKED" for one in node.args)
    return isinstance(node, ast.Constant) and node.value == "chunked/"


def test_what_a_person_names_is_found_by_the_system() -> None:
    """Where paths are typed none is made whole as text: `..` behind a link is another folder."""
    rooms = [
        "cli",
        "server",
        "browse",
        "ingest",
        "repair",
        "config",
        "opened",
        "reading",
        "store",
        "threads",
    ]
    found = [
        module
        for module in MODULES
        if module.split("/")[1] in rooms
        and "os.path.abspath" in (ROOT / f"{module}.py").read_text()
    ]
    assert found == []


def test_a_layout_is_asked_and_not_known_by_its_name() -> None:
    """Which layouts there are is decided once; everyone else asks the one that was chosen."""
    found = [
        f"{module}:{node.lineno}"
        for module in MODULES
        if module not in (*LAYOUT, "filestore/cli/setup")  # the options of `init` are names
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Compare | ast.MatchValue) and _names_a_layout(node)
    ]
    assert found == []


def _names_a_layout(node: ast.Compare | ast.MatchValue) -> bool:
    """Whether `layout`, or the name of one, is compared with the name of a layout."""
    if isinstance(node, ast.MatchValue):
        return isinstance(node.value, ast.Constant) and node.value.value in LAYOUTS
    sides = [node.left, *node.comparators]
    names = {one.value for one in sides if isinstance(one, ast.Constant)}
    return bool(names & LAYOUTS.keys()) and any("layout" in ast.unparse(one) for one in sides)
