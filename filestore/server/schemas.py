"""The shapes of answers as JSON Schema: a file that `tests/reference.py` makes of their values."""

from functools import cache
from importlib.resources import files
from typing import Any

import orjson


@cache
def _data() -> bytes:
    return files("filestore.server").joinpath("schema.json").read_bytes()


@cache
def definitions() -> dict[str, Any]:
    """Every shape by its name; others in it are references to `$defs`."""
    found: dict[str, Any] = orjson.loads(_data())["$defs"]
    return found


def components() -> dict[str, Any]:
    """The same for OpenAPI, with references to its components."""
    data = _data().replace(b"#/$defs/", b"#/components/schemas/")
    found: dict[str, Any] = orjson.loads(data)["$defs"]
    return found


def reference(name: str) -> dict[str, str]:
    """What stands for a shape in OpenAPI."""
    return {"$ref": f"#/components/schemas/{name}"}
