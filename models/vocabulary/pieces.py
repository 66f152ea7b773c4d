"""Sentencepiece with byte fallback: no text is unknown, and every text comes back exactly.

Two kinds of text would not survive sentencepiece alone. A reserved string that a user types (``⟨ph3⟩``) would become
the reserved token, and the word-boundary mark U+2581 would come back as a space. Both are spelled in bytes: the first
character is replaced, before encoding, by a private-use character that neither the text nor any piece contains;
sentencepiece falls back to that character's bytes, and those ids are then replaced by the bytes of the real one.
UTF-8 is self-synchronising, so the byte sequence can only be found where the stand-in was put.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Self, TypeAlias

import sentencepiece

from tandem.models.errors import VocabularyError
from tandem.models.vocabulary.base import (
    BOS,
    EOS,
    PAD,
    PLACEHOLDERS,
    UNK,
    StoredVocabulary,
    is_reserved,
    language_piece,
)

BOUNDARY = "\u2581"
_SURROGATES = re.compile("[\ud800-\udfff]")
_LONGEST = 4192  # bytes of a line that sentencepiece trains on
_Spelling: TypeAlias = tuple[list[int], list[int]]  # the bytes of a stand-in, and those of what it stands for


class SentencePieceVocabulary(StoredVocabulary):
    """A sentencepiece model with the project's fixed ids and all 256 byte pieces (see ``Vocabulary``)."""

    def __init__(self, model: bytes) -> None:
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            loaded = bool(model) and self._processor.LoadFromSerializedProto(model)
        except RuntimeError as error:
            raise VocabularyError(
                "not a readable sentencepiece model: it is damaged, or another kind of file"
            ) from error
        if not loaded:
            raise VocabularyError("not a readable sentencepiece model: it is empty")
        self.size: int = self._processor.get_piece_size()
        self._pieces = [self._processor.id_to_piece(token) for token in range(self.size)]
        self._ids = {piece: token for token, piece in enumerate(self._pieces)}
        self._bytes = [self._ids.get(f"<0x{value:02X}>", -1) for value in range(256)]
        self._check()
        self._reserved = tuple(piece for piece in self._pieces if is_reserved(piece))
        self.placeholders = tuple(self._ids[piece] for piece in PLACEHOLDERS if piece in self._ids)
        self._placeholders = frozenset(self.placeholders)
        self._known_characters = frozenset(chain.from_iterable(self._pieces))
        self._escapes_all = _first_characters(self._reserved)
        self._escapes_none = _first_characters(())

    def _check(self) -> None:
        processor = self._processor
        found = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if found != (PAD, UNK, BOS, EOS):
            raise VocabularyError(
                f"pad, unk, bos and eos must be {PAD}, {UNK}, {BOS}, {EOS}, but are {found}: train it with"
                f" --pad_id={PAD} --unk_id={UNK} --bos_id={BOS} --eos_id={EOS}"
            )
        if -1 in self._bytes:
            raise VocabularyError("the sentencepiece model has no byte fallback: train it with --byte_fallback")

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        return cls(content)

    def to_bytes(self) -> bytes:
        return self._model

    def encode(self, text: str, *, reserved: bool | Collection[str] = False) -> list[int]:
        if isinstance(reserved, bool):
            spelled = self._escapes_none if reserved else self._escapes_all
        else:
            spelled = _first_characters([piece for piece in self._reserved if piece not in reserved])
        text, spelt = self._stood_in(text, spelled)
        return _replace_all(self._processor.encode(text), spelt)

    def _stood_in(self, text: str, spelled: re.Pattern[str]) -> tuple[str, list[_Spelling]]:
        """A text with stand-ins for the characters that are to be spelled in bytes, and the ids to replace by which."""
        text = _SURROGATES.sub("\ufffd", text)
        characters = dict.fromkeys(spelled.findall(text))  # ordered and without duplicates
        if not characters:
            return text, []
        stand_ins = dict(zip(characters, self._stand_ins(text), strict=False))
        spelt = [(self._spell(stand_in), self._spell(character)) for character, stand_in in stand_ins.items()]
        return spelled.sub(lambda match: stand_ins[match[0]], text), spelt

    def encode_many(self, texts: Sequence[str], reserved: Collection[int] = ()) -> list[list[int]]:
        """Ids of many texts at once, as :meth:`encode` gives them.

        Args:
            texts: any text.
            reserved: numbers of the texts whose reserved strings are the reserved tokens.
        """
        if not texts:
            return []
        patterns = (self._escapes_none if index in reserved else self._escapes_all for index in range(len(texts)))
        written, spelt = zip(*map(self._stood_in, texts, patterns), strict=True)
        encoded: list[list[int]] = self._processor.encode(list(written), num_threads=1)
        return [_replace_all(ids, own) for ids, own in zip(encoded, spelt, strict=True)]

    def spelled(self, ids: Sequence[int], place: float) -> list[int]:
        """Ids with one of them spelt in bytes, as characters are that no piece has; unchanged where it is reserved.

        Args:
            ids: of a text.
            place: which one, as a share of the sequence, from 0 to below 1.
        """
        index = int(place * len(ids))
        if not ids or self._is_special(ids[index]) or (piece := self._pieces[ids[index]]) in self._reserved:
            return list(ids)
        word = piece.removeprefix(BOUNDARY)
        if not word or (word != piece and BOUNDARY not in self._ids):
            return list(ids)
        boundary = [self._ids[BOUNDARY]] if word != piece else []
        letters = [byte for character in word for byte in self._spell(character)]
        return [*ids[:index], *boundary, *letters, *ids[index + 1 :]]

    def marks(self, ids: Iterable[int]) -> bool:
        """Whether there is a placeholder among ids."""
        return not self._placeholders.isdisjoint(ids)

    def decode_many(self, ids: Sequence[list[int]]) -> list[str]:
        """Texts of many sequences that hold neither padding nor begin nor end: what :meth:`encode` gave, undone."""
        return list(self._processor.decode(ids, num_threads=1)) if ids else []

    @property
    def has_merges(self) -> bool:
        """Whether it is a BPE model: its scores are the ranks of its merges, those of a unigram model are not whole."""
        return all(score.is_integer() for _, _, score in self.mergeable())

    def mergeable(self) -> list[tuple[int, str, float]]:
        """Id, text and score of every piece that is neither reserved nor a byte: characters, and what merges make."""
        normal = [
            token
            for token in range(self.size)
            if not self._is_special(token) and self._pieces[token] not in self._reserved
        ]
        return [(token, self._pieces[token], float(self._processor.get_score(token))) for token in normal]

    def _is_special(self, token: int) -> bool:
        processor = self._processor
        return bool(processor.is_control(token) or processor.is_unknown(token) or processor.is_byte(token))

    def decode(self, ids: Sequence[int]) -> str:
        kept = [self._checked(token) for token in ids]
        return str(self._processor.decode([token for token in kept if token not in (PAD, BOS, EOS)]))

    def _spell(self, character: str) -> list[int]:
        return [self._bytes[value] for value in character.encode()]

    def _stand_ins(self, text: str) -> Iterator[str]:
        taken = self._known_characters | set(text)
        private = chain(range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
        return (chr(code) for code in private if chr(code) not in taken)


def train_sentencepiece(
    lines: Iterable[str],
    *,
    size: int,
    model_type: str = "bpe",
    languages: Sequence[str],
    seed: int,
    further: Sequence[str] = (),
    required: str = "",
) -> SentencePieceVocabulary:
    """Train a vocabulary on normalised lines (see ``models.text.normalise``); the same input gives the same bytes.

    Args:
        lines: the training text, one sentence each; may already contain reserved placeholders.
        size: pieces in all, the 4 special, 256 byte and reserved pieces included.
        model_type: ``"bpe"`` or ``"unigram"``.
        languages: codes that get a tag, ``("de", "en")``.
        seed: of the trainer's own sampling.
        further: other reserved pieces that the vocabulary is to have, ``models.vocabulary.EDITS``.
        required: characters that are pieces however rare they are (``models.vocabulary.alphabets``).

    Raises:
        VocabularyError: the text is too small for ``size``, ``size`` too small for the text, or a code is malformed.
    """
    if model_type not in ("bpe", "unigram"):
        raise VocabularyError(f"model_type must be 'bpe' or 'unigram', but is {model_type!r}")
    sentencepiece.set_random_generator_seed(seed)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(part for line in lines if line and "\x00" not in line for part in in_parts(line)),
            model_writer=model,
            vocab_size=size,
            model_type=model_type,
            byte_fallback=True,
            character_coverage=0.9995,
            required_chars=required,
            split_digits=True,
            normalization_rule_name="identity",  # NFC is ours, so that both sides see the same text
            remove_extra_whitespaces=False,  # otherwise runs of spaces would not come back
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            user_defined_symbols=[*PLACEHOLDERS, *dict.fromkeys(language_piece(code) for code in languages), *further],
            num_threads=1,  # the merges must not depend on the machine
            minloglevel=2,
        )
    except RuntimeError as error:
        raise VocabularyError(f"cannot train a vocabulary of {size} pieces: {_told(str(error))}") from error
    return SentencePieceVocabulary(model.getvalue())


def in_parts(line: str) -> Iterator[str]:
    """A line as the trainer reads it whole: what is longer in UTF-8 it leaves out without a word.

    A line is parted at spaces, since every word is counted alone, and where there is none between characters.
    """
    while len(line) > _LONGEST // 4 and len(line.encode()) > _LONGEST:
        head = line.encode()[:_LONGEST].decode(errors="ignore")
        space = head.rfind(" ")
        end = space if space > 0 else len(head)
        yield line[:end]
        line = line[end + (space > 0) :]
    if line:
        yield line


def _told(error: str) -> str:
    """What sentencepiece found wrong, in words, without the places in its source code."""
    if most := re.search(r"too high \(\d+\)\. Please set it to a value <= (\d+)", error):
        return f"the text gives at most {most[1]}: lower size, or add text"
    if least := re.search(r"smaller than required_chars\. \d+ vs (\d+)", error):
        return f"its characters, bytes and reserved pieces alone are {least[1]}: raise size"
    if "sentences_.empty()" in error:
        return "the text is empty"
    return re.sub(r"^[A-Z_]+: (?:\S+\.cc\(\d+\) )?(?:\[.*\] )?", "", error).strip() or "sentencepiece does not say why"


def _first_characters(reserved: Sequence[str]) -> re.Pattern[str]:
    """Matches the boundary mark, and the first character of each of ``reserved``."""
    heads = [f"{re.escape(piece[0])}(?={re.escape(piece[1:])})" for piece in reserved]
    return re.compile("|".join([BOUNDARY, *heads]))


def _replace_all(ids: list[int], spelt: Sequence[_Spelling]) -> list[int]:
    for old, new in spelt:
        ids = _replace(ids, old, new)
    return ids


def _replace(ids: list[int], old: list[int], new: list[int]) -> list[int]:
    replaced: list[int] = []
    position = 0
    while position < len(ids):
        found = ids[position : position + len(old)] == old
        replaced += new if found else ids[position : position + 1]
        position += len(old) if found else 1
    return replaced
