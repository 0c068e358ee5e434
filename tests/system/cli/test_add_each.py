"""`filestore add` of folders: what is left out is told, and no ignore rule is passed over."""

from typing import Any

import pytest

from filestore.extract.ignore import MAX_RULES
from tests.advice import advised

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{7:064d}\nsize 9\n"
TOO_MANY_RULES = "secret.md\n" * (MAX_RULES + 1)


def shelf(workspace: Any) -> None:
    """A folder with something of everything that is left out."""
    workspace.write("shelf/.gitignore", "draft.md\n")
    workspace.write("shelf/one.md", "One.\n")
    workspace.write("shelf/draft.md", "Not this.\n")
    workspace.write("shelf/sheet.xlsb", b"PK")
    workspace.write("shelf/picture.png", b"\x89PNG")
    workspace.write("shelf/sound.mp3", b"ID3")
    (workspace.folder / "shelf" / "link.md").symlink_to("one.md")


def test_each_tells_what_is_left_out(either: Any) -> None:
    """With --each the report names what was left out of the folder, and counts the rest."""
    shelf(either)
    report = either.json("add", "shelf", "--each")
    assert [entry["resource"] for entry in report["added"]] == ["one.md"]
    told = {entry["path"]: entry["reason"] for entry in report["skipped"]}
    assert list(told) == ["shelf/link.md", "shelf/sheet.xlsb"]
    assert "symbolic link" in told["shelf/link.md"]
    assert told["shelf/sheet.xlsb"] == "no extractor reads .xlsb files"
    assert (report["ignored"], report["other"]) == (1, 2)
    either.assert_settled()


def test_each_tells_it_in_words(workspace: Any) -> None:
    """A person reads the same, in lines that fit a terminal."""
    shelf(workspace)
    done = workspace("add", "shelf", "--each")
    assert "not read in shelf: 1 .xlsb" in done.stderr
    assert "left out of shelf: 1 by ignore rules, 2 files of other formats" in done.stderr
    assert max(len(line) for line in (done.stdout + done.stderr).splitlines()) <= 80


def test_a_folder_tells_what_is_left_out(either: Any) -> None:
    """A folder that is one resource tells the same with its resource."""
    shelf(either)
    (entry,) = either.json("add", "shelf")["added"]
    assert [item["path"] for item in entry["skipped"]] == ["link.md", "sheet.xlsb"]
    assert (entry["ignored"], entry["other"]) == (1, 2)
    done = either("add", "shelf")
    assert "unchanged shelf (1 chunk)\n" in done.stdout
    assert "not read in shelf: 1 .xlsb" in done.stderr
    assert "left out of shelf: 1 by ignore rules, 2 files of other formats" in done.stderr


def test_nothing_left_out_is_not_mentioned(workspace: Any) -> None:
    """Where all of a folder is added the report has no keys for what is not."""
    workspace.write("shelf/one.md", "One.\n")
    report = workspace.json("add", "shelf", "--each")
    assert {"skipped", "ignored", "other"}.isdisjoint(report)
    assert {"skipped", "ignored", "other"}.isdisjoint(report["added"][0])
    assert "left out" not in workspace("add", "shelf", "--each").stderr


def test_a_folder_of_nothing_that_is_read(workspace: Any) -> None:
    """A folder without documents fails, and says what was found instead."""
    workspace.write("sheets/a.xlsb", b"PK")
    workspace.write("sheets/b.png", b"\x89PNG")
    done = workspace("add", "sheets", code=3)
    assert "no readable document" in done.stderr
    assert "not read in ../sheets: 1 .xlsb" in done.stderr
    assert "1 file of other formats" in done.stderr


@pytest.mark.parametrize("words", [(), ("--each",)])
def test_a_long_list_is_cut_short_in_words(workspace: Any, words: tuple[str, ...]) -> None:
    """Ten lines of what was left out and how many more; JSON has them all."""
    workspace.write("shelf/one.md", "One.\n")
    for number in range(37):
        (workspace.folder / "shelf" / f"{number:02}.md").symlink_to("one.md")
    done = workspace("add", "shelf", *words)
    assert done.stderr.count("is a symbolic link") == 10
    assert "… and 27 more" in done.stderr
    report = workspace.json("add", "shelf", *words)
    told = report if words else report["unchanged"][0]
    assert len(told["skipped"]) == 37


@pytest.mark.parametrize("words", [(), ("--each",)])
def test_documents_without_reader_are_counted_by_suffix(workspace, words) -> None:
    workspace.write("shelf/one.md", "One.\n")
    for number in range(13):
        workspace.write(f"shelf/{number:02}.{'KEY' if number % 4 else 'one'}", b"PK")
    done = workspace("add", "shelf", *words)
    assert "    not read in shelf: 9 .key, 4 .one\n" in done.stderr
    assert "left out" not in done.stderr
    report = workspace.json("add", "shelf", *words)
    told = report if words else report["unchanged"][0]
    assert len(told["skipped"]) == 13


@pytest.mark.parametrize("name", ["big.md", "book.pdf", "sheet.xlsx", "plain.txt", "page.html"])
def test_a_pointer_of_git_lfs_is_no_document(either: Any, name: str) -> None:
    """Whatever it is a pointer to, and what to run is said."""
    either.write(name, POINTER)
    done = either("add", name, code=3)
    assert f"failed {name}: is a git-lfs pointer" in done.stderr
    assert "try: git lfs pull" in done.stderr
    either.write(name, "".join(f"{POINTER}\nand words about it\n" * 20))
    assert "git-lfs" not in either("add", name, code=None).stderr


def test_many_failures_are_cut_short_in_words(workspace: Any) -> None:
    """Of a folder full of damaged documents ten are told in words, all of them in JSON."""
    workspace.write("shelf/one.md", "One.\n")
    for number in range(14):
        workspace.write(f"shelf/{number:02}.md", b"")
    done = workspace("add", "shelf", code=5)
    assert done.stderr.count("failed shelf/") == 10
    assert "… and 4 more" in done.stderr
    assert done.stderr.endswith("added 1, failed 14:\n    14 × empty: expected text\n")
    assert len(workspace.json("add", "shelf", code=5)["failed"]) == 14


@pytest.mark.parametrize("name", [".gitignore", ".filestoreignore"])
def test_rules_that_cannot_be_followed_fail_the_folder(either: Any, name: str) -> None:
    """Nothing of a folder is added whose rules cannot be followed; the other paths are."""
    either.write("secret/a.md", "Public words.\n")
    either.write("secret/in/secret.md", "Secret words.\n")
    rules = either.write(f"secret/in/{name}", TOO_MANY_RULES)
    either.write("other.md", "Other words.\n")
    report = either.json("add", "secret", "other.md", code=5)
    assert [entry["resource"] for entry in report["added"]] == ["other.md"]
    (failed,) = report["failed"]
    assert str(rules) in failed["error"]
    assert f"{MAX_RULES:,}" in failed["error"]
    assert failed["remedy"] or advised(failed["error"])
    assert either.found("words") == either.chunks("other.md")
    either.assert_settled()
    rules.write_text("secret.md\n")
    (added,) = either.json("add", "secret")["added"]
    assert (added["chunks"], added["ignored"]) == (1, 1)
    assert either.found('"secret words"') == []


def test_rules_that_cannot_be_followed_fail_with_each(either: Any) -> None:
    """With --each the folder, or the one child, fails whose rules cannot be followed."""
    either.write("shelf/a.md", "First words.\n")
    either.write("shelf/in/secret.md", "Secret words.\n")
    either.write("shelf/in/.filestoreignore", TOO_MANY_RULES)
    either.write("locked/secret.md", "Secret words.\n")
    either.write("locked/.filestoreignore", TOO_MANY_RULES)
    report = either.json("add", "locked", "shelf", "--each", code=5)
    assert [entry["resource"] for entry in report["added"]] == ["a.md"]
    assert [entry["source"] for entry in report["failed"]] == ["locked", "../shelf/in"]
    assert all(".filestoreignore" in entry["error"] for entry in report["failed"])
    done = either("add", "locked", "shelf", "--each", code=5)
    assert "failed locked: cannot apply the ignore rules" in done.stderr
    assert advised(done.stderr)
    assert either.found("secret") == []


def test_each_follows_the_rules_of_the_folder(run: Any, tmp_path: Any) -> None:
    """With --each the rules of the folder, and of the store, hold inside its children too."""
    store = tmp_path / "store"
    assert run("init", store).code == 0
    settings = store / "filestore.toml"
    settings.write_text('ignore = ["/in/third.md"]\n' + settings.read_text())
    folder = tmp_path / "shelf"
    (folder / "in").mkdir(parents=True)
    for name in ("first", "second", "third"):
        (folder / "in" / f"{name}.md").write_text(f"The {name} words.\n")
    (folder / ".filestoreignore").write_text("second.md\n")
    done = run("--store", store, "add", folder, "--each", "--json")
    (added,) = done.json["added"]
    assert (added["resource"], added["chunks"], added["ignored"]) == ("in", 1, 2)
