"""The contract every architecture fulfils. Search, training, export and the service know nothing else of a model.

Shape suffixes: B sentences, S source positions, T target positions, K rows of a sentence, R = B x K rows
(sentence-major), D features, V target vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tandem.models.architectures.records import Memory, State

M = TypeVar("M", bound=Memory)
S = TypeVar("S", bound=State)

Update = Mapping[str, tuple[Tensor, ...]]
Weights = dict[str, Tensor]
NARROW = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True, eq=False)
class Padded:
    """A batch of sequences: ids B x S (0 where padded) or feature vectors B x S x D, and lengths B."""

    values: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """B x S, true where there is a symbol."""
        return torch.arange(self.values.size(1), device=self.lengths.device) < self.lengths[:, None]


class ModelConfig(Protocol):
    """What every architecture's configuration has in common; the rest is the architecture's own."""

    @property
    def source_vocabularies(self) -> tuple[int, ...]:
        """Types of each source's vocabulary (0 for feature matrices)."""

    @property
    def target_vocabulary(self) -> int:
        """Types of the target vocabulary."""


def feature_widths(config: ModelConfig) -> tuple[int, ...]:
    """Per source the width of its feature vectors, 0 where it is text."""
    return tuple(getattr(config, "features", ())) or (0,) * len(config.source_vocabularies)


def max_positions(config: ModelConfig) -> int | None:
    """The longest sequence that the model has positions for; None where its architecture has no such bound."""
    positions: int | None = getattr(config, "max_positions", None)
    return positions


class Seq2SeqModel(nn.Module, ABC, Generic[M, S]):
    """An encoder-decoder. Teacher forcing (:meth:`score`) and decoding (:meth:`step`) share :meth:`_advance`.

    Attributes:
        recurrent: whether a position needs what was made at the one before it. Then how often a program loops depends
            on the number of positions, and the alignment is exported one position at a time.
        trainable: whether it is trained as a whole; a model made of trained models is not.
    """

    recurrent: bool = False
    trainable: bool = True
    config: ModelConfig

    @abstractmethod
    def encode(self, sources: tuple[Padded, ...]) -> M:
        """Derive from the sources (one per encoder) all that decoding needs, once per sentence."""

    @abstractmethod
    def init_state(self, memory: M, rows_per_sentence: int) -> S:
        """The state before the first target symbol (BOS), for R = B x ``rows_per_sentence`` rows."""

    @abstractmethod
    def _advance(self, target_RT: Tensor, state: S, memory: M, weights: Weights | None) -> tuple[Tensor, Update]:
        """Run T new positions of each row.

        Returns the features R x T x D that the output layer projects, and the update that
        :meth:`models.architectures.records.State.advance` applies (its pool entries R x T x ...). Where ``weights`` is
        given, every cross-attention leaves its weights R x T x S there, named by path, layer and source.
        """

    @abstractmethod
    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        """Weight V x D and bias V of the output layer, as effective now (tied, weight-normalised or plain)."""

    @abstractmethod
    def parameter_parts(self) -> Mapping[str, int]:
        """Number of parameters by part; their sum is the model's total."""

    def decode(self, target_BT: Tensor, memory: M) -> Tensor:
        """Features B x T x D of every position under teacher forcing; the loss projects them in chunks."""
        features, _ = self._advance(target_BT, self.init_state(memory, 1), memory, None)
        return features

    def score(self, target_BT: Tensor, memory: M) -> Tensor:
        """Logits B x T x V of the symbol after each of ``target_BT`` (BOS first)."""
        return self.project(self.decode(target_BT, memory))

    def step(self, token_R: Tensor, state: S, memory: M) -> tuple[Tensor, S]:
        """Logits R x V (at least float32) after one more symbol per row, and the state that then holds."""
        features, update = self.advance_one(token_R, state, memory)
        sentences = next(tensor.size(0) for _, _, tensor in memory.tensors())
        logits = self.project(features)
        return logits if logits.dtype == torch.float64 else logits.float(), state.advance(update, sentences)

    def advance_one(self, token_R: Tensor, state: S, memory: M) -> tuple[Tensor, Update]:
        """One position of each row: features R x D and the update with pool entries R x ... ."""
        features, update = self._advance(token_R[:, None], state, memory, None)
        return features.squeeze(1), self._one_position(update, state)

    def _one_position(self, update: Update, state: S) -> Update:
        """The update of one new position with pool entries R x ... instead of R x 1 x ...."""
        pools = {item.name for _, item, _ in state.tensors() if item.metadata["kind"] == "pool"}
        return {name: tuple(x.squeeze(1) for x in new) if name in pools else new for name, new in update.items()}

    def attention(self, target_RT: Tensor, memory: M) -> Weights:
        """Every cross-attention's weights R x T x S under teacher forcing, named by path, layer and source."""
        sentences = next(tensor.size(0) for _, _, tensor in memory.tensors())
        weights: Weights = {}
        self._advance(target_RT, self.init_state(memory, target_RT.size(0) // sentences), memory, weights)
        return weights

    def alignment(self, target_RT: Tensor, memory: M) -> tuple[Tensor, ...]:
        """One soft alignment R x T x S per source: the cross-attentions averaged over layers, heads and paths."""
        return self.aligned(self.attention(target_RT, memory))

    def aligned(self, weights: Weights) -> tuple[Tensor, ...]:
        """What the alignment is, given all attention weights: per source the mean of those named after it."""
        return mean_by_source(weights, len(self.config.source_vocabularies))

    def align_one(self, token_R: Tensor, state: S, memory: M) -> tuple[tuple[Tensor, ...], Update]:
        """One position of :meth:`alignment`: R x S per source, and the update with pool entries R x D."""
        weights: Weights = {}
        _, update = self._advance(token_R[:, None], state, memory, weights)
        return tuple(mean.squeeze(1) for mean in self.aligned(weights)), self._one_position(update, state)

    def project(self, features: Tensor) -> Tensor:
        """Logits ... x V of features ... x D, at least float32 whatever the weights' type."""
        weight, bias = self.output_parameters()
        if weight.dtype in NARROW:
            return project_wide(features, weight, bias)
        return F.linear(features, weight, bias)

    def prepare_for_inference(self) -> None:
        """Fold away what only training needs (weight normalisation, dropout). Not reversible."""
        self.eval()
        for module in self.modules():
            fold = getattr(module, "fold", None)
            if callable(fold):
                fold()


def project_wide(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Logits ... x V in float32 of features and weights V x D in 16 bits: bfloat16 logits near 8 would lie 0.06 apart.

    On CUDA the product of 16-bit matrices is written as it was summed; elsewhere they are widened first.
    """
    if features.is_cuda:
        flat = torch.mm(features.reshape(-1, features.size(-1)), weight.mT, out_dtype=torch.float32)
        logits = flat.reshape(*features.shape[:-1], weight.size(0))
        return logits if bias is None else logits + bias
    return F.linear(features.float(), weight.float(), None if bias is None else bias.float())


def mean_by_source(weights: Weights, sources: int) -> tuple[Tensor, ...]:
    """For each source the mean R x T x S of the attentions named after it (``decoder.3.source0``)."""
    own = ([x for name, x in weights.items() if name.endswith(f".source{k}")] for k in range(sources))
    return tuple(torch.stack(named).mean(0) for named in own)


def count_parameters(*modules: nn.Module | nn.Parameter | None) -> int:
    """Parameters of the given modules, each shared tensor counted once."""
    seen: dict[int, int] = {}
    for module in modules:
        if isinstance(module, nn.Parameter):
            seen[id(module)] = module.numel()
        elif module is not None:
            seen.update({id(p): p.numel() for p in module.parameters()})
    return sum(seen.values())
