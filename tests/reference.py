"""Make the reference of all JSON from the values that are printed: one sentence a key, told once.

    python tests/reference.py [--check]

The sentence of a key is the docstring of its field, or of the property that gives it. They become
the tables of JSON.md, below each heading or mark ``<!-- NAME -->``, and `server/schema.json`.
"""

import ast
import inspect
import json
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

import filestore
from filestore.core.errors import FilestoreError
from filestore.core.schema import JsonObject, Problem, keys

ROOT: Final = Path(__file__).parent.parent
DOCUMENT: Final = ROOT / "JSON.md"
SCHEMA: Final = ROOT / "filestore" / "server" / "schema.json"
_WORDS: Final = {"string": "text", "number": "number", "boolean": "flag"}
_SECTION: Final = re.compile(r"^### .*(?:\n(?!###? ).*)*", re.MULTILINE)
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
        mark = re.search(r"^<!-- (\w+) -->$", found[0], re.MULTILINE)
        name = mark[1] if mark else found[0].splitlines()[0].removeprefix("### ")
        if name not in shapes:
            raise ValueError(f"JSON.md has a section on {name}, which is no object")
        told.add(name)
        return _TABLE.sub("", found[0]).rstrip("\n") + "\n" + table(name, shapes[name])

    made = _SECTION.sub(section, text)
    if missing := shapes.keys() - told:
        raise ValueError(f"JSON.md needs a section on each of {', '.join(sorted(missing))}")
    return made


def made() -> dict[Path, str]:
    """Both files as they are to be."""
    shapes = {name: described(kind) for name, kind in kinds().items()}
    text = document(DOCUMENT.read_text(encoding="utf-8"), shapes)
    lines = (
        f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in shapes.items()
    )
    data = '{"$defs": {\n' + ",\n".join(lines) + "\n}}\n"
    return {DOCUMENT: text, SCHEMA: data}


if __name__ == "__main__":
    stale = [path for path, text in made().items() if path.read_text(encoding="utf-8") != text]
    if "--check" not in sys.argv:
        for path in stale:
            path.write_text(made()[path], encoding="utf-8")
    elif stale:
        names_of = ", ".join(path.name for path in stale)
        sys.exit(f"{names_of}: not as the values say; run 'python tests/reference.py'")
