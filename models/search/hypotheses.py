"""The records that go into a search and come out of it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tandem.models.errors import DecodingError, OptionError
from tandem.models.search.graphs import Array
from tandem.models.search.options import SearchOptions
from tandem.models.search.rounds import allowed_rounds


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output sentence.

    Attributes:
        tokens: target token ids without BOS and EOS.
        score: sum of the log-probabilities, EOS included.
        normalised: score, without the prefix's, after length and coverage penalties: what ranks hypotheses.
        finished: whether it ends with EOS; false only where every continuation was banned.
        token_scores: log-probability of each token, EOS included.
        attention: where the options ask for it, per source the weights with which each token was predicted, target
            steps (EOS included) x source tokens; hypotheses are compared without it.
    """

    tokens: tuple[int, ...]
    score: float
    normalised: float
    finished: bool
    token_scores: tuple[float, ...]
    attention: tuple[Array, ...] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """One sentence to decode.

    Attributes:
        id: names it in the batch.
        sources: per source, token ids ending with EOS (S) or features (S x D).
        options: its own options; only ``beam_size`` must be the batch's.
        shortlist: the target ids that it may use, rising, EOS among them; None = all.
    """

    id: Hashable
    sources: tuple[Array, ...]
    options: SearchOptions = field(default_factory=SearchOptions)
    shortlist: NDArray[np.int64] | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of each source, EOS included."""
        return tuple(map(len, self.sources))

    @property
    def graph(self) -> str:
        """The step graph that decodes it."""
        if self.options.sampling is not None:
            return "step_logits"
        return "step" if self.shortlist is None else "step_shortlist"


@dataclass(frozen=True, slots=True)
class Finished:
    """A sentence that left the batch with its hypotheses, best first, at most ``n_best``."""

    id: Hashable
    hypotheses: tuple[Hypothesis, ...]


class SentenceError(DecodingError):
    """Some sentences of a batch cannot go on; the batch is as it was before the call.

    Attributes:
        ids: the sentences at fault; once they are removed, the others can go on.
    """

    def __init__(self, message: str, ids: tuple[Hashable, ...]) -> None:
        self.ids = ids
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Counters:
    """What a batch has computed so far, and how much of it was padding.

    Attributes:
        steps: step graphs run, first steps included.
        rows, dead_rows: rows run, and those of them that held no hypothesis.
        source_cells, source_padding: source positions read by steps (sentences x length), and the padded ones.
        slot_cells, slot_padding: pool slots read by steps, and those that no row of the sentence sees.
    """

    steps: int = 0
    rows: int = 0
    dead_rows: int = 0
    source_cells: int = 0
    source_padding: int = 0
    slot_cells: int = 0
    slot_padding: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(
            self.steps + other.steps,
            self.rows + other.rows,
            self.dead_rows + other.dead_rows,
            self.source_cells + other.source_cells,
            self.source_padding + other.source_padding,
            self.slot_cells + other.slot_cells,
            self.slot_padding + other.slot_padding,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Admitted:
    """A sentence in the batch with its bounds, in target tokens without EOS, the rounds that it may go (0: any), and
    its shortlist.

    The list holds the prefix's and the required tokens and EOS, whether they were listed or not.

    Raises:
        OptionError: a suppressed, prefix or required token that the vocabulary does not have.
    """

    sentence: Sentence
    shortest: int
    longest: int
    rounds: int = 0
    shortlist: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, sentence: Sentence, *, vocabulary_size: int, eos: int) -> Admitted:
        for name in ("suppressed", "prefix", "required"):
            for token in getattr(sentence.options, name):
                if token >= vocabulary_size:
                    raise OptionError(name, f"token ids below {vocabulary_size}", token)
        # Lengths go by the longest text: how many vectors a matrix has says nothing of the target.
        texts = [source for source in sentence.sources if source.ndim == 1]
        lengths = [len(source) - int(source[-1] == eos) for source in texts] or [len(sentence.sources[0])]
        listed = sentence.shortlist
        if listed is not None:
            always = [eos, *sentence.options.prefix, *sentence.options.required]
            listed = np.union1d(listed, np.array(always, np.int64))
        rounds = allowed_rounds(sentence.options.max_rounds, sentence.sources)
        return cls(sentence, *sentence.options.bounds(max(lengths)), rounds, listed)


@dataclass(frozen=True, slots=True)
class Ended:
    """A hypothesis that left the beam: its tokens without EOS and the accumulated score after each token, EOS too."""

    tokens: tuple[int, ...]
    totals: tuple[float, ...]
    finished: bool = True
