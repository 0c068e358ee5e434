"""A misspelt word finds what was meant, and the answer says so."""

from typing import Any

import pytest

TEXTS = {
    "post.md": "Parcels that you receive are kept in the accommodation office for a week.\n",
    "rent.md": "The committee of tenants meets when the rent is raised.\n",
    "code.md": "Call `os.path.joinn` and set MAXX_SIZE to 17.\n",
    "zoo.md": "У договора есть срок. Die Größe der Wohnung zählt.\n",
    "word.md": "检索系统查找文档。\n",
}


@pytest.fixture
def notes(either: Any) -> Any:
    """A store of a few texts."""
    for name, text in TEXTS.items():
        either.write(f"texts/{name}", text)
    either("add", "texts", "--each")
    return either


def found(notes: Any, query: str, *words: str) -> tuple[list[str], list[str]]:
    """The sources of what a keyword search finds, and the notes on spelling."""
    answer = notes("search", "--json", "--mode", "keyword", *words, "--", query, code=None).json
    sources = [hit["resource"] for hit in answer["hits"]]
    return sources, [note for note in answer["notes"] if "no document has" in note]


@pytest.mark.parametrize(
    ("query", "word", "meant", "name"),
    [
        ("recieve", "recieve", "receive", "post.md"),
        ("Recieve?", "Recieve", "receive", "post.md"),
        ("benants", "benants", "tenants", "rent.md"),
        ("arcels", "arcels", "parcels", "post.md"),
        ("comittee", "comittee", "committee", "rent.md"),
        ("acomodation", "acomodation", "accommodation", "post.md"),
        ("Grösze", "Grösze", "große", "zoo.md"),
        ("договоа", "договоа", "договора", "zoo.md"),
    ],
)
def test_a_misspelt_word_is_found(notes: Any, query: str, word: str, meant: str, name: str) -> None:
    """What was meant is searched for as well, in the index's own words, and a note says so."""
    if word == "Grösze":
        meant = "grosse"
    sources, said = found(notes, query)
    assert sources == [name]
    assert said == [f'no document has "{word}": searched for "{meant}" as well']


@pytest.mark.parametrize(
    "query",
    ["receive", "received", "RENT", "os.path.join", "MAX_SIZE", "18", "检索系", "rec", "parcel*"],
)
def test_what_is_known_or_no_prose_stays_as_typed(notes: Any, query: str) -> None:
    """Known words in any form, code, numbers, short words and Chinese are never respelled."""
    _, said = found(notes, query)
    assert said == []


@pytest.mark.parametrize("query", ['"recieve parcels"', '"recieve"', "+recieve parcels"])
def test_what_was_typed_strictly_is_only_suggested(notes: Any, query: str) -> None:
    """In quotes, or required, nothing else is searched for; a note asks what was meant."""
    sources, said = found(notes, query, "--syntax", "operators")
    if sources:
        # A phrase beside nothing else may be relaxed; then something was found as typed.
        assert said == []
    else:
        assert said == ['no document has "recieve"; did you mean "receive"?']
    assert found(notes, '"recieve"', "--syntax", "operators") == (
        [],
        ['no document has "recieve"; did you mean "receive"?'],
    )


def test_the_words_that_are_right_still_decide(notes: Any) -> None:
    """A sentence with a mistake finds first what the rest of it is about."""
    sources, said = found(notes, "where the comittee of tenants meets")
    assert sources[0] == "rent.md"
    assert len(said) == 1


def test_it_is_said_on_a_terminal_and_where_nothing_is_near(notes: Any) -> None:
    """The note stands on stderr; a word that is near nothing is passed over in silence."""
    done = notes("search", "recieve", "--mode", "keyword")
    assert 'no document has "recieve": searched for "receive" as well' in done.stderr
    assert found(notes, "qqqqwwww") == ([], [])
    done = notes("search", "recie\x1b[2Jve", "--mode", "keyword", code=None)
    assert "\x1b" not in done.stderr + done.stdout


def test_hybrid_search_counts_what_is_meant(notes: Any) -> None:
    """A query of one misspelt word is answered by keyword, not by vectors alone."""
    answer = notes.json("search", "recieve")
    assert answer["hits"][0]["resource"] == "post.md"
    assert answer["hits"][0]["why"]["keyword"]["points"] > 0
    assert "no document has" not in str(
        notes.json("search", "recieve", "--mode", "vector")["notes"]
    )


def test_evaluation_tells_it_once(notes: Any) -> None:
    """Of many questions with mistakes the evaluation says that there are some."""
    lines = "".join(f'{{"query": "{word}", "relevant": ["texts/post.md"]}}\n' for word in
                    ("recieve", "parcles", "acomodation"))  # fmt: skip
    path = notes.write("questions.jsonl", lines)
    told = notes.json("evaluate", path)["notes"]
    assert sum("nearest ones" in note for note in told if note.startswith("keyword")) == 1
    assert "recieve" not in str(told)


def test_a_library_user_gets_the_note(notes: Any) -> None:
    """The notes of an answer have it, and what was understood is what was typed."""
    import filestore

    with filestore.open(notes.store) as store:
        answer = store.search("recieve", mode="keyword")
    assert [hit.resource for hit in answer] == ["post.md"]
    assert answer.understood.words == ("recieve",)
    assert any("receive" in note for note in answer.notes)
