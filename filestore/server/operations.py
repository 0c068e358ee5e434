"""What may be asked, each once: of the command line, over HTTP, by agents.

All three are made from this table, and so is what describes them. A row's options are a value, in
the module of its command, and in `server/requests` where a served store answers. One rule: what a
client gives is checked against them before any of it is used.
"""

from collections.abc import Callable
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

if TYPE_CHECKING:
    from filestore.server.options import Request
    from filestore.server.stores import ServedStore


class Operation(Struct, frozen=True, dict=True):
    """One thing that may be asked."""

    name: str
    about: str
    """One line, for whoever reads the list of them."""
    answer: str = ""
    """The shape of what a served store answers; see JSON.md."""
    route: str = ""
    """Its name over HTTP; "" where it is not asked so."""
    command: bool = True
    """Whether the command line has it: `run_…` with its name in a module of `cli`."""
    tool: bool = False
    """Whether agents may call it."""
    writes: bool = False
    module: str = "requests"
    """Of `server`, which has the options that clients give."""
    slow: bool = False
    """Whether it reads for long: such wait for each other, and nobody else for them."""

    @property
    def sentence(self) -> str:
        """The line, as a sentence begins."""
        return self.about[:1].upper() + self.about[1:]

    @cached_property
    def kind(self) -> type[Any]:
        """The options that clients give, as a value that answers."""
        name = (self.route or self.name).title().replace("_", "")
        found: type[Any] = getattr(import_module(f"filestore.server.{self.module}"), name)
        return found

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its options."""
        from filestore.server.decoding import schema_of

        return schema_of(self.kind)

    def checked(self, given: Any) -> "Request":
        """What a client gives, as it is meant; see `decoded`."""
        from filestore.server.decoding import decoded

        request: Request = decoded(self.kind, given, self.route or self.name)
        return request

    async def ask(self, store: "ServedStore", given: Any) -> dict[str, Any]:
        """Check what a client gives, and answer it.

        Raises:
            FilestoreError: What the library raises.
        """
        request = self.checked(given)
        if self.writes:
            store.require_writes()
        request = request.allowed(store)
        do: Callable[..., Any] = store.read_long if self.slow else store.read
        if self.writes:
            do = partial(store.write, embeds=getattr(request, "embed", True))
        # What is made when it is read reads the disk: not in the loop, for which others wait.
        answer: dict[str, Any] = await do(lambda store: request.answer(store).to_dict())
        if self.writes:
            store.tell(self.route or self.name, answer)
        return answer


OPERATIONS: Final = (
    Operation("init", "create a store"),
    Operation("add", "add documents, or update them", "AddReport", "add", writes=True),
    Operation(
        "update",
        "follow the originals: re-ingest what changed, then sync",
        "UpdateReport",
        "update",
        writes=True,
    ),
    Operation("rm", "remove resources; can be undone", "RemovedResources", "remove", writes=True),
    Operation("ls", "list resources, or the chunks of one", "Resources", "ls"),
    Operation(
        "show",
        "show one chunk file or document with its record",
        "Shown",
        "show",
        tool=True,
    ),
    Operation("status", "show what drifted between files and index", "Status", "status", tool=True),
    Operation("verify", "check everything, change nothing", "Checked", "verify", slow=True),
    Operation(
        "sync",
        "update the index from the files",
        "SyncReport",
        "sync",
        tool=True,
        writes=True,
    ),
    Operation("repair", "plan repairs, ask, and apply them"),
    Operation("undo", "undo a change of files", "UndoResult", "undo", writes=True),
    Operation("redo", "redo a change that was undone"),
    Operation("watch", "keep the index up to date while files change"),
    Operation("git", "git hooks that keep the index up to date"),
    Operation(
        "search",
        "search the store: passages, best first, with document, line and freshness",
        "Answer",
        "search",
        tool=True,
        module="searching",
    ),
    Operation(
        "about",
        "say what the store, a resource, a file or a question is about",
        "Overview",
        "about",
        tool=True,
    ),
    Operation(
        "similar",
        "find what is similar to a file, or to one of its lines",
        "Similar",
        "similar",
        tool=True,
    ),
    Operation("duplicates", "find files with the same text, or nearly"),
    Operation("links", "list the links of a file, and those to it", "Links", "links"),
    Operation(
        "document",
        "show a whole document in its parts, around the one that is named",
        "WholeDocument",
        "document",
        command=False,
    ),
    Operation(
        "map",
        "lay the texts of the store out in a plane, near ones near each other",
        "VectorMap",
        "map",
        command=False,
        slow=True,
    ),
    Operation("open", "open a search hit in your editor, at its line"),
    Operation(
        "evaluate",
        "measure search quality by questions whose answers are known",
        "Evaluation",
        "evaluate",
        slow=True,
    ),
    Operation("log", "say which commits changed the answer to a question"),
    Operation("compare", "say which answers changed between two commits"),
    Operation("embedder", "list models, or change the store's model"),
    Operation("backend", "show or choose where the vectors are searched"),
    Operation("embeddings", "carry embeddings from one store to another in a file"),
    Operation("export", "write the store in a form of other programs"),
    Operation("import", "take in what a store or another program wrote"),
    Operation("convert", "turn an index in a .ragmd file into FAISS + JSON, or back"),
    Operation("enrich", "make questions and summaries, kept as files"),
    Operation(
        "add_note",
        "write a new note as Markdown, found at once; the answer names what undoes it",
        "Note",
        command=False,
        tool=True,
        writes=True,
    ),
    Operation(
        "edit_note",
        "replace a passage of a Markdown file; the answer names what undoes it",
        "Note",
        command=False,
        tool=True,
        writes=True,
    ),
    Operation("trust", "allow the service that the settings name"),
    Operation("reconstruct", "rebuild texts from chunks, also from those that others made"),
    Operation("serve", "serve stores to programs, agents and browsers"),
    Operation("mcp", "answer agents over MCP"),
    Operation("demo", "a tour in a temporary folder"),
    Operation("tui", "open the inspector"),
)

COMMANDS: Final = {one.name: one for one in OPERATIONS if one.command}
"""By the name of the command."""
MODULES: Final = {
    command: module
    for module, commands in {
        "documents": ("add", "update", "rm"),
        "files": ("ls", "show", "about", "links", "status"),
        "alike": ("similar", "duplicates"),
        "syncing": ("verify", "sync", "watch"),
        "repair": ("repair", "undo", "redo"),
        "questions": ("evaluate", "compare", "log"),
        "vectors": ("backend", "embeddings"),
        "exchange": ("export", "import", "convert", "reconstruct"),
        "serve": ("serve", "mcp"),
        "setup": ("init", "trust", "demo"),
        "open": ("open", "tui"),
    }.items()
    for command in commands
}
"""Of `cli`, by the command; any other command has one of its own name."""
ROUTES: Final = {one.route: one for one in OPERATIONS if one.route}
"""By their name over HTTP."""
TOOLS: Final = {one.name: one for one in OPERATIONS if one.tool}
"""By the name that agents call."""
