"""Every benchmark runs at a small size; what it measures is for a quiet machine."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

BENCH: Final = Path(__file__).parents[1] / "bench"
MODULES: Final = frozenset(
    {
        "audited",
        "damaged",
        "fusion_sets",
        "heartbeat",
        "measure",
        "screen",
        "served",
        "servers",
        "stores",
        "synthetic",
        "heading_gold",
        "office_gold",
        "page_gold",
        "script_gold",
        "table_gold",
    }
)
"""What the benchmarks share, or start in a process of its own."""
PROGRAMS: Final = sorted({path.stem for path in BENCH.glob("*.py")} - MODULES)
STORE: Final = ("--files", "40", "--folders", "2", "--runs", "2")
SMALL: Final = {
    "about_documents": ("{data}", "--most", "6", "--only", "Python modules"),
    "age_cost": STORE,
    "agents": STORE,
    "backend_store": STORE,
    "closed_cost": STORE,
    "backends": ("--vectors", "400", "--queries", "5"),
    "before": (str(BENCH.parents[1]), *STORE),
    "code_chunks": ("--files", "2"),
    "duplicates": STORE,
    "enriched_search": STORE,
    "enriching": ("--files", "40", "--folders", "4"),
    "help": ("--runs", "1"),
    "exchange": ("jsonl", "--files", "40", "--folders", "2", "--runs", "1"),
    "first_index": ("--files", "40", "--runs", "1"),
    "fusion": ("--xquad", "{data}", "--only", "XQuAD en"),
    "headings": (str(BENCH.parents[1] / "example_index" / "source"),),
    "in_place": STORE,
    "in_place_life": ("--commits", "3"),
    "inspector": STORE,
    "keyword_quality": ("{data}",),
    "large_store": STORE,
    "layouts": ("{data}", "--languages", "en"),
    "look": STORE,
    "merges": ("--only", "cherry"),
    "moves": ("--moves", "3", "--trees", "1"),
    "misspelt": ("{data}", "--languages", "en"),
    "packs": ("--files", "40", "--runs", "1"),
    "page": ("--documents", "40", "--folders", "2"),
    "past": ("--files", "200", "--folders", "4", "--runs", "1"),
    "pdf": ("--runs", "1"),
    "query_cost": STORE,
    "query_syntax": ("--xquad", "{data}"),
    "questions": ("--xquad", "{data}", "--only", "XQuAD en"),
    "reconstruct": ("--megabytes", "0.2", "--naive", "400", "800"),
    "ragmd": ("--files", "20", "--folders", "3", "--runs", "1"),
    "renames": ("--files", "200", "--folders", "2"),
    "replay": ("--points", "2", "--texts", "20", "--layouts", "tree", "in-place"),
    "server": ("--files", "40", "--folders", "2", "--runs", "2"),
    "served_commands": STORE,
    "start": STORE,
    "status": STORE,
    "sync": ("--files", "200", "--folders", "2", "--runs", "1"),
    "three_servers": ("--vectors", "600", "--queries", "5"),
    "tree_drift": ("--texts", "60"),
    "tree_rules": STORE,
    "usages": ("--only", "else: "),
    "verify": STORE,
    "watched_status": STORE,
    "xquad": ("{data}", "--languages", "en"),
}
"""The smallest size that each can do."""
QUICK: Final = ("query_cost", "xquad")
"""What asks the library most, and takes a second."""
DEAR: Final = frozenset(
    {
        "about_documents",
        "backend_store",
        "before",
        "code_chunks",
        "enriching",
        "exchange",
        "first_index",
        "in_place",
        "inspector",
        "large_store",
        "layouts",
        "look",
        "merges",
        "past",
        "pdf",
        "query_syntax",
        "served_commands",
        "server",
        "start",
        "watched_status",
    }
)
"""What takes ten seconds and more even so."""
TOO_LONG: Final = frozenset(
    {
        "agent_answers",
        "agent_characters",
        "all",
        "documents",
        "embedding",
        "extras",
        "figures",
        "first_answer",
        "keystrokes",
        "large_index",
        "model_runtimes",
        "packages",
        "rows",
        "soak",
        "structure",
    }
)
"""What has no small size, or measures no filestore: only its start is tried."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a question set: ten paragraphs, and six questions on each."""
    paragraphs = [
        {
            "context": f"The river {name} flows past {name}ville into the sea of {name}land.",
            "qas": [
                {
                    "question": f"Where does {name} flow, {at}?",
                    "answers": [{"answer_start": 10, "text": name}],
                }
                for at in range(6)
            ],
        }
        for name in ("Ando", "Bero", "Cali", "Doro", "Elbu", "Feno", "Gala", "Hiru", "Ika", "Juno")
    ]
    text = json.dumps({"data": [{"paragraphs": paragraphs}]})
    (tmp_path / "xquad.en.json").write_text(text)
    return tmp_path


def test_every_program_is_tried() -> None:
    """A new benchmark has a small size here, or is named among those that have none."""
    assert sorted(SMALL.keys() | TOO_LONG) == PROGRAMS


def test_every_program_says_what_it_takes(script: Any) -> None:
    """Each starts, with all that it imports, and tells its options."""
    code = (
        "import contextlib, io, runpy, sys\n"
        "folder, *names = sys.argv[1:]\n"
        "sys.path.insert(0, folder)\n"
        "for name in names:\n"
        "    sys.argv = [name, '--help']\n"
        "    said = io.StringIO()\n"
        "    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):\n"
        "        runpy.run_path(f'{folder}/{name}.py', run_name='__main__')\n"
        "    print(name, said.getvalue().startswith('usage: '))\n"
    )
    done = script(code, str(BENCH), *PROGRAMS)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{name} True" for name in PROGRAMS]


def figures(name: str, script: Any, data: Path) -> None:
    """Run a benchmark at its smallest size: it succeeds, and prints a table with rows."""
    words = [word.format(data=data) for word in SMALL[name]]
    start = "import runpy, sys; sys.argv.pop(0); sys.path.insert(0, sys.argv.pop(0))"
    run = f"{start}; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = script(run, str(BENCH), str(BENCH / f"{name}.py"), *words)
    assert done.code == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    if done.stdout.startswith("skipped: "):
        pytest.skip(done.stdout)
    assert len(done.stdout.splitlines()) > 1


@pytest.mark.parametrize("name", QUICK)
def test_it_gives_figures(name: str, script: Any, data: Path) -> None:
    """At its smallest size."""
    figures(name, script, data)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if name in DEAR else pytest.mark.long)
        for name in sorted(SMALL.keys() - set(QUICK))
    ],
)
def test_each_gives_figures(name: str, script: Any, data: Path) -> None:
    """At its smallest size."""
    if name == "inspector" and sys.platform != "linux":
        pytest.skip("it reads the memory of a process from /proc")
    figures(name, script, data)
