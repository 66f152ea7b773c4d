"""The file types that can be translated. A format is a module of two functions, which see the same texts in a file.

Formats that keep their own text as it is written divide a file into parts (``passages``): strings that stay, and
passages that are translated. Other extras bring further types.
"""

from __future__ import annotations

from tandem.extras.files.formats.record import Format
from tandem.service.ports import extras, load

_OWN = (
    Format(("csv", "tsv"), "text/csv", f"{__name__}.csv"),
    Format(("html", "htm"), "text/html", f"{__name__}.html"),
    Format(("json", "arb"), "application/json", f"{__name__}.json"),
    Format(("md", "markdown"), "text/markdown", f"{__name__}.markdown"),
    Format(("po", "pot"), "text/x-gettext-translation", f"{__name__}.po"),
    Format(("srt",), "application/x-subrip", f"{__name__}.srt"),
    Format(("txt",), "text/plain", f"{__name__}.txt"),
    Format(("vtt",), "text/vtt", f"{__name__}.vtt"),
    Format(("xliff", "xlf", "sdlxliff", "mqxliff", "mxliff"), "application/xliff+xml", f"{__name__}.xliff"),
)


def _formats() -> tuple[Format, ...]:
    """Those that stand here, and those that other extras bring."""
    return (*_OWN, *(form for extra in extras() if extra.formats for form in load(extra.formats)))


FORMATS = {ending: form for form in sorted(_formats(), key=lambda form: form.endings) for ending in form.endings}
"""By the ending of the file's name."""

__all__ = ["FORMATS", "Format"]
