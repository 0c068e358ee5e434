"""Wrong usages of the command line, and whether what is printed leads on: a row each.

    python tests/bench/usages.py [--only TEXT]

Each is typed beside a folder of documents that is indexed (`notes`), a chunk store (`kb`) and a
folder without a store (`else`). A message leads on in one step where the command behind its `try:`
ends well as it is printed, or prints help of the command that was typed wrongly; where there is no
`try:`, where the message names what may be meant, in quotes or by the words below.
"""

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

_LINES: Final = """
notes: serach boiler
notes: find boiler
notes: list
notes: grep boiler
notes: index
notes: delete heating.md
notes: remove heating.md
notes: query boiler
notes: ask what is the pressure
notes: stat
notes: show
notes: show heating
notes: show heating.txt
notes: show Heating
notes: show heating.md:9999
notes: show heating.md:x
notes: show heating.md#Nowhere
notes: search
notes: search --
notes: search --mod keyword boiler
notes: search boiler --mode words
notes: search boiler -k many
notes: search boiler -k 0
notes: search boiler --limit
notes: search boiler --since yesterday
notes: search boiler --since 2026-13-01
notes: search boiler --sort size
notes: search boiler --format '{nothing}'
notes: search boiler --where kind
notes: search boiler --in nowhere
notes: search boiler --colour never
notes: search boiler --json=hits.file
notes: similar nothing.md
notes: links nothing.md
notes: about nothing
notes: ls nothing
notes: open nothing.md
notes: mv heating.md
notes: mv nothing.md other.md
notes: mv heating.md bins.md
notes: rm heating.md
notes: add heating.md
notes: update nothing
notes: undo 999999
notes: undo latest
notes: redo now
notes: repair --ours heating.md
notes: repair --only nothing
notes: repair --mine heating.md
notes: verify --level deepest
notes: sync --fast
notes: embedder set nothing
notes: embedder sett minilm
notes: embedder use
notes: backend set nothing
notes: trust nothing
notes: token revoke phone
notes: token add
notes: mcp --install emacs
notes: serve --port many
notes: export nothing out
notes: import nothing.jsonl
notes: log --path heating.md
notes: help nothing
kb: show chunk99.md
kb: rm nothing
else: --store nowhere status
else: search boiler
"""
WRONG: Final = _LINES.split("\n")[1:-1]
"""Where, and the words behind `filestore`."""
_NAMES: Final = re.compile(r"'[^']+'|one of|choose from|known here|did you mean|such as", re.ASCII)


class Finished(NamedTuple):
    """A command that ran."""

    code: int
    said: str


def filestore(folder: Path, *words: str) -> Finished:
    """Run one, with its own settings beside the folders."""
    done = subprocess.run(
        [sys.executable, "-m", "filestore", *words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder.parent), "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return Finished(done.returncode, done.stderr or done.stdout)


def main() -> None:
    """Type them all and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="those that have this in them")
    only = parser.parse_args().only
    chosen = [line for line in WRONG if only in line]
    with tempfile.TemporaryDirectory(prefix="filestore-usages-") as name:
        root = Path(name)
        for folder in ("notes", "else"):
            (root / folder).mkdir()
            for title in ("Heating", "Bins"):
                path = root / folder / f"{title.lower()}.md"
                path.write_text(f"# {title}\n\nThe boiler wants 1.5 bar.\n")
        filestore(root, "init", "--in-place", "notes", "--embedder", "builtin")
        filestore(root, "init", "kb", "--chunks", "--embedder", "builtin")
        filestore(root / "kb", "add", str(root / "else"))
        tried = led = 0
        print("| Where | Typed | Exit | Message | try: | Leads on |\n|---|---|--:|---|---|---|")
        for line in chosen:
            where, _, typed = line.partition(": ")
            words = shlex.split(typed)
            done = filestore(root / where, *words)
            lines = done.said.strip().splitlines() or [""]
            command = next((one.partition("try: ")[2] for one in lines if "try: " in one), "")
            leads = bool(_NAMES.search(done.said))
            if command:
                tried += 1
                parts = shlex.split(command.partition(" && ")[0])
                after = filestore(root / where, *parts[1:]) if parts[0] == "filestore" else done
                is_help = "--help" in parts and (words[0] not in parts and len(parts) < 3)
                leads = after.code in (0, 1) and not is_help
            led += leads
            cells = (where, typed, str(done.code), lines[0], command, "yes" if leads else "no")
            row = " | ".join(one.replace("|", "\\|") for one in cells)
            print(f"| {row} |")
    print(f"\n{len(chosen)} wrong usages: {tried} with a command to try, {led} lead on in one step")


if __name__ == "__main__":
    main()
