"""A small installation on Kubernetes without a fault, for tests to break."""

from __future__ import annotations

import copy
from typing import Any

Documents = list[dict[str, Any]]
LABELS = {"app.kubernetes.io/name": "tandem"}
SELECTOR = {"matchLabels": LABELS}


def probe(path: str, timeout: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "http"}, "timeoutSeconds": timeout}


def documents() -> Documents:
    """A small installation without a fault."""
    container = {
        "name": "tandem",
        "image": "tandem:1.2.3",
        "ports": [{"name": "http", "containerPort": 8000}],
        "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "tandem-secrets"}}],
        "startupProbe": probe("/healthz", 2),
        "livenessProbe": probe("/healthz", 5),
        "readinessProbe": probe("/readyz", 7),
        "lifecycle": {"preStop": {"sleep": {"seconds": 10}}},
        "resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "state", "mountPath": "/var/lib/tandem"}],
    }
    pod = {
        "serviceAccountName": "tandem",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 60,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "fsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": SELECTOR,
            }
        ],
        "containers": [container],
        "volumes": [{"name": "state", "emptyDir": {"sizeLimit": "1Gi"}}],
    }
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}
    template = {"metadata": {"labels": LABELS}, "spec": pod}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "tandem"}
    data = {"TANDEM_PROBE_TIMEOUT": "5", "TANDEM_PORT": "8000", "TANDEM_BUNDLES": "/srv/tandem/bundles"}
    monitor = {"selector": SELECTOR, "endpoints": [{"port": "http", "path": "/metrics"}]}
    service = {"selector": LABELS, "ports": [{"name": "http", "port": 8000, "targetPort": "http"}]}
    network = {"podSelector": SELECTOR, "ingress": [{"ports": [{"port": "http"}]}]}
    made = [
        document("v1", "ServiceAccount", automountServiceAccountToken=False),
        document("v1", "ConfigMap", data=data),
        document("apps/v1", "Deployment", {"strategy": strategy, "selector": SELECTOR, "template": template}),
        document("v1", "Service", service),
        document("policy/v1", "PodDisruptionBudget", {"maxUnavailable": 1, "selector": SELECTOR}),
        document("autoscaling/v2", "HorizontalPodAutoscaler", {"scaleTargetRef": target, "maxReplicas": 3}),
        document("networking.k8s.io/v1", "NetworkPolicy", network),
        document("monitoring.coreos.com/v1", "ServiceMonitor", monitor),
    ]
    made[1]["metadata"]["name"] = "settings"
    return copy.deepcopy(made)


def document(version: str, kind: str, spec: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    made = {"apiVersion": version, "kind": kind, "metadata": {"name": "tandem", "labels": LABELS}, **fields}
    return made if spec is None else {**made, "spec": spec}
