"""OpenDocument texts, presentations and tables: paragraphs of the body, text boxes, notes, headers and footers.

Deleted text of tracked changes, document properties, charts and scripts are copied as they are. So are cells whose text
a table's formulas, validations, conditions or filters compare with: the table would show other results; what formulas
give; and paragraphs in a style for code.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tandem.extras.documents.archive import Package, encrypted, package_format
from tandem.extras.documents.formulas import ComparedTexts, literals_of
from tandem.extras.documents.styles import TextStyle, raised_styles, styles_of_code
from tandem.extras.files.bounds import FileRefused
from tandem.extras.files.formats.encoding import Text
from tandem.extras.files.formats.passages import Parts
from tandem.extras.files.formats.proofing import in_open_document
from tandem.extras.files.formats.xml import Element, XmlRules, decode_xml, read_xml

_KINDS = {"odt": "text", "odp": "presentation", "ods": "spreadsheet"}
_TYPE = "application/vnd.oasis.opendocument."
_MANIFEST = "META-INF/manifest.xml"
_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_VALUE = re.compile(r"""\soffice:string-value\s*=\s*(?:"[^"]*"|'[^']*')""")
_POSITION = re.compile(r"(?P<below>sub\b|-\d)|super\b|[1-9]")
_CONDITION = re.compile(
    r"""\s(table:formula|table:condition|table:expression|table:value|style:condition|calcext:value)\s*=\s*"([^"]*)\""""
)
_RULES = XmlRules(
    paragraphs=frozenset(("text:p", "text:h")),
    inline=frozenset(("text:span", "text:a", "text:meta", "text:meta-field", "text:ruby", "text:ruby-base")),
    borders=frozenset(("text:tab", "text:line-break")),
    skipped=frozenset(("text:tracked-changes", "office:binary-data", "office:scripts")),
    readings=frozenset(("text:ruby-text",)),
    style="text:style-name",
    computed="table:formula",
)


def _members(package: Package) -> Iterator[tuple[str, Text, Parts]]:
    ending = package.source.ending
    kind = package.archive.read("mimetype")[:200].decode("latin-1").strip() if package.has("mimetype") else ""
    if not package.has("content.xml") or not (kind or _TYPE).startswith(_TYPE):
        raise FileRefused.wrong_type(ending, "no OpenDocument file")
    if kind and kind.removesuffix("-template") != _TYPE + _KINDS[ending]:
        raise FileRefused.wrong_type(ending, f"a file of the type {kind}")
    if package.has(_MANIFEST) and b"encryption-data" in package.read(_MANIFEST):
        raise encrypted()
    found: list[tuple[str, Text, Element]] = []
    for name in filter(package.has, ("content.xml", "styles.xml")):
        text = decode_xml(package.read(name), ending)
        found.append((name, text, read_xml(in_open_document(text.characters, package.source.target))))
    styles = _styles(root for _, _, root in reversed(found))  # of two with one name the content's counts
    rules = replace(_RULES, raised=raised_styles(styles), verbatim=styles_of_code(styles))
    for name, text, root in found:
        if (ending, name) == ("ods", "content.xml"):
            rules = replace(rules, fixed=_compared(text.characters))
        if not any(element.token.attributes.get("xmlns:text") == _TEXT for element in root.elements):
            raise FileRefused.broken("the document's XML has unusual prefixes; save it again with its own program")
        _drop_values(root)
        yield name, text, tuple(rules.parts(root))


def _styles(roots: Iterable[Element]) -> dict[str, TextStyle]:
    """A document's styles by the names that texts call them by."""
    found: dict[str, TextStyle] = {}
    left = [element for root in roots for element in root.elements]
    while left:
        element = left.pop(0)
        if element.name != "style:style":
            left += (
                element.elements if element.name.startswith(("office:document", "office:styles", "office:auto")) else ()
            )
            continue
        given = element.token.attributes
        name = given.get("style:name", "")
        shown = given.get("style:display-name") or name.replace("_20_", " ")
        said = [child.token.attributes.get("style:text-position", "") for child in element.elements]
        position = _POSITION.match("".join(said))
        raised = ("sub" if position["below"] else "sup") if position else "span" if any(said) else ""
        found[name] = TextStyle(shown, given.get("style:parent-style-name", ""), raised)
    return found


def _compared(characters: str) -> ComparedTexts:
    """Texts that a table's formulas, validations, conditions and filters compare cells with."""
    found = [html.unescape(value[2]) for value in _CONDITION.finditer(characters) if value[1] == "table:value"]
    for condition in _CONDITION.finditer(characters):
        found += literals_of(html.unescape(condition[2]))
    return ComparedTexts(found)


read, write = package_format(_members)
"""The document with its paragraphs translated; everything else stays."""


def _drop_values(root: Element) -> None:
    """Leave out what a cell says that its text is: programs would show that instead."""
    left = [root]
    while left:
        element = left.pop()
        left += element.elements
        given = element.token.attributes
        if "office:string-value" in given and "table:formula" not in given:
            shown = "".join(child.text for child in element.elements if child.name == "text:p")
            if "".join(shown.split()) == "".join(given["office:string-value"].split()):
                element.token = element.token._replace(raw=_VALUE.sub("", element.token.raw))
