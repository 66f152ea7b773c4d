"""Fetches packages of a Debian suite and unpacks them, with lists and a cache of its own and without any rights."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from deploy.checks.outcome import MissingTool
from deploy.checks.programs import call

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_NEEDED = ("apt-get", "dpkg-deb")
_SECONDS = 300.0  # that one of apt's commands may take


def unpack(packages: Sequence[str], suite: str, target: Path, workplace: Path) -> None:
    """Unpack packages into a folder that appears when all of it is there.

    Args:
        packages: names; what they depend on is not fetched.
        suite: such as ``trixie``, of the archive that this machine gets its packages from.
        target: must not exist.
        workplace: for lists, packages and unfinished work; kept, so that the next package takes less time.

    Raises:
        MissingTool: this machine is no Debian, or its archive cannot be reached or lacks a package.
    """
    archive = _archive()
    apt = _private_apt(archive, suite, workplace / f"apt-{suite}")
    downloads = workplace / f"apt-{suite}" / "packages"
    shutil.rmtree(downloads, ignore_errors=True)
    downloads.mkdir(parents=True)
    _call(["apt-get", "update", "-qq"], workplace, apt)
    _call(["apt-get", "download", "-qq", *packages], downloads, apt)
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for package in sorted(downloads.glob("*.deb")):
        _call(["dpkg-deb", "--extract", str(package), str(part)], downloads)
    shutil.rmtree(downloads)
    part.rename(target)


def _archive() -> str:
    """The address of the Debian archive that this machine uses."""
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    if missing or not KEYRING.is_file():
        raise MissingTool(f"Debian's packages cannot be had here: {' and '.join(missing) or KEYRING} is missing")
    lines = _call(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"], Path.cwd())
    # Security updates have an archive of their own, and others' archives no Debian suites.
    found = [line.rstrip("/") for line in lines.split() if line.rstrip("/").endswith("/debian")]
    if not found:
        raise MissingTool("apt knows no archive of Debian here")
    return found[0]


def _private_apt(archive: str, suite: str, folder: Path) -> dict[str, str]:
    """Variables that make apt use one suite and a folder of its own."""
    for part in ("lists/partial", "archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    source = f"Types: deb\nURIs: {archive}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n"
    (folder / "suite.sources").write_text(source, encoding="utf-8")
    options = {
        "Dir::Etc::sourcelist": folder / "suite.sources",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder,
        "Acquire::Languages": "none",
        # As root apt would give its rights away to a user who may not read here.
        "APT::Sandbox::User": "root",
    }
    config = folder / "apt.conf"
    config.write_text("".join(f'{key} "{value}";\n' for key, value in options.items()), encoding="utf-8")
    return {"APT_CONFIG": str(config)}


def _call(command: Sequence[str], cwd: Path, environment: dict[str, str] | None = None) -> str:
    """Output of a command. Raises MissingTool with its words where it fails."""
    answer = call(command, cwd, environment, _SECONDS)
    if answer.status:
        words = answer.words.splitlines()
        raise MissingTool(f"{' '.join(command[:2])} failed: {words[-1] if words else 'without a word'}")
    return answer.output
