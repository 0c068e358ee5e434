"""Make the reference of all JSON and of the public names from what the code says, told once.

    python tests/reference.py [--check]

The sentence of a key is the docstring of its field, or of the property that gives it. They become
the tables of JSON.md, below each heading or mark ``<!-- NAME -->``, and `server/schema.json`. The
docstrings of the public names become API.md, the actions of the inspector tui/KEYS.md, the help of
each command `cli/help.json`, commands.md, what completes in shells and the manual page, and the
codes findings.md.
"""

import ast
import inspect
import json
import os
import pkgutil
import re
import sys
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, is_typeddict

from msgspec import UnsetType

if __name__ == "__main__":  # run as a program, it finds the checkout that it lies in
    sys.path[0] = str(Path(__file__).parents[1])

import filestore
from filestore.cli import _help
from filestore.core.codes import CODES
from filestore.core.errors import FilestoreError
from filestore.core.findings import FromIndex
from filestore.core.schema import JsonObject, Problem, keys
from filestore.server.operations import COMMANDS
from tests import helped, shell_files
from tui import actions

ROOT: Final = Path(__file__).parent.parent
REFERENCE: Final = ROOT / "docs" / "reference"
DOCUMENT: Final = REFERENCE / "JSON.md"
API: Final = REFERENCE / "API.md"
SCHEMA: Final = ROOT / "filestore" / "server" / "schema.json"
KEYS: Final = ROOT / "tui" / "KEYS.md"
HELP: Final = Path(_help.FILE)
LISTED: Final = REFERENCE / "commands.md"
FINDINGS: Final = REFERENCE / "findings.md"
_WORDS: Final = {"string": "text", "number": "number", "boolean": "flag"}
_SECTION: Final = re.compile(r"^### .*(?:\n(?!###? ).*)*", re.MULTILINE)
_PUBLIC: Final = """# The public names of `filestore`

Made from the docstrings by `python tests/reference.py`. What `to_dict()` gives of a result is in
[JSON.md](JSON.md), the files of a store are in [FORMAT.md](FORMAT.md), other frameworks in
[adapters.md](../adapters.md). Every error derives from `FilestoreError`, results are values that
never change, and paths of results are relative to the root of the store.
"""
_PART: Final = re.compile(r"^(Args|Returns|Raises):\n((?:    .*\n?|\n)*)", re.MULTILINE)
_SEE: Final = re.compile(
    r"[;.]\s+[Ss]ee `([\w.]+)`"
    r"(?: for what is raised|,\s+which says what is raised|, with what is raised)?\."
)
_ENTRY: Final = re.compile(r"^    ([\w, *]+): ?((?:.*\n?)(?:     +.*\n?)*)", re.MULTILINE)
_MARK: Final = re.compile(r"^<!-- (\w+) -->$", re.MULTILINE)
_TABLE: Final = re.compile(r"\n\| Key \|.*(?:\n\|.*)*\n?")


@cache
def names() -> Mapping[str, Any]:
    """What annotations may name that is only imported to be checked."""
    found: dict[str, Any] = {}
    for module in pkgutil.walk_packages(filestore.__path__, "filestore."):
        if not module.name.endswith("__main__") and ".adapters" not in module.name:
            found |= {
                name: value
                for name, value in vars(import_module(module.name)).items()
                if isinstance(value, type) or is_typeddict(value)
            }
    return found


def kinds() -> dict[str, Any]:
    """Every object by its name.

    Raises:
        ValueError: Two have one name.
    """
    names()
    waiting: list[Any] = [JsonObject]
    found: dict[str, Any] = {}
    while waiting:
        kind = waiting.pop()
        if found.setdefault(kind.__name__, kind) is not kind:
            raise ValueError(f"two objects are called {kind.__name__}: rename one")
        waiting += [] if is_typeddict(kind) else kind.__subclasses__()
        waiting += [one for _, hint, _, _ in fields(kind) for one in _named(hint)]
    # A base whose key each of its answers has.
    del found[FromIndex.__name__]
    printed = {
        name: kind for name, kind in found.items() if kind.__module__.startswith("filestore")
    }
    return {name: printed[name] for name in sorted(printed) if list(fields(printed[name]))}


def _named(hint: Any) -> Iterator[Any]:
    """The objects that a type is made of."""
    if is_typeddict(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from _named(part)


@cache
def hint_of(kind: Any, name: str) -> Any:
    """The type of an attribute."""
    owner = next(one for one in kind.__mro__ if name in (vars(one) | _annotations(one)))
    value = vars(owner).get(name)
    said = value.fget.__annotations__["return"] if isinstance(value, property) else None
    holder = types.SimpleNamespace(__annotations__={name: said or _annotations(owner)[name]})
    space = dict(names()) | vars(sys.modules[owner.__module__])
    return typing.get_type_hints(holder, space)[name]


def _annotations(kind: Any) -> dict[str, Any]:
    return dict(inspect.get_annotations(kind))


@cache
def sentences(kind: Any) -> dict[str, str]:
    """The docstring of each attribute, those of classes above it included."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__ if not is_typeddict(kind) else [kind]):
        if not one.__module__.startswith("filestore"):
            continue
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(node, ast.ClassDef)
        for part, after in zip(node.body, [*node.body[1:], None], strict=True):
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                found[part.target.id] = str(after.value.value) if is_text else ""  # type: ignore[union-attr]
            elif isinstance(part, ast.FunctionDef):
                found[part.name] = ast.get_docstring(part) or ""
    return found


def fields(kind: Any) -> Iterator[tuple[str, Any, bool, str]]:
    """Each key with its type, whether it may be left out, and what it means."""
    if is_typeddict(kind):
        for key in _annotations(kind):
            sentence = _shown(sentences(kind).get(key, ""))
            yield key, hint_of(kind, key), key in kind.__optional_keys__, sentence
        return
    for key, path in keys(kind).items():
        at, hint, is_null = kind, None, False
        for name in path:
            is_null |= types.NoneType in typing.get_args(hint)
            owner = at
            hint = hint_of(owner, name)
            parts = typing.get_args(hint) if _is_union(hint) else (hint,)
            at = next((one for one in parts if one is not types.NoneType), None)
        sentence = _shown(sentences(owner).get(path[-1], ""))
        is_sparse = key in kind.SPARSE.split()
        yield key, (hint | None if is_null else hint), is_sparse or _may_be_unset(hint), sentence


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _may_be_unset(hint: Any) -> bool:
    return _is_union(hint) and UnsetType in typing.get_args(hint)


def _shown(docstring: str) -> str:
    """What a docstring says of JSON, where nothing is null."""
    said = " ".join(docstring.split()).removesuffix(".").replace("``", "`")
    return re.sub(r"\bNone\b", "null", said)


def schema(hint: Any, *, is_sparse: bool = False) -> dict[str, Any]:
    """A type as JSON Schema."""
    if _is_union(hint):
        parts = [one for one in typing.get_args(hint) if one is not UnsetType]
        if is_sparse:
            parts = [one for one in parts if one is not types.NoneType]
        found = list({json.dumps(schema(one)): schema(one) for one in parts}.values())
        return found[0] if len(found) == 1 else {"anyOf": found}
    hint = getattr(hint, "__supertype__", hint)
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is typing.NotRequired:
        return schema(inner[0], is_sparse=is_sparse)
    if hint is Any or hint is object:
        return {}
    if origin is typing.Literal or hint is str:
        return {"type": "string"}
    if hint in (int, float, bool, types.NoneType):
        return {"type": {int: "number", float: "number", bool: "boolean"}.get(hint, "null")}
    if is_typeddict(hint) or (isinstance(hint, type) and issubclass(hint, JsonObject)):
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if isinstance(hint, type) and issubclass(hint, FilestoreError):
        return {"$ref": f"#/$defs/{Problem.__name__}"}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema(inner[1])}
    if isinstance(origin, type) and issubclass(origin, typing.Iterable):
        return {"type": "array", "items": schema(inner[0])}
    raise ValueError(f"no JSON is made of {hint}")


def described(kind: Any) -> dict[str, Any]:
    """An object as JSON Schema, with a sentence for each key.

    Raises:
        ValueError: A key has none.
    """
    properties, required = {}, []
    for key, hint, is_sparse, sentence in fields(kind):
        if not sentence:
            raise ValueError(f"{kind.__name__}: say below the field what {key!r} means")
        # What is left out where there is nothing to say is never null.
        is_said = is_sparse and not is_typeddict(kind)
        properties[key] = schema(hint, is_sparse=is_said) | {"description": sentence}
        required += [] if is_sparse else [key]
    return {"type": "object", "properties": properties, "required": required}


def word(one: Mapping[str, Any]) -> str:
    """A type in the words of JSON.md."""
    if "anyOf" in one:
        return "|".join(word(part) for part in one["anyOf"])
    if "$ref" in one:
        return str(one["$ref"]).rpartition("/")[2]
    if one.get("type") == "array":
        return f"[{word(one['items'])}]"
    if one.get("type") == "object":
        return f"{{{word(one['additionalProperties'])}}}"
    return _WORDS.get(one.get("type", ""), one.get("type", "any"))


def table(name: str, shape: Mapping[str, Any]) -> str:
    """The table of one object."""
    rows = ["", "| Key | Type | Meaning |", "|---|---|---|"]
    for key, one in shape["properties"].items():
        mark = "" if key in shape["required"] else "?"
        cells = (f"`{key}{mark}`", f"`{word(one)}`", one["description"])
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def document(text: str, shapes: Mapping[str, Any]) -> str:
    """JSON.md with its tables as they are to be.

    Raises:
        ValueError: An object has no section, or a section no object.
    """
    told = set()

    def section(found: re.Match[str]) -> str:
        mark = _MARK.search(found[0])
        name = mark[1] if mark else found[0].splitlines()[0].removeprefix("### ")
        if name not in shapes:
            raise ValueError(f"JSON.md has a section on {name}, which is no object")
        told.add(name)
        return _TABLE.sub("", found[0]).rstrip("\n") + "\n" + table(name, shapes[name])

    made = _SECTION.sub(section, text)
    if missing := shapes.keys() - told:
        raise ValueError(f"JSON.md needs a section on each of {', '.join(sorted(missing))}")
    return made


def public_page() -> str:
    """API.md as it is to be.

    Raises:
        ValueError: A public name, or something of it, has no docstring.
    """
    listed = ast.parse(Path(filestore.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    found = [
        (one.names[0].asname or one.names[0].name, str(one.module))
        for one in listed.body
        if isinstance(one, ast.ImportFrom)
    ]
    names = sorted(one for one in found if not one[0].startswith("_"))
    links = ", ".join(f"[{name}](#{name.lower()})" for name, _ in names)
    return "\n".join([_PUBLIC, f"{links}.\n", *(_public_section(*one) for one in names)])


def _public_section(name: str, module: str) -> str:
    value = getattr(filestore, name)
    if not isinstance(value, type):
        tree = ast.parse(inspect.getsource(import_module(module)))
        if callable(value):
            return f"## `{name}`\n\nThe same as `Store.{name}`.\n"
        return f"## `{name}`\n\n{_said(_below(tree), name, name)}\n"
    parts = [f"## `{name}`\n\n{_as_markdown(_docstring(value, name))}\n"]
    rows, methods = [], []
    for owner in reversed(value.__mro__):
        if not owner.__module__.startswith("filestore.") or owner.__name__ == "JsonObject":
            continue
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        assert isinstance(node, ast.ClassDef)
        said = _below(node)
        for one in node.body:
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                rows += _field(one, said, f"{name}.{one.target.id}")
            elif isinstance(one, ast.FunctionDef) and (
                not one.name.startswith("_")
                or (one.name == "__init__" and not issubclass(value, Exception))
            ):
                if _is_property(one):
                    words = " ".join(_docstring(one, f"{name}.{one.name}").split())
                    rows.append(_row(one.name, one.returns, words))
                else:
                    methods.append(_method(one, f"{name}.{one.name}"))
    if rows:
        parts.append("\n".join(["| Attribute | Type | Meaning |", "|---|---|---|", *rows, ""]))
    return "\n".join([*parts, *methods])


def _is_property(one: ast.FunctionDef) -> bool:
    named = [ast.unparse(decorator) for decorator in one.decorator_list]
    return bool({"property", "cached_property"}.intersection(named))


def _below(node: ast.Module | ast.ClassDef) -> dict[str, str]:
    """The text below each assignment."""
    found = {}
    for one, after in zip(node.body, node.body[1:], strict=False):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and is_text:
            found[one.target.id] = " ".join(str(after.value.value).split())  # type: ignore[attr-defined]
    return found


def _said(sentences: dict[str, str], name: str, where: str) -> str:
    if not sentences.get(name):
        raise ValueError(f"API.md: {where} needs a sentence below it")
    return sentences[name]


def _docstring(one: Any, where: str) -> str:
    said = (
        ast.get_docstring(one) if isinstance(one, ast.AST) else inspect.cleandoc(one.__doc__ or "")
    )  # type: ignore[arg-type]
    if not said:
        raise ValueError(f"API.md: {where} needs a docstring")
    return said


def _field(one: ast.AnnAssign, said: dict[str, str], where: str) -> Iterator[str]:
    assert isinstance(one.target, ast.Name)
    if not one.target.id.startswith("_") and not one.target.id.isupper():
        yield _row(one.target.id, one.annotation, _said(said, one.target.id, where))


def _row(name: str, annotation: ast.expr | None, words: str) -> str:
    cells = (f"`{name}`", f"`{_type(annotation)}`", words.replace("``", "`"))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(annotation: ast.expr | None) -> str:
    return re.sub(r"['\"]", "", ast.unparse(annotation)) if annotation else "None"


def _method(one: ast.FunctionDef, where: str) -> str:
    given = re.sub(r"(: )['\"]([^'\"]+)['\"]", r"\1\2", ast.unparse(one.args))
    words = re.sub(r"^(self|cls)(, |$)", "", given)
    name = where.removesuffix(".__init__")
    result = "" if one.name == "__init__" else f" → `{_type(one.returns)}`"
    said = _with_what_it_names(one, _docstring(one, where))
    return f"### `{name}({words})`{result}\n\n{_as_markdown(said)}\n"


def _with_what_it_names(one: ast.FunctionDef, said: str) -> str:
    """A docstring that says "see `module.function`", with what that one says of it.

    Raises:
        ValueError: The function does not import what is named.
    """
    see = _SEE.search(said)
    if see is None:
        return said
    first, _, rest = see[1].partition(".")
    imported = {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in ast.walk(one)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    if first not in imported:
        raise ValueError(f"API.md: {one.name} says 'see {see[1]}' and imports no {first}")
    module, name = imported[first]
    found = getattr(import_module(module), name, None) or import_module(f"{module}.{name}")
    for part in rest.split(".") if rest else ():
        found = getattr(found, part)
    told = inspect.cleandoc(found.__doc__ or "")
    parameters = {each.arg for each in (*one.args.args, *one.args.kwonlyargs)}
    known = {name: words for name, words in _entries(told) if name in parameters}
    known |= dict(_entries(said))
    more = _PART.sub("", told + "\n").strip().partition("\n\n")[2]
    texts = [_PART.sub("", _SEE.sub(".", said, count=1) + "\n").strip(), more.strip()]
    if known:
        texts.append("Args:\n" + "".join(f"    {name}: {words}\n" for name, words in known.items()))
    raised = [
        body
        for text in (said, told)
        for kind, body in _PART.findall(text + "\n")
        if kind == "Raises"
    ]
    if raised:
        texts.append("Raises:\n" + "\n".join(map(str.rstrip, raised)))
    return "\n\n".join(filter(None, texts))


def _entries(docstring: str) -> Iterator[tuple[str, str]]:
    """What a docstring says of each argument."""
    for kind, body in _PART.findall(docstring + "\n"):
        if kind == "Args":
            yield from ((name, " ".join(words.split())) for name, words in _ENTRY.findall(body))


def _as_markdown(docstring: str) -> str:
    """A docstring as Markdown: what it takes, gives and raises as lists."""
    first = _PART.sub("", docstring + "\n").strip().replace("``", "`")
    parts = [first]
    for kind, body in _PART.findall(docstring + "\n"):
        entries = _ENTRY.findall(body)
        if kind == "Returns" or not entries:
            parts.append(f"{kind}: {' '.join(body.split())}")
            continue
        marked = (f"- `{name}`: {' '.join(words.split())}" for name, words in entries)
        parts.append("\n".join(marked) if kind == "Args" else "Raises\n" + "\n".join(marked))
    return "\n\n".join(parts).replace("``", "`")


_PLACES: Final[tuple[tuple[actions.Place, str], ...]] = (
    ("everywhere", "On every page"),
    ("lists", "In every list"),
    ("browse", "Browse"),
    ("verify", "Verify"),
    ("repair", "Repair"),
)
_SOMEWHERE: Final = actions.ActionContext(
    path="PATH",
    codes=("CODE",),
    paths=("PATH",),
    can_undo="ID",
    can_redo="ID",
    level="LEVEL",
    query="WORDS",
    truth=True,
)


def page_of_keys() -> str:
    """KEYS.md as it is to be."""
    parts = [
        "# Keys of the inspector",
        "",
        "Written from the table of actions, `tui/actions.py`, by `python tests/reference.py`.",
        "Every action names the command line that does the same, or why there is none;",
        "one with – alone changes the screen only.",
    ]
    for place, title in _PLACES:
        parts += ["", f"## {title}", "", "| Keys | Does | On the command line |", "|---|---|---|"]
        for action in actions.of_place(place):
            keys = " ".join(_as_code(actions.key_label(key)) for key in action.keys)
            line = actions.command_line(action, _SOMEWHERE)
            reason = "" if action.same == actions.ON_SCREEN else f" {action.same}"
            same = _as_code(line) if line else f"–{reason}"
            parts.append(f"| {keys} | {action.help} | {same} |")
    return "\n".join([*parts, ""])


def _as_code(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in escaped else f"`{escaped}`"


def printed_keys(text: str, shapes: Mapping[str, Any]) -> dict[str, list[str]]:
    """The keys that each command prints, by the headings of JSON.md."""
    found = {}
    for section in _SECTION.findall(text):
        head, _, _ = section.partition("\n")
        mark = _MARK.search(section)
        for name in head.removeprefix("### ").split(", ") if mark else ():
            found[name] = [*shapes[mark[1]]["properties"]]
    return found


def page_of_commands(known: Mapping[str, Any]) -> str:
    """commands.md as it is to be: all help of each command and action, at 80 columns."""
    parts = [
        "# Commands",
        "",
        "What `filestore COMMAND --help` prints, written by `python tests/reference.py`.",
        "",
        "| Command | Does |",
        "|---|---|",
        *(f"| [`{name}`](#{name}) | {one.about} |" for name, one in COMMANDS.items()),
    ]
    for words in helped.words():
        name = " ".join(words)
        shown = _help.whole(name, known).rstrip()
        parts += ["", f"{'#' * (1 + len(words))} {name}", "", "```text", shown, "```"]
    return "\n".join([*parts, ""])


_SEVERITIES: Final = {"E": "error", "W": "warning", "I": "note"}


def page_of_findings() -> str:
    """findings.md as it is to be: every code with what it is and what to do."""
    rows = []
    for code, one in CODES.items():
        repair = one.repair
        if one.repair_of_documents:
            repair = f"{repair}; in place: {one.repair_of_documents}"
        by = "`sync`" if one.safe else "`repair`" if one.step else "you"
        cells = (f"`{code}`", _SEVERITIES[one.severity], one.about, one.level, by, repair)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(
        [
            "# Finding codes",
            "",
            "What `status`, `verify` and `repair` report, in the order of print; written by",
            "`python tests/reference.py`. *Level*: that of `verify --level` that finds all of it.",
            "",
            "| Code | Severity | About | Level | Repaired by | What to do |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def made() -> dict[Path, str]:
    """The files as they are to be."""
    shapes = {name: described(kind) for name, kind in kinds().items()}
    text = document(DOCUMENT.read_text(encoding="utf-8"), shapes)
    lines = (
        f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in shapes.items()
    )
    data = '{"$defs": {\n' + ",\n".join(lines) + "\n}}\n"
    known = helped.records(printed_keys(text, shapes))
    return {
        DOCUMENT: text,
        SCHEMA: data,
        HELP: helped.written(known),
        API: public_page(),
        KEYS: page_of_keys(),
        LISTED: page_of_commands(known),
        FINDINGS: page_of_findings(),
        **shell_files.written(known),
    }


if __name__ == "__main__":
    # The pages show help of the usual width.
    os.environ.pop("COLUMNS", None)
    stale = {
        path: text
        for path, text in made().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    if "--check" not in sys.argv:
        for path, text in stale.items():
            path.write_text(text, encoding="utf-8")
    elif stale:
        names_of = ", ".join(path.name for path in stale)
        sys.exit(f"{names_of}: not as the values say; run 'python tests/reference.py'")
