"""By what way a text is copied, and what is said of it."""

import base64
import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tui.workers.terminal import MOST_BYTES, copy, programs, sequences

ALL = {"wl-copy": "1", "xclip": "1", "xsel": "1", "pbcopy": "1"}
PLAIN = re.compile(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\a")


def copied(sequence: str) -> str:
    """What a terminal takes from a sequence."""
    found = PLAIN.fullmatch(sequence)
    assert found is not None
    return base64.b64decode(found[1]).decode("utf-8", "surrogateescape")


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_terminal_gets_the_text(text: str) -> None:
    """A terminal takes exactly the text, whatever is in it."""
    assert copied(sequences(text, {})) == text


@given(st.text(st.characters(codec="utf-8"), max_size=2000))
def test_screen_passes_the_text_on_in_parts(text: str) -> None:
    """In GNU screen the parts, none too long for it, make the sequence of the outer terminal."""
    parts = sequences(text, {"STY": "1.a"}).split("\x1b\\")
    assert parts.pop() == ""
    assert all(part.startswith("\x1bP") and len(part) <= 764 for part in parts)
    assert copied("".join(part[2:] for part in parts)) == text


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_tmux_and_the_terminal_around_it_get_the_text(text: str) -> None:
    """tmux takes the plain sequence, and hands the wrapped one on."""
    plain, _, wrapped = sequences(text, {"TMUX": "/tmp/t,1,0"}).partition("\x1bPtmux;")
    assert copied(plain) == text
    assert wrapped.endswith("\x1b\\")
    assert copied(wrapped[:-2].replace("\x1b\x1b", "\x1b")) == text


def test_name_of_undecodable_bytes_is_copied_as_those() -> None:
    """A path that is not UTF-8 arrives as the bytes that it has on disk."""
    sequence = sequences(b"a\xff.md".decode("utf-8", "surrogateescape"), {})
    assert base64.b64decode(PLAIN.fullmatch(sequence)[1]) == b"a\xff.md"  # type: ignore[index]


def test_programs_need_their_display() -> None:
    """A program is tried only where the desktop that it speaks to is."""
    assert [one[0] for one in programs({}, ALL.get)] == ["pbcopy"]
    assert [one[0] for one in programs({"DISPLAY": ":0"}, ALL.get)] == ["xclip", "xsel", "pbcopy"]
    both = {"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}
    assert next(programs(both, ALL.get))[0] == "wl-copy"
    assert list(programs(both, {}.get)) == []


def copy_with(
    text: str, *, terminal: bool, works: Sequence[str], environment: dict[str, str] | None = None
) -> tuple[str, list[str], list[tuple[str, bytes]]]:
    """Copy where some programs work; what was said, written, and given to programs."""
    written: list[str] = []
    given_: list[tuple[str, bytes]] = []

    def run(command: Sequence[str], data: bytes) -> bool:
        given_.append((command[0], data))
        return command[0] in works

    said = copy(
        text,
        write=written.append if terminal else None,
        environment={"DISPLAY": ":0"} if environment is None else environment,
        which=ALL.get,
        run=run,
    )
    return said, written, given_


def test_first_program_that_works_is_named() -> None:
    """Where one fails the next is tried, and the one that took the text is said."""
    said, written, tried = copy_with("über", terminal=True, works=["xsel"])
    assert "copied by xsel" in said
    assert "terminal" in said
    assert [copied(one) for one in written] == ["über"]
    assert tried == [("xclip", "über".encode()), ("xsel", "über".encode())]


def test_long_text_is_not_sent_to_the_terminal() -> None:
    """What is too long for a terminal goes to a program only; without one that is said."""
    long = "x" * (MOST_BYTES + 1)
    said, written, _ = copy_with(long, terminal=True, works=["xclip"])
    assert (said, written) == ("copied by xclip", [])
    said, written, _ = copy_with(long, terminal=True, works=[])
    assert said.startswith("not copied: too long for the terminal")
    assert written == []


def test_nothing_that_takes_it_is_said() -> None:
    """Without terminal and program the person is told to save the text instead."""
    said, _, _ = copy_with("a", terminal=False, works=[])
    assert said.startswith("not copied")
    assert "save" in said
