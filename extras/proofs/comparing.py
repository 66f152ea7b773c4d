"""An imported model beside transformers and CTranslate2: logits, hypotheses, and text cut into pieces."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import sentencepiece
import torch
from torch import Tensor

from tandem.extras.importing.model import ForeignModel
from tandem.extras.proofs.forms import Ct2Model
from tandem.extras.proofs.proof import Judge
from tandem.extras.proofs.shapes import BEAM
from tandem.extras.proofs.verdicts import STANDARD
from tandem.extras.shared.sentences import proof_sentences
from tandem.models.architectures.protocol import Padded
from tandem.models.architectures.transformer import Transformer
from tandem.models.search import Hypothesis, SearchOptions, translate_batch
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.vocabulary import BOS, EOS, TaggedVocabulary, Vocabulary

_LONGEST = 24  # tokens of a hypothesis
_LENGTHS = (3, 5, 8, 12, 18)  # of sources
_PAIRS = 15  # of which logits are compared
_BATCH = 16  # sources that ``generate`` gets at once


def varied_lines(count: int) -> list[str]:
    """Words of two languages, numbers, marks, scripts, white space and what looks like special pieces."""
    rng = random.Random(5)
    words = [word for language in ("en", "de") for line in proof_sentences(language)[:40] for word in line.split()]
    odd = ["12,5", "3.14", "http://a.b/c?d=e", "naïve", "ＡＢＣ", "ﬁ", "½", "日本語", "Привет", "مرحبا", "🙂"]
    odd += ["👩‍👩‍👧", "e\u0301", "\t", "  ", "\u00a0", "\u200b", "▁", "<s>", "{n}", "«", "»", "…", "-", "''", "&amp;"]
    odd += ["x" * 60, "ẞ", "İ"]
    lines = []
    for _ in range(count):
        chosen = [rng.choice(odd) if rng.random() < 0.2 else rng.choice(words) for _ in range(rng.randint(1, 20))]
        lines.append(rng.choice(("", " ", "")) + rng.choice((" ", " ", "  ", "")).join(chosen))
    return lines


@dataclass(frozen=True)
class Compared:
    """A model as it was published, and as it was imported.

    Attributes:
        read: what was imported.
        ours: with its weights.
        published: the library's.
    """

    read: ForeignModel
    ours: Transformer
    published: Any

    @cached_property
    def known(self) -> list[int]:
        """Their id of each of ours; -1 = none."""
        made = self.read.plan["target_embedding"].rows
        assert made is not None
        return list(made)

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self.ours)

    @cached_property
    def options(self) -> SearchOptions:
        """A search that ends soon."""
        tag = (self.read.target.language_tag(self.read.targets[0]),) if self.read.tags == "both" else ()
        return replace(
            self.read.decoding,
            beam_size=BEAM,
            length_penalty=1.0,
            max_length=_LONGEST,
            max_length_ratio=None,
            prefix=tag,
        )

    def sources(self, count: int) -> list[list[int]]:
        """Random ones in our ids, those of one length together."""
        rng = np.random.default_rng(1)
        lengths = sorted(_LENGTHS[number % len(_LENGTHS)] for number in range(count))
        return [[*rng.integers(4, 500, size=length).tolist(), EOS] for length in lengths]

    def theirs(self, source: Sequence[int]) -> list[int]:
        """A source in their ids, without the end where the model does not read it."""
        return [self.known[token] for token in (source if self.read.config.reads_end else source[:-1])]

    @torch.inference_mode()
    def _logits(self, source: Sequence[int], target: Sequence[int]) -> Tensor:
        """Ours after the beginning and each token of ``target``."""
        memory = self.ours.encode((Padded(torch.tensor([source]), torch.tensor([len(source)])),))
        return self.ours.score(torch.tensor([[BOS, *target]]), memory)[0]

    @torch.inference_mode()
    def largest_difference(self) -> float:
        """Of the logits of all types that both have, after every token of random pairs."""
        start = self.published.config.decoder_start_token_id
        kept = torch.tensor([token for token, row in enumerate(self.known) if row >= 0 and token != BOS])
        rows, worst = torch.tensor(self.known)[kept], 0.0
        for source in self.sources(_PAIRS):
            target = [start, *(self.known[token] for token in source[:-1])]
            given = {"input_ids": torch.tensor([self.theirs(source)]), "decoder_input_ids": torch.tensor([target])}
            difference = self._logits(source, source[:-1])[:, kept] - self.published(**given).logits[0][:, rows]
            worst = max(worst, float(difference.abs().max()))
        return worst

    def hypotheses(self, ct2: Ct2Model, count: int) -> dict[str, Any]:
        """How the best of four are those of ``generate`` and of CTranslate2."""
        sources = self.sources(count)
        batch = translate_batch(TorchGraphs(self.ours), [(np.array(source),) for source in sources], self.options)
        best = [hypotheses[0] for hypotheses in batch]
        translated = zip(sources, best, self._translated(ct2, sources), strict=True)
        return {
            "inputs": count,
            "different": len({hypothesis.tokens for hypothesis in best}),
            "generate": self._same(zip(sources, best, self._generated(sources), strict=True)),
            "ctranslate2": self._same(trio for trio in translated if not self._beam_lost(trio[0])),
        }

    def _beam_lost(self, source: Sequence[int]) -> bool:
        """Whether CTranslate2 searches a narrower beam: an end right after a forced prefix is struck out unless it is
        the likeliest, and its place in the beam is lost (``update_sample_with_prefix`` in its ``decoding.cc``).
        """
        if not self.options.prefix:
            return False
        after = self._logits(source, self.options.prefix)[-1]
        return 0 < int((after > after[EOS]).sum()) < BEAM

    def _generated(self, sources: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        prefix = [self.known[token] for token in self.options.prefix]
        settings: dict[str, Any] = {"forced_bos_token_id": prefix[0]} if prefix else {}
        end = self.known[EOS]
        for _, group in groupby(sources, len):
            for ids in torch.tensor([self.theirs(source) for source in group]).split(_BATCH):
                made = self.published.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    max_length=_LONGEST + 2,  # what decoding begins with counts, and the end
                    length_penalty=1.0,
                    early_stopping=True,
                    num_beams=BEAM,
                    **settings,
                )
                for tokens in made[:, 1:].tolist():
                    yield tokens[: tokens.index(end)] if end in tokens else tokens[:_LONGEST]

    def _translated(self, ct2: Ct2Model, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        prefix = [self.known[token] for token in self.options.prefix]
        lengths = {"min_decoding_length": 0, "max_decoding_length": _LONGEST + 1, "length_penalty": 1.0}
        return ct2.translate([self.theirs(source) for source in sources], prefix, max_batch_size=_BATCH, **lengths)

    def _same(self, trios: Iterable[tuple[list[int], Hypothesis, list[int]]]) -> dict[str, int]:
        """How many are identical, ties (float64 scores them alike), or others, of those that end by themselves.

        Args:
            trios: a source, our hypothesis, and the tokens of another program's in its ids.
        """
        counted = {"compared": 0, "identical": 0, "ties": 0}
        ids = {row: token for token, row in enumerate(self.known) if token != BOS}
        for source, best, tokens in trios:
            if len(tokens) >= _LONGEST or len(best.tokens) >= _LONGEST:
                continue
            counted["compared"] += 1
            if [self.known[token] for token in best.tokens] == tokens:
                counted["identical"] += 1
                continue
            other = replace(best, tokens=tuple(ids[token] for token in tokens))
            scores = [self._judge.ranked((np.array(source),), one, self.options) for one in (best, other)]
            counted["ties"] += abs(scores[0] - scores[1]) < STANDARD.gap
        return counted

    def cut_alike(self, tokenizer: Any, lines: Sequence[str]) -> int:
        """How many texts become the same ids as by the library's tokenizer; a tag that it puts first is left out."""
        skipped = 1 if self.read.tags == "both" else 0
        source: Vocabulary = self.read.source
        tag = ""
        if self.read.tags:
            source = TaggedVocabulary(source, (self.read.sources if skipped else self.read.targets)[0])
            tag = "" if skipped else f"{self.read.source.piece_of(source.encode('a')[0])} "
        ours = ([self.known[token] for token in (*source.encode(line), EOS)][skipped:] for line in lines)
        return sum(ids == tokenizer(tag + line).input_ids[skipped:] for ids, line in zip(ours, lines, strict=True))


def tokenizer_of(name: str, folder: Path) -> Any:
    """The library's tokenizer of a folder; without a name sentencepiece with the ids of fairseq, or of Pegasus.

    The library makes its own tokenizer of such files, which joins and trims white space in another way.
    """
    if name:
        return getattr(import_module("transformers"), name).from_pretrained(folder)
    (file,) = folder.glob("*.model")
    processor = sentencepiece.SentencePieceProcessor(str(file))
    if file.name == "spiece.model":
        return lambda line: SimpleNamespace(input_ids=[*(token + 103 for token in processor.encode(line)), 1])
    unknown, tag = 3, 0
    return lambda line: SimpleNamespace(
        input_ids=[tag, *(token + 1 if token else unknown for token in processor.encode(line)), 2]
    )
