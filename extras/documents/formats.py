"""The file types that stand here."""

from __future__ import annotations

from tandem.extras.files.formats.record import Format

_HERE = "tandem.extras.documents"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_OASIS = "application/vnd.oasis.opendocument"
FORMATS = (
    Format(("docx",), f"{_OFFICE}.wordprocessingml.document", f"{_HERE}.office"),
    Format(("epub",), "application/epub+zip", f"{_HERE}.epub"),
    Format(("odp",), f"{_OASIS}.presentation", f"{_HERE}.opendocument"),
    Format(("ods",), f"{_OASIS}.spreadsheet", f"{_HERE}.opendocument"),
    Format(("odt",), f"{_OASIS}.text", f"{_HERE}.opendocument"),
    Format(("pdf",), f"{_OFFICE}.wordprocessingml.document", f"{_HERE}.pdf", result="docx"),
    Format(("pptx",), f"{_OFFICE}.presentationml.presentation", f"{_HERE}.office"),
    Format(("xlsx",), f"{_OFFICE}.spreadsheetml.sheet", f"{_HERE}.office"),
)
