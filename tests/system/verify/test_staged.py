"""`filestore verify --staged`: what git would commit is checked, not what lies on disk."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CONFLICT = b"<<<<<<< ours\none\n=======\ntwo\n>>>>>>> theirs\n"

GENERATED = b"---\norigin: sha256:" + b"0" * 64 + b"\n---\n"


def staged(workspace: Any, *, code: int, store: object = "") -> list[tuple[str, str]]:
    """Code and path of everything found in what is staged."""
    before = (workspace.folder / ".git" / "index").read_bytes()
    truth = workspace.truth()
    words = ("--store", store) if store else ()
    report = workspace.json(*words, "verify", "--staged", code=code)
    assert report["level"] == "staged"
    assert report["clean"] is (code == 0)
    assert (workspace.folder / ".git" / "index").read_bytes() == before
    assert workspace.truth() == truth
    return [(found["code"], found["path"]) for found in report["findings"]]


def put(workspace: Any, name: str, content: bytes) -> Path:
    """Write a file of the truth tree and stage it."""
    path: Path = workspace.write(f"file_index/chunked/{name}", content)
    workspace.git("add", "--force", f"file_index/chunked/{name}")
    return path


def test_what_is_staged_counts(workspace: Any) -> None:
    """A bad chunk that is staged is found although the file on disk is mended, and vice versa."""
    path = put(workspace, "a/chunk1.md", b"---\n[\n---\nWords.\n")
    path.write_bytes(b"Words.\n")
    assert staged(workspace, code=1) == [("malformed-frontmatter", "chunked/a/chunk1.md")]
    workspace.git("add", "file_index")
    path.write_bytes(b"---\n[\n---\nWords.\n")
    assert staged(workspace, code=0) == []


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a/chunk1.md", b"---\nx: [1\n---\nWords.\n", "malformed-frontmatter"),
        ("a/chunk1.md", b"---\noverlap: many\n---\nWords.\n", "invalid-metadata"),
        ("a/chunk1.md", GENERATED + b"Words.\n\n" + CONFLICT, "conflict-markers"),
        ("a/chunk1.md", b"caf\xe9\n", "bad-encoding"),
        ("a/chunk1.md", b"", "empty"),
        ("a/meta.json", b"{\n" + CONFLICT + b"}\n", "conflict-markers"),
        ("a/meta.json", b"{}\n", "record-invalid"),
    ],
)
def test_a_bad_blob(workspace: Any, name: str, content: bytes, found: str) -> None:
    """A staged file that would be withheld is found, by the code that `verify` has for it."""
    put(workspace, "good/chunk1.md", b"---\nmood: good\n---\nWords.\n")
    put(workspace, name, content)
    assert staged(workspace, code=1) == [(found, f"chunked/{name}")]
    workspace.git("commit", "--quiet", "-m", "bad")
    assert staged(workspace, code=0) == []


def test_the_record_of_a_flat_store(new_workspace: Callable[..., Any]) -> None:
    """In the flat layout a record is found by its name, too."""
    workspace = new_workspace(layout="flat")
    put(workspace, "manual.json", b"{}")
    assert staged(workspace, code=1) == [("record-invalid", "chunked/manual.json")]


def test_too_large(workspace: Any) -> None:
    """A staged file that is too large is found by its size, and what follows it is still read."""
    put(workspace, "a/chunk1.md", b"x" * (16 * 1024 * 1024 + 1))
    put(workspace, "b/chunk1.md", b"")
    found = staged(workspace, code=1)
    assert found == [("empty", "chunked/b/chunk1.md"), ("oversized", "chunked/a/chunk1.md")]


def test_links_and_submodules_pass(workspace: Any, new_workspace: Callable[..., Any]) -> None:
    """They are no files, in either kind of store, also where they are unmerged or in each other."""
    place = new_workspace("place", init=False)
    place("init", "--in-place", "--embedder", "builtin", ".")
    for made, folder in ((workspace, "file_index/chunked/a"), (place, "a")):
        made.git("commit", "--quiet", "--allow-empty", "-m", "one")
        head = made.git("rev-parse", "HEAD").strip()
        (made.folder / folder).mkdir(exist_ok=True)
        for link, target in {"one.md": "/etc/hostname", "two": "..", "LICENSE": "gone"}.items():
            (made.folder / folder / link).symlink_to(target)
        made.git("add", folder)
        for module in ("sub.md", "theme", "theme2/inner"):
            entry = f"160000,{head},{folder}/{module}"
            made.git("update-index", "--add", "--cacheinfo", entry)
        assert staged(made, code=0) == []


def test_what_a_walk_leaves_out_is_not_checked(new_workspace: Callable[..., Any]) -> None:
    """By the rules as they are staged, of all folders and of this clone; not by those on disk."""
    for below in ("", "docs/kb/"):
        made = new_workspace(f"rules{len(below)}", init=False)
        store = made.folder / below
        store.mkdir(parents=True, exist_ok=True)
        made("init", "--in-place", "--embedder", "builtin", store)
        for name in ("kept.md", "ours/a.md", "sub/theirs/a.md", "node_modules/a.md", "here/a.md"):
            made.write(f"{below}{name}", CONFLICT)
        for name in ("env/a.md", "nested/a.md", ".hidden/a.md", "sub/above/a.md"):
            made.write(f"{below}{name}", CONFLICT)
        made.write(f"{below}.filestoreignore", "ours/\n")
        made.write(f"{below}sub/.gitignore", "theirs\n")
        made.write(".gitignore", "above\n" if below else "sub/above\n")
        made.write(f"{below}env/pyvenv.cfg", "")
        made.write(f"{below}nested/filestore.toml", "")
        (made.folder / ".git/info/exclude").write_text("here\n")
        made.git("add", "--all", "--force")
        assert staged(made, code=1, store=store) == [("conflict-markers", "kept.md")]
        # What stands on the disk alone is not committed with it.
        (store / ".filestoreignore").write_text("kept.md\n")
        (store / "sub/.gitignore").unlink()
        assert staged(made, code=1, store=store) == [("conflict-markers", "kept.md")]
        made.git("rm", "--quiet", "--cached", "--force", f"{below}.filestoreignore")
        assert ("conflict-markers", "ours/a.md") in staged(made, code=1, store=store)


def test_names_that_collide(workspace: Any) -> None:
    """A staged name that differs from another of the index only by case is found."""
    put(workspace, "a/Straße.md", b"Words.\n")
    workspace.git("commit", "--quiet", "-m", "one")
    put(workspace, "a/STRASSE.md", b"Other words.\n")
    assert staged(workspace, code=1) == [("name-collision", "chunked/a/STRASSE.md")]


def test_names_of_any_bytes(workspace: Any) -> None:
    """Names with line ends and bytes that are not UTF-8 are read as any other."""
    name = os.fsdecode(b"caf\xe9\nnoir.md")
    put(workspace, name, b"caf\xe9\n")
    shown = "chunked/caf\\xe9\nnoir.md"
    assert staged(workspace, code=1) == [("bad-encoding", shown), ("unportable-name", shown)]


def test_names_that_do_not_travel(workspace: Any) -> None:
    """A name that some file system cannot hold is found before it is committed, a folder's once."""
    for name in ("what?/chunk1.md", "what?/chunk2.md", "a/con.md", "a/what?.png"):
        put(workspace, name, b"Words.\n")
    found = [path for code, path in staged(workspace, code=1) if code == "unportable-name"]
    assert found == ["chunked/a/con.md", "chunked/what?"]


def test_what_is_unmerged(workspace: Any) -> None:
    """A chunk file that git could not merge is found before anybody stages it."""
    put(workspace, "a/chunk1.md", b"One.\n")
    workspace.git("commit", "--quiet", "-m", "one")
    for branch, text in (("other", b"Two.\n"), ("-", b"Three.\n")):
        workspace.git("checkout", "--quiet", *(["-b"] if branch != "-" else []), branch)
        put(workspace, "a/chunk1.md", text)
        workspace.git("commit", "--quiet", "-m", branch)
    with pytest.raises(subprocess.CalledProcessError):
        workspace.git("merge", "other")
    assert staged(workspace, code=1) == [("conflict-markers", "chunked/a/chunk1.md")]


def test_only_chunks_count(workspace: Any) -> None:
    """What is staged elsewhere is nobody's business, nor what is deleted; litter is a note."""
    workspace.write("notes.md", CONFLICT)
    put(workspace, "a/chunk1.md", b"")
    workspace.git("add", "notes.md")
    workspace.git("commit", "--quiet", "-m", "one")
    workspace.git("rm", "--quiet", "file_index/chunked/a/chunk1.md")
    put(workspace, "a/picture.png", b"\0")
    assert staged(workspace, code=0) == [("litter", "chunked/a/picture.png")]


def test_what_is_only_announced(workspace: Any) -> None:
    """`git add -N` puts a name into the index, and no text: a commit leaves the file out."""
    workspace.write("file_index/chunked/a/con.md", CONFLICT)
    workspace.git("add", "--intent-to-add", "file_index/chunked/a/con.md")
    assert staged(workspace, code=0) == []
    workspace.git("add", "file_index/chunked/a/con.md")
    assert {code for code, _ in staged(workspace, code=1)} == {
        "conflict-markers",
        "unportable-name",
    }


def test_settings_that_no_clone_could_use(workspace: Any) -> None:
    """What was staged is judged, though the file on disk is whole."""
    path = workspace.store / "filestore.toml"
    whole = path.read_bytes()
    path.write_bytes(CONFLICT + whole)
    workspace.git("add", str(path))
    path.write_bytes(whole)
    done = workspace("verify", "--staged", code=3)
    assert "the staged filestore.toml cannot be read: it has an unresolved merge" in done.stderr
    workspace.git("add", str(path))
    assert staged(workspace, code=0) == []


def test_accepted_warnings_pass(workspace: Any) -> None:
    """A warning that the settings accept does not spoil the answer."""
    put(workspace, "a/chunk1.md", b"")
    settings = workspace.store / "filestore.toml"
    accepted = '\n[accepted]\nempty = ["chunked/a/chunk1.md"]\n'
    settings.write_text(settings.read_text().replace("\n[accepted]\n", "") + accepted)
    assert staged(workspace, code=0) == [("empty", "chunked/a/chunk1.md")]


def test_the_index_of_a_hook(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index that git names for a hook is the one that is checked."""
    other = workspace.folder / ".git" / "other-index"
    put(workspace, "a/chunk1.md", b"")
    os.replace(workspace.folder / ".git" / "index", other)
    put(workspace, "b/chunk1.md", b"Words.\n")
    assert staged(workspace, code=0) == []
    monkeypatch.setenv("GIT_INDEX_FILE", os.path.join(".git", "other-index"))
    report = workspace.json("verify", "--staged", code=1)
    assert [found["path"] for found in report["findings"]] == ["chunked/a/chunk1.md"]


def test_words(workspace: Any) -> None:
    """A person is told what is wrong, and how much was looked at."""
    put(workspace, "a/chunk1.md", b"")
    done = workspace("verify", "--staged", code=1)
    assert "empty (1)" in done.stdout
    assert done.stdout.endswith("not clean: 1 staged file\n")


def test_without_git(new_workspace: Callable[..., Any]) -> None:
    """Outside a work tree it says so; it does not call anything clean."""
    workspace = new_workspace()
    subprocess.run(["rm", "-r", str(workspace.folder / ".git")], check=True)
    done = workspace("verify", "--staged", code=3)
    assert "no git work tree" in done.stderr
