"""Which words are spelt as they should be: the ones that the bundled model has as one piece.

Only its vocabulary is read, which is a hundredth of the file. One rule: it is asked before a word
is taken for a mistake, never to decide what a vector is, so that a damaged file changes none.
"""

import os
from functools import cache
from typing import Final

import orjson

from filestore.core.spelling import normalized

_FILE: Final = os.path.join(os.path.dirname(__file__), "minilm", "model.safetensors")
_MOST_HEADER: Final = 1 << 20
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


def holds(word: str) -> bool:
    """Whether a word, in any case and with its accents or without, is one piece."""
    plain = word.lower()
    if not plain.isascii():
        plain = "".join(filter(str.isalpha, normalized("NFD", plain)))
    return plain.isalpha() and f"\n{plain}\n".encode() in _words()


@cache
def _words() -> bytes:
    """One word a line; nothing where the file cannot be read."""
    try:
        with open(_FILE, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = orjson.loads(file.read(min(length, _MOST_HEADER)))
            first, last = header["vocabulary"]["data_offsets"]
            file.seek(8 + length + first)
            return b"\n" + file.read(last - first) + b"\n"
    except (OSError, ValueError, LookupError, TypeError):
        return b""


def words() -> list[str]:
    """The words that are one piece, the most frequent first."""
    found = _words().decode("utf-8", "replace").split("\n")
    return found[found.index("the") :] if "the" in found else []
