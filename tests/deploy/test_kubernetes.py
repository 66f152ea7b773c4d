"""What kustomize makes of each overlay, with components on top: against the schemas, against itself, and the chart's.

kubernetes-validate brings the strict schemas of every version with it. What they cannot see is held here: selectors
that select, ports and names that exist, settings, and times that fit one another. ``STRICT=1`` makes a missing
kustomize or Helm a failure, as `make deploy-check STRICT=1` does.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from jsonschema import Draft202012Validator

from tandem.service.configuration import variable_of
from tandem.service.settings import Settings
from tests.shipped import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
GUIDE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
OLDEST = "1.30"  # that takes everything: `preStop` with `sleep`
COMPONENTS = sorted(path.name for path in (FOLDER / "components").iterdir())
TOGETHER = [(), *((name,) for name in COMPONENTS), ("keys", "limits", "bundles"), ("keys", "bundles", "single")]
OUTSIDE = {("Secret", "tandem-secrets"), ("Secret", "tandem-keys"), ("PersistentVolumeClaim", "tandem-bundles")}
"""What whoever applies the documents makes: no secret and no model lies in the repository."""
LAST_SECONDS = 10.0  # that the server takes at most after its running work: last replies, and files at work
POD, MONITOR = (
    Draft202012Validator(json.loads((Path(__file__).parent / "schemas" / name).read_text(encoding="utf-8")))
    for name in ("pod.json", "servicemonitor.json")
)
Document: TypeAlias = dict[str, Any]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kubernetes")]  # `make deploy-check` runs all of them


def kustomize(folder: Path) -> list[Document]:
    """The documents of a folder with a kustomization; its warnings are faults. Skips where there is no kustomize."""
    commands = [["kustomize", "build"], ["kubectl", "kustomize"]]
    command = next((words for words in commands if shutil.which(words[0])), None)
    if command is None:
        _missing("neither kustomize nor kubectl is installed (apt install kustomize)")
    done = subprocess.run([*command, str(folder)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "# Warning" not in done.stderr, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def _missing(message: str) -> NoReturn:
    (pytest.fail if os.environ.get("STRICT") else pytest.skip)(message)


def helm(values: Document, *options: str) -> subprocess.CompletedProcess[str]:
    """Renders the chart with values. Skips where there is no Helm."""
    if shutil.which("helm") is None:
        _missing("helm is not installed")
    command = ["helm", "template", "tandem", str(FOLDER), "--values", "-", *options]
    return subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False)


def charted(values: Document) -> dict[tuple[str, str], Document]:
    """The chart's documents by kind and name, without the checksum that replaces pods when settings change."""
    done = helm(values)
    assert done.returncode == 0, done.stderr
    documents = by_name([document for document in yaml.safe_load_all(done.stdout) if document])
    template = documents["Deployment", "tandem"]["spec"]["template"]
    assert re.fullmatch("[0-9a-f]{64}", template["metadata"]["annotations"].pop("checksum/settings"))
    return documents


def by_name(documents: list[Document]) -> dict[tuple[str, str], Document]:
    named = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    assert len(named) == len(documents)
    return named


@functools.cache
def rendered(folder: Path, overlay: str, components: tuple[str, ...]) -> list[Document]:
    """An overlay with components on top, as somebody's own overlay would have them; made in a folder."""
    where = os.path.relpath(FOLDER, folder)  # kustomize takes no absolute paths
    own = {
        "resources": [f"{where}/overlays/{overlay}"],
        "components": [f"{where}/components/{name}" for name in components],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(own), encoding="utf-8")
    return kustomize(folder)


class Installation:
    """The documents of one overlay with components."""

    def __init__(self, overlay: str, components: tuple[str, ...], documents: list[Document]) -> None:
        self.overlay = overlay
        self.components = components
        self.documents = documents
        (self.deployment,) = self.of_kind("Deployment")
        self.pod: Document = self.deployment["spec"]["template"]["spec"]
        self.containers = [*self.pod.get("initContainers", ()), *self.pod["containers"]]
        (self.server,) = (container for container in self.pod["containers"] if container["name"] == "tandem")

    def of_kind(self, kind: str) -> list[Document]:
        return [document for document in self.documents if document["kind"] == kind]

    def named(self) -> set[tuple[str, str]]:
        return {(document["kind"], document["metadata"]["name"]) for document in self.documents}

    def settings(self) -> Settings:
        """What the server would read, of variables that exist and values within bounds."""
        names = [source["configMapRef"]["name"] for source in self.server["envFrom"] if "configMapRef" in source]
        maps = [document["data"] for document in self.of_kind("ConfigMap") if document["metadata"]["name"] in names]
        values = {variable: value for data in maps for variable, value in data.items()}
        fields = {variable_of(name): name for name in Settings.model_fields}
        assert values.keys() <= fields.keys(), "no such setting"
        return Settings.model_validate({fields[variable]: value for variable, value in values.items()})


def each() -> Iterator[Any]:
    for overlay in ("cpu", "gpu"):
        for components in TOGETHER:
            yield pytest.param((overlay, components), id="+".join((overlay, *components)))


@pytest.fixture(scope="module", params=each())
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    overlay, components = request.param
    documents = rendered(tmp_path_factory.mktemp("overlay").resolve(), overlay, components)
    return Installation(overlay, components, documents)


@functools.cache
def schema_faults(document: str) -> list[str]:
    """Of a document as JSON; a kind without a schema is a fault: nothing passes unlooked at."""
    content = json.loads(document)
    if (content["apiVersion"], content["kind"]) == ("monitoring.coreos.com/v1", "ServiceMonitor"):
        return [fault.message for fault in MONITOR.iter_errors(content)]
    found = []
    for version in (OLDEST, kubernetes_validate.latest_version()):
        try:
            kubernetes_validate.validate(content, version, strict=True)
        except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as fault:
            found.append(f"{content['kind']}: {fault} (Kubernetes {version})")
    return found


def test_schemas(installation: Installation) -> None:
    texts = [json.dumps(document, sort_keys=True) for document in installation.documents]
    assert len(set(texts)) == len(texts) > 0
    assert [fault for text in texts for fault in schema_faults(text)] == []


def test_schemas_are_strict() -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}}
    assert schema_faults(json.dumps(account)) == []
    for change in ({"automountToken": False}, {"metadata": {"name": ["x"]}}, {"apiVersion": "v1beta1"}, {"kind": "X"}):
        assert len(schema_faults(json.dumps(account | change))) == 2, change
    monitor = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "x"}}
    assert schema_faults(json.dumps(monitor | {"spec": {"selector": {"matchLabels": {}}, "endpoint": []}}))


def test_pods_are_confined(installation: Installation) -> None:
    """The profile `restricted` of the Pod Security Standards, read-only file systems, bounds on resources, probes."""
    assert [f"{fault.json_path}: {fault.message}" for fault in POD.iter_errors(installation.pod)] == []


def test_image_and_devices_belong_to_the_overlay(installation: Installation) -> None:
    suffix = {"cpu": "", "gpu": "-gpu"}[installation.overlay]
    assert all(container["image"].endswith(f":{VERSION}{suffix}") for container in installation.containers)
    devices = installation.server["resources"]["limits"].get("nvidia.com/gpu", "0")
    assert (devices != "0") == (installation.overlay == "gpu")


def test_what_the_pod_refers_to_is_there(installation: Installation) -> None:
    pod, containers = installation.pod, installation.containers
    sources = [source for container in containers for source in container.get("envFrom", ())]
    sources += [variable.get("valueFrom", {}) for container in containers for variable in container.get("env", ())]
    wanted = {("ServiceAccount", pod["serviceAccountName"])}
    for key, kind, field, places in (
        ("configMapRef", "ConfigMap", "name", sources),
        ("secretRef", "Secret", "name", sources),
        ("configMapKeyRef", "ConfigMap", "name", sources),
        ("secretKeyRef", "Secret", "name", sources),
        ("configMap", "ConfigMap", "name", pod["volumes"]),
        ("secret", "Secret", "secretName", pod["volumes"]),
        ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName", pod["volumes"]),
    ):
        wanted |= {(kind, place[key][field]) for place in places if key in place}
    assert wanted <= installation.named() | OUTSIDE
    mounted = {mount["name"] for container in containers for mount in container.get("volumeMounts", ())}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_rollouts_leave_no_gap_and_no_two_owners(installation: Installation) -> None:
    """Several replicas are replaced one by one; one that owns its volume is stopped first."""
    spec, scalers = installation.deployment["spec"], installation.of_kind("HorizontalPodAutoscaler")
    claims = [volume.get("persistentVolumeClaim", {"readOnly": True}) for volume in installation.pod["volumes"]]
    owned = [claim for claim in claims if claim.get("readOnly") is not True]
    for scaler in scalers:
        target = scaler["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) == ("Deployment", installation.deployment["metadata"]["name"])
        assert "replicas" not in spec, "each `kubectl apply` would reset them"
        assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        assert not owned, "each server needs a data folder of its own"
    if not scalers:
        assert owned and (spec["strategy"]["type"], spec["replicas"]) == ("Recreate", 1)


def test_times_and_sizes_fit_the_settings(installation: Installation) -> None:
    settings, server = installation.settings(), installation.server
    pause = server["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pause >= 1, "proxies must have heard that the pod ends"
    stop = installation.pod["terminationGracePeriodSeconds"]
    assert stop > pause + settings.shutdown_timeout + LAST_SECONDS
    assert server["readinessProbe"]["timeoutSeconds"] > settings.probe_timeout
    cores = str(server["resources"]["limits"]["cpu"])
    assert settings.workers or (cores.isdecimal() and int(cores) > 1), "the server takes its workers from whole cores"
    assert [port["containerPort"] for port in server["ports"] if port["name"] == "http"] == [settings.port]


def test_selectors_select(installation: Installation) -> None:
    """The server's pods, or its service; an empty selector would take everything."""
    labels = installation.deployment["spec"]["template"]["metadata"]["labels"]
    selectors = [installation.deployment["spec"]["selector"]]
    selectors += [spread["labelSelector"] for spread in installation.pod["topologySpreadConstraints"]]
    selectors += [budget["spec"]["selector"] for budget in installation.of_kind("PodDisruptionBudget")]
    selectors += [policy["spec"]["podSelector"] for policy in installation.of_kind("NetworkPolicy")]
    (service,) = installation.of_kind("Service")
    selectors.append({"matchLabels": service["spec"]["selector"]})
    assert all(_selects(selector, labels) for selector in selectors), selectors
    monitors = installation.of_kind("ServiceMonitor")
    assert all(_selects(monitor["spec"]["selector"], service["metadata"]["labels"]) for monitor in monitors)


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    wanted = selector["matchLabels"]
    return bool(wanted) and wanted.items() <= labels.items()


def test_ports_are_there(installation: Installation) -> None:
    own = [port for container in installation.pod["containers"] for port in container.get("ports", ())]
    names = {port["name"] for port in own}
    probes = [installation.server[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")]
    assert {probe["httpGet"]["port"] for probe in probes} <= names
    offered = [port for service in installation.of_kind("Service") for port in service["spec"]["ports"]]
    there = names | {port["containerPort"] for port in own}
    assert {port.get("targetPort", port["port"]) for port in offered} <= there
    policies = installation.of_kind("NetworkPolicy")
    rules = [rule for policy in policies for rule in policy["spec"].get("ingress") or ()]
    assert {port["port"] for rule in rules for port in rule.get("ports", ())} <= there
    scraped = [point for monitor in installation.of_kind("ServiceMonitor") for point in monitor["spec"]["endpoints"]]
    assert {point["port"] for point in scraped} <= {port["name"] for port in offered}


# --- the chart -------------------------------------------------------------------------------------------------------


def test_chart_makes_what_kustomize_makes(installation: Installation) -> None:
    """But for the hash in the settings' name, instead of which the chart's pods have a checksum."""
    text = re.sub(r"tandem-settings-[a-z0-9]{10}", "tandem-settings", json.dumps(installation.documents))
    values = {"variant": installation.overlay, "components": list(installation.components)}
    assert charted(values) == by_name(json.loads(text))


def test_chart_takes_values() -> None:
    documents = charted(
        {
            "components": ["keys", "limits", "bundles"],
            "image": {"repository": "registry.example.org/tandem", "tag": "1.2.3", "pullPolicy": "Always"},
            "imagePullSecrets": [{"name": "registry"}],
            "settings": {"TANDEM_MAX_CHARACTERS": 50_000_000, "TANDEM_PIVOT": False, "TANDEM_HOST": "::"},
            "names": {"secrets": "mine", "keys": "my-keys", "bundles": "my-bundles"},
            "autoscaling": {"maxReplicas": 20},
            "resources": {"limits": {"cpu": "8"}, "requests": {"cpu": "8"}},
            "serviceAccountName": "account",
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"key": "batch", "operator": "Exists"}],
            "ingress": {"enabled": True, "className": "nginx", "host": "mt.example.org", "tlsSecret": "tls"},
            "serviceMonitor": {"labels": {"release": "prometheus"}},
            "networkPolicy": {"enabled": False},
            "patches": [{"kind": "Service", "spec": {"type": "LoadBalancer", "ports": [{"name": "http", "port": 80}]}}],
        }
    )
    assert not [fault for document in documents.values() for fault in schema_faults(json.dumps(document))]
    assert {"ServiceAccount", "NetworkPolicy"}.isdisjoint(kind for kind, _ in documents)
    pod = documents["Deployment", "tandem"]["spec"]["template"]["spec"]
    (server,), (keys,) = pod["containers"], pod["initContainers"]
    for container in (server, keys):
        assert (container["image"], container["imagePullPolicy"]) == ("registry.example.org/tandem:1.2.3", "Always")
    assert [source["secretRef"]["name"] for source in server["envFrom"] if "secretRef" in source] == ["mine"]
    assert server["env"][0]["valueFrom"]["secretKeyRef"]["name"] == "mine"
    sources = {volume["name"]: volume for volume in pod["volumes"]}
    assert sources["keys"]["secret"]["secretName"] == "my-keys"
    assert sources["bundles"]["persistentVolumeClaim"]["claimName"] == "my-bundles"
    assert server["resources"]["limits"] == {"cpu": "8", "memory": "2Gi", "ephemeral-storage": "6Gi"}
    assert (pod["serviceAccountName"], pod["nodeSelector"]) == ("account", {"disk": "fast"})
    assert (pod["tolerations"], pod["imagePullSecrets"]) == (
        [{"key": "batch", "operator": "Exists"}],
        [{"name": "registry"}],
    )
    settings = documents["ConfigMap", "tandem-settings"]["data"]
    assert (settings["TANDEM_MAX_CHARACTERS"], settings["TANDEM_PIVOT"]) == ("50000000", "false")
    assert settings["TANDEM_ALLOWED_HOSTS"] == "mt.example.org"
    assert (settings["TANDEM_HOST"], settings["TANDEM_REQUIRE_KEY"]) == ("::", "true")
    scaler = documents["HorizontalPodAutoscaler", "tandem"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 20)
    ingress = documents["Ingress", "tandem"]["spec"]
    assert (ingress["ingressClassName"], ingress["rules"][0]["host"]) == ("nginx", "mt.example.org")
    assert ingress["tls"] == [{"hosts": ["mt.example.org"], "secretName": "tls"}]
    assert documents["ServiceMonitor", "tandem"]["metadata"]["labels"]["release"] == "prometheus"
    service = documents["Service", "tandem"]["spec"]
    assert service["type"] == "LoadBalancer"
    assert [(port["port"], port["targetPort"]) for port in service["ports"]] == [(80, "http")]


def test_chart_without_what_a_cluster_lacks() -> None:
    off = {"enabled": False}
    documents = charted({"autoscaling": off, "serviceMonitor": off, "replicas": 3})
    assert {kind for kind, _ in documents}.isdisjoint({"HorizontalPodAutoscaler", "ServiceMonitor", "Ingress"})
    assert documents["Deployment", "tandem"]["spec"]["replicas"] == 3
    single = charted({"autoscaling": off, "components": ["single"], "state": {"size": "50Gi", "storageClassName": "x"}})
    assert single["Deployment", "tandem"]["spec"]["replicas"] == 1
    claim = single["PersistentVolumeClaim", "tandem-state"]["spec"]
    assert (claim["resources"], claim["storageClassName"]) == ({"requests": {"storage": "50Gi"}}, "x")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"setings": {}}, "setings"),
        ({"variant": "tpu"}, "variant"),
        ({"components": ["key"]}, "components"),
        ({"settings": {"tandem_host": "x"}}, "tandem_host"),
        ({"settings": {"TANDEM_BUNDLES": ["x"]}}, "TANDEM_BUNDLES"),
        ({"autoscaling": {"maxReplicas": 0}}, "maxReplicas"),
        ({"patches": [{"kind": "Pod"}]}, "kind"),
        ({"ingress": {"enabled": True, "tlsSecret": "x"}}, "ingress.host"),
    ],
)
def test_chart_names_a_wrong_value(values: Document, named: str) -> None:
    done = helm(values)
    assert done.returncode and named in done.stderr, done.stderr


def test_chart_without_helm() -> None:
    """What holds of the chart's files wherever the tests run."""
    chart, values = (yaml.safe_load((FOLDER / name).read_text("utf-8")) for name in ("Chart.yaml", "values.yaml"))
    assert chart["version"] == chart["appVersion"] == VERSION
    assert chart["kubeVersion"] == f">={OLDEST}.0-0"
    schema = Draft202012Validator(json.loads((FOLDER / "values.schema.json").read_text("utf-8")))
    Draft202012Validator.check_schema(schema.schema)
    assert schema.is_valid(values) and schema.is_valid({"components": COMPONENTS}) and not schema.is_valid({"x": 1})
    for path in FOLDER.glob("*/**/kustomization.yaml"):  # the only patches that the templates read
        own = yaml.safe_load(path.read_text("utf-8"))
        assert all(
            patch.keys() == {"path"} and (path.parent / patch["path"]).exists() for patch in own.get("patches", ())
        )


# --- what docs/kubernetes.md shows ----------------------------------------------------------------------------------


def test_the_overlay_of_the_guide_can_be_built(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```yaml\n(# mine/kustomization\.yaml\n.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(example, encoding="utf-8")
    (mine / "keys.db").write_bytes(b"a database")
    (mine / "secrets.env").write_text("TANDEM_LIMITS_URL=redis://store:6379/0\n", encoding="utf-8")
    shutil.copytree(ROOT / "deploy" / "kubernetes", tmp_path / "tandem" / "deploy" / "kubernetes")
    documents = kustomize(mine)
    assert not [fault for document in documents for fault in schema_faults(json.dumps(document))]
    assert {document["metadata"]["namespace"] for document in documents} == {"tandem"}
    (pod,) = (one["spec"]["template"]["spec"] for one in documents if one["kind"] == "Deployment")
    containers = [*pod["initContainers"], *pod["containers"]]
    assert {one["image"] for one in containers} == {f"registry.example.org/tandem:{VERSION}"}
    # What is generated has a hash in its name, and the pods speak of it by that name.
    made = {one["metadata"]["name"] for one in documents if one["kind"] in ("ConfigMap", "Secret")}
    assert len(made) == 3 and all(re.search(r"-[a-z0-9]{10}$", name) for name in made)
    (server,) = pod["containers"]
    spoken = {source[kind]["name"] for source in server["envFrom"] for kind in source}
    spoken |= {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
    assert spoken == made
    (settings,) = (one["data"] for one in documents if one["kind"] == "ConfigMap")
    assert settings["TANDEM_MAX_CHARACTERS"] == "50000" and settings["TANDEM_REQUIRE_KEY"] == "true"


def test_the_values_of_the_guide_make_a_chart() -> None:
    (example,) = re.findall(r"^```yaml\n# mine\.yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    documents = charted(yaml.safe_load(example))
    assert not [fault for document in documents.values() for fault in schema_faults(json.dumps(document))]
    assert documents["ConfigMap", "tandem-settings"]["data"]["TANDEM_MAX_CHARACTERS"] == "50000"
    values = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", GUIDE, re.MULTILINE))))
    schema = json.loads((FOLDER / "values.schema.json").read_text("utf-8"))
    assert schema["properties"].keys() - {"global"} <= values


def test_the_rules_become_prometheus_rules_as_the_guide_says(tmp_path: Path) -> None:
    (loop,) = re.findall(r"^(for file in deploy/prometheus/rules.*?^done)$", GUIDE, re.MULTILINE | re.DOTALL)
    script = f"kubectl() {{ cat; echo; echo ---; }}\n{loop}\n"
    done = subprocess.run(["sh", "-euc", script], cwd=ROOT, capture_output=True, text=True, check=True)
    documents = [document for document in yaml.safe_load_all(done.stdout) if document]
    rules = sorted((ROOT / "deploy" / "prometheus" / "rules").glob("*.yml"))
    assert [one["metadata"]["name"] for one in documents] == [f"tandem-{path.stem}" for path in rules]
    assert [one["spec"] for one in documents] == [yaml.safe_load(path.read_text(encoding="utf-8")) for path in rules]
