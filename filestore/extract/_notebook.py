"""Jupyter notebooks: what was written in the cells, as Markdown; what they printed is left out.

One rule: a cell is never cut in two by its own contents, whatever fences it holds.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from filestore.extract.base import (
    Document,
    ExtractionError,
    Extractor,
    decode,
    document_text,
    empty_error,
    encoding_metadata,
)
from filestore.extract.markdown import first_title

_LIMIT_BYTES: Final = 64_000_000
_FENCE: Final = re.compile(r"^[ ]{0,3}(`{3,})", re.MULTILINE)
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,40}")


class NotebookExtractor(Extractor):
    """Jupyter notebooks of version 3 and 4."""

    name = "notebook"
    version = 1
    isolated = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Reads the cells; see `Extractor.extract`."""
        if len(data) > _LIMIT_BYTES:
            raise ExtractionError(
                f"{name}: larger than {_LIMIT_BYTES // 1_000_000} MB",
                remedy="clear the outputs of the notebook, or leave it out",
            )
        decoded, encoding = decode(data, name=name)
        notebook = _parse(document_text(decoded, name=name), name)
        language = _language(notebook)
        text = "\n\n".join(_cells(notebook, language))
        if not text.strip():
            raise empty_error(name, "found no cell with anything in it")
        text = document_text(text + "\n", name=name)
        title = first_title(text)
        metadata = {"language": language} if language else {}
        if title:
            metadata["title"] = title
        return Document(
            text=text,
            syntax="markdown",
            metadata=metadata | encoding_metadata(encoding),
            extractor=self.label,
            title=title or " ".join(name.rpartition("/")[2].split()),
        )


def _parse(text: str, name: str) -> Mapping[str, Any]:
    found, cause = "JSON of another form", None
    try:
        notebook = json.loads(text)
        if isinstance(notebook, dict):
            return notebook
    except (ValueError, RecursionError) as error:
        found, cause = "something that is not JSON", error
    raise ExtractionError(
        f"{name}: expected a Jupyter notebook, found {found}",
        remedy="open and save it with Jupyter, or leave it out",
    ) from cause


def _language(notebook: Mapping[str, Any]) -> str:
    metadata = notebook.get("metadata")
    for key, field in (("language_info", "name"), ("kernelspec", "language")):
        info = metadata.get(key) if isinstance(metadata, dict) else None
        found = info.get(field) if isinstance(info, dict) else None
        if isinstance(found, str) and _LANGUAGE.fullmatch(found):
            return found.lower()
    return ""


def _cells(notebook: Mapping[str, Any], language: str) -> Iterator[str]:
    sheets = notebook.get("worksheets")  # where the cells lay before version 4
    parts = [notebook, *(sheets if isinstance(sheets, list) else ())]
    lists = [part.get("cells") for part in parts if isinstance(part, dict)]
    for cell in chain.from_iterable(cells for cells in lists if isinstance(cells, list)):
        if not isinstance(cell, dict):
            continue
        source = _source(cell)
        if not source.strip():
            continue
        kind = cell.get("cell_type")
        if kind == "code":
            fence = max(("```", *(found + "`" for found in _FENCE.findall(source))), key=len)
            yield f"{fence}{language}\n{source}\n{fence}"
        elif kind in ("markdown", "heading"):
            level = cell.get("level") if kind == "heading" else None
            yield f"{'#' * level} {source}" if level in (1, 2, 3, 4, 5, 6) else source


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", cell.get("input", ""))
    lines = source if isinstance(source, list) else [source]
    text = "".join(line for line in lines if isinstance(line, str))
    # NUL and halves of characters can be written in JSON, and belong in no text.
    text = text.replace("\0", "\ufffd").encode(errors="replace").decode()
    return text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
