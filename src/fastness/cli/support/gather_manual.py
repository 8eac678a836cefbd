"""The part of a bundle that the manual's own collector would write: sandboxed containers, their operator, their pools.

Names of files are those of that collector; content is ours: the object as YAML without secrets, and its events after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastness.cli.support.gather import Bundle, documents
from fastness.cli.support.layout import safe
from fastness.cli.support.redact import scrubbed
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name

NAMESPACES: Final = (
    "openshift-sandboxed-containers-operator", "openshift-machine-config-operator", "openshift-nfd", "fastness-system",
    "nvidia-gpu-operator", "intel-dcap", "trustee-operator-system",
)  # fmt: skip
DESCRIBED: Final = {
    "kataconfigs.kataconfiguration.openshift.io": "kataconfig_description",
    "clusterserviceversions.operators.coreos.com": "clusterserviceversion_description",
    "subscriptions.operators.coreos.com": "subscription_description",
    "installplans.operators.coreos.com": "installplan_description",
}
POOLS: Final = "machineconfigpools.machineconfiguration.openshift.io"
TOP: Final = "sandboxed-containers"


def manual_part(
    bundle: Bundle, objects_by_kind: Mapping[str, Sequence[JsonObject]], events: Sequence[JsonObject]
) -> None:
    """Write the part from what was already read."""
    for kind, name in DESCRIBED.items():
        objects = objects_by_kind.get(kind) or ()
        if objects:
            path = f"{TOP}/{name}"
            bundle.put(path, "".join(_described(bundle, path, obj, events) for obj in objects), len(objects))
    for pool in objects_by_kind.get(POOLS) or ():
        path = f"{TOP}/mcps/{safe(object_name(pool).name)}_description"
        bundle.put(path, _described(bundle, path, pool, events), 1)
    users = [
        pod
        for pod in objects_by_kind.get("pods") or ()
        if "kata" in str((pod.get("spec") or {}).get("runtimeClassName") or "")
    ]
    lines = [
        f"{object_name(pod)}  {pod['spec']['runtimeClassName']}  {(pod.get('status') or {}).get('phase', '')}"
        for pod in users
    ]
    bundle.put(f"{TOP}/workloads_using_kata.txt", "".join(f"{line}\n" for line in sorted(lines)), len(lines))


def _described(bundle: Bundle, path: str, obj: JsonObject, events: Sequence[Mapping[str, Any]]) -> str:
    uid = (obj.get("metadata") or {}).get("uid")
    mine = [event for event in events if (event.get("involvedObject") or {}).get("uid") == uid]
    lines = []
    for event in mine:
        message = scrubbed(str(event.get("message")))
        lines.append(f"  {event.get('lastTimestamp') or '-'}  {event.get('type')}  {event.get('reason')}  {message}\n")
    return documents([bundle.visible_part(obj, path)]) + "Events:" + ("\n" + "".join(lines) if lines else "  <none>\n")
