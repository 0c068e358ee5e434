"""Whether an answer is in another language than the texts it is about. Pure.

By script, and among Latin scripts by the commonest words. One rule: only where both are sure are
they called different; short texts, names and code are never sure.
"""

import re
from collections.abc import Mapping
from typing import Final

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

_COMMON: Final = {
    language: frozenset(words.split())
    for language, words in {
        "English": "the of and to is that it for was on are with as by this be at from which or an"
        " what how does why when who where has have not were can their",
        "German": "der die das und ist von zu den mit nicht ein eine auf dem für sich des im wird"
        " was wie warum wann wer wo welche welcher werden sind auch als bei aus wurde einer einem",
        "French": "le les et des est une du dans que qui pour par sur pas au avec ce sont plus il"
        " elle comment pourquoi quand où quelle quel quels aux ou cette ne",
        "Spanish": "el los y las es una del en que por para con se su al lo como más fue qué cómo"
        " cuándo dónde quién cuál son pero esta este no",
        "Italian": "il che di è la un una per con non del della dei gli sono come nel alla più"
        " anche cosa perché quando dove chi quale questo questa dal",
        "Portuguese": "o os que é do da em um uma para com não dos das no na por mais como foi ao"
        " são qual quando onde quem são seu sua pelo pela",
        "Dutch": "de het een en van is dat op te in voor met niet zijn wordt aan door ook als bij"
        " wat hoe waarom wanneer wie waar welke naar worden deze",
    }.items()
}
_WORD: Final = re.compile(r"[^\W\d_]+")
_LEAST_HITS: Final = 5
_LEAST_SHARE: Final = 0.15
_LEAD: Final = 2
"""How many times as many common words a language must have as the next one."""


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
    theirs, ours = _latin_language(texts), _latin_language(answer)
    if theirs is None or ours is None or theirs == ours:
        return None
    return (ours, theirs)


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


def _latin_language(text: str) -> str | None:
    """The language whose commonest words a text has, if it clearly has them."""
    words = [word.lower() for word in _WORD.findall(text)]
    hits = {language: sum(word in common for word in words) for language, common in _COMMON.items()}
    first, second = sorted(hits, key=lambda one: hits[one], reverse=True)[:2]
    sure = hits[first] >= max(_LEAST_HITS, _LEAST_SHARE * len(words), _LEAD * hits[second])
    return first if sure else None
