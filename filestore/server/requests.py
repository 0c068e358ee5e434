"""What clients may ask of a served store: each request's options, and how the store answers it.

The command of the same name takes these options too, with some of its own.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import orjson
from msgspec import Meta
from msgspec.structs import replace

from filestore.core.errors import RefusedError
from filestore.core.progress import OnProgress, ignore
from filestore.server.operations import (
    MOST_HITS,
    Caller,
    CommonOptions,
    Count,
    Request,
    Text,
    Texts,
    Where,
    argument,
    option,
)

if TYPE_CHECKING:
    from filestore.store import Store
_MOST_RENDERED: Final = 50_000
"""Characters of a document that are read as Markdown for one answer."""
Name = Annotated[str, Meta(max_length=255)]
Passage = Annotated[str, Meta(max_length=1_000_000)]


class ReadingOptions(CommonOptions, frozen=True, kw_only=True):
    """What every command takes that answers from the index."""

    update: Annotated[bool, option(local=True)] = True
    """look at the files first, and index what is new or edited where that is quick"""


class Similar(Request, ReadingOptions, frozen=True, kw_only=True):
    """What is similar to a file."""

    path: Annotated[Text, argument("PATH[:LINE]")]
    """a chunk file, or an original; with a line, the chunk or passage that holds that line"""
    k: Count = 10
    """at most N files"""

    def answer(self, store: "Store") -> Any:
        """The nearest files."""
        return store.similar(self.path, k=self.k)


Lines = str | int | Annotated[list[int], Meta(min_length=1, max_length=2)]


class Show(Request, ReadingOptions, frozen=True, kw_only=True):
    """One file."""

    path: Annotated[Text, argument("PATH[:LINE]")]
    """a document or chunk file as search prints it: PATH, PATH:10 (passage), PATH:10-40, PATH:p2
    (page), PATH#Heading"""
    lines: Annotated[Lines, option("FROM-TO")] = ""
    """only these: 10-40, 10-, p2, p2-4 or #Heading"""
    most: Annotated[Annotated[int, Meta(ge=1)] | None, option("N")] = None
    """at most N characters, in whole lines; what is left is named"""

    def answer(self, store: "Store") -> Any:
        """The file as it is on disk, with its record."""
        lines = self.lines
        if isinstance(lines, list):
            # Two numbers are the first and the last line.
            lines = f"{lines[0]}-{lines[-1]}"
        return store.show(self.path, lines=str(lines), most=self.most)


class Document(Request, ReadingOptions, frozen=True, kw_only=True):
    """A whole document."""

    path: Text
    """of a chunk file or a document, relative to the root"""
    line: Annotated[int, Meta(ge=0, le=10**9)] = 0
    """of a document in place"""
    first: Annotated[int, Meta(ge=0, le=10**9)] | None = None
    """begin with the part of this number, not around the one named"""
    link: Text = ""
    """a link in the file, as it is written: what it leads to is given"""
    rendered: bool = False
    """give each part's blocks, at most 50,000 characters at once"""

    def answer(self, store: "Store") -> Any:
        """Its parts."""
        more: Any = {"rendered": True, "most": _MOST_RENDERED} if self.rendered else {}
        return store.document(self.path, line=self.line, first=self.first, link=self.link, **more)


class Ls(Request, ReadingOptions, frozen=True, kw_only=True):
    """What is in the store."""

    resource: Annotated[Text, argument("DOCUMENT")] = ""
    """a document or folder as 'ls' prints it (default: all)"""

    def answer(self, store: "Store") -> Any:
        """Documents, or the chunks of one."""
        return store.ls(self.resource)


class List(Request, ReadingOptions, frozen=True, kw_only=True):
    """What one finds in the store who looks around."""

    folder: Text = ""
    """a folder, or a glob such as notes/*.md; the whole store if left out"""
    recent: bool | Count = False
    """only the newest, with dates"""
    after: Text = ""
    """go on behind this entry"""
    most: Annotated[int, Meta(ge=1)] | None = None
    """at most about N characters"""

    def answer(self, store: "Store") -> Any:
        """Folders with counts, newest, most linked, documents."""
        recent = MOST_HITS if self.recent is True else int(self.recent)
        return store.contents(self.folder, recent=recent, after=self.after, most=self.most)


class About(Request, ReadingOptions, frozen=True, kw_only=True):
    """What the store, or something in it, is about."""

    asked: Annotated[Text, argument("DOCUMENT|FOLDER|QUERY", joined=True)] = ""
    """a document, a folder, a file, or a question (default: the whole store)"""
    depth: Annotated[int, Meta(ge=1, le=20), option("N")] = 2
    """levels of summaries, from the top"""

    def answer(self, store: "Store") -> Any:
        """Summaries, documents, headings."""
        return store.about(self.asked, depth=self.depth)


class Links(Request, ReadingOptions, frozen=True, kw_only=True):
    """The links of a file."""

    path: Annotated[Text, argument("PATH")]
    """a chunk file, or an original: then of all its chunks"""

    def answer(self, store: "Store") -> Any:
        """Those of the file, and those to it."""
        return store.links(self.path)


class Status(Request, CommonOptions, frozen=True, kw_only=True):
    """What drifted."""

    def answer(self, store: "Store") -> Any:
        """The drift by code."""
        return store.status()


class Verify(Request, CommonOptions, frozen=True, kw_only=True):
    """What a check finds."""

    level: Literal["fast", "full", "deep"] = "fast"
    """fast: stats; full: every byte, id, vector and full-text entry; deep: also embeds some
    passages again, asking a service where the model is one"""

    def answer(self, store: "Store") -> Any:
        """The findings."""
        return store.verify(level=self.level)


class Evaluate(Request, ReadingOptions, frozen=True, kw_only=True):
    """How good search is."""

    questions: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=10_000)]
    """each with query, relevant and, if wanted, id and not: what must not come"""
    k: Count = 10
    """look at the first N results"""
    per_query: bool = False
    """also show each question"""

    def answer(self, store: "Store") -> Any:
        """The means, and each question's scores where they are wanted."""
        from filestore.search.metrics import parse_queries

        lines = b"\n".join(map(orjson.dumps, self.questions))
        found = store.evaluate(parse_queries(lines, name="questions"), k=self.k)
        return replace(found, per_query=found.results if self.per_query else ())


class Sync(Request, CommonOptions, frozen=True, kw_only=True):
    """The index from the files."""

    embed: bool = True
    """embed new passages now"""
    full: bool = False
    """verify everything first, and repair what that finds"""
    forget_missing: bool = False
    """remove missing files from the index even if suspiciously many are gone"""
    deep: Annotated[bool, option(local=True)] = False
    """as --full, and also compare some passages with the model"""

    def answer(self, store: "Store", on_progress: OnProgress = ignore) -> Any:
        """What was done, and what is left."""
        return store.sync(
            embed=self.embed,
            forget_missing=self.forget_missing,
            full=self.full,
            deep=self.deep,
            on_progress=on_progress,
        )


class TakeUp(Request, CommonOptions, frozen=True, kw_only=True):
    """New, edited and moved files."""

    def answer(self, store: "Store") -> Any:
        """What was done, and what is left."""
        return store.take_up()


class Update(Request, CommonOptions, frozen=True, kw_only=True):
    """Documents from their originals."""

    resources: Annotated[Texts, argument("DOCUMENT")] = []
    """only these (default: all)"""
    remove_gone: bool = False
    """remove what was made from originals that are gone; what was edited by hand stays"""
    embed: bool = True
    """embed new passages now"""

    def answer(self, store: "Store", on_progress: OnProgress = ignore) -> Any:
        """What was done."""
        return store.update(
            *self.resources,
            remove_gone=self.remove_gone,
            embed=self.embed,
            on_progress=on_progress,
        )


class Add(Request, CommonOptions, frozen=True, kw_only=True):
    """Documents that lie in the store's folder; others are uploaded."""

    paths: Annotated[list[Text], Meta(min_length=1, max_length=1_000)]
    """files and folders in the store's folder, relative to the root"""
    into: Annotated[Name | None, option("NAME")] = None
    """the document's name (default: the file's)"""
    each: bool = False
    """make each child of a folder its own document"""

    def allowed(self, require_allowed: Callable[[Sequence[str]], list[str]]) -> Self:
        """The same with the paths of this machine."""
        return replace(self, paths=require_allowed(self.paths))

    def answer(self, store: "Store") -> Any:
        """What became of each."""
        return store.add(*self.paths, into=self.into or None, each=self.each)


class Remove(Request, CommonOptions, frozen=True, kw_only=True):
    """Documents that go."""

    resources: Annotated[list[Text], Meta(min_length=1, max_length=1_000), argument("DOCUMENT")]
    """a name that 'ls' shows"""

    def answer(self, store: "Store") -> Any:
        """What was removed."""
        from filestore.ingest.put import RemovedResources

        return RemovedResources(store.remove(*self.resources))


class Move(Request, CommonOptions, frozen=True, kw_only=True):
    """A file or a folder under another path."""

    path: Annotated[Text, argument("PATH")]
    """a document, a folder of documents, or a chunk file that you wrote"""
    to: Annotated[Text, argument("NEW")]
    """its new path, or a folder that is there"""
    revision: Annotated[Text | None, option("R")] = None
    """only if 'show' still gives this revision of the file"""
    plan: bool = False
    """only show what would be written"""

    def answer(self, store: "Store") -> Any:
        """What was moved and written, or would be."""
        if self.plan:
            return store.plan_move(self.path, self.to, revision=self.revision)
        return store.move(self.path, self.to, revision=self.revision)


class Changes(Request, CommonOptions, frozen=True, kw_only=True):
    """What was changed."""

    id: Annotated[Text | None, argument("ID")] = None
    """one change, with its diff (default: all that are kept)"""
    by: Annotated[Name | None, option("NAME")] = None
    """only those of the program of this name; you: those of people"""
    since: Annotated[Name | None, option("DATE")] = None
    """only those of this day or later: 2026, 2026-05 or 2026-05-03"""
    limit: Annotated[int, Meta(ge=1, le=1_000), option("N", "-n", "--limit")] = 20
    """at most N, the newest"""
    diff: bool = False
    """with the diff of each"""

    def answer(self, store: "Store") -> Any:
        """The changes."""
        return store.changes(
            self.id or None,
            by=self.by or None,
            since=self.since or None,
            limit=self.limit,
            diff=self.diff or bool(self.id),
        )

    def answer_to(self, store: "Store", caller: Caller) -> Any:
        """To a program only its own: others may be of files that are closed to it."""
        return (
            self.answer(store) if caller.person else replace(self, by=caller.program).answer(store)
        )


class Undo(Request, CommonOptions, frozen=True, kw_only=True):
    """A change that is undone."""

    id: Annotated[Text | None, argument("ID")] = None
    """the change (default: the newest that is not undone)"""

    def answer(self, store: "Store") -> Any:
        """What was undone."""
        from filestore.repair.undo import UndoResult

        return store.undo(self.id or None) or UndoResult()

    def answer_to(self, store: "Store", caller: Caller) -> Any:
        """To a program only where it made the change.

        Raises:
            RefusedError: It did not.
        """
        if not caller.person:
            made = store.changes(self.id or None, limit=1).changes
            if not self.id or made[0].group.by != caller.program:
                raise RefusedError(
                    "a program undoes a change of its own, by its ID",
                    remedy="'filestore undo' undoes any, for a person",
                )
        return self.answer(store)


class AddNote(Request, CommonOptions, frozen=True, kw_only=True):
    """A new note."""

    text: Annotated[Passage, Meta(min_length=1)]
    """Markdown text of the note; its frontmatter is the file's"""
    title: Annotated[str, Meta(max_length=1_000)] = ""
    """its heading and file name"""
    folder: Text | None = None
    """folder for the note (default: notes); the flat layout has none"""
    metadata: Where = {}
    """keys for its frontmatter, such as tags"""
    plan: bool = False
    """only show the diff, write nothing"""

    def answer(self, store: "Store") -> Any:
        """Where it is, and what undoes it."""
        more: Any = {} if self.folder is None else {"folder": self.folder}
        return store.add_note(
            self.text, title=self.title, metadata=self.metadata, plan=self.plan, **more
        )


class _Change(CommonOptions, frozen=True, kw_only=True):
    """A change of a file."""

    path: Text
    """of the Markdown file, as a hit names it"""
    revision: Annotated[str, Meta(max_length=255)]
    """of the file as show gave it; another one is refused"""
    plan: bool = False
    """only show the diff, write nothing"""


class Append(Request, _Change, frozen=True, kw_only=True):
    """Text at the end of a file."""

    text: Annotated[Passage, Meta(min_length=1)]
    """Markdown, added as a paragraph of its own, or as the next item of a list"""

    def answer(self, store: "Store") -> Any:
        """Where it is, and what undoes it."""
        return store.append_note(self.path, self.text, revision=self.revision, plan=self.plan)


class Edit(Request, _Change, frozen=True, kw_only=True):
    """A passage, or a section, that is replaced."""

    old: Passage = ""
    """exact text that is replaced, in the file exactly once"""
    section: Annotated[str, Meta(max_length=1_000)] = ""
    """instead of old: a heading; all below it is replaced, down to the next of its level"""
    new: Passage
    """what takes its place"""

    def answer(self, store: "Store") -> Any:
        """Where it is, and what undoes it."""
        return store.edit_note(
            self.path,
            old=self.old,
            section=self.section,
            new=self.new,
            revision=self.revision,
            plan=self.plan,
        )
