"""Every place that a door prints is taken by every command and tool that takes a path."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

import filestore
from filestore.browse.named import UnknownPathError
from filestore.cli._parser import command_parser
from filestore.core.errors import FilestoreError
from filestore.server.agents import tools, wording
from filestore.server.operations import COMMANDS, OPERATIONS, Operation
from tests.system.conftest import Workspace
from tests.system.extract.test_docx import p, parts_of, zipped
from tests.system.extract.test_pdf import Pdf

LONG = "The walrus rests on the ice and looks at the sea for hours. " * 12


def pdf() -> bytes:
    """Three pages, with words of their own."""
    made = Pdf()
    for number, word in enumerate(("walrus", "narwhal", "beluga")):
        rows = [(72, 760 - 14 * row, 10, f"Line {row} of the {word} page.") for row in range(8)]
        made.page(*rows, (72, 30, 9, str(number + 1)))
    return made.data()


def docx() -> bytes:
    """A heading and some paragraphs."""
    texts = (p(f"Paragraph {number} tells of a walrus. {LONG}") for number in range(6))
    return zipped(parts_of(p("Walrus report", style="Kapitel") + "".join(texts)))


FILES: Mapping[str, bytes] = {
    "sea/walrus: a life.md": (
        f"---\ntags: [ice]\n---\n# Walrus\n\n{LONG}\n\n## Food\n\nA walrus eats clams. {LONG}\n\n"
        "See [[seal]] and [the report](<../report #1.docx>).\n"
    ).encode(),
    "seal.md": f"# Seal\n\nA seal is no walrus. {LONG}\n".encode(),
    "page.html": f"<body><h1>Walrus</h1>\n<p>Seen at sea.\n<p>{LONG}</body>".encode(),
    "zoo.pdf": pdf(),
    "report #1.docx": docx(),
    "a.md:p2": b"# Odd\n\nA walrus in a file with an odd name.\n",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the stores of all tests, which only read them, and for what the user allowed."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(params=["tree", "flat", "in-place"])
def filled(
    request: pytest.FixtureRequest,
    new_workspace: Any,
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Any:
    """A store of documents of many formats, in each layout."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(shared / "configuration"))
    folder, in_place = shared / request.param, request.param == "in-place"
    if folder.exists():
        workspace = Workspace(folder, monkeypatch, capfdbinary)
    else:
        workspace = new_workspace(folder, layout=request.param, init=not in_place)
        for name, data in FILES.items():
            workspace.write(f"docs/{name}", data)
        if in_place:
            # Some names are unportable, as it says.
            workspace("init", "docs", "--in-place", "--embedder", "builtin", code=1)
        else:
            workspace("add", "docs")
    if in_place:
        workspace.store = folder / "docs"
    return workspace


def printed(workspace: Any) -> Iterator[str]:
    """Each place as people, programs and agents read it, from the root and from elsewhere."""
    for folder in (workspace.store, workspace.store / os.path.dirname(next(iter(FILES)))):
        if not folder.exists():
            folder = workspace.folder
        for line in workspace(
            "search", "walrus", "-k", "30", "--format", "{document}:{place}", cwd=folder
        ).stdout.splitlines():
            yield line.removesuffix(":")
        yield from re.findall(
            r"^[0-9]+\. (.*?)(?:  |$)",
            workspace("similar", here(workspace), cwd=folder).stdout,
            re.M,
        )
    with filestore.open(workspace.store) as store:
        for hit in store.search("walrus", k=30).hits:
            yield hit.path
            place = f":{hit.line}-{hit.end_line}" if hit.line else ""
            yield f"{hit.document}{place}"
            shown = store.show(hit.path, most=300)
            if shown.left is not None and shown.left.next:
                yield shown.left.next
            yield os.path.join(workspace.store, hit.path)
        yield from (str(one["path"]) for one in store.chunks(store.resources()[0]["resource"]))


def here(workspace: Any) -> str:
    """A file of the store, from anywhere."""
    (first, *_) = workspace.json("search", "walrus", "-k", "1", cwd=workspace.store)["hits"]
    return str(workspace.store / first["path"])


def taking_paths() -> list[Operation]:
    """What is asked with a path, by programs or agents."""
    asked = [one for one in OPERATIONS if one.route or one.tool]
    return [one for one in asked if {"path", "asked"} & {key.name for key in fields(one.kind)}]


def given_to(operation: Operation, place: str) -> dict[str, Any]:
    """A place and whatever else it must be asked with."""
    names = {one.name for one in fields(operation.kind)}
    given: dict[str, Any] = {"path" if "path" in names else "asked": place}
    for key in operation.schema["required"]:
        given.setdefault(key, "nothing of the kind")
    return given | ({"plan": True} if "plan" in names else {})


def test_what_is_printed_is_taken(filled: Any) -> None:
    """By every operation with a path, and by the commands that have none of their own."""
    places = sorted({one for one in printed(filled) if one})
    kinds = {re.sub(r".*?(:p?\d[-\d]*)?$", r"\1", one, flags=re.S)[:2] for one in places}
    assert {"", ":p"} <= kinds, places
    refused = []
    with filestore.open(filled.store) as store:
        for operation in taking_paths():
            for place in places:
                is_original = not store.places.tree.has_sections and not place.startswith("chunked")
                if operation.writes and is_original and "chunked/" not in place:
                    continue  # what was added is not edited here
                try:
                    operation.checked(given_to(operation, place)).answer(store)
                except UnknownPathError as error:
                    refused.append((operation.name, place, error.message))
                except FilestoreError as error:
                    if not operation.writes:
                        refused.append((operation.name, place, error.message))
        for place in places:
            store.locate(place)
    assert refused == []


def test_agents_write_places_as_they_read_them(filled: Any) -> None:
    """In quotes, too."""
    with filestore.open(filled.store) as store:
        for hit in store.search("walrus", k=30).hits:
            for text in (hit.path, f"{hit.path}:1"):
                name = wording.shown_name(text)
                assert tools._cleaned("similar", {"path": name}) == {"path": text}
    assert tools._cleaned("similar", {"path": '"a b.md":4-9'}) == {"path": "a b.md:4-9"}
    assert tools._cleaned("similar", {"path": '"a b.md"#H'}) == {"path": "a b.md#H"}


def test_a_file_may_be_called_like_a_place(filled: Any) -> None:
    """Then its name is that; behind it there may be a place."""
    root = "" if filled.store.name == "docs" else "../docs/"
    for text in (f"{root}a.md:p2", f"{root}a.md:p2:3"):
        assert "odd name" in filled("show", text, cwd=filled.store).stdout
    filled("show", f"{root}a.md:p3", cwd=filled.store, code=3)


@pytest.mark.parametrize("page", [1, 2, 3])
def test_a_page_is_shown_alone(filled: Any, page: int) -> None:
    """Of a PDF, in whatever layout; in a chunk store its chunks."""
    root = "" if filled.store.name == "docs" else "../docs/"
    shown = filled.json("show", f"{root}zoo.pdf:p{page}", cwd=filled.store)
    word = ("walrus", "narwhal", "beluga")[page - 1]
    assert f"Line 3 of the {word} page" in shown["body"]
    if not root:
        assert shown["body"].count("Line 3") == 1
        assert shown["left"]["next"] == {1: "zoo.pdf:p2", 2: "zoo.pdf:p3", 3: None}[page]
    done = filled("show", f"{root}zoo.pdf:p99999", cwd=filled.store, code=3)
    assert "1 to 3" in done.stderr


def test_lines_are_those_of_the_file(filled: Any) -> None:
    """As an editor counts them, with the frontmatter; an original is shown as it is."""
    root = "" if filled.store.name == "docs" else "../docs/"
    path = f"{root}sea/walrus: a life.md"
    lines = FILES["sea/walrus: a life.md"].decode().splitlines(keepends=True)
    shown = filled.json("show", f"{path}:2-4", cwd=filled.store)
    assert shown["body"] == "".join(lines[1:4])
    assert shown["lines"] == [2, 4]
    assert shown["left"]["next"] == f"{path}:5-"
    same = filled.json("show", path, "--lines", "2-4", cwd=filled.store)
    assert same["body"] == shown["body"]
    whole = filled.json("show", path, cwd=filled.store)
    assert whole["body"] == "".join(lines[3:])
    assert (whole["lines"], whole["left"]) == ([4, len(lines)], None)
    section = filled.json("show", f"{path}#Food", cwd=filled.store)["body"]
    assert section == "".join(lines[7:])
    part = filled.json("show", f"{path}:{lines.index('## Food' + chr(10)) + 1}", cwd=filled.store)
    assert "eats clams" in part["body"]


def test_a_wrong_path_names_the_nearest(filled: Any) -> None:
    """By the name of the file first; in each door as a path that is taken."""
    root = "" if filled.store.name == "docs" else "../docs/"
    for typed, meant in (
        ("seal.md", f"{root}seal.md"),
        ("nowhere/seal.md:10-20", f"{root}seal.md"),
        (f"{root}sea/walrus_ a lif.md", f"{root}sea/walrus: a life.md"),
        ("zoo", f"{root}zoo.pdf"),
    ):
        if typed == meant:
            continue
        for command in ("show", "similar", "links"):
            done = filled("--store", filled.store, command, typed, cwd=Path("/"), code=3)
            assert f"did you mean '{meant}'" in done.stderr, (command, typed, done.stderr)
    show = ("--store", filled.store, "show")
    assert f"'{root}sea/'" in filled(*show, f"{root}seaa", cwd=Path("/"), code=3).stderr
    done = filled(*show, "x" * 100_000, cwd=Path("/"), code=3)
    assert len(done.stderr) < 1_000
    done = filled(*show, "qqqqqq", cwd=Path("/"), code=3)
    assert "qqqqqq" in done.stderr
    assert "did you mean" not in done.stderr


def test_a_wrong_path_names_the_nearest_in_every_door(filled: Any) -> None:
    """In every operation, and in every command with one path."""
    near = "did you mean 'seal.md'" if filled.store.name == "docs" else "'../docs/seal.md'"
    answers: dict[str, str] = {}
    with filestore.open(filled.store) as store:
        for operation in taking_paths():
            # What names nothing is a question there.
            if operation.name != "about":
                given = given_to(operation, "seel.md")
                given |= {"old": "seal"} if operation.name == "edit" else {}
                with pytest.raises(UnknownPathError) as caught:
                    operation.checked(given).answer(store)
                answers[operation.name] = caught.value.message
    for command in COMMANDS:
        taken = [one for one in command_parser(command)._actions if not one.option_strings]
        names = [one.metavar for one in taken if one.nargs is None]
        if names[:1] in (["PATH"], ["PATH[:LINE]"], ["HIT"]):
            words = command, "seel.md", *("new" for _ in names[1:])
            answers[f"{command} typed"] = filled(*words, cwd=filled.store, code=3).stderr
    assert {"show", "move", "edit", "mv typed", "open typed", "links typed"} <= answers.keys()
    assert [name for name, message in answers.items() if near not in message] == []


def test_what_is_gone_is_not_offered(filled: Any) -> None:
    """A file that the index has still."""
    path = filled.json("search", "walrus", "-k", "1", cwd=filled.store)["hits"][0]["path"]
    (filled.store / path).unlink()
    done = filled("show", path, cwd=filled.store, code=3)
    assert f"did you mean '{path}'" not in done.stderr
