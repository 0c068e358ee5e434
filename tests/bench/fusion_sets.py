"""Question sets for the fusion benchmark, from what a machine has: offline, the same each time.

Each set has documents, questions and the documents that answer them. The questions come with their
source (XQuAD, docstrings, synopses, headings that ask) or are made from it by rule; nothing here
looks at a ranking. A set whose source is absent is left out.
"""

import ast
import json
import random
import re
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from filestore.chunking.blocks import split
from filestore.extract import for_name

MOST_DOCUMENTS: Final = 1200
MOST_QUESTIONS: Final = 500
MIN_PAIRS: Final = 50
"""A smaller set says nothing."""
BUDGET: Final = 254
"""Tokens of a chunk of a long document."""
_SEED: Final = 20090719
_LIBRARY: Final = Path("/usr/share/doc/python3.11/html/library")
_FAQ: Final = Path("/usr/share/doc/python3.11/html/faq")
_GIT: Final = Path("/usr/share/doc/git-doc")
_PACKAGES: Final = Path("/var/lib/dpkg/status")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*(\[])")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """Documents, and questions whose answers are known."""

    name: str
    documents: tuple[str, ...]
    questions: tuple[str, ...]
    relevant: tuple[frozenset[int], ...]
    """For each question the groups that answer it."""
    groups: tuple[int, ...] = ()
    """The group of each document, found where its first document is; empty: each its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Squad:
    """A file in SQuAD format."""

    paragraphs: tuple[str, ...]
    articles: tuple[int, ...]
    """The article of each paragraph."""
    questions: tuple[str, ...]
    answers: tuple[int, ...]
    """The paragraph of each question."""
    answer_starts: tuple[int, ...]
    """Where in the paragraph the answer stands."""
    answer_texts: tuple[str, ...]


def build(folder: Path) -> Iterator[QuestionSet]:
    """Every set whose source is there.

    Args:
        folder: Where ``xquad.<language>.json`` lie.
    """
    squads = {language: _squad(folder, language) for language in ("en", "de", "zh")}
    english, german = squads["en"], squads["de"]
    for language, squad in squads.items():
        if squad is not None:
            yield _plain(f"XQuAD {language}", squad, squad.questions)
    if english is not None:
        yield from _long(english)
        yield from _variants(english)
    if english is not None and german is not None:
        yield _plain("de asks en", english, german.questions)
        yield _plain("en asks de", german, english.questions)
    for name, source in _SOURCES.items():
        pairs = source()
        if len(pairs) >= MIN_PAIRS:
            yield _paired(name, pairs)


def _squad(folder: Path, language: str) -> _Squad | None:
    path = folder / f"xquad.{language}.json"
    if not path.is_file():
        return None
    paragraphs: list[str] = []
    articles: list[int] = []
    asked: list[tuple[str, int, int, str]] = []
    for number, article in enumerate(json.loads(path.read_text("utf-8"))["data"]):
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                answer = entry["answers"][0]
                start, text = answer["answer_start"], answer["text"]
                asked.append((entry["question"], len(paragraphs), start, text))
            paragraphs.append(paragraph["context"])
            articles.append(number)
    questions, answers, starts, texts = zip(*asked, strict=True)
    return _Squad(
        paragraphs=tuple(paragraphs),
        articles=tuple(articles),
        questions=questions,
        answers=answers,
        answer_starts=starts,
        answer_texts=texts,
    )


def _plain(name: str, squad: _Squad, questions: Sequence[str]) -> QuestionSet:
    """Paragraphs as documents; the questions stand in the order of the squad's own."""
    return QuestionSet(
        name=name,
        documents=squad.paragraphs,
        questions=tuple(questions),
        relevant=tuple(frozenset({answer}) for answer in squad.answers),
    )


def _long(squad: _Squad) -> Iterator[QuestionSet]:
    """Whole articles, cut by the chunker: find the chunk of the answer, or the article."""
    documents: list[str] = []
    groups: list[int] = []
    chunk_at: dict[tuple[int, int], list[int]] = {}
    for article in sorted(set(squad.articles)):
        places = [place for place, owner in enumerate(squad.articles) if owner == article]
        text = "\n\n".join(squad.paragraphs[place] for place in places)
        starts = {place: text.index(squad.paragraphs[place]) for place in places}
        for piece in split(text, syntax="text", budget=BUDGET):
            for question, place in enumerate(squad.answers):
                found = starts.get(place, -1) + squad.answer_starts[question]
                if place in starts and piece.start <= found < piece.end:
                    chunk_at.setdefault((article, question), []).append(len(documents))
            documents.append(text[piece.start : piece.end])
            groups.append(article)
    owners = [squad.articles[place] for place in squad.answers]
    chunks = tuple(frozenset(chunk_at[owner, n]) for n, owner in enumerate(owners))
    yield QuestionSet(
        name="long: chunk",
        documents=tuple(documents),
        questions=squad.questions,
        relevant=chunks,
    )
    yield QuestionSet(
        name="long: document",
        documents=tuple(documents),
        questions=squad.questions,
        relevant=tuple(frozenset({owner}) for owner in owners),
        groups=tuple(groups),
    )


def _variants(squad: _Squad) -> Iterator[QuestionSet]:
    """The paragraphs of XQuAD, asked in other ways."""
    yield _multi_hop(squad)
    yield _plain("typos", squad, [_misspelt(question) for question in squad.questions])
    yield _plain("vague", squad, [_vague(question) for question in squad.questions])
    yield _plain("two rare words", squad, _rare_words(squad))
    named = [n for n, text in enumerate(squad.answer_texts) if 3 < len(text) < 40]
    yield QuestionSet(
        name="the answer's words",
        documents=squad.paragraphs,
        questions=tuple(squad.answer_texts[n] for n in named),
        relevant=tuple(_holding(squad, squad.answer_texts[n]) for n in named),
    )


def _multi_hop(squad: _Squad) -> QuestionSet:
    chosen = random.Random(_SEED)
    questions: list[str] = []
    relevant: list[frozenset[int]] = []
    while len(questions) < MOST_QUESTIONS:
        one, other = chosen.sample(range(len(squad.questions)), 2)
        if squad.answers[one] != squad.answers[other]:
            second = squad.questions[other]
            questions.append(f"{squad.questions[one].rstrip('? ')} and {second}")
            relevant.append(frozenset({squad.answers[one], squad.answers[other]}))
    return QuestionSet(
        name="multi-hop",
        documents=squad.paragraphs,
        questions=tuple(questions),
        relevant=tuple(relevant),
    )


def _misspelt(question: str) -> str:
    """Two neighbouring letters of every second long word change places."""
    chosen = random.Random(f"{_SEED} {question}")
    words = question.split(" ")
    long = [place for place, word in enumerate(words) if len(word) > 4]
    for place in long[chosen.randrange(2) :: 2]:
        word, at = words[place], chosen.randrange(1, len(words[place]) - 2)
        words[place] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return " ".join(words)


def _vague(question: str) -> str:
    """Without names and numbers, which give a paragraph away."""
    words = question.split(" ")
    kept = [word for word in words[1:] if word.islower()]
    return " ".join([words[0], *kept]).rstrip("?") + "?"


def _rare_words(squad: _Squad) -> list[str]:
    """Of each question the two words that fewest paragraphs have, as people type them."""
    words_of = [set(re.findall(r"\w+", text.lower())) for text in squad.paragraphs]
    counts: dict[str, int] = {}
    for words in words_of:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    asked = [re.findall(r"\w+", question)[1:] for question in squad.questions]
    return [
        " ".join(sorted(dict.fromkeys(words), key=lambda w: counts.get(w.lower(), 99))[:2])
        for words in asked
    ]


def _holding(squad: _Squad, text: str) -> frozenset[int]:
    return frozenset(place for place, body in enumerate(squad.paragraphs) if text in body)


def _paired(name: str, pairs: Sequence[tuple[str, str]]) -> QuestionSet:
    """Questions with the one text that answers each; both are taken evenly from all."""
    unique = list({text: question for question, text in pairs}.items())
    kept = _evenly(unique, MOST_DOCUMENTS)
    asked = _evenly(range(len(kept)), MOST_QUESTIONS)
    return QuestionSet(
        name=name,
        documents=tuple(text for text, _ in kept),
        questions=tuple(kept[place][1] for place in asked),
        relevant=tuple(frozenset({place}) for place in asked),
    )


def _evenly(items: Sequence[T], most: int) -> list[T]:
    if len(items) <= most:
        return list(items)
    return [items[place * len(items) // most] for place in range(most)]


def _functions() -> Iterator[tuple[str, str, str]]:
    """Name, first sentence of the docstring and source without it, of the standard library."""
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        source = path.read_text("utf-8", "replace")
        lines = source.splitlines(keepends=True)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and len(node.body) > 2:
                described = (ast.get_docstring(node) or "").partition("\n\n")[0]
                sentence = " ".join(_SENTENCE.split(described)[0].split())
                if 20 < len(sentence) < 200 and node.end_lineno is not None:
                    described_until = node.body[0].end_lineno or node.lineno
                    head = lines[node.lineno - 1 : node.body[0].lineno - 1]
                    rest = lines[described_until : node.end_lineno]
                    yield node.name, sentence, "".join([*head, *rest])


def _code() -> list[tuple[str, str]]:
    return [(sentence, text) for _, sentence, text in _functions()]


def _identifiers() -> list[tuple[str, str]]:
    """The name of a function, where it is the only one of that name, and its source."""
    found: dict[str, list[str]] = {}
    for name, _, text in _functions():
        found.setdefault(name, []).append(text)
    return [(name, one[0]) for name, one in found.items() if len(one) == 1 and len(name) > 5]


def _sections(folder: Path) -> Iterator[tuple[str, str]]:
    """Heading and text of every section of the pages in a folder."""
    for path in sorted(folder.glob("*.html")):
        extractor = for_name(path.name)
        if extractor is None:
            continue
        text = extractor.extract(path.read_bytes(), name=path.name).text
        parts = re.split(r"^#+ +(.+)$", text, flags=re.MULTILINE)
        for title, body in zip(parts[1::2], parts[2::2], strict=True):
            yield re.sub(r"\[?¶\]?(\(.*?\))?|[`*\\]", "", title).strip(), body.strip()


def _documentation() -> list[tuple[str, str]]:
    """A section's first sentence, every third word dropped, asks for the rest of it."""
    pairs = []
    for _, body in _sections(_LIBRARY):
        first, *rest = _SENTENCE.split(body, maxsplit=1)
        words = [word for place, word in enumerate(first.split()) if place % 3 != 1]
        if rest and 5 <= len(words) < 40 and len(rest[0]) > 200:
            pairs.append((re.sub(r"\[(.*?)\]\(.*?\)|[`*\\]", r"\1", " ".join(words)), rest[0]))
    return pairs


def _asked() -> list[tuple[str, str]]:
    return [(title, body) for title, body in _sections(_FAQ) if title.endswith("?")]


def _commands() -> list[tuple[str, str]]:
    """What a git command does in a line asks for the description in its manual."""
    pairs = []
    for path in sorted(_GIT.glob("git*.txt")):
        text = path.read_text("utf-8", "replace")
        named = re.search(r"^NAME\n-+\n\S+ - (.+)$", text, re.MULTILINE)
        described = re.search(r"^DESCRIPTION\n-+\n(.+?)(?=^[A-Z ]+\n-{3,}$)", text, re.M | re.S)
        if named and described:
            pairs.append((named.group(1), described.group(1).strip()[:4000]))
    return pairs


def _packages() -> list[tuple[str, str]]:
    """The synopsis of an installed package asks for its description."""
    if not _PACKAGES.is_file():
        return []
    found = re.findall(
        r"^Description: (.+)\n((?: .*\n)+)", _PACKAGES.read_text("utf-8", "replace"), re.MULTILINE
    )
    described = [(synopsis, re.sub(r"^ \.?", "", text, flags=re.M)) for synopsis, text in found]
    synopses = [synopsis for synopsis, _ in described]
    return [
        (synopsis, text.strip())
        for synopsis, text in described
        if synopses.count(synopsis) == 1 and len(text) > 100
    ]


_SOURCES: Final[dict[str, Callable[[], list[tuple[str, str]]]]] = {
    "code": _code,
    "identifiers": _identifiers,
    "documentation": _documentation,
    "asked": _asked,
    "git commands": _commands,
    "packages": _packages,
}
