"""Write the store in a form of other programs; 'filestore import' takes all but Markdown back."""

from typing import TYPE_CHECKING, Annotated

from filestore.cli import _context, _diagnostics, _output
from filestore.core.safe_text import safe_text, shown_path
from filestore.exchange.base import FORMS
from filestore.server.options import CommonOptions, argument

if TYPE_CHECKING:
    from filestore.exchange.from_store import Exported

EXAMPLE = "filestore export jsonl handbook.jsonl handbook"


class Options(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    form: Annotated[str, argument("FORM", one_of=list(FORMS))]
    """one of:"""
    target: Annotated[str, argument("TARGET")]
    """the file or folder; an earlier export there is replaced"""
    resources: Annotated[list[str], argument("RESOURCE")] = []
    """only these (default: the whole store)"""
    vectors: bool = True
    """write the vectors beside texts and metadata"""


def run(options: Options) -> int:
    """Write it."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        done = store.export(
            options.form,
            options.target,
            *options.resources,
            vectors=options.vectors,
            on_progress=on_progress,
        )
    _context.tell(options, done, _told)
    _output.left_out(done.left_out, done.more_left_out)
    return 1 if done.left_out or not done.chunks else 0


def _told(done: "Exported") -> None:
    chunks = _output.count(done.chunks, "chunk")
    resources = _output.count(done.resources, "resource")
    for path in done.files:
        _output.line(f"wrote {shown_path(path)}")
    _output.line(f"{chunks} of {resources}, {done.size_bytes:,} bytes")
    if done.vectors:
        model = safe_text(done.model, keep_newlines=False)
        _output.line(f"with {_output.count(done.vectors, 'vector')} of {model}")
