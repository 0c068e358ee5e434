"""Whether documents are found by what they are about: ``python tests/bench/about_documents.py``.

Every document is described by somebody in a line: the summary of a Python package for its README,
the first line of a module for the docstrings of what is in it, the name line of a manual page for
the page, the title of an article for its paragraphs, title and first paragraph of a file for the
rest of it. That line asks for the document, and every sentence that has most of its words is taken
out of the document, so that no single place answers. The same store is asked three times: with its
chunks alone, with keys in the chunk files, and with summaries as well, as ``filestore enrich``
makes them offline. The score is how often the document is among the first five.

``--large N`` instead measures what `about` of a folder of N small documents takes: processor time,
and characters of what it answers, as JSON and in words for agents.
"""

import argparse
import ast
import contextlib
import gzip
import importlib.metadata
import json
import os
import re
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import measure
import orjson
from stores import TextMaker

from filestore.extract import for_name
from filestore.search.metrics import paired_difference
from filestore.server.agents.wording import MOST_ABOUT, text_of
from filestore.store import Store

MOST: Final = 150
"""Documents of one set, taken evenly from all."""
FEWEST: Final = 5
SHORTEST: Final = 1_500
"""Characters: a shorter document is one chunk."""
LONGEST: Final = 60_000
KEYS: Final = 3
FIRST: Final = 5
DEEP: Final = 60
MOST_SHARED: Final = 0.5
"""Of the words of the line that asks, so many may stand in one sentence of the document."""
GOAL: Final = 0.10
OF_FAMILY: Final = 20
"""Manual pages: some programs have a page for each of thousands of commands."""
_MANUALS: Final = Path("/usr/share/man/man1")
_ROFF: Final = re.compile(r"\\f(?:\[\w*\]|\(\w\w|.)|\\[&|^/,]|\\s[-+]?\d")

Pair = tuple[str, str]
"""What somebody says of a document, and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What a store has beside its chunks."""

    name: str
    summaries: bool = False


PLAIN: Final = Variant(name="chunks alone")
VARIANTS: Final = (
    Variant(name="with keys"),
    Variant(name="with keys and summaries", summaries=True),
)


def main() -> int:
    """Measure and print the table; 1 where there is nothing to measure."""
    given = _arguments()
    if given.large:
        print(measure.table(f"What {given.large:,} documents are about", [*_large(given.large)]))
        return 0
    scores: dict[str, list[float]] = {}
    rows: list[measure.Row] = []
    for name, source in _sources(given.data).items():
        pairs = _chosen(source(), given.most)
        if len(pairs) < FEWEST or (given.only and name not in given.only):
            continue
        found = _measured(pairs, given.embedder)
        rows += _rows(f"{name}, {len(pairs)} documents", found)
        for variant, hits in found.items():
            scores.setdefault(variant, []).extend(hits)
    if not rows:
        print("no set of documents is here", file=sys.stderr)
        return 1
    rows += _rows("all", scores, goal=GOAL)
    print(measure.table(f"Documents by what they are about, recall@{FIRST}", rows))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", nargs="?", type=Path, help="folder of xquad.en.json and documents/")
    parser.add_argument("--embedder", metavar="SPEC", default="builtin")
    parser.add_argument("--most", type=int, default=MOST, help="documents (default: %(default)s)")
    parser.add_argument("--large", metavar="N", type=int, default=0, help="a folder of N documents")
    parser.add_argument("--only", nargs="*", metavar="SET", help="names as in the table")
    return parser.parse_args()


def _large(count: int) -> Iterator[measure.Row]:
    maker = TextMaker(7)
    with tempfile.TemporaryDirectory() as root:
        for number in range(count):
            folder = Path(root, f"area-{number % 40:02}")
            folder.mkdir(exist_ok=True)
            text = f"# {maker.word()} {maker.word()}\n\n{maker.text(50)}"
            (folder / f"{maker.word()} {number:05}.md").write_text(text, "utf-8")
        with Store.create(root, layout="in-place", embedder="builtin") as store:
            store.sync()
        with Store(root) as store:
            began = time.process_time()
            answer = store.about().to_dict()
            took = time.process_time() - began
    said = {
        "characters in words": len(text_of("about", answer, root)),
        "characters of JSON": len(orjson.dumps(answer)),
    }
    yield measure.Row(figure="processor seconds", ours=f"{took:.2f}")
    for figure, length in said.items():
        is_bounded = length <= MOST_ABOUT
        goal = f"≤ {MOST_ABOUT:,}"
        yield measure.Row(figure=figure, ours=f"{length:,}", goal=goal, met=is_bounded)


# The documents of a machine, and what is said about them


def _sources(data: Path | None) -> dict[str, Callable[[], Iterator[Pair]]]:
    found: dict[str, Callable[[], Iterator[Pair]]] = {
        "Python packages": _packages,
        "Python modules": _modules,
        "manual pages": _manuals,
    }
    if data is not None:
        found["articles"] = lambda: _articles(data / "xquad.en.json")
        found["files"] = lambda: _files(data / "documents")
    return found


def _chosen(pairs: Iterator[Pair], most: int) -> list[Pair]:
    """Documents of a fit size, none twice, nor two that the same is said of."""
    bare = {about: _without(about, text[:LONGEST]) for about, text in pairs}
    fit = {about: text for about, text in bare.items() if len(text) >= SHORTEST}
    unique = sorted({text: about for about, text in fit.items()}.items(), key=lambda one: one[1])
    kept = unique if len(unique) <= most else unique[:: -(-len(unique) // most)]
    return [(about, text) for text, about in kept]


def _without(about: str, text: str) -> str:
    """A document without the sentences that say in one place what it is about."""
    asked = _words(about)
    kept = []
    for line in text.split("\n"):
        sentences = re.split(r"(?<=[.!?]) +", line)
        kept.append(
            " ".join(
                one for one in sentences if len(asked & _words(one)) <= MOST_SHARED * len(asked)
            )
        )
    return "\n".join(kept)


def _words(text: str) -> set[str]:
    """The longer words of a text, of which only the first letters count."""
    return {word[:6] for word in re.findall(r"\w{4,}", text.lower())}


def _packages() -> Iterator[Pair]:
    """The README of each installed package, and the line that its metadata gives."""
    for one in importlib.metadata.distributions():
        about = " ".join((one.metadata["Summary"] or "").split())
        text = one.metadata.get_payload() or one.metadata["Description"] or ""
        if len(about.split()) > 2:
            yield about, str(text)


def _modules() -> Iterator[Pair]:
    """The docstrings in each module of the standard library; its own first line asks."""
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        tree = ast.parse(path.read_text("utf-8", "replace"))
        about = (ast.get_docstring(tree) or "").partition("\n\n")[0]
        kinds = (ast.FunctionDef, ast.ClassDef)
        said = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds)]
        if 3 < len(about.split()) < 30:
            yield " ".join(about.split()), "\n\n".join(filter(None, said))


def _manuals() -> Iterator[Pair]:
    """Manual pages of commands, a few of each family, without their name line."""
    families: dict[str, list[Path]] = {}
    for path in sorted(_MANUALS.glob("*.1.gz")) if _MANUALS.is_dir() else []:
        families.setdefault(re.split(r"[-_.]", path.name)[0], []).append(path)
    for path in (path for paths in families.values() for path in paths[:OF_FAMILY]):
        with contextlib.suppress(OSError, EOFError):
            text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
            name, _, rest = _plain_manual(text).partition("\n## ")
            _, dash, about = " ".join(name.split()).partition(" - ")
            if dash and len(about.split()) > 2:
                yield about, rest


def _plain_manual(text: str) -> str:
    """A manual page without its marks: sections get headings, the name line comes first."""
    lines: list[str] = []
    bare = _ROFF.sub("", text).replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")
    for line in bare.splitlines():
        mark, _, words = line.partition(" ")
        if mark in (".SH", ".Sh"):
            title = words.strip('" ')
            lines.append("" if title.upper() == "NAME" else f"\n## {title.capitalize()}\n")
        elif mark in (".B", ".I", ".BR", ".IR", ".BI", ".RB", ".SS", ".TP", ".PP", ".P"):
            lines.append(words.replace('"', "") if mark[1:] not in ("TP", "PP", "P") else "")
        elif not line.startswith((".", "'")):
            lines.append(line)
    return "\n".join(lines).strip()


def _articles(path: Path) -> Iterator[Pair]:
    """The paragraphs of each article, of which only its title says what they are about."""
    if not path.is_file():
        return
    for article in json.loads(path.read_text("utf-8"))["data"]:
        text = "\n\n".join(paragraph["context"] for paragraph in article["paragraphs"])
        if title := article.get("title"):
            yield title.replace("_", " "), text


def _files(folder: Path) -> Iterator[Pair]:
    """What is behind title and first paragraph of each file that can be read."""
    for path in sorted(folder.glob("*")):
        extractor = for_name(path.name)
        with contextlib.suppress(Exception):
            text = extractor.extract(path.read_bytes(), name=path.name).text if extractor else ""
            parts = [
                part.strip("#* \n") for part in re.split(r"\n\s*\n", text) if part.strip("#* \n")
            ]
            about = " ".join(" ".join(parts[:2]).split()[:30])
            yield about, "\n\n".join(parts[2:])


# The stores


def _measured(pairs: Sequence[Pair], embedder: str) -> dict[str, list[float]]:
    """For each variant whether the document was among the first, for each question."""
    with tempfile.TemporaryDirectory() as folder:
        # Where a model lies is remembered on the user's side, which is none of a benchmark's.
        os.environ["XDG_CONFIG_HOME"] = folder
        plain = os.path.join(folder, "store")
        texts = Path(folder, "texts")
        texts.mkdir()
        for number, (_, text) in enumerate(pairs):
            (texts / f"{number:04}.md").write_text(text, "utf-8", "replace")
        with contextlib.closing(Store.create(plain, embedder=embedder)) as store:
            store.add(texts, each=True, copy=False)
            found = {PLAIN.name: _asked(store, pairs)}
        for variant in VARIANTS:
            root = os.path.join(folder, variant.name)
            shutil.copytree(plain, root)
            with contextlib.closing(Store(root)) as store:
                store.enrich(questions=KEYS, summaries=variant.summaries)
                found[variant.name] = _asked(store, pairs)
        return found


def _asked(store: Store, pairs: Sequence[Pair]) -> list[float]:
    hits: list[float] = []
    for number, (about, _) in enumerate(pairs):
        answer = store.search(
            f"Which document is about {about.rstrip('.')}?", k=DEEP, syntax="plain"
        )
        found = dict.fromkeys(_number(hit.path) for hit in answer.hits)
        hits.append(float(number in list(found)[:FIRST]))
    return hits


def _number(path: str) -> int:
    """The number of the document that a chunk file or a summary is of."""
    return int(re.search(r"(\d{4})(?:\.md)?/", path)[1])  # type: ignore[index]


def _rows(
    name: str, scores: dict[str, list[float]], goal: float | None = None
) -> Iterator[measure.Row]:
    plain = scores[PLAIN.name]
    for variant in VARIANTS:
        ours = scores[variant.name]
        found = paired_difference(ours, plain)
        is_goal = goal is not None and variant.summaries
        yield measure.Row(
            figure=f"{name}, {variant.name}",
            ours=f"{sum(ours) / len(ours):.3f}",
            yardstick=f"{PLAIN.name} {sum(plain) / len(plain):.3f}",
            compared=f"{found.mean:+.3f} (95 %: {found.low:+.3f} to {found.high:+.3f})",
            goal=f"≥ +{goal:.2f}" if is_goal else "–",
            met=found.mean >= goal if is_goal and goal is not None else None,
        )


if __name__ == "__main__":
    sys.exit(main())
