"""Tandem as it is measured: batches of the one search on threads that share the graphs, as the engine's workers do.

No sentence joins a running batch here, since no peer could do the same; `tandem bench serve` measures that.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tandem.extras.laboratory.decoding.systems import Ids, Label, Task
from tandem.extras.laboratory.workload import check_one_text
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.search import Graphs, Hypothesis, SearchOptions
from tandem.models.search.offline import Failed, OfflineDecoder
from tandem.models.translation.rendering import Renderer
from tandem.models.translation.translator import encode_lines
from tandem.service.runtimes import Placement, open_graphs

SHORTLIST_GRAPH = "step_shortlist"
_UNBOUNDED = 10**9  # a batch is what the task says, however many tokens it has


class Tandem:
    """One bundle, decoded by several threads.

    Args:
        bundle: with one source, which is text.
        graphs: of the bundle; every call computes on one thread.
        options: of the search.
        workers: threads.
        label: of its rows.

    Raises:
        ConfigError: the bundle reads several sources, or features, or has no shortlist where the label says so.
    """

    def __init__(self, bundle: Bundle, graphs: Graphs, options: SearchOptions, workers: int, label: Label) -> None:
        check_one_text(bundle)
        if label.shortlist and (bundle.shortlist is None or SHORTLIST_GRAPH not in graphs.specs):
            raise ConfigError(f"{bundle.path} has no shortlist for {label.precision} graphs: measure it without one")
        self.label = label
        self._shortlist = bundle.shortlist if label.shortlist else None
        self._graphs = graphs
        self._source = bundle.source_vocabularies[0]
        self._most = bundle.manifest.limits.max_source_tokens + 1  # and EOS
        self._renderer = Renderer.of(bundle)
        self._options = self._renderer.options(options)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="bench")

    @classmethod
    def open(cls, label: Label, path: Path, beam_size: int, workers: int) -> Tandem:
        """Load a bundle's ONNX graphs; but for the beam, the search is the bundle's own."""
        bundle = Bundle.load(path)
        options = replace(bundle.manifest.decoding, beam_size=beam_size, n_best=1)
        graphs = open_graphs(bundle, "onnx", label.precision, 1, Placement(native=label.native))
        return cls(bundle, graphs, options, workers, label)

    def tokenise(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of every text, EOS last, cut at the bundle's limit."""
        return encode_lines(self._source, texts, self._most)

    def decode(self, tasks: Sequence[Task]) -> list[list[Hypothesis]]:
        """All tasks, each by the next worker that is free."""
        return list(self._pool.map(self.decode_alone, tasks))

    def decode_alone(self, task: Task) -> list[Hypothesis]:
        """One batch from its first step to its last, in the calling thread.

        Raises:
            ConfigError: the search found nothing for a sentence.
        """
        options = search_options(self._options, task.target)
        decoder = OfflineDecoder(self._graphs, options, self._shortlist, _UNBOUNDED, window=len(task.sources))
        best: list[Hypothesis] = []
        for nbest in decoder.decode((source,) for source in task.sources):
            if isinstance(nbest, Failed):
                raise ConfigError(f"{self.label}: {nbest.why}")
            best.append(nbest[0])
        return best

    def detokenise(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[str]:
        return [self._renderer.text(one, (), (text,)) for text, one in zip(texts, hypotheses, strict=True)]

    def close(self) -> None:
        self._pool.shutdown()


def search_options(options: SearchOptions, target: int | None) -> SearchOptions:
    """The options of a batch: exactly ``target`` tokens and EOS, or those given where it is None."""
    if target is None:
        return options
    return replace(options, min_length=target, max_length=target, min_length_ratio=0.0, max_length_ratio=None)
