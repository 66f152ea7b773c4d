"""Compose projects of the tests: a random name, ports that the engine chooses, and nothing left behind."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.docker.engine import BUILD_SECONDS, Engine, Output, environment, eventually, run
from tests.shipped import ROOT

UP_SECONDS = 150.0  # until every container is healthy


@dataclass
class Project:
    """``docker compose`` with a project name, files and variables of its own.

    Attributes:
        engine: where it runs.
        folder: where files may be written for it.
        files: names of compose files in the repository's root.
        profiles: of services that ``up`` starts besides those without a profile.
        settings: variables for the compose files; nothing is read from a ``.env`` of the checkout.
        name: of the project, its containers, networks and volumes.
    """

    engine: Engine
    folder: Path
    files: Sequence[str]
    profiles: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    name: str = field(default_factory=lambda: f"tandem-test-{secrets.token_hex(4)}")

    def __post_init__(self) -> None:
        self._empty = self.folder / f"{self.name}.env"
        self._empty.touch()
        self._overlay = self.folder / f"{self.name}.yml"
        self._overlay.write_text("services: {}\n", encoding="utf-8")
        if network := self.engine.build_network:
            built = [name for name, service in self.config()["services"].items() if "build" in service]
            overlay = {"services": {name: {"build": {"network": network}} for name in built}}
            self._overlay.write_text(yaml.safe_dump(overlay), encoding="utf-8")

    def compose(self, *arguments: str, timeout: float = 60, check: bool = True) -> Output:
        """Run ``docker compose …``. Raises CommandFailed as ``run`` does."""
        place = ("--project-name", self.name, "--project-directory", str(ROOT), "--env-file", str(self._empty))
        files = [part for path in (*(ROOT / name for name in self.files), self._overlay) for part in ("-f", str(path))]
        profiles = [part for name in self.profiles for part in ("--profile", name)]
        command = ["docker", "compose", *place, *files, "--progress", "plain", "--ansi", "never", *profiles, *arguments]
        return run(command, {**environment(), **self.settings}, timeout=timeout, check=check)

    def config(self) -> dict[str, Any]:
        """The files as compose understands them, with every profile."""
        text = self.compose("--profile", "*", "config", "--format", "json").stdout
        config: dict[str, Any] = json.loads(text)
        return config

    def build(self, *services: str) -> list[str]:
        """Build the images of services; their references, which are removed at the end of the session."""
        references = [self.config()["services"][service]["image"] for service in services]
        self.engine.made.extend(references)
        self.compose("build", *services, timeout=BUILD_SECONDS)
        return references

    def up(self, *services: str) -> None:
        """Start services and wait until each is healthy."""
        self.compose("up", "--detach", "--no-build", "--wait", *services, timeout=UP_SECONDS)

    def down(self) -> None:
        """Remove containers, networks and volumes, of every profile."""
        self.compose("--profile", "*", "down", "--volumes", "--remove-orphans", "--timeout", "5", timeout=120)

    def containers(self, service: str) -> list[str]:
        """Ids of a service's containers, stopped ones included, oldest first."""
        return self.compose("ps", "--all", "--quiet", service).stdout.split()

    def container(self, service: str) -> str:
        """The id of a service's only container."""
        (found,) = self.containers(service)
        return found

    def state(self, container: str) -> dict[str, Any]:
        """Of a container: ``Status``, ``ExitCode``, ``Health`` and more."""
        state: dict[str, Any] = self.engine.inspect(container)["State"]
        return state

    def limits(self, service: str) -> dict[str, Any]:
        """The host's side of a service's only container, confined as every container must be."""
        host: dict[str, Any] = self.engine.inspect(self.container(service))["HostConfig"]
        assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"]
        assert any(option.startswith("no-new-privileges") for option in host["SecurityOpt"])
        assert host["Memory"] > 0
        return host

    def health(self, container: str) -> str:
        """``starting``, ``healthy`` or ``unhealthy``."""
        return str(self.state(container)["Health"]["Status"])

    def address(self, service: str, port: int) -> str:
        """Where a service's port was published; another one after each start."""
        found = eventually(
            lambda: self.compose("port", service, str(port)).stdout.strip(),
            f"a published port of {service}",
            seconds=20,
        )
        return f"http://{found.splitlines()[0]}"

    def logs(self, lines: int = 40) -> str:
        """The last lines of every container, for the report of a failure."""
        arguments = ("--profile", "*", "logs", "--no-color", "--tail", str(lines))
        return self.compose(*arguments, timeout=30, check=False).text.replace("\x1b[2K", "")
