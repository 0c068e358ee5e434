"""The inspector over a store that is full of terminal payloads: nothing of them steers a terminal.

It is run on a terminal of its own, and everything that it writes there is kept. Each part of the
screen that shows what a file says is a step of the way through it; a step counts only if words of
a payload really came to be seen.
"""

import collections.abc
import contextlib
import inspect
import os
import pkgutil
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Final, Literal, NewType, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

import filestore
import filestore.browse
import tui.formatting
from filestore import CODES, FilestoreError
from filestore.browse import KINDS
from tests.system.terminal_payloads import Planted, payloads, planted_stores
from tests.tui.raw_terminal import SETTLED_S, Screen, words_of
from tui.formatting import Span, all_quoted, one_line, quoted, span

TAG: Final = re.compile(r"q\d{3}z")
PLAIN: Final = frozenset("\n\r\t")
HIDDEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
WIDE: Final = (
    "漢字かな ﷽ שלום مرحبا e\u0301\u0302\u0303 👩\u200d👩\u200d👧 🇩🇪 \0 "
    "[bold]q901z[/bold] [/ [@click=app.bell]q902z[/]"
)
"""Wide, joined and combined characters, those from right to left, NUL, and markup."""


def leaks(output: bytes, planted: list[bytes]) -> list[str]:
    """What in the output could steer a terminal, turn text around, or hide."""
    shown = _without_joiners(output.decode("utf-8", "surrogateescape"))
    output = shown.encode("utf-8", "surrogateescape")
    raw = [
        f"raw: {one!r}"
        for one in planted
        if _is_unsafe(one.decode("latin")) and _stands_in(output, one)
    ]
    text = words_of(output)
    found = [at for at, one in enumerate(text) if _is_unsafe(one)]
    return raw + [repr(text[max(0, at - 30) : at + 30]) for at in found]


def _stands_in(output: bytes, payload: bytes) -> bool:
    """Whether a payload was written as it is.

    One that ends where a sequence begins is none where the whole sequence is a colour or a place
    of the screen's own: a word that is marked is followed by one.
    """
    if not payload.endswith(b"\x1b["):
        return payload in output
    return re.search(re.escape(payload) + rb"(?![\d;]*[mH])", output) is not None


def _is_unsafe(text: str) -> bool:
    seen = _without_joiners(text)
    return any(one not in PLAIN and unicodedata.category(one) in HIDDEN for one in seen)


def _without_joiners(text: str) -> str:
    """A text without the joiners of words and of emoji, which are text."""
    return "".join(one for at, one in enumerate(text) if not _is_joining(text, at))


def _is_joining(text: str, at: int) -> bool:
    """Whether a joiner stands between two signs that are seen."""
    beside = text[at - 1 : at] + text[at + 1 : at + 2] if text[at] in "\u200c\u200d" else ""
    return len(beside) == 2 and all(unicodedata.category(one)[0] in "LMNS" for one in beside)


# The store


@contextlib.contextmanager
def hostile_store() -> Iterator[tuple[Planted, str]]:
    """The planted store, indexed, in a folder with a bad name, and with drift in it."""
    before = dict(os.environ)
    try:
        with planted_stores() as planted:
            name = os.fsdecode(b"w" + b"".join(planted.names[60:68]))[:120]
            moved = planted.folder / name
            planted.work.rename(moved)
            planted.work, planted.store = moved, moved / "file_index"
            planted.chunked = planted.store / "chunked"
            _add_texts(planted)
            planted.run_quietly("sync")
            _drift(planted)
            yield planted, str(moved)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _add_texts(planted: Planted) -> None:
    long = "".join(planted.text * 40)[:65_536].replace("\n", " ").replace("\r", " ")
    (planted.chunked / "long.md").write_text(f"{long}\n")
    (planted.chunked / "wide.md").write_text(f"# {WIDE}\n\n{WIDE}\n", errors="replace")
    sides = f"<<<<<<< {planted.mixed}\nours\n=======\ntheirs\n>>>>>>> {planted.mixed}\n"
    (planted.chunked / "torn.md").write_text(f"{planted.mixed}\n{sides}")
    for number in (1, 2):
        (planted.chunked / f"twin{number}.md").write_text(f"A twin, {planted.mixed}\n")


def _drift(planted: Planted) -> None:
    """Changes that have a diff, files that are gone, and an evil branch."""
    files = sorted(os.listdir(os.fsencode(planted.chunked)))
    for name in [one for one in files if one.startswith(b"cn")][:60:3]:
        with open(os.path.join(os.fsencode(planted.chunked), name), "ab") as file:
            file.write(planted.mixed.encode() + b"\n")
    for name in [one for one in files if one.startswith(b"cn")][100:106]:
        os.unlink(os.path.join(os.fsencode(planted.chunked), name))
    with open(planted.chunked / "many.md", "a") as file:
        file.write(f"{planted.mixed}\n")


# The way through it

Way = Callable[[Screen, Planted], str]


def _tree(screen: Screen, _: Planted) -> str:
    return screen.press("=", *["page"] * 12, "home")


def _at_path(path: str, *keys: str, until: str = "") -> Way:
    def way(screen: Screen, _: Planted) -> str:
        seen = screen.press("1") + screen.command(f"show {path}")
        return seen + screen.see(quiet_s=SETTLED_S) + screen.press(*keys, until=until)

    return way


def _typed(*opening: str, until: str = "", then: str = "enter") -> Way:
    """Paste payloads into a line to type in."""

    def way(screen: Screen, planted: Planted) -> str:
        # An escape would end the paste and make keys of the rest; of several lines one is taken.
        texts = [one.replace("\x1b", "") for one in planted.text if len(one.splitlines()) == 1]
        screen.calm()
        screen.press(*opening, until=until)
        seen = screen.paste(" ".join(texts[100:]).encode())
        return seen + screen.press(then, "esc")

    return way


def _keys(*keys: str, until: str = "") -> Way:
    return lambda screen, _: screen.press(*keys, until=until)


def _panel(key: str) -> Way:
    return lambda screen, _: (
        screen.press(key, until="esc closes") + screen.press("page", "page", "esc")
    )


def _menu(*keys: str) -> Way:
    def way(screen: Screen, _: Planted) -> str:
        screen.calm()
        return screen.press(*keys, until="enter chooses") + screen.press("esc")

    return way


def _search(screen: Screen, _: Planted) -> str:
    screen.calm()
    screen.press("1", "s", "words")
    seen = screen.press("enter", until="1 ") + screen.press(*["page"] * 2)
    return seen + screen.press("esc", "esc")


def _verify(screen: Screen, _: Planted) -> str:
    screen.calm()
    screen.command("verify --level full", until="verified in full")
    return screen.press("home", "page") + _findings_of("unportable-name", "page")(screen, _)


def _findings_of(code: str, *keys: str) -> Way:
    """Look at what was found of one code."""

    def way(screen: Screen, _: Planted) -> str:
        screen.calm()
        screen.press("2", "/", code, "enter", "home")
        return screen.press("l", "down", "down", *keys) + screen.press("esc", "esc")

    return way


def _sides(screen: Screen, _: Planted) -> str:
    screen.calm()
    screen.press("2", "/", "torn.md", until="torn.md")
    screen.press("enter", "home", "l", "down")
    return screen.press("t", until="take our side") + screen.press("page", "esc")


def _plan(screen: Screen, _: Planted) -> str:
    screen.calm()
    screen.press("3", until="no plan")
    seen = screen.press("p", until="plan for everything")
    seen += screen.press("t", until="--write-files")
    return seen + screen.press("end", "enter", "page", "page", "end")


def _step(screen: Screen, _: Planted) -> str:
    return screen.press("home", "enter", *["down"] * 6, "page", "page", "end")


def _apply_question(screen: Screen, _: Planted) -> str:
    return screen.press("A", until="esc cancels") + screen.press("page", "esc")


SINKS: Final[dict[str, Way]] = {
    "head: the name of the store": lambda screen, _: words_of(screen.output),
    "rows of the tree": _tree,
    "title and text of a chunk": _at_path("chunked/many.md", "t"),
    "raw file": _at_path("chunked/many.md", "o", "tab", "page", "page"),
    "facts": _at_path("chunked/many.md", "f", "tab", "page", "page", "page", "end"),
    "a line of 64 KB": _at_path("chunked/long.md", "t", "o"),
    "wide characters": _at_path("chunked/wide.md", "t", "o", "f"),
    "a file that cannot be parsed": _at_path("chunked/bad1.md", "t", "f"),
    "neighbours": _at_path("chunked/twin1.md", "b", until="twin2.md"),
    "legend of the map": _keys("1", "m", until=" selected "),
    "filter of the tree": _typed("1", "/"),
    "hits": _search,
    "query": _typed("1", "s"),
    "rows of findings": _verify,
    "evidence with a diff": _findings_of("modified", "tab", "page", "page", "end"),
    "evidence of malformed files": _findings_of("malformed", "down", "down"),
    "evidence of what is gone": _findings_of("missing", "down"),
    "filter of findings": _typed("2", "/"),
    "menu of codes": _menu("2", "c"),
    "both sides of a conflict": _sides,
    "rows of the plan": _plan,
    "one step and its diff": _step,
    "question before applying": _apply_question,
    "changes": _keys("b", "b"),
    "command line and what it says": _typed(":", until="a vector id"),
    "palette": _typed("^p", until="words of a line", then="esc"),
    "menu of copies": _menu("1", "home", *["down"] * 3, "Y"),
    "help": _panel("f1"),
    "tasks": _panel("w"),
    "log": _panel("@"),
    "errors": _panel("E"),
}
"""Where on the screen something is shown that a stranger may have written."""
WITHOUT_WORDS: Final = frozenset({"menu of codes", "changes", "help", "tasks", "errors"})
"""Parts that may well show no word of a payload, but must not show its signs either."""


SOME: Final = (
    "head: the name of the store",
    "rows of the tree",
    "title and text of a chunk",
    "facts",
    "evidence with a diff",
    "rows of the plan",
)
"""The parts that show most payloads, for the ordinary run."""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
@pytest.mark.parametrize(
    "sinks", [SOME, pytest.param(tuple(SINKS), marks=pytest.mark.exhaustive)], ids=["some", "every"]
)
def test_no_payload_reaches_the_terminal(sinks: tuple[str, ...]) -> None:
    """Every part of the screen that shows what a file says shows it without a byte that could
    steer the terminal, turn text around or hide; nothing of it ends the inspector."""
    shown: dict[str, int] = {}
    with hostile_store() as (planted, folder):
        with Screen(folder, home=planted.folder) as screen:
            screen.see(until="Browse", quiet_s=1.0)
            for sink in sinks:
                seen = SINKS[sink](screen, planted) + screen.see(quiet_s=SETTLED_S)
                shown[sink] = len(set(TAG.findall(seen)))
                assert screen.process.poll() is None, f"{sink}: {seen[-9000:]}"
            code = screen.end()
            output = bytes(screen.output)
        with Screen(folder, home=planted.folder) as again:
            again.see(until="Browse", quiet_s=1.0)
            assert again.end() == 0
            output += bytes(again.output)
    table = "\n".join(f"| {sink} | {count} |" for sink, count in shown.items())
    print(f"| part of the screen | payloads seen |\n|---|---:|\n{table}\n{len(output):,} bytes")
    assert code == 0, words_of(output)[-5000:]
    assert not (found := leaks(output, planted.all)), found[:20]
    unseen = [sink for sink, count in shown.items() if not count and sink not in WITHOUT_WORDS]
    assert not unseen, table


@pytest.mark.parametrize(
    "bad", [b"\x1b[2Jq001z", b"\x9b31m", "\u202e".encode(), b"\x1b]0;x\x07", "\u200b".encode()]
)
def test_what_leaks_is_found(bad: bytes) -> None:
    """The judge of the test above is not blind."""
    assert leaks(b"\x1b[1;1H\x1b[38;2;1;2;3mwords" + bad, [b"\x1b[2Jq001z"])
    assert not leaks("\x1b[1;1H\x1b[?25lwords ␛[2J é 漢".encode(), [b"\x1b[2Jq001z"])


# Words alone


@cache
def _texts() -> st.SearchStrategy[str]:
    """Texts as a stranger would write them, beside any other ones."""
    signs = st.characters(codec=None)
    evil = st.sampled_from([one.decode("utf-8", "surrogateescape") for one in payloads()])
    return st.lists(st.one_of(signs, evil, st.sampled_from(WIDE)), max_size=4).map("".join)


NAMES: Final = {
    **vars(collections.abc),
    **{name: getattr(filestore, name) for name in dir(filestore)},
    **{name: getattr(filestore.browse, name) for name in dir(filestore.browse)},
}
CHOICES: Final[dict[str, Any]] = {
    "code": sorted(CODES),
    "kind": sorted(KINDS),
    "mode": ["hybrid", "vector", "keyword"],
    "level": ["status", "fast", "full", "deep"],
    "severity": ["E", "W", "I"],
    "severities": ["", "E", "W", "I"],
    "section": ["text", "raw", "facts", "neighbours", "map"],
    "page": ["browse", "verify", "repair"],
    "role": ["text", "title"],
    "neighbours_title.state": ["", "none", "asking"],
    "task_lines.state": ["running", "failed", "done"],
    "task_lines.started": ["10:00:00"],
    "page_name.title": ["2 Verify"],
    "key_words.label": ["^p"],
    "key_words.title": ["palette"],
}
"""What the program says itself, by the names of parameters and fields."""
DRAWN: Final = frozenset({"map_lines"})
"""Made of numbers that fit each other, and of no words of a file."""
PLURAL: Final = (Sequence, Iterable, Collection)


def _values(hint: Any, name: str = "") -> st.SearchStrategy[Any]:
    """Any value of a type; its words may say anything."""
    hint = hint.__supertype__ if isinstance(hint, NewType) else hint
    origin, inner = get_origin(hint), get_args(hint)
    if hint is str or hint is object or hint is Any:
        return st.sampled_from(CHOICES[name]) if name in CHOICES else _texts()
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, UnionType):
        return st.one_of([_values(one, name) for one in inner])
    if origin is tuple and inner[-1:] != (Ellipsis,):
        return st.tuples(*(_values(one, name) for one in inner))
    if origin in (tuple, list) or origin in PLURAL:
        return st.lists(_values(inner[0], name), min_size=1, max_size=3).map(tuple)
    if origin in (set, frozenset):
        return st.frozensets(_values(inner[0], name), max_size=3)
    if origin in (dict, Mapping):
        keys = _values(inner[0], "severity" if inner[1] is int else "")
        return st.dictionaries(keys, _values(inner[1]), max_size=3)
    if origin is Callable:
        return _values(inner[1], name).map(lambda made: lambda: made)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _objects(hint)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        int: st.integers(1, 200),
        float: st.floats(0, 1),
        bool: st.booleans(),
        NoneType: st.none(),
        bytes: st.binary(max_size=9),
        FilestoreError: st.builds(FilestoreError, _texts(), remedy=_texts()),
    }
    return simple[hint]


@cache
def _objects(kind: type[Struct]) -> st.SearchStrategy[Any]:
    if kind is Span:
        return st.builds(span, _texts())  # safe by what it is
    hints = get_type_hints(kind, localns=NAMES)
    given = {name: _values(hints[name], name) for name in kind.__struct_fields__}
    return st.builds(kind, **given)


@cache
def _arguments(words: Callable[..., Any]) -> st.SearchStrategy[dict[str, Any]]:
    hints = get_type_hints(words, localns=NAMES)
    hints.pop("return")
    given = {
        name: st.sampled_from(CHOICES[own])
        if (own := f"{words.__name__}.{name}") in CHOICES
        else _values(hint, name)
        for name, hint in hints.items()
    }
    return st.fixed_dictionaries(given)


def _words() -> Iterator[Callable[..., Any]]:
    """Every public function of the words that gives something to be drawn."""
    inside = pkgutil.iter_modules(tui.formatting.__path__, "tui.formatting.")
    for module in ("tui.formatting", *(one.name for one in inside)):
        found = vars(import_module(module)).items()
        for name, one in sorted(found, key=lambda item: item[0]):
            if inspect.isfunction(one) and one.__module__ == module and name[0] != "_":
                yield one


def _spans(value: object) -> Iterator[str]:
    if isinstance(value, Span):
        yield value.text
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _spans(one)


SHOWN: Final = [
    one
    for one in _words()
    if "Span" in str(get_type_hints(one, localns=NAMES)["return"]) and one.__name__ not in DRAWN
]


@pytest.mark.parametrize("words", SHOWN, ids=lambda one: f"{one.__module__[10:]}.{one.__name__}")
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_words_are_safe_whatever_a_file_says(
    words: Callable[..., Any], data: st.DataObject
) -> None:
    """No word made for the screen holds a sign that could steer it, whatever it is made of."""
    for text in _spans(words(**data.draw(_arguments(words)))):
        assert not _is_unsafe(text), repr(text)


@given(_texts())
def test_commands_and_one_line_are_safe(text: str) -> None:
    """A command line that is shown is safe to see, and is the same argument to a shell."""
    assert not _is_unsafe(one_line(text))
    assert not _is_unsafe(quoted(text))
    assert not _is_unsafe(all_quoted([text, text]))
