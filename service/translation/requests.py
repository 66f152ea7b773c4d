"""What a request says: the one description of it. The edge reads bodies as these records, all others make them.

Fields have the names, bounds and meanings that senders know (``service.api.schemas`` says how they stand in a body);
``Context`` has what only this process can say: whose request it is, and how a dialect wants its texts read.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, TypeAlias

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen, doc

from tandem.models.search import Sampling
from tandem.service.engine import Priority
from tandem.service.errors import InvalidOption, TooLarge
from tandem.service.text.blocks import MarkupOptions
from tandem.service.text.glossary import MAX_GLOSSARY, MAX_TERM, Glossary
from tandem.service.text.layout import Splitting

AUTO = "auto"
"""In the place of a language code: to be detected, text by text."""
MAX_OTHERS = 15
_SHORT, _FEW = 300, 3  # characters, texts
MAX_PROTECT = 100
Postprocess: TypeAlias = Callable[[str, str], str]
Recall: TypeAlias = Callable[[str, str, Collection[str]], Mapping[str, str]]
SummaryMethod: TypeAlias = Literal["auto", "model", "extract"]
PriorityName: TypeAlias = Literal["interactive", "bulk"]
TextFormat: TypeAlias = Literal["text", "html"]
Texts: TypeAlias = str | Sequence[str]
"""One text, or several: the reply has one or several then, too."""
Code: TypeAlias = Annotated[str, MaxLen(35)]
Others: TypeAlias = Annotated[Mapping[Code, Texts], MaxLen(MAX_OTHERS)]
Term: TypeAlias = Annotated[str, MinLen(1), MaxLen(MAX_TERM)]
Terms: TypeAlias = Annotated[dict[Term, Term], MaxLen(MAX_GLOSSARY)]


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
    fidelity: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is said of a request by whoever passes it on, and by no sender.

    Attributes:
        tag: names the request in logs.
        caller: whose turn it takes in the text threads; those of one caller wait for one another.
        recall: of languages and sentences that it is asked for, the translations that the caller's memory has for some;
            None = there is no memory. It may block.
        glossary: terms that are ready to be found, in the place of the request's.
        markup: how the texts are read, where they are other markup than the request's format says.
        splitting: where texts are split.
        postprocess: what is made of a sentence and its translation before that takes its place; None = nothing.
        likeliest: whether a text in a language that is not served is taken to be in the likeliest that is.
        rerank: whether hypotheses are ranked where the request leaves it open and there is a model for it.
    """

    tag: str = ""
    caller: str = ""
    recall: Recall | None = None
    glossary: Glossary | None = None
    markup: MarkupOptions | None = None
    splitting: Splitting = "lines"
    postprocess: Postprocess | None = None
    likeliest: bool = False
    rerank: bool = False


NO_CONTEXT = Context()


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """Draw tokens instead of searching for the most probable ones."""

    temperature: Annotated[float, Ge(0.01), Le(100), doc("Above 1 is more varied, below 1 less.")] = 1.0
    top_k: Annotated[int, Ge(0), doc("Draw from the k most probable tokens; 0 = from all.")] = 0
    top_p: Annotated[float, Gt(0), Le(1), doc("Draw from the tokens that together reach p.")] = 1.0
    seed: Annotated[int | None, Ge(0), Lt(1 << 63), doc("Makes the draw repeatable.")] = None

    def options(self) -> Sampling:
        """As the search takes it; without a seed every time with another one."""
        seed = secrets.randbits(31) if self.seed is None else self.seed
        return Sampling(self.temperature, self.top_k, self.top_p, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeRequest:
    """What all requests share. Of options that are None the bundle's values hold, of ``timeout`` the server's."""

    q: Annotated[Texts, doc("The text or texts; `text` is an alias of `q`.")]
    alternatives: Annotated[
        int,
        Ge(0),
        doc("Further hypotheses, best first; at most beam_size - 1; without one the beam is as wide as they need."),
    ] = 0
    details: Annotated[bool, doc("Adds `model`, `usage`, `time` and `details` to the reply.")] = False
    scores: Annotated[bool, doc("Adds log-probabilities; implies `details`.")] = False
    alignments: Annotated[
        bool,
        doc("Adds to each sentence the attention between its tokens and the words that it aligns; implies `details`."),
    ] = False
    model: Annotated[str | None, MaxLen(200), doc("Model, by alias or name; see GET /models.")] = None
    beam_size: Annotated[int | None, Ge(1), doc("Hypotheses searched at once; 1 = greedy.")] = None
    length_penalty: Annotated[float | None, Ge(0), Le(10), doc("p; the bundle fixes the form.")] = None
    coverage_penalty: Annotated[float | None, Ge(0), Le(10), doc("Weight of the coverage term.")] = None
    min_length: Annotated[int | None, Ge(0), doc("Target tokens of a sentence, at least.")] = None
    max_length: Annotated[int | None, Ge(1), doc("Target tokens of a sentence, at most.")] = None
    no_repeat_ngram_size: Annotated[int | None, Ge(0), Le(100), doc("No n-gram twice; 0 = off.")] = None
    prefix: Annotated[str | None, MaxLen(1000), doc("Text that the first sentence starts with.")] = None
    sampling: Annotated[SamplingOptions | None, doc("Draw instead of search.")] = None
    timeout: Annotated[float | None, Gt(0), doc("Seconds for the whole request; else the server's.")] = None
    priority: Annotated[PriorityName | None, doc("By size where not given.")] = None

    @property
    def texts(self) -> Sequence[str]:
        """The texts, also where it is one."""
        return listed(self.q)

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
    """Text to translate."""

    source: Annotated[Code, doc("Language code of the text; `auto` = detected, per text.")] = AUTO
    target: Annotated[Code, doc("Language code to translate into.")]
    others: Annotated[
        Others | None,
        doc(
            "The same text in further source languages, by language code, for models that read several at once "
            "(GET /languages lists their combinations); each a string or, where `q` is one, a list as long as `q`."
        ),
    ] = None
    format: Annotated[TextFormat, doc("`html`: the text nodes are translated and the markup is kept.")] = "text"
    glossary: Annotated[
        Terms,
        doc(
            "Source term -> target term, enforced: the longest match counts, at word boundaries. The reply's "
            "`glossary` says which were found in the translation."
        ),
    ] = field(default_factory=dict)
    protect: Annotated[
        list[Term],
        MaxLen(MAX_PROTECT),
        doc(
            "What is to come back as it was: `placeholders`, `urls`, `emails`, `numbers`, `regex:` and an expression "
            "in RE2's syntax, or any other string literally (after `literal:` whatever it is). The reply's `protected` "
            "says what was kept."
        ),
    ] = field(default_factory=list)
    pivot: Annotated[
        bool,
        doc(
            "Whether a pair that no model translates may go through a third language, where two do; the reply's `via` "
            "names that."
        ),
    ] = True
    memory: Annotated[
        bool, doc("Whether sentences that the translation memory of the caller's key has are answered from it.")
    ] = True
    lexicon: Annotated[
        bool,
        doc(
            "Whether the bundle's lexicon, if it has one, translates words and short phrases that stand alone, and "
            "says how words in capitals are read."
        ),
    ] = True
    rerank: Annotated[
        bool | None,
        doc(
            "Whether the model of the other direction chooses among the hypotheses: better, and more than twice the "
            "work. An error where a pair has none; where not given the server's way."
        ),
    ] = None

    @property
    def refused(self) -> frozenset[str]:
        """What text stages are not to do, by the names of the request's fields for that."""
        return frozenset() if self.lexicon else frozenset({"lexicon"})

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The texts in each language."""
        others = {f"others.{code}": listed(texts) for code, texts in (self.others or {}).items()}
        return {"q": self.texts, **others}


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteditTask(DecodeRequest):
    """A text and its machine translation, which is to be corrected; languages where several models do that."""

    translation: Annotated[
        Texts, doc("The machine translation of `q`; a string or, where `q` is one, a list as long as `q`.")
    ]
    source: Annotated[Code | None, doc("Language code of the text, where several models post-edit.")] = None
    target: Annotated[Code | None, doc("Language code of the translation.")] = None

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The texts and their translations."""
        return {"q": self.texts, "translation": listed(self.translation)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeTask(DecodeRequest):
    """Text to summarize."""

    language: Annotated[
        Code | None,
        doc(
            "Language code of the text; where it is not given it is detected, per text, and a text in a language that "
            "no model summarizes is refused."
        ),
    ] = None
    sentences: Annotated[
        int | None, Ge(1), Le(1000), doc("Sentences of the summary, at most: it is cut at a sentence's end.")
    ] = None
    method: Annotated[
        SummaryMethod,
        doc(
            "What summarizes: a `model`; `extract`, the sentences of the text that say most of it, at most three where "
            "`sentences` is not given, in any language; `auto`, a model where one was made for such a text, or `model` "
            "names one, and else an extract. The fields of a model's search say nothing to an extract."
        ),
    ] = "auto"


def listed(texts: Texts) -> Sequence[str]:
    """Texts as a sequence, also where it is one text."""
    return [texts] if isinstance(texts, str) else texts


def check_size(request: DecodeRequest, limits: RequestLimits) -> int:
    """The characters of a request. Raises TooLarge or InvalidOption where it has too many characters or texts."""
    columns, count = request.columns, len(request.texts)
    if count > limits.max_texts:
        raise InvalidOption("q", f"may hold at most {limits.max_texts} texts", count)
    for name, texts in columns.items():
        if len(texts) != count:
            bound = f"must hold as many texts as q, which has {count}"
            raise InvalidOption(name, bound, len(texts))
    characters = sum(len(text) for texts in columns.values() for text in texts)
    most = limits.max_summary_characters if isinstance(request, SummarizeTask) else limits.max_characters
    if characters > most:
        raise TooLarge("characters", most, characters, "send it in several requests")
    return characters


def is_short(request: DecodeRequest, context: Context) -> bool:
    """Whether its texts are read and written sooner than a thread is woken for that: a sentence or two, as they stand.

    What may wait (a memory), or take long whatever the text's length (terms, expressions, markup, detection), is not.
    """
    if context.recall is not None or context.glossary is not None or context.markup is not None:
        return False
    if isinstance(request, TranslateTask):
        slow = request.glossary or request.protect or request.format != "text" or request.source.lower() == AUTO
        if slow or len(request.texts) > _FEW:
            return False
    return sum(len(text) for texts in request.columns.values() for text in texts) <= _SHORT


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
