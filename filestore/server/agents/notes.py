"""What agents may write: a new note, and a passage of a file; both can be undone."""

from typing import TYPE_CHECKING, Any, Final

from filestore.core.errors import UsageError
from filestore.ingest.notes import FOLDER
from filestore.server.operations import Operation, Values, text

if TYPE_CHECKING:
    from filestore.store import Store

_LONGEST: Final = 1_000_000
"""Characters."""
_PLAIN: Final = ["string", "number", "boolean"]
_WORD: Final = {"type": _PLAIN, "maxLength": 10_000}


def _add(store: "Store", values: Values) -> dict[str, Any]:
    return store.add_note(values.pop("text"), **values).to_dict()


def _edit(store: "Store", values: Values) -> dict[str, Any]:
    old, whole, new = values.get("old", ""), values.get("text"), values.get("new")
    if old and new is not None and whole is None:
        wanted = new
    elif whole is not None and not old and new is None:
        wanted = whole
    else:
        raise UsageError(
            "an edit has either old and new, or text alone",
            remedy="give old, which is there exactly once, and new; text replaces a whole note",
        )
    return store.edit_note(values["path"], old=old, new=wanted).to_dict()


NOTES: Final = (
    Operation(
        name="add_note",
        about="Write a new note as Markdown, found at once; the answer names what undoes it",
        run=_add,
        answer="Note",
        parameters={
            "text": text("of the note, as Markdown", longest=_LONGEST, minLength=1),
            "title": text("its heading and file name", longest=1_000, default=""),
            "folder": text(f"where it lies; {FOLDER} if left out; the flat layout has none"),
            "metadata": {
                "type": "object",
                "description": "keys for its frontmatter, such as tags",
                "maxProperties": 100,
                "additionalProperties": {
                    **_WORD,
                    "type": [*_PLAIN, "array"],
                    "maxItems": 100,
                    "items": _WORD,
                },
                "default": {},
            },
        },
        required=("text",),
        writes=True,
    ),
    Operation(
        name="edit_note",
        about="Replace a passage of a Markdown file; the answer names what undoes it",
        run=_edit,
        answer="Note",
        parameters={
            "path": text("of the file, as a hit names it"),
            "old": text("the passage, in the file exactly once", longest=_LONGEST),
            "new": text("what takes its place", longest=_LONGEST),
            "text": text("instead of both: all of a note that no person edited", longest=_LONGEST),
        },
        required=("path",),
        writes=True,
    ),
)
