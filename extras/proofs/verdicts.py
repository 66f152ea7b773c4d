"""What a proof compares and what it finds: plain records, their form for a manifest, and a table for a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tandem.models.config import to_mapping


@dataclass(frozen=True, slots=True)
class ProofSettings:
    """How much is compared, and what passes.

    Attributes:
        sentences: decoded by every runtime, ``long`` of them of at least ``long_tokens`` tokens (joined if need be).
        beams: beam sizes.
        batches: batch sizes, each with each beam size.
        gap: difference of float64 scores up to which another hypothesis is a tie.
        exceptions: largest share of results that differ by more, because a tie inside the beam went the other way.
        held_out: most pairs of the held-out set.
        loss: largest loss of BLEU or ROUGE-1 points by 8 bits.
    """

    sentences: int = 200
    long: int = 20
    long_tokens: int = 60
    beams: tuple[int, ...] = (1, 5, 8)
    batches: tuple[int, ...] = (1, 7, 32)
    gap: float = 1e-4
    exceptions: float = 0.005
    held_out: int = 1000
    loss: float = 0.5


STANDARD = ProofSettings()


@dataclass(frozen=True, slots=True)
class Difference:
    """A best hypothesis that is not PyTorch's; ``gap`` is PyTorch's float64 score minus this one's."""

    sentence: int
    beam: int
    batch: int
    gap: float
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class ExactProof:
    """One runtime of full precision against PyTorch float32.

    Attributes:
        compared: best hypotheses compared: sentences x beam sizes x batch sizes.
        identical: those with PyTorch's tokens.
        ties: those that float64 scores within the gap.
        exceptions: the others.
        score_error: largest difference of the score of one and the same hypothesis.
    """

    runtime: str
    compared: int
    identical: int
    ties: int
    exceptions: tuple[Difference, ...]
    score_error: float
    seconds: float
    passed: bool


@dataclass(frozen=True, slots=True)
class QuantisedProof:
    """One runtime of low precision against float32, on the held-out set with the bundle's own decoding options.

    Attributes:
        metric: BLEU or ROUGE-1; empty without references.
        value, float32_value: in points of 100.
        sentences: decoded.
        identical: share with float32's tokens.
        rescored: mean over sentences of the score per token that float32 gives to these hypotheses, minus that of its
            own; around 0 the two are equally likely.
        same_in_batches: share whose tokens and scores are bit-equal alone and in a batch of the largest size.
    """

    runtime: str
    metric: str
    value: float
    float32_value: float
    sentences: int
    identical: float
    rescored: float
    same_in_batches: float
    seconds: float
    passed: bool


@dataclass(frozen=True, slots=True)
class Proof:
    """What was compared and what came of it; :meth:`mapping` is what the manifest holds."""

    passed: bool
    sentences: int
    long_sentences: int
    beams: tuple[int, ...]
    batches: tuple[int, ...]
    exact: tuple[ExactProof, ...]
    quantised: tuple[QuantisedProof, ...]

    def mapping(self) -> dict[str, Any]:
        """The proof as plain values."""
        plain: dict[str, Any] = to_mapping(self)
        return plain


def proof_table(proof: Proof) -> str:
    """The proof as text for a terminal."""
    beams, batches = (", ".join(map(str, sizes)) for sizes in (proof.beams, proof.batches))
    text = [
        f"{proof.sentences} sentences, {proof.long_sentences} of them long; beams {beams}; batches {batches}",
        f"{'runtime':24} {'compared':>9} {'identical':>10} {'ties':>5} {'differ':>7} {'score error':>12}",
    ]
    for one in proof.exact:
        text.append(
            f"{one.runtime:24} {one.compared:9} {one.identical:10} {one.ties:5} {len(one.exceptions):7} "
            f"{one.score_error:12.1e}  {_verdict(one.passed)}"
        )
        text += [
            f"    sentence {d.sentence}, beam {d.beam}, batch {d.batch}: {d.gap:+.4f} in float64"
            for d in one.exceptions
        ]
    for q in proof.quantised:
        metric = f"{q.metric} {q.value:.2f} (float32 {q.float32_value:.2f})" if q.metric else "no references"
        text.append(
            f"{q.runtime:24} {q.sentences} held-out sentences: {metric}; {q.identical:.1%} identical; "
            f"float32 finds them {q.rescored:+.4f} a token; bit-equal in batches {q.same_in_batches:.1%}  "
            f"{_verdict(q.passed)}"
        )
    return "\n".join([*text, f"proof {'passed' if proof.passed else 'FAILED'}"])


def _verdict(passed: bool) -> str:
    return "ok" if passed else "FAILED"
