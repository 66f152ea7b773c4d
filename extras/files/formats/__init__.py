"""The file types that can be translated. A format is a module of two functions, which see the same texts in a file.

Formats that keep their own text as it is written divide a file into parts (``passages``): strings that stay, and
passages that are translated. Zip archives of XML are divided member by member.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tandem.extras.files.bounds import Segment, SourceFile


@dataclass(frozen=True, slots=True)
class Format:
    """How files of a type are read and written.

    Attributes:
        endings: of the names of such files.
        media_type: of the result.
        module: of this package; imported, with its library, only by the process that reads or writes such a file.
        result: ending of the result's name, where it is of another type.
    """

    endings: tuple[str, ...]
    media_type: str
    module: str
    result: str | None = None

    def read(self, source: SourceFile) -> Iterable[Segment]:
        """The texts of a file, in order. Raises FileRefused."""
        found: Iterable[Segment] = import_module(f"{__name__}.{self.module}").read(source)
        return found

    def write(self, source: SourceFile, translations: Sequence[str], result: Path) -> None:
        """The file again, with each of its texts replaced, as another file. Raises FileRefused."""
        import_module(f"{__name__}.{self.module}").write(source, translations, result)


_OFFICE = "application/vnd.openxmlformats-officedocument"
_OASIS = "application/vnd.oasis.opendocument"
_FORMATS = (
    Format(("csv", "tsv"), "text/csv", "csv"),
    Format(("docx",), f"{_OFFICE}.wordprocessingml.document", "office"),
    Format(("epub",), "application/epub+zip", "epub"),
    Format(("html", "htm"), "text/html", "html"),
    Format(("json", "arb"), "application/json", "json"),
    Format(("md", "markdown"), "text/markdown", "markdown"),
    Format(("odp",), f"{_OASIS}.presentation", "opendocument"),
    Format(("ods",), f"{_OASIS}.spreadsheet", "opendocument"),
    Format(("odt",), f"{_OASIS}.text", "opendocument"),
    Format(("pdf",), f"{_OFFICE}.wordprocessingml.document", "pdf", result="docx"),
    Format(("po", "pot"), "text/x-gettext-translation", "po"),
    Format(("pptx",), f"{_OFFICE}.presentationml.presentation", "office"),
    Format(("srt",), "application/x-subrip", "srt"),
    Format(("txt",), "text/plain", "txt"),
    Format(("vtt",), "text/vtt", "vtt"),
    Format(("xliff", "xlf"), "application/xliff+xml", "xliff"),
    Format(("xlsx",), f"{_OFFICE}.spreadsheetml.sheet", "office"),
)
FORMATS: dict[str, Format] = {ending: form for form in _FORMATS for ending in form.endings}
"""By the ending of the file's name."""
