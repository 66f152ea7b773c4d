"""Tandem: translation and summarization that a team trains, exports and serves by itself.

    from tandem import Translator

    with Translator("bundles/de-fr-en") as translator:
        print(translator.translate("Wo ist der Bahnhof?", source="de", target="en").text)

What stands in ``__all__`` is the public interface (docs/python.md); all else may change with any version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tandem.models.bundle import Bundle
    from tandem.models.errors import TandemError
    from tandem.service.translation.results import SentenceDetail, WrittenText
    from tandem.translator import Scored, Translator

__all__ = ["Bundle", "Scored", "SentenceDetail", "TandemError", "Translator", "WrittenText"]

_PLACES = {
    "Bundle": "tandem.models.bundle",
    "Scored": "tandem.translator",
    "TandemError": "tandem.models.errors",
    "Translator": "tandem.translator",
    "SentenceDetail": "tandem.service.translation.results",
    "WrittenText": "tandem.service.translation.results",
}


def __getattr__(name: str) -> Any:
    """The public names, each imported when it is asked for: ``import tandem`` alone loads nothing."""
    if name not in _PLACES:
        raise AttributeError(f"module 'tandem' has no attribute {name!r}")
    try:
        return getattr(import_module(_PLACES[name]), name)
    except ModuleNotFoundError as error:
        needed = f"tandem.{name} needs the package {error.name!r}: install Tandem with its extra [serve]"
        raise ModuleNotFoundError(needed, name=error.name) from error
