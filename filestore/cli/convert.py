"""Turn an index in one file, KB.ragmd, into FAISS + JSON, or back; no store is needed."""

from typing import Annotated

from filestore.cli import _diagnostics, _output
from filestore.cli._given import Limited
from filestore.core.safe_text import safe_text, shown_path
from filestore.server.options import argument

EXAMPLE = "filestore convert handbook.ragmd handbook-index"


class Options(Limited, frozen=True, kw_only=True):
    """What the command takes."""

    source: Annotated[str, argument("SOURCE")]
    """a .ragmd file; a folder with index.faiss, corpus.json, embeddings.npy and metadata.json; or a
    file vectors-NAME.faiss beside metadata-NAME.json"""
    target: Annotated[str, argument("TARGET")]
    """the same, of another kind; an index there is replaced"""


def run(options: Options) -> int:
    """Convert, and say what."""
    from filestore.exchange.convert import convert

    done = convert(options.source, options.target, options.limits)
    if options.json:
        _output.write_json(done.to_dict())
        return 0
    documents = _output.count(done.documents, "document")
    vectors = _output.count(done.vectors, "vector")
    model = safe_text(done.model, keep_newlines=False)
    for path in done.files:
        _output.line(f"wrote {shown_path(path)}")
    _output.line(f"{documents}, {vectors} of {model}, {done.size_bytes:,} bytes")
    for sentence in done.notes:
        _diagnostics.say(f"note: {safe_text(sentence, keep_newlines=False)}")
    return 0
