"""Work that a forked child shares: every block is done, whatever becomes of the child."""

import json

import pytest

WORK = """
import json, os, sys, time
from filestore.fs.programs import shared
processes, mishap = int(sys.argv[1]), sys.argv[2]
own = os.getpid()

def work(number):
    if mishap == "child dies" and os.getpid() != own:
        os._exit(9)
    if mishap == "child fails" and os.getpid() != own:
        raise RuntimeError("in the child")
    if mishap == "given up" and os.getpid() != own:
        time.sleep(600)
    # More than a pipe holds, so that a child waits for its reader.
    return [number, "x" * 100_000]

with shared(40, work, processes=processes) as results:
    if mishap == "given up":
        raise RuntimeError("in the parent")
    json.dump([number for number, _ in results()], sys.stdout)
"""


@pytest.mark.parametrize("mishap", ["none", "child dies", "child fails"])
@pytest.mark.parametrize("processes", ["1", "2"])
def test_every_block_is_done_in_order(script, processes, mishap):
    """The values come in the order of their blocks, also those of a child that died."""
    done = script(WORK, processes, mishap)
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout) == list(range(40))


def test_work_that_is_given_up_waits_for_nobody(script):
    """An error before the results are asked for ends the child, whatever it is doing."""
    done = script(WORK, "2", "given up")
    assert done.code == 1
    assert "in the parent" in done.stderr
