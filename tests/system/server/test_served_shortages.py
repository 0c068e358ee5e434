"""What becomes of commands where a server has run out of threads or files."""

import sys
from pathlib import Path

import pytest

from tests.conftest import Script

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux tells enough of a socket"
)


def test_without_threads_or_files_commands_run_by_themselves(script: Script, place: Path) -> None:
    """A server that has none left at the moment answers again once it has."""
    done = script(USED_UP, place)
    assert (done.code, done.stdout.split()) == (0, ["True", "False", "False", "True"]), done.stderr


USED_UP = """
import os, resource, sys, threading
from filestore.server import wire
from filestore.cli.serve import run_words, streams
from filestore.server.listening import Listener
from filestore.server.stores import Access, Stores
os.chdir(sys.argv[1])
def ask():
    print(wire.reply_to(["search", "rent"]) is not None, flush=True)
with Stores.open(["."], Access()) as stores, streams(), Listener(stores, run_words):
    ask()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    used = int(open("/proc/self/statm").read().split()[0])
    limit = used * resource.getpagesize() + (1 << 28)
    before = threading.stack_size(1 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))
    ask()
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    threading.stack_size(before)
    reader, writer = os.pipe()
    if not os.fork():
        os.read(reader, 1)
        ask()
        os._exit(0)
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
    held = []
    try:
        while True:
            held.append(os.dup(reader))
    except OSError:
        os.write(writer, b"!")
    os.wait()
    for one in held:
        os.close(one)
    ask()
"""
