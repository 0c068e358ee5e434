"""What must hold of the stat cache and of comparing a walk with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.fs.scan import TreeScan, differences
from filestore.fs.stats import (
    NEVER_CLEAN,
    STAT_BYTES,
    PackedFolder,
    pack_folder,
    pack_names,
    pack_stat,
    stat_entry,
    unpack_names,
    unpack_stat,
)

TICKS_NS = (1, 10_000_000, 1_000_000_000, 2_000_000_000)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
STATS = st.tuples(INTEGERS, INTEGERS, INTEGERS, INTEGERS, INTEGERS)
NAMES = (
    st.binary(min_size=1, max_size=12)
    .filter(lambda name: b"\0" not in name and b"/" not in name)
    .map(lambda name: name.decode("utf-8", "surrogateescape"))
)
FOLDERS = st.dictionaries(NAMES, STATS.map(pack_stat), min_size=1, max_size=6)


class SimulatedFile:
    """A file on a file system whose clock ticks coarsely."""

    def __init__(self, tick_ns: int) -> None:
        self._tick_ns = tick_ns
        self._now_ns = 5 * tick_ns
        self._mtime_ns = self._ctime_ns = self.clock_ns()
        self.content = 0

    def clock_ns(self) -> int:
        """What a file written now would be stamped with."""
        return self._now_ns // self._tick_ns * self._tick_ns

    def stat(self) -> tuple[int, int, int, int, int]:
        """Size, inode and mode never tell: every content is equally long."""
        return 100, self._mtime_ns, self._ctime_ns, 7, 0o100644

    def advance(self, share: int) -> None:
        """Let some tenths of a tick pass, at least a nanosecond."""
        self._now_ns += max(1, share * self._tick_ns // 10)

    def write(self, mtime_shift: int | None) -> None:
        """New content; a shift in ticks says that the writer sets the file's own time."""
        self.content += 1
        self._mtime_ns = self._ctime_ns = self.clock_ns()
        if mtime_shift is not None:
            self._mtime_ns += mtime_shift * self._tick_ns


ACTIONS = st.lists(
    st.tuples(st.just("advance"), st.integers(0, 15))
    | st.tuples(st.just("write"), st.none() | st.integers(-3, 3))
    | st.tuples(st.just("begin read"), st.none())
    | st.tuples(st.just("end read"), st.none()),
    max_size=25,
)


@pytest.mark.parametrize("tick_ns", TICKS_NS)
@given(actions=ACTIONS)
def test_an_entry_that_still_fits_means_the_content_that_was_read(tick_ns, actions):
    """However writes and reads fall on a coarse clock, a clean file was never changed unseen."""
    file = SimulatedFile(tick_ns)
    read_from_ns: int | None = None
    remembered: list[tuple[bytes, int]] = []
    for action, value in actions:
        if action == "advance":
            file.advance(value)
        elif action == "write":
            file.write(value)
        elif action == "begin read":
            read_from_ns = file.clock_ns()
        elif read_from_ns is not None:
            remembered.append((stat_entry(file.stat(), read_from_ns), file.content))
            read_from_ns = None
        for entry, content in remembered:
            assert entry != pack_stat(file.stat()) or content == file.content


@pytest.mark.parametrize("tick_ns", TICKS_NS)
def test_a_file_read_in_the_tick_of_its_writing_is_read_again(tick_ns):
    """A write that follows within the same tick leaves every stamp equal, so nothing is kept."""
    file = SimulatedFile(tick_ns)
    assert stat_entry(file.stat(), file.clock_ns()) == NEVER_CLEAN
    file.advance(10)
    assert stat_entry(file.stat(), file.clock_ns()) == pack_stat(file.stat())


@pytest.mark.parametrize("stamps", [(9, 10), (10, 9), (10, 10), (11, 0), (0, 11)])
def test_both_stamps_must_lie_before_the_read(stamps):
    """A changed mode or an old file copied in is told by the other stamp."""
    assert stat_entry((1, *stamps, 2, 3), 10) == NEVER_CLEAN
    assert stat_entry((1, 9, 9, 2, 3), 10) == pack_stat((1, 9, 9, 2, 3))


def test_no_file_looks_like_never_clean():
    """The entry that is never clean has inode 0, which no file has."""
    assert unpack_stat(NEVER_CLEAN) == (0, 0, 0, 0, 0)


@given(STATS)
def test_a_stat_comes_back_as_packed(values):
    """Packing keeps every bit of the five values."""
    entry = pack_stat(values)
    assert len(entry) == STAT_BYTES
    assert unpack_stat(entry) == values


@given(st.lists(NAMES, max_size=8))
def test_names_come_back_as_packed(names):
    """Names of any bytes come back, whether they are UTF-8 or not."""
    assert unpack_names(pack_names(names)) == names


@given(FOLDERS, st.randoms())
def test_a_folder_comes_back_as_packed_whatever_its_order(entries, random):
    """The same entries pack to the same bytes, and come back by name."""
    shuffled = list(entries.items())
    random.shuffle(shuffled)
    packed = pack_folder(dict(shuffled))
    assert packed == pack_folder(entries)
    assert packed.entries() == entries
    assert list(packed.entries()) == sorted(entries)


def test_an_empty_folder_packs_to_nothing():
    """No entries are no bytes."""
    assert pack_folder({}) == PackedFolder(b"", b"")
    assert PackedFolder(b"", b"").entries() == {}


# Comparing

PATHS = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=3).map("/".join)
FEW_STATS = st.sampled_from([pack_stat((n, 0, 0, n, 0)) for n in (1, 2, 3)])
TREES = st.dictionaries(PATHS, FEW_STATS, max_size=12)


def folders_of(tree):
    """A tree by path as the folders a walk packs."""
    folders: dict[str, dict[str, bytes]] = {}
    for path, entry in tree.items():
        parent, _, name = path.rpartition("/")
        folders.setdefault(parent, {})[name] = entry
    return {parent: pack_folder(entries) for parent, entries in folders.items()}


@given(TREES, TREES, st.sets(PATHS, max_size=2))
def test_differences_are_those_of_comparing_path_by_path(now, before, problems):
    """Comparing blobs folder by folder finds what comparing every file would find."""
    blocked = tuple(f"{problem}/" for problem in problems)
    hidden = {path for path in now | before if f"{path}/".startswith(blocked or ("\0",))}
    now = {path: entry for path, entry in now.items() if path not in hidden}
    seen = TreeScan(folders=folders_of(now), problems=dict.fromkeys(problems, "denied"))
    found = differences(seen, folders_of(before))
    assert found.added == tuple(sorted(now.keys() - before.keys()))
    assert found.gone == tuple(sorted(before.keys() - now.keys() - hidden))
    both = now.keys() & before.keys()
    assert found.changed == tuple(sorted(path for path in both if now[path] != before[path]))


@pytest.mark.parametrize("place", [0, 63, 64, 500, 999])
def test_one_change_in_a_large_folder_is_found(place):
    """Wherever it stands among those that are as they were."""
    before = {f"{number:03}.md": pack_stat((1, 2, 3, 4, 5)) for number in range(1000)}
    now = before | {f"{place:03}.md": pack_stat((1, 2, 3, 4, 6))}
    found = differences(TreeScan(folders={"": pack_folder(now)}), {"": pack_folder(before)})
    assert (found.added, found.changed, found.gone) == ((), (f"{place:03}.md",), ())


@given(TREES)
def test_a_tree_that_did_not_change_has_no_differences(tree):
    """The recorded state of a tree compares clean."""
    found = differences(TreeScan(folders=folders_of(tree)), folders_of(tree))
    assert (found.added, found.changed, found.gone) == ((), (), ())


def test_a_never_clean_entry_makes_its_file_read_again():
    """What was read too early after its writing is looked at by the next scan."""
    entry = pack_stat((1, 2, 3, 4, 5))
    seen = TreeScan(folders=folders_of({"a/b": entry, "a/c": entry}))
    found = differences(seen, folders_of({"a/b": NEVER_CLEAN, "a/c": entry}))
    assert found.changed == ("a/b",)


def test_a_problem_hides_what_is_below_it_and_nothing_beside_it():
    """A folder that cannot be listed says nothing of a sibling whose name starts alike."""
    recorded = folders_of(dict.fromkeys(["a/x", "a/b/y", "ab/z", "a.md"], pack_stat((1,) * 5)))
    found = differences(TreeScan(problems={"a": "denied"}), recorded)
    assert found.gone == ("a.md", "ab/z")


def test_nothing_is_gone_where_the_root_itself_cannot_be_listed():
    """A walk that saw nothing at all proves nothing missing."""
    recorded = folders_of({"a/x": pack_stat((1,) * 5), "b": pack_stat((1,) * 5)})
    assert differences(TreeScan(problems={"": "denied"}), recorded).gone == ()
