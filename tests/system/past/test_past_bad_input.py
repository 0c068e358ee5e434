"""Searching an earlier commit where the commit, git, the store or a view is not as it should be."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import filestore
from filestore.core.errors import FilestoreError
from filestore.git.process import NoAnswerError
from filestore.past.commits import NoRevisionError, UnsafeTreeError
from filestore.past.view import NoStoreThenError
from tests.advice import all_words
from tests.system.past.histories import History, answers, seen


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Documents in place, in git before they were a store."""
    made = History(tmp_path / "kb", layout="in-place", seed=2)
    made.grow(3)
    return made


def commit(folder: Path, message: str = "more") -> str:
    """Commit all there is; returns the name."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    subprocess.run(["git", *who, "commit", "-q", "-m", message], cwd=folder, check=True)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.mark.parametrize(
    "revision",
    [
        "nothing",
        "HEAD~99",
        "",
        " ",
        "-x",
        "--all",
        "HEAD\n",
        "a\0b",
        "HEAD:notes",
        "HEAD^{tree}",
        "a..b",
    ],
)
def test_a_revision_that_is_none(history: History, revision: str) -> None:
    """It is named, and nothing is made."""
    with (
        filestore.open(history.root) as store,
        pytest.raises(NoRevisionError, match=r"no commit .* in this repository"),
    ):
        store.at(revision)
    assert not (history.root / ".filestore" / "past").exists()


@pytest.mark.parametrize("revision", ["HEAD", "main", "v1", "HEAD@{0}", ":/change 1", "main~2^0"])
def test_whatever_git_takes_for_a_commit(history: History, revision: str) -> None:
    """Branches, tags, what the reflog has, what a message says."""
    history.git("tag", "-a", "v1", "-m", "one")
    tagged = history.git("rev-parse", revision)
    with filestore.open(history.root) as store, store.at(revision) as then:
        assert then.commit.commit == history.git("rev-parse", f"{tagged}^{{commit}}")


def test_a_shallow_clone_says_how_to_get_the_rest(history: History, tmp_path: Path) -> None:
    """The commit may well be there, but not here."""
    clone = tmp_path / "clone"
    words = ["git", "clone", "-q", "--depth", "1", f"file://{history.folder}", str(clone)]
    subprocess.run(words, check=True)
    with filestore.open(clone) as store:
        store.sync()
        with store.at("HEAD") as then:
            assert then.search("garden").hits
        with pytest.raises(NoRevisionError, match="only the newest") as caught:
            store.at(history.commits[0])
    assert caught.value.remedy == "git fetch --unshallow"


def test_a_folder_without_git(tmp_path: Path) -> None:
    """There is no other time."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("# A\n\nWords.\n")
    with filestore.create(tmp_path / "kb", layout="in-place", embedder="builtin") as store:
        store.sync()
        with pytest.raises(NoAnswerError, match="no git work tree"):
            store.at("HEAD")


def test_documents_from_before_they_were_a_store(history: History) -> None:
    """They are read by the settings of today."""
    history.git("rm", "-q", "--cached", "filestore.toml")
    history.git("commit", "-q", "-m", "no settings")
    bare = history.git("rev-parse", "HEAD")
    history.git("checkout", "-q", "--orphan", "old")
    history.git("rm", "-rq", "--cached", ".")
    (history.folder / "notes" / "first.md").write_text("# First\n\nThe zebra came first.\n")
    history.git("add", "notes/first.md")
    history.git("commit", "-q", "-m", "before")
    with filestore.open(history.root) as store:
        with store.at("old", embed=True) as then:
            (hit,) = then.search("zebra", mode="keyword")
            assert (hit.document, hit.line) == ("notes/first.md", 3)
        with store.at(bare) as then:
            assert then.search("garden").hits


def test_a_commit_from_before_the_chunks_existed(tmp_path: Path) -> None:
    """The first one that has them is named."""
    history = History(tmp_path / "kb", layout="tree", seed=2)
    (history.folder / "readme").write_text("not yet")
    before = commit(history.folder, "before")
    history.grow(2)
    with (
        filestore.open(history.root) as store,
        pytest.raises(NoStoreThenError, match="has nothing of the store") as caught,
    ):
        store.at(before)
    assert history.commits[0][:12] in all_words(caught.value)


def test_a_store_that_lay_elsewhere_then(tmp_path: Path) -> None:
    """Where it lay is named."""
    history = History(tmp_path / "kb", layout="tree", seed=2)
    history.grow(2)
    history.git("mv", "file_index", "knowledge")
    history.git("commit", "-q", "-m", "moved")
    with (
        filestore.open(history.folder / "knowledge") as store,
        pytest.raises(NoStoreThenError, match="but one in 'file_index'") as caught,
    ):
        store.at(history.commits[0])
    assert "git worktree add" in all_words(caught.value)


def test_settings_of_a_commit_that_cannot_be_used(history: History) -> None:
    """The commit is named with the file."""
    settings = history.root / "filestore.toml"
    good = settings.read_bytes()
    settings.write_text("<<<<<<< ours\nformat = 1\n=======\n>>>>>>> theirs\n")
    broken = commit(history.folder)
    settings.write_bytes(good)
    history.git("commit", "-qam", "good again")
    with filestore.open(history.root) as store:
        with pytest.raises(FilestoreError, match=broken[:12]) as caught:
            store.at(broken)
        assert caught.value.message.endswith("ask an earlier or a later commit")
        found = store.log("garden harbour", embed=True)
        assert any(broken[:12] in note for note in found.notes)
        assert len(found.entries) > 1


def test_another_layout_or_budget_then(history: History, tmp_path: Path) -> None:
    """A commit is read by its own settings: nothing of today's index is of use."""
    settings = history.root / "filestore.toml"
    settings.write_text(settings.read_text().replace("budget = 240", "budget = 40"))
    small = commit(history.folder, "small sections")
    settings.write_text(settings.read_text().replace("budget = 40", "budget = 300"))
    commit(history.folder, "large ones")
    with filestore.open(history.root) as store:
        store.sync()
        built = history.built(small, tmp_path / "checkout")
        with store.at(small, embed=True) as then, filestore.open(built) as other:
            queries = ["garden jacket", "valley"]
            assert list(answers(then, queries)) == list(answers(other, queries))


NAMES: list[str | bytes] = [
    "Über uns.md",
    "with space.md",
    "-dash.md",
    "a\nb.md",
    b"byte\xff.md",
    "q'uote\".md",
    "日本.md",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", ["in-place", "tree"])
def test_names_that_git_quotes(name: str | bytes, layout: str, tmp_path: Path) -> None:
    """Each is found under its name, at its line, and is what it was."""
    if layout == "tree" and isinstance(name, bytes):
        pytest.skip("such a name is not added")
    folder = os.fsencode(tmp_path / "kb")
    os.mkdir(folder)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    root = tmp_path / "kb" if layout == "in-place" else tmp_path / "kb" / "store"
    note = os.path.join(folder, os.fsencode(name))
    with open(note, "w") as file:
        file.write("# Title\n\nThe zebra sleeps.\n")
    with filestore.create(root, layout=layout, embedder="builtin") as store:
        if layout == "tree":
            store.add(note)
        store.sync()
        first = commit(tmp_path / "kb")
        with open(note, "w") as file:
            file.write("# Title\n\nNobody sleeps.\n")
        if layout == "tree":
            store.update()
        store.sync()
        (tmp_path / "kb" / "more.txt").write_text("More.\n")
        commit(tmp_path / "kb")
        with store.at(first) as then:
            (hit,) = then.search("zebra", mode="keyword")
        assert os.path.basename(hit.document) == os.fsdecode(name)
        assert (hit.line, hit.freshness, hit.excerpt) == (3, "fresh", "The zebra sleeps.")
        assert not store.search("zebra", mode="keyword", syntax="plain").hits


def test_a_tree_that_leads_out_of_its_folder(history: History) -> None:
    """Somebody made objects that no checkout would accept."""

    def made(kind: str, data: bytes) -> str:
        words = ["git", "hash-object", "-w", "--literally", "-t", kind, "--stdin"]
        done = subprocess.run(
            words, cwd=history.folder, input=data, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    blob = made("blob", b"# Out\n\nzebra\n")
    for name in (b"..", b".git", b".GIT"):
        inner = made("tree", b"100644 out.md\0" + bytes.fromhex(blob))
        tree = made("tree", b"40000 " + name + b"\0" + bytes.fromhex(inner))
        bad = history.git("commit-tree", tree, "-m", "bad")
        with filestore.open(history.root) as store, pytest.raises(UnsafeTreeError):
            store.at(bad)
    assert not list(history.folder.parent.glob("out.md"))


def test_links_in_a_commit_are_not_followed(history: History, tmp_path: Path) -> None:
    """What they lead to is no part of the commit."""
    (tmp_path / "secret.md").write_text("# Secret\n\nThe zebra is a secret.\n")
    (history.folder / "notes" / "link.md").symlink_to(tmp_path / "secret.md")
    linked = commit(history.folder)
    with filestore.open(history.root) as store, store.at(linked, embed=True) as then:
        assert not then.search("zebra", mode="keyword", syntax="plain").hits


def test_a_submodule_is_read_where_it_is_checked_out(history: History, tmp_path: Path) -> None:
    """Where it is not, that is said."""
    other = History(tmp_path / "other", layout="in-place", seed=9)
    (other.folder / "inner.md").write_text("# Inner\n\nThe zebra lives inside.\n")
    commit(other.folder)
    allow = ("-c", "protocol.file.allow=always")
    history.git(*allow, "submodule", "add", "-q", str(other.folder), "notes/other")
    had = commit(history.folder, "with a submodule")
    with filestore.open(history.root) as store:
        store.sync()
        for _ in range(2):
            with store.at(had) as then:
                (hit,) = then.search("zebra", mode="keyword")
                assert (hit.document, hit.line) == ("notes/other/inner.md", 3)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(history.folder), str(clone)], check=True)
    with filestore.open(clone) as store, store.at(had) as then:
        answer = then.search("zebra", mode="keyword", syntax="plain")
        assert not answer.hits
        assert "the submodule notes/other is not here, and not searched" in answer.notes


def test_a_rewritten_history(history: History) -> None:
    """A commit is found by its name as long as git has it, and its view as well."""
    old = history.commits[1]
    with filestore.open(history.root) as store:
        with store.at(old) as then:
            before = list(answers(then, ["garden jacket"]))
        history.git("reset", "-q", "--hard", history.commits[0])
        with store.at(old) as then:
            assert list(answers(then, ["garden jacket"])) == before
        history.git("reflog", "expire", "--expire=now", "--all")
        history.git("gc", "-q", "--prune=now")
        with pytest.raises(NoRevisionError):
            store.at(old)


def test_a_merge_under_way_changes_nothing(history: History) -> None:
    """Neither is the work tree touched, nor does a conflict of today hide a file of then."""
    note = history.notes[0]
    history.git("checkout", "-q", "-b", "side")
    note.write_text("# Side\n\nZebra on this side.\n")
    commit(history.folder)
    history.git("checkout", "-q", "main")
    note.write_text("# Main\n\nZebra on the other side.\n")
    ours = commit(history.folder)
    words = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "merge", "side"]
    subprocess.run(words, cwd=history.folder, capture_output=True, check=False)
    assert b"<<<<<<<" in note.read_bytes()
    before = seen(history.folder)
    with filestore.open(history.root) as store, store.at(ours, embed=True) as then:
        (hit,) = then.search("zebra", mode="keyword")
        assert hit.excerpt == "Zebra on the other side."
    assert seen(history.folder) == before


def test_a_view_is_made_again_where_it_is_damaged(history: History) -> None:
    """Views are derived; so is what a killed process left of one."""
    past = history.root / ".filestore" / "past"
    with filestore.open(history.root) as store:
        with store.at(history.commits[0]) as then:
            before = list(answers(then, ["garden jacket"]))
        (catalog,) = past.glob("*/tree/.filestore/catalog.sqlite")
        catalog.write_bytes(b"no catalog")
        (past / "building" / "tree").mkdir(parents=True)
        (past / "blob-names").write_bytes(b"filestore blob names 1\nnot at all")
        with store.at(history.commits[0]) as then:
            assert list(answers(then, ["garden jacket"])) == before
        catalog.unlink()
        with store.at(history.commits[0]) as then:
            assert list(answers(then, ["garden jacket"])) == before
        with store.at(history.commits[1]) as then:
            assert then.search("garden").hits
    assert not (past / "building").exists()


def test_without_a_catalog_or_embeddings_of_today(history: History) -> None:
    """A view is made from nothing, and keywords answer."""
    for name in ("catalog.sqlite", "embeddings.sqlite"):
        for path in (history.root / ".filestore").glob(f"{name}*"):
            path.unlink()
    with filestore.open(history.root) as store, store.at(history.commits[0]) as then:
        answer = then.search("garden jacket")
        assert answer.hits
        assert answer.mode == "keyword"


def test_two_processes_make_one_view(history: History) -> None:
    """Whoever comes second takes what the first made."""
    words = [
        "filestore",
        "--store",
        str(history.root),
        "search",
        "--at",
        "HEAD~1",
        "garden",
        "--json",
    ]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(3)]
    printed = {one.communicate()[0] for one in running}
    assert len(printed) == 1
    assert all(one.returncode == 0 for one in running)


def test_a_linked_work_tree_and_a_moved_store(history: History, tmp_path: Path) -> None:
    """Git's folder is elsewhere; a store that was moved makes its views again."""
    linked = tmp_path / "linked"
    history.git("worktree", "add", "-q", str(linked), "main~1")
    with filestore.open(linked) as store:
        store.sync()
        with store.at("HEAD~1") as then:
            assert then.commit.commit == history.commits[0]
            assert then.search("garden").hits
    shutil.copytree(history.folder, tmp_path / "moved")
    with filestore.open(tmp_path / "moved") as store, store.at("HEAD~1") as then:
        assert then.search("garden").root == str(tmp_path / "moved")
