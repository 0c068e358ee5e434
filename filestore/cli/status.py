"""Show what drifted between files and index, as fast as git status."""

from msgspec.structs import replace

from filestore.cli import _context, _diagnostics, _output
from filestore.server.requests import Status as Options

EXAMPLE = "filestore status --json"


def run(options: Options) -> int:
    """Print the drift; exit code 1 where there is any."""
    with _context.open_store(options) as store:
        # A server's command says what its own process would: how a server knows, HTTP tells.
        status = replace(options.answer(store), watched=None)
    if options.json:
        _output.write_json(status.to_dict())
    else:
        _output.findings(status.findings)
        if status.clean:
            _output.line(f"clean: {_output.count(status.files, 'file')} as indexed")
        for words in status.not_checked:
            _diagnostics.say(f"not looked at: {words}")
        if status.deleted_texts:
            texts = _output.count(status.deleted_texts, "deleted text")
            _diagnostics.say(f"keyword scores still count {texts}: run 'filestore sync --full'")
        _output.next_command(status.findings)
    return 0 if status.clean else 1
