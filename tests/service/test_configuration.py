"""Settings from flags, environment and file; the command's exit status."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from tandem.deploy.cli import app, load_command
from tandem.models.errors import ConfigError
from tandem.service.configuration import flag_of, is_secret, read_configuration
from tandem.service.http.listening import AddressTaken, allow_files, listen, url_of
from tandem.service.settings import RETIRED, Settings
from tests.command import ends
from tests.service.support import tiny_bundle

Run = Callable[..., tuple[int, str, str]]
SECRET = "not-for-anybodys-eyes"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("TANDEM_"):
            monkeypatch.delenv(name)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in this process: exit status, output, errors."""
    monkeypatch.setattr("tandem.service.server.configure_logging", lambda settings: None)
    return ends


def written(folder: Path, text: str) -> str:
    file = folder / "tandem.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_flags_go_before_the_environment_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, 'port = 1001\nhost = "0.0.0.0"\nmax_texts = 7\nbundles = ["a", "b"]\n')
    monkeypatch.setenv("TANDEM_CONFIG", path)
    monkeypatch.setenv("TANDEM_PORT", "1002")
    monkeypatch.setenv("TANDEM_HOST", "::1")
    found = read_configuration({"port": "1003"})
    settings = found.settings
    assert (settings.port, settings.host, settings.max_texts, settings.threads) == (1003, "::1", 7, 1)
    assert settings.bundles == (Path("a"), Path("b"))
    origins = [found.origins[name] for name in ("port", "host", "max_texts", "threads", "config")]
    assert origins == ["--port", "TANDEM_HOST", path, "default", "TANDEM_CONFIG"]
    assert Settings().max_texts == 7  # where nobody reads origins, too


def test_an_empty_variable_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose passes on names that have no value."""
    path = tmp_path / "tandem.toml"
    path.write_text("port = 8123\n", encoding="utf-8")
    for name in ("PORT", "TLS_KEY", "ADMIN_KEY", "BUNDLES"):
        monkeypatch.setenv(f"TANDEM_{name}", "")
    found = read_configuration({"config": path})
    assert (found.settings.port, found.origins["port"]) == (8123, str(path))
    assert (found.settings.tls_key, found.settings.admin_key) == (None, None)
    assert (found.settings.bundles, found.origins["bundles"]) == ((Path("bundles"),), "default")


def test_the_file_of_the_flag_goes_before_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_CONFIG", str(tmp_path / "missing.toml"))
    path = written(tmp_path, "max_texts = 7\n")
    assert read_configuration({"config": path}).settings.max_texts == 7
    with pytest.raises(ConfigError, match=r"missing.toml: cannot read the file of settings: No such file"):
        read_configuration({})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("prot = 1", r"there is no setting 'prot': did you mean port"),
        ("max_beamsize = 1", r"did you mean max_beam_size"),
        ("zzz = 1", r"there is no setting 'zzz'; docs/configuration.md lists all of them"),
        ('config = "other.toml"', r"there is no setting 'config'"),
        ("port = 70000", r"port \(.*tandem.toml\): must be at most 65535, but is 70000"),
        ("port = ", r"the file of settings is not TOML"),
        ("prot = 1\nthreads = 0", r"'prot'.*threads"),
    ],
)
def test_faults_of_the_file_are_named(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        read_configuration({"config": written(tmp_path, text)})


def test_unknown_variables_are_named_but_those_of_kubernetes() -> None:
    with pytest.raises(ConfigError, match="there is no setting TANDEM_PROT: did you mean TANDEM_PORT"):
        read_configuration({}, {"TANDEM_PROT": "1"})
    foreign = {"TANDEM_SERVICE_HOST": "10.0.0.1", "TANDEM_PORT_8000_TCP_ADDR": "10.0.0.1", "OTHER": "1"}
    assert read_configuration({}, foreign).settings == Settings()


def test_retired_settings_are_told_and_keep_nobody_from_serving(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not RETIRED & set(Settings.model_fields)
    monkeypatch.setenv("TANDEM_GPU_COMPILE", "auto")
    path = written(tmp_path, "gpu_triton = true\nport = 8123\n")
    found = read_configuration({"config": path})
    assert (found.settings.port, found.retired) == (8123, ("gpu_compile", "gpu_triton"))
    assert read_configuration({}, {"TANDEM_GPU_TRITON": ""}).retired == ()
    with capture_logs() as logs:
        assert run("serve", "--config", path, "--tls-key", "missing.pem")[0] == 2
    assert [one["setting"] for one in logs if one["event"] == "setting_retired"] == ["gpu_compile", "gpu_triton"]


def test_every_setting_but_secrets_has_a_flag() -> None:
    flags = {flag_of(name) for name in Settings.model_fields if not is_secret(name)}
    assert {flag_of(parameter.name) for parameter in load_command("serve").params} == flags | {"--paths"}
    assert is_secret("admin_key") and not is_secret("port")
    shown_help = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    assert all(flag in shown_help for flag in flags)


def test_a_secret_that_is_refused_is_not_quoted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_ADMIN_KEY", "short-secret")
    status, _, err = run("serve")
    assert status == 2
    assert "admin_key (TANDEM_ADMIN_KEY)" in err and "short-secret" not in err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("serve", "--max-beam-size", "1000"), 2, "max_beam_size (--max-beam-size): must be at most"),
        (("serve", "--config", "no-such.toml"), 2, "no-such.toml: cannot read the file of settings"),
        (("serve", "--no-such-flag"), 2, "No such option"),
        (("serve", "no-such-folder", "--port", "0"), 2, "no-such-folder is no folder"),
        (("serve", "--port", "0", "--host", "no.such.host.invalid"), 2, "there is no such host"),
        (("prepare", "no-such.toml"), 2, "no-such.toml"),
    ],
)
def test_the_exit_status_tells_what_kind_of_failure_it_was(
    run: Run, arguments: tuple[str, ...], status: int, message: str
) -> None:
    found, _, err = run(*arguments)
    assert (found, "Traceback" in err) == (status, False)
    assert message in err


def test_a_broken_bundle_is_a_failure_of_one_line(tmp_path: Path, run: Run) -> None:
    (tiny_bundle(tmp_path).path / "weights.safetensors").write_bytes(b"short")
    status, _, err = run("serve", str(tmp_path), "--port", "0")
    assert status == 1
    assert len(err.splitlines()) == 1 and "weights.safetensors was altered or truncated" in err


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_in_use_is_a_failure_of_one_line(taken: int, run: Run) -> None:
    status, _, err = run("serve", "bundles", "--port", str(taken))
    assert status == 1
    assert (
        err.startswith(f"tandem: cannot listen on 127.0.0.1 port {taken}: another program does")
        and err.count("\n") == 1
    )


def test_listening_takes_every_address_of_a_host(taken: int) -> None:
    sockets = listen("localhost", 0)
    ports = {one.getsockname()[1] for one in sockets}
    for one in sockets:
        one.close()
    assert len(ports) == 1 and ports != {0}
    assert url_of(sockets[:0] or listening("127.0.0.1")).startswith("http://127.0.0.1:")
    with pytest.raises(AddressTaken):
        listen("127.0.0.1", taken)
    with pytest.raises(ConfigError, match="set host to an address of this machine"):
        listen("192.0.2.1", 0)


def listening(host: str) -> Any:
    class Stub:
        def getsockname(self) -> tuple[str, int]:
            return host, 1

    return [Stub()]


def test_a_lifespan_that_fails_is_one_line_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(parts: object) -> NoReturn:
        raise ConfigError("models.json cannot be read")

    monkeypatch.setattr("tandem.service.server.build_engine", lambda settings: _engine())
    monkeypatch.setattr("tandem.service.app._openers", lambda: [damaged])
    status, _, err = run("serve", "--port", "0")
    assert status == 2
    assert "models.json cannot be read" in err and "Traceback" not in err


def _engine() -> Any:
    from tandem.service.engine import Engine

    return Engine()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_signal_ends_the_process_with_status_0(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    arguments = [sys.executable, "-m", "tandem", "serve", str(root / "bundles" / "de-fr-en"), "--port", "0"]
    with subprocess.Popen(arguments, cwd=root, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if json.loads(line)["event"] == "listening":
                process.send_signal(signal.SIGTERM)
                break
        events = [json.loads(line)["event"] for line in process.stderr]
        assert process.wait(30) == 0
    assert events == ["draining", "drained", "stopped"]


@pytest.fixture
def hard_limit() -> Iterator[int]:
    """Of open files, which no process may raise; the soft one is as before afterwards."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        pytest.skip("no bound on open files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 500), hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_files_may_be_open_than_a_shell_allows(hard_limit: int) -> None:
    import resource

    with capture_logs() as lines:
        allow_files(10)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (520, hard_limit)
        allow_files(1)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 520  # what is more than enough stays
        assert not lines
        allow_files(hard_limit)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard_limit
    assert [(line["event"], line["allowed"], line["needed"]) for line in lines] == [
        ("few_open_files", hard_limit, 2 * hard_limit + 500)
    ]
