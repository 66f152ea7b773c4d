"""Where sentences end.

The rules are sentencex's (Wikimedia, MIT, Rust): maintained, offline, no model, abbreviation lists for some 240
languages with fallbacks, linear in time on hostile input, and it prefers two sentences in one piece to one in two.
Looked at and not taken: pysbd (unmaintained), blingfire (dormant, one rule set for all languages), sentence-splitter
(few languages, dormant), wtpsplit (better on unpunctuated text, but needs a model and a runtime of its own).

Where it divides what belongs together, the pieces are put together again: after abbreviations of German, English and
French that its lists lack, behind an apostrophe or before small letters, after German ordinals, within names such as
``System.Out``, and before closing brackets. In German, where it divides nothing before a small letter, a text is
divided there behind a whole word: as people type it without capitals, and before a link ("Das ist vorbei. weiter").
"""

from __future__ import annotations

import re
from itertools import accumulate, pairwise

import sentencex  # type: ignore[import-untyped]

from tandem.models.text import is_unread

_LOOKED_AT = 40  # characters at the end of a piece; more holds no abbreviation, and would cost time
# A lone initial or title ("M. Dupont", "J. Doe") is never a sentence of its own.
_INITIAL = re.compile(r"\W*[^\W\d_]\.\s*")
_LAST_WORD = re.compile(r"(?<![\w.-])([\w.-]+\.)\s*\Z")
_NAME, _INSIDE = re.compile(r"\w\.\Z"), re.compile(r"[A-Za-z0-9_-]")
_CLOSING = re.compile(r"[)\]}»”’‹‘]+(?:\s+|\Z)")

# What the library's lists lack and what stands before something else: never a sentence's end.
_NEVER_LAST = {
    "de": """abb. abs. abt. allg. anm. art.-nr. aufl. ausg. bd. bes. betr. bsp. bspw. dipl.-ing. ebd. einschl. entspr.
        evtl. exkl. fa. frl. geb. gem. gez. hd. hrsg. inh. inkl. insb. jew. kap. max. mind. staatl. svw. tab. tel. verh.
        zz. zzgl. ziff. überw.""",
    "en": """approx. ch. ed. eds. eq. eqs. est. figs. ft. incl. max. messrs. misc. ms. resp. tab. tbsp. tel. tsp.
        vol.""",
    "fr": """apr. art. av. bd. c.-à-d. dr. éd. env. i.e. m. max. me. mgr. min. mlle. mme. nb. op. pr. réf. st. ste.
        trad.""",
}
# What may end a sentence: the next one begins with a capital.
_SOMETIMES_LAST = {
    "de": """hbf. jh. okt. pkt. sek.""",
    "en": """a.m. b.a. m.d. p.m. ph.d.""",
    "fr": """avr. cit. déc. févr. j.-c. janv. juil. n. no. nos. nov. oct. qqch. qqn. sept.""",
}
_ALWAYS = {language: frozenset(words.split()) for language, words in _NEVER_LAST.items()}
_BEFORE_SMALL = {language: frozenset(words.split()) for language, words in _SOMETIMES_LAST.items()}

# "Mon. to Fri.": what goes on in small letters after one of four letters at most, with a capital or without a vowel.
_SHORT = re.compile(r"(?:[^\W\d_a-z][^\W\d_]{1,3}|[bcdfghj-np-tv-xz]{1,4})\.")
# "5 p.m. EST", "7 a.m. Tuesday".
_OF_HOURS = re.compile(r"[A-Z]{1,3}T\b|UTC\b|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b")
# "am 24.12. Heiligabend": a day and a month.
_DAY_AND_MONTH = re.compile(r"(?<![\w.])\d{1,2}\.\d{1,2}\.\s+\Z")
# "am 1. Mai", "das 19. Jahrhundert"; but "Er kam am 5. Sie ging."
_ORDINAL = re.compile(
    r"(?:(?<!\w)(?:am|an|im|in|beim|bis|vom|zum|zur|de[rmns]|die|das|ih[rn]\w*|sein\w*|mein\w*|unser\w*|jede\w*|und)"
    r"|,)\s+\d{1,3}\.\s+\Z",
    re.IGNORECASE,
)
_BEGINNING = re.compile(
    r"(?:Aber|Also|Am|An|Auch|Auf|Bei|Da|Dabei|Dafür|Damit|Danach|Dann|Das|Dem|Den|Denn|Der|Deshalb|Die|Dies\w*|Doch|Ein"
    r"|Eine\w*|Er|Es|Für|Hier|Ich|Ihr\w*|Im|In|Ja|Jetzt|Man|Mit|Nach|Nein|Nun|Nur|Oder|Sein\w*|Seit|Sie|So|Und|Von|Vor"
    r"|Wann|Warum|Was|Wenn|Wer|Wie|Wir|Wo|Zu|Zum|Zur)\b"
)


# Hardly an abbreviation ends so: of 75 found in 86,000 German lines 3 end no sentence, such as "ClsScenarioEdit. psm1".
_WHOLE_WORD = re.compile(
    r"(?<![\w.-])(?=[^\W\d_]{5,}\.)[^\W\d_]*(?:[eaio]|e[nrtsm]|ung|[^\W\d_sßz]t|ich|ig|isch|um|nd|ern|eln)\.[ \u00a0]+"
    r"(?=[a-zäöüß])"
)
# Before the one word that a text ends in a short one is whole, too, where no list has it ("Das ist Tee. mehr").
_BEFORE_LAST_WORD = re.compile(
    r"(?<![\w.-])(?=[^\W\d_]?[^\W\d_]?[aeiouäöüy])([^\W\d_]{3,4}\.)[ \u00a0]+(?=[a-zäöüß]+[.!?…]?\s*\Z)"
)
_BEFORE_SMALL_LETTER = re.compile(r"[a-zäöüß]\.[ \u00a0]+[a-zäöüß]")


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of one line, with the white space around them; their concatenation is ``text``.

    Args:
        text: one line of normalised text.
        language: code such as ``de`` or ``pt-BR``; an unknown one gets the rules of its fallback.
    """
    if not text:
        return []
    places = [place for place, character in enumerate(text) if not is_unread(character)]
    if len(places) < len(text):  # "3. Ja-nu-ar" with soft hyphens is a date
        ends = accumulate(map(len, split_sentences("".join(text[place] for place in places), language)))
        borders = [0, *(places[end] for end in ends if end < len(places)), len(text)]
        return [text[first:behind] for first, behind in pairwise(borders)]
    base = language.split("-")[0]
    pieces: list[str] = list(sentencex.segment(base, text))
    if "".join(pieces) != text:  # the library's promise, on which the layout rests
        return [text]
    found: list[str] = []
    for piece in pieces:
        if found and (closing := _closing(found[-1], piece)):
            found[-1], piece = found[-1] + piece[:closing], piece[closing:]
        if found and (not piece.strip() or _belongs(found[-1], piece, base)):
            found[-1] += piece
        else:
            found.append(piece)
    if base == "de" and _BEFORE_SMALL_LETTER.search(text):
        return [part for piece in found for part in _divided(piece)]
    return found


def _divided(piece: str) -> list[str]:
    """The parts of a German piece that each end in a whole word."""
    borders = [0, *(match.end() for match in _WHOLE_WORD.finditer(piece)), len(piece)]
    last = _BEFORE_LAST_WORD.search(piece, max(0, len(piece) - _LOOKED_AT))
    known = _ALWAYS["de"] | _BEFORE_SMALL["de"]
    if last and last[1].lower() not in known and not _is_abbreviation(last[1], "Das ist so.", "de"):
        borders.insert(-1, last.end())
    return [piece[first:behind] for first, behind in pairwise(borders)]


def _closing(before: str, piece: str) -> int:
    """Characters at a piece's beginning that close what was opened before."""
    match = None if before[-1:].isspace() else _CLOSING.match(piece)
    return match.end() if match else 0


def _belongs(before: str, piece: str, language: str) -> bool:
    """Whether a piece goes on with the sentence of the one before."""
    if _INITIAL.fullmatch(before):
        return True
    if _INSIDE.match(piece) and _NAME.search(before[-2:]):  # a name, or a space forgotten
        return True
    end = before[-_LOOKED_AT:]
    match = _LAST_WORD.search(end)
    word = match[1].lower() if match else ""
    if match and match.start() and end[match.start() - 1] in "'’" and _is_abbreviation(match[1], piece, language):
        return True
    if match and piece.lstrip()[:1].islower() and _SHORT.fullmatch(match[1]):
        return True
    small = piece.lstrip()[:1].islower() or piece.lstrip()[:1].isdigit()
    if word in _ALWAYS.get(language, ()) or (small and word in _BEFORE_SMALL.get(language, ())):
        return True
    if word in ("a.m.", "p.m.") and _OF_HOURS.match(piece):
        return True
    ordinal = language == "de" and (_ORDINAL.search(end) or _DAY_AND_MONTH.search(end))
    return bool(ordinal) and not _BEGINNING.match(piece)


def _is_abbreviation(word: str, piece: str, language: str) -> bool:
    """Whether the library's lists have a word, which they do not find behind an apostrophe ("l'art. 5")."""
    return len(list(sentencex.segment(language, f"{word} {piece[:_LOOKED_AT]}"))) == 1
