"""Titles and properties that formats give, and what programs fill in where there is none."""

import re
from collections.abc import Mapping
from typing import Any, Final

_LONGEST_TITLE: Final = 300
_FILE_NAME: Final = re.compile(
    r".*\.(?:docx?|dotx?|rtf|odt|pages|tex|dvi|e?ps|pdf|indd|qxd|fm|p65|pub|pptx?|odp|key|xlsx?|ods"
    r"|txt|text|md|html?|xml|sgml|texi|png|jpe?g|tiff?)",
    re.IGNORECASE,
)
NO_TITLE: Final = re.compile(
    r"\W*(?:untitled(?: (?:document|page))?|unbenannt|sans titre|anonymous"
    r"|unspecified|unknown|none|null|no title|title"
    r"|(?:new )?document|(?:powerpoint )?presentation|slide|book|scan"
    r"|microsoft (?:word|powerpoint|excel)\b.*)"
    r"\W*\d*\W*",
    re.IGNORECASE,
)
_LETTER: Final = re.compile(r"[^\W\d_]")


def checked_title(title: str, *, name: str) -> str:
    """The title, unless it is what a program fills in, or a file name."""
    words = " ".join(title.split())
    stem = name.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    senseless = (
        len(words) > _LONGEST_TITLE
        or not _LETTER.search(words)
        or NO_TITLE.fullmatch(words)
        or _FILE_NAME.fullmatch(words)
        or (" " not in words and words.casefold() == stem.casefold())
    )
    return "" if senseless else words


_TOOL: Final = (
    r"(?:(?:microsoft|ms|adobe|apple|google|apache)\W+(?:office\W+)?(?:office|word|excel|powerpoint"
    r"|publisher|outlook|frontpage|indesign|acrobat|illustrator|photoshop|pages|numbers|keynote|docs"
    r"|sheets|slides|poi|fop)|powerpoint|indesign|framemaker|(?:acrobat )?distiller|libreoffice"
    r"|openoffice|pscript5?|ghostscript|quarkxpress|wkhtmltopdf|weasyprint|reportlab|pandoc"
    r"|(?:pdf|xe|lua)?latex|asciidoctor|docutils|wordpress|joomla|mkdocs|python-(?:docx|pptx)"
    r"|openpyxl|xlsxwriter|docx4j|phpword|phpexcel|tcpdf|fpdf|itext)"
    r"(?:\.(?:org|com|dll))?(?:\W+(?:(?:version\W*)?v?\d[\w.]*|cc|dc))?"
)
"""Programs that are neither the subject of a document nor a person."""
_NO_VALUE: Final = re.compile(
    r"[\W_]*|(?:array|hash|code|scalar|glob|ref)\(0x[0-9a-f]+\)|\[object \w+\]"
    r"|<[^<>]+ at 0x[0-9a-f]+>|\{\{.*\}\}|\$\{.*\}|<%.*%>|<\?.*\?>"
    r"|\W*(?:null|nil|none|nan|undefined|n/a)\W*",
    re.IGNORECASE,
)
"""Of any key: blanks and signs, what a program prints for want of a value, a gap of a template."""
_NO_WORDS: Final = re.compile(
    r"(?:automatically )?(?:generated|exported|converted) (?:by|with|using|from) \S+"
    rf"(?: v?[\d.]+)?\.?|(?:(?:created|made|written|produced) (?:by|with|using|in) )?{_TOOL}",
    re.IGNORECASE,
)
_NO_PERSON: Final = re.compile(
    r"(?:microsoft|windows|office|mac|pc|default|registered)(?: (?:office|home|corporation))*"
    r"(?: (?:user|customer|owner))?"
    r"|(?:(?:your|the|my) )?(?:user|author|owner|creator|name)(?: name)?(?: ?\d+)?"
    r"|unknown(?: (?:author|user))?|anonymous|admin(?:istrator)?|root|guest"
    r"|unspecified|untitled",
    re.IGNORECASE,
)
_PEOPLE: Final = frozenset({"author", "last_modified_by"})
_WORDS: Final = frozenset({"title", "subject", "description"})


def telling(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without what programs fill in: keys and items that say nothing.

    Args:
        metadata: Of a document, as JSON values; none that a person typed.
    """
    kept = {key: _telling(key, value) for key, value in metadata.items()}
    return {key: value for key, value in kept.items() if value is not None}


def _telling(key: str, value: Any) -> Any:
    """A value, a list without some of its items, or None."""
    if isinstance(value, list):
        return [one for one in value if _telling(key, one) is not None] or None
    if not isinstance(value, str):
        return None if value == {} else value
    words = " ".join(value.split())
    is_junk = (
        _NO_VALUE.fullmatch(words)
        or (key in _PEOPLE and (_NO_PERSON.fullmatch(words) or _NO_WORDS.fullmatch(words)))
        or (key in _WORDS and (NO_TITLE.fullmatch(words) or _NO_WORDS.fullmatch(words)))
    )
    return None if is_junk else value
