"""The JSON of every command and of every `to_dict()`: its keys, their types, where they come from.

One rule: what is printed as JSON is made here. `JSON.md` says what each key means.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct

from filestore.core.paths import CHUNKS

_PROBLEM: Final = "error=message:text remedy:text"
_STEP: Final = (
    "kind:text path:text other:text codes:[text] detail:text truth:flag findings:number"
    " seen:{State} read_bytes:number write_bytes:number texts:number|null known:number"
    " from=place:text hash:text blob:text diff:text"
)
_EMBEDDED: Final = " embedded:number reused:number"
_PLANNED: Final = (
    "plan:Plan applied:[Step] skipped:[SkippedStep] remaining:[PlainFinding] undo:[text]"
)
_RAG_STATUS: Final = (
    "rag_name:text has_index:flag document_count:number embedding_dimension:number|null"
    " index_type:text|null created_at:text updated_at:text total_size_bytes:number"
    " dataset_info:{any} clean:flag"
)
_FINDING: Final = "code:text severity:text path:text detail:text repair:text safe:flag"

SHAPES: Final[dict[str, str]] = {
    "AddReport": "added:[Outcome] updated:[Outcome] unchanged:[Outcome] failed:[Outcome]"
    " conflicts:[Conflict]" + _EMBEDDED + " not_embedded?=problem:Problem"
    " ignored?:number other?:number skipped?:[Passed]",
    "EnrichPlan": "planned:number questions:number summaries:number removed:number tokens:number"
    " tokens_in:number tokens_out:number from_cache:number cost:number|null seconds:number|null"
    " failed:[text] kept:[KeptFile] generator:text lines:text threshold?=threshold.value:number"
    " notes:[text]",
    "EnrichReport": "planned:number questions:number summaries:number removed:number tokens:number"
    " tokens_in=bill.tokens_in:number tokens_out=bill.tokens_out:number made=bill.made:number"
    " from_cache=bill.from_cache:number left=bill.left:number failed:[FailedTask] kept:[KeptFile]"
    " generator:text lines:text threshold?=threshold.value:number notes:[text] undo:text"
    + _EMBEDDED
    + " problem?:Problem not_embedded?:Problem",
    "KeptFile": "path:text reason:text",
    "FailedTask": "path:text kind:text error:text",
    "UpdateReport": "added:[Outcome] updated:[Outcome] removed:[Outcome] unchanged:[Outcome]"
    " failed:[Outcome] conflicts:[Conflict] plan:UpdatePlan"
    + _EMBEDDED
    + " not_embedded?=synced.problem:Problem"
    " generation=synced.generation:number applied=synced.applied:[PlainFinding]"
    " remaining:[Finding] undo:text|null",
    "update --plan": "plan:UpdatePlan",
    "UpdatePlan": "changes:[SourceChange] remove_gone:flag outside:[text]",
    "SourceChange": "resource:text source:text moved_to?:text modified:[text] new:[text]"
    " renamed:{text} gone:[text] chunks:number edited:number",
    "Outcome": "source:text resource=named:text|null chunks:number error?=error.message:text"
    " remedy?=error.remedy:text merged?:[below] kept?=kept_details:{text} deleted?:[below]"
    " ignored?:number other?:number skipped?:[Passed] copied_bytes?:number",
    "Passed": "path=0:text reason=1:text",
    "Conflict": "path:below detail:text",
    "Problem": _PROBLEM,
    "Answer": "query:text root:text understood:Understood mode:text generation:number hits:[Hit]"
    " notes:[text] rewrites?:[text] tokens?:number model:text at?:At",
    "At": "commit:text committed:number not_embedded:number",
    "Put": "paths:[text] written:[text] kept:[text]" + _EMBEDDED + " not_embedded?=problem:Problem"
    " undo:text|null",
    "Installation": "program:text file:text key:text name:text server:{any} written:flag"
    " replaced:flag before?:any",
    "Note": "path:text alike:[text]" + _EMBEDDED + " not_embedded?=problem:Problem undo:text|null",
    "RemovedChunks": "paths:[text] undo:text|null",
    "Understood": "words:[text] phrases:[text] prefixes:[text] required:[text] excluded:[text]"
    " text:text",
    "Hit": "document:text title:text line:number|null end_line:number|null page:number|null"
    " section:[text] excerpt:text marks?:[[number]] before?:[text] after?:[text] others?:number"
    " question?:text via?:[text] metadata?:{any}"
    " path:text score:number kind:text resource:text source:text|null freshness:text"
    " headings:[text] pages:[number] text:text why:{{number}}",
    "Similar": "to:[text] source:text|null line:number|null generation:number hits:[SimilarHit]"
    " notes:[text]",
    "SimilarHit": "path:text score:number line?:number kind:text resource:text source:text|null"
    " freshness:text headings:[text] pages:[number] text:text",
    "Duplicates": "above:number generation:number groups:[DuplicateGroup] notes:[text]",
    "DuplicateGroup": "same:flag files:[DuplicateFile]",
    "DuplicateFile": "path:text score:number line?:number kind:text resource:text source:text|null"
    " freshness:text headings:[text] pages:[number] diff:text cut?:flag",
    "Overview": "about:text name:text generation:number resources:number chunks:number"
    " summaries:number stale:number nodes:[OverviewNode] documents:[OverviewDocument]"
    " outline:[OutlineEntry] notes:[text]",
    "OverviewNode": "path:text kind:text level:number title:text text:text freshness:text"
    " children:number below:[OverviewNode]",
    "OverviewDocument": "resource:text title:text source:text|null chunks:number",
    "OutlineEntry": "title:text depth:number path:text",
    "Links": "to:[text] source:text|null generation:number outgoing:[Link] incoming:[Link]"
    " notes:[text]",
    "Link": "path:text line:number|null freshness:text target:text state:text moved_to:text|null",
    "Checked": "clean:flag level:text checked:[text] not_checked:[text] findings:[Finding]",
    "Finding": f"accepted?:flag {_FINDING}",
    "PlainFinding": _FINDING,
    "Status": "clean:flag generation:number counts:{number} drift:{[text]} accepted:[Accepted]"
    " embedder:StatusEmbedder beside?:StatusEmbedder index:Description|null not_checked:[text]"
    " deleted_texts?:number watched?:Watched",
    "Watched": "used:flag reason:text",
    "Accepted": "code:text path:text",
    "StatusEmbedder": "name:text fingerprint:text|null problem:text|null",
    "Description": "kind:text vectors:number lists:number|null probes:number|null"
    " recall:number|null trained_on:number|null work:number|null",
    "SyncReport": "applied:[PlainFinding] remaining:[Finding]"
    + _EMBEDDED
    + " pruned?:number uncounted?:number generation:number",
    "RepairReport": _PLANNED + _EMBEDDED,
    "repair --plan": _PLANNED,
    "Plan": "store=identity:text generation:number level:text"
    " truth=policy.truth:flag only=policy.only:[text] paths=policy.paths:[text]"
    " ours=policy.ours:[text] theirs=policy.theirs:[text] remove=policy.remove:[text]"
    " steps=marked_steps:[PlannedStep] left:[Left] read_bytes:number write_bytes:number"
    " texts:number known:number model:text",
    "Step": _STEP,
    "PlannedStep": f"{_STEP} applies:flag",
    "SkippedStep": f"{_STEP} reason:text",
    "State": "stat:[number]|null hash:text",
    "Left": "code=finding.code:text severity=finding.severity:text path=finding.path:text"
    " detail=finding.detail:text repair=reason:text",
    "UndoResult": "id=identifier:text|null what:text undone:[text] redone?:[text]" + _EMBEDDED,
    "undo --list": "batches:[Group]",
    "Group": "id=identifier:text what:text when:text files:number bytes=size_bytes:number"
    " state:text problem:text",
    "ls": "items:[Resource]",
    "Resource": "resource:text source:text|null chunks:number",
    "ls RESOURCE": "items:[ChunkFile]",
    "ChunkFile": "path:text kind:text|null source:text|null edited:flag withheld:text|null"
    " line?:number|null end_line?:number|null page?:number|null headings?:[text]",
    "Shown": "path:text frontmatter:{any} body:text record:Record",
    "WholeDocument": "path:text title:text resource:text kind:text generation:number"
    " metadata:{any} parts:[DocumentPart] first:number total:number at:number",
    "DocumentPart": "path:text line:number|null end_line:number|null page:number|null"
    " headings:[text] freshness:text text:text problem?:text",
    "VectorMap": "points:[MapPoint] total:number left_out:number explained:[number]"
    " generation:number",
    "MapPoint": "path=0:text resource=1:text title=2:text x=3:number y=4:number",
    "Record": "indexed:flag withheld?:text|null freshness?:text resource?:text kind?:text|null"
    " source?:text|null document?:{any} hand_edited:flag vector_ids?:any file_hash?:text"
    " generation?:number title?:text aliases?:[text] tags?:[text] sections?:[ShownSection]"
    " links?:[ShownLink] backlinks?:[Backlink]",
    "ShownSection": "line:number|null end_line:number|null page:number|null headings:[text]",
    "ShownLink": "line:number|null target:text",
    "Backlink": "path:text line:number|null",
    "Reconstruction": "chunks:number bytes:number path:text|null warnings:[text] text?:text",
    "Rebuilt": "folder:text overlap:text files:[RebuiltFile] chunks:number bytes=size_bytes:number"
    " failed:[text] warnings:[text]",
    "RebuiltFile": "name:text path:text chunks:number bytes=size_bytes:number exact:number"
    " normalized:number none:number overlaps:[Overlap] warnings:[text]",
    "Overlap": "overlap_chars:number confidence:text method:text",
    "Evaluation": "queries:number k=count:number modes:{Scores|null} hybrid:Comparison|null"
    " compared?:[Variant] notes:[text] per_query?:[QuestionResult]",
    "Scores": "ndcg:number recall:number mrr:number",
    "Comparison": "measure:text against:text difference=difference.mean:number"
    " interval_95:[number]",
    "Variant": "name:text scores:Scores|null difference:number|null interval_95:[number]|null"
    " milliseconds:number tokens:number",
    "QuestionResult": "id=question.id:text|null line=question.line:number"
    " query=question.query:text modes=scores:{Scores}",
    "Converted": "source:text read_as:text target:text written_as:text model:text"
    " documents:number vectors:number files:[text] bytes=size_bytes:number notes:[text]",
    "init": "root:text layout:text embedder:text reason:text sync:SyncReport|null",
    "open": "root:text document:text line:number|null page:number|null command:[text]",
    "rm": "removed:[Removed]",
    "Removed": "resource:text files=paths:[below] undo:text|null",
    "embedder": "items:[Embedder] models:{text} store?:Embedder beside?:Embedder",
    "Embedder": "name:text usable:flag why:text",
    "embedder set": "embedder:text beside?:flag" + _EMBEDDED,
    "Switched": "embedder:text beside:text",
    "Dropping": "embedder:text fingerprint:text embeddings:number texts:number",
    "ModelComparison": "queries:number k=count:number mode:text asked:text models:[ModelScores]"
    " difference:number|null interval_95:[number]|null overlap:number worst:[QueryOverlap]"
    " per_query?:[QueryOverlap] notes:[text]",
    "ModelScores": "model:text name:text scores:Scores|null",
    "QueryOverlap": "query:text overlap:number own:[text] beside:[text]",
    "StoreComparison": "queries:number k=count:number mode:text questions:number old:ComparedTime"
    " new:ComparedTime gained:number lost:number overlap:number difference:number|null"
    " interval_95:[number]|null changed:[ComparedQuery] failed:[text] notes:[text]",
    "ComparedTime": "name:text commit=commit.commit:text|null"
    " committed=commit.committed:number|null files:number not_embedded:number scores:Scores|null",
    "ComparedQuery": "id=question.id:text line=question.line:number query=question.query:text"
    " overlap:number answers:[ComparedAnswer] old?=scores.0:Scores new?=scores.1:Scores",
    "ComparedAnswer": "path:text was?:text old:number|null new:number|null edited:flag there:flag",
    "Log": "asked:text entries:[LogEntry] notes:[text]",
    "LogEntry": "commit=commit.commit:text|null committed=commit.committed:number|null"
    " author=commit.author:text|null subject=commit.subject:text|null"
    " gained?:[AnswerChange] lost?:[AnswerChange] edited?:[AnswerChange] first?:text begins?:flag",
    "AnswerChange": "path:text rank:number was?:text",
    "embedder use": "name:text folder:text",
    "embedder fetch": "name:text folder:text",
    "backend list": "items:[Backend]",
    "Backend": "kind:text usable:flag why:text keys:text",
    "backend show": "kind:text address:text vectors:number waiting:number"
    " approximate:flag|null filters:flag compares:flag problem:text|null",
    "backend set": "backend:text address:text sent:number deleted:number kept:number"
    " embedded:number cleared:flag",
    "Exported": "files:[text] bytes=size_bytes:number resources:number chunks:number vectors:number"
    " model:text left_out:[text] more_left_out:number",
    "Imported": "resources:[ImportedResource] planned:flag files:number rows:number"
    " bytes=size_bytes:number limits:Limits renamed:number vectors:number compared:number"
    " no_vectors?:text left_out:[text] more_left_out:number"
    + _EMBEDDED
    + " not_embedded?:Problem undo:text|null",
    "Limits": "rows:number files:number bytes:number",
    "ImportedResource": "resource:text status:text files:number reason?:text",
    "ExportedEmbeddings": "path:text bytes=size_bytes:number digest:text models:[PackedModel]"
    " lacking:number",
    "ImportedEmbeddings": "path:text models:[PackedModel] left_out:[PackedModel] added:number"
    " known:number compared:number unchecked?:text",
    "Pruning": "embeddings:number bytes=size_bytes:number kept:number removed=is_done:flag",
    "PackInfo": "path:text version:number bytes=size_bytes:number digest:text models:[PackedModel]",
    "PackedModel": "fingerprint:text dimension:number vectors:number",
    "trust": "root:text reaches:[text] sources:[text] folders:[text] allowed:[text] closed:[text]"
    " prompts:[text] trusted?:flag",
    "git": "folder:text store:text note:text hooks:[Hook]",
    "Hook": "hook=name:text state:text path:text line:text",
    "watch": "event:text applied?:{number} remaining?:{number} embedded?:number reused?:number"
    " generation?:number updated?:[text] conflicts?:[text] failed?:[text] paths?:[text] for?:text"
    " error?:text detail?:text remedy?:text",
    "serve": "url:text token_file:text stores:[text]",
    "demo": "root:text clean:flag",
    "error": "error:text detail:text remedy:text",
    "rag list": "rags:[RagEntry] count:number",
    "RagEntry": "rag_name:text index_status:RagStatus",
    "RagStatus": _RAG_STATUS + " error?:text details?:text action?:text",
    "rag index": _RAG_STATUS + _EMBEDDED,
    "rag query": "rag_name:text query:text results:[RagResult] notes:[text]",
    "RagResult": "id:text text:text score:number metadata:{any} path:text freshness:text",
    "rag reload": _RAG_STATUS + " error?:text details?:text action?:text synced:flag"
    " applied:{number} remaining:{number}" + _EMBEDDED,
    "rag delete": "rag_name:text deleted:flag",
    "rag error": "error:text details:text action:text",
}
"""Each object: its keys in order, as ``key=attribute:type``.

Without an attribute it is named like the key; a dot leads into a value, a number into a tuple. A
key with ``?`` is left out where there is nothing to say. ``[T]`` is a list of T, ``{T}`` an object
of names to T, ``T|null`` may be null; ``below`` is a path below `chunked/`; a name is an object.
"""


class Field(Struct, frozen=True):
    """One key of an object."""

    key: str
    attribute: tuple[str, ...]
    optional: bool
    type: str


@cache
def fields(shape: str) -> tuple[Field, ...]:
    """The keys of an object, in order."""
    found = []
    for word in SHAPES[shape].split():
        left, _, kind = word.partition(":")
        name, _, attribute = left.partition("=")
        key = name.removesuffix("?")
        path = tuple((attribute or key).split("."))
        found.append(Field(key=key, attribute=path, optional=key != name, type=kind))
    return tuple(found)


class JsonObject:
    """What `--json` can show; its class names its shape."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The values that `--json` prints; see JSON.md."""
        return make(type(self).__name__, self)


def make(shape: str, value: object) -> dict[str, Any]:
    """A value as JSON has it: an object by its attributes, a mapping by its keys.

    Raises:
        KeyError: A mapping lacks a key.
    """
    made = {}
    for field in fields(shape):
        if isinstance(value, Mapping):
            if field.optional and field.key not in value:
                continue
            found = value[field.key]
        else:
            found = _at(value, field.attribute)
            if field.optional and not found and found != "":
                continue
        made[field.key] = _converted(field.type, found)
    return made


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if value is None:
            return None
        value = value[int(name)] if name.isdigit() else getattr(value, name, None)
    return value


def _converted(kind: str, value: Any) -> Any:
    if value is None:
        return None
    kind = kind.removesuffix("|null")
    if kind in SHAPES:
        return make(kind, value)
    if kind.startswith("["):
        items = sorted(value) if isinstance(value, frozenset) else value
        return [_converted(kind[1:-1], item) for item in items]
    if kind.startswith("{"):
        return {text(key): _converted(kind[1:-1], item) for key, item in value.items()}
    return plain(CHUNKS.store_path(value) if kind == "below" else value)


def plain(value: Any) -> Any:
    """A value with texts that JSON can hold."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def text(value: str) -> str:
    r"""A text that JSON can hold: bytes that are not UTF-8 as ``\xNN``."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value
