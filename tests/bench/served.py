"""``filestore serve`` as a process of its own."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import measure

TOKEN = secrets.token_urlsafe(32)


@dataclass
class Server:
    """A process that serves."""

    process: "subprocess.Popen[str]"
    host: str
    port: int

    @property
    def memory_bytes(self) -> int:
        """What it has in memory now."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def processor_s(self) -> float:
        """The processor time that it took until now, of all its threads."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def serving(root: str, *words: str) -> Iterator[Server]:
    """A server of one store, until the block ends."""
    command = measure.filestore("serve", root, *words, "--port", "0", "--json")
    process = subprocess.Popen(
        command, env=os.environ | {"FILESTORE_TOKEN": TOKEN}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = urlsplit(json.loads(process.stdout.readline())["url"])
        assert url.hostname is not None
        assert url.port is not None
        yield Server(process, url.hostname, url.port)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
