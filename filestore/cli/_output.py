"""What goes to stdout: words for a person, or one JSON object. Nothing from a file goes out raw."""

import os
import sys
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from filestore.findings import Finding, is_clean
from filestore.safe_text import safe_json, safe_text, shown_path

if TYPE_CHECKING:
    from filestore.undoing import Turned

Accepted = Mapping[str, tuple[str, ...]] | None
"""Code of an accepted warning to the paths it is accepted for."""
_WIDTH = 80
_CLOSED = ("format-newer", "unsafe-sidecar")
"""Codes of stores that no command opens."""
_SHOWN = 10
"""Paths listed under one code; the rest is counted."""


def write_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    data = orjson.dumps(_encodable(value), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    sys.stdout.flush()
    sys.stdout.write(safe_json(data).decode())
    sys.stdout.flush()


def write_json_line(value: dict[str, Any]) -> None:
    """Print one JSON object on one line, at once: one event of a command that goes on."""
    data = orjson.dumps(_encodable(value), option=orjson.OPT_APPEND_NEWLINE)
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
    for one in textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent="    "):
        line(one)


def _colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


_SEVERITY_STYLE = {"E": "31", "W": "33", "I": "2"}


def is_accepted(finding: Finding, accepted: Accepted) -> bool:
    """Whether it is a warning that the settings accept for its path."""
    return finding.severity != "I" and is_clean([finding], accepted)


def findings(found: Iterable[Finding], accepted: Accepted = None) -> None:
    """Print findings grouped by code, worst first as they come.

    Args:
        found: What is printed.
        accepted: The settings': code to paths, which are marked.
    """
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        groups.setdefault(finding.code, []).append(finding)
    for code, members in groups.items():
        first = members[0]
        head = f"{first.severity} {code} ({len(members):,}): {first.repair}"
        for one in _folded(head, indent=4):
            line(one, style=_SEVERITY_STYLE[first.severity])
        for member in members[:_SHOWN]:
            _member(member, " (accepted)" if is_accepted(member, accepted) else "")
        if len(members) > _SHOWN:
            line(f"    … and {len(members) - _SHOWN} more")


def _member(finding: Finding, mark: str) -> None:
    """One finding below its code: on one line where it fits, else the detail below the path."""
    path = f"    {shown_path(finding.path)}{mark}"
    detail = safe_text(finding.detail, keep_newlines=False) if tells_more(finding) else ""
    if len(path) + 2 + len(detail) <= _WIDTH:
        line(f"{path}  {detail}".rstrip())
        return
    line(path)
    for one in _folded(f"        {detail}", indent=8):
        line(one)


def _folded(text: str, *, indent: int) -> list[str]:
    """A text in lines of a terminal's usual width, words left whole."""
    return textwrap.wrap(
        text,
        _WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def next_command(found: Iterable[Finding], accepted: Accepted = None) -> None:
    """Print what mends findings: the command that may, and what it leaves to another."""
    told = (finding for finding in found if not is_accepted(finding, accepted))
    serious = [finding for finding in told if finding.severity != "I"]
    safe = sum(finding.safe for finding in serious)
    if safe:
        full = any("--full" in finding.repair for finding in serious if finding.safe)
        words = "filestore sync --full" if full else "filestore sync"
        line(f"'{words}' mends {safe:,} of {len(serious):,}")
    others = [one for one in serious if not one.safe and one.code not in _CLOSED]
    if others:
        level = " --level full" if any("--level full" in one.repair for one in others) else ""
        line(f"'filestore repair{level} --plan' shows what can be done about the rest")


def tells_more(finding: Finding) -> bool:
    """Whether the detail says something that the code does not."""
    return finding.code not in ("modified", "metadata-modified", "untracked", "missing")


def finding_json(finding: Finding, accepted: Accepted = None) -> dict[str, Any]:
    """A finding with the keys of the contract, and ``accepted`` where the settings accept it."""
    mark = {"accepted": True} if is_accepted(finding, accepted) else {}
    return mark | {
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


def turned(done: "Turned | None", *, word: str, as_json: bool) -> None:
    """Say what an undo or a redo did; None where there was nothing to do.

    Args:
        done: What it gave.
        word: ``undone`` or ``redone``: the key of the paths, and the verb.
        as_json: Whether one JSON object is wanted.
    """
    if as_json:
        paths: dict[str, Any] = {"undone": [], word: list(done.paths) if done else []}
        name = {"id": done.identifier if done else None, "what": done.what if done else ""}
        texts = {
            "embedded": done.embedded if done else 0,
            "reused": done.reused if done else 0,
        }
        write_json(name | paths | texts)
    elif done is None:
        line(f"nothing to {word.removesuffix('ne')}")
    else:
        line(
            f"{word} {done.identifier}: {shown_path(done.what)} ({count(len(done.paths), 'file')})"
        )
        if done.differing:
            number = count(len(done.differing), "file")
            line(f"{number} as the repair had found them: 'filestore status' says what to do")
