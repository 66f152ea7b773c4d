"""What schemas of single documents cannot see: selectors that select, ports and names that exist, times that fit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError

from deploy.checks.outcome import MissingTool
from service.configuration import variable_of
from service.settings import Settings

Document: TypeAlias = Mapping[str, Any]
Pod: TypeAlias = Mapping[str, Any]

OUTSIDE = {
    ("Secret", "tandem-secrets"),
    ("Secret", "tandem-keys"),
    ("PersistentVolumeClaim", "tandem-bundles"),
}
"""What the documents speak of and whoever applies them makes: no secret and no model lies in the repository."""
LAST_SECONDS = 10.0
"""That the server takes at most after its running work: for the last replies, and for files at work."""
_POD = Path(__file__).parent / "schemas" / "pod.json"


def faults(documents: Sequence[Document]) -> list[str]:
    """What does not fit together, one sentence each. Raises MissingTool where jsonschema is missing."""
    found = [f"{name_of(one)} is there twice" for number, one in enumerate(documents) if one in documents[:number]]
    rules = json.loads(_POD.read_text(encoding="utf-8"))
    for document, pod in pods(documents):
        found += [f"{name_of(document)}: {fault}" for fault in disagreements(pod, rules)]
        found += [f"{name_of(document)}: {fault}" for fault in _reference_faults(pod, documents)]
        found += [f"{name_of(document)}: {fault}" for fault in _rollout_faults(document, documents)]
        if not found:
            found += [f"{name_of(document)}: {fault}" for fault in _server_faults(pod, documents)]
    found += _selector_faults(documents)
    found += _port_faults(documents)
    return found


def name_of(document: Document) -> str:
    """Such as ``Deployment tandem``."""
    return f"{document.get('kind')} {(document.get('metadata') or {}).get('name')}"


def pods(documents: Iterable[Document]) -> Iterator[tuple[Document, Pod]]:
    """What makes pods, and their spec."""
    for document in documents:
        if document["kind"] in ("DaemonSet", "Deployment", "Job", "StatefulSet"):
            yield document, document["spec"]["template"]["spec"]


def disagreements(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Where a document does not agree with a JSON schema. Raises MissingTool."""
    try:
        from jsonschema import Draft202012Validator
    except ModuleNotFoundError as error:
        raise MissingTool("jsonschema is missing: pip install kubernetes-validate") from error
    return [f"{path_of(fault)}: {fault.message}" for fault in Draft202012Validator(schema).iter_errors(document)]


def path_of(fault: Any) -> str:
    """Where a fault of jsonschema lies, such as ``spec.ports.0``."""
    return ".".join(map(str, fault.absolute_path)) or "the whole"


def _named(documents: Iterable[Document], kind: str) -> dict[str, Document]:
    return {document["metadata"]["name"]: document for document in documents if document["kind"] == kind}


def _reference_faults(pod: Pod, documents: Sequence[Document]) -> Iterator[str]:
    there = {(document["kind"], document["metadata"]["name"]) for document in documents} | OUTSIDE
    wanted = {("ServiceAccount", pod["serviceAccountName"])}
    containers = (*pod.get("initContainers", ()), *pod["containers"])
    for container in containers:
        for source in container.get("envFrom", ()):
            wanted |= {(kind, source[key]["name"]) for kind, key in _SOURCES if key in source}
        for variable in container.get("env", ()):
            source = variable.get("valueFrom", {})
            wanted |= {(kind, source[key]["name"]) for kind, key in _KEYS if key in source}
    for volume in pod.get("volumes", ()):
        for kind, key, field in _VOLUMES:
            if key in volume:
                wanted.add((kind, volume[key][field]))
    yield from (f"{kind} {name} is not there" for kind, name in sorted(wanted - there))
    volumes = {volume["name"] for volume in pod.get("volumes", ())}
    mounted = {mount["name"] for container in containers for mount in container.get("volumeMounts", ())}
    yield from (f"volume {name} is mounted, and not there" for name in sorted(mounted - volumes))
    yield from (f"volume {name} is mounted nowhere" for name in sorted(volumes - mounted))


_SOURCES = (("ConfigMap", "configMapRef"), ("Secret", "secretRef"))
_KEYS = (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef"))
_VOLUMES = (
    ("ConfigMap", "configMap", "name"),
    ("Secret", "secret", "secretName"),
    ("PersistentVolumeClaim", "persistentVolumeClaim", "claimName"),
)


def _rollout_faults(document: Document, documents: Sequence[Document]) -> Iterator[str]:
    """Several replicas are replaced without a gap; one that owns its volume is stopped first."""
    spec = document["spec"]
    targets = {one["spec"]["scaleTargetRef"]["name"] for one in _named(documents, "HorizontalPodAutoscaler").values()}
    owned = [volume for volume in spec["template"]["spec"].get("volumes", ())
             if volume.get("persistentVolumeClaim", {"readOnly": True}).get("readOnly") is not True]  # fmt: skip
    strategy = spec.get("strategy", {})
    if document["metadata"]["name"] in targets:
        if "replicas" in spec:
            yield "replicas must be left to the autoscaler: each `kubectl apply` would reset them"
        if strategy.get("rollingUpdate", {}).get("maxUnavailable") != 0:
            yield "maxUnavailable must be 0: an update must not take capacity away"
        if owned:
            yield f"replicas cannot share the volume {owned[0]['name']}: each server needs a data folder of its own"
    elif owned and (strategy.get("type") != "Recreate" or spec.get("replicas") != 1):
        yield f"the volume {owned[0]['name']} needs one replica and the strategy Recreate: a second one would not start"


def _server_faults(pod: Pod, documents: Sequence[Document]) -> Iterator[str]:
    """The server's settings are such, and its times fit those of the pod."""
    container = next((one for one in pod["containers"] if one["name"] == "tandem"), None)
    if container is None:
        yield "no container is called tandem"
        return
    values: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        if "configMapRef" in source:
            values |= _named(documents, "ConfigMap")[source["configMapRef"]["name"]].get("data", {})
    fields = {variable_of(name): name for name in Settings.model_fields}
    if unknown := sorted(values.keys() - fields.keys()):
        yield f"{', '.join(unknown)}: no such setting"
        return
    try:
        settings = Settings(**{fields[name]: value for name, value in values.items()})  # type: ignore[arg-type]
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            yield f"{variable_of(str(fault['loc'][0]))}: {fault['msg']}"
        return
    stop = pod.get("terminationGracePeriodSeconds", 30)
    pause = container["lifecycle"]["preStop"].get("sleep", {}).get("seconds", 0)
    if stop <= (least := pause + settings.shutdown_timeout + LAST_SECONDS):
        yield f"terminationGracePeriodSeconds must be over {least:g}, as preStop and settings are, but is {stop}"
    if pause < 1:
        yield "preStop must sleep until proxies have heard that the pod ends"
    if (wait := container["readinessProbe"].get("timeoutSeconds", 1)) <= settings.probe_timeout:
        bound = f"TANDEM_PROBE_TIMEOUT, {settings.probe_timeout:g}"
        yield f"timeoutSeconds of the readinessProbe must be over {bound}, but is {wait}"
    cores = str(container["resources"]["limits"]["cpu"])
    if not settings.workers and not (cores.isdecimal() and int(cores) > 1):
        yield f"limits.cpu must be a whole number over 1, from which the server takes its workers, but is {cores}"
    ports = [port["containerPort"] for port in container.get("ports", ()) if port.get("name") == "http"]
    if ports != [settings.port]:
        yield f"the port called http must be the one that the server listens on, {settings.port}, but is {ports}"


def _selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector takes something, and not simply everything."""
    wanted = (selector or {}).get("matchLabels", {})
    return bool(wanted) and wanted.items() <= labels.items()


def _selector_faults(documents: Sequence[Document]) -> Iterator[str]:
    labels = [one["spec"]["template"]["metadata"].get("labels", {}) for one, _ in pods(documents)]
    services = [one["metadata"].get("labels", {}) for one in documents if one["kind"] == "Service"]
    for document in documents:
        spec, kind = document.get("spec", {}), document["kind"]
        selectors: list[Any] = []
        if kind in ("Deployment", "PodDisruptionBudget"):
            selectors.append(spec.get("selector"))
        elif kind == "Service":
            selectors.append({"matchLabels": spec.get("selector", {})})
        elif kind == "NetworkPolicy":
            selectors.append(spec.get("podSelector"))
        if kind == "Deployment":
            constraints = spec["template"]["spec"].get("topologySpreadConstraints", ())
            selectors += [constraint.get("labelSelector") for constraint in constraints]
        for selector in selectors:
            if not any(_selects(selector, one) for one in labels):
                yield f"{name_of(document)}: its selector {selector} takes no pod of these, or any"
        if kind == "ServiceMonitor" and not any(_selects(spec["selector"], one) for one in services):
            yield f"{name_of(document)}: its selector {spec['selector']} takes no service of these, or any"
        if kind == "HorizontalPodAutoscaler":
            target = spec["scaleTargetRef"]
            if target["name"] not in _named(documents, target["kind"]):
                yield f"{name_of(document)}: {target['kind']} {target['name']} is not there"


def _port_faults(documents: Sequence[Document]) -> Iterator[str]:
    names: set[Any] = set()
    for document, pod in pods(documents):
        for container in pod["containers"]:
            own = {port.get("name") for port in container.get("ports", ())}
            names |= own | {port["containerPort"] for port in container.get("ports", ())}
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                port = container[probe].get("httpGet", {}).get("port") if probe in container else None
                if port is not None and port not in own:
                    yield f"{name_of(document)}: {probe} asks the port {port}, which the container does not name"
    offered = set()
    for service in _named(documents, "Service").values():
        for port in service["spec"]["ports"]:
            offered.add(port.get("name"))
            if port.get("targetPort", port["port"]) not in names:
                yield f"{name_of(service)}: no container has the port {port.get('targetPort', port['port'])}"
    for monitor in _named(documents, "ServiceMonitor").values():
        for endpoint in monitor["spec"]["endpoints"]:
            if endpoint.get("port") not in offered:
                yield f"{name_of(monitor)}: no service has a port called {endpoint.get('port')}"
    for policy in _named(documents, "NetworkPolicy").values():
        for rule in policy["spec"].get("ingress") or ():
            for port in rule.get("ports", ()):
                if port.get("port") not in names:
                    yield f"{name_of(policy)}: no container has the port {port.get('port')}"
