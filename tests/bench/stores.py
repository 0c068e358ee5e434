"""Made-up stores of a given size for the benchmarks: the same bytes for the same numbers."""

import bisect
import itertools
import os
import random
import subprocess
import sys

from filestore.chunks import chunk_file
from filestore.config.settings import Settings
from filestore.config.written import serialize

FREQUENT = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from or"
    " had an they which one you were all her she there would their we him been has when who will"
    " more no if out so said what up its about into than them can only other new some could time"
    " these two may then do first any my now such like our over man me even most made after also"
)
"""Real words in front, so that the texts are English to whoever looks for stop words."""
SYLLABLES = "ka lo mi ten ra su ver in ost pel gra du no fi shem bar qui tor el wa zin pro"
VOCABULARY = 30_000
WORDS = 120


def vocabulary(count: int = VOCABULARY) -> list[str]:
    """Distinct made-up words, the short ones first as in real language."""
    words = [
        "".join(parts)
        for length in (1, 2, 3, 4)
        for parts in itertools.islice(itertools.product(SYLLABLES.split(), repeat=length), count)
    ]
    return words[:count]


class TextMaker:
    """Texts whose word frequencies follow Zipf's law."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        made_up = vocabulary()
        self._random.shuffle(made_up)
        self._words = [*FREQUENT.split(), *made_up]
        weights = itertools.accumulate(1 / (rank + 2) for rank in range(len(self._words)))
        self._cumulative = list(weights)

    def word(self) -> str:
        """One word."""
        at = self._random.random() * self._cumulative[-1]
        return self._words[bisect.bisect(self._cumulative, at)]

    def text(self, words: int = WORDS) -> str:
        """Some lines of words, about six characters each."""
        lines = [
            " ".join(self.word() for _ in range(min(14, words - start)))
            for start in range(0, words, 14)
        ]
        return "\n".join(lines) + "\n"


def make_tree(root: str, files: int, folders: int, seed: int = 1) -> None:
    """A store root with settings and chunk files, not indexed."""
    maker = TextMaker(seed)
    os.makedirs(os.path.join(root, "chunked"), exist_ok=True)
    with open(os.path.join(root, "filestore.toml"), "wb") as file:
        file.write(serialize(Settings()))
    with open(os.path.join(root, ".gitignore"), "w") as file:
        file.write(".sidecar/\n.undo/\n")
    for folder in range(folders):
        path = os.path.join(root, "chunked", f"resource-{folder:04d}")
        os.makedirs(path, exist_ok=True)
        for number in range(1, files // folders + 1):
            body = f"## {maker.word()} {maker.word()}\n\n{maker.text()}"
            data = chunk_file.generate(body=body, headings=(maker.word(), maker.word()))
            with open(os.path.join(path, chunk_file.chunk_name(number)), "wb") as file:
                file.write(data)


def commit_tree(root: str) -> None:
    """Put a store root under git, everything committed and packed."""
    for words in (
        ["init", "-q", "."],
        ["add", "-A"],
        ["config", "gc.auto", "0"],
        ["-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "all"],
        ["gc", "-q"],
        ["status"],
    ):
        subprocess.run(["git", "-C", root, *words], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Make a tree: ``python stores.py ROOT FILES FOLDERS``."""
    root, files, folders = sys.argv[1:]
    make_tree(root, int(files), int(folders))


if __name__ == "__main__":
    main()
