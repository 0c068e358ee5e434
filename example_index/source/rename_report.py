"""Tell what became of the files between two listings: kept, changed, renamed, gone, new.

A listing is what ``sha256sum`` prints: a digest, two spaces, a path. Renames are found by content,
so a file that moved and kept its bytes is not reported as lost.

    python rename_report.py before.txt after.txt
"""

import sys
from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Report:
    """Paths by what happened to them."""

    kept: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    def lines(self):
        """The report as a person reads it, the alarming part first."""
        for path in self.gone:
            yield f"gone     {path}"
        for path in self.changed:
            yield f"changed  {path}"
        for old, new in self.renamed:
            yield f"renamed  {old} -> {new}"
        for path in self.new:
            yield f"new      {path}"
        yield f"{len(self.kept)} files are as they were"


def read_listing(path):
    """A listing as a mapping from path to digest; lines that are no entries are passed over."""
    found = {}
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            digest, separator, name = line.rstrip("\n").partition("  ")
            if separator and len(digest) == 64:
                found[name] = digest
    return found


def compare(before, after):
    """What happened between two listings.

    Two files with the same content that both moved cannot be told apart; they are paired in the
    order of their names, which at least is the same on every run.
    """
    report = Report()
    arrived = defaultdict(list)
    for path in sorted(after.keys() - before.keys()):
        arrived[after[path]].append(path)
    for path, digest in sorted(before.items()):
        if path in after:
            (report.kept if after[path] == digest else report.changed).append(path)
        elif arrived[digest]:
            report.renamed.append((path, arrived[digest].pop(0)))
        else:
            report.gone.append(path)
    report.new = sorted(path for paths in arrived.values() for path in paths)
    return report


def main():
    """Print the report; the exit code says whether anything is gone."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    report = compare(read_listing(sys.argv[1]), read_listing(sys.argv[2]))
    print("\n".join(report.lines()))
    return 1 if report.gone else 0


if __name__ == "__main__":
    sys.exit(main())
