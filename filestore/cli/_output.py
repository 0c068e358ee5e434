"""What goes to stdout: words for a person, or one JSON object. Nothing from a file goes out raw."""

import os
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

import orjson

from filestore.findings import Finding
from filestore.safe_text import safe_json, safe_text, shown_path

_SHOWN = 10
"""Paths listed under one code; the rest is counted."""


def write_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    data = orjson.dumps(_encodable(value), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    sys.stdout.flush()
    sys.stdout.write(safe_json(data).decode())
    sys.stdout.flush()


def _encodable(value: Any) -> Any:
    r"""The value with texts that JSON can hold: bytes that are not UTF-8 as ``\xNN``."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        return value
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


def line(text: str = "", *, style: str = "") -> None:
    """Print one line, made safe for a terminal."""
    safe = safe_text(text)
    if style and _colours():
        safe = f"\x1b[{style}m{safe}\x1b[0m"
    sys.stdout.write(safe + "\n")


def wrapped(head: str, parts: Iterable[str]) -> None:
    """Print a list in lines of a terminal's usual width."""
    text = "; ".join(parts)
    for one in textwrap.wrap(text, 79, initial_indent=head, subsequent_indent="    "):
        line(one)


def _colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


_SEVERITY_STYLE = {"E": "31", "W": "33", "I": "2"}


def findings(found: Iterable[Finding]) -> None:
    """Print findings grouped by code, worst first as they come."""
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        groups.setdefault(finding.code, []).append(finding)
    for code, members in groups.items():
        first = members[0]
        line(
            f"{first.severity} {code} ({len(members)}): {first.repair}",
            style=_SEVERITY_STYLE[first.severity],
        )
        for member in members[:_SHOWN]:
            detail = f"  {member.detail}" if tells_more(member) else ""
            line(f"    {shown_path(member.path)}{detail}")
        if len(members) > _SHOWN:
            line(f"    … and {len(members) - _SHOWN} more")


def tells_more(finding: Finding) -> bool:
    """Whether the detail says something that the code does not."""
    return finding.code not in ("modified", "metadata-modified", "untracked", "missing")


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding with the keys of the contract."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "path": finding.path,
        "detail": finding.detail,
        "repair": finding.repair,
        "safe": finding.safe,
    }


def count(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
