"""What a store, a resource and a question are about, with summaries and without."""

import json
from typing import Any

import pytest

NONE = (
    "no summaries are here: 'filestore enrich --summaries' makes them;"
    " what is shown are titles and headings"
)


@pytest.fixture
def shelf(either: Any) -> Any:
    """Two documents."""
    either.write(
        "garden.md",
        "# The garden year\n\n## Beans\n\nBeans climb.\n\n## Leeks\n\nLeeks stand in frost.\n",
    )
    either.write("boats.md", "# Building boats\n\nA keel of oak is laid.\n")
    either("add", "garden.md", "boats.md")
    return either


@pytest.fixture
def summarized(workspace: Any) -> Any:
    """A document of three chunks with two summaries in a chain, and a document without."""
    for name, text in (
        ("chunk1", "Beans climb."),
        ("chunk2", "Leeks stand."),
        ("chunk10", "Peas."),
    ):
        workspace.write(f"file_index/chunked/garden/{name}.md", f"{text} More of it follows.\n")
    workspace.write("file_index/chunked/boats/chunk1.md", "A keel of oak is laid.\n")
    workspace.summarize(
        "garden/summary1.md",
        "Climbing plants",
        "What climbs in summer. And what does not.\n",
        ["garden/chunk10.md", "garden/chunk1.md"],
    )
    workspace.summarize(
        "garden/summary2.md",
        "The garden year",
        "A year among vegetables. It begins with beans.\n",
        ["garden/summary1.md", "garden/chunk2.md"],
        level=2,
    )
    workspace.sync()
    return workspace


def test_a_store_without_summaries(shelf: Any) -> None:
    """Its documents are named by their titles, and how summaries are made is said."""
    done = shelf.json("about")
    assert (done["about"], done["resources"], done["summaries"]) == ("store", 2, 0)
    assert {one["resource"]: one["title"] for one in done["documents"]} == {
        "garden.md": "The garden year",
        "boats.md": "Building boats",
    }
    assert done["nodes"] == []
    assert done["notes"] == [NONE]
    words = shelf("about")
    assert "The garden year" in words.stdout
    assert NONE in words.stderr


def test_a_resource_without_summaries(shelf: Any) -> None:
    """Its headings are its outline, in reading order."""
    done = shelf.json("about", "garden")
    assert (done["about"], done["name"]) == ("resource", "garden.md")
    assert [(one["depth"], one["title"]) for one in done["outline"]] == [
        (1, "The garden year"),
        (2, "Beans"),
        (2, "Leeks"),
    ]
    assert "   The garden year\n      Beans\n" in shelf("about", "garden.md").stdout


def test_a_question_without_summaries(shelf: Any) -> None:
    """The documents that answer it are named, best first."""
    done = shelf.json("about", "keel", "of", "oak")
    assert (done["about"], done["name"]) == ("query", "keel of oak")
    assert done["documents"][0]["resource"] == "boats.md"
    assert NONE in done["notes"]


def test_what_nothing_answers(workspace: Any) -> None:
    """It is said, and the exit code tells."""
    assert "nothing yet" in workspace("about", code=1).stdout
    assert "nothing found" in workspace("about", "keel", code=1).stdout


def test_a_store_with_summaries(summarized: Any) -> None:
    """The roots stand at the top, what they were made from below them, in natural order."""
    done = summarized.json("about", "--depth", "3")
    assert (done["chunks"], done["summaries"], done["stale"]) == (4, 2, 0)
    (root,) = done["nodes"]
    assert (root["title"], root["level"], root["children"]) == ("The garden year", 2, 2)
    assert root["text"] == "A year among vegetables. It begins with beans."
    assert [one["path"] for one in root["below"]] == [
        "chunked/garden/summary1.md",
        "chunked/garden/chunk2.md",
    ]
    assert [one["path"] for one in root["below"][0]["below"]] == [
        "chunked/garden/chunk1.md",
        "chunked/garden/chunk10.md",
    ]
    assert done["notes"] == []
    assert [one["resource"] for one in done["documents"]] == ["boats", "garden"]


def test_as_deep_as_asked(summarized: Any) -> None:
    """One level are the roots; a depth of none is wrong usage."""
    (root,) = summarized.json("about", "--depth", "1")["nodes"]
    assert root["below"] == []
    assert "1 to 50" in summarized("about", "--depth", "0", code=2).stderr
    assert "1 to 50" in summarized("about", "--depth", "51", code=2).stderr


def test_a_resource_with_summaries(summarized: Any) -> None:
    """Its tree, with the counts of its own files; one that has none says so."""
    done = summarized.json("about", "garden")
    assert (done["chunks"], done["summaries"]) == (3, 2)
    assert [one["title"] for one in done["nodes"]] == ["The garden year"]
    assert NONE in summarized.json("about", "boats")["notes"]


def test_a_file(summarized: Any) -> None:
    """A summary is told with what is below it."""
    done = summarized.json("about", "chunked/garden/summary1.md")
    assert done["about"] == "file"
    assert [one["title"] for one in done["nodes"]] == ["Climbing plants"]
    assert len(done["nodes"][0]["below"]) == 2


def test_a_question(summarized: Any) -> None:
    """The highest summary that answers it, and what is below."""
    done = summarized.json("about", "year among vegetables")
    assert [one["path"] for one in done["nodes"]] == ["chunked/garden/summary2.md"]
    words = summarized("about", "year among vegetables").stdout
    assert words.startswith("The garden year  (2 passages)\n   A year among vegetables. It begins")


def test_stale_summaries_say_so(summarized: Any) -> None:
    """A changed text makes its summaries outdated, here as in hits."""
    summarized.write("file_index/chunked/garden/chunk1.md", "Beans do not climb.\n")
    summarized.sync(code=None)
    done = summarized.json("about", "garden")
    assert done["stale"] == 2
    assert {one["freshness"] for one in done["nodes"]} == {"outdated"}
    assert done["notes"] == ["2 summaries are out of date: run 'filestore enrich --refresh'"]
    words = summarized("about", "garden").stdout
    assert "garden: 3 chunks, 2 summaries (2 outdated)\n" in words
    assert "The garden year  [outdated]" in words


def test_summaries_in_circles(summarized: Any) -> None:
    """Summaries that name each other are told once each."""
    from filestore.chunks import chunk_file

    low, high = (summarized.chunked / f"garden/summary{one}.md" for one in (1, 2))
    children = chunk_file.parse(low.read_bytes()).children
    up = chunk_file.Child(path=type(children[0].path)("garden/summary2.md"), hash="no hash")
    low.write_bytes(chunk_file.update(low.read_bytes(), children=[*children, up]))
    summarized.sync(code=None)
    for asked in ([], ["garden"], ["climbs in summer"]):
        done = summarized.json("about", "--depth", "50", *asked)
        paths = [one for node in done["nodes"] for one in all_paths(node)]
        assert paths
        assert len(paths) == len(set(paths))
    assert high.exists()


def all_paths(node: Any) -> list[str]:
    """The paths of a node and of those below it."""
    return [node["path"], *(path for one in node["below"] for path in all_paths(one))]


def test_a_wide_summary_is_cut(summarized: Any) -> None:
    """Of a summary of very many texts the first are shown, and the rest is counted."""
    names = [f"wide/chunk{number}.md" for number in range(1, 301)]
    for name in names:
        summarized.write(f"file_index/chunked/{name}", f"Text of {name}{' and so on' * 99}.\n")
    summarized.summarize("wide/summary1.md", "Wide", "All of them.\n", names)
    summarized.sync()
    done = summarized.json("about", "wide")
    (node,) = done["nodes"]
    assert node["children"] == 300
    assert len(node["below"]) == 39
    assert len(json.dumps(done)) < 40_000
    assert "261 more are not shown" in done["notes"][0]


def test_many_roots_are_cut_in_words(workspace: Any) -> None:
    """On a screen the first are shown, and how many more there are."""
    for number in range(1, 31):
        workspace.write(f"file_index/chunked/r{number}/chunk1.md", f"Text {number}.\n")
        workspace.summarize(
            f"r{number}/summary1.md", f"Title {number}", "All.\n", [f"r{number}/chunk1.md"]
        )
    workspace.sync()
    words = workspace("about").stdout
    assert words.count("Title ") == 20
    assert "… and 10 more: name a document; --json has all" in words
    assert len(workspace.json("about")["nodes"]) == 30


def test_many_documents_have_topics(workspace: Any) -> None:
    """Named by what they share, with sizes and paths that `show` takes; a folder has its own."""
    for number in range(8):
        for name, words in (("hives", "honeycomb and queen"), ("boats", "keel and hull")):
            text = f"# {name} {number}\n\nOf {words}, in the {words}.\n"
            workspace.write(f"file_index/chunked/{name}{number}/chunk1.md", text)
    workspace.sync()
    done = workspace.json("about")
    assert sum(one["documents"] for one in done["topics"]) == 16
    terms = {term.casefold() for one in done["topics"] for term in one["terms"]}
    assert terms & {"honeycomb", "queen", "honeycomb queen"}
    assert terms & {"keel", "hull", "keel hull"}
    for topic in done["topics"]:
        assert len({path.split("/")[-2][:5] for path in topic["paths"]}) == 1
        for path in topic["paths"]:
            workspace("show", path)
    assert "8 documents" in workspace("about").stdout


def test_no_sentence_is_said_twice(workspace: Any) -> None:
    """What a summary took over from its first text is not printed again below it."""
    workspace.write("file_index/chunked/a/chunk1.md", "Beans climb up poles.\n\nThey want sun.\n")
    workspace.write("file_index/chunked/a/chunk2.md", "Beans climb up poles.\n")
    below = ["a/chunk1.md", "a/chunk2.md"]
    workspace.summarize("a/summary1.md", "Beans", "Beans climb up poles.\n", below)
    workspace.sync()
    assert workspace("about").stdout.count("Beans climb up poles.") == 1
    (node,) = workspace.json("about")["nodes"]
    assert [one["text"] for one in node["below"]] == ["They want sun.", ""]
