"""A list of pieces with ids of its own, whatever cuts text into them: what the vocabularies of public models share.

A list says which piece has which id; pieces that text is cut into may be missing from it, and it has others that no
text becomes (``</s>``, ``>>fra<<``). The special pieces are moved to this project's ids (``Vocabulary``), everything
else keeps its order.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Self

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary.base import BOS, EOS, PAD, UNK, StoredVocabulary

LISTED_FORMAT = 1
START = "⟨start⟩"
"""Names the id that decoding begins with: public models begin with padding or the end of the sentence instead."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_FIELDS: Mapping[str, type] = {"format": int, "pieces": list, "silent": list, "before": list, "languages": dict}


class ListedVocabulary(StoredVocabulary):
    """Pieces under ids of a list (see ``Vocabulary``).

    Unknown pieces become ``<unk>``, of which nothing is written. It has no placeholders, and no text becomes a silent
    piece, whatever it says.

    Args:
        pieces: by id; the first four are padding, unknown, begin and end, whatever they are called.
        silent: further pieces that no text becomes and of which nothing is written, such as tags.
        before: pieces that every text begins with.
        languages: the piece that is each language's tag.

    Raises:
        VocabularyError: pieces that repeat or are too few, or names that are no piece; every fault is named.
    """

    placeholders: tuple[int, ...] = ()
    cutter: ClassVar[tuple[str, type]]
    """The field of the file that says how text is cut, and its type in JSON."""

    def __init__(
        self,
        pieces: Sequence[str],
        *,
        silent: Collection[str] = (),
        before: Sequence[str] = (),
        languages: Mapping[str, str] | None = None,
    ) -> None:
        self._pieces = tuple(pieces)
        self._ids = {piece: token for token, piece in enumerate(self._pieces)}
        self.size = len(self._pieces)
        self.languages = dict(languages or {})
        self._before_pieces = tuple(before)
        named = {*silent, *before, *self.languages.values()}
        self._check(named)
        self._silent = frozenset({self._ids[piece] for piece in named} | {PAD, UNK, BOS, EOS})
        self._before = [self._ids[piece] for piece in before]
        self._from_text = {piece: token for piece, token in self._ids.items() if token not in self._silent}

    @abstractmethod
    def _cut(self, text: str) -> Sequence[str]:
        """The pieces of a text; some may not be in the list."""

    @abstractmethod
    def _join(self, pieces: Sequence[str]) -> str:
        """The text of pieces of the list."""

    @abstractmethod
    def _cutter(self) -> Any:
        """The value of the cutter's field, as JSON has it."""

    @classmethod
    @abstractmethod
    def _made(cls, cutter: Any, pieces: Sequence[str], **named: Any) -> Self:
        """A vocabulary from what its file holds. Raises ValueError or VocabularyError where that is malformed."""

    def _check(self, named: Collection[str]) -> None:
        faults = []
        if self.size <= EOS:
            faults.append(f"there must be padding, unknown, begin and end, but there are {self.size} pieces")
        if len(self._ids) != self.size:
            repeated = [piece for token, piece in enumerate(self._pieces) if self._ids[piece] != token]
            faults.append(f"pieces must differ; repeated: {repeated[:10]}")
        unknown = sorted(piece for piece in named if piece not in self._ids)
        faults += [f"no piece is called {', '.join(map(repr, unknown[:10]))}"] if unknown else []
        if faults:
            raise VocabularyError("; ".join(faults))

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """A vocabulary from its file's content. Raises VocabularyError where it is malformed."""
        fields = {**_FIELDS, cls.cutter[0]: cls.cutter[1]}
        try:
            table = json.loads(content)
            if not isinstance(table, dict):
                raise ValueError("it is no table")
            if isinstance(table.get("format"), int) and table["format"] > LISTED_FORMAT:
                raise VocabularyError(f"its format {table['format']} is newer than {LISTED_FORMAT}; update tandem")
            if table.keys() != fields.keys() or not all(isinstance(table[k], kind) for k, kind in fields.items()):
                raise ValueError(f"it must hold {', '.join(fields)}")
            texts = [*table["pieces"], *table["silent"], *table["before"], *table["languages"].values()]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("its pieces must be strings")
            named = {name: table[name] for name in ("silent", "before", "languages")}
            return cls._made(table[cls.cutter[0]], table["pieces"], **named)
        except (ValueError, RecursionError) as error:
            raise VocabularyError(f"not a list of pieces and what cuts text into them: {error}") from error

    def to_bytes(self) -> bytes:
        table: dict[str, Any] = {
            "format": LISTED_FORMAT,
            "silent": [self._pieces[token] for token in sorted(self._silent) if token > EOS],
            "before": list(self._before_pieces),
            "languages": dict(sorted(self.languages.items())),
            "pieces": list(self._pieces),
            self.cutter[0]: self._cutter(),
        }
        return (json.dumps(table, ensure_ascii=False, separators=(",", ":")) + "\n").encode()

    def encode(self, text: str, *, reserved: bool | Collection[str] = False) -> list[int]:
        ids = [self._from_text.get(piece, UNK) for piece in self._cut(_SURROGATES.sub("\ufffd", text))]
        return [*self._before, *ids] if ids else ids

    def decode(self, ids: Sequence[int]) -> str:
        return self._join([self._pieces[token] for token in map(self._checked, ids) if token not in self._silent])

    def language_tag(self, code: str) -> int:
        if code not in self.languages:
            known = ", ".join(self.languages) or "none"
            raise VocabularyError(f"the vocabulary has no tag of the language {code!r}; it has those of: {known}")
        return self._ids[self.languages[code]]
