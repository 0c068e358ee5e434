"""How thoroughly the store is verified, in words: what each level reads, and what that costs."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelWords:
    """What is said of one level."""

    name: str
    reads: str
    costs: str


LEVELS: Final = (
    LevelWords(
        name="fast",
        reads="names, sizes and time stamps of everything",
        costs="about as quick as 'git status'; no file of a clean store is opened",
    ),
    LevelWords(
        name="full",
        reads="every byte of files, catalog, vectors and full text, held against each other",
        costs="reads the whole store once, embeds nothing",
    ),
    LevelWords(
        name="deep",
        reads="all that full reads, and what the model says of every text today",
        costs="embeds every text again: slow, and paid for where the model is a service",
    ),
)
"""Every level, the least first."""
