"""What must hold of the inspector's start: the first picture loads only what it shows."""

import ast

import pytest

from filestore import Store

HEAVY = frozenset(
    {
        "faiss",
        "filestore.fulltext._analysis",
        "filestore.repair.planner",
        "filestore.search",
        "filestore.sidecar.commit",
        "filestore.sync.apply",
        "filestore.verify.run",
        "markdown_it",
        "markdownify",
        "multiprocessing.pool",
        "numpy",
        "onnxruntime",
        "pygments.lexers",
        "rich.markdown",
        "tantivy",
        "tokenizers",
        "torch",
        "tui.views.rendered",
        "tui.views.repair",
        "tui.views.verify",
        "watchfiles",
        "yaml",
    }
)
IMPORTED = """
import sys
import tui.app.inspector
import tui.views.browse
print(*sorted(sys.modules))
"""
SHOWN = """
import asyncio, sys
from tui.app import inspector as app
from tui.app.frame import Options
from tui.views import browse_detail

async def session(root):
    # What comes after the first picture may load what it likes, but that is not looked at here.
    app.AFTER_FIRST_S = browse_detail.SETTLED_S = 1000.0
    inspector = app.Inspector(Options(store=root, configuration=root, environment={}))
    async with inspector.run_test(size=(120, 40)) as pilot:
        for _ in range(500):
            await pilot.pause(0.02)
            lines = inspector.screen._compositor.render_strips()
            if any("notes.md" in line.text for line in lines):
                break
        else:
            sys.exit("the first row did not come")
        print(*sorted(sys.modules))

asyncio.run(session(sys.argv[1]))
"""


STYLED = """
import asyncio, sys
from textual._compositor import Compositor
from textual.css.stylesheet import Stylesheet
from tui.app import inspector as app
from tui.app.frame import Options

async def session(root):
    app.AFTER_FIRST_S = 1000.0
    inspector = app.Inspector(Options(store=root, configuration=root, environment={}))
    counts = {"parsed twice": 0, "styled again": 0, "drawn and dropped": 0}
    def count(owner, name, what, counts_now=lambda: True):
        function = getattr(owner, name)
        def counted(self, *given, **named):
            counts[what] += counts_now()
            return function(self, *given, **named)
        setattr(owner, name, counted)
    count(Stylesheet, "reparse", "parsed twice")
    count(Compositor, "render_update", "drawn and dropped", lambda: inspector._batch_count > 0)
    update = inspector.update_styles
    def update_styles(node, *given, **named):
        counts["styled again"] += node is inspector.screen
        update(node, *given, **named)
    inspector.update_styles = update_styles
    async with inspector.run_test(size=(120, 40)) as pilot:
        for _ in range(500):
            await pilot.pause(0.02)
            lines = inspector.screen._compositor.render_strips()
            if any("notes.md" in line.text for line in lines):
                break
        else:
            sys.exit("the first row did not come")
        print(counts)

asyncio.run(session(sys.argv[1]))
"""


@pytest.fixture
def root(tmp_path):
    """A store of one resource, indexed."""
    (tmp_path / "notes.md").write_text("# Tides\n\nThe moon pulls.\n\n## Neap\n\nWeak tides.\n")
    root = str(tmp_path / "file_index")
    with Store.create(root, layout="tree", embedder="builtin", configuration=root) as store:
        store.add(tmp_path / "notes.md")
    return root


def test_importing_the_inspector_loads_nothing_heavy(script):
    """Neither models, indexes and readers of files, nor the pages that are not seen at first."""
    done = script(IMPORTED)
    assert done.code == 0, done.stderr
    assert "tui.app.inspector" in done.stdout.split()
    assert HEAVY.intersection(done.stdout.split()) == set()


def test_the_first_picture_loads_nothing_heavy(script, root):
    """The names of the resources come from the catalog alone."""
    done = script(SHOWN, root)
    assert done.code == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "filestore.browse.listing" in loaded
    assert HEAVY.intersection(loaded) == set()


def test_the_first_picture_is_styled_and_drawn_once(script, root):
    """No style sheet is parsed twice for it, no part styled again, nothing drawn and dropped."""
    done = script(STYLED, root)
    assert done.code == 0, done.stderr
    counts = ast.literal_eval(done.stdout)
    assert counts == {"parsed twice": 0, "styled again": 0, "drawn and dropped": 0}
