"""Failure domains of a control plane: what each one writes into the provider's part of a Machine, and which index is in which.

| platform  | what a domain names            | what is written                                                        |
| --------- | ------------------------------ | ---------------------------------------------------------------------- |
| AWS       | placement, subnet              | placement.availabilityZone, subnet by id, ARN or filters               |
| Azure     | zone, subnet                   | zone, subnet                                                           |
| GCP       | zone                           | zone                                                                   |
| OpenStack | availabilityZone, rootVolume   | availabilityZone, rootVolume.availabilityZone and volumeType           |
| VSphere   | a domain of the Infrastructure | workspace, network names, template                                     |
| Nutanix   | a domain of the Infrastructure | failureDomain, cluster, subnets                                        |

A Machine is in a domain when writing the domain would not change it. An index keeps its domain as long as no domain has more than
its share of indices, so that a replacement comes up beside the volumes and quotas of what it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.scaling.machines import provider_of, provider_value
from fastness.machineconfig.scaling.sets import Refused

Object = Mapping[str, Any]
FIELD: Final = "spec.template failureDomains"
MOST: Final = 100
_AWS_REFERENCES: Final = {"ID": "id", "ARN": "arn", "Filters": "filters"}


@dataclass(frozen=True, slots=True)
class FailureDomain:
    """A place for machines: its name in messages, and the members that it writes over those of the provider's part."""

    name: str
    members: JsonObject

    def placed(self, value: Object) -> JsonObject:
        """The provider's part of a Machine in this domain."""
        return _written_over(value, self.members)

    def holds(self, value: Object) -> bool:
        """Whether a Machine with this part is in the domain already."""
        return json.canonical(self.placed(value)) == json.canonical(value)


class _Unwritable(Exception):
    """Why a domain cannot be written, and what to do."""

    def __init__(self, reason: str, way: str) -> None:
        super().__init__(reason)
        self.reason, self.way = reason, way


def failure_domains(template: Object, infrastructure: Object) -> tuple[FailureDomain, ...] | Refused:
    """The domains of a set's template, none when it names none; refused when one of them cannot be written."""
    given = template.get("failureDomains") or {}
    if not isinstance(given, Mapping) or not given.get("platform"):
        return Refused(FIELD, "no platform is named", "set platform, or leave them out") if given else ()
    platform = str(given["platform"])
    provider = _PLATFORMS.get(platform)
    if provider is None:
        return Refused(
            f"{FIELD}.platform", f"nothing is known of domains of {platform}", f"use {', '.join(_PLATFORMS)}"
        )
    if provider_of(template) != provider.kind:
        reason = (
            f"domains of {platform} cannot be written into a {provider_of(template) or 'providerSpec without a kind'}"
        )
        return Refused(FIELD, reason, f"use a {provider.kind}, or leave them out: hosts are chosen by hostSelector")
    return _read(given, platform.lower(), provider, provider_value(template), infrastructure)


def _read(
    given: Object, member: str, provider: _Platform, value: Object, infrastructure: Object
) -> tuple[FailureDomain, ...] | Refused:
    entries, field = given.get(member) or [], f"{FIELD}.{member}"
    if not isinstance(entries, list) or len(entries) > MOST:
        return Refused(field, f"a list of at most {MOST} is wanted", "name each domain once")
    if not entries and not provider.may_be_empty:
        return Refused(field, "no domain is named", "name at least one, or leave failureDomains out")
    domains: dict[bytes, FailureDomain] = {}
    for number, entry in enumerate(entries):
        try:
            domain = provider.read(entry if isinstance(entry, Mapping) else {}, value, infrastructure)
        except _Unwritable as error:
            return Refused(f"{field}[{number}]", error.reason, error.way)
        if domains.setdefault(json.canonical(domain.members), domain) is not domain:
            return Refused(f"{field}[{number}]", "the same domain is named twice", "remove one of the two")
    return tuple(domains.values())


def spread(
    indices: Iterable[int], present: Mapping[int, Object | None], domains: Sequence[FailureDomain]
) -> dict[int, FailureDomain]:
    """The domain of every index: `present` has the provider's part of what an index has now.

    The largest share is one more than the smallest. Lower indices keep their domains first, and who has none, or is one too
    many, goes where the fewest are.
    """
    ordered = sorted(indices)
    least, larger = divmod(len(ordered), len(domains))
    counts, placed = [0] * len(domains), dict[int, FailureDomain]()

    def has_room(number: int) -> bool:
        grown = sum(count > least for count in counts)
        return counts[number] < least or (counts[number] == least and grown < larger)

    for index in ordered:
        value = present.get(index)
        own = next((n for n, domain in enumerate(domains) if value is not None and domain.holds(value)), None)
        if own is not None and has_room(own):
            counts[own], placed[index] = counts[own] + 1, domains[own]
    for index in ordered:
        if index not in placed:
            emptiest = counts.index(min(counts))
            counts[emptiest], placed[index] = counts[emptiest] + 1, domains[emptiest]
    return placed


def _written_over(value: Object, members: Object) -> JsonObject:
    """Members over a value, objects in objects; a None takes the member away."""
    result = dict(value)
    for name, member in members.items():
        inner = result.get(name)
        if member is None:
            result.pop(name, None)
        elif isinstance(member, Mapping):
            result[name] = _written_over(inner if isinstance(inner, Mapping) else {}, member)
        else:
            result[name] = member
    return result


def _text(entry: Object, name: str, *, what: str = "") -> str:
    text = entry.get(name)
    if not isinstance(text, str) or not text:
        raise _Unwritable(f"{what or name} is missing", f"set {what or name}")
    return text


def _optional(entry: Object, *names: str) -> JsonObject:
    return {name: entry[name] for name in names if entry.get(name)}


def _aws(entry: Object, _value: Object, _infrastructure: Object) -> FailureDomain:
    members: JsonObject = {}
    if placement := entry.get("placement"):
        placement = placement if isinstance(placement, Mapping) else {}
        zone = _text(placement, "availabilityZone", what="placement.availabilityZone")
        members["placement"] = {"availabilityZone": zone}
    if subnet := entry.get("subnet"):
        subnet = subnet if isinstance(subnet, Mapping) else {}
        member = _AWS_REFERENCES.get(str(subnet.get("type")))
        if member is None or not subnet.get(member):
            raise _Unwritable(
                "subnet names nothing by its type", f"use {', '.join(_AWS_REFERENCES)}, and set what it is called"
            )
        # A template that names its subnet in another way must not keep both.
        members["subnet"] = {**dict.fromkeys(_AWS_REFERENCES.values()), member: subnet[member]}
    if not members:
        raise _Unwritable("neither placement nor subnet is set", "set placement.availabilityZone")
    name = (members.get("placement") or {}).get("availabilityZone") or str(subnet)
    return FailureDomain(name, members)


def _azure(entry: Object, _value: Object, _infrastructure: Object) -> FailureDomain:
    zone = _text(entry, "zone")
    return FailureDomain(zone, {"zone": zone, **_optional(entry, "subnet")})


def _gcp(entry: Object, _value: Object, _infrastructure: Object) -> FailureDomain:
    zone = _text(entry, "zone")
    return FailureDomain(zone, {"zone": zone})


def _openstack(entry: Object, value: Object, _infrastructure: Object) -> FailureDomain:
    zone, volume = entry.get("availabilityZone"), entry.get("rootVolume")
    members: JsonObject = _optional(entry, "availabilityZone")
    if isinstance(volume, Mapping):
        if zone and not volume.get("availabilityZone"):
            raise _Unwritable("rootVolume.availabilityZone is required when availabilityZone is set", "set it")
        size = (value.get("rootVolume") or {}).get("diskSize")
        if not size:
            raise _Unwritable("the template has no rootVolume.diskSize for the volume to have", "set it there")
        members["rootVolume"] = {"volumeType": _text(volume, "volumeType"), **_optional(volume, "availabilityZone")}
    if not members:
        raise _Unwritable("neither availabilityZone nor rootVolume is set", "set availabilityZone")
    return FailureDomain(str(zone or volume), members)


def _of_infrastructure(entry: Object, infrastructure: Object, platform: str) -> Object:
    """The entry of the Infrastructure that a domain names."""
    name = _text(entry, "name")
    spec = ((infrastructure.get("spec") or {}).get("platformSpec") or {}).get(platform) or {}
    for defined in spec.get("failureDomains") or ():
        if isinstance(defined, Mapping) and defined.get("name") == name:
            return defined
    raise _Unwritable(
        f"Infrastructure cluster defines no domain {name}",
        f"add it to spec.platformSpec.{platform}.failureDomains there",
    )


def _vsphere(entry: Object, value: Object, infrastructure: Object) -> FailureDomain:
    defined = _of_infrastructure(entry, infrastructure, "vsphere")
    topology = defined.get("topology") or {}
    cluster = str((infrastructure.get("status") or {}).get("infrastructureName") or "")
    datacenter = _text(topology, "datacenter", what="its topology.datacenter in the Infrastructure")
    compute = topology.get("computeCluster")
    pool = topology.get("resourcePool") or (f"/{compute}/resources" if compute else None)
    workspace = {
        "server": _text(defined, "server"), "datacenter": datacenter, "datastore": topology.get("datastore") or None,
        "resourcePool": pool, "folder": topology.get("folder") or f"/{datacenter}/vm/{cluster}",
    }  # fmt: skip
    members: JsonObject = {"workspace": workspace}
    if template := topology.get("template"):
        members["template"] = str(template).rpartition("/")[2]
    elif defined.get("region") and defined.get("zone"):
        image = f"{cluster}-rhcos-{defined['region']}-{defined['zone']}"
        members["template"] = f"/{datacenter}/vm/{cluster}/{image}"
    if networks := topology.get("networks"):
        members["network"] = {"devices": _devices(value, networks)}
    if not cluster and not (topology.get("folder") and topology.get("template")):
        raise _Unwritable(
            "folder and template follow from status.infrastructureName of the Infrastructure, which is empty",
            "set topology.folder and topology.template there",
        )
    return FailureDomain(str(defined["name"]), members)


def _devices(value: Object, networks: Sequence[Any]) -> list[JsonObject]:
    """Network devices of a Machine: addresses that come from pools stay, the network is the domain's."""
    present = [each for each in (value.get("network") or {}).get("devices") or () if isinstance(each, Mapping)]
    pooled = present if present and present[0].get("addressesFromPools") else []
    wide = max(len(networks), len(pooled))
    devices = [dict(pooled[number]) if number < len(pooled) else {} for number in range(wide)]
    for device, network in zip(devices, networks, strict=False):
        device["networkName"] = str(network)
    return devices


def _nutanix(entry: Object, _value: Object, infrastructure: Object) -> FailureDomain:
    defined = _of_infrastructure(entry, infrastructure, "nutanix")
    if not defined.get("cluster") or not defined.get("subnets"):
        raise _Unwritable("its entry in the Infrastructure lacks cluster or subnets", "set them there")
    # A template that names its cluster in another way must not keep both.
    cluster = {"uuid": None, "name": None, **_nutanix_reference(defined["cluster"])}
    subnets = [_nutanix_reference(subnet) for subnet in defined["subnets"]]
    name = str(defined["name"])
    return FailureDomain(name, {"failureDomain": {"name": name}, "cluster": cluster, "subnets": subnets})


def _nutanix_reference(reference: Object) -> JsonObject:
    """A reference in the words of a providerSpec, which writes its types in lower case."""
    return {**reference, "type": str(reference.get("type") or "").lower()}


@dataclass(frozen=True, slots=True)
class _Platform:
    kind: str
    read: Callable[[Object, Object, Object], FailureDomain]
    may_be_empty: bool = False


_PLATFORMS: Final[Mapping[str, _Platform]] = {
    "AWS": _Platform("AWSMachineProviderConfig", _aws),
    "Azure": _Platform("AzureMachineProviderSpec", _azure),
    "GCP": _Platform("GCPMachineProviderSpec", _gcp),
    "OpenStack": _Platform("OpenstackProviderSpec", _openstack, may_be_empty=True),
    "VSphere": _Platform("VSphereMachineProviderSpec", _vsphere),
    "Nutanix": _Platform("NutanixMachineProviderConfig", _nutanix),
}
WRITABLE: Final = frozenset(platform.kind for platform in _PLATFORMS.values())
"""Kinds of providerSpecs that Machines of a control plane can be written with."""
