"""How long it takes to join overlapping chunks: ``python tests/bench/reconstruct.py``.

The chunks lie in memory and overlap by a fifth. The yardstick compares every length, from the
longest on, as the definition says; it is quadratic, so it is only given what is small. A text that
repeats itself is what a search stumbles over: one letter, with another in the middle of each chunk.
"""

import argparse
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

from measure import Row, table

from filestore.exchange.joining import Strategy, calibrate, join, longest_overlap

MEGABYTE = 1_000_000
GOAL_S = 10.0


def main() -> int:
    """Measure and print the table."""
    given = _options()
    rows = [
        *(
            _linear(name, make, given.megabytes, searched=searched)
            for searched in (False, True)
            for name, make in TEXTS.items()
        ),
        *(_against_naive(name, make, given.naive) for name, make in TEXTS.items()),
    ]
    print(table("Texts from overlapping chunks", rows))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=float, default=100.0, help="of chunks (default: 100)")
    parser.add_argument(
        "--naive",
        type=int,
        nargs="+",
        default=[1_000, 4_000, 16_000],
        help="characters of a chunk that the yardstick is given, too",
    )
    return parser.parse_args()


def prose(size: int, seed: int) -> str:
    """Words that follow each other by chance."""
    chance = random.Random(seed)
    letters = "eeeettaaooiinnsshhrrdlu"
    words = ["".join(chance.choices(letters, k=chance.randrange(2, 9))) for _ in range(4_000)]
    text = " ".join(chance.choices(words, k=size // 4 + 1))
    return text[:size]


def _of_prose(total: int, size: int) -> list[str]:
    text = prose(min(total, 8 * MEGABYTE), 1)
    step = size - size // 5
    chunks = [text[start : start + size] for start in range(0, len(text) - size // 5, step)]
    return (chunks * (total // len(text) + 1))[: total // size]


def _of_letters(total: int, size: int) -> list[str]:
    half = "a" * (size // 2)
    return [f"{half}{'bc'[number % 2]}{half}" for number in range(max(2, total // size))]


def _of_words(total: int, size: int) -> list[str]:
    del size
    words = re.findall(r"\S+\s*", prose(min(total, 8 * MEGABYTE), 2))
    chunks = ["".join(words[start : start + 100]) for start in range(0, len(words) - 20, 80)]
    return (chunks * (total // sum(map(len, chunks)) + 1))[: total // len(chunks[0])]


TEXTS: dict[str, Callable[[int, int], list[str]]] = {
    "prose, 3,200 characters a chunk": _of_prose,
    "prose, 100 words a chunk": _of_words,
    "one letter, another in the middle": _of_letters,
}


def _linear(
    name: str, make: Callable[[int, int], list[str]], megabytes: float, *, searched: bool
) -> Row:
    """Chunks of one kind.

    Args:
        name: What they are.
        make: Makes them.
        megabytes: How many.
        searched: Whether nothing is calibrated, so that each pair is searched.
    """
    chunks = make(int(megabytes * MEGABYTE), 3_200)
    size = sum(map(len, chunks))
    half = chunks[: len(chunks) // 2]
    whole_s, half_s = (
        _seconds(lambda some=some: join(some, Strategy() if searched else calibrate(some)))
        for some in (chunks, half)
    )
    is_whole = size >= 90 * MEGABYTE
    return Row(
        figure=f"join {size / MEGABYTE:,.1f} MB{', each searched' * searched}: {name}",
        ours=f"{whole_s:.2f} s",
        yardstick=f"{half_s:.2f} s for half",
        compared=f"{whole_s / half_s:.1f} ×",
        goal=f"{GOAL_S:.0f} s" if is_whole else "–",
        met=whole_s <= GOAL_S if is_whole else None,
    )


def _against_naive(name: str, make: Callable[[int, int], list[str]], sizes: Sequence[int]) -> Row:
    ours, naives = [], []
    for size in sizes:
        pairs = list(pairwise(make(max(4 * size, 16_000), size)))[:4]
        ours.append(_seconds(lambda pairs=pairs: [longest_overlap(*pair) for pair in pairs]))
        naives.append(_seconds(lambda pairs=pairs: [naive(*pair) for pair in pairs]))
    return Row(
        figure=f"the longest overlap: {name}, {sizes[0]:,} to {sizes[-1]:,} characters",
        ours=" / ".join(f"{one * 1e3:.2f}" for one in ours) + " ms",
        yardstick=" / ".join(f"{one * 1e3:.2f}" for one in naives) + " ms",
        compared=" / ".join(f"{other / one:.0f}" for one, other in zip(ours, naives, strict=True))
        + " ×",
    )


def naive(first: str, second: str) -> int:
    """The definition, length after length."""
    for length in range(min(len(first), len(second)), 0, -1):
        if first[len(first) - length :] == second[:length]:
            return length
    return 0


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
