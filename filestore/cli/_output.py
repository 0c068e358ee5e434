"""What goes to stdout: words for a person, or one JSON object. Nothing from a file goes out raw."""

import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import TYPE_CHECKING, Any, Final

import orjson

from filestore.core.caller import wants_colors
from filestore.core.codes import CODES
from filestore.core.findings import Finding, is_clean
from filestore.core.safe_text import safe_json, safe_text, shown_path

if TYPE_CHECKING:
    from filestore.repair.undo import UndoResult
    from filestore.sync.apply import SyncReport

WIDTH: Final = 80
"""Columns of a terminal."""
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_SHOWN = 10
"""Paths listed under one code; the rest is counted."""


def write_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    data = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    sys.stdout.flush()
    sys.stdout.write(_json_text(data))
    sys.stdout.flush()


def write_json_line(value: dict[str, Any]) -> None:
    """Print one JSON object on one line, at once: one event of a command that goes on."""
    data = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    sys.stdout.write(_json_text(data))
    sys.stdout.flush()


def _json_text(data: bytes) -> str:
    """JSON that can be written in any encoding."""
    text = safe_json(data).decode()
    if getattr(sys.stdout, "encoding", None) in (None, "utf-8", "UTF-8"):
        return text
    return _NOT_ASCII.sub(lambda sign: json.dumps(sign[0])[1:-1], text)


def line(text: str = "", *, style: str = "") -> None:
    """Print one line, made safe for a terminal."""
    safe = safe_text(text)
    if style and _colours():
        safe = f"\x1b[{style}m{safe}\x1b[0m"
    sys.stdout.write(safe + "\n")


def styled(pieces: Iterable[tuple[str, str]]) -> None:
    """Print one line of several styles, made safe for a terminal."""
    colours = _colours()
    for text, style in pieces:
        safe = safe_text(text, keep_newlines=False)
        sys.stdout.write(f"\x1b[{style}m{safe}\x1b[0m" if safe and style and colours else safe)
    sys.stdout.write("\n")


def wrapped(head: str, parts: Iterable[str]) -> None:
    """Print a list in lines of a terminal's usual width."""
    text = "; ".join(parts)
    for one in textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent="    "):
        line(one)


def _colours() -> bool:
    return sys.stdout.isatty() and wants_colors()


_SEVERITY_STYLE = {"E": "31", "W": "33", "I": "2"}


def findings(found: Iterable[Finding]) -> None:
    """Print findings grouped by code, worst first as they come; accepted ones are marked."""
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        groups.setdefault(finding.code, []).append(finding)
    for code, members in groups.items():
        first = members[0]
        head = f"{first.severity} {code} ({len(members):,}): {first.repair}"
        for one in folded(head, indent=4):
            line(one, style=_SEVERITY_STYLE[first.severity])
        for member in members[:_SHOWN]:
            # On one line where it fits, else the detail below the path.
            path = f"    {shown_path(member.path)}{' (accepted)' if member.accepted else ''}"
            detail = "" if member.meaning.self_evident else shown_path(member.detail)
            if len(path) + 2 + len(detail) <= WIDTH:
                line(f"{path}  {detail}".rstrip())
                continue
            line(path)
            for one in folded(f"        {detail}", indent=8):
                line(one)
        if len(members) > _SHOWN:
            line(f"    … and {len(members) - _SHOWN} more")


def folded(text: str, *, indent: int) -> list[str]:
    """A text in lines of a terminal's usual width, words left whole."""
    return textwrap.wrap(
        text,
        WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def next_command(found: Iterable[Finding]) -> None:
    """Print the command that repairs findings, and the one for what it leaves."""
    serious = [one for one in found if one.severity != "I" and not one.accepted]
    safe = sum(finding.safe for finding in serious)
    if safe:
        from filestore.sidecar.vector_home import is_doubted

        full = any(one.meaning.repaired_after == "full" for one in serious if one.safe)
        full = full or is_doubted(serious)  # which a plain sync does not ask
        words = "filestore sync --full" if full else "filestore sync"
        line(f"'{words}' repairs {safe:,} of {len(serious):,}")
    others = [one for one in serious if not one.safe and not one.meaning.refused]
    if others:
        is_deep = any(one.meaning.repaired_after == "full" for one in others)
        level = " --level full" if is_deep else ""
        line(f"'filestore repair{level} --plan' shows what can be done about the rest")


def count(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def left_out(sentences: Sequence[str], more: int) -> None:
    """Say on stderr what could not be taken, the first of it one by one."""
    for sentence in sentences[:_SHOWN]:
        sys.stderr.write(safe_text(f"left out: {sentence}", keep_newlines=False) + "\n")
    rest = len(sentences[_SHOWN:]) + more
    if rest:
        sys.stderr.write(f"left out: … and {rest:,} more\n")


def say_rest(
    listed: Sized, shown: int, write: Callable[[str], None] = line, indent: str = "    "
) -> None:
    """Say how many of a list were not shown."""
    if len(listed) > shown:
        write(f"{indent}… and {len(listed) - shown:,} more; --json lists them all")


def clipped(text: str, width: int) -> str:
    """A text on one line, its end cut where it is longer."""
    plain = safe_text(text, keep_newlines=False)
    return plain if len(plain) <= width else f"{plain[: max(1, width - 1)]}…"


def pages(numbers: Sequence[int]) -> str:
    """Where to look in the source, behind a comma; "" where it has no pages."""
    if not numbers:
        return ""
    first, last = numbers[0], numbers[-1]
    return f", page {first}" if len(numbers) == 1 else f", pages {first} to {last}"


_DONE: Final = {
    "rebuild-catalog": ("rebuilt the catalog", ""),
    "salvage": ("rebuilt the embeddings from those that are sound", ""),
    "index": ("indexed", "new file"),
    "reindex": ("re-indexed", "changed file"),
    "update-record": ("updated the metadata of", "file"),
    "forget": ("removed from the index", "missing file"),
    "repoint": ("updated the path of", "renamed file"),
    "collect": ("deleted", "temporary file"),
    "embed": ("added missing vectors", ""),
    "rebuild-index": ("rebuilt the vector index", ""),
    "rebuild-fulltext": ("rebuilt the full-text index", ""),
}
"""What a sync did by a kind of step: a verb, and what it counts, if anything."""


def done(applied: Iterable[Finding]) -> str:
    """What a sync did, in words."""
    said = []
    for kind, number in Counter(CODES[finding.code].step for finding in applied).items():
        verb, noun = _DONE.get(kind, ("repaired", "finding"))
        said.append(f"{verb} {count(number, noun)}" if noun else verb)
    return "; ".join(said) or "nothing to do"


def embedded(number: int, reused: int) -> str:
    """How many texts were embedded, and how many were not for being in the cache."""
    return f"embedded {count(number, 'text')} ({reused:,} from cache)"


def synced(report: "SyncReport") -> None:
    """Say what a sync did, and what it left."""
    line(done(report.applied))
    line(embedded(report.embedded, report.reused))
    if report.uncounted:
        line(f"keyword scores no longer count {count(report.uncounted, 'deleted text')}")
    if report.pruned:
        line(f"removed {count(report.pruned, 'embedding')} that no text here and no undo has")
    if any(one.code == "missing" and one.tree.is_written for one in report.applied):
        line("to restore a missing file: filestore repair --path PATH --write-files")
    if not is_clean(report.remaining):
        line("left for you:")
    findings(report.remaining)


def turned(done: "UndoResult | None", *, word: str, as_json: bool) -> None:
    """Say what an undo or a redo did; None where there was nothing to do.

    Args:
        done: What it gave.
        word: ``undone`` or ``redone``: the key of the paths, and the verb.
        as_json: Whether one JSON object is wanted.
    """
    if as_json:
        from filestore.repair.undo import UndoResult

        nothing = UndoResult(wanted="before" if word == "undone" else "after")
        write_json((done or nothing).to_dict())
    elif done is None:
        line(f"nothing to {word.removesuffix('ne')}")
    else:
        line(
            f"{word} {done.identifier}: {shown_path(done.what)} ({count(len(done.paths), 'file')})"
        )
        if done.differing:
            number = count(len(done.differing), "file")
            line(f"{number} as before the repair, with its findings: see 'filestore status'")
