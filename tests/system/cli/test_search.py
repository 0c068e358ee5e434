"""`filestore search`: unique files, best first, each with its freshness and the reasons for it."""

import shutil
from typing import Any

import pytest

KEYS = {"path", "score", "kind", "source", "freshness", "text", "why"}


def library(workspace: Any) -> None:
    """A store about a few things, in Markdown, text, HTML and other languages."""
    workspace.write(
        "docs/sails.md",
        "---\nauthor: Ada\ntags: [ships, wind]\ndraft: false\n---\n"
        "# Sails\n\nReefing the mainsail in strong winds keeps the boat upright.\n",
    )
    workspace.write(
        "docs/anchor.md",
        "---\nauthor: Bob\ntags: [ships]\nmeta: {year: 1843}\n---\n"
        "# Anchors\n\nAn anchor holds the boat where the seabed is soft.\n",
    )
    workspace.write("docs/code.txt", "Call foo_bar() or Foo::bar, then parse_headers(True).\n")
    workspace.write("docs/page.html", "<h1>Knots</h1><p>A bowline never slips.</p>")
    workspace.write("docs/tokyo.txt", "東京は日本の首都です。大きな都市です。\n")
    workspace.write("docs/haus.txt", "Die Häuser am Hafen haben rote Dächer und Türen.\n")
    workspace("add", "docs", "--each")
    summary = workspace.chunked / "summary1.md"
    summary.write_text("---\nkind: summary\n---\nA summary about boats.\n")
    workspace.sync()


def resources(workspace: Any, query: str, *words: str) -> list[str]:
    done = workspace.json("search", query, *words, code=None)
    return [hit["resource"] or hit["path"] for hit in done["hits"]]


def test_keys(either: Any) -> None:
    """An answer says what was asked, how it was answered, and for each hit where, what and why."""
    library(either)
    done = either.json("search", "anchor", "seabed")
    assert done["query"] == "anchor seabed"
    assert done["mode"] == "hybrid"
    hit = done["hits"][0]
    assert hit.keys() >= KEYS
    assert hit["resource"] == "anchor.md"
    assert hit["source"] == "../docs/anchor.md"
    assert hit["kind"] == "chunk"
    assert hit["freshness"] == "fresh"
    assert "soft" in hit["text"]
    assert hit["why"].keys() == {"vector", "keyword"}
    assert hit["why"]["keyword"]["rank"] == 1
    assert hit["why"]["keyword"]["score"] > 0


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_modes(either: Any, mode: str) -> None:
    """Each mode finds the right file first, says only its own reasons, and ranks downwards."""
    library(either)
    done = either.json("search", "reefing the mainsail", "--mode", mode)
    assert done["mode"] == mode
    assert done["hits"][0]["resource"] == "sails.md"
    legs = {"hybrid": {"vector", "keyword"}, "vector": {"vector"}, "keyword": {"keyword"}}[mode]
    assert set().union(*(hit["why"] for hit in done["hits"])) == legs
    scores = [hit["score"] for hit in done["hits"]]
    assert scores == sorted(scores, reverse=True)
    paths = [hit["path"] for hit in done["hits"]]
    assert len(paths) == len(set(paths))


def test_the_lexical_embedder_is_honest(workspace: Any) -> None:
    """A vector search with the builtin embedder says that it compares words."""
    library(workspace)
    assert "not meaning" in workspace("search", "boat", "--mode", "vector").stderr


QUERIES = {
    "anchors holding": "anchor.md",
    '"anchor holds the boat"': "anchor.md",
    "main*": "sails.md",
    "foo_bar": "code.txt",
    "Foo::bar": "code.txt",
    "parse_headers": "code.txt",
    "bowlines": "page.html",
    "東京": "tokyo.txt",
    "首都": "tokyo.txt",
    "rotes Dach am Hafen": "haus.txt",
    "boat -anchor -summary": "sails.md",
    "+boat +seabed": "anchor.md",
}


def test_keyword_queries(workspace: Any) -> None:
    """Stems, phrases, prefixes, identifiers, exclusions and CJK find what is meant, first."""
    library(workspace)
    first = {}
    for query in QUERIES:
        done = workspace("search", "--mode", "keyword", "--json", "--", query, code=None).json
        first[query] = done["hits"][0]["resource"] if done["hits"] else None
    assert first == QUERIES


def test_excluded_and_required_words(workspace: Any) -> None:
    """A word with a minus is in no hit, a word with a plus in every one."""
    library(workspace)
    assert set(resources(workspace, "boat -anchor", "--mode", "keyword")) == {
        "sails.md",
        "chunked/summary1.md",
    }
    assert resources(workspace, "boat +seabed", "--mode", "keyword") == ["anchor.md"]


@pytest.mark.parametrize(
    "query", ["ree*", "se*", "bo* zzz", "+seabed zzz", '"anchor holds"', "ha*"]
)
def test_what_keywords_find_is_in_the_answer_of_both(workspace: Any, query: str) -> None:
    """However little of a query the vectors know, its beginnings of words find what they name."""
    library(workspace)
    by_keyword = resources(workspace, query, "--mode", "keyword")
    assert by_keyword
    assert set(by_keyword) <= set(resources(workspace, query))


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_a_required_word_is_in_every_hit(workspace: Any, mode: str) -> None:
    """Vectors bring in no text without it."""
    library(workspace)
    assert resources(workspace, "+seabed boat mainsail", "--mode", mode) == ["anchor.md"]
    assert resources(workspace, "+zzz boat mainsail", "--mode", mode) == []


SIGNS = {
    "what does git -C do?": [],
    "return -1": [],
    'anchor the "boat"': [],
    "ls -la boat": [],
    "boat --force": [],
    "-anchor": [],
    "The boat has no -anchor.": [],
    "boat -anchor": ["anchor"],
}


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_signs_that_may_mean_otherwise_hide_nothing(workspace: Any, mode: str) -> None:
    """A flag, a number, a quoted word leave nothing out; what is left out is said."""
    workspace.write("docs/code.py", "def find(where):\n    return -1  # git -C where\n")
    library(workspace)
    for query, excluded in SIGNS.items():
        done = workspace("search", "--mode", mode, "--json", "--", query)
        assert done.json["understood"]["excluded"] == excluded, query
        assert any("excluded" in note for note in done.json["notes"]) == bool(excluded), query
        assert done.json["hits"], query
    found = resources(workspace, "return -1", "--mode", mode)
    assert found[0] == "code.py"


def test_a_syntax_can_be_asked_for(workspace: Any) -> None:
    """Plain takes every sign for text, operators every sign that can be one for an operator."""
    library(workspace)
    words = ("boat -anchor", "--mode", "keyword")
    assert "anchor.md" not in resources(workspace, *words)
    assert resources(workspace, *words, "--syntax", "plain")[0] == "anchor.md"
    long = "does the boat hold in the harbour -anchor"
    assert "anchor.md" in resources(workspace, long, "--mode", "keyword")
    assert "anchor.md" not in resources(workspace, long, "--syntax", "operators")
    said = workspace("search", "boat -anchor").stderr
    assert "passages with anchor are excluded" in said
    query = '"mainsail in" boat* +strong'
    done = workspace("search", "--json", "--", query).json
    assert done["understood"] == {
        "words": [],
        "phrases": ["mainsail in"],
        "prefixes": ["boat"],
        "required": ["strong"],
        "excluded": [],
        "text": '"mainsail in" boat* +strong',
    }


@pytest.mark.parametrize("mode", ["vector", "keyword"])
def test_an_exclusion_means_the_same_in_every_mode(workspace: Any, mode: str) -> None:
    """What a required word takes in is what the excluded one leaves out, by words and vectors."""
    library(workspace)
    workspace.write("docs/plural.md", "# Plural\n\nMany anchors hold a boat better.\n")
    workspace("add", "docs/plural.md")
    forms = {"anchor.md", "plural.md"}
    for word in ("anchor", "anchors"):
        assert set(resources(workspace, f"boat +{word}", "--mode", mode)) == forms
        found = resources(workspace, f"boat -{word}", "--mode", mode)
        assert "sails.md" in found
        assert forms.isdisjoint(found)


FILTERS: tuple[tuple[list[str], set[str]], ...] = (
    (["--where", "author=Ada"], {"sails.md"}),
    (["--where", "tags=ships"], {"sails.md", "anchor.md"}),
    (["--where", "tags=ships", "--where", "author=Bob"], {"anchor.md"}),
    (["--where", "meta.year=1843"], {"anchor.md"}),
    (["--where", "draft=false"], {"sails.md"}),
    (["--where", "author=Eve"], set()),
    (["--where", "nothing=Ada"], set()),
    (["--source", "*.md"], {"sails.md", "anchor.md"}),
    (["--source", "../docs/a*"], {"anchor.md"}),
    (["--kind", "summary"], {"chunked/summary1.md"}),
    (["--kind", "chunk", "--source", "sails.md"], {"sails.md"}),
)


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_filters(workspace: Any, mode: str) -> None:
    """A filter leaves exactly the files of which it is true, in every mode."""
    library(workspace)
    for words, expected in FILTERS:
        assert set(resources(workspace, "boat", "--mode", mode, *words)) == expected, words


def test_filters_in_the_flat_layout(new_workspace: Any) -> None:
    """Metadata of the document and its source filter there as well."""
    workspace = new_workspace(layout="flat")
    library(workspace)
    assert resources(workspace, "boat", "--where", "author=Ada") == ["sails.md"]
    assert set(resources(workspace, "boat", "--source", "*.md")) == {"sails.md", "anchor.md"}
    assert resources(workspace, "boat", "--kind", "summary") == ["chunked/summary1.md"]


def test_filter_without_a_value(workspace: Any) -> None:
    """A filter that is no pair is wrong usage."""
    assert "KEY=VALUE" in workspace("search", "x", "--where", "author", code=2).stderr


def test_freshness(either: Any) -> None:
    """A hit is checked as it is returned: fresh or edited, with the text of now; none is gone."""
    library(either)
    fresh, edited, gone = (
        either.chunked / either.chunks(name)[0] for name in ("sails.md", "anchor.md", "haus.txt")
    )
    edited.write_bytes(edited.read_bytes().replace(b"seabed is soft", b"seabed is hard"))
    gone.unlink()
    found = {}
    for query in ("boat", "hafen"):
        way = ("--mode", "keyword", "--no-update")
        for hit in either.json("search", query, *way, code=None)["hits"]:
            found[either.store / hit["path"]] = (hit["freshness"], hit["text"])
    assert found[fresh][0] == "fresh"
    assert found[edited][0] == "edited"
    assert "hard" in found[edited][1]
    assert gone not in found
    text = either("search", "boat", *way).stdout
    (line,) = [line for line in text.splitlines() if edited.name in line]
    assert "  [edited]" in line
    (line,) = [line for line in text.splitlines() if line.startswith("docs/sails.md:")]
    assert "[" not in line


def test_freshness_without_the_tree(workspace: Any) -> None:
    """With the whole tree away every hit is gone, and none is passed off as current."""
    library(workspace)
    shutil.move(workspace.chunked, workspace.folder / "away")
    hits = workspace.json("search", "boat", code=1)["hits"]
    assert hits
    assert {hit["freshness"] for hit in hits} == {"gone"}


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_count(workspace: Any, mode: str) -> None:
    """-k is the most hits there are, and one file counts once however many questions fit."""
    for number in range(12):
        (workspace.chunked / f"n{number:02}.md").write_text(
            f"---\nquestions:\n- What about boats {number}?\n- Which boats {number}?\n---\n"
            f"Words about boats {number}.\n"
        )
    workspace.sync()
    for count in (1, 3, 10, 12, 40):
        hits = workspace.json("search", "boats", "-k", str(count), "--mode", mode)["hits"]
        paths = [hit["path"] for hit in hits]
        assert len(paths) == min(count, 12)
        assert len(set(paths)) == len(paths)
    assert len(workspace.json("search", "boats", "--mode", mode)["hits"]) == 10
    for wrong in ("0", "-3"):
        assert "at least 1" in workspace("search", "boats", "-k", wrong, code=2).stderr


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_ties_go_by_path(workspace: Any, mode: str) -> None:
    """What scores the same comes in the order of the paths, every time."""
    for name in ("c", "a", "b", "e", "d"):
        (workspace.chunked / f"{name}.md").write_text(f"The very same words. {name}\n")
    workspace.sync()
    expected = [f"chunked/{name}.md" for name in "abcde"]
    for _ in range(3):
        hits = workspace.json("search", "same words", "--mode", mode)["hits"]
        assert [hit["path"] for hit in hits] == expected


def test_a_query_without_a_word_says_so(either: Any) -> None:
    """Signs alone, and words that are only left out, are not taken for a text that nobody has."""
    library(either)
    for query in ("?!", "...", "-boat"):
        for mode in ("hybrid", "keyword", "vector"):
            words = ("search", "--mode", mode, "--syntax", "operators", "--json", "--", query)
            answer = either(*words, code=1).json
            assert answer["notes"][0] == "the query has no word to search for"
    answer = either.json("search", "boiler", code=None)
    assert not [note for note in answer["notes"] if "no word" in note]


def test_nothing_found(either: Any) -> None:
    """Nothing found is 1, with an empty list and a word, and no complaint."""
    library(either)
    done = either("search", "zzyzzx", "--mode", "keyword", code=1)
    assert done.stdout == "nothing found\n"
    assert done.stderr == ""
    assert either.json("search", "zzyzzx", "--mode", "keyword", code=1)["hits"] == []


def test_empty_store(either: Any) -> None:
    """A store with nothing in it finds nothing, in every mode."""
    for mode in ("hybrid", "vector", "keyword"):
        assert either.json("search", "boat", "--mode", mode, code=1)["hits"] == []


SOUP = (
    "",
    " ",
    '"',
    '"unclosed',
    "(((",
    ")(",
    "AND",
    "boat AND",
    "OR OR OR",
    "NOT boat",
    "+",
    "+-*",
    "*",
    "boat^",
    "boat^99999999999",
    "boat~",
    "boat~9",
    "field:boat",
    "text:[a TO",
    "{a TO *}",
    "/regex(/",
    "\\",
    "a\\",
    "id:1",
    "!@#$%^&*()_+{}|:<>?~`",
    "\x00",
    "\x1b[31m",
    "\u202e\u2066",
    "IN [boat",
    "boat" * 3000,
    "boat " * 3000,
    "🐟",
    "'; DROP TABLE files; --",
    "-- boat",
)


def test_syntax_soup(workspace: Any) -> None:
    """Whatever is typed is a query: an answer or none, never an error."""
    library(workspace)
    for query in SOUP:
        for mode in ("hybrid", "keyword", "vector"):
            done = workspace("search", "--mode", mode, "--", query, code=None)
            assert done.code in (0, 1) or (done.code == 2 and not query.strip()), query
            assert "\x1b" not in done.stdout + done.stderr
        workspace.json("search", query if not query.startswith("-") else "x", code=None)


def test_without_a_catalog(either: Any) -> None:
    """Without a catalog there is no answer but what to do: 3, naming sync."""
    library(either)
    for harm in (b"", None):
        catalog = either.sidecar / "catalog.sqlite"
        catalog.unlink() if harm is None else catalog.write_bytes(b"no catalog" * 1000)
        for mode in ("hybrid", "vector", "keyword"):
            done = either("search", "boat", "--mode", mode, code=3)
            assert "filestore sync" in done.stderr
            assert done.stdout == ""
        answer = either.json("search", "boat", code=3)
        assert "filestore sync" in answer["remedy"]


def test_withheld_files_are_not_hits(either: Any) -> None:
    """What is withheld is not found, nor what the index has not seen where no search looks."""
    library(either)
    (either.chunked / "new.md").write_text("A catamaran has two hulls.\n")
    assert either.json("search", "catamaran", "--no-update", code=1)["hits"] == []
    (either.chunked / "summary1.md").write_bytes(b"---\n[\n---\nA summary about boats.\n")
    either.sync(code=1)
    assert either.found("catamaran") == ["new.md"]
    assert either.found("summary") == []


def test_text_is_safe_for_a_terminal(workspace: Any) -> None:
    """Escape sequences of a file never reach the terminal."""
    hostile = "Boat \x1b[31mred\x1b]0;title\x07 \x9b2J \u202ereversed\n"
    (workspace.chunked / "bad.md").write_text(hostile)
    workspace.sync()
    for words in (["search", "boat"], ["show", "bad.md"]):
        text = workspace(*words).stdout
        assert not set(text) & set("\x1b\x07\x9b\u202e")


def test_without_the_model(workspace: Any) -> None:
    """Where the store's model is not here, words still find, and the answer says so."""
    library(workspace)
    settings = workspace.store / "filestore.toml"
    settings.write_text(settings.read_text().replace('"builtin"', '"no-such-model"'))
    done = workspace.json("search", "anchor seabed", "--mode", "vector")
    assert done["mode"] == "keyword"
    assert done["hits"][0]["resource"] == "anchor.md"
    assert "keyword only" in done["notes"][0]
    assert "keyword only" in workspace("search", "anchor").stderr


def test_repeated_filters_add_up(workspace: Any) -> None:
    """Hits are of any of the sources and kinds that are named, and have all of the metadata."""
    for name in ("a.md", "b.md", "c.md"):
        workspace.write(name, f"---\ncolour: red\nsize: {name}\n---\nShared words of {name}.\n")
    workspace("add", "a.md", "b.md", "c.md")

    def hits(*words: str) -> set[str]:
        return {path.partition("/")[0] for path in workspace.found("shared", *words)}

    assert hits("--source", "a.md", "--source", "b.md") == {"a.md", "b.md"}
    assert hits("--kind", "summary", "--kind", "chunk") == {"a.md", "b.md", "c.md"}
    assert hits("--kind", "summary") == set()
    assert hits("--where", "colour=red", "--where", "size=b.md") == {"b.md"}


def test_a_store_to_which_nothing_was_added_names_add(either: Any) -> None:
    """What a person needs there is a document; a sync finds nothing."""
    done = either("search", "boiler", code=1)
    assert "nothing was added yet: run 'filestore add PATH'" in done.stderr
    assert "sync" not in done.stderr
