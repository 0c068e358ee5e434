"""Files of a vault moved: do all links lead where they led, and does undo restore every byte.

``python tests/bench/moves.py --repository BUNDLE [--moves N] [--trees N]``. Each rename of the
history is done again by ``mv`` on the tree before it; then random moves of files and folders over
some trees of the history. Links are resolved before and after by the store, and by rules of
Obsidian written down here, which share no line with it. Without a repository one is made up.
"""

import argparse
import os
import posixpath
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import measure
from in_place_life import make_history

import filestore
from filestore.catalog import decode_path, queries
from filestore.chunks import kept
from filestore.chunks.links import Names
from filestore.core.errors import FilestoreError
from filestore.store import Store

HIDDEN = re.compile(
    r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`)"
    r"|<!--.*?-->",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(
    r"!?\[\[(?P<name>[^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\\?\|[^\[\]\n]*)?\]\](?!\()"
    r"|\]\((?P<path><[^<>\n]*>|[^\s()]+)(?:\s+\"[^\"]*\"|\s+'[^']*')?\)"
    r"|^ {0,3}\[[^\]\n]+\]:[ \t]*(?P<defined><[^<>\n]*>|\S+)",
    re.MULTILINE,
)
Links = dict[str, list[str | None]]
"""By note the file that each of its links leads to, in order."""


def main() -> int:
    """Measure and print the table; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repository", metavar="BUNDLE", help="a git repository, cloned first")
    parser.add_argument("--moves", type=int, default=400, help="random ones; default: %(default)s")
    parser.add_argument("--trees", type=int, default=20, help="for these; default: %(default)s")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = os.path.join(folder, "configuration")
        root = os.path.join(folder, "repository")
        if given.repository:
            subprocess.run(["git", "clone", "-q", given.repository, root], check=True)
        else:
            os.mkdir(root)
            make_history(root, 12)
        history, chance = Counter[str](), random.Random(33)
        for commit, renames in renames_of(root):
            with store_of(root, f"{commit}^", os.path.join(folder, "tree")) as store:
                for old, new in renames:
                    moved(store, old, new, history)
        some = Counter[str]()
        commits = git(root, "rev-list", "--all").split()
        chosen = commits[:: max(1, len(commits) // given.trees)][: given.trees]
        for number, commit in enumerate(chosen):
            with store_of(root, commit, os.path.join(folder, "tree")) as store:
                wanted = given.moves * (number + 1) // len(chosen)
                for old, new in random_moves(Path(store.root), chance, wanted - some["moves"]):
                    moved(store, old, new, some)
    rows = []
    for title, found in (("renames of the history", history), ("random moves", some)):
        rows += [
            measure.Row(figure=title, ours=f"{found['moves']:,}"),
            measure.counted(f"{title}: refused", found["refused"], 0),
            measure.Row(figure=f"{title}: links written", ours=f"{found['written']:,}"),
            *(
                measure.counted(
                    f"{title}: of {found[f'{who} links']:,} links that resolved, by {how}, lead on",
                    found[f"{who} links"] - found[f"{who} lost"],
                    found[f"{who} links"],
                )
                for who, how in (("own", "the store"), ("oracle", "the rules of Obsidian"))
            ),
            measure.counted(f"{title}: trees unlike before after undo", found["unlike"], 0),
            measure.Row(figure=f"{title}: texts embedded", ours=f"{found['embedded']:,}"),
            measure.counted(f"{title}: of these without a change", found["embedded again"], 0),
        ]
    print(measure.table("Moves with links", rows))
    return 1 if any(row.met is False for row in rows) else 0


def git(root: str, *words: str) -> str:
    """What git prints."""
    return subprocess.run(
        ["git", "-C", root, *words], check=True, capture_output=True, text=True
    ).stdout


def renames_of(root: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each commit with renames, and their old and new paths."""
    words = ("log", "--all", "-M", "--diff-filter=R", "--name-status", "--format=commit %H", "-z")
    commit, found = "", list[tuple[str, str]]()
    fields = iter(git(root, *words).replace("\n", "\0").split("\0"))
    for field in fields:
        if field.startswith("commit "):
            if found:
                yield commit, found
            commit, found = field.split()[1], []
        elif re.fullmatch(r"R\d+", field):
            found.append((next(fields), next(fields)))
    if found:
        yield commit, found


def store_of(root: str, commit: str, folder: str) -> Store:
    """A store over the tree of a commit."""
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    archive = subprocess.run(
        ["git", "-C", root, "archive", commit], check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    store = filestore.create(folder, layout="in-place", embedder="builtin")
    store.sync()
    return store


def random_moves(root: Path, chance: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Paths of files or folders, and free ones where they could lie."""
    visible = [
        path.relative_to(root)
        for path in sorted(root.rglob("*"))
        if not any(part.startswith(".") for part in path.relative_to(root).parts)
    ]
    notes = [path for path in visible if path.suffix == ".md"]
    folders = [path for path in visible if (root / path).is_dir()]
    made = 0
    while made < count:
        is_folder = bool(folders) and chance.random() < 0.15
        old = chance.choice(folders if is_folder else notes)
        around = chance.choice([*folders, Path(), Path("new folder"), Path("x/y")])
        name = chance.choice([old.name, old.name, chance.choice(notes).name, f"neu {made} (é).md"])
        name = name.removesuffix(".md") if is_folder else name
        new = around / name
        if (root / new).exists() or new.is_relative_to(old):
            continue
        lower = {str(path).casefold() for path in visible}
        if str(new).casefold() not in lower:
            made += 1
            yield str(old), str(new)


def moved(store: Store, old: str, new: str, count: Counter[str]) -> None:
    """One move, judged, and undone."""
    root = Path(store.root)
    before, own, other = files(root), links_of_store(store), links_by_rules(root)
    count["moves"] += 1
    try:
        done = store.move(old, new)
    except FilestoreError as error:
        print(f"{old} -> {new}: {error.message}", file=sys.stderr)
        count["refused"] += 1
        return
    count["written"] += done.links
    count["embedded"] += done.embedded
    count["embedded again"] += done.embedded if not done.relinked else 0
    to = {one.path: one.to for one in done.moved}
    for who, was, now in (
        ("own", own, links_of_store(store)),
        ("oracle", other, links_by_rules(root)),
    ):
        count[f"{who} links"] += sum(target is not None for one in was.values() for target in one)
        count[f"{who} lost"] += lost(was, now, to, f"{who}: {old} -> {new}")
    if not store.status().clean:
        print(f"{old} -> {new}: not clean: {store.status().findings}", file=sys.stderr)
        count["unlike"] += 1
    store.undo()
    count["unlike"] += files(root) != before or not store.status().clean


def lost(was: Links, now: Links, to: Mapping[str, str], shown: str) -> int:
    """How many links that led to a file do not lead to it where it is now."""
    found = 0
    for note, targets in was.items():
        there = now.get(to.get(note, note), [])
        if len(there) != len(targets):
            # A definition that another one has the new label of is a link of its own.
            wanted = Counter(to.get(one, one) for one in targets if one is not None)
            for target in (wanted - Counter(there)).elements():
                print(f"{shown}: {note}: nothing leads to {target}", file=sys.stderr)
                found += 1
            continue
        for target, after in zip(targets, there, strict=False):
            if target is not None and after != to.get(target, target):
                print(f"{shown}: {note}: {target} became {after}", file=sys.stderr)
                found += 1
    return found


def files(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a person, with its permissions."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode)
        for path in root.rglob("*")
        if path.is_file() and ".filestore" not in path.parts
    }


def links_of_store(store: Store) -> Links:
    """Where links lead, as the store has it."""
    found: Links = {}
    with store._parts.reading() as catalog:
        aliases = queries.files_with_key(catalog, "aliases")
        names = Names(
            map(decode_path, queries.all_paths(catalog)),
            ((alias, path) for path, alias in aliases),
        )
        for path, data in queries.contents_with_links(catalog):
            note = decode_path(path)
            links = kept.decode(data).links if kept.is_document(data) else ()
            found[note] = [names.resolve(one, note) for one in links if one.target]
    return found


def links_by_rules(root: Path) -> Links:
    """Where links lead, as Obsidian finds it: exact paths, else the shortest below, else at all."""
    paths = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    there = [path for path in sorted(paths) if not any(p[0] == "." for p in path.split("/"))]
    found: Links = {}
    for note in there:
        if not note.endswith(".md"):
            continue
        text = (root / note).read_bytes().decode(errors="replace")
        text = HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        found[note] = [_led(match, note, there) for match in LINK.finditer(text)]
    return found


def _led(match: re.Match[str], note: str, there: Sequence[str]) -> str | None:
    folder = posixpath.dirname(note)
    if match["name"] is None:
        path = (match["path"] or match["defined"]).strip("<>")
        path = unquote(re.split(r"[?#]", path, maxsplit=1)[0])
        if not path or re.match(r"[A-Za-z][\w+.-]*:|//", path):
            return None
        at = posixpath.normpath(posixpath.join("" if path[0] == "/" else folder, path.lstrip("/")))
        known = set(there)
        return next((one for one in (at, f"{at}.md") if one in known), None)
    name = match["name"].strip().casefold()
    if name.startswith(("./", "../")):
        name = posixpath.normpath(posixpath.join(folder.casefold(), name))
        fitting = [one for one in there if one.casefold() in (name, f"{name}.md")]
    else:
        ends = [name.lstrip("/"), f"{name.lstrip('/')}.md"]
        fitting = [one for one in there if one.casefold() in ends]
        fitting = fitting or [
            one for one in there if any(one.casefold().endswith(f"/{end}") for end in ends)
        ]
    below: Any = sorted(
        fitting, key=lambda one: (not one.startswith(f"{folder}/" if folder else ""), len(one), one)
    )
    return below[0] if below else None


if __name__ == "__main__":
    sys.exit(main())
