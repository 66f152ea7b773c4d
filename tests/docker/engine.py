"""The Docker engine that the tests of the images talk to, through its own command line.

The command line and not the ``docker`` package: what is under test is what a user types, ``docker compose`` has no
library, and one way of asking (``DOCKER_HOST``, contexts, credentials) is enough.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.shipped import ROOT

SHIPPED = frozenset(path.parent.name for path in (ROOT / "bundles").glob("*/manifest.json"))
STANDINS = Path(__file__).resolve().parent / "standins"
BUILD_SECONDS = 420.0
PATIENCE = 60.0  # seconds after which what a test waits for counts as failed

Result = TypeVar("Result")


class CommandFailed(AssertionError):
    """A command ended with a status that it should not have; the message has its last words."""


@dataclass(frozen=True)
class Output:
    """What a command wrote, and its exit status."""

    status: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Both streams, for messages."""
        return f"{self.stdout}\n{self.stderr}".strip()


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    timeout: float = PATIENCE,
    check: bool = True,
) -> Output:
    """Run a command. Raises CommandFailed where it took too many seconds or, unless ``check`` is off, failed."""
    try:
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=timeout,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"{' '.join(command)}: not done after {timeout:g} s") from error
    output = Output(done.returncode, done.stdout, done.stderr)
    if check and done.returncode:
        raise CommandFailed(f"{' '.join(command)}: exit status {done.returncode}\n{output.text[-6000:]}")
    return output


def eventually(check: Callable[[], Result], what: str, *, seconds: float = PATIENCE, pause: float = 0.5) -> Result:
    """The first result of ``check`` that is true. Raises AssertionError with the last one when the seconds are over.

    A failed assertion or an error of the network counts as "not yet", after which it waits for ``pause`` seconds.
    """
    end, last = time.monotonic() + seconds, "nothing"
    while True:
        try:
            if result := check():
                return result
            last = repr(result)
        except (AssertionError, OSError, ValueError, httpx.HTTPError) as error:
            last = f"{type(error).__name__}: {error}"
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds:g} s; at last {last}")
        time.sleep(pause)


def environment() -> dict[str, str]:
    """This process's variables without those that compose files would read: tests set these themselves."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TANDEM_", "LOADTEST_", "COMPOSE_", "BUILDX_"))
    }


@dataclass
class Engine:
    """A Docker engine that answers.

    Attributes:
        build_network: what builds have to use; empty for the engine's default.
        made: references of images that the tests built, removed at the end.
    """

    build_network: str = ""
    made: list[str] = field(default_factory=list)

    def docker(self, *arguments: str, timeout: float = PATIENCE, check: bool = True) -> Output:
        """Run ``docker …``. Raises CommandFailed as ``run`` does."""
        return run(["docker", *arguments], environment(), timeout=timeout, check=check)

    def inspect(self, name: str, kind: str = "container") -> dict[str, Any]:
        """What the engine knows of a container, image, volume or network."""
        found: list[dict[str, Any]] = json.loads(self.docker(kind, "inspect", name).stdout)
        return found[0]

    def has_image(self, reference: str) -> bool:
        """Whether the image is here, or could be fetched."""
        if not self.docker("image", "inspect", reference, check=False).status:
            return True
        return not self.docker("pull", "--quiet", reference, timeout=300, check=False).status

    def build_standin(self, folder: str, target: str, base: str) -> str:
        """Build a target of ``standins/FOLDER`` from Debian's packages; its reference. Raises CommandFailed."""
        reference = f"tandem-standin-{target}:test"
        network = ["--network", self.build_network] if self.build_network else []
        options = ("--build-arg", f"BASE_IMAGE={base}", "--target", target, "--tag", reference)
        self.docker("build", "--quiet", *network, *options, str(STANDINS / folder), timeout=BUILD_SECONDS)
        self.made.append(reference)
        return reference

    def run_image(self, image: str, *command: str, options: Sequence[str] = (), check: bool = True) -> Output:
        """Run an image's entry point with arguments, in a container that is removed afterwards."""
        return self.docker("run", "--rm", "--network", "none", *options, image, *command, check=check)

    def shell(self, image: str, script: str) -> str:
        """What a shell script prints in a container of an image, run as the image's user."""
        return self.run_image(image, "-c", script, options=("--entrypoint", "/bin/sh")).stdout

    def execute(self, container: str, *command: str, check: bool = True) -> Output:
        """Run a command in a running container, as the container's user."""
        return self.docker("exec", container, *command, check=check)

    def remove_images(self) -> None:
        """Remove what the tests built; layers stay in the build cache, so that the next run is faster."""
        if self.made:
            self.docker("image", "rm", "--force", *self.made, check=False)


def find_engine() -> tuple[Engine | None, str]:
    """The engine that ``docker`` reaches, or None and the reason."""
    if shutil.which("docker") is None:
        return None, "there is no `docker` on the PATH"
    try:
        answer = run(["docker", "info", "--format", "{{.ServerVersion}}"], environment(), timeout=20, check=False)
        if answer.status or not answer.stdout.strip():
            return None, f"`docker info` reaches no engine: {answer.stderr.strip()[-300:]}"
        version = run(["docker", "compose", "version", "--short"], environment(), timeout=20, check=False)
    except CommandFailed as error:
        return None, str(error)
    if version.status:
        return None, "`docker compose` is missing: install Docker's compose plugin, version 2.24 or newer"
    return Engine(_build_network()), ""


def _build_network() -> str:
    """``TANDEM_BUILD_NETWORK``, or the host's where the engine was started without a bridge of its own.

    Builds run on the default bridge; an engine without one (``--bridge=none``) gives them no network at all.
    """
    if chosen := os.environ.get("TANDEM_BUILD_NETWORK"):
        return chosen
    names = run(["docker", "network", "ls", "--format", "{{.Name}}"], environment()).stdout.split()
    return "" if "bridge" in names else "host"
