"""Plans as data, to be looked at and applied later: `Plan.to_dict` writes them. Pure.

One rule: a plan that is read is a selection from what is planned anew, never an order: it comes
from a file that anybody may have written.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import orjson
from msgspec import Struct

from filestore.core.codes import CODES
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.packages import UPGRADE
from filestore.core.paths import CHUNKS, StorePath, Tree, has_plain_names
from filestore.core.safe_text import brief
from filestore.repair.plan import FORMAT, KINDS, Policy, State, Step

MAX_BYTES: Final = 256 * 1024 * 1024
_STAT_NUMBERS: Final = 5
_LEVELS: Final[dict[str, Literal["fast", "full", "deep"]]] = {
    "fast": "fast",
    "full": "full",
    "deep": "deep",
}


class PlanInvalidError(FilestoreError, ValueError):
    """A file holds no plan that can be applied."""


class PlanOutsideError(RefusedError):
    """A plan names what is no part of a store."""


class OtherPlanError(RefusedError):
    """A plan was made for another store, or another catalog."""


class Saved(Struct, frozen=True, kw_only=True):
    """A plan as it was read."""

    identity: str
    generation: int
    level: Literal["fast", "full", "deep"]
    policy: Policy
    steps: tuple[Step, ...]
    """With what is known of them; paths as they are shown."""


def parse(data: bytes, tree: Tree = CHUNKS) -> Saved:
    """Read a plan, alone or in what ``repair --plan --json`` printed.

    Args:
        data: Its bytes.
        tree: Of the store that it is for.

    Raises:
        PlanInvalidError: It is none, or a newer one.
        PlanOutsideError: It names files that are no part of a store.
    """
    if len(data) > MAX_BYTES:
        raise _invalid(f"it has {len(data):,} bytes, the limit is {MAX_BYTES:,}")
    try:
        table = _table(orjson.loads(data), "the file")
        table = _table(table.get("plan", table), "'plan'")
        found = table["format"]
        if isinstance(found, int) and found > FORMAT:
            raise PlanInvalidError(
                f"the plan has format {found}, this filestore knows {FORMAT}",
                remedy=f"{UPGRADE}, or plan again: filestore repair --plan --json",
            )
        if found != FORMAT:
            raise _invalid(f"its format is {brief(found)}")
        return _saved(table, tree)
    except FilestoreError:
        raise
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _invalid(f"it is no JSON, {place}") from error
    except KeyError as error:
        raise _invalid(f"it lacks {brief(error.args[0])}") from error
    except (ValueError, TypeError) as error:
        raise _invalid(str(error)) from error


def _saved(table: Mapping[str, Any], tree: Tree) -> Saved:
    level, only = _text(table["level"]), frozenset(_texts(table["only"]))
    if level not in _LEVELS:
        raise _invalid(f"its level is {brief(level)}")
    if not only <= CODES.keys():
        raise _invalid(f"it names codes that are none: {', '.join(sorted(only - CODES.keys()))}")
    policy = Policy(
        truth=_flag(table["truth"]),
        only=only,
        paths=_paths(table["paths"]),
        ours=_paths(table["ours"]),
        theirs=_paths(table["theirs"]),
        remove=_paths(table.get("remove", [])),
    )
    return Saved(
        identity=_text(table["store"]),
        generation=_number(table["generation"]),
        level=_LEVELS[level],
        policy=policy,
        steps=tuple(_step(item, tree) for item in _list(table["steps"])),
    )


def _step(item: Mapping[str, Any], tree: Tree) -> Step:
    item = _table(item, "a step")
    kind, path, other = _text(item["kind"]), _path(item["path"]), _path(item["other"])
    if kind not in KINDS:
        raise _invalid(f"{brief(kind)} is no kind of step")
    if place := KINDS[kind].only_path(tree):
        if path != place:
            raise PlanOutsideError(
                f"the plan has {brief(path)} for {kind}, expected {place}", remedy=_AGAIN
            )
    elif not KINDS[kind].of_source:
        for name in (path, other) if other else (path,):
            _check_inside(name, tree)
    seen = {_path(key): _state(value) for key, value in _table(item["seen"], "'seen'").items()}
    return Step(
        kind=kind,
        path=path,
        other=other,
        codes=_texts(item["codes"]),
        detail=_text(item["detail"]),
        seen=seen,
        hash=_text(item["hash"]),
    )


def _check_inside(path: str, tree: Tree) -> None:
    if not tree.holds(path) or not has_plain_names(path):
        where = f"no file below {tree.folder}/" if tree.folder else "no document of the store"
        raise PlanOutsideError(f"the plan names {brief(path)}, which is {where}", remedy=_AGAIN)


def _state(value: Mapping[str, Any]) -> State:
    value = _table(value, "a state")
    stat = value["stat"]
    if stat is not None:
        numbers = [_number(number) for number in _list(stat)]
        if len(numbers) != _STAT_NUMBERS:
            raise ValueError(f"expected {_STAT_NUMBERS} numbers, found {len(numbers)}")
        size, mtime_ns, ctime_ns, inode, mode = numbers
        return State(stat=(size, mtime_ns, ctime_ns, inode, mode), hash=_text(value["hash"]))
    return State(hash=_text(value["hash"]))


_AGAIN: Final = "plan again: filestore repair --plan --json"


def _invalid(reason: str) -> PlanInvalidError:
    return PlanInvalidError(f"this is no plan: {reason}", remedy=_AGAIN)


def _table(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected {name} to be a table, found {brief(value)}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {brief(value)}")
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(item) for item in _list(value))


def _path(value: object) -> StorePath:
    return StorePath(_text(value))


def _paths(value: object) -> tuple[StorePath, ...]:
    return tuple(_path(item) for item in _list(value))


def _list(value: object) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {brief(value)}")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected a number, found {brief(value)}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {brief(value)}")
    return value
