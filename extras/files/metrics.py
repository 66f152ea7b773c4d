"""What the files count to the metrics of the service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tandem.extras.files.jobs import FileJobs


class FilesCollector(Collector):
    """Counts of jobs, what they hold, and the disk's room."""

    def __init__(self, files: FileJobs) -> None:
        self._files = files

    def collect(self) -> Iterator[Metric]:
        """Called whenever metrics are scraped."""
        jobs = GaugeMetricFamily("tandem_file_jobs", "Files by status.", labels=("status",))
        for status in ("queued", "running", "done", "failed", "cancelled", "expired"):
            jobs.add_metric((status,), self._files.counts.get(status, 0))
        yield jobs
        held = self._files.holdings
        yield GaugeMetricFamily("tandem_file_bytes", "Bytes of files here.", value=held.bytes)
        yield GaugeMetricFamily("tandem_file_limit_bytes", "Bytes of files that may be here.", self._files.most_bytes)
        text = "When the oldest unfinished file was accepted, in seconds since 1970; absent where there is none."
        yield GaugeMetricFamily("tandem_file_oldest_timestamp_seconds", text, held.oldest)
        free, total = None, None
        with suppress(OSError):
            free, total = self._files.disk
        yield GaugeMetricFamily("tandem_disk_free_bytes", "Free bytes of the disk that holds the data folder.", free)
        yield GaugeMetricFamily("tandem_disk_bytes", "Bytes of the disk that holds the data folder.", total)
