"""Help of commands at any width, from `help.json`, and pages: no command is loaded for it.

`python tests/reference.py` writes the file from what the commands take. ``-h`` is one screen, the
options of every day first; ``--help`` is all.
"""

from __future__ import annotations

import json
import os

from filestore.cli._width import filled, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `typing` takes longer to load than the help of a command.
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    Records = Mapping[str, Mapping[str, Any]]
    """By the words of a command or an action: see `tests/helped.py` for what each has."""

FILE: Final = os.path.join(os.path.dirname(__file__), "help.json")
SCREEN: Final = 24
"""Lines that ``-h`` takes at most."""
_TELLING: Final = 20
"""Characters of a phrase that can do without its examples."""
_TAKES_A_WORD: Final = ("--store", "--color")
"""Options of every command, and of none alone, that a word follows."""
_OF_ALL: Final = (
    "every command takes -q, -v, --color, --no-input, --no-pager, too: 'filestore help options'"
)
_SHORT: Final = "-h"
_WHOLE: Final = "--help"


def records() -> Records:
    """What there is to say of each command and action."""
    found: Records = _read()["commands"]
    return found


def codes() -> Mapping[str, str]:
    """What to do about each code of a finding."""
    found: Mapping[str, str] = _read()["codes"]
    return found


def _read() -> Any:
    with open(FILE, encoding="utf-8") as file:
        return json.load(file)


def asked(words: Sequence[str]) -> str | None:
    """The help that a call asks for; None where it asks for none, or something is wrong with it."""
    named: list[str] = []
    flags: set[str] = set()
    skip = False
    for word in words:
        if word == "--" and named and not skip:
            break
        if word in (_SHORT, _WHOLE) and not skip:
            flags.add(word)
        elif not skip and not word.startswith("-"):
            named.append(word)
        skip = word in _TAKES_A_WORD and not skip
    if not flags:
        is_plain = named[:1] == ["help"] and len(named) == len(words)
        return text_on(named[1:], records()) if is_plain else None
    known = records()
    if not named:
        return text_on((), known)
    name = named[0]
    if name in known and known[name]["actions"] and len(named) > 1:
        name = f"{name} {named[1]}"
    if name not in known:
        return None
    return whole(name, known) if _WHOLE in flags else screen(name, known)


def text_on(names: Sequence[str], known: Records) -> str | None:
    """The overview, or on a command or an action, a page, or a code; None of any other name."""
    from filestore.cli._overview import SYNONYMS, overview

    if not names:
        return overview(known)
    first, *action = names
    if " ".join(names) in known:
        return whole(" ".join(names), known)
    page = first.removeprefix("docs/").removeprefix("reference/").removesuffix(".md").lower()
    if not action and page in (found := pages()):
        with open(found[page], encoding="utf-8") as file:
            return file.read()
    if first in SYNONYMS:
        return text_on([SYNONYMS[first], *action], known)
    repair = codes().get(" ".join(names))
    return f"{first}: {repair}\n" if repair else None


def pages() -> dict[str, str]:
    """The pages of the manual: the path of each by its name."""
    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "docs")
    found = {}
    for part in (folder, os.path.join(folder, "reference")):
        for name in os.listdir(part):
            if name.endswith(".md"):
                found[name.removesuffix(".md").lower()] = os.path.join(part, name)
    return found


def whole(name: str, known: Records) -> str:
    """All there is to say of a command or an action."""
    columns, one = width(), known[name]
    lines = _head(name, one["usage"], one["about"], columns)
    for title, rows in (
        ("arguments", one["arguments"]),
        ("actions", _actions(name, known)),
        ("options", one["options"]),
    ):
        if rows:
            lines += ["", f"{title}:"]
            for row in _rows(rows, columns):
                lines += row
    examples = one["examples"]
    lines += ["", "example:" if len(examples) == 1 else "examples:"]
    lines += [f"  {example}" for example in examples]
    lines += ["", *filled(_OF_ALL, columns)]
    lines += [*_keys(one["keys"], columns), *_page(one["page"], columns)]
    return "\n".join([*lines, ""])


def screen(name: str, known: Records) -> str:
    """What is used every day of a command or an action, in at most `SCREEN` lines."""
    columns, one = width(), known[name]
    head = _head(name, one["usage"], one["about"][:1], columns)
    end = ["", "example:", f"  {one['examples'][0]}", ""]
    page = _page(one["page"], columns)
    end += [f"{_WHOLE} shows all", *page]
    rows = [*one["arguments"], *_actions(name, known), *one["options"]]
    shown: list[str] = []
    for row in _rows([(first, _brief(text)) for first, text in rows], columns):
        if len(head) + 1 + len(shown) + len(row) + len(end) > SCREEN:
            break
        shown += row
    keys = _keys(one["keys"], columns)
    if len(head) + 1 + len(shown) + len(end) + len(keys) <= SCREEN:
        end[-len(page) : -len(page)] = keys
    return "\n".join([*head, "", *shown, *end, ""])


def _actions(name: str, known: Records) -> list[tuple[str, str]]:
    return [(word, known[f"{name} {word}"]["line"]) for word in known[name]["actions"]]


def _head(name: str, usage: str, about: Sequence[str], columns: int) -> list[str]:
    lines = filled(f"usage: filestore {name} {usage}".rstrip(), columns, indent=8)
    for paragraph in about:
        lines += ["", *filled(paragraph, columns)]
    return lines


def _keys(keys: str, columns: int) -> list[str]:
    return filled(f"JSON: {keys}", columns, indent=6) if keys else []


def _page(page: str, columns: int) -> list[str]:
    return filled(f"page: docs/{page}.md, or 'filestore help {page}.md'", columns, indent=6)


def _brief(text: str) -> str:
    """What says most of a text: its first sentence, without the examples behind a colon."""
    text = text.partition(". ")[0].partition("; ")[0]
    short, _, rest = text.partition(": ")
    return short if rest and len(short) > _TELLING and "default" not in short else text


def _rows(rows: Sequence[Sequence[str]], columns: int) -> list[list[str]]:
    """Names with their texts, in two columns; a name that is long has its text below it."""
    most = 20 if columns >= 60 else 10
    room = max((len(name) for name, _ in rows if len(name) <= most), default=most)
    found = []
    for name, text in rows:
        below = filled(text, columns - room - 4)
        first = f"  {name:{room}}  "
        lines = [first.rstrip()] if len(name) > room else [first + below.pop(0) if below else first]
        found.append([*lines, *(" " * (room + 4) + line for line in below)])
    return found
