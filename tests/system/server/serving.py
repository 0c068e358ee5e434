"""`filestore serve` as a process, and what asks it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

import filestore

TIMEOUT_S = 60.0
PACKAGE = str(Path(filestore.__file__).parents[1])
"""Where the package lies that the tests run, installed or not: commands ask only a server of it."""


@dataclass
class Served:
    """A server that answers."""

    process: "subprocess.Popen[str]"
    url: str
    token: str
    errors: list[str]

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rstrip("/").rpartition(":")[2])

    @property
    def headers(self) -> dict[str, str]:
        """What a request has to bear."""
        return {"Authorization": f"Bearer {self.token}"}

    @contextlib.contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Who may ask it."""
        with httpx.Client(
            base_url=self.url, headers=self.headers, timeout=TIMEOUT_S, trust_env=False
        ) as client:
            yield client

    def ask(self, operation: str, **given: Any) -> Any:
        """What it answers to one request that is well."""
        with self.client() as client:
            response = client.post(f"/{operation}", json=given)
        assert response.status_code == 200, response.text
        return response.json()

    def raw(self) -> socket.socket:
        """A connection, for what no client sends."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)


@contextlib.contextmanager
def serving(folder: Path, *words: "str | Path", **environment: str) -> Iterator[Served]:
    """Serve stores until the block ends; then the server has ended well, and said nothing.

    Args:
        folder: Where the user's settings and the output lie.
        words: Of the command, behind `serve`.
        environment: Besides that of the tests.
    """
    command = [
        sys.executable,
        "-m",
        "filestore",
        "serve",
        *map(str, words),
        "--port",
        "0",
        "--json",
    ]
    given = os.environ | {"PYTHONPATH": PACKAGE, "XDG_CONFIG_HOME": str(folder)} | environment
    process = subprocess.Popen(
        command, cwd=folder, env=given, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()))
    reader.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "".join(errors)
        told = json.loads(line)
        path = told["token_file"]
        token = Path(path).read_text().strip() if path else environment.get("FILESTORE_TOKEN", "")
        yield Served(process, told["url"], token, errors)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) in (0, 130), "".join(errors)
    finally:
        process.kill()
        process.wait()
        reader.join()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
