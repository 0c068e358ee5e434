"""In a folder that is searched in place every line that a hit names is that of an editor.

Held over made-up notes: frontmatter, any line end, byte-order marks, UTF-16, headings within code,
long lines, blank lines, and no line end at the end.
"""

import random
import re
from pathlib import Path

import pytest

import filestore

_NOTES = 60
_KINDS = ("plain", "heading", "code", "list", "table", "long", "blank", "setext", "odd", "html")


def _blocks(rng, word):
    """The lines of one block; every line of text in it has a word of its own."""
    kind = rng.choice(_KINDS)
    if kind == "heading":
        return [f"{'#' * rng.randint(1, 4)} About {word()}", *[""] * rng.randint(0, 1)]
    if kind == "code":
        return ["```sh", f"# not a heading {word()}", "", f"run {word()}", "```"]
    if kind == "list":
        return [f"{'  ' * rng.randint(0, 2)}- item {word()}" for _ in range(rng.randint(1, 5))]
    if kind == "table":
        return ["| a | b |", "|---|---|", f"| {word()} | {word()} |"]
    if kind == "long":
        return [" ".join(f"A sentence with {word()} in it, and more." for _ in range(12))]
    if kind == "setext":
        return [f"Title {word()}", "====="]
    if kind == "odd":
        return [f"form\x0cfeed {word()}", f"  two blanks  {word()}  ", f"\ttab {word()} \u2028 sep"]
    if kind == "html":
        return ["<div>", f"  <b>{word()}</b>", "</div>"]
    return [f"Some words, {word()} and more" for _ in range(rng.randint(1, 4))] + [""]


def _note(rng, word):
    """The bytes of a note."""
    lines = []
    if rng.random() < 0.4:
        lines += ["---", f"title: Note {word()}", "tags: [one, two]", "---"]
    lines += [""] * rng.choice((0, 0, 1, 3))
    for _ in range(rng.randint(1, 25)):
        lines += [*_blocks(rng, word), *[""] * rng.choice((0, 1, 1, 2))]
    end = rng.choice(("\n", "\n", "\r\n", "\r"))
    if end == "\n" and rng.random() < 0.2:
        lines.insert(rng.randint(0, len(lines)), f"a lone\rreturn {word()}")
    text = end.join(lines) + rng.choice((end, "", end * 3))
    mark, encoding = rng.choice(
        (("", "utf-8"),) * 3
        + (("\ufeff", "utf-8"), ("\ufeff", "utf-16-le"), ("\ufeff", "utf-16-be"))
    )
    return (mark + text).encode(encoding)


def _editor_lines(data):
    """The lines that an editor counts: a lone CR ends one only where no LF does."""
    encoding = "utf-8-sig"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    text = data.decode(encoding).replace("\r\n", "\n")
    return (text if "\n" in text else text.replace("\r", "\n")).split("\n")


@pytest.mark.parametrize("seed", range(4))
def test_every_hit_names_the_lines_of_its_excerpt(tmp_path, seed):
    """The excerpt starts on `line` and ends on `end_line`, and what was sought is between them."""
    rng = random.Random(seed)
    made = [0]

    def word():
        made[0] += 1
        return f"quux{seed}zz{made[0]}"

    for number in range(_NOTES):
        suffix = rng.choice((".md", ".md", ".md", ".txt"))
        path = tmp_path / rng.choice(("", "a/b", "odd name")) / f"note {number}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_note(rng, word))
    with filestore.create(tmp_path, layout="in-place", embedder="builtin") as store:
        store.sync()
        for number in range(1, made[0] + 1, 3):
            _holds(store, tmp_path, f"quux{seed}zz{number}")


def _holds(store, root: Path, sought):
    hits = store.search(sought, k=2, mode="keyword").hits
    for hit in hits:
        lines = _editor_lines((root / hit.document).read_bytes())
        assert hit.line is not None
        assert hit.end_line is not None
        excerpt = hit.excerpt.split("\n")
        # In a file with other line ends a lone CR is a sign, and a line end of the excerpt.
        shown = "\n".join(lines[hit.line - 1 : hit.end_line]).replace("\r", "\n").split("\n")
        where = f"{hit.document}:{hit.line}"
        assert any(_reads(line, excerpt[0]) for line in shown), where
        assert any(_reads(line, excerpt[-1]) for line in shown), where
        if "\r" not in lines[hit.line - 1]:
            assert _reads(lines[hit.line - 1], excerpt[0]), where
        # A word of a heading, or of the title, leads to a section below it.
        assert sought in "\n".join(shown) or sought in hit.text or _is_above(hit, sought), where
    assert hits, f"{sought} is found nowhere"


def _reads(line, read):
    """Whether a line has the words that are read in it: markup is left out."""
    return set(re.findall(r"\w+", read)) <= set(re.findall(r"\w+", line))


def _is_above(hit, sought):
    return sought in hit.title or any(sought in heading for heading in hit.headings)
