"""What does not fit together in Kubernetes documents is found; small documents, each broken in one place."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploy.checks import kubernetes, manifests
from tests.deploy.checks.installation import SELECTOR, Documents, documents

pytest.importorskip("yaml")
pytest.importorskip("kubernetes_validate")


def of(found: Documents, kind: str) -> Any:
    return next(one for one in found if one["kind"] == kind)


def pod(found: Documents) -> Any:
    return of(found, "Deployment")["spec"]["template"]["spec"]


def server(found: Documents) -> Any:
    return pod(found)["containers"][0]


def setting(found: Documents, name: str, value: str) -> None:
    of(found, "ConfigMap")["data"][name] = value


def claim(found: Documents) -> None:
    pod(found)["volumes"][0] = {"name": "state", "persistentVolumeClaim": {"claimName": "tandem-bundles"}}


def alone(found: Documents) -> None:
    claim(found)
    found.remove(of(found, "HorizontalPodAutoscaler"))


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert manifests.faults(documents()) == []
    assert [fault for one in documents() for fault in kubernetes.schema_faults(one)] == []


BROKEN: dict[str, tuple[Callable[[Documents], object], str]] = {
    "deployment selects others": (
        lambda found: of(found, "Deployment")["spec"].update(selector={"matchLabels": {"app": "x"}}),
        "Deployment tandem: its selector",
    ),
    "service selects others": (
        lambda found: of(found, "Service")["spec"].update(selector={"app": "x"}),
        "Service tandem: its selector",
    ),
    "budget selects everything": (
        lambda found: of(found, "PodDisruptionBudget")["spec"].update(selector={}),
        "PodDisruptionBudget tandem: its selector",
    ),
    "policy selects others": (
        lambda found: of(found, "NetworkPolicy")["spec"].update(podSelector={"matchLabels": {"app": "x"}}),
        "NetworkPolicy tandem: its selector",
    ),
    "monitor selects no service": (
        lambda found: of(found, "ServiceMonitor")["spec"].update(selector={"matchLabels": {"app": "x"}}),
        "ServiceMonitor tandem: its selector",
    ),
    "spread counts others": (
        lambda found: pod(found)["topologySpreadConstraints"][0].update(labelSelector={"matchLabels": {"a": "b"}}),
        "Deployment tandem: its selector",
    ),
    "autoscaler has no target": (
        lambda found: of(found, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"].update(name="x"),
        "HorizontalPodAutoscaler tandem: Deployment x is not there",
    ),
    "service sends to no port": (
        lambda found: of(found, "Service")["spec"]["ports"][0].update(targetPort="web"),
        "Service tandem: no container has the port web",
    ),
    "monitor asks no port": (
        lambda found: of(found, "ServiceMonitor")["spec"]["endpoints"][0].update(port="metrics"),
        "no service has a port called metrics",
    ),
    "policy opens no port": (
        lambda found: of(found, "NetworkPolicy")["spec"]["ingress"][0]["ports"][0].update(port=9000),
        "no container has the port 9000",
    ),
    "probe asks no port": (
        lambda found: server(found)["livenessProbe"]["httpGet"].update(port="web"),
        "livenessProbe asks the port web",
    ),
    "no settings": (
        lambda found: found.remove(of(found, "ConfigMap")),
        "ConfigMap settings is not there",
    ),
    "no secret that anybody is told of": (
        lambda found: server(found)["envFrom"][1]["secretRef"].update(name="x"),
        "Secret x is not there",
    ),
    "no account": (
        lambda found: pod(found).update(serviceAccountName="x"),
        "ServiceAccount x is not there",
    ),
    "a mount of nothing": (
        lambda found: server(found)["volumeMounts"].append({"name": "tmp", "mountPath": "/tmp"}),
        "volume tmp is mounted, and not there",
    ),
    "a volume for nobody": (
        lambda found: pod(found)["volumes"].append({"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}),
        "volume tmp is mounted nowhere",
    ),
    "twice": (lambda found: found.append(copy.deepcopy(found[0])), "ServiceAccount tandem is there twice"),
    "replicas beside an autoscaler": (
        lambda found: of(found, "Deployment")["spec"].update(replicas=2),
        "replicas must be left to the autoscaler",
    ),
    "capacity goes": (
        lambda found: of(found, "Deployment")["spec"]["strategy"]["rollingUpdate"].update(maxUnavailable=1),
        "maxUnavailable must be 0",
    ),
    "replicas on one folder": (claim, "replicas cannot share the volume state"),
    "a rolling update of a folder's owner": (alone, "needs one replica and the strategy Recreate"),
    "unknown setting": (
        lambda found: setting(found, "TANDEM_WORKRES", "1"),
        "TANDEM_WORKRES: no such setting",
    ),
    "setting out of bounds": (
        lambda found: setting(found, "TANDEM_WORKERS", "-1"),
        "TANDEM_WORKERS: Input should be greater than or equal to 0",
    ),
    "killed while it drains": (
        lambda found: setting(found, "TANDEM_SHUTDOWN_TIMEOUT", "45"),
        "terminationGracePeriodSeconds must be over 65, as preStop and settings are, but is 60",
    ),
    "no pause": (
        lambda found: server(found)["lifecycle"]["preStop"]["sleep"].update(seconds=0),
        "preStop must sleep",
    ),
    "the kubelet gives up first": (
        lambda found: setting(found, "TANDEM_PROBE_TIMEOUT", "7"),
        "timeoutSeconds of the readinessProbe must be over TANDEM_PROBE_TIMEOUT, 7, but is 7",
    ),
    "workers of half a core": (
        lambda found: server(found)["resources"]["limits"].update(cpu="1500m"),
        "limits.cpu must be a whole number over 1",
    ),
    "another port": (lambda found: setting(found, "TANDEM_PORT", "8080"), "the port called http must be"),
    "root": (
        lambda found: pod(found)["securityContext"].update(runAsNonRoot=False),
        "securityContext.runAsNonRoot: True was expected",
    ),
    "no seccomp": (
        lambda found: pod(found)["securityContext"].pop("seccompProfile"),
        "'seccompProfile' is a required property",
    ),
    "capabilities": (
        lambda found: server(found)["securityContext"]["capabilities"].update(add=["SYS_ADMIN"]),
        "'SYS_ADMIN' is not one of",
    ),
    "privileges may grow": (
        lambda found: server(found)["securityContext"].update(allowPrivilegeEscalation=True),
        "allowPrivilegeEscalation: False was expected",
    ),
    "a root file system to write to": (
        lambda found: server(found)["securityContext"].update(readOnlyRootFilesystem=False),
        "readOnlyRootFilesystem: True was expected",
    ),
    "a folder of the node": (
        lambda found: pod(found)["volumes"].append({"name": "host", "hostPath": {"path": "/"}}),
        "is not valid under any of the given schemas",
    ),
    "a token": (
        lambda found: pod(found).update(automountServiceAccountToken=True),
        "automountServiceAccountToken: False was expected",
    ),
    "no bound on memory": (
        lambda found: server(found)["resources"]["limits"].pop("memory"),
        "'memory' is a required property",
    ),
    "no probe": (lambda found: server(found).pop("startupProbe"), "'startupProbe' is a required property"),
    "any image": (lambda found: server(found).update(image="tandem:latest"), "should not be valid under"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit_is_named(name: str) -> None:
    change, words = BROKEN[name]
    found = documents()
    change(found)
    faults = manifests.faults(found)
    assert [fault for fault in faults if words in fault], faults


WRONG: dict[str, tuple[Callable[[Documents], dict[str, Any]], str]] = {
    "misspelt field": (
        lambda found: {**of(found, "Service"), "spec": {**of(found, "Service")["spec"], "selektor": {}}},
        "'selektor' was unexpected",
    ),
    "wrong type": (
        lambda found: {**of(found, "PodDisruptionBudget"), "spec": {"maxUnavailable": [1]}},
        "spec.maxUnavailable: [1] is not",
    ),
    "kind of an older version": (
        lambda found: {**of(found, "PodDisruptionBudget"), "apiVersion": "policy/v1beta1"},
        "has no such kind",
    ),
    "kind of somebody else": (
        lambda found: {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}},
        "has no such kind, and there is no schema of ours for it",
    ),
    "monitor with a misspelt field": (
        lambda found: {**of(found, "ServiceMonitor"), "spec": {"selector": SELECTOR, "endpoint": []}},
        "('endpoint' was unexpected)",
    ),
    "monitor with a bad interval": (
        lambda found: {
            **of(found, "ServiceMonitor"),
            "spec": {"selector": SELECTOR, "endpoints": [{"port": "http", "interval": "15"}]},
        },
        "spec.endpoints.0.interval",
    ),
    "monitor of everything": (
        lambda found: {
            **of(found, "ServiceMonitor"),
            "spec": {"selector": {"matchLabels": {}}, "endpoints": [{"port": "http"}]},
        },
        "spec.selector.matchLabels",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_schemas_are_strict(name: str) -> None:
    make, words = WRONG[name]
    faults = kubernetes.schema_faults(make(documents()), ("1.37",))
    assert [fault for fault in faults if words in fault], faults


def test_an_older_version_lacks_newer_fields() -> None:
    """So the oldest version that is checked does say something."""
    found = of(documents(), "Deployment")
    assert kubernetes.schema_faults(found, (kubernetes.OLDEST,)) == []
    assert "sleep" in "".join(kubernetes.schema_faults(found, ("1.28",)))


def test_image_and_devices_belong_to_the_overlay() -> None:
    found = documents()
    assert kubernetes.image_faults(found, "cpu", "1.2.3") == []
    assert "must have the tag 1.2.4" in kubernetes.image_faults(found, "cpu", "1.2.4")[0]
    server(found)["resources"]["limits"]["nvidia.com/gpu"] = "1"
    assert kubernetes.image_faults(found, "cpu", "1.2.3") == [
        "Deployment tandem: 1 devices do not fit the overlay cpu",
    ]
    server(found)["image"] = "tandem:1.2.3-gpu"
    assert kubernetes.image_faults(found, "gpu", "1.2.3") == []


def test_the_project_has_a_version(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[project]\nversion = {json.dumps('7.8')}\n", encoding="utf-8")
    assert kubernetes.version_of(tmp_path) == "7.8"
