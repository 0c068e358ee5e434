"""Which blocks of a page are the page, and which the site puts around it: trafilatura decides.

Only what it finds is asked, the blocks stay ours. One rule: a page of which little is left by it
stays whole.
"""

import re
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Final

_RUN: Final = 4
_KEPT_SHARE: Final = 2  # of the runs of words of a block: half
_LEAST_WORDS: Final = 100  # of a page that a site may have put anything around
_WORD: Final = re.compile(r"\w+")
_TARGET: Final = re.compile(r"\]\([^)\s]*\)|<https?://[^>]*>")
_HEADING: Final = re.compile(r"(#{1,6}) ")
_FENCE: Final = re.compile(r"(`{3,})[\w+#.-]*\n(?:.*\n)*?\1$", re.MULTILINE)


@cache
def is_installed() -> bool:
    """Whether there is somebody to ask."""
    # One of what trafilatura needs is not installed with it.
    return all(find_spec(one) is not None for one in ("trafilatura", "lxml_html_clean"))


def page_alone(markdown: str, source: str, *, least: float) -> str:
    """The blocks of a page's Markdown that are found to be the page.

    Args:
        markdown: Of the page.
        source: The page.
        least: The share of its words that is more than a misunderstanding; of less, all stay.
    """
    from trafilatura import extract

    blocks = _blocks(markdown)
    sizes = [len(_words(block)) for block in blocks]
    if sum(sizes) < _LEAST_WORDS:
        return markdown
    try:
        found = extract(source, include_comments=False)
    except Exception:  # another library's faults are no reason to lose a page
        return markdown
    words = _words(found or "")
    runs = set(zip(*(words[at:] for at in range(_RUN)), strict=False))
    text = f" {' '.join(words)} "
    kept = [_is_in(block, text, runs) for block in blocks]
    if sum(size for size, one in zip(sizes, kept, strict=True) if one) < least * sum(sizes):
        return markdown
    # Code, tables and pictures are ours where they stand between what stays.
    ends = [at for at, one in enumerate(kept) if one]
    for at, block in enumerate(blocks):
        is_ours = block.startswith(("```", "| ", "![")) or f'alt="{block}"' in source
        kept[at] = kept[at] or (is_ours and ends[0] < at < ends[-1])
    under = list[int]()
    for at, block in enumerate(blocks):
        if heading := _HEADING.match(block):
            level = len(heading[1])
            under = [one for one in under if len(_level(blocks[one])) < level] + [at]
            kept[at] = level == 1
        elif kept[at]:
            for one in under:
                kept[one] = True
    return "\n\n".join(b for b, one in zip(blocks, kept, strict=True) if one) + "\n"


def _level(block: str) -> str:
    heading = _HEADING.match(block)
    return heading[1] if heading else ""


def _words(text: str) -> list[str]:
    return _WORD.findall(_TARGET.sub("]", text).casefold())


def _is_in(block: str, text: str, runs: set[tuple[str, ...]]) -> bool:
    words = _words(block)
    own = list(zip(*(words[at:] for at in range(_RUN)), strict=False))
    if not own:
        return bool(words) and f" {' '.join(words)} " in text
    return sum(run in runs for run in own) * _KEPT_SHARE >= len(own)


def _blocks(markdown: str) -> list[str]:
    """The blocks between blank lines; a listing is one."""
    spans = [(0, 0), *(found.span() for found in _FENCE.finditer(markdown))]
    spans.append((len(markdown), len(markdown)))
    blocks = list[str]()
    for (_, end), (start, stop) in pairwise(spans):
        blocks += re.split(r"\n{2,}", markdown[end:start])
        blocks.append(markdown[start:stop])
    return [block.strip("\n") for block in blocks if block.strip()]
