"""Gettext catalogues: messages without a translation, or with a fuzzy one, are translated.

Finished translations stay, unless the catalogue says that it is in another language than is asked for: then all are
new. Of plural forms the first is the singular's translation and the others the plural's; a language with one form has
the plural's. A template, and a catalogue of another language, gets as many as the language has, where its rule is known
here. Entries are marked ``fuzzy`` where people must look: more than two forms, and messages whose unnumbered
placeholders changed places. Comments, references, order and obsolete entries come back byte for byte.

Where most messages are keys (``home.title``), their translations are the text: those of a catalogue in another language
are translated, and what has none yet stays empty.

Read here and not by polib, which writes every entry anew: wrapped otherwise, and without what it does not know.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tandem.extras.files.bounds import FileRefused, Segment, SourceFile
from tandem.extras.files.formats.encoding import ENCODINGS, Text, read_text
from tandem.extras.files.formats.passages import (
    Following,
    Part,
    Parts,
    Passage,
    is_prose,
    message,
    segments_of,
    text_format,
)
from tandem.service.text.languages import bare_code, base_code

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_STATEMENT = re.compile(
    rf"""(?P<mark>[ \t]*(?P<name>msgctxt|msgid_plural|msgid|msgstr(?:\[\d\d?\])?)[ \t]*)
    (?P<string>{_STRING}(?:[ \t]*\n[ \t]*{_STRING})*)(?P<end>[ \t]*(?:\n|\Z))""",
    re.VERBOSE,
)
_BETWEEN = re.compile(r"(?:[ \t]*(?:#.*)?(?:\n|\Z))*")
_OBSOLETE = "\n#~"  # begins a line of an entry that stands in front, with flags of its own
_FLAGS = re.compile(r"^#,(.*)\n", re.MULTILINE)
_PREVIOUS = re.compile(r"^#\|.*\n", re.MULTILINE)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_WRITTEN = str.maketrans({value: f"\\{letter}" for letter, value in (_ESCAPES | {"\\": "\\", '"': '"'}).items()})
_ARGUMENT = re.compile(r"%(?!\d+\$|\(|%)[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh?|ll?|[Lzjt])?[A-Za-z@](?!\w)|\{\}")
_LANGUAGE = re.compile(r"(Language:[ ]?)([^\\\"\n]*)")
_NAMED = re.compile(rb"charset=([A-Za-z0-9_.:-]{1,40})")
_HEAD = 4096  # bytes in which a catalogue names its encoding
_CHARSET = re.compile(r"charset=([^\\\"\s;]+)")
_PLURALS = re.compile(r"""(Plural-Forms:[ ]?)((?:[^\\"\n]|"[ \t]*\n[ \t]*")*)""")
_FORM = re.compile(r"msgstr(?:\[\d+\])?")
_SLAVIC = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"
_RULES = {  # as gettext's manual lists them
    "nplurals=1; plural=0;": "ja ko th vi zh-hans zh-hant",
    "nplurals=2; plural=(n != 1);": "bg ca da de el en eo es et eu fi gl he hu id it nb nl nn pt sq sv sw tr",
    "nplurals=2; plural=(n > 1);": "fr pt-br",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=3; plural=(n==1 ? 0 : n==2 ? 1 : 2);": "ga",
    "nplurals=3; plural=(n==1 ? 0 : (n==0 || (n%100>0 && n%100<20)) ? 1 : 2);": "ro",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);": "lt",
    f"nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : {_SLAVIC});": "hr ru sr sr-latn uk",
    f"nplurals=3; plural=(n==1 ? 0 : {_SLAVIC});": "pl",
    "nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2);": "cs sk",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "sl",
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);": "ar",
}
_RULE_OF = {code: rule for rule, codes in _RULES.items() for code in codes.split()}


def _document(source: SourceFile) -> tuple[Text, Parts]:
    text = replace(read_text(source, _encoding(source)), encoding="utf-8").unix(lone=False)
    return text, tuple(_parts(text.characters, source))


def _encoding(source: SourceFile) -> str:
    """The encoding that the catalogue says it is in. Raises FileRefused where it is not read."""
    with source.path.open("rb") as file:
        named = _NAMED.search(file.read(_HEAD))
    label = named[1].decode("ascii") if named else "utf-8"
    if label.lower() in ("charset", "ascii", "us-ascii"):
        return "utf-8"
    try:
        return ENCODINGS[codecs.lookup(label).name]
    except (LookupError, ValueError) as error:
        message = (
            f"the catalogue says that it is written in {label}, which is not read; convert it with msgconv -t UTF-8"
        )
        raise FileRefused.broken(message) from error


read, write = text_format(_document)
"""The catalogue with those messages translated, in UTF-8."""


def _parts(characters: str, source: SourceFile) -> Iterator[Part]:
    anew, forms = False, 0
    entries = list(_entries(characters))
    keyed = _has_keys(entries)
    for statements in entries:
        entry = _Entry.of(statements, forms, keyed)
        if statements[0].name == "msgid" and not statements[0].value:
            named = _LANGUAGE.search(entry.raw)
            language = named[2].strip() if named else ""
            anew = bool(language) and base_code(language) != base_code(source.target)
            header, forms = _with_plurals(_header(entry.raw, source.target), source.target, anew=anew)
            yield header
        else:
            yield entry if anew or not (keyed or entry.finished) else entry.raw


def _has_keys(entries: Sequence[Sequence[_Statement]]) -> bool:
    """Whether the messages of a catalogue are keys, and its texts the translations: most messages read like code."""
    messages = [one.value for statements in entries for one in statements if one.name == "msgid"]
    keys = [text for text in messages if text and not is_prose(text)]
    return 2 * len(keys) > sum(map(bool, messages))


def _entries(characters: str) -> Iterator[list[_Statement]]:
    """The statements of each entry; those without a name are what stands at the end."""
    place = 0
    statements: list[_Statement] = []
    while place < len(characters):
        between = _BETWEEN.match(characters, place)
        before = between[0] if between else ""
        found = _STATEMENT.match(characters, place + len(before))
        place = found.end() if found else place + len(before)
        if found is None and place < len(characters):
            line = characters.count("\n", 0, place) + 1
            raise FileRefused.broken(f"line {line} of the catalogue cannot be read; see what msgfmt -c says of it")
        statement = _Statement(before, *found.group("name", "mark", "string", "end")) if found else _Statement(before)
        if statements and statements[-1].name.startswith("msgstr") and not statement.name.startswith("msgstr"):
            yield statements
            statements = []
        statements.append(statement)
    if statements:
        yield statements


class _Statement(NamedTuple):
    """A statement as it was written, and what stands before it."""

    before: str
    name: str = ""
    mark: str = ""
    string: str = ""
    end: str = ""

    @property
    def value(self) -> str:
        joined = "".join(string[1:-1] for string in re.findall(_STRING, self.string))
        return _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), joined)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A message and its translation.

    Attributes:
        raw: as it was written.
        statements: as they were written, with as many forms as the target language has.
        texts: to translate: the message, and its plural where it has one.
        forms: of the translation, as they are now.
    """

    raw: str
    statements: Sequence[_Statement]
    texts: list[str]
    forms: list[str]

    @classmethod
    def of(cls, statements: Sequence[_Statement], count: int, keyed: bool = False) -> _Entry:
        """An entry.

        Args:
            statements: of it.
            count: forms that it is to have where it has a plural; 0 = as many as it has.
            keyed: whether its message is a key; what is translated is its translation then, if it has one.
        """
        raw = _joined(statements)
        given = [one.value for one in statements if one.name.startswith("msgstr")]
        if count and any(one.name == "msgid_plural" for one in statements):
            statements = _with_forms(statements, count)
        texts = [one.value for one in statements if one.name in ("msgid", "msgid_plural")]
        if keyed and any(texts):
            texts = [given[0], given[-1]] if len(texts) > 1 else given
        forms = [one.value for one in statements if one.name.startswith("msgstr")]
        return cls(raw, statements, texts[-1:] if len(forms) == 1 else texts, forms)

    @property
    def finished(self) -> bool:
        return all(self.forms) and "fuzzy" not in self._flags

    @property
    def _flags(self) -> list[str]:
        before = self.statements[0].before.rpartition(_OBSOLETE)[2]
        return [flag.strip() for line in _FLAGS.findall(before) for flag in line.split(",")]

    @property
    def _passages(self) -> list[Passage]:
        return [Passage(message(text)) for text in self.texts]

    def segments(self, limit: int) -> Iterator[Segment]:
        """Those of its texts."""
        return segments_of(self._passages, limit)

    def render(self, following: Following, limit: int) -> str:
        """The entry with its translations; without change where there is nothing to translate in it."""
        if not any(self.segments(limit)):
            return _joined(self.statements)
        new = [passage.render(following, limit) for passage in self._passages]
        moved = any(map(_has_moved, self.texts, new))
        comments = self._comments("fuzzy" if moved or len(self.forms) > 2 else "")
        written, number = [], 0
        for place, one in enumerate(self.statements):
            string = one.string
            if one.name.startswith("msgstr"):
                string = _string(new[min(number, len(new) - 1)])
                number += 1
            written += [one.before if place else comments, one.mark, string, one.end]
        return "".join(written)

    def _comments(self, fuzzy: str) -> str:
        """What stands before the entry, with that flag or without it."""
        *obsolete, before = self.statements[0].before.rpartition(_OBSOLETE)
        others = [flag for flag in self._flags if flag not in ("fuzzy", "")]
        flags = ", ".join(filter(None, (fuzzy, *others)))
        if bool(fuzzy) == ("fuzzy" in self._flags):
            return self.statements[0].before
        kept = before if fuzzy else _PREVIOUS.sub("", before)
        if _FLAGS.search(kept):
            first = iter([f"#, {flags}\n"] if flags else [])
            return "".join(obsolete) + _FLAGS.sub(lambda _: next(first, ""), kept)
        return f"{''.join(obsolete)}{kept}#, {flags}\n"


def _joined(statements: Sequence[_Statement]) -> str:
    return "".join("".join((one.before, *one[2:])) for one in statements)


def _with_forms(statements: Sequence[_Statement], count: int) -> list[_Statement]:
    """The statements with so many forms of the translation; one more is like the last."""
    given = [one._replace(end=one.end or "\n") for one in statements if one.name.startswith("msgstr")]
    forms = [*given, *[given[-1]._replace(before="")] * (count - len(given))][:count]
    forms = [one._replace(mark=_FORM.sub(f"msgstr[{number}]", one.mark)) for number, one in enumerate(forms)]
    return [*(one for one in statements if not one.name.startswith("msgstr")), *forms]


def _with_plurals(header: str, target: str, *, anew: bool) -> tuple[str, int]:
    """The header of a template, or of a catalogue that is made ``anew``, with the language's rule; and its forms.

    Where that is not known, or the catalogue is in that language already, it stays: 0.
    """
    found, rule = _PLURALS.search(header), _RULE_OF.get(bare_code(target)) or _RULE_OF.get(base_code(target))
    if found is None or rule is None or not (anew or "nplurals=INTEGER" in found[2]):
        return header, 0
    lines = '"\n"' * found[2].count("\n")  # as many as before
    return f"{header[: found.start()]}{found[1]}{rule}{lines}{header[found.end() :]}", int(rule[len("nplurals=")])


def _has_moved(text: str, translation: str) -> bool:
    """Whether the placeholders without a number, which programs fill in by their order, are not as they were."""
    return _ARGUMENT.findall(text) != _ARGUMENT.findall(translation)


def _header(raw: str, target: str) -> str:
    """The catalogue's header with the language that it is in from now on, and with the encoding that it is in."""
    charset = _CHARSET.search(raw)
    raw = _CHARSET.sub("charset=UTF-8", raw) if charset and "utf" not in charset[1].lower() else raw
    found = _LANGUAGE.search(raw)
    if found is None or base_code(found[2].strip()) == base_code(target):
        return raw
    return f"{raw[: found.start()]}Language: {target.replace('-', '_')}{raw[found.end() :]}"


def _string(text: str) -> str:
    """A text in quotes, one with line ends on as many lines."""
    lines = [f'"{line.translate(_WRITTEN)}"' for line in text.splitlines(keepends=True)]
    return "\n".join(lines if len(lines) == 1 else ['""', *lines])
