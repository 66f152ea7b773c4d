"""The file types that can be translated. A format is a module of two functions, which see the same texts in a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from service.files.bounds import Bounds, Segment


@dataclass(frozen=True, slots=True)
class Format:
    """How files of a type are read and written.

    Attributes:
        media_type: of the file.
        module: of this package; imported, with its library, only by the process that reads or writes such a file.
    """

    media_type: str
    module: str

    def read(self, path: Path, bounds: Bounds) -> Iterable[Segment]:
        """The texts of a file, in order. Raises FileRefused."""
        found: Iterable[Segment] = import_module(f"{__name__}.{self.module}").read(path, bounds)
        return found

    def write(self, path: Path, translations: Sequence[str], result: Path, bounds: Bounds) -> None:
        """The file again, with each of its texts replaced, as another file. Raises FileRefused."""
        import_module(f"{__name__}.{self.module}").write(path, translations, result, bounds)


FORMATS: dict[str, Format] = {
    "docx": Format("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    "html": Format("text/html", "html"),
    "srt": Format("application/x-subrip", "srt"),
    "txt": Format("text/plain", "txt"),
}
"""By the ending of the file's name."""
