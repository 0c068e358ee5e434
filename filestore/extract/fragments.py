"""Pieces of HTML that stand in files of other formats, as Markdown.

One rule: a piece is all of its page, so nothing around it is judged.
"""

from filestore.extract._html import HtmlExtractor, flat_text
from filestore.extract.base import EmptyDocumentError, ExtractionError


def fragment_text(page: str, *, name: str) -> str:
    """The Markdown of a piece of HTML all of which counts; empty where it has no text.

    Args:
        page: In a mail, in a feed.
        name: Of the file that it is in.
    """
    if not page.strip():
        return ""
    marked = f"\ufeff<main>{page}</main>".replace("\0", "\ufffd")
    try:
        return HtmlExtractor().extract(marked.encode(errors="replace"), name=name).text
    except EmptyDocumentError:
        return ""
    except ExtractionError:
        return flat_text(page)
