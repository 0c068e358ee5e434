"""What it costs a program that documents are closed to it: a warm search, with and without rules.

The store is a folder of ``--files`` notes, of which one in a hundred has a tag. Asked in turns are
a store that is open for a person, one for programs without rules, and one to which that tag is
closed. Compared are medians of processor time; ``--runs`` is the number of queries. The first
search of each has to load the index; that with rules also decides what is closed.
"""

import statistics
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import measure
from stores import TextMaker

from filestore.store import Store

CLOSED: Final = 100
"""One in so many notes."""
MOST: Final = 2.0
"""So much longer a search may take with rules."""
FREE: Final = 1.1
"""The same for programs where there are none, as the clock of a shared machine tells."""
RULES: Final = '[agents]\nclosed = ["tag:private"]\n'


def main() -> None:
    """Measure and print a table."""
    with measure.options(__doc__ or "", files=10_000, folders=1, runs=200) as options:
        words = TextMaker(options.files)
        root = Path(options.work, "notes")
        root.mkdir()
        for number in range(options.files):
            head = "---\ntags: [private]\n---\n" if number % CLOSED == 0 else ""
            (root / f"note{number}.md").write_text(f"{head}# {words.word()}\n\n{words.text(80)}\n")
        with Store.create(root, layout="in-place", embedder="builtin") as store:
            store.sync()
        settings = root / "filestore.toml"
        plain = settings.read_text()
        with ExitStack() as stack:
            person = stack.enter_context(Store(root))
            program = stack.enter_context(Store(root, for_programs=True))
            settings.write_text(plain + RULES)
            ruled = stack.enter_context(Store(root, for_programs=True))
            opened = {"a person": person, "a program": program, "a program, with rules": ruled}
            first = {name: _search_ms(one, words.word()) for name, one in opened.items()}
            took: dict[str, list[float]] = {name: [] for name in opened}
            for number in range(options.runs):
                query = f"{words.word()} {words.word()}"
                names = [*opened][:: 1 if number % 2 else -1]
                for name in names:
                    took[name].append(_search_ms(opened[name], query))
        medians = {name: statistics.median(all_ms) for name, all_ms in took.items()}
        rows = [
            measure.Row(
                figure=f"search of {name}; the first",
                ours=f"{medians[name]:.2f} ms; {first[name]:.0f} ms",
                yardstick=f"{medians['a person']:.2f} ms of a person",
                compared=f"{medians[name] / medians['a person']:.2f}",
                goal=f"≤ {most:g}",
                met=medians[name] / medians["a person"] <= most,
            )
            for name, most in (("a program", FREE), ("a program, with rules", MOST))
        ]
        print(measure.table(f"Search of {options.files:,} notes, 1 in {CLOSED} closed", rows))


def _search_ms(store: Store, query: str) -> float:
    begun = time.process_time()
    store.search(query, k=10, mode="keyword", update=False)
    return (time.process_time() - begun) * 1_000


if __name__ == "__main__":
    main()
