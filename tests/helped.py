"""What there is to say of each command and action: `filestore/cli/help.json`.

Made by `tests/reference.py` from the docstring of what runs, the fields of its options and the
sentences under them. One rule: the help prints this, and loads no command for it.
"""

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from filestore.cli._overview import GROUPS
from filestore.cli._parser import functions_of
from filestore.core.codes import CODES
from filestore.server.operations import COMMANDS, CommonOptions, Field, fields_of, sentences

EVERYDAY: Final = {
    "add": "--plan --into --each",
    "changes": "-n --since --by --diff",
    "compare": "--queries -k --max-loss",
    "enrich": "--plan --questions --summaries --budget --generator",
    "evaluate": "-k --compare --per-query",
    "import": "--plan --replace",
    "init": "--in-place --plan --embedder --chunks",
    "log": "-k --max",
    "ls": "--recent",
    "mcp": "--install --plan --yes --write --remove",
    "reconstruct": "-o --force --from",
    "repair": "--plan --yes --write-files --path --only --ours --theirs",
    "search": "-k --mode --where --in --since --sort --format -l --context --group --kind",
    "serve": "--write --port --host",
    "show": "--lines --most --record",
    "similar": "-k",
    "tui": "--read-only --page --select",
    "update": "--plan --remove-gone",
    "verify": "--level --sample",
}
"""Options that come first in a help; the others follow as they are declared, the common ones last.
"""
_PAGES_OF_GROUPS: Final = {
    "start": "start",
    "find": "search",
    "keep up to date": "drift",
    "chunk stores": "chunks",
    "models": "meaning",
    "programs": "server",
}
_PAGES: Final = {
    "changes": "chunks",
    "compare": "git",
    "completion": "start",
    "convert": "exchange",
    "doctor": "troubleshooting",
    "config": "start",
    "embeddings": "exchange",
    "evaluate": "search",
    "export": "exchange",
    "git": "git",
    "help": "start",
    "import": "exchange",
    "log": "git",
    "mcp": "agents",
    "open": "editors",
    "reconstruct": "exchange",
    "redo": "chunks",
    "trust": "safety",
    "tui": "inspector",
    "undo": "chunks",
    "watch": "start",
}
"""Of commands that another page tells more of than that of their group."""
_EXAMPLES: Final = re.compile(r"\n\s*Examples?:\s+")
_COMMON: Final = {one.name for one in fields_of(CommonOptions)}
_HELP: Final = ("-h, --help", "-h prints one screen, --help everything")


def records(keys: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """All there is to say, by the words of a command or an action.

    Args:
        keys: Those that each prints with `--json`.
    """
    found = {}
    for command, row in COMMANDS.items():
        run, actions = functions_of(command)
        names = {name: act for name, act in actions.items() if name}
        common = {"line": row.about, "page": page_of(command), "actions": [*names]}
        kind = run.__annotations__["options"]
        own = keys.get(command, ())
        for name, act in names.items():
            inner = act.__annotations__["options"]
            its = keys.get(f"{command} {name}", ())
            found[f"{command} {name}"] = _record(f"{command} {name}", inner, inner, its) | {
                "line": phrase(described(inner)[0][0]),
                "page": common["page"],
                "actions": [],
            }
            own = own or (its if kind is inner else ())
        found[command] = _record(command, run, kind, own) | common
        if names:
            by_default = kind in [act.__annotations__["options"] for act in names.values()]
            found[command]["usage"] = f"{'[ACTION]' if by_default else 'ACTION'} [OPTIONS]"
    return {name: found[name] for name in sorted(found)}


def written(known: Mapping[str, Any]) -> str:
    """The file: a line for each, so that a change shows what it changes."""
    parts = {"commands": known, "codes": {code: one.repair for code, one in CODES.items()}}
    return (
        "{"
        + ",\n".join(
            f"{json.dumps(part)}: {{\n"
            + ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in rows.items())
            + "\n}"
            for part, rows in parts.items()
        )
        + "}\n"
    )


def page_of(command: str) -> str:
    """The page of `docs/` that tells most of a command."""
    (group,) = [name for name, rows in GROUPS.items() if command in " ".join(rows).split()] or [
        "start"
    ]
    return _PAGES.get(command, _PAGES_OF_GROUPS[group])


def _record(name: str, said: Any, kind: type[Struct], keys: Sequence[str]) -> dict[str, Any]:
    about, examples = described(said)
    fields = [one for one in fields_of(kind) if not one.typed.hidden]
    first = EVERYDAY.get(name, "").split()
    options = sorted((one for one in fields if one.names), key=lambda one: _rank(one, first))
    texts = sentences(kind)
    needed = [form(one) for one in options if one.required]
    arguments = [one for one in fields if not one.names]
    usage = [*needed, "[OPTIONS]", *map(usage_of, arguments)]
    return {
        "usage": " ".join(usage),
        "about": about,
        "arguments": [(str(one.typed.metavar), text_of(one, texts)) for one in arguments],
        "options": [*((form(one), text_of(one, texts)) for one in options), _HELP],
        "examples": examples,
        "keys": ", ".join(keys),
    }


def _rank(field: Field, first: Sequence[str]) -> tuple[int, int]:
    places = [first.index(one) for one in field.names if one in first]
    return (0, places[0]) if places else (1 + (field.name in _COMMON), 0)


def described(what: Any) -> tuple[list[str], list[str]]:
    """The paragraphs of a docstring, and its examples."""
    text, *examples = _EXAMPLES.split(inspect.cleandoc(what.__doc__ or ""))
    paragraphs = [" ".join(one.split()) for one in text.split("\n\n") if one.strip()]
    lines = [one.strip() for one in "\n".join(examples).splitlines()]
    return [one.replace("`", "'") for one in paragraphs], [one for one in lines if one]


def form(field: Field) -> str:
    """An option as it is typed, with its value."""
    value = "" if field.kind is bool else f" {value_of(field)}"
    return f"{', '.join(field.names)}{value}{'...' * field.typed.many}"


def usage_of(field: Field) -> str:
    """An argument as it stands in the usage."""
    value = value_of(field) + "..." * (field.several or field.typed.joined)
    return value if field.required else f"[{value}]"


def value_of(field: Field) -> str:
    """The value of an option or an argument, as help names it."""
    return field.typed.metavar or "|".join(field.choices or ()) or field.name.upper()


def text_of(field: Field, texts: Mapping[str, str]) -> str:
    """What an option or an argument means, as help shows it."""
    text = phrase(texts[field.name])
    if field.default is True:
        text = f"do not {text}"
    elif field.typed.one_of:
        text = f"{text} {', '.join(field.typed.one_of)}"
    if field.default and field.default is not True and "default" not in text:
        text = f"{text} (default: {field.default})"
    return text


def phrase(text: str) -> str:
    """A sentence as help shows it after an option."""
    text = text.replace("`", "").removesuffix(".")
    return (text[:1].lower() if text[1:2].islower() else text[:1]) + text[1:]


def words() -> Iterator[tuple[str, ...]]:
    """Every command, and every action of one."""
    for command in COMMANDS:
        yield (command,)
        yield from ((command, action) for action in functions_of(command)[1])
