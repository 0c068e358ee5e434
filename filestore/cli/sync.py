"""Bring the index in step with the files: every repair that touches only the sidecar."""

import argparse
from typing import Any

from filestore.cli import _context, _diagnostics, _output
from filestore.findings import is_clean

EXAMPLE = "filestore sync"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "--no-embed", action="store_true", help="leave new texts without vectors for now"
    )
    parser.add_argument(
        "--full", action="store_true", help="verify everything first, and mend what that finds"
    )
    parser.add_argument(
        "--deep", action="store_true", help="the same, comparing some texts with the model, too"
    )
    parser.add_argument(
        "--forget-missing",
        action="store_true",
        help="forget missing files even where so many are gone that it looks like an accident",
    )


def run(options: Any) -> int:
    """Sync; 1 where something is left that needs a person, 4 where a mass of files is gone."""
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        report = store.sync(
            embed=not options.no_embed,
            forget_missing=options.forget_missing,
            full=options.full,
            deep=options.deep,
            on_progress=on_progress,
        )
        accepted = store.settings.accepted
    clean = is_clean(report.remaining, accepted)
    left = _diagnostics.left_without(report.problem)
    if options.json:
        _output.write_json(
            {
                "applied": [_output.finding_json(finding) for finding in report.applied],
                "remaining": [_output.finding_json(one, accepted) for one in report.remaining],
                "embedded": report.embedded,
                "reused": report.reused,
                "generation": report.generation,
            }
        )
    else:
        counts: dict[str, int] = {}
        for finding in report.applied:
            counts[finding.code] = counts.get(finding.code, 0) + 1
        done = ", ".join(f"{number:,} {code}" for code, number in counts.items())
        _output.line(f"applied: {done or 'nothing to do'}")
        texts = _output.count(report.embedded, "text")
        _output.line(f"{texts} embedded, {report.reused:,} known already")
        if counts.get("missing"):
            words = "forgotten files come back with: filestore repair --path PATH --truth"
            _output.line(words)
        if report.remaining:
            _output.line("left for you:")
            _output.findings(report.remaining, accepted)
    if report.mass_missing:
        return 4
    return left or (0 if clean else 1)
