"""Zip containers of office files: sound ones give their parts, all others a clear sentence."""

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.extract import ExtractionError
from filestore.extract._office.archive import MAX_PARTS, open_archive
from tests.advice import advised, all_words

EXPECTED = "a Word document (.docx)"
MIB = 2**20


@dataclass
class Entry:
    """One part as it is to be written, true or not."""

    name: bytes
    packed: bytes = b""
    size: int | None = None
    method: int = zipfile.ZIP_STORED
    flags: int = 0
    checksum: int | None = None
    at: int | None = None
    content: bytes = field(default=b"", repr=False)


def stored(name, content=b"text"):
    return Entry(name.encode(), content, len(content), content=content)


def deflated(name, content, **wrong):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(content) + packer.flush()
    values = {"size": len(content), "method": zipfile.ZIP_DEFLATED, "content": content}
    return Entry(name.encode(), packed, **(values | wrong))


def container(*entries):
    """A zip file of exactly these entries, whatever they claim."""
    body, directory = b"", b""
    for entry in entries:
        offset = len(body) if entry.at is None else entry.at
        checksum = zlib.crc32(entry.content) if entry.checksum is None else entry.checksum
        values = (entry.flags, entry.method, 0, 33, checksum, len(entry.packed), entry.size)
        if entry.at is None:
            header = struct.pack("<4s5H3L2H", b"PK\3\4", 20, *values, len(entry.name), 0)
            body += header + entry.name + entry.packed
        directory += struct.pack(
            "<4s6H3L5H2L", b"PK\1\2", 20, 20, *values, len(entry.name), 0, 0, 0, 0, 0, offset
        )
        directory += entry.name
    count = min(len(entries), 0xFFFF)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + end


def refusal(data, name="report.docx"):
    with pytest.raises(ExtractionError) as caught:
        open_and_read(data, name)
    assert caught.value.message.startswith(name)
    assert advised(caught.value)
    return caught.value.message


def open_and_read(data, name="report.docx"):
    archive = open_archive(data, name=name, expected=EXPECTED)
    return {part: archive.read(part) for part in archive.parts}


def test_sound_file_gives_its_parts():
    """Stored and deflated parts come back byte for byte; folders are no parts."""
    text = b"peat " * 1000
    assert open_and_read(
        container(stored("a/", b""), stored("a/b.xml", b"<b/>"), deflated("c", text))
    ) == {
        "a/b.xml": b"<b/>",
        "c": text,
    }


def test_archives_inside_are_counted_and_left_alone():
    """Embedded workbooks and zips, also damaged ones, are counted and never opened."""
    data = container(stored("word/embeddings/x.XLSX", b"no zip"), stored("b.zip"), stored("c.xml"))
    assert len(open_archive(data, name="report.docx", expected=EXPECTED).nested) == 2


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "an empty file"),
        (b"%PDF-1.7\n", "a PDF"),
        (b"{\\rtf1 x}", "rich text (RTF)"),
        (b"PK\5\6" + bytes(18), "an empty zip file"),
        (b"<html></html>", "a page of HTML or XML"),
        (bytes(100), "zero bytes"),
        (b"just words", "other data"),
        (b"PK\3\4 and no more", "16 damaged or cut-off bytes"),
    ],
)
def test_other_files_are_named(data, found):
    """What is no office file is refused with what was expected, what it is, and what to do."""
    message = refusal(data)
    assert f"expected {EXPECTED}" in message
    assert found in message


def test_password_or_old_format_is_told():
    """The container of protected and of old office files says both, and how to go on."""
    with pytest.raises(ExtractionError) as caught:
        open_and_read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    assert "password-protected" in caught.value.message
    assert "older than Office 2007" in caught.value.message
    assert "remove any password" in all_words(caught.value)


def test_encrypted_parts_are_told():
    """A zip file with a password is refused with the way out."""
    message = refusal(container(Entry(b"word/document.xml", b"?" * 20, 8, flags=1)))
    assert "word/document.xml is encrypted with a password" in message


@pytest.mark.parametrize(
    "part", ["../x", "a/../../x", "/etc/x", "C:/x", "c:x", "a\\b", "..", "a/..", "./a", "\\\\a\\b"]
)
def test_names_that_lead_out_are_refused(part):
    """A part whose name leads out of the file is refused, also where it is never unpacked."""
    message = refusal(container(stored("word/document.xml"), stored(part)))
    assert f"the name of its part {part} leads out of the file" in message


def test_dots_within_names_are_no_harm():
    """Dots that are no step up are a name like any other."""
    assert set(open_and_read(container(stored("a..b/c...xml"), stored(".hidden")))) == {
        "a..b/c...xml",
        ".hidden",
    }


def test_names_are_shown_safely():
    """A name cannot steer the terminal it is shown on, nor fill it."""
    message = refusal(container(stored("../\x1b[2J" + "x" * 5000)))
    assert "\\x1b[2J" in message
    assert "\x1b" not in message
    assert len(message) < 300


def test_names_with_nul_are_refused():
    """A name that Python would cut at NUL is refused, not cut."""
    assert "leads out" in refusal(container(stored("word/document.xml\0.png")))


@pytest.mark.parametrize("second", ["word/document.xml", "WORD/Document.xml"])
def test_duplicate_names_are_refused(second):
    """Two parts of one name, in whatever case, are refused: readers disagree which one counts."""
    message = refusal(container(stored("word/document.xml"), stored(second)))
    assert "two of its parts are called" in message


def test_too_many_parts_are_refused():
    """More parts than any document has are refused before the directory is read."""
    entries = [stored(f"p{number}", b"") for number in range(MAX_PARTS + 1)]
    assert "more than 10,000 parts" in refusal(container(*entries))


def test_one_part_that_unpacks_to_much_is_refused():
    """A part that unpacks to hundreds of times its size is refused by what the directory says."""
    bomb = deflated("word/document.xml", bytes(8 * MIB))
    assert "word/document.xml unpacks to" in refusal(container(bomb))
    assert "times its size" in refusal(container(bomb))


def test_many_parts_that_unpack_to_much_are_refused():
    """Parts that are each small enough are refused where all of them are too much."""
    parts = [deflated(f"p{number}", bytes(3 * MIB)) for number in range(8)]
    assert "it unpacks to" in refusal(container(*parts))


@pytest.mark.parametrize(
    ("size", "name", "found"),
    [
        (600 * MIB, "a.bin", "its part a.bin unpacks to 600.0 MiB"),
        (65 * MIB, "a.xml", "its part a.xml unpacks to 65.0 MiB"),
    ],
)
def test_large_parts_are_refused(size, name, found):
    """A part larger than is ever read is refused, text sooner than pictures."""
    assert found in refusal(container(deflated(name, b"x", size=size)))


def test_large_totals_are_refused():
    """Parts of a fair size are refused where all of them are more than is ever read."""
    packed = bytes(3 * MIB)
    parts = [
        Entry(f"p{number}".encode(), packed, 500 * MIB, zipfile.ZIP_DEFLATED) for number in range(3)
    ]
    assert "it unpacks to 1,500.0 MiB" in refusal(container(*parts))


def test_small_files_may_shrink_a_lot():
    """Below the floor the ratio does not count: an empty bitmap is no bomb."""
    assert len(open_and_read(container(deflated("a.bmp", bytes(3 * MIB))))["a.bmp"]) == 3 * MIB


def test_overlapping_parts_are_refused():
    """Parts that share bytes, whole or in part, are refused: the kernel of a zip bomb."""
    kernel = deflated("a", bytes(1000))
    same = deflated("b", bytes(1000), at=0)
    assert "overlaps another one" in refusal(container(kernel, same))
    quoted = stored("quote", container(kernel))
    inner = deflated("a", bytes(1000), at=30 + len("quote"))
    assert "overlaps another one" in refusal(container(quoted, inner))


def test_sizes_that_lie_are_refused():
    """A part that unpacks to more or fewer bytes than the directory says is refused."""
    more = container(deflated("word/document.xml", bytes(MIB), size=1000))
    assert "says that word/document.xml unpacks to 1,000 bytes, but there are more" in refusal(more)
    fewer = container(deflated("word/document.xml", b"short", size=1000))
    assert "expected 1,000 bytes" in refusal(fewer)
    stored_lie = Entry(b"a", b"four", 3, content=b"fou")
    assert "expected 3 bytes" in refusal(container(stored_lie))


def test_damaged_contents_are_refused():
    """A wrong checksum, data that is no deflate stream and other methods are refused."""
    assert "recorded checksum" in refusal(container(deflated("a", b"text", checksum=1)))
    assert "compressed data in a" in refusal(container(Entry(b"a", b"\xff" * 9, 9, 8)))
    assert "compression method 12" in refusal(container(Entry(b"a", b"x", 1, zipfile.ZIP_BZIP2)))


def test_parts_outside_the_file_are_refused():
    """A part that the directory places where no part is, is refused."""
    lost = Entry(b"b", b"text", 4, at=10_000, content=b"text")
    assert "b where the directory says" in refusal(container(stored("a"), lost))
    long = Entry(b"a", b"text", 4, content=b"text")
    data = container(long).replace(struct.pack("<LL", 4, 4), struct.pack("<LL", 4000, 4000))
    assert "parts that are cut off" in refusal(data)


def test_a_part_that_is_not_there_is_told():
    """Asking for a part that does not exist is a sentence, not a crash."""
    archive = open_archive(container(stored("a")), name="report.docx", expected=EXPECTED)
    with pytest.raises(ExtractionError, match=r"expected a part word/document\.xml, found none"):
        archive.read("word/document.xml")


def sample():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in (
            ("[Content_Types].xml", "<Types/>"),
            ("word/document.xml", "w" * 999),
        ):
            written.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
        written.writestr(zipfile.ZipInfo("word/media/a.png"), b"\x89PNG")
    return packed.getvalue()


SAMPLE = sample()
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def outcome(data):
    try:
        return open_and_read(data)
    except ExtractionError as error:
        return error


@RELAXED
@given(end=st.integers(0, len(SAMPLE) - 1))
def test_truncated_files_are_refused(end):
    """A file cut off anywhere is refused."""
    assert refusal(SAMPLE[:end])


@RELAXED
@given(data=st.binary(max_size=400), front=st.sampled_from([b"", b"PK\3\4", SAMPLE]))
def test_arbitrary_bytes_never_crash(data, front):
    """Whatever the bytes are, there are parts or an `ExtractionError`."""
    found = outcome(front + data)
    assert isinstance(found, dict) or found.remedy


@RELAXED
@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), min_size=1, max_size=6
    )
)
def test_changed_bytes_never_give_other_contents(edits):
    """A changed file gives parts with the contents recorded for them, or is refused."""
    data = bytearray(SAMPLE)
    for place, value in edits:
        data[place] = value
    found = outcome(bytes(data))
    if isinstance(found, ExtractionError):
        assert found.message.startswith("report.docx")
    else:
        assert set(found.values()) <= set(open_and_read(SAMPLE).values())
