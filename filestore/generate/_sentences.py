"""Where sentences end, in any script, and which of them can stand alone.

A full stop ends no sentence after an abbreviation, an initial or an ordinal, nor within a number,
a name of a file or an address; ideographic stops need no blank behind them. No model, no word
lists but abbreviations: what is wrong now and then costs a summary one sentence. Pure, and in
linear time.
"""

import re
from typing import Final

from filestore.generate._plain import letters_share

LONGEST: Final = 400
"""Characters; a longer sentence is not quoted."""
_SHORTEST: Final = 25
_SHORTEST_UNSPACED: Final = 8
_FEWEST_WORDS: Final = 5
_MOST_WORDS: Final = 60
_FEWEST_LETTERS: Final = 0.7
_FEWEST_SIGNS: Final = 0.5
"""Where one sign is a word."""

_END: Final = re.compile(
    r"[.!?…‽]+[\"'”’»)\]}*_]*(?=\s|$)"
    r"|[。！？｡‼⁇⁈⁉]+[”’」』）】》\"')]*"
    r"|[।॥؟۔።፧။៕]+[\"'”’»)]*(?=\s|$|\w)"
)
_UNSPACED_SIGN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_LAST_WORD: Final = re.compile(r"[\w.&'’-]*$")
_ABBREVIATIONS: Final = frozenset(
    # Those after which a capital letter or a number usually follows within the sentence.
    [
        "al",
        "apr",
        "approx",
        "art",
        "asst",
        "aug",
        "bd",
        "ber",
        "bsp",
        "bspw",
        "bzgl",
        "bzw",
        "ca",
        "cf",
        "ch",
        "chap",
        "co",
        "col",
        "corp",
        "d.h",
        "dec",
        "dept",
        "dr",
        "ebd",
        "ed",
        "eds",
        "ehem",
        "eng",
        "esp",
        "etc.a",
        "evtl",
        "ex",
        "feb",
        "fig",
        "figs",
        "fr",
        "g.h",
        "ggf",
        "gen",
        "gov",
        "hon",
        "hr",
        "hrsg",
        "i.d.r",
        "i.e",
        "e.g",
        "ing",
        "jan",
        "jr",
        "jul",
        "jun",
        "kap",
        "lt",
        "ltd",
        "mag",
        "max",
        "messrs",
        "mgr",
        "min",
        "mio",
        "mm",
        "mme",
        "mlle",
        "mr",
        "mrs",
        "ms",
        "mt",
        "mwst",
        "nov",
        "no",
        "nos",
        "nr",
        "núm",
        "num",
        "o.ä",
        "oct",
        "okt",
        "op",
        "pag",
        "pp",
        "prof",
        "ref",
        "rep",
        "resp",
        "rev",
        "s.o",
        "s.u",
        "sc",
        "sen",
        "sep",
        "sept",
        "sog",
        "sr",
        "sra",
        "srta",
        "st",
        "ste",
        "str",
        "tab",
        "tel",
        "u.a",
        "u.s",
        "univ",
        "usw.a",
        "v.a",
        "vgl",
        "viz",
        "vol",
        "vols",
        "vs",
        "z.b",
        "z.t",
        "zzgl",
        "в.г",
        "г",
        "ул",
        "им",
        "стр",
        "рис",
        "табл",
        "т.е",
        "т.д",
        "т.п",
        "т.к",
        "напр",
        "dott",
        "sig",
        "prof.ssa",
        "dña",
        "avda",
        "ej",
        "p.ej",
        "p.ex",
        "bijv",
        "dhr",
        "mevr",
        "nl",
        "o.a",
    ]
)
_ORDINAL: Final = re.compile(r"(?<![\w.])\d{1,2}\.$")
_OPENING: Final = "\"'“„«‘‚([{*_`¿¡"
_ANAPHORA: Final = re.compile(
    r"(?:he|she|it|they|this|that|these|those|such|however|therefore|thus|hence|moreover|also|but"
    r"|and|or|so|then|furthermore|consequently|instead|otherwise|nevertheless|here|there"
    r"|er|sie|es|dies\w{0,2}|jene[rsmn]?|jedoch|daher|deshalb|außerdem|dabei|dadurch|damit|dann"
    r"|aber|und|oder|sondern|zudem|ferner|hierbei|hierzu|somit"
    r"|il|elle|ils|elles|cela|ceci|mais|et|donc|cependant|ainsi|él|ella|ellos|esto|esta|este|pero"
    r"|además|sin|он|она|оно|они|это|этот|но|и|однако|поэтому)\b",
    re.IGNORECASE,
)
_ANAPHORA_UNSPACED: Final = re.compile("[他她它]|这|該|该|此|但|因此|所以|然而|而且|同时|其[中他]")


def sentences_of(paragraph: str) -> list[str]:
    """The sentences of one paragraph, in order; together they are its text without the blanks."""
    found: list[str] = []
    start = 0
    for match in _END.finditer(paragraph):
        if match.start() >= start and _ends(paragraph, start, match):
            found.append(paragraph[start : match.end()].strip())
            start = match.end()
    found.append(paragraph[start:].strip())
    return [sentence for sentence in found if sentence]


def _ends(paragraph: str, start: int, match: re.Match[str]) -> bool:
    """Whether a sentence ends at a mark."""
    mark = match[0]
    if mark[0] not in ".…!?":
        return True
    follows = paragraph[match.end() : match.end() + 40].lstrip()
    if not follows:
        return True
    following = follows.lstrip(_OPENING)[:1]
    if following.islower() or (not following and len(follows) < 2):
        return False
    if mark[0] != "." or mark.startswith(".."):
        return True
    before = paragraph[max(start, match.start() - 30) : match.start()]
    found = _LAST_WORD.search(before)
    word = found[0].lstrip("\"'(").casefold() if found else ""
    if word in _ABBREVIATIONS:
        return False
    if len(word) == 1 and word.isalpha() and before[-2:-1] in ("", " ", "(", "."):
        return False
    # "der 3. Oktober", "Nr. 5. Auflage": an ordinal, unless it is where a list or a year ends.
    return not _ORDINAL.search(before + ".")


def is_prose(sentence: str) -> bool:
    """Whether a sentence is made of words, and is no code and no row of numbers."""
    fewest = _FEWEST_SIGNS if _UNSPACED_SIGN.search(sentence) else _FEWEST_LETTERS
    return letters_share(sentence) >= fewest


def is_whole(sentence: str) -> bool:
    """Whether a sentence says something by itself: it ends, is no list of numbers, no fragment."""
    if len(sentence) > LONGEST or not is_prose(sentence):
        return False
    end = sentence.rstrip("\"'”’»」』）)]*_")[-1:]
    if end not in ".!?…。！？｡।؟۔።။":
        return False
    if _UNSPACED_SIGN.search(sentence):
        return len(sentence) >= _SHORTEST_UNSPACED
    words = sentence.count(" ") + 1
    begins = sentence.lstrip(_OPENING)[:1]
    return (
        _FEWEST_WORDS <= words <= _MOST_WORDS
        and len(sentence) >= _SHORTEST
        and not begins.islower()
    )


def leans_back(sentence: str) -> bool:
    """Whether a sentence begins with a word that points at the one before."""
    bare = sentence.lstrip(_OPENING)
    return bool(_ANAPHORA.match(bare) or _ANAPHORA_UNSPACED.match(bare))


def cut(text: str, most: int) -> str:
    """The head of a text, at the end of a word where there is one."""
    if len(text) <= most:
        return text
    head = text[:most]
    blank = head.rfind(" ")
    return head[: blank if blank > most // 2 else most].rstrip()
