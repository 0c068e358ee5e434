"""The phrases that a text is about, by counting: no model, the same everywhere.

Written with spaces: runs of words between stop words and marks (Rose et al. 2010, "Automatic
Keyword Extraction from Individual Documents"), kept where they are names, terms or repeated, since
a run may have a verb in it and only repetition tells. Written without: pieces that recur and are
free on both sides (accessor variety, Feng et al. 2004), and what stands in title marks. Pure.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log
from typing import Final

from msgspec import Struct

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
_ADVERB: Final = "ly"
_VERB: Final = ("ly", "ed")
_PARTICIPLES: Final = ("ing", "ed")
_LONG_NOUN: Final = 12
_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]{2,}")
_KATAKANA: Final = re.compile(r"[\u30a1-\u30fa\u30fc]{3,}")
_TITLED: Final = re.compile(r"[《「『“]([^《》「」『』“”\n]{2,24})[》」』”]")
_WEAK_SIGNS: Final = frozenset(
    "的了是在和与及或被把对从向于以为由而也都就又还等这那其之所有个中上下不一二三四五六七八九十"
    "他她它们我你您此该每各并但若如则因可能会要将已年月日时地得着过到后前里内外间些种多少很最更"
    "于吗呢吧啊让使令给用次种"
)
"""A piece does not begin or end with them."""


_VERBS_AND_SUCH: Final = (
    "提供 包括 进行 开始 使用 认为 成为 发展 起来 出现 其他 这些 一些 许多"
    " 大多数 大部分 关系 受到 支持 增加 导致 需要 具有 根据 通过 按照 尽管 虽然"
    " 由于 为了 以及 但是 因此 所以 如果 没有 可以 可能 能够 必须 应该 已经"
    " 形成 领先 带领 基本 现代 主要 重要 不同 相同 方面 情况 问题 部分 方式"
    " 时间 之间 之后 之前 期间 人们 人员 进入 产生 得到 发现 描述 运营 入选"
    " 模拟 典型 假设 活动"
)
_WEAK_PIECES: Final = frozenset(_VERBS_AND_SUCH.split())
"""Pieces that recur in any text."""


class Phrase(Struct, frozen=True, kw_only=True):
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
    return distinct_phrases(sorted(scored, key=lambda one: (-one.score, one.text)))


def folded_words(text: str) -> list[str]:
    """The words of a text in lower case, with the plural of English and German cut off."""
    return [_stem(word) for word in re.findall(r"\w+", text.lower())]


def _stem(word: str) -> str:
    for ending in ("ies", "es", "en", "s", "e", "n"):
        if len(word) - len(ending) >= 4 and word.endswith(ending):
            return word[: -len(ending)]
    return word


def distinct_phrases(phrases: Iterable[Phrase]) -> list[Phrase]:
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
        words.update(re.findall(r"\w+", sentence.lower()))
        for run, is_name in _runs(sentence, stop, language):
            key = run.lower()
            counts[key] += 1
            spelled.setdefault(key, run)
            first.setdefault(key, place)
            if is_name:
                names.add(key)
    found: list[Phrase] = []
    for key, count in counts.items():
        parts = key.split()
        # Within a marked term there may be small words alone.
        weight = max((words[part] for part in parts if part not in stop), default=0)
        is_name = key in names
        # The last word may be a verb: that of a phrase which stands once must stand elsewhere, too.
        if not is_name and count < 2 and (len(parts) < 2 or words[parts[-1]] < 2):
            continue
        score = (
            (count + 0.5 * (weight - count))
            * (1 + log(max(1, len(parts))))
            * (1.5 if is_name else 1)
        )
        found.append(
            Phrase(text=spelled[key], score=score * (1 + 1 / (2 + first[key])), is_name=is_name)
        )
    return found


def _runs(sentence: str, stop: frozenset[str], language: str) -> Iterable[tuple[str, bool]]:
    """The phrases between stop words and marks; and whether each is a name."""
    run: list[str] = []
    joining = _JOINING.get(language, frozenset())
    for place, (code, word, mark) in enumerate(_TOKEN.findall(sentence)):
        bare = word.rstrip(".'’/-")
        lower = bare.lower()
        if lower in joining and run and run[-1][0].isupper():
            run.append(lower)
        elif bare and not mark and lower not in stop and not (place == 0 and language == "de"):
            run.append(bare)
        else:
            yield from _phrases_in(run, joining, language)
            run = []
            if code and code.replace("_", "").isalnum() and not code.isdigit():
                yield code, True
    yield from _phrases_in(run, joining, language)


def _phrases_in(
    run: Sequence[str], joining: frozenset[str], language: str
) -> Iterable[tuple[str, bool]]:
    """The stretches of a run that are written alike: names, and the words in front of them.

    Words behind a name are left out: there the verb stands, in most languages.
    """
    stretch: list[str] = []
    is_first = True
    for word in [*run, ""]:
        is_name = bool(stretch) and stretch[0][0].isupper()
        if word and stretch and is_name == (word[0].isupper() or (is_name and word in joining)):
            stretch.append(word)
            continue
        yield from _phrase(stretch, joining, language, is_first=is_first)
        is_first = not stretch
        stretch = [word] if word else []


def _phrase(
    stretch: list[str], joining: frozenset[str], language: str, *, is_first: bool
) -> Iterable[tuple[str, bool]]:
    words = list(stretch)
    while words and words[-1] in joining:
        words.pop()
    if not words:
        return
    if words[0][0].isupper():
        text = " ".join(words)
        is_marked = len(words) > 1 or any(map(str.isupper, text[1:]))
        # Long German nouns are terms: they join what others write as several words.
        if _is_phrase(words):
            yield text, is_marked or (language == "de" and len(text) >= _LONG_NOUN)
    elif is_first and language != "de":
        # A German adjective would have to be put into another case.
        while words and (words[0].lower() in _WEAK or words[0].endswith(_ADVERB)):
            words.pop(0)
        while words and (words[-1].lower() in _WEAK or words[-1].endswith(_VERB)):
            words.pop()
        # Each head of it: the verb may follow, and only what recurs is taken.
        for end in range(1, 0 if words and words[0].endswith(_PARTICIPLES) else len(words) + 1):
            if _is_phrase(words[:end]):
                yield " ".join(words[:end]), False


def _is_phrase(words: list[str]) -> bool:
    text = " ".join(words)
    return (
        0 < len(words) <= _MOST_WORDS
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
    for phrase in _spaced(re.findall(r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ0-9 .'-]{2,60}", text), "en"):
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
        and piece not in _WEAK_PIECES
        and piece[0] not in _WEAK_SIGNS
        and piece[-1] not in _WEAK_SIGNS
        and len(before[piece]) > 1
        and len(after[piece]) > 1
    }
