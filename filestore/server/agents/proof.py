"""One question to this server, started as a program starts it.

One rule: it gets nothing of ours but what such a program passes on: the command, few variables, and
a working folder that is none of the user's.
"""

import itertools
import json
import os
import shlex
import tempfile
import threading
from collections.abc import Mapping
from subprocess import PIPE
from typing import Any, Final

from filestore._version import __version__
from filestore.core.errors import FilestoreError
from filestore.core.safe_text import safe_text
from filestore.fs.programs import start_program

_PASSED_ON: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_LONGEST_S: Final = 60.0
_VERSION: Final = "2025-06-18"
_MOST_SHOWN: Final = 600
"""Characters of an answer."""


class NotAnsweredError(FilestoreError):
    """The server did not start, or did not answer."""


def ask_once(server: Mapping[str, Any], store: str) -> tuple[str, str]:
    """Start a server, ask what it has of a document, and end it: the question and the answer.

    Args:
        server: The entry: command, arguments, variables.
        store: The name of one of several stores; "" where there is one.

    Raises:
        NotAnsweredError: It does not answer; the message has what it printed.
    """
    words = [server["command"], *server["args"]]
    variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    with tempfile.TemporaryFile() as errors:
        try:
            process = start_program(
                words,
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                cwd=os.sep,
                env=variables | server.get("env", {}),
            )
        except OSError as error:
            raise NotAnsweredError(f"{words[0]} cannot be run: {error.strerror}") from error
        limit = threading.Timer(_LONGEST_S, process.kill)
        limit.start()
        try:
            with process:
                return _conversation(process, store)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            process.kill()
            process.wait()
            errors.seek(0)
            printed = errors.read(4_000).decode(errors="replace").split("\n")
            why = next((f": {line}" for line in reversed(printed) if line.strip()), "")
            raise NotAnsweredError(
                f"the server does not answer, so nothing was written{why}",
                remedy=f"run it yourself: {shlex.join(words)}",
            ) from error
        finally:
            limit.cancel()


def _conversation(process: Any, store: str) -> tuple[str, str]:
    numbers = itertools.count(1)

    def send(method: str, **more: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, **more}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()

    def ask(method: str, **params: Any) -> Any:
        number = next(numbers)
        send(method, id=number, params=params)
        for line in process.stdout:
            message = json.loads(line)
            if message.get("id") == number:
                return message["result"]
        raise LookupError(method)

    ask(
        "initialize",
        protocolVersion=_VERSION,
        capabilities={},
        clientInfo={"name": "filestore --install", "version": __version__},
    )
    send("notifications/initialized")
    documents = ask("resources/list")["resources"]
    which = {"store": store} if store else {}
    if not documents:
        answer = ask("tools/call", name="status", arguments=which)
        return "status", _shown(answer)
    name, _ = os.path.splitext(os.path.basename(documents[0]["name"]))
    question = name.replace("-", " ").replace("_", " ")
    given = {"query": question, "k": 1, **which}
    return question, _shown(ask("tools/call", name="search", arguments=given))


def _shown(result: Any) -> str:
    text = result["content"][0]["text"]
    cut = text[:_MOST_SHOWN] + ("…" if len(text) > _MOST_SHOWN else "")
    return safe_text(cut)
