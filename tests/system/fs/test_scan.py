"""What must hold of walking a real tree: the same in one process or two, and nothing followed."""

import json
import os

import pytest

from filestore.fs.disk import stat_values
from filestore.fs.scan import MAX_DEPTH, scan_tree
from filestore.fs.stats import open_bulk_stat, unpack_stat

SCAN = """
import json, os, sys
from filestore.fs.scan import scan_tree
root, processes, user = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.chdir(root)
if user:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
recorded = scan_tree(".").folders
exec(sys.argv[4])
tree = scan_tree(".", processes=processes, recorded=recorded)
folders = {path: [packed.names.hex(), packed.stats.hex()] for path, packed in tree.folders.items()}
json.dump({"folders": folders, "problems": tree.problems}, sys.stdout)
"""
NO_LISTENER = 65534


@pytest.fixture
def scan(script):
    """A walk in a process of its own, which may fork and give up its rights."""

    def walk(root, *, processes=1, unprivileged=False, after=""):
        user = NO_LISTENER if unprivileged and os.geteuid() == 0 else 0
        done = script(SCAN, root, str(processes), str(user), after)
        assert done.code == 0, done.stderr
        return json.loads(done.stdout)

    return walk


def write(path, text="text"):
    """Make a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def fill(root, shape):
    """A tree of more than enough entries for two processes."""
    if shape == "flat":
        for number in range(150):
            write(root / f"{number}.md", "x" * number)
    elif shape == "tree":
        for number in range(100):
            write(root / f"r{number}" / "chunk1.md", "x" * number)
            write(root / f"r{number}" / "deep" / "er" / "note.md")
    else:
        for number in range(80):
            write(root / f"{number}.md")
            write(root / f"r{number}" / "chunk1.md")
        write(root / "zz last.md")
        (root / "empty").mkdir()
    os.symlink("nowhere", root / "link.md")
    write(root / os.fsdecode(b"caf\xe9") / os.fsdecode(b"\xff\xfe.md"))


@pytest.mark.parametrize("shape", ["tree", "flat", "both"])
def test_two_processes_see_what_one_sees(tmp_path, scan, shape):
    """Names, stats and their order are the same however many processes walk."""
    fill(tmp_path / "root", shape)
    one = scan(tmp_path / "root")
    two = scan(tmp_path / "root", processes=2)
    assert two == one
    assert one["problems"] == {}
    assert len(one["folders"]) > (1 if shape == "flat" else 80)


@pytest.mark.parametrize("shape", ["tree", "flat", "both"])
def test_what_was_expected_does_not_hide_what_changed(tmp_path, scan, shape):
    """A child that sends only what is not as recorded leads to the tree as it is now."""
    fill(tmp_path / "root", shape)
    change = (
        "open('a new.md', 'w').close(); os.makedirs('r7', exist_ok=True);"
        "open('r7/chunk1.md', 'w').close(); os.makedirs('r8', exist_ok=True);"
        "os.rename('r8', 'other'); os.unlink('link.md')"
    )
    two = scan(tmp_path / "root", processes=2, after=change)
    assert two == scan(tmp_path / "root", after="recorded = {}")
    assert b"a new.md".hex() in two["folders"][""][0]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_walk_sees_every_file_with_its_own_stat(tmp_path, scan, processes):
    """What is packed is what stat says of each file."""
    fill(tmp_path / "root", "both")
    found = scan(tmp_path / "root", processes=processes)["folders"]
    seen = {}
    for folder, (names, stats) in found.items():
        entries = bytes.fromhex(stats)
        for number, name in enumerate(bytes.fromhex(names).split(b"\0")):
            path = os.path.join(os.fsencode(folder), name)
            seen[path] = unpack_stat(entries[40 * number : 40 * number + 40])
    expected = {}
    for parent, _, names in os.walk(os.fsencode(tmp_path / "root")):
        for name in names:
            status = os.lstat(os.path.join(parent, name))
            path = os.path.relpath(os.path.join(parent, name), os.fsencode(tmp_path / "root"))
            expected[path] = (
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
                status.st_ino,
                status.st_mode,
            )
    assert seen == expected


def test_a_tree_that_did_not_change_is_seen_the_same(tmp_path):
    """Two walks of a quiet tree are equal, byte for byte."""
    fill(tmp_path / "root", "tree")
    assert scan_tree(str(tmp_path / "root")) == scan_tree(str(tmp_path / "root"))


def test_symbolic_links_are_entries_and_never_followed(tmp_path):
    """A link to a folder outside brings none of its files in, nor does one to the tree itself."""
    write(tmp_path / "outside" / "secret.md")
    write(tmp_path / "root" / "r" / "chunk1.md")
    os.symlink(tmp_path / "outside", tmp_path / "root" / "link")
    os.symlink(tmp_path / "root", tmp_path / "root" / "r" / "loop")
    os.symlink("gone", tmp_path / "root" / "dangling.md")
    tree = scan_tree(str(tmp_path / "root"))
    assert {path: sorted(packed.entries()) for path, packed in tree.folders.items()} == {
        "": ["dangling.md", "link"],
        "r": ["chunk1.md", "loop"],
    }
    assert tree.problems == {}


def test_a_root_that_is_a_link_is_refused(tmp_path):
    """The folder of chunk files must be one itself."""
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link")
    with pytest.raises(OSError, match=r"\[Errno"):
        scan_tree(str(tmp_path / "link"))


def test_a_root_that_is_not_there_is_told(tmp_path):
    """A missing root is an error of its own, not an empty tree."""
    with pytest.raises(FileNotFoundError):
        scan_tree(str(tmp_path / "none"))


@pytest.mark.parametrize("processes", [1, 2])
def test_an_unreadable_folder_is_a_problem_and_the_rest_is_seen(tmp_path, scan, processes):
    """What lies below it is unknown; files beside it are found as ever."""
    root = tmp_path / "root"
    fill(root, "both")
    write(root / "closed" / "below" / "chunk1.md")
    write(root / "zz closed" / "chunk1.md")
    root.chmod(0o755)
    for name in ("closed", "zz closed"):
        (root / name).chmod(0)
    try:
        found = scan(root, processes=processes, unprivileged=True)
    finally:
        for name in ("closed", "zz closed"):
            (root / name).chmod(0o755)
    assert sorted(found["problems"]) == ["closed", "zz closed"]
    assert all("denied" in reason for reason in found["problems"].values())
    assert "r79" in found["folders"]
    assert "closed/below" not in found["folders"]


def test_a_folder_that_lists_but_does_not_stat_is_a_problem_for_each_entry(tmp_path, scan):
    """Without the right to search a folder its names are known and nothing else."""
    root = tmp_path / "root"
    write(root / "r" / "chunk1.md")
    root.chmod(0o755)
    (root / "r").chmod(0o444)
    try:
        found = scan(root, unprivileged=True)
    finally:
        (root / "r").chmod(0o755)
    assert list(found["problems"]) == ["r/chunk1.md"]
    assert found["folders"] == {}


def test_folders_nested_too_deep_are_a_problem(tmp_path):
    """A hostile tree ends the walk at a bound, with the path where it stopped."""
    deepest = tmp_path / "root" / "/".join(["d"] * (MAX_DEPTH + 1))
    write(deepest / "chunk1.md")
    write(deepest.parent / "note.md")
    tree = scan_tree(str(tmp_path / "root"))
    (path,) = tree.problems
    assert path == "/".join(["d"] * (MAX_DEPTH + 1))
    assert [folder.count("/") for folder in tree.folders] == [MAX_DEPTH - 1]


def test_nothing_is_opened_but_folders(tmp_path):
    """A pipe in the tree is an entry like any other and blocks nothing."""
    (tmp_path / "root").mkdir()
    os.mkfifo(tmp_path / "root" / "pipe.md")
    write(tmp_path / "root" / "a.md")
    tree = scan_tree(str(tmp_path / "root"))
    assert sorted(tree.folders[""].entries()) == ["a.md", "pipe.md"]


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("files", [3, 150])
def test_stamps_beyond_64_bits_are_seen(tmp_path, scan, processes, files):
    """A file from the year 2400 or from before 1970 hides nothing and ends no walk."""
    root = tmp_path / "root"
    for number in range(100):
        write(root / f"r{number}" / "chunk1.md")
    for number in range(files):
        write(root / "r7" / f"{number}.md")
    try:
        os.utime(root / "r7" / "0.md", (13_569_465_600, 13_569_465_600))
        os.utime(root / "r7" / "1.md", (-86_400, -86_400))
    except (OSError, OverflowError):
        pytest.skip("this file system has no such stamps")
    found = scan(root, processes=processes)
    names, stats = (bytes.fromhex(part) for part in found["folders"]["r7"])
    entries = dict(zip(names.split(b"\0"), range(0, len(stats), 40), strict=True))
    stamps = {name: unpack_stat(stats[at : at + 40])[1] for name, at in entries.items()}
    assert len(stamps) == files + 1
    assert stamps[b"0.md"] == min(os.lstat(root / "r7" / "0.md").st_mtime_ns, 2**63 - 1)
    assert stamps[b"1.md"] == os.lstat(root / "r7" / "1.md").st_mtime_ns


def test_files_between_folders_are_seen_with_their_own_stats(tmp_path):
    """A large folder of files and folders in turns mixes none of them up."""
    root = tmp_path / "root"
    for number in range(100):
        write(root / f"{number:03}.md", "x" * number)
        write(root / f"{number:03}.md.d" / "chunk1.md")
    tree = scan_tree(str(root))
    sizes = {name: unpack_stat(entry)[0] for name, entry in tree.folders[""].entries().items()}
    assert sizes == {f"{number:03}.md": number for number in range(100)}
    assert len(tree.folders) == 101


def test_the_bulk_way_says_what_lstat_says(tmp_path):
    """It tells the same of every kind of entry, and None where one of them is gone."""
    write(tmp_path / "file.md", "text")
    (tmp_path / "folder").mkdir()
    os.symlink("nowhere", tmp_path / "link.md")
    os.mkfifo(tmp_path / "pipe.md")
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        bulk = open_bulk_stat(handle)
        if bulk is None:
            pytest.skip("this platform has no bulk stat")
        names = ["file.md", "folder", "link.md", "pipe.md"] * 700
        expected = [value for name in names for value in stat_values(os.lstat(tmp_path / name))]
        assert list(bulk(handle, [name.encode() for name in names])) == expected
        assert bulk(handle, [b"file.md", b"gone.md"]) is None
        assert list(bulk(handle, [])) == []
    finally:
        os.close(handle)
