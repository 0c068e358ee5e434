"""What must hold of telling moves, losses and edits apart."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore.catalog import FileRow
from filestore.chunks import observation
from filestore.chunks.layout import TREE
from filestore.chunks.observation import INDEXED, RECORD, Observation
from filestore.config.layout import folded_path
from filestore.core.hashing import content_hash
from filestore.core.paths import CHUNKS, ChunkPath
from filestore.fs.scan import TreeScan
from filestore.fs.stats import pack_folder, pack_stat
from filestore.sidecar.losses import MASS_FILES, gone_findings, is_emptied, is_mass, match_moves
from filestore.verify.drift import Drift, classify, is_as_recorded, missing_findings

CONTENTS = st.sampled_from([b"one", b"two", b"three", b"four"])
OLD_PATHS = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["x.md", "y.md", "z.md"])).map(
    "/".join
)
NEW_PATHS = OLD_PATHS.map(lambda path: f"new/{path}")
GONE = st.dictionaries(OLD_PATHS, CONTENTS, max_size=6)
ADDED = st.dictionaries(NEW_PATHS, CONTENTS, max_size=6)


def name_of(path):
    """The file name of a path."""
    return path.rpartition("/")[2]


def never_asked():
    """A look at git that must not be taken."""
    raise AssertionError("git was asked")


# Moves


@given(GONE, ADDED)
def test_a_move_pairs_equal_content_one_to_one(gone, added):
    """No file moves twice or arrives twice, and what arrives is what left."""
    pairs = match_moves(gone, added)
    assert all(gone[old] == added[new] for old, new in pairs)
    assert len({old for old, _ in pairs}) == len({new for _, new in pairs}) == len(pairs)
    assert pairs == sorted(pairs)


@given(GONE, ADDED)
def test_a_doubtful_move_is_no_move(gone, added):
    """A pair is the only one with its content and name, or of what then remains with its content.

    So two files of equal content are never told apart by chance.
    """
    pairs = match_moves(gone, added)
    named = [(old, new) for old, new in pairs if _alone_by_name(gone, old, added, new)]
    rest_of_gone = gone.keys() - {old for old, _ in named}
    rest_of_added = added.keys() - {new for _, new in named}
    for old, new in set(pairs) - set(named):
        assert [path for path in rest_of_gone if gone[path] == gone[old]] == [old]
        assert [path for path in rest_of_added if added[path] == added[new]] == [new]


def _alone_by_name(gone, old, added, new):
    """Whether two paths share a file name, and no other of their content has it."""
    same_old = [p for p in gone if gone[p] == gone[old] and name_of(p) == name_of(old)]
    same_new = [p for p in added if added[p] == added[new] and name_of(p) == name_of(new)]
    return name_of(old) == name_of(new) and (same_old, same_new) == ([old], [new])


@given(GONE, ADDED)
def test_content_that_is_unique_on_both_sides_is_always_found(gone, added):
    """A rename is followed whatever the new name is, as long as no copy makes it doubtful."""
    old_counts, new_counts = Counter(gone.values()), Counter(added.values())
    unique = {c for c in old_counts if old_counts[c] == 1 == new_counts[c]}
    assert unique <= {gone[old] for old, _ in match_moves(gone, added)}


@given(GONE, ADDED)
def test_moving_back_is_the_same_move_backwards(gone, added):
    """Nothing in the pairing prefers one side."""
    there = match_moves(gone, added)
    assert sorted((old, new) for new, old in match_moves(added, gone)) == there


@given(st.dictionaries(st.sampled_from([f"{n}.md" for n in range(8)]), CONTENTS, max_size=8))
def test_a_renamed_folder_is_followed_file_by_file(files):
    """Files of equal content in one folder are paired by their names."""
    pairs = match_moves(
        {f"old/{name}": content for name, content in files.items()},
        {f"new/{name}": content for name, content in files.items()},
    )
    assert pairs == [(f"old/{name}", f"new/{name}") for name in sorted(files)]


def test_the_name_goes_first_and_content_alone_second():
    """Of two equal files the one that kept its name is known, and so is then the other."""
    gone = {"a/x.md": b"same", "a/y.md": b"same"}
    added = {"b/y.md": b"same", "b/renamed.md": b"same"}
    assert match_moves(gone, added) == [("a/x.md", "b/renamed.md"), ("a/y.md", "b/y.md")]


# Masses


@pytest.mark.parametrize(
    ("gone", "known", "mass"),
    [
        (0, 0, False),
        (1, 1000, False),
        (MASS_FILES, 60, False),
        (MASS_FILES + 1, 60, True),
        (MASS_FILES + 1, 1000, False),
        (200, 1000, False),
        (201, 1000, True),
        (50, 250, False),
        (51, 250, True),
    ],
)
def test_a_mass_is_more_than_fifty_files_and_a_fifth(gone, known, mass):
    """Both limits must be passed; exactly at the larger one nothing is refused yet."""
    paths = [f"{n}.md" for n in range(gone)]
    assert is_mass(paths, known, emptied=False, deleted=set) is mass


def test_an_emptied_root_is_a_mass_however_small_the_store():
    """A folder that is suddenly empty is more likely unmounted than meant."""
    assert is_mass(["a.md"], 1, emptied=True, deleted=set)
    assert not is_mass([], 0, emptied=True, deleted=never_asked)


def test_what_git_no_longer_has_is_not_counted():
    """Files deleted in git are gone on purpose; those that HEAD still has are not."""
    gone = [f"{n}.md" for n in range(300)]
    assert not is_mass(gone, 400, emptied=False, deleted=lambda: set(gone))
    assert not is_mass(gone, 400, emptied=False, deleted=lambda: set(gone[80:]))
    assert is_mass(gone, 400, emptied=False, deleted=lambda: set(gone[81:]))
    assert not is_mass(gone, 300, emptied=True, deleted=lambda: set(gone))
    assert is_mass(gone, 300, emptied=True, deleted=lambda: set(gone[1:]))


@given(st.integers(0, 2000), st.integers(0, 2000))
def test_git_is_asked_only_where_much_is_gone(gone, kept):
    """A few missing files cost no look into git, and are never a mass."""
    known = gone + kept
    paths = [f"{n}.md" for n in range(gone)]
    if gone <= max(50, known / 5):
        assert not is_mass(paths, known, emptied=False, deleted=never_asked)
    else:
        assert is_mass(paths, known, emptied=False, deleted=set)


# Findings


def look(state=INDEXED, *, data=b"text", keys=(b"k" * 32,), detail=""):
    """An observation of ``r/chunk1.md``."""
    return Observation(
        path="r/chunk1.md",
        values=(len(data), 1, 1, 1, 0o100644),
        state=state,
        detail=detail,
        file_hash=content_hash(data) if data else b"",
        data=data,
        keys=keys,
    )


def row(seen):
    """What the catalog has of a file that was indexed as seen."""
    return FileRow(
        id=1,
        path=seen.path,
        state=seen.state,
        detail=seen.detail,
        file_hash=seen.file_hash,
        text_key=seen.text_key,
        kind="chunk",
        resource="r",
        source=None,
        position=None,
        origin=None,
        edited=False,
        generation=1,
    )


@pytest.mark.parametrize("state", [INDEXED, RECORD])
def test_a_file_as_recorded_is_no_finding(state):
    """A touched file whose bytes are the same is clean."""
    assert is_as_recorded(row(look(state)), look(state))
    assert classify(CHUNKS, row(look(state)), look(state)) is None


@pytest.mark.parametrize(
    ("before", "now", "code"),
    [
        (None, look(), "untracked"),
        (None, look(RECORD), "untracked"),
        (look(), look(data=b"other", keys=(b"n" * 32,)), "modified"),
        (look(), look(data=b"other"), "metadata-modified"),
        (look(), look(data=b"other", keys=(b"k" * 32, b"q" * 32)), "modified"),
        (look(RECORD), look(RECORD, data=b"other"), "metadata-modified"),
        (look("empty", data=b"---\n---\n", keys=()), look(), "modified"),
        (look("litter"), look(RECORD), "modified"),
        (look(RECORD), look(), "modified"),
    ],
)
def test_a_change_has_the_code_of_what_changed(before, now, code):
    """Only an embedded text that differs makes a file modified."""
    found = classify(CHUNKS, None if before is None else row(before), now)
    assert found is not None
    assert (found.code, found.path) == (code, "chunked/r/chunk1.md")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "state",
    [
        "malformed-frontmatter",
        "invalid-metadata",
        "bad-encoding",
        "record-invalid",
        "empty",
        "conflict-markers",
        "symlink",
        "special-file",
        "oversized",
        "litter",
    ],
)
def test_a_withheld_file_is_told_by_what_withholds_it(state, known):
    """A file that cannot be used is found with its own code, known before or not."""
    found = classify(CHUNKS, row(look()) if known else None, look(state, detail="line 3"))
    assert found is not None
    assert (found.code, found.detail) == (state, "line 3")


def test_a_withheld_file_without_a_detail_says_what_to_do():
    """A finding is never without words."""
    found = classify(CHUNKS, None, look("empty"))
    assert found is not None
    assert found.detail


def drift_of(gone=(), moves=(), *, mass=False):
    """What a walk found of a store of ten files."""
    return Drift(
        tree=CHUNKS,
        to_read=(),
        moves=tuple(moves),
        gone=tuple(gone),
        mass_missing=mass,
        known=10,
        latest_stamp_ns=1,
        findings=(),
    )


def test_moves_and_losses_are_told_one_by_one():
    """A moved file names where it was; a missing one stands for itself."""
    found = missing_findings(drift_of(["a.md", "b.md"], [("old.md", look())]))
    assert [(one.code, one.path, one.other) for one in found] == [
        ("moved", "chunked/r/chunk1.md", "chunked/old.md"),
        ("missing", "chunked/a.md", ""),
        ("missing", "chunked/b.md", ""),
    ]


def test_a_file_that_was_moved_and_edited_is_moved():
    """It is told as a move; what else changed is told when it is read."""
    seen = replace(drift_of(), edited_moves=(("old.md", "new.md"),))
    (found,) = missing_findings(seen)
    assert (found.code, found.path, found.other) == ("moved", "chunked/new.md", "chunked/old.md")


def test_a_file_that_was_left_out_and_is_sound_says_so():
    """Its text may be the very one that was indexed before."""
    before = row(look("conflict-markers", keys=()))
    found = classify(CHUNKS, before, look())
    assert found is not None
    assert (found.code, "conflict-markers" in found.detail) == ("modified", True)


def test_a_mass_of_missing_files_is_one_finding():
    """The cause hides its consequences, and says how many of how many."""
    (found,) = missing_findings(drift_of(["a.md", "b.md", "c.md", "d.md"], mass=True))
    assert (found.code, found.path) == ("mass-missing", "chunked")
    assert "4 of 10" in found.detail
    assert "chunked/a.md" in found.detail


def tree_of(*names):
    """A tree with files in one folder."""
    return TreeScan(folders={"r": pack_folder({name: pack_stat((0,) * 5) for name in names})})


def test_a_tree_without_chunk_files_is_emptied():
    """Records and litter that are left behind are no knowledge."""
    assert is_emptied(TreeScan(), TREE)
    assert is_emptied(tree_of("meta.json", "notes.txt", "._chunk1.md"), TREE)
    assert not is_emptied(tree_of("meta.json", "chunk1.md"), TREE)
    assert is_emptied(tree_of("chunk1.md"), TREE, excluded={ChunkPath("r/chunk1.md")})


def test_a_tree_that_cannot_be_read_is_not_emptied():
    """Nothing is called gone that was not looked for with success."""
    assert not is_emptied(TreeScan(problems={"": "no permission"}), TREE)


def test_what_is_gone_is_told_the_same_with_and_without_a_catalog():
    """A mass is one finding that counts, fewer files are told one by one."""
    (mass,) = gone_findings(CHUNKS, ["a.md", "b.md"], 3, is_mass=True)
    assert (mass.code, "2 of 3" in mass.detail) == ("mass-missing", True)
    few = gone_findings(CHUNKS, ["a.md", "b.md"], 3, is_mass=False)
    assert [(one.code, one.path) for one in few] == [
        ("missing", "chunked/a.md"),
        ("missing", "chunked/b.md"),
    ]


def test_a_file_that_only_git_told_of_is_new_when_it_comes():
    """It was never indexed, so that nothing of it can have been modified."""
    found = classify(CHUNKS, row(look(observation.GONE, keys=())), look())
    assert found is not None
    assert found.code == "untracked"


@pytest.mark.parametrize(
    "pair", [("Café.md", "CAFÉ.MD"), ("caf\u00e9.md", "cafe\u0301.md"), ("straße", "STRASSE")]
)
def test_paths_that_some_file_systems_take_for_one_fold_alike(pair):
    """Case and composition are folded, nothing else."""
    one, other = pair
    assert folded_path(one) == folded_path(other)
    assert folded_path("cafe.md") != folded_path(one)
