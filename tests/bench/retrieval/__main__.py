"""Ask every set, and write what was found: ``python -m tests.bench.retrieval --work DIR --fetch``.

Each set becomes a store in place, indexed by the command line and asked in every mode by the
public search. The means go into the ledger beside this file, each answer into the work folder;
there ``--compare`` finds the runs again. A run of some sets, or one that is a try, leaves the
ledger alone.
"""

import argparse
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.retrieval import ledger
from tests.bench.retrieval.asking import Answer, Place, ask
from tests.bench.retrieval.material import AbsentError, Material, fetch
from tests.bench.retrieval.sets import SETS, build


def main() -> int:
    """Ask, or compare two runs."""
    given = _options()
    runs = given.work / "runs"
    if given.compare:
        first, second = [*given.compare, ""][:2]
        try:
            after = ledger.kept(runs, second, given.embedder)
            before = ledger.kept(runs, first, after.embedder)
        except ledger.NoSuchRunError as error:
            print(error, file=sys.stderr)
            return 1
        print("\n".join(ledger.compared(before, after, given.most)))
        return 0
    material = Material(folder=given.material or given.work / "material", data=given.data)
    if given.fetch:
        fetch(material.folder)
    run = _asked(given, material)
    ledger.keep(run, runs)
    print("\n".join(ledger.table(ledger.row(run))))
    if not given.named and not given.sets:
        ledger.append(run)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="stores, vectors and answers")
    parser.add_argument("--material", type=Path, help="packages, unpacked (default: in --work)")
    parser.add_argument("--data", type=Path, help="folder of xquad.*.json")
    parser.add_argument("--fetch", action="store_true", help="get packages that are missing")
    parser.add_argument("--embedder", help="as init takes it (default: builtin)")
    parser.add_argument(
        "--sets", nargs="+", metavar="SET", choices=SETS, help="names as in a table"
    )
    parser.add_argument("--named", metavar="NAME", help="a try, kept under this name")
    parser.add_argument("--reuse", action="store_true", help="ask the stores of the last run again")
    parser.add_argument("--compare", nargs="+", metavar="RUN", help="a run or commit, and another")
    parser.add_argument("--most", type=int, default=30, help="changed questions to show")
    return parser.parse_args()


def _asked(given: argparse.Namespace, material: Material) -> ledger.Run:
    # Where a model lies is remembered on the user's side, which is none of a benchmark's.
    os.environ["XDG_CONFIG_HOME"] = str(given.work / "config")
    place = Place(work=given.work.absolute(), embedder=given.embedder or "builtin")
    answers: list[Answer] = []
    sets: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    fingerprint = ""
    for name in given.sets or SETS:
        started = time.monotonic()
        try:
            built = build(name, material)
        except AbsentError as error:
            skipped[name] = str(error)
            print(f"{name}: skipped: {error}", file=sys.stderr)
            continue
        found, fingerprint = ask(name, built, place, reuse=given.reuse)
        answers += found
        sets[name] = {"digest": built.digest, "documents": len(built.documents)}
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    if not answers:
        raise SystemExit("no set could be made: run with --fetch")
    now = datetime.now(UTC)
    commit, embedder = _commit(), os.path.basename(place.embedder.rstrip("/"))
    return ledger.Run(
        name=given.named or f"{now:%Y-%m-%dT%H%M}-{commit}-{embedder.replace(':', '-')}",
        date=f"{now:%Y-%m-%d %H:%M} UTC",
        commit=commit,
        embedder=embedder,
        fingerprint=fingerprint,
        sets=sets,
        skipped=skipped,
        answers=answers,
    )


def _commit() -> str:
    """The last one that changed the program, with a + where files of it differ."""
    git = ["git", "-C", str(ledger.HERE)]
    command = [*git, "log", "-1", "--format=%h", "--abbrev=9", "--", ":/filestore"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False)
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", ":/filestore"], check=False)
    return commit.stdout.strip() + ("+" if changed.returncode else "")


if __name__ == "__main__":
    sys.exit(main())
