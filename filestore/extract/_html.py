"""HTML pages: their main content as Markdown, without what the site puts around it.

Lexbor parses and prunes; how what is left is written is for `html_markdown`. One rule: a hostile
page costs neither the stack nor unbounded time. Parsers are quadratic in nesting, in the attributes
of a tag and in different names: what goes past any count of the latter is cut. Nesting is estimated
before the page is parsed and measured before it is converted, which is recursive; a page that is
nested too deeply is flattened to its text.
"""

import html
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from filestore.extract import WHOLE_PAGE, _page_judge
from filestore.extract.base import (
    Document,
    ExtractionError,
    Extractor,
    decode,
    document_text,
    empty_error,
    encoding_metadata,
    json_value,
)
from filestore.extract.html_markdown import markdown, tidy
from filestore.extract.titles import checked_title

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_PARSED_DEPTH: Final = 500
_CONVERTED_DEPTH: Final = 150  # three stack frames a level, of the thousand Python allows
_REDIRECT_CHARACTERS: Final = 400  # a page that redirects says little else
_MAIN_SHARE: Final = 4  # what is called the main content holds a quarter of the text, or is not it


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VOID: Final = _names(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track"
    " wbr"
)
_CLOSED_BY_NEXT: Final = _names(
    "p li dt dd tr td th thead tbody tfoot colgroup option optgroup rp rt a nobr button html head"
    " body"
)
_RAW: Final = frozenset({"script", "style", "textarea", "title", "iframe", "noembed", "xmp"})
_FOREIGN: Final = ("svg", "math")
_INLINE: Final = _names(
    "a abbr b bdi bdo big cite code del em font i ins kbd mark q s samp small span strong sub sup"
    " tt u var wbr"
)
_MOST_ATTRIBUTES: Final = 200
"""Of a tag, and of all tags that are merged into one: each is compared with all before it."""
_MOST_NAMES: Final = 5_000
"""Of tags and attributes: the parser looks for each among all others."""
_MERGED: Final = frozenset({"html", "body"})
_ATTRIBUTE: Final = re.compile(
    r"""[ \t\n\r\f/]*+([^ \t\n\r\f/>][^ \t\n\r\f/>=]*+)(?:[ \t\n\r\f]*+=[ \t\n\r\f]*+"""
    r"""(?:"[^"]*+"|'[^']*+'|[^ \t\n\r\f>"'][^ \t\n\r\f>]*+))?+"""
)
_ATTRIBUTES: Final = re.compile(f"(?:{_ATTRIBUTE.pattern})*+")
_TAG: Final = re.compile(r"<(?:(!--)|(/?)([a-zA-Z][^\s/>]*))")
_COMMENT_END: Final = re.compile(r"--!?>")

_RUBBISH: Final = ", ".join(
    (
        "script, style, noscript, template, nav, aside, iframe, svg, object, embed, canvas, audio",
        "video, button, input, select, textarea, dialog, link, meta, [hidden], [aria-hidden=true]",
        '[style*="display:none" i], [style*="display: none" i], [role=navigation], [role=search]',
        "[role=banner], [role=contentinfo], [role=complementary], [role=menu], [role=dialog]",
        "#toc, .toc, #table-of-contents, .table-of-contents, .contents.topic, .contents.local",
        "#footer, #sidebar, #navigation, #searchbox, .sidebar-tree, .sphinxsidebar, .related",
        ".sidebar-nav, .navbar, .navheader, .navfooter, .nav, .navigation, .breadcrumb",
        ".breadcrumbs, .skip-link, .skiplink, .skip-to-content, .mw-jump-link, .mw-editsection",
        ".headerlink, .anchor-link, .anchorjs-link, .hash-link, .header-anchor, .copybtn",
        ".linenos, .lineno, .linenodiv, .noprint, .navbox, .catlinks, .printfooter, .vector-toc",
        "table.sidebar, .interlanguage-link, .vector-dropdown, .vector-page-toolbar",
        "#mw-navigation, #siteSub, .mw-indicators, .mw-hidden-catlinks, .share-buttons",
        ".share, .sharing, .social-share, #comments, .comments, .comment-list, .commentlist",
        "#disqus_thread, #respond",
        ".pagination, .prev-next-area, .rst-versions, .mobile-nav, .viewcode-link, .viewcode-back",
    )
)
_FOLDED: Final = (
    "details, [role=tabpanel], [class*=accordion], [class*=collapse]:not([class*=nav]), .tab-pane"
)
"""What a reader unfolds: it counts, though it is hidden at first."""
_FORMULAS: Final = (
    ".katex, .katex-display, mjx-container, .mwe-math-element, math, [data-tex]"
    ', script[type^="math/tex"]'
)
_DRAWN_FORMULAS: Final = ".MathJax, .MathJax_Preview, .MathJax_Display, .MJX_Assistive_MathML"
_DISPLAYED: Final = re.compile(r"^\{\\displaystyle (.*)\}$", re.DOTALL)
_GENERATORS: Final = re.compile(
    r"sphinx|docutils|mkdocs|docusaurus|rustdoc|vitepress|doxygen|jsdoc|javadoc|pdoc|asciidoc"
    r"|docbook|gitbook|pandoc|latex2html|texinfo|org[ -]mode|mdbook|antora|typedoc|yard|godoc"
    r"|mediawiki",
    re.I,
)
"""What makes documentation: such a page is all page."""
_MANUAL: Final = "pre, code, dl, :is(h1, h2, h3, h4) a[href^='#'], .headerlink, .toc"
"""What documentation has that does not say what made it."""
_LEAST_SHARE: Final = 0.1
_MARKED_SHARE: Final = 0.5
"""Of the words of a page, or of its marked part: where less is found to be the page, all is."""
_MAIN: Final = (
    "main, [role=main]",
    "article",
    "#mw-content-text",
    "#content",
    "#main-content",
    ".body",
)
_SECTIONS: Final = frozenset({"article", "main", "section", "blockquote"})
_BLOCKS: Final = "h1, h2, h3, h4, p, article, main, pre, table"

_SPACES: Final = re.compile(r"\s+")


class HtmlExtractor(Extractor):
    """Web pages and generated documentation."""

    name = "html"
    version = 4
    isolated = True

    @property
    def label(self) -> str:
        """Name and version, and who finds what of a page counts."""
        return f"{super().label}+{'trafilatura' if _page_judge.is_installed() else 'whole'}"

    def extract(self, data: bytes, *, name: str) -> Document:
        """Finds the main content and writes it as Markdown; see `Extractor.extract`."""
        decoded, encoding = decode(data, name=name)
        source = _bounded(document_text(decoded.replace("\0", "\ufffd"), name=name))
        metadata: dict[str, Any] = {}
        markdown, unjudged, is_marked = None, "", False
        if _nesting(source, _VOID | _CLOSED_BY_NEXT) <= _PARSED_DEPTH:
            metadata, markdown, unjudged, is_marked = _read(source, name=name)
        if markdown is not None:
            markdown = markdown.replace("\xad", "")
            if unjudged and _page_judge.is_installed():
                least = _MARKED_SHARE if is_marked else _LEAST_SHARE
                markdown = _page_judge.page_alone(markdown, unjudged, least=least)
        is_whole = bool(unjudged) and not is_marked and not _page_judge.is_installed()
        text = flat_text(source) if markdown is None else markdown
        if not text.strip():
            raise empty_error(name, "found a page without any")
        return Document(
            text=document_text(text, name=name),
            syntax="text" if markdown is None else "markdown",
            metadata=metadata | encoding_metadata(encoding),
            extractor=self.label,
            title=str(metadata.get("title", "")),
            remarks=(WHOLE_PAGE,) if is_whole else (),
        )


# ---- nesting, and text without markup ------------------------------------------------------------


class _Tag(NamedTuple):
    text: str
    """What is before it."""
    name: str
    """In lower case; "" for what opens nothing."""
    closing: bool = False
    start: int = 0
    attributes: tuple[int, int] = (0, 0)
    """Where they begin and end."""
    end: int = 0


def _scan(source: str) -> Iterator[_Tag]:
    """Every tag with the text before it; one pass.

    Contents of scripts, styles and comments are left out.
    """
    position = 0
    foreign = dict.fromkeys(_FOREIGN, 0)
    endless: set[str] = set()
    while found := _TAG.search(source, position):
        text = source[position : found.start()]
        if found[1]:
            end = _COMMENT_END.search(source, found.end() - 2)
            position = end.end() if end else len(source)
            yield _Tag(text, "")
            continue
        name, closing = found[3].lower(), bool(found[2])
        rest = _ATTRIBUTES.match(source, found.end())
        attributes = rest.span() if rest else (found.end(), found.end())
        position = (source.find(">", attributes[1]) + 1) or len(source)
        if name in foreign:
            foreign[name] = max(0, foreign[name] + (-1 if closing else 1))
        # in a drawing, a tag may close itself, and a style is no raw text
        drawing = any(foreign.values())
        empty = drawing and source[position - 2 : position] == "/>"
        yield _Tag(text, "" if empty else name, closing, found.start(), attributes, position)
        if name in _RAW and not (closing or drawing or name in endless):
            raw_end = re.compile(rf"</{name}(?=[\s/>])", re.I).search(source, position)
            position = raw_end.start() if raw_end else position
            endless |= set() if raw_end else {name}
    yield _Tag(source[position:], "")


def _bounded(source: str) -> str:
    """A page without what takes a parser minutes: attributes and names of tags past any count."""
    names, merged = {""}, 0
    pieces, done = list[str](), 0
    for tag in _scan(source):
        first, last = tag.attributes
        name = source[tag.start : first].lstrip("</").lower()
        if len(names) >= _MOST_NAMES and name not in names:
            pieces.append(source[done : tag.start])
            done = max(done, tag.end)
            continue
        names.add(name)
        room = _MOST_ATTRIBUTES - (merged if tag.name in _MERGED else 0)
        number = -1
        for number, one in enumerate(_ATTRIBUTE.finditer(source, first, last)):
            if number >= room or (len(names) >= _MOST_NAMES and one[1] not in names):
                pieces.append(source[done : one.start()])
                done = last
                break
            names.add(one[1])
        merged += number + 1 if tag.name in _MERGED else 0
    return "".join((*pieces, source[done:])) if pieces else source


def _closed(page: str) -> str:
    """A page with `<br/>` for `<br>`: the converter's parser searches a list of all others."""
    pieces, done = list[str](), 0
    for tag in _scan(page):
        if tag.name in _VOID and not tag.closing and page[tag.end - 2 : tag.end] != "/>":
            pieces += page[done : tag.end - 1], "/"
            done = tag.end - 1
    return "".join((*pieces, page[done:]))


def _nesting(source: str, ignored: frozenset[str]) -> int:
    """The deepest nesting of elements, roughly, not counting those with ignored names."""
    depth = deepest = 0
    for tag in _scan(source):
        if not tag.name or tag.name in ignored:
            continue
        depth = max(0, depth - 1) if tag.closing else depth + 1
        deepest = max(deepest, depth)
    return deepest


def flat_text(source: str) -> str:
    """All text of a page, a line for each block."""
    pieces: list[str] = []
    for tag in _scan(source):
        pieces.append(_SPACES.sub(" ", html.unescape(tag.text)))
        if tag.name and tag.name not in _INLINE:
            pieces.append("\n")
    lines = (line.strip() for line in "".join(pieces).replace("\0", "\ufffd").split("\n"))
    return "\n".join(line for line in lines if line) + "\n"


# ---- reading a page ------------------------------------------------------------------------------


def _read(source: str, *, name: str) -> tuple[dict[str, Any], str | None, str, bool]:
    """Read a page.

    Returns:
        Its metadata; its Markdown, None where it is nested too deeply to be converted; all of it,
        empty for documentation; and whether one part is marked as what the page is.
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(source)
    metadata = _described(tree, name=name)
    generator = tree.css_first('meta[name="generator" i]')
    made_by = str(generator.attributes.get("content") or "") if generator else ""
    refresh = tree.css_first('meta[http-equiv="refresh" i]')
    redirect = str(refresh.attributes.get("content") or "") if refresh else ""
    target = redirect.partition("=")[2].strip(" '\"") if "url" in redirect.lower() else ""
    for formula in _outermost(tree.css(_FORMULAS)):
        formula.replace_with(_latex(formula))
    is_manual = _GENERATORS.search(made_by) or tree.css_first(_MANUAL) is not None
    _unfold(tree)
    whole = tree.html or ""
    _prune(tree)
    body = tree.body
    if body is None:
        raise empty_error(name, "found a page without a body")
    if target and len(_words(body)) < _REDIRECT_CHARACTERS:
        raise ExtractionError(
            f"{name} only redirects to {target}: add that page, and leave this one out",
        )
    content = _main_content(body)
    is_marked = content.mem_id != body.mem_id and content.css_first(_BLOCKS) is not None
    unjudged = "" if _GENERATORS.search(made_by) or (is_marked and is_manual) else whole
    first = body.css_first("h1")
    outside = first is not None and content.css_first("h1") is None
    if not metadata.get("title") and first is not None and _words(first):
        metadata["title"] = _words(first)
    content.unwrap_tags(["span", "font"])  # they say nothing, and are half of all tags
    lead = f"<h1>{html.escape(_words(first))}</h1>" if first is not None and outside else ""
    page = lead + (content.html or "")
    if _nesting(page, _VOID) > _CONVERTED_DEPTH:
        return metadata, None, "", is_marked
    try:
        return metadata, tidy(markdown(_closed(page))), unjudged, is_marked
    except RecursionError:  # the caller's own stack was deep already
        return metadata, None, "", is_marked


def _described(tree: "LexborHTMLParser", *, name: str) -> dict[str, Any]:
    title = tree.css_first("head > title") or tree.css_first("title")
    root = tree.css_first("html")
    values: dict[str, Any] = {"title": checked_title(_words(title) if title else "", name=name)}
    for meta in tree.css("meta[content]"):
        key = str(meta.attributes.get("name") or meta.attributes.get("property") or "").lower()
        known = _META.get(key)
        if known and not values.get(known):
            values[known] = " ".join(str(meta.attributes.get("content") or "").split())
    values["language"] = root.attributes.get("lang") if root else ""
    if values.get("keywords"):
        words = (word.strip() for word in values["keywords"].split(","))
        values["keywords"] = [word for word in words if word]
    return {key: json_value(value) for key, value in values.items() if value}


def _words(node: "LexborNode") -> str:
    return " ".join(node.text(separator="").replace("\xad", "").split())


def _latex(node: "LexborNode") -> str:
    """A formula as LaTeX between dollar signs; one without any as its fractions and powers read."""
    written = node.css_first('annotation[encoding="application/x-tex"]')
    math = node if node.tag == "math" else node.css_first("math")
    alone = node if node.tag == "script" else written
    latex = alone.text() if alone is not None else str(node.attributes.get("data-tex") or "")
    if not latex and math is not None:
        latex = str(math.attributes.get("alttext") or "") or _linear(math)
    latex = _DISPLAYED.sub(r"\1", " ".join(latex.split())) or _words(node)
    return f" ${latex.strip(' $')}$ " if latex else ""


def _linear(node: "LexborNode") -> str:
    """MathML as one line of LaTeX."""
    parts = [_linear(child) if child.tag != "-text" else child.text() for child in node.iter(True)]
    parts = [part.strip() for part in parts if part.strip()]
    form = _MATHML.get(str(node.tag))
    return form.format(*parts) if form and form.count("{}") == len(parts) else " ".join(parts)


_MATHML: Final = {
    "mfrac": r"\frac{{{}}}{{{}}}",
    "msup": "{}^{{{}}}",
    "msub": "{}_{{{}}}",
    "msubsup": "{}_{{{}}}^{{{}}}",
    "msqrt": r"\sqrt{{{}}}",
    "mroot": r"\sqrt{{{}}}",
}


def _unfold(tree: "LexborHTMLParser") -> None:
    _remove(tree.css(_DRAWN_FORMULAS))
    for folded in tree.css(_FOLDED):
        for button in folded.css("button"):
            question = tree.create_node("h4")
            question.insert_child(_words(button))
            button.replace_with(question)
        for node in (folded, *folded.css("[hidden], [style], [aria-hidden]")):
            for name in {"hidden", "style", "aria-hidden"} & node.attributes.keys():
                del node.attrs[name]


_META: Final = {
    "author": "author",
    "dc.creator": "author",
    "article:author": "author",
    "og:title": "title",
    "description": "description",
    "dc.description": "description",
    "og:description": "description",
    "keywords": "keywords",
    "date": "date",
    "dc.date": "date",
    "dcterms.date": "date",
    "article:published_time": "date",
}


# ---- pruning -------------------------------------------------------------------------------------


def _prune(tree: "LexborHTMLParser") -> None:
    for form in _outermost(tree.css("form")):
        if form.css_first(_BLOCKS) is None:
            form.decompose()
    _remove(tree.css(_RUBBISH))
    body = tree.body
    if body is None:
        return
    _remove(
        node
        for node in body.css("header, footer")
        # In an article, or with the title, it does not belong to the site.
        if not (node.tag == "header" and node.css_first("h1") is not None)
        and not any(parent.tag in _SECTIONS for parent in _ancestors(node))
    )
    jumps = []
    for node in body.css('a[href^="#"]'):
        text = _words(node)
        # The mark next to a heading, or what leads past the navigation.
        if text in {"¶", "#", "§"} or text.lower().startswith("skip to"):
            jumps.append(node)
    _remove(jumps)


def _remove(nodes: "Iterable[LexborNode]") -> None:
    for node in _outermost(nodes):
        if node.tag not in {"html", "body", "head"}:
            node.decompose()


def _outermost(nodes: "Iterable[LexborNode]") -> "list[LexborNode]":
    """Each node once, and none inside another: what was freed with its parent is out of bounds."""
    found = {node.mem_id: node for node in nodes}
    return [
        node
        for node in found.values()
        if not any(parent.mem_id in found for parent in _ancestors(node))
    ]


def _ancestors(node: "LexborNode") -> "Iterator[LexborNode]":
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _main_content(body: "LexborNode") -> "LexborNode":
    enough = len(_words(body)) / _MAIN_SHARE
    for selector in _MAIN:
        found = _outermost(body.css(selector))
        if len(found) != 1 or len(_words(found[0])) < enough:
            continue
        content = found[0]
        parent = content.parent
        if parent is None or content.css_first("h1") is not None:
            return content
        # The page's title may be in a box of its own next to the content.
        is_in_a_box = any(
            child.tag == "h1" or child.css_first("h1") is not None
            for child in parent.iter()
            if child.mem_id != content.mem_id
        )
        return parent if is_in_a_box else content
    return body
