"""Words of the command line into options; the command's own module says what it takes."""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, Final, NoReturn, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from filestore._version import __version__
from filestore.cli import _terminal
from filestore.core.caller import absolute, working_folder
from filestore.core.errors import UsageError
from filestore.core.spelling import closest, did_you_mean
from filestore.server.operations import (
    COMMANDS,
    MODULES,
    CommonOptions,
    fields_of,
    option,
)

_PATHS: Final = ("DIR", "PATH", "FILE", "FOLDER", "PACK", "QUERIES", "SOURCE", "STORE", "TARGET")
"""What options and arguments call a path on the disk, which may be typed in other letters."""
_WISHES: Final = {name: field for field in fields_of(_terminal.Wishes) for name in field.names}
"""Options that every command takes, by name."""
_FRONT: Final = ("--store", "--json", "--version", "-V", "--help", "-h", *_WISHES)
"""Options allowed before the command."""
_TAKES_A_WORD: Final = ("--store", *(name for name, one in _WISHES.items() if one.kind is not bool))
_MOST_NAMED: Final = 7
"""Commands that a message names."""
_MISSING: Final = "missing: "
_SENTENCES: Final = (
    # An option by the last of its names.
    (r"^argument (?:\S+/)?", ""),
    (r": expected (?:one|at least one) argument$", " needs a value"),
    (r": invalid int value: ", " takes a whole number, found "),
    (r": invalid float value: ", " takes a number, found "),
    (r"^the following arguments are required: ", _MISSING),
)
"""Messages of argparse, and ours in their place."""
_RUN: Final = "_run"
Run = Callable[[Any], int]
Kind = TypeVar("Kind", bound=Struct)


class _Front(Struct, frozen=True, kw_only=True):
    """Options before the command."""

    store: Annotated[Sequence[str], option("DIR")] = ()
    """the store, or a folder with file_index/; search takes several"""
    json: bool = False
    """print JSON on standard output"""


class _Parser(argparse.ArgumentParser):
    """Takes every option by its whole name: a short form would mean another one some day."""

    options: type[Struct]

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        for pattern, sentence in _SENTENCES:
            message = re.sub(pattern, sentence, message, count=1)
        raise UsageError(message, remedy=f"{self.prog} --help")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # The one place that sees both a word and its alternatives.
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            known = [str(one) for one in action.choices or ()]
            if isinstance(action.metavar, str) and "|" in action.metavar:
                # Not what hooks alone call.
                known = action.metavar.split("|")
            listed = f"invalid choice: {value!r} (choose from {', '.join(known)})"
            error.message = listed + did_you_mean(str(value), known)
            raise

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        # The one place that sees every path that a person types.
        value = super()._get_value(action, arg_string)
        if action.metavar not in _PATHS or arg_string.isascii():
            return value
        from filestore.fs.path_names import on_disk

        place = absolute(arg_string)
        found = on_disk(place)
        if found == place:
            return value
        return found if os.path.isabs(arg_string) else os.path.relpath(found, working_folder())

    def known_options(self) -> list[str]:
        """Every option that can be meant."""
        return [*self.visible_options(), *_WISHES]

    def visible_options(self) -> list[str]:
        """Every option that the help shows, also those of the actions of a command."""
        found: list[str] = []
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    found += inner.visible_options()
            elif action.help != argparse.SUPPRESS:
                found += action.option_strings
        return list(dict.fromkeys(found))


def parse(words: Sequence[str]) -> tuple[Run, Any]:
    """The function of one call's command, and the options it is called with.

    What every command takes holds from now on: see `_terminal.use`.

    Raises:
        UsageError: The words fit no command.
    """
    _terminal.use(_terminal.Wishes())
    words, fields = _without_fields(words)
    command, position = _command_in(words)
    front_words = [word for word in words[:position] if word != "--"]
    parser = _Parser(prog="filestore", add_help=False, formatter_class=_formatter)
    parser.add_argument("--version", "-V", action="store_true")
    parser.add_argument("--help", "-h", action="store_true")
    _take(parser, _Front)
    _take_wishes(parser)
    if command is None:
        return _overview, parser.parse_args(front_words)
    front = parser.parse_args(front_words)
    _terminal.use(_terminal.Wishes(store=_only(_stores(front, {}))))
    if front.help:
        return _overview, front
    rest = list(words[position + 1 :])
    refuse_removed(command, rest)
    own = command_parser(command)
    before = rest[: rest.index("--")] if "--" in rest else rest
    takes_several = any(one.name == "store" and one.several for one in fields_of(own.options))
    times = [word.partition("=")[0] for word in (*front_words, *before)].count("--store")
    if times > 1 and not takes_several:
        raise UsageError(f"{command} takes one store, found --store {times} times: name one")
    joined = [word for word, after in pairwise((*before, "")) if _is_of_query(word, after)]
    if joined and command == "search":
        query = [word for word in rest if not word.startswith("-")]
        raise _unexpected(command, query, joined[:1], rest, own.known_options(), own.options)
    try:
        chosen, unknown = own.parse_known_args(rest)
    except UsageError as error:
        raise _lacking(error, command, rest, own.known_options()) from None
    given = vars(chosen)
    if unknown:
        raise _unexpected(
            command, given.get("text"), unknown, rest, own.known_options(), own.options
        )
    run, kind = given.pop(_RUN)
    named = (command, run.__name__.removeprefix("run_").removeprefix(f"{command}_"))
    stores = _stores(front, given)
    _terminal.use(_wished(vars(front), given, kind, named, fields, _only(stores)))
    given["store"] = tuple(stores) if takes_several else next(iter(stores), None)
    given = (
        _preferred(command, kind, {*given, *vars(front)}) | {"json": hasattr(front, "json")} | given
    )
    return run, _made(kind, given, command)


def _stores(front: argparse.Namespace, given: Mapping[str, Any]) -> list[str]:
    """What --store names before and behind the name of a command.

    Raises:
        UsageError: One is empty, also where the command needs no store.
    """
    here = given.get("store", ())
    named = [*getattr(front, "store", ()), *([here] if isinstance(here, str) else here)]
    if "" in named:
        from filestore.config.layout import require_named

        require_named("")
    return named


def _only(stores: Sequence[str]) -> str:
    return stores[0] if len(stores) == 1 else ""


_PREFERRED: Final = {"search": {"k": "limit", "mode": "mode"}, "similar": {"k": "limit"}}
"""Options that a person may want otherwise in every store, on a terminal alone: scripts of two
people get the same."""


def _preferred(command: str, kind: type[CommonOptions], given: Container[str]) -> dict[str, Any]:
    """What a person wants of a command that answers them on a terminal."""
    if "json" in given or not sys.stdout.isatty():
        return {}
    fields = {field.name: field for field in fields_of(kind)}
    return {
        key: fields[key].kind(_terminal.preferred(name))
        for key, name in _PREFERRED.get(command, {}).items()
    }


def _without_fields(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words with a plain ``--json`` for each ``--json=FIELDS``, and the last FIELDS."""
    found, fields = list(words), None
    for at, word in enumerate(found):
        if word == "--":
            break
        if word.startswith("--json="):
            found[at], fields = "--json", word.removeprefix("--json=")
    return found, fields


def _wished(
    front: dict[str, Any],
    given: dict[str, Any],
    kind: type[CommonOptions],
    names: Sequence[str],
    fields: str | None,
    store: str,
) -> _terminal.Wishes:
    """What every command takes, before or behind its name; the latter is taken from `given`.

    Args:
        front: What was given before the name.
        given: What was given behind it.
        kind: The command's own options.
        names: Of the command, and of its action; twice the same where none is named.
        fields: Those of the JSON that are wanted; None for all.
        store: What names the store; "" where nothing does.

    Raises:
        UsageError: Some do not go together.
    """
    own = {field.name for field in fields_of(kind)}
    found = {}
    for field in _WISHES.values():
        if field.name in front:
            found[field.name] = front[field.name]
        if field.name in given:
            # The command may have one of this name: both are meant.
            found[field.name] = given[field.name] if field.name in own else given.pop(field.name)
    wished = replace(_made(_terminal.Wishes, found, ""), store=store)
    if fields is None:
        return wished
    from filestore.cli import _fields

    return replace(wished, fields=_fields.wanted(fields, list(dict.fromkeys(names))))


def _is_of_query(word: str, after: str) -> bool:
    """Whether a word that begins with a sign is likely one that a query leaves out.

    ``-lamp`` is no ``-l``, ``-quartz`` no ``-q``, and ``-n`` an option before digits alone.
    """
    if word == "-n":
        return not after.isdecimal()
    return bool(re.fullmatch(r"-[l0](?![l0]*$).*|-[qv].+|-n(?!\d+$).+", word))


def _overview(front: argparse.Namespace) -> int:
    """Print every command where help is asked for, else what is here."""
    from filestore.cli._help import records
    from filestore.cli._overview import overview, welcome

    if front.version:
        sys.stdout.write(f"filestore {__version__}\n")
    elif hasattr(front, "json") and not front.help:
        raise UsageError("no command was given", remedy="filestore --help")
    else:
        sys.stdout.write(overview(records()) if front.help else welcome())
    return 0


def _made(kind: type[Kind], given: dict[str, Any], command: str) -> Kind:
    """Options of the words that were given.

    Raises:
        UsageError: Some do not go together.
    """
    fields = {field.name: field for field in fields_of(kind)}
    groups: dict[str, list[str]] = {}
    for name in given:
        field = fields[name]
        typed = field.typed
        if typed.needs and not given.get(typed.needs):
            needed = fields[typed.needs].names[-1]
            raise UsageError(
                f"{field.names[-1]} goes with {needed}", remedy=f"filestore {command} --help"
            )
        if typed.group and given[name]:
            groups.setdefault(typed.group, []).append(field.names[-1])
        if typed.joined:
            given[name] = " ".join(given[name])
        elif field.kind is dict:
            from filestore.search.conditions import typed as condition

            given[name] = [condition(word, field.names[-1]) for word in given[name]]
    for names in groups.values():
        if len(names) > 1:
            raise UsageError(f"{' and '.join(names)} exclude each other: choose one")
    return kind(**given)


def _unexpected(
    command: str,
    query: Sequence[str] | None,
    unknown: Sequence[str],
    words: Sequence[str],
    known: Sequence[str],
    kind: type[Struct],
) -> UsageError:
    """An argument that no option takes; in a query it may be a word with a sign."""
    if command == "search" and not unknown[0].startswith("--"):
        is_all_query = all(word in (*(query or ()), *unknown) for word in words)
        asked = shlex.join(words) if is_all_query else "QUERY"
        remedy = f"filestore search {'' if is_all_query else 'OPTIONS '}-- {asked}"
        return UsageError(_not_known(unknown[0], known), remedy=remedy)
    if of_another := _option_of_another(command, words, unknown, known):
        return of_another
    takes_names = any(one.typed.argument and not one.typed.joined for one in fields_of(kind))
    named = _name_with_a_dash(command, words, unknown, known) if takes_names else None
    return named or UsageError(_not_known(unknown[0], known), remedy=f"filestore {command} --help")


def _option_of_another(
    command: str, words: Sequence[str], unknown: Sequence[str], known: Sequence[str]
) -> UsageError | None:
    """The error about an option that other commands take; None where it is none, or a file."""
    from filestore.cli._help import records

    name = unknown[0].partition("=")[0]
    taking = [
        one
        for one, record in records().items()
        if any(name in re.findall(r"(?<!\S)--?\w[\w-]*", names) for names, _ in record["options"])
    ]
    if not taking or did_you_mean(name, known) or os.path.lexists(absolute(unknown[0])):
        return None
    message, rest = f"'{command}' has no {name}", [word for word in words if word != name]
    if name == "--yes" and name not in known and unknown == [name]:
        return UsageError(
            f"{message}: it asks nothing", remedy=shlex.join(["filestore", command, *rest])
        )
    shown = taking if len(taking) <= _MOST_NAMED else [*taking[: _MOST_NAMED - 2], "others"]
    *first, last = shown
    others = " and ".join(filter(None, (", ".join(first), last)))
    verb = "takes" if len(taking) == 1 else "take"
    return UsageError(f"{message}; {others} {verb} it", remedy=f"filestore {command} --help")


def _lacking(
    error: UsageError, command: str, words: Sequence[str], known: Sequence[str]
) -> UsageError:
    """The error about words that lack something: it may be there, and begin with a dash."""
    before = words[: words.index("--")] if "--" in words else words
    if lacks := re.match(r"(\S+) needs a value$", error.message):
        for at, (option, word) in enumerate(pairwise(before)):
            if option == lacks[1] and word.startswith("-") and option[:2] == "--":
                joined = [*words[:at], f"{option}={word}", *words[at + 2 :]]
                return UsageError(
                    f"{option} needs a value, found {word!r}",
                    remedy=shlex.join(["filestore", command, *joined]),
                )
    if error.message.startswith(_MISSING):
        short = tuple(one for one in known if len(one) == 2)
        unknown = [
            one
            for one in before
            if one.startswith("-") and one.partition("=")[0] not in known
            if not one.startswith(short)
        ]
        return _name_with_a_dash(command, words, unknown, known) or error
    return error


def _name_with_a_dash(
    command: str, words: Sequence[str], unknown: Sequence[str], known: Sequence[str]
) -> UsageError | None:
    """The error about a name that was taken for an option; None where it is likely a wrong one."""
    for word in unknown:
        is_there = os.path.lexists(absolute(word))
        if is_there or (word.startswith("-") and len(word) > 2 and not did_you_mean(word, known)):
            at = words.index(word)
            after = words[at + 1 :]
            has_options = any(one.startswith("-") for one in after)
            whole = ["filestore", command, *words[:at], "--", word, *after]
            return UsageError(
                f"unexpected argument {word!r}; put '--' before a name that begins with a dash",
                remedy=f"filestore {command} --help" if has_options else shlex.join(whole),
            )
    return None


def _not_known(word: str, options: Sequence[str]) -> str:
    """The message about an unexpected word; of an option, with the nearest known one."""
    name = word.partition("=")[0]
    suggestion = did_you_mean(name, options) if word.startswith("-") else ""
    return f"unexpected argument {(name if suggestion else word)!r}{suggestion}"


def command_parser(command: str) -> _Parser:
    """What a command takes.

    An option that takes a list adds up where it is repeated; of any other the last one holds.

    Args:
        command: Its name.
    """
    run, actions = functions_of(command)
    own = _Parser(prog=f"filestore {command}", formatter_class=_formatter)
    _take(own, run.__annotations__["options"], run)
    if actions:
        inner = own.add_subparsers(metavar="ACTION")
        for name, act in actions.items():
            parser = inner.add_parser(name, formatter_class=_formatter)
            _take(parser, act.__annotations__["options"], act)
    return own


def options_of_commands() -> dict[str, list[str]]:
    """The options of every command, and of every action of one as "COMMAND ACTION", as helped."""
    found = {}
    for command in COMMANDS:
        own = command_parser(command)
        found[command] = own.visible_options()
        for argument in own._actions:
            for name in () if argument.option_strings else argument.choices or ():
                inner = getattr(argument, "_name_parser_map", {}).get(name, own)
                found[f"{command} {name}"] = inner.visible_options()
    return found


def functions_of(command: str) -> tuple[Run, dict[str, Run]]:
    """The function of a command, and those of its actions, `COMMAND_ACTION`, by action."""
    found = vars(import_module(f"filestore.cli.{MODULES.get(command, command)}"))
    start = f"{command}_"
    actions = {key.removeprefix(start): act for key, act in found.items() if key.startswith(start)}
    return found[f"run_{command}"], actions


def _take(parser: _Parser, kind: type[Struct], run: Run | None = None) -> None:
    """Let a parser take the fields of options; options not given stay unset."""
    parser.options = kind
    for field in fields_of(kind):
        typed = field.typed
        settings: dict[str, Any] = {"help": argparse.SUPPRESS if typed.hidden else None}
        if field.kind is bool:
            settings["action"] = "store_false" if field.default is True else "store_true"
        else:
            settings |= {"metavar": typed.metavar, "choices": field.choices}
            settings["type"] = field.kind if field.kind in (int, float) else None
        several = field.several or typed.joined
        if typed.argument:
            least = "+" if several else None
            most = "*" if several else "?"
            settings["nargs"] = least if field.required else most
        else:
            settings |= {"dest": field.name, "required": field.required}
            if several or field.kind is dict:
                settings["action"] = "extend" if typed.many else "append"
            if typed.many:
                settings["nargs"] = "+"
        names = field.names or (field.name,)
        parser.add_argument(*names, default=argparse.SUPPRESS, **settings)
    if run is not None:
        parser.set_defaults(**{_RUN: (run, kind)})
        _take_wishes(parser)
    # Else argparse would take every negative number for an option: `-k -3`, `return -1`.
    parser._has_negative_number_optionals.clear()


def _take_wishes(parser: _Parser) -> None:
    """Let a parser take what every command does, as far as it has no other use for the names."""
    taken = parser._option_string_actions
    for field in dict.fromkeys(_WISHES.values()):
        if taken.keys().isdisjoint(field.names):
            more = {"action": "store_true"} if field.kind is bool else {"choices": field.choices}
            parser.add_argument(
                *field.names,
                dest=field.name,
                default=argparse.SUPPRESS,
                help=argparse.SUPPRESS,
                **more,
            )


def _formatter(prog: str) -> argparse.HelpFormatter:
    # Asked for at every option; left to find the width by itself, it loads a good deal for that.
    return argparse.HelpFormatter(prog, width=80)


def _command_in(words: Sequence[str]) -> tuple[str | None, int]:
    """The first word that is no option of the front, and its position."""
    skip = False
    for position, word in enumerate(words):
        if skip:
            skip = False
        elif word in _TAKES_A_WORD:
            skip = True
        elif word == "--" or not word.startswith("-"):
            if word == "--":
                # It ends the options before the command, and what follows is its name.
                position += 1
                if position == len(words):
                    break
                word = words[position]
            if word not in COMMANDS:
                refuse_removed(word, ())
                raise _no_command(word)
            return word, position
        elif word.partition("=")[0] not in _FRONT:
            raise UsageError(_not_known(word, _FRONT), remedy="filestore --help")
    return None, len(words)


def _no_command(word: str) -> UsageError:
    from filestore.cli._overview import SYNONYMS

    if word in SYNONYMS:
        called = SYNONYMS[word]
        return UsageError(
            f"no command {word!r}: it is called {called!r}", remedy=f"filestore {called} --help"
        )
    near = closest(word, COMMANDS)
    return UsageError(
        f"no command {word!r}{did_you_mean(word, near)}",
        remedy=f"filestore {near[0]} --help" if near else "filestore --help",
    )


REMOVED: Final = {
    "compare --min-ndcg": "--max-loss bounds the fall; 'filestore evaluate --json' has the mean",
    "compare --workflow": "run 'filestore compare REV --queries FILE --max-loss D' in CI",
    "embedder export": "sentence-transformers[onnx] writes a folder for onnxruntime: "
    'SentenceTransformer(MODEL, backend="onnx").save_pretrained(FOLDER), or '
    "'optimum-cli export onnx --model MODEL FOLDER'",
    "embeddings --model": "'filestore embeddings export --all PACK' writes those of every model",
    "export obsidian": "filestore export markdown TARGET",
    "import markdown": "index the folder where it is: filestore init --in-place FOLDER",
    "import obsidian": "index the vault where it is: filestore init --in-place VAULT",
    "log --path": "git log --follow -- FILE",
    "repair --apply": "look with 'filestore repair --plan', then 'filestore repair --yes' with the "
    "same --only and --path",
    "repair --truth": "it is called --write-files",
    "tui --findings": "'filestore tui --page verify' verifies, and 'filestore verify' prints",
    "tui --serve": "'filestore serve' has a page for browsers, behind a token",
}
"""A command, or a command and a word behind it: an option, its value, the name of an action."""


def refuse_removed(command: str, words: Sequence[str]) -> None:
    """Name what a call uses that is gone.

    Raises:
        UsageError: The command, or a word behind it, was removed.
    """
    own = words[: words.index("--")] if "--" in words else words
    # Any other word is a name of something, which may be called so.
    pairs = pairwise(("-", *own))
    some = [word for before, word in pairs if "-" in (before[:1], word[:1])]
    named = [command, *(f"{command} {word}" for word in some)]
    named += [f"{command} {word.partition('=')[0]}" for word in some if word.startswith("--")]
    for key in named:
        if key in REMOVED:
            raise UsageError(f"'{key}' was removed", remedy=REMOVED[key])
