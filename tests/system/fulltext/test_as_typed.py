"""Versions, tickets, addresses, dates, paths, hashes, tags and emoji are found as typed."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.fulltext import Entry, Marker, Reader, Writer, parse_query

DIGEST = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
TEXTS = {
    1: "Python 3.11 is the least.",
    2: "Python 3.12 came with 11 fixes and 3 removals; 3.1 is long gone, 11 years.",
    3: "Take 3.11.4, or python-3.11-slim, python-3.11-full.",
    4: "Ticket PROJ-12 is closed.",
    5: "PROJ-120, PROJ-121 and PROJ-7: 12 of them are open.",
    6: "An A/B test of the sign.",
    7: "Test A failed, test B failed; of plan A. B is left.",
    8: "We write C# all day.",
    9: "We write C all day, at net price.",
    10: "It runs on .NET and node.js.",
    11: "There are 1 234 567 people.",
    12: "We paid 1,234,567 euros for serial 7654321.",
    13: "Call +49 (030) 123-4567 today.",
    14: f"The digest is {DIGEST}.",
    15: "Commit e3b0c44298fc1c149afbf4c8996fb92427ae41e4 broke it, deadbee1 did not.",
    16: "Filed under #rust and #lang/go.",
    17: "Iron and rust.",
    18: "\U0001f680 launch, \u2764\ufe0f home, \U0001f469\U0001f3fd\u200d\U0001f4bb work.",
    19: "UTF-8 over Wi-Fi, COVID-19 by e-mail, PostgreSQL 15.",
    20: "utf8 in an email.",
    21: "Host 192.168.10.5 is down.",
    22: "Host 10.168.192.5 has 5 disks; 192.168.10.50 has none.",
    23: "At fe80::1 and 00:1a:2b:3c:4d:5e.",
    24: "Write to ann@example.org, see https://example.org/docs/a.md for it.",
    25: "We met on 2024-05-01.",
    26: "We met on 2024-01-05, at 05 sharp.",
    27: "Section \u00a7 4.2.1 rules.",
    28: "Sections 4.2.10 and 1.4.2 do not.",
    29: "Mend /etc/passwd and docs/a.md at once.",
    30: "R&D costs.",
    31: "It calls foo_bar twice.",
    32: "It calls foo, then bar.",
    33: "See CVE-2021-44228, CVE\u20112024\u20111234.",
}
AS_TYPED = {
    "3.11": [1, 3],
    '"3.11"': [1, 3],
    "v3.11": [1, 3],
    "3.1": [2],
    "3.13": [],
    "Python 3.11": [1, 3, 2],
    "PROJ-12": [4, 5],
    '"PROJ-12"': [4],
    "PROJ-13": [],
    "CVE-2099-12345": [],
    "cve-2024-1234": [33],
    "A/B": [6, 7],
    '"A/B"': [6],
    "C#": [8, 9],
    '"C#"': [8],
    "F#": [],
    '".NET"': [10],
    ".net": [10, 9],
    "Node.js": [10],
    "1 234 567": [11, 12],
    "1,234,567": [12, 11],
    '"1,234,567"': [12],
    "7,654,321": [12],
    "7 654 321": [12],
    "+49 030 123-4567": [13],
    DIGEST: [14],
    "e3b0c442": [14, 15],
    DIGEST[:40]: [15, 14],
    "deadbee1" + 32 * "5": [15],
    "#rust": [16, 17],
    '"#rust"': [16],
    "#lang": [16],
    "\U0001f680": [18],
    "\u2764": [18],
    "\U0001f469\u200d\U0001f4bb": [18],
    '"\U0001f4bb"': [18],
    "\U0001f525": [],
    "utf8": [20, 19],
    "UTF-8": [19, 20],
    "wifi": [19],
    "emails": [20, 19],
    "covid19": [19],
    "postgresql15": [19],
    "192.168.10.5": [21],
    "fe80::1": [23],
    "00:1A:2B:3C:4D:5E": [23],
    "ann@example.org": [24],
    "docs/a.md": [29, 24],
    "2024-05-01": [25],
    "\u00a7 4.2.1": [27],
    "/etc/passwd": [29],
    "R&D": [30],
    "foo_bar": [31, 32],
    "foo_baz": [],
    '"PROJ 12"': [4],
    '"python 3.11"': [1, 3],
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """An index of the texts."""
    folder = str(tmp_path_factory.mktemp("index"))
    with Writer.open(folder) as writer:
        writer.add(Entry(id=number, title="", text=text) for number, text in TEXTS.items())
        stamp = writer.commit(1, "c" * 32)
    with Reader.open(folder, stamp) as opened:
        yield opened


def found(reader: Reader, query: str) -> list[int]:
    """The texts that a query finds, best first."""
    hits = reader.search(reader.settled(parse_query(query)), len(TEXTS))
    return [number for number, _ in sorted(hits, key=lambda hit: (-hit[1], hit[0]))]


@pytest.mark.parametrize("query", AS_TYPED)
def test_what_is_typed_is_found_first(reader: Reader, query: str) -> None:
    """Before what holds it or its parts; in quotes alone; what nobody wrote is not found."""
    hits, wanted = found(reader, query), AS_TYPED[query]
    assert hits[:1] == wanted[:1]
    assert sorted(hits) == sorted(wanted)


_SIGNS = st.sampled_from(
    [*"a1B#./\\-_:@&+,~\"'*()[]<>?!\0 \n\u200d\u202e\u00a7\ufe0f\U0001f680\u4e2d\u0431", "3.11"]
)


@given(st.lists(_SIGNS, max_size=40).map("".join))
@settings(deadline=None)
def test_any_signs_may_be_typed(reader: Reader, query: str) -> None:
    """Whatever is typed is answered, and marks nothing beyond a text."""
    for syntax in ("auto", "plain", "operators"):
        parsed = parse_query(query, syntax)
        assert set(found(reader, query)) <= set(TEXTS)
        for text in (*TEXTS.values(), query):
            for mark in Marker(parsed, reader.rarity, reader.languages).marks(text):
                assert 0 <= mark.start < mark.end <= len(text)


@pytest.mark.parametrize(
    "piece", ["1.", "a-1/", "#", "a_", "::1", "\U0001f680", "\u202e", "\0a", "0" * 70 + " ", "e3"]
)
def test_very_long_signs_are_answered(reader: Reader, query_characters: int, piece: str) -> None:
    """As typed in one word, and as words."""
    for text in (piece, f"{piece} "):
        assert isinstance(found(reader, text * (query_characters // len(text))), list)


@pytest.fixture
def query_characters() -> int:
    """As many as a query is read of."""
    return 100_000
