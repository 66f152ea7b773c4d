"""What a form of files is read into, whatever it is: the same record for all, from which a bundle is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tandem.extras.importing.plan import Plan
from tandem.models.search import SearchOptions
from tandem.models.search.shortlist import Shortlist
from tandem.models.steps.numbers import BLOCKS, LEAST_BLOCKED
from tandem.models.vocabulary import ListedVocabulary
from tandem.models.vocabulary.listed import START

if TYPE_CHECKING:  # what is read here without PyTorch must not import it
    from tandem.extras.importing.tensors import Tensors
    from tandem.models.architectures.transformer import TransformerConfig

FILLERS = ("⟨unused", "⟨unnamed")
"""How types begin that have no piece: those of ours that fill up, and those of theirs that no list names."""

BIASES: Mapping[str, Any] = {
    **dict.fromkeys(("attention_bias", "hidden_bias", "output_bias"), True),
    **dict.fromkeys(("dropout", "attention_dropout"), 0.0),
}
"""Of our configuration what public models have: a bias everywhere, and no dropout, as nobody trains them here."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user says of a model that its files do not.

    Attributes:
        sources, targets: language codes; empty where the files are to say it.
        tags: the piece that is a language's tag, by code, where it cannot be guessed.
        ignored: fields of the configuration that do not matter.
    """

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Labels:
    """What is said of an imported model that its files do not hold.

    Attributes:
        licence: of the weights; empty where it is not known.
        url: where the files can be had.
        calibration: source text for the 8-bit graphs; built-in sentences where there is none.
        memory: bytes that may be used; None where nobody knows.
        overwrite: replace a bundle at the same path.
    """

    licence: str = ""
    url: str = ""
    calibration: Sequence[str] = ()
    memory: int | None = None
    overwrite: bool = False


UNLABELLED = Labels()


@dataclass(frozen=True, slots=True, eq=False)
class ForeignModel:
    """A model of another program, understood and checked as far as it can be without reading its weights.

    Attributes:
        form: of its files, in words.
        config: of our architecture.
        plan: how its weights become ours.
        tensors: theirs.
        beside: names of tensors that are not needed.
        files: that were read beside those of the weights.
        source, target: the vocabularies.
        sources, targets: language codes.
        tags: which sides begin with a language's tag: none (empty), as in ``Manifest.tags``.
        decoding: defaults of the search.
        task: that it does.
        shortlist: that comes with it, where one does.
    """

    form: str
    config: TransformerConfig
    plan: Plan
    tensors: Tensors
    beside: tuple[str, ...]
    files: tuple[Path, ...]
    source: ListedVocabulary
    target: ListedVocabulary
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    tags: Literal["", "target", "both"]
    decoding: SearchOptions
    task: Literal["translate", "summarize"] = "translate"
    shortlist: Shortlist | None = None


@dataclass(frozen=True, slots=True)
class Types:
    """The types of a vocabulary in our order.

    Attributes:
        rows: for each of our ids theirs; -1 for what only fills up.
        names: the pieces.
    """

    rows: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def output_rows(self) -> tuple[int, ...]:
        """The same without the type that decoding begins with, which is never written."""
        return tuple(-1 if name == START else row for row, name in zip(self.rows, self.names, strict=True))


def arranged(names: Sequence[str], *, pad: int | None, unk: int, start: int | None, eos: int) -> Types:
    """A vocabulary's types with padding, unknown, begin and end moved to our ids; all others keep their order.

    Decoding begins with a type of its own, which has the row of whatever theirs begins with: of padding or of the end,
    in public models. Large vocabularies are filled up to a size that the search can cut into blocks.

    Args:
        names: their pieces by id.
        pad, unk, start, eos: their ids; None for padding that has none, and for a beginning that is a vector of zeros.
    """
    others = [token for token in range(len(names)) if token not in (pad, unk, eos)]
    rows = [-1 if pad is None else pad, unk, -1 if start is None else start, eos, *others]
    own = ["⟨pad⟩" if pad is None else names[pad], names[unk], START, names[eos], *(names[token] for token in others)]
    missing = -len(rows) % BLOCKS[0] if len(rows) >= LEAST_BLOCKED else 0
    fillers = [f"{FILLERS[0]}{number}⟩" for number in range(missing)]
    return Types((*rows, *(-1 for _ in fillers)), (*own, *fillers))


def unnamed(size: int) -> list[str]:
    """Names of types of which nothing is known yet."""
    return [f"{FILLERS[1]}{number}⟩" for number in range(size)]
