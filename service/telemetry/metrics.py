"""Prometheus metrics. Each app has a registry of its own; the engine's plain counters are read when scraped.

What alerts and ratios are made of is there from the start, at 0: a counter that first appears with a value has no rate
for its first event, and a ratio of it no value.
"""

from __future__ import annotations

import math
import sys
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, GCCollector, Info, PlatformCollector, ProcessCollector
from prometheus_client import Histogram as PrometheusHistogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from tandem.service.bundles.readiness import Readiness
from tandem.service.engine import Engine, EngineCounters, Histogram, Priority, alias_of
from tandem.service.engine.counters import SECONDS
from tandem.service.telemetry.cgroups import affine_cores, cpu_quota, machine_memory, memory_limit
from tandem.service.translation.texts import TextService

_COUNTERS = {
    "steps": (
        "tandem_decode_steps",
        "Decoder steps of running batches; first steps, made while joining, not counted.",
    ),
    "sentence_steps": ("tandem_decode_sentence_steps", "Sum over steps of the sentences in the batch."),
    "rows": ("tandem_decode_rows", "Rows (sentences x hypotheses) decoded, summed over steps."),
    "dead_rows": ("tandem_decode_dead_rows", "Rows decoded that held no hypothesis."),
    "source_cells": ("tandem_source_cells", "Source positions read by steps."),
    "source_padding": ("tandem_source_padding", "Source positions read by steps that were padding."),
    "slot_cells": ("tandem_slot_cells", "History slots read by steps."),
    "slot_padding": ("tandem_slot_padding", "History slots read by steps that no hypothesis sees."),
    "source_tokens": ("tandem_source_tokens", "Source tokens encoded."),
    "target_tokens": ("tandem_target_tokens", "Target tokens of the best hypotheses."),
    "joined": ("tandem_sentences_joined", "Sentences that joined a batch."),
    "cache_hits": ("tandem_cache_hits", "Sentences answered from the result cache."),
    "cache_misses": ("tandem_cache_misses", "Sentences looked up in the result cache in vain."),
}
_DEVICE_COUNTERS: tuple[tuple[str, str, str | None, Callable[[Any], Mapping[str, float]]], ...] = (
    (
        "tandem_device_steps",
        "Steps of searches on the device: graphs replayed, or kernels launched one by one.",
        "how",
        lambda work: {"replayed": work.replays, "launched": work.eager_steps},
    ),
    (
        "tandem_device_step_seconds",
        "Seconds of the device in these steps.",
        None,
        lambda work: {"": work.step_seconds},
    ),
    (
        "tandem_device_graphs",
        "Graphs of steps that were captured, that could not be, and that were given up for room.",
        "event",
        lambda work: {"captured": work.captures, "failed": work.capture_failures, "evicted": work.evictions},
    ),
    ("tandem_device_sentences", "Sentences decoded on the device.", None, lambda work: {"": work.sentences}),
    (
        "tandem_device_routed_sentences",
        "Sentences that went through the general search, by the option that the device does not have.",
        "option",
        lambda work: dict(work.routed),
    ),
    (
        "tandem_device_unlisted_sentences",
        "Sentences of either search whose bundle has a shortlist, which neither uses.",
        None,
        lambda work: {"": work.unlisted},
    ),
    (
        "tandem_device_out_of_memory",
        "Times that the device's memory did not suffice.",
        None,
        lambda work: {"": work.out_of_memory},
    ),
)
_OUTCOMES = ("finished", "cancelled", "expired", "failed")
_REFUSALS = ("queue_full", "draining")  # the engine's, which are counted from the start
TEXT_ROUTES = ("/translate", "/summarize", "/postedit")
"""Our routes whose requests count for the service level objectives."""
TEXT_OUTCOMES = ("answered", "refused", "failed", "left")
"""By status: below 400, below 500, from 500 on, and 499, where the client has left, or its own time was over."""
# Upper bounds in seconds: dense where an objective for people who wait can lie, up to the longest request.
TEXT_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 30.0, 60.0)
CLIENT_GONE = 499
"""Status of requests whose client has left before there was another one."""


class Metrics:
    """The app's registry and the metrics of its HTTP side."""

    def __init__(self, version: str = "0", text_routes: Sequence[str] = TEXT_ROUTES) -> None:
        """
        Args:
            version: the service's, for information.
            text_routes: that count for the service level objectives.
        """
        self._text_routes = text_routes
        self.registry = CollectorRegistry()
        self.refused: Tally[str] = Tally()
        self.requests = Counter(
            "tandem_http_requests", "Requests by route, method, status and name of the key.",
            ("route", "method", "status", "key"), registry=self.registry,
        )  # fmt: skip
        self.in_flight = Gauge("tandem_http_requests_in_flight", "Requests being answered.", registry=self.registry)
        self.seconds = PrometheusHistogram(
            "tandem_http_request_seconds", "Seconds per request.", ("route",),
            buckets=(*SECONDS, 30.0, 60.0), registry=self.registry,
        )  # fmt: skip
        self._texts = Counter(
            "tandem_text_requests", "Requests for text by outcome: answered, refused (4xx), failed (5xx, or a stream "
            "that broke off), left (by the client).", ("route", "outcome"), registry=self.registry,
        )  # fmt: skip
        self._text_seconds = PrometheusHistogram(
            "tandem_text_request_seconds", "Seconds per request for text that was answered, streams to their end.",
            ("route", "priority"), buckets=TEXT_SECONDS, registry=self.registry,
        )  # fmt: skip
        for route in text_routes:
            for outcome in TEXT_OUTCOMES:
                self._texts.labels(route, outcome)
            for priority in Priority:
                self._text_seconds.labels(route, priority.name.lower())
        Info("tandem_build", "What runs.", registry=self.registry).info({"version": version})
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self.registry.register(_MachineCollector())

    def note(self, route: str, method: str, status: int, key: str, seconds: float) -> None:
        """Count a request that has ended.

        Args:
            route: its path with the names of its parameters, not their values.
            method: of HTTP, or ``other``.
            status: of the reply; 499 = the client left before it.
            key: name of the key; empty where none was asked for.
            seconds: from its headers to the end of the reply.
        """
        self.requests.labels(route, method, str(status), key).inc()
        self.seconds.labels(route).observe(seconds)

    def note_text(self, route: str, status: int, priority: str, seconds: float) -> None:
        """Count a request for text, as above; ``priority`` is known of all that were answered. Others do not count."""
        if route not in self._text_routes:
            return
        left, answered = status == CLIENT_GONE, status < 400
        outcome = "left" if left else "answered" if answered else "refused" if status < 500 else "failed"
        self._texts.labels(route, outcome).inc()
        if answered:
            self._text_seconds.labels(route, priority).observe(seconds)

    def watch(self, engine: Engine, readiness: Readiness | None = None) -> None:
        """Add an engine's counters to the registry, and whether it is ready."""
        self.registry.register(_EngineCollector(engine, self.refused, readiness))

    def watch_texts(self, texts: TextService) -> None:
        """Add what the text service counts to the registry."""
        self.registry.register(_TextCollector(texts))

    def register(self, collector: Collector) -> None:
        """Add what an extra counts to the registry."""
        self.registry.register(collector)

    def render(self) -> tuple[bytes, str]:
        """The exposition, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4


class _TextCollector(Collector):
    def __init__(self, texts: TextService) -> None:
        self._texts = texts

    def collect(self) -> Iterator[Metric]:
        text = "Sentences that went through a third language, as no model translates the pair."
        pivoted = CounterMetricFamily("tandem_pivoted_sentences", text, labels=("source", "via", "target"))
        for languages, count in dict(self._texts.pivoted).items():
            pivoted.add_metric(languages, count)
        yield pivoted
        text = "Target tokens decoded of sentences, and of those that were tried again since something was missing."
        tokens = CounterMetricFamily("tandem_decoded_tokens", text, labels=("attempt",))
        for attempt in ("first", "again"):
            tokens.add_metric((attempt,), self._texts.decoded_tokens[attempt])
        yield tokens


class _MachineCollector(Collector):
    """What this process may use; control groups can be changed while it runs."""

    def collect(self) -> Iterator[Metric]:
        memory = min((size for size in (memory_limit(), machine_memory()) if size is not None), default=None)
        yield GaugeMetricFamily("tandem_memory_limit_bytes", "Bytes of memory that this process may use.", memory)
        cores = min(affine_cores(), cpu_quota() or math.inf)
        yield GaugeMetricFamily("tandem_cores", "Cores that this process may use, parts of one included.", cores)


class _EngineCollector(Collector):
    def __init__(self, engine: Engine, refused: Mapping[str, int], readiness: Readiness | None) -> None:
        self._engine, self._refused, self._readiness = engine, refused, readiness

    def collect(self) -> Iterator[Metric]:
        counters = self._engine.dispatcher.counters
        if self._readiness is not None:
            text = "1 where /readyz found everything ready when it was last asked, and nothing has ended since."
            yield GaugeMetricFamily("tandem_ready", text, float(self._readiness.ready))
        for field, (name, text) in _COUNTERS.items():
            yield CounterMetricFamily(name, text, value=getattr(counters, field))
        outcomes = {outcome: getattr(counters, outcome) for outcome in _OUTCOMES}
        yield _labelled("tandem_sentences", "Sentences by outcome.", "outcome", outcomes)
        refused = dict.fromkeys(_REFUSALS, 0) | dict(counters.rejected) | dict(self._refused)
        yield _labelled("tandem_rejected", "Requests refused at once.", "reason", refused)
        yield from _histograms(counters)
        yield _padding(counters)
        waiting, running = self._engine.dispatcher.sentences
        yield GaugeMetricFamily("tandem_queue_sentences", "Sentences that wait.", value=waiting)
        yield GaugeMetricFamily("tandem_running_sentences", "Sentences in batches.", value=running)
        yield GaugeMetricFamily(
            "tandem_queue_tokens", "Predicted tokens of both.", value=self._engine.dispatcher.queued_tokens
        )
        limit = self._engine.options.limits.max_queue_tokens
        yield GaugeMetricFamily(
            "tandem_queue_limit_tokens", "Predicted tokens from which on requests are refused.", limit
        )
        yield GaugeMetricFamily("tandem_bundles_loaded", "Bundles that are served.", value=len(self._engine.bundles))
        workers, backends = self._engine.options.workers, self._engine.backends.values()
        runtimes = ",".join(sorted({backend.runtime for backend in backends}))
        precisions = ",".join(sorted({backend.precision for backend in backends}))
        devices = ",".join(sorted({backend.device for backend in backends}))
        info = {"runtime": runtimes, "precision": precisions, "workers": str(workers), "device": devices}
        for name in ("max_batch_tokens", "max_batch_sentences", "max_join_tokens"):
            info[name] = str(getattr(self._engine.options.limits, name))
        yield InfoMetricFamily("tandem_engine", "What decodes.", value=info)
        yield GaugeMetricFamily("tandem_decode_workers", "Threads that decode.", workers)
        yield self._models()
        yield from _gpu_memory()
        yield from _device_work()

    def _models(self) -> Metric:
        engine, current = self._engine, set(self._engine.aliases.values())
        labels = ("model", "alias", "runtime", "precision", "state")
        models = GaugeMetricFamily(
            "tandem_model", "1 for each model; 0 where its alias stands for another.", labels=labels
        )
        for name, backend in engine.backends.items():
            values = (name, alias_of(name), backend.runtime, backend.precision, engine.state_of(name))
            models.add_metric(values, float(name in current))
        return models


def _histograms(counters: EngineCounters) -> Iterator[Metric]:
    wait = HistogramMetricFamily("tandem_wait_seconds", "Seconds until a sentence joined a batch.", labels=())
    wait.add_metric((), *_buckets(counters.wait))
    yield wait
    steps = HistogramMetricFamily("tandem_step_seconds", "Seconds per call of a graph.", labels=("phase",))
    for phase, histogram in counters.step_seconds.items():
        steps.add_metric((phase,), *_buckets(histogram))
    yield steps
    rows = HistogramMetricFamily("tandem_batch_rows", "Rows (sentences x hypotheses) of a step.", labels=())
    rows.add_metric((), *_buckets(counters.batch_rows))
    yield rows


def _padding(counters: EngineCounters) -> Metric:
    """Shares since the start; the counters beside it give those of a time."""
    share = GaugeMetricFamily("tandem_padding_share", "Share of what steps read that is padding.", labels=("of",))
    share.add_metric(("source",), counters.source_padding / max(1, counters.source_cells))
    share.add_metric(("slot",), counters.slot_padding / max(1, counters.slot_cells))
    share.add_metric(("row",), counters.dead_rows / max(1, counters.rows))
    return share


def _gpu_memory() -> Iterator[Metric]:
    """Where torch runs models on a GPU; looked for only where its runtime was chosen."""
    runtime = sys.modules.get("tandem.service.runtimes.torch")
    used = runtime.device_memory() if runtime is not None else {}
    memory = GaugeMetricFamily("tandem_gpu_memory_bytes", "Memory of the GPU.", labels=("device", "kind"))
    for (device, kind), size in used.items():
        memory.add_metric((device, kind), size)
    yield memory


def _device_work() -> Iterator[Metric]:
    """What the torch runtime's own search has done, by device; looked for only where that runtime was chosen."""
    runtime = sys.modules.get("tandem.service.runtimes.torch")
    work = list(runtime.device_work()) if runtime is not None else []
    for name, text, label, count in _DEVICE_COUNTERS:
        labels = ("device",) if label is None else ("device", label)
        totals: dict[tuple[str, ...], float] = {}
        for device, counters in work:
            for value, number in count(counters).items():
                key = (device,) if label is None else (device, value)
                totals[key] = totals.get(key, 0.0) + number
        family = CounterMetricFamily(name, text, labels=labels)
        for own, total in totals.items():
            family.add_metric(own, total)
        yield family


def _labelled(name: str, text: str, label: str, values: dict[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=(label,))
    for value, count in values.items():
        family.add_metric((value,), count)
    return family


def _buckets(histogram: Histogram) -> tuple[list[tuple[str, float]], float]:
    bounds = [*map(str, histogram.bounds), "+Inf"]
    return list(zip(bounds, accumulate(histogram.counts), strict=True)), histogram.total
