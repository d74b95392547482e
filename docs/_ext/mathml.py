"""Formulas as MathML, made when the documentation is built: readers need no script or network."""

import html
import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

_SPACE = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", _SPACE)
_LOG = logging.getLogger(__name__)

#: What the converter does not know, in words that it knows; brackets have the height they need.
_KNOWN = {
    r"\arg": r"\operatorname{arg}",
    **{
        f"\\{size}\\{side}": f"\\{side}"
        for size in ("bigl", "Bigl", "bigr", "Bigr")
        for side in ("{", "}", "lfloor", "rfloor", "lceil", "rceil")
    },
}


def to_mathml(formula: str, display: str) -> str:
    """Return a formula as MathML; one that is not understood raises."""
    for word, known in _KNOWN.items():
        formula = formula.replace(word, known)
    made: str = convert(formula, display=display)
    if "\\" in made:
        raise ValueError(f"a command in {formula!r} is not known")
    # For whoever copies the text of a page.
    return made.replace("<math ", f'<math alttext="{html.escape(formula)}" ', 1)


def _made(node: Any, display: str) -> str:
    try:
        return to_mathml(node.astext(), display)
    except Exception as error:  # of the converter, whatever it is
        _LOG.warning("formula: %s", error, location=node)
        return html.escape(node.astext())


#: Signs before which a line may break; at sums, and inside brackets, only after some letters.
_RELATIONS, _SUMS = set("=<>≤≥∼≈→∈≠≡≪≫⪯⪰"), set("+−-")
_LONG, _LONGER = 9, 18


def breakable(made: str) -> str:
    """Return an inline formula in pieces between which a line may break, at its top-level signs."""
    root = ElementTree.fromstring(made)
    (row,) = root
    pieces: list[list[ElementTree.Element]] = [[]]
    depth = length = 0
    for each in row:
        sign = each.text or "" if each.tag.endswith("}mo") else ""
        breaks = sign in _RELATIONS or (sign in _SUMS and length > _LONG)
        if sign and breaks and (depth == 0 or length > _LONGER) and pieces[-1]:
            each.set("form", "infix")  # as it is not at the start of a piece
            pieces.append([])
            length = 0
        depth += (sign in ("(", "[", "{", "⟨", "⌈", "⌊")) - (sign in (")", "]", "}", "⟩", "⌉", "⌋"))
        pieces[-1].append(each)
        length += len("".join(each.itertext()))
    if len(pieces) == 1 or row.tag != f"{{{_SPACE}}}mrow":
        return made
    shown = []
    for number, piece in enumerate(pieces):
        part = ElementTree.Element(root.tag, root.attrib if number == 0 else {"display": "inline"})
        ElementTree.SubElement(part, row.tag).extend(piece)
        shown.append(ElementTree.tostring(part, encoding="unicode"))
    return "<wbr>".join(shown)


#: Signs that stay on the line of the formula before or after them.
_BEFORE, _AFTER = re.compile(r"[(\[“]+$"), re.compile(r"(?:-\w+)?[,.;:!?)\]’”]*")


def _keep_signs(app: Any, doctree: Any, name: str) -> None:
    """Give a formula the signs beside it, so that no line begins with a comma."""
    for node in list(doctree.findall(nodes.math)):
        place = node.parent.index(node)
        before = node.parent[place - 1] if place else None
        if isinstance(before, nodes.Text) and (found := _BEFORE.search(before)):
            node["before"] = found[0]
            node.parent.replace(before, nodes.Text(before[: found.start()]))
        after = node.parent[place + 1] if place + 1 < len(node.parent) else None
        if isinstance(after, nodes.Text) and (found := _AFTER.match(after)) and found[0]:
            node["after"] = found[0]
            node.parent.replace(after, nodes.Text(after[found.end() :]))


def _inline(self: Any, node: Any) -> None:
    made = _made(node, "inline")
    pieces = (breakable(made) if made.startswith("<math") else made).split("<wbr>")
    if "before" in node:
        pieces[0] = f'<span class="together">{html.escape(node["before"])}{pieces[0]}</span>'
    if "after" in node:
        pieces[-1] = f'<span class="together">{pieces[-1]}{html.escape(node["after"])}</span>'
    self.body.append("<wbr>".join(pieces))
    raise nodes.SkipNode


def _block(self: Any, node: Any) -> None:
    self.body.append(f'<div class="formula">{_made(node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    app.connect("doctree-resolved", _keep_signs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
