"""The page of a report: one file that asks for nothing else, in the reader's light or dark colours, and runs no script.

compare-mt draws reports of the same kind, but of texts alone, into a folder of files, and without attention.
"""

from __future__ import annotations

import re
from base64 import b64encode
from difflib import SequenceMatcher
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from training.metrics import is_error
from training.report.content import Report

# What HTML has no form for, not even as a reference.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def render(report: Report) -> str:
    """The report as HTML. The same report gives the same bytes."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_writable,
        trim_blocks=True,
    )
    templates.filters["base64"] = lambda png: b64encode(png).decode()
    templates.tests["less_is_better"] = is_error
    return templates.get_template("report.html.jinja").render(report=report, marked=_marked)


def _writable(value: object) -> object:
    """Any text that is not yet markup, without the characters that HTML cannot hold."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    return value


def _marked(text: str, reference: str) -> Markup:
    """The text, with those words marked that the reference has not, or not in this order."""
    words, wanted = text.split(), reference.split()
    if not words:
        return Markup("<em>nothing</em>")
    parts = []
    for kind, start, end, _, _ in SequenceMatcher(None, words, wanted, autojunk=False).get_opcodes():
        if start < end:
            part = escape(_writable(" ".join(words[start:end])))
            parts.append(part if kind == "equal" else Markup("<mark>{}</mark>").format(part))
    return Markup(" ").join(parts)
