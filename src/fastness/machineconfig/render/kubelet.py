"""KubeletConfig: settings of the kubelet, turned into files of a machine.

The kubelet reads one configuration file, so the cluster's own settings and the user's are merged into it (`kubelet_merge`), the
user's winning, except for what the cluster depends on: those fields are refused, all of them at once, in the words that users of
this kind know. The log level and the reserve for the system go into files of their own, where units read them.

`base` is what every kubelet of a pool has, whatever objects there are; with those of the cluster (`cluster_settings_of`) it is
what configs carry that follow from no user's settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.formats.errors import YamlError
from fastness.formats.yaml import load_documents
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import object_name
from fastness.machineconfig.ignition.resources import file_bytes
from fastness.machineconfig.render.base.kubelet import (
    CONFIG_FILE,
    LOG_FILE,
    SIZING_FILE,
    settings_text,
)
from fastness.machineconfig.render.base.rows import config_file
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.settings.cluster import GROUPS_GATE, ClusterSettings, kubelet_layer, own_tls
from fastness.machineconfig.render.settings.merge import Merged, merge_settings, sizing_file
from fastness.machineconfig.render.settings.tls import CUSTOM
from fastness.protocol.ignition_spec import CURRENT

Object = Mapping[str, Any]
MAX_LOG_LEVEL: Final = 10
MAX_QUOTED: Final = 256
PREFIX: Final = "KubeletConfiguration: "
_FORBIDDEN: Final = ("cgroupDriver", "clusterDNS", "clusterDomain", "featureGates", "failSwapOn")
_CONTROL_PLANE: Final = (names.MASTER, names.ARBITER)


def cluster_settings_of(
    base: Object, pool: Object, settings: ClusterSettings, *, profile: Object | None = None
) -> JsonObject:
    """All that the cluster sets for the kubelets of a pool; `profile` is a TLS profile instead of the cluster's.

    Raises BadSettings for a profile that no kubelet could follow.
    """
    return {**base, **kubelet_layer(settings, pool, profile=profile)}


def kubelet_spec(kubelet: Object, pool: Object, base: Object, settings: ClusterSettings | None = None) -> JsonObject:
    """The spec of the MachineConfig that a KubeletConfig generates for a pool; raises BadSettings."""
    wrong = list(_wrong(kubelet, pool))
    if wrong:
        raise BadSettings(PREFIX + "; ".join(wrong), "remove these fields from the KubeletConfig")
    spec = kubelet.get("spec") or {}
    try:
        merged = _merged(spec, pool, base, settings or ClusterSettings())
        final, sizing = sizing_file(merged.settings, spec.get("autoSizingReserved"))
    except BadSettings as error:
        raise BadSettings(PREFIX + error.message, error.hint) from error
    reserved, cgroups = final.get("systemReservedCgroup"), final.get("systemCgroups")
    if reserved and cgroups and reserved != cgroups:
        raise BadSettings(
            f"{PREFIX}systemReservedCgroup ({reserved}) must match systemCgroups ({cgroups})", "set both to the same"
        )
    files = [settings_file(final)]
    if sizing:
        files.append(config_file(SIZING_FILE, sizing))
    if spec.get("logLevel") is not None:
        files.append(config_file(LOG_FILE, f'[Service]\nEnvironment="KUBELET_LOG_LEVEL={spec["logLevel"]}"\n'))
    return file_spec(*files)


def kubelet_remarks(kubelet: Object, pool: Object, base: Object, settings: ClusterSettings | None = None) -> list[str]:
    """What of an accepted KubeletConfig has no effect, and why; raises BadSettings as `kubelet_spec` does."""
    spec, cluster = kubelet.get("spec") or {}, settings or ClusterSettings()
    remarks: list[str] = []
    profile = _own_profile(spec)
    dropped = own_tls(profile, cluster).dropped if profile is not None else ()
    if dropped:
        remarks.append(f"kubelets do not know these ciphers, they were left out: {', '.join(dropped)}")
    groups = ((profile or {}).get("custom") or {}).get("groups")
    if (profile or {}).get("type") == CUSTOM and groups and not cluster.gate_on(GROUPS_GATE):
        remarks.append(f"tlsSecurityProfile.custom.groups has no effect without the feature gate {GROUPS_GATE}")
    ineffective = _merged(spec, pool, base, cluster).ineffective
    if ineffective:
        remarks.append(f"an empty value does not take away what the cluster sets: {', '.join(ineffective)}")
    return remarks


def settings_file(settings: Object) -> JsonObject:
    """The kubelet's configuration file."""
    return config_file(CONFIG_FILE, settings_text(settings))


def file_spec(*files: JsonObject) -> JsonObject:
    """A spec with these files and nothing else."""
    return {"config": {"ignition": {"version": CURRENT}, "storage": {"files": list(files)}}}


def settings_in(config: Object) -> JsonObject | None:
    """The kubelet's settings in a MachineConfig of ours; None where there are none that can be read."""
    storage = (((config.get("spec") or {}).get("config") or {}).get("storage")) or {}
    entry = next((entry for entry in storage.get("files") or () if entry.get("path") == CONFIG_FILE), None)
    try:
        documents = load_documents(file_bytes(entry) or b"")
    except YamlError:
        return None
    value = documents[0].value if documents else None
    return value if isinstance(value, dict) else None


def with_settings(spec: JsonObject, more: Object) -> JsonObject:
    """A spec of ours with more settings in its kubelet's file; the same spec where it has no such file."""
    settings = settings_in({"spec": spec})
    if settings is None:
        return spec
    document, file = spec["config"], settings_file({**settings, **more})
    files = [file if entry.get("path") == CONFIG_FILE else entry for entry in document["storage"]["files"]]
    return {**spec, "config": {**document, "storage": {**document["storage"], "files": files}}}


def is_control_plane(pool: Object) -> bool:
    """Whether a pool is one of the control plane, by its name or by the nodes that it selects."""
    selector = (pool.get("spec") or {}).get("nodeSelector") or {}
    keys = {
        *(selector.get("matchLabels") or {}),
        *(entry.get("key") for entry in selector.get("matchExpressions") or ()),
    }
    return object_name(pool).name in _CONTROL_PLANE or names.MASTER_LABEL in keys


def _own_profile(spec: Object) -> Object | None:
    profile = spec.get("tlsSecurityProfile")
    return profile if isinstance(profile, Mapping) and profile.get("type") else None


def _merged(spec: Object, pool: Object, base: Object, settings: ClusterSettings) -> Merged:
    before = cluster_settings_of(base, pool, settings, profile=_own_profile(spec))
    return merge_settings(before, spec.get("kubeletConfig") or {})


def _wrong(kubelet: Object, pool: Object) -> Iterator[str]:
    spec = kubelet.get("spec") or {}
    settings = spec.get("kubeletConfig") or {}
    if not isinstance(settings, Mapping):
        yield "spec.kubeletConfig must be an object"
        return
    swap = settings.get("memorySwap")
    behavior = swap.get("swapBehavior") if isinstance(swap, Mapping) else swap
    for name, value in (*((name, settings.get(name)) for name in _FORBIDDEN), ("swapBehavior", behavior)):
        if value not in (None, ""):
            yield f"{name} is not allowed to be set, but contains: {_as_go_prints(value)[:MAX_QUOTED]}"
    if spec.get("autoSizingReserved") and settings.get("systemReserved"):
        yield "autoSizingReserved and systemdReserved cannot be set together"
    yield from _wrong_static_pods(settings, pool)
    level = spec.get("logLevel")
    if level is not None and (type(level) is not int or not 0 <= level <= MAX_LOG_LEVEL):
        yield f"KubeletConfig's LogLevel is not valid [0,{MAX_LOG_LEVEL}]: {level}"
    if spec.get("systemGomaxprocsBehavior") not in (None, "", "Disabled"):
        yield f"systemGomaxprocsBehavior {spec['systemGomaxprocsBehavior']} is not supported"


def _wrong_static_pods(settings: Object, pool: Object) -> Iterator[str]:
    path = settings.get("staticPodPath")
    if path is None:
        return
    name = object_name(pool).name
    if is_control_plane(pool):
        yield f'staticPodPath is not allowed to be set for control plane pool "{name}"'
    elif path != "":
        yield f'staticPodPath must be empty for pool "{name}", but contains: {str(path)[:MAX_QUOTED]}'


def _as_go_prints(value: object) -> str:
    """A value as users of this kind have seen it in these messages."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{' '.join(_as_go_prints(entry) for entry in value)}]"
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{name}:{_as_go_prints(value[name])}' for name in sorted(value))}]"
    return str(value)
