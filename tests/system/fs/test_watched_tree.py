"""What must hold of a walk that is kept: it always gives what a walk of now would give."""

import contextlib
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from filestore.core.paths import ChunkPath
from filestore.extract.tree_rules import tree_rules
from filestore.fs.scan import TopRules, scan_tree
from filestore.fs.watched_tree import WatchedTree

pytest.importorskip("inotify_simple")

LOST = 20_000
"""More events than the system keeps."""
FILES = ["a.md", "b.txt", "é.md", os.fsdecode(b"\xff.md"), "c.log", "d.json"]
FOLDERS = ["", "r1", "r2", "r1/deep", "r1/deep/er", "r2/node_modules", "r2/x"]
RULES = [".gitignore", ".filestoreignore", "pyvenv.cfg", "filestore.toml"]
PATHS = st.builds(os.path.join, st.sampled_from(FOLDERS), st.sampled_from(FILES))
PLACES = st.one_of(PATHS, st.sampled_from(FOLDERS[1:]))


class KeptWalk(RuleBasedStateMachine):
    """A tree that everything happens to, beside the walk that is kept of it."""

    chosen: TopRules | None = None

    @initialize()
    def make(self) -> None:
        """A folder with a few files, and one beside it."""
        self.folder = Path(tempfile.mkdtemp(prefix="filestore-watched-"))
        self.root, self.beside = self.folder / "tree", self.folder / "beside"
        self.fill(self.root)
        self.fill(self.beside)
        self.watched = WatchedTree()
        if self.is_in_place():
            self.chosen = tree_rules(str(self.root), ["*.log"], leave_out=["r2/x"])

    def is_in_place(self) -> bool:
        """Whether rules leave some of it out."""
        return False

    def fill(self, root: Path) -> None:
        """Make the files that are there at first."""
        for path in ("a.md", "r1/a.md", "r1/deep/er/b.txt", "r2/x/c.log"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(path)

    @rule(path=PATHS, text=st.sampled_from(["", "some", "other"]))
    def write(self, path: str, text: str) -> None:
        """A file is written, in folders that may be new."""
        with_errors(lambda: (self.root / path).parent.mkdir(parents=True, exist_ok=True))
        with_errors(lambda: (self.root / path).write_text(text))

    @rule(path=PATHS, name=st.sampled_from(FILES))
    def save(self, path: str, name: str) -> None:
        """A file is written as editors do: beside it, then renamed."""
        temporary = (self.root / path).with_name(name)
        with_errors(lambda: temporary.write_text("saved"))
        with_errors(lambda: os.replace(temporary, self.root / path))

    @rule(path=PLACES, mode=st.sampled_from([0o600, 0o644, 0o755]))
    def chmod(self, path: str, mode: int) -> None:
        """Permissions change."""
        with_errors(lambda: os.chmod(self.root / path, mode))

    @rule(path=PLACES)
    def touch(self, path: str) -> None:
        """Stamps change."""
        with_errors(lambda: os.utime(self.root / path, ns=(1, 1)))

    @rule(path=PLACES)
    def remove(self, path: str) -> None:
        """A file goes, or a folder with all that is in it."""
        place = self.root / path
        with_errors(lambda: shutil.rmtree(place) if is_folder(place) else place.unlink())

    @rule(old=PLACES, new=PLACES)
    def rename(self, old: str, new: str) -> None:
        """Something gets another name, over what has it."""
        with_errors(lambda: os.rename(self.root / old, self.root / new))

    @rule(path=PLACES, back=PLACES)
    def swap_with_outside(self, path: str, back: str) -> None:
        """Something leaves the tree, and something comes in."""
        with_errors(lambda: os.rename(self.root / path, self.beside / "gone"))
        with_errors(lambda: os.rename(self.beside / back, self.root / path))

    @rule(path=PLACES, to=PLACES)
    def link(self, path: str, to: str) -> None:
        """A symbolic link."""
        with_errors(lambda: os.symlink(to, self.root / path))

    @precondition(lambda self: not self.is_in_place())
    @rule(path=PATHS, to=PATHS)
    def hard_link(self, path: str, to: str) -> None:
        """A file gets another name in the tree; of one where no walk goes nothing is told."""
        with_errors(lambda: os.link(self.root / to, self.root / path))

    @rule(path=PATHS)
    def map(self, path: str) -> None:
        """A file is written through memory."""
        with_errors(lambda: write_mapped(self.root / path))

    @rule(folder=st.sampled_from(FOLDERS), count=st.sampled_from([3, 70, 140]))
    def write_many(self, folder: str, count: int) -> None:
        """So many files that they are looked at otherwise; once more, they go."""
        place = self.root / folder
        for number in range(count):
            path = place / f"many{number}.md"
            with_errors(path.unlink if path.exists() else lambda path=path: path.write_text("m"))

    @precondition(lambda self: not self.is_in_place() or self.chosen is not None)
    @rule(is_copied=st.booleans())
    def replace_root(self, is_copied: bool) -> None:
        """The folder is another one."""
        shutil.rmtree(self.folder / "old", ignore_errors=True)
        os.rename(self.root, self.folder / "old")
        if is_copied:
            shutil.copytree(self.folder / "old", self.root, symlinks=True)
        else:
            self.fill(self.root)

    @precondition(lambda self: self.is_in_place())
    @rule(
        folder=st.sampled_from(FOLDERS),
        name=st.sampled_from(RULES),
        text=st.sampled_from(["*.txt\n", "r1/\n", "!*.log\n", "home = here\n"]),
    )
    def say(self, folder: str, name: str, text: str) -> None:
        """What says which files count is written, or removed."""
        path = self.root / folder / name
        with_errors(path.unlink if path.exists() else lambda: path.write_text(text))

    @invariant()
    def is_a_walk(self) -> None:
        """What is kept is what is there."""
        if hasattr(self, "watched"):
            kept = self.watched.scan(str(self.root), self.chosen).tree
            assert kept == scan_tree(str(self.root), rules=self.chosen)

    def teardown(self) -> None:
        """Leave nothing behind."""
        if hasattr(self, "watched"):
            self.watched.close()
            shutil.rmtree(self.folder)


class KeptWalkInPlace(KeptWalk):
    """The same, with rules that leave some of it out."""

    def is_in_place(self) -> bool:
        """Whether rules leave some of it out."""
        return True


def with_errors(job: Callable[[], object]) -> None:
    """Do what may be refused as things are."""
    with contextlib.suppress(OSError):
        job()


def is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def write_mapped(path: Path) -> None:
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = b"#" if memory[0:1] != b"#" else b"*"


def limits(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("machine", [KeptWalk, KeptWalkInPlace])
def test_a_walk_that_is_kept_stays_true_for_long(machine: type[KeptWalk]) -> None:
    """The same machines, with many more trees."""
    run_state_machine_as_test(machine, settings=limits(150, 60))


TestKeptWalk = KeptWalk.TestCase
TestKeptWalk.settings = limits(15, 25)
TestKeptWalkInPlace = KeptWalkInPlace.TestCase
TestKeptWalkInPlace.settings = limits(15, 25)


@pytest.fixture
def tree(tmp_path):
    """A folder with some files."""
    root = tmp_path / "tree"
    for number in range(80):
        (root / f"r{number % 8}").mkdir(parents=True, exist_ok=True)
        (root / f"r{number % 8}" / f"{number}.md").write_text("text")
    probe = WatchedTree()
    probe.scan(str(root))
    is_watched = probe.folders > 0
    why = probe.scan(str(root)).unwatched
    probe.close()
    if not is_watched:
        pytest.skip(f"nothing can be watched here: {why}")
    return root


@pytest.fixture
def watched():
    """A walk that is kept, closed at the end."""
    one = WatchedTree()
    yield one
    one.close()


def answer(watched, root, rules=None):
    """What is said of the watch, after the walk was held against one of now."""
    found = watched.scan(str(root), rules)
    assert found.tree == scan_tree(str(root), rules=rules)
    return found.unwatched


def test_only_the_first_look_walks(tree, watched):
    """Later ones ask the watch, whatever was done to files and folders meanwhile."""
    assert "not watched until now" in answer(watched, tree)
    assert answer(watched, tree) == ""
    (tree / "r1" / "new.md").write_text("new")
    (tree / "deep" / "er").mkdir(parents=True)
    (tree / "deep" / "er" / "new.md").write_text("new")
    os.rename(tree / "r2", tree / "deep" / "r2")
    shutil.rmtree(tree / "r3")
    assert answer(watched, tree) == ""
    (tree / "deep" / "r2" / "2.md").write_text("other")
    (tree / "deep" / "er" / "new.md").chmod(0o600)
    assert answer(watched, tree) == ""
    assert watched.folders == 10


def test_a_scan_that_was_given_stays_as_it_was(tree, watched):
    """What one caller holds is no other than before, whatever others were told since."""
    first = watched.scan(str(tree)).tree
    (tree / "r1" / "1.md").write_text("other")
    (tree / "r1" / "new.md").write_text("new")
    before = scan_tree(str(tree))
    assert watched.scan(str(tree)).tree == before
    assert b"new.md" not in first.folders[ChunkPath("r1")].names


def test_more_than_the_system_keeps_ends_in_a_walk(tree, watched):
    """Events that were dropped are not missed."""
    answer(watched, tree)
    for number in range(LOST):
        os.utime(tree / f"r{number % 8}" / f"{number % 8}.md", ns=(number, number))
    (tree / "r1" / "last.md").write_text("after all events that were kept")
    assert "more changed at once" in answer(watched, tree)
    assert answer(watched, tree) == ""


def test_another_folder_in_its_place_is_walked(tree, watched, tmp_path):
    """Moved away, copied, or gone for a while."""
    answer(watched, tree)
    os.rename(tree, tmp_path / "old")
    with pytest.raises(FileNotFoundError):
        watched.scan(str(tree))
    shutil.copytree(tmp_path / "old", tree)
    assert answer(watched, tree) != ""
    (tree / "r1" / "1.md").write_text("other")
    assert answer(watched, tree) == ""
    os.rename(tmp_path, tmp_path.with_name("moved"))
    shutil.copytree(tmp_path.with_name("moved"), tmp_path)
    (tmp_path.with_name("moved") / "tree" / "r1" / "1.md").write_text("not ours")
    assert "another folder" in answer(watched, tree)


def test_everything_is_looked_at_again_now_and_then(tree, tmp_path):
    """What no system reports shows then: a write through a name that lies elsewhere."""
    watched = WatchedTree(rescan_s=0.0)
    answer(watched, tree)
    os.link(tree / "r1" / "1.md", tmp_path / "elsewhere.md")
    (tmp_path / "elsewhere.md").write_text("written under another name")
    assert "checked again" in answer(watched, tree)
    watched.close()


def test_that_is_done_in_the_background(tree, tmp_path):
    """Whoever asks is told of such a write without a walk of his own, and holds no more."""
    watched = WatchedTree(rescan_s=0.1)
    answer(watched, tree)
    os.link(tree / "r1" / "1.md", tmp_path / "elsewhere.md")
    (tmp_path / "elsewhere.md").write_text("written under another name")
    until = time.monotonic() + 60
    while watched.scan(str(tree)).tree != scan_tree(str(tree)):
        assert time.monotonic() < until
    answer(watched, tree)
    watched.close()
    assert count_watches() == 0
    assert "filestore-rescan" not in {thread.name for thread in threading.enumerate()}


def test_what_has_another_name_is_looked_at_every_time(tree, watched, tmp_path):
    """Once it is known that a file has one, what is written under it shows at once."""
    os.link(tree / "r1" / "1.md", tmp_path / "elsewhere.md")
    answer(watched, tree)
    (tmp_path / "elsewhere.md").write_text("written under another name")
    assert answer(watched, tree) == ""


def test_what_may_not_be_looked_at_is_told(script, tree):
    """Of a folder that may not be entered the rest is watched; else nothing is kept."""
    done = script(UNPRIVILEGED, tree)
    assert done.code == 0, done.stderr
    assert done.stdout.split() == ["True"] * 9


UNPRIVILEGED = """
import os, sys
import inotify_simple
from filestore.fs.scan import scan_tree
from filestore.fs.watched_tree import WatchedTree
root, folder = sys.argv[1], os.path.join(sys.argv[1], "r1")
def give_up():
    if os.geteuid() == 0:
        for path, folders, files in os.walk(root):
            for name in (".", *files):
                os.chown(os.path.join(path, name), 65534, 65534)
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
os.chdir(root)
root = "."
give_up()
watched = WatchedTree()
def holds():
    found = watched.scan(root)
    print(found.tree == scan_tree(root))
    return found
holds()
os.chmod("r1", 0)
for name in ("r2/new.md", "r3/new.md"):
    assert not holds().unwatched
    with open(name, "w") as file:
        file.write("told")
assert list(holds().tree.problems) == ["r1"]
os.rename("r1", "other")
assert list(holds().tree.problems) == ["other"]
os.chmod("other", 0o700)
found = holds()
assert not found.unwatched and not found.tree.problems
with open("other/1.md", "w") as file:
    file.write("told")
assert not holds().unwatched
os.chmod("other", 0o400)
assert "Permission denied" in holds().unwatched
os.chmod("other", 0o700)
assert not holds().tree.problems
"""


@pytest.mark.parametrize("place", ["/proc/self", "/sys"])
def test_where_not_everything_is_told_each_look_walks(place, watched):
    """File systems that change without a word are not watched, and that is said."""
    for _ in range(2):
        root = f"{place}/fd" if place == "/proc/self" else f"{place}/fs"
        assert "may change without notice" in watched.scan(root).unwatched
    assert watched.folders == 0


def test_without_its_package_each_look_walks(tree, without_packages):
    """The walk is the same, and what to install is said."""
    without_packages("inotify_simple")
    watched = WatchedTree()
    assert "inotify_simple is not installed" in answer(watched, tree)
    assert "inotify_simple is not installed" in answer(watched, tree)


def test_rules_outside_the_tree_count(tmp_path, watched):
    """Those of git and of folders above: what they leave out goes, and comes back."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    root = tmp_path / "above" / "tree"
    root.mkdir(parents=True)
    for name in ("a.md", "b.md", "c.md"):
        (root / name).write_text("text")
    rules = tree_rules(str(root))
    exclude = tmp_path / ".git" / "info" / "exclude"
    for path, text in ((exclude, "a.md\n"), (tmp_path / ".gitignore", "b.md\n")):
        before = answer(watched, root, rules), watched.scan(str(root), rules).tree.ignored
        path.write_text(text)
        assert "rules" in answer(watched, root, rules)
        assert watched.scan(str(root), rules).tree.ignored == before[1] + 1
        path.unlink()
        assert answer(watched, root, rules)
        assert watched.scan(str(root), rules).tree.ignored == before[1]


def test_git_that_changes_the_tree_is_followed(tree, watched):
    """Checkout, stash and switch, in place, where `.git` lies in the tree."""

    def git(*words):
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *names, *words], cwd=tree, check=True, capture_output=True)

    rules = tree_rules(str(tree))
    git("init", "-q", "-b", "main")
    for words in (["add", "-A"], ["commit", "-qm", "one"], ["switch", "-qc", "other"]):
        git(*words)
        answer(watched, tree, rules)
    shutil.rmtree(tree / "r1")
    (tree / "r2" / "2.md").write_text("other")
    (tree / "new").mkdir()
    (tree / "new" / "new.md").write_text("new")
    answer(watched, tree, rules)
    for words in (["stash", "-u"], ["stash", "pop"], ["add", "-A"], ["commit", "-qm", "two"]):
        git(*words)
        answer(watched, tree, rules)
    for words in (["switch", "-q", "main"], ["checkout", "-q", "other", "--", "r2"]):
        git(*words)
        answer(watched, tree, rules)


@pytest.mark.parametrize("rescan_s", [60.0, 0.02])
def test_any_thread_may_look_while_others_write(tree, rescan_s):
    """No look fails, none is late, and in the end all is there; also while all is looked at."""
    failures, watched = [], WatchedTree(rescan_s=rescan_s)

    def write(number):
        for turn in range(60):
            folder = tree / f"w{number}" / f"{turn % 5}"
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{turn}.md"
            path.write_text("text")
            packed = watched.scan(str(tree)).tree.folders.get(f"w{number}/{turn % 5}")
            if packed is None or path.name not in packed.entries():
                failures.append(path)
            if turn % 7 == 0:
                shutil.rmtree(folder)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    answer(watched, tree)
    watched.close()


def test_nothing_is_held_after_closing(tree):
    """Watches and files are let go of, also where a look began anew."""
    before = len(os.listdir("/proc/self/fd"))
    watched = WatchedTree()
    for number in range(20):
        answer(watched, tree)
        os.rename(tree, tree.with_name("old"))
        shutil.copytree(tree.with_name("old"), tree)
        shutil.rmtree(tree.with_name("old"))
        (tree / f"{number}.md").write_text("one more")
    answer(watched, tree)
    assert count_watches() == 9
    watched.close()
    assert (count_watches(), len(os.listdir("/proc/self/fd"))) == (0, before)
    assert "closed" in answer(watched, tree)


def test_watches_go_with_their_folders(tree, watched):
    """As many are held as there are folders, however often those come and go."""
    answer(watched, tree)
    for turn in range(30):
        (tree / f"new{turn}" / "deep").mkdir(parents=True)
        answer(watched, tree)
        os.rename(tree / f"new{turn}", tree / "other")
        assert answer(watched, tree) == ""
        shutil.rmtree(tree / "other")
        assert answer(watched, tree) == ""
        assert count_watches() == watched.folders == 9


@pytest.mark.parametrize("limit", ["max_inotify_watches", "max_inotify_instances"])
def test_without_room_for_watches_each_look_walks(tree, limit):
    """What is used up is said, and nothing of what was left is held."""
    alone = ["unshare", "--user", "--map-root-user", "--", sys.executable, "-c", LIMITED]
    done = subprocess.run([*alone, tree, limit], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "cannot be lowered" in done.stderr:
        pytest.skip(f"no limits of our own: {done.stderr}")
    assert done.returncode == 0, done.stderr
    limits = {"max_inotify_watches": "max_user_watches"}
    assert (
        done.stdout.count(f"fs.inotify.{limits.get(limit, 'max_user_instances')} is used up") == 2
    )


LIMITED = """
import sys
from filestore.fs.scan import scan_tree
from filestore.fs.watched_tree import WatchedTree
root, limit = sys.argv[1:]
try:
    with open(f"/proc/sys/user/{limit}", "w") as file:
        file.write("5" if "watches" in limit else "0")
except OSError as error:
    sys.exit(f"cannot be lowered: {error}")
watched = WatchedTree()
for _ in range(2):
    found = watched.scan(root)
    assert found.tree == scan_tree(root) and watched.folders == 0
    print(found.unwatched)
"""


def test_what_is_mounted_in_the_tree_is_walked(tree, tmp_path):
    """Nothing tells of a mount but the table of mounts; what changes unseen is not watched."""
    alone = ["unshare", "--user", "--map-root-user", "--mount", "--", sys.executable, "-c", MOUNTED]
    done = subprocess.run([*alone, tree, tmp_path], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"nothing can be mounted: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert "mounted or unmounted" in done.stdout
    assert "may change without notice" in done.stdout


MOUNTED = """
import os, subprocess, sys
from filestore.fs.scan import scan_tree
from filestore.fs.watched_tree import WatchedTree
root, beside = sys.argv[1:]
watched = WatchedTree()
def holds():
    found = watched.scan(root)
    assert found.tree == scan_tree(root)
    print(found.unwatched)
    return found.unwatched
def mount(*words):
    subprocess.run(["mount", *words], check=True)
holds()
mount("-t", "tmpfs", "tmpfs", f"{root}/r1")
assert holds()
with open(f"{root}/r1/new.md", "w") as file:
    file.write("in memory")
assert not holds()
for name in ("upper", "work"):
    os.mkdir(f"{beside}/{name}")
mount("-t", "overlay", "overlay", "-o",
      f"lowerdir={root}/r3,upperdir={beside}/upper,workdir={beside}/work", f"{root}/r2")
assert holds()
with open(f"{root}/r2/new.md", "w") as file:
    file.write("in two layers")
assert holds()
"""


def count_watches():
    """How many folders this process watches."""
    found = 0
    for name in os.listdir("/proc/self/fdinfo"):
        with contextlib.suppress(OSError):
            found += Path("/proc/self/fdinfo", name).read_text().count("inotify wd:")
    return found


def test_a_forked_child_takes_nothing_from_its_parent(script, tree):
    """It walks; what was told to the parent is there for the parent."""
    done = script(FORKED, tree)
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout) == ["", True]


FORKED = """
import json, os, sys
from filestore.fs.scan import scan_tree
from filestore.fs.watched_tree import WatchedTree
root = sys.argv[1]
watched = WatchedTree()
watched.scan(root)
with open(os.path.join(root, "r1", "1.md"), "w") as file:
    file.write("other")
child = os.fork()
if not child:
    found = watched.scan(root)
    watched.close()
    os._exit(0 if "forked" in found.unwatched and found.tree == scan_tree(root) else 1)
assert os.waitpid(child, 0)[1] == 0
found = watched.scan(root)
print(json.dumps([found.unwatched, found.tree == scan_tree(root)]))
"""
