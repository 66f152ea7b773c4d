"""What one file may amount to, and how much of them may be here: the bounds that the settings give."""

from __future__ import annotations

from service.files.bounds import Bounds
from service.files.errors import FilesFull, TooManyFiles
from service.files.records import Holdings
from service.settings import Settings

_SLICE_TEXTS = 50
_MARKUP_CHARACTERS = 4_000  # of a text that cannot be cut: as predicted tokens it must fit into the engine's queue


def bounds_of(settings: Settings) -> Bounds:
    """The bounds of one file; a slice of it must pass as a request."""
    return Bounds(
        characters=settings.file_characters,
        slice_characters=min(settings.file_slice_characters, settings.max_characters),
        markup_characters=min(_MARKUP_CHARACTERS, settings.max_characters),
        slice_texts=min(_SLICE_TEXTS, settings.max_texts),
        unpacked_bytes=settings.file_unpacked_bytes,
    )


def check_room(settings: Settings, own: Holdings, everybody: Holdings, size: int, characters: int) -> None:
    """Raises TooManyFiles or FilesFull where a file of that size is too much for its caller or for the server."""
    waiting, busy = own.waiting + 1, "wait until one is finished, or cancel one"
    if waiting > settings.files_per_caller:
        raise TooManyFiles("unfinished files", settings.files_per_caller, waiting, busy)
    if own.characters + characters > settings.file_characters_per_caller:
        value = own.characters + characters
        raise TooManyFiles("characters of unfinished files", settings.file_characters_per_caller, value, busy)
    if own.bytes + size > settings.file_bytes_per_caller:
        remedy = "delete files that you have fetched"
        raise TooManyFiles("bytes of files", settings.file_bytes_per_caller, own.bytes + size, remedy)
    if everybody.bytes + size > settings.file_bytes_of_all:
        remedy = "try again later"
        raise FilesFull("bytes of files", settings.file_bytes_of_all, everybody.bytes + size, remedy, "of all callers")
