"""One build and at most three compose projects for all tests of the images; skipped where no engine answers.

``TANDEM_DOCKER_REQUIRED=1`` makes a missing engine a failure, for machines that must have one.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence

import pytest

from tests.docker.compose import Project
from tests.docker.engine import Engine, find_engine
from tests.docker.traffic import Prometheus, exercise, long_files, streaming

_RUNNING: list[Project] = []
_NOTES: list[str] = []
_SHOWN: dict[str, str] = {}


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine, or a skip with the reason."""
    found, reason = find_engine()
    if found is None:
        if os.environ.get("TANDEM_DOCKER_REQUIRED"):
            pytest.fail(f"TANDEM_DOCKER_REQUIRED is set, but {reason}")
        pytest.skip(f"needs a Docker engine: {reason}")
    yield found
    found.remove_images()


@pytest.fixture(scope="session")
def projects(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Projects]:
    """Makes compose projects, and takes them down at the end, whatever happened."""
    made = Projects(engine, tmp_path_factory)
    yield made
    made.close()


class Projects:
    """Compose projects with the images that were built once."""

    def __init__(self, engine: Engine, folders: pytest.TempPathFactory) -> None:
        self._engine, self._folders = engine, folders
        self._tag = ""

    def make(self, *files: str, profiles: Sequence[str] = (), settings: Mapping[str, str] | None = None) -> Project:
        """A project that publishes on free loopback ports; settings go before these."""
        folder = self._folders.mktemp("project")
        defaults = {"TANDEM_PUBLISH": "127.0.0.1:0", "TANDEM_PROMETHEUS_PUBLISH": "127.0.0.1:0"}
        project = Project(self._engine, folder, files, profiles, defaults | dict(settings or {}))
        self._tag = self._tag or project.name.rpartition("-")[2]
        project.settings = {"TANDEM_TAG": f"test-{self._tag}", **project.settings}
        _RUNNING.append(project)
        return project

    def close(self) -> None:
        """Take down every project, the last one first; raises the first failure after all were tried."""
        faults = []
        while _RUNNING:
            try:
                _RUNNING.pop().down()
            except AssertionError as error:
                faults.append(error)
        if faults:
            raise faults[0]


def needed(engine: Engine, reference: str) -> str:
    """The reference of an image that the engine has or can fetch; a skip where it cannot."""
    if not engine.has_image(reference):
        pytest.skip(f"the engine neither has the image {reference} nor can fetch it")
    return reference


@pytest.fixture(scope="session")
def base_image(engine: Engine) -> str:
    """What images are built from: TANDEM_BASE_IMAGE, or the Dockerfile's own choice, which has to be here."""
    return needed(engine, os.environ.get("TANDEM_BASE_IMAGE", "python:3.11-slim-bookworm"))


@pytest.fixture(scope="session")
def image(engine: Engine, projects: Projects, base_image: str) -> str:
    """The service's image for CPUs, built as `docker compose build` does."""
    (reference,) = projects.make("docker-compose.yml").build("tandem")
    size = engine.inspect(reference, "image")["Size"]
    base = engine.inspect(base_image, "image")["Size"]
    _NOTES.append(f"{reference}: {size / 1e6:.0f} MB, of them {base / 1e6:.0f} MB {base_image}")
    return reference


@pytest.fixture(scope="session")
def loadtest_image(projects: Projects, base_image: str) -> str:
    """The image that loads a server."""
    (reference,) = projects.make("docker-compose.yml", profiles=("loadtest",)).build("loadtest")
    return reference


@pytest.fixture(scope="session")
def stack(engine: Engine, projects: Projects, image: str) -> Project:
    """`docker compose up` with Prometheus, and a bound on the queue that a few requests at once go over."""
    settings = {"TANDEM_MAX_QUEUE_TOKENS": "6000"}
    reference = needed(engine, projects.make("docker-compose.yml").config()["services"]["prometheus"]["image"])
    if not engine.shell(reference, "command -v wget; true").strip():  # the official one has it, for the health check
        settings["TANDEM_PROMETHEUS_IMAGE"] = engine.build_standin("prometheus", "prometheus", reference)
    project = projects.make("docker-compose.yml", profiles=("observability",), settings=settings)
    project.up("tandem", "prometheus")
    exercise(project.address("tandem", 8000))
    return project


@pytest.fixture
def address(stack: Project) -> str:
    """Of the service in the stack."""
    return stack.address("tandem", 8000)


@pytest.fixture(scope="session")
def grafana(engine: Engine, stack: Project) -> str:
    """The address of Grafana, beside the stack."""
    needed(engine, stack.config()["services"]["grafana"]["image"])
    stack.up("grafana")
    return stack.address("grafana", 3000)


@pytest.fixture(scope="session")
def scaled(engine: Engine, projects: Projects, image: str, base_image: str) -> Project:
    """Two replicas behind nginx with a shared store; Debian's packages in the place of images that cannot be had."""
    files = ("docker-compose.yml", "docker-compose.scale.yml")
    services = projects.make(*files).config()["services"]
    settings = {"TANDEM_REPLICAS": "2"}
    for name in ("nginx", "store"):
        if not engine.has_image(services[name]["image"]):
            settings[f"TANDEM_{name.upper()}_IMAGE"] = engine.build_standin("packages", name, base_image)
    project = projects.make(*files, settings=settings)
    project.up()
    return project


@pytest.fixture(scope="module")
def prometheus(stack: Project) -> Iterator[Prometheus]:
    """The stack's Prometheus after some scrapes, while requests of both priorities and long files are answered."""
    found = Prometheus(stack.address("prometheus", 9090))
    address = stack.address("tandem", 8000)
    interactive = streaming(address, clients=1, pause=0.2, first=50_000)
    bulk = streaming(address, clients=1, pause=0.2, first=70_000, priority="bulk")
    exercise(address)  # again, for other tests may have put a new container in the place of the old one
    with interactive, bulk, long_files(address):
        found.wait_for_rates()
        yield found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what the containers logged to the report of a failed test."""
    report = yield
    if report.failed and "docker" in item.path.parts:
        for project in _RUNNING:
            logs = project.logs()
            report.sections.append(
                (f"logs of {project.name}", logs if _SHOWN.get(project.name) != logs else "as before")
            )
            _SHOWN[project.name] = logs
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how large the image is."""
    for note in _NOTES:
        terminalreporter.write_line(note)
