"""CTranslate2: the usual engine for small encoder-decoder models on a CPU.

One worker is one thread, as many workers as Tandem has; all batches are handed over at once, and it works on as many of
them at a time as it has workers. More threads for a worker make it slower on such models.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2

from tandem.extras.laboratory.decoding.systems import Ids, Label, Task
from tandem.extras.laboratory.workload import check_one_text
from tandem.models.bundle import Bundle
from tandem.models.search import Hypothesis, SearchOptions
from tandem.models.translation.translator import encode_lines
from tandem.models.vocabulary import UNK


class Ct2:
    """A translator of CTranslate2 behind our vocabularies.

    Args:
        label: of its rows.
        folder: of a model that ``conversion`` has written.
        names: of the tokens by id, as the model was written with them: source, target.
        path: of the bundle whose vocabularies text goes through, and whose search options hold for real text.
        beam_size: of the search.
        workers: each one thread.
    """

    def __init__(
        self,
        label: Label,
        folder: Path,
        names: tuple[Sequence[str], Sequence[str]],
        path: Path,
        beam_size: int,
        workers: int,
    ) -> None:
        bundle = Bundle.load(path)
        check_one_text(bundle)
        self.label = label
        self._source, self._target = bundle.source_vocabularies[0], bundle.target_vocabulary
        self._most = bundle.manifest.limits.max_source_tokens + 1
        self._options, self._beam_size = bundle.manifest.decoding, beam_size
        self._names = names[0]
        self._ids = {name: token for token, name in enumerate(names[1])}
        self._translator = ctranslate2.Translator(
            str(folder),
            compute_type=label.precision,
            inter_threads=workers,
            intra_threads=1,
        )

    def tokenise(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of every text, EOS last, cut at the bundle's limit."""
        return encode_lines(self._source, texts, self._most)

    def decode(self, tasks: Sequence[Task]) -> list[list[Hypothesis]]:
        """All tasks, queued at once."""
        running = [self._translate(task, asynchronous=True) for task in tasks]
        return [[self._hypothesis(one.result()) for one in batch] for batch in running]

    def decode_alone(self, task: Task) -> list[Hypothesis]:
        """One task; one worker takes it."""
        return [self._hypothesis(one) for one in self._translate(task, asynchronous=False)]

    def detokenise(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Hypotheses as text. Types that only a random model has count as others, so that it is as much work."""
        size = self._target.size
        return [self._target.decode([token % size for token in one.tokens]) for one in hypotheses]

    def close(self) -> None:
        self._translator.unload_model()

    def _translate(self, task: Task, *, asynchronous: bool) -> list[Any]:
        size, names = len(self._names), self._names
        sources = [[names[token % size] for token in source.tolist()] for source in task.sources]
        results: list[Any] = self._translator.translate_batch(
            sources,
            beam_size=self._beam_size,
            max_batch_size=0,  # the batch as it is given
            use_vmap=self.label.shortlist,
            asynchronous=asynchronous,
            **length_options(self._options, task),
        )
        return results

    def _hypothesis(self, result: Any) -> Hypothesis:
        tokens = tuple(self._ids[name] for name in result.hypotheses[0])
        return Hypothesis(tokens, 0.0, 0.0, True, ())  # nobody looks at its scores


def length_options(options: SearchOptions, task: Task) -> dict[str, Any]:
    """Our options in CTranslate2's words; where its bound is one for a whole batch, the loosest of the sentences'."""
    if task.target is not None:
        return {"min_decoding_length": task.target, "max_decoding_length": task.target}
    power = options.length_penalty if options.length_penalty_form == "power" else 0.0
    return {
        "min_decoding_length": options.min_length,
        "max_decoding_length": options.bounds(task.longest)[1],
        "length_penalty": power,
        "disable_unk": UNK in options.suppressed,
    }
