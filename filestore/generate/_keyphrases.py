"""The phrases that a text is about, by counting: no model, the same everywhere.

Written with spaces: runs of words between stop words and marks (Rose et al. 2010, "Automatic
Keyword Extraction from Individual Documents"), kept where they are names, terms or repeated, since
a run may have a verb in it and only repetition tells. Written without: pieces that recur and are
free on both sides (accessor variety, Feng et al. 2004), and what stands in title marks. Pure.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from filestore.generate._languages import stop_words

_MOST_WORDS: Final = 4
_LONGEST: Final = 60
_LONGEST_UNSPACED: Final = 8
_SAMPLE: Final = 20_000
"""Characters; phrases of a longer text are those of its head."""

_TOKEN: Final = re.compile(r"`([^`\n]{2,60})`|([^\W_][\w.'’+#/-]*[\w+#]|[^\W_])|([^\s\w])")
_JOINING: Final = {
    "en": frozenset(("of",)),
    "de": frozenset(("von",)),
    "fr": frozenset(("de", "du", "des")),
    "es": frozenset(("de", "del")),
    "it": frozenset(("di", "del", "della")),
    "pt": frozenset(("de", "do", "da")),
    "nl": frozenset(("van",)),
}
"""Words that may stand within a name."""
_WEAK: Final = frozenset(
    [
        "first",
        "second",
        "third",
        "last",
        "next",
        "new",
        "old",
        "early",
        "late",
        "later",
        "earlier",
        "many",
        "several",
        "various",
        "different",
        "large",
        "small",
        "great",
        "good",
        "main",
        "major",
        "number",
        "numbers",
        "part",
        "parts",
        "example",
        "examples",
        "way",
        "ways",
        "time",
        "times",
        "year",
        "years",
        "century",
        "thing",
        "things",
        "case",
        "cases",
        "people",
        "result",
        "results",
        "called",
        "known",
        "given",
        "became",
        "become",
        "including",
        "included",
        "following",
        "based",
        "according",
        "able",
        "available",
        "present",
        "section",
        "chapter",
        "note",
        "notes",
        "see",
        "table",
        "figure",
        "page",
        "item",
        "items",
        "important",
        "possible",
        "common",
        "general",
        "became",
        "began",
        "said",
        "still",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "later",
        "today",
        "often",
        "neue",
        "neuen",
        "neuer",
        "erste",
        "ersten",
        "zweite",
        "viele",
        "vielen",
        "beispiel",
        "beispiele",
        "teil",
        "teile",
        "jahr",
        "jahre",
        "jahren",
        "zeit",
        "zeiten",
        "zahl",
        "anzahl",
        "menschen",
        "ergebnis",
        "ergebnisse",
        "abschnitt",
        "kapitel",
        "seite",
        "abbildung",
        "tabelle",
        "rahmen",
        "bereich",
        "jahrhundert",
        "jahrhunderts",
        "ende",
        "anfang",
        "mitte",
        "weise",
        "art",
        "form",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "januar",
        "februar",
        "märz",
        "mai",
        "juni",
        "juli",
        "oktober",
        "dezember",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ]
)
"""Words that say little of what a text is about."""
_SUFFIXES: Final = ("ly", "ing", "ed")
_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]{2,}")
_KATAKANA: Final = re.compile(r"[\u30a1-\u30fa\u30fc]{3,}")
_TITLED: Final = re.compile(r"[《「『“]([^《》「」『』“”\n]{2,24})[》」』”]")
_WEAK_SIGNS: Final = frozenset(
    "的了是在和与及或被把对从向于以为由而也都就又还等这那其之所有个中上下不一二三四五六七八九十"
    "他她它们我你您此该每各并但若如则因可能会要将已年月日时地得着过到后前里内外间些种多少很最更"
    "于吗呢吧啊让使令给用"
)
"""A piece does not begin or end with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A phrase as it stands in the text."""

    text: str
    score: float
    is_name: bool
    """A proper name, or a term that is marked as one."""


def key_phrases(
    sentences: Sequence[str], language: str, *, headings: Iterable[str] = ()
) -> list[Phrase]:
    """The phrases of a text, best first; the same order for the same sentences."""
    if language in ("zh", "ja"):
        found = _unspaced(sentences, language)
    else:
        found = _spaced(sentences, language)
    heading_words = {word for heading in headings for word in folded_words(heading)}
    scored = [
        Phrase(
            text=one.text,
            score=round(one.score * (1.5 if set(folded_words(one.text)) & heading_words else 1), 6),
            is_name=one.is_name,
        )
        for one in found
    ]
    return _distinct(sorted(scored, key=lambda one: (-one.score, one.text)))


def folded_words(text: str) -> list[str]:
    """The words of a text in lower case, with the plural of English and German cut off."""
    return [_stem(word) for word in re.findall(r"\w+", text.lower())]


def _stem(word: str) -> str:
    for ending in ("ies", "es", "en", "s", "e", "n"):
        if len(word) - len(ending) >= 4 and word.endswith(ending):
            return word[: -len(ending)]
    return word


def _distinct(phrases: Iterable[Phrase]) -> list[Phrase]:
    """Without those whose words all stand in a better one, or that hold a better one whole."""
    kept: list[Phrase] = []
    taken: list[set[str]] = []
    for one in phrases:
        words = set(folded_words(one.text)) or {one.text}
        if any(words <= other or other <= words for other in taken):
            continue
        if not one.text.isascii() and any(one.text in k.text or k.text in one.text for k in kept):
            continue
        kept.append(one)
        taken.append(words)
    return kept


# Written with spaces


def _spaced(sentences: Sequence[str], language: str) -> list[Phrase]:
    stop = stop_words(language)
    counts: Counter[str] = Counter()
    words: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    first: dict[str, int] = {}
    names: set[str] = set()
    length = 0
    for place, sentence in enumerate(sentences):
        length += len(sentence)
        if length > _SAMPLE:
            break
        for run, is_name in _runs(sentence, stop, language):
            key = run.lower()
            counts[key] += 1
            words.update(key.split())
            spelled.setdefault(key, run)
            first.setdefault(key, place)
            if is_name:
                names.add(key)
    found: list[Phrase] = []
    for key, count in counts.items():
        parts = key.split()
        weight = max((words[part] for part in parts if part not in stop), default=0)
        is_name = key in names
        if not is_name and count < 2 and (weight < 2 or len(parts) < 2):
            continue
        score = (count + 0.5 * (weight - count)) * (1 + log(len(parts))) * (1.5 if is_name else 1)
        found.append(
            Phrase(text=spelled[key], score=score * (1 + 1 / (2 + first[key])), is_name=is_name)
        )
    return found


def _runs(sentence: str, stop: frozenset[str], language: str) -> Iterable[tuple[str, bool]]:
    """The runs of words between stop words and marks; and whether each is a name."""
    run: list[str] = []
    joining = _JOINING.get(language, frozenset())
    for place, (code, word, mark) in enumerate(_TOKEN.findall(sentence)):
        if code:
            yield from _closed(run, language)
            run = []
            if code.replace("_", "").isalnum() and not code.isdigit():
                yield code, True
            continue
        lower = word.lower().rstrip(".'’/-")
        if mark or not lower:
            yield from _closed(run, language)
            run = []
        elif lower in joining and run and run[-1][0].isupper():
            run.append(lower)
        elif lower in stop or (place == 0 and lower in _WEAK):
            yield from _closed(run, language)
            run = []
        else:
            run.append(word.rstrip(".'’/-"))
    yield from _closed(run, language)


def _closed(run: list[str], language: str) -> Iterable[tuple[str, bool]]:
    """What one run gives: the name in it, or else its words."""
    while run and run[-1].islower() and run[-1] in _JOINING.get(language, ()):
        run.pop()
    if not run:
        return
    if language == "de":
        # Nouns alone: an adjective would have to be put into another case.
        for noun in run:
            if noun[0].isupper() and len(noun) > 3 and noun.lower() not in _WEAK:
                yield noun, any(map(str.isupper, noun[1:])) or len(noun) >= 12
        names = _capitalised(run)
        if len(names) > 1:
            yield " ".join(names), True
        return
    names = _capitalised(run)
    if len(names) > 1 or (names and len(names) < len(run)):
        text = " ".join(names)
        if _is_phrase(names):
            yield text, len(names) > 1 or any(map(str.isupper, text[1:]))
    words = list(run)
    while words and (words[0].lower() in _WEAK or words[0].endswith(_SUFFIXES[0])):
        words.pop(0)
    while words and (words[-1].lower() in _WEAK or words[-1].endswith(_SUFFIXES[::2])):
        words.pop()
    if words != names and words and _is_phrase(words):
        yield " ".join(words), False


def _capitalised(run: list[str]) -> list[str]:
    """The longest stretch of a run that is written with capitals."""
    best: list[str] = []
    current: list[str] = []
    for word in [*run, ""]:
        if word[:1].isupper() or (current and word in ("of", "de", "von", "du", "del", "van")):
            current.append(word)
            continue
        while current and current[-1].islower():
            current.pop()
        best = max(best, current, key=len)
        current = []
    return best


def _is_phrase(words: list[str]) -> bool:
    text = " ".join(words)
    return (
        len(words) <= _MOST_WORDS
        and 3 <= len(text) <= _LONGEST
        and not text.replace(" ", "").isdigit()
        and any(word.lower() not in _WEAK and len(word) > 2 for word in words)
    )


# Written without spaces


def _unspaced(sentences: Sequence[str], language: str) -> list[Phrase]:
    text = "\n".join(sentences)[:_SAMPLE]
    found: dict[str, Phrase] = {}
    for title in _TITLED.findall(text):
        found[title] = Phrase(text=title, score=2.0 + 2 * text.count(title), is_name=True)
    if language == "ja":
        for run, count in Counter(_KATAKANA.findall(text)).items():
            found.setdefault(run, Phrase(text=run, score=1.0 + count, is_name=True))
    for piece, count in _recurring(_HAN.findall(text)).items():
        score = count * log(1 + len(piece)) * (1 + 1 / (2 + text.index(piece) // 40))
        found.setdefault(piece, Phrase(text=piece, score=score, is_name=False))
    for phrase in _spaced(re.findall(r"[A-Za-z][A-Za-z0-9 .'-]{2,60}", text), "en"):
        if phrase.is_name:
            found.setdefault(phrase.text, phrase)
    return list(found.values())


def _recurring(runs: Sequence[str]) -> dict[str, int]:
    """Pieces that occur twice or more, and have different neighbours on both sides."""
    counts: Counter[str] = Counter()
    before: dict[str, set[str]] = {}
    after: dict[str, set[str]] = {}
    edges = 0
    for run in runs:
        for start in range(len(run) - 1):
            for end in range(start + 2, min(len(run), start + _LONGEST_UNSPACED) + 1):
                piece = run[start:end]
                counts[piece] += 1
                edges += 1  # each end of a run is a neighbour of its own
                before.setdefault(piece, set()).add(run[start - 1] if start else str(edges))
                after.setdefault(piece, set()).add(run[end] if end < len(run) else str(edges))
    return {
        piece: count
        for piece, count in counts.items()
        if count > 1
        and piece[0] not in _WEAK_SIGNS
        and piece[-1] not in _WEAK_SIGNS
        and len(before[piece]) > 1
        and len(after[piece]) > 1
    }
