"""Blocks of lines through the actors of a Ray cluster in the place of processes: ``tandem translate --ray ADDRESS``.

For what is too much for the cores of one machine. One driver reads, writes and resumes, and blocks of lines go to the
actors and come back: a line of text is little beside what its translation costs, so that one driver keeps a cluster
busy.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from itertools import cycle
from typing import Annotated, Any

import typer

from tandem.extras.bulk.pool import AHEAD, Done, WorkerDied, cut, in_order
from tandem.extras.bulk.sources import InputRow
from tandem.extras.bulk.translator import BulkTranslator
from tandem.models.errors import ConfigError

_RETRIES = 3  # of a block whose machine has died


@dataclass(frozen=True, slots=True)
class RayActors:
    """Those that translate, and what each one takes; ``address`` empty for no cluster at all."""

    address: Annotated[
        str,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Translate on this Ray cluster, where the bundle lies at the same path on every machine; local makes"
            " one here.",
        ),
    ] = ""
    most: Annotated[int, typer.Option("--actors", min=0, help="Ray actors at most; 0 = as there is room for.")] = 0
    num_cpus: Annotated[float, typer.Option(min=0.1, help="Cores of a Ray actor.")] = 1.0
    num_gpus: Annotated[float, typer.Option(min=0.0, help="Share of a GPU of a Ray actor.")] = 0.0

    def translate(
        self, translator: BulkTranslator, rows: Iterable[InputRow], workers: int
    ) -> Generator[Done, None, None]:
        """Blocks of rows with what became of them, in order. A block whose machine dies is given to another actor.

        Raises:
            ConfigError: there is no such cluster, or it has no room.
            WorkerDied: an actor failed, also again.
        """
        import ray

        if not ray.is_initialized():
            self._connect()
        translator.close()
        threads = {"env_vars": {"OMP_NUM_THREADS": str(translator.options.threads)}}
        actor = ray.remote(BulkTranslator).options(
            num_cpus=self.num_cpus,
            num_gpus=self.num_gpus,
            runtime_env=threads,
            max_restarts=_RETRIES,
            max_task_retries=_RETRIES,
        )
        actors: list[Any] = [
            actor.remote(translator.path, translator.options, translator.opener) for _ in range(self._count())
        ]
        turns = cycle(actors)
        try:
            yield from in_order(
                cut(rows, translator.options.device),
                lambda lines: next(turns).translate_block.remote(lines),
                ray.get,
                AHEAD * len(actors),
            )
        except ray.exceptions.RayError as error:
            raise WorkerDied(f"an actor that translates has failed: {error}") from error
        finally:
            for one in actors:
                ray.kill(one)

    def _connect(self) -> None:
        import ray

        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to Ray's makers
        here: dict[str, Any] = {"include_dashboard": False} if self.address == "local" else {}
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.WARNING, **here)
        except ConnectionError as error:
            raise ConfigError(f"--ray: no Ray cluster answers at {self.address}: {error}") from error

    def _count(self) -> int:
        import ray

        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        room = int(resources.get("CPU", 0) / self.num_cpus)
        if self.num_gpus:
            room = min(room, int(resources.get("GPU", 0) / self.num_gpus))
        if room < 1:
            raise ConfigError(
                f"the cluster has no room for an actor of {self.num_cpus:g} cores, {self.num_gpus:g} GPUs"
            )
        return min(self.most or room, room)
