"""What the text service is asked for: plain records that every caller makes, and how large they may be.

Routes, dialects, file jobs and benchmarks make these; none of them knows how another one's callers write a request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from models.search import Sampling
from service.engine import Priority
from service.errors import InvalidOption, TooLarge
from service.text.glossary import Glossary
from service.text.layout import Splitting
from service.text.markup import MarkupOptions

AUTO = "auto"
"""In the place of a language code: to be detected, text by text."""
Postprocess: TypeAlias = Callable[[str, str], str]
Recall: TypeAlias = Callable[[str, str, Collection[str]], Mapping[str, str]]
SummaryMethod: TypeAlias = Literal["auto", "model", "extract"]
PriorityName: TypeAlias = Literal["interactive", "bulk"]
Rerank: TypeAlias = Literal["always", "possible", "never"]
"""Whether the model of the other direction ranks hypotheses: an error where there is none, or only where there is."""


class RequestLimits(Protocol):
    """What one request may amount to: the settings that the text service reads; ``Settings`` describes each."""

    max_characters: int
    max_summary_characters: int
    max_texts: int
    max_markup_depth: int
    max_markup_elements: int
    max_beam_size: int
    max_decoding_cost: int
    bulk_characters: int
    request_timeout: float
    summary_depth: int
    text_threads: int
    pivot: bool
    pivot_languages: tuple[str, ...]
    rerank: Literal["never", "bulk", "always"]
    stages: Literal["bundle", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeRequest:
    """What all requests share. Of options that are None the bundle's values hold, of ``timeout`` the server's.

    Attributes:
        texts: at least one.
        alternatives: further hypotheses, best first.
        details, scores, alignments: whether the answer says where sentences stand, how sure the model is of each token,
            and what aligns; either of the latter implies ``details``.
        model: by alias or name.
        prefix: text that the first sentence of each text starts with.
        sampling: draw instead of search.
        timeout: seconds for all of it.
        priority: None = by size.
        tag: names the request in logs.
        caller: whose turn it takes in the text threads; those of one caller wait for one another.
    """

    texts: Sequence[str]
    alternatives: int = 0
    details: bool = False
    scores: bool = False
    alignments: bool = False
    model: str | None = None
    beam_size: int | None = None
    length_penalty: float | None = None
    coverage_penalty: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    no_repeat_ngram_size: int | None = None
    prefix: str | None = None
    sampling: Sampling | None = None
    timeout: float | None = None
    priority: PriorityName | None = None
    tag: str = ""
    caller: str = ""

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """By field, the texts and what belongs to each of them: the same in further languages, or its translation."""
        return {"q": self.texts}

    @property
    def wants_details(self) -> bool:
        """Whether the answer says anything of sentences."""
        return self.details or self.scores or self.alignments

    def place(self, number: int, name: str = "q") -> str:
        """What errors call one of the texts: its field, and its number where there are several."""
        return f"{name}.{number}" if len(self.texts) > 1 else name


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateTask(DecodeRequest):
    """Texts to translate.

    Attributes:
        source, target: language codes; ``AUTO`` = the source is detected, text by text.
        others: by language code the same texts in further source languages.
        markup: how the texts are read, where they are markup; None = they are plain.
        glossary: source terms and their target terms; or these, ready to be found.
        likeliest: whether a text in a language that is not served is taken to be in the likeliest that is.
        protect: what is to come back as it was; see ``service.text.protect``.
        splitting: where texts are split.
        postprocess: what is made of a sentence and its translation before that takes its place; None = nothing.
        pivot: whether a pair that no model translates may go through a third language.
        memory: of the languages and sentences that it is asked for, the translations that the caller wants for some;
            None = there is none, or it is not to be used. It may block.
        refused: what text stages are not to do, by the names of the request's fields for that, such as ``lexicon``.
        rerank: None = the server's way.
    """

    target: str
    source: str = AUTO
    others: Mapping[str, Sequence[str]] = field(default_factory=dict)
    markup: MarkupOptions | None = None
    glossary: Mapping[str, str] | Glossary = field(default_factory=dict)
    likeliest: bool = False
    protect: Sequence[str] = ()
    splitting: Splitting = "lines"
    postprocess: Postprocess | None = None
    pivot: bool = True
    memory: Recall | None = None
    refused: frozenset[str] = frozenset()
    rerank: Rerank | None = None

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The texts in each language."""
        return {"q": self.texts, **{f"others.{code}": texts for code, texts in self.others.items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteditTask(DecodeRequest):
    """Texts and their machine translations, which are to be corrected; languages where several models do that."""

    translations: Sequence[str]
    source: str | None = None
    target: str | None = None

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The texts and their translations."""
        return {"q": self.texts, "translation": self.translations}


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeTask(DecodeRequest):
    """Texts to summarize.

    Attributes:
        language: of all of them; None = detected, text by text.
        sentences: of a summary, at most; None = as many as the model writes.
        method: a model, sentences of the text itself, or a model where one was made for such a text ("auto"): that a
            request names one says so.
    """

    language: str | None = None
    sentences: int | None = None
    method: SummaryMethod = "auto"


def check_size(request: DecodeRequest, limits: RequestLimits) -> int:
    """The characters of a request. Raises TooLarge or InvalidOption where it has too many characters or texts."""
    if len(request.texts) > limits.max_texts:
        raise InvalidOption("q", f"may hold at most {limits.max_texts} texts", len(request.texts))
    columns = request.columns
    for name, texts in columns.items():
        if len(texts) != len(request.texts):
            bound = f"must hold as many texts as q, which has {len(request.texts)}"
            raise InvalidOption(name, bound, len(texts))
    characters = sum(len(text) for texts in columns.values() for text in texts)
    most = limits.max_summary_characters if isinstance(request, SummarizeTask) else limits.max_characters
    if characters > most:
        raise TooLarge("characters", most, characters, "send it in several requests")
    return characters


def request_seconds(request: DecodeRequest, limits: RequestLimits) -> float:
    """The request's deadline. Raises InvalidOption where it asks for more than the server's."""
    longest = limits.request_timeout
    if request.timeout is not None and request.timeout > longest:
        raise InvalidOption("timeout", f"must be at most {longest}", request.timeout)
    return longest if request.timeout is None else request.timeout


def priority_of(characters: int, asked: PriorityName | None, bulk_characters: int) -> Priority:
    """The priority of a request: the one that it asks for, or by its characters."""
    bulk = characters > bulk_characters if asked is None else asked == "bulk"
    return Priority.BULK if bulk else Priority.INTERACTIVE
