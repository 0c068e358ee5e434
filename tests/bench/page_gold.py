"""Made-up web pages of known text, with what sites of different kinds put around it.

The halves are by site, so that no frame is in both: rules were tried on "tuning" alone.
"""

import os
import random
import re
from collections import Counter
from dataclasses import dataclass

from tests.bench.table_gold import WORDS, sentence

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Page:
    """One page, and the words that a reader came for."""

    name: str
    kind: str
    half: str
    source: str
    text: str


class _Text:
    """A text, as HTML and as words."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.words, self.html = [], []

    def _put(self, html, *words):
        self.words += words
        self.html.append(html)

    def title(self):
        return sentence(self.chance, 5).rstrip(".")

    def head(self, level, **attributes):
        words = self.title()
        given = "".join(f' {key}="{value}"' for key, value in attributes.items())
        self._put(f"<h{level}{given}>{words}</h{level}>", words)
        return words

    def paragraph(self, tag="p"):
        words = " ".join(
            sentence(self.chance, self.chance.randint(8, 20))
            for _ in range(self.chance.randint(2, 5))
        )
        self._put(f"<{tag}>{words}</{tag}>", words)

    def items(self, tag="ul"):
        each = [sentence(self.chance, 7) for _ in range(self.chance.randint(3, 6))]
        self._put(f"<{tag}>{''.join(f'<li>{one}</li>' for one in each)}</{tag}>", *each)

    def table(self):
        rows = [[self.chance.choice(WORDS) for _ in range(3)] for _ in range(4)]
        cells = ["".join(f"<{'td' if n else 'th'}>{c}</{'td' if n else 'th'}>" for c in row)
                 for n, row in enumerate(rows)]  # fmt: skip
        self._put(
            f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>",
            *(cell for row in rows for cell in row),
        )

    def code(self):
        lines = [
            f"{self.chance.choice(WORDS)} = {self.chance.choice(WORDS)}({n})" for n in range(3)
        ]
        self._put(f"<pre><code>{chr(10).join(lines)}</code></pre>", *lines)

    def body(self, parts):
        for _ in range(parts):
            self.chance.choice([self.paragraph] * 4 + [self.items, self.table])()

    def taken(self):
        html, self.html = "".join(self.html), []
        return html


# ---- what is not the page ------------------------------------------------------------------------


class _Frame:
    def __init__(self, seed):
        self.chance = random.Random(f"frame {seed}")

    def links(self, count, tag="li", words=3):
        each = (
            f'<{tag}><a href="/{n}">{sentence(self.chance, words).rstrip(".")}</a></{tag}>'
            for n in range(count)
        )
        return "".join(each)

    def teasers(self, name, count=4):
        boxes = "".join(
            f'<div class="{name}-item"><a href="/t{n}"><h3>{sentence(self.chance, 6)}</h3></a>'
            f"<p>{sentence(self.chance, 14)}</p><span>{n + 2} min read</span></div>"
            for n in range(count)
        )
        return f'<div class="{name}"><h2>More stories</h2>{boxes}</div>'

    def comments(self, name):
        each = "".join(
            f'<div class="comment"><b>user{n}</b> <time>3 hours ago</time>'
            f"<p>{sentence(self.chance, 15)}</p><a>Reply</a></div>"
            for n in range(4)
        )
        return f'<section id="{name}" class="{name}"><h2>4 Comments</h2>{each}</section>'

    def cookies(self):
        return (
            '<div class="cookie-banner"><p>We use cookies to give you the best experience.'
            " Read our policy to find out more.</p><button>Accept all</button></div>"
        )

    def newsletter(self):
        return (
            '<div class="newsletter"><h4>Subscribe</h4><p>Get the best of our site in your inbox'
            ' every week.</p><form><input name="m"><button>Sign up</button></form></div>'
        )

    def footer(self):
        return (
            f"<footer><ul>{self.links(8)}</ul><p>© 2024 Example. All rights reserved.</p></footer>"
        )

    def header(self):
        menu = f"<nav><ul>{self.links(9, words=1)}</ul></nav>"
        return f'<header class="site"><a href="/">Example</a>{menu}</header>'

    def share(self):
        return '<div class="post-actions"><a>Tweet</a> <a>Share this</a> <a>Email this</a></div>'

    def bio(self):
        words = sentence(self.chance, 10)
        return f'<div class="author-box"><p>Written by Ann Writer. {words}</p></div>'


def _page(title, body, head=""):
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"{head}</head><body>{body}</body></html>"
    )


# ---- sites ---------------------------------------------------------------------------------------


def _news_main(text, frame):
    title = text.head(1)
    text.body(8)
    story = text.taken()
    return _page(
        title,
        f'{frame.cookies()}{frame.header()}<main><div class="story">{frame.share()}{story}'
        f"{frame.newsletter()}</div>{frame.teasers('most-read')}</main>"
        f"<aside>{frame.teasers('side')}</aside>{frame.footer()}",
    )


def _news_divs(text, frame):
    title = text.head(1)
    text.body(8)
    story = text.taken()
    return _page(
        title,
        f'{frame.cookies()}<div id="top"><ul class="menu">{frame.links(10, words=1)}</ul></div>'
        f'<div class="wrap"><div class="col-8"><div class="entry">{story}</div>{frame.bio()}'
        f'{frame.share()}{frame.comments("user-comments")}</div><div class="col-4">'
        f'{frame.teasers("trending")}</div></div><div class="bottom"><ul>{frame.links(12)}</ul>'
        "<p>Example Media Ltd. Registered in England.</p></div>",
    )


def _blog_article(text, frame):
    title = text.head(1)
    text.body(4)
    text.head(2)
    text.body(3)
    text.code()
    story = text.taken()
    return _page(
        title,
        f'{frame.header()}<article class="post">{story}{frame.bio()}'
        f"{frame.teasers('related-posts')}</article>{frame.comments('comments')}"
        f'<div class="widget-area"><h3>Archives</h3><ul>{frame.links(10)}</ul></div>'
        f"{frame.footer()}",
    )


def _blog_plain(text, frame):
    title = text.head(2)
    text.body(4)
    text.head(3)
    text.body(4)
    story = text.taken()
    return _page(
        title,
        f'<div id="header"><h1>Notes of a miller</h1><p>Just another blog</p></div>'
        f'<div id="page"><div class="hentry"><div class="entry-content">{story}</div>'
        f'<p class="postmeta">Posted in <a>mills</a> | <a>2 Comments</a></p></div>'
        f"{frame.comments('replies')}</div>"
        f'<div id="right"><ul>{frame.links(14)}</ul>{frame.newsletter()}</div>',
    )


def _shop_product(text, frame):
    title = text.head(1)
    text.paragraph()
    text.items()
    text.head(2)
    text.table()
    text.paragraph()
    text.paragraph()
    return _page(
        title,
        f'{frame.cookies()}{frame.header()}<div class="product"><div class="gallery"><img alt="" '
        f'src="1.png"></div><div class="buy"><button>Add to basket</button></div>'
        f'<div class="description">{text.taken()}</div></div>'
        f"{frame.teasers('also-bought')}{frame.newsletter()}{frame.footer()}",
    )


def _shop_main(text, frame):
    title = text.head(1)
    text.paragraph()
    text.paragraph()
    text.table()
    text.items()
    text.paragraph()
    return _page(
        title,
        f'{frame.header()}<main id="main"><ul class="crumbs">{frame.links(3, words=1)}</ul>'
        f'<section class="pdp">{text.taken()}</section><section class="recommendations">'
        f"{frame.teasers('carousel')}</section></main>{frame.newsletter()}{frame.footer()}",
    )


def _forum_question(text, frame):
    title = text.head(1)
    posts = []
    for _ in range(3):
        text.paragraph()
        text.chance.choice([text.code, text.paragraph])()
        posts.append(text.taken())
    head, *answers = posts
    return _page(
        title,
        f'{frame.header()}<div class="leftnav"><ul>{frame.links(6, words=1)}</ul></div>'
        f'<div id="question"><div class="post">{head}</div><div class="votes">12</div></div>'
        + "".join(
            f'<div class="answer"><div class="post">{one}</div><div class="user-card">'
            "<a>miller</a> 1,204 reputation</div></div>"
            for one in answers
        )
        + f'<div class="hot"><h4>Hot questions</h4><ul>{frame.links(12, words=8)}</ul></div>'
        + frame.footer(),
    )


def _forum_thread(text, frame):
    title = text.head(1)
    first, posts = text.taken(), []
    for _ in range(4):
        text.paragraph()
        text.paragraph()
        posts.append(text.taken())
    rows = "".join(
        f'<tr><td class="who"><b>user{n}</b><br>Posts: {n * 37 + 5}</td>'
        f'<td class="msg">{one}</td></tr>'
        for n, one in enumerate(posts)
    )
    return _page(
        title,
        f'<div class="navbar-forum">{frame.links(6, "span", 2)}</div>{first}<table class="thread">'
        f'{rows}</table><div class="jump">{frame.links(10, "span", 2)}</div>'
        "<p>Powered by ExampleBB</p>",
    )


def _manual(text):
    title = text.head(1)
    for level in (2, 3, 2):
        text.head(level)
        text.paragraph()
        text.chance.choice([text.code, text.items, text.table])()
        text.paragraph()
    return title, text.taken()


def _sphinx(text, frame):
    title, body = _manual(text)
    return _page(
        title,
        f'<div class="related"><ul>{frame.links(4)}</ul></div><div class="document">'
        f'<div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main">'
        f'<section id="a">{body}</section></div></div></div><div class="sphinxsidebar">'
        f"<ul>{frame.links(12)}</ul></div></div>",
        '<meta name="generator" content="Docutils 0.19">',
    )


def _mkdocs(text, frame):
    title, body = _manual(text)
    return _page(
        title,
        f'<header class="md-header"><nav>{frame.links(3, "span")}</nav></header>'
        f'<div class="md-container"><main class="md-main"><div class="md-main__inner">'
        f'<div class="md-sidebar"><nav class="md-nav"><ul>{frame.links(14)}</ul></nav></div>'
        f'<div class="md-content"><article class="md-content__inner">{body}</article></div></div>'
        f"</main></div>{frame.footer()}",
        '<meta name="generator" content="mkdocs-1.5.3">',
    )


def _docusaurus(text, frame):
    title, body = _manual(text)
    return _page(
        title,
        f'<nav class="navbar">{frame.links(5, "span")}</nav><div class="main-wrapper">'
        f'<aside><ul class="menu__list">{frame.links(14)}</ul></aside><main><article>'
        f'<div class="theme-doc-markdown markdown">{body}</div></article>'
        f'<nav class="pagination-nav"><a>Previous</a><a>Next</a></nav></main></div>'
        f"{frame.footer()}",
        '<meta name="generator" content="Docusaurus v3.1.0">',
    )


def _rustdoc(text, frame):
    title, body = _manual(text)
    return _page(
        title,
        f'<nav class="sidebar"><ul>{frame.links(20)}</ul></nav><main><section id="main-content"'
        f' class="content">{body}</section></main>',
        '<meta name="generator" content="rustdoc">',
    )


SITES = {
    "news": (_news_main, _news_divs),
    "blog": (_blog_article, _blog_plain),
    "shop": (_shop_product, _shop_main),
    "forum": (_forum_question, _forum_thread),
    "docs": (_sphinx, _mkdocs),
    "docs, others": (_docusaurus, _rustdoc),
}


def gold(variants=6):
    """Pages of all sites; of two sites of a kind one is for each half, by turns."""
    for at, (kind, sites) in enumerate(SITES.items()):
        for turn, site in enumerate(sites):
            for number in range(variants):
                name = f"{site.__name__.lstrip('_')}-{number}"
                text = _Text(name)
                source = site(text, _Frame(name))
                if number % 2:  # much documentation does not say what made it
                    source = re.sub('<meta name="generator"[^>]*>', "", source)
                half = ("tuning", "confirming")[(at + turn) % 2]
                words = " ".join(text.words)
                yield Page(
                    name=name, kind=kind.partition(",")[0], half=half, source=source, text=words
                )


def read_folder(folder):
    """Pages of a folder, each with its text in a file of the same name that ends in `.txt`."""
    for path, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            stem, suffix = os.path.splitext(name)
            text = os.path.join(path, f"{stem}.txt")
            if suffix in (".html", ".htm") and os.path.exists(text):
                read = []
                for one in (os.path.join(path, name), text):
                    with open(one, encoding="utf-8", errors="replace") as file:
                        read.append(file.read())
                yield Page(name=name, kind="folder", half="given", source=read[0], text=read[1])


def counts(wanted, found):
    """Words that are in both, in the gold, and found."""
    gold_words, said = (Counter(_WORD.findall(text.casefold())) for text in (wanted, found))
    return (gold_words & said).total(), gold_words.total(), said.total()
