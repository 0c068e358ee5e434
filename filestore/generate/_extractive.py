"""The generator that runs here: lead sentences, headings and rare terms of texts, nothing made up.

A summary is how its texts begin. Keys take the place of questions: the heading path of a text,
and the terms that are rare outside it. A new query is the one that was asked with a rare term of
the texts near it. Pure: the same task gives the same everywhere, and no language is guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from filestore.embed.vocabulary import STOP_WORDS
from filestore.generate import (
    MOST_QUESTIONS,
    GenerationFailed,
    Generator,
    GeneratorChoice,
    Made,
    Result,
    Task,
    UnknownGenerator,
)
from filestore.generate._checked import well_formed

if TYPE_CHECKING:
    import threading

VERSION: Final = 2
"""Raised whenever the same task gives something else."""
WINDOW_TOKENS: Final = 16_384
"""It has no window of its own: a group stays small enough for a person to look through."""
_LOOKED_AT: Final = 20_000
"""Characters of one text; a longer one is known by its head."""
_LEADS: Final = 8
_LONGEST: Final = 300
_LONGEST_HEADING: Final = 90
_TERMS_A_KEY: Final = 6
"""A key of one term is near to whatever is short."""
_TERMS_IN_TITLE: Final = 3
_MOST_TERMS: Final = MOST_QUESTIONS * _TERMS_A_KEY
_MOST_OF_ONE: Final = 3
"""A term that one text repeats is no subject of all."""
_MARK: Final = re.compile(r"\s*(?:(?:#{1,6}|[-*+|]|\d{1,4}[.)])\s+|>\s?)*")
_FURNITURE: Final = re.compile(r"\s*(?:([`~=<>|+-])\1\1|\[[^\]]+\]:)|[\W\d_]*$")
"""Fences, rules, marks of a merge, where a link leads: no words of the text."""
_LINK: Final = re.compile(
    r"!?\[\[(?:[^\[\]|\n]*\|)?([^\[\]\n]+)\]\]|!?\[([^\[\]\n]*)\]\([^()\n]*\)"
)
_SENTENCE: Final = re.compile(
    r".{40,300}?[.!?…][\"'”’»)\]*_]*(?=\s+[^\sa-z]|\s*$)|.{8,300}?[。！？][”’」』）]*"
)
"""So long that no abbreviation ends it."""
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_RUN: Final = re.compile(rf"{_UNSPACED.pattern}|(?:(?!{_UNSPACED.pattern})[\w.+#-])+")
_WEAK: Final = frozenset().union(*STOP_WORDS.values())
_WEAK_SIGNS: Final = frozenset(
    "的了是在和与及或被把对从向于以为由而也都就又还这那其之所有个中上下不一"
)
_SHORTEST: Final = 4
"""Of a term that is not in capitals."""
_LONGEST_TERM: Final = 50


class ExtractiveGenerator(Generator):
    """Works offline; safe between threads."""

    label = fingerprint = f"extractive/{VERSION}"
    lines = "keys"
    window_tokens = WINDOW_TOKENS

    def __init__(self, choice: GeneratorChoice) -> None:
        self.name = choice.name

    def estimate(self, task: Task) -> tuple[int, int]:
        """Nothing: it is free."""
        return 0, 0

    def make(self, tasks: Sequence[Task], *, stop: threading.Event) -> Iterator[Result]:
        """Work on tasks in order."""
        for place, task in enumerate(tasks):
            if stop.is_set():
                return
            made = _made(task)
            try:
                # Texts may hold marks of a merge, or a fence.
                made = well_formed(made, task) if made.text or made.lines else made
            except GenerationFailed as error:
                remedy = "take such lines out of the texts"
                yield Result(place=place, problem=GenerationFailed(error.message, remedy=remedy))
            else:
                yield Result(place=place, made=made)


def _made(task: Task) -> Made:
    if task.kind == "rewrite":
        query, *near = (" ".join(text.split()) for text in task.texts or ("",))
        terms = _terms(near, query)[: task.count]
        query = query[: _LONGEST - _LONGEST_TERM]
        return Made(lines=tuple(f"{query} {term}" for term in terms))
    # The title is that of a resource, which may be a folder; a text has its own headings.
    is_own = task.kind == "questions" and task.headings
    names = task.headings if is_own else (task.title, *task.headings)
    path = " > ".join(dict.fromkeys(filter(None, names)))
    terms = _terms(task.texts, path)
    starts = range(0, len(terms), _TERMS_A_KEY)
    keys = [", ".join(terms[start : start + _TERMS_A_KEY]) for start in starts]
    if task.kind == "questions":
        return Made(lines=tuple(filter(None, (path[:_LONGEST], *keys)))[: task.count])
    step = max(1, -(-len(task.texts) // _LEADS))
    leads: list[str] = []
    for text in task.texts[::step]:
        if (lead := _lead(text, seen := f"{path}: {' '.join(leads)}")) not in seen:
            leads.append(lead)
    text = " ".join(leads)
    if not text:
        # How texts without words begin, as Markdown reads it: no heading, rule or frontmatter.
        begun = (" ".join(one[:_LONGEST].split()) for one in task.texts)
        text = next(filter(None, begun), "")
        text = f"\\{text}" if text.startswith(tuple("#>|=~`<-+*_")) else text
    about = terms[:_TERMS_IN_TITLE]
    title = ": ".join(filter(None, (path.rpartition(" > ")[2], ", ".join(about))))
    return Made(title=title, text=text, lines=tuple(keys[: task.count]))


def _lead(text: str, seen: str) -> str:
    """The first sentence, behind the heading above it where that is new.

    Of a text without a sentence its first lines, of one without words nothing.
    """
    first = heading = ""
    for block in re.split(r"\n\s*\n", _without_links(text)):
        lines = [line for line in block.splitlines() if not _FURNITURE.match(line)]
        prose = " ".join(" ".join(_MARK.sub("", line, count=1) for line in lines).split())
        if found := _SENTENCE.match(prose):
            return f"{heading}: {found[0]}" if heading and f"{heading}: " not in seen else found[0]
        first = first or prose[:_LONGEST].strip(" |")
        if len(lines) == 1 and len(prose) <= _LONGEST_HEADING:
            heading = prose.rpartition(" > ")[2]
    return first


def _without_links(text: str) -> str:
    """The head of a text with the words of its links: where one leads is in its own file."""
    return _LINK.sub(r"\1\2", _LINK.sub(r"\1\2", text[:_LOOKED_AT]))


def _terms(texts: Sequence[str], known: str) -> list[str]:
    """The words of texts that say most of what they are about, but for the ones that are known.

    What recurs comes first, then what is earlier; of words that begin alike one stays.
    """
    counts: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for text in texts:
        words: list[str] = []
        for run in _RUN.findall(_without_links(text)):
            # Of a run of a script without spaces the pairs of its signs.
            pairs = [run[at : at + 2] for at in range(len(run) - 1)]
            words += pairs if _UNSPACED.match(run) else [run.strip("._-")]
        spelled = {word.casefold(): word for word in reversed(words)} | spelled
        own = Counter(map(str.casefold, words))
        counts.update({key: min(own[key], _MOST_OF_ONE) for key in own})
    known = known.casefold()
    kept: list[str] = []
    for key, count in counts.most_common():
        if key in known or any(key.startswith(one) or one.startswith(key) for one in kept):
            continue
        if _tells(spelled[key], count):
            kept.append(key)
            if len(kept) == _MOST_TERMS:
                break
    return [spelled[key] for key in kept]


def _tells(word: str, count: int) -> bool:
    if _UNSPACED.match(word):
        # A pair that occurs once may be cut out of two words.
        return count > 1 and not _WEAK_SIGNS.intersection(word)
    if word.casefold() in _WEAK or not any(map(str.isalpha, word)):
        return False
    return _SHORTEST <= len(word) <= _LONGEST_TERM or (1 < len(word) < _SHORTEST and word.isupper())


def open_choice(choice: GeneratorChoice) -> Generator:
    """Open it.

    Raises:
        UnknownGenerator: A model is named: it has none.
    """
    if choice.model:
        raise UnknownGenerator(choice.name, ("extractive",))
    return ExtractiveGenerator(choice)
