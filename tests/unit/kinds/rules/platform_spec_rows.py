"""Rows of the ControllerConfig: its copies of DNS and of the spec of Infrastructure."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.kinds.rules import messages as m
from tests.unit.kinds.rules.cases import CONTROLLER, Case, at, case

PLATFORM: Final = "spec.infra.spec.platformSpec"
VIRTUAL_IPS: Final = ("apiServerInternalIPs", "ingressIPs")
FOUR, SIX = "192.0.2.1", "2001:db8::1"


def families(field: str) -> str:
    """What is said of two addresses of one family."""
    return f"{field} must contain at most one IPv4 address and at most one IPv6 address"


def union(member: str, word: str, value: str) -> str:
    """What is said of a member that does not fit its discriminator."""
    return f"{member} is required when {word} is {value}, and forbidden otherwise"


_ARN: Final = (
    "privateZoneIAMRole must be a valid AWS IAM role ARN in the format: "
    "arn:<partition>:iam::<account-id>:role/<role-name>"
)
_NAMES: Final = "spec.dns.spec.platform"
_ROLE: Final = "arn:aws-eusc:iam::123456789012:role/dns"
_NOT_A_ROLE: Final = "arn:aws:iam::1234:role/dns"
DNS_ROWS: Final = [
    case(CONTROLLER, _NAMES, "aws configuration is required when platform is AWS, and forbidden otherwise",
         {"type": "AWS", "aws": {}}, {"type": "", "aws": {}}),
    case(CONTROLLER, f"{_NAMES}.type", "allowed values are '' and 'AWS'", "", "Azure"),
    Case(CONTROLLER, f"{_NAMES}.aws.privateZoneIAMRole", _ARN,
         *(at(CONTROLLER, _NAMES, {"type": "AWS", "aws": {"privateZoneIAMRole": role}}) for role in (_ROLE, _NOT_A_ROLE))),
]  # fmt: skip

_TOPOLOGY: Final = (
    "spec.controlPlaneTopology must match status.controlPlaneTopology or be set to HighlyAvailable when "
    "status.controlPlaneTopology is SingleReplica"
)


def _topology(spec: str, status: str) -> dict[str, Any]:
    return at(CONTROLLER, "spec.infra", {
        "spec": {"controlPlaneTopology": spec}, "status": {"controlPlaneTopology": status},
    })  # fmt: skip


TOPOLOGY_ROWS: Final = [
    Case(CONTROLLER, "spec.infra", _TOPOLOGY, _topology("HighlyAvailable", "SingleReplica"),
         _topology("DualReplica", "SingleReplica"), _topology("SingleReplica", "SingleReplica")),
    Case(CONTROLLER, "spec.infra", _TOPOLOGY, _topology("DualReplica", "DualReplica"),
         _topology("SingleReplica", "HighlyAvailable"), _topology("External", "SingleReplica"), again=True),
    # On create nothing is compared, and what was taken then may stay.
    Case(CONTROLLER, "spec.infra", _TOPOLOGY, _topology("External", "SingleReplica"),
         _topology("DualReplica", "SingleReplica"), _topology("External", "SingleReplica"), again=True),
]  # fmt: skip


def on_premises_rows(provider: str) -> list[Case]:
    """Rows of the providers without a cloud."""
    place = f"{PLATFORM}.{provider}"
    rows = []
    for field in VIRTUAL_IPS:
        rows += [
            case(CONTROLLER, place, f"{field} list is required once set", {field: [SIX]}, {}, old={field: [FOUR]}),
            case(CONTROLLER, f"{place}.{field}", families(field), [FOUR, SIX], [FOUR, "192.0.2.2"]),
            case(CONTROLLER, f"{place}.{field}[]", *m.IP),
        ]
    return rows + network_rows(place)


def network_rows(place: str) -> list[Case]:
    """Rows about the networks of machines."""
    networks = ["192.0.2.0/24", "2001:db8::/32"]
    return [
        case(CONTROLLER, f"{place}.machineNetworks", m.DISTINCT, networks, [*networks, networks[0]]),
        case(CONTROLLER, f"{place}.machineNetworks[]", *m.CIDR),
    ]


_URLS: Final = f"{PLATFORM}.ibmcloud.serviceEndpoints[].url"
CLOUD_ROWS: Final = [
    case(CONTROLLER, f"{PLATFORM}.external.platformName", "platform name cannot be changed once set", "a", "b", old="a"),
    case(CONTROLLER, f"{PLATFORM}.external.platformName", "platform name cannot be changed once set", "b", "Unknown", old="b",
         again=True),
    case(CONTROLLER, _URLS, "url must be a valid absolute URL", "https://iam.example.com/v1", "iam"),
    case(CONTROLLER, _URLS, "url must use https scheme", "https://iam.example.com/v1", "http://iam.example.com/v1"),
    case(CONTROLLER, _URLS, "url path must match /v[0,9]+ or /api/v[0,9]+", "https://iam.example.com/api/v12/",
         "https://iam.example.com/v1/x"),
    case(CONTROLLER, _URLS, "url path must match /v[0,9]+ or /api/v[0,9]+", "https://iam.example.com:8443/v1",
         "https://iam.example.com", again=True),
]  # fmt: skip

_DOMAINS: Final = f"{PLATFORM}.nutanix.failureDomains[]"
NUTANIX_ROWS: Final = [
    *(case(CONTROLLER, f"{_DOMAINS}.{place}", union(f"{member} configuration", "type", value),
           {"type": value, member: "a"}, {"type": other, member: "a", right: "b"})
      for place in ("cluster", "subnets[]")
      for member, value, other, right in (("uuid", "UUID", "Name", "name"), ("name", "Name", "UUID", "uuid"))),
    case(CONTROLLER, f"{_DOMAINS}.subnets", "each subnet must be unique",
         [{"type": "Name", "name": "a"}, {"type": "UUID", "uuid": "a"}], [{"type": "Name", "name": "a"}] * 2),
]  # fmt: skip

VSPHERE: Final = f"{PLATFORM}.vsphere"
_AFFINE: Final = f"{VSPHERE}.failureDomains[]"
_GROUP: Final = {"type": "HostGroup", "hostGroup": {"vmGroup": "a", "hostGroup": "b", "vmHostRule": "c"}}


def _servers(*names: str) -> list[dict[str, Any]]:
    return [{"server": f"{name}.example.com", "datacenters": ["dc"]} for name in names]


def _domain(server: str) -> list[dict[str, Any]]:
    return [{"name": "d", "server": f"{server}.example.com", "region": "r", "zone": "z", "topology": {}}]


_VCENTERS: Final = f"{VSPHERE}.vcenters"
_ONE_WAY: Final = "Cannot add and remove vCenters at the same time"
VSPHERE_ROWS: Final = [
    Case(CONTROLLER, PLATFORM, "vcenters is required once set and cannot be removed",
         at(CONTROLLER, VSPHERE, {"vcenters": _servers("a", "b")}),
         at(CONTROLLER, PLATFORM, {"type": "VSphere"}),
         at(CONTROLLER, VSPHERE, {"vcenters": _servers("a")})),
    case(CONTROLLER, VSPHERE, "all failure domains must have a corresponding vCenter entry",
         {"vcenters": _servers("a", "b"), "failureDomains": _domain("b")},
         {"vcenters": _servers("a", "b"), "failureDomains": _domain("c")}),
    case(CONTROLLER, _AFFINE, "when zoneAffinity type is HostGroup, regionAffinity type must be ComputeCluster",
         {"zoneAffinity": _GROUP, "regionAffinity": {"type": "ComputeCluster"}},
         {"zoneAffinity": _GROUP, "regionAffinity": {"type": "Datacenter"}}),
    case(CONTROLLER, _AFFINE, "when zoneAffinity type is ComputeCluster, regionAffinity type must be Datacenter",
         {"zoneAffinity": {"type": "ComputeCluster"}, "regionAffinity": {"type": "Datacenter"}},
         {"zoneAffinity": {"type": "ComputeCluster"}}),
    Case(CONTROLLER, f"{_AFFINE}.zoneAffinity", union("hostGroup", "type", "HostGroup"),
         *(at(CONTROLLER, _AFFINE, {"zoneAffinity": zone, "regionAffinity": {"type": "ComputeCluster"}})
           for zone in (_GROUP, {"type": "HostGroup"}))),
    case(CONTROLLER, _VCENTERS, "vcenters must have unique server values", _servers("a", "b"), _servers("a", "b", "a")),
    case(CONTROLLER, _VCENTERS, _ONE_WAY, _servers("a", "b", "c"), _servers("a", "c"), old=_servers("a", "b")),
    case(CONTROLLER, _VCENTERS, _ONE_WAY, _servers("b"), _servers("c"), old=_servers("a", "b")),
]  # fmt: skip

ROWS: Final = [
    *DNS_ROWS, *TOPOLOGY_ROWS, *(row for provider in ("baremetal", "openstack", "vsphere") for row in on_premises_rows(provider)),
    *CLOUD_ROWS, *NUTANIX_ROWS, *VSPHERE_ROWS,
]  # fmt: skip
