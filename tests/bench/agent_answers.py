"""Twenty questions and ten changes, answered by a client with fixed rules over real MCP.

``filestore mcp --write`` is started on a clone of a vault that is indexed where it lies, with the
model that `init` chooses. The client knows no model, only the rules below. A question is right if
all its facts are in the text that at most two calls returned. A change is right if the files hold
what they are to hold and lack what is to be gone, and if what its answer names undoes it byte for
byte. Questions and right answers are in ``agent_questions.json``; of the half that confirms only
the count is printed, so that rules are made from the other.

Rules of a question:

1. A question that asks which notes lie in a folder calls `list` with that folder; one that asks
   for the newest notes, or what changed last, calls `list` with `recent`; one for what links to a
   note calls `links` where there is such a tool.
2. Any other question is typed into `search` as it is.
3. Where facts are missing, the document of the first hit is shown from its beginning: the passage
   at its line was in the answer to the search.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
MOST_CALLS: Final = 2
_FOLDER: Final = re.compile(
    r"\bfolder\s+[`'\"]?([\w./-]+\w)|\b(\w[\w-]*(?:/[\w-]+)+)(?=\W*\Z|[?!. ])"
)
_LISTS: Final = re.compile(r"\b(which|what|list|name)\b.*\b(notes?|files?|documents?)\b", re.I)
_NEWEST: Final = re.compile(r"\b(newest|latest|last (changed|edited|added)|recently)\b", re.I)
_LINKED: Final = re.compile(r"\b(?:links?|linked|refers?) to\b.*?[`'\"\[]*([\w/-]+\.md)", re.I)
_HEAD: Final = re.compile(r'^1\. ("(?:[^"\\]|\\.)*"|[^\s:"]+)', re.M)
_UNDO: Final = re.compile(r"\bundo ([0-9A-Za-z-]+)$", re.M)


class Session:
    """A connected client; it counts calls and characters."""

    def __init__(self, client: Any, tools: Mapping[str, Any]) -> None:
        self._client, self.tools = client, tools
        self.calls = 0
        self.characters = 0

    async def call(self, name: str, **given: Any) -> str:
        """The text that a tool answers."""
        done = await self._client.call_tool(name, given)
        text = "\n".join(one.text for one in done.content)
        self.calls += 1
        self.characters += len(text)
        return f"ERROR {text}" if done.is_error else text

    def parameter(self, tool: str, *names: str) -> str:
        """The first of some names that a parameter of a tool has; "" for none."""
        known = self.tools[tool].input_schema["properties"] if tool in self.tools else {}
        return next((one for one in names if one in known), "")


async def answered(session: Session, question: str, facts: list[str]) -> bool:
    """Whether at most two calls return all facts of an answer."""
    text = await _first(session, question)
    hit = _HEAD.search(text)
    if not _holds(text, facts) and hit is not None:
        text += "\n" + await session.call("show", path=hit[1])
    return _holds(text, facts)


async def _first(session: Session, question: str) -> str:
    folder = _FOLDER.search(question)
    key = session.parameter("list", "folder", "path", "of")
    if folder and key and _LISTS.search(question):
        return await session.call("list", **{key: folder[1] or folder[2]})
    recent = session.parameter("list", "recent")
    if recent and _NEWEST.search(question):
        return await session.call("list", recent=True)
    linked, key = _LINKED.search(question), session.parameter("links", "path")
    if linked and key:
        return await session.call("links", path=linked[1])
    return await session.call("search", query=question)


def _holds(text: str, facts: list[str]) -> bool:
    plain = " ".join(re.sub(r"^> ?", "", text, flags=re.M).split())
    return all(fact in plain for fact in facts)


async def changed(session: Session, change: Mapping[str, Any]) -> str:
    """What the tool answers that makes a change."""
    revision = ""
    path = change.get("path") or change.get("from")
    if path:
        found = re.search(r"^revision: (\w+)", await session.call("show", path=path), re.M)
        revision = found[1] if found else ""
    if change["do"] == "add":
        given = {key: change[key] for key in ("title", "folder", "text")}
        return await session.call("add_note", **given)
    given = {"revision": revision}
    if change["do"] == "append":
        # As its parameter says: a new paragraph begins with an empty line, an item does not.
        blank = "" if change["text"].startswith("- ") else "\n"
        return await session.call("append", path=path, text=blank + change["text"], **given)
    if change["do"] == "edit":
        words = {"old": change["old"], "new": change["new"]}
        return await session.call("edit", path=path, **words, **given)
    if change["do"] == "section":
        words = {"section": change["heading"], "new": change["text"]}
        return await session.call("edit", path=path, **words, **given)
    return await _moved(session, change, given)


async def _moved(session: Session, change: Mapping[str, Any], given: dict[str, Any]) -> str:
    source = session.parameter("move", "path", "source", "from")
    target = session.parameter("move", "to", "target")
    given = given if session.parameter("move", "revision") else {}
    return await session.call("move", **{source: change["from"], target: change["to"]}, **given)


def is_done(root: Path, change: Mapping[str, Any]) -> bool:
    """Whether the files are as a change says."""
    texts = {path: _text(root / path) for path in (*change["holds"], *change["lacks"])}
    holds = all(one in texts[path] for path, parts in change["holds"].items() for one in parts)
    lacks = all(one not in texts[path] for path, parts in change["lacks"].items() for one in parts)
    return holds and lacks and not any((root / one).exists() for one in change["gone"])


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def bytes_below(root: Path) -> dict[str, bytes]:
    """Every file of a tree but what is derived from it, and what git keeps."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {".git", ".filestore"} & set(path.relative_to(root).parts)
    }


def cloned(bundle: str, folder: Path) -> Path:
    """A clone of a vault, indexed where it lies."""
    root = folder / "vault"
    for words in (
        ["git", "clone", "--quiet", "--no-checkout", bundle, str(root)],
        ["git", "-C", str(root), "checkout", "--quiet", "-B", "main", "origin/main"],
        [*FILESTORE, "init", "--in-place", str(root)],
    ):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return root


FILESTORE: Final = [sys.executable, "-P", "-m", "filestore"]


async def with_session(root: Path, use: Any) -> Any:
    """What somebody does who is connected to a server of a store."""
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    words = [*FILESTORE[1:], "mcp", str(root), "--write"]
    started = StdioServerParameters(command=FILESTORE[0], args=words, env=dict(os.environ))
    async with Client(stdio_client(started)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        return await use(Session(client, tools))


async def ask_all(root: Path, given: Mapping[str, Any], half: str) -> None:
    """Ask every question and print what came of it."""

    async def use(session: Session) -> None:
        for name in ("tune", "confirm") if half == "both" else (half,):
            questions = [one for one in given["questions"] if one["half"] == name]
            right, calls, characters = 0, 0, 0
            for one in questions:
                session.calls, session.characters = 0, 0
                is_right = await answered(session, one["question"], one["facts"])
                assert session.calls <= MOST_CALLS
                right, calls = right + is_right, calls + session.calls
                characters += session.characters
                if name == "tune" and not is_right:
                    print(f"  wrong: {one['id']} {one['question']}")
            print(
                f"{name}: {right} of {len(questions)} right, {calls / len(questions):.1f} calls"
                f" and {characters // len(questions):,} characters each"
            )

    await with_session(root, use)


async def change_all(root: Path, given: Mapping[str, Any]) -> None:
    """Make every change, then undo it by what its answer names."""
    before = bytes_below(root)
    made = undone = 0

    async def use(session: Session) -> None:
        nonlocal made, undone
        for one in given["changes"]:
            if one["do"] == "move" and "move" not in session.tools:
                print(f"  not possible: {one['id']}, there is no tool to move")
                continue
            said = await changed(session, one)
            done, found = is_done(root, one), _UNDO.search(said)
            made += done
            if not done:
                print(f"  not as wished: {one['id']} {one['wish']}\n    {said[:300]}")
            if found is not None:
                words = [*FILESTORE, "--store", str(root), "undo", found[1]]
                subprocess.run(words, check=False, capture_output=True)
            is_same = bytes_below(root) == before
            undone += done and is_same
            if not is_same:
                print(f"  not undone: {one['id']}\n    {said[:300]}")
        print(f"changes: {made} of {len(given['changes'])} made, {undone} undone byte for byte")

    await with_session(root, use)


def main() -> None:
    """Ask, change, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bundle", help="of the vault, as git made it")
    parser.add_argument("--half", choices=["tune", "confirm", "both"], default="both")
    parser.add_argument("--only", choices=["questions", "changes"])
    options = parser.parse_args()
    given = json.loads((HERE / "agent_questions.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = str(Path(folder) / "config")
        root = cloned(os.path.abspath(options.bundle), Path(folder))
        if options.only != "changes":
            asyncio.run(ask_all(root, given, options.half))
        if options.only != "questions":
            asyncio.run(change_all(root, given))


if __name__ == "__main__":
    main()
