"""What a generated spec writes to a machine."""

from __future__ import annotations

from typing import Any

from fastness.formats import data_url
from fastness.machineconfig.render.base import kubelet
from fastness.machineconfig.render.base.node_inputs import read_inputs
from fastness.machineconfig.render.kubelet import settings_in

JsonObject = dict[str, Any]
CONTROLLER: JsonObject = {"metadata": {"name": "machine-config-controller"}, "spec": {"clusterDNSIP": "172.30.0.10"}}
BASE = kubelet.kubelet_settings(read_inputs({"metadata": {"name": "worker"}}, CONTROLLER)[0])


def files(spec: JsonObject) -> dict[str, str]:
    """The files of a spec, by path."""
    entries = (spec["config"].get("storage") or {}).get("files", ())
    return {entry["path"]: data_url.contents(entry["contents"]).decode() for entry in entries}


def kubelet_settings(spec: JsonObject) -> JsonObject:
    """The kubelet's settings in a spec."""
    settings = settings_in({"spec": spec})
    assert settings is not None, "there is no kubelet.conf"
    return settings
