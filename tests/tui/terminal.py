"""The installed inspector on a real terminal, under tmux: typed at, looked at, killed."""

import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from typing import Self

WAIT_S = 30.0
ESCAPE_S = 0.5


def installed() -> str:
    """The command of the Python in use.

    Raises:
        AssertionError: The package is not installed.
    """
    found = shutil.which("filestore", path=os.path.dirname(sys.executable))
    assert found is not None, "pip install ."
    return found


class Terminal:
    """One tmux server with one session, ended with the context."""

    def __init__(
        self,
        command: list[str],
        folder: str,
        *,
        columns: int = 100,
        rows: int = 30,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._name = f"filestore-{uuid.uuid4().hex[:12]}"
        values = {
            "XDG_STATE_HOME": os.path.join(folder, ".state"),
            "XDG_CONFIG_HOME": os.path.join(folder, ".configuration"),
            "TERM": "screen-256color",
            **(environment or {}),
        }
        # pytest's own width is not that of this terminal.
        unset = [word for name in ("NO_COLOR", "COLUMNS", "LINES") for word in ("-u", name)]
        words = ["env", *unset, *(f"{key}={value}" for key, value in values.items())]
        line = f"{shlex.join([*words, *command])}; echo ENDED $?; sleep 1000"
        self._tmux(
            *("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows)),
            *("-c", folder, line),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server", check=False)

    def _tmux(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._name, *words], capture_output=True, check=False, timeout=WAIT_S
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.decode(errors="replace")

    def type(self, *keys: str) -> None:
        """Press keys, as tmux names them."""
        for key in keys:
            self._tmux("send-keys", key)
            if key == "Escape":
                time.sleep(ESCAPE_S)  # else it and what follows are one key

    def press(self, key: str, *words: str, gone: str = "") -> str:
        """Press a key and wait for what it brings; returns the screen."""
        self.type(key)
        return self.until(*words, gone=gone)

    def write(self, text: str) -> None:
        """Type words."""
        self._tmux("send-keys", "-l", text)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def picture(self) -> str:
        """What is on the screen."""
        return self._tmux("capture-pane", "-p")

    def painted(self) -> str:
        """What is on the screen, with the sequences of its colours."""
        return self._tmux("capture-pane", "-p", "-e")

    def has_left(self) -> bool:
        """Whether the screen of the shell is seen again, with its cursor and without a mouse."""
        flags = "#{alternate_on}#{mouse_any_flag}#{cursor_flag}"
        return self._tmux("display-message", "-p", flags).strip() == "001"

    def ended(self) -> int:
        """Wait for the end of the program; its exit code."""
        seen = self.until("ENDED ")
        return int(seen.partition("ENDED ")[2].split()[0])

    def title(self) -> str:
        """The title of the terminal, which a document must never set."""
        return self._tmux("display-message", "-p", "#{pane_title}").strip()

    def pid(self) -> int:
        """The shell in which the program runs."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def until(self, *words: str, gone: str = "", wait_s: float = WAIT_S) -> str:
        """Wait until all words are on the screen, and another one is not; returns the screen."""
        deadline = time.monotonic() + wait_s
        while True:
            seen = self.picture()
            if all(word in seen for word in words) and not (gone and gone in seen):
                return seen
            assert time.monotonic() < deadline, f"{words} not seen (gone: {gone!r}):\n{seen}"
            assert "Traceback" not in seen, seen
            time.sleep(0.05)

    def cursor(self, *words: str, row: str = "") -> tuple[int, str]:
        """Wait for words, and for the cursor of a list on a row; the line that it is on, its words.

        A screen is drawn in parts: what is looked for is waited for.
        """
        deadline = time.monotonic() + WAIT_S
        while True:
            seen = self.until(*words)
            for number, line in enumerate(seen.splitlines()):
                told = line.partition("│")[0].strip("> ").rstrip()
                if line.startswith(">") and told.startswith(row):
                    return number, told
            assert time.monotonic() < deadline, f"no cursor on {row!r}:\n{seen}"
