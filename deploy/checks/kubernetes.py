"""Kubernetes: what kustomize makes of each overlay, against the schemas and against itself.

kubernetes-validate brings the strict schemas of every version with it. (kubeconform and kubeval download them, kubectl
asks a cluster.) A kind of which it has none is checked against a schema of ours, or is a fault: nothing passes
unlooked at. What schemas cannot see is in ``manifests``.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from deploy.checks import manifests, scaling
from deploy.checks.outcome import Check, MissingTool
from deploy.checks.tools import Toolbox
from models.errors import ConfigError

FOLDER = Path("deploy/kubernetes")
OLDEST = "1.30"
"""The oldest version of Kubernetes that takes everything: `preStop` with `sleep`."""
OVERLAYS = {"cpu": "", "gpu": "-gpu"}
"""Overlays, and what the tag of their image ends in."""
TOGETHER = (("keys", "limits", "bundles"), ("keys", "bundles", "single"))
"""Components that are likely to be used together; each is also tried by itself."""
_SCHEMAS = Path(__file__).parent / "schemas"
_OWN = {("monitoring.coreos.com/v1", "ServiceMonitor"): "servicemonitor.json"}
Document: TypeAlias = Mapping[str, Any]


def checks(root: Path, tools: Toolbox) -> Iterator[Check]:
    """Each overlay as it is, with components on top, and the metrics that replicas are made by."""
    alone = sorted(path.name for path in (root / FOLDER / "components").glob("*") if path.is_dir())
    known: dict[str, list[str]] = {}
    for overlay in OVERLAYS:
        yield Check(f"Kubernetes: overlay {overlay}", partial(overlay_faults, root, tools, overlay, (), known))
        for chosen in (*((name,) for name in alone), *TOGETHER):
            title = f"Kubernetes: overlay {overlay} with {', '.join(chosen)}"
            yield Check(title, partial(overlay_faults, root, tools, overlay, chosen, known))
    yield Check("Kubernetes: metrics of the autoscaler", partial(scaling.faults, root / FOLDER))


def overlay_faults(
    root: Path, tools: Toolbox, overlay: str, components: tuple[str, ...], known: dict[str, list[str]]
) -> list[str]:
    """What is wrong with an overlay, with components on top of it as somebody's own overlay would have them.

    Args:
        root: the project.
        tools: kustomize.
        overlay: its name.
        components: names.
        known: faults of documents that were looked at before, by their JSON; added to.

    Raises:
        MissingTool, ConfigError.
    """
    try:
        documents = render(root / FOLDER, tools, overlay, components)
    except Unrendered as unrendered:
        return [str(unrendered)]
    found = []
    for document in documents:
        key = json.dumps(document, sort_keys=True, default=str)
        if key not in known:
            known[key] = schema_faults(document)
        found += known[key]
    if not found:  # what follows relies on documents being of the form that the schemas say
        found += manifests.faults(documents)
        found += image_faults(documents, overlay, version_of(root))
    return found


class Unrendered(Exception):
    """kustomize refuses; its words."""


def render(folder: Path, tools: Toolbox, overlay: str, components: tuple[str, ...] = ()) -> list[Document]:
    """The documents that kustomize makes.

    Args:
        folder: of the manifests.
        tools: kustomize.
        overlay: its name.
        components: names of those on top of it.

    Raises:
        Unrendered: kustomize refuses or warns.
        MissingTool: kustomize or PyYAML is missing.
    """
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise MissingTool("PyYAML is missing: pip install pyyaml") from error
    with TemporaryDirectory(prefix="tandem-check-") as temporary:
        place = Path(temporary).resolve()
        where = os.path.relpath(folder.resolve(), place)  # kustomize takes no absolute paths
        own = {
            "resources": [f"{where}/overlays/{overlay}"],
            "components": [f"{where}/components/{name}" for name in components],
        }
        (place / "kustomization.yaml").write_text(json.dumps(own), encoding="utf-8")
        answer = tools.run("kustomize", [place], place)
    if answer.status or not answer.output.strip():
        raise Unrendered(answer.words or "kustomize makes nothing of it, without a word")
    if warnings := [line for line in answer.words.splitlines() if line.startswith("# Warning")]:
        raise Unrendered("\n".join(warnings))
    return [document for document in yaml.safe_load_all(answer.output) if document]


def schema_faults(document: Document, versions: tuple[str, ...] = ()) -> list[str]:
    """What the schemas find wrong with one document.

    Args:
        document: of any kind.
        versions: of Kubernetes; none = the oldest that is supported and the newest that is known.

    Raises:
        MissingTool: kubernetes-validate is missing.
    """
    try:
        import kubernetes_validate as schemas  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise MissingTool("kubernetes-validate is missing: pip install kubernetes-validate") from error
    name = manifests.name_of(document)
    kind = str(document.get("apiVersion")), str(document.get("kind"))
    if kind in _OWN:
        schema = json.loads((_SCHEMAS / _OWN[kind]).read_text(encoding="utf-8"))
        return [f"{name}: {fault}" for fault in manifests.disagreements(document, schema)]
    found = []
    for version in versions or (OLDEST, schemas.latest_version()):
        try:
            schemas.validate(document, version, strict=True)
        except schemas.ValidationError as fault:
            found.append(f"{name}: {manifests.path_of(fault)}: {fault.message} (Kubernetes {version})")
        except schemas.SchemaNotFoundError:
            found.append(f"{name}: Kubernetes {version} has no such kind, and there is no schema of ours for it")
    return found


def image_faults(documents: Sequence[Document], overlay: str, version: str) -> list[str]:
    """Images of another version than the project's, or of another overlay."""
    wanted = f"{version}{OVERLAYS[overlay]}"
    found = []
    for document, pod in manifests.pods(documents):
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            if not container["image"].endswith(f":{wanted}"):
                found.append(f"{manifests.name_of(document)}: {container['image']} must have the tag {wanted}")
            devices = container["resources"]["limits"].get("nvidia.com/gpu", "0")
            if container["name"] == "tandem" and (devices != "0") != (overlay == "gpu"):
                found.append(f"{manifests.name_of(document)}: {devices} devices do not fit the overlay {overlay}")
    return found


def version_of(root: Path) -> str:
    """The project's version. Raises ConfigError."""
    try:
        return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{root / 'pyproject.toml'}: no version in it ({error})") from error
