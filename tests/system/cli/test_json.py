"""What `--json` prints is what JSON.md says, and what the library's `to_dict()` gives."""

import ast
import inspect
import json
import sys

import pytest

import filestore
from filestore.cli import syncing
from filestore.server.operations import COMMANDS, definitions
from filestore.store import watch as events
from tests.advice import advised

TYPES = {"string": str, "boolean": bool, "number": (int, float), "null": type(None)}


def wrong(one, value, place):
    """What of a value is not as a shape, or a part of one, says."""
    if isinstance(one, str):
        one = {"$ref": one}
    if "anyOf" in one:
        return min((wrong(part, value, place) for part in one["anyOf"]), key=len)
    if "$ref" in one:
        return wrong(definitions()[one["$ref"].rpartition("/")[2]], value, place)
    if (kind := one.get("type")) in TYPES:
        is_flag = isinstance(value, bool) and kind == "number"
        return [] if isinstance(value, TYPES[kind]) and not is_flag else [f"{place}: {value!r}"]
    if kind == "array" and isinstance(value, list):
        return [bad for item in value for bad in wrong(one["items"], item, f"{place}[]")]
    if kind is None:
        return []
    if not isinstance(value, dict):
        return [f"{place}: {value!r}"]
    if (inner := one.get("additionalProperties")) is not None:
        return [bad for item in value.values() for bad in wrong(inner, item, place)]
    known = one["properties"]
    order = [key for key in known if key in value]
    found = [f"{place}: {list(value)}, expected {order}"] if list(value) != order else []
    found += [f"{place} lacks {key}" for key in one["required"] if key not in value]
    for key in order:
        found += wrong(known[key], value[key], f"{place}.{key}")
    return found


@pytest.fixture
def says(workspace):
    """Runs a command and holds what it prints against a shape; gives it back."""

    def command(shape, *words, code=0):
        value = workspace.json(*words, code=code)
        assert wrong(shape, value, shape) == []
        return value

    return command


@pytest.fixture
def filled(workspace):
    """A store with a folder, a file, and something that cannot be read."""
    workspace.write("handbook/lease.md", "---\ntags: [rent]\n---\n# Lease\n\nRenewal in writing.\n")
    workspace.write("handbook/.gitignore", "draft.md\n")
    workspace.write("handbook/draft.md", "# Draft\n\nNothing yet.\n")
    workspace.write("handbook/broken.pdf", b"%PDF-1.4 nothing")
    workspace.write("handbook/clip.mp4", b"\0")
    workspace.write("notes.md", "# Notes\n\nAsk about the cellar.\n")
    return workspace


def test_documents_in_and_out(filled, says):
    """`init`, `add` with every outcome, `ls`, `show`, `reconstruct`, `rm` and `undo`."""
    says("Created", "init", "other")
    first = says("AddReport", "add", "handbook", "notes.md", "nowhere.md", code=5)
    assert next(one["resource"] for one in first["failed"]) is None
    assert {one["resource"] for one in first["added"]} == {"handbook", "notes.md"}
    chunk = filled.chunked / "notes.md" / "chunk1.md"
    chunk.write_text(chunk.read_text().replace("cellar", "loft"))
    filled.write("notes.md", "# Notes\n\nAsk about the attic.\n")
    changed = says("AddReport", "add", "notes.md", code=1)
    assert changed["conflicts"]
    (told,) = [*changed["updated"], *changed["unchanged"]]
    assert list(told["kept"]) == ["chunked/notes.md/chunk1.md"]
    says("AddReport", "add", "handbook", "--each", code=None)
    says("Resources", "ls")
    says("ChunkFiles", "ls", "handbook")
    says("Shown", "show", "chunked/notes.md/chunk1.md")
    (filled.chunked / "new.md").write_text("New.\n")
    assert says("Shown", "show", "chunked/new.md", "--no-update")["record"]["indexed"] is False
    says("Reconstruction", "reconstruct", "notes.md")
    assert "text" not in says("Reconstruction", "reconstruct", "notes.md", "-o", "out.md")
    says("Rebuilt", "reconstruct", "file_index/chunked", "--from", "folder")
    says("RemovedResources", "rm", "notes.md")
    says("Batches", "undo", "--list")
    assert says("Changes", "changes", "--diff")["changes"][0]["diff"]
    assert says("UndoResult", "undo")["undone"]
    assert says("UndoResult", "redo")["redone"]
    assert says("UndoResult", "redo", code=1)["id"] is None


def test_drift_and_repair(filled, says):
    """`status`, `verify`, `sync` and `repair`, with accepted warnings and steps left out."""
    filled("add", "handbook", "notes.md", code=None)
    (filled.chunked / "notes.md" / "chunk1.md").unlink()
    (filled.chunked / "empty.md").write_text("")
    (filled.chunked / "void.md").write_text("")
    with (filled.store / "filestore.toml").open("a") as settings:
        settings.write('\n[accepted]\nempty = ["chunked/empty.md"]\n')
    told = says("Status", "status", code=1)
    assert told["accepted"] == [{"code": "empty", "path": "chunked/empty.md"}]
    checked = says("Checked", "verify", "--level", "full", code=1)
    assert [one["path"] for one in checked["findings"] if "accepted" in one] == ["chunked/empty.md"]
    says("Checked", "verify", "--staged")
    says("PlannedRepair", "repair", "--write-files", "--plan", code=1)
    with filestore.open(filled.store) as store:
        plan = store.plan(truth=True)
        (filled.chunked / "notes.md" / "chunk1.md").write_text("Mine.\n")
        late = json.loads(json.dumps(store.apply(plan).to_dict()))
    assert late["skipped"]
    assert wrong("RepairReport", late, "late") == []
    says("SyncReport", "sync", code=1)
    (filled.chunked / "notes.md" / "chunk1.md").unlink()
    done = says("RepairReport", "repair", "--write-files", "--yes", code=1)
    assert done["undo"]
    assert done["applied"]


def test_search_and_models(filled, says):
    """`search`, `evaluate`, models and packs, `trust`, `git`, `demo`, and a command that fails."""
    filled("add", "notes.md")
    says("Answer", "search", "cellar -attic")
    filled.write("questions.jsonl", '{"query": "cellar", "relevant": ["notes.md"]}\n')
    says("Evaluation", "evaluate", "questions.jsonl")
    assert says("Evaluation", "evaluate", "questions.jsonl", "--per-query")["per_query"]
    says("Embedders", "embedder")
    says("EmbedderSet", "embedder", "set", "builtin", "--yes")
    pack = says("ExportedEmbeddings", "embeddings", "export", "notes.fspack")
    assert says("PackInfo", "embeddings", "info", "notes.fspack")["digest"] == pack["digest"]
    assert "unchecked" not in says("ImportedEmbeddings", "embeddings", "import", "notes.fspack")
    assert says("Exported", "export", "jsonl", "all.jsonl")["chunks"] == 1
    says("Exported", "export", "ragmd", "all.ragmd")
    assert says("Converted", "convert", "all.ragmd", "index")["vectors"] == 1
    assert says("Imported", "import", "jsonl", "all.jsonl")["undo"] is None
    (filled.chunked / "notes.md" / "chunk1.md").write_text("The cellar is mine.\n")
    assert says("Imported", "import", "jsonl", "all.jsonl", code=4)["resources"][0]["reason"]
    assert says("Imported", "import", "jsonl", "all.jsonl", "--replace")["undo"]
    says("Trusted", "trust", "--list")
    assert says("Trusted", "trust")["trusted"] is True
    says("Hooks", "git", "install")
    says("Toured", "demo", code=None)
    says("HelpText", "help", "ls")
    says("Diagnosis", "doctor", code=None)
    says("Preferences", "config")
    says("ShellFile", "completion", "zsh")
    says("Failure", "show", "nowhere.md", code=3)


def test_questions_about_texts(filled, says):
    """What reads texts or compares them, and where vectors are."""
    assert says("PlannedAdd", "add", "notes.md", "--plan")["plan"]["documents"]
    filled("add", "handbook/lease.md", "notes.md")
    filled.git("add", "-A")
    filled.git("commit", "-q", "-m", "one")
    says("Move", "mv", "handbook/lease.md", "handbook/rent.md", "--plan")
    says("Overview", "about", "notes.md")
    says("Similar", "similar", "notes.md")
    says("Duplicates", "duplicates", code=1)
    says("Links", "links", "notes.md")
    says("Opened", "open", "chunked/notes.md/chunk1.md", "--print")
    says("EnrichPlan", "enrich", "--plan")
    says("EnrichReport", "enrich", "--yes")
    filled.write("notes.md", "# Notes\n\nAsk about the attic.\n")
    assert says("PlannedUpdate", "update", "--plan", code=1)["plan"]["changes"]
    assert says("UpdateReport", "update")["updated"]
    filled.write("queries.txt", "cellar\n")
    says("StoreComparison", "compare", "HEAD", "--queries", "queries.txt", "--embed")
    says("Log", "log", "cellar")
    says("ShownHome", "backend")
    says("Backends", "backend", "list")
    says("Pruning", "embeddings", "prune", "--plan")
    says("ClientToken", "token", "add", "phone")
    says("Clients", "token", "list")
    says("ClientToken", "token", "revoke", "phone")


def test_every_command_is_asked_here():
    """A new command comes with the shape of its JSON, and is held against it in this module."""
    calls = (one for one in ast.walk(ast.parse(inspect.getsource(sys.modules[__name__]))))
    asked = {
        one.args[1].value
        for one in calls
        if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "says"
    }
    assert set(COMMANDS) - asked == {"watch", "serve", "mcp", "tui"}


def test_the_library_gives_what_the_command_line_prints(filled):
    """`to_dict()` of a result is the object that `--json` prints."""
    filled("add", "notes.md")
    (filled.chunked / "notes.md" / "chunk1.md").write_text("# Notes\n\nThe cellar is dry.\n")
    with filestore.open(filled.store) as store:
        store.looks = False
        found = store.search("cellar")
        assert found.to_dict() == filled.json("search", "cellar", "--no-update")
        assert store.status().to_dict() == filled.json("status", code=1)
        assert store.verify(level="full").to_dict() == filled.json(
            "verify", "--level", "full", code=1
        )
        (path,) = [item["path"] for item in store.chunks("notes.md")]
        assert store.show(path).to_dict() == filled.json("show", path, "--no-update")
        assert store.reconstruct("notes.md").to_dict() == filled.json("reconstruct", "notes.md")
        plan = filled.json("repair", "--plan", code=1)
        assert store.plan().to_dict() == plan["plan"]


def test_watch_prints_one_object_a_line(filled, capfdbinary):
    """Each event of `watch` is an object that JSON.md describes."""
    filled("add", "notes.md")
    (filled.chunked / "new.md").write_text("New.\n")
    with filestore.open(filled.store) as store:
        report = store.sync()
    error = filestore.RefusedError("no", remedy="yes")
    for event in (
        events.Synced(report=report),
        events.Waiting(reason="another"),
        events.Unavailable(reason="no watcher"),
        events.Reopened(),
        events.Failed(error=error),
    ):
        capfdbinary.readouterr()
        syncing._tell(event, as_json=True)
        (line,) = capfdbinary.readouterr().out.splitlines()
        assert wrong("Line", json.loads(line), "watch") == []


def test_fields_are_picked_and_known_before_anything_is_done(filled):
    """Of lists, from each item; an unknown one lists the known, and nothing was done."""
    filled("add", "notes.md")
    found = json.loads(filled("search", "cellar", "--json=hits.path,query").stdout)
    assert found == {"hits": [{"path": "chunked/notes.md/chunk1.md"}], "query": "cellar"}
    whole = json.loads(filled("--json=hits,hits.path", "search", "cellar").stdout)
    assert whole["hits"] == filled.json("search", "cellar")["hits"]
    for words, said in (
        (["rm", "notes.md", "--json=removd"], "rm prints no field 'removd'; did you mean"),
        (["search", "cellar", "--json=hits.pth"], "did you mean 'path'"),
        (["ls", "--json="], "ls prints no field ''"),
        (["search", "cellar", "--json=query.x"], "prints no field 'query.x'"),
    ):
        failed = json.loads(filled(*words, code=2).stdout)
        assert said in failed["error"]
        assert failed["remedy"] or advised(failed["error"])
    assert "removed" in json.loads(filled("rm", "notes.md", "--json=nix", code=2).stdout)["remedy"]
    assert json.loads(filled("ls", "--json=items.resource").stdout) == {
        "items": [{"resource": "notes.md"}]
    }
    failed = json.loads(filled("show", "nothing", "--json=body", code=3).stdout)
    assert list(failed) == ["error", "detail", "remedy"]
