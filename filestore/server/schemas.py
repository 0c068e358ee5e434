"""The shapes of answers as JSON Schema, made from the one table that `--json` follows."""

from typing import Any, Final

from filestore.core.schema import SHAPES, fields

_PLAIN: Final[dict[str, dict[str, Any]]] = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "below": {"type": "string"},
    "any": {},
}


def name_of(shape: str) -> str:
    """What a shape is called where names have no blanks and dashes."""
    return "".join(word[:1].upper() + word[1:] for word in shape.replace("-", " ").split())


def components() -> dict[str, Any]:
    """Every shape by its name, for references from one to another."""
    return {name_of(shape): schema_of(shape) for shape in SHAPES}


def reference(shape: str) -> dict[str, str]:
    """What stands for a shape."""
    return {"$ref": f"#/components/schemas/{name_of(shape)}"}


def schema_of(shape: str) -> dict[str, Any]:
    """One shape; others in it are references."""
    found = fields(shape)
    return {
        "type": "object",
        "properties": {field.key: _schema(field.type) for field in found},
        "required": [field.key for field in found if not field.optional],
    }


def _schema(kind: str) -> dict[str, Any]:
    if kind.endswith("|null"):
        return {"anyOf": [_schema(kind.removesuffix("|null")), {"type": "null"}]}
    if kind.startswith("["):
        return {"type": "array", "items": _schema(kind[1:-1])}
    if kind.startswith("{"):
        return {"type": "object", "additionalProperties": _schema(kind[1:-1])}
    return reference(kind) if kind in SHAPES else _PLAIN[kind]
