"""Whether an answer is in another language than the texts it is about. Pure.

By script, and among Latin scripts by the commonest words. One rule: only where both are sure are
they called different; short texts, names and code are never sure.
"""

import re
from collections.abc import Mapping
from typing import Final

from filestore.generate._languages import STOP_WORDS

_LETTERS: Final = {
    script: re.compile(f"[{letters}]")
    for script, letters in {
        "Latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
        "Greek": "\u0370-\u03ff",
        "Cyrillic": "\u0400-\u052f",
        "Hebrew": "\u0590-\u05ff",
        "Arabic": "\u0600-\u06ff",
        "Devanagari": "\u0900-\u097f",
        "Thai": "\u0e00-\u0e7f",
        "Korean": "\uac00-\ud7a3",
        "Chinese": "\u3400-\u4dbf\u4e00-\u9fff",
        "Japanese": "\u3040-\u30ff",
    }.items()
}
_WEIGHT: Final = {"Korean": 2, "Chinese": 3, "Japanese": 3}
"""Letters of an alphabet that one sign is worth."""
_LEAST_IN_TEXTS: Final = 90
_LEAST_IN_ANSWER: Final = 30
_MOST: Final = 0.7
"""A script that has so much of the texts is theirs."""
_TRACE: Final = 0.1
"""An answer that has no more of it is in another."""

_NAMES: Final = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian",
    "pt": "Portuguese", "nl": "Dutch", "sv": "Swedish", "da": "Danish", "no": "Norwegian",
    "pl": "Polish", "fi": "Finnish", "tr": "Turkish",
}  # fmt: skip
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_LEAST_HITS: Final = 5
_LEAST_DIFFERENT: Final = 3
"""A name that is written again and again is no language."""
_LEAST_SHARE: Final = 0.15
"""Of the words of a text, those that are common in its language."""
_LEAD: Final = 2
"""How many times as many words a text must have of its own language as of the other one."""


def in_another_language(answer: str, texts: str) -> tuple[str, str] | None:
    """What the answer is in and what the texts are in, where these surely differ."""
    of_texts, of_answer = _scripts(texts), _scripts(answer)
    wanted, found = _main(of_texts, _LEAST_IN_TEXTS), _main(of_answer, _LEAST_IN_ANSWER)
    if wanted is None or found is None:
        return None
    if wanted != found:
        return (found, wanted) if _share(of_answer, wanted) <= _TRACE else None
    if wanted != "Latin":
        return None
    return _other_words(_hits(answer), _hits(texts))


def _scripts(text: str) -> dict[str, int]:
    """How much of a text is in each script."""
    found = {
        script: len(letters.findall(text)) * _WEIGHT.get(script, 1)
        for script, letters in _LETTERS.items()
    }
    if found["Japanese"] > _TRACE * found["Chinese"]:
        found["Japanese"] += found.pop("Chinese")
    return found


def _share(scripts: Mapping[str, int], script: str) -> float:
    return scripts.get(script, 0) / max(1, sum(scripts.values()))


def _main(scripts: Mapping[str, int], least: int) -> str | None:
    """The script of nearly all of a text, if it is long enough to tell."""
    script = max(scripts, key=lambda one: scripts[one])
    enough = scripts[script] >= least and _share(scripts, script) >= _MOST
    return script if enough else None


def _hits(text: str) -> dict[str, int]:
    """How many words of a text are common in each language; none where that is too few to tell."""
    words = [word.lower() for word in _WORD.findall(text)]
    different = set(words)
    hits = {
        language: sum(word in common for word in words)
        for language, common in STOP_WORDS.items()
        if len(common & different) >= _LEAST_DIFFERENT
    }
    least = max(_LEAST_HITS, _LEAST_SHARE * len(words))
    return hits if max(hits.values(), default=0) >= least else {}


def _other_words(of_answer: dict[str, int], of_texts: dict[str, int]) -> tuple[str, str] | None:
    """The languages of both, where each has far more words of its own than of the other's.

    Languages that share many words, such as Danish and Norwegian, are never told apart.
    """
    if not (of_answer and of_texts):
        return None
    found, wanted = (max(hits, key=lambda one: hits[one]) for hits in (of_answer, of_texts))
    is_sure = of_answer[found] >= _LEAD * of_answer.get(wanted, 0) and of_texts[
        wanted
    ] >= _LEAD * of_texts.get(found, 0)
    return (_NAMES.get(found, found), _NAMES.get(wanted, wanted)) if is_sure else None
