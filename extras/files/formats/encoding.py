"""Text files as characters and back: UTF-8, with or without a byte-order mark, and UTF-16 and UTF-32 with one.

Other encodings are read where the file names one, and windows-1252 where its bytes leave little doubt: few letters
beyond ASCII, all of them of one western language and where such a language has them. Nothing else is guessed
(charset-normalizer would): a wrong guess about a legacy encoding reads as text, is translated, and goes unnoticed until
somebody misses the umlauts.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from sys import intern

from tandem.extras.files.bounds import FileRefused, SourceFile

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_OTHER_TYPES = (
    (b"PK\x03\x04", "a zip archive or an office document"),
    (b"%PDF-", "a PDF document"),
    (b"\xd0\xcf\x11\xe0", "an office document of the old kind"),
    (b"{\\rtf", "an RTF document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x7fELF", "a program"),
)
ENCODINGS = {
    "utf-8": "utf-8", "ascii": "cp1252", "iso8859-1": "cp1252", "cp1252": "cp1252", "iso8859-2": "iso8859-2",
    "cp1250": "cp1250", "iso8859-15": "iso8859-15", "cp1251": "cp1251", "koi8-r": "koi8-r", "gb2312": "gbk",
    "gbk": "gbk", "gb18030": "gb18030", "big5": "big5", "shift_jis": "shift_jis", "euc_jp": "euc_jp",
    "euc_kr": "euc_kr",
}  # fmt: skip
"""What is read where a file names it, and as what: browsers read the old western names as windows-1252."""
_LETTERS = tuple(
    frozenset(letters + letters.upper())
    for letters in (
        "äöüß", "àâæçéèêëîïôœùûüÿ", "áéíñóúüªº", "àèéìíòóùúªº", "áâãàçéêíóôõúüªº", "áèéêëïóöü", "åäöéü", "æøåéòóôü",
        "áéíóúýðþæö", "àçèéíïòóúü·",
    )
)  # fmt: skip
"""Beyond ASCII: of German, French, Spanish, Italian, Portuguese, Dutch, Swedish and Finnish, Danish and Norwegian,
Icelandic, Catalan."""
_SIGNS = frozenset("¡¿«»„“”‚‘’‹›–—…€£§°·•©®™½¼¾²³´×\u00a0")
_LETTER, _BEYOND = r"[^\W\d_]", r"[^\W\d_A-Za-zþÞðÐ]"  # Icelandic writes þ and ð beside any letter
# What letters of other encodings are read as, and western languages do not write. Of messages of translated programs,
# each alone in a file, 99 of 100 western ones are read, and one of 2,000 Cyrillic and Greek ones.
_MISREAD = re.compile(
    "|".join(
        (
            "(?<=[A-Za-z])[¹³¿¡¼¾´]|[¹³¼¾][A-Za-z]",
            f"(?<={_LETTER})(?<![nN])[¡¿„“”‚€£§°©®™½¼¾²³´×•ªº](?={_LETTER})",  # signs within words, but `nºs`
            f"{_BEYOND}{{3}}",
            f"(?<!{_LETTER})(?![äÄåÅ]){_BEYOND}{{2,}}(?!{_LETTER})",  # words; Finnish has the ending `:ää`
            "õ(?!e)|Õ(?!E)|ã(?![eos]|\\b)",
            "ç(?=[eèéêiìíîb-df-hj-np-tv-z])|Ç(?=[EÈÉÊIÌÍÎB-DF-HJ-NP-TV-Z])",
        )
    )
)
_MOST_LETTERS = 0.35  # of all letters that are not ASCII; French has up to a third in a sentence
_BINARY = re.compile("[\x00-\x08\x0e-\x19\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class Text:
    """A file's characters, and how they were written.

    Attributes:
        mark: the byte-order mark, or nothing.
        ends: of its lines, where ``characters`` has those of Unix in their places.
    """

    characters: str
    encoding: str = "utf-8"
    mark: bytes = b""
    ends: Sequence[str] = ()

    def unix(self, *, lone: bool = True) -> Text:
        """The text with line ends of Unix, until it is written; ``lone``: a carriage return alone is one too."""
        end = re.compile("\r\n?|\n" if lone else "\r?\n")
        ends = tuple(intern(found[0]) for found in end.finditer(self.characters))
        return replace(self, characters=end.sub("\n", self.characters), ends=ends)

    def with_ends(self, parts: Iterable[tuple[str, str]]) -> str:
        """The text as it is now, each line with the end that it had.

        Args:
            parts: all of ``characters``, piece by piece as it was and as it is now. A piece's new lines end like its
                last one, or like the line before where it had one line.
        """
        if len(set(self.ends)) < 2:
            whole = "".join(new for _, new in parts)
            return whole.replace("\n", self.ends[0]) if self.ends else whole
        found: list[str] = []
        done = 0
        for old, new in parts:
            own = self.ends[done : done + old.count("\n")] or self.ends[max(done - 1, 0) : max(done, 1)]
            done += old.count("\n")
            first, *lines = new.split("\n")
            found += [first, *chain.from_iterable(zip(chain(own, repeat(own[-1])), lines, strict=False))]
        return "".join(found)

    def bytes_of(self, characters: str, errors: str = "strict") -> bytes:
        """Other characters, written as the file was; in UTF-8 where that cannot hold them and ``errors`` is strict."""
        try:
            return self.mark + characters.encode(self.encoding, errors)
        except UnicodeEncodeError:
            return characters.encode()


def read_text(source: SourceFile, encoding: str = "utf-8") -> Text:
    """A file's text; ``encoding``: where there is no byte-order mark. Raises FileRefused, as ``text_of`` does."""
    return text_of(source.path.read_bytes(), source.ending, encoding)


def text_of(raw: bytes, name: str, encoding: str = "utf-8") -> Text:
    """The text that bytes are.

    Args:
        raw: of a file, or of a part of one.
        name: of the file's type, for messages.
        encoding: where there is no byte-order mark.

    Raises:
        FileRefused: in another encoding, or no text.
    """
    for mark, marked in _MARKS:
        if raw.startswith(mark):
            return Text(_decoded(raw[len(mark) :], marked, name), marked, mark)
    western = _western(raw) if encoding == "utf-8" else None
    return Text(western, "cp1252") if western is not None else Text(_decoded(raw, encoding, name), encoding)


def other_type(head: bytes) -> str | None:
    """What a file's first bytes say that it is, where that is a type of its own."""
    return next((what for magic, what in _OTHER_TYPES if head.startswith(magic)), None)


def _western(raw: bytes) -> str | None:
    """The text that bytes are in windows-1252, where they are no UTF-8 and it is plausible; else None."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        pass
    else:
        return None
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        return None
    letters = [sign for sign in text if sign.isalpha()]
    others = {sign for sign in text if not sign.isascii()} - _SIGNS
    plausible = any(others <= known for known in _LETTERS) and not _MISREAD.search(text) and not _BINARY.search(text)
    few = sum(not sign.isascii() for sign in letters) <= _MOST_LETTERS * len(letters)
    return text if plausible and few and letters and other_type(raw[:16]) is None else None


def _decoded(raw: bytes, encoding: str, name: str) -> str:
    found = other_type(raw[:16])
    if found:
        raise FileRefused.wrong_type(name, found)
    try:
        characters = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise FileRefused.broken(
            f"the file is not valid {encoding.upper()} at byte {error.start}; save it as UTF-8, or as UTF-16 with a "
            "byte-order mark"
        ) from error
    binary = _BINARY.search(characters)
    if binary:
        found = f"data that is no text (the character U+{ord(binary[0]):04X} at position {binary.start()})"
        raise FileRefused.wrong_type(name, found)
    return characters
