"""Made-up PDFs in Korean, and in Arabic and Hebrew with words and figures in Latin script.

Rules were tried on "tuning" alone; the halves have no sentence in common.
"""

import io
import os
import random
import re
import shutil
import subprocess
import tempfile
from collections import Counter

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas

KOREAN = {
    "tuning": """
        항구의 등대는 해마다 봄이 오면 새로 칠해진다.
        작은 배들은 아침 아홉 시에 부두를 떠나 가까운 섬으로 향한다.
        선원들은 밧줄을 손질하고 그물을 말리며 날씨를 살핀다.
        여름에는 관광객이 많아서 배가 하루에 여섯 번 다닌다.
        표는 부두 앞 매표소에서 살 수 있으며 어린이는 반값이다.
        이 보고서는 지난해 항만의 운영 결과를 정리한 것이다.
        위원회는 예산안을 검토한 뒤에 다음 회의에서 의견을 내기로 하였다.
        화물의 양은 전년보다 크게 늘었지만 비용은 줄었다.
        새로운 규정에 따라 모든 선박은 출항하기 전에 점검을 받아야 한다.
        점검을 받지 않은 선박은 항구를 떠날 수 없습니다.
        연구자들은 바닷물의 온도가 계절에 따라 어떻게 달라지는지 조사하였다.
        조사 결과는 다음 표에 나타낸 바와 같다.
        학교에서 돌아온 아이들이 모래사장에서 연을 날리고 있었다.
        할머니는 시장에서 생선과 채소를 사서 집으로 돌아왔다.
    """,
    "confirming": """
        도서관은 월요일을 제외하고 매일 오전 열 시에 문을 연다.
        책을 빌리려면 먼저 회원증을 만들어야 하며 수수료는 없다.
        산길을 따라 한참 걸으면 오래된 절이 나타나고 그 뒤에는 맑은 샘이 있다.
        마을 사람들은 가을마다 감을 따서 말린다.
        정부는 내년부터 전기 자동차에 대한 지원을 확대하겠다고 밝혔다.
        전문가들은 이번 정책이 시장에 큰 영향을 줄 것으로 본다.
        계약서의 내용을 변경하려는 경우에는 양쪽의 서면 동의가 필요하다.
        임차인은 계약이 끝나기 한 달 전에 통지해야 합니다.
        컴퓨터 프로그램은 자료를 읽어서 계산한 다음 결과를 화면에 보여 준다.
        사용자는 설정 파일에서 언어를 바꿀 수 있습니다.
        눈이 많이 내린 아침에는 버스가 늦게 와서 많은 사람이 지각하였다.
        시청 직원들이 도로의 눈을 치우느라 바쁘게 움직였다.
        음악회는 저녁 일곱 시에 시작되며 공연이 끝난 후에는 작은 모임이 있다.
        입장권은 인터넷으로 미리 예매하는 것이 좋다.
    """,
}
MIXED = {
    "tuning": """
        استخدم لغة Python من أجل كتابة البرامج الصغيرة ثم شغلها على أي جهاز.
        مكتبة NumPy سريعة والإصدار 3.11 جديد (في عام 2024) وهي تعمل مع pandas بسهولة كبيرة.
        ارتفعت المبيعات بنسبة 25% في السوق خلال الربع الأول من عام 2023 مقارنة بالعام السابق.
        يمكن تنزيل الملف من الموقع example.org ثم فتحه في برنامج LibreOffice Writer على نظام Linux.
        تاريخ الاجتماع هو 12/05/2024 في الساعة 10:30 صباحا في مدينة القاهرة.
        השתמשו בשפת Python כדי לכתוב תוכניות קטנות (גרסה 3.11) ולהריץ אותן על כל מחשב.
        המחיר עלה ב-15% בשנת 2023 לפי הדוח של חברת Acme Corp בתל אביב.
        The word سلام means peace, and كتاب means book in this old text.
    """,
    "confirming": """
        تدعم قاعدة البيانات PostgreSQL البحث عن النصوص (بما في ذلك UTF-8) منذ الإصدار 8.3 تقريبا.
        بلغ عدد السكان 4,500,000 نسمة في عام 2020 أي بزيادة 7% عن التعداد الماضي.
        اتصل بنا على الرقم 555-0199 أو عبر البريد info@example.org في أي وقت.
        تستخدم الشركة أجهزة ThinkPad وشاشات Dell في مكاتبها الجديدة [انظر الملحق] قرب الميناء.
        שלחו את הטופס בדואר אלקטרוני אל office@example.org עד יום 30/06/2024 (לא יאוחר).
        מערכת Windows 11 פועלת לצד Ubuntu 24.04 על אותו מחשב נייד חדש.
        הספרייה פתוחה בימים רגילים בין 9:00 ל-17:00 בכל ימות השנה.
        In Hebrew the word שלום is said both when people meet and when they part.
    """,
}
_FONT = "DejaVuSans.ttf"
_FONT_FOLDERS = ("/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/dejavu")
_OPEN = "urn:oasis:names:tc:opendocument:xmlns:"


def _lines(text, width, *, anywhere):
    """Lines of a width in points, broken between words or in them."""
    lines, line = [], ""
    for piece in text if anywhere else re.findall(r"\S+ ?", text):
        if pdfmetrics.stringWidth(line + piece.rstrip(), "HYSMyeongJo-Medium", 10) > width:
            lines, line = [*lines, line], ""
        line += piece
    return [*lines, line]


def korean(half, variants):
    """PDFs, and the paragraphs that are in each."""
    pdfmetrics.registerFont(UnicodeCIDFont("HYSMyeongJo-Medium"))
    sentences = [line.strip() for line in KOREAN[half].strip().splitlines()]
    for number in range(variants):
        chance = random.Random(f"{half} {number}")
        width = chance.randint(200, 400)
        anywhere, drawn = number % 3 != 0, number % 2 == 0
        buffer = io.BytesIO()
        page = canvas.Canvas(buffer)
        page.setFont("HYSMyeongJo-Medium", 10)
        place, paragraphs = 800, []
        for _ in range(chance.randint(1, 4)):
            paragraph = " ".join(chance.sample(sentences, chance.randint(3, 7)))
            paragraphs.append(paragraph)
            for line in _lines(paragraph, width, anywhere=anywhere):
                # A program that breaks words anywhere lets no space begin a line.
                page.drawString(60, place, line if drawn else line.strip())
                place -= 14
            place -= 14
        page.save()
        yield buffer.getvalue(), paragraphs


def ends_right(text, paragraphs):
    """Of the places where words may part in some paragraphs, how many are wrong in a text.

    Returns:
        Wrong ones, and how many paragraphs are there to a letter.
    """
    found = " ".join(text.split())
    packed = found.replace(" ", "")
    wrong = whole = 0
    for paragraph in paragraphs:
        at = packed.find(paragraph.replace(" ", ""))
        if at < 0:
            wrong += paragraph.count(" ")
            continue
        spaces = _spaces(found, at, len(paragraph.replace(" ", "")))
        wanted = _spaces(paragraph, 0, len(paragraph.replace(" ", "")))
        wrong += len(spaces ^ wanted)
        whole += spaces == wanted
    return wrong, whole


def _spaces(text, start, length):
    places, at = set(), 0
    for sign in text:
        if sign != " ":
            at += 1
        elif start < at < start + length:
            places.add(at - start)
    return places


def mixed(half):
    """PDFs with lines of two directions by what wrote them, and their sentences."""
    sentences = [line.strip() for line in MIXED[half].strip().splitlines()]
    if shutil.which("soffice"):
        yield "LibreOffice", _by_office(sentences), sentences
    if drawn := _drawn(sentences):
        yield "signs drawn in the order seen", drawn, sentences


def _by_office(sentences):
    spaces = " ".join(
        f'xmlns:{name}="{_OPEN}{space}:1.0"'
        for name, space in [
            *[(each, each) for each in ("office", "text", "style")],
            ("fo", "xsl-fo-compatible"),
        ]
    )
    style = '<style:style style:name="R" style:family="paragraph"><style:paragraph-properties'
    style += ' style:writing-mode="rl-tb" fo:text-align="start"/></style:style>'
    body = "".join(
        f'<text:p text:style-name="{"L" if one[0].isascii() else "R"}">{one}</text:p><text:p/>'
        for one in sentences
    )
    document = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {spaces} office:version="1.2"'
        ' office:mimetype="application/vnd.oasis.opendocument.text">'
        f"<office:automatic-styles>{style}</office:automatic-styles><office:body><office:text>"
        f"{body}</office:text></office:body></office:document>"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.fodt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(document)
        subprocess.run(
            [
                *("soffice", f"-env:UserInstallation=file://{folder}/user", "--headless"),
                *("--convert-to", "pdf", "--outdir", folder, path),
            ],
            check=True,
            capture_output=True,
        )
        with open(os.path.join(folder, "a.pdf"), "rb") as file:
            return file.read()


_LETTER = "\u0590-\u08ff"
_LEFT_RUN = re.compile(rf"[^\s{_LETTER}()\[\].,](?:[^{_LETTER}()\[\]]*[^\s{_LETTER}()\[\].,])?")
_TURNED = str.maketrans("()[]", ")(][")


def _as_seen(line):
    """A line whose main direction is to the left, its signs from left to right."""
    seen, at = [], 0
    for run in _LEFT_RUN.finditer(line):
        words = run[0]
        if line[0] >= "\u0600" and re.fullmatch("[0-9-]+", words):
            words = "-".join(reversed(words.split("-")))  # with Arabic each number is for itself
        seen += [line[at : run.start()].translate(_TURNED)[::-1], words]
        at = run.end()
    return "".join([*seen, line[at:].translate(_TURNED)[::-1]][::-1])


def _drawn(sentences):
    path = next(
        (
            each
            for each in (os.path.join(one, _FONT) for one in _FONT_FOLDERS)
            if os.path.exists(each)
        ),
        "",
    )
    if not path:
        return b""
    pdfmetrics.registerFont(TTFont("Seen", path))
    buffer = io.BytesIO()
    page = canvas.Canvas(buffer)
    page.setFont("Seen", 9)
    for number, one in enumerate(sentences):
        place = 780 - 30 * number
        if one[0].isascii():
            page.drawString(60, place, re.sub(f"[{_LETTER}]+", lambda run: run[0][::-1], one))
        else:
            page.drawRightString(540, place, _as_seen(one))
    page.save()
    return buffer.getvalue()


def words_in_order(text, sentences):
    """How many sentences are there word for word, and how many of their words are there."""
    found = " ".join(text.split())
    there = Counter(found.split())
    wanted = Counter(word for one in sentences for word in one.split())
    return sum(one in found for one in sentences), (wanted & there).total() / wanted.total()
