"""Let a store reach what its settings name outside this machine: a service that embeds texts."""

import argparse
from typing import Any

from filestore.cli import _context, _output

EXAMPLE = "filestore trust"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("--revoke", action="store_true", help="take back what was allowed")


def run(options: Any) -> int:
    """Trust the settings as they are now, and say what that allows."""
    with _context.open_store(options) as store:
        service, root = store.model.reaches, store.root
        if options.revoke:
            store.model.distrust()
        else:
            store.model.trust()
    if options.json:
        reaches = [] if service is None else [service]
        _output.write_json({"root": root, "reaches": reaches, "trusted": not options.revoke})
    elif service is None:
        _output.line("nothing to trust: the settings of this store reach nothing outside it")
    elif options.revoke:
        _output.line(f"{service}: no longer allowed for {root}")
    else:
        _output.line(f"the texts of {root} may be sent to {service}")
    return 0
