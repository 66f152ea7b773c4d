"""A teacher's translations for training another model: of several hypotheses the one nearest to the reference.

Kim & Rush (2016), "Sequence-Level Knowledge Distillation": the best hypothesis is section 3.2's distillation; that of a
beam which is most like the reference is section 3.3's interpolation, which stays nearer to what people wrote. They
measure likeness by smoothed sentence BLEU; chrF (Popović 2015, as sacreBLEU counts it) needs no smoothing and is used
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deploy.bulk.decoding import Failed
from deploy.bulk.records import Finding, Line, Record, fault_of, fields_of, text_of
from deploy.bulk.translator import BulkTranslator


@dataclass(eq=False)
class Teacher(BulkTranslator):
    """Translates lines of two fields, a source and its reference, with a bundle of one source.

    ``options.candidates`` hypotheses are found for each; lines are decoded as whole segments.
    """

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the source and of the reference, which is text."""
        return (*super().widths, 0)

    def translate_block(self, lines: Sequence[Line]) -> list[Record]:
        """As :meth:`BulkTranslator.translate_block`; each line is a source and a reference."""
        opened = self._open()
        rows = [fields_of(line) for line in lines]
        faults = [fault_of(row) for row in rows]
        texts = [
            [str(text_of(field)) for field in row] if not fault else [] for row, fault in zip(rows, faults, strict=True)
        ]
        drafts = [opened.form.read(row[:-1]) if row else None for row in texts]
        search = replace(opened.decoder.options, n_best=max(self.options.candidates, 1))
        beam = max(search.beam_size, search.n_best)
        decoder = replace(opened.decoder, options=replace(search, beam_size=beam))
        found = iter(decoder.n_best([one for draft in drafts if draft is not None for one in draft.sentences]))
        records = []
        for row, text, draft, fault in zip(rows, texts, drafts, faults, strict=True):
            if draft is None or fault is not None:
                finding = fault or Finding("unknown", "was left out")
                records.append(Record.untranslated(row[0], finding, self.options.bad))
            elif not draft.sentences:
                records.append(Record(b"", draft.findings))
            elif isinstance(hypotheses := next(found), Failed):
                finding = Finding("decoding_failed", f"the model failed: {hypotheses.why}")
                records.append(Record.untranslated(row[0], finding, self.options.bad))
            else:
                written = [draft.write([one]).replace("\n", " ") for one in hypotheses]
                records.append(Record(nearest(written, text[-1]).encode("utf-8", "replace"), draft.findings))
        return records


def nearest(candidates: Sequence[str], reference: str) -> str:
    """The candidate with the highest chrF; of equal ones the first."""
    if len(candidates) == 1:
        return candidates[0]
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF()
    return max(candidates, key=lambda text: metric.sentence_score(text, [reference]).score)
