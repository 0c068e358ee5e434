"""Plans as data, to be looked at and applied later. Pure.

One rule: a plan that is read is a selection from what is planned anew, never an order: it comes
from a file that anybody may have written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from filestore.errors import FilestoreError, RefusedError
from filestore.findings import CODES
from filestore.plans import KINDS, PARTS, Left, Plan, Policy, State, Step

FORMAT: Final = 1
MAX_BYTES: Final = 256 * 1024 * 1024
_STAT_NUMBERS: Final = 5
_LEVELS: Final[dict[str, Literal["fast", "full", "deep"]]] = {
    "fast": "fast",
    "full": "full",
    "deep": "deep",
}
_OF_SOURCES: Final = frozenset({"reingest", "remove"})
"""Kinds whose path is a source, which may lie beside the store."""


class PlanInvalidError(FilestoreError, ValueError):
    """A file holds no plan that can be applied."""


class PlanOutsideError(RefusedError):
    """A plan names what is no part of a store."""


class OtherPlanError(RefusedError):
    """A plan was made for another store, or another catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A plan as it was read."""

    identity: str
    generation: int
    level: Literal["fast", "full", "deep"]
    policy: Policy
    steps: tuple[Step, ...]
    """With what is known of them; paths as they are shown."""


def serialize(plan: Plan) -> dict[str, Any]:
    """A plan as JSON values."""
    policy = plan.policy
    return {
        "format": FORMAT,
        "store": plan.identity,
        "generation": plan.generation,
        "level": plan.level,
        "truth": policy.truth,
        "only": sorted(policy.only),
        "paths": list(policy.paths),
        "ours": list(policy.ours),
        "theirs": list(policy.theirs),
        "remove": list(policy.remove),
        "steps": [step_value(step) | {"applies": plan.allows(step)} for step in plan.steps],
        "left": [_left_value(left) for left in plan.left],
        "read_bytes": sum(step.read_bytes for step in plan.steps),
        "write_bytes": sum(step.write_bytes for step in plan.steps),
        "texts": plan.texts,
        "known": plan.known,
        "model": plan.model,
    }


def step_value(step: Step) -> dict[str, Any]:
    """A step as JSON values."""
    return {
        "kind": step.kind,
        "path": step.path,
        "other": step.other,
        "codes": list(step.codes),
        "detail": step.detail,
        "truth": step.truth,
        "findings": step.findings,
        "seen": {
            path: {"stat": list(state.stat) if state.stat else None, "hash": state.hash}
            for path, state in step.seen.items()
        },
        "read_bytes": step.read_bytes,
        "write_bytes": step.write_bytes,
        "texts": step.texts,
        "known": step.known,
        "from": step.place,
        "hash": step.hash,
        "blob": step.blob,
        "diff": step.diff,
    }


def _left_value(left: Left) -> dict[str, Any]:
    finding = left.finding
    return {
        "code": finding.code,
        "severity": finding.severity,
        "path": finding.path,
        "detail": finding.detail,
        "repair": left.reason,
    }


def parse(data: bytes) -> Saved:
    """Read a plan, alone or in what ``repair --plan --json`` printed.

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
                remedy="upgrade filestore, or plan again: filestore repair --plan --json",
            )
        if found != FORMAT:
            raise _invalid(f"its format is {found!r}")
        return _saved(table)
    except FilestoreError:
        raise
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _invalid(f"it is no JSON, {place}") from error
    except KeyError as error:
        raise _invalid(f"it lacks {error.args[0]!r}") from error
    except (ValueError, TypeError) as error:
        raise _invalid(str(error)) from error


def _saved(table: Mapping[str, Any]) -> Saved:
    level, only = _text(table["level"]), frozenset(_texts(table["only"]))
    if level not in _LEVELS:
        raise _invalid(f"its level is {level!r}")
    if not only <= CODES.keys():
        raise _invalid(f"it names codes that are none: {', '.join(sorted(only - CODES.keys()))}")
    policy = Policy(
        truth=_flag(table["truth"]),
        only=only,
        paths=_texts(table["paths"]),
        ours=_texts(table["ours"]),
        theirs=_texts(table["theirs"]),
        remove=_texts(table.get("remove", [])),
    )
    return Saved(
        identity=_text(table["store"]),
        generation=_number(table["generation"]),
        level=_LEVELS[level],
        policy=policy,
        steps=tuple(_step(item) for item in _list(table["steps"])),
    )


def _step(item: Mapping[str, Any]) -> Step:
    item = _table(item, "a step")
    kind, path, other = _text(item["kind"]), _text(item["path"]), _text(item["other"])
    if kind not in KINDS:
        raise _invalid(f"{kind!r} is no kind of step")
    if kind in PARTS:
        if path != PARTS[kind]:
            raise PlanOutsideError(
                f"the plan has {path!r} for {kind}, expected {PARTS[kind]}", remedy=_AGAIN
            )
    elif kind not in _OF_SOURCES:
        for name in (path, other) if other else (path,):
            _check_inside(name)
    seen = {_text(key): _state(value) for key, value in _table(item["seen"], "'seen'").items()}
    return Step(
        kind=kind,
        path=path,
        other=other,
        codes=_texts(item["codes"]),
        detail=_text(item["detail"]),
        seen=seen,
        hash=_text(item["hash"]),
    )


def _check_inside(path: str) -> None:
    parts = path.split("/")
    if parts[0] != "chunked" or len(parts) < 2 or "\0" in path or {"", ".", ".."} & set(parts):
        raise PlanOutsideError(
            f"the plan names {path!r}, which is no file below chunked/", remedy=_AGAIN
        )


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
        raise TypeError(f"expected {name} to be a table, found {value!r}"[:200])
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r}"[:200])
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(item) for item in _list(value))


def _list(value: object) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {value!r}"[:200])
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected a number, found {value!r}"[:200])
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {value!r}"[:200])
    return value
