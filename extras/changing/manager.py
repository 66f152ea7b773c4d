"""Loading, switching and unloading bundles while serving: what ``/models`` does.

A bundle is opened and proven in a thread before the engine hears of it, and an alias is switched in one assignment:
requests that have begun end with the version they began with, and one that fails to load changes nothing. What an alias
stood for before stays loaded, so that rolling back is as quick as a switch; the one before that is let go.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import structlog

from tandem.extras.changing.errors import ModelInUse, ModelRefused
from tandem.extras.changing.switches import Switch, Switches
from tandem.models.bundle import Bundle
from tandem.models.bundle.manifest import NAME
from tandem.models.errors import BundleError, ConfigError, TandemError
from tandem.service.bundles.loading import (
    BundleFolder,
    OpenBundle,
    add_loaded,
    list_bundles,
    newest,
    open_bundle,
    prove,
)
from tandem.service.bundles.readiness import Absent, Readiness
from tandem.service.engine import Draining, Engine, alias_of
from tandem.service.errors import ModelNotFound
from tandem.service.settings import Settings

T = TypeVar("T")

_log = structlog.get_logger("tandem.models")
_PATH = re.compile(r"(?<![\w.@-])(?:[A-Za-z]:)?(?:[\\/][^\s\\/:;,'\"]+)+")
_SPARE = 5.0  # seconds for what ends after a request's deadline


class ModelManager:
    """The bundles of the configured folders, of which the engine has some. Lives in one event loop."""

    def __init__(self, engine: Engine, readiness: Readiness, settings: Settings) -> None:
        """Raises ConfigError where the record of earlier switches is damaged."""
        self._engine, self._settings = engine, settings
        self._switches = Switches(settings.data)
        self._configured = {alias_of(name): name for name in settings.versions}
        self._absent = readiness.absent
        self._changing = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def load(self, name: str, *, switch: bool = True) -> str:
        """Load a bundle, and let its alias stand for it. What is loaded already is not loaded again.

        The change is made to its end even where the caller goes away.

        Args:
            name: a version, ``de-en@2``, or an alias, ``de-en``: then the newest version.
            switch: whether the alias is switched to it; otherwise it answers to its own name only.

        Returns:
            The name of what was loaded, with its version.

        Raises:
            ModelNotFound: the configured folders hold no such bundle.
            ModelRefused: it cannot be served, with the reasons; what was served before still is.
            ModelInUse: the version is loaded with other content, or is just being unloaded.
            Draining: the service shuts down.
        """
        return await self._to_the_end(self._load(name, switch))

    async def roll_back(self, alias: str) -> str:
        """Switch an alias to the version that it stood for before, or else to the newest of the older ones.

        Doing it twice comes back. Returns the version's name.

        Raises:
            ModelNotFound: the alias stands for nothing, or there is no version before.
            ModelRefused, ModelInUse: as ``load``.
        """
        return await self._to_the_end(self._roll_back(alias))

    async def unload(self, name: str) -> list[str]:
        """Let go of a version, or of all versions of an alias; what has begun ends first, within a request's deadline.

        Returns:
            What was unloaded.

        Raises:
            ModelNotFound: no such bundle is loaded.
            ModelInUse: an alias stands for this version.
        """
        return await self._to_the_end(self._unload(name))

    async def close(self) -> None:
        """Give up changes that have not ended."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _load(self, name: str, switch: bool) -> str:
        async with self._changing:
            if self._engine.dispatcher.draining:
                raise Draining
            folder = await self._find(name)
            served = await self._bring(folder)
            if switch:
                await self._point(alias_of(served), served)
            return served

    async def _roll_back(self, alias: str) -> str:
        async with self._changing:
            current = self._engine.aliases.get(alias)
            if current is None:
                raise self._not_loaded(alias)
            before = self._switches.previous(alias)
            if before not in self._engine.bundles:
                folder = await self._find(before) if before else await self._older(alias, current)
                before = await self._bring(folder)
            await self._point(alias, before)
            return before

    async def _unload(self, name: str) -> list[str]:
        async with self._changing:
            engine = self._engine
            if name in engine.aliases:
                leaving = [one for one in engine.bundles if alias_of(one) == name]
            elif name in engine.aliases.values():
                alias = alias_of(name)
                raise ModelInUse(f"{alias} stands for {name}: load another version, or unload {alias} as a whole")
            elif name in engine.bundles:
                leaving = [name]
            elif self._absent.pop(name, None) is not None:  # a failure that nobody wants to see any more
                return []
            else:
                raise self._not_loaded(name)
            for one in leaving:
                engine.hide(one)
            if alias_of(name) not in engine.aliases:
                await self._keep(alias_of(name), None)
        await asyncio.gather(*map(self._let_go, leaving))
        return leaving

    async def _find(self, name: str) -> BundleFolder:
        """A bundle of the configured folders; the name is only compared, never made into a path."""
        there = await self._list()
        if NAME.fullmatch(name):
            versions = {folder.name: folder for folder in there if name in (folder.name, alias_of(folder.name))}
            if versions:
                return versions[name] if "@" in name else versions[newest(versions)]
        names = ", ".join(sorted(folder.name for folder in there)) or "none"
        raise ModelNotFound(f"there is no bundle {name[:80]!r} in the configured folders; there are: {names}")

    async def _older(self, alias: str, current: str) -> BundleFolder:
        versions = {folder.name: folder for folder in await self._list() if alias_of(folder.name) == alias}
        older = {name for name in versions if name != current and newest([name, current]) == current}
        if not older:
            raise ModelNotFound(f"there is no version of {alias} before {current}")
        return versions[newest(sorted(older))]

    async def _list(self) -> list[BundleFolder]:
        try:
            return await asyncio.to_thread(list_bundles, self._settings.bundles)
        except ConfigError:  # a folder is gone or empty; the message would show its path
            _log.warning("bundles_not_found", exc_info=True)
            return []

    async def _bring(self, folder: BundleFolder) -> str:
        """Have the engine serve a bundle under its name. Returns that name."""
        name = self._name_for(folder)
        if name in self._engine.leaving:
            raise ModelInUse(f"{name} is just being unloaded; try again when that has ended")
        if name in self._engine.bundles:
            return name
        self._absent[name] = Absent(name, "loading")
        try:
            loaded = await asyncio.to_thread(_open, replace(folder, name=name), self._settings)
        except Exception as error:
            reason = _reason(error, folder)
            self._absent[name] = Absent(name, "failed", reason)
            _log.error("model_not_loaded", model=name, reason=str(error), exc_info=not isinstance(error, TandemError))
            raise ModelRefused(name, reason) from error
        except BaseException:
            del self._absent[name]
            raise
        del self._absent[name]
        if self._engine.dispatcher.draining:  # by now
            raise Draining
        add_loaded(self._engine, loaded)
        return name

    def _name_for(self, folder: BundleFolder) -> str:
        """What a folder is served under now: a bundle without versions, whose content has changed, gets one made up."""
        engine = self._engine
        alike = [one for one in engine.bundles if alias_of(one) == alias_of(folder.name)]
        same = [one for one in alike if _same(engine.bundles[one], folder)]
        if folder.name not in engine.bundles or folder.name in same:
            return folder.name
        if same:
            return same[0]
        if "@" in folder.name:
            raise ModelInUse(f"{folder.name} is loaded, but its folder has changed; give new content a new version")
        return f"{folder.name}@{folder.digest[:8]}"

    async def _point(self, alias: str, name: str) -> None:
        before = self._engine.aliases.get(alias)
        if before == name and self._switches.current(alias, self._configured.get(alias, "")) == name:
            return
        oldest = self._switches.previous(alias)
        self._engine.point(alias, name)
        previous = before if before not in (None, name) else oldest
        await self._keep(alias, Switch(name, previous or "", self._configured.get(alias, "")))
        _log.info("model_switched", model=alias, version=name, before=before)
        if oldest in self._engine.bundles and oldest not in (name, previous):
            self._engine.hide(oldest)
            self._begin(self._let_go(oldest))

    async def _keep(self, alias: str, switch: Switch | None) -> None:
        """Have a switch, or none any more, outlive a restart. Where the disk refuses, that is all that is lost."""
        try:
            if switch is None:
                await asyncio.to_thread(self._switches.forget, alias)
            else:
                await asyncio.to_thread(self._switches.note, alias, switch)
        except OSError as error:
            version = None if switch is None else switch.current
            _log.error("switch_not_kept", model=alias, version=version, reason=error.strerror)

    async def _let_go(self, name: str) -> None:
        finished = await asyncio.to_thread(self._engine.remove, name, self._settings.request_timeout + _SPARE)
        _log.info("model_unloaded", model=name, everything_finished=finished)

    def _not_loaded(self, name: str) -> ModelNotFound:
        names = ", ".join(self._engine.bundles) or "none"
        return ModelNotFound(f"no model {name[:80]!r} is loaded; there are: {names}")

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        task = self._begin(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_swallow)
            raise


def _open(folder: BundleFolder, settings: Settings) -> OpenBundle:
    loaded = open_bundle(folder, settings)
    prove(loaded, settings.probe_timeout)
    return loaded


def _same(bundle: Bundle, folder: BundleFolder) -> bool:
    """Whether a loaded bundle is what its folder holds now."""
    there = folder.manifest
    return there is not None and replace(there, name=bundle.manifest.name) == bundle.manifest


def _reason(error: Exception, folder: BundleFolder) -> str:
    """Why a bundle was refused, for people, without any path of this machine."""
    if not isinstance(error, TandemError):
        return f"it cannot be opened ({type(error).__name__}); the log says more"
    text = "; ".join(error.faults) if isinstance(error, BundleError) else str(error)
    for path in (folder.path, folder.path.resolve()):
        text = text.replace(str(path), folder.name)
    return _PATH.sub("…", text)


def _swallow(task: asyncio.Task[Any]) -> None:
    """What nobody waits for any more was logged where it happened."""
    if not task.cancelled():
        task.exception()
