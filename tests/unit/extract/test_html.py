"""HTML: the main content as clean Markdown, and hostile pages harmless."""

import pytest
from markdown_it import MarkdownIt

from filestore.extract import ExtractionError, _html, for_name
from filestore.extract._html import HtmlExtractor
from filestore.extract.html_markdown import tidy


def extract(page, encoding="utf-8"):
    return HtmlExtractor().extract(page.encode(encoding), name="page.html")


def text_of(body):
    return extract(f"<title>t</title><body>{body}</body>").text


def test_only_the_main_content_stays():
    """Navigation, search, scripts, footers, hidden parts and heading marks are gone."""
    page = """<body><header>SITE</header><nav>MENU</nav><a href="#m">Skip to content</a>
    <div class="sphinxsidebar">SIDE</div><form role="search">FIND</form>
    <main id="m"><div class="toc">TOC</div><h1>Heath<a class="headerlink" href="#h">¶</a></h1>
    <article><header>By Ann</header><p>Peat.</p><footer>Notes</footer></article>
    <p hidden>GONE</p><p style="display:none">GONE</p><script>GONE</script></main>
    <footer>IMPRINT</footer></body>"""
    assert extract(page).text == "# Heath\n\nBy Ann\n\nPeat.\n\nNotes\n"


def test_title_beside_the_content_is_kept():
    """Where the title has a box of its own beside the content, both stay."""
    page = """<div id="header"><h1>git-add</h1></div>
    <div id="content"><h2>NAME</h2><p>adds</p></div>
    <div id="footer">Last updated</div>"""
    assert text_of(page) == "# git-add\n\n## NAME\n\nadds\n"


def test_code_keeps_every_character():
    """A listing keeps blank lines, indentation and markup characters; its language is named."""
    page = """<div class="highlight-python3 notranslate"><div class="highlight"><pre>
<span>def</span> <span>f</span>(*a):


    <b>return</b> a_b  # &lt;tag&gt; *x*
</pre></div></div>"""
    assert text_of(page) == "```python\ndef f(*a):\n\n\n    return a_b  # <tag> *x*\n```\n"


def test_listing_with_fences_in_it_is_fenced_longer():
    """A listing of Markdown cannot end its own fence."""
    assert text_of("<pre>```\nx\n```</pre>") == "````\n```\nx\n```\n````\n"


def test_lists_and_terms():
    """Lists nest and number from their start; terms with one definition share a line."""
    page = """<ol start="3"><li>a<ul><li>b</li></ul></li><li><p>c</p><pre>d</pre></li></ol>
    <dl><dt>-n</dt><dt><code>--dry</code></dt><dd><p>Try.</p></dd></dl>"""
    assert text_of(page) == (
        "3. a\n   - b\n4. c\n\n   ```\n   d\n   ```\n\n**-n**, `--dry`\n\nTry.\n"
    )


def test_tables():
    """A table of data is a Markdown table, wide cells and bars included; a layout table is not."""
    data = "<table><tr><th>A<th>B|C</tr><tr><td colspan=2>x<br>y</tr><tr><td></tr></table>"
    assert text_of(data) == "| A | B\\|C |\n| --- | --- |\n| x<br>y |  |\n"
    layout = "<table><tr><td><h2>Left</h2></td><td><p>right</p></td></tr></table>"
    assert text_of(layout) == "## Left\n\nright\n"


def test_links():
    """Links into the web keep their address; anchors, relative and script links only their text."""
    page = """<p><a href="https://a.b/c (d)">one</a> <a href="#x">two</a> <a href="f.html">three</a>
    <a href="javascript:x()">four</a> <a href="http://a.b">http://a.b</a></p>"""
    assert text_of(page).split("\n")[0] == "[one](https://a.b/c%20%28d%29) two three"
    assert "four <http://a.b>" in text_of(page)


@pytest.mark.parametrize(
    "prose",
    ["# not a heading", "- no list", "1. no list", "> no quote", "&lt;div&gt;", "---", "~~~"],
)
def test_prose_is_not_read_as_markup(prose):
    """A paragraph that starts like Markdown markup is still a paragraph."""
    tokens = MarkdownIt("commonmark").parse(text_of(f"<p>{prose}</p>"))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]


def test_metadata():
    """Title, author, description, keywords, date and language are taken from the head."""
    page = """<html lang="en"><head><title> A
    title </title><meta name="Author" content="Ann"><meta name="keywords" content="a, b ,">
    <meta property="og:description" content="About"><meta name="date" content="2024-01-02"></head>
    <body><h1>Other</h1></body></html>"""
    assert extract(page).metadata == {
        "title": "A title",
        "author": "Ann",
        "keywords": ["a", "b"],
        "description": "About",
        "date": "2024-01-02",
        "language": "en",
    }
    assert extract("<h1>Heath <i>x</i></h1>").metadata["title"] == "Heath x"


@pytest.mark.parametrize(
    ("declared", "codec"),
    [("iso-8859-1", "cp1252"), ("Shift_JIS", "cp932"), ("gb2312", "gb18030"), ("koi8-r", "koi8_r")],
)
def test_declared_encoding_is_used(declared, codec):
    """A page is read in the encoding it declares, and the metadata name it."""
    word = {"cp1252": "Größe", "cp932": "設定", "gb18030": "一切", "koi8_r": "ДА"}[codec]
    document = extract(f'<meta charset="{declared}"><p>{word}</p>', codec)
    assert document.text == word + "\n"
    assert document.metadata["encoding"] == codec


def test_wrong_declaration_does_not_spoil_utf8():
    """UTF-8 is read as UTF-8 whatever the page declares."""
    assert extract('<meta charset="iso-8859-1"><p>Größe</p>').text == "Größe\n"


def test_redirect_is_refused():
    """A page that only sends the reader on is no document; the message says where it leads."""
    page = '<meta http-equiv="Refresh" content="0; url=new.html"><p>Moved.</p>'
    with pytest.raises(ExtractionError, match=r"new\.html"):
        extract(page)


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 50_000 + "word",
        "<div/>" * 50_000 + "word",
        "<ul><li>" * 5_000 + "word",
        "".join(f"<b id={number}>" for number in range(50_000)) + "word",
        "<table><tr><td>" * 5_000 + "word",
        "<svg><style>" + "<div>" * 50_000 + "word</style>",
        "<div>" * 300 + "word",
        "word" + "<script>" * 20_000,
        "word" + "<!--" * 100_000,
        "word" + "<div>" * 20_000 + "</p>" * 20_000,
    ],
)
def test_hostile_nesting_gives_a_result(page):
    """Absurd nesting neither overflows the stack nor hangs; the words are still found."""
    assert extract(page).text.split() == ["word"]


@pytest.mark.parametrize(
    "page",
    [
        "<ol start='²'><li value='x'>word</ol>",
        "<table><tr><td colspan='²'>word<td colspan=99999999999>x</table>",
        "<a href='http://[broken'>word</a>",
        "<nav><nav><div class=toc><nav></nav></div></nav></nav>word",
    ],
)
def test_odd_attributes_are_harmless(page):
    """Values that are no numbers or no addresses spoil nothing."""
    assert "word" in text_of(page)


def test_tidying_twice_changes_nothing():
    """Blank lines and trailing spaces are tidied once and for all, listings are left alone."""
    untidy = "a  \n\n\n\nb\n\n```\nx  \n\n\ny\n```\n\n\n"
    assert tidy(untidy) == "a\n\nb\n\n```\nx  \n\n\ny\n```\n"
    assert tidy(tidy(untidy)) == tidy(untidy)


CROWDED = {
    "attributes": lambda n: "<p " + " ".join(f"a{i}='>'" for i in range(n)) + ">words</p>",
    "closing tag": lambda n: "<p>words</p " + " ".join(f"a{i}" for i in range(n)) + ">",
    "merged tags": lambda n: "".join(f"<body a{i}=x>" for i in range(n)) + "<p>words</p>",
    "names of attributes": lambda n: "<i>" + "".join(f"<b a{i}></b>" for i in range(n)) + "words",
    "names of tags": lambda n: "".join(f"<t{i}></t{i}>" for i in range(n)) + "<p>words</p>",
    "drawing": lambda n: f"<svg>{''.join(f'<t{i} a{i}=x/>' for i in range(n))}</svg><p>words</p>",
}


@pytest.mark.parametrize("family", CROWDED)
def test_a_parser_never_sees_more_names_than_it_can_compare(family):
    """What a page has far too many of is cut, and its words stay."""
    page = f"<body><h1>Head</h1>{CROWDED[family](30_000)}<p>end</p>"
    kept = _html._bounded(page)
    assert len(kept) < len(page) * 2 / 3
    assert len(_html._bounded(kept)) <= len(kept)
    assert "words" in kept
    text = for_name("page.html").extract(page.encode(), name="page.html").text
    assert "words" in text
    assert "end" in text


@pytest.mark.parametrize(
    "page",
    [
        "<p title=\"a > b\" class='c d' hidden>x</p>",
        "<script>if (a<b && c>d) { x = 'y' }</script><p>x</p>",
        "<!-- <p a b c> --><svg><path d='M 1 > 2'/></svg><p>x",
        "<p a = 'b' / c>x</p><p a='unclosed>x</p>",
        "<p " + " ".join(f"a{i}=x" for i in range(199)) + ">x</p>",
    ],
)
def test_a_page_as_people_write_them_is_left_as_it_is(page):
    """Not a character is changed."""
    assert _html._bounded(page) == page


def test_cells_under_a_span_stay_in_their_columns():
    """A cell that reaches down leaves its place empty in the rows below."""
    rows = """<tr><th rowspan=2>Place<th colspan=2>Height<tr><th>Low<th>High
    <tr><td rowspan=3>West<td>1<td rowspan=2>5<tr><td>2<tr><td colspan=2>shut"""
    assert text_of(f"<table>{rows}</table>") == (
        "| Place | Height |  |\n| --- | --- | --- |\n|  | Low | High |\n"
        "| West | 1 | 5 |\n|  | 2 |\n|  | shut |  |\n"
    )


def test_the_line_under_a_wide_head_is_as_wide():
    """A head of many columns has a mark for each of them."""
    head, line = text_of(f"<table><tr>{'<th>C' * 90}<tr>{'<td>1' * 90}</table>").split("\n")[:2]
    assert head.count("|") == line.count("|") == 91


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (
            '<span class="katex"><span class="katex-mathml"><math><semantics><mi>E</mi><annotation '
            'encoding="application/x-tex">E=mc^2</annotation></semantics></math></span>'
            '<span class="katex-html" aria-hidden="true"><i>E</i></span></span>',
            "$E=mc^2$",
        ),
        (
            '<span class="MathJax_Preview">x</span><span class="MathJax">x2</span>'
            '<script type="math/tex">x^2</script>',
            "$x^2$",
        ),
        ("<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "$\\frac{1}{2}$"),
        ('<span data-tex="\\alpha">α</span>', "$\\alpha$"),
        ('<math alttext="{\\displaystyle a+b}"><mi>a</mi></math>', "$a+b$"),
    ],
)
def test_a_formula_is_there_once(formula, expected):
    """Whatever draws a formula, its LaTeX is what stays."""
    assert " ".join(text_of(f"<p>so {formula} holds</p>").split()) == f"so {expected} holds"


def test_what_a_reader_unfolds_is_content():
    """Tabs and answers that are hidden at first stay, with their question."""
    page = """<div role="tabpanel" hidden><p>Run it.</p></div><details><summary>Cost</summary>
    <p>Free.</p></details><div class="accordion"><button>Why?</button><div style="display:none">
    <p>Because.</p></div></div><button>Send</button><p hidden>GONE</p>"""
    assert text_of(page) == "Run it.\n\nCost\n\nFree.\n\n#### Why?\n\nBecause.\n"


def test_soft_hyphens_are_nothing_and_comments_go():
    """A word is found as it is typed; what visitors wrote is not the page."""
    page = '<p>co\xadoper&shy;ation</p><div class="comments"><p>First!</p></div>'
    assert text_of(page) == "cooperation\n"


def test_the_title_heads_the_page_unless_a_program_filled_it_in():
    """`<title>`, else `og:title`, else the first heading is what the document is called."""
    assert extract("<title>Ferry times</title><p>x").title == "Ferry times"
    other = "<title>Untitled Document</title><meta property='og:title' content='Boats'>"
    assert extract(f"{other}<h1>Big</h1><p>x").title == "Boats"
    assert extract("<title>Untitled</title><h1>Big</h1><p>x").metadata == {"title": "Big"}


SITE = """<head>{head}<title>News</title></head><body><div class="bar"><ul><li><a href="/a">Home</a>
<li><a href="/b">Sports</a></ul></div><{tag}><h1>Ferry runs again</h1>{prose}<pre>dock --now</pre>
{prose}</{tag}><div class="box"><h4>Most read</h4><ul><li><a href="/4">Storm closes port</a></li>
<li><a href="/5">Fish prices</a></li></ul></div></body>"""
PROSE = "<p>" + "The harbour office keeps a list of boats that stay over night. " * 6 + "</p>"


def test_what_a_site_puts_around_a_page_goes():
    """The judge keeps the article and our code in it; a page that says what it is stays whole."""
    pytest.importorskip("trafilatura")
    alone = extract(SITE.format(head="", tag="div", prose=PROSE))
    assert "Storm" not in alone.text
    assert "Home" not in alone.text
    assert alone.text.startswith("# Ferry runs again\n\nThe harbour")
    assert "```\ndock --now\n```" in alone.text
    assert alone.extractor == "html/4+trafilatura"
    made = '<meta name="generator" content="Sphinx 8">'
    assert "Storm" in extract(SITE.format(head=made, tag="div", prose=PROSE)).text
    assert "dock --now" in extract(SITE.format(head="", tag="main", prose=PROSE)).text


def test_what_a_site_puts_into_the_marked_part_goes_unless_it_is_a_manual():
    """A list of other stories within `main` goes; a page with code or anchors is left alone."""
    pytest.importorskip("trafilatura")
    other = '<h4>Most read</h4><ul><li><a href="/4">Storm closes port</a></li></ul>'
    page = f"<main><div><h1>Ferry</h1>{{}}{PROSE}{PROSE}</div><div>{other}</div></main>"
    assert "Storm" not in extract(page.format("")).text
    assert "Storm" in extract(page.format("<pre>dock --now</pre>")).text
    assert "Storm" in extract(page.format('<h2><a href="#x">Fares</a></h2>')).text
    assert "Storm" in extract(f"<main><h1>Ferry</h1>{PROSE}{other * 40}</main>").text


def test_without_the_judge_a_page_is_whole_and_that_is_remarked(monkeypatch):
    """Who cannot judge reads all, says so in the version, and names what to install."""
    monkeypatch.setattr(_html._page_judge, "is_installed", lambda: False)
    whole = extract(SITE.format(head="", tag="div", prose=PROSE))
    assert "Storm" in whole.text
    assert whole.extractor == "html/4+whole"
    assert "extra 'web'" in whole.remarks[0]
    assert extract(SITE.format(head="", tag="main", prose=PROSE)).remarks == ()
