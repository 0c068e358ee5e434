"""The commonest words of languages, and whether an answer is in another one than its texts. Pure.

By script, and among Latin scripts by the commonest words. One rule: only where both are sure are
they called different; short texts, names and code are never sure.
"""

import re
from collections.abc import Mapping
from typing import Final

_STOP_WORDS: Final = {
    "en": (
        "a about above after again against all also although am an and any are as at be because"
        " been before being below between both but by can cannot could did do does doing down"
        " during each either else etc even every few for from further had has have having he her"
        " here hers him his how however i if in into is it its itself just less like made make"
        " many may me might more most much must my need neither no nor not of off often on once"
        " one only or other our out over own per rather same she should since so some such than"
        " that the their them then there therefore these they this those through thus to too"
        " toward under until up upon us use used uses using very via was we well were what when"
        " where whether which while who whom whose why will with within without would you your"
    ),
    "de": (
        "aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bis"
        " bzw da dabei dadurch dafür damit dann das dass dem den denn der deren des dessen die dies"
        " diese diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines er"
        " es etwa für gegen hat hatte hatten haben hier ich ihm ihn ihnen ihr ihre ihrem ihren"
        " ihrer im in ins ist ja jede jedem jeden jeder jedes jedoch kann kein keine können man"
        " mehr mit muss müssen nach nicht noch nur ob oder ohne schon sehr sein seine seinem seinen"
        " seiner sich sie sind so sollte sondern sowie um und uns unter vom von vor war waren was"
        " bereits danach daraufhin dennoch einige heute insbesondere je manche manchmal mehrere"
        " nachdem nun obwohl sowohl später trotz zunächst zwar"
        " weil welche welcher wenn werden wer wie wieder wird wo wurde wurden während zu zum zur"
        " zwei zwischen über"
    ),
    "fr": (
        "ainsi après au aussi autre autres aux avant avec avoir bien car ce cela celle celui ces"
        " cet cette ceux chaque comme comment contre dans de depuis des deux donc dont du elle"
        " elles en entre est et était être eux fait il ils je la le les leur leurs lors lorsque"
        " lui mais même moins ne ni non nos notre nous on ont ou où par parce pas pendant peut"
        " plus pour pourquoi près puis quand que quel quelle qui sa sans se sera ses si son sont"
        " sous sur tous tout toute très un une vers vos votre vous été"
    ),
    "es": (
        "al algo antes aquí así aunque cada como con contra cual cuando de del desde donde dos"
        " durante e el ella ellos en entre era eran es esa ese eso esta estaba estas este esto"
        " estos está están fue fueron ha había han hasta hay la las le les lo los más me mi"
        " mientras muy ni no nos o otra otro otros para pero por porque pues que quien se sea"
        " según ser si sido sin sobre son su sus también tan tanto te tiene todo todos tras un"
        " una unas uno unos y ya él"
    ),
    "it": (
        "agli ai al alla alle allo anche ancora che chi ci come con cui da dagli dai dal dalla"
        " dalle degli dei del della delle dello di dopo dove due e ed era erano essere fra fu"
        " furono gli ha hanno i il in io la le lo loro ma mentre ne negli nei nel nella nelle non"
        " o ogni per perché più poi prima può quale quando quella quello questa questi questo se"
        " sei senza si sia sono stata stato su sua sue sugli sul sulla suo suoi tra tutti tutto un"
        " una uno è"
    ),
    "pt": (
        "a ao aos as até cada com como da das de dela dele depois do dos e ela elas ele eles em"
        " entre era eram essa esse esta estava este foi foram há isso isto já lhe mais mas me mesmo"
        " muito na nas nem no nos não num numa o os ou para pela pelas pelo pelos por porque quando"
        " que quem se seja sem ser seu seus sob sobre sua suas são também tem ter um uma umas uns"
        " você à às é"
    ),
    "nl": (
        "aan al alle als altijd andere ben bij daar dan dat de deze die dit door dus een en er"
        " geen had heeft hem het hier hij hoe hun iets ik in is ja je kan kunnen maar meer men met"
        " mijn moet na naar niet nog nu of om omdat onder ons ook op over te tegen toch toen tot"
        " uit van veel voor waar waren was wat we wel welke werd werden wie wij wordt worden zal"
        " ze zei zich zij zijn zo zonder zou"
    ),
    "ru": (
        "а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да для"
        " до его ее если есть еще же за здесь и из или им их к как ко когда которая которого"
        " которые который кто ли между меня мы на над не него нее нет ни них но о об однако он она"
        " они оно от очень по под после при с со так также там то того тоже только у уже чем что"
        " чтобы эта эти это этого этой этот я"
    ),
    "sv": "och att det är en som på av för med den till inte ett har om var kan från eller men",
    "da": "og at det er en som på af for med den til ikke et har om var kan fra eller men blev",
    "no": "og at det er en som på av for med den til ikke et har om var kan fra eller men ble",
    "pl": "i w na z do się nie jest to że o jak po przez od za dla są oraz który przy ale był",
    "fi": "ja on ei se että oli joka myös mutta ovat hän tai kun sen niin kuin sekä voi ole",
    "tr": "ve bir bu için ile da de olarak çok daha olan gibi kadar en ne var ya değil",
    "uk": "і в на з що не це та як до за від для його був є або які але також",
}
STOP_WORDS: Final = {name: frozenset(words.split()) for name, words in _STOP_WORDS.items()}
"""By language, in lower case."""

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
