"""Random trees of notes with links of all kinds, a random move: no link and no byte is lost."""

import os
import posixpath
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import filestore
from filestore import FilestoreError, Store
from filestore.catalog import decode_path, queries
from filestore.chunks import kept
from filestore.chunks.links import Names
from tests.system.conftest import files_below

STEMS = ["a", "b", "Index", "index", "ü b", "x (1)", "n.1", "%41"]
FOLDERS = ["", "p", "p/q", "r s"]
PATHS = st.builds(
    lambda folder, stem: posixpath.join(folder, f"{stem}.md"),
    st.sampled_from(FOLDERS),
    st.sampled_from(STEMS),
)
FORMS = [
    "[[{stem}]]",
    "![[{stem}#Head|label]]",
    "[[{whole}]]",
    "[[{path}|x]]",
    "[[{near}]]",
    "[t]({url})",
    "[t](<{rel}>)",
    "[t]({url}#head 'title')",
    "![i](/{quoted})",
    '[t][{number}]\n\n[{number}]: {url} "t"',
    "[[{stem}]]\n\n[{stem}]: <{rel}>",
    "`[[{stem}]]`",
    "```\n[t]({url})\n```",
    "[none](missing.md) [[missing]]",
    "plain",
]
LINKS = st.tuples(st.sampled_from(FORMS), PATHS)
NOTES = st.dictionaries(
    PATHS,
    st.tuples(st.lists(LINKS, max_size=5), st.sampled_from(["\n", "\r\n"]), st.booleans()),
    min_size=1,
    max_size=6,
)


class Tree(NamedTuple):
    """Notes, what moves, and where."""

    notes: dict[str, tuple[list[tuple[str, str]], str, bool]]
    old: str
    new: str


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Notes whose names some file system cannot tell apart are left out."""
    notes = draw(NOTES)
    notes = {path.casefold(): (path, note) for path, note in notes.items()}
    found = dict(notes.values())
    folders = sorted({posixpath.dirname(path) for path in found} - {""})
    old = draw(st.sampled_from([*sorted(found), *folders]))
    new = draw(PATHS) if old in found else draw(st.sampled_from(["z", "p/z", "r s/z"]))
    return Tree(found, old, new)


def written(note: str, links: list[tuple[str, str]], end: str, *, mark: bool) -> bytes:
    """A note with links of some forms to some files, there or not."""
    lines = ["# Head", ""]
    for number, (form, target) in enumerate(links):
        rel = posixpath.relpath(target, posixpath.dirname(note) or ".")
        quoted = target.replace("%", "%25").replace(" ", "%20").replace("(", "%28")
        url = rel.replace("%", "%25").replace(" ", "%20").replace("(", "%28").replace(")", "%29")
        values = {
            "stem": posixpath.basename(target)[:-3],
            "whole": target[:-3],
            "path": target,
            "near": rel if rel.startswith("../") else f"./{rel}",
            "rel": rel,
            "url": url,
            "quoted": quoted.replace(")", "%29"),
            "number": f"r{number}",
        }
        lines += [form.format(**values), ""]
    text = "\n".join(lines).rstrip("\n").replace("\n", end)
    return (("\ufeff" if mark else "") + text).encode()


def resolved(store: Store) -> dict[str, list[str | None]]:
    """By note, where each of its links leads as the store has it."""
    with store._parts.reading() as catalog:
        names = Names(map(decode_path, queries.all_paths(catalog)))
        return {
            decode_path(path): [
                names.resolve(link, decode_path(path))
                for link in kept.decode(data).links
                if link.target
            ]
            for path, data in queries.contents_with_links(catalog)
        }


def truth(root: Path) -> dict[str, tuple[bytes, int]]:
    """What a person has in a folder."""
    found = files_below(root)
    return {
        path: (data, (root / path).stat().st_mode)
        for path, data in found.items()
        if not path.startswith(".filestore/")
    }


@given(tree=trees())
@example(
    Tree(
        {"a.md": ([("[[{stem}]]", "b.md")], "\n", False), "b.md": ([], "\n", True)},
        "b.md",
        "p/a.md",
    )
)
@example(Tree({"p/a.md": ([("[[{near}]]", "a.md")], "\n", False)}, "p/a.md", "a.md"))
@settings(
    deadline=None,
    max_examples=int(os.environ.get("MOVE_EXAMPLES", "8")),
    suppress_health_check=list(HealthCheck),
)
def test_each_link_leads_where_it_led(tree: Tree) -> None:
    """Or the move is refused whole; lines without links stay, undo restores bytes and modes."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "vault")
        for number, (path, (links, end, mark)) in enumerate(tree.notes.items()):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(written(path, links, end, mark=mark))
            (root / path).chmod([0o644, 0o600, 0o664][number % 3])
        with filestore.create(root, layout="in-place", embedder="builtin") as store:
            store.sync()
            before, was = truth(root), resolved(store)
            try:
                done = store.move(tree.old, tree.new)
            except FilestoreError:
                assert truth(root) == before
                assert store.status().clean
                return
            to = {str(one.path): str(one.to) for one in done.moved}
            now = resolved(store)
            for note, targets in was.items():
                there = now[to.get(note, note)]
                wanted = [target and to.get(target, target) for target in targets]
                if len(there) != len(wanted):
                    # A definition that says something else than the name is a link of its own.
                    assert not Counter(filter(None, wanted)) - Counter(filter(None, there))
                    continue
                for target, after in zip(wanted, there, strict=True):
                    assert target is None or after == target
            after = truth(root)
            assert {to.get(path, path) for path in before} == after.keys()
            for path, (data, mode) in before.items():
                made, mode_now = after[to.get(path, path)]
                assert mode_now == mode
                for line, other in zip(data.split(b"\n"), made.split(b"\n"), strict=True):
                    assert line == other or b"[" in line
            assert store.status().clean
            store.undo()
            assert truth(root) == before
            assert store.status().clean
