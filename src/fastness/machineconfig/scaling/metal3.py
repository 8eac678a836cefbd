"""Hosts of Metal3: which one a Machine takes, what is written on it, how far it is, and how it is given back.

    spec.providerSpec.value   {"apiVersion": "baremetal.cluster.k8s.io/v1alpha1", "kind": "BareMetalMachineProviderSpec",
                               "image": {"url", "checksum"} or "customDeploy": {"method"}, "userData": {"name", "namespace"},
                               "hostSelector": {"matchLabels", "matchExpressions"}}

    available ─ claim: image, user-data, consumerRef, online in one write ─▶ provisioning ─▶ provisioned
    provisioned ─ release: image, user-data, online taken away ─▶ deprovisioning ─▶ available ─ consumerRef taken away

The host itself is moved by the operator of that project; what is decided here are the few fields that ask for it. Rules:

* A host that is somebody's, is being deleted, was provisioned by others, shows an error or is not inspected yet is not taken.
* A host that is paused or detached is not written, neither to take it nor to give it back: somebody works on it.
* A claim is one write with the version of the host that was looked at: of two Machines that want it one gets it.
* What a host runs is not changed under it: another image in the Machine is for the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fastness.formats.errors import SelectorError
from fastness.formats.selectors import LabelSelector, label_selector_from_object
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, is_being_deleted, labels_of, metadata, object_name
from fastness.kinds.openshift.machines import GROUP, PROVIDER_MACHINE
from fastness.machineconfig.scaling.machines import provider_value
from fastness.machineconfig.scaling.sets import Refused

Object = Mapping[str, Any]
HOST_OF_MACHINE: Final = "metal3.io/BareMetalHost"
PAUSED: Final = "baremetalhost.metal3.io/paused"
DETACHED: Final = "baremetalhost.metal3.io/detached"
FREE: Final = frozenset({"available", "ready"})
PROVISIONED: Final = "provisioned"
BUSY: Final = frozenset({"provisioning", PROVISIONED, "deprovisioning"})
_IMAGE: Final = ("url", "checksum", "checksumType", "format")


def wrong(machine: Object) -> Refused | None:
    """What in a Machine keeps every host from becoming it; None when nothing does."""
    value, place = provider_value(machine), "spec.providerSpec.value"
    image, method = _part(value, "image"), _part(value, "customDeploy").get("method")
    if not method and not (image.get("url") and image.get("checksum")):
        return Refused(place, "it names neither an image nor a way to deploy", "give image.url and image.checksum")
    if not _part(value, "userData").get("name"):
        reason = "a host without user-data knows no door"
        return Refused(f"{place}.userData.name", reason, "name the Secret of its pool, <pool>-user-data-managed")
    if _selector(value) is None:
        return Refused(
            f"{place}.hostSelector", "it cannot be read", "give matchLabels, or matchExpressions with key and operator"
        )
    return None


def own_host(machine: Object, hosts: Iterable[Object]) -> Object | None:
    """The host that a Machine has."""
    return next((host for host in hosts if _is_consumer(host, machine)), None)


def choose(machine: Object, hosts: Iterable[Object]) -> Object | None:
    """The host that a Machine takes, the first by name of those that it may have; None while there is none."""
    candidates = [host for host in hosts if unfit(machine, host) is None]
    return min(candidates, key=lambda host: object_name(host).name, default=None)


def unfit(machine: Object, host: Object) -> str | None:
    """Why a Machine cannot have a host, in words that count: `in use`, `paused`; None when it can."""
    spec, status = host.get("spec") or {}, host.get("status") or {}
    state = str((status.get("provisioning") or {}).get("state") or "")
    selector = _selector(provider_value(machine))
    reasons: Iterator[tuple[bool, str]] = iter((
        (selector is None or not selector.matches(labels_of(host)), "not selected"),
        (is_being_deleted(host), "being deleted"),
        (spec.get("consumerRef") is not None, "in use"),
        (held(host) is not None, "paused or detached"),
        (bool(spec.get("externallyProvisioned")), "provisioned by somebody else"),
        (bool(status.get("errorMessage")), "with an error"),
        (state not in FREE, f"in state {state or 'unknown'}"),
    ))  # fmt: skip
    return next((reason for applies, reason in reasons if applies), None)


def scarcity(machine: Object, hosts: Iterable[Object]) -> str:
    """Why a Machine waits for a host, with how many there are and what keeps them."""
    counts = Counter(reason for host in hosts if (reason := unfit(machine, host)) is not None)
    kept = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    return f"no host is free: {kept}" if kept else "no host is free: there are none in this namespace"


def held(host: Object) -> str | None:
    """Why a host must not be written; None when it may be."""
    notes = annotations_of(host)
    if PAUSED in notes:
        return f"host {object_name(host).name} is paused"
    return f"host {object_name(host).name} is detached" if DETACHED in notes else None


def claim(machine: Object, host: Object) -> JsonObject:
    """The one patch by which a Machine takes a host, for the version of the host that was looked at."""
    value, place = provider_value(machine), object_name(machine)
    image = {name: text for name in _IMAGE if (text := _part(value, "image").get(name))}
    method = _part(value, "customDeploy").get("method")
    secret = _part(value, "userData")
    spec: JsonObject = {
        "userData": {"name": secret["name"], "namespace": secret.get("namespace") or place.namespace},
        "consumerRef": {
            "apiVersion": PROVIDER_MACHINE.api_version, "kind": PROVIDER_MACHINE.kind, "name": place.name,
            "namespace": place.namespace,
        },
        "online": True,
    }  # fmt: skip
    spec |= {"image": image} if image else {}
    spec |= {"customDeploy": {"method": method}} if method else {}
    return {"metadata": {"resourceVersion": metadata(host).get("resourceVersion")}, "spec": spec}


def is_asked(host: Object) -> bool:
    """Whether a host is asked to run something: without, it is not provisioned, whoever is its consumer."""
    spec = host.get("spec") or {}
    return bool(spec.get("image") or spec.get("customDeploy"))


def release(host: Object) -> JsonObject | None:
    """The patch that asks for a host to be emptied; None when it was asked for."""
    spec = host.get("spec") or {}
    # Whoever set disablePowerOff shares the power of this host with something else.
    online = bool(spec.get("disablePowerOff"))
    if not is_asked(host) and not spec.get("userData") and bool(spec.get("online")) == online:
        return None
    return {"spec": {"image": None, "customDeploy": None, "userData": None, "online": online}}


def is_released(host: Object) -> bool:
    """Whether nothing of a Machine is on a host any more."""
    return not is_asked(host) and _state(host) not in BUSY


def is_provisioned(host: Object) -> bool:
    """Whether a host runs what it was asked to."""
    return _state(host) == PROVISIONED


def provider_id(host: Object) -> str:
    """How the provider names a host, on its Machine and its Node."""
    place = object_name(host)
    return f"baremetalhost:///{place.namespace}/{place.name}/{metadata(host).get('uid') or ''}"


def addresses(host: Object) -> list[JsonObject]:
    """The addresses of a host, as inspection saw them."""
    hardware = (host.get("status") or {}).get("hardware") or {}
    found = [str(nic["ip"]) for nic in hardware.get("nics") or () if isinstance(nic, Mapping) and nic.get("ip")]
    named = str(hardware.get("hostname") or "")
    internal: list[JsonObject] = [{"type": "InternalIP", "address": address} for address in dict.fromkeys(found)]
    return [
        *internal,
        *([{"type": "Hostname", "address": named}, {"type": "InternalDNS", "address": named}] if named else []),
    ]


def trouble(host: Object) -> str:
    """What is wrong with a host, in its operator's words; empty when nothing is."""
    status = host.get("status") or {}
    if not status.get("errorMessage"):
        return ""
    count = status.get("errorCount") or 1
    return (
        f"host {object_name(host).name}: {status.get('errorType') or 'error'}, {count} times: {status['errorMessage']}"
    )


def node_of(host: Object, nodes: Iterable[Object]) -> Object | None:
    """The Node that a host became: by the provider's name for it, else the only one with an address of the host."""
    own, among = provider_id(host), list(nodes)
    named = next((node for node in among if (node.get("spec") or {}).get("providerID") == own), None)
    if named is not None:
        return named
    present = {entry["address"] for entry in addresses(host) if entry["type"] == "InternalIP"}
    # A node reports its addresses itself. Where two say that they have this one, somebody lies, and neither is believed.
    claimants = [node for node in among if present & _internal(node)]
    return claimants[0] if len(claimants) == 1 and not (claimants[0].get("spec") or {}).get("providerID") else None


def _internal(node: Object) -> set[str]:
    entries = (node.get("status") or {}).get("addresses") or ()
    return {str(entry.get("address")) for entry in entries if entry.get("type") == "InternalIP"}


def _state(host: Object) -> str:
    return str((((host.get("status") or {}).get("provisioning")) or {}).get("state") or "")


def _is_consumer(host: Object, machine: Object) -> bool:
    reference, place = (host.get("spec") or {}).get("consumerRef") or {}, object_name(machine)
    group = str(reference.get("apiVersion") or "").partition("/")[0]
    named = (reference.get("kind"), reference.get("namespace"), reference.get("name"))
    return group == GROUP and named == (PROVIDER_MACHINE.kind, place.namespace, place.name)


def _selector(value: Object) -> LabelSelector | None:
    try:
        return label_selector_from_object(value.get("hostSelector") or {})
    except (SelectorError, AttributeError, TypeError):
        return None


def _part(value: Object, name: str) -> Object:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}
