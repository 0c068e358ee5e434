"""What must hold of start-up: a command loads only what it uses."""

import re
import sys

import pytest

from tests.test_architecture import all_modules

HEAVY = frozenset(
    {
        "bs4",
        "chardet",
        "faiss",
        "frontmatter",
        "markdown_it",
        "markdownify",
        "numpy",
        "lxml",
        "liteparse",
        "mammoth",
        "onnxruntime",
        "oxmsg",
        "pypdfium2",
        "qdrant_client",
        "selectolax",
        "semantic_text_splitter",
        "sentence_transformers",
        "tantivy",
        "textual",
        "tokenizers",
        "trafilatura",
        "torch",
        "transformers",
        "tree_sitter",
        "urllib3",
        "yaml",
    }
)
TOLD = """
import os, sys
from filestore.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
sys.stderr.write(f"\\nTHREADS {threads}")
sys.stderr.write("\\nLOADED " + " ".join(sorted({name.partition(".")[0] for name in sys.modules})))
sys.exit(code)
"""
RARE = frozenset({"base64", "html", "shutil", "subprocess", "tempfile", "urllib"})
"""Of the standard library: what each loads costs as much as the rest of a short command."""
PACKAGE = """
import re
import sys
before = set(sys.modules)
import filestore
print(*sorted(set(sys.modules) - before))
"""
EVERY_MODULE = f"""
import importlib, sys
for name in {all_modules()}:
    importlib.import_module(name)
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


@pytest.fixture
def loaded(script):
    """The heavy packages that a command loaded, and its exit code."""

    def command(*words, cwd=None, among=HEAVY):
        done = script(TOLD, *words, cwd=cwd)
        assert "Traceback" not in done.stderr, done.stderr
        _, _, names = done.stderr.rpartition("\nLOADED ")
        assert "filestore" in names.split()
        return done.code, among.intersection(names.split())

    return command


@pytest.fixture
def filled(run, store_folder):
    """A store with a few chunk files, as indexed."""
    source = store_folder.parent / "notes.md"
    source.write_text("# Tides\n\nThe moon pulls.\n\n## Neap\n\nWeak tides.\n")
    assert run("add", source, cwd=store_folder).code == 0
    return store_folder


def test_the_package_loads_nothing_of_others(script):
    """Importing the package costs next to nothing; its names load as they are first used."""
    done = script(PACKAGE)
    names = set(done.stdout.split())
    assert "filestore._version" in names
    assert "filestore.store" not in names
    packages = {name.partition(".")[0] for name in names}
    assert packages - sys.stdlib_module_names == {"filestore"}


def test_no_module_loads_a_heavy_library_when_imported(script):
    """Heavy libraries are loaded by the functions that use them."""
    done = script(EVERY_MODULE)
    assert done.code == 0, done.stderr
    assert HEAVY.intersection(done.stdout.split()) == set()


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["search", "--help"]])
def test_asking_for_version_or_help_loads_nothing_heavy(loaded, words):
    """What needs no store is told at once."""
    assert loaded(*words) == (0, frozenset())


def test_status_of_a_clean_store_loads_nothing_heavy(filled, loaded):
    """Asking whether anything drifted is as cheap as git status."""
    assert loaded("status", cwd=filled) == (0, frozenset())
    assert loaded("status", "--json", cwd=filled) == (0, frozenset())


def test_status_of_an_edited_store_loads_nothing_heavy(filled, loaded):
    """An edit, a new file and a lost one are told without numpy, an index or a YAML reader."""
    folder = filled / "chunked" / "notes.md"
    (chunk,) = folder.glob("chunk*.md")
    (folder / "own.md").write_text('---\ntags: ["sea"]\n---\nMy own note.\n')
    chunk.write_bytes(chunk.read_bytes() + b"By hand.\n")
    assert loaded("status", cwd=filled) == (1, frozenset())
    chunk.unlink()
    assert loaded("status", cwd=filled) == (1, frozenset())


def test_keyword_search_loads_no_vectors(filled, loaded):
    """Looking for words needs the full-text index and nothing that vectors need."""
    code, heavy = loaded("search", "--mode", "keyword", "moon", cwd=filled)
    assert code == 0
    assert heavy <= {"tantivy"}


@pytest.mark.parametrize("words", [["ls"], ["ls", "notes.md"], ["reconstruct", "notes.md"]])
def test_reading_commands_load_nothing_heavy(filled, loaded, words):
    """Listing and putting a text together again read files and the catalog."""
    assert loaded(*words, cwd=filled) == (0, frozenset())


def test_vector_search_is_what_loads_numpy(filled, loaded):
    """The watch above is real: a command that needs vectors is seen to load what they need."""
    code, heavy = loaded("search", "--mode", "vector", "moon", cwd=filled)
    assert code == 0
    assert "numpy" in heavy


def test_commands_that_look_load_no_tools_of_rare_cases(filled, loaded):
    """What starts programs, makes temporary files or reads pages is loaded where it happens."""
    commands = ("status", "ls", "verify", "search --mode keyword moon")
    for words in commands:
        assert loaded(*words.split(), cwd=filled, among=RARE) == (0, frozenset())
    notes = filled.parent
    (notes / "notes.md").write_text("# Tides\n\n[The moon](moon.md) pulls & pulls.\n")
    assert loaded("init", "--in-place", ".", "--embedder", "builtin", cwd=notes)[0] == 0
    for words in commands:
        assert loaded(*words.split(), cwd=notes, among=RARE)[1] == frozenset()


def test_one_question_is_answered_in_one_thread(filled, script):
    """The threads that numpy starts with would take a fifth of a search, and have nothing to do."""
    done = script(TOLD, "search", "--mode", "keyword", "moon", cwd=filled)
    (of_words,) = re.findall(r"\nTHREADS (\d)\n", done.stderr)
    for words, threads in (
        (("search", "--mode", "vector", "moon"), of_words),
        (("similar", "notes.md"), "1"),
    ):
        done = script(TOLD, *words, cwd=filled)
        assert f"\nTHREADS {threads}\n" in done.stderr, done.stderr
