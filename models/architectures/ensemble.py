"""Ensembles: models that share their vocabularies as one model, which predicts the mean of their probabilities.

Every member encodes the sources, keeps its own state and attends as it does alone; only the predictions meet. To
search, export and service an ensemble is a model like any other: its records hold the members' tensors side by side,
and one exported graph computes all members.

Shape suffixes: B sentences, R rows, T target positions, D features of all members side by side, V target vocabulary.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tandem.models.architectures.protocol import (
    ModelConfig,
    Padded,
    Seq2SeqModel,
    Update,
    Weights,
    feature_widths,
    max_positions,
)
from tandem.models.architectures.records import Memory, Record, State
from tandem.models.architectures.single import SINGLE, load_from, stored_keys
from tandem.models.config import bounded
from tandem.models.errors import ConfigError

AnyModel = Seq2SeqModel[Any, Any]
ARCHITECTURE = "ensemble"  # its name in the registry
SHARED = ("position", "history")  # kinds of state that all members have in common
VECTOR = 64  # more than any processor computes at once


@dataclass(frozen=True, slots=True)
class MemberConfig:
    """One model of an ensemble: a name of the registry, and that architecture's own keys."""

    architecture: str
    config: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnsembleConfig:
    """Configuration of :class:`Ensemble`.

    Attributes:
        source_vocabularies: types of each source's vocabulary, the same for every member.
        target_vocabulary: types of the target vocabulary, the same for every member.
        members: per model its ``architecture`` and its ``config``, whose vocabularies may be left out.
    """

    source_vocabularies: tuple[int, ...] = (0,)
    target_vocabulary: int = bounded(0, at_least=0)
    members: tuple[MemberConfig, ...] = ()

    def __post_init__(self) -> None:
        if not self.members:
            raise ConfigError("an ensemble needs at least one member")
        nested = [number for number, member in enumerate(self.members) if member.architecture == ARCHITECTURE]
        if nested:
            raise ConfigError(
                "; ".join(f"member {number} is an ensemble itself: name its members instead" for number in nested)
            )
        faults = []
        for number, config in enumerate(self.configs()):
            own = (tuple(config.source_vocabularies), config.target_vocabulary)
            if own != (self.source_vocabularies, self.target_vocabulary):
                shared = (self.source_vocabularies, self.target_vocabulary)
                faults.append(f"member {number} has the vocabularies {own} instead of the ensemble's {shared}")
            if feature_widths(config) != self.features:
                faults.append(f"member {number} reads features of the widths {feature_widths(config)}, not those of 0")
        if faults:
            raise ConfigError("; ".join(faults))

    def configs(self) -> tuple[ModelConfig, ...]:
        """The members' configurations. Raises ConfigError where one is wrong."""
        return tuple(_config(self, number) for number in range(len(self.members)))

    @property
    def features(self) -> tuple[int, ...]:
        """Per source the width of its feature vectors, 0 for text."""
        return feature_widths(_config(self, 0))

    @property
    def max_positions(self) -> int | None:
        """The longest sequence that all members have positions for; None = no bound."""
        bounds = [max_positions(config) for config in self.configs()]
        return min((bound for bound in bounds if bound is not None), default=None)


def _config(ensemble: EnsembleConfig, number: int) -> ModelConfig:
    shared = {
        "source_vocabularies": list(ensemble.source_vocabularies),
        "target_vocabulary": ensemble.target_vocabulary,
    }
    member = ensemble.members[number]
    keys = shared | stored_keys(member.architecture, member.config)
    return load_from(SINGLE, member.architecture, keys, f"members[{number}] config")


@dataclass(frozen=True, slots=True, eq=False)
class JointRecord(Record):
    """Records of several members as one: each of their fields under a name of its own, declared as they declare it.

    Attributes:
        kinds: the members' own records, in order.
    """

    kinds: ClassVar[tuple[type[Record], ...]] = ()

    @classmethod
    def of(cls, parts: Sequence[Record]) -> Self:
        """The members' records side by side; what they share is the first one's."""
        values = {item.name: getattr(parts[0], item.name) for item in _fields(type(parts[0]), shared=True)}
        for number, part in enumerate(parts):
            values |= {prefixed(number, item.name): getattr(part, item.name) for item in _fields(type(part))}
        return cls(**values)

    def parts(self) -> tuple[Any, ...]:
        """The members' records."""
        return tuple(self._part(number, kind) for number, kind in enumerate(self.kinds))

    def _part(self, number: int, kind: type[Record]) -> Record:
        values = {item.name: getattr(self, item.name) for item in _fields(kind, shared=True)}
        return kind(**values, **{item.name: getattr(self, prefixed(number, item.name)) for item in _fields(kind)})


def prefixed(number: int, name: str) -> str:
    """The name among all members' of what is one member's own."""
    return f"member{number}_{name}"


def join(parts: Sequence[Record]) -> JointRecord:
    """Members' memories, or their states, as one record."""
    return _joint(tuple(type(part) for part in parts)).of(parts)


@functools.cache
def _joint(kinds: tuple[type[Record], ...]) -> type[JointRecord]:
    fields = [
        (prefixed(number, item.name), item.type, dataclasses.field(metadata=item.metadata))
        for number, kind in enumerate(kinds)
        for item in _fields(kind)
    ]
    base = State if issubclass(kinds[0], State) else Memory
    return dataclasses.make_dataclass(
        f"Joint{base.__name__}", fields, bases=(JointRecord, base), namespace={"kinds": kinds},
        frozen=True, slots=True, eq=False,
    )  # fmt: skip


def _fields(kind: type[Record], *, shared: bool = False) -> list[dataclasses.Field[Any]]:
    """A record's own fields, or those that all members share."""
    return [item for item in dataclasses.fields(kind) if (item.metadata["kind"] in SHARED) == shared]


class Ensemble(Seq2SeqModel[Any, Any]):
    """Models side by side, whose probabilities are averaged.

    Args:
        config: of the members.
        members: the models themselves; freshly initialised ones where they are not given.
    """

    trainable = False
    config: EnsembleConfig

    def __init__(self, config: EnsembleConfig, members: Sequence[AnyModel] | None = None) -> None:
        super().__init__()
        self.config = config
        if members is None:
            pairs = zip(config.members, config.configs(), strict=True)
            members = [SINGLE[member.architecture][1](own) for member, own in pairs]
        self.members = nn.ModuleList(members)
        self.recurrent = any(member.recurrent for member in members)
        self._widths = [member.output_parameters()[0].size(1) for member in members]

    @property
    def _models(self) -> Iterator[AnyModel]:
        return (member for member in self.members if isinstance(member, Seq2SeqModel))

    def encode(self, sources: tuple[Padded, ...]) -> JointRecord:
        return join([member.encode(sources) for member in self._models])

    def init_state(self, memory: JointRecord, rows_per_sentence: int) -> JointRecord:
        pairs = zip(self._models, memory.parts(), strict=True)
        return join([member.init_state(part, rows_per_sentence) for member, part in pairs])

    def _advance(
        self, target_RT: Tensor, state: JointRecord, memory: JointRecord, weights: Weights | None
    ) -> tuple[Tensor, Update]:
        features, update = [], dict[str, tuple[Tensor, ...]]()
        for number, (member, own, part) in enumerate(zip(self._models, state.parts(), memory.parts(), strict=True)):
            looked: Weights | None = None if weights is None else {}
            x, new = member._advance(target_RT, own, part, looked)
            features.append(x)
            update |= {prefixed(number, name): tensors for name, tensors in new.items()}
            if weights is not None and looked is not None:
                weights |= {prefixed(number, name): weight for name, weight in looked.items()}
        return torch.cat(features, dim=-1), update

    def project(self, features: Tensor) -> Tensor:
        """The logarithm of the members' mean probability, ... x V: logits that need no further normalisation."""
        pairs = zip(self._models, features.split(self._widths, dim=-1), strict=True)
        return log_mean([torch.log_softmax(member.project(part), dim=-1) for member, part in pairs])

    def aligned(self, weights: Weights) -> tuple[Tensor, ...]:
        """The mean of the members' alignments."""
        alignments = []
        for number, member in enumerate(self._models):
            prefix = prefixed(number, "")
            alignments.append(
                member.aligned({k.removeprefix(prefix): w for k, w in weights.items() if k.startswith(prefix)})
            )
        return tuple(torch.stack(of_source).mean(0) for of_source in zip(*alignments, strict=True))

    def output_parameters(self) -> tuple[Tensor, Tensor | None]:
        """Raises ConfigError: each member has an output layer, the ensemble has none."""
        raise ConfigError("an ensemble has no output layer to train: train its members apart, then put them together")

    def parameter_parts(self) -> Mapping[str, int]:
        return {
            f"member{number}.{part}": count
            for number, member in enumerate(self._models)
            for part, count in member.parameter_parts().items()
        }

    def prepare_for_inference(self) -> None:
        self.eval()
        for member in self._models:
            member.prepare_for_inference()


def log_mean(parts: Sequence[Tensor]) -> Tensor:
    """``log(1/n sum_i exp(x_i))``, however small the probabilities are."""
    if len(parts) == 1:
        return parts[0]
    top = functools.reduce(torch.maximum, parts)
    mean = functools.reduce(torch.add, [torch.exp(part - top) for part in parts]) / len(parts)
    # Runtimes compute a logarithm by vector and what is left over by element, which rounds otherwise: without filling
    # up, a row's last digits would depend on how many rows follow.
    filled = F.pad(mean, (0, -mean.size(-1) % VECTOR), value=1.0)
    return top + torch.log(filled)[..., : mean.size(-1)]
