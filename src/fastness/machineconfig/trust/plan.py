"""What a ConfigMap that nodes' trust is read from would do to machines, before it is applied.

The answer is the same for every node, so it is about sources and not about pools: which files, what happens after, and what is
wrong with it, in the words that the ControllerConfig would use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.trust.bundles import BadBundle, checked
from fastness.machineconfig.trust.files import CLOUD_CA, KUBECONFIGS, registry_file
from fastness.machineconfig.trust.sources import (
    BUNDLE_KEY,
    TrustSources,
    bad_host,
    host_of,
    sourced_trust,
)

Object = Mapping[str, Any]
BESIDE: Final = "written beside the configs of all nodes, paused pools too; nothing restarts"
_RESTART: Final = "kubelets are stopped, get it and start, when it has not changed for a minute; no drain, no reboot"
_CLOUD: Final = (
    "cloud.conf is part of the base: pools on OpenShift are drained and reboot; ca-bundle.pem restarts nothing"
)
_USER: Final = "part of the base: a new config, after which services read certificates again; no drain, no reboot"
_USER_FILE: Final = "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt"


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What one ConfigMap does: the files of machines, what happens after, and what is wrong."""

    place: str
    files: tuple[str, ...]
    effect: str
    problems: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {"source": self.place, "files": list(self.files), "effect": self.effect, "problems": list(self.problems)}


def plan_sources(config_maps: Iterable[Object]) -> list[SourcePlan]:
    """The plan of each ConfigMap that is a source; others say nothing about machines."""
    plans = []
    for config_map in config_maps:
        meta = config_map.get("metadata") or {}
        plan = _plan(str(meta.get("namespace") or ""), str(meta.get("name") or ""), config_map)
        plans += [plan] if plan is not None else []
    return plans


def _plan(namespace: str, name: str, config_map: Object) -> SourcePlan | None:
    place, data = f"ConfigMap {namespace}/{name}", config_map.get("data") or {}
    hosts = tuple(registry_file(host_of(key)) for key in sorted(data) if not bad_host(key))
    match namespace, name:
        case "openshift-config-managed", "image-registry-ca":
            return SourcePlan(place, hosts, BESIDE, _problems(TrustSources(image_registry_ca=config_map)))
        case "openshift-config-managed", "kube-apiserver-client-ca":
            problems = _problems(TrustSources(openshift_client_ca=config_map))
            return SourcePlan(place, (names.KUBELET_CA,), BESIDE, problems)
        case "openshift-config-managed", "kube-apiserver-server-ca":
            return SourcePlan(place, KUBECONFIGS, _RESTART, _authority(place, data))
        case "openshift-config-managed", "kube-cloud-config":
            files = ("/etc/kubernetes/cloud.conf", CLOUD_CA)
            return SourcePlan(place, files, _CLOUD, _problems(TrustSources(cloud_config=config_map)))
        case "openshift-config", "user-ca-bundle":
            return SourcePlan(place, (_USER_FILE,), _USER, _problems(TrustSources(user_ca=config_map)))
        case "openshift-config", _:
            named = TrustSources(registry_user_ca=config_map, registry_user_ca_name=name)
            effect = f"where Image cluster names it as additionalTrustedCA: {BESIDE}"
            return SourcePlan(place, hosts, effect, _problems(named))
        case _:
            return None


def _problems(sources: TrustSources) -> tuple[str, ...]:
    problems = sourced_trust(sources).problems
    return tuple(f"{problem.place} {problem.reason} ({problem.way_out})" for problem in problems)


def _authority(place: str, data: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        checked(str(data.get(BUNDLE_KEY) or ""))
    except BadBundle as error:
        return (f"{place} {error}: nodes keep the authority that they have",)
    return ()
