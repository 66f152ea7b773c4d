"""``.env.example`` and ``deploy/docker/settings.env``: what ``docker compose`` takes from a file ``.env``.

Compose reads ``.env`` for itself. ``settings.env`` names every setting of the service without a value, which means to
Compose: as it is in the shell or in ``.env``, and not at all where it is in neither.
"""

from __future__ import annotations

import textwrap

from service.configuration import is_secret, variable_of
from service.flags import plain_default
from service.settings import Settings

# Settings that the image makes, since folders, address and port inside a container are nobody's choice.
OF_THE_IMAGE = ("config", "bundles", "data", "host", "port")
# What uvicorn and OpenTelemetry read themselves; not OTEL_RESOURCE_ATTRIBUTES, which `docker` sets for itself.
OF_LIBRARIES = (
    "FORWARDED_ALLOW_IPS",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_SERVICE_NAME",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
)
# Variables of the compose files: name, default there, meaning.
OF_COMPOSE: tuple[tuple[str, str, str], ...] = (
    (
        "TANDEM_PUBLISH",
        "127.0.0.1:8000",
        "Where this machine answers: this machine only; 8000 = every network that it is in, which Docker also opens in"
        " most firewalls. See docs/deploy.md before you do so.",
    ),
    ("TANDEM_CPUS", "0", "Cores that the service may use, such as 3.5; 0 = all there are."),
    ("TANDEM_MEMORY", "4g", "Memory that the service may use, files in /tmp included (with a GPU: 16g)."),
    ("TANDEM_PIDS", "1024", "Processes and threads of the service."),
    ("TANDEM_OPEN_FILES", "16384", "Open files; more than twice TANDEM_MAX_CONNECTIONS."),
    ("TANDEM_STOP_GRACE", "45s", "Time to stop in; some seconds more than TANDEM_SHUTDOWN_TIMEOUT."),
    ("TANDEM_TAG", "latest", "Tag of the images that are built."),
    ("TANDEM_BASE_IMAGE", "python:3.11-slim-bookworm", "What they are built on."),
    ("TANDEM_GPUS", "1", "docker-compose.gpu.yml: number of GPUs, or all."),
    ("TANDEM_REPLICAS", "2", "docker-compose.scale.yml: replicas behind nginx."),
    ("TANDEM_NGINX_IMAGE", "nginx:1.28-alpine", "docker-compose.scale.yml: nginx, 1.27.3 or newer."),
    ("TANDEM_NGINX_CPUS", "1", "docker-compose.scale.yml: cores of nginx."),
    ("TANDEM_NGINX_MEMORY", "512m", "docker-compose.scale.yml: memory of nginx, bodies in /tmp included."),
    ("TANDEM_STORE_IMAGE", "valkey/valkey:8-alpine", "docker-compose.scale.yml: the store of rates and quotas."),
    ("TANDEM_STORE_CPUS", "0.5", "docker-compose.scale.yml: cores of the store."),
    ("TANDEM_STORE_MEMORY", "192m", "docker-compose.scale.yml: memory of the store."),
    ("TANDEM_PROMETHEUS_PUBLISH", "127.0.0.1:9090", "Profile observability: where Prometheus answers."),
    ("TANDEM_PROMETHEUS_IMAGE", "prom/prometheus:v2.55.1", "Profile observability: Prometheus."),
    ("TANDEM_PROMETHEUS_SIZE", "4GB", "Profile observability: disk that metrics may take; they are kept for 35 days."),
    ("TANDEM_PROMETHEUS_CPUS", "1", "Profile observability: cores of Prometheus."),
    ("TANDEM_PROMETHEUS_MEMORY", "1g", "Profile observability: memory of Prometheus."),
    (
        "TANDEM_GRAFANA_PUBLISH",
        "127.0.0.1:3000",
        "Profile observability: where Grafana answers. It asks for no password: put a proxy that does before others.",
    ),
    ("TANDEM_GRAFANA_IMAGE", "grafana/grafana:11.6.1", "Profile observability: Grafana."),
    ("TANDEM_GRAFANA_ROLE", "Viewer", "Profile observability: what whoever reaches Grafana may do; Editor, Admin."),
    ("TANDEM_GRAFANA_CPUS", "1", "Profile observability: cores of Grafana."),
    ("TANDEM_GRAFANA_MEMORY", "512m", "Profile observability: memory of Grafana."),
    ("LOADTEST_SCENARIO", "mixed", "Profile loadtest: interactive, documents, bulk or mixed."),
    ("LOADTEST_USERS", "10", "Profile loadtest: users at a time."),
    ("LOADTEST_SPAWN_RATE", "5", "Profile loadtest: users that begin in a second."),
    ("LOADTEST_RUN_TIME", "60s", "Profile loadtest: how long."),
    ("LOADTEST_HOST", "http://tandem:8000", "Profile loadtest: the server (with docker-compose.scale.yml: nginx)."),
    ("LOADTEST_PAIR", "", "Profile loadtest: source and target such as de-en; none = the first that is served."),
    ("LOADTEST_API_KEY", "", "Profile loadtest: a key, where the server asks for one."),
    ("LOADTEST_TEXTS", "", "Profile loadtest: a file in the container with one sentence a line; none = made up."),
    ("LOADTEST_SEED", "", "Profile loadtest: a whole number that fixes the texts; none = new ones each time."),
    ("LOADTEST_THINK", "1", "Profile loadtest: factor on the time that users think."),
    ("LOADTEST_RETRIES", "5", "Profile loadtest: times that a refused request is sent again."),
    ("LOADTEST_BULK_TEXTS", "32", "Profile loadtest: texts of a bulk request."),
    ("TANDEM_LOADTEST_CPUS", "1", "Profile loadtest: cores of Locust."),
    ("TANDEM_LOADTEST_MEMORY", "512m", "Profile loadtest: memory of Locust."),
)
_WIDTH = 118
_HEAD = """\
# What `docker compose` takes from its environment, each with its default. Copy this file to .env, and take the # away
# before what you change; variables of the shell go before it. Written by `python -m deploy.reference`.
#
# Inside the container the addresses and folders are fixed: TANDEM_HOST, TANDEM_PORT, TANDEM_DATA, TANDEM_BUNDLES and
# TANDEM_CONFIG are not taken from here. `docker compose exec tandem tandem config` shows what holds.
"""


def env_example() -> str:
    """A file ``.env`` with every variable of the compose files and every setting, as comments."""
    lines = [_HEAD, "# --- docker compose " + "-" * 98]
    for name, default, meaning in OF_COMPOSE:
        lines += ["", *_comment(meaning), f"#{name}={default}"]
    lines += ["", "", "# --- the service (docs/configuration.md) " + "-" * 77]
    for name, field in Settings.model_fields.items():
        if name not in OF_THE_IMAGE:
            lines += ["", *_comment(_meaning(name)), f"#{variable_of(name)}={plain_default(field.default)}"]
    lines += ["", "", "# --- libraries of the service " + "-" * 88, ""]
    lines += _comment(
        "Addresses of proxies whose X-Forwarded-Proto is believed, or *; and OpenTelemetry's own variables."
    )
    lines += [f"#{name}=" for name in OF_LIBRARIES]
    return "\n".join(lines) + "\n"


def passed_settings() -> str:
    """Names of the variables that reach the service's container, one a line."""
    head = "# Taken from the shell or from .env where they are set there. Written by `python -m deploy.reference`.\n"
    names = [variable_of(name) for name in Settings.model_fields if name not in OF_THE_IMAGE]
    return head + "".join(f"{name}\n" for name in (*names, *OF_LIBRARIES))


def _meaning(name: str) -> str:
    meaning = Settings.model_fields[name].description or ""
    return f"{meaning} Secret." if is_secret(name) else meaning


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
