"""Check files, catalog and vectors against each other; changes nothing."""

import argparse
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _diagnostics, _output
from filestore.errors import FilestoreError, UsageError
from filestore.findings import is_clean

if TYPE_CHECKING:
    from filestore.subject import Sample
    from filestore.verify import Checked

EXAMPLE = "filestore verify --level full"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "--level",
        choices=("fast", "full", "deep"),
        default="fast",
        help="fast: stats; full: every byte, id, vector and full-text entry; deep: also embeds "
        "some texts again, asking a service where the model is one (default: fast)",
    )
    parser.add_argument(
        "--sample",
        metavar="N/T",
        help="read only the N-th of T slices of the files and vectors; all T are everything once",
    )
    parser.add_argument(
        "--staged",
        action="store_true",
        help="check what git has staged instead: the blobs of the index, not the files",
    )


def run(options: Any) -> int:
    """Print the findings; exit code 1 where there is an error or a warning."""
    if options.staged:
        return _staged(options)
    checked, accepted = _checked(options, _sample(options))
    clean = is_clean(checked.findings, accepted)
    if options.json:
        _output.write_json(
            {
                "clean": clean,
                "level": checked.level,
                "checked": list(checked.checked),
                "not_checked": list(checked.not_checked),
                "findings": [_output.finding_json(one, accepted) for one in checked.findings],
            }
        )
    else:
        _output.findings(checked.findings, accepted)
        _output.line(f"{'clean' if clean else 'not clean'} at level {checked.level}")
        _output.wrapped("checked: ", checked.checked or ["nothing"])
        _output.wrapped("not checked: ", checked.not_checked)
        _output.next_command(checked.findings, accepted)
    return 0 if clean else 1


def _sample(options: Any) -> "Sample | None":
    if options.sample is None:
        return None
    from filestore.subject import Sample

    if options.level == "fast":
        raise UsageError(
            "--sample narrows what is read, and level fast reads nothing",
            remedy=f"filestore verify --level full --sample {options.sample}",
        )
    return Sample.parse(options.sample)


def _checked(options: Any, sample: "Sample | None") -> "tuple[Checked, _output.Accepted]":
    """The result, and what the settings accept; also for a store that must not be opened."""
    try:
        with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
            checked = store.verify(level=options.level, sample=sample, on_progress=on_progress)
            return checked, store.settings.accepted
    except FilestoreError as error:
        from filestore.verify import refused

        nothing = refused(options.level, error)
        if nothing is None:
            raise
        return nothing, None


def _staged(options: Any) -> int:
    from filestore import staged

    with _context.open_store(options) as store:
        checked = staged.check(store.places, store.settings.layout)
        accepted = store.settings.accepted
    clean = is_clean(checked.findings, accepted)
    if options.json:
        _output.write_json(
            {
                "clean": clean,
                "level": "staged",
                "checked": [f"staged files: {checked.files}"],
                "not_checked": ["files that are not staged", "catalog", "vectors"],
                "findings": [_output.finding_json(one, accepted) for one in checked.findings],
            }
        )
    else:
        _output.findings(checked.findings, accepted)
        files = _output.count(checked.files, "staged file")
        _output.line(f"{'clean' if clean else 'not clean'}: {files}")
    return 0 if clean else 1
