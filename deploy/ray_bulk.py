"""Translates files on all machines of a Ray cluster: ``python -m deploy.ray_bulk BUNDLE FILE... --out FOLDER``.

For what is too much for the cores of one machine. It is ``tandem translate`` with actors in the place of processes: one
driver reads, writes and resumes, and blocks of lines go to the actors and come back. A line of text is little beside
what its translation costs, so that one driver keeps a cluster busy.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any

import typer

from deploy.bulk import BulkOptions, BulkTranslator
from deploy.bulk.pool import AHEAD, Done, WorkerDied, cut, in_order
from deploy.bulk.run import Request, translate_files
from deploy.bulk.sources import InputRow
from models.bundle import Bundle
from models.command import Without, with_options
from models.errors import ConfigError, TandemError

_RETRIES = 3  # of a block whose machine has died
_OPTIONS = Without({"threads", "shortlist", "sentences", "language", "bad", "target", "max_line_bytes", "candidates"})


@dataclass(frozen=True, slots=True)
class Actors:
    """Those that translate: how many of them, and what each one takes."""

    most: Annotated[int, typer.Option("--actors", min=0, help="Actors at most; 0 = as many as there is room for.")] = 0
    num_cpus: Annotated[float, typer.Option(min=0.1, help="Cores of an actor.")] = 1.0
    num_gpus: Annotated[float, typer.Option(min=0.0, help="Share of a GPU of an actor.")] = 0.0

    def translate(
        self, translator: BulkTranslator, rows: Iterable[InputRow], workers: int
    ) -> Generator[Done, None, None]:
        """Blocks of rows with what became of them, in order, on the cluster that this process is connected to.

        A block whose machine dies is given to another.

        Raises:
            ConfigError: the cluster has no room.
            WorkerDied: an actor failed, also again.
        """
        import ray

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
                cut(rows), lambda lines: next(turns).translate_block.remote(lines), ray.get, AHEAD * len(actors)
            )
        except ray.exceptions.RayError as error:
            raise WorkerDied(f"an actor that translates has failed: {error}") from error
        finally:
            for one in actors:
                ray.kill(one)

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


def connect(address: str = "") -> None:
    """Join a Ray cluster: the one at the address, else of ``RAY_ADDRESS``, else one made on this machine.

    Raises:
        ConfigError: Ray is not installed, or there is no cluster at the address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to Ray's makers
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ConfigError("this needs Ray: install tandem with its extra [ray]") from error
    try:
        if address or os.environ.get("RAY_ADDRESS"):
            ray.init(address=address or None, log_to_driver=False, logging_level=logging.WARNING)
        else:
            ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level=logging.WARNING)
    except ConnectionError as error:
        raise ConfigError(f"no Ray cluster answers at {address or os.environ.get('RAY_ADDRESS')}: {error}") from error


def main(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Bundle folder, at the same path on every machine.")],
    sources: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that this machine reads.")],
    out: Annotated[Path, typer.Option(help="Folder for the results, which get the names of the files.")],
    actors: Actors,
    options: Annotated[BulkOptions, _OPTIONS],
    address: Annotated[str, typer.Option(help="Of the Ray cluster. [RAY_ADDRESS, or one made here]")] = "",
    empty: Annotated[bool, typer.Option("--empty", help="Leave lines empty that cannot be translated.")] = False,
) -> None:
    """Translate files line by line on a Ray cluster. Run it again to go on where it stopped."""
    options = replace(options, bad="empty" if empty else "keep")
    try:
        requests = plan(bundle, sources, out)
        connect(address)
        for request in requests:
            translator = BulkTranslator(bundle, options)
            summary = translate_files(translator, request, actors.translate)
            told = f", of which {summary.report} tells" if summary.report else ""
            typer.echo(f"{request.out}: {summary.counts.lines:,} lines, {summary.counts.bad:,} bad{told}", err=True)
    except TandemError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, ConfigError) else 1) from error


def plan(bundle: Path, sources: Sequence[Path], out: Path) -> list[Request]:
    """One request per file, which goes on where an earlier one ended.

    Raises:
        BundleError: the bundle is refused.
        ConfigError: it does not read one file of text, or results would have one name.
    """
    loaded = Bundle.load(bundle)
    if len(loaded.sources) != 1 or any(loaded.feature_widths):
        raise ConfigError(f"{bundle} does not read one file of text; translate with `tandem translate`")
    names = [source.name for source in sources]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{', '.join(twice)}: two files have this name, and so would their results")
    out.mkdir(parents=True, exist_ok=True)
    targets = [out / name for name in names]
    pairs = zip(sources, targets, strict=True)
    return [
        Request((source,), target, resume=target.with_name(f"{target.name}.journal").exists())
        for source, target in pairs
    ]


if __name__ == "__main__":
    typer.run(with_options(main))
