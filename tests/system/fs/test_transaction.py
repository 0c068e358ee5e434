"""Files staged beside their places: all of them, or none is left."""

import os
import threading
import time

import pytest

from filestore.fs import disk
from filestore.fs.transaction import content, stage_all


def test_a_thread_whose_start_was_interrupted_leaves_nothing(tmp_path, monkeypatch):
    """An executor forgets a thread that Ctrl-C hit while it started; what it writes goes, too."""
    really_start, really_write = threading.Thread.start, disk.write_all
    started = []

    def interrupted(thread):
        really_start(thread)
        started.append(thread)
        if len(started) == 2:
            raise KeyboardInterrupt

    def slow(descriptor, data):
        time.sleep(0.2)
        really_write(descriptor, data)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    monkeypatch.setattr(disk, "write_all", slow)
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(KeyboardInterrupt):
            stage_all(root, {f"note{number}.md": content(b"Peat.\n") for number in range(40)})
        assert not os.listdir(tmp_path)
        for thread in started:
            thread.join()
        assert not os.listdir(tmp_path)
    finally:
        os.close(root)
