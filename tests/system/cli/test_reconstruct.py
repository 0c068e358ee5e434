"""`filestore reconstruct`: the extracted text again, exactly, from the chunk files."""

import random
from typing import Any

import pytest

HTML = "<html><body><h1>Ships</h1>" + "".join(
    f"<h2>Deck {n}</h2><p>{'Words of the deck. ' * 60}</p><pre>line {n}\n  more</pre>"
    for n in range(4)
)


def odd_text(seed: int) -> str:
    """A long text full of what a splitter stumbles over."""
    chance = random.Random(seed)
    pieces = (
        *("word ", "Satz. ", "\n", "\n\n", "\n\n\n", "  ", "\t", "# Title\n", "```\ncode\n```\n"),
        *("| a | b |\n|---|---|\n| 1 | 2 |\n", "- item\n", "東京は大きな都市です。", "\u00a0", "é"),
        *("Setext\n---\n", "    indented\n", "> quoted\n", "\u2028", "🐟", "*" * 30),
    )
    return "Start. " + "".join(chance.choice(pieces) for _ in range(1500)) + "end"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("odd.md", odd_text(1)),
        ("odd.txt", odd_text(2)),
        ("page.html", HTML),
        ("windows.txt", "First line.\r\nSecond line.\r\n\r\n" * 100),
        ("front.md", "---\ntitle: T\n---\n\n\n# A\n\nWords.\n\n---\n\nnot: frontmatter\n"),
        ("one.txt", "x"),
        ("long.txt", "z" * 20_000),
    ],
)
def test_gives_the_text_back(either: Any, text_of: Any, name: str, content: str) -> None:
    """What comes out is what the extractor gave, character for character."""
    source = either.write(name, content)
    either("add", name)
    report = either.json("reconstruct", name)
    expected = text_of(source, name)
    assert report["text"] == expected
    assert report["bytes"] == len(expected.encode())
    assert report["chunks"] == len(either.chunks(name))
    assert report["path"] is None
    assert report["warnings"] == []
    assert either("reconstruct", name).stdout == expected


def test_also_after_the_source_changed(either: Any, text_of: Any) -> None:
    """After any number of changes to the source the text is that of its last state."""
    chance = random.Random(7)
    lines = odd_text(3).split("\n")
    for _ in range(4):
        source = either.write("odd.md", "\n".join(lines))
        either("add", "odd.md")
        assert either("reconstruct", "odd.md").stdout == text_of(source, "odd.md")
        for _ in range(3):
            start = chance.randrange(len(lines))
            cut = lines[start : start + chance.randrange(1, 40)]
            del lines[start : start + len(cut)]
            place = chance.randrange(len(lines) + 1)
            lines[place:place] = chance.choice([cut, [f"New line {chance.random()}."], []])
    either.assert_settled()


def test_into_a_file(workspace: Any, manual: Any) -> None:
    """With -o the text goes to a file, and the report says where and how much."""
    text = manual(["preface", "pears"])
    workspace.write("note.md", text)
    workspace("add", "note.md")
    report = workspace.json("reconstruct", "note.md", "-o", "out.md")
    assert report == {"chunks": 2, "bytes": len(text), "path": "out.md", "warnings": []}
    assert (workspace.folder / "out.md").read_text() == text
    (workspace.folder / "out.md").write_text("older")
    again = workspace("reconstruct", "note.md", "-o", "out.md", "--force")
    assert "wrote out.md" in again.stdout
    assert (workspace.folder / "out.md").read_text() == text


def test_into_a_folder_that_is_missing(workspace: Any) -> None:
    """Where the file cannot be written, the answer is 3 and names it."""
    workspace.write("note.md", "A note.\n")
    workspace("add", "note.md")
    done = workspace("reconstruct", "note.md", "-o", "no/such/folder.md", code=3)
    assert "no/such" in done.stderr


def test_hand_edits_are_part_of_it(workspace: Any) -> None:
    """An edited chunk is used as it is now, and said to be edited."""
    workspace.write("note.md", "A note.\n")
    workspace("add", "note.md")
    path = workspace.chunked / "note.md/chunk1.md"
    path.write_bytes(path.read_bytes() + b"Mine.\n")
    done = workspace("reconstruct", "note.md")
    assert done.stdout == "A note.\nMine.\n"
    assert "chunked/note.md/chunk1.md: edited by hand" in done.stderr


def test_what_lacks_is_said(either: Any, manual: Any) -> None:
    """A chunk that is gone or broken is named; the others are still put together."""
    either.write("note.md", manual(["preface", "pears", "plums"]))
    either("add", "note.md")
    first, second, _ = either.chunks("note.md")
    (either.chunked / first).unlink()
    (either.chunked / second).write_bytes(b"---\n{: broken\n---\nWords.\n")
    report = either.json("reconstruct", "note.md")
    assert report["text"].startswith("## About plums")
    warnings = "\n".join(report["warnings"])
    assert f"chunked/{first}: No such file" in warnings
    assert f"chunked/{second}: left out, malformed-frontmatter" in warnings


def test_a_link_in_the_place_of_a_chunk_is_named(either: Any, manual: Any) -> None:
    """Nothing is read through it, and it is not taken for an empty chunk."""
    either.write("note.md", manual(["preface", "pears"]))
    either("add", "note.md")
    first = either.chunks("note.md")[0]
    (either.chunked / first).unlink()
    (either.chunked / first).symlink_to("/etc/hostname")
    report = either.json("reconstruct", "note.md")
    assert report["text"].startswith("## About pears")
    assert f"chunked/{first}: left out, symlink" in report["warnings"]


def test_what_is_withheld_is_said(either: Any, manual: Any) -> None:
    """A broken chunk is missed in the text also once a sync has withheld it."""
    either.write("note.md", manual(["preface", "pears", "plums"]))
    either("add", "note.md")
    second = either.chunks("note.md")[1]
    (either.chunked / second).write_bytes(b"---\n{: broken\n---\nWords.\n")
    either.sync(code=1)
    (warning,) = either.json("reconstruct", "note.md")["warnings"]
    assert second in warning


def test_overlaps_and_summaries(workspace: Any) -> None:
    """A recorded overlap is taken off where it holds, and summaries are no part of the text."""
    folder = workspace.chunked / "made"
    folder.mkdir()
    (folder / "chunk1.md").write_text("One two three.")
    (folder / "chunk2.md").write_text("---\noverlap: 6\n---\nthree. Four.")
    (folder / "chunk3.md").write_text("---\noverlap: 5\n---\nOther. Five.")
    (folder / "summary1.md").write_text("A summary.")
    workspace.sync()
    report = workspace.json("reconstruct", "made")
    assert report["text"] == "One two three. Four.Other. Five."
    assert report["chunks"] == 3
    assert "the first 5 characters do not repeat" in report["warnings"][0]


def test_unknown_resource(workspace: Any) -> None:
    """A name that is none ends with 3."""
    assert "filestore ls" in workspace("reconstruct", "nothing", code=3).stderr
