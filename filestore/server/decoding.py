"""What clients give as values of options, and the JSON Schema that says what they may give.

One rule: what does not fit is refused in one sentence, with its place, before any of it is used.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeVar

import msgspec
import orjson

from filestore.core.decoding import UnfitError, converted, json_of
from filestore.core.errors import UsageError
from filestore.core.spelling import did_you_mean
from filestore.server.operations import Field, fields_of, sentences

T = TypeVar("T", bound=msgspec.Struct)


def fields_for(kind: type[msgspec.Struct]) -> Mapping[str, Field]:
    """The options that clients may give, by name."""
    return {one.key: one for one in fields_of(kind) if not one.typed.local}


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of some options; nothing else may be given."""
    said, fields = sentences(kind), fields_for(kind)
    properties = {}
    for key, one in fields.items():
        found = _whole(msgspec.json.schema(one.hint))
        # Null is what may be left out; no client need know.
        kinds = [kind for kind in found.get("anyOf", ()) if kind != {"type": "null"}]
        found = kinds[0] if len(kinds) == 1 else found
        properties[key] = found | {"description": said[one.name]}
        if one.default is not None:
            properties[key]["default"] = one.default
    return {
        "type": "object",
        "properties": properties,
        "required": [one.key for one in fields.values() if one.required],
        "additionalProperties": False,
    }


def _whole(schema: Any, known: Mapping[str, Any] | None = None) -> Any:
    """A schema without references: it stands within another one."""
    if isinstance(schema, list):
        return [_whole(one, known) for one in schema]
    if not isinstance(schema, dict):
        return schema
    known = schema.pop("$defs", known or {})
    if "$ref" in schema:
        return _whole(dict(known[schema["$ref"].rpartition("/")[2]]), known)
    return {key: _whole(one, known) for key, one in schema.items()}


def decoded(kind: type[T], given: Any, name: str) -> T:
    """What a client gives, as it is meant, with what it left out.

    Args:
        kind: The options.
        given: As it came in JSON, or in the query of an address.
        name: Of what is asked, for messages.

    Raises:
        UsageError: It does not fit.
    """
    remedy = f"see the parameters of {name}"
    try:
        orjson.dumps(given)
    except TypeError as error:
        raise UsageError(f"{name}: not valid UTF-8, or no JSON", remedy=remedy) from error
    try:
        if isinstance(given, dict):
            fields = fields_for(kind)
            for key in given:
                if key not in fields:
                    meant = did_you_mean(key[:80], fields)
                    raise UsageError(f"unknown parameter {key[:80]!r}{meant}", remedy=remedy)
            read = {key: _meant(fields[key], value) for key, value in given.items()}
            given = {key: value for key, value in read.items() if value is not _LEFT_OUT}
        return converted(given, kind)
    except UnfitError as error:
        raise UsageError(f"{name}: {error.message}", remedy=remedy) from error


def json_object(data: bytes) -> dict[str, Any]:
    """The object that a client sends.

    Raises:
        UsageError: It is none.
    """
    try:
        return converted(json_of(data), dict[str, Any], "the body")
    except orjson.JSONDecodeError as error:
        raise UsageError(f"the body is no JSON: {error}", remedy="send a JSON object") from error
    except UnfitError as error:
        raise UsageError(str(error), remedy="send a JSON object") from error


_LEFT_OUT: Final = object()


def _meant(field: Field, value: Any) -> Any:
    """A value as its type has it: programs write null, and numbers and lists as texts."""
    is_text = field.kind is str and not field.several
    if not field.required and (value is None or (value in ("", "null") and not is_text)):
        return _LEFT_OUT
    if field.several and not isinstance(value, list):
        found = _parsed(value)
        return found if isinstance(found, list) and _fits(found, field) else [value]
    if not field.several and field.kind in (int, bool, dict):
        found = _parsed(value)
        others = list if field.kind is dict else float
        value = found if type(found) in (field.kind, others) else value
        # JSON knows one kind of number: 10.0 is a whole one.
        if field.kind is int and isinstance(value, float) and value.is_integer():
            return int(value)
    return value


def _parsed(value: Any) -> Any:
    """What a text holds as JSON; else the value itself."""
    if not isinstance(value, str):
        return value
    try:
        return json_of(value if value not in ("True", "False") else value.lower())
    except orjson.JSONDecodeError:
        return value


def _fits(value: Any, field: Field) -> bool:
    try:
        converted(value, field.hint)
    except UnfitError:
        return False
    return True


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
