"""The life of a folder of notes in git, indexed in place: each new section is embedded once.

After each step what `sync` embeds is what the notes say that they never said before, every answer
is true, and no command changed a byte or a name of the folder.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from filestore.chunks import chunk_file, kept
from filestore.core.hashing import embedding_key
from filestore.store.reading import ReadableStore
from tests.system.snapshots import snapshot

BUNDLE = os.environ.get("FILESTORE_VAULT_BUNDLE", "")
"""A git bundle of real notes, whose life is tried as well where one is named."""
NOTE = """---
title: Note {n}
tags: [generated, part/{part}]
---

# Note {n}

Note {n} begins with what is its own: alpha{n}.

## Plans

The second part of note {n} speaks of beta{n} at length. {more}

## Notes

It ends with gamma{n}, and links to [[note {next}]] and [another](<note {next}.md>). {more}
"""
_MORE = "These are words that fill a paragraph until it is long enough to be a section. " * 8
_IGNORED = (".git", ".filestore")


class Vault:
    """A folder of notes, driven as a person would."""

    def __init__(self, folder: Path, run) -> None:
        self.folder = folder
        self._run = run
        self._said: set[bytes] = set()

    def git(self, *words: str, ok: bool = True) -> None:
        """Run git in the folder."""
        git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
        done = subprocess.run([*git, *words], cwd=self.folder, capture_output=True, check=False)
        assert not ok or done.returncode == 0, done.stderr.decode()

    def __call__(self, *words: str):
        """Run a command of ours; nothing in the folder may be another than before."""
        before = self._seen()
        done = self._run(*words, cwd=self.folder)
        assert self._seen() == before, words
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def _seen(self) -> object:
        return {
            path: seen
            for path, seen in snapshot(self.folder).items()
            if path.partition("/")[0] not in _IGNORED
        }

    def sync(self) -> int:
        """Sync, and hold what was embedded against what is new; how much that was."""
        done = self("sync", "--json")
        assert done.code in (0, 1), done
        report = json.loads(done.stdout)
        now = set(self._keys())
        new = now - self._said
        assert report["embedded"] == len(new)
        self._said |= now
        # A link whose file was moved by hand drifts until `repair` rewrites it.
        assert set(self.drift()) <= {"link-dangling"}
        return len(new)

    def drift(self):
        """What `status` says has drifted."""
        return json.loads(self("status", "--json").stdout)["drift"]

    def _keys(self) -> Iterator[bytes]:
        """The key of the text of every section."""
        with ReadableStore.open(self.folder) as store:
            catalog = store._parts.catalog()
            with catalog.snapshot():
                for row in catalog.all_files():
                    data = catalog.content(row.id)
                    if data is not None and not row.state:
                        yield from map(embedding_key, chunk_file.texts(kept.read(data)))

    def found(self, query: str, *words: str) -> list[tuple[str, int | None, str]]:
        """Document, line and freshness of the hits of a keyword search."""
        done = self("search", query, "--mode", "keyword", "--json", *words)
        return [
            (hit["document"], hit["line"], hit["freshness"])
            for hit in json.loads(done.stdout)["hits"]
        ]

    def write(self, path: str, text: str) -> None:
        """Write a note."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace words in a note."""
        text = (self.folder / path).read_text()
        assert old in text
        (self.folder / path).write_text(text.replace(old, new, 1))


def note(number: int) -> str:
    """A note of two or three sections, as they are packed."""
    return NOTE.format(n=number, part=number % 7, next=number + 1, more=f"{_MORE}({number})")


@pytest.fixture
def vault(run, work_tree):
    """A hundred notes in a folder, and some above it, committed and indexed."""
    made = Vault(work_tree, run)
    for number in range(20):
        made.write(f"note {number}.md", note(number))
    for number in range(100, 200):
        made.write(f"projects/deep/note {number}.md", note(number))
    made.git("add", "-A")
    made.git("commit", "-qm", "notes")
    assert run("init", "--in-place", "--embedder", "builtin", cwd=work_tree).code == 0
    made._said = set(made._keys())
    assert made._said
    made.git("add", "filestore.toml")
    made.git("commit", "-qm", "store")
    assert made.sync() == 0
    return made


def test_the_life_of_notes(vault):
    """Edit, move, rename, delete, restore, branch and merge: only what is new is embedded."""
    vault.edit("note 3.md", "beta3 at length", "beta3 and changedword")
    assert vault.found("changedword", "--no-update") == []
    assert vault.found("beta3", "--no-update") == [("note 3.md", 12, "edited")]
    assert vault.sync() == 1
    assert vault.found("changedword") == [("note 3.md", 12, "fresh")]

    section = (vault.folder / "note 4.md").read_text().partition("## Notes")[2]
    vault.edit("note 4.md", "## Notes" + section, "")
    vault.edit("note 5.md", "## Plans", "## Moved\n\nA paragraph.\n\n## Plans")
    vault.sync()
    vault.git("commit", "-qam", "edits")

    (vault.folder / "note 6.md").rename(vault.folder / "renamed.md")
    assert vault.found("alpha6", "--no-update") == []
    assert vault.sync() == 0
    assert vault.found("alpha6") == [("renamed.md", 8, "fresh")]
    assert vault.found("renamed")[0][0] == "renamed.md"
    assert vault.drift() == {"link-dangling": ["note 5.md", "note 5.md"]}

    (vault.folder / "projects/deep").rename(vault.folder / "archive")
    assert vault.sync() == 0
    assert vault.found("alpha150") == [("archive/note 150.md", 8, "fresh")]

    (vault.folder / "note 7.md").unlink()
    assert vault.found("alpha7") == []
    assert vault.sync() == 0
    assert vault.found("alpha7") == []
    vault.git("checkout", "-q", "--", "note 7.md")
    assert vault.sync() == 0
    assert vault.found("alpha7") == [("note 7.md", 8, "fresh")]


def test_a_section_moves_to_another_note(vault):
    """Its text and headings are the same, so nothing is embedded."""
    first, mark, rest = (vault.folder / "note 8.md").read_text().partition("## Notes\n")
    vault.write("one.md", first)
    vault.write("two.md", first.replace("own", "mine") + mark + rest)
    vault.sync()
    vault.write("one.md", first + mark + rest)
    vault.write("two.md", first.replace("own", "mine"))
    assert vault.sync() == 0
    (hit,) = json.loads(vault("search", "gamma8", "--mode", "keyword", "--json").stdout)["hits"]
    assert (hit["document"], hit["copies"]) == ("note 8.md", ["one.md"])


def test_branches_and_merges(vault):
    """What is on a branch is embedded once, and a file with conflict markers is withheld."""
    vault.git("checkout", "-qb", "side")
    vault.edit("note 1.md", "beta1 at length", "beta1 sidewords")
    vault.write("new.md", note(300))
    vault.git("add", "-A")
    vault.git("commit", "-qm", "side")
    assert vault.sync() > 1
    vault.git("checkout", "-q", "main")
    assert vault.sync() == 0
    assert vault.found("sidewords") == []
    vault.edit("note 1.md", "beta1 at length", "beta1 mainwords")
    vault.git("commit", "-qam", "main")
    assert vault.sync() == 1
    vault.git("merge", "-q", "side", ok=False)
    assert vault.found("mainwords") == []
    assert "conflict-markers" in vault("status").stdout
    report = json.loads(vault("sync", "--json").stdout)
    assert report["embedded"] == 0
    assert vault.found("sidewords") == []
    vault.write("note 1.md", note(1).replace("beta1 at length", "beta1 sidewords"))
    vault.git("add", "-A")
    vault.git("commit", "-qm", "merged")
    assert vault.sync() == 0
    assert vault.found("sidewords") == [("note 1.md", 12, "fresh")]


def test_hooks_follow_checkouts_and_merges(vault):
    """With the hooks installed git itself brings the index up to date, with a few new vectors."""
    assert vault("git", "install").code == 0
    vault.git("checkout", "-qb", "side")
    vault.write("new.md", note(301))
    vault.git("add", "-A")
    vault.git("commit", "-qm", "side")
    vault.git("checkout", "-q", "main")
    assert vault.found("alpha301") == []
    vault.git("merge", "-q", "side")
    assert vault.found("alpha301") == [("new.md", 8, "fresh")]
    assert vault.drift() == {}
    assert json.loads(vault("sync", "--json").stdout)["embedded"] == 0


def test_a_clone_lacks_only_what_is_gone(run, vault, tmp_path):
    """Without a catalog git is asked: pictures, hidden files and ours are no lost documents."""
    vault.write("picture.png", "no picture")
    vault.write(".github/about.md", "hidden")
    vault.write("left out/a.md", "words")
    vault.write(".filestoreignore", "left out/\n")
    vault.git("add", "-A")
    vault.git("commit", "-qm", "more")
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(vault.folder), str(folder)], check=True)
    clone = Vault(folder, run)
    assert set(clone.drift()) == {"catalog-missing"}
    (folder / "note 1.md").unlink()
    (folder / "picture.png").unlink()
    assert clone.drift()["missing"] == ["note 1.md"]
    clone.sync()
    assert clone.found("alpha2") == [("note 2.md", 8, "fresh")]


@pytest.mark.skipif(not os.path.isfile(BUNDLE), reason="no bundle of real notes is named")
def test_the_life_of_real_notes(run, tmp_path):
    """Through the history of a real vault every section is embedded once, when it is new."""
    folder = tmp_path / "real"
    subprocess.run(["git", "clone", "-q", "-b", "main", BUNDLE, str(folder)], check=True)
    vault = Vault(folder, run)
    commits = subprocess.run(
        ["git", "rev-list", "--first-parent", "main"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    chosen = [commits[0], *commits[1 : 400 : 400 // 8], commits[0]]
    assert run("init", "--in-place", "--embedder", "builtin", cwd=folder).code == 0
    vault._said = set(vault._keys())
    for commit in chosen:
        vault.git("checkout", "-q", commit)
        vault.sync()
    assert vault.sync() == 0
