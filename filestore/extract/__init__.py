"""Extractors: which one reads which file, chosen by the end of its name.

An extractor is one private module and one line in `_FAMILY`; it is imported when a file needs it.
"""

import os
from functools import cache
from importlib import import_module
from typing import Final, cast

from filestore.extract.base import Document, ExtractionError, Extractor

__all__ = ["Document", "ExtractionError", "Extractor", "for_name"]

_FAMILY: Final = (
    ("_text:TextExtractor", ".txt .text"),
    ("_markdown:MarkdownExtractor", ".md .markdown .mdown .mkd .qmd .rmd .mdx"),
    ("_html:HtmlExtractor", ".html .htm .xhtml"),
)
"""Class and suffixes of every extractor; the first also reads whatever suffix is not known."""

_UNREADABLE_SUFFIXES: Final = """
    .pdf .ps .eps .djvu .doc .docx .docm .dot .dotx .ppt .pptx .pptm .xls .xlsx .xlsm .odt .ods .odp
    .odg .rtf .pages .numbers .key .epub .mobi .azw3 .chm .one .vsd .vsdx
    .zip .gz .tgz .bz2 .xz .zst .lz4 .7z .rar .tar .jar .war .whl .egg .deb .rpm .apk .iso .dmg .cab
    .png .jpg .jpeg .gif .webp .avif .bmp .tif .tiff .ico .icns .heic .psd .xcf .svg .svgz .ai .raw
    .mp3 .m4a .ogg .oga .opus .flac .wav .aac .wma .mp4 .m4v .mkv .avi .mov .webm .wmv .mpg .mpeg
    .ttf .otf .woff .woff2 .eot .css .scss .less .js .mjs .map .inv .swf
    .pyc .pyo .pyd .so .o .a .la .lo .obj .lib .dll .dylib .exe .com .bin .elf .class .wasm .dex
    .db .sqlite .sqlite3 .mdb .faiss .npy .npz .h5 .hdf5 .parquet .feather .arrow .avro .orc .pkl
    .pickle .pt .pth .onnx .safetensors .gguf .joblib .mat .rdata .rds .dta .sav .mo .gmo .dat .idx
    .pack .p12 .pfx .der .jks .gpg .sig .swp .swo .bak .tmp .part .crdownload .lock
"""
"""Binary formats, formats that are not read yet, and what only dresses a page."""

_UNREADABLE: Final = frozenset(_UNREADABLE_SUFFIXES.split())
_BY_SUFFIX: Final = {suffix: target for target, ends in _FAMILY for suffix in ends.split()}


def for_name(name: str) -> Extractor | None:
    """The extractor for a file, by its suffix in whatever case.

    Args:
        name: The name or path of the file.

    Returns:
        The extractor; the one for plain text, which refuses binary data, where the suffix is not
        known; None for a format that is binary or not read yet.
    """
    suffix = os.path.splitext(name)[1].lower()
    if suffix in _UNREADABLE:
        return None
    return _load(_BY_SUFFIX.get(suffix, _FAMILY[0][0]))


@cache
def _load(target: str) -> Extractor:
    module, _, class_name = target.partition(":")
    found = getattr(import_module(f"{__name__}.{module}"), class_name)
    return cast("Extractor", found())
