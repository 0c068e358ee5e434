"""Mails, mailboxes and saved pages: what a person reads of them, decoded, with what is attached.

An attachment is a document of its own under a heading with its name, as its extractor reads it. One
rule: a name in a mail names nothing on a disk, and whatever is in each other is read so deep only.
"""

import codecs
import datetime
import email
import io
import re
import struct
from collections.abc import Iterator
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, Final

from msgspec import Struct, field

from filestore.core.safe_text import safe_text
from filestore.extract import for_name, language_of
from filestore.extract._html import HtmlExtractor
from filestore.extract.base import (
    UTF8,
    Document,
    EmptyDocumentError,
    ExtractionError,
    Extractor,
    Page,
    TextExtractor,
    attempt,
    decode,
    document_text,
    empty_error,
    json_value,
)
from filestore.extract.fragments import fragment_text
from filestore.extract.markdown import deepened, fenced, prose

_MOST_DEEP: Final = 4
"""Mails in each other that are read."""
_TOO_DEEP: Final = f"a mail in {_MOST_DEEP} others"
_MOST_ATTACHED: Final = 200
"""Attachments of one mail."""
_LONGEST_HEADER: Final = 2_000
_SHORT_QUOTE: Final = 3
"""Lines that an answer may need to be understood."""

_HEADER: Final = re.compile(
    rb"^(?:from|to|cc|date|subject|received|message-id|mime-version|content-type)[ \t]*:",
    re.I | re.M,
)
_COMPOUND: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEAD_BYTES: Final = 65_536
_ARCHIVES: Final = ("mht", "mhtml")
_SHOWN: Final = ("from", "to", "cc", "date")
_POSTMARK: Final = re.compile(
    rb"(?:\A|(?<=\n)\r?\n)From [^\r\n]{0,500}\d\d:\d\d[^\r\n]{0,100}\r?\n"
)
_ESCAPED_FROM: Final = re.compile(rb"^>(?=>*From )", re.M)
_STRANGE_CODECS: Final = frozenset({"idna", "punycode", "undefined"})
_PATH: Final = re.compile(r"(?:^|[/\\])\.\.(?:[/\\]|$)|^[/\\~]|^[a-zA-Z]:|[\x00-\x1f\x7f]")
_SILENT: Final = re.compile(r"image/|application/(?:pgp|pkcs7|x-pkcs7|ms-tnef)")
"""Kinds that a person does not call an attachment where they have no text."""
_UNREADABLE: Final = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, MessageError, OSError),
    *(TypeError, ValueError, struct.error),
)


class Mail(Struct, kw_only=True):
    """One mail as it is read."""

    subject: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    """`from`, `to`, `cc`, and `date` as ISO text, where it has them."""
    plain: str = ""
    page: str = ""
    """The same or something else as HTML."""
    attached: list[tuple[str, "bytes | Mail | str"]] = field(default_factory=list)
    """Name and contents, or why there are none."""


class MailExtractor(Extractor):
    """Mail of the internet and of Outlook, mailboxes, web archives."""

    name = "mail"
    version = 3
    isolated = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Reads headers, the best of its texts, and attachments; see `Extractor.extract`."""
        suffix = _suffix(name)
        is_mail = (
            data.startswith(_COMPOUND) if suffix == "msg" else _HEADER.search(data, 0, _HEAD_BYTES)
        )
        if not is_mail:
            try:
                return TextExtractor().extract(data, name=name)
            except EmptyDocumentError:
                raise
            except ExtractionError as error:
                raise _damaged(name, "other data") if suffix == "msg" else error from error
        if suffix in _ARCHIVES and (page := _saved_page(data, name)):
            return page
        text, title, pages, metadata = "", "", list[Page](), dict[str, Any]()
        try:
            for number, mail in enumerate(_mails(data, name, 0), 1):
                if suffix == "mbox":
                    pages.append(Page(start=len(text), number=number))
                else:
                    title = mail.subject
                    metadata = {"title": title, "subject": title, **mail.headers}
                text += _written(mail, name, 0) + "\n\n"
        except RecursionError as error:
            raise ExtractionError(
                f"{name} is refused: its parts are nested too deeply; save the attached mails"
                " on their own",
            ) from error
        if not text.strip():
            raise empty_error(name, "found a mail without any")
        return Document(
            text=document_text(_sound(text), name=name),
            syntax="markdown",
            metadata={key: json_value(value) for key, value in metadata.items() if value},
            extractor=self.label,
            title=title,
            pages=tuple(pages),
        )


def _sound(text: str) -> str:
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _suffix(name: str) -> str:
    return name.lower().rpartition(".")[2]


def _mails(data: bytes, name: str, depth: int) -> Iterator[Mail]:
    if _suffix(name) == "msg":
        yield _outlook_mail(data, name, depth)
        return
    for one in _parted(data) if _suffix(name) == "mbox" else (data,):
        yield _mail(email.message_from_bytes(one), depth)


def _parted(data: bytes) -> Iterator[bytes]:
    """The mails of a mailbox."""
    starts = list(_POSTMARK.finditer(data))
    if not starts:
        yield data
    ends = [*(one.start() for one in starts[1:]), len(data)]
    for one, end in zip(starts, ends, strict=True) if starts else ():
        yield _ESCAPED_FROM.sub(b"", data[one.end() : end])


def _saved_page(data: bytes, name: str) -> Document | None:
    """The page of a web archive as if it were saved alone; None where there is none."""
    message = email.message_from_bytes(data)
    for part in message.walk():
        if part.get_content_type() in ("text/html", "application/xhtml+xml"):
            page = HtmlExtractor().extract(
                ("\ufeff" + _text_of(part)).encode(errors="replace"), name=name
            )
            address = _header(message, "snapshot-content-location") or _header(
                part, "content-location"
            )
            found = {"url": address, "date": _date(_header(message, "date"))}
            metadata = {**page.metadata, **{key: value for key, value in found.items() if value}}
            return Document(
                text=page.text,
                syntax=page.syntax,
                metadata=json_value(metadata),
                extractor=f"{MailExtractor.name}/{MailExtractor.version}",
            )
    return None


# ---- mail of the internet ------------------------------------------------------------------------


def _mail(message: Message, depth: int) -> Mail:
    headers = {key: _header(message, key) for key in _SHOWN}
    headers["date"] = _date(headers["date"])
    mail = Mail(
        subject=_header(message, "subject"),
        headers={key: value for key, value in headers.items() if value},
    )
    mail.plain, mail.page = _body(message, mail, depth)
    return mail


def _body(part: Message, mail: Mail, depth: int) -> tuple[str, str]:
    """The plain text and the HTML of a part; what is attached goes to the mail."""
    kind = part.get_content_type()
    name = _file_name(part)
    children = part.get_payload() if part.is_multipart() else None
    if isinstance(children, list) and kind != "message/rfc822":
        found = [_body(child, mail, depth) for child in children if isinstance(child, Message)]
        return "\n\n".join(filter(None, (plain for plain, _ in found))), "\n".join(
            filter(None, (page for _, page in found))
        )
    if len(mail.attached) > _MOST_ATTACHED:
        return "", ""
    if len(mail.attached) == _MOST_ATTACHED:
        mail.attached.append(("", f"more than {_MOST_ATTACHED} attachments: the others"))
    elif isinstance(children, list):
        inner = next(iter(children), None)
        if depth >= _MOST_DEEP:
            mail.attached.append((name, _TOO_DEEP))
        elif isinstance(inner, Message):
            mail.attached.append((name, _mail(inner, depth + 1)))
    elif name or part.get_content_disposition() == "attachment" or not kind.startswith("text/"):
        is_text = kind.startswith("text/")
        data = _text_of(part).encode(errors="replace") if is_text else _bytes_of(part)
        if data and (name or not _SILENT.match(kind)):
            mail.attached.append((name, data))
    elif kind == "text/html":
        return "", _text_of(part)
    elif kind in ("text/plain", "text/enriched"):
        return _text_of(part), ""
    return "", ""


def _bytes_of(part: Message) -> bytes:
    try:
        data = part.get_payload(decode=True)
    except _UNREADABLE:
        return b""
    return data if isinstance(data, bytes) else b""


def _text_of(part: Message) -> str:
    """The text of a part in the charset that it declares, else in the one it is in."""
    data = _bytes_of(part)
    if not data.strip():
        return ""
    try:
        codec = codecs.lookup(part.get_content_charset() or UTF8).name
        found = None if codec in _STRANGE_CODECS else attempt(data, codec)
        return decode(data, name="")[0] if found is None else found
    except (*_UNREADABLE, ExtractionError):
        return data.decode("latin-1")


def _file_name(part: Message) -> str:
    try:
        return _words(part.get_filename() or "")
    except _UNREADABLE:
        return ""


def _header(message: Message, key: str) -> str:
    """A header as a person reads it, on one line."""
    raw = next((value for name, value in message.raw_items() if name.lower() == key), "")
    return _words(str(raw)[:_LONGEST_HEADER])


def _words(written: str) -> str:
    """What is encoded in a header, decoded: as its words say, else as UTF-8."""
    pieces: list[str] = []
    try:
        for piece, charset in decode_header(written):
            data = piece.encode("utf-8", "surrogateescape") if isinstance(piece, str) else piece
            codec = codecs.lookup(charset or UTF8).name
            text = None if codec in _STRANGE_CODECS else attempt(data, codec)
            pieces.append(data.decode("latin-1") if text is None else text)
    except _UNREADABLE:
        pieces = [written]
    return " ".join(_sound("".join(pieces)).split())


def _date(written: str) -> str:
    try:
        return parsedate_to_datetime(written).isoformat()
    except _UNREADABLE:
        return written


# ---- mail of Outlook -----------------------------------------------------------------------------

_IN_FILE: Final = 32
_IN_MAIL: Final = 24
"""Bytes before the properties of a mail."""


def _outlook_mail(data: bytes, name: str, depth: int) -> Mail:
    from olefile import OleFileIO
    from oxmsg.storage import Storage

    try:
        with OleFileIO(io.BytesIO(data)) as container:
            return _stored_mail(Storage.from_ole(container), depth, _IN_FILE)
    except _UNREADABLE as error:
        raise _damaged(name, "only parts of one") from error


def _damaged(name: str, found: str) -> ExtractionError:
    return ExtractionError(
        f"{name} is damaged: expected a mail of Outlook, found {found}"
        "; save it from Outlook again, or leave it out",
    )


def _stored_mail(storage: Any, depth: int, head_bytes: int) -> Mail:
    from oxmsg.attachment import Attachment
    from oxmsg.domain import constants as c
    from oxmsg.message import Message as Outlook
    from oxmsg.properties import Properties

    stored = Properties(storage, properties_header_offset=head_bytes)

    def text(pid: int) -> str:
        return stored.str_prop_value(pid) or ""

    head = email.message_from_string(text(c.PID_TRANSPORT_MESSAGE_HEADERS))
    found = {key: _header(head, key) for key in _SHOWN}
    address = text(c.PID_SENDER_SMTP_ADDRESS) or text(c.PID_SENDER_EMAIL_ADDRESS)
    sender = f"{text(c.PID_SENDER_NAME)} <{address}>" if address else text(c.PID_SENDER_NAME)
    found["from"] = found["from"] or sender.strip()
    people = [(one.name, one.email_address) for one in Outlook(storage).recipients]
    found["to"] = found["to"] or ", ".join(f"{who} <{at}>" if at else who for who, at in people)
    sent = stored.date_prop_value(c.PID_CLIENT_SUBMIT_TIME)
    found["date"] = _date(found["date"]) or (
        sent.isoformat() if isinstance(sent, datetime.datetime) else ""
    )
    mail = Mail(
        subject=_words(text(c.PID_SUBJECT)),
        headers={key: value[:_LONGEST_HEADER] for key, value in found.items() if value},
        plain=text(c.PID_BODY),
        page=text(c.PID_BODY_HTML),
    )
    if html := stored.binary_prop_value(c.PID_HTML):
        mail.page = attempt(html, stored.body_encoding) or html.decode("latin-1")
    for place in storage.iter_attachment_storages():
        one = Attachment(place)
        name = one.file_name or one.properties.str_prop_value(c.PID_DISPLAY_NAME) or ""
        inner = next((part for part in place.storages if part.name.endswith("000D")), None)
        if len(mail.attached) == _MOST_ATTACHED:
            mail.attached.append(("", f"more than {_MOST_ATTACHED} attachments: the others"))
            break
        if inner is not None and depth >= _MOST_DEEP:
            mail.attached.append((name, _TOO_DEEP))
        elif inner is not None:
            mail.attached.append((name, _stored_mail(inner, depth + 1, _IN_MAIL)))
        elif data := one.file_bytes:
            mail.attached.append((name, data))
    return mail


# ---- as text -------------------------------------------------------------------------------------


def _written(mail: Mail, name: str, depth: int) -> str:
    """A mail as Markdown, its subject the heading of all."""
    people = "\n".join(f"{key.capitalize()}: {value}" for key, value in mail.headers.items())
    body = _best(prose(mail.plain).strip(), fragment_text(mail.page, name=name).strip())
    body = folded(body, is_forwarded=_FORWARDED.match(mail.subject) is not None)
    parts = [f"# {mail.subject}" if mail.subject else "", people, body]
    for number, (attached, contents) in enumerate(mail.attached, 1):
        shown = safe_text(attached, keep_newlines=False) or f"no name, number {number}"
        why, text = "", ""
        if isinstance(contents, str):
            why = contents
        elif isinstance(contents, Mail):
            text = _written(contents, name, depth + 1)
        else:
            try:
                text = _attached(contents, attached, depth)
            except ExtractionError as error:
                why = error.message.removeprefix(attached).lstrip(": ")
        if text:
            parts += f"## Attachment: {shown}", deepened(text, 2)
        elif why:
            parts.append(f"[Attachment not read: {shown}: {why}]")
    return "\n\n".join(filter(None, parts))


def _attached(data: bytes, name: str, depth: int) -> str:
    """The text of an attachment."""
    if _PATH.search(name):
        raise ExtractionError("its name holds a path")
    suffix = _suffix(name)
    if suffix in ("eml", "mbox", "msg", *_ARCHIVES):
        if depth >= _MOST_DEEP:
            raise ExtractionError(_TOO_DEEP)
        if suffix in _ARCHIVES and (page := _saved_page(data, name)):
            return page.text
        return "\n\n".join(_written(one, name, depth + 1) for one in _mails(data, name, depth + 1))
    extractor = for_name(name)
    if extractor is None:
        raise ExtractionError("no extractor reads files of this kind")
    document = extractor.extract(data, name=name)
    text = document.text.strip("\n")
    if document.syntax == "code":
        return fenced(text, language_of(name))
    return text if document.syntax == "markdown" else prose(text)


_FORWARDED: Final = re.compile(r"(?:fwd?|wg|tr|rv|i|enc)\s*:", re.I)
_OLDER: Final = re.compile(
    r"^(?:-{2,} ?(?:original message|urspr\u00fcngliche nachricht|message d'origine|"
    r"mensaje original|messaggio originale) ?-{2,}|_{10,}\n+(?=\**(?:from|von|de|da)\b[^\n]*:))",
    re.I | re.M,
)
_QUOTED: Final = re.compile(r"(?:^>[^\n]*(?:\n|\Z))+", re.M)


def folded(text: str, *, is_forwarded: bool) -> str:
    """A mail without most of what it quotes, unless that is all it says.

    Args:
        text: As Markdown, where quoted lines begin with ``>``.
        is_forwarded: Whether what it quotes is what it was sent for.
    """
    older = None if is_forwarded else _OLDER.search(text)
    if older and text[: older.start()].strip():
        lines = text.count("\n", older.start()) + 1
        text = f"{text[: older.start()].rstrip()}\n\n[An earlier mail left out, lines: {lines}]"
    if not _QUOTED.sub("", text).strip():
        return text
    return _QUOTED.sub(_short_quote, text)


def _short_quote(quote: re.Match[str]) -> str:
    lines = quote[0].rstrip("\n").split("\n")
    if len(lines) <= _SHORT_QUOTE:
        return quote[0]
    return f"{lines[0]}\n> [Quoted lines left out: {len(lines) - 1}]\n"


def _best(plain: str, page: str) -> str:
    """The plain text, unless most of what the page says is not in it."""
    words = set(_WORD.findall(page))
    is_same = len(words & set(_WORD.findall(plain))) * 2 >= len(words)
    return plain if plain and is_same else page or plain


_WORD: Final = re.compile(r"\w+")
