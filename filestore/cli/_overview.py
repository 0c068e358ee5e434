"""Every command on one screen, and what is here."""

from __future__ import annotations

from filestore.cli._width import filled, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `typing` takes longer to load than the overview.
    from collections.abc import Mapping
    from typing import Any, Final

GROUPS: Final = {
    "start": {
        "init": "",
        "tui": "",
        "demo doctor": "take a tour; check this machine",
        "config completion": "list your defaults; complete words at TAB",
    },
    "find": {
        "search": "find passages, best first, with line and freshness",
        "show": "",
        "ls": "",
        "about": "overview of the store, a folder or a document",
        "links": "",
        "similar duplicates": "find passages alike, files with the same text",
        "open": "",
    },
    "keep up to date": {
        "sync watch": "update the index from the files; as they change",
        "status": "",
        "verify": "",
        "repair": "",
        "changes": "",
        "undo redo": "undo a change of files; redo it",
        "git": "",
    },
    "chunk stores": {
        "add update": "add documents; import changed ones again",
        "rm mv": "remove documents; move files with their links",
        "enrich": "",
        "reconstruct": "",
        "export import": "write and read forms of other programs",
        "convert": "turn a .ragmd file into FAISS + JSON, or back",
    },
    "models": {
        "embedder": "",
        "backend": "",
        "embeddings": "",
        "trust": "",
        "evaluate": "measure search by questions with known answers",
        "log compare": "find the commits that changed an answer",
    },
    "programs": {"serve": "", "mcp": "", "token": ""},
}
"""The commands by purpose: of a row its sentence; empty: that of the table of operations."""
SYNONYMS: Final = {
    "ask": "search",
    "cat": "show",
    "check": "verify",
    "clone": "init",
    "create": "init",
    "delete": "rm",
    "diff": "status",
    "edit": "open",
    "find": "search",
    "grep": "search",
    "history": "changes",
    "index": "sync",
    "list": "ls",
    "model": "embedder",
    "models": "embedder",
    "move": "mv",
    "new": "init",
    "query": "search",
    "read": "show",
    "refresh": "sync",
    "reindex": "sync",
    "remove": "rm",
    "rename": "mv",
    "revert": "undo",
    "server": "serve",
    "ui": "tui",
    "view": "show",
}
"""What other programs call a command."""
_FIRST: Final = ("search WORDS", "status", "sync", "tui", "help")
_WITHOUT_A_STORE: Final = ("init", "init --in-place FOLDER", "demo", "tui", "help start")
_PAGES: Final = "start, search, meaning, agents, git, chunks, drift, exit-codes …"
_USAGE: Final = "usage: filestore [--store DIR] [--json] [--version] COMMAND …"
_DESCRIPTION: Final = "Knowledge as Markdown files that people edit, and an index that follows."


def overview(known: Mapping[str, Mapping[str, Any]]) -> str:
    """Every command in its group; related ones share a line.

    Args:
        known: What there is to say of each command.
    """
    columns = width()
    rows = [*filled(_USAGE, columns), *filled(_DESCRIPTION, columns), ""]
    for group, lines in GROUPS.items():
        rows.append(f"{group}:")
        for line, about in lines.items():
            names = line.split()
            about = about or known[names[0]]["line"]
            row = f"  {', '.join(names):<19} {about}"
            rows += filled(row, columns, indent=22)
    rows += ["", *filled("help COMMAND|PAGE|CODE says more. Pages: " + _PAGES, columns)]
    return "\n".join([*rows, ""])


def welcome() -> str:
    """What is here, and the commands to begin with."""
    from filestore.config import layout
    from filestore.core.caller import working_folder

    try:
        here, first = f"The store is {layout.find_root(working_folder())}.", _FIRST
    except layout.NoStoreError as error:
        here, first = f"{error.message[:1].upper()}{error.message[1:]}.", _WITHOUT_A_STORE
    return "\n".join([here, "", *(f"  filestore {words}" for words in first), ""])
