"""What a file type is: the endings of its files' names, and the module that reads and writes them."""

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
        module: of the two functions; imported, with its library, only by the process that reads or writes such a file.
        result: ending of the result's name, where it is of another type.
    """

    endings: tuple[str, ...]
    media_type: str
    module: str
    result: str | None = None

    def read(self, source: SourceFile) -> Iterable[Segment]:
        """The texts of a file, in order. Raises FileRefused."""
        found: Iterable[Segment] = import_module(self.module).read(source)
        return found

    def write(self, source: SourceFile, translations: Sequence[str], result: Path) -> None:
        """The file again, with each of its texts replaced, as another file. Raises FileRefused."""
        import_module(self.module).write(source, translations, result)
