"""What the whole cluster asks of its kubelets: nodes.config, FeatureGate and APIServer, each called `cluster`.

`ClusterSettings` holds the three and answers what they mean for a kubelet: which gates are set, how often workers report, which
TLS profile its listener has. What cannot be followed is a sentence for the object's condition; nothing here raises for what a
user wrote, because one bad object must not stop what the others ask for.

The latency profile is stateful: between the quickest and the slowest there is a step that may not be left out, because during
the change one side would wait for reports that the other does not send yet. So `latency` is the profile that holds, which is not
always the one that is asked for (`cluster_configs.standing_latency`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import object_name
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.settings.choices import is_openshift
from fastness.machineconfig.render.settings.gates import kubelet_gates
from fastness.machineconfig.render.settings.tls import TlsSettings, tls_settings

Object = Mapping[str, Any]
DEFAULT: Final = "Default"
MEDIUM: Final = "MediumUpdateAverageReaction"
LOW: Final = "LowUpdateSlowReaction"
# How often a kubelet says that it is there.
REPORT_EVERY: Final[Mapping[str, str]] = {DEFAULT: "10s", MEDIUM: "20s", LOW: "1m"}
CUSTOM_GATES: Final = "CustomNoUpgrade"
STORAGE_GATE: Final = "AdditionalStorageConfig"
GROUPS_GATE: Final = "TLSGroupPreferences"
CGROUP_MODES: Final = ("", "v2")
CGROUP_ARGUMENTS: Final = ("systemd.unified_cgroup_hierarchy=1", 'cgroup_no_v1="all"')


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of a cluster, or why there are none."""

    values: Mapping[str, bool]
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The three objects as they are, the latency profile that holds, and the release that the cluster runs."""

    nodes: Object | None = None
    feature_gate: Object | None = None
    apiserver: Object | None = None
    latency: str = DEFAULT
    release: str = ""

    def gate_on(self, name: str) -> bool:
        """Whether a gate is on."""
        return bool(gates_of(self).values.get(name))


def kubelet_layer(settings: ClusterSettings, pool: Object, *, profile: Object | None = None) -> JsonObject:
    """What these objects add to the base of a pool's kubelet; `profile` is a TLS profile instead of theirs.

    Raises BadSettings for a profile that no kubelet could follow.
    """
    layer: JsonObject = {}
    gates, _ = gates_for(settings, pool)
    if gates:
        layer["featureGates"] = gates
    if object_name(pool).name == names.WORKER and settings.nodes is not None:
        layer["nodeStatusUpdateFrequency"] = REPORT_EVERY[settings.latency]
    tls = cluster_tls(settings) if profile is None else own_tls(profile, settings)
    return {**layer, **tls.settings}


def own_tls(profile: Object, settings: ClusterSettings) -> TlsSettings:
    """The settings of a KubeletConfig's own profile; raises BadSettings."""
    return tls_settings(profile, groups=settings.gate_on(GROUPS_GATE))


def cluster_tls(settings: ClusterSettings) -> TlsSettings:
    """The settings of the cluster's profile; those of Intermediate where it has none that a kubelet could follow."""
    profile = ((settings.apiserver or {}).get("spec") or {}).get("tlsSecurityProfile")
    try:
        return tls_settings(profile, groups=settings.gate_on(GROUPS_GATE))
    except BadSettings:
        unusable = ((profile or {}).get("custom") or {}).get("ciphers") or (str((profile or {}).get("type")),)
        return TlsSettings(tls_settings(None).settings, tuple(str(name) for name in unusable))


def gates_for(settings: ClusterSettings, pool: Object) -> tuple[dict[str, bool], tuple[str, ...]]:
    """The gates for a pool's kubelets, and those that they would not know."""
    every = gates_of(settings).values
    return kubelet_gates(every, filtered=not is_openshift(pool))


def gates_of(settings: ClusterSettings) -> Gates:
    """All gates that the FeatureGate sets.

    Where an operator has worked out the sets (`status.featureGates`), that counts, of this release; otherwise only the lists of
    CustomNoUpgrade say which gates are meant.
    """
    spec, status = ((settings.feature_gate or {}).get(part) or {} for part in ("spec", "status"))
    releases = [entry for entry in status.get("featureGates") or () if isinstance(entry, Mapping)]
    if releases:
        of_release = next((entry for entry in releases if entry.get("version") == settings.release), releases[0])
        return Gates(dict(_listed(of_release, "name")))
    feature_set = spec.get("featureSet") or ""
    if feature_set in ("", DEFAULT):
        return Gates({})
    if feature_set == CUSTOM_GATES:
        return Gates(dict(_listed(spec.get("customNoUpgrade") or {}, "")))
    return Gates(
        {},
        f"featureSet {feature_set} has a meaning only where an operator writes status.featureGates; "
        f"list the gates under customNoUpgrade, with featureSet {CUSTOM_GATES}",
    )


def _listed(lists: Object, key: str) -> Iterator[tuple[str, bool]]:
    """Names with their value; a name in both lists is off, the safer of the two."""
    for field, on in (("enabled", True), ("disabled", False)):
        for entry in lists.get(field) or ():
            yield str(entry.get(key, "") if key else entry), on


def node_refusal(nodes: Object | None, standing: str) -> tuple[str, bool]:
    """Why a nodes.config cannot be followed, empty when it can; and whether that concerns workers alone."""
    spec = (nodes or {}).get("spec") or {}
    mode = spec.get("cgroupMode") or ""
    if mode not in CGROUP_MODES:
        return cgroup_refusal(mode), False
    requested = spec.get("workerLatencyProfile") or DEFAULT
    if requested not in REPORT_EVERY:
        return f"workerLatencyProfile {requested!r} is not one of {', '.join(REPORT_EVERY)}", True
    if is_prohibited(standing, requested):
        return f"workerLatencyProfile cannot go from {standing} to {requested} directly; set {MEDIUM} first", True
    return "", False


def cgroup_refusal(mode: str) -> str:
    """Why a mode of control groups is not followed; it is for the condition, the pools and whoever writes it."""
    return (
        f"unsupported cgroup mode {mode!r}: systemd and the kubelet have v2 alone, and another takes kernel arguments, "
        "which confidential pools refuse; set cgroupMode to v2"
    )


def is_prohibited(standing: str, requested: str) -> bool:
    """Whether a step between latency profiles leaves out the one in the middle."""
    return {standing, requested} == {DEFAULT, LOW}
