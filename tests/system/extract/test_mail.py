"""Mails: headers, the best text, what is attached and quoted; and hostile ones."""

import random
import re

import pytest

from filestore.extract import ExtractionError, for_name
from tests.advice import advised
from tests.system.extract.damage import changed, read_soundly
from tests.system.extract.mail_files import attach, compound, mail, outlook
from tests.system.extract.office_files import packed, row, workbook

SHEET = packed(workbook({"Costs": row(1, A="Boat", B="Euro") + row(2, A="small", B=12)}))


def read(data, name="a.eml"):
    extractor = for_name(name)
    assert extractor.isolated
    return extractor.extract(data if isinstance(data, bytes) else data.as_bytes(), name=name)


def places(found):
    """What begins at each page."""
    return {page.number: found.text[page.start :].partition("\n")[0] for page in found.pages}


def test_a_mail_is_its_subject_its_people_its_date_and_its_text():
    found = read(mail("Grüße vom Hafen", "Zwölf Boote legen um neun ab.\n", Cc="Zoë <z@x.org>"))
    assert found.title == found.metadata["title"] == "Grüße vom Hafen"
    assert found.metadata["from"] == "Ann Writer <ann@example.org>"
    assert found.metadata["date"] == "2024-05-06T10:00:00+02:00"
    assert found.text == (
        "# Grüße vom Hafen\n\nFrom: Ann Writer <ann@example.org>\nTo: Ben <ben@example.org>\n"
        "Cc: Zoë <z@x.org>\nDate: 2024-05-06T10:00:00+02:00\n\nZwölf Boote legen um neun ab.\n\n"
    )


@pytest.mark.parametrize(
    ("plain", "page", "wanted"),
    [
        ("The boats leave.", "<p>The <b>boats</b> leave.</p>", "\n\nThe boats leave.\n"),
        ("Your program shows no HTML.", "<h1>Fares</h1><p>Twelve euros.", "# Fares\n\nTwelve"),
        ("", "<nav>All of it</nav><div><p>counts here.</p></div>", "counts here."),
        ("a\nb", "", "\n\na\nb\n"),
    ],
)
def test_the_plain_text_is_read_where_it_says_the_same(plain, page, wanted):
    made = mail(text=plain)
    if page:
        made.add_alternative(page, subtype="html")
    assert wanted in read(made).text


def test_a_plain_text_has_no_headings_or_listings_of_its_own():
    found = read(mail(text="# one\nline\n---\n```\n> a quote\n\nend\n"))
    assert "\n\\# one\nline\n\\---\n\\```\n> a quote\n" in found.text


def test_headers_and_text_in_any_charset():
    raw = (
        b"Subject: =?koi8-r?B?8M/S1A==?= =?utf-8?q?_caf=C3=A9?=\nFrom: =?x-none?q?a?= <a@x>\n"
        b"Content-Type: text/plain; charset=iso-8859-2\n\n"
    ) + "źródło".encode("iso8859_2")
    found = read(raw)
    assert found.title == "Порт café"
    assert found.text.endswith("źródło\n\n")
    assert read(b"Subject: caf\xe9\n\nx").title == "café"


def test_attachments_are_documents_of_their_own():
    made = attach(mail(), "costs.xlsx", SHEET)
    made = attach(made, "notes.md", b"# Notes\n\n## Night\n\nLamps.\n", "text/markdown")
    made = attach(made, "run.py", b"# not a heading\nrun()\n")
    made = attach(made, "photo.jpg", b"\xff\xd8", "image/jpeg")
    text = read(made).text
    assert "## Attachment: costs.xlsx\n\n### Costs\n\n| Boat | Euro |\n" in text
    assert "## Attachment: notes.md\n\n### Notes\n\n#### Night\n\nLamps." in text
    assert "## Attachment: run.py\n\n```python\n# not a heading\nrun()\n```" in text
    assert "[Attachment not read: photo.jpg: no extractor reads files of this kind]" in text


def test_a_damaged_attachment_costs_itself_alone():
    text = read(attach(mail(), "costs.xlsx", SHEET[:200])).text
    assert re.search(r"\[Attachment not read: costs\.xlsx: expected .*\]", text)
    assert "leave at noon" in text


@pytest.mark.parametrize(
    "name", ["../../etc/cron.md", "/etc/x.md", "..\\x.md", "C:\\x.md", "~/.ssh/x.md", "a\x01b.md"]
)
def test_a_name_that_holds_a_path_is_refused(name):
    made = attach(mail(), "safe.md", b"# Evil\n")
    raw = made.as_bytes().replace(b'filename="safe.md"', b'filename="' + name.encode() + b'"')
    text = read(raw).text
    assert "Evil" not in text
    assert ": its name holds a path]" in text


QUOTED = "Yes, at nine.\n\nOn Monday Ben wrote:\n" + "".join(f"> line {n}\n" for n in range(9))


def test_a_long_quote_is_folded_and_a_short_one_stays():
    text = read(mail(text=QUOTED)).text
    assert "wrote:\n> line 0\n> [Quoted lines left out: 8]\n" in text
    assert "> when?\n> where?\nNine." in read(mail(text="> when?\n> where?\nNine.\n")).text


def test_a_mail_that_only_quotes_is_left_as_it_is():
    assert "> line 8" in read(mail(text=QUOTED[QUOTED.index(">") :])).text


def test_an_earlier_mail_is_folded_unless_it_is_forwarded():
    below = "See below.\n\n-----Original Message-----\nFrom: Ben\nSubject: x\n\nThe old words.\n"
    assert "[An earlier mail left out, lines: 5]" in read(mail(text=below)).text
    assert "old words" not in read(mail("Re: x", below)).text
    assert "old words" in read(mail("Fwd: x", below)).text


def test_a_quote_of_html_is_folded():
    quote = "".join(f"<p>line {n}</p>" for n in range(6))
    made = mail(text=None)
    made.set_content(f"<p>Yes.</p><blockquote>{quote}</blockquote>", subtype="html")
    assert "> line 0\n> [Quoted lines left out: 10]" in read(made).text


def test_a_mailbox_is_a_section_and_a_page_a_mail():
    box = b"".join(
        b"From ann@example.org Mon May  6 10:00:00 2024\n"
        + mail(f"Mail {n}", f"Boat {n}.\n\n>From here on quiet.\n").as_bytes()
        + b"\n"
        for n in range(3)
    )
    found = read(box, "a.mbox")
    assert places(found) == {1: "# Mail 0", 2: "# Mail 1", 3: "# Mail 2"}
    assert found.text.count("\nFrom here on quiet.\n") == 3
    assert found.title == ""


def test_a_saved_page_is_its_page():
    made = mail("Ferries", text=None, Snapshot_Content_Location="https://example.org/f")
    made.set_content(
        "<html><head><title>Ferry times</title></head><body><nav>Menu</nav><main><h1>Ferries"
        "</h1><p>At nine.</p></main></body></html>",
        subtype="html",
    )
    found = read(made, "page.mhtml")
    assert found.text.strip() == "# Ferries\n\nAt nine."
    assert found.metadata["title"] == "Ferry times"
    assert found.metadata["url"] == "https://example.org/f"


def test_mail_of_outlook():
    inner = outlook(24, subject="Inner", body="The inner words.")
    made = outlook(
        subject="Boats",
        body="At noon.\r\nOr later.",
        sender="Ann",
        address="ann@example.org",
        sent=133594848000000000,
        recipients=[("Ben", "ben@example.org")],
        attachments=[("costs.xlsx", SHEET), ("inner.msg", inner), ("..\\x.md", b"# Evil")],
    )
    found = read(compound(made), "a.msg")
    assert dict(found.metadata) == {
        "title": "Boats",
        "subject": "Boats",
        "from": "Ann <ann@example.org>",
        "to": "Ben <ben@example.org>",
        "date": "2024-05-06T16:00:00+00:00",
    }
    assert "\n\nAt noon.\nOr later.\n\n## Attachment: costs.xlsx\n\n### Costs\n" in found.text
    assert "## Attachment: inner.msg\n\n### Inner\n\nThe inner words." in found.text
    assert "Evil" not in found.text


def test_mail_of_outlook_with_html_and_headers():
    made = outlook(
        subject="x", html=b"<p>caf\xc3\xa9</p>", headers="From: =?utf-8?q?Zo=C3=AB?= <z@x>\r\n"
    )
    found = read(compound(made), "a.msg")
    assert found.metadata["from"] == "Zoë <z@x>"
    assert "caf" in found.text


@pytest.mark.parametrize("name", ["a.eml", "catalog.msg"])
def test_what_only_is_called_a_mail_is_read_as_text(name):
    assert read(b"Just words.\n", name).extractor == "text/2"


# ---- too much, or made to do harm ----------------------------------------------------------------


def nested(depth, wrap):
    made = mail("innermost", "The core.\n")
    for number in range(depth):
        made = wrap(mail(f"level {number}"), made)
    return made


def as_mail(outer, inner):
    outer.add_attachment(inner)
    return outer


def as_file(outer, inner):
    return attach(outer, "inner.eml", inner.as_bytes())


@pytest.mark.parametrize("wrap", [as_mail, as_file])
def test_mails_in_mails_are_read_so_deep_only(wrap):
    assert "The core." in read(nested(4, wrap)).text
    text = read(nested(5, wrap)).text
    assert "The core." not in text
    assert "a mail in 4 others]" in text


def test_more_attachments_than_are_read_are_said():
    made = mail()
    for number in range(220):
        attach(made, f"{number}.md", b"# x\n\nwords\n")
    text = read(made).text
    assert text.count("## Attachment:") == 200
    assert "more than 200 attachments: the others" in text


def hostile():
    deep = "".join(
        f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(3_000)
    )
    yield "deep.eml", ("Subject: x\n" + deep).encode()
    yield "deep.mbox", b"From a Mon May  6 10:00:00 2024\nSubject: x\n" + deep.encode()
    yield "other.msg", b"PK\x03\x04\0"
    yield "empty.msg", b""
    yield "cut.msg", compound(outlook(subject="x", body="y" * 9_000))[:3_000]


@pytest.mark.parametrize(("name", "data"), list(hostile()), ids=[name for name, _ in hostile()])
def test_what_is_made_to_do_harm_is_refused_in_one_sentence(name, data):
    with pytest.raises(ExtractionError) as refusal:
        read(data, name)
    assert refusal.value.message.startswith(name)
    assert "\n" not in refusal.value.message
    assert advised(refusal.value)


def test_a_damaged_mail_of_outlook_is_called_that():
    with pytest.raises(ExtractionError, match=r"damaged: expected a mail of Outlook, found other"):
        read(b"\x01\0" + compound(outlook(subject="x", body="y"))[8:], "a.msg")


def sound():
    full = attach(mail("Boote", QUOTED), "costs.xlsx", SHEET).as_bytes()
    yield "a.eml", full
    yield "a.mbox", b"From a Mon May  6 10:00:00 2024\n" + full + b"\nFrom b 10:00\n" + full
    yield "a.msg", compound(outlook(subject="x", body="words", attachments=[("a.md", b"# y")]))
    yield "a.mht", mail(text=None).as_bytes() + b"Content-Type: text/html\n\n<p>words</p>"


@pytest.mark.parametrize(("name", "data"), list(sound()), ids=[name for name, _ in sound()])
def test_damaged_mails_are_read_or_refused(name, data):
    generator = random.Random(name)
    for _ in range(60):
        read_soundly(for_name(name), changed(generator, data), name)
