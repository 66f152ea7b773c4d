"""A replica's Prometheus metrics, handed to Ray, which exports those of all processes of a node at one address.

A replica has no address of its own that Prometheus could find, and ``/metrics`` behind Serve's proxy answers for
whichever replica it meets. Ray's nodes can be found (Ray keeps a list for Prometheus' file discovery), so each sample
becomes a gauge of the same name with the labels ``deployment``, ``replica`` and ``application``. Gauges throughout:
Ray's counters and histograms only take increments, and PromQL's functions do not look at the type. Ray puts ``ray_``
before the names; one relabelling rule takes it away again, see docs/ray.md.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from ray.serve.metrics import Gauge

from tandem.service.telemetry.metrics import Metrics

_log = structlog.get_logger("tandem.ray")
_PERIOD = 10.0  # seconds, Ray's own
_OURS = ("tandem_", "process_")  # not Python's own, and no ``…_created``, for which nobody asks


class Export:
    """Copies a registry's samples to Ray, in a thread of its own."""

    def __init__(self, metrics: Metrics) -> None:
        self._registry: CollectorRegistry = metrics.registry
        self._gauges: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._shown: dict[str, set[tuple[tuple[str, str], ...]]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tandem-ray-metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()

    def copy(self) -> None:
        """Copy all samples once. What has gone, such as a model that was unloaded, is shown as 0."""
        seen: dict[str, set[tuple[tuple[str, str], ...]]] = {}
        for name, text, labels, value in _samples(self._registry):
            seen.setdefault(name, set()).add(labels)
            self._set(name, text, labels, value)
        for name, shown in self._shown.items():
            for labels in shown - seen.get(name, set()):
                self._set(name, "", labels, 0.0)
        self._shown = seen

    def _set(self, name: str, text: str, labels: tuple[tuple[str, str], ...], value: float) -> None:
        keys = tuple(key for key, _ in labels)
        if (name, keys) not in self._gauges:
            self._gauges[name, keys] = Gauge(name, text, tag_keys=keys)  # type: ignore[arg-type]  # Ray's hint says one key
        self._gauges[name, keys].set(value, dict(labels))

    def _run(self) -> None:
        while not self._ended.wait(_PERIOD):
            try:
                self.copy()
            except Exception:  # whatever Ray raises, translating goes on
                _log.exception("metrics_not_exported")


def _samples(registry: CollectorRegistry) -> Iterator[tuple[str, str, tuple[tuple[str, str], ...], float]]:
    family: Metric
    for family in registry.collect():
        for sample in family.samples:
            if sample.name.startswith(_OURS) and not sample.name.endswith("_created"):
                yield sample.name, family.documentation, tuple(sorted(sample.labels.items())), float(sample.value)
