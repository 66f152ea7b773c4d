"""Translates files on all machines of a Ray cluster: ``python -m deploy.ray_bulk BUNDLE FILE... --out FOLDER``.

For what is too much for ``tandem translate`` on one machine; both translate with ``deploy.bulk``. Ray Data, and not
tasks of our own over Ray, Spark or Dask: its pool of actors opens the model once in each, grows and shrinks with the
cluster, takes no more blocks than it can work on, and does those of a machine that has died again. Spark and Dask have
that too, but Ray is what serves here already.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from deploy.bulk import BulkOptions, BulkTranslator
from models.bundle import Bundle
from models.errors import ConfigError, TandemError

if TYPE_CHECKING:
    from deploy.ray.blocks import FileTranslation

_MOST_TASKS = 10_000  # of Ray's, which hold one or several of our blocks


@dataclass(frozen=True, slots=True)
class Actors:
    """The actors that translate.

    Attributes:
        most: of them; 0 = as many as the cluster has room for.
        num_cpus, num_gpus: what each one takes.
    """

    most: int = 0
    num_cpus: float = 1.0
    num_gpus: float = 0.0


class TranslateBlock:
    """One of the actors: opens the bundle once, then translates a block at each call."""

    def __init__(self, job: FileTranslation) -> None:
        self._job = job
        self._translator = BulkTranslator(job.bundle, job.options)
        self._translator.open()

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[int]]:
        """Bad lines of each block; the translation goes where the job says, and not through Ray."""
        from deploy.ray.blocks import Block

        fields = ("number", "start", "size", "line")
        rows = zip(*(batch[name].tolist() for name in fields), strict=True)
        return {"bad": [self._job.translate(Block(*row), self._translator) for row in rows]}


def translate(job: FileTranslation, pool: Actors | None = None) -> int:
    """Translate a file on the Ray cluster that this process is connected to.

    What an earlier run has done is not done again. The result appears when it is complete.

    Returns:
        How many lines of those translated now are bad; the report beside the result has all.

    Raises:
        ConfigError: the source is not there, or the run that is to be continued was another one.
    """
    job.begin()
    pending = [asdict(block) for block in job.pending()]
    console = Console(stderr=True)
    found = _translated(job, pending, pool or Actors()) if pending else iter(())
    shown = track(found, job.source.address, len(pending), console=console, disable=not console.is_terminal)
    bad = sum(shown)
    job.join()
    return bad


def _translated(job: FileTranslation, pending: list[dict[str, int]], pool: Actors) -> Iterator[int]:
    import ray
    from ray.data import ActorPoolStrategy, DataContext

    DataContext.get_current().enable_progress_bars = False  # there is one of ours
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    room = int(resources.get("CPU", 0) / pool.num_cpus)
    if pool.num_gpus:
        room = min(room, int(resources.get("GPU", 0) / pool.num_gpus))
    if room < 1:
        raise ConfigError(f"the cluster has no room for an actor of {pool.num_cpus:g} cores, {pool.num_gpus:g} GPUs")
    most = max(1, min(pool.most or room, len(pending)))
    blocks = ray.data.from_items(pending, override_num_blocks=min(len(pending), _MOST_TASKS))
    done = blocks.map_batches(
        TranslateBlock,
        fn_constructor_args=(job,),
        batch_size=1,
        compute=ActorPoolStrategy(min_size=1, max_size=most),
        num_cpus=pool.num_cpus,
        num_gpus=pool.num_gpus,
        runtime_env={"env_vars": {"OMP_NUM_THREADS": str(job.options.threads)}},
    )
    for row in done.iter_rows():
        yield int(row["bad"])


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
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="Bundle folder, at the same path on every machine.")],
    sources: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files or addresses that all machines reach.")
    ],
    out: Annotated[str, typer.Option(help="Folder or address for the results, which get the names of the files.")],
    address: Annotated[str, typer.Option(help="Of the Ray cluster. [RAY_ADDRESS, or one made here]")] = "",
    actors: Annotated[int, typer.Option(min=0, help="Actors at most; 0 = as many as there is room for.")] = 0,
    num_cpus: Annotated[float, typer.Option(min=0.1, help="Cores of an actor.")] = 1.0,
    num_gpus: Annotated[float, typer.Option(min=0.0, help="Share of a GPU of an actor.")] = 0.0,
    runtime: Annotated[str, typer.Option(help="onnx, torchscript or torch.")] = "onnx",
    precision: Annotated[str, typer.Option(help="Which of the bundle's graphs: int8 or float32.")] = "int8",
    beam_size: Annotated[int | None, typer.Option(min=1, help="Beam size. [the bundle's]")] = None,
    empty: Annotated[bool, typer.Option("--empty", help="Leave lines empty that cannot be translated.")] = False,
) -> None:
    """Translate files line by line on a Ray cluster. Run it again to go on where it stopped."""
    options = BulkOptions(runtime, precision, beam_size, bad="empty" if empty else "keep")
    try:
        todo = jobs(bundle, sources, out, options)
        connect(address)
        for job in todo:
            bad = translate(job, Actors(actors, num_cpus, num_gpus))
            typer.echo(
                f"{job.target.address}: done; bad lines now: {bad}, all findings: {job.report.address}", err=True
            )
    except TandemError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, ConfigError) else 1) from error


def jobs(bundle: str, sources: Sequence[str], out: str, options: BulkOptions) -> list[FileTranslation]:
    """One job per file, checked as far as this machine can.

    Raises:
        BundleError: the bundle is refused.
        ConfigError: options that do not fit it, or files of which no part can be read by itself.
    """
    try:
        from deploy.ray.blocks import FileTranslation, SharedFile
    except ModuleNotFoundError as error:
        raise ConfigError(f"this needs the package {error.name!r}: install tandem with its extra [ray]") from error
    loaded = Bundle.load(bundle)
    if len(loaded.sources) != 1 or any(loaded.feature_widths):
        raise ConfigError(f"{bundle} does not read one file of text; translate with `tandem translate`")
    settled = options.settled(loaded)
    names = [PurePosixPath(source).name for source in sources]
    faults = [f"{one}: unpack it first, for machines begin to read in its middle" for one in names if _packed(one)]
    faults += [f"{one}: two files have this name, and so would their results" for one in names if names.count(one) > 1]
    target = SharedFile(out)
    over = [source for source, name in zip(sources, names, strict=True) if SharedFile(source).is_same(target / name)]
    faults += [f"{one}: its result would take its place; name another folder with --out" for one in over]
    if faults:
        raise ConfigError("; ".join(dict.fromkeys(faults)))
    return [
        FileTranslation(SharedFile(source), target / name, bundle, settled)
        for source, name in zip(sources, names, strict=True)
    ]


def _packed(name: str) -> bool:
    return PurePosixPath(name).suffix in (".gz", ".xz", ".bz2", ".zst", ".zip")


if __name__ == "__main__":
    typer.run(main)
