"""A misspelt word finds what was meant, apart from hits, where nothing else was found."""

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


def answered(notes: Any, query: str, *words: str) -> tuple[list[str], str | None]:
    """The sources of what a keyword search finds, and what it searched for instead."""
    done = notes("search", "--json", "--mode", "keyword", *words, "--", query, code=None)
    sources, respelt = [hit["resource"] for hit in done.json["hits"]], done.json.get("respelt")
    assert done.code == (0 if sources and not respelt else 1)
    return sources, respelt


def found(notes: Any, query: str, *words: str) -> tuple[list[str], list[str]]:
    """The sources of what a keyword search finds, and the notes on spelling."""
    answer = notes("search", "--json", "--mode", "keyword", *words, "--", query, code=None).json
    sources = [hit["resource"] for hit in answer["hits"]]
    return sources, [note for note in answer["notes"] if "is in no document" in note]


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
    """What was meant is searched for instead, in the index's own words; it is no success."""
    if word == "Grösze":
        meant = "grosse"
    assert answered(notes, query) == ([name], query.replace(word, meant))
    assert found(notes, query)[1] == []


@pytest.mark.parametrize(
    "query",
    ["receive", "received", "RENT", "os.path.join", "MAX_SIZE", "18", "检索系", "rec", "parcel*"],
)
def test_what_is_known_or_no_prose_stays_as_typed(notes: Any, query: str) -> None:
    """Known words in any form, code, numbers, short words and Chinese are never respelled."""
    _, said = found(notes, query)
    assert said == []
    assert answered(notes, query)[1] is None


def test_a_word_is_not_searched_as_another_word(notes: Any) -> None:
    """Money is no mistake for monkey, whether or not some other word of the query is found."""
    notes.write("more/ape.md", "The monkey climbs.\n")
    notes.write("more/till.md", "Bring the parcels back.\n")
    notes("add", "more", "--each")
    assert found(notes, "money") == ([], [])
    assert found(notes, "get my money back") == (["till.md"], [])


@pytest.mark.parametrize("query", ['"recieve parcels"', '"recieve"', "+recieve parcels"])
def test_what_was_typed_strictly_is_only_suggested(notes: Any, query: str) -> None:
    """In quotes, or required, nothing else is searched for; a note asks what was meant."""
    sources, said = found(notes, query, "--syntax", "operators")
    if sources:
        # A phrase beside nothing else may be relaxed; then something was found as typed.
        assert said == []
    else:
        assert said == ['"recieve" is in no document. Did you mean "receive"?']
    assert found(notes, '"recieve"', "--syntax", "operators") == (
        [],
        ['"recieve" is in no document. Did you mean "receive"?'],
    )


def test_the_words_that_are_right_still_decide(notes: Any) -> None:
    """A sentence with a mistake finds first what the rest of it is about."""
    sources, said = found(notes, "where the comittee of tenants meets")
    assert sources[0] == "rent.md"
    assert said == ['"comittee" is in no document. Did you mean "committee"?']
    assert answered(notes, "where the comittee of tenants meets")[1] is None


def test_it_is_said_on_a_terminal_and_where_nothing_is_near(notes: Any) -> None:
    """It stands above the hits; a word that is near nothing is passed over in silence."""
    done = notes("search", "recieve", "--mode", "keyword", code=1)
    assert done.stdout.startswith("nothing for recieve; for receive:\n")
    assert "post.md" in done.stdout
    done = notes("search", "recieve", "--format", "oneline", code=1)
    assert "nothing for recieve; for receive" in done.stderr
    assert done.stdout.startswith("texts/post.md:")
    assert found(notes, "qqqqwwww") == ([], [])
    done = notes("search", "recie\x1b[2Jve", "--mode", "keyword", code=None)
    assert "\x1b" not in done.stderr + done.stdout


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_vectors_that_compare_letters_find_no_other_word(notes: Any, mode: str) -> None:
    """Letters in common make no hit in any mode: the other spelling is searched, and named."""
    answer = notes("search", "recieve", "--mode", mode, "--json", code=1).json
    assert [hit["resource"] for hit in answer["hits"]] == ["post.md"]
    assert answer["respelt"] == "receive"
    assert notes("search", "perceiving", "--mode", mode, "--json", code=1).json["hits"] == []


def test_evaluation_tells_it_once(notes: Any) -> None:
    """Of many questions with mistakes the evaluation says that there are some."""
    lines = "".join(f'{{"query": "{word}", "relevant": ["texts/post.md"]}}\n' for word in
                    ("recieve", "parcles", "acomodation"))  # fmt: skip
    path = notes.write("questions.jsonl", lines)
    told = notes.json("evaluate", path)["notes"]
    assert sum("misspelt" in note for note in told if note.startswith("keyword")) == 1
    assert "recieve" not in str(told)


def test_a_library_user_gets_the_note(notes: Any) -> None:
    """The answer says what its hits are for, and what was understood is what was typed."""
    import filestore

    with filestore.open(notes.store) as store:
        answer = store.search("recieve", mode="keyword")
    assert [hit.resource for hit in answer] == ["post.md"]
    assert answer.understood.words == ("recieve",)
    assert (answer.respelt, answer.is_found) == ("receive", False)
