"""MachineConfigs, nodes and pods of any number, for figures about machine configuration."""

from __future__ import annotations

from typing import Any

from fastness.kinds.machineconfiguration import names

Object = dict[str, Any]
ROLE = "worker"
UNIT = "[Unit]\nDescription=bench\n[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n"
CONTENT = "setting%20%3D%20value%0A" * 20


def machine_config(name: str, files: list[Object], units: list[Object] | None = None) -> Object:
    """One config of the pool."""
    body = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}, "systemd": {"units": units or []}}
    meta = {"name": name, "labels": {names.ROLE_LABEL: ROLE}}
    return {"apiVersion": names.API_VERSION, "kind": "MachineConfig", "metadata": meta, "spec": {"config": body}}


def file(path: str, content: str = CONTENT) -> Object:
    """One file of a config."""
    return {"path": path, "mode": 0o644, "overwrite": True, "contents": {"source": f"data:,{content}"}}


def machine_configs(count: int, files: int, units: int) -> list[Object]:
    """So many configs with so many files and units between them."""
    return [
        machine_config(
            f"50-bench-{number:03}",
            [file(f"/etc/bench/{number:03}/{each:03}.conf") for each in range(files // count)],
            [
                {"name": f"bench-{number:03}-{each}.service", "enabled": True, "contents": UNIT}
                for each in range(units // count)
            ],
        )
        for number in range(count)
    ]


def pool(configuration: str = "") -> Object:
    """The pool that selects them; a tenth of its machines may be away."""
    selector = {"matchLabels": {names.ROLE_LABEL: ROLE}}
    nodes = {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{ROLE}": ""}}
    spec = {"machineConfigSelector": selector, "nodeSelector": nodes, "maxUnavailable": "10%"}
    obj: Object = {
        "apiVersion": names.API_VERSION,
        "kind": "MachineConfigPool",
        "metadata": {"name": ROLE},
        "spec": spec,
    }
    if configuration:
        obj["status"] = {"configuration": {"name": configuration}}
        obj["spec"]["configuration"] = {"name": configuration}
    return obj


def node(number: int, configuration: str) -> Object:
    """A machine that has a config and is well."""
    notes = {names.CURRENT_CONFIG: configuration, names.DESIRED_CONFIG: configuration, names.STATE: "Done"}
    meta = {
        "name": f"node-{number:05}",
        "labels": {f"{names.NODE_ROLE_PREFIX}{ROLE}": "", names.ZONE_LABEL: f"zone-{number % 3}"},
        "annotations": notes,
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta}


def pod(number: int, on: str) -> Object:
    """A pod that a drain evicts."""
    meta = {"name": f"pod-{number:05}", "namespace": "default", "labels": {"app": f"app-{number % 50}"}}
    spec = {"nodeName": on, "containers": [{"name": "main", "image": "example.com/app:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
