"""What drifted between the files and the index, told by stat: as cheap as git status."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _output

if TYPE_CHECKING:
    from filestore.store import Store

EXAMPLE = "filestore status --json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes: nothing of its own."""


def run(options: Any) -> int:
    """Print the drift; exit code 1 where there is any."""
    with _context.open_store(options) as store:
        status = store.status()
        embedder, accepted = _embedder(store), store.settings.accepted
    drift: dict[str, list[str]] = {}
    for finding in status.findings:
        drift.setdefault(finding.code, []).append(finding.path)
    if options.json:
        counts = {"files": status.files} | {code: len(paths) for code, paths in drift.items()}
        _output.write_json(
            {
                "clean": status.clean,
                "generation": status.generation,
                "counts": counts,
                "drift": drift,
                "accepted": [
                    {"code": finding.code, "path": finding.path}
                    for finding in status.findings
                    if _output.is_accepted(finding, accepted)
                ],
                "embedder": embedder,
                "index": asdict(status.index) if status.index else None,
            }
        )
    else:
        _output.findings(status.findings, accepted)
        if status.clean:
            _output.line(f"clean: {_output.count(status.files, 'file')} as indexed")
        _output.next_command(status.findings, accepted)
    return 0 if status.clean else 1


def _embedder(store: "Store") -> dict[str, Any]:
    problem = store.model.problem
    return {
        "name": store.settings.embedder,
        "fingerprint": store.embedder.fingerprint if store.embedder else None,
        "problem": problem.message if problem else None,
    }
