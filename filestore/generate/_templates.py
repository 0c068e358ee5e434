"""How questions are put in each language: patterns of sentences, and what is asked of them.

A pattern stands here only where the question cannot come out ungrammatical: its words are those of
the sentence, in the same case and number. Pure data, and the functions that fill it.
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

Filler = Callable[[re.Match[str]], str]


class Pattern(Struct, frozen=True, kw_only=True):
    """A form of sentence, and the question that it answers."""

    sentence: re.Pattern[str]
    question: Filler
    """Returns "" where there is none after all."""


_NOTE: Final = r"(?: ?\([^()]{1,80}\))?"
"""What stands in brackets behind a name is not asked about."""
_EN_NAME: Final = r"(?P<x>(?:(?:The|An?) )?[^\W_][\w'’.\-/&]*(?: [\w'’.\-/&]+){0,6}?)" + _NOTE
_EN_NO_START: Final = (
    r"(?!(?:It|This|That|These|Those|There|Here|He|She|They|We|You|I|One|Which|Who|What|When|Where|Why"
    r"|How|Another|Others?|Some|Many|Most|All|Both|Each|Every|None|No|Nothing|Such|In|On|At|By|As|If"
    r"|While|Although|Though|After|Before|Since|Because|During|For|With|From|To|Of|Under|However|But"
    r"|And|Or|So|Also|Then|Thus|Not|Only|Its|His|Her|Their|Our|My|Your|Among|Between|Today|Now"
    r"|Until|Within|Without|Like|Unlike|Instead|Despite|Once|Part|More|Less|Several|Few|Any|Its"
    r"|Whether|Yet|(?:North|South|East|West)\w* of|Following|Given|According"
    r"|Perhaps|Examples?|Two|Three|Four|Five)\b)"
)
_EN_CLAUSE: Final = re.compile(
    r"\b(?:that|which|who|whom|whose|where|when|is|are|was|were|has|have|had|and|or|but|it|this|these"
    r"|those|they|he|she|we|you|his|her|their|its|to|if|as|not|because|there|by|with|from|can|will"
    r"|would|could|should|may|might|must|called|known|became|about|than|whether|given|how|why)\b",
    re.IGNORECASE,
)
_EN_PERSON: Final = re.compile(
    r"^(?:an?|the|one of the) (?:[\w'’\-]+,? ){0,6}?(?:physicist|chemist|biologist|mathematician"
    r"|scientist|engineer|inventor|writer|author|poet|novelist|playwright|philosopher|historian"
    r"|economist|politician|statesman|lawyer|judge|president|chancellor|minister|senator|governor"
    r"|king|queen|emperor|empress|prince|princess|duke|pope|bishop|monk|saint|theologian|composer"
    r"|musician|singer|actor|actress|director|painter|sculptor|architect|artist|photographer"
    r"|explorer|soldier|general|officer|player|footballer|quarterback|coach|athlete|teacher"
    r"|professor|psychologist|astronomer|botanist|physician|doctor|activist|\w+ologist|businessman|founder"
    r"|leader|son|daughter|father|mother|brother|sister|wife|husband|man|woman|person|programmer)s?\b"
)
_EN_DONE: Final = (
    r"founded|established|born|built|created|published|released|introduced|invented|discovered|signed"
    r"|adopted|abolished|elected|opened|completed|formed|launched|written|developed|designed|held"
    r"|constructed|formulated|ratified|passed|appointed|renamed|demolished|destroyed|proposed"
)
_YEAR: Final = r"(?:1[0-9]{3}|20[0-9]{2})"


def _en_subject(text: str) -> str:
    """The subject of a sentence as it stands within a question; "" where it is a clause."""
    if _EN_CLAUSE.search(text) or text.endswith(("ly", ",")):
        return ""
    head, _, rest = text.partition(" ")
    return f"{head.lower()} {rest}" if rest and head in ("The", "A", "An") else text


def _en_what(match: re.Match[str]) -> str:
    subject, verb = _en_subject(match["x"]), match["be"]
    if not subject or (subject[0].islower() and not subject.startswith(("the ", "a ", "an "))):
        return ""
    who = "Who" if _EN_PERSON.match(match["rest"]) else "What"
    return f"{who} {verb} {subject}?"


def _en_when(match: re.Match[str]) -> str:
    subject = _en_subject(match["x"])
    tail = match["rest"]
    if not subject or subject.startswith("a ") or not re.search(rf"\b{_YEAR}\b", tail[:60]):
        return ""
    return f"When {match['be']} {subject} {match['done']}?"


def _en_whom(match: re.Match[str]) -> str:
    subject = _en_subject(match["x"])
    return f"By whom {match['be']} {subject} {match['done']}?" if subject else ""


_DE_NAME: Final = (
    r"(?P<x>(?:(?:Der|Die|Das|Ein|Eine) )?[^\W\d_][\w'’.\-/&]*(?: [\w'’.\-/&]+){0,5}?)" + _NOTE
)
_DE_NO_START: Final = (
    r"(?!(?:Es|Er|Sie|Dies\w{0,2}|Jene\w?|Das (?:ist|sind|war)|Dort|Hier|Man|Wir|Ich|Was|Wer|Wo"
    r"|Wann|Wie|Warum|Ein(?:e[rsmn]?)? (?:davon|ander)|Andere\w?|Einige|Viele|Alle|Beide|Jede\w?"
    r"|Kein\w{0,2}|In|Im|An|Am|Auf|Bei|Beim|Mit|Nach|Vor|Von|Vom|Zu|Zum|Zur|Seit|Während|Wenn|Als|Ob|Da"
    r"|Weil|Für|Aus|Unter|Über|Durch|Jedoch|Aber|Und|Oder|Auch|Dann|So|Nicht|Nur|Sein\w{0,2}|Ihr\w{0,2}"
    r"|Unser\w{0,2}|Zwischen|Heute|Damals|Damit|Dabei|Daher|Später|Zudem|Außerdem|Ferner|Trotz|Wegen|Eigentlich"
    r"|Weitere\w?|Solche\w?|Beispiele?|Dazu|Darunter|Davon|Hinzu|Bis|Gegen|Um|Ohne|Laut)\b)"
)
_DE_CLAUSE: Final = re.compile(
    r"\b(?:dass|welche[rsmn]?|ist|sind|war|waren|hat|haben|hatte|und|oder|aber|es|er|sie|nicht|wenn"
    r"|wurde|wurden|wird|werden|kann|können|auch|sich|mit|nach|seit|zu|jedoch|davon|dabei)\b"
)
_DE_PERSON: Final = re.compile(
    r"^(?:ein|eine|einer der|eine der|der|die) (?:[\w\-]+,? ){0,5}?"
    r"\w*(?:physiker|chemiker|mathematiker|politiker|musiker|historiker|informatiker|mediziner"
    r"|philosoph|psychologe|biologe|geologe|archäologe|ökonom|astronom|geograf|fotograf"
    r"|schriftsteller|dichter|erfinder|forscher|künstler|maler|bildhauer|komponist|pianist|jurist"
    r"|könig|kaiser|herzog|papst|bischof|mönch|minister|kanzler|präsident|ingenieur|architekt"
    r"|arzt|anwalt|richter|offizier|spieler|trainer|lehrer|professor|sänger|schauspieler"
    r"|regisseur|autor|unternehmer|gründer|theologe|reformator|sohn|vater|bruder|tochter|mutter"
    r"|schwester|frau)(?:in)?\b",
    re.IGNORECASE,
)
_DE_DONE: Final = (
    r"gegründet|geboren|erbaut|gebaut|errichtet|eröffnet|veröffentlicht|entdeckt|erfunden|umbenannt"
    r"|unterzeichnet|verabschiedet|eingeführt|abgeschafft|gewählt|fertiggestellt|entwickelt"
    r"|entworfen|zerstört|geschaffen|geschrieben|ernannt|formuliert|ratifiziert"
)
_DE_PASSIVE: Final = re.compile(
    rf"{_DE_NO_START}{_DE_NAME} (?P<be>wurde|wurden) (?P<mid>.{{4,120}}?) ?(?P<done>{_DE_DONE})\b.*"
)


def _de_subject(text: str) -> str:
    if _DE_CLAUSE.search(text):
        return ""
    head, _, rest = text.partition(" ")
    articles = ("Der", "Die", "Das", "Ein", "Eine")
    if head in articles:
        return f"{head.lower()} {rest}" if rest[:1].isupper() or " " in rest else ""
    # Only what is written as a name or a noun: an adjective in front would be in another form.
    return (
        text
        if all(word[0].isupper() or word in ("von", "der", "des", "zu") for word in text.split())
        else ""
    )


def _de_what(match: re.Match[str]) -> str:
    subject = _de_subject(match["x"])
    if not subject:
        return ""
    # What bears an article is mostly a thing, whatever it is compared to.
    is_named = not subject.startswith(("der ", "die ", "das ", "ein ", "eine "))
    is_person = is_named and match["be"] in ("ist", "war") and _DE_PERSON.match(match["rest"])
    return f"{'Wer' if is_person else 'Was'} {match['be']} {subject}?"


def _de_when(match: re.Match[str]) -> str:
    subject = _de_subject(match["x"])
    if not subject or not re.search(rf"\b{_YEAR}\b", match["mid"]):
        return ""
    return f"Wann {match['be']} {subject} {match['done']}?"


def _de_whom(match: re.Match[str]) -> str:
    subject = _de_subject(match["x"])
    if not subject or not re.search(r"\bvon (?:[A-ZÄÖÜ][\w-]+ ){1,3}", match["mid"]):
        return ""
    return f"Von wem {match['be']} {subject} {match['done']}?"


_ZH_NAME: Final = (
    r"(?P<x>[^\s，。、；：,!?！？（）()“”]{2,16})(?:（[^（）]{1,60}）|\([^()]{1,60}\))?"
)
_ZH_NO_START: Final = (
    "(?!这|那|该|此|其|他|她|它|我|你|您|人们|有|在|由|从|当|但|而|也|如果|因|所以|虽|即|或|并|以|对|为|被|最|不"
    "|又|还|就|都|可|能|会|一|两|每|另|许多|大多|所有|目前|今天|现在|如今)"
)
_ZH_CLAUSE: Final = re.compile(r"[的了是有被在与和并不会就也都]")


def _zh_subject(text: str) -> str:
    return "" if _ZH_CLAUSE.search(text) else text


def _zh_what(match: re.Match[str]) -> str:
    subject = _zh_subject(match["x"])
    if not subject:
        return ""
    return f"{subject}是谁？" if match["kind"] in ("一位", "一名") else f"{subject}是什么？"


def _zh_when(match: re.Match[str]) -> str:
    subject = _zh_subject(match["x"])
    return f"{subject}何时{match['done']}？" if subject else ""


def _named(form: str) -> Filler:
    """A question with the subject as it stands, for languages where a name needs no change."""

    def fill(match: re.Match[str]) -> str:
        subject = match["x"].strip()
        words = subject.split()
        fits = all(word[0].isupper() or len(word) <= 3 for word in words)
        return form.format(subject) if words and fits else ""

    return fill


def _year(form: str) -> Filler:
    return lambda match: form.format(match["year"])


_BARE_NAME: Final = r"(?P<x>[A-ZÀ-Ý][\w'’\-]+(?: [A-ZÀ-Ý][\w'’\-]+){0,3})(?: ?\([^()]{1,80}\))?"
_ZH_DONE: Final = r"成立|建立|创立|创建|创办|诞生|出生|去世|逝世|建成|开放|发行|出版|发布|问世"

PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    "en": (
        Pattern(
            sentence=re.compile(
                rf"{_EN_NO_START}{_EN_NAME} (?P<be>was|were) (?P<done>{_EN_DONE}) (?P<rest>.*)"
            ),
            question=_en_when,
        ),
        Pattern(
            sentence=re.compile(
                rf"{_EN_NO_START}{_EN_NAME} (?P<be>was|were) (?P<done>{_EN_DONE})"
                r"(?: (?:in|on|around) [\w ,]{1,24}?)? by (?:the )?[A-Z](?P<rest>.*)"
            ),
            question=_en_whom,
        ),
        Pattern(
            sentence=re.compile(
                rf"{_EN_NO_START}{_EN_NAME} (?P<be>is|are|was|were)"
                r" (?P<rest>(?:an?|the|one of|any) .*)"
            ),
            question=_en_what,
        ),
        Pattern(
            sentence=re.compile(rf"In (?P<year>{_YEAR}),? .*"),
            question=_year("What happened in {}?"),
        ),
    ),
    "de": (
        Pattern(sentence=_DE_PASSIVE, question=_de_when),
        Pattern(sentence=_DE_PASSIVE, question=_de_whom),
        Pattern(
            sentence=re.compile(
                rf"{_DE_NO_START}{_DE_NAME} (?P<be>ist|sind|war|waren)"
                r" (?P<rest>(?:eine?|einer der|eines der|eine der|der|die|das) .*)"
            ),
            question=_de_what,
        ),
        Pattern(
            sentence=re.compile(rf"Im Jahre? (?P<year>{_YEAR}) .*"),
            question=_year("Was geschah im Jahr {}?"),
        ),
    ),
    "zh": (
        Pattern(
            sentence=re.compile(
                rf"{_ZH_NO_START}{_ZH_NAME}(?:于|在)[^，。]{{0,12}}\d{{4}}年[^，。]{{0,12}}?(?P<done>{_ZH_DONE}).*"
            ),
            question=_zh_when,
        ),
        Pattern(
            sentence=re.compile(
                rf"{_ZH_NO_START}{_ZH_NAME}(?P<done>{_ZH_DONE})于[^，。]{{0,12}}\d{{4}}年.*"
            ),
            question=_zh_when,
        ),
        Pattern(
            sentence=re.compile(
                rf"{_ZH_NO_START}{_ZH_NAME}是(?P<kind>一[种種个個位座项名家条部款类类]|指|世界|全球|最|由).*"
            ),
            question=_zh_what,
        ),
        Pattern(
            sentence=re.compile(r"(?:在)?(?P<year>1[0-9]{3}|20[0-9]{2})年，.*"),
            question=_year("{}年发生了什么？"),
        ),
    ),
    "fr": (
        Pattern(
            sentence=re.compile(rf"{_BARE_NAME} est (?:une?|l[ea]) .*"),
            question=_named("Qu’est-ce que « {} » ?"),
        ),
    ),
    "es": (
        Pattern(
            sentence=re.compile(rf"{_BARE_NAME} es (?:una?|el|la) .*"),
            question=_named("¿Qué es «{}»?"),
        ),
    ),
    "it": (
        Pattern(
            sentence=re.compile(rf"{_BARE_NAME} è (?:una?|uno|il|la|lo) .*"),
            question=_named("Che cos’è «{}»?"),
        ),
    ),
    "pt": (
        Pattern(
            sentence=re.compile(rf"{_BARE_NAME} é (?:uma?|o|a) .*"),
            question=_named("O que é “{}”?"),
        ),
    ),
    "nl": (
        Pattern(
            sentence=re.compile(rf"{_BARE_NAME} is (?:een|de|het) .*"),
            question=_named("Wat is “{}”?"),
        ),
    ),
    "ru": (
        Pattern(
            sentence=re.compile(
                r"(?P<x>[А-ЯЁ][\w\-]+(?: [\w\-]+){0,2})(?: ?\([^()]{1,80}\))? — (?:это )?\w.*"
            ),
            question=lambda match: f"Что такое «{match['x']}»?",
        ),
    ),
    "ja": (
        Pattern(
            sentence=re.compile(r"(?P<x>[^\s、。（）「」]{2,16})(?:（[^（）]{1,60}）)?とは、?.*"),
            question=lambda match: f"{match['x']}とは何ですか？",
        ),
    ),
}
"""By language, the best first; all are matched at the start of a sentence."""

ABOUT: Final = {
    "en": "What is said about “{}”?",
    "de": "Was wird über „{}“ gesagt?",
    "zh": "关于“{}”说了什么？",
    "fr": "Que dit-on sur « {} » ?",
    "es": "¿Qué se dice sobre «{}»?",
    "it": "Che cosa si dice su «{}»?",
    "pt": "O que se diz sobre “{}”?",
    "nl": "Wat wordt er over “{}” gezegd?",
    "ru": "Что говорится о теме «{}»?",
    "ja": "「{}」について何が書かれていますか？",
}
WITHIN: Final = {
    "en": "What does “{1}” say about “{0}”?",
    "de": "Was sagt „{1}“ über „{0}“?",
    "zh": "“{1}”关于“{0}”说了什么？",
    "fr": "Que dit « {1} » sur « {0} » ?",
    "es": "¿Qué dice «{1}» sobre «{0}»?",
    "it": "Che cosa dice «{1}» su «{0}»?",
    "pt": "O que diz “{1}” sobre “{0}”?",
    "nl": "Wat zegt “{1}” over “{0}”?",
    "ru": "Что в тексте «{1}» говорится о теме «{0}»?",
    "ja": "「{1}」は「{0}」について何を述べていますか？",
}
"""0 is what is asked about, 1 the document or the heading it stands under."""
DOCUMENT: Final = {
    "en": "Which document is about “{}”?",
    "de": "In welchem Dokument geht es um „{}“?",
    "zh": "哪份文档讲的是“{}”？",
    "fr": "Quel document parle de « {} » ?",
    "es": "¿Qué documento trata de «{}»?",
    "it": "Quale documento parla di «{}»?",
    "pt": "Que documento trata de “{}”?",
    "nl": "Welk document gaat over “{}”?",
    "ru": "В каком документе речь идёт о темах «{}»?",
    "ja": "「{}」についての文書はどれですか？",
}
NEUTRAL: Final = "{}?"
"""For every other language."""
AND: Final = {
    "en": ("”, “", "” and “"),
    "de": ("“, „", "“ und „"),
    "zh": ("”、“", "”和“"),
    "fr": (" », « ", " » et « "),
    "es": ("», «", "» y «"),
    "it": ("», «", "» e «"),
    "pt": ("”, “", "” e “"),
    "nl": ("”, “", "” en “"),
    "ru": ("», «", "», «"),
    "ja": ("」、「", "」と「"),
}
"""Between phrases in quotation marks, and before the last one."""

HOW_TO: Final[dict[str, tuple[re.Pattern[str], str]]] = {
    "en": (re.compile(r"[Hh]ow to (?P<x>[a-z].*)"), "How do I {}?"),
    "zh": (re.compile(r"(?:如何|怎[么样])(?P<x>.+)"), "如何{}？"),
    "fr": (re.compile(r"Comment (?P<x>\w+(?:er|ir|re)\b.*)"), "Comment {} ?"),
    "es": (re.compile(r"Cómo (?P<x>\w+(?:ar|er|ir)\b.*)"), "¿Cómo {}?"),
    "it": (re.compile(r"Come (?P<x>\w+(?:are|ere|ire)\b.*)"), "Come {}?"),
    "pt": (re.compile(r"Como (?P<x>\w+(?:ar|er|ir)\b.*)"), "Como {}?"),
}
GENERIC: Final = frozenset(
    [
        "introduction",
        "overview",
        "summary",
        "conclusion",
        "conclusions",
        "abstract",
        "contents",
        "notes",
        "note",
        "references",
        "see",
        "also",
        "external",
        "links",
        "further",
        "reading",
        "background",
        "general",
        "description",
        "details",
        "example",
        "examples",
        "usage",
        "misc",
        "miscellaneous",
        "other",
        "faq",
        "appendix",
        "changelog",
        "changes",
        "history",
        "todo",
        "index",
        "table",
        "of",
        "contents",
        "readme",
        "about",
        "bibliography",
        "acknowledgements",
        "results",
        "discussion",
        "methods",
        "einleitung",
        "einführung",
        "überblick",
        "zusammenfassung",
        "fazit",
        "inhalt",
        "anmerkungen",
        "literatur",
        "weblinks",
        "siehe",
        "auch",
        "beispiel",
        "beispiele",
        "allgemeines",
        "einzelnachweise",
        "anhang",
        "inhaltsverzeichnis",
        "简介",
        "概述",
        "总结",
        "结论",
        "参考文献",
        "目录",
        "注释",
        "附录",
        "引言",
        "介绍",
        "背景",
        "外部链接",
        "参见",
        "introducción",
        "resumen",
        "conclusión",
        "notas",
        "referencias",
        "résumé",
        "sommaire",
        "références",
    ]
)
"""Headings made of these words alone say what part it is, not what it is about."""
