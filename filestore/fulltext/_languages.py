"""In which language a text or a question is, and which words of a question are words of grammar.

One rule: what is grammar in one language may be a thing in another ("die", "war", "or"), so words
are judged together, by the language that most of them speak.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

from filestore.fulltext._analysis import DEFAULT_LANGUAGE, LANGUAGES, WORD, clean
from filestore.fulltext._query import ParsedQuery

_SAMPLE_CHARACTERS: Final = 800
_SURE: Final = 3.0
"""How many different words of grammar tell in which language a text is."""
_CLEAR: Final = 2.0
"""How many do where no other language has nearly as many."""
_SHARE: Final = 0.12
"""The least share of a text's different words that are words of grammar; code has a few of any."""
_JOINING: Final = {"finnish": 0.04, "hungarian": 0.04, "turkish": 0.04}
"""Languages that join them to words have fewer."""
_SCRIPTS: Final = {
    "greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "russian": re.compile("[\u0400-\u052f]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    DEFAULT_LANGUAGE: re.compile("[\u0590-\u05ff\u0900-\u1eff\u3040-\ud7af]"),
}
"""Of scripts without a stemmer none is spoilt by the English one."""
_OWN_SCRIPT: Final = frozenset(
    {"arabic", "greek", "hebrew", "hindi", "persian", "russian", "ukrainian"}
)
# In UTF-8 Greek, Cyrillic and Arabic begin with other bytes than Latin and typographic signs.
_OTHER_BYTES: Final = bytes(code for code in range(256) if code < 0xCD or code in (0xE1, 0xE2))
_LATIN: Final = re.compile("[a-zA-Z\u00c0-\u024f]")
_PIECES: Final = re.compile(rf"{WORD.pattern}(?:['\u2019]{WORD.pattern})*+")


@cache
def _languages_by_word() -> dict[str, tuple[tuple[str, ...], float]]:
    things = frozenset(_ALSO_THINGS.split())
    found: dict[str, list[str]] = {}
    for language, words in _WORDS.items():
        for word in clean(words).split():
            found.setdefault(word, []).append(language)
    return {
        word: (tuple(languages), 0.5 if word in things else 1.0)
        for word, languages in found.items()
    }


def _votes(words: set[str]) -> dict[str, float]:
    """How much some words speak for each language."""
    known = _languages_by_word()
    votes: dict[str, float] = defaultdict(float)
    for word in known.keys() & words:
        languages, weight = known[word]
        for language in languages:
            votes[language] += weight
    return votes


def language_of(text: str, otherwise: str = DEFAULT_LANGUAGE) -> str:
    """The language of a text: that of its script, or else of its words of grammar.

    Args:
        text: As `clean` returned it; its beginning decides.
        otherwise: What to return where that is not clear.

    Returns:
        One of `LANGUAGES`, the name of a Snowball stemmer; English for a language without one.
    """
    sample = text[:_SAMPLE_CHARACTERS]
    if sample.count(" the ") >= _SURE:
        return DEFAULT_LANGUAGE
    if not sample.isascii() and sample.encode("utf-8", "replace").translate(None, _OTHER_BYTES):
        latin = len(_LATIN.findall(sample))
        for language, letters in _SCRIPTS.items():
            if len(letters.findall(sample)) > latin:
                return language
    words = set(sample.lower().split())
    votes = _votes(words)
    if not votes:
        return otherwise
    best = max(votes, key=lambda one: (votes[one], one == DEFAULT_LANGUAGE, one))
    others = max((count for one, count in votes.items() if one != best), default=0.0)
    least = _CLEAR if votes[best] - others >= 1.0 else _SURE
    if votes[best] < max(least, len(words) * _JOINING.get(best, _SHARE)):
        return otherwise
    return best if best in LANGUAGES else DEFAULT_LANGUAGE


def main_of(languages: Mapping[str, int]) -> str:
    """The language of most texts, the first by name of several; English where there is none."""
    return min(languages, key=lambda one: (-languages[one], one), default=DEFAULT_LANGUAGE)


def without(grammar: frozenset[str], text: str) -> str:
    """A text without some words."""
    if not grammar:
        return text
    return WORD.sub(lambda word: "" if word[0] in grammar else word[0], text)


def grammar_of(query: ParsedQuery, languages: Sequence[str]) -> frozenset[str]:
    """The words of grammar among the plain words of a query, as the index reads them and as typed.

    Args:
        query: As `parse_query` gave it.
        languages: Those of the texts, the most frequent first.

    Returns:
        None of them where there is nothing else: who types "to be or not to be" wants just that.
    """
    plain = tuple(clause.text for clause in query.clauses if clause.is_plain_word)
    wanted = len(query.wanted())
    if wanted < 2 and all(map(str.isalnum, plain)):
        return frozenset()
    found, is_all = grammar_in(plain, tuple(languages) or (DEFAULT_LANGUAGE,))
    return frozenset() if is_all and len(plain) == wanted else found


@lru_cache(64)
def grammar_in(texts: tuple[str, ...], languages: tuple[str, ...]) -> tuple[frozenset[str], bool]:
    """Which words of some texts are words of grammar, and whether all are."""
    words = [_PIECES.findall(clean(text)) for text in texts]
    pieces = [piece for found in words for piece in found]
    is_shouted = not any(piece[0].islower() for piece in pieces)
    forms: dict[str, dict[str, str]] = {}
    for found in words:
        for piece in found:
            is_plain = is_shouted or (not forms and not piece[1:].isupper())
            # Of A/B neither is an article.
            if len(found) > 1 and len(piece) == 1 and piece.isupper():
                forms[piece] = {}
            forms.setdefault(piece, dict(_forms(piece, is_plain=is_plain)))
    votes = _votes({form for found in forms.values() for form in found.values()})
    places = {one: -place for place, one in enumerate(languages)}
    last = -len(languages)
    language = max(
        votes, key=lambda one: (votes[one], places.get(one, last), one), default=DEFAULT_LANGUAGE
    )
    is_known = language in languages or language in _OWN_SCRIPT
    if votes[language] < (0.5 if language == languages[0] else 1.0 if is_known else 2.0):
        return frozenset(), False
    known = _languages_by_word()
    grammar = {
        part
        for found in forms.values()
        for part, form in found.items()
        if language in known.get(form, ((),))[0]
    }
    parts = {part for piece in pieces for part in WORD.findall(piece)}
    return frozenset(grammar), all(words) and grammar.issuperset(parts)


def _forms(piece: str, *, is_plain: bool) -> Iterator[tuple[str, str]]:
    """The parts of a word as they are typed, each with the word of a list that it may be.

    Args:
        piece: Letters, or some joined by apostrophes.
        is_plain: Whether a capital says nothing: it begins a sentence. Else one is of a name, as in
            IT, WHO, The Who.
    """
    known = _languages_by_word()
    parts = piece.replace("\u2019", "'").split("'")
    whole = "'".join(parts)
    if is_plain and whole not in known:
        whole = whole.lower()
    if whole in known:
        yield from ((part, whole) for part in parts)
    elif len(parts) == 2:
        first, second = whole.split("'")
        yield parts[0], f"{first}'" if f"{first}'" in known else first
        yield parts[1], f"'{second}" if f"'{second}" in known else second


_WORDS: Final = {
    "english": """a about above after again against all am an and any are aren't as at be because
        been before being below between both but by can can't cannot could couldn't did didn't do
        does doesn't doing don't down during each for from further had has have haven't having he
        her here hers herself him himself his how how's i if in into is isn't it it's its itself me
        might must my myself no nor not of off on once only or ought our ours ourselves over own
        shall she should so some such than that that's the their theirs them themselves then there
        there's these they this those through to too under until up upon us very via was wasn't we
        were weren't what what's when where where's which while who who's whom whose why will with
        within without won't would wouldn't you your yours yourself yourselves I I'm I'd I'll I've
        i'm i've i'll may whether per 's 'll 're 've 'd 'm""",
    "german": """aber alle allem allen aller alles als also am an ander andere anderem anderen
        anderer anderes auch auf aus bei beim bin bis bist da damit dann darf das dass dein deine
        dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch dort du durch
        ein eine einem einen einer eines er es etwas euch euer eure falls für gegen hab habe haben
        hat hatte hatten ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede
        jedem jeden jeder jedes jener kann kannst kein keine keinem keinen keiner können könnte man
        mein meine meinem meinen meiner mich mir mit muss müssen nach nicht nichts noch nur ob oder
        ohne sehr sein seine seinem seinen seiner seit sich sie sind so soll sollen sollte sondern
        sonst um und uns unser unsere unter vom von vor wann war waren warum was weil welche welchem
        welchen welcher welches wenn wer werde werden wem wen weshalb wie wieso will wir wird wo
        woher wohin wurde wurden während über zu zum zur zwar zwischen Sie Ihnen Ihr Ihre Ihren
        Ihrem Ihrer möchte darum dazu davon dafür wodurch wozu womit""",
    "french": """a à afin ai ainsi as au aucun aucune aussi autre autres aux avait avant avec avez
        avoir avons c' ce ceci cela celle celles celui ces cet cette ceux chaque chez ci comme
        comment d' dans de des depuis dès dois doit donc dont du elle elles en entre est et étaient
        était étant être eu eux faut font fut il ils j' je jusqu' jusque l' la là le les leur leurs
        lors lorsque lorsqu' lui m' ma mais me même mes moi mon n' ne ni nos notre nous on ont où
        par parce pas pendant peut peuvent plus pour pourquoi puis puisque qu' quand que quel quelle
        quelles quels qui quoi s' sa sans se sera ses si soit son sont sous sur t' ta te tes toi ton
        tous tout toute toutes très tu un une vers via voici vos votre vous y""",
    "spanish": """a al algo alguna algunas alguno algunos ante antes aquel aquella aunque bajo cada
        como con cómo contra cual cuales cualquier cuando cuál cuáles cuándo cuánto cuya cuyo de del
        desde donde durante dónde e el ella ellas ellos en entre era eran es esa esas ese eso esos
        esta estaba estar estas este esto estos está están fue fueron ha haber hace hacia han hasta
        hay he la las le les lo los me mi mientras mis muy más mí nada ni no nos nosotros nuestra
        nuestro o os otra otras otro otros para pero por porque pueda puede pueden puedo que qué
        quien quienes quién se sea según ser si sido sin sobre solo son su sus sí también tan te
        tiene tienen todo todos tu tus un una unas uno unos y ya yo él usted debe debo""",
    "italian": """a ad agli ai al alla all' alle allo anche anzi avere aveva c' che chi ci ciò coi
        col come con contro cosa cui d' da dagli dai dal dall' dalla dalle dallo degli dei del dell'
        della delle dello di do dopo dove durante è e ed era erano essere esso fino fra fu già gli
        ha hai hanno ho i il in io l' la le lei li lo loro lui ma me mi mia mio molto ne né negli
        nei nel nell' nella nelle nello no noi non nostra nostro o ogni per perché però più può
        possono posso prima qual quale quali quando quanto quella quelle quelli quello questa queste
        questi questo qui s' se sei senza si sia siamo sono sotto stata stati stato su sua sue sugli
        sui sul sull' sulla sulle suo suoi tra tu tutti tutto un una uno vi voi""",
    "portuguese": """a à ao aos após as às até cada com como contra da das de dela dele deles depois
        desde deve devo do dos durante e é ela elas ele eles em entre era eram essa esse esta este
        está estão eu foi foram há isso isto já lhe mais mas me mesmo meu minha muito na não nas nem
        no nos nós nossa nosso num numa o onde os ou para pela pelas pelo pelos pode podem por
        porque porquê posso qual quais quando que quem qualquer quê são se sem ser seu seus seja sob
        sobre sua suas só também te tem têm ter tu tudo um uma umas uns você vocês""",
    "dutch": """aan al alle als ander andere bij binnen dan dat de deze die dit door daar daarom
        doen doet dus een en er ge geen had heb hebben heeft hem het hier hij hoe hun iemand iets ik
        in is ja je jij jouw jullie kan kunnen kun me meer men met mij mijn moet moeten na naar niet
        niets nog nu of om omdat onder ons onze ook op over te tegen toch toen tot tussen u uit uw
        van veel voor waar waarom wanneer want waren was wat welke wel werd wie wij worden wordt ze
        zelf zich zij zijn zo zonder zou""",
    "swedish": """alla allt att av blev bli blir då de dem den denna deras dess det detta dig din
        dina ditt du där efter ej eller en er ett från för genom ha hade han har hennes hon honom
        hos hur här i icke in inte innan jag ju kan kunde man med mellan men mig min mina mitt mot
        mycket måste när ni nu och om oss på samma sedan sig sin sina sitt ska skall skulle som så
        till under upp ut utan vad var vara varför varje vart vem vi vid vilka vilken vilket är än
        även åt över""",
    "danish": """ad af alle alt anden at blev blive bliver da de dem den denne der deres det dette
        dig din dine du efter eller en end er et fra før for gennem ham han hans har havde hende her
        hos hun hvad hvem hver hvilke hvilken hvis hvor hvordan hvorfor hvornår i ikke ind jeg jer
        jo kan kunne man med mellem men mig min mine mit må mod ned nogen noget nu når og også om op
        os over på selv sig sin sine sit skal skulle som så sådan til ud uden under var ved vi vil
        ville være været""",
    "norwegian": """alle at av begge ble bli blir da de deg dem den denne der deres det dette din
        dine ditt du då eg ein eller en enn er et etter ett fra før for gjennom ha hadde han har
        henne her hos hun hva hvem hver hvilke hvilken hvis hvor hvordan hvorfor i ikke ikkje inn
        jeg kan kunne man med meg mellom men min mine mitt mot må ned noe noen nå når og også om opp
        oss over på seg selv sin sine sitt skal skulle som så til ut uten under var ved vi vil ville
        vår være vært""",
    "finnish": """ei eivät emme en ennen eri et että hän he heidän ja johon joihin joiden joissa
        joita joka jolla jonka jos jossa josta jota jotka juuri kaikki kanssa kautta keskellä koska
        kuin kuinka kuka kun kuten lähellä me meidän mikä mikäli miksi milloin millä minä minun
        missä mistä miten mitä mukaan mutta myös ne nämä niiden niin niitä noin nyt ole oli olivat
        olla olen on ovat se sekä sen sillä sinä sitä siellä siitä tai taas tämä tämän tässä te tuo
        vaan vai vain vaikka voi voiko voin voit yli""",
    "hungarian": """a az abban ahol ahogy ahhoz aki akik akkor alatt által ami amely amelyek amikor
        amit annak arra át azok azonban azt be bele belül benne cikk csak de e ebben egy egyes egyik
        el előtt én és ez ezek ezen ezt fel felé ha hanem hogy hogyan hol ide ill is itt jobban ki
        kívül le legyen lesz lehet között már meg még mely melyek mert mi miért mikor milyen minden
        mint mit nagyon ne nekem nem nincs olyan ott össze ő ők pedig s saját sem során szerint
        számára te tehát több úgy újra után utána vagy vagyok valami van vannak vele volt voltak""",
    "romanian": """a această acest aceasta aceste acestea acestei acestui acești acel acela ai al
        ale am ar are aș asupra atunci au avea ca că care ce cel cele celor cei cine către când cât
        cu cum dacă dar de decât deci deși din după ea ei el ele este eu fără fi fie fiind fost iar
        în îi îl își îmi între la le lor lui mai mea mei meu mi nici noi nu o ori pe pentru până
        prin poate pot sa să sale sau se și spre sub sunt te toate tot toți tu un una unde unei unui
        unele vă vei vom vor""",
    "russian": """а без более бы был была были было быть в вам вас весь во вот все всего всех вы где
        да даже для до его ее ей ему если есть еще же за здесь и из или им их к каждый как какая
        какие какой какую когда кого кому который которая которое которые которых кто куда ли либо
        между меня мне может могу можно мой моя мы на над надо не него нее ней нельзя нет ни них но
        ну нужно о об однако он она они оно от откуда очень по под после потому почему при про с сам
        свой свои себя со так также такой там те тем то того тоже той только том тот ты у уже чего
        чем что чтобы чья эта эти это этого этой этом этот я""",
    "turkish": """acaba ama ancak aslında bana bazı belki ben beni benim bile bir biri biz bize
        bizim bu buna bunda bunlar bunu bunun burada çok çünkü da daha dahi de defa değil diğer diye
        dolayı en fakat gibi göre hangi hangisi hem hep her hiç için ile ilgili ise kadar kendi ki
        kim kime mı mi mu mü nasıl ne neden nedir nerede nereye niçin niye o olan olarak oldu olduğu
        olur on ona onlar onu onun orada ve veya var varsa ya yani yok yoksa siz sizin şey şu sonra
        tüm üzere""",
    "greek": """αλλα αν αντι απο αρα αυτα αυτες αυτη αυτο αυτοι αυτος αυτου αυτων για γιατι δε δεν
        δια εαν ειμαι ειναι εισαι ειχε εκεινος εκει ενα ενας ενος επι ετσι εχει εχω εχουν η ηταν θα
        ι ισως κ και καθε κατα κι μα με μετα μεσα μη μην μια μας μου μπορει μπορω να ο οι ολα ομως
        οποια οποιο οποιος οπου οπως οσο οταν οτι ουτε παρα περι πιο ποια ποιο ποιος που ποτε πως
        πρεπει προς σας σαν σε στα στη στην στις στο στον στους συ σου τα τη την της τι τις το τον
        τοτε του τους των ως υπο""",
    "arabic": """آل الذي الذين التي ان او اذا الا الى اما اي اين ايضا اكثر بعد بعض بل بها به بين
        بينما بهذا تحت تكون تم تلك ثم حتى حول حيث خلال دون ذلك سوف ضد عبر على عليه عليها عن عند
        عندما غير فان فقد فوق في فيه فيها قبل قد كان كانت كل كم كما كيف لا لان لدى لذلك لقد لكن لم
        لماذا لن له لها لهم ليس ما ماذا متى مثل مع من منذ منه منها نحن نحو هذا هذه هل هم هنا هناك هو
        هي و وقد وكان وفي ومن ولا وهو وهي يا يكون يمكن""",
    "polish": """a albo ale ani aby bardzo bez będzie bo by być był była było były ci co czego czy
        dla do dlaczego dlatego gdy gdzie go i ich ile im inne innych iż ja jak jaki jakie jako je
        jego jej jemu jest jestem jeśli jeszcze każdy kiedy kto która które którego której który
        których którzy lub ma mi mnie mogę można może mój my na nad nam nas nie niego nich nim niż o
        od on ona one oni oraz po pod ponieważ poza przed przez przy są sam się skąd ta tak także
        tam te tego tej ten też to tu tych tylko tym u w we więc wszystkie z za ze że""",
    "czech": """a aby ale ani asi az až bez bude by byl byla byli bylo být co což či do ho i jak
        jaký jaké jako je jeho její jejich jen jenž ještě jestli ji jí již jsem jsme jsou k kam
        každý kde kdo kdy když který která které kterou ke má mezi mi mít můj může mohu můžu na nad
        nebo není než o od on ona oni pak po pod podle pokud pro proč proto protože před přes při s
        se si sice své svůj ta tak také tam ten tento tato toto to toho tom tomu tu ty u už v ve
        však vše všechno z za že""",
    "ukrainian": """або адже але без би був була були було бути в вас вже ви від він вона вони воно
        все всі де для до є же з за зі і із її їй їм їх й його коли кого кому куди ким між мене мені
        ми мій можна може на над нас не неї немає ні ніж о один під після по при про с сам свій себе
        собі та так також там те ти тим то того той тому тут у хто це цей цього ця ці чи чому через
        що щоб який яка яке які як якщо я""",
    "hindi": """अगर अपना अपने अब आप इन इस इसका इसके इसे उन उनका उनके उस उसका उसके एक और कब कर करना
        करने कहाँ का कि किस की कुछ के कैसे को कोई कौन क्या क्यों गया जब जहाँ जैसे जो तक तब तो था थी
        थे द्वारा न नहीं ने पर बाद भी मुझे में मेरा मैं यदि यह यहाँ ये या रहा रहे रही लिए लेकिन वह
        वाले वे सकता सकते सब साथ से हम हर ही हुआ हुई हुए है हैं हो होता होती होते होना""",
    "hebrew": """אבל או אותה אותו אותם אחרי אך אל אלא אלה אם אני אנחנו אשר את אתה באיזה בגלל בין בלי
        גם היא היה היו היתה הוא הם הן הנה זה זאת זו זהו יש כאן כאשר כבר כדי כי כך כל כמה כמו לא לאן
        למה לפני לפי מאיפה מדוע מה מי מן מתי נגד עד על עם עכשיו רק של שלה שלו שלי שם שהוא שהיא תחת
        איך איפה איזה אין ולא""",
    "persian": """اگر او اي این ان اینکه است ایا از اما انها با باید بر براي بسیار بلکه بود بودند به
        بی بین پس پیش تا ترین توان تواند جز چرا چگونه چه چون چیست حتی خود در درباره دیگر را روی زیرا
        شد شده شود کجا کرد کردن کرده کند کدام که کی ما من میان می نیز نیست هر هم همه همین هیچ و ولی
        وی یا یک""",
    "indonesian": """ada adalah agar akan aku anda antara apa apakah atas atau bagaimana bagi bahwa
        banyak belum berapa bisa boleh dalam dan dapat dari dengan di dia dimana harus hanya ini itu
        jika juga kalau kami kamu kapan karena ke kepada ketika kita lagi lebih maka masih mana
        mengapa mereka namun oleh pada para pernah saat sangat saya sebagai sebuah sedang sejak
        seperti serta setelah siapa sudah tanpa tapi tentang terhadap tetapi tidak untuk yaitu
        yang""",
    "vietnamese": """bạn bị bởi các cái cho chúng có còn của cũng cùng đã đang đây để đến đều đó
        được gì hay họ khi không là làm lại lên mà mỗi một này nào nên nếu như những nhưng ở ra rằng
        rất rồi sao sẽ tại thì theo thế tôi trên trong từ và vào vẫn về vì với""",
}
"""Words of grammar by language, our own compilations: articles, pronouns, prepositions,
conjunctions, auxiliary verbs, question words, and what an apostrophe joins to a word. Forms that
are written with a capital have it. Of Greek without accents, of Arabic and Persian without vowel
signs."""
_ALSO_THINGS: Final = """
    die war man hat bin will can may might own son sans comment pour vers est plus font car sea
    con sin come era sei door want men toe dig ham hem go mint volt meg care sub din most or den at
    bad fast gift arm tag ton once here mine per of us it who un no ill cel do as i a c d l s t m n
    j o e u z k v x
"""
"""Words of grammar that are things, names or letters in another language: half as telling."""
