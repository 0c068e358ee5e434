"""The page in a browser: what a person sees and does, what a hostile store cannot do."""

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import filestore
from filestore.core.caller import writing_for
from filestore.server.http import pages
from filestore.server.http.pages import page_files
from tests import chromium
from tests.system.server.page_checks import CHECKS, FOCUS
from tests.system.server.serving import Served, serving

needs_chromium = pytest.mark.skipif(chromium.CHROMIUM is None, reason="there is no Chromium")

LEASE = """\
---
tags: [contract, rent]
year: 2024
---
# The lease

## Renewal

The renewal of the lease is agreed in writing, two months before it ends.

## Ending

Nobody leaves without a word.
"""
CELLAR = """\
---
tags: [house]
year: 2024
---
# The cellar

The lease says nothing of the cellar.
"""
LONG = "# A long text\n\n" + "".join(
    f"Line {number} of many.\n\n" for number in range(3, 10_001, 2)
)
PAYLOADS = [
    "<img src=x onerror=window.ran=1>",
    "<script>window.ran=2</script>",
    "</p><svg/onload=window.ran=3>",
    "javascript:window.ran=4",
    "\"><iframe srcdoc='<script>parent.ran=5</script>'>",
    "{{constructor.constructor('window.ran=6')()}}",
    "[click](javascript:window.ran=7) ![](x onerror=window.ran=8)",
    "<style>*{display:none}</style><base href=http://192.0.2.1/>",
    "<form action=http://192.0.2.1/><input name=a autofocus onfocus=window.ran=9>",
    "<a href=javascript:window.ran=10 id=main>main</a>",
    "\u202eevil\u2066text\u202c \u0000? \ufeff",
    "__proto__",
]

Act = Callable[[chromium.Browser, Served], Awaitable[None]]
SETTLED = "document.querySelector('main h1') && !document.querySelector('main[aria-busy=true]')"


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder of documents, searched in place."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "lease.md").write_text(LEASE)
    (folder / "cellar.md").write_text(CELLAR)
    (folder / "long.md").write_text(LONG)
    return synced(folder)


def synced(folder: Path) -> Path:
    """A folder of documents made a store."""
    with filestore.create(folder, layout="in-place", embedder="builtin") as store:
        store.sync()
    return folder


def drive(
    tmp_path: Path, roots: Sequence[Path | str], act: Act, *, is_refused: bool = False
) -> None:
    """Open the page with its token, do something, and look at what must never happen."""

    async def run(server: Served) -> chromium.Browser:
        async with chromium.browser_of(tmp_path / "profile") as browser:
            await browser.call("Page.navigate", url=f"{server.url}#token={server.token}")
            await browser.until(SETTLED)
            await act(browser, server)
            assert await browser.evaluate("window.ran") is None
        return browser

    settings = tmp_path / "settings"
    settings.mkdir()
    with serving(settings, *roots) as server:
        browser = asyncio.run(run(server))
        asked = [one for one in browser.asked if one != "about:blank"]
        assert all(one.startswith(server.url) for one in asked)
        assert not any(server.token in one.partition("#")[0] for one in asked)
        assert server.errors == []
    # What breaks the policy, and a script that fails; refusals only where they are meant.
    told = [one.get("entry", one) for one in browser.complaints]
    assert [one for one in told if not (is_refused and one.get("source") == "network")] == []


async def look_for(browser: chromium.Browser, query: str) -> None:
    """Search, by the keys."""
    await browser.evaluate("document.getElementById('main').focus()")
    await browser.press("/")
    await browser.write(query)
    await browser.press("Enter")
    await browser.until(f"document.title.startsWith({json.dumps(query[:20])})")
    await browser.until(SETTLED)


async def text_of(browser: chromium.Browser, selector: str = "main") -> str:
    """What is to be read there, once it is drawn: before that, parts have no text."""
    await browser.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return str(await browser.evaluate(f"document.querySelector({selector!r}).innerText"))


def test_only_the_known_files_are_served() -> None:
    """With a policy that lets nothing else run or be asked, and nothing but by their names."""
    client = TestClient(Starlette(routes=list(pages.page_routes())), base_url="http://127.0.0.1")
    names = set(page_files()) - {"index.html"}
    assert {"app.js", "style.css", "icon.svg"} <= names
    for path in ("/", *(f"/page/{name}" for name in names)):
        answer = client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert client.post(path).status_code == 405
    for path in ("/page/", "/page/none.js", "/page/../serving.py", "/page/%2e%2e/serving.py"):
        assert client.get(path).status_code == 404


def test_no_file_of_the_page_could_run_a_text() -> None:
    """No markup from data, no code from text, nothing inline, nothing from elsewhere."""
    for name, data in page_files().items():
        text = data.decode()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|\beval\(|new Function|document\.write|srcdoc"
            r"|createContextualFragment|DOMParser|\.cssText",
            text,
        ), name
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), name
        if name.endswith(".html"):
            assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)


@needs_chromium
def test_a_search_leads_to_the_passage(tmp_path: Path, documents: Path) -> None:
    """Words that match are marked; the document opens at its line; back is where one was."""

    async def act(browser: chromium.Browser, server: Served) -> None:
        assert await browser.evaluate("location.href") == f"{server.url}#/"
        assert "lease.md" in await text_of(browser, ".tree")
        await look_for(browser, "renewal of the lease")
        shown = await text_of(browser, ".hits > li")
        assert "lease.md:9" in shown
        assert "Renewal" in shown
        # It is so of nearly every one.
        assert "as indexed" not in shown
        marks = (
            "[...document.querySelectorAll('li:first-child mark')].map((one) => one.textContent)"
        )
        assert await browser.evaluate(marks) == ["renewal", "lease"]
        await browser.evaluate("document.querySelector('a.open').click()")
        await browser.until("document.querySelector('p.here')")
        assert await browser.evaluate("document.querySelector('p.here').dataset.line") == "9"
        lit = "[...document.querySelectorAll('p.here mark b')].map((one) => one.textContent)"
        assert await browser.evaluate(lit) == ["renewal", "lease"]
        assert (await text_of(browser, "#which")).startswith("passage")
        assert await browser.evaluate("document.activeElement.className") == "part"
        await browser.evaluate("document.getElementById('back').click()")
        await browser.until("document.querySelector('a.open')")
        assert await browser.evaluate("document.activeElement.id") == "hit-0"

    drive(tmp_path, [documents], act)


@needs_chromium
def test_every_block_is_drawn_as_it_is_written(tmp_path: Path) -> None:
    """Nothing turns into the name of an object, and no sign comes between the parts."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "all.md").write_text(
        "# Blocks\n\nOne *two* `three`.\n\n```python\na = 1  # renewal\n\nb = [2, 3]\n```\n\n"
        "- four\n  - five **six**\n\n> seven\n\n| eight | nine |\n|---|---|\n| ten | renewal |\n"
    )

    async def act(browser: chromium.Browser, server: Served) -> None:
        await look_for(browser, "renewal")
        await browser.evaluate("document.querySelector('a.open').click()")
        await browser.until("document.querySelector('.text pre')")
        listing = "document.querySelector('.text pre').textContent"
        assert await browser.evaluate(listing) == "a = 1  # renewal\n\nb = [2, 3]"
        words = "document.querySelector('.text').textContent.replaceAll(/\\s+/g, ' ')"
        assert await browser.evaluate(words) == (
            "BlocksOne two three.a = 1 # renewal b = [2, 3]fourfive sixseveneightninetenrenewal"
        )

    drive(tmp_path, [synced(folder)], act)


@needs_chromium
@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_a_document_of_chunks_is_read_whole(tmp_path: Path, layout: str) -> None:
    """In the order of its original, with its lines, whatever the chunk files are called."""
    original = tmp_path / "lease.md"
    original.write_text(LEASE)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with filestore.create(tmp_path / "kb", layout=layout, embedder="builtin") as store:
        store.add(original)

    async def act(browser: chromium.Browser, server: Served) -> None:
        await look_for(browser, "renewal")
        await browser.evaluate("document.querySelector('a.open').click()")
        await browser.until("document.querySelector('p.here')")
        assert await browser.evaluate("document.querySelector('p.here').dataset.line") == "9"
        shown = await text_of(browser, ".text")
        assert shown.index("renewal of") < shown.index("Nobody leaves")

    drive(tmp_path, [tmp_path / "kb"], act)


@needs_chromium
def test_filters_are_counted_and_kept_in_the_address(tmp_path: Path, documents: Path) -> None:
    """A choice is a new search; another one joins it; a reload keeps both; one click takes all."""

    async def act(browser: chromium.Browser, server: Served) -> None:
        await look_for(browser, "lease cellar")
        legends = "[...document.querySelectorAll('legend')].map((one) => one.textContent)"
        assert await browser.evaluate(legends) == ["Folder", "Tag", "Type"]
        await choose(browser, "txt")
        assert set(await documents_of(browser)) == {"old/1999/lease.TXT"}
        await browser.call("Page.reload")
        await browser.until("document.querySelector('.choice input:checked')")
        assert set(await documents_of(browser)) == {"old/1999/lease.TXT"}
        await choose(browser, "txt")
        await choose(browser, "old/")
        assert set(await documents_of(browser)) == {"old/1999/lease.TXT"}
        await choose(browser, "old/")
        await choose(browser, "rent")
        assert set(await documents_of(browser)) == {"lease.md"}
        await browser.evaluate("location.hash += '&type=txt'")
        await browser.until("document.querySelector('.empty')")
        assert await browser.evaluate("document.querySelectorAll('.choice :checked').length") == 2
        await choose(browser, "txt")
        assert set(await documents_of(browser)) == {"lease.md"}
        await browser.evaluate("history.back()")
        await browser.until("document.querySelector('.empty')")
        await browser.evaluate("document.querySelector('.empty a').click()")
        await browser.until("document.querySelectorAll('.hits > li').length === 3")

    (documents / "old" / "1999").mkdir(parents=True)
    (documents / "old" / "1999" / "lease.TXT").write_text("The lease of the cellar.\n")
    with filestore.open(documents) as store:
        store.sync()
    drive(tmp_path, [documents], act)


@needs_chromium
@pytest.mark.long
def test_chosen_filters_are_shown_and_taken_back_one_by_one(
    tmp_path: Path, documents: Path
) -> None:
    """By keys alone; other words are searched for with them, and the focus is never lost."""

    async def pressed(browser: chromium.Browser) -> None:
        await browser.evaluate("window.old = document.querySelector('.found')")
        await browser.press(" ")
        await browser.until(f"document.querySelector('.found') !== window.old && {SETTLED}")

    async def act(browser: chromium.Browser, server: Served) -> None:
        chosen = "[...document.querySelectorAll('.chosen button')].map((one) => one.textContent)"
        focus = "document.activeElement.id || document.activeElement.dataset.choice"
        await look_for(browser, "lamp")
        assert await browser.evaluate(chosen) == []
        more = "document.querySelector('fieldset button')"
        assert await browser.evaluate(f"{more}.innerText") == "1 more"
        await browser.evaluate(f"{more}.focus()")
        await browser.press(" ")
        assert await browser.evaluate(focus) == "in folder 8"
        await pressed(browser)
        assert await browser.evaluate(focus) == "in folder 8"
        assert await browser.evaluate("document.activeElement.checked")
        await choose(browser, "light")
        assert await browser.evaluate(chosen) == [
            "Remove the filter Folder: folder 8/ ×",
            "Remove the filter Tag: light ×",
        ]
        assert await documents_of(browser) == ["folder 8/light.md"]
        for query, found in (("lamp glows", "folder 8/light.md"), ("lease", None)):
            await browser.evaluate("document.getElementById('query').focus()")
            await browser.evaluate("document.getElementById('query').select()")
            await browser.write(query)
            await browser.until(f"document.querySelector('main').dataset.query === '{query}'")
            assert await documents_of(browser) == ([found] if found else [])
            assert len(await browser.evaluate(chosen)) == 2
        await browser.press("Enter")
        await browser.until("!location.hash.includes('begun')")
        assert await browser.evaluate("location.hash") == "#/?q=lease&in=folder+8&tag=light"
        await browser.evaluate("document.querySelector('.chosen button').focus()")
        await pressed(browser)
        assert await browser.evaluate(chosen) == ["Remove the filter Tag: light ×"]
        assert await browser.evaluate(focus) == "without tag light"
        await pressed(browser)
        assert await browser.evaluate(focus) == "count"
        assert await browser.evaluate("location.hash") == "#/?q=lease"
        assert "lease.md" in await documents_of(browser)

    for number in range(9):
        folder = documents / f"folder {number}"
        folder.mkdir()
        for tag in ("dark", "light"):
            text = f"---\ntags: [{tag}]\n---\n# Lamp {number}\n\nA {tag} lamp glows.\n"
            (folder / f"{tag}.md").write_text(text)
    with filestore.open(documents) as store:
        store.sync()
    drive(tmp_path, [documents], act)


@needs_chromium
def test_filters_count_more_than_is_shown(tmp_path: Path) -> None:
    """Whoever narrows a search has to know what there is beyond the first results."""
    folder = tmp_path / "many"
    for number in range(60):
        (folder / f"part{number % 2}").mkdir(parents=True, exist_ok=True)
        (folder / f"part{number % 2}" / f"{number}.md").write_text(f"# Lamp {number}\n\nA lamp.\n")
    (folder / "lone.md").write_text("# Alone\n\nA lamp.\n")
    with filestore.create(tmp_path / "kb", embedder="builtin") as store:
        store.add(folder / "part0", folder / "part1", folder / "lone.md")

    async def act(browser: chromium.Browser, server: Served) -> None:
        await browser.evaluate("document.getElementById('query').focus()")
        await browser.write("lamp")
        await browser.until("document.querySelector('main').dataset.query === 'lamp'")
        await browser.evaluate("window.typed = [...document.querySelectorAll('.hits > li')]")
        assert await browser.evaluate("window.typed.length") >= 10
        await browser.until("document.querySelectorAll('.hits > li').length === 20")
        # What a person points at meanwhile is the same one.
        now = "[...document.querySelectorAll('.hits > li')].slice(0, window.typed.length)"
        assert await browser.evaluate(f"{now}.every((one, at) => one === window.typed[at])")
        assert await text_of(browser, "#count") == "20 of 61 results"
        facets = await text_of(browser, ".facets")
        assert "Folder" in facets
        assert "Counted over all 61 results." in facets
        await browser.evaluate("document.getElementById('more').click()")
        await browser.until("document.querySelectorAll('.hits > li').length === 40")
        await choose(browser, "../many/part1/")
        assert await text_of(browser, "#count") == "20 of 30 results"
        assert all("/part1/" in one for one in await documents_of(browser))

    drive(tmp_path, [tmp_path / "kb"], act)


@needs_chromium
def test_what_is_not_current_says_so(tmp_path: Path) -> None:
    """In the results and in the document: edited, gone, or made from an older original."""
    with filestore.create(tmp_path / "kb", embedder="builtin") as store:
        original = tmp_path / "kb" / "lease.md"
        original.write_text(LEASE)
        store.add(original)
        store.put(["The lease of the boat.\n"], into="notes", names=["boat"])

    async def opened(browser: chromium.Browser) -> str:
        await look_for(browser, "renewal of the lease")
        await browser.evaluate("document.querySelector('a.open').click()")
        await browser.until(f"document.querySelector('.part') && {SETTLED}")
        return await text_of(browser)

    async def act(browser: chromium.Browser, server: Served) -> None:
        shown = await opened(browser)
        assert "filestore update" not in shown
        assert "as indexed" not in shown
        original.write_text(LEASE.replace("two months", "six months"))
        shown = await opened(browser)
        assert "made from an older version of the original" in shown
        assert "filestore update" in shown
        assert "outdated" in await text_of(browser, ".place")
        for chunk in (tmp_path / "kb" / "chunked" / "lease.md").glob("*.md"):
            chunk.write_text(chunk.read_text() + "And more of the renewal.\n")
        await look_for(browser, "lease")
        assert "edited since the index was made" in await text_of(browser, ".notes")
        assert "edited" in await text_of(browser, ".hits > li.stale")
        shown = await opened(browser)
        assert "shown as" in shown
        assert "filestore sync" in shown

    drive(tmp_path, [tmp_path / "kb"], act)


async def choose(browser: chromium.Browser, label: str) -> None:
    """Tick a choice, or take it back, and wait for what is found then."""
    find = (
        "[...document.querySelectorAll('.choice')]"
        f".find((one) => one.innerText.startsWith({json.dumps(label)})).querySelector('input')"
    )
    was = await browser.evaluate(f"{find}.checked")
    await browser.evaluate(f"window.old = document.querySelector('.found'), {find}.click()")
    await browser.until(f"document.querySelector('.found') !== window.old && {SETTLED}")
    if not was:
        assert await browser.evaluate(f"{find}.checked")


async def documents_of(browser: chromium.Browser) -> list[str]:
    """The documents of the hits."""
    names = "[...document.querySelectorAll('.hits .place bdi')].map((one) => one.textContent)"
    found: list[str] = await browser.evaluate(names)
    return found


@needs_chromium
def test_keys_alone_are_enough(tmp_path: Path, documents: Path) -> None:
    """From the query through results into a document, its source and back, to a filter, to help."""

    async def act(browser: chromium.Browser, server: Served) -> None:
        focus = "document.activeElement.id || document.activeElement.className"
        assert await browser.evaluate(focus) == "query"
        await browser.write("lease")
        await browser.press("Enter")
        await browser.until("document.querySelector('a.open')")
        await browser.press("ArrowDown")
        assert await browser.evaluate(focus) == "hit-0"
        await browser.press("j")
        assert await browser.evaluate(focus) == "hit-1"
        await browser.press("k", "k")
        assert await browser.evaluate(focus) == "query"
        await browser.press("Escape", "j", "Enter")
        await browser.until("document.querySelector('p.here')")
        await browser.press("n", "p", "s")
        assert "# The" in await text_of(browser, ".text")
        assert await browser.evaluate("document.querySelectorAll('.line.here').length") == 1
        await browser.press("s")
        assert "# The" not in await text_of(browser, ".text")
        await browser.press("Escape")
        await browser.until("document.querySelector('a.open')")
        assert await browser.evaluate(focus) == "hit-1"
        await browser.evaluate("document.querySelector('.choice input').focus()")
        await browser.evaluate("window.old = document.querySelector('.found')")
        await browser.press(" ")
        await browser.until(f"document.querySelector('.found') !== window.old && {SETTLED}")
        assert await browser.evaluate("document.activeElement.matches('.choice input:checked')")
        await browser.evaluate("window.old = document.querySelector('.found')")
        await browser.press(" ")
        await browser.until(f"document.querySelector('.found') !== window.old && {SETTLED}")
        assert not await browser.evaluate("location.hash.includes('tag=')")
        await browser.press("?")
        assert await browser.evaluate("document.getElementById('keys').open")
        await browser.press("Escape")
        assert not await browser.evaluate("document.getElementById('keys').open")
        await browser.press("/")
        assert await browser.evaluate(focus) == "query"
        await browser.press("/")
        assert await browser.evaluate("document.getElementById('query').value") == "/"

    drive(tmp_path, [documents], act)


@needs_chromium
def test_keys_of_one_letter_can_be_switched_off(tmp_path: Path, documents: Path) -> None:
    """For who speaks to the machine, or types by accident."""

    async def act(browser: chromium.Browser, server: Served) -> None:
        await browser.evaluate("document.getElementById('single-keys').click()")
        await browser.evaluate("document.getElementById('main').focus()")
        await browser.press("?")
        assert not await browser.evaluate("document.getElementById('keys').open")

    drive(tmp_path, [documents], act)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A store whose names, texts, headings and metadata are all payloads."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for number, payload in enumerate(PAYLOADS):
        name = re.sub(r"[/\0]", "_", payload)[:80] + f"{number}.md"
        keys = "".join(
            f"{json.dumps(key)}: {json.dumps(value)}\n"
            for key, value in {"title": payload, payload.replace("\0", ""): payload}.items()
            if "\0" not in payload
        )
        text = f"---\n{keys}tags: [{json.dumps(payload)}]\n---\n# {payload}\n\nneedle {payload}\n"
        (folder / name).write_bytes(text.replace("\0", "").encode())
    rtl = "שלום עולם needle مرحبا بالعالم"
    (folder / "rtl.md").write_text(f"# {rtl}\n\n{rtl}\n\n{rtl}\n")
    (folder / "wide.md").write_text(f"# {'w' * 3000}\n\nneedle {'x' * 5000} 😀😀 needle\n")
    return synced(folder)


@needs_chromium
def test_nothing_of_a_store_is_run(tmp_path: Path, hostile: Path) -> None:
    """Wherever it stands: names, texts, headings, keys, values, queries, addresses."""

    async def act(browser: chromium.Browser, server: Served) -> None:
        await browser.call(
            "Emulation.setDeviceMetricsOverride",
            width=320,
            height=700,
            deviceScaleFactor=1,
            mobile=False,
        )
        elements = (
            "document.querySelectorAll('main :is(img, script, iframe, svg, style, base)').length"
        )
        too_wide = "document.documentElement.scrollWidth > innerWidth"
        for query in ("needle", *PAYLOADS):
            words = query.replace("\0", "")
            await browser.evaluate(f"location.hash = '#/?q={quote(words)}&k=50'")
            await browser.until(f"document.getElementById('query').value === {json.dumps(words)}")
            await browser.until(SETTLED)
            assert await browser.evaluate(elements) == 0
            assert not await browser.evaluate(too_wide), query
        await browser.evaluate("location.hash = '#/?q=needle&k=50'")
        await browser.until("document.querySelectorAll('.hits > li').length > 10")
        names = (
            "[...document.querySelectorAll('h3, .place, .choice')].map((one) => one.textContent)"
        )
        assert "\u202e" not in "".join(await browser.evaluate(names))
        links: list[str] = await browser.evaluate(
            "[...document.querySelectorAll('main a')].map((one) => one.getAttribute('href'))"
        )
        assert all(link.startswith("#/") for link in links)
        for link in links:
            await browser.evaluate(f"location.hash = {json.dumps(link)}")
            await browser.until(f"location.hash === {json.dumps(link)} && {SETTLED}")
            assert await browser.evaluate(elements) == 0
            assert not await browser.evaluate(too_wide), link
        for view in (
            "status",
            "changes",
            "similar?path=<img src=x>",
            "document?path=<svg/onload=1>",
            "x",
        ):
            await browser.evaluate(f"location.hash = '#/{view}'")
            await browser.until(SETTLED)
            assert await browser.evaluate(elements) == 0
            assert not await browser.evaluate(too_wide), view

    drive(tmp_path, [hostile], act, is_refused=True)


ODD_NAMES = [
    b"line\nbreak.md",
    b"two \"quotes\" and 'one'.md",
    b"back\\slash.md",
    b"esc\x1b[31mred\x1b[0m.md",
    b"hash#and?query&a=b%20c.md",
    b"\xff latin.md",
    b'folder\nline/in"ner\x1b]8;;http:x\x07.md',
]
"""Each with what it would do where it is taken for something else than a name."""


@needs_chromium
@pytest.mark.long
def test_names_of_any_kind_lead_to_their_documents(tmp_path: Path) -> None:
    """From the tree, from results, by a link and back by it, and as a filter."""
    folder = tmp_path / "names"
    for number, name in enumerate(ODD_NAMES):
        place = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        Path(os.fsdecode(place)).write_text(
            f"# Title {number}\n\nThe needle {number} lies here: "
            "[other](<two \"quotes\" and 'one'.md>).\n"
        )
    synced(folder)
    kept = "[...document.querySelectorAll({!r})].map((one) => [one.getAttribute('href'), {}])"

    async def opened(browser: chromium.Browser, link: str) -> str:
        await browser.evaluate(
            f"document.querySelector('main').replaceChildren(), location.hash = {json.dumps(link)}"
        )
        await browser.until("document.querySelector('.text')")
        return await text_of(browser)

    async def act(browser: chromium.Browser, server: Served) -> None:
        await browser.evaluate("document.querySelector('.folder').click()")
        await browser.until("document.querySelector('.tree .tree a')")
        tree = await browser.evaluate(kept.format(".tree a", "one.textContent"))
        assert len(tree) == len(ODD_NAMES)
        for link, title in tree:
            assert f"needle {title.removeprefix('Title ')} lies here" in await opened(browser, link)
        await look_for(browser, "needle")
        place = "one.closest('article').querySelector('.place').textContent"
        hits = await browser.evaluate(kept.format("a.open", place))
        assert len(hits) == len(ODD_NAMES)
        assert not re.search(r"[\x00-\x1f]", "".join(name for _, name in hits))
        for link, name in hits:
            assert name.rpartition(":")[0] in await opened(browser, link)
        await browser.evaluate("document.querySelector('.text a').click()")
        await browser.until("document.querySelector('#incoming')")
        assert "needle 1 lies here" in await text_of(browser)
        backlinks = await browser.evaluate(kept.format("#incoming ~ ul a", "one.textContent"))
        assert len(backlinks) == len(ODD_NAMES) - 2, "not of itself, and not from another folder"
        for link, name in backlinks:
            assert name in await opened(browser, link)
        await look_for(browser, "needle")
        await browser.evaluate("document.querySelector('[data-choice^=\"in \"]').click()")
        await browser.until("document.querySelector('.chosen')")
        assert "needle 6 lies here" in await text_of(browser, ".results")

    drive(tmp_path, [folder], act)


@needs_chromium
def test_a_token_is_asked_for(tmp_path: Path, documents: Path) -> None:
    """A wrong one is said to be wrong; the right one opens; it is nowhere to be seen."""

    async def act(browser: chromium.Browser, server: Served) -> None:
        for wrong in ("wrong", quote("ünïcode\n"), "%ff", ""):
            await browser.evaluate("sessionStorage.clear()")
            await browser.call("Page.navigate", url="about:blank")
            await browser.call("Page.navigate", url=f"{server.url}#token={wrong}")
            await browser.until("document.getElementById('token')")
            assert await browser.evaluate("document.activeElement.id") == "token"
            assert await browser.evaluate("location.hash") == "#/"
        await browser.write("wrong again")
        await browser.press("Enter")
        await browser.until("document.querySelector('[role=alert]')")
        assert "does not take this token" in await text_of(browser)
        assert "~/.config/filestore/server-token" in await text_of(browser)
        await browser.write(server.token)
        await browser.press("Enter")
        await browser.until("document.querySelector('.tree')")
        assert server.token not in await browser.evaluate(
            "location.href + document.documentElement.outerHTML"
        )

    drive(tmp_path, [documents], act, is_refused=True)


@needs_chromium
def test_what_goes_wrong_is_said(tmp_path: Path, documents: Path) -> None:
    """A store that is gone, then a server that is: in words, with a way to try again."""

    async def act(browser: chromium.Browser, server: Served) -> None:
        moved = documents.with_name("moved")
        documents.rename(moved)
        await browser.evaluate("location.hash = '#/?q=lease'")
        await browser.until("document.querySelector('main .problem')")
        assert "What to do" in await text_of(browser)
        moved.rename(documents)
        await browser.evaluate("document.querySelector('.problem button').click()")
        await browser.until("document.querySelector('a.open')")
        await browser.evaluate("location.hash = '#/status'")
        await browser.until("document.querySelector('.verdict.clean')")
        server.process.send_signal(signal.SIGINT)
        server.process.wait(chromium.WAIT_S)
        await browser.evaluate("document.querySelector('main .steps button').click()")
        await browser.until("document.querySelector('main .problem')")
        assert "Not checked" in await text_of(browser, ".verdict:not(.clean)")
        await browser.evaluate("location.hash = '#/changes'")
        await browser.until("document.querySelector('main > .problem')")
        assert "the server does not answer" in await text_of(browser)

    drive(tmp_path, [documents], act, is_refused=True)


@needs_chromium
def test_changes_are_noticed(tmp_path: Path, documents: Path) -> None:
    """Of files, and of the index; what is shown stays until it is asked for anew."""

    async def act(browser: chromium.Browser, server: Served) -> None:
        await look_for(browser, "renewal")
        for happens in (add, sync):
            await browser.until("document.getElementById('changed').hidden")
            # A watch that begins late tells of nothing before it.
            while await browser.evaluate("document.getElementById('changed').hidden"):
                happens()
                await browser.evaluate("new Promise((done) => setTimeout(done, 100))")
            assert "new.md" not in await documents_of(browser)
            # What happened more than once is told more than once.
            while not await browser.evaluate("document.getElementById('changed').hidden"):
                await browser.evaluate("document.getElementById('reload').click()")
                await browser.until(SETTLED)
        await browser.until("document.querySelector('.results').innerText.includes('new.md')")

    def add() -> None:
        with (documents / "new.md").open("a") as file:
            file.write("The renewal of the boat.\n")

    def sync() -> None:
        add()
        with filestore.open(documents) as store:
            store.sync()

    drive(tmp_path, [documents], act)


@needs_chromium
def test_a_page_that_nobody_sees_holds_no_connection(tmp_path: Path, documents: Path) -> None:
    """A browser has six to one server; seen again, a page tells what changed meanwhile."""

    async def act(browser: chromium.Browser, server: Served) -> None:
        for _ in range(8):
            await browser.call("Target.createTarget", url=f"{server.url}#token={server.token}")
        await browser.until("document.hidden")
        with filestore.open(documents) as store:
            (documents / "new.md").write_text("# New\n\nThe renewal of the boat.\n")
            store.sync()
        assert await browser.evaluate("document.getElementById('changed').hidden")
        await browser.call("Page.bringToFront")
        await browser.until("!document.hidden && !document.getElementById('changed').hidden")

    drive(tmp_path, [documents], act)


@needs_chromium
def test_an_address_may_say_anything(tmp_path: Path, documents: Path) -> None:
    """What fits nothing is passed over or refused in words; the page goes on."""
    nonsense = [
        "#/?q=lease&k=-5&mode=magic&tag=&tag=__proto__&in=&type=%00&begun=x",
        "#/?q=lease&k=2.5&k=1e99",
        "#/?q=lease&tag=constructor&in=constructor&in=../..&type=constructor",
        "#/?q=" + "a" * 20_000,
        "#/?q=%ff%00&type=[&type=**&in=/",
        "#/document?path=lease.md&link=%00",
        "#/document?path=lease.md&link=javascript:1",
        "#/document?path=lease.md&link=../../../etc/passwd",
        "#/document?path=",
        "#/document?path=lease.md&line=999999999&first=-1&hit=x",
        "#/document?path=lease.md&first=999999999",
        "#/similar?path=%00",
        "#/resource?name=%00",
        "#/__proto__",
        "#/constructor?q=1",
        "#//?/?",
    ]

    async def act(browser: chromium.Browser, server: Served) -> None:
        for address in nonsense:
            await browser.evaluate("location.hash = '#/status'")
            await browser.until("document.querySelector('.verdict')")
            await browser.evaluate(f"location.hash = {json.dumps(address)}")
            await browser.until(f"!document.querySelector('.verdict') && {SETTLED}")
        await look_for(browser, "renewal")
        await browser.until("document.querySelector('a.open')")

    drive(tmp_path, [documents], act, is_refused=True)


@needs_chromium
def test_a_long_document_opens_where_the_passage_is(tmp_path: Path, documents: Path) -> None:
    """Line 9,001 of 10,000 is on the screen, and the rest can be reached."""

    async def act(browser: chromium.Browser, server: Served) -> None:
        await look_for(browser, '"Line 9001"')
        await browser.evaluate("document.querySelector('a.open').click()")
        await browser.until("document.querySelector('p.here')")
        assert "Line 9001 of many." in await text_of(browser, "p.here")
        assert await browser.evaluate("document.querySelector('p.here').dataset.line") == "9001"
        inside = (
            "(() => { const { top, bottom } = document.querySelector('p.here')"
            ".getBoundingClientRect(); return top >= 0 && bottom <= innerHeight; })()"
        )
        await browser.until(inside)
        shown = await browser.evaluate("document.querySelector('.text').textContent")
        assert "Line 9999 of many." in shown
        earlier = (
            "[...document.querySelectorAll('.button')].find((one) => /earlier/.test(one.text))"
        )
        for _ in range(50):
            if "Line 3 of many." in shown:
                break
            await browser.evaluate(
                f"window.old = document.querySelector('.text'), {earlier}.click()"
            )
            await browser.until(f"document.querySelector('.text') !== window.old && {SETTLED}")
            shown = await browser.evaluate("document.querySelector('.text').textContent")
        assert "Line 3 of many." in shown
        await look_for(browser, "renewal")
        assert await browser.evaluate("scrollY") == 0

    drive(tmp_path, [documents], act)


SIZES = "performance.getEntriesByType('resource').map((one) => one.decodedBodySize)"


@pytest.mark.long
@needs_chromium
def test_of_a_large_document_a_part_is_sent(tmp_path: Path) -> None:
    """A hit 8 MB into 10 MB opens lit and on the screen, and no answer is a large part of it."""
    section = "Rows of words about nothing much, again and again. " * 20 + "\n\n## More\n\n"
    before, after = (8_000_000 // len(section), 2_000_000 // len(section))
    folder = tmp_path / "notes"
    folder.mkdir()
    text = f"# Large\n\n{section * before}The zircon is here. {section * after}\n"
    (folder / "large.md").write_text(text)
    synced(folder)

    async def act(browser: chromium.Browser, server: Served) -> None:
        await look_for(browser, "zircon")
        await browser.evaluate("document.querySelector('a.open').click()")
        await browser.until("document.querySelector('.text mark b')")
        lit = await browser.evaluate("document.querySelector('.text mark b').textContent")
        assert lit == "zircon"
        await browser.until(
            "(() => { const { top, bottom } = document.querySelector('.text mark b')"
            ".getBoundingClientRect(); return top >= 0 && bottom <= innerHeight; })()"
        )
        sizes = await browser.evaluate(SIZES)
        assert 0 < max(sizes) < 4_000_000

    drive(tmp_path, [folder], act)


@needs_chromium
def test_one_of_several_stores_is_chosen(tmp_path: Path, documents: Path) -> None:
    """What is asked is asked of it; a reload stays there."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tide.md").write_text("# The tide\n\nThe lease of the boat.\n")
    other = synced(tmp_path / "other")

    async def act(browser: chromium.Browser, server: Served) -> None:
        await look_for(browser, "lease")
        assert "tide.md" not in await text_of(browser)
        await browser.evaluate(
            "document.getElementById('store').value = 'other',"
            "document.getElementById('store').dispatchEvent(new Event('change'))"
        )
        await browser.until("document.querySelector('.results').innerText.includes('tide.md')")
        await browser.call("Page.reload")
        await browser.until("document.querySelector('.results')?.innerText.includes('tide.md')")
        # With one more field, on a phone, the head takes no more than an eighth.
        await browser.call(
            "Emulation.setDeviceMetricsOverride",
            width=390,
            height=844,
            deviceScaleFactor=2,
            mobile=True,
        )
        head = "document.querySelector('.top').getBoundingClientRect().height / innerHeight"
        assert await browser.evaluate(head) <= 0.12

    drive(tmp_path, [documents, other], act)


@needs_chromium
@pytest.mark.long
def test_passages_alike_are_shown_as_results_are(tmp_path: Path, documents: Path) -> None:
    """Under the title of their document, by how they begin as that is read."""
    (documents / "boat.md").write_text(
        "# The boat\n\n## Berth\n\nThe **lease** is [renewed](lease.md) in writing.\n"
    )
    with filestore.open(documents) as store:
        store.sync()

    async def act(browser: chromium.Browser, server: Served) -> None:
        await browser.evaluate("location.hash = '#/document?path=lease.md'")
        similar = "document.querySelector('.steps a[href^=\"#/similar\"]')"
        await browser.until(similar)
        await browser.evaluate(f"{similar}.click()")
        boat = (
            "[...document.querySelectorAll('.hits > li')].find((one) => /boat/.test(one.innerText))"
        )
        await browser.until(boat)
        shown = await browser.evaluate(f"{boat}.innerText")
        assert shown.split("\n")[0].startswith("The boat")
        assert "The lease is renewed in writing." in shown
        await browser.evaluate(f"{boat}.querySelector('a.open').click()")
        await browser.until("document.querySelector('.block.in')")
        assert "The lease is renewed" in await text_of(browser, ".text")

    drive(tmp_path, [documents], act)


@needs_chromium
def test_an_empty_store_says_what_fills_it(tmp_path: Path) -> None:
    """At its start, instead of counts of nothing."""
    with filestore.create(tmp_path / "kb", embedder="builtin"):
        pass

    async def act(browser: chromium.Browser, server: Served) -> None:
        assert "filestore add" in await text_of(browser)

    drive(tmp_path, [tmp_path / "kb"], act)


@needs_chromium
def test_findings_are_told_by_code(tmp_path: Path, documents: Path) -> None:
    """With how grave they are, in words, and what repairs them."""
    (documents / "lease.md").write_text(LEASE + "And one line more.\n")
    (documents / "new.md").write_text("# New\n\nNot indexed yet.\n")

    async def act(browser: chromium.Browser, server: Served) -> None:
        await browser.evaluate("location.hash = '#/status'")
        await browser.until("document.querySelector('.finding')")
        shown = await text_of(browser)
        assert "Not clean: see the findings." in shown
        assert re.search(r"Error modified 1 file\s+Repair: .*\s+lease\.md", shown)
        assert re.search(r"Warning untracked 1 file", shown)
        # The command that repairs it stands once.
        assert not re.search("filestore sync.*filestore sync", shown)
        await look_for(browser, "renewal")
        assert "edited since it was indexed" in await text_of(browser, ".hits > li")

    drive(tmp_path, [documents], act)


@needs_chromium
def test_a_change_is_shown_and_undone(tmp_path: Path, documents: Path) -> None:
    """Who made it, its diff as text, and one button that takes it back after a second press."""
    with filestore.open(documents) as store, writing_for("<b>cursor</b>"):
        note = store.add_note("Pipes <img src=x onerror=window.ran=1> leak.\n", title="Pipes")
    place = documents / note.path

    async def act(browser: chromium.Browser, server: Served) -> None:
        await browser.evaluate("location.hash = '#/changes'")
        await browser.until("document.querySelector('.finding')")
        shown = await text_of(browser)
        assert "add_note notes/Pipes.md by “<b>cursor</b>”" in shown
        assert "filestore undo 000001" in shown
        await browser.evaluate("document.querySelectorAll('.steps button')[0].click()")
        await browser.until("document.querySelector('.diff')")
        assert "+Pipes <img src=x onerror=window.ran=1> leak." in await text_of(browser, ".diff")
        await browser.evaluate("document.querySelectorAll('.steps button')[1].click()")
        assert place.exists()
        await browser.evaluate("document.querySelectorAll('.steps button')[1].click()")
        await browser.until("document.querySelectorAll('.steps button').length === 1")
        assert not place.exists()

    drive(tmp_path, [documents, "--write"], act)


VIEWS = {
    "start": "#/",
    "search": "#/?q=lease+cellar+writing",
    "filtered": "#/?q=lease&tag=rent&type=md",
    "nothing": "#/?q=xylophone",
    "document": "#/document?path=lease.md&line=9",
    "similar": "#/similar?path=lease.md",
    "status": "#/status",
    "changes": "#/changes",
    "source": "#/document?path=lease.md&whole=1",
    "error": "#/document?path=none.md",
}
PRESSED = {
    "start": ["document.querySelector('.folder').click()"],
    "search": [f"document.getElementById('keys').{act}" for act in ("showModal()", "close()")],
    "source": ["document.getElementById('source').click()"] * 2,
}
"""What is pressed in a view once it has been looked at, to be looked at again."""
AXE = """
axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
  .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" ")}`))
"""


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_whoever_comes_can_use_every_view(tmp_path: Path, documents: Path, scheme: str) -> None:
    """The rules of axe-core, contrast of 4.5, a focus that is seen, no view wider than 320."""
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    (documents / "folder").mkdir()
    (documents / "folder" / "new.md").write_text("# New\n\nThe lease of the boat.\n")
    with filestore.open(documents) as store, writing_for("cursor"):
        store.sync()
        store.add_note("Pipes leak.\n", title="Pipes")
    (documents / "later.md").write_text("# Later\n\nNot indexed yet.\n")
    with filestore.create(tmp_path / "empty", embedder="builtin"):
        pass

    async def checked(browser: chromium.Browser, name: str, width: int) -> None:
        assert await browser.evaluate(CHECKS) == [], (name, width)
        await browser.evaluate(f"{axe};0")
        assert await browser.evaluate(AXE) == [], (name, width)
        assert await nameless(browser) == [], (name, width)

    async def act(browser: chromium.Browser, server: Served) -> None:
        await browser.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        for width in (1200, 320):
            await browser.call(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=700,
                deviceScaleFactor=1,
                mobile=False,
            )
            for name, address in VIEWS.items():
                await browser.evaluate(f"location.hash = {json.dumps(address)}")
                await browser.until(f"location.hash === {json.dumps(address)} && {SETTLED}")
                if name == "status":
                    await browser.until("document.querySelector('.finding')")
                await checked(browser, name, width)
                assert await unseen_focus(browser) == [], (name, width)
                for press in PRESSED.get(name, ()):
                    await browser.evaluate(press)
                    await checked(browser, f"{name}, {press}", width)
            await browser.evaluate(
                "location.hash = '#/',"
                "document.getElementById('store').value = 'empty',"
                "document.getElementById('store').dispatchEvent(new Event('change'))"
            )
            await browser.until("document.querySelector('.empty')")
            await checked(browser, "an empty store", width)
            await browser.evaluate("location.hash = '#token=wrong'")
            await browser.until("document.querySelector('[role=alert]')")
            await checked(browser, "the token", width)
            await browser.evaluate("sessionStorage.clear()")
            await browser.evaluate(f"location.hash = '#token={server.token}'")
            await browser.until("document.querySelector('.tree')")

    drive(tmp_path, [documents, tmp_path / "empty"], act, is_refused=True)


async def nameless(browser: chromium.Browser) -> list[str]:
    """Roles of what can be used and has no name, as a screen reader is told."""
    tree = await browser.call("Accessibility.getFullAXTree")
    used = {"button", "link", "searchbox", "textbox", "combobox", "checkbox", "application"}
    return [
        node["role"]["value"]
        for node in tree["nodes"]
        if not node.get("ignored")
        and node.get("role", {}).get("value") in used
        and not node.get("name", {}).get("value", "").strip()
    ]


async def unseen_focus(browser: chromium.Browser) -> list[str]:
    """What the Tab key reaches without showing it, among the first of a view."""
    await browser.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
    found = []
    for _ in range(16):
        await browser.press("Tab")
        problem = await browser.evaluate(FOCUS)
        if problem:
            found.append(problem)
    return found
