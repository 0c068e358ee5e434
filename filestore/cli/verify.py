"""Check files, catalog and vectors against each other; change nothing."""

from typing import TYPE_CHECKING, Annotated

from filestore.cli import _context, _diagnostics, _output
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.findings import not_checked_words
from filestore.server import requests
from filestore.server.options import option

if TYPE_CHECKING:
    from filestore.sidecar.snapshot import Sample
    from filestore.verify.verify import Checked

EXAMPLE = "filestore verify --level full"


class Options(requests.Verify, frozen=True, kw_only=True):
    """What the command takes."""

    sample: Annotated[str | None, option("N/T")] = None
    """read only the N-th of T slices of the files and vectors; all T are everything once"""
    staged: bool = False
    """check what git has staged instead: the blobs of the index, not the files"""


def run(options: Options) -> int:
    """Print the findings; exit code 1 where there is an error or a warning."""
    if options.staged:
        return _staged(options)
    checked = _checked(options, _sample(options))
    if options.json:
        _output.write_json(checked.to_dict())
    else:
        _output.findings(checked.findings)
        _output.line(f"{'clean' if checked.clean else 'not clean'} at level {checked.level}")
        _output.wrapped("checked: ", checked.checked or ["nothing"])
        _output.wrapped("", [not_checked_words(checked.not_checked)])
        _output.next_command(checked.findings)
    return 0 if checked.clean else 1


def _sample(options: Options) -> "Sample | None":
    if options.sample is None:
        return None
    from filestore.sidecar.snapshot import Sample

    if options.level == "fast":
        raise UsageError(
            "--sample narrows what is read, and level fast reads nothing",
            remedy=f"filestore verify --level full --sample {options.sample}",
        )
    return Sample.parse(options.sample)


def _checked(options: Options, sample: "Sample | None") -> "Checked":
    """The result; also for a store that must not be opened."""
    try:
        with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
            return store.verify(level=options.level, sample=sample, on_progress=on_progress)
    except FilestoreError as error:
        from filestore.verify.verify import refused

        nothing = refused(options.level, error)
        if nothing is None:
            raise
        return nothing


def _staged(options: Options) -> int:
    with _context.open_store(options) as store:
        checked = store.staged()
    if options.json:
        _output.write_json(checked.to_dict())
    else:
        _output.findings(checked.findings)
        files = _output.count(checked.files, "staged file")
        _output.line(f"{'clean' if checked.clean else 'not clean'}: {files}")
    return 0 if checked.clean else 1
