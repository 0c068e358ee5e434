"""Reading files again: what no longer has its recorded bytes is named, and nothing else."""

import json
import os

import pytest

from filestore.core.hashing import content_hash

READ = """
import json, os, sys
from filestore.verify._files import differing_files
root, processes = sys.argv[1], int(sys.argv[2])
with open(sys.argv[3]) as listed:
    files = [(os.fsencode(path), bytes.fromhex(digest)) for path, digest in json.load(listed)]
asked = {"most_bytes": 1 << 24, "processes": processes, "on_share": lambda share: None}
with differing_files(root, files, **asked) as found:
    json.dump(found(), sys.stdout)
"""
LARGE = b"0123456789abcdef" * 8192
EXACT = b"x" * 65536


@pytest.fixture
def tree(tmp_path):
    """A tree with its recorded files: some at the top, some large, names of any bytes."""
    contents = {f"r{number % 7}/{number}.md": b"text %d" % number for number in range(60)}
    contents |= {"top.md": b"at the top", "large.md": LARGE, "r1/exact.md": EXACT, "empty.md": b""}
    contents |= {os.fsdecode(b"r\xff/caf\xe9.md"): b"not UTF-8"}
    for path, data in contents.items():
        target = tmp_path / "root" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return tmp_path / "root", {path: contents[path] for path in sorted(contents)}


@pytest.fixture
def differing_files(script, tmp_path):
    """Reads in a process of its own, which may fork."""

    def read(root, contents, processes):
        files = [(path, content_hash(data).hex()) for path, data in contents.items()]
        listed = tmp_path / "listed.json"
        listed.write_text(json.dumps(files))
        done = script(READ, root, str(processes), listed)
        assert done.code == 0, done.stderr
        return json.loads(done.stdout)

    return read


@pytest.mark.parametrize("processes", [1, 2])
def test_files_as_recorded_are_not_named(tree, differing_files, processes):
    """Small, large and empty files with their recorded bytes are fine."""
    assert differing_files(*tree, processes) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_what_differs_is_named(tree, differing_files, processes):
    """One flipped byte under old stamps, and whatever else is not the recorded file."""
    root, contents = tree
    for path in ("r3/3.md", "large.md", "r1/exact.md"):
        stamps = os.stat(root / path)
        data = bytearray(contents[path])
        data[-1] ^= 1
        (root / path).write_bytes(data)
        os.utime(root / path, ns=(stamps.st_atime_ns, stamps.st_mtime_ns))
    (root / "r4" / "4.md").unlink()
    (root / "r5" / "5.md").unlink()
    os.symlink(root / "top.md", root / "r5" / "5.md")
    (root / "r6" / "6.md").unlink()
    os.mkfifo(root / "r6" / "6.md")
    (root / "r0").rename(root / "elsewhere")
    os.symlink(root / "elsewhere", root / "r0")
    below = {path for path in contents if path.startswith("r0/")}
    single = {"r3/3.md", "large.md", "r1/exact.md", "r4/4.md", "r5/5.md", "r6/6.md"}
    assert set(differing_files(root, contents, processes)) == below | single


def test_nothing_to_read_needs_no_tree(tmp_path, differing_files):
    """A store whose tree is gone has no file to be read."""
    assert differing_files(tmp_path / "none", {}, 2) == []
