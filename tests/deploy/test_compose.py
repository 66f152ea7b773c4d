"""The image, the compose files and nginx's configuration hold what they promise, as far as that can be read."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tandem.service.settings import Settings
from tests.deploy.listening import Handler, listening
from tests.shipped import ROOT

COMPOSE = ("docker-compose.yml", "docker-compose.gpu.yml", "docker-compose.scale.yml")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
NGINX = (ROOT / "deploy" / "nginx" / "nginx.conf").read_text(encoding="utf-8")
DEFAULTS = {name: field.default for name, field in Settings.model_fields.items()}
_VARIABLE = re.compile(r"\$\{(\w+):?-([^}]*)\}")
_SECONDS_AFTER_WORK = 5  # in which the service writes its last replies


class _Loader(yaml.SafeLoader):
    """YAML as Compose reads it, with its own tags."""


_Loader.add_constructor("!reset", lambda loader, node: None)


def composed(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.load((ROOT / name).read_text(encoding="utf-8"), _Loader)  # a SafeLoader
    return content


def of_images() -> Iterator[Any]:
    """Every service where it is first described, with the file's name."""
    for name in COMPOSE:
        for service, content in composed(name)["services"].items():
            if "logging" in content or name == "docker-compose.yml":
                yield pytest.param(content, id=f"{name}-{service}")


def expanded(value: str) -> str:
    """With the default of each variable in its place."""
    return _VARIABLE.sub(lambda found: found[2], value)


def seconds(value: str) -> float:
    return float(value.removesuffix("s"))


# --- settings -------------------------------------------------------------------------------------------------------


def test_the_example_names_every_variable_of_the_compose_files_with_its_default() -> None:
    used: dict[str, str] = {}
    for name in COMPOSE:
        content = re.sub(r"#.*", "", (ROOT / name).read_text(encoding="utf-8"))
        for variable, default in _VARIABLE.findall(content):
            used.setdefault(variable, default)
        used |= dict.fromkeys(re.findall(r"^ +(LOADTEST_\w+):$", content, re.MULTILINE), "")
    passed = (ROOT / "deploy" / "docker" / "settings.env").read_text(encoding="utf-8").splitlines()
    settings = {f"TANDEM_{name.upper()}" for name in DEFAULTS} | {*passed}  # those of extras that were deleted, too
    of_compose, _, _ = EXAMPLE.partition("# --- the service")
    documented = dict(re.findall(r"(?<=\n)# [^\n]+\n#(\w+)=(.*)", of_compose))
    assert used.keys() - settings == documented.keys()
    assert not documented.keys() & settings
    for variable, default in used.items():
        if variable in documented and default:
            assert documented[variable] == default, variable


# --- compose --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("service", list(of_images()))
def test_every_service_is_confined(service: Mapping[str, Any]) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "5"}}
    limits = service["deploy"]["resources"]["limits"]
    assert limits.keys() == {"cpus", "memory", "pids"}
    assert re.fullmatch(r"[1-9]\d*[mg]", expanded(limits["memory"]))
    assert not service.get("privileged") and not service.get("cap_add")
    for mount in service.get("volumes", []):
        assert not mount.startswith("./") or mount.endswith(":ro"), mount


@pytest.mark.parametrize("service", list(of_images()))
def test_ports_are_opened_on_this_machine_only(service: Mapping[str, Any]) -> None:
    for port in service.get("ports", []):
        assert expanded(port).startswith("127.0.0.1:"), port


def test_volumes_are_named_and_declared() -> None:
    declared: set[str] = set()
    for name in COMPOSE:
        content = composed(name)
        declared |= (content.get("volumes") or {}).keys()
        for service in content["services"].values():
            sources = {mount.partition(":")[0] for mount in service.get("volumes", [])}
            assert {source for source in sources if not source.startswith("./")} <= declared
    assert {"state", "bundles", "backups", "replicas"} <= declared


def test_what_is_mounted_from_the_repository_is_there() -> None:
    for name in COMPOSE:
        for service in composed(name)["services"].values():
            for mount in service.get("volumes", []):
                source = mount.partition(":")[0]
                assert not source.startswith("./") or (ROOT / source).exists(), source


def test_combinations_that_the_documents_show_are_those_that_are_checked() -> None:
    """deploy/check.sh has Compose read each file on top of the base."""
    assert {path.name for path in ROOT.glob("docker-compose*.yml")} == set(COMPOSE)
    shown = []
    for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        text = document.read_text(encoding="utf-8").replace("\\\n", " ")
        commands = re.findall(r"docker compose((?: +(?:-f|--file|--profile|--env-file|-p)[ =]\S+)+)", text)
        shown += [re.findall(r"(?:-f|--file)[ =](\S+)", options) for options in commands]
    combined = {tuple(files) for files in shown if files}
    assert combined and combined <= {(COMPOSE[0], other) for other in COMPOSE[1:]}


def test_bounds_of_the_container_fit_the_settings() -> None:
    service = composed("docker-compose.yml")["services"]["tandem"]
    assert seconds(expanded(service["stop_grace_period"])) > DEFAULTS["shutdown_timeout"] + _SECONDS_AFTER_WORK
    assert int(expanded(service["ulimits"]["nofile"]["soft"])) > 2 * DEFAULTS["max_connections"]


def test_images_of_this_repository_are_never_pulled() -> None:
    for name in COMPOSE:
        for service in composed(name)["services"].values():
            if "context" in service.get("build", {}):
                assert service["pull_policy"] == "never"


# --- nginx ----------------------------------------------------------------------------------------------------------


def directive(name: str) -> str:
    found = re.findall(rf"^\s*{name} ([^;]+);", NGINX, re.MULTILINE)
    assert found, name
    return str(found[0])


def test_the_proxy_waits_longer_than_the_service() -> None:
    assert seconds(directive("proxy_read_timeout")) > DEFAULTS["request_timeout"] + _SECONDS_AFTER_WORK
    # What was sent on once the service has given up would be worked on twice.
    assert seconds(directive("proxy_next_upstream_timeout")) < seconds(directive("proxy_read_timeout"))


def test_the_proxy_closes_idle_connections_first() -> None:
    upstream = re.findall(r"^    keepalive_timeout (\d+)s;", NGINX, re.MULTILINE)
    assert len(upstream) == 2
    assert all(int(value) < DEFAULTS["keep_alive_timeout"] for value in upstream)


def test_the_proxy_lets_bodies_through_for_the_service_to_judge() -> None:
    assert int(directive("client_max_body_size").removesuffix("m")) << 20 > DEFAULTS["max_body_bytes"]
    for route in ("/files", "/translate_file"):
        (block,) = re.findall(rf"location = {route} {{(.*?)}}", NGINX, re.DOTALL)
        assert "client_max_body_size 0;" in block and "proxy_request_buffering off;" in block


def test_the_proxy_goes_to_another_replica_where_one_refuses() -> None:
    everywhere = re.findall(r"^  proxy_next_upstream ([^;]+);", NGINX, re.MULTILINE)
    assert [{"error", "timeout", "http_503", "non_idempotent"} <= set(value.split()) for value in everywhere] == [True]
    servers = re.findall(r"^\s*server (\S+ [^;{]+);", NGINX, re.MULTILINE)
    assert servers == ["tandem:8000 resolve max_fails=0"] * 2


# --- image ----------------------------------------------------------------------------------------------------------


def test_the_image_says_which_version_it_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(re.findall(r"^ARG VERSION=(.*)$", DOCKERFILE, re.MULTILINE)) == {project["version"]}


def test_the_image_is_built_from_locks_without_a_registry_s_frontend() -> None:
    assert not re.search(r"^#\s*syntax\s*=", DOCKERFILE, re.MULTILINE | re.IGNORECASE)
    installs = re.findall(r"pip --python \S+ install ((?:.|\\\n)*?)(?:\n[A-Z#]|&&)", DOCKERFILE)
    assert len(installs) == 3
    for install in installs:
        assert "--require-hashes" in install or {"--no-deps", "--no-index"} <= set(install.split())


def test_the_image_runs_as_a_user_without_rights() -> None:
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["10001:10001"] * 2
    assert "\nSTOPSIGNAL SIGTERM\n" in DOCKERFILE
    assert "ORT_DISABLE_TELEMETRY=1" in DOCKERFILE
    (timeout,) = re.findall(r"HEALTHCHECK .*--timeout=(\d+)s", DOCKERFILE)
    assert int(timeout) > DEFAULTS["probe_timeout"]


class _Answers(Handler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/readyz" else 404)
        self.end_headers()
        self.wfile.write(b"reason")


def healthcheck(port: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "deploy" / "docker" / "healthcheck.py"
    command = [sys.executable, "-IS", str(script)]
    environment = {"TANDEM_PORT": port}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("status", "expected"), [(200, 0), (503, 1)])
def test_the_health_check_follows_readiness(status: int, expected: int) -> None:
    handler = type("Handler", (_Answers,), {"status": status})
    with listening(handler) as url:
        port = url.rpartition(":")[2]
        done = healthcheck(port)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (expected, "reason", "")
    done = healthcheck(port)  # closed now
    assert done.returncode == 1
    assert "no answer from port" in done.stdout


def test_slimming_keeps_what_is_imported(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    kept = [packages / name for name in ("one/__init__.py", "lxml/etree.so", "one-1.dist-info/licenses/LICENSE")]
    kept += [packages / "onnxruntime" / "capi" / f"{name}.so" for name in ("libonnxruntime_providers_cuda", "state")]
    kept += [packages / "babel" / "locale-data" / f"{language}.dat" for language in ("root", "de", "en", "fr")]
    unused = (
        "babel/locale-data/ja.dat",
        "onnxruntime/capi/libonnxruntime.so.1.9",
        "one/tests/test_it.py",
        "one/__init__.pyi",
        "onnxruntime/tools/a.py",
        "lxml/objectify.so",
        "two/a.h",
    )
    gone = [packages / name for name in unused]
    for path in (*kept, *gone):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    script = ROOT / "deploy" / "docker" / "slim.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, capture_output=True)
    assert [path.exists() for path in kept] == [True] * len(kept)
    assert [path.exists() for path in gone] == [False] * len(gone)


# --- replicas -------------------------------------------------------------------------------------------------------

needs_flock = pytest.mark.skipif(not shutil.which("flock"), reason="flock of util-linux is not installed")


@pytest.fixture
def replica_environment(tmp_path: Path) -> dict[str, str]:
    """Folders of the replicas, and a `tandem` that says what it was called with and then waits to be told to end."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "tandem"
    program.write_text('#!/bin/sh\necho "${TANDEM_DATA##*/} $*"\nif [ "$1" = serve ]; then read -r _; fi\n', "utf-8")
    program.chmod(0o755)
    (tmp_path / "first").mkdir()
    (tmp_path / "others").mkdir()
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    folders = {"TANDEM_DATA": str(tmp_path / "first"), "REPLICA_FOLDERS": str(tmp_path / "others")}
    return {"PATH": path, "PYTHONPATH": str(ROOT), **folders}


def replica(environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = ["sh", str(ROOT / "deploy" / "docker" / "replica"), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@needs_flock
def test_replicas_take_folders_of_their_own(replica_environment: dict[str, str]) -> None:
    with ExitStack() as ending:

        def served() -> subprocess.Popen[str]:
            process = ending.enter_context(replica(replica_environment, "serve"))
            ending.callback(process.kill)
            return process

        one = served()
        assert first_line(one) == "first serve"
        two = served()
        assert first_line(two) == "2 serve"
        one.communicate("end\n")
        after_one = served()
        assert first_line(after_one) == "first serve"
        Path(replica_environment["TANDEM_DATA"], "keys.db").touch()
        third = served()
        assert first_line(third) == "3 serve"
        assert "keys import" in third.communicate("end\n")[1]  # of the first one's, before it serves
        for process in (two, after_one):
            assert process.communicate("end\n")[1] == ""
        assert [process.returncode for process in (one, two, after_one, third)] == [0] * 4


@needs_flock
def test_replicas_get_keys_and_backups(replica_environment: dict[str, str]) -> None:
    folder = Path(replica_environment["REPLICA_FOLDERS"], "2")
    folder.mkdir()
    told, _ = replica(replica_environment, "keys").communicate()
    assert f"keys import {replica_environment['TANDEM_DATA']}/keys.db --data {folder}/" in told
    told, _ = replica(replica_environment, "backup", "now").communicate()
    assert told.splitlines() == ["first backup /srv/tandem/backups/now/1", "2 backup /srv/tandem/backups/now/2"]
    wrong = replica(replica_environment, "start")
    assert "usage" in wrong.communicate()[1]
    assert wrong.returncode == 2
