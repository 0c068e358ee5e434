"""The terminal: what it sends, as keys, sizes and the mouse; and copying through it.

Textual reads it in a thread that ends at the first byte that is not UTF-8 and at the first number
that is not a character; no key works after that. What it does not know, such as the late reply to
the program before, it types as keys. One rule: no input ends the thread; input without meaning is
dropped.

A copy goes through the terminal, which works over ssh too, and by a program of the desktop: no
terminal confirms it, so both ways are used where both exist. Textual's `copy_to_clipboard` knows
neither multiplexers nor limits. One rule: the user sees which way was used.
"""

import base64
import contextlib
import os
import re
import selectors
import subprocess
import tempfile
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from textual import constants
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.keys import Keys

from filestore.browse import find_program, run_program

if TYPE_CHECKING:
    from textual.message import Message

_EVERY_S: Final = 0.1
"""How often to check whether an escape was a key by itself, and whether to end."""
_GONE_WITHIN_S: Final = 5.0
"""How long the hang-up thread may take to end the inspector once the terminal is gone."""
_MOST_CELLS: Final = 65_535
"""A terminal has no more columns or rows."""
_REMOTE_ESCAPE_S: Final = 0.3
"""How long the rest of a sequence may take behind its escape, over a network."""
_WHOLE_S: Final = 2.0
"""How long a sequence may take to become whole; then it is dropped, and keys are keys again."""
_ESCAPE: Final = "\x1b"
_BEGINS: Final = "\x1b\x90\x98\x9b-\x9f"
"""What begins a sequence; the last ones are an escape and a letter in one."""
_CONTROL: Final = f"\x00-\x1f\x7f{_BEGINS}"
_NOT_UTF8: Final = re.compile(
    # Behind another that is none it may be of the same letter, but for the end of a string.
    "(?:(?<![\udc80-\udcff])|(?<=[\0-\x7f]\udc9c))([\udc90\udc98\udc9b-\udc9f])|[\udc80-\udcff]"
)
_STRING: Final = rf"(?:\x1b\](?=[0-9lLI])|\x9d|\x1b[PX^_]|[\x90\x98\x9e\x9f])[^{_CONTROL}]*"
_WHOLE: Final = re.compile(
    # A string ends with its terminator, and with whatever else cannot be in it.
    rf"(?P<reply>{_STRING}(?:\x07|\x1b\\|\x9c|(?=[{_CONTROL}])(?!\x1b\Z))|\x1b\\|\x9c)"
    r"|(?P<sequence>(?:\x1b\[|\x9b)(?:"
    r"M[^\x00-\x1f]{3}|M[^\x00-\x1f]{0,2}(?=[\x00-\x1f])"  # the mouse of old
    r"|\[(?:[ -~]|(?=[^ -~]))|\d+\$"  # keys of the Linux console, and of rxvt
    r"|(?![M\[])[ -?]*(?:[@-~]|(?=[^ -~])))"
    r"|\x1bO(?:[ -~]|(?=[^ -~])))"
    rf"|(?P<key>[^{_BEGINS}]+|\x1b(?=[{_BEGINS}])|\x1b[^{_BEGINS}\[O\]PX^_\\]|\x1b\](?=[^0-9lLI]))",
    re.DOTALL,
)
_BEHIND_ESCAPE: Final = re.compile(r"\[[0-?A-Z]|\][0-9lLI]|[PX^_][!-~]|O[ -~]\Z")
"""The rest of a sequence that came so late that its escape was taken for a key."""
_OPENING: Final = frozenset("[]PX^_")
"""By itself behind an escape, a key or the next piece of a sequence."""


class Parser(XTermParser):
    """Drops input without meaning."""

    _types = True
    """Whether single characters are keys, and not what is left of an unknown sequence."""

    def take(self, text: str, *, is_sequence: bool = False) -> "list[Message]":
        """The events of keys, or of one sequence, which is whole: nothing more is awaited."""
        self._types = not is_sequence
        events = list(self.feed(text))
        if self._timeout_time is not None:
            self._timeout_time = 0.0
            events += self.tick()
        return events

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> list[Key]:
        if len(sequence) == 1 and not self._types:
            return []
        try:
            keys = list(super()._sequence_to_key_events(sequence, alt))
        except (ValueError, OverflowError):
            # A number that is no character, or unexpected parts of it.
            return [Key(Keys.Ignore, sequence)]
        # Half of a character, which no file and no terminal takes.
        is_half = any("\ud800" <= (key.character or "") <= "\udfff" for key in keys)
        return [Key(Keys.Ignore, sequence)] if is_half else keys

    def parse_mouse_code(self, code: str) -> "Message | None":
        """The event, or None where it is on no cell of the screen."""
        try:
            event: Any = super().parse_mouse_code(code)
        except (ArithmeticError, ValueError):
            # A screen without a pixel.
            return None
        is_far = event is not None and max(event.screen_x, event.screen_y) > _MOST_CELLS
        return None if is_far else event


class Keyboard:
    """Bytes in, events out."""

    def __init__(
        self,
        driver: Driver,
        *,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._decode = getincrementaldecoder("utf-8")("surrogateescape").decode
        self._parser = Parser(driver._debug)
        self._take: Callable[[Any], None] = driver.process_message
        self._clock = clock
        is_remote = "SSH_CONNECTION" in environment and "ESCDELAY" not in environment
        self._escape_s = _REMOTE_ESCAPE_S if is_remote else constants.ESCAPE_DELAY
        self._rest = ""
        """The beginning of a sequence that is not whole yet."""
        self._until = 0.0
        """When the rest is dropped, and how long an escape waits for one."""
        self._escaped_until = 0.0
        """How long what an escape began may still come behind it."""
        self._opening = ""
        """What came by itself behind that escape, and was taken for a key, too."""
        self._is_pasted = False

    def feed(self, sent: bytes) -> None:
        """Take what was sent; what is not UTF-8 becomes replacement characters."""
        # A byte that is not UTF-8: the beginning of a sequence in eight bits, or no character.
        came = _NOT_UTF8.sub(
            lambda match: chr(ord(match[1]) - 0xDC00) if match[1] else "\ufffd", self._decode(sent)
        )
        if not came:
            return
        now = self._clock()
        # A person types one character at a time, which prolongs nothing.
        opening = self._opening if len(came) > 1 else ""
        is_behind = now < self._escaped_until
        if is_behind and _BEHIND_ESCAPE.match(opening + came):
            came = _ESCAPE + opening + came
        self._opening = came if is_behind and came in _OPENING else ""
        self._escaped_until = self._escaped_until if self._opening else 0.0
        is_new = len(came) > 1 or self._rest in ("", _ESCAPE)
        text, at = self._rest + came, 0
        while whole := _WHOLE.match(text, at):
            at = whole.end()
            sent_text = f"\x1b[{whole[0][1:]}" if whole[0][0] == "\x9b" else whole[0]
            if whole["key"] is None and sent_text in (BRACKETED_PASTE_START, BRACKETED_PASTE_END):
                self._is_pasted = sent_text == BRACKETED_PASTE_START
            elif whole["reply"] is not None or (self._is_pasted and sent_text[0] == _ESCAPE):
                continue
            is_sequence = whole["sequence"] is not None
            for event in self._parser.take(sent_text, is_sequence=is_sequence):
                self._take(event)
        self._rest = text[at:]
        if self._rest == _ESCAPE:
            self._until = now + self._escape_s
        elif self._rest and is_new:
            self._until = now + _WHOLE_S
            if not self._rest.startswith(("\x1b[", "\x9b")):
                # Of a string nothing is needed but that it has begun, and may be about to end.
                self._rest = self._rest[:3] + _ESCAPE * (self._rest[3:].endswith(_ESCAPE))

    def tick(self) -> None:
        """Take an escape for a key, and drop what began, now that nothing followed it."""
        now = self._clock()
        if not self._rest or now < self._until:
            return
        is_escape, self._rest = self._rest.endswith(_ESCAPE), ""
        if is_escape:
            self._escaped_until = now + _WHOLE_S
            # Whose end was lost, a paste would take every key.
            self._is_pasted = False
            for text in (BRACKETED_PASTE_END, _ESCAPE):
                for event in self._parser.take(text, is_sequence=text != _ESCAPE):
                    self._take(event)


class TerminalDriver(LinuxDriver):
    """Reads from a terminal, and gives it back."""

    @property
    def is_lent(self) -> bool:
        """Whether another program has the terminal, such as an editor."""
        return not self._auto_restart

    def resume_application_mode(self) -> None:
        """Take the terminal again; what was typed meanwhile was not for this screen."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self.fileno, termios.TCIFLUSH)
        super().resume_application_mode()

    def give_back(self) -> None:
        """Restore the terminal from any thread, where the main one does not come to it."""
        # Textual leaves this out where it cannot handle signals, as in any other thread.
        self._disable_mouse_support()
        self.suspend_application_mode()

    def _run_input_thread(self) -> None:
        keyboard = Keyboard(self)
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_EVERY_S):
                    keyboard.feed(self._read())
                keyboard.tick()

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, 4096)
        except OSError:
            # The terminal is gone: the hang-up thread ends the inspector.
            if self.exit_event.wait(_GONE_WITHIN_S):
                return b""
            raise


MOST_BYTES: Final = 100_000
"""Of a text for the terminal; many take no more, and some show what they did not take."""
PATIENCE_S: Final = 1.0
_SCREEN_PART: Final = 700
"""GNU screen forwards no more than 768 bytes at once."""

Run = Callable[[Sequence[str], bytes], bool]


def sequences(text: str, environment: Mapping[str, str]) -> str:
    """What is written to a terminal so that it copies a text, "" for one that is too long.

    In a multiplexer the outer terminal gets it as well; see tmux(1), "allow-passthrough".
    """
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > MOST_BYTES:
        return ""
    plain = f"{_ESCAPE}]52;c;{base64.b64encode(data).decode('ascii')}\a"
    if environment.get("TMUX"):
        inner = plain.replace(_ESCAPE, 2 * _ESCAPE)
        return f"{plain}{_ESCAPE}Ptmux;{inner}{_ESCAPE}\\"
    if environment.get("STY"):
        return "".join(
            f"{_ESCAPE}P{plain[first : first + _SCREEN_PART]}{_ESCAPE}\\"
            for first in range(0, len(plain), _SCREEN_PART)
        )
    return plain


def programs(
    environment: Mapping[str, str], which: Callable[[str], str | None] = find_program
) -> Iterator[tuple[str, ...]]:
    """The commands that take a text from standard input here, best first."""
    known = (
        ("WAYLAND_DISPLAY", ("wl-copy",)),
        ("DISPLAY", ("xclip", "-selection", "clipboard")),
        ("DISPLAY", ("xsel", "--clipboard", "--input")),
        ("", ("pbcopy",)),
    )
    for variable, command in known:
        if (not variable or environment.get(variable)) and which(command[0]):
            yield command


def copy(
    text: str,
    *,
    write: Callable[[str], None] | None,
    environment: Mapping[str, str],
    which: Callable[[str], str | None] = find_program,
    run: Run | None = None,
) -> str:
    """Copy a text.

    Args:
        text: Anything.
        write: Writes to the terminal; None where there is none.
        environment: The variables that show what is available.
        which: Finds a program.
        run: Runs a command with an input; whether it succeeded.

    Returns:
        How it was copied; if it was not, what to do.
    """
    ways, run = [], run or _run
    data = text.encode("utf-8", "surrogateescape")
    program = next((one[0] for one in programs(environment, which) if run(one, data)), "")
    if program:
        ways.append(f"copied by {program}")
    sequence = sequences(text, environment)
    if write is not None and sequence:
        write(sequence)
        ways.append("sent to the terminal, which does not confirm it")
    if ways:
        return " and ".join(ways)
    size = f"too long for the terminal ({len(text):,} characters), and " if not sequence else ""
    return f"not copied: {size}neither wl-copy, xclip, xsel nor pbcopy works here; save it instead"


def _run(command: Sequence[str], data: bytes) -> bool:
    """Run a command; a program that stays to serve the text inherits no open file of ours."""
    with (
        tempfile.TemporaryFile() as given,
        contextlib.suppress(OSError, subprocess.SubprocessError),
    ):
        given.write(data)
        given.seek(0)
        done = run_program(
            command,
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
        )
        return done.returncode == 0
    return False
