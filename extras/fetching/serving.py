"""Public models that a server fetches itself: those of the setting ``models`` whose bundles are missing.

Each is fetched by a process of its own, which ends with the server: making a bundle takes memory and a processor for a
while. What cannot be fetched is tried again; meanwhile the server serves what it has.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path

import structlog

from tandem.extras.fetching.settings import FetchingSettings
from tandem.extras.fetching.sources import FetchOptions, fetch_bundle, named_source
from tandem.extras.shared.processes import python_process
from tandem.models.bundle import MANIFEST
from tandem.models.errors import ConfigError, TandemError
from tandem.service.bundles.loading import list_bundles
from tandem.service.bundles.readiness import Absent
from tandem.service.configuration import variable_of
from tandem.service.engine import alias_of
from tandem.service.http.dependencies import Parts

_FIRST_PAUSE, _LONGEST_PAUSE = 30.0, 1800.0  # seconds until what failed is tried again; each time twice as long

_LOADER = "tandem.extras.changing.manager"

_log = structlog.get_logger("tandem.models")


class Fetching:
    """Brings the missing models, one after another. Lives in one event loop."""

    def __init__(
        self, wanted: dict[str, str], folder: Path, folders: tuple[Path, ...], parts: Parts, registry: str
    ) -> None:
        """
        Args:
            wanted: names of the bundles, and of the public models that they are made of.
            folder: that they come to.
            folders: that bundles lie in.
            parts: of the service, one of which loads them.
            registry: the setting of that name, wherever it was made.
        """
        self._missing, self._folder, self._folders, self._parts = dict(wanted), folder, folders, parts
        self._registry = registry
        self._failed: set[str] = set()

    def reasons(self) -> list[str]:
        """Why the service is not ready: models that have not been tried yet. One that failed does not keep others."""
        return [f"{text} is being fetched" for name, text in self._missing.items() if name not in self._failed]

    async def run(self) -> None:
        """Fetch until nothing is missing."""
        pause = _FIRST_PAUSE
        while self._missing:
            for name, text in list(self._missing.items()):
                await self._bring(name, text)
            if self._missing:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _bring(self, name: str, text: str) -> None:
        absent = self._parts.readiness.absent
        absent[name] = Absent(name, "loading")
        _log.info("model_fetched", model=text, state="begun")
        reason = ""
        if not await asyncio.to_thread(self._is_there, name):
            reason = await _fetch(text, self._folder, self._registry)
        try:
            if not reason:
                await _load(self._parts, name)
        except TandemError as error:
            reason = str(error)
        if reason:
            self._failed.add(name)
            absent[name] = Absent(name, "failed", f"{text} could not be fetched, and is tried again; the log says why")
            _log.error("model_not_fetched", model=text, reason=reason)
            return
        del self._missing[name]
        _log.info("model_fetched", model=text, state="served")

    def _is_there(self, name: str) -> bool:
        """Whether its bundle is there: from before, or from another server that has the same folder."""
        return name in bundle_names(self._folders)


@asynccontextmanager
async def fetching(parts: Parts) -> AsyncIterator[Fetching]:
    """The missing models, as they come. Raises ConfigError where a name of the setting is none that can be fetched."""
    settings = parts.settings
    own = settings.part(FetchingSettings)
    named = {source.bundle_name(name): text for text in own.models for source, name in [named_source(text)]}
    folder = settings.bundles[0]
    there = await asyncio.to_thread(bundle_names, settings.bundles) if named else set()
    missing = {name: text for name, text in named.items() if name not in there}
    if missing and (folder / MANIFEST).is_file():
        raise ConfigError(f"{folder} is a bundle: the setting bundles must name the folder that fetched ones come to")
    if missing:
        import_module(_LOADER)  # a ModuleNotFoundError now, and not behind the start, where that extra was deleted
    fetcher = Fetching(missing, folder, settings.bundles, parts, own.models_registry)
    parts.readiness.add(fetcher.reasons)
    task = asyncio.create_task(fetcher.run())
    try:
        yield fetcher
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _load(parts: Parts, name: str) -> None:
    """Have a bundle be served, by an extra that who fetches nothing does without."""
    from tandem.extras.changing.manager import ModelManager

    await parts.resource(ModelManager).load(name)


def bundle_names(folders: tuple[Path, ...]) -> set[str]:
    """Aliases of the bundles that are there."""
    try:
        return {alias_of(one.name) for one in list_bundles(folders)}
    except ConfigError:  # there is none yet
        return set()


async def _fetch(text: str, folder: Path, registry: str) -> str:
    """Have a process fetch a model. Returns why it could not; empty where it could."""
    environment = os.environ | {variable_of("models_registry"): registry}
    async with python_process(__name__, text, str(folder), environment=environment) as child:
        answer, faults = await child.communicate()
    if child.returncode == 0:
        return ""
    said = answer.decode(errors="replace").strip() or faults.decode(errors="replace").strip().rpartition("\n")[2]
    return said or f"its process ended with status {child.returncode}"


def main(text: str, folder: str) -> int:
    """Fetch one model, and say on standard output why not. Returns the process's exit status."""
    try:
        fetch_bundle(text, Path(folder), FetchOptions())
    except (TandemError, OSError) as error:
        print(error)
        return 1
    except ModuleNotFoundError as error:
        print(f"it needs the package {error.name!r}, which is not installed here: docs/import.md says what brings it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
