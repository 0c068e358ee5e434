"""Turn an index in one file, KB.ragmd, into FAISS + JSON, or back; no store is needed."""

import argparse
from typing import Any

from filestore.cli import _diagnostics, _output, _parser
from filestore.core.safe_text import safe_text, shown_path

EXAMPLE = "filestore convert handbook.ragmd handbook-index"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a .ragmd file; a folder with index.faiss, corpus.json, embeddings.npy and"
        " metadata.json; or a file vectors-NAME.faiss beside metadata-NAME.json",
    )
    parser.add_argument(
        "target", metavar="TARGET", help="the same, of another kind; an index there is replaced"
    )
    _parser.add_limits(parser)


def run(options: Any) -> int:
    """Convert, and say what."""
    from filestore.exchange.convert import convert

    done = convert(options.source, options.target, _parser.limits_of(options))
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
