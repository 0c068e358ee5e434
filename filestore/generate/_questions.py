"""Questions that a text answers, from its headings, its definitions, its dates and its phrases.

A question is made only where a pattern fits the sentence: rather fewer than wrong ones. What fits
no pattern is asked about by its key phrases, in quotation marks, so that no grammar is guessed.
Pure: the same text gives the same questions on every machine.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from filestore.generate._keyphrases import Phrase, folded_words, key_phrases
from filestore.generate._languages import language_of
from filestore.generate._plain import Prose, one_line
from filestore.generate._sentences import LONGEST as MOST_CHARACTERS
from filestore.generate._sentences import is_prose, is_whole, sentences_of
from filestore.generate._templates import (
    ABOUT,
    AND,
    DOCUMENT,
    GENERIC,
    HOW_TO,
    NEUTRAL,
    PATTERNS,
    WITHIN,
)

LONGEST: Final = 200
"""Characters."""
_LONGEST_HEADING: Final = 90
_SUBJECTS: Final = 8
"""Of a whole, in one question."""
_TOGETHER: Final = 3
_ROUNDS: Final = 2
"""Questions about phrases: those behind the first six say little of a text."""
_MOST_SENTENCES: Final = 60
_QUESTION_END: Final = re.compile(r"[?？؟]\s*$")
_NUMBERING: Final = re.compile(
    r"^(?:(?:chapter|section|kapitel|abschnitt|appendix)\s+)?(?:\d+(?:\.\d+)*\.?|[IVXLC]+\.|[a-z]\))\s+",
    re.IGNORECASE,
)
_QUOTES: Final = str.maketrans("", "", "“”„«»「」")


def questions_of(
    prose: Prose, *, headings: Sequence[str] = (), title: str = "", count: int
) -> tuple[str, ...]:
    """At most `count` questions that a text answers, those that tell most about it first."""
    if count < 1:
        return ()
    sentences = [one for paragraph in prose.paragraphs for one in sentences_of(paragraph)]
    sentences = list(filter(is_prose, sentences[:_MOST_SENTENCES]))
    own = [clean_heading(one) for one in (*headings[-1:], *prose.headings)]
    language = language_of(" ".join(sentences)) or language_of(" ".join((title, *headings)))
    phrases: list[Phrase] = []
    if any(map(is_whole, sentences)):
        phrases = key_phrases(sentences, language, headings=(*headings, *prose.headings))
    candidates = [
        *_from_headings(own, language),
        *_from_sentences(sentences, language),
        *_from_phrases(phrases, own, clean_heading(title), language),
    ]
    return distinct(candidates, count)


def question_of_all(subjects: Sequence[str], language: str) -> str:
    """What finds a whole by its subjects, as many as fit a line; "" where it has none.

    Of all that a summary holds this helps most to find a document by what it is about.
    """
    form, most = DOCUMENT.get(language, NEUTRAL), _SUBJECTS
    while most and subjects:
        question = form.format(_joined(subjects[:most], language))
        if len(question) <= LONGEST:
            return question
        most -= 1
    return ""


def distinct(lines: Iterable[str], count: int) -> tuple[str, ...]:
    """The first lines that say something the earlier ones do not, each fit to be kept."""
    kept: list[str] = []
    asked: list[set[str]] = []
    for line in lines:
        words = set(folded_words(line))
        if len(line) > LONGEST or not words or any(words <= other for other in asked):
            continue
        kept.append(line)
        asked.append(words)
        if len(kept) == count:
            break
    return tuple(kept)


def clean_heading(heading: str) -> str:
    """A heading on one line without its number and marks."""
    bare = _NUMBERING.sub("", one_line(heading)).strip(" #*_:：.。–—-")
    return bare.replace("`", "")


def says_little(heading: str) -> bool:
    """Whether a heading names a part of any document."""
    words = re.findall(r"\w+", heading.lower())
    return not words or all(word in GENERIC or word.isdigit() for word in words)


def _from_headings(headings: Iterable[str], language: str) -> Iterator[str]:
    """What a heading asks by itself."""
    for heading in headings:
        if len(heading) > _LONGEST_HEADING:
            continue
        if _QUESTION_END.search(heading):
            yield heading
            continue
        pattern, form = HOW_TO.get(language, (None, ""))
        if pattern and (found := pattern.fullmatch(heading)):
            yield form.format(found["x"])


def _from_sentences(sentences: Sequence[str], language: str) -> Iterator[str]:
    """What sentences answer, by the patterns of the language."""
    for pattern in PATTERNS.get(language, ()):
        for sentence in sentences:
            # A longer one is a list, or no prose.
            found = pattern.sentence.match(sentence) if len(sentence) <= MOST_CHARACTERS else None
            question = pattern.question(found) if found else ""
            if question:
                yield question


def _from_phrases(
    phrases: Sequence[Phrase], headings: Sequence[str], title: str, language: str
) -> Iterator[str]:
    """Questions about headings and key phrases, which need no pattern."""
    telling = [one for one in headings if not says_little(one) and len(one) <= _LONGEST_HEADING]
    within = title if title and not says_little(title) and len(title) <= _LONGEST_HEADING else ""
    for heading in telling:
        if not _QUESTION_END.search(heading):
            yield _about(heading, within, language)
    # Several in one question: a short one is near to whatever else is short, and leads astray.
    for start in range(0, min(len(phrases), _TOGETHER * _ROUNDS), _TOGETHER):
        some = phrases[start : start + _TOGETHER]
        if len(some) > 1 or some[0].is_name:
            yield _about_all([one.text for one in some], language)


def _about(text: str, within: str, language: str) -> str:
    text, within = text.translate(_QUOTES), within.translate(_QUOTES)
    if language in WITHIN and within and within.lower() != text.lower():
        return WITHIN[language].format(text, within)
    return ABOUT.get(language, NEUTRAL).format(text)


def _about_all(phrases: Sequence[str], language: str) -> str:
    return ABOUT.get(language, NEUTRAL).format(_joined(phrases, language))


def _joined(phrases: Sequence[str], language: str) -> str:
    """Phrases one after the other; the quotation marks around all of them are the form's."""
    comma, last = AND.get(language, (", ", ", "))
    bare = [one.translate(_QUOTES) for one in phrases]
    return last.join([comma.join(bare[:-1]), bare[-1]]) if len(bare) > 1 else bare[0]
