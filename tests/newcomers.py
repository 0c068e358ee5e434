"""What newcomers ask, and the pages that answer: the pages were written with the first half, and
the second was asked once they were."""

from typing import Final

TUNING: Final = (
    ("how do I install it", "start.md"),
    ("which file formats can be read", "start.md"),
    ("does it change my notes", "safety.md|start.md"),
    ("search for an exact phrase", "search.md"),
    ("how do I call it from python", "library.md"),
    ("how can I undo a change", "chunks.md|troubleshooting.md|safety.md"),
    ("where do I put the API key", "meaning.md|reference/environment.md|safety.md"),
    ("search the notes as they were at an old commit", "git.md"),
    ("choose another embedding model", "meaning.md"),
    ("how do I connect it to Claude", "agents.md"),
    ("what do I do with a merge conflict", "git.md"),
    ("run the server behind nginx with TLS", "server.md"),
    ("open a search result in vim", "editors.md"),
    ("what does exit code 4 mean", "reference/exit-codes.md"),
    ("keyboard shortcuts of the inspector", "inspector.md"),
)
CONFIRMING: Final = (
    ("do I need a GPU or torch", "meaning.md"),
    ("where is the index stored", "start.md|safety.md|reference/FORMAT.md"),
    ("exclude a folder from the index", "start.md|reference/settings.md"),
    ("find notes with a certain tag", "search.md"),
    ("show only the ten newest hits", "search.md"),
    ("keep secret folders away from the agent", "agents.md|safety.md|reference/settings.md"),
    ("vectors in postgres", "meaning.md|reference/FORMAT.md"),
    ("clone a repository without embedding everything again", "git.md"),
    ("my edit of a chunk and the source document changed", "chunks.md"),
    ("check that nothing is damaged", "drift.md|troubleshooting.md"),
    ("Haystack document store", "adapters.md"),
    ("docker container", "server.md"),
    ("VS Code task", "editors.md"),
    ("read a stranger's ragmd file", "exchange.md|reference/FORMAT.md"),
    ("which environment variables are there", "reference/environment.md"),
)
