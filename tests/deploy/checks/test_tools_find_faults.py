"""The real tools find what is wrong: each file of this project is broken in one place and looked at again.

What is broken is a copy. A tool that can neither be found nor fetched is a reason to skip, and says so.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from deploy.checks import compose, files, images, kubernetes, nginx, prometheus
from deploy.checks.outcome import MissingTool
from deploy.checks.tools import Toolbox
from deploy.env_example import env_example, passed_settings

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
Look = Callable[[Path, Toolbox], list[str]]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy-checks")]


@pytest.fixture(scope="module")
def box() -> Toolbox:
    return Toolbox(ROOT / ".tools")


def with_tool(box: Toolbox, name: str) -> None:
    try:
        box.command(name)
    except MissingTool as missing:
        pytest.skip(str(missing))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of everything that is looked at."""
    for name in ("deploy", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (*ROOT.glob("docker-compose*.yml"), *ROOT.glob("Dockerfile*"), ROOT / "pyproject.toml"):
        shutil.copy(path, tmp_path)
    shutil.copy(ROOT / ".env.example", tmp_path)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def of_overlay(overlay: str, *components: str) -> Look:
    return lambda root, box: kubernetes.overlay_faults(root, box, overlay, components, {})


def of_compose(*names: str) -> Look:
    return lambda root, box: compose.faults(root, box, names)


def in_prometheus(look: Callable[[Path, Toolbox], list[str]]) -> Look:
    return lambda root, box: look(root / "deploy" / "prometheus", box)


BROKEN: list[tuple[str, str, str, str, Look, str]] = [
    ("hadolint", "Dockerfile", "USER 10001:10001\nWORKDIR /var/lib", "USER root\nWORKDIR /var/lib",
     lambda root, box: images.faults(root, box, "Dockerfile"), "DL3002"),
    ("hadolint", "Dockerfile", "EXPOSE 8000", "EXPOSE http", lambda root, box: images.faults(root, box, "Dockerfile"),
     "unexpected"),
    ("compose", "docker-compose.yml", "  read_only: true", "  read_onyl: true", of_compose("docker-compose.yml"),
     "read_onyl"),
    ("compose", "docker-compose.yml", "./deploy/prometheus:", "./deploy/prometeus:", of_compose("docker-compose.yml"),
     "deploy/prometeus does not exist"),
    ("compose", "docker-compose.scale.yml", "networks: [default, store]", "networks: [default, stores]",
     of_compose("docker-compose.yml", "docker-compose.scale.yml"), "stores"),
    ("compose", "docker-compose.gpu.yml", "capabilities: [gpu]", "capabilities: gpu",
     of_compose("docker-compose.yml", "docker-compose.gpu.yml"), "capabilities"),
    ("promtool", "deploy/prometheus/prometheus.yml", "scrape_configs:", "scrape_config:",
     in_prometheus(prometheus.configuration_faults), "scrape_config"),
    ("promtool", "deploy/prometheus/rules/recordings.yml", "expr:", "exrp:",
     in_prometheus(prometheus.rules_faults), "exrp"),
    ("promtool", "deploy/prometheus/rules/recordings.yml", "expr:", "exrp:",
     in_prometheus(prometheus.configuration_faults), "exrp"),
    ("kustomize", "deploy/kubernetes/base/kustomization.yaml", "  - service.yaml", "  - services.yaml",
     of_overlay("cpu"), "services.yaml"),
    ("kustomize", "deploy/kubernetes/base/kustomization.yaml", "resources:", "resorces:", of_overlay("cpu"),
     "resorces"),
    ("kustomize", "deploy/kubernetes/base/deployment.yaml", "periodSeconds: 2", "periodSecond: 2", of_overlay("cpu"),
     "'periodSecond' was unexpected"),
    ("kustomize", "deploy/kubernetes/base/settings.env", "TANDEM_DATA=", "TANDEM_DATEN=", of_overlay("gpu"),
     "TANDEM_DATEN: no such setting"),
    ("kustomize", "deploy/kubernetes/base/monitor.yaml", "- port: http", "- port: https", of_overlay("gpu"),
     "no service has a port called https"),
    ("kustomize", "deploy/kubernetes/overlays/gpu/kustomization.yaml", "-gpu", "", of_overlay("gpu"),
     "must have the tag"),
    ("kustomize", "deploy/kubernetes/overlays/gpu/gpu.yaml", 'limits: {cpu: "4", ', "limits: {", of_overlay("gpu"),
     "'cpu' is a required property"),
    ("kustomize", "deploy/kubernetes/components/keys/keys.yaml", "name: state,", "name: stat,",
     of_overlay("cpu", "keys"), "volume stat is mounted, and not there"),
    ("kustomize", "deploy/kubernetes/components/keys/kustomization.yaml", "replacements:", "# replacements:",
     of_overlay("cpu", "keys"), ""),
    ("kustomize", "deploy/kubernetes/components/limits/kustomization.yaml", "value: tandem-secrets}", "value: x}",
     of_overlay("cpu", "limits"), "testing"),
    ("kustomize", "deploy/kubernetes/components/single/single.yaml", "type: Recreate", "type: RollingUpdate",
     of_overlay("cpu", "single"), "the strategy Recreate"),
    ("nginx", "deploy/nginx/nginx.conf", "least_conn;", "most_conn;",
     lambda root, box: nginx.faults(root / "deploy/nginx/nginx.conf", box), "most_conn"),
    ("nginx", "deploy/nginx/nginx.conf", "proxy_pass http://tandem;", "proxy_pass http://tandems;",
     lambda root, box: nginx.faults(root / "deploy/nginx/nginx.conf", box), "tandems"),
]  # fmt: skip


def passing_looks() -> list[tuple[str, Look]]:
    """Each look once, with the tool that it needs."""
    return [
        ("hadolint", lambda root, box: images.faults(root, box, "Dockerfile")),
        ("compose", of_compose("docker-compose.yml", "docker-compose.scale.yml")),
        ("promtool", in_prometheus(prometheus.configuration_faults)),
        ("promtool", in_prometheus(prometheus.rules_faults)),
        ("kustomize", of_overlay("cpu", "keys", "limits", "bundles")),
        ("kustomize", of_overlay("gpu", "single")),
        ("nginx", lambda root, box: nginx.faults(root / "deploy/nginx/nginx.conf", box)),
    ]


@pytest.mark.parametrize("number", range(len(passing_looks())))
def test_a_copy_has_no_faults(number: int, project: Path, box: Toolbox) -> None:
    """So what the other tests see comes from what they break."""
    tool, look = passing_looks()[number]
    with_tool(box, tool)
    assert look(project, box) == []


@pytest.mark.parametrize(
    ("tool", "file", "old", "new", "look", "words"),
    BROKEN,
    ids=[f"{file}: {new.strip()[:30]}" for _, file, _, new, _, _ in BROKEN],
)
def test_a_broken_file_is_found(
    tool: str, file: str, old: str, new: str, look: Look, words: str, project: Path, box: Toolbox
) -> None:
    with_tool(box, tool)
    change(project / file, old, new)
    faults = look(project, box)
    assert faults
    assert words in "\n".join(faults)


RULES = "groups: [{name: a, rules: [{record: 'tandem:up:sum', expr: 'sum(up)'}]}]\n"
RULES_TEST = """\
rule_files: [../rules/a.yml]
tests:
  - input_series: [{series: up, values: 1 1}]
    promql_expr_test: [{expr: "tandem:up:sum", eval_time: 1m, exp_samples: [{labels: "tandem:up:sum", value: 1}]}]
"""


def test_a_rule_that_does_not_say_what_its_test_expects_is_found(tmp_path: Path, box: Toolbox) -> None:
    """A rule of the test's own: those of the project take a minute."""
    with_tool(box, "promtool")
    for name, text in (("rules", RULES), ("tests", RULES_TEST)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yml").write_text(text, encoding="utf-8")
    assert prometheus.tests_faults(tmp_path, box) == []
    change(tmp_path / "rules" / "a.yml", "sum(up)", "sum(up) + 1")
    assert "tandem:up:sum" in prometheus.tests_faults(tmp_path, box)[0]


def test_a_scenario_that_locust_cannot_read_is_found(project: Path) -> None:
    if find_spec("locust") is None:  # not imported: it changes how threads of this process work
        pytest.skip("Locust is not installed")
    assert files.scenario_faults(project) == []
    (project / files.LOCUST_FILE).write_text("from locust import nothing\n", encoding="utf-8")
    assert "nothing" in files.scenario_faults(project)[0]


def test_settings_that_are_not_in_the_example_are_found(project: Path) -> None:
    (project / files.EXAMPLE).write_text(env_example(), encoding="utf-8")
    (project / files.PASSED).write_text(passed_settings(), encoding="utf-8")
    assert files.example_faults(project) == []
    change(project / ".env.example", "TANDEM_MAX_TEXTS", "TANDEM_MOST_TEXTS")
    assert files.example_faults(project) == [
        ".env.example does not match the settings; run python -m deploy.reference",
    ]


# --- what docs/kubernetes.md shows ----------------------------------------------------------------------------------


def test_the_overlay_of_the_guide_can_be_built(tmp_path: Path, box: Toolbox) -> None:
    with_tool(box, "kustomize")
    (example,) = re.findall(r"^```yaml\n(# mine/kustomization\.yaml\n.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(example, encoding="utf-8")
    (mine / "keys.db").write_bytes(b"a database")
    (mine / "secrets.env").write_text("TANDEM_LIMITS_URL=redis://store:6379/0\n", encoding="utf-8")
    shutil.copytree(ROOT / "deploy" / "kubernetes", tmp_path / "tandem" / "deploy" / "kubernetes")
    answer = box.run("kustomize", [mine], tmp_path)
    assert answer.status == 0, answer.words
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(answer.output))
    assert not [fault for document in documents for fault in kubernetes.schema_faults(document)]
    assert {document["metadata"]["namespace"] for document in documents} == {"tandem"}
    (pod,) = (one["spec"]["template"]["spec"] for one in documents if one["kind"] == "Deployment")
    containers = [*pod["initContainers"], *pod["containers"]]
    version = kubernetes.version_of(ROOT)
    assert {one["image"] for one in containers} == {f"registry.example.org/tandem:{version}"}
    # What is generated has a hash in its name, and the pods speak of it by that name.
    made = {one["metadata"]["name"] for one in documents if one["kind"] in ("ConfigMap", "Secret")}
    assert len(made) == 3 and all(re.search(r"-[a-z0-9]{10}$", name) for name in made)
    (server,) = pod["containers"]
    spoken = {source[kind]["name"] for source in server["envFrom"] for kind in source}
    spoken |= {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
    assert spoken == made
    (settings,) = (one["data"] for one in documents if one["kind"] == "ConfigMap")
    assert settings["TANDEM_MAX_CHARACTERS"] == "50000" and settings["TANDEM_REQUIRE_KEY"] == "true"


def test_the_rules_become_prometheus_rules_as_the_guide_says(tmp_path: Path) -> None:
    (loop,) = re.findall(r"^(for file in deploy/prometheus/rules.*?^done)$", GUIDE, re.MULTILINE | re.DOTALL)
    script = f"kubectl() {{ cat; echo; echo ---; }}\n{loop}\n"
    done = subprocess.run(["sh", "-euc", script], cwd=ROOT, capture_output=True, text=True, check=True)
    documents = [document for document in yaml.safe_load_all(done.stdout) if document]
    rules = sorted((ROOT / "deploy" / "prometheus" / "rules").glob("*.yml"))
    assert [one["metadata"]["name"] for one in documents] == [f"tandem-{path.stem}" for path in rules]
    assert [one["spec"] for one in documents] == [yaml.safe_load(path.read_text(encoding="utf-8")) for path in rules]
