"""Equations of office files (OMML) as LaTeX.

Takes one equation of a parsed part and gives text between dollar signs; where equations stand is
for the extractors. One rule: no sign of an equation is lost, whatever forms are nested in it.
"""

from collections.abc import Mapping
from typing import Any, Final

from filestore.extract._office.package import local_name

_M: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MAX_DEPTH: Final = 40
"""Of forms inside each other; of deeper ones only the signs are kept."""

_FORMS: Final = {
    "f": r"\frac{{{num}}}{{{den}}}",
    "sSup": "{e}^{{{sup}}}",
    "sSub": "{e}_{{{sub}}}",
    "sSubSup": "{e}_{{{sub}}}^{{{sup}}}",
    "sPre": "{{}}_{{{sub}}}^{{{sup}}}{e}",
    "func": "{fName} {e}",
    "limLow": r"\underset{{{lim}}}{{{e}}}",
    "limUpp": r"\overset{{{lim}}}{{{e}}}",
}
"""How the parts of a form are put together."""

_NO_PARTS: Final = dict.fromkeys(("num", "den", "e", "sup", "sub", "lim", "fName"), "")
_OPERATORS: Final = {"∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∬": r"\iint", "∮": r"\oint"}
_ACCENTS: Final = {
    "\u0303": "tilde",
    "\u0304": "bar",
    "\u0305": "bar",
    "\u0307": "dot",
    "\u0308": "ddot",
    "\u20d7": "vec",
}
_APPLIED: Final = "\u2061"  # between a function and its argument; it shows nothing
_ESCAPED: Final = str.maketrans({sign: f"\\{sign}" for sign in "{}%&#_$"} | {_APPLIED: " "})
_NEW_ROW: Final = r" \\ "


def equation(element: Any) -> str:
    """LaTeX of an `oMath` element, in two dollar signs a side where it stands by itself."""
    formula = " ".join(_latex(element, _MAX_DEPTH).split())
    around = "$$" if local_name(element.getparent()) == "oMathPara" else "$"
    return f"{around}{formula}{around}" if formula else ""


def _latex(element: Any, depth: int) -> str:
    kind = local_name(element)
    if depth <= 0 or kind == "r":
        signs = (found.text or "" for found in element.iter() if local_name(found) == "t")
        return "".join(signs).translate(_ESCAPED)
    parts: dict[str, list[str]] = {}
    pieces = []
    for child in element:
        name = local_name(child)
        if name and not name.endswith("Pr"):
            pieces.append(_latex(child, depth - 1))
            parts.setdefault(name, []).append(pieces[-1])
    single = {name: " ".join(found) for name, found in parts.items()}
    if kind in _FORMS:
        return _FORMS[kind].format(**_NO_PARTS | single)
    return _with_properties(element, kind, single, parts) or "".join(pieces)


def _with_properties(
    element: Any, kind: str, single: Mapping[str, str], parts: Mapping[str, list[str]]
) -> str:
    """The forms that are more than their parts in a row; empty for any other."""
    inner = single.get("e", "")
    if kind == "rad":
        degree = single.get("deg", "")
        return rf"\sqrt[{degree}]{{{inner}}}" if degree else rf"\sqrt{{{inner}}}"
    if kind == "nary":
        # A sum or an integral with its limits.
        sign = _setting(element, "chr", "∫")
        limits = (("_", single.get("sub", "")), ("^", single.get("sup", "")))
        operator = _OPERATORS.get(sign, sign) + "".join(f"{at}{{{of}}}" for at, of in limits if of)
        return f"{operator} {inner}"
    if kind == "d":
        opening = _setting(element, "begChr", "(").translate(_ESCAPED)
        closing = _setting(element, "endChr", ")").translate(_ESCAPED)
        between = f" {_setting(element, 'sepChr', '|')} "
        return f"{opening}{between.join(parts.get('e', []))}{closing}"
    if kind == "acc":
        accent = _ACCENTS.get(_setting(element, "chr", ""), "hat")
        return rf"\{accent}{{{inner}}}"
    if kind == "bar":
        return rf"\overline{{{inner}}}"
    if kind == "mr":
        return " & ".join(parts.get("e", []))
    rows = _NEW_ROW.join(parts.get("mr" if kind == "m" else "e", []))
    names = {"m": "matrix", "eqArr": "aligned"}
    return rf"\begin{{{names[kind]}}} {rows} \end{{{names[kind]}}}" if kind in names else ""


def _setting(element: Any, name: str, usual: str) -> str:
    """A property of a form, which stands in an element called after it: `dPr`."""
    found = element.find(f"{element.tag}Pr/{_M}{name}")
    return usual if found is None else str(found.get(f"{_M}val", ""))
