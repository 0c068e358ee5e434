"""What there is to see of a finding: then and now, the place, both sides of a choice."""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from filestore import CODES, Finding, Policy
from filestore.browse import Evidence, InspectedStore, NoSidesError, shown_path
from filestore.catalog import CatalogMissingError
from filestore.core.hashing import content_hash
from filestore.fs.disk import TEMPORARY_PREFIX
from tests.advice import all_words

TEXT = "# Title\n\nThe first line.\nThe second line.\nThe last line.\n"
MARKS = "<<<<<<< mine\nours\n=======\ntheirs\n>>>>>>> other branch\n"


@pytest.fixture
def opened(workspace: Any) -> Iterator[Callable[[], InspectedStore]]:
    """Opens the store; closed at the end."""
    stores: list[InspectedStore] = []

    def open_store() -> InspectedStore:
        root, configuration = os.fspath(workspace.store), os.environ["XDG_CONFIG_HOME"]
        stores.append(InspectedStore(root, configuration=configuration))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


def write(workspace: Any, path: str, content: str | bytes) -> Path:
    return Path(workspace.write(f"file_index/chunked/{path}", content))


def told(store: InspectedStore, code: str) -> Finding:
    """The one finding of a code."""
    (found,) = [one for one in store.verify(level="full").findings if one.code == code]
    return found


def seen(store: InspectedStore, code: str) -> Evidence:
    """The evidence of the one finding of a code."""
    return store.evidence(told(store, code))


def digest(path: Path) -> str:
    return content_hash(path.read_bytes()).hex()


def test_an_edit_shows_then_and_now(workspace: Any, opened: Callable[[], InspectedStore]) -> None:
    """Diff, both hashes, and the first line that differs with what is around it."""
    path = write(workspace, "own.md", TEXT)
    workspace.sync()
    indexed = digest(path)
    path.write_text(TEXT.replace("second", "other"))
    found = seen(opened(), "modified")
    assert found.diff.split("\n") == [
        "--- indexed/chunked/own.md",
        "+++ on disk/chunked/own.md",
        "@@ -1,5 +1,5 @@",
        " # Title",
        " ",
        " The first line.",
        "-The second line.",
        "+The other line.",
        " The last line.",
    ]
    assert not found.diff_cut
    assert (found.indexed_hash, found.disk_hash) == (indexed, digest(path))
    assert (found.line, found.column) == (4, 0)
    assert (4, "The other line.") in found.excerpt
    assert [number for number, _ in found.excerpt] == [1, 2, 3, 4, 5]
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(path.stat().st_mtime))
    assert f"on disk: {path.stat().st_size} bytes, written {stamp}" in found.notes
    assert f"the catalog keeps its last good text: {len(TEXT)} bytes" in found.notes
    assert any(
        note.startswith(f"indexed at generation 1: {len(TEXT)} bytes") for note in found.notes
    )
    assert any("marks the text on disk as edited" in note for note in found.notes)


def test_a_missing_file_shows_what_was_lost(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """Its text as it was indexed, where that can be had, and what git has."""
    path = write(workspace, "own.md", TEXT)
    write(workspace, "stays.md", "Another.\n")
    workspace.sync()
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", "all")
    indexed = digest(path)
    path.unlink()
    found = seen(opened(), "missing")
    assert "-The second line." in found.diff
    assert (found.indexed_hash, found.disk_hash) == (indexed, "")
    assert (found.line, found.excerpt) == (0, ())
    assert "on disk: there is no file" in found.notes
    assert any(note.startswith("git's HEAD has what was indexed") for note in found.notes)
    assert "search still finds it, and reports it as gone" in found.notes


@pytest.mark.parametrize(
    ("code", "content", "line", "column"),
    [
        ("malformed-frontmatter", b'---\na: 1\nb: "open\n---\nText.\n', 4, 1),
        ("invalid-metadata", b"---\na: 1\npages: first\n---\nText.\n", 3, 1),
        ("bad-encoding", "---\na: 1\n---\nText.\nnä".encode() + b"\xefve\n", 5, 3),
        ("conflict-markers", f"Text.\n\n{MARKS}".encode(), 3, 0),
    ],
)
def test_a_broken_file_shows_where(
    workspace: Any,
    opened: Callable[[], InspectedStore],
    code: str,
    content: bytes,
    line: int,
    column: int,
) -> None:
    """Line and column of what is wrong, and the difference to the last good text."""
    path = write(workspace, "own.md", TEXT)
    workspace.sync()
    path.write_bytes(content)
    for is_synced in (False, True):
        if is_synced:
            workspace.sync(code=1)
        found = seen(opened(), code)
        assert (found.line, found.column) == (line, column)
        shown = content.decode("utf-8", "backslashreplace").split("\n")[line - 1]
        assert (line, shown) in found.excerpt
        assert "-The second line." in found.diff
        assert found.indexed_hash == content_hash(TEXT.encode()).hex()
        assert found.disk_hash == digest(path)
    assert any(note.startswith(f"left out as {code}") for note in found.notes)
    assert "search does not find it" in found.notes


def test_a_record_that_is_no_json_shows_where(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """The record of a resource has its place and its last good text, too."""
    workspace.write("a.md", "# A\n\nWords.\n")
    workspace("add", "a.md")
    path = workspace.chunked / "a.md" / "meta.json"
    path.write_text('{\n  "format": nonsense\n}\n')
    found = seen(opened(), "record-invalid")
    assert found.line == 2
    assert found.column > 1
    assert '+  "format": nonsense' in found.diff


def test_a_hand_edit_shows_what_was_generated(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """Where a file is as indexed, the difference is to the text as it was generated."""
    workspace.write("a.md", "# A\n\nGenerated words.\n")
    workspace("add", "a.md")
    (path,) = workspace.chunked.glob("a.md/*.md")
    path.write_bytes(path.read_bytes().replace(b"Generated", b"My own"))
    workspace.sync()
    found = seen(opened(), "hand-edited")
    assert found.diff.startswith("--- as generated/chunked/a.md/")
    assert "-Generated words." in found.diff
    assert "+My own words." in found.diff
    number = path.read_text().split("\n").index("My own words.") + 1
    assert found.line == number
    assert re.fullmatch("[0-9a-f]{16}", found.origin)
    assert found.indexed_hash == found.disk_hash


def test_a_moved_file_is_held_against_its_old_name(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """What was indexed is found under the name it had."""
    path = write(workspace, "old.md", TEXT)
    workspace.sync()
    path.rename(workspace.chunked / "new.md")
    found = seen(opened(), "moved")
    assert found.indexed_hash == found.disk_hash != ""
    assert found.diff == ""
    assert any("indexed as chunked/old.md" in note for note in found.notes)


def test_a_dangling_link_shows_where_it_stands(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """Line and column of the link itself, counted in the file with its frontmatter."""
    write(workspace, "there.md", "A text.\n")
    write(workspace, "own.md", "---\na: 1\n---\nWords.\n\nSee [this](there.md).\n")
    workspace.sync()
    (workspace.chunked / "there.md").unlink()
    workspace.sync(code=1)
    found = seen(opened(), "link-dangling")
    assert (found.line, found.column) == (6, 12)
    assert found.excerpt[3] == (6, "See [this](there.md).")


def test_git_is_asked_what_it_has(workspace: Any, opened: Callable[[], InspectedStore]) -> None:
    """Committed text is told apart: as on disk, as indexed, another, none."""
    path = write(workspace, "own.md", "First.\n")

    def note() -> str:
        found = [one for one in seen(opened(), "modified").notes if one.startswith("git")]
        return found[0].partition(":")[0] if found else ""

    def commit() -> None:
        workspace.git("add", "--all")
        workspace.git("commit", "-qm", "all")

    workspace.sync()
    path.write_text("Second.\n")
    assert note() == "git's HEAD does not have it"
    commit()
    assert note() == "git's HEAD has what is on disk"
    path.write_text("Third.\n")
    assert note() == "git's HEAD has another version"
    path.write_text("First.\n")
    commit()
    path.write_text("Third.\n")
    assert note() == "git's HEAD has what was indexed"


def damage(workspace: Any, path: str, how: str) -> None:
    target = workspace.chunked / path
    if how == "gone":
        target.unlink()
    elif how == "folder":
        target.unlink()
        target.mkdir()
    elif how == "link":
        secret = workspace.folder / "secret.txt"
        secret.write_text("A secret.\n")
        target.unlink()
        target.symlink_to(secret)
    elif how == "pipe":
        target.unlink()
        os.mkfifo(target)
    elif how == "huge":
        with open(target, "wb") as file:
            file.truncate(1 << 30)
    elif how == "binary":
        target.write_bytes(bytes(range(256)) * 100)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("gone", "there is no file"),
        ("folder", "a folder; it is never opened"),
        ("link", "a symbolic link to"),
        ("pipe", "a named pipe; it is never opened"),
        ("huge", "1,073,741,824 bytes, too many"),
        ("binary", "25,600 bytes"),
    ],
)
def test_whatever_stands_there_has_evidence(
    workspace: Any, opened: Callable[[], InspectedStore], how: str, says: str
) -> None:
    """Nothing is followed, waited for or read whole; what was indexed is there all the same."""
    path = write(workspace, "own.md", TEXT)
    workspace.sync()
    indexed = digest(path)
    damage(workspace, "own.md", how)
    finding = Finding(code="modified", path="chunked/own.md")
    store = opened()
    found = store.evidence(finding)
    assert says in found.notes[0]
    assert found.indexed_hash == indexed
    assert (found.disk_hash == "") == (how != "binary")
    assert "secret" not in found.diff + str(found.excerpt)
    assert (found.diff == "") == (how != "gone")


@pytest.mark.parametrize(
    "path",
    [
        "chunked/../../secret.md",
        "chunked//",
        "chunked/nul\0l.md",
        f"chunked/{'x' * 5_000}.md",
        "chunked/\udcff.md",
        "chunked",
        "/etc/passwd",
        "../../../../etc/passwd",
        "",
        ".sidecar/../../secret",
        f"chunked/{TEMPORARY_PREFIX}x",
    ],
)
def test_whatever_a_finding_names_has_evidence(
    workspace: Any, opened: Callable[[], InspectedStore], path: str
) -> None:
    """A path that leads out, or that no file can have, is answered with notes and no bytes."""
    store = opened()
    for code in CODES:
        found = store.evidence(Finding(code=code, path=path))
        assert found.notes
        assert (found.diff, found.disk_hash, found.excerpt) == ("", "", ())


def test_a_long_diff_is_cut(workspace: Any, opened: Callable[[], InspectedStore]) -> None:
    """Of a large change at most 200 KB are shown, and it is said."""
    path = write(workspace, "own.md", "".join(f"old {number}\n" for number in range(60_000)))
    workspace.sync()
    path.write_text("".join(f"new {number}\n" for number in range(60_000)))
    found = seen(opened(), "modified")
    assert found.diff_cut
    assert 190_000 < len(found.diff) <= 200_000
    path.write_text("x" * 1_000_000)
    found = seen(opened(), "modified")
    assert found.excerpt[0][1].endswith("…")
    assert len(found.excerpt[0][1]) == 400


def test_a_name_cannot_draw_a_line_of_the_diff(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """A line feed or an escape in a name stays a part of the head."""
    name = "a\n+injected \x1b[31m.md"
    path = write(workspace, name, TEXT)
    workspace.sync(code=1)
    path.write_text("Other.\n")
    found = opened().evidence(Finding(code="modified", path=f"chunked/{name}"))
    head = found.diff.split("\n")[:2]
    assert head[1] == f"+++ on disk/{shown_path(f'chunked/{name}')}"
    assert "\x1b" not in found.diff
    assert not any(line.startswith("+injected") for line in found.diff.split("\n"))


def test_without_a_catalog_there_is_what_is_on_disk(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """A catalog that is gone or damaged leaves the file, its place and git's version."""
    path = write(workspace, "own.md", b"---\na: [\n---\nText.\n")
    catalog = workspace.sidecar / "catalog.sqlite"
    for content in (None, b"x" * 8_192):
        for part in workspace.sidecar.glob("catalog.sqlite*"):
            part.unlink()
        if content is not None:
            catalog.write_bytes(content)
        found = opened().evidence(Finding(code="malformed-frontmatter", path="chunked/own.md"))
        assert (found.disk_hash, found.indexed_hash) == (digest(path), "")
        assert found.line > 0
        assert "the catalog cannot be read: what was indexed is not known" in found.notes


def test_parts_of_the_sidecar_are_described(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """Of each part: what file is meant, its size, what was recorded, the generation."""
    write(workspace, "own.md", TEXT)
    workspace.sync()
    store = opened()
    named = store._parts.catalog().index_file()
    assert named is not None
    index = store.evidence(Finding(code="index-damaged", path=f".sidecar/{named.name}"))
    assert index.indexed_hash == named.hash
    said = "\n".join(index.notes)
    assert f".sidecar/{named.name}: {named.size_bytes:,} bytes" in said
    assert f"hash {named.hash}, of generation {named.generation}" in said
    said = "\n".join(
        note
        for name in ("embeddings.sqlite", "fulltext", "catalog.sqlite")
        for note in store.evidence(Finding(code="locked", path=f".sidecar/{name}")).notes
    )
    assert "it holds 1 embedding of builtin/" in said
    assert "it reflects generation 1 with 1 file;" in said
    assert "knows 1 file, 1 of them searchable" in said
    (workspace.sidecar / named.name).unlink()
    gone = seen(opened(), "index-missing")
    assert f".sidecar/{named.name}: it is not there" in gone.notes


def test_a_vector_finding_names_its_vectors(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """Ids and stored lengths of body and questions, and what is lost."""
    write(workspace, "own.md", '---\nquestions: ["Why?"]\n---\nWords.\n')
    workspace.sync()
    store = opened()
    finding = Finding(code="vector-invalid", path="chunked/own.md", other=".sidecar")
    ids = store.show("chunked/own.md").record["vector_ids"]
    said = "\n".join(store.evidence(finding).notes)
    assert f"its text is vector {ids[0]}: its stored embedding has length 1.000000" in said
    assert f"question 1 is vector {ids[1]}: its stored embedding" in said
    store.close()
    (workspace.sidecar / "embeddings.sqlite").unlink()
    said = "\n".join(opened().evidence(finding).notes)
    assert f"its text is vector {ids[0]}: no sound embedding of it is stored" in said


def test_an_original_is_described(workspace: Any, opened: Callable[[], InspectedStore]) -> None:
    """A changed or missing source has its recorded hash and the number of its chunk files."""
    path = workspace.write("a.md", "# A\n\nWords.\n")
    workspace("add", "a.md")
    path.write_text("# A\n\nOther words.\n")
    found = seen(opened(), "source-modified")
    assert any(note.startswith("../a.md: 18 bytes, written") for note in found.notes)
    assert any("its bytes had sha256:" in note for note in found.notes)
    (workspace.chunked / "a.md" / "notes.txt").write_text("litter\n")
    workspace.sync(code=None)
    assert "made from it: 1 chunk file of a.md" in opened().evidence(found.finding).notes
    path.unlink()
    assert "../a.md: it is not there" in seen(opened(), "source-missing").notes


def test_copies_are_named(workspace: Any, opened: Callable[[], InspectedStore]) -> None:
    """Every other file with the text is listed, and both can be kept, or one removed."""
    asked = '---\nquestions: ["Who?"]\n---\n'
    for name in ("a.md", "b.md", "it's $x.md"):
        write(workspace, name, f"{asked}The same.\n")
    write(workspace, "d.md", f"{asked}Something else.\n")
    workspace.sync()
    store = opened()
    finding = told(store, "duplicate")
    said = store.evidence(finding).notes
    assert "a text in common: chunked/b.md" in said
    assert "a text in common: chunked/it's $x.md" in said
    assert not any("d.md" in note for note in said)
    found = store.sides(Finding(code="duplicate", path="chunked/it's $x.md", other="chunked/a.md"))
    assert (found.ours, found.theirs) == (f"{asked}The same.\n", f"{asked}The same.\n")
    assert (found.path, found.other) == ("chunked/it's $x.md", "chunked/a.md")
    choices = {one.name: one for one in found.choices}
    assert choices["keep-both"].policy is None
    assert choices["keep-both"].command == ""
    assert choices["remove-this"].policy == Policy(remove=("chunked/it's $x.md",))
    assert choices["remove-other"].command == "filestore repair --remove chunked/a.md"
    assert [one.label for one in found.choices] == [
        "keep chunked/it's $x.md, remove chunked/a.md",
        "keep chunked/a.md, remove chunked/it's $x.md",
        "keep both files",
    ]


@pytest.mark.parametrize(
    "name", ["plain.md", "it's $x.md", "tab\tnew\nline.md", "\udcff\\'.md", "ä é.md"]
)
def test_a_command_is_one_word_a_path(
    workspace: Any, opened: Callable[[], InspectedStore], name: str
) -> None:
    """Whatever a file is called, a shell hands its very name to the command."""
    for one in (name, "other.md"):
        path = os.fsencode(workspace.chunked) + b"/" + os.fsencode(one)
        with open(path, "wb") as file:
            file.write(b"The same.\n")
    finding = Finding(code="duplicate", path=f"chunked/{name}", other="chunked/other.md")
    found = opened().sides(finding)
    (command,) = [one.command for one in found.choices if one.name == "remove-this"]
    words = command.replace("filestore repair", "printf '%s|'", 1)
    done = subprocess.run(["bash", "-c", words], capture_output=True, check=True)
    assert done.stdout == b"--remove|chunked/" + os.fsencode(name) + b"|"
    assert command.isprintable()


def test_an_ingest_conflict_has_both_texts(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """The edit, the new text of the source and what both were made from; each choice is real."""
    workspace.write("a.md", "# A\n\nFirst words.\n")
    workspace("add", "a.md")
    (path,) = workspace.chunked.glob("a.md/*.md")
    path.write_bytes(path.read_bytes().replace(b"First", b"Edited"))
    workspace.sync()
    workspace.write("a.md", "# A\n\nChanged words.\n")
    workspace("add", "a.md", code=None)
    store = opened()
    finding = told(store, "ingest-conflict")
    found = store.sides(finding)
    assert found.code == "ingest-conflict"
    assert "Edited words." in found.ours
    assert "---" not in found.ours
    assert found.theirs is not None
    assert "Changed words." in found.theirs
    assert found.base is not None
    assert "First words." in found.base
    assert found.theirs_label == "the new text of ../a.md"
    ours, theirs = found.choices
    assert ours.policy == Policy(ours=(finding.path,))
    assert theirs.command == f"filestore repair --theirs {finding.path}"
    evidence = store.evidence(finding)
    assert "-First words." in evidence.diff
    assert "+Edited words." in evidence.diff
    assert theirs.policy is not None
    plan = store.plan(theirs.policy)
    assert [(step.kind, step.path) for step in plan.doable] == [("resolve-theirs", finding.path)]
    store.apply(plan)
    assert b"Changed words." in path.read_bytes()
    with pytest.raises(NoSidesError, match="no choice waits"):
        store.sides(finding)


def test_marked_sides_are_whole_files(workspace: Any, opened: Callable[[], InspectedStore]) -> None:
    """Each side is the file as it would be, with the names that the marks give them."""
    write(workspace, "own.md", f"Before.\n\n{MARKS}\nBetween.\n\n{MARKS}")
    store = opened()
    finding = told(store, "conflict-markers")
    found = store.sides(finding)
    assert found.ours == "Before.\n\nours\n\nBetween.\n\nours\n"
    assert found.theirs == "Before.\n\ntheirs\n\nBetween.\n\ntheirs\n"
    assert (found.ours_label, found.theirs_label) == (
        "ours (mine)",
        "theirs (other branch)",
    )
    assert [(one.name, one.policy, one.command) for one in found.choices] == [
        ("ours", Policy(ours=(finding.path,)), "filestore repair --ours chunked/own.md"),
        ("theirs", Policy(theirs=(finding.path,)), "filestore repair --theirs chunked/own.md"),
        (
            "both",
            Policy(hunks=((finding.path, ("both",)),)),
            "filestore repair --hunks both:chunked/own.md",
        ),
    ]


def test_what_git_has_unmerged_is_gits_to_resolve(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """During a merge both versions come from git's index, and the commands are git's."""
    path = write(workspace, "own.md", "Base.\n")
    commit = ("commit", "-qam")
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", "base")
    workspace.git("checkout", "-qb", "other")
    path.write_text("Theirs.\n")
    workspace.git(*commit, "theirs")
    workspace.git("checkout", "-q", "-")
    path.write_text("Ours.\n")
    workspace.git(*commit, "ours")
    with pytest.raises(subprocess.CalledProcessError):
        workspace.git("merge", "-q", "other")
    store = opened()
    marked = store.sides(Finding(code="conflict-markers", path="chunked/own.md", detail="marks"))
    assert [one.name for one in marked.choices] == ["ours", "theirs", "both"]
    path.write_text("A text without any mark.\n")
    found = store.sides(told(store, "conflict-markers"))
    assert (found.base, found.ours, found.theirs) == ("Base.\n", "Ours.\n", "Theirs.\n")
    assert found.choices == ()  # What a person wrote there is never replaced.
    path.write_text("Ours.\n")
    stays, choice = store.sides(told(store, "conflict-markers")).choices
    assert (stays.label, stays.policy) == ("our side, as the file is", None)
    assert stays.command.startswith("git add ")
    assert stays.command.endswith("/chunked/own.md")
    assert choice.command == "filestore repair --theirs chunked/own.md"
    workspace(*choice.command.split()[1:], "--yes", code=1)  # git has to be told.
    assert path.read_text() == "Theirs.\n"


def test_a_document_that_no_command_writes_is_left_to_git(tmp_path: Path) -> None:
    """Also where its bytes have two conflicts: each side is the command of git that takes it."""
    document = tmp_path / "paper.html"
    rows = [f"<p>row {number}</p>" for number in range(30)]
    document.write_text("\n".join(rows))

    def git(*words: str, is_stopped: bool = False) -> None:
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert (done.returncode != 0) == is_stopped, done

    configuration = str(tmp_path / "configuration")
    InspectedStore.create(
        str(tmp_path), layout="in-place", embedder="builtin", configuration=configuration
    ).close()
    git("init", "-q")
    git("add", "paper.html")
    git("commit", "-qm", "base")
    for branch, base in (("one", "HEAD"), ("two", "HEAD~1")):
        git("checkout", "-q", "-b", branch, base)
        rows[2] = rows[25] = f"<p>{branch}</p>"
        document.write_text("\n".join(rows))
        git("commit", "-qam", branch)
    git("merge", "one", is_stopped=True)
    finding = Finding(code="conflict-markers", path="paper.html")
    with InspectedStore(str(tmp_path), configuration=configuration) as store:
        found = store.sides(finding)
    assert found.hunks == ()
    assert [(one.name, one.policy) for one in found.choices] == [("ours", None), ("theirs", None)]
    assert all(f"git checkout --{one.name} -- " in one.command for one in found.choices)


@pytest.mark.parametrize(
    "finding",
    [
        Finding(code="modified", path="chunked/own.md"),
        Finding(code="duplicate", path="chunked/own.md"),
        Finding(code="duplicate", path="chunked/own.md", other="chunked/gone.md"),
        Finding(code="duplicate", path="filestore.toml", other="chunked/own.md"),
        Finding(code="duplicate", path="chunked/../filestore.toml", other="chunked/own.md"),
        Finding(code="conflict-markers", path="chunked/own.md"),
        Finding(code="conflict-markers", path="chunked/gone.md"),
        Finding(code="ingest-conflict", path="chunked/own.md"),
    ],
)
def test_no_choice_is_said(
    workspace: Any, opened: Callable[[], InspectedStore], finding: Finding
) -> None:
    """A finding that is about no two versions any more is an error that says so."""
    write(workspace, "own.md", TEXT)
    workspace.sync()
    with pytest.raises(NoSidesError) as caught:
        opened().sides(finding)
    assert finding.path in caught.value.message or finding.other in caught.value.message


def test_a_choice_without_a_catalog_says_what_to_do(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """The new text of a source is the catalog's, which is made by a sync."""
    for part in workspace.sidecar.glob("catalog.sqlite*"):
        part.unlink()
    with pytest.raises(CatalogMissingError) as caught:
        opened().sides(Finding(code="ingest-conflict", path="chunked/own.md"))
    assert "filestore sync" in all_words(caught.value)


def test_a_file_that_waits_for_git_add_is_excluded(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """Although it is as it was indexed; and the folder of git is no original."""
    path = write(workspace, "own.md", TEXT)
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", "base")
    for branch, base in (("ours", "HEAD"), ("theirs", "HEAD~1")):
        workspace.git("checkout", "-q", "-b", branch, base)
        path.write_text(TEXT.replace("last", branch))
        workspace.git("commit", "-qam", branch)
    workspace.sync()
    with pytest.raises(subprocess.CalledProcessError):
        workspace.git("merge", "ours")
    path.write_text(TEXT.replace("last", "theirs"))
    store = opened()
    assert "search excludes it in this state" in seen(store, "conflict-markers").notes
    assert seen(store, "git-operation").notes == ("'git status' says what git waits for",)
