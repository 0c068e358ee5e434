"""A name is meant by whoever types it: composed or not, with or without the slashes of a path."""

import argparse
import unicodedata
from typing import Any, Final

import pytest

import filestore
from filestore.cli import _parser
from filestore.server.operations import COMMANDS

FOLDER: Final = "Übersicht"
FILE: Final = f"{FOLDER}/Café crème.md"
TEXT: Final = "---\nOrt: Zürich\ntitel: x\n---\n# Crème\n\nThe walrus of [the other](Glacé.md).\n"

READ: Final = {
    ("add", "PATH"): ["add", "{resource}"],
    ("update", "DOCUMENT"): ["update", "{resource}", "--plan"],
    ("ls", "DOCUMENT"): ["ls", "{resource}"],
    ("show", "PATH[:LINE]"): ["show", "{chunk}"],
    ("repair", "P"): ["repair", "--plan", "--path", "{chunk}"],
    ("search", "GLOB"): ["search", "walrus", "--source", "{file}"],
    ("search", "K=V"): ["search", "walrus", "--where", "Ort={value}"],
    ("search", "DIR"): ["search", "walrus", "--in", "{resource}"],
    ("about", "DOCUMENT|FOLDER|QUERY"): ["about", "{resource}"],
    ("similar", "PATH[:LINE]"): ["similar", "{file}"],
    ("links", "PATH"): ["links", "{file}"],
    ("open", "HIT"): ["open", "--print", "{file}:2"],
    ("evaluate", "QUERIES"): ["evaluate", "{queries}"],
    ("compare", "FILE"): ["compare", "HEAD", "--queries", "{queries}"],
    ("export", "DOCUMENT"): ["export", "jsonl", "{target}", "{resource}"],
    ("import", "SOURCE"): ["import", "jsonl", "{table}", "--plan"],
    ("enrich", "DOCUMENT|FOLDER"): ["enrich", "{resource}", "--plan"],
    ("reconstruct", "DOCUMENT"): ["reconstruct", "{resource}"],
    ("mv", "PATH"): ["mv", "{file}", "{inside}/moved.md", "--plan"],
    ("rm", "DOCUMENT"): ["rm", "{resource}"],
}
"""What is typed where a command takes a name of something that is there, by the help's word."""
ON_DISK: Final = {
    ("init", "DIR"): "makes one",
    ("repair", "PATH"): "of a finding, as --path",
    ("repair", "SIDES:PATH"): "of a finding, as --path",
    ("repair", "FILE"): "read as QUERIES are",
    ("reconstruct", "FILE"): "makes one",
    ("reconstruct", "NAME"): "of a stranger's index",
    ("export", "TARGET"): "makes one",
    ("mv", "NEW"): "makes one",
    ("convert", "SOURCE"): "read as that of import",
    ("convert", "TARGET"): "makes one",
    ("embeddings export", "PACK"): "makes one",
    ("embeddings import", "PACK"): "read as that of import",
    ("embeddings info", "PACK"): "read as that of import",
    ("embedder compare", "QUERIES"): "read as those of evaluate",
    ("embedder use", "FOLDER"): "read as that of import",
    ("serve", "STORE"): "as --store",
    ("serve", "DIR"): "as --store",
    ("mcp", "STORE"): "as --store",
    ("mcp", "FILE"): "makes one",
    ("tui", "STORE"): "as --store",
    ("tui", "PATH"): "as show",
    ("tui", "FILE"): "read as QUERIES are",
}
"""Those that are not tried by themselves, with the reason."""
_NO_NAMES: Final = {
    *("tree|flat|in-place", "E", "URL", "NAME", "N", "T", "ID", "CODE", "N/T", "QUERY", "K", "R"),
    *("F", "REV", "FORM", "C", "X", "D", "O", "G", "TOKENS", "KIND", "KEY=VALUE", "KEY=N"),
    *("FINGERPRINT", "MODEL", "WHERE", "REV1", "REV2", "install|remove|status", "FROM-TO"),
    *("add|list|revoke", "DATE", "PROGRAM", "COMMAND|PAGE|CODE", "bash|zsh|fish"),
}

FILES_OF_PERSON: Final = {"add", "evaluate", "compare", "import"}
"""They read a file wherever a person has it."""


def _typed(form: str, name: str) -> str:
    return unicodedata.normalize(form, name)


def _names(parser: argparse.ArgumentParser, command: str) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found |= _names(inner, f"{command} {name}")
        elif action.metavar and action.dest != "store":
            found.add((command, str(action.metavar)))
    return found


def test_every_name_that_a_command_takes_is_tried() -> None:
    """A new one belongs in the table."""
    every = set[tuple[str, str]]().union(
        *(_names(_parser.command_parser(command), command) for command in COMMANDS)
    )
    told = {(command, word) for command, word in every if word not in _NO_NAMES}
    assert told | set(ON_DISK) == set(READ) | set(ON_DISK)


def _workspace(workspace: Any, form: str) -> Any:
    """A store with two documents, whose names have this form."""
    workspace.write(_typed(form, FILE), TEXT)
    workspace.write(_typed(form, f"{FOLDER}/Glacé.md"), "# Glacé\n\nA walrus as well, of ice.\n")
    workspace.write(
        _typed(form, "Frägen.jsonl"), '{"query": "walrus", "relevant": ["Café crème.md"]}\n'
    )
    workspace("add", _typed(form, FOLDER))
    workspace.git("add", "-A")
    workspace.git("commit", "-qm", "x")
    workspace("export", "jsonl", _typed(form, "Täfel.jsonl"))
    return workspace


@pytest.mark.parametrize(("there", "typed"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_a_name_is_found_in_either_form(workspace: Any, there: str, typed: str) -> None:
    """Every command does for the name as it is typed what it does for the one that is there."""
    work = _workspace(workspace, there)
    names = {
        "file": FILE,
        "resource": FOLDER,
        "chunk": work.json("ls", _typed(there, FOLDER))["items"][0]["path"],
        "value": "Zürich",
        "queries": "Frägen.jsonl",
        "table": "Täfel.jsonl",
    }
    inside = _typed(there, FOLDER)
    for number, line in enumerate(READ.values()):
        done = []
        for turn, form in enumerate((there, typed)):
            values = {key: _typed(form, name) for key, name in names.items()}
            target = str(work.folder / f"out-{number}-{turn}.jsonl")
            if line[0] == "rm" and form == there:
                continue
            done.append(
                work(
                    *(word.format(**values, target=target, inside=inside) for word in line),
                    code=None,
                )
            )
        assert {one.code for one in done} <= {0, 1}, (line, done)
        texts = {
            _typed("NFC", one.stdout).replace(f"out-{number}-1", f"out-{number}-0") for one in done
        }
        assert len(texts) == 1 or line[0] in ("evaluate", "compare"), (line, texts)
    assert work.json("ls")["items"] == []


@pytest.mark.parametrize("written", ["{}/", "./{}", "./{}/"])
def test_a_name_is_found_however_its_path_is_written(workspace: Any, written: str) -> None:
    """With a slash behind it, as a shell completes it, or from here; brackets are its own."""
    workspace.write("[2024] plans/a[1].md", TEXT)
    workspace.write("queries.jsonl", '{"query": "walrus", "relevant": ["a[1].md"]}\n')
    workspace("add", "[2024] plans")
    workspace.git("add", "-A")
    workspace.git("commit", "-qm", "x")
    workspace("export", "jsonl", "table.jsonl")
    names = {
        "file": "[2024] plans/a[1].md",
        "resource": "[2024] plans",
        "chunk": workspace.json("ls", "[2024] plans")["items"][0]["path"],
    }
    inside = names["resource"]
    others = {"value": "Zürich", "queries": "queries.jsonl", "table": "table.jsonl"}
    for number, line in enumerate(READ.values()):
        done = []
        for turn, form in enumerate(("{}", written)):
            if line[0] == "rm" and not turn:
                continue
            # What has a line behind it cannot have a slash there.
            form = form.rstrip("/") if line[0] == "open" else form
            values = {key: form.format(name) for key, name in names.items()} | others
            target = str(workspace.folder / f"out-{number}-{turn}.jsonl")
            typed = [word.format(**values, target=target, inside=inside) for word in line]
            done.append(workspace(*typed, code=None))
        assert {one.code for one in done} <= {0, 1}, (line, done)
        # A name that is printed as it was typed is the same name.
        texts = {
            one.stdout.replace(f"out-{number}-1", f"out-{number}-0")
            .replace("./", "")
            .replace("/", "")
            for one in done
        }
        assert len(texts) == 1 or line[0] in ("evaluate", "compare"), (line, texts)
    assert workspace.json("ls")["items"] == []


def test_in_place_and_for_what_is_gone(workspace: Any) -> None:
    """Folders, documents, keys of metadata; also of a file that only the index knows."""
    name, key = _typed("NFD", "Café crème.md"), _typed("NFD", "größe")
    work = workspace
    work.write(f"notes/{_typed('NFD', 'Ordnér')}/{name}", f"---\n{key}: 1\n---\nA walrus.\n")
    work("init", "--in-place", "notes")
    root = work.folder / "notes"
    for words in (
        ("ls", "Ordnér"),
        ("ls", "./Ordnér/"),
        ("show", "Ordnér/Café crème.md"),
        ("show", "./Ordnér/Café crème.md/"),
        ("search", "walrus", "--where", "größe=1"),
        ("search", "walrus", "--source", "Ordnér/"),
        ("search", "walrus", "--source", "./Ordnér"),
        ("search", "walrus", "--source", str(root / "Ordnér")),
        ("search", "walrus", "--source", "*crème.md"),
    ):
        work(*words, cwd=root)
    with filestore.open(root) as store:
        assert store.document("Ordnér/Café crème.md").parts
    (root / _typed("NFD", "Ordnér") / name).unlink()
    assert "no document" not in work("similar", "Ordnér/Café crème.md", cwd=root, code=None).stderr


def test_two_names_that_look_the_same_are_both_named(workspace: Any) -> None:
    """The very name that was typed is meant; where there is none, nothing is guessed."""
    first, second = _typed("NFC", "ớ.md"), _typed("NFD", "ớ.md")
    for name in (first, second):
        workspace.write(f"notes/{name}", f"A walrus of {len(name)} signs.\n")
    workspace("init", "--in-place", "notes", code=None)
    root = workspace.folder / "notes"
    for name in (first, second):
        assert f"of {len(name)} signs" in workspace("show", name, cwd=root).stdout
    for words in (("show", "ơ\u0301.md"), ("links", "ơ\u0301.md")):
        said = workspace(*words, cwd=root, code=2).stderr
        assert ascii(first)[1:-1] in said
        assert ascii(second)[1:-1] in said


def test_a_folder_is_named_as_it_is_before_it_is_a_pattern(workspace: Any) -> None:
    """Brackets stand in names; where no name has them, they are a pattern."""
    for folder in ("[ab] list", "a list", "b"):
        workspace.write(f"notes/{folder}/one.md", f"A walrus in {folder}.\n")
    workspace("init", "--in-place", "notes")
    root = workspace.folder / "notes"
    for source, found in (("[ab] list", ["[ab] list/one.md"]), ("[ab]/*", ["b/one.md"])):
        hits = workspace.json("search", "walrus", "--source", source, cwd=root)["hits"]
        assert [hit["path"] for hit in hits] == found


@pytest.mark.long
def test_no_name_that_a_command_takes_leads_out(workspace: Any) -> None:
    """No text of a file outside is printed, and none is made there, whatever stands in a name."""
    secret = workspace.folder.parent / "outside.md"
    secret.write_text("The narwhal is hidden.\n")
    for link in ("way.md", "file_index/chunked/way.md"):
        workspace.write(link, "").unlink()
        (workspace.folder / link).symlink_to(secret)
    workspace.write("notes/own.md", "# Own\n\nOwn words.\n")
    workspace("add", "notes")
    lures = ("chunked/../../../outside.md", "../outside.md", str(secret), "way.md", "..", "file:..")
    before = sorted(workspace.folder.parent.rglob("*.md"))
    for line in READ.values():
        if line[0] in FILES_OF_PERSON:
            continue
        for lure in lures:
            values = dict.fromkeys(("file", "resource", "chunk", "value"), lure)
            target = str(workspace.folder / "out.jsonl")
            words = [word.format(**values, target=target, inside="..") for word in line]
            if line[0] in ("mv", "update"):
                words.remove("--plan")
            done = workspace(*words, code=None)
            assert "narwhal" not in done.stdout + done.stderr, (line, lure)
    assert secret.read_text() == "The narwhal is hidden.\n"
    assert sorted(workspace.folder.parent.rglob("*.md")) == before
